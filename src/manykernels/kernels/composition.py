"""Sums and products of kernels, kernels of views, and kernels after transformers."""

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ..utils.sklearn import Interval, num_samples, safe_indexing, sample_weights
from ..utils.storable import storable
from . import tables
from .base import Kernel
from .completion import PartialKernel, taken
from .tables import Columns, SharedTable, Table, naming
from .views import Views, are_views, as_views


class _AnyTableKernel(Kernel):
    """Kernel that does not read the entries of `X` itself, so that any table is accepted."""

    def _validated(self, X: object) -> Any:
        return X

    def _check_widths(self, X: object, Y: object) -> None:
        pass


@storable
@dataclass(eq=False, repr=False)
class Constant(_AnyTableKernel):
    """Constant kernel, the same similarity for every pair of rows.

    Parameters
    ----------
    value : float, default=1.0
    columns : ignored

    Examples
    --------
    >>> from manykernels.kernels.composition import Constant
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "value": [Interval(Real, None, None, closed="neither")]
    }

    value: float = 1.0

    @property
    def is_psd(self) -> bool:
        return self.value >= 0

    def _fit(self, X: object, y: Any, sample_weight: ArrayLike | None) -> None:
        pass

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield nothing: the kernel reads no columns."""
        return iter(())

    def _evaluate(self, X: object, Y: object) -> np.ndarray:
        return np.full((num_samples(X), num_samples(X if Y is None else Y)), float(self.value))

    def _diagonal(self, X: object) -> np.ndarray:
        return np.full(num_samples(X), float(self.value))


