"""Intervals of means over samples, of losses and of paired differences of losses.

A row of weight w stands for w samples, so that n below is the sum of the weights.

Models that were learnt without single samples, or without folds, share nearly all their samples.
So their losses are not independent, and mean losses vary more than ``s²/n``: Nadeau and Bengio
(2003) put ``s²(1/n + 1/n_train)`` in its place, about twice as much. That is what all intervals
use, by counting ``1/(1/n + 1/n_train)`` samples. How often they cover the truth is measured in
docs/benchmarks/importance.md.

Losses that are numbers have Student's interval, of the losses themselves or of the differences
between two models at the same samples. A view of noise changes outputs by errors of estimation
only. Where these happen to be small, the differences have hardly any spread, but a mean of the
order of 1/n, in standard deviations of the losses. To intervals of differences that is added, in
quadrature to half of their width.

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


@dataclass(frozen=True)
class Intervals:
    """How intervals are made of losses (n_rows,).

    Attributes
    ----------
    weights : ndarray of shape (n_rows,)
        How many samples each row stands for.
    confidence : float
        Share of the intervals that are to cover the truth.
    train_share : float
        Part of the samples that each model was learnt from.
    hit_or_miss : bool
        Whether every loss is 0 or 1.
    slack : float
        Mean difference that models may have by the accuracy of their fits alone, in units of the
        standard deviation of the losses. Intervals of differences are wider by it on either side.
    """

    weights: np.ndarray
    confidence: float
    train_share: float = 1.0
    hit_or_miss: bool = False
    slack: float = 0.0

    def of(self, losses: np.ndarray) -> Mean:
        """The mean loss."""
        if self.hit_or_miss:
            return self._of_share(losses)
        return self._around_mean(losses, self._half_width(losses))

    def of_difference(self, first: np.ndarray, second: np.ndarray) -> Mean:
        """How much larger the losses `first` are in the mean than the losses `second`."""
        difference = first - second
        if self.hit_or_miss:
            return self._of_matched_shares(difference)
        (_, _, n), deviation = self._judged(difference), self._deviation(second)
        half = np.hypot(self._half_width(difference), _OF_ORDER * deviation / n)
        return self._around_mean(difference, float(half) + self.slack * deviation)

    def _judged(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Values and weights of the rows that were judged, and the number n of samples."""
        known = ~np.isnan(values)
        weights = self.weights[known]
        return values[known], weights, float(weights.sum())

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

    def _half_width(self, values: np.ndarray) -> float:
        """Half of Student's interval."""
        _, _, n = self._judged(values)
        error = self._deviation(values) / np.sqrt(self._independent(n))
        return float(stats.t.isf(self._tail, n - 1.0) * error)

    def _around_mean(self, values: np.ndarray, half: float) -> Mean:
        values, weights, n = self._judged(values)
        mean = float(weights @ values / n)
        return Mean(mean, mean - half, mean + half)

    @property
    def _tail(self) -> float:
        return (1.0 - self.confidence) / 2.0

    def _of_share(self, values: np.ndarray) -> Mean:
        values, weights, n = self._judged(values)
        share, z, n = float(weights @ values / n), stats.norm.isf(self._tail), self._independent(n)
        centre = (share + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
        half = z * np.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2) / (1.0 + z**2 / n)
        return Mean(share, max(float(centre - half), 0.0), min(float(centre + half), 1.0))

    def _of_matched_shares(self, difference: np.ndarray) -> Mean:
        difference, weights, n = self._judged(difference)
        mean, disagree = float(weights @ difference / n), float(weights @ difference**2 / n)
        # Half a sample each: both hit, both miss, only the first, only the second.
        n = self._independent(n)
        size = n + 2.0
        centre, disagree = n * mean / size, (n * disagree + 1.0) / size
        half = stats.norm.isf(self._tail) * np.sqrt((disagree - centre**2) / size)
        return Mean(mean, max(float(centre - half), -1.0), min(float(centre + half), 1.0))
