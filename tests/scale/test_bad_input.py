"""Rows that cannot be used are refused, with the block, the row among all rows, and a way out."""

from __future__ import annotations

import sys
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from manykernels import MKFDA, Nystrom
from manykernels.kernels import RBF
from manykernels.scale.blocks import map_blocks, row_blocks
from manykernels.scale.rows import Block, Reading
from tests.scale.containers import add


def read(X, y=None, sample_weight=None, **how):
    """The number of rows, in one pass with blocks of ten rows."""
    blocks = row_blocks(X, y, sample_weight, block_size=10, **how)
    return blocks.reduce(lambda n_rows, block: (n_rows or 0) + len(block), add)


def read_pieces(*tables, targets=(None, None), weights=(None, None)):
    """Blocks of tables, as they would come out of one container."""
    pieces = [
        Block(table, y, weight, 2 * number, number)
        for number, (table, y, weight) in enumerate(zip(tables, targets, weights, strict=True))
    ]
    return list(Reading().blocks(pieces))


def spoilt(value, row=23, column=1, n_rows=30):
    X = np.zeros((n_rows, 3))
    X[row, column] = value
    return X


# -- entries ---------------------------------------------------------------------------------


def frames_of_dask(X):
    return dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)


@pytest.mark.parametrize(
    ("made", "column"),
    [
        (np.array, "column 1"),
        (sparse.csr_matrix, "column 1"),
        (lambda X: da.from_array(X, chunks=(10, 2)), "column 1"),
        (lambda X: pd.DataFrame(X, columns=list("abc")), "column 'b'"),
        (lambda X: pl.DataFrame(X, schema=list("abc")), "column 'b'"),
        (lambda X: pd.DataFrame(X, columns=list("abc")).assign(t="text"), "column 'b'"),
        (frames_of_dask, "column 'b'"),
    ],
)
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinite value")])
def test_an_entry_that_is_not_finite(made, column, value, word):
    with pytest.raises(ValueError, match="Block 2, which begins at row 20") as raised:
        read(made(spoilt(value)))
    assert word in str(raised.value)
    assert f"at row 23, {column}" in str(raised.value)


def test_missing_numbers_if_they_are_allowed():
    assert read(spoilt(np.nan), allow_nan=True) == 30
    with pytest.raises(ValueError, match="infinite"):
        read(spoilt(np.inf), allow_nan=True)


def test_missing_numbers_of_other_types():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "t": ["x", None]})
    with pytest.raises(ValueError, match=r"NaN.*at row 1, column 'a'"):
        read(frame)
    assert read(frame[["t"]]) == 2


def test_an_entry_of_a_view():
    tables = {"p": np.zeros((30, 1)), "q": spoilt(np.inf)}
    message = "Block 2, which begins at row 20: view 'q': there is an infinite value"
    with pytest.raises(ValueError, match=message):
        read(tables)
    with pytest.raises(ValueError, match=r"view 'q': .*at row 23, column 1"):
        read({name: da.from_array(table, chunks=(10, -1)) for name, table in tables.items()})


def test_a_row_that_lacks_a_view():
    frame = pd.DataFrame({"a": [1.0, np.nan]})
    with pytest.raises(ValueError, match=r"Block 0.*view 'p' is missing for 1 of 2 samples"):
        read({"p": frame, "q": np.ones((2, 1))})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "dates"),
        ([["a", 1.0], ["b", 2.0]], "Tables with text are passed as data frames"),
        (np.ma.masked_less([[1.0, -1.0]], 0), "masked entry"),
        (np.arange(3.0), "Expected 2D array, got 1D array instead"),
        (da.arange(3.0), "Expected 2D array, got 1D array instead"),
        (np.ones((2, 2, 2)), "Expected 2D array, got 3D array instead"),
        (pl.LazyFrame({"a": [1.0]}), "X is lazy"),
    ],
)
def test_bad_tables_of_rows(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read(X)


# -- columns ---------------------------------------------------------------------------------

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (FRAME, FRAME[["a"]], "it has no column 'b' .the first block had 2 columns"),
        (FRAME, FRAME.assign(c=0), "a column 'c' that it had not in the first block"),
        # Strings are of type object before pandas 3.
        (
            FRAME,
            FRAME.assign(b="x"),
            "column 'b' is of type (str|object), but was of type float64",
        ),
        (FRAME, FRAME.to_numpy(), "it is an array, but was a data frame of pandas in the first"),
        (FRAME, pl.DataFrame(dict(FRAME)), "data frame of polars, but was a data frame of pandas"),
        (np.ones((2, 2)), np.ones((2, 3)), "it has 3 columns, but had 2 in the first block"),
        (np.ones((2, 2)), sparse.eye(2).tocsr(), "it is a sparse matrix, but was an array"),
        ({"p": FRAME}, {"q": FRAME}, "it has the views 'q', but the first block had 'p'"),
        ({"p": FRAME}, {"p": FRAME[["a"]]}, "view 'p': it has no column 'b'"),
        ({"p": FRAME}, FRAME, "it has the views none"),
    ],
)
def test_columns_that_are_not_those_of_the_first_block(first, second, message):
    with pytest.raises(ValueError, match=f"Block 1, which begins at row 2: .*{message}"):
        read_pieces(first, second)


