"""Read tables, several tables or Dask collections as blocks of rows: :func:`row_blocks`."""

from __future__ import annotations

import inspect
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate as running_sums
from itertools import islice
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse

from ..kernels import Views
from ..kernels.matching import shown
from ..kernels.tables import Table, as_numbers, is_frame, is_numeric, naming
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
    Targets,
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

# -- Rows of Dask arrays and data frames ---------------------------------------------------------
#
# A pass is a task graph: one task per chunk, which accumulates the blocks of this chunk, and a
# tree of merges. It runs on the current `distributed.Client` if there is one, otherwise in
# threads. Rows stay on the workers; the tasks of a lost worker run again on another one.
#
# Chunks of several tables, of y and of weights are aligned with the chunks of the first table.
# The indices of pandas chunks are compared, see :func:`_in_order`.
#
# Every pass computes the rows anew. Sums over all rows (:class:`Tally`) detect rows that differ
# from the first pass, which is an error.


# States merged by one task: the tree has few levels, and no worker holds many states at once.
_FAN_IN = 8
# Relative tolerance on the sums of two passes. Rounding errors of rows that are computed in
# another order, in single precision, are below it.
_SAME = 1e-7
# Seed of the random numbers that multiply the rows in a tally.
_TALLY_SEED = 0
# End of the error messages about rows that cannot be matched.
_WAYS_TO_MATCH = (
    'Take both from one frame, as in frame = frame.join(y) and y = frame["y"]; or, if the rows '
    "are in the same order, pass values without an index, such as y.to_numpy() or "
    "y.to_dask_array()."
)

_LOST = (
    "The sums of the running pass are lost; the data are not, and nothing was fitted. "
    "Start a cluster and a Client, recreate the dask collections if they were persisted on the "
    "old cluster, and call fit again."
)


#: Names of columns.
Names = str | list[str] | None


class DaskRows(RowBlocks):
    """Rows of a Dask array or data frame, or of a dict of them."""

    def __init__(
        self, X: Table, y: Targets, weight: Targets, columns: tuple[Names, Names], reading: Reading
    ) -> None:
        super().__init__(reading)
        views = {name: _in_rows(table) for name, table in _named(X).items()}
        base = next((table for table in views.values() if _is_dask_frame(table)), None)
        self._views: dict[str, Any] = {
            name: _divided_like(base, table) for name, table in views.items()
        }
        self._y, self._weight = _divided_like(base, y), _divided_like(base, weight)
        self._single = not isinstance(X, Mapping)
        self._columns = columns
        self._template = self._known_columns() if self._single else None
        lengths = next(filter(None, map(_known_lengths, self._views.values())), None)
        self._lengths = lengths
        self.n_rows = None if lengths is None else sum(lengths)
        self._first: Tally | None = None

    @classmethod
    def of(cls, X: Table, y: Targets, sample_weight: Targets, reading: Reading) -> Self:
        _require_dask()
        names = list(X.columns) if is_frame(X) else []
        columns: list[Any] = []
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            # A list of strings holds labels, unless all of them are column names.
            several = isinstance(values, list) and bool(values) and set(values) <= set(names)
            named = isinstance(values, str) or (name == "y" and several)
            columns.append(values if named else None)
            if named and not names:
                raise ValueError(
                    f"{name}={values!r} names a column, but X is not a data frame. Pass the "
                    f"values of {name}."
                )
            refuse_unknown_names(columns[-1], names, name)
        if y is None and reading.needs_y:
            refuse_no_targets()
        y, sample_weight = (
            values if column is None else None
            for column, values in zip(columns, (y, sample_weight), strict=True)
        )
        return cls(X, y, sample_weight, (columns[0], columns[1]), reading)

    def _known_columns(self) -> Any:
        """Return a data frame without rows, targets and weights; None for an array."""
        (X,) = self._views.values()
        has_names = is_frame(X)
        if not has_names:
            return None
        taken = [name for column in self._columns for name in names_in(column)]
        return X._meta.drop(columns=taken)

    # -- chunks ----------------------------------------------------------------------------

    def lengths(self) -> list[int]:
        """Return the number of rows of every chunk, counting them if they are unknown."""
        if self._lengths is None:
            import dask

            first = next(table for table in self._views.values() if is_dask(table))
            count = dask.delayed(count_rows, pure=False)
            self._lengths = list(computed([count(chunk) for chunk in _delayed(first)]))
            self.n_rows = sum(self._lengths)
        return self._lengths

    def count(self) -> int:
        return sum(self.lengths())

    def _chunks(self) -> list[Chunk]:
        """Delayed tables, targets and weights of every chunk."""
        views = {name: self._parts(table, f"view {name!r}") for name, table in self._views.items()}
        columns: list[Any] = [dict(zip(views, parts, strict=True)) for parts in _zip(views)]
        if self._single:
            columns = [next(iter(chunk.values())) for chunk in columns]
        tables: dict[str, list[Any]] = {"X": columns}
        for name, values in (("y", self._y), ("sample_weight", self._weight)):
            missing = [None] * len(columns)
            tables[name] = missing if values is None else self._parts(values, name)
        return [Chunk(*chunk) for chunk in _zip(tables)]

    def _parts(self, table: Any, name: str) -> list[Any]:
        """Return the chunks of a table, aligned with the chunks of the first table."""
        if not is_dask(table):
            # In memory: targets, weights or a small view.
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

    def map(self, function: Callable[[Any], np.ndarray]) -> Any:
        import dask
        import dask.array as da

        # Dask needs the shape and type of results before they are computed: one row has them.
        rows = (piece.cut(0, 1) for piece in self.pieces() if len(piece) > 0)
        first = next(self.reading.blocks(islice(rows, 1)), None)
        if first is None:
            refuse_no_rows()
        result = np.asarray(function(first.X))
        # Strings of other rows may be longer.
        dtype = np.dtype(object) if result.dtype.kind in "US" else result.dtype
        empty = np.empty((0, *result.shape[1:]), dtype=dtype)
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
            "Dask collections need dask[array] and distributed; install both with pip install "
            "'manykernels[dask]'."
        ) from error


