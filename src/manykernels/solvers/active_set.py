"""Active sets: minimise over the few kernels that can have a weight, certify over all.

On a simplex, ``Σ_j r_j β_j ≤ 1`` with prices r_j, few kernels have a weight at the minimum: some
minimiser has at most one more than there are dual variables. So F is minimised over an active set
W of kernels, the others at zero, and the dual point α that proves the minimum over W (a convex
combination of inner solutions where F has a kink, see :mod:`~manykernels.solvers.newton`),

    F(b) ≥ c(α) − max_{j ∈ W} g_j(α)/r_j   for all b with weights on W only,

proves a lower bound over all kernels: the same with the maximum over all j, one pass over the
kernels. If that is within the tolerance, the weights are certified for all kernels. If not, a
kernel outside W has the largest gain per price. The next W has the kernels that have a weight now
and those with the largest gains per price. The last solution is feasible there, hence F never
rises from round to round.

With kernels on demand (:mod:`manykernels.losses.on_demand`), equal weights at the start would take
a sweep to add the kernels up. The first W is a sample of them instead, and as a sweep costs more
than a round, rounds have more kernels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..domains import Array, Domain, Simplex
from ..losses.base import Indices, Loss
from .base import NO_BOUND, Bound, Run, certify, start_or_uniform

#: Minimum number of kernels for active sets. They take more inner solves than Newton steps on all
#: kernels, but smaller quadratic programs, whose time grows with the cube of their size. Measured:
#: twice the inner solves; equal times at 75 to 100 kernels on 30 or 100 samples, about 200 on 300.
MANY_KERNELS = 150
# Number of kernels of largest gains that join a round. Measured: 20 and 100 take 8 % more solves.
_CANDIDATES = 50
# The same for kernels on demand, where a round costs less than the sweep that it saves, and the
# size of their matrices up to which there are more than the candidates above: 1 GiB of float64.
_CANDIDATES_ON_DEMAND = 300
_ENTRIES_ON_DEMAND = 2**27
# A round is solved to this fraction of the gap over all kernels, as the next active set differs
# (measured: 0.01 takes 10 % fewer inner solves, 0.5 takes 19 % more), but no further than to this
# fraction of the tolerance, which leaves room for the gains of the other kernels (0.1 to 0.9
# alike).
_PART_OF_GAP = 0.1
_PART_OF_TOL = 0.3
# Weights that tend to zero are set to zero at the end of a round if they have at most this
# fraction of the budget: to first order that lowers F, whose other kernels have larger gains.
_LEAST_SETTLED = 0.99

#: Minimises a loss over a domain, from some weights.
Descent = Callable[[Loss, Domain, Run, Array], None]


def minimize_on_active_sets(
    descend: Descent, loss: Loss, domain: Simplex, run: Run, start: Array | None
) -> None:
    """Minimise `loss` over `domain`; a round on one active set is an outer iteration."""
    solve = _Rounds(descend, loss, domain, run.max_iter)
    n_solves = 1
    if start is None and loss.spec.on_demand:
        first = solve(sampled_kernels(loss), np.zeros(loss.n_kernels), _PART_OF_GAP)
        start, n_solves = first.weights, 1 + first.n_solves
    point = loss.evaluate(start_or_uniform(start, loss, domain))
    gains, bound = point.gains, NO_BOUND
    # A start with weights on most kernels does not show which ones matter.
    weighted = np.flatnonzero(point.weights)
    weighted = weighted if len(weighted) < loss.n_kernels // 2 else weighted[:0]
    active, tol = weighted[:0], np.inf
    while not run.record(point, n_solves, bound):
        last_active, last_tol = active, tol
        active = active_kernels(loss, domain, weighted, gains)
        tol = max(_PART_OF_TOL * run.tol, _PART_OF_GAP * run.certificate.rel_gap)
        if np.array_equal(active, last_active) and tol >= last_tol:
            # The last descent has missed its tolerance on the same kernels; this one would too.
            break
        result = solve(active, point.weights, tol)
        weighted = np.flatnonzero(result.weights)
        dual = result.bound.dual
        if dual is not None:
            loss.prefetch_gains(dual)
        point = loss.evaluate(result.weights)
        gains, n_solves, bound = point.gains, 1 + result.n_solves, NO_BOUND
        if dual is not None and not certify(point, domain, run.tol).exhausted:
            gains = loss.gains_at(dual)
            bound = Bound(result.bound.constant - domain.support(gains), dual)


@dataclass(frozen=True)
class _RoundResult:
    """Weights of all kernels after a round, its cost, and the bound that it proves."""

    weights: Array
    n_solves: int
    bound: Bound


@dataclass(frozen=True)
class _Rounds:
    """Minimisation of the loss over one active set after the other."""

    descend: Descent
    loss: Loss
    domain: Simplex
    max_iter: int

    def __call__(self, active: Indices, weights: Array, tol: float) -> _RoundResult:
        """Descend over the kernels `active` to the relative gap `tol`, from their `weights`."""
        face = self.domain.restricted(active)
        inner = Run(face, tol, self.max_iter)
        held = weights[active]
        begin = face.onto_boundary(held) if held.any() else face.start(len(active))
        self.descend(self.loss.restricted(active), face, inner, begin)
        best = inner.best
        # A descent that ends early may leave small weights on kernels that are about to lose them.
        settled = face.settle(best.weights, best.gains)
        if face.gauge(settled) < _LEAST_SETTLED * face.gauge(best.weights):
            settled = best.weights
        spread = np.zeros(self.loss.n_kernels)
        spread[active] = face.onto_boundary(settled)
        return _RoundResult(spread, inner.n_inner_solves, inner.bound)


def active_kernels(loss: Loss, domain: Simplex, weighted: Indices, gains: Array) -> Indices:
    """Return the kernels with a weight, or with one of the largest gains per price; sorted."""
    gains_per_price = gains / domain.prices(len(gains))
    number = min(_number_of_candidates(loss), len(gains))
    best = np.argpartition(-gains_per_price, number - 1)[:number]
    return _with_regularization(loss, np.union1d(weighted, best))


def sampled_kernels(loss: Loss) -> Indices:
    """Return as many kernels as join a round, spread evenly over all."""
    number = min(_number_of_candidates(loss), loss.n_kernels)
    spread = np.linspace(0, loss.n_kernels - 1, number).astype(np.intp)
    return _with_regularization(loss, np.unique(spread))


def _number_of_candidates(loss: Loss) -> int:
    if not loss.spec.on_demand:
        return _CANDIDATES
    affordable = _ENTRIES_ON_DEMAND // loss.spec.n_samples**2
    return max(_CANDIDATES, min(_CANDIDATES_ON_DEMAND, affordable))


def _with_regularization(loss: Loss, kernels: Indices) -> Indices:
    """Add a learnt regularisation: at zero weight the inner problem may have no solution."""
    return np.union1d(kernels, [0]) if loss.spec.learns_reg else kernels
