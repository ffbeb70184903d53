"""Kim's loss: values and derivatives against the formulas of the paper with explicit matrices."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.kernels.transforms import preparation
from manykernels.losses.kim import KimLoss
from manykernels.losses.square import SquareLoss
from manykernels.solvers import SOLVERS, Newton
from manykernels.solvers.base import Problem, certify, complaint
from tests.losses.laws import (
    assert_a_point_keeps_its_derivatives,
    assert_convex_along_a_segment,
    assert_derivatives_of,
    some_weights,
)
from tests.problems import random_gram_matrices, slow, square_loss

CASES = [(1, False), (3, False), (4, True)]
few = settings(max_examples=20, deadline=None)


def labels_of(n_rows, seed=0):
    """Two classes of different size."""
    return np.random.default_rng(seed).permutation((np.arange(n_rows) % 5 < 2).astype(int))


def kim_loss(matrices, reg=0.3, seed=0, sample_weight=None):
    labels = labels_of(matrices.shape[1], seed)
    return KimLoss(KernelStack.from_arrays(matrices), labels, reg, sample_weight)


def gaussian_kernels(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 5))
    distances = np.sum((X[:, None] - X) ** 2, axis=2)
    return np.array([np.exp(-distances / (2 * s**2)) for s in np.logspace(-1, 2, 6)])


@pytest.fixture(params=CASES, ids=lambda c: f"{c[0]} kernels, weights {c[1]}")
def loss(request):
    n_kernels, weighted = request.param
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 24) if weighted else None
    return kim_loss(random_gram_matrices(n_kernels, 24), sample_weight=weights)


def dense(loss):
    """Kernels, a and J of Ye 2008 (3), J with JJᵀ the within-class weighting of samples."""
    kernels = np.moveaxis(np.asarray(loss.kernels), -1, 0)
    positive = loss.signs > 0
    weight = np.ones(len(positive)) if loss.sample_weight is None else loss.sample_weight
    a, J = np.zeros(len(positive)), np.zeros((len(positive), len(positive)))
    for members, sign in ((positive, 1.0), (~positive, -1.0)):
        w = weight[members]
        roots = np.sqrt(w / w.sum())
        a[members] = sign * w / w.sum()
        centring = np.eye(len(w)) - np.outer(roots, roots)
        J[np.ix_(members, members)] = np.diag(roots) @ centring
    return kernels, a, J


def brute_force_value(loss, weights):
    """Minus Ye 2008 (4), J not symmetric where samples have weights."""
    kernels, a, J = dense(loss)
    G = np.tensordot(weights, kernels, 1)
    inner = np.linalg.solve(loss.reg * np.eye(len(a)) + J.T @ G @ J, J.T @ G @ a)
    return -(a @ G @ a - a @ G @ J @ inner) / loss.reg


def test_explicit_j_is_that_of_the_paper():
    loss = kim_loss(random_gram_matrices(1, 10))
    _, _, J = dense(loss)
    for sign in (1, -1):
        block = J[np.ix_(loss.signs == sign, loss.signs == sign)]
        size = len(block)
        np.testing.assert_allclose(block, (np.eye(size) - 1 / size) / np.sqrt(size), atol=1e-15)


def test_value_is_the_formula(loss):
    weights = some_weights(loss)
    point = loss.evaluate(weights)
    assert point.value == pytest.approx(brute_force_value(loss, weights), rel=1e-11)
    assert point.ratio == pytest.approx(-point.value, rel=1e-12)
    assert 0 <= point.slack <= 1e-20


def test_value_is_the_fisher_ratio_in_feature_space():
    """Largest (wᵀ(μ₊ − μ₋))² / wᵀ(S₊ + S₋ + λI)w of Kim 2006, by an explicit feature map."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    loss = kim_loss((X @ X.T)[None], reg=0.7)
    positive, negative = X[loss.signs > 0], X[loss.signs < 0]
    difference = positive.mean(axis=0) - negative.mean(axis=0)
    scatter = np.cov(positive.T, bias=True) + np.cov(negative.T, bias=True) + 0.7 * np.eye(4)
    point = loss.evaluate(np.ones(1))
    direction = np.linalg.solve(scatter, difference)
    assert -point.value == pytest.approx(difference @ direction, rel=1e-12)
    np.testing.assert_allclose(X.T @ point.coefficients[:, 0], direction, rtol=1e-10)


