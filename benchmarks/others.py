"""Stacking of views, and xRFM, beside MKFDACV and MKRidgeCV.

    python -m benchmarks.others [--quick] [--sets mfeat,sonar] [--write]

The data sets and the first three divisions into halves of [defaults](defaults.md).

- *stacked trees* and *stacked logistic* (sets of several views): one model for each view, 300
  extra trees or a logistic regression whose C is chosen by five folds, and a logistic regression
  of their held-out probabilities (five folds).
- *xRFM* 0.4.5 (all sets but texts): all columns side by side, standardised. Of 40 models (five
  bandwidths, four regularisations, scales of columns or a whole matrix) that with the best score
  on a fifth of the training rows is taken. The package learns from the other rows only.

Differences are those to `MKFDACV` or `MKRidgeCV` with default settings, measured in the same run;
± is the standard error of the mean over the divisions. Seconds are those of the processor, with
one thread, choice of parameters included.

xRFM gets an environment of its own; without the variable it is left out:

    python -m venv X
    X/bin/pip install torch==2.13.0 xrfm==0.4.5
    export MANYKERNELS_XRFM=X/bin/python
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._command import Results, command_line, load, report
from benchmarks._contenders import (
    Contender,
    OftenEnough,
    Tables,
    joined,
    measure,
    ours,
    tuned_logistic,
)
from benchmarks._default_sets import SETS, DataSet
from benchmarks._tables import environments, markdown
from benchmarks.defaults import ROWS, ROWS_QUICK, SPLITS_QUICK, standard_error
from manykernels import MKFDACV, MKRidgeCV

SPLITS = 3
VARIABLE = "MANYKERNELS_XRFM"
RUNNER = Path(__file__).with_name("_xrfm_runner.py")
XRFM = "xRFM"


def stacked(tables: Tables, kind: str) -> Any:
    """A model for each view, and a logistic regression of their probabilities."""
    ends = np.cumsum([table.shape[1] for table in tables.values()])
    models = []
    for (name, table), end in zip(tables.items(), ends, strict=True):
        columns = list(range(end - table.shape[1], end))
        if kind == "trees":
            model = make_pipeline(OftenEnough(), ExtraTreesClassifier(300, random_state=0))
        else:
            model = tuned_logistic({name: table})
        chosen = ColumnTransformer([(name, "passthrough", columns)], sparse_threshold=1.0)
        models.append((name, make_pipeline(chosen, model)))
    last = LogisticRegression(max_iter=1000)
    return StackingClassifier(models, last, cv=5, stack_method="predict_proba")


FDA, RIDGE = ours("MKFDACV", MKFDACV), ours("MKRidgeCV", MKRidgeCV)
STACKED = [
    Contender("stacked trees", partial(stacked, kind="trees")),
    Contender("stacked logistic", partial(stacked, kind="logistic")),
]


def xrfm(
    data: DataSet, tables: Tables, y: np.ndarray, train: Any, test: Any
) -> tuple[float, float]:
    """Score and seconds of xRFM on one division."""
    X = joined(tables)
    scaler = StandardScaler().fit(X[train])
    classes, known = np.unique(y, return_inverse=True)
    mean, scale = (0.0, 1.0) if not data.regression else (y[train].mean(), y[train].std())
    target = (y[train] - mean) / scale if data.regression else known[train]
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "from.npz", Path(folder) / "to.npz"
        np.savez(
            source,
            X=scaler.transform(X[train]),
            y=target,
            new=scaler.transform(X[test]),
            classes=not data.regression,
        )
        command = [os.environ[VARIABLE], str(RUNNER), str(source), str(result)]
        subprocess.run(command, check=True)
        with np.load(result) as content:
            predicted, seconds = content["predicted"], float(content["seconds"])
    if data.regression:
        return float(r2_score(y[test], mean + scale * predicted)), seconds
    return float(accuracy_score(y[test], classes[predicted.astype(int)])), seconds


def measured(data: DataSet, tables: Tables, y: np.ndarray, n_rows: int, n_splits: int) -> Any:
    """Scores and seconds of every method on every division of a data set, as plain values."""
    splits = data.splits(y, n_rows, data.n_divisions)[:n_splits]
    contenders = [RIDGE if data.regression else FDA]
    if len(tables) > 1:
        contenders += STACKED
    scores: dict[str, list[tuple[float, float]]] = {}
    for contender in contenders:
        found = [measure(contender, tables, y, *split) for split in splits]
        scores[contender.name] = [(one.score, one.seconds) for one in found]
    if VARIABLE in os.environ and not any(sparse.issparse(table) for table in tables.values()):
        scores[XRFM] = [xrfm(data, tables, y, *split) for split in splits]
    return {
        "n_train": len(splits[0][0]),
        "n_views": len(tables),
        "regression": data.regression,
        "scores": scores,
    }


# -- the page --------------------------------------------------------------------------------


def differences(part: dict[str, Any], name: str) -> np.ndarray:
    """Return a method's scores minus ours, in points."""
    scores = part["scores"]
    reference = next(iter(scores))
    return 100.0 * (np.array(scores[name])[:, 0] - np.array(scores[reference])[:, 0])


