"""Kernel weights and machines: solvers to the same true gap; see :mod:`benchmarks.svm`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any
from unittest import mock

from threadpoolctl import threadpool_limits

from benchmarks._problems import Problem
from benchmarks._svm_sets import signs_of
from benchmarks._tables import markdown, verdict
from manykernels.domains import Domain, lp_domain
from manykernels.estimators.svm import INNER_SHARE
from manykernels.losses.svm import HingeLoss
from manykernels.solvers import SILP, SIP, SOLVERS, Newton
from manykernels.solvers.base import NO_BOUND, Progress, Solution, Solver
from manykernels.solvers.newton import Cuts

NORMS = [1.0, 1 + 2.0**-6, 2.0]
PENALTIES = [0.1, 1.0, 100.0]
QUICK_PENALTIES = [1.0]
TOL = 1e-4
INNER_TOL = INNER_SHARE * TOL  # what MKSVC asks of its machines
MOST_SOLVES = 12
LEAST_RATIO = 5.0
BOUNDED = ["silp", "reduced-gradient"]
UNBOUNDED = ["silp, weights alone", "analytic", "interleaved"]

# Slow solvers may take this many times as long as Newton, within limits in seconds.
PATIENCE = 30.0
LEAST_BUDGET = 1.0
MOST_BUDGET = 20.0

_REPEATS = 3
_QUICK_FIT = 2.0
_ENDLESS = 10**6  # time decides, not iterations

Say = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One solver at one p and C."""

    C: float
    #: p as text of seven digits.
    p: str
    solver: str
    n_solves: int
    seconds: float
    rel_gap: float
    end: str = ""

    @property
    def reached(self) -> bool:
        return self.rel_gap <= TOL


@dataclass(frozen=True)
class Result:
    """All solvers on one problem."""

    name: str
    title: str
    newton: list[Row]
    others: list[Row]

    def of(self, solver: str) -> list[Row]:
        return [row for row in self.others if row.solver == solver]

    def newton_at(self, C: float) -> Row:
        """Newton's row at p = 1, timed in turn with the others."""
        return next(row for row in self.of("newton") if row.C == C)


def from_values(name: str, values: dict[str, Any]) -> Result:
    """A result made of its plain values."""
    newton, others = ([Row(**row) for row in values[key]] for key in ("newton", "others"))
    return Result(name, values["title"], newton, others)


class PlainSILP:
    """Cutting planes whose gap is that of the weights alone, as the papers' would be."""

    name = "silp, weights alone"

    def solve(self, loss: HingeLoss, domain: Domain, **options: Any) -> Solution:
        with mock.patch.object(Cuts, "bound", return_value=NO_BOUND):
            return SIP(eps=1e-12).solve(loss, domain, **options)


# -- measurements --------------------------------------------------------------------------


def contenders() -> list[Solver]:
    """The other solvers at p = 1, as far as the package has them."""
    # The papers' test of cutting planes is not one of the true gap.
    listed: dict[str, Solver] = {"silp": SILP(eps=1e-12)}
    for name in ("reduced-gradient", "analytic", "interleaved"):
        if name in SOLVERS:
            listed[name] = SOLVERS[name]()
    return [*listed.values(), PlainSILP()]


def run_newton(
    problem: Problem, penalties: Iterable[float], norms: Iterable[float], say: Say
) -> list[Row]:
    """Newton at every C and p."""
    return [
        row for C in penalties for p in norms for row in in_turn([Newton()], problem, C, p, say)
    ]


def run_others(problem: Problem, penalties: Iterable[float], say: Say) -> list[Row]:
    """All solvers at p = 1, Newton among them."""
    solvers = [Newton(), *contenders()]
    return [row for C in penalties for row in in_turn(solvers, problem, C, 1.0, say)]


def in_turn(solvers: list[Solver], problem: Problem, C: float, p: float, say: Say) -> list[Row]:
    """A row per solver with its best time; the first one says how long the others may take."""
    rows: dict[str, Row] = {}
    budget = MOST_BUDGET
    for _ in range(_REPEATS):
        for solver in solvers:
            before = rows.get(solver.name)
            if before is not None and (before.seconds > _QUICK_FIT or not before.reached):
                continue
            row = solve(solver, problem, C, p, budget)
            if before is None:
                rows[solver.name] = row
                say(
                    f"{problem.name} C = {C:g} p = {p:.7g} {row.solver}: {row.n_solves} solves, "
                    f"{row.seconds:.3g} s, gap {row.rel_gap:.1e}"
                )
                if solver is solvers[0]:
                    budget = min(max(PATIENCE * row.seconds, LEAST_BUDGET), MOST_BUDGET)
            else:
                rows[solver.name] = replace(before, seconds=min(row.seconds, before.seconds))
    return list(rows.values())


