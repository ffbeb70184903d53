"""The command ``manykernels``: fit, predict, inspect, compare, importance, demo.

=============  ===============================================================================
`app`          the commands, their options and their help
`grammar`      what a view is, as text: ``name=file:columns:kernel(…)``
`request`      what a command is asked for, by options and by a file in TOML
`files`        tables and sequences from files
`matrices`     kernel matrices from files
`mat5`         files of MATLAB
`samples`      rows of several files matched, the target found and kept out of the features
`targets`      classes or numbers, and columns that tell the target
`methods`      the estimator that was asked for
`fitting`      fit
`answering`    predict, inspect
`judging`      importance, compare
`demo`         demo
`outputs`      files that are written whole, once everything is known
`talking`      what is said, and where
`errors`       what is told in one sentence
`running`      ``main``
=============  ===============================================================================

Exit codes: 0 if all went well, 1 if data or a model cannot be used, 2 if the command was not
understood, 130 after Ctrl-C. Whatever goes wrong is told in one sentence.
"""

from .app import main

__all__ = ["main"]
