"""The compiled loops of the multiclass SVM; :mod:`manykernels.smo.multiclass` has the maths.

Classes are nodes. Sample i carries flow from class a to class b if α_i^b is raised where
``y_i = a``, or α_i^a is lowered where ``y_i = b``: either way ``d_i`` changes by ``e_a − e_b``, so
flow t along a closed cycle of such arcs keeps every ``Σ_i d_il``. The *cost* of an arc is the
slope of −D along it.

Samples are sorted by class, those of class a from ``first[a]`` to ``first[a + 1]``, and F and α
have one row per class, so that the loops read memory in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled

# Cycles of two classes are cheap to find, and their samples are chosen to second order. They are
# taken while the mean cost of the best is at least this share, in size, of that of the best cycle.
# When it is less, and after this many steps at the latest, the best cycle is searched again. Half
# of the first takes 19 to 54 % more steps, 0.9 the same time; half or twice the second is alike.
_PAIR_SHARE = 0.7
_STEPS_PER_SEARCH = 20


@compiled(inline="always")
def _arc_cost(F: Any, alpha: Any, C: Any, leaves: bool, i: int, a: int, b: int) -> float:
    """Cost of the arc a → b by sample i of class a (if it `leaves` its class) or b.

    Infinite if a bound forbids it.
    """
    if leaves:
        return F[a, i] - F[b, i] - 2.0 if alpha[b, i] < C[i] else np.inf
    return F[a, i] - F[b, i] + 2.0 if alpha[a, i] > 0.0 else np.inf


@compiled()
def cheapest_arcs(
    F: Any, alpha: Any, C: Any, first: Any, touched: Any, costs: Any, samples: Any
) -> None:
    """Cost and sample of the cheapest arc between any two classes, one of which is `touched`."""
    for a in range(len(F)):
        for b in range(len(F)):
            if a == b or not (touched[a] or touched[b]):
                continue
            best, sample = np.inf, -1
            for leaves, own in ((True, a), (False, b)):
                for i in range(first[own], first[own + 1]):
                    cost = _arc_cost(F, alpha, C, leaves, i, a, b)
                    if cost < best:
                        best, sample = cost, i
            costs[a, b], samples[a, b] = best, sample


@compiled()
def _second_order_arc(
    K: Any,
    F: Any,
    alpha: Any,
    C: Any,
    first: Any,
    min_curvature: float,
    i: int,
    cost: float,
    a: int,
    b: int,
) -> Any:
    """Cost and sample of the arc b → a that raises D most together with a → b by sample i."""
    increase, partner, partner_cost = 0.0, -1, 0.0
    for leaves, own in ((True, b), (False, a)):
        for j in range(first[own], first[own + 1]):
            other = _arc_cost(F, alpha, C, leaves, j, b, a)
            slope = cost + other
            curvature = max(K[i, i] + K[j, j] - 2.0 * K[i, j], min_curvature)
            if slope < 0.0 and slope * slope > increase * curvature:
                increase, partner, partner_cost = slope * slope / curvature, j, other
    return partner_cost, partner


@compiled()
def _cheapest_pair(costs: Any) -> Any:
    """The two classes whose cycle a → b → a is cheapest, and its mean cost."""
    best, first, second = np.inf, 0, 0
    for a in range(len(costs)):
        for b in range(a):
            mean = 0.5 * (costs[a, b] + costs[b, a])
            if mean < best:
                best, first, second = mean, a, b
    return best, first, second


@compiled()
def cheapest_cycle(costs: Any) -> Any:
    """The cycle of least mean cost (Karp 1978): that mean, its classes, and a potential.

    ``walks[n, v]`` is the cheapest walk of n arcs that ends in v. With λ the least mean (zero if
    no cycle is negative), ``potential[v] = min_n walks[n, v] − nλ`` leaves every arc with
    ``costs[a, b] + potential[a] − potential[b] ≥ λ``.
    """
    k = len(costs)
    walks = np.zeros((k + 1, k))
    parent = np.full((k + 1, k), -1)
    for n in range(1, k + 1):
        for v in range(k):
            best = np.inf
            for u in range(k):
                if u != v and walks[n - 1, u] + costs[u, v] < best:
                    best = walks[n - 1, u] + costs[u, v]
                    parent[n, v] = u
            walks[n, v] = best
    mean, end = np.inf, -1
    for v in range(k):
        if walks[k, v] < np.inf:
            largest = -np.inf
            for n in range(k):
                if walks[n, v] < np.inf:
                    largest = max(largest, (walks[k, v] - walks[n, v]) / (k - n))
            if largest < mean:
                mean, end = largest, v
    potential = np.zeros(k)
    for v in range(k):
        for n in range(1, k):
            potential[v] = min(potential[v], walks[n, v] - n * min(mean, 0.0))
    walk = np.empty(k + 1, np.int64)
    if end < 0:
        return np.inf, walk[:0], potential
    # Every cycle on the cheapest walk of k arcs to `end` has the least mean (Chaturvedi and
    # McConnell 2017). Back from its end, the first class that comes again closes a simple one.
    position = np.full(k, -1)
    n = k
    while position[end] < 0:
        walk[n] = end
        position[end] = n
        end = parent[n, end]
        n -= 1
    walk[n] = end
    length = position[end] - n
    total = 0.0
    for r in range(n, n + length):
        total += costs[walk[r], walk[r + 1]]
    return total / length, walk[n : n + length], potential


@compiled(fastmath={"contract"})
def _add_flow(row: Any, other: Any, kernel_row: Any, t: float) -> None:
    """Add a step t to the outputs of two classes."""
    for j in range(len(kernel_row)):
        row[j] += t * kernel_row[j]
        other[j] -= t * kernel_row[j]


@compiled()
def _step(
    K: Any, F: Any, alpha: Any, C: Any, first: Any, costs: Any, samples: Any, cycle: Any
) -> bool:
    """Exact line search along a cycle; False if D does not rise along it."""
    length = len(cycle)
    slope, curvature, room = 0.0, 0.0, np.inf
    for r in range(length):
        a, b = cycle[r], cycle[(r + 1) % length]
        i = samples[a, b]
        slope += costs[a, b]
        room = min(room, C[i] - alpha[b, i] if first[a] <= i < first[a + 1] else alpha[a, i])
        curvature += 2.0 * K[i, i]
        for s in range(r):
            p, q = cycle[s], cycle[(s + 1) % length]
            # −(e_a − e_b)·(e_p − e_q), as no class is left or entered twice.
            shared = (a == q) + (b == p)
            if shared:
                curvature -= 2.0 * shared * K[i, samples[p, q]]
    if not slope < 0.0:
        return False
    t = -slope / curvature if -slope < room * curvature else room
    for r in range(length):
        a, b = cycle[r], cycle[(r + 1) % length]
        i = samples[a, b]
        # Exactly to a bound that is reached: variables at their bounds are found by equality.
        if first[a] <= i < first[a + 1]:
            alpha[b, i] = C[i] if C[i] - alpha[b, i] <= t else alpha[b, i] + t
        else:
            alpha[a, i] = 0.0 if alpha[a, i] <= t else alpha[a, i] - t
        _add_flow(F[a], F[b], K[i], t)
    return True


@compiled()
def ascend(
    K: Any, F: Any, alpha: Any, C: Any, first: Any, min_curvature: float, eps: float, max_iter: int
) -> int:
    """Step until no cycle has a mean cost below −eps; changes F and α, returns the steps."""
    k = len(F)
    costs = np.full((k, k), np.inf)
    samples = np.full((k, k), -1)
    pair = np.zeros(2, np.int64)
    touched = np.ones(k, np.bool_)
    mean, age = -np.inf, 0
    for iteration in range(max_iter):
        cheapest_arcs(F, alpha, C, first, touched, costs, samples)
        pair_mean, a, b = _cheapest_pair(costs)
        pair[0], pair[1] = a, b
        cycle = pair
        age += 1
        if pair_mean > _PAIR_SHARE * mean or age > _STEPS_PER_SEARCH:
            mean, best, _ = cheapest_cycle(costs)
            age = 0
            if mean > -eps:
                return iteration
            if len(best) > 2 and pair_mean > _PAIR_SHARE * mean:
                cycle = best
        if len(cycle) == 2:
            costs[b, a], samples[b, a] = _second_order_arc(
                K, F, alpha, C, first, min_curvature, samples[a, b], costs[a, b], a, b
            )
        if not _step(K, F, alpha, C, first, costs, samples, cycle):
            return iteration
        touched[:] = False
        touched[cycle] = True
    return max_iter
