"""Where in a cell a protein is, by string kernels; norms beside Yan et al. (2012), table 3.

    python -m benchmarks.protein [--quick] [--splits 4] [--write]

The kernels of the paper (69 for each of four sets of organisms) are not available. This is the
same question for other data, the proteins of MultiLoc, with kernels that are computed from their
sequences: words of one to five letters, with gaps and with mismatches, and composition, of
the whole protein, of its first 60 letters, where many signals are, and of its last 15.

As in the paper: ten norms, nine λ for MK-FDA and nine C for MK-SVM, kernels multiplicatively
normalised, machines one against the rest with weights of their own, 1 − mean MCC over classes.
Otherwise:

- each split draws at most 100 proteins of a class, so that rare places count as much as others
  and a split takes about two minutes; a fifth of them is for testing;
- λ and C are chosen, for each norm, on a fifth of the training proteins, never on test proteins;
  of equal ones the strongest regularisation. The model is then learnt again on all training
  proteins. The paper does not say how it chose.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from benchmarks import _data
from benchmarks._command import Results, command_line, load, report
from benchmarks._tables import (
    PaperRow,
    counted,
    environments,
    markdown,
    paper_table,
    standard_error,
)
from benchmarks._yan2012_protein import NORM_NAMES, NORMS, PENALTIES, PROTEIN_ERRORS, REGS
from manykernels import MKFDA, MKFDACV, MKSVC, MKSVCCV, KernelStack, Views, kernels_for
from manykernels.kernels import RBF, Gapped, Kernel, Mismatch, Spectrum
from manykernels.metrics import SCORERS, mean_class_mcc

SPLITS = 4
MOST_OF_A_CLASS = 100
SHORTEST = 20
SEED = 1
HELD_OUT = 0.2


@dataclass(frozen=True)
class Method:
    """What chooses among the `values` of a `parameter`, and what is then learnt.

    Values are in the order of less and less regularisation.
    """

    search: Any
    model: Any
    parameter: str
    values: tuple[float, ...]
    options: dict[str, Any]


METHODS = {
    "MK-FDA": Method(MKFDACV, MKFDA, "reg", REGS[::-1], {}),
    "MK-SVM": Method(MKSVCCV, MKSVC, "C", PENALTIES, {"multi_class": "separate"}),
}


# -- kernels -------------------------------------------------------------------------------


def composition() -> Kernel:
    """A Gaussian of shares of letters."""
    counts = CountVectorizer(analyzer="char", lowercase=False)
    return RBF("median").after(make_pipeline(counts, Normalizer("l1")))


def kernels() -> dict[str, list[tuple[str, Kernel]]]:
    """Named kernels of each part of a protein."""
    words: list[tuple[str, Kernel]] = [(f"{k} letters", Spectrum(k)) for k in range(1, 6)]
    gaps: tuple[str, Kernel] = ("2 of 4 letters", Gapped(2, 4))
    nearly: tuple[str, Kernel] = ("3 letters, 1 mismatch", Mismatch(3, 1))
    whole = [gaps, ("3 of 5 letters", Gapped(3, 5)), nearly]
    whole.append(("4 letters, 1 mismatch", Mismatch(4, 1)))
    last: tuple[str, Kernel] = ("composition", composition())
    return {
        "whole": [*words, *whole, last],
        "first 60": [*words[:3], gaps, nearly, last],
        "last 15": [*words[:2], gaps, last],
    }


def parts(sequences: Any) -> Views:
    """The three parts of each protein as views."""
    return Views(
        {
            "whole": list(sequences),
            "first 60": [one[:60] for one in sequences],
            "last 15": [one[-15:] for one in sequences],
        }
    )


# -- one split -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Kernels of training proteins, those of test proteins with them, and the places.

    The first `n_judged` training proteins choose λ and C.
    """

    train: KernelStack
    test: KernelStack
    y_train: np.ndarray
    y_test: np.ndarray
    n_judged: int
    seconds: float


