"""The samples of a report as the model reads them, and whether it has learnt from them.

A score on training samples says little about new ones. So rows of X are compared with those that
the model keeps: all training rows, support vectors or landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._sklearn import num_samples, safe_indexing
from ..estimators._inputs import MatrixSource, matched_by_label
from ..estimators._regional import SourceWithShares
from ..kernels import KernelStack
from ..kernels.views import row_keys
from ..scale.blocks import comes_in_blocks


@dataclass(frozen=True)
class Samples:
    """What a report was given.

    Attributes
    ----------
    data : table, Views or KernelStack
        X, checked, its columns and views in the order of training.
    y : ndarray or None
    new : ndarray of bool, (n_rows,), or None
        Rows that the model has not learnt from; None where nothing tells.
    complete : bool
        Whether the rows are those of training, all of them and in this order, so that what the
        model says of left-out rows is about them.
    """

    data: Any
    y: np.ndarray | None
    new: np.ndarray | None
    complete: bool

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, new: bool | None) -> Samples:
        """X and y for a fitted estimator; `new` is None if it is to be found out."""
        if comes_in_blocks(X):
            raise ValueError(
                "report needs X in memory: pass a sample of the rows, or report(estimator) alone."
            )
        raw = X
        X, y, _ = matched_by_label(estimator, X, y)
        source = training_source(estimator)
        data = source.read(estimator, X)
        n_rows = int(num_samples(data))
        targets = None if y is None else _dense(y)
        if targets is not None and len(targets) != n_rows:
            raise ValueError(
                f"X has {n_rows} rows, but y has {len(targets)}: pass a target for every row."
            )
        if new is not None:
            return cls(data, targets, np.full(n_rows, bool(new)), not new)
        if isinstance(data, KernelStack):
            seen = _is_gram(source, raw, data)
            return cls(data, targets, np.full(n_rows, not seen), seen)
        kept = _kept_rows(estimator)
        if kept is None:
            return cls(data, targets, None, False)
        keys, known = row_keys(data), row_keys(kept)
        every = set(known)
        fresh = np.array([key not in every for key in keys])
        if _keeps_all(estimator):
            return cls(data, targets, fresh, keys == known)
        # Of support vectors, or landmarks, other training rows cannot be told: if all of them are
        # among the rows these are the training samples, and if some are nothing is known.
        if every <= set(keys):
            return cls(data, targets, np.zeros(n_rows, bool), True)
        return cls(data, targets, fresh if fresh.all() else None, False)

    def __len__(self) -> int:
        return int(num_samples(self.data))

    def rows(self, rows: np.ndarray) -> Any:
        """Some of the rows, as the methods of the estimator take them."""
        if isinstance(self.data, KernelStack):
            return self.data[rows]
        return safe_indexing(self.data, rows)


def training_source(estimator: Any) -> Any:
    """What a fitted estimator keeps of the training samples, without shares in given regions."""
    source = estimator._expansion.source
    return source.source if isinstance(source, SourceWithShares) else source


def _dense(y: Any) -> np.ndarray:
    return np.asarray(y.todense()) if sparse.issparse(y) else np.asarray(y)


def _is_gram(source: MatrixSource, raw: Any, stack: KernelStack) -> bool:
    """Whether kernel matrices are those between the training samples themselves."""
    if stack.shape[0] != source.width:
        return False
    if isinstance(raw, KernelStack):
        return bool(raw.gram)
    matrix = stack.kernel(0)
    return bool(np.allclose(matrix, matrix.T, equal_nan=True))


def _keeps_all(estimator: Any) -> bool:
    return hasattr(estimator, "X_fit_") and not hasattr(estimator, "support_")


def _kept_rows(estimator: Any) -> Any:
    """Training rows that the estimator keeps; None if there are none."""
    if hasattr(estimator, "approximation_errors_"):
        return getattr(estimator, "landmarks_", None)
    return training_source(estimator).table
