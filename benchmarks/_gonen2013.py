"""Data, kernels and methods of Gönen and Alpaydın (2013), section 3.

All kernels have unit diagonal. The paper does not say how columns are scaled: `SCALINGS` are the
candidates, and each experiment has one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, train_test_split
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from benchmarks import _data
from manykernels import MKSVC, MKSVR, ConvexLocalizedSVC, KernelStack, LocalizedSVC, LocalizedSVR
from manykernels.datasets import make_gauss4
from manykernels.datasets.views import GAUSS4_MEANS, GAUSS4_VARIANCES
from manykernels.gating import Gate, PerCluster, PerSample, Sigmoid, Softmax

Tables = dict[str, np.ndarray]
Folds = list[tuple[np.ndarray, np.ndarray]]

PENALTIES = [0.01, 0.1, 1.0, 10.0, 100.0]
DEGREES = (1, 2, 3, 4, 5)
WOMEN = [7, 9, 31, 34]
VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")
SCALINGS: dict[str, Callable[[], Any]] = {
    "standardised": StandardScaler,
    "of unit deviation": partial(StandardScaler, with_mean=False),
    "in [0, 1]": MinMaxScaler,
    "as they are": FunctionTransformer,
}

#: Algorithm 1: gradient steps from random parameters, no penalty, no samples held out, a gate of
#: all its columns. Outputs below the threshold count as zero, as in the authors' programs.
AS_PUBLISHED: dict[str, Any] = {
    "start": "random",
    "features": slice(None),
    "penalty": 0,
    "early_stopping": 0,
    "quasi_newton": False,
    "threshold": 1e-3,
}
#: Relative change of the objective at which the descent stops.
TOL = 1e-2


# -- parts of an experiment -----------------------------------------------------------------------


@dataclass(frozen=True)
class UnitKernel:
    """Linear kernel of a table, or the polynomial ``(x · z + 1) ** degree``; unit diagonal."""

    table: str
    degree: int = 1

    def block(self, tables: Tables, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Values between two sets of samples."""
        table, offset = tables[self.table], float(self.degree > 1)
        values = table[rows] @ table[columns].T + offset
        for axis, part in enumerate((rows, columns)):
            lengths = np.sqrt((table[part] ** 2).sum(axis=1) + offset)
            lengths[lengths == 0] = 1.0
            values /= np.expand_dims(lengths, 1 - axis)
        return values**self.degree


@dataclass(frozen=True)
class Method:
    """An estimator, its kernels, and the table that its gate depends on."""

    estimator: Any
    kernels: tuple[UnitKernel, ...]
    gate: str = ""
    #: Values of parameters in place of those of the experiment.
    grid: dict[str, list[float]] = field(default_factory=dict)
    #: On how many of the validation parts they are chosen; None for all.
    n_choosing: int | None = None

    def block(self, tables: Tables, rows: np.ndarray, columns: np.ndarray) -> KernelStack:
        """Kernels between two sets of samples, with the features of the gate at the first."""
        values = np.array([kernel.block(tables, rows, columns) for kernel in self.kernels])
        names = [f"kernel{j}" for j in range(len(values))]
        stack = KernelStack(values, names, gram=rows is columns, checked=True)
        return stack.with_features(tables[self.gate][rows]) if self.gate else stack


@dataclass(frozen=True)
class Draw:
    """Samples and one random division of them: pairs of training and validation parts, a test."""

    tables: Tables
    targets: np.ndarray
    folds: Folds
    test: np.ndarray

    def scaled(self, scaling: str, train: np.ndarray) -> Tables:
        """All tables, scaled by the training samples."""
        return {
            name: SCALINGS[scaling]().fit(table[train]).transform(table)
            for name, table in self.tables.items()
        }


@dataclass(frozen=True)
class Experiment:
    """Methods, how samples are drawn, and the values that parameters are chosen from."""

    title: str
    draw: Callable[[int], Draw]
    methods: dict[str, Method]
    grid: dict[str, list[float]]
    scaling: str = "standardised"
    #: Number of random divisions of the data.
    n_draws: int = 3
    errors: bool = False


def svc(*kernels: UnitKernel) -> Method:
    """One kernel, or kernel weights learnt with p = 1."""
    return Method(MKSVC("precomputed", p=1, normalize=None), kernels)


def svr(*kernels: UnitKernel) -> Method:
    return Method(MKSVR("precomputed", p=1, normalize=None), kernels)


def lmkl(
    gate: type[Gate], kernels: list[UnitKernel], table: str, kind: Any = LocalizedSVC, **other: Any
) -> Method:
    """Localized kernels as in the paper."""
    model = kind("precomputed", gating=published_gate(gate, **other), normalize=None, tol=TOL)
    return Method(model, tuple(kernels), table)


