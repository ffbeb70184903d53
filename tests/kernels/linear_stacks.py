"""Stacks of linear kernels between given features, and how they are compared."""

import numpy as np
from numpy.testing import assert_allclose

from manykernels import KernelStack


def stack_of(F, G=None):
    """Linear kernels between features (n_kernels, rows, dims)."""
    if G is None:
        return KernelStack.from_arrays(F @ F.mT)
    diagonals = {"row_diag": (F**2).sum(axis=2), "col_diag": (G**2).sum(axis=2)}
    return KernelStack.from_arrays(F @ G.mT, gram=False, **diagonals)


def values(stack):
    """All kernels, (n_kernels, rows, cols)."""
    return np.moveaxis(np.asarray(stack), -1, 0)


def assert_close(left, right, atol=1e-11):
    """Equal up to rounding errors of the largest entry."""
    scale = np.abs(right).max() + np.finfo(float).tiny
    assert_allclose(left / scale, right / scale, rtol=0, atol=atol)
