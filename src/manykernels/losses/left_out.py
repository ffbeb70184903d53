"""Outputs of left-out samples for the square loss, in closed form, with the response of weights.

For the square loss, the model learnt without a set S of samples is also the model learnt from all
samples with the targets in S replaced by its own predictions there: the terms of S are then zero,
which is their minimum. So we need how the solution U = A⁻¹H, whose rows are the residuals H − f,
changes with the targets. To first order

    dU = Q dH − M Mᵀ dH ,   Q = A⁻¹ − 11ᵀ/(ma)                                          (1)

The first term is exact for given kernel weights; the second part of Q is due to the intercept, a
being the eigenvalue of A at the constant vector 1. The second term is the response of the weights:
the derivative of the outputs f by β_j is ``B_j = A⁻¹K_jU/λ``, the minimiser over the domain moves
with the targets by ``dβ = 2P Bᵀ dH``, and ``M = B(2P)^½``
(:func:`manykernels.solvers.response.weight_response`). The residuals R = h_S − f_S of the samples
left out are those for which replacing h_S by h_S − R leaves no residual in S:

    R_S = (Q_SS − M_S M_Sᵀ)⁻¹ U_S                                                       (2)

For one sample and M = 0 this is the leave-one-out formula of ridge regression, ``u_i/κ_i`` with
``κ_i = Q_ii``. With M it is one Newton step towards the model whose weights are learnt without the
sample too. Without M the weights were learnt from its label: with 200 kernels of pure noise at
p = 1, they seem to predict 96 % of the left-out labels.

With sample weights, the rows of H, U and M are multiplied by √w (:mod:`.square`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from .._rounding import ACCUMULATED
from .base import Array, Indices

# Least eigenvalue of ``I − MMᵀ/κ``: the response of the weights multiplies residuals by a thousand
# at most. Where that matrix is nearly singular, the first-order formula is not valid.
_LEAST_EIGENVALUE = 1e-3


@dataclass(frozen=True)
class FoldOutputs:
    """Outputs of the rows `fold`, left out together, by the model of the rows `others`.

    In `outputs_of_others` each of the others is also left out in turn, from the model without the
    fold: a decision rule learnt from these outputs has not seen the fold either.
    """

    fold: Indices
    outputs: Array
    others: Indices
    outputs_of_others: Array

    def turned(self, rotation: Array) -> FoldOutputs:
        """The same with columns ``outputs @ rotation``."""
        outputs, of_others = self.outputs @ rotation, self.outputs_of_others @ rotation
        return replace(self, outputs=outputs, outputs_of_others=of_others)


@dataclass(frozen=True)
class LeftOut:
    """Outputs at samples that the model has not seen.

    `singly` (m, k) has the output of every sample by the model of all others.
    """

    singly: Array
    folds: list[FoldOutputs]

    def turned(self, rotation: Array) -> LeftOut:
        """The same with columns ``outputs @ rotation``."""
        return LeftOut(self.singly @ rotation, [part.turned(rotation) for part in self.folds])

    @classmethod
    def cross_fitted(cls, singly: Array, folds: list[Indices]) -> LeftOut:
        """Outputs of samples left out singly, also used for the folds.

        An approximation where leaving out whole folds is too expensive: the outputs of the others
        are not independent of the fold, because their models have seen it.
        """
        every = np.arange(len(singly))
        parts = []
        for fold in folds:
            others = np.delete(every, fold)
            parts.append(FoldOutputs(fold, singly[fold], others, singly[others]))
        return cls(singly, parts)


def left_out_singly(solution: Array, kappa: Array, response: Array | None) -> Array:
    """Rows ``(κ_i I − M_iM_iᵀ)⁻¹ u_i``: (2) for every sample by itself, (m, k).

    `solution` is U, `kappa` the diagonal of Q, and `response` M of shape (m, k, n); without it
    the weights are held.
    """
    residuals: Array = solution / kappa[:, None]
    if response is None:
        return residuals
    scaled = response / np.sqrt(kappa)[:, None, None]
    if scaled.shape[1] <= scaled.shape[2]:
        return _amplified(scaled @ scaled.mT, residuals)
    # The same by way of n × n matrices: (I − NNᵀ)⁻¹ = I + N(I − NᵀN)⁻¹Nᵀ.
    inner = _amplified(scaled.mT @ scaled, np.einsum("mkn,mk->mn", scaled, residuals))
    residuals += np.einsum("mkn,mn->mk", scaled, inner)
    return residuals


def remove(
    inverse: Array, solution: Array, response: Array | None, removed: Indices
) -> tuple[Array, Indices, Array, Array]:
    """Leave the samples S = `removed` out together.

    `inverse` is Q, `solution` and `response` are U and M. Returns the residuals R_S, the rows that
    stay, and for these the U and the diagonal of the Q of the model without S, weights held.
    """
    rows = np.delete(np.arange(len(solution)), removed)
    # Q_SS⁻¹ = root rootᵀ. Q_SS is positive definite in exact arithmetic; eigenvalues below the
    # rounding error of the factorisation are raised to it.
    least = ACCUMULATED * float(np.diagonal(inverse).max())
    values, basis = np.linalg.eigh(inverse[np.ix_(removed, removed)])
    root = basis / np.sqrt(np.maximum(values, least))
    across = root.T @ inverse[np.ix_(removed, rows)]
    half = root.T @ solution[removed]
    left = solution[rows] - across.T @ half
    kappa = inverse[rows, rows] - np.einsum("st,st->t", across, across)
    if response is not None:
        size, n_weights = len(removed), response.shape[2]
        moves = (root.T @ response[removed].reshape(size, -1)).reshape(-1, n_weights)
        change = _amplified((moves.T @ moves)[None], (moves.T @ half.reshape(-1))[None])[0]
        half = half + (moves @ change).reshape(half.shape)
    return root @ half, rows, left, np.maximum(kappa, least)


def _amplified(shares: Array, vectors: Array) -> Array:
    """``(I − shares)⁻¹ vectors`` by row, for symmetric matrices with eigenvalues in [0, 1)."""
    values, basis = np.linalg.eigh(shares)
    left = np.maximum(1.0 - values, _LEAST_EIGENVALUE)
    amplified: Array = np.einsum(
        "mij,mj->mi", basis, np.einsum("mij,mi->mj", basis, vectors) / left
    )
    return amplified


class LeavesOut(ABC):
    """A fitted square loss from which some of its samples, the known rows, can be left out.

    Known may be all samples or some of them: the formulas need Q and U among the rows that are
    left out, and of the other samples only what is in these and in the means.

    Attributes
    ----------
    weights, gains : ndarray of shape (n_kernels,)
    constant : float
        a, the eigenvalue of A at the constant vector.
    """

    weights: Array
    gains: Array
    constant: float
    #: U of the known rows, in rotated columns, times √w, (m, k).
    _solution: Array

    @property
    @abstractmethod
    def _targets(self) -> Array:
        """Rows of H, (m, c)."""

    @property
    @abstractmethod
    def _rotation(self) -> Array:
        """From columns of H to those of U, (c, k)."""

    @property
    @abstractmethod
    def _sample_weight(self) -> Array:
        """w of the known rows, (m,)."""

    @property
    @abstractmethod
    def _total_weight(self) -> float:
        """Sum of w over all samples."""

    @property
    @abstractmethod
    def _ridge(self) -> float:
        """r, the coefficient of I in A."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """``diag(A⁻¹)`` of the known rows; may overwrite the factor."""

    @abstractmethod
    def inverse(self) -> Array:
        """``A⁻¹`` among the known rows; may overwrite the factor."""

    @property
    def factorized(self) -> bool:
        """Whether A can be factorised: False where it would be too large."""
        return True

    @abstractmethod
    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        """Slopes ``B_j = A⁻¹K_jU/λ`` of the outputs (m, k, n), and ``∇²F`` of these kernels."""

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
        kappa = kappa + (count[rows] - 1.0) / self._ridge
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
        share: Array = self._sample_weight / (self._total_weight * self.constant)
        return share

    def _take_away_intercept(self, inverse: Array) -> None:
        """Q of :mod:`.left_out` from A⁻¹, in its place."""
        intercept = np.sqrt(self._intercept_share())
        inverse -= intercept[:, None] * intercept

    def _outputs_left_out(
        self, residuals: Array, rows: Indices, count: Array | float = 1.0
    ) -> Array:
        """Outputs in the columns of H, from residuals of rotated columns times √w."""
        scale = count / np.sqrt(self._sample_weight[rows])
        residuals = (residuals @ self._rotation.T) * scale[:, None]
        return self._targets[rows] - residuals

    def _mean_without_each(self, rows: Indices, count: Array) -> Array:
        """Mean target of all samples that are left in with `rows`, but one of a row, for each row.

        Samples that are not among the rows of `_solution` are left in.
        """
        weight, targets = self._sample_weight[rows], self._targets[rows]
        removed = np.delete(np.arange(len(self._solution)), rows)
        unit = (weight / count[rows])[:, None]
        total, mass = self._left_without(removed)
        means: Array = (total - unit * targets) / (mass - unit)
        return means

    def _mean_without_all(self, rows: Indices) -> Array:
        """Mean target of all samples but `rows`."""
        total, mass = self._left_without(rows)
        return total / mass

    def _left_without(self, rows: Indices) -> tuple[Array, float]:
        """Weighted sum of the targets of all samples but `rows`, and their total weight.

        The sum over all samples is zero.
        """
        weight = self._sample_weight[rows]
        total: Array = -(weight @ self._targets[rows])
        return total, self._total_weight - float(weight.sum())
