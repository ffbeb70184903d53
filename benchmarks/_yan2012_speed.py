"""Training time: Figs. 7 to 9 of Yan et al. (2012).

Fig. 7 there: two classes, 3 to 96 kernels on 1000 samples, 75 to 4800 samples with 14 kernels.
Fig. 8: 101 classes, 2 to 31 kernels on one sample per class, one to 15 samples per class with ten
kernels. λ = 1 and C = 1. Here: digits 0–4 against 5–9 of MULTIFEAT (kernels of sets of columns of
its views), up to 1200 samples, 500 for the numbers of kernels; and the 100 species of LEAVES, up
to 15 samples of each. All are solved to a relative duality gap of 1e-4, one fit each, and stopped
after four seconds. ``sip`` is the wrapper of the paper, ``interleaved`` what Shogun does. SMO-MKL
needs p > 1, and has 1 + 2⁻⁵ in the place of 1, as in the paper.

Fig. 9: accuracy by training time, where OBSCURE has more and more passes, T1 = T2 = T, and the
wrapper a smaller and smaller ε. Here: LEAVES, ten kernels, eight samples of each species to train
on, four to choose λ and C on, four to test; T up to 2⁶ (the paper's: 2¹⁰), one split; one
test sample is 0.25 points. The widths of its kernels are medians over all samples. Seconds: of the
processor, one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._tables import markdown, verdict
from benchmarks._yan2012_random import REGS, column_sets, drawn
from manykernels import MKFDA, KernelStack, Views, kernels_for
from manykernels.baselines import OBSCURE
from manykernels.discriminant import fisher_targets
from manykernels.domains import lp_domain
from manykernels.kernels import RBF
from manykernels.kernels.transforms import preparation
from manykernels.losses.square import SquareLoss
from manykernels.losses.svm import HingeLoss
from manykernels.solvers import SIP, SMOMKL, Interleaved, Newton
from manykernels.solvers.base import Progress

TOL = 1e-4
BUDGET = 4.0
FACTOR = 2.0
SPARSE = 1 + 2.0**-5
KERNELS_TWO = (3, 6, 12, 24, 48, 96)
SAMPLES_TWO = (75, 150, 300, 600, 1200)
KERNELS_MANY = (2, 4, 8, 16, 31)
PER_CLASS = (1, 2, 4, 8, 15)
EPOCHS = tuple(2**k for k in range(7))
EPSILONS = (1.0, 2.0**-4, 1e-2, 1e-3, 1e-4, 1e-5)
NEAR_NORMS = {"p = 1 + 2⁻⁶": 1 + 2.0**-6, "p = 2": 2.0}
_ENDLESS = 10**6  # time decides, not iterations


SOLVERS: dict[str, Any] = {
    solver.name: solver for solver in (SIP(), Newton(), Interleaved(), SMOMKL())
}


@dataclass(frozen=True)
class Contender:
    """A machine and the name of a solver at one norm."""

    machine: str
    solver: str
    p: float

    @property
    def label(self) -> str:
        return f"{self.machine}, {self.solver}"


@dataclass(frozen=True)
class Timing:
    """Seconds of a fit, and whether it got to the gap."""

    seconds: float
    reached: bool

    def __str__(self) -> str:
        return f"{self.seconds:.3f}" if self.reached else f"> {self.seconds:.1f}"


#: Timings by size, for every contender.
Curve = dict[Contender, dict[int, Timing]]


def plain(found: Curve) -> list[dict[str, Any]]:
    """A curve as plain values, read again by `curve_of`."""
    return [
        {**asdict(one), "timings": {str(size): asdict(timing) for size, timing in by.items()}}
        for one, by in found.items()
    ]


def curve_of(plain: list[dict[str, Any]]) -> Curve:
    return {
        Contender(one["machine"], one["solver"], one["p"]): {
            int(size): Timing(**timing) for size, timing in one["timings"].items()
        }
        for one in plain
    }


def contenders(norm: float, multiclass: bool) -> list[Contender]:
    """Wrapper and Newton for MK-FDA; what Shogun does, SMO-MKL and Newton for MK-SVM."""
    listed = [Contender("MK-FDA", solver, norm) for solver in ("sip", "newton")]
    listed += [Contender("MK-SVM", solver, norm) for solver in ("interleaved", "newton")]
    if not multiclass:
        # The paper's SMO-MKL is one of two classes.
        listed.append(Contender("MK-SVM", "smo-mkl", SPARSE if norm == 1 else norm))
    return listed


def timed(one: Contender, stack: KernelStack, labels: np.ndarray) -> Timing:
    """Learn kernel weights once."""
    n_classes = int(labels.max()) + 1
    if one.machine == "MK-FDA":
        centred = preparation(None).fit_transform(stack)
        targets = fisher_targets(labels, np.bincount(labels).astype(float))
        loss: Any = SquareLoss(centred, targets, 1.0)
    else:
        signs = 2.0 * (labels[:, None] == np.arange(n_classes)) - 1.0
        loss = HingeLoss(stack, signs[:, 1:] if n_classes == 2 else signs, 1.0, 1e-3 * TOL)
    begin = time.process_time()

    def out_of_time(progress: Progress) -> bool:
        return time.process_time() - begin > BUDGET

    with threadpool_limits(1):
        solution = SOLVERS[one.solver].solve(
            loss, lp_domain(one.p), tol=TOL, max_iter=_ENDLESS, observer=out_of_time
        )
    return Timing(time.process_time() - begin, solution.certificate.rel_gap <= TOL)


def curve(
    sizes: tuple[int, ...],
    make: Callable[[int], tuple[KernelStack, np.ndarray]],
    *,
    multiclass: bool,
) -> Curve:
    """Every contender at every size; one that was too slow is not asked for larger ones."""
    found: Curve = {one: {} for norm in (1.0, 2.0) for one in contenders(norm, multiclass)}
    warm = make(sizes[0])
    for one in found:
        timed(one, *warm)  # compiles what is compiled
    for size in sizes:
        problem = make(size)
        for one, timings in found.items():
            if all(timing.reached for timing in timings.values()):
                timings[size] = timed(one, *problem)
    return found


# -- data ---------------------------------------------------------------------------------------


def gaussian(views: dict[str, np.ndarray]) -> KernelStack:
    X = Views({name: StandardScaler().fit_transform(view) for name, view in views.items()})
    return kernels_for(X, RBF(gamma="median")).fit(X)(X)


def digits(n_kernels: int, n_samples: int) -> tuple[KernelStack, np.ndarray]:
    """Digits 0–4 against 5–9, kernels of columns."""
    views, y = _data.mfeat()
    rng = np.random.default_rng(0)
    del views["mor"]  # six columns are too few for as many kernels
    sets = column_sets(views, rng, -(-n_kernels // len(views)))
    rows = rng.permutation(len(y))[:n_samples]
    chosen = {name: view[rows] for name, view in list(sets.items())[:n_kernels]}
    return gaussian(chosen), (y[rows] >= 5).astype(int)


def species(n_kernels: int, per_class: int) -> tuple[KernelStack, np.ndarray]:
    """The first leaves of each of 100 species, kernels of columns."""
    views, y = _data.leaves()
    rng = np.random.default_rng(0)
    sets = column_sets(views, rng, -(-n_kernels // len(views)))
    rows = np.concatenate([np.flatnonzero(y == label)[:per_class] for label in np.unique(y)])
    chosen = {name: view[rows] for name, view in list(sets.items())[:n_kernels]}
    return gaussian(chosen), y[rows] - 1


def curves(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """The four plots of Figs. 7 and 8 as plain values, by title."""
    cut = slice(1 if quick else None)
    n_samples, n_kernels = (75, 3) if quick else (500, 14)
    few = 2 if quick else 10
    found = {
        f"Fig. 7 (a): two classes, {n_samples} samples, by number of kernels": curve(
            KERNELS_TWO[cut], lambda n: digits(n, n_samples), multiclass=False
        ),
        f"Fig. 7 (b): two classes, {n_kernels} kernels, by number of samples": curve(
            SAMPLES_TWO[cut], lambda m: digits(n_kernels, m), multiclass=False
        ),
        "Fig. 8 (a): 100 classes, one sample of each, by number of kernels": curve(
            KERNELS_MANY[cut], lambda n: species(n, 1), multiclass=True
        ),
        f"Fig. 8 (b): 100 classes, {few} kernels, by samples per class": curve(
            PER_CLASS[cut], lambda m: species(few, m), multiclass=True
        ),
    }
    return {title: plain(one) for title, one in found.items()}


# -- reports of Figs. 7 and 8 -------------------------------------------------------------------


def curve_tables(found: dict[str, list[dict[str, Any]]]) -> str:
    """The tables of all plots."""
    tables = {title: curve_table(curve_of(one)) for title, one in found.items()}
    return "\n\n".join(f"{title}\n\n{table}" for title, table in tables.items())


def curve_table(found: Curve) -> str:
    sizes = sorted({size for timings in found.values() for size in timings})
    rows = [
        [f"{one.p:g}", one.label, *(str(timings.get(size, "—")) for size in sizes)]
        for one, timings in found.items()
    ]
    return markdown(["p", "seconds", *map(str, sizes)], rows, n_left=2)


def _timings(found: Curve, machine: str, solver: str, sparse: bool) -> dict[int, Timing]:
    for one, timings in found.items():
        if (one.machine, one.solver, one.p < 2) == (machine, solver, sparse):
            return timings
    raise KeyError((machine, solver))


def _at_the_largest(first: dict[int, Timing], second: dict[int, Timing]) -> tuple[Timing, Timing]:
    """The timings of both at the largest size that both were asked for."""
    size = max(set(first) & set(second))
    return first[size], second[size]


def _smo_mkl(name: str, found: Curve) -> list[str]:
    """The paper's statement on SMO-MKL at a sparse norm, where it is among the contenders."""
    if not any(one.solver == "smo-mkl" for one in found):
        return []
    smo, *rivals = (
        _timings(found, machine, solver, sparse=True)
        for machine, solver in (
            ("MK-SVM", "smo-mkl"),
            ("MK-FDA", "sip"),
            ("MK-SVM", "interleaved"),
        )
    )
    size = max(set(smo).intersection(*rivals))
    best = min((timings[size] for timings in rivals), key=lambda timing: timing.seconds)
    first = smo[size].reached and smo[size].seconds < best.seconds
    return [
        f"{name}, sparse norms: SMO-MKL {smo[size]} s, the better of wrapper and interleaved "
        f"{best} s; paper: SMO-MKL the most efficient ({verdict(first)})"
    ]


