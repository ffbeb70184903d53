"""The experiments of Gönen and Alpaydın (2013): data, kernels, folds and methods.

Data are standardised and kernels have unit diagonal, as in the paper and the authors' programs.
Means and deviations are those of all samples, so that kernels are computed once and cut; those
of the gating features are the training samples'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import _data
from manykernels import MKSVC, MKSVR, KernelStack, LocalizedSVC, LocalizedSVR
from manykernels.datasets import make_gauss4
from manykernels.datasets.views import GAUSS4_MEANS as MEANS
from manykernels.datasets.views import GAUSS4_VARIANCES as VARIANCES
from manykernels.kernels import Linear, Polynomial

PENALTIES = [0.01, 0.1, 1.0, 10.0, 100.0]
TUBES = [1.0, 2.0, 4.0, 8.0, 16.0]
WOMEN = [7, 9, 31, 34]
DEGREES = (2, 3, 4, 5)
COPIES_WITH_ONES = "copies, a column of ones"
COPIES_OF_RAW_ROWS = "copies, rows as they are"

#: The method of the paper: no penalty on a gate that looks at all columns, no samples held out.
UNREGULARIZED: dict[str, Any] = {
    "gating__penalty": 0.0,
    "gating__early_stopping": 0,
    "gating__features": slice(None),
}
#: How the gate is learnt: by the library's defaults; as the authors' programs do, by gradient
#: steps that stop at a change of J by 1e-3, and after at most 20 ("convergence in 5–20
#: iterations"); or by quasi-Newton steps until J hardly changes.
AS_THE_PAPER: dict[str, Any] = {
    **UNREGULARIZED,
    "gating__quasi_newton": False,
    "gating__max_iter": 20,
    "tol": 1e-3,
}
TO_THE_END: dict[str, Any] = {**UNREGULARIZED, "gating__quasi_newton": True, "tol": 1e-4}
SETTINGS: dict[str, dict[str, Any]] = {
    "": {},
    "20 steps": AS_THE_PAPER,
    "to the end": TO_THE_END,
}


@dataclass(frozen=True)
class Method:
    """An estimator, and the table of a draw that it is fitted to."""

    estimator: Any
    table: str = "all"
    kernels: list[int] | None = None
    #: The name in the paper's tables.
    printed: str = ""


@dataclass(frozen=True)
class Draw:
    """One random division of the data."""

    tables: dict[str, Any]
    targets: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    test: np.ndarray


@dataclass(frozen=True)
class Problem:
    """One of the paper's experiments."""

    name: str
    title: str
    draw: Callable[[int], Draw]
    methods: dict[str, Method]
    grid: dict[str, list[float]]
    set_name: str
    errors: bool = False
    kernel_names: list[str] = field(default_factory=list)

    def cost(self, model: Any, block: Any, targets: np.ndarray) -> float:
        """Per cent of errors, or the mean square error."""
        answers = model.predict(block)
        if self.errors:
            return float(np.mean((answers - targets) ** 2))
        return 100.0 * float(np.mean(answers != targets))


