"""Centred alignment of kernels with what is to be predicted (Cortes, Mohri, Rostamizadeh 2012).

With K^c the centred kernel and ``⟨·, ·⟩`` the inner product of Frobenius, the alignment of two
kernels is the cosine ``ρ(K, K') = ⟨K^c, K'^c⟩ / (‖K^c‖ ‖K'^c‖)``. The kernel of the targets is
``K_Y = YYᵀ`` for centred columns Y. The non-negative weighted sum of kernels that is aligned best
with it is found by a quadratic program: with ``M_ij = ⟨K_i^c, K_j^c⟩``, ``a_j = ⟨K_j^c, K_Y⟩``,

    v* = argmin_{v ≥ 0}  vᵀMv − 2vᵀa ,        μ* = v*/‖v*‖ .                               (*)

In the unknowns ``u_j = ‖K_j^c‖ v_j / ‖K_Y‖`` it is the same with cosines for M and alignments for
a. Both are inner products of unit vectors, k_j in the direction of K_j^c and y in that of K_Y, so
that (*) minimises ``‖Σ_j u_j k_j − y‖²``: least squares with non-negative unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import nnls

from .._rounding import ACCUMULATED
from ..kernels import KernelStack
from ..kernels.transforms import Center, Chain, UnitTrace


@dataclass(frozen=True)
class Alignments:
    """Alignments of kernels with each other and with a kernel of targets.

    Attributes
    ----------
    cosines : ndarray of shape (n_kernels, n_kernels)
        Of pairs of centred kernels; zero for kernels that are constant.
    with_targets : ndarray of shape (n_kernels,)
    norms : ndarray of shape (n_kernels,)
        Lengths ``‖K_j^c‖``; infinite for constant kernels, which get no weight.
    """

    cosines: np.ndarray
    with_targets: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(cls, stack: KernelStack, targets: np.ndarray, weights: np.ndarray | None) -> Self:
        """From training kernels and columns of targets of (weighted) mean zero.

        A sample of weight two counts as two: ``⟨K, K'⟩ = Σ_rc w_r w_c K_rc K'_rc``.
        """
        # Unit traces change no cosine, and make constant kernels exactly zero.
        trace = UnitTrace()
        centred = Chain([Center(), trace]).fit_transform(stack, sample_weight=weights)
        inner = centred.inner_products(weights)
        lengths = np.sqrt(np.diag(inner))
        units = np.where(lengths > 0.0, lengths, 1.0)
        columns = targets if weights is None else targets * weights[:, None]
        forms = np.einsum("rk,jrk->j", columns, centred.apply(columns))
        # ‖YYᵀ‖ is the length of the small matrix YᵀY.
        length = float(np.linalg.norm(targets.T @ columns))
        aligned = forms / units / (length if length > 0.0 else 1.0)
        norms = np.divide(
            lengths, trace.scale_, np.full_like(lengths, np.inf), where=lengths > 0.0
        )
        # PSD kernels have no negative alignment, and none has more than one, but by rounding.
        return cls(inner / np.outer(units, units), np.clip(aligned, 0.0, 1.0), norms)

    def independent(self) -> np.ndarray:
        """Weights proportional to the alignment of each kernel; they sum to one."""
        return _normalized(self.with_targets)

    def joint(self) -> np.ndarray:
        """Weights of the sum that is aligned best, (*); they sum to one."""
        return _normalized(self._best_units() / self.norms)

    def _best_units(self) -> np.ndarray:
        """u of (*): coordinates of the k_j along the eigenvectors of their cosines, then NNLS."""
        spectrum, basis = np.linalg.eigh(self.cosines)
        kept = spectrum > ACCUMULATED * max(spectrum[-1], 0.0)
        roots = np.sqrt(spectrum[kept])
        points, target = roots[:, None] * basis[:, kept].T, basis[:, kept].T @ self.with_targets
        if not kept.any():
            return np.zeros(len(spectrum))
        found: np.ndarray = nnls(points, target / roots)[0]
        return found

    def of_sum(self, weights: np.ndarray) -> float:
        """Alignment of ``Σ_j weights[j] K_j`` with the targets."""
        units = np.where(np.isfinite(self.norms), weights * self.norms, 0.0)
        length = float(np.sqrt(units @ self.cosines @ units))
        return min(1.0, float(units @ self.with_targets) / length) if length > 0.0 else 0.0


def _normalized(weights: np.ndarray) -> np.ndarray:
    """Weights that sum to one; equal ones if all are zero."""
    total = weights.sum()
    return weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))
