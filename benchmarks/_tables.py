"""What the pages of the benchmarks are made of."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version

import joblib

from manykernels import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "clarabel", "highspy", "numba")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """Markdown table, padded to be read as it is; the first `n_left` columns start at the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            f"{cell:<{width}}" if i < n_left else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rules = [
        "-" * (width + 2) if i < n_left else "-" * (width + 1) + ":"
        for i, width in enumerate(widths)
    ]
    return "\n".join([line(header), f"|{'|'.join(rules)}|", *map(line, rows)])


def environment() -> str:
    """What the figures were measured with, one line."""
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return (
        f"manykernels {__version__}, {versions}, Python {platform.python_version()}; "
        f"{platform.system()} {platform.machine()}, {joblib.cpu_count()} cores."
    )


def verdict(held: bool) -> str:
    return "held" if held else "MISSED"
