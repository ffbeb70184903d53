"""Kernels looked up by row numbers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from manykernels.kernels import FromDistances, Linear, Precomputed

POINTS = np.random.default_rng(0).normal(size=(8, 3))
GRAM = POINTS @ POINTS.T
DISTANCES = np.abs(POINTS[:, :1] - POINTS[:, 0])
ROWS = np.arange(8)[:, None]


def test_entries_are_looked_up():
    train, test = ROWS[[1, 4, 6]], ROWS[[0, 1]]
    assert_array_equal(Precomputed(GRAM).fit(train)(test, train), GRAM[[0, 1]][:, [1, 4, 6]])


def test_row_numbers_may_be_floats_and_one_column_of_many():
    X = pd.DataFrame({"row": [3.0, 5.0], "colour": ["red", "blue"]})
    assert_array_equal(Precomputed(GRAM).on("row").fit(X)(X), GRAM[np.ix_([3, 5], [3, 5])])


@pytest.mark.parametrize("kernel", [Precomputed(GRAM), FromDistances(DISTANCES)])
def test_clone_shares_the_matrix(kernel):
    matrix = kernel._matrix_parameter
    assert getattr(clone(kernel), matrix) is getattr(kernel, matrix)
    assert getattr(clone(kernel + Linear()).left, matrix) is getattr(kernel, matrix)
    assert kernel.on([0]).fit(ROWS).matrix_ is getattr(kernel, matrix)


def test_mean_distance_of_training_rows_only():
    kernel = FromDistances(DISTANCES).fit(ROWS[2:6])
    assert kernel.eta_ == pytest.approx(DISTANCES[2:6, 2:6].mean())
    assert_allclose(kernel(ROWS), np.exp(-DISTANCES / kernel.eta_))


def test_equal_training_rows_have_scale_one():
    assert FromDistances(np.zeros((3, 3))).fit([[0], [1]]).eta_ == 1.0


def test_mean_distance_waits_for_fit():
    with pytest.raises(NotFittedError, match="takes its scale from training rows"):
        FromDistances(DISTANCES)(ROWS)
    assert_allclose(FromDistances(DISTANCES, scale=2.0)(ROWS), np.exp(-DISTANCES / 2))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[8]], "Precomputed: row number 8 is out of range for gram with 8 rows"),
        ([[-1]], "Precomputed: row number -1 is out of range"),
        ([[0.5]], "Precomputed: row numbers must be integers, got 0.5"),
        ([[0, 1]], "Precomputed: X must be one column of row numbers, got 2 columns"),
        ([["first"]], "Precomputed: could not convert"),
    ],
)
def test_wrong_row_numbers(X, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(GRAM).fit(X)
    with pytest.raises(ValueError, match=message):
        Precomputed(GRAM).fit(ROWS)(ROWS, X)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (GRAM[:, :3], r"Precomputed: gram must be square, got shape \(8, 3\)"),
        (np.triu(GRAM), "'Precomputed' is not symmetric"),
        (np.where(np.eye(8), np.nan, GRAM), "gram contains NaN"),
    ],
)
def test_wrong_matrices_are_refused_fitted_or_not(matrix, message):
    with pytest.raises(ValueError, match=message):
        Precomputed(matrix).fit(ROWS[:1])
    with pytest.raises(ValueError, match=message):
        Precomputed(matrix)(ROWS[:1])


def test_rounding_asymmetry_is_accepted_and_removed():
    uneven = GRAM.copy()
    uneven[0, 1] *= 1 + 1e-12
    K = Precomputed(uneven).fit(ROWS)(ROWS)
    assert_array_equal(K, K.T)


def test_negative_distances_are_located():
    distances = DISTANCES.copy()
    distances[2, 5] = distances[5, 2] = -1.0
    with pytest.raises(ValueError, match="negative, got -1 at row 2, column 5"):
        FromDistances(distances).fit(ROWS)


def test_sparse_row_numbers_are_refused():
    with pytest.raises(TypeError, match="Precomputed: Sparse data"):
        Precomputed(GRAM).fit(sparse.csr_array(ROWS))


@pytest.mark.parametrize("scale", [0.0, "median", -1])
def test_wrong_scale(scale):
    with pytest.raises(ValueError, match="'scale' parameter of FromDistances"):
        FromDistances(DISTANCES, scale=scale).fit(ROWS)
