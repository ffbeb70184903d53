"""The compiled loops of sequential minimal optimisation; :mod:`manykernels.smo.box` has the maths.

Slopes of variables that may not move are `±BLOCKED` instead of infinite, so that the compiler may
reorder sums and comparisons and use the vector units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled

BLOCKED = 1e300
_HALF_BLOCKED = 0.5 * BLOCKED
_BLOCK = 256
_FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}


@compiled(inline="always")
def _rising(slope: float, v: float, upper: float, width: float) -> float:
    """Slope of the objective where a variable grows."""
    if v >= upper:
        return -BLOCKED
    return slope - width if v >= 0.0 else slope + width


@compiled(inline="always")
def _falling(slope: float, v: float, lower: float, width: float) -> float:
    """Slope of the objective where a variable grows, seen from below."""
    if v <= lower:
        return BLOCKED
    return slope - width if v > 0.0 else slope + width


@compiled()
def set_slopes(
    slopes: Any, v: Any, lower: Any, upper: Any, width: float, up: Any, down: Any
) -> None:
    """Slopes to both sides of every variable."""
    for k in range(len(v)):
        up[k] = _rising(slopes[k], v[k], upper[k], width)
        down[k] = _falling(slopes[k], v[k], lower[k], width)


@compiled()
def plain_slopes(up: Any, down: Any, v: Any, width: float) -> Any:
    """The slopes that `set_slopes` made `up` and `down` of."""
    slopes = np.empty(len(v))
    for k in range(len(v)):
        if up[k] > -_HALF_BLOCKED:
            slopes[k] = up[k] + width if v[k] >= 0.0 else up[k] - width
        else:
            slopes[k] = down[k] + width if v[k] > 0.0 else down[k] - width
    return slopes


@compiled(fastmath=_FAST)
def _position_of_largest(values: Any) -> int:
    """First position of the largest value, block by block: `max` alone uses vector units."""
    n = len(values)
    best, best_start = -np.inf, 0
    for start in range(0, n, _BLOCK):
        largest = values[start]
        for k in range(start, min(start + _BLOCK, n)):
            largest = max(largest, values[k])
        if largest > best:
            best, best_start = largest, start
    for k in range(best_start, n):
        if values[k] >= best:
            return k
    return best_start


@compiled(fastmath=_FAST)
def _partner(
    K: Any, diagonal: Any, down: Any, i: int, top: float, least: float, gains: Any
) -> int:
    """The variable that gains most when it falls as much as i rises (second order)."""
    row = K[i]
    own = diagonal[i]
    n = len(down)
    for k in range(n):
        excess = max(top - down[k], 0.0)
        curvature = max(own + diagonal[k] - 2.0 * row[k], least)
        gains[k] = excess * excess / curvature
    return _position_of_largest(gains)


@compiled(fastmath=_FAST)
def _least(values: Any) -> Any:
    least = values[0]
    for k in range(len(values)):
        least = min(least, values[k])
    return least


@compiled(fastmath=_FAST)
def _update(up: Any, down: Any, row_i: Any, row_j: Any, step: float) -> None:
    for k in range(len(up)):
        change = step * (row_i[k] - row_j[k])
        up[k] -= change
        down[k] -= change


@compiled()
def ascend(
    K: Any,
    diagonal: Any,
    lower: Any,
    upper: Any,
    width: float,
    least: float,
    v: Any,
    up: Any,
    down: Any,
    tol: float,
    n_steps: int,
) -> Any:
    """Pair steps until the largest violation is within `tol`; steps taken, and the violation.

    `diagonal` is that of ``K + diag(ridge)``, `least` a curvature that is more than rounding.
    """
    gains = np.empty(len(v))
    violation = np.inf
    for taken in range(n_steps + 1):
        i = _position_of_largest(up)
        top = up[i]
        violation = top - _least(down)
        if violation <= tol or taken == n_steps:
            return taken, violation
        j = _partner(K, diagonal, down, i, top, least, gains)
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], least)
        excess = top - down[j]
        slope_i = top + width if v[i] >= 0.0 else top - width
        slope_j = down[j] + width if v[j] > 0.0 else down[j] - width
        # No further than the next bound or kink of either.
        room_i = -v[i] if width > 0.0 and v[i] < 0.0 else upper[i] - v[i]
        room_j = v[j] if width > 0.0 and v[j] > 0.0 else v[j] - lower[j]
        step = min(excess / curvature, room_i, room_j)
        v[i] = _moved(v[i], step, room_i, upper[i], width)
        v[j] = -_moved(-v[j], step, room_j, -lower[j], width)
        _update(up, down, K[i], K[j], step)
        slope_i -= step * (diagonal[i] - K[i, j])
        slope_j += step * (diagonal[j] - K[i, j])
        up[i] = _rising(slope_i, v[i], upper[i], width)
        down[i] = _falling(slope_i, v[i], lower[i], width)
        up[j] = _rising(slope_j, v[j], upper[j], width)
        down[j] = _falling(slope_j, v[j], lower[j], width)
    return n_steps, violation


@compiled(inline="always")
def _moved(v: float, step: float, room: float, upper: float, width: float) -> float:
    """``v + step``, exactly at the bound or kink where the step ends there."""
    if step < room:
        return v + step
    return 0.0 if width > 0.0 and v < 0.0 else upper


@compiled()
def best_shift(slopes: Any, ridge: Any, lower: Any, upper: Any, width: float, total: float) -> Any:
    """The multiplier b that minimises the upper bound; see :mod:`manykernels.smo.box`.

    The bound is convex in b with slope ``total − Σ v'(b)``: bisection down to neighbouring
    numbers.
    """
    low, high = slopes[0], slopes[0]
    for k in range(len(slopes)):
        reach = width + ridge[k] * max(-lower[k], upper[k]) if ridge[k] > 0.0 else width
        if not np.isfinite(reach):
            reach = width + ridge[k] * abs(total) + abs(slopes[k])
        low = min(low, slopes[k] - reach)
        high = max(high, slopes[k] + reach)
    for _ in range(200):
        b = 0.5 * (low + high)
        if b <= low or b >= high:
            break
        moved = 0.0
        for k in range(len(slopes)):
            moved += best_response(slopes[k] - b, ridge[k], lower[k], upper[k], width)
        if moved > total:
            low = b
        else:
            high = b
    return 0.5 * (low + high)


@compiled(inline="always")
def best_response(z: float, ridge: float, lower: float, upper: float, width: float) -> float:
    """Maximiser of ``z v − width |v| − ½ ridge v²`` between the bounds."""
    if z > width:
        return upper if ridge == 0.0 else min((z - width) / ridge, upper)
    if z < -width:
        return lower if ridge == 0.0 else max((z + width) / ridge, lower)
    return 0.0 if lower <= 0.0 <= upper else (lower if lower > 0.0 else upper)


@compiled()
def upper_bound(
    slopes: Any, ridge: Any, lower: Any, upper: Any, width: float, total: float, b: float
) -> float:
    """``Σ_i max_v' {(slope_i − b) v' − width |v'| − ½ ridge_i v'²} + b·total``."""
    value = b * total
    for k in range(len(slopes)):
        z = slopes[k] - b
        best = best_response(z, ridge[k], lower[k], upper[k], width)
        value += z * best - width * abs(best) - 0.5 * ridge[k] * best * best
    return value


@compiled()
def gather(K: Any, rows: Any) -> Any:
    """``K[rows][:, rows]``."""
    n = len(rows)
    part = np.empty((n, n))
    for a in range(n):
        row = K[rows[a]]
        for b in range(n):
            part[a, b] = row[rows[b]]
    return part


@compiled(fastmath=_FAST)
def add_product(K: Any, change: Any, out: Any) -> None:
    """``out += K @ change`` for symmetric K and few entries of `change` that are not zero."""
    for k in range(len(change)):
        if change[k] != 0.0:
            row, factor = K[k], change[k]
            for c in range(len(out)):
                out[c] += factor * row[c]
