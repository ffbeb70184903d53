"""Which samples judge what was learnt from which: the splits behind a parameter ``cv``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from ..kernels.transforms import Center
from ._grid import TestPart, TrainingPart
from ._inputs import KernelInput
from ._rules import N_FOLDS, folds_to_judge_by

#: Folds where nothing else is said.
N_SPLITS = 5


class SplitsMixin(KernelInput):
    """Gives a classifier of kernels that are computed once the parts of every split."""

    cv: Any
    classes_: np.ndarray
    # Row numbers of the samples that have a weight.
    _kept_rows: np.ndarray

    def _parts(
        self, whole: TrainingPart, y: np.ndarray
    ) -> Iterator[tuple[TrainingPart, TestPart | list[np.ndarray]]]:
        if isinstance(self.cv, str):
            yield whole, self._folds(whole, N_FOLDS)
        elif self.cv is None:
            for k, test in enumerate(self._folds(whole, N_SPLITS)):
                yield self._cut(whole, np.setdiff1d(np.arange(len(whole.labels)), test), test, k)
        elif isinstance(self.cv, tuple) and not _is_split(self.cv):
            yield whole, self._validation_part(self.cv)
        else:
            splitter = check_cv(self.cv, y, classifier=True)
            rows = np.arange(len(y))
            for k, split in enumerate(splitter.split(np.zeros((len(y), 1)), y)):
                train, test = (self._rows_of(part, rows, k) for part in split)
                yield self._cut(whole, train, test, k)

    def _rows_of(self, part: Any, rows: np.ndarray, split: int) -> np.ndarray:
        """Positions of a part of a split among the rows that count, as indexing reads it."""
        try:
            chosen = rows[np.asarray(part, dtype=None if len(part) else int)]
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"Split {split} is not made of row numbers or masks of {len(rows)} rows: {error}."
            ) from error
        if chosen.ndim != 1:
            raise ValueError(
                f"Split {split} has rows of shape {chosen.shape}, not a list of numbers or a mask "
                f"of {len(rows)} rows."
            )
        # Those of weight zero are not there any more.
        return np.searchsorted(self._kept_rows, chosen[np.isin(chosen, self._kept_rows)])

    def _folds(self, whole: TrainingPart, n_folds: int) -> list[np.ndarray]:
        centered = Center().fit_transform(whole.stack, sample_weight=whole.weights)
        folds = folds_to_judge_by(whole.labels, centered, n_folds)
        if len(folds) < 2:
            raise ValueError(
                f"{type(self).__name__} cannot be judged by folds: no class has two different "
                "samples. Choose p and reg yourself, with MKFDA."
            )
        return folds

    def _cut(
        self, whole: TrainingPart, train: np.ndarray, test: np.ndarray, split: int
    ) -> tuple[TrainingPart, TestPart]:
        """Both parts of one split; every class must be left in training."""
        left = np.bincount(whole.labels[train], minlength=len(self.classes_))
        if (left == 0).any():
            raise ValueError(
                f"Split {split} leaves no training samples of {self.classes_[left == 0].tolist()}"
                ": use fewer folds, or stratified ones (cv=int)."
            )
        if len(test) == 0:
            raise ValueError(f"Split {split} has no test samples.")
        training = TrainingPart(
            whole.stack[np.ix_(train, train)],
            whole.labels[train],
            _rows(whole.weights, train),
            _rows(whole.multiplicity, train),
        )
        held = TestPart(
            whole.stack[np.ix_(test, train)],
            whole.labels[test],
            _rows(whole.weights, test),
            _rows(whole.multiplicity, test),
        )
        return training, held

    def _validation_part(self, pair: tuple[Any, ...]) -> TestPart:
        if len(pair) != 2:
            raise ValueError(
                f"cv is a tuple of {len(pair)}: a validation set is a pair (X_val, y_val); "
                "several splits are a list of pairs (train, test)."
            )
        X_val, y_val = pair[0], np.asarray(pair[1])
        if y_val.ndim != 1:
            raise ValueError(
                f"The labels of the validation set have shape {y_val.shape}, those of training "
                "are one per sample."
            )
        unseen = np.setdiff1d(y_val, self.classes_)
        if len(unseen):
            raise ValueError(
                f"The validation set has classes that training has not: {unseen.tolist()}. "
                "Leave these samples out, or put some of each class into training."
            )
        if self._is_precomputed:
            block = self._as_stack(X_val, reset=False, gram=False)
            if self._train_columns is not None:
                block = block[:, self._train_columns]
        else:
            block = self.union_(self._table(X_val, reset=False), self.X_fit_)
        if len(block) != len(y_val) or not len(y_val):
            raise ValueError(
                f"The validation set has {len(block)} rows and {len(y_val)} labels: one label "
                "per row is needed, and at least one row."
            )
        return TestPart(block, np.searchsorted(self.classes_, y_val), None, None)


def _is_split(cv: tuple[Any, ...]) -> bool:
    """Whether a tuple is a sequence of (train, test) pairs of indices, not a validation set."""
    return all(isinstance(one, tuple) and len(one) == 2 for one in cv)


def _rows(values: np.ndarray | None, chosen: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[chosen]
