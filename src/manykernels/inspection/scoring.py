"""Scores that are means of the losses of held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator
from ..estimators.held_out import deviance_losses
from ..estimators.smooth import GeneralizedRegressor, loss_maker
from ..metrics.survival import concordance_index, concordance_influences
from .intervals import Mean


@dataclass(frozen=True)
class Answers:
    """Held-out predictions.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Classes, or numbers.
    judged : ndarray of bool, (n_rows,)
        Rows that were held out; the predictions of other rows are undefined.
    log_losses : ndarray of shape (n_rows,) or None
        ``−log P`` of the true class, if there are probabilities.
    log_odds : ndarray of shape (n_rows,) or None
        ``log P / (1 − P)`` of the second of two classes.
    """

    predictions: np.ndarray
    judged: np.ndarray
    log_losses: np.ndarray | None = None
    log_odds: np.ndarray | None = None

    def spread(self, rows: np.ndarray, n_rows: int) -> Answers:
        """Return predictions for `n_rows` rows, of which these are the given `rows`."""
        predictions = np.zeros((n_rows, *self.predictions.shape[1:]), self.predictions.dtype)
        predictions[rows] = self.predictions
        judged = np.zeros(n_rows, bool)
        judged[rows] = self.judged
        each = []
        for values in (self.log_losses, self.log_odds):
            spread = None if values is None else np.full(n_rows, np.nan)
            if spread is not None:
                spread[rows] = values
            each.append(spread)
        return Answers(predictions, judged, *each)


@dataclass(frozen=True)
class Judged:
    """Held-out predictions of a model, and their losses, (n_rows,)."""

    answers: Answers
    losses: np.ndarray


#: Function of y, predictions and sample weights that returns a loss per row, (n_rows,).
Losses = Callable[[np.ndarray, Answers, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scoring:
    """A score ``best − mean loss``; larger is better.

    Attributes
    ----------
    name : str
    losses : callable
    best : float
        Score of a model whose losses are zero.
    hit_or_miss : bool
        Whether every loss is 0 or 1.
    needs_probabilities : bool
    most : float
        Largest mean loss that is possible.
    of_pairs : bool
        Whether the score is a share of pairs of samples, and the losses are linearised: they
        depend on all samples that are held out.
    """

    name: str
    losses: Losses
    best: float = 0.0
    hit_or_miss: bool = False
    needs_probabilities: bool = False
    of_pairs: bool = False
    most: float = np.inf

    def of(self, y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        """Return the loss of each row; NaN for rows that were not held out."""
        losses = np.full(len(y), np.nan)
        losses[answers.judged] = self.losses(y, answers, weights)[answers.judged]
        return losses

    def score(self, mean_loss: Mean) -> Mean:
        """Convert the mean loss and its interval to the score."""
        return mean_loss.times(-1.0, self.best)


def _misses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return (y != answers.predictions).astype(float)


def _log_losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    assert answers.log_losses is not None
    return answers.log_losses


def _misses_by_class(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    """Return errors divided by the share of the class; their mean is 1 − balanced accuracy."""
    # The shares are those of all samples, so that losses of different models are comparable.
    classes, labels = np.unique(y, return_inverse=True)
    shares = np.bincount(labels, weights) / weights.sum()
    losses: np.ndarray = (y != answers.predictions) / (len(classes) * shares[labels])
    return losses


def _misordered(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    """Return linearised losses of log-odds, whose mean is one minus the area under the ROC curve.

    The area is the share of pairs of samples of both classes that are in the right order. The
    influences of the samples on it take the place of losses, as in :func:`discordances`.
    """
    classes = np.unique(y)
    if len(classes) != 2 or answers.log_odds is None:
        raise ValueError(
            f'scoring="roc_auc" is for two classes, and y has {len(classes)}: use '
            'scoring="balanced_accuracy" or "neg_log_loss".'
        )
    rows, losses = np.flatnonzero(answers.judged), np.full(len(y), np.nan)
    odds, w, second = answers.log_odds[rows], weights[rows], y[rows] == classes[1]
    if not second.any() or second.all():
        raise ValueError("The area under the ROC curve needs held-out samples of both classes.")
    right = np.empty(len(rows))
    for one, sign in ((second, 1.0), (~second, -1.0)):
        others = sign * odds[~one]
        order = np.argsort(others, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(w[~one][order])])
        below, up_to = (
            total[np.searchsorted(others[order], sign * odds[one], side=side)]
            for side in ("left", "right")
        )
        right[one] = 0.5 * (below + up_to) / total[-1]
    area = float(np.average(right[second], weights=w[second]))
    mass = np.where(second, w[second].sum(), w[~second].sum())
    influences = w / mass * (right - area)
    losses[rows] = 1.0 - area - influences * w.sum() / w
    return losses


def _errors(y: np.ndarray, answers: Answers) -> np.ndarray:
    """Return the errors with a column per target, (n_rows, n_targets)."""
    return y.reshape(len(y), -1) - answers.predictions.reshape(len(y), -1)


def _absolute(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return np.abs(_errors(y, answers)).mean(axis=1)


def _squared(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return np.square(_errors(y, answers)).mean(axis=1)


def _unexplained(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    """Return squared errors divided by the variance of each target; their mean is 1 − R²."""
    # The variance of all samples, so that losses of different models are comparable.
    share, targets = weights / weights.sum(), y.reshape(len(y), -1)
    if not np.ptp(targets, axis=0).all():
        raise ValueError('scoring="r2" is not defined: all values of y are equal.')
    variances = share @ (targets - share @ targets) ** 2
    return np.mean(_errors(y, answers) ** 2 / variances, axis=1)


def discordances(y: np.ndarray, risk: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return linearised losses of risks, whose mean is one minus Harrell's index.

    `y` may have strata, within which samples are compared. The influences of the samples on the
    index take the place of losses, so that the spread of their mean, and of mean differences
    between models, is that of the index.
    """
    options = {"sample_weight": weights, "strata": survival_field(y, "stratum")}
    index = concordance_index(y["event"], y["time"], risk, **options)
    influences = concordance_influences(y["event"], y["time"], risk, **options)
    losses: np.ndarray = 1.0 - index - influences * weights.sum() / weights
    return losses


