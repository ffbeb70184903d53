"""Cost and accuracy of MKFDA fits, in units of one single-kernel discriminant.

    python -m benchmarks.core [--quick] [--sets mfeat10,sonar] [--earlier SOURCES] [--write]

For every norm p of Yan et al. (2012) and four regularisations λ, an MKFDA is fitted to ready
kernels. Each cell of the tables holds three figures:

- the relative duality gap reached (asked for: 1e-6);
- the number of factorisations of an m×m matrix;
- the time of the whole fit, divided by that of Fisher's discriminant on the plain sum of the
  same kernels: one sum, one centring, one Cholesky factorisation, one solve. The two are timed
  in turn, and the best time of each counts: seconds of the processor, with one thread.

With `--earlier` some of the fits are also made by an earlier version, whose sources are there.

The peak of the memory that a fit allocates beyond the stack is given in matrices, that is
in units of m² doubles. Bounds that are missed are reported as missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, load, report
from benchmarks._problems import PROBLEMS, Problem
from benchmarks._tables import environments, markdown
from manykernels import MKFDA, KernelStack
from manykernels.discriminant import fisher_targets
from manykernels.kernels.transforms import Center
from manykernels.losses.square import SquareLoss

NORMS = [1.0, *(1 + 2.0**-k for k in range(6, 0, -1)), 2.0, 3.0, 4.0, 8.0, np.inf]
REGS = [1e-4, 1e-2, 1.0, 1e2]
QUICK_NORMS = [1.0, 1 + 2.0**-3, 2.0, np.inf]
QUICK_REGS = [1e-4, 1.0]
MEMORY_REG = 1.0

TOL = 1e-6
MOST_FACTORIZATIONS = 8
WORST_RATIO = {"binary": 8.0, "multiclass": 10.0}
AIM, AIM_SMALL, FEW_ROWS = 4.0, 8.0, 1000
# Peak memory beyond the stack: 8 matrices, and products of all kernels with all outputs.
MOST_MATRICES = 8
MOST_PRODUCTS = 4

_REPEATS = 3
_LEAST_SECONDS = 0.25  # quicker fits are repeated until they have taken this long


# -- measurements --------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One fit, measured; p as text, so that it can be infinite."""

    p: str
    reg: float
    rel_gap: float
    n_inner_solves: int
    ratio: float

    def __str__(self) -> str:
        return f"{max(self.rel_gap, 0.0):.0e} {self.n_inner_solves:2d} {self.ratio:5.1f}"


@dataclass(frozen=True)
class Result:
    """All fits of one problem."""

    name: str
    title: str
    n_samples: int
    n_kernels: int
    n_classes: int
    cells: list[Cell]
    peak_matrices: float
    single_seconds: float
    #: How often each fit was timed at least.
    repeats: int = 3
    #: Some of the cells, measured with an earlier version.
    earlier: list[Cell] = field(default_factory=list)
    #: Time of the arithmetic that no fit can do without, and of every further evaluation of the
    #: loss, over that of one discriminant.
    floor: float = 0.0
    step: float = 0.0

    @property
    def ratio(self) -> float:
        """Time of a fit over that of one discriminant, the median."""
        return float(np.median([cell.ratio for cell in self.cells]))


def single_kernel_fda(stack: KernelStack, targets: np.ndarray, reg: float) -> np.ndarray:
    """``(I + P K P/λ)⁻¹ H`` for the plain sum K of the kernels, in one matrix of memory."""
    A = stack.combine(np.full(stack.n_kernels, 1.0 / reg))
    means = A.mean(axis=0)
    offset = means - means.mean() / 2
    A -= offset
    A -= offset[:, None]
    A.flat[:: len(A) + 1] += 1.0
    # A is symmetric and C-ordered, so its transpose is A in LAPACK's order: no copy.
    factor = cho_factor(A.T, overwrite_a=True, check_finite=False)
    return cho_solve(factor, targets, check_finite=False)


def least_work(stack: KernelStack, targets: np.ndarray, reg: float) -> None:
    """Centre, evaluate the loss once, and invert for the outputs of left-out samples."""
    loss = SquareLoss(Center().fit_transform(stack), targets, reg)
    evaluation = loss.evaluate(np.ones(stack.n_kernels))
    if loss.spec.n_outputs > 1:
        evaluation.inverse()
    else:
        evaluation.inverse_diagonal()


