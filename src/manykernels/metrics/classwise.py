"""Means over classes: of accuracies, Matthews correlations and average precisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score, make_scorer, matthews_corrcoef, recall_score
from sklearn.utils.multiclass import type_of_target, unique_labels
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from ..utils.sklearn import check_sample_weight, check_y
from ..utils.storable import storable


@storable
def mean_class_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean over classes of the fraction of correctly classified samples.

    The measure of the Caltech101 experiments (Yan 2012, section 3.4). The same number as
    :func:`sklearn.metrics.balanced_accuracy_score`, without its warnings about classes that
    only occur among the predictions: these have no accuracy and are ignored.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted classes, of any kind.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    accuracy : float
        Between 0 and 1; 1 if all predictions are right.

    Examples
    --------
    >>> from manykernels.metrics import mean_class_accuracy
    >>> mean_class_accuracy(["cat", "cat", "cat", "dog"], ["cat", "cat", "cow", "dog"])
    0.8333333333333333
    """
    y_true, y_pred, weights = _checked_labels(y_true, y_pred, sample_weight)
    return float(
        recall_score(y_true, y_pred, average="macro", sample_weight=weights, zero_division=np.nan)
    )


@storable
def mean_class_mcc(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean over classes of the Matthews correlation of each class against the rest.

    The measure of the protein data sets (Zien and Ong 2007; Kloft 2011; Yan 2012, section 3.6),
    which print ``100 · (1 − mean_class_mcc)``. The mean is over the classes of `y_true`, so that
    it has as many terms for every method. For two classes both terms are
    :func:`sklearn.metrics.matthews_corrcoef`; for more classes that function differs.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As in :func:`mean_class_accuracy`.

    Returns
    -------
    mcc : float
        Between −1 and 1; 1 if all predictions of at least two classes are right. A correlation
        with a constant counts as 0, as in scikit-learn: for a class that is never predicted, or
        for a single class.

    References
    ----------
    A. Zien, C. S. Ong. Multiclass multiple kernel learning. ICML 2007.

    Examples
    --------
    >>> from manykernels.metrics import mean_class_mcc
    >>> y_true, y_pred = list("aaabbc"), list("aabbbc")
    >>> round(mean_class_mcc(y_true, y_pred), 3)
    0.805
    >>> f"{100 * (1 - mean_class_mcc(y_true, y_pred)):.1f} %"
    '19.5 %'
    """
    y_true, y_pred, weights = _checked_labels(y_true, y_pred, sample_weight)
    if len(unique_labels(y_true, y_pred)) == 1:
        return 0.0  # without the warning of matthews_corrcoef
    shares = weights / weights.sum()  # because squares of large weights would overflow
    each = [
        matthews_corrcoef(y_true == k, y_pred == k, sample_weight=shares)
        for k in np.unique(y_true)
    ]
    return float(np.mean(each))


def mean_average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean over classes of the average precision of their scores.

    The measure of the Pascal VOC experiments (Yan 2012, sections 3.2 and 3.3): the samples are
    ranked by the score of a class, and the precision is averaged over the ranks of
    the samples of that class. The average precision of one class is
    :func:`sklearn.metrics.average_precision_score`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Classes, or an indicator matrix of the (possibly several) classes of each sample.
    y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores or probabilities, one column per class. For two classes, the average precision of
        the second is returned: its scores suffice, and of two columns the second is used.
    labels : array-like of shape (n_classes,), optional
        Classes of the columns, by default the sorted classes of `y_true`. Needed if not all of
        them occur there; not for indicators.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    precision : float
        Between 0 and 1; 1 if the samples of each class rank before all others. Classes without
        samples are ignored.

    Examples
    --------
    >>> from manykernels.metrics import mean_average_precision
    >>> mean_average_precision(["no", "no", "yes", "yes"], [0.1, 0.4, 0.35, 0.8])
    0.8333333333333333
    >>> mean_average_precision([[1, 0], [1, 1], [0, 1]], [[0.9, 0.1], [0.8, 0.7], [0.2, 0.6]])
    1.0
    """
    scores = _checked_scores(y_score)
    members, scores = _members_and_scores(y_true, scores, labels)
    weights = check_sample_weight(sample_weight, scores, ensure_non_negative=True)
    members, scores, weights = (array[weights > 0] for array in (members, scores, weights))
    occurring = members.any(axis=0)
    if not occurring.any():
        raise ValueError("No sample belongs to a class with scores: the precision is undefined.")
    members, scores = members[:, occurring], scores[:, occurring]
    return float(average_precision_score(members, scores, sample_weight=weights))


def _members_and_scores(
    y_true: ArrayLike, scores: np.ndarray, labels: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return class indicators and scores of the samples, (n_samples, n_classes) each."""
    check_consistent_length(y_true, scores)
    if not sparse.issparse(y_true) and np.ndim(y_true) == 1:
        y_true = check_y(y_true)
    if type_of_target(y_true, input_name="y_true") == "multilabel-indicator":
        if labels is not None:
            raise ValueError(
                "labels are allowed only if y_true is a vector, not an indicator matrix."
            )
        members = check_array(y_true, accept_sparse=True) != 0
        members = members.toarray() if sparse.issparse(members) else members
        if members.shape != scores.shape:
            raise ValueError(
                f"y_true is an indicator of shape {members.shape}, so y_score needs the same "
                f"shape; got {scores.shape}."
            )
        return members, scores
    truth: np.ndarray = column_or_1d(y_true)
    classes = np.unique(truth) if labels is None else column_or_1d(labels)
    if len(classes) == 1:
        raise ValueError(
            f"All samples are of one class, {classes.tolist()[0]!r}: pass labels to name the "
            "class of the scores."
        )
    if unknown := sorted(set(truth.tolist()) - set(classes.tolist()), key=str):
        raise ValueError(f"y_true has classes that are not among the labels: {unknown}.")
    n_columns = scores.shape[1]
    if len(classes) == 2 and n_columns <= 2:
        # Scores of the second class alone: the scores of the first are their negatives.
        return (truth == classes[1])[:, None], scores[:, -1:]
    if n_columns != len(classes):
        raise ValueError(
            f"y_score has {n_columns} columns for {len(classes)} classes ({classes.tolist()}); "
            "pass labels if some classes do not occur in y_true."
        )
    return truth[:, None] == classes, scores


# -- scorers -------------------------------------------------------------------------------


@storable
def mean_average_precision_scorer(
    estimator: BaseEstimator, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return :func:`mean_average_precision` of a fitted classifier, for ``scoring=``.

    Takes the classes from the classifier, so that not all of them need occur in y.

    Parameters
    ----------
    estimator : fitted classifier
        Classifier with ``decision_function`` or ``predict_proba``.
    X, y : test samples and their classes, or an indicator of them
    sample_weight : array-like of shape (n_samples,), optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> from manykernels.metrics.classwise import mean_average_precision_scorer
    >>> flowers = load_iris(return_X_y=True)
    >>> mean_average_precision_scorer(MKFDA().fit(*flowers), *flowers) > 0.95
    True
    """
    scores = _scores(estimator, X)
    is_indicator = type_of_target(y) == "multilabel-indicator"
    labels = None if is_indicator else getattr(estimator, "classes_", None)
    return mean_average_precision(y, scores, labels=labels, sample_weight=sample_weight)


def _scores(estimator: BaseEstimator, X: object) -> Any:
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # one array for each of several outputs
        return np.column_stack([output[:, -1] for output in probabilities])
    return probabilities


#: Scorers of classifiers by the names of the measures.
CLASS_SCORERS: dict[str, Callable[..., float]] = {
    "mean_class_accuracy": make_scorer(mean_class_accuracy),
    "mean_class_mcc": make_scorer(mean_class_mcc),
    "mean_average_precision": mean_average_precision_scorer,
}


# -- checks --------------------------------------------------------------------------------


def _checked_labels(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels and weights of the samples with positive weight."""
    check_consistent_length(y_true, y_pred, sample_weight)
    truth, predicted = check_y(y_true), check_y(y_pred)
    for name, labels in (("y_true", truth), ("y_pred", predicted)):
        kind = type_of_target(labels, input_name=name)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"{name} must be one class per sample, got {kind} values.")
    unique_labels(truth, predicted)  # raises if numbers and strings are mixed
    weights = check_sample_weight(sample_weight, truth, ensure_non_negative=True)
    counting = weights > 0
    return truth[counting], predicted[counting], weights[counting]


def _checked_scores(y_score: ArrayLike) -> np.ndarray:
    """Return finite scores, (n_samples, n_columns)."""
    scores = np.asarray(y_score, dtype=np.float64)
    if scores.ndim not in (1, 2):
        raise ValueError(f"y_score must have one or two dimensions, got shape {scores.shape}.")
    scores = scores[:, None] if scores.ndim == 1 else scores
    if not np.isfinite(scores).all():
        sample, column = np.argwhere(~np.isfinite(scores))[0]
        raise ValueError(
            f"y_score is {scores[sample, column]} at sample {sample}, column {column}: scores "
            "must be finite."
        )
    return scores


# -- Number of kernels used by a model, from weights over their last axis -------------------------


# A kernel counts as used if it has more than this share of the weights. Smaller shares are not
# determined by a relative gap of 1e-6.
_IN_USE = 1e-4


def effective_number(weights: Any) -> Any:
    """Return the effective number of kernels, ``(Σ w)² / Σ w²``, over the last axis.

    It is n for n kernels of equal weight, and 1 for a single kernel. Small weights hardly change
    it; the other usual measure, the exponential of the entropy of the shares, also counts the
    small weights that every p > 1 gives to every kernel.

    Parameters
    ----------
    weights : array-like of shape (..., n_kernels)
        Non-negative, not all zero. NaN, where a path could not be solved, gives NaN.

    Examples
    --------
    >>> from manykernels.metrics.classwise import effective_number
    >>> float(effective_number([0.5, 0.5, 0.0])), float(effective_number([3.0, 0.0]))
    (2.0, 1.0)
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not weights.size or weights.min() < 0 or (weights.max(axis=-1) <= 0).any():
        raise ValueError("weights must be non-negative, and not all zero.")
    weights = weights / weights.max(axis=-1, keepdims=True)
    return weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1)


def in_use(weights: np.ndarray) -> np.ndarray:
    """Return the mask of kernels with more than a negligible share, over the last axis."""
    total = weights.sum(axis=-1, keepdims=True)
    used: np.ndarray = weights > _IN_USE * total
    return used
