"""Replacements in a file for values that skops does not store, or not compactly.

skops writes some hundred bytes for every text in a list, and converts keys of dicts to texts: 1
and "1" are equal in JSON. Other replacements are for arrays of objects and data frames.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ..kernels.operators import StoredArray
from ..utils.storable import storable
from .archive import ModelFileError, json_size

#: Lists and dicts with more entries than this are written as one text or array.
LONG = 32
# Types that JSON preserves, without their subclasses.
_PLAIN = (str, int, float, bool, type(None))
# Bytes of an array besides its entries, and of a NumPy scalar, each in a list.
_ARRAY, _NUMBER = 150, 40
# Python texts may contain lone surrogates, which UTF-8 excludes.
_ENCODING = ("utf-8", "surrogatepass")


def are_plain(values: Sequence[Any]) -> bool:
    """Return whether :class:`Entries` can store these values."""
    kinds = set(map(type, values))
    return kinds <= set(_PLAIN) or (len(kinds) == 1 and issubclass(kinds.pop(), np.generic))


@storable
@dataclass(frozen=True)
class Entries:
    """A list of texts, numbers, booleans and None, or of NumPy scalars of one type.

    `text` is JSON as bytes, or None if `numbers` is an array.
    """

    text: np.ndarray | None
    numbers: np.ndarray | None = None

    @classmethod
    def of(cls, values: Sequence[Any]) -> Entries:
        if len(values) and isinstance(values[0], np.generic):
            return cls(None, np.array(values))
        written = json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
        return cls(np.frombuffer(written.encode(*_ENCODING), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.restored())

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the list in bytes."""
        if self.text is None:
            numbers = _checked(self.numbers, np.ndarray)
            return _NUMBER * numbers.size + numbers.nbytes
        return json_size(_checked(self.text, np.ndarray).tobytes())

    def restored(self) -> list[Any]:
        """Return the list."""
        if self.text is None:
            return list(_checked(self.numbers, np.ndarray))
        values = json.loads(_checked(self.text, np.ndarray).tobytes().decode(*_ENCODING))
        if type(values) is not list or not set(map(type, values)) <= set(_PLAIN):
            raise ModelFileError("a list has entries other than texts and numbers")
        return values


@storable
@dataclass(frozen=True)
class Objects:
    """An array of objects: its shape, and its entries in row-major order."""

    shape: tuple[int, ...]
    entries: Any

    @classmethod
    def of(cls, array: np.ndarray, packed: Callable[[Any], Any]) -> Objects:
        return cls(array.shape, packed_list(array.ravel().tolist(), packed))

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the array in bytes."""
        return size_of_list(self.entries)

    def restored(self, restore: Callable[[Any], Any]) -> np.ndarray:
        """Return the array."""
        values = restored_list(self.entries, restore)
        return array_of_objects(values).reshape(self.shape)


@storable
@dataclass(frozen=True)
class Arrays:
    """A long list of one-dimensional arrays.

    Each array is a member of the file, and writing a member takes time proportional to the number
    of members. Therefore arrays of one type are concatenated: `parts` has their indices in the
    list, their lengths, and their entries.
    """

    parts: list[tuple[np.ndarray, np.ndarray, Any]]

    @staticmethod
    def can_hold(values: Sequence[Any]) -> bool:
        """Return whether these are one-dimensional arrays of plain values."""
        return all(type(value) is np.ndarray and value.ndim == 1 for value in values) and (
            are_plain([entry for array in values if array.dtype == object for entry in array])
            and not any(array.dtype.hasobject and array.dtype != object for array in values)
        )

    @classmethod
    def of(cls, arrays: Sequence[np.ndarray]) -> Arrays:
        by_type: dict[np.dtype, list[int]] = {}
        for place, array in enumerate(arrays):
            by_type.setdefault(array.dtype, []).append(place)
        parts = []
        for dtype, places in by_type.items():
            joined = np.concatenate([arrays[place] for place in places])
            lengths = np.array([len(arrays[place]) for place in places])
            entries = Entries.of(joined.tolist()) if dtype.hasobject else joined
            parts.append((np.array(places), lengths, entries))
        return cls(parts)

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the arrays in bytes."""
        return sum(
            _ARRAY * lengths.size
            + (entries.nbytes if isinstance(entries, np.ndarray) else entries.n_bytes)
            for _, lengths, entries in self.parts
        )

    def restored(self) -> list[np.ndarray]:
        """Return the list."""
        arrays: dict[int, np.ndarray] = {}
        for places, lengths, entries in self.parts:
            joined = (
                array_of_objects(entries.restored())
                if isinstance(entries, Entries)
                else _checked(entries, np.ndarray)
            )
            pieces = np.split(joined, np.cumsum(lengths)[:-1])
            # Copies, so that an array does not keep the others in memory.
            arrays |= {
                place: piece.copy() for place, piece in zip(places.tolist(), pieces, strict=True)
            }
        return [arrays[place] for place in range(len(arrays))]


