"""Training data of explicit features: moments of all rows, and a sample of rows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import compute_class_weight

from ..kernels.auto import kernels_for
from ..kernels.columns import trained_columns
from ..kernels.completion import explaining_lacking_rows
from ..kernels.tables import SharedTable, Table, naming
from ..kernels.views import row_keys
from ..scale import Nystrom, RandomFeatures
from ..scale.blocks import comes_in_blocks, row_blocks, values_of_rows
from ..scale.features import Approximation, FeatureMap, require_room, rows_for_errors
from ..scale.moments import Accumulator, ClassTargets, NumberTargets, PartMoments, TargetCoding
from ..scale.rows import Block, RowBlocks, TableRows
from ..scale.sampling import Census, Plan, Reservoir, Sample, first_rows, units_of
from ..utils.files import GIB
from ..utils.folds import (
    about_groups,
    group_numbers,
    numbered,
    splits_of_rows,
    warn_of_untested,
)
from ..utils.numerics import ROUNDING, available_memory, n_threads
from ..utils.sklearn import (
    StrOptions,
    check_classes,
    check_y,
    num_samples,
    safe_indexing,
    warn_caller,
)
from .base import KernelEstimator, estimator
from .inputs import (
    FEATURES,
    TableSource,
    copy_with_features,
    groups_of,
    may_have_gaps,
    read_training,
)
from .training_rows import checked_groups, refuse_useless_groups, rows_that_count


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
    def classifies(self) -> bool:
        """Whether the targets are classes."""
        return isinstance(self.targets, ClassTargets)

    @property
    def complete(self) -> bool:
        """Whether the sample has all rows."""
        return len(self.sample) == sum(part.n_rows for part in self.moments.parts)

    @property
    def counts(self) -> np.ndarray | None:
        """Number of samples that each row of the sample stands for; None if always one."""
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

    @cached_property
    def repeats(self) -> np.ndarray:
        """Numbers of the rows of the sample, the same for equal rows with equal targets."""
        targets = np.asarray(self.sample.y).reshape(len(self.sample), -1).tolist()
        return numbered(zip(row_keys(self.sample.X), map(tuple, targets), strict=True))

    @property
    def weights(self) -> np.ndarray | None:
        """Weight of each row of the sample: its count times the weight of its class."""
        assert self.sample.y is not None
        factors = self.targets.factors(self.sample.y)
        if factors is None:
            return self.counts
        return factors if self.counts is None else factors * self.counts


# -- From rows in any container to moments of explicit features: what fits on features share ------
#
# Two passes. The first draws a sample of the rows and counts classes. The sample is where kernels
# learn their widths and approximations their landmarks, and by whose left-out rows a model judges
# itself; with no more rows than that it is all of them, and everything is as with kernel matrices.
# The second pass adds up the moments. Where rows are added later, by ``partial_fit``, those of the
# first call take the place of the sample where kernels and landmarks are concerned.


# Rows of the sample. Leaving them out takes a matrix of as many rows and columns, 128 MB; with
# 4000 rows the standard error of an accuracy is 0.8 % at most.
SAMPLE_ROWS = 4000
# Most rows of a given group if the sample has not all rows: it then has twenty groups or more.
_LARGEST_GROUP = 200
# Most groups that are assigned to folds one by one; more are assigned at random, at no cost.
_MOST_DEALT = 10_000
# Folds with cv=None, as in scikit-learn.
_DEFAULT_FOLDS = 5
# Parameters that a second call of partial_fit cannot change.
_OF_ROWS = ("kernels", "approximation", "normalize", "class_weight", "cv")
# Rows of every class in it at least, so that also a rare class has a mean and a spread.
_ROWS_OF_CLASS = 50


@dataclass(frozen=True)
class Gathering:
    """Builds :class:`FeatureRows` from the X and y passed to ``fit``.

    `class_weight` and `classifies` say what the targets are. `cv` is the parameter of estimators
    that choose, or a number of folds; zero without splits.
    """

    estimator: KernelEstimator
    approximation: Approximation
    classifies: bool
    class_weight: dict[Any, float] | str | None = None
    cv: Any = 0

    def gather(
        self,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> FeatureRows:
        """Run all passes over X, and return its moments."""
        blocks = self.blocks(X, y, sample_weight)
        if groups is None:
            return self.gathered(blocks, y)
        if comes_in_blocks(X):
            groups = values_of_rows(X, groups, "groups")
        return self.gathered(blocks, y, checked_groups(groups, blocks.count()))

    def gathered(
        self, blocks: RowBlocks, y: ArrayLike | None, groups: np.ndarray | None = None
    ) -> FeatureRows:
        """Run all passes over the rows; their targets are `y` unless they come with the blocks.

        `groups` are labels of the groups of all rows, if some were given.
        """
        units = self.units(blocks) if groups is None else self._units_of(groups)
        reservoir = self.reservoir(units, whole=groups is not None)
        sample, census = reservoir.draw(blocks)
        targets = self.coding(sample, census)
        if groups is not None:
            self._refuse_class_in_one_group(groups, blocks, sample, census)
        plan = self._plan(blocks, y, sample, census, units, groups)
        accumulator, source, attributes = self._accumulator(
            sample, targets, plan, census.n_counting
        )
        if groups is not None:
            attributes["groups_"] = group_numbers(groups[sample.rows])
        moments = blocks.reduce(accumulator, accumulator.merge)
        drawn = reservoir.drawn(sample, census)
        stream = FeatureStream(self, accumulator, moments, drawn, source, attributes, units=units)
        return stream.rows()

    def _units_of(self, groups: np.ndarray) -> np.ndarray:
        """Return the first row of the given group of each row; raise if it cannot be left out.

        If the estimator is `verbose`, what is kept together is printed.
        """
        refuse_useless_groups(groups)
        numbers = group_numbers(groups)
        sizes = np.bincount(numbers)
        if len(groups) > SAMPLE_ROWS and sizes.max() > _LARGEST_GROUP:
            label = groups.tolist()[int(np.argmax(numbers == sizes.argmax()))]
            raise ValueError(
                f"Group {label!r} has {sizes.max()} rows, and may have {_LARGEST_GROUP} at most: "
                f"with approximation={self.estimator.approximation!r} and more than {SAMPLE_ROWS} "
                "rows, models judge themselves by a sample of whole groups. Pass some of the rows "
                "of large groups, or approximation=None."
            )
        message = about_groups(numbers, given=True)
        if message and self.estimator.verbose:
            print(f"[{type(self.estimator).__name__}] {message}")
        return first_rows(numbers)

    def _refuse_class_in_one_group(
        self, groups: np.ndarray, blocks: RowBlocks, sample: Sample, census: Census
    ) -> None:
        """Raise, or warn, if a class is in one group only, where all targets are in memory."""
        rows, y = sample.rows, sample.y
        if len(sample) < census.n_counting:
            if not isinstance(blocks, TableRows):
                return
            weights = np.ones(len(groups)) if blocks.weight is None else blocks.weight
            rows = np.flatnonzero(weights)
            y = np.asarray(blocks.y)[rows]
        if self.classifies and y is not None:
            classes, labels = np.unique(y, return_inverse=True)
            refuse_useless_groups(groups[rows], labels, classes)

    def blocks(self, X: Table, y: ArrayLike | None, sample_weight: ArrayLike | None) -> RowBlocks:
        """The rows in blocks, checked as they are read."""
        size = self.approximation.block_size
        if self.classifies and isinstance(y, np.ndarray | list):
            y = check_y(y, multi_output=False)
            check_classes(y)
        gaps = may_have_gaps(self.estimator)
        return row_blocks(X, y, sample_weight, block_size=size, needs_y=True, allow_nan=gaps)

    @property
    def n_folds(self) -> int:
        """Number of folds where there are splits, whatever rows there are."""
        if self.cv is None:
            return _DEFAULT_FOLDS
        if isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool):
            return int(self.cv)
        raise ValueError(
            f"cv={self.cv!r} does not go with approximation={self.estimator.approximation!r} on X "
            "that is not in memory, whose rows are divided before they are read: pass a number of "
            "folds, such as cv=5."
        )

    def plan_of_first(
        self, sample: Sample, complete: bool, units: np.ndarray | None = None
    ) -> Plan:
        """Splits of rows that are not all known; those of `sample` are dealt if it is `complete`.

        It is if it has all rows so far. Rows of one of the `units` are in the same fold.
        """
        n_folds, seed = self.n_folds, self.approximation.random_state
        if n_folds == 0:
            return Plan.whole()
        if not complete:
            return Plan.folds(n_folds, seed, units)
        assert sample.y is not None
        labels = sample.y if self.classifies else np.zeros(len(sample), dtype=np.intp)
        plan = Plan.dealt(n_folds, sample.rows, labels, seed, units)
        if plan.n_splits < 2:
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be judged by folds: there are too few "
                f"samples (n_samples = {len(sample)}). Choose its parameters yourself, with the "
                "estimator without CV in its name."
            )
        return plan

    def _plan(
        self,
        blocks: RowBlocks,
        y: ArrayLike | None,
        sample: Sample,
        census: Census,
        units: np.ndarray | None,
        groups: np.ndarray | None,
    ) -> Plan:
        """Splits of rows that have been counted."""
        by_number = self.cv is None or isinstance(self.cv, int | np.integer)
        if by_number or not blocks.random_access:
            complete = len(sample) == census.n_counting
            few = units is not None and len(np.unique(units)) <= _MOST_DEALT
            if groups is None or complete or not few or self.n_folds == 0:
                plan = self.plan_of_first(sample, complete, units)
                if self.classifies and complete and groups is None and plan.n_splits > 0:
                    classes, labels = np.unique(np.asarray(sample.y), return_inverse=True)
                    tests = [plan.tested(sample.rows, k) for k in range(plan.n_splits)]
                    warn_of_untested(labels, classes, tests)
                return plan
            # Random folds of few groups would be uneven, or empty.
            rows = np.arange(census.n_rows)
            labels = np.zeros(len(rows), dtype=np.intp)
            if isinstance(blocks, TableRows) and self.classifies:
                labels = np.asarray(blocks.y)
            return Plan.dealt(self.n_folds, rows, labels, self.approximation.random_state, units)
        if isinstance(self.cv, str | tuple):
            raise ValueError(
                f"cv={self.cv if isinstance(self.cv, str) else 'a validation set'!r} does not go "
                f"with approximation={self.estimator.approximation!r}, where folds are sums of "
                "moments: pass a number of folds, a splitter or splits, or approximation=None."
            )
        y = np.asarray(y)
        splits = splits_of_rows(self.cv, y, groups, classifier=self.classifies)
        return Plan.given(splits, len(y))

    def units(self, blocks: RowBlocks) -> np.ndarray | None:
        """Rows that are left out together, found in a pass; None if no rows are left out."""
        return units_of(blocks)

    def reservoir(self, units: np.ndarray | None = None, *, whole: bool = False) -> Reservoir:
        """Return the reservoir that draws the sample; rows of a unit are drawn together."""
        per_class = _ROWS_OF_CLASS if self.classifies else None
        seed = self.approximation.random_state
        return Reservoir(SAMPLE_ROWS, seed, per_class, units, whole=whole)

    def coding(self, sample: Sample, census: Census | None, classes: Any = None) -> TargetCoding:
        """Return the coding of targets as numbers."""
        y = sample.y
        assert y is not None
        if not self.classifies:
            values = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
            return NumberTargets(np.average(values, axis=0, weights=sample.weight))
        if census is not None:
            classes = census.classes
        name = type(self.estimator).__name__
        if classes is None or len(classes) < 2:
            found = [] if classes is None else classes.tolist()
            raise ValueError(
                f"{name} needs samples of at least 2 classes, got {len(found)} class: {found}."
            )
        return ClassTargets(classes, self._class_factors(classes, census))

    def _class_factors(self, classes: np.ndarray, census: Census | None) -> np.ndarray | None:
        given = self.class_weight
        if given is None:
            return None
        masses = None if census is None else census.weights
        factors = compute_class_weight(given, classes=classes, y=classes, sample_weight=masses)
        if not np.all((factors > 0) & (factors < np.inf)):
            raise ValueError(
                f"class_weight must be positive and finite for every class, got {given}."
            )
        return np.asarray(factors)

    def copies(self, targets: TargetCoding, plan: Plan) -> int:
        """Return the number of moments that are in memory at once."""
        # Of the parts in every thread, and one more for each while they are added.
        return (plan.n_parts + 1) * n_threads()

    def _accumulator(
        self, sample: Sample, targets: TargetCoding, plan: Plan, n_rows: int | None
    ) -> tuple[Accumulator, TableSource, dict[str, Any]]:
        """Return the accumulator of moments, with kernels and features learnt from the sample."""
        estimator, seed = self.estimator, self.approximation.random_state
        if sample.weight is not None:
            rows_that_count(type(estimator).__name__, sample.weight)
        data = read_training(estimator, sample.X)
        union = kernels_for(data.X, estimator.kernels)
        shared, factors = SharedTable(data.X), targets.factors(np.asarray(sample.y))
        weights = sample.weight
        if factors is not None:
            weights = factors if weights is None else weights * factors
        numbered = "" if len(sample) == n_rows else f"In a sample of {len(sample)} rows"
        with naming(numbered), explaining_lacking_rows(union, data.X):
            union.fit(shared, sample_weight=weights)
        spherical = estimator.normalize == "spherical"
        features = self.approximation.features_of(union, data.X, n_rows, spherical=spherical)
        n_kernels, copies = len(union.kernels_), self.copies(targets, plan)
        require_room(features.n_features, targets.width, copies, n_kernels)
        judged = rows_for_errors(features, data.X, seed)
        sampled = features(judged)
        origin = sampled.mean(axis=0)
        # Less an origin, a constant would be a rounding error that looks like any other feature.
        spread = np.abs(sampled - origin).max(axis=0)
        origin[spread <= ROUNDING * np.abs(origin)] = 0.0
        accumulator = Accumulator(features, origin, targets, plan)
        columns = trained_columns(union, data.X)
        source = TableSource(union, safe_indexing(data.X, np.arange(1)), columns)
        errors = features.errors(judged)
        attributes = {**data.features, **features.attributes, "approximation_errors_": errors}
        return accumulator, source, {**attributes, "union_": union}


class FeatureStream:
    """Moments and a sample of rows, to which more rows can be added.

    Kernels and landmarks have been learnt.
    """

    def __init__(
        self,
        gathering: Gathering,
        accumulator: Accumulator,
        moments: PartMoments | None,
        drawn: Any,
        source: TableSource,
        attributes: dict[str, Any],
        classes: Any = None,
        units: np.ndarray | None = None,
    ) -> None:
        self.gathering, self.classes = gathering, classes
        self.units = units
        self.moments = moments
        self._accumulator, self._drawn = accumulator, drawn
        self._source, self._attributes = source, attributes
        # As they are now: the estimator may be given others.
        self._parameters = {
            name: clone(value, safe=False)
            for name, value in _parameters_of_rows(gathering.estimator).items()
        }

    @classmethod
    def begun(cls, gathering: Gathering, block: Block, classes: Any = None) -> Self:
        """Kernels and landmarks learnt from the first block, and no rows added yet.

        `classes` are all that there may be, if they are known.
        """
        first = Sample(block.rows, block.X, block.y, block.weight)
        found = classes
        if gathering.classifies and classes is None:
            found = np.unique(np.asarray(block.y))
        targets = gathering.coding(first, None, found)
        plan = gathering.plan_of_first(first, True)
        parts = gathering._accumulator(first, targets, plan, None)
        return cls(gathering, parts[0], None, None, parts[1], parts[2], classes)

    def add(self, block: Block) -> None:
        """Add rows, numbered after those that there are."""
        if self._drawn is not None:
            block = replace(block, start=self._drawn.census.n_rows)
        self._learn_classes(np.asarray(block.y))
        self.moments = self._accumulator(self.moments, block)
        self._drawn = self.gathering.reservoir(self.units).accumulate(self._drawn, block)

    def refuse_other_parameters(self, estimator: KernelEstimator) -> None:
        """Raise if the estimator has other parameters now that sums over rows depend on."""
        for name, value in _parameters_of_rows(estimator).items():
            if not _same(value, self._parameters[name]):
                then, now = (
                    " ".join(repr(one).split()) for one in (self._parameters[name], value)
                )
                raise ValueError(
                    f"{name} was changed after rows were learnt from: it was {then} and is {now}, "
                    "and rows are not kept to learn from again. Use a fresh model, "
                    "sklearn.base.clone(model), or fit all rows."
                )

    def read(self, X: Table) -> Any:
        """Rows with the columns of those before, and what these hold; others are refused."""
        features = {name: self._attributes[name] for name in FEATURES if name in self._attributes}
        return self._source.read(copy_with_features(self.gathering.estimator, features), X)

    def copy(self) -> Self:
        """Return a copy, to which rows can be added without changing this object."""
        new = copy(self)
        if self.moments is not None:
            new.moments = self.moments.copy()
        return new

    def _learn_classes(self, y: np.ndarray) -> None:
        """Add classes that are seen for the first time, unless all were named."""
        targets = self._accumulator.targets
        if self.classes is not None or not isinstance(targets, ClassTargets):
            return
        new = np.setdiff1d(y, targets.classes)
        if len(new) == 0:
            return
        joined = np.union1d(targets.classes, new)
        if self.moments is not None:
            places = np.searchsorted(joined, targets.classes)
            parts = [part.with_targets_at(places, len(joined)) for part in self.moments.parts]
            self.moments = PartMoments(parts)
        wider = ClassTargets(joined, self.gathering._class_factors(joined, None))
        self._accumulator = replace(self._accumulator, targets=wider)

    @property
    def known_classes(self) -> np.ndarray:
        """Classes named in advance, otherwise those of the rows so far."""
        targets = self._accumulator.targets
        assert isinstance(targets, ClassTargets)
        return targets.classes

    def rows(self) -> FeatureRows:
        """Return the moments so far, without the classes that have no rows yet."""
        assert self.moments is not None
        accumulator, moments = self._accumulator, self.moments
        targets = accumulator.targets
        if isinstance(targets, ClassTargets):
            masses = np.sum([part.target_sums() for part in moments.parts], axis=0)
            if not np.all(masses > 0.0):
                seen = np.flatnonzero(masses > 0.0)
                targets, moments = targets.at(seen), moments.of_targets(seen)
        sample = self.gathering.reservoir(self.units).sample(self._drawn)
        return FeatureRows(
            accumulator.features,
            moments,
            targets,
            sample,
            accumulator.features(sample.X) - accumulator.origin,
            accumulator.plan,
            accumulator.origin,
            self._source,
            self._attributes,
            self,
        )


def _parameters_of_rows(estimator: KernelEstimator) -> dict[str, Any]:
    """Parameters that moments depend on; others, such as p and λ, come after these."""
    params: dict[str, Any] = estimator.get_params(deep=False)
    return {name: params[name] for name in _OF_ROWS if name in params}


def _same(first: Any, second: Any) -> bool:
    """Whether two parameters, of which one may be a copy of the other, are equal."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if hasattr(first, "get_params"):
        return _same(first.get_params(deep=False), second.get_params(deep=False))
    if isinstance(first, Mapping):
        return list(first) == list(second) and _same(list(first.values()), list(second.values()))
    if isinstance(first, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_same(*pair) for pair in pairs)
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    if hasattr(first, "equals"):
        return bool(first.equals(second))  # data frames
    if sparse.issparse(first):
        return first.shape == second.shape and (first != second).nnz == 0
    if hasattr(first, "__dict__") and type(first).__eq__ is object.__eq__:
        return _same(vars(first), vars(second))
    return bool(first == second)


