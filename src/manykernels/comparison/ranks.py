"""Methods over several data sets: average ranks, Friedman's test, Nemenyi's distance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from ..utils.versions import aligned, markdown
from .result import Comparison, shown_p

# Friedman's statistic needs as many methods.
_LEAST_METHODS = 3


@dataclass(frozen=True, repr=False)
class Ranking:
    """Ranks of methods over data sets; made by :func:`rank_methods`.

    Attributes
    ----------
    names : list of str
        Methods that are in all comparisons.
    sets : list of str
        Names of the data sets.
    ranks : ndarray of shape (n_sets, n_methods)
        1 for the best method of a set; equal methods share the mean of their ranks.
    statistic, p_value : float
        Of Friedman's test that all methods are equally good; NaN with less than three methods
        or less than two sets.
    critical_difference : float
        Nemenyi's: mean ranks that differ by more belong to methods that differ, at level `alpha`,
        for all pairs at once.
    alpha : float
    left_out : dict of str to list of str
        Methods that are not in all comparisons, with the sets on which they are.

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
        """The best method first; a mark for those that are not clearly worse than it."""
        means = self.mean_ranks
        order = np.argsort(means, kind="stable")
        header = ["method", "mean rank", "behind", *self.sets]
        rows = []
        for j in order:
            behind = means[j] - means[order[0]]
            mark = "*" if behind > self.critical_difference else ""
            own = [f"{round(rank, 1):g}" for rank in self.ranks[:, j]]
            rows.append([self.names[j], f"{means[j]:.2f}", f"{behind:.2f}{mark}", *own])
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
            notes.append(f"{name} is not ranked: it is on {', '.join(sets)} only.")
        return notes

    def __str__(self) -> str:
        """The table of ranks, and what has to be known about it."""
        header, rows = self._table()
        return "\n".join([aligned([header, *rows]), "", *self._notes()])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """The table and its notes in Markdown."""
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
    """Average ranks of methods over data sets, and whether they differ (Demšar 2006).

    With k methods on N sets and mean ranks R_j, Friedman's statistic tells whether any differ.
    Two methods differ by Nemenyi's test where their mean ranks do by more than

        q_α √(k(k + 1)/(6N)) ,

    q_α being the quantile of the studentised range of k means over √2.

    Parameters
    ----------
    comparisons : dict of str to Comparison, or list of Comparison
        One for each data set. Methods are the same if they have the same name.
    scoring : str, optional
        Name of the score; the first of each comparison by default.
    alpha : float in (0, 1), default=0.05
        Level of the critical difference.

    Returns
    -------
    ranking : Ranking
        A method that failed on a split of a data set is ranked last on this set. Methods that are
        not in all comparisons are not ranked, see ``left_out``.

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
    named = _named(comparisons)
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, such as 0.05; got {alpha!r}.")
    every = list(dict.fromkeys(name for one in named.values() for name in one.names))
    on = {name: [key for key, one in named.items() if name in one.names] for name in every}
    names = [name for name in every if len(on[name]) == len(named)]
    if len(names) < 2:
        raise ValueError(
            f"Ranks need two methods that are in all comparisons; there are {len(names)} of "
            f"{len(every)}."
        )
    ranks = np.array([_ranks(one, names, scoring) for one in named.values()])
    n_sets, k = ranks.shape
    quantile = float(stats.studentized_range.ppf(1.0 - alpha, k, np.inf)) / np.sqrt(2.0)
    return Ranking(
        names,
        list(named),
        ranks,
        *_friedman(ranks),
        float(quantile * np.sqrt(k * (k + 1) / (6.0 * n_sets))),
        alpha,
        {name: on[name] for name in every if name not in names},
    )


def _named(comparisons: Any) -> dict[str, Comparison]:
    if isinstance(comparisons, Mapping):
        named = {str(name): one for name, one in comparisons.items()}
    else:
        named = {f"set {i}": one for i, one in enumerate(comparisons, 1)}
    for name, one in named.items():
        if not isinstance(one, Comparison):
            raise TypeError(f"{name} is a {type(one).__name__}, not the result of compare.")
    if not named:
        raise ValueError("There are no comparisons to rank methods by.")
    return named


def _ranks(one: Comparison, names: list[str], scoring: str | None) -> np.ndarray:
    """Ranks of some methods on one data set; those that failed are last."""
    rows = [one.names.index(name) for name in names]
    complete = np.isfinite(one.scores(scoring)).all(axis=1)
    means = np.where(complete, one.means(scoring), -np.inf)[rows]
    ranks: np.ndarray = stats.rankdata(-means, method="average")
    return ranks


def _friedman(ranks: np.ndarray) -> tuple[float, float]:
    n_sets, k = ranks.shape
    if k < _LEAST_METHODS or n_sets < 2:
        return np.nan, np.nan
    if (np.ptp(ranks, axis=1) == 0.0).all():
        return 0.0, 1.0
    found = stats.friedmanchisquare(*ranks.T)
    return float(found.statistic), float(found.pvalue)
