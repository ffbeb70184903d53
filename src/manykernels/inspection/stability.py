"""How much kernel weights owe to the samples at hand: weights learnt from half-samples.

A half-sample is a fit on the same kernels in which half of the samples count twice and the others
not at all, so that the regularisation stays in proportion. Estimates from halves of the samples
vary about as much as those of new samples of full size would: the variance of a mean over half of
n samples, given all of them, is ``s²(2/n − 1/n)``. Where they lie is another matter. Fewer
different samples tell the views apart less well, so that weights of half-samples are nearer to
each other than those of all samples, and quantiles of them may not even contain these. So an
interval has the width of half-samples, and the weight learnt from all samples in its middle, as
far as shares from 0 to 1 go. How often that covers the mean weight of new samples of the same size
is measured in docs/benchmarks/importance.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from .study import Study
from .views import ViewKernels


def half_samples(
    strata: np.ndarray, groups: np.ndarray, number: int, rng: np.random.RandomState
) -> Iterator[Any]:
    """Counts 0 and 2 of the rows, one half after the other; each stratum is halved.

    Groups of rows are in a half or not. The second of two halves has the groups that the first has
    not. A stratum of one group is in every half.
    """
    _, first, group_of_row = np.unique(groups, return_index=True, return_inverse=True)
    strata = strata[first]
    half = np.zeros(len(strata), bool)
    for turn in range(number):
        half = ~half if turn % 2 else _first_half(strata, rng)
        chosen = half.copy()
        for stratum in np.unique(strata):
            members = np.flatnonzero(strata == stratum)
            if len(members) == 1:
                chosen[members] = True
        yield 2.0 * chosen[group_of_row]


def _first_half(strata: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    half = np.zeros(len(strata), bool)
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        half[members[: (len(members) + 1) // 2]] = True
    return half


def shares_of_views(fitted: Any, names: list[str], views: list[ViewKernels]) -> np.ndarray:
    """Part of each view in the sum of the weights of a model, (n_views,).

    Machines and regions with weights of their own count alike. `names` are those of the kernels
    of the model, some of which it may have cut into bands, ``"name[range]"``.
    """
    weights = np.asarray(fitted.weights_)
    weights = weights.reshape(-1, weights.shape[-1])
    weights = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    of_kernel = np.zeros(len(names))
    for name, weight in zip(fitted.kernel_names_, weights, strict=True):
        of_kernel[names.index(name if name in names else name.rpartition("[")[0])] += weight
    return np.array([of_kernel[view.kernels].sum() for view in views])


def share_intervals(shares: np.ndarray, resampled: np.ndarray, confidence: float) -> np.ndarray:
    """(low, high) of every share, (n_views, 2), from those of resamples, (n_resamples, n_views).

    Student's, with the standard deviation of the resamples; NaN with less than two of these.
    """
    if len(resampled) < 2:
        return np.full((len(shares), 2), np.nan)
    quantile = stats.t.isf((1.0 - confidence) / 2.0, len(resampled) - 1)
    half = quantile * np.std(resampled, axis=0, ddof=1)
    return np.clip(np.column_stack([shares - half, shares + half]), 0.0, 1.0)


def resampled_shares(
    study: Study, learner: Any, views: list[ViewKernels], counts: Iterator[np.ndarray]
) -> Iterator[np.ndarray]:
    """Shares of the views by models of resamples, one after the other."""
    names = study.stack.names
    for resample in counts:
        own = resample if study.counts is None else resample * study.counts
        yield shares_of_views(study.fit(learner, slice(None), own), names, views)
