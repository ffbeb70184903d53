"""Errors that say where they happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming(culprit: str) -> Iterator[None]:
    """Put `culprit` in front of the message of any error raised inside.

    The error itself goes on, so that its type and traceback stay what they were.
    """
    try:
        yield
    except Exception as error:
        error.args = (f"{culprit}: {error}", *error.args[1:])
        raise
