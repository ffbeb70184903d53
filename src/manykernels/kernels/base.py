"""Kernel: the base class of all kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import check_array

from ..utils.numerics import in_threads
from ..utils.sklearn import num_samples, sample_weights
from . import tables
from .checks import check_finite
from .operators import TILE_ROWS, mirror, mirror_tile
from .tables import Columns, Matrix, SharedTable, naming

if TYPE_CHECKING:
    from .composition import After, OfView, Product, Sum


# -- Inner products and distances of pairs of rows ------------------------------------------------
#
# A comparison is prepared once for two tables (squared norms, normalised rows) and then computed
# tile by tile, so that kernels that are functions of the same distances share a tile, and none of
# them needs the whole matrix of distances.


def writable(X: Matrix | None) -> Any:
    """Return `X`, or a copy if it is dense and read-only, as joblib passes arrays to workers.

    The compiled χ² loop of scikit-learn rejects read-only buffers although it only reads them.
    """
    return X if X is None or sparse.issparse(X) else np.require(X, requirements="W")


class Comparison(ABC):
    """Products or distances between the rows of `X` and of `Y`, or of `X` again if None."""

    def __init__(self, X: Matrix, Y: Matrix | None) -> None:
        self.gram = Y is None
        self.X = X
        self.Y = X if Y is None else Y

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.Y.shape[0]

    @abstractmethod
    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        """Return the values of some rows of `X` and some of `Y`, in a new array."""

    @abstractmethod
    def _bounds(self) -> tuple[float, float]:
        """Compute `bounds`."""

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of all values; not finite if a value might not be."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._bounds()

    def whole(self) -> np.ndarray:
        """Return all values."""
        return self.tile(*(slice(0, size) for size in self.shape))


class InnerProducts(Comparison):
    """Inner products ``⟨x, y⟩``."""

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        return safe_sparse_dot(self.X[rows], self.Y[columns].T, dense_output=True)

    def _bounds(self) -> tuple[float, float]:
        most = _largest(row_norms(self.X)) * _largest(row_norms(self.Y))
        return -most, most


class Cosines(InnerProducts):
    """Inner products of rows of length one; rows of zeros stay zero."""

    def __init__(self, X: Matrix, Y: Matrix | None) -> None:
        super().__init__(normalize(X), None if Y is None else normalize(Y))


class SquaredDistances(Comparison):
    """Squared distances ``‖x − y‖²``; exactly zero on the diagonal if `Y` is None."""

    def __init__(self, X: Matrix, Y: Matrix | None) -> None:
        if not sparse.issparse(X) and not sparse.issparse(Y):
            # ‖x‖² − 2⟨x, y⟩ + ‖y‖² loses digits far from the origin; a shift changes no distance.
            origin = X.mean(axis=0)
            X = X - origin
            Y = None if Y is None else Y - origin
        super().__init__(X, Y)
        self._row_squares = row_norms(self.X, squared=True)
        self._column_squares = row_norms(self.Y, squared=True)

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        tile = safe_sparse_dot(self.X[rows], self.Y[columns].T, dense_output=True)
        tile *= -2.0
        tile += self._row_squares[rows, None]
        tile += self._column_squares[columns]
        np.maximum(tile, 0.0, out=tile)
        if self.gram:
            same = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
            tile[same - rows.start, same - columns.start] = 0.0
        return tile

    def _bounds(self) -> tuple[float, float]:
        # (‖x‖ + ‖y‖)² ≤ 2 ‖x‖² + 2 ‖y‖²
        return 0.0, 2.0 * (_largest(self._row_squares) + _largest(self._column_squares))


class ManhattanDistances(Comparison):
    """Manhattan distances ``Σ_j |x_j − y_j|``."""

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        X, Y = self.X[rows], self.Y[columns]
        if sparse.issparse(X) or sparse.issparse(Y):
            return manhattan_distances(X, Y)
        if self.gram and rows == columns:
            return squareform(pdist(X, "cityblock"))  # each pair once
        return cdist(X, Y, "cityblock")

    def _bounds(self) -> tuple[float, float]:
        return 0.0, _largest_sum(abs(self.X)) + _largest_sum(abs(self.Y))


class ChiSquareDistances(Comparison):
    """Distances ``Σ_j (x_j − y_j)² / (x_j + y_j)`` of rows without negative entries."""

    def __init__(self, X: Matrix, Y: Matrix | None) -> None:
        super().__init__(writable(X), writable(Y))

    def tile(self, rows: slice, columns: slice) -> np.ndarray:
        return -additive_chi2_kernel(self.X[rows], self.Y[columns])

    def _bounds(self) -> tuple[float, float]:
        return 0.0, _largest_sum(self.X) + _largest_sum(self.Y)


def _largest(sizes: np.ndarray) -> float:
    return float(sizes.max(initial=0.0))


def _largest_sum(X: Matrix) -> float:
    return _largest(np.asarray(X.sum(axis=1)).ravel())


@dataclass(eq=False, repr=False, kw_only=True)
class Kernel(BaseEstimator, ABC):
    """Positive semi-definite similarity between the rows of tables.

    ``kernel(X, Y)`` is the kernel matrix between the rows of `X` and `Y`, ``kernel(X)`` the Gram
    matrix of the rows of `X`. ``fit`` learns data-dependent parameters, such as a bandwidth, from
    training rows. Kernels can be added and multiplied, with each other and with numbers.

    A subclass defines ``_evaluate(X, Y)`` on validated float64 arrays, where `Y` is None for a
    Gram matrix, and ``_diagonal(X)`` if there is a faster way to compute the diagonal. Its
    constructor ends with the keyword ``columns=None``.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns of `X` that the kernel compares; None means all. See :meth:`on`.

    Attributes
    ----------
    n_features_in_ : int
        Number of compared columns, set by ``fit``.
    """

    columns: Columns = None

    _accepts_sparse: ClassVar[bool] = True
    #: Whether entries are compared as categories, so that their types matter.
    _of_categories: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters; copies ask for them so often that they are kept."""
        return tuple(super()._get_param_names())

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(cls._parameter_names())

    @property
    def is_psd(self) -> bool:
        """Whether the parameters guarantee that every Gram matrix is positive semi-definite."""
        return True

    @property
    def _title(self) -> str:
        """Name of the kernel in error messages."""
        return type(self).__name__

    @property
    def learns_from_targets(self) -> bool:
        """Whether ``fit`` needs y, so that every split of a cross-validation fits it anew."""
        inner = (getattr(self, place, None) for place in ("kernel", "left", "right"))
        return any(isinstance(term, Kernel) and term.learns_from_targets for term in inner)

    # -- public methods --------------------------------------------------------------------

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn data-dependent parameters, such as a bandwidth, from training rows.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (rows, features)
        y : array-like, optional
            Targets, for kernels that learn from them; others ignore it.
        sample_weight : array-like of shape (rows,), optional
            A row of weight two counts as two equal rows, one of weight zero is ignored.

        Returns
        -------
        self : Kernel
        """
        self._validate_params()
        with naming(self._title):
            self.columns_ = tables.resolve_columns(self.columns, X)
            X = self._chosen(X, self.columns_)
        self._fit(X, y, sample_weight)
        return self

    def __call__(self, X: object, Y: object = None) -> np.ndarray:
        """Evaluate the kernel between the rows of `X` and those of `Y`, or of `X` again.

        Returns
        -------
        K : ndarray of shape (rows of X, rows of Y)
        """
        self._validate_params()
        X, Y = self._prepared(X, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._evaluate(X, Y)
        check_finite(K, self._title)
        if Y is None:
            # Make K exactly symmetric: rounding errors may differ between the triangles.
            mirror(K)
        return K

    def diag(self, X: object) -> np.ndarray:
        """Return ``k(x, x)`` of the rows of `X`, without computing the matrix."""
        self._validate_params()
        X, _ = self._prepared(X)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = np.asarray(self._diagonal(X), dtype=np.float64)
        check_finite(diagonal[:, None], self._title)
        return diagonal

    def on(self, columns: Columns) -> Self:
        """Return an unfitted copy of this kernel that compares only `columns`.

        Parameters
        ----------
        columns : str, int, list, slice, boolean mask or callable
            Names need a dataframe. A callable such as
            :class:`~sklearn.compose.make_column_selector` is called with `X` and returns columns.
            For a sum or product, the columns of its terms are relative to this selection.
        """
        return clone(self).set_params(columns=columns)

    def after(self, transformer: object) -> After:
        """Return an unfitted copy of this kernel that compares the output of a transformer.

        The transformer is fitted on the rows that the kernel is fitted on: in an estimator on its
        training rows, in a cross-validation of the estimator on the training rows of each split.
        (The internal cross-validation of estimators such as :class:`~manykernels.MKFDACV` splits
        kernels that are computed once.)

        Parameters
        ----------
        transformer : scikit-learn transformer or Pipeline of transformers

        Returns
        -------
        kernel : After
            It transforms the columns of this kernel, which may also be chosen afterwards:
            ``RBF().on("a").after(scaler)`` equals ``RBF().after(scaler).on("a")``.
        """
        from .composition import After

        whole = clone(self).set_params(columns=None)
        return After(whole, clone(transformer, safe=False), columns=self.columns)

    def of(self, view: str) -> OfView:
        """Return an unfitted copy of this kernel for one of several views.

        Parameters
        ----------
        view : str
            Name of the table in a dict of tables or in Views.

        Returns
        -------
        kernel : OfView
        """
        from .composition import OfView

        return OfView(clone(self), view)

    def __sklearn_clone__(self) -> Self:
        # scikit-learn clones a list item by item, which is slow for thousands of columns.
        columns = vars(self).get("columns")
        if not isinstance(columns, list):
            return super().__sklearn_clone__()
        other = copy(self)
        other.columns = None
        other = super(Kernel, other).__sklearn_clone__()
        other.columns = list(columns)
        return other

    # -- methods for subclasses ------------------------------------------------------------

    @abstractmethod
    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        """Compute the kernel matrix of validated rows; `Y` is None for a Gram matrix."""

    def _diagonal(self, X: Any) -> np.ndarray:
        blocks = gen_batches(num_samples(X), TILE_ROWS)
        return np.concatenate([np.diagonal(self._evaluate(X[rows], None)) for rows in blocks])

    def _learn_scale(self, X: Any, weights: np.ndarray) -> None:
        """Set data-dependent attributes from the rows `X`, all of positive weight."""

    def _validated(self, X: object) -> Any:
        """Convert selected columns of `X` to a finite two-dimensional float64 array.

        The result is shared by all kernels of a class.
        """
        tables.check_numbers(
            X,
            "X",
            f"Choose the columns to compare, as in {type(self).__name__}().on(['a', 'b']), or "
            "encode it first, such as by OneHotEncoder.",
        )
        try:
            # A fixed memory order, so that rounding errors do not depend on the container.
            return check_array(
                tables.array_if_plain(X),
                accept_sparse="csr" if self._accepts_sparse else False,
                dtype=np.float64,
                order="C",
                estimator=type(self).__name__,
            )
        except ValueError as error:
            if "NaN" in str(error) or "infinity" in str(error):
                tables.refuse_not_finite(X, "X")  # its message also names the place
            raise

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        weights = sample_weights(sample_weight, X)
        self.n_features_in_ = X.shape[1]
        counted = weights > 0
        self._learn_scale(X if counted.all() else X[counted], weights[counted])

    def _compared(self, X: object, Y: object) -> tuple[Comparison, Any] | None:
        """Return the comparison that the kernel is a function of, and the kernel; or None."""
        return None

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield the columns of the table, or of views, that the fitted kernel reads.

        Each item is the name of the view ("" for a table), positions, and whether the columns are
        compared as categories. A list of single objects has no columns.
        """
        if len(SharedTable.of(X).shape) == 2:
            yield "", tables.column_positions(X, self._frozen_columns(X)), self._of_categories

    # -- shared steps ----------------------------------------------------------------------

    def _prepared(self, X: object, Y: object = None) -> tuple[Any, Any]:
        with naming(self._title):
            columns = self._frozen_columns(X)
            X = self._chosen(X, columns)
            if Y is not None:
                Y = self._chosen(Y, columns)
            self._check_widths(X, Y)
        return X, Y

    def _chosen(self, X: object, columns: Columns) -> Any:
        """Return the validated columns of a table, computed once for all kernels."""
        shared = SharedTable.of(X)
        # `columns` is stored as well, so that its id cannot be reused by another object.
        _, places = shared.once(id(columns), lambda: (columns, _places(shared, columns)))
        columns = None if places is None else columns
        key = type(self)._validated, self._accepts_sparse, places
        return shared.once(key, lambda: self._validated(tables.select_columns(shared, columns)))

    def _frozen_columns(self, X: object) -> Any:
        return (
            self.columns_ if hasattr(self, "columns_") else tables.resolve_columns(self.columns, X)
        )

    def _check_widths(self, X: Any, Y: Any) -> None:
        width = X.shape[1]
        if hasattr(self, "n_features_in_") and width != self.n_features_in_:
            raise ValueError(
                f"X has {width} columns to compare, but the kernel was fitted on "
                f"{self.n_features_in_} columns."
            )
        if Y is not None and width != Y.shape[1]:
            raise ValueError(f"X has {width} columns to compare, but Y has {Y.shape[1]}.")

    # -- algebra ---------------------------------------------------------------------------

    # Makes ``numpy_scalar * kernel`` call the operators below.
    __array_ufunc__ = None

    def __add__(self, other: object) -> Sum:
        from .composition import Sum

        return Sum.combining(self, other)

    def __radd__(self, other: object) -> Sum:
        from .composition import Sum

        return Sum.combining(other, self)

    def __mul__(self, other: object) -> Product:
        from .composition import Product

        return Product.combining(self, other)

    def __rmul__(self, other: object) -> Product:
        from .composition import Product

        return Product.combining(other, self)


