"""Scorers of scikit-learn, asked about answers that are known already."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

#: An estimator with known answers, the truth, and how often each sample counts (None for once).
Answers = tuple[BaseEstimator, np.ndarray, np.ndarray | None]


def score_table(
    solved: np.ndarray,
    n_splits: int,
    judged: Callable[[tuple[int, ...]], Iterable[Answers]],
    scorer: Callable[..., float],
) -> np.ndarray:
    """Scores in every split at the `solved` points of a grid, (n_splits, …); NaN at the others.

    `judged` has the answers of all splits at the position of a point.
    """
    table = np.full((n_splits, *solved.shape), np.nan)
    for position in map(tuple, np.argwhere(solved).tolist()):
        for k, (known, truth, counts) in enumerate(judged(position)):
            options = {} if counts is None else {"sample_weight": counts}
            table[(k, *position)] = _score(scorer, known, truth, options, k)
    return table


def _score(
    scorer: Callable[..., float], known: Any, truth: np.ndarray, options: Any, split: int
) -> float:
    """The score of one split; the error of a score that lacks a class says so."""
    if not isinstance(known, KnownClassifier):
        return scorer(known, None, truth, **options)
    lacking = lacking_class(known.classes, truth)
    try:
        score = with_classes(scorer, known.classes)(known, None, truth, **options)
    except ValueError as error:
        if not lacking:
            raise
        raise _unscored(scorer, split, lacking) from error
    if lacking and np.isnan(score):
        raise _unscored(scorer, split, lacking)
    return score


def _unscored(scorer: Any, split: int, lacking: str) -> ValueError:
    function = getattr(scorer, "_score_func", scorer)
    name = getattr(function, "__name__", repr(function))
    return ValueError(
        f"{name} is not defined for the test part of split {split} (counted from 0), which "
        f"{lacking}. Pass a cv with fewer splits that keeps classes in proportion, such as cv=2, "
        "or a scoring that needs no sample of every class, such as 'neg_log_loss' or 'accuracy'."
    )


def lacking_class(classes: np.ndarray, truth: np.ndarray) -> str:
    """That a class has no sample, in words; empty if all have some."""
    missing = np.setdiff1d(classes, truth)
    return f"has no sample of class {missing.tolist()[0]!r}" if len(missing) else ""


def with_classes(scorer: Any, classes: np.ndarray) -> Any:
    """A scorer of scikit-learn that knows all classes, also those that a test part lacks.

    Scores of probabilities would otherwise take the classes of the test part for all of them.
    """
    function = getattr(scorer, "_score_func", None)
    if function is None or scorer._response_method == "predict":
        return scorer
    known = {"labels": classes, "pos_label": classes[1] if len(classes) == 2 else None}
    parameters = inspect.signature(function).parameters
    missing = {
        name: value
        for name, value in known.items()
        if name in parameters
        if parameters[name].default is None
        if name not in scorer._kwargs
    }
    told = copy.copy(scorer)
    told._kwargs = {**scorer._kwargs, **missing}
    return told


def score_of(answers: Answers, scorer: Callable[..., float]) -> float:
    """The score of known answers."""
    return float(score_table(np.ones((), dtype=bool), 1, lambda at: [answers], scorer)[0])


# Scores of scikit-learn between 0 and 1, those between −1 and 1, and those of at most 1, by the
# names of their functions; of the last two some are recognised by how they begin.
_SHARES = (
    *("accuracy", "balanced_accuracy", "top_k_accuracy", "average_precision", "roc_auc", "f1"),
    *("fbeta", "precision", "recall", "jaccard", "rand", "fowlkes_mallows", "completeness"),
    *("homogeneity", "v_measure", "normalized_mutual_info", "ndcg"),
)
_CORRELATIONS = ("matthews_corrcoef", "cohen_kappa", "adjusted_rand")
_AT_MOST_ONE = ("r2", "explained_variance", "d2_", "adjusted_mutual_info")


def range_of(scorer: Any) -> tuple[float, float]:
    """The least and the largest score that a scorer can give; infinite where it is not known."""
    name = str(getattr(getattr(scorer, "_score_func", None), "__name__", ""))
    if not name:
        return -np.inf, np.inf
    if getattr(scorer, "_sign", 1) < 0:  # a loss, which is zero at best
        return -np.inf, 0.0
    if name.removesuffix("_score") in _SHARES:
        return 0.0, 1.0
    if name.startswith(_CORRELATIONS):
        return -1.0, 1.0
    return -np.inf, 1.0 if name.startswith(_AT_MOST_ONE) else np.inf


class KnownClassifier(ClassifierMixin, BaseEstimator):
    """Base of classifiers whose answers are known, for scorers; their methods ignore `X`."""

    classes: np.ndarray

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        return self.classes

    def fit(self, X: Any, y: Any) -> Self:
        return self


class Judged(KnownClassifier):
    """Classifier with known log-probabilities, (n, c)."""

    def __init__(self, classes: np.ndarray, logs: np.ndarray):
        self.classes = classes
        self.logs = logs

    def decision_function(self, X: Any) -> np.ndarray:
        return self.logs[:, 1] - self.logs[:, 0] if len(self.classes) == 2 else self.logs

    def predict(self, X: Any) -> np.ndarray:
        return self.classes[self.logs.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.exp(self.logs)


class JudgedValues(RegressorMixin, BaseEstimator):
    """Regressor with known predictions, for scorers; its methods ignore `X`."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> JudgedValues:
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.values
