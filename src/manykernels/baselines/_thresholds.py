"""Optimal threshold of a sum of hinge functions."""

import numpy as np

from ..utils.numerics import ACCUMULATED


def best_threshold(points: np.ndarray, weights: np.ndarray, total: float) -> float:
    """Return the minimiser b of ``Σ_i w_i max(0, b − t_i) − total · b``.

    It is a quantile of the points t: the slope at b is the weight of the points below b minus
    `total`, which is positive and at most the sum of the weights. If the minimisers are an
    interval between two points, its midpoint is returned; if it is unbounded, its lower end.
    """
    order = np.argsort(points)
    below = np.cumsum(weights[order])
    allowed = ACCUMULATED * below[-1]
    first, last = np.searchsorted(below, [total - allowed, total + allowed])
    first = min(int(first), len(points) - 1)
    last = int(last) if last < len(points) else first
    return 0.5 * float(points[order[first]] + points[order[last]])
