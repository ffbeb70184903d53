"""Conversion of names, functions and scikit-learn kernels to :class:`Kernel` objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.validation import check_array

from ..utils.sklearn import Interval, StrOptions, num_samples
from ..utils.storable import storable
from .base import Kernel, writable
from .checks import check_symmetric
from .standard import RBF, ChiSquare, Cosine, Laplacian, Linear, Polynomial
from .tables import Matrix, as_view
from .transforms import frozen_scale


@storable
@dataclass(eq=False, repr=False)
class PairwiseKernel(Kernel):
    """Kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`, by name.

    Parameters
    ----------
    metric : str, default="linear"
        A metric of :func:`~sklearn.metrics.pairwise.pairwise_kernels`.
    params : dict, default=None
        Keyword arguments for the metric; None means its defaults.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from manykernels.kernels.adapters import PairwiseKernel
    >>> kernel = PairwiseKernel("sigmoid", params={"gamma": 1.0, "coef0": 0.0})
    >>> kernel([[1.0]], [[0.5]]).round(3)
    array([[0.462]])
    >>> kernel.is_psd
    False
    """

    # Without "poly", which is indefinite if coef0 is negative, "sigmoid" and "additive_chi2".
    _psd_metrics = frozenset({"linear", "rbf", "laplacian", "cosine", "chi2"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "metric": [StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS))],
        "params": [dict, None],
    }

    metric: str = "linear"
    params: dict | None = None

    @property
    def is_psd(self) -> bool:
        return self.metric in self._psd_metrics and not self.params

    def _evaluate(self, X: Matrix, Y: Matrix | None) -> np.ndarray:
        params = self.params or {}
        return pairwise_kernels(writable(X), writable(Y), metric=self.metric, **params)


@storable
@dataclass(eq=False, repr=False)
class GaussianProcessKernel(Kernel):
    """Kernel of :mod:`sklearn.gaussian_process.kernels` with fixed hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel; its hyperparameters are not optimised.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from manykernels.kernels.adapters import as_kernel
    >>> kernel = as_kernel(Matern(length_scale=2.0))
    >>> kernel([[0.0]], [[2.0]]).round(3)
    array([[0.483]])
    >>> kernel.get_params()["kernel__length_scale"]
    2.0
    """

    _accepts_sparse = False
    # Positive semi-definite only for some parameters, or only in one dimension.
    _sometimes_psd = (gp.PairwiseKernel, gp.Exponentiation, gp.ExpSineSquared)
    # Parameters that multiply a kernel.
    _factors = ("constant_value", "noise_level")
    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel": [gp.Kernel]}

    kernel: gp.Kernel

    @property
    def is_psd(self) -> bool:
        params = self.kernel.get_params()
        if any(isinstance(item, self._sometimes_psd) for item in (self.kernel, *params.values())):
            return False
        factors = [params[name] for name in params if name.endswith(self._factors)]
        return all(factor >= 0.0 for factor in factors)

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        return self.kernel(X, Y)

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        return self.kernel.diag(X)


@dataclass(eq=False, repr=False)
class CallableKernel(Kernel):
    """Kernel defined by a function ``f(X, Y)`` that returns the kernel matrix.

    The kernel checks the shape and symmetry of the result; a union checks that it is positive
    semi-definite.

    Parameters
    ----------
    function : callable
        Called with two unconverted tables (arrays, sparse matrices, data frames, objects), it
        returns an array of shape (rows of X, rows of Y).
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels.adapters import as_kernel
    >>> as_kernel(lambda X, Y: np.tanh(X @ Y.T))([[1.0]], [[0.5]]).round(3)
    array([[0.462]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"function": [callable]}

    function: Callable[[Any, Any], np.ndarray]

    @property
    def is_psd(self) -> bool:
        return False

    def _validated(self, X: object) -> Any:
        # Only lists are converted.
        return X if hasattr(X, "shape") else as_view(X)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        if len(X.shape) == 2:
            self.n_features_in_ = X.shape[1]

    def _check_widths(self, X: Any, Y: Any) -> None:
        if len(X.shape) == 2:
            super()._check_widths(X, Y)

    def _evaluate(self, X: object, Y: object) -> np.ndarray:
        name = getattr(self.function, "__name__", repr(self.function))
        gram = Y is None
        Y = X if gram else Y
        # A copy, since the matrix is modified later and the function may keep a reference.
        K = np.array(self.function(X, Y), dtype=np.float64)
        expected = (num_samples(X), num_samples(Y))
        if K.shape != expected:
            raise ValueError(
                f"CallableKernel: {name} returned shape {K.shape} instead of "
                f"(rows of X, rows of Y) = {expected}."
            )
        if gram:
            check_symmetric(K, name)
        return K


# Kernels by name, with the defaults of sklearn.metrics.pairwise.pairwise_kernels.
NAMED_KERNELS: dict[str, Callable[[], Kernel]] = {
    "additive_chi2": partial(PairwiseKernel, "additive_chi2"),
    "chi2": ChiSquare,
    "cosine": Cosine,
    "laplacian": partial(Laplacian, gamma="auto"),
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "rbf": partial(RBF, gamma="auto"),
    "sigmoid": partial(PairwiseKernel, "sigmoid"),
}

_ACCEPTED = (
    "a kernel is a manykernels Kernel instance, one of the names "
    + ", ".join(repr(name) for name in NAMED_KERNELS)
    + ", a kernel of sklearn.gaussian_process.kernels, or a function f(X, Y) that returns a "
    "matrix"
)


@singledispatch
def as_kernel(kernel: object) -> Kernel:
    """Convert a name, a function or a kernel of scikit-learn to a :class:`Kernel`.

    Other types can be added with ``as_kernel.register``.

    Parameters
    ----------
    kernel : Kernel, str, sklearn.gaussian_process.kernels.Kernel or callable
        A string is the name of a metric of :func:`sklearn.metrics.pairwise.pairwise_kernels`,
        with the default parameters of that function.

    Returns
    -------
    kernel : Kernel
        The same object if it is a :class:`Kernel` already.

    Examples
    --------
    >>> from manykernels.kernels.adapters import as_kernel
    >>> as_kernel("rbf")
    RBF(gamma='auto')
    """
    raise TypeError(f"{kernel!r} is not a kernel: {_ACCEPTED}.")


@as_kernel.register
def _named_kernel(kernel: str) -> Kernel:
    if kernel not in NAMED_KERNELS:
        raise ValueError(f"There is no kernel named {kernel!r}: {_ACCEPTED}.")
    return NAMED_KERNELS[kernel]()


as_kernel.register(Callable, CallableKernel)  # type: ignore[call-overload]
as_kernel.register(gp.Kernel, GaussianProcessKernel)
# Estimators and classes may be callable, but not as f(X, Y).
as_kernel.register(BaseEstimator, as_kernel.dispatch(object))
as_kernel.register(type, as_kernel.dispatch(object))
as_kernel.register(Kernel, lambda kernel: kernel)


# -- Precomputed matrices -------------------------------------------------------------------------
#
# `X` is one column of row numbers of the matrix, so that code that splits, shuffles or resamples
# the rows of `X` works unchanged.


class _Lookup(Kernel):
    """Base class of kernels from a matrix, the parameter named `_matrix_parameter`."""

    _accepts_sparse = False
    _matrix_parameter: str

    @property
    def is_psd(self) -> bool:
        return False

    def __sklearn_clone__(self) -> Self:
        # The default clone copies arrays, in cross-validation once per fold.
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
        matrix = getattr(self, label)
        matrix = check_array(matrix, dtype=np.float64, input_name=label, estimator=name)
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


@storable
@dataclass(eq=False, repr=False)
class Precomputed(_Lookup):
    """Precomputed kernel matrix, indexed by row numbers.

    Clones share the matrix.

    Parameters
    ----------
    gram : array-like of shape (n, n)
        Kernel matrix of all rows, training and test.
    columns : str, int or callable, default=None
        The column of `X` that holds the row numbers; None if `X` has a single column.

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

    gram: ArrayLike


@storable
@dataclass(eq=False, repr=False)
class FromDistances(_Lookup):
    """Kernel ``exp(−D / η)`` of a distance matrix, indexed by row numbers.

    With ``scale="mean"`` η is the mean distance over all ordered pairs of training rows (Yan et
    al. 2012, section 3.5). Not every distance yields a positive semi-definite kernel, so a union
    checks the result.

    Parameters
    ----------
    distances : array-like of shape (n, n)
        Distances of all rows, training and test.
    scale : float or "mean", default="mean"
        η, or the rule that computes it from the training rows.
    columns : str, int or callable, default=None
        The column of row numbers; see :class:`Precomputed`.

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

    distances: ArrayLike
    scale: float | str = "mean"

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
