"""Do two methods differ? The combined 5×2 cv F test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import is_classifier
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, cross_val_score
from sklearn.utils.multiclass import type_of_target

from .._sklearn import num_samples

# As in the name of the test; its degrees of freedom, 10 and 5, follow from these.
_REPLICATIONS = 5
_FOLDS = 2


@dataclass(frozen=True)
class CombinedFTest:
    """Result of the combined 5×2 cv F test.

    Attributes
    ----------
    statistic : float
        Approximately F-distributed with (10, 5) degrees of freedom for equally good methods.
    pvalue : float
        Probability of a statistic at least as large, if the methods are equally good.
    differences : ndarray of shape (5, 2)
        Score of the first method minus that of the second, a row per replication.

    Examples
    --------
    >>> from manykernels.metrics import combined_f_test
    >>> combined_f_test([[0.1, -0.1], [0, 0], [0, 0], [0, 0], [0, 0]]).statistic
    0.5
    """

    statistic: float
    pvalue: float
    differences: np.ndarray


def combined_f_test(differences: Any) -> CombinedFTest:
    """The combined 5×2 cv F test of Alpaydın (1999), from given differences.

    With p_ij the difference of two methods on fold j of replication i, and
    ``s_i² = (p_i1 − p̄_i)² + (p_i2 − p̄_i)² = (p_i1 − p_i2)²/2``,

        f = Σ_i Σ_j p_ij² / (2 Σ_i s_i²)

    is approximately F-distributed with 10 and 5 degrees of freedom.

    Parameters
    ----------
    differences : array-like of shape (5, 2)
        Differences of scores, or of errors: the test does not depend on the sign.

    Returns
    -------
    result : CombinedFTest
        Differences that are all zero give statistic 0 and p-value 1. If they are not zero but
        equal on both folds of every replication, the statistic is infinite and the p-value 0.

    References
    ----------
    E. Alpaydın. Combined 5 × 2 cv F test for comparing supervised classification learning
    algorithms. Neural Computation 11, 1999.

    Examples
    --------
    >>> from manykernels.metrics import combined_f_test
    >>> result = combined_f_test([[0.1, 0.2], [0.1, 0.1], [0.2, 0.1], [0.2, 0.2], [0.1, 0.3]])
    >>> round(result.statistic, 6), round(result.pvalue, 3)
    (5.0, 0.045)
    """
    table = np.asarray(differences, dtype=np.float64)
    if table.shape != (_REPLICATIONS, _FOLDS):
        raise ValueError(
            f"Differences must have shape (5, 2), one row per replication; got {table.shape}."
        )
    if not np.isfinite(table).all():
        replication, fold = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"The difference on fold {fold} of replication {replication} is "
            f"{table[replication, fold]}: the test needs finite scores."
        )
    largest = np.abs(table).max()
    if largest == 0.0:
        return CombinedFTest(0.0, 1.0, table)
    relative = table / largest  # squares of tiny differences would underflow
    variances = (relative[:, 0] - relative[:, 1]) ** 2 / 2
    with np.errstate(divide="ignore"):
        statistic = float(np.sum(relative**2) / (2 * np.sum(variances)))
    degrees = _REPLICATIONS * _FOLDS, _REPLICATIONS
    return CombinedFTest(statistic, float(stats.f.sf(statistic, *degrees)), table)


def five_by_two_cv_f_test(
    estimator1: Any,
    estimator2: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    random_state: Any = None,
) -> CombinedFTest:
    """Test whether two methods differ, by five replications of two-fold cross-validation.

    Both are fitted on the same halves of the data. The halves are stratified for classifiers.

    Parameters
    ----------
    estimator1, estimator2 : estimators
    X : table, or kernels of all samples for pairwise estimators
        Such as a :class:`~manykernels.KernelStack` for ``MKFDA("precomputed")``.
    y : array-like of shape (n_samples,)
    scoring : str, callable or None, default=None
        The score to compare, as in scikit-learn; None for the ``score`` of each estimator.
    random_state : int, RandomState or None, default=None
        Seed of the splits.

    Returns
    -------
    result : CombinedFTest
        ``statistic``, ``pvalue`` and the (5, 2) ``differences`` of scores; see
        :func:`combined_f_test`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from manykernels import MKFDA
    >>> from manykernels.metrics import five_by_two_cv_f_test
    >>> X, y = load_iris(return_X_y=True)
    >>> result = five_by_two_cv_f_test(MKFDA(), DummyClassifier(), X, y, random_state=0)
    >>> result.pvalue < 0.01
    True
    >>> five_by_two_cv_f_test(MKFDA(), MKFDA(), X, y, random_state=0).pvalue
    1.0
    """
    stratified = is_classifier(estimator1) and type_of_target(y) in ("binary", "multiclass")
    kind = RepeatedStratifiedKFold if stratified else RepeatedKFold
    folds = kind(n_splits=_FOLDS, n_repeats=_REPLICATIONS, random_state=random_state)
    # Drawn once: a RandomState instance would give the second method other splits.
    splits = list(folds.split(np.zeros(num_samples(X)), y))
    scores = [
        cross_val_score(estimator, X, y, scoring=scoring, cv=splits, error_score="raise")
        for estimator in (estimator1, estimator2)
    ]
    return combined_f_test((scores[0] - scores[1]).reshape(_REPLICATIONS, _FOLDS))
