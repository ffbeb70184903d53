"""Real data with published results: MKFDACV with default settings.

    python -m benchmarks.studies [--quick] [--sets breast_tcga,mfeat] [--divisions 5] [--write]

Nothing is chosen by looking at test data: `MKFDACV` has its default kernels and chooses p and λ by
cross-validation on the training rows. The code shown for each study is the code that was run, in a
checkout of the repository, where `benchmarks/_data.py` reads the files.

How the defaults were reached: the default kernels are those that had the best mean accuracy on the
data sets of the page on [defaults](defaults.md). Among these were the 150 training tumours of the
first study, and at most 1000 rows of each of the other three, so these figures may be slightly too
good. The 70 test tumours had no part in any choice.

Intervals are at 95 %. For one test set it is Wilson's. For the mean over several divisions it
is Student's, with the variance of Nadeau and Bengio (2003), because the divisions share rows.
Seconds are processor time with one thread, for one division: reading, search, fit and prediction.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import PAGES, Results, command_line, load, read_results, write_results
from benchmarks._tables import environments, markdown, measured_with
from manykernels import MKFDACV, Views, view_importance

BREAST = "breast_tcga"
TITLES = {
    BREAST: "Breast cancer subtypes, without proteins at test time",
    "mfeat": "Handwritten digits, six views",
    "leaves": "Leaves of 100 species, three views",
    "scene15": "Photographs of 15 kinds of places, three views",
}
TMC = "Z. Han, C. Zhang, H. Fu, J. T. Zhou. Trusted multi-view classification. ICLR 2021"
ECML = (
    "C. Xu, J. Si, Z. Guan, W. Zhao, Y. Wu, X. Gao. Reliable conflictive multi-view learning. "
    "AAAI 2024, Table 2"
)
#: Published accuracies in percent, on other random divisions of the same sizes.
PUBLISHED = {
    "mfeat": [("TMC", 98.51, TMC), ("ECML", 99.40, ECML)],
    "leaves": [],
    "scene15": [("ECML", 76.19, ECML)],
}
WAYS = ("mean", "conditional")
DIABLO_ERRORS, DIABLO_BALANCED = 5, 0.068

CODE_BREAST = """
from benchmarks import _data
from sklearn.metrics import balanced_accuracy_score
from manykernels import MKFDACV

(train, y), (test, truth) = _data.breast_tcga_parts()  # data frames by name; no proteins in test
for missing in ("mean", "conditional"):
    model = MKFDACV(missing=missing).fit(train, y)
    predicted = model.predict(test)
    print((predicted != truth).sum(), 1 - balanced_accuracy_score(truth, predicted))
"""
CODE = """
from benchmarks import _data
from sklearn.model_selection import train_test_split
from manykernels import MKFDACV, Views

views, y = _data.{name}()  # arrays by name, and classes
for seed in range({n_seeds}):
    train, test, y_train, y_test = train_test_split(
        Views(views), y, test_size=0.2, stratify=y, random_state=seed
    )
    model = MKFDACV().fit(train, y_train)
    print(model.score(test, y_test))
