"""Symmetric matrices of which a program may need only some rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .face import Array, Indices


class Rows:
    """A symmetric matrix (m × m) whose rows are computed when they are first needed.

    Support vectors are often few: their rows, and those of the variables that steps choose, are
    all that a program reads.

    Parameters
    ----------
    values : ndarray of shape (m, m)
        Memory for the matrix, C-ordered. Only the rows that are `ready` have a meaning.
    fill : callable
        ``fill(rows)`` computes these rows of `values`.
    diagonal : ndarray of shape (m,)
        That of the whole matrix.

    Attributes
    ----------
    ready : ndarray of shape (m,), bool
        Which rows have been computed.
    """

    def __init__(self, values: Array, fill: Callable[[Indices], None], diagonal: Array) -> None:
        self.values = values
        self.diagonal = diagonal
        self.ready: NDArray[np.bool_] = np.zeros(len(values), dtype=bool)
        self._n_missing = len(values)
        self._fill = fill

    @classmethod
    def of(cls, matrix: Array | Rows) -> Rows:
        """A matrix that is there as a whole; rows are returned as they are."""
        if isinstance(matrix, Rows):
            return matrix
        rows = cls(matrix, lambda _: None, matrix.diagonal())
        rows.ready[:] = True
        rows._n_missing = 0
        return rows

    def need(self, rows: Indices) -> Array:
        """The memory of the matrix, with these rows computed; none may be given twice."""
        if self._n_missing:
            missing = rows[~self.ready[rows]]
            if len(missing):
                self._fill(missing)
                self.ready[missing] = True
                self._n_missing -= len(missing)
        return self.values

    def product(self, v: Array) -> Array:
        """The matrix times `v`, by the rows where `v` is not zero."""
        from ._loops import add_product, not_ready

        self.need(not_ready(v, self.ready))
        product = np.zeros(len(v))
        add_product(self.values, v, product)
        return product

    def part(self, kept: Indices) -> Rows:
        """The matrix between the rows `kept`; those that are ready here are ready there."""
        from ._loops import gather_rows

        values = np.empty((len(kept), len(kept)))

        def fill(rows: Indices) -> None:
            gather_rows(self.need(kept[rows]), kept, rows, values)

        part = Rows(values, fill, self.diagonal[kept])
        part.need(np.flatnonzero(self.ready[kept]))
        return part

    def whole(self) -> Array:
        """All of the matrix."""
        return self.need(np.arange(len(self.values)))
