"""Training rows with their targets, weights and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from ..kernels.tables import (
    Table,
    check_numbers,
    is_frame,
    is_missing,
    refuse_kinds,
    refuse_masked,
)
from ..utils.folds import about_groups, group_numbers
from ..utils.numerics import EPS
from ..utils.sklearn import check_classes, check_sample_weight, check_y, num_samples, warn_caller
from .inputs import TrainingMatrices, TrainingTable, read_training

# Bounds of the median weight, which is multiplied with C and with kernels and compared with reg:
# far outside, these products overflow or are lost. Weights that count samples are near 1.
_LEAST_MEDIAN, _LARGEST_MEDIAN = 1e-12, 1e12
# Largest weight in units of the median. Beyond it the other weights are lost beside this one in
# rounding errors (1 / ACCUMULATED); below it the certificate tells whether they are too large.
_HEAVIEST = 1e12
# The same with weighted centring, which subtracts nearly equal numbers at a heavy sample: the
# rounding error grows as the square of its weight, hence the square root of the bound above.
_HEAVIEST_IF_CENTRED = 1e6


@dataclass(frozen=True)
class TrainingRows:
    """Rows of X that count in a fit.

    Attributes
    ----------
    data : TrainingTable or TrainingMatrices
        These rows of X.
    numbers : ndarray of int
        Their row numbers in X. Rows of weight zero are left out, and so are rows whose weight is
        a rounding error beside the median weight.
    counts : ndarray or None
        How often each occurs: `sample_weight`.
    weights : ndarray or None
        How much each matters: `counts` times the weight of its class; of several labels a column
        for each, if classes have weights.
    targets : ndarray or None
        y of these rows, as it was passed.
    labels, classes : ndarray or None
        For classification, ``targets = classes[labels]``. Several labels of each row are
        (n_rows, n_labels), and the classes 0 and 1.
    on_demand : bool
        Whether kernels are computed when they are needed, see
        :meth:`.weights.WeightLearning.place_kernels`.
    given_groups : ndarray or None
        Labels of the groups of all rows of X, as they were passed; None if equal rows are the
        groups.
    """

    data: TrainingTable | TrainingMatrices
    numbers: np.ndarray
    counts: np.ndarray | None
    weights: np.ndarray | None = None
    targets: Any = None
    labels: Any = None
    classes: Any = None
    on_demand: bool = False
    given_groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the groups of rows that are left out together, (n_rows,).

        Given groups come first: equal rows of different groups are not kept together.
        """
        if self.given_groups is None:
            return self.data.groups
        return group_numbers(self.given_groups[self.numbers])

    def in_groups(
        self, groups: ArrayLike | None, n_rows: int, estimator: BaseEstimator | None = None
    ) -> TrainingRows:
        """Return the rows with the groups of all `n_rows` rows of X, if some were passed.

        If the estimator is `verbose`, what is kept together is printed.
        """
        if groups is None:
            return self
        labels = checked_groups(groups, n_rows)
        rows = replace(self, given_groups=labels)
        if self.n_labels is None:
            refuse_useless_groups(labels[self.numbers], self.labels, self.classes)
        else:
            for k, column in enumerate(self.labels.T):
                with about_label(k):
                    refuse_useless_groups(labels[self.numbers], column, self.classes)
        message = about_groups(rows.groups, given=True)
        if message and estimator is not None and estimator.verbose:
            print(f"[{type(estimator).__name__}] {message}")
        return rows

    @property
    def n_labels(self) -> int | None:
        """Number of labels of each row; None if it has a class or a value instead."""
        return self.labels.shape[1] if np.ndim(self.labels) == 2 else None

    @property
    def kernel_targets(self) -> np.ndarray | None:
        """Targets for kernels that learn from them, see :func:`targets_for_kernels`."""
        return targets_for_kernels(self.targets, self.labels, self.classes)

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        classes = {} if self.classes is None else {"classes_": self.classes}
        if self.n_labels is not None:
            classes = {"classes_": np.arange(self.n_labels), "n_labels_": self.n_labels}
        groups = {} if self.given_groups is None else {"groups_": self.groups}
        return {**self.data.features, **classes, **groups}

    @property
    def factors(self) -> np.ndarray:
        """`weights`, or ones where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights


def targets_for_kernels(targets: Any, labels: Any, classes: Any) -> np.ndarray | None:
    """Return numbers or indicators of classes, which kernels learn from; None if there are none.

    ``classes[labels]`` are the classes of the rows; None for other targets.
    """
    if classes is not None:
        several = labels.ndim == 1 and len(classes) > 2
        return np.eye(len(classes))[labels] if several else labels
    targets = np.asarray(targets)
    return targets if targets.dtype.kind in "biuf" else None


def checked_groups(groups: ArrayLike | None, n_rows: int) -> np.ndarray:
    """Return the label of the group of each row, (n_rows,); missing ones are refused."""
    if groups is None or isinstance(groups, str | bytes | Mapping):
        raise ValueError(
            f"groups must have the label of a group for every row of X, got {groups!r}: pass the "
            'column itself, such as table["patient"].'
        )
    refuse_masked(groups, "groups")
    labels = np.asarray(groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"groups must have one label for every row, got an array of shape {labels.shape}. "
            "Join the columns to one label, such as site + patient."
        )
    if len(labels) != n_rows:
        raise ValueError(
            f"groups has {len(labels)} labels, but X has {n_rows} rows: pass one for every row."
        )
    if labels.dtype == object:
        missing = np.array([is_missing(label) for label in labels], dtype=bool)
    else:  # NaN and NaT differ from themselves
        missing = labels != labels
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"groups is {labels[row]} at row {row}: give the row a group. A row that belongs with "
            "no other has a label of its own."
        )
    return labels


def refuse_useless_groups(groups: np.ndarray, labels: Any = None, classes: Any = None) -> None:
    """Raise if no group can be left out; warn of classes that are in a single group.

    `groups` and `labels` are those of the same rows, ``classes[labels]`` their classes.
    """
    numbers = group_numbers(groups)
    if len(groups) > 1 and len(np.unique(numbers)) == 1:
        raise ValueError(
            f"All rows are of one group, {groups.tolist()[0]!r}: without it there is nothing to "
            "learn from. Pass groups=None if rows may be left out one by one."
        )
    if classes is None:
        return
    n_groups = int(numbers.max()) + 1
    of_class = np.unique(labels * n_groups + numbers) // n_groups
    alone = np.flatnonzero(np.bincount(of_class, minlength=len(classes)) == 1)
    if not len(alone):
        return
    name, group = classes.tolist()[alone[0]], groups.tolist()[int(np.argmax(labels == alone[0]))]
    problem = f"Class {name!r} has rows of one group only, {group!r}"
    if len(classes) - len(alone) < 2:
        raise ValueError(
            f"{problem}: models without this group do not know the class, and nothing can be said "
            "about new samples. At least two classes need rows of two groups or more; leave the "
            "class out, or pass groups=None if rows may be left out one by one."
        )
    warn_caller(
        f"{problem}: models without this group do not know the class, and no fold tests it.",
        UserWarning,
    )


def unlabelled_rows(
    estimator: BaseEstimator, X: Table, sample_weight: ArrayLike | None
) -> TrainingRows:
    """Return the rows for an estimator without y."""
    every = read_training(estimator, X)
    data, numbers, counts = _weighted(estimator, every, sample_weight, _HEAVIEST)
    return TrainingRows(data, numbers, counts, counts)


def targeted_rows(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    groups: ArrayLike | None = None,
    several: bool = False,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Return rows with a number to predict, or with several if `several` is True."""
    data = _read_with_targets(estimator, X, y)
    check_numbers(np.asarray(y), "y")
    shape = np.asarray(y).shape
    if not several and len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, and {type(estimator).__name__} learns one target: "
            "use MKRidge or MKRidgeCV, or fit a model for each, as "
            "sklearn.multioutput.MultiOutputRegressor does."
        )
    targets = check_y(y, multi_output=several, y_numeric=True).astype(np.float64)
    check_consistent_length(data.X, targets)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    rows = TrainingRows(data, numbers, counts, counts, targets[numbers])
    return rows.in_groups(groups, len(targets), estimator)


