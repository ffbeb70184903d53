"""From rows in any container to moments of explicit features: what fits on features share.

Two passes. The first draws a sample of the rows and counts classes. The sample is where kernels
learn their widths and approximations their landmarks, and by whose left-out rows a model judges
itself; with no more rows than that it is all of them, and everything is as with kernel matrices.
The second pass adds up the moments. An iterator can be read only once: the first rows that it
yields take the place of the sample where kernels and landmarks are concerned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import compute_class_weight

from .._sklearn import safe_indexing
from .._warnings import warn_caller
from ..kernels.given import kernels_for
from ..kernels.presence import explaining_lacking_rows
from ..kernels.tables import SharedTable
from ..scale import Approximation, Checkpoint, FeatureMap, Reservoir, RowBlocks, Sample, row_blocks
from ..scale.accumulation import (
    Accumulator,
    ClassTargets,
    FoldMoments,
    NumberTargets,
    TargetCoding,
)
from ..scale.census import Census
from ..scale.features import require_room, rows_for_errors
from ._inputs import TableSource, read_training
from ._rows import rows_that_count

# Rows of the sample. Leaving them out takes a matrix of as many rows and columns, 128 MB; with
# 4000 rows the standard error of an accuracy is 0.8 % at most.
SAMPLE_ROWS = 4000
# Rows of every class in it at least, so that also a rare class has a mean and a spread.
_ROWS_OF_CLASS = 50


@dataclass(frozen=True)
class FeatureRows:
    """Moments of all training rows, and a sample of these with its features.

    Attributes
    ----------
    features : FeatureMap
    moments : FoldMoments
    targets : TargetCoding
    sample : Sample
    sampled : ndarray of shape (n_sampled, D)
        Features of the sample, from the origin of the moments.
    folds : ndarray of shape (n_sampled,)
        The fold of every row of the sample.
    origin : ndarray of shape (D,)
    source : TableSource
        Reads new X.
    attributes : dict
        Fitted attributes: features of X, errors of the approximation.
    """

    features: FeatureMap
    moments: FoldMoments
    targets: TargetCoding
    sample: Sample
    sampled: np.ndarray
    folds: np.ndarray
    origin: np.ndarray
    source: TableSource
    attributes: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """Names of the kernels."""
        return self.features.union.names_

    @property
    def complete(self) -> bool:
        """Whether the sample has all rows."""
        return len(self.sample) == sum(part.n_rows for part in self.moments.parts)

    @property
    def counts(self) -> np.ndarray | None:
        """How many samples each row of the sample stands for; None for one."""
        return self.sample.weight

    @property
    def weights(self) -> np.ndarray | None:
        """How much each row of the sample matters: counts times the weight of its class."""
        assert self.sample.y is not None
        factors = self.targets.factors(self.sample.y)
        if factors is None:
            return self.counts
        return factors if self.counts is None else factors * self.counts


@dataclass(frozen=True)
class Gathering:
    """How an estimator makes :class:`FeatureRows` of what is passed to its ``fit``.

    `class_weight` and `classifies` say what the targets are; `n_folds` is one without folds.
    """

    estimator: Any
    approximation: Approximation
    classifies: bool
    class_weight: Any = None
    n_folds: int = 1

    def gather(self, X: Any, y: Any, sample_weight: Any) -> FeatureRows:
        """All passes over X."""
        return self.gathered(self.blocks(X, y, sample_weight))

    def gathered(self, blocks: RowBlocks) -> FeatureRows:
        """All passes over the rows."""
        if blocks.one_shot:
            stream = FeatureStream.begun(self, blocks)
            return stream.rows()
        sample, census = self._reservoir.draw(blocks)
        targets = self.coding(sample, census)
        accumulator, source, attributes = self._accumulator(sample, targets, census.n_counting)
        kept = self._checkpoint(accumulator)
        moments = blocks.reduce(accumulator, accumulator.merge, checkpoint=kept)
        return self._rows(accumulator, moments, sample, source, attributes)

    def blocks(self, X: Any, y: Any, sample_weight: Any) -> RowBlocks:
        """The rows in blocks, checked as they are read."""
        size = self.approximation.block_size
        return row_blocks(X, y, sample_weight, block_size=size, needs_y=True)

    @property
    def _reservoir(self) -> Reservoir:
        per_class = _ROWS_OF_CLASS if self.classifies else None
        return Reservoir(SAMPLE_ROWS, self.approximation.random_state, per_class)

    def coding(self, sample: Sample, census: Census | None, classes: Any = None) -> TargetCoding:
        """How targets become numbers."""
        y = sample.y
        assert y is not None
        if not self.classifies:
            values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
            return NumberTargets(np.average(values, axis=0, weights=sample.weight))
        if census is not None:
            classes = census.classes
        name = type(self.estimator).__name__
        if classes is None or len(classes) < 2:
            found = [] if classes is None else list(classes)
            raise ValueError(
                f"{name} needs samples of at least 2 classes, got {len(found)} class: {found}."
            )
        return ClassTargets(classes, self._class_factors(classes, census))

    def _class_factors(self, classes: np.ndarray, census: Census | None) -> np.ndarray | None:
        given = self.class_weight
        if given is None:
            return None
        if census is None and given == "balanced":
            raise ValueError(
                'class_weight="balanced" needs the number of samples of every class before the '
                "first of them is used, which an iterator cannot tell: pass a dict, or data that "
                "can be read twice, such as a generator function."
            )
        masses = None if census is None else census.weights
        factors = compute_class_weight(given, classes=classes, y=classes, sample_weight=masses)
        if not np.all((factors > 0) & (factors < np.inf)):
            raise ValueError(
                f"class_weight must be positive and finite for every class, got {given}."
            )
        return np.asarray(factors)

    def copies(self, targets: TargetCoding) -> int:
        """How many moments are in memory at once."""
        # Of the total and of folds, and one more while they are added.
        return self.n_folds + 2

    def _accumulator(
        self, sample: Sample, targets: TargetCoding, n_rows: int | None
    ) -> tuple[Accumulator, TableSource, dict[str, Any]]:
        """What adds up moments: kernels and features learnt from a sample of the rows."""
        estimator, seed = self.estimator, self.approximation.random_state
        if sample.weight is not None:
            rows_that_count(type(estimator).__name__, sample.weight)
        data = read_training(estimator, sample.X)
        union = kernels_for(data.X, estimator.kernels)
        shared, factors = SharedTable(data.X), targets.factors(np.asarray(sample.y))
        weights = sample.weight
        if factors is not None:
            weights = factors if weights is None else weights * factors
        with explaining_lacking_rows(union, data.X):
            union.fit(shared, sample_weight=weights)
        spherical = estimator.normalize == "spherical"
        features = self.approximation.features_of(union, data.X, n_rows, spherical=spherical)
        n_kernels, copies = len(union.kernels_), self.copies(targets)
        require_room(features.n_features, targets.width, copies, n_kernels)
        origin = features(rows_for_errors(data.X, seed)).mean(axis=0)
        accumulator = Accumulator(features, origin, targets, self.n_folds, seed)
        source = TableSource(union, safe_indexing(data.X, np.arange(1)))
        errors = features.errors(rows_for_errors(data.X, seed))
        attributes = {**data.features, **features.attributes, "approximation_errors_": errors}
        return accumulator, source, {**attributes, "union_": union}

    def _checkpoint(self, accumulator: Accumulator) -> Checkpoint | None:
        path = self.approximation.checkpoint
        if path is None:
            return None
        job = {
            "estimator": type(self.estimator).__name__,
            "kernels": accumulator.features.union,
            "approximation": self.approximation.get_params(),
            "folds": self.n_folds,
            "class_weight": self.class_weight,
        }
        return Checkpoint(path, FoldMoments, job)

    def _rows(
        self,
        accumulator: Accumulator,
        moments: FoldMoments,
        sample: Sample,
        source: TableSource,
        attributes: dict[str, Any],
    ) -> FeatureRows:
        features, origin = accumulator.features, accumulator.origin
        sampled = features(sample.X) - origin
        folds = accumulator.folds(sample.rows)
        return FeatureRows(
            features,
            moments,
            accumulator.targets,
            sample,
            sampled,
            folds,
            origin,
            source,
            attributes,
        )


class FeatureStream:
    """Rows that come one block after the other and cannot be read again.

    Kernels and landmarks are learnt from the first block.
    """

    def __init__(self, gathering: Gathering, classes: Any = None) -> None:
        self.gathering = gathering
        self.classes = classes
        self.moments: FoldMoments | None = None
        self._accumulator: Accumulator | None = None
        self._parts: tuple[TableSource, dict[str, Any]]
        self._drawn: Any = None
        self._n_rows = self._n_blocks = 0

    @classmethod
    def begun(cls, gathering: Gathering, blocks: RowBlocks) -> Self:
        """All rows of an iterator."""
        stream = cls(gathering)
        name = type(gathering.estimator).__name__
        stream.add(blocks)
        warn_caller(
            f"X is an iterator, which can be read only once: {name} has learnt widths of kernels "
            f"and landmarks from its first {stream.n_first} rows. If these are not like the "
            "others, pass data that can be read twice, such as a generator function.",
            UserWarning,
        )
        return stream

    def add(self, blocks: RowBlocks) -> None:
        """Add rows."""
        for block in blocks:
            self._add(replace(block, start=self._n_rows, number=self._n_blocks))

    def snapshot(self) -> dict[str, Any]:
        """The state as it is, whatever is added later."""
        state = dict(vars(self))
        if self.moments is not None:
            parts = [replace(one, matrix=one.matrix.copy()) for one in self.moments.parts]
            state["moments"] = FoldMoments(parts)
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what :meth:`snapshot` gave."""
        self.__dict__ = state

    def _add(self, block: Any) -> None:
        reservoir = self.gathering._reservoir
        if self._accumulator is None:
            self._begin(block)
        assert self._accumulator is not None
        self._learn_classes(block.y)
        self.moments = self._accumulator(self.moments, block)
        self._drawn = reservoir.accumulate(self._drawn, block)
        self._n_rows += len(block)
        self._n_blocks += 1

    def _begin(self, block: Any) -> None:
        first = Sample(block.rows, block.X, block.y, block.weight)
        classes = self.classes
        if self.gathering.classifies and classes is None:
            classes = np.unique(block.y)
        targets = self.gathering.coding(first, None, classes)
        accumulator, source, attributes = self.gathering._accumulator(first, targets, None)
        self._accumulator, self._parts = accumulator, (source, attributes)
        self.n_first = len(block)

    def _learn_classes(self, y: np.ndarray) -> None:
        """Add classes that are seen for the first time, unless all were named."""
        assert self._accumulator is not None
        targets = self._accumulator.targets
        if self.classes is not None or not isinstance(targets, ClassTargets):
            return
        new = np.setdiff1d(y, targets.classes)
        if len(new) and self.moments is not None:
            joined = np.union1d(targets.classes, new)
            places = np.searchsorted(joined, targets.classes)
            parts = [part.with_targets_at(places, len(joined)) for part in self.moments.parts]
            self.moments = FoldMoments(parts)
            factors = self.gathering._class_factors(joined, None)
            wider = ClassTargets(joined, factors)
            self._accumulator = replace(self._accumulator, targets=wider)

    def rows(self) -> FeatureRows:
        """What was gathered so far."""
        if self._accumulator is None or self.moments is None:
            raise ValueError("Found array with 0 sample(s): there are no rows.")
        source, attributes = self._parts
        sample = self.gathering._reservoir.sample(self._drawn)
        moments = FoldMoments([replace(part) for part in self.moments.parts])
        return self.gathering._rows(self._accumulator, moments, sample, source, attributes)
