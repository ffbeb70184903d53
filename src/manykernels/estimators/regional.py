"""Kernels of regions: parameters, shares of samples in regions, grids of regions, sharpness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..domains import product_domain
from ..gating.descent import HeldOutCurve, Judge
from ..gating.regions import AnyRegions, ByRegion, GivenRegions, KernelRegions, as_regions
from ..kernels import KernelStack, Views
from ..kernels.on_demand import RegionalKernels
from ..kernels.tables import Table
from ..kernels.transforms import Chain
from ..losses.base import Loss
from ..solvers import Newton
from ..utils.folds import stratified_folds
from ..utils.storable import storable
from .base import KernelEstimator, estimator
from .grid import Grid, checked_region_numbers, checked_sharpnesses
from .inputs import Source, by_blocks
from .kernel_data import KernelPredictor, TrainingKernels
from .svm_cv import PreparedKernels, outputs_of
from .training_rows import TrainingRows
from .weights import WeightLearning


@estimator()
class RegionParameters:
    """Parameters and methods of estimators with kernel weights for every region.

    Parameters
    ----------
    regions : int, KernelRegions or GivenRegions, default=3
        Number of regions, found by k-means on the mean of the normalised kernels, with a sharpness
        that is chosen by held-out samples. :class:`~manykernels.gating.KernelRegions` has more
        options, such as ``KernelRegions(4, sharpness=2)``;
        :class:`~manykernels.gating.GivenRegions` are columns of X that hold shares, a clustering
        of scikit-learn, or a function of X. In a grid search their parameters are
        ``regions__sharpness`` and so on.

    References
    ----------
    Y. Lei, A. Binder, Ü. Doğan, M. Kloft. Localized multiple kernel learning – a convex approach.
    ACML 2016.
    """

    regions: AnyRegions = 3

    weights_: ClassVar[np.ndarray]
    kernel_names_: ClassVar[list[str]]
    region_sizes_: ClassVar[np.ndarray]
    _predictor: ClassVar[KernelPredictor]

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of the regions are ``regions__<parameter>``."""
        self.regions = params.pop("regions", self.regions)
        if any(name.startswith("regions__") for name in params):
            self.regions = as_regions(self.regions)
        return KernelEstimator.set_params(self, **params)  # type: ignore[arg-type]

    @by_blocks
    def memberships(self, X: Table) -> np.ndarray:
        """Return shares of the rows of X in the regions, (n_rows, n_regions), with sums of one."""
        check_is_fitted(self)
        blocks = self._predictor.blocks(self._predictor.source.read(self, X))
        return np.concatenate([block.row_shares for _, block in blocks])

    def region_weights(self) -> list[dict[str, Any]]:
        """Return the weight of every kernel in every region, one dict for each.

        ``region``, ``size`` (mean share of training samples), ``kernel`` and ``weight``; with
        separate weights of classes, ``class``, too.
        """
        check_is_fitted(self)
        several = self.weights_.ndim == 3
        tables = self.weights_ if several else self.weights_[None]
        return [
            {
                **({"class": self.classes_[k]} if several else {}),  # type: ignore[attr-defined]
                "region": region,
                "size": float(self.region_sizes_[region]),
                "kernel": name,
                "weight": float(weight),
            }
            for k, table in enumerate(tables)
            for region, weights in enumerate(table)
            for name, weight in zip(self.kernel_names_, weights, strict=True)
        ]


class RegionAttributes:
    """Attributes of estimators with kernel weights for every region.

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
    """


