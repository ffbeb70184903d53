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

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
from scipy.linalg import blas

from ..utils.numerics import ACCUMULATED, EPS, matmul
from .base import (
    Array,
    DualProgram,
    HasDualProgram,
    Indices,
    KernelOperator,
    KernelsOnDemand,
    ProblemSpec,
    nearly_definite,
)
from .left_out import LeavesOut
from .on_demand import Lease, Workspace, WorkspaceEvaluation, WorkspaceLoss

# -- The square loss at one point: value, derivatives, and outputs of left-out samples ------------
#
# See the module docstring for the formulas, and :mod:`.left_out` for left-out samples.


@dataclass
class SquareEvaluation(LeavesOut, WorkspaceEvaluation):
    """F of the square loss at one point; `constant` is the eigenvalue of A at the vector 1."""

    weights: Array
    value: float
    gains: Array
    _loss: SquareLoss = field(repr=False)
    _solution: Array = field(repr=False)
    slack: float = 0.0
    constant: float = 1.0
    _lease: Lease | None = field(default=None, repr=False, compare=False)

    hyperbolic = True

    @property
    def rounding(self) -> float:
        """Rounding errors of the inner products of U with H and with ``K_βU/λ``.

        The latter count twice, like errors of predictions in squares.
        """
        error = EPS * np.abs(self._loss.rotated_targets * self._solution).sum()
        return float(error + 2.0 * (self.weights @ self.gain_errors))

    @property
    def gain_errors(self) -> Array:
        return self._loss.form_errors(self._solution)

    @property
    def residuals(self) -> Array:
        """U in the columns of the targets, with sample weights: the coefficients times λ."""
        return self._loss._weighted(self._solution @ self._loss.rotation.T)

    @property
    def reach(self) -> Array:
        """Derivative of the objective in the outputs of the samples, (m, c)."""
        return 2.0 * np.abs(self.residuals)

    @property
    def rotated_residuals(self) -> Array:
        """U in the columns of the rotated targets, with sample weights, (m, rank H)."""
        return self._solution

    @property
    def coefficients(self) -> Array:
        """Coefficients U/λ, (m, c)."""
        return self.residuals / self._loss.reg

    @property
    def dual(self) -> Array:
        """Dual variables α = 2U."""
        return 2.0 * self.residuals

    @property
    def _targets(self) -> Array:
        return self._loss.targets

    @property
    def _rotation(self) -> Array:
        return self._loss.rotation

    @property
    def _sample_weight(self) -> Array:
        weights = self._loss.sample_weight
        return np.ones(len(self._solution)) if weights is None else weights

    @property
    def _total_weight(self) -> float:
        return float(self._sample_weight.sum())

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights, self._solution)

    def hessian(self) -> Array:
        """Return ``∇²F``, by one triangular solve."""
        self.restore()
        workspace = self._loss.workspace
        columns = workspace.flat_products.reshape(-1, len(self._solution)).T
        flat = workspace.half_solve(columns).T.reshape(len(self.weights), -1)
        return matmul(flat, flat.T, scale=2.0 / self._loss.reg**2)

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F``; for one output, the curvature of a quadratic model of 1/F."""
        hessian = self.hessian()
        if self._solution.shape[1] > 1:
            return hessian
        return reciprocal_curvature(hessian, self.value, self.gains)

    def whiten(self, columns: Array) -> Array:
        """Return ``R⁻ᵀ @ columns``."""
        self.restore()
        return self._loss.workspace.half_solve(columns)

    def unwhiten(self, columns: Array) -> Array:
        """Return ``R⁻¹ @ columns``."""
        self.restore()
        return self._loss.workspace.half_solve(columns, transposed=False)

    def inverse_diagonal(self) -> Array:
        """Return ``diag(A⁻¹)``; overwrites the factor."""
        self.restore()
        self.release()
        return self._loss.workspace.inverse_diagonal()

    def inverse(self) -> Array:
        """Return ``A⁻¹``, overwriting the factor; valid until the loss is evaluated again."""
        self.restore()
        self.release()
        return self._loss.workspace.inverse()

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        n_rows = len(self._solution)
        if 2 * sum(rows.size for rows in sets if rows.shape[1] > 1) > n_rows:
            return super()._blocks(sets)
        # Few entries beside the diagonal: R⁻¹ takes half the time of A⁻¹.
        self.restore()
        self.release()
        intercept = np.sqrt(self._intercept_share())
        blocks = self._loss.workspace.inverse_blocks(sets)
        return [
            block - intercept[rows][:, :, None] * intercept[rows][:, None, :]
            for rows, block in zip(sets, blocks, strict=True)
        ]

    def log_determinant(self) -> float:
        """Return ``log|A|`` on the complement of the constant vector."""
        self.restore()
        diagonal = np.abs(self._loss.workspace.diagonal)
        return float(2.0 * np.log(diagonal).sum() - np.log(self.constant))

    def traces(self) -> tuple[float, Array]:
        """Return ``tr A⁻¹`` on the complement of the constant vector, and all ``tr(A⁻¹K_j)/λ``.

        Overwrites the factor.
        """
        inverse, loss = self.inverse(), self._loss
        of_identity = float(np.trace(inverse)) - 1.0 / self.constant
        if loss.roots is not None:
            inverse *= loss.roots
            inverse *= loss.roots.T
        kernels: Any = loss.kernels
        return of_identity, kernels.inner_products_with(inverse) / loss.reg

    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        """Return the slopes ``B_j = A⁻¹K_jU/λ`` of the outputs (m, k, n), and ``∇²F``."""
        self.restore()
        reg = self._loss.reg
        products = self._loss.workspace.flat_products[kernels]
        half = self.whiten(products.reshape(-1, len(self._solution)).T)
        flat = half.T.reshape(len(kernels), -1)
        hessian = matmul(flat, flat.T, scale=2.0 / reg**2)
        slopes = self.unwhiten(half).reshape(len(half), len(kernels), -1) / reg
        return np.ascontiguousarray(slopes.mT), hessian


def reciprocal_curvature(hessian: Array, value: float, gains: Array) -> Array:
    """Change the Hessian of F for one output in place to that of a quadratic model of 1/F.

    For one output ``1/F(β) = min {uᵀA(β)u : hᵀu = 1}`` is a minimum of functions linear in
    β: concave, and linear where a single direction of the kernels matters, while F itself is
    like a hyperbola. A step that maximises the quadratic model of 1/F minimises
    ``−g·d + ½ dᵀ(∇²F − (2/F) g gᵀ)d``: same gradient, better curvature.
    """
    hessian -= (2.0 / value) * np.outer(gains, gains)
    return nearly_definite(hessian)


# Number of rows below which a coarse problem may cost more than the factorisations that it saves:
# at 300, 450 and 600 rows it changes the time of a fit by 28, 19 and −11 % with 3 classes and 10
# kernels, by −13, −9 and −17 % with 20 classes and 40 kernels (measured).
_COARSE_MIN_ROWS = 600
# The coarse problem has at most every fourth row, so that its factorisations are 64 times cheaper.
_COARSE_STEP = 4
# With one output the model of 1/F is good from the start (see SquareEvaluation.model_hessian): a
# coarse problem saves a factorisation, but takes as long as one where there are few rows.
_COARSE_MIN_ROWS_OF_ONE = 1500
# Number of rows of a coarse problem from which on its halves are solved, too.
_HALVES_MIN_ROWS = 400
# Mean diagonal t of K_β/λ from which on the eigenvalue of A at the constant vector is raised.
# Entries of A⁻¹ are of the size 1/t, except for that vector, where it is 1, and rounding errors of
# the inverse are EPS m t. Below this t, they are a fraction EPS m t² of the entries, 1e-7 at
# m = 1000; at t = 1e7 no digit is left.
LARGE_DIAGONAL = 1e3


class NotPositiveDefiniteError(ValueError):
    """Raised if a matrix that should be positive definite has no Cholesky factor."""


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

    #: Coefficient of I in A that does not depend on the weights.
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
        kept[-1] = True  # LAPACK needs a column, even if all targets are zero
        self.rotation = basis[:, kept]
        self.rotated_targets = np.asfortranarray(scaled @ self.rotation)
        self.workspace = Workspace(len(targets))

    @property
    def spec(self) -> ProblemSpec:
        n_samples, n_outputs = self.rotated_targets.shape
        n_kernels = self.kernels.shape[2]
        return ProblemSpec(
            type(self), n_samples, n_kernels, n_outputs, self.learns_reg, self.on_demand
        )

    def _weighted(self, columns: Array) -> Array:
        """Return ``S @ columns``."""
        return columns if self.roots is None else columns * self.roots

    def kernel(self, which: int) -> Array:
        """Return one kernel matrix as a term of A: with sample weights, divided by λ."""
        matrix = self.kernels.kernel(which) / self.reg
        return matrix if self.roots is None else matrix * self.roots * self.roots.T

    def products(self, columns: Array) -> Array:
        """Return every :meth:`kernel` times `columns`, (n_kernels, m, n_columns)."""
        if self.roots is None:
            return self.kernels.apply(columns) / self.reg
        return self.kernels.apply(columns * self.roots) * (self.roots / self.reg)

    def form_errors(self, solution: Array) -> Array:
        """Return estimated rounding errors of ``tr(UᵀK_jU)/λ``."""
        columns = self._weighted(solution)
        return self.kernels.form_errors(columns, columns) / self.reg

    def evaluate(self, weights: Array) -> SquareEvaluation:
        """Factorise A at `weights` and return F and the gains; derivatives are computed later."""
        lease = self.workspace.lend()
        weights, constant = self._factorize(weights)
        solution = self.workspace.solve(self.rotated_targets)
        self.workspace.multiply(self.kernels, solution, self.roots)
        return self._evaluation(weights, solution, constant, lease)

    def refill(self, weights: Array, solution: Array) -> Lease:
        """Recompute factor and products at a point with the known solution U."""
        lease = self.workspace.lend()
        self._factorize(weights)
        self.workspace.multiply(self.kernels, solution, self.roots)
        return lease

    def _evaluation(
        self, weights: Array, solution: Array, constant: float, lease: Lease
    ) -> SquareEvaluation:
        """Return the evaluation at weights whose factor and products are in place."""
        products = self.workspace.flat_products
        gains = matmul(products, solution.T.reshape(-1), scale=1.0 / self.reg)
        combined = matmul(products.T, weights, scale=1.0 / self.reg)
        residual = self.rotated_targets - combined.reshape(solution.T.shape).T
        residual -= self.fixed_ridge * solution
        slack = self._slack(residual, weights)
        value = float(np.vdot(solution, self.rotated_targets + residual)) + slack
        return SquareEvaluation(weights, value, gains, self, solution, slack, constant, lease)

    def _slack(self, residual: Array, weights: Array) -> float:
        """Return an upper bound on ``tr(EᵀA⁻¹E)``, the factor of A being in place."""
        return float(np.vdot(residual, residual)) / self.ridge(weights)

    def _factorize(self, weights: Array) -> tuple[Array, float]:
        """Put the Cholesky factor of A into the workspace.

        Returns the weights of A, which a subclass may have changed, and the eigenvalue of A at
        the constant vector, which centred kernels map to zero; it may have been raised.
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

        Results for targets and centred kernels do not change, as they are orthogonal to that
        vector.
        """
        ones = np.ones(len(self.targets)) if self.roots is None else self.roots[:, 0]
        # The transpose of a C-ordered symmetric matrix is that matrix in the order of BLAS.
        blas.dger(size / (ones @ ones), ones, ones, a=self.workspace.matrix.T, overwrite_a=1)

    def _factorize_combined(self) -> float:
        """Replace ``K_β/λ`` in the workspace by the Cholesky factor of A.

        Returns the eigenvalue of A at the constant vector, which is raised if λ is small.
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
        """Return F as a maximum over ``v = √2 U``, with the columns of `rotated_targets`."""
        return DualProgram.free(np.sqrt(2.0) * self.rotated_targets, self.fixed_ridge)

    def dual_of(self, v: Array) -> Array:
        """Return α of ``v = √2 U``, in the columns of the targets."""
        return self._weighted(np.sqrt(2.0) * (v @ self.rotation.T))

    def variables_of(self, dual: Array) -> Array:
        unweighted = dual if self.roots is None else dual / self.roots
        v: Array = unweighted @ self.rotation / np.sqrt(2.0)
        return v

    def ridge(self, weights: Array) -> float:
        """Return r, the coefficient of I in A."""
        return self.fixed_ridge

    def regularization(self, weights: Array) -> float:
        return self.reg

    def on_rows(self, rows: Indices, reg: float) -> SquareLoss:
        """Return the loss of some of the samples, with kernels and targets centred again."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        targets = self.targets[rows]
        targets = targets - np.average(targets, axis=0, weights=weights)
        kernels: Any = self.kernels[np.ix_(rows, rows)]
        share = np.ones(len(rows)) if weights is None else weights
        share = share / share.sum()
        means = kernels.apply(share[:, None])[:, :, 0]
        offsets = means - (means @ share)[:, None] / 2
        return SquareLoss(kernels.shifted(offsets, offsets), targets, reg, weights)

    def coarse(self) -> SquareLoss | None:
        """Return the loss on every fourth row or fewer, spread evenly over the targets.

        The copy of all kernels is about as large as two of them at most.
        """
        n_rows, n_outputs = self.rotated_targets.shape
        # The best λ of fewer rows differs.
        fewest = _COARSE_MIN_ROWS if n_outputs > 1 else _COARSE_MIN_ROWS_OF_ONE
        if self.learns_reg or n_rows < fewest:
            return None
        return self._every(max(_COARSE_STEP, int(np.ceil(np.sqrt(self.n_kernels / 2)))))

    def halves(self) -> list[SquareLoss]:
        if len(self.targets) < _HALVES_MIN_ROWS:
            return []
        return [self._every(2), self._every(2, 1)]

    def _every(self, step: int, first: int = 0) -> SquareLoss:
        """Return the loss on every `step`-th row in the order of the targets.

        Eigenvalues of K grow like the number of rows, hence λ shrinks with it.
        """
        rows = np.sort(np.lexsort(self.targets.T)[first::step])
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
            products_of_loss = np.ascontiguousarray(products.mT[:, r * width : (r + 1) * width]).mT
            loss.workspace.products = loss._weighted(products_of_loss)
            evaluations.append(loss._evaluation(weights[r], solutions[r], constants[r], leases[r]))
        return evaluations


# -------------------------------------------------------------------------------------------------
# The identity as the first kernel, whose weight is the regularisation λ in ``λI + Σ_j θ_j K_j``.
#
# So λ is learnt like any other weight (Ye 2008, section 4; SM2_C of Lanckriet et al. 2004).


Gauge = Callable[[Array], float]


def of_some(gauge: Gauge | None, kernels: Indices, n_kernels: int) -> Gauge | None:
    """Return the gauge of the weights of some kernels, the other weights being zero."""
    if gauge is None:
        return None
    whole = gauge

    def restricted(weights: Array) -> float:
        every = np.zeros(n_kernels)
        every[kernels] = weights
        return whole(every)

    return restricted


@dataclass(frozen=True)
class Raised:
    """Weights whose first, the regularisation, is at least some value.

    All were divided by `factor` if they would be outside of their domain otherwise.
    """

    weights: Array
    factor: float = 1.0
    is_higher: bool = False

    @classmethod
    def to(cls, least: float, weights: Array, gauge: Gauge | None) -> Raised:
        """Raise the first of `weights` to `least`, in a domain with this gauge."""
        if weights[0] >= least:
            return cls(weights)
        raised = weights.copy()
        raised[0] = least
        factor = 1.0 if gauge is None else max(1.0, gauge(raised))
        return cls(raised / factor, factor, True)


class WithIdentity:
    """Kernels preceded by ``unit · I``; unit is 1/m where the other kernels have unit trace.

    A sample of weight w counts like the mean of w observations, each with noise λ: its diagonal
    entry is ``unit/w``.
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
        total = self.kernels.combine(weights[1:], out=out)
        total.reshape(-1)[:: len(total) + 1] += weights[0] * self.diagonal
        return total

    def combine_all(self, weights: Array, outs: list[Array]) -> None:
        for row, out in zip(weights, outs, strict=True):
            self.combine(row, out)

    def apply(self, columns: Array, out: Array | None = None) -> Array:
        n_rows, _, n_kernels = self.shape
        products = np.empty((n_kernels, columns.shape[1], n_rows)) if out is None else out.mT
        products[0] = (self.diagonal[:, None] * columns).T
        products[1:] = self.kernels.apply(columns).mT
        return products.mT

    def form_errors(self, left: Array, right: Array) -> Array:
        error = EPS * np.sum(self.diagonal[:, None] * np.abs(left * right))
        return np.concatenate([[error], self.kernels.form_errors(left, right)])

    def kernel(self, which: int) -> Array:
        return np.diag(self.diagonal) if which == 0 else self.kernels.kernel(which - 1)

    @property
    def on_demand(self) -> bool:
        """Whether the other kernels are computed on demand."""
        return bool(getattr(self.kernels, "on_demand", False))

    def visit(self, work: Callable[[KernelOperator, Indices], None]) -> None:
        """Visit blocks of kernels on demand, the identity with each of them."""

        def visit_with_identity(kernels: KernelOperator, positions: Indices) -> None:
            stack = copy(self)
            stack.kernels = kernels
            work(stack, np.concatenate([[0], 1 + positions]))

        cast("KernelsOnDemand", self.kernels).visit(visit_with_identity)

    def select(self, kernels: Indices) -> Self:
        if kernels[0] != 0:
            raise ValueError("The first selected kernel must be the identity, number 0.")
        selected = copy(self)
        selected.kernels = self.kernels.select(kernels[1:] - 1)
        return selected

    def __getitem__(self, key: Any) -> Self:
        raise TypeError("Kernels with the identity cannot be restricted to some of the samples.")