def _places(X: SharedTable, columns: Columns) -> tuple[int, ...] | None:
    """Return the positions of columns; None if they are all columns, in order."""
    if columns is None:
        return None
    places = tuple(tables.column_positions(X, columns))
    return None if places == tuple(range(tables.as_table(X.X).shape[1])) else places


# -- Evaluation of several kernels, tile by tile --------------------------------------------------
#
# Kernels that are functions of the same comparison of the same rows share it: a tile of
# distances is computed once, and every such kernel is evaluated from it while it is in the cache
# of the processor. Of a Gram matrix only tiles on and above the diagonal are computed, and
# mirrored. Other kernels are evaluated at once.


# Fewer tiles than this take less time than starting threads.
_FEWEST_FOR_THREADS = 16


def evaluate_into(
    matrices: Iterable[np.ndarray], kernels: Iterable[tuple[str, Any]], X: object, Y: object
) -> None:
    """Write every kernel between the rows of `X` and `Y` (None: `X` again) into its matrix."""
    X, Y = SharedTable.of(X), None if Y is None else SharedTable.of(Y)
    # By the id of a comparison: the comparison, and the kernels that are functions of it.
    together: dict[int, tuple[Comparison, list[tuple[np.ndarray, str, Any]]]] = {}
    for matrix, (name, kernel) in zip(matrices, kernels, strict=True):
        with naming(f"kernel {name!r}"):
            compared = kernel._compared(X, Y)
            if compared is None:
                with np.errstate(over="ignore"):
                    matrix[...] = kernel(X, Y)
                if matrix.dtype != np.float64:
                    check_finite(matrix, kernel._title)  # float32 may have overflowed
            else:
                comparison, function = compared
                _, members = together.setdefault(id(comparison), (comparison, []))
                members.append((matrix, name, function))
    for comparison, members in together.values():
        filled, _, functions = zip(*members, strict=True)
        fill(filled, functions, comparison)
        for matrix, name, function in members:
            with naming(f"kernel {name!r}"):
                check_filled(matrix, function, comparison)


