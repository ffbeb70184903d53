"""From a table, several of them, or collections of Dask to blocks of rows: :func:`row_blocks`."""

from __future__ import annotations

import inspect
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate as running_sums
from itertools import islice
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse

from ..kernels import Views
from ..kernels.matching import shown
from ..kernels.tables import as_numbers, is_frame, is_numeric, naming
from ..kernels.views import are_views, row_labels
from ..utils.numerics import one_blas_thread, undivided
from ..utils.sklearn import num_samples, safe_indexing
from .rows import (
    BLOCK_SIZE,
    Block,
    PieceCheck,
    Reading,
    RowBlocks,
    TableRows,
    Template,
    ViewsRows,
    check_length,
    is_dask,
    names_in,
    readable,
    refuse_no_rows,
    refuse_no_targets,
    refuse_unknown_names,
    rows_of,
)
from .sampling import sample_keys

# -- Rows of arrays and data frames of dask: chunks are read and added up where they are ----------
#
# A pass is a graph: one task per chunk, which adds up the blocks of this chunk, and a tree of
# merges. It runs on the current `distributed.Client` if there is one, else in threads. Rows never
# come to the caller. What a lost worker had done is done again by another one.
#
# Chunks of several tables, of y and of weights are put side by side, each with the rows of the
# first. Where both are of pandas their indices are compared, see :func:`_in_order`.
#
# Every pass computes the rows anew. Sums over all rows (:class:`Tally`) tell whether they are the
# same as in the first pass; if not, there is an error.


# States that one task merges: the tree has few levels, and no worker holds many states at once.
_FAN_IN = 8
# Sums of two passes that differ by more than this part of their terms are not of the same rows.
# Rounding errors of rows that are computed in another order, in single precision, are below.
_SAME = 1e-7
# Seed of the numbers that rows are multiplied with in a tally.
_TALLY_SEED = 0
# What error messages say of rows that cannot be matched.
_WAYS_TO_MATCH = (
    'Take both from one frame, as in frame = frame.join(y) and y = frame["y"]; or, if rows are in '
    "the same order, pass what has no index, such as y.to_numpy() or y.to_dask_array()."
)

_LOST = (
    "The sums of the pass that was running are lost; the data are not, and nothing was fitted. "
    "Start a cluster and a Client, make the dask collections again if they were persisted on the "
    "old one, and call fit again."
)


class DaskRows(RowBlocks):
    """Rows of an array or data frame of dask, or of a dict of them."""

    def __init__(
        self, X: Any, y: Any, weight: Any, columns: tuple[Any, Any], reading: Reading
    ) -> None:
        super().__init__(reading)
        views = {name: _in_rows(table) for name, table in _named(X).items()}
        base = next((table for table in views.values() if _is_dask_frame(table)), None)
        self._views = {name: _divided_like(base, table) for name, table in views.items()}
        self._y, self._weight = _divided_like(base, y), _divided_like(base, weight)
        self._single = not isinstance(X, Mapping)
        self._columns = columns
        self._template = self._known_columns() if self._single else None
        lengths = next(filter(None, map(_known_lengths, self._views.values())), None)
        self._lengths = lengths
        self.n_rows = None if lengths is None else sum(lengths)
        self._first: Tally | None = None

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

    def pieces(self) -> Iterator[Block]:
        job, start = self._job(), 0
        for number, chunk in enumerate(self._chunks()):
            X, y, weight = computed((chunk.X, chunk.y, chunk.weight))
            piece = job.piece(Chunk(X, y, weight), start, number)
            yield piece
            start += len(piece)

    def reduce(
        self, accumulate: Callable[[Any, Block], Any], merge: Callable[[Any, Any], Any]
    ) -> Any:
        lengths = self.lengths()
        if sum(lengths) == 0:
            refuse_no_rows()
        job = self._job(accumulate=accumulate, merge=merge)
        state, tally = reduced(job, self._chunks(), lengths) or (None, Tally(0, {}, {}))
        tally.refuse_other_rows(sum(lengths), self._first)
        self._first = self._first or tally
        return state

    def map(self, function: Callable[[Any], np.ndarray], meta: np.ndarray | None) -> Any:
        import dask
        import dask.array as da

        if meta is None:
            rows = (piece.cut(0, 1) for piece in self.pieces() if len(piece) > 0)
            first = next(self.reading.blocks(islice(rows, 1)), None)
            if first is None:
                refuse_no_rows()
            meta = np.asarray(function(first.X))
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