def test_value_is_the_inner_minimum_at_the_inner_solution(loss):
    weights = some_weights(loss)
    kernels, a, J = dense(loss)
    G = np.tensordot(weights, kernels, 1)
    point = loss.evaluate(weights)

    def inner(v):
        return (a - J @ v) @ G @ (a - J @ v) / loss.reg + v @ v

    v = np.linalg.solve(loss.reg * np.eye(len(a)) + J.T @ G @ J, J.T @ G @ a)
    np.testing.assert_allclose(point.dual[:, 0], a - J @ v, rtol=1e-9, atol=1e-12)
    assert inner(v) == pytest.approx(-point.value, rel=1e-11)
    other = v + 1e-3 * np.random.default_rng(0).standard_normal(len(v))
    assert inner(other) > -point.value


def test_gains_and_hessian_are_derivatives(loss):
    assert_derivatives_of(loss, brute_force_value)


def test_model_hessian_is_the_hessian(loss):
    point = loss.evaluate(some_weights(loss))
    np.testing.assert_array_equal(point.model_hessian(0.0), point.hessian())


def test_a_point_keeps_its_derivatives_after_the_loss_moved_on(loss):
    assert_a_point_keeps_its_derivatives(loss)


@few
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_convex_along_segments_with_gains_of_one_sign(seed, mix):
    loss = kim_loss(random_gram_matrices(3, 12, seed), seed=seed)
    assert_convex_along_a_segment(loss, seed, mix)


@few
@given(st.integers(0, 10**6), st.booleans())
def test_centring_changes_nothing(seed, weighted):
    rng = np.random.default_rng(seed)
    sample_weight = rng.uniform(0.3, 3.0, 16) if weighted else None
    plain = kim_loss(random_gram_matrices(3, 16, seed), 0.1, seed, sample_weight)
    centred = preparation(None).fit_transform(plain.kernels, sample_weight=sample_weight)
    moved = KimLoss(centred, labels_of(16, seed), 0.1, sample_weight)
    weights = some_weights(plain, seed)
    first, second = plain.evaluate(weights), moved.evaluate(weights)
    assert second.value == pytest.approx(first.value, rel=1e-9)
    np.testing.assert_allclose(second.gains, first.gains, rtol=1e-8)
    np.testing.assert_allclose(second.hessian(), first.hessian(), rtol=1e-7)
    np.testing.assert_allclose(second.leave_one_out(), first.leave_one_out(), rtol=1e-7)


@pytest.mark.parametrize("reg", [1e-3, 1.0])
def test_it_is_a_function_of_the_square_loss_of_balanced_classes(reg):
    """E = 2 − 2/L with targets of norm one, samples of class k weighted 1/m_k."""
    kim = kim_loss(random_gram_matrices(3, 20), reg)
    centred = preparation(None).fit_transform(kim.kernels, sample_weight=kim.shares)
    targets = kim.signs[:, None] / np.sqrt(2)
    square = SquareLoss(centred, targets, reg, kim.shares)
    weights = some_weights(kim)
    mine, theirs = kim.evaluate(weights), square.evaluate(weights)
    assert mine.value == pytest.approx(2 - 2 / theirs.value, rel=1e-10)
    slope = 2 / theirs.value**2
    np.testing.assert_allclose(mine.gains, slope * theirs.gains, rtol=1e-8)
    np.testing.assert_allclose(
        mine.model_hessian(0.0), slope * theirs.model_hessian(0.0), rtol=1e-6
    )


# -- solvers ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning:cvxpy")
@pytest.mark.parametrize("p", [1, 1.5])
def test_optimum_is_that_of_a_conic_solver(p):
    """The semidefinite form: aᵀGa − t with t ≥ aᵀGJ(λI + JGJ)⁻¹JGa by a Schur complement."""
    loss = kim_loss(random_gram_matrices(4, 14), reg=0.2)
    kernels, a, J = dense(loss)
    theta = cp.Variable(4, nonneg=True)
    within = sum(t * (J @ K @ J + (J @ K @ J).T) / 2 for t, K in zip(theta, kernels, strict=True))
    cross = sum(t * (J @ K @ a) for t, K in zip(theta, kernels, strict=True))
    between = sum(t * (a @ K @ a) for t, K in zip(theta, kernels, strict=True))
    quotient = cp.matrix_frac(cross, within + loss.reg * np.eye(14))
    problem = cp.Problem(cp.Maximize((between - quotient) / loss.reg), [cp.pnorm(theta, p) <= 1])
    problem.solve(solver=cp.CLARABEL)
    solution = Newton().solve(loss, lp_domain(p), tol=1e-9)
    assert -solution.certificate.primal == pytest.approx(problem.value, rel=1e-5)
    np.testing.assert_allclose(solution.weights, theta.value, atol=5e-3)


