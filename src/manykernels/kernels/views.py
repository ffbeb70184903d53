"""Views: named tables of the same samples, matched by the labels of their rows."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..utils.sklearn import num_samples, safe_indexing
from ..utils.storable import storable
from .matching import (
    JOINS,
    Labelled,
    in_one_order,
    matched,
    matched_targets,
    refuse_unlabelled,
    row_labels,
    shown,
)
from .stack import positions, views_html
from .tables import (
    Columns,
    Table,
    absent_rows,
    as_view,
    column_positions,
    copied,
    is_frame,
    naming,
    native_frame,
    refuse_repeated_names,
)

# -- Named tables with row labels, from dicts, data frames, MuData and AnnData --------------------


def named_tables(
    tables: Any,
    columns: Mapping[str, Any] | None = None,
    layer: str | Mapping[str, str] | None = None,
) -> dict[str, Labelled]:
    """Return tables by the names of the views; see :class:`~manykernels.Views`."""
    tables = native_frame(tables)
    annotated = {}
    if isinstance(tables, Mapping):
        annotated = {name: data for name, data in tables.items() if _is_mapping(data, "obsm")}
    if layer is not None and (columns is not None or not (annotated or holds_modalities(tables))):
        raise ValueError("layer is for AnnData and MuData, without columns.")
    if columns is not None:
        labelled = _column_groups(tables, columns)
    elif _is_mapping(tables, "mod"):
        labelled = _modalities_of(tables.mod, layer)
    elif _is_mapping(tables, "obsm"):
        labelled = _matrices_of(tables, layer)
    elif is_frame(tables):
        labelled = _levels(tables)
    elif isinstance(tables, Mapping):
        others = {name: table for name, table in tables.items() if name not in annotated}
        frames = {name: native_frame(table) for name, table in others.items()}
        labelled = {name: Labelled(table, row_labels(table)) for name, table in frames.items()}
        labelled |= _modalities_of(annotated, layer)
    else:
        raise TypeError(
            "Views need a dict of tables by the names of the views, such as "
            f'{{"audio": X1, "text": X2}}; got {type(tables).__name__}.'
        )
    if not labelled:
        raise ValueError("At least one view is needed, got an empty dict or table.")
    for name in labelled:
        if not isinstance(name, str):
            raise TypeError(f"Names of views must be strings, got {name!r}.")
    return labelled


def holds_modalities(data: object) -> bool:
    """Return True if `data` is MuData or AnnData."""
    return _is_mapping(data, "mod") or _is_mapping(data, "obsm")


def _is_mapping(data: object, attribute: str) -> bool:
    # Data frames have a method named "mod".
    return isinstance(getattr(data, attribute, None), Mapping)


def _column_groups(frame: object, columns: Mapping[str, Any]) -> dict[str, Labelled]:
    labels = row_labels(frame)
    groups = {}
    for name, selection in columns.items():
        positions = column_positions(frame, _listed(selection))
        groups[name] = Labelled(safe_indexing(frame, positions, axis=1), labels)
    return groups


def _listed(columns: Columns) -> Any:
    return [columns] if isinstance(columns, str | int) else columns


def _levels(frame: Any) -> dict[str, Labelled]:
    """Return the views of a pandas frame with two-level columns."""
    levels = getattr(frame.columns, "nlevels", 1)
    if levels != 2:
        raise TypeError(
            "A data frame has several views if its columns have two levels of names; this one "
            f"has {levels}. Pass the columns of each view: Views(frame, columns={{...}})."
        )
    first = frame.columns.get_level_values(0)
    return {
        name: Labelled(frame.loc[:, first == name].droplevel(0, axis=1), frame.index)
        for name in dict.fromkeys(first)
    }


def _annotated(data: Any, layer: str | None = None) -> Labelled:
    """Return X or a layer of an AnnData, with the names of observations and variables."""
    if layer is not None and layer not in data.layers:
        held = ", ".join(repr(name) for name in data.layers if name is not None) or "none"
        raise ValueError(f"there is no layer {layer!r}; layers: {held}.")
    table = data.X if layer is None else data.layers[layer]
    if sparse.issparse(table):
        return Labelled(table, data.obs_names, data.var_names)
    frame = data.to_df() if layer is None else data.to_df(layer=layer)
    return Labelled(frame, data.obs_names)


def _modalities_of(
    modalities: Mapping[str, Any], layer: str | Mapping[str, str] | None
) -> dict[str, Labelled]:
    """Return a table of every modality of a MuData."""
    layers = dict.fromkeys(modalities, layer) if isinstance(layer, str) else dict(layer or {})
    if unknown := [name for name in layers if name not in modalities]:
        raise ValueError(
            f"layer: there is no modality {unknown[0]!r}; modalities: {', '.join(modalities)}."
        )
    tables = {}
    for name, data in modalities.items():
        # A view of another name, so that new samples cannot be read from X by mistake.
        view = f"{name}/{layers[name]}" if name in layers else name
        with naming(f"modality {name!r}"):
            tables[view] = _annotated(data, layers.get(name))
    return tables


def _matrices_of(data: Any, layer: str | Mapping[str, str] | None) -> dict[str, Labelled]:
    """Return the views of an AnnData: X or a layer, and other tables of the same observations."""
    if layer is not None and not isinstance(layer, str):
        raise TypeError("layer of an AnnData must be the name of a layer.")
    tables = {} if layer is None and data.X is None else {layer or "X": _annotated(data, layer)}
    for name in data.obsm:
        if name in tables:
            raise ValueError(f"both a layer and an entry of obsm are called {name!r}.")
        tables[name] = Labelled(data.obsm[name], data.obs_names)
    return tables


@storable
class Views:
    """Named tables of the same samples; each row is one sample.

    Rows of pandas data frames are matched by their labels, the index: views with the same labels
    in another order are reordered. Arrays, sparse matrices and polars frames are matched by
    position. The documentation of ``fit`` of the estimators describes how y is matched with the
    rows. In scikit-learn's searches, cross-validation, pipelines, calibration and stacking, a
    `Views` is indexed by rows like a table whose columns are the views.

    Parameters
    ----------
    tables : dict, dataframe, MuData or AnnData
        A table for every name: array, sparse matrix, data frame (pandas, polars, Arrow), AnnData
        (its X), or a list of objects such as texts. A data frame with two levels of column names
        has a view for each name of the first level; MuData has one for each modality; AnnData has
        "X" and one for each entry of ``obsm``. Columns of data frames and of AnnData have names,
        by which those of new samples are matched.
    join : {"exact", "inner", "outer"}, default="exact"
        What to do if labels are not the same in all views: raise an error; keep the samples that
        are in all views; or keep all samples, some of which then lack a view (see the parameter
        `missing` of estimators).
    columns : dict of str to list, optional
        With one data frame: the columns of each view.
    layer : str or dict of str to str, optional
        With AnnData or MuData: the layer to read instead of X. The view has the name of the
        layer, such as "counts", or of modality and layer, "rna/counts". A dict names the layers of
        some modalities of a MuData, or tables of a dict; X is read for the others.

    Attributes
    ----------
    names : list of str
        Names of the views.
    labels : ndarray or None
        Labels of the rows, in the order of the first view that has all of them; if there is none,
        in the order of the first view with labels, followed by the other labels.
    present : ndarray of bool, (n_rows, n_views)
        Which rows have which view. A row with only missing values in a view lacks the view.
    shape : tuple of int
        Numbers of rows and of views.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from manykernels import Views
    >>> genes = pd.DataFrame({"g1": [0.0, 1.0], "g2": [2.0, 3.0]}, index=["ann", "bob"])
    >>> age = pd.DataFrame({"age": [43.0, 27.0]}, index=["bob", "ann"])
    >>> views = Views({"genes": genes, "clinic": age})
    >>> views
    Views(2 rows: 'genes' (2 columns), 'clinic' (1 column))
    >>> views["clinic"]
          age
    ann  27.0
    bob  43.0
    >>> views[[1]].labels
    array(['bob'], dtype=object)
    """

    def __init__(
        self,
        tables: object,
        *,
        join: str = "exact",
        columns: Mapping[str, Any] | None = None,
        layer: str | Mapping[str, str] | None = None,
    ) -> None:
        if join not in JOINS:
            raise ValueError(f"join must be one of {', '.join(map(repr, JOINS))}, got {join!r}.")
        checked = {}
        for name, labelled in named_tables(tables, columns, layer).items():
            with naming(f"view {name!r}"):
                checked[name] = replace(labelled, table=as_view(labelled.table))
        self.labels, places = matched(checked, join)
        self._tables: dict[str, Any] = {}
        # Row of each sample in the table of the view; negative if it lacks the view.
        self._places: dict[str, np.ndarray] = {}
        for name, labelled in checked.items():
            self._set(name, labelled.table, places[name])
        self._columns = {
            name: list(labelled.columns)
            for name, labelled in checked.items()
            if labelled.columns is not None
        }

    def _set(self, name: str, table: object, places: np.ndarray) -> None:
        """Store the rows of `table` in the order of the samples, without empty rows."""
        rows = places[places >= 0]
        if not np.array_equal(rows, np.arange(num_samples(table))):
            table = safe_indexing(table, rows)
        lacking = absent_rows(table)
        if lacking.any():
            table = safe_indexing(table, np.flatnonzero(~lacking))
        has = places >= 0
        has[has] = ~lacking
        self._tables[name] = table
        self._places[name] = np.where(has, np.cumsum(has) - 1, -1)

    #: Names of the columns of sparse matrices, by view, where they are known; model files of
    #: older versions have none.
    _columns: Mapping[str, list[Any]] = MappingProxyType({})

    @classmethod
    def _of(
        cls,
        labels: Any,
        tables: dict[str, Any],
        places: dict[str, np.ndarray],
        columns: Mapping[str, list[Any]],
    ) -> Self:
        views = cls.__new__(cls)
        views.labels, views._tables, views._places = labels, tables, places
        views._columns = dict(columns)
        return views

    @classmethod
    def stacked(cls, parts: Sequence[Views], stack: Callable[[list[Any]], Any]) -> Self:
        """Concatenate the rows of several `Views`; `stack` joins the tables of one view."""
        labels = [part.labels for part in parts if part.labels is not None]
        joined = np.concatenate(labels) if len(labels) == len(parts) else None
        views = cls._of(joined, {}, {}, parts[0]._columns)
        for name in parts[0].names:
            has = np.concatenate([part.has(name) for part in parts])
            views._tables[name] = stack([part[name] for part in parts])
            views._places[name] = np.where(has, np.cumsum(has) - 1, -1)
        return views

    # -- a mapping of names to tables ------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return list(self._tables)

    def items(self) -> ItemsView[str, Any]:
        """Return names and tables; each table has only the rows that have this view."""
        return self._tables.items()

    def keys(self) -> list[str]:
        """Return the names of the views."""
        return self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def column_names(self, name: str) -> list[Any] | None:
        """Return the names of the columns of a view; None if they are not known."""
        table = self[name]
        return list(table.columns) if is_frame(table) else self._columns.get(name)

    def position(self, name: str) -> int:
        """Return the position of a view among the names."""
        if name not in self._tables:
            raise KeyError(f"There is no view {name!r}, only {', '.join(self._tables)}.")
        return self.names.index(name)

    # -- a table of rows -------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self._tables)

    def __len__(self) -> int:
        return len(next(iter(self._places.values())))

    @property
    def present(self) -> np.ndarray:
        return np.column_stack([self.has(name) for name in self._tables])

    def has(self, name: str) -> np.ndarray:
        """Return a mask of the rows that have this view, (n_rows,)."""
        has: np.ndarray = self._places[name] >= 0
        return has

    def __getitem__(self, key: object) -> Any:
        """Return ``views[name]``, the table of a view, or ``views[rows]``, a Views of rows."""
        if isinstance(key, str):
            self.position(key)  # raises an error for unknown names
            return self._tables[key]
        if isinstance(key, int | np.integer):
            raise TypeError(
                "Views are indexed by the name of a view, or by rows: use a slice or an array, "
                "not an integer."
            )
        return self.take(positions(key, len(self)))

    def take(self, rows: object, axis: int = 0) -> Self:
        """Return some of the rows by their positions; with ``axis=1`` some of the views."""
        numbers = np.arange(self.shape[axis])[np.asarray(rows, dtype=np.intp)]
        if axis == 1:
            names = [self.names[j] for j in numbers]
            tables = {name: self._tables[name] for name in names}
            taken_places = {name: self._places[name] for name in names}
            return self._of(self.labels, tables, taken_places, self._columns)
        labels = None if self.labels is None else self.labels[numbers]
        taken = self._of(labels, {}, {}, self._columns)
        for name, table in self._tables.items():
            places = self._places[name][numbers]
            has = places >= 0
            taken._tables[name] = safe_indexing(table, places[has])
            taken._places[name] = np.where(has, np.cumsum(has) - 1, -1)
        return taken

    def copy(self) -> Self:
        """Return a copy of the views and their tables."""
        tables = {name: copied(table) for name, table in self._tables.items()}
        return self._of(self.labels, tables, dict(self._places), self._columns)

    def with_tables(self, tables: dict[str, Any]) -> Self:
        """Return the rows with other tables; each has only the rows that have its view."""
        places = {name: self._places[name] for name in tables}
        return self._of(self.labels, tables, places, self._columns)

    # The interface of a pandas frame that permutation_importance uses to shuffle whole views:
    # X.iloc[rows, j] is a column, and X[name] = column replaces it.

    @property
    def columns(self) -> list[str]:
        """Names of the views, which are the columns of this table."""
        return self.names

    @property
    def index(self) -> np.ndarray:
        """Labels of the rows, or their positions if there are none."""
        return np.arange(len(self)) if self.labels is None else self.labels

    @index.setter
    def index(self, labels: Any) -> None:
        if len(labels) != len(self):
            raise ValueError(f"index has {len(labels)} labels for {len(self)} rows.")
        self.labels = np.asarray(labels)

    @property
    def iloc(self) -> _Places:
        """Indexer of rows, or rows and views, by position."""
        return _Places(self)

    @property
    def loc(self) -> _Places:
        """Indexer of rows by a mask."""
        return _Places(self)

    def __setitem__(self, name: str, column: Views) -> None:
        if not isinstance(column, Views) or column.shape != (len(self), 1):
            raise TypeError(
                "Only a view of the same rows can be set; make a new Views of all the tables."
            )
        (source,) = column.names
        self._columns = {key: names for key, names in self._columns.items() if key != name}
        if source in column._columns:
            self._columns[name] = column._columns[source]
        self._tables[name], self._places[name] = column._tables[source], column._places[source]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            "Views are several tables and cannot become one array. Estimators of manykernels "
            "accept Views; for others join the tables first: views.joined()."
        )

    def joined(self) -> Table:
        """Return all numeric tables side by side: an array, or a csr matrix if one is sparse."""
        for name in self._tables:
            if not self.has(name).all():
                row = int(np.argmin(self.has(name)))
                raise ValueError(
                    f"Views cannot be joined: {shown(self.index[[row]])} lacks view {name!r}."
                )
        tables = []
        for name, table in self._tables.items():
            with naming(f"view {name!r}"):
                if not sparse.issparse(table):
                    table = np.asarray(table, dtype=np.float64).reshape(len(self), -1)
                tables.append(table)
        if any(sparse.issparse(table) for table in tables):
            return sparse.hstack(tables, format="csr")
        return np.hstack(tables)

    def refuse_lacking(self) -> None:
        """Raise if a row lacks a view."""
        for name in self._tables:
            rows = np.flatnonzero(~self.has(name))
            if len(rows):
                which = f"rows {shown(rows)}" if self.labels is None else shown(self.index[rows])
                raise ValueError(
                    f"view {name!r} is missing for {len(rows)} of {len(self)} samples ({which}). "
                    'Pass missing="mean" or missing="conditional" to the estimator, or leave '
                    "these samples out."
                )

    # -- new samples -----------------------------------------------------------------------

    def like(self, training: Views, *, may_lack: bool = False) -> Self:
        """Return the views, and the columns of each, in the order of `training`.

        Views and named columns that are not those of `training` are an error. A missing view is
        an error too, unless rows `may_lack` views: then all rows lack it.
        """
        unknown = [name for name in self if name not in training]
        lost = [name for name in training if name not in self]
        known = ", ".join(map(repr, training))
        if unknown:
            raise ValueError(
                f"X has a view {unknown[0]!r} that training had not; training had the views "
                f"{known}."
            )
        if lost and not may_lack:
            raise ValueError(
                f"X has no view {lost[0]!r}; training had the views {known}. Estimators fitted "
                'with missing="mean" or "conditional" predict without it.'
            )
        tables, places = {}, {}
        for name, model in training.items():
            if name in lost:
                tables[name] = safe_indexing(model, np.arange(0))
                places[name] = np.full(len(self), -1)
                continue
            with naming(f"view {name!r}"):
                tables[name] = columns_like(
                    self._tables[name],
                    model,
                    names=(self.column_names(name), training.column_names(name)),
                )
            places[name] = self._places[name]
        return self._of(self.labels, tables, places, training._columns)

    def __repr__(self) -> str:
        described = [f"{name!r} ({self._description(name)})" for name in self._tables]
        return f"Views({len(self)} rows: {', '.join(described)})"

    def _repr_html_(self) -> str:
        return views_html(self)

    def _description(self, name: str) -> str:
        table = self._tables[name]
        if len(table.shape) == 1:
            kind = "objects"
        else:
            kind = f"{table.shape[1]} column{'s'[: table.shape[1] != 1]}"
        lacking = int(np.count_nonzero(~self.has(name)))
        return f"{kind}, {lacking} rows lack it" if lacking else kind


class _Places:
    """Indexer for ``views.iloc[rows]`` and ``views.iloc[rows, view]``."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def __getitem__(self, key: object) -> Any:
        rows, chosen = key if isinstance(key, tuple) else (key, slice(None))
        views = self._views.take(np.atleast_1d(np.arange(self._views.shape[1])[chosen]), axis=1)
        return views[np.atleast_1d(np.arange(len(views))[rows])]


