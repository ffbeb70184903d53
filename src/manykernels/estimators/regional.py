"""Kernels of regions: parameters, shares of samples in regions, grids of regions, sharpness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..domains import product_domain
from ..gating.descent import HeldOutCurve, Judge
from ..gating.regions import ByRegion, GivenRegions, KernelRegions
from ..kernels import KernelStack, Views
from ..kernels.on_demand import RegionalKernels
from ..kernels.transforms import Chain
from ..losses.base import Loss
from ..solvers import Newton
from ..utils.folds import stratified_folds
from ..utils.sklearn import Interval, StrOptions
from ..utils.storable import storable
from .base import estimator
from .inputs import Source, TrainingRows, by_blocks
from .kernel_data import KernelPredictor, TrainingKernels, WeightLearning
from .search import Grid, checked_region_numbers, checked_sharpnesses
from .svm_cv import PreparedKernels, outputs_of


@estimator()
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {"random_state": ["random_state"]}


# Methods of estimators with regions, which assign them.


@by_blocks
def memberships(self: Any, X: Any) -> np.ndarray:
    """Shares of the rows of X in the regions, (n_rows, n_regions); each row sums to one."""
    check_is_fitted(self)
    predictor: KernelPredictor = self._predictor
    blocks = predictor.blocks(predictor.source.read(self, X))
    return np.concatenate([block.row_shares for _, block in blocks])


def region_weights(self: Any) -> list[dict[str, Any]]:
    """The weight of every kernel in every region, one dict for each.

    ``region``, ``size`` (mean share of training samples), ``kernel`` and ``weight``; where
    classes have weights of their own, ``class``, too.
    """
    check_is_fitted(self)
    several = self.weights_.ndim == 3
    tables = self.weights_ if several else self.weights_[None]
    return [
        {
            **({"class": self.classes_[k]} if several else {}),
            "region": region,
            "size": float(self.region_sizes_[region]),
            "kernel": name,
            "weight": float(weight),
        }
        for k, table in enumerate(tables)
        for region, weights in enumerate(table)
        for name, weight in zip(self.kernel_names_, weights, strict=True)
    ]


@estimator()
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

    def refuse_unfit(self, learning: WeightLearning, spec: Any) -> None:
        """Raise if the solver does not take a loss with weights of regions."""
        n_kernels = self.n_regions * spec.n_kernels
        learning.by_region(self.n_regions).refuse_unfit(replace(spec, n_kernels=n_kernels))

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


@storable
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


# -- Kernels of regions at every point of a grid: numbers of regions, and how sharp they are ------


# By default plain multiple kernel learning, and regions that are clear. Measured on six data sets
# and GAUSS4 (of the localized benchmarks): three regions, or a sharpness of 0.5, were no better
# where kernels are rich, and worse with the simple kernels of GAUSS4.
DEFAULT_REGIONS = (1, 4)
DEFAULT_SHARPNESSES = (2.0, 8.0)


@estimator()
class RegionGridParameters:
    """Parameters of estimators that choose their regions.

    Parameters
    ----------
    regions : array-like of int, optional
        Numbers of regions to try; by default 1, which is plain multiple kernel learning, and 4.
        They are found by k-means on the mean of the normalised kernels, in every fold from its
        training part; see :class:`~manykernels.gating.KernelRegions`.
    sharpnesses : array-like of float in [0, inf], optional
        How sharp their boundaries may be; by default 2 and 8. See
        :class:`ConvexLocalizedSVC`. With one region it plays no part: points that differ in
        nothing else are solved once, and have the same entries in `cv_results_`.

    Attributes
    ----------
    n_regions_ : int
        The number of regions that was chosen.
    sharpness_ : float
        How sharp they are; of one region, the smallest of `sharpnesses`.
    """

    regions: Any = None
    sharpnesses: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {"sharpnesses": ["array-like", None]}


def region_values(estimator: Any) -> dict[str, np.ndarray]:
    """The first axes of the grid, from the parameters regions and sharpnesses."""
    return {
        "n_regions": checked_region_numbers(estimator.regions, DEFAULT_REGIONS),
        "sharpness": checked_sharpnesses(estimator.sharpnesses, DEFAULT_SHARPNESSES),
    }


def chosen_regions(estimator: Any, params: dict[str, Any]) -> Regions:
    """Regions at one point of the grid, to be found from the kernels of all samples."""
    return Regions.found(params["n_regions"], params["sharpness"], estimator.random_state)


@dataclass(frozen=True)
class KernelsByRegion:
    """Kernels of one training part for all numbers of regions and sharpnesses of a grid.

    Regions are found once for each number; the sharpness changes only the shares of samples.
    """

    grid: Grid
    random_state: Any

    def __call__(self, train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
        stack = transform.fit_transform(train.stack, sample_weight=train.counts)
        block = transform.transform(test.stack)
        numbers, sharpnesses = self.grid.values["n_regions"], self.grid.values["sharpness"]
        for i in np.argsort(numbers).tolist():
            if numbers[i] == 1:
                everywhere = tuple((i, k) for k in range(len(sharpnesses)))
                yield PreparedKernels.centred(stack, block, places=everywhere)
                continue
            regions = KernelRegions(int(numbers[i]), random_state=self.random_state)
            regions.fit_part(stack, train.counts)
            order = np.argsort(sharpnesses)
            found = by_sharpness(regions, sharpnesses[order].tolist(), stack, block)
            for k, prepared in zip(order.tolist(), found, strict=True):
                yield replace(prepared, places=((i, k),))


def by_sharpness(
    regions: KernelRegions,
    sharpnesses: Iterable[float],
    stack: Any,
    block: Any,
    sample_weight: np.ndarray | None = None,
) -> Iterator[PreparedKernels]:
    """Kernels of fitted regions, centred by means with these weights, for each sharpness."""
    for sharpness in sharpnesses:
        if sharpness == 0.0:
            # All shares are equal: kernels and weights are those without regions.
            yield PreparedKernels.centred(stack, block, sample_weight)
            continue
        own = regions.with_sharpness(float(sharpness))
        rows, columns = (np.sqrt(own.shares(part)).T for part in (block, stack))
        yield PreparedKernels.centred(
            RegionalKernels(stack, columns, columns),
            RegionalKernels(block, rows, columns),
            sample_weight,
            n_regions=regions.n_regions_,
        )


# -- How sharp regions are to be, chosen by held-out samples --------------------------------------
#
# As for gates (:mod:`manykernels.gating.descent`): of the candidates with no more error than
# plain weights, which are the sharpness 0, the one with the least loss of held-out samples is
# taken, if it is less by two standard errors. Otherwise all samples are in one region.


#: Plain weights, then from shares that hardly differ to regions that are almost disjoint.
CANDIDATES = (0.0, 0.5, 2.0, 8.0)
# As many as judge the steps of a gate: each takes as long as four fits to two thirds of the rows.
_N_FOLDS = 3


@dataclass(frozen=True)
class SharpnessChoice:
    """Judges candidates by samples that neither regions nor weights have seen.

    `losses` makes the losses of some training samples on given kernels; `judge` knows the targets
    of all samples. `sample_weight` is that of the means by which kernels are centred.
    """

    rows: TrainingRows
    kernels: TrainingKernels
    normalize: str | None
    learning: WeightLearning
    losses: Callable[[Any, np.ndarray], list[Loss]]
    judge: Judge
    sample_weight: np.ndarray | None = None

    def of(self, regions: Regions) -> Regions:
        """The same regions, to be found with the sharpness that was chosen."""
        learner = regions.learner
        if not isinstance(learner, KernelRegions) or learner.sharpness != "auto":
            return regions
        best = self._best(learner) if learner.n_regions > 1 else CANDIDATES[0]
        n_regions = learner.n_regions if best > 0.0 else 1
        return Regions.found(n_regions, best, learner.random_state)

    def _best(self, learner: KernelRegions) -> float:
        n_rows = len(self.rows)
        labels = np.zeros(n_rows, int) if self.rows.labels is None else self.rows.labels
        folds = stratified_folds(labels, self.rows.groups, _N_FOLDS, self.rows.counts)
        if len(folds) < 2:
            # Nothing says that regions are better than none.
            return CANDIDATES[0]
        every = np.arange(n_rows)
        parts = [self._outputs(learner, np.delete(every, test), test) for test in folds]
        samples = np.concatenate(folds)
        judged = [self.judge(np.vstack(outputs), samples) for outputs in zip(*parts, strict=True)]
        return CANDIDATES[HeldOutCurve(judged).clearly_best]

    def _outputs(
        self, learner: KernelRegions, train: np.ndarray, test: np.ndarray
    ) -> list[np.ndarray]:
        """Outputs at the samples `test` for every candidate."""
        raw, counts = self.kernels.stack, self.rows.counts
        transform = self.kernels.preparation(self.normalize, center=False)
        counts = None if counts is None else counts[train]
        stack = transform.fit_transform(raw[np.ix_(train, train)], sample_weight=counts)
        block = transform.transform(raw[np.ix_(test, train)])
        weights = None if self.sample_weight is None else self.sample_weight[train]
        found = KernelRegions(learner.n_regions, random_state=learner.random_state)
        found.fit_part(stack, counts)
        return [
            self._outputs_of(prepared, train)
            for prepared in by_sharpness(found, CANDIDATES, stack, block, weights)
        ]

    def _outputs_of(self, kernels: PreparedKernels, train: np.ndarray) -> np.ndarray:
        domain = product_domain(self.learning.domain, kernels.n_regions)
        solutions = [
            Newton().solve(loss, domain, tol=self.learning.tol)
            for loss in self.losses(kernels.stack, train)
        ]
        return outputs_of(solutions, kernels.block)
