"""Samples left out in closed form, against fits that never saw them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from manykernels.discriminant import fisher_targets
from manykernels.domains import lp_domain
from manykernels.kernels import KernelStack
from manykernels.kernels.transforms import preparation
from manykernels.losses.left_out import remove, residuals_left_out
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.solvers import Newton
from manykernels.solvers.path import weight_response
from tests.problems import labels_for, random_gram_matrices, slow


def residual_map(Q, M):
    """``Q ⊗ I − M Mᵀ`` written out, sample by sample and output by output."""
    m, k, n = M.shape
    flat = M.reshape(m * k, n)
    return np.kron(Q, np.eye(k)) - flat @ flat.T


@pytest.mark.parametrize(("n_outputs", "n_weights"), [(1, 3), (2, 5), (4, 2)])
def test_both_formulas_are_the_solutions_of_the_written_out_system(n_outputs, n_weights):
    rng = np.random.default_rng(0)
    G = rng.standard_normal((9, 9))
    Q = np.linalg.inv(np.eye(9) + 0.1 * G @ G.T)
    M = 0.05 * rng.standard_normal((9, n_outputs, n_weights))
    U = rng.standard_normal((9, n_outputs))
    whole = residual_map(Q, M)

    def expected(removed):
        places = (removed[:, None] * n_outputs + np.arange(n_outputs)).ravel()
        return np.linalg.solve(whole[np.ix_(places, places)], U[removed].ravel())

    for sets in (np.arange(9)[:, None], np.arange(9).reshape(3, 3)):
        blocks = Q[sets[:, :, None], sets[:, None, :]]
        for removed, residuals in zip(
            sets, residuals_left_out(blocks, U[sets], M[sets], 1e-15), strict=True
        ):
            np.testing.assert_allclose(residuals.ravel(), expected(removed), rtol=1e-9)
    removed = np.array([1, 4, 5])
    residuals, solution, across = remove(Q, U, M, removed, 1e-15)
    np.testing.assert_allclose(residuals.ravel(), expected(removed), rtol=1e-9)
    # What stays, with the weights held, is the same with the others left out from the start.
    rows, A = np.delete(np.arange(9), removed), np.linalg.inv(Q)
    left = np.zeros((9, 9))
    left[np.ix_(rows, rows)] = np.linalg.inv(A[np.ix_(rows, rows)])
    np.testing.assert_allclose(Q - across.T @ across, left, atol=1e-12)
    np.testing.assert_allclose(solution, left @ A @ U, rtol=1e-8, atol=1e-9)


def problem(seed, n_classes, p, reg, *, m=60, n=12, weighted=False):
    """Noisy kernels and labels they know a little of, and the best weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % n_classes
    points = rng.standard_normal((n, m, 3))
    points[:3, :, 0] += y
    distances = ((points[:, :, None] - points[:, None]) ** 2).sum(axis=-1)
    kernels = np.exp(-distances / distances.mean(axis=(1, 2), keepdims=True))
    weight = rng.uniform(0.5, 2.0, m) if weighted else None
    stack = KernelStack(kernels, [f"k{j}" for j in range(n)], gram=True)
    return stack, y, weight, learnt(stack, y, weight, p, reg)


def learnt(stack, y, weight, p, reg):
    prepared = preparation(None).fit_transform(stack, sample_weight=weight)
    targets = fisher_targets(y, np.bincount(y, weights=weight).astype(float))
    loss = SquareLoss(prepared, targets, reg, weight)
    return loss, Newton().solve(loss, lp_domain(p), tol=1e-9)


