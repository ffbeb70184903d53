"""What is a real number and what only looks like one, refused before it is converted.

NumPy would drop imaginary parts and masks, and count days, without an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._naming import naming

_NOT_REAL = {
    "c": "Complex data not supported: {what} holds complex numbers ({dtype}).",
    "M": "{what} holds dates ({dtype}), not numbers: subtract one of them and divide by a unit.",
    "m": "{what} holds lengths of time ({dtype}), not numbers: divide them by a unit.",
}


def check_numbers(table: Any, what: str, way_out: str = "Turn it into numbers first.") -> None:
    """Refuse complex numbers, dates, masked entries and text, and name where they are.

    Parameters
    ----------
    table : array-like, data frame or sparse matrix
    what : str
        Subject of the message, such as "X".
    way_out : str
        What else can be done about a column of a data frame that holds no numbers.
    """
    if is_frame(table):
        for position, name in enumerate(table.columns):
            column = table.iloc[:, position] if hasattr(table, "iloc") else table[name]
            if not _is_numeric(column.dtype):
                _check_column(column, f"column {name!r}", way_out)
        return
    if not hasattr(table, "dtype"):
        table = np.asarray(table)
    refuse_masked(table, what)
    refuse_kinds(table, what, "cMm")
    if isinstance(table, np.ndarray) and table.dtype.kind in "OUS":
        _check_objects(table, what)


def is_frame(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "dtypes")


def refuse_kinds(array: Any, what: str, kinds: str) -> None:
    """Refuse arrays of these kinds, of "c" complex numbers, "M" dates and "m" lengths of time."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None and kind in kinds:
        raise ValueError(_NOT_REAL[kind].format(what=what, dtype=array.dtype))


def refuse_masked(array: Any, what: str) -> None:
    """Refuse an array with masked entries, whose values NumPy would take for valid."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        place = np.argwhere(np.ma.getmaskarray(array))[0]
        raise ValueError(
            f"{what} has a masked entry at {_place(place)}: missing values have to be filled in "
            "(SimpleImputer) or left out first."
        )


def _check_column(column: Any, what: str, way_out: str) -> None:
    values = column.to_numpy()
    try:
        check_numbers(values, what)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{str(error).rstrip('.')}. {way_out}") from error


def _check_objects(array: np.ndarray, what: str) -> None:
    """Text and other objects, of which those that stand for a number are accepted."""
    try:
        array.astype(np.float64)
        return
    except (TypeError, ValueError):
        pass
    for place, value in np.ndenumerate(array):
        with naming(f"{what} does not hold numbers only, at {_place(place)}"):
            # Complex numbers among other objects are refused here, too.
            np.asarray(value, dtype=object).astype(np.float64)


def _place(place: Any) -> str:
    return ", ".join(
        f"{name} {k}" for name, k in zip(("row", "column", "layer"), place, strict=False)
    )


def _is_numeric(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)
    if kind is None:  # polars has types of its own, categories of pandas have objects
        return bool(getattr(dtype, "is_numeric", lambda: False)())
    return kind in "biuf"
