"""Square loss with the regularisation learnt along with the kernel weights.

Ye 2008, section 4. With the identity as kernel 0, its weight being λ,

    A = λI + Σ_j θ_j K_j,   U = A⁻¹H,   F(λ, θ) = tr(HᵀU)
    g_0 = tr(UᵀU),   g_j = tr(Uᵀ K_j U),   ∇²F_ij = 2 tr((K_i U)ᵀ A⁻¹ (K_j U))

((40) and (41) there for two classes; (45) for more). This is the square loss with A = K_β in the
place of I + K_β/λ. Kernels and targets are centred, so A maps the vector 1 to λ1 and becomes
singular where the learnt λ tends to zero. A multiple of ``11ᵀ``, added to A, prevents that and
changes nothing else.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from .._rounding import EPS
from .base import Array, Indices, KernelOperator
from .square import SquareLoss
from .square_evaluation import SquareEvaluation
from .with_identity import Gauge, Raised, WithIdentity, of_some

# Smallest eigenvalue of A, as a share of its mean diagonal. With equal samples or kernels of low
# rank A is singular at λ = 0, and rounding errors in its null space, about m EPS of the diagonal,
# would look like a gain of the identity. This is about a hundred times that error at m = 500.
# Where kernels have no smaller eigenvalues by themselves, λ may be anything, and zero.
_LEAST_SHARE = 1e-11
_AT_THE_LEAST = (
    "The learnt λ is {:.1e}, the least that rounding errors allow: without it the kernels are "
    "singular, and the best λ is there or below. Pass a number for reg, if λ matters."
)


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
    learns_reg = True
    fixed_ridge = 0.0

    def __init__(
        self,
        kernels: KernelOperator,
        targets: Array,
        unit: float = 1.0,
        sample_weight: Array | None = None,
    ) -> None:
        extended = WithIdentity(kernels, unit, sample_weight)
        super().__init__(extended, targets, 1.0, sample_weight)
        self._gauge: Gauge | None = None
        # Whether λ had to be raised at the last point.
        self._at_least = False

    def within(self, gauge: Gauge) -> Self:
        part = copy(self)
        part._gauge = gauge
        return part

    def restricted(self, kernels: Indices) -> Self:
        part = super().restricted(kernels)
        part._gauge = of_some(self._gauge, kernels, self.n_kernels)
        return part

    def _evaluation(self, weights: Array, *arguments: Any) -> SquareEvaluation:
        found = super()._evaluation(weights, *arguments)
        found.at_least = self._at_least
        return found

    def note(self, evaluation: Any) -> str:
        least = self.ridge(evaluation.weights)
        return _AT_THE_LEAST.format(least) if evaluation.at_least else ""

    def _slack(self, residual: Array, weights: Array) -> float:
        half = self.workspace.half_solve(np.asfortranarray(residual))
        return float(np.vdot(half, half))

    def _factorize(self, weights: Array) -> tuple[Array, float]:
        """As for a fixed λ, which is raised if A is singular, tenfold until it can be factorised.

        A λ that is lost in rounding errors is zero.
        """
        size = self._combine(weights)
        self._at_least = self.ridge(weights) < _LEAST_SHARE * size
        if self._at_least:
            self._lift_constants(size)
            if self.workspace.cholesky():
                self._at_least = self.workspace.least_eigenvalue() < _LEAST_SHARE * size
            if not self._at_least:
                lost = self.ridge(weights) < EPS * size
                weights = np.where(np.arange(len(weights)) > 0, weights, 0.0) if lost else weights
                return weights, self.ridge(weights) + size
        least = _LEAST_SHARE
        while True:
            size = self._combine(weights)
            raised = Raised.to(least * size / self.kernels.unit, weights, self._gauge)
            self.workspace.diagonal[:] += max(least * size - self.ridge(weights), 0.0)
            self.workspace.matrix /= raised.factor
            self._lift_constants(size)
            if self.workspace.cholesky():
                return raised.weights, self.ridge(raised.weights) + size
            least *= 10.0

    def _combine(self, weights: Array) -> float:
        """Put A into the workspace; returns its mean diagonal."""
        self.kernels.combine(weights, out=self.workspace.matrix)
        self._weight_samples()
        size = float(self.workspace.diagonal.mean())
        if not size > 0.0:
            raise ValueError(
                "All kernels are zero, so that no regularisation can be learnt with them."
            )
        return size

    def ridge(self, weights: Array) -> float:
        return float(weights[0]) * self.kernels.unit

    regularization = ridge
