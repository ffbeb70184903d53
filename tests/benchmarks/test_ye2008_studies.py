"""The smaller studies beside Ye 2008: machines, λ, Gabor pictures and seconds."""

import numpy as np
import pytest

from benchmarks import (
    _command,
    _ye2008_sets,
    ye2008_gabor,
    ye2008_machines,
    ye2008_regularization,
    ye2008_times,
)
from benchmarks._ye2008 import MACHINES, SUPPORT
from benchmarks._ye2008_protocol import Fit


@pytest.fixture(autouse=True)
def pages(monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    return tmp_path


def page(folder, name):
    return (folder / f"{name}.md").read_text(encoding="utf-8")


def fit(accuracy=0.9):
    return Fit(accuracy, np.full(48, 1 / 48), 5e-4, 0.1, 1e-7, True, 100)


# -- machines ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_figures_of_machines_are_complete(name):
    assert list(MACHINES[name]) == list(ye2008_machines.MODELS)
    # Weights sum to ten, with the identity to eleven, choices to thirty.
    sums = [sum(row.weights) for row in MACHINES[name].values()]
    np.testing.assert_allclose(sums, [10, 10, 11, 30, 30], atol=0.03)
    assert list(SUPPORT[name]) == ["SM1", "SM2", "SM2 C"]


def machines(support=93.0, accuracy=90.0):
    models = list(ye2008_machines.MODELS)
    return ye2008_machines.Result(
        "sonar",
        {model: np.full(2, accuracy) for model in models},
        {model: np.full((2, 10), 0.1) for model in models},
        {model: np.full(2, support) for model in models[:3]},
        np.array([1e7, 1e7]),
        np.full((2, 10), 80.0),
    )


@pytest.mark.parametrize(
    ("support", "missed"), [(93.0, []), (96.5, ["SM2"]), (87.9, ["SM1", "SM2 C"])]
)
def test_support_vectors_are_bound_on_both_sides(support, missed):
    bounds = ye2008_machines.held(machines(support))
    assert [name.split("of ")[1] for name, fine in bounds.items() if not fine] == missed


def test_accuracies_of_machines_are_bound_below():
    line = ye2008_machines.summary(machines(accuracy=87.5))
    assert "MISSED: accuracy of SM1, accuracy of SM2, accuracy of SM2 C, accuracy of RKDA" in line
    assert "learnt C, as the paper scales it, 1.0e+07 (paper 5.5e+07)" in line


def test_machines_from_the_command_line_to_the_page(monkeypatch, pages):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "g", "b")
    monkeypatch.setitem(ye2008_machines.SETS, "sonar", lambda: (X, y))
    assert ye2008_machines.main(["--splits", "1", "--sets", "sonar", "--write"]) == 0
    text = page(pages, "ye2008_machines")
    assert all(f"\n| {model} " in text for model in ye2008_machines.MODELS)
    assert "RKDA λ, here, % of 1" in text


# -- λ -------------------------------------------------------------------------------------


def regularization(newton, other, solver="SDP"):
    regs = np.array([1e-6, 1e-2, 100.0])
    fits = {"Newton": [[fit(one) for one in newton]], solver: [[fit(one) for one in other]]}
    return ye2008_regularization.Result("sonar", regs, fits, 40)


@pytest.mark.parametrize(("other", "held"), [(0.875, True), (0.85, False)])
def test_programs_may_differ_by_one_row(other, held):
    some = regularization([0.9, 0.9, 0.9], [0.9, other, 0.9])
    assert ("every λ held" in ye2008_regularization.summary(some)) == held
    approximate = regularization([0.9] * 3, [0.9, other, 0.9], "approximate SDP")
    assert "every λ held" in ye2008_regularization.summary(approximate)


@pytest.mark.parametrize(("accuracies", "held"), [([0.9, 0.86, 0.5], True), ([0.84, 0.9, 0.9], 0)])
def test_falls_are_judged_up_to_one(accuracies, held):
    text = ye2008_regularization.summary(regularization(accuracies, accuracies))
    assert text.endswith("up to 1 held") == held
    assert ("MISSED by Newton, SDP" in text) != held


