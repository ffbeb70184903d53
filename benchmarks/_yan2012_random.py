"""Random kernels beside informative ones: Figs. 2 and 6 of Yan et al. (2012).

Fig. 2 there: 30 kernels in all, of pictures of VOC2008, of which none up to all are informative
and the rest Gaussian kernels of random vectors; mean average precision of 20 objects. Here: the
views of MULTIFEAT, each divided into five sets of columns; ten digits against the rest, 100
samples to train on, 400 to choose λ on for each digit, 1000 to test, two splits. (Tried first: 200
samples to train on. There ℓ1 was ahead by 10.8 points with one informative kernel, and level with
ℓ2, 99.3 and 99.4 %, with 30.) Fig. 6: informative kernels of Caltech101, and up to as many random
ones beside them. Here: the faces of OLIVETTI in 4 × 4 patches, a kernel each; of every person
three pictures to train on, two to choose λ or C on, five to test, two splits. (The paper chooses
on the test set there.) OBSCURE has 20 passes in each stage, without the exact one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import _data
from benchmarks._tables import markdown, verdict
from manykernels import MKFDA, MKSVC, KernelStack, Views, kernels_for
from manykernels.baselines import OBSCURE
from manykernels.kernels import RBF

#: The paper has ten values from 4⁻⁵ to 4⁴.
REGS = tuple(4.0 ** np.array([-5, -3, -1, 1, 3]))
QUICK_REGS = (0.25, 4.0)
TOL = 1e-4
N_PARTS = 5
N_COLUMNS = 20  # of a random vector
COUNTS = (0, 1, 3, 6, 10, 20, 30)
QUICK_COUNTS = (1, 30)
NORMS = {"p = 1": 1.0, "p = 2": 2.0, "p = ∞": np.inf}
ADDED = (0, 4, 8, 12, 16)
QUICK_ADDED = (0, 16)
SIX_NORMS = {
    "p = 1 + 2⁻⁶": 1 + 2.0**-6,
    "p = 1 + 2⁻³": 1 + 2.0**-3,
    "p = 1.5": 1.5,
    "p = 2": 2.0,
    "p = 4": 4.0,
    "p = ∞": np.inf,
}
EPOCHS = 20
MOST_FALL = 1.0
LARGE = 2.0
LEVEL = 0.1  # points that are no difference
METHODS: dict[str, tuple[Any, str]] = {
    "MK-FDA": (MKFDA("precomputed", normalize=None, tol=TOL), "reg"),
    "OBSCURE": (
        OBSCURE(
            "precomputed",
            normalize=None,
            n_epochs_online=EPOCHS,
            n_epochs_batch=EPOCHS,
            exact=False,
            random_state=0,
        ),
        "C",
    ),
    "MK-SVM": (MKSVC("precomputed", normalize=None, tol=1e-3), "C"),
}


@dataclass(frozen=True)
class Parts:
    """Kernels of training rows, and of validation and test rows with them; and labels."""

    stacks: tuple[KernelStack, KernelStack, KernelStack]
    labels: tuple[np.ndarray, np.ndarray, np.ndarray]

    def select(self, kernels: list[int]) -> Parts:
        train, other, test = (stack.select(kernels) for stack in self.stacks)
        return Parts((train, other, test), self.labels)

    def against_rest(self, label: Any) -> Parts:
        train, other, test = ((y == label).astype(int) for y in self.labels)
        return Parts(self.stacks, (train, other, test))


def parts_of(views: dict[str, np.ndarray], y: np.ndarray, rows: list[np.ndarray]) -> Parts:
    """A Gaussian kernel per view, its width the median distance of training rows."""
    train, other, test = rows
    scaled = {n: StandardScaler().fit(v[train]).transform(v) for n, v in views.items()}
    X = Views(scaled)
    union = kernels_for(X, RBF(gamma="median")).fit(X[train])
    stacks = union(X[train]), union(X[other], X[train]), union(X[test], X[train])
    return Parts(stacks, (y[train], y[other], y[test]))


def random_views(n: int, n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {f"random{i}": rng.standard_normal((n_rows, N_COLUMNS)) for i in range(n)}


def column_sets(
    views: dict[str, np.ndarray], rng: np.random.Generator, n_parts: int = N_PARTS
) -> dict[str, np.ndarray]:
    """Each view divided at random into `n_parts` sets of columns, in random order."""
    sets = {
        f"{name}{i}": view[:, columns]
        for name, view in views.items()
        for i, columns in enumerate(np.array_split(rng.permutation(view.shape[1]), n_parts))
    }
    names = list(sets)
    return {names[i]: sets[names[i]] for i in rng.permutation(len(names))}


def best_on_validation(
    estimator: Any, name: str, values: tuple[float, ...], parts: Parts, score: Callable
) -> tuple[Any, float]:
    """The model with the value that does best on the validation rows, and its test score."""
    (train, other, test), (y_train, y_other, y_test) = parts.stacks, parts.labels
    models = []
    with warnings.catch_warnings():
        # The two stages of OBSCURE end after a number of passes.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for value in values:
            model = clone(estimator).set_params(**{name: value}).fit(train, y_train)
            models.append((score(model, other, y_other), model))
    model = max(models, key=lambda pair: pair[0])[1]
    return model, 100.0 * score(model, test, y_test)


def precision(model: Any, block: KernelStack, y: np.ndarray) -> float:
    return float(average_precision_score(y, model.decision_function(block)))


def accuracy(model: Any, block: KernelStack, y: np.ndarray) -> float:
    return float(model.score(block, y))


# -- Fig. 2 -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """Mean average precisions by norm and number of informative kernels, one per split."""

    values: dict[str, dict[int, list[float]]]
    #: Share of the weights on random kernels, and kernels with a weight.
    on_random: dict[str, dict[int, float]]
    n_used: dict[str, dict[int, float]]

    def mean(self, norm: str, count: int) -> float:
        return float(np.mean(self.values[norm][count]))


def mixture(quick: bool) -> Mixture:
    """Replace random kernels by informative ones."""
    views, y = _data.mfeat()
    n_kernels = N_PARTS * len(views)
    counts = QUICK_COUNTS if quick else COUNTS
    regs = QUICK_REGS if quick else REGS
    values: dict[str, dict[int, list[float]]] = {p: {k: [] for k in counts} for p in NORMS}
    shares: dict[str, dict[int, list[float]]] = {p: {k: [] for k in counts} for p in NORMS}
    used: dict[str, dict[int, list[float]]] = {p: {k: [] for k in counts} for p in NORMS}
    for seed in range(1 if quick else 2):
        rng = np.random.default_rng(seed)
        # Informative kernels first, so that the k first of them and the rest of the random ones
        # are one run of 30 kernels.
        both = {**column_sets(views, rng), **random_views(n_kernels, len(y), rng)}
        parts = parts_of(both, y, drawn(y, (60, 100, 200) if quick else (100, 400, 1000), seed))
        for k in counts:
            chosen = parts.select([*range(k), *range(n_kernels + k, 2 * n_kernels)])
            for name, p in NORMS.items():
                found = []
                for digit in np.unique(y)[: 2 if quick else None]:
                    estimator = MKFDA("precomputed", p=p, normalize=None, tol=TOL)
                    model, value = best_on_validation(
                        estimator, "reg", regs, chosen.against_rest(digit), precision
                    )
                    found.append(value)
                    weights = model.weights_ / model.weights_.sum()
                    shares[name][k].append(float(weights[k:].sum()))
                    used[name][k].append(float((weights > 1e-4 * weights.max()).sum()))
                values[name][k].append(float(np.mean(found)))
    return Mixture(values, _means(shares), _means(used))


def _means(lists: dict[str, dict[int, list[float]]]) -> dict[str, dict[int, float]]:
    return {p: {k: float(np.mean(v)) for k, v in by.items()} for p, by in lists.items()}


def drawn(y: np.ndarray, sizes: tuple[int, int, int], seed: int) -> list[np.ndarray]:
    """Rows to train on, to choose with, and to test, with classes in their shares."""
    train, other, test = sizes
    used, _ = _cut(np.arange(len(y)), y, sum(sizes), seed)
    train_rows, rest = _cut(used, y, train, seed)
    other_rows, test_rows = _cut(rest, y, other, seed)
    assert len(test_rows) == test
    return [train_rows, other_rows, test_rows]


def _cut(rows: np.ndarray, y: np.ndarray, size: int, seed: int) -> list[np.ndarray]:
    if size == len(rows):
        return [rows, rows[:0]]
    return train_test_split(rows, train_size=size, stratify=y[rows], random_state=seed)


def mixture_table(found: Mixture) -> str:
    rows = [
        [
            str(k),
            *(f"{found.mean(norm, k):.2f}" for norm in NORMS),
            *(f"{found.n_used[norm][k]:.1f}" for norm in ("p = 1", "p = 2")),
            *(f"{found.on_random[norm][k]:.2f}" for norm in ("p = 1", "p = 2")),
        ]
        for k in found.values["p = 1"]
    ]
    header = ["informative", *(f"MAP %, {norm}" for norm in NORMS)]
    header += ["used, p = 1", "used, p = 2", "on random, p = 1", "on random, p = 2"]
    return markdown(header, rows)


def mixture_verdicts(found: Mixture) -> list[str]:
    counts = [k for k in found.values["p = 1"] if k]
    few, many = counts[0], counts[-1]
    noisy = found.mean("p = 1", few) - found.mean("p = 2", few)
    clean = found.mean("p = 2", many) - found.mean("p = 1", many)
    flip = [k for k in counts if found.mean("p = 2", k) > found.mean("p = 1", k)]
    where = f"ℓ2 first ahead at {flip[0]}" if flip else "ℓ2 is never ahead"
    return [
        f"Fig. 2, {few} informative kernel(s): ℓ1 − ℓ2 = {noisy:+.2f} points of mean average "
        f"precision; paper: ℓ1 ahead where there is much noise ({verdict(noisy > LEVEL)})",
        f"Fig. 2, all {many} kernels informative: ℓ2 − ℓ1 = {clean:+.2f} points; paper: ℓ2 ahead "
        f"where there is little noise ({verdict(clean > LEVEL)}); {where}",
    ]


# -- Fig. 6 -------------------------------------------------------------------------------------


#: Test accuracies in per cent, one per split, by method, norm and number of random kernels.
Added = dict[str, dict[str, dict[int, list[float]]]]


def added(quick: bool) -> Added:
    """Add random kernels to informative ones."""
    pictures, persons = _data.olivetti()
    patches = pictures.reshape(-1, 4, 16, 4, 16).transpose(1, 3, 0, 2, 4).reshape(16, 400, 256)
    counts = QUICK_ADDED if quick else ADDED
    norms = dict(list(SIX_NORMS.items())[:: 5 if quick else 1])
    found: Added = {m: {p: {k: [] for k in counts} for p in norms} for m in METHODS}
    for seed in range(1 if quick else 2):
        rng = np.random.default_rng(seed)
        views = {f"patch{i:02d}": patch for i, patch in enumerate(patches)}
        views |= random_views(len(patches), len(persons), rng)
        order = np.array([rng.permutation(10) + 10 * person for person in range(40)])
        rows = [order[:, :3].ravel(), order[:, 3:5].ravel(), order[:, 5:].ravel()]
        parts = parts_of(views, persons, rows)
        for k in counts:
            chosen = parts.select(list(range(len(patches) + k)))
            for method, (estimator, name) in METHODS.items():
                for norm, p in norms.items():
                    machine = clone(estimator).set_params(p=p)
                    values = QUICK_REGS if quick else REGS
                    _, value = best_on_validation(machine, name, values, chosen, accuracy)
                    found[method][norm][k].append(value)
    return found


def added_table(found: Added) -> str:
    counts = list(next(iter(next(iter(found.values())).values())))
    rows = [
        [norm, method, *(f"{np.mean(by[norm][k]):.1f}" for k in counts)]
        for norm in next(iter(found.values()))
        for method, by in found.items()
    ]
    header = ["norm", "method", *(f"{k} random" for k in counts)]
    return markdown(header, rows, n_left=2)


def added_verdicts(found: Added) -> list[str]:
    def mean(method: str, norm: str, count: int) -> float:
        return float(np.mean(found[method][norm][count]))

    norms = list(found["MK-FDA"])
    sparse, uniform = norms[0], norms[-1]
    most = max(found["MK-FDA"][sparse])
    fall = {
        (m, norm): mean(m, norm, 0) - mean(m, norm, most)
        for m in METHODS
        for norm in (sparse, uniform)
    }
    ahead = np.mean([mean("MK-FDA", sparse, k) - mean("OBSCURE", sparse, k) for k in (0, most)])
    svm = np.mean([mean("MK-FDA", p, k) - mean("MK-SVM", p, k) for p in norms for k in (0, most)])
    gentle = fall["MK-FDA", uniform] < fall["OBSCURE", uniform]
    return [
        f"Fig. 6, {sparse}: {most} random kernels cost MK-FDA {fall['MK-FDA', sparse]:.1f} points "
        f"({verdict(fall['MK-FDA', sparse] <= MOST_FALL)}) and OBSCURE "
        f"{fall['OBSCURE', sparse]:.1f} ({verdict(fall['OBSCURE', sparse] <= MOST_FALL)}); "
        f"paper: both robust (bound here: {MOST_FALL:g})",
        f"Fig. 6, {sparse}: MK-FDA {ahead:+.1f} points against OBSCURE; paper: about +0.3 "
        f"({verdict(bool(ahead > 0))})",
        f"Fig. 6, {uniform}: they cost MK-FDA {fall['MK-FDA', uniform]:.1f} points and OBSCURE "
        f"{fall['OBSCURE', uniform]:.1f}; paper: MK-FDA falls more gracefully ({verdict(gentle)})",
        f"Fig. 6, all norms: MK-FDA {svm:+.1f} points against MK-SVM; paper: ahead of Shogun's "
        f"multiclass machine by a large margin (bound here: {LARGE:g}, "
        f"{verdict(bool(svm > LARGE))})",
    ]
