"""The compiled loop of SMO-MKL; :mod:`manykernels.solvers.papers.smo_mkl` has the maths."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled
from ._loops import end_above, moved_up, partner, position_of_largest, set_slopes, smallest

# Slope at which a line search ends, relative to that at its start: on a parabola such a step has
# all but 1e-4 of the increase of the best one.
_PRECISION = 1e-2
# Halvings after which nothing is left of an interval in double precision.
_MOST_TRIALS = 60


@compiled()
def norm_and_weights(strengths: Any, q: float, weights: Any) -> float:
    """``S = ‖s‖_q``, and ``(s_j/S)^(q−1)`` into `weights`.

    Powers are of s relative to its largest entry, so that none overflows.
    """
    top = 0.0
    for j in range(len(strengths)):
        top = max(top, strengths[j])
    if top <= 0.0:
        weights[:] = 0.0
        return 0.0
    total = 0.0
    for j in range(len(strengths)):
        total += (max(strengths[j], 0.0) / top) ** q
    root = total ** (1.0 / q)
    for j in range(len(strengths)):
        weights[j] = (max(strengths[j], 0.0) / (top * root)) ** (q - 1.0)
    norm: float = top * root
    return norm


@compiled()
def _slope(
    t: float,
    excess: float,
    ridge: float,
    strengths: Any,
    cross: Any,
    bend: Any,
    pull: float,
    q: float,
    mu: float,
    moved: Any,
    weights: Any,
) -> Any:
    """Slope of the objective after a step t along a pair, and minus its second derivative.

    Along the pair ``s_j(t) = strengths_j + 2t cross_j + t² bend_j``, which goes into `moved`.
    `excess` is the slope at t = 0, with `pull`, that of ``‖s‖_q²/8μ``, taken off already.
    """
    for j in range(len(strengths)):
        moved[j] = strengths[j] + t * (2.0 * cross[j] + t * bend[j])
    norm = norm_and_weights(moved, q, weights)
    first = spread = second = 0.0
    for j in range(len(strengths)):
        c = cross[j] + t * bend[j]
        first += weights[j] * c
        second += weights[j] * bend[j]
        if moved[j] > 0.0 and weights[j] > 0.0:
            spread += weights[j] * (norm / moved[j]) * c * c
    curvature = 2.0 * first * first + norm * second
    curvature += 2.0 * (q - 1.0) * max(spread - first * first, 0.0)
    slope = excess - t * ridge - (norm * first / (2.0 * mu) - pull)
    return slope, ridge + curvature / (2.0 * mu)


@compiled()
def _best_step(room: float, *line: Any) -> float:
    """Nearly the zero of the slope on (0, room]: Newton's method, safeguarded by bisection.

    `line` are the arguments of :func:`_slope` after t.
    """
    excess = line[0]
    low, high = 0.0, room
    t = 0.0
    slope, curvature = _slope(t, *line)
    for _ in range(_MOST_TRIALS):
        following = t + slope / curvature if curvature > 0.0 else high
        if not low < following < high:
            if following >= high and high == room and np.isfinite(room):
                following = room
            elif np.isfinite(high):
                following = 0.5 * (low + high)
            else:
                following = 2.0 * t + excess
        t = following
        slope, curvature = _slope(t, *line)
        if abs(slope) <= _PRECISION * excess or (t == room and slope >= 0.0):
            break
        if slope > 0.0:
            low = t
        else:
            high = t
    if slope < -_PRECISION * excess and low > 0.0:
        # Beyond the best step the objective falls again.
        t = low
    return t


@compiled()
def ascend_mkl(
    kernels: Any,
    diagonals: Any,
    linear: Any,
    ridge: Any,
    lower: Any,
    upper: Any,
    width: float,
    q: float,
    mu: float,
    min_curvature: float,
    v: Any,
    products: Any,
    strengths: Any,
    tol: float,
    n_steps: int,
) -> Any:
    """Pair steps on one output at fixed μ; steps taken, and the last violation.

    `products` (n, m) are the ``K_j v`` of this output, `strengths` are s, summed over outputs. A
    curvature below `min_curvature` is taken for rounding error.
    """
    n, m = products.shape
    weights, moved, cross, bend = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    trial = np.empty(n)
    up, down, increase = np.empty(m), np.empty(m), np.empty(m)
    slopes, row, diagonal = np.empty(m), np.empty(m), np.empty(m)
    violation = np.inf
    for taken in range(n_steps + 1):
        norm = norm_and_weights(strengths, q, weights)
        slopes[:] = 0.0
        diagonal[:] = ridge
        for j in range(n):
            weights[j] *= norm / (2.0 * mu)
            if weights[j] > 0.0:
                for k in range(m):
                    slopes[k] += weights[j] * products[j, k]
                    diagonal[k] += weights[j] * diagonals[j, k]
        for k in range(m):
            slopes[k] = linear[k] - slopes[k] - ridge[k] * v[k]
        set_slopes(slopes, v, lower, upper, width, up, down)
        i = position_of_largest(up)
        violation = up[i] - smallest(down)
        if violation <= tol or taken == n_steps:
            return taken, violation
        row[:] = 0.0
        for j in range(n):
            if weights[j] > 0.0:
                for k in range(m):
                    row[k] += weights[j] * kernels[j, i, k]
        h = partner(row, diagonal, down, i, up[i], min_curvature, increase)
        excess = up[i] - down[h]
        if excess <= 0.0:
            return taken, violation
        pull = 0.0
        for j in range(n):
            cross[j] = products[j, i] - products[j, h]
            bend[j] = max(diagonals[j, i] + diagonals[j, h] - 2.0 * kernels[j, i, h], 0.0)
            pull += weights[j] * cross[j]
        room_i = end_above(v[i], upper[i], width) - v[i]
        room_h = end_above(-v[h], -lower[h], width) + v[h]
        line = (excess, ridge[i] + ridge[h], strengths, cross, bend, pull, q, mu, moved, trial)
        step = _best_step(min(room_i, room_h), *line)
        v[i] = moved_up(v[i], step, upper[i], width)
        v[h] = -moved_up(-v[h], step, -lower[h], width)
        for j in range(n):
            strengths[j] = max(strengths[j] + step * (2.0 * cross[j] + step * bend[j]), 0.0)
            for k in range(m):
                products[j, k] += step * (kernels[j, i, k] - kernels[j, h, k])
    return n_steps, violation
