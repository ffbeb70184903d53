"""Concave quadratic programs with bounds and one equality: every support vector machine.

In signed dual variables v (``y∘α`` for two classes, ``α⁺ − α⁻`` for regression, α for one class)

    max_v  D(v) = c·v − e Σ|v_i| − ½ vᵀ(K + diag r) v
    s.t.   l ≤ v ≤ u,   Σ v_i = s

    machine           c   e   r     l, u                    s
    hinge             y   0   0     between 0 and C y       0
    squared hinge     y   0   1/C   between 0 and ∞ y       0
    ε-insensitive     t   ε   0     −C, C                   0
    one-class         0   0   0     0, 1                    ν m

Moving v_i up by t and v_j down by t keeps the equality. With ``G = c − Kv − r∘v`` the objective
rises at first with ``t (up_i − down_j)``, where up and down are G less e times the slope of |v| to
the right and to the left of v, and −∞ or +∞ where a bound stops it. At the solution no up is above
any down. Each step takes the largest up and the partner of the largest gain to second order
(Fan, Chen and Lin 2005), and goes to the best t, or the first bound, or the kink of |v| at zero.

A variable that is stopped on both sides, ``up_i < min down`` and ``down_i > max up``, cannot be
chosen for now. Where these are many, the rest goes on in a smaller matrix of its own (shrinking);
what was left out is looked at again before the end.

The bias b is the multiplier of the equality. With ``f = Kv₀``, ``½vᵀKv ≥ v·f − ½v₀·f``, so that

    max D ≤ P(v₀, b) = ½ v₀·f + b s + Σ_i max_{l ≤ v ≤ u} {(c_i − f_i − b) v − e|v| − ½ r_i v²}

which is the primal objective of the machine v₀ with bias b; ``P − D`` at the best b is the true
duality gap, whatever the way v₀ was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .face import Array, Face, Indices
from .interior_point import interior_path
from .program import BoxProblem, BoxSolution, rounding

# LIBSVM's tolerance on violations, and when it looks for variables to leave out.
DEFAULT_TOL = 1e-3
_LOOK_EVERY = 1000
_FIRST_LOOK = 100
_WORTH_SHRINKING = 0.7
_ROUGH = 10.0
_STEPS_TO_TRUST = 2
_NOT_CANCELLED = 0.1
_STEPS_PER_SAMPLE = 10_000
_LEAST_STEPS_PER_SAMPLE = 50
_LEAST_CURVATURE = 1e-12
_LEAST_TOL = 1e-12
_MOST_POLISHED = 4000
_POLISHING_ROUNDS = 6
_STEPS_BETWEEN_POLISHES = 30
_RIGID = 0.1
_MOST_SOFT = 500
_SMALL = 100
_POLISH_COST = 5.0
_TINY = 1e-300
_CERTAINLY = 1e-3


def solve_box(
    K: Array,
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
        Where to start; it is made feasible if it is not.
    tol : float, default=1e-3
        Of the slopes, as in LIBSVM.
    max_steps : int, optional
        Most pair steps.
    """
    ascent = Ascent(K, problem, start)
    ascent.run(tol, max_steps)
    return ascent.solution()


