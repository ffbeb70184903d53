"""Every container of the same rows gives the same blocks, sums, samples and predictions."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from manykernels import Views
from manykernels.scale.blocks import map_blocks, row_blocks
from manykernels.scale.rows import Block, Reading
from manykernels.scale.sampling import Reservoir
from tests.problems import some_slow
from tests.scale.containers import KINDS, N_ROWS, Rows, add, containers, plain, totals

every_kind = pytest.mark.parametrize("kind", some_slow(KINDS, "as_views"))
one_size_or_more = pytest.mark.parametrize(
    "block_size", [7, pytest.param(None, marks=pytest.mark.slow)]
)


@every_kind
@pytest.mark.parametrize("block_size", [pytest.param(1, marks=pytest.mark.slow), 7, N_ROWS])
def test_blocks_have_the_rows_in_order(kind, block_size, tmp_path):
    rows = Rows.drawn()
    for name, X, y, weight in containers(rows, tmp_path, kind):
        blocks = list(row_blocks(X, y, weight, block_size=block_size, needs_y=True))
        size = block_size or 4096
        assert [block.number for block in blocks] == list(range(len(blocks))), name
        assert [block.start for block in blocks] == list(range(0, N_ROWS, size)), name
        assert [len(block) for block in blocks[:-1]] == [size] * (len(blocks) - 1), name
        np.testing.assert_array_equal(np.vstack([plain(one.X) for one in blocks]), rows.A, name)
        np.testing.assert_array_equal(np.concatenate([one.y for one in blocks]), rows.y, name)
        np.testing.assert_array_equal(np.concatenate([one.weight for one in blocks]), rows.weight)


@every_kind
@one_size_or_more
def test_sums_are_those_of_one_table(kind, block_size, tmp_path):
    rows = Rows.drawn()
    (whole,) = row_blocks(rows.A, rows.y, rows.weight)
    for name, X, y, weight in containers(rows, tmp_path, kind):
        found = row_blocks(X, y, weight, block_size=block_size).reduce(totals, add)
        np.testing.assert_allclose(found, totals(None, whole), rtol=1e-12, err_msg=name)


@every_kind
def test_sums_without_targets(kind, tmp_path):
    for name, X, y, _ in containers(Rows.drawn(), tmp_path, kind):
        if not isinstance(y, str):
            assert row_blocks(X).reduce(totals, add)[3] == N_ROWS, name


@every_kind
@one_size_or_more
def test_samples_are_the_same(kind, block_size, tmp_path):
    rows = Rows.drawn()
    reservoir = Reservoir(10, seed=3, per_class=6)
    expected, counted = reservoir.draw(row_blocks(rows.A, rows.y, rows.weight))
    for name, X, y, weight in containers(rows, tmp_path, kind):
        blocks = row_blocks(X, y, weight, block_size=block_size)
        sample, census = reservoir.draw(blocks)
        np.testing.assert_array_equal(sample.rows, expected.rows, name)
        np.testing.assert_array_equal(plain(sample.X), rows.A[expected.rows], name)
        np.testing.assert_array_equal(sample.y, expected.y, name)
        np.testing.assert_array_equal(sample.weight, expected.weight, name)
        np.testing.assert_array_equal(census.classes, ["common", "rare"], name)
        np.testing.assert_array_equal(census.counts, counted.counts, name)
        np.testing.assert_allclose(census.weights, counted.weights, err_msg=name)
        assert census.n_rows == N_ROWS, name
        # The container of a sample is that of the blocks.
        (block,) = row_blocks(X, y, weight)
        assert type(sample.X) is type(block.X), name


@every_kind
def test_results_of_rows_come_back_in_order(kind, tmp_path):
    rows = Rows.drawn()
    for name, X, y, _ in containers(rows, tmp_path, kind):
        if isinstance(y, str):
            found = map_blocks(X, lambda X: np.asarray(X["a"]) * 2, block_size=7)
        else:
            found = map_blocks(X, lambda X: plain(X)[:, 0] * 2, block_size=7)
        lazy = "dask" in name or "chunks" in name
        assert isinstance(found, da.Array if lazy else np.ndarray), name
        np.testing.assert_array_equal(np.asarray(found), rows.A[:, 0] * 2, name)


def test_a_block_that_fits_is_not_copied():
    X = Rows.drawn().A
    for block in row_blocks(X, block_size=10):
        assert np.shares_memory(block.X, X)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([True, False], "b"), ([1, 3], "i"), (["no", "yes"], "U"), ([1.0, 2.0], "f")],
)
def test_labels_keep_their_kind(labels, kind):
    y = np.array(labels * 20)
    sample, census = Reservoir(5, 0, per_class=1).draw(row_blocks(np.ones((40, 1)), y))
    assert sample.y.dtype.kind == census.classes.dtype.kind == kind
    assert census.classes.tolist() == sorted(labels)
    assert census.counts.tolist() == [20, 20]


def test_categories_are_labels_like_texts():
    y = pd.Series(["u", "v", "u"], dtype="category")
    _, census = Reservoir(5, 0, per_class=1).draw(row_blocks(np.ones((3, 1)), y))
    assert census.classes.tolist() == ["u", "v"]


def test_strings_are_a_table_of_one_column():
    (block,) = row_blocks(["GATTACA", "TACA"])
    assert block.X.tolist() == [["GATTACA"], ["TACA"]]


def test_several_targets():
    targets = np.arange(20.0).reshape(10, 2)
    blocks = list(row_blocks(np.ones((10, 1)), targets, block_size=4))
    np.testing.assert_array_equal(np.vstack([one.y for one in blocks]), targets)


def test_rows_that_lack_a_view_if_they_may():
    left = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=list("xyz"))
    right = pd.DataFrame({"b": [4.0, 5.0]}, index=list("zx"))
    y = pd.Series([0, 1, 2], index=list("zyx"))
    blocks = row_blocks({"p": left, "q": right}, y, block_size=2, may_lack=True)
    first, second = blocks
    assert first.X.present.tolist() == [[True, True], [True, False]]
    assert first.y.tolist() == [2, 1]
    joined = Reservoir(3, 0).draw(blocks)[0].X
    assert isinstance(joined, Views)
    assert joined.present.tolist() == [[True, True], [True, False], [True, True]]
    assert second.X["q"].to_numpy().tolist() == [[4.0]]


def test_views_stacked_have_the_rows_of_both():
    one, other = (
        Views({"p": pd.DataFrame({"a": values}, index=labels), "q": np.ones((2, 1))})
        for values, labels in (([1.0, np.nan], ["x", "y"]), ([3.0, 4.0], ["z", "u"]))
    )
    both = Views.stacked([one, other], _stack)
    assert both.labels.tolist() == ["x", "y", "z", "u"]
    assert both.has("p").tolist() == [True, False, True, True]
    assert both["p"]["a"].tolist() == [1.0, 3.0, 4.0]


def _stack(tables):
    return pd.concat(tables) if hasattr(tables[0], "iloc") else np.concatenate(tables)


def test_columns_in_another_order_are_put_right():
    frame = Rows.drawn().frame
    pieces = [
        Block(frame[:9], None, None, 0, 0),
        Block(frame[9:][["c", "a", "b"]], None, None, 9, 1),
    ]
    X = pd.concat([block.X for block in Reading().blocks(pieces)])
    pd.testing.assert_frame_equal(X, frame)


def test_no_more_than_a_block_is_read_ahead():
    read = []

    def pieces():
        for number in range(20):
            read.append(number)
            yield Block(np.full((5, 1), number), None, None, 5 * number, number)

    next(Reading(block_size=10).blocks(pieces()))
    assert len(read) == 2
