"""Checks that kernel matrices are finite, symmetric and positive semi-definite (PSD)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas
from scipy.sparse.linalg import eigsh

from ..utils.numerics import ACCUMULATED, TINY, allocate
from .matching import shown
from .operators import TILE_ROWS, strip_product

if TYPE_CHECKING:
    from .stack import KernelStack


# -- Negative eigenvalues of symmetric matrices ---------------------------------------------------
#
# A Cholesky factorisation of the shifted matrix is exact and costs m³/3 operations, more than
# learning from one kernel of some thousand samples. A Lanczos step costs 2m². The eigenvalues of
# the tridiagonal matrix T = QᵀKQ that Lanczos computes are Rayleigh quotients of K:
#
#     λ_min(K) ≤ λ_min(T),    λ_max(T) ≤ λ_max(K).
#
# So a negative λ_min(T) proves that K has a negative eigenvalue, but the converse does not hold.
# Unless the spectrum is flat, eighteen steps find eigenvalues below about −1e-3 times the largest
# and miss those above −1e-4 times it; a machine that learns from such a kernel may then report a
# negative duality gap. Smaller matrices get up to sixty steps. If a kernel is to be centred, ``P
# K P`` with ``P = I − 11ᵀ/m`` is applied without being formed.
#
# The start is the vector of ones with some noise. Most kernels take ones nearly to a multiple of
# them, so that the first steps deal with their few large eigenvectors, and a direction in which
# the kernel is broken stands out: it is found after half as many steps as from noise alone, unless
# it has no component along the ones; then after as many (measured on the sets of
# benchmarks/safety.py and on digits).


# Eigenvalues above −ratio times the largest, or above −value, count as zero: the tolerances of
# sklearn.utils.validation._check_psd_eigenvalues in double precision.
NEGATIVE_RATIO = 1e-5
NEGATIVE_VALUE = 1e-10
# Lanczos takes 18 steps from 3000 rows on, and more steps at the same cost on smaller matrices,
# up to 60. tests/kernels/test_spectrum.py specifies which eigenvalues must be detected.
LEAST_STEPS, MOST_STEPS, ROWS_OF_LEAST_STEPS = 18, 60, 3000
# Noise in the start; 0.1 and 1 find some directions earlier, others later.
_NOISE = 0.3
# Number of rows up to which the exact check takes at most half the time of sixty Lanczos steps.
EXACT_ROWS = 256
# Number of rows below which computing all eigenvalues takes a seventh of the time of ARPACK.
_SMALL_ROWS = 32


def exact_extremes_if_negative(
    matrix: np.ndarray, ratio: float = NEGATIVE_RATIO, value: float = NEGATIVE_VALUE
) -> tuple[float, float] | None:
    """Return the extreme eigenvalues ``(smallest, largest)`` of a matrix, or None if it is PSD.

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
    """Return a negative upper bound of λ_min and a lower bound of λ_max, or None.

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
    """Return how far below zero the eigenvalues of a stored PSD matrix may be.

    The rounding errors of its entries are independent and at most half of ``eps`` times the
    largest entry. The eigenvalues of such an error matrix are at most ``2/√3 √m`` times that. In
    single precision the bound is 1.2e-5 of the largest entry at m = 10 000.
    """
    rounding = float(np.finfo(matrix.dtype).eps) * np.sqrt(len(matrix)) * largest_entry
    return max(NEGATIVE_VALUE, rounding)


def n_steps(n_rows: int) -> int:
    """Return the number of Lanczos steps for a matrix of `n_rows`."""
    affordable = int(LEAST_STEPS * (ROWS_OF_LEAST_STEPS / n_rows) ** 2)
    return min(max(LEAST_STEPS, affordable), MOST_STEPS)


def lanczos_extremes(
    matrix: np.ndarray, steps: int, *, centered: bool = False
) -> tuple[float, float]:
    """Return the extreme eigenvalues of T after `steps`, with full orthogonalisation."""
    steps = min(steps, len(matrix))
    basis = np.empty((steps + 1, len(matrix)))
    vector = basis[0]
    vector[:] = 1.0 + _NOISE * np.random.default_rng(0).standard_normal(len(matrix))
    if centered:
        vector -= vector.mean()
    vector /= blas.dnrm2(vector)
    alphas: list[float] = []
    betas: list[float] = []
    for k in range(steps):
        image = _times(matrix, basis[k])
        if centered:
            image -= image.mean()
        alphas.append(float(basis[k] @ image))
        Q = basis[: k + 1]
        for _ in range(2):
            image -= (Q @ image) @ Q
        beta = float(blas.dnrm2(image))
        # Only rounding error is left: the basis spans an invariant subspace.
        if beta <= ACCUMULATED * (abs(alphas[0]) + sum(betas)) or beta == 0.0:
            break
        betas.append(beta)
        basis[k + 1] = image / beta
    values = linalg.eigvalsh_tridiagonal(alphas, betas[: len(alphas) - 1])
    return float(values[0]), float(values[-1])


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return ``matrix @ vector`` for a symmetric matrix, in double precision."""
    if matrix.dtype == np.float64:
        # The transpose of a C-ordered matrix is Fortran-ordered: nothing is copied.
        return np.asarray(blas.dsymv(1.0, matrix.T, vector))
    return strip_product(matrix, vector[:, None], mirrored=True)[:, 0]


