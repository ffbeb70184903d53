"""Concave quadratic programs with bounds and one equality: every support vector machine.

In signed dual variables v (``y∘α`` for two classes, ``α⁺ − α⁻`` for regression, α for one class)

    max_v  D(v) = c·v − e Σ|v_i| − ½ vᵀ(K + diag r) v
    s.t.   l ≤ v ≤ u,   Σ v_i = s

    machine           c   e   r     l, u                    s
    hinge             y   0   0     between 0 and C y       0
    squared hinge     y   0   1/C   between 0 and ∞ y       0
    ε-insensitive     t   ε   0     −C, C                   0
    one-class         0   0   0     0, 1                    ν m

Moving v_i up by t and v_j down by t keeps the equality. With ``G = c − Kv − r∘v`` the slope of D
along that step is ``up_i − down_j``, where up and down are G minus e times the slope of |v| to the
right and to the left of v, and −∞ or +∞ where a bound forbids the move. At the maximum no up is
above any down; the largest ``up_i − down_j`` is the *violation*. Each step takes the i of the
largest up and the j that raises D most to second order (Fan, Chen and Lin 2005), and goes to the
best t, or to the first bound, or to the kink of |v| at zero.

Variables with ``up_i < min down`` and ``down_i > max up`` can be neither i nor j. Where there are
many, the steps continue on a smaller matrix without them (shrinking, Joachims 1999); they are
checked again before the end.

The bias b is the multiplier of the equality. With ``f = Kv₀``, ``½vᵀKv ≥ v·f − ½v₀·f``, so that

    max D ≤ P(v₀, b) = ½ v₀·f + b s + Σ_i max_{l ≤ v ≤ u} {(c_i − f_i − b) v − e|v| − ½ r_i v²}

which is the primal objective of the machine v₀ with bias b: ``P − D`` is a duality gap for any v₀.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..utils.numerics import ACCUMULATED, TINY
from .program import (
    Array,
    BoxProblem,
    BoxSolution,
    Face,
    Indices,
    Rows,
    cholesky,
    loops,
    min_curvature,
    rounding,
    solve_factored,
    step_within,
)

# -------------------------------------------------------------------------------------------------
# Interior-point method for the program of :mod:`manykernels.smo.box`, where pair steps are slow.
#
# On a kernel of low rank with bounds far away (a large C) the number of pair steps grows with C.
# An interior-point method needs some twenty factorisations of an m×m matrix for any rank and
# bounds.
#
# Each variable has one or two non-negative parts, ``v = o + Σ ±x`` with ``0 ≤ x ≤ w``: its
# distance from a bound or, if e > 0, ``v = x⁺ − x⁻`` with the cost e of each. For the minimum of
#
#     ½ vᵀ(K + diag r) v − c·v + e Σ x    s.t.  Σ v_i = s
#
# with multipliers b of the equality, z of ``x ≥ 0`` and t of ``x ≤ w`` the conditions are
#
#     ±((K + diag r)v − c + b) + e = z − t ,   x∘z = μ ,   (w − x)∘t = μ
#
# as μ → 0. A Newton step on them has ``dx = θ⁻¹(ρ ∓ ((K + diag r)dv + db))`` for each part,
# where ``θ = z/x + t/(w − x)`` and ρ is the residual of the first condition with z and t
# eliminated. With ``1/Θ = Σ 1/θ`` over the parts of a variable, the system that remains is
#
#     (K + diag(r + Θ)) dv + db 1 = Θ Σ ±ρ/θ ,   1·dv = s − Σ v_i
#
# Predictor and corrector are those of Mehrotra (1992), with one factorisation for both; parts are
# eliminated as by Ferris and Munson (2002) for support vector machines.


# Maximum number of Newton steps, three times as many as support vector machines usually need.
_MOST_ITERATIONS = 60
# Fraction of the way to the nearest bound that a step may go (usual values are 0.99 to 0.9995).
_SHARE_OF_WAY = 0.995
# Fraction of a Newton step below which the path ends: rounding errors have spoilt the direction.
_MIN_STEP = 1e-6


def interior_path(K: Array, problem: BoxProblem) -> Iterator[Array]:
    """Yield feasible v, ever closer to the maximum, with variables near a bound exactly there."""
    interior = _Interior(K, problem)
    for _ in range(_MOST_ITERATIONS):
        if interior.advance() < _MIN_STEP:
            return
        yield interior.settled()


@dataclass
class _Parts:
    """Variable, sign and width of each part, and the cost of all parts."""

    n_variables: int
    owner: Indices
    sign: Array
    width: Array
    cost: float

    @classmethod
    def of(cls, problem: BoxProblem) -> tuple[_Parts, Array]:
        """Return the parts of a program that are not fixed by their bounds, and o."""
        m = len(problem.linear)
        rows: Indices = np.arange(m)
        if problem.width > 0.0:
            owner = np.concatenate([rows, rows])
            sign = np.concatenate([np.ones(m), -np.ones(m)])
            width = np.concatenate([problem.upper, -problem.lower])
            origin = np.zeros(m)
        else:
            from_below = np.isfinite(problem.lower)
            owner, sign = rows, np.where(from_below, 1.0, -1.0)
            width = problem.upper - problem.lower
            origin = np.where(from_below, problem.lower, problem.upper)
        moving = width > 0.0
        return cls(m, owner[moving], sign[moving], width[moving], problem.width), origin

    def gathered(self, values: Array) -> Array:
        """Sum over the parts of each variable."""
        return np.asarray(np.bincount(self.owner, values, self.n_variables), dtype=np.float64)


class _Interior:
    """Point strictly between the bounds, with its multipliers."""

    def __init__(self, K: Array, problem: BoxProblem) -> None:
        self.K = K
        self.problem = problem
        self.parts, self.origin = _Parts.of(problem)
        stiffness = float((np.diag(K) + problem.ridge).mean()) or 1.0
        force = float(np.abs(problem.linear).max()) + problem.width
        # Size of v: that of a single variable without the others, or an equal share of the sum.
        size = max(force / stiffness, abs(problem.total) / len(self.origin)) or 1.0
        force = max(force, size * stiffness)
        # The point nearest to v = 0 at a distance of at least `margin` from all bounds.
        width = self.parts.width
        margin = np.minimum(0.5 * width, size)
        self.x = np.clip(np.abs(self.origin[self.parts.owner]), margin, width - margin)
        self.room = width - self.x
        self.bias = 0.0
        self._bounded = np.isfinite(width)
        self.z = np.full(len(self.x), force)
        self.t = np.where(self._bounded, force, 0.0)
        self._shrinkage = [np.ones(len(self.x))] * 4

    @property
    def v(self) -> Array:
        return self.origin + self.parts.gathered(self.parts.sign * self.x)

    def advance(self) -> float:
        """Take a predictor–corrector step; return the fraction allowed by bounds, 0 on failure."""
        parts, problem = self.parts, self.problem
        v = self.v
        slopes = self.K @ v + problem.ridge * v - problem.linear + self.bias
        # ρ without z and t, which a Newton step replaces.
        rest = -(parts.sign * slopes[parts.owner] + parts.cost)
        missing = problem.total - float(v.sum())
        system = _System.of(self.K, problem.ridge, parts, self.z / self.x + self.t / self.room)
        if system is None:
            return 0.0
        dx, _ = system.solve(rest, missing)
        dz, dt = self._multipliers(dx, 0.0, 0.0)
        length = self._length(dx, dz, dt)
        ahead = self._mean_product(length * dx, length * dz, length * dt)
        here = self._mean_product(0.0, 0.0, 0.0)
        target = here * min(max(ahead / here, 0.0), 1.0) ** 3
        low = (target - dx * dz) / self.x
        high = np.where(self._bounded, (target + dx * dt) / self.room, 0.0)
        dx, db = system.solve(rest + low - high, missing)
        dz, dt = self._multipliers(dx, low, high)
        length = self._length(dx, dz, dt)
        before = self.x, self.room, self.z, self.t
        self.x = self.x + length * dx
        # Stored besides x: near a bound that is far from zero, w − x would be rounding error.
        self.room = np.where(self._bounded, self.room - length * dx, np.inf)
        self.z = self.z + length * dz
        self.t = self.t + length * dt
        self.bias += length * db
        with np.errstate(invalid="ignore"):  # parts without an upper bound
            now = (self.x, self.room, self.z, self.t)
            self._shrinkage = [new / old for new, old in zip(now, before, strict=True)]
        return length

    def _multipliers(
        self, dx: Array, low: Array | float, high: Array | float
    ) -> tuple[Array, Array]:
        """Return steps of z and t for a step of x, such that ``z + dz = low − (z/x) dx``."""
        dt = np.where(self._bounded, high - self.t + self.t / self.room * dx, 0.0)
        return low - self.z - self.z / self.x * dx, dt

    def _length(self, dx: Array, dz: Array, dt: Array) -> float:
        """Return the fraction of a step that keeps x, w − x, z and t positive."""
        pairs = ((self.x, dx), (self.room, -dx), (self.z, dz), (self.t, dt))
        return min(1.0, _SHARE_OF_WAY * min(_share(*pair) for pair in pairs))

    def _mean_product(self, dx: Array | float, dz: Array | float, dt: Array | float) -> float:
        """Return the mean of ``x z`` and ``(w − x) t`` after a step."""
        low = (self.x + dx) * (self.z + dz)
        high = (self.room - dx)[self._bounded] * (self.t + dt)[self._bounded]
        return float(low.sum() + high.sum()) / (len(low) + len(high))

    def settled(self) -> Array:
        """Return v with the parts that converge to a bound put there.

        Either the distance to a bound or its multiplier converges to zero: the one that the last
        step has reduced by the larger factor (El-Bakry, Tapia and Zhang 1994).
        """
        x, room, z, t = self._shrinkage
        v_parts = np.where(x < z, 0.0, self.x)
        v_parts = np.where(self._bounded & (room < t), self.parts.width, v_parts)
        v = self.origin + self.parts.gathered(self.parts.sign * v_parts)
        return self.problem.snapped(self.problem.feasible(v))


def _share(values: Array, step: Array) -> float:
    """Return the multiple of a step at which the first value becomes zero."""
    falling = step < 0.0
    return float((-values[falling] / step[falling]).min(initial=np.inf))


class _System:
    """Factorised system of dv and db, of the variables that have parts."""

    def __init__(
        self, factor: Array, moving: Indices, stiffness: Array, parts: _Parts, theta: Array
    ) -> None:
        self._factor, self._moving, self._stiffness = factor, moving, stiffness
        self._parts, self._theta = parts, theta
        self._ones = solve_factored(factor, np.ones(len(moving)))

    @classmethod
    def of(cls, K: Array, ridge: Array, parts: _Parts, theta: Array) -> _System | None:
        """Factorise the system; return None if that is impossible."""
        from .loops import gather

        softness = parts.gathered(1.0 / theta)
        moving = np.flatnonzero(softness)
        matrix = gather(K, moving)
        diagonal = matrix.reshape(-1)[:: len(moving) + 1]
        diagonal += ridge[moving]
        scale, stiffness = float(diagonal.mean()), 1.0 / softness[moving]
        diagonal += stiffness
        factor = cholesky(matrix, scale)
        return None if factor is None else cls(factor, moving, stiffness, parts, theta)

    def solve(self, rest: Array, missing: float) -> tuple[Array, float]:
        """Return dx and db for the residuals ρ and ``s − Σ v_i``."""
        parts, moving, stiffness = self._parts, self._moving, self._stiffness
        pulled = parts.gathered(parts.sign * rest / self._theta)[moving]
        plain = solve_factored(self._factor, stiffness * pulled)
        db = (float(plain.sum()) - missing) / float(self._ones.sum())
        forces = np.zeros(parts.n_variables)
        # (K + diag r)dv + db = Θ(Σ ±ρ/θ − dv): in this form the dx add up to dv exactly.
        forces[moving] = stiffness * (pulled - plain + db * self._ones)
        return (rest - parts.sign * forces[parts.owner]) / self._theta, db


# LIBSVM's tolerance on violations.
DEFAULT_TOL = 1e-3
# Steps between attempts to shrink, as in LIBSVM, and before the first after a warm start, where
# most variables are at the right bound from the beginning.
_SHRINK_EVERY = 1000
_FIRST_SHRINKING = 100
# Shrinking copies a part of K; it pays if at most this fraction of the variables remains.
# Measured, as below, on 84 machines (200 to 1000 samples, C from 0.1 to 100): half takes 12 % more
# time, 0.9 takes 4 % less and copies three times as much.
_WORTH_SHRINKING = 0.7
# Up to so many variables none is left out: steps on all are cheaper than the choice of some.
# Measured on nine cross-validations of 60 to 320 training samples: 5 to 12 % less time.
_SMALL = 350
# After a warm start, steps begin with the variables that violate the optimality conditions or come
# closest to it: this many times the number of violators. On four descents of gates, with a hundred
# machines each, they include 95 to 100 % of the variables that move.
_NEAREST = 1.5
# Variables left out by shrinking are first checked when the violation has fallen to this multiple
# of the tolerance, as in LIBSVM: many have been left out too early.
_ROUGH = 10.0
# Kv is recovered from the slopes c − Kv − r∘v instead of multiplied again, if at most this many
# steps per variable have added their rounding errors, and if Kv is at least this fraction of c: a
# smaller one would be lost in the rounding errors of the difference.
_STEPS_TO_TRUST = 2
_NOT_CANCELLED = 0.1
# Maximum number of pair steps per variable: hundreds of times what most programs need.
_STEPS_PER_SAMPLE = 10_000
#: Largest system of free variables that is factorised: about a second and 128 MB.
MOST_FACTORISED = 4000
# Bounds that one polish may reach before pair steps continue: each costs a new factorisation.
# Measured: half takes 13 % more steps, twice 15 % fewer and 29 % more factorisations.
_POLISHING_ROUNDS = 6
# Where steps are that cheap, the first polish waits until violations are this much smaller: 22 %
# fewer polishes, each of which costs as much as hundreds of steps (four cross-validations). One
# more tenth takes half more steps and saves 4 % of the polishes.
_TIGHTER_WHERE_SMALL = 0.1
# Maximum number of pair steps per variable between two polishes; half or twice takes equal time.
_STEPS_BETWEEN_POLISHES = 30
# A polish is worth its time for at most this many free variables, or if their number cubed is
# below this multiple of steps times variables: factors take less time per operation than steps.
# With zero for the first, warm-started machines take 5 % more steps; half or twice changes them by
# 1 %. A twelfth of the second takes 25 % more time, half 7 % (192 machines of up to 1000 samples).
_FEW_FREE = 100
_POLISH_COST = 60.0
# An interior-point method is tried after this many steps per variable and m²/2 steps more, which
# take about as long as its factorisations, of some m³ operations each.
_STEPS_BEFORE_JUMP = 50
# Stiffness, relative to the largest diagonal entry, above which a variable counts as fixed at its
# bound, and the maximum number of variables that count as nearly free. Half or twice of either
# changes 338 inner solves by 3 at most; twice the second triples the work of factorisations.
_RIGID = 0.1
_MOST_SOFT = 500
# Relative excess of D over its upper bound that proves K indefinite, beyond rounding errors.
_CLEARLY_ABOVE = 1e-3


def solve_box(
    K: Array | Rows,
    problem: BoxProblem,
    *,
    start: Array | None = None,
    tol: float = DEFAULT_TOL,
    max_steps: int | None = None,
) -> BoxSolution:
    """Maximise D until no violation is above `tol`.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric, positive semi-definite, C-ordered.
    problem : BoxProblem
    start : ndarray of shape (m,), optional
        Warm start; replaced by a nearby feasible point if it is not feasible.
    tol : float, default=1e-3
        Largest violation, as in LIBSVM.
    max_steps : int, optional
        Limit on pair steps.
    """
    ascent = Ascent(K, problem, start)
    ascent.run(tol, max_steps)
    return ascent.solution()


class Ascent:
    """Pair steps on one program, which can be continued to another tolerance.

    Parameters are those of :func:`solve_box`. ``v`` is always feasible, ``f = Kv``.
    """

    def __init__(self, K: Array | Rows, problem: BoxProblem, start: Array | None = None) -> None:
        self.K = Rows.of(K)
        self.problem = problem
        self.v = problem.feasible(np.zeros(len(problem.linear)) if start is None else start)
        self.f = self.K.product(self.v)
        self._diagonal = self.K.diagonal + problem.ridge
        self._min_curvature = min_curvature(self._diagonal)
        self.n_steps = 0
        self.violation = np.inf
        self._warm = start is not None
        if not self._warm:
            self.K.whole()  # all rows may be needed
        self._shrink_after = _FIRST_SHRINKING if self._warm else _SHRINK_EVERY
        self._face: tuple[Indices, Face | None] | None = None

    def run(self, tol: float, max_steps: int | None = None) -> None:
        """Step until no violation is above `tol`."""
        left = _STEPS_PER_SAMPLE * len(self.v) if max_steps is None else max_steps
        active, v = self._all_active(), self.v.copy()
        if self._warm:
            active = active.nearest(self.problem.bias(v, active.up, active.down))
            self._warm = False
        rough, arrived = True, False
        while left > 0:
            goal = _ROUGH * tol if rough and active.is_part_of(v) else tol
            n_steps = min(left, self._shrink_after, 2 * len(active.v))
            self._shrink_after = min(2 * self._shrink_after, _SHRINK_EVERY)
            taken, self.violation = active.ascend(
                self.problem.width, self._min_curvature, goal, n_steps
            )
            v[active.rows] = active.v
            arrived = arrived and not taken
            left -= taken
            self.n_steps += taken
            if self.violation > goal and left > 0:
                active = active.shrunk()
            elif active.is_part_of(v):
                rough, arrived = False, True
                self._arrive(v, active)
                active, v = self._all_active(), self.v.copy()
                if active.violation > tol:
                    active = active.shrunk()
            else:
                break
        if not arrived:
            self._arrive(v, active)

    def _all_active(self) -> _ActiveSet:
        problem = self.problem
        up, down = problem.slopes(self.v, self.f)
        rows = np.arange(len(self.v))
        bounds = problem.lower, problem.upper
        return _ActiveSet(self.K, rows, self._diagonal, *bounds, self.v.copy(), up, down)

    def _arrive(self, v: Array, active: _ActiveSet) -> None:
        """Set v to the result of steps, made feasible, and update f."""
        problem = self.problem
        self.v = problem.snapped(problem.feasible(v))
        few_steps = active.n_steps <= _STEPS_TO_TRUST * len(v)
        if few_steps and self.v is v and not active.is_part_of(v):
            self.f = problem.linear - active.slopes(problem.width) - problem.ridge * v
            if np.abs(self.f).max() >= _NOT_CANCELLED * np.abs(problem.linear).max():
                return
        self.f = self.K.product(self.v)

    def run_to_gap(self, rel_gap: float) -> None:
        """Step, and solve for the free variables, until the gap is within ``rel_gap · abs(D)``."""
        m = len(self.v)
        scale = max(float(np.abs(self.problem.linear).max()), float(np.abs(self.f).max()))
        tol = DEFAULT_TOL * (scale or 1.0)
        if m <= _SMALL:
            tol *= _TIGHTER_WHERE_SMALL
        least = ACCUMULATED * tol
        may_jump = m <= MOST_FACTORISED
        most = _STEPS_BEFORE_JUMP * m + m**2 // 2 if may_jump else _STEPS_PER_SAMPLE * m // 2
        while tol > least and self.n_steps < 2 * most:
            end = most if self.n_steps < most else 2 * most  # the jump comes after `most` steps
            self.run(tol, min(_STEPS_BETWEEN_POLISHES * m, end - self.n_steps))
            if self._polish_is_cheap():
                self.polish()
            if self._within(rel_gap):
                return
            if self.n_steps == most and may_jump:
                self.jump(rel_gap)
                if self._within(rel_gap):
                    return
            if self.violation <= tol:
                tol *= 0.1

    def jump(self, rel_gap: float) -> None:
        """Move to the best point on the path of an interior-point method, if that is better.

        Long before its end the path shows which variables are at their bounds; a polish then
        solves for the others exactly.
        """
        best = self.gap, self.v, self.f
        for v in interior_path(self.K.whole(), self.problem):
            self.v, self.f = v, self.K.product(v)
            self.polish()
            best = min(best, (self.gap, self.v, self.f), key=lambda point: point[0])
            if best[0] <= rel_gap * abs(self.problem.value(*best[1:])):
                # Stop at the tolerance only, not at rounding errors: the next point may be better.
                break
        _, self.v, self.f = best

    def _polish_is_cheap(self) -> bool:
        """Return True if a polish takes no longer than the steps so far."""
        n_free = int(self.problem.free(self.v).sum())
        return n_free <= _FEW_FREE or n_free**3 <= _POLISH_COST * self.n_steps * len(self.v)

    def _within(self, rel_gap: float) -> bool:
        dual = self.problem.value(self.v, self.f)
        ceiling, error = self.problem.ceiling, rounding(self.v, float(self._diagonal.max()))
        wrong = ""
        if not dual <= ceiling * (1.0 + _CLEARLY_ABOVE):
            wrong = f"The dual objective {dual:.3g} is above {ceiling:.3g}"
        elif not np.isfinite(error):
            wrong = f"The dual variables have grown to {np.abs(self.v).max():.1g}"
        if wrong:
            raise ValueError(
                f"{wrong}, which no positive semi-definite kernel allows: the combined kernel has "
                "negative eigenvalues, possibly by rounding. Build the stack with "
                'KernelStack.from_arrays(..., psd="clip"), or lower C.'
            )
        enough = max(rel_gap * abs(dual), error)
        return self.problem.bound(self.v, self.f, enough) - dual <= enough

    def polish(self) -> bool:
        """Maximise D over the free variables within their bounds; return False on failure.

        On the face of the free variables D is a quadratic, whose maximum solves a linear system. A
        step that leaves the box ends at the first bound, and the next one moves the variables that
        are still free.
        """
        problem = self.problem
        for _ in range(_POLISHING_ROUNDS):
            free, face = self.face()
            if face is None:
                return False
            start = self.v[free]
            slopes = problem.linear[free] - self.f[free] - problem.ridge[free] * start
            slopes -= problem.width * np.sign(start)
            slopes -= slopes.sum() / len(slopes)  # the multiplier of the equality
            lower, upper = problem.lower[free], problem.upper[free]
            if problem.width > 0.0:
                lower = np.where(start > 0.0, 0.0, lower)
                upper = np.where(start < 0.0, 0.0, upper)
            v = self.v.copy()
            v[free], length = step_within(start, face.solve(slopes[:, None])[:, 0], lower, upper)
            v = problem.snapped(problem.feasible(v))
            change = v - self.v
            product = self.K.product(change)
            curvature = change @ product + problem.ridge @ change**2
            if not slopes @ change[free] >= 0.5 * curvature:
                # D would fall: the system is so ill-conditioned that its solution is useless.
                return False
            self.v, self.f = v, self.f + product
            if length == 1.0:
                return True
        return True

    def face(self) -> tuple[Indices, Face | None]:
        """Return the free variables, and their factorised system if there is one."""
        free = np.flatnonzero(self.problem.free(self.v))
        if self._face is None or not np.array_equal(free, self._face[0]):
            sizable = 2 <= len(free) <= MOST_FACTORISED
            self._face = (
                free,
                Face.of(self.K.need(free), self.problem.ridge, free) if sizable else None,
            )
        return self._face

    def soft_face(self, barrier: float) -> tuple[Indices, Face | None]:
        """Return :meth:`face` with the variables at a bound with a small multiplier.

        A logarithmic barrier μ on the bounds gives a variable of multiplier λ the stiffness λ²/μ.
        `barrier` is divided among the variables in proportion to their ranges, so that a sample of
        weight two is as soft as two equal samples.
        """
        problem = self.problem
        up, down = problem.slopes(self.v, self.f)
        b = problem.bias(self.v, up, down)
        force = np.minimum(np.maximum(b - up, 0.0), np.maximum(down - b, 0.0))
        force[problem.free(self.v)] = 0.0
        ranges = problem.upper - problem.lower
        ranges = np.where(np.isfinite(ranges), ranges, 1.0 / np.maximum(problem.ridge, TINY))
        with np.errstate(over="ignore"):
            stiffness = force * (force / barrier)
        soft = softest(stiffness, float(self._diagonal.max()))
        if soft is None:
            return self.face()
        stiffness[soft] *= ranges.sum() / ranges[soft]
        return soft, Face.of(self.K.need(soft), problem.ridge + stiffness, soft)

    @property
    def gap(self) -> float:
        """Duality gap ``P − D`` at v."""
        return self.problem.bound(self.v, self.f) - self.problem.value(self.v, self.f)

    def solution(self) -> BoxSolution:
        """Return v with its machine and bounds."""
        return self.problem.solution(self.v, self.f, self.n_steps)


def softest(stiffness: Array, largest: float) -> Indices | None:
    """Return the variables that count as nearly free; None if they cannot be factorised.

    `largest` is the largest diagonal entry of their system.
    """
    soft = np.flatnonzero(stiffness < _RIGID * largest)
    most = max(_MOST_SOFT, int((stiffness == 0.0).sum()))
    if len(soft) > most:
        # Far from the maximum all are soft; the softest suffice for a good model.
        soft = np.sort(soft[np.argsort(stiffness[soft], kind="stable")[:most]])
    return soft if 2 <= len(soft) <= MOST_FACTORISED else None


@dataclass
class _ActiveSet:
    """Variables that steps may choose, with their part of the program."""

    K: Rows
    rows: Indices
    diagonal: Array
    lower: Array
    upper: Array
    v: Array
    up: Array
    down: Array
    n_steps: int = field(default=0, init=False)

    def is_part_of(self, v: Array) -> bool:
        """Return True if some variables have been left out."""
        return len(self.rows) < len(v)

    @property
    def _is_small(self) -> bool:
        """Whether steps on all variables are cheaper than the choice of some."""
        return len(self.rows) <= _SMALL

    @property
    def violation(self) -> float:
        """Return the largest up minus the smallest down."""
        return float(self.up.max() - self.down.min())

    def ascend(
        self, width: float, min_curvature: float, tol: float, n_steps: int
    ) -> tuple[int, float]:
        """Step until the violation is within `tol`; return the number of steps and it."""
        ascend = loops().ascend
        matrices = self.K.values, self.K.ready, self.diagonal, self.lower, self.upper
        state = self.v, self.up, self.down
        taken = 0
        while True:
            left = n_steps - taken
            more, violation, missing = ascend(*matrices, width, min_curvature, *state, tol, left)
            taken += more
            if missing < 0:
                break
            self.K.need(np.array([missing]))
        self.n_steps += taken
        return taken, violation

    def slopes(self, width: float) -> Array:
        """Return ``c − Kv − r∘v``, from which up and down differ by slopes of ``width |v|``."""
        from_up = self.up + np.where(self.v >= 0.0, width, -width)
        from_down = self.down + np.where(self.v > 0.0, width, -width)
        return np.where(self.v < self.upper, from_up, from_down)

    def shrunk(self) -> _ActiveSet:
        """Return the set without the variables that cannot be chosen, if they are many."""
        if self._is_small:
            return self
        kept = (self.up >= self.down.min()) | (self.down <= self.up.max())
        return self._subset(np.flatnonzero(kept))

    def nearest(self, bias: float) -> _ActiveSet:
        """Return the variables that violate ``up ≤ bias ≤ down``, and others that nearly do."""
        if self._is_small:
            return self
        excess = np.maximum(self.up - bias, bias - self.down)
        violators = np.flatnonzero(excess >= 0.0)
        n_kept = int(_NEAREST * len(violators))
        if not 2 <= n_kept < len(excess):
            return self
        self.K.need(violators)
        return self._subset(np.sort(np.argpartition(-excess, n_kept)[:n_kept]))

    def _subset(self, kept: Indices) -> _ActiveSet:
        """Return the set of some variables, if that is worth a copy of their part of K."""
        if len(kept) > _WORTH_SHRINKING * len(self.rows):
            return self
        vectors = self.diagonal, self.lower, self.upper, self.v, self.up, self.down
        parts = (vector[kept] for vector in vectors)
        return _ActiveSet(self.K.part(kept), self.rows[kept], *parts)