def published_gate(gate: type[Gate], **other: Any) -> Gate:
    """A gate that is learnt as in the paper."""
    return gate(**{**AS_PUBLISHED, **other})


def five_times_two(targets: np.ndarray, seed: int, *, classes: bool) -> tuple[Folds, np.ndarray]:
    """Ten halves of two thirds of the samples, each with its other half; and the last third."""
    samples = np.arange(len(targets))
    labels = targets if classes else None
    rest, test = train_test_split(samples, test_size=1 / 3, stratify=labels, random_state=seed)
    halves = RepeatedStratifiedKFold if classes else RepeatedKFold
    folds = halves(n_splits=2, n_repeats=5, random_state=seed).split(rest, targets[rest])
    return [(rest[train], rest[other]) for train, other in folds], test


# -- section 3.1.1: GAUSS4 ------------------------------------------------------------------------


def densities(X: np.ndarray) -> np.ndarray:
    """Of the two classes of GAUSS4, negative and positive, each with its prior ½; (n, 2)."""
    squares = ((X[:, None] - GAUSS4_MEANS) ** 2 / GAUSS4_VARIANCES).sum(axis=-1)
    each = np.exp(-0.5 * squares) / (2 * np.pi * np.sqrt(GAUSS4_VARIANCES.prod(axis=1))) / 4
    return np.column_stack([each[:, 2:].sum(axis=1), each[:, :2].sum(axis=1)])


def bayes_rate(step: float = 0.02) -> float:
    """Accuracy of the Bayes rule on GAUSS4, in per cent: an integral, by summation over a grid."""
    one = np.arange(-9.0, 9.0, step)
    two = np.arange(-16.0, 12.0, step)
    sums = [densities(np.column_stack([np.full(len(two), x), two])).max(axis=1).sum() for x in one]
    return 100.0 * float(np.sum(sums)) * step**2


def gauss4() -> Experiment:
    """Four Gaussians, 1200 new samples in every draw."""

    def draw(seed: int) -> Draw:
        X, y = make_gauss4(1200, random_state=seed)
        return Draw({"X": X}, y, *five_times_two(y, seed, classes=True))

    line, square = UnitKernel("X"), UnitKernel("X", 2)
    methods = {"MKL (L, P)": svc(line, square), "LMKL (L, P)": lmkl(Softmax, [line, square], "X")}
    for n in (2, 3, 10, 20):
        methods[f"LMKL ({n} L)"] = lmkl(Softmax, [line] * n, "X")
    title = "GAUSS4: 1200 samples"
    return Experiment(title, draw, methods, {"C": PENALTIES}, "as they are", n_draws=4)


# -- section 3.1.2: MULTIFEAT ---------------------------------------------------------------------


def multifeat() -> Experiment:
    """Digits 0–4 against 5–9; the gate depends on all six views."""
    views, digits = _data.mfeat()
    y = (digits >= 5).astype(int)
    tables = {name: views[name] for name in VIEWS}
    tables["all"] = np.hstack(list(tables.values()))

    def draw(seed: int) -> Draw:
        return Draw(tables, y, *five_times_two(y, seed, classes=True))

    each = [UnitKernel(name) for name in VIEWS]
    methods = {f"SVM ({kernel.table})": svc(kernel) for kernel in each}
    methods["SVM (all)"] = svc(UnitKernel("all"))
    methods["MKL"] = svc(*each)
    methods["LMKL (softmax)"] = lmkl(Softmax, each, "all")
    methods["LMKL (sigmoid)"] = lmkl(Sigmoid, each, "all")
    for n in (2, 3, 6, 10):
        methods[f"LMKL ({n} fac, sigmoid)"] = lmkl(Sigmoid, each[:1] * n, "fac")
    title = "MULTIFEAT: 2000 digits, small against large"
    return Experiment(title, draw, methods, {"C": PENALTIES}, n_draws=3)


# -- section 3.1.3: OLIVETTI ----------------------------------------------------------------------


def olivetti() -> Experiment:
    """Men against women in 4 × 4 patches; the gate depends on the picture made coarse."""
    pictures, persons = _data.olivetti()
    y = np.isin(persons, WOMEN).astype(int)
    tables = {f"{size}×{size}": _coarse(pictures, size) for size in (4, 8, 16, 32, 64)}
    patches = pictures.reshape(-1, 4, 16, 4, 16).transpose(1, 3, 0, 2, 4)
    tables |= {f"patch{j}": patch for j, patch in enumerate(patches.reshape(16, len(y), 256))}

    def draw(seed: int) -> Draw:
        rng = np.random.default_rng(seed)
        order = np.array([rng.permutation(10) + 10 * person for person in range(40)])
        folds = [
            (order[:, [k for k in range(2, 10) if k != left_out]].ravel(), order[:, left_out])
            for left_out in range(2, 10)
        ]
        return Draw(tables, y, folds, order[:, :2].ravel())

    each = [UnitKernel(f"patch{j}") for j in range(16)]
    methods = {f"SVM ({name})": svc(UnitKernel(name)) for name in list(tables)[:5]}
    methods["MKL"] = svc(*each)
    for name, gate in (("softmax", Softmax), ("sigmoid", Sigmoid)):
        for size in ("4×4", "8×8", "16×16"):
            methods[f"LMKL ({name}, {size})"] = lmkl(gate, each, size)
    title = "OLIVETTI: 400 faces, 36 men against 4 women"
    return Experiment(title, draw, methods, {"C": PENALTIES}, n_draws=6)


