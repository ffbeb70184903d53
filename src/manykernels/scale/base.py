"""Rows that come in blocks, and one pass over them.

With explicit features per kernel, a fit depends on the data only through sums over rows. A pass
adds them up block by block: ``accumulate(state, block)`` returns the state with one more block,
and the state before the first block is None; ``merge(a, b)`` returns that of both.

Containers differ only in how their rows are read: each kind is a :class:`RowBlocks` with
``pieces``, rows as they come out of the container. What follows is the same for all. Pieces are
checked (``checks.py``) and cut anew to `block_size` rows, so that every container of the same
rows gives the same blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from .._sklearn import num_samples
from .checkpoint import Checkpoint
from .checks import PieceCheck, refuse_no_rows
from .stacking import rows_of, stacked

# Rows of a block: a hundred columns of them are 3 MiB, and a thousand features 32 MiB, while
# products of matrices are as fast as with more.
BLOCK_SIZE = 4096

State = TypeVar("State")


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

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
        """Rows from `first` to `stop`, counted within the block."""
        if first <= 0 and stop >= len(self):
            return self
        rows = slice(first, stop)
        y, weight = (None if one is None else one[rows] for one in (self.y, self.weight))
        return Block(rows_of(self.X, rows), y, weight, self.start + first, self.number)


@dataclass(frozen=True)
class Reading:
    """How rows are read.

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

    def blocks(self, pieces: Iterable[Block], first: int = 0) -> Iterator[Block]:
        """Pieces, checked and cut into blocks, from block number `first` on."""
        return recut(self._checked(pieces, first * self.block_size), first, self.block_size)

    def _checked(self, pieces: Iterable[Block], first_row: int) -> Iterator[Block]:
        check = PieceCheck(self.needs_y, self.allow_nan, self.may_lack)
        for piece in pieces:
            n_rows = len(piece)
            if n_rows > 0 and piece.start + n_rows > first_row:
                X, y, weight = check(piece.X, piece.y, piece.weight, piece.start, piece.number)
                yield Block(X, y, weight, piece.start, piece.number)


class RowBlocks(ABC):
    """The rows of one kind of container, in blocks.

    Iterating over it gives the blocks in order. See :func:`manykernels.scale.row_blocks`, which
    makes it.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None if it is not known before a pass.
    one_shot : bool
        Whether rows can be read only once.
    random_access : bool
        Whether rows can be taken by their numbers: :meth:`take`.
    """

    n_rows: int | None = None
    one_shot: bool = False
    random_access: bool = False
    #: Every kind; no two of them take the same container.
    kinds: ClassVar[list[type[RowBlocks]]] = []

    def __init_subclass__(cls) -> None:
        RowBlocks.kinds.append(cls)

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    @property
    def block_size(self) -> int:
        return self.reading.block_size

    @classmethod
    @abstractmethod
    def takes(cls, X: Any) -> bool:
        """Whether `X` is a container of this kind."""

    @classmethod
    @abstractmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        """The rows of `X`, with targets and weights in whatever way they come with this kind."""

    @abstractmethod
    def pieces(self, first_row: int) -> Iterator[Block]:
        """Rows as they are read, not checked; rows before `first_row` may be left out."""

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Checked blocks of `block_size` rows, from block number `first` on."""
        return self.reading.blocks(self.pieces(first * self.block_size), first)

    def __iter__(self) -> Iterator[Block]:
        return self.blocks()

    def reduce(
        self,
        accumulate: Callable[[State | None, Block], State],
        merge: Callable[[State, State], State],
        *,
        checkpoint: Checkpoint | None = None,
    ) -> State:
        """One pass over all blocks.

        Parameters
        ----------
        accumulate : callable
            ``accumulate(state, block)`` returns the state with this block; `state` is None for
            the first one, and may be changed in place.
        merge : callable
            ``merge(a, b)`` returns the state of the blocks of both, those of `a` first. Needed
            where several workers pass over parts of the rows.
        checkpoint : Checkpoint, optional
            Keeps the state in a file, from which an interrupted pass goes on.

        Returns
        -------
        state
        """
        state = None
        if checkpoint is not None:
            state = checkpoint.reduce(self, accumulate)
        else:
            for block in self:
                state = accumulate(state, block)
        if state is None:
            refuse_no_rows()
        return state

    def map(self, function: Callable[[Any], np.ndarray], meta: np.ndarray | None) -> Any:
        """``function(X)`` of every block, as one array."""
        parts = [np.asarray(function(block.X)) for block in self]
        if not parts:
            refuse_no_rows()
        return np.concatenate(parts)

    def take(self, rows: np.ndarray) -> Any:
        """X of some rows, by their numbers; only with `random_access`."""
        raise NotImplementedError(f"{type(self).__name__} has no random access.")

    def bare(self) -> RowBlocks:
        """The same rows, with targets and weights but without columns; with `random_access`."""
        raise NotImplementedError(f"{type(self).__name__} has no random access.")


def rows_in(X: Any, y: Any, sample_weight: Any, reading: Reading) -> RowBlocks:
    """The rows of a container of any kind."""
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError(
            "X is lazy, without rows so far: pass X.collect(), or the path of a Parquet file."
        )
    for kind in RowBlocks.kinds:
        if kind.takes(X):
            return kind.of(X, y, sample_weight, reading)
    raise TypeError(
        f"X is a {type(X).__name__}, which has no rows to read. Pass a table (array, sparse "
        "matrix, data frame), a dict of tables, an array of zarr, an array or data frame of dask, "
        "the path of Parquet or CSV files, or a function that yields (X, y)."
    )


def recut(pieces: Iterable[Block], first: int, size: int) -> Iterator[Block]:
    """Blocks of `size` rows, the last one of fewer, numbered from `first` on.

    No more is held than one block and one piece. A piece that is a block is not copied.
    """
    number, waiting, n_waiting = first, list[Block](), 0
    for piece in pieces:
        # Rows of earlier blocks, which a container could not leave out.
        done = max(first * size - piece.start, 0)
        while done < len(piece):
            part = piece.cut(done, done + size - n_waiting)
            waiting.append(part)
            n_waiting, done = n_waiting + len(part), done + len(part)
            if n_waiting == size:
                yield _joined(waiting, number)
                number, waiting, n_waiting = number + 1, [], 0
    if waiting:
        yield _joined(waiting, number)


def _joined(parts: list[Block], number: int) -> Block:
    columns = [[part.X for part in parts], [part.y for part in parts]]
    X, y, weight = (
        None if column[0] is None else stacked(column)
        for column in (*columns, [part.weight for part in parts])
    )
    return Block(X, y, weight, parts[0].start, number)
