"""Outputs of left-out samples for the square loss in closed form, with the response of weights.

For the square loss, the model learnt without a set S of samples is also the model learnt from all
samples with the targets in S replaced by its own predictions there: the terms of S are then zero,
which is their minimum. This requires the change of the solution U = A⁻¹H, whose rows are the
residuals H − f, with the targets. To first order

    dU = Q dH − M Mᵀ dH ,   Q = A⁻¹ − 11ᵀ/(ma)                                          (1)

The first term is exact for given kernel weights; the second part of Q is due to the intercept, a
being the eigenvalue of A at the constant vector 1. The second term is the response of the weights:
the derivative of the outputs f by β_j is ``B_j = A⁻¹K_jU/λ``, the minimiser over the domain moves
with the targets by ``dβ = 2P Bᵀ dH``, and ``M = B(2P)^½``
(:func:`manykernels.solvers.path.weight_response`). The residuals R = h_S − f_S of the samples
left out are those for which replacing h_S by h_S − R leaves no residual in S:

    R_S = (Q_SS − M_S M_Sᵀ)⁻¹ U_S                                                       (2)

For one sample and M = 0 this is the leave-one-out formula of ridge regression, ``u_i/κ_i`` with
``κ_i = Q_ii``. With M it is one Newton step towards the model whose weights are learnt without the
sample too. Without M the weights were learnt from its label: with 200 kernels of pure noise at
p = 1, they seem to predict 96 % of the left-out labels.

With sample weights, the rows of H, U and M are multiplied by √w (:mod:`.square`). A sample of any
weight is left out entirely, and samples of one group are left out together: S is the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import blas

from ..utils.numerics import ACCUMULATED, ROUNDING
from .base import Array, Indices

# Smallest eigenvalue of ``I − MMᵀ/κ``: the response of the weights multiplies residuals by a
# thousand at most. Where that matrix is nearly singular, the first-order formula is not valid.
_LEAST_EIGENVALUE = 1e-3


@dataclass(frozen=True)
class FoldOutputs:
    """Outputs of the rows `fold`, left out together, from the model of the rows `others`.

    In `outputs_of_others` each of the others is also left out in turn, from the model without the
    fold: a decision rule learnt from these outputs has not seen the fold either.
    """

    fold: Indices
    outputs: Array
    others: Indices
    outputs_of_others: Array

    def turned(self, rotation: Array) -> FoldOutputs:
        """Return the outputs with columns ``outputs @ rotation``."""
        outputs, of_others = self.outputs @ rotation, self.outputs_of_others @ rotation
        return replace(self, outputs=outputs, outputs_of_others=of_others)


@dataclass(frozen=True)
class LeftOut:
    """Outputs at left-out samples.

    `singly` (m, k) has the output of every sample from the model without it and its group.
    """

    singly: Array
    folds: list[FoldOutputs]

    def turned(self, rotation: Array) -> LeftOut:
        """Return the outputs with columns ``outputs @ rotation``."""
        return LeftOut(self.singly @ rotation, [fold.turned(rotation) for fold in self.folds])

    @classmethod
    def cross_fitted(cls, singly: Array, folds: list[Indices]) -> LeftOut:
        """Return the outputs of samples left out singly, also used for the folds.

        An approximation where leaving out whole folds is too expensive: the outputs of the others
        are not independent of the fold, because their models have seen it.
        """
        every = np.arange(len(singly))
        parts = []
        for fold in folds:
            others = np.delete(every, fold)
            parts.append(FoldOutputs(fold, singly[fold], others, singly[others]))
        return cls(singly, parts)


def residuals_left_out(
    blocks: Array, solution: Array, response: Array | None, least: float
) -> Array:
    """Return ``(Q_SS − M_S M_Sᵀ)⁻¹ U_S`` of several sets S of equal size s: (2), (g, s, k).

    `blocks` are Q_SS, (g, s, s), `solution` U_S, (g, s, k), and `response` M_S, (g, s, k, n);
    without it the weights are fixed. Eigenvalues of blocks below `least`, their rounding error,
    are raised to it.
    """
    root = _inverse_roots(blocks, least)
    # Products of 1×1 matrices take longer one by one.
    half = root * solution if root.shape[-1] == 1 else root.mT @ solution
    if response is not None:
        half = _responding(half, np.einsum("gst,gskn->gtkn", root, response))
    return root * half if root.shape[-1] == 1 else root @ half


def remove(
    inverse: Array, solution: Array, response: Array | None, removed: Indices, least: float
) -> tuple[Array, Array, Array]:
    """Leave the samples S = `removed` out together.

    `inverse` is Q, `solution` and `response` are U and M; eigenvalues below `least` are raised to
    it. Returns the residuals R_S; and for the model without S, weights fixed, its U and N, with
    which its Q is ``Q − NᵀN``. (In the rows of S they are zero up to rounding.)
    """
    members = inverse[removed]  # rows first: they are contiguous
    root = _inverse_roots(members[:, removed], least)
    half = root.T @ solution[removed]
    across = root.T @ members
    left = solution - across.T @ half
    if response is not None:
        shape = (len(removed), *response.shape[1:])
        moves = (root.T @ response[removed].reshape(len(removed), -1)).reshape(shape)
        half = _responding(half[None], moves[None])[0]
    return root @ half, left, across


def _squares(across: Array, sets: Indices) -> Array:
    """Return ``(NᵀN)_SS`` of several sets S of equal size s, with N = `across`, (g, s, s)."""
    if sets.shape[1] == 1:
        squares: Array = np.einsum("ai,ai->i", across, across)
        return squares[sets][:, :, None]
    members = across[:, sets]
    products: Array = np.einsum("agi,agj->gij", members, members)
    return products


def _inverse_roots(blocks: Array, least: float) -> Array:
    """Return square roots R of ``Q_SS⁻¹ = RRᵀ``.

    Q_SS is positive definite in exact arithmetic; eigenvalues below the rounding error of the
    factorisation are raised to it.
    """
    if blocks.shape[-1] == 1:
        return 1.0 / np.sqrt(np.maximum(blocks, least))
    values, basis = np.linalg.eigh(blocks)
    roots: Array = basis / np.sqrt(np.maximum(values, least))[..., None, :]
    return roots


def _responding(half: Array, moves: Array) -> Array:
    """Return ``(I − NNᵀ)⁻¹ half`` with N = `moves`, (g, s, k, n): the response of the weights."""
    flat, moves = half.reshape(len(half), -1), moves.reshape(len(half), -1, moves.shape[-1])
    if moves.shape[1] <= moves.shape[2]:
        return _amplified(moves @ moves.mT, flat).reshape(half.shape)
    # Computed with n × n matrices: (I − NNᵀ)⁻¹ = I + N(I − NᵀN)⁻¹Nᵀ.
    inner = _amplified(moves.mT @ moves, np.einsum("gan,ga->gn", moves, flat))
    amplified: Array = flat + np.einsum("gan,gn->ga", moves, inner)
    return amplified.reshape(half.shape)


def _amplified(shares: Array, vectors: Array) -> Array:
    """Return ``(I − shares)⁻¹ vectors`` for symmetric matrices with eigenvalues in [0, 1)."""
    values, basis = np.linalg.eigh(shares)
    left = np.maximum(1.0 - values, _LEAST_EIGENVALUE)
    amplified: Array = np.einsum(
        "mij,mj->mi", basis, np.einsum("mij,mi->mj", basis, vectors) / left
    )
    return amplified


class LeavesOut(ABC):
    """Fitted square loss from which some of its samples, the known rows, can be left out.

    The known rows may be all samples or some of them: the formulas need Q and U among the rows
    left out, and the other samples only through these and the means.

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
        """Targets of the known rows, (m, c)."""

    @property
    @abstractmethod
    def _rotation(self) -> Array:
        """Matrix from the columns of H to those of U, (c, k)."""

    @property
    @abstractmethod
    def _sample_weight(self) -> Array:
        """Weights w of the known rows, (m,)."""

    @property
    @abstractmethod
    def _total_weight(self) -> float:
        """Sum of w over all samples."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """Return ``diag(A⁻¹)`` of the known rows; may overwrite the factor."""

    @abstractmethod
    def inverse(self) -> Array:
        """Return ``A⁻¹`` among the known rows; may overwrite the factor."""

    @property
    def factorized(self) -> bool:
        """Whether A can be factorised: False if it is too large."""
        return True

    @abstractmethod
    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        """Return the slopes ``B_j = A⁻¹K_jU/λ`` of the outputs (m, k, n), and ``∇²F``."""

    def leave_one_out(
        self,
        groups: Indices | None = None,
        *,
        from_mean: bool = False,
        response: Array | None = None,
    ) -> Array:
        """Return outputs ``f(x_i)`` of the model trained without sample i and its group, (m, c).

        Overwrites the factor.

        Parameters
        ----------
        groups : ndarray of int, (m,), optional
            Groups of samples that are left out together; by default each sample alone.
        from_mean : bool, default=False
            Subtract the mean target of the remaining samples, which is further from the target of
            the left-out sample than the mean of all. If there is little to learn, outputs would
            reflect that mean alone, and rank the samples of each class on the wrong side.
        response : ndarray of shape (m, k, n), optional
            Response of the kernel weights, M of :mod:`.left_out`; by default they are fixed.
        """
        sets = sets_of_groups(groups, len(self._solution))
        if len(sets) == 1 and sets[0].shape[1] == 1:
            blocks = [self._kappa(self.inverse_diagonal())[:, None, None]]
        else:
            blocks = self._blocks(sets)
        return self._each_left_out(sets, blocks, self._solution, response, from_mean)

    def leave_out(
        self, folds: list[Indices], groups: Indices | None, response: Array | None
    ) -> LeftOut:
        """Return outputs of samples left out singly and by folds, minus the remaining mean target.

        Overwrites the factor. `folds` are disjoint sets of rows, which contain whole groups;
        `groups` and `response` are as for :meth:`leave_one_out`.
        """
        if not folds:
            singly = self.leave_one_out(groups, from_mean=True, response=response)
            return LeftOut(singly, [])
        inverse = self.inverse()
        least = ACCUMULATED * float(np.diagonal(inverse).max())
        self._take_away_intercept(inverse)
        sets = sets_of_groups(groups, len(inverse))
        blocks = [inverse[rows[:, :, None], rows[:, None, :]] for rows in sets]
        singly = self._each_left_out(sets, blocks, self._solution, response, True)
        parts = []
        for fold in folds:
            residuals, solution, across = remove(inverse, self._solution, response, fold, least)
            outputs = self._outputs_left_out(residuals, fold)
            outputs = self._from_mean(outputs, self._mean_without_all(fold))
            remains = np.ones(len(inverse), dtype=bool)
            remains[fold] = False
            kept = [remains[rows].all(axis=1) for rows in sets]
            sets_left = [rows[keep] for rows, keep in zip(sets, kept, strict=True)]
            blocks_left = [
                block[keep] - _squares(across, rows)
                for block, rows, keep in zip(blocks, sets_left, kept, strict=True)
            ]
            of_others = self._each_left_out(
                sets_left, blocks_left, solution, None, True, removed=fold, least=least
            )
            others = np.flatnonzero(remains)
            parts.append(FoldOutputs(fold, outputs, others, of_others[others]))
        return LeftOut(singly, parts)

    def leave_folds_out(self, folds: list[Indices], response: Array | None) -> list[Array]:
        """Return the outputs of every fold from the other samples; overwrites the factor.

        `folds` and `response` are as for :meth:`leave_out`.
        """
        inverse = self.inverse()
        self._take_away_intercept(inverse)
        least = ACCUMULATED * float(np.diagonal(inverse).max())
        residuals = [remove(inverse, self._solution, response, fold, least)[0] for fold in folds]
        return [
            self._outputs_left_out(values, fold)
            for values, fold in zip(residuals, folds, strict=True)
        ]

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        """Return Q among the members of every set, (g, s, s); overwrites the factor."""
        inverse = self.inverse()
        self._take_away_intercept(inverse)
        return [inverse[rows[:, :, None], rows[:, None, :]] for rows in sets]

    def _each_left_out(
        self,
        sets: list[Indices],
        blocks: list[Array],
        solution: Array,
        response: Array | None,
        from_mean: bool,
        removed: Indices | None = None,
        least: float | None = None,
    ) -> Array:
        """Return outputs of all sets of rows, each left out in turn, (m, c).

        The model is that of all samples but those `removed`, `solution` its U, and `blocks` its
        Q among the members of every set. Outputs of rows in no set are zero.
        """
        least = ACCUMULATED / self.constant if least is None else least
        outputs = np.zeros((len(self._solution), self._rotation.shape[0]))
        for rows, block in zip(sets, blocks, strict=True):
            if not len(rows):
                continue
            moves = None if response is None else response[rows]
            residuals = residuals_left_out(block, solution[rows], moves, least)
            flat = rows.ravel()
            values = self._outputs_left_out(residuals.reshape(len(flat), -1), flat)
            if from_mean:
                means = self._mean_without_each(rows, removed)
                values = self._from_mean(values, np.repeat(means, rows.shape[1], axis=0))
            outputs[flat] = values
        return outputs

    def _kappa(self, inverse_diagonal: Array) -> Array:
        """Return ``κ_i = A⁻¹_ii − 1/(ma)``, made positive in spite of rounding."""
        return np.maximum(inverse_diagonal - self._intercept_share(), ACCUMULATED / self.constant)

    def _intercept_share(self) -> Array:
        """Return the diagonal of ``11ᵀ/(ma)``, the term of the intercept in Q."""
        share: Array = self._sample_weight / (self._total_weight * self.constant)
        return share

    def _take_away_intercept(self, inverse: Array) -> None:
        """Turn A⁻¹ into Q of :mod:`.left_out`, in place."""
        intercept = np.sqrt(self._intercept_share())
        # The transpose of a C-ordered symmetric matrix is that matrix in the order of BLAS.
        blas.dger(-1.0, intercept, intercept, a=inverse.T, overwrite_a=1)

    def _outputs_left_out(self, residuals: Array, rows: Indices) -> Array:
        """Return outputs in the columns of H, from residuals of rotated columns times √w."""
        roots = np.sqrt(self._sample_weight[rows])[:, None]
        return self._targets[rows] - (residuals @ self._rotation.T) / roots

    def _from_mean(self, outputs: Array, means: Array) -> Array:
        """Return outputs minus the mean target of the remaining samples; rounding errors are zero.

        Rounding errors depend on the targets: a rule learnt from them would reveal the classes of
        samples whose kernels are constant.
        """
        values = outputs - means
        size = np.abs(self._targets).max(axis=0)
        return np.where(np.abs(values) > ROUNDING * size, values, 0.0)

    def _mean_without_each(self, sets: Indices, removed: Indices | None) -> Array:
        """Return the mean target of the samples without each of some sets, (g, c).

        Samples that are not among the known rows remain.
        """
        gone = np.empty(0, dtype=np.intp) if removed is None else removed
        total, mass = self._left_without(gone)
        weight = self._sample_weight[sets]
        sums = np.einsum("gs,gsc->gc", weight, self._targets[sets])
        means: Array = (total - sums) / (mass - weight.sum(axis=1))[:, None]
        return means

    def _mean_without_all(self, rows: Indices) -> Array:
        """Return the mean target of all samples except `rows`."""
        total, mass = self._left_without(rows)
        return total / mass

    def _left_without(self, rows: Indices) -> tuple[Array, float]:
        """Return the weighted target sum of all samples except `rows`, and their total weight.

        The sum over all samples is zero.
        """
        weight = self._sample_weight[rows]
        total: Array = -(weight @ self._targets[rows])
        return total, self._total_weight - float(weight.sum())


def sets_of_groups(groups: Indices | None, n_rows: int) -> list[Indices]:
    """Return the rows of the groups, groups of equal size in one array, (g, s)."""
    if groups is None:
        return [np.arange(n_rows)[:, None]]
    number = np.unique(groups, return_inverse=True)[1]
    order, sizes = np.argsort(number, kind="stable"), np.bincount(number)
    starts = np.cumsum(sizes) - sizes
    return [order[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes)]