def draw(sequences: np.ndarray, y: np.ndarray, number: int, most: int) -> Split:
    """At most so many proteins of each place, in random order; the first fifth is for testing."""
    rng = np.random.default_rng([SEED, number])
    usable = np.array([len(one) >= SHORTEST for one in sequences])
    places = [np.flatnonzero((y == place) & usable) for place in np.unique(y)]
    drawn = [rng.permutation(members)[:most] for members in places]
    rows = rng.permutation(np.concatenate(drawn))
    n_test = round(HELD_OUT * len(rows))
    test, train = rows[:n_test], rows[n_test:]
    begin = time.process_time()
    views, new = parts(sequences[train]), parts(sequences[test])
    union = kernels_for(views, kernels()).fit(views)
    stacks = union(views), union(new, views)
    seconds = time.process_time() - begin
    return Split(*stacks, y[train], y[test], round(HELD_OUT * len(train)), seconds)


@dataclass(frozen=True)
class Run:
    """One method on one split: for each norm, test error in per cent and what was chosen.

    `held_out` are the scores of the held-out training proteins at the chosen λ or C.
    """

    errors: np.ndarray
    chosen: list[float]
    held_out: np.ndarray
    weights: np.ndarray
    seconds: float


def run_method(split: Split, method: Method, norms: Any) -> Run:
    """Choose λ or C for each norm, learn from all training proteins, and test."""
    begin = time.process_time()
    judged = np.arange(split.n_judged)
    rest = np.arange(split.n_judged, len(split.y_train))
    held_out = split.train[np.ix_(judged, rest)], split.y_train[judged]
    options = {"kernels": "precomputed", "normalize": "multiplicative", **method.options}
    grid = {"ps": list(norms), "cv": held_out, "scoring": SCORERS["mean_class_mcc"]}
    search = method.search(**options, **grid, **{f"{method.parameter}s": list(method.values)})
    search.fit(split.train[np.ix_(rest, rest)], split.y_train[rest])
    curve = np.asarray(search.validation_curve())
    # The first of equal ones, which regularises most.
    chosen = [method.values[place] for place in curve.argmax(axis=1)]
    errors, weights = [], []
    for p, value in zip(norms, chosen, strict=True):
        model = method.model(**options, p=p, **{method.parameter: value})
        model.fit(split.train, split.y_train)
        errors.append(100 * (1 - mean_class_mcc(split.y_test, model.predict(split.test))))
        learnt = np.atleast_2d(model.weights_)
        weights.append((learnt / learnt.sum(axis=1, keepdims=True)).mean(axis=0))
    seconds = time.process_time() - begin
    return Run(np.array(errors), chosen, curve.max(axis=1), np.array(weights), seconds)


def run(sequences: np.ndarray, y: np.ndarray, n_splits: int, most: int, norms: Any) -> dict:
    """Both methods on every split, as plain values."""
    runs: dict[str, list[Run]] = {method: [] for method in METHODS}
    sizes, seconds, names = [], [], []
    for number in range(n_splits):
        split = draw(sequences, y, number, most)
        sizes.append((len(split.y_train), len(split.y_test)))
        seconds.append(split.seconds)
        names = split.train.names
        for method in METHODS:
            runs[method].append(run_method(split, METHODS[method], norms))
            last = runs[method][-1]
            figures = " ".join(f"{error:.1f}" for error in last.errors)
            print(f"split {number} {method}: {figures} ({last.seconds:.0f} s)", file=sys.stderr)
    return {
        "n_splits": n_splits,
        "most_of_a_class": most,
        "sizes": np.mean(sizes, axis=0),
        "kernels": list(names),
        "kernel_seconds": np.mean(seconds),
        "methods": {
            method: {
                "errors": [one.errors for one in some],
                "chosen": [one.chosen for one in some],
                "held_out": [one.held_out for one in some],
                "weights": np.mean([one.weights for one in some], axis=0),
                "seconds": np.mean([one.seconds for one in some]),
            }
            for method, some in runs.items()
        },
    }


def errors_of(part: dict[str, Any], method: str) -> np.ndarray:
    """Test errors, (n_splits, n_norms)."""
    return np.array(part["methods"][method]["errors"])


