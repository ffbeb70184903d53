"""Kernels and labels of the data sets that several benchmarks share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks import _data
from manykernels import KernelStack, Views, kernels_for, rbf_grid

_SATIMAGE_ROWS = 2000


@dataclass(frozen=True)
class Problem:
    """Kernels and labels 0 … c−1 of one data set."""

    name: str
    title: str
    stack: KernelStack
    labels: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1

    def __str__(self) -> str:
        m, _, n = self.stack.shape
        return f"{self.name}: {self.title} ({m} samples, {n} kernels, {self.n_classes} classes)"


@lru_cache(maxsize=1)  # two problems share the kernels of mfeat; no two stacks are kept
def _kernels(source: str) -> tuple[KernelStack, np.ndarray]:
    """Checked kernels of a data set, and its labels 0 … c−1."""
    if source == "mfeat":
        views, y = _data.mfeat()
        X = Views({name: StandardScaler().fit_transform(view) for name, view in views.items()})
        union = kernels_for(X, rbf_grid([0.5, 1, 2], gamma="median"))
    elif source == "satimage":
        X, y = _data.satimage()
        rows = np.random.default_rng(0).choice(len(y), _SATIMAGE_ROWS, replace=False)
        X, y = X[rows], y[rows]
        union = rbf_grid(np.logspace(-1, 1, 10), gamma="median")
    else:
        X, y = _data.sonar()
        union = rbf_grid(np.logspace(-1, 2, 10))  # the widths of Ye et al. (2008)
    return union.fit(X)(X), np.unique(y, return_inverse=True)[1]


def mfeat10() -> Problem:
    return Problem("mfeat10", "Multiple Features, ten digits", *_kernels("mfeat"))


def mfeat2() -> Problem:
    stack, digits = _kernels("mfeat")
    title = "Multiple Features, digits 0–4 against 5–9"
    return Problem("mfeat2", title, stack, (digits >= 5).astype(int))


def satimage() -> Problem:
    return Problem("satimage", "Landsat Satellite", *_kernels("satimage"))


def sonar() -> Problem:
    return Problem("sonar", "Sonar", *_kernels("sonar"))


PROBLEMS = {load.__name__: load for load in (mfeat10, mfeat2, satimage, sonar)}
