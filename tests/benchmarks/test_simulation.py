"""The simulation draws what it says, chooses λ without the test points, and reports it."""

import numpy as np
import pytest

from benchmarks import _command, simulation
from benchmarks.simulation import Outcome, Result


@pytest.fixture
def few_regs(monkeypatch):
    monkeypatch.setattr(simulation, "REGS", np.array([0.1, 10.0]))


def outcome(first, second, n=2):
    """Test errors of ℓ1 and ℓ2 at the λ that is chosen, those of ℓ∞ and the other λ being 0.5."""
    validation = np.tile([0.3, 0.2], (3, 1))
    test = np.full((3, 2), 0.5)
    test[:2, 1] = first, second
    weights = np.zeros((3, 2, n))
    weights[0, :, 0] = 1.0
    weights[1:] = 0.5
    return Outcome(validation, test, np.full((3, 2), 1e-8), weights)


def result(*pairs):
    outcomes = [outcome(*pair) for pair in pairs]
    single = [outcome(0.42, 0.42, n=1), outcome(0.44, 0.44, n=1)]
    return Result({1: single, 5: outcomes}).plain()


# -- problems ------------------------------------------------------------------------------


@pytest.mark.usefixtures("few_regs")
def test_a_problem_played_twice_is_the_same_and_norms_are_held():
    one, other = (simulation.play(3, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.test, other.test)
    assert one.test.shape == (3, 2)
    np.testing.assert_allclose(one.weights[0].sum(axis=1), 1.0)
    np.testing.assert_allclose(np.linalg.norm(one.weights[1], axis=1), 1.0)
    np.testing.assert_array_equal(one.weights[2], 1.0)


@pytest.mark.usefixtures("few_regs")
def test_one_kernel_has_one_weight_whatever_the_norm():
    alone = simulation.play(1, seed=0)
    np.testing.assert_array_equal(alone.weights, 1.0)
    assert (alone.test == alone.test[0]).all()


@pytest.mark.usefixtures("few_regs")
def test_the_tighter_the_classes_the_smaller_the_error():
    errors = [simulation.single_kernel_error(scale, n_views=10) for scale in (0.01, 0.3, 10.0)]
    assert errors == sorted(errors)
    assert errors[0] < 0.1
    assert errors[-1] > 0.4


def test_the_scale_is_solved_for(monkeypatch):
    monkeypatch.setattr(
        simulation, "single_kernel_error", lambda scale, n_views: scale / (1 + scale)
    )
    assert simulation.calibrated_scale(target=0.75) == pytest.approx(3.0, rel=0.03)


# -- results -------------------------------------------------------------------------------


def test_regularisation_is_chosen_on_validation_points_and_ties_go_to_the_largest():
    validation = np.array([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]])
    test = np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4]])
    some = Outcome(validation, test, np.zeros((2, 3)), np.arange(6.0).reshape(2, 3, 1))
    np.testing.assert_array_equal(some.chosen, [2, 0])
    np.testing.assert_array_equal(some.errors, [0.7, 0.6])
    np.testing.assert_array_equal(some.chosen_weights, [[2.0], [3.0]])


def test_differences_are_taken_on_the_same_problems():
    some = result((0.30, 0.20), (0.36, 0.22), (0.30, 0.18))
    mean, error = simulation.difference(some["5"])
    assert mean == pytest.approx(0.12)
    assert error == pytest.approx(0.02 / 3**0.5)
    assert simulation.ahead(some["5"]) == "ℓ2"
    assert simulation.ahead(result((0.2, 0.3), (0.21, 0.33), (0.2, 0.31))["5"]) == "ℓ1"
    assert simulation.ahead(result((0.2, 0.3), (0.3, 0.2), (0.25, 0.26))["5"]) == "level"


@pytest.mark.usefixtures("few_regs")
def test_what_comes_out_stands_beside_what_the_paper_says():
    text = simulation.summary(result((0.30, 0.20), (0.36, 0.22), (0.30, 0.18)))
    assert "One kernel alone errs 0.430 ± 0.010" in text
    assert "5 kernels: ℓ2 ahead, ℓ1 − ℓ2 = +12.00 ± 1.15 points" in text
    assert "paper: ℓ1 slightly ahead (MISSED)." in text
    text = simulation.summary(result((0.2, 0.3), (0.3, 0.2), (0.25, 0.26)))
    assert "5 kernels: level" in text
    assert "paper: ℓ1 slightly ahead (undecided)." in text


def test_tables():
    some = result((0.30, 0.20), (0.36, 0.22))
    row = simulation.error_table(some).splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["5", "33.0 ± 3.0", "21.0 ± 1.0", "50.0 ± 0.0", "+12.00 ± 2.00", "ℓ2"]
    row = simulation.weight_table(some).splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["5", "1.0", "2.0", "1.0", "2.0"]


@pytest.mark.usefixtures("few_regs")
def test_verdicts_with_lambda_held_fixed():
    some = result((0.30, 0.20), (0.36, 0.22), (0.30, 0.18))
    lines = simulation.difference_table(some).splitlines()
    assert lines[2].split() == ["|", "0.1", "|", "(+0.0)", "|"]
    assert lines[3].split() == ["|", "10", "|", "+12.0", "|"]
    assert "ℓ1 ahead at none; level at 0.1; ℓ2 ahead at 10." in simulation.summary(some)


def test_fits_that_fall_short_are_counted():
    some = result((0.3, 0.2), (0.3, 0.2))
    assert "24 fits" in simulation.certificates(some)
    assert "0 fell short" in simulation.certificates(some)
    some["5"] |= {"n_short": 1, "worst_gap": 3e-6}
    assert "1 fell short of it. The worst gap is 3.0e-06" in simulation.certificates(some)


@pytest.mark.slow
def test_from_the_command_line_to_the_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path / "benchmarks")
    monkeypatch.setattr(simulation, "QUICK_N_KERNELS", [5, 6])
    assert simulation.main(["--quick", "--repeats", "2", "--write"]) == 0
    page = (tmp_path / "benchmarks" / "simulation.md").read_text(encoding="utf-8")
    assert "2 problems for each n" in page
    assert all(f"\n| {reg:.4g} " in page for reg in simulation.REGS)
    assert (tmp_path / "images" / "simulation.png").stat().st_size > 10_000
    assert "6 kernels, 2 repeats" in capsys.readouterr().err


def test_calibration_from_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(simulation, "calibrated_scale", lambda: 1.9)
    assert simulation.main(["--calibrate"]) == 0
    assert "scale 1.900" in capsys.readouterr().out
