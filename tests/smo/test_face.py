"""Linear systems of free variables, and steps within bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels.smo.program import Face, cholesky, min_curvature, solve_factored, step_within


def gram(m, rank, seed=0):
    X = np.random.default_rng(seed).normal(size=(m, rank))
    return X @ X.T


@pytest.mark.parametrize("rank", [3, 20])
def test_a_factor_solves_the_system_of_its_matrix(rank):
    K = gram(20, rank)
    right = K @ np.random.default_rng(1).normal(size=(20, 2))
    factor = cholesky(K.copy(), float(np.diag(K).mean()))
    np.testing.assert_allclose(K @ solve_factored(factor, right), right, atol=1e-9)


def test_an_indefinite_matrix_has_no_factor():
    assert cholesky(np.diag([1.0, -1e-3]), 1.0) is None


@pytest.mark.parametrize("centred", [False, True])
def test_a_face_solves_the_equations_of_its_free_variables(centred):
    m, free = 12, np.array([0, 3, 4, 7, 11])
    K, ridge = gram(m, m), np.linspace(0.1, 1.0, m)
    if centred:
        projection = np.eye(m) - 1.0 / m
        K = projection @ K @ projection
    right = np.random.default_rng(2).normal(size=(5, 3))
    bordered = np.block(
        [[K[np.ix_(free, free)] + np.diag(ridge[free]), np.ones((5, 1))], [np.ones(5), 0.0]]
    )
    expected = np.linalg.solve(bordered, np.vstack([right, np.zeros((1, 3))]))[:5]
    np.testing.assert_allclose(Face.of(K, ridge, free).solve(right), expected, atol=1e-10)


def test_a_kernel_positive_definite_only_on_vectors_of_sum_zero_has_a_face():
    K = gram(6, 6) - 50.0
    assert np.linalg.eigvalsh(K)[0] < -1.0
    x = Face.of(K, np.zeros(6), np.arange(6)).solve(np.eye(6)[:, :1])
    assert x.sum() == pytest.approx(0.0, abs=1e-12)
    residual = K @ x - np.eye(6)[:, :1]
    np.testing.assert_allclose(residual, residual.mean(), atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 1.0))
def test_steps_end_at_the_first_bound(seed, longest):
    rng = np.random.default_rng(seed)
    lower, upper = -rng.random(5), np.where(rng.random(5) < 0.3, np.inf, rng.random(5))
    step = rng.normal(size=5) * (rng.random(5) < 0.8)
    moved, length = step_within(np.zeros(5), step, lower, upper, longest)
    assert np.all((lower <= moved) & (moved <= upper))
    np.testing.assert_allclose(moved, length * step, rtol=1e-12, atol=1e-15)
    assert length == longest or np.any((moved == lower) | (moved == upper))
    assert 0.0 <= length <= longest


def test_curvatures_are_compared_with_the_diagonal():
    assert 0.0 < min_curvature(np.zeros(3)) < 1e-300
    assert min_curvature(np.array([1.0, 1e6])) == pytest.approx(1e-6)
