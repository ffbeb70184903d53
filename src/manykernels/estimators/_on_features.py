"""Discriminants and ridge regressions on explicit features: from moments to fitted attributes.

What :mod:`.fda` and :mod:`._ridge` do on kernel matrices, on the moments of features. Samples are
needed in two places only, and some of them will do: the decision of a discriminant is learnt from
outputs at left-out samples, and left-out predictions are told for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from .._rounding import ROUNDING
from .._sklearn import num_samples, safe_indexing
from .._warnings import warn_caller
from ..discriminant import LabelledKernels, fisher_targets
from ..discriminant.decision import (
    N_FOLDS,
    Decision,
    Regression,
    checked_priors,
)
from ..domains import Domain
from ..kernels.tables import naming
from ..losses import FeatureLoss, FeatureSums
from ..losses.known_rows import KnownRows
from ..scale import FeatureMap
from ..scale.accumulation import ClassTargets
from ..scale.moments import CentredMoments, Moments
from ..solvers.response import weight_response
from ._feature_rows import FeatureRows
from ._inputs import TableSource
from ._learning import WeightLearning, solve_each
from ._progress import FitTask
from ._ridge import targets_rounding

# Rows whose features are computed at once in predictions.
_ROWS_AT_ONCE = 4096
# Rows whose features are computed again, each by itself, for the size of their rounding errors,
# and the factor by which these are taken to be larger: the rows are few.
_ROWS_OF_ERRORS = 16
_ERROR_FACTOR = 2.0


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


@dataclass(frozen=True)
class FeatureExpansion:
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


def expansion_of(
    rows: FeatureRows, problem: FeatureProblem, coefficients: np.ndarray
) -> FeatureExpansion:
    """The expansion of a model learnt from `rows`."""
    scaling = replace(problem.scaling, mean=problem.moments.mean + rows.origin)
    return FeatureExpansion(rows.source, rows.features, scaling, coefficients)


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
        "_expansion": expansion_of(rows, problem, coefficients),
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
    known = KnownRows(
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
        "_expansion": expansion_of(rows, problem, coefficients),
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
    known = KnownRows(evaluation, features, columns, weights, problem.moments.weight)
    response = weight_response(known, domain)
    return known.leave_one_out(rows.groups, response=response)
