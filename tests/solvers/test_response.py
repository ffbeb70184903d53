"""What is said of weights whose curvature is nothing but rounding errors."""

from types import SimpleNamespace

import numpy as np
import pytest

from manykernels import MKFDA, rbf_grid
from manykernels.domains import Product, lp_domain
from manykernels.solvers.path import weight_response

WEIGHTS = np.full(2, np.sqrt(0.5))


def evaluation(hessian):
    """What `weight_response` uses of an evaluation, for two kernels and three samples."""
    slopes = np.arange(6.0).reshape(3, 2)
    return SimpleNamespace(
        weights=WEIGHTS,
        gains=np.full(2, 1e-9),
        factorized=True,
        sensitivity=lambda positive: (slopes[:, positive], np.array(hessian)),
    )


def test_a_curvature_above_rounding_gives_a_response():
    response = weight_response(evaluation([[2.0, 1.0], [1.0, 2.0]]), lp_domain(2.0))
    # On the plane (1, −1)/√2 the curvature is 1: P = ½ [[1, −1], [−1, 1]], M Mᵀ = 2 B P Bᵀ.
    assert response @ response.T == pytest.approx(np.ones((3, 3)), rel=1e-6)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_curvature_of_rounding_errors_gives_no_response(sign):
    """By rounding a positive semi-definite matrix may have negative eigenvalues."""
    assert weight_response(evaluation([[sign, 3.0], [3.0, sign]]), lp_domain(2.0)) is None


def test_every_block_of_weights_stays_on_its_own_boundary():
    """Two independent blocks respond as each of them alone."""
    slopes = np.random.default_rng(0).standard_normal((3, 4))
    hessian = np.zeros((4, 4))
    hessian[:2, :2], hessian[2:, 2:] = [[2.0, 1.0], [1.0, 2.0]], [[5.0, 0.0], [0.0, 1.0]]

    def at(kernels):
        return SimpleNamespace(
            weights=np.full(len(kernels), np.sqrt(0.5)),
            gains=np.full(len(kernels), 1e-9),
            factorized=True,
            sensitivity=lambda positive: (
                slopes[:, kernels][:, positive],
                hessian[np.ix_(kernels, kernels)].copy(),
            ),
        )

    both = weight_response(at([0, 1, 2, 3]), Product(lp_domain(2.0), 2))
    alone = [weight_response(at(block), lp_domain(2.0)) for block in ([0, 1], [2, 3])]
    assert both @ both.T == pytest.approx(sum(one @ one.T for one in alone), rel=1e-6)


def test_one_weight_in_each_block_cannot_change():
    single = evaluation([[2.0, 1.0], [1.0, 2.0]])
    assert weight_response(single, Product(lp_domain(2.0), 2)) is None


def test_a_small_weight_with_a_small_gain_hardly_responds():
    """It should be zero, as in the exact solution, where it does not respond at all."""
    slopes = np.random.default_rng(0).standard_normal((5, 3))

    def at(weights, gains):
        return SimpleNamespace(
            weights=np.array(weights),
            gains=np.array(gains),
            factorized=True,
            sensitivity=lambda positive: (
                slopes[:, positive],
                np.array([[3e-3, 1e-3, 0.0], [1e-3, 2e-3, 0.0], [0.0, 0.0, 1e-3]])[
                    np.ix_(positive, positive)
                ],
            ),
        )

    exact = weight_response(at([0.6, 0.4, 0.0], [1.0, 1.0, 0.9]), lp_domain(1.0))
    near = weight_response(at([0.6, 0.3999, 1e-4], [1.0, 1.0, 0.9]), lp_domain(1.0))
    assert near @ near.T == pytest.approx(exact @ exact.T, rel=1e-3)


@pytest.mark.parametrize(("solver", "reg"), [("newton", 1000.0), ("sdp", 40.0), ("sdp", 100.0)])
def test_left_out_samples_at_weights_that_are_not_quite_the_best(solver, reg):
    """Where λ is large, weights within the tolerance of the gap may differ in the second digit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=90) > 0
    widths = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]
    model = MKFDA(rbf_grid(widths), p=1, reg=reg, normalize="trace")
    exact = model.set_params(tol=1e-12).fit(X, y).left_out_log_proba_
    near = model.set_params(tol=1e-6, solver=solver).fit(X, y).left_out_log_proba_
    # The weights themselves differ by up to 0.14.
    assert np.exp(near) == pytest.approx(np.exp(exact), abs=0.02)
