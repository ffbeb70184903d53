"""Side by side with himalaya, a library of kernel ridge regressions of many targets.

    python -m benchmarks.ridge [--quick] [--sets diabetes] [--contenders p1,random] [--write]

Kernel weights and λ of ridge regressions on several kernels, chosen by the same five folds from
the same ten λ, on three sets:

- concrete and diabetes: one target, Gaussian kernels of every column and of all columns;
- views: made-up, with eight views, half of them noise, and 24 targets that need one view each.

Every contender runs in a process of its own, with one thread, on kernels that are computed,
centred and normalised beforehand. Time is that of a fit after one on few rows to warm up; R² is
that of rows that were not used, the mean over targets and over random halves of the rows.

himalaya gets an environment of its own:

    python -m venv X
    X/bin/pip install himalaya==0.4.11 packaging
    export MANYKERNELS_HIMALAYA=X/bin/python

Without that variable only ours and scikit-learn's are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, train_test_split

from benchmarks import _data
from benchmarks._command import command_line, load, write_page
from benchmarks._tables import environment, markdown
from manykernels import KernelStack, KernelUnion
from manykernels.kernels import RBF, Linear
from manykernels.kernels.transforms import preparation

VARIABLE = "MANYKERNELS_HIMALAYA"
RUNNER = Path(__file__).with_name("_ridge_runner.py")
CONTENDERS = {
    "random": "himalaya, random search",
    "one": "scikit-learn, sum of kernels",
    "p1": "MKRidgeCV, p = 1",
    "norms": "MKRidgeCV, four p",
    "closed": "MKRidgeCV, four p, closed form",
    "separate": "MKRidgeCV, p = 1, separate",
    "gradient": "himalaya, gradient",
}
THEIRS = ("random", "gradient")
REFERENCE = "random"  # the one that is made for many targets, and himalaya's default
OF_SEVERAL = ("separate",)
REGS = np.logspace(-4, 3, 10)
N_FOLDS, N_HALVES = 5, 3
ROWS_QUICK = 150

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


# -- sets ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    """A table, its targets (n, q), and kernels by name."""

    X: np.ndarray
    y: np.ndarray
    kernels: list[tuple[str, object]]


def of_columns(X: np.ndarray, y: np.ndarray) -> Set:
    """Three Gaussian kernels of every column and of all columns, and the linear one."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    widths = (0.3, 1.0, 3.0)  # in units of a column's standard deviation
    kernels: list[tuple[str, object]] = [("linear", Linear())]
    for width in widths:
        gamma = 0.5 / width**2
        kernels.append((f"all {width:g}", RBF(gamma / X.shape[1])))
        kernels += [(f"{j} {width:g}", RBF(gamma).on([j])) for j in range(X.shape[1])]
    return Set(X, np.reshape(y, (len(y), -1)), kernels)


def concrete() -> Set:
    return of_columns(*_data.concrete())


def diabetes() -> Set:
    return of_columns(*load_diabetes(return_X_y=True))


def views() -> Set:
    """Target k is a smooth function of view k mod 4, with as much noise as signal."""
    rng = np.random.default_rng(0)
    n_rows, n_views, width, n_targets = 600, 8, 5, 24
    X = rng.normal(size=(n_rows, n_views * width))
    y = np.empty((n_rows, n_targets))
    for k in range(n_targets):
        view = X[:, width * (k % 4) : width * (k % 4) + width]
        signal = np.sin(view @ rng.normal(size=width)) + view @ rng.normal(size=width)
        y[:, k] = signal / signal.std() + rng.normal(size=n_rows)
    kernels: list[tuple[str, object]] = []
    for j in range(n_views):
        part = slice(width * j, width * j + width)
        kernels += [(f"{j} linear", Linear().on(part)), (f"{j} Gaussian", RBF(0.1).on(part))]
    return Set(X, y, kernels)


SETS: dict[str, Callable[[], Set]] = {
    "concrete": concrete,
    "diabetes": diabetes,
    "views": views,
}


# -- running -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """What a runner measured on one half of the rows of a set."""

    contender: str
    seconds: float
    scores: list[float]
    versions: dict[str, str]


def python_of(contender: str) -> str | None:
    """The Python that has the contender's library, None if it was not named."""
    return os.environ.get(VARIABLE) if contender in THEIRS else sys.executable


def instructions() -> str:
    """How to have himalaya measured too."""
    steps = (__doc__ or "").split("of its own:\n\n")[1].split("\n\nWithout")[0]
    return f"himalaya is left out: {VARIABLE} does not name a Python that has it.\n{steps}"


def write_problem(path: Path, data: Set, seed: int, n_rows: int) -> tuple[int, int]:
    """One half of the rows for training, kernels and targets centred by them."""
    rows = np.random.default_rng(seed).permutation(len(data.X))[:n_rows]
    train, test = train_test_split(rows, test_size=0.5, random_state=seed)
    union = KernelUnion(data.kernels).fit(data.X[train])
    prepare = preparation("multiplicative")
    inside = prepare.fit_transform(union(data.X[train]))
    outside = prepare.transform(union(data.X[test], data.X[train]))
    mean = data.y[train].mean(axis=0)
    fold = np.empty(len(train), int)
    splitter = KFold(N_FOLDS, shuffle=True, random_state=seed)
    for k, (_, part) in enumerate(splitter.split(train)):
        fold[part] = k
    np.savez(
        path,
        train=matrices(inside),
        test=matrices(outside),
        y_train=data.y[train] - mean,
        y_test=data.y[test] - mean,
        fold=fold,
        regs=REGS,
    )
    return len(train), len(test)


