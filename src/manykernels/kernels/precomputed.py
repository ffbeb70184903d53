"""Kernels looked up in a matrix.

`X` is one column of row numbers of the matrix, so that everything that splits, shuffles or
resamples the rows of `X` works unchanged.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_array

from .._sklearn import Interval, StrOptions
from ._scales import frozen_scale
from .base import Kernel
from .checks import check_symmetric


class _Lookup(Kernel):
    """A kernel looked up in the matrix that is its parameter `_matrix_parameter`."""

    _accepts_sparse = False
    _matrix_parameter: str

    @property
    def is_psd(self) -> bool:
        return False

    def __sklearn_clone__(self) -> Self:
        # The default clone copies arrays, so each fold of a cross-validation would have a copy.
        return type(self)(**self.get_params(deep=False))

    def _learn_scale(self, X: np.ndarray, weights: np.ndarray) -> None:
        self.matrix_ = self._checked_matrix()

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        columns = (X if Y is None else Y)[:, 0]
        return self._similarity(self._matrix()[np.ix_(X[:, 0], columns)])

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        return self._similarity(self._matrix()[X[:, 0], X[:, 0]])

    def _similarity(self, entries: np.ndarray) -> np.ndarray:
        return entries

    def _matrix(self) -> np.ndarray:
        return self.matrix_ if hasattr(self, "matrix_") else self._checked_matrix()

    def _checked_matrix(self) -> np.ndarray:
        name, label = type(self).__name__, self._matrix_parameter
        given = getattr(self, label)
        matrix = check_array(given, dtype=np.float64, input_name=label, estimator=name)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"{name}: {label} must be square, got shape {matrix.shape}.")
        check_symmetric(matrix, name)
        return matrix

    def _validated(self, X: Any) -> np.ndarray:
        X = super()._validated(X)
        if X.shape[1] != 1:
            raise ValueError(
                f"X must be one column of row numbers, got {X.shape[1]} columns; "
                "choose it with .on(column)."
            )
        if (fractional := X[np.floor(X) != X]).size:
            raise ValueError(f"row numbers must be integers, got {fractional[0]:g}.")
        size = len(getattr(self, self._matrix_parameter))
        if (outside := X[(X < 0) | (size <= X)]).size:
            raise ValueError(
                f"row number {outside[0]:.0f} is out of range for {self._matrix_parameter} "
                f"with {size} rows."
            )
        return X.astype(np.intp)


class Precomputed(_Lookup):
    """A kernel matrix computed elsewhere, looked up by row numbers.

    Cloning shares the matrix instead of copying it.

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Similarities of all rows, training and test.
    columns : str, int or callable, default=None
        The column of `X` that holds the row numbers; None when `X` has only that one.

    Attributes
    ----------
    matrix_ : ndarray of shape (n, n)
        `gram` as an array, square, finite and symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Precomputed
    >>> kernel = Precomputed([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> kernel(np.array([[0], [1]]), np.array([[2]]))
    array([[0.],
           [1.]])
    """

    _matrix_parameter = "gram"

    def __init__(self, gram: Any, *, columns: Any = None) -> None:
        self.gram = gram
        self.columns = columns


class FromDistances(_Lookup):
    """The kernel ``exp(−D / η)`` of a distance matrix, looked up by row numbers.

    With ``scale="mean"`` η is the mean distance over all ordered pairs of training rows (Yan et
    al. 2012, section 3.5). Not every distance gives a positive semi-definite kernel, so a union
    checks the result.

    Parameters
    ----------
    distances : array-like of shape (n, n)
        Distances of all rows, training and test.
    scale : float or "mean", default="mean"
        η, or how to take it from the training rows.
    columns : see :class:`Precomputed`

    Attributes
    ----------
    eta_ : float
        The η in use.
    matrix_ : ndarray of shape (n, n)
        `distances` as an array, square, finite, symmetric and not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import FromDistances
    >>> rows = np.array([[0], [1]])
    >>> FromDistances([[0.0, 2.0], [2.0, 0.0]]).fit(rows)(rows).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    _matrix_parameter = "distances"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"mean"})]
    }

    def __init__(
        self, distances: Any, scale: float | str = "mean", *, columns: Any = None
    ) -> None:
        self.distances = distances
        self.scale = scale
        self.columns = columns

    def _learn_scale(self, X: np.ndarray, weights: np.ndarray) -> None:
        super()._learn_scale(X, weights)
        scale = self.scale
        if isinstance(scale, str):
            counts = np.bincount(X[:, 0], weights, minlength=len(self.matrix_))
            scale = counts @ self.matrix_ @ counts / counts.sum() ** 2 or 1.0
        self.eta_ = float(scale)

    def _similarity(self, entries: np.ndarray) -> np.ndarray:
        return np.exp(entries / -frozen_scale(self, "scale", "eta_"))

    def _checked_matrix(self) -> np.ndarray:
        matrix = super()._checked_matrix()
        if matrix.min() < 0:
            row, column = np.unravel_index(matrix.argmin(), matrix.shape)
            raise ValueError(
                "FromDistances: distances must not be negative, got "
                f"{matrix[row, column]:g} at row {row}, column {column}."
            )
        return matrix
