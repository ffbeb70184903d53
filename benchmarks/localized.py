"""Localized estimators beside plain ones, with nothing set by hand, and the speed of a descent.

    python -m benchmarks.localized [--quick] [--sets mfeat,gauss4,speed] [--write]

Training and test halves of at most 400 rows (GAUSS4: 400 to train on, 20,000 new ones to test),
the same for all. Every estimator is at its defaults; so are the kernels, except for "gauss4,
linear and quadratic". A localized estimator is compared with the plain one that sets as much by
itself: with a given C, or with what cross-validation chooses. Differences are those of accuracy
(R² of regressions) in points: means over five splits, and standard errors.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks import _localized_speed as speed
from benchmarks._command import Results, command_line, load, report
from benchmarks._default_sets import SETS
from benchmarks._gonen2013 import bayes_rate
from benchmarks._tables import environments, markdown, verdict
from manykernels import (
    MKSVC,
    MKSVCCV,
    MKSVR,
    MKSVRCV,
    ConvexLocalizedSVC,
    ConvexLocalizedSVCCV,
    ConvexLocalizedSVR,
    ConvexLocalizedSVRCV,
    LocalizedSVC,
    LocalizedSVCCV,
    LocalizedSVR,
    LocalizedSVRCV,
    Views,
)
from manykernels.datasets import make_gauss4
from manykernels.kernels import Linear, Polynomial

ROWS, SPLITS, NEW = 400, 5, 20000
SIMPLE = [("linear", Linear()), ("quadratic", Polynomial(degree=2))]
GAUSS4 = {"gauss4": None, "gauss4, linear and quadratic": SIMPLE}
NAMES = ["mfeat", "satimage", "pendigits", "olivetti", "bbc", "concrete", *GAUSS4]
OTHERS = ["sonar", "ionosphere", "digits", "cancer", "wine", "leaves", "diabetes"]
#: A localized estimator may be below a plain one by so many standard errors, and GAUSS4 below the
#: best rule by so many points.
MOST_ERRORS, MOST_POINTS = 1.0, 0.7
#: Differences of fewer points are rounding: of machines, or of their tolerance.
LEVEL = 0.01

Group = dict[str, Any]
CLASSIFIERS: list[Group] = [
    {
        "MKSVC": MKSVC(),
        "LocalizedSVC": LocalizedSVC(),
        "ConvexLocalizedSVC": ConvexLocalizedSVC(),
    },
    {
        "MKSVCCV": MKSVCCV(),
        "LocalizedSVCCV": LocalizedSVCCV(),
        "ConvexLocalizedSVCCV": ConvexLocalizedSVCCV(),
    },
]
REGRESSORS: list[Group] = [
    {
        "MKSVR": MKSVR(),
        "LocalizedSVR": LocalizedSVR(),
        "ConvexLocalizedSVR": ConvexLocalizedSVR(),
    },
    {
        "MKSVRCV": MKSVRCV(),
        "LocalizedSVRCV": LocalizedSVRCV(),
        "ConvexLocalizedSVRCV": ConvexLocalizedSVRCV(),
    },
]


class Split(NamedTuple):
    """Training and test samples."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def splits_of(name: str, n_splits: int, n_rows: int, n_new: int) -> Iterator[Split]:
    if name in GAUSS4:
        for seed in range(n_splits):
            X, y = make_gauss4(n_rows + n_new, random_state=seed)
            yield Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
        return
    tables, y = SETS[name].loader()
    X: Any = Views(tables) if len(tables) > 1 else next(iter(tables.values()))
    for train, test in SETS[name].splits(y, n_rows, n_splits):
        yield Split(X[train], y[train], X[test], y[test])


