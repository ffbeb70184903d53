"""Intervals of means over samples, of losses and of paired differences of losses.

Rows that were left out together are one sample below. With sample weights, n is Kish's effective
number of samples, ``(Σw)²/Σw²``.

Models that were learnt without single samples, or without folds, share nearly all their samples.
So their losses are not independent, and mean losses vary more than ``s²/n``: Nadeau and Bengio
(2003) put ``s²(1/n + 1/n_train)`` in its place, about twice as much. That is what all intervals
use, by counting ``1/(1/n + 1/n_train)`` samples. How often they cover the truth is measured in
docs/benchmarks/importance.md.

Losses that are numbers have Student's interval. Those that are never negative (log losses, squared
and absolute errors) have it for the logarithm of their mean, whose standard error is that of the
mean over the mean: it ends above 0, reaches further up than down, as means of skewed losses do,
and covers the truth more often (of 15 exponential losses 94 %, without the logarithm 92 %).

Differences between two models at the same samples have either sign, and Student's interval. A view
of noise changes outputs by errors of estimation only. Where these happen to be small, the
differences have hardly any spread, but a mean of the order of 1/n, in standard deviations of the
losses. To intervals of differences that is added, in quadrature to half of their width.

Losses that are 0 or 1, hit or miss: Wilson's interval (1927) for their mean, and for a difference
that of Agresti and Min (2005), Wald's with half a sample added to each of the four ways in which
two models can hit or miss. Both stay honest where hardly any sample is missed, or where the two
models hardly ever disagree.

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

# Standard deviations of the losses, over n, by which a mean difference may be wrong where the
# differences have no spread. Of squared errors with and without a column of noise it is √2.
_OF_ORDER = 2.0


@dataclass(frozen=True)
class Mean:
    """A mean over samples, and its interval at some confidence."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> np.ndarray:
        """(low, high)."""
        return np.array([self.low, self.high])

    def times(self, factor: float, shift: float = 0.0) -> Mean:
        """``shift + factor · mean``; a negative factor turns the interval round."""
        low, high = sorted((shift + factor * self.low, shift + factor * self.high))
        return Mean(shift + factor * self.value, low, high)


#: What is not known.
UNKNOWN = Mean(np.nan, np.nan, np.nan)

# The largest exponent of e: wider intervals, such as those of two numbers, end there.
_LARGEST_EXPONENT = 700.0


def within_range(
    value: float, error: float, quantile: float, least: float = -np.inf, most: float = np.inf
) -> tuple[float, float]:
    """Ends of the interval of a value with a standard error, both from `least` to `most`.

    ``value ± quantile · error``; if the range ends on one side, the same for the logarithm of the
    distance from this end; if on both, Wilson's interval of a share with the same error. All of
    them contain the value and stay in the range. NaN where the quantile is NaN: a single sample
    has no spread.
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
    # Up to rounding they do already.
    return max(min(low, value), least), min(max(high, value), most)


def wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Ends of Wilson's interval of a share of n independent samples."""
    more = quantile**2
    centre = (n * share + 0.5 * more) / (n + more)
    half = quantile * float(np.sqrt(n * share * (1.0 - share) + 0.25 * more)) / (n + more)
    # A share of 0 or 1 is an end of its interval, up to rounding.
    return max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)


@dataclass(frozen=True)
class Intervals:
    """How intervals are made of losses (n_rows,).

    Attributes
    ----------
    weights : ndarray of shape (n_rows,)
        Sample weights, in any unit.
    confidence : float
        Share of the intervals that are to cover the truth.
    train_share : float
        Part of the samples that each model was learnt from.
    hit_or_miss : bool
        Whether every loss is 0 or 1.
    slack : float
        Mean difference that models may have by the accuracy of their fits alone, in units of the
        standard deviation of the losses. Intervals of differences are wider by it on either side.
    groups : ndarray of shape (n_rows,) or None
        Rows of one group are not independent; None if all rows are.
    """

    weights: np.ndarray
    confidence: float
    train_share: float = 1.0
    hit_or_miss: bool = False
    slack: float = 0.0
    groups: np.ndarray | None = None

    def of(self, losses: np.ndarray) -> Mean:
        """The mean loss."""
        values, weights, n = self._judged(losses)
        mean = float(weights @ values / n)
        if self.hit_or_miss:
            quantile = float(stats.norm.isf(self._tail))
            mean = min(mean, 1.0)  # up to rounding it is
            return Mean(mean, *wilson(mean, self._independent(n), quantile))
        least = 0.0 if (values >= 0.0).all() else -np.inf
        quantile = float(stats.t.isf(self._tail, n - 1.0))
        return Mean(mean, *within_range(mean, self._error(losses), quantile, least))

    def of_difference(self, first: np.ndarray, second: np.ndarray) -> Mean:
        """How much larger the losses `first` are in the mean than the losses `second`."""
        difference = first - second
        if self.hit_or_miss:
            return self._of_matched_shares(difference)
        values, weights, n = self._judged(difference)
        mean, deviation = float(weights @ values / n), self._deviation(second)
        half = float(stats.t.isf(self._tail, n - 1.0)) * self._error(difference)
        half = float(np.hypot(half, _OF_ORDER * deviation / n)) + self.slack * deviation
        return Mean(mean, mean - half, mean + half)

    def _judged(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Mean values and weights of the groups that were judged, and the number n of samples.

        The weights have the sum n.
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
        """How many independent samples tell as much as n that share their training samples."""
        return n / (1.0 + 1.0 / self.train_share)

    def _deviation(self, values: np.ndarray) -> float:
        """Standard deviation of what one sample adds; 0 for a single sample."""
        values, weights, n = self._judged(values)
        if n <= 1.0:
            return 0.0
        mean = weights @ values / n
        return float(np.sqrt(weights @ (values - mean) ** 2 / (n - 1.0)))

    def _error(self, values: np.ndarray) -> float:
        """Standard error of the mean."""
        _, _, n = self._judged(values)
        return self._deviation(values) / float(np.sqrt(self._independent(n)))

    @property
    def _tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _of_matched_shares(self, difference: np.ndarray) -> Mean:
        difference, weights, n = self._judged(difference)
        mean, disagree = float(weights @ difference / n), float(weights @ difference**2 / n)
        # Half a sample each: both hit, both miss, only the first, only the second.
        n = self._independent(n)
        size = n + 2.0
        centre, disagree = n * mean / size, (n * disagree + 1.0) / size
        half = stats.norm.isf(self._tail) * np.sqrt((disagree - centre**2) / size)
        # The centre is nearer to zero than the mean: at a low confidence the mean may lie outside.
        low, high = min(float(centre - half), mean), max(float(centre + half), mean)
        return Mean(mean, max(low, -1.0), min(high, 1.0))
