"""The same rows in every kind of container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import zarr
from scipy import sparse

from manykernels import Views

N_ROWS = 30
COLUMNS = list("abc")


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

    def items(self, size=7):
        for start in range(0, len(self.A), size):
            rows = slice(start, start + size)
            yield self.A[rows], self.y[rows], self.weight[rows]


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


def stored(rows, folder):
    weight = zarr.array(rows.weight)
    yield "zarr", zarr.array(rows.A, chunks=(9, 2)), rows.y, weight
    # Ragged files, of which one has a single row and one none.
    parts = folder / "parts"
    parts.mkdir()
    for number, (start, stop) in enumerate([(0, 12), (12, 13), (13, 13), (13, len(rows.A))]):
        rows.whole[start:stop].to_parquet(parts / f"part-{number}.parquet")
    (parts / "_SUCCESS").touch()
    yield "parquet folder", parts, "target", "weight"
    yield "pattern", str(parts / "part-*.parquet"), "target", "weight"
    rows.whole.to_parquet(folder / "rows.parquet", row_group_size=11)
    yield "parquet", str(folder / "rows.parquet"), "target", "weight"
    rows.whole.to_csv(folder / "rows.csv", index=False)
    yield "csv", folder / "rows.csv", "target", "weight"
    rows.whole.to_csv(folder / "rows.tsv.gz", index=False, sep="\t")
    yield "tsv", folder / "rows.tsv.gz", "target", "weight"


def streamed(rows, folder):
    yield "generator function", rows.items, None, None
    yield "list of blocks", list(rows.items(13)), None, None
    yield "single rows", list(rows.items(1)), None, None

    class Loader:
        def __iter__(self):
            return rows.items(20)

    yield "iterable", Loader(), None, None


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


def as_views(rows, folder):
    frame = rows.frame
    left, right = frame[["a"]], frame[["b", "c"]]
    weight = rows.weight
    yield "dict", {"p": rows.A[:, :1], "q": right}, rows.y, weight
    shuffled = right.sample(frac=1, random_state=0)
    y = pd.Series(rows.y)
    yield "labelled", {"p": left, "q": shuffled}, y, pd.Series(weight)
    yield "Views", Views({"p": left, "q": sparse.csr_matrix(rows.A[:, 1:])}), rows.y, weight
    stored = {"p": zarr.array(rows.A[:, :1]), "q": zarr.array(rows.A[:, 1:], chunks=(4, 2))}
    yield "zarr views", stored, rows.y, weight
    right.to_csv(folder / "right.csv", index=False)
    yield "mixed views", {"p": stored["p"], "q": folder / "right.csv"}, rows.y, weight
    chunked = {"p": da.from_array(rows.A[:, :1], chunks=(8, 1)), "q": da.from_array(rows.A[:, 1:])}
    yield "dask views", chunked, rows.y, weight
    yield "dask beside memory", {"p": chunked["p"], "q": right}, rows.y, weight
    frames = {"p": dd.from_pandas(left, npartitions=3), "q": dd.from_pandas(right, npartitions=3)}
    yield "views of dask frames", frames, rows.y, weight


KINDS = {kind.__name__: kind for kind in (in_memory, stored, streamed, of_dask, as_views)}


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
