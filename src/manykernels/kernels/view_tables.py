"""The table of one view: what is accepted, and which of its rows hold nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .tables import (
    is_frame,
    is_missing,
    refuse_masked,
    refuse_repeated_columns,
    stands_for_number,
)


def as_view(table: Any) -> Any:
    """A data frame, csr matrix or array of rows; texts and other objects in one dimension."""
    if table is None:
        raise ValueError("it is None; a table is needed.")
    if sparse.issparse(table):
        return table.tocsr()
    if hasattr(table, "collect_schema") and not hasattr(table, "shape"):
        raise TypeError("it is lazy, without rows so far: pass table.collect().")
    if is_frame(table):
        if table.shape[1] == 0:
            raise ValueError("Found array with 0 feature(s): the table has no columns.")
        refuse_repeated_columns(table)
        return table
    refuse_masked(table, "it")
    if hasattr(table, "to_frame") and getattr(table.dtype, "kind", "O") in "biuf":
        # A Series of numbers.
        return table.to_frame()
    array = _as_array(table)
    if array.ndim == 1 and array.dtype.kind in "biufcMm":
        return array[:, None]
    if array.ndim not in (1, 2):
        raise ValueError(
            f"a table of rows and columns is needed, got an array of shape {array.shape}."
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError("Found array with 0 feature(s): the table has no columns.")
    return array


def _as_array(table: Any) -> np.ndarray:
    if isinstance(table, np.ndarray):
        return table if table.dtype.kind not in "US" else table.astype(object)
    items = list(table)
    if not any(isinstance(item, list | tuple | np.ndarray | int | float) for item in items):
        # Texts, graphs and other objects, one per sample.
        return _objects(items)
    try:
        array = np.asarray(items)
    except ValueError:
        # Objects of differing lengths, such as sequences of words.
        return _objects(items)
    return array if array.dtype.kind not in "US" else np.asarray(items, dtype=object)


def entries_of_one_column(table: Any, why: str) -> np.ndarray:
    """Single objects as they are, or the entries of a table of one column.

    `why`, such as "the transformer takes one text per row", begins the message about others.
    """
    rows = as_view(table)
    if len(rows.shape) == 2:
        if rows.shape[1] != 1:
            raise ValueError(
                f"{why}, but there are {rows.shape[1]} columns: choose one, as by "
                "kernel.on('text')."
            )
        rows = np.asarray(rows).ravel()
    return rows


def column_of_strings(table: Any) -> np.ndarray | None:
    """A list, Series or array of strings as a new table of one column; None for anything else.

    Some may be missing. An array of one column of texts that all stand for numbers holds numbers.
    """
    if isinstance(table, np.ndarray):
        if table.dtype.kind not in "OUT" or table.shape[1:] not in ((), (1,)):
            return None
    elif not isinstance(table, list | tuple) and len(getattr(table, "shape", ())) != 1:
        return None
    in_column = isinstance(table, np.ndarray) and table.ndim == 2
    entries = list(table[:, 0] if in_column else table)
    if not all(isinstance(entry, str) or is_missing(entry) for entry in entries):
        return None
    known = [entry for entry in entries if isinstance(entry, str)]
    if not known or (in_column and all(map(stands_for_number, known))):
        return None
    return _objects(entries)[:, None]


def _objects(items: list[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def absent_rows(table: Any) -> np.ndarray:
    """Which rows hold nothing but missing values, (n_rows,)."""
    n_rows = table.shape[0]
    if sparse.issparse(table) or n_rows == 0:
        return np.zeros(n_rows, dtype=bool)
    absent = np.ones(n_rows, dtype=bool)
    for column in _columns(table):
        rows = np.flatnonzero(absent)
        absent[rows] = _missing(column[rows])
        # Most tables are known to be complete after their first column.
        if not absent.any():
            break
    return absent


def _columns(table: Any) -> Iterator[np.ndarray]:
    if len(table.shape) == 1:
        yield table
        return
    for position in range(table.shape[1]):
        if hasattr(table, "iloc"):
            yield table.iloc[:, position].to_numpy()
        elif is_frame(table):
            yield table[table.columns[position]].to_numpy()
        else:
            yield table[:, position]


def _missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "Mm":
        return np.isnat(values)
    if values.dtype == object:
        return np.array([is_missing(value) for value in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)