@pytest.mark.parametrize("reg", [1e-8, 1e-4, 1e-2, *slow(1.0, 100.0)])
@pytest.mark.parametrize("p", [1.0, 1.1, *slow(2.0, 8.0, np.inf)])
def test_every_p_and_reg_within_eight_factorisations(p, reg):
    problems = [gaussian_kernels(40)]
    if reg >= 1e-4:  # with kernels of low rank the ratio hardly depends on the weights below
        problems.append(random_gram_matrices(6, 40))
    for matrices in problems:
        solution = Newton().solve(kim_loss(matrices, reg), lp_domain(p), tol=1e-6, max_iter=50)
        assert solution.certificate.converged
        assert solution.n_inner_solves <= 8
        assert solution.certificate.rel_gap >= -1e-12


def test_the_gap_bounds_the_distance_to_the_optimum_all_along():
    loss = kim_loss(random_gram_matrices(5, 30), reg=0.01)
    for p in (1.0, 1 + 2**-6, 2.0):
        history = Newton().solve(loss, lp_domain(p), tol=1e-10).history
        best = history[-1].certificate.primal
        for step in history:
            assert step.certificate.primal - best <= step.certificate.gap + 1e-9 * abs(best)


def test_weights_agree_with_the_square_loss_of_balanced_classes():
    matrices = random_gram_matrices(4, 20)
    square = square_loss(matrices, 2, reg=0.05 * 20 / 2, normalize=None)  # equal classes
    labels = (square.targets[:, 0] > 0).astype(int)
    kim = KimLoss(KernelStack.from_arrays(matrices), labels, 0.05)
    found = [Newton().solve(loss, lp_domain(1.0), tol=1e-11).weights for loss in (kim, square)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_all_solvers_that_take_it_agree(p):
    loss, domain = kim_loss(random_gram_matrices(4, 20), reg=0.1), lp_domain(p)
    best = Newton().solve(loss, domain, tol=1e-9).certificate.primal
    problem = Problem(loss.spec, domain, 1e-3)
    able = [solver for solver in SOLVERS.values() if complaint(solver(), problem) is None]
    assert Newton in able
    for solver in able:
        certificate = solver().solve(loss, domain, tol=1e-3).certificate
        assert certificate.converged, solver
        assert certificate.dual * (1 + 1e-9) <= best <= certificate.primal * (1 - 1e-9), solver


# -- small regularisation --------------------------------------------------------------------


def extended_value_and_gains(kernels, a, J, reg):
    """The formulas at equal weights in extended precision, by elimination without pivots."""
    kernels, a, J = (np.asarray(part, dtype=np.longdouble) for part in (kernels, a, J))
    G = kernels.mean(axis=0)
    system = np.column_stack([J @ G @ J, J @ G @ a])
    system[:, :-1] += np.longdouble(reg) * np.eye(len(a), dtype=np.longdouble)
    for k in range(len(a)):
        system[k] /= system[k, k]
        others = np.arange(len(a)) != k
        system[others] -= np.outer(system[others, k], system[k])
    v = system[:, -1]
    u = a - J @ v
    return float(-(u @ G @ u) / reg - v @ v), np.array([float(u @ K @ u / reg) for K in kernels])


@pytest.mark.parametrize("reg", [1e-8, 1e-4, 100.0])
def test_value_and_gains_to_many_digits(reg):
    loss = kim_loss(gaussian_kernels(40), reg)
    kernels, a, J = dense(loss)
    value, gains = extended_value_and_gains(kernels, a, J, reg)
    point = loss.evaluate(np.full(6, 1 / 6))
    assert point.value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(point.gains, gains, rtol=1e-10)


def test_kernels_of_low_rank_at_the_papers_regularisation():
    """Rounding is divided by λ: less is reached, relative to the ratio, but it is no obstacle."""
    matrices = random_gram_matrices(3, 30, rank=2)
    loss = kim_loss(matrices, 1e-8)
    point = loss.evaluate(np.full(3, 1 / 3))
    X = np.hstack([np.linalg.cholesky(K + 1e-13 * np.eye(30)) for K in matrices]) / np.sqrt(3)
    positive, negative = X[loss.signs > 0], X[loss.signs < 0]
    scatter = np.cov(positive.T, bias=True) + np.cov(negative.T, bias=True)
    values, vectors = np.linalg.eigh(scatter)
    turned = vectors.T @ (positive.mean(axis=0) - negative.mean(axis=0))
    assert -point.value == pytest.approx(np.sum(turned**2 / (values + 1e-8)), rel=1e-4)
    certificate = certify(point, lp_domain(1.0), 1e-6)
    assert certificate.gap >= point.slack


def test_slack_tells_of_rounding():
    """Far below the rounding of kernels, values are not to be trusted, and `slack` says so."""
    matrices = 1e7 * random_gram_matrices(2, 30, rank=8)
    trusted, doubtful = (
        kim_loss(matrices, reg).evaluate(np.array([0.5, 0.5])) for reg in (1e2, 1e-7)
    )
    assert trusted.slack < 1e-10 * trusted.ratio
    assert doubtful.slack > 1e-7 * doubtful.ratio


def test_a_regularisation_lost_in_rounding_is_refused_with_a_way_out():
    loss = kim_loss(1e12 * random_gram_matrices(1, 30, rank=2), reg=1e-8)
    with pytest.raises(ValueError, match=r"reg=1e-08 is lost.*Raise reg"):
        loss.evaluate(np.ones(1))
    loss.raise_reg(np.ones(1))
    assert 1e-6 < loss.reg < 1e2
    assert np.isfinite(loss.evaluate(np.ones(1)).value)
    assert loss.regularization(np.ones(1)) == loss.reg


# -- leave one out ---------------------------------------------------------------------------


@few
@given(st.integers(0, 10**6), st.booleans())
def test_leave_one_out_is_brute_force(seed, weighted):
    """The discriminant in feature space without sample i, parts of the other samples held."""
    m, reg = 16, 0.05
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    sample_weight = rng.uniform(1.0, 3.0, m) if weighted else None
    loss = kim_loss((X @ X.T)[None], reg, seed, sample_weight)
    fast = loss.evaluate(np.ones(1)).leave_one_out()
    for i in range(m):
        means, scatter = {}, reg * np.eye(5)
        for sign in (1, -1):
            rows = (loss.signs == sign) & (np.arange(m) != i)
            means[sign] = np.average(X[rows], axis=0, weights=loss.shares[rows])
            deviations = (X[rows] - means[sign]) * np.sqrt(loss.shares[rows])[:, None]
            scatter += deviations.T @ deviations
        direction = np.linalg.solve(scatter, means[1] - means[-1])
        output = (X[i] - (means[1] + means[-1]) / 2) @ direction
        assert fast[i, 0] == pytest.approx(output, rel=1e-7, abs=1e-9)


def test_a_weighted_sample_is_left_out_like_all_of_its_repeats():
    counts = np.array([1.0, 2.0, 3.0] * 4)
    matrices, labels = random_gram_matrices(2, 12), labels_of(12)
    weights = np.array([0.6, 0.4])
    rows = np.repeat(np.arange(12), counts.astype(int))
    counted = KimLoss(KernelStack.from_arrays(matrices), labels, 0.1, counts).evaluate(weights)
    repeated = KernelStack.from_arrays(matrices[:, rows][:, :, rows])
    written_out = KimLoss(repeated, labels[rows], 0.1).evaluate(weights)
    assert counted.value == pytest.approx(written_out.value, rel=1e-9)
    np.testing.assert_allclose(
        counted.leave_one_out()[rows], written_out.leave_one_out(rows), rtol=1e-8
    )


@pytest.mark.parametrize("count", [1.0, 3.0])
def test_a_sample_alone_in_its_class_stays_at_its_output(count):
    labels = np.array([1] + [0] * 11)
    counts = np.where(labels == 1, count, 1.0)
    stack = KernelStack.from_arrays(random_gram_matrices(2, 12))
    point = KimLoss(stack, labels, 0.1, counts).evaluate(np.array([0.5, 0.5]))
    outputs = point.leave_one_out()
    assert np.isfinite(outputs).all()
    assert outputs[0, 0] == pytest.approx(point.ratio / 2)


def test_midpoint_and_distance_of_the_class_means():
    loss = kim_loss(random_gram_matrices(2, 20), reg=0.01)
    weights = np.array([0.3, 0.7])
    point = loss.evaluate(weights)
    outputs = loss.kernels.combine(weights) @ point.coefficients[:, 0]
    means = [outputs[loss.signs == sign].mean() for sign in (1, -1)]
    assert means[0] - means[1] == pytest.approx(point.ratio, rel=1e-10)
    assert np.mean(means) == pytest.approx(point.midpoint, rel=1e-10)


def test_it_says_what_it_is():
    loss = kim_loss(random_gram_matrices(2, 20))
    assert loss.spec.kind is KimLoss
    assert (loss.spec.n_samples, loss.spec.n_kernels, loss.spec.n_outputs) == (20, 2, 1)
    assert loss.coarse() is None
    weights = np.array([0.5, 0.5])
    assert loss.kernel_weights(weights) is weights
