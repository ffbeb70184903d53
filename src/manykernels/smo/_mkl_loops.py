"""The compiled loop of SMO-MKL; :mod:`manykernels.solvers.papers.smo_mkl` has the maths."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled
from ._loops import _falling, _moved, _position_of_largest, _rising

_MOST_TRIALS = 60
_PRECISION = 1e-2


@compiled()
def norm_and_weights(strengths: Any, q: float, weights: Any) -> float:
    """``S = ‖s‖_q``, and ``(s_j/S)^(q−1)`` into `weights`; scaled, so that nothing overflows."""
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
    """First and second derivative of the objective after a step t; s there into `moved`.

    `pull` is the slope of the quartic at t = 0, which `excess` has in it already.
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
def _best_step(
    room: float,
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
) -> float:
    """Where the slope vanishes on (0, room], nearly: Newton's method between two ends."""
    low, high = 0.0, room
    t = 0.0
    slope, curvature = _slope(
        t, excess, ridge, strengths, cross, bend, pull, q, mu, moved, weights
    )
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
        slope, curvature = _slope(
            t, excess, ridge, strengths, cross, bend, pull, q, mu, moved, weights
        )
        if abs(slope) <= _PRECISION * excess or (t == room and slope >= 0.0):
            break
        if slope > 0.0:
            low = t
        else:
            high = t
    if slope < -_PRECISION * excess and low > 0.0:
        # Never beyond the best step, where the objective falls again.
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
    least: float,
    v: Any,
    products: Any,
    strengths: Any,
    tol: float,
    n_steps: int,
) -> Any:
    """Pair steps on one output at fixed μ; steps taken, and the last violation.

    `products` (n, m) are the ``K_j v`` of this output, `strengths` are s, summed over outputs.
    """
    n, m = products.shape
    weights, moved, cross, bend = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    trial = np.empty(n)
    up, down, gains = np.empty(m), np.empty(m), np.empty(m)
    combined, row, diagonal = np.empty(m), np.empty(m), np.empty(m)
    violation = np.inf
    for taken in range(n_steps + 1):
        norm = norm_and_weights(strengths, q, weights)
        combined[:] = 0.0
        diagonal[:] = 0.0
        for j in range(n):
            weights[j] *= norm / (2.0 * mu)
            if weights[j] > 0.0:
                for k in range(m):
                    combined[k] += weights[j] * products[j, k]
                    diagonal[k] += weights[j] * diagonals[j, k]
        bottom = np.inf
        for k in range(m):
            slope = linear[k] - combined[k] - ridge[k] * v[k]
            up[k] = _rising(slope, v[k], upper[k], width)
            down[k] = _falling(slope, v[k], lower[k], width)
            bottom = min(bottom, down[k])
        i = _position_of_largest(up)
        violation = up[i] - bottom
        if violation <= tol or taken == n_steps:
            return taken, violation
        row[:] = 0.0
        for j in range(n):
            if weights[j] > 0.0:
                for k in range(m):
                    row[k] += weights[j] * kernels[j, i, k]
        for k in range(m):
            over = max(up[i] - down[k], 0.0)
            curvature = diagonal[i] + diagonal[k] - 2.0 * row[k] + ridge[i] + ridge[k]
            gains[k] = over * over / max(curvature, least)
        gains[i] = 0.0
        h = _position_of_largest(gains)
        if gains[h] <= 0.0:
            return taken, violation
        excess = up[i] - down[h]
        pull = 0.0
        for j in range(n):
            cross[j] = products[j, i] - products[j, h]
            bend[j] = max(diagonals[j, i] + diagonals[j, h] - 2.0 * kernels[j, i, h], 0.0)
            pull += weights[j] * cross[j]
        room_i = -v[i] if width > 0.0 and v[i] < 0.0 else upper[i] - v[i]
        room_h = v[h] if width > 0.0 and v[h] > 0.0 else v[h] - lower[h]
        room = min(room_i, room_h)
        step = _best_step(
            room, excess, ridge[i] + ridge[h], strengths, cross, bend, pull, q, mu, moved, trial
        )
        v[i] = _moved(v[i], step, room_i, upper[i], width)
        v[h] = -_moved(-v[h], step, room_h, -lower[h], width)
        for j in range(n):
            strengths[j] = max(strengths[j] + step * (2.0 * cross[j] + step * bend[j]), 0.0)
            for k in range(m):
                products[j, k] += step * (kernels[j, i, k] - kernels[j, h, k])
    return n_steps, violation
