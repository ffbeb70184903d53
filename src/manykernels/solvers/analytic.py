"""Analytic update: weights in closed form between two fits of the discriminant.

For fixed weights the discriminant splits into parts ``f = Σ_j f_j`` with squared norms
``‖f_j‖² = β_j² g_j`` (up to a constant factor). For fixed parts the weights enter the objective
as ``Σ_j ‖f_j‖²/β_j``, which is least over ``‖β‖_p ≤ 1`` at

    β_j ∝ (β_j² g_j)^{1/(p+1)}

(Kloft et al. 2011; Yan 2012, end of section 2.1). Alternating the two never increases F, for
any p ≥ 1. Close to p = 1 weights of useless kernels fall like a geometric series, where the
authors of Yan 2012 met numerical trouble; here weights are kept as logarithms, in which the
update is linear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Loss
from .base import Solver, Walk


def updated(log_weights: Array, gains: Array, domain: Domain) -> Array:
    """Logarithms of the weights after one update; kernels without weight or gain stay out."""
    with np.errstate(divide="ignore"):
        # Gains may be below zero, of a tilted loss or by rounding; they are worth no weight.
        log_strength = 2.0 * log_weights + np.log(np.maximum(gains, 0.0))
    return domain.balance(log_strength) if np.isfinite(log_strength).any() else log_weights


@dataclass(frozen=True)
class Analytic(Solver, name="analytic"):
    """Alternates between the discriminant and the closed form of its best weights.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = X[:, 0] > 0
    >>> model = MKFDA(p=1.5, solver="analytic").fit(X, y)
    >>> model.certificate_.converged
    True
    """

    default_max_iter = 5000

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str | None:
        weights = domain.start(loss.n_kernels) if start is None else start
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
            while not walk.arrive(point := loss.evaluate(np.exp(log_weights))):
                # A loss may have raised a weight that was too small for it.
                log_weights = np.maximum(log_weights, np.log(point.weights))
                before, log_weights = log_weights, updated(log_weights, point.gains, domain)
                if np.array_equal(before, log_weights):
                    return "no kernel has a gain, or the weights stay as they are"
        return None
