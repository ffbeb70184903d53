"""Explicit features of kernels: maps z with ``k(x, y) ≈ z(x)·z(y)``, and what makes them.

An *approximation* is what users choose: :class:`Nystrom`, :class:`RandomFeatures`,
:class:`ExactFeatures`. Fitted to kernels and a sample of rows, it gives a :class:`FeatureMap`,
which turns blocks of rows into features of all kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from .._memory import require_memory
from .._sklearn import Interval, num_samples, safe_indexing
from ..kernels import KernelUnion

# Features that kernels have unless more are asked for, of all kernels or of an exact one: the
# matrix of products of as many takes 128 MB.
MOST_FEATURES = 4000
# Rows of a sample on which the error of an approximation is measured: the relative error of the
# norm of a 500 × 500 matrix is a few percent, and it takes a tenth of a second for ten kernels.
_ROWS_OF_ERROR = 500
# Rows whose features are computed at once where all are needed.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class FeatureMap(ABC):
    """Features of the kernels of a fitted `union`.

    Attributes
    ----------
    union : KernelUnion
    spherical : bool
        Whether the features of each kernel are divided by ``√k(x, x)``.
    """

    union: KernelUnion
    spherical: bool

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Number of features of every kernel."""

    @abstractmethod
    def _write(self, X: Any, out: np.ndarray) -> None:
        """Features of the rows of X, before `spherical`, into `out`, (D, n_rows)."""

    @property
    def n_features(self) -> int:
        """D, of all kernels."""
        return sum(self.sizes)

    @property
    def kernel_of(self) -> np.ndarray:
        """Number of the kernel that each feature belongs to, (D,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def blocks(self) -> list[slice]:
        """The features of every kernel."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        return [slice(ends[j], ends[j + 1]) for j in range(len(self.sizes))]

    @property
    def made_from(self) -> np.ndarray:
        """Numbers of the rows of the sample that the features were made from.

        On these rows the features are nearer to the kernels than on any others.
        """
        return np.empty(0, dtype=np.intp)

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        return {}

    def write(self, X: Any, out: np.ndarray) -> None:
        """Features of the rows of X into the C-ordered `out`, (D, n_rows)."""
        self._write(X, out)
        if self.spherical:
            lengths = np.sqrt(self.union.diag(X))
            for block, own in zip(self.blocks, lengths, strict=True):
                out[block] /= np.where(own > 0.0, own, 1.0)

    def __call__(self, X: Any) -> np.ndarray:
        """Features of the rows of X, (n_rows, D)."""
        n_rows = int(num_samples(X))
        found = np.empty((n_rows, self.n_features))
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, n_rows))
            part = np.empty((self.n_features, len(rows)))
            self.write(safe_indexing(X, rows), part)
            found[rows] = part.T
        return found

    def errors(self, X: Any) -> np.ndarray:
        """Relative error ``‖P(K − ZZᵀ)P‖/‖PKP‖`` of every kernel on some rows, centred by P."""
        stack, features = self.union(X), self(X)
        found = np.empty(len(self.sizes))
        for j, block in enumerate(self.blocks):
            exact = stack.kernel(j)
            if self.spherical:
                lengths = np.sqrt(np.diagonal(exact))
                lengths = np.where(lengths > 0.0, lengths, 1.0)
                exact = exact / lengths / lengths[:, None]
            exact = _centred(exact)
            norm = np.linalg.norm(exact)
            own = features[:, block] - features[:, block].mean(axis=0)
            found[j] = np.linalg.norm(exact - own @ own.T) / norm if norm > 0.0 else 0.0
        return found


def _centred(matrix: np.ndarray) -> np.ndarray:
    rows = matrix - matrix.mean(axis=0)
    return rows - rows.mean(axis=1)[:, None]


class Approximation(BaseEstimator, ABC):
    """How kernels are replaced by explicit features, and how rows are passed over.

    Parameters
    ----------
    block_size : int, default=4096
        Rows that are processed at once. Memory grows with it, results do not depend on it.
    random_state : int, default=0
        Seed of everything that is drawn: rows to learn widths from, landmarks, frequencies, folds.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "block_size": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    block_size: int | None
    random_state: int

    @abstractmethod
    def features_of(
        self, union: KernelUnion, sample: Any, n_rows: int | None, *, spherical: bool
    ) -> FeatureMap:
        """The map of fitted kernels; what it takes from data, it takes from `sample`, a table.

        `n_rows` is the number of all training rows, None if it is not known.
        """


def require_room(n_features: int, n_targets: int, copies: int, n_kernels: int) -> None:
    """Raise MemoryError if the moments of so many features do not fit, `copies` of them."""
    size = n_features + 1 + n_targets
    try:
        require_memory((copies, size, size), "The sums of products of features")
    except MemoryError as error:
        first = str(error).split(". ")[0]
        raise MemoryError(
            f"{first}. {n_kernels} kernels have {n_features} features: use fewer features of each "
            "(n_landmarks=…, n_features=…), fewer kernels, or fewer folds."
        ) from error


def rows_for_errors(features: FeatureMap, sample: Any, seed: int) -> Any:
    """Rows of a sample on which errors are measured.

    They are none of those that the features were made from, on which there is no error at all;
    unless these are all.
    """
    n_rows = int(num_samples(sample))
    others = np.setdiff1d(np.arange(n_rows), features.made_from)
    if len(others) < 2:  # after centring, a row alone is nothing
        others = np.arange(n_rows)
    chosen = np.random.default_rng(seed).permutation(others)[:_ROWS_OF_ERROR]
    return safe_indexing(sample, np.sort(chosen))
