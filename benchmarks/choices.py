"""How machines decide and how p, λ and C are chosen: the defaults beside other rules.

    python -m benchmarks.choices [--quick] [--sets wine,sonar] [--parts regressions] [--write]

Few, unbalanced samples: about 40 rows of at most five classes, at least three of each, whose
shares are drawn at random (Dirichlet, 3). More samples: 150 rows, classes as frequent as in the
data, at most twelve of them. Each is drawn twice; up to 600 other rows, with the same shares
of classes, are the test part. Tables of categories are single tables, each column cut into four
classes of equal size, as columns of text (at most 40 columns).

A difference is that of test accuracies, in points, from the same estimator as it is by default,
first averaged over the samples of a data set; ± is the standard error of the mean over data sets.
Seconds are those of the processor, with one thread, relative to the default.

Views of noise: ten normal columns each, added to 150 rows, which are drawn once.

RelevanceRBF is one of the default kernels of MKRidgeCV, unless there are more columns than rows;
"with RelevanceRBF" has it in any case. Simulated tables have 20 or 300 independent normal columns
and noise of standard deviation 0.5; 150 rows are drawn twice. Parts of the page may be measured
one by one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, add_names, chosen_sets, command_line, load, report
from benchmarks._default_sets import SETS, Loaded
from benchmarks._tables import environments, markdown
from manykernels import MKFDACV, MKSVCCV, MKSVRCV, KernelUnion, MKRidgeCV, kernels_for
from manykernels.kernels import RelevanceRBF

DRAWS, DRAWS_QUICK = 2, 1
MOST_TESTED = 600
FEW, MORE = 40, 150
NOISE = (3, 10)
IN_CATEGORIES = ("sonar", "ionosphere", "satimage", "wine", "cancer", "digits")
CLASSIFICATION = [name for name, data in SETS.items() if not data.regression]
REGRESSION = [name for name, data in SETS.items() if data.regression]
SETS_QUICK = ["sonar", "wine", "diabetes"]
PARTS = ["few", "machines", "discriminants", "noise", "regressions", "relevance"]
LARGE_C = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]

Sample = tuple[Any, np.ndarray, Any, np.ndarray]


@dataclass(frozen=True)
class Rule:
    """An estimator that chooses, made for training data; a table begins with the default."""

    name: str
    make: Callable[[Any, np.ndarray], Any]


def without_offsets(X: Any, y: np.ndarray) -> MKSVCCV:
    """Machines that decide by their own biases: those of classes with weights, here of one."""
    return MKSVCCV(class_weight=dict.fromkeys(np.unique(y).tolist(), 1.0))


MACHINES = [
    Rule("MKSVCCV", lambda X, y: MKSVCCV()),
    Rule("without offsets", without_offsets),
    Rule('class_weight="balanced"', lambda X, y: MKSVCCV(class_weight="balanced")),
    Rule("all C up to 1000", lambda X, y: MKSVCCV(Cs=LARGE_C)),
    Rule('scoring="neg_log_loss"', lambda X, y: MKSVCCV(scoring="neg_log_loss")),
    Rule("one_standard_error=True", lambda X, y: MKSVCCV(one_standard_error=True)),
    Rule("MKFDACV", lambda X, y: MKFDACV()),
]
DISCRIMINANTS = [
    Rule("MKFDACV", lambda X, y: MKFDACV()),
    Rule('scoring="neg_log_loss"', lambda X, y: MKFDACV(scoring="neg_log_loss")),
    Rule('cv="closed-form"', lambda X, y: MKFDACV(cv="closed-form")),
    Rule("one_standard_error=True", lambda X, y: MKFDACV(one_standard_error=True)),
]
REGRESSIONS = [
    Rule("MKRidgeCV", lambda X, y: MKRidgeCV()),
    Rule("one_standard_error=True", lambda X, y: MKRidgeCV(one_standard_error=True)),
    Rule("without RelevanceRBF", lambda X, y: MKRidgeCV(kernels_for(X))),
    Rule("MKSVRCV", lambda X, y: MKSVRCV()),
]
RELEVANCE_OF_CLASSES = [
    Rule("MKFDACV", lambda X, y: MKFDACV()),
    Rule("with RelevanceRBF", lambda X, y: MKFDACV(kernels_for(X, relevance=True))),
]
RELEVANCE = [
    Rule("MKRidgeCV", lambda X, y: MKRidgeCV()),
    Rule("without RelevanceRBF", lambda X, y: MKRidgeCV(kernels_for(X))),
    Rule("with RelevanceRBF", lambda X, y: MKRidgeCV(with_relevance(X))),
]
NORMS = [
    Rule("MKFDACV", lambda X, y: MKFDACV()),
    Rule("p = 1", lambda X, y: MKFDACV(ps=[1.0])),
    Rule("p = ∞", lambda X, y: MKFDACV(ps=[np.inf])),
]


def with_relevance(X: Any) -> KernelUnion:
    """Return the default kernels and RelevanceRBF, however many columns there are."""
    return KernelUnion([*kernels_for(X).kernels, ("relevance", RelevanceRBF())])


# -- samples -------------------------------------------------------------------------------


def simulated() -> dict[str, Loaded]:
    """Return tables of independent normal columns, of which few, many or none matter."""
    rng = np.random.default_rng(0)
    X, wide, noise = (rng.normal(size=(800, n_columns)) for n_columns in (20, 300, 1))
    noise = noise[:, 0]
    sums = X @ rng.normal(size=(20, 2)) / np.sqrt(5.0)
    tables = {
        "3 columns, additive": (X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 / 2.0 + np.abs(X[:, 2])),
        "4 columns, products": (X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]),
        "3 columns, steps": (X, 2.0 * (X[:, 0] > 0) + 2.0 * ((X[:, 1] > 0.5) & (X[:, 2] > 0))),
        "20 columns, sines": (X, np.sin(sums).sum(axis=1)),
        "20 columns, linear": (X, sums[:, 0]),
        "no column": (X, np.zeros(800)),
        "2 of 300 columns": (wide, np.sin(2.0 * wide[:, 0]) + wide[:, 1]),
        "300 columns, linear": (wide, wide @ rng.normal(size=300) / np.sqrt(300.0)),
    }
    return {name: ({"X": table}, f + 0.5 * noise) for name, (table, f) in tables.items()}


def in_categories(tables: dict[str, Any]) -> dict[str, Any]:
    """A data frame of text: the quarter of its column that each number is in."""
    (X,) = tables.values()
    X = X[:, np.argsort(-X.var(axis=0))[:40]]
    edges = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    codes = np.greater(X, edges[:, None]).sum(axis=0)
    letters = np.array(list("abcd"), dtype=object)[codes]
    return {"X": pd.DataFrame(letters, columns=[f"column {j}" for j in range(X.shape[1])])}


def with_noise(tables: dict[str, Any], n_views: int, seed: int) -> dict[str, Any]:
    """The tables, and views that have nothing to do with the targets."""
    rng = np.random.default_rng(seed)
    n_rows = next(iter(tables.values())).shape[0]
    return {**tables, **{f"noise{k}": rng.normal(size=(n_rows, 10)) for k in range(n_views)}}


def few_rows(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of at most five classes with random shares."""
    rng = np.random.default_rng([1, seed])
    classes = np.unique(y)
    classes = rng.choice(classes, min(len(classes), 5), replace=False)
    counts = np.maximum(3, np.round(FEW * rng.dirichlet(np.full(len(classes), 3.0))).astype(int))
    return _divided(y, dict(zip(classes, counts, strict=True)), rng)


