"""How good predictions are, on samples that the model has not learnt from and on no others.

Left-out results of training samples are used where the model has honest ones. Otherwise it is
judged by rows of X that are new to it. A score on training samples is never given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from .._folds import about_repeats
from ..estimators._inputs import groups_of
from ..inspection.intervals import Intervals, Mean
from ..inspection.learners import LeftOutAnswers, left_out_answers
from .plain import counted
from .samples import Samples

#: Confidence of all intervals of a report.
CONFIDENCE = 0.95
# Most classes whose confusion is shown as a table, and else how many of the largest confusions.
_MOST_CLASSES, _CONFUSIONS = 20, 10
# Samples for each point of a calibration curve: fewer tell hardly anything of a share. With fewer
# than three points there is no curve.
_PER_BIN, _FEWEST_BINS, _MOST_BINS = 10, 3, 10
# Points of a picture of predictions: more cover each other and make a large file.
_MOST_POINTS = 400
# Least probability whose logarithm is taken: that of a certain error would be infinite.
_LEAST_PROBABILITY = 1e-15


@dataclass(frozen=True)
class Answers:
    """Answers about samples that a model has not learnt from, and what is true of them.

    Attributes
    ----------
    y, predictions : ndarray of shape (n_rows,), or (n_rows, n_targets)
    probabilities : ndarray of shape (n_rows, n_classes) or None
    how : str
        Where they are from.
    groups : ndarray of int, (n_rows,)
        Rows of one group were left out together, and are not independent.
    n_folds : int or None
        Number of models that were each learnt without a part of the samples; None if samples are
        judged by one model that has seen none of them.
    """

    y: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray | None
    how: str
    groups: np.ndarray
    n_folds: int | None = None

    def mean(self, losses: np.ndarray, hit_or_miss: bool = False) -> Mean:
        """Mean of the losses of single samples, with its interval."""
        # What a model of all other samples has seen of all; nothing is shared by new ones.
        share = np.inf if self.n_folds is None else 1.0 - 1.0 / self.n_folds
        ones = np.ones(len(losses))
        return Intervals(ones, CONFIDENCE, share, hit_or_miss, groups=self.groups).of(losses)


# -- answers ---------------------------------------------------------------------------------


def answers_about(estimator: Any, samples: Samples) -> Answers | str:
    """Honest answers, or a sentence that says why there are none."""
    name = type(estimator).__name__
    if samples.y is None:
        return "Predictions are not judged without y."
    if samples.new is None:
        return (
            f"Predictions are not judged: {name} does not keep all training rows, so that these "
            "may be new or not. Pass new=True or new=False."
        )
    if samples.new.any():
        return _about_new(estimator, samples)
    left_out = _left_out(estimator)
    if left_out is None:
        return (
            f"Predictions are not judged: the model has learnt from these samples, and {name} has "
            "no honest answers about samples that were left out. Pass samples that it has not "
            "seen."
        )
    rows = np.arange(len(samples)) if left_out.rows is None else left_out.rows
    rows = rows[rows < len(samples)]
    y = samples.y[rows]
    if not samples.complete or len(y) != len(left_out.predictions):
        return (
            "Predictions are not judged: the model has learnt from these samples, and its answers "
            "about left-out ones are those of all training samples in their order, without rows "
            "of weight zero. Pass X and y as they were then, or samples that it has not seen."
        )
    known, groups = left_out.known, groups_of(samples.data)[rows]
    n_splits = getattr(estimator, "n_splits_", 1)
    if hasattr(estimator, "estimators_"):
        n_splits = estimator.estimators_[0].n_splits_
    n_folds = n_splits if n_splits > 1 else len(np.unique(groups))
    how = counted(int(known.sum()), "training sample")
    if n_splits > 1:
        how += f", held out in {n_splits} folds, the parameters of each chosen by the others"
    else:
        how += ", each left out in closed form"
        if hasattr(estimator, "cv_results_"):
            how += ", the parameters chosen with all of them"
    if told := about_repeats(groups):
        how += f"; {told}"
    probabilities = None if left_out.log_proba is None else np.exp(left_out.log_proba)[known]
    predictions = left_out.predictions[known]
    return Answers(y[known], predictions, probabilities, how, groups[known], n_folds)


def _about_new(estimator: Any, samples: Samples) -> Answers:
    assert samples.new is not None
    assert samples.y is not None
    rows = np.flatnonzero(samples.new)
    X = samples.rows(rows)
    probabilities = None
    if is_classifier(estimator) and hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
    seen = len(samples) - len(rows)
    how = counted(len(rows), "new sample") + (
        f"; {counted(seen, 'row')} of X equal to training samples left aside" if seen else ""
    )
    groups = groups_of(samples.data)[rows]
    return Answers(samples.y[rows], estimator.predict(X), probabilities, how, groups)


def _left_out(estimator: Any) -> LeftOutAnswers | None:
    """Honest answers about training rows; of several labels, the probabilities of each."""
    models = getattr(estimator, "estimators_", None)
    if models is None:
        return left_out_answers(estimator)
    answers = [left_out_answers(model) for model in models]
    if any(one is None or one.log_proba is None for one in answers):
        return None
    logs = np.column_stack([one.log_proba[:, 1] for one in answers])  # type: ignore[union-attr,index]
    known = np.all([one.known for one in answers], axis=0)  # type: ignore[union-attr]
    return LeftOutAnswers((logs > np.log(0.5)).astype(int), logs, known, None)


# -- scores ----------------------------------------------------------------------------------


def judgement(estimator: Any, samples: Samples) -> dict[str, Any] | str:
    """The part of a report about predictions, or a sentence that says why there is none."""
    if is_outlier_detector(estimator):
        return _of_novelties(estimator, samples)
    answers = answers_about(estimator, samples)
    if isinstance(answers, str):
        return answers
    if not len(answers.y):
        return "Predictions are not judged: no sample has a left-out answer."
    common = {"how": answers.how, "n_samples": len(answers.y), "confidence": CONFIDENCE}
    if hasattr(estimator, "estimators_"):
        return {**common, **_of_labels(answers)}
    if is_classifier(estimator):
        return {**common, **_of_classes(estimator.classes_, answers)}
    return {**common, **_of_numbers(answers)}


def _score(name: str, mean: Mean) -> dict[str, Any]:
    return {"name": name, "value": mean.value, "low": mean.low, "high": mean.high}


def _of_classes(classes: np.ndarray, answers: Answers) -> dict[str, Any]:
    y, predictions = answers.y, answers.predictions
    # Classes that the model does not know may be among new samples.
    labels = np.array([*classes, *np.setdiff1d(y, classes)])
    true = np.array([int(np.flatnonzero(labels == one)[0]) for one in y])
    said = np.array([int(np.flatnonzero(labels == one)[0]) for one in predictions])
    table = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(table, (true, said), 1)
    wrong = (true != said).astype(float)
    sizes, named = table.sum(axis=1), table.sum(axis=0)
    hits = np.diag(table)
    recalls = hits[sizes > 0] / sizes[sizes > 0]
    scores = [
        _score("accuracy", answers.mean(wrong, hit_or_miss=True).times(-1.0, 1.0)),
        {"name": "mean recall of the classes", "value": float(recalls.mean())},
    ]
    found: dict[str, Any] = {
        "scores": scores,
        "baseline": {
            "name": "always the most frequent class",
            "value": float(sizes.max() / sizes.sum()),
        },
        "classes": [
            {
                "name": str(label),
                "n": int(sizes[k]),
                "recall": hits[k] / sizes[k] if sizes[k] else None,
                "precision": hits[k] / named[k] if named[k] else None,
            }
            for k, label in enumerate(labels)
        ],
    }
    if len(labels) <= _MOST_CLASSES:
        found["confusion"] = table
    else:
        off = table - np.diag(hits)
        order = np.argsort(-off, axis=None, kind="stable")[:_CONFUSIONS]
        pairs = [np.unravel_index(k, off.shape) for k in order]
        found["confusions"] = [
            {"true": str(labels[i]), "predicted": str(labels[j]), "n": int(off[i, j])}
            for i, j in pairs
            if off[i, j]
        ]
    if answers.probabilities is not None and len(labels) == len(classes):
        chances = answers.probabilities
        losses = -np.log(np.clip(chances[np.arange(len(true)), true], _LEAST_PROBABILITY, None))
        scores.append(_score("log loss", answers.mean(losses)))
        if len(classes) == 2:
            curve = calibration(chances[:, 1], true == 1)
            about = f"probability of {classes[1]}"
        else:
            curve = calibration(chances.max(axis=1), true == said)
            about = "probability of the predicted class"
        if curve:
            found["calibration"] = {"of": about, "bins": curve}
    return found


def calibration(chances: np.ndarray, happened: np.ndarray) -> list[dict[str, Any]]:
    """What was said and what happened, in groups of samples with similar probabilities.

    Groups are equally large. An empty list if there are too few samples.
    """
    n_bins = min(_MOST_BINS, len(chances) // _PER_BIN)
    if n_bins < _FEWEST_BINS:
        return []
    order = np.argsort(chances, kind="stable")
    bins = []
    for rows in np.array_split(order, n_bins):
        share = Intervals(np.ones(len(rows)), CONFIDENCE, np.inf, True).of(
            happened[rows].astype(float)
        )
        bins.append(
            {
                "said": float(chances[rows].mean()),
                "happened": share.value,
                "low": share.low,
                "high": share.high,
                "n": len(rows),
            }
        )
    return bins


def _of_labels(answers: Answers) -> dict[str, Any]:
    rows = []
    for k, (y, said) in enumerate(zip(answers.y.T, answers.predictions.T, strict=True)):
        accuracy = answers.mean((y != said).astype(float), hit_or_miss=True).times(-1.0, 1.0)
        share = float(np.mean(y != 0))
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


def _of_numbers(answers: Answers) -> dict[str, Any]:
    y = answers.y.reshape(len(answers.y), -1).astype(float)
    said = answers.predictions.reshape(y.shape)
    targets = []
    for k in range(y.shape[1]):
        errors = said[:, k] - y[:, k]
        variance = float(np.var(y[:, k]))
        scores = [
            {"name": "root mean square error", "value": float(np.sqrt(np.mean(errors**2)))},
            _score("mean absolute error", answers.mean(np.abs(errors))),
        ]
        if variance > 0.0:
            # As in view_importance, R² takes the variance of y as given.
            scores.insert(0, _score("R²", answers.mean(errors**2 / variance).times(-1.0, 1.0)))
        step = -(-len(y) // _MOST_POINTS)
        points = np.column_stack([y[::step, k], said[::step, k]])
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
        "baseline": {"name": "always the mean", "value": 0.0},
    }


def _means_of(targets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = [score["value"] for one in targets for score in one["scores"] if score["name"] == "R²"]
    return [{"name": "mean R² of the targets", "value": float(np.mean(known))}] if known else []


def _of_novelties(estimator: Any, samples: Samples) -> dict[str, Any] | str:
    if samples.new is None or not samples.new.any():
        return (
            "Samples outside are not counted: the model has learnt from these, and ν says how "
            "many of them are left outside. Pass samples that it has not seen."
        )
    rows = np.flatnonzero(samples.new)
    values = estimator.decision_function(samples.rows(rows))
    answers = Answers(values, values, None, "", groups_of(samples.data)[rows])
    outside = answers.mean((values < 0).astype(float), hit_or_miss=True)
    return {
        "how": counted(len(rows), "new sample"),
        "n_samples": len(rows),
        "confidence": CONFIDENCE,
        "scores": [_score("share outside", outside)],
        "decision": np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]),
    }