def spread_of_targets(rows: TrainingRows) -> float:
    """Return the standard deviation of the targets; one if they are all equal."""
    targets = rows.targets
    mean = np.average(targets, weights=rows.counts)
    deviation = float(np.sqrt(np.average((targets - mean) ** 2, weights=rows.counts)))
    return deviation if deviation > 0.0 else 1.0


def rows_of_any_targets(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    centred: bool = False,
) -> TrainingRows:
    """Return rows without targets, which the caller reads; `centred`: kernels are centred."""
    data = _read_with_targets(estimator, X, y)
    check_consistent_length(data.X, y)
    heaviest = _HEAVIEST_IF_CENTRED if centred else _HEAVIEST
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    return TrainingRows(data, numbers, counts, counts)


def centred_values(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    groups: ArrayLike | None = None,
    several: bool = False,
) -> TrainingRows:
    """Return the rows of :func:`targeted_rows` for centred kernels."""
    options: dict[str, Any] = {"several": several, "heaviest": _HEAVIEST_IF_CENTRED}
    return targeted_rows(estimator, X, y, sample_weight, groups=groups, **options)


def labelled_rows(
    estimator: BaseEstimator,
    X: Table,
    y: Any,
    sample_weight: ArrayLike | None,
    class_weight: dict[Any, float] | str | None,
    *,
    groups: ArrayLike | None = None,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Return rows with a class, or with several labels each if the estimator takes them."""
    if hasattr(estimator, "multi_label") and is_multilabel(y):
        return _rows_of_labels(estimator, X, y, sample_weight, class_weight, groups, heaviest)
    data = _read_with_targets(estimator, X, y)
    y = check_y(y, multi_output=False)
    check_classes(y)
    check_consistent_length(data.X, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    n_rows, y = len(y), y[numbers]
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, got "
            f"{len(classes)} class: {classes.tolist()}."
        )
    weights = class_weighted(class_weight, labels, classes, counts)
    rows = TrainingRows(data, numbers, counts, weights, y, labels, classes)
    return rows.in_groups(groups, n_rows, estimator)


def is_multilabel(y: ArrayLike | None) -> bool:
    """Return True if `y` is an indicator matrix, one column of 0 and 1 per label."""
    values = _dense(y)
    if values.ndim != 2 or values.shape[1] < 2:
        return False
    if values.dtype.kind == "f" and np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0].tolist()
        raise ValueError(
            f"Input y contains NaN: it is nan at row {row}, column {column}. Leave this sample "
            "out, or give it a value."
        )
    return bool(type_of_target(values) == "multilabel-indicator")


def indicator_matrix(y: ArrayLike | None) -> np.ndarray:
    """Return several labels of each row as an array of 0 and 1, (n_rows, n_labels)."""
    refuse_masked(y, "y")
    values = _dense(y)
    others = np.setdiff1d(values, [0, 1])
    if len(others):
        raise ValueError(
            f"y has {values.shape[1]} columns of labels, which must be 0 or 1, but some are "
            f"{others[0].item()!r}: pass an array such as (y == {values.max().item()!r}).astype("
            "int)."
        )
    return values.astype(np.intp)


def _dense(y: Any) -> np.ndarray:
    """Return targets as an array; columns of numbers of several kinds are floats."""
    values = y.toarray() if sparse.issparse(y) else np.asarray(y)
    if values.dtype == object and values.ndim == 2:
        with suppress(TypeError, ValueError):
            return values.astype(np.float64)
    return values


@contextmanager
def about_label(k: int) -> Iterator[None]:
    """Name one of several labels, counted from 0, in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Label {k}: {error}") from error


def _rows_of_labels(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    class_weight: dict[Any, float] | str | None,
    groups: ArrayLike | None,
    heaviest: float,
) -> TrainingRows:
    """Return rows with several labels each."""
    columns = [repr(name) for name in y.columns] if is_frame(y) else None
    y = indicator_matrix(y)
    data = _read_with_targets(estimator, X, y)
    check_consistent_length(data.X, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    labels, classes = y[numbers], np.array([0, 1])
    constant = np.flatnonzero(np.ptp(labels, axis=0) == 0)
    if len(constant):
        k = int(constant[0])
        name = f"Label {k}" if columns is None else f"Label {k} ({columns[k]})"
        raise ValueError(
            f"{name} is {labels[0, k]} in every training sample: {type(estimator).__name__} needs "
            "samples with it and without it. Leave its column out of y."
        )
    weights = class_weighted(class_weight, labels, classes, counts)
    rows = TrainingRows(data, numbers, counts, weights, labels, labels, classes)
    return rows.in_groups(groups, len(y), estimator)


def centred_rows(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    class_weight: dict[Any, float] | str | None = None,
    *,
    groups: ArrayLike | None = None,
) -> TrainingRows:
    """Return the rows of :func:`labelled_rows` for centred kernels."""
    options: dict[str, Any] = {"groups": groups, "heaviest": _HEAVIEST_IF_CENTRED}
    return labelled_rows(estimator, X, y, sample_weight, class_weight, **options)


def class_weighted(
    class_weight: dict[Any, float] | str | None,
    labels: np.ndarray,
    classes: np.ndarray,
    counts: np.ndarray | None,
) -> np.ndarray | None:
    """Return `counts` times the weights of the classes ``classes[labels]``.

    Several labels have a column each, unless `class_weight` is None.
    """
    if class_weight is None:
        return counts
    if labels.ndim == 2:
        each = [class_weighted(class_weight, column, classes, counts) for column in labels.T]
        return np.column_stack(each)  # type: ignore[arg-type]
    factors = compute_class_weight(
        class_weight, classes=classes, y=classes[labels], sample_weight=counts
    )
    if not np.all((factors > 0) & (factors < np.inf)):
        raise ValueError(
            f"class_weight must be positive and finite for every class, got {class_weight}."
        )
    weights: np.ndarray = factors[labels] if counts is None else counts * factors[labels]
    return weights


def one_against_rest(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return targets ±1 of each machine: one column for two classes, else one per class."""
    positive = [1] if n_classes == 2 else np.arange(n_classes)
    return np.where(labels[:, None] == positive, 1.0, -1.0)


def discriminant_rows(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    class_weight: dict[Any, float] | str | None,
    *,
    groups: ArrayLike | None = None,
) -> TrainingRows:
    """Return rows with classes for Fisher's discriminant, which needs spread within classes."""
    rows = centred_rows(estimator, X, y, sample_weight, class_weight, groups=groups)
    n_classes = len(rows.classes)
    if len(rows) <= n_classes:
        raise ValueError(
            f"{type(estimator).__name__} needs more samples than classes: {len(rows)} samples of "
            f"{n_classes} classes leave no spread within classes."
        )
    return rows


def _read_with_targets(
    estimator: BaseEstimator, X: Table, y: ArrayLike | None
) -> TrainingTable | TrainingMatrices:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    data = read_training(estimator, X)
    check_targets(y)
    return data


def _weighted(
    estimator: BaseEstimator, data: Any, sample_weight: ArrayLike | None, heaviest: float
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return the data of the rows that count, their numbers and their weights."""
    n_rows = int(num_samples(data.X))
    if sample_weight is None:
        return data, np.arange(n_rows), None
    refuse_masked(sample_weight, "sample_weight")
    weights = check_sample_weight(
        sample_weight, data.X, dtype=np.float64, ensure_non_negative=True
    )
    kept = rows_that_count(type(estimator).__name__, weights, heaviest)
    return (data if len(kept) == n_rows else data.keep(kept)), kept, weights[kept]


def rows_that_count(name: str, weights: np.ndarray, heaviest: float = _HEAVIEST) -> np.ndarray:
    """Return the rows whose weights are not negligible; raise for weights that are too large."""
    positive = weights[weights > 0]
    median = float(np.quantile(positive, 0.5, method="lower"))
    if not _LEAST_MEDIAN <= median <= _LARGEST_MEDIAN:
        row = int(np.argmax(weights == median))
        raise ValueError(
            f"sample_weight is {median:g} at row {row}, the median of the weights above zero: it "
            f"has to be between {_LEAST_MEDIAN:g} and {_LARGEST_MEDIAN:g}, because weights say "
            "how often samples count. Divide them by their mean."
        )
    row = int(np.argmax(weights))
    if weights[row] > heaviest * median:
        raise ValueError(
            f"sample_weight is {weights[row]:g} at row {row}, more than {heaviest:g} times the "
            f"median of the weights above zero, {median:g}: beside it the others are lost in the "
            f"rounding errors of {name}. Lower it, or leave the others out by a weight of zero."
        )
    return np.flatnonzero(weights >= EPS * median)


def check_targets(y: ArrayLike) -> None:
    """Raise for missing, complex and sparse targets; dates are allowed, as they may be classes."""
    refuse_masked(y, "y")
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix, and its zeros are numbers too: pass y.toarray().")
    targets = np.asarray(y)
    refuse_kinds(targets, "y", "c")
    if targets.dtype != object:
        return
    for row, target in enumerate(targets.ravel()):
        if is_missing(target):
            raise ValueError(
                f"Input y contains NaN or None: y is {target} at row {row}. Leave this sample "
                "out, or give it a target."
            )
