"""The splits into training and test samples behind a parameter ``cv``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import check_cv

from .._folds import about_repeats
from ..discriminant import LabelledKernels
from ..discriminant.decision import N_FOLDS
from ..kernels.tables import check_numbers
from ._held_out import TargetedKernels, by_row
from ._inputs import Source, block_while_fitting, matched_by_label
from ._rows import TrainingRows

# Folds with cv=None, as in scikit-learn.
_DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class Split:
    """One split, whose kernels are not cut yet.

    `test` are positions in `samples`, or the samples of a validation set, or a list of folds.
    """

    samples: Any
    train: np.ndarray | None
    test: Any

    def parts(self) -> tuple[Any, Any]:
        """Training part and test part."""
        if self.train is None:
            return self.samples, self.test
        parts: tuple[Any, Any] = self.samples.split(self.train, self.test)
        return parts

    @property
    def tested(self) -> np.ndarray | None:
        """Positions of the training rows that are tested; None for a validation set."""
        if isinstance(self.test, list):
            return np.concatenate(self.test)
        return None if self.train is None else np.asarray(self.test)

    @property
    def judged(self) -> Any:
        """Targets and counts of the test samples, fold after fold; their kernels are not cut."""
        if isinstance(self.test, list):
            return self.samples.of(np.concatenate(self.test))
        return self.test if self.train is None else self.samples.of(self.test)


@dataclass(frozen=True)
class Splits(ABC):
    """Training and test parts, cut from kernels that are computed once for all rows.

    `estimator` has the parameter ``cv``; `source` gives the kernels of a validation set. The
    samples are :class:`~manykernels.discriminant.LabelledKernels` or :class:`TargetedKernels`.
    """

    estimator: Any
    rows: TrainingRows
    source: Source
    samples: Any

    #: Whether scikit-learn's splitters are to keep the classes in equal parts.
    stratified: ClassVar[bool]
    #: What the targets of a validation set are called.
    word: ClassVar[str]

    def of(self, y: Any) -> list[Split]:
        """All splits; `y` has the targets of all rows of X.

        The test part of ``cv="closed-form"`` is a list of folds of the training part.
        """
        return list(self._each(np.asarray(y)))

    def parts(self, y: Any) -> list[tuple[Any, Any]]:
        """Training part and test part of all splits, their kernels cut."""
        return [split.parts() for split in self.of(y)]

    def _each(self, y: np.ndarray) -> Iterator[Split]:
        cv, samples = self.estimator.cv, self.samples
        if isinstance(cv, str):
            yield Split(samples, None, self._folds(N_FOLDS))
        elif cv is None or is_number(cv):
            for k, test in enumerate(self._folds(_DEFAULT_FOLDS if cv is None else int(cv))):
                yield self._checked(np.delete(np.arange(len(self.rows)), test), test, k)
        elif is_validation_set(cv):
            yield Split(samples, None, self._validation_part(cv))
        else:
            splitter = check_cv(cv, y, classifier=self.stratified)
            for k, split in enumerate(self._drawn(splitter, y)):
                numbers = self.rows.numbers
                train, test = (rows_of_part(part, len(y), numbers, k) for part in split)
                yield self._checked(train, test, k)

    def _drawn(self, splitter: Any, y: np.ndarray) -> Iterator[Any]:
        try:
            yield from splitter.split(np.zeros((len(y), 1)), y)
        except ValueError as error:
            if "'groups' parameter" not in str(error):
                raise
            name = type(splitter).__name__
            raise ValueError(
                f"cv={name}(...) divides by groups, which {type(self.estimator).__name__} is not "
                f"given: pass the splits, cv=list({name}(...).split(X, y, groups))."
            ) from error

    def _folds(self, n_folds: int) -> list[np.ndarray]:
        """Folds that hold whole groups of rows."""
        if n_folds < 2:
            raise ValueError(f"cv={n_folds}: at least 2 folds are needed.")
        folds: list[np.ndarray] = self.samples.folds(n_folds)
        if self.estimator.verbose and (told := about_repeats(self.rows.groups)):
            print(f"[{type(self.estimator).__name__}] {told}")
        if len(folds) < 2:
            name, way_out = type(self.estimator).__name__, "Pass a validation set as cv."
            if name.endswith("CV"):
                way_out = (
                    "Choose its parameters yourself, with the estimator without CV in its name."
                )
            raise ValueError(
                f"{name} cannot be judged by folds: {self._too_few} "
                f"(n_samples = {len(self.rows)}). {way_out}"
            )
        return folds

    #: Why there may be less than two folds.
    _too_few: ClassVar[str]

    def _checked(self, train: np.ndarray, test: np.ndarray, split: int) -> Split:
        self._refuse_training(train, split)
        if len(test) == 0:
            raise ValueError(f"Split {split} has no test samples.")
        return Split(self.samples, train, test)

    @abstractmethod
    def _refuse_training(self, train: np.ndarray, split: int) -> None:
        """Raise if a model cannot be learnt from these training samples."""

    def _validation_part(self, pair: tuple[Any, ...]) -> Any:
        if len(pair) != 2:
            raise ValueError(
                f"cv is a tuple of {len(pair)}: a validation set is a pair (X_val, y_val); "
                "several splits are a list of pairs (train, test)."
            )
        X_val, y_val, _ = matched_by_label(self.estimator, *pair)
        y_val = np.asarray(y_val)
        self._refuse_targets(y_val)
        block = block_while_fitting(self.source, self.estimator, self.rows.data, X_val)
        if len(block) != len(y_val) or not len(y_val):
            raise ValueError(
                f"The validation set has {len(block)} rows and {len(y_val)} {self.word}: one is "
                "needed per row, and at least one row."
            )
        return self._targeted(block, y_val)

    @abstractmethod
    def _refuse_targets(self, y_val: np.ndarray) -> None:
        """Raise if these cannot be the targets of a validation set."""

    @abstractmethod
    def _targeted(self, block: Any, y_val: np.ndarray) -> Any:
        """Samples of a validation set."""


class LabelSplits(Splits):
    """Splits of samples with class labels, of which every class must be left in training."""

    samples: LabelledKernels

    stratified = True
    word = "labels"
    _too_few = "no class has two samples that are not repeats of each other"

    def _refuse_training(self, train: np.ndarray, split: int) -> None:
        samples = self.samples
        left = np.bincount(samples.labels[train], minlength=len(samples.classes))
        if (left == 0).any():
            raise ValueError(
                f"Split {split} leaves no training samples of "
                f"{samples.classes[left == 0].tolist()}: use fewer folds, or stratified ones "
                "(cv=int)."
            )

    def _refuse_targets(self, y_val: np.ndarray) -> None:
        if y_val.ndim != 1:
            raise ValueError(
                f"The labels of the validation set have shape {y_val.shape}, those of training "
                "are one per sample."
            )
        unseen = np.setdiff1d(y_val, self.samples.classes)
        if len(unseen):
            raise ValueError(
                f"The validation set has classes that training has not: {unseen.tolist()}. "
                "Leave these samples out, or put some of each class into training."
            )

    def _targeted(self, block: Any, y_val: np.ndarray) -> LabelledKernels:
        classes = self.samples.classes
        return LabelledKernels(block, np.searchsorted(classes, y_val), classes)


class ValueSplits(Splits):
    """Splits of samples with numbers to be predicted."""

    samples: TargetedKernels

    stratified = False
    word = "values"
    _too_few = "there are no two samples that are not repeats of each other"

    def _refuse_training(self, train: np.ndarray, split: int) -> None:
        # Of a single sample kernels have no variance.
        if len(train) < 2:
            raise ValueError(
                f"Split {split} leaves {len(train)} training samples: at least 2 are needed."
            )

    def _refuse_targets(self, y_val: np.ndarray) -> None:
        shape = self.samples.targets.shape[1:]
        if y_val.ndim == 0 or y_val.shape[1:] != shape:
            raise ValueError(
                f"The values of the validation set have shape {y_val.shape}, those of training "
                f"{self.samples.targets.shape}."
            )
        check_numbers(y_val, "y_val")
        if not np.isfinite(y_val.astype(np.float64)).all():
            raise ValueError("The values of the validation set contain NaN or infinity.")

    def _targeted(self, block: Any, y_val: np.ndarray) -> TargetedKernels:
        return TargetedKernels(block, y_val.astype(np.float64))


def left_out_attributes(
    name: str,
    tested: Sequence[np.ndarray | None],
    parts: list[np.ndarray],
    n_rows: int,
    score: Callable[[np.ndarray, np.ndarray], float],
) -> dict[str, Any]:
    """Fitted attributes of a search: held-out values by row under `name`, their split and score.

    ``parts[k]`` are values of the rows ``tested[k]`` of a split; `score` is that of values at some
    rows. Nothing of it if a validation set was tested.
    """
    values = by_row(tested, parts, n_rows)
    if values is None:
        return {}
    answers, split_of_row = values
    rows = np.flatnonzero(split_of_row >= 0)
    return {
        name: answers,
        "test_fold_": split_of_row,
        "left_out_score_": score(answers[rows], rows),
    }


def rows_of_part(part: Any, n_rows: int, kept: np.ndarray, split: int) -> np.ndarray:
    """Rows of one part of a split, numbers or a mask, as positions among the rows `kept`.

    Others, which are those of weight zero, are left out.
    """
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
    return np.searchsorted(kept, chosen[np.isin(chosen, kept)])


def is_number(cv: Any) -> bool:
    """Whether ``cv`` is a number of folds."""
    return isinstance(cv, Integral) and not isinstance(cv, bool)


def is_validation_set(cv: Any) -> bool:
    """Whether ``cv`` is a pair (X_val, y_val), and not a tuple of (train, test) pairs."""
    return isinstance(cv, tuple) and not all(
        isinstance(one, tuple) and len(one) == 2 for one in cv
    )
