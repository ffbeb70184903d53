"""Selection of columns of tables, and checks that they hold numbers.

Complex numbers, masked entries and dates raise an error before a table is converted to float64:
NumPy would silently drop imaginary parts and masks, and convert dates to numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from ..utils.sklearn import get_column_indices, safe_indexing

#: Selection of columns: names, positions, a slice, a mask or a callable; None means all.
Columns = str | int | slice | Sequence[Any] | np.ndarray | Callable[[Any], Any] | None

#: Array, sparse matrix, data frame of pandas or polars, list, Dask collection, or Views of
#: several tables. They have no common base class: functions that use attributes of a table check
#: its type first, or take Any.
Table: TypeAlias = object


class DataFrame(Protocol):
    """Data frame of pandas or polars."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def columns(self) -> Any: ...
    @property
    def dtypes(self) -> Any: ...
    def to_numpy(self, *args: Any, **options: Any) -> np.ndarray: ...
    def __getitem__(self, key: Any, /) -> Any: ...


#: Validated numbers of a table, dense or sparse.
Matrix = np.ndarray | sparse.csr_array | sparse.csr_matrix

# Number of column names listed in an error message.
_NAMES_SHOWN = 20

_NOT_REAL = {
    # The first words are those of scikit-learn's message.
    "c": "Complex data not supported: {what} holds complex numbers ({dtype}), not real numbers.",
    "M": "{what} holds dates ({dtype}), not real numbers: subtract one and divide by a unit.",
    "m": "{what} holds differences of times ({dtype}), not real numbers: divide by a unit.",
}


@contextmanager
def naming(prefix: str) -> Iterator[None]:
    """Prepend `prefix` to the message of any error raised inside."""
    try:
        yield
    except Exception as error:
        if prefix:
            error.args = (f"{prefix}: {error}", *error.args[1:])
        raise


def is_frame(table: object) -> TypeGuard[DataFrame]:
    """Return True if `table` is a data frame of any library."""
    # The class is inspected, since the property `dtypes` of a table builds a list.
    return hasattr(table, "columns") and hasattr(type(table), "dtypes")


def native_frame(table: Any) -> Any:
    """Return an Arrow table as a data frame of pandas, and the frame in one of narwhals.

    Anything else is returned unchanged.
    """
    library = type(table).__module__.partition(".")[0]
    if library == "narwhals" and hasattr(table, "to_native"):
        return native_frame(table.to_native())
    if library == "pyarrow" and hasattr(table, "to_pandas"):
        return table.to_pandas()
    return table


def copied(table: Any) -> Any:
    """Return a copy of a table of any kind."""
    return table.clone() if hasattr(table, "clone") else table.copy()


def is_missing(value: object) -> bool:
    """Return True if a value of any kind is None, NaN, NaT or NA."""
    if value is None:
        return True
    unequal = value != value
    # nan and NaT differ from themselves; a comparison with pandas.NA returns pandas.NA.
    return bool(unequal) if isinstance(unequal, bool | np.bool_) else unequal is value


def stands_for_number(entry: Any) -> bool:
    """Return True if a value, such as a text, can be converted to a number."""
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


class SharedTable:
    """Table `X` with a cache of results that several kernels share.

    A union passes it to its kernels instead of the table, so that columns are selected, checked
    and transformed only once.
    """

    def __init__(self, X: Table) -> None:
        self.X: Any = X
        self._made: dict[Any, Any] = {}

    @classmethod
    def of(cls, X: object) -> SharedTable:
        """Wrap `X`, unless it is a SharedTable already."""
        return X if isinstance(X, cls) else cls(X)

    @property
    def shape(self) -> Any:
        return self.X.shape

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """Return the cached result for `key`; call `make` the first time."""
        if key not in self._made:
            # setdefault, since several threads may get here.
            self._made.setdefault(key, make())
        return self._made[key]


def refuse_repeated_columns(frame: DataFrame) -> None:
    """Raise an error if several columns of a data frame have the same name."""
    refuse_repeated_names(
        list(frame.columns), ", or keep one of each, frame.loc[:, ~frame.columns.duplicated()]"
    )


def refuse_repeated_names(names: list[Any], otherwise: str = "") -> None:
    """Raise an error if a name of a column occurs twice."""
    if len(set(names)) < len(names):
        name, _ = Counter(names).most_common(1)[0]
        raise ValueError(
            f"several columns are called {name!r}: give them different names{otherwise}."
        )


def resolve_columns(columns: Columns, X: object) -> Any:
    """Return the result of a callable such as `make_column_selector`, else `columns`."""
    return columns(SharedTable.of(X).X) if callable(columns) else columns


