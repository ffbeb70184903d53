"""The standard kernels of tables of numbers.

All have the parameter `columns` of :class:`~manykernels.kernels.Kernel`. Those with a factor
`gamma` have an attribute `gamma_` after ``fit``, the number in use.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, manhattan_distances
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._sklearn import Interval
from ._scales import GammaKernel, gamma_options
from .base import Kernel
from .tables import column_positions

# Most entries of the temporary array (rows of X, rows of Y, columns) of Intersection: 32 MiB.
_BLOCK_ENTRIES = 2**22


def writable(X: Any) -> Any:
    """`X`, or a copy if it is dense and read-only, as joblib passes arrays to workers.

    The compiled χ² loop of scikit-learn refuses read-only buffers although it only reads them.
    """
    return X if X is None or sparse.issparse(X) else np.require(X, requirements="W")


def _inner_products(X: Any, Y: Any) -> np.ndarray:
    return safe_sparse_dot(X, (X if Y is None else Y).T, dense_output=True)


class Linear(Kernel):
    """Inner product ``⟨x, y⟩``.

    Examples
    --------
    >>> from manykernels.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return _inner_products(X, Y)

    def _diagonal(self, X: Any) -> np.ndarray:
        return row_norms(X, squared=True)


class Polynomial(GammaKernel):
    """Polynomial kernel ``(gamma ⟨x, y⟩ + coef0) ** degree``.

    Positive semi-definite by construction when `coef0` is not negative.

    Parameters
    ----------
    degree : int, default=3
    gamma : float or {"auto", "scale"}, default="auto"
        "auto" is one over the number of columns, "scale" that over the variance of the
        training entries.
    coef0 : float, default=1.0
    columns : see :class:`Kernel`

    Examples
    --------
    >>> from manykernels.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0)([[1.0, 1.0]], [[1.0, 0.0]])
    array([[4.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": gamma_options("auto", "scale"),
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        degree: int = 3,
        gamma: float | str = "auto",
        coef0: float = 1.0,
        *,
        columns: Any = None,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.columns = columns

    @property
    def is_psd(self) -> bool:
        return self.coef0 >= 0

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return self._power(_inner_products(X, Y))

    def _diagonal(self, X: Any) -> np.ndarray:
        return self._power(row_norms(X, squared=True))

    def _power(self, products: np.ndarray) -> np.ndarray:
        products *= self._factor()
        products += self.coef0
        return np.power(products, self.degree, out=products)


class Cosine(Kernel):
    """Cosine of the angle between rows; zero for a row of zeros, also with itself.

    Examples
    --------
    >>> from manykernels.kernels import Cosine
    >>> Cosine()([[2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]])
    array([[1., 0.]])
    """

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return _inner_products(normalize(X), None if Y is None else normalize(Y))

    def _diagonal(self, X: Any) -> np.ndarray:
        return row_norms(normalize(X), squared=True)


class DistanceKernel(GammaKernel):
    """A kernel that decays exponentially with a distance.

    A subclass sets `_metric(X, Y)`, symmetric and exactly zero between a row and itself. A
    :class:`~manykernels.KernelUnion` calls :meth:`distance` once for successive kernels of the
    same metric and columns, and :meth:`from_distance` for each.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": gamma_options("scale", "auto", "median")
    }

    def __init__(self, gamma: float | str = "scale", *, columns: Any = None) -> None:
        self.gamma = gamma
        self.columns = columns

    def distance(self, X: Any, Y: Any = None) -> np.ndarray:
        """Distances between the rows of `X` and `Y`, or of `X` with each other."""
        return self._distance(*self._prepared(X, Y))

    def from_distance(self, distances: np.ndarray, *, gram: bool) -> np.ndarray:
        """The kernel matrix of rows at these distances."""
        self._validate_params()
        return self._completed(self._decayed(distances), gram=gram)

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return self._decayed(self._distance(X, Y))

    def _decayed(self, distances: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            K = distances * -self._factor()
            return np.exp(K, out=K)

    def _distance(self, X: Any, Y: Any) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return type(self)._metric(X, Y)

    def _distance_key(self, X: Any) -> Any:
        return type(self)._metric, tuple(column_positions(X, self._frozen_columns(X)))

    def _diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])


