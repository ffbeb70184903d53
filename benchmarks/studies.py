"""Real data with published results: estimators with default settings.

    python -m benchmarks.studies [--quick] [--sets breast_tcga,mfeat] [--divisions 5] [--write]
    python -m benchmarks.studies --clock [--sets breast_tcga,mfeat]

Nothing is chosen by looking at test data: `MKFDACV` and `MKCoxCV` have their default kernels (for
photographs of flowers the χ² kernels of the paper, for proteins those of [their page](protein.md))
and choose p and λ by cross-validation on the training rows. The code shown for each study is the
code that was run, in a checkout of the repository, where `benchmarks/_data.py` reads the files.

How the defaults were reached: the default kernels are those that had the best mean accuracy on the
data sets of the page on [defaults](defaults.md). Among these were the 150 training tumours of the
first study, and at most 1000 rows of digits, leaves and places, so these figures may be slightly
too good. So may those of survival, flowers and proteins, on which estimators were tried during
their development. The 70 test tumours had no part in any choice.

Intervals are at 95 %. For one test set it is Wilson's. For the mean over several divisions it
is Student's, with the variance of Nadeau and Bengio (2003), because the divisions share rows.
Seconds are processor time with one thread, for one division: reading, search, fit and prediction.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import (
    PAGES,
    Results,
    chosen_sets,
    command_line,
    load,
    read_results,
    report,
)
from benchmarks._tables import environments, markdown
from benchmarks.survival import COHORTS, cohort_folds
from benchmarks.survival import PUBLISHED as PUBLISHED_INDICES
from manykernels import MKCox, MKCoxCV, Views, view_importance

BREAST, SURVIVAL, FLOWERS, PROTEINS = "breast_tcga", "survival", "flowers", "proteins"
TITLES = {
    BREAST: "Breast cancer subtypes, without proteins at test time",
    "mfeat": "Handwritten digits, six views",
    "leaves": "Leaves of 100 species, three views",
    "scene15": "Photographs of 15 kinds of places, three views",
    SURVIVAL: "Survival of cancer patients, five cohorts",
    FLOWERS: "Photographs of 17 kinds of flowers, ten views",
    PROTEINS: "Places of proteins in a cell, three views of a sequence",
}
TMC = "Z. Han, C. Zhang, H. Fu, J. T. Zhou. Trusted multi-view classification. ICLR 2021"
ECML = (
    "C. Xu, J. Si, Z. Guan, W. Zhao, Y. Wu, X. Gao. Reliable conflictive multi-view learning. "
    "AAAI 2024, Table 2"
)
#: Published accuracies in percent, on other random divisions of the same sizes.
PUBLISHED = {
    "mfeat": [("TMC", 98.51, TMC), ("ECML", 99.40, ECML)],
    "scene15": [("ECML", 76.19, ECML)],
}
#: The same for other features of the same photographs.
YAN, YAN_ACCURACY = "Yan et al. 2012", 87.2
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
CODE_FLOWERS = """
import numpy as np
from benchmarks import _data
from benchmarks.flower import FOLDER, distances
from sklearn.model_selection import train_test_split
from manykernels import MKFDACV
from manykernels.kernels import FromDistances

paths, y = _data.flower17()  # files of photographs, and kinds
tables = distances(paths, FOLDER)  # χ² distances of histograms, ten views by name
kernels = [(name, FromDistances(table)) for name, table in tables.items()]
X = np.arange(len(y))[:, None]  # numbers of photographs
for seed in range({n_seeds}):
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=seed
    )
    model = MKFDACV(kernels).fit(train, y_train)
    print(model.score(test, y_test))
"""
CODE_PROTEINS = """
import numpy as np
from benchmarks import _data
from benchmarks.protein import kernels, parts
from sklearn.model_selection import train_test_split
from manykernels import MKFDACV, kernels_for