def column_positions(X: Any, columns: Columns) -> list[int]:
    """Return the positions in `X` of `columns`: names, integers, a slice or a mask (None: all)."""
    shared = SharedTable.of(X)
    X = as_table(shared.X)
    columns = slice(None) if columns is None else resolve_columns(columns, X)
    if isinstance(columns, slice) and not isinstance(columns.start or columns.stop, str):
        return list(range(X.shape[1])[columns])
    if (positions := _positions_of_list(shared, columns)) is not None:
        return positions
    try:
        return get_column_indices(X, columns)
    except (ValueError, IndexError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"columns={columns!r} cannot be selected: {reason}. X has {_existing_columns(X)}."
        ) from error


def _positions_of_list(table: SharedTable, columns: Columns) -> list[int] | None:
    """Return the positions of a list of existing names or positions; None for anything else.

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
    positions = list(map(places.get, listed))
    return None if None in positions or len(places) < width else positions


def _places(frame: DataFrame) -> dict[Any, int]:
    """Return the position of every column by its name."""
    names = frame.columns
    # Iterating over a pandas index takes ten times as long as over its list.
    return {
        name: j for j, name in enumerate(names.tolist() if hasattr(names, "tolist") else names)
    }


def select_columns(X: object, columns: Columns) -> Any:
    """Return some columns of `X`, in two dimensions and in the same type of container."""
    shared = SharedTable.of(X)
    if columns is None:
        return shared.X
    positions = column_positions(shared, columns)
    if positions and positions == list(range(positions[0], positions[0] + len(positions))):
        # A slice of neighbours is not copied in most tables.
        return safe_indexing(as_table(shared.X), slice(positions[0], positions[-1] + 1), axis=1)
    return safe_indexing(as_table(shared.X), np.array(positions, dtype=np.intp), axis=1)


def as_table(X: Any) -> Any:
    """Convert `X` to two dimensions; lists become arrays, of objects if not all numbers."""
    if sparse.issparse(X):
        return X.tocsr()
    X = native_frame(X)
    table = X if hasattr(X, "shape") else np.asarray(X)
    if table is not X and table.dtype.kind in "US":
        # NumPy has converted numbers among texts to texts.
        table = np.asarray(X, dtype=object)
    if len(table.shape) != 2:
        raise ValueError(
            f"columns are selected from a two-dimensional X, got shape {tuple(table.shape)}."
        )
    return table


def column_label(X: Table, position: int) -> str:
    """Return the name of a column of the table `X` of selected columns in error messages."""
    return f"column {X.columns[position]!r}" if is_frame(X) else f"selected column {position}"


def _existing_columns(X: Any) -> str:
    names = getattr(X, "columns", None)
    if names is None:
        return f"columns 0 to {X.shape[1] - 1} and no column names"
    shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
    return f"the columns {shown}" + (", …" if len(names) > _NAMES_SHOWN else "")


def check_numbers(table: object, what: str, way_out: str = "") -> None:
    """Raise an error for complex numbers, dates, masked entries and text in a table.

    `what`, such as "Kernel 'a'", is the subject of the error message. For text, and for a column
    of a data frame, the message ends with the advice `way_out`.
    """
    if is_frame(table):
        _check_columns(table, what, way_out)
        return
    refuse_kinds(np.asarray(table) if isinstance(table, list | tuple) else table, what, "cMm")
    refuse_masked(table, what)
    if isinstance(table, np.ndarray) and table.dtype.kind in "OUSV":
        _check_objects(table, what, way_out)


def refuse_kinds(array: Any, what: str, kinds: str) -> None:
    """Raise an error for arrays of some kinds: "c" complex, "M" dates, "m" time differences."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None and kind in kinds:
        raise ValueError(_NOT_REAL[kind].format(what=what, dtype=array.dtype))


