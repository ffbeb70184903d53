"""Means, verdicts and tables beside the paper's, on small problems."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import _command, ye2008
from benchmarks._ye2008 import ROWS, SINGLE_KERNELS, WIDTHS

READING = next(iter(ye2008.READINGS))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "g", "b")


def fit(accuracy=0.9, reg=5e-4, **changes):
    values = {"seconds": 0.1, "rel_gap": 1e-7, "converged": True, "n_train": 100}
    return ye2008.Fit(accuracy, np.full(10, 0.1), reg, **(values | changes))


def result(**fits):
    methods = {"SDP θ": fits.get("fixed", [fit()]), "SDP θ,λ": fits.get("joint", [fit()])}
    svm = np.full((2, 10, 4), 0.8)
    svm[:, 5] = [0.7, 0.85, 0.9, 0.6]
    return ye2008.Result("sonar", READING, methods, svm)


@pytest.mark.parametrize("name", ROWS)
def test_figures_of_the_paper_are_complete(name):
    assert list(ROWS[name]) == [m for m in ye2008.METHODS if m not in ye2008.COMPARED_WITH]
    for row in ROWS[name].values():
        assert len(row.weights) == 10
        assert sum(row.weights) == pytest.approx(1, abs=5e-3)
    assert all(len(row) == 10 for row in SINGLE_KERNELS[name].values())


def test_widths_are_those_of_the_paper():
    np.testing.assert_allclose(WIDTHS, np.logspace(-1, 2, 10), rtol=0.03)


def test_means_and_deviations_are_in_per_cent():
    mean, deviation = ye2008.accuracy([fit(0.8), fit(0.9)])
    assert mean == pytest.approx(85)
    assert deviation == pytest.approx(5)


@pytest.mark.parametrize(("accuracy", "held"), [(0.8728, True), (0.8726, False), (0.95, True)])
def test_two_points_below_the_paper_are_held(accuracy, held):
    some = result(fixed=[fit(accuracy)])
    assert ye2008.within(some, "SDP θ") == held
    assert ("MISSED by SDP θ" in ye2008.summary(some)) != held


def test_the_table_of_accuracies():
    some = result(fixed=[fit(0.9, converged=False, rel_gap=3e-4), fit(0.88)])
    row = ye2008.accuracies(some).splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        *["SDP θ", "89.00 ± 1.00", "89.27 ± 5.34", "-0.27", "held"],
        *["5.0e-04", "5.0e-04", "0.1", "3.0e-04", "1 of 2"],
    ]


def test_weights_stand_under_the_paper_s():
    lines = ye2008.weights(result()).splitlines()
    assert "0.550" in lines[2]
    assert lines[3].count("0.100") == 10


def test_the_best_c_is_one_for_all_splits():
    text = ye2008.single_kernels(result())
    assert "90.00" in text
    assert "+0.33 at σ = 4.64" in text


def test_readings_are_judged_by_svms_and_weights():
    some = result()
    exact = np.array(SINGLE_KERNELS["sonar"]["SVM C"]) / 100
    some = replace(some, svm=np.tile(exact[:, None] - 0.02, (1, 1, 4)))
    text = ye2008.agreement(some)
    assert "off by 2.0 points (rms)" in text
    assert "weights of SDP θ by 1.31 (sum)" in text


@pytest.mark.parametrize(("reading", "power"), [(1, 2), (2, 1)])
def test_readings_differ_in_the_power_of_the_width(reading, power):
    scaler, gamma, found = list(ye2008.READINGS.values())[reading]
    assert (scaler.feature_range, gamma, found) == ((-1, 1), 1.0, power)


def test_what_becomes_of_a_learnt_regularization():
    some = result(joint=[fit(0.91, reg=0.0), fit(0.91, reg=1e-15), fit(0.91, reg=1e-6)])
    text = ye2008.learnt_regularization(some)
    assert "median 1.0e-15, from 0 to 1.0e-06, lost in 2 of 3 fits; paper 3.1e-08" in text
    assert "accuracy +1.00 against λ = 0.0005" in text


def test_programs_for_the_same_problem_agree(data):
    some = ye2008.run("sonar", READING, *data, n_splits=1, methods=["SDP θ", "Newton θ"])
    (sdp,), (newton,) = some.fits.values()
    np.testing.assert_allclose(sdp.weights, newton.weights, atol=1e-2)
    assert sdp.n_train == 32
    assert some.svm.shape == (1, 10, len(ye2008.SVM_C))


def test_from_the_command_line_to_the_page(data, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    monkeypatch.setitem(ye2008.SETS, "ionosphere", lambda: data)
    assert ye2008.main(["--quick", "--splits", "1", "--sets", "ionosphere", "--write"]) == 0
    page = (tmp_path / "ye2008.md").read_text(encoding="utf-8")
    assert all(f"## ionosphere: {reading}" in page for reading in ye2008.READINGS)
    assert all(f"\n| {method}" in page for method in ye2008.METHODS)
    assert "split 1 of 1" in capsys.readouterr().err


def test_the_slow_program_is_run_where_it_counts():
    assert ye2008.methods_of(ye2008.PAPERS_READING) == list(ye2008.METHODS)
    others = [reading for reading in ye2008.READINGS if reading != ye2008.PAPERS_READING]
    assert len(others) == 2
    assert all("QCQP θ" not in ye2008.methods_of(reading) for reading in others)


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert ye2008.main(["--quick"]) == 1
    assert "Skipped: ionosphere." in capsys.readouterr().err
