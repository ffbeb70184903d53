"""Rows of arrays and data frames of dask: chunks are read and added up where they are.

A pass is a graph (``dask_graph.py``): one task per chunk, which adds up the blocks of this chunk,
and a tree of merges. It runs on the current `distributed.Client` if there is one, else in threads.
Rows never come to the caller. What a lost worker had done is done again by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate as running_sums
from typing import Any, Self

import numpy as np

from .._sklearn import num_samples
from ..kernels.tables import is_frame
from .base import Block, Reading, RowBlocks
from .checkpoint import Checkpoint
from .checks import (
    Template,
    check_length,
    names_in,
    readable,
    refuse_no_rows,
    refuse_no_targets,
    refuse_unknown_names,
)
from .dask_graph import Chunk, Job, computed, count_rows, map_rows, reduced
from .stacking import rows_of
from .tables import is_dask


class DaskRows(RowBlocks):
    """Rows of an array or data frame of dask, or of a dict of them."""

    def __init__(
        self, X: Any, y: Any, weight: Any, columns: tuple[Any, Any], reading: Reading
    ) -> None:
        super().__init__(reading)
        self._views = {name: _in_rows(table) for name, table in _named(X).items()}
        self._single = not isinstance(X, Mapping)
        self._y, self._weight = y, weight
        self._columns = columns
        self._template = self._known_columns() if self._single else None
        lengths = next(filter(None, map(_known_lengths, self._views.values())), None)
        self._lengths = lengths
        self.n_rows = None if lengths is None else sum(lengths)

    @classmethod
    def takes(cls, X: Any) -> bool:
        tables = X.values() if isinstance(X, Mapping) else [X]
        return any(map(is_dask, tables))

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        _require_dask()
        every = list(X.columns) if is_frame(X) else []
        columns: list[Any] = []
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            # A list of texts is one of labels, unless all of them are names.
            several = isinstance(given, list) and bool(given) and set(given) <= set(every)
            named = isinstance(given, str) or (name == "y" and several)
            columns.append(given if named else None)
            if named and not every:
                raise ValueError(
                    f"{name}={given!r} names a column, but X is no data frame. Pass the values of "
                    f"{name}."
                )
            refuse_unknown_names(columns[-1], every, name)
        if y is None and reading.needs_y:
            refuse_no_targets()
        y, sample_weight = (
            given if column is None else None
            for column, given in zip(columns, (y, sample_weight), strict=True)
        )
        return cls(X, y, sample_weight, (columns[0], columns[1]), reading)

    def _known_columns(self) -> Template | None:
        """Those of a data frame without targets and weights; an array has them by construction."""
        (X,) = self._views.values()
        if not is_frame(X):
            return None
        taken = [name for given in self._columns for name in names_in(given)]
        return Template.of(X._meta.drop(columns=taken))

    # -- chunks ----------------------------------------------------------------------------

    def lengths(self) -> list[int]:
        """Rows of every chunk; counted if they are not known."""
        if self._lengths is None:
            import dask

            first = next(table for table in self._views.values() if is_dask(table))
            count = dask.delayed(count_rows, pure=False)
            self._lengths = list(computed([count(part) for part in _delayed(first)]))
            self.n_rows = sum(self._lengths)
        return self._lengths

    def _chunks(self) -> list[Chunk]:
        """Delayed tables, targets and weights of every chunk."""
        views = {name: self._parts(table, f"view {name!r}") for name, table in self._views.items()}
        columns: list[Any] = [dict(zip(views, parts, strict=True)) for parts in _zip(views)]
        if self._single:
            columns = [next(iter(one.values())) for one in columns]
        every: dict[str, list[Any]] = {"X": columns}
        for name, given in (("y", self._y), ("sample_weight", self._weight)):
            missing = [None] * len(columns)
            every[name] = missing if given is None else self._parts(given, name)
        return [Chunk(*one) for one in _zip(every)]

    def _parts(self, table: Any, name: str) -> list[Any]:
        """The chunks of one of the tables, with the rows that chunks of the first one have."""
        if not is_dask(table):
            # In memory: targets, weights, or a small view.
            lengths = self.lengths()
            check_length(int(num_samples(table)), sum(lengths), name)
            stops = list(running_sums(lengths))
            return [
                rows_of(table, slice(stop - length, stop))
                for stop, length in zip(stops, lengths, strict=True)
            ]
        known = _known_lengths(table)
        if known is not None and self._lengths is not None and known != self._lengths:
            check_length(sum(known), sum(self._lengths), name)
            table = table.rechunk({0: tuple(self._lengths)})
        return _delayed(table)

    # -- passes ----------------------------------------------------------------------------

    def _job(self, **tasks: Any) -> Job:
        return Job(self.reading, self._template, *self._columns, **tasks)

    def pieces(self, first_row: int) -> Iterator[Block]:
        job, start = self._job(), 0
        for number, chunk in enumerate(self._chunks()):
            if self._lengths is not None and start + self._lengths[number] <= first_row:
                start += self._lengths[number]
                continue
            X, y, weight = computed((chunk.X, chunk.y, chunk.weight))
            piece = job.piece(Chunk(X, y, weight), start, number)
            yield piece
            start += len(piece)

    def reduce(
        self,
        accumulate: Callable[[Any, Block], Any],
        merge: Callable[[Any, Any], Any],
        *,
        checkpoint: Checkpoint | None = None,
    ) -> Any:
        if checkpoint is not None:
            raise ValueError(
                "Checkpoints are for passes in this process. On dask, what lost workers had done "
                "is done again by the others: leave the checkpoint out."
            )
        lengths = self.lengths()
        if sum(lengths) == 0:
            refuse_no_rows()
        return reduced(self._job(accumulate=accumulate, merge=merge), self._chunks(), lengths)

    def map(self, function: Callable[[Any], np.ndarray], meta: np.ndarray | None) -> Any:
        import dask
        import dask.array as da

        if meta is None:
            first = next(iter(self.blocks()), None)
            if first is None:
                refuse_no_rows()
            meta = np.asarray(function(first.cut(0, 1).X))
            if meta.dtype.kind in "US":
                # Texts of other rows may be longer.
                meta = meta.astype(object)
        empty = np.empty((0, *meta.shape[1:]), dtype=meta.dtype)
        job = dask.delayed(self._job(function=function), pure=False, traverse=False)
        apply = dask.delayed(map_rows, pure=False)
        chunks = self._chunks()
        lengths: Sequence[float] = self._lengths or [np.nan] * len(chunks)
        parts = [
            da.from_delayed(
                apply(job, chunk.X, number, empty), (length, *empty.shape[1:]), meta=empty
            )
            for number, (chunk, length) in enumerate(zip(chunks, lengths, strict=True))
        ]
        return da.concatenate(parts, allow_unknown_chunksizes=True)


def _require_dask() -> None:
    try:
        import dask.array  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Collections of dask need dask[array] and distributed: pip install "
            "'manykernels[dask]' has both."
        ) from error


def _named(X: Any) -> dict[str, Any]:
    """Tables by name; the name of a single one is seen in error messages only."""
    return dict(X) if isinstance(X, Mapping) else {"X": X}


def _in_rows(table: Any) -> Any:
    """A table whose chunks are whole rows, or one in memory."""
    if not is_dask(table):
        return readable(table)
    if is_frame(table):
        return table
    if table.ndim != 2:
        readable(np.empty((1,) * table.ndim))  # which refuses it
    return table.rechunk({1: -1})


def _known_lengths(table: Any) -> list[int] | None:
    """Rows of the chunks of an array of dask, if it knows them."""
    if not is_dask(table) or not hasattr(table, "chunks"):
        return None
    lengths = table.chunks[0]
    return None if np.isnan(lengths).any() else [int(one) for one in lengths]


def _delayed(table: Any) -> list[Any]:
    parts = table.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def _zip(parts: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    """Chunks side by side; a table with another number of them than the first is refused."""
    (first, expected), *others = ((name, len(chunks)) for name, chunks in parts.items())
    for name, number in others:
        if number != expected:
            raise ValueError(
                f"{name!r} has {number} chunks of rows, {first!r} has {expected}, and it is not "
                "known which rows they have: give both the same partitions, or call "
                "compute_chunk_sizes() of the arrays."
            )
    return list(zip(*parts.values(), strict=True))
