"""Results of :func:`~manykernels.compare`: cells, paired tests, tables and plots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import BaseEstimator, clone

from ..display.base import BLUE, GUIDE, VERMILION, bare, ink, named_ticks, pyplot, titled
from ..inspection.intervals import wilson, within_range
from ..kernels.tables import Table
from ..metrics import corrected_t_test
from ..metrics.classwise import in_use
from ..metrics.comparison import Split, combined_f_test, holm
from ..utils.folds import about_groups, lacking_class, with_classes
from ..utils.numerics import ACCUMULATED
from ..utils.sklearn import MultimetricScorer, groups_for, safe_split
from ..utils.versions import aligned, html, markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# -- One method on one split ----------------------------------------------------------------------


# Name of a score without a name, as in cross_validate.
_UNNAMED = "score"


@dataclass(frozen=True)
class Cell:
    """Result of one method on one split.

    Attributes
    ----------
    scores : dict of str to float
        Scores by name; empty if the method failed.
    unscored : dict of str to str
        Scores that could not be computed, with the reasons.
    fit_time, predict_time : float
        Seconds; the time of predictions includes their scoring.
    n_kernels, n_used : int or None
        Number of kernels, and of kernels with a weight in any weight vector.
    n_support : int or None
        Number of support vectors.
    rel_gap : float or None
        Relative duality gap, if there is a certificate.
    converged : bool or None
        Whether the solver converged, if there is a certificate.
    failure : str or None
        Error message of the method.
    """

    scores: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)
    fit_time: float = np.nan
    predict_time: float = np.nan
    n_kernels: int | None = None
    n_used: int | None = None
    n_support: int | None = None
    rel_gap: float | None = None
    converged: bool | None = None
    failure: str | None = None

    @classmethod
    def failed(cls, error: Exception) -> Cell:
        """Return the cell of a method that raised `error`."""
        return cls(failure=f"{type(error).__name__}: {error}")

    @property
    def trouble(self) -> str | None:
        """Message of the failure of the method or of scores, or None."""
        return _listed(self.unscored) or None if self.failure is None else self.failure


def measured(
    estimator: BaseEstimator,
    X: Table,
    y: ArrayLike,
    split: Split,
    scoring: Any,
    *,
    strict: bool,
    groups: np.ndarray | None = None,
) -> Cell:
    """Fit a clone of the estimator to the training rows, and score it on the test rows.

    `groups` are passed to the fit if it takes some. Errors of the fit are raised, and errors of
    scores if all scores fail or if `strict`. A fit that was interrupted, and kept its best model
    so far, raises KeyboardInterrupt.
    """
    train, test = split
    model = clone(estimator)
    X_train, y_train = safe_split(model, X, y, train)
    X_test, y_test = safe_split(model, X, y, test, train)
    start = perf_counter()
    model.fit(X_train, y_train, **groups_for(model, None if groups is None else groups[train]))
    fitted = perf_counter()
    learnt = _learnt_part(model)
    if getattr(learnt, "finished_", True) is False:
        raise KeyboardInterrupt
    scores, unscored = _scored(model, X_test, y_test, scoring, strict=strict)
    return Cell(
        scores,
        unscored,
        fit_time=fitted - start,
        predict_time=perf_counter() - fitted,
        **_weights(learnt),
        **_support(learnt),
        **_certificate(learnt),
    )


def _scored(
    model: BaseEstimator, X: Table, y: ArrayLike, scoring: Any, *, strict: bool
) -> tuple[dict[str, float], dict[str, str]]:
    """Return scores by name, and the reasons for scores that could not be computed."""
    unscored: dict[str, str] = {}
    classes, lacking = getattr(model, "classes_", None), ""
    if isinstance(classes, np.ndarray) and np.ndim(y) == 1:
        lacking = lacking_class(classes, np.asarray(y))
        scoring = _with_all_classes(scoring, classes)
    if callable(scoring):
        values = scoring(model, X, y)
        values = values if isinstance(values, dict) else {name_of(scoring): values}
    else:
        try:
            # Predictions are computed once for all scorers.
            values = MultimetricScorer(scorers=scoring)(model, X, y)
        except Exception:
            if strict or len(scoring) == 1:
                raise
            values = _one_by_one(model, X, y, scoring, unscored)
    scores = {}
    for name, score in values.items():
        if not isinstance(score, Real):
            raise TypeError(f"The scoring {name!r} must return a number, got {score!r}.")
        if np.isfinite(float(score)):
            scores[name] = float(score)
        else:
            unscored[name] = f"it is {float(score)}"
            if lacking:
                unscored[name] += f", perhaps because the test part {lacking}"
    if not scores:
        raise ValueError(_listed(unscored))
    return scores, unscored


def _with_all_classes(scoring: Any, classes: np.ndarray) -> Any:
    """Return the scorers with all classes of the model."""
    if not isinstance(scoring, dict):
        return with_classes(scoring, classes)
    return {name: with_classes(scorer, classes) for name, scorer in scoring.items()}


def _one_by_one(
    model: BaseEstimator, X: Table, y: ArrayLike, scorers: dict[str, Any], unscored: dict[str, str]
) -> dict[str, Any]:
    """Return the scores of the scorers that do not raise; enter the others in `unscored`."""
    scores = {}
    for name, scorer in scorers.items():
        try:
            scores[name] = scorer(model, X, y)
        except Exception as error:
            unscored[name] = f"{type(error).__name__}: {error}"
    return scores


def _listed(unscored: dict[str, str]) -> str:
    return "; ".join(f"no {name}: {message}" for name, message in unscored.items())


def name_of(scoring: object) -> str:
    """Return the name of a scoring function, or "score" as in scikit-learn."""
    return str(getattr(scoring, "__name__", _UNNAMED))


def _learnt_part(model: BaseEstimator) -> Any:
    """Return the model within pipelines and searches."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


