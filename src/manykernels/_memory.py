"""Memory is checked before it is allocated: a stack that is too large is refused, with advice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ._files import GIB, npy_header, replacing


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping, or None where the system does not say."""
    candidates = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                candidates.append(int(line.split()[1]) * 1024)
        # Inside a container, the limit of the control group.
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            candidates.append(max(int(limit) - used, 0))
    except (OSError, ValueError):
        pass
    if not candidates:
        try:
            candidates.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    return min(candidates)


_WAYS_OUT = (
    "Use fewer rows or kernels, or keep the stack in single precision and on disk: "
    'union(X, dtype="float32", memmap="stack.npy"), which estimators take with '
    'kernels="precomputed". From a table, MKFDA(solver="coordinate") and '
    'MKSVC(solver="interleaved") compute kernels when they need them, and '
    "approximation=Nystrom() learns from features that approximate them."
)


def require_memory(
    shape: tuple[int, ...], what: str = "The kernel stack", dtype: Any = np.float64
) -> None:
    """Raise MemoryError, with the size and advice, if an array does not fit into memory."""
    needed = np.dtype(dtype).itemsize * prod(int(size) for size in shape)
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} of shape {tuple(shape)} needs {needed / GIB:.1f} GiB, but "
            f"{available / GIB:.1f} GiB are available. {_WAYS_OUT}"
        )


def allocate(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Uninitialised array of `shape` in memory."""
    require_memory(shape, dtype=dtype)
    return np.empty(shape, dtype)


@dataclass
class Storage:
    """What :func:`storage` yields; a mapped ``data`` is opened again when the block ends."""

    data: np.ndarray


@contextmanager
def storage(
    shape: tuple[int, ...], memmap: str | Path | None = None, dtype: Any = np.float64
) -> Iterator[Storage]:
    """An array to fill inside the block, in memory or in the .npy file `memmap`.

    The file replaces an old one when the block ends, and ``data`` is then mapped from it,
    read-only. If anything is raised inside, an old file is left as it was.
    """
    if memmap is None:
        yield Storage(allocate(shape, dtype))
        return
    header = npy_header(shape, dtype)
    n_bytes = len(header) + np.dtype(dtype).itemsize * prod(shape)
    with replacing(memmap, n_bytes) as file:
        file.write(header)
        file.flush()
        space = Storage(np.memmap(file, dtype, "r+", len(header), shape))
        yield space
    space.data = np.memmap(memmap, dtype, "r", len(header), shape)
