"""The dual without weights: values by hand, the Tikhonov form and the way between both."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from manykernels.domains import lp_domain
from manykernels.solvers import Dual, Newton, tikhonov
from tests.problems import dense_kernels, random_gram_matrices, slow, square_loss


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("p", [1 + 2.0**-6, 1.5, 2.0, 8.0])
def test_a_few_factorisations_are_enough(p, n_classes):
    loss = square_loss(random_gram_matrices(6, 40), n_classes, reg=1e-2)
    solution = Dual().solve(loss, lp_domain(p), tol=1e-6)
    assert solution.certificate.converged
    assert solution.n_inner_solves <= 4


def test_every_alpha_proves_a_bound():
    loss = square_loss(random_gram_matrices(4, 20), 3, reg=0.1)
    rng = np.random.default_rng(0)
    for p in (1.0, 1.5, np.inf):
        domain = lp_domain(p)
        best = Newton().solve(loss, domain, tol=1e-9)
        for size in (0.0, 0.1, 10.0):
            noise = size * rng.standard_normal(loss.rotated_targets.shape)
            alpha = best.evaluation.rotated_residuals + noise
            bound = loss.lower_bound(loss.dual_of(alpha), domain.support)
            assert bound <= best.certificate.primal * (1 + 1e-12)
            if size == 0.0:
                assert bound == pytest.approx(best.certificate.primal, rel=1e-8)
        assert loss.lower_bound(loss.dual_of(np.zeros_like(alpha)), domain.support) == 0.0


def tikhonov_objective(loss, p, mu):
    """``F(β)/2λ + (μ/2)‖β‖_p²`` by dense linear algebra."""
    kernels, targets = dense_kernels(loss)

    def value(weights):
        A = np.eye(len(targets)) + np.tensordot(weights, kernels, 1) / loss.reg
        penalty = 0.5 * mu * np.sum(weights**p) ** (2 / p)
        return np.sum(targets * np.linalg.solve(A, targets)) / (2 * loss.reg) + penalty

    return value


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("p", [1.2, 2.0, *slow(4.0)])
@pytest.mark.parametrize("mu", [1e-3, 1.0, *slow(1e3)])
def test_tikhonov_minimises_its_objective(p, mu, n_classes):
    loss = square_loss(random_gram_matrices(3, 20), n_classes, reg=0.5)
    solution = tikhonov(loss, p, mu, tol=1e-9)
    objective = tikhonov_objective(loss, p, mu)
    assert solution.certificate.primal == pytest.approx(objective(solution.weights), rel=1e-10)
    assert solution.certificate.converged
    found = minimize(
        lambda root: objective(root**2), np.sqrt(solution.weights + 0.01), method="BFGS"
    )
    assert solution.certificate.primal <= found.fun * (1 + 1e-9)
    assert solution.certificate.dual <= found.fun * (1 + 1e-9)
    assert solution.radius == pytest.approx(np.sum(solution.weights**p) ** (1 / p))


@pytest.mark.parametrize("p", [1 + 2.0**-6, 1.5, 2.0, np.inf])
def test_ball_and_price_lead_to_the_same_weights(p):
    loss = square_loss(random_gram_matrices(4, 25), 3, reg=0.2)
    domain = lp_domain(p)
    ball = Newton().solve(loss, domain, tol=1e-10)
    # The optimality conditions are g/2λ = μ ‖β‖_p ∇‖β‖_p; at ‖β‖_p = 1 the dual norm of both sides
    # gives μ.
    mu = domain.support(ball.evaluation.gains) / (2.0 * loss.reg)
    priced = tikhonov(loss, p, mu, tol=1e-10)
    assert priced.radius == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(priced.weights, ball.weights, atol=2e-3)


@pytest.mark.parametrize("mu", [0.01, 10.0])
def test_any_price_is_a_ball_with_another_regularization(mu):
    matrices = random_gram_matrices(4, 25)
    loss = square_loss(matrices, 2, reg=0.2)
    priced = tikhonov(loss, 1.5, mu, tol=1e-10)
    scaled = square_loss(matrices, 2, reg=0.2 / priced.radius)
    ball = Newton().solve(scaled, lp_domain(1.5), tol=1e-10)
    np.testing.assert_allclose(priced.weights / priced.radius, ball.weights, atol=2e-3)


def test_bad_prices_and_norms():
    loss = square_loss(random_gram_matrices(2, 10), 2)
    for mu in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="mu must be positive and finite"):
            tikhonov(loss, 2.0, mu)
    with pytest.raises(ValueError, match="works for p > 1 only"):
        tikhonov(loss, 1.0, 1.0)


def test_an_unfinished_price_is_reported():
    loss = square_loss(random_gram_matrices(4, 20), 3, reg=1e-3)
    solution = tikhonov(loss, 1.1, 1.0, tol=1e-12, max_iter=2, n_steps=2)
    assert not solution.certificate.converged
    assert 0 < solution.certificate.gap < np.inf
