"""Real studies on published divisions: MKFDACV with nothing set, beside published figures.

    python -m benchmarks.studies [--quick] [--sets breast_tcga,mfeat] [--write]

Nothing is chosen by test data: kernels, norm and λ are those of `MKFDACV` with default settings,
and missing views are completed by each of the two ways there are. The default kernels were chosen
by the accuracy on other divisions of Multiple Features and of Scene15, among other data sets
(see the page on defaults); Breast TCGA's test tumours had no part in any choice.

Intervals of accuracies are at 95 %: Wilson's for one test part; for several divisions Student's,
with the variance of Nadeau and Bengio (2003), since divisions share rows. Seconds are those of the
processor, for a whole fit with one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import command_line, load, write_results
from benchmarks._tables import environments, markdown, measured_with
from manykernels import MKFDACV, Views, view_importance

BREAST = "breast_tcga"
#: Published figures on divisions of the same kind; None where we know of none.
PUBLISHED: dict[str, tuple[str, float, str] | None] = {
    "mfeat": (
        "TMC, a deep model",
        98.51,
        "Z. Han, C. Zhang, H. Fu, J. T. Zhou. Trusted multi-view classification. ICLR 2021",
    ),
    "leaves": None,
    "scene15": (
        "ECML, a deep model",
        76.0,
        "C. Xu, J. Si, Z. Guan, W. Zhao, Y. Wu, X. Gao. Reliable conflictive multi-view learning. "
        "AAAI 2024",
    ),
}
TITLES = {
    BREAST: "Breast cancer subtypes, a table missing at test time",
    "mfeat": "Handwritten digits, six views",
    "leaves": "Leaves of 100 species, three views",
    "scene15": "Photographs of 15 kinds of places, three views",
}
N_SEEDS = 5
TEST_SHARE = 0.2
# Rows of which the importance of views is measured, and rows of every class among them, at least:
# without each view the model is fitted again in five folds.
ROWS_OF_IMPORTANCE, ROWS_OF_CLASS = 400, 8


def breast_cancer() -> dict[str, Any]:
    """Errors on the test tumours of mixOmics, which lack proteins."""
    (train, y), (test, truth) = _data.breast_tcga_parts()
    sizes = {"n_train": len(y), "n_test": len(truth), "n_of_importance": len(y)}
    result: dict[str, Any] = {}
    for missing in ("mean", "conditional"):
        model, seconds = fitted(MKFDACV(missing=missing), train, y)
        predicted = model.predict(test)
        result[missing] = {
            "errors": int(np.sum(predicted != truth.to_numpy())),
            "balanced_error": 1.0 - balanced_accuracy_score(truth, predicted),
            "left_out": model.best_score_,
            "seconds": seconds,
        }
    return {**sizes, **result, "importance": importance(train, y.to_numpy())}


def divided(name: str, *, quick: bool = False) -> dict[str, Any]:
    """Accuracies on a fifth of the rows, drawn at random several times."""
    views, y = getattr(_data, name)()
    n_seeds, n_rows = (2, 300) if quick else (N_SEEDS, len(y))
    accuracies, seconds = [], []
    for seed in range(n_seeds):
        rows = _sample(y, n_rows, seed)
        train, test = train_test_split(
            rows, test_size=TEST_SHARE, stratify=y[rows], random_state=seed
        )
        model, used = fitted(MKFDACV(), _rows(views, train), y[train])
        accuracies.append(float(np.mean(model.predict(_rows(views, test)) == y[test])))
        seconds.append(used)
        print(f"{name}, seed {seed}: {accuracies[-1]:.4f}, {used:.0f} s", file=sys.stderr)
    n_classes = len(np.unique(y))
    rows = _sample(y, max(ROWS_OF_IMPORTANCE, ROWS_OF_CLASS * n_classes), 0)
    return {
        "n_train": len(train),
        "n_test": len(test),
        "n_classes": n_classes,
        "n_of_importance": len(rows),
        "accuracies": accuracies,
        "seconds": seconds,
        "importance": importance(_rows(views, rows), y[rows]),
    }


def fitted(model: Any, X: Mapping[str, Any], y: Any) -> tuple[Any, float]:
    """The fitted model, and its seconds."""
    start = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - start


def importance(views: Mapping[str, Any], y: np.ndarray) -> dict[str, list[float]]:
    """Fall of the accuracy without each view, with the ends of its interval."""
    table = view_importance(MKFDACV(), Views(views), y).to_frame()
    columns = ["fall", "fall_low", "fall_high"]
    return {str(view): [float(v) for v in row] for view, row in table[columns].T.items()}


def _rows(views: Mapping[str, Any], rows: np.ndarray) -> dict[str, Any]:
    return {name: table[rows] for name, table in views.items()}


def _sample(y: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Rows drawn at random, classes in equal parts; all rows if they are not more."""
    rows = np.arange(len(y))
    if len(y) <= n_rows:
        return rows
    return train_test_split(rows, train_size=n_rows, stratify=y, random_state=seed)[0]


# -- the page --------------------------------------------------------------------------------


