"""Which training rows count, and how much."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._sklearn import check_sample_weight, check_y, num_samples
from ..kernels.tables import check_numbers, refuse_kinds, refuse_masked
from ._inputs import KernelInput

# Weights between these are counted beside reg or C without loss.
_LEAST_MEDIAN, _LARGEST_MEDIAN = 1e-12, 1e12
# A weight of less than this part of the median is lost in rounding.
_NEGLIGIBLE = float(np.finfo(np.float64).eps)


class RowWeights(KernelInput):
    """Mixin: rows of weight zero are left out, whose numbers the others keep in `_kept_rows`.

    So are rows whose weight is lost in rounding beside the median of the weights.
    """

    #: Most that a weight may be, in units of the median. Below it the certificate tells whether
    #: rounding errors are too large; above it the other weights are lost.
    _heaviest: ClassVar[float] = 1e12

    def _weighted_rows(
        self, data: Any, y: np.ndarray | None, sample_weight: Any
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """Data, targets and weights of the rows that count, whose numbers are `_kept_rows`."""
        n_rows = num_samples(data)
        self._kept_rows = np.arange(n_rows)
        if sample_weight is None:
            return data, y, None
        refuse_masked(sample_weight, "sample_weight")
        weights = check_sample_weight(
            sample_weight, data, dtype=np.float64, ensure_non_negative=True
        )
        kept = self._rows_that_count(weights)
        self._kept_rows = kept
        if len(kept) == n_rows:
            return data, y, weights
        return self._without(data, kept), None if y is None else y[kept], weights[kept]

    def _rows_that_count(self, weights: np.ndarray) -> np.ndarray:
        """Rows whose weights are neither zero nor negligible; weights that are too large raise."""
        positive = weights[weights > 0]
        typical = float(np.quantile(positive, 0.5, method="lower"))
        if not _LEAST_MEDIAN <= typical <= _LARGEST_MEDIAN:
            row = int(np.argmax(weights == typical))
            raise ValueError(
                f"sample_weight is {typical:g} at row {row}, the median of the weights above "
                f"zero: it has to be between {_LEAST_MEDIAN:g} and {_LARGEST_MEDIAN:g}, because "
                "weights say how often samples count. Divide them by their mean."
            )
        row = int(np.argmax(weights))
        if weights[row] > self._heaviest * typical:
            raise ValueError(
                f"sample_weight is {weights[row]:g} at row {row}, more than {self._heaviest:g} "
                f"times the median of the weights above zero, {typical:g}: beside it the others "
                f"are lost in the rounding errors of {type(self).__name__}. Lower it, or leave "
                "the others out by a weight of zero."
            )
        return np.flatnonzero(weights >= _NEGLIGIBLE * typical)

    def _targeted_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Data, numbers to be predicted and weights of the rows that count."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        data = self._read_training(X)
        check_targets(y)
        check_numbers(np.asarray(y), "y")
        targets = check_y(y, multi_output=False, y_numeric=True).astype(np.float64)
        check_consistent_length(data, targets)
        data, kept, weights = self._weighted_rows(data, targets, sample_weight)
        assert kept is not None
        return data, kept, weights

    def _labelled_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None]:
        """Data, class labels as given, labels 0 … c−1 and weights of the rows that count."""
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        data = self._read_training(X)
        check_targets(y)
        y = check_y(y, multi_output=False)
        check_classification_targets(y)
        check_consistent_length(data, y)
        data, y, weights = self._weighted_rows(data, y, sample_weight)
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{name} needs samples of at least 2 classes, got {n_classes} class: "
                f"{self.classes_.tolist()}."
            )
        return data, y, labels, weights


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
