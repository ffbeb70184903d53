"""One machine on one kernel: our SMO against LIBSVM; see :mod:`benchmarks.svm`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks._svm_sets import Machine
from benchmarks._tables import markdown, verdict
from manykernels import KernelStack
from manykernels.losses.svm import HingeLoss
from manykernels.smo.box import solve_box
from manykernels.smo.program import BoxProblem

PENALTIES = [1.0, 100.0]
TOL = 1e-3
CHANGE = 0.03
MOST_RATIO = 1.3
LEAST_WARM = 2.0

_REPEATS = 5
_LEAST_SECONDS = 0.5
_MOST_SECONDS = 20.0

# A first solve of two samples, with all it takes to get there but NumPy and this package.
_FIRST_SOLVE = """
import time
import numpy as np
from manykernels.smo.box import solve_box
from manykernels.smo.program import BoxProblem
signs = np.array([1.0, -1.0])
problem = BoxProblem(signs, np.minimum(signs, 0), np.maximum(signs, 0), np.zeros(2))
for _ in range(2):
    begin = time.process_time()
    solve_box(np.eye(2), problem)
    print(time.process_time() - begin)
"""


@dataclass(frozen=True)
class Run:
    """One solution by one program."""

    seconds: float
    n_steps: int
    rel_gap: float


@dataclass(frozen=True)
class Duel:
    """One machine at one C, solved by both; `overhead` is that of scikit-learn."""

    machine: str
    C: float
    n_support: int
    cold: Run
    libsvm: Run
    overhead: float
    warm: Run
    libsvm_changed: Run

    @property
    def ratio(self) -> float:
        """Our time over LIBSVM's."""
        return self.cold.seconds / self.libsvm.seconds

    @property
    def loop_ratio(self) -> float:
        """As if scikit-learn's part of the fit were free."""
        return self.cold.seconds / max(self.libsvm.seconds - self.overhead, 1e-9)

    @property
    def speedup(self) -> float:
        """LIBSVM's time on the changed kernel over ours from the old solution."""
        return self.libsvm_changed.seconds / self.warm.seconds

    @property
    def loop_speedup(self) -> float:
        return max(self.libsvm_changed.seconds - self.overhead, 0.0) / self.warm.seconds


def from_values(values: dict[str, Any]) -> Duel:
    """A duel made of its plain values."""
    runs = {key: Run(**value) for key, value in values.items() if isinstance(value, dict)}
    return Duel(**{**values, **runs})


# -- measurements --------------------------------------------------------------------------


def best_times(*functions: Callable[[], object]) -> list[float]:
    """Processor seconds that each function takes at best on one thread, called in turn."""
    times: list[list[float]] = [[] for _ in functions]
    with threadpool_limits(1):
        while (total := sum(map(sum, times))) < _MOST_SECONDS and (
            len(times[-1]) < _REPEATS or total < _LEAST_SECONDS
        ):
            for function, taken in zip(functions, times, strict=True):
                begin = time.process_time()
                function()
                taken.append(time.process_time() - begin)
    return [min(taken) for taken in times]


def program(signs: np.ndarray, C: float) -> BoxProblem:
    """The dual of the machine, as the loss of the package states it."""
    nothing = KernelStack.from_arrays([np.eye(len(signs))])
    return HingeLoss(nothing, signs, C).problems[0]


