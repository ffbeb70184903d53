"""Warnings that point at the line of the user's code they are about."""

from __future__ import annotations

import sys
import warnings

# Frames of these packages lie between a user's call and the place that finds something to say.
_BETWEEN = {"manykernels", "sklearn", "joblib"}


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn where this package was called, however many calls deep this is.

    ``warnings.warn`` has ``skip_file_prefixes`` for it from Python 3.12 on.
    """
    # Level 1 is this function, level 2 the one that calls it.
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _package(frame.f_globals) in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