sequences, places = _data.multiloc()
mixed = np.random.default_rng(0).permutation(len(places))
rows = np.concatenate([mixed[places[mixed] == place][:100] for place in np.unique(places)])
X, y = parts(sequences[rows]), places[rows]  # the whole, its first 60 and its last 15 letters
strings = kernels_for(X, kernels())  # letters, words, gaps and mismatches, by part
for seed in range({n_seeds}):
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, stratify=y, random_state=seed
    )
    model = MKFDACV(strings).fit(train, y_train)
    print(model.score(test, y_test))
"""
CODE_SURVIVAL = """
from benchmarks.survival import COHORTS, cohort_folds
from manykernels import MKCoxCV, Views

for cohort in COHORTS:
    for train, y, test, truth in cohort_folds(cohort):  # data frames by name, events and times
        model = MKCoxCV().fit(Views(train), y)
        print(model.score(Views(test), truth))
"""
SETS_QUICK = [BREAST]
# Rows on which the importance of views is measured, and rows of every class among them, at least:
# without each view the model is fitted again in five folds.
ROWS_OF_IMPORTANCE, ROWS_OF_CLASS = 400, 8
#: The cohort whose views are judged.
JUDGED_COHORT = "blca"


def code_of(name: str, n_divisions: int) -> str:
    """The code of a study, as it is shown and run."""
    whole = {BREAST: CODE_BREAST, SURVIVAL: CODE_SURVIVAL}
    divided = {FLOWERS: CODE_FLOWERS, PROTEINS: CODE_PROTEINS}
    return whole.get(name) or divided.get(name, CODE).format(name=name, n_seeds=n_divisions)


def breast_cancer() -> dict[str, Any]:
    """Errors on the test tumours of mixOmics, which lack proteins."""
    (train, y), (_, truth) = _data.breast_tcga_parts()
    printed, seconds, names = run(CODE_BREAST)
    return {
        "n_train": len(y),
        "n_test": len(truth),
        "n_of_importance": len(y),
        "errors": {way: int(line[0]) for way, line in zip(WAYS, printed, strict=True)},
        "balanced": {way: line[1] for way, line in zip(WAYS, printed, strict=True)},
        "seconds": seconds / len(printed),
        "importance": importance(
            names["model"].set_params(missing="error"), Views(train), y.to_numpy()
        ),
    }


def divided(name: str, n_divisions: int) -> dict[str, Any]:
    """Accuracies on random parts of the rows."""
    printed, seconds, names = run(code_of(name, n_divisions))
    X = Views(names["views"]) if "views" in names else names["X"]
    y, n_test = names["y"], len(names["y_test"])
    rows = _sample(y, max(ROWS_OF_IMPORTANCE, ROWS_OF_CLASS * len(np.unique(y))))
    return {
        "n_train": len(y) - n_test,
        "n_test": n_test,
        "n_classes": len(np.unique(y)),
        "n_of_importance": len(rows),
        "accuracies": [line[0] for line in printed],
        "seconds": seconds / len(printed),
        "importance": importance(names["model"], X[rows], y[rows]),
    }


def survival() -> dict[str, Any]:
    """Concordance indices on the folds of the authors, by cohort."""
    printed, seconds, _ = run(CODE_SURVIVAL)
    indices = np.reshape(printed, (len(COHORTS), -1)).tolist()
    train, y, test, _ = cohort_folds(JUDGED_COHORT)[0]
    search = MKCoxCV().fit(Views(train), y)
    return {
        "n_train": len(y),
        "n_test": len(next(iter(test.values()))),
        "n_of_importance": len(y),
        "indices": dict(zip(COHORTS, indices, strict=True)),
        "seconds": seconds / len(printed),
        "importance": importance(MKCox(p=search.p_, reg=search.reg_), Views(train), y),
    }


class Printed(io.StringIO):
    """What is printed, which is also shown at once: a study takes minutes."""

    def write(self, text: str) -> int:
        sys.stderr.write(text)
        return super().write(text)


def clock(name: str) -> float:
    """Seconds of one division by the clock, on all cores."""
    start = time.perf_counter()
    printed, _, _ = run(code_of(name, 1))
    return (time.perf_counter() - start) / len(printed)


def run(code: str) -> tuple[list[list[float]], float, dict[str, Any]]:
    """Return the numbers that the code prints, by line, its seconds, and its variables."""
    printed, start, names = Printed(), time.process_time(), dict[str, Any]()
    with redirect_stdout(printed):
        exec(compile(code, "study", "exec"), names)
    seconds = time.process_time() - start
    lines = printed.getvalue().splitlines()
    return [[float(word) for word in line.split()] for line in lines], seconds, names


def importance(model: Any, X: Any, y: np.ndarray) -> dict[str, list[float]]:
    """Fall of the score without each view, with the ends of its interval."""
    table = view_importance(clone(model), X, y, n_resamples=0).to_frame()
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
    width = stats.t.ppf(0.975, len(values) - 1) * np.sqrt(_variance(values, n_train, n_test))
    mean = np.mean(values)
    return 100.0 * (mean - width), 100.0 * min(mean + width, 1.0)


def interval_of_means(
    cohorts: list[list[float]], n_train: int, n_test: int
) -> tuple[float, float]:
    """Interval of the mean over cohorts, each with divisions that share rows."""
    variances = [_variance(values, n_train, n_test) for values in cohorts]
    degrees = len(cohorts) * (len(cohorts[0]) - 1)
    width = stats.t.ppf(0.975, degrees) * np.sqrt(np.sum(variances)) / len(cohorts)
    mean = np.mean(cohorts)
    return mean - width, mean + width


def _variance(values: list[float], n_train: int, n_test: int) -> float:
    """Return the variance of a mean over divisions that share rows."""
    return float((1.0 / len(values) + n_test / n_train) * np.var(values, ddof=1))


def page(results: Results) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").strip().split("\n\n")[2:]
    protocol = [paragraph.replace("\n", " ") for paragraph in paragraphs]
    with_clock = any("clock" in study for study in results.values())
    if with_clock:
        protocol.append(
            "*By the clock* is the time of one division on both cores of a machine that does "
            "nothing else (`--clock`)."
        )
    parts = [
        "# On real data",
        "Data sets on which others have published results, and what `MKFDACV` and `MKCoxCV` "
        "achieve with default settings. Written by `python -m benchmarks.studies --write`.",
        markdown(
            ["", "", "ours", "published", "seconds", *(["by the clock"] if with_clock else [])],
            [row for name, study in results.items() for row in _summary(name, study, with_clock)],
            n_left=2,
        ),
        "More about some of these data: [survival](survival.md), kinds of [flowers](flower.md), "
        "and the places of [proteins](protein.md) in a cell. Examples of the gallery have tasks "
        "of the same kinds, on data that are simulated or come with scikit-learn: "
        "[a table that new samples lack](../../examples/data/plot_table_missing_at_test.py), "
        "[digits](../../examples/start/plot_which_views_matter.py), "
        "[photographs](../../examples/data/plot_photographs.py), "
        "[survival](../../examples/machines/plot_survival.py), "
        "[sequences](../../examples/data/plot_sequences.py).",
        "![Intervals of the fall of the score without each view, one panel for each data "
        "set](../images/studies.png)",
        "How much the accuracy (of survival: the concordance index) falls if a view is left out "
        "and the model is fitted again, with intervals at 95 % (`view_importance`). A view whose "
        "interval contains zero may not be needed beside the others.",
        "## How it was measured",
        *protocol,
        environments(results),
    ]
    for name, study in results.items():
        parts += [f"## {TITLES[name]}", *_section(name, study)]
    return "\n\n".join(parts) + "\n"


ACCURACY = "accuracy, %"


def _summary(name: str, study: dict[str, Any], with_clock: bool) -> list[list[str]]:
    """Rows of the first table."""
    title = TITLES[name].split(",")[0]
    seconds = [
        f"{value:.{2 if value < 10.0 else 3}g}" if value else "–"
        for value in (study["seconds"], *([study.get("clock")] if with_clock else []))
    ]
    n_train, n = study["n_train"], study["n_test"]
    if name == BREAST:
        rows = []
        for missing, errors in study["errors"].items():
            low, high = interval_of_share(n - errors, n)
            accuracy = f"{100 * (1 - errors / n):.1f} [{low:.1f}, {high:.1f}]"
            published = f"DIABLO {100 * (1 - DIABLO_ERRORS / n):.1f}"
            row = [f"{title}, `missing={missing!r}`", ACCURACY, accuracy, published, *seconds]
            rows.append(row)
        return rows
    if name == SURVIVAL:
        indices = list(study["indices"].values())
        low, high = interval_of_means(indices, n_train, n)
        ours = f"{np.mean(indices):.3f} [{low:.3f}, {high:.3f}]"
        published = ", ".join(
            f"{np.mean(values):.3f} ({method.removeprefix('published, ')})"
            for method, values in PUBLISHED_INDICES.items()
        )
        return [[title, "mean concordance index", ours, published, *seconds]]
    accuracies = study["accuracies"]
    if len(accuracies) == 1:
        low, high = interval_of_share(round(accuracies[0] * n), n)
    else:
        low, high = interval_of_mean(accuracies, n_train, n)
    published = ", ".join(f"{method} {value:.2f}" for method, value, _ in PUBLISHED.get(name, []))
    if name == FLOWERS:
        published = f"{YAN}, other features: {YAN_ACCURACY}"
    accuracy = f"{100 * np.mean(accuracies):.2f} [{low:.1f}, {high:.1f}]"
    return [[title, ACCURACY, accuracy, published or "none that we know", *seconds]]


def _section(name: str, study: dict[str, Any]) -> list[str]:
    """What was published, by whom, the code and which views matter."""
    text = {BREAST: _about_breast_cancer, SURVIVAL: _about_survival}.get(name, _about_divided)
    falls = [
        [view, f"{100 * fall:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"]
        for view, (fall, low, high) in study["importance"].items()
    ]
    of_cohort = ""
    if name == SURVIVAL:
        of_cohort = f" of the cohort {JUDGED_COHORT}, with p and λ of a search on all of them"
    score = "concordance index" if name == SURVIVAL else "accuracy"
    return [
        text(name, study),
        f"```py{code_of(name, len(study.get('accuracies', [])))}```",
        f"The fall of the {score} without each view, measured by five folds of "
        f"{study['n_of_importance']} rows{of_cohort}:",
        markdown(["view", "fall, points"], falls, n_left=1),
    ]


def _about_breast_cancer(name: str, study: dict[str, Any]) -> str:
    errors, balanced = study["errors"], study["balanced"]
    return (
        f"{study['n_train']} tumours to learn from, with mRNA, miRNA and proteins, and "
        f"{study['n_test']} test tumours without proteins: the example of the R package "
        f"mixOmics. Its method DIABLO makes {DIABLO_ERRORS} errors on the test tumours, a "
        f"balanced error of {DIABLO_BALANCED} (A. Singh et al., Bioinformatics 35, 2019, and "
        f"the documentation of the package). `MKFDACV` makes {errors['mean']} with "
        f'`missing="mean"` and {errors["conditional"]} with `missing="conditional"`, balanced '
        f"errors of {balanced['mean']:.3f} and {balanced['conditional']:.3f}. With "
        f"{study['n_test']} tumours, a difference of a few errors may be chance."
    )


def _about_survival(name: str, study: dict[str, Any]) -> str:
    rows = []
    for k, (cohort, indices) in enumerate(study["indices"].items()):
        low, high = interval_of_mean(indices, study["n_train"], study["n_test"])
        ours = f"{np.mean(indices):.3f} [{low / 100:.3f}, {high / 100:.3f}]"
        rows.append([cohort, ours, *(f"{values[k]:.3f}" for values in PUBLISHED_INDICES.values())])
    return (
        "Patients of five cohorts of TCGA, with gene expression, copy numbers, mutations, age and "
        "sex; Harrell's concordance index on the five folds of R. J. Chen et al. (Cancer Cell 40, "
        "2022). The published figures are those of the repository mahmoodlab/MCAT for the same "
        "folds: a deep model of genes alone, and one of genes with microscope slides, which ours "
        "is not given. Missing ages are replaced by the median of the training part; seconds are "
        "those of one fold.\n\n"
        + markdown(["cohort", "`MKCoxCV`", *PUBLISHED_INDICES], rows, n_left=1)
    )


def _about_divided(name: str, study: dict[str, Any]) -> str:
    if name == FLOWERS:
        sources = (
            f"ℓp MK-FDA of {YAN} (Table 2) has {YAN_ACCURACY} %, with seven kernels from "
            "segmented flowers; 40 photographs of each kind to learn from and 20 to choose the "
            "parameters. Here the features are others, and all 60 serve both purposes, so the two "
            "figures say little about the methods. [The page of flowers](flower.md) compares "
            "methods on the same features."
        )
    elif name == PROTEINS:
        sources = (
            "The proteins of MultiLoc, at most 100 of each place. We know of no result that was "
            "published for divisions of this size."
        )
    else:
        sources = " ".join(
            f"{method} is a deep model: {value:.2f} % ({source})."
            for method, value, source in PUBLISHED.get(name, [])
        )
    n_divisions = len(study["accuracies"])
    times = "once" if n_divisions == 1 else f"{n_divisions} times"
    return (
        f"{study['n_classes']} classes; {study['n_train']} rows to learn from and "
        f"{study['n_test']} test rows, drawn at random {times}. "
        + (sources or "We know of no result that was published for divisions of this size.")
    )


def draw(results: Results) -> Figure:
    """Draw the fall of the score without each view, a panel for each study."""
    n_rows = (len(results) + 1) // 2
    figure = Figure(figsize=(9.0, 2.3 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, 2, squeeze=False).flat
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
        ax.tick_params(axis="y", length=0, labelsize=8 if len(views) > 6 else 10)
        ax.set_title(TITLES[name].split(",")[0], loc="left", fontsize=11)
    figure.supxlabel("fall of the score without the view, points", fontsize=10)
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("studies", "Real data with published results.", list(TITLES))
    parser.add_argument(
        "--divisions", type=int, default=5, help="of data without a test set (default: 5)"
    )
    parser.add_argument(
        "--clock",
        action="store_true",
        help="add the time on all cores to what was written, and measure nothing else",
    )
    options = parser.parse_args(arguments)
    if options.clock:
        written = read_results("studies")
        timed = ((name, {**written[name], "clock": clock(name)}) for name in options.sets)
        report("studies", timed, page, True, TITLES)
        return 0
    n_divisions = 2 if options.quick else options.divisions

    def parts() -> Iterator[tuple[str, dict[str, Any]]]:
        whole = {BREAST: breast_cancer, SURVIVAL: survival}
        for name in chosen_sets(parser, options, SETS_QUICK):
            study = load(name, whole.get(name, partial(divided, name, n_divisions)))
            if study is not None:
                print(f"{name}: {study}", file=sys.stderr)
                yield name, study

    with threadpool_limits(1):
        results = report("studies", parts(), page, options.write, TITLES)
    if results and options.write:
        draw(read_results("studies")).savefig(PAGES.parent / "images" / "studies.png", dpi=130)
    return 0


if __name__ == "__main__":
    sys.exit(main())
