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
    limit = _libraries().limit(limits=1, user_api="blas")
    with limit, ThreadPoolExecutor(n_used, initializer=_begin) as threads:
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


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
