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
from benchmarks._command import PAGES, command_line, load, write_sections
from benchmarks._tables import environment, markdown
from manykernels import MKFDACV, Nystrom, Views
from manykernels.kernels import RBF
from manykernels.scale import KMeansPlusPlus, LeverageScores, Uniform
from manykernels.scale.approximations import DEFAULT_LANDMARKS

SIZES = (50, 100, 200, 400, 800, 1600)
SIZES_OF_SELECTORS = (50, 200)
SELECTORS = (Uniform(), KMeansPlusPlus(), LeverageScores())
SEEDS = (0, 1, 2)
REGS = (0.01, 0.1, 1.0, 10.0)
_N_BANDS = 4

HEAD = """# How many landmarks

`python -m benchmarks.landmarks --write`. `MKFDACV` with p = 2 and λ chosen by five folds, one
Gaussian kernel for each view, approximated by `Nystrom(n)`, beside exact kernel matrices. Accuracy
on test rows and the relative error of centred kernel matrices are means over three seeds of the
landmarks (± is half of the range; more than 400 landmarks: one seed), errors on rows that are no
landmarks, seconds are of one processor and fit.

![Accuracy against landmarks, beside exact kernels](../images/landmarks.png)

The default is {default} landmarks of each kernel (dotted line): from there on, twice as many gain
a quarter of a point or less on these sets, for three to five times the time. What it costs beside
exact kernels is 0.1 to 0.6 points."""


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


@dataclass(frozen=True)
class Fit:
    """One model, measured."""

    accuracy: float
    error: float
    seconds: float


def fitted(problem: Problem, approximation: Nystrom | None) -> Fit:
    """Learn and score."""
    start = time.process_time()
    model = MKFDACV(RBF(), ps=[2.0], regs=REGS, approximation=approximation)
    model.fit(problem.train, problem.y_train)
    seconds = time.process_time() - start
    errors = getattr(model, "approximation_errors_", np.zeros(1))
    return Fit(model.score(problem.test, problem.y_test), float(errors.mean()), seconds)


def summary(fits: list[Fit]) -> list[str]:
    """Accuracy, error and seconds of several seeds."""
    accuracies = 100 * np.array([fit.accuracy for fit in fits])
    half = np.ptp(accuracies) / 2
    return [
        f"{accuracies.mean():.2f}" + (f" ± {half:.2f}" if len(fits) > 1 else ""),
        f"{np.mean([fit.error for fit in fits]):.3f}",
        f"{np.mean([fit.seconds for fit in fits]):.1f}",
    ]


def section(name: str, problem: Problem, quick: bool, most: int) -> str:
    """Both tables of one set."""
    most = min(most, len(problem.y_train))
    sizes = [size for size in SIZES if size <= most][: 2 if quick else None]
    rows = []
    for size in sizes:
        seeds = SEEDS[:1] if quick or size > 400 else SEEDS
        fits = [fitted(problem, Nystrom(size, random_state=seed)) for seed in seeds]
        rows.append([str(size), *summary(fits)])
        print(f"{name}: {' | '.join(rows[-1])}", flush=True)
    rows.append(["exact", *summary([fitted(problem, None)])])
    print(f"{name}: {' | '.join(rows[-1])}", flush=True)
    curve = markdown(["landmarks", "accuracy %", "error of kernels", "seconds"], rows)
    chosen = []
    for selector in SELECTORS:
        for size in SIZES_OF_SELECTORS[: 1 if quick else None]:
            fits = [
                fitted(problem, Nystrom(size, selector=selector, random_state=seed))
                for seed in (SEEDS[:1] if quick else SEEDS)
            ]
            chosen.append([type(selector).__name__, str(size), *summary(fits)[:2]])
            print(f"{name}: {' | '.join(chosen[-1])}", flush=True)
    selectors = markdown(["selector", "landmarks", "accuracy %", "error of kernels"], chosen)
    size = f"{len(problem.y_train)} rows to learn from, {len(problem.y_test)} to test, "
    return f"{size}{len(problem.train.names)} kernels. {environment()}\n\n{curve}\n\n{selectors}"


def draw_page() -> None:
    """Draw the curves of the page, beside it."""
    from benchmarks._landmarks_picture import draw

    page = (PAGES / "landmarks.md").read_text(encoding="utf-8")
    figure = draw(page, DEFAULT_LANDMARKS)
    figure.savefig(PAGES.parent / "images" / "landmarks.png", dpi=130)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("landmarks", (__doc__ or "").split("\n", 1)[0], list(PROBLEMS))
    parser.add_argument("--most", type=int, default=SIZES[-1], help="most landmarks (1600)")
    options = parser.parse_args(arguments)
    sections = {}
    for name in options.sets:
        problem = load(name, PROBLEMS[name])
        if problem is not None:
            sections[name] = section(name, problem, options.quick, options.most)
            print(f"\n## {name}\n\n{sections[name]}\n")
    if options.write and sections:
        write_sections("landmarks", HEAD.format(default=DEFAULT_LANDMARKS), sections)
        draw_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
