"""Atomic replacement of files, and lines of text files.

All files of this package are written by :func:`replacing` to a temporary file beside the target,
which replaces the target once it is complete. A full disk, a limit on file sizes or Ctrl-C leaves
the existing file unchanged. Arrays mapped from the replaced file stay valid: its contents are kept
until the last mapping is closed.

Space is reserved before a file is mapped: writing to a mapping on a full disk raises no exception
but kills the process by a signal.
"""

import contextlib
import errno
import gzip
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import DTypeLike

#: Bytes of a gibibyte, for messages about sizes.
GIB = 2**30
# Bytes written at once to reserve space: far more than a disk block, and little memory.
_CHUNK = 2**22
# Every gzip file begins with these bytes.
_GZIP = b"\x1f\x8b"
# Errors of posix_fallocate on file systems that cannot reserve space.
_CANNOT_RESERVE = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENODEV}


@contextmanager
def replacing(path: str | Path, n_bytes: int) -> Iterator[IO[bytes]]:
    """Open a temporary file with `n_bytes` reserved, which replaces `path` when the block ends.

    If the block raises an exception, the temporary file is removed and `path` is unchanged. A
    symbolic link is kept, and so are the permissions of a replaced file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} exists and is not a regular file: choose another path.")
    temporary = target.with_name(f".manykernels-{secrets.token_hex(8)}.part")
    try:
        with _created(temporary, path) as file:
            _reserve(file, n_bytes, path)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        # An error of removing the file must not hide the first exception.
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _created(temporary: Path, path: str | Path) -> IO[bytes]:
    try:
        return open(temporary, "xb+")
    except OSError as error:
        # Name the requested path, not the temporary file.
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from error


def _reserve(file: IO[bytes], n_bytes: int, path: str | Path) -> None:
    """Reserve `n_bytes` for `file`, or raise an OSError that contains the size."""
    try:
        if not _allocated(file, n_bytes):
            zeros = bytes(min(n_bytes, _CHUNK))
            for start in range(0, n_bytes, _CHUNK):
                file.write(zeros[: n_bytes - start])
            file.flush()
            file.seek(0)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{n_bytes / GIB:.3g} GiB cannot be written ({os.strerror(error.errno or 0)}); "
            "an existing file is unchanged",
            str(path),
        ) from error


def _allocated(file: IO[bytes], n_bytes: int) -> bool:
    """Reserve space without writing to it; return False if the system does not support it."""
    if n_bytes == 0:
        return True
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(file.fileno(), 0, n_bytes)
    except OSError as error:
        if error.errno in _CANNOT_RESERVE:
            return False
        raise
    return True


def npy_header(shape: tuple[int, ...], dtype: DTypeLike) -> bytes:
    """Return the header of a .npy file; the values follow in C order."""
    header = BytesIO()
    description = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_2_0(
        header, {"descr": description, "fortran_order": False, "shape": shape}
    )
    return header.getvalue()


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Read the shape and type of the array in a .npy file; ValueError if damaged."""
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise ValueError(f"version {version} is not known")
    # NumPy evaluates a Python literal, which may raise any error of the parser.
    except Exception as error:
        raise ValueError(f"its header is damaged ({error})") from error
    if min(shape, default=0) < 0:
        raise ValueError(f"its header has the shape {shape}")
    return shape, dtype


def file_identity(array: object) -> tuple[int, int] | None:
    """Return device and inode of the file at the path that `array` was mapped from.

    None if the array is in memory, or if the file no longer exists.
    """
    name = getattr(array, "filename", None)
    if name is None:
        return None
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the numbers and lines of a text file in UTF-8, plain or compressed by gzip."""
    with open(path, "rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP
    number = 0
    with gzip.open(path) if compressed else open(path, "rb") as lines:
        try:
            for number, raw in enumerate(lines, 1):
                # "utf-8-sig" removes the byte order mark that some Windows editors write.
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: this is not text ({error}).") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path}, line {number + 1}: the compressed file is damaged ({error})."
            ) from error