def columns_like(
    table: Any, model: Any, then: str = "training", names: tuple[Any, Any] | None = None
) -> Table:
    """Return `table` with its columns in the order of `model`, the table of training or `then`.

    `names` are the names of the columns of both, None if unknown; by default those of data frames.
    """
    dimensions, expected_dimensions = len(table.shape), len(model.shape)
    if dimensions != expected_dimensions:
        kinds = {1: "single objects", 2: "a table"}
        raise ValueError(
            f"it is {kinds[dimensions]}, but was {kinds[expected_dimensions]} in {then}."
        )
    if dimensions == 1:
        return table
    here, expected = names or [list(t.columns) if is_frame(t) else None for t in (table, model)]
    if here is not None and expected is not None:
        if expected == here:
            return table
        surplus, lost = set(here) - set(expected), set(expected) - set(here)
        if surplus or lost:
            problem = (
                f"no column {_first(expected, lost)!r}"
                if lost
                else f"a column {_first(here, surplus)!r} that it had not in {then}"
            )
            raise ValueError(f"it has {problem} ({then} had {len(expected)} columns).")
        for listed in (here, expected):
            refuse_repeated_names(listed)
        places = {name: place for place, name in enumerate(here)}
        ordered = safe_indexing(table, [places[name] for name in expected], axis=1)
        if sparse.issparse(ordered):
            ordered.sort_indices()
        return ordered
    if table.shape[1] != model.shape[1]:
        raise ValueError(f"it has {table.shape[1]} columns, but had {model.shape[1]} in {then}.")
    return table


