"""Models of explicit features: from moments, or passes over the rows, to fitted attributes.

Samples are needed in two places only, and some of them will do: the decision of a discriminant is
learnt from outputs at left-out samples, and left-out predictions are reported for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import gen_batches

from ..discriminant import Samples, fisher_targets
from ..kernels.tables import Table, naming
from ..losses.features import FeatureLoss, FeatureSums, PartialLeftOut, SingleRows
from ..losses.left_out import LeavesOut
from ..scale.features import FeatureMap
from ..scale.hinge import Descent, HingePass, HingeProblem, descend_together
from ..scale.moments import CentredMoments, ClassTargets, Moments, TargetCoding
from ..scale.rows import RowBlocks
from ..scale.sampling import Plan
from ..utils.numerics import ROUNDING, matmul
from ..utils.sklearn import num_samples, safe_indexing, warn_caller
from ..utils.storable import storable
from .base import FitTask, KernelEstimator
from .feature_data import FeatureRows, Gathering
from .inputs import TableSource
from .kernel_data import targets_rounding
from .training_rows import class_weighted
from .weights import Learnt, WeightLearning, joined_certificate

# Rows whose features are computed at once in predictions.
_ROWS_AT_ONCE = 4096
# Rows whose features are computed again, each by itself, for the size of their rounding errors,
# and the factor by which these are taken to be larger: the rows are few.
_ROWS_OF_ERRORS = 16
_ERROR_FACTOR = 2.0


@storable
@dataclass(frozen=True)
class FeatureScaling:
    """Centres and scales features as the moments of a training part say.

    `mean` (D,) is theirs, `factors` (D,) are square roots of the factors of the kernels.
    """

    mean: np.ndarray
    factors: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Features (n, D) of any samples as those of the loss."""
        return (features - self.mean) * self.factors


@dataclass(frozen=True)
class FeatureProblem:
    """Centred and scaled moments of training rows, from which losses at any λ are made."""

    moments: CentredMoments
    kernel_of: np.ndarray
    scales: np.ndarray
    errors: np.ndarray | None = None

    @classmethod
    def of(cls, moments: Moments, features: FeatureMap, normalize: str | None) -> FeatureProblem:
        """Return the problem, its kernels centred and normalised by the samples of `moments`."""
        centred = moments.centred()
        scales = centred.scales(features.kernel_of, len(features.sizes), normalize)
        return cls(centred, features.kernel_of, scales)

    @classmethod
    def of_rows(cls, rows: FeatureRows, normalize: str | None) -> FeatureProblem:
        """Return the problem of all rows, with the rounding errors of their features."""
        problem = cls.of(rows.moments.total, rows.features, normalize)
        return replace(problem, errors=feature_errors(rows))

    @property
    def scaling(self) -> FeatureScaling:
        """Centre and scale of features, relative to the origin of the moments."""
        return FeatureScaling(self.moments.mean, np.sqrt(self.scales)[self.kernel_of])

    def sums(self, turn: np.ndarray) -> FeatureSums:
        """Return the sums for a loss whose targets are ``t @ turn``, centred."""
        sums = self.moments.sums(self.kernel_of, self.scales, turn)
        if self.errors is None:
            return sums
        size = np.sqrt(self.moments.weight * self.scales)[self.kernel_of]
        return replace(sums, errors=size * self.errors)

    @property
    def masses(self) -> np.ndarray:
        """Total weight of each class, where targets are class indicators."""
        masses: np.ndarray = self.moments.target_mean * self.moments.weight
        return masses

    def fisher_turn(self) -> np.ndarray:
        """Return the matrix that maps class indicators to Fisher targets, (c, 1) or (c, c)."""
        return fisher_targets(np.arange(len(self.masses)), self.masses)

    def warn_of_constants(self, names: list[str]) -> None:
        """Warn of kernels that nothing can be learnt from."""
        silent = [names[j] for j in np.flatnonzero(self.scales == 0.0)]
        if silent:
            warn_caller(
                "Nothing can be learnt from kernels that are constant on training samples: "
                f"{', '.join(map(repr, silent))}.",
                UserWarning,
            )