def measured(name: str, quick: bool) -> dict[str, Any]:
    """Scores of all estimators on one set: a list for every plain one, which comes first."""
    n_splits, n_rows, n_new = (2, 80, 500) if quick else (SPLITS, ROWS, NEW)
    groups = REGRESSORS if name not in GAUSS4 and SETS[name].regression else CLASSIFIERS
    values: dict[str, list[float]] = {one: [] for group in groups for one in group}
    seconds = dict.fromkeys(values, 0.0)
    with warnings.catch_warnings(), threadpool_limits(1):
        # Constant columns of digits, grids whose best point is at their end.
        warnings.simplefilter("ignore")
        for split in splits_of(name, n_splits, n_rows, n_new):
            for group in groups:
                for label, estimator in group.items():
                    model = clone(estimator).set_params(kernels=GAUSS4.get(name))
                    start = time.process_time()
                    model.fit(split.X, split.y)
                    seconds[label] += time.process_time() - start
                    values[label].append(100.0 * model.score(split.X_test, split.y_test))
    return {"groups": [_compared(group, values, seconds) for group in groups]}


def _compared(
    group: Group, values: dict[str, list[float]], seconds: dict[str, float]
) -> list[dict[str, Any]]:
    """Score of the plain estimator, and how much the others gain."""
    plain, *others = group
    rows = [{"name": plain, "score": np.mean(values[plain])}]
    for name in others:
        gains = np.subtract(values[name], values[plain])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        rows.append({"name": name, "gain": gains.mean(), "error": error})
    for row in rows:
        row["seconds"] = seconds[row["name"]] / len(values[plain])
    return rows


# -- the page ----------------------------------------------------------------------------------


def page(results: Results) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").strip().split("\n\n")[2:]
    found = {name: part["groups"] for name, part in results.items() if "groups" in part}
    parts = [
        "# Localized estimators",
        "Written by `python -m benchmarks.localized --write`. The tables of the paper are in "
        "[gonen2013](gonen2013.md).",
        environments(results),
    ]
    if found:
        parts += [
            "## Nothing set by hand",
            *(" ".join(paragraph.splitlines()) for paragraph in paragraphs),
            "\n".join(f"- {line}" for line in verdicts(found)),
            table(found),
        ]
    if "speed" in results:
        parts += ["## Speed: one sigmoid fit on MULTIFEAT", speed.section(results["speed"])]
    return "\n\n".join(parts) + "\n"


def table(found: dict[str, Any]) -> str:
    """A row for each set and plain estimator."""
    best = bayes_rate()
    rows = []
    for name, groups in found.items():
        for plain, *others in groups:
            cells = [f"{name} ({best:.2f})" if name in GAUSS4 else name, plain["name"]]
            cells += [f"{plain['score']:.2f}", f"{plain['seconds']:.1f}"]
            for other in others:
                cells += [
                    f"{other['gain']:+.2f} ± {other['error']:.2f}",
                    f"{other['seconds']:.1f}",
                ]
            rows.append(cells + [""] * (8 - len(cells)))
    header = ["data (best rule)", "plain", "score", "seconds"]
    header += ["with a gate", "seconds", "by region", "seconds"]
    return markdown(header, rows, n_left=2)


def verdicts(found: dict[str, Any]) -> list[str]:
    """Whether nothing was lost, and GAUSS4 is near the best rule."""
    lost, count = [], 0
    for name, groups in found.items():
        for _, *others in groups:
            for other in others:
                count += 1
                if other["gain"] < -max(MOST_ERRORS * other["error"], LEVEL):
                    gain = f"{other['gain']:+.2f} ± {other['error']:.2f}"
                    lost.append(f"{other['name']} on {name} ({gain})")
    line = f"{count - len(lost)} of {count} localized estimators are not below the plain ones by "
    line += "more than a standard error"
    lines = [f"{line}; below: {'; '.join(lost)}" if lost else line]
    for name in GAUSS4:
        for plain, *others in found.get(name, []):
            for row in (plain, *others):
                short = bayes_rate() - plain["score"] - row.get("gain", 0.0)
                held = verdict(short <= MOST_POINTS)
                lines.append(f"{name}: {row['name']} {short:.2f} below the best rule ({held})")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a set were missing."""
    names = [*NAMES, *OTHERS, "speed"]
    parser = command_line("localized", "Localized estimators beside plain ones.", names)
    options = parser.parse_args(arguments)
    results, missing = {}, False
    for name in options.sets:
        measure = speed.measured if name == "speed" else partial(measured, name)
        part = load(name, partial(measure, quick=options.quick))
        missing |= part is None
        if part is not None:
            results[name] = part
            print(name, part, file=sys.stderr, flush=True)
    if results:
        report("localized", results, page, options.write, names)
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
