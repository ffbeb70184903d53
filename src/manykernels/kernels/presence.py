"""Which samples have what: kernels of tables with missing rows, and the pattern as a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .._sklearn import check_sample_weight, safe_indexing
from ._completing import refuse_samples_without_kernels
from ._partial import PartialKernel
from .adapters import as_kernel
from .base import Kernel
from .matching import shown
from .samples import row_names
from .tables import SharedTable, as_table, column_positions, select_columns
from .view_tables import absent_rows
from .views import are_views, as_views


@contextmanager
def _advising() -> Iterator[None]:
    """Add to an error about NaN what the difference is between values and samples."""
    try:
        yield
    except ValueError as error:
        if "NaN" in str(error):
            raise ValueError(
                f"{error} A sample lacks a kernel only if all columns of the kernel are missing: "
                "fill in single values, such as by kernel.after(SimpleImputer())."
            ) from error
        raise


class WhereKnown(PartialKernel):
    """A kernel of those rows of a table that have values in its columns.

    A row with nothing but missing values in the columns of the kernel has no similarity to any
    other: NaN, in its whole row and column. Estimators with ``missing="mean"`` or
    ``"conditional"`` make these kernels of the given ones.

    Parameters
    ----------
    kernel : Kernel

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, fitted on the rows that have values.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Linear
    >>> from manykernels.kernels.presence import WhereKnown
    >>> X = np.array([[1.0, 5.0], [np.nan, 6.0], [2.0, 7.0]])
    >>> WhereKnown(Linear().on([0])).fit(X)(X)
    array([[ 1., nan,  2.],
           [nan, nan, nan],
           [ 2., nan,  4.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel": [Kernel]}

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def columns(self) -> Any:
        """The columns that the kernel compares."""
        return self.kernel.columns

    @property
    def _title(self) -> str:
        return self.kernel._title

    def on(self, columns: Any) -> Self:
        """Copy of this kernel, unfitted, that compares only these columns."""
        return type(self)(self.kernel.on(columns))

    @property
    def frozen_columns(self) -> Any:
        """The columns that the fitted kernel compares; a callable chose them in training."""
        return getattr(getattr(self, "kernel_", None), "columns_", self.kernel.columns)

    def known(self, X: Any) -> np.ndarray:
        """Whether each row of `X` has values in the columns of the kernel, (rows,)."""
        return self._rows(SharedTable.of(X))[0]

    def _rows(self, X: SharedTable) -> tuple[np.ndarray, SharedTable]:
        places = tuple(column_positions(X, self.frozen_columns))

        def found() -> tuple[np.ndarray, SharedTable]:
            has = ~absent_rows(as_table(select_columns(X, list(places))))
            return has, X if has.all() else SharedTable(safe_indexing(X.X, np.flatnonzero(has)))

        rows: tuple[np.ndarray, SharedTable] = X.once(("rows with values", places), found)
        return rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the kernel on the rows that have values in its columns."""
        self._validate_params()
        X = SharedTable.of(X)
        weights = check_sample_weight(
            sample_weight, X.X, dtype=np.float64, ensure_non_negative=True
        )
        # Of a new kernel: this one may have chosen its columns in an earlier fit.
        has, known = type(self)(self.kernel)._rows(X)
        if not weights[has].any():
            raise ValueError("no training sample has values in its columns.")
        with self._explaining():
            self.kernel_ = clone(self.kernel).fit(known, sample_weight=weights[has])
        return self

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """Those of the kernel."""
        return self.kernel_.compared_columns(X)

    def _explaining(self) -> AbstractContextManager[None]:
        return _advising()


class Presence(Kernel):
    """The share of views that two samples both have: the pattern of absence as a kernel.

    Where a view is lacking for a reason, such as a measurement that only severe cases get, that it
    is lacking says something. Of a single table, the share of columns that both have. The kernel
    is constant, and of no use, where nothing is missing.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns, or views, to look at; None means all.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import Views
    >>> from manykernels.kernels import Presence
    >>> views = Views({"a": np.array([[1.0], [2.0]]), "b": np.array([[3.0], [np.nan]])})
    >>> Presence().fit(views)(views)
    array([[1. , 0.5],
           [0.5, 0.5]])
    """

    #: It is a kernel of all views together, see :func:`.of_view.names_its_views`.
    of_all_views = True

    def _validated(self, X: Any) -> np.ndarray:
        """1 for every view, or column, that a row has, else 0; (rows, n_views)."""
        if are_views(X):
            return as_views(X).present.astype(np.float64)
        table = as_table(X)
        columns = (safe_indexing(table, [j], axis=1) for j in range(table.shape[1]))
        return 1.0 - np.column_stack([absent_rows(column) for column in columns])

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """None: what the entries are does not matter."""
        return iter(())

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        return X @ (X if Y is None else Y).T / self.n_features_in_

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        return X.mean(axis=1)


def known_where_possible(kernel: Kernel) -> Kernel:
    """`kernel`, or the same of those rows only that have values in its columns."""
    return kernel if isinstance(kernel, Presence) else WhereKnown(kernel)


def views_of_kernels(kernels: list[tuple[str, Any]], X: Any) -> list[str]:
    """The view that each kernel is of: by its name, or by the columns of a table."""
    views = []
    for name, kernel in kernels:
        if isinstance(kernel, WhereKnown):
            views.append(f"columns {column_positions(X, kernel.frozen_columns)}")
        else:
            views.append(getattr(kernel, "view", name))
    return views


def refuse_rows_without_kernels(kernels: list[tuple[str, Any]], X: Any) -> None:
    """Refuse rows of a table that lack every kernel but that of the pattern itself."""
    own = [(name, kernel) for name, kernel in kernels if isinstance(kernel, WhereKnown)]
    if own:
        known = np.array([kernel.known(X) for _, kernel in own])
        refuse_samples_without_kernels(known, [name for name, _ in own], row_names(X))


def refuse_rows_without_values(kernels: list[tuple[str, Any]], X: Any) -> None:
    """Refuse rows of a table that lack all columns of a kernel, before kernels are computed."""
    X = as_table(X)
    for name, kernel in kernels:
        kernel = as_kernel(kernel)
        if isinstance(kernel, Presence | WhereKnown):
            continue
        rows = np.flatnonzero(~WhereKnown(kernel).known(X))
        if len(rows):
            names = row_names(X)
            which = shown(rows if names is None else names[rows])
            raise ValueError(
                f"Kernel {name!r}: all its columns are missing (NaN) for {len(rows)} of "
                f'{X.shape[0]} samples, rows {which}. Pass missing="mean" or '
                'missing="conditional" to the estimator, or leave these samples out.'
            )


@contextmanager
def explaining_lacking_rows(union: Any, X: Any) -> Iterator[None]:
    """Rows that lack all columns of a kernel are a better reason to refuse a table than NaN."""
    try:
        yield
    except ValueError as error:
        if union is not None and "NaN" in str(error) and not are_views(X):
            refuse_rows_without_values(union._pairs, X)
        raise
