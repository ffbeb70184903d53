"""The numbers in an old Excel file (.xls): enough of the format for a table of numbers.

The file is a small file system of sectors of 512 bytes (Microsoft's [MS-CFB]); its stream
"Workbook" is a sequence of records ([MS-XLS]), some of which hold the numbers of cells. Text,
formulas and all that is for the eye are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

# Sizes and marks of the format.
_MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")
_HEADER = 512  # bytes, as of any sector
_IN_HEADER = 109  # entries of the sector allocation table that the header names
_LAST = 0xFFFFFFFA  # this and above are marks, not sectors
_ENTRY = 128  # bytes of an entry of the directory
_SMALL = 4096  # shorter streams are stored in another way

# Kinds of record.
_BEGIN, _END, _NUMBER, _RK, _SEVERAL_RK = 0x0809, 0x000A, 0x0203, 0x027E, 0x00BD


def read_numbers(path: Path) -> np.ndarray:
    """The numbers of the first sheet; rows and columns that hold none are left out."""
    cells: dict[tuple[int, int], float] = {}
    n_begun = 0
    for kind, content in _records(_stream(path.read_bytes(), ("Workbook", "Book"))):
        if kind == _BEGIN:
            n_begun += 1
        elif kind == _END and n_begun == 2:  # the first is the workbook itself
            break
        elif kind == _NUMBER:
            row, column, _, value = struct.unpack_from("<HHHd", content)
            cells[row, column] = value
        elif kind == _RK:
            row, column, _, packed = struct.unpack_from("<HHHI", content)
            cells[row, column] = _unpacked(packed)
        elif kind == _SEVERAL_RK:
            row, column = struct.unpack_from("<HH", content)
            for i, place in enumerate(range(4, len(content) - 2, 6)):
                (packed,) = struct.unpack_from("<I", content, place + 2)
                cells[row, column + i] = _unpacked(packed)
    if not cells:
        raise ValueError(f"{path} has no numbers on its first sheet.")
    rows, columns = (sorted(set(places)) for places in zip(*cells, strict=True))
    return np.array([[cells.get((i, j), np.nan) for j in columns] for i in rows])


def _unpacked(packed: int) -> float:
    """A number in 30 bits: an integer, or the upper half of a double; perhaps times 100."""
    if packed & 2:
        value = float(struct.unpack("<i", struct.pack("<I", packed))[0] >> 2)
    else:
        (value,) = struct.unpack("<d", struct.pack("<II", 0, packed & 0xFFFFFFFC))
    return value / 100 if packed & 1 else value


def _records(stream: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, place)
        yield kind, stream[place + 4 : place + 4 + length]
        place += 4 + length


def _stream(content: bytes, names: tuple[str, ...]) -> bytes:
    """The stream of one of these names."""
    if content[:8] != _MAGIC or struct.unpack_from("<H", content, 30)[0] != 9:
        raise ValueError("This is no .xls file of Excel 97 to 2003.")
    tables = struct.unpack_from(f"<{_IN_HEADER}I", content, 76)
    following: list[int] = []
    for table in tables:
        if table < _LAST:
            following += struct.unpack_from("<128I", content, _HEADER + 512 * table)
    (first,) = struct.unpack_from("<I", content, 48)
    directory = _chain(content, following, first)
    for place in range(0, len(directory), _ENTRY):
        entry = directory[place : place + _ENTRY]
        length = struct.unpack_from("<H", entry, 64)[0]
        if length and entry[: length - 2].decode("utf-16-le") in names:
            start, size = struct.unpack_from("<II", entry, 116)
            if size >= _SMALL:
                return _chain(content, following, start)[:size]
    raise ValueError("This .xls file has no workbook, or a very small one.")


def _chain(content: bytes, following: list[int], sector: int) -> bytes:
    parts: list[bytes] = []
    while sector < _LAST and len(parts) <= len(following):
        start = _HEADER + 512 * sector
        parts.append(content[start : start + 512])
        sector = following[sector]
    return b"".join(parts)
