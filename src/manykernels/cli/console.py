"""Errors that are told in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

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


# -- What is said: results on standard output, remarks on standard error, bars on terminals -------


# Characters of the longest bar of a weight.
_BAR = 24
# Characters in a line if the output is no terminal: tables are not cut there.
_WIDE = 200


def note(text: str) -> None:
    """A remark, which is no result."""
    print(f"note: {sentence(text)}", file=sys.stderr)


def say(text: str = "") -> None:
    """A line of a result, as it is."""
    for line in text.split("\n"):
        print(printable(line))


def say_bars(title: str, shares: Iterable[tuple[str, float]]) -> None:
    """Shares of a whole as bars."""
    pairs = list(shares)
    largest = max((share for _, share in pairs), default=0.0) or 1.0
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    for name, share in pairs:
        bar = "█" * round(_BAR * share / largest)
        table.add_row(Text(f"  {sentence(name)}"), Text(bar, style="cyan"), Text(f"{share:.3f}"))
    say(title)
    _console().print(table)


def say_table(rows: Sequence[tuple[str, Any]]) -> None:
    """Names and values, one pair per line."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(sentence(name), style="bold"), Text(sentence(str(value))))
    _console().print(table)


def _console() -> Console:
    """Of the output as it is now."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE)


def with_progress(estimator: Any) -> Any:
    """An estimator that shows bars while it is fitted, if someone is looking."""
    if sys.stdout.isatty():
        from sklearn.callback import ProgressBar

        estimator.set_callbacks(ProgressBar())
    return estimator
