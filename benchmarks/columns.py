"""Whether column_importance selects the columns that matter, and what its intervals cover.

    python -m benchmarks.columns [--sets linear,smooth] [--quick] [--write]

In every problem a few columns are known to matter, and all others tell nothing about y given
these. Columns are independent, neighbours of a sequence with correlations ρ^distance, or depend on
three common factors. The false discovery proportion is the share of columns that do not matter
among those selected, 0 if none is. What intervals are to cover depends on the method:

- linear: the coefficients from which y was drawn, per standard deviation of the columns; of
  classes, those of the linear regression of the class in the population, which are known for
  normal columns (Stein's lemma);
- derivative: the mean importance in the models of all other problems;
- permutation: the fall of the score at new samples, in the mean of the models of five folds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, report
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKFDA, MKSVC, MKSVR, MKLogistic, MKRidge, column_importance
from manykernels.kernels import RBF, Laplacian, Linear

# Bounds of the mean false discovery proportion and of the coverage of all columns.
MOST_FALSE, COVERAGE = 0.1, (0.9, 0.98)
N_NEW = 1000
MANY = 50_000
#: The part of the page on very many columns.
TIMES = "times"


@dataclass(frozen=True)
class Setting:
    """Problems of one kind.

    `columns` are "independent", "sequence" or "factors" with the correlation `rho`; `shape` is the
    effect of those that matter: "linear", "curved" or "none".
    """

    kind: str
    model: Any
    n_rows: int
    n_columns: int
    columns: str
    rho: float
    shape: str
    n_true: int
    size: float
    classes: bool
    n_problems: int

    @property
    def title(self) -> str:
        """The estimator and its kernel."""
        return f"{type(self.model).__name__}, {type(self.model.kernels).__name__}"


def _setting(
    kind: str,
    model: Any,
    sizes: tuple[int, int],
    columns: str,
    rho: float,
    shape: str,
    **more: Any,
) -> Setting:
    options = {"n_true": 5, "size": 0.5, "classes": False, "n_problems": 40, **more}
    return Setting(kind, model, *sizes, columns, rho, shape, **options)


LINEAR, SMOOTH = MKRidge(Linear()), MKRidge(RBF("median"), reg=1.0)
SETS: dict[str, list[Setting]] = {
    "linear": [
        _setting("linear", LINEAR, (100, 20), "independent", 0.0, "linear"),
        _setting("linear", LINEAR, (200, 100), "sequence", 0.8, "linear", n_problems=60),
        _setting("linear", LINEAR, (500, 100), "factors", 0.5, "linear"),
        _setting("linear", LINEAR, (100, 500), "sequence", 0.8, "linear", size=1.0, n_problems=60),
        _setting("linear", LINEAR, (200, 500), "factors", 0.5, "none", n_problems=60),
        _setting("linear", LINEAR, (200, 2000), "sequence", 0.8, "linear", size=1.0),
        _setting(
            "linear", LINEAR, (500, 2000), "factors", 0.5, "linear", n_true=10, n_problems=20
        ),
        _setting("linear", MKSVR(Linear()), (200, 100), "sequence", 0.5, "linear", n_problems=20),
    ],
    "classes": [
        _setting("linear", MKFDA(Linear()), (300, 20), "sequence", 0.5, "linear", classes=True),
        _setting(
            "linear",
            MKSVC(Linear()),
            (300, 200),
            "sequence",
            0.5,
            "linear",
            classes=True,
            size=1.0,
        ),
        _setting(
            "linear",
            MKLogistic(Linear()),
            (300, 500),
            "factors",
            0.5,
            "linear",
            classes=True,
            size=1.0,
        ),
    ],
    "smooth": [
        _setting("derivative", SMOOTH, (300, 20), "independent", 0.0, "curved"),
        _setting("derivative", SMOOTH, (300, 20), "sequence", 0.7, "curved"),
        _setting("derivative", SMOOTH, (300, 100), "sequence", 0.5, "curved"),
        _setting("derivative", SMOOTH, (300, 1000), "sequence", 0.7, "linear", n_problems=20),
        _setting("derivative", SMOOTH, (200, 100), "factors", 0.5, "none"),
        _setting(
            "derivative",
            MKFDA(RBF("median")),
            (300, 20),
            "sequence",
            0.5,
            "curved",
            classes=True,
        ),
        _setting(
            "derivative",
            MKSVC(RBF("median")),
            (300, 50),
            "sequence",
            0.5,
            "curved",
            classes=True,
            n_problems=20,
        ),
    ],
    "permutation": [
        _setting(
            "permutation",
            MKRidge(Laplacian("median"), reg=0.3),
            (200, 20),
            "independent",
            0.0,
            "curved",
        ),
        _setting(
            "permutation",
            MKRidge(Laplacian("median"), reg=0.3),
            (200, 20),
            "sequence",
            0.7,
            "curved",
        ),
    ],
}


@dataclass(frozen=True)
class Problem:
    """Samples, the columns that matter, and the coefficients of a linear problem."""

    X: np.ndarray
    y: np.ndarray
    matters: np.ndarray
    coefficients: np.ndarray


def draw(setting: Setting, rng: np.random.Generator, n_rows: int | None = None) -> Problem:
    """Return a problem; the columns that matter are the same in all problems of a setting."""
    n, q, rho = n_rows or setting.n_rows, setting.n_columns, setting.rho
    X = rng.standard_normal((n, q))
    if setting.columns == "sequence":
        for j in range(1, q):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    fixed = np.random.default_rng(0)
    loadings = fixed.standard_normal((3, q)) * np.sqrt(rho / 3.0)
    if setting.columns == "factors":
        X = rng.standard_normal((n, 3)) @ loadings + np.sqrt(1.0 - rho) * X
    matters, coefficients = np.zeros(q, bool), np.zeros(q)
    if setting.shape != "none":
        matters[fixed.choice(q, setting.n_true, replace=False)] = True
        coefficients[matters] = setting.size * fixed.choice([-1.0, 1.0], setting.n_true)
    signal = X @ coefficients
    if setting.shape == "curved":
        a, b, c, d, e = X[:, matters].T
        signal = 1.4 * np.sin(2.0 * a) + 0.7 * b**2 + c + 1.5 * np.abs(d) + np.tanh(2.0 * e)
        signal = signal - 0.7 - 1.5 * np.sqrt(2.0 / np.pi)
    if setting.classes:
        y: np.ndarray = rng.random(n) < expit(
            1.5 * signal if setting.shape == "curved" else signal
        )
    else:
        y = signal + rng.standard_normal(n)
    if setting.classes and setting.shape == "linear":
        # Stein's lemma: the coefficients of the regression of the class on normal columns are
        # those of the logits times the mean derivative of the logistic function.
        size = _signal_deviation(setting, loadings, coefficients)
        grid = np.linspace(-8.0, 8.0, 2001)
        density = np.exp(-0.5 * grid**2)
        slope = expit(size * grid) * expit(-size * grid)
        coefficients = coefficients * float(density @ slope / density.sum())
    return Problem(X, y, matters, coefficients)


def _signal_deviation(setting: Setting, loadings: np.ndarray, coefficients: np.ndarray) -> float:
    places = np.arange(setting.n_columns)
    covariance = np.eye(setting.n_columns)
    if setting.columns == "sequence":
        covariance = setting.rho ** np.abs(places[:, None] - places)
    elif setting.columns == "factors":
        covariance = loadings.T @ loadings + (1.0 - setting.rho) * covariance
    return float(np.sqrt(coefficients @ covariance @ coefficients))


def measure(setting: Setting, n_problems: int) -> dict[str, Any]:
    """Run column_importance on random problems: the setting, and means over the problems.

    Power and the coverage of columns that matter are None if there are none.
    """
    false, power, seconds, problems, results = [], [], [], [], []
    n_resamples = 20 if setting.kind == "derivative" else 0
    for seed in range(n_problems):
        problem = draw(setting, np.random.default_rng(1000 + seed))
        start = time.process_time()
        result = column_importance(setting.model, problem.X, problem.y, n_resamples=n_resamples)
        seconds.append(time.process_time() - start)
        assert result.method == setting.kind
        order = np.argsort(result.names)
        selected = result.selected[order]
        false.append((selected & ~problem.matters).sum() / max(selected.sum(), 1))
        power.append((selected & problem.matters).sum() / max(problem.matters.sum(), 1))
        problems.append(problem)
        results.append((result.importance[order], result.interval[order]))
    truths = TRUTHS[setting.kind](setting, problems, results)
    low, high = np.moveaxis([interval for _, interval in results], 2, 0)
    covered = (low <= truths) & (truths <= high)
    known = np.array([problem.matters for problem in problems])
    return {
        "model": setting.title,
        "method": setting.kind,
        "columns": setting.columns,
        "rho": setting.rho,
        "effects": setting.shape,
        "classes": setting.classes,
        "n_rows": setting.n_rows,
        "n_columns": setting.n_columns,
        "n_problems": n_problems,
        "false": np.mean(false),
        "error": np.std(false) / np.sqrt(n_problems),
        "power": np.mean(power) if known.any() else None,
        "coverage": covered.mean(),
        "coverage_true": covered[known].mean() if known.any() else None,
        "seconds": np.mean(seconds),
    }


def _true_effects(setting: Setting, problems: list[Problem], results: list[Any]) -> np.ndarray:
    return np.array([problem.coefficients * problem.X.std(axis=0) for problem in problems])


def _mean_importance(setting: Setting, problems: list[Problem], results: list[Any]) -> np.ndarray:
    every = np.array([importance for importance, _ in results])
    others: np.ndarray = (every.sum(axis=0) - every) / (len(every) - 1)
    return others


def _falls_at_new(setting: Setting, problems: list[Problem], results: list[Any]) -> np.ndarray:
    falls = np.full((len(problems), setting.n_columns), np.nan)
    for k, problem in enumerate(problems):
        rng = np.random.default_rng(k)
        new = draw(setting, rng, N_NEW)
        parts = KFold(5, shuffle=True, random_state=k).split(problem.X)
        models = [clone(setting.model).fit(problem.X[part], problem.y[part]) for part, _ in parts]
        variance = problem.y.var()
        before = np.mean([(new.y - model.predict(new.X)) ** 2 for model in models])
        for j in range(setting.n_columns):
            X = new.X.copy()
            X[:, j] = _exchanged(setting, X, j, rng)
            after = np.mean([(new.y - model.predict(X)) ** 2 for model in models])
            falls[k, j] = (after - before) / variance
    return falls


def _exchanged(setting: Setting, X: np.ndarray, j: int, rng: np.random.Generator) -> np.ndarray:
    """Return values of a column drawn anew, given its neighbours."""
    if setting.columns == "independent":
        return rng.permutation(X[:, j])
    others = np.delete(X, j, axis=1)
    predicted = others @ np.linalg.lstsq(others, X[:, j], rcond=None)[0]
    drawn: np.ndarray = predicted + rng.permutation(X[:, j] - predicted)
    return drawn


TRUTHS: dict[str, Callable[..., np.ndarray]] = {
    "linear": _true_effects,
    "derivative": _mean_importance,
    "permutation": _falls_at_new,
}


def measure_times(quick: bool) -> list[dict[str, Any]]:
    """Return the time of default calls with very many columns, and what they select."""
    n_columns = 2000 if quick else MANY
    setting = _setting("", LINEAR, (300, n_columns), "factors", 0.5, "linear", size=1.0)
    problem = draw(setting, np.random.default_rng(0))
    rows = []
    for model in (LINEAR, MKFDA(Linear()), SMOOTH):
        y = problem.y > 0 if isinstance(model, MKFDA) else problem.y
        start = time.process_time()
        result = column_importance(model, problem.X, y)
        seconds = time.process_time() - start
        right = problem.matters[[int(name) for name in np.array(result.names)[result.selected]]]
        rows.append(
            {
                "model": f"{type(model).__name__}, {type(model.kernels).__name__}",
                "n_rows": setting.n_rows,
                "n_columns": n_columns,
                "seconds": seconds,
                "n_right": right.sum(),
                "n_true": setting.n_true,
                "n_wrong": (~right).sum(),
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the settings."""
    header = ["model", "method", "structure", "effects", "rows", "columns", "problems"]
    header += ["false discoveries", "power", "coverage", "where it matters", "seconds"]
    cells = []
    for row in rows:
        correlated = "" if row["columns"] == "independent" else f", ρ = {row['rho']:g}"
        cells.append(
            [
                row["model"],
                row["method"],
                f"{row['columns']}{correlated}",
                row["effects"] + (", classes" if row["classes"] else ""),
                str(row["n_rows"]),
                str(row["n_columns"]),
                str(row["n_problems"]),
                f"{row['false']:.1%} ± {row['error']:.1%}",
                "–" if row["power"] is None else f"{row['power']:.0%}",
                f"{row['coverage']:.1%}",
                "–" if row["coverage_true"] is None else f"{row['coverage_true']:.0%}",
                f"{row['seconds']:.2f}",
            ]
        )
    return markdown(header, cells, n_left=4)