def test_partitions_that_are_not_what_dask_was_told():
    frame = dd.from_pandas(FRAME, npartitions=1)
    lying = frame.map_partitions(lambda part: part.assign(b="x"), meta=FRAME)
    with pytest.raises(ValueError, match=r"Block 0.*column 'b' is of type"):
        read(lying)


# -- targets and weights ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["y", "sample_weight"])
@pytest.mark.parametrize("lazy", [False, True])
def test_lengths_that_differ(name, lazy):
    X = da.ones((30, 2), chunks=(10, 2)) if lazy else np.ones((30, 2))
    for n_rows in (29, 31):
        with pytest.raises(ValueError, match=f"inconsistent numbers of samples.*{n_rows}"):
            read(X, **{name: np.ones(n_rows)})
        if lazy:
            with pytest.raises(ValueError, match=f"inconsistent numbers of samples.*{n_rows}"):
                read(X, **{name: da.ones(n_rows)})


def test_lengths_that_differ_within_a_block():
    X = np.ones((2, 1))
    with pytest.raises(ValueError, match=r"Block 1, which begins at row 2: .*2 rows, but y has 3"):
        read_pieces(X, X, targets=(np.ones(2), np.ones(3)))


def test_chunks_that_differ_where_it_is_not_known():
    frame = dd.from_pandas(FRAME, npartitions=1)
    with pytest.raises(ValueError, match=r"'y' has 2 chunks of rows, but 'X' has 1.*frame\.join"):
        read(frame, dd.from_pandas(FRAME, npartitions=2)["a"].clear_divisions())
    longer = dd.from_pandas(pd.Series(np.ones(3)), npartitions=1).to_dask_array()
    with pytest.raises(ValueError, match=r"The chunk that begins at row 0: .*2 rows, but y has 3"):
        read(frame, longer)


def test_views_that_end_at_different_rows():
    long, short = (da.ones((n_rows, 1), chunks=10) for n_rows in (30, 25))
    with pytest.raises(ValueError, match=r"X has 30 rows, but view 'q' has 25"):
        read({"p": long, "q": short})
    with pytest.raises(ValueError, match=r"X has 30 rows, but y has 31"):
        read({"p": long}, np.ones(31))


@pytest.mark.parametrize("target", [np.nan, np.inf, None, pd.NA, pd.NaT])
def test_a_target_that_is_missing(target):
    y = [0.0] * 30
    y[23] = target
    with pytest.raises(ValueError, match=r"y contains NaN.*at row 23\."):
        read(np.ones((30, 1)), y)
    lazy = da.from_array(np.array(y), chunks=10)
    with pytest.raises(ValueError, match=r"Block 2, .* y contains NaN.*at row 23\."):
        read(da.ones((30, 1), chunks=10), lazy)


def test_invalid_targets():
    with pytest.raises(ValueError, match="sparse matrix"):
        read(np.ones((3, 1)), sparse.eye(3).tocsr())
    with pytest.raises(ValueError, match="y should be a 1d array"):
        read(np.ones((3, 1)), np.ones((3, 1, 1)))


@pytest.mark.parametrize(
    "X", [np.ones((3, 1)), da.ones((3, 1)), [[1.0], [2.0]], {"p": np.ones((3, 1))}]
)
def test_targets_that_are_needed(X):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        read(X, needs_y=True)


def test_targets_that_some_blocks_have():
    X, ones = np.ones((2, 1)), np.ones(2)
    with pytest.raises(ValueError, match=r"Block 1.*it has no y, but the first block had one"):
        read_pieces(X, X, targets=(ones, None))
    with pytest.raises(ValueError, match=r"Block 1.*it has a sample_weight, but .* had none"):
        read_pieces(X, X, weights=(None, ones))


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_an_invalid_weight(weight):
    weights = np.ones(30)
    weights[23] = weight
    with pytest.raises(ValueError, match=f"sample_weight is {weight:g} at row 23"):
        read(np.ones((30, 1)), sample_weight=weights)
    with pytest.raises(ValueError, match=f"Block 2.*sample_weight is {weight:g} at row 23"):
        read(da.ones((30, 1), chunks=10), sample_weight=da.from_array(weights))
    with pytest.raises(ValueError, match="Sample weights must be 1D"):
        read(np.ones((30, 1)), sample_weight=np.ones((30, 2)))