def _is_dask_frame(table: Any) -> bool:
    """Whether it is a data frame or a Series of dask."""
    return is_dask(table) and hasattr(table, "divisions")


def _divided_like(base: Any, table: Any) -> Any:
    """A data frame or Series of dask with the partitions of `base`, if the divisions are known."""
    if not (_is_dask_frame(base) and _is_dask_frame(table)):
        return table
    known = base.known_divisions and table.known_divisions
    mine, its = base.divisions, table.divisions
    # Where the first or the last label is another one, labels are not the same.
    if not known or mine == its or (mine[0], mine[-1]) != (its[0], its[-1]):
        return table
    return table.repartition(divisions=mine)


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
                "known which rows they have: give both the same partitions, join data frames, "
                "frame.join(...), or call compute_chunk_sizes() of the arrays."
            )
    return list(zip(*parts.values(), strict=True))


# -- chunks -----------------------------------------------------------------------------------


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
        with naming(f"The chunk that begins at row {start}"):
            tables = {f"view {k!r}": X[k] for k in X} if isinstance(X, Mapping) else {"X": X}
            labelled = [name for name in tables if row_labels(tables[name]) is not None]
            if labelled:
                like = labelled[0], row_labels(tables[labelled[0]])
                y = _in_order(y, "y", *like)
                weight = _in_order(weight, "sample_weight", *like)
                ordered = [_in_order(table, name, *like) for name, table in tables.items()]
                X = dict(zip(X, ordered, strict=True)) if isinstance(X, Mapping) else X
        if are_views(X):
            X = {name: _unlabelled(table) for name, table in X.items()}
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


def _in_order(values: Any, name: str, first: str, index: Any) -> Any:
    """Rows of a chunk in the order of `index`, that of the table `first`, if they have labels.

    The same labels in another order are matched; other labels are refused. The numbers 0, 1, 2, …
    may be labels, or what pandas gives to rows that have none: if one side has them in order and
    the other has not, it is not known what is meant.
    """
    labels = row_labels(values)
    if labels is None or labels.equals(index):
        return values
    unique = labels.is_unique and index.is_unique
    if not unique or len(labels) != len(index) or not labels.isin(index).all():
        raise ValueError(
            f"the index of {name} is not that of {first}, so that rows cannot be matched: it has "
            f"{shown(list(labels[:5]))}, where {first} has {shown(list(index[:5]))}. "
            f"{_WAYS_TO_MATCH}"
        )
    if _is_counted(labels) or _is_counted(index):
        raise ValueError(
            f"the index of {name} has the numbers of {first} in another order, and one of them "
            "counts the rows: it is not known whether rows with the same number belong together. "
            f"{_WAYS_TO_MATCH}"
        )
    return values.loc[index]


def _is_counted(index: Any) -> bool:
    """Whether labels are whole numbers one after the other."""
    return index.dtype.kind in "iu" and bool((np.diff(index.to_numpy()) == 1).all())


def _unlabelled(table: Any) -> Any:
    """A pandas frame without its labels."""
    return table.reset_index(drop=True) if hasattr(table, "iloc") else table


