"""Work shared by threads, one for each core that may be used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from .._sklearn import openmp_n_threads

# Whether a thread is one of those below: what it does in turn is not divided again.
_inside = threading.local()


def n_threads() -> int:
    """How many threads there are for the parts of a work; one inside of a part."""
    if getattr(_inside, "working", False):
        return 1
    return int(openmp_n_threads(only_physical_cores=False))


def in_threads(work: Callable[[Any], None], parts: list[Any], fewest: int = 0) -> None:
    """Call ``work(part)`` for every part, in as many threads as there are cores to use."""
    n_used = min(n_threads(), len(parts))
    if n_used <= 1 or len(parts) < fewest:
        for part in parts:
            work(part)
        return
    # BLAS uses one thread in each of these: more would wait for one another.
    with one_blas_thread(), ThreadPoolExecutor(n_used, initializer=_begin) as threads:
        for _ in threads.map(work, parts):
            pass


def _begin() -> None:
    _inside.working = True


@contextmanager
def undivided() -> Iterator[None]:
    """What is done inside, in this thread, is not divided among others: they have work too."""
    before = getattr(_inside, "working", False)
    _inside.working = True
    try:
        yield
    finally:
        _inside.working = before


class _OneBlasThread:
    """One thread of BLAS as long as anyone is inside.

    The number of threads belongs to the whole process, whichever thread sets it. So the first that
    enters sets it, and the last that leaves puts it back, in whatever order they leave.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        # Libraries whose number of threads was changed, and what it was.
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
    """Limit the libraries to one thread; those that this has changed, and how many they had.

    A limit that another thread has set by threadpoolctl stays as it is, and is not ours to undo.
    """
    before = [(library, library.num_threads) for library in _libraries().lib_controllers]
    before = [(library, number) for library, number in before if number != 1]
    for library, _ in before:
        library.set_num_threads(1)
    return [(library, number) for library, number in before if library.num_threads != number]


def _put_back(before: list[tuple[Any, int]]) -> None:
    for library, number in before:
        # From version 3.8 on, threadpoolctl listens only to the thread that has set a limit first,
        # until it is told that this thread is done.
        done = getattr(library, "clear_controlling_thread", lambda force=False: None)
        done(force=True)
        library.set_num_threads(number)
        done()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")
