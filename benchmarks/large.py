"""MKFDA or MKSVC on more samples than kernel matrices fit into memory, by columns.

    python -m benchmarks.large [--quick] [--sets fda,svm,landmarks] [--write]

Ten Gaussian kernels of 20 features, two classes whose border bends in five of them: discriminants
("fda") of 20,000 samples with λ = 1, machines ("svm") of 8,000 with C = 1. The solvers
"coordinate" and "interleaved" compute kernel columns when they need them. Shown are time and
certified gap after every sweep (or round of working sets), time of the whole fit (means of the
kernels before, leave-one-out after the sweeps), the peak memory of the whole process beside what
the kernel matrices alone would take, and the accuracy on fresh rows. Every fit has a process of
its own. The set "landmarks" learns the discriminants of the same samples from Nyström features
instead.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._command import Results, command_line, report
from benchmarks._tables import environments, markdown
from manykernels import MKFDA, MKSVC, Nystrom, rbf_grid
from manykernels.solvers import Coordinate, Interleaved
from manykernels.solvers.base import Progress, Solution

N_KERNELS = 10
N_FEATURES = 20
N_FRESH = 2000
REG = PENALTY = 1.0
TOL = 1e-3
N_QUICK = 300
#: Numbers of landmarks whose features replace the kernels, at p = 2.
LANDMARKS = [200, 400]

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
    """What is fitted, by which solver, and on how much."""

    title: str
    parameter: str
    make: Callable[[int, int], tuple[Any, TimedSolver]]
    n_samples: int
    cache_gib: float
    norms: list[float]


def _fda(block_size: int, cache_bytes: int) -> tuple[Any, TimedSolver]:
    solver = TimedSolver(Coordinate(block_size=block_size, cache_bytes=cache_bytes))
    return MKFDA(reg=REG, solver=solver), solver


def _svm(block_size: int, cache_bytes: int) -> tuple[Any, TimedSolver]:
    solver = TimedSolver(Interleaved(working_set=block_size, cache_bytes=cache_bytes))
    return MKSVC(C=PENALTY, solver=solver), solver


MACHINES = {
    "fda": Machine("Discriminants", f"λ = {REG:g}", _fda, 20000, 2.0, [2.0, 1.0]),
    "svm": Machine("Support vector machines", f"C = {PENALTY:g}", _svm, 8000, 1.0, [2.0]),
}
SETS = [*MACHINES, "landmarks"]


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


def run_landmarks(n_samples: int, n_landmarks: int) -> dict[str, float]:
    """Fit on features of `n_samples` rows and predict fresh ones."""
    X, y = make_data(n_samples + N_FRESH)
    kernels = rbf_grid(np.logspace(-0.6, 1.2, N_KERNELS), gamma="scale")
    model = MKFDA(kernels, p=2, reg=REG, tol=TOL, approximation=Nystrom(n_landmarks=n_landmarks))
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(X[:n_samples], y[:n_samples])
    return {
        "n_landmarks": n_landmarks,
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "gap": model.certificate_.rel_gap,
        "accuracy": model.score(X[n_samples:], y[n_samples:]),
    }


def run_apart(machine: str, n_samples: int, p: float) -> Result:
    """Fit in a process of its own, so that its peak memory can be told."""
    command = [sys.executable, "-m", "benchmarks.large", "--fit", machine, str(n_samples), str(p)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout or []:
            lines.append(line)
            if not line.startswith("{"):
                print(line, end="", flush=True)
    if process.returncode:
        raise RuntimeError(f"The fit of {machine} on {n_samples} samples, p = {p:g}, failed.")
    return Result(**json.loads(lines[-1]))


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


def page(results: Results) -> str:
    """The page of the documentation."""
    parts = [
        "# Kernels by columns",
        "Written by `python -m benchmarks.large --write`. Two classes, "
        f"{N_FEATURES} features, {N_KERNELS} Gaussian kernels, relative gap asked for {TOL:g}. "
        "Peak memory is that of the whole process, one for each fit; accuracy that on "
        f"{N_FRESH} fresh rows.",
        environments(results),
    ]
    for name, part in results.items():
        if name == "landmarks":
            parts += landmarks_section(part, results.get("fda"))
            continue
        machine, fits = MACHINES[name], [Result(**fit) for fit in part["fits"]]
        sweeps = [
            [f"{fit.p:g}", str(k + 1), f"{seconds:.0f}", f"{gap:.1e}"]
            for fit in fits
            for k, (seconds, gap) in enumerate(zip(fit.times, fit.gaps, strict=True))
        ]
        parts += [
            f"## {machine.title}",
            f"{part['n_samples']} samples, {machine.parameter}, "
            f'`solver="{machine.make(1, 1)[1].name}"` with a cache of {part["cache_gib"]:g} GiB. '
            f"The kernel matrices alone would take {stack_gib(part['n_samples']):.1f} GiB.",
            table(fits),
            "Gap after each sweep, with the seconds since the start of the fit:",
            markdown(["p", "sweep", "seconds", "relative gap"], sweeps),
        ]
    return "\n\n".join(parts) + "\n"


def landmarks_section(part: dict[str, Any], by_columns: dict[str, Any] | None) -> list[str]:
    """The section about features; with differences if kernels by columns were measured."""
    exact = next((fit for fit in (by_columns or {}).get("fits", []) if fit["p"] == 2), None)
    rows = []
    for fit in part["fits"]:
        accuracy = fit["accuracy"]
        error = np.sqrt(2 * accuracy * (1 - accuracy) / N_FRESH)
        difference = "" if exact is None else f"{accuracy - exact['accuracy']:+.3f} ± {error:.3f}"
        rows.append(
            [
                str(fit["n_landmarks"]),
                f"{fit['seconds']:.0f}",
                f"{fit['processor_seconds']:.0f}",
                f"{fit['gap']:.1e}",
                f"{accuracy:.3f}",
                difference,
            ]
        )
    header = ["landmarks", "whole fit, s", "of the processor, s", "gap", "accuracy"]
    return [
        "## Discriminants on features",
        f"{part['n_samples']} samples, λ = {REG:g}, p = 2, "
        "`approximation=Nystrom(n_landmarks=…)` instead of kernels by columns. The gap is that of "
        "the weights of the approximate kernels. The difference in accuracy is that from the "
        "fit by columns, ± the standard error of a difference of two independent samples of fresh "
        "rows.",
        markdown([*header, "difference"], rows),
    ]


def stack_gib(n_samples: int) -> float:
    """Size of all kernel matrices."""
    return 8 * N_KERNELS * n_samples**2 / _GIB


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("large", "Fits by columns, on many samples.", SETS)
    parser.add_argument("--fit", nargs=3, metavar=("MACHINE", "ROWS", "P"), help="one, as JSON")
    options = parser.parse_args(arguments)
    if options.fit:
        name, n_rows, p = options.fit
        cache_bytes = int(MACHINES[name].cache_gib * _GIB)
        print(json.dumps(vars(run(int(n_rows), float(p), cache_bytes, machine=name))))
        return 0
    results: Results = {}
    for name in options.sets:
        if name == "landmarks":
            n_samples = N_QUICK if options.quick else MACHINES["fda"].n_samples
            fits = [run_landmarks(n_samples, min(n, n_samples // 2)) for n in LANDMARKS]
            results[name] = {"n_samples": n_samples, "fits": fits}
            continue
        machine = MACHINES[name]
        n_samples = N_QUICK if options.quick else machine.n_samples
        fits = []
        for p in machine.norms:
            print(f"{name}, {n_samples} samples, p = {p:g}", flush=True)
            fits.append(run_apart(name, n_samples, p))
        results[name] = {"n_samples": n_samples, "cache_gib": machine.cache_gib, "fits": fits}
    report("large", results, page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
