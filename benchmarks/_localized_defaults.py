"""Localized estimators beside plain ones, with nothing set by hand.

Training and test halves of at most 400 rows (GAUSS4: 400 to train on, 20,000 new ones to test),
the same for all. Every estimator is at its defaults; so are the kernels, except for "gauss4,
linear and quadratic". A localized estimator is compared with the plain one that sets as much by
itself: with a given C, or with what cross-validation chooses. What is told is the mean difference
of accuracy (R² of regressions) in points, and its standard error over the splits.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks._command import load
from benchmarks._default_sets import SETS
from benchmarks._localized_problems import bayes_rate
from benchmarks._tables import markdown, verdict
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


@dataclass(frozen=True)
class Scores:
    """Scores of the estimators of one group, per cent, and seconds of all their fits."""

    name: str
    values: dict[str, np.ndarray]
    seconds: dict[str, float]

    def differences(self) -> Iterator[tuple[str, float, float]]:
        """Mean and standard error of the difference from the first, for each of the others."""
        (_, plain), *others = self.values.items()
        for name, values in others:
            gains = values - plain
            yield name, gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains))


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


def measure(name: str, quick: bool) -> list[Scores]:
    """Scores of all groups on one set."""
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
    return [
        Scores(
            name,
            {label: np.array(values[label]) for label in group},
            {label: seconds[label] for label in group},
        )
        for group in groups
    ]


def measured(quick: bool) -> list[Scores] | None:
    """Scores on all sets; None if the data of one are missing."""
    names = ["gauss4", "wine", "diabetes"] if quick else [*NAMES, *OTHERS]
    found: list[Scores] = []
    for name in names:
        scores = load(name, lambda name=name: measure(name, quick))  # type: ignore[misc]
        if scores is None:
            return None
        found += scores
        for one in scores:
            means = {label: round(values.mean(), 2) for label, values in one.values.items()}
            print(f"{name}: {means}", file=sys.stderr, flush=True)
    return found


def table(found: list[Scores]) -> str:
    """A row for each set and group."""
    best = bayes_rate()
    rows = []
    for one in found:
        (plain, values), *_ = one.values.items()
        cells = [f"{one.name} ({best:.2f})" if one.name in GAUSS4 else one.name, plain]
        cells += [f"{values.mean():.2f}", f"{one.seconds[plain] / len(values):.1f}"]
        for name, mean, error in one.differences():
            cells += [f"{mean:+.2f} ± {error:.2f}", f"{one.seconds[name] / len(values):.1f}"]
        rows.append(cells + [""] * (8 - len(cells)))
    header = ["data (best rule)", "plain", "score", "seconds"]
    header += ["with a gate", "seconds", "by region", "seconds"]
    return markdown(header, rows, n_left=2)


def verdicts(found: list[Scores]) -> list[str]:
    """Whether nothing was lost, and GAUSS4 is near the best rule."""
    lost, count = [], 0
    for one in found:
        for name, mean, error in one.differences():
            count += 1
            if mean < -max(MOST_ERRORS * error, LEVEL):
                lost.append(f"{name} on {one.name} ({mean:+.2f} ± {error:.2f})")
    line = f"defaults: {count - len(lost)} of {count} localized estimators are not below the "
    line += "plain ones by more than a standard error"
    lines = [f"{line}; below: {'; '.join(lost)}" if lost else line]
    for one in found:
        if one.name not in GAUSS4:
            continue
        for label, values in one.values.items():
            short = bayes_rate() - values.mean()
            held = verdict(short <= MOST_POINTS)
            lines.append(f"{one.name}: {label} {short:.2f} below the best rule ({held})")
    return lines
