"""What every kernel stack must satisfy before anything is learnt from it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from .._memory import allocate
from ._spectrum import (
    EXACT_ROWS,
    clipped,
    exact_extremes_if_negative,
    found_extremes_if_negative,
    rounding_ratio,
)

if TYPE_CHECKING:
    from .stack import KernelStack

SYMMETRY_TOLERANCE = 1e-8
# Sums in single precision depend on their order by about this much.
SINGLE_SYMMETRY_TOLERANCE = 1e-5
# Rounding of entries is no excuse for more than this part of the spectrum.
MOST_EXPLAINED = 0.1
PSD_POLICIES = ("raise", "exact", "clip", "ignore")
_BLOCK_ROWS = 256


class IndefiniteKernelError(ValueError):
    """A kernel has negative eigenvalues that rounding does not explain."""


def check_stack(
    stack: KernelStack, psd: str = "raise", *, centered: bool = False, rounding: float = 0.0
) -> KernelStack:
    """Return `stack` once its kernels are known to be finite, symmetric and PSD.

    A block between different samples (``stack.gram`` false) is checked for finite values
    only. A stack that has been checked is returned at once; sub-stacks inherit the mark,
    since a principal submatrix of a PSD matrix is PSD.

    Kernels are symmetric if their entries differ by no more than 1e-8 of the largest (1e-5 in
    single precision). Those that are not exactly so become ``(K + Kᵀ) / 2``, in a copy.

    Parameters
    ----------
    stack : KernelStack
    psd : {"raise", "exact", "clip", "ignore"}, default="raise"
        What to do with a kernel whose smallest eigenvalue is below −1e-5 times the largest
        (and below −1e-10): refuse it ("raise" and "exact") or take it as it is; "clip" replaces
        a kernel with any negative eigenvalue beyond rounding by its nearest PSD matrix. From 257
        rows on "raise" looks for such eigenvalues by twenty to sixty Lanczos steps, which cost no
        more than learning: they find what is beyond some 1e-3 of the largest eigenvalue and may
        miss smaller ones. "exact" and "clip" miss none, at the price of a factorisation.
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
    if psd not in PSD_POLICIES:
        raise ValueError(f"psd must be one of {sorted(PSD_POLICIES)}, got {psd!r}.")
    if stack.checked:
        return stack
    for j in range(stack.n_kernels):
        _check_diagonals(stack, j)
    if not stack.gram:
        for matrix, name in zip(stack.data, stack.names, strict=True):
            check_finite(matrix, name)
        return stack._changed(checked=True)
    mended = _Mended(stack.data)
    any_clipped = False
    for j, name in enumerate(stack.names):
        largest = _checked_entries(mended, j, name)
        matrix = mended.data[j]
        if psd == "ignore":
            continue
        quick = psd == "raise" and not rounding and len(matrix) > EXACT_ROWS
        if quick:
            extremes = found_extremes_if_negative(matrix, largest, centered=centered)
        else:
            given = matrix
            matrix = _centered(matrix) if centered else matrix.astype(np.float64, copy=False)
            # Tolerated eigenvalues may be too much for what is learnt later: clipping leaves none.
            tolerance = (rounding_ratio(given), 0.0) if psd == "clip" else ()
            extremes = exact_extremes_if_negative(matrix, *tolerance)
        if extremes is None:
            continue
        if psd != "clip":
            _refuse_unless_explained(extremes, name, rounding * np.sqrt(len(matrix)))
        # Only the difference: where the kernel was centred for the check, its means
        # must stay, since test blocks have them too.
        mended.writable()[j] += clipped(matrix) - matrix
        symmetrize(mended.data[j])
        any_clipped = True
    definite = psd != "ignore"
    changes: dict[str, Any] = {
        "checked": True,
        "_bounded": definite and not centered,
        "_bounded_if_centered": definite,
    }
    if any_clipped:
        diagonal = np.einsum("jii->ji", mended.data).astype(np.float64)
        changes.update(row_diag=diagonal, col_diag=diagonal)
    return stack._like(mended.data, **changes)