# -- whether rows are the same in every pass -------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """Sums over rows that are the same in two passes if the rows are.

    Every row is multiplied with a random number of its own, so that sums tell of rows that change
    places, too.

    Attributes
    ----------
    n_rows : int
    sums, sizes : dict of str to ndarray
        Sums, and sums of absolute values, of the columns of X, y and weights.
    """

    n_rows: int
    sums: dict[str, np.ndarray]
    sizes: dict[str, np.ndarray]

    @classmethod
    def of(cls, block: Block) -> Tally:
        """That of one block."""
        factors = sample_keys(block.rows, _TALLY_SEED) / 2.0**64
        parts = {"y": (block.y, factors), "sample_weight": (block.weight, factors)}
        if isinstance(block.X, Views):
            for name, table in block.X.items():
                # A row without this view is not in the table.
                parts[f"view {name!r}"] = table, factors[block.X.has(name)]
        else:
            parts["X"] = block.X, factors
        sums, sizes = {}, {}
        for name, (values, weights) in parts.items():
            if values is not None:
                numbers = _as_numbers(values)
                sums[name], sizes[name] = weights @ numbers, weights @ abs(numbers)
        return cls(len(block), sums, sizes)

    def __add__(self, other: Tally) -> Tally:
        sums, sizes = (
            {name: mine[name] + its[name] for name in mine}
            for mine, its in ((self.sums, other.sums), (self.sizes, other.sizes))
        )
        return Tally(self.n_rows + other.n_rows, sums, sizes)

    def refuse_other_rows(self, n_rows: int, first: Tally | None) -> None:
        """Raise if there are not `n_rows`, or if the rows are not those of the first pass."""
        changed, how = [], ""
        if self.n_rows != n_rows:
            changed, how = ["X"], f" ({self.n_rows} rows, {n_rows} before)"
        elif first is not None:
            changed = [
                name
                for name, now in self.sums.items()
                if np.any(np.abs(now - first.sums[name]) > _SAME * first.sizes[name])
            ]
        if changed:
            raise ValueError(
                f"{' and '.join(changed)} changed between passes over the rows{how}: dask "
                "computes them anew in every pass, and did not get the same. Persist the data, "
                "as in X = X.persist(), or fix the seed of their random numbers."
            )


def _as_numbers(values: Any) -> Any:
    """Columns as numbers to be summed: those of text by their check sums, NaN as zero."""
    if sparse.issparse(values):
        return values
    if is_frame(values):
        numeric = [is_numeric(dtype) for dtype in values.dtypes]
        numbers = as_numbers(safe_indexing(values, np.flatnonzero(numeric), axis=1))
        others = safe_indexing(values, np.flatnonzero(~np.array(numeric)), axis=1)
        return np.hstack([np.nan_to_num(numbers), _check_sums(np.asarray(others))])
    array = np.asarray(values)
    return np.nan_to_num(array.astype(float)) if is_numeric(array.dtype) else _check_sums(array)


def _check_sums(array: np.ndarray) -> np.ndarray:
    entries = [zlib.crc32(str(entry).encode()) for entry in array.ravel()]
    return np.array(entries, dtype=float).reshape(array.shape)


# -- tasks; a dashboard shows them by these names --------------------------------------------


def count_rows(X: Any) -> int:
    return int(num_samples(next(iter(X.values())) if isinstance(X, dict) else X))


def accumulate_rows(job: Job, X: Any, y: Any, weight: Any, start: int, number: int) -> Any:
    """The state of all blocks of one chunk, and their tally; None if it is empty."""
    state, tally = None, None
    with one_blas_thread(), undivided():
        for block in job.blocks(Chunk(X, y, weight), start, number):
            tally = Tally.of(block) if tally is None else tally + Tally.of(block)
            state = job.accumulate(state, block)
    return None if tally is None else (state, tally)


def merge_states(job: Job, states: Sequence[Any]) -> Any:
    merged = None
    with one_blas_thread(), undivided():
        for pair in states:
            if merged is None or pair is None:
                merged = merged or pair
            else:
                merged = job.merge(merged[0], pair[0]), merged[1] + pair[1]
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
    """The state of all rows and their tally, computed."""
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


__all__ = [
    "BLOCK_SIZE",
    "Block",
    "RowBlocks",
    "comes_in_blocks",
    "map_blocks",
    "refuse_unread",
    "row_blocks",
]

# Functions of pandas and Dask that read files, by their endings.
_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
}
# Endings of compressed files, which stand after the others.
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4")


def row_blocks(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    block_size: int | None = None,
    needs_y: bool = False,
    allow_nan: bool = False,
    may_lack: bool = False,
) -> RowBlocks:
    """The rows of X in blocks.

    Parameters
    ----------
    X : table, dict of tables, Views, or collection of Dask
        - A table in memory or a memory map: array, sparse matrix, data frame, list.
        - A dict of these, or `Views`: several tables of the same samples.
        - An array or a data frame of Dask, or a dict of them. Data frames are matched by their
          index, partition by partition; arrays by position.
    y, sample_weight : array, Series, array or Series of Dask, or None
        With a data frame of Dask also the name of one of its columns. A Series beside a data frame
        is matched by its index.
    block_size : int, default=4096
        Rows of a block.
    needs_y : bool, default=False
        Refuse rows without y.
    allow_nan : bool, default=False
        Whether numbers may be missing.
    may_lack : bool, default=False
        Whether samples may lack views.

    Returns
    -------
    RowBlocks

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale.blocks import row_blocks
    >>> blocks = row_blocks(np.arange(20.0).reshape(10, 2), block_size=4)
    >>> [(block.start, len(block)) for block in blocks]
    [(0, 4), (4, 4), (8, 2)]
    >>> blocks.reduce(lambda total, block: (total or 0.0) + block.X.sum(), sum)
    np.float64(190.0)
    """
    reading = Reading(_checked_size(block_size), needs_y, allow_nan, may_lack)
    refuse_unread(X)
    if comes_in_blocks(X):
        return DaskRows.of(X, y, sample_weight, reading)
    if are_views(X):
        return ViewsRows.of(X, y, sample_weight, reading)
    if isinstance(X, list | tuple) or hasattr(X, "__array__") or sparse.issparse(X) or is_frame(X):
        return TableRows.of(X, y, sample_weight, reading)
    raise TypeError(
        f"X is a {type(X).__name__}, which has no rows to read. Pass a table (array, sparse "
        "matrix, data frame), a dict of tables, or an array or data frame of dask."
    )


def map_blocks(
    X: Any,
    function: Callable[[Any], np.ndarray],
    *,
    meta: np.ndarray | None = None,
    block_size: int | None = None,
    allow_nan: bool = False,
    may_lack: bool = False,
) -> Any:
    """``function(X)`` block by block: one result for every row.

    Parameters
    ----------
    X : table, dict of tables, Views, or collection of Dask
        As in :func:`row_blocks`.
    function : callable
        From some rows of X to an array of as many rows.
    meta : ndarray, optional
        An empty result, such as ``np.empty((0, 3))``. For dask, which has to know the kind of
        results before it computes them; without it the first row is computed.
    block_size, allow_nan, may_lack : see :func:`row_blocks`

    Returns
    -------
    ndarray, or dask.array.Array for an array or data frame of dask

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale.blocks import map_blocks
    >>> map_blocks([[1.0, 2.0], [3.0, 4.0]], lambda X: X.sum(axis=1))
    array([3., 7.])
    """
    blocks = row_blocks(X, block_size=block_size, allow_nan=allow_nan, may_lack=may_lack)
    return blocks.map(function, meta)


def comes_in_blocks(X: Any) -> bool:
    """Whether X, or one of several tables, is a collection of dask."""
    return any(map(is_dask, X.values())) if isinstance(X, Mapping) else is_dask(X)


def _checked_size(block_size: int | None) -> int:
    if block_size is None:
        return BLOCK_SIZE
    if not isinstance(block_size, Integral) or isinstance(block_size, bool) or block_size < 1:
        raise ValueError(f"block_size must be a whole number above 0, got {block_size!r}.")
    return int(block_size)


# -- what others read ------------------------------------------------------------------------


def refuse_unread(X: Any, *, matrices: bool = False) -> None:
    """Raise TypeError, with the line that reads it, if X is a path or anything else to be read.

    Paths, stored arrays, iterators and lists of blocks are read by pandas or Dask. A list of
    tables is allowed if they are kernel `matrices`.
    """
    if matrices and isinstance(X, list | tuple) and X and all(map(_is_table, X)):
        return
    tables = X if isinstance(X, Mapping) and not sparse.issparse(X) else {None: X}
    for name, table in tables.items():
        advice = _advice(table)
        if advice is not None:
            raise TypeError(f"{'X' if name is None else f'view {name!r}'} is {advice}")


def _advice(X: Any) -> str | None:
    """What X is and the line to write instead; None for a table."""
    if _is_path(X):
        return f"a path, {os.fspath(X)!r}: {_reading_line(X)}"
    if isinstance(X, list | tuple):
        return _advice_of_list(X)
    if hasattr(X, "oindex") and hasattr(X, "shape"):
        return "an array of zarr: pass dask.array.from_zarr(X), or X[:] if it fits into memory."
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        return "lazy, without rows so far: pass X.collect()."
    if hasattr(X, "__next__") or inspect.isroutine(X):
        kind = "an iterator" if hasattr(X, "__next__") else "a function"
        return (
            f"{kind}, whose blocks of rows are not read here: pass all rows in one table, such as "
            "numpy.vstack(...) of the blocks; or, if they do not fit into memory, a data frame of "
            "dask whose partitions are the blocks, dask.dataframe.from_map(function, parts), or "
            "dask.array.from_array(...)."
        )
    return None


def _advice_of_list(X: Any) -> str | None:
    if len(X) == 0:
        return None
    if all(map(_is_path, X)) and all(
        not isinstance(one, str) or _ending(one) in _READERS for one in X
    ):
        # Other lists of strings are tables: sequences, texts.
        return f"a list of paths: {_reading_line(X[0], [os.fspath(one) for one in X])}"
    first = X[0]
    if isinstance(first, tuple) and 1 < len(first) <= 3 and _is_table(first[0]):
        return (
            "a list of blocks (X, y): pass all rows in one table, numpy.vstack([X for X, y in "
            "blocks]); or, if they do not fit into memory, "
            "dask.array.concatenate([dask.array.from_array(X) for X, y in blocks])."
        )
    if all(map(_is_table, X)):
        return (
            f"a {type(X).__name__} of {len(X)} tables: views of the same samples are passed as a "
            'dict with their names, such as {"audio": X1, "text": X2}; further rows of one table '
            "by numpy.vstack(X)."
        )
    return None


def _is_path(X: Any) -> bool:
    return isinstance(X, str | bytes | os.PathLike)


def _is_table(item: Any) -> bool:
    """Whether `item` has rows and columns, or is several tables."""
    return len(getattr(item, "shape", ())) == 2 or are_views(item)


def _ending(path: Any) -> str:
    name = os.fspath(path)
    name = (name.decode(errors="replace") if isinstance(name, bytes) else name).lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def _reading_line(path: Any, paths: Any = None) -> str:
    """The line that reads a path, or several."""
    ending = _ending(path)
    given = repr(os.fspath(path) if paths is None else paths)
    if ending == ".npy":
        return f'pass numpy.load({given}, mmap_mode="r").'
    if ending in (".zarr", ".zip"):
        return f"pass dask.array.from_zarr({given})."
    reader = _READERS.get(ending, "read_parquet")
    separated = ', sep="\\t"' if ending == ".tsv" else ""
    line = f"{reader}({given}{separated})"
    if paths is not None:
        return f"pass dask.dataframe.{line}."
    return f"pass pandas.{line}, or dask.dataframe.{line} if its rows do not fit into memory."
