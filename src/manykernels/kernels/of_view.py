"""OfView: a kernel of one of several views, written ``kernel.of("view")``."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._sklearn import check_sample_weight
from .base import Kernel
from .tables import SharedTable, naming
from .views import Views, are_views, as_views


class OfView(Kernel):
    """A kernel of one of several views, written ``kernel.of("view")``.

    A sample that lacks the view has no similarity to any other: NaN, in its whole row and column.
    Estimators complete these, see their parameter `missing`.

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

    #: A view is all that is chosen of `X`; columns are chosen by the kernel.
    columns = None

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @property
    def _title(self) -> str:
        return f"view {self.view!r}: {self.kernel._title}"

    def on(self, columns: Any) -> Self:
        """Copy of this kernel, unfitted, that compares only these columns of its view."""
        return type(self)(self.kernel.on(columns), self.view)

    def after(self, transformer: Any) -> Self:  # type: ignore[override]
        """Copy of this kernel, unfitted, of what a transformer makes of the view."""
        return type(self)(self.kernel.after(transformer), self.view)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the kernel on the rows that have the view."""
        self._validate_params()
        X = SharedTable.of(X)
        views = self._views(X)
        weights = check_sample_weight(
            sample_weight, views, dtype=np.float64, ensure_non_negative=True
        )
        counted = weights[views.has(self.view)]
        if not counted.any():
            raise ValueError(f"view {self.view!r}: no training sample has it: leave it out.")
        with naming(f"view {self.view!r}"):
            self.kernel_ = clone(self.kernel).fit(self._table(X), sample_weight=counted)
        return self

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Similarities of the rows of `X` with those of `Y`, or with each other."""
        check_is_fitted(self)
        gram = Y is None
        X = SharedTable.of(X)
        Y = X if gram else SharedTable.of(Y)
        left, right = self._views(X), self._views(Y)
        rows, columns = left.has(self.view), right.has(self.view)
        K = np.full((len(left), len(right)), np.nan)
        if rows.any() and columns.any():
            with naming(f"view {self.view!r}"):
                known = self.kernel_(self._table(X), None if gram else self._table(Y))
            if rows.all() and columns.all():
                return known
            K[np.ix_(rows, columns)] = known
        return K

    def diag(self, X: Any) -> np.ndarray:
        """Similarities of the rows of `X` with themselves; NaN for rows that lack the view."""
        check_is_fitted(self)
        X = SharedTable.of(X)
        views = self._views(X)
        rows = views.has(self.view)
        diagonal = np.full(len(views), np.nan)
        if rows.any():
            with naming(f"view {self.view!r}"):
                diagonal[rows] = self.kernel_.diag(self._table(X))
        return diagonal

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return self(X, Y)

    def _compared(self, X: Any, Y: Any) -> Any:
        check_is_fitted(self)
        X, Y = SharedTable.of(X), None if Y is None else SharedTable.of(Y)
        for table in (X,) if Y is None else (X, Y):
            if not self._views(table).has(self.view).all():
                return None  # rows that lack the view cannot be compared
        with naming(f"view {self.view!r}"):
            return self.kernel_._compared(self._table(X), None if Y is None else self._table(Y))

    def _table(self, X: SharedTable) -> SharedTable:
        """The table of the view, which its kernels share."""
        views = self._views(X)
        table: SharedTable = X.once(("view", self.view), lambda: SharedTable(views[self.view]))
        return table

    def _views(self, shared: SharedTable) -> Views:
        X = shared.X
        if not are_views(X):
            raise TypeError(
                f"{self._title} compares a view of several: X has to be a dict of tables or "
                f"Views, got {type(X).__name__}."
            )
        views: Views = shared.once("views", lambda: as_views(X))
        if self.view not in views:
            raise ValueError(f"X has no view {self.view!r}; it has {', '.join(map(repr, views))}.")
        return views


def names_its_views(kernel: Any) -> bool:
    """Whether a kernel says itself which views it compares, as ``kernel.of(...)`` does."""
    if isinstance(kernel, OfView) or getattr(kernel, "of_all_views", False):
        return True
    parts = [getattr(kernel, side, None) for side in ("left", "right")]
    return any(part is not None and names_its_views(part) for part in parts)