class _Mended:
    """Data that are copied when something has to be changed, and not before."""

    def __init__(self, given: np.ndarray) -> None:
        self.data = self._given = given

    def writable(self) -> np.ndarray:
        if self.data is self._given:
            self.data = allocate(self._given.shape, self._given.dtype)
            self.data[...] = self._given
        return self.data


def _checked_entries(mended: _Mended, j: int, name: str) -> float:
    """Have kernel j finite and exactly symmetric; its largest entry in absolute value."""
    difference, largest = check_symmetric(mended.data[j], name)
    if difference > 0.0:
        symmetrize(mended.writable()[j])
    return largest


def _check_diagonals(stack: KernelStack, j: int) -> None:
    for what in ("row_diag", "col_diag"):
        diagonals = getattr(stack, what)
        if diagonals is not None and not np.isfinite(diagonals[j]).all():
            if stack.gram:
                check_finite(stack.data[j], stack.names[j])
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


def check_symmetric(matrix: np.ndarray, name: str) -> tuple[float, float]:
    """Largest difference ``|K_rc − K_cr|`` and largest entry of a matrix that may be a kernel.

    One pass over pairs of tiles that mirror each other. Equal tiles hold no NaN, and infinite
    values show in the largest.
    """
    difference = largest = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for upper, lower in _mirrored_tiles(matrix):
            # maximum keeps a NaN, max would not.
            largest = np.maximum(largest, max(upper.max(), -upper.min()))
            if not np.array_equal(upper, lower.T):
                difference = np.maximum(difference, np.abs(upper - lower.T).max())
    if not np.isfinite(difference) or not np.isfinite(largest):
        check_finite(matrix, name)
    single = matrix.dtype == np.float32
    tolerance = SINGLE_SYMMETRY_TOLERANCE if single else SYMMETRY_TOLERANCE
    if difference > tolerance * max(largest, np.finfo(float).tiny):
        _refuse_asymmetric(matrix, name)
    return float(difference), float(largest)


def _mirrored_tiles(matrix: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tiles on and above the diagonal, with those at the mirrored place."""
    starts = range(0, len(matrix), _BLOCK_ROWS)
    parts = [slice(start, start + _BLOCK_ROWS) for start in starts]
    for rows, cols in combinations_with_replacement(parts, 2):
        yield matrix[rows, cols], matrix[cols, rows]


def symmetrize(matrix: np.ndarray) -> None:
    """``(K + Kᵀ) / 2`` in place."""
    for upper, lower in _mirrored_tiles(matrix):
        # Halves first: the sum of two large numbers may be too large.
        mean = upper / 2 + lower.T / 2
        upper[...] = mean
        lower[...] = mean.T


def _refuse_asymmetric(matrix: np.ndarray, name: str) -> None:
    worst, row, col = 0.0, 0, 0
    for start in range(0, len(matrix), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        differences = np.abs(matrix[rows] - matrix[:, rows].T)
        if differences.max() > worst:
            worst = float(differences.max())
            row, col = map(int, np.unravel_index(differences.argmax(), differences.shape))
            row += start
    raise ValueError(
        f"Kernel {name!r} is not symmetric: entries ({row}, {col}) and ({col}, {row}) differ by "
        f"{worst:.3g}. A block between different samples is given with gram=False; otherwise pass "
        "(K + K.T) / 2."
    )


def _refuse_unless_explained(extremes: tuple[float, float], name: str, explained: float) -> None:
    if extremes[0] < -min(explained, MOST_EXPLAINED * extremes[1]):
        raise IndefiniteKernelError(
            f"Kernel {name!r} is not positive semi-definite: its eigenvalues go from "
            f"{extremes[0]:.3g} to {extremes[1]:.3g}. Build the stack with "
            'KernelStack.from_arrays(..., psd="clip") to remove the negative part, or '
            "choose another kernel."
        )


def _centered(matrix: np.ndarray) -> np.ndarray:
    means = matrix.mean(axis=0, dtype=np.float64)
    return matrix - means - means[:, None] + means.mean()
