"""Compared with himalaya, a library of kernel ridge regressions of many targets.

    python -m benchmarks.ridge [--quick] [--sets diabetes] [--contenders p1,random] [--write]

Kernel weights and λ of ridge regressions on several kernels, chosen by the same five folds from
the same λ, on six sets:

- concrete and diabetes: one target, Gaussian kernels of every column and of all columns;
- views: made-up, with eight views, half of them noise, and 24 targets that need one view each;
- targets100, targets1000 and targets10000: made-up, three linear views of 30 columns, whose shares
  in a target are random, and that many targets.

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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, train_test_split

from benchmarks import _data
from benchmarks._command import add_names, command_line, load, report
from benchmarks._tables import environments, markdown, verdict
from manykernels import KernelStack, KernelUnion
from manykernels.kernels import RBF, Linear
from manykernels.kernels.transforms import preparation

VARIABLE = "MANYKERNELS_HIMALAYA"
RUNNER = Path(__file__).with_name("_ridge_runner.py")
CONTENDERS = {
    "random": "himalaya, random search",
    "random50": "himalaya, random search, 50 draws",
    "one": "scikit-learn, sum of kernels",
    "p1": "MKRidgeCV, p = 1",
    "norms": "MKRidgeCV, four p",
    "closed": "MKRidgeCV, four p, closed form",
    "separate": "MKRidgeCV, p = 1, separate",
    "candidates": "MKRidgeCV, separate, candidates",
    "gradient": "himalaya, gradient",
}
THEIRS = ("random", "random50", "gradient")
# The one that is made for many targets, and himalaya's default; with fewer draws, to save time.
REFERENCES = ("random", "random50")
OF_SEVERAL = ("separate", "candidates")
# With thousands of targets the others take hours.
OF_MANY = ("random50", "one", "p1", "candidates")
REGS, REGS_OF_MANY = np.logspace(-4, 3, 10), np.logspace(-4, 3, 15)
N_FOLDS, N_HALVES = 5, 3
ROWS_QUICK = 150
# With so many targets one half of the rows is enough.
ONE_HALF = 10_000
# Most targets for which exact weights are learnt, a minute and more for 100.
MOST_EXACT = 100
# With so many targets one half of the rows is enough.
ONE_HALF = 10_000
# Most targets for which exact weights are learnt, a minute and more for 100.
MOST_EXACT = 100

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


# -- sets ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    """A table, its targets (n, q), and kernels by name."""

    X: np.ndarray
    y: np.ndarray
    kernels: list[tuple[str, object]]
    regs: np.ndarray = field(default_factory=lambda: REGS)


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


def many_targets(n_targets: int) -> Set:
    """Targets that are linear in three views with random shares, and noise."""
    rng = np.random.default_rng(0)
    n_rows, n_views, width = 600, 3, 30
    X = rng.normal(size=(n_rows, n_views * width))
    shares = rng.dirichlet(np.full(n_views, 0.5), size=n_targets)
    coefficients = rng.normal(size=(n_views * width, n_targets)) / np.sqrt(width)
    y = 0.8 * X @ (coefficients * np.sqrt(np.repeat(shares, width, axis=1).T))
    y += rng.normal(size=y.shape)
    parts = [slice(width * j, width * j + width) for j in range(n_views)]
    kernels: list[tuple[str, object]] = [(f"{j}", Linear().on(p)) for j, p in enumerate(parts)]
    return Set(X, y, kernels, REGS_OF_MANY)


SETS: dict[str, Callable[[], Set]] = {
    "concrete": concrete,
    "diabetes": diabetes,
    "views": views,
    **{f"targets{n}": partial(many_targets, n) for n in (100, 1000, 10_000)},
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
        regs=data.regs,
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


# -- the page ------------------------------------------------------------------------------


def ratios(part: dict[str, Any]) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Mean seconds of every contender, and R² of every half, the mean over targets."""
    contenders = part["contenders"]
    seconds = {name: float(np.mean(one["seconds"])) for name, one in contenders.items()}
    return seconds, {name: np.array(one["r2"]) for name, one in contenders.items()}


def table(part: dict[str, Any]) -> str:
    """Return a row per contender: times and R², also compared with the reference."""
    seconds, scores = ratios(part)
    reference = next((name for name in REFERENCES if name in seconds), None)
    rows = []
    for name in seconds:
        ratio = difference = ""
        if reference is not None:
            ratio = f"{seconds[name] / seconds[reference]:.2g}"
            difference = f"{(scores[name] - scores[reference]).mean():+.4f}"
        cells = [CONTENDERS[name], f"{seconds[name]:.2f}", ratio]
        rows.append([*cells, f"{scores[name].mean():.4f}", difference])
    return markdown(["", "fit, s", "times himalaya's", "R²", "less himalaya's"], rows)


