"""Regions that are learnt once, without labels, and the shares that samples have in them.

Shares ``s_l(x) ≥ 0`` sum to one at every sample. From a kernel k_j each region l gets a kernel

    K_lj(x, x') = √s_l(x) √s_l(x') k_j(x, x')

so that weights can be learnt for every region, still a convex problem (Lei et al. 2016). The
paper has the shares themselves in the place of their roots. With roots ``Σ_l K_lj(x, x)`` is
``k_j(x, x)``: a sample is as long between regions as inside of one, and if all samples have equal
shares the problem is that of plain weights. Where every sample belongs to one region only, both
are the same.

**Regions of kernels** (:class:`KernelRegions`). Kernel k-means on the mean k of the kernels; the
squared distance of x from the mean of the samples in region l is

    d_l²(x) = k(x, x) − 2 mean_i k(x, x_i) + mean_ii' k(x_i, x_i')        over samples i, i' in l

and shares are ``s_l ∝ exp(−sharpness · d_l²/scale)``. The scale is the mean over training samples
of how much further the second nearest region is than the nearest, in d². So a typical sample has
``exp(sharpness)`` times the share in its region that it has in the next.
"""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._rounding import ACCUMULATED
from .._sklearn import Interval
from .._warnings import warn_caller
from .gates import Array

# Limit on steps of k-means, which ends where no sample changes its region; it rarely takes more
# than twenty.
_MOST_STEPS = 300
# A later start has to be better by this part, so that rounding does not decide between two that
# found the same regions.
_BETTER = 1e-9


