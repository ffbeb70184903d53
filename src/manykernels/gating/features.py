"""Gating features: the input of a gate, x^G in section 2.1 of Gönen & Alpaydın (2013).

They may be the data themselves, some columns of them, "a completely different
representation", or, for data that are not vectors, the empirical kernel map

    x^G = [k_G(x_1, x)  k_G(x_2, x)  …  k_G(x_m, x)]ᵀ        with x_1 … x_m the training rows.

All features are standardised, so that one random start and one step size suit all columns.
(StandardScaler of scikit-learn would overflow on columns larger than 1e154.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.gaussian_process.kernels import Kernel as SklearnGPKernel
from sklearn.utils.validation import check_array, check_is_fitted

from ..kernels import Kernel, KernelStack
from ..kernels.adapters import as_kernel
from ..kernels.tables import (
    Table,
    check_numbers,
    column_positions,
    naming,
    resolve_columns,
    select_columns,
)
from ..utils.numerics import ACCUMULATED, available_memory
from ..utils.sklearn import num_samples
from ..utils.storable import storable

Array = NDArray[np.float64]

#: Bound to which features and parameters of gates are clipped, so that no formula of a gate
#: overflows: ‖x − μ‖²/σ² is at most (2e100)² · e²⁰⁰ = 3e287 per feature.
LARGEST = 1e100


@storable
class GatingFeatures(TransformerMixin, BaseEstimator):
    """Transformer of a table into standardised features for a gate.

    Parameters
    ----------
    features : default=None
        - None: all columns of `X`. A separate matrix of gating features is passed to ``fit`` and
          ``transform`` as this `X`.
        - str, list, slice, boolean mask or callable: these columns of `X`, given as in
          :meth:`manykernels.kernels.Kernel.on`. One position is given as a list, ``[2]``.
        - int d: the first d principal components of `X`.
        - a scikit-learn transformer: a clone of it is fitted on `X` and transforms `X`.
        - a :class:`~manykernels.kernels.Kernel`: the empirical kernel map, one feature for
          each training row. These rows are kept without a copy.
        - a pair (columns, transformer) or (columns, kernel): the same, on these columns only.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features_out,)
        Means of the features over the training rows.
    scale_ : ndarray of shape (n_features_out,)
        Standard deviations; 0 for a constant feature. ``transform`` sets this feature to 0 but
        keeps its column, so that a gate has a weight for every feature.
    n_features_out_ : int
        Number of gating features.

    Examples
    --------
    A constant column becomes 0:

    >>> import pandas as pd
    >>> from manykernels.gating.features import GatingFeatures
    >>> X = pd.DataFrame({"age": [20.0, 40.0], "dose": [1.0, 3.0], "site": [7.0, 7.0]})
    >>> features = GatingFeatures(["dose", "site"]).fit(X)
    >>> features.transform(X)
    array([[-1.,  0.],
           [ 1.,  0.]])
    """

    #: Whether features depend on a table, and not on row numbers alone.
    reads_table: ClassVar[bool] = True

    def __init__(self, features: Any = None) -> None:
        self.features = features

    def fit(self, X: Table, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the features, their means and deviations on the training rows `X`.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (rows, columns)
        y : array-like, optional
            Passed to a transformer.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows in means and deviations.
        """
        with naming("features of the gate"):
            if isinstance(X, KernelStack):
                raise TypeError("a KernelStack has no features; pass a matrix of gating features.")
            if num_samples(X) == 0:
                raise ValueError("there are no training rows.")
            if num_samples(X) == 1:
                raise ValueError("a gate cannot be learnt from 1 sample.")
            columns, self._map = _columns_and_map(self.features)
            self._columns_in = _columns_of(X)
            self._columns = resolve_columns(columns, X)
            if self._map is not None:
                self._map.fit(select_columns(X, self._columns), y)
            self._learn_scale(self._raw(X), sample_weight)
        return self

    def transform(self, X: Table) -> Array:
        """Return the gating features of the rows of `X`.

        Returns
        -------
        features : ndarray of shape (rows, n_features_out)
            Clipped to ±1e100, so that no formula of a gate overflows.
        """
        check_is_fitted(self, "mean_")
        with naming("features of the gate"):
            _check_same_columns(_columns_of(X), self._columns_in)
            raw = self._raw(X)
            if raw.shape[1] != self.n_features_out_:
                raise ValueError(
                    f"X has {raw.shape[1]} gating features, but the gate was fitted on "
                    f"{self.n_features_out_}."
                )
        varies = self.scale_ > 0.0
        # New rows very far from the training rows may overflow here; clipping makes them finite.
        with np.errstate(over="ignore"):
            standard = (raw - self.mean_) / np.where(varies, self.scale_, 1.0)
        return np.where(varies, np.clip(standard, -LARGEST, LARGEST), 0.0)

    def _raw(self, X: Table) -> Array:
        """Return the features before standardisation."""
        table = select_columns(X, self._columns)
        if self._map is None:
            raw = _numbers(table, lambda column: column_positions(X, self._columns)[column])
        else:
            # Not fit_transform, even in fit: it may treat training rows differently from new ones.
            raw = _numbers(self._map.transform(table))
        if len(raw) != num_samples(X):
            raise ValueError(
                f"the transformer turned {num_samples(X)} rows into {len(raw)}, but must keep all."
            )
        return raw

    def _learn_scale(self, raw: Array, sample_weight: Any) -> None:
        # Columns are divided by their largest entry, because squares of large numbers overflow.
        size = np.abs(raw).max(axis=0)
        size[size == 0.0] = 1.0
        relative = raw / size
        mean = np.average(relative, axis=0, weights=sample_weight)
        deviation = np.sqrt(np.average((relative - mean) ** 2, axis=0, weights=sample_weight))
        # A column that varies by no more than a rounding error is constant.
        varies = deviation > ACCUMULATED
        deviation *= size
        if self._map is not None:
            # So is a rounding error of the other columns, such as a surplus principal component.
            # (Columns of X have different units and cannot be compared like this.)
            varies &= deviation > ACCUMULATED * deviation.max()
        if not varies.any():
            raise ValueError(_ALL_CONSTANT)
        self.mean_ = mean * size
        self.scale_ = np.where(varies, deviation, 0.0)
        self.n_features_out_ = raw.shape[1]


