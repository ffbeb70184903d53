"""Rows of tables of any kind: selecting, stacking, checking, and reading them in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..kernels import Views
from ..kernels.matching import matched_targets, row_labels, shown
from ..kernels.tables import (
    Table,
    as_numbers,
    check_numbers,
    column_of_strings,
    is_frame,
    is_missing,
    is_numeric,
    naming,
    refuse_kinds,
    refuse_masked,
)
from ..kernels.views import are_views, as_views, columns_like, matched_views
from ..utils.sklearn import num_samples, safe_indexing

#: Targets or sample weights: array-like, a Dask collection, or the name of a column of one.
Targets: TypeAlias = ArrayLike | None


def rows_of(table: Table, rows: slice | np.ndarray) -> Table:
    """Return some rows of an array, sparse matrix, data frame or `Views`, by slice or numbers."""
    if isinstance(table, Views):
        return table[rows]
    return safe_indexing(table, rows)


def stacked(tables: Sequence[Any]) -> Any:
    """Concatenate the rows of tables of one kind."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if isinstance(first, Views):
        return Views.stacked(tables, stacked)
    if sparse.issparse(first):
        return sparse.vstack(tables, format="csr")
    if is_frame(first):
        return _stacked_frames(tables)
    return np.concatenate(tables)


def _stacked_frames(frames: Sequence[Any]) -> Table:
    if hasattr(frames[0], "iloc"):
        import pandas as pd

        return pd.concat(frames)
    # polars: columns of integers and of floats become one of floats.
    import polars as pl

    return pl.concat(frames, how="vertical_relaxed")


# -- Checks of incoming rows: columns of the first rows, finite numbers, targets ------------------
#
# Every error names the block, and the row at which it begins.


_FIRST = "the first block"


def refuse_no_rows() -> NoReturn:
    raise ValueError("Found array with 0 sample(s): there are no rows in X.")


def refuse_no_targets() -> NoReturn:
    raise ValueError("Fitting requires y to be passed, but the target y is None.")


def readable(X: Any) -> Table:
    """Return X as feature maps read it: a data frame, csr matrix, `Views`, or an array of rows."""
    if are_views(X):
        return as_views(X)
    if is_frame(X):
        return X
    if sparse.issparse(X):
        check_numbers(X, "X")
        return X.tocsr()
    if (strings := column_of_strings(X)) is not None:
        return strings
    refuse_masked(X, "X")
    array = np.asarray(X)  # memory maps become plain arrays, too
    check_numbers(array, "X", "Tables with text are passed as data frames.")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: X has to have rows and columns. "
            "Reshape your data either using array.reshape(-1, 1) if it has a single column or "
            "array.reshape(1, -1) if it is a single row."
        )
    return array if array.dtype.kind in "biuf" else array.astype(np.float64)


