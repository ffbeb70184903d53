"""Compiled loops of OBSCURE; for the maths see :mod:`manykernels.baselines.obscure`.

Arrays have one row per class, so that steps write contiguous memory: ``d`` and ``u`` are (k, m),
``F[j] = unit · d K_j`` is (k, m) for every kernel. ``squares[j] = ‖θ_j‖²``.
"""

import numpy as np

from ..utils.compiled import compiled

# When the common factor of d and F falls below this, it is multiplied into them.
_LEAST_FACTOR = 1e-6
# Number of bisections for the best step: an accuracy of 1e-12.
_HALVINGS = 40


@compiled()
def set_weights(squares: np.ndarray, q: float, weights: np.ndarray) -> float:
    """Set weights to ``∇σ(½ squares)`` for ``σ = ‖·‖_q``, and return the value of σ."""
    top = squares.max()
    if not top > 0.0:
        weights[:] = len(weights) ** (1.0 / q - 1.0)
        return 0.0
    total = 0.0
    for j in range(len(squares)):
        total += max(squares[j] / top, 0.0) ** q
    norm = top * total ** (1.0 / q)
    for j in range(len(squares)):
        weights[j] = max(squares[j] / norm, 0.0) ** (q - 1.0)
    return 0.5 * norm


@compiled()
def _runner_up(
    F: np.ndarray, weights: np.ndarray, i: int, label: int, factor: float, f: np.ndarray
) -> int:
    """Set f to the outputs of sample i, and return the other class with the largest output."""
    f[:] = 0.0
    for j in range(len(F)):
        for c in range(len(f)):
            f[c] += factor * weights[j] * F[j, c, i]
    other = -1
    for c in range(len(f)):
        if c != label and (other < 0 or f[c] > f[other]):
            other = c
    return other


@compiled(fastmath={"contract"})
def _add_row(F: np.ndarray, K: np.ndarray, i: int, c: int, change: float) -> None:
    """Update the outputs of class c after `change` was added to the coefficient of sample i."""
    for j in range(len(F)):
        output, row = F[j, c], K[j, i]
        for r in range(len(row)):
            output[r] += change * row[r]


@compiled()
def _step(
    K: np.ndarray,
    F: np.ndarray,
    d: np.ndarray,
    squares: np.ndarray,
    i: int,
    label: int,
    other: int,
    size: float,
    unit: float,
) -> None:
    """Add ``size · z`` of sample i to θ."""
    for j in range(len(F)):
        squares[j] += 2.0 * size * (F[j, label, i] - F[j, other, i])
        squares[j] += 2.0 * unit * size * size * K[j, i, i]
    d[label, i] += size
    d[other, i] -= size
    _add_row(F, K, i, label, unit * size)
    _add_row(F, K, i, other, -unit * size)


@compiled()
def online_epoch(
    K: np.ndarray,
    F: np.ndarray,
    d: np.ndarray,
    squares: np.ndarray,
    labels: np.ndarray,
    order: np.ndarray,
    steps: np.ndarray,
    q: float,
    unit: float,
) -> int:
    """Stage 1: a step of fixed size at each sample inside the margin; return their number."""
    weights, f = np.empty(len(F)), np.empty(len(d))
    n_updates = 0
    set_weights(squares, q, weights)
    for i in order:
        label = labels[i]
        other = _runner_up(F, weights, i, label, 1.0, f)
        if f[label] - f[other] < 1.0:
            _step(K, F, d, squares, i, label, other, steps[i], unit)
            set_weights(squares, q, weights)
            n_updates += 1
    return n_updates


