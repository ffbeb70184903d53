"""Data of several classes as Ye, Ji and Chen (2008) used them, as far as they can be had.

How many rows they took is said for one set only, a hundred of each class. For the others it
follows from the accuracies that they print: means over 30 splits, hence multiples of 100/30/n for
n test rows. All of them are, with n the 40 % of a hundred rows per class, or of the 178 of wine.

Which hundred rows of satimage they took is not known, and matters much: neighbouring rows come
from neighbouring places. So there are two versions of it, the first hundred rows of each class in
the order of the file, and a hundred drawn anew for every split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import MinMaxScaler

from benchmarks import _data
from manykernels import KernelStack, rbf_grid

ROWS_PER_CLASS = 100
# Of satimage, the part that its providers call the training set.
_SATIMAGE_ROWS = 4435
_NOISE_COLUMNS = 19

Table = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class MulticlassSet:
    """One set: its name in the paper, what was done to it, and how to draw X and y by a seed."""

    name: str
    title: str
    draw: Callable[[int], Table]
    #: Splits on which QCQP is run, whose time grows with the fourth power of the classes.
    n_qcqp: int


def gaussian_kernels(X: np.ndarray, n_kernels: int = 10) -> KernelStack:
    """The kernels exp(−d²/σ) of the paper, σ from 0.1 to 100, between all rows."""
    return rbf_grid(np.logspace(-1, 2, n_kernels) ** 0.5, gamma=1.0).fit(X)(X)


def waveform(seed: int, n_per_class: int = ROWS_PER_CLASS) -> Table:
    """The generator of Breiman et al. (1984), section 2.6.2, equally many rows of each class.

    Each class mixes two of three triangles h, in a random proportion u, and adds unit noise:
    ``x_i = u h_a(i) + (1 − u) h_b(i) + ε_i`` for i = 1..21. In the version of the UCI repository
    that is called waveform-noise, and here, there are 19 further columns of noise.

    Examples
    --------
    >>> X, y = waveform(0)
    >>> X.shape
    (300, 40)
    """
    rng = np.random.default_rng(seed)
    position = np.arange(1, 22)
    triangles = np.array([np.maximum(6 - np.abs(position - peak), 0) for peak in (11, 15, 7)])
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    y = np.repeat(np.arange(3), n_per_class)
    u = rng.random((len(y), 1))
    signal = u * triangles[first[y]] + (1 - u) * triangles[second[y]]
    X = np.hstack([signal, np.zeros((len(y), _NOISE_COLUMNS))])
    return X + rng.standard_normal(X.shape), y


def wine(seed: int) -> Table:
    """All 178 rows, columns in [−1, 1]; the seed has no effect."""
    X, y = load_wine(return_X_y=True)
    return MinMaxScaler((-1, 1)).fit_transform(X), y


def first_of_satimage(n_classes: int, seed: int) -> Table:
    """The first hundred rows of each class; the seed has no effect."""
    X, y = _satimage()
    return _taken(X, y, n_classes, lambda rows: rows)


def drawn_from_satimage(n_classes: int, seed: int) -> Table:
    """A hundred rows of each class, drawn at random."""
    X, y = _satimage()
    return _taken(X, y, n_classes, np.random.default_rng(seed).permutation)


def _taken(
    X: np.ndarray, y: np.ndarray, n_classes: int, order: Callable[[np.ndarray], np.ndarray]
) -> Table:
    classes = np.unique(y)[:n_classes]
    rows = [order(np.flatnonzero(y == one))[:ROWS_PER_CLASS] for one in classes]
    return X[np.concatenate(rows)], y[np.concatenate(rows)]


@cache
def _satimage() -> Table:
    """The training part, columns in [−1, 1], as LIBSVM's copy of it has them."""
    X, y = _data.satimage()
    X, y = X[:_SATIMAGE_ROWS], y[:_SATIMAGE_ROWS]
    return MinMaxScaler((-1, 1)).fit_transform(X), y


def _satimage_sets() -> dict[str, MulticlassSet]:
    sets = {}
    for n_classes, n_qcqp in ((3, 3), (5, 1), (6, 0)):
        name = f"satimage({n_classes})"
        first, drawn = f"{name} first", f"{name} drawn"
        sets[first] = MulticlassSet(
            name,
            "first hundred rows of each class, columns in [−1, 1]",
            partial(first_of_satimage, n_classes),
            n_qcqp,
        )
        sets[drawn] = MulticlassSet(
            name,
            "hundred rows of each class drawn anew for each split, columns in [−1, 1]",
            partial(drawn_from_satimage, n_classes),
            0,
        )
    return sets


#: By the names that the command line takes.
SETS = {
    "wine(3)": MulticlassSet("wine(3)", "178 rows, columns in [−1, 1]", wine, 3),
    **_satimage_sets(),
    "waveform(3)": MulticlassSet(
        "waveform(3)",
        "hundred rows of each class drawn anew for each split, 40 columns",
        waveform,
        3,
    ),
}
