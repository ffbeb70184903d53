r"""Multiclass support vector machine as one problem, solved exactly and warm-started.

Discriminants ``f^l(x) = ⟨w_l, Φ(x)⟩ + b^l``, margin 2 (Gönen 2013, section 2.4.2; Weston and
Watkins 1999):

    P(w, b) = ½ Σ_l ‖w_l‖² + Σ_i C_i Σ_{l≠y_i} max(0, 2 − f^{y_i}(x_i) + f^l(x_i)).

A multiplier α_i^l ∈ [0, C_i] for every margin (α_i^{y_i} = 0) gives, with ``A_i = Σ_l α_i^l`` and
``d_il = δ(y_i = l) A_i − α_i^l``, that ``w_l = Σ_i d_il Φ(x_i)`` and

    D(α) = 2 Σ_il α_i^l − ½ Σ_l d_lᵀ K d_l,   Σ_i d_il = 0 for all l.

**Ascent.** The constraints state that α is a circulation: classes are nodes, α_i^l is flow from
class y_i to class l, and as much leaves a class as enters it. Two feasible points differ by flow
around cycles of classes, so steps along cycles reach every feasible point, and every iterate is
feasible. With F = Kd, raising α_i^l changes −D at the rate ``F_{i,y_i} − F_il − 2``, the cost of
that arc. Only the cheapest arc between any two classes matters: a point is optimal when no cycle
of arcs has a negative cost, and a step goes along the cycle of least mean cost −ε. Most are cycles
a → b → a: the steps of a binary SVM between the two classes.

**Biases.** The b^l are lengths of shortest paths in the same graph: with them every margin meets
its optimality condition up to ε.

**Certificate.** For every α the predictor (d, b), and any multiple t of it, is a point of the
primal, so the duality gap

    gap = min_t P(t·w, t·b) − D(α) ≥ 0

bounds how far D is below the optimum. The multiple matters where C is large: margins of 2 − ε then
cost Cε each, while scaling all of them to 2 costs a fraction ε of P.

**Polish.** Steps along cycles identify the free α. On these D is a quadratic, whose maximum
solves a linear system (:class:`ClassFace`); it is solved if it is small. If a bound stops it, more
steps follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils.numerics import ACCUMULATED, ROUNDING
from .box import MOST_FACTORISED, softest
from .program import Array, Indices, cholesky, min_curvature, solve_factored, step_within

Labels = NDArray[np.int64]

# Maximum and minimum factor by which a round of ascent aims to divide ε: the gap is computed once
# per round, and is roughly proportional to ε. Measured, as below, on 36 machines (3 or 10 classes,
# C from 0.1 to 100): half or twice the first takes 6 to 12 % fewer steps in the same time, no
# limit up to 76 % more; half or twice the second changes them by less than 1 %.
_MOST_DIVISION, _LEAST_DIVISION = 50.0, 3.0
# Maximum number of steps per sample in a round, after which the gap is computed and a polish is
# tried: 7 % fewer steps in all with half, 13 % more with twice, in the same time within 5 %.
_ROUND_STEPS = 50
# A polish solves systems of at most this many free variables, and only below this ε, where they
# are probably the right ones. A step that a bound stops is followed by another until the cubes of
# these numbers add up to this cost, about a tenth of a second. Half of the first takes 4 % more
# steps, twice 9 to 20 % more time; half or twice the second takes the same time within 10 %.
_POLISH_ROWS = 1500
_POLISH_EPS = 2e-2
_POLISH_COST = 5e8
# Relative rounding error of sums over samples changed by thousands of steps.
_STEP_ERROR = 20.0 * ROUNDING


@dataclass
class MulticlassSolution:
    """Solution of the multiclass SVM, in the notation of this module.

    `alpha` are feasible multipliers, (m, k), and ``f^l(x) = Σ_i d_il k(x_i, x) + b^l``, where the
    biases sum to zero. `primal`, attained by `scale` times f, and `dual` bound the optimal value,
    `n_iter` is the number of steps, and `converged` is True if ``gap = primal − dual ≤ tol ·
    primal``.
    """

    alpha: Array
    d: Array
    bias: Array
    scale: float
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
        Initial multipliers, such as the solution for a similar kernel; replaced by a nearby
        feasible point if they are not feasible.
    tol : float, default=1e-4
        Stop when ``gap ≤ tol · primal``.
    max_iter : int, default=1_000_000
        Maximum number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> answer = solve_multiclass(np.exp(-np.subtract.outer(x, x) ** 2), [0, 1, 2], 10.0,
    ...                           n_classes=3, tol=1e-8)
    >>> answer.converged
    True
    """
    from . import loops

    kernel = np.ascontiguousarray(K, dtype=np.float64)
    y = np.asarray(labels, dtype=np.int64)
    m, k = len(y), int(n_classes)
    upper = np.broadcast_to(np.asarray(C, dtype=np.float64), m)
    if kernel.shape != (m, m):
        raise ValueError(f"K must have shape ({m}, {m}) for {m} labels, got {kernel.shape}.")
    if m and not 0 <= y.min() <= y.max() < k:
        raise ValueError(f"labels must be integers from 0 to n_classes − 1 = {k - 1}.")
    if not np.all((upper >= 0.0) & np.isfinite(upper)):
        raise ValueError("C must be finite and not negative.")

    # The compiled loops need samples sorted by class.
    order = np.argsort(y, kind="stable")
    if np.any(order[1:] < order[:-1]):
        kernel = kernel.take(order, axis=0).take(order, axis=1)
    problem = MulticlassProblem(y[order], np.ascontiguousarray(upper[order]), k)
    first = np.searchsorted(problem.y, np.arange(k + 1))
    floor = min_curvature(kernel.diagonal())

    alpha = np.zeros((k, m))
    if start is not None:
        alpha = problem.feasible(np.asarray(start, dtype=np.float64)[order].T)
        # If the start belongs to a much smaller kernel, D is negative: take its best multiple.
        d = problem.signed(alpha)
        energy = float(np.vdot(d, d @ kernel))
        if 4.0 * alpha.sum() < energy:
            alpha *= 2.0 * alpha.sum() / energy
    costs, arcs, everything = np.full((k, k), np.inf), np.full((k, k), -1), np.ones(k, bool)
    n_iter, slow = 0, False
    while True:
        d = problem.signed(alpha)
        F = d @ kernel
        loops.cheapest_arcs(F, alpha, problem.C, first, everything, costs, arcs)
        mean, _, bias = loops.cheapest_cycle(costs)
        eps = max(-mean, 0.0)
        energy = float(np.vdot(d, F))
        dual = float(2.0 * alpha.sum() - 0.5 * energy)
        primal, scale = problem.primal(F + bias[:, None], energy)
        gap = max(primal - dual, 0.0)
        eps_error = _STEP_ERROR * max(2.0, float(np.abs(F).max(initial=0.0)))
        if gap <= tol * primal or eps <= eps_error or n_iter >= max_iter:
            break
        aim = np.clip(0.5 * tol * primal / gap, 1.0 / _MOST_DIVISION, 1.0 / _LEAST_DIVISION)
        target = max(eps * aim, 0.5 * eps_error)
        polished = (slow or eps <= _POLISH_EPS) and _polish(problem, kernel, F, alpha)
        allowed = min(_ROUND_STEPS * m, max_iter - n_iter)
        steps = loops.ascend_classes(kernel, F, alpha, problem.C, first, floor, target, allowed)
        slow = steps == allowed
        if not (steps or polished):
            break  # D cannot rise by more than its rounding error
        n_iter += steps

    back = np.argsort(order)
    return MulticlassSolution(
        alpha=np.ascontiguousarray(alpha.T[back]),
        d=np.ascontiguousarray(d.T[back]),
        bias=bias - bias.mean() if k else bias,
        scale=scale,
        primal=max(primal, dual),
        dual=dual,
        gap=gap,
        n_iter=n_iter,
        converged=gap <= tol * primal,
    )


