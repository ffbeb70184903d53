"""Choosing columns of arrays, dataframes and sparse matrices with one vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._sklearn import get_column_indices, safe_indexing

_NAMES_SHOWN = 20


def resolve_columns(columns: Any, X: Any) -> Any:
    """Columns chosen by a callable such as `make_column_selector`; others as they are."""
    return columns(X) if callable(columns) else columns


def column_positions(X: Any, columns: Any) -> list[int]:
    """Positions in `X` of `columns`: names, integers, a slice or a mask (None: all).

    Raises
    ------
    ValueError
        Naming the columns asked for and those that exist.
    """
    X = _as_table(X)
    columns = resolve_columns(columns, X)
    if columns is None:
        columns = slice(None)
    if isinstance(columns, slice) and not isinstance(columns.start or columns.stop, str):
        return list(range(X.shape[1])[columns])
    try:
        return get_column_indices(X, columns)
    except (ValueError, IndexError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"columns={columns!r} cannot be selected: {reason}. X has {_existing_columns(X)}."
        ) from error


def select_columns(X: Any, columns: Any) -> Any:
    """Two-dimensional part of `X` made of `columns`, in the container `X` came in."""
    if columns is None:
        return X
    X = _as_table(X)
    return safe_indexing(X, column_positions(X, columns), axis=1)


def _as_table(X: Any) -> Any:
    if sparse.issparse(X):
        return X.tocsr()
    table = X if hasattr(X, "shape") else np.asarray(X)
    if len(table.shape) != 2:
        raise ValueError(
            f"columns are selected from a two-dimensional X, got shape {tuple(table.shape)}."
        )
    return table


def _existing_columns(X: Any) -> str:
    names = getattr(X, "columns", None)
    if names is None:
        return f"columns 0 to {X.shape[1] - 1} and no column names"
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    return f"the columns {shown}" + (", …" if len(names) > _NAMES_SHOWN else "")
