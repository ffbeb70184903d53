"""PolynomialCombination: gradients, projections, limits, and what a descent proves."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA, KernelStack, MKRidge
from manykernels.baselines import PolynomialCombination
from manykernels.baselines.polynomial import Ball, PolynomialDescent, PolynomialRidge
from manykernels.kernels import RBF, Denoise, Linear
from tests.baselines.rule_problems import (
    N_TEST,
    N_TRAIN,
    PAIRS,
    STACK,
    TEST_STACK,
    X_TEST,
    T,
    X,
    Y,
)
from tests.differences import assert_derivatives
from tests.problems import random_gram_matrices, slow

few = settings(deadline=None, max_examples=20)
TIGHT = {"tol": 1e-12, "max_iter": 2000}


def objective(degree, seed=0, weighted=False, n_rows=15, reg=0.7):
    rng = np.random.default_rng(seed)
    stack = KernelStack.from_arrays(random_gram_matrices(3, n_rows, seed))
    weights = rng.uniform(0.3, 2.0, n_rows) if weighted else None
    targets = rng.normal(size=(n_rows, 2))
    targets -= np.average(targets, axis=0, weights=weights)
    return PolynomialRidge(stack, targets, reg, weights, degree)


# -- objective -------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient(degree, weighted):
    problem = objective(degree, weighted=weighted)
    mu = np.array([0.2, 0.0, 0.9])
    point = problem.evaluate(mu + 0.1)
    assert_derivatives(point.gradient, lambda m: problem.evaluate(m).value, mu + 0.1)
    assert np.all(point.gradient <= 0)


@pytest.mark.parametrize("degree", [2, 3])
def test_the_objective_by_hand(degree):
    """``λ yᵀ(K_μ + λI)⁻¹y`` with the sum over all products of kernels."""
    problem, mu = objective(degree), np.array([0.5, 0.3, 0.1])
    kernels = [problem.stack.kernel(j) for j in range(3)]
    K = np.zeros_like(kernels[0])
    for which in np.ndindex(*[3] * degree):
        K += np.prod([mu[j] * kernels[j] for j in which], axis=0)
    P = np.eye(len(K)) - 1 / len(K)
    A = P @ K @ P + problem.reg * np.eye(len(K))
    expected = problem.reg * np.sum(problem.targets * np.linalg.solve(A, problem.targets))
    assert_allclose(problem.evaluate(mu).value, expected, rtol=1e-10)


# -- the set of weights ----------------------------------------------------------------------


@few
@given(
    seed=st.integers(0, 10_000),
    norm=st.sampled_from([1, 2]),
    center=st.sampled_from([0.0, 0.3, 2.0]),
    radius=st.floats(0.05, 3.0),
)
def test_projections_are_nearest(seed, norm, center, radius):
    ball, rng = Ball(norm, center, radius), np.random.default_rng(seed)
    z = rng.normal(scale=3.0, size=6)
    found = ball.project(z)
    assert np.all(found >= 0)
    assert np.linalg.norm(found - center, norm) <= radius * (1 + 1e-12)
    assert_allclose(ball.project(found), found, atol=1e-12)
    # The inequality that tells the nearest point of a convex set: no point lies beyond it.
    others = np.maximum(rng.normal(center, radius, size=(200, 6)), 0.0)
    inside = others[np.linalg.norm(others - center, norm, axis=1) <= radius]
    shrunk = center + (others - center) * (
        radius / np.maximum(radius, np.linalg.norm(others - center, norm, axis=1))[:, None]
    )
    for point in (*inside, *np.maximum(shrunk, 0.0)):
        assert (z - found) @ (point - found) <= 1e-9


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("center", [0.0, 0.4])
def test_projections_are_those_of_a_conic_solver(norm, center):
    z = np.array([1.5, -0.7, 0.6, 0.1, 2.0])
    mu = cp.Variable(5)
    constraints = [mu >= 0, cp.norm(mu - center, norm) <= 0.8]
    best = cp.Problem(cp.Minimize(cp.norm(mu - z)), constraints).solve(solver=cp.CLARABEL)
    found = Ball(norm, center, 0.8).project(z)
    assert_allclose(np.linalg.norm(found - z), best, rtol=1e-7)


# -- descent ---------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [2, *slow(3)])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("center", [0.0, 0.5])
def test_a_descent_is_monotone_and_ends_at_a_stationary_point(degree, norm, center):
    problem, ball = objective(degree, weighted=True), Ball(norm, center, 1.0)
    descent = PolynomialDescent.run(problem, ball, observer=lambda step: False, **TIGHT)
    values = [step.certificate.objective for step in descent.history]
    assert np.all(np.diff(values) <= 0)
    assert descent.certificate.converged
    assert descent.certificate.gradient_norm < 1e-5
    # No direction into the set leads down.
    point, rng = descent.point, np.random.default_rng(0)
    for other in rng.normal(center, 1.0, size=(100, 3)):
        toward = ball.project(other) - point.weights
        assert point.gradient @ toward >= -1e-5 * point.value
    assert_allclose(np.linalg.norm(point.weights - center, norm), 1.0)


def test_no_point_of_a_grid_is_lower():
    """In two weights the whole boundary can be seen, on which the minimum lies."""
    problem = objective(2, seed=3)
    problem.stack = problem.stack.select([0, 2])
    ball = Ball(2, 0.0, 1.0)
    found = PolynomialDescent.run(problem, ball, observer=lambda step: False, **TIGHT).point.value
    angles = np.linspace(0, np.pi / 2, 200)
    values = [problem.evaluate(np.array([np.cos(a), np.sin(a)])).value for a in angles]
    assert found <= min(values) * (1 + 1e-9)


# -- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [(MKRidge, T), pytest.param(MKFDA, Y, marks=pytest.mark.slow)],
    ids=["values", "classes"],
)
def test_degree_one_is_the_weighted_sum(p, estimator, y):
    machine = estimator(reg=0.5, tol=1e-10)
    model = PolynomialCombination(PAIRS, estimator=machine, degree=1, norm=p, **TIGHT).fit(X, y)
    expected = estimator(PAIRS, p=p, reg=0.5, tol=1e-10, normalize="multiplicative").fit(X, y)
    assert_allclose(model.certificate_.objective, expected.certificate_.primal, rtol=1e-9)
    assert_allclose(model.weights_, expected.weights_, atol=1e-4)


def test_one_kernel_is_ridge_regression_on_its_square():
    kernel = [("near", RBF(0.3))]
    model = PolynomialCombination(kernel, normalize=None, estimator=MKRidge(reg=0.3)).fit(X, T)
    assert_allclose(model.weights_, [1.0])
    K, block = RBF(0.6).fit(X)(X), RBF(0.6).fit(X)(X_TEST, X)
    alone = MKRidge("precomputed", normalize=None, reg=0.3).fit(K, T)
    assert_allclose(model.predict(X_TEST), alone.predict(block), rtol=1e-8)
    P = np.eye(N_TRAIN) - 1 / N_TRAIN
    rows = block - K.mean(axis=0)
    ridge = KernelRidge(alpha=0.3, kernel="precomputed").fit(P @ K @ P, T - T.mean())
    assert_allclose(model.predict(X_TEST), ridge.predict(rows @ P) + T.mean(), rtol=1e-8)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (MKRidge(reg=0.2), T),
        (MKRidge(), np.column_stack([T, 100 * X[:, 2]])),
        (MKFDA(), Y),
        pytest.param(MKFDA(reg=0.2, class_weight="balanced"), Y, marks=pytest.mark.slow),
        pytest.param(MKFDA(), Y > 0, marks=pytest.mark.slow),
    ],
    ids=["one target", "several", "classes", "balanced", "two classes"],
)
@pytest.mark.parametrize("weighted", [False, *slow(True)])
def test_the_machine_has_the_objective_that_was_minimised(estimator, y, weighted):
    counts = np.random.default_rng(0).integers(0, 3, N_TRAIN) if weighted else None
    model = PolynomialCombination(PAIRS, estimator=estimator).fit(X, y, counts)
    assert_allclose(model.certificate_.objective, model.estimator_.certificate_.primal, rtol=1e-9)
    assert model.history_["objective"][-1] == model.certificate_.objective
    assert np.all(np.diff(model.history_["objective"]) <= 0)
    on_stack = PolynomialCombination("precomputed", estimator=estimator).fit(STACK, y, counts)
    assert_allclose(on_stack.weights_, model.weights_, rtol=1e-5, atol=1e-7)
    assert len(on_stack.predict(TEST_STACK)) == N_TEST


def test_products_of_columns():
    """What no sum of kernels of one column each can follow."""
    kernels = {f"column{k}": Linear().on([k]) for k in range(5)}
    y, y_test = X[:, 0] * X[:, 1], X_TEST[:, 0] * X_TEST[:, 1]
    model = PolynomialCombination(kernels, estimator=MKRidge(reg=0.1)).fit(X, y)
    assert model.score(X_TEST, y_test) > 0.95
    assert set(np.argsort(model.weights_)[-2:]) == {0, 1}
    assert MKRidge(kernels).fit(X, y).score(X_TEST, y_test) < 0.2
    labels = (y > 0).astype(int)
    model = PolynomialCombination(kernels, estimator=MKFDA()).fit(X, labels)
    assert model.score(X_TEST, y_test > 0) > 0.85
    assert MKFDA(kernels).fit(X, labels).score(X_TEST, y_test > 0) < 0.7


# -- fits that end early, and refusals -------------------------------------------------------


def test_stopping_early_warns_and_says_so():
    with pytest.warns(
        ConvergenceWarning, match="PolynomialCombination stopped.*max_iter"
    ) as caught:
        model = PolynomialCombination(PAIRS, max_iter=1, tol=1e-12).fit(X, T)
    assert caught[0].filename == __file__
    assert not model.certificate_.converged
    assert model.n_iter_ == 1
    assert "weights" in model.certificate_.claim


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (MKFDA(reg="joint"), "'joint'.*must be a number"),
        (MKFDA(denoise=Denoise()), "estimator.denoise must be None"),
    ],
)
def test_machines_with_another_objective(estimator, message):
    with pytest.raises(ValueError, match=message):
        PolynomialCombination(PAIRS, estimator=estimator).fit(X, Y)


def test_a_search_over_the_set_and_the_machine():
    grid = {"radius": [0.1, 10.0], "estimator__reg": [0.1, 10.0]}
    search = GridSearchCV(PolynomialCombination(PAIRS, estimator=MKRidge()), grid, cv=3).fit(X, T)
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
