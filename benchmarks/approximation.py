"""Where explicit features are as good as kernel matrices, and how much faster.

    python -m benchmarks.approximation [--sets white_wine,segment] [--sizes 500,1000] [--write]

MKFDACV and MKRidgeCV with default kernels and grids learn from the same rows twice: from kernel
matrices, and with ``approximation="nystrom"``. Shown are accuracy or R² on rows that were not
learnt from, with the standard error of the difference over splits; the processor time, and the
peak of the memory of the process during the fit (without the page cache), from which the memory
before the fit is subtracted.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, load, report
from benchmarks._default_sets import SETS as DEFAULT_SETS
from benchmarks._meter import Meter, anonymous_bytes
from benchmarks._tables import environments, markdown
from manykernels import MKFDACV, MKRidgeCV, Nystrom

NAMES = (
    *("white_wine", "concrete", "friedman1", "friedman2"),
    *("segment", "satimage", "pendigits", "usps", "digits", "mfeat"),
)
SIZES, ROWS_QUICK = (500, 1000, 2000, 4000), 100
N_TEST = 1000
N_SPLITS = 3
# From this number of rows on there is one split.
MANY = 2000
# Features that would be a default are not lower by more points, and so many times faster.
AS_GOOD, FASTER = 0.1, 10
# What is measured of every fit.
FIGURES = ("score", "seconds", "gib")


def measured(name: str, sizes: list[int], quick: bool = False) -> dict[str, Any] | None:
    """Return scores, processor times and peaks of memory of both fits, by number of rows."""
    data = DEFAULT_SETS[name]
    loaded = load(name, data.loader)
    if loaded is None:
        return None
    tables, y = loaded
    rows = []
    for n_rows in sizes:
        n_test = min(N_TEST, len(y) - n_rows)
        if n_test < n_rows // 10:
            continue
        kind = ShuffleSplit if data.regression else StratifiedShuffleSplit
        n_splits = 1 if quick or n_rows >= MANY else N_SPLITS
        splitter = kind(n_splits, train_size=n_rows, test_size=n_test, random_state=0)
        fits = []
        for train, test in splitter.split(np.zeros(len(y)), y):
            X, X_test = ({key: part[at] for key, part in tables.items()} for at in (train, test))
            fits.append(
                [
                    _fit(data.regression, approximation, X, y[train], X_test, y[test])
                    for approximation in (None, Nystrom())
                ]
            )
        rows.append({"n_rows": n_rows, "fits": fits})
        print(name, rows[-1], flush=True)
    return {"title": data.title, "regression": data.regression, "rows": rows, "without": ""}


def _fit(
    regression: bool, approximation: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray
) -> dict[str, float]:
    """Return score, processor time and memory of a fit."""
    model = (MKRidgeCV if regression else MKFDACV)(approximation=approximation)
    before = anonymous_bytes()
    with Meter() as meter, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return {
        "score": float(model.score(X_test, y_test)),
        "seconds": meter.processor,
        "gib": max(meter.peak_bytes - before, 0) / 2**30,
    }


def page(results: Results) -> str:
    """Return the page made of measured values."""
    rows, as_good, faster, both = [], 0, 0, 0
    for part in results.values():
        for row in part["rows"]:
            exact, features = (
                {
                    key: np.array([pair[k][key] for pair in row["fits"]])
                    for key in row["fits"][0][0]
                }
                for k in (0, 1)
            )
            difference = 100 * (features["score"] - exact["score"])
            error = (
                f" ± {difference.std(ddof=1) / len(difference) ** 0.5:.1f}"
                if len(difference) > 1
                else ""
            )
            seconds = [values["seconds"].mean() for values in (exact, features)]
            judged = difference.mean() >= -AS_GOOD, seconds[0] >= FASTER * seconds[1]
            as_good, faster, both = as_good + judged[0], faster + judged[1], both + all(judged)
            rows.append(
                [
                    part["title"],
                    "R²" if part["regression"] else "accuracy",
                    str(row["n_rows"]),
                    f"{100 * exact['score'].mean():.1f}",
                    f"{100 * features['score'].mean():.1f}",
                    f"{difference.mean():+.1f}{error}",
                    f"{seconds[0]:.1f}",
                    f"{seconds[1]:.1f}",
                    f"{seconds[0] / seconds[1]:.1f}",
                    f"{exact['gib'].max():.2f}",
                    f"{features['gib'].max():.2f}",
                ]
            )
    header = [
        *("data", "score", "rows", "matrices", "features", "difference"),
        *("matrices, s", "features, s", "times faster", "matrices, GiB", "features, GiB"),
    ]
    note = "".join(
        f" {part['title']} was measured without the default kernel `{part['without']}`."
        for part in results.values()
        if part["without"]
    )
    verdict = (
        f"Features are as good (at most {AS_GOOD:g} points lower) in {as_good} of {len(rows)} "
        f"rows of the table, {FASTER} times faster in {faster}, and both in {both}."
    )
    if not both:
        verdict += (
            " So kernel matrices are the default. What landmarks cost with more rows, and one "
            "kernel for each view, is on the page [how many landmarks](landmarks.md)."
        )
    return (
        "# Explicit features or kernel matrices\n\n"
        "Written by `python -m benchmarks.approximation --write`. `MKFDACV` and `MKRidgeCV` with "
        "default kernels and grids, learnt from kernel matrices and with "
        '`approximation="nystrom"`. Scores, in per cent, are those on up to '
        f"{N_TEST} other rows: means of {N_SPLITS} random divisions, of one from {MANY} rows on. "
        "Differences have their standard errors. Times are those of the processor, in one "
        f"thread.{note}\n\n"
        f"{verdict}\n\n"
        f"{markdown(header, rows, n_left=2)}\n{environments(results)}\n"
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and write."""
    assert __doc__ is not None
    parser = command_line("approximation", __doc__, list(NAMES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of rows")
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    sizes = [ROWS_QUICK] if options.quick else sizes
    parts = ((name, measured(name, sizes, options.quick)) for name in options.sets)
    with threadpool_limits(1):
        found = ((name, part) for name, part in parts if part is not None)
        report("approximation", found, page, options.write, NAMES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
