"""The face of the box on which some variables are free and the others stay at their bounds.

There the objective of :mod:`manykernels.smo.box` is a quadratic with ``A = (K + diag r)_SS``, and
its maximum under the equality solves ``A x + b 1 = right, 1·x = 0``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._rounding import ACCUMULATED, TINY

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Powers of ten, relative to the mean diagonal, that are added to the diagonal of a matrix one by
# one until it has a Cholesky factor. The first is above the rounding error of the factorisation;
# a matrix that needs more than the last is not positive semi-definite.
_JITTERS = 10.0 ** np.arange(-13, -5)


def cholesky(matrix: Array, scale: float) -> Array | None:
    """Upper Cholesky factor of a symmetric C-ordered matrix, for :func:`solve_factored`.

    Adds to the diagonal, in place and relative to `scale`, what the factorisation needs. None if
    the matrix is not even nearly positive semi-definite.
    """
    diagonal = matrix.reshape(-1)[:: len(matrix) + 1]
    for jitter in _JITTERS:
        diagonal += jitter * scale
        factor, failed = linalg.lapack.dpotrf(matrix.T, lower=0, clean=0)
        if not failed:
            return np.asarray(factor)
    return None


def solve_factored(factor: Array, right: Array) -> Array:
    """Solution of the system whose matrix has that Cholesky factor."""
    solution, _ = linalg.lapack.dpotrs(factor, right, lower=0)
    return np.asarray(solution)


def min_curvature(diagonal: Array) -> float:
    """Curvature ``A_ii + A_jj − 2A_ij`` below which it is rounding error, by the diagonal of A."""
    return max(ACCUMULATED * float(diagonal.max(initial=0.0)), TINY)


def step_within(
    v: Array, step: Array, lower: Array, upper: Array, longest: float = 1.0
) -> tuple[Array, float]:
    """``v + t·step`` for the largest ``t ≤ longest`` within the bounds, and t.

    The variable that stops a shorter step is exactly at its bound.
    """
    ends = np.where(step > 0.0, upper, lower)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lengths = np.where(step == 0.0, np.inf, (ends - v) / step)
    first = int(lengths.argmin())
    length = min(longest, float(lengths[first]))
    moved = np.clip(v + length * step, lower, upper)
    if length < longest:
        moved[first] = ends[first]
    return moved, length


class Face:
    """The system of the free variables, factorised."""

    def __init__(self, factor: Array) -> None:
        self._factor = factor
        self._ones = solve_factored(factor, np.ones((len(factor), 1)))

    @classmethod
    def of(cls, K: Array, ridge: Array, free: Indices) -> Face | None:
        """The face of the variables `free`; None if A is not positive semi-definite."""
        from ._loops import gather

        n = len(free)
        matrix = gather(K, free)
        diagonal = matrix.reshape(-1)[:: n + 1]
        diagonal += ridge[free]
        # As 1·x = 0, any multiple of 11ᵀ may be added. This one makes matrices positive definite
        # that are so only for 1·x = 0, such as centred kernels.
        matrix += max(float(diagonal.sum()), -2.0 * float(matrix.sum())) / n**2
        factor = cholesky(matrix, float(diagonal.sum()) / n)
        return None if factor is None else cls(factor)

    def solve(self, right: Array) -> Array:
        """x of ``A x + b 1 = right, 1·x = 0``, column by column."""
        # The mean of `right` changes b only. Where A is nearly singular, the x that it gives would
        # be large and cancel only up to rounding error, so it is subtracted first.
        # (Sums instead of means: for short columns they take half the time.)
        n = len(right)
        centred = np.asfortranarray(right - right.sum(axis=0) / n)
        plain = solve_factored(self._factor, centred)
        solution: Array = plain - self._ones * (plain.sum(axis=0) / self._ones.sum())
        solution -= solution.sum(axis=0) / n
        return solution
