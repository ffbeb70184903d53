"""Which training rows count, how much, and what is to be predicted for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._rounding import EPS
from .._sklearn import check_sample_weight, check_y
from ..kernels.tables import check_numbers, refuse_kinds, refuse_masked
from ._inputs import Matrices, Table, read_training

# The median weight is compared with reg and C. Beyond these bounds their product with weights and
# kernels overflows or is lost; weights that count samples have a median near 1.
_LEAST_MEDIAN, _LARGEST_MEDIAN = 1e-12, 1e12
# Largest weight in units of the median. Below it the certificate tells whether rounding errors
#: are too large; above it the other weights are lost beside this one.
_HEAVIEST = 1e12
# The same for weighted centring, which cancels what a heavy sample is weighted with: there the
#: rounding error grows as the square of the weight.
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
    labels : ndarray of int or None
        For classes, their positions in `classes`.
    classes : ndarray or None
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

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator keeps for its users."""
        classes = {} if self.classes is None else {"classes_": self.classes}
        return {**self.data.features, **classes}

    @property
    def factors(self) -> np.ndarray:
        """`weights` as numbers, 1 where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def n_samples(self) -> float:
        """How many samples the rows stand for."""
        return float(len(self) if self.counts is None else self.counts.sum())


def unlabelled_rows(estimator: Any, X: Any, sample_weight: Any) -> TrainingRows:
    """Rows of an estimator without y."""
    data = read_training(estimator, X)
    data, numbers, counts = _weighted(estimator, data, sample_weight, _HEAVIEST)
    return TrainingRows(data, numbers, counts, counts)


def targeted_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """Rows with numbers to be predicted."""
    _require(estimator, y)
    data = read_training(estimator, X)
    check_targets(y)
    check_numbers(np.asarray(y), "y")
    targets = check_y(y, multi_output=False, y_numeric=True).astype(np.float64)
    check_consistent_length(data.rows, targets)
    data, numbers, counts = _weighted(estimator, data, sample_weight, _HEAVIEST)
    return TrainingRows(data, numbers, counts, counts, targets[numbers])


def labelled_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    heaviest: float = _HEAVIEST,
) -> TrainingRows:
    """Rows with class labels."""
    _require(estimator, y)
    data = read_training(estimator, X)
    check_targets(y)
    y = check_y(y, multi_output=False)
    check_classification_targets(y)
    check_consistent_length(data.rows, y)
    data, numbers, counts = _weighted(estimator, data, sample_weight, heaviest)
    y = y[numbers]
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, got "
            f"{len(classes)} class: {classes.tolist()}."
        )
    weights = counts
    if class_weight is not None:
        occurrences = np.ones(len(y)) if counts is None else counts
        weights = occurrences * class_factors(class_weight, y, labels, occurrences)
    return TrainingRows(data, numbers, counts, weights, y, labels, classes)


def one_against_rest(rows: TrainingRows) -> np.ndarray:
    """±1 of every machine, (m, 1) for two classes, else one column per class."""
    n_classes = len(rows.classes)
    positive = [1] if n_classes == 2 else np.arange(n_classes)
    return np.where(rows.labels[:, None] == positive, 1.0, -1.0)


def discriminant_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any
) -> TrainingRows:
    """Rows with class labels for Fisher's discriminant.

    It compares classes with the spread within them: there must be one.
    """
    rows = labelled_rows(estimator, X, y, sample_weight, class_weight, _HEAVIEST_IF_CENTRED)
    n_classes = len(rows.classes)
    if rows.n_samples <= n_classes == len(rows):
        raise ValueError(
            f"{type(estimator).__name__} needs more samples than classes: {len(rows)} samples of "
            f"{n_classes} classes leave no spread within classes."
        )
    return rows


def _require(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )


def _weighted(
    estimator: Any, data: Any, sample_weight: Any, heaviest: float
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Data of the rows that count, their numbers and their weights."""
    every = np.arange(data.n_rows)
    if sample_weight is None:
        return data, every, None
    refuse_masked(sample_weight, "sample_weight")
    weights = check_sample_weight(
        sample_weight, data.rows, dtype=np.float64, ensure_non_negative=True
    )
    kept = _rows_that_count(type(estimator).__name__, weights, heaviest)
    return (data if len(kept) == len(every) else data.keep(kept)), kept, weights[kept]


def _rows_that_count(name: str, weights: np.ndarray, heaviest: float) -> np.ndarray:
    """Rows whose weights are neither zero nor negligible; weights that are too large raise."""
    positive = weights[weights > 0]
    median = float(np.quantile(positive, 0.5, method="lower"))
    if not _LEAST_MEDIAN <= median <= _LARGEST_MEDIAN:
        row = int(np.argmax(weights == median))
        raise ValueError(
            f"sample_weight is {median:g} at row {row}, the median of the weights above "
            f"zero: it has to be between {_LEAST_MEDIAN:g} and {_LARGEST_MEDIAN:g}, because "
            "weights say how often samples count. Divide them by their mean."
        )
    row = int(np.argmax(weights))
    if weights[row] > heaviest * median:
        raise ValueError(
            f"sample_weight is {weights[row]:g} at row {row}, more than {heaviest:g} "
            f"times the median of the weights above zero, {median:g}: beside it the others "
            f"are lost in the rounding errors of {name}. Lower it, or leave "
            "the others out by a weight of zero."
        )
    return np.flatnonzero(weights >= EPS * median)


def check_targets(y: Any) -> None:
    """Refuse targets of which one is missing, and complex ones; dates can be classes."""
    refuse_masked(y, "y")
    targets = np.asarray(y)
    refuse_kinds(targets, "y", "c")
    if targets.dtype != object:
        return
    for row, target in enumerate(targets.ravel()):
        if _is_missing(target):
            raise ValueError(
                f"Input y contains NaN or None: y is {target} at row {row}. Leave this sample "
                "out, or give it a target."
            )


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    unequal = value != value
    # Of nan and the like it is true; pandas.NA gives itself.
    return unequal is value or (isinstance(unequal, bool | np.bool_) and bool(unequal))


def class_factors(
    class_weight: Any, y: np.ndarray, labels: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Factor of each sample's weight; "balanced" gives all classes the same total."""
    if class_weight != "balanced":
        factors = compute_sample_weight(class_weight, y)
        if not np.all((factors > 0) & (factors < np.inf)):
            raise ValueError(
                f"class_weight must be positive and finite for every class, got {class_weight}."
            )
        return factors
    masses = np.bincount(labels, weights=counts)
    return (counts.sum() / (len(masses) * masses))[labels]
