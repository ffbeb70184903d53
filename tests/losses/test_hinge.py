"""The support vector machines as losses: against their primals as a conic solver takes them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.losses.svm import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    OneClassLoss,
    SquaredHingeLoss,
)
from tests.problems import labels_for, slow

M = 30
WEIGHTS = np.array([0.7, 0.3])
rng = np.random.default_rng(0)
X = rng.normal(size=(M, 3))
SQUARES = ((X[:, None] - X) ** 2).sum(axis=2)
MATRICES = np.array([np.exp(-SQUARES), 0.5 + X @ X.T])
SIGNS = np.where(X[:, 0] + 0.7 * rng.normal(size=M) > 0.3, 1.0, -1.0)
TARGETS = np.sin(X[:, 0]) + 0.3 * rng.normal(size=M)
SAMPLE_WEIGHT = rng.uniform(0.3, 3.0, M)
COUNTS = rng.integers(1, 4, M)
ONE = np.ones(M)


def stack(rows=None):
    rows = np.arange(M) if rows is None else rows
    return KernelStack.from_arrays(MATRICES[:, rows][:, :, rows])


def signs_of_three():
    return np.where(labels_for(M, 3)[:, None] == np.arange(3), 1.0, -1.0)


def compare(loss, terms):
    """With min ½‖w‖² + terms(f, b), f the outputs without bias."""
    K = np.tensordot(WEIGHTS, MATRICES, 1)
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = cp.Variable(M), cp.Variable()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + terms(features @ w, b)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    point = loss.evaluate(WEIGHTS)
    assert point.value == pytest.approx(problem.value, rel=1e-7)
    v, bias = point.dual[:, 0], point.biases[0]
    np.testing.assert_allclose(K @ v, features @ w.value, atol=1e-4)
    # There may be several best biases; this is one of them.
    attained = v @ K @ v / 2 + terms(cp.Constant(K @ v), bias).value
    assert attained == pytest.approx(problem.value, rel=1e-5)


@pytest.mark.parametrize("weight", [ONE, *slow(SAMPLE_WEIGHT)], ids=["", "weighted"])
@pytest.mark.parametrize("C", [0.05, 2.0, 50.0])
def test_each_machine_minimises_its_primal(C, weight):
    y, t, c = SIGNS, TARGETS, C * weight

    def margins(f, b):
        return cp.pos(1 - cp.multiply(y, f + b))

    compare(HingeLoss(stack(), y, c), lambda f, b: c @ margins(f, b))
    compare(SquaredHingeLoss(stack(), y, c), lambda f, b: c @ cp.square(margins(f, b)) / 2)
    compare(
        EpsilonInsensitiveLoss(stack(), t, c, 0.1),
        lambda f, b: c @ cp.pos(cp.abs(t - f - b) - 0.1),
    )


@pytest.mark.parametrize("weight", [None, SAMPLE_WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("nu", [0.11, 0.52, 0.87])
def test_one_class_minimises_its_primal(nu, weight):
    """ρ = −b."""
    w = ONE if weight is None else weight
    compare(OneClassLoss(stack(), nu, weight), lambda f, b: w @ cp.pos(-b - f) + nu * w.sum() * b)


def test_two_against_two_that_share_nothing():
    """K = I."""
    kernels = KernelStack.from_arrays(np.eye(4)[None])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    # α = 1, or C if that is less: F = Σα − ½Σα².
    assert HingeLoss(kernels, y, 5.0).evaluate(np.ones(1)).value == pytest.approx(2.0)
    assert HingeLoss(kernels, y, 0.5).evaluate(np.ones(1)).value == pytest.approx(1.5)
    # α = 1/(1 + 1/C).
    assert SquaredHingeLoss(kernels, y, 1.0).evaluate(np.ones(1)).value == pytest.approx(1.0)
    # v = y (1 − ε): F = Σ(1 − ε)²/2.
    tube = EpsilonInsensitiveLoss(kernels, y, 5.0, 0.5)
    assert tube.evaluate(np.ones(1)).value == pytest.approx(0.5)
    # α = ν each: F = −½ · 4ν².
    assert OneClassLoss(kernels, 0.5).evaluate(np.ones(1)).value == pytest.approx(-0.5)


@pytest.mark.parametrize("make", [HingeLoss, SquaredHingeLoss])
def test_several_outputs_are_the_sum_of_each(make):
    signs = signs_of_three()
    together = make(stack(), signs, 2.0).evaluate(WEIGHTS)
    apart = [make(stack(), y, 2.0).evaluate(WEIGHTS) for y in signs.T]
    assert together.value == pytest.approx(sum(point.value for point in apart), rel=1e-8)
    np.testing.assert_allclose(together.gains, sum(point.gains for point in apart), rtol=1e-5)
    np.testing.assert_allclose(together.hessian(), sum(p.hessian() for p in apart), rtol=1e-4)
    np.testing.assert_allclose(together.biases, [p.biases[0] for p in apart], atol=1e-6)
    assert together.dual.shape == (M, 3)


@pytest.mark.parametrize("weight", [None, SAMPLE_WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("unit", [1.0, 1 / M])
def test_learning_c_is_the_squared_hinge_with_that_c(unit, weight):
    for first in (0.1, 3.0):
        joint = JointSquaredHingeLoss(stack(), SIGNS, unit, weight)
        C = (ONE if weight is None else weight) / (first * unit)
        one = joint.evaluate(np.array([first, *WEIGHTS]))
        other = SquaredHingeLoss(stack(), SIGNS, C).evaluate(WEIGHTS)
        assert one.value == pytest.approx(other.value, rel=1e-8)
        np.testing.assert_allclose(one.dual, other.dual, atol=1e-6 * np.abs(other.dual).max())
        np.testing.assert_allclose(one.gains[1:], other.gains, rtol=1e-6)
        assert one.gains[0] == pytest.approx(
            0.5 * np.sum(other.dual[:, 0] ** 2 / (C * first)), rel=1e-6
        )
        np.testing.assert_allclose(one.hessian()[1:, 1:], other.hessian(), rtol=1e-5)


def test_an_unbounded_c_is_lowered_to_a_value_above_rounding():
    """Two equal samples of different classes have no machine without slack."""
    rows = np.array([0, 0, *range(2, M)])
    signs = SIGNS.copy()
    signs[:2] = 1.0, -1.0
    loss = JointSquaredHingeLoss(stack(rows), signs)
    point = loss.evaluate(np.array([0.0, *WEIGHTS]))
    assert 0 < point.weights[0] < 1e-8
    np.testing.assert_array_equal(point.weights[1:], WEIGHTS)
    assert np.isfinite(point.value)
    assert 0 <= point.slack <= 1e-6 * point.value
    # Both are missed by one, so that F is at least ½ C · 2.
    assert point.value >= (1 - 1e-6) / point.weights[0]
    # The weights asked for are not written.
    asked = np.array([0.0, 0.7, 0.3])
    loss.evaluate(asked)
    np.testing.assert_array_equal(asked, [0.0, 0.7, 0.3])


def test_c_of_kernels_that_are_all_zero():
    loss = JointSquaredHingeLoss(KernelStack.from_arrays(np.zeros((2, M, M))), SIGNS)
    with pytest.raises(ValueError, match="All kernels are zero"):
        loss.evaluate(np.array([0.0, 0.5, 0.5]))
    # With the bias alone, ½C Σ(1 − yb)² is least at the mean of y.
    value = loss.evaluate(np.array([0.5, 0.5, 0.5])).value
    assert value == pytest.approx(np.sum((1 - SIGNS * SIGNS.mean()) ** 2))


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "joint", "tube", "one class"])
def test_a_sample_of_weight_two_is_two_samples(name):
    row = np.repeat(np.arange(M), COUNTS)

    def make(rows, weight):
        K, y, t = stack(rows), SIGNS[rows], TARGETS[rows]
        return {
            "hinge": lambda: HingeLoss(K, y, 2.0 * weight),
            "squared hinge": lambda: SquaredHingeLoss(K, y, 2.0 * weight),
            "joint": lambda: JointSquaredHingeLoss(K, y, 1.0, weight),
            "tube": lambda: EpsilonInsensitiveLoss(K, t, 2.0 * weight, 0.1),
            "one class": lambda: OneClassLoss(K, 0.33, weight),
        }[name]()

    counted, written_out = make(np.arange(M), COUNTS.astype(float)), make(row, np.ones(len(row)))
    weights = np.array([0.4, *WEIGHTS])[-counted.n_kernels :]
    one, other = counted.evaluate(weights), written_out.evaluate(weights)
    assert other.value == pytest.approx(one.value, rel=1e-7)
    np.testing.assert_allclose(other.gains, one.gains, rtol=1e-4)
    assert other.biases[0] == pytest.approx(one.biases[0], abs=1e-5)
    # What repeated samples have between them.
    sums = np.bincount(row, weights=other.dual[:, 0])
    np.testing.assert_allclose(sums, one.dual[:, 0], atol=1e-4 * np.abs(sums).max())


def test_a_number_and_a_vector_of_equal_numbers_are_the_same_c():
    for make in (HingeLoss, SquaredHingeLoss):
        one, other = make(stack(), SIGNS, 2.0), make(stack(), SIGNS, np.full(M, 2.0))
        assert one.evaluate(WEIGHTS).value == other.evaluate(WEIGHTS).value
    one = EpsilonInsensitiveLoss(stack(), TARGETS, 2.0, 0.1)
    other = EpsilonInsensitiveLoss(stack(), TARGETS, np.full(M, 2.0), 0.1)
    assert one.evaluate(WEIGHTS).value == other.evaluate(WEIGHTS).value


def test_starting_from_the_last_point_changes_nothing_but_the_work():
    for make in (HingeLoss, SquaredHingeLoss):
        warm = make(stack(), SIGNS, 20.0)
        for first in np.linspace(0.1, 0.9, 5):
            weights = np.array([first, 1 - first])
            cold = make(stack(), SIGNS, 20.0).evaluate(weights)
            point = warm.evaluate(weights)
            assert point.value == pytest.approx(cold.value, rel=3e-8)
            assert point.slack <= 1e-8 * point.value


def test_a_raised_inverse_penalty_stays_in_the_domain():
    matrices = 1e12 * np.array([np.eye(len(SIGNS)), np.ones((len(SIGNS), len(SIGNS)))])
    loss = JointSquaredHingeLoss(KernelStack.from_arrays(matrices), SIGNS)
    asked = np.array([0.0, 0.5, 0.5])
    assert loss.evaluate(asked).weights.sum() > 100.0
    domain = lp_domain(1.0)
    bounded = loss.within(domain.gauge)
    point = bounded.evaluate(asked)
    assert domain.gauge(point.weights) == pytest.approx(1.0, abs=1e-12)
    assert "the most that rounding errors allow" in bounded.note(point)
    # Kernels are those of the scaled weights.
    again = bounded.evaluate(point.weights)
    assert again.value == pytest.approx(point.value, rel=1e-6)
