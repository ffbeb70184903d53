"""Memory asked for before it is taken: a stack that cannot fit is refused with a way out."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

import numpy as np

_GIB = 2**30


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping, or None where the system does not say."""
    candidates = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                candidates.append(int(line.split()[1]) * 1024)
        # Inside a container the limit of the control group is the one that kills.
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


def require_memory(shape: tuple[int, ...], what: str = "The kernel stack") -> None:
    """Raise MemoryError, naming the size and the way out, if float64 `shape` cannot be held."""
    needed = 8 * prod(int(size) for size in shape)
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} of shape {tuple(shape)} needs {needed / _GIB:.1f} GiB, but "
            f"{available / _GIB:.1f} GiB are available. Use fewer rows or kernels, or keep the "
            'stack on disk: union(X, memmap="stack.npy").'
        )


def allocate(shape: tuple[int, ...], memmap: str | Path | None = None) -> np.ndarray:
    """Uninitialised float64 array of `shape`, in memory or in the .npy file `memmap`."""
    if memmap is not None:
        return np.lib.format.open_memmap(memmap, mode="w+", dtype=np.float64, shape=shape)
    require_memory(shape)
    return np.empty(shape)
