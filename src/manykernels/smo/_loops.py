"""The compiled loops of sequential minimal optimisation; :mod:`manykernels.smo.box` has the maths.

Slopes of variables that a bound stops are `±BLOCKED` instead of infinite, so that no difference of
them is NaN and the compiler may reorder sums and comparisons and use vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiled import compiled

# Larger than any slope, and the difference of two of them is still a finite number.
BLOCKED = 1e300
# Entries of a block in the search for the largest: many vector registers long, but so few that
# searching one block again, entry by entry, costs little.
_BLOCK = 256
# Fastmath without `ninf`: the increase of a pair may overflow to infinity.
_FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}


@compiled(inline="always")
def rising(slope: float, v: float, upper: float, width: float) -> float:
    """Slope of ``D`` to the right of v, with that of ``−width |v|`` in it."""
    if v >= upper:
        return -BLOCKED
    return slope - width if v >= 0.0 else slope + width


@compiled(inline="always")
def falling(slope: float, v: float, lower: float, width: float) -> float:
    """Slope of ``D`` to the left of v, with that of ``−width |v|`` in it."""
    if v <= lower:
        return BLOCKED
    return slope - width if v > 0.0 else slope + width


@compiled(inline="always")
def end_above(v: float, upper: float, width: float) -> float:
    """Where a variable that grows has to stop: its bound, or the kink of ``width |v|`` at zero.

    For a variable that falls, the negative of ``end_above(-v, -lower, width)``.
    """
    return 0.0 if width > 0.0 and v < 0.0 else upper


@compiled(inline="always")
def moved_up(v: float, step: float, upper: float, width: float) -> float:
    """``v + step``, or exactly the bound or kink that the step reaches."""
    end = end_above(v, upper, width)
    return v + step if step < end - v else end


@compiled()
def set_slopes(
    slopes: Any, v: Any, lower: Any, upper: Any, width: float, up: Any, down: Any
) -> None:
    """Slopes to the right and to the left of every variable, into `up` and `down`."""
    for k in range(len(v)):
        up[k] = rising(slopes[k], v[k], upper[k], width)
        down[k] = falling(slopes[k], v[k], lower[k], width)


@compiled(fastmath=_FAST)
def position_of_largest(values: Any) -> int:
    """First position of the largest value.

    Finds the block that has it first, since a loop with `max` alone compiles to vector
    instructions, and one that keeps the position does not.
    """
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
def partner(
    row: Any, diagonal: Any, down: Any, i: int, top: float, min_curvature: float, increase: Any
) -> int:
    """The variable that raises D most, to second order, if it falls as much as i rises.

    `row` is row i of K, `top` the slope up of i; twice the increase of D goes into `increase`.
    """
    own = diagonal[i]
    for k in range(len(down)):
        excess = max(top - down[k], 0.0)
        curvature = max(own + diagonal[k] - 2.0 * row[k], min_curvature)
        increase[k] = excess * excess / curvature
    return position_of_largest(increase)


@compiled(fastmath=_FAST)
def smallest(values: Any) -> Any:
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
    ready: Any,
    diagonal: Any,
    lower: Any,
    upper: Any,
    width: float,
    min_curvature: float,
    v: Any,
    up: Any,
    down: Any,
    tol: float,
    n_steps: int,
) -> Any:
    """Pair steps until the largest violation is within `tol`; steps taken, and the violation.

    `diagonal` belongs to ``K + diag(ridge)``; a curvature below `min_curvature` is taken for
    rounding error. Changes `v`, `up` and `down`. Stops before a step that needs a row of K which
    is not `ready`, and returns its position last; −1 if there was none.
    """
    increase = np.empty(len(v))
    violation = np.inf
    for taken in range(n_steps + 1):
        i = position_of_largest(up)
        top = up[i]
        violation = top - smallest(down)
        if violation <= tol or taken == n_steps:
            return taken, violation, -1
        if not ready[i]:
            return taken, violation, i
        j = partner(K[i], diagonal, down, i, top, min_curvature, increase)
        if not ready[j]:
            return taken, violation, j
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * K[i, j], min_curvature)
        slope_i = top + width if v[i] >= 0.0 else top - width
        slope_j = down[j] + width if v[j] > 0.0 else down[j] - width
        room_i = end_above(v[i], upper[i], width) - v[i]
        room_j = end_above(-v[j], -lower[j], width) + v[j]
        step = min((top - down[j]) / curvature, room_i, room_j)
        v[i] = moved_up(v[i], step, upper[i], width)
        v[j] = -moved_up(-v[j], step, -lower[j], width)
        _update(up, down, K[i], K[j], step)
        slope_i -= step * (diagonal[i] - K[i, j])
        slope_j += step * (diagonal[j] - K[i, j])
        up[i] = rising(slope_i, v[i], upper[i], width)
        down[i] = falling(slope_i, v[i], lower[i], width)
        up[j] = rising(slope_j, v[j], upper[j], width)
        down[j] = falling(slope_j, v[j], lower[j], width)
    return n_steps, violation, -1


@compiled()
def best_bias(slopes: Any, ridge: Any, lower: Any, upper: Any, width: float, total: float) -> Any:
    """The multiplier b that minimises :func:`upper_bound`.

    The bound is convex in b with slope ``total − Σ v'(b)``, where v' is `best_response`. Bisection
    reaches neighbouring floating-point numbers in 200 halvings unless b is next to zero. Terms v'
    that are the same at both ends of the interval are the same between them, and not computed
    again.
    """
    low, high = slopes[0], slopes[0]
    for k in range(len(slopes)):
        reach = width + ridge[k] * max(-lower[k], upper[k]) if ridge[k] > 0.0 else width
        if not np.isfinite(reach):
            reach = width + ridge[k] * abs(total) + abs(slopes[k])
        low = min(low, slopes[k] - reach)
        high = max(high, slopes[k] + reach)
    varying, n_varying, settled = np.arange(len(slopes)), len(slopes), 0.0
    for _ in range(200):
        b = 0.5 * (low + high)
        if b <= low or b >= high:
            break
        response = settled
        for a in range(n_varying):
            k = varying[a]
            response += best_response(slopes[k] - b, ridge[k], lower[k], upper[k], width)
        if response > total:
            low = b
        else:
            high = b
        n_left = 0
        for a in range(n_varying):
            k = varying[a]
            first = best_response(slopes[k] - low, ridge[k], lower[k], upper[k], width)
            if first == best_response(slopes[k] - high, ridge[k], lower[k], upper[k], width):
                settled += first
            else:
                varying[n_left] = k
                n_left += 1
        n_varying = n_left
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
def snap(v: Any, lower: Any, upper: Any, width: float, error: float) -> bool:
    """Put variables that are near to a bound, or to the kink, there; whether any has moved.

    Near is within `error` of their range or of the largest variable, whichever is smaller.
    """
    largest = 0.0
    for k in range(len(v)):
        largest = max(largest, abs(v[k]))
    moved = False
    for k in range(len(v)):
        near = error * min(upper[k] - lower[k], largest)
        end = v[k]
        if width > 0.0 and abs(v[k]) <= near:
            end = 0.0
        elif abs(v[k] - lower[k]) <= near:
            end = lower[k]
        elif abs(v[k] - upper[k]) <= near:
            end = upper[k]
        moved |= end != v[k]
        v[k] = end
    return moved


@compiled()
def gather_rows(K: Any, kept: Any, rows: Any, out: Any) -> None:
    """These `rows` of ``K[kept][:, kept]``, into those of `out`."""
    for a in rows:
        row, target = K[kept[a]], out[a]
        for b in range(len(kept)):
            target[b] = row[kept[b]]


def gather(K: Any, kept: Any) -> Any:
    """``K[kept][:, kept]``."""
    part = np.empty((len(kept), len(kept)))
    gather_rows(K, kept, np.arange(len(kept)), part)
    return part


@compiled(fastmath=_FAST)
def add_product(K: Any, change: Any, out: Any) -> None:
    """``out += K @ change`` for a symmetric K; rows where `change` is zero are not read."""
    for k in range(len(change)):
        if change[k] != 0.0:
            row, factor = K[k], change[k]
            for c in range(len(out)):
                out[c] += factor * row[c]


@compiled()
def not_ready(change: Any, ready: Any) -> Any:
    """Positions where `change` is not zero and `ready` is not set."""
    found = np.empty(len(change), np.intp)
    n = 0
    for k in range(len(change)):
        if change[k] != 0.0 and not ready[k]:
            found[n] = k
            n += 1
    return found[:n]
