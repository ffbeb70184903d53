"""The benchmark of many samples measures what it says, on few."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import _command, large


def made_page(name, result):
    part = {"n_samples": 300, "cache_gib": 1.0, "fits": [result]}
    return large.page(_command.with_environment({name: part}))


def test_a_small_run_has_a_process_of_its_own(capsys):
    assert large.main(["--quick", "--sets", "svm"]) == 0
    shown = capsys.readouterr().out
    assert "sweep 1:" in shown
    assert "The kernel matrices alone would take 0.0 GiB" in shown
    with pytest.raises(RuntimeError, match="svm on 1 samples, p = 2, failed"):
        large.run_apart("svm", 1, 2.0)


def test_a_small_run_is_measured_and_reported():
    result = large.run(300, np.inf, 10**5, block_size=60)
    assert result.gaps[-1] <= large.TOL
    assert len(result.times) == len(result.gaps) > 1
    assert 0 < result.sweep_seconds < result.seconds
    assert result.accuracy > 0.6
    page = made_page("fda", replace(result, p=2.0))
    assert "300 samples, λ = 1" in page
    assert page.count("| 2 |") >= 1 + len(result.gaps)


def test_machines_by_columns():
    result = large.run(300, 2.0, 10**5, block_size=60, machine="svm")
    assert result.gaps[-1] <= large.TOL
    assert result.accuracy > 0.6
    page = made_page("svm", result)
    assert 'solver="interleaved"' in page
    assert "C = 1" in page


def test_features_of_landmarks_are_compared_with_kernels_by_columns():
    part = {"n_samples": 300, "fits": [large.run_landmarks(300, 40)]}
    accuracy = part["fits"][0]["accuracy"]
    exact = {"p": 2, "times": [1.0], "gaps": [1e-4], "seconds": 2.0, "accuracy": accuracy - 0.1}
    fda = {"n_samples": 300, "cache_gib": 1.0, "fits": [exact | {"peak_bytes": 1}]}
    page = large.page(_command.with_environment({"fda": fda, "landmarks": part}))
    assert "| +0.100 ±" in page
    assert "+0.100" not in large.page(_command.with_environment({"landmarks": part}))