"""
# Rows on which the importance of views is measured, and rows of every class among them, at least:
# without each view the model is fitted again in five folds.
ROWS_OF_IMPORTANCE, ROWS_OF_CLASS = 400, 8


def breast_cancer() -> dict[str, Any]:
    """Errors on the test tumours of mixOmics, which lack proteins."""
    (train, y), (_, truth) = _data.breast_tcga_parts()
    printed, seconds = run(CODE_BREAST)
    return {
        "n_train": len(y),
        "n_test": len(truth),
        "n_of_importance": len(y),
        "errors": {way: int(line[0]) for way, line in zip(WAYS, printed, strict=True)},
        "balanced": {way: line[1] for way, line in zip(WAYS, printed, strict=True)},
        "seconds": seconds / len(printed),
        "importance": importance(train, y.to_numpy()),
    }


def divided(name: str, n_divisions: int) -> dict[str, Any]:
    """Accuracies on random fifths of the rows."""
    views, y = getattr(_data, name)()
    code = CODE.format(name=name, n_seeds=n_divisions)
    printed, seconds = run(code)
    rows = _sample(y, max(ROWS_OF_IMPORTANCE, ROWS_OF_CLASS * len(np.unique(y))))
    n_test = int(np.ceil(0.2 * len(y)))
    return {
        "n_train": len(y) - n_test,
        "n_test": n_test,
        "n_classes": len(np.unique(y)),
        "n_of_importance": len(rows),
        "accuracies": [line[0] for line in printed],
        "seconds": seconds / len(printed),
        "importance": importance({view: table[rows] for view, table in views.items()}, y[rows]),
    }


def run(code: str) -> tuple[list[list[float]], float]:
    """Return the numbers that the code prints, by line, and its seconds."""
    printed, start = io.StringIO(), time.process_time()
    with redirect_stdout(printed):
        exec(compile(code, "study", "exec"), {})
    seconds = time.process_time() - start
    return [[float(word) for word in line.split()] for line in printed.getvalue().splitlines()], (
        seconds
    )


def importance(views: Mapping[str, Any], y: np.ndarray) -> dict[str, list[float]]:
    """Fall of the accuracy without each view, with the ends of its interval."""
    table = view_importance(MKFDACV(), Views(views), y, n_resamples=0).to_frame()
    columns = ["fall", "fall_low", "fall_high"]
    return {str(view): [float(v) for v in row] for view, row in table[columns].T.items()}


def _sample(y: np.ndarray, n_rows: int) -> np.ndarray:
    """Return rows drawn at random, classes in equal parts; all rows if there are not more."""
    rows = np.arange(len(y))
    if len(y) <= n_rows:
        return rows
    return train_test_split(rows, train_size=n_rows, stratify=y, random_state=0)[0]


# -- the page --------------------------------------------------------------------------------


def interval_of_share(successes: int, n: int) -> tuple[float, float]:
    """Wilson's interval of a share, in percent."""
    interval = stats.binomtest(successes, n).proportion_ci(method="wilson")
    return 100.0 * interval.low, 100.0 * interval.high


def interval_of_mean(values: list[float], n_train: int, n_test: int) -> tuple[float, float]:
    """Interval of the mean over divisions that share rows, in percent."""
    n = len(values)
    scale = np.sqrt((1.0 / n + n_test / n_train) * np.var(values, ddof=1))
    width = stats.t.ppf(0.975, n - 1) * scale
    mean = np.mean(values)
    return 100.0 * (mean - width), 100.0 * min(mean + width, 1.0)


def page(results: Results) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").strip().split("\n\n")[2:]
    protocol = [paragraph.replace("\n", " ") for paragraph in paragraphs]
    parts = [
        "# On real data",
        "Data sets on which others have published results, and what `MKFDACV` achieves with "
        "default settings. Written by `python -m benchmarks.studies --write`.",
        _summary(results),
        "Other studies have pages of their own: [survival](survival.md) of patients in five "
        "cohorts of TCGA, kinds of [flowers](flower.md), and the places of "
        "[proteins](protein.md) in a cell.",
        "![Intervals of the fall of the accuracy without each view, one panel for each data "
        "set](../images/studies.png)",
        "How much the accuracy falls if a view is left out and the model is fitted again, with "
        "intervals at 95 % (`view_importance`). A view whose interval contains zero may not be "
        "needed beside the others.",
        "## How it was measured",
        *protocol,
        environments(results),
    ]
    for name, study in results.items():
        parts += [f"## {TITLES[name]}", *_section(name, study)]
    return "\n\n".join(parts) + "\n"


def _summary(results: Results) -> str:
    rows = []
    for name, study in results.items():
        title = TITLES[name].split(",")[0]
        if name == BREAST:
            n, seconds = study["n_test"], f"{study['seconds']:.2g}"
            for missing, errors in study["errors"].items():
                low, high = interval_of_share(n - errors, n)
                accuracy = f"{100 * (1 - errors / n):.1f} [{low:.1f}, {high:.1f}]"
                published = f"DIABLO {100 * (1 - DIABLO_ERRORS / n):.1f}"
                rows.append([f"{title}, `missing={missing!r}`", accuracy, published, seconds])
            continue
        accuracies, n = study["accuracies"], study["n_test"]
        if len(accuracies) == 1:
            low, high = interval_of_share(round(accuracies[0] * n), n)
        else:
            low, high = interval_of_mean(accuracies, study["n_train"], n)
        published = ", ".join(f"{method} {value:.2f}" for method, value, _ in PUBLISHED[name])
        accuracy = f"{100 * np.mean(accuracies):.2f} [{low:.1f}, {high:.1f}]"
        rows.append([title, accuracy, published or "none that we know", f"{study['seconds']:.2g}"])
    return markdown(["", "`MKFDACV`, accuracy in %", "published, %", "seconds"], rows, n_left=1)


