"""Moments of features and targets: sufficient statistics of the square loss on features.

With features z, a constant and targets t (class indicators, or numbers), the *moments* of samples
with weights w are one symmetric matrix,

    M = Σ_i w_i a_i a_iᵀ ,   a = (z − z₀, 1, t)

Moments of disjoint parts add up, in any order. So a pass over blocks of rows needs
the memory of M, whatever the number of rows; parts are summed by different processes; and the
moments of all samples but a fold are the sum of the other folds.

The origin z₀, the mean feature of a sample of the rows, changes no result. It keeps M from being
large where features have a large mean in common, whose square would hide the differences between
samples in rounding errors when M is centred:

    G = M_zz − M_z1 M_1z / M_11 ,   and the same for the cross products with targets
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import blas

from ..kernels.tables import naming
from ..losses.features import FeatureSums
from ..utils.numerics import ACCUMULATED, in_threads, n_threads
from .features import FeatureMap
from .rows import Block
from .sampling import Plan


@dataclass
class Moments:
    """Moments M of some samples, and their number.

    Attributes
    ----------
    matrix : ndarray of shape (D + 1 + q, D + 1 + q)
    n_features : int
        D.
    n_rows : int
        Number of rows added.
    count : float
        Sum of the sample weights, without class weights.
    """

    matrix: np.ndarray
    n_features: int
    n_rows: int = 0
    count: float = 0.0

    @classmethod
    def none(cls, n_features: int, n_targets: int) -> Self:
        """Return zero moments."""
        size = n_features + 1 + n_targets
        return cls(np.zeros((size, size)), n_features)

    @property
    def n_targets(self) -> int:
        return len(self.matrix) - self.n_features - 1

    def add(self, rows: np.ndarray, count: float | None = None) -> None:
        """Add samples a√w, the columns of the array `rows`."""
        # NumPy computes half of a product with the transpose, copies the rest, and releases
        # the GIL; SciPy's BLAS does not.
        self.matrix += rows @ rows.T
        self.n_rows += rows.shape[1]
        self.count += rows.shape[1] if count is None else count

    def __add__(self, other: Moments) -> Moments:
        matrix, n_rows = self.matrix + other.matrix, self.n_rows + other.n_rows
        return Moments(matrix, self.n_features, n_rows, self.count + other.count)

    def with_targets_at(self, places: np.ndarray, n_targets: int) -> Moments:
        """Add targets that are zero for all samples so far; the old targets go to `places`."""
        D = self.n_features
        kept = np.concatenate([np.arange(D + 1), D + 1 + places])
        whole = np.zeros((D + 1 + n_targets, D + 1 + n_targets))
        whole[np.ix_(kept, kept)] = self.matrix
        return Moments(whole, D, self.n_rows, self.count)

    def of_targets(self, places: np.ndarray) -> Moments:
        """Return the moments of some of the targets."""
        D = self.n_features
        kept = np.concatenate([np.arange(D + 1), D + 1 + places])
        return Moments(self.matrix[np.ix_(kept, kept)], D, self.n_rows, self.count)

    def target_sums(self) -> np.ndarray:
        """Return the weighted sums of the targets; for indicators, the class masses."""
        return self.matrix[self.n_features, self.n_features + 1 :].copy()

    def centred(self) -> CentredMoments:
        """Centre by the means of these samples."""
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
    centring, which determines the size of its rounding errors.
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
        """Return the factor of every kernel: one over its variance, or over its trace, or one.

        The factor of kernels without variance, up to rounding errors, is zero.
        """
        trace = np.bincount(kernel_of, np.diagonal(self.gram), minlength=n_kernels)
        rounding = ACCUMULATED * np.bincount(kernel_of, self.uncentred, minlength=n_kernels)
        varies = trace > rounding
        units = {"multiplicative": self.weight, "trace": 1.0}
        if normalize not in units:
            return varies.astype(float)
        return np.divide(units[normalize], trace, np.zeros(n_kernels), where=varies)

    def sums(self, kernel_of: np.ndarray, scales: np.ndarray, turn: np.ndarray) -> FeatureSums:
        """Return the sums of the scaled features and of the targets ``t @ turn``."""
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


# -- One pass over rows: features and targets of every block, added to moments --------------------


class PartMoments:
    """Moments of every part of a :class:`.Plan`.

    They are sums over `lanes`, one per thread, each with moments of all parts.
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
        """Moments of all samples."""
        return _sum(self.parts)

    def of(self, chosen: np.ndarray) -> Moments:
        """Return the moments of the parts chosen by a mask."""
        return _sum([self.parts[k] for k in np.flatnonzero(chosen)])

    def __add__(self, other: PartMoments) -> PartMoments:
        pairs = zip(self.parts, other.parts, strict=True)
        return PartMoments([first + second for first, second in pairs])

    def of_targets(self, places: np.ndarray) -> PartMoments:
        """Return the moments of some of the targets."""
        return PartMoments([part.of_targets(places) for part in self.parts])

    def copy(self) -> PartMoments:
        """Return a copy, to which rows can be added without changing the original."""
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
        """Number of columns q."""

    @abstractmethod
    def columns(self, y: np.ndarray) -> np.ndarray:
        """Return the targets t of some samples, (n, q)."""

    def factors(self, y: np.ndarray) -> np.ndarray | None:
        """Return factors of the sample weights; None for one."""
        return None

    def ignoring_weightless(self, block: Block) -> Block:
        """Return the block with valid targets in rows of weight zero."""
        return block


