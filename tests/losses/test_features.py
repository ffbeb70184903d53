"""The square loss on explicit features is the square loss on their kernels."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels.domains import lp_domain
from manykernels.losses.features import FeatureLoss, FeatureSums, PartialLeftOut
from manykernels.losses.square import SquareLoss
from manykernels.solvers import SOLVERS, Newton
from manykernels.solvers.path import walk_grid, weight_response
from tests.problems import (
    dense_kernels,
    feature_loss,
    random_gram_matrices,
    slow,
    square_loss,
    takes,
)

PS = [1.0, 1.1, 2.0, np.inf]


def problem(n_classes=3, weighted=False, m=40, reg=0.1):
    weight = np.random.default_rng(1).uniform(0.5, 2, m) if weighted else None
    return square_loss(random_gram_matrices(4, m), n_classes, reg, sample_weight=weight)


def features_of(loss):
    """Rows of the features that :func:`feature_loss` sums, without sample weights."""
    kernels, _ = dense_kernels(loss)
    values, vectors = np.linalg.eigh(kernels)
    Z = np.hstack(list(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]))
    return Z if loss.sample_weight is None else Z / np.sqrt(loss.sample_weight)[:, None]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reg", [1e-4, 0.1, 100.0])
def test_values_gains_and_curvature(n_classes, weighted, reg):
    loss = problem(n_classes, weighted, reg=reg)
    features = feature_loss(loss)
    weights = np.array([0.5, 0.0, 1.0, 0.1])
    one, other = loss.evaluate(weights), features.evaluate(weights)
    assert other.value == pytest.approx(one.value, rel=1e-9)
    np.testing.assert_allclose(other.gains, one.gains, rtol=1e-5)
    np.testing.assert_allclose(
        other.hessian(), one.hessian(), rtol=1e-5, atol=1e-8 * np.abs(one.hessian()).max()
    )
    outputs = features_of(loss) @ other.coefficients
    np.testing.assert_allclose(loss.targets - outputs, one.residuals / weight_of(loss), atol=1e-9)


@pytest.mark.parametrize("reg", [1e-8, 1e-4, 1.0])
def test_rounding_errors_of_gains_are_as_estimated(reg):
    features = feature_loss(problem(reg=reg))
    point = features.evaluate(np.array([0.5, 0.0, 1.0, 0.1]))
    exact = np.longdouble
    left = features.cross.astype(exact) - features.sums.gram.astype(exact) @ point.solution
    gains = np.array([np.sum(left[block] ** 2) for block in features.sums.blocks()]) / reg
    assert np.all(np.abs(point.gains - gains) <= point.gain_errors)
    assert np.all(point.gain_errors <= 1e-8 * gains.max())


def weight_of(loss):
    """Residuals of the loss have its sample weights applied twice by their roots."""
    return 1.0 if loss.sample_weight is None else loss.sample_weight[:, None]


@pytest.mark.parametrize("p", [PS[0], *slow(*PS[1:])])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver_that_takes_it_finds_the_weights_of_the_kernels(solver, p):
    loss = problem()
    features, domain = feature_loss(loss), lp_domain(p)
    if takes(solver, features.spec, domain):
        found = SOLVERS[solver]().solve(features, domain, tol=1e-4, max_iter=500)
        best = Newton().solve(loss, domain, tol=1e-9)
        excess = found.certificate.primal - best.certificate.primal
        assert -1e-9 <= excess <= found.certificate.gap + 1e-9
        assert found.certificate.gap <= 2e-4 * found.certificate.primal
    else:
        with pytest.raises(ValueError, match="takes this problem"):
            SOLVERS[solver]().solve(features, domain)


def test_the_certificate_can_be_redone_from_the_sums():
    features = feature_loss(problem())
    domain = lp_domain(1.0)
    found = Newton().solve(features, domain, tol=1e-7)
    V, sums = found.certificate.dual_point, features.sums
    left = sums.cross - sums.gram @ V
    gains = np.array([np.sum(left[block] ** 2) for block in sums.blocks()]) / features.reg
    # D(U, b) at U = H − ZV, least over the simplex.
    bound = (
        2 * np.trace(sums.total - sums.cross.T @ V)
        - np.trace(sums.total - 2 * sums.cross.T @ V + V.T @ sums.gram @ V)
        - gains.max()
    )
    assert bound == pytest.approx(found.certificate.dual, rel=1e-9)


def test_a_path_on_features():
    features = feature_loss(problem())
    found = {}

    def visit(point):
        found[point.norm_index, point.reg_index] = point

    regs = [1e-3, 0.1, 10.0]
    walk_grid(lambda reg: FeatureLoss(features.sums, reg), PS, regs, visit, tol=1e-7)
    assert len(found) == len(PS) * len(regs)
    for (i, j), point in found.items():
        alone = Newton().solve(FeatureLoss(features.sums, regs[j]), lp_domain(PS[i]), tol=1e-8)
        assert point.certificate.converged
        assert point.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-7)


def test_sums_without_variance():
    """Targets, or a kernel, that are constant."""
    sums = feature_loss(problem()).sums
    silent = FeatureSums(
        sums.gram, 0 * sums.cross, 0 * sums.total, sums.kernel_of, sums.n_kernels, sums.n_samples
    )
    point = FeatureLoss(silent, 0.1).evaluate(np.ones(4))
    assert point.value == 0.0
    assert not point.gains.any()


def test_a_lambda_below_rounding_is_refused():
    sums = feature_loss(problem()).sums
    with pytest.raises(ValueError, match="raise reg"):
        FeatureLoss(sums, 1e-30).evaluate(np.ones(4))


def test_kernels_may_have_different_numbers_of_features():
    """One has a single feature, one has none."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 6))
    Z -= Z.mean(axis=0)
    H = rng.normal(size=(30, 2))
    H -= H.mean(axis=0)
    kernel_of = np.array([0, 2, 2, 2, 3, 3])
    sums = FeatureSums(Z.T @ Z, Z.T @ H, H.T @ H, kernel_of, 4, 30)
    weights = np.array([0.3, 0.5, 0.1, 1.0])
    point = FeatureLoss(sums, 2.0).evaluate(weights)
    K = np.array([Z[:, kernel_of == j] @ Z[:, kernel_of == j].T for j in range(4)])
    A = np.eye(30) + np.tensordot(weights, K, 1) / 2.0
    U = np.linalg.solve(A, H)
    assert point.value == pytest.approx(np.sum(H * U))
    np.testing.assert_allclose(point.gains, np.einsum("mc,jmn,nc->j", U, K, U) / 2, atol=1e-12)
    part = FeatureLoss(sums, 2.0).restricted(np.array([3, 1, 0])).evaluate(weights[[3, 1, 0]])
    assert part.gains[1] == 0.0
    half = point.influence_roots(Z)
    np.testing.assert_allclose(half.T @ half, np.eye(len(A)) - np.linalg.inv(A), atol=1e-12)


