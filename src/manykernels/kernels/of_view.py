"""OfView: a kernel of one of several views, written ``kernel.of("view")``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .._sklearn import check_sample_weight
from ._partial import PartialKernel
from .base import Kernel
from .tables import SharedTable, naming
from .views import Views, are_views, as_views


class OfView(PartialKernel):
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
        weights = check_sample_weight(
            sample_weight, self._views(X), dtype=np.float64, ensure_non_negative=True
        )
        rows, table = self._rows(X)
        if not weights[rows].any():
            raise ValueError(f"view {self.view!r}: no training sample has it: leave it out.")
        with self._explaining():
            self.kernel_ = clone(self.kernel).fit(table, sample_weight=weights[rows])
        return self

    def _rows(self, X: SharedTable) -> tuple[np.ndarray, SharedTable]:
        views = self._views(X)
        table = X.once(("view", self.view), lambda: SharedTable(views[self.view]))
        return views.has(self.view), table

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """Those of the view."""
        _, table = self._rows(SharedTable.of(X))
        for _, positions, as_categories in self.kernel_.compared_columns(table):
            yield self.view, positions, as_categories

    def _explaining(self) -> AbstractContextManager[None]:
        return naming(f"view {self.view!r}")

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


def views_of(kernel: Any) -> set[str]:
    """The views that a kernel names, also as parts of a sum or product."""
    if isinstance(kernel, OfView):
        return {kernel.view}
    parts = [getattr(kernel, side, None) for side in ("left", "right")]
    return {view for part in parts if part is not None for view in views_of(part)}