def feature_errors(rows: FeatureRows) -> np.ndarray:
    """Return how much features differ if they are computed in blocks of other sizes, (D,).

    Of features whose kernel has small eigenvalues most digits may be rounding errors.
    """
    sample, n_rows = rows.sample.X, len(rows.sampled)
    chosen = np.unique(np.linspace(0, n_rows - 1, _ROWS_OF_ERRORS).astype(int))
    alone = np.vstack([rows.features(safe_indexing(sample, row[None])) for row in chosen])
    differences = alone - rows.origin - rows.sampled[chosen]
    errors: np.ndarray = _ERROR_FACTOR * np.sqrt(np.mean(differences**2, axis=0))
    return errors


@storable
@dataclass(frozen=True)
class FeaturePredictor:
    """Outputs of new samples: their features, centred and scaled, times `coefficients` (D, k)."""

    source: TableSource
    features: FeatureMap
    scaling: FeatureScaling
    coefficients: np.ndarray

    def outputs(
        self, estimator: KernelEstimator, X: Table, coefficients: np.ndarray | None = None
    ) -> np.ndarray:
        """(n_rows, k); other coefficients than those of the fit give other functions of X."""
        coefficients = self.coefficients if coefficients is None else coefficients
        data = self.source.read(estimator, X)
        n_rows = int(num_samples(data))
        outputs = np.empty((n_rows, coefficients.shape[1]))
        for rows in gen_batches(n_rows, _ROWS_AT_ONCE):
            own = safe_indexing(data, np.arange(rows.start, rows.stop))
            with naming(f"From row {rows.start} on" if rows.start else ""):
                part = self.features(own)
            outputs[rows] = self.scaling(part) @ coefficients
        return outputs


def predictor_of(
    rows: FeatureRows, problem: FeatureProblem, coefficients: np.ndarray
) -> FeaturePredictor:
    """Return the predictor of a model learnt from `rows`."""
    scaling = replace(problem.scaling, mean=problem.moments.mean + rows.origin)
    return FeaturePredictor(rows.source, rows.features, scaling, coefficients)


# -- Training data of a square loss: moments, and a sample of the rows ----------------------------


def judged_samples(
    rows: FeatureRows, masses: np.ndarray | None, places: np.ndarray | None = None
) -> Samples:
    """Return the sample by which a model judges itself, classes in their true proportions.

    If it has only some of the rows, every class counts as much in it as among all rows. `masses`
    are total weights of the classes; `places` are positions in the sample, by default all.
    """
    some = np.arange(len(rows.sample)) if places is None else places
    weights, counts = (
        None if values is None else values[some] for values in (rows.weights, rows.counts)
    )
    groups, y = rows.groups[some], np.asarray(rows.sample.y)
    if not isinstance(rows.targets, ClassTargets):
        return Samples(None, y[some].astype(np.float64), None, counts, counts, groups)
    every, classes = rows.targets.labels(y), rows.targets.classes
    labels = every[some]
    if len(absent := np.setdiff1d(every, labels)):
        raise ValueError(
            f"A split has too few training samples of {classes[absent].tolist()}: none of them is "
            f"among the {len(rows.sample)} rows that rules are learnt from. Use larger training "
            "parts."
        )
    if not rows.complete:
        assert masses is not None
        weights = np.ones(len(labels)) if weights is None else weights
        drawn = np.bincount(labels, weights, minlength=len(classes))
        weights = weights * (masses / drawn)[labels]
        counts = weights * (len(labels) / weights.sum())
    return Samples(None, labels, classes, weights, counts, groups)


