"""Derivatives of fitted kernels with respect to the columns of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from . import tables
from .base import Kernel, SquaredDistances
from .composition import After, Constant, OfView, Sum
from .standard import RBF, Cosine, Linear, Polynomial
from .tables import SharedTable

# Columns of a block, which stays in the cache of the processor.
_COLUMNS = 1024
# Transformers that multiply every column by a number and shift it.
_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


def form_of(kernel: Kernel) -> str | None:
    """Return "linear" or "smooth" if :func:`slopes` takes a fitted kernel, else None.

    A linear kernel is ``Σ_c s_c² x_c y_c`` up to terms that do not depend on both rows.
    """
    if isinstance(kernel, OfView):
        return form_of(kernel.kernel_)
    if isinstance(kernel, After):
        return form_of(kernel.kernel_) if _scales_columns(kernel.transformer_) else None
    if isinstance(kernel, Sum):
        forms = [form_of(term) for term in kernel._parts()]
        return None if None in forms else "smooth" if "smooth" in forms else "linear"
    if type(kernel) in (Linear, Constant):
        return "linear"
    if type(kernel) is Polynomial:
        return "linear" if kernel.degree == 1 else "smooth"
    return "smooth" if type(kernel) in (RBF, Cosine) else None


def slopes(
    kernel: Kernel, X: Any, Y: Any, coefficients: np.ndarray, K: np.ndarray | None = None
) -> np.ndarray:
    """Return ``Σ_i coefficients[r, i] ∂k(x_r, y_i) / ∂x_r``, (rows of X, columns of X).

    Parameters
    ----------
    kernel : Kernel
        Fitted, with a form (:func:`form_of`).
    X, Y : tables of numbers, or Views for a kernel of a view
        Of views, the columns are those of the view of the kernel.
    coefficients : ndarray of shape (rows of X, rows of Y)
    K : ndarray of shape (rows of X, rows of Y), optional
        The kernel matrix, if it is known, which saves half of the time for a Gaussian kernel.
    """
    if isinstance(kernel, OfView):
        return slopes(kernel.kernel_, X[kernel.view], Y[kernel.view], coefficients, K)
    table = tables.as_table(X)
    n_columns = table.shape[1]
    if isinstance(kernel, Constant):
        return np.zeros((table.shape[0], n_columns))
    places = tables.column_positions(SharedTable(X), kernel._frozen_columns(SharedTable(X)))
    if places != list(range(n_columns)):
        # A kernel of some columns: the others have no slope.
        of_all = np.zeros((table.shape[0], n_columns))
        X, Y = tables.select_columns(X, places), tables.select_columns(Y, places)
        of_all[:, places] = _of_chosen(kernel, X, Y, coefficients, K)
        return of_all
    return _of_chosen(kernel, X, Y, coefficients, K)


def _of_chosen(
    kernel: Any, X: Any, Y: Any, coefficients: np.ndarray, K: np.ndarray | None
) -> np.ndarray:
    """Return the slopes of a kernel of all columns of the tables."""
    if isinstance(kernel, Sum):
        left, right = kernel._parts()
        return slopes(left, X, Y, coefficients) + slopes(right, X, Y, coefficients)
    if isinstance(kernel, After):
        X, Y = _scaled(kernel.transformer_, X), _scaled(kernel.transformer_, Y)
        factors = column_factors(kernel.transformer_, X.shape[1])
        return slopes(kernel.kernel_, X, Y, coefficients, K) * factors
    X, Y = (kernel._validated(table) for table in (X, Y))
    if isinstance(kernel, Linear):
        return _product(coefficients, Y)
    if isinstance(kernel, Cosine):
        lengths = row_norms(X)[:, None]
        lengths[lengths == 0.0] = np.inf
        others = row_norms(Y)
        total = _product(
            np.divide(coefficients, others, np.zeros_like(coefficients), where=others > 0), Y
        )
        X = _dense(X)
        along = (X * total).sum(axis=1, keepdims=True) / lengths**2
        return (total - along * X) / lengths
    if isinstance(kernel, Polynomial):
        factor = kernel._factor()
        inner = factor * safe_sparse_dot(X, Y.T, dense_output=True) + kernel.coef0
        return _product(coefficients * factor * kernel.degree * inner ** (kernel.degree - 1), Y)
    assert isinstance(kernel, RBF)
    if K is None:
        K = SquaredDistances(X, Y).whole()
        kernel._from_compared(K, K)
    values = K * coefficients
    values *= -2.0 * kernel._factor()
    sums = values.sum(axis=1, keepdims=True)
    if sparse.issparse(X) or sparse.issparse(Y):
        return _dense(X) * sums - _product(values, Y)
    result = np.empty(X.shape)
    for columns in gen_batches(X.shape[1], _COLUMNS):
        # Shifted to the same origin, where differences lose fewer digits.
        origin = Y[:, columns].mean(axis=0)
        np.matmul(-values, Y[:, columns] - origin, out=result[:, columns])
        result[:, columns] += (X[:, columns] - origin) * sums
    return result


def squared_factors(kernel: Kernel, X: Any) -> np.ndarray:
    """Return the factors ``s_c²`` of the columns of X in a linear kernel, (columns of X,)."""
    if isinstance(kernel, OfView):
        return squared_factors(kernel.kernel_, X[kernel.view])
    n_columns = tables.as_table(X).shape[1]
    if isinstance(kernel, Constant):
        return np.zeros(n_columns)
    places = tables.column_positions(SharedTable(X), kernel._frozen_columns(SharedTable(X)))
    chosen, result = tables.select_columns(X, places), np.zeros(n_columns)
    if isinstance(kernel, Sum):
        left, right = kernel._parts()
        result[places] = squared_factors(left, chosen) + squared_factors(right, chosen)
    elif isinstance(kernel, After):
        factors = column_factors(kernel.transformer_, len(places))
        result[places] = squared_factors(kernel.kernel_, chosen) * factors**2
    else:
        result[places] = kernel._factor() if isinstance(kernel, Polynomial) else 1.0
    return result


def column_factors(transformer: Any, n_columns: int) -> np.ndarray:
    """Return the factor of every column in a fitted transformer that scales columns."""
    if isinstance(transformer, Pipeline):
        factors = np.ones(n_columns)
        for _, step in transformer.steps:
            factors = factors * column_factors(step, n_columns)
        return factors
    if isinstance(transformer, StandardScaler | RobustScaler):
        factor = transformer.scale_ if transformer.scale_ is not None else 1.0
        return np.full(n_columns, 1.0 / factor)
    if isinstance(transformer, MinMaxScaler):
        return np.asarray(transformer.scale_)
    return np.asarray(1.0 / transformer.scale_)


def _scales_columns(transformer: Any) -> bool:
    """Return whether a transformer multiplies every column by a number and shifts it."""
    if isinstance(transformer, Pipeline):
        return all(_scales_columns(step) for _, step in transformer.steps)
    if isinstance(transformer, MinMaxScaler) and transformer.clip:
        return False
    return isinstance(transformer, _SCALERS)


def _scaled(transformer: Any, table: Any) -> Any:
    output = transformer.transform(tables.copied(tables.as_table(table)))
    return output if sparse.issparse(output) else np.asarray(output, dtype=np.float64)


def _product(coefficients: np.ndarray, Y: Any) -> np.ndarray:
    return np.asarray(safe_sparse_dot(coefficients, Y, dense_output=True))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X