def matrices(stack: KernelStack) -> np.ndarray:
    """All kernels, (n_kernels, rows, columns)."""
    return np.array([stack.kernel(j) for j in range(stack.n_kernels)])


def run(contender: str, problems: list[Path]) -> list[Measured]:
    """Measure in a new process; nothing, and a message, if that failed."""
    python = python_of(contender)
    assert python is not None
    done = subprocess.run(
        [python, str(RUNNER), contender, *map(str, problems)],
        env={**os.environ, **_ONE_THREAD},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{CONTENDERS[contender]}: failed. {reason}", file=sys.stderr)
        return []
    # Libraries may have printed other lines before.
    return [Measured(**json.loads(line)) for line in done.stdout.splitlines()[-len(problems) :]]


# -- reports -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What all contenders measured on one set, a list of halves each."""

    name: str
    n_train: int
    n_test: int
    n_kernels: int
    n_targets: int
    results: dict[str, list[Measured]]

    def seconds(self, contender: str) -> float:
        return float(np.mean([one.seconds for one in self.results[contender]]))

    def scores(self, contender: str) -> np.ndarray:
        """R² of every half, the mean over targets."""
        return np.array([np.mean(one.scores) for one in self.results[contender]])

    def table(self) -> str:
        """A row per contender: times and R², also beside the reference."""
        header = ["", "fit, s", "times himalaya's", "R²", "less himalaya's"]
        rows = []
        for name, measured in self.results.items():
            if not measured:
                continue
            ratio = difference = ""
            if self.results.get(REFERENCE):
                ratio = f"{self.seconds(name) / self.seconds(REFERENCE):.2g}"
                apart = self.scores(name) - self.scores(REFERENCE)
                difference = f"{apart.mean():+.4f}"
            rows.append(
                [
                    CONTENDERS[name],
                    f"{self.seconds(name):.2f}",
                    ratio,
                    f"{self.scores(name).mean():.4f}",
                    difference,
                ]
            )
        return markdown(header, rows)


def page(reports: list[Report]) -> str:
    """The page for the documentation."""
    parts = [
        "# Beside himalaya",
        "Written by `python -m benchmarks.ridge --write`. Each contender in a process of its own, "
        "one thread; time is that of the processor for one fit, grid and folds included, on ready "
        f"kernels of unit variance. All choose from the same {len(REGS)} λ by the same {N_FOLDS} "
        "folds (those in closed form by fifty folds of their own). R² is the mean over targets "
        f"on rows that were not used, of {N_HALVES} random halves of each set.",
        "The contenders do not solve the same problem. himalaya's random search tries 100 random "
        "weight vectors of sum one, and takes for each target the vector and λ of the least error "
        "in the folds; its gradient descends from the plain sum along the error in the folds, "
        "100 steps. MKRidgeCV minimises the objective of ridge regression over weights of norm p, "
        "and uses folds for p and λ alone. By default targets share their weights, p and λ; "
        "where each has its own, as with himalaya, it says separate.",
        environment(),
    ]
    measured = [one for report in reports for many in report.results.values() for one in many]
    if theirs := next((one for one in measured if one.contender in THEIRS), None):
        named = ", ".join(f"{package} {number}" for package, number in theirs.versions.items())
        parts.append(f"himalaya: {named}.")
    else:
        parts.append(instructions())
    for report in reports:
        of = "one target" if report.n_targets == 1 else f"{report.n_targets} targets"
        parts += [
            f"## {report.name.capitalize()}",
            f"{report.n_train} training and {report.n_test} test rows, {report.n_kernels} "
            f"kernels, {of}.",
            report.table(),
        ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def measured_set(name: str, data: Set, chosen: list[str], quick: bool) -> Report:
    """All contenders on all halves of a set."""
    n_targets = data.y.shape[1]
    chosen = [one for one in chosen if n_targets > 1 or one not in OF_SEVERAL]
    results: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory() as folder:
        problems = [Path(folder) / f"{seed}.npz" for seed in range(1 if quick else N_HALVES)]
        for seed, problem in enumerate(problems):
            sizes = write_problem(problem, data, seed, ROWS_QUICK if quick else len(data.X))
        for one in chosen:
            results[one] = run(one, problems)
            if results[one]:
                seconds = np.mean([found.seconds for found in results[one]])
                score = np.mean([found.scores for found in results[one]])
                print(f"{name}, {CONTENDERS[one]}: {seconds:.2f} s, R² {score:.4f}", flush=True)
    return Report(name, *sizes, len(data.kernels), n_targets, results)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if a contender failed."""
    parser = command_line("ridge", "Beside himalaya.", list(SETS))
    parser.add_argument(
        "--contenders", default=",".join(CONTENDERS), help="separated by commas (default: all)"
    )
    options = parser.parse_args(arguments)
    chosen = options.contenders.split(",")
    if unknown := [name for name in chosen if name not in CONTENDERS]:
        parser.error(f"unknown: {', '.join(unknown)}")
    if any(python_of(name) is None for name in chosen):
        print(f"{instructions()}\n", flush=True)
        chosen = [name for name in chosen if python_of(name) is not None]
    reports = []
    for name in options.sets:
        data = load(name, SETS[name])
        if data is not None:
            reports.append(measured_set(name, data, chosen, options.quick))
    if reports:
        text = page(reports)
        print(f"\n{text}")
        if options.write:
            write_page("ridge", text)
    return int(any(not many for report in reports for many in report.results.values()))


if __name__ == "__main__":
    sys.exit(main())
