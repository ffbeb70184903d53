"""Interior-point method for the program of :mod:`manykernels.smo.box`, where pair steps are slow.

On a kernel of low rank with bounds far away (a large C) the number of pair steps grows with C. An
interior-point method needs some twenty factorisations of an m×m matrix, whatever the rank and the
bounds.

Each variable has one or two non-negative parts, ``v = o + Σ ±x`` with ``0 ≤ x ≤ w``: its distance
from a bound or, if e > 0, ``v = x⁺ − x⁻`` with the cost e of each. For the minimum of

    ½ vᵀ(K + diag r) v − c·v + e Σ x    s.t.  Σ v_i = s

with multipliers b of the equality, z of ``x ≥ 0`` and t of ``x ≤ w`` the conditions are

    ±((K + diag r)v − c + b) + e = z − t ,   x∘z = μ ,   (w − x)∘t = μ

as μ → 0. A Newton step on them has ``dx = θ⁻¹(ρ ∓ ((K + diag r)dv + db))`` for each part, where
``θ = z/x + t/(w − x)`` and ρ is the residual of the first condition with z and t eliminated. With
``1/Θ = Σ 1/θ`` over the parts of a variable, the system that remains is

    (K + diag(r + Θ)) dv + db 1 = Θ Σ ±ρ/θ ,   1·dv = s − Σ v_i

Predictor and corrector are those of Mehrotra (1992), with one factorisation for both; parts are
eliminated as by Ferris and Munson (2002) for support vector machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .face import Array, Indices, cholesky, solve_factored
from .program import BoxProblem

# Limit on Newton steps, three times what support vector machines usually need.
_MOST_ITERATIONS = 60
# Share of the way to the nearest bound that a step may go (usual values are 0.99 to 0.9995).
_SHARE_OF_WAY = 0.995
# Share of a Newton step below which the path ends: rounding error has spoilt the direction.
_MIN_STEP = 1e-6


def interior_path(K: Array, problem: BoxProblem) -> Iterator[Array]:
    """Feasible v, ever closer to the maximum, with variables near a bound put exactly there."""
    interior = _Interior(K, problem)
    for _ in range(_MOST_ITERATIONS):
        if interior.advance() < _MIN_STEP:
            return
        yield interior.settled()


@dataclass
class _Parts:
    """The variable that each part belongs to, its sign and width, and the cost of all parts."""

    n_variables: int
    owner: Indices
    sign: Array
    width: Array
    cost: float

    @classmethod
    def of(cls, problem: BoxProblem) -> tuple[_Parts, Array]:
        """The parts of a program that are not fixed by their bounds, and o."""
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
        """Sums over the parts of each variable."""
        return np.asarray(np.bincount(self.owner, values, self.n_variables), dtype=np.float64)


class _Interior:
    """A point strictly between the bounds, with its multipliers."""

    def __init__(self, K: Array, problem: BoxProblem) -> None:
        self.K = K
        self.problem = problem
        self.parts, self.origin = _Parts.of(problem)
        stiffness = float((np.diag(K) + problem.ridge).mean()) or 1.0
        force = float(np.abs(problem.linear).max()) + problem.width
        # Size of v: that of a single variable without the others, or an equal share of the sum.
        size = max(force / stiffness, abs(problem.total) / len(self.origin)) or 1.0
        force = max(force, size * stiffness)
        # The point nearest to v = 0 that is at least `margin` away from all bounds.
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
        """One predictor–corrector step; the share of it that bounds allowed, 0 if it failed."""
        parts, problem = self.parts, self.problem
        v = self.v
        slopes = self.K @ v + problem.ridge * v - problem.linear + self.bias
        # ρ, without z and t: a Newton step replaces them.
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
        # Kept besides x: next to a bound that is far from zero, w − x would be rounding error.
        self.room = np.where(self._bounded, self.room - length * dx, np.inf)
        self.z = self.z + length * dz
        self.t = self.t + length * dt
        self.bias += length * db
        with np.errstate(invalid="ignore"):  # of parts without an upper bound
            now = (self.x, self.room, self.z, self.t)
            self._shrinkage = [new / old for new, old in zip(now, before, strict=True)]
        return length

    def _multipliers(
        self, dx: Array, low: Array | float, high: Array | float
    ) -> tuple[Array, Array]:
        """Steps of z and t for a step of x, such that ``z + dz = low − (z/x) dx``."""
        dt = np.where(self._bounded, high - self.t + self.t / self.room * dx, 0.0)
        return low - self.z - self.z / self.x * dx, dt

    def _length(self, dx: Array, dz: Array, dt: Array) -> float:
        """The share of a step that keeps x, w − x, z and t positive."""
        pairs = ((self.x, dx), (self.room, -dx), (self.z, dz), (self.t, dt))
        return min(1.0, _SHARE_OF_WAY * min(_share(*pair) for pair in pairs))

    def _mean_product(self, dx: Array | float, dz: Array | float, dt: Array | float) -> float:
        """Mean of ``x z`` and ``(w − x) t`` after a step."""
        low = (self.x + dx) * (self.z + dz)
        high = (self.room - dx)[self._bounded] * (self.t + dt)[self._bounded]
        return float(low.sum() + high.sum()) / (len(low) + len(high))

    def settled(self) -> Array:
        """v with the parts that converge to a bound put there.

        Of the distance to a bound and its multiplier one converges to zero: the one that the last
        step has reduced by the larger factor (El-Bakry, Tapia and Zhang 1994).
        """
        x, room, z, t = self._shrinkage
        v_parts = np.where(x < z, 0.0, self.x)
        v_parts = np.where(self._bounded & (room < t), self.parts.width, v_parts)
        v = self.origin + self.parts.gathered(self.parts.sign * v_parts)
        return self.problem.snapped(self.problem.feasible(v))


def _share(values: Array, step: Array) -> float:
    """The multiple of a step at which the first of the values becomes zero."""
    falling = step < 0.0
    return float((-values[falling] / step[falling]).min(initial=np.inf))


class _System:
    """The system of dv and db, factorised, of the variables that have parts."""

    def __init__(
        self, factor: Array, moving: Indices, stiffness: Array, parts: _Parts, theta: Array
    ) -> None:
        self._factor, self._moving, self._stiffness = factor, moving, stiffness
        self._parts, self._theta = parts, theta
        self._ones = solve_factored(factor, np.ones(len(moving)))

    @classmethod
    def of(cls, K: Array, ridge: Array, parts: _Parts, theta: Array) -> _System | None:
        """None if the matrix cannot be factorised."""
        from ._loops import gather

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
        """dx and db for the residuals ρ and ``s − Σ v_i``."""
        parts, moving, stiffness = self._parts, self._moving, self._stiffness
        pulled = parts.gathered(parts.sign * rest / self._theta)[moving]
        plain = solve_factored(self._factor, stiffness * pulled)
        db = (float(plain.sum()) - missing) / float(self._ones.sum())
        forces = np.zeros(parts.n_variables)
        # (K + diag r)dv + db = Θ(Σ ±ρ/θ − dv): in this form the dx add up to dv exactly.
        forces[moving] = stiffness * (pulled - plain + db * self._ones)
        return (rest - parts.sign * forces[parts.owner]) / self._theta, db
