"""Kernels of categories and of fingerprints."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import Binarizer

from manykernels.kernels import Categorical, Jaccard, Tanimoto

COLUMNS = {"colour": ["red", "blue", "red"], "doors": [2, 4, 4], "old": [True, True, False]}
EXPECTED = np.array([[3, 1, 1], [1, 3, 1], [1, 1, 3]]) / 3
ROWS = [list(row) for row in zip(*COLUMNS.values(), strict=True)]
frames = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])

bits = arrays(np.int8, (6, 4), elements=st.integers(0, 1))
categories = arrays(object, (6, 3), elements=st.sampled_from(["a", "1", 1, 2.5, True, ("a", 1)]))


# -- categorical -----------------------------------------------------------------------------


@given(categories)
def test_share_of_equal_entries(X):
    K = Categorical()(X)
    assert_allclose(
        K, [[np.mean([a == b for a, b in zip(x, z, strict=True)]) for z in X] for x in X]
    )
    assert_array_equal(Categorical()(X[:2], X[2:]), K[:2, 2:])
    assert np.linalg.eigvalsh(K)[0] > -1e-12


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns, dtype="category"),
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        lambda columns: pd.DataFrame(columns, dtype=object),
        pl.DataFrame,
        lambda columns: pl.DataFrame(columns).with_columns(pl.col("colour").cast(pl.Categorical)),
        lambda columns: np.array(ROWS, dtype=object),
        lambda columns: np.array(ROWS),
        lambda columns: ROWS,
    ],
)
def test_every_container_of_categories(convert):
    X = convert(COLUMNS)
    assert_array_equal(Categorical().fit(X)(X), EXPECTED)
    assert_array_equal(Categorical().on([0, 1, 2]).fit(X)(X), EXPECTED)


def test_numbers_in_a_list_stay_numbers():
    assert_array_equal(Categorical().on([0])([[1, "a"], [1.0, "b"]]), np.ones((2, 2)))


def test_kinds_of_numbers_are_equal_and_text_is_not():
    X = pd.DataFrame({"a": [1]})
    assert Categorical()(X, X.astype(float))[0, 0] == 1.0
    assert Categorical()(X, X.astype(str))[0, 0] == 0.0


def test_new_categories_equal_none():
    X = pd.DataFrame(COLUMNS)
    assert_array_equal(Categorical().fit(X)(X.assign(colour="new"), X)[0], [2 / 3, 1 / 3, 0])


@frames
@pytest.mark.parametrize("values", [["a", None, "b"], [1, None, 2], [1.0, float("nan"), 2.0]])
def test_missing_values_are_named(frame, values):
    X = frame({**COLUMNS, "odd": values})
    message = r"Categorical: X has a missing value .* at row 1, column 'odd': impute it"
    with pytest.raises(ValueError, match=message):
        Categorical().fit(X)
    assert_array_equal(Categorical().on(list(COLUMNS)).fit(X)(X), EXPECTED)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, np.float32("nan")], ids=repr)
def test_missing_objects_are_named(missing):
    X = np.array([["a", "b"], ["c", missing]], dtype=object)
    with pytest.raises(ValueError, match="at row 1, selected column 1"):
        Categorical()(X)
    for dtype in ("category", "Int64", "string"):
        column = pd.Series([None, None], dtype=dtype)
        with pytest.raises(ValueError, match="at row 0, column 'a'"):
            Categorical()(pd.DataFrame({"a": column}))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"a": [["list"], ["b"]]}), TypeError, "column 'a' does not hold categories"),
        (sparse.csr_array(np.eye(2)), TypeError, "Categorical: Sparse data was passed"),
        (["a", "b"], ValueError, "Categorical: Expected 2D array"),
        (np.empty((2, 0)), ValueError, "0 feature"),
        (np.ma.masked_array(np.eye(2), np.eye(2)), ValueError, "masked entry at 0, 0"),
    ],
)
def test_no_tables_of_categories(X, error, message):
    with pytest.raises(error, match=message):
        Categorical().fit(X)


# -- Jaccard ---------------------------------------------------------------------------------


@given(bits)
def test_shared_bits_over_all_bits(X):
    K = Jaccard()(X)
    naive = [[(x & z).sum() / (x | z).sum() if (x | z).any() else 1.0 for z in X] for x in X]
    assert_allclose(K, naive, rtol=1e-15)
    assert_array_equal(Jaccard()(X[:2], X[2:]), K[:2, 2:])
    assert np.linalg.eigvalsh(K)[0] > -1e-12


FINGERPRINTS = np.random.default_rng(0).integers(2, size=(6, 5))
FINGERPRINTS[2] = 0


@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.DataFrame, sparse.csr_array, np.ndarray.tolist]
)
@pytest.mark.parametrize("dtype", [bool, np.int8, float])
def test_every_container_of_bits(convert, dtype):
    X = convert(FINGERPRINTS.astype(dtype))
    assert_array_equal(Jaccard().fit(X)(X), Jaccard()(FINGERPRINTS))
    assert_array_equal(Jaccard()(X, FINGERPRINTS), Jaccard()(FINGERPRINTS))


def test_entries_that_a_sparse_matrix_stores_in_parts_or_for_nothing():
    X = sparse.csr_array(([0.5, 0.5, 0.0, 1.0], [0, 0, 1, 2], [0, 3, 4]), shape=(2, 3))
    assert_array_equal(Jaccard()(X), np.eye(2))
    assert X.nnz == 4


def test_the_chemists_name():
    assert Tanimoto is Jaccard


@pytest.mark.parametrize(
    ("convert", "column"),
    [
        (np.asarray, "selected column 3"),
        (sparse.csc_array, "selected column 3"),
        (lambda X: pd.DataFrame(X, columns=list("abcde")), "column 'd'"),
        (lambda X: pl.DataFrame(X, schema=list("abcde")), "column 'd'"),
    ],
)
@pytest.mark.parametrize("value", [2, -1, 0.5])
def test_other_numbers_are_named(convert, column, value):
    X = FINGERPRINTS.astype(float)
    X[4, 3] = value
    message = f"Jaccard: entries must be 0 or 1, got {value} at row 4, {column}. .*Binarizer"
    with pytest.raises(ValueError, match=message):
        Jaccard().fit(convert(X))


def test_the_way_out_for_counts():
    counts = np.random.default_rng(0).poisson(0.7, size=(6, 5))
    assert_array_equal(Jaccard().after(Binarizer()).fit(counts)(counts), Jaccard()(counts > 0))


def test_text_is_refused():
    with pytest.raises(ValueError, match=re.escape("column 'a' (")):
        Jaccard().fit(pd.DataFrame({"a": ["x", "y"]}))


@pytest.mark.parametrize("width", [0.3, 1.0, 5.0])
def test_a_width_makes_a_gaussian_of_indicators(width):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("abc"), 30) for name in "uvw"})
    indicators = pd.get_dummies(X).to_numpy(float)
    # Two indicators differ where an entry does, and the mean over three columns is taken.
    expected = rbf_kernel(indicators, gamma=1.0 / (3.0 * width**2))
    kernel = Categorical(width=width)
    np.testing.assert_allclose(kernel(X), expected)
    np.testing.assert_array_equal(kernel.diag(X), np.ones(30))
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12


@pytest.mark.parametrize("width", [0, -1.0, "wide"])
def test_widths_are_positive(width):
    with pytest.raises(ValueError, match="width"):
        Categorical(width=width)([["a"], ["b"]])