def _discordances(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    rows, losses = answers.judged, np.full(len(y), np.nan)
    losses[rows] = discordances(y[rows], answers.predictions[rows], weights[rows])
    return losses


#: Scores, with their names in scikit-learn or in `manykernels.metrics`.
OF_CLASSES = [
    Scoring("accuracy", _misses, 1.0, hit_or_miss=True),
    Scoring("balanced_accuracy", _misses_by_class, 1.0, most=1.0),
    Scoring("roc_auc", _misordered, 1.0, needs_probabilities=True, of_pairs=True, most=1.0),
    Scoring("neg_log_loss", _log_losses, needs_probabilities=True),
]
OF_NUMBERS = [
    Scoring("r2", _unexplained, 1.0),
    Scoring("neg_mean_squared_error", _squared),
    Scoring("neg_mean_absolute_error", _absolute),
]
OF_SURVIVAL = [Scoring("concordance_index", _discordances, 1.0, of_pairs=True, most=1.0)]


def _scorings_for(estimator: KernelEstimator) -> list[Scoring]:
    """Return the scores of an estimator; the first is the default."""
    if isinstance(estimator, SurvivalEstimator):
        return OF_SURVIVAL
    if isinstance(estimator, GeneralizedRegressor):
        return [Scoring("d2", _unexplained_deviance(estimator), 1.0), *OF_NUMBERS]
    return OF_CLASSES if is_classifier(estimator) else OF_NUMBERS


def _unexplained_deviance(estimator: GeneralizedRegressor) -> Losses:
    """Return losses by the loss of the estimator, relative to that of the best constant."""

    def losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        values, judged, loss = np.full(len(y), np.nan), answers.judged, loss_maker(estimator.loss)
        values[judged] = deviance_losses(loss, y, answers.predictions, weights, judged)
        return values

    return losses


def checked_scoring(
    scoring: str | Callable[..., Any] | None, estimator: KernelEstimator
) -> Scoring:
    """Return the score with this name, the default for None, or a score of a loss function."""
    known = _scorings_for(estimator)
    if scoring is None:
        return known[0]
    if callable(scoring):
        return Scoring(getattr(scoring, "__name__", type(scoring).__name__), _by(scoring))
    for score in known:
        if score.name == scoring:
            return score
    names = ", ".join(repr(score.name) for score in known)
    raise ValueError(
        f"scoring={scoring!r} is not supported: intervals need a loss of every single sample. "
        f"Choose one of {names}, or pass a function loss(y, predictions) that returns an array "
        "with one loss per sample."
    )


def _by(loss: Callable[[Any, Any], Any]) -> Losses:
    """Return losses by a function of y and predictions of the held-out rows."""

    def losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        judged = answers.judged
        values = np.asarray(loss(y[judged], answers.predictions[judged]), dtype=np.float64)
        if values.shape != (judged.sum(),) or not np.isfinite(values).all():
            raise ValueError(
                f"scoring must return one finite loss for each of {judged.sum()} samples, an "
                f"array of shape ({judged.sum()},); it returned one of shape {values.shape}"
                f"{'' if np.isfinite(values).all() else ' that has NaN or infinity'}."
            )
        of_rows = np.full(len(y), np.nan)
        of_rows[judged] = values
        return of_rows

    return losses


def survival_field(y: np.ndarray, name: str) -> np.ndarray | None:
    """Return a field of survival times, such as "stratum"; None if there is none."""
    return np.asarray(y[name]) if name in (y.dtype.names or ()) else None


def strata_of(estimator: KernelEstimator, y: np.ndarray) -> np.ndarray | None:
    """Return what folds and half-samples are stratified by: classes or events; None for values."""
    if is_classifier(estimator):
        return y
    events: np.ndarray | None = y["event"] if y.dtype.names else None
    return events