# -- leaving out ----------------------------------------------------------------------------


def known(loss, weights, rows):
    evaluation = feature_loss(loss).evaluate(weights)
    weight = np.ones(len(loss.targets)) if loss.sample_weight is None else loss.sample_weight
    return PartialLeftOut(
        evaluation, features_of(loss)[rows], loss.targets[rows], weight[rows], weight.sum()
    )


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_known", [40, 15])
@pytest.mark.parametrize("reg", [1e-8, 0.1])
def test_known_rows_are_left_out_as_from_the_kernels(n_classes, weighted, n_known, reg):
    """Also where the others are known by their sums only."""
    if reg < 1e-3 and n_known < 40:
        reg = 1e-3  # below it the sums of the others are lost in rounding errors
    loss = problem(n_classes, weighted, reg=reg)
    domain = lp_domain(1.5)
    best = Newton().solve(loss, domain, tol=1e-9)
    rows = np.arange(40) if n_known == 40 else np.arange(3, 3 + 2 * n_known, 2)
    some = known(loss, best.weights, rows)
    exact = loss.evaluate(best.weights)
    folds = [np.arange(0, 5), np.arange(5, 9)]
    response, exact_response = weight_response(some, domain), weight_response(exact, domain)
    scale = np.abs(exact_response).max()
    squares = some._rotation.T @ some._rotation
    np.testing.assert_allclose(squares, np.eye(len(squares)), atol=1e-12)
    # Responses are unique up to a rotation of the outputs and one of the weights.
    np.testing.assert_allclose(
        np.einsum("mkn,lkn->ml", response, response),
        np.einsum("mkn,lkn->ml", exact_response, exact_response)[np.ix_(rows, rows)],
        atol=(1e-3 if reg < 1e-6 else 1e-7) * scale**2,
    )
    found = some.leave_out(folds, None, response)
    expected = exact.leave_out([rows[fold] for fold in folds], None, exact_response)
    size = np.abs(expected.singly).max()
    np.testing.assert_allclose(found.singly, expected.singly[rows], atol=1e-5 * size)
    for part, whole in zip(found.folds, expected.folds, strict=True):
        np.testing.assert_allclose(part.outputs, whole.outputs, atol=1e-5 * size)
        places = np.searchsorted(whole.others, rows[part.others])
        np.testing.assert_allclose(
            part.outputs_of_others, whole.outputs_of_others[places], atol=1e-5 * size
        )


def test_a_known_row_left_out_is_a_refit_without_it():
    """Weights held: brute force."""
    loss = problem(3)
    weights = np.array([0.4, 0.2, 0.3, 0.6])
    rows = np.array([4, 17, 30])
    outputs = known(loss, weights, rows).leave_one_out()
    K, H = np.tensordot(weights, dense_kernels(loss)[0], 1), loss.targets
    for place, row in enumerate(rows):
        rest = np.delete(np.arange(40), row)
        design = np.block(
            [
                [K[np.ix_(rest, rest)] + loss.reg * np.eye(39), np.ones((39, 1))],
                [np.ones((1, 39)), np.zeros((1, 1))],
            ]
        )
        solution = np.linalg.solve(design, np.vstack([H[rest], np.zeros((1, H.shape[1]))]))
        expected = K[row, rest] @ solution[:-1] + solution[-1]
        np.testing.assert_allclose(outputs[place], expected, atol=1e-9)


def test_the_loss_of_known_rows_is_that_of_square_loss():
    loss = problem(2)
    assert isinstance(loss, SquareLoss)
    some = known(loss, np.full(4, 0.5), np.arange(40))
    exact = loss.evaluate(np.full(4, 0.5))
    np.testing.assert_allclose(some.inverse_diagonal(), exact.inverse_diagonal(), rtol=1e-8)
