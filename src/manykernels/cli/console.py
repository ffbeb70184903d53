"""Errors and output on the terminal."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

# Limits that keep a message to a few lines of a terminal: characters, and names in a list.
_LONGEST = 600
_SHOWN = 8


class DataError(Exception):
    """Data or a model that cannot be used."""

    code = 1


class UsageError(DataError):
    """An invalid command line or specification."""

    code = 2


def sentence(text: str) -> str:
    """Return `text` in one line, shortened and without control characters."""
    line = " ".join(text.split())
    if len(line) > _LONGEST:
        line = f"{line[:_LONGEST]}…"
    return printable(line)


def printable(text: str) -> str:
    """Return `text` with control characters escaped, such as ``\\x1b``."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def listed(names: Iterable[object]) -> str:
    """Return the first names, quoted and separated by commas."""
    names = list(names)
    first = ", ".join(repr(str(name)) for name in names[:_SHOWN])
    return first + (", …" if len(names) > _SHOWN else "") or "none"


# -- Output: results on standard output, notes on standard error ----------------------------------


# Length of the longest bar of a weight, in characters.
_BAR = 24
# Width of lines if the output is not a terminal, so that tables are not cut.
_WIDE = 200


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"note: {sentence(text)}", file=sys.stderr)


def say(text: str = "") -> None:
    """Print lines of a result on standard output."""
    for line in text.split("\n"):
        print(printable(line))


def say_bars(title: str, shares: Iterable[tuple[str, float]]) -> None:
    """Print shares as a bar chart."""
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
    """Print names and values, one pair per line."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(sentence(name), style="bold"), Text(sentence(str(value))))
    _console().print(table)


def _console() -> Console:
    """Return a console for the current standard output."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE)


def with_progress(estimator: Any) -> Any:
    """Add a progress bar to an estimator if the output is a terminal."""
    if sys.stdout.isatty():
        from sklearn.callback import ProgressBar

        estimator.set_callbacks(ProgressBar())
    return estimator
