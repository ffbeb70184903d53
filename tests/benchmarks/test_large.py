"""The benchmark of many samples measures what it says, on few."""

import numpy as np
import pytest

from benchmarks import large


@pytest.mark.slow
def test_a_small_run_is_measured_and_reported(capsys):
    assert large.main(["--samples", "300", "--norms", "2"]) == 0
    shown = capsys.readouterr().out
    assert "sweep 1:" in shown
    assert "a stack would take 0.0 GiB" in shown
    result = large.run(300, np.inf, 10**5, block_size=60)
    assert result.gaps[-1] <= large.TOL
    assert len(result.times) == len(result.gaps) > 1
    assert 0 < result.sweep_seconds < result.seconds
    assert result.accuracy > 0.6
    page = large.report([result], 300, 1.0)
    assert "300 samples of 20 features" in page
    assert page.count("| inf |") == 1 + len(result.gaps)


@pytest.mark.slow
def test_machines_by_columns():
    result = large.run(300, 2.0, 10**5, block_size=60, machine="svm")
    assert result.gaps[-1] <= large.TOL
    assert result.accuracy > 0.6
    page = large.report([result], 300, 1.0, "svm")
    assert 'solver="interleaved"' in page
    assert "C = 1" in page