def evaluated(comparison: Comparison, kernel: object) -> np.ndarray:
    """Return the matrix of one kernel that is a function of a comparison."""
    K = np.empty(comparison.shape)
    fill([K], [kernel], comparison)
    check_filled(K, kernel, comparison)
    return K


def fill(matrices: Sequence[np.ndarray], kernels: Sequence[Any], comparison: Comparison) -> None:
    """Write functions of one comparison into their matrices; Gram matrices exactly symmetric."""

    def fill_tile(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        # Set here because threads do not inherit it. check_filled finds values not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            values = comparison.tile(rows, columns)
            for matrix, kernel in zip(matrices, kernels, strict=True):
                place = matrix[rows, columns]
                # For single precision only the result is rounded, not intermediate values.
                result = place if place.dtype == values.dtype else np.empty(values.shape)
                kernel._from_compared(values, result)
                if result is not place:
                    place[...] = result
                if comparison.gram:
                    mirror_tile(matrix, rows, columns)

    in_threads(fill_tile, list(_tiles(comparison)), _FEWEST_FOR_THREADS)


def check_filled(matrix: np.ndarray, kernel: Any, comparison: Comparison) -> None:
    """Raise an error for values that are not finite; search only if there may be any.

    The absolute value of a kernel is largest at one of the bounds of the comparison.
    """
    extremes = np.array([*comparison.bounds, 0.0])
    if np.isfinite(extremes).all():
        with np.errstate(over="ignore", invalid="ignore"):
            kernel._from_compared(extremes, extremes)
            extremes = extremes.astype(matrix.dtype)
    if not np.isfinite(extremes).all():
        check_finite(matrix, kernel._title)


def _tiles(comparison: Comparison) -> Iterable[tuple[slice, slice]]:
    # gen_batches validates its arguments, which takes longer than a small tile.
    rows, columns = (
        [slice(start, min(start + TILE_ROWS, size)) for start in range(0, size, TILE_ROWS)]
        for size in comparison.shape
    )
    return combinations_with_replacement(rows, 2) if comparison.gram else product(rows, columns)


class SharedComparisons:
    """Evaluate kernels on two small tables; consecutive kernels of one comparison share it."""

    def __init__(self, X: object, Y: object) -> None:
        self._X, self._Y = SharedTable.of(X), SharedTable.of(Y)
        self._comparison: Comparison | None = None
        self._values = np.empty((0, 0))

    def __call__(self, kernel: Any) -> np.ndarray:
        compared = kernel._compared(self._X, self._Y)
        if compared is None:
            return kernel(self._X, self._Y)
        comparison, formula = compared
        with np.errstate(over="ignore", invalid="ignore"):
            if comparison is not self._comparison:
                self._comparison, self._values = comparison, comparison.whole()
            K = np.empty(comparison.shape)
            formula._from_compared(self._values, K)
        check_finite(K, formula._title)
        return K
