"""Compiled loops of sequential minimal optimisation; :mod:`manykernels.smo.box` has the maths.

Slopes of variables at a bound are `±BLOCKED` instead of infinite, so that no difference of them is
NaN and the compiler may reorder sums and comparisons and use vector instructions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.compiled import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Larger than any slope; the difference of two of them is still finite.
BLOCKED = 1e300
# Entries of a block in the search for the largest: many vector registers, but few enough that
# searching one block again, entry by entry, costs little.
_BLOCK = 256
# Fastmath without `ninf`: the increase of a pair may overflow to infinity.
_FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}


@compiled(internal=True)
def _set_slope(
    k: int,
    slope: float,
    v: Array,
    lower: Array,
    upper: Array,
    width: float,
    up: Array,
    down: Array,
) -> None:
    """Write the slopes of ``D`` to the right and to the left of v_k, with those of −width |v|."""
    rising = slope - width if v[k] >= 0.0 else slope + width
    falling = slope - width if v[k] > 0.0 else slope + width
    up[k] = rising if v[k] < upper[k] else -BLOCKED
    down[k] = falling if v[k] > lower[k] else BLOCKED


@compiled(inline="always")
def end_above(v: float, upper: float, width: float) -> float:
    """Return where a growing variable has to stop: its bound, or the kink of ``width |v|``.

    For a falling variable this is the negative of ``end_above(-v, -lower, width)``.
    """
    return 0.0 if width > 0.0 and v < 0.0 else upper


@compiled(inline="always")
def moved_up(v: float, step: float, upper: float, width: float) -> float:
    """Return ``v + step``, or exactly the bound or kink that the step reaches."""
    end = end_above(v, upper, width)
    return v + step if step < end - v else end


@compiled()
def set_slopes(
    slopes: Array, v: Array, lower: Array, upper: Array, width: float, up: Array, down: Array
) -> None:
    """Write the slopes to the right and to the left of every variable into `up` and `down`."""
    for k in range(len(v)):
        _set_slope(k, slopes[k], v, lower, upper, width, up, down)


@compiled(internal=True, fastmath=_FAST)
def position_of_largest(values: Array) -> int:
    """Return the first position of the largest value.

    The block that has it is found first, since a loop with `max` alone compiles to vector
    instructions, and one that keeps the position does not.
    """
    n, start = len(values), 0
    best, best_start = values[0], 0
    while start < n:
        largest, end = values[start], start + _BLOCK
        for k in range(start, end if end < n else n):
            largest = values[k] if values[k] > largest else largest
        if largest > best:
            best, best_start = largest, start
        start = end
    for k in range(best_start, n):
        if values[k] >= best:
            return k
    return best_start


@compiled(internal=True, fastmath=_FAST)
def partner(
    row: Array,
    diagonal: Array,
    down: Array,
    i: int,
    top: float,
    min_curvature: float,
    increase: Array,
) -> int:
    """Return the variable that raises D most, to second order, if it falls as much as i rises.

    `row` is row i of K, `top` the slope up of i; `increase` is set to twice the increases of D.
    """
    diagonal_i = diagonal[i]
    for k in range(len(down)):
        excess = top - down[k]
        excess = excess if excess > 0.0 else 0.0
        curvature = diagonal_i + diagonal[k] - 2.0 * row[k]
        curvature = curvature if curvature > min_curvature else min_curvature
        increase[k] = excess * excess / curvature
    return position_of_largest(increase)


@compiled(internal=True, fastmath=_FAST)
def smallest(values: Array) -> float:
    least: float = values[0]
    for k in range(len(values)):
        least = values[k] if values[k] < least else least
    return least


@compiled(internal=True, fastmath=_FAST)
def _update(up: Array, down: Array, row_i: Array, row_j: Array, step: float) -> None:
    for k in range(len(up)):
        change = step * (row_i[k] - row_j[k])
        up[k] -= change
        down[k] -= change


def ascend(
    K: Array,
    ready: NDArray[np.bool_],
    diagonal: Array,
    lower: Array,
    upper: Array,
    width: float,
    min_curvature: float,
    v: Array,
    up: Array,
    down: Array,
    tol: float,
    n_steps: int,
) -> tuple[int, float, int]:
    """Take pair steps until the largest violation is within `tol`; return their number and it.

    `diagonal` belongs to ``K + diag(ridge)``; a curvature below `min_curvature` is rounding error.
    Changes `v`, `up` and `down`. Stops before a step that needs a row of K which is not `ready`,
    and returns its position last; −1 if there was none.
    """
    # Compiled code that allocates takes longer to compile.
    increase = np.empty(len(v))
    found: tuple[int, float, int] = _ascend(
        K, ready, diagonal, lower, upper, width, min_curvature, v, up, down, tol, n_steps, increase
    )
    return found


@compiled()
def _ascend(
    K: Array,
    ready: NDArray[np.bool_],
    diagonal: Array,
    lower: Array,
    upper: Array,
    width: float,
    min_curvature: float,
    v: Array,
    up: Array,
    down: Array,
    tol: float,
    n_steps: int,
    increase: Array,
) -> tuple[int, float, int]:
    """Return what :func:`ascend` returns; `increase` is memory for one value per variable."""
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
        curvature = diagonal[i] + diagonal[j] - 2.0 * K[i, j]
        curvature = curvature if curvature > min_curvature else min_curvature
        slope_i = top + width if v[i] >= 0.0 else top - width
        slope_j = down[j] + width if v[j] > 0.0 else down[j] - width
        # Where they have to stop: at a bound, or at the kink.
        end_i = 0.0 if width > 0.0 and v[i] < 0.0 else upper[i]
        end_j = 0.0 if width > 0.0 and v[j] > 0.0 else lower[j]
        room_i, room_j = end_i - v[i], v[j] - end_j
        step = (top - down[j]) / curvature
        step = room_i if room_i < step else step
        step = room_j if room_j < step else step
        v[i] = v[i] + step if step < room_i else end_i
        v[j] = v[j] - step if step < room_j else end_j
        _update(up, down, K[i], K[j], step)
        slope_i -= step * (diagonal[i] - K[i, j])
        slope_j += step * (diagonal[j] - K[i, j])
        _set_slope(i, slope_i, v, lower, upper, width, up, down)
        _set_slope(j, slope_j, v, lower, upper, width, up, down)
    return n_steps, violation, -1


@compiled(internal=True)
def best_response(z: float, ridge: float, lower: float, upper: float, width: float) -> float:
    """Return the maximiser of ``z v − width |v| − ½ ridge v²`` between the bounds."""
    if z > width:
        best: float = (z - width) / ridge if ridge > 0.0 else upper
        return best if best < upper else upper
    if z < -width:
        best = (z + width) / ridge if ridge > 0.0 else lower
        return best if best > lower else lower
    if lower > 0.0:
        return lower
    return upper if upper < 0.0 else 0.0


def best_bias(
    slopes: Array, ridge: Array, lower: Array, upper: Array, width: float, total: float
) -> Any:
    """Return the multiplier b that minimises :func:`upper_bound`.

    The bound is convex in b with slope ``total − Σ v'(b)``, where v' is `best_response`. Bisection
    reaches neighbouring floating-point numbers in 200 halvings unless b is next to zero. Terms v'
    that are equal at both ends of the interval are constant between them, and not computed again.
    """
    varying = np.empty(len(slopes), np.intp)
    bias: float = _best_bias(slopes, ridge, lower, upper, width, total, varying)
    return bias


@compiled()
def _best_bias(
    slopes: Array,
    ridge: Array,
    lower: Array,
    upper: Array,
    width: float,
    total: float,
    varying: Indices,
) -> float:
    """Return what :func:`best_bias` returns; `varying` is memory for one position per variable."""
    n_varying, settled = len(slopes), 0.0
    low, high = slopes[0], slopes[0]
    for k in range(n_varying):
        varying[k] = k
        reach = width
        if ridge[k] > 0.0:
            largest = upper[k] if upper[k] > -lower[k] else -lower[k]
            reach += (
                ridge[k] * largest if largest < np.inf else ridge[k] * abs(total) + abs(slopes[k])
            )
        low = slopes[k] - reach if slopes[k] - reach < low else low
        high = slopes[k] + reach if slopes[k] + reach > high else high
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
    bias: float = 0.5 * (low + high)
    return bias


@compiled()
def upper_bound(
    slopes: Array, ridge: Array, lower: Array, upper: Array, width: float, total: float, b: float
) -> float:
    """Return ``Σ_i max_v' {(slope_i − b) v' − width |v'| − ½ ridge_i v'²} + b·total``."""
    value = b * total
    for k in range(len(slopes)):
        z = slopes[k] - b
        best = best_response(z, ridge[k], lower[k], upper[k], width)
        value += z * best - width * abs(best) - 0.5 * ridge[k] * best * best
    return value


@compiled()
def snap(v: Array, lower: Array, upper: Array, width: float, error: float) -> bool:
    """Move variables near a bound, or near the kink, exactly there; return whether any moved.

    Near means within `error` of their range or of the largest variable, whichever is smaller.
    """
    largest = 0.0
    for k in range(len(v)):
        largest = abs(v[k]) if abs(v[k]) > largest else largest
    moved = False
    for k in range(len(v)):
        value, low, high = v[k], lower[k], upper[k]
        near = error * (high - low if high - low < largest else largest)
        end = value
        if abs(value - high) <= near:
            end = high
        if abs(value - low) <= near:
            end = low
        if width > 0.0 and abs(value) <= near:
            end = 0.0
        v[k] = end
        moved = moved or end != value
    return moved


@compiled()
def gather_rows(K: Array, kept: Indices, rows: Indices, out: Array) -> None:
    """Write some `rows` of ``K[kept][:, kept]`` into the same rows of `out`."""
    for a in rows:
        row, target = K[kept[a]], out[a]
        for b in range(len(kept)):
            target[b] = row[kept[b]]


def gather(K: Array, kept: Indices) -> Array:
    """Return ``K[kept][:, kept]``."""
    submatrix = np.empty((len(kept), len(kept)))
    gather_rows(K, kept, np.arange(len(kept)), submatrix)
    return submatrix


@compiled(fastmath=_FAST)
def add_product(K: Array, change: Array, out: Array) -> None:
    """Compute ``out += K @ change`` for a symmetric K; rows of zero `change` are not read."""
    for k in range(len(change)):
        if change[k] != 0.0:
            row, factor = K[k], change[k]
            for c in range(len(out)):
                out[c] += factor * row[c]


# -- The compiled loop of SMO-MKL; :mod:`manykernels.solvers.papers.smo_mkl` has the maths --------


# Slope at which a line search ends, relative to its start: on a parabola such a step attains all
# but 1e-4 of the largest increase.
_PRECISION = 1e-2
# Halvings after which an interval is empty in double precision.
_MOST_TRIALS = 60


@compiled()
def norm_and_weights(strengths: Array, q: float, weights: Array) -> float:
    """Return ``S = ‖s‖_q``, and write ``(s_j/S)^(q−1)`` into `weights`.

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
    strengths: Array,
    cross: Array,
    bend: Array,
    pull: float,
    q: float,
    mu: float,
    moved: Array,
    weights: Array,
) -> tuple[float, float]:
    """Return the slope of the objective after a step t along a pair, and −(second derivative).

    Along the pair ``s_j(t) = strengths_j + 2t cross_j + t² bend_j``, written into `moved`.
    `excess` is the slope at t = 0 without `pull`, the slope of ``‖s‖_q²/8μ``.
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
    """Find the zero of the slope on (0, room] by Newton's method, safeguarded by bisection.

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
        # Beyond the best step the objective falls.
        t = low
    return t