class Ascent:
    """Pair steps on one program, to be continued as often as it takes."""

    def __init__(self, K: Array, problem: BoxProblem, start: Array | None = None) -> None:
        self.K = K
        self.problem = problem
        self.v = problem.feasible(np.zeros(len(K)) if start is None else start)
        self.f = self._product(self.v)
        self._diagonal = np.diag(K) + problem.ridge
        largest = float(self._diagonal.max(initial=0.0))
        self._least_curvature = max(_LEAST_CURVATURE * largest, np.finfo(float).tiny)
        self.n_steps = 0
        self.violation = np.inf
        # From a start that is nearly right most variables can be left out soon.
        self._look = _LOOK_EVERY if start is None else _FIRST_LOOK
        self._face: tuple[Indices, Face | None] | None = None

    def run(self, tol: float, max_steps: int | None = None) -> None:
        """Step until no violation is above `tol`."""
        from ._loops import ascend

        left = _STEPS_PER_SAMPLE * len(self.v) if max_steps is None else max_steps
        part = _Part.whole(self)
        # Variables are left out for good reasons only near the end; look there twice.
        rough = True
        while left > 0:
            goal = tol if part.is_whole or not rough else _ROUGH * tol
            n_steps = min(left, self._look, 2 * len(part.v))
            self._look = min(2 * self._look, _LOOK_EVERY)
            taken, self.violation = ascend(*part.arguments(goal, n_steps))
            left -= taken
            self.n_steps += taken
            part.n_steps += taken
            if self.violation > goal and left > 0:
                part = part.shrunk()
            elif part.is_whole:
                break
            else:
                rough = False
                self._write_back(part)
                part = _Part.whole(self)
        self._write_back(part)

    def run_to_gap(self, rel_gap: float) -> None:
        """Step, and solve for the free variables, until the gap is within ``rel_gap · |D|``."""
        problem = self.problem
        scale = max(float(np.abs(problem.linear).max()), float(np.abs(self.f).max()))
        tol = DEFAULT_TOL * (scale or 1.0)
        least = _LEAST_TOL * tol
        most = self._steps_worth_a_jump()
        while tol > least and self.n_steps < 2 * most:
            # Where many steps do not do, solving for the free variables may.
            end = most if self.n_steps < most else 2 * most
            self.run(tol, min(_STEPS_BETWEEN_POLISHES * len(self.v), end - self.n_steps))
            if self._polish_is_cheap():
                self.polish()
            if self._within(rel_gap):
                return
            if self.n_steps == most and len(self.v) <= _MOST_POLISHED:
                self.jump(rel_gap)
                if self._within(rel_gap):
                    return
            if self.violation <= tol:
                tol *= 0.1

    def _steps_worth_a_jump(self) -> int:
        """Pair steps that take as long as an interior-point method: some m³ against m each."""
        m = len(self.v)
        if m > _MOST_POLISHED:
            return _STEPS_PER_SAMPLE * m // 2
        return _LEAST_STEPS_PER_SAMPLE * m + m**2 // 2

    def jump(self, rel_gap: float) -> None:
        """Go to the best point on the way of an interior-point method, if that is better.

        The method knows which variables are at their bounds before it has the others exactly;
        these are one linear system away.
        """
        best = self.gap, self.v, self.f
        for v in interior_path(self.K, self.problem):
            self.v, self.f = v, self._product(v)
            self.polish()
            best = min(best, (self.gap, self.v, self.f), key=lambda found: found[0])
            if best[0] <= rel_gap * abs(self.problem.value(*best[1:])):
                # A gap that is rounding does not end it: the next point may do better.
                break
        _, self.v, self.f = best

    def _polish_is_cheap(self) -> bool:
        """Whether it takes no longer than the steps so far."""
        n_free = int(self.problem.free(self.v).sum())
        return n_free <= _SMALL or n_free**3 <= _POLISH_COST * self.n_steps * len(self.v)

    def _within(self, rel_gap: float) -> bool:
        dual = self.problem.value(self.v, self.f)
        if not dual <= self.problem.ceiling * (1.0 + _CERTAINLY):
            raise ValueError(
                f"The dual objective {dual:.3g} is above {self.problem.ceiling:.3g}, which no "
                "positive semi-definite kernel allows: the combined kernel has negative "
                "eigenvalues, of its own or by rounding. Build the stack with "
                'KernelStack.from_arrays(..., psd="clip"), or lower C.'
            )
        nothing = rounding(self.v, float(self._diagonal.max()))
        return self.problem.bound(self.v, self.f) - dual <= max(rel_gap * abs(dual), nothing)

    def _write_back(self, part: _Part) -> None:
        v = part.all_variables()
        self.v = self.problem.snapped(self.problem.feasible(v))
        linear = self.problem.linear
        if part.is_whole and part.n_steps <= _STEPS_TO_TRUST * len(v) and self.v is v:
            self.f = linear - part.slopes() - self.problem.ridge * v
            if np.abs(self.f).max() >= _NOT_CANCELLED * np.abs(linear).max():
                return
        # Afresh, without the rounding of where it all began.
        self.f = self._product(self.v)

    def _product(self, v: Array) -> Array:
        from ._loops import add_product

        f = np.zeros(len(v))
        add_product(self.K, v, f)
        return f

    def polish(self) -> bool:
        """Solve for the free variables at once, as long as that moves them; False if it cannot.

        On the face of the free variables D is a quadratic, and its maximum one linear system
        away. A step that leaves the box ends at the first bound, and the rest is tried again.
        """
        for _ in range(_POLISHING_ROUNDS):
            free, face = self.face()
            if face is None:
                return False
            slopes = self._face_slopes(free)
            step = face.solve(slopes[:, None])[:, 0]
            length, stopped = self._longest(free, step)
            v = self.v.copy()
            v[free] += length * step
            if stopped is not None:
                v[free[stopped]] = self._stop(free[stopped], step[stopped])
            v = self.problem.snapped(self.problem.feasible(v))
            change = v - self.v
            product = self._product(change)
            bend = change @ product + self.problem.ridge @ change**2
            if not slopes @ change[free] >= 0.5 * bend:
                # The system is so nearly singular that its solution is rounding.
                return False
            self.v, self.f = v, self.f + product
            if stopped is None:
                return True
        return True

    def face(self) -> tuple[Indices, Face | None]:
        """The free variables and the factorised system of them, if there is any."""
        free = np.flatnonzero(self.problem.free(self.v))
        if self._face is None or not np.array_equal(free, self._face[0]):
            sizable = 2 <= len(free) <= _MOST_POLISHED
            self._face = free, Face.of(self.K, self.problem.ridge, free) if sizable else None
        return self._face

    def soft_face(self, barrier: float) -> tuple[Indices, Face | None]:
        """As :meth:`face`, with variables that little force holds at their bounds.

        See :meth:`manykernels.losses.box.BoxEvaluation.model_hessian`. `barrier` is shared among
        the variables by the range they have, so that one that stands for two is as soft as both.
        """
        problem = self.problem
        up, down = problem.slopes(self.v, self.f)
        b = problem.bias(self.v, up, down)
        force = np.minimum(np.maximum(b - up, 0.0), np.maximum(down - b, 0.0))
        force[problem.free(self.v)] = 0.0
        ranges = problem.upper - problem.lower
        ranges = np.where(np.isfinite(ranges), ranges, 1.0 / np.maximum(problem.ridge, _TINY))
        with np.errstate(over="ignore"):
            stiffness = force * (force / barrier)
        nearly = np.flatnonzero(stiffness < _RIGID * self._diagonal.max())
        most = max(_MOST_SOFT, int((force == 0.0).sum()))
        if len(nearly) > most:
            # Far from the solution all are; a model of the softest is good enough there.
            nearly = np.sort(nearly[np.argsort(stiffness[nearly], kind="stable")[:most]])
        if not 2 <= len(nearly) <= _MOST_POLISHED:
            return self.face()
        stiffness[nearly] *= ranges.sum() / ranges[nearly]
        return nearly, Face.of(self.K, problem.ridge + stiffness, nearly)

    def _face_slopes(self, free: Indices) -> Array:
        """Slopes of D on the face, less their mean, which the equality takes up."""
        v = self.v[free]
        slopes = self.problem.linear[free] - self.f[free] - self.problem.ridge[free] * v
        slopes -= self.problem.width * np.sign(v)
        slopes -= slopes.mean()
        return slopes

    def _longest(self, free: Indices, step: Array) -> tuple[float, int | None]:
        """How much of the step fits into the box, and which variable stops it."""
        v = self.v[free]
        kink = self.problem.width > 0.0
        high = np.where(kink & (v < 0.0), 0.0, self.problem.upper[free])
        low = np.where(kink & (v > 0.0), 0.0, self.problem.lower[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(step > 0, (high - v) / step, (low - v) / step)
        lengths = np.where(step == 0.0, np.inf, lengths)
        first = int(lengths.argmin())
        return (1.0, None) if lengths[first] >= 1.0 else (float(lengths[first]), first)

    def _stop(self, i: int, direction: float) -> float:
        """The bound or kink on the way of variable i."""
        v = self.v[i]
        if self.problem.width > 0.0 and v * direction < 0.0:
            return 0.0
        return float(self.problem.upper[i] if direction > 0 else self.problem.lower[i])

    @property
    def gap(self) -> float:
        """``P − D`` here."""
        return self.problem.bound(self.v, self.f) - self.problem.value(self.v, self.f)

    def solution(self) -> BoxSolution:
        """Where the ascent is now."""
        return self.problem.solution(self.v, self.f, self.n_steps)


@dataclass
class _Part:
    """The variables in play, with their own copy of what the loop needs.

    `everywhere` holds all variables, those in play as they were when they came into it.
    """

    ascent: Ascent
    everywhere: Array
    rows: Indices
    K: Array
    v: Array
    up: Array
    down: Array
    n_steps: int = 0

    @classmethod
    def whole(cls, ascent: Ascent) -> _Part:
        up, down = ascent.problem.slopes(ascent.v, ascent.f)
        v = ascent.v
        return cls(ascent, v, np.arange(len(v)), ascent.K, v.copy(), up, down)

    def all_variables(self) -> Array:
        v = self.everywhere.copy()
        v[self.rows] = self.v
        return v

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == len(self.ascent.v)

    def arguments(self, tol: float, n_steps: int) -> tuple[Any, ...]:
        """What the loop wants."""
        problem, rows = self.ascent.problem, self.rows
        return (
            self.K,
            self.ascent._diagonal[rows],
            problem.lower[rows],
            problem.upper[rows],
            problem.width,
            self.ascent._least_curvature,
            self.v,
            self.up,
            self.down,
            tol,
            n_steps,
        )

    def slopes(self) -> Array:
        """``c − Kv − r∘v`` of the variables in play, as the steps have kept it."""
        from ._loops import plain_slopes

        return np.asarray(plain_slopes(self.up, self.down, self.v, self.ascent.problem.width))

    def shrunk(self) -> _Part:
        """Without the variables that are stopped on both sides, if they are many."""
        from ._loops import gather

        stopped = (self.up < self.down.min()) & (self.down > self.up.max())
        kept = np.flatnonzero(~stopped)
        if len(kept) > _WORTH_SHRINKING * len(self.rows):
            return self
        return _Part(
            self.ascent,
            self.all_variables(),
            self.rows[kept],
            gather(self.K, kept),
            self.v[kept],
            self.up[kept],
            self.down[kept],
        )
