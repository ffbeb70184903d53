"""The splits into training and test samples behind a parameter ``cv``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from ..discriminant import LabelledKernels
from ..discriminant.decision import N_FOLDS, folds_to_judge_by
from ..discriminant.held_out import Test
from ..kernels.completion import MeanCompletion
from ..kernels.transforms import preparation
from ._inputs import Source, block_while_fitting
from ._rows import TrainingRows

# Folds with cv=None, as in scikit-learn.
_DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class Splits:
    """Training and test parts, cut from kernels that are computed once for all rows.

    `estimator` has the parameter ``cv``; `source` gives the kernels of a validation set.
    """

    estimator: Any
    rows: TrainingRows
    source: Source
    samples: LabelledKernels

    def parts(self, y: np.ndarray) -> Iterator[tuple[LabelledKernels, Test]]:
        """Training part and test part of every split; `y` has the classes of all rows of X."""
        cv, samples = self.estimator.cv, self.samples
        if isinstance(cv, str):
            yield samples, self._folds(N_FOLDS)
        elif cv is None:
            for k, test in enumerate(self._folds(_DEFAULT_FOLDS)):
                yield self._cut(np.delete(np.arange(len(samples.labels)), test), test, k)
        elif isinstance(cv, tuple) and not _are_splits(cv):
            yield samples, self._validation_part(cv)
        else:
            splitter = check_cv(cv, y, classifier=True)
            for k, split in enumerate(splitter.split(np.zeros((len(y), 1)), y)):
                train, test = (self._positions(part, len(y), k) for part in split)
                yield self._cut(train, test, k)

    def _positions(self, part: Any, n_rows: int, split: int) -> np.ndarray:
        """Rows of one part of a split (numbers or a mask), as positions among those that count."""
        try:
            chosen = np.arange(n_rows)[np.asarray(part, dtype=None if len(part) else int)]
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"Split {split} is not made of row numbers or masks of {n_rows} rows: {error}."
            ) from error
        if chosen.ndim != 1:
            raise ValueError(
                f"Split {split} has rows of shape {chosen.shape}, not a list of numbers or a mask "
                f"of {n_rows} rows."
            )
        # Rows of weight zero have been left out.
        numbers = self.rows.numbers
        return np.searchsorted(numbers, chosen[np.isin(chosen, numbers)])

    def _folds(self, n_folds: int) -> list[np.ndarray]:
        samples = self.samples
        # Folds are dealt by where samples are, for which the mean of what they lack is enough.
        center = preparation(None, completion=MeanCompletion())
        centered = center.fit_transform(samples.stack, sample_weight=samples.weights)
        folds = folds_to_judge_by(samples.labels, centered, n_folds)
        if len(folds) < 2:
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be judged by folds: no class has two "
                "different samples. Choose p and reg yourself, with MKFDA."
            )
        return folds

    def _cut(
        self, train: np.ndarray, test: np.ndarray, split: int
    ) -> tuple[LabelledKernels, LabelledKernels]:
        """Both parts of one split; every class must be left in training."""
        samples = self.samples
        left = np.bincount(samples.labels[train], minlength=len(samples.classes))
        if (left == 0).any():
            raise ValueError(
                f"Split {split} leaves no training samples of "
                f"{samples.classes[left == 0].tolist()}: use fewer folds, or stratified ones "
                "(cv=int)."
            )
        if len(test) == 0:
            raise ValueError(f"Split {split} has no test samples.")
        return samples.split(train, test)

    def _validation_part(self, pair: tuple[Any, ...]) -> LabelledKernels:
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
        classes = self.samples.classes
        unseen = np.setdiff1d(y_val, classes)
        if len(unseen):
            raise ValueError(
                f"The validation set has classes that training has not: {unseen.tolist()}. "
                "Leave these samples out, or put some of each class into training."
            )
        block = block_while_fitting(self.source, self.estimator, self.rows.data, X_val)
        if len(block) != len(y_val) or not len(y_val):
            raise ValueError(
                f"The validation set has {len(block)} rows and {len(y_val)} labels: one label "
                "per row is needed, and at least one row."
            )
        return LabelledKernels(block, np.searchsorted(classes, y_val), classes)


def _are_splits(cv: tuple[Any, ...]) -> bool:
    """Whether a tuple holds (train, test) pairs of indices, and is not a validation set."""
    return all(isinstance(one, tuple) and len(one) == 2 for one in cv)