@storable
@dataclass(frozen=True)
class Stored:
    """The values of a kernel stack, which are read-only and may be memory-mapped."""

    array: np.ndarray

    n_bytes = 0

    def restored(self) -> StoredArray:
        """Return the values, in memory."""
        return StoredArray(_checked(self.array, np.ndarray))


@storable
@dataclass(frozen=True)
class Pairs:
    """A dict, stored as its keys and its values."""

    keys: Any
    values: Any

    @classmethod
    def of(cls, mapping: dict[Any, Any], packed: Callable[[Any], Any]) -> Pairs:
        keys, values = list(mapping), list(mapping.values())
        return cls(packed_list(keys, packed), packed_list(values, packed))

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the dict in bytes."""
        return size_of_list(self.keys) + size_of_list(self.values)

    def restored(self, restore: Callable[[Any], Any]) -> dict[Any, Any]:
        """Return the dict."""
        keys, values = (restored_list(packed, restore) for packed in (self.keys, self.values))
        return dict(zip(keys, values, strict=True))


def packed_list(values: list[Any], packed: Callable[[Any], Any]) -> Any:
    """Pack a list that no other part of the model shares."""
    return Entries.of(values) if are_plain(values) else [packed(value) for value in values]


def restored_list(packed: object, restore: Callable[[Any], Any]) -> list[Any]:
    """Undo :func:`packed_list`."""
    if isinstance(packed, Entries):
        return packed.restored()
    return [restore(value) for value in _checked(packed, list)]


def size_of_list(packed: object) -> int:
    """Return an upper bound of the size of a packed list, without the contents of its entries."""
    return packed.n_bytes if isinstance(packed, Entries) else _NUMBER * len(_checked(packed, list))


def array_of_objects(values: Sequence[Any]) -> np.ndarray:
    """Return a one-dimensional array of objects, which may be sequences."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _checked(value: object, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError(f"it has a {type(value).__name__} in place of a {kind.__name__}")
    return value


# -- Data frames of pandas and polars, stored as arrays -------------------------------------------
#
# Columns of numbers of one type are one array. Other columns are stored by their kind: texts and
# other plain objects, categories, numbers with a mask of missing values.


# Bytes of a column besides its entries.
_COLUMN = 300
# Types of columns that consist of an array and a mask.
_MASKED = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "boolean", "Boolean"),
)


def library_of(value: object) -> str | None:
    """Return the library of a data frame, or of an index; None for other objects."""
    for name, kinds in (("pandas", ("DataFrame", "Index")), ("polars", ("DataFrame",))):
        library = sys.modules.get(name)
        if library is not None and isinstance(value, tuple(getattr(library, k) for k in kinds)):
            return name
    return None


