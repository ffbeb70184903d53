"""Nothing set by hand: our defaults on views and tables, beside what others do with a grid.

    python -m benchmarks.defaults [--quick] [--sets mfeat,sonar] [--write]

Each data set, at most 1200 rows of it, is cut into halves at random five times, classes in equal
parts: one half to learn from, one to be judged on. Ours learn from the views as they are, with
the kernels of ``auto_kernels`` and all other parameters at their defaults; *plain sum* is the
same with p = ∞, where every kernel has the same weight. The others are given all columns side by
side: a Gaussian SVC (C and γ by five folds) and logistic regression (C by five folds) on
standardised columns, or on tf-idf of words; gradient boosting as scikit-learn has it, given only
words that occur in ten training texts; for regression SVR and ridge.

A difference is that of the best of ours and the best of theirs, each by its mean over the test
halves; ± is the standard error of its mean over the five divisions. Since divisions share rows,
p-values are those of the corrected resampled t-test (Nadeau and Bengio, 2003). Seconds are those
of the processor, with one thread, choice of parameters included.

Which kernels are the default was decided by test accuracy on most of these data sets, with 100 to
450 training rows: on data that had no part in it, ours may do a little worse.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks._command import command_line, load, write_page
from benchmarks._contenders import CLASSIFIERS, REGRESSORS, Contender, Score, measure
from benchmarks._default_sets import SETS
from benchmarks._tables import environment, markdown, verdict
from manykernels.metrics import corrected_t_test

ROWS, ROWS_QUICK = 1200, 200
SPLITS, SPLITS_QUICK = 5, 2
MOST_BEHIND = 1.0  # points


@dataclass
class Results:
    """Scores on one data set, by contender, one for every division."""

    name: str
    n_train: int
    n_classes: int | None
    n_views: int
    scores: dict[Contender, list[Score]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return SETS[self.name].title

    def values(self, contender: Contender, which: str = "score") -> np.ndarray:
        """Accuracies or R² in points, log losses, or seconds."""
        found = np.array([getattr(score, which) for score in self.scores[contender]])
        return 100.0 * found if which == "score" else found

    def best(self, *, ours: bool) -> Contender:
        """The contender of one side with the best mean score."""
        side = [contender for contender in self.scores if contender.ours == ours]
        return max(side, key=lambda contender: self.values(contender).mean())

    @property
    def differences(self) -> np.ndarray:
        """The best of ours minus the best of theirs, in points, for every division."""
        return self.values(self.best(ours=True)) - self.values(self.best(ours=False))


def measured(name: str, n_rows: int, n_splits: int) -> Results | None:
    """All contenders on one data set; None if it is not there."""
    data = SETS[name]
    loaded = load(name, data.loader)
    if loaded is None:
        return None
    tables, y = loaded
    splits = data.splits(y, n_rows, n_splits)
    n_classes = None if data.regression else len(np.unique(y))
    results = Results(name, len(splits[0][0]), n_classes, len(tables))
    for contender in REGRESSORS if data.regression else CLASSIFIERS:
        scores = [measure(contender, tables, y, *split) for split in splits]
        results.scores[contender] = scores
        found = results.values(contender).mean()
        print(f"{data.title}, {contender.name}: {found:.1f}", file=sys.stderr)
    return results


def standard_error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def corrected_pvalue(differences: np.ndarray) -> float:
    """Of the resampled t-test; training and test parts are halves."""
    return corrected_t_test(differences, 1.0).pvalue


# -- the page ------------------------------------------------------------------------------


def summary(results: list[Results]) -> str:
    """A row per data set: the best of ours beside the best of theirs."""
    header = ["", "views", "best of ours", "", "best of theirs", "", "difference", "p", "verdict"]
    rows = []
    for one in results:
        ours, theirs, gaps = one.best(ours=True), one.best(ours=False), one.differences
        rows.append(
            [
                one.title.split(",")[0],
                str(one.n_views),
                ours.name,
                f"{one.values(ours).mean():.1f}",
                theirs.name,
                f"{one.values(theirs).mean():.1f}",
                f"{gaps.mean():+.1f} ± {standard_error(gaps):.1f}",
                f"{corrected_pvalue(gaps):.2f}",
                verdict(gaps.mean() >= -MOST_BEHIND),
            ]
        )
    return markdown(header, rows)


def verdicts(results: list[Results]) -> list[str]:
    """What was asked for, and whether it holds."""
    behind = [one.title for one in results if one.differences.mean() < -MOST_BEHIND]
    several = [one for one in results if one.n_views > 1]
    ahead = [one for one in several if one.differences.mean() > standard_error(one.differences)]
    most = 2 * len(ahead) > len(several)
    lines = [
        f"more than one point behind the best of theirs: {', '.join(behind) or 'nowhere'} "
        f"(asked for nowhere: {verdict(not behind)})"
    ]
    if several:
        lines.append(
            f"ahead by more than a standard error on {len(ahead)} of {len(several)} sets of "
            f"several views (asked for most: {verdict(most)})"
        )
    return lines


def table(one: Results) -> str:
    """Markdown table of one data set, a row per contender."""
    classes = one.n_classes is not None
    reference = one.values(one.best(ours=False), "seconds").mean()
    header = ["", "accuracy, %" if classes else "R², %"]
    header += ["log loss"] * classes + ["fit, s", "times the best of theirs"]
    rows = []
    for contender in one.scores:
        values, seconds = one.values(contender), one.values(contender, "seconds").mean()
        row = [contender.name, f"{values.mean():.1f} ± {standard_error(values):.1f}"]
        if classes:
            row.append(f"{one.values(contender, 'log_loss').mean():.3f}")
        rows.append([*row, f"{seconds:.2g}", f"{float(f'{seconds / reference:.2g}'):g}"])
    return markdown(header, rows)


def page(results: list[Results], command: str) -> str:
    """The page of the documentation."""
    _, _, *paragraphs = (__doc__ or "").strip().replace("``", "`").split("\n\n")
    protocol = "\n\n".join(part.replace("\n", " ") for part in paragraphs)
    parts = [
        "# Nothing set by hand",
        f"Written by `{command}`. {protocol}",
        environment(),
        "\n".join(f"- {line}" for line in verdicts(results)),
        summary(results),
    ]
    for one in results:
        classes = "regression" if one.n_classes is None else f"{one.n_classes} classes"
        parts += [f"## {one.title}", f"{one.n_train} training rows, {classes}.", table(one)]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("defaults", "Our defaults beside tuned methods of others.", list(SETS))
    options = parser.parse_args(arguments)
    n_rows, n_splits = (ROWS_QUICK, SPLITS_QUICK) if options.quick else (ROWS, SPLITS)
    chosen = [name for name in SETS if name in options.sets]
    results: list[Any] = [measured(name, n_rows, n_splits) for name in chosen]
    results = [one for one in results if one is not None]
    if not results:
        return 1
    text = page(results, "python -m benchmarks.defaults --write")
    print(text)
    if options.write:
        write_page("defaults", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