def names_in(names: str | list[str] | None) -> list[str]:
    """Return column names as a list, from a list, a single name or None."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def refuse_unknown_names(names: str | list[str] | None, columns: list[str], name: str) -> None:
    """Raise ValueError for names of missing columns, for y or sample weights."""
    for column in names_in(names):
        if column not in columns:
            raise ValueError(
                f"There is no column {column!r} for {name}; X has the columns {shown(columns)}."
            )


class PieceCheck:
    """Checks pieces one after the other, each against the first."""

    def __init__(self, reading: Reading, template: Table = None) -> None:
        # The template has the columns of the first piece, and no rows.
        self._reading, self._template = reading, template
        # Whether the first piece had targets and weights.
        self._given: tuple[bool, bool] | None = None

    def __call__(self, piece: Block) -> Block:
        """Return the piece with its columns in the order of the first piece."""
        y, weight, start = piece.y, piece.weight, piece.start
        with naming(f"Block {piece.number}, which begins at row {start}"):
            X = readable(piece.X)
            if self._template is None:
                self._template = rows_of(X, slice(0, 0))
            X = like_first(X, self._template)
            if isinstance(X, Views) and not self._reading.may_lack:
                X.refuse_lacking()
            refuse_not_finite(X, start, self._reading.allow_nan)
            if y is None and self._reading.needs_y:
                refuse_no_targets()
            present = y is not None, weight is not None
            self._given = self._given or present
            for name, now, then in zip(("y", "sample_weight"), present, self._given, strict=True):
                if now != then:
                    has, had = ("has a", "had none") if now else ("has no", "had one")
                    raise ValueError(f"it {has} {name}, but {_FIRST} {had}.")
            n_rows = int(num_samples(X))
            targets = None if y is None else checked_targets(y, n_rows, start)
            weights = None if weight is None else checked_weights(weight, n_rows, start)
        return Block(X, targets, weights, start, piece.number)


def like_first(table: Any, first: Any) -> Table:
    """Return `table` with views and named columns in the order of `first`, of the first rows."""
    if isinstance(first, Views):
        view_names = table.names if isinstance(table, Views) else []
        if sorted(view_names) != sorted(first.names):
            now, then = (", ".join(map(repr, names)) for names in (view_names, first.names))
            raise ValueError(f"it has the views {now or 'none'}, but {_FIRST} had {then}.")
        views = table.take([table.position(name) for name in first], axis=1)
        ordered = {}
        for name, view in first.items():
            with naming(f"view {name!r}"):
                ordered[name] = like_first(views[name], view)
        return views.with_tables(ordered)
    kinds = _container(table), _container(first)
    if kinds[0] != kinds[1]:
        raise ValueError(f"it is {kinds[0]}, but was {kinds[1]} in {_FIRST}.")
    table = columns_like(table, first, then=_FIRST)
    for position, (now, then) in enumerate(zip(_types(table), _types(first), strict=True)):
        if now is not then and is_numeric(now) != is_numeric(then):
            raise ValueError(
                f"{_column(table, position)} is of type {now}, but was of type {then} in "
                f"{_FIRST}: numbers and other values cannot be mixed in a column."
            )
    return table


def _container(table: Table) -> str:
    """Return the name of a kind of table in error messages."""
    if isinstance(table, Views):
        return "several views"
    if is_frame(table):
        return f"a data frame of {type(table).__module__.partition('.')[0]}"
    return "a sparse matrix" if sparse.issparse(table) else "an array"


def _types(table: Any) -> list[Any]:
    """Return the types of the columns of a data frame, or the type of an array."""
    return list(table.dtypes) if is_frame(table) else [table.dtype]


def _column(table: Any, position: int) -> str:
    if is_frame(table):
        return f"column {table.columns[position]!r}"
    return f"column {position}" if len(table.shape) == 2 else "it"


def refuse_not_finite(table: Table, start: int, allow_nan: bool) -> None:
    """Raise ValueError if a table has infinite numbers or NaN; its first row is `start`."""
    if isinstance(table, Views):
        for name, view in table.items():
            # A row without this view is not in the table.
            rows = start + np.flatnonzero(table.has(name))
            with naming(f"view {name!r}"):
                _refuse_not_finite(view, rows, allow_nan)
        return
    _refuse_not_finite(table, start + np.arange(num_samples(table)), allow_nan)


def _refuse_not_finite(table: Any, rows: np.ndarray, allow_nan: bool) -> None:
    positions = [j for j, dtype in enumerate(_types(table)) if is_numeric(dtype)]
    if not positions:
        return
    if sparse.issparse(table):
        entries = table.data
    elif is_frame(table) and len(positions) < table.shape[1]:
        table = safe_indexing(table, positions, axis=1)
        entries = as_numbers(table)
    else:
        entries = as_numbers(table) if is_frame(table) else table
    good = np.isfinite(entries)
    if allow_nan:
        good |= np.isnan(entries)
    if good.all():
        return
    if sparse.issparse(table):
        coordinates = table.tocoo()
        place = int(np.argmin(good))
        row, column, value = coordinates.row[place], coordinates.col[place], entries[place]
    else:
        row, column = np.unravel_index(np.argmin(good), good.shape)
        value = entries[row, column]
    at = f"at row {rows[row]}, {_column(table, int(column))}"
    if np.isnan(value):
        raise ValueError(
            f"there is a missing value (NaN) {at}: fill it in, leave the row out, or let the "
            "kernel fill it in, as in RBF().after(make_pipeline(SimpleImputer(), "
            "StandardScaler()))."
        )
    raise ValueError(
        f"there is an infinite value ({value}) {at}: only finite numbers can be used."
    )


def checked_targets(y: ArrayLike, n_rows: int, start: int = 0) -> np.ndarray:
    """Return targets as an array, none of them missing or infinite."""
    refuse_masked(y, "y")
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix, but must be dense: pass y.toarray().")
    targets = np.asarray(y)
    refuse_kinds(targets, "y", "c")
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array, got an array of shape {targets.shape} instead.")
    check_length(len(targets), n_rows, "y")
    if targets.dtype.kind == "f":
        bad = ~np.isfinite(targets)
    elif targets.dtype.kind in "OMm":
        flat = [is_missing(target) for target in targets.ravel()]
        bad = np.array(flat, dtype=bool).reshape(targets.shape)
    else:
        return targets
    if bad.any():
        row = int(np.argmax(bad.reshape(n_rows, -1).any(axis=1)))
        value = targets[row]
        raise ValueError(
            f"Input y contains NaN, None or infinity: y is {value} at row {start + row}. Leave "
            "this sample out, or give it a target."
        )
    return targets


def checked_weights(weight: ArrayLike, n_rows: int, start: int = 0) -> np.ndarray:
    """Return sample weights as an array of finite, non-negative numbers."""
    refuse_masked(weight, "sample_weight")
    check_numbers(np.asarray(weight), "sample_weight")
    weights = np.asarray(weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got an array of shape {weights.shape}."
        )
    check_length(len(weights), n_rows, "sample_weight")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight is {weights[row]:g} at row {start + row}: Negative values in data "
            "passed to `sample_weight`, infinite ones and NaN are not allowed."
        )
    return weights


def check_length(length: int, n_rows: int, name: str) -> None:
    """Raise ValueError if targets, weights or views have another length than X."""
    if length != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"but {name} has {length}."
        )


# -- Rows in blocks, and passes over them ---------------------------------------------------------
#
# With explicit features per kernel, a fit depends on the data only through sums over rows. A pass
# adds them up block by block: ``accumulate(state, block)`` returns the state with one more block,
# and the state before the first block is None; ``merge(a, b)`` returns the state of both.
#
# Containers differ only in how their rows are read: each kind is a :class:`RowBlocks` with
# ``pieces``, rows as they are read from the container. The rest is the same for all: pieces are
# checked and cut into blocks of `block_size` rows, so that every container of the same
# rows gives the same blocks.


# Default rows of a block: a hundred columns take 3 MiB, and a thousand features 32 MiB, while
# matrix products are as fast as with larger blocks.
BLOCK_SIZE = 4096

State = TypeVar("State")


@dataclass(frozen=True)
class Block:
    """Consecutive rows.

    Attributes
    ----------
    X : array, sparse matrix, data frame or Views
    y : ndarray or None
    weight : ndarray or None
        Sample weights.
    start : int
        Number of the first row, among all rows.
    number : int
        Number of the block.
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    start: int
    number: int

    def __len__(self) -> int:
        return int(num_samples(self.X))

    @property
    def rows(self) -> np.ndarray:
        """Numbers of the rows, among all rows."""
        return np.arange(self.start, self.start + len(self))

    def cut(self, first: int, stop: int) -> Block:
        """Return the rows from `first` to `stop`, counted within the block."""
        if first <= 0 and stop >= len(self):
            return self
        rows = slice(first, stop)
        y, weight = (None if values is None else values[rows] for values in (self.y, self.weight))
        return Block(rows_of(self.X, rows), y, weight, self.start + first, self.number)


