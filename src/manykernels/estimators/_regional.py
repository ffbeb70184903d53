"""Kernels of regions: parameters, where shares come from, what is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._sklearn import Interval, StrOptions
from ..gating.by_region import ByRegion
from ..gating.regions import KernelRegions
from ..gating.shares import GivenRegions
from ..kernels import KernelStack, Views
from ._base import estimator
from ._inputs import Source, by_blocks
from ._kernels import KernelExpansion, TrainingKernels
from ._learning import WeightLearning
from ._rows import TrainingRows


@estimator
class RegionAttributes:
    """Attributes and methods of estimators with kernel weights for every region.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Random numbers of the starts of k-means, by which regions are found.

    Attributes
    ----------
    weights_ : ndarray of shape (n_regions, n_kernels)
        Learnt weights of the normalised kernels in every region, with norm 1 in each.
    kernel_names_ : list of str
        Names of the columns of `weights_`.
    regions_ : KernelRegions or GivenRegions
        Fitted; its ``sharpness`` is the one that was chosen.
    region_sizes_ : ndarray of shape (n_regions,)
        Mean share of training samples in each region.

    References
    ----------
    Y. Lei, A. Binder, Ü. Doğan, M. Kloft. Localized multiple kernel learning – a convex approach.
    ACML 2016.
    """

    random_state: Any = 0

    _expansion: ClassVar[KernelExpansion]

    _parameter_constraints: ClassVar[dict[str, Any]] = {"random_state": ["random_state"]}

    @by_blocks
    def memberships(self, X: Any) -> np.ndarray:
        """Shares of the rows of X in the regions, (n_rows, n_regions); each row sums to one."""
        check_is_fitted(self)
        expansion = self._expansion
        blocks = expansion.blocks(expansion.source.read(self, X))
        return np.concatenate([block.row_shares for _, block in blocks])

    def region_weights(self) -> list[dict[str, Any]]:
        """The weight of every kernel in every region, one dict for each.

        ``region``, ``size`` (mean share of training samples), ``kernel`` and ``weight``; where
        classes have weights of their own, ``class``, too.
        """
        check_is_fitted(self)
        fitted: Any = self
        several = fitted.weights_.ndim == 3
        tables = fitted.weights_ if several else fitted.weights_[None]
        return [
            {
                **({"class": fitted.classes_[k]} if several else {}),
                "region": region,
                "size": float(fitted.region_sizes_[region]),
                "kernel": name,
                "weight": float(weight),
            }
            for k, table in enumerate(tables)
            for region, weights in enumerate(table)
            for name, weight in zip(fitted.kernel_names_, weights, strict=True)
        ]


@estimator
class RegionParameters:
    """Parameters of estimators that are given their regions.

    Parameters
    ----------
    regions : int, KernelRegions, estimator, columns or function, default=3
        Number of regions, found by k-means on the mean of the normalised kernels; see
        :class:`~manykernels.gating.KernelRegions`, which has more options. Or a clustering of
        scikit-learn (shares by ``predict_proba``, or one region by ``predict``), the columns of X
        that hold shares, a pair (columns, clustering), or a function of X that returns shares;
        see :class:`~manykernels.gating.GivenRegions`. With several views, the name of the view
        that holds the shares (kernels then name the others, as in ``RBF().of("audio")``), or any
        of the above, of all their columns; with precomputed kernels, columns of the table given to
        :meth:`KernelStack.with_features`.
    sharpness : float in [0, inf] or "auto", default="auto"
        If `regions` is a number: logarithm of how many times larger the share of a typical sample
        is in its own region than in the next. 0 is the same model without regions, inf gives
        every sample to one region. "auto" chooses among 0, 0.5, 2 and 8 by three folds: the one
        with the least loss of held-out samples, if that is two standard errors less than
        without regions, and no more samples are wrong. Otherwise there is one region.
    random_state : int, RandomState or None, default=0
        If `regions` is a number: random numbers of the starts of k-means.
    """

    regions: Any = 3
    sharpness: float | str = "auto"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sharpness": [Interval(Real, 0, None, closed="both"), StrOptions({"auto"})],
    }


@dataclass(frozen=True)
class Regions:
    """Where the shares of samples come from: `learner`, and the `step` that prepares kernels.

    A learner of type GivenRegions is fitted already. `name` is that of the view it looks at.
    """

    learner: KernelRegions | GivenRegions
    step: ByRegion
    name: str | None = None

    @classmethod
    def of(cls, estimator: Any, rows: TrainingRows) -> Regions:
        """From the parameters regions, sharpness and random_state."""
        what = estimator.regions
        if isinstance(what, Integral) and not isinstance(what, bool):
            if what < 1:
                raise ValueError(f"regions must be at least 1, got {what}.")
            return cls.found(int(what), estimator.sharpness, estimator.random_state)
        if isinstance(what, KernelRegions):
            return cls(what, ByRegion(what))
        if what is None or isinstance(what, bool | Real):
            raise ValueError(
                "regions must be a number of regions, a clustering, columns of X that hold "
                f"shares, or a function of X; got {what!r}."
            )
        data = rows.data.X
        name = what if isinstance(data, Views) and isinstance(what, str) else None
        # All columns of a view that is named are shares.
        given = clone(what) if isinstance(what, GivenRegions) else GivenRegions(what)
        if name is not None:
            given = GivenRegions(slice(None))
        table = region_table(data, name)
        given.fit(table, rows.targets, rows.counts)
        return cls(given, ByRegion(None, given.shares(table)), name)

    @classmethod
    def found(cls, n_regions: int, sharpness: float | str, random_state: Any) -> Regions:
        """Regions that are found from the kernels."""
        learner = KernelRegions(n_regions, sharpness=sharpness, random_state=random_state)
        return cls(learner, ByRegion(learner))

    @property
    def n_regions(self) -> int:
        """How many there are; of regions yet to be found, how many there are at most."""
        if isinstance(self.learner, KernelRegions):
            return self.learner.n_regions
        return self.learner.n_regions_

    def refuse_unfit(self, learning: WeightLearning, outline: Any) -> None:
        """Raise if the solver does not take a loss with weights of regions."""
        n_kernels = self.n_regions * outline.n_kernels
        learning.by_region(self.n_regions).refuse_unfit(replace(outline, n_kernels=n_kernels))

    def kernels(
        self, rows: TrainingRows, sample_weight: np.ndarray | None, solver: Any
    ) -> TrainingKernels:
        """Kernels of the rows; a constant tells regions apart, so that it changes something."""
        kernels = TrainingKernels.of(rows, sample_weight, shift_invariant=False, solver=solver)
        if isinstance(self.learner, KernelRegions):
            return kernels
        source: Any = SourceWithShares(kernels.source, self.learner, self.name)
        return replace(kernels, source=source)

    def attributes(self, weights: np.ndarray, names: list[str]) -> dict[str, Any]:
        """Fitted attributes, from learnt weights of one or several losses.

        `names` are those of the kernels before there were regions.
        """
        tables = weights.reshape(len(weights), len(self.step.sizes_), -1)
        return {
            "weights_": tables if len(tables) > 1 else tables[0],
            "kernel_names_": names,
            "regions_": self.step.regions_ or self.learner,
            "region_sizes_": self.step.sizes_,
        }


def region_table(data: Any, name: str | None) -> Any:
    """The table of checked rows that shares are made from."""
    if isinstance(data, Views):
        chosen = data if name is None else data.take([data.position(name)], axis=1)
        lacking = [one for one in chosen if not chosen.has(one).all()]
        if lacking:
            raise ValueError(
                f"Regions are made from view {lacking[0]!r}, which some samples lack. Name a view "
                "that all samples have, or pass a number of regions."
            )
        return chosen.joined()
    if not isinstance(data, KernelStack):
        return data
    if data.features is None:
        raise ValueError(
            'With kernels="precomputed" these regions need a table of features: '
            "stack.with_features(table), for training and for new samples. Or pass a number of "
            "regions, which are found from the kernels."
        )
    return data.features


@dataclass(frozen=True)
class _WithShares:
    """Rows that a source has read, and their shares."""

    rows: Any
    shares: np.ndarray

    def __len__(self) -> int:
        return len(self.shares)


@dataclass(frozen=True)
class SourceWithShares:
    """A source whose blocks have the shares of their rows as features; methods as of others."""

    source: Source
    regions: GivenRegions
    name: str | None

    @property
    def names(self) -> list[str]:
        return self.source.names

    @property
    def n_samples(self) -> int:
        return self.source.n_samples

    @property
    def attributes(self) -> dict[str, Any]:
        return self.source.attributes

    def read(self, estimator: Any, X: Any) -> _WithShares:
        rows = self.source.read(estimator, X)
        return _WithShares(rows, self.regions.shares(region_table(rows, self.name)))

    def block(self, data: _WithShares, rows: Any, kernels: Any, columns: Any = None) -> Any:
        block = self.source.block(data.rows, rows, kernels, columns)
        return block.with_features(data.shares[rows])

    def keep(self, rows: np.ndarray) -> SourceWithShares:
        return replace(self, source=self.source.keep(rows))