def clipped(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest PSD matrix."""
    values, vectors = linalg.eigh(matrix, check_finite=False)
    vectors = vectors * np.sqrt(np.maximum(values, 0.0))
    return vectors @ vectors.T


def _if_negative(
    smallest: float, largest: float, ratio: float, value: float = NEGATIVE_VALUE
) -> tuple[float, float] | None:
    return None if smallest >= -max(ratio * largest, value) else (smallest, largest)


# Entries that should be equal may differ by this part of the largest one, since rounding depends
# on the order of sums: about the square root of EPS, the usual choice where none can be derived.
SAME_ENTRY = 1e-8
# The same in single precision: the rounding error of 6e-8, times some hundred terms of a sum.
SAME_SINGLE_ENTRY = 1e-5
# Negative eigenvalues beyond this part of the largest are an error, even if known rounding of the
# entries (`rounding`) explains them: a matrix with so much noise is useless.
MOST_EXPLAINED = 0.1
PSD_POLICIES = ("raise", "exact", "clip", "ignore")


class NoKernelError(ValueError):
    """A matrix is no kernel of samples with each other.

    `advice`, the end of the message, is about Python code; the command line replaces it.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.advice = advice


class IndefiniteKernelError(NoKernelError):
    """A kernel has negative eigenvalues that rounding errors do not explain."""


def check_stack(
    stack: KernelStack,
    psd: str = "raise",
    *,
    centered: bool = False,
    rounding: float = 0.0,
    missing: bool = False,
) -> KernelStack:
    """Check that kernels are finite, symmetric and positive semi-definite (PSD).

    A block between different samples (``stack.gram`` false) is checked for finite values
    only. A stack that has been checked before is returned at once; sub-stacks count as checked,
    since a principal submatrix of a PSD matrix is PSD.

    Kernels are symmetric if ``K_rc`` and ``K_cr`` differ by at most 1e-8 times the largest entry
    (1e-5 in single precision). If they are not exactly equal, K is replaced by ``(K + Kᵀ) / 2`` in
    a copy.

    Parameters
    ----------
    stack : KernelStack
        The kernels to check.
    psd : {"raise", "exact", "clip", "ignore"}, default="raise"
        What to do with a kernel whose smallest eigenvalue is below −1e-5 times the largest
        (and below −1e-10): "raise" and "exact" raise an error, "ignore" keeps it. "clip" replaces
        a kernel with any negative eigenvalue beyond rounding error by the nearest PSD matrix.
        (Negative eigenvalues that the rounding of stored values explains count as zero: in single
        precision 1.2e-7 √m times the largest entry.)
        "exact" and "clip" need a factorisation. So does "raise" up to 256 rows. For larger
        matrices it takes eighteen to sixty Lanczos steps, which cost no more than learning and
        may miss negative eigenvalues above about −1e-3 times the largest.
    centered : bool, default=False
        Require only that kernels are PSD after centring (conditionally positive semi-definite),
        which is sufficient for every method that centres.
    rounding : float, default=0.0
        Known rounding of the entries, such as 1 for integers. Negative eigenvalues that
        independent errors of this size explain are clipped and raise no error.
    missing : bool, default=False
        Allow samples that lack a kernel: NaN in their whole row and column of it, including the
        diagonal. The kernel is then checked for the samples that have it.

    Returns
    -------
    stack : KernelStack
        The stack marked as checked; values differ only where a kernel had to be changed.

    Raises
    ------
    ValueError
        If a check fails. The message names the kernel and, if possible, the row and column.
    """
    if psd not in PSD_POLICIES:
        raise ValueError(f"psd must be one of {sorted(PSD_POLICIES)}, got {psd!r}.")
    if not missing and has_lacking_samples(stack):
        _refuse_lacking(stack)
    if stack.checked:
        return stack
    if not missing:
        _check_diagonals(stack)
    if not stack.gram:
        for j, name in enumerate(stack.names):
            _check_block(stack, j, name, missing=missing)
        return stack._changed(guarantees=replace(stack.guarantees, checked=True))
    data = stack.data
    changes: dict[str, Any] = {}
    for j, name in enumerate(stack.names):
        # The whole matrix or, if samples lack the kernel, that of the samples that have it.
        present = _samples_that_have(data[j], name) if missing else ...
        matrix = data[j][present]
        # Zeros instead of NaN, so that row numbers in error messages are right.
        known = matrix if present is ... else np.nan_to_num(data[j], nan=0.0)
        difference, largest = check_symmetric(known, name)
        if difference > 0.0:
            data, matrix = _writable(data, stack.data), matrix.copy()
            symmetrize(matrix)
            data[j][present] = matrix
        if psd == "ignore":
            continue
        change = _change_to_psd(
            matrix, name, largest, psd=psd, centered=centered, rounding=rounding
        )
        if change is not None:
            data, matrix = _writable(data, stack.data), matrix + change
            symmetrize(matrix)
            data[j][present] = matrix
            diagonal = np.einsum("jii->ji", data).astype(np.float64)
            changes["_rows"] = replace(stack._rows, diagonal=diagonal)
            changes["_cols"] = replace(stack._cols, diagonal=diagonal)
    definite = psd != "ignore"
    changes["guarantees"] = replace(
        stack.guarantees, checked=True, psd=definite and not centered, psd_if_centered=definite
    )
    return stack._with_data(data, **changes)


def _change_to_psd(
    matrix: np.ndarray, name: str, largest: float, *, psd: str, centered: bool, rounding: float
) -> np.ndarray | None:
    """Return the matrix to add to a symmetric matrix to make it PSD; None if it is PSD.

    Raises IndefiniteKernelError if negative eigenvalues are not to be clipped.
    """
    if psd == "raise" and not rounding and len(matrix) > EXACT_ROWS:
        extremes = found_extremes_if_negative(matrix, largest, centered=centered)
    else:
        # "clip" leaves no negative eigenvalue beyond rounding error: rounding of the entries
        # shifts an eigenvalue by no more than this part of the largest.
        tolerance = (len(matrix) * np.finfo(matrix.dtype).eps, 0.0)
        if psd != "clip":
            tolerance = NEGATIVE_RATIO, hidden_by_rounding(matrix, largest)
        matrix = matrix.astype(np.float64, copy=False)
        if centered:
            means = matrix.mean(axis=0)
            matrix = matrix - means - means[:, None] + means.mean()
        extremes = exact_extremes_if_negative(matrix, *tolerance)
    if extremes is None:
        return None
    # Independent errors of up to rounding/2 have eigenvalues up to about 0.6 rounding √m.
    explained = min(rounding * np.sqrt(len(matrix)), MOST_EXPLAINED * extremes[1])
    if psd != "clip" and extremes[0] < -explained:
        raise IndefiniteKernelError(
            f"Kernel {name!r} is not positive semi-definite: its eigenvalues go from "
            f"{extremes[0]:.3g} to {extremes[1]:.3g}.",
            'Build the stack with KernelStack.from_arrays(..., psd="clip") to remove the negative '
            "part, or choose another kernel.",
        )
    # A difference, so that a kernel centred for the check keeps its means, as test blocks do.
    return clipped(matrix) - matrix


def _writable(data: np.ndarray, original: np.ndarray) -> np.ndarray:
    """Return `data`, or a copy if it is still the `original` array."""
    if data is original:
        data = allocate(original.shape, original.dtype)
        data[...] = original
    return data


def has_lacking_samples(stack: KernelStack) -> bool:
    """Return True if NaN in the first rows or columns indicate samples that lack a kernel."""
    data = stack.data
    return bool(np.isnan(data[:, :1]).any() or np.isnan(data[:, :, :1]).any())


def _samples_that_have(matrix: np.ndarray, name: str) -> Any:
    """Return an index of the samples of a Gram matrix that have the kernel: all, or ``np.ix_``."""
    lacking = np.isnan(matrix.diagonal())
    if not lacking.any():
        return ...
    if not np.array_equal(np.isfinite(matrix), np.outer(~lacking, ~lacking)):
        _refuse_stray(matrix, name, lacking, lacking)
    return np.ix_(~lacking, ~lacking)


def _check_block(stack: KernelStack, j: int, name: str, *, missing: bool) -> None:
    """Check that a block between different samples is finite where both have the kernel."""
    matrix = stack.data[j]
    if not missing:
        check_finite(matrix, name)
        return
    absent = np.isnan(matrix)
    rows, cols = absent.all(axis=1), absent.all(axis=0)
    if not (np.isfinite(matrix) | rows[:, None] | cols).all():
        _refuse_stray(matrix, name, rows, cols)
    for attribute, diagonals, lacking in (
        ("row_diag", stack.row_diag, rows),
        ("col_diag", stack.col_diag, cols),
    ):
        if diagonals is None:
            continue
        # Self-similarities of samples that lack the kernel are not used.
        valid = np.isfinite(diagonals[j]) | lacking
        if not valid.all():
            _refuse_self_similarity(attribute, name, diagonals[j], valid)


def _refuse_stray(matrix: np.ndarray, name: str, rows: np.ndarray, cols: np.ndarray) -> None:
    """Raise an error for an entry that is not finite in a row and column that are not all NaN."""
    bad = ~np.isfinite(matrix) & ~(rows[:, None] | cols)
    if not bad.any():
        # A sample whose self-similarity is missing has another entry.
        bad = np.isfinite(matrix) & (rows[:, None] | cols)
        row, col = np.argwhere(bad)[0]
        sample = row if rows[row] else col
        raise ValueError(
            f"Kernel {name!r} has no value (NaN) at row {sample}, column {sample}, but one at row "
            f"{row}, column {col}: a sample that lacks a kernel has NaN in its whole row and "
            "column."
        )
    row, col = np.argwhere(bad)[0]
    value = "NaN" if np.isnan(matrix[row, col]) else matrix[row, col]
    raise ValueError(
        f"Kernel {name!r} has a value that is not finite ({value}) at row {row}, column {col}. "
        "A sample that lacks a kernel has NaN in its whole row and column; other missing values "
        "have to be filled in."
    )


def _refuse_lacking(stack: KernelStack) -> None:
    """Raise an error if samples lack a kernel; other NaN are found by other checks."""
    for matrix, name in zip(stack.data, stack.names, strict=True):
        absent = np.isnan(matrix)
        rows, cols = absent.all(axis=1), absent.all(axis=0)
        lacking = rows & cols if stack.gram else rows
        # A training kernel that every sample lacks is another kind of error.
        some = lacking.any() and not (stack.gram and lacking.all())
        if some and np.array_equal(absent, rows[:, None] | cols):
            raise ValueError(
                f"Kernel {name!r} has no values that are finite (NaN only) for "
                f"{lacking.sum()} of {len(matrix)} samples, rows "
                f"{shown(np.flatnonzero(lacking))}. Estimators accept "
                'samples that lack a kernel with missing="mean" or "conditional", stacks with '
                "KernelStack.from_arrays(..., missing=True)."
            )


def _check_diagonals(stack: KernelStack) -> None:
    for attribute, diagonals in (("row_diag", stack.row_diag), ("col_diag", stack.col_diag)):
        if diagonals is None or np.isfinite(diagonals).all():
            continue
        j = int(np.argwhere(~np.isfinite(diagonals))[0, 0])
        if stack.gram:
            # The diagonal was taken from the matrix: name the row and column there.
            check_finite(stack.data[j], stack.names[j])
        valid = np.isfinite(diagonals[j])
        _refuse_self_similarity(attribute, stack.names[j], diagonals[j], valid)


def _refuse_self_similarity(
    attribute: str, name: str, diagonal: np.ndarray, valid: np.ndarray
) -> None:
    sample = int(np.argmin(valid))
    raise ValueError(
        f"{attribute} of kernel {name!r} has a value that is not finite ({diagonal[sample]}) at "
        f"sample {sample}."
    )


def check_finite(matrix: np.ndarray, name: str) -> None:
    """Raise an error that names the first NaN or infinite value, if there is one."""
    for start in range(0, len(matrix), TILE_ROWS):
        bad = ~np.isfinite(matrix[start : start + TILE_ROWS])
        if bad.any():
            row, col = np.argwhere(bad)[0]
            value = "NaN" if np.isnan(matrix[start + row, col]) else matrix[start + row, col]
            raise ValueError(
                f"Kernel {name!r} has a value that is not finite ({value}) at row "
                f"{start + row}, column {col}. Check the data behind it for missing or huge "
                "values."
            )


def check_symmetric(matrix: np.ndarray, name: str) -> tuple[float, float]:
    """Raise an error for a matrix that is not finite and symmetric.

    Returns the largest difference ``|K_rc − K_cr|`` and the largest ``|K_rc|``, in one pass over
    pairs of mirrored tiles. NaN appears in the difference and infinity in the largest entry.
    """
    difference = largest = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for upper, lower in _mirrored_tiles(matrix):
            # np.maximum keeps NaN, the built-in max may not.
            largest = np.maximum(largest, max(upper.max(), -upper.min()))
            if not np.array_equal(upper, lower.T):
                difference = np.maximum(difference, np.abs(upper - lower.T).max())
    if not np.isfinite(difference) or not np.isfinite(largest):
        check_finite(matrix, name)
    tolerance = SAME_SINGLE_ENTRY if matrix.dtype == np.float32 else SAME_ENTRY
    if difference > tolerance * max(largest, TINY):
        _refuse_asymmetric(matrix, name)
    return float(difference), float(largest)


def _mirrored_tiles(matrix: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield tiles on and above the diagonal, each with its mirror image below."""
    blocks = [slice(start, start + TILE_ROWS) for start in range(0, len(matrix), TILE_ROWS)]
    for rows, cols in combinations_with_replacement(blocks, 2):
        yield matrix[rows, cols], matrix[cols, rows]


def symmetrize(matrix: np.ndarray) -> None:
    """Replace K by ``(K + Kᵀ) / 2`` in place."""
    for upper, lower in _mirrored_tiles(matrix):
        # Halved first, since the sum of two large numbers may overflow.
        mean = upper / 2 + lower.T / 2
        upper[...] = mean
        lower[...] = mean.T


def _refuse_asymmetric(matrix: np.ndarray, name: str) -> None:
    worst = [np.abs(row - col).max() for row, col in zip(matrix, matrix.T, strict=True)]
    row = int(np.argmax(worst))
    col = int(np.argmax(np.abs(matrix[row] - matrix[:, row])))
    raise NoKernelError(
        f"Kernel {name!r} is not symmetric: entries ({row}, {col}) and ({col}, {row}) differ by "
        f"{worst[row]:.3g}.",
        "Pass gram=False for a block between different samples, otherwise (K + K.T) / 2.",
    )