_ALL_CONSTANT = (
    "gating features are constant on the training rows, so that no gate can distinguish these "
    "rows. Pass features that vary (other columns, a transformer or a kernel), or learn "
    "one weight for each kernel, without a gate."
)


@storable
class _PrincipalComponents:
    """The first principal components of a table of numbers."""

    def __init__(self, n_components: int) -> None:
        self.n_components = n_components

    def fit(self, X: Table, y: object) -> None:
        from sklearn.decomposition import PCA  # slow to import

        table = _numbers(X)
        if (table == table[0]).all():
            raise ValueError(_ALL_CONSTANT)
        wanted, most = self.n_components, min(table.shape)
        if not 1 <= wanted <= most:
            raise ValueError(
                f"the number of principal components must be between 1 and {most}, "
                f"got {wanted}. To use one column, pass its position in a list: [{wanted}]."
            )
        self.pca_ = PCA(wanted, random_state=0).fit(table)

    def transform(self, X: Table) -> Array:
        return np.asarray(self.pca_.transform(_numbers(X)))


@storable
class _KernelMap:
    """The empirical kernel map."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: Table, y: object) -> None:
        self.kernel_ = clone(self.kernel).fit(X)
        self.rows_ = X

    def transform(self, X: Table) -> Array:
        return self.kernel_(X, self.rows_)


def _columns_and_map(features: Any) -> tuple[Any, Any]:
    """Return the columns chosen by `features` (None: all), and an unfitted transformer or None."""
    if isinstance(features, tuple) and len(features) == 2:
        columns, inner = features
        if hasattr(inner, "transform") or isinstance(inner, Kernel | SklearnGPKernel):
            return columns, _columns_and_map(inner)[1]
    if isinstance(features, Kernel | SklearnGPKernel):
        return None, _KernelMap(as_kernel(features))
    if isinstance(features, type):
        raise TypeError(
            f"{features.__name__} is a class; pass an instance, {features.__name__}(...)."
        )
    if hasattr(features, "transform"):
        return None, clone(features)
    if isinstance(features, bool) or hasattr(features, "fit"):
        raise TypeError(
            f"{features!r} cannot be used: pass None, columns, a number of principal components, "
            "a transformer or a kernel."
        )
    if isinstance(features, Integral):
        return None, _PrincipalComponents(int(features))
    if len(getattr(features, "shape", ())) == 2:
        raise TypeError("a matrix of features is given as the X of fit, with features=None.")
    return features, None


def _numbers(table: Any, position: Callable[[int], int] = int) -> Array:
    """Return `table` as a two-dimensional array of finite float64 numbers.

    Messages name columns without names by their `position` in the table of the user.
    """
    check_numbers(
        table, "X", "Choose other columns, as in features=['a', 'b'], or encode it first."
    )
    names = getattr(table, "columns", None)
    if sparse.issparse(table):
        needed, available = 8 * table.shape[0] * table.shape[1], available_memory()
        if available is not None and needed > available:
            raise MemoryError(
                f"sparse features of shape {table.shape} need {needed / 2**30:.1f} GiB once "
                "dense, more than there is. Pass a transformer such as TruncatedSVD(50)."
            )
        table = table.toarray()
    numbers = check_array(table, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0]
        value = numbers[row, column]
        place = position(column) if names is None else names[column]
        raise ValueError(
            f"there is a value that is not finite ({'NaN' if np.isnan(value) else value}) at row "
            f"{row}, column {repr(place) if isinstance(place, str) else place}. Fill it in, or "
            "pass other features."
        )
    return np.asarray(numbers)


def _columns_of(X: Any) -> list[Any] | int | None:
    """Return the column names of `X`, or their number; None for data that are not a table."""
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


# -- Principal components of the mean kernel, the default input of a gate -------------------------
#
# All kernels count the same, whether they compare tables, texts or are precomputed. A few
# components suffice for a gate, and with a few it cannot overfit single samples.


# Maximum number of training samples from which the components are learnt; new samples are compared
# with these. More samples hardly change five components, and each costs a row of every kernel.
_MOST_LANDMARKS = 500


@storable
@dataclass(frozen=True)
class KernelComponents:
    """The first principal components of the mean of the normalised kernels.

    The default of the parameter `features` of a gate, with five components.

    Parameters
    ----------
    n_components : int, default=5
        Number of components; fewer if the kernels have fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.gating import KernelComponents, Sigmoid
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> model = LocalizedSVC(gating=Sigmoid(features=KernelComponents(2)))
    >>> model.fit(X, X[:, 0] > 0).gating_coef_["weights"].shape[1]
    2
    """

    n_components: int = 5

    def __post_init__(self) -> None:
        number = self.n_components
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"n_components must be an integer of at least 1, got {number!r}.")

    def learn(self, stack: KernelStack, counts: np.ndarray | None) -> Components:
        """Learn from the kernels of training samples; `counts` are their weights.

        With ``K = Σ_p K_p/P``, weights w of sum one and mean w·K = k̄, the axes are eigenvectors u
        of ``√W (K − 1k̄ᵀ − k̄1ᵀ + w·k̄) √W`` with eigenvalues λ. The component of a sample x is
        ``Σ_i √(w_i/λ) u_i (k(x, x_i) − k̄_i)``; it does not need the mean of k(x, ·), because
        ``Σ_i √w_i u_i = 0``.
        """
        rows = np.arange(len(stack))
        if len(rows) > _MOST_LANDMARKS:
            drawn = np.random.default_rng(0).choice(rows, _MOST_LANDMARKS, replace=False)
            rows = np.sort(drawn)
        mean = stack[np.ix_(rows, rows)].combine(self.weights(stack.n_kernels))
        weights = np.ones(len(rows)) if counts is None else counts[rows]
        weights = weights / weights.sum()
        roots, centre = np.sqrt(weights), weights @ mean
        centred = mean - centre - centre[:, None] + float(weights @ centre)
        last = len(rows) - 1
        n_wanted = max(1, min(self.n_components, last))
        values, vectors = linalg.eigh(
            roots[:, None] * centred * roots, subset_by_index=[last + 1 - n_wanted, last]
        )
        values, vectors = values[::-1], vectors[:, ::-1]
        # Relative to the kernels before centring, whose rounding error the centred ones have.
        kept = values > ACCUMULATED * float(weights @ np.abs(mean.diagonal()))
        if not kept.any():
            # One constant component: the kernels do not distinguish the samples.
            return Components(rows, np.zeros((len(rows), 1)), np.zeros(1))
        axes = roots[:, None] * vectors[:, kept] / np.sqrt(values[kept])
        # Eigenvectors have arbitrary signs. The sign of the skewness makes a component the same on
        # every computer, and for rows that are repeated or in another order.
        skewness = weights @ (centred @ axes) ** 3
        axes = axes * np.where(skewness < 0.0, -1.0, 1.0)
        return Components(rows, axes, centre @ axes)

    @staticmethod
    def weights(n_kernels: int) -> Array:
        """Return the weights of the kernels in their mean."""
        return np.full(n_kernels, 1.0 / n_kernels)


@dataclass(frozen=True)
class Components:
    """Components ``K(x, ·) @ axes − offsets`` of the mean kernel with the training `rows`."""

    rows: np.ndarray
    axes: Array
    offsets: Array