def _section(name: str, study: dict[str, Any]) -> list[str]:
    if name == BREAST:
        errors, balanced = study["errors"], study["balanced"]
        text = (
            f"{study['n_train']} tumours to learn from, with mRNA, miRNA and proteins, and "
            f"{study['n_test']} test tumours without proteins: the example of the R package "
            f"mixOmics. Its method DIABLO makes {DIABLO_ERRORS} errors on the test tumours, a "
            f"balanced error of {DIABLO_BALANCED} (A. Singh et al., Bioinformatics 35, 2019, and "
            f"the documentation of the package). `MKFDACV` makes {errors['mean']} with "
            f'`missing="mean"` and {errors["conditional"]} with `missing="conditional"`, balanced '
            f"errors of {balanced['mean']:.3f} and {balanced['conditional']:.3f}. With "
            f"{study['n_test']} tumours, a difference of a few errors may be chance."
        )
        code = CODE_BREAST
    else:
        sources = " ".join(
            f"{method} is a deep model: {value:.2f} % ({source})."
            for method, value, source in PUBLISHED[name]
        )
        n_divisions = len(study["accuracies"])
        times = "once" if n_divisions == 1 else f"{n_divisions} times"
        text = (
            f"{study['n_classes']} classes; {study['n_train']} rows to learn from and "
            f"{study['n_test']} test rows, drawn at random {times}. "
            + (sources or "We know of no result that was published for divisions of this size.")
        )
        code = CODE.format(name=name, n_seeds=n_divisions)
    rows = [
        [view, f"{100 * fall:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"]
        for view, (fall, low, high) in study["importance"].items()
    ]
    return [
        text,
        f"```py{code}```",
        f"The fall of the accuracy without each view, measured by five folds of "
        f"{study['n_of_importance']} rows:",
        markdown(["view", "fall, points"], rows, n_left=1),
    ]


def draw(results: Results) -> Figure:
    """Draw the fall of the accuracy without each view, a panel for each study."""
    figure = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = figure.subplots(2, 2).flat
    for ax in axes[len(results) :]:
        ax.set_axis_off()
    for ax, (name, study) in zip(axes, results.items(), strict=False):
        views = list(study["importance"])
        fall, low, high = 100.0 * np.array(list(study["importance"].values())).T
        ax.axvline(0.0, color="#b8b8b8", linewidth=1, zorder=0)
        ax.errorbar(fall, views, xerr=(fall - low, high - fall), fmt="o", color="#0072b2")
        ax.invert_yaxis()
        ax.margins(y=0.2)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_title(TITLES[name].split(",")[0], loc="left", fontsize=11)
    figure.supxlabel("fall of the accuracy without the view, points", fontsize=10)
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("studies", "Real data with published results.", list(TITLES))
    parser.add_argument(
        "--divisions", type=int, default=5, help="of data without a test set (default: 5)"
    )
    options = parser.parse_args(arguments)
    n_divisions = 2 if options.quick else options.divisions
    results = {}
    with threadpool_limits(1):
        for name in options.sets:
            if name == BREAST:
                study = load(name, breast_cancer)
            else:
                study = load(name, lambda: divided(name, n_divisions))  # noqa: B023
            if study is None:
                continue
            results[name] = study
            print(f"{name}: {study}", file=sys.stderr)
            if options.write:  # each when it is measured: they take minutes
                write_results("studies", {name: study}, page, TITLES)
                draw(read_results("studies")).savefig(
                    PAGES.parent / "images" / "studies.png", dpi=130
                )
    if results and not options.write:
        print(page({name: {"environment": measured_with(), **results[name]} for name in results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
