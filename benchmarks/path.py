"""What it costs to choose p and λ, and whether the choice is good.

    python -m benchmarks.path [--quick] [--write]

The grid of Yan et al. (2012), twelve norms and ten regularisations, on the ten digits of
Multiple Features (2000 samples, 18 kernels). First the whole grid by ``MKFDACV``, in units of one
``MKFDA`` fit (the median over all p at λ = 0.1): with five folds that learn everything again, the
default, and with ``cv="closed-form"``, which learns once and leaves fifty folds out without
refitting. Then 500 of the samples for learning: both against ``GridSearchCV`` over the same grid
with five folds, one process each, and all choices judged on all other samples. Seconds are those
of the processor, with one thread, so that they do not depend on what else a machine is doing.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, load, read_results, report
from benchmarks._problems import Problem, mfeat10
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKFDA, MKFDACV
from manykernels.discriminant import fisher_targets
from manykernels.kernels.transforms import Center
from manykernels.losses.square import SquareLoss
from manykernels.solvers.path import PAPER_NORMS

MOST_FITS, AIM = 80, 40
TOL = 1e-5
LEAST_RATIO = 5.0
N_LEARN, N_FOLDS = 500, 5
ROWS_QUICK = 300


@dataclass(frozen=True)
class Way:
    """How ``MKFDACV`` judges, and what is asked of it."""

    name: str
    cv: Any
    most_gap: float
    most_fits: float | None = None


WAYS = [Way("five folds", None, TOL, MOST_FITS), Way("closed form", "closed-form", TOL)]


@dataclass(frozen=True)
class Cost:
    """The grid in units of single fits."""

    way: str
    seconds: float
    seconds_per_fit: float
    n_points: int
    n_inner_solves: int
    worst_gap: float

    @property
    def fits(self) -> float:
        return self.seconds / self.seconds_per_fit


@dataclass(frozen=True)
class Choice:
    """What one way to choose chose, in what time, and how well that does on other rows."""

    name: str
    seconds: float
    p: str
    reg: float
    score: float
    held_out: float


def timed(fit: Any) -> tuple[Any, float]:
    start = time.process_time()
    with threadpool_limits(1):
        result = fit()
    return result, time.process_time() - start


def chosen(way: Way, ps: Any, regs: Any, stack: Any, y: Any) -> tuple[MKFDACV, float]:
    """The fitted ``MKFDACV``, and its seconds."""
    model = MKFDACV("precomputed", ps=ps, regs=regs, cv=way.cv, tol=TOL)
    return timed(lambda: model.fit(stack, y))


def measure_costs(problem: Problem, ps: Any, regs: Any) -> list[Cost]:
    """Time of the grid, judged in each way, and of single fits."""
    singles = [
        timed(lambda p=p: MKFDA("precomputed", p=p, reg=0.1).fit(problem.stack, problem.labels))[1]
        for p in ps
    ]
    costs = []
    for way in WAYS:
        model, seconds = chosen(way, ps, regs, problem.stack, problem.labels)
        results = model.cv_results_
        costs.append(
            Cost(
                way=way.name,
                seconds=seconds,
                seconds_per_fit=float(np.median(singles)),
                n_points=len(results["params"]),
                n_inner_solves=int(results["n_inner_solves"].sum()),
                worst_gap=float(results["rel_gap"].max()),
            )
        )
    return costs


def least_seconds(problem: Problem, regs: Any, n_models: int) -> float:
    """Time of one evaluation of the loss for each model of five folds, side by side for five λ."""
    rows = np.random.default_rng(0).permutation(len(problem.labels))[
        : len(problem.labels) * 4 // 5
    ]
    labels = problem.labels[np.sort(rows)]
    stack = Center().fit_transform(problem.stack[np.ix_(np.sort(rows), np.sort(rows))])
    targets = fisher_targets(labels, np.bincount(labels).astype(float))
    losses = [SquareLoss(stack, targets, reg) for reg in regs[:N_FOLDS].tolist()]
    weights = [np.ones(stack.n_kernels)] * len(losses)
    seconds = [timed(lambda: SquareLoss.evaluate_together(losses, weights))[1] for _ in range(3)]
    return n_models * min(seconds) / len(losses)


def compare_choices(problem: Problem, ps: Any, regs: Any) -> list[Choice]:
    """``MKFDACV`` in both ways and ``GridSearchCV`` over the same grid, on the same rows."""
    n_learn = min(N_LEARN, len(problem.labels) // 2)
    learn, judge = train_test_split(
        np.arange(len(problem.labels)),
        train_size=n_learn,
        stratify=problem.labels,
        random_state=0,
    )
    train, y = problem.stack[np.ix_(learn, learn)], problem.labels[learn]
    test, y_test = problem.stack[np.ix_(judge, learn)], problem.labels[judge]
    choices = []
    for way in WAYS:
        path, seconds = chosen(way, ps, regs, train, y)
        score = path.score(test, y_test)
        name = f"MKFDACV, {way.name}"
        choices.append(Choice(name, seconds, f"{path.p_:.4g}", path.reg_, path.best_score_, score))
    grid = {"p": list(ps), "reg": list(regs)}
    search, seconds = timed(
        lambda: GridSearchCV(MKFDA("precomputed", tol=TOL), grid, cv=5).fit(train, y)
    )
    best, score = search.best_params_, search.score(test, y_test)
    name = "GridSearchCV, five folds"
    return [
        *choices,
        Choice(name, seconds, f"{best['p']:.4g}", best["reg"], search.best_score_, score),
    ]


def cost_table(costs: list[Cost], earlier: list[Cost]) -> str:
    """A row per way to judge, and those of the first page."""
    named = [(cost.way, cost) for cost in costs]
    named += [(f"{cost.way}, first page", cost) for cost in earlier]
    rows = [
        [
            name,
            f"{cost.seconds:.1f}",
            str(cost.n_inner_solves),
            f"{cost.fits:.0f}",
            f"{cost.worst_gap:.1e}",
        ]
        for name, cost in named
    ]
    header = ["", "seconds", "factorisations", "in single fits", "worst relative gap"]
    return markdown(header, rows)


def cost_verdicts(costs: list[Cost]) -> str:
    """Whether bounds are held."""
    lines = []
    for cost in costs:
        way = next(way for way in WAYS if way.name == cost.way)
        bounds = [f"gap bound {way.most_gap:g}: {verdict(cost.worst_gap <= way.most_gap)}"]
        if way.most_fits is not None:
            bounds.append(f"bound {way.most_fits:g}: {verdict(cost.fits <= way.most_fits)}")
            bounds.append(f"aim {AIM}: {verdict(cost.fits <= AIM)}")
        lines.append(
            f"- {way.name}: **the grid costs {cost.fits:.0f} fits** ({'; '.join(bounds)})."
        )
    return "\n".join(lines)


def measure(problem: Problem, ps: Any, regs: Any) -> dict[str, Any]:
    """Costs and choices, as the page reads them."""
    costs = measure_costs(problem, ps, regs)
    print(cost_verdicts(costs), flush=True)
    return {
        "problem": str(problem),
        "n_rows": len(problem.labels),
        "n_learn": min(N_LEARN, len(problem.labels) // 2),
        "costs": costs,
        "least_seconds": least_seconds(problem, regs, N_FOLDS * costs[0].n_points),
        "choices": compare_choices(problem, ps, regs),
    }


def page(results: Results) -> str:
    """The page of the documentation."""
    (part,) = results.values()
    costs = [Cost(**cost) for cost in part["costs"]]
    choices = [Choice(**choice) for choice in part["choices"]]
    n_judged, least = part["n_rows"] - part["n_learn"], part.get("least_seconds")
    bound = []
    if least is not None:
        bound.append(
            "One evaluation of the loss (sum, factorisation, products) for each model of the five "
            f"folds takes {least:.1f} s, as long as {least / costs[0].seconds_per_fit:.0f} fits: "
            "no search in which every model has a certificate takes less."
        )
    *paths, search = choices
    error = np.sqrt(search.held_out * (1 - search.held_out) / n_judged)
    rows = [
        [
            choice.name,
            f"{choice.seconds:.1f}",
            choice.p,
            f"{choice.reg:.3g}",
            f"{choice.score:.4f}",
            f"{choice.held_out:.4f}",
        ]
        for choice in choices
    ]
    header = ["", "seconds", "p", "λ", "own score", "accuracy on other rows"]
    ratios = [search.seconds / path.seconds for path in paths]
    against = [
        f"- {path.name}: {ratio:.1f} times faster than the search (bound {LEAST_RATIO:g}: "
        f"{verdict(ratio >= LEAST_RATIO)}); accuracy differs by "
        f"{path.held_out - search.held_out:+.4f}."
        for path, ratio in zip(paths, ratios, strict=True)
    ]
    text = "\n\n".join(
        [
            "# The price of choosing p and λ",
            "Written by `python -m benchmarks.path --write`. Seconds: of the processor, one "
            "thread.",
            environments(results),
            f"## Cost of the grid\n\n{part['problem']}.",
            f"{costs[0].n_points} points; one fit takes {costs[0].seconds_per_fit:.2f} s, "
            "choice of the rule and calibration included. Five folds learn kernel scales, weights "
            "and discriminant again, each from four fifths of the samples; the closed form leaves "
            "fifty folds out of one fit per point. Factorisations are those of the grid.",
            cost_table(costs, [Cost(**cost) for cost in part.get("earlier", [])]),
            cost_verdicts(costs),
            *bound,
            "## Against a search",
            f"All learn from {part['n_learn']} rows, in one process, and are "
            f"judged on the other {n_judged}. The own score is that of the chosen point, on "
            "held-out samples: the best of many.",
            markdown(header, rows),
            "\n".join(against),
            f"One standard error of an accuracy is {error:.4f}.",
        ]
    )
    return text + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if its data were missing."""
    parser = command_line("path", (__doc__ or "").split("\n")[0], ["mfeat10"])
    options = parser.parse_args(arguments)
    problem = load("mfeat10", mfeat10)
    if problem is None:
        return 1
    ps, regs = np.array(PAPER_NORMS), np.logspace(-4, 3, 10)
    if options.quick:
        rows = np.sort(np.random.default_rng(0).permutation(len(problem.labels))[:ROWS_QUICK])
        problem = Problem(
            problem.name, problem.title, problem.stack[np.ix_(rows, rows)], problem.labels[rows]
        )
        ps, regs = ps[::3], regs[::3]
    first = read_results("path").get("mfeat10", {})
    measured = measure(problem, ps, regs)
    measured["earlier"] = first.get("earlier", first.get("costs", []))
    report("path", {"mfeat10": measured}, page, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
