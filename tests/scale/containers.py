"""The same rows in every kind of container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

from manykernels import Views

N_ROWS = 30
COLUMNS = list("abc")
LABELS = [f"row{number:02d}" for number in range(N_ROWS)]


@dataclass(frozen=True)
class Rows:
    """A table of three columns, labels and weights."""

    A: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    @classmethod
    def drawn(cls, seed=0, n_rows=N_ROWS):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(n_rows) < 0.3, "rare", "common")
        return cls(rng.normal(size=(n_rows, 3)), y, rng.random(n_rows))

    @property
    def frame(self):
        return pd.DataFrame(self.A, columns=COLUMNS)

    @property
    def whole(self):
        """One frame with targets and weights among its columns."""
        frame = self.frame
        frame.insert(1, "target", self.y)
        return frame.assign(weight=self.weight)


def in_memory(rows, folder):
    yield "array", rows.A, rows.y, rows.weight
    yield "lists", rows.A.tolist(), rows.y.tolist(), rows.weight.tolist()
    yield "fortran", np.asfortranarray(rows.A), rows.y, rows.weight
    yield "pandas", rows.frame, pd.Series(rows.y), pd.Series(rows.weight)
    yield "polars", pl.DataFrame(dict(rows.frame)), pl.Series(rows.y), rows.weight
    yield "csr", sparse.csr_matrix(rows.A), rows.y, rows.weight
    yield "csc", sparse.csc_array(rows.A), rows.y, rows.weight
    mapped = np.memmap(folder / "A.npy", float, "w+", shape=rows.A.shape)
    mapped[:] = rows.A
    yield "memmap", mapped, rows.y, rows.weight


def of_dask(rows, folder):
    whole = dd.from_pandas(rows.whole, npartitions=3)
    A = da.from_array(rows.A, chunks=((8, 1, 0, 21), (2, 1)))
    yield "dask array", A, da.from_array(rows.y, chunks=13), rows.weight
    unknown = dd.from_pandas(rows.frame, npartitions=4).to_dask_array()
    yield "unknown chunks", unknown, rows.y, rows.weight
    yield "sparse chunks", A.map_blocks(sparse.csr_matrix), rows.y, da.from_array(rows.weight)
    yield "dask frame", whole, "target", "weight"
    frame = whole[COLUMNS]
    yield "dask series", frame, whole["target"], whole["weight"]
    target, weight = pd.Series(rows.y), pd.Series(rows.weight)
    yield "dask frame beside pandas", frame, target, weight
    divided = dd.from_pandas(target, npartitions=2), dd.from_pandas(weight, npartitions=5)
    yield "dask series in other partitions", frame, *divided


def as_views(rows, folder):
    frame = rows.frame
    left, right = frame[["a"]], frame[["b", "c"]]
    weight = rows.weight
    yield "dict", {"p": rows.A[:, :1], "q": right}, rows.y, weight
    shuffled = right.sample(frac=1, random_state=0)
    y = pd.Series(rows.y)
    yield "labelled", {"p": left, "q": shuffled}, y, pd.Series(weight)
    yield "Views", Views({"p": left, "q": sparse.csr_matrix(rows.A[:, 1:])}), rows.y, weight
    chunked = {"p": da.from_array(rows.A[:, :1], chunks=(8, 1)), "q": da.from_array(rows.A[:, 1:])}
    yield "dask views", chunked, rows.y, weight
    yield "dask beside memory", {"p": chunked["p"], "q": right}, rows.y, weight
    frames = {"p": dd.from_pandas(left, npartitions=3), "q": dd.from_pandas(right, npartitions=3)}
    yield "views of dask frames", frames, rows.y, weight
    named = {
        name: dd.from_pandas(table.set_axis(LABELS), npartitions=3)
        for name, table in (("p", left), ("q", right))
    }
    y, weight = pd.Series(rows.y, LABELS), pd.Series(weight, LABELS)
    named["q"] = named["q"].map_partitions(lambda part: part[::-1])
    reversed_y = dd.from_pandas(y, npartitions=3).map_partitions(lambda part: part[::-1])
    yield "views of shuffled dask frames", named, reversed_y, weight


KINDS = {kind.__name__: kind for kind in (in_memory, of_dask, as_views)}


def containers(rows, folder, kind):
    """Name, X, y and sample weights of every container of some kind."""
    return list(KINDS[kind](rows, folder))


def plain(X) -> Any:
    """The table of a block as an array of numbers."""
    if isinstance(X, Views):
        return np.hstack([plain(table) for _, table in X.items()])
    return X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)


def totals(state, block):
    """Sums that depend on X, y and weights of every row, and on where it is."""
    w = np.ones(len(block)) if block.weight is None else block.weight
    signs = np.ones(len(block)) if block.y is None else np.where(block.y == "rare", 1.0, -1.0)
    X = plain(block.X)
    new = np.array([w @ X.sum(axis=1), w @ signs, signs @ block.rows, len(block), *X.sum(axis=0)])
    return new if state is None else state + new


def add(first, second):
    return first + second
