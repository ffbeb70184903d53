"""Arrays from files of MATLAB, versions 5 to 7.

SciPy reads them too, but a damaged one can end the process there. This reads what kernels and
labels are stored as, full matrices of real numbers, texts and cells of texts, and checks every
length before it is used.

A file is a header of 128 bytes and *elements*: a tag with type and length, then the content,
filled up to a multiple of eight bytes. A matrix is an element of elements: flags, sizes, name,
values. A packed element has another one inside.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

# Length of the header, and where in it the version and the order of bytes are.
_HEADER, _VERSION = 128, 124
# Types of elements that hold numbers.
_NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8"},
}
# Types of elements that hold text, and its encoding; numbers up to two bytes hold text as well.
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _PACKED = 14, 15
# Classes of matrices.
_CELL, _CHAR = 1, 4
_FULL = frozenset(range(6, 16))
# The bit of the flags that is set for complex numbers.
_COMPLEX = 0x0800
# Cells hold texts, and cells hold cells no deeper than this.
_DEPTH = 2


def read_mat5(path: Path, most: int) -> dict[str, Any]:
    """Variables by name: arrays, and lists of texts; none that takes more than `most` bytes."""
    content = path.read_bytes()
    if content.startswith(b"MATLAB 7.3"):
        raise ValueError(
            "it is a file of MATLAB 7.3, which is not read: save it with -v7, as in "
            "save('kernels.mat', '-v7')"
        )
    order = {b"IM": "<", b"MI": ">"}.get(content[_VERSION + 2 : _HEADER])
    if order is None:
        raise ValueError("it is no file of MATLAB 5 to 7")
    found: dict[str, Any] = {}
    for kind, data in _Elements(order, content[_HEADER:]):
        if kind == _PACKED:
            data = _unpacked(data, most)
            kind, data = next(iter(_Elements(order, data)), (0, b""))
        if kind == _MATRIX:
            name, value = _matrix(order, data, _DEPTH)
            found[name] = value
    return found


@dataclass(frozen=True)
class _Elements:
    """The elements of some bytes, one after the other."""

    order: str
    data: bytes

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        start = 0
        while start < len(self.data):
            kind, length, begin = self._tag(start)
            end = begin + length
            if length < 0 or end > len(self.data):
                raise ValueError("it ends too early, or is damaged")
            yield kind, self.data[begin:end]
            # Short elements have tag and content in eight bytes; packed ones are not filled up.
            short = begin == start + 4
            start = start + 8 if short else end if kind == _PACKED else end + -end % 8

    def _tag(self, start: int) -> tuple[int, int, int]:
        """Type, length, and where the content begins."""
        if start + 8 > len(self.data):
            raise ValueError("it ends too early, or is damaged")
        kind, length = np.frombuffer(self.data, f"{self.order}u4", 2, start).tolist()
        if kind >> 16:
            if kind >> 16 > 4:
                raise ValueError("it is damaged")
            return kind & 0xFFFF, kind >> 16, start + 4
        return kind, length, start + 8


def _unpacked(data: bytes, most: int) -> bytes:
    packed = zlib.decompressobj()
    try:
        content = packed.decompress(data, most)
    except zlib.error as error:
        raise ValueError("it is damaged") from error
    if packed.unconsumed_tail:
        raise ValueError("it unpacks to far more than its length")
    return content


def _matrix(order: str, data: bytes, depth: int) -> tuple[str, Any]:
    """Name and value of a matrix."""
    parts = list(_Elements(order, data))
    if len(parts) < 3 or len(parts[0][1]) < 4:
        raise ValueError("it is damaged")
    flags = int(np.frombuffer(parts[0][1], f"{order}u4", 1)[0])
    shape = tuple(np.frombuffer(parts[1][1], f"{order}i4").tolist())
    name, values, kind = parts[2][1].decode("ascii"), parts[3:], flags & 0xFF
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"its variable {name!r} has no shape")
    if kind == _CELL and depth and all(one == _MATRIX for one, _ in values):
        return name, [_text(_matrix(order, cell, depth - 1)[1], name) for _, cell in values]
    if kind not in (_CHAR, *_FULL) or flags & _COMPLEX or len(values) != 1:
        raise ValueError(
            f"its variable {name!r} is neither a full matrix of real numbers nor texts in a cell"
        )
    return name, _texts(order, *values[0], shape) if kind == _CHAR else _numbers(
        order, *values[0], shape
    )


def _numbers(order: str, kind: int, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(f"{order}{_NUMBERS[kind]}") if kind in _NUMBERS else None
    if dtype is None or prod(shape) * dtype.itemsize != len(data):
        raise ValueError("a matrix in it is not as long as it says")
    array = np.frombuffer(data, dtype).reshape(shape, order="F")
    return array.astype(dtype.newbyteorder("="))


def _texts(order: str, kind: int, data: bytes, shape: tuple[int, ...]) -> list[str]:
    """The rows of a matrix of letters."""
    if kind in _TEXTS:
        wide = kind != 16
        text = data.decode(_TEXTS[kind] + ({"<": "-le", ">": "-be"}[order] if wide else ""))
        letters = np.array(list(text), dtype=str)
    else:
        codes = _numbers(order, kind, data, (1, prod(shape))).ravel()
        letters = np.array([chr(int(code)) for code in codes if 0 <= code < 0x110000], dtype=str)
    if len(letters) != prod(shape) or len(shape) != 2:
        raise ValueError("a text in it is not as long as it says")
    return ["".join(row).rstrip() for row in letters.reshape(shape, order="F")]


def _text(value: Any, name: str) -> str:
    """The one text of a cell."""
    if not isinstance(value, list) or len(value) > 1:
        raise ValueError(f"its variable {name!r} is a cell of something else than texts")
    return value[0] if value else ""