def curve_verdicts(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = []
    for title, values in found.items():
        name, one = title.split(":")[0], curve_of(values)
        wrapper = [_timings(one, "MK-FDA", "sip", sparse) for sparse in (True, False)]
        sparse, dense = _at_the_largest(*wrapper)
        lines.append(
            f"{name}: wrapper at p = 1 {sparse} s, at p = 2 {dense} s; paper: ℓ2 the faster of "
            f"the two ({verdict(dense.seconds < sparse.seconds)})"
        )
        for norm, timings in zip((1, 2), wrapper, strict=True):
            ours, theirs = _at_the_largest(
                timings, _timings(one, "MK-SVM", "interleaved", norm == 1)
            )
            if ours.reached or theirs.reached:
                word = verdict(ours.reached and ours.seconds < FACTOR * theirs.seconds)
            else:
                word = "undecided"
            newton = _timings(one, "MK-FDA", "newton", norm == 1)
            lines.append(
                f"{name}, p = {norm}: wrapper {ours} s, interleaved MK-SVM {theirs} s; paper: "
                f"MK-FDA comparable (here: within {FACTOR:g} times) or faster ({word}); Newton at "
                f"the largest size {newton[max(newton)]} s"
            )
        lines += _smo_mkl(name, one)
    return lines


# -- Fig. 9 -------------------------------------------------------------------------------------


#: By norm and method: what a model was allowed, seconds of the fit, test accuracy in per cent.
Race = dict[str, dict[str, list[dict[str, Any]]]]


def race(quick: bool) -> Race:
    """OBSCURE with more and more passes, cutting planes with a smaller and smaller ε."""
    stack, labels = species(10, 4 if quick else 16)
    sizes = (200, 100, 100) if quick else (800, 400, 400)
    rows = drawn(labels, sizes, 0)
    train, other, test = (stack[np.ix_(part, rows[0])] for part in rows)
    found: Race = {}

    def fit(model: Any, block: KernelStack, part: int) -> tuple[float, float]:
        begin = time.process_time()
        model.fit(train, labels[rows[0]])
        seconds = time.process_time() - begin
        return seconds, 100.0 * model.score(block, labels[rows[part]])

    def discriminant(p: float, reg: float, eps: float) -> MKFDA:
        # The gap asked for is out of reach, so that ε decides.
        return MKFDA("precomputed", p=p, reg=reg, normalize=None, solver=SIP(eps=eps), tol=1e-7)

    def online(p: float, C: float, epochs: int) -> OBSCURE:
        passes = {"n_epochs_online": epochs, "n_epochs_batch": epochs, "exact": False}
        return OBSCURE("precomputed", p=p, C=C, normalize=None, random_state=0, **passes)

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(online(2.0, 1.0, 1), test, 2)  # compiles what is compiled
        for norm, p in NEAR_NORMS.items():
            kinds: dict[str, tuple[Callable, list[tuple[str, Any]], Any]] = {
                "MK-FDA, sip": (discriminant, [(f"ε = {e:.2g}", e) for e in EPSILONS], 1e-3),
                "OBSCURE": (online, [(f"T = {t}", t) for t in EPOCHS], 8),
            }
            found[norm] = {}
            for name, (make, settings, typical) in kinds.items():
                tried = REGS[1:3] if quick else REGS
                best = max(tried, key=lambda v: fit(make(p, v, typical), other, 1)[1])
                chosen = settings[::3] if quick else settings
                found[norm][f"{name}, {'λ' if make is discriminant else 'C'} = {best:.3g}"] = [
                    {"setting": label, **_point(*fit(make(p, best, value), test, 2))}
                    for label, value in chosen
                ]
    return found


def _point(seconds: float, accuracy: float) -> dict[str, float]:
    return {"seconds": seconds, "accuracy": accuracy}


def race_table(found: Race) -> str:
    rows = [
        [norm, method, one["setting"], f"{one['seconds']:.2f}", f"{one['accuracy']:.1f}"]
        for norm, by in found.items()
        for method, points in by.items()
        for one in points
    ]
    return markdown(["norm", "method", "setting", "seconds", "accuracy %"], rows, n_left=3)


def race_verdicts(found: Race) -> list[str]:
    lines = []
    for norm, by in found.items():
        fda, online = by.values()
        most, least = (max(one["accuracy"] for one in points) for points in (fda, online))
        level = min(most, least) - 0.5
        first, second = (
            min(one["seconds"] for one in points if one["accuracy"] >= level)
            for points in (fda, online)
        )
        lines.append(
            f"Fig. 9, {norm}: best accuracy MK-FDA {most:.1f} %, OBSCURE {least:.1f} %; paper: "
            f"MK-FDA at least as accurate ({verdict(most >= least)}); {level:.1f} % after "
            f"{first:.2f} s and {second:.2f} s; paper: MK-FDA the sooner "
            f"({verdict(first < second)})"
        )
    return lines
