"""Cutting planes: masters, their failures, what the papers' test means and what it does not."""

from __future__ import annotations

from types import SimpleNamespace

import clarabel
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKFDA
from manykernels.domains import TraceSimplex, lp_domain
from manykernels.solvers import SILP, SIP, Newton
from manykernels.solvers.newton import Cuts
from manykernels.solvers.papers.sip import _LinearMaster, _QuadraticMaster
from tests.problems import random_gram_matrices, square_loss


def random_cuts(n_kernels, n_cuts, seed=0):
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(0, 3, (n_cuts, n_kernels))
    return rng.uniform(2, 4, n_cuts), slopes


def add_cut(cuts, constant, slope):
    """The cut of a point with these gains at weights of zero."""
    zero = np.zeros(len(slope))
    cuts.add(SimpleNamespace(value=constant, slack=0.0, weights=zero, gains=slope, dual=zero))


def test_linear_master_is_the_linear_program_at_every_cut():
    constants, slopes = random_cuts(4, 12)
    prices = np.array([1.0, 2.0, 0.5, 1.5])
    master, cuts = _LinearMaster(TraceSimplex(prices), 2.0, 4), Cuts()
    for n_cuts in range(1, 13):
        add_cut(cuts, constants[n_cuts - 1], slopes[n_cuts - 1])
        weights, least, mixture, failure = master.solve(cuts, np.ones(4))
        oracle = linprog(
            [1, 0, 0, 0, 0],
            A_ub=np.vstack([np.column_stack([-np.ones(n_cuts), -slopes[:n_cuts]]), [0, *prices]]),
            b_ub=[*-constants[:n_cuts], 1.0],
            bounds=[(None, None)] + 4 * [(0, None)],
        )
        assert failure == ""
        assert least == pytest.approx(oracle.fun, rel=1e-9)
        assert np.max(constants[:n_cuts] - slopes[:n_cuts] @ weights) == pytest.approx(least)
        assert len(mixture) == n_cuts
        assert mixture.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("p", [1 + 2.0**-6, 1.5, 2.0, 4.0])
def test_quadratic_master_finds_the_best_point_of_the_ball(p):
    """Among random points of the sphere none has a smaller greatest cut."""
    constants, slopes = random_cuts(4, 6)
    domain = lp_domain(p)
    master, cuts = _QuadraticMaster(domain, 2.0, 4), Cuts()
    for constant, slope in zip(constants, slopes, strict=True):
        add_cut(cuts, constant, slope)
    weights, least, _, failure = master.solve(cuts, domain.start(4))
    assert failure == ""
    assert domain.gauge(weights) == pytest.approx(1.0)
    points = np.random.default_rng(1).dirichlet(np.ones(4), 20000) ** (1 / p)
    sampled = np.min(np.max(constants - points @ slopes.T, axis=1))
    assert least <= sampled + 1e-3 * abs(sampled)


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_a_master_that_fails_leaves_the_best_weights_and_says_why(p, monkeypatch):
    loss = square_loss(random_gram_matrices(5, 30), 2, reg=1e-2)
    solve = {1.0: _LinearMaster, 1.5: _QuadraticMaster}[p]
    original = solve.solve

    def third_fails(self, cuts, current):
        weights, least, mixture, failure = original(self, cuts, current)
        return weights, least, mixture, "Infeasible" if len(mixture) == 3 else failure

    monkeypatch.setattr(solve, "solve", third_fails)
    solution = SIP().solve(loss, lp_domain(p), tol=1e-7)
    assert solution.status == "the master problem with 3 cuts ended as Infeasible"
    assert solution.n_iter == 3
    assert not solution.certificate.converged
    values = [step.certificate.primal for step in solution.history]
    assert solution.certificate.primal == min(values)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    with pytest.warns(ConvergenceWarning, match=r"3 cuts ended as Infeasible.*use solver"):
        model = MKFDA(p=p, solver="sip", tol=1e-7).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.5)
    assert model.score(X, X[:, 0] + X[:, 1] ** 2 > 0.5) > 0.7


