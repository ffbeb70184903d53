"""Whether the intervals of view_importance cover what new samples show.

    python -m benchmarks.importance [--sets fda-accuracy,svr] [--quick] [--write]

Each problem has 150 samples in three views: one that is needed, one that is needed less, and one
of noise. ``view_importance`` gives intervals at 95 %. What they are to cover is computed from 2500
new samples: how much worse the model without the view predicts them than the model with all
views, both learnt from the 150; and how well the model of one view predicts them. What intervals
of weights are to cover is the mean weight of the models of all other problems.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, report
from benchmarks._tables import environments, markdown
from manykernels import MKFDA, MKSVC, MKSVR, view_importance
from manykernels.kernels import RBF

PROBLEMS, PROBLEMS_QUICK = 60, 3
SAMPLES, NEW_SAMPLES = 150, 2500
HALF_SAMPLES = 20
VIEWS = ("needed", "less", "noise")


@dataclass(frozen=True)
class Setting:
    """A model, a score, and whether it predicts classes."""

    title: str
    model: Any
    scoring: str
    classes: bool


SETS = {
    "fda-accuracy": Setting("MKFDA, p = 1", MKFDA(RBF(), p=1, reg=3.0), "accuracy", True),
    "fda-log-loss": Setting("MKFDA, p = 1", MKFDA(RBF(), p=1, reg=3.0), "neg_log_loss", True),
    "fda-norm-2": Setting("MKFDA, p = 2", MKFDA(RBF(), p=2, reg=3.0), "neg_log_loss", True),
    "svc": Setting("MKSVC, p = 1", MKSVC(RBF(), p=1), "accuracy", True),
    "svr": Setting("MKSVR, p = 1", MKSVR(RBF(), p=1), "r2", False),
}


def draw(n: int, rng: np.random.Generator, classes: bool) -> tuple[dict[str, Any], Any]:
    """Samples in three views, and their classes or values."""
    tables = {name: rng.standard_normal((n, 2)) for name in VIEWS}
    signal = 1.2 * tables["needed"][:, 0] + 0.8 * tables["less"][:, 0] + rng.standard_normal(n)
    return tables, (signal > 0).astype(int) if classes else signal


def scorer(setting: Setting, train: Any, new: Any) -> Callable[[tuple[str, ...]], float]:
    """The score on new samples of the model of some views."""

    def score(views: tuple[str, ...]) -> float:
        model = setting.model.fit({name: train[0][name] for name in views}, train[1])
        test = {name: new[0][name] for name in views}
        if setting.scoring != "neg_log_loss":
            return float(model.score(test, new[1]))
        return float(model.predict_log_proba(test)[np.arange(len(new[1])), new[1]].mean())

    return score


def measure(setting: Setting, n_problems: int) -> dict[str, Any]:
    """Shares of the problems, by view: intervals that cover the truth, and those that cover 0."""
    falls, alone, zero = np.zeros((3, len(VIEWS)))
    weights, intervals = [], []
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        train, new = (draw(n, rng, setting.classes) for n in (SAMPLES, NEW_SAMPLES))
        found = view_importance(
            setting.model, *train, scoring=setting.scoring, n_resamples=HALF_SAMPLES
        )
        score = scorer(setting, train, new)
        whole = score(VIEWS)
        fall = [whole - score(tuple(other for other in VIEWS if other != v)) for v in VIEWS]
        own = [score((view,)) for view in VIEWS]
        low, high = found.fall_interval.T
        falls += (low <= fall) & (fall <= high)
        zero += (low <= 0) & (high >= 0)
        low, high = found.alone_interval.T
        alone += (low <= own) & (own <= high)
        weights.append(found.weight)
        intervals.append(found.weight_interval)
    every = np.array(weights)
    others = (every.sum(axis=0) - every) / (n_problems - 1)
    low, high = np.moveaxis(intervals, 2, 0)
    covered = ((low <= others) & (others <= high)).mean(axis=0)
    return {
        "title": setting.title,
        "scoring": setting.scoring,
        "n_problems": n_problems,
        "falls": falls / n_problems,
        "alone": alone / n_problems,
        "zero": zero / n_problems,
        "weights": covered,
    }


def table(parts: list[dict[str, Any]]) -> str:
    header = ["model", "score", "problems", *(f"fall, {view}" for view in VIEWS)]
    for what in ("alone", "0", "weight"):
        header += [f"{what}, {view}" for view in VIEWS]
    rows = [
        [
            part["title"],
            part["scoring"],
            str(part["n_problems"]),
            *(
                f"{share:.0%}"
                for shares in ("falls", "alone", "zero", "weights")
                for share in part[shares]
            ),
        ]
        for part in parts
    ]
    return markdown(header, rows, n_left=2)


def page(results: Results) -> str:
    """The page of the documentation."""
    parts = [
        "# Intervals of importances",
        "Written by `python -m benchmarks.importance --write`.",
        environments(results),
        f"Problems of {SAMPLES} samples in three views, intervals at 95 %. "
        "How many of them cover the fall of the score without the view (fall) and the score of "
        f"the view alone (alone) as {NEW_SAMPLES} new samples show them; and how many intervals "
        "of falls cover 0: for noise nearly all should (it can do a little harm), for needed "
        f"views none. Intervals of weights, by {HALF_SAMPLES} half-samples, are to cover the mean "
        "weight of the models of the other problems.",
        table(list(results.values())),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("importance", "Intervals of importances.", list(SETS))
    options = parser.parse_args(arguments)
    results: Results = {}
    with threadpool_limits(1):
        for name in options.sets:
            part = measure(SETS[name], PROBLEMS_QUICK if options.quick else PROBLEMS)
            results[name] = part
            print(f"{table([part])}\n", flush=True)
    report("importance", results, page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
