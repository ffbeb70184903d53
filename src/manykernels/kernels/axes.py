"""Principal axes of a kernel, with sample weights.

Sample weights w count as repetitions. With ``S = diag(√w)`` and the weighted mean subtracted,
the covariance is ``ΦᵀS²Φ``, so that the axes are ``v_k = ΦᵀS u_k/√δ_k`` with the eigenvectors of
``SKS = UΔUᵀ``. From ``z_k(x) = k(x, ·) S u_k/√δ_k`` follow

    K_b = K S U_b Δ_b⁻¹ U_bᵀ S K,      K_t ↦ K_t (S U_b) (Δ_b⁻¹ U_bᵀ S K)

and ``Δ_b⁻¹ U_bᵀ S K = U_bᵀ S⁻¹`` in the columns of samples with positive weight, which avoids a
division by small eigenvalues. A range of axes that ends with the last one is computed as what
the axes before it leave, ``K_t − K_t (S U_b)(U_bᵀ S⁻¹)``: no small eigenvalue enters there either.

All eigenvalues are computed, even if few axes are kept: most of the cost is the reduction to
tridiagonal form, and a tenth of the axes takes half the time of all of them, by LAPACK as by
Lanczos.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._rounding import ACCUMULATED


@dataclass(frozen=True)
class Axes:
    """Leading principal axes of one kernel; ``(K_t @ left) @ right`` projects a block on them.

    Attributes
    ----------
    values : ndarray of shape (n_axes,)
        Eigenvalues Δ_b, in descending order.
    left : ndarray of shape (m, n_axes)
        ``S U_b``.
    right : ndarray of shape (n_axes, m)
        ``Δ_b⁻¹ U_bᵀ S K``.
    """

    values: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def part(self, start: int, stop: int) -> Axes:
        """Some of the axes."""
        cut = slice(start, stop)
        return Axes(self.values[cut], self.left[:, cut], self.right[cut])


def spectrum(K: np.ndarray, weights: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of SKS in descending order, none negative, and eigenvectors in columns.

    The smallest ones are set to zero while their sum is no more than `rounding`: scaled to unit
    variance they would be noise.
    """
    roots = np.sqrt(weights)
    values, vectors = linalg.eigh(K * roots * roots[:, None], driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    values[np.cumsum(values) <= rounding] = 0.0
    return values[::-1], vectors[:, ::-1]


def leading_axes(
    K: np.ndarray, weights: np.ndarray, values: np.ndarray, vectors: np.ndarray
) -> Axes:
    """The axes that belong to `values`, the first of the spectrum."""
    leading = np.ascontiguousarray(vectors[:, : len(values)])
    if np.all(weights == 1.0):
        return Axes(values, leading, leading.T)
    roots = np.sqrt(weights)[:, None]
    left = roots * leading
    without = weights == 0.0
    right = (leading / np.where(without[:, None], 1.0, roots)).T
    right[:, without] = (left.T @ K[:, without]) / values[:, None]
    return Axes(values, left, right)


def n_leading(values: np.ndarray, share: float) -> int:
    """How many of the values, in descending order, hold a share of their sum.

    All of them, if the rest of the sum is no more than rounding error.
    """
    held = np.cumsum(values)
    number = 1 + int(np.searchsorted(held, (share - ACCUMULATED) * held[-1]))
    return len(values) if held[number - 1] >= (1.0 - ACCUMULATED) * held[-1] else number
