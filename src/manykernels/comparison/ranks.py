"""Ranking of methods over several data sets: Friedman's and Nemenyi's tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from ..utils.versions import aligned, markdown
from .result import Comparison, shown_p

# Least number of methods for Friedman's test.
_LEAST_METHODS = 3


@dataclass(frozen=True, repr=False)
class Ranking:
    """Ranks of methods over data sets, returned by :func:`rank_methods`.

    Attributes
    ----------
    names : list of str
        Methods that are in all comparisons.
    sets : list of str
        Names of the data sets.
    ranks : ndarray of shape (n_sets, n_methods)
        1 for the best method of a set; tied methods have the mean of their ranks.
    statistic, p_value : float
        Friedman's test of the hypothesis that all methods are equally good; NaN for fewer than
        three methods or fewer than two sets.
    critical_difference : float
        Nemenyi's critical difference: methods whose mean ranks differ by more are significantly
        different at level `alpha`, simultaneously for all pairs.
    alpha : float
        Significance level.
    left_out : dict of str to list of str
        Methods that are not in all comparisons, with their data sets.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.comparison.ranks import Ranking
    >>> ranks = np.array([[1.0, 2.0], [1.0, 2.0]])
    >>> Ranking(["a", "b"], ["x", "y"], ranks, np.nan, np.nan, 1.39).mean_ranks
    array([1., 2.])
    """

    names: list[str]
    sets: list[str]
    ranks: np.ndarray = field(repr=False)
    statistic: float
    p_value: float
    critical_difference: float
    alpha: float = 0.05
    left_out: dict[str, list[str]] = field(default_factory=dict)

    @property
    def mean_ranks(self) -> np.ndarray:
        """Mean rank of each method over the data sets, (n_methods,)."""
        return self.ranks.mean(axis=0)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows, the best method first; methods that are worse have a mark."""
        means = self.mean_ranks
        order = np.argsort(means, kind="stable")
        header = ["method", "mean rank", "behind", *self.sets]
        rows = []
        for j in order:
            behind = means[j] - means[order[0]]
            mark = "*" if behind > self.critical_difference else ""
            ranks = [f"{round(rank, 1):g}" for rank in self.ranks[:, j]]
            rows.append([self.names[j], f"{means[j]:.2f}", f"{behind:.2f}{mark}", *ranks])
        return header, rows

    def _notes(self) -> list[str]:
        notes = [
            f"* more than the critical difference of Nemenyi, {self.critical_difference:.2f} "
            f"(level {self.alpha:g}, {len(self.sets)} data sets)."
        ]
        if np.isnan(self.p_value):
            notes.append("Friedman's test needs three methods and two data sets.")
        else:
            p = shown_p(self.p_value)
            p = p if p.startswith("<") else f"= {p}"
            notes.append(f"Friedman's test: χ² = {self.statistic:.2f}, p {p}.")
        for name, sets in self.left_out.items():
            notes.append(f"{name} is not ranked: it was compared on {', '.join(sets)} only.")
        return notes

    def __str__(self) -> str:
        """Return the table of ranks with its notes."""
        header, rows = self._table()
        return "\n".join([aligned([header, *rows]), "", *self._notes()])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Return the table with its notes in Markdown."""
        header, rows = self._table()
        rows = [[cell.replace("*", r"\*") for cell in row] for row in rows]
        return "\n\n".join(
            [markdown(header, rows), *(note.replace("*", r"\*") for note in self._notes())]
        )


def rank_methods(
    comparisons: Mapping[str, Comparison] | Iterable[Comparison],
    *,
    scoring: str | None = None,
    alpha: float = 0.05,
) -> Ranking:
    """Rank methods over data sets, and test whether they differ (Demšar 2006).

    Friedman's test is whether any of k methods differ on N sets. By Nemenyi's test, two methods
    differ if their mean ranks differ by more than

        q_α √(k(k + 1)/(6N)) ,

    where q_α is the quantile of the studentised range of k means, divided by √2.

    Parameters
    ----------
    comparisons : dict of str to Comparison, or list of Comparison
        A comparison for each data set. Methods are identified by their names.
    scoring : str, optional
        Name of the score; the first of each comparison by default.
    alpha : float in (0, 1), default=0.05
        Significance level of the critical difference.

    Returns
    -------
    ranking : Ranking
        A method that failed on a split of a data set is ranked last on this set. Methods that are
        not in all comparisons are not ranked; see ``left_out``.

    References
    ----------
    J. Demšar. Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris, load_wine
    >>> from sklearn.dummy import DummyClassifier
    >>> from manykernels import MKFDA, compare
    >>> from manykernels.comparison import rank_methods
    >>> methods = {"fda": MKFDA(), "guess": DummyClassifier()}
    >>> sets = {"iris": load_iris, "wine": load_wine}
    >>> results = {
    ...     name: compare(methods, *load(return_X_y=True), cv=3) for name, load in sets.items()
    ... }
    >>> print(rank_methods(results))
    method  mean rank  behind  iris  wine
    fda          1.00    0.00     1     1
    guess        2.00    1.00     2     2
    <BLANKLINE>
    * more than the critical difference of Nemenyi, 1.39 (level 0.05, 2 data sets).
    Friedman's test needs three methods and two data sets.
    """
    by_set = _by_name(comparisons)
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, such as 0.05; got {alpha!r}.")
    methods = list(dict.fromkeys(name for result in by_set.values() for name in result.names))
    sets = {
        name: [key for key, result in by_set.items() if name in result.names] for name in methods
    }
    names = [name for name in methods if len(sets[name]) == len(by_set)]
    if len(names) < 2:
        raise ValueError(
            f"Ranking needs at least two methods that are in all comparisons; there are "
            f"{len(names)} of {len(methods)}."
        )
    ranks = np.array([_ranks(result, names, scoring) for result in by_set.values()])
    n_sets, k = ranks.shape
    quantile = float(stats.studentized_range.ppf(1.0 - alpha, k, np.inf)) / np.sqrt(2.0)
    return Ranking(
        names,
        list(by_set),
        ranks,
        *_friedman(ranks),
        float(quantile * np.sqrt(k * (k + 1) / (6.0 * n_sets))),
        alpha,
        {name: sets[name] for name in methods if name not in names},
    )


def _by_name(
    comparisons: Mapping[str, Comparison] | Iterable[Comparison],
) -> dict[str, Comparison]:
    if isinstance(comparisons, Mapping):
        by_name = {str(name): result for name, result in comparisons.items()}
    else:
        by_name = {f"set {i}": result for i, result in enumerate(comparisons, 1)}
    for name, result in by_name.items():
        if not isinstance(result, Comparison):
            raise TypeError(f"{name} is a {type(result).__name__}, not a result of compare.")
    if not by_name:
        raise ValueError("comparisons is empty: pass at least one result of compare.")
    return by_name


def _ranks(result: Comparison, names: list[str], scoring: str | None) -> np.ndarray:
    """Return the ranks of methods on a data set; methods that failed are last."""
    rows = [result.names.index(name) for name in names]
    complete = np.isfinite(result.scores(scoring)).all(axis=1)
    means = result.means(scoring)
    # Equal means may differ in their last digits, by the order of the splits.
    if complete.any() and (size := np.abs(means[complete]).max()) > 0.0:
        means = size * np.round(means / size, 12)
    known = np.where(complete, means, -np.inf)[rows]
    ranks: np.ndarray = stats.rankdata(-known, method="average")
    return ranks


def _friedman(ranks: np.ndarray) -> tuple[float, float]:
    n_sets, k = ranks.shape
    if k < _LEAST_METHODS or n_sets < 2:
        return np.nan, np.nan
    if (np.ptp(ranks, axis=1) == 0.0).all():
        return 0.0, 1.0
    test = stats.friedmanchisquare(*ranks.T)
    return float(test.statistic), float(test.pvalue)