@dataclass(frozen=True)
class ClassTargets(TargetCoding):
    """Class indicators.

    `class_factors` (n_classes,) are the class weights; None for one.
    """

    classes: np.ndarray
    class_factors: np.ndarray | None = None

    @property
    def width(self) -> int:
        return len(self.classes)

    def at(self, places: np.ndarray) -> ClassTargets:
        """Return the coding of some of the classes."""
        factors = None if self.class_factors is None else self.class_factors[places]
        return ClassTargets(self.classes[places], factors)

    def labels(self, y: np.ndarray) -> np.ndarray:
        """Return the class indices of some samples."""
        places = np.searchsorted(self.classes, y)
        places[places == len(self.classes)] = 0
        known = self.classes[places] == y
        if not np.all(known):
            raise ValueError(
                f"y has the class {y[~known].tolist()[0]!r}, which is not among "
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
    """Numeric targets minus an `origin` (q,), which keeps their squares small."""

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
    """Accumulator of moments over blocks of rows.

    Attributes
    ----------
    features : FeatureMap
    origin : ndarray of shape (D,)
        z₀.
    targets : TargetCoding
    plan : Plan
        Assigns rows to parts.
    """

    features: FeatureMap
    origin: np.ndarray
    targets: TargetCoding
    plan: Plan

    def __call__(self, state: PartMoments | None, block: Block) -> PartMoments:
        """Add one block to the moments; `state` is changed in place.

        The rows are divided among threads, each with its own moments.
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
            members = np.flatnonzero(counting & (part_of == k))
            if len(members):
                part.add(np.take(columns, members, axis=1), float(counts[members].sum()))

    def merge(self, first: PartMoments, second: PartMoments) -> PartMoments:
        """Return the moments of the rows of both."""
        return first + second

    def _columns(self, block: Block) -> np.ndarray:
        """Return a√w of every row, (D + 1 + q, n_rows)."""
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
    """Return (z − z₀, 1, t) of every row, (D + 1 + n_targets, n_rows); t is not set."""
    D = features.n_features
    columns = np.empty((D + 1 + n_targets, len(block)))
    features.write(block.X, columns[:D])
    columns[:D] -= origin[:, None]
    columns[D] = 1.0
    return columns


def weights_of(block: Block, targets: TargetCoding) -> np.ndarray | None:
    """Return the sample weights times the factors of the targets; None for one."""
    assert block.y is not None
    factors = targets.factors(block.y)
    if block.weight is None:
        return factors
    return block.weight if factors is None else factors * block.weight


def naming_block(block: Block) -> AbstractContextManager[None]:
    """Return a context that prefixes error messages with the block."""
    return naming(f"Block {block.number}, which begins at row {block.start}")