def _first(names: list[Any], chosen: set[Any]) -> Any:
    return next(name for name in names if name in chosen)


def are_views(X: Table) -> bool:
    """Return True if `X` holds several tables."""
    if sparse.issparse(X):
        return False  # some sparse matrices are dicts
    if isinstance(X, Views | Mapping) or holds_modalities(X):
        return True
    return is_frame(X) and getattr(X.columns, "nlevels", 1) > 1


def as_views(X: object, *, join: str = "exact") -> Views:
    """Convert a dict, a frame with two-level columns, MuData or AnnData to Views."""
    return X if isinstance(X, Views) else Views(X, join=join)


def one_or_views(X: object) -> Table:
    """Return a single table unchanged, several tables as :class:`Views`."""
    return as_views(X) if are_views(X) else X


def matched_views(
    X: object,
    y: object,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    may_lack: bool,
    **more: Any,
) -> tuple[Any, ...]:
    """Return several tables as :class:`Views`; y, weights, groups and `more` in the same order."""
    views = as_views(X, join="outer" if may_lack else "exact")
    one_order = isinstance(X, Views) or in_one_order(named_tables(X))
    targets = {"y": y, "sample_weight": sample_weight, "groups": groups, **more}
    if not one_order:
        refuse_unlabelled(targets)
    # No warning about reordered targets if the tables themselves were reordered.
    return views, *matched_targets(views.labels, **targets, quiet=not one_order)


