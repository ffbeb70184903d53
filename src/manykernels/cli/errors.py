"""Errors that are told in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

# Most characters of a message, and most names that one lists: a terminal of some lines.
_LONGEST = 600
_SHOWN = 8


class DataError(Exception):
    """Data or a model that cannot be used."""

    code = 1


class UsageError(DataError):
    """A command that cannot be understood."""

    code = 2


def sentence(text: str) -> str:
    """`text` in one line, and nothing in it that a terminal would obey."""
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        line = f"{line[:_LONGEST]}…"
    return printable(line)


def printable(text: str) -> str:
    """`text` with an escape such as ``\\x1b`` for what a terminal would obey or not show."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def listed(names: Iterable[object]) -> str:
    """The first names, quoted."""
    names = list(names)
    some = ", ".join(repr(str(name)) for name in names[:_SHOWN])
    return some + (", …" if len(names) > _SHOWN else "") or "none"
