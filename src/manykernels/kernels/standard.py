"""Standard kernels of numeric tables.

All have the parameter `columns` of :class:`~manykernels.kernels.Kernel`. Kernels with a factor
`gamma` have an attribute `gamma_` after ``fit``, its numerical value.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from ..utils.sklearn import Interval
from ..utils.storable import storable
from .base import (
    ChiSquareDistances,
    Comparison,
    Cosines,
    InnerProducts,
    Kernel,
    ManhattanDistances,
    SquaredDistances,
    evaluated,
)
from .tables import Matrix, SharedTable
from .transforms import GammaKernel, gamma_options

# Most entries of the temporary array (rows of X, rows of Y, columns) of Intersection: 32 MiB.
_BLOCK_ENTRIES = 2**22
# Smaller exponents are replaced by this one, exp of which is 1e-304, negligible beside the
# diagonal of ones. Denormal numbers below 1e-308 take forty times as long.
_LOWEST_EXPONENT = -700.0


class ComparingKernel(Kernel):
    """Kernel that is a function of an inner product or a distance, its `_comparison`.

    A :class:`~manykernels.KernelUnion` computes the comparison once for all such kernels of the
    same rows, tile by tile.
    """

    _comparison: ClassVar[type[Comparison]]

    @abstractmethod
    def _from_compared(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write the kernel of the compared `values` into `out`, which may be `values`.

        On an interval, the absolute value of the kernel is largest at one of the ends.
        """

    def __call__(self, X: object, Y: object = None) -> np.ndarray:
        compared = self._compared(X, Y)
        return super().__call__(X, Y) if compared is None else evaluated(*compared)

    def _compared(self, X: object, Y: object) -> tuple[Comparison, Any] | None:
        if type(self)._evaluate is not ComparingKernel._evaluate:
            return None  # a subclass overrides _evaluate
        self._validate_params()
        shared = SharedTable.of(X)
        X, Y = self._prepared(shared, Y)
        # The tables live as long as the cache, so their ids stay unique.
        key = self._comparison, id(X), id(Y)
        with np.errstate(over="ignore", invalid="ignore"):
            return shared.once(key, lambda: self._comparison(X, Y)), self

    def _evaluate(self, X: Matrix, Y: Matrix | None) -> np.ndarray:
        return evaluated(self._comparison(X, Y), self)


@storable
class Linear(ComparingKernel):
    """Linear kernel ``⟨x, y⟩``.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from manykernels.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    _comparison = InnerProducts

    def _from_compared(self, values: np.ndarray, out: np.ndarray) -> None:
        out[...] = values

    def _diagonal(self, X: Matrix) -> np.ndarray:
        return row_norms(X, squared=True)


@storable
@dataclass(eq=False, repr=False)
class Polynomial(ComparingKernel, GammaKernel):
    """Polynomial kernel ``(gamma ⟨x, y⟩ + coef0) ** degree``.

    It is positive semi-definite if `coef0` is not negative.

    Parameters
    ----------
    degree : int, default=3
        Degree of the polynomial.
    gamma : float or {"auto", "scale"}, default="auto"
        "auto" is ``1 / n_columns``, "scale" is ``1 / (n_columns · variance)``, with the variance
        of all training entries.
    coef0 : float, default=1.0
        Constant term.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

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

    degree: int = 3
    gamma: float | str = "auto"
    coef0: float = 1.0

    @property
    def is_psd(self) -> bool:
        return self.coef0 >= 0

    _comparison = InnerProducts

    def _from_compared(self, values: np.ndarray, out: np.ndarray) -> None:
        np.multiply(values, self._factor(), out=out)
        out += self.coef0
        _raise_to(out, self.degree)

    def _diagonal(self, X: Matrix) -> np.ndarray:
        squares = row_norms(X, squared=True)
        self._from_compared(squares, squares)
        return squares


def _raise_to(values: np.ndarray, degree: int) -> None:
    """Compute ``values **= degree`` by repeated squaring, ten times as fast as numpy.power."""
    base = values.copy()
    # The binary digits of the degree after the first.
    for digit in f"{degree:b}"[1:]:
        values *= values
        if digit == "1":
            values *= base


@storable
class Cosine(ComparingKernel):
    """Cosine of the angle between rows; zero for a row of zeros, even with itself.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from manykernels.kernels import Cosine
    >>> Cosine()([[2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]])
    array([[1., 0.]])
    """

    _comparison = Cosines

    def _from_compared(self, values: np.ndarray, out: np.ndarray) -> None:
        out[...] = values

    def _diagonal(self, X: Matrix) -> np.ndarray:
        return row_norms(normalize(X), squared=True)


@dataclass(eq=False, repr=False)
class DistanceKernel(ComparingKernel, GammaKernel):
    """Base class of kernels that decay exponentially with a distance, their `_comparison`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": gamma_options("scale", "auto", "median")
    }

    gamma: float | str = "scale"

    def _from_compared(self, values: np.ndarray, out: np.ndarray) -> None:
        np.multiply(values, -self._factor(), out=out)
        np.maximum(out, _LOWEST_EXPONENT, out=out)
        np.exp(out, out=out)

    def _diagonal(self, X: Matrix) -> np.ndarray:
        return np.ones(X.shape[0])


@storable
@dataclass(eq=False, repr=False)
class RBF(DistanceKernel):
    """Gaussian kernel ``exp(−gamma ‖x − y‖² / width²)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "median"}, default="scale"
        "scale" is ``1 / (n_columns · variance)``, with the variance of all training entries, as in
        :class:`~sklearn.svm.SVC`; "auto" is ``1 / n_columns``; "median" is the inverse of the
        median squared distance of training rows.
    width : float, default=1.0
        With ``gamma=0.5`` the standard deviation σ of the Gaussian; otherwise a factor of the
        bandwidth determined by `gamma`.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

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

    _comparison = SquaredDistances
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DistanceKernel._parameter_constraints,
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    width: float = 1.0

    def _factor(self) -> float:
        # Two divisions, since the square of an extreme width may overflow.
        return super()._factor() / self.width / self.width


@storable
class Laplacian(DistanceKernel):
    """Laplacian kernel ``exp(−gamma ‖x − y‖₁)``.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "median"}, default="scale"
        As for :class:`RBF`, but "median" uses the L1 distance.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from manykernels.kernels import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(3)
    array([[0.135]])
    """

    _comparison = ManhattanDistances


class _HistogramKernel(Kernel):
    """Base class of kernels of histograms: dense rows without negative entries."""

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


@storable
@dataclass(eq=False, repr=False)
class ChiSquare(_HistogramKernel, DistanceKernel):
    """Exponential χ² kernel ``exp(−gamma Σ (x − y)² / (x + y))`` of histograms.

    Parameters
    ----------
    gamma : float or "median", default=1.0
        "median" is the inverse of the median χ² distance of training rows.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Examples
    --------
    >>> from manykernels.kernels import ChiSquare
    >>> ChiSquare()([[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]).round(3)
    array([[0.135, 1.   ]])
    """

    _comparison = ChiSquareDistances
    _parameter_constraints: ClassVar[dict[str, Any]] = {"gamma": gamma_options("median")}
    gamma: float | str = 1.0


@storable
class Intersection(_HistogramKernel):
    """Histogram intersection kernel ``Σ min(x, y)``.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

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
