"""The archive that a model is stored in: read within limits, written in one order.

An archive from elsewhere may be damaged or forged. Its directory is checked before any member is
read, and what members say about their own size is checked before memory is allocated for it:

- the sizes that the directory declares add up to no more than a limit, which grows with the
  length of the file, and no member is longer than it declares (its checksum would not fit), so
  that a small file cannot unpack to a huge one;
- names are plain, without folders, and each comes once;
- an array has as many bytes as its header says, and no Python objects; a sparse matrix, which is
  an archive itself, is held to the same rules, and its indices lie within its shape.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from math import prod
from typing import IO, Any

from scipy import sparse

from ..utils.files import GIB, read_npy_header

# What zipfile, zlib, NumPy and SciPy raise when a member is damaged.
DAMAGED = (
    ValueError,  # UnicodeDecodeError and JSONDecodeError among them
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,  # RecursionError, NotImplementedError and passwords among them
    SyntaxError,
    MemoryError,
    OSError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
# Names of members: no folders, no drives, nothing hidden.
_NAME = re.compile(r"[A-Za-z0-9_-]+\.(json|npy|npz|bin)", re.ASCII)
# The time of all members, so that equal models make equal files; the earliest that there is.
_TIME = (1980, 1, 1, 0, 0, 0)
# Most bytes that a file may take in memory: this many, or this many times its length if that is
# more. JSON without any blanks takes up to 33 times its length as objects of Python.
_LEAST_LIMIT = 2**26
_LIMIT_PER_BYTE = 50
# Bytes of an object of Python in a list or dict, a short text or an empty list.
_OBJECT = 64
# Members are read in pieces of this many bytes, so that memory grows with what is really there.
_PIECE = 2**22


class ModelFileError(ValueError):
    """A file is no model that could be loaded safely, or a model cannot be stored in one."""


def limit_of(length: int) -> int:
    """Most bytes of memory that what is in a file of this length may take."""
    return max(_LEAST_LIMIT, _LIMIT_PER_BYTE * length)


def refuse_larger(n_bytes: int, limit: int) -> None:
    """Refuse what would take more memory than the limit."""
    if n_bytes > limit:
        raise ModelFileError(
            f"it would unpack to {n_bytes / GIB:.3g} GiB, more than the limit of "
            f"{limit / GIB:.3g} GiB; pass max_bytes={n_bytes} if it comes from someone you trust"
        )


def json_size(content: bytes) -> int:
    """Bytes that a text of JSON can take as objects of Python, and a little more."""
    return len(content) + _OBJECT * sum(map(content.count, (b",", b"[", b"{")))


def read_archive(file: IO[bytes], max_bytes: int) -> dict[str, bytes]:
    """All members by name; ModelFileError says what is wrong."""
    try:
        with zipfile.ZipFile(file) as archive:
            _check_directory(archive, max_bytes)
            return {info.filename: _content(archive, info) for info in archive.infolist()}
    except ModelFileError:
        raise
    except DAMAGED as error:
        raise ModelFileError(f"it is damaged, or no archive at all ({_said(error)})") from error


def _check_directory(archive: zipfile.ZipFile, max_bytes: int) -> None:
    names, total = set(), 0
    for info in archive.infolist():
        # Before zipfile cuts the name at a zero byte.
        name = info.orig_filename
        if not _NAME.fullmatch(name):
            raise ModelFileError(f"it has a member {name[:80]!r}, which no saved model has")
        if name in names:
            raise ModelFileError(f"its member {name!r} comes twice")
        names.add(name)
        total += info.file_size
    refuse_larger(total, max_bytes)


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """One member, never more of it than the directory declares."""
    pieces, left = [], info.file_size
    with archive.open(info) as member:
        while piece := member.read(min(_PIECE, left + 1)):
            pieces.append(piece)
            left -= len(piece)
    if left:
        raise ModelFileError(f"its member {info.filename!r} is not as long as it declares")
    return b"".join(pieces)


def write_archive(file: IO[bytes], members: Mapping[str, bytes], *, compress: bool) -> None:
    """Write members in their order; equal members make equal bytes."""
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = kind
            archive.writestr(info, content)


# -- members -------------------------------------------------------------------------------


def check_array(content: bytes, name: str) -> None:
    """Refuse a member that is no array of numbers or texts of the length that it says."""
    try:
        stream = BytesIO(content)
        shape, dtype = read_npy_header(stream)
        if dtype.hasobject:
            raise ModelFileError("it holds Python objects, which only unpickling could restore")
        needed, present = dtype.itemsize * prod(shape), len(content) - stream.tell()
        if needed != present:
            raise ModelFileError(f"it has {present} bytes for the shape {shape} of {dtype}")
    except DAMAGED as error:
        raise ModelFileError(f"its member {name!r} is no array: {_said(error)}") from error


def sparse_size(content: bytes) -> int:
    """Bytes that a sparse matrix unpacks to."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return sum(info.file_size for info in archive.infolist())


def stored_sparse(content: bytes) -> bytes:
    """The same sparse matrix, not compressed."""
    archive = BytesIO()
    members = read_archive(BytesIO(content), sparse_size(content))
    write_archive(archive, members, compress=False)
    return archive.getvalue()


def check_sparse(content: bytes, name: str, max_bytes: int) -> int:
    """Refuse a member that is no sparse matrix, or one with indices outside of its shape.

    Returns the number of bytes that it unpacks to.
    """
    try:
        parts = read_archive(BytesIO(content), max_bytes)
        for part, array in parts.items():
            check_array(array, part)
        matrix = sparse.load_npz(BytesIO(content))
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return sum(map(len, parts.values()))
    except DAMAGED as error:
        raise ModelFileError(f"its member {name!r} is no sparse matrix: {_said(error)}") from error


def _said(error: BaseException) -> Any:
    return str(error).rstrip(".") or type(error).__name__
