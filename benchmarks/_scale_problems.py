"""Rows for the benchmarks of scale, made when they are read, so that any number of them fits.

A problem gives blocks of rows by their number; each is drawn from a seed of its own, and is the
same whenever it is read. Ten kernels, one for each of ten groups of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from benchmarks import _data
from manykernels.kernels import RBF

# Rows that are drawn at once.
ROWS_DRAWN = 2**15
N_VIEWS = 10
COLUMNS_OF_VIEW = 5
# Views that tell the classes apart; the others are noise.
RELEVANT = (0, 3, 7)
N_CLASSES = 3
# Distance of class means in a relevant view, in standard deviations; three of them make it hard.
SEPARATION = 0.9
# Training rows of the pen strokes; those after them are other hands.
_TRAINING = 7494
# Noise added to real rows, in standard deviations of each column.
REAL_NOISE = 0.1


@dataclass(frozen=True)
class Rows:
    """Rows drawn by number of their block."""

    n_rows: int
    draw: Callable[[int, int], tuple[np.ndarray, np.ndarray]]

    @property
    def sizes(self) -> list[int]:
        """Rows of every block."""
        starts = range(0, self.n_rows, ROWS_DRAWN)
        return [min(ROWS_DRAWN, self.n_rows - start) for start in starts]

    def lazy(self) -> tuple[Any, Any]:
        """All rows as arrays of dask, drawn when they are needed."""
        draw = dask.delayed(self.draw, pure=True)
        first, kinds = self.draw(0, 1)
        X, y = [], []
        for block, size in enumerate(self.sizes):
            both = draw(block, size)
            X.append(da.from_delayed(both[0], (size, first.shape[1]), first.dtype))
            y.append(da.from_delayed(both[1], (size,), kinds.dtype))
        return da.concatenate(X), da.concatenate(y)

    def whole(self) -> tuple[np.ndarray, np.ndarray]:
        """All rows, in memory."""
        X, y = zip(*(self.draw(block, size) for block, size in enumerate(self.sizes)), strict=True)
        return np.concatenate(X), np.concatenate(y)

    def fresh(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are in no block."""
        return self.draw(-1, n_rows)


def simulated(n_rows: int) -> Rows:
    """Three classes in ten views of five columns, of which three views are relevant.

    Classes differ in the means of relevant views, which lie on a circle.
    """
    angles = 2 * np.pi * np.arange(N_CLASSES) / N_CLASSES
    means = np.zeros((N_CLASSES, N_VIEWS, COLUMNS_OF_VIEW))
    for view in RELEVANT:
        means[:, view, :2] = SEPARATION * np.column_stack([np.cos(angles), np.sin(angles)])

    def draw(block: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([1, block + 1])
        y = rng.integers(N_CLASSES, size=size)
        X = rng.standard_normal((size, N_VIEWS * COLUMNS_OF_VIEW))
        X += means.reshape(N_CLASSES, -1)[y]
        return X, y

    return Rows(n_rows, draw)


def simulated_kernels() -> dict[str, RBF]:
    """A Gaussian kernel for every view."""
    width = COLUMNS_OF_VIEW
    return {f"view{j}": RBF().on(slice(j * width, (j + 1) * width)) for j in range(N_VIEWS)}


def tiled_pendigits(n_rows: int) -> Rows:
    """Pen strokes of digits, drawn again and again with a little noise.

    Rows to learn from are copies of the training rows, fresh ones are the test rows.
    """
    train, y_train, test, y_test = _pendigits()
    spread = REAL_NOISE * train.std(axis=0)

    def draw(block: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        if block < 0:
            return test[:size], y_test[:size]
        rng = np.random.default_rng([2, block])
        rows = rng.integers(len(train), size=size)
        return train[rows] + spread * rng.standard_normal((size, train.shape[1])), y_train[rows]

    return Rows(n_rows, draw)


def _pendigits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The four views side by side, training and test rows."""
    views, y = _data.pendigits()
    X = np.hstack([np.asarray(view, dtype=np.float64) for view in views.values()])
    return X[:_TRAINING], y[:_TRAINING], X[_TRAINING:], y[_TRAINING:]


def pendigits_kernels() -> dict[str, RBF]:
    """Ten Gaussian kernels: two or three widths on each of the four views."""
    views, _ = _data.pendigits()
    ends = np.concatenate([[0], np.cumsum([np.shape(view)[1] for view in views.values()])])
    widths = [(0.5, 1.0, 2.0), (0.5, 1.0), (0.5, 1.0), (0.5, 1.0, 2.0)]
    return {
        f"{name}({width:g})": RBF(width=width).on(slice(int(ends[k]), int(ends[k + 1])))
        for k, name in enumerate(views)
        for width in widths[k]
    }
