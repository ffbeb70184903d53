"""The benchmark of kernels on disk measures what it says, on few samples."""

import time

import numpy as np
import pytest

from benchmarks import medium
from benchmarks._command import with_environment
from benchmarks._meter import Meter


@pytest.mark.slow
def test_a_small_run_is_measured_and_reported(capsys, tmp_path):
    assert medium.main(["--quick", "--folder", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "float32, disk" in shown
    assert "differ by" in shown
    assert "factorisations alone grow by 125, kernels by 25." in shown
    assert list(tmp_path.iterdir()) == []
    results = [medium.run(120, "float64", None), medium.run(120, "float32", tmp_path)]
    assert list(tmp_path.iterdir()) == []
    for result in results:
        assert result.rel_gap < 1e-6
        assert result.n_kernels == len(result.weights) == 50
    assert results[0].stack_bytes == 2 * results[1].stack_bytes == 8 * 50 * 120**2
    plain = dict(zip(medium.SETS, map(vars, results), strict=False))
    page = medium.page(with_environment(plain))
    assert "50 Gaussian kernels, 10 classes" in page
    assert page.count("| 120 ") == 2
    assert "factorisations alone" not in page


def test_memory_and_time_are_those_of_the_block():
    with Meter() as meter:
        array = np.ones(2**22)
        time.sleep(0.1)
    assert meter.peak_bytes > array.nbytes
    assert meter.seconds >= 0.1
    assert meter.processor < meter.seconds + 1.0