def test_names_of_columns_where_there_are_none():
    for X in (np.ones((3, 1)), FRAME, da.ones((3, 1))):
        with pytest.raises(ValueError, match="y='b' names a column"):
            read(X, "b")
    with pytest.raises(
        ValueError, match="There is no column 'c' for y; X has the columns 'a', 'b'"
    ):
        read(dd.from_pandas(FRAME, npartitions=1), "c")


def test_labels_are_needed_where_orders_differ():
    tables = {"p": FRAME, "q": FRAME[::-1]}
    with pytest.raises(ValueError, match="y needs labels"):
        read(tables, [0, 1])


# -- containers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X", [[], np.empty((0, 2)), da.ones((0, 2)), FRAME[:0], dd.from_pandas(FRAME[:0])]
)
def test_no_rows_at_all(X):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        read(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (None, "X is None: pass a table"),
        (3, "X is a int, which has no rows"),
        (object(), "X is a object, which has no rows"),
    ],
)
def test_what_has_no_rows(X, message):
    with pytest.raises(TypeError, match=message):
        read(X)


@pytest.mark.parametrize("block_size", [0, -1, 2.5, True, "many"])
def test_invalid_sizes(block_size):
    with pytest.raises(ValueError, match="block_size must be a whole number above 0"):
        row_blocks(np.ones((3, 1)), block_size=block_size)


def test_dask_is_not_installed(monkeypatch):
    X = da.ones((3, 1))
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"manykernels\[dask\]"):
        row_blocks(X)


class Stored:
    """As an array of zarr looks."""

    shape, dtype, oindex = (3, 1), np.dtype(float), None


def generated():
    yield np.ones((3, 1)), np.ones(3)


TO_BE_READ = {
    "csv": ("rows.csv", r"X is a path, 'rows.csv': .*dask\.dataframe\.read_csv\('rows\.csv'\)"),
    "tsv": (
        Path("a", "rows.tsv.gz"),
        r"dask\.dataframe\.read_csv\('a.rows\.tsv\.gz', sep=\"\\t\"\)",
    ),
    "pattern": ("part-*.parquet", r"dask\.dataframe\.read_parquet\('part-\*\.parquet'\)"),
    "folder": (Path("folder"), r"dask\.dataframe\.read_parquet\('folder'\)"),
    "stored folder": ("rows.zarr", r"dask\.array\.from_zarr\('rows\.zarr'\)"),
    "npy": ("rows.npy", r"numpy\.load\('rows\.npy', mmap_mode=\"r\"\)"),
    "several csv": (
        ["1.csv", "2.csv"],
        r"a list of paths: pass dask\.dataframe\.read_csv\(\['1\.csv', '2\.csv'\]\)",
    ),
    "several parquet": (
        [Path("1.pq"), Path("2.pq")],
        r"dask\.dataframe\.read_parquet\(\['1\.pq', '2\.pq'\]\)",
    ),
    "stored array": (Stored(), r"dask\.array\.from_zarr\(X\)"),
    "function": (generated, r"X is a function.*dask\.dataframe\.from_map"),
    "generator": (generated(), r"X is an iterator.*dask\.dataframe\.from_map"),
    "blocks": ([(np.ones((3, 1)), np.ones(3))], r"a list of blocks.*dask\.array\.from_array"),
    "tables": (
        [np.ones((3, 1)), np.ones((3, 1))],
        "a list of 2 tables.*views of the same samples",
    ),
    "view": (
        {"p": np.ones((3, 1)), "q": "rows.csv"},
        r"view 'q' is a path.*dask\.dataframe\.read_csv",
    ),
}


@pytest.mark.parametrize("kind", TO_BE_READ)
def test_what_others_read(kind):
    X, message = TO_BE_READ[kind]
    with pytest.raises(TypeError, match=message):
        row_blocks(X)


@pytest.mark.parametrize("kind", TO_BE_READ)
@pytest.mark.parametrize("approximation", [None, Nystrom(3), "auto"], ids=str)
def test_estimators_say_how_to_read_it(kind, approximation):
    X, message = TO_BE_READ[kind]
    table, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    model = MKFDA(RBF(), approximation=approximation)
    with pytest.raises(TypeError, match=message):
        model.fit(X, y)
    model.fit(table, y)
    for answer in (model.predict, model.predict_proba, lambda X: model.score(X, y)):
        with pytest.raises(TypeError, match=message):
            answer(X)


def test_lists_of_strings_are_tables():
    (block,) = row_blocks(["GATTACA", "rows.csv"])
    assert block.X.shape == (2, 1)


def test_predictions_name_the_chunk():
    X = da.from_array(spoilt(np.nan), chunks=(10, -1))
    lazy = map_blocks(X, lambda X: X[:, 0])
    with pytest.raises(ValueError, match=r"Chunk 2, .*: .* at row 3, column 1"):
        lazy.compute()