def is_na(value: object) -> bool:
    """Return whether a value is the missing value of pandas, ``pandas.NA``."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and value is pandas.NA


@storable
@dataclass(frozen=True)
class Missing:
    """The missing value of pandas, ``pandas.NA``."""

    n_bytes = 0

    def restored(self) -> Any:
        return _library("pandas").NA


@storable
@dataclass(frozen=True)
class Block:
    """Columns of numbers of one type: their positions, and an array of their values."""

    places: np.ndarray
    values: np.ndarray


@storable
@dataclass(frozen=True)
class Column:
    """A column of a data frame.

    ========== ============================== ==========================
    kind       `values`                       `more`
    ========== ============================== ==========================
    array      an array
    objects    the entries
    texts      the entries, None if missing   storage of pandas, and whether NaN is missing
    categories codes, −1 if missing           the categories, and whether they are ordered
    masked     an array, and a mask           the type
    ========== ============================== ==========================

    Columns that differ only in their values are concatenated by :meth:`joined`, since a file has a
    member for every array, and thousands of members are slow. Their categories are concatenated,
    too, and the numbers of categories come last in `more`.
    """

    kind: str
    values: Any
    more: tuple[Any, ...] = ()

    @property
    def sort(self) -> tuple[Any, ...]:
        """Key that is equal for columns that can be joined."""
        if self.kind == "categories":
            categories, ordered = self.more
            return self.kind, categories.sort, ordered
        if self.kind in ("objects", "texts"):
            numbers = self.values.numbers
            return self.kind, None if numbers is None else numbers.dtype, repr(self.more)
        values = self.values[0] if self.kind == "masked" else self.values
        return self.kind, values.dtype, repr(self.more)

    @classmethod
    def joined(cls, columns: Sequence[Column]) -> Column:
        """Concatenate columns with the same :attr:`sort`."""
        first, values = columns[0], [column.values for column in columns]
        if first.kind == "categories":
            categories = [column.more[0] for column in columns]
            numbers = np.array([len(column) for column in categories])
            more = (cls.joined(categories), first.more[1], numbers)
            return cls(first.kind, np.concatenate(values), more)
        if first.kind in ("objects", "texts"):
            entries = [entry for column in values for entry in column.restored()]
            return cls(first.kind, Entries.of(entries), first.more)
        if first.kind == "masked":
            parts = zip(*values, strict=True)
            return cls(first.kind, tuple(map(np.concatenate, parts)), first.more)
        return cls(first.kind, np.concatenate(values), first.more)

    def split(self, lengths: Sequence[int]) -> list[Column]:
        """Undo :meth:`joined`."""
        ends = np.cumsum(lengths)
        places = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        if self.kind == "categories":
            categories, ordered, numbers = self.more
            parts = categories.split(numbers.tolist())
            return [
                Column(self.kind, self.values[place], (part, ordered))
                for place, part in zip(places, parts, strict=True)
            ]
        if self.kind == "masked":
            values, mask = self.values
            pairs = [(values[place], mask[place]) for place in places]
            return [Column(self.kind, pair, self.more) for pair in pairs]
        whole = self.values.restored() if isinstance(self.values, Entries) else self.values
        return [Column(self.kind, whole[place], self.more) for place in places]

    def __len__(self) -> int:
        if self.kind == "masked":
            return len(self.values[0])
        return len(self.values)

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the column, or of all joined columns, in bytes."""
        parts = list(self.values) if self.kind == "masked" else [self.values]
        if self.kind == "categories":
            parts += [self.more[0]]
        return sum(map(_size, parts))

    @property
    def entries(self) -> list[Any]:
        """Entries of a column of objects or texts."""
        return self.values.restored() if isinstance(self.values, Entries) else self.values


