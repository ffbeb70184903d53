"""Which training rows count, how much, and what is to be predicted for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._rounding import EPS
from .._sklearn import check_sample_weight, check_y, num_samples
from ..kernels.tables import check_numbers, is_missing, refuse_kinds, refuse_masked
from ._inputs import Matrices, Table, read_training

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
    data : Table or Matrices
        What was passed as X, of these rows.
    numbers : ndarray of int
        Their row numbers in X. Rows of weight zero are left out, and so are rows whose weight is
        a rounding error beside the median weight.
    counts : ndarray or None
        How often each occurs: `sample_weight`.
    weights : ndarray or None
        How much each matters: `counts` times the weight of its class.
    targets : ndarray or None
        y of these rows, as it was passed.
    labels, classes : ndarray or None
        For classification, ``targets = classes[labels]``.
    """

    data: Table | Matrices
    numbers: np.ndarray
    counts: np.ndarray | None
    weights: np.ndarray | None = None
    targets: Any = None
    labels: Any = None
    classes: Any = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the groups of rows that are left out together, (n_rows,)."""
        return self.data.groups

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        classes = {} if self.classes is None else {"classes_": self.classes}
        return {**self.data.features, **classes}

    @property
    def factors(self) -> np.ndarray:
        """`weights`, or ones where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights


def unlabelled_rows(estimator: Any, X: Any, sample_weight: Any) -> TrainingRows:
    """Rows of an estimator without y."""
    every = read_training(estimator, X)
    data, numbers, counts = _weighted(estimator, every, sample_weight, _HEAVIEST)
    return TrainingRows(data, numbers, counts, counts)


def targeted_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    several: bool = False,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Rows with numbers to be predicted, one for each or, if allowed, `several`."""
    data = _read_with_targets(estimator, X, y)
    check_numbers(np.asarray(y), "y")
    targets = check_y(y, multi_output=several, y_numeric=True).astype(np.float64)
    check_consistent_length(data.X, targets)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    return TrainingRows(data, numbers, counts, counts, targets[numbers])


def spread_of_targets(rows: TrainingRows) -> float:
    """Standard deviation of the targets; one if they are all equal."""
    targets = rows.targets
    mean = np.average(targets, weights=rows.counts)
    deviation = float(np.sqrt(np.average((targets - mean) ** 2, weights=rows.counts)))
    return deviation if deviation > 0.0 else 1.0


def rows_of_any_targets(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """Rows whose targets are read by another estimator, which is given all of them."""
    data = _read_with_targets(estimator, X, y)
    check_consistent_length(data.X, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, _HEAVIEST)
    return TrainingRows(data, numbers, counts, counts)


def ridge_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """Rows with one or several numbers to be predicted, on kernels that are centred."""
    heaviest = _HEAVIEST_IF_CENTRED
    return targeted_rows(estimator, X, y, sample_weight, several=True, heaviest=heaviest)


def labelled_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Rows with class labels."""
    data = _read_with_targets(estimator, X, y)
    y = check_y(y, multi_output=False)
    check_classification_targets(y)
    check_consistent_length(data.X, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    y = y[numbers]
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, got "
            f"{len(classes)} class: {classes.tolist()}."
        )
    weights = class_weighted(class_weight, labels, classes, counts)
    return TrainingRows(data, numbers, counts, weights, y, labels, classes)


def centred_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any = None
) -> TrainingRows:
    """Rows with class labels, on kernels that are centred."""
    return labelled_rows(estimator, X, y, sample_weight, class_weight, _HEAVIEST_IF_CENTRED)


def class_weighted(
    class_weight: Any, labels: np.ndarray, classes: np.ndarray, counts: np.ndarray | None
) -> np.ndarray | None:
    """`counts` times the weights of the classes that ``classes[labels]`` are."""
    if class_weight is None:
        return counts
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
    """Targets ±1 of each machine: one column for two classes, else one column per class."""
    positive = [1] if n_classes == 2 else np.arange(n_classes)
    return np.where(labels[:, None] == positive, 1.0, -1.0)


def discriminant_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any
) -> TrainingRows:
    """Rows with class labels for Fisher's discriminant, which needs variance within classes."""
    rows = centred_rows(estimator, X, y, sample_weight, class_weight)
    n_classes = len(rows.classes)
    if len(rows) <= n_classes:
        raise ValueError(
            f"{type(estimator).__name__} needs more samples than classes: {len(rows)} samples of "
            f"{n_classes} classes leave no spread within classes."
        )
    return rows


def _read_with_targets(estimator: Any, X: Any, y: Any) -> Table | Matrices:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    data = read_training(estimator, X)
    check_targets(y)
    return data


def _weighted(
    estimator: Any, data: Any, sample_weight: Any, heaviest: float
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Data of the rows that count, their numbers and their weights."""
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
    """Rows whose weights are neither zero nor negligible; weights that are too large raise."""
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


def check_targets(y: Any) -> None:
    """Refuse missing targets, complex and sparse ones; dates are allowed, they can be classes."""
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
