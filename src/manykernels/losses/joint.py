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

from .base import Array, KernelOperator
from .square import SquareLoss
from .with_identity import WithIdentity

# Smallest λ, as a share of the mean diagonal of A. With equal samples or kernels of low rank A is
# singular at λ = 0, and rounding errors in its null space, about m EPS of the diagonal, would look
# like a gain of the identity. This is about a hundred times that error at m = 500.
_LEAST_SHARE = 1e-11


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

    def _factorize(self, weights: Array) -> tuple[Array, float]:
        """As for a fixed λ, but λ has a lower bound, raised tenfold until A can be factorised."""
        least, unit = _LEAST_SHARE, self.kernels.unit
        while True:
            self.kernels.combine(weights, out=self.workspace.matrix)
            self._weight_samples()
            size = float(self.workspace.diagonal.mean())
            if not size > 0.0:
                raise ValueError(
                    "All kernels are zero, so that no regularisation can be learnt with them."
                )
            missing = max(least * size / unit - weights[0], 0.0)
            self.workspace.diagonal[:] += missing * unit
            self._lift_constants(size)
            if self.workspace.cholesky():
                raised = weights.copy()
                raised[0] += missing
                return raised, self.ridge(raised) + size
            least *= 10.0

    def ridge(self, weights: Array) -> float:
        return float(weights[0]) * self.kernels.unit

    regularization = ridge
