"""Choosing landmarks: the rows that :class:`~manykernels.scale.Nystrom` compares others with.

A selector chooses from a sample of the rows, of some thousand at most. Those that look at the
data do so in the feature space of the mean of all kernels, each divided by its variance, so that
they take any kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator

from .._sklearn import Interval, num_samples, safe_indexing
from ..kernels import KernelUnion
from ..kernels.transforms import Multiplicative

#: Landmarks, and their numbers among the rows that they were chosen from.
Chosen = tuple[Any, np.ndarray]
# Rows that are looked at: kernel matrices of as many have to be computed.
_MOST_ROWS = 2000


class LandmarkSelector(BaseEstimator, ABC):
    """Chooses landmarks from a sample of rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @abstractmethod
    def choose(self, union: KernelUnion, sample: Any, n_landmarks: int, seed: int) -> Chosen:
        """A table of `n_landmarks` rows of `sample`, chosen for fitted kernels, and their numbers.

        There are no numbers of landmarks that come from elsewhere.
        """


class Uniform(LandmarkSelector):
    """Rows drawn at random, all with the same probability."""

    def choose(self, union: KernelUnion, sample: Any, n_landmarks: int, seed: int) -> Chosen:
        drawn = np.random.default_rng(seed).permutation(int(num_samples(sample)))
        return _rows_of(sample, drawn[:n_landmarks])


class KMeansPlusPlus(LandmarkSelector):
    """Rows far from each other: each is drawn by its squared distance from those drawn before.

    The start of k-means by Arthur and Vassilvitskii (2007), in the feature space of the kernels.
    """

    def choose(self, union: KernelUnion, sample: Any, n_landmarks: int, seed: int) -> Chosen:
        rng = np.random.default_rng(seed)
        rows, kernel = _mean_kernel(union, sample, max(n_landmarks, _MOST_ROWS), rng)
        lengths = np.diagonal(kernel)
        chosen = [int(rng.integers(len(kernel)))]
        nearest = lengths - 2.0 * kernel[chosen[0]] + lengths[chosen[0]]
        while len(chosen) < n_landmarks:
            nearest = np.maximum(nearest, 0.0)
            nearest[chosen] = 0.0
            if nearest.sum() > 0.0:
                new = int(rng.choice(len(kernel), p=nearest / nearest.sum()))
            else:  # all others equal one that was chosen
                new = int(np.delete(np.arange(len(kernel)), chosen)[0])
            chosen.append(new)
            nearest = np.minimum(nearest, lengths - 2.0 * kernel[new] + lengths[new])
        return _rows_of(sample, rows[chosen])


class LeverageScores(LandmarkSelector):
    """Rows drawn by their ridge leverage scores, the diagonal of ``K(K + λI)⁻¹``.

    Rows that others tell little of have high scores (Alaoui and Mahoney 2015).

    Parameters
    ----------
    reg : float, default=1.0
        λ, acting on the mean of the kernels, each of variance one.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": [Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, reg: float = 1.0) -> None:
        self.reg = reg

    def choose(self, union: KernelUnion, sample: Any, n_landmarks: int, seed: int) -> Chosen:
        self._validate_params()
        rng = np.random.default_rng(seed)
        rows, kernel = _mean_kernel(union, sample, max(n_landmarks, _MOST_ROWS), rng)
        ridge = kernel + self.reg * np.eye(len(kernel))
        scores = 1.0 - self.reg * np.diagonal(linalg.inv(ridge))
        # A part for all rows, so that there are enough with a score above zero.
        scores = np.maximum(scores, 0.0) + 1e-3 / len(scores)
        chosen = rng.choice(len(rows), n_landmarks, replace=False, p=scores / scores.sum())
        return _rows_of(sample, rows[chosen])


class Fixed(LandmarkSelector):
    """Landmarks that are given.

    Parameters
    ----------
    landmarks : table, dict of tables or Views
        With the columns of X.
    """

    def __init__(self, landmarks: Any) -> None:
        self.landmarks = landmarks

    def choose(self, union: KernelUnion, sample: Any, n_landmarks: int, seed: int) -> Chosen:
        return self.landmarks, np.empty(0, dtype=np.intp)


def _rows_of(sample: Any, numbers: np.ndarray) -> Chosen:
    numbers = np.sort(numbers)
    return safe_indexing(sample, numbers), numbers


def _mean_kernel(
    union: KernelUnion, sample: Any, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of some rows of a sample, and the mean of their kernels of variance one."""
    rows = np.sort(rng.permutation(int(num_samples(sample)))[:most])
    stack = Multiplicative().fit_transform(union(safe_indexing(sample, rows)))
    return rows, stack.combine(np.full(stack.n_kernels, 1.0 / stack.n_kernels))