def _weights(learnt: BaseEstimator) -> dict[str, Any]:
    names, weights = (getattr(learnt, name, None) for name in ("kernel_names_", "weights_"))
    if names is None or weights is None or np.shape(weights)[-1] != len(names):
        return {}
    used = in_use(np.asarray(weights, dtype=np.float64)).reshape(-1, len(names)).any(axis=0)
    return {"n_kernels": len(names), "n_used": int(np.count_nonzero(used))}


def _support(learnt: BaseEstimator) -> dict[str, Any]:
    support = getattr(learnt, "support_", None)
    # Feature selectors of scikit-learn have a mask of this name.
    if not hasattr(learnt, "dual_coef_") or not isinstance(support, np.ndarray):
        return {}
    return {"n_support": len(support)}


def _certificate(learnt: BaseEstimator) -> dict[str, Any]:
    certificate = getattr(learnt, "certificate_", None)
    if certificate is None or not hasattr(certificate, "rel_gap"):
        return {}
    return {"rel_gap": float(certificate.rel_gap), "converged": bool(certificate.converged)}


# -- Paired tests ---------------------------------------------------------------------------------


#: Designs of splits, and the test of each.
FIVE_BY_TWO, RESAMPLED = "5x2", "resampled"
_TESTS = {
    FIVE_BY_TWO: "combined 5×2 cv F test (Alpaydın 1999)",
    RESAMPLED: "corrected resampled t test (Nadeau and Bengio 2003)",
}
# Replications and folds of the 5×2 design.
_FIVE_BY_TWO = (5, 2)


