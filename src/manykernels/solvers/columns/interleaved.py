"""ℓp-norm support vector machines whose weights are updated while the machine is trained.

Kloft et al. (2011), algorithm 2, the interleaved method that Yan 2012 compares with: the saddle
point ``min_β max_v D(v, β)`` needs no machine solved to the end before the weights move. Some
variables of the machine are improved at the current weights
(:mod:`manykernels.losses.box_ascent`). Their products ``K_jv`` give the gains
``g_j = ½ vᵀK_jv`` and a relaxed analytic update of the weights.

The paper has no relaxation, ω = 1. Over-relaxation pays where the gap ``P − D`` of the machines
is below the gap ``σ_B(g) − β·g`` of the weights. There ω starts at 1.8, and ω − 1 is halved
whenever the loss rises by more than that gap. All outputs are visited at the same weights.

After each round P, D and the gains give a true certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...domains import Array, Domain
from ...losses import BoxLoss
from ...losses.base import Loss
from ...losses.box_ascent import BoxAscent, InexactBoxPoint
from .._needs import box_loss, fixed_regularization
from ..base import Solver, start_or_uniform, weights_are_free
from ..run import Run
from ..updates import RELAXATION, relaxed_update, settled


@dataclass(frozen=True)
class Interleaved(Solver, name="interleaved"):
    """Working sets of a support vector machine and closed-form weights in turn, any p ≥ 1.

    Parameters
    ----------
    working_set : int, default=2000
        Limit on the variables improved between two updates of the weights. Takes memory for
        ``working_set**2`` numbers.
    cache_bytes : int, default=2**31
        As for :class:`Coordinate`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from manykernels import MKSVC, rbf_grid
    >>> from manykernels.solvers import Interleaved
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MKSVC(rbf_grid([1, 4]), solver=Interleaved(working_set=100), tol=1e-3)
    >>> model.fit(scale(X), y).certificate_.converged
    True
    """

    working_set: int = 2000
    cache_bytes: int = 2**31

    by_columns = True
    needs = (box_loss, fixed_regularization)
    # Rounds, each far cheaper than a machine solved to the end.
    default_max_iter = 2000

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, BoxLoss)
        searching = weights_are_free(loss, domain)
        weights = start_or_uniform(start, loss, domain)
        ascent = BoxAscent(loss, self.working_set)
        # Gains mean nothing before every machine has taken some steps.
        ascent.visit_all(weights)
        relaxation = _Relaxation(domain)
        while not run.record(settled(point := ascent.point(weights), domain, ascent.point)):
            if searching:
                weights = relaxed_update(weights, point.gains, domain, relaxation.at(point))
            moved = ascent.visit_all(weights)
            if not moved and np.array_equal(weights, point.weights):
                return "neither machines nor weights move any more"
        return ""


class _Relaxation:
    """ω of the next update; see the module."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._excess = RELAXATION - 1.0
        self._last = np.inf

    def at(self, point: InexactBoxPoint) -> float:
        """ω for the update from here."""
        gap = self._domain.support(point.gains) - float(point.weights @ point.gains)
        if point.slack > gap:
            return 1.0
        if point.value > self._last + gap:
            self._excess *= 0.5
        self._last = point.value
        return 1.0 + self._excess
