"""Alignment: against brute force and a conic solver, and the laws of centred alignment."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import MKFDA, MKSVC, MKSVR, KernelStack, MKRidge
from manykernels.baselines import Alignment, Average
from manykernels.baselines.alignment import Alignments
from tests.baselines.rule_problems import N_TRAIN, PAIRS, STACK, TEST_STACK, X_TEST, T, X, Y
from tests.problems import random_gram_matrices

seeds = st.integers(0, 10_000)
# Of the conic solver, whose default leaves errors of 1e-5 in the weights.
PRECISE = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
few = settings(deadline=None, max_examples=15)


def centred(matrix, weights):
    """The matrix with repeated samples, centred; by definition."""
    P = np.eye(len(matrix)) - np.outer(np.ones(len(matrix)), weights / weights.sum())
    return P @ matrix @ P.T


def cosine(one, two, weights):
    measure = np.outer(weights, weights)
    inner, first, second = (
        np.sum(measure * a * b) for a, b in ((one, two), (one, one), (two, two))
    )
    return inner / np.sqrt(first * second)


class Problem:
    def __init__(self, seed, n_kernels=5, n_rows=20, weighted=False):
        rng = np.random.default_rng(seed)
        self.matrices = random_gram_matrices(n_kernels, n_rows, seed)
        self.weights = rng.uniform(0.2, 3.0, n_rows) if weighted else np.ones(n_rows)
        targets = rng.normal(size=(n_rows, 2))
        targets[:, 0] += 3 * self.matrices[0][:, 0]
        self.targets = targets - np.average(targets, axis=0, weights=self.weights)
        stack = KernelStack.from_arrays(self.matrices)
        self.aligned = Alignments.of(stack, self.targets, self.weights if weighted else None)
        self.kernels = [centred(K, self.weights) for K in self.matrices]
        self.goal = self.targets @ self.targets.T

    def alignment(self, weights):
        total = sum(w * K for w, K in zip(weights, self.kernels, strict=True))
        return cosine(total, self.goal, self.weights)


# -- the mathematics -------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_alignments_by_definition(weighted):
    problem = Problem(0, weighted=weighted)
    found = problem.aligned
    single = [cosine(K, problem.goal, problem.weights) for K in problem.kernels]
    assert_allclose(found.with_targets, single, rtol=1e-10)
    pairs = [[cosine(A, B, problem.weights) for B in problem.kernels] for A in problem.kernels]
    assert_allclose(found.cosines, pairs, rtol=1e-10)
    weights = np.random.default_rng(0).random(5)
    assert_allclose(found.of_sum(weights), problem.alignment(weights), rtol=1e-10)
    if not weighted:
        stack = KernelStack.from_arrays(problem.matrices)
        assert_allclose(found.cosines, stack.alignment(centered=True), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_joint_weights_are_those_of_the_quadratic_program(seed, weighted):
    problem = Problem(seed, weighted=weighted)
    measure = np.sqrt(np.outer(problem.weights, problem.weights))
    flat = np.array([(measure * K).ravel() for K in problem.kernels])
    goal = (measure * problem.goal).ravel()
    # Kernels of length one, for the accuracy of the solver; weights are scaled back.
    lengths = np.linalg.norm(flat, axis=1)
    flat, goal = flat / lengths[:, None], goal / np.linalg.norm(goal)
    v = cp.Variable(len(flat))
    quadratic = cp.quad_form(v, cp.psd_wrap(flat @ flat.T))
    program = cp.Problem(cp.Minimize(quadratic - 2 * v @ (flat @ goal)), [v >= 0])
    program.solve(solver=cp.CLARABEL, **PRECISE)
    expected = v.value / lengths
    assert_allclose(problem.aligned.joint(), expected / expected.sum(), atol=1e-6)


def test_joint_weights_by_brute_force():
    problem = Problem(3, n_kernels=3)
    best = problem.alignment(problem.aligned.joint())
    grid = np.linspace(0, 1, 61)
    lengths = problem.aligned.norms
    points = [(a, b, 1 - a - b) for a in grid for b in grid if a + b <= 1]
    found = max(problem.alignment(np.array(point) / lengths) for point in points)
    assert found <= best + 1e-12
    assert found > best - 1e-3


@pytest.mark.slow
@few
@given(seed=seeds, weighted=st.booleans())
def test_joint_is_at_least_any_other(seed, weighted):
    problem = Problem(seed, weighted=weighted)
    joint, independent = problem.aligned.joint(), problem.aligned.independent()
    best = problem.aligned.of_sum(joint)
    assert np.all(joint >= 0)
    assert np.all(independent >= 0)
    assert_allclose([joint.sum(), independent.sum()], 1.0)
    rng = np.random.default_rng(seed)
    others = [independent, *np.eye(5), *rng.random((20, 5))]
    assert best >= max(problem.aligned.of_sum(other) for other in others) - 1e-12
    # Small changes of the weights that are not zero do not help: it is a stationary point.
    assert best <= 1.0


@pytest.mark.slow
@few
@given(seed=seeds, exponents=st.lists(st.floats(-5, 5), min_size=5, max_size=5))
def test_scales_of_kernels_do_not_matter_to_the_joint_sum(seed, exponents):
    problem, scale = Problem(seed), 10.0 ** np.array(exponents)
    stack = KernelStack.from_arrays(problem.matrices * scale[:, None, None])
    scaled = Alignments.of(stack, problem.targets, None)
    assert_allclose(scaled.with_targets, problem.aligned.with_targets, rtol=1e-8)
    expected = problem.aligned.joint() / scale
    assert_allclose(scaled.joint(), expected / expected.sum(), rtol=1e-6, atol=1e-9)


def test_weights_of_samples_are_counts():
    problem, counts = Problem(1), np.random.default_rng(2).integers(1, 4, 20)
    rows = np.repeat(np.arange(20), counts)
    targets = problem.targets - np.average(problem.targets, axis=0, weights=counts)
    stack = KernelStack.from_arrays(problem.matrices)
    weighted = Alignments.of(stack, targets, counts.astype(float))
    repeated = Alignments.of(stack[np.ix_(rows, rows)], targets[rows], None)
    assert_allclose(weighted.with_targets, repeated.with_targets, rtol=1e-10)
    assert_allclose(weighted.joint(), repeated.joint(), rtol=1e-8, atol=1e-12)


def test_constant_equal_and_orthogonal_kernels():
    problem = Problem(0, n_kernels=2)
    first, second = problem.matrices
    stack = KernelStack.from_arrays([first, np.ones_like(first), first, second])
    aligned = Alignments.of(stack, problem.targets, None)
    joint = aligned.joint()
    assert joint[1] == aligned.with_targets[1] == 0.0
    # Of two equal kernels it does not matter which has the weight.
    assert_allclose([joint[0] + joint[2], joint[3]], problem.aligned.joint(), rtol=1e-8)
    nothing = Alignments.of(stack, np.zeros_like(problem.targets), None)
    assert_array_equal(nothing.joint(), np.full(4, 0.25))
    assert_array_equal(nothing.independent(), np.full(4, 0.25))
    assert nothing.of_sum(nothing.joint()) == 0.0


# -- the estimator ---------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", None])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (MKSVC(), Y),
        pytest.param(MKFDA(), Y, marks=pytest.mark.slow),
        pytest.param(MKSVR(), T, marks=pytest.mark.slow),
        pytest.param(MKRidge(), T, marks=pytest.mark.slow),
    ],
    ids=["MKSVC", "MKFDA", "MKSVR", "MKRidge"],
)
def test_targets_of_classes_and_values(estimator, y, normalize):
    goal = np.equal.outer(y, y).astype(float) if y is Y else np.outer(y - y.mean(), y - y.mean())
    goal = centred(goal, np.ones(N_TRAIN))
    model = Alignment(PAIRS, estimator=estimator, normalize=normalize).fit(X, y)
    kernels = np.moveaxis(np.array(STACK), -1, 0)
    if normalize == "spherical":
        roots = np.sqrt(np.einsum("jii->ji", kernels))
        kernels = kernels / (roots[:, :, None] * roots[:, None, :])
    kernels = [centred(K, np.ones(N_TRAIN)) for K in kernels]
    expected = [cosine(K, goal, np.ones(N_TRAIN)) for K in kernels]
    assert_allclose(model.alignments_, expected, rtol=1e-8)
    assert model.alignment_ >= max(expected)
    on_stack = Alignment("precomputed", estimator=estimator, normalize=normalize).fit(STACK, y)
    assert_allclose(on_stack.weights_, model.weights_, rtol=1e-7, atol=1e-12)
    assert_allclose(on_stack.predict(TEST_STACK), model.predict(X_TEST), rtol=1e-7)
    independent = Alignment(PAIRS, estimator=estimator, normalize=normalize, method="independent")
    independent.fit(X, y)
    assert_allclose(independent.weights_, expected / np.sum(expected), rtol=1e-8)
    assert independent.alignment_ <= model.alignment_


def test_two_classes_are_the_outer_product_of_signs():
    y = np.where(Y == 0, -1.0, 1.0)
    model = Alignment(PAIRS).fit(X, y)
    regression = Alignment(PAIRS, estimator=MKSVR()).fit(X, y)
    assert_allclose(model.alignments_, regression.alignments_, rtol=1e-10)
    assert_allclose(model.weights_, regression.weights_, rtol=1e-8)


def test_several_targets_count_alike_whatever_their_units():
    several = np.column_stack([T, X[:, 2]])
    model = Alignment(PAIRS, estimator=MKRidge()).fit(X, several)
    scaled = Alignment(PAIRS, estimator=MKRidge()).fit(X, several * [1.0, 1e4] + [5.0, -7.0])
    assert_allclose(scaled.weights_, model.weights_, rtol=1e-7)


def test_equal_kernels_leave_nothing_to_align():
    kernels = [("one", PAIRS[0][1]), ("two", PAIRS[0][1])]
    model = Alignment(kernels, method="independent").fit(X, Y)
    assert_allclose(model.weights_, 0.5)
    mean = Average(kernels).fit(X, Y)
    assert_allclose(model.decision_function(X_TEST), mean.decision_function(X_TEST))
