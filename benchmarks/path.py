"""What it costs to choose p and λ, and whether the choice is good.

    python -m benchmarks.path [--quick] [--write]

The grid of Yan et al. (2012), twelve norms and ten regularisations, on the ten digits of
Multiple Features (2000 samples, 18 kernels). First the whole grid with leave-one-out by
``MKFDACV``, in units of one ``MKFDA`` fit (the median over all p at λ = 0.1). Then 500 of the
samples for learning: ``MKFDACV`` against ``GridSearchCV`` over the same grid with five folds, one
process each, and both choices judged on all other samples. Seconds are those of the processor,
with one thread, so that they do not depend on what else a machine is doing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._command import command_line, load, write_page
from benchmarks._problems import Problem, mfeat10
from benchmarks._tables import environment, markdown, verdict
from manykernels import MKFDA, MKFDACV
from manykernels.estimators.fda_cv import DEFAULT_REGS
from manykernels.solvers import PAPER_NORMS

MOST_FITS, AIM = 60, 40
MOST_GAP = 1e-5
LEAST_RATIO = 5.0
N_LEARN = 500
ROWS_QUICK = 300


@dataclass(frozen=True)
class Cost:
    """The grid in units of single fits."""

    seconds: float
    seconds_per_fit: float
    n_points: int
    n_factorizations: int
    worst_gap: float

    @property
    def fits(self) -> float:
        return self.seconds / self.seconds_per_fit


@dataclass(frozen=True)
class Choice:
    """What one way to choose chose, in what time, and how well that does on other rows."""

    name: str
    seconds: float
    p: float
    reg: float
    score: float
    held_out: float


def timed(fit: Any) -> tuple[Any, float]:
    start = time.process_time()
    with threadpool_limits(1):
        result = fit()
    return result, time.process_time() - start


def measure_cost(problem: Problem, ps: Any, regs: Any) -> Cost:
    """Time of the grid with leave-one-out, and of single fits."""
    singles = [
        timed(lambda p=p: MKFDA("precomputed", p=p, reg=0.1).fit(problem.stack, problem.labels))[1]
        for p in ps
    ]
    model, seconds = timed(
        lambda: MKFDACV("precomputed", ps=ps, regs=regs).fit(problem.stack, problem.labels)
    )
    results = model.cv_results_
    return Cost(
        seconds=seconds,
        seconds_per_fit=float(np.median(singles)),
        n_points=len(results["params"]),
        n_factorizations=int(results["n_factorizations"].sum()),
        worst_gap=float(results["rel_gap"].max()),
    )


def compare_choices(problem: Problem, ps: Any, regs: Any) -> list[Choice]:
    """Leave-one-out along the path and five folds over the grid, on the same rows."""
    n_learn = min(N_LEARN, len(problem.labels) // 2)
    learn, judge = train_test_split(
        np.arange(len(problem.labels)),
        train_size=n_learn,
        stratify=problem.labels,
        random_state=0,
    )
    train, y = problem.stack[np.ix_(learn, learn)], problem.labels[learn]
    test, y_test = problem.stack[np.ix_(judge, learn)], problem.labels[judge]
    path, path_seconds = timed(lambda: MKFDACV("precomputed", ps=ps, regs=regs).fit(train, y))
    grid = {"p": list(ps), "reg": list(regs)}
    search, search_seconds = timed(
        lambda: GridSearchCV(MKFDA("precomputed", tol=MOST_GAP), grid, cv=5).fit(train, y)
    )
    best = search.best_params_
    return [
        Choice(
            "MKFDACV, leave-one-out",
            path_seconds,
            path.p_,
            path.reg_,
            path.best_score_,
            path.score(test, y_test),
        ),
        Choice(
            "GridSearchCV, five folds",
            search_seconds,
            best["p"],
            best["reg"],
            search.best_score_,
            search.score(test, y_test),
        ),
    ]


def page(problem: Problem, cost: Cost, choices: list[Choice]) -> str:
    ratio = choices[1].seconds / choices[0].seconds
    n_judged = len(problem.labels) - min(N_LEARN, len(problem.labels) // 2)
    error = np.sqrt(choices[1].held_out * (1 - choices[1].held_out) / n_judged)
    difference = choices[0].held_out - choices[1].held_out
    rows = [
        [
            choice.name,
            f"{choice.seconds:.1f}",
            f"{choice.p:.4g}",
            f"{choice.reg:.3g}",
            f"{choice.score:.4f}",
            f"{choice.held_out:.4f}",
        ]
        for choice in choices
    ]
    header = ["", "seconds", "p", "λ", "own score", "accuracy on other rows"]
    return "\n\n".join(
        [
            "# The price of choosing p and λ",
            "Written by `python -m benchmarks.path --write`. Seconds: of the processor, one "
            "thread.",
            environment(),
            f"## Cost of the grid\n\n{problem}.",
            f"{cost.n_points} points with leave-one-out: {cost.seconds:.1f} s and "
            f"{cost.n_factorizations} factorisations; one fit: {cost.seconds_per_fit:.2f} s. "
            f"**The grid costs {cost.fits:.0f} fits** (bound {MOST_FITS}: "
            f"{verdict(cost.fits <= MOST_FITS)}; aim {AIM}: {verdict(cost.fits <= AIM)}). "
            f"Worst relative gap {cost.worst_gap:.1e} (bound {MOST_GAP:g}: "
            f"{verdict(cost.worst_gap <= MOST_GAP)}).",
            "## Against a search",
            f"Both learn from {len(problem.labels) - n_judged} rows, in one process, and are "
            f"judged on the other {n_judged}.",
            markdown(header, rows),
            f"{ratio:.1f} times faster (bound {LEAST_RATIO:g}: {verdict(ratio >= LEAST_RATIO)}); "
            f"accuracy differs by {difference:+.4f}, one standard error being {error:.4f}.",
        ]
    )


def main() -> None:
    parser = command_line("path", __doc__.split("\n")[0], ["mfeat10"])
    options = parser.parse_args()
    problem = load("mfeat10", mfeat10)
    if problem is None:
        return
    ps, regs = np.array(PAPER_NORMS), np.array(DEFAULT_REGS)
    if options.quick:
        rows = np.sort(np.random.default_rng(0).permutation(len(problem.labels))[:ROWS_QUICK])
        problem = Problem(
            problem.name, problem.title, problem.stack[np.ix_(rows, rows)], problem.labels[rows]
        )
        ps, regs = ps[::3], regs[::3]
    cost = measure_cost(problem, ps, regs)
    print(
        f"{cost.fits:.0f} fits ({cost.seconds:.1f} s / {cost.seconds_per_fit:.2f} s)", flush=True
    )
    text = page(problem, cost, compare_choices(problem, ps, regs))
    print(text)
    if options.write:
        write_page("path", text + "\n")


if __name__ == "__main__":
    main()
