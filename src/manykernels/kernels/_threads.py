"""Work shared by threads, one for each core that may be used."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from .._sklearn import openmp_n_threads


def in_threads(work: Callable[[Any], None], parts: list[Any], fewest: int = 0) -> None:
    """Call ``work(part)`` for every part, in as many threads as there are cores to use."""
    n_threads = min(openmp_n_threads(only_physical_cores=False), len(parts))
    if n_threads <= 1 or len(parts) < fewest:
        for part in parts:
            work(part)
        return
    # BLAS uses one thread in each of these: more would wait for one another.
    limit = _libraries().limit(limits=1, user_api="blas")
    with limit, ThreadPoolExecutor(n_threads) as threads:
        for _ in threads.map(work, parts):
            pass


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
