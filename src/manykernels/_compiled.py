"""Compilation by numba, with a cache on disk where there is a place for one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorator: ``numba.njit(**options)``, with compiled code kept for the next process.

    ``njit(cache=True)`` raises where no directory can be written: neither ``NUMBA_CACHE_DIR``,
    nor ``__pycache__`` beside the source, nor a directory of the user. Here the function is then
    compiled anew in every process, which takes some seconds.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Any = njit(**options)(function)
        # RuntimeError: numba finds no directory. OSError: the source cannot be read.
        with suppress(RuntimeError, OSError):
            # What njit(cache=True) does, with a cache that may fail later.
            dispatcher._cache = _CacheThatMayFail(function)
        compiled_function: Function = dispatcher
        return compiled_function

    return decorate


class _CacheThatMayFail(FunctionCache):  # type: ignore[misc]
    """A cache that is given up when a file cannot be read or written.

    Damaged files raise whatever pickle makes of them. Nothing is lost: the function is compiled.
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