def interval_of_share(successes: int, n: int) -> tuple[float, float]:
    """Wilson's interval of a share, in percent."""
    found = stats.binomtest(successes, n).proportion_ci(method="wilson")
    return 100.0 * found.low, 100.0 * found.high


def interval_of_mean(values: list[float], n_train: int, n_test: int) -> tuple[float, float]:
    """Interval of the mean over divisions that share rows, in percent."""
    n = len(values)
    scale = np.sqrt((1.0 / n + n_test / n_train) * np.var(values, ddof=1))
    width = stats.t.ppf(0.975, n - 1) * scale
    mean = np.mean(values)
    return 100.0 * (mean - width), 100.0 * min(mean + width, 1.0)


def page(results: dict[str, dict[str, Any]]) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").strip().split("\n\n")[2:]
    protocol = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    parts = [
        "# On real data",
        f"Written by `python -m benchmarks.studies --write`. {protocol}",
        environments(results),
        _summary(results),
        "Survival of patients in five cohorts of TCGA: see [survival](survival.md). Flowers and "
        "proteins: see [flower](flower.md) and [protein](protein.md).",
    ]
    for name, study in results.items():
        parts += [f"## {TITLES[name]}", *_section(name, study)]
    return "\n\n".join(parts) + "\n"


def _summary(results: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, study in results.items():
        if name == BREAST:
            for missing in ("mean", "conditional"):
                errors, n = study[missing]["errors"], study["n_test"]
                low, high = interval_of_share(n - errors, n)
                rows.append(
                    [
                        f"Breast TCGA, missing={missing!r}",
                        f"{100 * (1 - errors / n):.1f} [{low:.1f}, {high:.1f}]",
                        f"{100 * (1 - 5 / 70):.1f} (DIABLO)",
                        f"{study[missing]['seconds']:.2g}",
                    ]
                )
            continue
        low, high = interval_of_mean(study["accuracies"], study["n_train"], study["n_test"])
        published = PUBLISHED[name]
        rows.append(
            [
                TITLES[name].split(",")[0],
                f"{100 * np.mean(study['accuracies']):.2f} [{low:.1f}, {high:.1f}]",
                f"{published[1]:.2f} ({published[0]})" if published else "none known to us",
                f"{np.mean(study['seconds']):.2g}",
            ]
        )
    return markdown(["", "accuracy of ours, %", "published", "fit, s"], rows, n_left=1)


def _section(name: str, study: dict[str, Any]) -> list[str]:
    if name == BREAST:
        errors = {missing: study[missing]["errors"] for missing in ("mean", "conditional")}
        balanced = {missing: study[missing]["balanced_error"] for missing in errors}
        text = (
            f"{study['n_train']} tumours to learn from, with mRNA, miRNA and proteins, and "
            f"{study['n_test']} to be judged on, which lack proteins: the example of the R "
            "package mixOmics, whose method DIABLO makes 5 errors (balanced error 0.068; A. Singh "
            "et al., Bioinformatics 35, 2019, and the documentation of the package). "
            f'`MKFDACV` makes {errors["mean"]} with `missing="mean"` and '
            f'{errors["conditional"]} with `missing="conditional"` (balanced errors '
            f"{balanced['mean']:.3f} and {balanced['conditional']:.3f})."
        )
        code = [
            "train = {name: pd.read_csv(f'train_{name}.csv', index_col=0)",
            "         for name in ('mrna', 'mirna', 'protein')}",
            "test = {name: pd.read_csv(f'test_{name}.csv', index_col=0)",
            "        for name in ('mrna', 'mirna')}",
            "model = MKFDACV(missing='conditional').fit(train, subtype)",
            "model.predict(test)  # without proteins",
            "view_importance(model, Views(train), subtype)",
        ]
    else:
        published = PUBLISHED[name]
        source = f" Published: {published[0]}, {published[1]:.2f} % ({published[2]})."
        text = (
            f"{study['n_classes']} classes; {study['n_train']} rows to learn from and "
            f"{study['n_test']} to be judged on, drawn {len(study['accuracies'])} times."
            f"{source if published else ''}"
        )
        code = [
            "views = {'shape': shape, 'texture': texture, ...}  # tables with the same rows",
            "model = MKFDACV().fit(views, y)",
            "model.predict(new_views)",
            "view_importance(model, Views(views), y)",
        ]
    rows = [
        [view, f"{100 * fall:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"]
        for view, (fall, low, high) in study["importance"].items()
    ]
    return [
        text,
        "\n".join(["```py", *code, "```"]),
        f"Which views matter: the fall of the accuracy without each of them, of "
        f"{study['n_of_importance']} rows.",
        markdown(["view", "fall without it, points"], rows, n_left=1),
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("studies", "Real studies beside published figures.", list(TITLES))
    options = parser.parse_args(arguments)
    results = {}
    with threadpool_limits(1):
        for name in options.sets:
            if name == BREAST:
                found = load(name, breast_cancer)
            else:
                found = load(name, lambda: divided(name, quick=options.quick))  # noqa: B023
            if found is not None:
                results[name] = found
                if options.write:  # each as it is measured: they take minutes
                    write_results("studies", {name: found}, page, TITLES)
    if results and not options.write:
        found = {name: {"environment": measured_with(), **results[name]} for name in results}
        print(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
