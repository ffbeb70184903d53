"""Losses of samples that a model has not seen, for any set of kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from .._folds import stratified_folds
from ..estimators._inputs import groups_of
from ..estimators._splits import rows_of_part
from ..kernels import KernelStack
from .learners import leaves_out_honestly, left_out_answers, searches, without_search
from .scoring import Answers, Scoring

#: Training and test rows of every fold.
Splits = list[tuple[np.ndarray, np.ndarray]]

# Folds with cv=None where samples cannot be left out in closed form, as in scikit-learn.
DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class Study:
    """Kernels that are computed once, and the samples that models are judged by.

    Attributes
    ----------
    stack : KernelStack
        All kernels of all rows.
    y : ndarray
    counts : ndarray of shape (n_rows,) or None
        How many samples each row stands for; None for one.
    scoring : Scoring
    splits : list of pairs of ndarray, or None
        Folds. Without them samples are left out by the fits themselves: in closed form or, by a
        search, in its `n_folds` folds.
    n_folds : int
    """

    stack: KernelStack
    y: np.ndarray
    counts: np.ndarray | None
    scoring: Scoring
    splits: Splits | None
    n_folds: int = 1

    @property
    def weights(self) -> np.ndarray:
        """`counts`, or ones."""
        return np.ones(len(self.y)) if self.counts is None else self.counts

    @property
    def groups(self) -> np.ndarray:
        """Groups of rows that are left out together."""
        return groups_of(self.stack)

    @property
    def train_share(self) -> float:
        """Part of the samples that the judged models are learnt from."""
        if self.splits is None:
            return 1.0 - 1.0 / (self.n_folds if self.n_folds > 1 else len(np.unique(self.groups)))
        weights = self.weights
        return float(np.mean([weights[train].sum() for train, _ in self.splits]) / weights.sum())

    def fit(self, learner: Any, kernels: Any, counts: np.ndarray | None = None) -> Any:
        """A new model on some of the kernels, of all rows or with other counts of them."""
        counts = self.counts if counts is None else counts
        return clone(learner).fit(self.stack.select(kernels), self.y, counts)

    def losses(self, learner: Any, kernels: Any, fitted: Any = None) -> np.ndarray:
        """Loss of every row by models on some of the kernels that have not seen it.

        `fitted` is the model of all rows, if it is known. A search is made by all rows; folds are
        then held out at what it has chosen.
        """
        rows = self._rows_with(kernels)
        if len(rows) == len(self.y):
            answers = self._answers(learner, kernels, fitted)
        else:
            answers = self._of(rows)._answers(learner, kernels, None).spread(rows, len(self.y))
        return self.scoring.of(self.y, answers, self.weights)

    def _rows_with(self, kernels: Any) -> np.ndarray:
        """Rows that have some of the kernels; in others all are NaN."""
        diagonals = np.array([np.diagonal(matrix) for matrix in self.stack.data])[kernels]
        return np.flatnonzero(~np.isnan(diagonals).all(axis=0))

    def _of(self, rows: np.ndarray) -> Study:
        """The same with some of the rows; folds that test none of them are left out."""
        number = np.full(len(self.y), -1)
        number[rows] = np.arange(len(rows))
        splits = self.splits
        if splits is not None:
            parts = [(number[train], number[test]) for train, test in splits]
            splits = [(train[train >= 0], test[test >= 0]) for train, test in parts]
            splits = [(train, test) for train, test in splits if len(test)]
        counts = None if self.counts is None else self.counts[rows]
        stack = self.stack[np.ix_(rows, rows)]
        return replace(self, stack=stack, y=self.y[rows], counts=counts, splits=splits)

    def _answers(self, learner: Any, kernels: Any, fitted: Any) -> Answers:
        if self.splits is None:
            model = self.fit(learner, kernels) if fitted is None else fitted
            return _left_out(model, self.y)
        if searches(learner):
            fitted = self.fit(learner, kernels) if fitted is None else fitted
            learner = without_search(learner, fitted)
        return self._held_out(learner, self.stack.select(kernels), self.splits)

    def _held_out(self, learner: Any, stack: KernelStack, splits: Splits) -> Answers:
        """Answers by models without the fold of each row."""
        y, counts = self.y, self.counts
        predictions, judged = np.zeros_like(y), np.zeros(len(y), bool)
        log_losses = np.full(len(y), np.nan) if self.scoring.needs_probabilities else None
        for train, test in splits:
            own = None if counts is None else counts[train]
            model = clone(learner).fit(stack[np.ix_(train, train)], y[train], own)
            block = stack[np.ix_(test, train)]
            predictions[test], judged[test] = model.predict(block), True
            if log_losses is not None:
                log_losses[test] = _log_losses(model, model.predict_log_proba(block), y[test])
        return Answers(predictions, judged, log_losses)


def _left_out(model: Any, y: np.ndarray) -> Answers:
    """Answers that a fit gives of its own rows, each left out."""
    answers = left_out_answers(model)
    assert answers is not None
    if answers.log_proba is None:
        return Answers(answers.predictions, answers.known)
    return Answers(answers.predictions, answers.known, _log_losses(model, answers.log_proba, y))


def _log_losses(model: Any, logs: np.ndarray, y: np.ndarray) -> np.ndarray:
    losses: np.ndarray = -logs[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return losses


def splits_of(
    cv: Any, fitted: Any, y: np.ndarray, kept: np.ndarray, groups: np.ndarray, random_state: int
) -> Splits | None:
    """Folds of the rows `kept`, or None where the fits leave samples out themselves.

    `y` has the targets of all rows, which are what `cv` splits; `groups` are those of the rows
    kept, which folds by number keep together.
    """
    if cv is None and leaves_out_honestly(fitted):
        return None
    classes = y[kept] if is_classifier(fitted) else None
    splits, tested = [], np.zeros(len(kept), int)
    if cv is None or (isinstance(cv, int) and not isinstance(cv, bool)):
        parts = _folds(DEFAULT_FOLDS if cv is None else cv, classes, groups, random_state)
    else:
        splitter = check_cv(cv, y, classifier=classes is not None)
        parts = [
            tuple(rows_of_part(part, len(y), kept, k) for part in split)
            for k, split in enumerate(splitter.split(np.zeros((len(y), 1)), y))
        ]
    for k, (train, test) in enumerate(parts):
        tested[test] += 1
        refuse_split(k, train, test, classes)
        splits.append((train, test))
    if tested.max(initial=0) > 1:
        row = int(kept[tested.argmax()])
        raise ValueError(
            f"cv tests row {row} in {tested.max()} splits: every row may be tested once, so that "
            "its losses can be compared. Use folds, such as cv=5, KFold or GroupKFold."
        )
    return splits


def _folds(n_folds: int, classes: Any, groups: np.ndarray, random_state: int) -> list[Any]:
    """Training and test rows of shuffled folds, with classes in equal parts."""
    if n_folds < 2:
        raise ValueError(f"cv={n_folds}: folds are at least 2.")
    every = np.arange(len(groups))
    labels = np.zeros(len(groups), int)
    if classes is not None:
        labels = np.unique(classes, return_inverse=True)[1]
    folds = stratified_folds(labels, groups, n_folds, seed=random_state)
    if len(folds) < 2:
        raise ValueError(
            f"cv={n_folds}: the samples cannot be divided into folds, because no class has two "
            "samples that are not repeats of each other."
        )
    return [(np.delete(every, test), test) for test in folds]


def refuse_split(split: int, train: np.ndarray, test: np.ndarray, classes: Any = None) -> None:
    """Raise if a part is empty, both share rows, or one of the `classes` of all rows is lost."""
    if not len(train):
        raise ValueError(f"Split {split} has no training samples.")
    if not len(test):
        raise ValueError(f"Split {split} has no test samples.")
    if len(np.intersect1d(train, test)):
        raise ValueError(f"Split {split} tests samples that it learns from.")
    if classes is None:
        return
    unseen = np.setdiff1d(classes, classes[train])
    if len(unseen):
        raise ValueError(
            f"Split {split} leaves no training samples of {unseen.tolist()}: use fewer folds, or "
            "leave these samples out."
        )
