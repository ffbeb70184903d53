"""How many kernels a model uses: of kernel weights, over their last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

# A kernel counts as in use if it has more than this share of the weights. Smaller shares are below
# what a relative gap of 1e-6 determines.
_IN_USE = 1e-4


def effective_number(weights: Any) -> Any:
    """Effective number of kernels, ``(Σ w)² / Σ w²``, over the last axis.

    n kernels of equal weight count as n, and one that has all the weight as 1. Small weights
    hardly change it; the other usual measure, the exponential of the entropy of the shares, also
    counts the small weights that every p > 1 gives to every kernel.

    Parameters
    ----------
    weights : array-like of shape (..., n_kernels)
        Non-negative, not all zero. NaN, where a path could not be solved, gives NaN.

    Examples
    --------
    >>> from manykernels.report import effective_number
    >>> float(effective_number([0.5, 0.5, 0.0])), float(effective_number([3.0, 0.0]))
    (2.0, 1.0)
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not weights.size or weights.min() < 0 or (weights.max(axis=-1) <= 0).any():
        raise ValueError("Weights must be non-negative, and not all zero.")
    weights = weights / weights.max(axis=-1, keepdims=True)
    return weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1)


def in_use(weights: np.ndarray) -> np.ndarray:
    """Which kernels have more than a negligible share of the weights, over the last axis."""
    total = weights.sum(axis=-1, keepdims=True)
    used: np.ndarray = weights > _IN_USE * total
    return used