def page(results: Results) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").strip().split("\n\n")[2:-2]
    protocol = [
        paragraph if paragraph.startswith("-") else paragraph.replace("\n", " ")
        for paragraph in paragraphs
    ]
    several = {name: part for name, part in results.items() if part["n_views"] > 1}
    names = [contender.name for contender in STACKED]
    parts = [
        "# Stacking and xRFM",
        "Written by `python -m benchmarks.others --write`.",
        *protocol,
        environments(results),
        "## Summary",
        "\n".join([*(_summary(several, name) for name in names), *_summaries_of_xrfm(results)]),
        "## Several views",
        _table(several, [FDA.name, *names, XRFM]),
        "## Other sets, classes",
        _table(
            {
                name: part
                for name, part in results.items()
                if part["n_views"] == 1 and not part["regression"]
            },
            [FDA.name, XRFM],
        ),
        "## Regression (R²)",
        _table(
            {name: part for name, part in results.items() if part["regression"]},
            [RIDGE.name, XRFM],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _summaries_of_xrfm(results: Results) -> list[str]:
    return [
        _summary(
            {name: part for name, part in results.items() if part["regression"] is flag}, XRFM
        )
        for flag in (False, True)
    ]


def _summary(some: Results, name: str) -> str:
    """Return a line: on how many sets a method is better than ours, and by how much."""
    some = {key: part for key, part in some.items() if name in part["scores"]}
    if not some:
        return f"- {name}: not measured"
    means = {key: differences(part, name).mean() for key, part in some.items()}
    reference = next(iter(next(iter(some.values()))["scores"]))
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    better = [_title(key) for key, mean in means.items() if mean > 0]
    return (
        f"- {name} minus {reference}: {np.mean(list(means.values())):+.1f} points in the mean of "
        f"{len(means)} sets, from {means[worst]:+.1f} ({_title(worst)}) to {means[best]:+.1f} "
        f"({_title(best)}); better on {len(better)} ({', '.join(better) or 'none'})"
    )


def _title(name: str) -> str:
    return SETS[name].title.split(",")[0]


def _table(some: Results, names: list[str]) -> str:
    reference, *others = names
    rows = []
    for key, part in some.items():
        scores = part["scores"]
        mean, seconds = np.mean(scores[reference], axis=0)
        row = [_title(key), str(part["n_train"]), f"{100 * mean:.1f}", f"{seconds:.2g}"]
        for name in others:
            if name not in scores:
                row += ["–", "–"]
                continue
            gaps = differences(part, name)
            row.append(f"{gaps.mean():+.1f} ± {standard_error(gaps):.1f}")
            row.append(f"{np.mean(scores[name], axis=0)[1]:.2g}")
        rows.append(row)
    header = ["", "rows", f"{reference}, %", "s"]
    for name in others:
        header += [f"{name}, difference", "s"]
    return markdown(header, rows)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("others", "Stacking of views, and xRFM, beside ours.", list(SETS))
    options = parser.parse_args(arguments)
    n_rows, n_splits = (ROWS_QUICK, SPLITS_QUICK) if options.quick else (ROWS, SPLITS)

    def parts() -> Iterator[tuple[str, Any]]:
        for name in options.sets:
            loaded = load(name, SETS[name].loader)
            if loaded is not None:
                part = measured(SETS[name], *loaded, n_rows, n_splits)
                print(name, part["scores"], file=sys.stderr)
                yield name, part

    report("others", parts(), page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