def floors(stack: KernelStack, targets: np.ndarray, reg: float) -> tuple[float, float]:
    """Time of that work and of every further evaluation, over that of one discriminant."""
    loss = SquareLoss(Center().fit_transform(stack), targets, reg)
    single, least, step = best_times(
        lambda: single_kernel_fda(stack, targets, reg),
        lambda: least_work(stack, targets, reg),
        lambda: loss.evaluate(np.ones(stack.n_kernels)).hessian(),
    )
    return least / single, step / single


def best_times(*functions: Callable[[], object]) -> list[float]:
    """Seconds that each function takes at best, called in turn."""
    times: list[list[float]] = [[] for _ in functions]
    while len(times[-1]) < _REPEATS or sum(times[-1]) < _LEAST_SECONDS:
        for function, taken in zip(functions, times, strict=True):
            start = time.process_time()
            function()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in times]


def peak_doubles(function: Callable[[], object]) -> float:
    """Most doubles that NumPy and Python held at once for `function`, beyond what was there."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 8
    finally:
        tracemalloc.stop()


def run(
    problem: Problem, norms: list[float], regs: list[float], earlier: list[Cell] | None = None
) -> Result:
    """Fit and measure every p and λ."""
    stack, labels = problem.stack, problem.labels
    targets = fisher_targets(labels, np.bincount(labels).astype(float))

    def model(p: float, reg: float) -> MKFDA:
        return MKFDA("precomputed", normalize=None, p=p, reg=reg, tol=TOL)

    cells, peaks, singles = [], [], []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the tables show the gap
        for p in norms:
            for reg in regs:
                fitted = model(p, reg)
                single, whole = best_times(
                    lambda reg=reg: single_kernel_fda(stack, targets, reg),
                    lambda fitted=fitted: fitted.fit(stack, labels),
                )
                gap = fitted.certificate_.rel_gap
                cells.append(Cell(f"{p:.7g}", reg, gap, fitted.n_inner_solves_, whole / single))
                singles.append(single)
            peaks.append(peak_doubles(lambda p=p: model(p, MEMORY_REG).fit(stack, labels)))
        floor, step = floors(stack, targets, MEMORY_REG)
    m, _, n = stack.shape
    peak = max(peaks) / len(labels) ** 2
    single = float(np.median(singles))
    measured = cells, peak, single, _REPEATS, earlier or [], floor, step
    return Result(problem.name, str(problem), m, n, problem.n_classes, *measured)


def cells_of(sources: str, name: str) -> list[Cell]:
    """Some of the fits by the version whose sources are in a folder, in a process of its own."""
    code = f"from benchmarks import core; core._REPEATS = {_REPEATS}; core.print_cells({name!r})"
    environment = {**os.environ, "PYTHONPATH": sources}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    return [Cell(**cell) for cell in json.loads(answer.stdout.splitlines()[-1])]


def print_cells(name: str) -> None:
    """Print the cells of the quick form, as a line of JSON."""
    cells = run(PROBLEMS[name](), QUICK_NORMS, QUICK_REGS).cells
    print(json.dumps([vars(cell) for cell in cells]))


# -- reports -------------------------------------------------------------------------------


def table(result: Result) -> str:
    """Markdown table, a row per p and a column per λ."""
    regs = list(dict.fromkeys(cell.reg for cell in result.cells))
    rows: dict[str, list[str]] = {}
    for cell in result.cells:
        rows.setdefault(cell.p, []).append(str(cell))
    header = ["p", *(f"λ = {reg:g}" for reg in regs)]
    return markdown(header, [[p, *cells] for p, cells in rows.items()])


def verdicts(result: Result) -> str:
    """The worst figures of a problem beside their bounds, one line."""
    n_outputs = result.n_classes - 1
    gap = max(cell.rel_gap for cell in result.cells)
    factorizations = max(cell.n_inner_solves for cell in result.cells)
    slowest = max(cell.ratio for cell in result.cells)
    worst = WORST_RATIO["binary" if result.n_classes == 2 else "multiclass"]
    aim = AIM if result.n_samples >= FEW_ROWS else AIM_SMALL
    now = {(cell.p, cell.reg): cell.ratio for cell in result.cells}
    both = [(cell.ratio, now[cell.p, cell.reg]) for cell in result.earlier]
    before = ""
    if both:
        medians = np.median(both, axis=0)
        before = f" (in {len(both)} of the cells {medians[1]:.1f}, and {medians[0]:.1f} earlier)"
    least = ""
    if result.floor:
        least = f", at least {result.floor:.1f}, and {result.step:.1f} for each further evaluation"
    most_matrices = MOST_MATRICES + MOST_PRODUCTS * result.n_kernels * n_outputs / result.n_samples
    return (
        f"{result.name}: "
        f"worst gap {gap:.1e} ({_verdict(gap, TOL)}); "
        f"most factorisations {factorizations} "
        f"({_verdict(factorizations, MOST_FACTORIZATIONS)}); "
        f"ratio median {result.ratio:.1f} ({_verdict(result.ratio, aim, 'aim')}){before}, "
        f"worst {slowest:.1f} ({_verdict(slowest, worst)}){least}; "
        f"memory {result.peak_matrices:.1f} m² "
        f"({_verdict(result.peak_matrices, round(most_matrices, 1))}); "
        f"one single-kernel discriminant {1e3 * result.single_seconds:.3g} ms"
    )


def _verdict(value: float, bound: float, word: str = "bound") -> str:
    return f"{word} {bound:g}: {'held' if value <= bound else 'MISSED'}"


def _measured(results: Results) -> list[Result]:
    plain = [Result(**part["result"]) for part in results.values()]
    return [
        replace(
            result,
            cells=[Cell(**cell) for cell in result.cells],
            earlier=[Cell(**cell) for cell in result.earlier],
        )
        for result in plain
    ]


def since_then(results: Results) -> list[str]:
    """What was measured after the tables, with the version of the tables and a later one."""
    rows = [
        [
            name,
            *(
                f"{summary([cell[key] for cell in part['since'][version]]):.1f}"
                for key, summary in (("ratio", np.median), ("n_inner_solves", np.mean))
                for version in ("before", "after")
            ),
        ]
        for name, part in results.items()
        if "since" in part
    ]
    if not rows:
        return []
    head = ["", "ratio", "ratio since", "factorisations", "factorisations since"]
    return [
        "Since these tables fits start from solutions on some of the rows, extrapolated to all of "
        "them. The eight cells of `--quick`, one fit each, in a process for each version, beside "
        "other work: median ratios, and means of factorisations.",
        markdown(head, rows),
    ]


def page(results: Results) -> str:
    """The page of the documentation."""
    problems = _measured(results)
    repeats = " or ".join(map(str, sorted({problem.repeats for problem in problems})))
    older = [name for name, part in results.items() if "earlier" in part["environment"]]
    threads = f" ({', '.join(older)}: with two, and wall-clock time)" if older else ""
    compared = ""
    if any(part["result"]["earlier"] for part in results.values()):
        compared = " Earlier: another version, measured in the same run (`--earlier`)."
    parts = [
        "# Fits of MKFDA against one single-kernel discriminant",
        "Written by `python -m benchmarks.core --write`. Cells: relative gap, factorisations, "
        "time of the whole fit over that of one Fisher discriminant on the plain sum of the same "
        f"kernels, timed in turn, processor seconds with one BLAS thread{threads}, the best of "
        f"{repeats}. Memory is the peak beyond the kernels, in matrices of m² doubles, at "
        f"λ = {MEMORY_REG:g}.{compared} At least: the arithmetic of a fit that needs a single "
        "evaluation of its loss, that is centring, "
        "sum, factorisation, products of all kernels with the residuals and the inverse for "
        "left-out outputs; a further evaluation is without centring and inverse, and has a "
        "Hessian. The rest is folds that are left out, problems on some of the rows, programs of "
        "the steps, checks and, with few rows, Python.",
        environments(results),
        "## Summary",
        "\n".join(f"- {verdicts(problem)}" for problem in problems),
        *since_then(results),
    ]
    for problem in problems:
        parts += [f"## {problem.title}", table(problem)]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a set were missing."""
    parser = command_line("core", "MKFDA against one single-kernel FDA.", list(PROBLEMS))
    parser.add_argument("--earlier", metavar="SOURCES", help="sources of an earlier version")
    options = parser.parse_args(arguments)
    norms = QUICK_NORMS if options.quick else NORMS
    regs = QUICK_REGS if options.quick else REGS
    results: Results = {}
    for name in options.sets:
        problem = load(name, PROBLEMS[name])
        if problem is None:
            continue
        print(problem, flush=True)
        earlier = cells_of(options.earlier, name) if options.earlier else []
        result = run(problem, norms, regs, earlier)
        print(f"\n{table(result)}\n", flush=True)
        results[name] = {"result": result}
    if results:
        report("core", results, page, options.write, PROBLEMS)
    return int(len(results) < len(options.sets))


if __name__ == "__main__":
    sys.exit(main())
