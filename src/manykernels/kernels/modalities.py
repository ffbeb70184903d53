"""Named tables, with the labels of their rows, from whatever holds several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy import sparse

from .._sklearn import safe_indexing
from .matching import Labelled, row_labels
from .tables import column_positions, is_frame


def named_tables(tables: Any, columns: Mapping[str, Any] | None = None) -> dict[str, Labelled]:
    """Tables by the names of the views; see :class:`~manykernels.Views`."""
    if columns is not None:
        found = _column_groups(tables, columns)
    elif _is_mapping(tables, "mod"):
        found = {name: _annotated(data) for name, data in tables.mod.items()}
    elif _is_mapping(tables, "obsm"):
        found = _matrices_of(tables)
    elif is_frame(tables):
        found = _levels(tables)
    elif isinstance(tables, Mapping):
        found = {name: Labelled(table, row_labels(table)) for name, table in tables.items()}
    else:
        raise TypeError(
            "Views are made of a dict of tables by the names of the views, such as "
            f'{{"audio": X1, "text": X2}}; got {type(tables).__name__}.'
        )
    if not found:
        raise ValueError("At least one view is needed; there is none.")
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"Names of views are strings, got {name!r}.")
    return found


def holds_modalities(data: Any) -> bool:
    """Whether `data` is MuData or AnnData."""
    return _is_mapping(data, "mod") or _is_mapping(data, "obsm")


def _is_mapping(data: Any, attribute: str) -> bool:
    # Data frames have a method of the name "mod".
    return isinstance(getattr(data, attribute, None), Mapping)


def _column_groups(frame: Any, columns: Mapping[str, Any]) -> dict[str, Labelled]:
    labels = row_labels(frame)
    found = {}
    for name, some in columns.items():
        positions = column_positions(frame, _listed(some))
        found[name] = Labelled(safe_indexing(frame, positions, axis=1), labels)
    return found


def _listed(columns: Any) -> Any:
    return [columns] if isinstance(columns, str | int) else columns


def _levels(frame: Any) -> dict[str, Labelled]:
    """Views of a pandas frame with two-level columns."""
    levels = getattr(frame.columns, "nlevels", 1)
    if levels != 2:
        raise TypeError(
            "One data frame has several views if its columns have two levels of names; this one "
            f"has {levels}. Name the columns of each view: Views(frame, columns={{...}})."
        )
    first = frame.columns.get_level_values(0)
    return {
        name: Labelled(frame.loc[:, first == name].droplevel(0, axis=1), frame.index)
        for name in dict.fromkeys(first)
    }


def _annotated(data: Any) -> Labelled:
    """The table ``X`` of an AnnData, with the names of observations and variables."""
    if sparse.issparse(data.X):
        return Labelled(data.X, data.obs_names)
    return Labelled(data.to_df(), data.obs_names)


def _matrices_of(data: Any) -> dict[str, Labelled]:
    """Views of an AnnData: X, and its other tables of the same observations."""
    found = {} if data.X is None else {"X": _annotated(data)}
    for name in data.obsm:
        found[name] = Labelled(data.obsm[name], data.obs_names)
    return found