def duel(machine: Machine, C: float) -> Duel:
    """Cold, and after a change of the kernel."""
    K = np.ascontiguousarray(machine.K)
    changed = (1.0 - CHANGE) * K + CHANGE * machine.other
    signs = machine.signs
    problem = program(signs, C)
    svc = SVC(kernel="precomputed", C=C, tol=TOL)
    idle = SVC(kernel="precomputed", C=C, tol=TOL, max_iter=1)

    ours = solve_box(K, problem, tol=TOL)
    again = solve_box(changed, problem, start=ours.v, tol=TOL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one step is what is asked for
        cold, libsvm, overhead, warm, libsvm_changed = best_times(
            lambda: solve_box(K, problem, tol=TOL),
            lambda: svc.fit(K, signs),
            lambda: idle.fit(K, signs),
            lambda: solve_box(changed, problem, start=ours.v, tol=TOL),
            lambda: svc.fit(changed, signs),
        )
    theirs = svc.fit(K, signs)
    n_support, n_steps = len(theirs.support_), int(theirs.n_iter_[0])
    gap = libsvm_gap(theirs, K, problem)
    theirs = svc.fit(changed, signs)
    return Duel(
        machine=machine.name,
        C=C,
        n_support=n_support,
        cold=Run(cold, ours.n_steps, ours.gap / abs(ours.dual)),
        libsvm=Run(libsvm, n_steps, gap),
        overhead=overhead,
        warm=Run(warm, again.n_steps, again.gap / abs(again.dual)),
        libsvm_changed=Run(
            libsvm_changed, int(theirs.n_iter_[0]), libsvm_gap(theirs, changed, problem)
        ),
    )


def libsvm_gap(model: SVC, K: np.ndarray, problem: BoxProblem) -> float:
    """``(P − D)/|D|`` of what LIBSVM found."""
    v = np.zeros(len(K))
    v[model.support_] = model.dual_coef_[0]
    product = K @ v
    dual = problem.value(v, product)
    return (problem.bound(v, product) - dual) / abs(dual)


def first_solves() -> tuple[float, float, float]:
    """Processor seconds of the first solve in a process: compiled, from the cache; and the next.

    Processes of their own with a cache of their own.
    """
    with tempfile.TemporaryDirectory() as cache:
        compiled, _ = _first_solve(cache)
        cached, second = _first_solve(cache)
    return compiled, cached, second


def _first_solve(cache: str) -> tuple[float, float]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", _FIRST_SOLVE],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    first, second = map(float, answer.stdout.split())
    return first, second


# -- reports -------------------------------------------------------------------------------


def cold_table(duels: list[Duel]) -> str:
    """Both from nothing."""
    header = ["set", "C", "SVs", "ms", "LIBSVM ms", "of it scikit-learn", "ratio", "to loop alone"]
    header += ["steps", "LIBSVM", "gap", "LIBSVM gap"]
    rows = [
        [
            duel.machine,
            f"{duel.C:g}",
            str(duel.n_support),
            _milliseconds(duel.cold.seconds),
            _milliseconds(duel.libsvm.seconds),
            _milliseconds(duel.overhead),
            f"{duel.ratio:.2f}",
            f"{duel.loop_ratio:.2f}",
            str(duel.cold.n_steps),
            str(duel.libsvm.n_steps),
            f"{duel.cold.rel_gap:.1e}",
            f"{duel.libsvm.rel_gap:.1e}",
        ]
        for duel in duels
    ]
    return markdown(header, rows)


def warm_table(duels: list[Duel]) -> str:
    """Ours from the old solution, LIBSVM from nothing."""
    header = ["set", "C", "warm ms", "LIBSVM ms", "times faster", "than loop alone"]
    header += ["steps", "LIBSVM", "gap", "LIBSVM gap"]
    rows = [
        [
            duel.machine,
            f"{duel.C:g}",
            _milliseconds(duel.warm.seconds),
            _milliseconds(duel.libsvm_changed.seconds),
            f"{duel.speedup:.2f}",
            f"{duel.loop_speedup:.2f}",
            str(duel.warm.n_steps),
            str(duel.libsvm_changed.n_steps),
            f"{duel.warm.rel_gap:.1e}",
            f"{duel.libsvm_changed.rel_gap:.1e}",
        ]
        for duel in duels
    ]
    return markdown(header, rows)


def verdicts(duels: list[Duel]) -> list[str]:
    """The worst figures beside their bounds."""
    if not duels:
        return []
    slow = max(duels, key=lambda duel: duel.ratio)
    stiff = min(duels, key=lambda duel: duel.speedup)
    loop = max(duel.loop_ratio for duel in duels)
    return [
        f"SMO cold, our time over that of SVC.fit: at most {MOST_RATIO:g} asked, worst "
        f"{slow.ratio:.2f} ({slow.machine}, C = {slow.C:g}): "
        f"{verdict(slow.ratio <= MOST_RATIO)}; without scikit-learn's part, worst {loop:.2f}: "
        f"{verdict(loop <= MOST_RATIO)}",
        f"SMO warm after a change of {CHANGE:.0%}, times faster than SVC.fit: at least "
        f"{LEAST_WARM:g} asked, worst {stiff.speedup:.2f} ({stiff.machine}, C = {stiff.C:g}): "
        f"{verdict(stiff.speedup >= LEAST_WARM)}; without scikit-learn's part, worst "
        f"{(least := min(duel.loop_speedup for duel in duels)):.2f}: "
        f"{verdict(least >= LEAST_WARM)}",
    ]


def compile_line(compiled: float, cached: float, second: float) -> str:
    return (
        f"First solve of a process (two samples, import of numba included): {compiled:.2g} s of "
        f"the processor where the loops have to be compiled, {cached:.2g} s where they are in "
        f"numba's cache; the second one {1e3 * second:.2g} ms. In none of the figures below."
    )


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"
