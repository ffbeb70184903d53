"""From files of public data sets to tables and targets.

Each takes the paths of a set, in the order of its files in the table of sources, and returns a
table or a dict of tables, and the targets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ._xls import read_numbers

Parsed = tuple[Any, np.ndarray]


def labelled_rows(path: Path) -> Parsed:
    """Numbers, and the first letter of the class at the end of each line of a CSV file."""
    table = np.loadtxt(path, delimiter=",", dtype=str, ndmin=2)
    return table[:, :-1].astype(float), table[:, -1].astype("U1")


def numbered_rows(*paths: Path) -> Parsed:
    """Numbers between blanks, the class at the end of each line; files one after the other."""
    table = np.vstack([np.loadtxt(path, ndmin=2) for path in paths])
    return table[:, :-1], table[:, -1].astype(int)


def mfeat(*paths: Path) -> Parsed:
    """Views named by their files; those of OpenML have a header line, and the class at the end."""
    views = {}
    for path in paths:
        name = path.name.split(".")[0].removeprefix("mfeat-")
        views[name] = _openml(path) if path.suffix == ".csv" else np.loadtxt(path)
    return views, np.repeat(np.arange(10), 200)


def _openml(path: Path) -> np.ndarray:
    """The columns of a CSV file with a header line, but for the class at the end."""
    with path.open() as file:
        n_columns = file.readline().count(",") + 1
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(n_columns - 1))


def pendigits(*paths: Path) -> Parsed:
    """Training and test part of each view, and of the labels, which come last."""
    tables = [np.loadtxt(path, delimiter=",", ndmin=2) for path in paths]
    joined = [np.vstack(pair) for pair in zip(tables[::2], tables[1::2], strict=True)]
    views = dict(zip(("dyn", "sta4", "sta8", "sta16"), joined, strict=False))
    return views, joined[-1].ravel().astype(int)


def concrete(path: Path) -> Parsed:
    """A table of Excel, the target in its last column."""
    table = read_numbers(path)
    return table[:, :-1], table[:, -1]


def wine_quality(path: Path) -> Parsed:
    """Numbers between semicolons under a header line, the target at the end."""
    table = np.loadtxt(path, delimiter=";", skiprows=1, ndmin=2)
    return table[:, :-1], table[:, -1]
