"""Kernel: the base of all kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_array

from .._sklearn import check_sample_weight, num_samples
from ._strips import TILE_ROWS
from .checks import check_finite
from .tables import (
    SharedTable,
    array_if_plain,
    as_table,
    check_numbers,
    column_positions,
    naming,
    refuse_not_finite,
    resolve_columns,
    select_columns,
)

if TYPE_CHECKING:
    from .after import After
    from .algebra import Product, Sum
    from .comparisons import Comparison
    from .of_view import OfView


class Kernel(BaseEstimator, ABC):
    """A positive semi-definite similarity between the rows of tables.

    ``kernel(X, Y)`` is the matrix of similarities between the rows of `X` and `Y`, ``kernel(X)``
    the Gram matrix of the rows of `X`. ``fit`` learns what the kernel takes from training rows,
    such as a bandwidth. Kernels can be added and multiplied, with each other and with numbers.

    A new kernel defines ``_evaluate(X, Y)`` on validated float64 arrays, with `Y` None for a
    Gram matrix, and ``_diagonal(X)`` if there is a faster way to the diagonal. Its constructor
    ends with the keyword ``columns=None``.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns of `X` that the kernel compares; None means all. See :meth:`on`.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns compared, seen in ``fit``.
    """

    _accepts_sparse: bool = True
    #: Whether entries are compared as categories, for which their types matter.
    _of_categories: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, columns: Any = None) -> None:
        self.columns = columns

    @property
    def is_psd(self) -> bool:
        """Whether the parameters guarantee that every Gram matrix is positive semi-definite."""
        return True

    @property
    def _title(self) -> str:
        """What error messages call the kernel."""
        return type(self).__name__

    # -- what a user calls -----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what the kernel takes from training rows, such as a bandwidth.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (rows, features)
        y : ignored
        sample_weight : array-like of shape (rows,), optional
            A row of weight two counts as two equal rows, one of weight zero is ignored.

        Returns
        -------
        self : Kernel
        """
        self._validate_params()
        with naming(self._title):
            self.columns_ = resolve_columns(self.columns, X)
            X = self._chosen(X, self.columns_)
        self._fit(X, sample_weight)
        return self

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Similarities of the rows of `X` with those of `Y`, or with each other.

        Returns
        -------
        K : ndarray of shape (rows of X, rows of Y)
        """
        self._validate_params()
        X, Y = self._prepared(X, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._evaluate(X, Y)
        return self._completed(K, gram=Y is None)

    def diag(self, X: Any) -> np.ndarray:
        """Similarities ``k(x, x)`` of the rows of `X` with themselves, without the matrix."""
        self._validate_params()
        X, _ = self._prepared(X)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = np.asarray(self._diagonal(X), dtype=np.float64)
        check_finite(diagonal[:, None], self._title)
        return diagonal

    def on(self, columns: Any) -> Self:
        """Copy of this kernel, unfitted, that compares only `columns`.

        Parameters
        ----------
        columns : str, int, list, slice, boolean mask or callable
            Names need a dataframe. A callable such as
            :class:`~sklearn.compose.make_column_selector` is given `X` and returns columns.
            The columns of the parts of a sum or product are counted among these.
        """
        return clone(self).set_params(columns=columns)

    def after(self, transformer: Any) -> After:
        """Copy of this kernel, unfitted, that compares what a transformer makes of its columns.

        The transformer is learnt on the rows that the kernel is fitted on: in an estimator on its
        training rows, in a cross-validation of the estimator on those of each split. (Folds that
        an estimator makes itself, as :class:`~manykernels.MKFDACV`, cut kernels computed once.)

        Parameters
        ----------
        transformer : scikit-learn transformer or Pipeline of transformers

        Returns
        -------
        kernel : After
            It has the columns of this kernel, which may as well be chosen afterwards:
            ``RBF().on("a").after(scaler)`` is ``RBF().after(scaler).on("a")``.
        """
        from .after import After

        whole = clone(self).set_params(columns=None)
        return After(whole, clone(transformer, safe=False), columns=self.columns)

    def of(self, view: str) -> OfView:
        """This kernel, unfitted, of one view of several: a table in a dict or in Views.

        Parameters
        ----------
        view : str
            Its name.

        Returns
        -------
        kernel : OfView
        """
        from .of_view import OfView

        return OfView(clone(self), view)

    def __sklearn_clone__(self) -> Self:
        # scikit-learn copies a list name by name, which takes a while for thousands of columns.
        columns = vars(self).get("columns")
        if not isinstance(columns, list):
            return super().__sklearn_clone__()
        other = copy(self)
        other.columns = None
        other = super(Kernel, other).__sklearn_clone__()
        other.columns = list(columns)
        return other

    # -- what a kernel defines -------------------------------------------------------------

    @abstractmethod
    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        """Similarities of validated rows; `Y` is None for a Gram matrix."""

    def _diagonal(self, X: Any) -> np.ndarray:
        blocks = gen_batches(num_samples(X), TILE_ROWS)
        return np.concatenate([np.diagonal(self._evaluate(X[rows], None)) for rows in blocks])

    def _learn_scale(self, X: Any, weights: np.ndarray) -> None:
        """Set the attributes learnt from the rows `X`, all of positive weight."""

    def _validated(self, X: Any) -> Any:
        """Selected columns of `X` as finite float64 numbers in two dimensions.

        The same for all kernels of a class, which share the result.
        """
        check_numbers(
            X,
            "X",
            f"Choose the columns to compare, as in {type(self).__name__}().on(['a', 'b']), or "
            "encode it first, such as by OneHotEncoder.",
        )
        try:
            # One memory order, so that rounding errors do not depend on the container.
            return check_array(
                array_if_plain(X),
                accept_sparse="csr" if self._accepts_sparse else False,
                dtype=np.float64,
                order="C",
                estimator=type(self).__name__,
            )
        except ValueError as error:
            if "NaN" in str(error) or "infinity" in str(error):
                refuse_not_finite(X, "X")  # which also says where it is
            raise

    def _fit(self, X: Any, sample_weight: Any) -> None:
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.n_features_in_ = X.shape[1]
        counted = weights > 0
        self._learn_scale(X if counted.all() else X[counted], weights[counted])

    def _compared(self, X: Any, Y: Any) -> tuple[Comparison, Any] | None:
        """The comparison of rows that the kernel is a function of, if it is, and that kernel."""
        return None

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """The columns of the table, or of views, that the fitted kernel reads.

        Yields the name of the view ("" for a table), positions, and whether they are compared as
        categories. A list of single objects has no columns.
        """
        if len(SharedTable.of(X).shape) == 2:
            yield "", column_positions(X, self._frozen_columns(X)), self._of_categories

    # -- shared steps ----------------------------------------------------------------------

    def _prepared(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
        with naming(self._title):
            columns = self._frozen_columns(X)
            X = self._chosen(X, columns)
            if Y is not None:
                Y = self._chosen(Y, columns)
            self._check_widths(X, Y)
        return X, Y

    def _chosen(self, X: Any, columns: Any) -> Any:
        """The columns of a table, validated, once for all kernels that share it."""
        shared = SharedTable.of(X)
        # With the columns themselves, so that none can have the identity of others before.
        _, places = shared.once(id(columns), lambda: (columns, _places(shared, columns)))
        columns = None if places is None else columns
        key = type(self)._validated, self._accepts_sparse, places
        return shared.once(key, lambda: self._validated(select_columns(shared, columns)))

    def _frozen_columns(self, X: Any) -> Any:
        return self.columns_ if hasattr(self, "columns_") else resolve_columns(self.columns, X)

    def _check_widths(self, X: Any, Y: Any) -> None:
        width = X.shape[1]
        if hasattr(self, "n_features_in_") and width != self.n_features_in_:
            raise ValueError(
                f"X has {width} columns to compare, but the kernel was fitted on "
                f"{self.n_features_in_}."
            )
        if Y is not None and width != Y.shape[1]:
            raise ValueError(f"X has {width} columns to compare, but Y has {Y.shape[1]}.")

    def _completed(self, K: np.ndarray, *, gram: bool) -> np.ndarray:
        check_finite(K, self._title)
        if gram:
            # Make K exactly symmetric: rounding errors may differ between the triangles.
            for rows in gen_batches(len(K), TILE_ROWS):
                K[rows, : rows.start] = K[: rows.start, rows].T
                corner = K[rows, rows]
                corner[:] = np.triu(corner) + np.triu(corner, 1).T
        return K

    # -- algebra ---------------------------------------------------------------------------

    # Makes ``numpy_scalar * kernel`` call the operators below instead of returning an array.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Sum:
        from .algebra import Sum

        return Sum.combining(self, other)

    def __radd__(self, other: Any) -> Sum:
        from .algebra import Sum

        return Sum.combining(other, self)

    def __mul__(self, other: Any) -> Product:
        from .algebra import Product

        return Product.combining(self, other)

    def __rmul__(self, other: Any) -> Product:
        from .algebra import Product

        return Product.combining(other, self)


def _places(X: SharedTable, columns: Any) -> tuple[int, ...] | None:
    """Positions of some columns; None if they are all columns, in order."""
    if columns is None:
        return None
    places = tuple(column_positions(X, columns))
    return None if places == tuple(range(as_table(X.X).shape[1])) else places
