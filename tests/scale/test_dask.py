"""Passes over collections of dask without a cluster: their graphs, and what runs where."""

from __future__ import annotations

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from manykernels.scale.blocks import map_blocks, row_blocks
from manykernels.scale.sampling import Reservoir
from tests.problems import slow
from tests.scale.containers import Rows, add, containers, plain, totals


@pytest.mark.parametrize("n_chunks", [1, 7, 8, 9, *slow(65)])
def test_the_tree_of_merges_has_every_chunk_once_and_in_order(n_chunks):
    X = da.arange(2 * n_chunks, chunks=2)[:, None]
    blocks = row_blocks(X, block_size=1)

    def rows(state, block):
        return (state or ()) + ((block.number, block.start, int(block.X[0, 0])),)

    def joined(first, second):
        return first + second

    expected = [(row, row, row) for row in range(2 * n_chunks)]
    assert list(blocks.reduce(rows, joined)) == expected


def test_what_all_tasks_need_is_in_the_graph_once(monkeypatch):
    class Heavy:
        def __call__(self, state, block):
            return 1

    graphs = []
    compute = dask.compute
    monkeypatch.setattr(dask, "compute", lambda one: graphs.append(one.dask) or compute(one))
    heavy = Heavy()
    row_blocks(da.ones((100, 1), chunks=1)).reduce(heavy, add)
    (graph,) = graphs
    jobs = [key for key in graph if str(key).startswith("Job-")]
    assert len(jobs) == 1
    named = [str(key) for key in graph if str(key).startswith("accumulate_rows-")]
    assert len(named) == 100
    merges = [str(key) for key in graph if str(key).startswith("merge_states-")]
    assert len(merges) == 13 + 2 + 1


def test_rows_never_come_to_the_caller(monkeypatch):
    sizes = []
    compute = dask.compute

    def watched(*given, **how):
        found = compute(*given, **how)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(dask, "compute", watched)
    X = da.ones((10_000, 20), chunks=(1000, 20))
    assert row_blocks(X).reduce(totals, add)[3] == 10_000
    assert max(sizes) < 10_000


def test_chunks_are_counted_once_where_they_are_not_known():
    counted = []

    def part(frame):
        counted.append(len(frame))
        return frame

    frame = dd.from_pandas(Rows.drawn().frame, npartitions=3).map_partitions(
        part, meta=Rows.drawn().frame[:0]
    )
    blocks = row_blocks(frame)
    assert blocks.n_rows is None
    with dask.config.set(scheduler="synchronous"):
        blocks.reduce(totals, add)
        assert blocks.n_rows == len(Rows.drawn().A)
        counted.clear()
        blocks.reduce(totals, add)
    assert sum(counted) == len(Rows.drawn().A)


def test_predictions_are_lazy():
    calls = []

    def function(X):
        calls.append(len(X))
        return np.zeros((len(X), 3), dtype=np.float32)

    frame = dd.from_pandas(Rows.drawn().frame, npartitions=3)
    found = map_blocks(frame, function)
    assert calls == [1]  # the first row, for the type of the results
    assert found.dtype == np.float32
    assert np.isnan(found.shape[0])
    assert found.shape[1] == 3
    known = map_blocks(da.ones((10, 2), chunks=(4, 2)), function)
    assert known.chunks == ((4, 4, 2), (3,))
    assert calls == [1, 1]
    assert known.compute().shape == (10, 3)


def test_predictions_of_an_empty_chunk():
    X = da.ones((10, 2), chunks=((4, 0, 6), (2,)))
    names = map_blocks(X, lambda X: np.array(["yes"] * len(X)))
    assert names.compute().tolist() == ["yes"] * 10


def test_texts_are_not_cut():
    X = da.from_array(np.arange(4.0)[:, None], chunks=1)

    def names(X):
        return np.array(["a" * (1 + int(row[0])) for row in X])

    assert map_blocks(X, names).compute().tolist() == ["a", "aa", "aaa", "aaaa"]


def test_a_view_called_y():
    X = {"y": da.ones((4, 2), chunks=2), "q": np.zeros((4, 1))}
    (block,) = row_blocks(X, ["a", "b", "a", "b"])
    assert block.y.tolist() == ["a", "b", "a", "b"]
    assert block.X.names == ["y", "q"]


def test_everything_can_be_sent_to_workers(tmp_path):
    import cloudpickle

    rows = Rows.drawn()
    for kind in ("in_memory", "of_dask"):
        for name, X, y, weight in containers(rows, tmp_path, kind):
            again = cloudpickle.loads(cloudpickle.dumps(row_blocks(X, y, weight)))
            assert again.reduce(totals, add)[3] == len(rows.A), name
    reservoir = Reservoir(3, 0, per_class=1)
    assert pickle.loads(pickle.dumps(reservoir)).size == 3


def test_an_error_of_the_caller_is_not_changed():
    def fail(state, block):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        row_blocks(da.ones((3, 1))).reduce(fail, add)


def test_a_list_of_labels_beside_a_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    (block,) = row_blocks(dd.from_pandas(frame, npartitions=1), ["a", "c"])
    assert block.y.tolist() == ["a", "c"]
    (block,) = row_blocks(dd.from_pandas(frame, npartitions=1), ["b"])
    assert block.y.tolist() == [3.0, 4.0]
    assert plain(block.X).tolist() == [[1.0], [2.0]]
