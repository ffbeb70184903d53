"""Leaving samples out of a square loss on features, where the features of some of them are known.

The sums G and R of :mod:`.features` hold all m samples; S are some of them, with features Z_S and
targets H_S, and what the other samples add is

    G_o = G − Z_SᵀZ_S,   R_o = R − Z_SᵀH_S

The others act on S like a prior: by block elimination of ``A = I + ZBZᵀ/λ``, with
``C = S(λI + SG_oS)⁻¹S`` (here S is diag(√β)),

    (A⁻¹)_SS = Ã⁻¹,   Ã = I + Z_S C Z_Sᵀ
    U_S      = Ã⁻¹(H_S − Z_S C R_o)
    (A⁻¹Z)_S = Ã⁻¹ Z_S (I − C G_o)

which is all that the formulas of :mod:`.left_out` take. Ã is never nearer to singular than the
identity, so nothing is lost where the features almost interpolate the samples. If S has all
samples, G_o = 0, ``C = B/λ`` and Ã = A.

Small groups of samples that are left out with the kernel weights held need few entries of A⁻¹,
which the factor of ``λI + SGS`` gives without a matrix of the samples (:class:`SingleRows`).
"""

from __future__ import annotations

import numpy as np

from .._blas import matmul
from .base import Array, Indices
from .features import FeatureEvaluation
from .left_out import LeavesOut
from .square import LARGE_DIAGONAL
from .workspace import Workspace


class SingleRows(LeavesOut):
    """Samples of a square loss on features, left out by groups with the kernel weights held.

    Parameters
    ----------
    evaluation : FeatureEvaluation
    features : ndarray of shape (n_rows, D)
        Centred and scaled as those of the loss, without sample weights.
    targets : ndarray of shape (n_rows, c)
        Rows of H.
    sample_weight : ndarray of shape (n_rows,)
    total_weight : float
        Of all samples of the loss.
    """

    def __init__(
        self,
        evaluation: FeatureEvaluation,
        features: Array,
        targets: Array,
        sample_weight: Array,
        total_weight: float,
    ) -> None:
        self.evaluation = evaluation
        self.weights, self.gains = evaluation.weights, evaluation.gains
        self._given = targets, sample_weight, total_weight
        roots = np.sqrt(sample_weight)[:, None]
        self._rows = features * roots
        self._rotated = (targets * roots) @ evaluation.loss.rotation
        self.constant = 1.0
        self._solution = self._rotated - matmul(self._rows, evaluation.solution)

    @property
    def _targets(self) -> Array:
        return self._given[0]

    @property
    def _rotation(self) -> Array:
        return self.evaluation.loss.rotation

    @property
    def _sample_weight(self) -> Array:
        return self._given[1]

    @property
    def _total_weight(self) -> float:
        return self._given[2]

    def inverse_diagonal(self) -> Array:
        half = self.evaluation.influence_roots(self._rows)
        diagonal: Array = 1.0 - np.einsum("ai,ai->i", half, half)
        return diagonal

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        half = self.evaluation.influence_roots(self._rows)
        intercept = np.sqrt(self._intercept_share())
        blocks = []
        for rows in sets:
            members, shares = half[:, rows], intercept[rows]
            influence = np.einsum("agi,agj->gij", members, members)
            blocks.append(
                np.eye(rows.shape[1]) - influence - shares[:, :, None] * shares[:, None, :]
            )
        return blocks

    def inverse(self) -> Array:
        raise NotImplementedError("The inverse among all rows is that of KnownRows.")

    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        raise NotImplementedError("The kernel weights are held; those of KnownRows respond.")


class KnownRows(SingleRows):
    """Samples of a square loss on features that can be left out in folds; weights may respond."""

    def __init__(
        self,
        evaluation: FeatureEvaluation,
        features: Array,
        targets: Array,
        sample_weight: Array,
        total_weight: float,
    ) -> None:
        super().__init__(evaluation, features, targets, sample_weight, total_weight)
        loss, roots = evaluation.loss, np.sqrt(sample_weight)[:, None]
        # Of sums over all samples nothing may be left but rounding errors, which λ would magnify.
        self._complete = len(features) == loss.sums.n_samples
        self._gram_of_others = np.zeros_like(loss.sums.gram)
        cross_of_others = np.zeros_like(loss.cross)
        if not self._complete:
            self._gram_of_others = loss.sums.gram - self._rows.T @ self._rows
            cross_of_others = loss.cross - self._rows.T @ self._rotated
        self._half = np.sqrt(loss.spread(self.weights))
        self._prior = Workspace(len(loss.sums.gram))
        np.multiply(self._gram_of_others * self._half, self._half.T, out=self._prior.matrix)
        self._prior.diagonal[:] += loss.reg
        if not self._prior.cholesky():
            raise ValueError(
                f"reg={loss.reg:g} is lost in the rounding errors of {loss.sums.n_samples} "
                "samples: raise reg."
            )
        # P with PᵀP = Z_S C Z_Sᵀ.
        self._images = self._whitened(self._rows.T)
        self._workspace = Workspace(len(features))
        self.constant = self._factorize(total_weight, roots)
        expected = self._images.T @ self._whitened(cross_of_others)
        self._solution = self._workspace.solve(np.asfortranarray(self._rotated - expected))

    def _whitened(self, columns: Array) -> Array:
        """``R⁻ᵀS @ columns`` with ``RᵀR = λI + SG_oS``."""
        return self._prior.half_solve(np.asfortranarray(self._half * columns))

    def _factorize(self, total_weight: float, roots: Array) -> float:
        """Put the factor of Ã into the workspace; the eigenvalue of A at the constant vector.

        It is lifted where it can be, and for the reason, that :class:`.SquareLoss` has.
        """
        np.matmul(self._images.T, self._images, out=self._workspace.matrix)
        size = float(self._workspace.diagonal.mean())
        lift = size if self._complete and size > LARGE_DIAGONAL else 0.0
        if lift:
            self._workspace.matrix[...] += (lift / total_weight) * (roots @ roots.T)
        self._workspace.diagonal[:] += 1.0
        self._workspace.cholesky()
        return 1.0 + lift

    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        loss, left = self.evaluation.loss, self.evaluation.left
        blocks, width = loss.sums.blocks(), left.shape[1]
        slopes = np.empty((len(self._rows), width, len(kernels)))
        for place, j in enumerate(kernels):
            block = blocks[j]
            images = self._rows[:, block] @ left[block]
            if not self._complete:
                seen = self._whitened(self._gram_of_others[:, block] @ left[block])
                images -= self._images.T @ seen
            slopes[:, :, place] = self._workspace.solve(np.asfortranarray(images)) / loss.reg
        return slopes, self.evaluation.hessian()[np.ix_(kernels, kernels)]

    def inverse_diagonal(self) -> Array:
        return self._workspace.inverse_diagonal()

    def inverse(self) -> Array:
        return self._workspace.inverse()

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        return LeavesOut._blocks(self, sets)
