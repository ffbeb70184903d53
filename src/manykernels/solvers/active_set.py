"""Active sets: minimise over the few kernels that can have a weight, certify over all.

On a simplex, ``Σ_j r_j β_j ≤ 1`` with prices r_j, few kernels have a weight at the minimum: some
minimiser has at most one more than there are dual variables. So F is minimised over an active set
W of kernels, the others at zero, and the dual point α that proves the minimum over W (a convex
combination of inner solutions where F has a kink, see :mod:`~manykernels.solvers.cuts`),

    F(b) ≥ c(α) − max_{j ∈ W} g_j(α)/r_j   for all b with weights on W only,

proves a lower bound over all kernels: the same with the maximum over all j, one pass over the
kernels. If that is within the tolerance, the weights are certified as if all kernels had taken
part. If not, a kernel outside W has the largest gain per price. The next W has the kernels that
have a weight now and those with the largest gains per price. The last solution is feasible there,
hence F never rises from round to round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..domains import Array, Domain, Simplex
from ..losses.base import Indices, Loss
from .base import start_or_uniform
from .certificate import NO_BOUND, Bound, certify
from .run import Run

#: Least number of kernels for active sets. They take more inner solves than Newton steps on all
#: kernels, but smaller quadratic programs, whose time grows with the cube of their size. Measured:
#: twice the inner solves; equal times at 75 to 100 kernels on 30 or 100 samples, about 200 on 300.
MANY_KERNELS = 150
# Kernels of largest gains that join a round. Measured: 20 and 100 take 8 % more inner solves.
_CANDIDATES = 50
# A round is solved to this part of the gap over all kernels, as the next active set differs
# (measured: 0.01 takes 10 % fewer inner solves, 0.5 takes 19 % more), but no further than to this
# part of the tolerance, which leaves room for the gains of the other kernels (0.1 to 0.9 alike).
_PART_OF_GAP = 0.1
_PART_OF_TOL = 0.3

#: Minimises a loss over a domain, from some weights.
Descent = Callable[[Loss, Domain, Run, Array], None]


def minimize_on_active_sets(
    descend: Descent, loss: Loss, domain: Simplex, run: Run, start: Array | None
) -> None:
    """Minimise `loss` over `domain`; a round on one active set is an outer iteration."""
    n = loss.n_kernels
    point = loss.evaluate(start_or_uniform(start, loss, domain))
    gains, n_solves, bound = point.gains, 1, NO_BOUND
    # A start with weights on most kernels does not tell which ones matter.
    weighted = np.flatnonzero(point.weights)
    weighted = weighted if len(weighted) < n // 2 else weighted[:0]
    active, tol = weighted[:0], np.inf
    while not run.record(point, n_solves, bound):
        last_active, last_tol = active, tol
        active = active_kernels(loss, domain, weighted, gains)
        tol = max(_PART_OF_TOL * run.tol, _PART_OF_GAP * run.certificate.rel_gap)
        if np.array_equal(active, last_active) and tol >= last_tol:
            # The last descent has missed its tolerance on the same kernels; this one would too.
            break
        face = domain.restricted(active)
        inner = Run(face, tol, run.max_iter)
        held = point.weights[active]
        begin = face.onto_boundary(held) if held.any() else face.start(len(active))
        descend(loss.restricted(active), face, inner, begin)
        weights = np.zeros(n)
        weights[active] = inner.best.weights
        weighted = np.flatnonzero(weights)
        point = loss.evaluate(weights)
        gains, n_solves, bound = point.gains, 1 + inner.n_inner_solves, NO_BOUND
        dual = inner.bound.dual
        if dual is not None and not certify(point, domain, run.tol).exhausted:
            gains = loss.gains_at(dual)
            bound = Bound(inner.bound.constant - domain.support(gains), dual)


def active_kernels(loss: Loss, domain: Simplex, weighted: Indices, gains: Array) -> Indices:
    """Kernels with a weight, or with one of the largest gains per price; sorted."""
    gains_per_price = gains / domain.prices(len(gains))
    best = np.argpartition(-gains_per_price, _CANDIDATES)[:_CANDIDATES]
    chosen = np.union1d(weighted, best)
    # The weight of the regularisation stays: at zero the inner problem may have no solution.
    return np.union1d(chosen, [0]) if loss.outline.learns_reg else chosen