@dataclass(frozen=True)
class Regions:
    """Source of the shares of samples: `learner`, and the `step` that prepares kernels.

    Given regions are fitted already. `name` is that of the view from which they are made.
    """

    learner: KernelRegions | GivenRegions
    step: ByRegion
    name: str | None = None

    @classmethod
    def of(cls, estimator: KernelEstimator, rows: TrainingRows) -> Regions:
        """Return the regions of the parameter `regions`."""
        regions = as_regions(estimator.regions)
        if isinstance(regions, KernelRegions):
            regions._validate_params()
            return cls.found(regions)
        data, columns = rows.data.X, regions.columns
        name = columns if isinstance(data, Views) and isinstance(columns, str) else None
        given = clone(regions)
        if name is not None:
            given.columns = None
        table = region_table(data, name)
        given.fit(table, rows.targets, rows.counts)
        return cls(given, ByRegion(None, given.shares(table)), name)

    @classmethod
    def found(cls, learner: KernelRegions, **params: Any) -> Regions:
        """Return regions to be found from the kernels, with some `params` changed."""
        learner = clone(learner).set_params(**params)
        return cls(learner, ByRegion(learner))

    @property
    def n_regions(self) -> int:
        """Number of regions; of regions yet to be found, the largest possible number."""
        if isinstance(self.learner, KernelRegions):
            return cast(int, self.learner.n_regions)
        return self.learner.n_regions_

    def refuse_unfit(self, learning: WeightLearning, spec: Any) -> None:
        """Raise if the solver does not take a loss with weights of regions."""
        n_kernels = self.n_regions * spec.n_kernels
        learning.by_region(self.n_regions).refuse_unfit(replace(spec, n_kernels=n_kernels))

    def kernels(
        self, rows: TrainingRows, sample_weight: np.ndarray | None, solver: Any
    ) -> TrainingKernels:
        """Return the kernels of the rows, with constant ones, which distinguish regions."""
        kernels = TrainingKernels.of(rows, sample_weight, shift_invariant=False, solver=solver)
        if isinstance(self.learner, KernelRegions):
            return kernels
        source: Any = SourceWithShares(kernels.source, self.learner, self.name)
        return replace(kernels, source=source)

    def attributes(self, weights: np.ndarray, names: list[str]) -> dict[str, Any]:
        """Return the fitted attributes, given learnt weights of one or several losses.

        `names` are those of the plain kernels, without regions.
        """
        tables = weights.reshape(len(weights), len(self.step.sizes_), -1)
        return {
            "weights_": tables if len(tables) > 1 else tables[0],
            "kernel_names_": names,
            "regions_": self.step.regions_ or self.learner,
            "region_sizes_": self.step.sizes_,
        }


