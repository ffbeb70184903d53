"""Square loss: the regularised kernel Fisher discriminant, binary and multiclass.

With centred kernels, ``K_β = Σ_j β_j K_j``, targets H (m×c) and regularisation λ,

    A = I + K_β/λ,   U = A⁻¹ H,   F(β) = tr(HᵀU),   α = 2U
    g_j    = −∂F/∂β_j = tr(Uᵀ K_j U)/λ
    ∇²F_ij = (2/λ²) tr((K_i U)ᵀ A⁻¹ (K_j U))

(Ye 2008, Theorems 2.1 and 3.2; Yan 2012, section 2; F is ``aᵀa − J`` for the Fisher ratio J
of Yan 2012 (4)). One Cholesky factorisation A = RᵀR serves all: F and U by two triangular
solves, g by one product per kernel, and the Hessian by one triangular solve with the n·c
columns K_jU, since ``tr((K_iU)ᵀA⁻¹(K_jU)) = ⟨R⁻ᵀK_iU, R⁻ᵀK_jU⟩``.

What the factorisation has lost is told by the products K_jU. Whatever U is, with the residual
``E = H − AU`` and r the least coefficient of I in A (1 here)

    D(U, β) = 2 tr(HᵀU) − tr(UᵀAU) = tr(Uᵀ(H + E)) ≤ F(β) = D + tr(EᵀA⁻¹E) ≤ D + ‖E‖²/r

and D is linear in β with slopes −g(U). So ``D + ‖E‖²/r`` is the value, which for r = 1 is the
primal objective ``‖H − K_βU/λ‖² + tr(UᵀK_βU)/λ`` of the discriminant U/λ, ``‖E‖²/r`` its slack.

Sample weights w turn the inner problem into ``min_f Σ_i w_i ‖h_i − f(x_i)‖² + λ‖f‖²``, which
is the same with ``S K_j S`` and ``S H`` for K_j and H, ``S = diag(√w)``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._blas import matmul
from .base import Array, KernelOperator, Outline
from .program import DualProgram
from .square_evaluation import SquareEvaluation

Indices = NDArray[np.intp]

# Below this many rows a coarse problem costs as much as the factorisations it saves.
_COARSE_MIN_ROWS = 600


class NotPositiveDefiniteError(ValueError):
    """A matrix that has no Cholesky factor."""


class SquareLoss:
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
    """

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
        # The c class columns of H have rank c − 1. F, g and ∇²F are traces over outputs, so
        # they do not change when H is rotated to the columns that are not zero.
        scaled = targets if self.roots is None else targets * self.roots
        spectrum, basis = np.linalg.eigh(scaled.T @ scaled)
        self.rotation = basis[:, spectrum > 1e-12 * spectrum[-1]]
        self._rotated_targets = np.asfortranarray(scaled @ self.rotation)
        self._products: Array | None = None
        # The point that `_factor` and `_products` belong to.
        self._latest: SquareEvaluation | None = None

    @cached_property
    def _factor(self) -> Array:
        # Made when it is first needed: solvers that work by columns never do.
        return np.empty((len(self.targets), len(self.targets)))

    @property
    def n_kernels(self) -> int:
        return self.kernels.shape[2]

    @property
    def outline(self) -> Outline:
        n_samples, n_outputs = self._rotated_targets.shape
        return Outline(type(self), n_samples, self.n_kernels, n_outputs)

    @property
    def rotated_targets(self) -> Array:
        """H in an orthonormal basis of its columns, sample weights applied, (m, rank H)."""
        return self._rotated_targets

    def kernel(self, which: int) -> Array:
        """One kernel matrix as A sees it: sample weights applied, divided by λ."""
        matrix = self.kernels.kernel(which) / self.reg
        return matrix if self.roots is None else matrix * self.roots * self.roots.T

    def products(self, columns: Array) -> Array:
        """``K_j @ columns`` of every kernel as A sees it, (n_kernels, m, n_columns)."""
        if self.roots is None:
            return self.kernels.apply(columns) / self.reg
        return self.kernels.apply(columns * self.roots) * (self.roots / self.reg)

    def evaluate(self, weights: Array) -> SquareEvaluation:
        """Factorise A at `weights` and return F, gains and what else is asked for."""
        weights = self._factorize(weights)
        solution, _ = linalg.lapack.dpotrs(self._factor.T, self._rotated_targets, lower=0)
        self._multiply(solution)
        return self._arrive(weights, solution)

    def gains_at(self, dual: Array) -> Array:
        """``tr(αᵀK_jα)/4λ`` of every kernel, one pass over them."""
        gains: Array = np.einsum("jmc,mc->j", self.kernels.apply(dual), dual) / (4.0 * self.reg)
        return gains

    def restricted(self, kernels: Indices) -> Self:
        """The same loss of some of the kernels."""
        part = copy(self)
        part.kernels = self.kernels.select(kernels)
        part._products = part._latest = None
        # Each loss has a factor of its own.
        part.__dict__.pop("_factor", None)
        return part

    def _arrive(self, weights: Array, solution: Array) -> SquareEvaluation:
        """The evaluation of weights whose factor and products are in place."""
        products = self._flat_products
        gains = matmul(products, solution.T.reshape(-1), scale=1.0 / self.reg)
        combined = matmul(products.T, weights, scale=1.0 / self.reg)
        residual = self._rotated_targets - combined.reshape(solution.T.shape).T
        residual -= self.fixed_ridge * solution
        slack = float(np.vdot(residual, residual)) / self.ridge(weights)
        value = float(np.vdot(solution, self._rotated_targets + residual)) + slack
        self._latest = SquareEvaluation(weights, value, gains, self, solution, slack)
        return self._latest

    def form_errors(self, solution: Array) -> Array:
        """Rounding errors of ``tr(UᵀK_jU)/λ``."""
        columns = solution if self.roots is None else solution * self.roots
        return self.kernels.form_errors(columns, columns) / self.reg

    def _multiply(self, solution: Array) -> None:
        """K_jU for all kernels, into the same memory each time."""
        columns = solution if self.roots is None else solution * self.roots
        self._products = self.kernels.apply(columns, out=self._products)
        if self.roots is not None:
            self._products *= self.roots

    @property
    def _flat_products(self) -> Array:
        """K_jU, one row per kernel, output after output."""
        assert self._products is not None
        return self._products.transpose(0, 2, 1).reshape(self.n_kernels, -1)

    def _factorize(self, weights: Array) -> Array:
        """Cholesky factor of A, in place; returns the weights it belongs to."""
        self._assemble(weights)
        self._factorize_assembled()
        return weights

    def _factorize_assembled(self) -> None:
        self._diagonal[:] += 1.0
        if not self._cholesky():
            raise NotPositiveDefiniteError(
                f"I + K/reg is not positive definite at reg={self.reg:g}: the combined kernel "
                "has negative eigenvalues larger than reg. Raise reg, or build the stack with "
                'KernelStack.from_arrays(..., psd="clip").'
            )

    def _assemble(self, weights: Array) -> None:
        """``K_β/λ`` with sample weights into `_factor`."""
        self.kernels.combine(weights / self.reg, out=self._factor)
        self._weight_samples()

    def _weight_samples(self) -> None:
        if self.roots is not None:
            self._factor *= self.roots
            self._factor *= self.roots.T

    @property
    def _diagonal(self) -> Array:
        return self._factor.reshape(-1)[:: len(self._factor) + 1]

    def _cholesky(self) -> bool:
        """Replace A in `_factor` by R, the upper triangle of `_factor.T`; False if it has none."""
        # The transpose of a C-ordered symmetric matrix is itself in LAPACK's order: no copy.
        _, failed = linalg.lapack.dpotrf(self._factor.T, lower=0, clean=0, overwrite_a=1)
        return not failed

    def dual_program(self) -> DualProgram:
        """F as a maximum over ``v = √2 U``, columns as in `rotated_targets`."""
        return DualProgram.free(np.sqrt(2.0) * self._rotated_targets, self.fixed_ridge)

    def dual_of(self, v: Array) -> Array:
        """α of ``v = √2 U``, in the columns of the targets."""
        alpha: Array = np.sqrt(2.0) * (v @ self.rotation.T)
        return alpha if self.roots is None else alpha * self.roots

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """What α, scaled at its best, proves of the minimum over a domain."""
        plain = dual if self.roots is None else dual / self.roots
        v = plain @ self.rotation / np.sqrt(2.0)
        return self.dual_program().lower_bound(v, self.products(v), support)

    #: Coefficient of I in A that no weight can change.
    fixed_ridge = 1.0

    def kernel_weights(self, weights: Array) -> Array:
        """Those of the weights that belong to kernels."""
        return weights

    def regularization(self, weights: Array) -> float:
        """λ."""
        return self.reg

    def ridge(self, weights: Array) -> float:
        """Coefficient of I in A: what is left of A where no kernel reaches."""
        return 1.0

    def constant_value(self, weights: Array) -> float:
        """Eigenvalue of A at the constant direction, which centred kernels do not reach."""
        return 1.0

    def coarse(self) -> SquareLoss | None:
        """The same loss on every fourth row or fewer, spread evenly over the targets.

        At most ``√(1/n)`` of the rows are taken, so the copy is never larger than one kernel.
        Eigenvalues of K grow like the number of rows, hence λ shrinks with it.
        """
        n_rows, n_outputs = self._rotated_targets.shape
        if n_rows < _COARSE_MIN_ROWS or n_outputs == 1:
            # With one output the model of 1/F is good enough from the start.
            return None
        step = max(4, int(np.ceil(np.sqrt(self.n_kernels))))
        rows = np.sort(np.lexsort(self.targets.T)[::step])
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        targets = self.targets[rows]
        targets = targets - np.average(targets, axis=0, weights=weights)
        return SquareLoss(self.kernels[np.ix_(rows, rows)], targets, self.reg / step, weights)


def evaluate_all(losses: list[SquareLoss], weights: list[Array]) -> list[SquareEvaluation]:
    """Losses of the same kernels and targets, each at weights of its own.

    Every pass over the kernels serves all of them, which halves the cost of an evaluation.
    """
    first = losses[0]
    kernels = first.kernels
    scaled = np.array([row / loss.reg for loss, row in zip(losses, weights, strict=True)])
    kernels.combine_all(scaled, [loss._factor for loss in losses])
    solutions = []
    for loss in losses:
        loss._weight_samples()
        loss._factorize_assembled()
        solution, _ = linalg.lapack.dpotrs(loss._factor.T, loss._rotated_targets, lower=0)
        solutions.append(solution)
    columns = np.hstack(solutions)
    products = kernels.apply(columns if first.roots is None else columns * first.roots)
    width = first._rotated_targets.shape[1]
    evaluations = []
    for r, (loss, row) in enumerate(zip(losses, weights, strict=True)):
        # Each output is one row in memory, as LAPACK wants it.
        part = np.ascontiguousarray(products.mT[:, r * width : (r + 1) * width]).mT
        loss._products = part if first.roots is None else part * first.roots
        evaluations.append(loss._arrive(row, solutions[r]))
    return evaluations
