"""Archives of models: reading within limits, and writing in a fixed order.

An archive may be damaged or forged. Its directory is checked before any member is read, and the
declared sizes of members are checked before memory is allocated:

- the total of the declared sizes is limited, depending on the length of the file, and no member is
  longer than declared (its checksum would not match), so that a small file cannot unpack to a
  huge one;
- names are plain, without folders, and unique;
- an array has as many bytes as its header declares, and no Python objects; a sparse matrix, which
  is an archive itself, must satisfy the same rules, and its indices are within its shape.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from math import prod
from typing import IO

from scipy import sparse

from ..utils.files import GIB, read_npy_header

# Exceptions of zipfile, zlib, NumPy and SciPy for damaged members.
DAMAGED = (
    ValueError,  # includes UnicodeDecodeError and JSONDecodeError
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    EOFError,
    RuntimeError,  # includes RecursionError, NotImplementedError and errors about passwords
    SyntaxError,
    MemoryError,
    OSError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
# Names of members: no folders, drives or hidden files.
_NAME = re.compile(r"[A-Za-z0-9_-]+\.(json|npy|npz|bin)", re.ASCII)
# Time stamp of all members, the earliest possible, so that equal models have equal files.
_TIME = (1980, 1, 1, 0, 0, 0)
# Limit of the memory that a file may take: this many bytes, or this multiple of its length if that
# is more. JSON without spaces takes up to 33 times its length as Python objects.
_LEAST_LIMIT = 2**26
_LIMIT_PER_BYTE = 50
# Bytes of a Python object in a list or dict, such as a short text or an empty list.
_OBJECT = 64
# Size of the pieces in which members are read, so that memory grows with their actual length.
_PIECE = 2**22


class ModelFileError(ValueError):
    """Raised if a file cannot be loaded safely as a model, or a model cannot be saved."""


def limit_of(length: int) -> int:
    """Return the largest number of bytes that a file of this length may take in memory."""
    return max(_LEAST_LIMIT, _LIMIT_PER_BYTE * length)


def refuse_larger(n_bytes: int, limit: int) -> None:
    """Raise if `n_bytes` exceeds the limit."""
    if n_bytes > limit:
        raise ModelFileError(
            f"it would unpack to {n_bytes / GIB:.3g} GiB, more than the limit of "
            f"{limit / GIB:.3g} GiB; pass max_bytes={n_bytes} if you trust its author"
        )


def json_size(content: bytes) -> int:
    """Return an upper bound of the bytes that a JSON text takes as Python objects."""
    return len(content) + _OBJECT * sum(map(content.count, (b",", b"[", b"{")))


def read_archive(file: IO[bytes], max_bytes: int) -> dict[str, bytes]:
    """Return all members by name; raise ModelFileError if the archive is invalid."""
    try:
        with zipfile.ZipFile(file) as archive:
            _check_directory(archive, max_bytes)
            return {info.filename: _content(archive, info) for info in archive.infolist()}
    except ModelFileError:
        raise
    except DAMAGED as error:
        raise ModelFileError(f"it is damaged, or not an archive ({_message(error)})") from error


def _check_directory(archive: zipfile.ZipFile, max_bytes: int) -> None:
    names, total = set(), 0
    for info in archive.infolist():
        # `filename` is cut at a zero byte.
        name = info.orig_filename
        if not _NAME.fullmatch(name):
            raise ModelFileError(f"it has a member {name[:80]!r}, which saved models do not have")
        if name in names:
            raise ModelFileError(f"it has two members {name!r}")
        names.add(name)
        total += info.file_size
    refuse_larger(total, max_bytes)


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Read a member, but not more than its declared size."""
    pieces, left = [], info.file_size
    with archive.open(info) as member:
        while piece := member.read(min(_PIECE, left + 1)):
            pieces.append(piece)
            left -= len(piece)
    if left:
        raise ModelFileError(f"its member {info.filename!r} does not have its declared size")
    return b"".join(pieces)


def write_archive(file: IO[bytes], members: Mapping[str, bytes], *, compress: bool) -> None:
    """Write members in their order; equal members give equal bytes."""
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = kind
            archive.writestr(info, content)


# -- members -------------------------------------------------------------------------------


def check_array(content: bytes, name: str) -> None:
    """Raise if a member is not an array of numbers or texts of its declared length."""
    try:
        stream = BytesIO(content)
        shape, dtype = read_npy_header(stream)
        if dtype.hasobject:
            raise ModelFileError("it contains Python objects, which would have to be unpickled")
        needed, present = dtype.itemsize * prod(shape), len(content) - stream.tell()
        if needed != present:
            raise ModelFileError(f"it has {present} bytes for the shape {shape} of {dtype}")
    except DAMAGED as error:
        raise ModelFileError(f"its member {name!r} is not an array: {_message(error)}") from error


def sparse_size(content: bytes) -> int:
    """Return the unpacked size of a sparse matrix in bytes."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return sum(info.file_size for info in archive.infolist())


def stored_sparse(content: bytes) -> bytes:
    """Return a stored sparse matrix without compression."""
    archive = BytesIO()
    members = read_archive(BytesIO(content), sparse_size(content))
    write_archive(archive, members, compress=False)
    return archive.getvalue()


def check_sparse(content: bytes, name: str, max_bytes: int) -> int:
    """Raise if a member is not a sparse matrix with indices within its shape.

    Returns its unpacked size in bytes.
    """
    try:
        members = read_archive(BytesIO(content), max_bytes)
        for member, array in members.items():
            check_array(array, member)
        matrix = sparse.load_npz(BytesIO(content))
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return sum(map(len, members.values()))
    except DAMAGED as error:
        raise ModelFileError(
            f"its member {name!r} is not a sparse matrix: {_message(error)}"
        ) from error


def _message(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__
