"""The compiled loops of the multiclass SVM; :mod:`manykernels.smo.multiclass` has the maths.

Classes are nodes. Going from class a to class b by sample i means raising α_i^b if ``y_i = a``,
or lowering α_i^a if ``y_i = b``; either way ``d_i`` changes by ``e_a − e_b``, so a step t along a
closed cycle of such arcs keeps every ``Σ_i d_il``. The *cost* of an arc is the slope of −D.

Samples come sorted by class, those of class a from ``first[a]`` to ``first[a + 1]``, and F and α
have one row per class, so that the loops run over memory in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled

# Two classes are preferred to longer cycles that are not worse than this.
_PREFERENCE = 0.7
_MAX_AGE = 20


@compiled()
def cheapest_arc(F: Any, alpha: Any, C: Any, first: Any, a: int, b: int) -> Any:
    """Cost and sample of the cheapest arc a → b."""
    best, sample = np.inf, -1
    for i in range(first[a], first[a + 1]):
        cost = F[a, i] - F[b, i] - 2.0
        if cost < best and alpha[b, i] < C[i]:
            best, sample = cost, i
    for i in range(first[b], first[b + 1]):
        cost = F[a, i] - F[b, i] + 2.0
        if cost < best and alpha[a, i] > 0.0:
            best, sample = cost, i
    return best, sample


@compiled()
def cheapest_arcs(
    F: Any, alpha: Any, C: Any, first: Any, touched: Any, costs: Any, samples: Any
) -> None:
    """All cheapest arcs; those between classes that are not touched have not changed."""
    for a in range(len(F)):
        for b in range(len(F)):
            if a != b and (touched[a] or touched[b]):
                costs[a, b], samples[a, b] = cheapest_arc(F, alpha, C, first, a, b)


@compiled()
def best_partner(
    K: Any,
    F: Any,
    alpha: Any,
    C: Any,
    first: Any,
    floor: float,
    costs: Any,
    samples: Any,
    a: int,
    b: int,
) -> Any:
    """Cost and sample of the arc b → a that gains most together with the cheapest arc a → b."""
    i = samples[a, b]
    gain, partner, partner_cost = 0.0, -1, 0.0
    for side, start, stop in ((0, first[b], first[b + 1]), (1, first[a], first[a + 1])):
        for j in range(start, stop):
            if side == 0:
                if alpha[a, j] >= C[j]:
                    continue
                other = F[b, j] - F[a, j] - 2.0
            else:
                if alpha[b, j] <= 0.0:
                    continue
                other = F[b, j] - F[a, j] + 2.0
            slope = costs[a, b] + other
            curvature = max(K[i, i] + K[j, j] - 2.0 * K[i, j], floor)
            if slope < 0.0 and slope * slope > gain * curvature:
                gain, partner, partner_cost = slope * slope / curvature, j, other
    return partner_cost, partner


@compiled()
def best_pair(costs: Any) -> Any:
    """The two classes whose cycle a → b → a is cheapest, and its mean cost."""
    best, first, second = np.inf, 0, 0
    for a in range(len(costs)):
        for b in range(a):
            mean = 0.5 * (costs[a, b] + costs[b, a])
            if mean < best:
                best, first, second = mean, a, b
    return best, first, second


@compiled()
def cheapest_cycle(costs: Any, cycle: Any, potential: Any) -> Any:
    """The cycle of least mean cost (Karp 1978); returns its mean and its length.

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
    for v in range(k):
        potential[v] = 0.0
        for n in range(1, k):
            potential[v] = min(potential[v], walks[n, v] - n * min(mean, 0.0))
    if end < 0:
        return np.inf, 0
    # The walk that attains the least mean is made of cycles, one of which does. A cycle is taken
    # out once it is seen, so that the next is simple: it must not use a variable twice.
    walk = np.full(k + 1, end)
    for n in range(k, 0, -1):
        walk[n - 1] = parent[n, walk[n]]
    path = np.zeros(k + 1, np.int64)
    top, length = 0, 0
    mean = np.inf
    for n in range(k + 1):
        path[top] = walk[n]
        for start in range(top):
            if path[start] == walk[n]:
                total = 0.0
                for r in range(start, top):
                    total += costs[path[r], path[r + 1]]
                if total / (top - start) < mean:
                    length = top - start
                    mean = total / length
                    cycle[:length] = path[start:top]
                top = start
                break
        top += 1
    return mean, length


@compiled(fastmath={"contract"})
def shift(row: Any, other: Any, kernel_row: Any, t: float) -> None:
    """Add a step t to the outputs of two classes."""
    for j in range(len(kernel_row)):
        row[j] += t * kernel_row[j]
        other[j] -= t * kernel_row[j]


@compiled()
def step(
    K: Any, F: Any, alpha: Any, C: Any, first: Any, costs: Any, samples: Any, cycle: Any
) -> bool:
    """Exact line search along a cycle; False if it does not lead upwards."""
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
            # (e_a − e_b)·(e_p − e_q); no class is left or entered twice.
            shared = (a == q) + (b == p)
            if shared:
                curvature -= 2.0 * shared * K[i, samples[p, q]]
    if not slope < 0.0:
        return False
    t = -slope / curvature if -slope < room * curvature else room
    for r in range(length):
        a, b = cycle[r], cycle[(r + 1) % length]
        i = samples[a, b]
        # Bounds are met exactly: a variable at its bound is told by equality.
        if first[a] <= i < first[a + 1]:
            alpha[b, i] = C[i] if C[i] - alpha[b, i] <= t else alpha[b, i] + t
        else:
            alpha[a, i] = 0.0 if alpha[a, i] <= t else alpha[a, i] - t
        shift(F[a], F[b], K[i], t)
    return True


@compiled()
def ascend(
    K: Any, F: Any, alpha: Any, C: Any, first: Any, floor: float, eps: float, max_iter: int
) -> int:
    """Step until no cycle has a mean cost below −eps; changes F and α, returns the steps."""
    k = len(F)
    costs = np.full((k, k), np.inf)
    samples = np.full((k, k), -1)
    cycle = np.zeros(k, np.int64)
    potential = np.zeros(k)
    touched = np.ones(k, np.bool_)
    mean, age = -np.inf, 0
    for iteration in range(max_iter):
        cheapest_arcs(F, alpha, C, first, touched, costs, samples)
        # Cycles of two classes are cheap to find and have a second-order choice. All cycles are
        # looked at when these fall behind, and every now and then.
        pair_mean, a, b = best_pair(costs)
        length = 2
        age += 1
        if pair_mean > _PREFERENCE * mean or age > _MAX_AGE:
            mean, length = cheapest_cycle(costs, cycle, potential)
            age = 0
            if mean > -eps:
                return iteration
            if pair_mean <= _PREFERENCE * mean:
                length = 2
        if length == 2:
            cycle[0], cycle[1] = a, b
            costs[b, a], samples[b, a] = best_partner(
                K, F, alpha, C, first, floor, costs, samples, a, b
            )
        if not step(K, F, alpha, C, first, costs, samples, cycle[:length]):
            return iteration
        touched[:] = False
        touched[cycle[:length]] = True
    return max_iter
