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
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._blas import matmul
from .base import Array, KernelOperator, Outline
from .left_out import (
    LEAST_KEPT,
    FoldOutputs,
    LeftOut,
    Rows,
    left_out_singly,
    remove,
)
from .program import DualProgram

Indices = NDArray[np.intp]

# Below this many rows a coarse problem costs as much as the factorisations it saves.
_COARSE_MIN_ROWS = 600
_BLOCK_ROWS = 256


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


@dataclass
class SquareEvaluation:
    """F of the square loss at one point; see the module for the formulas."""

    weights: Array
    value: float
    gains: Array
    _loss: SquareLoss = field(repr=False)
    _solution: Array = field(repr=False)
    slack: float = 0.0
    hyperbolic = True
    #: Whether A can be factorised: not where kernels are too large to be held.
    factorized = True

    @property
    def rounding(self) -> float:
        """Of the inner products of U with H and with ``K_βU/λ``."""
        terms = self._loss.rotated_targets * self._solution
        own = np.finfo(float).eps * np.abs(terms).sum()
        return float(own + self.weights @ self.gain_errors)

    @property
    def gain_errors(self) -> Array:
        """Of ``tr(UᵀK_jU)/λ``."""
        return self._loss.form_errors(self._solution)

    def reassessed(self) -> SquareEvaluation:
        """Itself: the products are fresh at every point."""
        return self

    @property
    def outputs(self) -> Array:
        """U in the columns of the targets, (m, c)."""
        outputs: Array = self._solution @ self._loss.rotation.T
        return outputs if self._loss.roots is None else outputs * self._loss.roots

    @property
    def coefficients(self) -> Array:
        """Coefficients of the training samples in the discriminant, U/λ, (m, c)."""
        return self.outputs / self._loss.reg

    @property
    def dual(self) -> Array:
        """α = 2U."""
        return 2.0 * self.outputs

    def _recall(self) -> SquareLoss:
        """The loss with factor and products of this point, made again if it has moved on."""
        loss = self._loss
        if loss._latest is not self:
            loss._factorize(self.weights)
            loss._multiply(self._solution)
            loss._latest = self
        return loss

    def hessian(self) -> Array:
        """``∇²F``, by one triangular solve."""
        loss = self._recall()
        n_rows = len(self._solution)
        columns = loss._flat_products.reshape(-1, n_rows).T
        half, _ = linalg.lapack.dtrtrs(loss._factor.T, columns, lower=0, trans=1)
        flat = half.T.reshape(loss.n_kernels, -1)
        return matmul(flat, flat.T, scale=2.0 / loss.reg**2)

    def model_hessian(self, gap: float) -> Array:
        """Curvature of the model a second-order solver should minimise.

        For one output ``1/F(β) = min {uᵀA(β)u : hᵀu = 1}`` is a minimum of functions linear in
        β: concave, and linear where a single kernel direction matters, while F itself bends
        like a hyperbola. A step that maximises the quadratic model of 1/F minimises
        ``−g·d + ½ dᵀ(∇²F − (2/F) g gᵀ)d``: same gradient, better curvature.
        """
        hessian = self.hessian()
        if self._solution.shape[1] > 1:
            return hessian
        hessian -= (2.0 / self.value) * np.outer(self.gains, self.gains)
        # Positive semi-definite up to rounding, which a quadratic program would refuse.
        hessian.flat[:: len(hessian) + 1] += 1e-12 * np.trace(hessian)
        return hessian

    def whiten(self, columns: Array) -> Array:
        """``R⁻ᵀ @ columns``."""
        solved, _ = linalg.lapack.dtrtrs(self._recall()._factor.T, columns, lower=0, trans=1)
        return np.asarray(solved)

    def unwhiten(self, columns: Array) -> Array:
        """``R⁻¹ @ columns``."""
        solved, _ = linalg.lapack.dtrtrs(self._recall()._factor.T, columns, lower=0)
        return np.asarray(solved)

    @property
    def rotated_outputs(self) -> Array:
        """U in the basis of the rotated targets, sample weights applied."""
        return self._solution

    def inverse_diagonal(self) -> Array:
        """``diag(A⁻¹)``, consuming the factor: row sums of squares of R⁻¹."""
        factor = self._recall()._factor
        self._loss._latest = None
        linalg.lapack.dtrtri(factor.T, lower=0, overwrite_c=1)
        diagonal = np.zeros(len(factor))
        for start in range(0, len(factor), _BLOCK_ROWS):
            # Row k of `factor` holds R⁻¹[i, k] for i ≤ k; beyond k it holds nothing of use.
            rows = factor[start : start + _BLOCK_ROWS]
            stop = start + len(rows)
            diagonal[:start] += np.einsum("ki,ki->i", rows[:, :start], rows[:, :start])
            corner = np.tril(rows[:, start:stop])
            diagonal[start:stop] += np.einsum("ki,ki->i", corner, corner)
        return diagonal

    def inverse(self) -> Array:
        """``A⁻¹``, consuming the factor."""
        factor = self._recall()._factor
        self._loss._latest = None
        linalg.lapack.dpotri(factor.T, lower=0, overwrite_c=1)
        # LAPACK fills one triangle: the lower one of the C-ordered `factor`.
        for start in range(0, len(factor), _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, len(factor))
            factor[:start, start:stop] = factor[start:stop, :start].T
            corner = np.tril(factor[start:stop, start:stop])
            factor[start:stop, start:stop] = corner + np.tril(corner, -1).T
        return factor

    def sensitivity(self, kernels: Rows) -> tuple[Array, Array]:
        """Slopes ``B_j = A⁻¹K_jU/λ`` of the outputs (m, k, n), and ``∇²F`` of these kernels."""
        loss = self._recall()
        assert loss._products is not None
        columns = np.ascontiguousarray(loss._products[kernels].mT).reshape(-1, len(loss.targets))
        half = self.whiten(columns.T)
        flat = half.T.reshape(len(kernels), -1)
        hessian = matmul(flat, flat.T, scale=2.0 / loss.reg**2)
        slopes = self.unwhiten(half).reshape(len(half), len(kernels), -1) / loss.reg
        return np.ascontiguousarray(slopes.mT), hessian

    def _kept(self, inverse_diagonal: Array, multiplicity: Array | None) -> tuple[Array, Array]:
        """``κ`` of :mod:`.left_out` where one of k equal samples goes, and k, of every row.

        κ is ``A⁻¹_ii − 1/(ma)``. If a row stands for k equal samples, one of which is left out,
        its residual becomes k times that of ``κ + (k − 1)/r`` instead, where r is the coefficient
        of I in A.
        """
        loss = self._loss
        constant = loss.constant_value(self.weights)
        count = np.ones(len(loss.targets))
        if multiplicity is not None:
            count = np.maximum(multiplicity, 1.0)
        # Positive in exact arithmetic; rounding must not make it change sign.
        kept = np.maximum(inverse_diagonal - self._constant_share(), LEAST_KEPT / constant)
        repeated = count > 1.0
        with np.errstate(divide="ignore"):  # a fit through equal samples leaves no residual
            kept[repeated] += (count[repeated] - 1.0) / loss.ridge(self.weights)
        return kept, count

    def _constant_share(self) -> Array:
        """Diagonal of ``11ᵀ/(ma)``: what the intercept takes of every residual."""
        weight = self._sample_weight
        share: Array = weight / (weight.sum() * self._loss.constant_value(self.weights))
        return share

    @property
    def _sample_weight(self) -> Array:
        given = self._loss.sample_weight
        return np.ones(len(self._loss.targets)) if given is None else given

    def leave_one_out(
        self,
        multiplicity: Array | None = None,
        *,
        from_mean: bool = False,
        response: Array | None = None,
    ) -> Array:
        """Outputs ``f(x_i)`` of the discriminant trained without sample i, (m, c).

        Parameters
        ----------
        multiplicity : ndarray of shape (m,), optional
            How many equal samples a row stands for; one of them is left out. Fractions below
            one count as one.
        from_mean : bool, default=False
            Measure outputs from the mean target of the samples left in. That mean moves away
            from the sample left out, and where there is little to learn it is all that the
            outputs would show: the classes, with their sides swapped.
        response : ndarray of shape (m, k, n), optional
            Response of the kernel weights, M of :mod:`.left_out`; without it they are held.
        """
        kept, count = self._kept(self.inverse_diagonal(), multiplicity)
        residuals = left_out_singly(self._solution, kept, response)
        every = np.arange(len(count))
        return self._outputs_left_out(residuals, every, count, from_mean=from_mean)

    def leave_out(
        self, folds: list[Rows], multiplicity: Array | None, response: Array | None
    ) -> LeftOut:
        """Outputs of samples left out singly, and fold by fold, measured from the mean left in.

        Consumes the factor.

        Parameters
        ----------
        folds : list of ndarray of int
            Sets of rows without a row in common. Equal samples belong into one of them.
        multiplicity, response
            As for :meth:`leave_one_out`.
        """
        inverse = self.inverse()
        constant = np.sqrt(self._constant_share())
        kept, count = self._kept(np.diagonal(inverse).copy(), multiplicity)
        inverse -= constant[:, None] * constant
        every = np.arange(len(count))
        singly = left_out_singly(self._solution, kept, response)
        ridge = self._loss.ridge(self.weights)
        parts = []
        for fold in folds:
            residuals, others, solution, kept = remove(inverse, self._solution, response, fold)
            with np.errstate(divide="ignore"):  # a fit through equal samples leaves no residual
                kept = kept + (count[others] - 1.0) / ridge
            staying = left_out_singly(solution, kept, None)
            parts.append(
                FoldOutputs(
                    fold,
                    self._outputs_left_out(residuals, fold, np.ones(len(count)), together=True),
                    others,
                    self._outputs_left_out(staying, others, count, from_mean=True),
                )
            )
        outputs = self._outputs_left_out(singly, every, count, from_mean=True)
        return LeftOut(outputs, parts)

    def _outputs_left_out(
        self,
        residuals: Array,
        rows: Rows,
        count: Array,
        *,
        from_mean: bool = False,
        together: bool = False,
    ) -> Array:
        """Outputs in the columns of H, from residuals of rotated columns times √w.

        Measured from the mean target of what is left in, if each of `rows` is left out singly
        (`from_mean`) or all of them are (`together`).
        """
        loss = self._loss
        weight, targets = self._sample_weight[rows], loss.targets[rows]
        scale = count[rows] / np.sqrt(weight)
        outputs: Array = targets - (residuals @ loss.rotation.T) * scale[:, None]
        if from_mean:
            unit = (weight / count[rows])[:, None]
            outputs -= (weight @ targets - unit * targets) / (weight.sum() - unit)
        if together:
            outputs += weight @ targets / (self._sample_weight.sum() - weight.sum())
        return outputs
