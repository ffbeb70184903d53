"""Warnings that point at the user's line of code."""

from __future__ import annotations

import sys
import warnings

# Packages whose frames may lie between the user's call and the warning.
_BETWEEN = {"manykernels", "sklearn", "joblib"}


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line that called this package, however many calls there are in between.

    Python 3.12 has ``warnings.warn(..., skip_file_prefixes=...)`` for this, Python 3.11 has not.
    """
    # Level 1 is this function, level 2 the one that calls it.
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _package(frame.f_globals) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