def more_rows(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of at most twelve classes, as frequent as in y."""
    rng = np.random.default_rng([2, seed])
    classes, counts = np.unique(y, return_counts=True)
    chosen = rng.choice(len(classes), min(len(classes), 12), replace=False)
    total = min(MORE, counts[chosen].sum() // 2)
    shares = np.maximum(3, np.round(total * counts[chosen] / counts[chosen].sum()).astype(int))
    return _divided(y, dict(zip(classes[chosen], shares, strict=True)), rng)


def _divided(
    y: np.ndarray, counts: dict[Any, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    train, test = [], []
    factor = MOST_TESTED / sum(counts.values())
    for label, count in counts.items():
        rows = rng.permutation(np.flatnonzero(y == label))
        count = min(count, 2 * len(rows) // 3)
        train.append(rows[:count])
        test.append(rows[count : count + int(np.ceil(factor * count))])
    return np.concatenate(train), np.concatenate(test)


def any_rows(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of a regression."""
    rows = np.random.default_rng([3, seed]).permutation(len(y))
    n_train = min(MORE, len(y) // 2)
    return rows[:n_train], rows[n_train : n_train + MOST_TESTED]


def taken(tables: dict[str, Any], rows: np.ndarray) -> Any:
    """The rows of all tables; of a single one, without its name."""
    parts = {
        name: table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]
        for name, table in tables.items()
    }
    return parts if len(parts) > 1 else next(iter(parts.values()))


def samples(data: Loaded, divide: Any, n_draws: int) -> Iterator[Sample]:
    """Training and test data of every draw."""
    tables, y = data
    for seed in range(n_draws):
        train, test = divide(y, seed)
        yield taken(tables, train), y[train], taken(tables, test), y[test]


# -- measurement ---------------------------------------------------------------------------


@dataclass
class Measured:
    """Scores in points and seconds of every rule, (n_rules, n_draws), and the chosen p."""

    scores: np.ndarray
    seconds: np.ndarray
    norms: np.ndarray

    @property
    def differences(self) -> np.ndarray:
        """Means over draws, relative to the first rule."""
        means = self.scores.mean(axis=1)
        return means - means[0]


def measured(rules: list[Rule], draws: Iterator[Sample]) -> Measured:
    """All rules on all draws."""
    scores, seconds, norms = [], [], []
    for X, y, X_test, y_test in draws:
        for rule in rules:
            with threadpool_limits(1):
                start = time.process_time()
                model = rule.make(X, y).fit(X, y)
                seconds.append(time.process_time() - start)
            scores.append(100.0 * model.score(X_test, y_test))
            norms.append(model.p_)
    shape = (-1, len(rules))
    tables = (np.reshape(values, shape).T for values in (scores, seconds, norms))
    return Measured(*tables)


def run(
    rules: list[Rule], sets: dict[str, Loaded], divide: Any, n_draws: int
) -> dict[str, Measured]:
    """Measure rules on data sets."""
    results = {}
    for name, data in sets.items():
        results[name] = measured(rules, samples(data, divide, n_draws))
        gaps = ", ".join(f"{gap:+.2f}" for gap in results[name].differences[1:])
        print(f"{name}: {gaps}", file=sys.stderr, flush=True)
    return results


def over_sets(rules: list[Rule], results: dict[str, Measured]) -> list[dict[str, Any]]:
    """What each rule does over data sets; differences are those from the first rule."""
    gaps = np.array([one.differences for one in results.values()])
    means = np.mean([one.scores.mean(axis=1) for one in results.values()], axis=0)
    seconds = np.mean([one.seconds.mean(axis=1) for one in results.values()], axis=0)
    names = list(results)
    rows: list[dict[str, Any]] = []
    for k, rule in enumerate(rules):
        row = {"rule": rule.name, "mean": means[k], "time": seconds[k] / seconds[0]}
        if k:
            own = gaps[:, k]
            best, worst = int(own.argmax()), int(own.argmin())
            row |= {
                "difference": own.mean(),
                "error": own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else None,
                "n_better": np.sum(own > 0.05),
                "n_worse": np.sum(own < -0.05),
                "most": {"set": names[best], "difference": own[best]},
                "least": {"set": names[worst], "difference": own[worst]},
            }
        rows.append(row)
    return rows


def by_table(rules: list[Rule], results: dict[str, Measured]) -> list[dict[str, Any]]:
    """Mean scores of all rules on each table, and times relative to the first."""
    rows = []
    for name, one in results.items():
        times = one.seconds.sum(axis=1)
        rows.append(
            {
                "table": name,
                "means": _by_rule(rules, one.scores.mean(axis=1)),
                "times": _by_rule(rules, times / times[0]),
            }
        )
    return rows


def by_noise(rules: list[Rule], results: dict[int, dict[str, Measured]]) -> list[dict[str, Any]]:
    """Mean scores of all rules for each number of views of noise, and the p that were chosen."""
    rows = []
    for n_views, sets in results.items():
        means = np.mean([one.scores.mean(axis=1) for one in sets.values()], axis=0)
        norms = np.concatenate([one.norms[0] for one in sets.values()])
        values, counts = np.unique(norms, return_counts=True)
        chosen = {f"{p:.3g}": n for p, n in zip(values, counts, strict=True)}
        rows.append({"n_views": n_views, "means": _by_rule(rules, means), "chosen": chosen})
    return rows


def _by_rule(rules: list[Rule], values: np.ndarray) -> dict[str, float]:
    return {rule.name: float(value) for rule, value in zip(rules, values, strict=True)}


def measured_parts(
    chosen: list[str], parts: list[str], n_draws: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Titles and values of some parts of the page, on chosen data sets, as they are measured."""
    loaded = {name: load(name, SETS[name].loader) for name in chosen}
    data = {name: found for name, found in loaded.items() if found is not None}
    classes = {name: data[name] for name in CLASSIFICATION if name in data}
    values = {name: data[name] for name in REGRESSION if name in data}
    tables = dict(classes)
    for name in IN_CATEGORIES:
        if name in classes:
            tables[f"{name}, categories"] = in_categories(classes[name][0]), classes[name][1]
    few, more = "few, unbalanced samples", "more samples"
    for part, title, rules, sets, divide in (
        ("few", f"Machines, {few}", MACHINES, tables, few_rows),
        ("machines", f"Machines, {more}", MACHINES, tables, more_rows),
        ("discriminants", f"Discriminants, {more}", DISCRIMINANTS, tables, more_rows),
        ("regressions", "Regressions, R² in points", REGRESSIONS, values, any_rows),
        ("relevance", "RelevanceRBF, classes", RELEVANCE_OF_CLASSES, tables, more_rows),
    ):
        if part in parts and sets:
            rows = over_sets(rules, run(rules, sets, divide, n_draws))
            yield title, {"sets": list(sets), "rules": rows}
    if "relevance" in parts and data:
        title = "RelevanceRBF, simulated regressions, R² in points"
        results = run(RELEVANCE, simulated(), any_rows, n_draws)
        yield title, {"tables": by_table(RELEVANCE, results)}
    if "noise" in parts and classes:
        noisy = {
            n_views: run(
                NORMS,
                {
                    name: (with_noise(found, n_views, 0), y)
                    for name, (found, y) in classes.items()
                    if not sparse.issparse(next(iter(found.values())))
                },
                more_rows,
                n_draws=1,
            )
            for n_views in NOISE
        }
        yield "Views of noise, accuracy in per cent", {"noise": by_noise(NORMS, noisy)}


# -- the page ------------------------------------------------------------------------------


def rules_table(rows: list[dict[str, Any]]) -> str:
    """A row per rule: differences from the first, over data sets."""
    header = ["", "mean", "difference", "better on", "worse on", "the most", "the least", "time"]
    cells = []
    for row in rows:
        gaps = [""] * 5
        if "difference" in row:
            error = "" if row["error"] is None else f" ± {row['error']:.2f}"
            gaps = [f"{row['difference']:+.2f}{error}", f"{row['n_better']}", f"{row['n_worse']}"]
            gaps += [
                f"{row[end]['difference']:+.1f} ({row[end]['set']})" for end in ("most", "least")
            ]
        cells.append([row["rule"], f"{row['mean']:.1f}", *gaps, f"{row['time']:.2f}"])
    return markdown(header, cells)


def relevance_table(rows: list[dict[str, Any]]) -> str:
    """A row per table: mean scores of all rules, and times relative to the first."""
    rules = list(rows[0]["means"])
    header = ["columns that matter", *rules, *(f"time {rule}" for rule in rules[1:])]
    cells = [
        [
            row["table"],
            *(f"{row['means'][rule]:.1f}" for rule in rules),
            *(f"{row['times'][rule]:.2f}" for rule in rules[1:]),
        ]
        for row in rows
    ]
    return markdown(header, cells)


def noise_table(rows: list[dict[str, Any]]) -> str:
    """A row per number of views of noise."""
    rules = list(rows[0]["means"])
    cells = []
    for row in rows:
        chosen = ", ".join(f"{p}: {n}" for p, n in row["chosen"].items()).replace("inf", "∞")
        means = [f"{row['means'][rule]:.1f}" for rule in rules]
        cells.append([str(row["n_views"]), *means, chosen])
    return markdown(["views of noise", *rules, "chosen p, how often"], cells)


def page(results: Results) -> str:
    """The page of the documentation."""
    _, _, *paragraphs = (__doc__ or "").strip().replace("``", "`").split("\n\n")
    text = "\n\n".join(part.replace("\n", " ") for part in paragraphs)
    parts = [
        "# How models decide and are chosen",
        f"Written by `python -m benchmarks.choices --write`. {text}",
        environments(results),
    ]
    for title, part in results.items():
        parts.append(f"## {title}")
        if "rules" in part:
            parts.append(rules_table(part["rules"]))
        elif "tables" in part:
            parts.append(relevance_table(part["tables"]))
        else:
            parts.append(noise_table(part["noise"]))
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write parts of the page."""
    parser = command_line("choices", "Rules by which models decide and are chosen.", list(SETS))
    add_names(parser, "parts", PARTS)
    options = parser.parse_args(arguments)
    sets = chosen_sets(parser, options, SETS_QUICK)
    chosen = [name for name in SETS if name in sets]
    parts = measured_parts(chosen, options.parts, DRAWS_QUICK if options.quick else DRAWS)
    return int(not report("choices", parts, page, options.write))


if __name__ == "__main__":
    sys.exit(main())
