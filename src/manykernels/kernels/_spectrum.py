"""Negative eigenvalues of symmetric matrices, found exactly or by a few Lanczos steps.

A Cholesky factorisation of the shifted matrix is exact and costs m³/3 operations, more than
learning from one kernel of some thousand samples. A Lanczos step costs 2m². The eigenvalues of
the tridiagonal matrix T = QᵀKQ that Lanczos computes are Rayleigh quotients of K:

    λ_min(K) ≤ λ_min(T),    λ_max(T) ≤ λ_max(K).

So a negative λ_min(T) proves that K has a negative eigenvalue, but K may have one without. Unless
the spectrum is flat, twenty steps find eigenvalues below about −1e-3 times the largest and miss
those above −1e-4 times it; a machine that learns from such a kernel may then report a negative
duality gap. Smaller matrices get up to sixty steps. If a kernel is to be centred, ``P K P`` with
``P = I − 11ᵀ/m`` is applied without being formed.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import blas
from scipy.sparse.linalg import eigsh

from .._rounding import ACCUMULATED
from ._strips import product

# Eigenvalues above −ratio times the largest, or above −value, count as zero: the tolerances of
# sklearn.utils.validation._check_psd_eigenvalues in double precision.
NEGATIVE_RATIO = 1e-5
NEGATIVE_VALUE = 1e-10
# Lanczos takes 20 steps from 3000 rows on, and as many as cost the same on smaller matrices, up
# to 60. tests/kernels/test_spectrum.py specifies what they have to find.
LEAST_STEPS, MOST_STEPS, ROWS_OF_LEAST_STEPS = 20, 60, 3000
# Number of rows up to which the exact answer takes at most half the time of sixty Lanczos steps.
EXACT_ROWS = 256
# Number of rows below which computing all eigenvalues takes a seventh of the time of ARPACK.
_SMALL_ROWS = 32


def exact_extremes_if_negative(
    matrix: np.ndarray, ratio: float = NEGATIVE_RATIO, value: float = NEGATIVE_VALUE
) -> tuple[float, float] | None:
    """``(smallest, largest)`` eigenvalue of a matrix that is not PSD, None if it is.

    Eigenvalues above −`ratio` times the largest, or above −`value`, count as zero. A Cholesky
    factorisation of the matrix shifted by this tolerance decides almost every case, at a tenth of
    the cost of all eigenvalues.
    """
    if not matrix.any():
        return None
    matrix = matrix.astype(np.float64, copy=False)
    if len(matrix) < _SMALL_ROWS:
        largest = float(linalg.eigvalsh(matrix, check_finite=False)[-1])
    else:
        # Two digits are enough for a tolerance.
        start = np.random.default_rng(0).standard_normal(len(matrix))
        largest = float(eigsh(matrix, k=1, v0=start, tol=1e-2, return_eigenvectors=False)[0])
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += max(ratio * largest, value)
    _, failed = linalg.lapack.dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)
    if not failed:
        return None
    spectrum = linalg.eigvalsh(matrix, check_finite=False)
    return _if_negative(float(spectrum[0]), float(spectrum[-1]), ratio, value)


def found_extremes_if_negative(
    matrix: np.ndarray, largest_entry: float, *, centered: bool
) -> tuple[float, float] | None:
    """An upper bound of λ_min that proves a matrix not PSD and a lower bound of λ_max, or None.

    λ_min is bounded by Lanczos, by ``λ_min ≤ K_ii`` and, from 2 × 2 principal submatrices, by
    ``λ_min ≤ max(K_ii, K_jj) − |K_ij|``.
    """
    smallest, largest = lanczos_extremes(matrix, n_steps(len(matrix)), centered=centered)
    if not centered:
        diagonal = matrix.diagonal()
        smallest = min(smallest, diagonal.min(), diagonal.max() - largest_entry)
    value = hidden_by_rounding(matrix, largest_entry)
    return _if_negative(float(smallest), float(largest), NEGATIVE_RATIO, value)


def hidden_by_rounding(matrix: np.ndarray, largest_entry: float) -> float:
    """How far below zero the eigenvalues of a PSD matrix may be, as it is stored.

    The errors of its entries, when they were rounded, are independent and no larger than half of
    ``eps`` times the largest entry. The eigenvalues of such a matrix of errors are no larger than
    √m times ``2/√3`` of that. In single precision it is 1.2e-5 of the largest entry at m = 10 000.
    """
    rounding = float(np.finfo(matrix.dtype).eps) * np.sqrt(len(matrix)) * largest_entry
    return max(NEGATIVE_VALUE, rounding)


def n_steps(n_rows: int) -> int:
    """The number of Lanczos steps for a matrix of `n_rows`."""
    affordable = int(LEAST_STEPS * (ROWS_OF_LEAST_STEPS / n_rows) ** 2)
    return min(max(LEAST_STEPS, affordable), MOST_STEPS)


def lanczos_extremes(
    matrix: np.ndarray, steps: int, *, centered: bool = False
) -> tuple[float, float]:
    """Extreme eigenvalues of T after `steps` from a fixed vector, with full orthogonalisation."""
    vector = np.random.default_rng(0).standard_normal(len(matrix))
    if centered:
        vector -= vector.mean()
    vector /= blas.dnrm2(vector)
    basis = [vector]
    alphas: list[float] = []
    betas: list[float] = []
    for _ in range(min(steps, len(matrix))):
        image = _times(matrix, basis[-1])
        if centered:
            image -= image.mean()
        alphas.append(float(basis[-1] @ image))
        Q = np.array(basis)
        for _ in range(2):
            image -= (Q @ image) @ Q
        beta = float(blas.dnrm2(image))
        # Only rounding error is left: the basis spans an invariant subspace.
        if beta <= ACCUMULATED * (abs(alphas[0]) + sum(betas)) or beta == 0.0:
            break
        betas.append(beta)
        basis.append(image / beta)
    values = linalg.eigvalsh_tridiagonal(alphas, betas[: len(alphas) - 1])
    return float(values[0]), float(values[-1])


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """``matrix @ vector`` of a symmetric matrix, in double precision."""
    if matrix.dtype == np.float64:
        # The transpose of a C-ordered matrix is Fortran-ordered: nothing is copied.
        return np.asarray(blas.dsymv(1.0, matrix.T, vector))
    return product(matrix, vector[:, None], mirrored=True)[:, 0]


def clipped(matrix: np.ndarray) -> np.ndarray:
    """The nearest PSD matrix."""
    values, vectors = linalg.eigh(matrix, check_finite=False)
    vectors = vectors * np.sqrt(np.maximum(values, 0.0))
    return vectors @ vectors.T


def _if_negative(
    smallest: float, largest: float, ratio: float, value: float = NEGATIVE_VALUE
) -> tuple[float, float] | None:
    return None if smallest >= -max(ratio * largest, value) else (smallest, largest)
