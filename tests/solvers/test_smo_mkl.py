"""SMO-MKL: the quartic dual, its pair steps, μ, and memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from manykernels import KernelStack
from manykernels.domains import Box, LpBall, lp_domain
from manykernels.kernels.transforms import preparation
from manykernels.losses.base import ProblemSpec
from manykernels.losses.svm import HingeLoss
from manykernels.smo.loops import _best_step, _slope, norm_and_weights
from manykernels.solvers import SMOMKL, Newton
from manykernels.solvers.base import Problem, refuse_unfit
from manykernels.solvers.papers.smo_mkl import _Ascent
from tests.differences import derivative
from tests.machines import LOSSES, check_feasible, gram_matrices, machine, signs_for
from tests.problems import slow

GIVEN = sorted(set(LOSSES) - {"joint squared hinge"})


def norm(s, q):
    return s.max() * np.linalg.norm(s / s.max(), q)


def quartic(problems, matrices, v, q, mu):
    """The dual of Vishwanathan et al. (2010), and what μ costs."""
    strengths = np.array([sum(x @ K @ x for x in v) for K in matrices])
    value = 0.0
    for problem, x in zip(problems, v, strict=True):
        value += problem.linear @ x - problem.width * np.abs(x).sum()
        value -= 0.5 * problem.ridge @ x**2
    return value - np.linalg.norm(strengths, q) ** 2 / (8 * mu) - mu / 2


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 9.0, 65.0])
def test_weights_are_where_the_dual_norm_is_attained(q):
    s = np.array([3.0, 0.0, 2.9, 1e-3])
    weights = np.empty(4)
    assert norm_and_weights(s, q, weights) == pytest.approx(np.linalg.norm(s, q))
    domain = Box() if q == 1.0 else LpBall(q / (q - 1.0))
    np.testing.assert_allclose(weights, domain.maximizer(s), rtol=1e-10)
    for scale in (1e-200, 1e200):
        again = np.empty(4)
        assert norm_and_weights(scale * s, q, again) == pytest.approx(scale * np.linalg.norm(s, q))
        np.testing.assert_allclose(again, weights, rtol=1e-10)
    assert norm_and_weights(np.zeros(4), q, weights) == 0.0


@pytest.mark.parametrize("q", [1.0, *slow(1.5, 3.0, 65.0)])
@pytest.mark.parametrize("room", [1e-3, 0.3, np.inf])
def test_a_step_goes_to_the_maximum_along_the_pair(q, room):
    rng = np.random.default_rng(0)
    weights, moved = np.empty(3), np.empty(3)
    for _ in range(50):
        x, d = rng.standard_normal((2, 3, 4))
        strengths, cross, bend = (x * x).sum(1), (x * d).sum(1), (d * d).sum(1)
        mu, ridge = rng.uniform(0.1, 2.0), rng.uniform(0.0, 1.0)
        size = norm_and_weights(strengths, q, weights)
        pull = size / (2 * mu) * weights @ cross
        excess = rng.uniform(0.01, 3.0)
        rest = (strengths, cross, bend, pull, q, mu, moved, weights)

        def loss(t, s=strengths, c=cross, b=bend, mu=mu, r=ridge, e=excess + pull):
            return norm(s + t * (2 * c + t * b), q) ** 2 / (8 * mu) - t * e + r * t**2 / 2

        slope, curvature = _slope(0.2, excess, ridge, *rest)
        found, error = derivative(loss, 0.2, 1.0)
        assert abs(found + slope) <= error
        found, error = derivative(lambda t, r=(excess, ridge, *rest): _slope(t, *r)[0], 0.2, 1.0)
        assert abs(found + curvature) <= error
        step = _best_step(room, excess, ridge, *rest)
        longest = min(room, 100.0)
        best = minimize_scalar(
            loss, bounds=(0.0, longest), method="bounded", options={"xatol": 1e-9}
        )
        assert 0.0 < step <= room
        assert loss(0.0) - loss(step) >= 0.99 * (loss(0.0) - best.fun)


@pytest.mark.parametrize("p", [1.2, *slow(2.0, np.inf)])
@pytest.mark.parametrize("kind", GIVEN)
def test_sweeps_raise_the_dual_of_the_paper_and_so_does_mu(kind, p):
    matrices = gram_matrices(40)
    loss, domain = machine(kind, matrices), lp_domain(p)
    q = domain.q if p < np.inf else 1.0
    v = np.column_stack([problem.feasible(0.1 * problem.linear) for problem in loss.problems])
    ascent = _Ascent(loss, domain, v)
    last = -np.inf
    for _ in range(20):
        mu = 0.5 * np.linalg.norm(ascent.strengths, q)
        before = quartic(loss.problems, matrices, ascent.v, q, mu)
        assert before >= last - 1e-12 * abs(last)
        ascent.sweep()
        last = quartic(loss.problems, matrices, ascent.v, q, mu)
        assert last >= before - 1e-12 * abs(before)
        np.testing.assert_allclose(
            ascent.products, [[K @ x for K in matrices] for x in ascent.v], atol=1e-9
        )
    # At the best μ it is the dual of the ball.
    best = Newton().solve(machine(kind, matrices), domain, tol=1e-8).certificate
    assert last <= best.primal + 1e-9 * abs(best.primal)


@pytest.mark.parametrize("kind", GIVEN)
def test_the_plain_sum_is_learnt_from_scratch(kind):
    """p = ∞, with a first machine solved to a gap of one half only."""
    loss = machine(kind, gram_matrices(40), inner_tol=0.5)
    solution = SMOMKL().solve(loss, lp_domain(np.inf), tol=1e-6)
    best = machine(kind, gram_matrices(40)).evaluate(np.ones(4))
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(best.value, rel=1e-6)
    np.testing.assert_array_equal(solution.weights, np.ones(4))
    check_feasible(loss, solution.evaluation)


def test_transforms_of_a_stack_are_seen():
    stack = preparation("trace").fit_transform(KernelStack.from_arrays(gram_matrices(50)))
    loss = HingeLoss(stack, signs_for(50), 100.0)
    best = Newton().solve(loss, lp_domain(1.5), tol=1e-8)
    found = SMOMKL().solve(HingeLoss(stack, signs_for(50), 100.0), lp_domain(1.5), tol=1e-5)
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-5)
    assert found.n_inner_solves == 1
    assert found.evaluation.solutions[0].n_steps <= 50 * found.n_iter


def test_zero_kernels_end_the_run():
    loss = HingeLoss(KernelStack.from_arrays(np.zeros((2, 20, 20))), signs_for(20), 1.0)
    solution = SMOMKL().solve(loss, lp_domain(2))
    assert solution.certificate.converged
    assert solution.certificate.gap == 0.0


def test_it_says_what_it_cannot_take():
    for p, kind, message in (
        (1.0, "hinge", "works for p > 1 only"),
        (2.0, "joint squared hinge", "needs a number"),
    ):
        with pytest.raises(ValueError, match=f"'smo-mkl' {message}.*solver='newton'"):
            SMOMKL().solve(machine(kind, gram_matrices(20)), lp_domain(p))
    problem = Problem(ProblemSpec(HingeLoss, 10**5, 30, 1), lp_domain(2), 1e-6)
    with pytest.raises(ValueError, match=r"GiB and \d+ minutes for 100000 samples, 30 kernels"):
        refuse_unfit(SMOMKL(), problem)
    refuse_unfit(SMOMKL(force=True), problem)
