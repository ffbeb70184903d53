"""Files that are either written whole or left as they were.

Everything this package writes goes through :func:`replacing`: into a temporary file beside the
target, which replaces the target in one step once it is complete. A full disk, a limit on file
sizes or Ctrl-C then costs the new file, never the old one. Arrays mapped from the old file stay
valid: its contents are kept until the last mapping is gone.

Space is reserved before a file is mapped: writing to a mapping on a full disk raises no exception
but kills the process by a signal.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

#: Bytes of a gibibyte, for messages about sizes.
GIB = 2**30
# Bytes written at once to reserve space: far more than a disk block, and little memory.
_CHUNK = 2**22
# Errors of posix_fallocate on file systems that cannot reserve space.
_CANNOT_RESERVE = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENODEV}


@contextmanager
def replacing(path: str | Path, n_bytes: int) -> Iterator[IO[bytes]]:
    """A temporary file with `n_bytes` reserved, which replaces `path` when the block ends.

    If anything is raised inside, it is removed instead and `path` is left as it was. A symbolic
    link stays one, and a file that is replaced keeps its permissions.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a file that could be replaced.")
    part = target.with_name(f".manykernels-{secrets.token_hex(8)}.part")
    try:
        with _created(part, path) as file:
            _reserve(file, n_bytes, path)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(part, target.stat().st_mode & 0o7777)
        os.replace(part, target)
    except BaseException:
        # The first exception matters, not one of removing the file.
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _created(part: Path, path: str | Path) -> IO[bytes]:
    try:
        return open(part, "xb+")
    except OSError as error:
        # The user knows nothing of the temporary file: name the one that was asked for.
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from error


def _reserve(file: IO[bytes], n_bytes: int, path: str | Path) -> None:
    """Reserve `n_bytes` for `file`, or raise an OSError that says how much was asked for."""
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
            "what was there is unchanged",
            str(path),
        ) from error


def _allocated(file: IO[bytes], n_bytes: int) -> bool:
    """Whether the system could reserve the space without writing to it."""
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


def npy_header(shape: tuple[int, ...], dtype: Any) -> bytes:
    """The beginning of a .npy file; the values follow in C order."""
    header = BytesIO()
    description = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_2_0(
        header, {"descr": description, "fortran_order": False, "shape": shape}
    )
    return header.getvalue()


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array in a .npy file, whose values follow; ValueError if damaged."""
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise ValueError(f"version {version} is not known")
    # NumPy reads it as a literal of Python: whatever the parser of Python raises, and tokenize.
    except Exception as error:
        raise ValueError(f"its header is damaged ({error})") from error
    if min(shape, default=0) < 0:
        raise ValueError(f"its header has the shape {shape}")
    return shape, dtype


def file_identity(array: Any) -> tuple[int, int] | None:
    """Device and inode of the file at the path that `array` was mapped from.

    None if the array is in memory, or if there is no such file any more.
    """
    name = getattr(array, "filename", None)
    if name is None:
        return None
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino
