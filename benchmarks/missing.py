"""Samples that lack views: completed kernels against features that are filled in.

    python -m benchmarks.missing [--quick] [--sets mfeat,bbc] [--write]

- *scattered*: each view of each sample is dropped with the same probability, in training and in
  test, but never all of a sample. Four divisions into halves.
- *a view that new samples lack*: trained with all views, predicted without one of them, every
  view in turn.

All contenders are MKFDACV with one Gaussian kernel per view and the same grid:

- "all there" has seen no gap: the bound;
- "mean", "conditional": ``MKFDACV(missing=...)``;
- "mean of features", "5 neighbours", "iterative": scikit-learn's SimpleImputer, KNNImputer and
  IterativeImputer on the tables joined side by side, learnt on the training half; then MKFDACV
  on what they filled in. Neighbours are sought once per view, not once per column, which gives
  the same. The iterative one regresses each column on ten others in two rounds, and is left out
  where the columns are thousands;
- "iMML MOFA", "iMML DFMF": the imputers of iMML, a library for incomplete multi-modal data. They
  fill in only what they were fitted on, so they are given the test half along with the training
  half, without classes, which the others are not. Left out where the columns are thousands;
- "trained without the view" knows in advance what will be lacking.

iMML gets an environment of its own; without the variable it is left out:

    python -m venv X
    X/bin/pip install imml==0.6.0
    export MANYKERNELS_IMML=X/bin/python

The digits of Multiple Features (six views, 1000 of 2000 rows) are standardised, by means and
spreads of all rows before anything is dropped, for every contender alike; the texts of BBC (four
segments, 685 rows) are counts of words, scaled to length one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import Results, command_line, load, report
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKFDACV
from manykernels.kernels import RBF

SETS = ["mfeat", "bbc"]
SHARES = [0.2, 0.4]
N_SPLITS = 4
MOST_ROWS = 1000
GRID = {"ps": [1, 2, 8], "regs": np.logspace(-3, 2, 6)}
GRID_QUICK = {"ps": [2], "regs": [0.1, 1.0]}
# Columns from which on IterativeImputer takes hours.
MOST_COLUMNS = 2000

OURS = {"mean": "mean", "conditional": "conditional"}
IMPUTERS: dict[str, Callable[[], Any]] = {
    "mean of features": SimpleImputer,
    "5 neighbours": lambda: NeighboursOfViews(),
    "iterative": lambda: IterativeImputer(n_nearest_features=10, max_iter=2, random_state=0),
}
VARIABLE = "MANYKERNELS_IMML"
RUNNER = Path(__file__).with_name("_imml_runner.py")
FOREIGN = {"iMML MOFA": "MOFAImputer", "iMML DFMF": "DFMFImputer"}
Tables = dict[str, np.ndarray]


@dataclass(frozen=True)
class Row:
    """Accuracies of one contender on the splits of one set, and seconds per split."""

    data: str
    what: str
    contender: str
    mean: float
    least: float
    most: float
    seconds: float


# -- data ----------------------------------------------------------------------------------


def tables_of(name: str) -> tuple[Tables, np.ndarray]:
    """The views as dense tables of numbers, and the classes."""
    views, y = getattr(_data, name)()
    if name == "bbc":
        tables = {view: np.asarray(table.todense(), dtype=float) for view, table in views.items()}
        norms = {view: np.linalg.norm(t, axis=1, keepdims=True) for view, t in tables.items()}
        return {view: t / np.maximum(norms[view], 1.0) for view, t in tables.items()}, y
    spread = {view: table.std(axis=0) for view, table in views.items()}
    return {
        view: (table - table.mean(axis=0)) / np.where(spread[view] > 0, spread[view], 1.0)
        for view, table in views.items()
    }, y


def halves(y: np.ndarray, split: int, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test half of at most so many rows, the classes in equal parts."""
    size = min(len(y), most_rows)
    cut = StratifiedShuffleSplit(
        1, train_size=size // 2, test_size=size - size // 2, random_state=split
    )
    train, test = next(cut.split(y[:, None], y))
    return train, test


def with_gaps(tables: Tables, share: float, seed: int) -> Tables:
    """Each view of each sample dropped with probability `share`, but never all of a sample."""
    rng = np.random.default_rng(seed)
    n_rows = len(next(iter(tables.values())))
    present = rng.random((n_rows, len(tables))) >= share
    empty = ~present.any(axis=1)
    present[empty, rng.integers(len(tables), size=int(empty.sum()))] = True
    return {
        view: np.where(present[:, [j]], table, np.nan)
        for j, (view, table) in enumerate(tables.items())
    }


def rows_of(tables: Tables, rows: np.ndarray) -> Tables:
    return {view: table[rows] for view, table in tables.items()}


def without(tables: Tables, view: str) -> Tables:
    return {name: table for name, table in tables.items() if name != view}


def lacking(tables: Tables, view: str) -> Tables:
    return {**tables, view: np.full_like(tables[view], np.nan)}


# -- contenders ----------------------------------------------------------------------------