def at_chosen_norm(part: dict[str, Any], method: str) -> np.ndarray:
    """Test errors at the norm that held-out training proteins chose, (n_splits,)."""
    chosen = np.array(part["methods"][method]["held_out"]).argmax(axis=1)
    return errors_of(part, method)[np.arange(len(chosen)), chosen]


# -- rows beside the paper -----------------------------------------------------------------


def paper_rows(results: Results) -> list[PaperRow]:
    """What norms and methods gain; levels on other proteins cannot be compared."""
    if "multiloc" not in results:
        return []
    part = results["multiloc"]
    last = len(NORMS) - 1

    def theirs(method: str, norm: int) -> np.ndarray:
        return np.array([PROTEIN_ERRORS[name][method][norm] for name in PROTEIN_ERRORS])

    def best_of_paper(method: str) -> np.ndarray:
        return np.array([min(PROTEIN_ERRORS[name][method]) for name in PROTEIN_ERRORS])

    found = {
        f"{method}: error at p = ∞ less p = 1": (
            theirs(method, last) - theirs(method, 0),
            errors_of(part, method)[:, last] - errors_of(part, method)[:, 0],
        )
        for method in METHODS
    }
    found["error of MK-FDA less MK-SVM, best norms"] = (
        best_of_paper("MK-FDA") - best_of_paper("MK-SVM"),
        errors_of(part, "MK-FDA").min(axis=1) - errors_of(part, "MK-SVM").min(axis=1),
    )
    rows = []
    for label, both in found.items():
        error = standard_error(*((float(np.std(one, ddof=1)), len(one)) for one in both))
        means = (float(one.mean()) for one in both)
        row = PaperRow(
            "Yan et al. 2012",
            "Table 3",
            "MultiLoc",
            label,
            *means,
            error,
            lower_is_better=label.startswith("error"),
            same_data=False,
        )
        rows.append(row)
    return rows


# -- reports -------------------------------------------------------------------------------


def _mean(values: np.ndarray) -> str:
    """Mean and standard error."""
    if len(values) < 2:
        return f"{values.mean():.1f}"
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def error_table(part: dict[str, Any]) -> str:
    """Errors by norm, the paper's below."""
    rows = [
        ["MultiLoc", method, *(_mean(column) for column in errors_of(part, method).T)]
        for method in METHODS
    ]
    rows += [
        [f"{name} (paper)", method, *(f"{error:.2f}" for error in PROTEIN_ERRORS[name][method])]
        for name in PROTEIN_ERRORS
        for method in METHODS
    ]
    return markdown(["set", "method", *NORM_NAMES], rows, n_left=2)


def _correlation(one: Any, other: Any) -> str:
    """Rank correlation; none if all of one are equal."""
    if np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return "–"
    return f"{spearmanr(one, other).statistic:.2f}"


def order_table(part: dict[str, Any]) -> str:
    """Do errors grow with the norm as in the paper? Rank correlations over the ten norms."""
    rows = []
    for method in METHODS:
        ours = errors_of(part, method).mean(axis=0)
        own = [_correlation(np.arange(len(NORMS)), ours)]
        for name in PROTEIN_ERRORS:
            paper = PROTEIN_ERRORS[name][method]
            order = _correlation(np.arange(len(NORMS)), paper)
            own.append(f"{_correlation(ours, paper)} ({order})")
        best = NORM_NAMES[int(ours.argmin())]
        papers = [
            NORM_NAMES[int(np.argmin(PROTEIN_ERRORS[name][method]))] for name in PROTEIN_ERRORS
        ]
        rows.append([method, *own, best, ", ".join(papers)])
    header = ["method", "with the norm", *(f"with {name}" for name in PROTEIN_ERRORS)]
    return markdown([*header, "best norm", "of the paper"], rows)


def weight_table(part: dict[str, Any]) -> str:
    """Mean weights at three norms, of both methods."""
    places = [NORM_NAMES.index(name) for name in ("1", "8/7", "2")]
    columns = {
        f"{method}, p = {NORM_NAMES[place]}": part["methods"][method]["weights"][place]
        for method in METHODS
        for place in places
    }
    rows = [
        [name, *(f"{weights[j]:.3f}" for weights in columns.values())]
        for j, name in enumerate(part["kernels"])
    ]
    return markdown(["kernel", *columns], rows)


