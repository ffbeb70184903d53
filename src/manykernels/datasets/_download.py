"""Files of public data sets: found in a folder, or downloaded into it, checked.

A download is kept only if it is whole and its SHA-256 is the one of the file that was seen when
the data set was entered in the table of sources. It is written to a temporary file first
(:func:`manykernels._files.replacing`), so that an interruption leaves nothing behind. Addresses
other than ``http`` and ``https`` are refused, redirections to them too. Files that are in the
folder already are used as they are.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
import warnings
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from .._files import replacing

#: Environment variable that names the folder of data sets.
VARIABLE = "MANYKERNELS_DATA"
# Seconds without any answer after which a server counts as out of reach.
TIMEOUT = 30.0
# Bytes read at once: little memory, and few calls.
_CHUNK = 2**16
# Bytes of the largest file accepted if its size is not known: far above any in the table, so that
# a server that never ends does not fill the disk.
_MOST = 2**26


@dataclass(frozen=True)
class File:
    """A file of a data set: its place below the folder, its address, and what is known of it.

    `sha256` and `n_bytes` are None if the file has never been seen.
    """

    path: str
    url: str
    sha256: str | None = None
    n_bytes: int | None = None


class _Web(urllib.request.OpenerDirector):
    """What opens ``http`` and ``https``, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        for handler in (
            urllib.request.ProxyHandler,
            urllib.request.HTTPHandler,
            urllib.request.HTTPSHandler,
            urllib.request.HTTPRedirectHandler,
            urllib.request.HTTPDefaultErrorHandler,
            urllib.request.HTTPErrorProcessor,
            urllib.request.UnknownHandler,
        ):
            self.add_handler(handler())


def data_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """The folder of data sets: as given, that of the environment, or one in the home folder."""
    if data_home is None:
        data_home = os.environ.get(VARIABLE) or Path("~") / "manykernels_data"
    return Path(data_home).expanduser()


def found_or_downloaded(
    file: File, folder: Path, *, download_if_missing: bool, timeout: float = TIMEOUT
) -> Path:
    """The path of a file in `folder`, downloaded if it is not there.

    Raises OSError, with the address and the path in its message, if the file cannot be had.
    """
    path = folder / file.path
    if path.is_file():
        return path
    if not download_if_missing:
        raise OSError(_way_out(file, path, "download_if_missing is False"))
    if urlsplit(file.url).scheme not in ("http", "https"):
        raise ValueError(f"Only http and https are downloaded from; got {file.url}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _Web().open(file.url, timeout=timeout) as answer:
            _keep(file, path, answer)
    except _AnotherFileError:
        raise
    # HTTPException: the server does not speak HTTP, or hangs up. OSError: all else, timeouts too.
    except (HTTPException, OSError) as error:
        raise OSError(_way_out(file, path, _reason(error))) from error
    return path


class _AnotherFileError(OSError):
    """A file that came whole, but is another one."""


def _keep(file: File, path: Path, answer: Any) -> None:
    """Write what a server sends to `path`, if it is what it should be."""
    with replacing(path, file.n_bytes or 0) as target:
        announced = answer.headers.get("Content-Length")
        n_bytes, found = _copied(answer, target, file.n_bytes or _MOST)
        # A connection that breaks is the end of the file to http.client.
        if announced is not None and n_bytes < int(announced):
            raise OSError(f"the connection broke after {n_bytes} of {announced} bytes")
        if file.sha256 is not None and found != file.sha256:
            raise _AnotherFileError(
                f"What {file.url} sent is not the file that this version of manykernels knows: "
                f"its SHA-256 is {found} and should be {file.sha256}. It was not kept. If you "
                f"trust it, save it as {path} yourself: files that are there are used as they are."
            )
    if file.sha256 is None:
        warnings.warn(
            f"{file.url} was saved as {path} without a check: there is no checksum of this file "
            f"to compare with. Its SHA-256 is {found}.",
            UserWarning,
            stacklevel=4,
        )


def _copied(answer: Any, target: IO[bytes], most: int) -> tuple[int, str]:
    """Number of bytes that came, and their SHA-256; no more are read than `most` and one chunk."""
    digest = hashlib.sha256()
    n_bytes = 0
    while chunk := answer.read(_CHUNK):
        digest.update(chunk)
        n_bytes += len(chunk)
        if n_bytes > most:
            raise OSError(f"the server sends more than the {most} bytes that the file has")
        target.write(chunk)
    return n_bytes, digest.hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it holds the connection
        return f"the server says {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _way_out(file: File, path: Path, reason: str) -> str:
    return (
        f"{path.name} is not in {path.parent} and was not downloaded from {file.url} ({reason}): "
        f"save it as {path}, or name a folder that has {file.path} by data_home or {VARIABLE}."
    )
