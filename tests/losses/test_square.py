"""Square loss: values and derivatives against brute force, the formulas it is built on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.losses.square import SquareLoss
from manykernels.solvers import Newton
from tests.differences import assert_derivatives
from tests.losses.laws import (
    assert_a_point_keeps_its_derivatives,
    assert_convex_along_a_segment,
    assert_derivatives_of,
    some_weights,
)
from tests.problems import dense_kernels, random_gram_matrices, square_loss

CASES = [(1, 2, False), (3, 2, False), (4, 3, False), (4, 5, True), (3, 2, True)]


@pytest.fixture(params=CASES, ids=lambda c: f"{c[0]} kernels, {c[1]} classes, weights {c[2]}")
def loss(request):
    n_kernels, n_classes, weighted = request.param
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 24) if weighted else None
    matrices = random_gram_matrices(n_kernels, 24)
    return square_loss(matrices, n_classes, reg=0.3, sample_weight=weights)


def brute_force_value(loss, weights):
    kernels, targets = dense_kernels(loss)
    A = np.eye(len(targets)) + np.tensordot(weights, kernels, 1) / loss.reg
    return np.trace(targets.T @ np.linalg.solve(A, targets))


def test_value_is_the_formula(loss):
    weights = some_weights(loss)
    assert loss.evaluate(weights).value == pytest.approx(
        brute_force_value(loss, weights), rel=1e-11
    )


def test_value_is_the_dual_objective_at_the_dual_solution(loss):
    """F = tr(Hᵀα) − ¼ tr(αᵀα) − (1/4λ) tr(αᵀKα) at α = 2U, and no α does better."""
    weights = some_weights(loss)
    kernels, targets = dense_kernels(loss)
    combined = np.tensordot(weights, kernels, 1)
    point = loss.evaluate(weights)
    roots = 1.0 if loss.sample_weight is None else np.sqrt(loss.sample_weight)[:, None]
    alpha = point.dual / roots

    def dual(a):
        return np.vdot(targets, a) - np.vdot(a, a) / 4 - np.vdot(a, combined @ a) / (4 * loss.reg)

    assert dual(alpha) == pytest.approx(point.value, rel=1e-10)
    perturbed = alpha + 1e-3 * np.random.default_rng(0).standard_normal(alpha.shape)
    assert dual(perturbed) < point.value


def test_gains_and_hessian_are_derivatives(loss):
    assert_derivatives_of(loss, brute_force_value)


def test_model_hessian_of_one_output_is_that_of_the_inverse_loss():
    loss = square_loss(random_gram_matrices(3, 24), 2, reg=0.3)
    weights = some_weights(loss)
    point = loss.evaluate(weights)
    model = point.model_hessian(0.0)

    def slope_of_inverse(w):
        """Of −F₀²/F(w), by the chain rule from gains that are tested on their own."""
        return -((point.value / brute_force_value(loss, w)) ** 2) * loss.evaluate(w).gains

    assert_derivatives(model, slope_of_inverse, weights)
    assert np.linalg.eigvalsh(model)[0] >= -1e-10 * np.trace(model)


def test_model_hessian_of_several_outputs_is_the_hessian():
    loss = square_loss(random_gram_matrices(3, 24), 4)
    point = loss.evaluate(some_weights(loss))
    np.testing.assert_array_equal(point.model_hessian(0.0), point.hessian())


def test_a_point_keeps_its_derivatives_after_the_loss_moved_on(loss):
    assert_a_point_keeps_its_derivatives(loss)


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_convex_along_segments_with_gains_of_one_sign(seed, mix):
    loss = square_loss(random_gram_matrices(3, 12, seed), 3, seed=seed)
    assert_convex_along_a_segment(loss, seed, mix)


def test_inverse_diagonal_across_blocks(monkeypatch):
    monkeypatch.setattr("manykernels.losses.on_demand._BLOCK_ROWS", 7)
    loss = square_loss(random_gram_matrices(2, 24), 2)
    weights = some_weights(loss)
    kernels, _ = dense_kernels(loss)
    A = np.eye(24) + np.tensordot(weights, kernels, 1) / loss.reg
    np.testing.assert_allclose(
        loss.evaluate(weights).inverse_diagonal(), np.diag(np.linalg.inv(A)), rtol=1e-11
    )


@given(st.integers(0, 10**6), st.sampled_from([2, 5]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_leave_one_out_is_brute_force_with_weights_held(seed, n_classes, weighted):
    """Ridge with an unpenalised intercept, refitted without each sample in turn."""
    m, reg = 16, 0.2
    rng = np.random.default_rng(seed)
    sample_weight = rng.uniform(0.3, 3.0, m) if weighted else None
    matrices = random_gram_matrices(2, m, seed)
    loss = square_loss(matrices, n_classes, reg, seed, sample_weight)
    weights = rng.uniform(0.2, 1.0, 2)
    fast = loss.evaluate(weights).leave_one_out()
    kernel = np.asarray(loss.kernels) @ weights
    w = np.ones(m) if sample_weight is None else sample_weight
    for i in range(m):
        kept = np.delete(np.arange(m), i)
        K, H, W = kernel[np.ix_(kept, kept)], loss.targets[kept], w[kept]
        # Stationarity of Σ w ‖h − Ka − b‖² + λ aᵀKa: W(H − Ka − 1b) = λa, 1ᵀa = 0.
        system = np.block(
            [
                [K + reg * np.diag(1 / W), np.ones((m - 1, 1))],
                [np.ones((1, m - 1)), np.zeros((1, 1))],
            ]
        )
        solution = np.linalg.solve(system, np.vstack([H, np.zeros((1, H.shape[1]))]))
        left_out = kernel[i, kept] @ solution[:-1] + solution[-1]
        np.testing.assert_allclose(fast[i], left_out, rtol=1e-7, atol=1e-9 * np.abs(H).max())


def test_a_weighted_sample_is_left_out_like_all_of_its_repeats():
    counts = np.array([1.0, 2.0, 3.0] * 4)
    loss = square_loss(random_gram_matrices(2, 12), 3, sample_weight=counts)
    weights = np.array([0.6, 0.4])
    counted = loss.evaluate(weights).leave_one_out()
    repeated = np.repeat(np.arange(12), counts.astype(int))
    written_out = SquareLoss(
        loss.kernels[np.ix_(repeated, repeated)], loss.targets[repeated], loss.reg
    )
    np.testing.assert_allclose(
        counted[repeated], written_out.evaluate(weights).leave_one_out(repeated), rtol=1e-8
    )


def test_coarse_loss_is_a_fair_sample():
    matrices = random_gram_matrices(2, 700, rank=5)
    loss = square_loss(matrices, 5)
    coarse = loss.coarse()
    assert coarse.n_kernels == 2
    assert len(coarse.targets) == 175
    assert coarse.reg == loss.reg / 4
    np.testing.assert_allclose(coarse.targets.mean(axis=0), 0, atol=1e-12)
    _, counts = np.unique(coarse.targets.round(9), axis=0, return_counts=True)
    assert counts.tolist() == [35] * 5


def test_small_and_one_output_losses_have_no_coarse_one():
    assert square_loss(random_gram_matrices(2, 24), 3).coarse() is None
    assert square_loss(random_gram_matrices(2, 700, rank=5), 2).coarse() is None


def test_coarse_losses_are_those_of_centred_kernels():
    """At a small λ, where uncentred kernels would leave another problem, it is solved."""
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 1600)
    for sample_weight in (None, weight):
        loss = square_loss(
            random_gram_matrices(3, 1600, rank=20), 3, reg=1e-6, sample_weight=sample_weight
        )
        sample = loss.coarse()
        halves = sample.halves()
        assert [len(part.targets) for part in (sample, *halves)] == [400, 200, 200]
        for part in (sample, *halves):
            share = part.sample_weight
            share = np.ones(len(part.targets)) if share is None else share
            means = part.kernels.apply(share[:, None])
            np.testing.assert_allclose(means, 0.0, atol=1e-9)
            np.testing.assert_allclose(share @ part.targets, 0.0, atol=1e-9)
            assert Newton().solve(part, lp_domain(2.0), tol=1e-6).certificate.converged


def test_indefinite_sum_is_refused_with_a_way_out():
    stack = KernelStack.from_arrays([-np.eye(6)], psd="ignore")
    loss = SquareLoss(stack, np.repeat([[1.0], [-1.0]], 3, axis=0), reg=1e-3)
    with pytest.raises(ValueError, match=r"reg=0\.001.*psd=.clip"):
        loss.evaluate(np.ones(1))
