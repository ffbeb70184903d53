"""Graphs of dask for one pass: a task per chunk, a tree of merges, and what is said on failure."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._sklearn import num_samples
from ..kernels._threads import one_blas_thread, undivided
from ..kernels.tables import naming
from ..kernels.views import are_views
from .base import Block, Reading
from .checks import PieceCheck, Template, check_length, names_in, readable
from .joined import unlabelled

# States that one task merges: the tree has few levels, and no worker holds many states at once.
_FAN_IN = 8

_LOST = (
    "The sums of the pass that was running are lost; the data are not, and nothing was fitted. "
    "Start a cluster and a Client, make the dask collections again if they were persisted on the "
    "old one, and call fit again."
)


@dataclass(frozen=True)
class Chunk:
    """Rows of one chunk, as delayed tables: one, or a dict of them."""

    X: Any
    y: Any
    weight: Any


@dataclass(frozen=True)
class Job:
    """What every task of a pass needs. It is sent once, not with each task.

    Attributes
    ----------
    reading : Reading
    template : Template or None
        Columns that the chunks of a data frame have to have.
    y, weight : str, list of str or None
        Columns of a data frame with targets and weights.
    accumulate, merge : callable
        Of a pass, see ``RowBlocks.reduce``.
    function : callable
        Of a map, from X of a block to its results.
    """

    reading: Reading
    template: Template | None = None
    y: Any = None
    weight: Any = None
    accumulate: Any = None
    merge: Any = None
    function: Any = None

    def blocks(self, chunk: Chunk, start: int, number: int) -> Iterator[Block]:
        """Checked blocks of a chunk whose first row, and block, have these numbers."""
        piece = self.piece(chunk, start, number)
        if len(piece) == 0:
            return
        reading, size = self.reading, self.reading.block_size
        check = PieceCheck(reading.needs_y, reading.allow_nan, reading.may_lack, self.template)
        for first in range(0, len(piece), size):
            part = piece.cut(first, first + size)
            at = number + first // size
            yield Block(*check(part.X, part.y, part.weight, part.start, at), part.start, at)

    def piece(self, chunk: Chunk, start: int, number: int) -> Block:
        """A chunk as one piece, targets and weights divided from the table."""
        X, y, weight = chunk.X, chunk.y, chunk.weight
        if are_views(X):
            X = {name: unlabelled(table) for name, table in X.items()}
            # Without rows there are no views.
            X = readable(X) if all(map(num_samples, X.values())) else np.empty((0, 1))
        if self.y is not None:
            y = X[self.y]
        if self.weight is not None:
            weight = X[self.weight]
        if taken := [*names_in(self.y), *names_in(self.weight)]:
            X = X.drop(columns=taken)
        n_rows = int(num_samples(X))
        with naming(f"The chunk that begins at row {start}"):
            for name, values in (("y", y), ("sample_weight", weight)):
                if values is not None:
                    check_length(int(num_samples(values)), n_rows, name)
        y, weight = (None if one is None else np.asarray(one) for one in (y, weight))
        return Block(X, y, weight, start, number)


# -- tasks; a dashboard shows them by these names --------------------------------------------


def count_rows(X: Any) -> int:
    return int(num_samples(next(iter(X.values())) if isinstance(X, dict) else X))


def accumulate_rows(job: Job, X: Any, y: Any, weight: Any, start: int, number: int) -> Any:
    """The state of all blocks of one chunk; None if it is empty."""
    state = None
    with one_blas_thread(), undivided():
        for block in job.blocks(Chunk(X, y, weight), start, number):
            state = job.accumulate(state, block)
    return state


def merge_states(job: Job, states: Sequence[Any]) -> Any:
    merged = None
    with one_blas_thread(), undivided():
        for state in states:
            if state is not None:
                merged = state if merged is None else job.merge(merged, state)
    return merged


def map_rows(job: Job, X: Any, number: int, empty: np.ndarray) -> np.ndarray:
    """Results of all rows of one chunk; `empty` are those of none."""
    with naming(f"Chunk {number}, whose first row is row 0 here"), one_blas_thread(), undivided():
        blocks = job.blocks(Chunk(X, None, None), 0, 0)
        found = np.concatenate([empty, *(np.asarray(job.function(block.X)) for block in blocks)])
        # NumPy would cut texts that are longer than those of `empty`.
        if found.dtype.kind in "US" and found.dtype.itemsize > empty.dtype.itemsize:
            raise ValueError(
                f"results of type {found.dtype} do not fit into {empty.dtype}, the type of meta."
            )
        return found.astype(empty.dtype, casting="same_kind", copy=False)


# -- graphs ----------------------------------------------------------------------------------


def reduced(job: Job, chunks: Sequence[Chunk], lengths: Sequence[int]) -> Any:
    """The state of all rows, computed."""
    import dask

    shared = dask.delayed(job, pure=False, traverse=False)
    add, merge = dask.delayed(accumulate_rows, pure=False), dask.delayed(merge_states, pure=False)
    states, start, number = [], 0, 0
    for chunk, length in zip(chunks, lengths, strict=True):
        states.append(add(shared, chunk.X, chunk.y, chunk.weight, start, number))
        start, number = start + length, number + -(-length // job.reading.block_size)
    while len(states) > 1:
        groups = [states[k : k + _FAN_IN] for k in range(0, len(states), _FAN_IN)]
        states = [merge(shared, group) for group in groups]
    return computed(states[0])


def computed(delayed: Any) -> Any:
    """What a graph gives, on the current cluster or in threads."""
    import dask

    with explaining_a_lost_cluster(), warnings.catch_warnings():
        # The job is in the graph once, so that a worker that takes over from a lost one finds it.
        # Data in memory that users pass beside collections of dask are in it too.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return dask.compute(delayed)[0]


@contextmanager
def explaining_a_lost_cluster() -> Iterator[None]:
    """Say what was lost, and what to do, if the cluster is gone or its workers died."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if not type(error).__module__.startswith(("distributed", "concurrent", "asyncio")):
            raise
        if name == "KilledWorker":
            raise RuntimeError(
                f"Several workers died while they worked on the same rows ({error}). Often their "
                "memory was full: use smaller chunks, X.rechunk(...) or "
                "X.repartition(...), or workers with more memory, and call fit again."
            ) from error
        raise RuntimeError(f"The cluster of dask is gone ({name}: {error}). {_LOST}") from error
