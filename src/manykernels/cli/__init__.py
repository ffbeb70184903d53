"""The command ``manykernels``: fit, predict, inspect, compare, importance, demo.

=============  ===============================================================================
`app`          the commands, their options and help texts, and ``main``
`commands`     the work of each command but ``predict``
`prediction`   the command ``predict``: new samples read as the model was fitted
`outputs`      files that a command writes
`request`      options of a command, from the command line and from a TOML file
`files`        readers of tables, sequences and kernel matrices
`samples`      rows of several files matched; the target; the estimator
`reading`      options of reading, labels of rows
`cells`        cells of a table: numbers, gaps, texts
`console`      errors and output on the terminal
=============  ===============================================================================

Exit codes: 0 on success, 1 if data or a model cannot be used, 2 if the command line is invalid,
130 after Ctrl-C. An error is printed as a single line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..utils.versions import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after ``manykernels``; by default those of the process.

    Returns
    -------
    code : int
        0 on success, 1 if data or a model cannot be used, 2 if the command line is invalid, 130
        after an interruption.

    Examples
    --------
    >>> from manykernels.cli import main
    >>> main(["inspect", "nothing.skops"])
    1
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments == ["--version"]:  # without the second that imports take
        print(f"manykernels {__version__}")
        return 0
    try:
        from .app import run
    except ImportError as error:
        if (message := without_extra(error)) is None:
            raise
        print(f"manykernels: {message}", file=sys.stderr)
        return 2
    return run(arguments)


# Packages of the extra that every command needs.
_EXTRA = {"typer", "rich", "pandas", "skops"}


def without_extra(error: ImportError) -> str | None:
    """Return what to install if a package of the extra is missing, else None."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRA:
        return None
    return (
        f'the command line needs {package}, which is not installed: pip install "manykernels[cli]"'
    )