# -- Estimators that also learn on explicit features: any number of rows, in memory or of dask ----


# With more rows than this, approximation="auto" approximates: ten kernel matrices of so many rows
# take 2 GB, and a fit about a minute. Below, explicit features save little.
AUTO_ROWS = 5000


#: Approximations with default parameters, by name.
BY_NAME: dict[str, type[Approximation]] = {"nystrom": Nystrom, "random": RandomFeatures}


@estimator()
class ApproximationParameters:
    """Parameters and attributes of estimators that can learn on explicit features.

    Parameters
    ----------
    approximation : Nystrom, RandomFeatures, ExactFeatures, name or None, default=None
        Replace kernels by explicit features, whose products sum up to them: the fit then takes one
        pass over the rows for their sample and one for their moments, and its memory depends on
        the number of features, not of rows. X and y may then be whatever
        :func:`~manykernels.scale.row_blocks` reads, arrays and data frames of dask among them.
        "nystrom" and "random" are ``Nystrom()`` and ``RandomFeatures()``, and "auto" is
        ``Nystrom()`` for more than 5000 rows, with a warning that says so. None learns from kernel
        matrices, which is more accurate; if a search takes more than a minute, a warning says how
        long.

    Attributes
    ----------
    approximation_errors_ : ndarray of shape (n_kernels,)
        With an approximation: relative error of each kernel matrix of up to 500 training rows
        that are no landmarks, after centring, in the Frobenius norm.
    landmarks_ : table
        With :class:`~manykernels.Nystrom`: the rows that others are compared with.
    coef_ : ndarray of shape (n_features, n_outputs), (n_columns,) or (n_outputs, n_columns)
        With an approximation, in the place of `dual_coef_`: coefficients of the features of all
        kernels, one kernel after the other, centred and normalised. Without one, only if all
        kernels with a weight are linear in the columns: coefficients of the columns in their own
        units, as those of scikit-learn's linear models; of several views a dict by view, of
        those whose kernels are all linear. Outputs are ``X @ coef_.T`` and a constant.
    """

    approximation: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "approximation": [Approximation, StrOptions({"auto", *BY_NAME}), None]
    }