@dataclass(frozen=True, repr=False)
class PairedTests:
    """Paired tests of all pairs of methods, returned by :meth:`Comparison.tests`.

    Attributes
    ----------
    names : list of str
        Names of the methods.
    scoring : str
        Name of the score.
    test : str
        Name of the test, or the reason why there is none.
    differences : ndarray of shape (n_methods, n_methods)
        Mean score of the method of the row minus that of the column, over the splits on which
        both have a score. NaN if there are none.
    p_values : ndarray of shape (n_methods, n_methods)
        Symmetric, 1 on the diagonal. NaN if there is no test.
    correction : str or None
        "holm" if p-values are corrected for the number of pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from manykernels import MKFDA, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> print(compare({"fda": MKFDA(), "guess": DummyClassifier()}, X, y).tests())
    accuracy, corrected resampled t test (Nadeau and Bengio 2003): p-values
    <BLANKLINE>
               fda   guess
    fda          –  <0.001
    guess   <0.001       –
    """

    names: list[str]
    scoring: str
    test: str
    differences: np.ndarray
    p_values: np.ndarray
    correction: str | None = None

    def __str__(self) -> str:
        """Return the matrix of p-values as a table."""
        rows = [["", *self.names]]
        for i, name in enumerate(self.names):
            shown = ["–" if i == j else shown_p(p) for j, p in enumerate(self.p_values[i])]
            rows.append([name, *shown])
        corrected = f", after Holm's correction for {self._n_pairs} pairs"
        title = f"{self.scoring}, {self.test}: p-values{corrected if self.correction else ''}"
        return f"{title}\n\n{aligned(rows)}"

    __repr__ = __str__

    @property
    def _n_pairs(self) -> int:
        n = len(self.names)
        return int(np.count_nonzero(~np.isnan(self.p_values[np.triu_indices(n, k=1)])))


def paired_tests(
    names: list[str],
    scores: np.ndarray,
    *,
    scoring: str,
    design: str,
    test_per_train: float,
    correction: str | None,
) -> PairedTests:
    """Test all pairs of rows of `scores` (n_methods, n_splits), NaN where unknown."""
    n_methods, n_splits = scores.shape
    p_values, differences = np.eye(n_methods), np.zeros((n_methods, n_methods))
    for i, j in zip(*np.triu_indices(n_methods, k=1), strict=True):
        of_splits = _differences(scores[i], scores[j])
        known = of_splits[~np.isnan(of_splits)]
        differences[i, j] = known.mean() if len(known) else np.nan
        differences[j, i] = -differences[i, j]
        p_values[i, j] = p_values[j, i] = _p_value(of_splits, known, design, test_per_train)
    if correction == "holm":
        upper = np.triu_indices(n_methods, k=1)
        p_values[upper] = holm(p_values[upper])
        p_values.T[upper] = p_values[upper]
    return PairedTests(
        names, scoring, name_of_test(design, n_splits), differences, p_values, correction
    )


def name_of_test(design: str, n_splits: int) -> str:
    """Return the name of the test, or the reason why there is none."""
    return _TESTS[design] if n_splits > 1 else "no paired test: there is only one split"