def model(grid: dict[str, Any], missing: str = "error") -> MKFDACV:
    return MKFDACV(RBF(gamma="median"), missing=missing, **grid)


class NeighboursOfViews:
    """KNNImputer for columns that are missing together: the mean of the nearest that have them."""

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        self.known = X
        return self.transform(X)

    def transform(self, X: np.ndarray) -> np.ndarray:
        distances = nan_euclidean_distances(X, self.known)
        absent, patterns = np.isnan(X), np.isnan(self.known)
        filled = X.copy()
        # Columns that the same rows lack, here and in training, are filled in at once.
        both = np.vstack([absent, patterns]).T
        for pattern in np.unique(both, axis=0):
            rows, donors = np.flatnonzero(pattern[: len(X)]), np.flatnonzero(~pattern[len(X) :])
            if len(rows):
                columns = np.flatnonzero((both == pattern).all(axis=1))
                order = np.argsort(distances[np.ix_(rows, donors)], axis=1, kind="stable")
                nearest = donors[order[:, : self.n_neighbors]]
                values = self.known[np.ix_(nearest.ravel(), columns)]
                means = values.reshape(*nearest.shape, -1).mean(axis=1)
                filled[np.ix_(rows, columns)] = means
        return filled


class Filled:
    """MKFDACV on tables that an imputer fills in, which sees them side by side."""

    def __init__(self, imputer: Any, grid: dict[str, Any]) -> None:
        self.imputer = imputer
        self.model = model(grid)

    def fit(self, tables: Tables, y: np.ndarray) -> Filled:
        widths = [table.shape[1] for table in tables.values()]
        self.ends = np.cumsum(widths)[:-1]
        with warnings.catch_warnings():
            # Two rounds of the iterative imputer are not meant to converge.
            warnings.simplefilter("ignore", ConvergenceWarning)
            filled = self.imputer.fit_transform(_joined(tables))
        self.model.fit(self._cut(tables, filled), y)
        return self

    def score(self, tables: Tables, y: np.ndarray) -> float:
        filled = self._cut(tables, self.imputer.transform(_joined(tables)))
        return float(self.model.score(filled, y))

    def _cut(self, tables: Tables, table: np.ndarray) -> Tables:
        return dict(zip(tables, np.split(table, self.ends, axis=1), strict=True))


def _joined(tables: Tables) -> np.ndarray:
    return np.hstack(list(tables.values()))


def contenders(tables: Tables, grid: dict[str, Any]) -> dict[str, Any]:
    """Those that take gaps, unfitted."""
    found: dict[str, Any] = {name: model(grid, missing) for name, missing in OURS.items()}
    for name, make in IMPUTERS.items():
        if name != "iterative" or not is_wide(tables):
            found[name] = Filled(make(), grid)
    return found