def approximation_for(estimator: KernelEstimator, X: Table) -> Approximation | None:
    """Return the approximation that an estimator uses for this X, or None."""
    given: Any = estimator.get_params(deep=False).get("approximation")
    if given != "auto":
        return BY_NAME[given]() if isinstance(given, str) else given
    if not comes_in_blocks(X):
        n_rows = int(num_samples(X))
        if n_rows <= AUTO_ROWS:
            return None
        size = f"{n_rows} rows are more than {AUTO_ROWS}"
    else:
        size = "X is not in memory"
    name = type(estimator).__name__
    warn_caller(
        f'{size}: {name}(approximation="auto") approximates the kernels by Nystrom(). Pass '
        "approximation=Nystrom(n_landmarks=...) to choose how well, or None for exact kernel "
        "matrices.",
        UserWarning,
    )
    return Nystrom()


# Processor time of a fit to kernel matrices, measured for MKRidge, MKFDA and their searches on 500
# to 4898 rows (docs/benchmarks/approximation.md): each model reads the kernels, at so many seconds
# per entry, and factorises a matrix of n rows, at so many per n³.
_SECONDS_PER_ENTRY, _SECONDS_OF_FACTORS = 4e-9, 5.5e-12
# Models of a fit whose p and λ are given: one for each step of the kernel weights.
_STEPS = 5
# Folds of a search if their number is not known, as by default.
_FOLDS = 5
# A fit that takes longer is announced, in seconds.
_LONG = 60.0


