"""Many kernels on few samples, and many equal kernels of low rank at a huge C.

    python -m benchmarks.many_kernels [--quick] [--sets kernels,duplicates] [--write]

- *kernels*: n Gaussian kernels of three columns out of twenty on m samples, n far above m. Newton
  and cutting planes ("sip") minimise the same losses to the same relative duality gap over all
  kernels, one after the other in the same process. At p = 1 Newton works on the kernels that can
  enter; above, all have a weight. There it tries steps without a quadratic program first, which
  suffice for p well above 1; the programs are of low rank. "kernels in a program" is the largest
  number of kernels that a quadratic program of Newton has had.
- *duplicates*: regression on twelve kernels of which three are different, of low rank, at C = 1e6.
  Time, inner solves and pair steps of fits at many seeds: the median and the worst of them.

Seconds are those of the processor, with one thread, on ready kernels. A walk that takes more than
six seconds is stopped.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, write_results
from benchmarks._tables import environments, markdown, measured_with
from manykernels import KernelStack
from manykernels.discriminant import fisher_targets
from manykernels.domains import lp_domain
from manykernels.kernels.transforms import preparation
from manykernels.losses.square import SquareLoss
from manykernels.losses.svm import EpsilonInsensitiveLoss, HingeLoss, OneClassLoss
from manykernels.smo.box import Ascent
from manykernels.solvers import SIP, Newton, newton
from manykernels.solvers.base import Progress

SETS = ["kernels", "duplicates"]
TOL = 1e-4
BUDGET = 6.0
SIZES = [(1000, 30), (3000, 60)]
NORMS = [1.0, 1 + 2.0**-6, 2.0]
SEEDS = range(4)

_PENALTY = 1e6
_ENDLESS = 10**6  # time decides, not iterations


# -- measurements --------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One solver on one problem."""

    loss: str
    n_kernels: int
    n_samples: int
    p: float
    solver: str
    seconds: float
    n_iter: int
    n_inner_solves: int
    largest: int
    n_weights: int
    rel_gap: float


