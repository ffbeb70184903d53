"""Analytic update: weights in closed form between two fits of the discriminant.

Evaluations of the loss alternate with the update of :mod:`manykernels.solvers.updates`, for any
p ≥ 1. Yan 2012 reports numerical trouble close to p = 1; here weights are kept as logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...domains import Array, Domain
from ...losses.base import Loss
from ..base import Solver, start_or_uniform
from ..run import Run
from ..updates import analytic_update


@dataclass(frozen=True)
class Analytic(Solver, name="analytic"):
    """Alternates between the discriminant and the closed form of its best weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> model = MKFDA(p=1.5, solver="analytic").fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged
    True
    """

    # Convergence is linear, and slow near p = 1.
    default_max_iter = 5000

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        with np.errstate(divide="ignore"):
            log_weights = np.log(start_or_uniform(start, loss, domain))
            while not run.record(point := loss.evaluate(np.exp(log_weights))):
                # A loss may have raised a weight that was too small for it.
                log_weights = np.maximum(log_weights, np.log(point.weights))
                updated = analytic_update(log_weights, point.gains, domain)
                if np.array_equal(updated, log_weights):
                    return "no kernel has a gain, or the weights stay as they are"
                log_weights = updated
        return None
