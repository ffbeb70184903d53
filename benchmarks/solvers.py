"""The solvers beside each other, all asked for the same true gap.

    python -m benchmarks.solvers [--quick] [--sets sonar,mfeat2] [--write]

At four norms p, every solver that takes the problem minimises the same loss to a relative
duality gap of 1e-4. A row holds

- the inner solves: factorisations of an m×m matrix, or sweeps where there is none. The coarse
  start of Newton and the start on some of the rows of the coordinate solver are not among them,
  but in the time;
- the seconds from a fresh loss on ready kernels to the solution, median of three where that
  is less than five seconds. Solvers take turns. Seconds are those of the processor, with one
  thread, so that they do not depend on what else a machine is doing;
- the relative gap reached, and that of the weights alone, without bounds that the solver knows
  from elsewhere (the mixture of all cuts, a dual solution);
- whether the gap asked for was reached. A walk that takes more than a minute is stopped.

The last lines compare cutting planes with Newton steps at p = 1, once with the bound that the
mixture of all cuts proves and once with the gap of the weights alone, as in the papers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._command import command_line, load, write_page
from benchmarks._problems import PROBLEMS, Problem
from benchmarks._tables import environment, markdown, verdict
from manykernels.discriminant import fisher_targets
from manykernels.domains import Domain, lp_domain
from manykernels.kernels.transforms import preparation
from manykernels.losses.square import SquareLoss
from manykernels.solvers import SIP, SOLVERS
from manykernels.solvers.base import NO_BOUND, Progress, Solution, Solver, certify, complaint
from manykernels.solvers.base import Problem as Task
from manykernels.solvers.newton import Cuts

NORMS = [1.0, 1 + 2.0**-6, 1 + 2.0**-3, 2.0]
QUICK_NORMS = [1.0, 2.0]
SETS = ["sonar", "mfeat2", "mfeat10"]
REG = 0.1
TOL = 1e-4
BUDGET = 60.0
QUICK_BUDGET = 10.0
LEAST_RATIO = 10.0

SLOW = ["sip", "sip, weights alone"]

_QUICK_FIT = 5.0
_REPEATS = 3
_ENDLESS = 10**6  # time decides, not iterations


@dataclass(frozen=True)
class Row:
    """One solver at one p."""

    p: float
    solver: str
    n_inner_solves: int
    seconds: float
    rel_gap: float
    gap_of_weights: float
    end: str

    @property
    def reached(self) -> bool:
        return self.rel_gap <= TOL


@dataclass(frozen=True)
class Result:
    """All solvers on one problem."""

    problem: Problem
    rows: list[Row]
    refusals: list[str]


class PlainSIP:
    """Cutting planes whose gap is that of the weights alone, as the papers' would be."""

    name = "sip, weights alone"

    def solve(self, loss: SquareLoss, domain: Domain, **options: Any) -> Solution:
        with mock.patch.object(Cuts, "bound", return_value=NO_BOUND):
            return SIP(eps=1e-12).solve(loss, domain, **options)


# -- measurements --------------------------------------------------------------------------


def run(
    problem: Problem, norms: list[float], budget: float = BUDGET, say: Callable = print
) -> Result:
    """Let every solver that takes the problem solve it at every p."""
    stack = preparation(None).fit_transform(problem.stack)
    targets = fisher_targets(problem.labels, np.bincount(problem.labels).astype(float))

    def fresh_loss() -> SquareLoss:
        return SquareLoss(stack, targets, REG)

    spec = fresh_loss().spec
    rows: list[Row] = []
    refused: dict[str, list[float]] = {}
    for p in norms:
        domain = lp_domain(p)
        able = []
        for name, solver in SOLVERS.items():
            missing = complaint(solver(), Task(spec, domain, TOL))
            if missing is None:
                able.append(solver())
            else:
                refused.setdefault(f"{name} {missing}", []).append(p)
        if p == 1.0:
            able.append(PlainSIP())
        rows += in_turn(able, fresh_loss, domain, p, budget, say)
    refusals = [f"{what} (p = {_listed(at)})" for what, at in refused.items()]
    return Result(problem, rows, refusals)


def _listed(norms: list[float]) -> str:
    return ", ".join(f"{p:.7g}" for p in norms)


def in_turn(
    solvers: list[Solver],
    fresh_loss: Callable[[], SquareLoss],
    domain: Domain,
    p: float,
    budget: float,
    say: Callable = print,
) -> list[Row]:
    """One row per solver, with the median time of those that are quick."""
    rows = {}
    taken: dict[str, list[float]] = {solver.name: [] for solver in solvers}
    for _ in range(_REPEATS):
        for solver in solvers:
            if any(seconds >= _QUICK_FIT for seconds in taken[solver.name]):
                continue
            row = solve(solver, fresh_loss(), domain, p, budget)
            taken[solver.name].append(row.seconds)
            rows.setdefault(solver.name, row)
            say(f"p = {p:.7g} {solver.name}: {row.seconds:.3g} s, gap {row.rel_gap:.1e}")
    return [replace(row, seconds=float(np.median(taken[name]))) for name, row in rows.items()]


