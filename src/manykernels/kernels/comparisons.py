"""What kernels take from each pair of rows before their own formula: products or distances.

A comparison is prepared once for two tables (squared lengths, normalised rows) and then computed
tile by tile, so that kernels that are functions of the same numbers share those of a tile, and
none of them needs a matrix of distances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms, safe_sparse_dot


def writable(X: Any) -> Any:
    """`X`, or a copy if it is dense and read-only, as joblib passes arrays to workers.

    The compiled χ² loop of scikit-learn refuses read-only buffers although it only reads them.
    """
    return X if X is None or sparse.issparse(X) else np.require(X, requirements="W")


class Comparison(ABC):
    """A number for every row of `X` and every row of `Y`, or of `X` again if `Y` is None."""

    def __init__(self, X: Any, Y: Any) -> None:
        self.gram = Y is None
        self.X = X
        self.Y = X if Y is None else Y

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.Y.shape[0]

    @abstractmethod
    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        """The numbers of some rows of `X` and some of `Y`, in a new array."""

    @abstractmethod
    def _bounds(self) -> tuple[float, float]:
        """What `bounds` are."""

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """All numbers lie between these. Not finite if a number might not be."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._bounds()

    def whole(self) -> np.ndarray:
        """All numbers."""
        return self.tile(*(slice(0, size) for size in self.shape))


class InnerProducts(Comparison):
    """``⟨x, y⟩``."""

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        return safe_sparse_dot(self.X[rows], self.Y[columns].T, dense_output=True)

    def _bounds(self) -> tuple[float, float]:
        most = _largest(row_norms(self.X)) * _largest(row_norms(self.Y))
        return -most, most


class Cosines(InnerProducts):
    """Inner products of rows of length one; rows of zeros stay zero."""

    def __init__(self, X: Any, Y: Any) -> None:
        super().__init__(normalize(X), None if Y is None else normalize(Y))


class SquaredDistances(Comparison):
    """``‖x − y‖²``, exactly zero between a row and itself if `Y` is None."""

    def __init__(self, X: Any, Y: Any) -> None:
        if not sparse.issparse(X) and not sparse.issparse(Y):
            # ‖x‖² − 2⟨x, y⟩ + ‖y‖² loses digits far from the origin; a shift changes no distance.
            origin = X.mean(axis=0)
            X = X - origin
            Y = None if Y is None else Y - origin
        super().__init__(X, Y)
        self._row_squares = row_norms(self.X, squared=True)
        self._column_squares = row_norms(self.Y, squared=True)

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        tile = safe_sparse_dot(self.X[rows], self.Y[columns].T, dense_output=True)
        tile *= -2.0
        tile += self._row_squares[rows, None]
        tile += self._column_squares[columns]
        np.maximum(tile, 0.0, out=tile)
        if self.gram:
            same = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
            tile[same - rows.start, same - columns.start] = 0.0
        return tile

    def _bounds(self) -> tuple[float, float]:
        # (‖x‖ + ‖y‖)² ≤ 2 ‖x‖² + 2 ‖y‖²
        return 0.0, 2.0 * (_largest(self._row_squares) + _largest(self._column_squares))


class ManhattanDistances(Comparison):
    """``Σ_j |x_j − y_j|``."""

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        X, Y = self.X[rows], self.Y[columns]
        if sparse.issparse(X) or sparse.issparse(Y):
            return manhattan_distances(X, Y)
        return cdist(X, Y, "cityblock")

    def _bounds(self) -> tuple[float, float]:
        return 0.0, _largest_sum(abs(self.X)) + _largest_sum(abs(self.Y))


class ChiSquareDistances(Comparison):
    """``Σ_j (x_j − y_j)² / (x_j + y_j)`` of rows without negative entries."""

    def __init__(self, X: Any, Y: Any) -> None:
        super().__init__(writable(X), writable(Y))

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        return -additive_chi2_kernel(self.X[rows], self.Y[columns])

    def _bounds(self) -> tuple[float, float]:
        return 0.0, _largest_sum(self.X) + _largest_sum(self.Y)


def _largest(sizes: np.ndarray) -> float:
    return float(sizes.max(initial=0.0))


def _largest_sum(X: Any) -> float:
    return _largest(np.asarray(X.sum(axis=1)).ravel())