@dataclass(frozen=True)
class FeatureTargets:
    """Means and units of the targets of a ridge regression, (q,); constant ones have unit one.

    `values` (n, q) are the targets of the sample.
    """

    means: np.ndarray
    units: np.ndarray
    varies: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, problem: FeatureProblem, origin: np.ndarray, values: np.ndarray) -> FeatureTargets:
        """Scale by the moments of training samples; targets were measured from `origin`."""
        moments = problem.moments
        variance = np.maximum(np.diagonal(moments.total), 0.0) / moments.weight
        size = np.sqrt(variance + moments.target_mean**2 + origin**2)
        units = np.sqrt(variance)
        varies = units > ROUNDING * size
        means = origin + moments.target_mean
        return cls(means, np.where(varies, units, 1.0), varies, values)

    def coding(self, group: np.ndarray) -> np.ndarray:
        """Return the map from targets to those of a group, in their units, (q, n_group)."""
        return (np.eye(len(self.means)) * (self.varies / self.units))[:, group]

    def at_samples(self, group: np.ndarray) -> np.ndarray:
        """Return the targets of a group at the sample, centred and in their units."""
        columns: np.ndarray = ((self.values - self.means) * (self.varies / self.units))[:, group]
        return columns

    def rounding(self, residuals: np.ndarray) -> float:
        """Return the rounding error of the targets for these residuals."""
        return targets_rounding(self.means, self.units, residuals)

    def restored(self, outputs: np.ndarray, group: Any = slice(None)) -> np.ndarray:
        """Return predictions from outputs of a regression on these targets."""
        predictions: np.ndarray = outputs * self.units[group] + self.means[group]
        return predictions


