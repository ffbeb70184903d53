"""Scores of survival models: concordance indices and Brier scores.

Censored samples are missing part of the answer. Harrell's index leaves out the pairs of samples of
which it is not known whose event came first. The other scores weight the known answers by the
inverse of the probability that they were not censored (IPCW), estimated by Kaplan and Meier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ..losses.cox import Cox
from ..survival.curves import check_confidence, kaplan_meier
from ..survival.targets import (
    check_informative,
    check_risk,
    check_strata,
    check_survival,
    survival_target,
)
from ..utils.numerics import ACCUMULATED
from ..utils.sklearn import sample_weights
from ..utils.storable import storable

# -- Concordance ----------------------------------------------------------------------------------


def concordance_index(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> float:
    """Return Harrell's concordance index: how often the earlier event has the higher risk.

    A pair of samples is comparable if the first had an event, and the second was observed longer,
    or up to the same time without an event. The index is the share of comparable pairs in which
    the first sample has the higher risk; pairs of equal risk count half.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        Whether the event was observed, or 0 and 1.
    time : array-like of shape (n_samples,)
        Time of the event, or of the last observation.
    risk : array-like of shape (n_samples,)
        Predicted risk: the higher, the earlier the event is expected. Pass the negative of
        predicted times.
    sample_weight : array-like of shape (n_samples,), optional
        A pair counts with the product of its weights.
    strata : array-like of shape (n_samples,), optional
        Groups with different baseline hazards: only samples of the same stratum are compared.

    Returns
    -------
    index : float
        Between 0 and 1; 1 if risks are in the right order, 0.5 on average for random risks.

    References
    ----------
    F. E. Harrell, R. M. Califf, D. B. Pryor, K. L. Lee, R. A. Rosati. Evaluating the yield of
    medical tests. Journal of the American Medical Association 247, 1982.

    Examples
    --------
    >>> from manykernels.metrics import concordance_index
    >>> concordance_index([True, True, False, True], [1.0, 3.0, 4.0, 6.0], [0.9, 0.2, 0.4, 0.1])
    0.8
    """
    return _index_within(strata, event, time, risk, sample_weight)


def _index_within(
    strata: ArrayLike | None,
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    sample_weight: ArrayLike | None,
    factors: np.ndarray | None = None,
) -> float:
    """Return the concordance index of pairs within strata, of all pairs if there are none.

    `factors` multiply the weights of the earlier samples of pairs.
    """
    if strata is None:
        return _Pairs.from_arrays(event, time, risk, sample_weight, factors).index
    parts = _pairs_within(strata, event, time, risk, sample_weight, factors)
    total = sum(pairs.total for _, pairs in parts)
    return sum(pairs.total * pairs.index for _, pairs in parts) / total


def _pairs_within(
    strata: ArrayLike,
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    sample_weight: ArrayLike | None,
    factors: np.ndarray | None = None,
) -> list[tuple[np.ndarray, _Pairs]]:
    """Return the rows and pairs of each stratum that has comparable pairs."""
    events, times = check_survival(event, time)
    risks, weights = check_risk(risk, len(times)), sample_weights(sample_weight, times)
    factors = np.ones(len(times)) if factors is None else factors
    numbers, labels = check_strata(strata, len(times))
    parts = []
    for number in range(len(labels)):
        rows = np.flatnonzero(numbers == number)
        pairs = _Pairs.of(events[rows], times[rows], risks[rows], weights[rows], factors[rows])
        if pairs.total > 0.0:
            parts.append((rows, pairs))
    if not parts:
        _refuse_without_pairs(len(times), " of one stratum")
    return parts


def concordance_index_ipcw(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    *,
    train: Any = None,
    tau: float | None = None,
    sample_weight: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> float:
    """Return Uno's concordance index, which does not depend on the censoring.

    As :func:`concordance_index`, but a pair counts with ``1 / G(t)²``, where G(t) is the
    probability that a sample is still observed at the time t of the earlier event. So the index
    estimates the same number whatever the distribution of the censoring times, as long as they do
    not depend on the risks.

    Parameters
    ----------
    event, time, risk, sample_weight, strata
        As in :func:`concordance_index`.
    train : array-like, data frame or pair, optional
        Target of the training samples, from which G is estimated, in a form of
        :func:`~manykernels.survival.survival_target`. By default G is estimated from `event` and
        `time`, which differs little if these are many.
    tau : float, optional
        Only events before this time count. Choose a time that a fair share of samples was
        observed up to: late events have large weights.

    Returns
    -------
    index : float

    Notes
    -----
    G(t) is the probability of observation up to t, the limit of the Kaplan–Meier curve from the
    left. scikit-survival takes the value after t. The two differ only if samples were censored at
    the time of an event.

    References
    ----------
    H. Uno, T. Cai, M. J. Pencina, R. B. D'Agostino, L. J. Wei. On the C-statistics for evaluating
    overall adequacy of risk prediction procedures with censored survival data. Statistics in
    Medicine 30, 2011.

    Examples
    --------
    >>> from manykernels.metrics import concordance_index_ipcw
    >>> event, time = [True, False, True, True], [1.0, 3.0, 4.0, 6.0]
    >>> round(concordance_index_ipcw(event, time, [0.9, 0.8, 0.2, 0.4]), 3)
    0.571
    """
    events, times = check_survival(event, time)
    if tau is not None:
        events = events & (times < tau)
        if not events.any():
            raise ValueError(f"No event is before tau={tau:g}: choose a later time.")
    remaining = _Remaining.from_target(event, time, train)
    weights = np.zeros(len(times))
    weights[events] = remaining.up_to(times[events], "tau") ** -2.0
    return _index_within(strata, events, times, risk, sample_weight, weights)


@dataclass(frozen=True)
class ConcordanceInterval:
    """Concordance index with its standard error, and the ends of its confidence interval."""

    index: float
    standard_error: float
    low: float
    high: float


def concordance_interval(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ConcordanceInterval:
    """Return Harrell's concordance index with a confidence interval.

    The standard error is that of the infinitesimal jackknife: the root of the sum of squares of
    the influences of the samples on the index, as in R's ``survival::concordance``. The
    interval is Wilson's, of a share with the same standard error, so that it stays between 0 and
    1, with a quantile of Student's distribution for as many samples as there are events. The
    samples must not be those from which the model was learnt.

    Parameters
    ----------
    event, time, risk, sample_weight
        As in :func:`concordance_index`.
    confidence : float, default=0.95
        Confidence level.

    Returns
    -------
    result : ConcordanceInterval
        With the attributes ``index``, ``standard_error``, ``low`` and ``high``. If the index is 0
        or 1, the standard error is zero, and the interval is that of as many independent pairs
        as can be formed of the samples.

    Examples
    --------
    >>> from manykernels.metrics import concordance_interval
    >>> event, time = [True, True, False, True, True, False], [1.0, 3.0, 4.0, 6.0, 7.0, 9.0]
    >>> result = concordance_interval(event, time, [0.9, 0.2, 0.4, 0.1, 0.5, 0.3])
    >>> round(result.index, 3), round(result.standard_error, 3)
    (0.583, 0.196)
    >>> round(result.low, 3), round(result.high, 3)
    (0.142, 0.922)
    """
    check_confidence(confidence)
    pairs = _Pairs.from_arrays(event, time, risk, sample_weight)
    index, error = pairs.index, float(np.sqrt(np.sum(pairs.influences() ** 2)))
    spread = index * (1.0 - index)
    if spread <= ACCUMULATED:
        n = float(pairs.n_disjoint)
    elif error <= ACCUMULATED:  # all risks are equal
        return ConcordanceInterval(index, 0.0, index, index)
    else:
        # Number of independent pairs with the same standard error.
        n = spread / error**2
    quantile = stats.t.isf(0.5 - 0.5 * confidence, max(pairs.n_events - 1, 1))
    more = float(quantile) ** 2
    centre = (n * index + 0.5 * more) / (n + more)
    half = float(np.sqrt(more * (n * spread + 0.25 * more))) / (n + more)
    # The minimum and maximum correct rounding errors.
    low, high = max(min(centre - half, index), 0.0), min(max(centre + half, index), 1.0)
    return ConcordanceInterval(index, error, low, high)


def concordance_influences(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> np.ndarray:
    """Return the influence of every sample on Harrell's index, (n_samples,).

    It is the derivative of the index by the weight of the sample, times the weight. The sum of
    squares is the variance of the index. For the difference of two models on the same samples, it
    is the sum of squared differences of the influences. With strata, it is that on the index of
    pairs within strata.
    """
    if strata is None:
        return _Pairs.from_arrays(event, time, risk, sample_weight).influences()
    parts = _pairs_within(strata, event, time, risk, sample_weight)
    total = sum(pairs.total for _, pairs in parts)
    index = sum(pairs.total * pairs.index for _, pairs in parts) / total
    influences = np.zeros(len(np.asarray(risk)))
    for rows, pairs in parts:
        influences[rows] = pairs.influences(index) * pairs.total / total
    return influences


@dataclass(frozen=True)
class _Pairs:
    """Sums over the comparable pairs of samples, by sample, in the order of the samples.

    Samples are sorted by time, at equal times those with events first. The comparable partners of
    a sample with an event are then all samples from a position on.
    """

    order: np.ndarray
    #: First position of the later partners of a sample, and of the end of its earlier ones.
    later: np.ndarray
    earlier: np.ndarray
    #: Ranks of the risks, equal ones have the same.
    rank: np.ndarray
    #: Weights of the samples as the earlier one of a pair, without events zero, and as the later.
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def from_arrays(
        cls,
        event: ArrayLike,
        time: ArrayLike,
        risk: ArrayLike,
        sample_weight: ArrayLike | None,
        factors: np.ndarray | None = None,
    ) -> _Pairs:
        """Check the samples; `factors` multiply the weights of the earlier samples of pairs."""
        events, times = check_survival(event, time)
        risks = check_risk(risk, len(times))
        pairs = cls.of(events, times, risks, sample_weights(sample_weight, times), factors)
        if not pairs.total > 0.0:
            _refuse_without_pairs(len(times))
        return pairs

    @classmethod
    def of(
        cls,
        events: np.ndarray,
        times: np.ndarray,
        risks: np.ndarray,
        weights: np.ndarray,
        factors: np.ndarray | None = None,
    ) -> _Pairs:
        """Sort samples that were checked; there may be no comparable pairs."""
        factors = events.astype(float) if factors is None else factors * events
        order = np.lexsort((~events, times))
        event_, time_ = events[order], times[order]
        before = np.searchsorted(time_, time_, side="left")
        n_events = np.append(0, np.cumsum(event_))
        # At equal times, an event is compared with those that were censored.
        after_events = before + (
            n_events[np.searchsorted(time_, time_, side="right")] - n_events[before]
        )
        rank = np.unique(risks[order], return_inverse=True)[1].ravel()
        return cls(
            order,
            after_events,
            np.where(event_, before, after_events),
            rank,
            (weights * factors)[order],
            weights[order],
        )

    @property
    def _partners(self) -> np.ndarray:
        """Total weight of the later partners of each sample."""
        sums = np.append(np.cumsum(self.second[::-1])[::-1], 0.0)
        return sums[self.later]

    @property
    def total(self) -> float:
        """Total weight of the comparable pairs."""
        return float(self.first @ self._partners)

    @property
    def index(self) -> float:
        lower, equal = _sums_after(self.later, self.rank, self.second)
        index = float(self.first @ (lower + 0.5 * equal)) / self.total
        return min(max(index, 0.0), 1.0)  # corrects rounding errors

    @property
    def n_events(self) -> int:
        """Number of events that are compared with other samples."""
        return int(((self.first > 0.0) & (self._partners > 0.0)).sum())

    @property
    def n_disjoint(self) -> int:
        """Upper bound of the number of disjoint comparable pairs."""
        return min(self.n_events, int((self.second > 0.0).sum()) // 2)

    def influences(self, index: float | None = None) -> np.ndarray:
        """Return the derivatives of the index by the logarithms of the weights.

        With the `index` of the pairs of several strata, those of that index, times its total
        over the total of these pairs.
        """
        index, n = self.index if index is None else index, len(self.rank)
        lower, equal = _sums_after(self.later, self.rank, self.second)
        derivatives = self.first * (lower + 0.5 * equal - index * self._partners)
        # As the later one of a pair: the same from the other end, with risks reversed.
        start, rank = (n - self.earlier)[::-1], (self.rank.max() - self.rank)[::-1]
        higher, equal = (sums[::-1] for sums in _sums_after(start, rank, self.first[::-1]))
        partners = np.append(0.0, np.cumsum(self.first))[self.earlier]
        derivatives += self.second * (higher + 0.5 * equal - index * partners)
        influences = np.empty(n)
        influences[self.order] = derivatives / self.total
        return influences


def _refuse_without_pairs(n_samples: int, which: str = "") -> None:
    raise ValueError(
        f"No two of the {n_samples} samples{which} can be compared: there must be an event, and a "
        "sample that was observed longer."
    )


def _sums_after(
    start: np.ndarray, rank: np.ndarray, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each i, the sums of mass[start[i]:] of lower rank than rank[i], and of equal.

    The positions from start[i] ≥ 1 on are made of blocks whose sizes are powers of two, at most
    one of each size. The ranks are sorted within the blocks of one size at a time, so that the
    sums are found by bisection: O(n log² n) in all.
    """
    n = len(rank)
    n_ranks = int(rank.max()) + 1
    lower, equal = np.zeros(n), np.zeros(n)
    at, position, size = start.copy(), np.arange(n), 1
    while size < n:
        keys = position // size * n_ranks + rank
        order = np.argsort(keys, kind="stable")
        keys, sums = keys[order], np.append(0.0, np.cumsum(mass[order]))
        # The block of this size that begins at an odd multiple of it is not in a larger one.
        rows = np.flatnonzero((at // size % 2 == 1) & (at < n))
        block = at[rows] // size * n_ranks
        begin = sums[np.searchsorted(keys, block)]
        below = sums[np.searchsorted(keys, block + rank[rows])]
        end = sums[np.searchsorted(keys, block + rank[rows], side="right")]
        lower[rows] += below - begin
        equal[rows] += end - below
        at[rows] += size
        size *= 2
    return lower, equal


# -- Brier scores ---------------------------------------------------------------------------------


def brier_score(
    event: ArrayLike,
    time: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    train: Any = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Return the Brier score of predicted survival probabilities at some times.

    It is the mean squared difference between the probability of survival up to a time and
    whether the sample survived, 1 or 0. Samples that were censored before are left out, the
    others have weights ``1 / G``, where G is the probability that they were not censored before
    (Graf et al. 1999).

    Parameters
    ----------
    event, time : array-like of shape (n_samples,)
        As in :func:`concordance_index`.
    survival : array-like of shape (n_samples, n_times)
        Predicted probabilities of survival at `times`.
    times : array-like of shape (n_times,)
        Times of the predictions, before the last time of a training sample.
    train : array-like, data frame or pair, optional
        As in :func:`concordance_index_ipcw`.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    scores : ndarray of shape (n_times,)
        0 for certain and right predictions, 0.25 if every probability is one half.

    Notes
    -----
    With G estimated from the same samples, the weights sum to the number of samples. For samples
    that were censored at the time of an event, see the note in :func:`concordance_index_ipcw`.

    References
    ----------
    E. Graf, C. Schmoor, W. Sauerbrei, M. Schumacher. Assessment and comparison of prognostic
    classification schemes for survival data. Statistics in Medicine 18, 1999.

    Examples
    --------
    >>> from manykernels.metrics import brier_score
    >>> event, time = [True, False, True, False], [1.0, 2.0, 3.0, 4.0]
    >>> survival = [[0.2, 0.1], [0.8, 0.5], [0.7, 0.4], [0.9, 0.8]]
    >>> brier_score(event, time, survival, [1.5, 3.5]).round(4)
    array([0.045 , 0.0775])
    """
    events, observed = check_survival(event, time)
    moments = check_risk(times, None, "times")
    probabilities = _checked_probabilities(survival, len(observed), len(moments))
    samples = sample_weights(sample_weight, observed)
    remaining = _Remaining.from_target(event, time, train)
    scores = np.empty(len(moments))
    for k, moment in enumerate(moments):
        weights = np.zeros(len(observed))
        past, future = events & (observed <= moment), observed > moment
        weights[past] = 1.0 / remaining.up_to(observed[past], "times")
        weights[future] = 1.0 / remaining.after(moment)
        errors = np.where(future, 1.0 - probabilities[:, k], probabilities[:, k]) ** 2
        scores[k] = np.sum(samples * weights * errors) / np.sum(samples)
    return scores


def integrated_brier_score(
    event: ArrayLike,
    time: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    train: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean over time of the Brier score of predicted survival probabilities.

    The scores at `times` are integrated by the trapezoidal rule, and divided by the length of the
    interval.

    Parameters
    ----------
    event, time, survival, train, sample_weight
        As in :func:`brier_score`.
    times : array-like of shape (n_times,)
        At least two times, increasing.

    Returns
    -------
    score : float
        0 for certain and right predictions, 0.25 if every probability is one half.

    Examples
    --------
    >>> from manykernels.metrics import integrated_brier_score
    >>> event, time = [True, False, True, False], [1.0, 2.0, 3.0, 4.0]
    >>> survival = [[0.2, 0.1], [0.8, 0.5], [0.7, 0.4], [0.9, 0.8]]
    >>> round(integrated_brier_score(event, time, survival, [1.5, 3.5]), 4)
    0.0612
    """
    moments = check_risk(times, None, "times")
    if len(moments) < 2 or (np.diff(moments) <= 0.0).any():
        raise ValueError("times must be at least two times, in increasing order.")
    scores = brier_score(event, time, survival, moments, train=train, sample_weight=sample_weight)
    return float(np.trapezoid(scores, moments) / (moments[-1] - moments[0]))


def _checked_probabilities(survival: ArrayLike, n_samples: int, n_times: int) -> np.ndarray:
    probabilities = np.asarray(survival, dtype=np.float64)
    if probabilities.shape != (n_samples, n_times):
        raise ValueError(
            f"survival must have a row for each of {n_samples} samples and a column for each of "
            f"{n_times} times; got the shape {probabilities.shape}."
        )
    valid = (probabilities >= -ACCUMULATED) & (probabilities <= 1.0 + ACCUMULATED)
    if not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(
            f"survival must be probabilities, but is {probabilities[row, column]} in row {row}, "
            f"column {column}."
        )
    return probabilities


@dataclass(frozen=True)
class _Remaining:
    """Distribution of the censoring times: probabilities that a sample is still observed."""

    curve: Any
    end: float

    @classmethod
    def from_target(cls, event: ArrayLike, time: ArrayLike, train: Any) -> _Remaining:
        """Estimate it from training samples, or from the samples themselves if None."""
        if train is not None:
            event, time, _ = survival_target(train)
        curve = kaplan_meier(event, time, censoring=True)
        return cls(curve, float(curve.times[-1]))

    def up_to(self, times: np.ndarray, option: str) -> np.ndarray:
        """Return the probabilities of no censoring before some times of events."""
        late = times[times > self.end]
        if len(late):
            self.refuse(float(late.min()), option)
        probabilities: np.ndarray = self.curve.just_before(times)
        return probabilities

    def after(self, time: float) -> float:
        """Return the probability of no censoring up to a time, this time included."""
        probability = self.curve(time)
        if not probability > 0.0:
            self.refuse(time, "times")
        return float(probability)

    def refuse(self, time: float, option: str) -> None:
        way = "a smaller tau" if option == "tau" else "earlier times"
        raise ValueError(
            f"No training sample was observed beyond {self.end:g}, so that the probability of "
            f"censoring up to {time:g} is not known: choose {way}."
        )


# -- Scorers --------------------------------------------------------------------------------------


@storable
def concordance_index_scorer(
    estimator: Any, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return :func:`concordance_index` of the predicted risks of an estimator.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator whose ``predict`` returns risks.
    X, y : test samples and their survival target
    sample_weight : array-like of shape (n_samples,), optional
    """
    event, time, _ = survival_target(y)
    strata, _ = _known_of_test(estimator)
    risk = estimator.predict(X)
    return concordance_index(event, time, risk, sample_weight=sample_weight, strata=strata)


def _known_of_test(estimator: Any) -> tuple[Any, Any]:
    """Return strata and entries of the test samples, if this is the model of a search."""
    return getattr(estimator, "test_strata", None), getattr(estimator, "test_entry", None)


@storable
def concordance_index_ipcw_scorer(
    estimator: Any, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return :func:`concordance_index_ipcw` of the predicted risks of an estimator.

    A scorer does not know the training samples, so the distribution of the censoring times is
    estimated from the test samples. Parameters as in :func:`concordance_index_scorer`.
    """
    event, time, _ = survival_target(y)
    strata, _ = _known_of_test(estimator)
    risk = estimator.predict(X)
    return concordance_index_ipcw(event, time, risk, sample_weight=sample_weight, strata=strata)


@storable
def neg_integrated_brier_score_scorer(
    estimator: Any, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the negative of :func:`integrated_brier_score` of predicted survival curves.

    The times are the distinct event times of y before its last time, as far as the curves are
    known. The distribution of the censoring times is estimated from the test samples.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator whose ``predict_survival_function`` returns a function of time for each sample,
        as those of scikit-survival do.
    X, y, sample_weight
        As in :func:`concordance_index_scorer`.
    """
    if not hasattr(estimator, "predict_survival_function"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_survival_function, which the Brier score "
            "needs: choose a concordance index."
        )
    event, time, _ = survival_target(y)
    curves = estimator.predict_survival_function(X)
    times = np.unique(time[event])
    begin = max((curve.domain[0] for curve in curves if hasattr(curve, "domain")), default=0.0)
    end = min((curve.domain[1] for curve in curves if hasattr(curve, "domain")), default=np.inf)
    times = times[(times >= begin) & (times <= end) & (times < time.max())]
    if len(times) < 2:
        raise ValueError(
            f"y has {len(times)} distinct event times up to {end:g}, the end of the predicted "
            "curves; the integrated Brier score needs two."
        )
    survival = np.array([curve(times) for curve in curves])
    return -integrated_brier_score(event, time, survival, times, sample_weight=sample_weight)


@storable
def partial_likelihood_scorer(
    estimator: Any, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the share of the deviance of Cox's partial likelihood that is explained.

    One is the best score, zero that of equal risks; it is negative if the risks are wrong, or in
    the right order, but too extreme. Parameters as in :func:`concordance_index_scorer`.

    The share falls with the number of samples that are compared: one event among a thousand is
    harder to foresee than one among ten. Compare models on the same samples, and a score of folds
    or of all rows only with one of as many samples.
    """
    event, time, _ = survival_target(y)
    strata, entry = _known_of_test(estimator)
    weights = sample_weights(sample_weight, time)
    check_informative(event, time, sample_weight=weights, strata=strata, entry=entry)
    numbers = None if strata is None else check_strata(strata, len(time))[0]
    function = Cox(time, event, sample_weight=weights, strata=numbers, entry=entry)
    risk = check_risk(estimator.predict(X), len(time))[:, None]
    return 1.0 - function.value(risk) / function.value(np.zeros_like(risk))


#: Scorers of survival models by name.
SURVIVAL_SCORERS: dict[str, Callable[..., float]] = {
    "concordance_index": concordance_index_scorer,
    "concordance_index_ipcw": concordance_index_ipcw_scorer,
    "neg_integrated_brier_score": neg_integrated_brier_score_scorer,
    "partial_likelihood": partial_likelihood_scorer,
}
