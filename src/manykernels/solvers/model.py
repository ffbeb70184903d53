"""The quadratic model of a loss that a Newton step minimises over the whole weight domain.

At β the loss gives F, ``g = −∇F`` and ``Q = ∇²F`` (or a better Q, see ``model_hessian``) for one
factorisation of an m×m matrix. The model is

    min_x  −g·(x − β) + ½ (x − β)ᵀ Q (x − β)   s.t.  x ∈ B

**Secant curvature.** A quadratic is a poor approximation of F far away: along one weight F falls
like ``1/x``, so the model sends weights to zero where F grows without bound, and lets small
weights grow by no more than half. The hyperbola ``r_j/(x + s_j)`` with the slope and the curvature
of F at β_j,

    β_j + s_j = 2g_j/Q_jj ,   r_j = g_j (β_j + s_j)²      (s_j ≥ 0, since β_j Q_jj ≤ 2g_j)

predicts the minimiser t_j along that weight if the others stay: where its gain ``r_j/(t + s_j)²``
equals the price that the domain asks of the weight (``Domain.equilibrium``). With
``θ_j = (β_j + s_j)/(t_j + s_j)`` the mean curvature of the hyperbola between β_j and t_j is
``c_j Q_jj``, ``c_j = θ_j(1 + θ_j)/2``; so Q is replaced by ``C^½ Q C^½``, and no weight may fall
below a tenth of t_j in one step. At the solution t = β and C = I, hence convergence stays
quadratic; far from it steps are longer than plain Newton steps, and fewer.

The F of a one-class machine is linear along rays instead. A loss that is not `hyperbolic` gets
the plain quadratic.

**Cuts.** Where F has kinks, the maximum ``max_r (c_r − q_r·x)`` of the planes of
:mod:`~manykernels.solvers.cuts` takes the place of ``−g·(x − β)``: the step of a bundle method
with Q as its metric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._rounding import ROUNDING
from ..domains import Array, Domain
from ..losses.base import Evaluation
from .certificate import NO_BOUND, Bound, certify, plane
from .cuts import Cuts
from .quadratic import minimize_above_planes, minimize_quadratic

# "Measured" in `model`, `search` and `newton`: total of inner solves over 110 small problems,
# square loss and support vector machines at five norms, with one value changed.

# Factor by which curvatures shrink where they prove too large. Measured: 0.03 to 0.3 alike.
_SOFTER = 0.1
# Curvatures are too large where F falls by this factor more than the model expects. Measured: 3 is
# as good; 1.05 takes a third more, as no model is exact.
_MORE_THAN_EXPECTED = 1.5
# Bound on θ and 1/θ, and on curvatures relative to (largest gain)/(largest weight): at a kink they
# are huge, and the interior-point method would fail. Measured: 1e5 to 1e11 alike.
_MOST_CURVATURE = 1e8
# Gains below this part of the largest are rounding error, which adds up over outputs.
_NO_GAIN = 10.0 * ROUNDING
# Part of t_j that a weight keeps at least in one step. Measured: 0.01 to 0.3 alike.
_LEAST_PART_KEPT = 0.1
# The price level is β·g, but at least this part of σ_B(g): weights on kernels without gain would
# make all others look free. Measured: 1e-5 to 0.1 alike.
_LEAST_LEVEL = 1e-3


@dataclass(frozen=True)
class Model:
    """The model at one point: `quadratic` is ``scale · C^½ Q C^½``, `lower ≤ x`."""

    point: Evaluation
    domain: Domain
    quadratic: Array
    lower: Array
    scale: float

    @classmethod
    def at(cls, point: Evaluation, domain: Domain, scale: float = 1.0) -> Model:
        quadratic = point.model_hessian(certify(point, domain, 0.0).gap)
        minimizers, factors = _secants(point, np.diag(quadratic), domain)
        most = _MOST_CURVATURE * float(point.gains.max()) / float(point.weights.max())
        curvatures = np.diag(quadratic) * factors**2
        factors = factors * np.sqrt(most / np.maximum(curvatures, most)) if most > 0.0 else factors
        quadratic = scale * (factors[:, None] * quadratic * factors)
        lower = np.minimum(_LEAST_PART_KEPT * minimizers, point.weights)
        return cls(point, domain, quadratic, lower, scale)

    def softened(self) -> Model:
        """The model with smaller curvatures, whose steps are longer."""
        return replace(self, quadratic=_SOFTER * self.quadratic, scale=_SOFTER * self.scale)

    def next_scale(self, reached: Evaluation) -> float:
        """Factor of the curvatures of the next model, by how far F fell on the way to a point."""
        step = reached.weights - self.point.weights
        expected = float(self.point.gains @ step) - 0.5 * float(step @ self.quadratic @ step)
        fell = self.point.value - reached.value
        # Beside a kink F can fall by more than a model with the curvature of the kink allows.
        if fell > _MORE_THAN_EXPECTED * expected > 0.0:
            return _SOFTER * self.scale
        return min(1.0, self.scale / _SOFTER)

    def minimizer(self) -> Array:
        """Where the model is least over the domain."""
        point = self.point
        linear = -point.gains - self.quadratic @ point.weights
        target = minimize_quadratic(linear, self.quadratic, self.domain, self.lower)
        rounding = ROUNDING * float(point.gains @ point.weights)
        if target is None or point.gains @ (target - point.weights) <= -rounding:
            # Along the step F rises, a numerical failure. Along that of the conditional gradient
            # method it never does.
            target = self.domain.maximizer(point.gains)
        return target

    def minimizer_above(self, cuts: Cuts) -> tuple[Array, Bound]:
        """Where the greatest of the cuts, plus the quadratic, is least; and what they prove."""
        constant, _ = plane(self.point)
        linear = -self.quadratic @ self.point.weights
        planes = (cuts.constants - constant, cuts.slopes)
        solved = minimize_above_planes(linear, self.quadratic, self.domain, self.lower, planes)
        if solved is None:
            return self.domain.maximizer(self.point.gains), NO_BOUND
        target, multipliers = solved
        return target, cuts.bound(multipliers, self.domain)


def _secants(point: Evaluation, curvatures: Array, domain: Domain) -> tuple[Array, Array]:
    """t and the diagonal of C^½, from the diagonal of Q; see the module."""
    gains, weights = point.gains, point.weights
    # Without gain or curvature there is no hyperbola; these weights get the plain quadratic.
    alive = (gains > _NO_GAIN * gains.max()) & (curvatures > 0.0)
    if not point.hyperbolic or not alive.any():
        return np.zeros(len(gains)), np.ones(len(gains))
    gains, curvatures = np.where(alive, gains, 1.0), np.where(alive, curvatures, 1.0)
    reach = 2.0 * gains / curvatures
    shift = np.maximum(reach - weights, _NO_GAIN * reach)
    reach = weights + shift
    worth, most = domain.block_sums(point.weights * point.gains), domain.supports(point.gains)
    level = np.maximum(worth, _LEAST_LEVEL * most)
    # A block without gains has no hyperbolas either.
    level = np.where(level > 0.0, level, 1.0)
    minimizers = domain.equilibrium(gains * reach**2, shift, level)
    theta = np.clip(reach / (minimizers + shift), 1.0 / _MOST_CURVATURE, _MOST_CURVATURE)
    factors = np.sqrt(0.5 * theta * (1.0 + theta))
    return np.where(alive, minimizers, 0.0), np.where(alive, factors, 1.0)
