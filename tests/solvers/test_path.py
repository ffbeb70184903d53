"""The path over norms and regularisations: every point solved, and as if it were alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from manykernels.domains import lp_domain
from manykernels.losses.square import SquareLoss
from manykernels.solvers import Newton
from manykernels.solvers.path import PAPER_NORMS, walk_grid
from tests.problems import random_gram_matrices, slow, square_loss

REGS = np.logspace(-3, 2, 7)


def at_reg(loss):
    """The same loss at any λ."""
    return partial(SquareLoss, loss.kernels, loss.targets, sample_weight=loss.sample_weight)


def collect(loss, ps, regs, **options):
    found = {}

    def visit(point):
        found[point.norm_index, point.reg_index] = point

    walk_grid(at_reg(loss), ps, regs, visit, **options)
    return found


@pytest.mark.parametrize("n_classes", [2, *slow(4)])
@pytest.mark.parametrize("weighted", [False, *slow(True)])
def test_every_point_is_the_solution_found_alone(n_classes, weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2, 40) if weighted else None
    loss = square_loss(random_gram_matrices(5, 40), n_classes, sample_weight=weight)
    found = collect(loss, PAPER_NORMS, REGS, tol=1e-7)
    assert len(found) == len(PAPER_NORMS) * len(REGS)
    for (i, j), point in found.items():
        assert point.certificate.converged
        alone = SquareLoss(loss.kernels, loss.targets, REGS[j], weight)
        best = Newton().solve(alone, lp_domain(PAPER_NORMS[i]), tol=1e-8)
        rounding = 1e-9 * best.certificate.primal
        difference = point.certificate.primal - best.certificate.primal
        assert abs(difference) <= point.certificate.gap + best.certificate.gap + rounding
        assert point.evaluation.weights.min() >= 0


def test_solutions_of_nearly_the_same_problem_save_factorisations():
    matrices = random_gram_matrices(6, 60)
    loss = square_loss(matrices, 3)
    found = collect(loss, PAPER_NORMS, REGS)
    known = {at: point.evaluation.weights for at, point in found.items()}
    again = collect(loss, PAPER_NORMS, REGS, starts=known)
    assert {point.n_inner_solves for point in again.values()} == {1}
    similar = square_loss(matrices + 0.003 * np.eye(60), 3)
    plain, warm = (
        collect(similar, PAPER_NORMS, REGS),
        collect(similar, PAPER_NORMS, REGS, starts=known),
    )
    solves = [sum(point.n_inner_solves for point in run.values()) for run in (plain, warm)]
    assert solves[1] < 0.9 * solves[0]
    for at, point in warm.items():
        assert point.certificate.converged
        difference = point.certificate.primal - plain[at].certificate.primal
        assert abs(difference) <= point.certificate.gap + plain[at].certificate.gap


def test_known_solutions_at_some_points_only():
    loss = square_loss(random_gram_matrices(4, 30), 2)
    found = collect(loss, [1.0, 1.5, 2.0, np.inf], [0.1, 1.0])
    known = {at: found[at].evaluation.weights for at in [(1, 0), (0, 1), (3, 1)]}
    again = collect(loss, [1.0, 1.5, 2.0, np.inf], [0.1, 1.0], starts=known)
    assert all(point.certificate.converged for point in again.values())


def test_neighbours_save_factorisations():
    loss = square_loss(random_gram_matrices(6, 60), 3)
    found = collect(loss, PAPER_NORMS, REGS)
    together = sum(point.n_inner_solves for point in found.values())
    alone = sum(
        Newton()
        .solve(SquareLoss(loss.kernels, loss.targets, reg), lp_domain(p), tol=1e-5)
        .n_inner_solves
        for p in PAPER_NORMS
        for reg in REGS
    )
    assert together < 0.85 * alone
    assert together <= 2.2 * len(found)


def test_the_order_of_the_grid_does_not_matter():
    loss = square_loss(random_gram_matrices(4, 30), 3)
    ps, regs = np.array([2.0, np.inf, 1.0, 1.5]), np.array([1.0, 0.01, 10.0])
    found = collect(loss, ps, regs)
    ordered = collect(loss, np.sort(ps), np.sort(regs))
    for (i, j), point in found.items():
        same = ordered[int(np.argsort(np.argsort(ps))[i]), int(np.argsort(np.argsort(regs))[j])]
        np.testing.assert_array_equal(point.evaluation.weights, same.evaluation.weights)


def test_a_visitor_can_stop_the_walk():
    loss = square_loss(random_gram_matrices(4, 30), 3)
    seen = []

    def third(point):
        seen.append(point)
        return len(seen) == 3

    walk_grid(at_reg(loss), [1.0, 2.0], [0.1, 1.0], third)
    assert len(seen) == 3


def test_degenerate_kernels_and_rejected_steps():
    """Zero, doubled and tiny kernels, λ near rounding: some steps are left to Newton."""
    base = random_gram_matrices(4, 30)
    matrices = np.concatenate([base, base[:1], np.zeros((1, 30, 30)), 1e-9 * base[1:2]])
    for normalize in ("multiplicative", None):
        loss = square_loss(matrices, 3, normalize=normalize)
        found = collect(loss, PAPER_NORMS, [1e-8, 1e-4, 1.0])
        assert all(point.certificate.converged for point in found.values())


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_evaluations_together_are_those_alone(normalize, weighted, n_classes):
    weight = np.random.default_rng(0).uniform(0.5, 2, 40) if weighted else None
    matrices = random_gram_matrices(5, 40)
    base = square_loss(matrices, n_classes, sample_weight=weight, normalize=normalize)
    regs = [0.01, 0.1, 1.0]
    losses = [SquareLoss(base.kernels, base.targets, reg, weight) for reg in regs]
    weights = [np.random.default_rng(seed).random(5) for seed in range(3)]
    together = SquareLoss.evaluate_together(losses, weights)
    for reg, row, point in zip(regs, weights, together, strict=True):
        alone = SquareLoss(base.kernels, base.targets, reg, weight).evaluate(row)
        assert point.value == pytest.approx(alone.value, rel=1e-10)
        np.testing.assert_allclose(point.gains, alone.gains, rtol=1e-8)
        np.testing.assert_allclose(point.hessian(), alone.hessian(), rtol=1e-6)
        np.testing.assert_allclose(point.leave_one_out(), alone.leave_one_out(), rtol=1e-7)
