"""The smaller studies of Ye 2008: λ, times and Gabor pictures."""

import numpy as np
import pytest

from benchmarks import _command, _ye2008_protocol
from benchmarks import ye2008_studies as studies


@pytest.fixture(autouse=True)
def pages(monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    return tmp_path


def page(folder):
    return (folder / "ye2008_studies.md").read_text(encoding="utf-8")


# -- λ -------------------------------------------------------------------------------------


def curves(newton, other, apart=0, solver="SDP"):
    return {
        "regs": [1e-6, 1e-2, 100.0],
        "accuracy": {"Newton": newton, solver: other},
        "rows_apart": {"Newton": 0, solver: apart},
        "n_splits": {"Newton": 1, solver: 1},
        "rel_gap": {"Newton": 1e-7, solver: 1e-7},
    }


@pytest.mark.parametrize(("apart", "held"), [(1, True), (2, False)])
def test_programs_may_differ_by_one_row(apart, held):
    flat = [90.0, 90.0, 90.0]
    text = studies.lambda_summary("sonar", curves(flat, flat, apart))
    assert ("every split: held" in text) == held
    text = studies.lambda_summary("sonar", curves(flat, flat, apart, "approximate SDP"))
    assert "every split: held" in text


@pytest.mark.parametrize(
    ("accuracies", "held"), [([90.0, 86.0, 50.0], True), ([84.0, 90.0, 90.0], False)]
)
def test_falls_are_judged_up_to_one(accuracies, held):
    text = studies.lambda_summary("sonar", curves(accuracies, accuracies))
    assert text.endswith("up to 1: held.") == held
    assert ("MISSED by Newton, SDP" in text) != held


def test_curves_from_the_command_line_to_the_page(monkeypatch, pages):
    small = _ye2008_protocol.PaperSet(
        lambda seed: _ye2008_protocol.waveform(seed, 15), "few rows", 27, 18
    )
    monkeypatch.setitem(studies.SETS, "waveform(3)", small)
    assert studies.main(["--quick", "--sets", "waveform(3)", "--write"]) == 0
    assert all(f"\n| {solver} " in page(pages) for solver in studies.LAMBDA["waveform(3)"])


# -- seconds -------------------------------------------------------------------------------


def test_exponents_are_slopes_between_the_last_two_sizes():
    part = {"sizes": [10, 20, 40], "seconds": {"SILP": [1, 1, 8], "QCQP": [1, 4, None]}}
    assert studies.exponent(part, "SILP") == pytest.approx(3)
    assert studies.exponent(part, "QCQP") == pytest.approx(2)


def test_programs_that_take_too_long_are_left_out():
    assert studies.seconds_of(960, 10, "QCQP") is None


def test_the_order_is_judged_at_the_largest_common_size():
    seconds = {"approximate SDP": [9.0, 0.1], "QCQP": [3.0, None], "SILP": [1.0, 5.0]}
    line = studies.growth_summary("samples", {"sizes": [60, 120], "seconds": seconds})
    assert "60 samples: SILP faster than QCQP: held (3 times)" in line
    assert "QCQP faster than SDP: held (0.33 times its seconds)" in line


def test_times_from_the_command_line_to_the_page(monkeypatch, pages):
    monkeypatch.setattr(studies, "GROWING", {"samples": (30, 60), "kernels": (2, 4)})
    monkeypatch.setattr(studies, "FIXED_SAMPLES", 30)
    assert studies.main(["--quick", "--sets", "samples", "kernels", "--write"]) == 0
    assert all(f"\n| {solver} " in page(pages) for solver in studies.LAMBDA["waveform(3)"])


# -- Gabor pictures ------------------------------------------------------------------------


def test_filters_answer_waves_of_their_length_and_direction():
    filters = studies.log_gabor_filters((48, 48))
    assert len(filters) == 24
    # A wave along the rows' direction of 6 pixels, which varies from column to column.
    wave = np.cos(2 * np.pi * np.arange(48) / 6)[None, :] * np.ones((48, 1))
    spectrum = np.fft.fft2(wave)

    def strongest(spectrum):
        energy = {
            name: np.abs(np.fft.ifft2(spectrum * response)).mean()
            for name, response in filters.items()
        }
        return max(energy, key=energy.get)

    assert strongest(spectrum) == "6 px, 0°"
    assert strongest(spectrum.T) == "6 px, 90°"


def test_energy_does_not_depend_on_brightness():
    rng = np.random.default_rng(0)
    pictures = rng.random((3, 16, 16))
    kernels = studies.gabor_kernels(pictures)
    brighter = studies.gabor_kernels(pictures + np.array([0, 1, 5])[:, None, None])
    assert kernels.n_kernels == 48
    np.testing.assert_allclose(kernels.data, brighter.data, atol=1e-10)


def test_gains_of_learnt_weights_are_compared_on_the_same_splits():
    accuracy = {"SILP θ": [80.0, 82.0], "uniform": [80.0, 80.0]}
    alone = np.full((2, 48), 70.0)
    alone[:, 0] = 85.0
    uniform, best = studies.gabor_rows({"accuracy": accuracy, "alone": alone})
    assert (uniform.ours, uniform.error) == (1.0, 1.0)
    assert uniform.theirs == pytest.approx(15.63)
    assert best.ours == -4.0
    assert not best.same_data


def test_gabor_from_the_command_line_to_the_page(monkeypatch, pages):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 10)
    stripes = np.sin(np.arange(16) * (1 + y[:, None]))[:, None, :]
    pictures = stripes + 0.1 * rng.standard_normal((30, 16, 16))
    monkeypatch.setattr(studies._data, "olivetti", lambda: (pictures, y))
    monkeypatch.setattr(studies, "WAVELENGTHS", (3.0,))
    assert studies.main(["--quick", "--sets", "olivetti", "--write"]) == 0
    assert "\n| 3 px " in page(pages)


def test_missing_pictures_end_it(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert studies.main(["--quick", "--sets", "olivetti"]) == 1
    assert "Skipped: olivetti." in capsys.readouterr().err
