"""The square loss at one point: value, derivatives, and outputs of samples left out.

:mod:`.square` has the formulas, :mod:`.left_out` those of samples left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from .._blas import matmul
from .._rounding import ACCUMULATED, EPS
from .base import Array, Indices, nearly_definite
from .left_out import FoldOutputs, LeftOut, left_out_singly, remove
from .workspace import Lease, WorkspaceEvaluation

if TYPE_CHECKING:
    from .square import SquareLoss

# Rows of an m × m matrix that are processed at once: 2 MB at m = 1000, about a second-level cache.
_BLOCK_ROWS = 256


@dataclass
class SquareEvaluation(WorkspaceEvaluation):
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
    def factorized(self) -> bool:
        """Whether A can be factorised: False where it would be too large."""
        return True

    @property
    def rounding(self) -> float:
        """Errors of the inner products of U with H and with ``K_βU/λ``."""
        own = EPS * np.abs(self._loss.rotated_targets * self._solution).sum()
        return float(own + self.weights @ self.gain_errors)

    @property
    def gain_errors(self) -> Array:
        return self._loss.form_errors(self._solution)

    @property
    def residuals(self) -> Array:
        """U in the columns of the targets, sample weights applied: the coefficients times λ."""
        return self._loss._weighted(self._solution @ self._loss.rotation.T)

    @property
    def rotated_residuals(self) -> Array:
        """U in the columns of the rotated targets, sample weights applied, (m, rank H)."""
        return self._solution

    @property
    def coefficients(self) -> Array:
        """U/λ, (m, c)."""
        return self.residuals / self._loss.reg

    @property
    def dual(self) -> Array:
        """α = 2U."""
        return 2.0 * self.residuals

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights, self._solution)

    def hessian(self) -> Array:
        """``∇²F``, by one triangular solve."""
        self.restore()
        workspace = self._loss.workspace
        columns = workspace.flat_products.reshape(-1, len(self._solution)).T
        flat = workspace.half_solve(columns).T.reshape(len(self.weights), -1)
        return matmul(flat, flat.T, scale=2.0 / self._loss.reg**2)

    def model_hessian(self, gap: float) -> Array:
        """``∇²F``, for one output changed to the curvature of a quadratic model of 1/F.

        For one output ``1/F(β) = min {uᵀA(β)u : hᵀu = 1}`` is a minimum of functions linear in
        β: concave, and linear where a single direction of the kernels matters, while F itself is
        like a hyperbola. A step that maximises the quadratic model of 1/F minimises
        ``−g·d + ½ dᵀ(∇²F − (2/F) g gᵀ)d``: same gradient, better curvature.
        """
        hessian = self.hessian()
        if self._solution.shape[1] > 1:
            return hessian
        hessian -= (2.0 / self.value) * np.outer(self.gains, self.gains)
        return nearly_definite(hessian)

    def whiten(self, columns: Array) -> Array:
        """``R⁻ᵀ @ columns``."""
        self.restore()
        return self._loss.workspace.half_solve(columns)

    def unwhiten(self, columns: Array) -> Array:
        """``R⁻¹ @ columns``."""
        self.restore()
        return self._loss.workspace.half_solve(columns, transposed=False)

    def _factor_to_overwrite(self) -> Array:
        self.restore()
        self.release()
        return self._loss.workspace.matrix

    def inverse_diagonal(self) -> Array:
        """``diag(A⁻¹)``, the row sums of squares of R⁻¹; overwrites the factor."""
        factor = self._factor_to_overwrite()
        linalg.lapack.dtrtri(factor.T, lower=0, overwrite_c=1)
        diagonal = np.zeros(len(factor))
        for start in range(0, len(factor), _BLOCK_ROWS):
            # Row k of `factor` holds R⁻¹[i, k] for i ≤ k; entries beyond belong to A.
            rows = factor[start : start + _BLOCK_ROWS]
            stop = start + len(rows)
            diagonal[:start] += np.einsum("ki,ki->i", rows[:, :start], rows[:, :start])
            corner = np.tril(rows[:, start:stop])
            diagonal[start:stop] += np.einsum("ki,ki->i", corner, corner)
        return diagonal

    def inverse(self) -> Array:
        """``A⁻¹``, overwriting the factor: valid until the loss is evaluated again."""
        factor = self._factor_to_overwrite()
        linalg.lapack.dpotri(factor.T, lower=0, overwrite_c=1)
        # LAPACK fills one triangle: the lower one of the C-ordered `factor`.
        for start in range(0, len(factor), _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, len(factor))
            factor[:start, start:stop] = factor[start:stop, :start].T
            corner = np.tril(factor[start:stop, start:stop])
            factor[start:stop, start:stop] = corner + np.tril(corner, -1).T
        return factor

    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        """Slopes ``B_j = A⁻¹K_jU/λ`` of the outputs (m, k, n), and ``∇²F`` of these kernels."""
        self.restore()
        reg = self._loss.reg
        products = self._loss.workspace.flat_products[kernels]
        half = self.whiten(products.reshape(-1, len(self._solution)).T)
        flat = half.T.reshape(len(kernels), -1)
        hessian = matmul(flat, flat.T, scale=2.0 / reg**2)
        slopes = self.unwhiten(half).reshape(len(half), len(kernels), -1) / reg
        return np.ascontiguousarray(slopes.mT), hessian

    def leave_one_out(
        self,
        multiplicity: Array | None = None,
        *,
        from_mean: bool = False,
        response: Array | None = None,
    ) -> Array:
        """Outputs ``f(x_i)`` of the discriminant trained without sample i, (m, c).

        Overwrites the factor.

        Parameters
        ----------
        multiplicity : ndarray of shape (m,), optional
            How many equal samples a row stands for; one of them is left out. Fractions below
            one count as one.
        from_mean : bool, default=False
            Subtract the mean target of the samples left in, which lies further from the target of
            the sample left out than the mean of all. Where there is little to learn, outputs would
            show that mean alone, and rank the samples of each class on the wrong side.
        response : ndarray of shape (m, k, n), optional
            Response of the kernel weights, M of :mod:`.left_out`; without it they are held.
        """
        every, kappa = np.arange(len(self._solution)), self._kappa(self.inverse_diagonal())
        count = self._counts(multiplicity)
        return self._each_left_out(every, self._solution, kappa, count, response, from_mean)

    def leave_out(
        self, folds: list[Indices], multiplicity: Array | None, response: Array | None
    ) -> LeftOut:
        """Outputs of samples left out singly and fold by fold, less the mean target left in.

        Overwrites the factor. `folds` are disjoint sets of rows, with equal samples in the same
        one; `multiplicity` and `response` are as for :meth:`leave_one_out`.
        """
        if not folds:
            singly = self.leave_one_out(multiplicity, from_mean=True, response=response)
            return LeftOut(singly, [])
        inverse = self.inverse()
        every, count = np.arange(len(inverse)), self._counts(multiplicity)
        kappa = self._kappa(np.diagonal(inverse))
        singly = self._each_left_out(every, self._solution, kappa, count, response)
        self._take_away_intercept(inverse)
        parts = []
        for fold in folds:
            residuals, others, solution, kappa = remove(inverse, self._solution, response, fold)
            outputs = self._outputs_left_out(residuals, fold) - self._mean_without_all(fold)
            of_others = self._each_left_out(others, solution, kappa, count)
            parts.append(FoldOutputs(fold, outputs, others, of_others))
        return LeftOut(singly, parts)

    def leave_folds_out(self, folds: list[Indices], response: Array | None) -> list[Array]:
        """Outputs of every fold by the model of the other samples; overwrites the factor.

        `folds` and `response` are as for :meth:`leave_out`.
        """
        inverse = self.inverse()
        self._take_away_intercept(inverse)
        return [
            self._outputs_left_out(remove(inverse, self._solution, response, fold)[0], fold)
            for fold in folds
        ]

    def _each_left_out(
        self,
        rows: Indices,
        solution: Array,
        kappa: Array,
        count: Array,
        response: Array | None = None,
        from_mean: bool = True,
    ) -> Array:
        """Outputs of `rows`, each left out in turn from the model learnt from all of them.

        `solution` and `kappa` are U and κ of that model. If a row stands for k equal samples, one
        of which is left out, κ is replaced by ``κ + (k − 1)/r``, with r the coefficient of I in A,
        and the residual is multiplied by k.
        """
        kappa = kappa + (count[rows] - 1.0) / self._loss.ridge(self.weights)
        residuals = left_out_singly(solution, kappa, response)
        outputs = self._outputs_left_out(residuals, rows, count[rows])
        return outputs - self._mean_without_each(rows, count) if from_mean else outputs

    def _counts(self, multiplicity: Array | None) -> Array:
        """How many samples every row stands for."""
        one_each = np.ones(len(self._solution))
        return one_each if multiplicity is None else np.maximum(multiplicity, one_each)

    def _kappa(self, inverse_diagonal: Array) -> Array:
        """``κ_i = A⁻¹_ii − 1/(ma)``, positive in spite of rounding."""
        return np.maximum(inverse_diagonal - self._intercept_share(), ACCUMULATED / self.constant)

    def _intercept_share(self) -> Array:
        """Diagonal of ``11ᵀ/(ma)``: the part of A⁻¹ that the intercept takes away."""
        weight = self._sample_weight
        share: Array = weight / (weight.sum() * self.constant)
        return share

    def _take_away_intercept(self, inverse: Array) -> None:
        """Q of :mod:`.left_out` from A⁻¹, in its place."""
        intercept = np.sqrt(self._intercept_share())
        inverse -= intercept[:, None] * intercept

    @property
    def _sample_weight(self) -> Array:
        given = self._loss.sample_weight
        return np.ones(len(self._solution)) if given is None else given

    def _outputs_left_out(
        self, residuals: Array, rows: Indices, count: Array | float = 1.0
    ) -> Array:
        """Outputs in the columns of H, from residuals of rotated columns times √w."""
        scale = count / np.sqrt(self._sample_weight[rows])
        residuals = (residuals @ self._loss.rotation.T) * scale[:, None]
        return self._loss.targets[rows] - residuals

    def _mean_without_each(self, rows: Indices, count: Array) -> Array:
        """Mean target of `rows` without one sample of a row, for each row in turn."""
        weight, targets = self._sample_weight[rows], self._loss.targets[rows]
        unit = (weight / count[rows])[:, None]
        means: Array = (weight @ targets - unit * targets) / (weight.sum() - unit)
        return means

    def _mean_without_all(self, rows: Indices) -> Array:
        """Mean target of all samples but `rows`; that of all samples is zero."""
        weight = self._sample_weight
        left = weight.sum() - weight[rows].sum()
        mean: Array = -(weight[rows] @ self._loss.targets[rows]) / left
        return mean
