"""Square loss: the regularised kernel Fisher discriminant, binary and multiclass.

With centred kernels, ``K_β = Σ_j β_j K_j``, targets H (m×c) and regularisation λ,

    A = I + K_β/λ,   U = A⁻¹ H,   F(β) = tr(HᵀU),   α = 2U
    g_j    = −∂F/∂β_j = tr(Uᵀ K_j U)/λ
    ∇²F_ij = (2/λ²) tr((K_i U)ᵀ A⁻¹ (K_j U))

(Ye 2008, Theorems 2.1 and 3.2; Yan 2012, section 2; F is ``aᵀa − J`` for the Fisher ratio J
of Yan 2012 (4)). All are computed from one Cholesky factorisation A = RᵀR: F and U by two
triangular solves, g by one product per kernel, and the Hessian by one triangular solve with the
n·c columns K_jU, since ``tr((K_iU)ᵀA⁻¹(K_jU)) = ⟨R⁻ᵀK_iU, R⁻ᵀK_jU⟩``.

The products K_jU also show the rounding error of the factorisation. For any U, with the residual
``E = H − AU`` and r the coefficient of I in A (1 here),

    D(U, β) = 2 tr(HᵀU) − tr(UᵀAU) = tr(Uᵀ(H + E)) ≤ F(β) = D + tr(EᵀA⁻¹E) ≤ D + ‖E‖²/r

and D is linear in β with slopes −g(U). So the value is ``D + ‖E‖²/r``, for r = 1 the primal
objective ``‖H − K_βU/λ‖² + tr(UᵀK_βU)/λ`` of the discriminant U/λ, and its slack is ``‖E‖²/r``.

Sample weights w turn the inner problem into ``min_f Σ_i w_i ‖h_i − f(x_i)‖² + λ‖f‖²``, which
is the same with ``S K_j S`` and ``S H`` for K_j and H, ``S = diag(√w)``.
"""

from __future__ import annotations

import numpy as np

from .._blas import add_scaled, matmul
from .._rounding import ACCUMULATED
from .base import Array, Indices, KernelOperator, Outline
from .program import DualProgram, HasDualProgram
from .square_evaluation import SquareEvaluation
from .workspace import Lease, Workspace, WorkspaceLoss

# Below this many rows a coarse problem may cost more than the factorisations that it saves: at
# 300, 450 and 600 rows it changes the time of a fit by 28, 19 and −11 % with 3 classes and 10
# kernels, by −13, −9 and −17 % with 20 classes and 40 kernels (measured).
_COARSE_MIN_ROWS = 600
# The coarse problem has at most every fourth row, so that its factorisations are 64 times cheaper.
_COARSE_STEP = 4
# Mean diagonal t of K_β/λ from which on A is lifted at the constant vector. Entries of A⁻¹ are of
# the size 1/t, but for that vector, where it is 1, and rounding errors of the inverse are EPS m t.
# Below, they are a share EPS m t² of the entries, 1e-7 at m = 1000; at t = 1e7 none is left.
LARGE_DIAGONAL = 1e3


class NotPositiveDefiniteError(ValueError):
    """A matrix that should be positive definite has no Cholesky factor."""