@storable
@dataclass(frozen=True)
class Labels:
    """Index of the rows or columns of a pandas frame; `steps` are those of a RangeIndex."""

    column: Any
    name: Any
    steps: tuple[int, int, int] | None = None

    @classmethod
    def of(cls, index: Any, name: str) -> Labels:
        if getattr(index, "nlevels", 1) > 1:
            raise ModelFileError(f"{name} have several levels, which cannot be stored")
        if type(index).__name__ == "RangeIndex":
            return cls(None, index.name, (index.start, index.stop, index.step))
        return cls(_pandas_column(index.to_series(), name), index.name)

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the labels in bytes."""
        return 0 if self.steps is not None else int(self.column.n_bytes)

    def restored(self) -> Any:
        pandas = _library("pandas")
        if self.steps is not None:
            return pandas.RangeIndex(*self.steps, name=self.name)
        values = _pandas_values(self.column)
        # Without a dtype, pandas would infer one.
        return pandas.Index(values, dtype=values.dtype, name=self.name)


@storable
@dataclass(frozen=True)
class Frame:
    """A data frame; `index` are the row labels of pandas, None for polars."""

    library: str
    shape: tuple[int, int]
    names: Any
    index: Any
    blocks: list[Block]
    # Positions of columns, and the joined columns; the first version has one position at a time.
    columns: list[tuple[Any, Column]]

    @classmethod
    def of(cls, frame: Any) -> Frame:
        library = library_of(frame) or ""
        by_type: dict[Any, list[int]] = {}
        by_sort: dict[Any, dict[int, Column]] = {}
        for place, dtype in enumerate(frame.dtypes):
            if isinstance(dtype, np.dtype) and dtype.kind in "biufcMm":
                by_type.setdefault(dtype, []).append(place)
            else:
                column = _COLUMNS[library][0](*_column(frame, place))
                by_sort.setdefault(column.sort, {})[place] = column
        columns = [
            (np.array(list(same_sort)), Column.joined(list(same_sort.values())))
            for same_sort in by_sort.values()
        ]
        blocks = [
            Block(np.array(places), frame.iloc[:, places].to_numpy())
            for places in by_type.values()
        ]
        if library == "polars":
            return cls(library, frame.shape, Entries.of(frame.columns), None, blocks, columns)
        index, names = frame.index, frame.columns
        labels = Labels.of(index, "labels of rows"), Labels.of(names, "labels of columns")
        return cls(library, frame.shape, labels[1], labels[0], blocks, columns)

    @property
    def n_bytes(self) -> int:
        """Upper bound of the size of the frame in bytes."""
        n_columns = max(self.shape[1], sum(block.values.shape[-1] for block in self.blocks))
        parts = [self.names, *(block.values for block in self.blocks)]
        parts += [column for _, column in self.columns]
        parts += [] if self.index is None else [self.index]
        return _COLUMN * n_columns + sum(map(_size, parts))

    def restored(self) -> Any:
        """Return the frame."""
        library = _library(self.library)
        n_rows, n_columns = self.shape
        make = _COLUMNS[self.library][1]
        if not self.columns and len(self.blocks) == 1 and len(self.blocks[0].places) == n_columns:
            # One array, with its original memory layout.
            frame = library.DataFrame(self.blocks[0].values, copy=False)
        else:
            parts: dict[int, Any] = {}
            for places, column in self.columns:
                if isinstance(places, int):
                    parts[places] = make(column)
                else:
                    split = column.split([n_rows] * len(places))
                    parts |= zip(places.tolist(), map(make, split), strict=True)
            for block in self.blocks:
                parts |= dict(zip(block.places.tolist(), block.values.T, strict=True))
            # Column names are set afterwards, since they may be duplicated.
            frame = library.DataFrame({str(place): parts[place] for place in range(n_columns)})
        if frame.shape != (n_rows, n_columns):
            raise ModelFileError(f"a data frame does not have the shape {self.shape}")
        if self.library == "polars":
            frame.columns = self.names.restored()
        else:
            frame.index, frame.columns = self.index.restored(), self.names.restored()
        return frame


def _size(part: Any) -> int:
    """Return the size of an array, or an upper bound for a replacement, in bytes."""
    return int(part.nbytes if isinstance(part, np.ndarray) else part.n_bytes)


def _column(frame: Any, place: int) -> tuple[Any, str]:
    name = frame.columns[place]
    return (frame.iloc[:, place] if hasattr(frame, "iloc") else frame[name]), f"column {name!r}"


def _library(name: str) -> Any:
    if name not in _COLUMNS:
        raise ModelFileError(f"a data frame is of the library {name!r}, which is not supported")
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"The model was fitted to a data frame of {name}, which is not installed: "
            f"pip install {name}."
        ) from error


def _unsupported(dtype: object, name: str) -> ModelFileError:
    return ModelFileError(
        f"{name} of a data frame has the type {dtype}, which cannot be stored: drop or convert it "
        "before fitting"
    )


# -- pandas --------------------------------------------------------------------------------


def _pandas_column(series: Any, title: str) -> Column:
    dtype, name = series.dtype, str(series.dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufcMm":
        return Column("array", series.to_numpy())
    if type(dtype).__name__ == "CategoricalDtype":
        categories = _pandas_column(dtype.categories.to_series(), title)
        return Column("categories", series.cat.codes.to_numpy(), (categories, bool(dtype.ordered)))
    if type(dtype).__name__ == "StringDtype":
        texts = series.to_numpy(dtype=object, na_value=None).tolist()
        return Column("texts", Entries.of(texts), (dtype.storage, not is_na(dtype.na_value)))
    if name in _MASKED:
        mask = series.isna().to_numpy()
        return Column("masked", (series.to_numpy(dtype.numpy_dtype, na_value=0), mask), (name,))
    values = series.to_list() if name == "object" else [series]
    if not are_plain(values):
        raise _unsupported(_described_type(values, name), title)
    return Column("objects", Entries.of(values))


def _described_type(values: list[Any], name: str) -> str:
    """Return the name of the dtype, with the type of the first unsupported object."""
    kind = next((type(value).__name__ for value in values if not are_plain([value])), "mixed")
    return name if name != "object" else f"object ({kind})"


def _pandas_values(column: Column) -> Any:
    pandas = _library("pandas")
    if column.kind == "array":
        return column.values
    if column.kind == "objects":
        return pandas.Series(array_of_objects(column.entries), dtype=object)
    if column.kind == "texts":
        storage, nan = column.more
        try:
            dtype = pandas.StringDtype(storage, na_value=np.nan if nan else pandas.NA)
        except ImportError:  # pyarrow is not installed
            dtype = pandas.StringDtype("python", na_value=np.nan if nan else pandas.NA)
        return pandas.array(array_of_objects(column.entries), dtype=dtype)
    if column.kind == "categories":
        categories, ordered = column.more
        dtype = pandas.CategoricalDtype(_pandas_values(categories), ordered=ordered)
        return pandas.Categorical.from_codes(column.values, dtype=dtype)
    values, mask = column.values
    restored = pandas.array(values, dtype=_masked(column))
    restored[mask] = pandas.NA
    return restored


def _masked(column: Column) -> str:
    (name,) = column.more
    if column.kind != "masked" or name not in _MASKED:
        raise ModelFileError(f"a column has the kind {column.kind!r} and the type {name!r}")
    return str(name)


# -- polars --------------------------------------------------------------------------------


def _polars_column(series: Any, title: str) -> Column:
    name = str(series.dtype.base_type())
    if name in ("String", "Categorical", "Enum"):
        more = (series.dtype.categories.to_list(),) if name == "Enum" else ()
        return Column("texts", Entries.of(series.to_list()), (name, *more))
    if name in _MASKED:
        mask = series.is_null().to_numpy()
        filled = series.fill_null(False if name == "Boolean" else 0)
        return Column("masked", (filled.to_numpy(), mask), (name,))
    raise _unsupported(series.dtype, title)


def _polars_values(column: Column) -> Any:
    polars = _library("polars")
    if column.kind == "texts":
        name, *more = column.more
        kinds = {"String": polars.String, "Categorical": polars.Categorical, "Enum": polars.Enum}
        dtype = kinds[name](*more) if more else kinds[name]
        return polars.Series(column.entries, dtype=dtype)
    values, mask = column.values
    restored = polars.Series(values, dtype=getattr(polars, _masked(column)))
    return restored.set(polars.Series(mask), None) if mask.any() else restored


# Conversion of columns for each library, to Column and back.
_COLUMNS: dict[str, tuple[Callable[[Any, str], Column], Callable[[Column], Any]]] = {
    "pandas": (_pandas_column, _pandas_values),
    "polars": (_polars_column, _polars_values),
}
