"""Models of explicit features: from moments, or passes over the rows, to fitted attributes.

The counterpart of :mod:`.fda` and :mod:`.ridge`, on moments of features. Samples are
needed in two places only, and some of them will do: the decision of a discriminant is learnt from
outputs at left-out samples, and left-out predictions are told for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from ..discriminant.decision import (
    N_FOLDS,
    Decision,
    HeldOut,
    HeldOutScores,
    Regression,
    checked_priors,
)
from ..discriminant.problem import Discriminant, LabelledKernels, fisher_targets, indicator_rule
from ..domains import Domain
from ..kernels.tables import naming
from ..losses.features import FeatureLoss, FeatureSums, PartialLeftOut, SingleRows
from ..scale.features import FeatureMap
from ..scale.hinge import Descent, HingePass, HingeProblem, descend_together
from ..scale.moments import CentredMoments, ClassTargets, Moments, TargetCoding
from ..scale.rows import RowBlocks
from ..scale.sampling import Plan
from ..solvers.path import GridPoint, GridRecord, walk_grid, weight_response
from ..utils.numerics import ROUNDING, matmul
from ..utils.sklearn import num_samples, safe_indexing, warn_caller
from ..utils.storable import storable
from .base import FitTask
from .feature_data import FeatureRows, Gathering
from .inputs import TableSource, class_weighted
from .kernel_data import (
    HeldOutValues,
    Learnt,
    SplitOutputs,
    TargetedKernels,
    WeightLearning,
    joined_certificate,
    solve_each,
    targets_rounding,
)
from .search import Grid

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
    """Moments of a training part, centred and scaled: what losses at any λ are made of."""

    moments: CentredMoments
    kernel_of: np.ndarray
    scales: np.ndarray
    errors: np.ndarray | None = None

    @classmethod
    def of(cls, moments: Moments, features: FeatureMap, normalize: str | None) -> FeatureProblem:
        """Kernels are centred and normalised by the samples of `moments`."""
        centred = moments.centred()
        scales = centred.scales(features.kernel_of, len(features.sizes), normalize)
        return cls(centred, features.kernel_of, scales)

    @classmethod
    def of_rows(cls, rows: FeatureRows, normalize: str | None) -> FeatureProblem:
        """Of all rows, with the rounding errors of their features."""
        problem = cls.of(rows.moments.total, rows.features, normalize)
        return replace(problem, errors=feature_errors(rows))

    @property
    def scaling(self) -> FeatureScaling:
        """Of features from the origin of the moments."""
        return FeatureScaling(self.moments.mean, np.sqrt(self.scales)[self.kernel_of])

    def sums(self, turn: np.ndarray) -> FeatureSums:
        """Those of a loss whose targets are ``t @ turn``, centred."""
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
        """From class indicators to Fisher targets, (c, 1) or (c, c)."""
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
    """By how much features differ if they are computed in blocks of other sizes, (D,).

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
        self, estimator: Any, X: Any, coefficients: np.ndarray | None = None
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


# -- discriminants ---------------------------------------------------------------------------


def judged_samples(
    rows: FeatureRows, masses: np.ndarray, some: np.ndarray | None = None
) -> LabelledKernels:
    """The sample by which a discriminant judges itself, its classes in their true proportions.

    If it has only some of the rows, every class counts as much in it as among all rows. `masses`
    are those of the rows that `some`, positions in the sample, stand for; by default all.
    """
    assert isinstance(rows.targets, ClassTargets)
    assert rows.sample.y is not None
    labels, classes = rows.targets.labels(rows.sample.y), rows.targets.classes
    weights, counts, groups = rows.weights, rows.counts, rows.groups
    if some is not None:
        labels, groups = labels[some], groups[some]
        weights, counts = (None if own is None else own[some] for own in (weights, counts))
    if not rows.complete:
        weights = np.ones(len(labels)) if weights is None else weights
        drawn = np.bincount(labels, weights, minlength=len(classes))
        weights = weights * (masses / drawn)[labels]
        counts = weights * (len(labels) / weights.sum())
    return LabelledKernels(None, labels, classes, weights, counts, groups)  # type: ignore[arg-type]