class SquareLoss(HasDualProgram, WorkspaceLoss):
    """F(β) of the square loss on centred kernels.

    Parameters
    ----------
    kernels : KernelOperator
        Centred training kernels (with the sample weights, if there are any).
    targets : ndarray of shape (m, c)
        Columns H, each with (weighted) mean zero.
    reg : float
        λ > 0.
    sample_weight : ndarray of shape (m,), optional
        Positive weights.

    Attributes
    ----------
    rotation : ndarray of shape (c, rank H)
        Orthonormal columns. The c class columns of H have rank c − 1. F, g and ∇²F are traces over
        outputs, so replacing H by ``H @ rotation`` does not change them.
    rotated_targets : ndarray of shape (m, rank H)
        ``S H @ rotation``, sample weights applied.
    roots : ndarray of shape (m, 1) or None
        √w.
    """

    #: Coefficient of I in A that no weight can change.
    fixed_ridge = 1.0

    def __init__(
        self,
        kernels: KernelOperator,
        targets: Array,
        reg: float,
        sample_weight: Array | None = None,
    ) -> None:
        self.kernels = kernels
        self.targets = targets
        self.reg = reg
        self.sample_weight = sample_weight
        self.roots = None if sample_weight is None else np.sqrt(sample_weight)[:, None]
        scaled = self._weighted(targets)
        spectrum, basis = np.linalg.eigh(scaled.T @ scaled)
        kept = spectrum > ACCUMULATED * spectrum[-1]
        kept[-1] = True  # LAPACK takes no empty matrices, even if all targets are zero
        self.rotation = basis[:, kept]
        self.rotated_targets = np.asfortranarray(scaled @ self.rotation)
        self.workspace = Workspace(len(targets))

    @property
    def outline(self) -> Outline:
        n_samples, n_outputs = self.rotated_targets.shape
        n_kernels = self.kernels.shape[2]
        return Outline(
            type(self), n_samples, n_kernels, n_outputs, self.learns_reg, self.on_demand
        )

    def _weighted(self, columns: Array) -> Array:
        """``S @ columns``."""
        return columns if self.roots is None else columns * self.roots

    def kernel(self, which: int) -> Array:
        """One kernel matrix as a term of A: sample weights applied, divided by λ."""
        matrix = self.kernels.kernel(which) / self.reg
        return matrix if self.roots is None else matrix * self.roots * self.roots.T

    def products(self, columns: Array) -> Array:
        """Every :meth:`kernel` times `columns`, (n_kernels, m, n_columns)."""
        if self.roots is None:
            return self.kernels.apply(columns) / self.reg
        return self.kernels.apply(columns * self.roots) * (self.roots / self.reg)

    def form_errors(self, solution: Array) -> Array:
        """Estimated rounding errors of ``tr(UᵀK_jU)/λ``."""
        columns = self._weighted(solution)
        return self.kernels.form_errors(columns, columns) / self.reg

    def evaluate(self, weights: Array) -> SquareEvaluation:
        """Factorise A at `weights` and return F and the gains; derivatives follow on demand."""
        lease = self.workspace.lend()
        weights, constant = self._factorize(weights)
        solution = self.workspace.solve(self.rotated_targets)
        self.workspace.multiply(self.kernels, solution, self.roots)
        return self._evaluation(weights, solution, constant, lease)

    def refill(self, weights: Array, solution: Array) -> Lease:
        """Compute factor and products again at a point whose solution U is known."""
        lease = self.workspace.lend()
        self._factorize(weights)
        self.workspace.multiply(self.kernels, solution, self.roots)
        return lease

    def _evaluation(
        self, weights: Array, solution: Array, constant: float, lease: Lease
    ) -> SquareEvaluation:
        """The evaluation at weights whose factor and products are in place."""
        products = self.workspace.flat_products
        gains = matmul(products, solution.T.reshape(-1), scale=1.0 / self.reg)
        combined = matmul(products.T, weights, scale=1.0 / self.reg)
        residual = self.rotated_targets - combined.reshape(solution.T.shape).T
        residual -= self.fixed_ridge * solution
        slack = self._slack(residual, weights)
        value = float(np.vdot(solution, self.rotated_targets + residual)) + slack
        return SquareEvaluation(weights, value, gains, self, solution, slack, constant, lease)

    def _slack(self, residual: Array, weights: Array) -> float:
        """``tr(EᵀA⁻¹E)`` or more, the factor of A being in place."""
        return float(np.vdot(residual, residual)) / self.ridge(weights)

    def _factorize(self, weights: Array) -> tuple[Array, float]:
        """Put the Cholesky factor of A into the workspace.

        Returns the weights of A, which a subclass may have changed, and the eigenvalue of A at
        the constant vector, which centred kernels map to zero; it may have been lifted.
        """
        self.kernels.combine(weights / self.reg, out=self.workspace.matrix)
        return weights, self._factorize_combined()

    def _weight_samples(self) -> None:
        """Multiply the matrix in the workspace by S from both sides."""
        if self.roots is not None:
            matrix = self.workspace.matrix
            matrix *= self.roots
            matrix *= self.roots.T

    def _lift_constants(self, size: float) -> None:
        """Add `size` to the eigenvalue at the vector 1 (√w) of the matrix in the workspace.

        It changes nothing that is computed of targets and centred kernels, which are orthogonal
        to that vector.
        """
        ones = np.ones((len(self.targets), 1)) if self.roots is None else self.roots
        ones = ones / np.linalg.norm(ones)
        add_scaled(self.workspace.matrix, ones @ ones.T, size)

    def _factorize_combined(self) -> float:
        """Replace ``K_β/λ`` in the workspace by the Cholesky factor of A.

        Returns the eigenvalue of A at the constant vector, which is lifted if λ is small.
        """
        self._weight_samples()
        size = float(self.workspace.diagonal.mean())
        lift = size if size > LARGE_DIAGONAL else 0.0
        if lift:
            self._lift_constants(lift)
        self.workspace.diagonal[:] += 1.0
        if not self.workspace.cholesky():
            raise NotPositiveDefiniteError(
                f"I + K/reg is not positive definite at reg={self.reg:g}: the combined kernel "
                "has eigenvalues below -reg. Raise reg, or build the stack with "
                'KernelStack.from_arrays(..., psd="clip").'
            )
        return 1.0 + lift

    def dual_program(self) -> DualProgram:
        """F as a maximum over ``v = √2 U``, columns as in `rotated_targets`."""
        return DualProgram.free(np.sqrt(2.0) * self.rotated_targets, self.fixed_ridge)

    def dual_of(self, v: Array) -> Array:
        """α of ``v = √2 U``, in the columns of the targets."""
        return self._weighted(np.sqrt(2.0) * (v @ self.rotation.T))

    def variables_of(self, dual: Array) -> Array:
        unweighted = dual if self.roots is None else dual / self.roots
        v: Array = unweighted @ self.rotation / np.sqrt(2.0)
        return v

    def ridge(self, weights: Array) -> float:
        """r, the coefficient of I in A."""
        return self.fixed_ridge

    def regularization(self, weights: Array) -> float:
        return self.reg

    def on_rows(self, rows: Indices, reg: float) -> SquareLoss:
        """The loss of some of the samples, whose targets are centred again."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        targets = self.targets[rows]
        targets = targets - np.average(targets, axis=0, weights=weights)
        return SquareLoss(self.kernels[np.ix_(rows, rows)], targets, reg, weights)

    def coarse(self) -> SquareLoss | None:
        """The same loss on every fourth row or fewer, spread evenly over the targets.

        At most the share ``1/√n`` of the rows, so the copy of n kernels is no larger than one
        kernel. Eigenvalues of K grow like the number of rows, hence λ shrinks with it.
        """
        n_rows, n_outputs = self.rotated_targets.shape
        # The best λ of fewer rows is another, and with one output the model of 1/F is good from
        # the start (see SquareEvaluation.model_hessian).
        if self.learns_reg or n_outputs == 1 or n_rows < _COARSE_MIN_ROWS:
            return None
        step = max(_COARSE_STEP, int(np.ceil(np.sqrt(self.n_kernels))))
        rows = np.sort(np.lexsort(self.targets.T)[::step])
        return self.on_rows(rows, self.reg / step)

    @staticmethod
    def evaluate_together(
        losses: list[SquareLoss], weights: list[Array]
    ) -> list[SquareEvaluation]:
        """Evaluate losses of the same kernels and targets, each at its own weights.

        They share every pass over the kernels, which halves the cost of an evaluation.
        """
        first = losses[0]
        scaled = np.array([row / loss.reg for loss, row in zip(losses, weights, strict=True)])
        leases = [loss.workspace.lend() for loss in losses]
        first.kernels.combine_all(scaled, [loss.workspace.matrix for loss in losses])
        solutions, constants = [], []
        for loss in losses:
            constants.append(loss._factorize_combined())
            solutions.append(loss.workspace.solve(loss.rotated_targets))
        products = first.kernels.apply(first._weighted(np.hstack(solutions)))
        width = first.rotated_targets.shape[1]
        evaluations = []
        for r, loss in enumerate(losses):
            # Each output is contiguous in memory, as LAPACK needs it.
            part = np.ascontiguousarray(products.mT[:, r * width : (r + 1) * width]).mT
            loss.workspace.products = loss._weighted(part)
            evaluations.append(loss._evaluation(weights[r], solutions[r], constants[r], leases[r]))
        return evaluations
