"""SimpleMKL: directions, kernels that leave, line searches, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from manykernels.domains import Simplex, TraceSimplex, lp_domain
from manykernels.losses.base import ProblemSpec
from manykernels.solvers import Newton, ReducedGradient
from manykernels.solvers.base import Run
from manykernels.solvers.papers.descent import (
    _balanced,
    _direction,
    _falls,
    _longest_step,
    _moved,
    _Point,
)
from tests.problems import random_gram_matrices, square_loss


@dataclass
class Value:
    """What a solver without second derivatives asks of an evaluation."""

    weights: np.ndarray
    value: float
    gains: np.ndarray
    slack: float = 0.0
    rounding: float = 0.0
    dual: None = None

    @property
    def gain_errors(self):
        return np.zeros(len(self.gains))

    def reassessed(self):
        return self


class Parabola:
    """``1 + ½ Σ_j a_j (β_j − b_j)²``, with noise and slack on top if asked for."""

    def __init__(self, curvature, bottom, slack=0.0, noise=0.0):
        self.curvature = np.asarray(curvature, dtype=float)
        self.bottom = np.asarray(bottom, dtype=float)
        self.slack = slack
        self.noise = noise
        self.n_kernels = len(bottom)
        self.spec = ProblemSpec(Parabola, 1, len(bottom), 1)
        self.rng = np.random.default_rng(0)
        self.n_evaluations = 0

    def within(self, gauge):
        return self

    def in_sweeps(self):
        return self

    def note(self, evaluation):
        return ""

    def evaluate(self, weights):
        self.n_evaluations += 1
        away = weights - self.bottom
        value = 1.0 + 0.5 * self.curvature @ away**2
        value += self.slack + self.noise * self.rng.uniform(-1, 1)
        return Value(weights, value, -self.curvature * away, self.slack)


def best_pair(loss, prices):
    """Weights of two kernels, by a search over the share of the first."""

    def weights(share):
        return np.array([share, 1.0 - share]) / prices

    found = minimize_scalar(
        lambda share: loss.evaluate(weights(share)).value,
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return weights(found.x), found.fun


def at(shares, gradient, value=1.0):
    shares, gradient = np.array(shares, dtype=float), np.array(gradient, dtype=float)
    return _Point(shares, value, gradient, Value(shares, value, -gradient))


def test_the_direction_is_the_reduced_gradient_where_that_leads_into_the_simplex():
    point = at([0.5, 0.0, 0.0, 0.3, 0.2], [-1.0, -3.0, 2.0, -2.0, 0.5])
    direction = _direction(point, 0)
    np.testing.assert_allclose(direction, [-1.5, 2.0, 0.0, 1.0, -1.5])
    assert point.slope(direction) == pytest.approx(-np.sum(direction[1:] ** 2))
    step, vanishing = _longest_step(point.shares, direction)
    assert (step, vanishing) == (pytest.approx(0.2 / 1.5), 4)
    moved = _moved(point.shares, direction, step, vanishing)
    assert moved[4] == 0.0
    assert moved.sum() == pytest.approx(1.0)
    without = _balanced(np.where(moved > 0.0, direction, 0.0), 0)
    np.testing.assert_allclose(without, [-3.0, 2.0, 0.0, 1.0, 0.0])


def test_a_share_that_vanishes_leaves_no_rounding_behind():
    rng = np.random.default_rng(0)
    for _ in range(200):
        point = at(rng.dirichlet(np.ones(5)), rng.standard_normal(5))
        direction = _direction(point, int(np.argmax(point.shares)))
        step, vanishing = _longest_step(point.shares, direction)
        moved = _moved(point.shares, direction, step, vanishing)
        assert moved[vanishing] == 0.0
        assert moved.min() >= 0.0
        assert moved.sum() == pytest.approx(1.0, abs=1e-14)


def test_where_values_are_equal_the_slope_decides():
    down = np.array([1.0, -1.0])
    point = at([0.5, 0.5], [-1.0, 1.0])
    assert _falls(point, at([1, 0], [1.0, -1.0], value=0.9), down)
    assert _falls(point, at([1, 0], [-1.0, 1.0], value=1.0), down)
    assert not _falls(point, at([1, 0], [1.0, -1.0], value=1.0), down)
    assert not _falls(point, at([1, 0], [-1.0, 1.0], value=1.1), down)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("start", [None, [1.0, 0.0], [0.0, 1.0]])
def test_two_kernels_get_the_weights_of_a_search_along_the_segment(n_classes, start):
    loss = square_loss(random_gram_matrices(2, 30), n_classes)
    weights, least = best_pair(loss, np.ones(2))
    start = None if start is None else np.array(start)
    solution = ReducedGradient().solve(loss, Simplex(), tol=1e-8, start=start)
    assert 0.01 < weights[0] < 0.99
    assert solution.certificate.primal == pytest.approx(least, rel=1e-8)
    np.testing.assert_allclose(solution.weights, weights, atol=1e-3)


def test_prices_of_the_trace_simplex():
    loss = square_loss(random_gram_matrices(2, 30), 3, normalize=None, reg=1.0)
    prices = loss.kernels.row_diag.sum(axis=1) * np.array([1.0, 50.0])
    weights, least = best_pair(loss, prices)
    solution = ReducedGradient().solve(loss, TraceSimplex(prices), tol=1e-8)
    assert solution.certificate.primal == pytest.approx(least, rel=1e-8)
    np.testing.assert_allclose(solution.weights * prices, weights * prices, atol=1e-3)
    assert prices @ solution.weights == pytest.approx(1.0, abs=1e-15)


def test_kernels_that_do_not_help_vanish_exactly_and_several_in_one_iteration():
    loss = square_loss(random_gram_matrices(20, 60), 2, reg=100.0)
    solution = ReducedGradient().solve(loss, Simplex(), tol=1e-6)
    best = Newton().solve(loss, Simplex(), tol=1e-9)
    gains = best.evaluation.gains
    useless = gains < 0.99 * gains.max()
    assert useless.sum() > 10
    assert (solution.weights[useless] == 0.0).all()
    assert solution.certificate.converged
    assert solution.n_iter < useless.sum()
    assert solution.weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_a_tiny_weight_does_not_stop_the_method():
    """Until the third share has vanished, F changes by less than its rounding."""
    loss = Parabola([1.0, 1.0, 1.0], [0.2, 0.8, -5.0])
    start = np.array([0.9 - 1e-17, 0.1, 1e-17])
    solution = ReducedGradient().solve(loss, Simplex(), tol=1e-8, start=start)
    np.testing.assert_allclose(solution.weights, [0.2, 0.8, 0.0], atol=1e-7)
    assert solution.weights[2] == 0.0


def test_the_reference_may_vanish_too():
    loss = Parabola([1.0, 1.0, 1.0], [-9.0, 0.5, 0.5])
    start = np.array([1.0, 0.0, 0.0])
    solution = ReducedGradient().solve(loss, Simplex(), start=start)
    np.testing.assert_allclose(solution.weights, [0.0, 0.5, 0.5], atol=1e-12)
    assert solution.n_iter == 2


def test_the_loss_falls_in_every_iteration_and_every_evaluation_is_counted(monkeypatch):
    loss = square_loss(random_gram_matrices(6, 40), 3, reg=1e-2)
    values, counts, evaluate = [], [], loss.evaluate
    record = Run.record

    def noting(run, point, *args, **kwargs):
        values.append(point.value)
        return record(run, point, *args, **kwargs)

    def counting(weights):
        counts.append(weights.sum())
        return evaluate(weights)

    monkeypatch.setattr(Run, "record", noting)
    monkeypatch.setattr(loss, "evaluate", counting)
    solution = ReducedGradient().solve(loss, Simplex(), tol=1e-7)
    assert (np.diff(values) < 0.0).all()
    assert len(counts) == solution.n_inner_solves
    np.testing.assert_allclose(counts, 1.0, atol=1e-15)
    assert len(values) == solution.n_iter > 5


@pytest.mark.parametrize("slack", [1e-6, 0.1])
def test_certificates_of_inexact_inner_solutions_bound(slack):
    bottom = np.array([0.5, 0.4, -0.3])
    exact = ReducedGradient().solve(Parabola([1, 2, 4], bottom), Simplex(), tol=1e-9)
    loose = ReducedGradient().solve(Parabola([1, 2, 4], bottom, slack=slack), Simplex(), tol=1e-7)
    found, least = loose.certificate, exact.certificate.primal
    assert found.dual <= least <= found.primal
    assert slack <= found.gap <= slack + 1e-5
    assert not found.converged
    assert "lowers the loss" in loose.status


@pytest.mark.parametrize("noise", [1e-9, 1e-3, 1e-2])
def test_noise_ends_the_run(noise):
    loss = Parabola([1, 2, 4, 8], [0.5, 0.4, 0.3, -0.2], noise=noise)
    solution = ReducedGradient().solve(loss, Simplex(), tol=0.0)
    assert loss.n_evaluations == solution.n_inner_solves
    assert solution.n_inner_solves < 5000
    assert "lowers the loss" in solution.status
    assert solution.weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_what_rounding_hides_is_not_searched_for():
    loss = square_loss(random_gram_matrices(4, 30), 2)
    solution = ReducedGradient().solve(loss, Simplex(), tol=0.0)
    assert solution.certificate.rel_gap < 1e-7
    assert solution.status == "no step along the reduced gradient lowers the loss any more"
    assert solution.n_iter < 100


def test_a_finer_line_search_takes_more_evaluations_each_time():
    loss = square_loss(random_gram_matrices(6, 40), 2)
    coarse = ReducedGradient(precision=0.5).solve(loss, Simplex(), tol=1e-4)
    fine = ReducedGradient(precision=1e-3).solve(loss, Simplex(), tol=1e-4)
    assert coarse.certificate.converged
    assert fine.certificate.converged
    assert coarse.n_inner_solves / coarse.n_iter < fine.n_inner_solves / fine.n_iter


def test_other_norms_are_refused_with_solvers_that_take_them():
    loss = square_loss(random_gram_matrices(3, 20), 2)
    message = r"'reduced-gradient' works at p=1 only; solver='newton' or .*'analytic'"
    with pytest.raises(ValueError, match=message):
        ReducedGradient().solve(loss, lp_domain(2.0))


def test_shares_of_the_budget_become_weights_and_their_gradient():
    loss = Parabola([1.0, 1.0], [0.5, 0.5])
    point = _Point.at(np.array([0.5, 1.5]), loss, np.array([2.0, 4.0]))
    np.testing.assert_allclose(point.evaluation.weights, [0.125, 0.1875])
    np.testing.assert_allclose(point.gradient, [-0.375 / 2, -0.3125 / 4])


def test_every_evaluation_is_an_inner_solve(monkeypatch):
    loss = square_loss(random_gram_matrices(4, 30), 2)
    evaluate, n_evaluations = type(loss).evaluate, []

    def counted(self, weights):
        n_evaluations.append(1)
        return evaluate(self, weights)

    monkeypatch.setattr(type(loss), "evaluate", counted)
    solution = ReducedGradient().solve(loss, Simplex(), tol=1e-4)
    assert solution.n_inner_solves == len(n_evaluations)
