"""One pass over rows: features and targets of every block, added to the moments of its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from ..kernels._threads import in_threads, n_threads
from ..kernels.tables import naming
from .base import Block
from .features import FeatureMap
from .moments import Moments
from .plan import Plan


class PartMoments:
    """The moments of every part of a :class:`.Plan`.

    They are sums over `lanes`, each of which has moments of all parts, for a thread of its own.
    """

    def __init__(self, parts: list[Moments]) -> None:
        self.lanes = [parts]

    @property
    def parts(self) -> list[Moments]:
        """Moments of every part."""
        if len(self.lanes) > 1:
            self.lanes = [[_sum(list(lanes)) for lanes in zip(*self.lanes, strict=True)]]
        return self.lanes[0]

    @property
    def total(self) -> Moments:
        """Of all samples."""
        return _sum(self.parts)

    def of(self, chosen: np.ndarray) -> Moments:
        """Of the samples in some of the parts, which a mask chooses."""
        return _sum([self.parts[k] for k in np.flatnonzero(chosen)])

    def __add__(self, other: PartMoments) -> PartMoments:
        pairs = zip(self.parts, other.parts, strict=True)
        return PartMoments([mine + its for mine, its in pairs])

    def of_targets(self, places: np.ndarray) -> PartMoments:
        """Those of some of the targets."""
        return PartMoments([part.of_targets(places) for part in self.parts])

    def copy(self) -> PartMoments:
        """The same, to which rows can be added without changing this one."""
        return PartMoments([replace(part, matrix=part.matrix.copy()) for part in self.parts])


def _sum(parts: list[Moments]) -> Moments:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


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

    def ignoring_weightless(self, block: Block) -> Block:
        """The block, whose rows of weight zero may have targets that no other row has."""
        return block


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

    def at(self, places: np.ndarray) -> ClassTargets:
        """Some of the classes."""
        factors = None if self.class_factors is None else self.class_factors[places]
        return ClassTargets(self.classes[places], factors)

    def labels(self, y: np.ndarray) -> np.ndarray:
        """Positions of the classes of some samples."""
        places = np.searchsorted(self.classes, y)
        places[places == len(self.classes)] = 0
        known = self.classes[places] == y
        if not np.all(known):
            raise ValueError(
                f"y has the class {y[~known].tolist()[0]!r}, which is none of "
                f"{self.classes.tolist()}: name all classes in the first call, "
                "partial_fit(X, y, classes=[...])."
            )
        return places

    def ignoring_weightless(self, block: Block) -> Block:
        if block.weight is None or block.y is None or block.weight.all():
            return block
        return replace(block, y=np.where(block.weight > 0.0, block.y, self.classes[0]))

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
    plan : Plan
        The part of every row.
    """

    features: FeatureMap
    origin: np.ndarray
    targets: TargetCoding
    plan: Plan

    def __call__(self, state: PartMoments | None, block: Block) -> PartMoments:
        """The moments with those of one more block, `state` being changed.

        Its rows are divided among threads, each with moments of its own.
        """
        if state is None:
            state = PartMoments([self._none() for _ in range(self.plan.n_parts)])
        lanes = state.lanes
        ends = np.linspace(0, len(block), min(n_threads(), len(block)) + 1).astype(int)
        while len(lanes) < len(ends) - 1:
            lanes.append([self._none() for _ in range(self.plan.n_parts)])

        def add(lane: int) -> None:
            if ends[lane] < ends[lane + 1]:
                self._add(lanes[lane], block.cut(int(ends[lane]), int(ends[lane + 1])))

        with naming_block(block):
            in_threads(add, list(range(len(ends) - 1)))
        return state

    def _none(self) -> Moments:
        return Moments.none(self.features.n_features, self.targets.width)

    def _add(self, parts: list[Moments], block: Block) -> None:
        """Add rows to the moments of their parts."""
        columns = self._columns(self.targets.ignoring_weightless(block))
        counts = np.ones(len(block)) if block.weight is None else block.weight
        counting = counts > 0.0
        if self.plan.n_parts == 1 and counting.all():
            parts[0].add(columns, float(counts.sum()))
            return
        part_of = self.plan.parts(block.rows)
        for k, part in enumerate(parts):
            own = np.flatnonzero(counting & (part_of == k))
            if len(own):
                part.add(np.take(columns, own, axis=1), float(counts[own].sum()))

    def merge(self, first: PartMoments, second: PartMoments) -> PartMoments:
        """The moments of the rows of both."""
        return first + second

    def _columns(self, block: Block) -> np.ndarray:
        """a√w of every row, (D + 1 + q, n_rows)."""
        assert block.y is not None
        columns = augmented(self.features, self.origin, block, self.targets.width)
        columns[self.features.n_features + 1 :] = self.targets.columns(block.y).T
        weights = weights_of(block, self.targets)
        if weights is not None:
            columns *= np.sqrt(weights)
        return columns


def augmented(
    features: FeatureMap, origin: np.ndarray, block: Block, n_targets: int
) -> np.ndarray:
    """(z − z₀, 1, t) of every row, (D + 1 + n_targets, n_rows), C-ordered; t is not set."""
    D = features.n_features
    columns = np.empty((D + 1 + n_targets, len(block)))
    features.write(block.X, columns[:D])
    columns[:D] -= origin[:, None]
    columns[D] = 1.0
    return columns


def weights_of(block: Block, targets: TargetCoding) -> np.ndarray | None:
    """How much each row matters: sample weight times the factor of its target; None for one."""
    assert block.y is not None
    factors = targets.factors(block.y)
    if block.weight is None:
        return factors
    return block.weight if factors is None else factors * block.weight


def naming_block(block: Block) -> AbstractContextManager[None]:
    """Put the block in front of the message of any error raised inside."""
    return naming(f"Block {block.number}, which begins at row {block.start}")
