"""Tolerances for rounding errors, BLAS products, memory and threads.

All tolerances but TINY are relative to the numbers that a result was computed from. Other
tolerances in the package are explained multiples of these.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import blas
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from .files import GIB, npy_header, replacing
from .sklearn import openmp_n_threads

#: Distance from 1 to the next double: twice the rounding error of one operation.
EPS = float(np.finfo(np.float64).eps)

#: Smallest positive number with full precision; guards divisions by possible zeros.
TINY = float(np.finfo(np.float64).tiny)

#: Rounding error of a short computation, some dozen operations or a sum of well-scaled terms.
#: A sum below this share of its terms cannot be distinguished from zero.
ROUNDING = 1e-14

#: Rounding error of a result that went through a factorisation or thousands of operations.
ACCUMULATED = 1e-12


# -- Matrix products by SciPy's BLAS, for C-ordered arrays ----------------------------------------
#
# NumPy and SciPy each contain a copy of BLAS, whose threads keep spinning after each call. On few
# cores the two slow each other down if calls alternate. The factorisations of the losses use
# SciPy's BLAS, so products in the same loop do too.


Array = NDArray[np.float64]

# Up to so many columns, a product column by column is faster than one of matrices: in 0.5 to 0.8
# of the time at 200 to 2000 rows; with five columns it takes as long, or longer (measured). That
# of a symmetric matrix (dsymv) reads half of it, but its sums have larger rounding errors.
_FEW_COLUMNS = 3


def matmul(left: Array, right: Array, scale: float = 1.0) -> Array:
    """Return ``scale · left @ right`` for a C-ordered matrix and a matrix or vector.

    `left` is not copied: its transpose is Fortran-ordered, as BLAS needs it. A product of matrices
    is Fortran-ordered.
    """
    if right.ndim == 1:
        product: Array = blas.dgemv(scale, left.T, right, trans=1)
    elif right.shape[1] <= _FEW_COLUMNS:
        product = np.empty((len(left), right.shape[1]), order="F")
        for k, column in enumerate(right.T):
            product[:, k] = blas.dgemv(scale, left.T, column, trans=1)
    else:
        product = blas.dgemm(scale, left.T, right, trans_a=1)
    return product


def add_scaled(target: Array, source: Array, scale: float) -> None:
    """Compute ``target += scale · source`` for C-ordered arrays of one shape."""
    blas.daxpy(source.reshape(-1), target.reshape(-1), a=scale)


def weighted_sums(weights: Array, rows: Array) -> Array:
    """Return ``weights @ rows`` for C-ordered matrices: a weighted sum per row of `weights`."""
    return blas.dgemm(1.0, rows.T, weights.T).T


# -- Memory, checked before it is allocated -------------------------------------------------------


def available_memory() -> int | None:
    """Return the bytes that can be allocated without swapping, or None if unknown."""
    candidates = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                candidates.append(int(line.split()[1]) * 1024)
        # The limit of the control group, in containers.
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
    'union(X, dtype="float32", memmap="stack.npy"), which estimators accept with '
    'kernels="precomputed". From a table, MKFDA(solver="coordinate") and '
    'MKSVC(solver="interleaved") compute kernels on demand, and '
    'approximation="nystrom" of MKFDA, MKRidge, MKFDACV and MKRidgeCV learns from landmarks.'
)


def require_memory(
    shape: tuple[int, ...], what: str = "The kernel stack", dtype: DTypeLike = np.float64
) -> None:
    """Raise a MemoryError with size and advice if an array does not fit into memory."""
    needed = np.dtype(dtype).itemsize * prod(int(size) for size in shape)
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} of shape {tuple(shape)} needs {needed / GIB:.1f} GiB, but "
            f"{available / GIB:.1f} GiB are available. {_WAYS_OUT}"
        )


def allocate(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
    """Return an uninitialised array of `shape`, if it fits into memory."""
    require_memory(shape, dtype=dtype)
    return np.empty(shape, dtype)


@dataclass
class Storage:
    """Array yielded by :func:`storage`; a mapped ``data`` is reopened when the block ends."""

    data: np.ndarray


@contextmanager
def storage(
    shape: tuple[int, ...], memmap: str | Path | None = None, dtype: DTypeLike = np.float64
) -> Iterator[Storage]:
    """Provide an array to fill inside the block, in memory or in the .npy file `memmap`.

    When the block ends, the file replaces an existing one, and ``data`` is mapped from it,
    read-only. If the block raises an exception, an existing file is unchanged.
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


# -- Threads --------------------------------------------------------------------------------------


# Marks worker threads, whose work is not divided again.
_inside = threading.local()
Task = TypeVar("Task")


def n_threads() -> int:
    """Return the number of threads to use; one inside a worker thread."""
    if getattr(_inside, "working", False):
        return 1
    return int(openmp_n_threads(only_physical_cores=False))


def in_threads(work: Callable[[Task], None], tasks: list[Task], fewest: int = 0) -> None:
    """Call ``work(task)`` for every task, in threads if there are at least `fewest` tasks."""
    n_used = min(n_threads(), len(tasks))
    if n_used <= 1 or len(tasks) < fewest:
        for task in tasks:
            work(task)
        return
    # One BLAS thread in each worker thread: more would compete for the cores.
    with one_blas_thread(), ThreadPoolExecutor(n_used, initializer=_begin) as threads:
        for _ in threads.map(work, tasks):
            pass


def _begin() -> None:
    _inside.working = True


@contextmanager
def undivided() -> Iterator[None]:
    """Disable `in_threads` in this thread inside the block."""
    before = getattr(_inside, "working", False)
    _inside.working = True
    try:
        yield
    finally:
        _inside.working = before


class _OneBlasThread:
    """Context manager that limits BLAS to one thread.

    The number of BLAS threads is a property of the process. So the first thread that enters sets
    the limit, and the last that leaves restores it, in whatever order they leave.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        # Libraries whose number of threads was changed, and the previous number.
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._n_inside == 0:
                self._before = _limited()
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    _put_back(self._before)


one_blas_thread: Callable[[], Any] = _OneBlasThread().__call__


def _limited() -> list[tuple[Any, int]]:
    """Limit the libraries to one thread; return the changed ones with their previous numbers.

    A limit that another thread has set by threadpoolctl is neither changed nor restored.
    """
    before = [(library, library.num_threads) for library in _libraries().lib_controllers]
    before = [(library, number) for library, number in before if number != 1]
    for library, _ in before:
        library.set_num_threads(1)
    return [(library, number) for library, number in before if library.num_threads != number]


def _put_back(before: list[tuple[Any, int]]) -> None:
    for library, number in before:
        # Since version 3.8, threadpoolctl accepts changes only from the thread that first set a
        # limit, until that thread is cleared.
        done = getattr(library, "clear_controlling_thread", lambda force=False: None)
        done(force=True)
        library.set_num_threads(number)
        done()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")