@dataclass(frozen=True)
class MulticlassProblem:
    """Program without K: labels y and costs C of the samples, and the number of classes k.

    F, d and α have one row per class: (k, m).
    """

    y: Labels
    C: Array
    k: int

    @cached_property
    def true_class(self) -> tuple[Labels, Indices]:
        """Indices of the entries of the samples' own classes."""
        return self.y, np.arange(len(self.y))

    @cached_property
    def is_margin(self) -> NDArray[np.bool_]:
        """Whether an entry has a margin: not in the row of the sample's own class."""
        margins: NDArray[np.bool_] = np.arange(self.k)[:, None] != self.y
        return margins

    @cached_property
    def margin_costs(self) -> Array:
        """Costs of all margins."""
        return np.broadcast_to(self.C, self.is_margin.shape)[self.is_margin]

    def signed(self, alpha: Array) -> Array:
        """Return ``d_il = δ(y_i = l) A_i − α_i^l``."""
        d: Array = -alpha
        d[self.true_class] = alpha.sum(axis=0)
        return d

    def multipliers(self, d: Array) -> Array:
        """Return the α of a d, the inverse of :meth:`signed`."""
        return np.where(self.is_margin, np.maximum(-d, 0.0), 0.0)

    def slopes(self, f: Array) -> Array:
        """Return the slopes ``f^{y_i} − f^l − 2`` of −D, with biases the excess of the margins."""
        slopes: Array = f[self.true_class] - f - 2.0
        return slopes

    def primal(self, f: Array, energy: float) -> tuple[float, float]:
        """Return ``min_t P(t·f)`` and t, where ``energy = Σ_l‖w_l‖²`` belongs to t = 1.

        The hinge of a margin q is open while ``t < 2/q`` (always, if q ≤ 0), so the derivative
        ``t·energy − Σ_open C q`` is piecewise linear in t and grows.
        """
        margins, costs = (f[self.true_class] - f)[self.is_margin], self.margin_costs
        scale = 1.0
        if energy > 0.0:
            # Hinges that close, in their order as t grows.
            closing = np.flatnonzero(margins > 0.0)
            closing = closing[np.argsort(-margins[closing])]
            closed = np.cumsum((costs * margins)[closing])
            force = costs @ margins - np.append(0.0, closed)
            with np.errstate(over="ignore"):
                ends = np.concatenate([[0.0], 2.0 / margins[closing], [np.inf]])
            piece = int(np.argmax(energy * ends[1:] >= force))
            scale = float(np.clip(force[piece] / energy, ends[piece], ends[piece + 1]))
        hinges = np.maximum(2.0 - scale * margins, 0.0)
        return float(0.5 * scale**2 * energy + costs @ hinges), scale

    def feasible(self, start: Array) -> Array:
        """Return a feasible point near `start`: within the box, and a circulation."""
        alpha: Array = np.ascontiguousarray(np.clip(start, 0.0, self.C))
        alpha[self.true_class] = 0.0
        flow = np.zeros((self.k, self.k))
        np.add.at(flow, self.y, alpha.T)
        kept = _circulation(flow)
        if kept is not flow:
            alpha *= np.divide(kept, flow, out=np.ones_like(flow), where=flow > 0.0)[self.y].T
        return alpha