def _differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return ``first - second``, with zero where scores differ by rounding errors only."""
    difference = first - second
    size = np.maximum(np.abs(first), np.abs(second))
    difference[np.abs(difference) <= ACCUMULATED * size] = 0.0
    return difference


def _p_value(
    differences: np.ndarray, known: np.ndarray, design: str, test_per_train: float
) -> float:
    if design == FIVE_BY_TWO:
        complete = len(known) == len(differences)
        return combined_f_test(known.reshape(_FIVE_BY_TWO)).pvalue if complete else np.nan
    return corrected_t_test(known, test_per_train).pvalue if len(known) > 1 else np.nan


def shown_p(p: float) -> str:
    """Format a p-value with three digits."""
    if np.isnan(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


# -- Plot -----------------------------------------------------------------------------------------


# Half the height of the band of the splits of a method; methods have the distance one.
_BAND = 0.36


def draw(result: Comparison, ax: Axes | None, scoring: str) -> Axes:
    """Draw a line per method, with a ring for each split, the mean and its interval.

    A split has the same height in all lines. The mean of the best method, or of the reference,
    has another colour and a vertical line.
    """
    n_methods = len(result.names)
    if ax is None:
        # 0.42 inches per method, and room for title and axis.
        _, ax = pyplot().subplots(figsize=(7.0, 1.3 + 0.42 * n_methods), layout="constrained")
    scores, means = result.scores(scoring), result.means(scoring)
    intervals = result.intervals(scoring)
    marked = result.names.index(result.reference or result._best(scoring))
    n_splits = scores.shape[1]
    heights = np.linspace(-_BAND, _BAND, n_splits) if n_splits > 1 else np.zeros(1)
    for i in range(n_methods):
        color = VERMILION if i == marked else BLUE
        ax.plot(scores[i], i + heights, "o", markersize=3.5, mfc="none", mec=ink(ax), alpha=0.4)
        ax.hlines(i, *intervals[i], color=color, linewidth=2.2, zorder=3)
        ax.plot(means[i], i, "D" if i == marked else "o", color=color, markersize=6.5, zorder=4)
    ax.axvline(means[marked], color=VERMILION, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    ax.set_ylim(n_methods - 0.5, -0.5)
    named_ticks(ax, "y", range(n_methods), result.names)
    ax.grid(axis="x", **GUIDE)
    bare(ax, "bottom")
    which = "reference" if result.reference else "best"
    titled(ax, f"{scoring}: splits, mean and 95% interval ({which}: diamond)")
    return ax


#: Significance level of the marks in the table.
SIGNIFICANT = 0.05
# Largest number of characters of an error message in a table; `failures` has the full message.
_MESSAGE = 200


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results of methods on the same splits, returned by :func:`~manykernels.compare`.

    Attributes
    ----------
    names : list of str
        Names of the methods.
    scorings : list of str
        Names of the scores; larger is better. The first is tested and drawn by default.
    splits : list of (train, test)
        Row indices, as for ``cv`` of scikit-learn.
    design : {"5x2", "resampled"}
        Design of the splits, which determines the test.
    cells : dict of (str, int) to Cell
        Results by the name of the method and the index of the split. After an interruption some
        are missing.
    reference : str or None
        Method that the others are tested against; None for the best.
    ranges : dict of str to (float, float)
        Smallest and largest possible value of a score, if known.
    groups : ndarray of int, (n_samples,), or None
        Numbers of the groups of samples that no split divides; None if no groups were passed.
    """

    names: list[str]
    scorings: list[str]
    splits: list[Split] = field(repr=False)
    design: str
    cells: dict[tuple[str, int], Cell] = field(repr=False)
    reference: str | None = None
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    groups: np.ndarray | None = field(default=None, repr=False)

    # -- numbers -----------------------------------------------------------------------------

    def scores(self, scoring: str | None = None) -> np.ndarray:
        """Return the scores of all methods on all splits, (n_methods, n_splits); NaN if none."""
        name = self._checked_scoring(scoring)
        return self._of_cells(lambda cell: cell.scores.get(name, np.nan))

    def means(self, scoring: str | None = None) -> np.ndarray:
        """Return the mean score of each method over its splits with a score, (n_methods,)."""
        return _over_splits(np.mean, self.scores(scoring))

    def intervals(self, scoring: str | None = None, confidence: float = 0.95) -> np.ndarray:
        """Return intervals of the mean scores, (n_methods, 2); NaN for fewer than two scores.

        They are Student's intervals with the variance of Nadeau and Bengio (2003), which takes the
        overlap of training sets into account. If the range of a score is known, such as [0, 1] of
        an accuracy, intervals stay in it: with one bound they are those of the logarithm of the
        distance from it, with two bounds Wilson's for a share with the same variance, or, if all
        scores are equal, with the number of test samples or of their groups.
        """
        name = self._checked_scoring(scoring)
        table = self.scores(name)
        known = table[np.isfinite(table)]
        least, most = self.ranges.get(name, (-np.inf, np.inf))
        if ((known < least) | (known > most)).any():  # its function has options of its own
            least, most = -np.inf, np.inf
        intervals = np.full((len(table), 2), np.nan)
        for i, row in enumerate(table):
            scores = row[np.isfinite(row)]
            if len(scores) > 1:
                error = corrected_t_test(scores, self.test_per_train).error
                quantile = float(stats.t.isf((1.0 - confidence) / 2.0, len(scores) - 1))
                intervals[i] = within_range(float(scores.mean()), error, quantile, least, most)
                if error == 0.0 and np.isfinite([least, most]).all():
                    # Equal scores, such as no errors at all: the interval of a share of as many
                    # test samples.
                    n_test = np.mean([self._n_independent(test) for _, test in self.splits])
                    n = float(n_test / (1.0 / len(scores) + self.test_per_train))
                    span = most - least
                    ends = wilson((scores.mean() - least) / span, n, quantile)
                    intervals[i] = least + span * np.array(ends)
        return intervals

    def _n_independent(self, rows: np.ndarray) -> int:
        """Return the number of groups of some rows, or of the rows if there are no groups."""
        return len(rows) if self.groups is None else len(np.unique(self.groups[rows]))

    @property
    def n_train(self) -> np.ndarray:
        """Number of training samples of each split."""
        return np.array([len(train) for train, _ in self.splits])

    @property
    def test_per_train(self) -> float:
        """Ratio of the numbers of test samples and training samples."""
        return float(sum(len(test) for _, test in self.splits) / self.n_train.sum())

    @property
    def failures(self) -> dict[tuple[str, int], str]:
        """Error messages of methods and scores, by method and split."""
        troubles = {place: cell.trouble for place, cell in self.cells.items()}
        return {place: trouble for place, trouble in troubles.items() if trouble is not None}

    @property
    def finished(self) -> bool:
        """Whether all cells were computed."""
        return len(self.cells) == len(self.names) * len(self.splits)

    @property
    def best(self) -> str:
        """Method with the best mean score, among those that failed on no split, if any."""
        return self._best(None)

    def _best(self, scoring: str | None) -> str:
        scores = self.scores(scoring)
        means = self.means(scoring)
        complete = np.isfinite(scores).all(axis=1)
        candidates = np.where(complete, means, np.nan) if complete.any() else means
        if np.isnan(candidates).all():
            return self.names[0]
        return self.names[int(np.nanargmax(candidates))]

    # -- tests -------------------------------------------------------------------------------

    def tests(self, scoring: str | None = None, *, correction: str | None = None) -> PairedTests:
        """Test all pairs of methods, over the splits on which both have a score.

        The test is the combined 5×2 cv F test for ``cv="5x2"``, else the corrected resampled t
        test.

        Parameters
        ----------
        scoring : str, optional
            Score to compare; the first by default.
        correction : {"holm", None}, default=None
            Whether p-values are corrected for the number of pairs.
        """
        if correction not in ("holm", None):
            raise ValueError(f'correction must be "holm" or None, got {correction!r}.')
        name = self._checked_scoring(scoring)
        scores = self.scores(name)
        return paired_tests(
            self.names,
            scores,
            scoring=name,
            design=self.design,
            test_per_train=self.test_per_train,
            correction=correction,
        )

    @property
    def p_values(self) -> np.ndarray:
        """p-values of :meth:`tests`, without a correction, (n_methods, n_methods)."""
        return self.tests().p_values

    def versus(self, reference: str | None) -> Comparison:
        """Return the comparison with tests against `reference`; None for the best method."""
        if reference is not None and reference not in self.names:
            raise ValueError(
                f"There is no method {reference!r}; the methods are {', '.join(self.names)}."
            )
        return replace(self, reference=reference)

    def _against(self, scoring: str | None = None) -> tuple[str, np.ndarray]:
        """Return the reference, and p-values of the others with Holm's correction."""
        reference = self._best(scoring) if self.reference is None else self.reference
        row = self.tests(scoring).p_values[self.names.index(reference)].copy()
        row[self.names.index(reference)] = np.nan
        return reference, holm(row)

    # -- tables ------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each method, whose keys are the columns of :meth:`to_frame`.

        ``p_value`` is against the reference, or the best, with Holm's correction. Kernels,
        support vectors and times are means over the splits, ``rel_gap`` is the largest.
        """
        columns: dict[str, np.ndarray] = {}
        for scoring in self.scorings:
            columns[scoring] = self.means(scoring)
            columns[f"{scoring}_sd"] = _over_splits(_deviation, self.scores(scoring))
        columns["p_value"] = self._against()[1]
        support = self._of_cells(lambda cell: cell.n_support)
        means = {
            "n_used": self._of_cells(lambda cell: cell.n_used),
            "n_kernels": self._of_cells(lambda cell: cell.n_kernels),
            "n_support": support,
            "support_share": support / self.n_train,
            "fit_time": self._of_cells(lambda cell: cell.fit_time),
            "predict_time": self._of_cells(lambda cell: cell.predict_time),
        }
        columns |= {name: _over_splits(np.mean, values) for name, values in means.items()}
        columns["rel_gap"] = _over_splits(np.max, self._of_cells(lambda cell: cell.rel_gap))
        failed = [method for method, _ in self.failures]
        return [
            {
                "method": name,
                **{key: float(column[i]) for key, column in columns.items()},
                "n_failed": failed.count(name),
                "n_splits": sum(method == name for method, _ in self.cells),
            }
            for i, name in enumerate(self.names)
        ]

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per method. Without pandas, use :meth:`rows`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas; rows() returns the same values without it."
            ) from error
        return pd.DataFrame(self.rows()).set_index("method")

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and cells, without columns that are empty for all methods."""
        rows = self.rows()
        columns = {"method": [row["method"] for row in rows]}
        columns |= {name: [_score(row, name) for row in rows] for name in self.scorings}
        reference, _ = self._against()
        columns["p"] = [_marked(row["p_value"]) for row in rows]
        if any(columns["p"]):
            word = "best" if self.reference is None else "reference"
            columns["p"][self.names.index(reference)] = word
        columns["kernels"] = [_used(row) for row in rows]
        columns["support vectors"] = [_share(row["support_share"]) for row in rows]
        columns["fit, s"] = [_seconds(row["fit_time"]) for row in rows]
        columns["predict, s"] = [_seconds(row["predict_time"]) for row in rows]
        columns["gap"] = [_gap(row["rel_gap"]) for row in rows]
        columns["failed"] = [f"{row['n_failed']}" if row["n_failed"] else "" for row in rows]
        optional = ("p", "kernels", "support vectors", "gap", "failed")
        shown = {
            name: cells for name, cells in columns.items() if name not in optional or any(cells)
        }
        return list(shown), [list(cells) for cells in zip(*shown.values(), strict=True)]

    def _notes(self) -> list[str]:
        """Return the notes below the table."""
        notes = [f"± standard deviation over {self._described_splits()}."]
        if self.groups is not None and (kept := about_groups(self.groups, given=True)):
            notes.append(f"{kept}.")
        reference, p_values = self._against()
        n_tests = int(np.count_nonzero(~np.isnan(p_values)))
        if len(self.splits) == 1:
            notes.append(f"{name_of_test(self.design, 1).capitalize()}.")
        elif n_tests:
            role = "the best" if self.reference is None else "the reference"
            corrected = f", after Holm's correction for {n_tests} tests" if n_tests > 1 else ""
            notes.append(
                f"p: {self.scorings[0]} against {reference}, {role}, by the "
                f"{name_of_test(self.design, len(self.splits))}{corrected}; * below {SIGNIFICANT}."
            )
        if not self.finished:
            total = len(self.names) * len(self.splits)
            notes.append(f"Interrupted: {len(self.cells)} of {total} cells are finished.")
        return notes + self._described_failures() + self._uncertified()

    def _described_splits(self) -> str:
        if self.design == FIVE_BY_TWO:
            return "five replications of two folds"
        number = len(self.splits)
        return "one split" if number == 1 else f"{number} splits"

    def _described_failures(self) -> list[str]:
        """Return a sentence for each method that failed."""
        return [
            f"{name} failed on {self._listed(splits)}: {message}"
            for name, splits, message in self.failures_by_method()
        ]

    def _listed(self, splits: list[int]) -> str:
        if len(splits) == len(self.splits):
            return "all splits"
        return f"split{'s'[: len(splits) > 1]} {', '.join(map(str, splits))}"

    def failures_by_method(self) -> list[tuple[str, list[int], str]]:
        """Return methods that failed, with their splits and the first error message, cut."""
        messages: dict[str, dict[int, str]] = {}
        for (name, split), message in sorted(self.failures.items(), key=lambda item: item[0][1]):
            messages.setdefault(name, {})[split] = message
        return [
            (name, list(messages[name]), _cut(next(iter(messages[name].values()))))
            for name in self.names
            if name in messages
        ]

    def _uncertified(self) -> list[str]:
        lines = []
        for name in self.names:
            known = [cell for (method, _), cell in self.cells.items() if method == name]
            number = sum(cell.converged is False for cell in known)
            if number:
                lines.append(
                    f"{name}: no certificate of convergence on {number} of {len(known)} splits."
                )
        return lines

    def __str__(self) -> str:
        """Return the table with its notes."""
        header, cells = self._table()
        return "\n".join([aligned([header, *cells]), "", *self._notes()])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Return the table with its notes in Markdown."""
        header, cells = self._table()
        # Asterisks would mark emphasis.
        notes = [note.replace("*", r"\*") for note in self._notes()]
        cells = [[cell.replace("*", r"\*") for cell in row] for row in cells]
        return "\n\n".join([markdown(header, cells), *notes])

    def to_html(self) -> str:
        """Return the table with its notes in HTML, with escaped text."""
        return html(*self._table(), self._notes())

    _repr_html_ = to_html

    def plot(self, ax: Axes | None = None, scoring: str | None = None) -> Axes:
        """Draw the scores of all splits, and their means with 95% intervals.

        Needs matplotlib, ``pip install manykernels[report]``.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        scoring : str, optional
            Score to draw; the first by default.
        """
        return draw(self, ax, self._checked_scoring(scoring))

    # -- parts -------------------------------------------------------------------------------

    def _checked_scoring(self, scoring: str | None) -> str:
        if scoring is None:
            return self.scorings[0]
        if scoring not in self.scorings:
            raise ValueError(
                f"There is no scoring {scoring!r}; choose one of {', '.join(self.scorings)}."
            )
        return scoring

    def _of_cells(self, number: Callable[[Cell], float | None]) -> np.ndarray:
        """Return a number of each cell, (n_methods, n_splits); NaN where it is None."""
        table = np.full((len(self.names), len(self.splits)), np.nan)
        for (name, split), cell in self.cells.items():
            value = number(cell)
            table[self.names.index(name), split] = np.nan if value is None else value
        return table


def _over_splits(summary: Callable[[np.ndarray], Any], table: np.ndarray) -> np.ndarray:
    """Apply `summary` to the finite numbers of each row; NaN if there are none."""
    rows = [row[np.isfinite(row)] for row in table]
    return np.array([float(summary(row)) if len(row) else np.nan for row in rows])


def _deviation(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


# -- formatting ------------------------------------------------------------------------------


def _score(row: dict[str, Any], name: str) -> str:
    mean, deviation = row[name], row[f"{name}_sd"]
    if np.isnan(mean):
        return "–"
    return f"{mean:.3f}" if np.isnan(deviation) else f"{mean:.3f} ± {deviation:.3f}"


def _marked(p: float) -> str:
    return shown_p(p) + ("*" if p < SIGNIFICANT else "")


def _used(row: dict[str, Any]) -> str:
    if np.isnan(row["n_used"]):
        return ""
    return f"{round(row['n_used'], 1):g} of {round(row['n_kernels'], 1):g}"


def _share(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.0%}"


def _seconds(seconds: float) -> str:
    return "–" if np.isnan(seconds) else f"{seconds:.2g}" if seconds < 100 else f"{seconds:.0f}"


def _gap(gap: float) -> str:
    # A gap is negative by rounding errors only.
    return "" if np.isnan(gap) else f"{max(gap, 0.0):.0e}"


def _cut(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MESSAGE else f"{line[: _MESSAGE - 1]}…"
