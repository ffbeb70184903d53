"""The alternating loop: train the machine, step on the gate, until J stops changing.

A step goes along the gradient (Gönen & Alpaydın 2013, algorithm 1), or along the quasi-Newton
direction of the last steps (L-BFGS; Nocedal 1980), with Armijo's rule on J: every trial trains
the machine, warm-started, so that J is its true value there and every accepted step lowers it.

J has many local minima. `restarted` descends from several random starts and keeps the lowest.
Nothing is said about the global minimum: what is certified is how flat J is where it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .gates import Array, Rng
from .objective import GatedObjective, GatedPoint

_ARMIJO = 1e-4
_MAX_TRIALS = 25
_MEMORY = 10
_GROWTH = 2.0
_FLAT_STEPS = 2
_MAX_DEAD_STARTS = 3


@dataclass(frozen=True)
class StationarityCertificate:
    """How stationary a local minimum is; it does not pretend to be a global one.

    Attributes
    ----------
    objective : float
        J.
    gradient_norm : float
        ``‖∂J/∂θ‖ / |J|``.
    inner_gap : float
        Duality gap of the machine, as a part of |J|.
    change : float
        Last relative change of J.
    tol : float
        The change at which to stop.
    """

    objective: float
    gradient_norm: float
    inner_gap: float
    change: float
    tol: float
    kind: str = "stationarity"

    @property
    def residual(self) -> float:
        """Gradient norm plus inner gap."""
        return self.gradient_norm + self.inner_gap

    @property
    def converged(self) -> bool:
        """Whether J had stopped changing."""
        return self.change <= self.tol


@dataclass
class Descent:
    """Where a descent ended, and how it got there.

    Attributes
    ----------
    point : GatedPoint
    history : list of float
        J after every accepted step, the start first; it never rises.
    change : float
        Last relative change.
    status : str
        What is to be said of the end, or empty.
    """

    point: GatedPoint
    history: list[float]
    change: float = np.inf
    status: str = ""

    def certificate(self, tol: float) -> StationarityCertificate:
        size = abs(self.point.value) or 1.0
        return StationarityCertificate(
            objective=self.point.value,
            gradient_norm=float(np.linalg.norm(self.point.gradient)) / size,
            inner_gap=self.point.trained.slack / size,
            change=self.change,
            tol=tol,
        )


@dataclass
class Options:
    """Of a descent.

    Parameters
    ----------
    tol : float
        Relative change of J at which to stop, seen twice in a row.
    max_iter : int
        Most steps.
    quasi_newton : bool
        L-BFGS directions instead of the gradient.
    observer : callable
        Called with the number of the step and J; a true answer ends the descent.
    """

    tol: float = 1e-2
    max_iter: int = 200
    quasi_newton: bool = False
    observer: Callable[[int, float], bool | None] | None = field(default=None, repr=False)

    def stops(self, step: int, value: float) -> bool:
        return bool(self.observer is not None and self.observer(step, value))


def descend(objective: GatedObjective, start: Array, options: Options) -> Descent:
    """Lower J from `start`; an interruption (Ctrl-C) ends it with what has been reached."""
    point = objective.evaluate(start)
    descent = Descent(point, [point.value])
    directions = _Directions(_MEMORY if options.quasi_newton else 0)
    n_flat = 0
    try:
        for step in range(options.max_iter):
            if options.stops(step, point.value):
                descent.status = "stopped by an observer"
                break
            following = _armijo(objective, point, directions)
            if following is None:
                # Nowhere to go but within the rounding of J.
                descent.change = 0.0
                break
            directions.learn(following.theta - point.theta, following.gradient - point.gradient)
            descent.change = (point.value - following.value) / (abs(following.value) or 1.0)
            descent.point = point = following
            descent.history.append(point.value)
            n_flat = n_flat + 1 if descent.change <= options.tol else 0
            if n_flat == _FLAT_STEPS:
                break
        else:
            if descent.change > options.tol:
                descent.status = f"{options.max_iter} steps taken"
    except KeyboardInterrupt:
        descent.status = "interrupted"
    return descent


@dataclass
class Restarts:
    """What several starts came to.

    Attributes
    ----------
    best : Descent
        The one of lowest J.
    values : list of float
        J at the end of each.
    n_dead : int
        Starts made again because the gate was shut or open everywhere.
    """

    best: Descent
    values: list[float]
    n_dead: int


def restarted(objective: GatedObjective, n_init: int, rng: Rng, options: Options) -> Restarts:
    """Descend from `n_init` random starts."""
    best: Descent | None = None
    values: list[float] = []
    n_dead = 0
    while len(values) < n_init:
        start = objective.gate.start(objective.features, len(objective.kernels), rng)
        try:
            descent = descend(objective, start, options)
        except KeyboardInterrupt:
            # Before the first machine of this start; an earlier start may have ended.
            if best is None:
                raise
            best.status = "interrupted"
            break
        if best is None or descent.point.value < best.point.value:
            best = descent
        if _dead(objective, descent) and n_dead < _MAX_DEAD_STARTS:
            n_dead += 1
            continue
        values.append(descent.point.value)
        if descent.status == "interrupted":
            best.status = "interrupted"
            break
    assert best is not None
    return Restarts(best, values, n_dead)


def _dead(objective: GatedObjective, descent: Descent) -> bool:
    """Whether the gate never moved because it had no gradient at the start.

    A descent may well end at such a gate: one kernel for all samples is an answer like others.
    """
    moved = len(descent.history) > 1 or descent.status == "interrupted"
    several = len(objective.kernels) > 1
    return several and not moved and objective.gate.saturated(descent.point.outputs)


def _armijo(
    objective: GatedObjective, point: GatedPoint, directions: _Directions
) -> GatedPoint | None:
    """A point that lowers J enough, or None if there is none along the gradient either."""
    for direction, step in directions.candidates(point.gradient):
        slope = float(point.gradient @ direction)
        for _ in range(_MAX_TRIALS):
            if -step * slope <= _ARMIJO * np.finfo(float).eps * abs(point.value):
                break
            candidate = objective.evaluate(point.theta + step * direction)
            if candidate.value <= point.value + _ARMIJO * step * slope:
                directions.step = step
                return candidate
            # Minimiser of the parabola through J, its slope and the rejected value.
            curvature = 2.0 * (candidate.value - point.value - step * slope) / step**2
            step = float(np.clip(-slope / curvature, 0.1 * step, 0.5 * step))
    return None


class _Directions:
    """Where to look from a point: the quasi-Newton direction, then the gradient."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.step: float | None = None
        self._pairs: list[tuple[Array, Array]] = []

    def learn(self, step: Array, change: Array) -> None:
        """Take in a step and the change of the gradient over it."""
        curvature = float(step @ change)
        if curvature > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs = [*self._pairs, (step, change)][-self.memory :] if self.memory else []

    def candidates(self, gradient: Array) -> list[tuple[Array, float]]:
        """Directions in the order in which to try them, with first step lengths."""
        size = float(np.linalg.norm(gradient))
        if size == 0.0:
            return []
        plain = (-gradient, self._first_step(size))
        if not self._pairs:
            return [plain]
        direction = -self._inverse_hessian_times(gradient)
        if not float(gradient @ direction) < 0.0:
            return [plain]
        return [(direction, 1.0), plain]

    def _first_step(self, size: float) -> float:
        """Length for a step along the gradient: parameters move by one, then twice as far as
        the last time."""
        return 1.0 / size if self.memory or self.step is None else _GROWTH * self.step

    def _inverse_hessian_times(self, gradient: Array) -> Array:
        """Two-loop recursion of L-BFGS."""
        vector = gradient.copy()
        coefficients = []
        for step, change in reversed(self._pairs):
            coefficient = float(step @ vector) / float(step @ change)
            coefficients.append(coefficient)
            vector = vector - coefficient * change
        step, change = self._pairs[-1]
        vector = vector * (float(step @ change) / float(change @ change))
        for (step, change), coefficient in zip(self._pairs, reversed(coefficients), strict=True):
            correction = coefficient - float(change @ vector) / float(step @ change)
            vector = vector + correction * step
        return vector