def problems(n_kernels: int, n_samples: int, seed: int = 0) -> dict[str, Any]:
    """Losses on many Gaussian kernels, by name; each call of one makes it afresh."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 20))
    product = X[:, 0] * X[:, 1]
    labels = (product + 0.3 * rng.standard_normal(n_samples) > 0.0).astype(int)
    data = np.empty((n_kernels, n_samples, n_samples))
    for matrix in data:
        some = X[:, rng.choice(20, 3, replace=False)]
        squares = ((some[:, None] - some) ** 2).sum(axis=2)
        matrix[:] = np.exp(-np.exp(rng.uniform(-3.0, 1.0)) * squares)
    names = [f"kernel{j}" for j in range(n_kernels)]
    plain = KernelStack(data, names, gram=True, checked=True)
    stack = preparation("multiplicative", center=False).fit_transform(plain)
    centred = preparation("multiplicative").fit_transform(plain)
    targets = fisher_targets(labels, np.bincount(labels).astype(float))
    inner_tol = 1e-3 * TOL
    return {
        "MKSVC": lambda: HingeLoss(stack, 2.0 * labels - 1.0, 1.0, inner_tol),
        "MKSVR": lambda: EpsilonInsensitiveLoss(stack, product, 1.0, 0.1, inner_tol),
        "MKOneClassSVM": lambda: OneClassLoss(stack, 0.5, None, inner_tol),
        "MKFDA": lambda: SquareLoss(centred, targets, 0.1),
    }


def solve(name: str, make: Any, p: float, solver: Any) -> Row:
    """Solve once, for as long as there is time."""
    loss, sizes = make(), []
    minimize = newton.minimize_quadratic

    def counted(linear: Any, *others: Any) -> Any:
        sizes.append(len(linear))
        return minimize(linear, *others)

    begin = time.process_time()

    def out_of_time(progress: Progress) -> bool:
        return time.process_time() - begin > BUDGET

    with threadpool_limits(1), mock.patch.object(newton, "minimize_quadratic", counted):
        solution = solver.solve(
            loss, lp_domain(p), tol=TOL, max_iter=_ENDLESS, observer=out_of_time
        )
    seconds = time.process_time() - begin
    return Row(
        loss=name,
        n_kernels=loss.n_kernels,
        n_samples=loss.spec.n_samples,
        p=p,
        solver=solver.name,
        seconds=seconds,
        n_iter=solution.n_iter,
        n_inner_solves=solution.n_inner_solves,
        largest=max(sizes, default=0),
        n_weights=int(np.count_nonzero(solution.weights > 1e-9)),
        rel_gap=solution.certificate.rel_gap,
    )


def run_kernels(quick: bool) -> list[Row]:
    """Newton and cutting planes in turn, on every problem."""
    rows = []
    for n_kernels, n_samples in SIZES[:1] if quick else SIZES:
        makers = problems(n_kernels, n_samples)
        # Close to p = 1 a program of thousands of kernels takes a while; the smaller ones show it.
        norms = NORMS if (n_kernels, n_samples) == SIZES[0] else [NORMS[0], NORMS[-1]]
        for p in norms[:1] if quick else norms:
            for name, make in makers.items():
                for solver in (Newton(), SIP()):
                    rows.append(solve(name, make, p, solver))
                    print(_cells(rows[-1]), file=sys.stderr, flush=True)
    return rows


@dataclass(frozen=True)
class Fits:
    """Fits at many seeds of one kind of kernels: medians and worst of time and inner solves."""

    kind: str
    n_samples: int
    n_fits: int
    seconds: tuple[float, float]
    n_inner_solves: tuple[float, int]
    n_steps: int
    n_missed: int


def run_duplicates(quick: bool) -> list[Fits]:
    """Regression on kernels of low rank that occur four times each."""
    fits = []
    for n_samples in (40,) if quick else (40, 80):
        for rank in (2,) if quick else (1, 2, 4):
            fits.append(_fit_duplicates(n_samples, rank))
            print(_fit_cells(fits[-1]), file=sys.stderr, flush=True)
    return fits


def _fit_duplicates(n_samples: int, rank: int) -> Fits:
    seconds, solves, steps, missed = [], [], [], 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        factors = rng.standard_normal((3, n_samples, rank))
        base = factors @ factors.transpose(0, 2, 1)
        clean = base.sum(axis=0) @ rng.standard_normal(n_samples)
        noise = rng.standard_normal(n_samples)
        names = [f"kernel{j}" for j in range(12)]
        stack = KernelStack(np.concatenate([base] * 4), names, gram=True, checked=True)
        for level in (0.0, 0.01, 0.3):
            targets = clean / clean.std() + level * noise
            for epsilon in (0.0, 0.01, 0.1):
                for p in (1.0, 2.0):
                    loss = EpsilonInsensitiveLoss(stack, targets, _PENALTY, epsilon, 1e-3 * TOL)
                    begin = time.process_time()
                    with threadpool_limits(1), _CountedSteps() as counts:
                        solution = Newton().solve(loss, lp_domain(p), tol=TOL)
                    seconds.append(time.process_time() - begin)
                    solves.append(solution.n_inner_solves)
                    steps.append(max(counts))
                    missed += not solution.certificate.converged
    return Fits(
        f"rank {rank}",
        n_samples,
        len(seconds),
        (float(np.median(seconds)), max(seconds)),
        (float(np.median(solves)), max(solves)),
        max(steps),
        missed,
    )


class _CountedSteps:
    """Pair steps of every inner solve inside a with block."""

    def __enter__(self) -> list[int]:
        counts: list[int] = []
        run = Ascent.run_to_gap

        def counted(ascent: Ascent, rel_gap: float) -> None:
            run(ascent, rel_gap)
            counts.append(ascent.n_steps)

        self._patch = mock.patch.object(Ascent, "run_to_gap", counted)
        self._patch.start()
        return counts

    def __exit__(self, *exception: object) -> None:
        self._patch.stop()


# -- reports -------------------------------------------------------------------------------

HEADER = ["loss", "n", "m", "p", "solver", "seconds", "iterations", "inner solves"]
HEADER += ["kernels in a program", "weights", "gap"]
FITS_HEADER = ["kernels", "m", "fits", "seconds, median", "worst", "inner solves, median"]
FITS_HEADER += ["worst", "steps of a solve, worst", "gap not reached"]


def _cells(row: Row) -> list[str]:
    return [
        row.loss,
        str(row.n_kernels),
        str(row.n_samples),
        f"{row.p:.7g}",
        row.solver,
        f"{row.seconds:.3g}",
        str(row.n_iter),
        str(row.n_inner_solves),
        str(row.largest) if row.largest else "",
        str(row.n_weights),
        f"{max(row.rel_gap, 0.0):.1e}",
    ]


def _fit_cells(fits: Fits) -> list[str]:
    return [
        fits.kind,
        str(fits.n_samples),
        str(fits.n_fits),
        *(f"{value:.2g}" for value in fits.seconds),
        *(f"{value:g}" for value in fits.n_inner_solves),
        str(fits.n_steps),
        str(fits.n_missed),
    ]


def ratios(rows: list[Row]) -> str:
    """What cutting planes take in units of Newton's method, a line per problem."""
    lines = []
    for fast, slow in zip(rows[::2], rows[1::2], strict=True):
        least = "" if slow.rel_gap <= TOL else "at least "
        lines.append(
            f"- {fast.loss}, {fast.n_kernels} kernels × {fast.n_samples} samples, p = "
            f"{fast.p:.7g}: sip/newton in time {least}{slow.seconds / fast.seconds:.2g}, in inner "
            f"solves {least}{slow.n_inner_solves / fast.n_inner_solves:.2g}"
        )
    return "\n".join(lines)


def page(results: Results) -> str:
    """The page of the documentation."""
    rows = [Row(**row) for row in results.get("kernels", {}).get("rows", [])]
    fits = [Fits(**fit) for fit in results.get("duplicates", {}).get("fits", [])]
    parts = [
        "# Many kernels",
        "Written by `python -m benchmarks.many_kernels --write`. Seconds of the processor, one "
        f"thread, from a fresh loss on ready kernels; relative duality gap {TOL:g} over all "
        f"kernels, walks stopped after {BUDGET:g} s.",
        environments(results),
    ]
    if rows:
        parts += [
            "## Many more kernels than samples",
            ratios(rows),
            markdown(HEADER, [_cells(row) for row in rows], n_left=1),
        ]
    if fits:
        parts += [
            "## Twelve kernels, three of them different, of low rank, C = 1e6",
            markdown(FITS_HEADER, [_fit_cells(fit) for fit in fits], n_left=1),
        ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("many_kernels", "Many kernels, few samples; low rank.", SETS)
    options = parser.parse_args(arguments)
    # Compiling the loops is not what is measured.
    Newton().solve(problems(5, 20)["MKSVC"](), lp_domain(1.0))
    results: dict[str, Any] = {}
    if "kernels" in options.sets:
        results["kernels"] = {"rows": [vars(row) for row in run_kernels(options.quick)]}
    if "duplicates" in options.sets:
        results["duplicates"] = {"fits": [vars(fit) for fit in run_duplicates(options.quick)]}
    print(page({name: {"environment": measured_with(), **part} for name, part in results.items()}))
    if options.write:
        write_results("many_kernels", results, page, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