def five_times_two(
    targets: np.ndarray, seed: int, *, classes: bool, quick: bool
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Ten halves of two thirds of the samples, each with its other half; and the last third."""
    samples = np.arange(len(targets))
    labels = targets if classes else None
    rest, test = train_test_split(samples, test_size=1 / 3, stratify=labels, random_state=seed)
    halves = RepeatedStratifiedKFold if classes else RepeatedKFold
    folds = halves(n_splits=2, n_repeats=1 if quick else 5, random_state=seed)
    cuts = folds.split(rest, targets[rest])
    return [(rest[train], rest[other]) for train, other in cuts], test


def _localized(kind: Any, names: dict[str, dict[str, Any]], table: str = "all") -> dict:
    """Localized machines by all ways to learn the gate; `names` are as in the paper."""
    methods = {}
    for name, options in names.items():
        own = {"kernels": "precomputed", "normalize": "spherical", "gating": "softmax"}
        own |= options
        place = {"table": own.pop("table", table), "kernels": own.pop("columns", None)}
        for setting, how in SETTINGS.items():
            label = f"{name}, {setting}" if setting else name
            methods[label] = Method(kind(**own).set_params(**how), **place, printed=name)
    return methods


# -- GAUSS4 -----------------------------------------------------------------------------------


def densities(X: np.ndarray) -> np.ndarray:
    """Of the two classes, negative and positive, each with its prior ½; (n, 2)."""
    squares = ((X[:, None] - MEANS) ** 2 / VARIANCES).sum(axis=-1)
    each = np.exp(-0.5 * squares) / (2 * np.pi * np.sqrt(VARIANCES.prod(axis=1))) / 4
    return np.column_stack([each[:, 2:].sum(axis=1), each[:, :2].sum(axis=1)])


def bayes_rate(step: float = 0.02) -> float:
    """Accuracy of the best rule, in per cent: an integral, by summation over a grid."""
    one = np.arange(-9.0, 9.0, step)
    two = np.arange(-16.0, 12.0, step)
    sums = [densities(np.column_stack([np.full(len(two), x), two])).max(axis=1).sum() for x in one]
    return 100.0 * float(np.sum(sums)) * step**2


def gauss4(quick: bool, *, standard: bool) -> Problem:
    """Four Gaussians, judged by a large test set of its own."""
    n_pool, n_test = (160, 500) if quick else (800, 20000)

    def draw(seed: int) -> Draw:
        X, y = make_gauss4(n_pool + n_test, random_state=seed)
        if standard:
            X = StandardScaler().fit(X[:n_pool]).transform(X)
        halves = RepeatedStratifiedKFold(
            n_splits=2, n_repeats=1 if quick else 5, random_state=seed
        )
        folds = list(halves.split(X[:n_pool], y[:n_pool]))
        return Draw({"all": X}, y, folds, np.arange(n_pool, n_pool + n_test))

    pair = [("linear", Linear()), ("quadratic", Polynomial(2, gamma=1.0))]
    three = [(f"linear{i}", Linear()) for i in range(3)]
    mkl = MKSVC(pair, p=1, normalize="spherical")
    gates = {"LMKL (L, P)": {"kernels": pair}, "LMKL (L, L, L)": {"kernels": three}}
    methods = {"MKL (L, P)": Method(mkl, printed="MKL (L, P)")} | _localized(LocalizedSVC, gates)
    how = "standardised" if standard else "as they are"
    return Problem(
        name="gauss4-standard" if standard else "gauss4",
        title=f"GAUSS4, samples {how}: {n_pool // 2} to train on, {n_test} new ones to test",
        draw=draw,
        methods=methods,
        grid={"C": PENALTIES[2:4] if quick else PENALTIES},
        set_name="gauss4",
        kernel_names=["linear", "quadratic"],
    )


# -- MULTIFEAT --------------------------------------------------------------------------------


def mfeat(quick: bool) -> Problem:
    """Digits 0–4 against 5–9; the gate looks at all six views."""
    views, digits = _data.mfeat()
    names = ["fac", "fou", "kar", "mor", "pix", "zer"]
    rows = np.arange(0, 2000, 10 if quick else 1)
    y = (digits >= 5).astype(int)[rows]
    tables = [StandardScaler().fit_transform(views[name][rows]) for name in names]
    stack = _linear_stack(tables, names).with_features(np.hstack(tables))

    def draw(seed: int) -> Draw:
        return Draw({"all": stack}, y, *five_times_two(y, seed, classes=True, quick=quick))

    gates = {f"LMKL {gate}": {"gating": gate} for gate in ("softmax", "sigmoid")}
    return Problem(
        name="mfeat",
        title=f"MULTIFEAT, small against large digits ({len(y)} samples, 6 linear kernels)",
        draw=draw,
        methods={"MKL": _mkl()} | _localized(LocalizedSVC, gates),
        grid={"C": PENALTIES[2:4] if quick else PENALTIES},
        set_name="mfeat",
        kernel_names=names,
    )


# -- OLIVETTI ---------------------------------------------------------------------------------


def olivetti(quick: bool) -> Problem:
    """Men against women in 4 × 4 patches; the gate looks at the picture made coarse."""
    pictures, persons = _data.olivetti()
    y = np.isin(persons, WOMEN).astype(int)
    pixels = StandardScaler().fit_transform(pictures.reshape(len(y), -1)).reshape(-1, 64, 64)
    cut = pixels.reshape(-1, 4, 16, 4, 16).transpose(1, 3, 0, 2, 4).reshape(16, len(y), 256)
    stack = _linear_stack(cut, [f"patch{i:02d}" for i in range(16)])
    sizes = (8,) if quick else (4, 8, 16)
    tables = {str(s): stack.with_features(_coarse(pictures, s)) for s in sizes}

    def draw(seed: int) -> Draw:
        rng = np.random.default_rng(seed)
        order = np.array([rng.permutation(10) + 10 * person for person in range(40)])
        folds = []
        for left_out in range(2, 4 if quick else 10):
            kept = [k for k in range(2, 10) if k != left_out]
            folds.append((order[:, kept].ravel(), order[:, left_out]))
        return Draw(tables, y, folds, order[:, :2].ravel())

    gates = {
        f"LMKL {gate}, {size}×{size}": {"gating": gate, "table": str(size)}
        for gate in ("softmax", "sigmoid")
        for size in sizes
    }
    return Problem(
        name="olivetti",
        title="OLIVETTI, 36 men against 4 women (400 faces, 16 linear kernels of patches)",
        draw=draw,
        methods={"MKL": _mkl(str(sizes[0]))} | _localized(LocalizedSVC, gates),
        grid={"C": PENALTIES[2:4] if quick else PENALTIES},
        set_name="olivetti",
    )


def _coarse(pictures: np.ndarray, size: int) -> np.ndarray:
    """Means over blocks, (n, size²)."""
    block = 64 // size
    means = pictures.reshape(len(pictures), size, block, size, block).mean(axis=(2, 4))
    return means.reshape(len(pictures), -1)


# -- CONCRETE ---------------------------------------------------------------------------------


def concrete(quick: bool) -> Problem:
    """Strength of concrete; the gate looks at the eight columns."""
    X, y = _data.concrete()
    rows = np.random.default_rng(0).permutation(len(y))[: 150 if quick else None]
    raw, X, y = X[rows], StandardScaler().fit_transform(X[rows]), y[rows]
    products = X @ X.T
    names = ["linear", *(f"q = {q}" for q in DEGREES)]
    five = _stack([products, *((products + 1) ** q for q in DEGREES)], names)
    linear = {"copies": products, COPIES_WITH_ONES: products + 1, COPIES_OF_RAW_ROWS: raw @ raw.T}
    tables = {}
    for name, matrix in linear.items():
        # Samples of length one on average, so that C means much the same for all.
        copies = [matrix / matrix.diagonal().mean()] * 5
        tables[name] = _stack(copies, [f"linear{i}" for i in range(5)]).with_features(X)
    tables["all"] = five.with_features(X)

    def draw(seed: int) -> Draw:
        return Draw(tables, y, *five_times_two(y, seed, classes=False, quick=quick))

    single = MKSVR("precomputed", p=1, normalize="spherical")
    methods = {f"SVR {n}": Method(single, "all", [j], f"SVR {n}") for j, n in enumerate(names)}
    gates: dict[str, dict] = {f"LMKL {gate}": {"gating": gate} for gate in ("softmax", "sigmoid")}
    gates["LMKL softmax, 5 linear"] = {"table": "copies"}
    return Problem(
        name="concrete",
        title=f"CONCRETE ({len(y)} samples, linear and polynomial kernels)",
        draw=draw,
        methods={**methods, "MKL": Method(single)} | _localized(LocalizedSVR, gates),
        grid={"C": [10.0], "epsilon": [4.0, 8.0]} if quick else {"C": PENALTIES, "epsilon": TUBES},
        set_name="concrete",
        errors=True,
        kernel_names=names,
    )


def _mkl(table: str = "all") -> Method:
    return Method(MKSVC("precomputed", p=1, normalize="spherical"), table, printed="MKL")


def _linear_stack(tables: Any, names: list[str]) -> KernelStack:
    return _stack([table @ table.T for table in tables], names)


def _stack(matrices: list[np.ndarray], names: list[str]) -> KernelStack:
    return KernelStack(np.array(matrices), names, gram=True, checked=True)


PROBLEMS: dict[str, list[Callable[[bool], Problem]]] = {
    "gauss4": [lambda quick: gauss4(quick, standard=False), lambda q: gauss4(q, standard=True)],
    "mfeat": [mfeat],
    "olivetti": [olivetti],
    "concrete": [concrete],
}
