"""ℓp-norm support vector machines with weights learnt while the machine is.

Kloft et al. (2011), algorithm 2, the interleaved method that Yan 2012 compares with: the saddle
point ``min_β max_v D(v, β)`` needs no machine solved to the end before the weights move. Some
variables of the machine are improved at the current weights
(:mod:`manykernels.losses.box_ascent`), the products ``K_jv`` follow, and from these come the gains
``g_j = ½ vᵀK_jv`` and the analytic update of the weights,

    log β ← log β + ω (log β⁺ − log β),   β⁺ = argmin_{b ∈ B} Σ_j β_j² g_j / b_j

with ω = 1 in the paper. Almost twice that saves about half of the updates, as in
:mod:`manykernels.solvers.coordinate`, where machines follow at once: where ``P − D`` is below the
gap ``σ_B(g) − β·g`` of the weights. There ω starts at 1.8, and loses half of what it has above 1
whenever the loss rises. All outputs are visited at the same weights.

Nothing here is larger than a working set squared or the n·m products, so kernels may be had by
columns. After each round P, D and the gains give a true certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..domains import Array, Domain
from ..losses import BoxLoss
from ..losses.base import Loss
from ..losses.box_ascent import BoxAscent, InexactBoxPoint
from ._needs import box_loss, fixed_regularization
from .analytic import updated
from .base import Need, Solver, Walk

_RELAXATION = 1.8


@dataclass(frozen=True)
class Interleaved(Solver, name="interleaved"):
    """Working sets of a support vector machine and closed-form weights in turn, any p ≥ 1.

    Parameters
    ----------
    working_set : int, default=2000
        Most variables that are improved between two updates of the weights. Takes memory for
        ``working_set**2`` numbers.
    cache_bytes : int, default=2**31
        Memory for kernel columns that are kept, where an estimator computes them from a table.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.domains import lp_domain
    >>> from manykernels.losses import HingeLoss
    >>> from manykernels.solvers import Interleaved
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = np.sign(X[:, 0])
    >>> stack = KernelStack.from_arrays([np.outer(x, x) for x in X.T])
    >>> solution = Interleaved().solve(HingeLoss(stack, y, 1.0), lp_domain(2))
    >>> solution.certificate.converged
    True
    """

    working_set: int = 2000
    cache_bytes: int = 2**31

    by_columns: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (box_loss, fixed_regularization)
    default_max_iter = 2000

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str:
        assert isinstance(loss, BoxLoss)
        searching = loss.n_kernels > 1 and not domain.start_is_optimal
        weights = domain.start(loss.n_kernels) if start is None else start
        ascent = BoxAscent(loss, self.working_set)
        # Gains mean nothing before all machines have begun.
        ascent.visit_all(weights)
        pace = _Pace(domain)
        while not walk.arrive(_settled(point := ascent.point(weights), ascent, domain)):
            if searching:
                weights = _follow(weights, point.gains, domain, pace.next(point))
            moved = ascent.visit_all(weights)
            if not moved and np.array_equal(weights, point.weights):
                return "neither machines nor weights move any more"
        return ""


class _Pace:
    """ω of the next update; see the module."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._excess = _RELAXATION - 1.0
        self._last = np.inf

    def next(self, point: InexactBoxPoint) -> float:
        """How far to move from here."""
        gap = self._domain.support(point.gains) - float(point.weights @ point.gains)
        if point.slack > gap:
            return 1.0
        if point.value > self._last + gap:
            self._excess *= 0.5
        self._last = point.value
        return 1.0 + self._excess


def _settled(point: InexactBoxPoint, ascent: BoxAscent, domain: Domain) -> InexactBoxPoint:
    """The point, or if better the one without the weights that are on their way to zero."""
    if not (point.gains > 0.0).any():
        return point
    settled = domain.settle(point.weights, point.gains)
    if not settled.any() or np.array_equal(settled, point.weights):
        return point
    other = ascent.point(domain.onto_boundary(settled))
    return other if other.value <= point.value else point


def _follow(weights: Array, gains: Array, domain: Domain, pace: float) -> Array:
    """Weights moved by the relaxed analytic update; kernels without weight or gain stay out."""
    if not (weights * gains > 0.0).any():
        return weights
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.log(weights)
        step = updated(before, gains, domain) - before
    alive = np.isfinite(step)
    following = np.where(alive, before + pace * np.where(alive, step, 0.0), -np.inf)
    return domain.onto_boundary(np.exp(following - following.max()))