def output_without(stack, targets, weight, p, reg, i):
    """Prediction at i of regression, weights included, on all other samples."""
    rows = np.delete(np.arange(len(targets)), i)
    w = None if weight is None else weight[rows]
    center = preparation(None)
    prepared = center.fit_transform(stack[np.ix_(rows, rows)], sample_weight=w)
    mean = np.average(targets[rows], axis=0, weights=w)
    loss = SquareLoss(prepared, targets[rows] - mean, reg, w)
    point = Newton().solve(loss, lp_domain(p), tol=1e-9).evaluation
    block = center.transform(stack[np.ix_([i], rows)])
    return block.apply_combined(point.weights, point.coefficients)[0] + mean


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.25, 2.0])
@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (3, True)])
def test_first_order_is_close_to_refits_and_held_weights_are_not(p, n_classes, weighted):
    stack, y, weight, (loss, solution) = problem(0, n_classes, p, 1.0, weighted=weighted)
    refitted = np.array(
        [output_without(stack, loss.targets, weight, p, 1.0, i) for i in range(len(y))]
    )
    response = weight_response(loss.evaluate(solution.weights), lp_domain(p))
    first_order = loss.evaluate(solution.weights).leave_one_out(response=response)
    held = loss.evaluate(solution.weights).leave_one_out()
    error = np.linalg.norm(first_order - refitted) / np.linalg.norm(refitted)
    assert error < 0.12
    assert error < 0.5 * np.linalg.norm(held - refitted) / np.linalg.norm(refitted)
    assert pearsonr(first_order.ravel(), refitted.ravel()).statistic > 0.985


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_classes", "reg"), [(2, 0.3), (4, 0.3), (4, 1e-6), (4, 1e-10)])
def test_folds_are_refits_where_weights_cannot_answer(n_classes, weighted, reg):
    """At p = ∞ all weights are one, and the closed form is exact."""
    stack, _, weight, (loss, solution) = problem(
        1, n_classes, np.inf, reg, m=40, n=4, weighted=weighted
    )
    assert weight_response(loss.evaluate(solution.weights), lp_domain(np.inf)) is None
    folds = [np.arange(40)[k::4] for k in range(3)]
    parts = loss.evaluate(solution.weights).leave_out(folds, None, None).folds
    plain = loss.evaluate(solution.weights).leave_folds_out(folds, None)
    for part, with_mean in zip(parts, plain, strict=True):
        w = None if weight is None else weight[part.others]
        center = preparation(None)
        inside = center.fit_transform(stack[np.ix_(part.others, part.others)], sample_weight=w)
        mean = np.average(loss.targets[part.others], axis=0, weights=w)
        point = SquareLoss(inside, loss.targets[part.others] - mean, reg, w).evaluate(np.ones(4))
        block = center.transform(stack[np.ix_(part.fold, part.others)])
        outputs = block.apply_combined(np.ones(4), point.coefficients)
        np.testing.assert_allclose(part.outputs, outputs, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(with_mean, outputs + mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(
            part.outputs_of_others, point.leave_one_out(from_mean=True), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_left_out_as_the_regularisation_vanishes(weighted):
    """The interpolant does not change any more, however small λ is."""
    _, _, weight, (loss, solution) = problem(0, 3, np.inf, 1e-5, weighted=weighted)
    expected = loss.evaluate(solution.weights).leave_one_out()
    for reg in (1e-7, 1e-9, 1e-11):
        smaller = SquareLoss(loss.kernels, loss.targets, reg, weight)
        found = smaller.evaluate(solution.weights).leave_one_out()
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_weights_answer_as_finite_differences_say():
    """``dβ = 2P Bᵀ dH``, seen through the change of the outputs, ``−M Mᵀ dH`` with the rest."""
    _, _, _, (loss, solution) = problem(2, 2, 2.0, 1.0, m=30, n=5)
    point = loss.evaluate(solution.weights)
    M = weight_response(point, lp_domain(2.0))
    inverse = loss.evaluate(solution.weights).inverse().copy()
    rng = np.random.default_rng(0)
    direction = rng.standard_normal((30, 1))
    direction -= direction.mean()
    step = 1e-4 * np.abs(loss.targets).max()

    def residuals(sign):
        moved = SquareLoss(loss.kernels, loss.targets + sign * step * direction, 1.0)
        return Newton().solve(moved, lp_domain(2.0), tol=1e-13).evaluation.residuals

    change = (residuals(1.0) - residuals(-1.0)) / (2.0 * step)
    flat = M.reshape(30, -1)
    expected = inverse @ direction - flat @ (flat.T @ direction)
    np.testing.assert_allclose(change, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_a_weight_is_so_many_equal_samples_in_every_fold():
    """A row is left out whole, whatever its weight, and equal rows are left out together."""
    matrices = random_gram_matrices(3, 20)
    y = labels_for(20, 3)
    counts = np.where(np.arange(20) % 4 == 0, 3.0, 1.0)
    repeated = np.repeat(np.arange(20), counts.astype(int))
    written_out = KernelStack.from_arrays([K[np.ix_(repeated, repeated)] for K in matrices])
    folds = [np.arange(20)[k::5] for k in range(5)]
    found = []
    repeated_folds = [np.flatnonzero(np.isin(repeated, fold)) for fold in folds]
    for stack, labels, weight, groups, sets in [
        (KernelStack.from_arrays(matrices), y, counts, None, folds),
        (written_out, y[repeated], None, repeated, repeated_folds),
    ]:
        loss, solution = learnt(stack, labels, weight, 1.5, 0.5)
        response = weight_response(loss.evaluate(solution.weights), lp_domain(1.5))
        found.append(loss.evaluate(solution.weights).leave_out(sets, groups, response))
    weighted, plain = found
    np.testing.assert_allclose(weighted.singly[repeated], plain.singly, rtol=1e-5, atol=1e-7)
    for part, other in zip(weighted.folds, plain.folds, strict=True):
        where = {row: place for place, row in enumerate(part.fold)}
        places = [where[row] for row in repeated[other.fold]]
        np.testing.assert_allclose(part.outputs[places], other.outputs, rtol=1e-5, atol=1e-7)
        where = {row: place for place, row in enumerate(part.others)}
        places = [where[row] for row in repeated[other.others]]
        np.testing.assert_allclose(
            part.outputs_of_others[places], other.outputs_of_others, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("weighted", [False, *slow(True)])
@pytest.mark.parametrize(("n_classes", "reg"), [(2, 0.3), (4, 1e-6)])
def test_groups_are_refits_without_all_of_their_samples(n_classes, reg, weighted):
    """At p = ∞ all weights are one, and the closed form is exact."""
    stack, _, weight, (loss, solution) = problem(
        1, n_classes, np.inf, reg, m=40, n=4, weighted=weighted
    )
    groups = np.random.default_rng(0).integers(0, 15, 40)
    singly = loss.evaluate(solution.weights).leave_one_out(groups, from_mean=True)
    folds = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    left_out = loss.evaluate(solution.weights).leave_out(folds, groups, None)
    np.testing.assert_allclose(left_out.singly, singly, rtol=1e-6, atol=1e-9)
    for part in left_out.folds:
        np.testing.assert_allclose(part.outputs, singly[part.fold], rtol=1e-6, atol=1e-9)
        w = None if weight is None else weight[part.others]
        center = preparation(None)
        inside = center.fit_transform(stack[np.ix_(part.others, part.others)], sample_weight=w)
        mean = np.average(loss.targets[part.others], axis=0, weights=w)
        point = SquareLoss(inside, loss.targets[part.others] - mean, reg, w).evaluate(np.ones(4))
        block = center.transform(stack[np.ix_(part.fold, part.others)])
        outputs = block.apply_combined(np.ones(4), point.coefficients)
        np.testing.assert_allclose(part.outputs, outputs, rtol=1e-6, atol=1e-9)
        of_others = point.leave_one_out(groups[part.others], from_mean=True)
        np.testing.assert_allclose(part.outputs_of_others, of_others, rtol=1e-5, atol=1e-9)


def test_weights_respond_with_a_learnt_regularisation():
    stack, y, _, _ = problem(3, 2, 1.0, 1.0, m=40, n=6)
    prepared = preparation(None).fit_transform(stack)
    targets = fisher_targets(y, np.bincount(y).astype(float))
    loss = JointSquareLoss(prepared, targets)
    solution = Newton().solve(loss, lp_domain(2.0), tol=1e-9)
    response = weight_response(loss.evaluate(solution.weights), lp_domain(2.0))
    assert response.shape[2] == np.count_nonzero(solution.weights) - 1
    found = loss.evaluate(solution.weights).leave_one_out(response=response)

    def refit(i):
        rows = np.delete(np.arange(40), i)
        center = preparation(None)
        inside = center.fit_transform(stack[np.ix_(rows, rows)])
        mean = targets[rows].mean(axis=0)
        part = JointSquareLoss(inside, targets[rows] - mean)
        point = Newton().solve(part, lp_domain(2.0), tol=1e-9).evaluation
        block = center.transform(stack[np.ix_([i], rows)])
        weights = part.kernel_weights(point.weights)
        return block.apply_combined(weights, point.coefficients)[0] + mean

    refitted = np.array([refit(i) for i in range(40)])
    assert pearsonr(found.ravel(), refitted.ravel()).statistic > 0.98


@pytest.mark.parametrize("weighted", [False, True])
def test_few_grouped_rows_are_left_out_as_by_the_whole_inverse(weighted):
    _, _, _, (loss, solution) = problem(3, 3, 2.0, 0.1, weighted=weighted, m=40)
    groups = np.arange(40)
    groups[[7, 30]], groups[12], groups[25] = 3, 5, 11
    point = loss.evaluate(solution.weights)
    singly = point.leave_one_out(groups, from_mean=True)
    whole = loss.evaluate(solution.weights).leave_out([np.arange(3)], groups, None).singly
    np.testing.assert_allclose(singly, whole, rtol=1e-9, atol=1e-11)
    apart = loss.evaluate(solution.weights).leave_one_out(from_mean=True)
    assert np.abs(apart - singly)[[3, 7, 30, 5, 12, 11, 25]].min() > 1e-6
