"""What is asked of rows as they come in: columns of the first rows, finite numbers, targets.

Every error names the block, as it came out of the container, and where it begins among all rows.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .._sklearn import num_samples, safe_indexing
from ..kernels import Views
from ..kernels.matching import shown
from ..kernels.tables import (
    as_numbers,
    check_numbers,
    is_frame,
    is_missing,
    is_numeric,
    naming,
    refuse_kinds,
    refuse_masked,
)
from ..kernels.view_tables import column_of_strings
from ..kernels.views import are_views, as_views, columns_like
from .stacking import rows_of

_FIRST = "the first block"


def refuse_no_rows() -> NoReturn:
    raise ValueError("Found array with 0 sample(s): there are no rows in X.")


def refuse_no_targets() -> NoReturn:
    raise ValueError("Fitting requires y to be passed, but the target y is None.")


def readable(X: Any) -> Any:
    """X as feature maps read it: a data frame, csr matrix, `Views`, or an array of rows."""
    if are_views(X):
        return as_views(X)
    if is_frame(X):
        return X
    if sparse.issparse(X):
        check_numbers(X, "X")
        return X.tocsr()
    if (strings := column_of_strings(X)) is not None:
        return strings
    refuse_masked(X, "X")
    array = np.asarray(X)  # of memory maps too, whose kind is of no use for a few rows
    check_numbers(array, "X", "Tables with text are passed as data frames.")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: X has to have rows and columns. "
            "Reshape your data either using array.reshape(-1, 1) if it has a single column or "
            "array.reshape(1, -1) if it is a single row."
        )
    return array if array.dtype.kind in "biuf" else array.astype(np.float64)


def names_in(given: Any) -> list[str]:
    """Names of columns: those of a list, a single one, or none."""
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def refuse_unknown_names(given: Any, columns: list[Any], name: str) -> None:
    """Refuse names of columns that are not there, for y or sample weights."""
    for column in names_in(given):
        if column not in columns:
            raise ValueError(
                f"There is no column {column!r} for {name}; X has the columns {shown(columns)}."
            )


class PieceCheck:
    """Checks pieces one after the other, each against the first."""

    def __init__(
        self,
        needs_y: bool,
        allow_nan: bool,
        may_lack: bool,
        template: Template | ViewsTemplate | None = None,
    ) -> None:
        self._needs_y, self._allow_nan, self._may_lack = needs_y, allow_nan, may_lack
        self._template = template
        # Whether the first piece had targets and weights.
        self._given: tuple[bool, bool] | None = None

    def __call__(
        self, X: Any, y: Any, weight: Any, start: int, number: int
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """X with its columns in the order of the first piece, targets and weights as arrays."""
        with naming(f"Block {number}, which begins at row {start}"):
            X = readable(X)
            self._template = self._template or Template.of(X)
            X = self._template.like(X)
            if isinstance(X, Views) and not self._may_lack:
                X.refuse_lacking()
            refuse_not_finite(X, start, self._allow_nan)
            if y is None and self._needs_y:
                refuse_no_targets()
            given = y is not None, weight is not None
            self._given = self._given or given
            for name, now, then in zip(("y", "sample_weight"), given, self._given, strict=True):
                if now != then:
                    has, had = ("has a", "had none") if now else ("has no", "had one")
                    raise ValueError(f"it {has} {name}, but {_FIRST} {had}.")
            n_rows = int(num_samples(X))
            targets = None if y is None else checked_targets(y, n_rows, start)
            weights = None if weight is None else checked_weights(weight, n_rows, start)
        return X, targets, weights


class Template:
    """Columns of the first rows, without the rows."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @classmethod
    def of(cls, X: Any) -> Template | ViewsTemplate:
        """That of the views, or of one table."""
        if isinstance(X, Views):
            return ViewsTemplate({name: cls.of(table) for name, table in X.items()})
        return cls(rows_of(X, slice(0, 0)))

    def like(self, table: Any) -> Any:
        """`table` with named columns in the order of the first rows; other columns are refused."""
        kind, first = _container(table), _container(self._model)
        if kind != first:
            raise ValueError(f"it is {kind}, but was {first} in {_FIRST}.")
        table = columns_like(table, self._model, then=_FIRST)
        for position, (now, then) in enumerate(
            zip(_types(table), _types(self._model), strict=True)
        ):
            if now is not then and is_numeric(now) != is_numeric(then):
                raise ValueError(
                    f"{_column(table, position)} is of type {now}, but was of type {then} in "
                    f"{_FIRST}: numbers and other values do not go together."
                )
        return table