@compiled()
def ascend_mkl(
    kernels: Array,
    diagonals: Array,
    linear: Array,
    ridge: Array,
    lower: Array,
    upper: Array,
    width: float,
    q: float,
    mu: float,
    min_curvature: float,
    v: Array,
    products: Array,
    strengths: Array,
    tol: float,
    n_steps: int,
) -> tuple[int, float]:
    """Take pair steps on one output at fixed μ; return their number and the last violation.

    `products` (n, m) are the ``K_j v`` of this output, `strengths` are s, summed over outputs. A
    curvature below `min_curvature` is rounding error.
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


# -- Compiled loops of the multiclass SVM; :mod:`manykernels.smo.multiclass` has the maths --------
#
# Classes are nodes. Sample i carries flow from class a to class b if α_i^b is raised where ``y_i
# = a``, or α_i^a is lowered where ``y_i = b``: either way ``d_i`` changes by ``e_a − e_b``, so
# flow t along a closed cycle of such arcs keeps every ``Σ_i d_il``. The *cost* of an arc is the
# slope of −D along it.
#
# Samples are sorted by class, class a from ``first[a]`` to ``first[a + 1]``, and F and α have one
# row per class, so that the loops read memory in order.


# Cycles of two classes are cheap to find, and their samples are chosen to second order. They are
# used while the mean cost of the best is at least this fraction, in size, of that of the best
# cycle. Otherwise, and after this many steps at the latest, the best cycle is searched again. Half
# of the first takes 19 to 54 % more steps, 0.9 the same time; half or twice the second is alike.
_PAIR_SHARE = 0.7
_STEPS_PER_SEARCH = 20


@compiled(inline="always")
def _arc_cost(F: Array, alpha: Array, C: Array, leaves: bool, i: int, a: int, b: int) -> float:
    """Return the cost of the arc a → b by sample i of class a (if it `leaves` its class) or b.

    Infinite if a bound forbids it.
    """
    if leaves:
        return F[a, i] - F[b, i] - 2.0 if alpha[b, i] < C[i] else np.inf
    return F[a, i] - F[b, i] + 2.0 if alpha[a, i] > 0.0 else np.inf


@compiled()
def cheapest_arcs(
    F: Array,
    alpha: Array,
    C: Array,
    first: Indices,
    touched: NDArray[np.bool_],
    costs: Array,
    samples: Indices,
) -> None:
    """Set cost and sample of the cheapest arc between any two classes, one of them `touched`."""
    for a in range(len(F)):
        for b in range(len(F)):
            if a == b or not (touched[a] or touched[b]):
                continue
            best, sample = np.inf, -1
            for leaves, label in ((True, a), (False, b)):
                for i in range(first[label], first[label + 1]):
                    cost = _arc_cost(F, alpha, C, leaves, i, a, b)
                    if cost < best:
                        best, sample = cost, i
            costs[a, b], samples[a, b] = best, sample


@compiled()
def _second_order_arc(
    K: Array,
    F: Array,
    alpha: Array,
    C: Array,
    first: Indices,
    min_curvature: float,
    i: int,
    cost: float,
    a: int,
    b: int,
) -> tuple[float, int]:
    """Return cost and sample of the arc b → a that, after a → b by sample i, raises D most."""
    increase, partner, partner_cost = 0.0, -1, 0.0
    for leaves, label in ((True, b), (False, a)):
        for j in range(first[label], first[label + 1]):
            other = _arc_cost(F, alpha, C, leaves, j, b, a)
            slope = cost + other
            curvature = max(K[i, i] + K[j, j] - 2.0 * K[i, j], min_curvature)
            if slope < 0.0 and slope * slope > increase * curvature:
                increase, partner, partner_cost = slope * slope / curvature, j, other
    return partner_cost, partner


@compiled()
def _cheapest_pair(costs: Array) -> tuple[float, int, int]:
    """Return the two classes whose cycle a → b → a is cheapest, and its mean cost."""
    best, first, second = np.inf, 0, 0
    for a in range(len(costs)):
        for b in range(a):
            mean = 0.5 * (costs[a, b] + costs[b, a])
            if mean < best:
                best, first, second = mean, a, b
    return best, first, second


@compiled()
def cheapest_cycle(costs: Array) -> tuple[float, Indices, Array]:
    """Return the smallest mean cost of a cycle (Karp 1978), its classes, and a potential.

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
    # McConnell 2017). Going back from its end, the first repeated class closes a simple one.
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
def _add_flow(row: Array, other: Array, kernel_row: Array, t: float) -> None:
    """Add a step t to the outputs of two classes."""
    for j in range(len(kernel_row)):
        row[j] += t * kernel_row[j]
        other[j] -= t * kernel_row[j]


@compiled()
def _step(
    K: Array,
    F: Array,
    alpha: Array,
    C: Array,
    first: Indices,
    costs: Array,
    samples: Indices,
    cycle: Indices,
) -> bool:
    """Make an exact line search along a cycle; return False if D does not rise along it."""
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
        # Exactly to a reached bound: variables at their bounds are found by equality.
        if first[a] <= i < first[a + 1]:
            alpha[b, i] = C[i] if C[i] - alpha[b, i] <= t else alpha[b, i] + t
        else:
            alpha[a, i] = 0.0 if alpha[a, i] <= t else alpha[a, i] - t
        _add_flow(F[a], F[b], K[i], t)
    return True


@compiled()
def ascend_classes(
    K: Array,
    F: Array,
    alpha: Array,
    C: Array,
    first: Indices,
    min_curvature: float,
    eps: float,
    max_iter: int,
) -> int:
    """Step until no cycle has a mean cost below −eps; change F and α, return the steps."""
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
