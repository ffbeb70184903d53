"""How many landmarks are enough: accuracy of MKFDACV with Nystrom beside exact kernels.

    python -m benchmarks.landmarks [--sets mfeat,satimage,pendigits] [--most 1600] [--write]

One Gaussian kernel for each view, p = 2, λ chosen by five folds from four values. Test rows are
those that the providers set apart, and for mfeat half of the rows, drawn once. Landmarks are drawn
by three seeds, and by every selector at two sizes. Shown are means over seeds of the accuracy on
test rows and of the relative error of the kernel matrices, and processor time.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import _data
from benchmarks._command import PAGES, Results, command_line, load, read_results, report
from benchmarks._tables import environments, markdown
from manykernels import MKFDACV, Nystrom, Views
from manykernels.kernels import RBF
from manykernels.scale import KMeansPlusPlus, LeverageScores, Uniform
from manykernels.scale.approximations import DEFAULT_LANDMARKS

SIZES = (50, 100, 200, 400, 800, 1600)
SIZES_OF_SELECTORS = (50, 200)
SELECTORS = (Uniform(), KMeansPlusPlus(), LeverageScores())
SEEDS = (0, 1, 2)
ROWS_QUICK = 400
REGS = (0.01, 0.1, 1.0, 10.0)
_N_BANDS = 4


@dataclass(frozen=True)
class Problem:
    """Views, divided into rows to learn from and to test on."""

    train: Views
    y_train: np.ndarray
    test: Views
    y_test: np.ndarray


def mfeat() -> Problem:
    views, y = _data.mfeat()
    order = np.random.default_rng(0).permutation(len(y))
    return _divided(views, y, order[:1000], order[1000:])


def satimage() -> Problem:
    """Four spectral bands, each of nine neighbouring pixels."""
    X, y = _data.satimage()
    views = {f"band{band}": X[:, band::_N_BANDS] for band in range(_N_BANDS)}
    return _divided(views, y, np.arange(4435), np.arange(4435, len(y)))


def pendigits() -> Problem:
    views, y = _data.pendigits()
    return _divided(views, y, np.arange(7494), np.arange(7494, len(y)))


PROBLEMS = {"mfeat": mfeat, "satimage": satimage, "pendigits": pendigits}


def _divided(views: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Problem:
    """Columns are standardised by the training rows."""
    tables = {}
    for name, table in views.items():
        numbers = np.asarray(table, dtype=np.float64)
        spread = numbers[train].std(axis=0)
        spread[spread == 0.0] = 1.0
        tables[name] = (numbers - numbers[train].mean(axis=0)) / spread
    every = Views(tables)
    return Problem(every[train], y[train], every[test], y[test])


def fitted(problem: Problem, approximation: Nystrom | None) -> dict[str, float]:
    """Learn and score one model."""
    start = time.process_time()
    model = MKFDACV(RBF(), ps=[2.0], regs=REGS, approximation=approximation)
    model.fit(problem.train, problem.y_train)
    seconds = time.process_time() - start
    errors = getattr(model, "approximation_errors_", np.zeros(1))
    accuracy = model.score(problem.test, problem.y_test)
    return {"accuracy": accuracy, "error": float(errors.mean()), "seconds": seconds}


def summary(fits: list[dict[str, float]]) -> dict[str, Any]:
    """Means over seeds, and half of the range of the accuracies."""
    accuracies = [100.0 * fit["accuracy"] for fit in fits]
    return {
        "n_seeds": len(fits),
        "accuracy": np.mean(accuracies),
        "half_range": np.ptp(accuracies) / 2,
        "error": np.mean([fit["error"] for fit in fits]),
        "seconds": np.mean([fit["seconds"] for fit in fits]),
    }


def measure(name: str, problem: Problem, quick: bool, most: int) -> dict[str, Any]:
    """The curve of one set, and what selectors of landmarks change."""
    if quick:
        rows = slice(ROWS_QUICK)
        parts = (problem.train, problem.y_train, problem.test, problem.y_test)
        problem = Problem(*(part[rows] for part in parts))
    most = min(most, len(problem.y_train))
    sizes = [size for size in SIZES if size <= most][: 2 if quick else None]
    curve = []
    for size in sizes:
        seeds = SEEDS[:1] if quick or size > 400 else SEEDS
        fits = [fitted(problem, Nystrom(size, random_state=seed)) for seed in seeds]
        curve.append({"landmarks": size, **summary(fits)})
        print(f"{name}: {' | '.join(_cells(curve[-1]))}", file=sys.stderr, flush=True)
    selectors = []
    for selector in SELECTORS:
        for size in SIZES_OF_SELECTORS[: 1 if quick else None]:
            fits = [
                fitted(problem, Nystrom(size, selector=selector, random_state=seed))
                for seed in (SEEDS[:1] if quick else SEEDS)
            ]
            row = {"selector": type(selector).__name__, "landmarks": size, **summary(fits)}
            selectors.append(row)
            print(f"{name}: {row['selector']} | {' | '.join(_cells(row))}", file=sys.stderr)
    return {
        "n_train": len(problem.y_train),
        "n_test": len(problem.y_test),
        "n_kernels": len(problem.train.names),
        "curve": curve,
        "exact": summary([fitted(problem, None)]),
        "selectors": selectors,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    half = f" ± {row['half_range']:.2f}" if row["n_seeds"] > 1 else ""
    return [
        str(row.get("landmarks", "exact")),
        f"{row['accuracy']:.2f}{half}",
        f"{row['error']:.3f}",
    ]


def findings(results: Results) -> str:
    """What twice the default number of landmarks changes, and the default beside exact kernels."""
    gains, times, costs = [], [], []
    for part in results.values():
        rows = {row["landmarks"]: row for row in part["curve"]}
        if (default := rows.get(DEFAULT_LANDMARKS)) is None:
            continue
        costs.append(part["exact"]["accuracy"] - default["accuracy"])
        if (twice := rows.get(2 * DEFAULT_LANDMARKS)) is not None:
            gains.append(twice["accuracy"] - default["accuracy"])
            times.append(twice["seconds"] / default["seconds"])
    lines = [f"The default is {DEFAULT_LANDMARKS} landmarks of each kernel (dotted line)."]
    if gains:
        lines.append(
            f"Twice as many change the accuracy by {min(gains):+.2f} to {max(gains):+.2f} points "
            f"and take {min(times):.1f} to {max(times):.1f} times as long."
        )
    if costs:
        lines.append(
            f"Exact kernels change it by {min(costs):+.2f} to {max(costs):+.2f} points from the "
            "default."
        )
    return " ".join(lines)


def page(results: Results) -> str:
    """The page of the documentation."""
    parts = [
        "# How many landmarks",
        "Written by `python -m benchmarks.landmarks --write`. `MKFDACV` with p = 2 and λ chosen "
        "by five folds, one Gaussian kernel for each view, approximated by `Nystrom(n)`, beside "
        "exact kernel matrices. Accuracy on test rows and the relative error of centred kernel "
        "matrices are means over three seeds of the landmarks (± is half of the range; more than "
        "400 landmarks: one seed), errors on rows that are no landmarks, seconds are of one "
        "processor and fit.",
        environments(results),
        "![Accuracy against landmarks, beside exact kernels](../images/landmarks.png)",
        findings(results),
    ]
    for name, part in results.items():
        sizes = (
            f"{part['n_train']} rows to learn from, {part['n_test']} to test, "
            f"{part['n_kernels']} kernels."
        )
        header = ["landmarks", "accuracy %", "error of kernels", "seconds"]
        fits = [*part["curve"], part["exact"]]
        curve = [[*_cells(row), f"{row['seconds']:.1f}"] for row in fits]
        chosen = [[row["selector"], *_cells(row)] for row in part["selectors"]]
        parts += [f"## {name}", sizes, markdown(header, curve)]
        parts.append(markdown(["selector", *header[:3]], chosen))
    return "\n\n".join(parts) + "\n"


def draw_page() -> None:
    """Draw the curves of the page, beside it."""
    from benchmarks._landmarks_picture import draw

    figure = draw(read_results("landmarks"), DEFAULT_LANDMARKS)
    figure.savefig(PAGES.parent / "images" / "landmarks.png", dpi=130)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("landmarks", (__doc__ or "").split("\n", 1)[0], list(PROBLEMS))
    parser.add_argument("--most", type=int, default=SIZES[-1], help="most landmarks (1600)")
    options = parser.parse_args(arguments)
    problems = ((name, load(name, PROBLEMS[name])) for name in options.sets)
    parts = (
        (name, measure(name, problem, options.quick, options.most))
        for name, problem in problems
        if problem is not None
    )
    if not report("landmarks", parts, page, options.write, PROBLEMS):
        return 1
    if options.write:
        draw_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