@dataclass(frozen=True)
class Reading:
    """Settings for reading rows.

    Attributes
    ----------
    block_size : int
        Rows of a block.
    needs_y : bool
        Whether blocks without y are refused.
    allow_nan : bool
        Whether tables of numbers may have NaN.
    may_lack : bool
        Whether samples may lack views.
    """

    block_size: int = BLOCK_SIZE
    needs_y: bool = False
    allow_nan: bool = False
    may_lack: bool = False

    def blocks(self, pieces: Iterable[Block]) -> Iterator[Block]:
        """Check pieces and cut them into blocks."""
        return recut(self._checked(pieces), self.block_size)

    def _checked(self, pieces: Iterable[Block]) -> Iterator[Block]:
        check = PieceCheck(self)
        return (check(piece) for piece in pieces if len(piece) > 0)


class RowBlocks(ABC):
    """Rows of a container, in blocks.

    Iteration yields the blocks in order. :func:`manykernels.scale.row_blocks` returns the instance
    for a container.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None if it is not known before a pass.
    random_access : bool
        Whether rows can be taken by their numbers: :meth:`take`.
    """

    n_rows: int | None = None
    random_access: bool = False

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    @property
    def block_size(self) -> int:
        return self.reading.block_size

    @abstractmethod
    def pieces(self) -> Iterator[Block]:
        """Yield rows as they are read, unchecked."""

    def __iter__(self) -> Iterator[Block]:
        """Yield checked blocks of `block_size` rows."""
        return self.reading.blocks(self.pieces())

    def reduce(
        self,
        accumulate: Callable[[State | None, Block], State],
        merge: Callable[[State, State], State],
    ) -> State:
        """Accumulate a state in one pass over all blocks.

        Parameters
        ----------
        accumulate : callable
            ``accumulate(state, block)`` returns the state with this block; `state` is None for
            the first one, and may be changed in place.
        merge : callable
            ``merge(a, b)`` returns the state of the blocks of both, those of `a` first. Needed
            where several workers pass over parts of the rows.

        Returns
        -------
        state
        """
        state = None
        for block in self:
            state = accumulate(state, block)
        if state is None:
            refuse_no_rows()
        return state

    def map(self, function: Callable[[Any], np.ndarray]) -> Any:
        """Return ``function(X)`` of every block, as one array."""
        parts = [np.asarray(function(block.X)) for block in self]
        if not parts:
            refuse_no_rows()
        return np.concatenate(parts)

    def count(self) -> int:
        """Return the number of rows, counting them if it is unknown."""
        assert self.n_rows is not None
        return self.n_rows

    def take(self, rows: np.ndarray) -> Table:
        """Return X of some rows, by their numbers; only with `random_access`."""
        raise NotImplementedError(f"{type(self).__name__} has no random access.")

    def bare(self) -> RowBlocks:
        """Return the rows with targets and weights, but without columns; with `random_access`."""
        raise NotImplementedError(f"{type(self).__name__} has no random access.")


