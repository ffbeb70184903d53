"""Learnt regularisation: the identity as a kernel, by brute force, and as λ goes to zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manykernels.domains import lp_domain
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.solvers import Newton
from tests.differences import assert_derivatives
from tests.problems import dense_kernels, random_gram_matrices, square_loss


def joint_loss(n_kernels=3, n_rows=18, n_classes=3, seed=0, weight=None, unit=1.0, **options):
    matrices = random_gram_matrices(n_kernels, n_rows, seed)
    plain = square_loss(matrices, n_classes, seed=seed, sample_weight=weight, **options)
    return JointSquareLoss(plain.kernels, plain.targets, unit, weight)


def brute_force(loss, weights):
    """tr(Hᵀ(λI + K_θ)⁻¹H) with matrices written out."""
    plain = SquareLoss(loss.kernels.kernels, loss.targets, 1.0, loss.sample_weight)
    kernels, targets = dense_kernels(plain)
    A = weights[0] * loss.kernels.unit * np.eye(len(targets)) + np.tensordot(
        weights[1:], kernels, 1
    )
    return float(np.sum(targets * np.linalg.solve(A, targets)))


@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([2, 3]),
    weighted=st.booleans(),
    unit=st.sampled_from([1.0, 1 / 18]),
)
@example(seed=703, n_classes=3, weighted=True, unit=1.0)
@example(seed=703, n_classes=3, weighted=True, unit=1 / 18)
@settings(max_examples=20, deadline=None)
def test_value_gains_and_hessian(seed, n_classes, weighted, unit):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, 18) if weighted else None
    loss = joint_loss(n_classes=n_classes, seed=seed, weight=weight, unit=unit)
    weights = rng.uniform(0.2, 1.0, 4)
    point = loss.evaluate(weights)
    assert point.value == pytest.approx(brute_force(loss, weights), rel=1e-9)
    assert_derivatives(-point.gains, lambda w: brute_force(loss, w), weights)
    assert_derivatives(-point.hessian(), lambda w: loss.evaluate(w).gains, weights)


def test_it_is_the_square_loss_divided_by_reg():
    loss = joint_loss()
    weights = np.array([0.3, 0.2, 0.4, 0.1])
    fixed = SquareLoss(loss.kernels.kernels, loss.targets, 0.3)
    one, other = loss.evaluate(weights), fixed.evaluate(weights[1:])
    assert one.value == pytest.approx(other.value / 0.3)
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-9)
    assert loss.regularization(weights) == pytest.approx(0.3)
    np.testing.assert_array_equal(loss.kernel_weights(weights), weights[1:])
    np.testing.assert_allclose(one.leave_one_out(), other.leave_one_out(), rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_by_groups(weighted):
    groups = np.arange(18) // 2
    weight = np.where(np.arange(18) < 4, 3.0, 1.0) if weighted else None
    loss = joint_loss(weight=weight)
    weights = np.array([0.3, 0.2, 0.4, 0.1])
    fixed = SquareLoss(loss.kernels.kernels, loss.targets, 0.3, weight)
    one, other = loss.evaluate(weights), fixed.evaluate(weights[1:])
    for from_mean in (False, True):
        np.testing.assert_allclose(
            one.leave_one_out(groups, from_mean=from_mean),
            other.leave_one_out(groups, from_mean=from_mean),
            rtol=1e-8,
            atol=1e-10,
        )


def test_a_reg_of_zero_is_raised_to_a_value_above_rounding():
    """Kernels of low rank leave A singular without λ."""
    loss = joint_loss(n_kernels=2, n_rows=30)
    point = loss.evaluate(np.array([0.0, 0.5, 0.5]))
    assert 0 < point.weights[0] < 1e-9
    # F is that of the part of H which no kernel reaches, over λ.
    plain = SquareLoss(loss.kernels.kernels, loss.targets, 1.0)
    kernels, targets = dense_kernels(plain)
    basis = np.linalg.svd(kernels.sum(axis=0))[0][:, :6]
    unreached = np.sum((targets - basis @ (basis.T @ targets)) ** 2)
    assert point.weights[0] * point.value == pytest.approx(unreached, rel=1e-4)


def gaussian_loss(X, labels_of):
    gram = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    wide = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    plain = square_loss(np.array([gram, wide]), 2)
    return JointSquareLoss(plain.kernels, labels_of(plain.targets))


def test_outputs_at_the_least_reg():
    X = np.random.default_rng(0).standard_normal((20, 3))
    loss = gaussian_loss(X, lambda targets: targets)
    left_out = loss.evaluate(np.array([0.0, 0.5, 0.5])).leave_one_out()
    tiny = loss.evaluate(np.array([1e-9, 0.5, 0.5])).leave_one_out()
    np.testing.assert_allclose(left_out, tiny, atol=1e-5)
    in_pairs = loss.evaluate(np.array([0.0, 0.5, 0.5])).leave_one_out(np.arange(20) // 2)
    assert np.isfinite(in_pairs).all()


def test_equal_samples_do_not_pass_for_a_gain_of_the_identity():
    X = np.random.default_rng(0).standard_normal((30, 3))
    X[1] = X[0]

    def agreeing(targets):
        targets = targets.copy()
        targets[1] = targets[0]
        return targets - targets.mean(axis=0)

    loss = gaussian_loss(X, agreeing)
    solution = Newton().solve(loss, lp_domain(1.0), tol=1e-8)
    assert solution.certificate.converged
    assert solution.n_inner_solves <= 10


@pytest.mark.parametrize("n_classes", [2, 4])
def test_newton_needs_few_factorisations(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    grams = np.array([np.exp(-distances / (2 * s**2)) for s in np.logspace(-1, 2, 10)])
    plain = square_loss(grams, n_classes, normalize="trace")
    loss = JointSquareLoss(plain.kernels, plain.targets, 1 / 60)
    solution = Newton().solve(loss, lp_domain(1.0), tol=1e-6)
    assert solution.certificate.converged
    assert solution.n_inner_solves <= 11


def test_parts_of_kernels_with_identity_are_refused():
    with pytest.raises(TypeError, match="cannot be restricted"):
        joint_loss().kernels[:3]
    assert joint_loss().coarse() is None


def test_kernels_that_are_all_zero():
    plain = square_loss(np.zeros((2, 10, 10)), 2)
    loss = JointSquareLoss(plain.kernels, plain.targets)
    solution = Newton().solve(loss, lp_domain(1.0))
    np.testing.assert_allclose(solution.weights, [1.0, 0.0, 0.0], atol=1e-12)
    with pytest.raises(ValueError, match="All kernels are zero"):
        loss.evaluate(np.array([0.0, 0.5, 0.5]))


# -- the least λ -----------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_raised_weights_stay_in_their_domain(p):
    """A raised λ made the norm of all weights larger than one."""
    domain = lp_domain(p)
    loss = joint_loss(n_kernels=2, n_rows=30).within(domain.gauge)
    asked = domain.onto_boundary(np.array([0.0, 0.5, 0.5]))
    # Beside kernels of this size the least λ is no rounding error.
    loss.kernels.kernels = loss.kernels.kernels.scaled(np.full(2, 1e9))
    point = loss.evaluate(asked)
    assert point.weights[0] > 1e-3
    assert domain.gauge(point.weights) == pytest.approx(1.0, abs=1e-12)
    assert point.at_least
    assert "the least that rounding errors allow" in loss.note(point)
    part = loss.restricted(np.array([0, 2]))
    assert domain.gauge(part.evaluate(np.array([0.0, 1.0])).weights) <= 1.0 + 1e-12
    unbounded = joint_loss(n_kernels=2, n_rows=30)
    assert unbounded.note(unbounded.evaluate(np.array([0.3, 0.5, 0.5]))) == ""


def test_reg_is_zero_where_kernels_are_not_singular():
    X = np.random.default_rng(0).standard_normal((20, 3))
    loss = gaussian_loss(X, lambda targets: targets)
    point = loss.evaluate(np.array([0.0, 1.0, 0.0]))
    assert point.weights[0] == 0.0
    assert not point.at_least
    plain = SquareLoss(loss.kernels.kernels, loss.targets, 1.0)
    kernels, targets = dense_kernels(plain)
    solved = np.linalg.pinv(kernels[0], rcond=1e-10) @ targets
    assert point.value == pytest.approx(float(np.sum(targets * solved)), rel=1e-9)
    assert np.isfinite(point.leave_one_out()).all()
