"""Tables: the columns that a kernel compares, and whether they hold numbers.

Complex numbers, masked entries and dates are refused before a table is converted to float64:
NumPy would drop imaginary parts and masks, and turn dates into numbers, without an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from ..utils.sklearn import get_column_indices, safe_indexing

# How many column names an error message lists.
_NAMES_SHOWN = 20

_NOT_REAL = {
    # The first words are those of scikit-learn's message.
    "c": "Complex data not supported: {what} holds complex numbers ({dtype}), not real numbers.",
    "M": "{what} holds dates ({dtype}), not real numbers: subtract one and divide by a unit.",
    "m": "{what} holds differences of times ({dtype}), not real numbers: divide by a unit.",
}


@contextmanager
def naming(culprit: str) -> Iterator[None]:
    """Put `culprit`, if any, in front of the message of any error raised inside."""
    try:
        yield
    except Exception as error:
        if culprit:
            error.args = (f"{culprit}: {error}", *error.args[1:])
        raise


def is_frame(table: Any) -> bool:
    """Whether `table` is a data frame of any library."""
    # Of the class: a table makes the list of all its types whenever it is asked for them.
    return hasattr(table, "columns") and hasattr(type(table), "dtypes")


def copied(table: Any) -> Any:
    """A copy of a table of any kind."""
    return table.clone() if hasattr(table, "clone") else table.copy()


def is_missing(value: Any) -> bool:
    """Whether a value of any kind is None or not a number."""
    if value is None:
        return True
    unequal = value != value
    # True for nan and NaT, which differ from themselves; a comparison of pandas.NA is pandas.NA.
    return unequal is value or (isinstance(unequal, bool | np.bool_) and bool(unequal))


def stands_for_number(entry: Any) -> bool:
    """Whether a value, such as a text, can be converted to a number."""
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


class SharedTable:
    """A table `X`, and what several kernels need of it, each made once.

    A union passes it to its kernels in the place of the table. They find in it columns that were
    selected, checked or transformed for another kernel.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._made: dict[Any, Any] = {}

    @classmethod
    def of(cls, X: Any) -> SharedTable:
        """`X` itself if it is shared already."""
        return X if isinstance(X, cls) else cls(X)

    @property
    def shape(self) -> Any:
        return self.X.shape

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returned when it was called first for this key."""
        if key not in self._made:
            # One of several threads is the first.
            self._made.setdefault(key, make())
        return self._made[key]


def refuse_repeated_columns(frame: Any) -> None:
    """Refuse a data frame with a name that several of its columns have."""
    names = list(frame.columns)
    if len(set(names)) < len(names):
        name, _ = Counter(names).most_common(1)[0]
        raise ValueError(
            f"several columns are called {name!r}: give them different names, or keep one of "
            "each, frame.loc[:, ~frame.columns.duplicated()]."
        )


def resolve_columns(columns: Any, X: Any) -> Any:
    """The columns that a callable such as `make_column_selector` chooses; else `columns`."""
    return columns(SharedTable.of(X).X) if callable(columns) else columns


def column_positions(X: Any, columns: Any) -> list[int]:
    """Positions in `X` of `columns`: names, integers, a slice or a mask (None: all)."""
    shared = SharedTable.of(X)
    X = as_table(shared.X)
    columns = slice(None) if columns is None else resolve_columns(columns, X)
    if isinstance(columns, slice) and not isinstance(columns.start or columns.stop, str):
        return list(range(X.shape[1])[columns])
    if (found := _positions_of_list(shared, columns)) is not None:
        return found
    try:
        return get_column_indices(X, columns)
    except (ValueError, IndexError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"columns={columns!r} cannot be selected: {reason}. X has {_existing_columns(X)}."
        ) from error


def _positions_of_list(table: SharedTable, columns: Any) -> list[int] | None:
    """Positions of a list of names, or of positions, that are all there; None for anything else.

    scikit-learn looks them up one by one, which takes minutes for tens of thousands of columns.
    """
    listed = columns.tolist() if isinstance(columns, np.ndarray) else columns
    if not isinstance(listed, list) or not listed:
        return None
    kinds, width = set(map(type, listed)), as_table(table.X).shape[1]
    if kinds <= {int, np.int64, np.int32}:
        return list(map(int, listed)) if min(listed) >= 0 and max(listed) < width else None
    if not is_frame(table.X) or not all(issubclass(kind, str) for kind in kinds):
        return None
    places = table.once("places", lambda: _places(table.X))
    found = list(map(places.get, listed))
    return None if None in found or len(places) < width else found


def _places(frame: Any) -> dict[Any, int]:
    """Position of every column by its name."""
    names = frame.columns
    # Iterating over an index of pandas takes ten times as long as its list.
    return {
        name: j for j, name in enumerate(names.tolist() if hasattr(names, "tolist") else names)
    }


def select_columns(X: Any, columns: Any) -> Any:
    """Some columns of `X`, in two dimensions and in the same kind of container."""
    shared = SharedTable.of(X)
    if columns is None:
        return shared.X
    found = column_positions(shared, columns)
    if found and found == list(range(found[0], found[0] + len(found))):
        # Neighbours are a view of most tables, others a copy.
        return safe_indexing(as_table(shared.X), slice(found[0], found[-1] + 1), axis=1)
    return safe_indexing(as_table(shared.X), np.array(found, dtype=np.intp), axis=1)


def as_table(X: Any) -> Any:
    """`X` in two dimensions; lists become arrays, of objects if not all entries are numbers."""
    if sparse.issparse(X):
        return X.tocsr()
    table = X if hasattr(X, "shape") else np.asarray(X)
    if table is not X and table.dtype.kind in "US":
        # NumPy has turned numbers between texts into texts.
        table = np.asarray(X, dtype=object)
    if len(table.shape) != 2:
        raise ValueError(
            f"columns are selected from a two-dimensional X, got shape {tuple(table.shape)}."
        )
    return table


def column_label(X: Any, position: int) -> str:
    """What error messages call a column of the table `X` of selected columns."""
    return f"column {X.columns[position]!r}" if is_frame(X) else f"selected column {position}"


def _existing_columns(X: Any) -> str:
    names = getattr(X, "columns", None)
    if names is None:
        return f"columns 0 to {X.shape[1] - 1} and no column names"
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    return f"the columns {shown}" + (", …" if len(names) > _NAMES_SHOWN else "")


def check_numbers(table: Any, what: str, way_out: str = "") -> None:
    """Refuse complex numbers, dates, masked entries and text in a table of any kind.

    `what`, such as "Kernel 'a'", is the subject of the error message. For text, and for a column
    of a data frame, the message ends with `way_out`, what can be done about it.
    """
    if is_frame(table):
        _check_columns(table, what, way_out)
        return
    refuse_kinds(np.asarray(table) if isinstance(table, list | tuple) else table, what, "cMm")
    refuse_masked(table, what)
    if isinstance(table, np.ndarray) and table.dtype.kind in "OUSV":
        _check_objects(table, what, way_out)


def refuse_kinds(array: Any, what: str, kinds: str) -> None:
    """Refuse arrays of some kinds: "c" complex numbers, "M" dates, "m" differences of times."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None and kind in kinds:
        raise ValueError(_NOT_REAL[kind].format(what=what, dtype=array.dtype))


