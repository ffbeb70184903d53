"""From class scores to calibrated probabilities: one temperature, one exponent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_softmax

from .._rounding import ACCUMULATED, EPS, ROUNDING

# Newton's method takes about ten steps; the limit ends a loop that rounding errors keep alive.
_MAX_STEPS = 100
# Predicted decrease of the log loss below which a Newton step is the last one. The log loss is of
# order one, and the step after it would change it by the square of this.
_LAST_DECREASE = 10 * ROUNDING
# Armijo's condition: part of the predicted decrease that a step has to attain (the usual value).
_ARMIJO = 1e-4
# Least temperature, in units of the inverse spread of the scores. Where scores of left-out samples
# carry no information, probabilities equal the priors to three digits and still rank samples.
_LEAST_TEMPERATURE = 1e-3


@dataclass(frozen=True)
class Calibration:
    """``log P(k|x) = τ s_k(x) + b o_k``, up to a constant, for scores s and offsets o.

    The offsets are logarithms of class frequencies, or zero where the scores contain these
    already.
    """

    temperature: float = 1.0
    exponent: float = 1.0

    def log_probabilities(self, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Logarithms of the class probabilities, (n, c)."""
        return log_softmax(self.temperature * scores + self.exponent * offsets, axis=1)

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        offsets: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray | None = None,
        n_samples: float | None = None,
    ) -> Calibration:
        """τ and b of the least log loss on samples that the scores have not seen.

        Where the scores make no mistake the log loss has no minimiser. So a share ``1/(m + 2)`` of
        every sample is divided equally among all classes (the rule of succession, as in Platt
        1999). Where b has no effect, as for classes of equal frequency, it is one.

        Parameters
        ----------
        scores : ndarray of shape (n, c)
        offsets : ndarray of shape (c,) or (n, c)
        labels : ndarray of shape (n,)
            Positions of the true classes.
        weights : ndarray of shape (n,), optional
        n_samples : float, optional
            m; by default the number of rows.
        """
        size = float(len(scores) if n_samples is None else n_samples)
        share = np.ones(len(scores)) if weights is None else weights
        share = share / share.sum()
        spread = np.sqrt(share @ np.mean((scores - scores.mean(axis=1)[:, None]) ** 2, axis=1))
        if spread <= ROUNDING:
            return cls()
        features = np.stack([scores / spread, np.broadcast_to(offsets, scores.shape)])
        smooth = 1.0 / (size + 2.0)
        truth = np.full(scores.shape, smooth / scores.shape[1])
        truth[np.arange(len(labels)), labels] += 1.0 - smooth
        problem = _LogLoss(features, truth, share, ridge=1.0 / size)
        found = problem.minimizer(np.array([1.0, 1.0]), free=np.array([True, True]))
        if found[0] < _LEAST_TEMPERATURE:
            start = np.array([_LEAST_TEMPERATURE, found[1]])
            found = problem.minimizer(start, free=np.array([False, True]))
        return cls(float(found[0] / spread), float(found[1]))


@dataclass(frozen=True)
class CalibratedScores:
    """Scores of samples by a rule that has not seen them, calibrated on them.

    The calibration has two parameters and may see the samples that it is judged by. The fields
    are as in :meth:`Calibration.fit`.
    """

    scores: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None = None
    n_samples: float | None = None

    @cached_property
    def calibration(self) -> Calibration:
        return Calibration.fit(
            self.scores, self.offsets, self.labels, self.weights, self.n_samples
        )

    @property
    def log_probabilities(self) -> np.ndarray:
        """Logarithms of the class probabilities, (n, c)."""
        return self.calibration.log_probabilities(self.scores, self.offsets)


def log_losses(log_probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``−log P`` of the true class of every sample, (n,)."""
    return -log_probabilities[np.arange(len(labels)), labels]


def clearly_smaller(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray | None, n_samples: float
) -> bool:
    """Whether the mean of `first` is below that of `second` by more than a standard error.

    Both are losses of the same samples, so the standard error is that of their difference.
    Differences as small as those that the least temperature makes do not count.
    """
    difference = second - first
    mean = np.average(difference, weights=weights)
    variance = np.average((difference - mean) ** 2, weights=weights)
    return bool(mean > max(np.sqrt(variance / n_samples), _LEAST_TEMPERATURE))


class _LogLoss:
    """Convex function of (τ, b): log loss, and a ridge that draws b towards one.

    The ridge decides where the loss does not depend on b.
    """

    def __init__(
        self, features: np.ndarray, truth: np.ndarray, share: np.ndarray, ridge: float
    ) -> None:
        self.features, self.truth, self.share, self.ridge = features, truth, share, ridge

    def value(self, point: np.ndarray) -> float:
        logs = log_softmax(np.tensordot(point, self.features, 1), axis=1)
        misfit = -float(self.share @ np.einsum("nk,nk->n", self.truth, logs))
        return misfit + 0.5 * self.ridge * float(point[1] - 1.0) ** 2

    def gradient_and_hessian(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probabilities = np.exp(log_softmax(np.tensordot(point, self.features, 1), axis=1))
        flat, share = self.features.reshape(2, -1), self.share[:, None]
        gradient = flat @ ((probabilities - self.truth) * share).ravel()
        means = np.sum(self.features * probabilities, axis=2)
        second = (flat * (probabilities * share).ravel()) @ flat.T
        second -= (means * self.share) @ means.T
        gradient[1] += self.ridge * (point[1] - 1.0)
        second[1, 1] += self.ridge
        return gradient, second

    def minimizer(self, start: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Newton's method with backtracking in the `free` coordinates, down to rounding errors."""
        point, value = start, self.value(start)
        for _ in range(_MAX_STEPS):
            gradient, second = self.gradient_and_hessian(point)
            step = np.zeros(2)
            inner = second[np.ix_(free, free)]
            # A ridge keeps the matrix regular where scores have no effect, hence no curvature.
            inner[np.diag_indices(len(inner))] += ACCUMULATED * (1.0 + np.trace(inner))
            step[free] = -np.linalg.solve(inner, gradient[free])
            decrease = -float(gradient @ step)
            if decrease <= _LAST_DECREASE:
                return point + step
            factor = 1.0
            while (
                trial := self.value(point + factor * step)
            ) > value - _ARMIJO * factor * decrease:
                factor *= 0.5
                if factor < EPS:
                    return point
            point, value = point + factor * step, trial
        return point
