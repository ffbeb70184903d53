"""Functions compiled by numba, with a cache on disk if one can be written."""

import gc
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*, internal: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Return a decorator ``numba.njit(**options)`` that caches compiled code on disk if possible.

    ``njit(cache=True)`` raises if no cache directory can be written: neither ``NUMBA_CACHE_DIR``,
    nor ``__pycache__`` beside the source, nor the user's cache directory. With this decorator
    every process then compiles the function again, which takes some seconds.

    An `internal` function is called by compiled functions only. It needs no cache, as it is part
    of theirs, and takes less time to compile.
    """

    def decorate(function: Function) -> Function:
        # Nothing calls them from C: without wrappers functions are compiled sooner.
        wrappers: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": internal}
        dispatcher: Any = njit(**wrappers, **options)(function)
        if internal:
            return cast("Function", dispatcher)
        dispatcher.compile = _without_collections(dispatcher.compile)
        # RuntimeError: numba finds no directory. OSError: the source cannot be read.
        with suppress(RuntimeError, OSError):
            # As njit(cache=True), but with another cache class.
            dispatcher._cache = _OptionalCache(function)
        compiled_function: Function = dispatcher
        return compiled_function

    return decorate


def _without_collections(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that compiles without collections of garbage.

    Compiling makes so many objects that there are several, which would take a fifth of the time.
    """

    @wraps(compile_)
    def call(*arguments: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return compile_(*arguments)
        finally:
            if collects:
                gc.enable()

    return call


class _OptionalCache(FunctionCache):  # type: ignore[misc]
    """Cache that disables itself if a file cannot be read or written.

    Every exception is caught, since pickle raises many types on damaged files.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            self.disable()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:
            self.disable()


# -- Pairs of strings with a common word ----------------------------------------------------------


@compiled(nogil=True)
def add_pairs(  # type: ignore[no-untyped-def]
    K, weight, start, stop, bounds, words, counts, list_bounds, strings, list_counts, gram
):
    """Add products of word counts to `K`, row by row.

    The strings of each word are sorted, so that those on and above the diagonal come last.
    """
    for i in range(start, stop):
        for entry in range(bounds[i], bounds[i + 1]):
            word = words[entry]
            count = weight * counts[entry]
            for place in range(list_bounds[word + 1] - 1, list_bounds[word] - 1, -1):
                j = strings[place]
                if gram and j < i:
                    break
                K[i, j] += count * list_counts[place]


# -- Sums over gated kernels ----------------------------------------------------------------------
#
# `kernels` are symmetric matrices (P, m, m), `gates` the gate outputs of each kernel, (P, m).


_FAST = {"reassoc", "contract", "nsz"}


@compiled(fastmath=_FAST)
def fill_rows(kernels: Any, gates: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write `rows` of ``Σ_p diag(gate_p) K_p diag(gate_p)`` into the same rows of `out`.

    Kernels are the outer loop, so that neighbouring rows are read consecutively. Rows with gate 0
    are not read.
    """
    n_kernels, n = gates.shape
    for i in rows:
        out[i] = 0.0
    for p in range(n_kernels):
        gate = gates[p]
        for i in rows:
            row, target, row_gate = kernels[p, i], out[i], gate[i]
            if row_gate != 0.0:
                for j in range(n):
                    target[j] += row_gate * gate[j] * row[j]


@compiled(fastmath=_FAST)
def weighted_sums(
    kernels: Any, gates: np.ndarray, weights: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> None:
    """Compute ``out[a, p] = Σ_b weights[a, b] K_p[rows[a], rows[b]] gate_p[rows[b]]``.

    `weights` is symmetric, so that half of all pairs are sufficient. If `rows` are all rows in
    order, rows of kernels are read without a copy.
    """
    n_kernels, n = len(gates), len(rows)
    gate, sums, gathered = np.empty(n), np.empty(n), np.empty(n)
    for p in range(n_kernels):
        for a in range(n):
            gate[a] = gates[p, rows[a]]
            sums[a] = 0.0
        for a in range(n):
            row = kernels[p, rows[a]]
            if n < len(row):
                for b in range(a + 1):
                    gathered[b] = row[rows[b]]
                row = gathered
            pairs, row_gate, total = weights[a], gate[a], 0.0
            for b in range(a):
                value = row[b] * pairs[b]
                total += value * gate[b]
                sums[b] += value * row_gate
            sums[a] += total + row[a] * pairs[a] * row_gate
        out[:, p] = sums
