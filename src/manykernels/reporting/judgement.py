"""Scores of predictions in a report.

Held-out predictions of the training samples are used if the model has unbiased ones, and else
predictions of new rows of X. Scores on training samples are never shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields
from sklearn.base import is_classifier, is_outlier_detector

from ..display import SurvivalCalibrationDisplay, SurvivalDisplay
from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator
from ..estimators.held_out import KnownRisks, deviance_losses
from ..estimators.smooth import GeneralizedRegressor, loss_maker
from ..inspection.intervals import Intervals, Mean
from ..inspection.scoring import discordances, survival_field
from ..inspection.study import learns_kernels, left_out_answers
from ..metrics.survival import partial_likelihood_scorer
from ..survival.curves import survival_probabilities
from .findings import Samples, counted

#: Confidence level of all intervals of a report.
CONFIDENCE = 0.95
# Largest number of classes of a confusion matrix; with more, the number of confusions listed.
_MOST_CLASSES, _CONFUSIONS = 20, 10
# Samples per bin of a calibration curve, of which a share can be estimated; numbers of bins.
_PER_BIN, _FEWEST_BINS, _MOST_BINS = 10, 3, 10
# Largest number of points in a picture of predictions, for legibility and file size.
_MOST_POINTS = 400
# Probabilities are clipped to this before the logarithm.
_LEAST_PROBABILITY = 1e-15
# Remark about samples with weights.
_WEIGHTED = "; scores are weighted, counts are not"


@dataclass(frozen=True)
class Answers:
    """Targets and predictions of samples that the predicting model was not trained on.

    Attributes
    ----------
    y, predictions : ndarray of shape (n_rows,), or (n_rows, n_targets)
    probabilities : ndarray of shape (n_rows, n_classes) or None
    how : str
        Description of the samples.
    weights : ndarray of shape (n_rows,)
        Sample weights.
    groups : ndarray of int, (n_rows,)
        Rows of a group were held out together and are not independent.
    n_folds : int or None
        Number of models that were each trained without a part of the samples; None for new
        samples, predicted by a single model.
    """

    y: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray | None
    how: str
    weights: np.ndarray
    groups: np.ndarray
    n_folds: int | None = None

    def mean(
        self, losses: np.ndarray, hit_or_miss: bool = False, events: np.ndarray | None = None
    ) -> Mean:
        """Return the mean of the losses of samples, with its interval."""
        # Fraction of the samples that each model was trained on; infinite for new samples.
        share = np.inf if self.n_folds is None else 1.0 - 1.0 / self.n_folds
        intervals = Intervals(
            self.weights, CONFIDENCE, share, hit_or_miss, groups=self.groups, events=events
        )
        return intervals.of(losses)


# -- predictions -----------------------------------------------------------------------------


def answers_about(estimator: KernelEstimator, samples: Samples) -> Answers | str:
    """Return unbiased predictions, or a sentence that explains why there are none."""
    name = type(estimator).__name__
    if samples.y is None:
        return "Predictions are not scored without y."
    if samples.new is None:
        return (
            f"Predictions are not scored: {name} does not keep all training rows, so these rows "
            "may be training samples or not. Pass new=True or new=False."
        )
    if samples.new.any():
        return _about_new(estimator, samples)
    left_out = left_out_answers(estimator)
    if left_out is None and learns_kernels(getattr(estimator, "union_", None)):
        return (
            "Predictions are not scored: these are training samples, and kernels that learn from "
            "targets have seen them. Pass new samples, or choose parameters by folds, as "
            f"{name.removesuffix('CV')}CV(cv=5) does."
        )
    if left_out is None:
        return (
            f"Predictions are not scored: these are training samples, and {name} has no unbiased "
            "held-out predictions. Pass new samples."
        )
    rows = np.flatnonzero(samples.weights) if left_out.rows is None else left_out.rows
    rows = rows[rows < len(samples)]
    y = samples.y[rows]
    if not samples.complete or len(y) != len(left_out.predictions):
        return (
            "Predictions are not scored: these are training samples, and the held-out predictions "
            "of the model are those of all training samples in their order, without rows of "
            "weight zero. Pass X, y and sample_weight as in training, or new samples."
        )
    known, groups = left_out.known, samples.groups[rows]
    n_splits = getattr(estimator, "n_splits_", 1)
    n_folds = n_splits if n_splits > 1 else len(np.unique(groups))
    how = counted(int(known.sum()), "training sample")
    if n_splits > 1:
        how += f", held out in {n_splits} folds, the parameters of each chosen by the others"
    else:
        how += ", each left out in closed form"
        if hasattr(estimator, "cv_results_"):
            how += ", the parameters chosen with all of them"
    if kept := samples.about_groups(rows):
        how += f"; {kept}"
    how += _WEIGHTED if samples.weighted else ""
    probabilities = None if left_out.log_proba is None else np.exp(left_out.log_proba)[known]
    predictions = left_out.predictions[known]
    weights = samples.weights[rows][known]
    return Answers(y[known], predictions, probabilities, how, weights, groups[known], n_folds)


def _about_new(estimator: KernelEstimator, samples: Samples) -> Answers:
    assert samples.new is not None
    assert samples.y is not None
    rows = np.flatnonzero(samples.new)
    X = samples.rows(rows)
    probabilities = None
    if is_classifier(estimator) and hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
    how = counted(len(rows), "new sample")
    weights, groups = samples.weights[rows], samples.groups[rows]
    if samples.labels is not None:
        how += f" of {counted(len(np.unique(groups)), 'group')}"
    if seen := int(np.count_nonzero(samples.weights)) - len(rows):
        how += f"; {counted(seen, 'row')} of X equal to training samples left out"
    how += _WEIGHTED if samples.weighted else ""
    return Answers(samples.y[rows], estimator.predict(X), probabilities, how, weights, groups)


# -- scores ----------------------------------------------------------------------------------


def judgement(estimator: KernelEstimator, samples: Samples) -> dict[str, Any] | str:
    """Return the scores of predictions, or a sentence that explains why there are none."""
    if is_outlier_detector(estimator):
        return _of_novelties(estimator, samples)
    answers = answers_about(estimator, samples)
    if isinstance(answers, str):
        return answers
    if not len(answers.y):
        return "Predictions are not scored: no sample has a held-out prediction."
    common = {"how": answers.how, "n_samples": len(answers.y), "confidence": CONFIDENCE}
    if isinstance(estimator, SurvivalEstimator):
        survival = _of_survival(estimator, answers)
        return survival if isinstance(survival, str) else {**common, **survival}
    if hasattr(estimator, "n_labels_"):
        return {**common, **_of_labels(answers)}
    if is_classifier(estimator):
        return {**common, **_of_classes(estimator.classes_, answers)}
    return {**common, **_of_numbers(estimator, answers)}


def _score(name: str, mean: Mean) -> dict[str, Any]:
    return {"name": name, "value": mean.value, "low": mean.low, "high": mean.high}


def _of_classes(classes: np.ndarray, answers: Answers) -> dict[str, Any]:
    y, predictions = answers.y, answers.predictions
    # New samples may be of classes that the model does not know.
    labels = np.array([*classes, *np.setdiff1d(y, classes)])
    true = np.array([int(np.flatnonzero(labels == label)[0]) for label in y])
    predicted = np.array([int(np.flatnonzero(labels == label)[0]) for label in predictions])
    table = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(table, (true, predicted), 1)
    wrong = (true != predicted).astype(float)
    # Sums of weights, as opposed to the counts in the table.
    masses, predicted_masses, hits = (
        np.bincount(rows, answers.weights * keep, len(labels))
        for rows, keep in ((true, 1.0), (predicted, 1.0), (true, true == predicted))
    )
    recalls = hits[masses > 0] / masses[masses > 0]
    scores = [
        _score("accuracy", answers.mean(wrong, hit_or_miss=True).times(-1.0, 1.0)),
        {"name": "mean recall of the classes", "value": float(recalls.mean())},
    ]
    contents: dict[str, Any] = {
        "scores": scores,
        "baseline": {
            "name": "always the most frequent class",
            "value": float(masses.max() / masses.sum()),
        },
        "classes": [
            {
                "name": str(label),
                "n": int(table[k].sum()),
                "recall": hits[k] / masses[k] if masses[k] else None,
                "precision": hits[k] / predicted_masses[k] if predicted_masses[k] else None,
            }
            for k, label in enumerate(labels)
        ],
    }
    if len(labels) <= _MOST_CLASSES:
        contents["confusion"] = table
    else:
        off = table - np.diag(np.diag(table))
        order = np.argsort(-off, axis=None, kind="stable")[:_CONFUSIONS]
        pairs = [np.unravel_index(k, off.shape) for k in order]
        contents["confusions"] = [
            {"true": str(labels[i]), "predicted": str(labels[j]), "n": int(off[i, j])}
            for i, j in pairs
            if off[i, j]
        ]
    if answers.probabilities is not None and len(labels) == len(classes):
        probabilities = answers.probabilities
        of_true = probabilities[np.arange(len(true)), true]
        losses = -np.log(np.clip(of_true, _LEAST_PROBABILITY, None))
        scores.append(_score("log loss", answers.mean(losses)))
        if len(classes) == 2:
            curve = calibration(probabilities[:, 1], true == 1, answers.weights)
            about = f"probability of {classes[1]}"
        else:
            best = probabilities.max(axis=1)
            curve = calibration(best, true == predicted, answers.weights)
            about = "probability of the predicted class"
        if curve:
            contents["calibration"] = {"of": about, "bins": curve}
    return contents


def calibration(
    probabilities: np.ndarray, happened: np.ndarray, weights: np.ndarray
) -> list[dict[str, Any]]:
    """Compare predicted probabilities with observed frequencies, in bins of equal size.

    Returns an empty list if there are too few samples.
    """
    n_bins = min(_MOST_BINS, len(probabilities) // _PER_BIN)
    if n_bins < _FEWEST_BINS:
        return []
    order = np.argsort(probabilities, kind="stable")
    bins = []
    for rows in np.array_split(order, n_bins):
        intervals = Intervals(weights[rows], CONFIDENCE, np.inf, hit_or_miss=True)
        share = intervals.of(happened[rows].astype(float))
        bins.append(
            {
                "said": float(np.average(probabilities[rows], weights=weights[rows])),
                "happened": share.value,
                "low": share.low,
                "high": share.high,
                "n": len(rows),
            }
        )
    return bins


def _of_labels(answers: Answers) -> dict[str, Any]:
    rows = []
    for k, (y, predicted) in enumerate(zip(answers.y.T, answers.predictions.T, strict=True)):
        accuracy = answers.mean((y != predicted).astype(float), hit_or_miss=True).times(-1.0, 1.0)
        share = float(np.average(y != 0, weights=answers.weights))
        rows.append(
            {
                "name": str(k),
                "share": share,
                "baseline": max(share, 1.0 - share),
                **_score("accuracy", accuracy),
                "label": f"label {k}",
            }
        )
    mean = float(np.mean([row["value"] for row in rows]))
    return {"labels": rows, "scores": [{"name": "mean accuracy of the labels", "value": mean}]}


def _of_numbers(estimator: KernelEstimator, answers: Answers) -> dict[str, Any]:
    y = answers.y.reshape(len(answers.y), -1).astype(float)
    predicted = answers.predictions.reshape(y.shape)
    mean = partial(np.average, weights=answers.weights)
    targets = []
    for k in range(y.shape[1]):
        errors, deviations = predicted[:, k] - y[:, k], y[:, k] - mean(y[:, k])
        variance = mean(deviations**2)
        scores = [
            {"name": "root mean square error", "value": float(np.sqrt(mean(errors**2)))},
            _score("mean absolute error", answers.mean(np.abs(errors))),
        ]
        if variance > 0.0:
            # As in view_importance, R² takes the variance of y as given.
            scores.insert(0, _score("R²", answers.mean(errors**2 / variance).times(-1.0, 1.0)))
        if isinstance(estimator, GeneralizedRegressor):
            scores.insert(0, _explained(estimator, answers))
        step = -(-len(y) // _MOST_POINTS)
        points = np.column_stack([y[::step, k], predicted[::step, k]])
        targets.append(
            {
                "name": f"target {k}" if y.shape[1] > 1 else "",
                "scores": scores,
                "deviation": float(np.sqrt(variance)),
                "points": points,
                "every": step,
                "errors": np.quantile(errors, [0.05, 0.25, 0.5, 0.75, 0.95]),
            }
        )
    return {
        "targets": targets,
        "scores": targets[0]["scores"] if len(targets) == 1 else _means_of(targets),
        "baseline": {
            "name": "the best constant"
            if isinstance(estimator, GeneralizedRegressor)
            else "always the mean",
            "value": 0.0,
        },
    }


def _explained(estimator: GeneralizedRegressor, answers: Answers) -> dict[str, Any]:
    """Return D², the explained share of the loss, with its interval if it has one."""
    y, every = np.asarray(answers.y, dtype=float), np.ones(len(answers.y), bool)
    loss = loss_maker(estimator.loss)
    try:
        losses = deviance_losses(loss, y, answers.predictions, answers.weights, every)
    except ValueError:
        known = estimator._known(answers.predictions)
        return {"name": "D²", "value": known.score(None, y, answers.weights)}
    return _score("D²", answers.mean(losses).times(-1.0, 1.0))


def _means_of(targets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    scores = (score for target in targets for score in target["scores"])
    values = [score["value"] for score in scores if score["name"] == "R²"]
    return [{"name": "mean R² of the targets", "value": float(np.mean(values))}] if values else []


# Number of groups of samples by their risk, and the largest number of groups by their
# probability of survival.
_RISK_GROUPS, _MOST_SURVIVAL_GROUPS = 3, 5


def _of_survival(estimator: KernelEstimator, answers: Answers) -> dict[str, Any] | str:
    y, risk, weights = answers.y, answers.predictions, answers.weights
    try:
        losses = discordances(y, risk, weights)
    except ValueError as error:
        return f"Predictions are not scored. {error}"
    index = answers.mean(losses, events=y["event"]).times(-1.0, 1.0)
    known = KnownRisks(risk, survival_field(y, "stratum"), survival_field(y, "entry"))
    y = repack_fields(y[["event", "time"]])
    explained = partial_likelihood_scorer(known, None, y, weights)
    contents: dict[str, Any] = {
        "n_events": int(y["event"].sum()),
        "scores": [
            _score("concordance index", index),
            {"name": "share of the partial deviance explained", "value": explained},
        ],
        "baseline": {"name": "equal risks of all samples", "value": 0.5},
    }
    options: dict[str, Any] = {"confidence": CONFIDENCE, "sample_weight": weights}
    if len(np.unique(risk)) >= _RISK_GROUPS:
        try:
            display = SurvivalDisplay.of_predictions(y, risk, n_groups=_RISK_GROUPS, **options)
            contents["curves"] = display.data()
        except ValueError:  # too many equal risks
            pass
    contents["survival"] = _survival_calibration(estimator, answers, options)
    return contents


def _survival_calibration(
    estimator: Any, answers: Answers, options: dict[str, Any]
) -> dict[str, Any] | str:
    """Return predicted and observed survival up to the median event time, or why there is none."""
    y, risk = answers.y, answers.predictions
    hazard, strata = estimator.baseline_hazard_, survival_field(y, "stratum")
    if not isinstance(hazard, dict):
        hazard, strata = {None: hazard}, np.full(len(y), None)
    if strata is None:
        return (
            "The calibration is not shown: every stratum has a baseline hazard of its own, and "
            "the strata of the samples were not passed. Pass strata=…, as in training."
        )
    y = repack_fields(y[["event", "time"]])
    if unknown := sorted({str(name) for name in strata if name not in hazard}):
        return f"The calibration is not shown: stratum {unknown[0]!r} was not in training."
    end = min(hazard[name].end for name in dict.fromkeys(strata))
    times = y["time"][y["event"] & (y["time"] <= end)]
    n_groups = min(_MOST_SURVIVAL_GROUPS, len(y) // _PER_BIN)
    few = "The calibration is not shown: there are too few samples, events or different risks."
    if n_groups < _FEWEST_BINS or not len(times):
        return few
    # Three digits are enough for a time that is not special.
    horizon = min(float(f"{np.median(times):.3g}"), end, float(y["time"].max()))
    survival = np.empty(len(risk))
    for name, of_stratum in hazard.items():
        rows = np.array([other == name for other in strata])
        survival[rows] = survival_probabilities(np.array([of_stratum(horizon)]), risk[rows])[:, 0]
    try:
        display = SurvivalCalibrationDisplay.of_predictions(
            y, survival, horizon, n_groups=n_groups, **options
        )
    except ValueError:
        return few
    return {"groups": display.data(), "held_out": answers.n_folds is not None}


def _of_novelties(estimator: KernelEstimator, samples: Samples) -> dict[str, Any] | str:
    if samples.new is None or not samples.new.any():
        return (
            "Novelties are not counted: these are training samples, and ν determines how many of "
            "them are novelties. Pass new samples."
        )
    rows = np.flatnonzero(samples.new)
    values = estimator.decision_function(samples.rows(rows))
    how = counted(len(rows), "new sample") + (_WEIGHTED if samples.weighted else "")
    weights, groups = samples.weights[rows], samples.groups[rows]
    answers = Answers(values, values, None, how, weights, groups)
    outside = answers.mean((values < 0).astype(float), hit_or_miss=True)
    return {
        "how": how,
        "n_samples": len(rows),
        "confidence": CONFIDENCE,
        "scores": [_score("share of novelties", outside)],
        "decision": np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]),
    }