def solve(solver: Solver, loss: SquareLoss, domain: Domain, p: float, budget: float) -> Row:
    """Solve once, for as long as there is time."""
    begin = time.process_time()

    def out_of_time(progress: Progress) -> bool:
        return time.process_time() - begin > budget

    with threadpool_limits(1):
        solution = solver.solve(loss, domain, tol=TOL, max_iter=_ENDLESS, observer=out_of_time)
    seconds = time.process_time() - begin
    gap = solution.certificate.rel_gap
    end = solution.status
    if gap > TOL and seconds > budget:
        end = f"stopped after {budget:g} s at gap {gap:.1e}"
    return Row(
        p=p,
        solver=solver.name,
        n_inner_solves=solution.n_inner_solves,
        seconds=seconds,
        rel_gap=gap,
        gap_of_weights=certify(solution.evaluation, domain, TOL).rel_gap,
        end=end,
    )


# -- reports -------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """Markdown table, a row per p and solver."""
    header = ["p", "solver", "inner solves", "seconds", "gap", "of weights alone", "1e-4"]
    return markdown(header, [_cells(row) for row in rows], n_left=2)


def _cells(row: Row) -> list[str]:
    return [
        f"{row.p:.7g}",
        row.solver,
        str(row.n_inner_solves),
        f"{row.seconds:.3g}",
        f"{max(row.rel_gap, 0.0):.1e}",
        f"{max(row.gap_of_weights, 0.0):.1e}",
        "reached" if row.reached else row.end or "not reached",
    ]


def comparison(result: Result, slow: str = "sip", quick: str = "newton") -> str:
    """What cutting planes cost at p = 1, in units of Newton's method, one line."""
    rows = {row.solver: row for row in result.rows if row.p == 1.0}
    name = result.problem.name
    if slow not in rows or quick not in rows:
        return f"{name}: p = 1 was not run with {slow} and {quick}"
    a, b = rows[slow], rows[quick]
    times, solves = a.seconds / b.seconds, a.n_inner_solves / b.n_inner_solves
    least = "" if a.reached else "at least "
    line = (
        f"{name}: {slow}/{quick} at p = 1 to a true gap of {TOL:g}: "
        f"time {least}{times:.1f} ({a.seconds:.3g} s / {b.seconds:.3g} s; "
        f"bound {LEAST_RATIO:g}: {verdict(times >= LEAST_RATIO)}), "
        f"inner solves {least}{solves:.1f} ({a.n_inner_solves} / {b.n_inner_solves}; "
        f"bound {LEAST_RATIO:g}: {verdict(solves >= LEAST_RATIO)})"
    )
    for row in (a, b):
        if not row.reached:
            line += f"; {row.solver} did not get there, its gap was {row.rel_gap:.1e}"
    return line


def section(result: Result) -> str:
    """Table, and who refused what."""
    refusals = "\n".join(f"- {refusal}" for refusal in result.refusals)
    return f"{table(result.rows)}\n\nRefused:\n\n{refusals or '- nothing'}"


def report(results: list[Result], budget: float = BUDGET) -> str:
    """The page for the documentation."""
    parts = [
        "# Solvers beside each other",
        f"Written by `python -m benchmarks.solvers --write`. λ = {REG:g}, centred kernels; every "
        f"solver is asked for a relative duality gap of {TOL:g} and stopped after {budget:g} s. "
        "Inner solves are factorisations of an m × m matrix, or sweeps of the coordinate solver; "
        "its start on at most 1500 rows and the coarse start of Newton are in the time only. "
        "Seconds: of the processor, one thread, from a fresh loss on ready kernels, solvers in "
        f"turn, median of {_REPEATS} where that is below {_QUICK_FIT:g} s. The gap of the weights "
        "alone does without bounds that a solver knows from elsewhere: the mixture of all cuts, a "
        "dual solution.",
        environment(),
        "## Cutting planes against Newton steps",
        "The mixture of all cuts proves more than the weights of the last one, see "
        "`manykernels.solvers.papers.sip`; both ways to know the gap are shown.",
        "\n".join(f"- {comparison(result, slow)}" for result in results for slow in SLOW),
    ]
    for result in results:
        parts += [f"## {result.problem}", section(result)]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a set were missing."""
    options = command_line("solvers", "All solvers to the same gap.", SETS).parse_args(arguments)
    norms = QUICK_NORMS if options.quick else NORMS
    budget = QUICK_BUDGET if options.quick else BUDGET
    results = []
    for name in options.sets:
        problem = load(name, PROBLEMS[name])
        if problem is None:
            continue
        print(problem, flush=True)
        results.append(run(problem, norms, budget, _progress))
        print(f"\n{section(results[-1])}\n", flush=True)
    for result in results:
        for slow in SLOW:
            print(comparison(result, slow))
    if options.write and results:
        write_page("solvers", report(results, budget))
    return int(len(results) < len(options.sets))


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
