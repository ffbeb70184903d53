"""Gating features: the input of a gate, x^G in section 2.1 of Gönen & Alpaydın (2013).

They may be the data themselves, some columns of them, "a completely different
representation", or, for data that are no vectors, the empirical kernel map

    x^G = [k_G(x_1, x)  k_G(x_2, x)  …  k_G(x_m, x)]ᵀ        with x_1 … x_m the training rows.

Whatever they are, they are standardised, so that one random start and one step size suit all
columns. (StandardScaler of scikit-learn would overflow on columns larger than 1e154.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import Kernel as SklearnGPKernel
from sklearn.utils.validation import check_array, check_is_fitted

from .._memory import available_memory
from .._rounding import ACCUMULATED
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


class GatingFeatures(TransformerMixin, BaseEstimator):
    """Transformer of a table into standardised features for a gate.

    Parameters
    ----------
    what : default=None
        - None: all columns of `X`. A matrix of gating features is passed this way, as the `X` of
          ``fit``.
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
        Their standard deviations; 0 for a feature that is constant. ``transform`` sets that
        feature to 0 and keeps its column, so that there is a weight for every column.
    n_features_out_ : int
        Number of gating features.

    Examples
    --------
    A column that is constant becomes 0:

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
            Finite, and clipped to the size up to which the gates cannot overflow.
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
        # The gate is saturated in new rows that are far from all training rows.
        with np.errstate(over="ignore"):
            standard = (raw - self.mean_) / np.where(varies, self.scale_, 1.0)
        return np.where(varies, np.clip(standard, -LARGEST, LARGEST), 0.0)

    def _raw(self, X: Any) -> Array:
        raw = self._map.evaluate(X)
        if len(raw) != num_samples(X):
            raise ValueError(f"{num_samples(X)} rows were turned into {len(raw)}.")
        return raw

    def _learn_scale(self, raw: Array, sample_weight: Any) -> None:
        # Divided by the size of each column first: squares of large numbers would overflow.
        size = np.abs(raw).max(axis=0)
        size[size == 0.0] = 1.0
        relative = raw / size
        mean = np.average(relative, axis=0, weights=sample_weight)
        deviation = np.sqrt(np.average((relative - mean) ** 2, axis=0, weights=sample_weight))
        # A column that varies by less than a rounding error is constant.
        varies = deviation > ACCUMULATED
        deviation *= size
        if self._map.one_unit:
            # So is one that is a rounding error of the others, as a surplus principal component.
            varies &= deviation > ACCUMULATED * deviation.max()
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


# -- one small class for each kind of `what` ---------------------------------------------------


class _Columns:
    """Columns of a table as they are."""

    # Whether all features have the same unit, so that one can be negligible beside another.
    one_unit = False

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any) -> None:
        self.resolved_ = resolve_columns(self.columns, X)

    def evaluate(self, X: Any) -> Array:
        def name_in_table(column: int) -> Any:
            position = column_positions(X, self.resolved_)[column]
            return X.columns[position] if hasattr(X, "columns") else position

        return _finite(_dense(select_columns(X, self.resolved_)), name_in_table)


class _Transformed:
    """What a scikit-learn transformer makes of a table."""

    one_unit = True

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any) -> None:
        self.transformer_ = clone(self.transformer).fit(X, y)

    def evaluate(self, X: Any) -> Array:
        # The fit_transform of a transformer may treat training rows differently from new ones.
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


def _finite(features: Array, name: Callable[[int], Any] = int) -> Array:
    """`features` unless there is NaN or infinity; `name` gives the column for the message."""
    bad = ~np.isfinite(features)
    if not bad.any():
        return features
    row, column = np.argwhere(bad)[0]
    value, place = features[row, column], name(column)
    shown = "NaN" if np.isnan(value) else value
    place = repr(place) if isinstance(place, str) else place
    raise ValueError(
        f"there is a value that is not finite ({shown}) at row {row}, column {place}. Fill it, or "
        "pass other gating_features."
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
