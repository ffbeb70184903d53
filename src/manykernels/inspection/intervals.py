"""Confidence intervals of mean losses, and of mean paired differences of losses.

Rows that were left out together count as one sample. With sample weights, n is Kish's effective
number of samples, ``(Σw)²/Σw²``.

Models trained without single samples, or without folds, share nearly all training samples. Their
losses are therefore not independent, and the variance of a mean loss is larger than ``s²/n``.
Nadeau and Bengio (2003) replace it by ``s²(1/n + 1/n_train)``, about twice as much. All intervals
use this, by counting ``1/(1/n + 1/n_train)`` samples. Their coverage is measured in
docs/benchmarks/importance.md.

Real-valued losses have Student's interval. Nonnegative losses (log losses, squared and absolute
errors) have it for the logarithm of their mean, whose standard error is that of the mean divided
by the mean: the interval ends above 0, extends further up than down, as suits skewed losses, and
covers the true mean more often (of 15 exponential losses 94 %, without the logarithm 92 %).

Differences between two models at the same samples have either sign, and Student's interval. A view
of noise changes outputs by estimation errors only. If these happen to be small, the differences
have hardly any spread, but a mean of the order of 1/n, in standard deviations of the losses. This
is added in quadrature to half the width of intervals of differences.

Zero-one losses have Wilson's interval (1927) for their mean; differences have that of Agresti and
Min (2005), Wald's with half a sample added to each of the four combinations of correct and wrong.
Both keep their coverage if hardly any sample is wrong, or if the two models hardly ever disagree.

A concordance index is a share of pairs of samples. It has no losses of single samples, but
influences, and the index less its influences, times n, takes their place: the mean is that of the
pairs, and the standard error that of the infinitesimal jackknife. Its interval is Wilson's with
this standard error. Quantiles are Student's for as many samples as there are events, because only
events are compared with others.

References
----------
E. B. Wilson. Probable inference, the law of succession, and statistical inference. Journal of the
American Statistical Association 22, 1927.
A. Agresti, Y. Min. Simple improved confidence intervals for comparing matched proportions.
Statistics in Medicine 24, 2005.
C. Nadeau, Y. Bengio. Inference for the generalization error. Machine Learning 52, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..utils.folds import effective_size
from ..utils.numerics import ACCUMULATED

# Error of a mean difference whose differences have no spread, in standard deviations of the losses
# divided by n. For squared errors with and without a column of noise it is √2.
_OF_ORDER = 2.0


@dataclass(frozen=True)
class Mean:
    """A mean over samples, with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> np.ndarray:
        """The interval as an array (low, high)."""
        return np.array([self.low, self.high])

    def times(self, factor: float, shift: float = 0.0) -> Mean:
        """Return ``shift + factor · mean``; a negative factor swaps the ends of the interval."""
        low, high = sorted((shift + factor * self.low, shift + factor * self.high))
        return Mean(shift + factor * self.value, low, high)


#: A mean that was not computed.
UNKNOWN = Mean(np.nan, np.nan, np.nan)

# Largest exponent of e, to avoid overflow in very wide intervals, such as those of two numbers.
_LARGEST_EXPONENT = 700.0


def within_range(
    value: float, error: float, quantile: float, least: float = -np.inf, most: float = np.inf
) -> tuple[float, float]:
    """Return the ends of the interval of a value with a standard error, within a range.

    The interval is ``value ± quantile · error``. If the range from `least` to `most` is bounded
    on one side, the same holds for the logarithm of the distance from the bound; if on both
    sides, it is Wilson's interval of a share with the same error. The interval contains the value
    and stays in the range. It is NaN if the quantile is NaN, as for a single sample.
    """
    if np.isnan(quantile):
        return np.nan, np.nan
    if error == 0.0:
        return value, value
    low, high = value - quantile * error, value + quantile * error
    if np.isfinite(least) and np.isfinite(most):
        share, span = (value - least) / (most - least), most - least
        n = share * (1.0 - share) * (span / error) ** 2
        low, high = (least + span * end for end in wilson(share, n, quantile))
    elif np.isfinite(least) or np.isfinite(most):
        end = least if np.isfinite(least) else most
        factor = float(np.exp(min(quantile * error / abs(value - end), _LARGEST_EXPONENT)))
        low, high = sorted((end + (value - end) / factor, end + (value - end) * factor))
    # Corrects rounding errors.
    return max(min(low, value), least), min(max(high, value), most)


def wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a share of n independent samples."""
    more = quantile**2
    centre = (n * share + 0.5 * more) / (n + more)
    half = quantile * float(np.sqrt(n * share * (1.0 - share) + 0.25 * more)) / (n + more)
    # Corrects rounding errors: a share of 0 or 1 is an end of its interval.
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals of mean losses of samples.

    Attributes
    ----------
    weights : ndarray of shape (n_rows,)
        Sample weights, in any unit.
    confidence : float
        Confidence level.
    train_share : float
        Fraction of the samples that each model was trained on.
    hit_or_miss : bool
        Whether every loss is 0 or 1.
    slack : float
        Mean difference that the finite accuracy of the fits can cause, in standard deviations of
        the losses. It is added to both sides of intervals of differences.
    groups : ndarray of shape (n_rows,) or None
        Groups of rows that are not independent; None if all rows are independent.
    events : ndarray of bool, (n_rows,), or None
        Rows with an event, if the mean is a share of pairs of samples in which the first had an
        event; None for losses of single samples.
    most : float
        Largest mean loss that is possible.
    """

    weights: np.ndarray
    confidence: float
    train_share: float = 1.0
    hit_or_miss: bool = False
    slack: float = 0.0
    groups: np.ndarray | None = None
    events: np.ndarray | None = None
    most: float = np.inf

    def of(self, losses: np.ndarray) -> Mean:
        """Return the mean loss with its interval."""
        values, weights, n = self._judged(losses)
        mean = float(weights @ values / n)
        if self.events is not None:
            return self._of_pairs(losses, mean, n)
        if self.hit_or_miss:
            quantile = float(stats.norm.isf(self._tail))
            mean = min(mean, 1.0)  # corrects rounding errors
            return Mean(mean, *wilson(mean, self._independent(n), quantile))
        least = 0.0 if (values >= 0.0).all() else -np.inf
        quantile = self._quantile(losses, n)
        if np.isfinite(self.most) and self._error(losses) <= ACCUMULATED:
            # Losses that are all alike say as much as a share of 0 or 1.
            share = min(mean / self.most, 1.0)
            low, high = wilson(share, self._independent(n), quantile)
            return Mean(mean, self.most * low, self.most * high)
        return Mean(mean, *within_range(mean, self._error(losses), quantile, least, self.most))

    def of_difference(self, first: np.ndarray, second: np.ndarray) -> Mean:
        """Return the mean of ``first - second`` with its interval."""
        difference = first - second
        if self.hit_or_miss:
            return self._of_matched_shares(difference)
        values, weights, n = self._judged(difference)
        mean, deviation = float(weights @ values / n), self._deviation(second)
        half = self._quantile(difference, n) * self._error(difference)
        half = float(np.hypot(half, _OF_ORDER * deviation / n)) + self.slack * deviation
        return Mean(mean, max(mean - half, -self.most), min(mean + half, self.most))

    def of_paired(self, difference: np.ndarray) -> tuple[float, float, float, float]:
        """Return the mean difference of one model's losses, its interval, and a p-value.

        The interval is Student's. The p-value is one-sided, of a mean of zero or less.
        """
        values, weights, n = self._judged(difference)
        mean, error = float(weights @ values / n), self._error(difference)
        if error == 0.0:
            return mean, mean, mean, 1.0
        half = self._quantile(difference, n) * error
        degrees = n - 1.0 if self.events is None else max(self._n_events(difference) - 1.0, 1.0)
        return mean, mean - half, mean + half, float(stats.t.sf(mean / error, degrees))

    def _judged(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return mean values and weights of the groups with losses, and the number n of samples.

        The weights sum to n.
        """
        known = ~np.isnan(values)
        values, weights = values[known], self.weights[known]
        groups = None if self.groups is None else self.groups[known]
        n = effective_size(len(values), groups, weights)
        if groups is not None:
            number = np.unique(groups, return_inverse=True)[1]
            totals = np.bincount(number, weights)
            values, weights = np.bincount(number, weights * values) / totals, totals
        return values, weights * (n / weights.sum()), n

    def _independent(self, n: float) -> float:
        """Return the number of independent samples that is equivalent to n held-out samples."""
        return n / (1.0 + 1.0 / self.train_share)

    def _deviation(self, values: np.ndarray) -> float:
        """Return the standard deviation of the values; 0 for a single sample."""
        values, weights, n = self._judged(values)
        if n <= 1.0:
            return 0.0
        mean = weights @ values / n
        return float(np.sqrt(weights @ (values - mean) ** 2 / (n - 1.0)))

    def _error(self, values: np.ndarray) -> float:
        """Return the standard error of the mean."""
        _, _, n = self._judged(values)
        return self._deviation(values) / float(np.sqrt(self._independent(n)))

    @property
    def _tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _quantile(self, values: np.ndarray, n: float) -> float:
        """Return the quantile of Student's distribution for n samples, or for their events."""
        degrees = n - 1.0 if self.events is None else max(self._n_events(values) - 1.0, 1.0)
        return float(stats.t.isf(self._tail, degrees))

    def _n_events(self, values: np.ndarray) -> int:
        """Return the number of samples with events; of groups, if there are some."""
        assert self.events is not None
        rows = np.flatnonzero(self.events & ~np.isnan(values))
        return len(rows) if self.groups is None else len(np.unique(self.groups[rows]))

    def _of_pairs(self, losses: np.ndarray, mean: float, n: float) -> Mean:
        """Return the mean of linearised losses, a share of pairs, with its interval."""
        mean, error = min(max(mean, 0.0), 1.0), self._error(losses)
        quantile = self._quantile(losses, n)
        if error <= ACCUMULATED and mean * (1.0 - mean) <= ACCUMULATED:
            # All pairs are alike: no more than these are disjoint.
            n_pairs = min(float(self._n_events(losses)), n / 2.0)
            return Mean(mean, *wilson(mean, self._independent(n_pairs), quantile))
        return Mean(mean, *within_range(mean, error, quantile, 0.0, 1.0))

    def _of_matched_shares(self, difference: np.ndarray) -> Mean:
        difference, weights, n = self._judged(difference)
        mean, disagree = float(weights @ difference / n), float(weights @ difference**2 / n)
        # Half a sample is added to each of four cases: both, neither, or one of the two correct.
        n = self._independent(n)
        size = n + 2.0
        centre, disagree = n * mean / size, (n * disagree + 1.0) / size
        half = stats.norm.isf(self._tail) * np.sqrt((disagree - centre**2) / size)
        # The centre is nearer to zero than the mean, which may lie outside at a low confidence.
        low, high = min(float(centre - half), mean), max(float(centre + half), mean)
        return Mean(mean, max(low, -1.0), min(high, 1.0))