def _coarse(pictures: np.ndarray, size: int) -> np.ndarray:
    """Means over blocks, (n, size²)."""
    block = 64 // size
    means = pictures.reshape(len(pictures), size, block, size, block).mean(axis=(2, 4))
    return means.reshape(len(pictures), -1)


# -- section 3.2: regression ----------------------------------------------------------------------


def concrete() -> Experiment:
    """Strength of concrete."""
    X, y = _data.concrete()
    grid = {"C": PENALTIES, "epsilon": [1.0, 2.0, 4.0, 8.0, 16.0]}
    experiment = regression("CONCRETE", X, y, grid, "in [0, 1]")
    for n in (5, 10):
        lines = [UnitKernel("X")] * n
        experiment.methods[f"LMKL ({n} L, softmax)"] = lmkl(Softmax, lines, "X", LocalizedSVR)
    return replace(experiment, n_draws=10)


def white_wine() -> Experiment:
    """Grades of white wines."""
    X, y = _data.white_wine()
    grid = {"C": PENALTIES, "epsilon": [0.08, 0.16, 0.32, 0.64, 1.28]}
    experiment = regression("WHITEWINE", X, y, grid, "in [0, 1]")
    for name in ("LMKL (softmax)", "LMKL (sigmoid)"):
        experiment.methods[name] = replace(experiment.methods[name], n_choosing=1)
    return replace(experiment, n_draws=4)


def regression(
    name: str, X: np.ndarray, y: np.ndarray, grid: dict[str, list[float]], scaling: str
) -> Experiment:
    """Linear and polynomial kernels of all columns."""

    def draw(seed: int) -> Draw:
        return Draw({"X": X}, y, *five_times_two(y, seed, classes=False))

    each = [UnitKernel("X", degree) for degree in DEGREES]
    methods = {f"SVR (q = {kernel.degree})": svr(kernel) for kernel in each}
    for label, gate in (("softmax", Softmax), ("sigmoid", Sigmoid)):
        methods[f"LMKL ({label})"] = lmkl(gate, each, "X", LocalizedSVR)
    return Experiment(f"{name}: {len(y)} samples", draw, methods, grid, scaling, errors=True)


# -- sections 4.1 and 4.5 -------------------------------------------------------------------------


def related() -> Experiment:
    """MULTIFEAT with gates of few columns, weights of clusters, of samples and of regions."""
    experiment = multifeat()
    each = [UnitKernel(name) for name in VIEWS]
    methods = {name: experiment.methods[name] for name in ("MKL", "LMKL (sigmoid)")}
    for n in (5, 20, 50):
        methods[f"LMKL (sigmoid, {n} components)"] = lmkl(Sigmoid, each, "all", features=n)
    methods["weights of clusters [34]"] = lmkl(PerCluster, each, "all")
    methods["weights of samples [35]"] = lmkl(PerSample, each, "all")
    regions = ConvexLocalizedSVC("precomputed", normalize=None, p=1)
    methods["weights of regions, convex"] = Method(regions, tuple(each))
    title = "MULTIFEAT: gates of few columns, and related methods"
    return replace(experiment, title=title, methods=methods, n_draws=1)


EXPERIMENTS: dict[str, Callable[[], Experiment]] = {
    "gauss4": gauss4,
    "multifeat": multifeat,
    "olivetti": olivetti,
    "concrete": concrete,
    "wine": white_wine,
    "related": related,
}
#: Methods that show what the scaling of columns changes.
READINGS: dict[str, list[str]] = {
    "gauss4": ["MKL (L, P)", "LMKL (L, P)", "LMKL (3 L)"],
    "multifeat": [
        *(f"SVM ({name})" for name in VIEWS),
        *("MKL", "LMKL (softmax)", "LMKL (sigmoid)"),
    ],
    "olivetti": ["SVM (4×4)", "SVM (64×64)", "MKL", "LMKL (sigmoid, 8×8)"],
    "concrete": [
        *(f"SVR (q = {q})" for q in DEGREES),
        *("LMKL (softmax)", "LMKL (sigmoid)", "LMKL (5 L, softmax)"),
    ],
    "wine": [f"SVR (q = {q})" for q in DEGREES],
}