def region_table(data: Any, name: str | None) -> Any:
    """Return the table of checked rows from which shares are made."""
    if isinstance(data, Views):
        chosen = data if name is None else data.take([data.position(name)], axis=1)
        lacking = [view for view in chosen if not chosen.has(view).all()]
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

    def read(self, estimator: KernelEstimator, X: Table) -> _WithShares:
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
    regions : list of int or KernelRegions, default=(1, 4)
        Numbers of regions to try; 1 is plain multiple kernel learning. They are found by k-means
        on the mean of the normalised kernels, in every fold from its training part. The lists of
        ``KernelRegions([1, 3], sharpness=[1, 4])`` are all tried; see
        :class:`~manykernels.gating.KernelRegions`. With one region the sharpness has no effect:
        points that differ in nothing else are solved once, and have the same entries in
        `cv_results_`.

    Attributes
    ----------
    n_regions_ : int
        Chosen number of regions.
    sharpness_ : float
        Chosen sharpness; of one region, the smallest.
    """

    regions: AnyRegions = DEFAULT_REGIONS


def region_grid(estimator: RegionParameters) -> tuple[KernelRegions, dict[str, np.ndarray]]:
    """Return the regions of an estimator with CV, and the first axes of its grid."""
    regions = as_regions(estimator.regions)
    if isinstance(regions, GivenRegions):
        raise ValueError(
            f"regions of {type(estimator).__name__} are found from kernels, not given: pass "
            "numbers of regions, or KernelRegions(...). Or pass GivenRegions(...) to "
            "ConvexLocalizedSVC or ConvexLocalizedSVR, and search for the rest with GridSearchCV."
        )
    sharpness = regions.sharpness if isinstance(regions.sharpness, str) else 0.0
    clone(regions).set_params(n_regions=1, sharpness=sharpness)._validate_params()
    return regions, {
        "n_regions": checked_region_numbers(_listed(regions.n_regions), DEFAULT_REGIONS),
        "sharpness": checked_sharpnesses(
            None if isinstance(regions.sharpness, str) else _listed(regions.sharpness),
            DEFAULT_SHARPNESSES,
        ),
    }


def _listed(values: Any) -> Any:
    return [values] if isinstance(values, Real) else values


@dataclass(frozen=True)
class KernelsByRegion:
    """Kernels of one training part for all numbers of regions and sharpnesses of a grid.

    Regions are found once for each number; the sharpness changes only the shares of samples.
    """

    grid: Grid
    regions: KernelRegions

    def __call__(self, train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
        stack = transform.fit_transform(train.stack, sample_weight=train.counts)
        block = transform.transform(test.stack)
        numbers, sharpnesses = self.grid.values["n_regions"], self.grid.values["sharpness"]
        for i in np.argsort(numbers).tolist():
            if numbers[i] == 1:
                everywhere = tuple((i, k) for k in range(len(sharpnesses)))
                yield PreparedKernels.centred(stack, block, places=everywhere)
                continue
            regions = clone(self.regions).set_params(n_regions=int(numbers[i]), sharpness="auto")
            regions.fit_part(stack, train.counts)
            order = np.argsort(sharpnesses)
            kernels = by_sharpness(regions, sharpnesses[order].tolist(), stack, block)
            for k, prepared in zip(order.tolist(), kernels, strict=True):
                yield replace(prepared, places=((i, k),))


def by_sharpness(
    regions: KernelRegions,
    sharpnesses: Iterable[float],
    stack: Any,
    block: Any,
    sample_weight: np.ndarray | None = None,
) -> Iterator[PreparedKernels]:
    """Yield kernels of fitted regions for each sharpness, centred by means of these weights."""
    for sharpness in sharpnesses:
        if sharpness == 0.0:
            # All shares are equal: kernels and weights are those without regions.
            yield PreparedKernels.centred(stack, block, sample_weight)
            continue
        sharp = regions.with_sharpness(float(sharpness))
        rows, columns = np.sqrt(sharp.shares(block)).T, np.sqrt(sharp.shares(stack)).T
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
        """Return the same regions, to be found with the chosen sharpness."""
        learner = regions.learner
        if not isinstance(learner, KernelRegions) or learner.sharpness != "auto":
            return regions
        best = self._best(learner) if regions.n_regions > 1 else CANDIDATES[0]
        n_regions = regions.n_regions if best > 0.0 else 1
        return Regions.found(learner, n_regions=n_regions, sharpness=best)

    def _best(self, learner: KernelRegions) -> float:
        n_rows = len(self.rows)
        labels = np.zeros(n_rows, int) if self.rows.labels is None else self.rows.labels
        folds = stratified_folds(labels, self.rows.groups, _N_FOLDS, self.rows.counts)
        if len(folds) < 2:
            # Nothing says that regions are better than none.
            return CANDIDATES[0]
        indices = np.arange(n_rows)
        by_fold = [self._outputs(learner, np.delete(indices, test), test) for test in folds]
        samples = np.concatenate(folds)
        judged = [
            self.judge(np.vstack(outputs), samples) for outputs in zip(*by_fold, strict=True)
        ]
        return CANDIDATES[HeldOutCurve(judged).clearly_best]

    def _outputs(
        self, learner: KernelRegions, train: np.ndarray, test: np.ndarray
    ) -> list[np.ndarray]:
        """Return outputs at the samples `test` for every candidate."""
        raw, counts = self.kernels.stack, self.rows.counts
        transform = self.kernels.preparation(self.normalize, center=False)
        counts = None if counts is None else counts[train]
        stack = transform.fit_transform(raw[np.ix_(train, train)], sample_weight=counts)
        block = transform.transform(raw[np.ix_(test, train)])
        weights = None if self.sample_weight is None else self.sample_weight[train]
        regions = clone(learner).fit_part(stack, counts)
        return [
            self._outputs_of(prepared, train)
            for prepared in by_sharpness(regions, CANDIDATES, stack, block, weights)
        ]

    def _outputs_of(self, kernels: PreparedKernels, train: np.ndarray) -> np.ndarray:
        domain = product_domain(self.learning.domain, kernels.n_regions)
        solutions = [
            Newton().solve(loss, domain, tol=self.learning.tol)
            for loss in self.losses(kernels.stack, train)
        ]
        return outputs_of(solutions, kernels.block)
