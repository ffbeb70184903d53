"""SimpleMKL: steps along the reduced gradient of F on a simplex.

Rakotomamonjy, Bach, Canu and Grandvalet (2008), "SimpleMKL", JMLR 9, algorithm 1. The shares
``s_j = r_j β_j`` of the budget, r_j being the prices of the domain, lie on the unit simplex, and
``∂F/∂s_j = −g_j/r_j``. The largest share µ is what the others leave, ``s_µ = 1 − Σ_{j≠µ} s_j``. So
the gradient in the others, the reduced gradient, is ``ρ_j = ∂F/∂s_j − ∂F/∂s_µ``, and the direction
D is against it where that stays in the simplex:

    D_j = 0  if s_j = 0 and ρ_j > 0,    D_j = −ρ_j  for the other j ≠ µ,    D_µ = −Σ_{j≠µ} D_j

F has slope ``−Σ_{j≠µ} D_j²`` along it. The longest step is ``γ = min {−s_j/D_j : D_j < 0}``, where
the share ν vanishes. If F is lower there, the step is taken and the search goes on from there with
``D_ν = 0`` and ``D_µ = −Σ_{j≠µ} D_j`` to the next share that vanishes, until F falls no more or µ
itself has vanished: each kernel that leaves costs one value of F. (Algorithm 1 is to be read such
that D keeps the sum zero.) A golden section search between the last two points ends the iteration.

Here a value of F comes with its gradient, and F is convex, which the paper makes less use of. The
line search ends where the slope has become small, or where F could fall by no more than rounding
error, and no step is tried along which F rises at once. Where values differ by rounding error
only, a negative slope at the end shows that F falls: otherwise a tiny share would stop the method,
as F does not change visibly until it has vanished. So no threshold for zero shares is needed.

As steepest descent does, it finds the last digits of the weights slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._rounding import ACCUMULATED, EPS
from ...domains import Array, Domain, Simplex
from ...losses.base import Evaluation, Loss
from .._needs import on_a_simplex
from ..base import Solver, start_or_uniform
from ..run import Run

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# Limit on trials of a line search; they shrink the interval to 0.618^60 = 3e-13 of its length.
_MOST_TRIALS = 60


@dataclass(frozen=True)
class ReducedGradient(Solver, name="reduced-gradient"):
    """SimpleMKL for any loss, p = 1.

    Parameters
    ----------
    precision : float, default=0.1
        The line search ends when the step is known to this fraction, or when the slope has
        fallen to this fraction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA, rbf_grid
    >>> model = MKFDA(rbf_grid([0.5, 2, 8]), p=1, solver="reduced-gradient", tol=1e-4)
    >>> model.fit(*load_iris(return_X_y=True)).certificate_.converged
    True
    """

    precision: float = 0.1

    needs = (on_a_simplex,)
    # As in the code of the authors, whose tolerance is a relative gap of 1e-2.
    default_max_iter = 500

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        assert isinstance(domain, Simplex)
        prices = domain.prices(loss.n_kernels)

        def evaluate(shares: Array) -> _Point:
            run.n_inner_solves += 1
            return _Point.at(shares, loss, prices)

        point = evaluate(start_or_uniform(start, loss, domain) * prices)
        while not run.record(point.evaluation, 0):
            following = self._descend(evaluate, point)
            if following is point:
                return "no step along the reduced gradient lowers the loss any more"
            point = following
        return None

    def _descend(self, evaluate: _AtShares, point: _Point) -> _Point:
        """A point with a lower F, or `point` if none is found."""
        reference = int(np.argmax(point.shares))
        direction = _direction(point, reference)
        while point.slope(direction) < 0.0:
            step, vanishing = _longest_step(point.shares, direction)
            corner = evaluate(_moved(point.shares, direction, step, vanishing))
            if not _falls(point, corner, direction):
                return self._golden_section(evaluate, point, direction, step)
            point = corner
            if vanishing == reference:
                break
            kept = (point.shares > 0.0) | (direction > 0.0)
            direction = _balanced(np.where(kept, direction, 0.0), reference)
        return point

    def _golden_section(
        self, evaluate: _AtShares, point: _Point, direction: Array, longest: float
    ) -> _Point:
        """A point close to the lowest one up to `longest`, or `point` if none is lower."""
        slope = point.slope(direction)
        low, high, best = 0.0, longest, point
        left = right = None
        for _ in range(_MOST_TRIALS):
            # F falls by no more than this between here and its minimum.
            if -slope * high <= EPS * abs(point.value):
                break
            width = _GOLDEN * (high - low)
            if left is None:
                left = trial = evaluate(_moved(point.shares, direction, high - width))
            else:
                right = trial = evaluate(_moved(point.shares, direction, low + width))
            if trial.value < best.value:
                best = trial
            if left is not None and right is not None:
                if left.value <= right.value:
                    high, left, right = low + width, None, left
                else:
                    low, left, right = high - width, right, None
            flat = abs(best.slope(direction)) <= -self.precision * slope
            if best is not point and (flat or high - low <= self.precision * high):
                break
        return best


@dataclass(frozen=True)
class _Point:
    """F at some shares, and its gradient there."""

    shares: Array
    value: float
    gradient: Array
    evaluation: Evaluation

    @classmethod
    def at(cls, shares: Array, loss: Loss, prices: Array) -> _Point:
        # Rounding errors would add up over many steps.
        shares = shares / shares.sum()
        evaluation = loss.evaluate(shares / prices)
        return cls(shares, evaluation.value, -evaluation.gains / prices, evaluation)

    def slope(self, direction: Array) -> float:
        return float(self.gradient @ direction)


_AtShares = Callable[[Array], _Point]


def _direction(point: _Point, reference: int) -> Array:
    """D of the module."""
    reduced = point.gradient - point.gradient[reference]
    return _balanced(np.where((point.shares > 0.0) | (reduced < 0.0), -reduced, 0.0), reference)


def _balanced(direction: Array, reference: int) -> Array:
    """The direction with its entry for the reference such that it sums to zero."""
    direction[reference] = 0.0
    direction[reference] = -direction.sum()
    return direction


def _longest_step(shares: Array, direction: Array) -> tuple[float, int]:
    """How far the shares stay non-negative, and which of them vanishes there."""
    falling = np.flatnonzero(direction < 0.0)
    steps = -shares[falling] / direction[falling]
    first = int(np.argmin(steps))
    return float(steps[first]), int(falling[first])


def _moved(shares: Array, direction: Array, step: float, vanishing: int | None = None) -> Array:
    """The shares after a step; the one that vanishes, if any, is exactly zero."""
    shares = np.maximum(shares + step * direction, 0.0)
    if vanishing is not None:
        shares[vanishing] = 0.0
    return shares


def _falls(point: _Point, corner: _Point, direction: Array) -> bool:
    """Whether F falls from `point` to `corner`, which lies in that direction."""
    if corner.value < point.value:
        return True
    equal = corner.value <= point.value + ACCUMULATED * abs(point.value)
    return equal and corner.slope(direction) <= 0.0
