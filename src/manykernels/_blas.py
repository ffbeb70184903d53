"""Matrix products by SciPy's BLAS, for C-ordered arrays.

The factorisations of the losses run in SciPy's BLAS. NumPy brings another copy of the library
with a thread pool of its own, and on few cores the two pools fight whenever they alternate:
products in the same loop as a factorisation come from here.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

Array = NDArray[np.float64]
# Entries converted at once: 2 MiB, about a second-level cache.
_BLOCK_ENTRIES = 2**18


def matmul(left: Array, right: Array, scale: float = 1.0) -> Array:
    """``scale · left @ right`` for a C-ordered matrix and a matrix or vector.

    The transpose of a C-ordered matrix is Fortran-ordered, so nothing is copied. A matrix
    product comes back Fortran-ordered.
    """
    if right.ndim == 1:
        product: Array = blas.dgemv(scale, left.T, right, trans=1)
    elif right.shape[1] == 1:
        product = blas.dgemv(scale, left.T, right[:, 0], trans=1)[:, None]
    else:
        product = blas.dgemm(scale, left.T, right, trans_a=1)
    return product


def product(left: NDArray[np.floating[Any]], right: Array) -> Array:
    """``left @ right`` for matrices, Fortran-ordered, where `left` may be in single precision.

    It is then converted in blocks of rows: never all of it at once, and sums are those of double
    precision.
    """
    if left.dtype == np.float64:
        return matmul(cast(Array, left), right)
    result = np.empty((len(left), right.shape[1]), order="F")
    height = max(1, _BLOCK_ENTRIES // max(1, left.shape[1]))
    for start in range(0, len(left), height):
        rows = slice(start, start + height)
        result[rows] = matmul(left[rows].astype(np.float64), right)
    return result


def add_scaled(target: Array, source: Array, scale: float) -> None:
    """``target += scale · source`` for C-ordered arrays of one shape."""
    blas.daxpy(source.reshape(-1), target.reshape(-1), a=scale)


def weighted_sums(weights: Array, rows: Array) -> Array:
    """``weights @ rows`` for many long C-ordered rows, one sum per row of `weights`."""
    sums: Array = blas.dgemm(1.0, rows.T, weights.T).T
    return sums