def test_regularization_from_the_command_line_to_the_page(monkeypatch, pages):
    solvers = tuple(ye2008_regularization.SOLVERS)
    study = ye2008_regularization.Study(lambda seed: _ye2008_sets.waveform(seed, 15), 0.4, solvers)
    monkeypatch.setitem(ye2008_regularization.STUDIES, "waveform(3)", study)
    assert ye2008_regularization.main(["--quick", "--sets", "waveform(3)", "--write"]) == 0
    text = page(pages, "ye2008_regularization")
    assert all(f"\n| {solver} " in text for solver in solvers)


# -- Gabor pictures ------------------------------------------------------------------------


def test_filters_answer_waves_of_their_length_and_direction():
    filters = ye2008_gabor.log_gabor_filters((48, 48))
    assert len(filters) == 24
    # A wave along the rows' direction of 6 pixels, which varies from column to column.
    wave = np.cos(2 * np.pi * np.arange(48) / 6)[None, :] * np.ones((48, 1))
    spectrum = np.fft.fft2(wave)
    energy = {
        name: np.abs(np.fft.ifft2(spectrum * response)).mean()
        for name, response in filters.items()
    }
    assert max(energy, key=energy.get) == "6 px, 0°"
    turned = {
        name: np.abs(np.fft.ifft2(spectrum.T * response)).mean()
        for name, response in filters.items()
    }
    assert max(turned, key=turned.get) == "6 px, 90°"


def test_energy_does_not_depend_on_brightness():
    rng = np.random.default_rng(0)
    pictures = rng.random((3, 16, 16))
    kernels = ye2008_gabor.gabor_kernels(pictures)
    brighter = ye2008_gabor.gabor_kernels(pictures + np.array([0, 1, 5])[:, None, None])
    assert kernels.n_kernels == 48
    np.testing.assert_allclose(kernels.data, brighter.data, atol=1e-10)


def test_learnt_weights_are_compared_with_single_kernels_and_uniform_ones():
    fits = {method: [fit(0.8)] for method in ye2008_gabor.METHODS}
    single = np.full((1, 48), 70.0)
    single[0, 0] = 85.0
    names = [str(j) for j in range(48)]
    text = ye2008_gabor.summary(ye2008_gabor.Result(names, fits, single))
    assert "best single kernel: MISSED, -5.00 points (paper +16.25)" in text
    assert "uniform ones: MISSED, +0.00 points (paper +15.63)" in text


def test_gabor_from_the_command_line_to_the_page(monkeypatch, pages):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 10)
    stripes = np.sin(np.arange(16) * (1 + y[:, None]))[:, None, :]
    pictures = stripes + 0.1 * rng.standard_normal((30, 16, 16))
    monkeypatch.setattr(ye2008_gabor._data, "olivetti", lambda: (pictures, y))
    monkeypatch.setattr(ye2008_gabor, "WAVELENGTHS", (3.0,))
    assert ye2008_gabor.main(["--quick", "--write"]) == 0
    assert "\n| 3 px " in page(pages, "ye2008_gabor")


def test_missing_pictures_end_it(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert ye2008_gabor.main(["--quick"]) == 1
    assert "Skipped: olivetti." in capsys.readouterr().err


# -- seconds -------------------------------------------------------------------------------


def test_exponents_are_slopes_between_the_last_two_sizes():
    growth = ye2008_times.Growth("samples", (10, 20, 40), {"SILP": [1, 1, 8], "QCQP": [1, 4]})
    assert growth.exponent("SILP") == pytest.approx(3)
    assert growth.exponent("QCQP") == pytest.approx(2)


def test_programs_that_take_too_long_are_left_out():
    assert ye2008_times.measured(960, 10, "QCQP") is None


def test_the_order_is_judged_at_the_largest_common_size():
    seconds = {"SDP": [9.0, 0.1], "QCQP": [3.0], "SILP": [1.0, 5.0], "Newton": [0.5, 1.0]}
    line = ye2008_times.summary(ye2008_times.Growth("samples", (60, 120), seconds))
    assert "60 samples: SILP faster than QCQP held (3 times)" in line
    assert "QCQP faster than SDP held (3 times); Newton's method 2 times" in line


def test_times_from_the_command_line_to_the_page(monkeypatch, pages):
    monkeypatch.setattr(ye2008_times, "SAMPLES", (30, 60))
    monkeypatch.setattr(ye2008_times, "KERNELS", (2, 4))
    monkeypatch.setattr(ye2008_times, "FIXED_SAMPLES", 30)
    assert ye2008_times.main(["--quick", "--write"]) == 0
    assert all(f"\n| {solver} " in page(pages, "ye2008_times") for solver in ye2008_times.SOLVERS)