def refuse_masked(array: object, what: str) -> None:
    """Raise an error for masked entries, which NumPy would convert as if they were valid."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        place = _place(np.argwhere(np.ma.getmaskarray(array))[0])
        raise ValueError(
            f"{what} has a masked entry at {place}: missing values have to be filled in or left "
            "out first."
        )


def refuse_not_finite(table: object, what: str) -> None:
    """Raise an error for infinite or missing numbers: NaN, in data frames also None and NA."""
    refuse_infinite(table, what)
    if place := _first_place(table, np.isnan):
        raise ValueError(
            f"{what} has a missing value (NaN) at {place}: impute it, or let the kernel do so, "
            "as in RBF().after(make_pipeline(SimpleImputer(), StandardScaler()))."
        )


#: Squares of larger numbers, which kernels compute, are infinite.
LARGEST = 1e150


def refuse_infinite(table: object, what: str) -> None:
    """Raise an error for infinite numbers in a table."""
    if place := _first_place(table, np.isinf):
        raise ValueError(
            f"{what} has an infinite value (inf) at {place}: correct it, or leave the row out."
        )


def refuse_huge(table: object, what: str) -> None:
    """Raise an error for numbers that are finite, but too large for the default kernels."""
    if place := _first_place(table, lambda entries: np.abs(entries) > LARGEST):
        raise ValueError(
            f"{what} has a number at {place} that is too large to compute with (beyond "
            f"{LARGEST:g}): correct it, or choose another unit."
        )


def _first_place(table: Any, wrong: Callable[[np.ndarray], np.ndarray]) -> str:
    """Return the row and column of the first wrong entry as text; empty if there is none."""
    if sparse.issparse(table):
        entries = table.tocoo()
        bad = wrong(entries.data)
        places = np.transpose([entries.row[bad], entries.col[bad]])
    else:
        places = np.argwhere(wrong(as_numbers(table)))
    return f"row {places[0, 0]}, {column_label(table, places[0, 1])}" if len(places) else ""


def as_numbers(table: Table) -> np.ndarray:
    """Return the entries of a dense table as float64; None and NA become NaN."""
    if is_frame(table) and hasattr(table, "iloc"):
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(table, dtype=np.float64)


def real_array(table: object, what: str) -> np.ndarray:
    """Return `table` as an array of float32 if it is one, else of float64."""
    try:
        check_numbers(table, what)
        array = np.asarray(table)
        check_numbers(array, what)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return np.asarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)


def array_if_plain(table: Table) -> Any:
    """Convert a data frame of NumPy numbers to an array; return anything else unchanged.

    scikit-learn inspects every column, which takes seconds for tens of thousands of columns.
    """
    if is_frame(table) and hasattr(table, "to_numpy"):
        types = set(table.dtypes)
        if types and all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in types):
            return table.to_numpy(dtype=np.float64)
    return table


def _check_columns(frame: DataFrame, what: str, way_out: str) -> None:
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
    """Return True if a column of this dtype holds numbers or booleans."""
    # polars dtypes have a method, NumPy and pandas dtypes a kind.
    return bool(dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "biuf")


def _check_objects(array: np.ndarray, what: str, way_out: str) -> None:
    """Raise an error that names the first entry that cannot be converted to a number."""
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


def _place(position: Iterable[int]) -> str:
    return ", ".join(map(str, position))


# -- Tables of views, and their missing rows ------------------------------------------------------


def as_view(table: Any) -> Any:
    """Return a data frame, csr matrix or array; texts and other objects in one dimension."""
    if table is None:
        raise ValueError("it is None; a table is needed.")
    if sparse.issparse(table):
        return table.tocsr()
    table = native_frame(table)
    if hasattr(table, "collect_schema") and not hasattr(table, "shape"):
        raise TypeError("it is a lazy frame without rows: pass table.collect().")
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
    if hasattr(table, "__dlpack__"):
        # An array of another library, such as PyTorch.
        return _as_array(np.asarray(table))
    items = list(table)
    if not any(isinstance(item, list | tuple | np.ndarray | int | float) for item in items):
        # Texts, graphs and other objects, one per sample.
        return object_array(items)
    try:
        array = np.asarray(items)
    except ValueError:
        # Objects of differing lengths, such as sequences of words.
        return object_array(items)
    return array if array.dtype.kind not in "US" else np.asarray(items, dtype=object)


def entries_of_one_column(table: object, why: str) -> np.ndarray:
    """Return single objects unchanged, or the entries of a table with one column.

    `why`, such as "the transformer takes one text per row", begins the error message.
    """
    rows = as_view(table)
    if len(rows.shape) == 2:
        if rows.shape[1] != 1:
            raise ValueError(
                f"{why}, but there are {rows.shape[1]} columns: choose one, as in "
                "kernel.on('text')."
            )
        rows = np.asarray(rows).ravel()
    return rows


def column_of_strings(table: Any) -> np.ndarray | None:
    """Convert a list, Series or array of strings to a table of one column; else return None.

    Some strings may be missing. An array of one column of texts that are all numbers is numeric.
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
    return object_array(entries)[:, None]


def object_array(items: list[Any]) -> np.ndarray:
    """Return items of any kind as a one-dimensional array of objects."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def absent_rows(table: Any) -> np.ndarray:
    """Return a mask of the rows with missing values only, (n_rows,)."""
    n_rows = table.shape[0]
    if sparse.issparse(table) or n_rows == 0:
        return np.zeros(n_rows, dtype=bool)
    absent = np.ones(n_rows, dtype=bool)
    for column in _columns(table):
        rows = np.flatnonzero(absent)
        absent[rows] = _missing(column[rows])
        # In most tables this holds after the first column.
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
