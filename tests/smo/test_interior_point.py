"""Low rank and bounds far away, where pair steps crawl: bounded work, the right answer."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.losses.svm import (
    EpsilonInsensitiveLoss,
    epsilon_insensitive_problem,
    hinge_problem,
    one_class_problem,
)
from manykernels.smo.box import Ascent, interior_path
from manykernels.smo.program import BoxProblem, rounding
from manykernels.solvers import Newton
from tests.problems import random_gram_matrices, slow

KINDS = ["hinge", "squared hinge", "epsilon", "no epsilon", "one class"]


def program(kind, m, C, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(m)
    signs = np.where(y > 0, 1.0, -1.0)
    if kind == "hinge":
        return hinge_problem(signs, C)
    if kind == "squared hinge":
        ends = np.minimum(0.0, np.inf * signs), np.maximum(0.0, np.inf * signs)
        with np.errstate(invalid="ignore"):
            lower, upper = (np.where(np.isnan(end), 0.0, end) for end in ends)
        return BoxProblem(signs, lower, upper, np.full(m, 1.0 / C))
    if kind == "one class":
        return one_class_problem(np.ones(m), 0.3)
    return epsilon_insensitive_problem(y, C, 0.1 if kind == "epsilon" else 0.0)


def low_rank(m, rank, seed=0):
    factor = np.random.default_rng(seed).standard_normal((m, rank))
    return factor @ factor.T


def optimum(K, p):
    """By cvxpy; rows of a factor, so that a singular K is no problem."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    v = cp.Variable(len(K))
    objective = p.linear @ v - p.width * cp.norm1(v) - 0.5 * cp.sum_squares(root.T @ v)
    objective -= 0.5 * cp.sum_squares(cp.multiply(np.sqrt(p.ridge), v))
    finite_low, finite_high = np.isfinite(p.lower), np.isfinite(p.upper)
    bounds = [v[finite_low] >= p.lower[finite_low], v[finite_high] <= p.upper[finite_high]]
    problem = cp.Problem(cp.Maximize(objective), [*bounds, cp.sum(v) == p.total])
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("kind", [*KINDS[:2], *slow(*KINDS[2:])])
@pytest.mark.parametrize("rank", [1, *slow(3, 60)])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_the_path_ends_at_the_maximum(kind, rank, C):
    m = 40
    K, p = low_rank(m, rank), program(kind, m, C)
    path = list(interior_path(K, p))
    assert len(path) <= 60
    for v in path:
        assert (v >= p.lower).all()
        assert (v <= p.upper).all()
        assert v.sum() == pytest.approx(p.total, abs=1e-9 * max(1.0, np.abs(v).sum()))
    ascent = Ascent(K, p)
    ascent.jump(1e-9)
    # Where D is zero, so is the scale of the gap.
    size = max(abs(p.value(ascent.v, ascent.f)), 1.0)
    assert ascent.gap <= 1e-8 * size
    assert p.value(ascent.v, ascent.f) == pytest.approx(optimum(K, p), abs=1e-5 * size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [1, *slow(2, 5)])
@pytest.mark.parametrize("m", [30, 100])
def test_steps_are_bounded_at_a_huge_penalty(kind, rank, m):
    for seed in range(4):
        K, p = low_rank(m, rank, seed), program(kind, m, 1e6, seed)
        ascent = Ascent(K, p)
        ascent.run_to_gap(1e-7)
        answer = ascent.solution()
        # Where D is zero, so is the scale of the gap: what is left is rounding of products.
        nothing = rounding(answer.v, float(np.diag(K).max()))
        assert answer.gap <= max(1e-7 * abs(answer.dual), 2 * answer.rounding, nothing)
        assert ascent.n_steps <= 100 * m + m**2


def test_a_jump_never_loses_what_there_was(monkeypatch):
    K, p = low_rank(30, 2), program("epsilon", 30, 1e3)
    ascent = Ascent(K, p)
    ascent.run_to_gap(1e-9)
    v = ascent.v
    monkeypatch.setattr("manykernels.smo.box.interior_path", lambda K, p: [np.zeros(30)])
    ascent.jump(0.0)
    assert ascent.gap <= 1e-9 * abs(p.value(v, K @ v))


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.3])
def test_regression_on_duplicated_kernels_of_low_rank(p, noise, monkeypatch):
    """Twelve kernels, three of them different, C = 1e6: few solves, few steps each."""
    m = 80
    steps = []
    run_to_gap = Ascent.run_to_gap

    def counted(self, rel_gap):
        run_to_gap(self, rel_gap)
        steps.append(self.n_steps)

    monkeypatch.setattr(Ascent, "run_to_gap", counted)
    for rank in (2, 4, None):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            base = random_gram_matrices(3, m, seed, rank)
            targets = base.sum(axis=0) @ rng.standard_normal(m)
            targets = targets / targets.std() + noise * rng.standard_normal(m)
            stack = KernelStack.from_arrays(np.concatenate([base] * 4), psd="ignore")
            for epsilon in (0.0, 0.01, 0.1):
                loss = EpsilonInsensitiveLoss(stack, targets, 1e6, epsilon, 1e-7)
                solution = Newton().solve(loss, lp_domain(p), tol=1e-4)
                certificate = solution.certificate
                # All targets can be met where there is neither noise nor ε: then the losses are
                # C times the rounding errors of residuals, more than tol of the objective.
                met = noise == epsilon == 0.0 and certificate.status == "limited by rounding"
                assert certificate.converged or met, (rank, seed, epsilon)
                assert solution.n_inner_solves <= 40
    assert max(steps) <= 100 * m + m**2
