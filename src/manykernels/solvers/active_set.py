"""Few kernels at a time: the problem of those that can enter, certified over all.

On a simplex, ``Σ_j r_j β_j ≤ 1``, few kernels have a weight at the minimum, no more than the
machine has degrees of freedom, however many there are. So most need only be looked at: F is
minimised over an active set W of kernels, the others at zero, and the dual point α that proves the
minimum over W,

    F(b) ≥ c(α) − max_{j ∈ W} g_j(α)/r_j   for all b with weights on W only,

proves with the gains of all kernels, one pass over them, what the minimum over all is at least:
the same with the maximum over all j. If that is within the tolerance, the weights are certified
as if all kernels had taken part. If not, a kernel outside W has the largest gain per price; the
next W are the kernels that have a weight now and those with the largest gains per price. The
solution so far is feasible for them, hence F falls from round to round.

Where F has a kink at its minimum α is a mixture of inner solutions, see
:mod:`~manykernels.solvers.cuts`.

Of the whole loss this takes two things only, each in one pass over the kernels however they are
kept: the gains of all kernels at one dual point, and the loss of a few of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..domains import Array, Domain, Simplex
from ..losses.base import Loss
from .base import NO_BOUND, Bound, Walk, certify
from .cuts import Proof

#: Where Newton steps on all kernels take longer: quadratic programs grow with the cube.
MANY_KERNELS = 150
# Kernels that join a round for their gains.
_CANDIDATES = 50
# A round is solved to this part of the gap over all kernels, and never further than needed.
_PART_OF_GAP = 0.1
_PART_OF_TOL = 0.3

Indices = NDArray[np.intp]

#: Minimises a loss over a domain from some weights; returns the best bound and how it is proved.
Descent = Callable[[Loss, Domain, Walk, Array], Proof]


def walk_on_active_kernels(
    descend: Descent, loss: Loss, domain: Simplex, walk: Walk, start: Array | None
) -> None:
    """Minimise `loss` over `domain` by descents on few kernels; a round is an iteration."""
    n = loss.n_kernels
    point = loss.evaluate(domain.start(n) if start is None else start)
    gains, n_solves, bound = point.gains, 1, NO_BOUND
    # A start on most kernels says nothing of which can enter.
    weighted = np.flatnonzero(point.weights)
    weighted = weighted if len(weighted) < n // 2 else weighted[:0]
    active, tol = weighted[:0], np.inf
    while not walk.arrive(point, n_solves, bound):
        last_active, last_tol = active, tol
        active = active_kernels(loss, domain, weighted, gains)
        tol = max(_PART_OF_TOL * walk.tol, _PART_OF_GAP * walk.certificate.rel_gap)
        if np.array_equal(active, last_active) and tol >= last_tol:
            # The last descent has ended short of its tolerance, and this one would.
            break
        room = domain.restricted(active)
        inner = Walk(room, tol, walk.max_iter, None)
        held = point.weights[active]
        begin = room.onto_boundary(held) if held.any() else room.start(len(active))
        proof = descend(loss.restricted(active), room, inner, begin)
        weights = np.zeros(n)
        weights[active] = inner.best.weights
        weighted = np.flatnonzero(weights)
        point = loss.evaluate(weights)
        gains, n_solves, bound = point.gains, 1 + inner.n_inner_solves, NO_BOUND
        if not certify(point, domain, walk.tol).exhausted:
            gains = loss.gains_at(proof.dual)
            bound = Bound(proof.constant - domain.support(gains), proof.dual)


def active_kernels(loss: Loss, domain: Simplex, weighted: Indices, gains: Array) -> Indices:
    """Kernels that have a weight, and those with the most gain per price; in order."""
    worth = gains / domain.prices(len(gains))
    chosen = np.union1d(weighted, np.argpartition(-worth, _CANDIDATES)[:_CANDIDATES])
    # The weight of the regularisation stays: without it there may be no machine.
    return np.union1d(chosen, [0]) if loss.outline.learns_reg else chosen