def _circulation(flow: Array) -> Array:
    """Return `flow` if it is a circulation up to rounding error, as for any solution.

    Otherwise the part of it that is matched by flow back between the same two classes.
    """
    surplus = flow.sum(axis=1) - flow.sum(axis=0)
    balanced = np.abs(surplus).max(initial=0.0) <= ACCUMULATED * float(flow.sum())
    return flow if balanced else np.minimum(flow, flow.T)


class ClassFace:
    """Factorised system ``Q x + V b = right, Vᵀx = 0`` of some of the variables α_i^l.

    Every variable has the row ``v = e_{y_i} − e_l`` in V, and ``Q = K_ij ⟨v, v'⟩``.
    """

    def __init__(self, factor: Array, V: Array) -> None:
        self._factor, self.V = factor, V
        self._solved = solve_factored(factor, V)

    @classmethod
    def of(
        cls,
        problem: MulticlassProblem,
        K: Array,
        variables: tuple[Indices, ...],
        stiffness: Array | None = None,
    ) -> ClassFace | None:
        """Return the face of variables at some entries of α; None if Q is not definite.

        `stiffness`, zero by default, is added to the diagonal of Q.
        """
        classes, rows = variables
        n = len(rows)
        V = np.zeros((n, problem.k))
        V[np.arange(n), problem.y[rows]] = 1.0
        V[np.arange(n), classes] = -1.0
        # As Vᵀx = 0, a constant may be added to K. This one makes centred kernels definite.
        constant = float(K.diagonal()[rows].mean()) / n
        Q = (K[np.ix_(rows, rows)] + constant) * (V @ V.T)
        scale = float(Q.diagonal().mean())
        # Equal samples and kernels of low rank make Q singular. With a hundredth of this addition
        # directions are so inaccurate that hard problems need several times the steps (measured).
        Q.flat[:: n + 1] += 10.0 * ACCUMULATED * scale
        if stiffness is not None:
            Q.flat[:: n + 1] += stiffness
        factor = cholesky(Q, scale)
        return None if factor is None else cls(factor, V)

    def solve(self, right: Array) -> Array:
        """Solve for x, column by column of `right`, (n, n_columns)."""
        plain = solve_factored(self._factor, right)
        # By least squares, as VᵀQ⁻¹V is singular: the columns of V add up to zero.
        multipliers = np.linalg.lstsq(self.V.T @ self._solved, self.V.T @ plain, ACCUMULATED)[0]
        x = plain - self._solved @ multipliers
        # Where Q is ill-conditioned, Vᵀx = 0 holds only after a projection.
        projected: Array = x - self.V @ np.linalg.lstsq(self.V, x)[0]
        return projected


