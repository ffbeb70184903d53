"""Square loss with the regularisation learnt along with the kernel weights.

Ye 2008, section 4: in ``(λI + Σ_j θ_j K_j)⁻¹`` the identity stands like any other kernel, so λ
can be its weight. With the identity as kernel 0,

    A = λI + Σ_j θ_j K_j,   U = A⁻¹H,   F(λ, θ) = tr(HᵀU)
    g_0 = tr(UᵀU),   g_j = tr(Uᵀ K_j U),   ∇²F_ij = 2 tr((K_i U)ᵀ A⁻¹ (K_j U))

((40) and (41) there, binary; (45) for more classes). That is the square loss with A = K_β in
the place of I + K_β/λ. Kernels and targets are centred, so as λ → 0, and it does, A loses the
direction 1; adding a multiple of ``11ᵀ`` mends that and changes nothing else.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from .._blas import add_scaled
from .base import Array, KernelOperator, Outline
from .square import SquareLoss

# λ that is not told from zero, in parts of the mean diagonal of A.
_LEAST_SHARE = 1e-11


class WithIdentity:
    """Kernels with ``unit · I`` before them.

    Parameters
    ----------
    kernels : KernelOperator
    unit : float
        What the identity is multiplied with, as the other kernels are by a normalisation.
    sample_weight : ndarray of shape (m,), optional
        Weights that the loss applies to every kernel. A sample of weight w is the mean of w
        observations, each with noise λ: its own entry is ``unit/w``.
    """

    def __init__(
        self, kernels: KernelOperator, unit: float, sample_weight: Array | None = None
    ) -> None:
        self.kernels = kernels
        self.unit = unit
        ones = np.ones(kernels.shape[0])
        self.diagonal = unit * (ones if sample_weight is None else 1.0 / sample_weight)

    @property
    def shape(self) -> tuple[int, int, int]:
        n_rows, n_columns, n_kernels = self.kernels.shape
        return n_rows, n_columns, n_kernels + 1

    def combine(self, weights: Array, out: Array | None = None) -> Array:
        """``Σ_j weights[j] K_j``, the identity first."""
        total = self.kernels.combine(weights[1:], out=out)
        total.reshape(-1)[:: len(total) + 1] += weights[0] * self.diagonal
        return total

    def combine_all(self, weights: Array, outs: list[Array]) -> None:
        """Several weighted sums, row r of `weights` into ``outs[r]``."""
        for row, out in zip(weights, outs, strict=True):
            self.combine(row, out)

    def apply(self, columns: Array, out: Array | None = None) -> Array:
        """``K_j @ columns`` of every kernel, the identity first."""
        n_rows, _, n_kernels = self.shape
        products = np.empty((n_kernels, columns.shape[1], n_rows)) if out is None else out.mT
        products[0] = (self.diagonal[:, None] * columns).T
        products[1:] = self.kernels.apply(columns).mT
        return products.mT

    def form_errors(self, left: Array, right: Array) -> Array:
        """Rounding errors of ``tr(leftᵀ K_j right)``, the identity first."""
        own = np.finfo(float).eps * np.sum(self.diagonal[:, None] * np.abs(left * right))
        return np.concatenate([[own], self.kernels.form_errors(left, right)])

    def kernel(self, which: int) -> Array:
        """One kernel matrix."""
        return np.diag(self.diagonal) if which == 0 else self.kernels.kernel(which - 1)

    def select(self, kernels: Any) -> WithIdentity:
        """Some of the kernels; the identity, without which A is singular, has to be the first."""
        if kernels[0] != 0:
            raise ValueError("The identity stays among the kernels, before all others.")
        part = copy(self)
        part.kernels = self.kernels.select(kernels[1:] - 1)
        return part

    def __getitem__(self, key: Any) -> Self:
        raise TypeError("Kernels with the identity among them are not cut into parts.")


class JointSquareLoss(SquareLoss):
    """F(λ, θ): the first weight is ``λ/unit``, the others are those of the kernels.

    Parameters
    ----------
    kernels : KernelOperator
        Centred training kernels.
    targets : ndarray of shape (m, c)
    unit : float, default=1.0
        Scale of the identity kernel: 1/m where kernels have unit trace.
    sample_weight : ndarray of shape (m,), optional
    """

    kernels: WithIdentity

    def __init__(
        self,
        kernels: KernelOperator,
        targets: Array,
        unit: float = 1.0,
        sample_weight: Array | None = None,
    ) -> None:
        extended = WithIdentity(kernels, unit, sample_weight)
        super().__init__(extended, targets, 1.0, sample_weight)
        self._lift = 0.0

    @property
    def outline(self) -> Outline:
        n_samples, n_outputs = self.rotated_targets.shape
        return Outline(type(self), n_samples, self.n_kernels, n_outputs, learns_reg=True)

    def coarse(self) -> None:
        """None: fewer rows have another best λ."""
        return None

    def _factorize(self, weights: Array) -> Array:
        """As for a fixed λ, but with a least λ, and more where that does not do.

        Equal samples, or kernels of low rank, leave A singular without λ; what rounding puts
        into its null space would be taken for a gain of the identity.
        """
        least = _LEAST_SHARE
        while True:
            self._assemble(weights)
            self._lift = float(self._diagonal.mean())
            if not self._lift > 0.0:
                raise ValueError(
                    "All kernels are zero, so that no regularisation can be learnt with them."
                )
            missing = max(least * self._lift / self.kernels.unit - weights[0], 0.0)
            self._diagonal[:] += missing * self.kernels.unit
            ones = np.ones((len(self._factor), 1)) if self.roots is None else self.roots
            ones = ones / np.linalg.norm(ones)
            add_scaled(self._factor, ones @ ones.T, self._lift)
            if self._cholesky():
                raised = weights.copy()
                raised[0] += missing
                return raised
            least *= 10.0

    fixed_ridge = 0.0

    def kernel_weights(self, weights: Array) -> Array:
        return weights[1:]

    def regularization(self, weights: Array) -> float:
        return self.ridge(weights)

    def ridge(self, weights: Array) -> float:
        return float(weights[0]) * self.kernels.unit

    def constant_value(self, weights: Array) -> float:
        return self.ridge(weights) + self._lift
