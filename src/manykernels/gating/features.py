"""Gating features: where a gate looks, x^G in section 2.1 of Gönen & Alpaydın (2013).

They may be the data themselves, some columns of them, "a completely different
representation", or, for data that are no vectors, the empirical kernel map

    x^G = [k_G(x_1, x)  k_G(x_2, x)  …  k_G(x_m, x)]ᵀ        with x_1 … x_m the training rows.

Whatever they are, they are standardised: a random start and one step size then suit all
columns alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import Kernel as SklearnGPKernel
from sklearn.utils.validation import check_array, check_is_fitted

from .._memory import available_memory
from .._sklearn import num_samples
from ..kernels import Kernel, KernelStack, as_kernel
from ..kernels.tables import (
    check_numbers,
    column_positions,
    naming,
    resolve_columns,
    select_columns,
)
from .gates import LARGEST

Array = NDArray[np.float64]

# A column that varies by less than this part of its size is constant up to rounding.
_CONSTANT = 1e-12


class GatingFeatures(BaseEstimator):
    """Standardised features for a gate, learnt on training rows and applied to new ones.

    Parameters
    ----------
    what : default=None
        - None: all columns of `X`. An explicit matrix of gating features is given this way,
          as the `X` of ``fit``.
        - str, list, slice, boolean mask or callable: these columns of `X`, in the vocabulary
          of :meth:`manykernels.kernels.Kernel.on`. One position is given as a list, ``[2]``.
        - int d: the first d principal components of `X`.
        - a scikit-learn transformer: what a clone of it, fitted on `X`, makes of `X`.
        - a :class:`~manykernels.kernels.Kernel`: the empirical kernel map, one feature for
          each training row. These rows are kept, not copied.
        - a pair (columns, transformer) or (columns, kernel): the same of some columns.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features_out_,)
        Means of the features over the training rows.
    scale_ : ndarray of shape (n_features_out_,)
        Their standard deviations; 0 for a feature that is constant. That feature is 0 in all
        rows from then on, and still has its place, so that weights line up with columns.
    n_features_out_ : int
        Number of gating features.

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels.gating import GatingFeatures
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "dose": [1.0, 3.0], "site": [7.0, 7.0]})
    >>> features = GatingFeatures(["dose", "site"]).fit(X)
    >>> features.transform(X)
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    def __init__(self, what: Any = None) -> None:
        self.what = what

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the features, their means and deviations on the training rows `X`.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (rows, columns)
        y : array-like, optional
            Passed on to a transformer.
        sample_weight : array-like of shape (rows,), optional
            How often each row counts in means and deviations.

        Returns
        -------
        self : GatingFeatures
        """
        with naming("gating_features"):
            if isinstance(X, KernelStack):
                raise TypeError("a KernelStack holds no features; pass a matrix of them.")
            if num_samples(X) == 0:
                raise ValueError("there are no training rows.")
            if num_samples(X) == 1:
                raise ValueError("a gate cannot be learnt from 1 sample.")
            self._map = _as_map(self.what)
            self._columns_in = _columns_of(X)
            self._map.fit(X, y)
            self._learn_scale(self._raw(X), sample_weight)
        return self

    def transform(self, X: Any) -> Array:
        """Gating features of the rows of `X`.

        Returns
        -------
        features : ndarray of shape (rows, n_features_out_)
            Finite and of moderate size, as the gates ask.
        """
        check_is_fitted(self, "mean_")
        with naming("gating_features"):
            _check_same_columns(_columns_of(X), self._columns_in)
            raw = self._raw(X)
            if raw.shape[1] != self.n_features_out_:
                raise ValueError(
                    f"X gives {raw.shape[1]} gating features, but the gate was fitted on "
                    f"{self.n_features_out_}."
                )
        varies = self.scale_ > 0.0
        # A new row may lie absurdly far out: the gate is saturated there, no more.
        with np.errstate(over="ignore"):
            standard = (raw - self.mean_) / np.where(varies, self.scale_, 1.0)
        return np.where(varies, np.clip(standard, -LARGEST, LARGEST), 0.0)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """``fit(X, y).transform(X)``."""
        return self.fit(X, y).transform(X)

    def _raw(self, X: Any) -> Array:
        raw = self._map.evaluate(X)
        if len(raw) != num_samples(X):
            raise ValueError(f"{num_samples(X)} rows were turned into {len(raw)}.")
        return raw

    def _learn_scale(self, raw: Array, sample_weight: Any) -> None:
        # Relative to the size of each column, squares of large numbers do not overflow.
        size = np.abs(raw).max(axis=0)
        size[size == 0.0] = 1.0
        relative = raw / size
        mean = np.average(relative, axis=0, weights=sample_weight)
        deviation = np.sqrt(np.average((relative - mean) ** 2, axis=0, weights=sample_weight))
        varies = deviation > _CONSTANT
        deviation *= size
        if self._map.one_unit:
            # Such as surplus principal components: rounding errors beside the others.
            varies &= deviation > _CONSTANT * deviation.max()
        if not varies.any():
            raise ValueError(_ALL_CONSTANT)
        self.mean_ = mean * size
        self.scale_ = np.where(varies, deviation, 0.0)
        self.n_features_out_ = raw.shape[1]


_ALL_CONSTANT = (
    "gating features are constant on the training rows, so that no gate can tell these rows "
    "apart. Pass gating_features that vary (other columns, a transformer or a kernel), or learn "
    "one weight for each kernel, without a gate."
)


# -- one small class for each thing that can be passed ------------------------------------------


class _Columns:
    """Columns of a table as they are."""

    # Whether one feature can be negligible beside another; columns may be metres and years.
    one_unit = False

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any) -> None:
        self.resolved_ = resolve_columns(self.columns, X)

    def evaluate(self, X: Any) -> Array:
        table = _dense(select_columns(X, self.resolved_))
        bad = ~np.isfinite(table)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            position = column_positions(X, self.resolved_)[column]
            names = getattr(X, "columns", range(position + 1))
            raise _not_finite(table[row, column], row, names[position])
        return table


class _Transformed:
    """What a scikit-learn transformer makes of a table."""

    one_unit = True

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any) -> None:
        self.transformer_ = clone(self.transformer).fit(X, y)

    def evaluate(self, X: Any) -> Array:
        # Not fit_transform, which may treat training rows differently from new ones.
        return _finite(_dense(self.transformer_.transform(X)))


class _Principal(_Transformed):
    """The first principal components of a table."""

    def __init__(self, n_components: int) -> None:
        super().__init__(PCA(n_components, random_state=0))
        self.table = _Columns(None)

    def fit(self, X: Any, y: Any) -> None:
        self.table.fit(X, y)
        table = self.table.evaluate(X)
        if (table == table[0]).all():
            raise ValueError(_ALL_CONSTANT)
        wanted, most = self.transformer.n_components, min(table.shape)
        if not 1 <= wanted <= most:
            raise ValueError(
                f"an integer is a number of principal components, here between 1 and {most}, "
                f"got {wanted}. To look at one column pass its position in a list: [{wanted}]."
            )
        super().fit(table, y)

    def evaluate(self, X: Any) -> Array:
        return super().evaluate(self.table.evaluate(X))


class _KernelMap:
    """The empirical kernel map."""

    one_unit = True

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any) -> None:
        self.kernel_ = clone(self.kernel).fit(X)
        self.rows_ = X

    def evaluate(self, X: Any) -> Array:
        return _finite(_dense(self.kernel_(X, self.rows_)))


class _OnColumns:
    """One of the above, given only some columns."""

    def __init__(self, columns: Any, inner: Any) -> None:
        self.columns = columns
        self.inner = inner
        self.one_unit = inner.one_unit

    def fit(self, X: Any, y: Any) -> None:
        self.resolved_ = resolve_columns(self.columns, X)
        self.inner.fit(select_columns(X, self.resolved_), y)

    def evaluate(self, X: Any) -> Array:
        return self.inner.evaluate(select_columns(X, self.resolved_))


def _as_map(what: Any) -> Any:
    if isinstance(what, tuple) and len(what) == 2 and _is_a_map(what[1]):
        return _OnColumns(what[0], _as_map(what[1]))
    if isinstance(what, Kernel | SklearnGPKernel):
        return _KernelMap(as_kernel(what))
    if isinstance(what, type):
        raise TypeError(f"{what.__name__} is a class; pass an instance, {what.__name__}(...).")
    if hasattr(what, "transform"):
        return _Transformed(what)
    if isinstance(what, bool) or hasattr(what, "fit"):
        raise TypeError(
            f"{what!r} cannot be used: pass None, columns, a number of principal components, "
            "a transformer or a kernel."
        )
    if isinstance(what, Integral):
        return _Principal(int(what))
    if len(getattr(what, "shape", ())) == 2:
        raise TypeError("a matrix of features is given as the X of fit, with what=None.")
    return _Columns(what)


def _is_a_map(what: Any) -> bool:
    return hasattr(what, "transform") or isinstance(what, Kernel | SklearnGPKernel)


# -- tables -------------------------------------------------------------------------------------


def _dense(table: Any) -> Array:
    """`table` as float64 numbers in two dimensions, finite or not."""
    check_numbers(
        table, "X", "Choose other columns, as in gating_features=['a', 'b'], or encode it first."
    )
    if sparse.issparse(table):
        needed, available = 8 * table.shape[0] * table.shape[1], available_memory()
        if available is not None and needed > available:
            raise MemoryError(
                f"sparse features of shape {table.shape} need {needed / 2**30:.1f} GiB once "
                "dense, more than there is. Pass a transformer such as TruncatedSVD(50)."
            )
        table = table.toarray()
    return check_array(table, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)


def _finite(features: Array) -> Array:
    bad = ~np.isfinite(features)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise _not_finite(features[row, column], row, column)
    return features


def _not_finite(value: float, row: int, column: Any) -> ValueError:
    shown = "NaN" if np.isnan(value) else value
    label = repr(column) if isinstance(column, str) else column
    return ValueError(
        f"there is a value that is not finite ({shown}) at row {row}, column {label}. Fill it, "
        "or pass other gating_features."
    )


def _columns_of(X: Any) -> Sequence[Any] | int | None:
    """Names of the columns of `X`, or their number; None for data that are no table."""
    if hasattr(X, "columns"):
        return list(X.columns)
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:
        return None
    return int(shape[1]) if len(shape) == 2 else None


def _check_same_columns(new: Any, fitted: Any) -> None:
    if isinstance(new, list) and isinstance(fitted, list) and new != fitted:
        raise ValueError(f"X has the columns {new}, but the gate was fitted on {fitted}.")
    widths = [len(columns) if isinstance(columns, list) else columns for columns in (new, fitted)]
    if None not in widths and widths[0] != widths[1]:
        raise ValueError(
            f"X has {widths[0]} columns, but the gate was fitted on a table of {widths[1]}."
        )