def summary(part: dict[str, Any]) -> str:
    """What the figures say, in sentences."""
    lines = []
    for method in METHODS:
        errors = errors_of(part, method)
        means = errors.mean(axis=0)
        best = int(means.argmin())
        lost = errors[:, -1] - errors[:, best]
        lines.append(
            f"- {method} is best at p = {NORM_NAMES[best]} ({means[best]:.1f}%). Equal weights "
            f"(p = ∞) lose {_mean(lost)} points to it. With the norm chosen on held-out training "
            f"proteins the error is {_mean(at_chosen_norm(part, method))}%."
        )
    chosen = at_chosen_norm(part, "MK-FDA") - at_chosen_norm(part, "MK-SVM")
    lines.append(f"- MK-FDA less MK-SVM: {_mean(chosen)} points at the norms chosen for each.")
    return "\n".join(lines)


def chosen_table(part: dict[str, Any]) -> str:
    """Medians of the λ and C that were chosen."""
    rows = []
    for method in METHODS:
        medians = np.median(part["methods"][method]["chosen"], axis=0)
        rows.append([f"{METHODS[method].parameter} of {method}", *(f"{v:.3g}" for v in medians)])
    return markdown(["median of", *NORM_NAMES], rows)


def page(results: Results) -> str:
    """The page of the documentation."""
    part = results["multiloc"]
    n_train, n_test = (round(size) for size in part["sizes"])
    seconds = ", ".join(
        f"{method} {part['methods'][method]['seconds']:.0f} s" for method in METHODS
    )
    n_splits = part["n_splits"]
    parts = [
        "# Where a protein is in a cell",
        "Written by `python -m benchmarks.protein --write`. Figures are 1 − mean MCC over "
        f"classes, in per cent, means and standard errors over {n_splits} splits.",
        environments(results),
        "The kernels of Yan et al. (2012), Table 3, are not available. This is the same "
        "question for other data: the 5959 proteins of MultiLoc (eleven places, of which the "
        "paper's sets have three to five), with "
        f"{len(part['kernels'])} kernels computed from the sequences by `Spectrum`, `Gapped`, "
        "`Mismatch` and `RBF` of compositions: of the whole protein, its first 60 and its last "
        "15 letters. So levels cannot be compared with the paper's; the order of the norms can.",
        f"Reductions: each of {n_splits} splits (seeds {SEED}, 0 to {n_splits - 1}) draws at most "
        f"{part['most_of_a_class']} proteins of a place, {n_train} for training and {n_test} for "
        f"testing; proteins of fewer than {SHORTEST} letters are left out. λ and C, of the "
        "paper's grids, are chosen for each norm on a fifth of the training proteins, of equal "
        "ones those that regularise most. The paper's splits are 30, of all proteins, and it does "
        "not say how λ was chosen.",
        "## Beside the paper",
        "Differences in points; the paper's are means over its four sets of proteins, and the "
        "standard error includes how these differ.",
        paper_table(paper_rows(results)),
        f"{counted(paper_rows(results))}.",
        "## Errors by norm",
        error_table(part),
        summary(part),
        "## The order of norms",
        "Rank correlations, over the ten norms, of mean errors here with the norm itself and with "
        "the paper's errors; in brackets that of the paper's errors with the norm.",
        order_table(part),
        "## What was chosen",
        chosen_table(part),
        "## Kernel weights",
        "Means over splits; for MK-SVM over classes, too. Each vector of weights sums to one.",
        weight_table(part),
        f"Mean seconds of the processor for a split: kernels {part['kernel_seconds']:.0f} s, "
        f"{seconds} (ten norms, nine λ or C, and ten fits).",
    ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("protein", "Norms on proteins, beside Yan et al. (2012).", ["multiloc"])
    parser.add_argument("--splits", type=int, default=SPLITS)
    options = parser.parse_args(arguments)
    data = load("multiloc", _data.multiloc)
    if data is None:
        return 1
    most, n_splits = (25, 2) if options.quick else (MOST_OF_A_CLASS, options.splits)
    found = run(*data, n_splits, most, NORMS)
    report("protein", {"multiloc": found}, page, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
