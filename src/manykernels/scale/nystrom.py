"""Nystrom: features of a kernel by its similarities with a few rows, the landmarks.

With landmarks L and ``k(L, L) = QΛQᵀ``, the features

    z(x) = Λ^{−½} Qᵀ k(L, x)

are those of the projection of x, in the feature space of the kernel, on the span of the landmarks:
``z(x)·z(y) = k(x, L) k(L, L)⁺ k(L, y)`` (Williams and Seeger 2001). With all training rows as
landmarks nothing is lost. All kernels have the same landmarks, so that kernels which are functions
of the same distances share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from .._rounding import EPS
from .._sklearn import Interval, num_samples
from ..kernels import KernelUnion
from ..kernels.evaluation import evaluate_into
from ..kernels.presence import explaining_lacking_rows
from ..kernels.tables import SharedTable
from .features import MOST_FEATURES, Approximation, FeatureMap
from .landmarks import LandmarkSelector, Uniform

# Landmarks of each kernel unless given. With many kernels, whose features would be more than
# MOST_FEATURES in all, there are fewer, but not fewer than the last number.
DEFAULT_LANDMARKS = 200
_FEWEST_LANDMARKS = 50


@dataclass(frozen=True)
class NystromMap(FeatureMap):
    """Features by landmarks; `projections` are ``QΛ^{−½}`` of every kernel, (n_landmarks, d_j)."""

    landmarks: Any
    projections: list[np.ndarray]
    chosen: np.ndarray

    @cached_property
    def _shared(self) -> SharedTable:
        """The landmarks, with what blocks of rows need of them."""
        return SharedTable(self.landmarks)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_shared"}

    @property
    def sizes(self) -> list[int]:
        return [projection.shape[1] for projection in self.projections]

    @property
    def made_from(self) -> np.ndarray:
        return self.chosen

    @property
    def attributes(self) -> dict[str, Any]:
        return {"landmarks_": self.landmarks}

    def _write(self, X: Any, out: np.ndarray) -> None:
        n_rows = int(num_samples(X.X if isinstance(X, SharedTable) else X))
        similarities = np.empty((len(self.projections), n_rows, len(self.projections[0])))
        with explaining_lacking_rows(self.union, X):
            evaluate_into(similarities, self.union.kernels_, X, self._shared)
        for block, own, projection in zip(
            self.blocks, similarities, self.projections, strict=True
        ):
            np.matmul(projection.T, own.T, out=out[block])


class Nystrom(Approximation):
    """Kernels approximated by their similarities with landmarks, a few of the rows.

    Takes any kernel, also of strings, categories and several views.

    Parameters
    ----------
    n_landmarks : int, optional
        Rows that others are compared with, and the most features of each kernel. By default 200;
        fewer for more than 20 kernels, whose features would be more than 4000, down to 50; and
        no more than there are rows.
    selector : LandmarkSelector, optional
        How landmarks are chosen; by default :class:`~manykernels.scale.Uniform`, at random.
    block_size, random_state : see :class:`~manykernels.scale.Approximation`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA, Nystrom, rbf_grid
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKFDA(rbf_grid([1, 4]), approximation=Nystrom(n_landmarks=40)).fit(X, y)
    >>> model.certificate_.converged, model.score(X, y) > 0.95
    (True, True)
    >>> bool(model.approximation_errors_.max() < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Approximation._parameter_constraints,
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "selector": [LandmarkSelector, None],
    }

    def __init__(
        self,
        n_landmarks: int | None = None,
        *,
        selector: LandmarkSelector | None = None,
        block_size: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.selector = selector
        self.block_size = block_size
        self.random_state = random_state

    def features_of(
        self, union: KernelUnion, sample: Any, n_rows: int | None, *, spherical: bool
    ) -> NystromMap:
        self._validate_params()
        selector = Uniform() if self.selector is None else self.selector
        number = self._number(len(union.kernels_), int(num_samples(sample)), n_rows)
        landmarks, rows = selector.choose(union, sample, number, self.random_state)
        stack = union(landmarks)
        projections = [_projection(stack.kernel(j)) for j in range(stack.n_kernels)]
        return NystromMap(union, spherical, landmarks, projections, rows)

    def _number(self, n_kernels: int, n_sampled: int, n_rows: int | None) -> int:
        """How many landmarks there are."""
        given = self.n_landmarks
        if given is None:
            default = min(DEFAULT_LANDMARKS, max(MOST_FEATURES // n_kernels, _FEWEST_LANDMARKS))
            return min(default, n_sampled)
        if given > n_sampled:
            known = f"there are {n_sampled}" if n_rows == n_sampled else f"{n_sampled} were drawn"
            raise ValueError(
                f"n_landmarks={given} is more than the rows to choose from, of which {known}: "
                "lower it, or pass n_landmarks=None, which takes 200 or as many as there are."
            )
        return int(given)


def _projection(gram: np.ndarray) -> np.ndarray:
    """``QΛ^{−½}`` of the eigenvalues above their rounding error."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > len(gram) * EPS * max(values[-1], 0.0)
    return vectors[:, kept] / np.sqrt(values[kept])