def _named(X: Table) -> dict[str, Any]:
    """Return the tables by name; a single table is named "X" in error messages."""
    return dict(X) if isinstance(X, Mapping) else {"X": X}


def _in_rows(table: Any) -> Table:
    """Return a table whose chunks are whole rows, or a table in memory."""
    if not is_dask(table):
        return readable(table)
    if is_frame(table):
        return table
    if table.ndim != 2:
        readable(np.empty((1,) * table.ndim))  # raises
    return table.rechunk({1: -1})


def _is_dask_frame(table: Table) -> bool:
    """Return True for a Dask data frame or Series."""
    return is_dask(table) and hasattr(table, "divisions")


def _divided_like(base: Any, table: Any) -> Table:
    """Return a Dask frame or Series repartitioned like `base`, if the divisions are known."""
    if not (_is_dask_frame(base) and _is_dask_frame(table)):
        return table
    known = base.known_divisions and table.known_divisions
    divisions, others = base.divisions, table.divisions
    # If the first or the last label differs, the labels are not the same.
    if (
        not known
        or divisions == others
        or (divisions[0], divisions[-1]) != (others[0], others[-1])
    ):
        return table
    return table.repartition(divisions=divisions)


def _known_lengths(table: Table) -> list[int] | None:
    """Return the rows per chunk of a Dask array; None if they are unknown."""
    if not is_dask(table) or not hasattr(table, "chunks"):
        return None
    lengths = table.chunks[0]
    return None if np.isnan(lengths).any() else [int(length) for length in lengths]


