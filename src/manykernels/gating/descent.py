"""The alternating loop: train the machine, step on the gate, until J stops changing.

A step goes along the negative gradient (Gönen & Alpaydın 2013, algorithm 1), or along the
quasi-Newton direction of the last steps (L-BFGS; Nocedal 1980), with Armijo's rule on J: every
trial trains the machine, warm-started, so that J is its true value there and every accepted step
lowers it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._rounding import ACCUMULATED, EPS
from .certificate import StationarityCertificate
from .gates import Array
from .objective import GatedObjective, GatedPoint

# Armijo's rule: a step is accepted if it attains this part of the decrease that the slope
# promises. The usual value (Nocedal & Wright 2006, section 3.1).
_ARMIJO = 1e-4
# A rejected step is shortened to the minimiser of a parabola, within these parts of its length
# (Dennis & Schnabel 1983, algorithm A6.3.1).
_SHORTEST, _LONGEST = 0.1, 0.5
# Trials in one direction. The last is at most 2⁻²⁴ = 6e-8 of the first.
_MAX_TRIALS = 25
# Steps that L-BFGS remembers: the default of SciPy's L-BFGS-B.
_MEMORY = 10
# A gradient step is first tried at this multiple of the last one, so that steps can grow again.
_GROWTH = 2.0
# Steps in a row that must be within tol: a single short step can be an accident of Armijo's rule.
_FLAT_STEPS = 2

#: Reasons why a descent was ended from outside.
INTERRUPTED = "interrupted"
STOPPED = "stopped by an observer"


@dataclass(frozen=True)
class DescentOptions:
    """How to descend.

    Parameters
    ----------
    tol : float
        Relative change of J at which to stop, seen twice in a row.
    max_iter : int
        Most steps.
    quasi_newton : bool
        L-BFGS directions instead of the gradient.
    """

    tol: float = 1e-2
    max_iter: int = 200
    quasi_newton: bool = False


@dataclass(frozen=True)
class DescentProgress:
    """One point of a descent, as shown to observers and kept in the history.

    The sibling of :class:`manykernels.solvers.Progress`; the start is iteration 0.
    """

    iteration: int
    n_inner_solves: int
    certificate: StationarityCertificate

    def __str__(self) -> str:
        counts = f"step {self.iteration:3d}  inner solves {self.n_inner_solves:3d}"
        return f"{counts}  {self.certificate.summary}"


#: Called at every point; a true answer asks the descent to stop there.
Observer = Callable[[DescentProgress], bool | None]


@dataclass
class Descent:
    """A descent from one start.

    Attributes
    ----------
    point : GatedPoint
        Where it has got to.
    history : list of DescentProgress
        The start and every accepted step; J never rises.
    status : str
        Why it ended before J stopped changing, or empty.
    """

    point: GatedPoint
    history: list[DescentProgress]
    status: str = ""

    @property
    def certificate(self) -> StationarityCertificate:
        """Of the point."""
        return self.history[-1].certificate

    @property
    def n_iter(self) -> int:
        """Accepted steps."""
        return self.history[-1].iteration

    def amend(self, **facts: Any) -> None:
        """Put what has become known about the point into its certificate."""
        certificate = replace(self.certificate, **facts)
        self.history[-1] = replace(self.history[-1], certificate=certificate)

    @property
    def ended_from_outside(self) -> bool:
        """Whether an observer or Ctrl-C ended it, which asks to begin no other descent either."""
        return self.status in (STOPPED, INTERRUPTED)


def descend(
    objective: GatedObjective,
    start: Array,
    options: DescentOptions,
    observer: Observer | None = None,
) -> Descent:
    """Lower J from the parameters `start`.

    Ctrl-C ends the descent with what has been reached; during the first training, where nothing
    has been, it is passed on.
    """
    point = objective.evaluate(start)
    descent = Descent(point, [_progress(0, objective, point, np.inf, options.tol)])
    try:
        descent.status = _take_steps(descent, objective, options, observer)
    except KeyboardInterrupt:
        descent.status = INTERRUPTED
        descent.amend(interrupted=True)
    return descent


def _take_steps(
    descent: Descent, objective: GatedObjective, options: DescentOptions, observer: Observer | None
) -> str:
    """Step until J stops changing; returns the status."""
    directions = _Directions(_MEMORY if options.quasi_newton else 0)
    n_flat = 0
    while True:
        if observer is not None and observer(descent.history[-1]):
            return STOPPED
        if n_flat == _FLAT_STEPS:
            return ""
        if descent.n_iter == options.max_iter:
            return "" if descent.certificate.converged else f"{options.max_iter} steps taken"
        point = descent.point
        following = _armijo(objective, point, directions)
        if following is None:
            descent.amend(change=0.0)
            return ""
        directions.learn(following.theta - point.theta, following.gradient - point.gradient)
        change = (point.value - following.value) / (abs(following.value) or 1.0)
        n_flat = n_flat + 1 if change <= options.tol else 0
        progress = _progress(descent.n_iter + 1, objective, following, change, options.tol)
        descent.point = following
        descent.history.append(progress)


def _progress(
    iteration: int, objective: GatedObjective, point: GatedPoint, change: float, tol: float
) -> DescentProgress:
    size = abs(point.value) or 1.0
    certificate = StationarityCertificate(
        objective=point.value,
        gradient_norm=float(np.linalg.norm(point.gradient)) / size,
        inner_gap=point.trained.gap / size,
        change=change,
        tol=tol,
    )
    return DescentProgress(iteration, objective.n_inner_solves, certificate)


def _armijo(
    objective: GatedObjective, point: GatedPoint, directions: _Directions
) -> GatedPoint | None:
    """A point that lowers J enough, or None if no step along the gradient does."""
    for direction, step in directions.candidates(point.gradient):
        slope = float(point.gradient @ direction)
        for _ in range(_MAX_TRIALS):
            if -step * slope <= _ARMIJO * EPS * abs(point.value):
                # The promised decrease is lost in the rounding error of J.
                break
            candidate = objective.evaluate(point.theta + step * direction)
            if candidate.value <= point.value + _ARMIJO * step * slope:
                directions.step = step
                return candidate
            # Minimiser of the parabola through J, its slope and the rejected value.
            curvature = 2.0 * (candidate.value - point.value - step * slope) / step**2
            step = float(np.clip(-slope / curvature, _SHORTEST * step, _LONGEST * step))
    return None


class _Directions:
    """Directions to search from a point: quasi-Newton, then the negative gradient."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.step: float | None = None
        self._pairs: list[tuple[Array, Array]] = []

    def learn(self, step: Array, change: Array) -> None:
        """Remember a step and the change of the gradient over it."""
        curvature = float(step @ change)
        # Directions of descent need positive curvature, by more than a rounding error.
        if curvature > ACCUMULATED * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs = [*self._pairs, (step, change)][-self.memory :] if self.memory else []

    def candidates(self, gradient: Array) -> list[tuple[Array, float]]:
        """Directions in the order in which to try them, with first step lengths."""
        size = float(np.linalg.norm(gradient))
        if size == 0.0:
            return []
        # The first gradient step moves the parameters by one.
        first = 1.0 / size if self.memory or self.step is None else _GROWTH * self.step
        steepest = (-gradient, first)
        if not self._pairs:
            return [steepest]
        direction = -self._inverse_hessian_times(gradient)
        if not float(gradient @ direction) < 0.0:
            return [steepest]
        return [(direction, 1.0), steepest]

    def _inverse_hessian_times(self, gradient: Array) -> Array:
        """Two-loop recursion of L-BFGS (Nocedal & Wright 2006, algorithm 7.4)."""
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
