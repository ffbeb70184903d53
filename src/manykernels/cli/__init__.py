"""The command ``manykernels``: fit, predict, inspect, compare, importance, demo.

=============  ===============================================================================
`app`          the commands, their options and help texts, and ``main``
`commands`     the work of each command, and the files that it writes
`request`      options of a command, from the command line and from a TOML file
`files`        readers of tables, sequences and kernel matrices
`samples`      rows of several files matched; the target; the estimator
`console`      errors and output on the terminal
=============  ===============================================================================

Exit codes: 0 on success, 1 if data or a model cannot be used, 2 if the command line is invalid,
130 after Ctrl-C. An error is printed as a single line.
"""

from .app import main

__all__ = ["main"]
