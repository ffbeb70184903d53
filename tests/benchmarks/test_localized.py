"""Localized estimators beside plain ones, and the straightforward loop, on small data."""

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks import _command, localized
from benchmarks import _localized_speed as speed


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def gated(rng):
    X = rng.standard_normal((30, 3))
    kernels = np.array([X @ X.T, (X @ X.T + 1) ** 2])
    return kernels, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), X


def test_gradients_are_one_and_the_slope_of_the_objective(gated, rng, monkeypatch):
    kernels, signs, X = gated
    accurate = lambda **options: SVC(**options, tol=1e-10)  # noqa: E731
    monkeypatch.setattr(speed, "SVC", accurate)
    V = 0.3 * rng.standard_normal((2, 4))
    gradients = []
    for gradient in (speed.double_sum, *speed.GRADIENTS.values()):
        loop = speed._Loop(kernels, signs, X, gradient)
        _, signed, outputs = loop.value(V)
        gradients.append(gradient(kernels, signed, outputs, X))
    np.testing.assert_allclose(gradients[1], gradients[0], atol=1e-9)
    np.testing.assert_allclose(gradients[2], gradients[0], atol=1e-9)
    step = np.zeros_like(V)
    step[1, 2] = 1e-5
    slope = (loop.value(V + step)[0] - loop.value(V - step)[0]) / 2e-5
    assert gradients[0][1, 2] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_the_loop_and_the_library_take_the_same_steps(gated, rng):
    kernels, signs, X = gated
    theta = 0.01 * rng.standard_normal(2 * 4)
    found = speed.measure(speed.Start(kernels, signs, X, theta), 3)
    assert len(found) == 4
    start = [one.objective for one in found[:-1]]
    np.testing.assert_allclose(start, start[0], rtol=1e-2)
    assert found[-1].objective <= found[0].objective * 1.001
    assert all(one.n_machines > one.n_steps for one in found)
    text = speed.section({"descents": {"3": [vars(one) for one in found]}})
    assert text.count("times faster than straightforward") == 2


def group(gain, error=0.1):
    return [
        {"name": "MKSVC", "score": 88.0, "seconds": 1.0},
        {"name": "LocalizedSVC", "gain": gain, "error": error, "seconds": 2.0},
    ]


def test_losses_beyond_a_standard_error_are_named():
    found = {"sonar": [group(-0.05)], "gauss4": [group(-0.3)]}
    lines = localized.verdicts(found)
    assert lines[0].startswith("1 of 2 localized estimators")
    assert lines[0].endswith("below: LocalizedSVC on gauss4 (-0.30 ± 0.10)")
    assert "gauss4: MKSVC 1.74 below the best rule (MISSED)" in lines
    assert "-0.05 ± 0.10" in localized.table(found).splitlines()[2]


def test_page_without_any_data(monkeypatch, tmp_path):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    assert localized.main(["--quick", "--sets", "gauss4,wine", "--write"]) == 0
    page = (tmp_path / "localized.md").read_text(encoding="utf-8")
    assert "gauss4 (89.74)" in page
    assert page == localized.page(_command.read_results("localized"))


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert localized.main(["--quick", "--sets", "mfeat,speed"]) == 1
    err = capsys.readouterr().err
    assert all(f"Skipped: {name}." in err for name in ("mfeat", "speed"))