def announce_long_fit(
    estimator: KernelEstimator, n_rows: int, n_kernels: int, n_points: int | None = None
) -> None:
    """Warn of a fit to kernel matrices that takes long, with estimates of time and memory.

    `n_points` are those of a grid, if there is one.
    """
    folds = getattr(estimator, "cv", None)
    n_models = _STEPS
    if n_points is not None:
        n_models = n_points * (folds if isinstance(folds, int) else _FOLDS)
    entries = n_kernels * float(n_rows) ** 2
    seconds = n_models * (_SECONDS_PER_ENTRY * entries + _SECONDS_OF_FACTORS * float(n_rows) ** 3)
    if seconds < _LONG:
        return
    available = available_memory()
    if available is not None and 8.0 * entries > available:
        return  # matrices that do not fit into memory are refused when they are computed
    name, gib = type(estimator).__name__, 8.0 * entries / GIB
    sizes = f"{n_rows} rows and {n_kernels} kernels, whose matrices take {gib:.1f} GiB"
    time = f"{seconds / 60.0:.0f} minutes" if seconds < 5400.0 else f"{seconds / 3600:.0f} hours"
    if estimator._is_precomputed:  # without the table there are no features
        shorter = "" if n_points is None else " A grid of fewer points takes less."
        warn_caller(
            f"{name} learns from {sizes}, in about {time} or more.{shorter}",
            UserWarning,
        )
    elif hasattr(estimator, "approximation"):
        hinge = ' and loss="squared_hinge"' if getattr(estimator, "loss", "") == "hinge" else ""
        warn_caller(
            f'{name} learns from {sizes}, in about {time} or more. approximation="nystrom"{hinge} '
            "learns from landmarks in a fraction of that, with slightly lower scores.",
            UserWarning,
        )
    elif is_classifier(estimator) or is_regressor(estimator):
        other = "MKFDACV" if is_classifier(estimator) else "MKRidgeCV"
        warn_caller(
            f"{name} learns from {sizes}, which takes minutes or longer. For many rows there is "
            f'{other}, which with approximation="nystrom" learns from landmarks.',
            UserWarning,
        )


class MomentAttributes:
    """Estimators that need no more of the rows than moments and a sample.

    Attributes
    ----------
    left_out_rows_ : ndarray of int
        With an approximation: numbers of the training rows that left-out results are told for,
        a sample if there are more than 4000.
    """


def refuse_with_features(estimator: KernelEstimator, **allowed: Any) -> None:
    """Raise if a parameter has another value than the ones that explicit features allow."""
    name = type(estimator).__name__
    if estimator._is_precomputed:
        raise ValueError(
            f'{name}(approximation=…) computes features of rows, but kernels="precomputed" has '
            "none: pass kernels and a table, or approximation=None."
        )
    for parameter, (value, why) in {
        "missing": ("error", "samples that lack a view have no features"),
        "kernel_sets": (None, "moments are those of all kernels"),
        **allowed,
    }.items():
        given = getattr(estimator, parameter, value)
        if not (given is value or given == value):
            raise ValueError(
                f"{parameter}={given!r} does not go with approximation="
                f"{estimator.approximation!r}: {why}. Pass {parameter}={value!r}, or "
                "approximation=None."
            )
