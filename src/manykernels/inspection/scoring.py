"""Losses of single samples, and the scores that are their means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .intervals import Mean


@dataclass(frozen=True)
class Answers:
    """What models answered about samples that they have not seen.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Classes, or numbers.
    judged : ndarray of bool, (n_rows,)
        Rows that were left or held out; the predictions of others mean nothing.
    log_losses : ndarray of shape (n_rows,) or None
        ``−log P`` of the true class, if there are probabilities.
    """

    predictions: np.ndarray
    judged: np.ndarray
    log_losses: np.ndarray | None = None

    def spread(self, rows: np.ndarray, n_rows: int) -> Answers:
        """The same answers as those about some of `n_rows` rows."""
        predictions = np.zeros((n_rows, *self.predictions.shape[1:]), self.predictions.dtype)
        predictions[rows] = self.predictions
        judged = np.zeros(n_rows, bool)
        judged[rows] = self.judged
        if self.log_losses is None:
            return Answers(predictions, judged)
        log_losses = np.full(n_rows, np.nan)
        log_losses[rows] = self.log_losses
        return Answers(predictions, judged, log_losses)


#: From y, answers and the weights of the samples to a loss per row, (n_rows,).
Losses = Callable[[np.ndarray, Answers, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scoring:
    """A score that is ``best − mean loss``: the larger the better.

    Attributes
    ----------
    name : str
    losses : callable
    best : float
        Score of a model without losses.
    hit_or_miss : bool
        Whether every loss is 0 or 1.
    needs_probabilities : bool
    """

    name: str
    losses: Losses
    best: float = 0.0
    hit_or_miss: bool = False
    needs_probabilities: bool = False

    def of(self, y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        """Loss of every row, NaN of those that were not judged."""
        losses = np.full(len(y), np.nan)
        losses[answers.judged] = self.losses(y, answers, weights)[answers.judged]
        return losses

    def score(self, mean_loss: Mean) -> Mean:
        """The score, from the mean loss and its interval."""
        return mean_loss.times(-1.0, self.best)


def _misses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return (y != answers.predictions).astype(float)


def _log_losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    assert answers.log_losses is not None
    return answers.log_losses


def _errors(y: np.ndarray, answers: Answers) -> np.ndarray:
    """One column per target, (n_rows, n_targets)."""
    return y.reshape(len(y), -1) - answers.predictions.reshape(len(y), -1)


def _absolute(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return np.abs(_errors(y, answers)).mean(axis=1)


def _squared(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return np.square(_errors(y, answers)).mean(axis=1)


def _unexplained(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    """Squared errors over the variance of each target, whose mean is 1 − R²."""
    # The variance of all samples, so that differences between models are of one unit.
    share, targets = weights / weights.sum(), y.reshape(len(y), -1)
    if not np.ptp(targets, axis=0).all():
        raise ValueError('scoring="r2" is not defined: all values of y are equal.')
    variances = share @ (targets - share @ targets) ** 2
    return np.mean(_errors(y, answers) ** 2 / variances, axis=1)


#: Scores by the names that scikit-learn gives them.
OF_CLASSES = [
    Scoring("accuracy", _misses, 1.0, hit_or_miss=True),
    Scoring("neg_log_loss", _log_losses, needs_probabilities=True),
]
OF_NUMBERS = [
    Scoring("r2", _unexplained, 1.0),
    Scoring("neg_mean_squared_error", _squared),
    Scoring("neg_mean_absolute_error", _absolute),
]


def checked_scoring(given: Any, *, of_classes: bool) -> Scoring:
    """The score of that name, the first one if none is given, or one of a callable's losses."""
    known = OF_CLASSES if of_classes else OF_NUMBERS
    if given is None:
        return known[0]
    if callable(given):
        return Scoring(getattr(given, "__name__", type(given).__name__), _by(given))
    for one in known:
        if one.name == given:
            return one
    names = ", ".join(repr(one.name) for one in known)
    raise ValueError(
        f"scoring={given!r} cannot be used here: intervals need a loss of every single sample. "
        f"Choose one of {names}, or pass a function loss(y, predictions) that returns an array "
        "with one loss per sample."
    )


def _by(loss: Callable[[Any, Any], Any]) -> Losses:
    """Losses by a function of y and predictions, which is shown the judged rows only."""

    def losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        judged = answers.judged
        found = np.asarray(loss(y[judged], answers.predictions[judged]), dtype=np.float64)
        if found.shape != (judged.sum(),) or not np.isfinite(found).all():
            raise ValueError(
                f"scoring must return one finite loss for each of {judged.sum()} samples, an "
                f"array of shape ({judged.sum()},); it returned one of shape {found.shape}"
                f"{'' if np.isfinite(found).all() else ' that has NaN or infinity'}."
            )
        every = np.full(len(y), np.nan)
        every[judged] = found
        return every

    return losses
