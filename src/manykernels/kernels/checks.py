"""What every kernel stack must satisfy before anything is learnt from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import eigsh

if TYPE_CHECKING:
    from .stack import KernelStack

SYMMETRY_TOLERANCE = 1e-8
# scikit-learn's tolerances for a positive spectrum in double precision.
NEGATIVE_RATIO = 1e-5
NEGATIVE_VALUE = 1e-10
# Rounding of entries is no excuse for more than this part of the spectrum.
MOST_EXPLAINED = 0.1
_BLOCK_ROWS = 256


def check_stack(
    stack: KernelStack, psd: str = "raise", *, centered: bool = False, rounding: float = 0.0
) -> KernelStack:
    """Return `stack` once its kernels are known to be finite, symmetric and PSD.

    A block between different samples (``stack.gram`` false) is checked for finite values
    only. A stack that has been checked is returned at once; sub-stacks inherit the mark,
    since a principal submatrix of a PSD matrix is PSD.

    Parameters
    ----------
    stack : KernelStack
    psd : {"raise", "clip", "ignore"}, default="raise"
        What to do with a kernel whose smallest eigenvalue is below −1e-5 times the largest
        (and below −1e-10): refuse it, replace it by its nearest PSD matrix, or take it as
        it is.
    centered : bool, default=False
        Ask that of the kernel after centring, which allows any constant to be added to it;
        enough for every method that centres.
    rounding : float, default=0.0
        Known size of the rounding of single entries, 1 for integers. Negative eigenvalues
        that it explains, as independent errors of that size would, are clipped, not refused.

    Raises
    ------
    ValueError
        Naming the kernel and, where there is one, the row and column.
    """
    if psd not in _PSD_POLICIES:
        raise ValueError(f"psd must be one of {sorted(_PSD_POLICIES)}, got {psd!r}.")
    if stack.checked:
        return stack
    for j, name in enumerate(stack.names):
        check_finite(stack.data[j], name)
        _check_diagonals(stack, j)
        if stack.gram:
            check_symmetric(stack.data[j], name)
    data = stack.data
    if stack.gram:
        for j, name in enumerate(stack.names):
            matrix = _centered(stack.data[j]) if centered else stack.data[j]
            mended = _PSD_POLICIES[psd](matrix, name, rounding * np.sqrt(len(matrix)))
            if mended is not None:
                data = data if data is not stack.data else stack.data.copy()
                # Only the difference: where the kernel was centred for the check, its means
                # must stay, since test blocks have them too.
                data[j] += mended - matrix
    definite = stack.gram and psd != "ignore"
    changes: dict[str, Any] = {
        "checked": True,
        "_bounded": definite and not centered,
        "_bounded_if_centered": definite,
    }
    if data is not stack.data:
        diagonal = np.einsum("jii->ji", data).copy()
        changes.update(row_diag=diagonal, col_diag=diagonal)
    return stack._like(data, **changes)


def _check_diagonals(stack: KernelStack, j: int) -> None:
    for what in ("row_diag", "col_diag"):
        diagonals = getattr(stack, what)
        if diagonals is not None and not np.isfinite(diagonals[j]).all():
            sample = int(np.argmin(np.isfinite(diagonals[j])))
            raise ValueError(
                f"{what} of kernel {stack.names[j]!r} has a value that is not finite "
                f"({diagonals[j, sample]}) at sample {sample}."
            )


def check_finite(matrix: np.ndarray, name: str) -> None:
    for start in range(0, len(matrix), _BLOCK_ROWS):
        bad = ~np.isfinite(matrix[start : start + _BLOCK_ROWS])
        if bad.any():
            row, col = np.argwhere(bad)[0]
            value = "NaN" if np.isnan(matrix[start + row, col]) else matrix[start + row, col]
            raise ValueError(
                f"Kernel {name!r} has a value that is not finite ({value}) at row "
                f"{start + row}, column {col}. Check the data behind it for missing values."
            )


def check_symmetric(matrix: np.ndarray, name: str) -> None:
    largest = max(np.abs(matrix).max(initial=0.0), np.finfo(float).tiny)
    for start in range(0, len(matrix), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        difference = np.abs(matrix[rows] - matrix[:, rows].T)
        if difference.max() > SYMMETRY_TOLERANCE * largest:
            row, col = np.unravel_index(difference.argmax(), difference.shape)
            raise ValueError(
                f"Kernel {name!r} is not symmetric: entries ({start + row}, {col}) and "
                f"({col}, {start + row}) differ by {difference.max():.3g}. A block between "
                "different samples is given with gram=False; otherwise pass (K + K.T) / 2."
            )


def smallest_eigenvalue_if_negative(matrix: np.ndarray) -> tuple[float, float] | None:
    """``(smallest, largest)`` eigenvalue of a matrix that is not PSD, None if it is.

    A Cholesky factorisation of the matrix shifted by the tolerance decides almost every
    case at a tenth of the price of the spectrum.
    """
    if not matrix.any():
        return None
    if len(matrix) < 32:
        largest = float(linalg.eigvalsh(matrix, check_finite=False)[-1])
    else:
        start = np.random.default_rng(0).standard_normal(len(matrix))
        largest = float(eigsh(matrix, k=1, v0=start, tol=1e-2, return_eigenvectors=False)[0])
    shift = max(NEGATIVE_RATIO * largest, NEGATIVE_VALUE)
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += shift
    _, failed = linalg.lapack.dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)
    if not failed:
        return None
    spectrum = linalg.eigvalsh(matrix, check_finite=False)
    if spectrum[0] >= -max(NEGATIVE_RATIO * spectrum[-1], NEGATIVE_VALUE):
        return None
    return float(spectrum[0]), float(spectrum[-1])


def _raise_if_indefinite(matrix: np.ndarray, name: str, explained: float) -> np.ndarray | None:
    extremes = smallest_eigenvalue_if_negative(matrix)
    if extremes is None:
        return None
    if extremes[0] < -min(explained, MOST_EXPLAINED * extremes[1]):
        raise ValueError(
            f"Kernel {name!r} is not positive semi-definite: its eigenvalues go from "
            f"{extremes[0]:.3g} to {extremes[1]:.3g}. Build the stack with "
            'KernelStack.from_arrays(..., psd="clip") to remove the negative part, or '
            "choose another kernel."
        )
    return _clipped(matrix)


def _clip_if_indefinite(matrix: np.ndarray, name: str, explained: float) -> np.ndarray | None:
    return None if smallest_eigenvalue_if_negative(matrix) is None else _clipped(matrix)


def _ignore(matrix: np.ndarray, name: str, explained: float) -> None:
    return None


def _clipped(matrix: np.ndarray) -> np.ndarray:
    values, vectors = linalg.eigh(matrix, check_finite=False)
    vectors = vectors * np.sqrt(np.maximum(values, 0.0))
    return vectors @ vectors.T


def _centered(matrix: np.ndarray) -> np.ndarray:
    means = matrix.mean(axis=0)
    return matrix - means - means[:, None] + means.mean()


_PSD_POLICIES = {"raise": _raise_if_indefinite, "clip": _clip_if_indefinite, "ignore": _ignore}
