"""``main``: runs a command, and tells in one sentence what went wrong."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from .errors import DataError, printable, sentence

# Exit codes; `DataError` and its kind have their own.
_REFUSED, _MISUSED = 1, 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
# Packages of the extra: without one of them there is no command line.
_EXTRA = {"typer", "rich", "pandas", "pyarrow", "skops"}
# What can be done about a column of text that is no category.
_TEXT_ADVICE = (
    "Name the other columns, --view a=file.csv:age,dose; or compare it in a view of its own by a "
    "kernel of strings, --view b=file.csv:column:spectrum, or as categories all the same, "
    "--view b=file.csv:column:categorical. Numbers and dates are converted in the file; a column "
    "that names the samples is told by --index."
)
# What data and parameters that do not fit make a library raise. Others are mistakes of ours.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``manykernels``; by default that of the command line.

    Returns
    -------
    code : int
        0, or 1 if data or a model cannot be used, 2 if the command was not understood, 130 after
        an interruption.

    Examples
    --------
    >>> from manykernels.cli import main
    >>> main(["inspect", "nothing.skops"])
    1
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a letter shows a question mark instead.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # Those are for whoever writes code.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = _told
        try:
            return _run(given)
        except BaseException as error:
            if debug:
                for line in traceback.format_exc().splitlines():
                    print(printable(line), file=sys.stderr)
            return _outcome(error)


def _run(arguments: list[str]) -> int:
    from .app import app

    code = app(arguments, prog_name="manykernels", standalone_mode=False)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return int(code or 0)


def _outcome(error: BaseException) -> int:
    """Tell what was wrong, and return the exit code for it."""
    if isinstance(error, DataError):
        return _say(str(error), error.code)
    if isinstance(error, KeyboardInterrupt):
        return _say("interrupted; nothing was written.", _INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        # Whoever reads the output has seen enough; what is buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _REFUSED
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ImportError) and package in _EXTRA:
        return _say(
            f"the command line needs {package}, which is not installed: "
            'pip install "manykernels[cli]"',
            _MISUSED,
        )
    if hasattr(error, "format_message"):
        return _misused(error)
    if advice := getattr(error, "advice", ""):  # what to do in Python about a column of text
        return _say(str(error).replace(advice, _TEXT_ADVICE), _REFUSED)
    if isinstance(error, _EXPECTED):
        return _say(str(error) or type(error).__name__, _REFUSED)
    return _say(
        f"{type(error).__name__}: {error} (this should not happen; --debug shows where it did)",
        _REFUSED,
    )


def _misused(error: BaseException) -> int:
    """What the parser of options says, and where there is help; all of the help if it is that."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        return _MISUSED
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "manykernels"
    said = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    return _say(f"{said}. Help: {command} --help", _MISUSED)


def _say(message: str, code: int) -> int:
    print(f"manykernels: {sentence(message)}", file=sys.stderr)
    return code


def _told(message: Warning | str, *where: object, **more: object) -> None:
    """A warning of a library, without the line of code that it is about."""
    print(f"note: {sentence(str(message))}", file=sys.stderr)