def face_of(
    problem: MulticlassProblem, K: Array, alpha: Array, f: Array, barrier: float = 0.0
) -> tuple[tuple[Indices, ...], ClassFace | None]:
    """Return the free variables as entries of α, and their system if there is one.

    With a barrier there are also those at a bound with a small multiplier, as in
    :meth:`~manykernels.smo.box.Ascent.soft_face`; `f` are outputs with biases.
    """
    free = (alpha > 0.0) & (alpha < problem.C) & problem.is_margin
    variables, stiffness = np.nonzero(free), None
    if barrier > 0.0:
        slopes = problem.slopes(f)
        force = np.where(alpha > 0.0, np.maximum(-slopes, 0.0), np.maximum(slopes, 0.0))
        force[free] = 0.0
        force[~problem.is_margin] = np.inf
        with np.errstate(over="ignore"):
            every = force * (force / barrier)
        soft = softest(every.ravel(), 2.0 * float(K.diagonal().max()))
        if soft is not None:
            variables = np.unravel_index(soft, every.shape)
            costs = problem.C[variables[1]]
            stiffness = every[variables] * (problem.margin_costs.sum() / costs)
    if not 2 <= len(variables[1]) <= MOST_FACTORISED:
        return variables, None
    return variables, ClassFace.of(problem, K, variables, stiffness)


def _polish(problem: MulticlassProblem, K: Array, F: Array, alpha: Array) -> bool:
    """Maximise D over the free variables within their bounds; return True if α has changed."""
    moved, cost = False, 0.0
    while cost < _POLISH_COST:
        cost += float(((alpha > 0.0) & (alpha < problem.C)).sum()) ** 3
        reached = _newton_step(problem, K, F, alpha)
        moved |= reached > 0.0
        if not 0.0 < reached < 1.0:
            break
    return moved


def _newton_step(problem: MulticlassProblem, K: Array, F: Array, alpha: Array) -> float:
    """Step to the maximum over the free variables; return the fraction allowed by the bounds."""
    classes, rows = np.nonzero((alpha > 0.0) & (alpha < problem.C))
    n = len(rows)
    if not 2 <= n <= _POLISH_ROWS:
        return 0.0
    face = ClassFace.of(problem, K, (classes, rows))
    if face is None:
        return 0.0
    slopes = problem.slopes(F)[classes, rows]
    change = -face.solve(slopes[:, None])[:, 0]

    direction = np.zeros((len(problem.y), problem.k))
    np.add.at(direction, rows, change[:, None] * face.V)
    outputs = direction.T @ K
    slope, curvature = float(slopes @ change), float(np.vdot(direction.T, outputs))
    if not slope < 0.0:
        return 0.0
    # The best step is 1 in exact arithmetic, and less for an inaccurate direction.
    best = min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
    now = alpha[classes, rows]
    moved, taken = step_within(now, change, np.zeros(n), problem.C[rows], best)
    if np.abs(face.V.T @ (moved - now)).max() > _STEP_ERROR * alpha.sum():
        return 0.0
    alpha[classes, rows] = moved
    F += taken * outputs
    return taken / best
