"""Several yes-or-no labels per sample: one problem per label, all on the same kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._sklearn import num_samples, safe_indexing
from ..kernels import KernelStack

# Rows of a test block held at once.
_BLOCK_ROWS = 512


def is_multilabel(y: Any) -> bool:
    """Whether `y` is an indicator matrix, one column of 0 and 1 per label."""
    if y is None:
        return False
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1 and type_of_target(y) == "multilabel-indicator"


class MultilabelMixin:
    """Gives a classifier of kernels the means to learn each label by itself.

    The kernels are computed once; every label gets an estimator of its own on them, in
    `estimators_`, as in the experiments of Yan 2012 on VOC.
    """

    kernels: Any
    cv: Any

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any) -> Self:
        labels = np.asarray(y.todense()) if sparse.issparse(y) else np.asarray(y)
        data = self._read_training(X)  # type: ignore[attr-defined]
        check_consistent_length(data, labels)
        stack = super()._training_stack(data, sample_weight)  # type: ignore[misc]
        validation = self._validation_labels()
        self.classes_ = np.arange(labels.shape[1])
        self.estimators_ = []
        for k, column in enumerate(labels.T.astype(int)):
            one = clone(self).set_params(kernels="precomputed")  # type: ignore[type-var]
            if validation is not None:
                one.set_params(cv=(validation[0], validation[1][:, k]))
            try:
                one.fit(stack, column, sample_weight)
            except ValueError as error:
                raise ValueError(f"Label {k}: {error}") from error
            self.estimators_.append(one)
        for name in ("p_", "reg_", "best_score_", "weights_"):
            setattr(self, name, np.array([getattr(one, name) for one in self.estimators_]))
        self.certificate_ = [one.certificate_ for one in self.estimators_]
        self.cv_results_: Any = [one.cv_results_ for one in self.estimators_]
        self.kernel_names_ = self.estimators_[0].kernel_names_
        return self

    def _validation_labels(self) -> tuple[KernelStack, np.ndarray] | None:
        """The validation set as a block of kernels and its indicator matrix."""
        if not (isinstance(self.cv, tuple) and len(self.cv) == 2 and is_multilabel(self.cv[1])):
            return None
        return self._blocks(self.cv[0], slice(None)), np.asarray(self.cv[1]).astype(int)

    def _blocks(self, X: Any, rows: slice) -> KernelStack:
        """Rows of all kernels between X and the training samples."""
        if isinstance(self.kernels, str):
            stack = X if isinstance(X, KernelStack) else self._as_stack(X, reset=False, gram=False)  # type: ignore[attr-defined]
            return stack.rows(rows, np.arange(stack.n_kernels))
        table = self._table(X, reset=False)  # type: ignore[attr-defined]
        return self.union_(safe_indexing(table, rows), self.X_fit_)  # type: ignore[attr-defined]

    def _by_label(self, X: Any, ask: Callable[[Any, KernelStack], np.ndarray]) -> np.ndarray:
        """What every label's estimator answers about the rows of X, side by side."""
        check_is_fitted(self, "estimators_")
        n_rows = len(X) if isinstance(X, KernelStack) else num_samples(X)
        answers = []
        for start in range(0, n_rows, _BLOCK_ROWS):
            block = self._blocks(X, slice(start, min(start + _BLOCK_ROWS, n_rows)))
            answers.append(np.column_stack([ask(one, block) for one in self.estimators_]))
        return np.vstack(answers)
