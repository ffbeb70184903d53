"""Tests of two methods: combined 5×2 cv F test, corrected resampled t test, Holm's correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from ..utils.folds import stratified_folds
from ..utils.sklearn import num_samples

# Numbers of the test's name; its degrees of freedom, 10 and 5, follow from these.
_REPLICATIONS = 5
_FOLDS = 2

Split = tuple[np.ndarray, np.ndarray]


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
    >>> from manykernels.metrics.comparison import combined_f_test
    >>> combined_f_test([[0.1, -0.1], [0, 0], [0, 0], [0, 0], [0, 0]]).statistic
    0.5
    """

    statistic: float
    pvalue: float
    differences: np.ndarray


def combined_f_test(differences: ArrayLike) -> CombinedFTest:
    """Compute the combined 5×2 cv F test of Alpaydın (1999) from given differences.

    With p_ij the difference of two methods on fold j of replication i, and
    ``s_i² = (p_i1 − p̄_i)² + (p_i2 − p̄_i)² = (p_i1 − p_i2)²/2``,

        f = Σ_i Σ_j p_ij² / (2 Σ_i s_i²)

    is approximately F-distributed with 10 and 5 degrees of freedom.

    Parameters
    ----------
    differences : array-like of shape (5, 2)
        Differences of scores or of errors: the test does not depend on the sign.

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
    >>> from manykernels.metrics.comparison import combined_f_test
    >>> result = combined_f_test([[0.1, 0.2], [0.1, 0.1], [0.2, 0.1], [0.2, 0.2], [0.1, 0.3]])
    >>> round(result.statistic, 6), round(result.pvalue, 3)
    (5.0, 0.045)
    """
    table = np.asarray(differences, dtype=np.float64)
    if table.shape != (_REPLICATIONS, _FOLDS):
        raise ValueError(
            f"differences must have shape (5, 2), one row per replication; got {table.shape}."
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
    estimator1: BaseEstimator,
    estimator2: BaseEstimator,
    X: object,
    y: ArrayLike,
    *,
    scoring: Any = None,
    random_state: int | np.random.RandomState | None = None,
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
        Score to compare, as in scikit-learn; None for the ``score`` of each estimator.
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
    # Drawn once: a RandomState instance would give the second method other splits.
    splits = repeated_folds(
        _FOLDS, _REPLICATIONS, y, classes=is_classifier(estimator1), random_state=random_state
    )
    scores = [
        cross_val_score(estimator, X, y, scoring=scoring, cv=splits, error_score="raise")
        for estimator in (estimator1, estimator2)
    ]
    return combined_f_test((scores[0] - scores[1]).reshape(_REPLICATIONS, _FOLDS))


def five_by_two_folds(
    y: ArrayLike,
    *,
    classes: bool,
    random_state: int | np.random.RandomState | None,
    groups: np.ndarray | None = None,
) -> list[Split]:
    """Return training and test rows of five replications of two-fold cross-validation."""
    return repeated_folds(
        _FOLDS, _REPLICATIONS, y, classes=classes, random_state=random_state, groups=groups
    )


def repeated_folds(
    n_folds: int,
    n_repeats: int,
    y: ArrayLike,
    *,
    classes: bool,
    random_state: int | np.random.RandomState | None,
    groups: np.ndarray | None = None,
) -> list[Split]:
    """Return training and test rows of repeated folds, stratified if `y` are classes.

    Rows of one group are in the same fold.
    """
    every = np.arange(num_samples(y))
    labels = np.zeros(len(every), dtype=np.intp)
    if classes and type_of_target(y) in ("binary", "multiclass"):
        labels = np.unique(y, return_inverse=True)[1]
    if n_folds < 2:
        raise ValueError(f"n_splits must be at least 2, got {n_folds}.")
    rng = check_random_state(random_state)
    splits = []
    for _ in range(n_repeats):
        seed = rng.randint(np.iinfo(np.int32).max)
        folds = stratified_folds(labels, every if groups is None else groups, n_folds, seed=seed)
        if len(folds) < n_folds:
            raise ValueError(
                f"The samples cannot be divided into {n_folds} folds: there are too few distinct "
                "samples, or too few of a class. Use fewer folds."
            )
        splits += [(np.delete(every, fold), fold) for fold in folds]
    return splits


@dataclass(frozen=True)
class CorrectedTTest:
    """Result of the corrected resampled t test.

    Attributes
    ----------
    statistic : float
        Approximately t-distributed with ``n_splits − 1`` degrees of freedom for equally good
        methods.
    pvalue : float
        Probability of a statistic at least as large in size, if the methods are equally good.
    error : float
        Estimated standard deviation of the mean difference.
    differences : ndarray of shape (n_splits,)
        Score of the first method minus that of the second.

    Examples
    --------
    >>> from manykernels.metrics import corrected_t_test
    >>> corrected_t_test([0.0, 0.0, 0.0], 0.25).pvalue
    1.0
    """

    statistic: float
    pvalue: float
    error: float
    differences: np.ndarray

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the low and high end of the confidence interval of the mean difference."""
        quantile = stats.t.isf((1.0 - confidence) / 2.0, len(self.differences) - 1)
        mean, half = float(self.differences.mean()), float(quantile * self.error)
        return mean - half, mean + half


def corrected_t_test(differences: ArrayLike, test_per_train: float) -> CorrectedTTest:
    """Compute the corrected resampled t test of Nadeau and Bengio (2003) from differences.

    Scores of different splits are not independent: their training sets overlap. With J
    differences of mean d̄ and variance s², the variance of d̄ is estimated by

        (1/J + n_test/n_train) s²

    instead of s²/J, and d̄ over its root is compared with Student's distribution of J − 1
    degrees of freedom.

    Parameters
    ----------
    differences : array-like of shape (n_splits,)
        At least two differences of scores or of errors.
    test_per_train : float
        Ratio of the numbers of test and training samples of a split: 0.25 for five folds.

    Returns
    -------
    result : CorrectedTTest
        Differences that are all zero give statistic 0 and p-value 1. If they are equal but not
        zero, the statistic is infinite and the p-value 0.

    References
    ----------
    C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.

    Examples
    --------
    >>> from manykernels.metrics import corrected_t_test
    >>> result = corrected_t_test([0.01, 0.02, 0.03, 0.02, 0.02], 0.25)
    >>> round(result.statistic, 3), round(result.pvalue, 4)
    (4.216, 0.0135)
    """
    table = np.asarray(differences, dtype=np.float64)
    if table.ndim != 1 or len(table) < 2:
        raise ValueError(
            "differences must be a list of at least two numbers, one per split; got shape "
            f"{table.shape}."
        )
    if not np.isfinite(table).all():
        split = int(np.argmin(np.isfinite(table)))
        raise ValueError(
            f"The difference on split {split} is {table[split]}: the test needs finite scores."
        )
    if not 0.0 < test_per_train < np.inf:
        raise ValueError(f"test_per_train must be positive and finite, got {test_per_train!r}.")
    mean = float(table.mean())
    # The mean of equal numbers may differ from them by rounding.
    spread = 0.0 if np.ptp(table) == 0.0 else float(np.std(table, ddof=1))
    error = spread * float(np.sqrt(1.0 / len(table) + test_per_train))
    if error == 0.0:
        statistic = 0.0 if mean == 0.0 else float(np.copysign(np.inf, mean))
    else:
        statistic = mean / error
    pvalue = float(2.0 * stats.t.sf(abs(statistic), len(table) - 1))
    return CorrectedTTest(statistic, pvalue, error, table)


def holm(pvalues: ArrayLike) -> np.ndarray:
    """Correct the p-values of several tests by the step-down method of Holm (1979).

    If corrected p-values below α are called significant, the probability that any true hypothesis
    is rejected is at most α for any dependence between the tests. With m tests and
    ``p_(1) ≤ … ≤ p_(m)``, the corrected i-th is the largest of ``min(1, (m − k + 1) p_(k))``,
    k ≤ i.

    Parameters
    ----------
    pvalues : array-like
        p-values of the tests of one family. NaN, for a missing test, stays NaN and is ignored.

    Returns
    -------
    corrected : ndarray of the same shape

    References
    ----------
    S. Holm. A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6, 1979.

    Examples
    --------
    >>> from manykernels.metrics.comparison import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(pvalues, dtype=np.float64)
    known = ~np.isnan(values)
    tested = values[known]
    if ((tested < 0.0) | (tested > 1.0)).any():
        raise ValueError(f"pvalues must be between 0 and 1, got {tested.tolist()}.")
    order = np.argsort(tested, kind="stable")
    stepped = np.minimum(1.0, tested[order] * np.arange(len(tested), 0, -1))
    corrected = np.full(values.shape, np.nan)
    in_order = np.empty_like(tested)
    in_order[order] = np.maximum.accumulate(stepped) if len(tested) else stepped
    corrected[known] = in_order
    return corrected
