"""Compilation by numba, with a cache on disk wherever one can be written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorator: ``numba.njit(**options)``, with the compiled code cached for other processes.

    ``njit(cache=True)`` raises if no cache directory can be written: neither ``NUMBA_CACHE_DIR``,
    nor ``__pycache__`` beside the source, nor the user's cache directory. With this decorator
    every process then compiles the function again, which takes some seconds.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Any = njit(**options)(function)
        # RuntimeError: numba finds no directory. OSError: the source cannot be read.
        with suppress(RuntimeError, OSError):
            # As njit(cache=True) does, but with another class of cache.
            dispatcher._cache = _OptionalCache(function)
        compiled_function: Function = dispatcher
        return compiled_function

    return decorate


class _OptionalCache(FunctionCache):  # type: ignore[misc]
    """A cache that is disabled, and the function compiled, if a file cannot be read or written.

    Every exception is caught, since pickle raises many kinds on damaged files.
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
