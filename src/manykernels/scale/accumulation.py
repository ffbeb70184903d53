"""One pass over rows: features and targets of every block, added to the moments of its folds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..kernels.tables import naming
from .base import Block
from .features import FeatureMap
from .keys import fold_of
from .moments import Moments


@dataclass
class FoldMoments:
    """The moments of every fold; of all samples in the only one if there are no folds."""

    parts: list[Moments]

    @property
    def total(self) -> Moments:
        """Of all samples."""
        return self.without(None)

    def without(self, fold: int | None) -> Moments:
        """Of all samples but those of one fold."""
        kept = [part for k, part in enumerate(self.parts) if k != fold]
        total = kept[0]
        for part in kept[1:]:
            total = total + part
        return total

    def __add__(self, other: FoldMoments) -> FoldMoments:
        pairs = zip(self.parts, other.parts, strict=True)
        return FoldMoments([mine + its for mine, its in pairs])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What a file of them holds."""
        return {
            f"fold{k}_{name}": array
            for k, part in enumerate(self.parts)
            for name, array in part.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """From what :meth:`to_arrays` gave."""
        n_folds = sum(name.endswith("_matrix") for name in arrays)
        prefixes = [f"fold{k}_" for k in range(n_folds)]
        return cls(
            [
                Moments.from_arrays(
                    {name.removeprefix(own): arrays[name] for name in arrays if own in name}
                )
                for own in prefixes
            ]
        )


class TargetCoding(ABC):
    """Targets as columns of numbers, and weights of samples."""

    @property
    @abstractmethod
    def width(self) -> int:
        """q, how many columns."""

    @abstractmethod
    def columns(self, y: np.ndarray) -> np.ndarray:
        """Targets t of some samples, (n, q)."""

    def factors(self, y: np.ndarray) -> np.ndarray | None:
        """What sample weights are multiplied with, None for one."""
        return None


@dataclass(frozen=True)
class ClassTargets(TargetCoding):
    """Class indicators.

    `class_factors` (n_classes,) are the weights of classes, None for one.
    """

    classes: np.ndarray
    class_factors: np.ndarray | None = None

    @property
    def width(self) -> int:
        return len(self.classes)

    def labels(self, y: np.ndarray) -> np.ndarray:
        """Positions of the classes of some samples."""
        places = np.searchsorted(self.classes, y)
        places[places == len(self.classes)] = 0
        known = self.classes[places] == y
        if not np.all(known):
            raise ValueError(
                f"y has the class {y[np.argmin(known)]!r}, which is none of "
                f"{self.classes.tolist()}: name all classes in the first call, "
                "partial_fit(X, y, classes=[...])."
            )
        return places

    def columns(self, y: np.ndarray) -> np.ndarray:
        return np.eye(self.width)[self.labels(y)]

    def factors(self, y: np.ndarray) -> np.ndarray | None:
        return None if self.class_factors is None else self.class_factors[self.labels(y)]


@dataclass(frozen=True)
class NumberTargets(TargetCoding):
    """Numbers less an `origin` (q,), which keeps their squares small."""

    origin: np.ndarray

    @property
    def width(self) -> int:
        return len(self.origin)

    def columns(self, y: np.ndarray) -> np.ndarray:
        values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if values.shape[1] != self.width:
            raise ValueError(f"y has {values.shape[1]} columns, but had {self.width} before.")
        return values - self.origin


@dataclass(frozen=True)
class Accumulator:
    """Adds blocks of rows to moments.

    Attributes
    ----------
    features : FeatureMap
    origin : ndarray of shape (D,)
        z₀.
    targets : TargetCoding
    n_folds : int
        One for no folds.
    seed : int
        Of the folds.
    """

    features: FeatureMap
    origin: np.ndarray
    targets: TargetCoding
    n_folds: int = 1
    seed: int = 0

    def __call__(self, state: FoldMoments | None, block: Block) -> FoldMoments:
        """The moments with those of one more block, `state` being changed."""
        if state is None:
            D, width = self.features.n_features, self.targets.width
            state = FoldMoments([Moments.none(D, width) for _ in range(self.n_folds)])
        columns = self._columns(block)
        counts = np.ones(len(block)) if block.weight is None else block.weight
        counting = counts > 0.0
        if self.n_folds == 1 and counting.all():
            state.parts[0].add(columns, float(counts.sum()))
            return state
        fold = self.folds(block.rows)
        for k, part in enumerate(state.parts):
            own = np.flatnonzero(counting & (fold == k))
            if len(own):
                part.add(np.take(columns, own, axis=1), float(counts[own].sum()))
        return state

    def folds(self, rows: np.ndarray) -> np.ndarray:
        """The fold of every row, by its number among all rows."""
        if self.n_folds == 1:
            return np.zeros(len(rows), dtype=np.intp)
        return fold_of(rows, self.n_folds, self.seed)

    def merge(self, first: FoldMoments, second: FoldMoments) -> FoldMoments:
        """The moments of the rows of both."""
        return first + second

    def _columns(self, block: Block) -> np.ndarray:
        """a√w of every row, (D + 1 + q, n_rows)."""
        D, width = self.features.n_features, self.targets.width
        columns = augmented(self.features, self.origin, block, width)
        with _naming_block(block):
            columns[D + 1 :] = self.targets.columns(block.y).T  # type: ignore[arg-type]
            weights = weights_of(block, self.targets)
        if weights is not None:
            columns *= np.sqrt(weights)
        return columns


def augmented(
    features: FeatureMap, origin: np.ndarray, block: Block, n_targets: int
) -> np.ndarray:
    """(z − z₀, 1, ·) of every row, (D + 1 + n_targets, n_rows), C-ordered; targets are not set."""
    D = features.n_features
    columns = np.empty((D + 1 + n_targets, len(block)))
    with _naming_block(block):
        features.write(block.X, columns[:D])
    columns[:D] -= origin[:, None]
    columns[D] = 1.0
    return columns


def weights_of(block: Block, targets: TargetCoding) -> np.ndarray | None:
    """How much each row matters: its sample weight times the factor of its target; or None."""
    assert block.y is not None
    factors = targets.factors(block.y)
    if block.weight is None:
        return factors
    return block.weight if factors is None else factors * block.weight


def _naming_block(block: Block) -> AbstractContextManager[None]:
    return naming(f"Block {block.number}, which begins at row {block.start}")