class ViewsTemplate(Template):
    """Views of the first rows, each with its template."""

    def __init__(self, templates: dict[str, Any]) -> None:
        self._templates = templates

    def like(self, table: Any) -> Any:
        """`table` with views and their columns in the order of the first rows."""
        found = table.names if isinstance(table, Views) else []
        if sorted(found) != sorted(self._templates):
            now, then = (", ".join(map(repr, names)) for names in (found, self._templates))
            raise ValueError(f"it has the views {now or 'none'}, but {_FIRST} had {then}.")
        views = table.take([table.position(name) for name in self._templates], axis=1)
        ordered = {}
        for name, template in self._templates.items():
            with naming(f"view {name!r}"):
                ordered[name] = template.like(views[name])
        return views.with_tables(ordered)


def _container(table: Any) -> str:
    """What error messages call the kind of a table."""
    if isinstance(table, Views):
        return "several views"
    if is_frame(table):
        return f"a data frame of {type(table).__module__.partition('.')[0]}"
    return "a sparse matrix" if sparse.issparse(table) else "an array"


def _types(table: Any) -> list[Any]:
    """Types of the columns of a data frame; otherwise the one of all entries."""
    return list(table.dtypes) if is_frame(table) else [table.dtype]


def _column(table: Any, position: int) -> str:
    if is_frame(table):
        return f"column {table.columns[position]!r}"
    return f"column {position}" if len(table.shape) == 2 else "it"


def refuse_not_finite(table: Any, start: int, allow_nan: bool) -> None:
    """Refuse infinite numbers in a table whose first row is number `start`, and NaN."""
    if isinstance(table, Views):
        for name, one in table.items():
            # A row without this view is not in the table.
            rows = start + np.flatnonzero(table.has(name))
            with naming(f"view {name!r}"):
                _refuse_not_finite(one, rows, allow_nan)
        return
    _refuse_not_finite(table, start + np.arange(num_samples(table)), allow_nan)


def _refuse_not_finite(table: Any, rows: np.ndarray, allow_nan: bool) -> None:
    positions = [j for j, dtype in enumerate(_types(table)) if is_numeric(dtype)]
    if not positions:
        return
    if sparse.issparse(table):
        entries = table.data
    elif is_frame(table) and len(positions) < table.shape[1]:
        table = safe_indexing(table, positions, axis=1)
        entries = as_numbers(table)
    else:
        entries = as_numbers(table) if is_frame(table) else table
    good = np.isfinite(entries)
    if allow_nan:
        good |= np.isnan(entries)
    if good.all():
        return
    if sparse.issparse(table):
        found = table.tocoo()
        place = int(np.argmin(good))
        row, column, value = found.row[place], found.col[place], entries[place]
    else:
        row, column = np.unravel_index(np.argmin(good), good.shape)
        value = entries[row, column]
    at = f"at row {rows[row]}, {_column(table, int(column))}"
    if np.isnan(value):
        raise ValueError(
            f"there is a missing value (NaN) {at}: fill it in, leave the row out, or let the "
            "kernel fill it in, as in RBF().after(make_pipeline(SimpleImputer(), "
            "StandardScaler()))."
        )
    raise ValueError(
        f"there is an infinite value ({value}) {at}: only finite numbers can be used."
    )


def checked_targets(y: Any, n_rows: int, start: int = 0) -> np.ndarray:
    """Targets as an array, none of them missing or infinite."""
    refuse_masked(y, "y")
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix, and its zeros are numbers too: pass y.toarray().")
    targets = np.asarray(y)
    refuse_kinds(targets, "y", "c")
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array, got an array of shape {targets.shape} instead.")
    check_length(len(targets), n_rows, "y")
    if targets.dtype.kind == "f":
        bad = ~np.isfinite(targets)
    elif targets.dtype.kind in "OMm":
        flat = [is_missing(target) for target in targets.ravel()]
        bad = np.array(flat, dtype=bool).reshape(targets.shape)
    else:
        return targets
    if bad.any():
        row = int(np.argmax(bad.reshape(n_rows, -1).any(axis=1)))
        value = targets[row]
        raise ValueError(
            f"Input y contains NaN, None or infinity: y is {value} at row {start + row}. Leave "
            "this sample out, or give it a target."
        )
    return targets


def checked_weights(weight: Any, n_rows: int, start: int = 0) -> np.ndarray:
    """Sample weights as an array of numbers that are finite and not negative."""
    refuse_masked(weight, "sample_weight")
    check_numbers(np.asarray(weight), "sample_weight")
    weights = np.asarray(weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got an array of shape {weights.shape}."
        )
    check_length(len(weights), n_rows, "sample_weight")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight is {weights[row]:g} at row {start + row}: Negative values in data "
            "passed to `sample_weight`, infinite ones and NaN do not say how much a row counts."
        )
    return weights


def check_length(length: int, n_rows: int, name: str) -> None:
    """Refuse targets, weights or views of another length than X."""
    if length != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"but {name} has {length}."
        )