# -- Square loss with the regularisation learnt along with the kernel weights ---------------------
#
# Ye 2008, section 4. With the identity as kernel 0, its weight being λ,
#
#     A = λI + Σ_j θ_j K_j,   U = A⁻¹H,   F(λ, θ) = tr(HᵀU)
#     g_0 = tr(UᵀU),   g_j = tr(Uᵀ K_j U),   ∇²F_ij = 2 tr((K_i U)ᵀ A⁻¹ (K_j U))
#
# ((40) and (41) there for two classes; (45) for more). This is the square loss with A = K_β
# instead of I + K_β/λ. Kernels and targets are centred, so A maps the vector 1 to λ1 and becomes
# singular where the learnt λ tends to zero. A multiple of ``11ᵀ``, added to A, prevents that
# without any other effect.


# Smallest eigenvalue of A, as a fraction of its mean diagonal. With equal samples or kernels of
# low rank A is singular at λ = 0, and rounding errors in its null space, about m EPS of the
# diagonal, would look like a gain of the identity. This is about a hundred times that error at m =
# 500. If the kernels have no smaller eigenvalues, any λ is possible, including zero.
_LEAST_SHARE = 1e-11
_AT_THE_LEAST = (
    "The learnt λ is {:.1e}, the least that rounding errors allow: without it the kernels are "
    "singular, and the best λ is there or below. Pass a number for reg, if λ matters."
)


