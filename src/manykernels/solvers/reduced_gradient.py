"""SimpleMKL: steps along the reduced gradient of F on a simplex.

Rakotomamonjy, Bach, Canu and Grandvalet (2008), "SimpleMKL", JMLR 9, algorithm 1. The shares
``s_j = r_j β_j`` of the budget, r_j being the prices of the domain, lie on the unit simplex, and

    ∂F/∂s_j = −g_j/r_j

The largest share µ is what the others leave, ``s_µ = 1 − Σ_{j≠µ} s_j``. So the gradient in the
others, the reduced gradient, is ``ρ_j = ∂F/∂s_j − ∂F/∂s_µ``, and the direction D goes against it
wherever that leads into the simplex:

    D_j = 0                if s_j = 0 and ρ_j > 0
    D_j = −ρ_j             for the other j ≠ µ
    D_µ = −Σ_{j≠µ} D_j

F has slope ``−Σ_{j≠µ} D_j²`` along it. The longest step is ``γ = min {−s_j/D_j : D_j < 0}``, where
the share ν vanishes. If F is lower there, the step is taken and the search goes on from there
along the same direction without ν,

    D_ν = 0,   D_µ = −Σ_{j≠µ} D_j

to the next share that vanishes, until F falls no more: kernels leave at the price of a value
of F each. (It also ends where µ itself has vanished. The sum of D stays zero; algorithm 1 is to
be read in this sense.) A golden section search between the last two places ends the iteration.

Here a value of F comes with its gradient, and F is convex, which the paper makes less use of. The
line search ends where the slope has become small, or where all that F could still fall by is
rounding, and no step is tried along which F rises at once. And where values cannot be told
apart, a slope that still points down shows that F falls: without that, a tiny share bars the
way, as F does not change visibly until it has vanished. So no share needs to be cut off at a
threshold.

The method is one of steepest descent. It finds the kernels that matter soon and the last digits
of their weights slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..domains import Array, Domain, Simplex
from ..losses.base import Evaluation, Loss
from ._needs import on_a_simplex
from .base import Need, Solver, Walk

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_MOST_TRIALS = 60
# Changes of F below this fraction may be rounding.
_INDISTINGUISHABLE = 1e-12
_ROUNDING = 1e-15


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
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = X[:, 0] > 0
    >>> model = MKFDA(p=1, solver="reduced-gradient").fit(X, y)
    >>> model.certificate_.converged
    True
    """

    precision: float = 0.1

    needs: ClassVar[tuple[Need, ...]] = (on_a_simplex,)
    # As in the code of the authors, who ask for a relative gap of 1e-2.
    default_max_iter = 500

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str | None:
        assert isinstance(domain, Simplex)
        place = _Shares(loss, domain.prices(loss.n_kernels))
        weights = domain.start(loss.n_kernels) if start is None else start
        point = place(weights * place.prices)
        while not walk.arrive(point.evaluation, place.count()):
            following = self._descend(place, point)
            if following is point:
                walk.n_inner_solves += place.count()
                return "no step along the reduced gradient lowers the loss any more"
            point = following
        return None

    def _descend(self, place: _Shares, point: _Point) -> _Point:
        """A point with a lower F, or `point` if none is found."""
        reference = int(np.argmax(point.shares))
        direction = _direction(point, reference)
        while point.slope(direction) < 0.0:
            step, vanishing = _longest_step(point.shares, direction)
            corner = place(_moved(point.shares, direction, step, vanishing))
            if not _falls(point, corner, direction):
                return self._golden_section(place, point, direction, step)
            point = corner
            if vanishing == reference:
                break
            direction = _balanced(
                np.where((point.shares > 0.0) | (direction > 0.0), direction, 0.0), reference
            )
        return point

    def _golden_section(
        self, place: _Shares, point: _Point, direction: Array, longest: float
    ) -> _Point:
        """A point close to the lowest one on the way, or `point` if none is lower."""
        slope = point.slope(direction)
        low, high = 0.0, longest
        left = right = None
        best = point
        for _ in range(_MOST_TRIALS):
            # F falls by no more than this between here and its minimum.
            if -slope * high <= _ROUNDING * abs(point.value):
                break
            width = _GOLDEN * (high - low)
            if left is None:
                left = trial = place(_moved(point.shares, direction, high - width))
            else:
                right = trial = place(_moved(point.shares, direction, low + width))
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
    evaluation: Evaluation
    gradient: Array

    @property
    def value(self) -> float:
        return self.evaluation.value

    def slope(self, direction: Array) -> float:
        return float(self.gradient @ direction)


class _Shares:
    """A loss as a function of the shares; counts its evaluations."""

    def __init__(self, loss: Loss, prices: Array) -> None:
        self.loss = loss
        self.prices = prices
        self._count = 0

    def __call__(self, shares: Array) -> _Point:
        self._count += 1
        # Rounding must not add up over many steps.
        shares = shares / shares.sum()
        evaluation = self.loss.evaluate(shares / self.prices)
        return _Point(shares, evaluation, -evaluation.gains / self.prices)

    def count(self) -> int:
        """Evaluations since this was last asked."""
        count, self._count = self._count, 0
        return count


def _direction(point: _Point, reference: int) -> Array:
    """D of the module."""
    reduced = point.gradient - point.gradient[reference]
    return _balanced(np.where((point.shares > 0.0) | (reduced < 0.0), -reduced, 0.0), reference)


def _balanced(direction: Array, reference: int) -> Array:
    """The direction with the entry of the reference that keeps the sum of the shares."""
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
    """The shares after a step, of which one is exactly zero if it is said to vanish."""
    shares = np.maximum(shares + step * direction, 0.0)
    if vanishing is not None:
        shares[vanishing] = 0.0
    return shares


def _falls(point: _Point, corner: _Point, direction: Array) -> bool:
    """Whether F falls from `point` to `corner`, which lies in that direction."""
    if corner.value < point.value:
        return True
    equal = corner.value <= point.value + _INDISTINGUISHABLE * abs(point.value)
    return equal and corner.slope(direction) <= 0.0
