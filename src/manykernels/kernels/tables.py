"""Tables of numbers: which of their columns a kernel compares, and whether they are numbers.

Complex numbers, masked entries and dates are refused before the table is converted: NumPy would
drop imaginary parts and masks, and count days, without an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from .._sklearn import get_column_indices, safe_indexing

# How many column names an error message lists.
_NAMES_SHOWN = 20

_NOT_REAL = {
    # As scikit-learn begins it.
    "c": "Complex data not supported: {what} holds complex numbers ({dtype}), not real numbers.",
    "M": "{what} holds dates ({dtype}), not real numbers: subtract one and divide by a unit.",
    "m": "{what} holds differences of times ({dtype}), not real numbers: divide by a unit.",
}


@contextmanager
def naming(culprit: str) -> Iterator[None]:
    """Put `culprit` in front of the message of any error raised inside.

    The same error is raised again, so that its type and traceback stay.
    """
    try:
        yield
    except Exception as error:
        error.args = (f"{culprit}: {error}", *error.args[1:])
        raise


def is_frame(table: Any) -> bool:
    """Whether `table` is a data frame, of whichever library."""
    return hasattr(table, "columns") and hasattr(table, "dtypes")


# -- columns -------------------------------------------------------------------------------


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
    """The columns of `X` asked for, in two dimensions and in the container `X` came in."""
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


# -- numbers -------------------------------------------------------------------------------


def check_numbers(table: Any, what: str, way_out: str = "") -> None:
    """Refuse complex numbers, dates, masked entries and text, and name where they are.

    Parameters
    ----------
    table : array-like, data frame or sparse matrix
    what : str
        Subject of the message, such as "Kernel 'a'".
    way_out : str
        What can be done about a column of a data frame that holds no numbers.
    """
    if is_frame(table):
        _check_columns(table, what, way_out)
        return
    refuse_kinds(np.asarray(table) if isinstance(table, list | tuple) else table, what, "cMm")
    refuse_masked(table, what)
    if isinstance(table, np.ndarray) and table.dtype.kind in "OUS":
        _check_objects(table, what)


def refuse_kinds(array: Any, what: str, kinds: str) -> None:
    """Refuse arrays of these kinds: "c" complex numbers, "M" dates, "m" differences of times."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None and kind in kinds:
        raise ValueError(_NOT_REAL[kind].format(what=what, dtype=array.dtype))


def refuse_masked(array: Any, what: str) -> None:
    """Refuse an array with masked entries, whose values NumPy would take for valid."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        place = _place(np.argwhere(np.ma.getmaskarray(array))[0])
        raise ValueError(
            f"{what} has a masked entry at {place}: missing values have to be filled in or left "
            "out first."
        )


def real_array(table: Any, what: str, dtype: Any = None) -> np.ndarray:
    """`table` as an array of floating-point numbers, float32 and float64 as they are.

    Whatever is wrong with it is a ValueError.
    """
    try:
        check_numbers(table, what)
        array = np.asarray(table)
        check_numbers(array, what)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if dtype is None:
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    try:
        return np.asarray(array, dtype=np.dtype(dtype).newbyteorder("="))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} does not hold numbers only: {error}") from error


def _check_columns(frame: Any, what: str, way_out: str) -> None:
    for position, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if _is_numeric(dtype):
            continue
        column = frame.iloc[:, position] if hasattr(frame, "iloc") else frame[name]
        try:
            check_numbers(column.to_numpy(), f"{what}: column {name!r} ({dtype})")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{error} {way_out}".rstrip()) from error


def _check_objects(array: np.ndarray, what: str) -> None:
    """Accept text and other objects that stand for numbers, and name the first that does not."""
    try:
        array.astype(np.float64)
        return
    except (TypeError, ValueError):
        pass
    for place, value in np.ndenumerate(array):
        try:
            np.asarray(value, dtype=object).astype(np.float64)
        except (TypeError, ValueError) as error:
            message = f"{what} does not hold numbers only: {error}, at {_place(place)}."
            raise type(error)(message) from error


def _place(position: Any) -> str:
    return ", ".join(map(str, position))


def _is_numeric(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars has types of its own
        return bool(dtype.is_numeric())
    return dtype.kind in "biuf"