def learn_discriminant_on_features(
    rows: FeatureRows,
    normalize: str | None,
    reg: float,
    priors: Any,
    learning: WeightLearning,
    task: FitTask,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights, the regression that they give, and the decision."""
    problem = FeatureProblem.of_rows(rows, normalize)
    problem.warn_of_constants(rows.names)
    loss = FeatureLoss(problem.sums(problem.fisher_turn()), reg)
    learnt = learning.learn([loss], rows.names, task)
    (evaluation,) = learnt.evaluations
    samples = judged_samples(rows, problem.masses)
    checked = checked_priors(priors, samples)
    regression = known_regression(rows, problem, evaluation, learning.domain, samples)
    decision = Decision.learn(regression, samples, checked)
    coefficients = decision.coefficients(regression.coefficients)
    return {
        **rows.attributes,
        **learnt.attributes,
        **decision.attributes(regression.coefficients),
        "classes_": samples.classes,
        "coef_": coefficients,
        "left_out_log_proba_": decision.left_out,
        "left_out_rows_": rows.sample.rows,
        "reg_": reg,
        "_predictor": predictor_of(rows, problem, coefficients),
    }


def known_regression(
    rows: FeatureRows,
    problem: FeatureProblem,
    evaluation: Any,
    domain: Domain,
    samples: LabelledKernels,
) -> Regression:
    """The regression on Fisher targets, and its outputs at samples that are left out."""
    features = problem.scaling(rows.sampled)
    known = PartialLeftOut(
        evaluation,
        features,
        fisher_targets(samples.labels, problem.masses),
        ones_unless(rows.weights, len(features)),
        problem.moments.weight,
    )
    response = weight_response(known, domain)
    folds = []
    if len(samples.classes) > 2:
        folds = samples.folds(N_FOLDS)
    left_out = known.leave_out(folds, samples.groups, response)
    rotation = evaluation.loss.rotation
    return Regression(evaluation.coefficients @ rotation, left_out.turned(rotation), rotation)


def ones_unless(weights: np.ndarray | None, n_rows: int) -> np.ndarray:
    return np.ones(n_rows) if weights is None else weights


# -- ridge regression ------------------------------------------------------------------------


@dataclass(frozen=True)
class FeatureTargets:
    """Means and units of the targets of a ridge regression, (q,); constant ones have unit one."""

    means: np.ndarray
    units: np.ndarray
    varies: np.ndarray

    @classmethod
    def of(cls, problem: FeatureProblem, origin: np.ndarray) -> FeatureTargets:
        """From the moments of training samples; targets were measured from `origin`."""
        moments = problem.moments
        variance = np.maximum(np.diagonal(moments.total), 0.0) / moments.weight
        size = np.sqrt(variance + moments.target_mean**2 + origin**2)
        units = np.sqrt(variance)
        varies = units > ROUNDING * size
        means = origin + moments.target_mean
        return cls(means, np.where(varies, units, 1.0), varies)

    def rounding(self, residuals: np.ndarray) -> float:
        """As of :class:`~._ridge.ScaledTargets`."""
        return targets_rounding(self.means, self.units, residuals)

    def turn(self, group: np.ndarray) -> np.ndarray:
        """From targets to those of a group, in units of their own, (q, n_group)."""
        return (np.eye(len(self.means)) * (self.varies / self.units))[:, group]

    def restored(self, outputs: np.ndarray, group: Any = slice(None)) -> np.ndarray:
        """Predictions from outputs of a regression on these targets."""
        predictions: np.ndarray = outputs * self.units[group] + self.means[group]
        return predictions

    def scaled(self, y: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Targets of a group at some samples, centred and in their units."""
        columns: np.ndarray = ((y - self.means) * (self.varies / self.units))[:, group]
        return columns


def learn_ridge_on_features(
    rows: FeatureRows,
    normalize: str | None,
    groups: Sequence[np.ndarray],
    learnings: Sequence[WeightLearning],
    regs: Sequence[float],
    task: FitTask,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights of every group of targets, and their regressions."""
    problem = FeatureProblem.of_rows(rows, normalize)
    problem.warn_of_constants(rows.names)
    targets = FeatureTargets.of(problem, rows.targets.origin)  # type: ignore[attr-defined]
    losses = [
        FeatureLoss(problem.sums(targets.turn(group)), reg)
        for reg, group in zip(regs, groups, strict=True)
    ]
    learnt = solve_each(learnings, losses, rows.names, task)
    # √n‖U‖ is at least the sum of the |U_i|.
    residuals = np.concatenate([one.lengths for one in learnt.evaluations])
    learnt = learnt.with_rounding(targets.rounding(np.sqrt(problem.moments.n_rows) * residuals))
    for one, learning in zip(learnt.evaluations, learnings, strict=True):
        learnt = learnt.with_rounding(one.feature_rounding(learning.domain.support))
    learnt.warn_unless_converged()
    y = np.asarray(rows.sample.y, dtype=np.float64)
    values, single = y.reshape(len(y), -1), y.ndim == 1
    features = problem.scaling(rows.sampled)
    left_out = np.hstack(
        [
            _left_out(rows, problem, features, targets.scaled(values, group), one, domain)
            for group, one, domain in zip(
                groups, learnt.evaluations, [one.domain for one in learnings], strict=True
            )
        ]
    )
    predictions = targets.restored(left_out)
    coefficients = targets.units * np.hstack([one.coefficients for one in learnt.evaluations])
    return {
        **rows.attributes,
        **learnt.attributes,
        "coef_": coefficients[:, 0] if single else coefficients,
        "intercept_": targets.means,
        "left_out_predictions_": predictions[:, 0] if single else predictions,
        "left_out_rows_": rows.sample.rows,
        "_predictor": predictor_of(rows, problem, coefficients),
    }


def _left_out(
    rows: FeatureRows,
    problem: FeatureProblem,
    features: np.ndarray,
    columns: np.ndarray,
    evaluation: Any,
    domain: Domain,
) -> np.ndarray:
    """Outputs of the sample, each by the regression of all others, (n, n_targets of the group)."""
    if len(features) == 1:
        return np.full(columns.shape, np.nan)
    weights = ones_unless(rows.weights, len(features))
    known = PartialLeftOut(evaluation, features, columns, weights, problem.moments.weight)
    response = weight_response(known, domain)
    return known.leave_one_out(rows.groups, response=response)


# -- Choosing p and λ on explicit features: folds of moments, judged by the rows of a sample ------
#
# The moments of all samples but a fold are a sum, so no fold takes another pass. In every fold
# the scales of kernels, their weights and the regression are learnt from the moments of the
# others, and the rule of a discriminant from the rows of the sample among them. What is scored
# are the rows of the sample that belong to the fold, with the kernels (widths, landmarks) of all
# rows, as in the folds of kernel matrices.


#: Kernel weights at points of a grid, by the positions of p and λ.
Solutions = dict[tuple[int, int], np.ndarray]


# -- discriminants ---------------------------------------------------------------------------


def held_out_on_features(
    rows: FeatureRows,
    normalize: str | None,
    ps: np.ndarray,
    regs: np.ndarray,
    rules: Sequence[str],
    priors: Any,
    tol: float,
    task: FitTask,
    purpose: str = "",
) -> HeldOut:
    """Class scores of the sample by models without its fold, by each rule at each p and λ."""
    n_splits, size = rows.plan.n_splits, len(ps) * len(regs)
    every = judged_samples(rows, rows.moments.total.target_sums())
    parts, tests = [], []
    # Training parts have most of their samples in common: each begins where the last one ended.
    solutions: Solutions = {}
    for k in range(n_splits):
        own = rows.plan.tested(rows.sample.rows, k)
        _refuse_split(rows, own, k)
        tests.append(every.of(own))
        part = task.part(f"{purpose}split {k + 1}/{n_splits}", size)
        parts.append(
            _scores_of_split(rows, own, k, normalize, ps, regs, rules, tol, part, solutions)
        )
        part.end()
    given = None if priors is None else np.asarray(priors, dtype=float)
    return HeldOut(parts, tests, every.frequencies, given)


def training_moments(rows: FeatureRows, split: int) -> Moments:
    """Moments of the training part of a split."""
    return rows.moments.of(rows.plan.training[split])


def _refuse_split(rows: FeatureRows, own: np.ndarray, k: int) -> None:
    """Raise if no model can be learnt from the training part, or nothing is in the test part."""
    if len(own) == 0:
        raise ValueError(f"Split {k} has no test samples: use fewer folds.")
    masses = training_moments(rows, k).target_sums()
    if (masses <= 0.0).any():
        classes = rows.targets.classes[masses <= 0.0].tolist()  # type: ignore[attr-defined]
        raise ValueError(
            f"Split {k} leaves no training samples of {classes}: use fewer folds, or leave the "
            "class out."
        )


def _scores_of_split(
    rows: FeatureRows,
    own: np.ndarray,
    k: int,
    normalize: str | None,
    ps: np.ndarray,
    regs: np.ndarray,
    rules: Sequence[str],
    tol: float,
    task: FitTask,
    solutions: Solutions,
) -> HeldOutScores:
    problem = FeatureProblem.of(training_moments(rows, k), rows.features, normalize)
    sums = problem.sums(problem.fisher_turn())
    features = problem.scaling(rows.sampled[own])
    frequencies = problem.masses / problem.masses.sum()
    known = _TrainingRows.of(rows, problem, k) if "discriminant" in rules else None
    shape = len(ps), len(regs)
    found = HeldOutScores(
        {rule: np.full((*shape, len(own), len(frequencies)), np.nan) for rule in rules},
        GridRecord.unsolved(shape),
    )

    def visit(point: GridPoint) -> bool:
        at = point.norm_index, point.reg_index
        evaluation, rotation = point.evaluation, point.loss.rotation
        solutions[at] = evaluation.weights
        outputs = matmul(features, evaluation.solution)
        for name in rules:
            if known is None or name == "indicator":
                rule = indicator_rule(frequencies, rotation)
            else:
                rule = known.discriminant(evaluation).rule
            found.scores[name][at] = rule.scores(outputs)
        params = {"p": float(ps[at[0]]), "reg": float(regs[at[1]])}
        return task(found.record.note(at, params, point.certificate, point.n_inner_solves))

    failures = walk_grid(
        lambda reg: FeatureLoss(sums, reg), ps, regs, visit, tol=tol, starts=dict(solutions)
    )
    found.record.failures.extend(failures)
    return found


@dataclass(frozen=True)
class _TrainingRows:
    """Rows of the sample in the training part of a split: what a discriminant is learnt from.

    `features` are those of the loss, `targets` the Fisher targets, `weights` as for
    :class:`.FeatureRows`. In `samples` the classes have the proportions of the training part.
    """

    features: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    samples: LabelledKernels
    total_weight: float

    @classmethod
    def of(cls, rows: FeatureRows, problem: FeatureProblem, k: int) -> _TrainingRows:
        places = rows.plan.trained(rows.sample.rows, k)
        every = judged_samples(rows, rows.moments.total.target_sums())
        if len(absent := np.setdiff1d(every.labels, every.labels[places])):
            raise ValueError(
                f"Split {k} has too few training samples of {every.classes[absent].tolist()}: "
                f"none of them is among the {len(rows.sample)} rows that rules are learnt from. "
                "Use larger training parts."
            )
        samples = judged_samples(rows, problem.masses, places)
        return cls(
            problem.scaling(rows.sampled[places]),
            fisher_targets(samples.labels, problem.masses),
            ones_unless(rows.weights, len(rows.sample))[places],
            samples,
            problem.moments.weight,
        )

    def discriminant(self, evaluation: Any) -> Discriminant:
        """That of outputs of every row by the regression of all others.

        As on kernel matrices, outputs are measured from the mean target of the others: else those
        of a large λ would show that mean alone, which lies on the other side of the sample.
        """
        known = SingleRows(
            evaluation, self.features, self.targets, self.weights, self.total_weight
        )
        # The kernel weights, which have not seen the test samples, may be held here.
        left_out = known.leave_one_out(self.samples.groups, from_mean=True)
        return Discriminant.learn(left_out @ evaluation.loss.rotation, self.samples)


# -- ridge regression ------------------------------------------------------------------------


def held_out_values_on_features(
    rows: FeatureRows,
    normalize: str | None,
    grid: Grid,
    groups: Sequence[np.ndarray],
    tol: float,
    task: FitTask,
) -> list[HeldOutValues]:
    """Predictions of the sample by models without its fold at every point, for each group."""
    n_splits = rows.plan.n_splits
    y = np.asarray(rows.sample.y, dtype=np.float64)
    columns = y.reshape(len(y), -1)
    found: list[list[SplitOutputs]] = []
    solutions: list[Solutions] = [{} for _ in groups]
    tested = [rows.plan.tested(rows.sample.rows, k) for k in range(n_splits)]
    for k, own in enumerate(tested):
        if len(own) == 0:
            raise ValueError(f"Split {k} has no test samples: use fewer folds.")
        part = task.part(f"split {k + 1}/{n_splits}", len(groups) * grid.size)
        problem = FeatureProblem.of(training_moments(rows, k), rows.features, normalize)
        targets = FeatureTargets.of(problem, rows.targets.origin)  # type: ignore[attr-defined]
        features = problem.scaling(rows.sampled[own])
        shape = (len(own),) if len(groups) > 1 or y.ndim == 1 else (len(own), columns.shape[1])
        found.append(
            [
                _walk(problem, targets, features, group, grid, shape, tol, part, own_solutions)
                for group, own_solutions in zip(groups, solutions, strict=True)
            ]
        )
        part.end()
    values = []
    for g, group in enumerate(groups):
        judged = columns[:, group] if len(groups) == 1 and y.ndim > 1 else columns[:, group[0]]
        counts = rows.counts
        tests = [
            TargetedKernels(None, judged[own], None if counts is None else counts[own])  # type: ignore[arg-type]
            for own in tested
        ]
        values.append(HeldOutValues([parts[g] for parts in found], tests))
    return values


def _walk(
    problem: FeatureProblem,
    targets: FeatureTargets,
    features: np.ndarray,
    group: np.ndarray,
    grid: Grid,
    shape: tuple[int, ...],
    tol: float,
    task: FitTask,
    solutions: Solutions,
) -> SplitOutputs:
    """Predictions of one group of targets at every point of the grid."""
    found = SplitOutputs.unsolved(grid.shape, shape)
    sums = problem.sums(targets.turn(group))

    def visit(point: GridPoint) -> bool:
        at = point.norm_index, point.reg_index
        solutions[at] = point.evaluation.weights
        outputs = matmul(features, point.evaluation.coefficients)
        values = targets.restored(outputs, group).reshape(shape)
        return task(found.note(at, grid.at(at), values, point.certificate, point.n_inner_solves))

    ps, regs = grid.values.values()
    failures = walk_grid(
        lambda reg: FeatureLoss(sums, reg), ps, regs, visit, tol=tol, starts=dict(solutions)
    )
    found.record.failures.extend(failures)
    return found


# -- Support vector machines on explicit features: from rows in blocks to fitted attributes -------
#
# The two passes of :mod:`.feature_data`, one for a sample of the rows and one for the moments of
# all, tell the features, their means and scales, and where to begin. The passes of
# :mod:`manykernels.scale.hinge` follow.


# Passes over the rows before the first machine: for the sample, and for the moments.
_PASSES_BEFORE = 2


@dataclass(frozen=True)
class MachineGathering(Gathering):
    """As for one regression; the machines then have moments of their active rows, each its own.

    Weights of classes are factors of C, and the kernels know nothing of them.
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
    class_weight: Any,
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
