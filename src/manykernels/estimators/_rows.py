"""Which training rows count, and how much."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._sklearn import check_sample_weight, check_y, num_samples
from ._inputs import KernelInput


class RowWeights(KernelInput):
    """Mixin: rows of weight zero are left out, whose numbers the others keep in `_kept_rows`."""

    def _weighted_rows(
        self, data: Any, y: np.ndarray | None, sample_weight: Any
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """Data, targets and weights of the rows that count, whose numbers are `_kept_rows`."""
        n_rows = num_samples(data)
        self._kept_rows = np.arange(n_rows)
        if sample_weight is None:
            return data, y, None
        weights = check_sample_weight(
            sample_weight, data, dtype=np.float64, ensure_non_negative=True
        )
        kept = np.flatnonzero(weights > 0)
        if not len(kept):
            raise ValueError(
                f"All sample weights are zero: {type(self).__name__} has nothing to learn from."
            )
        self._kept_rows = kept
        if len(kept) == n_rows:
            return data, y, weights
        return self._without(data, kept), None if y is None else y[kept], weights[kept]

    def _targeted_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Data, numbers to be predicted and weights of the rows that count."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        data = self._read_training(X)
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
