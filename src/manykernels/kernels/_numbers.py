"""What is a real number and what only looks like one, refused before it is converted.

NumPy would drop imaginary parts and masks, and count days, without an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._samples import is_frame

_NOT_REAL = {"c": "complex numbers", "M": "dates", "m": "differences of times"}


def check_numbers(table: Any, what: str) -> None:
    """Refuse complex numbers, dates and masked entries, and name columns that hold no numbers.

    Parameters
    ----------
    table : array-like, data frame or sparse matrix
    what : str
        Subject of the message, such as "Kernel 'a'".
    """
    if is_frame(table):
        _check_columns(table, what)
        return
    kind = getattr(getattr(table, "dtype", None), "kind", None)
    if kind in _NOT_REAL:
        # The words that scikit-learn has for it, and its checks of estimators look for.
        known = " Complex data not supported." if kind == "c" else ""
        raise ValueError(
            f"{what} holds {_NOT_REAL[kind]} ({table.dtype}), not real numbers.{known}"
        )
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        place = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(table))[0]))
        raise ValueError(
            f"{what} has a masked entry at {place}: missing values have to be filled in or left "
            "out first."
        )


def real_array(table: Any, what: str, dtype: Any = None) -> np.ndarray:
    """`table` as an array of floating-point numbers, float32 and float64 as they are."""
    check_numbers(table, what)
    array = np.asarray(table)
    check_numbers(array, what)
    if dtype is None:
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    try:
        return np.asarray(array, dtype=np.dtype(dtype).newbyteorder("="))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} does not hold numbers only: {error}") from error


def _check_columns(frame: Any, what: str) -> None:
    for position, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if _is_numeric(dtype):
            continue
        column = frame.iloc[:, position] if hasattr(frame, "iloc") else frame[name]
        values = column.to_numpy()
        check_numbers(values, f"{what}: column {name!r}")
        try:
            np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{what}: column {name!r} ({dtype}) does not hold numbers only: {error}"
            ) from error


def _is_numeric(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars has types of its own
        return bool(dtype.is_numeric())
    return dtype.kind in "biuf"