def row_keys(table: Table) -> list[Any]:
    """Return a hashable key for every row; rows with the same entries have the same key."""
    if isinstance(table, Views):
        keys: list[list[Any]] = []
        for name, view in table.items():
            keys_of_view = iter(row_keys(view))
            keys.append([next(keys_of_view) if has else None for has in table.has(name)])
        return list(zip(*keys, strict=True))
    if sparse.issparse(table):
        rows = sparse.csr_array(table).astype(np.float64)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        parts = ((rows.indices[a:b].astype(np.int64), rows.data[a:b]) for a, b in ends)
        return [_digest(indices.tobytes() + values.tobytes()) for indices, values in parts]
    array = table.to_numpy() if is_frame(table) else np.asarray(table)
    array = array[:, None] if array.ndim == 1 else array
    if array.dtype.kind in "biuf":
        # Adding 0.0 turns −0.0 into 0.0.
        return [_digest((row.astype(np.float64) + 0.0).tobytes()) for row in array]
    return [_digest("".join(map(_text, row)).encode("utf-8", "surrogatepass")) for row in array]


def _text(entry: object) -> str:
    """Return an entry as text; arrays as lists, since their repr is abbreviated."""
    return repr(entry.tolist() if isinstance(entry, np.ndarray | np.generic) else entry) + "\n"


def _digest(content: bytes) -> bytes:
    """Return a hash of sixteen bytes."""
    return blake2b(content, digest_size=16).digest()