class KernelRegions(BaseEstimator):
    """Regions by kernel k-means on the mean of several kernels.

    Neither the order of samples nor that of kernels matters, and a sample of weight two is two
    samples. Regions are in the order of their sizes, the largest first.

    Parameters
    ----------
    n_regions : int, default=3
        If there are fewer different samples, there are fewer regions, with a warning.
    sharpness : float in [0, inf], default=0.5
        Logarithm of how many times larger the share of a typical sample is in its own region than
        in the next: 0 gives equal shares everywhere, inf one region to every sample.
    n_init : int, default=10
        Starts of k-means, drawn as by k-means++; the one with the smallest distances is kept.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    n_regions_ : int
    labels_ : ndarray of shape (n_samples,)
        The nearest region of each training sample.
    inertia_ : float
        Sum of squared distances of training samples from their regions.
    scale_ : float
        The scale of distances, see above.

    Notes
    -----
    Of a sample that is similar to no training sample, as far away with Gaussian kernels, only
    ``mean_ii' k(x_i, x_i')`` tells regions apart: it has the largest share in the widest region.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.gating import KernelRegions
    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> stack = KernelStack.from_arrays([x @ x.T])
    >>> KernelRegions(2, sharpness=4).fit(stack).shares(stack).round(2)
    array([[0.98, 0.02],
           [0.98, 0.02],
           [0.98, 0.02],
           [0.02, 0.98],
           [0.02, 0.98]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_regions": [Interval(Integral, 1, None, closed="left")],
        "sharpness": [Interval(Real, 0, None, closed="both")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_regions: int = 3,
        *,
        sharpness: Any = 0.5,
        n_init: int = 10,
        random_state: Any = 0,
    ) -> None:
        self.n_regions = n_regions
        self.sharpness = sharpness
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, stack: Any, sample_weight: Array | None = None) -> Self:
        """Learn regions from the kernels of training samples, a Gram stack."""
        self.fit_part(stack, sample_weight)
        if self.n_regions_ < self.n_regions:
            warn_caller(
                f"There are {self.n_regions_} regions, not {self.n_regions}: by the mean of the "
                "kernels no more training samples differ from each other.",
                UserWarning,
            )
        return self

    def fit_part(self, stack: Any, sample_weight: Array | None = None) -> Self:
        """The same for the training part of a fold, of which fewer regions are no surprise."""
        self._validate_params()
        weights = np.ones(len(stack)) if sample_weight is None else np.asarray(sample_weight)
        mean = stack.combine(np.full(stack.n_kernels, 1.0 / stack.n_kernels))
        rng = check_random_state(self.random_state)
        best = _cluster(mean, weights, self.n_regions, rng)
        for _ in range(1, self.n_init):
            other = _cluster(mean, weights, self.n_regions, rng)
            if other.inertia < (1.0 - _BETTER) * best.inertia:
                best = other
        self.n_regions_ = best.n_regions
        self.inertia_ = best.inertia
        # Coefficients of the means of the regions, (n_samples, n_regions), and their lengths, less
        # that of the first sample. A large constant that the kernel may have cancels entry by
        # entry, before sums make rounding errors of it.
        self._means = best.means(weights)
        products = (mean - mean[:, :1]) @ self._means
        self._lengths = np.sum(self._means * (products - products[0]), axis=0) + 2 * products[0]
        distances = self._lengths - 2.0 * products
        self.labels_ = distances.argmin(axis=1)
        self.scale_ = _mean_margin(distances, weights)
        return self

    def with_sharpness(self, sharpness: float) -> Self:
        """The same regions, fitted, with other shares."""
        new = copy(self)
        new.sharpness = sharpness
        return new

    def shares(self, stack: Any) -> Array:
        """Shares of the rows of a block between new samples and all training samples.

        Returns
        -------
        shares : ndarray of shape (rows, n_regions)
        """
        check_is_fitted(self, "scale_")
        distances = self._distances(stack)
        if np.isinf(self.sharpness):
            shares = (distances == 0.0).astype(np.float64)
        else:
            # Of samples far outside the exponent may overflow; their share is then zero.
            with np.errstate(over="ignore"):
                shares = np.exp(-self.sharpness * (distances / self.scale_))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _distances(self, stack: Any) -> Array:
        """Squared distances from the regions, less that from the nearest, (rows, n_regions)."""
        mean = stack.combine(np.full(stack.n_kernels, 1.0 / stack.n_kernels))
        # What is the same for all regions is left out: k(x, x), and the first column.
        distances: Array = self._lengths - 2.0 * ((mean - mean[:, :1]) @ self._means)
        distances -= distances.min(axis=1, keepdims=True)
        return distances

    def share_errors(self, stack: Any) -> Array:
        """Relative rounding errors of the shares of the rows of a Gram stack, at most one.

        Entries of a kernel are computed again for predictions. Rounding errors of the entries
        are errors of distances, and these are divided by what tells regions apart:
        ``δs_l/s_l = (sharpness/scale) (Σ_k s_k δd_k² − δd_l²)``.

        Returns
        -------
        errors : ndarray of shape (rows, n_regions)
        """
        errors = 2.0 * stack.resolution * np.abs(stack.row_diag).mean(axis=0)[:, None]
        if np.isinf(self.sharpness):
            second = np.sort(self._distances(stack), axis=1)[:, 1:2]
            unsure = (second <= errors).any(axis=1, keepdims=True)
            return np.asarray(np.repeat(unsure, self.n_regions_, axis=1), dtype=np.float64)
        others = 1.0 - self.shares(stack)
        return np.asarray(np.minimum(self.sharpness / self.scale_ * errors * others, 1.0))


def _mean_margin(distances: Array, weights: Array) -> float:
    """Mean of how much further the second nearest region is than the nearest; positive."""
    if distances.shape[1] == 1:
        return 1.0
    nearest, second = np.partition(distances, 1, axis=1)[:, :2].T
    margin = float(np.average(second - nearest, weights=weights))
    return margin if margin > 0.0 else 1.0


class _Clusters(NamedTuple):
    """Samples by region, and the weighted sum of their squared distances from its mean."""

    labels: np.ndarray
    n_regions: int
    inertia: float

    def means(self, weights: Array) -> Array:
        """Coefficients of the mean of each region, (n_samples, n_regions)."""
        table = weights[:, None] * (self.labels[:, None] == np.arange(self.n_regions))
        return np.asarray(table / table.sum(axis=0))


def _cluster(kernel: Array, weights: Array, n_regions: int, rng: Any) -> _Clusters:
    """Kernel k-means from one random start; the largest region comes first."""
    labels, every = _seeded(kernel, weights, n_regions, rng), np.arange(len(kernel))
    rounding = _rounding(kernel)
    for _ in range(_MOST_STEPS):
        distances = _distances(kernel, weights, labels)
        own = distances[every, labels]
        # A sample as near to its own region as to another one stays, and no region is emptied.
        moving = distances.min(axis=1) < own - rounding
        changed = np.where(moving, distances.argmin(axis=1), labels)
        if len(np.unique(changed)) < distances.shape[1] or not moving.any():
            break
        labels = changed
    sizes = np.bincount(labels, weights)
    order = np.argsort(-sizes, kind="stable")
    return _Clusters(np.argsort(order)[labels], len(sizes), float(weights @ own))


def _rounding(kernel: Array) -> float:
    """Size of rounding errors of squared distances; no entry is above the largest length."""
    return ACCUMULATED * float(np.abs(np.diag(kernel)).max(initial=0.0))


def _distances(kernel: Array, weights: Array, labels: np.ndarray) -> Array:
    """Squared distances of all samples from the means of all regions."""
    means = _Clusters(labels, int(labels.max()) + 1, np.inf).means(weights)
    products = kernel @ means
    lengths = np.sum(means * products, axis=0)
    return np.asarray(np.maximum(np.diag(kernel)[:, None] - 2.0 * products + lengths, 0.0))


def _seeded(kernel: Array, weights: Array, n_regions: int, rng: Any) -> np.ndarray:
    """Labels by the nearest of random samples, drawn as by k-means++.

    Each is drawn with a probability in proportion to its squared distance from those before. The
    draw is a quantile in the order of distances, so that the order of rows does not matter.
    """
    diagonal = np.diag(kernel)
    share = weights / weights.sum()
    with_mean = kernel @ share
    distances = np.maximum(diagonal - 2.0 * with_mean + share @ with_mean, 0.0)
    # The first is drawn by weight alone.
    mass, least = weights, _rounding(kernel)
    labels, nearest = np.zeros(len(kernel), dtype=np.intp), np.full(len(kernel), np.inf)
    for region in range(n_regions):
        if region and not (nearest > least).any():
            break
        order = np.argsort(distances, kind="stable")
        reached = np.cumsum(mass[order])
        drawn = order[np.searchsorted(reached, rng.uniform() * reached[-1], side="right")]
        own = np.maximum(diagonal - 2.0 * kernel[drawn] + diagonal[drawn], 0.0)
        own[drawn] = 0.0
        labels = np.where(own < nearest, region, labels)
        nearest = np.minimum(nearest, own)
        distances = np.where(nearest > least, nearest, 0.0)
        mass = weights * distances
    return labels
