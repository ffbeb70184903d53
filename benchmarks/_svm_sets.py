"""The problems of the benchmark of support vector machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks import _data
from benchmarks._problems import Problem
from manykernels import KernelStack, Views, kernels_for, rbf_grid
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF, KernelUnion
from manykernels.kernels.transforms import preparation

_QUICK_ROWS = 120
_SPREAD = 1.5  # factor of the width of the kernel that is mixed in, where there is no other view
_FLIPPED = 0.15


@dataclass(frozen=True)
class Machine:
    """One kernel, another that is mixed in to change it, and signs."""

    name: str
    title: str
    K: np.ndarray
    other: np.ndarray
    signs: np.ndarray

    def __str__(self) -> str:
        return f"{self.name}: {self.title} ({len(self.signs)} samples)"


# -- one kernel ----------------------------------------------------------------------------


def mfeat_machine(quick: bool = False) -> Machine:
    views, digits = _data.mfeat()
    rows = _drawn(len(digits), _QUICK_ROWS if quick else len(digits))
    K, other = (RBF("median").fit(view)(view) for view in _scaled(views, rows, ["fou", "kar"]))
    title = "digits 0–4 against 5–9, Fourier view, Karhunen–Loève view mixed in"
    return Machine("mfeat", title, K, other, _signs(digits[rows] >= 5))


def satimage_machine(quick: bool = False) -> Machine:
    X, ground = _data.satimage()
    rows = slice(_QUICK_ROWS if quick else 4000)
    X, ground = StandardScaler().fit_transform(X[rows]), ground[rows]
    title = f"grey soils against other ground, another width (× {_SPREAD}) mixed in"
    return Machine("satimage", title, *_two_widths(X), _signs(np.isin(ground, [3, 4, 7])))


def synthetic_machine(quick: bool = False) -> Machine:
    X, signs = noisy_table(_QUICK_ROWS if quick else 3000, 20)
    title = f"{_FLIPPED:.0%} of the labels flipped, another width (× {_SPREAD}) mixed in"
    return Machine("synthetic", title, *_two_widths(X), signs)


def clean_machine(quick: bool = False) -> Machine:
    X, signs = noisy_table(_QUICK_ROWS if quick else 3000, 20, flipped=0.0)
    return Machine("clean", "no label flipped", *_two_widths(X), signs)


MACHINES: dict[str, Callable[[bool], Machine]] = {
    "mfeat": mfeat_machine,
    "satimage": satimage_machine,
    "synthetic": synthetic_machine,
}


# -- several kernels, normalised ----------------------------------------------------------------


def sonar(quick: bool = False) -> Problem:
    X, y = _data.sonar()
    union = _columns_and_widths(X, 60, 40)
    return _problem("sonar", "60 columns one by one, 40 widths", union, X, y, quick)


def ionosphere(quick: bool = False) -> Problem:
    X, y = _data.ionosphere()
    X = X[:, X.std(axis=0) > 0]
    union = _columns_and_widths(X, 33, 17)
    return _problem("ionosphere", "33 columns one by one, 17 widths", union, X, y, quick)


def mfeat(quick: bool = False) -> Problem:
    views, digits = _data.mfeat()
    rows = _drawn(len(digits), 1000)
    X = Views(dict(zip(views, _scaled(views, rows, list(views)), strict=True)))
    union = kernels_for(X, rbf_grid([0.5, 1, 2], gamma="median"))
    title = "digits 0–4 against 5–9, 6 views of 3 widths"
    return _problem("mfeat", title, union, X, digits[rows] >= 5, quick)


def synthetic(quick: bool = False) -> Problem:
    X, signs = noisy_table(800, 20)
    union = KernelUnion([(f"x{j}", RBF("median", columns=[j])) for j in range(X.shape[1])])
    title = f"{_FLIPPED:.0%} of the labels flipped, 20 columns one by one"
    return _problem("synthetic", title, union, X, signs, quick)


def digits(quick: bool = False) -> Problem:
    views, y = load_digit_views(noise=4)
    X = views[:1000]
    union = kernels_for(X, RBF())
    title = "ten machines, one weight vector, 6 views and 4 of noise"
    return _problem("digits", title, union, X, y[:1000], quick)


PROBLEMS: dict[str, Callable[[bool], Problem]] = {
    load.__name__: load for load in (sonar, mfeat, ionosphere, synthetic, digits)
}


def signs_of(problem: Problem) -> np.ndarray:
    """±1, a column per machine."""
    if problem.n_classes == 2:
        return _signs(problem.labels == 1)[:, None]
    return _signs(problem.labels[:, None] == np.arange(problem.n_classes))


# -- parts ------------------------------------------------------------------------------------


def noisy_table(
    n_rows: int, n_columns: int, flipped: float = _FLIPPED
) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns of which a quarter decides, in a bent way, and labels partly flipped."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    deciding = X[:, : max(2, n_columns // 4)]
    score = deciding.sum(axis=1) + deciding[:, 0] * deciding[:, 1]
    signs = _signs(score > np.median(score))
    return X, np.where(rng.random(n_rows) < flipped, -signs, signs)


def _signs(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1.0, -1.0)


def _drawn(n_rows: int, n_drawn: int) -> np.ndarray:
    """Row numbers in a random order: the data are in the order of their classes."""
    return np.random.default_rng(0).permutation(n_rows)[:n_drawn]


def _scaled(views: dict, rows: np.ndarray, names: list[str]) -> list[np.ndarray]:
    return [StandardScaler().fit_transform(views[name][rows]) for name in names]


def _two_widths(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return RBF("median").fit(X)(X), RBF("median", _SPREAD).fit(X)(X)


def _columns_and_widths(X: np.ndarray, n_columns: int, n_widths: int) -> KernelUnion:
    single = [(f"x{j}", RBF("scale", columns=[j])) for j in range(n_columns)]
    wide = rbf_grid(np.logspace(-1, 1, n_widths), gamma="median").kernels
    return KernelUnion([*single, *wide])


def _problem(
    name: str, title: str, union: KernelUnion, X: np.ndarray, y: np.ndarray, quick: bool
) -> Problem:
    if quick:
        rows = _drawn(len(X), _QUICK_ROWS)
        X, y = X[rows], y[rows]
    labels = np.unique(y, return_inverse=True)[1]
    stack: KernelStack = preparation("multiplicative", center=False).fit_transform(union.fit(X)(X))
    return Problem(name, title, stack, labels)
