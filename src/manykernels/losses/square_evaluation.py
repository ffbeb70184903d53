"""The square loss at one point: value, derivatives, and samples left out of it.

The formulas stand in :mod:`.square`; what is left out, in :mod:`.left_out`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from .._blas import matmul
from .base import Array
from .left_out import (
    LEAST_KEPT,
    FoldOutputs,
    LeftOut,
    Rows,
    left_out_singly,
    remove,
)

if TYPE_CHECKING:
    from .square import SquareLoss

_BLOCK_ROWS = 256


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
        if not folds:
            singly = self.leave_one_out(multiplicity, from_mean=True, response=response)
            return LeftOut(singly, [])
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
