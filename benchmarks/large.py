"""MKFDA or MKSVC on more samples than kernel matrices fit into memory, by columns.

    python -m benchmarks.large [--machine svm] [--samples 20000] [--cache-gib 2] [--norms 2 1]
                               [--write]

Ten Gaussian kernels of 20 features, two classes whose border bends in five of them, λ = 1 or
C = 1. The solvers "coordinate" and "interleaved" compute kernel columns when they need them. Shown
are time and certified gap after every sweep (or round of working sets), time of the whole fit
(means of the kernels before, leave-one-out after the sweeps), the peak memory of the whole process
beside what the kernel matrices alone would take, and the accuracy on fresh rows.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._command import write_page
from benchmarks._tables import environment, markdown
from manykernels import MKFDA, MKSVC, rbf_grid
from manykernels.solvers import Coordinate, Interleaved
from manykernels.solvers.base import Progress, Solution

N_KERNELS = 10
N_FEATURES = 20
N_FRESH = 2000
REG = PENALTY = 1.0
TOL = 1e-3
NORMS = [2.0, 1.0]

_GIB = 2**30


def make_data(n_samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal features, and classes that depend on five of them, not linearly, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, N_FEATURES))
    side = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 - 1 + X[:, 3] * X[:, 4] / 2
    return X, np.where(side + rng.standard_normal(n_samples) / 2 > 0, "inside", "outside")


@dataclass
class TimedSolver:
    """A solver by columns, with a line and a time for every sweep."""

    solver: Coordinate | Interleaved
    started: float = field(default_factory=time.perf_counter)
    times: list[float] = field(default_factory=list)
    by_columns: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.solver.name

    @property
    def cache_bytes(self) -> int:
        return self.solver.cache_bytes

    def solve(self, loss: Any, domain: Any, *, observer: Any, **options: Any) -> Solution:
        def tell(progress: Progress) -> bool | None:
            self.times.append(time.perf_counter() - self.started)
            gap = progress.certificate.rel_gap
            print(f"  sweep {progress.iteration + 1}: {self.times[-1]:7.1f} s  gap {gap:.2e}")
            sys.stdout.flush()
            return observer(progress)

        return self.solver.solve(loss, domain, observer=tell, **options)


@dataclass(frozen=True)
class Result:
    """One fit, measured."""

    p: float
    times: list[float]
    gaps: list[float]
    seconds: float
    accuracy: float
    peak_bytes: int

    @property
    def sweep_seconds(self) -> float:
        """Median time of a sweep, the first left out, before which there is other work."""
        steps = np.diff(self.times)
        return float(np.median(steps)) if len(steps) else self.times[0]


@dataclass(frozen=True)
class Machine:
    """What is fitted, and by which solver."""

    page: str
    title: str
    parameter: str
    make: Callable[[int, int], tuple[Any, TimedSolver]]


def _fda(block_size: int, cache_bytes: int) -> tuple[Any, TimedSolver]:
    solver = TimedSolver(Coordinate(block_size=block_size, cache_bytes=cache_bytes))
    return MKFDA(reg=REG, solver=solver), solver


def _svm(block_size: int, cache_bytes: int) -> tuple[Any, TimedSolver]:
    solver = TimedSolver(Interleaved(working_set=block_size, cache_bytes=cache_bytes))
    return MKSVC(C=PENALTY, solver=solver), solver


MACHINES = {
    "fda": Machine("large", "discriminants", f"λ = {REG:g}", _fda),
    "svm": Machine("large_svm", "support vectors", f"C = {PENALTY:g}", _svm),
}


def run(
    n_samples: int, p: float, cache_bytes: int, block_size: int = 2000, machine: str = "fda"
) -> Result:
    """Fit on `n_samples` rows and predict fresh ones."""
    X, y = make_data(n_samples + N_FRESH)
    kernels = rbf_grid(np.logspace(-0.6, 1.2, N_KERNELS), gamma="scale")
    start = time.perf_counter()
    model, solver = MACHINES[machine].make(block_size, cache_bytes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is shown
        model.set_params(kernels=kernels, p=p, tol=TOL)
        model.fit(X[:n_samples], y[:n_samples])
    seconds = time.perf_counter() - start
    return Result(
        p=p,
        times=solver.times,
        gaps=model.history_["rel_gap"],
        seconds=seconds,
        accuracy=model.score(X[n_samples:], y[n_samples:]),
        peak_bytes=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    )


def table(results: list[Result]) -> str:
    """One row per fit."""
    header = ["p", "sweeps", "gap", "s/sweep", "whole fit, s", "peak memory, GiB", "accuracy"]
    rows = [
        [
            f"{result.p:g}",
            str(len(result.gaps)),
            f"{result.gaps[-1]:.1e}",
            f"{result.sweep_seconds:.0f}",
            f"{result.seconds:.0f}",
            f"{result.peak_bytes / _GIB:.2f}",
            f"{result.accuracy:.3f}",
        ]
        for result in results
    ]
    return markdown(header, rows)


def report(results: list[Result], n_samples: int, cache_gib: float, machine: str = "fda") -> str:
    """The page for the documentation."""
    norms = " ".join(f"{result.p:g}" for result in results)
    command = (
        f"python -m benchmarks.large --machine {machine} --samples {n_samples} "
        f"--cache-gib {cache_gib:g} --norms {norms} --write"
    )
    solver = MACHINES[machine].make(1, 1)[1].name
    sweeps = [
        [f"{result.p:g}", str(k + 1), f"{seconds:.0f}", f"{gap:.1e}"]
        for result in results
        for k, (seconds, gap) in enumerate(zip(result.times, result.gaps, strict=True))
    ]
    parts = [
        f"# Kernels by columns: {MACHINES[machine].title}",
        f"Written by `{command}`. {n_samples} samples of {N_FEATURES} features in two classes, "
        f"{N_KERNELS} Gaussian kernels, {MACHINES[machine].parameter}, relative gap asked "
        f'for {TOL:g}, `solver="{solver}"` with a cache of {cache_gib:g} GiB. The kernel '
        f"matrices alone would take {stack_gib(n_samples):.1f} GiB. Peak memory is that of the "
        "whole process up to then; accuracy that on "
        f"{N_FRESH} fresh rows.",
        environment(),
        table(results),
        "Gap after each sweep, with the seconds since the start of the fit:",
        markdown(["p", "sweep", "seconds", "relative gap"], sweeps),
    ]
    return "\n\n".join(parts) + "\n"


def stack_gib(n_samples: int) -> float:
    """Size of all kernel matrices."""
    return 8 * N_KERNELS * n_samples**2 / _GIB


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large", description="Fits by columns, on many samples."
    )
    parser.add_argument("--machine", choices=sorted(MACHINES), default="fda")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--cache-gib", type=float, default=2.0)
    parser.add_argument("--norms", type=float, nargs="+", default=NORMS)
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args(arguments)
    print(
        f"{options.samples} samples, {N_KERNELS} kernels: a stack would take "
        f"{stack_gib(options.samples):.1f} GiB"
    )
    results = []
    for p in options.norms:
        print(f"p = {p:g}", flush=True)
        cache_bytes = int(options.cache_gib * _GIB)
        results.append(run(options.samples, p, cache_bytes, machine=options.machine))
        print(table(results), flush=True)
        if options.write:
            page = report(results, options.samples, options.cache_gib, options.machine)
            write_page(MACHINES[options.machine].page, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
