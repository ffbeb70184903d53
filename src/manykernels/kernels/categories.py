"""Kernels of tables of categories, and of tables of zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array

from ..utils.sklearn import Interval
from ..utils.storable import storable
from .base import Kernel
from .tables import Matrix, column_label, refuse_masked


@storable
@dataclass(eq=False, repr=False)
class Categorical(Kernel):
    """Share of equal entries, ``s = (1/d) Σ_j [x_j = y_j]``, of rows of d categories.

    With a `width` it is ``exp(−2(1 − s) / width²)``, a Gaussian of indicators of categories. The
    first one adds functions of single columns; the second one also has their interactions, the
    more of them, the smaller the width.

    Categories are strings, numbers, booleans or other hashable objects; pandas categoricals are
    compared by their values. Estimators accept text in data frames. A category that occurs only in
    new rows matches no training category; estimators warn about it. They convert new rows to the
    types of training, for example 1 to "1".

    Parameters
    ----------
    width : float or None, default=None
        Width of a Gaussian of the share of different entries; None is the share of equal ones.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels.kernels import Categorical
    >>> X = pd.DataFrame({"colour": ["red", "red", "blue"], "doors": [2, 4, 4]})
    >>> Categorical()(X)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    >>> Categorical(width=1)(X).round(2)
    array([[1.  , 0.37, 0.14],
           [0.37, 1.  , 0.37],
           [0.14, 0.37, 1.  ]])
    """

    _of_categories = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "width": [Interval(Real, 0, None, closed="neither"), None]
    }

    width: float | None = None

    def _validated(self, X: object) -> np.ndarray:
        refuse_masked(X, "X")
        entries = check_array(
            X, dtype=object, ensure_all_finite=False, estimator=type(self).__name__
        )
        for position, column in enumerate(entries.T):
            _check_categories(column, column_label(X, position))
        return entries

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        Y = X if Y is None else Y
        K = np.zeros((len(X), len(Y)))
        for x, y in zip(X.T, Y.T, strict=True):
            numbers: dict[Any, int] = {}
            x, y = ([numbers.setdefault(entry, len(numbers)) for entry in col] for col in (x, y))
            K += np.equal.outer(x, y)
        K /= X.shape[1]
        if self.width is not None:
            K -= 1.0
            K *= 2.0 / self.width / self.width
            # Smaller powers are zero, and slow to compute.
            np.maximum(K, -700.0, out=K)
            np.exp(K, out=K)
        return K

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


def _check_categories(column: np.ndarray, label: str) -> None:
    """Raise an error for missing values and unhashable objects."""
    try:
        missing = {id(entry) for entry in set(column) if _is_missing(entry)}
    except TypeError as error:
        raise TypeError(f"{label} does not hold categories: {error}.") from error
    if missing:
        row = next(row for row, entry in enumerate(column) if id(entry) in missing)
        raise ValueError(
            f"X has a missing value (None, NaN or NA) at row {row}, {label}: impute it, or use a "
            "separate category for missing values, as in X.fillna('missing')."
        )


def _is_missing(entry: object) -> bool:
    try:
        return entry is None or bool(entry != entry)
    except TypeError:  # a comparison with pandas.NA has no truth value
        return True


@storable
class Jaccard(Kernel):
    """Jaccard or Tanimoto similarity ``|x ∧ y| / |x ∨ y|`` of rows of zeros and ones.

    The number of columns in which both rows are 1, divided by the number in which at least one
    is, for example of two chemical fingerprints; 1 for two rows of zeros.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from manykernels.kernels import Jaccard
    >>> Jaccard()([[1, 1, 0]], [[1, 1, 0], [1, 0, 1], [0, 0, 1]]).round(2)
    array([[1.  , 0.33, 0.  ]])
    """

    def _validated(self, X: object) -> Any:
        bits = super()._validated(X)
        if sparse.issparse(bits) and not bits.has_canonical_format:
            bits = bits.copy()
            bits.sum_duplicates()
        values = bits.data if sparse.issparse(bits) else bits
        if np.any((values != 0) & (values != 1)):
            entries = sparse.coo_array(bits)
            place = np.flatnonzero((entries.data != 0) & (entries.data != 1))[0]
            raise ValueError(
                f"entries must be 0 or 1, got {entries.data[place]:g} at row "
                f"{entries.row[place]}, {column_label(X, entries.col[place])}. Convert counts to "
                "0 or 1 with Jaccard().after(Binarizer())."
            )
        return bits

    def _evaluate(self, X: Matrix, Y: Matrix | None) -> np.ndarray:
        Y = X if Y is None else Y
        both = safe_sparse_dot(X, Y.T, dense_output=True)
        either = np.add.outer(_row_sums(X), _row_sums(Y)) - both
        return np.divide(both, either, out=np.ones_like(both), where=either > 0)

    def _diagonal(self, X: Matrix) -> np.ndarray:
        return np.ones(X.shape[0])


#: The name used in chemistry.
Tanimoto = Jaccard


def _row_sums(X: Matrix) -> np.ndarray:
    return np.asarray(X.sum(axis=1)).ravel()
