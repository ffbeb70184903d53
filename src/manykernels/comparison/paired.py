"""Do the methods of a comparison differ? Paired tests of every two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._rounding import ACCUMULATED
from .._tables import aligned
from ..metrics import combined_f_test, corrected_t_test, holm

#: The designs of splits, and the test that belongs to each.
FIVE_BY_TWO, RESAMPLED = "5x2", "resampled"
_TESTS = {
    FIVE_BY_TWO: "combined 5×2 cv F test (Alpaydın 1999)",
    RESAMPLED: "corrected resampled t test (Nadeau and Bengio 2003)",
}
# Replications and folds of the 5×2 design.
_FIVE_BY_TWO = (5, 2)


@dataclass(frozen=True, repr=False)
class PairedTests:
    """Tests of every two methods on the same splits; made by :meth:`Comparison.tests`.

    Attributes
    ----------
    names : list of str
        Of the methods.
    scoring : str
        What was compared.
    test : str
        The test, or why there is none.
    differences : ndarray of shape (n_methods, n_methods)
        Mean score of the method of the row minus that of the column, over the splits on which
        both have a score. NaN where there are none.
    p_values : ndarray of shape (n_methods, n_methods)
        Symmetric, 1 on the diagonal. NaN where there is no test.
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
        """The matrix of p-values."""
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
    """Tests of every two rows of `scores` (n_methods, n_splits), NaN where there is none."""
    n_methods, n_splits = scores.shape
    p_values, differences = np.eye(n_methods), np.zeros((n_methods, n_methods))
    for i, j in zip(*np.triu_indices(n_methods, k=1), strict=True):
        found = _differences(scores[i], scores[j])
        known = found[~np.isnan(found)]
        differences[i, j] = known.mean() if len(known) else np.nan
        differences[j, i] = -differences[i, j]
        p_values[i, j] = p_values[j, i] = _p_value(found, known, design, test_per_train)
    if correction == "holm":
        upper = np.triu_indices(n_methods, k=1)
        p_values[upper] = holm(p_values[upper])
        p_values.T[upper] = p_values[upper]
    return PairedTests(
        names, scoring, name_of_test(design, n_splits), differences, p_values, correction
    )


def name_of_test(design: str, n_splits: int) -> str:
    """Name of the test, or why there is none."""
    return _TESTS[design] if n_splits > 1 else "no paired test: there is only one split"


def _differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Zero where scores differ by rounding errors only."""
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


def shown_p(p: Any) -> str:
    """A p-value of three digits."""
    if np.isnan(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"