@compiled()
def batch_epoch(
    K: np.ndarray,
    F: np.ndarray,
    d: np.ndarray,
    squares: np.ndarray,
    labels: np.ndarray,
    order: np.ndarray,
    importances: np.ndarray,
    q: float,
    unit: float,
    lam: float,
    radius: float,
    clock: np.ndarray,
) -> None:
    """Stage 2: subgradient steps of sizes ``1/(λt + s_t)``; `clock` has t and s_t."""
    weights, f, lengths = np.empty(len(F)), np.empty(len(d)), np.empty(len(F))
    unused = np.empty(len(F))
    factor = 1.0  # of d and F, and its square of `squares`
    norm = np.sqrt(2.0 * set_weights(squares, q, weights))
    for i in order:
        label = labels[i]
        other = _runner_up(F, weights, i, label, factor, f)
        inside = f[label] - f[other] < 1.0
        slope = lam * norm
        if inside:
            for j in range(len(F)):
                lengths[j] = 2.0 * unit * K[j, i, i]
            slope += importances[i] * np.sqrt(2.0 * set_weights(lengths, q, unused))
        clock[0] += 1.0
        speed = lam * clock[0] + clock[1]
        # q is the exponent for squares; that of the norm is 2q.
        clock[1] += 0.5 * (np.sqrt(speed**2 + 2.0 * q * (slope / radius) ** 2) - speed)
        size = 1.0 / (lam * clock[0] + clock[1])
        factor *= 1.0 - lam * size
        norm *= 1.0 - lam * size
        if factor < _LEAST_FACTOR:
            d *= factor
            F *= factor
            squares *= factor**2
            factor = 1.0
        if inside:
            _step(K, F, d, squares, i, label, other, importances[i] * size / factor, unit)
            norm = factor * np.sqrt(2.0 * set_weights(squares, q, weights))
        if norm > radius:
            factor *= radius / norm
            norm = radius
    d *= factor
    F *= factor
    squares *= factor**2


@compiled()
def best_step(
    squares: np.ndarray,
    halves: np.ndarray,
    bends: np.ndarray,
    slope: float,
    q: float,
    weights: np.ndarray,
    at: np.ndarray,
) -> float:
    """Return t in [0, 1] that maximises ``t·slope − σ(½(squares + 2t halves + t² bends))``."""
    low, high = 0.0, 1.0
    for halving in range(_HALVINGS):
        t = 1.0 if halving == 0 else 0.5 * (low + high)
        for j in range(len(squares)):
            at[j] = squares[j] + t * (2.0 * halves[j] + t * bends[j])
        set_weights(at, q, weights)
        rise = slope
        for j in range(len(squares)):
            rise -= weights[j] * (halves[j] + t * bends[j])
        if rise >= 0.0:
            low = t
            if halving == 0:
                return 1.0
        else:
            high = t
    return low


@compiled()
def _project(point: np.ndarray, total: float, target: np.ndarray) -> None:
    """Set `target` to the projection of `point` on the simplex of sum `total`."""
    falling = np.sort(point)[::-1]
    above, level = 0.0, 0.0
    for n in range(len(point)):
        above += falling[n]
        candidate = (above - total) / (n + 1)
        if falling[n] > candidate:
            level = candidate
    for c in range(len(point)):
        target[c] = max(point[c] - level, 0.0)


@compiled()
def ascend(
    K: np.ndarray,
    F: np.ndarray,
    u: np.ndarray,
    squares: np.ndarray,
    labels: np.ndarray,
    penalties: np.ndarray,
    order: np.ndarray,
    q: float,
    unit: float,
    min_curvature: float,
) -> None:
    """Stage 3: for each sample, a step towards the u that is optimal for fixed weights."""
    k = len(u)
    weights, f = np.empty(len(F)), np.empty(k)
    halves, bends, at = np.empty(len(F)), np.empty(len(F)), np.empty(len(F))
    point, target, change = np.empty(k), np.empty(k), np.empty(k)
    set_weights(squares, q, weights)
    for i in order:
        label = labels[i]
        _runner_up(F, weights, i, label, 1.0, f)
        curvature = min_curvature
        for j in range(len(F)):
            curvature += unit * weights[j] * K[j, i, i]
        f[label] -= 1.0
        for c in range(k):
            point[c] = u[c, i] + f[c] / curvature
        _project(point, penalties[i], target)
        slope, length, largest = 0.0, 0.0, 0.0
        for c in range(k):
            change[c] = target[c] - u[c, i]
            slope += change[c] * f[c]
            length += change[c] ** 2
            largest = max(largest, abs(change[c]))
        # Changes by rounding are skipped, or else bounds would never be reached.
        if not (slope > 0.0 and largest > 1e-15 * penalties[i]):
            continue
        for j in range(len(F)):
            halves[j] = 0.0
            for c in range(k):
                halves[j] -= change[c] * F[j, c, i]
            bends[j] = unit * K[j, i, i] * length
        t = best_step(squares, halves, bends, -change[label], q, weights, at)
        for j in range(len(F)):
            squares[j] += t * (2.0 * halves[j] + t * bends[j])
        for c in range(k):
            if change[c] != 0.0:
                u[c, i] = target[c] if t == 1.0 else u[c, i] + t * change[c]
                _add_row(F, K, i, c, -unit * t * change[c])
        set_weights(squares, q, weights)