def filled_by_imml(imputer: str, tables: Tables) -> Tables:
    """Tables filled in by an imputer of iMML, in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "gaps.npz"), Path(folder, "filled.npz")
        np.savez(source, **tables)  # type: ignore[arg-type]
        command = [os.environ[VARIABLE], str(RUNNER), imputer, str(source), str(target)]
        subprocess.run(command, check=True, capture_output=True)
        with np.load(target) as arrays:
            return {view: arrays[view] for view in tables}


def is_wide(tables: Tables) -> bool:
    """Whether there are thousands of columns."""
    return sum(table.shape[1] for table in tables.values()) > MOST_COLUMNS


# -- measurements --------------------------------------------------------------------------


def run_scattered(name: str, tables: Tables, y: np.ndarray, options: Any) -> list[Row]:
    """Accuracies with gaps in training and test."""
    grid, n_splits, most_rows = options
    rows = []
    splits = [halves(y, split, most_rows) for split in range(n_splits)]
    whole = [_timed(model(grid), tables, y, *split) for split in splits]
    rows.append(_row(name, "nothing missing", "all there", whole))
    for share in SHARES:
        what = f"{share:.0%} missing"
        gaps = [with_gaps(tables, share, split) for split in range(n_splits)]
        for contender in contenders(tables, grid):
            results = [
                _timed(contenders(tables, grid)[contender], gaps[k], y, *splits[k])
                for k in range(n_splits)
            ]
            rows.append(_row(name, what, contender, results))
        for contender, imputer in FOREIGN.items():
            if VARIABLE in os.environ and not is_wide(tables):
                results = [
                    _timed_imml(imputer, model(grid), gaps[k], y, *splits[k])
                    for k in range(n_splits)
                ]
                rows.append(_row(name, what, contender, results))
    return rows


def run_lacking(name: str, tables: Tables, y: np.ndarray, options: Any) -> list[Row]:
    """Accuracies where new samples lack a view; each view in turn, the mean over views."""
    grid, n_splits, most_rows = options
    found: dict[str, list[tuple[float, float]]] = {}
    for split in range(n_splits):
        train, test = halves(y, split, most_rows)
        own, new = rows_of(tables, train), rows_of(tables, test)
        for contender, unfitted in contenders(tables, grid).items():
            begin = time.process_time()
            fitted = unfitted.fit(own, y[train])
            scores = [fitted.score(lacking(new, view), y[test]) for view in tables]
            seconds = time.process_time() - begin
            found.setdefault(contender, []).append((float(np.mean(scores)), seconds))
        begin = time.process_time()
        scores = [
            model(grid).fit(without(own, view), y[train]).score(without(new, view), y[test])
            for view in tables
        ]
        seconds = time.process_time() - begin
        found.setdefault("trained without the view", []).append((float(np.mean(scores)), seconds))
    what = "one view missing, in new samples only"
    return [_row(name, what, contender, results) for contender, results in found.items()]


def _timed(
    contender: Any, tables: Tables, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[float, float]:
    begin = time.process_time()
    fitted = contender.fit(rows_of(tables, train), y[train])
    accuracy = float(fitted.score(rows_of(tables, test), y[test]))
    return accuracy, time.process_time() - begin


def _timed_imml(
    imputer: str, unfitted: Any, tables: Tables, y: np.ndarray, *halves: np.ndarray
) -> tuple[float, float]:
    before = os.times()
    rows, n_train = np.concatenate(halves), len(halves[0])
    filled = filled_by_imml(imputer, rows_of(tables, rows))
    after = os.times()
    imputing = after.children_user - before.children_user
    imputing += after.children_system - before.children_system
    accuracy, seconds = _timed(
        unfitted, filled, y[rows], np.arange(n_train), np.arange(n_train, len(rows))
    )
    return accuracy, imputing + seconds


def _row(name: str, what: str, contender: str, results: list[tuple[float, float]]) -> Row:
    accuracies = [accuracy for accuracy, _ in results]
    row = Row(
        name,
        what,
        contender,
        mean=float(np.mean(accuracies)),
        least=min(accuracies),
        most=max(accuracies),
        seconds=float(np.mean([seconds for _, seconds in results])),
    )
    print(f"{name}, {what}, {contender}: {row.mean:.3f} ({row.seconds:.1f} s)", flush=True)
    return row


# -- page ----------------------------------------------------------------------------------


def bounds(rows: list[Row]) -> str:
    """Our better completion is not below the best imputer."""
    lines = []
    for data, what in dict.fromkeys((row.data, row.what) for row in rows):
        own = {row.contender: row.mean for row in rows if (row.data, row.what) == (data, what)}
        ours = {name: own[name] for name in OURS if name in own}
        others = {name: own[name] for name in (*IMPUTERS, *FOREIGN) if name in own}
        if ours and others:
            best, rival = max(ours, key=ours.__getitem__), max(others, key=others.__getitem__)
            held = verdict(ours[best] >= others[rival])
            lines.append(
                f"- {data}, {what}: {best} {ours[best]:.3f}, best imputer ({rival}) "
                f"{others[rival]:.3f}: {held}"
            )
    return "\n".join(lines)


def page(results: Results) -> str:
    """The page of the documentation."""
    rows = [Row(**row) for part in results.values() for row in part["rows"]]
    # Rows of iMML may be of another run: they are shown with those that had the same gaps.
    places = list(dict.fromkeys((row.data, row.what) for row in rows))
    rows.sort(key=lambda row: places.index((row.data, row.what)))
    table = [
        [
            row.data,
            row.what,
            row.contender,
            f"{row.mean:.3f}",
            f"{row.least:.3f}–{row.most:.3f}",
            f"{row.seconds:.1f}",
        ]
        for row in rows
    ]
    header = ["data", "what", "contender", "accuracy", "splits", "seconds per split"]
    return "\n".join(
        [
            "# Samples that lack views\n",
            "Written by `python -m benchmarks.missing --write`. MKFDACV, one Gaussian kernel per "
            "view, four divisions into halves; mean accuracy on the test halves. What the "
            "contenders are is said in `benchmarks/missing.py`. Seconds are those of the "
            "processor, with one thread.\n",
            f"{environments(results)}\n",
            "The better of our two completions must not be below the best imputer:\n",
            bounds(rows),
            "",
            markdown(header, table, n_left=3),
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("missing", "Samples that lack views.", SETS)
    options = parser.parse_args(arguments)
    size = (GRID_QUICK, 1, 200) if options.quick else (GRID, N_SPLITS, MOST_ROWS)
    results: Results = {}
    with threadpool_limits(1):
        for name in options.sets:
            loaded = load(name, lambda name=name: tables_of(name))  # type: ignore[misc]
            if loaded is not None:
                rows = [*run_scattered(name, *loaded, size), *run_lacking(name, *loaded, size)]
                # A part of its own, which stays when iMML is left out.
                for part, is_foreign in ((name, False), (f"iMML on {name}", True)):
                    some = [row for row in rows if (row.contender in FOREIGN) == is_foreign]
                    if some:
                        results[part] = {"rows": some}
    if not results:
        return 1
    report("missing", results, page, options.write, [*SETS, *(f"iMML on {name}" for name in SETS)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