def solve(solver: Solver, problem: Problem, C: float, p: float, budget: float) -> Row:
    """Solve once, from a fresh loss, for as long as there is time."""
    loss = HingeLoss(problem.stack, signs_of(problem), C, inner_tol=INNER_TOL)
    begin = time.process_time()

    def out_of_time(progress: Progress) -> bool:
        return time.process_time() - begin > budget

    with threadpool_limits(1):
        solution = solver.solve(
            loss, lp_domain(p), tol=TOL, max_iter=_ENDLESS, observer=out_of_time
        )
    seconds = time.process_time() - begin
    gap = solution.certificate.rel_gap
    end = solution.status
    if gap > TOL and seconds > budget:
        end = f"stopped after {seconds:.2g} s"
    return Row(C, f"{p:.7g}", solver.name, solution.n_inner_solves, seconds, gap, end)


# -- reports -------------------------------------------------------------------------------


def newton_table(rows: list[Row]) -> str:
    """Newton at every C and p."""
    header = ["C", "p", "SVM solves", "seconds", "gap", f"{TOL:g}"]
    return markdown(header, [[f"{row.C:g}", row.p, *_figures(row)] for row in rows])


def others_table(result: Result) -> str:
    """All solvers at p = 1."""
    header = ["C", "solver", "SVM solves", "seconds", "gap", f"{TOL:g}", "time / Newton's"]
    rows = []
    for row in result.others:
        ratio = _ratio(row, result.newton_at(row.C))
        rows.append([f"{row.C:g}", row.solver, *_figures(row), ratio])
    return markdown(header, rows, n_left=2)


def _figures(row: Row) -> list[str]:
    return [
        str(row.n_solves),
        f"{row.seconds:.3g}",
        f"{max(row.rel_gap, 0.0):.1e}",
        "reached" if row.reached else row.end or "not reached",
    ]


def _ratio(row: Row, newton: Row) -> str:
    return f"{'' if row.reached else '≥ '}{row.seconds / newton.seconds:.3g}"


def verdicts(results: list[Result]) -> list[str]:
    """The worst figures beside their bounds."""
    lines = _newton_verdict(results)
    for name in BOUNDED + UNBOUNDED:
        lines += _ratio_verdict(results, name, bounded=name in BOUNDED)
    return lines


def _newton_verdict(results: list[Result]) -> list[str]:
    cells = [(row, result.name) for result in results for row in result.newton]
    if not cells:
        return []
    short = [(row, name) for row, name in cells if not row.reached]
    worst, name = max(cells, key=lambda cell: cell[0].n_solves)
    over = sum(row.n_solves > MOST_SOLVES or not row.reached for row, _ in cells)
    line = (
        f"Newton, SVM solves to a gap of {TOL:g}: at most {MOST_SOLVES} asked, worst "
        f"{worst.n_solves} ({name}, C = {worst.C:g}, p = {worst.p}): {verdict(not over)}"
    )
    if over:
        line += f" in {over} of {len(cells)} cells"
    for row, where in short:
        line += (
            f"; not reached: {where}, C = {row.C:g}, p = {row.p}, gap {row.rel_gap:.1e} "
            f"after {row.n_solves} solves"
        )
    return [line]


def _ratio_verdict(results: list[Result], solver: str, bounded: bool) -> list[str]:
    cells = [
        (row, result.newton_at(row.C), result.name)
        for result in results
        for row in result.of(solver)
    ]
    if not cells:
        return [f"{solver}: not in the package, not run"] if solver not in SOLVERS else []
    ratios = [row.seconds / newton.seconds for row, newton, _ in cells]
    least = min(ratios)
    row, newton, name = cells[ratios.index(least)]
    # Newton has to get there; a contender that does not would have taken longer still.
    below = sum(
        not fastest.reached or ratio < LEAST_RATIO
        for (_, fastest, _), ratio in zip(cells, ratios, strict=True)
    )
    n_short = sum(not row.reached for row, _, _ in cells)
    line = f"{solver} at p = 1, time over Newton's: "
    if bounded:
        line += f"at least {LEAST_RATIO:g} asked, "
    line += (
        f"worst {least:.2f} ({name}, C = {row.C:g}: {row.n_solves} solves, {row.seconds:.3g} s; "
        f"Newton {newton.n_solves} solves, {newton.seconds:.3g} s)"
    )
    if bounded:
        line += f": {verdict(not below)}"
        if below:
            line += f" in {below} of {len(cells)} cells"
    line += f"; median {median(ratios):.1f}"
    if n_short:
        line += f"; {n_short} of {len(cells)} did not reach the gap"
    return [line]
