"""The command ``manykernels``: fit, predict, inspect, compare, importance, demo.

============  =============================================================
`app`         the commands, their options and their help; ``main``
`request`     options of a command, from the command line or a file in TOML
`files`       tables, sequences and kernel matrices from files
`samples`     rows of several files matched, the target, the estimator
`commands`    the work of each command, and the files that it writes
`console`     output, progress bars and errors
============  =============================================================

Exit codes: 0 for success, 1 if data or a model cannot be used, 2 for a wrong command line, 130
after Ctrl-C. Every error is one sentence.
"""

from .app import main

__all__ = ["main"]
