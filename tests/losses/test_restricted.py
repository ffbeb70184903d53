"""A loss of some of its kernels is the loss where the others have weight zero."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.losses.composed import SurrogateLoss
from manykernels.losses.kim import KimLoss
from manykernels.losses.square import JointSquareLoss
from tests.machines import LOSSES, gram_matrices
from tests.problems import labels_for, square_loss

M = 24
WEIGHT = np.linspace(0.5, 2.0, M)


def stack():
    return KernelStack.from_arrays(np.concatenate([gram_matrices(M), gram_matrices(M, 5)]))


def square(n_classes, weight=None):
    return square_loss(np.asarray(stack().data), n_classes, sample_weight=weight)


def surrogate():
    loss = square(3)
    return SurrogateLoss(loss, 0.7, np.linspace(-0.1, 0.1, loss.n_kernels))


CASES = {
    "square": lambda: square(2),
    "square, weighted": lambda: square(3, WEIGHT),
    "joint": lambda: JointSquareLoss(square(3).kernels, square(3).targets, 0.5),
    "joint, weighted": lambda: JointSquareLoss(
        square(2, WEIGHT).kernels, square(2, WEIGHT).targets, 0.5, WEIGHT
    ),
    "kim": lambda: KimLoss(stack(), labels_for(M, 2), 0.3, WEIGHT),
    "tilted": surrogate,
    **{kind: lambda kind=kind: LOSSES[kind](stack(), inner_tol=1e-10) for kind in LOSSES},
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gains_are_those_of_the_whole(case):
    loss = CASES[case]()
    kernels = np.array([0, 2, 3, 6])
    part = loss.restricted(kernels)
    assert part.n_kernels == part.spec.n_kernels == 4
    weights = np.zeros(loss.n_kernels)
    weights[kernels] = [0.3, 0.2, 0.4, 0.1]
    inner = part.evaluate(weights[kernels])
    whole = loss.evaluate(weights)
    assert inner.value == pytest.approx(whole.value, rel=1e-8)
    np.testing.assert_allclose(inner.gains, whole.gains[kernels], rtol=1e-4, atol=1e-8)
    # Each keeps its own factor and products.
    np.testing.assert_allclose(
        inner.hessian(), whole.hessian()[np.ix_(kernels, kernels)], rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("case", CASES)
def test_gains_at_the_dual_point_of_an_evaluation_are_its_gains(case):
    loss = CASES[case]()
    weights = np.linspace(0.1, 0.2, loss.n_kernels)
    point = loss.evaluate(weights)
    gains = loss.gains_at(point.dual)
    np.testing.assert_allclose(gains, point.gains, rtol=1e-8, atol=1e-12 * abs(point.value))


@pytest.mark.parametrize("case", CASES)
def test_a_mixture_of_dual_points_bounds_the_loss(case):
    """``F(b) ≥ Σ y_r c_r − b·g(Σ y_r α_r)``."""
    loss = CASES[case]()
    rng = np.random.default_rng(0)
    points = [loss.evaluate(row) for row in rng.dirichlet(np.ones(loss.n_kernels), 3)]
    shares = [0.2, 0.5, 0.3]
    constants = [p.value - p.slack + p.weights @ p.gains for p in points]
    gains = loss.gains_at(sum(share * p.dual for share, p in zip(shares, points, strict=True)))
    for b in rng.dirichlet(np.ones(loss.n_kernels), 5):
        value = loss.evaluate(b).value
        assert value >= np.dot(shares, constants) - b @ gains - 1e-9 * abs(value)


@pytest.mark.parametrize("case", ["joint", "joint squared hinge"])
def test_the_identity_cannot_be_left_out(case):
    with pytest.raises(ValueError, match="must be the identity"):
        CASES[case]().restricted(np.array([1, 2]))
