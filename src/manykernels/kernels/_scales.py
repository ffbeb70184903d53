"""Bandwidths taken from training rows; a row of weight two counts as two equal rows."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from .._rounding import ACCUMULATED
from .._sklearn import Interval, StrOptions
from .base import Kernel

# The median distance is that of at most this many rows. Its standard error is then one to six per
# cent (measured for 50 to 1 normally distributed columns), which is enough for a bandwidth.
_MEDIAN_ROWS = 500


def gamma_options(*rules: str) -> list[Any]:
    """Constraints of a parameter `gamma`: a positive number or the name of one of `rules`."""
    return [Interval(Real, 0, None, closed="neither"), StrOptions(set(rules))]


def frozen_scale(kernel: Kernel, parameter: str, learnt: str) -> float:
    """The scale in use: attribute `learnt` of a fitted kernel, else the number `parameter`."""
    if hasattr(kernel, learnt):
        return getattr(kernel, learnt)
    value = getattr(kernel, parameter)
    if isinstance(value, Real):
        return float(value)
    raise NotFittedError(
        f"{type(kernel).__name__}({parameter}={value!r}) takes its {parameter} from training "
        f"rows: call fit first, or give {parameter} as a number."
    )


class GammaKernel(Kernel):
    """A kernel with a factor `gamma`: a number or the name of a rule in ``GAMMA_RULES``.

    A fitted kernel has the number as its attribute `gamma_`.
    """

    gamma: float | str

    def _learn_scale(self, X: Any, weights: np.ndarray) -> None:
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = GAMMA_RULES[gamma](self, X, weights)
        self.gamma_ = float(gamma)

    def _factor(self) -> float:
        return frozen_scale(self, "gamma", "gamma_")


def _inverse_variance(kernel: Any, X: Any, weights: np.ndarray) -> float:
    """``1 / (n_columns · variance)``, with the variance of all entries."""
    centre = np.average(np.asarray(X.mean(axis=1)).ravel(), weights=weights)
    variance = np.average(_mean_squared_deviations(X, centre), weights=weights)
    # Equal entries have the squared error of their mean as variance. `not` covers NaN (overflow).
    if not variance > (ACCUMULATED * centre) ** 2:
        return 1.0
    return 1.0 / (X.shape[1] * variance)


def _inverse_median_distance(kernel: Any, X: Any, weights: np.ndarray) -> float:
    """One over the weighted median distance of all ordered pairs, or over the mean if that is 0.

    Pairs of a row with itself count, since a row of weight two must count as two equal rows.
    """
    rows = np.arange(len(weights))
    if len(rows) > _MEDIAN_ROWS:
        rows = np.linspace(0, len(rows) - 1, _MEDIAN_ROWS).astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = kernel._comparison(X[rows], None).whole().ravel()
    pair_weights = np.outer(weights[rows], weights[rows]).ravel()
    # Without weights, the median is found without sorting.
    equal = np.ptp(weights[rows]) == 0.0
    median = np.quantile(
        distances, 0.5, weights=None if equal else pair_weights, method="inverted_cdf"
    )
    return 1.0 / float(median or np.average(distances, weights=pair_weights) or 1.0)


def _mean_squared_deviations(X: Any, centre: float) -> np.ndarray:
    """The mean of (entry − centre)² in each row."""
    if not sparse.issparse(X):
        return ((X - centre) ** 2).mean(axis=1)
    stored = sparse.csr_array(X, copy=True)
    stored.sum_duplicates()
    # Each zero that is not stored has the squared deviation centre².
    n_zeros = X.shape[1] - np.diff(stored.indptr)
    stored.data = (stored.data - centre) ** 2
    return (stored.sum(axis=1) + n_zeros * centre**2) / X.shape[1]


GAMMA_RULES = {
    "scale": _inverse_variance,
    "auto": lambda kernel, X, weights: 1.0 / X.shape[1],
    "median": _inverse_median_distance,
}