@dataclass(frozen=True)
class FeatureData:
    """Moments of explicit features, for regressions on their targets; see :class:`KernelData`.

    `samples` are the rows by whose left-out outputs a model judges itself, at the `places` in the
    sample of rows; None for all of it.
    """

    rows: FeatureRows
    problem: FeatureProblem
    places: np.ndarray | None = None

    coefficients: ClassVar[str] = "coef_"
    n_regions: ClassVar[int] = 1
    of_label: ClassVar[bool] = False
    knows_targets: ClassVar[bool] = False
    unit: ClassVar[float] = 1.0

    @classmethod
    def of(cls, rows: FeatureRows, normalize: str | None) -> Self:
        """Return the data of all rows; kernels are centred and normalised."""
        problem = FeatureProblem.of_rows(rows, normalize)
        problem.warn_of_constants(rows.names)
        return cls(rows, problem)

    @property
    def names(self) -> list[str]:
        return self.rows.names

    @property
    def masses(self) -> np.ndarray:
        return self.problem.masses

    @property
    def attributes(self) -> dict[str, Any]:
        classes = self.samples.classes
        return {
            **self.rows.attributes,
            **({} if classes is None else {"classes_": classes, "denoise_": None}),
            "left_out_rows_": self.rows.sample.rows,
        }

    @cached_property
    def samples(self) -> Samples:
        """Rows of the sample; classes have the proportions of the training rows."""
        return judged_samples(self.rows, self.masses, self.places)

    def fisher_coding(self) -> np.ndarray:
        return self.problem.fisher_turn()

    def scaled_targets(self) -> FeatureTargets:
        targets = self.samples.targets
        origin = self.rows.targets.origin  # type: ignore[attr-defined]
        return FeatureTargets.of(self.problem, origin, targets.reshape(len(targets), -1))

    def loss_at(self, coding: np.ndarray) -> Callable[[float], FeatureLoss]:
        sums = replace(self.problem.sums(coding), n_distinct=self.n_distinct)
        return lambda reg: FeatureLoss(sums, reg)

    def n_distinct(self) -> int:
        """Return the number of rows that do not repeat others, targets included.

        If the sample has only some of the rows, their share in it counts.
        """
        places = slice(None) if self.places is None else self.places
        repeats, n_rows = self.rows.repeats[places], self.problem.moments.n_rows
        share = len(np.unique(repeats)) / len(repeats)
        n_distinct = round(share * n_rows)
        if self.rows.complete:
            return n_distinct
        # Rows whose features have full rank are at least so many.
        return max(n_distinct, min(n_rows, self.rows.features.n_features + 1))

    def left_out(self, evaluation: Any, targets: np.ndarray, *, respond: bool = True) -> LeavesOut:
        kind = PartialLeftOut if respond else SingleRows
        features, weights = self._judged_rows
        return kind(evaluation, features, targets, weights, self.problem.moments.weight)

    @cached_property
    def _judged_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Features of `samples`, as those of the loss, and weights."""
        places = slice(None) if self.places is None else self.places
        sampled, weights = self.rows.sampled, self.rows.weights
        weights = np.ones(len(sampled)) if weights is None else weights
        return self.problem.scaling(sampled[places]), weights[places]

    def residual_sums(self, evaluations: Sequence[Any]) -> np.ndarray:
        # √n‖U‖ is at least the sum of the |U_i|.
        lengths = np.concatenate([evaluation.lengths for evaluation in evaluations])
        sums: np.ndarray = np.sqrt(self.problem.moments.n_rows) * lengths
        return sums

    def predictor(self, weights: np.ndarray, coefficients: np.ndarray) -> FeaturePredictor:
        return predictor_of(self.rows, self.problem, coefficients)


# -- Choosing p and λ on explicit features: folds of moments, judged by the rows of a sample ------
#
# The moments of all samples but a fold are a sum, so no fold takes another pass. In every fold
# the scales of kernels, their weights and the regression are learnt from the moments of the
# others, and the rule of a discriminant from the rows of the sample among them. What is scored
# are the rows of the sample that belong to the fold, with the kernels (widths, landmarks) of all
# rows, as in the folds of kernel matrices.


@dataclass(frozen=True)
class FeaturePart:
    """Training part of a split, and the features of its test samples."""

    data: FeatureData
    features: np.ndarray

    folds: ClassVar[None] = None

    @property
    def n_test(self) -> int:
        return len(self.features)

    def outputs(self, evaluation: Any, coefficients: np.ndarray) -> np.ndarray:
        """Return outputs of the test samples."""
        return matmul(self.features, coefficients)


@dataclass(frozen=True)
class FeatureSearch:
    """Splits of moments, judged by the rows of a sample; see :class:`Search`."""

    estimator: KernelEstimator
    rows: FeatureRows
    task: FitTask

    one_by_one: ClassVar[bool] = True

    @property
    def splits(self) -> range:
        return range(self.rows.plan.n_splits)

    @cached_property
    def samples(self) -> Samples:
        rows = self.rows
        masses = rows.moments.total.target_sums() if rows.classifies else None
        return judged_samples(rows, masses)

    @property
    def tested(self) -> list[np.ndarray]:
        """Rows of the sample that every split tests."""
        return [self.rows.plan.tested(self.rows.sample.rows, k) for k in self.splits]

    @property
    def tests(self) -> list[Samples]:
        return [self.samples.take(rows) for rows in self.tested]

    def part(self, task: Any, split: int) -> FeaturePart:
        """Return the moments of the training part of a split."""
        rows, tested = self.rows, self.tested[split]
        if len(tested) == 0:
            raise ValueError(f"Split {split} has no test samples: use fewer folds.")
        moments = rows.moments.of(rows.plan.training[split])
        if rows.classifies and (moments.target_sums() <= 0.0).any():
            absent = self.samples.classes[moments.target_sums() <= 0.0].tolist()
            raise ValueError(
                f"Split {split} leaves no training samples of {absent}: use fewer folds, or "
                "leave the class out."
            )
        problem = FeatureProblem.of(moments, rows.features, self.estimator.normalize)
        places = rows.plan.trained(rows.sample.rows, split)
        features = problem.scaling(rows.sampled[tested])
        return FeaturePart(FeatureData(rows, problem, places), features)


# -- Support vector machines on explicit features: from rows in blocks to fitted attributes -------
#
# The two passes of :mod:`.feature_data`, one for a sample of the rows and one for the moments of
# all, tell the features, their means and scales, and where to begin. The passes of
# :mod:`manykernels.scale.hinge` follow.


# Passes over the rows before the first machine: for the sample, and for the moments.
_PASSES_BEFORE = 2


@dataclass(frozen=True)
class MachineGathering(Gathering):
    """Moments for machines, each of which then sums the moments of its own active rows.

    Weights of classes are factors of C; kernels are centred and normalised without them.
    """

    def units(self, blocks: RowBlocks) -> np.ndarray | None:
        return None

    def copies(self, targets: TargetCoding, plan: Plan) -> int:
        # Two of each machine: while those of two parts of the rows are added, and then for its
        # loss and the factor of that. Two of all rows, and two while these are centred.
        n_machines = 1 if targets.width == 2 else targets.width
        return 2 * n_machines + 4


@dataclass(frozen=True)
class LearntInPasses(Learnt):
    """Machines on features; `passes` are those that each point of the history took."""

    passes: list[int]

    @property
    def weights(self) -> np.ndarray:
        return np.array([solution.weights for solution in self.solutions])

    @property
    def attributes(self) -> dict[str, Any]:
        attributes = super().attributes
        return {**attributes, "history_": {**attributes["history_"], "n_passes": self.passes}}


def learn_machines_on_features(
    rows: FeatureRows,
    blocks: RowBlocks,
    groups: np.ndarray,
    C: float,
    class_weight: dict[Any, float] | str | None,
    normalize: str | None,
    learning: WeightLearning,
    task: FitTask,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights of every group of machines, and the machines.

    `groups` are y of each class, (n_groups, n_classes, n_machines).
    """
    problem = FeatureProblem.of_rows(rows, normalize)
    problem.warn_of_constants(rows.names)
    assert isinstance(rows.targets, ClassTargets)
    classes, masses = rows.targets.classes, problem.masses
    weighted = class_weighted(class_weight, np.arange(len(classes)), classes, masses)
    assert weighted is not None
    factors = weighted / masses
    targets = ClassTargets(classes, factors)
    scaling = problem.scaling
    one_pass = partial(
        HingePass, rows.features, rows.origin + scaling.mean, scaling.factors, targets
    )
    squares = np.maximum(np.diagonal(problem.moments.gram), 0.0) * scaling.factors**2
    squares *= factors.max()
    assert problem.errors is not None
    errors = problem.errors * scaling.factors * np.sqrt(factors.max())
    sizes = np.bincount(problem.kernel_of, squares, len(rows.names)) / problem.moments.n_rows
    descents = [
        Descent(
            HingeProblem(C, signs, problem.kernel_of, sizes, np.sqrt(squares), errors),
            learning.domain,
            tol=learning.tol,
            max_iter=learning.max_iter,
            observer=task,
        )
        for signs in groups
    ]
    steps = [
        descent.steps(partial(_start, problem, signs))
        for descent, signs in zip(descents, groups, strict=True)
    ]
    solutions = descend_together(blocks, one_pass, steps)
    learnt = LearntInPasses(
        learning,
        rows.names,
        [],
        solutions,
        joined_certificate(solutions, learning.tol),
        task.stopped,
        [_PASSES_BEFORE + n for descent in descents for n in descent.passes],
    )
    learnt.warn_unless_converged()
    coefficients = np.hstack([one.coefficients for one in learnt.evaluations])
    return {
        **rows.attributes,
        **learnt.attributes,
        "classes_": classes,
        "coef_": coefficients,
        "intercept_": np.concatenate([one.biases for one in learnt.evaluations]),
        "_predictor": predictor_of(rows, problem, coefficients),
    }


def _start(
    problem: FeatureProblem, signs: np.ndarray, penalty: float
) -> tuple[FeatureLoss, np.ndarray]:
    """The square loss of all rows, and the biases of machines: features have mean zero."""
    biases = problem.moments.target_mean @ signs
    return FeatureLoss(problem.sums(signs), 1.0 / penalty), biases