def test_status_of_the_conic_solver_is_passed_on(monkeypatch):
    class Refusing:
        def __init__(self, *args):
            pass

        def solve(self):
            class Result:
                status = clarabel.SolverStatus.PrimalInfeasible
                x = np.full(6, np.nan)
                z = np.full(50, np.nan)

            return Result

    monkeypatch.setattr(clarabel, "DefaultSolver", Refusing)
    loss = square_loss(random_gram_matrices(5, 30), 2)
    solution = SIP().solve(loss, lp_domain(1.5))
    assert "PrimalInfeasible" in solution.status
    assert np.isfinite(solution.weights).all()


def test_status_of_the_linear_solver_is_passed_on():
    master = _LinearMaster(lp_domain(1.0), 1.0, 2)
    _, _, _, failure = master.solve(Cuts(), np.ones(2))
    assert failure == "Unbounded"


@pytest.mark.parametrize("solver", [SIP, SILP])
def test_tolerances_below_those_of_linear_programs_are_refused(solver):
    loss = square_loss(random_gram_matrices(3, 20), 2)
    with pytest.raises(ValueError, match=r"gaps of 1e-07 at best, more than tol=1e-08.*'newton'"):
        solver().solve(loss, lp_domain(1.0), tol=1e-8)
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match="more than tol=1e-09"):
        MKFDA(solver="sip", tol=1e-9).fit(X, X[:, 0] > 0)


def test_linear_programs_are_warm_started(monkeypatch):
    """Rows are added to one model; after the first cut, few simplex iterations are needed."""
    loss = square_loss(random_gram_matrices(8, 40), 3, reg=1e-2)
    iterations = []
    original = _LinearMaster.solve

    def counting(self, cuts, current):
        result = original(self, cuts, current)
        iterations.append(self.program.n_steps)
        return result

    monkeypatch.setattr(_LinearMaster, "solve", counting)
    SIP(eps=1e-4).solve(loss, lp_domain(1.0), tol=1e-6)
    assert len(iterations) > 20
    assert np.median(iterations) <= 8


def test_the_mixture_of_cuts_proves_more_than_the_weights():
    loss = square_loss(random_gram_matrices(6, 40), 2, reg=1e-3)
    domain = lp_domain(1.0)
    solution = SIP(eps=1e-4).solve(loss, domain, tol=1e-6)
    best = Newton().solve(loss, domain, tol=1e-8).certificate.primal
    alone = (
        domain.support(solution.evaluation.gains) - solution.weights @ solution.evaluation.gains
    )
    assert solution.certificate.gap < 0.2 * alone
    assert solution.certificate.dual <= best * (1 + 1e-9)
    assert solution.certificate.rel_gap < 2e-4


def test_an_end_without_progress():
    """Cuts that prove nothing new went on to the limit of iterations, for minutes."""
    loss = square_loss(random_gram_matrices(4, 20), 2, reg=1e-2)
    # No rise of the greatest cut is small enough for this eps, and no gap for this tol.
    solution = SIP(eps=-1.0).solve(NoBounds(loss), lp_domain(1.01), tol=1e-7)
    assert "have not reduced the gap" in solution.status
    assert solution.n_iter < 250


class NoBounds:
    """A loss whose inner solutions are said to be so inexact that they prove nothing."""

    def __init__(self, loss):
        self.loss, self.spec, self.n_kernels = loss, loss.spec, loss.n_kernels

    def within(self, gauge):
        return self

    def in_sweeps(self):
        return self

    def note(self, evaluation):
        return ""

    def evaluate(self, weights):
        point = self.loss.evaluate(weights)
        return SimpleNamespace(
            weights=point.weights,
            value=point.value,
            gains=point.gains,
            slack=0.5 * point.value,
            rounding=0.0,
            gain_errors=np.zeros(len(weights)),
            dual=point.dual,
            reassessed=lambda: self.evaluate(weights),
        )

    def lower_bound(self, dual, support):
        return -np.inf


def test_a_row_that_highs_refuses_ends_the_run():
    loss = square_loss(random_gram_matrices(3, 20), 2, reg=1e-2)
    master, cuts = _LinearMaster(lp_domain(1.0), 1.0, 3), Cuts()
    add_cut(cuts, 1.0, np.array([np.nan, 1.0, 1.0]))
    failure = master.solve(cuts, np.ones(3))[3]
    assert "HiGHS refuses" in failure
    assert SIP().solve(loss, lp_domain(1.0)).certificate.converged