def _squared_euclidean(X: Any, Y: Any) -> np.ndarray:
    if not sparse.issparse(X) and not sparse.issparse(Y):
        # ‖x‖² − 2⟨x, y⟩ + ‖y‖² loses digits far from the origin; a shift changes no distance.
        origin = X.mean(axis=0)
        X = X - origin
        Y = None if Y is None else Y - origin
    return euclidean_distances(X, Y, squared=True)


def _squared_difference_over_sum(X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
    return -additive_chi2_kernel(writable(X), writable(Y))


class RBF(DistanceKernel):
    """Gaussian kernel ``exp(−gamma ‖x − y‖² / width²)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "median"}, default="scale"
        "scale" is ``1 / (n_columns · variance)``, with the variance of all training entries, as in
        :class:`~sklearn.svm.SVC`; "auto" one over the number of columns; "median" one over the
        median squared distance of training rows.
    width : float, default=1.0
        With ``gamma=0.5`` the standard deviation σ of the Gaussian; otherwise a multiple of
        the bandwidth that `gamma` stands for.
    columns : see :class:`Kernel`

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> RBF(gamma="median").fit(X)(X).round(2)
    array([[1.  , 0.37, 0.  ],
           [0.37, 1.  , 0.02],
           [0.  , 0.02, 1.  ]])
    """

    _metric = staticmethod(_squared_euclidean)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DistanceKernel._parameter_constraints,
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self, gamma: float | str = "scale", width: float = 1.0, *, columns: Any = None
    ) -> None:
        self.gamma = gamma
        self.width = width
        self.columns = columns

    def _factor(self) -> float:
        # Divided twice, since the square of an extreme width may overflow.
        return super()._factor() / self.width / self.width


class Laplacian(DistanceKernel):
    """Laplacian kernel ``exp(−gamma ‖x − y‖₁)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "median"}, default="scale"
        As for :class:`RBF`, "median" with the L1 distance.
    columns : see :class:`Kernel`

    Examples
    --------
    >>> from manykernels.kernels import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(3)
    array([[0.135]])
    """

    _metric = staticmethod(manhattan_distances)


class _HistogramKernel(Kernel):
    """A kernel of histograms: rows of a dense table without negative entries."""

    _accepts_sparse = False

    def _validated(self, X: Any) -> Any:
        X = super()._validated(X)
        if X.min() < 0:
            row, column = np.argwhere(X < 0)[0]
            raise ValueError(
                f"entries must not be negative, got {X[row, column]} at row {row}, "
                f"selected column {column}."
            )
        return X


class ChiSquare(_HistogramKernel, DistanceKernel):
    """Exponential χ² kernel ``exp(−gamma Σ (x − y)² / (x + y))`` of histograms.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        "median" is one over the median χ² distance of training rows.
    columns : see :class:`Kernel`

    Examples
    --------
    >>> from manykernels.kernels import ChiSquare
    >>> ChiSquare()([[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]).round(3)
    array([[0.135, 1.   ]])
    """

    _metric = staticmethod(_squared_difference_over_sum)
    _parameter_constraints: ClassVar[dict[str, Any]] = {"gamma": gamma_options("median")}

    def __init__(self, gamma: float | str = 1.0, *, columns: Any = None) -> None:
        super().__init__(gamma, columns=columns)


class Intersection(_HistogramKernel):
    """Histogram intersection ``Σ min(x, y)``.

    Examples
    --------
    >>> from manykernels.kernels import Intersection
    >>> Intersection()([[1.0, 2.0]], [[3.0, 0.5]])
    array([[1.5]])
    """

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        Y = X if Y is None else Y
        K = np.empty((len(X), len(Y)))
        for rows in gen_batches(len(X), max(1, _BLOCK_ENTRIES // Y.size)):
            K[rows] = np.minimum(X[rows, None, :], Y).sum(axis=2)
        return K

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        return X.sum(axis=1)