def recut(pieces: Iterable[Block], size: int) -> Iterator[Block]:
    """Yield blocks of `size` rows; the last one may be shorter.

    Memory is needed for one block and one piece. A piece that is a whole block is not copied.
    """
    number, waiting, n_waiting = 0, list[Block](), 0
    for piece in pieces:
        done = 0
        while done < len(piece):
            rows = piece.cut(done, done + size - n_waiting)
            waiting.append(rows)
            n_waiting, done = n_waiting + len(rows), done + len(rows)
            if n_waiting == size:
                yield _joined(waiting, number)
                number, waiting, n_waiting = number + 1, [], 0
    if waiting:
        yield _joined(waiting, number)


def _joined(blocks: list[Block], number: int) -> Block:
    columns = [[block.X for block in blocks], [block.y for block in blocks]]
    X, y, weight = (
        None if column[0] is None else stacked(column)
        for column in (*columns, [block.weight for block in blocks])
    )
    return Block(X, y, weight, blocks[0].start, number)


# -- Tables in memory or mapped from disk, and `Views` of tables ----------------------------------


# Rows of a block without columns: hundreds of millions of rows are then few blocks.
_BARE_ROWS = 2**18


def is_dask(X: Table) -> bool:
    """Return True if X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


class TableRows(RowBlocks):
    """Rows of one table (array, memory map, sparse matrix, data frame, list), or of several.

    Several tables are matched by label if they have labels, else by position.
    """

    random_access = True

    def __init__(self, X: Table, y: Targets, weight: Targets, reading: Reading) -> None:
        super().__init__(reading)
        self.n_rows = n_rows = int(num_samples(X))
        for name, values in (("y", y), ("sample_weight", weight)):
            if isinstance(values, str):
                raise ValueError(
                    f"{name}={values!r} names a column, which is possible only if X is a dask "
                    f"data frame. Pass the values: {name}=frame[{values!r}]."
                )
        if y is None and reading.needs_y:
            refuse_no_targets()
        self.X = X
        self.y = None if y is None else checked_targets(y, n_rows)
        self.weight = None if weight is None else checked_weights(weight, n_rows)

    @classmethod
    def of(cls, X: Any, y: Targets, sample_weight: Targets, reading: Reading) -> Self:
        if are_views(X):
            views, y, weight, _ = matched_views(X, y, sample_weight, may_lack=reading.may_lack)
            return cls(views, y, weight, reading)
        if num_samples(X) == 0:
            refuse_no_rows()
        y, sample_weight = matched_targets(row_labels(X), y=y, sample_weight=sample_weight)
        # Arrays and memory maps are read block by block; lists are converted at once.
        lazy = isinstance(X, np.ndarray)
        if lazy and len(X.shape) != 2 and X.dtype.kind in "biuf":
            readable(np.empty((1,) * len(X.shape)))  # raises
        return cls(X if lazy else readable(X), y, sample_weight, reading)

    def pieces(self) -> Iterator[Block]:
        size, n_rows = self.block_size, self.n_rows or 0
        for start in range(0, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            y, weight = (
                None if values is None else values[rows] for values in (self.y, self.weight)
            )
            yield Block(rows_of(self.X, rows), y, weight, start, start // size)

    def take(self, rows: np.ndarray) -> Table:
        return readable(rows_of(self.X, rows))

    def bare(self) -> TableRows:
        reading = Reading(_BARE_ROWS, self.reading.needs_y)
        return TableRows(np.empty((self.n_rows or 0, 0)), self.y, self.weight, reading)