def _delayed(table: Any) -> list[Any]:
    parts = table.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def _zip(parts: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    """Zip the chunks of several tables, which must have equally many."""
    (first, expected), *others = ((name, len(chunks)) for name, chunks in parts.items())
    for name, number in others:
        if number != expected:
            raise ValueError(
                f"{name!r} has {number} chunks of rows, but {first!r} has {expected}, and the "
                "rows of each chunk are unknown. Give both the same partitions, join data frames "
                "with frame.join(...), or call compute_chunk_sizes() on the arrays."
            )
    return list(zip(*parts.values(), strict=True))


# -- chunks -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chunk:
    """Delayed rows of one chunk: a table, or a dict of tables."""

    X: Any
    y: Targets
    weight: Targets


@dataclass(frozen=True)
class Job:
    """Settings shared by all tasks of a pass, sent to the workers once.

    Attributes
    ----------
    reading : Reading
    template : data frame or None
        Expected columns of the chunks of a data frame, without rows.
    y, weight : str, list of str or None
        Names of the data frame columns that hold targets and weights.
    accumulate, merge : callable
        Functions of a pass, see ``RowBlocks.reduce``.
    function : callable
        Function of a map, from X of a block to its results.
    """

    reading: Reading
    template: Table = None
    y: Names = None
    weight: Names = None
    accumulate: Any = None
    merge: Any = None
    function: Any = None

    def blocks(self, chunk: Chunk, start: int, number: int) -> Iterator[Block]:
        """Yield the checked blocks of a chunk, given the numbers of its first row and block."""
        piece = self.piece(chunk, start, number)
        if len(piece) == 0:
            return
        size, check = self.reading.block_size, PieceCheck(self.reading, self.template)
        for first in range(0, len(piece), size):
            rows = piece.cut(first, first + size)
            yield check(replace(rows, number=number + first // size))

    def piece(self, chunk: Chunk, start: int, number: int) -> Block:
        """Return a chunk as one block, with targets and weights split off the table."""
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
        y, weight = (None if values is None else np.asarray(values) for values in (y, weight))
        return Block(X, y, weight, start, number)


def _in_order(values: Any, name: str, first: str, index: Any) -> Any:
    """Return the rows of a chunk in the order of `index`, the labels of the table `first`.

    The same labels in another order are matched; other labels are refused. The labels 0, 1, 2, …
    may be the default index of pandas: if only one side has them in order, the match would be
    ambiguous and is refused, too.
    """
    labels = row_labels(values)
    if labels is None or labels.equals(index):
        return values
    unique = labels.is_unique and index.is_unique
    if not unique or len(labels) != len(index) or not labels.isin(index).all():
        raise ValueError(
            f"the index of {name} differs from the index of {first}, so that rows cannot be "
            f"matched: it begins with {shown(list(labels[:5]))}, the index of {first} with "
            f"{shown(list(index[:5]))}. {_WAYS_TO_MATCH}"
        )
    if _is_counted(labels) or _is_counted(index):
        raise ValueError(
            f"the index of {name} has the numbers of {first} in another order, and one of the two "
            "indices just counts the rows, so that rows with the same number may not belong "
            f"together. {_WAYS_TO_MATCH}"
        )
    return values.loc[index]


def values_of_rows(X: Table, values: Any, name: str) -> Any:
    """Return values of all rows of a Dask collection, computed, in the order of the rows.

    A Series beside a data frame is matched by its index, as targets are.
    """
    values = computed(values) if is_dask(values) else values
    frame = next((table for table in _named(X).values() if _is_dask_frame(table)), None)
    if frame is None or row_labels(values) is None:
        return values
    return _in_order(values, name, "X", computed(frame.index))


def _is_counted(index: Any) -> bool:
    """Return True if labels are consecutive integers."""
    return index.dtype.kind in "iu" and bool((np.diff(index.to_numpy()) == 1).all())


def _unlabelled(table: Any) -> Table:
    """Return a pandas frame with the default index."""
    return table.reset_index(drop=True) if hasattr(table, "iloc") else table


# -- equal rows in every pass ----------------------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """Weighted sums over rows, which detect rows that change between passes.

    Every row is multiplied by its own random number, so that a change of order is detected, too.

    Attributes
    ----------
    n_rows : int
    sums, sizes : dict of str to ndarray
        Weighted sums of the columns of X, y and weights, and of their absolute values.
    """

    n_rows: int
    sums: dict[str, np.ndarray]
    sizes: dict[str, np.ndarray]

    @classmethod
    def of(cls, block: Block) -> Tally:
        """Return the tally of one block."""
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
        """Raise ValueError if the rows are not `n_rows`, or not those of the first pass."""
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
                "computes the rows anew in every pass, with another result. Persist the data, "
                "as in X = X.persist(), or fix the seed of their random numbers."
            )


def _as_numbers(values: Targets) -> Any:
    """Return the columns as numbers: check sums for text, zero for NaN."""
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


#: State of a pass over some rows, and their tally.
State = tuple[Any, Tally]


# -- tasks; the dashboard shows these function names -----------------------------------------


def count_rows(X: Table) -> int:
    return int(num_samples(next(iter(X.values())) if isinstance(X, dict) else X))


def accumulate_rows(
    job: Job, X: Table, y: Targets, weight: Targets, start: int, number: int
) -> State | None:
    """Return the state and the tally of all blocks of a chunk; None if it is empty."""
    state, tally = None, None
    with one_blas_thread(), undivided():
        for block in job.blocks(Chunk(X, y, weight), start, number):
            tally = Tally.of(block) if tally is None else tally + Tally.of(block)
            state = job.accumulate(state, block)
    return None if tally is None else (state, tally)


def merge_states(job: Job, states: Sequence[State | None]) -> State | None:
    merged = None
    with one_blas_thread(), undivided():
        for pair in states:
            if merged is None or pair is None:
                merged = merged or pair
            else:
                merged = job.merge(merged[0], pair[0]), merged[1] + pair[1]
    return merged


def map_rows(job: Job, X: Table, number: int, empty: np.ndarray) -> np.ndarray:
    """Return the results of all rows of a chunk; `empty` is the result of no rows."""
    with naming(f"Chunk {number}, whose first row is row 0 here"), one_blas_thread(), undivided():
        blocks = job.blocks(Chunk(X, None, None), 0, 0)
        results = np.concatenate([empty, *(np.asarray(job.function(block.X)) for block in blocks)])
        return results.astype(empty.dtype, casting="same_kind", copy=False)


# -- graphs ----------------------------------------------------------------------------------


def reduced(job: Job, chunks: Sequence[Chunk], lengths: Sequence[int]) -> State | None:
    """Compute the state and the tally of all rows."""
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
    """Compute a task graph on the current cluster, or in threads."""
    import dask

    with explaining_a_lost_cluster(), warnings.catch_warnings():
        # The job is in the graph once, so that a worker that replaces a lost one finds it. Data
        # in memory that users pass beside Dask collections are in the graph, too.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return dask.compute(delayed)[0]


@contextmanager
def explaining_a_lost_cluster() -> Iterator[None]:
    """Explain errors caused by a lost cluster or by workers that died."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if not type(error).__module__.startswith(("distributed", "concurrent", "asyncio")):
            raise
        if name == "KilledWorker":
            raise RuntimeError(
                f"Several workers died while they worked on the same rows ({error}), often "
                "because their memory was full. Use smaller chunks, X.rechunk(...) or "
                "X.repartition(...), or workers with more memory, and call fit again."
            ) from error
        raise RuntimeError(f"The dask cluster is gone ({name}: {error}). {_LOST}") from error


# Functions of pandas and Dask that read files, by file extension.
_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
}
FilePath = str | bytes | os.PathLike[str]
# Extensions of compressed files, which follow the others.
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4")


def row_blocks(
    X: Table,
    y: Targets = None,
    sample_weight: Targets = None,
    *,
    block_size: int | None = None,
    needs_y: bool = False,
    allow_nan: bool = False,
    may_lack: bool = False,
) -> RowBlocks:
    """Return the rows of X in blocks.

    Parameters
    ----------
    X : table, dict of tables, Views, or Dask collection
        - A table in memory or a memory map: array, sparse matrix, data frame, list.
        - A dict of these, or `Views`: several tables of the same samples.
        - A Dask array or data frame, or a dict of them. Data frames are matched by their
          index, partition by partition; arrays by position.
    y, sample_weight : array, Series, Dask array or Series, or None
        With a Dask data frame also the name of one of its columns. A Series beside a data frame
        is matched by its index.
    block_size : int, default=4096
        Number of rows of a block.
    needs_y : bool, default=False
        Whether missing targets are an error.
    allow_nan : bool, default=False
        Whether numbers may be NaN.
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
    if (
        are_views(X)
        or isinstance(X, list | tuple)
        or hasattr(X, "__array__")
        or sparse.issparse(X)
        or is_frame(X)
    ):
        return TableRows.of(X, y, sample_weight, reading)
    raise TypeError(
        f"X is a {type(X).__name__}, which has no rows. Pass a table (array, sparse matrix, data "
        "frame), a dict of tables, or a dask array or data frame."
    )


def map_blocks(
    X: Table,
    function: Callable[[Any], np.ndarray],
    *,
    block_size: int | None = None,
    allow_nan: bool = False,
    may_lack: bool = False,
) -> Any:
    """Apply a function to blocks of rows and return one result for every row.

    Parameters
    ----------
    X : table, dict of tables, Views, or Dask collection
        As in :func:`row_blocks`.
    function : callable
        Function from some rows of X to an array with as many rows.
    block_size, allow_nan, may_lack : see :func:`row_blocks`

    Returns
    -------
    ndarray, or dask.array.Array for a Dask array or data frame
        Of a Dask collection only the first row is computed, to know the type of the results.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale.blocks import map_blocks
    >>> map_blocks([[1.0, 2.0], [3.0, 4.0]], lambda X: X.sum(axis=1))
    array([3., 7.])
    """
    blocks = row_blocks(X, block_size=block_size, allow_nan=allow_nan, may_lack=may_lack)
    return blocks.map(function)


def comes_in_blocks(X: Table) -> bool:
    """Return True if X, or one of several tables, is a Dask collection."""
    return any(map(is_dask, X.values())) if isinstance(X, Mapping) else is_dask(X)


def _checked_size(block_size: int | None) -> int:
    if block_size is None:
        return BLOCK_SIZE
    if not isinstance(block_size, Integral) or isinstance(block_size, bool) or block_size < 1:
        raise ValueError(f"block_size must be a whole number above 0, got {block_size!r}.")
    return int(block_size)


# -- inputs to be read by other libraries ----------------------------------------------------


def refuse_unread(X: Table, *, matrices: bool = False) -> None:
    """Raise TypeError, with the line of code that reads it, if X is not yet a table.

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
    """Describe X and the line of code to use instead; None for a table."""
    if X is None:
        return "None: pass a table with a row per sample, such as an array or a data frame."
    if _is_path(X):
        return f"a path, {os.fspath(X)!r}: {_reading_line(X)}"
    if isinstance(X, list | tuple):
        return _advice_of_list(X)
    if hasattr(X, "oindex") and hasattr(X, "shape"):
        return "a zarr array: pass dask.array.from_zarr(X), or X[:] if it fits into memory."
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        return "lazy and has no rows yet: pass X.collect()."
    if hasattr(X, "__next__") or inspect.isroutine(X):
        kind = "an iterator" if hasattr(X, "__next__") else "a function"
        return (
            f"{kind}, from which blocks of rows cannot be read: pass all rows in one table, such "
            "as numpy.vstack(...) of the blocks; or, if they do not fit into memory, a dask data "
            "frame whose partitions are the blocks, dask.dataframe.from_map(function, parts), or "
            "dask.array.from_array(...)."
        )
    return None


def _advice_of_list(X: Any) -> str | None:
    if len(X) == 0:
        return None
    if all(map(_is_path, X)) and all(
        not isinstance(path, str) or _ending(path) in _READERS for path in X
    ):
        # Other lists of strings are tables: sequences, texts.
        return f"a list of paths: {_reading_line(X[0], [os.fspath(path) for path in X])}"
    first = X[0]
    if isinstance(first, tuple) and 1 < len(first) <= 3 and _is_table(first[0]):
        return (
            "a list of blocks (X, y): pass all rows in one table, numpy.vstack([X for X, y in "
            "blocks]); or, if they do not fit into memory, "
            "dask.array.concatenate([dask.array.from_array(X) for X, y in blocks])."
        )
    if all(map(_is_table, X)):
        return (
            f"a {type(X).__name__} of {len(X)} tables: pass views of the same samples as a dict "
            'with their names, such as {"audio": X1, "text": X2}, and further rows of one table '
            "as numpy.vstack(X)."
        )
    return None


def _is_path(X: Table) -> bool:
    return isinstance(X, str | bytes | os.PathLike)


def _is_table(item: object) -> bool:
    """Return True if `item` has rows and columns, or is several tables."""
    return len(getattr(item, "shape", ())) == 2 or are_views(item)


def _ending(path: FilePath) -> str:
    name = os.fspath(path)
    name = (name.decode(errors="replace") if isinstance(name, bytes) else name).lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def _reading_line(path: FilePath, paths: list[str | bytes] | None = None) -> str:
    """Return the line of code that reads a path, or several."""
    ending = _ending(path)
    argument = repr(os.fspath(path) if paths is None else paths)
    if ending == ".npy":
        return f'pass numpy.load({argument}, mmap_mode="r").'
    if ending in (".zarr", ".zip"):
        return f"pass dask.array.from_zarr({argument})."
    reader = _READERS.get(ending, "read_parquet")
    separated = ', sep="\\t"' if ending == ".tsv" else ""
    line = f"{reader}({argument}{separated})"
    if paths is not None:
        return f"pass dask.dataframe.{line}."
    return f"pass pandas.{line}, or dask.dataframe.{line} if its rows do not fit into memory."
