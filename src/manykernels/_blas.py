"""Matrix products by SciPy's BLAS, for C-ordered arrays.

NumPy and SciPy come with a copy of BLAS each, whose threads spin for a while after each call. On
few cores the two slow each other down whenever calls alternate. The factorisations of the losses
use SciPy's, so products in the same loop do too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

Array = NDArray[np.float64]


def matmul(left: Array, right: Array, scale: float = 1.0) -> Array:
    """``scale · left @ right`` for a C-ordered matrix and a matrix or vector.

    `left` is not copied: its transpose is Fortran-ordered, as BLAS needs it. A product of matrices
    is Fortran-ordered.
    """
    if right.ndim == 1:
        product: Array = blas.dgemv(scale, left.T, right, trans=1)
    elif right.shape[1] == 1:
        product = blas.dgemv(scale, left.T, right[:, 0], trans=1)[:, None]
    else:
        product = blas.dgemm(scale, left.T, right, trans_a=1)
    return product


def add_scaled(target: Array, source: Array, scale: float) -> None:
    """``target += scale · source`` for C-ordered arrays of one shape."""
    blas.daxpy(source.reshape(-1), target.reshape(-1), a=scale)


def weighted_sums(weights: Array, rows: Array) -> Array:
    """``weights @ rows`` for C-ordered matrices: one weighted sum per row of `weights`."""
    return blas.dgemm(1.0, rows.T, weights.T).T
