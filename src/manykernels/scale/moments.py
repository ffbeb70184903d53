"""Sums over samples that are all a square loss on features needs of them.

With features z, a constant and targets t (class indicators, or numbers), the *moments* of samples
with weights w are one symmetric matrix,

    M = Σ_i w_i a_i a_iᵀ ,   a = (z − z₀, 1, t)

Moments of parts add up to those of the whole, in any order. So a pass over blocks of rows needs
the memory of M, whatever the number of rows; parts are summed by different processes; and the
moments of all samples but a fold are the sum of the other folds.

The origin z₀, the mean feature of a sample of the rows, changes no result. It keeps M from being
large where features have a large mean in common, whose square would hide the differences between
samples in rounding errors when M is centred:

    G = M_zz − M_z1 M_1z / M_11 ,   and the same for the cross products with targets
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import blas

from .._rounding import ACCUMULATED
from ..losses import FeatureSums


@dataclass
class Moments:
    """M of some samples, and how many they are.

    Attributes
    ----------
    matrix : ndarray of shape (D + 1 + q, D + 1 + q)
    n_features : int
        D.
    n_rows : int
        How many rows were added.
    count : float
        How many samples they stand for: the sum of their sample weights before those of classes.
    """

    matrix: np.ndarray
    n_features: int
    n_rows: int = 0
    count: float = 0.0

    @classmethod
    def none(cls, n_features: int, n_targets: int) -> Self:
        """Those of no samples."""
        size = n_features + 1 + n_targets
        return cls(np.zeros((size, size)), n_features)

    @property
    def n_targets(self) -> int:
        return len(self.matrix) - self.n_features - 1

    def add(self, rows: np.ndarray, count: float | None = None) -> None:
        """Add samples a√w, one in every column of the array `rows`."""
        # By NumPy, which computes half of a product with the transpose and copies the rest, and
        # lets other threads run meanwhile; SciPy's BLAS does not.
        self.matrix += rows @ rows.T
        self.n_rows += rows.shape[1]
        self.count += rows.shape[1] if count is None else count

    def __add__(self, other: Moments) -> Moments:
        matrix, n_rows = self.matrix + other.matrix, self.n_rows + other.n_rows
        return Moments(matrix, self.n_features, n_rows, self.count + other.count)

    def with_targets_at(self, places: np.ndarray, n_targets: int) -> Moments:
        """With more targets, zero for all samples so far; the old ones are at `places`."""
        D = self.n_features
        kept = np.concatenate([np.arange(D + 1), D + 1 + places])
        whole = np.zeros((D + 1 + n_targets, D + 1 + n_targets))
        whole[np.ix_(kept, kept)] = self.matrix
        return Moments(whole, D, self.n_rows, self.count)

    def of_targets(self, places: np.ndarray) -> Moments:
        """Those of some of the targets."""
        D = self.n_features
        kept = np.concatenate([np.arange(D + 1), D + 1 + places])
        return Moments(self.matrix[np.ix_(kept, kept)], D, self.n_rows, self.count)

    def target_sums(self) -> np.ndarray:
        """Weighted sums of the targets: the masses of classes, if these are indicators."""
        return self.matrix[self.n_features, self.n_features + 1 :].copy()

    def centred(self) -> CentredMoments:
        """Centred by the means of these samples."""
        D, whole = self.n_features, self.matrix
        weight = float(whole[D, D])
        means = whole[D] / weight
        features, targets = means[:D], means[D + 1 :]
        gram = whole[:D, :D].copy()
        uncentred = np.diagonal(gram).copy()
        blas.dger(-weight, features, features, a=gram.T, overwrite_a=1)
        cross = whole[:D, D + 1 :] - weight * np.outer(features, targets)
        total = whole[D + 1 :, D + 1 :] - weight * np.outer(targets, targets)
        return CentredMoments(
            gram, cross, total, features, targets, weight, uncentred, self.n_rows, self.count
        )


@dataclass(frozen=True)
class CentredMoments:
    """Second moments of features and targets about their means.

    `gram` (D, D), `cross` (D, q) and `total` (q, q) are sums over samples; `mean` (D,), from the
    origin, and `target_mean` (q,) are the means. `uncentred` (D,) is the diagonal of `gram` before
    centring, which tells the size of its rounding errors.
    """

    gram: np.ndarray
    cross: np.ndarray
    total: np.ndarray
    mean: np.ndarray
    target_mean: np.ndarray
    weight: float
    uncentred: np.ndarray
    n_rows: int
    count: float

    def scales(self, kernel_of: np.ndarray, n_kernels: int, normalize: str | None) -> np.ndarray:
        """The factor of every kernel: one over its variance, or over its trace, or one.

        Kernels without variance, up to rounding errors, have the factor zero.
        """
        trace = np.bincount(kernel_of, np.diagonal(self.gram), minlength=n_kernels)
        rounding = ACCUMULATED * np.bincount(kernel_of, self.uncentred, minlength=n_kernels)
        varies = trace > rounding
        units = {"multiplicative": self.weight, "trace": 1.0}
        if normalize not in units:
            return varies.astype(float)
        return np.divide(units[normalize], trace, np.zeros(n_kernels), where=varies)

    def sums(self, kernel_of: np.ndarray, scales: np.ndarray, turn: np.ndarray) -> FeatureSums:
        """Those of the scaled features, and of the targets ``t @ turn``."""
        factors = np.sqrt(scales)[kernel_of][:, None]
        gram = self.gram * factors
        gram *= factors.T
        return FeatureSums(
            gram,
            factors * (self.cross @ turn),
            turn.T @ self.total @ turn,
            kernel_of,
            len(scales),
            self.n_rows,
        )
