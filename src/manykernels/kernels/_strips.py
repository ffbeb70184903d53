"""Sums and products of matrices in single precision, strip by strip and in threads.

A strip is a block of rows that fits into the cache of a core. It is converted there, so that all
sums are those of double precision and no copy of a matrix is made. Of a symmetric matrix a strip
begins at the diagonal,

    K = [[S, B], [Bᵀ, K']]  →  Kx = (S x₁ + B x₂,  Bᵀ x₁ + K' x₂),   [S, B] the first strip,

and the rest is below it in K'. So about half of the values of a stack are never read: of 50
kernels of 10 000 rows, 18.6 GiB in single precision, a pass needs 9.3 GiB from disk, or from the
page cache where the system has room for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

import numpy as np
from sklearn.utils import gen_batches

from ._threads import in_threads

# Entries of a strip: 512 KiB of float64, so that a strip and its part of a sum stay in the
# second-level cache of a core. Measured on 30 kernels of 4000 rows, seconds of a processor for a
# product with nine columns: 0.64 at 2¹⁴, 0.48, 0.40 at 2¹⁶, 0.62 from 2¹⁷ on.
_STRIP_ENTRIES = 2**16
#: Rows and columns of a tile: 512 KiB of float64, two of which fit into a second-level cache.
TILE_ROWS = 256

# Fewer parts than this are computed in less time than it takes to start threads.
_FEWEST_FOR_THREADS = 16

#: Rows and columns of a part of a matrix.
Place = tuple[slice, slice]


def strips(n_rows: int, n_cols: int, *, mirrored: bool) -> list[Place]:
    """Places of strips; those of a symmetric, `mirrored`, matrix begin at the diagonal."""
    places, start = [], 0
    while start < n_rows:
        left = start if mirrored else 0
        stop = min(start + max(1, _STRIP_ENTRIES // max(1, n_cols - left)), n_rows)
        places.append((slice(start, stop), slice(left, n_cols)))
        start = stop
    return places


def weighted_sums(
    values: Callable[[int, slice, slice], np.ndarray],
    weights: np.ndarray,
    outs: Sequence[np.ndarray],
    *,
    mirrored: bool,
) -> None:
    """``Σ_j weights[r, j] K_j`` into ``outs[r]``, for every row r of weights, in one pass.

    ``values(j, rows, cols)`` is a part of K_j, in single or double precision.
    """
    used = np.flatnonzero(weights.any(axis=0)).tolist()

    def add(place: Place) -> None:
        totals = [out[place] for out in outs]
        term = np.empty(totals[0].shape)
        for total in totals:
            total.fill(0.0)
        for j in used:
            part = values(j, *place)
            for total, weight in zip(totals, weights[:, j], strict=True):
                # A weight is a float64 scalar, so the product is one of double precision.
                np.multiply(part, weight, out=term)
                total += term

    in_threads(add, strips(*outs[0].shape, mirrored=mirrored), _FEWEST_FOR_THREADS)
    if mirrored:
        for out in outs:
            _mirror(out)


def products(
    multiply: Callable[[int], np.ndarray], shape: tuple[int, int], outs: np.ndarray
) -> None:
    """``multiply(j)`` of every kernel j, of this shape, into ``outs[j]``, kernels in threads."""

    def fill(j: int) -> None:
        outs[j] = multiply(j)

    n_strips = len(outs) * len(strips(*shape, mirrored=True))
    kernels = list(range(len(outs)))
    in_threads(fill, kernels, 0 if n_strips >= _FEWEST_FOR_THREADS else len(kernels) + 1)


def product(matrix: np.ndarray, columns: np.ndarray, *, mirrored: bool) -> np.ndarray:
    """``matrix @ columns`` in double precision, (rows, n_columns)."""
    result = np.zeros((len(matrix), columns.shape[1]))
    for rows, cols in strips(*matrix.shape, mirrored=mirrored):
        strip = np.asarray(matrix[rows, cols], dtype=np.float64)
        result[rows] += strip @ columns[cols]
        if mirrored:
            result[rows.stop :] += strip[:, len(strip) :].T @ columns[rows]
    return result


def _mirror(matrix: np.ndarray) -> None:
    """Copy what is above the diagonal of a square matrix to its place below."""
    parts = list(gen_batches(len(matrix), TILE_ROWS))
    tiles = list(combinations_with_replacement(parts, 2))
    in_threads(lambda tile: mirror_tile(matrix, *tile), tiles, _FEWEST_FOR_THREADS)


def mirror_tile(matrix: np.ndarray, rows: slice, columns: slice) -> None:
    """Copy a tile on or above the diagonal to its place below."""
    tile = matrix[rows, columns]
    if rows == columns:
        tile[...] = np.triu(tile) + np.triu(tile, 1).T
    else:
        matrix[columns, rows] = tile.T
