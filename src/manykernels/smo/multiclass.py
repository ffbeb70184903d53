r"""The multiclass support vector machine as one machine, solved exactly and warm-started.

Discriminants ``f^l(x) = ⟨w_l, Φ(x)⟩ + b^l``, margin 2 (Gönen 2013, section 2.4.2; Weston and
Watkins 1999):

    P(w, b) = ½ Σ_l ‖w_l‖² + Σ_i C_i Σ_{l≠y_i} max(0, 2 − f^{y_i}(x_i) + f^l(x_i)).

A multiplier α_i^l ∈ [0, C_i] for every margin (α_i^{y_i} = 0) gives, with ``A_i = Σ_l α_i^l`` and
``d_il = δ(y_i = l) A_i − α_i^l``, that ``w_l = Σ_i d_il Φ(x_i)`` and

    D(α) = 2 Σ_il α_i^l − ½ Σ_l d_lᵀ K d_l,   Σ_i d_il = 0 for all l.

**Ascent.** The constraints say that α is a circulation: classes are nodes, α_i^l is flow from
class y_i to class l, and as much leaves a class as enters it. Two feasible points differ by flow
around cycles of classes, so steps along cycles reach every feasible point, and every iterate is
feasible. With F = Kd, raising α_i^l changes −D at the rate ``F_{i,y_i} − F_il − 2``. For every
two classes the cheapest arc is kept; a point is optimal when no cycle of arcs has a negative
cost, and the cycle of least mean cost −ε is the one to step along. Most are cycles a → b → a:
the steps of a binary SVM between the two classes.

**Biases.** Shortest paths in the same graph are the b^l: with them no margin contradicts its
multiplier by more than ε.

**Certificate.** For every α the predictor (d, b), and any multiple t of it, is a point of the
primal, so

    gap = min_t P(t·w, t·b) − D(α) ≥ 0

bounds how far D is below the optimum. The multiple costs nothing and matters when C is large: a
margin of 2 − ε then costs Cε, but growing all margins by ε/2 costs a share ε of P.

**Polish.** Steps along cycles find which α are free; D restricted to these has its maximum at
the solution of one linear system, which is tried when it is small. If bounds stop it, the steps
go on from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

# A round of ascent divides ε by at most the first and at least the second.
_ROUND = (50.0, 3.0)
# It ends after this many steps per sample in any case.
_ROUND_STEPS = 50
# The linear system of the free variables: its largest size, the ε below which these are likely
# to be the right ones, and what a polish may cost (steps times size³).
_POLISH_ROWS = 1500
_POLISH_EPS = 2e-2
_POLISH_COST = 5e8
_ROUNDING = 2e-13


@dataclass
class MulticlassSolution:
    """Solution of the multiclass SVM; see the module for the letters.

    Attributes
    ----------
    alpha : ndarray of shape (m, k)
        Multipliers α_i^l, feasible.
    d : ndarray of shape (m, k)
        Coefficients of ``f^l(x) = Σ_i d_il k(x_i, x) + b^l``.
    bias : ndarray of shape (k,)
        b^l, with sum zero.
    primal, dual : float
        Bounds of the optimal value from above and from below.
    gap : float
        ``primal − dual``.
    n_iter : int
        Steps taken.
    converged : bool
        Whether ``gap ≤ tol · primal``.
    """

    alpha: Array
    d: Array
    bias: Array
    primal: float
    dual: float
    gap: float
    n_iter: int
    converged: bool


def solve_multiclass(
    K: ArrayLike,
    labels: ArrayLike,
    C: ArrayLike,
    *,
    n_classes: int,
    start: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 1_000_000,
) -> MulticlassSolution:
    """Train the multiclass SVM on a kernel matrix.

    Parameters
    ----------
    K : array-like of shape (m, m)
        Symmetric positive semi-definite kernel. Samples sorted by class save a copy of it.
    labels : array-like of int, shape (m,)
        Classes 0 … k−1.
    C : float or array-like of shape (m,)
        Cost of a margin, C_i ≥ 0.
    n_classes : int
        k; classes may be empty.
    start : array-like of shape (m, k), optional
        Multipliers to start from, such as the solution for a kernel close to this one. They need
        not be feasible.
    tol : float, default=1e-4
        Stop when ``gap ≤ tol · primal``.
    max_iter : int, default=1_000_000
        Stop after so many steps.

    Returns
    -------
    MulticlassSolution

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> answer = solve_multiclass(np.exp(-np.subtract.outer(x, x) ** 2), [0, 1, 2], 10.0,
    ...                           n_classes=3, tol=1e-8)
    >>> answer.converged
    True
    """
    from . import _multiclass_loops as loops

    kernel = np.ascontiguousarray(K, dtype=np.float64)
    y = np.asarray(labels, dtype=np.int64)
    m, k = len(y), int(n_classes)
    upper = np.broadcast_to(np.asarray(C, dtype=np.float64), m)
    if kernel.shape != (m, m):
        raise ValueError(f"K has shape {kernel.shape}; {m} labels need ({m}, {m}).")
    if m and not 0 <= y.min() <= y.max() < k:
        raise ValueError(f"Labels must be integers from 0 to n_classes − 1 = {k - 1}.")
    if not np.all((upper >= 0.0) & np.isfinite(upper)):
        raise ValueError("C must be finite and not negative.")

    # The loops want samples sorted by class.
    order = np.argsort(y, kind="stable")
    if np.any(order[1:] < order[:-1]):
        kernel = kernel.take(order, axis=0).take(order, axis=1)
    problem = _Problem(kernel, y[order], np.ascontiguousarray(upper[order]), k)
    first = np.searchsorted(problem.y, np.arange(k + 1))
    floor = max(1e-12 * kernel.diagonal().max(initial=0.0), 1e-200)

    alpha = np.zeros((k, m))
    if start is not None:
        alpha = _feasible(np.asarray(start, dtype=np.float64)[order].T, problem)
    costs, arcs, everything = np.full((k, k), np.inf), np.full((k, k), -1), np.ones(k, bool)
    cycle, bias = np.zeros(k, np.int64), np.zeros(k)
    n_iter, slow = 0, False
    while True:
        d = problem.signed(alpha)
        F = d @ kernel
        loops.cheapest_arcs(F, alpha, problem.C, first, everything, costs, arcs)
        eps = max(-loops.cheapest_cycle(costs, cycle, bias)[0], 0.0)
        energy = float(np.vdot(d, F))
        dual = float(2.0 * alpha.sum() - 0.5 * energy)
        primal = problem.primal(F + bias[:, None], energy)
        gap = max(primal - dual, 0.0)
        least = _ROUNDING * max(2.0, float(np.abs(F).max(initial=0.0)))
        if gap <= tol * primal or eps <= least or n_iter >= max_iter:
            break
        target = eps * np.clip(0.5 * tol * primal / gap, 1.0 / _ROUND[0], 1.0 / _ROUND[1])
        polished = (slow or eps <= _POLISH_EPS) and _polish(problem, F, alpha)
        allowed = min(_ROUND_STEPS * m, max_iter - n_iter)
        steps = loops.ascend(
            kernel, F, alpha, problem.C, first, floor, max(target, 0.5 * least), allowed
        )
        slow = steps == allowed
        if not (steps or polished):
            break  # rounding hides what is left to gain
        n_iter += steps

    back = np.argsort(order)
    return MulticlassSolution(
        alpha=np.ascontiguousarray(alpha.T[back]),
        d=np.ascontiguousarray(d.T[back]),
        bias=bias - bias.mean() if k else bias,
        primal=max(primal, dual),
        dual=dual,
        gap=gap,
        n_iter=n_iter,
        converged=gap <= tol * primal,
    )


@dataclass
class _Problem:
    """Data with samples sorted by class. F, d and α have one row per class: (k, m)."""

    K: Array
    y: Labels
    C: Array
    k: int

    def __post_init__(self) -> None:
        self.samples = np.arange(len(self.y))

    def signed(self, alpha: Array) -> Array:
        """``d_il = δ(y_i = l) A_i − α_i^l``."""
        d: Array = -alpha
        d[self.y, self.samples] = alpha.sum(axis=0)
        return d

    def primal(self, f: Array, energy: float) -> float:
        """``min_t P(t·f)``, where ``energy = Σ_l‖w_l‖²`` belongs to t = 1.

        The hinge of a margin q is open while ``t < 2/q`` (always, if q ≤ 0), so the derivative
        ``t·energy − Σ_open C q`` is piecewise linear in t and grows.
        """
        margins = f[self.y, self.samples] - f
        margins[self.y, self.samples] = np.inf  # not a margin: its hinge is never open
        forces = np.where(np.isfinite(margins), margins, 0.0) * self.C
        scale = 1.0
        if energy > 0.0:
            closing = (margins > 0.0) & np.isfinite(margins)
            with np.errstate(over="ignore"):
                ends = 2.0 / margins[closing]
            order = np.argsort(ends)
            ends = np.concatenate([[0.0], ends[order], [np.inf]])
            force = forces.sum() - np.cumsum(np.append(0.0, forces[closing][order]))
            piece = int(np.argmax(energy * ends[1:] >= force))
            scale = float(np.clip(force[piece] / energy, ends[piece], ends[piece + 1]))
        with np.errstate(invalid="ignore"):  # 0·∞ at scale zero
            hinges = np.fmax(2.0 - scale * margins, 0.0)
        hinges[self.y, self.samples] = 0.0
        return float(0.5 * scale**2 * energy + hinges.sum(axis=0) @ self.C)


def _feasible(start: Array, problem: _Problem) -> Array:
    """A feasible point near any: clip to the box, then take away the flow that has no return."""
    alpha: Array = np.ascontiguousarray(np.clip(start, 0.0, problem.C))
    alpha[problem.y, problem.samples] = 0.0
    flow = np.zeros((problem.k, problem.k))
    np.add.at(flow, problem.y, alpha.T)
    kept = _circulation(flow)
    share = np.divide(kept, flow, out=np.ones_like(flow), where=flow > 0.0)
    if np.any(share < 1.0):
        alpha *= share[problem.y].T
    # A start of a much smaller kernel costs more to undo than to shrink.
    d = problem.signed(alpha)
    energy = float(np.vdot(d, d @ problem.K))
    if 4.0 * alpha.sum() < energy:
        alpha *= 2.0 * alpha.sum() / energy
    return alpha


def _circulation(flow: Array) -> Array:
    """A circulation below `flow`, which is left alone if it is one up to rounding.

    While more leaves class a than enters it, the surplus runs along arcs with flow to a class
    where more enters than leaves. Every path taken away uses up an arc, a surplus or a deficit.
    """
    flow = flow.copy()
    k = len(flow)
    rounding = 1e-13 * max(flow.sum(), 1e-300)
    while True:
        surplus = flow.sum(axis=1) - flow.sum(axis=0)
        source = int(surplus.argmax()) if k else 0
        if k == 0 or surplus[source] <= rounding:
            return flow
        parent, queue = {source: source}, [source]
        for a in queue:
            for b in np.flatnonzero(flow[a] > 0.0).tolist():
                if b not in parent:
                    parent[b] = a
                    queue.append(b)
        sink = min(queue, key=lambda node: float(surplus[node]))
        path = [sink]
        while path[-1] != source:
            path.append(parent[path[-1]])
        arcs = (np.array(path[1:]), np.array(path[:-1]))
        if surplus[sink] >= 0.0:
            return np.zeros_like(flow)  # rounding has broken the balance: start afresh
        flow[arcs] -= min(surplus[source], -surplus[sink], flow[arcs].min())


def _polish(problem: _Problem, F: Array, alpha: Array) -> bool:
    """Maximise D over the free variables, bounds permitting; changes F and α if it can."""
    moved, cost = False, 0.0
    while cost < _POLISH_COST:
        cost += float(((alpha > 0.0) & (alpha < problem.C)).sum()) ** 3
        reached = _newton_step(problem, F, alpha)
        moved |= reached > 0.0
        if not 0.0 < reached < 1.0:
            break
    return moved


def _newton_step(problem: _Problem, F: Array, alpha: Array) -> float:
    """One step towards the maximum over the free variables: the share of it that was taken.

    A change δ of the free variables, each with its ``v = e_{y_i} − e_l``, has to solve
    ``Qδ + Vλ = −g, Vᵀδ = 0`` where ``Q = K_ij ⟨v, v'⟩`` and g is the slope of −D.
    """
    classes, rows = np.nonzero((alpha > 0.0) & (alpha < problem.C))
    n = len(rows)
    if not 2 <= n <= _POLISH_ROWS:
        return 0.0
    V = np.zeros((n, problem.k))
    V[np.arange(n), problem.y[rows]] = 1.0
    V[np.arange(n), classes] = -1.0
    Q = problem.K[np.ix_(rows, rows)] * (V @ V.T)
    # Equal samples make Q singular; the least ridge keeps δ an ascent direction.
    Q.flat[:: n + 1] += 1e-11 * Q.diagonal().mean() + 1e-200
    slopes = F[problem.y[rows], rows] - F[classes, rows] - 2.0
    try:
        factor = linalg.cho_factor(Q, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return 0.0
    solved = linalg.cho_solve(factor, np.column_stack([slopes, V]), check_finite=False)
    multipliers = np.linalg.lstsq(V.T @ solved[:, 1:], V.T @ solved[:, 0], rcond=1e-12)[0]
    change = solved[:, 1:] @ multipliers - solved[:, 0]
    # Rounding of an ill-conditioned Q must not disturb the balance.
    inverse = np.linalg.pinv(V.T @ V, rcond=1e-10, hermitian=True)
    for _ in range(2):
        change -= V @ (inverse @ (V.T @ change))

    direction = np.zeros((len(problem.y), problem.k))
    np.add.at(direction, rows, change[:, None] * V)
    outputs = direction.T @ problem.K
    slope, curvature = float(slopes @ change), float(np.vdot(direction.T, outputs))
    if not slope < 0.0:
        return 0.0
    # One in exact arithmetic, or less of a direction that has lost its digits.
    whole = min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
    now, upper = alpha[classes, rows], problem.C[rows]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = np.where(change > 0.0, (upper - now) / change, -now / change)
    room[change == 0.0] = np.inf
    nearest = int(room.argmin())
    taken = min(whole, float(room[nearest]))
    moved = np.clip(now + taken * change, 0.0, upper)
    if taken < whole:
        moved[nearest] = upper[nearest] if change[nearest] > 0.0 else 0.0
    if np.abs(V.T @ (moved - now)).max() > _ROUNDING * alpha.sum():
        return 0.0
    alpha[classes, rows] = moved
    F += taken * outputs
    return taken / whole
