"""Plain values that skops does not keep, or not compactly: objects, long lists, odd keys.

skops writes some hundred bytes for every text in a list, and loses keys of dicts that are not
texts: 1 and "1" are the same in JSON. What is here stands for such values in a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels._stored import StoredArray
from .archive import ModelFileError, json_size

#: Lists and dicts with more entries than this are written as one text or array.
LONG = 32
# What JSON keeps as it is; a subclass of one of these would come back as another type.
_PLAIN = (str, int, float, bool, type(None))
# Bytes of an array besides its entries, and of a number of NumPy, each in a list.
_ARRAY, _NUMBER = 150, 40
# Texts of Python may hold halves of characters, which plain UTF-8 has not.
_ENCODING = ("utf-8", "surrogatepass")


def are_plain(values: Sequence[Any]) -> bool:
    """Whether :class:`Entries` can hold these values."""
    kinds = set(map(type, values))
    return kinds <= set(_PLAIN) or (len(kinds) == 1 and issubclass(kinds.pop(), np.generic))


@dataclass(frozen=True)
class Entries:
    """A list of texts, numbers, truth values and None, or of numbers of one type of NumPy.

    `text` is JSON as bytes, or None if the `numbers` are an array.
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
        """Bytes that the list can take."""
        if self.text is None:
            numbers = _checked(self.numbers, np.ndarray)
            return _NUMBER * numbers.size + numbers.nbytes
        return json_size(_checked(self.text, np.ndarray).tobytes())

    def restored(self) -> list[Any]:
        """The list."""
        if self.text is None:
            return list(_checked(self.numbers, np.ndarray))
        values = json.loads(_checked(self.text, np.ndarray).tobytes().decode(*_ENCODING))
        if type(values) is not list or not set(map(type, values)) <= set(_PLAIN):
            raise ModelFileError("a list holds other things than texts and numbers")
        return values


@dataclass(frozen=True)
class Objects:
    """An array of objects: its shape, and its entries row by row."""

    shape: tuple[int, ...]
    entries: Any

    @classmethod
    def of(cls, array: np.ndarray, packed: Callable[[Any], Any]) -> Objects:
        return cls(array.shape, packed_list(array.ravel().tolist(), packed))

    @property
    def n_bytes(self) -> int:
        """Bytes that the array can take."""
        return size_of_list(self.entries)

    def restored(self, restore: Callable[[Any], Any]) -> np.ndarray:
        """The array."""
        values = restored_list(self.entries, restore)
        return array_of_objects(values).reshape(self.shape)


@dataclass(frozen=True)
class Arrays:
    """A long list of arrays of one dimension.

    In a file every array is a member, and writing one looks at all members before it. So those of
    one type are joined: `parts` has their places in the list, their lengths, and their entries.
    """

    parts: list[tuple[np.ndarray, np.ndarray, Any]]

    @staticmethod
    def can_hold(values: Sequence[Any]) -> bool:
        """Whether these are such arrays; those of objects have to hold plain ones."""
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
        """Bytes that the arrays can take."""
        return sum(
            _ARRAY * lengths.size
            + (entries.nbytes if isinstance(entries, np.ndarray) else entries.n_bytes)
            for _, lengths, entries in self.parts
        )

    def restored(self) -> list[np.ndarray]:
        """The list."""
        found: dict[int, np.ndarray] = {}
        for places, lengths, entries in self.parts:
            joined = (
                array_of_objects(entries.restored())
                if isinstance(entries, Entries)
                else _checked(entries, np.ndarray)
            )
            pieces = np.split(joined, np.cumsum(lengths)[:-1])
            # Copies: one array is not to keep the others in memory.
            found |= {
                place: piece.copy() for place, piece in zip(places.tolist(), pieces, strict=True)
            }
        return [found[place] for place in range(len(found))]


@dataclass(frozen=True)
class Stored:
    """The values of a stack of kernels, which are read-only and may be mapped from a file."""

    array: np.ndarray

    n_bytes = 0

    def restored(self) -> StoredArray:
        """The values, in memory."""
        return StoredArray(_checked(self.array, np.ndarray))


@dataclass(frozen=True)
class Pairs:
    """A dict by its keys and its values."""

    keys: Any
    values: Any

    @classmethod
    def of(cls, given: dict[Any, Any], packed: Callable[[Any], Any]) -> Pairs:
        keys, values = list(given), list(given.values())
        return cls(packed_list(keys, packed), packed_list(values, packed))

    @property
    def n_bytes(self) -> int:
        """Bytes that the dict can take."""
        return size_of_list(self.keys) + size_of_list(self.values)

    def restored(self, restore: Callable[[Any], Any]) -> dict[Any, Any]:
        """The dict."""
        keys, values = (restored_list(part, restore) for part in (self.keys, self.values))
        return dict(zip(keys, values, strict=True))


def packed_list(values: list[Any], packed: Callable[[Any], Any]) -> Any:
    """What stands for a list that the rest of a model does not share."""
    return Entries.of(values) if are_plain(values) else [packed(value) for value in values]


def restored_list(found: Any, restore: Callable[[Any], Any]) -> list[Any]:
    """The list that something stands for."""
    if isinstance(found, Entries):
        return found.restored()
    return [restore(value) for value in _checked(found, list)]


def size_of_list(found: Any) -> int:
    """Bytes that the list can take that something stands for, without what is in a list."""
    return found.n_bytes if isinstance(found, Entries) else _NUMBER * len(_checked(found, list))


def array_of_objects(values: Sequence[Any]) -> np.ndarray:
    """An array with these entries, also if they are sequences themselves."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError(f"{type(value).__name__} is where {kind.__name__} should be")
    return value