def refuse_masked(array: Any, what: str) -> None:
    """Refuse an array with masked entries, which NumPy would convert as if they were valid."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        place = _place(np.argwhere(np.ma.getmaskarray(array))[0])
        raise ValueError(
            f"{what} has a masked entry at {place}: missing values have to be filled in or left "
            "out first."
        )


def refuse_not_finite(table: Any, what: str) -> None:
    """Refuse a table of numbers with an infinite or missing one: NaN, in data frames None, NA."""
    refuse_infinite(table, what)
    if place := _first_place(table, np.isnan):
        raise ValueError(
            f"{what} has a missing value (NaN) at {place}: fill it in, or let the kernel do so, "
            "as in RBF().after(make_pipeline(SimpleImputer(), StandardScaler()))."
        )


def refuse_infinite(table: Any, what: str) -> None:
    """Refuse a table of numbers with an infinite one."""
    if place := _first_place(table, np.isinf):
        raise ValueError(
            f"{what} has an infinite value (inf) at {place}: correct it, or leave the row out."
        )


def _first_place(table: Any, wrong: Callable[[np.ndarray], np.ndarray]) -> str:
    """Row and column of the first entry that is wrong, or nothing if none is."""
    if sparse.issparse(table):
        entries = table.tocoo()
        found = wrong(entries.data)
        places = np.transpose([entries.row[found], entries.col[found]])
    else:
        places = np.argwhere(wrong(as_numbers(table)))
    return f"row {places[0, 0]}, {column_label(table, places[0, 1])}" if len(places) else ""


def as_numbers(table: Any) -> np.ndarray:
    """The entries of a table that is not sparse; NaN where data frames have None or NA."""
    if is_frame(table) and hasattr(table, "iloc"):
        return table.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas.NA is no number
    return np.asarray(table, dtype=np.float64)


def real_array(table: Any, what: str) -> np.ndarray:
    """`table` as a float32 array if it is one, else as float64; ValueError if not numbers."""
    try:
        check_numbers(table, what)
        array = np.asarray(table)
        check_numbers(array, what)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return np.asarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)


def array_if_plain(table: Any) -> Any:
    """A data frame whose columns are arrays of numbers as one array; anything else as it is.

    scikit-learn asks every column for its type, which takes seconds for tens of thousands.
    """
    if is_frame(table) and hasattr(table, "to_numpy"):
        types = set(table.dtypes)
        if types and all(isinstance(one, np.dtype) and one.kind in "biuf" for one in types):
            return table.to_numpy(dtype=np.float64)
    return table


def _check_columns(frame: Any, what: str, way_out: str) -> None:
    if all(map(is_numeric, set(frame.dtypes))):
        return
    for position, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if is_numeric(dtype):
            continue
        column = frame.iloc[:, position] if hasattr(frame, "iloc") else frame[name]
        try:
            check_numbers(column.to_numpy(), f"{what}: column {name!r} ({dtype})")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{error} {way_out}".rstrip()) from error


def is_numeric(dtype: Any) -> bool:
    """Whether a column of this type holds numbers or truth values."""
    # polars has types of its own.
    return bool(dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "biuf")


def _check_objects(array: np.ndarray, what: str, way_out: str) -> None:
    """Accept text and objects that stand for numbers, and name the first that does not."""
    try:
        array.astype(np.float64)
        return
    except (TypeError, ValueError):
        pass
    for place, value in np.ndenumerate(array):
        try:
            np.asarray(value, dtype=object).astype(np.float64)
        except (TypeError, ValueError) as error:
            message = f"{what} does not hold numbers only: {error}, at {_place(place)}. {way_out}"
            raise type(error)(message.rstrip()) from error


def _place(position: Any) -> str:
    return ", ".join(map(str, position))


# -- The table of one view: what is accepted, and which of its rows hold nothing ------------------


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
