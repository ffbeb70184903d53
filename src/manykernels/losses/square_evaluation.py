"""The square loss at one point: value, derivatives, and outputs of samples left out.

:mod:`.square` has the formulas, :mod:`.left_out` those of samples left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .._blas import matmul
from .._rounding import EPS
from .base import Array, Indices, nearly_definite
from .left_out import LeavesOut
from .workspace import Lease, WorkspaceEvaluation

if TYPE_CHECKING:
    from .square import SquareLoss


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
        """Errors of the inner products of U with H and with ``K_βU/λ``.

        The latter count twice, as errors of predictions do in squares.
        """
        own = EPS * np.abs(self._loss.rotated_targets * self._solution).sum()
        return float(own + 2.0 * (self.weights @ self.gain_errors))

    @property
    def gain_errors(self) -> Array:
        return self._loss.form_errors(self._solution)

    @property
    def residuals(self) -> Array:
        """U in the columns of the targets, sample weights applied: the coefficients times λ."""
        return self._loss._weighted(self._solution @ self._loss.rotation.T)

    @property
    def reach(self) -> Array:
        """By how much the objective changes with the outputs of samples, (m, c)."""
        return 2.0 * np.abs(self.residuals)

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

    @property
    def _targets(self) -> Array:
        return self._loss.targets

    @property
    def _rotation(self) -> Array:
        return self._loss.rotation

    @property
    def _sample_weight(self) -> Array:
        given = self._loss.sample_weight
        return np.ones(len(self._solution)) if given is None else given

    @property
    def _total_weight(self) -> float:
        return float(self._sample_weight.sum())

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
        """``∇²F``, for one output changed to the curvature of a quadratic model of 1/F."""
        hessian = self.hessian()
        if self._solution.shape[1] > 1:
            return hessian
        return reciprocal_curvature(hessian, self.value, self.gains)

    def whiten(self, columns: Array) -> Array:
        """``R⁻ᵀ @ columns``."""
        self.restore()
        return self._loss.workspace.half_solve(columns)

    def unwhiten(self, columns: Array) -> Array:
        """``R⁻¹ @ columns``."""
        self.restore()
        return self._loss.workspace.half_solve(columns, transposed=False)

    def inverse_diagonal(self) -> Array:
        """``diag(A⁻¹)``; overwrites the factor."""
        self.restore()
        self.release()
        return self._loss.workspace.inverse_diagonal()

    def inverse(self) -> Array:
        """``A⁻¹``, overwriting the factor: valid until the loss is evaluated again."""
        self.restore()
        self.release()
        return self._loss.workspace.inverse()

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


def reciprocal_curvature(hessian: Array, value: float, gains: Array) -> Array:
    """The Hessian of F for one output, changed in place to that of a quadratic model of 1/F.

    For one output ``1/F(β) = min {uᵀA(β)u : hᵀu = 1}`` is a minimum of functions linear in
    β: concave, and linear where a single direction of the kernels matters, while F itself is
    like a hyperbola. A step that maximises the quadratic model of 1/F minimises
    ``−g·d + ½ dᵀ(∇²F − (2/F) g gᵀ)d``: same gradient, better curvature.
    """
    hessian -= (2.0 / value) * np.outer(gains, gains)
    return nearly_definite(hessian)
