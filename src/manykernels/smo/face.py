"""The face of the box on which some variables are free, the others held.

There the objective of :mod:`manykernels.smo.box` is a quadratic with ``A = (K + diag r)_SS``, and
its maximum under the equality solves ``A x + b 1 = right, 1·x = 0``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_JITTER = 1e-13
_MAX_JITTERS = 8


class Face:
    """The system of free variables, factorised."""

    def __init__(self, factor: Array, ones: Array) -> None:
        self._factor = factor
        self._ones = ones

    @classmethod
    def of(cls, K: Array, ridge: Array, free: Indices) -> Face | None:
        """None if A is not even nearly positive definite."""
        from ._loops import gather

        matrix = gather(K, free)
        diagonal = matrix.reshape(-1)[:: len(free) + 1]
        diagonal += ridge[free]
        # Any multiple of 11ᵀ leaves x as it is. This one makes up for kernels that are centred,
        # or less than that: positive semi-definite only where 1·x = 0.
        matrix += max(float(diagonal.mean()) / len(free), -2.0 * float(matrix.mean()))
        jitter = _JITTER * float(diagonal.mean())
        for _ in range(_MAX_JITTERS):
            diagonal += jitter
            factor, failed = linalg.lapack.dpotrf(matrix.T, lower=0, clean=0)
            if not failed:
                break
            jitter *= 10.0
        else:
            return None
        ones, _ = linalg.lapack.dpotrs(factor, np.ones((len(free), 1)), lower=0)
        return cls(factor, ones)

    def solve(self, right: Array) -> Array:
        """x of ``A x + b 1 = right, 1·x = 0``, column by column."""
        # b takes up any constant; where A is nearly singular, what it would add to x and have
        # taken away again is all rounding.
        centred = np.asfortranarray(right - right.mean(axis=0))
        plain, _ = linalg.lapack.dpotrs(self._factor, centred, lower=0)
        solution: Array = plain - self._ones * (plain.sum(axis=0) / self._ones.sum())
        solution -= solution.mean(axis=0)
        return solution
