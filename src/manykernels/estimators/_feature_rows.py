"""What fits on explicit features learn from: moments of all rows, and a sample of these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..scale import FeatureMap, Sample
from ..scale.accumulation import PartMoments, TargetCoding
from ..scale.plan import Plan
from ._inputs import TableSource, groups_of

if TYPE_CHECKING:
    from ._gathering import FeatureStream


@dataclass(frozen=True)
class FeatureRows:
    """Moments of all training rows, and a sample of these with its features.

    Attributes
    ----------
    features : FeatureMap
    moments : PartMoments
    targets : TargetCoding
    sample : Sample
    sampled : ndarray of shape (n_sampled, D)
        Features of the sample, from the origin of the moments.
    plan : Plan
        The splits into training and test rows.
    origin : ndarray of shape (D,)
    source : TableSource
        Reads new X.
    attributes : dict
        Fitted attributes: features of X, errors of the approximation.
    stream : FeatureStream
        Where these come from; more rows can be added to it.
    """

    features: FeatureMap
    moments: PartMoments
    targets: TargetCoding
    sample: Sample
    sampled: np.ndarray
    plan: Plan
    origin: np.ndarray
    source: TableSource
    attributes: dict[str, Any]
    stream: FeatureStream

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

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the groups of rows of the sample that are left out together.

        Of rows that were added one block after the other, only those of the sample are compared.
        """
        units = self.stream.units
        if units is not None and self.sample.rows.max() < len(units):
            return units[self.sample.rows]
        return groups_of(self.sample.X)

    @property
    def weights(self) -> np.ndarray | None:
        """How much each row of the sample matters: counts times the weight of its class."""
        assert self.sample.y is not None
        factors = self.targets.factors(self.sample.y)
        if factors is None:
            return self.counts
        return factors if self.counts is None else factors * self.counts