@dataclass(eq=False, repr=False)
class _Pair(_AnyTableKernel):
    """Two kernels of the same `columns`, combined elementwise; each validates X itself."""

    _operation: ClassVar[np.ufunc]
    _parameter_constraints: ClassVar[dict[str, Any]] = {"left": [Kernel], "right": [Kernel]}

    left: Kernel
    right: Kernel

    @classmethod
    def combining(cls, left: Any, right: Any) -> Any:
        """Combine two kernels or numbers; return NotImplemented for other operands."""
        operands = [Constant(float(k)) if isinstance(k, Real) else k for k in (left, right)]
        if not all(isinstance(k, Kernel) for k in operands):
            return NotImplemented
        return cls(*operands)

    @property
    def is_psd(self) -> bool:
        return self.left.is_psd and self.right.is_psd

    def _parts(self) -> tuple[Kernel, Kernel]:
        fitted = hasattr(self, "left_")
        return (self.left_, self.right_) if fitted else (self.left, self.right)

    def _validated(self, X: object) -> SharedTable:
        return SharedTable.of(X)

    def _fit(self, X: object, y: Any, sample_weight: ArrayLike | None) -> None:
        self.left_ = clone(self.left).fit(X, y, sample_weight)
        self.right_ = clone(self.right).fit(X, y, sample_weight)

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield the columns of both kernels."""
        columns = self._frozen_columns(X)
        chosen = X if columns is None else tables.select_columns(X, columns)
        places = None if columns is None else tables.column_positions(X, columns)
        for kernel in self._parts():
            for view, positions, as_categories in kernel.compared_columns(chosen):
                if places is not None:
                    positions = [places[j] for j in positions]
                yield view, positions, as_categories

    def _evaluate(self, X: object, Y: object) -> np.ndarray:
        left, right = self._parts()
        K = left(X, Y)
        return self._operation(K, right(X, Y), out=K)

    def _diagonal(self, X: object) -> np.ndarray:
        left, right = self._parts()
        return self._operation(left.diag(X), right.diag(X))


@storable
class Sum(_Pair):
    """Sum of the kernels `left` and `right`, written ``left + right``.

    Examples
    --------
    >>> from manykernels.kernels import RBF, Linear
    >>> kernel = RBF(gamma=1.0) + 2 * Linear()
    >>> kernel([[1.0], [1.0]])
    array([[3., 3.],
           [3., 3.]])
    >>> kernel.set_params(left__gamma=0.5).left
    RBF(gamma=0.5)
    """

    _operation = np.add


@storable
class Product(_Pair):
    """Elementwise product of the kernels `left` and `right`, written ``left * right``.

    Examples
    --------
    >>> from manykernels.kernels import Linear
    >>> (Linear() * Linear())([[2.0]], [[3.0]])
    array([[36.]])
    """

    _operation = np.multiply


# -- Kernels of one of several views --------------------------------------------------------------


@storable
class OfView(PartialKernel):
    """Kernel of one of several views, written ``kernel.of("view")``.

    A sample that lacks the view has NaN in its whole row and column. Estimators complete these
    entries, see their parameter `missing`.

    Parameters
    ----------
    kernel : Kernel
        A kernel of the table of the view; its columns are columns of that table.
    view : str
        Name of the view.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, fitted on the rows that have the view.

    Examples
    --------
    >>> from manykernels import Views
    >>> from manykernels.kernels import Linear
    >>> views = Views({"a": [[1.0], [2.0]], "b": [[3.0], [5.0]]})
    >>> Linear().of("b").fit(views)(views)
    array([[ 9., 15.],
           [15., 25.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel": [Kernel], "view": [str]}

    def __init__(self, kernel: Kernel, view: str) -> None:
        self.kernel = kernel
        self.view = view

    #: Columns are selected by the inner kernel.
    columns = None

    @property
    def _title(self) -> str:
        return f"view {self.view!r}: {self.kernel._title}"

    def on(self, columns: Columns) -> Self:
        """Return an unfitted copy of this kernel that compares only `columns` of its view."""
        return type(self)(self.kernel.on(columns), self.view)

    def after(self, transformer: object) -> Self:  # type: ignore[override]
        """Return an unfitted copy of this kernel that compares the transformed view."""
        return type(self)(self.kernel.after(transformer), self.view)

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the kernel on the rows that have the view."""
        self._validate_params()
        X = SharedTable.of(X)
        weights = sample_weights(sample_weight, self._views(X))
        rows, table = self._rows(X)
        if not weights[rows].any():
            raise ValueError(f"view {self.view!r}: no training sample has it: leave the view out.")
        with self._explaining():
            self.kernel_ = clone(self.kernel).fit(table, taken(y, rows), weights[rows])
        return self

    def _rows(self, X: SharedTable) -> tuple[np.ndarray, SharedTable]:
        views = self._views(X)
        table = X.once(("view", self.view), lambda: SharedTable(views[self.view]))
        return views.has(self.view), table

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield the columns of the view that the kernel reads."""
        _, table = self._rows(SharedTable.of(X))
        for _, positions, as_categories in self.kernel_.compared_columns(table):
            yield self.view, positions, as_categories

    def _explaining(self) -> AbstractContextManager[None]:
        return naming(f"view {self.view!r}")

    def _views(self, shared: SharedTable) -> Views:
        X = shared.X
        if not are_views(X):
            raise TypeError(
                f"{self._title} compares one of several views: X must be a dict of tables or "
                f"Views, got {type(X).__name__}."
            )
        views: Views = shared.once("views", lambda: as_views(X))
        if self.view not in views:
            raise ValueError(f"X has no view {self.view!r}; it has {', '.join(map(repr, views))}.")
        return views


def names_its_views(kernel: object) -> bool:
    """Return True if a kernel determines its views itself, as ``kernel.of(...)`` does."""
    if isinstance(kernel, OfView) or getattr(kernel, "of_all_views", False):
        return True
    terms = [getattr(kernel, side, None) for side in ("left", "right")]
    return any(term is not None and names_its_views(term) for term in terms)


def names_its_columns(kernel: object) -> bool:
    """Return True if a kernel, or one that it is made of, chooses columns by their names."""
    columns = getattr(kernel, "columns", None)
    listed = [columns] if isinstance(columns, str) else columns
    if isinstance(listed, list) and listed and isinstance(listed[0], str):
        return True
    inner = [getattr(kernel, place, None) for place in ("kernel", "left", "right")]
    return any(term is not None and names_its_columns(term) for term in inner)


def views_of(kernel: object) -> set[str]:
    """Return the views of a kernel, including those of the terms of a sum or product."""
    if isinstance(kernel, OfView):
        return {kernel.view}
    terms = [getattr(kernel, side, None) for side in ("left", "right")]
    return {view for term in terms if term is not None for view in views_of(term)}


# -- Kernels of transformed columns ---------------------------------------------------------------


@storable
@dataclass(eq=False, repr=False)
class After(Kernel):
    """Kernel of the output of a transformer, written ``kernel.after(transformer)``.

    ``fit`` fits a clone of the transformer, then a clone of the kernel on its output. The columns
    are passed to the transformer unchanged, including text and missing values; its output must be
    valid input of the kernel. Kernels of a union with equal transformers of the same columns share
    the fitted transformer, unless its ``random_state`` is None. In ``kernel.after(a).after(b)``,
    `b` is applied first, as in a composition of functions.

    Parameters
    ----------
    kernel : Kernel
        Its columns, and those of the terms of a sum or product, are columns of the output.
    transformer : scikit-learn transformer or Pipeline of transformers
        Fitted without labels. A transformer of texts, such as TfidfVectorizer, receives the texts
        of a single column, or of a view of texts. Sample weights are passed if its ``fit`` has a
        parameter `sample_weight`, unlike those of Pipeline and ColumnTransformer; rows of weight
        zero are left out.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are transformed.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, fitted.
    transformer_ : transformer
        The transformer, fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from manykernels.kernels import RBF
    >>> X = pd.DataFrame({"size": [10.0, 30.0], "colour": ["red", "blue"], "id": [1, 2]})
    >>> encoder = make_column_transformer(
    ...     (StandardScaler(), ["size"]), (OneHotEncoder(), ["colour"])
    ... )
    >>> kernel = RBF(gamma=0.1).on(["size", "colour"]).after(encoder)
    >>> kernel.fit(X)(X).round(2)
    array([[1.  , 0.55],
           [0.55, 1.  ]])
    >>> RBF().after(StandardScaler()).set_params(transformer__with_std=False)
    After(kernel=RBF(), transformer=StandardScaler(with_std=False))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel": [Kernel]}

    kernel: Kernel
    transformer: object

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @property
    def _title(self) -> str:
        return f"{self.kernel._title} after {type(self.transformer).__name__}"

    @property
    def _output_title(self) -> str:
        return f"{self._title}, output of the transformer"

    def _validated(self, X: object) -> SharedTable:
        tables.refuse_masked(X, "X")
        return SharedTable(
            self._texts(X) if _takes_texts(self.transformer) else tables.as_table(X)
        )

    def _texts(self, X: object) -> np.ndarray:
        """Return the texts of one column or of a list; raise an error for other entries."""
        rows = tables.entries_of_one_column(X, "the transformer takes one text per row")
        for place, text in enumerate(rows):
            if not isinstance(text, str | bytes):
                raise ValueError(f"the transformer needs texts, but row {place} is {text!r}.")
        return rows

    def _check_widths(self, X: object, Y: object) -> None:
        if not _takes_texts(self.transformer):
            super()._check_widths(X, Y)

    def _fit(self, X: SharedTable, y: Any, sample_weight: ArrayLike | None) -> None:
        self._check_transformer()
        weights = sample_weights(sample_weight, X.X)
        key = "learnt", _fingerprint(self.transformer, drawn=False), weights.tobytes()
        transformer, output = X.once(key, lambda: self._learnt(X, weights))
        with naming(self._output_title):
            counted = weights > 0
            kernel = clone(self.kernel).fit(output, taken(y, counted), weights[counted])
        self.n_features_in_ = X.shape[1] if len(X.shape) == 2 else 1
        self.transformer_, self.kernel_ = transformer, kernel
        self._fingerprint = _fingerprint(transformer)
        if weights.all():
            X.once(self._fingerprint, lambda: output)

    def _learnt(self, X: SharedTable, weights: np.ndarray) -> tuple[Any, SharedTable]:
        """Return a fitted transformer, and its output for the rows of positive weight."""
        rows = np.flatnonzero(weights)
        table = X.X if len(rows) == len(weights) else safe_indexing(X.X, rows)
        weights = weights[rows]
        weighted = has_fit_parameter(self.transformer, "sample_weight") and (weights != 1).any()
        transformer = clone(self.transformer)
        with naming(self._title), _explaining(table):
            # A copy, since a transformer with copy=False overwrites its input.
            transformer.fit(
                tables.copied(table), **({"sample_weight": weights} if weighted else {})
            )
        return transformer, SharedTable(self._transformed(transformer, table))

    def _evaluate(self, X: SharedTable, Y: SharedTable | None) -> np.ndarray:
        X, Y = self._outputs(X, Y)
        with naming(self._output_title):
            return self.kernel_(X, Y)

    def _diagonal(self, X: SharedTable) -> np.ndarray:
        X, _ = self._outputs(X)
        with naming(self._output_title):
            return self.kernel_.diag(X)

    def _compared(self, X: object, Y: object) -> Any:
        self._validate_params()
        X, Y = self._outputs(*self._prepared(X, Y))
        with naming(self._output_title):
            return self.kernel_._compared(X, Y)

    # -- transforming ----------------------------------------------------------------------

    def _check_transformer(self) -> None:
        needed = ("fit", "transform", "get_params")
        missing = [name for name in needed if not hasattr(self.transformer, name)]
        if isinstance(self.transformer, type) or missing:
            reason = f"has no {missing[0]}" if missing else "is a class, not an instance"
            raise TypeError(
                f"{type(self.kernel).__name__}.after: {self.transformer!r} {reason}; pass a "
                "scikit-learn transformer, such as StandardScaler()."
            )

    def _outputs(self, X: SharedTable, Y: SharedTable | None = None) -> tuple[Any, Any]:
        if not hasattr(self, "transformer_"):
            raise NotFittedError(f"{self._title}: the transformer is not fitted: call fit first.")
        return self._output(X), None if Y is None else self._output(Y)

    def _output(self, X: SharedTable) -> SharedTable:
        """Return the transformed table, computed once for all kernels with equal transformers."""
        transform = lambda: SharedTable(self._transformed(self.transformer_, X.X))  # noqa: E731
        output: SharedTable = X.once(self._fingerprint, transform)
        return output

    def _transformed(self, transformer: Any, X: Table) -> Any:
        with naming(self._title):
            with _explaining(X):
                output = transformer.transform(tables.copied(X))
            if num_samples(output) != num_samples(X):
                raise ValueError(
                    f"the transformer returned {num_samples(output)} rows for {num_samples(X)}; "
                    "it must return one row for each row."
                )
        return output


@contextmanager
def _explaining(table: object) -> Iterator[None]:
    """Replace errors of a transformer by errors that name the column, where possible."""
    try:
        yield
    except Exception as error:
        if not tables.is_frame(table):
            raise
        tables.refuse_repeated_columns(table)
        unlike = isinstance(error, np.exceptions.DTypePromotionError)
        if unlike or "could not convert string to float" in str(error):
            tables.check_numbers(table, "X", "Choose other columns, or encode it first.")
        raise


def _takes_texts(transformer: object) -> bool:
    """Return True if a transformer takes one text per row, as TfidfVectorizer does."""
    first = transformer.steps[0][1] if isinstance(transformer, Pipeline) else transformer
    if isinstance(first, type) or not hasattr(first, "__sklearn_tags__"):
        return False
    tags = get_tags(first).input_tags
    return bool(tags.string and not tags.two_d_array)


def _fingerprint(transformer: Any, *, drawn: bool = True) -> Any:
    """Return a value that is equal only for transformers in the same state.

    It is unique if the transformer cannot be pickled, or if its random numbers are not `drawn`
    yet and differ from fit to fit.
    """
    parameters = {} if drawn else transformer.get_params()
    if any(name.endswith("random_state") and value is None for name, value in parameters.items()):
        return object()
    try:
        return hashlib.sha256(pickle.dumps(transformer)).digest()
    except Exception:  # foreign objects may raise anything
        return object()