def times_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of very many columns."""
    header = ["model", "rows", "columns", "seconds", "right ones selected", "wrong ones selected"]
    cells = [
        [
            row["model"],
            str(row["n_rows"]),
            str(row["n_columns"]),
            f"{row['seconds']:.1f}",
            f"{row['n_right']} of {row['n_true']}",
            str(row["n_wrong"]),
        ]
        for row in rows
    ]
    return markdown(header, cells, n_left=1)


def bounds(rows: list[dict[str, Any]]) -> str:
    """Return a sentence about the bounds, and those that were missed."""
    least, most = COVERAGE
    missed = [
        f"{row['model']} with {row['n_columns']} columns"
        for row in rows
        if row["false"] > MOST_FALSE or not least <= row["coverage"] <= most
    ]
    by = f" by {', '.join(missed)}" if missed else " by all"
    result = (
        f"Bounds: false discoveries of at most {MOST_FALSE:.0%} in the mean, and a coverage "
        f"between {least:.0%} and {most:.0%} of all columns: {verdict(not missed)}{by}."
    )
    known = [row for row in rows if row["coverage_true"] is not None]
    if known:
        worst = min(known, key=lambda row: row["coverage_true"])
        result += (
            f" Of columns that matter the least coverage is {worst['coverage_true']:.0%}, of "
            f"{worst['model']} with {worst['n_columns']} columns ({worst['method']})."
        )
    return result


def page(results: Results) -> str:
    """Return the page of the documentation."""
    description = (__doc__ or "").split("\n\n", 2)[2]
    rows = [row for part in results.values() for row in part.get("settings", [])]
    parts = [
        "# Importance of columns",
        "Written by `python -m benchmarks.columns --write`.",
        environments(results),
        description.strip(),
        "Selection at a false discovery rate of 5 %, intervals at 95 %. False discoveries are "
        "mean proportions ± their standard error; power is the share of columns that matter that "
        "are selected; coverage is that of all columns, and of those that matter. Derivative "
        "uses 20 half-samples. Seconds are those of the processor, with one thread.",
    ]
    if rows:
        parts += [table(rows), bounds(rows)]
    if TIMES in results:
        parts.append("Very many columns, with 50 half-samples:")
        parts.append(times_table(results[TIMES]["rows"]))
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("columns", "Importance of columns.", [*SETS, TIMES])
    options = parser.parse_args(arguments)
    results: Results = {}
    with threadpool_limits(1):
        for name in options.sets:
            if name == TIMES:
                results[name] = {"rows": measure_times(options.quick)}
                continue
            rows = []
            for setting in SETS[name][: 1 if options.quick else None]:
                rows.append(measure(setting, 3 if options.quick else setting.n_problems))
                print(f"{table(rows[-1:])}\n", flush=True)
            results[name] = {"settings": rows}
    report("columns", results, page, options.write, [*SETS, TIMES])
    return 0


if __name__ == "__main__":
    sys.exit(main())
