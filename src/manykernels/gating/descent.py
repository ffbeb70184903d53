"""Descent of J in the parameters of a gate: train the machine, change the gate, and again.

A step goes along the negative gradient (Gönen & Alpaydın 2013, algorithm 1), or along a
quasi-Newton direction (L-BFGS; Nocedal 1980). Its length follows Armijo's rule: the machine is
trained at every trial, warm-started, and a step is accepted only if it lowers J.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .._rounding import ACCUMULATED, EPS
from .certificate import StationarityCertificate
from .gates import Array
from .machines import Trained

# Armijo's rule: a step is accepted if it attains this part of the decrease that the slope of J
# predicts. The usual value (Nocedal & Wright 2006, section 3.1).
_ARMIJO = 1e-4
# A rejected step is shortened to the minimiser of a parabola, but to no less and no more than
# these parts of its length (Dennis & Schnabel 1983, algorithm A6.3.1).
_SHORTEST, _LONGEST = 0.1, 0.5
# Most trials in one direction. The last is at most 2⁻²⁴ = 6e-8 of the first, where changes of J
# are as small as its own error (`machines.INNER_TOL`).
_MAX_TRIALS = 25
# Steps that L-BFGS remembers: the default of SciPy's L-BFGS-B.
_MEMORY = 10
# A gradient step is first tried at twice the length of the last one, so that steps, which are at
# least halved when they are rejected, can grow again.
_GROWTH = 2.0
# Steps in a row that must change J by at most tol: one alone may be small only because Armijo's
# rule made it short.
_FLAT_STEPS = 2

#: Statuses of a descent that was ended from outside, after which no other one is begun either.
INTERRUPTED = "interrupted"
STOPPED = "stopped by an observer"


class Point(Protocol):
    """An objective at parameters θ, and the machine trained there."""

    @property
    def theta(self) -> Array: ...

    @property
    def outputs(self) -> Array: ...

    @property
    def trained(self) -> Trained: ...

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> Array: ...

    @property
    def coefficients(self) -> dict[str, Array]: ...

    @property
    def kernel(self) -> Array: ...


class Objective(Protocol):
    """What is to be lowered: J itself, or J and a penalty."""

    @property
    def n_inner_solves(self) -> int: ...

    def evaluate(self, theta: Array) -> Point: ...


@dataclass(frozen=True)
class DescentOptions:
    """When to stop, and along which directions to go.

    A descent stops when J has changed by at most `tol` of itself twice in a row, or after
    `max_iter` steps. With `quasi_newton`, directions are those of L-BFGS.
    """

    tol: float = 1e-3
    max_iter: int = 200
    quasi_newton: bool = True


@dataclass(frozen=True)
class DescentProgress:
    """One point of a descent, for observers and the history; the start is iteration 0."""

    iteration: int
    n_inner_solves: int
    certificate: StationarityCertificate

    def __str__(self) -> str:
        counts = f"step {self.iteration:3d}  inner solves {self.n_inner_solves:3d}"
        J, gradient = self.certificate.objective, self.certificate.gradient_norm
        return f"{counts}  objective {J:.10g}  gradient norm {gradient:.2e}"


#: Called at every point; if it returns a true value, the descent stops there.
Observer = Callable[[DescentProgress], bool | None]


@dataclass
class Descent:
    """A descent from one start, now at `point`.

    `history` has the start and every accepted step, along which J never rises. `status` says why
    the descent ended before J stopped changing; it is empty if J did.
    """

    point: Point
    history: list[DescentProgress]
    status: str = ""

    @property
    def certificate(self) -> StationarityCertificate:
        """What is known about `point`."""
        return self.history[-1].certificate

    @property
    def n_iter(self) -> int:
        """Number of accepted steps."""
        return self.history[-1].iteration

    def amend(self, **facts: Any) -> None:
        """Change fields of the certificate of `point`."""
        certificate = replace(self.certificate, **facts)
        self.history[-1] = replace(self.history[-1], certificate=certificate)


def descend(
    objective: Objective,
    start: Array,
    options: DescentOptions,
    observer: Observer | None = None,
    watch: Callable[[Point], bool] | None = None,
) -> Descent:
    """Lower J from the parameters `start`; `watch` is shown every point, and may end the descent.

    Ctrl-C ends the descent at the point that it has reached. During the first training, before
    there is any, the KeyboardInterrupt is passed on.
    """
    point = objective.evaluate(start)
    descent = Descent(point, [_progress(0, objective, point, np.inf, options.tol)])
    try:
        descent.status = _take_steps(descent, objective, options, observer, watch)
    except KeyboardInterrupt:
        descent.status = INTERRUPTED
        descent.amend(interrupted=True)
    return descent


def _take_steps(
    descent: Descent,
    objective: Objective,
    options: DescentOptions,
    observer: Observer | None,
    watch: Callable[[Point], bool] | None,
) -> str:
    """Step until J stops changing; returns the status."""
    directions = _Directions(_MEMORY if options.quasi_newton else 0)
    n_flat = 0
    while True:
        if observer is not None and observer(descent.history[-1]):
            return STOPPED
        if watch is not None and watch(descent.point):
            return ""
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
    iteration: int, objective: Objective, point: Point, change: float, tol: float
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


def _armijo(objective: Objective, point: Point, directions: _Directions) -> Point | None:
    """The next point by Armijo's rule, or None if no step in any direction satisfies it."""
    for direction, step in directions.candidates(point.gradient):
        slope = float(point.gradient @ direction)
        for _ in range(_MAX_TRIALS):
            if -step * slope <= _ARMIJO * EPS * abs(point.value):
                # Even the predicted decrease is far below the rounding error of J.
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
    """Directions to search from a point: that of L-BFGS, then the negative gradient.

    L-BFGS remembers the last `memory` steps; with 0 there is only the gradient.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        #: Length of the last accepted step, in units of its direction.
        self.step: float | None = None
        self._pairs: deque[tuple[Array, Array]] = deque(maxlen=memory)

    def learn(self, step: Array, change: Array) -> None:
        """Remember a step and the change of the gradient over it."""
        # Only pairs of positive curvature, by more than rounding error, keep the inverse Hessian
        # of L-BFGS positive definite.
        size = float(np.linalg.norm(step) * np.linalg.norm(change))
        if float(step @ change) > ACCUMULATED * size:
            self._pairs.append((step, change))

    def candidates(self, gradient: Array) -> list[tuple[Array, float]]:
        """Directions in the order in which to try them, with first step lengths."""
        size = float(np.linalg.norm(gradient))
        if size == 0.0:
            return []
        # Without a last step along the gradient, the first trial moves θ by a distance of one.
        first = 1.0 / size if self.memory or self.step is None else _GROWTH * self.step
        candidates = [(-gradient, first)]
        if self._pairs:
            direction = -self._inverse_hessian_times(gradient)
            # It leads downwards, unless rounding errors are too large.
            if float(gradient @ direction) < 0.0:
                candidates.insert(0, (direction, 1.0))
        return candidates

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
