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
from typing import Any, TypeVar

import numpy as np

from .._sklearn import num_samples
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

    def blocks(self, pieces: Iterable[Block]) -> Iterator[Block]:
        """Pieces, checked and cut into blocks."""
        return recut(self._checked(pieces), self.block_size)

    def _checked(self, pieces: Iterable[Block]) -> Iterator[Block]:
        check = PieceCheck(self.needs_y, self.allow_nan, self.may_lack)
        for piece in pieces:
            if len(piece) > 0:
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
        """Rows as they are read, not checked."""

    def __iter__(self) -> Iterator[Block]:
        """Checked blocks of `block_size` rows."""
        return self.reading.blocks(self.pieces())

    def reduce(
        self,
        accumulate: Callable[[State | None, Block], State],
        merge: Callable[[State, State], State],
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


def recut(pieces: Iterable[Block], size: int) -> Iterator[Block]:
    """Blocks of `size` rows, the last one of fewer.

    No more is held than one block and one piece. A piece that is a block is not copied.
    """
    number, waiting, n_waiting = 0, list[Block](), 0
    for piece in pieces:
        done = 0
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