class LearntRegularization(WorkspaceLoss):
    """Loss whose first weight is that of the identity, the first of its kernels."""

    kernels: WithIdentity
    learns_reg = True
    _gauge: Gauge | None = None
    # True if the first weight had to be raised at the last point.
    _at_least = False

    def within(self, gauge: Gauge) -> Self:
        loss = copy(self)
        loss._gauge = gauge
        return loss

    def restricted(self, kernels: Indices) -> Self:
        loss = super().restricted(kernels)
        loss._gauge = of_some(self._gauge, kernels, self.n_kernels)
        return loss


class JointSquareLoss(LearntRegularization, SquareLoss):
    """F(λ, θ): the first weight is ``λ/unit``, the others are the kernel weights.

    Parameters
    ----------
    kernels : KernelOperator
        Centred training kernels.
    targets : ndarray of shape (m, c)
    unit : float, default=1.0
        Scale of the identity kernel: 1/m where kernels have unit trace.
    sample_weight : ndarray of shape (m,), optional
    """

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

    def _evaluation(self, weights: Array, *arguments: Any) -> SquareEvaluation:
        evaluation = super()._evaluation(weights, *arguments)
        evaluation.at_least = self._at_least
        return evaluation

    def note(self, evaluation: Any) -> str:
        least = self.ridge(evaluation.weights)
        return _AT_THE_LEAST.format(least) if evaluation.at_least else ""

    def _slack(self, residual: Array, weights: Array) -> float:
        half = self.workspace.half_solve(np.asfortranarray(residual))
        return float(np.vdot(half, half))

    def _factorize(self, weights: Array) -> tuple[Array, float]:
        """Factorise as for a fixed λ, which is raised tenfold while A is singular.

        A λ that is lost in rounding errors becomes zero.
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
        """Put A into the workspace and return its mean diagonal."""
        self.kernels.combine(weights, out=self.workspace.matrix)
        self._weight_samples()
        size = float(self.workspace.diagonal.mean())
        if not size > 0.0:
            raise ValueError(
                "All kernels are zero, so that reg cannot be learnt: pass a number for reg."
            )
        return size

    def ridge(self, weights: Array) -> float:
        return float(weights[0]) * self.kernels.unit

    regularization = ridge
