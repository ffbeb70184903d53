"""What the pages of the benchmarks are made of."""

from __future__ import annotations

import platform
from importlib.metadata import version

import joblib

from manykernels import __version__
from manykernels.utils.versions import markdown

__all__ = ["environment", "markdown", "verdict"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "clarabel", "highspy", "numba")


def environment() -> str:
    """What the figures were measured with, one line."""
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return (
        f"manykernels {__version__}, {versions}, Python {platform.python_version()}; "
        f"{platform.system()} {platform.machine()}, {joblib.cpu_count()} cores."
    )


def verdict(held: bool) -> str:
    return "held" if held else "MISSED"