def goal(part: dict[str, Any]) -> str:
    """Return whether candidates are faster than 50 draws of himalaya, and R² not lower."""
    seconds, scores = ratios(part)
    if not {"candidates", "random50"} <= seconds.keys():
        return ""
    ratio = seconds["candidates"] / seconds["random50"]
    difference = float((scores["candidates"] - scores["random50"]).mean())
    return (
        f"Faster than 50 draws of himalaya, R² not lower: {ratio:.2g} of its time, "
        f"{difference:+.4f}, {verdict(ratio < 1.0 and difference >= 0.0)}."
    )


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of the documentation, made of the results by set."""
    parts = [
        "# Compared with himalaya",
        "Written by `python -m benchmarks.ridge --write`. Each contender in a process of its own, "
        "one thread; time is that of the processor for one fit, grid and folds included, on ready "
        f"kernels of unit variance. All choose from the same λ by the same {N_FOLDS} folds (those "
        "in closed form by fifty folds of their own). R² is the mean over targets on rows that "
        f"were not used, of {N_HALVES} random halves of each set (of one, if it has {ONE_HALF} "
        "targets).",
        "The contenders do not solve the same problem. himalaya's random search tries 100 (or 50) "
        "random weight vectors of sum one, and takes for each target the vector and λ of the "
        "least error in the folds; its gradient descends from the plain sum along the error in "
        "the folds, 100 steps. MKRidgeCV minimises the objective of ridge regression over weights "
        "of norm p, and uses folds for p and λ alone. By default targets share their weights, p "
        "and λ; where each has its own, as with himalaya, it says separate. With candidates, each "
        "target takes one of some hundred weight vectors by held-out errors, in closed form.",
        environments(results),
    ]
    versions = {
        f"{package} {number}"
        for part in results.values()
        for name, one in part["contenders"].items()
        if name in THEIRS
        for package, number in one["versions"].items()
    }
    parts.append(f"himalaya: {', '.join(sorted(versions))}." if versions else instructions())
    for name, part in results.items():
        of = "one target" if part["n_targets"] == 1 else f"{part['n_targets']} targets"
        parts += [
            f"## {name.capitalize()}",
            f"{part['n_train']} training and {part['n_test']} test rows, {part['n_kernels']} "
            f"kernels, {of}.",
            table(part),
        ]
        if sentence := goal(part):
            parts.append(sentence)
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def measured_set(name: str, data: Set, chosen: list[str], quick: bool) -> dict[str, Any]:
    """Measure all contenders on all halves of a set."""
    n_targets = data.y.shape[1]
    chosen = [one for one in chosen if n_targets > 1 or one not in OF_SEVERAL]
    if name.startswith("targets"):
        exact = ("separate",) if n_targets <= MOST_EXACT else ()
        chosen = [one for one in chosen if one in (*OF_MANY, *exact)]
    else:
        chosen = [one for one in chosen if one != "random50"]
    contenders: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        n_halves = 1 if quick or n_targets >= ONE_HALF else N_HALVES
        problems = [Path(folder) / f"{seed}.npz" for seed in range(n_halves)]
        for seed, problem in enumerate(problems):
            sizes = write_problem(problem, data, seed, ROWS_QUICK if quick else len(data.X))
        for one in chosen:
            measured = run(one, problems)
            if measured:
                seconds = [found.seconds for found in measured]
                scores = [float(np.mean(found.scores)) for found in measured]
                contenders[one] = {
                    "seconds": seconds,
                    "r2": scores,
                    "versions": measured[0].versions,
                }
                print(
                    f"{name}, {CONTENDERS[one]}: {np.mean(seconds):.2f} s, "
                    f"R² {np.mean(scores):.4f}",
                    flush=True,
                )
    return {
        **dict(zip(("n_train", "n_test"), sizes, strict=True)),
        "n_kernels": len(data.kernels),
        "n_targets": n_targets,
        "failed": [one for one in chosen if one not in contenders],
        "contenders": contenders,
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if a contender failed."""
    parser = command_line("ridge", "Compared with himalaya.", list(SETS))
    add_names(parser, "contenders", CONTENDERS)
    options = parser.parse_args(arguments)
    chosen = [name for name in options.contenders if python_of(name) is not None]
    if len(chosen) < len(options.contenders):
        print(f"{instructions()}\n", flush=True)
    results = {}
    for name in options.sets:
        data = load(name, SETS[name])
        if data is not None:
            results[name] = measured_set(name, data, chosen, options.quick)
    if results:
        report("ridge", results, page, options.write, SETS)
    return int(any(part["failed"] for part in results.values()))


if __name__ == "__main__":
    sys.exit(main())
