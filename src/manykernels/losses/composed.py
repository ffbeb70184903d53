"""Sum of losses of the same kernel weights, ``F(β) = Σ_k F_k(β)``.

Values, gains, Hessians and the D of dual variables are sums over the parts. Machines that share
kernel weights but not their rows are such parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from .base import Array, DualPoint, Evaluation, Indices, Loss, ProblemSpec


class SummedLoss(Loss):
    """Σ_k F_k.

    Parameters
    ----------
    parts : sequence of Loss
        Losses of the same kernels with one output each; none of them learns its regularisation.
    """

    def __init__(self, parts: Sequence[Loss]) -> None:
        self.parts = list(parts)

    @property
    def spec(self) -> ProblemSpec:
        specs = [loss.spec for loss in self.parts]
        n_samples = max(spec.n_samples for spec in specs)
        return ProblemSpec(SummedLoss, n_samples, specs[0].n_kernels, len(specs))

    def evaluate(self, weights: Array) -> SummedEvaluation:
        """Solve the inner problem of every loss at `weights`."""
        weights = np.asarray(weights, dtype=np.float64)
        return SummedEvaluation(weights, [loss.evaluate(weights) for loss in self.parts])

    def dual_point(self, dual: Array) -> DualPoint:
        columns = np.split(dual, dual.shape[1], axis=1)
        pairs = zip(self.parts, columns, strict=True)
        points = [loss.dual_point(block) for loss, block in pairs]
        longest = [point.longest for point in points]
        return DualPoint(
            linear=sum(point.linear for point in points),
            quadratic=sum(point.quadratic for point in points),
            gains=np.sum([point.gains for point in points], axis=0),
            longest=None if None in longest else min(longest),  # type: ignore[type-var]
        )

    def restricted(self, kernels: Indices) -> SummedLoss:
        return SummedLoss([loss.restricted(kernels) for loss in self.parts])

    def kernel(self, which: int) -> Array:
        """Return the block-diagonal matrix of the matrices of all parts."""
        matrix: Array = linalg.block_diag(*[loss.kernel(which) for loss in self.parts])
        return matrix


@dataclass
class SummedEvaluation:
    """Σ_k F_k at one point."""

    weights: Array
    parts: list[Any] = field(repr=False)

    def _sum(self, name: str) -> Array:
        """Sum an attribute over all parts."""
        total: Array = np.sum([getattr(point, name) for point in self.parts], axis=0)
        return total

    @property
    def value(self) -> float:
        return float(self._sum("value"))

    @property
    def gains(self) -> Array:
        return self._sum("gains")

    @property
    def slack(self) -> float:
        return float(self._sum("slack"))

    @property
    def rounding(self) -> float:
        return float(self._sum("rounding"))

    @property
    def gain_errors(self) -> Array:
        return self._sum("gain_errors")

    @property
    def hyperbolic(self) -> bool:
        return all(point.hyperbolic for point in self.parts)

    @property
    def dual(self) -> Array:
        return np.hstack([point.dual for point in self.parts])

    @property
    def coefficients(self) -> Array:
        return np.hstack([point.coefficients for point in self.parts])

    def reassessed(self) -> SummedEvaluation:
        return SummedEvaluation(self.weights, [point.reassessed() for point in self.parts])

    @property
    def released(self) -> bool:
        return any(point.released for point in self.parts)

    def release(self) -> None:
        """Release the workspaces of all parts."""
        for point in self.parts:
            point.release()

    def hessian(self) -> Array:
        hessian: Array = np.sum([point.hessian() for point in self.parts], axis=0)
        return hessian

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F``: transformations for one output do not apply to a sum."""
        return self.hessian()


# -- A loss scaled and tilted, ``s·F(β) − t·β``, to have given gains at one point -----------------
#
# This makes a cheap loss a model of an expensive one: with ``t = g − s·g_cheap`` both have the
# gradient −g at that point. Unlike a quadratic model, it also has the curvature of the cheap loss
# everywhere else (Nash 2000, "A multigrid approach to discretized optimization problems").


@dataclass(frozen=True)
class SurrogateLoss(Loss):
    """``scale · F(β) − tilt·β`` for another loss F with a fixed regularisation.

    Its gains may be negative.
    """

    loss: Loss
    scale: float
    tilt: Array

    def evaluate(self, weights: Array) -> SurrogateEvaluation:
        return SurrogateEvaluation(self.loss.evaluate(weights), self.scale, self.tilt)

    @property
    def spec(self) -> ProblemSpec:
        return self.loss.spec

    def dual_point(self, dual: Array) -> DualPoint:
        # tilt·β does not scale with the dual variables, so only t = 1 keeps this form of D.
        point, scale = self.loss.dual_point(dual), self.scale
        gains = scale * point.gains + self.tilt
        return DualPoint(scale * point.linear, scale * point.quadratic, gains)

    def restricted(self, kernels: Indices) -> SurrogateLoss:
        return SurrogateLoss(self.loss.restricted(kernels), self.scale, self.tilt[kernels])

    def kernel(self, which: int) -> Array:
        return self.loss.kernel(which)


def _plain(name: str) -> Any:
    return property(lambda self: getattr(self.plain, name))


def _scaled(name: str) -> Any:
    return property(lambda self: self.scale * getattr(self.plain, name))


@dataclass
class SurrogateEvaluation:
    """A tilted loss at one point."""

    plain: Evaluation = field(repr=False)
    scale: float
    tilt: Array

    weights, hyperbolic, released = _plain("weights"), _plain("hyperbolic"), _plain("released")
    dual, coefficients = _plain("dual"), _plain("coefficients")
    slack, rounding = _scaled("slack"), _scaled("rounding")
    gain_errors = _scaled("gain_errors")

    @property
    def value(self) -> float:
        return self.scale * self.plain.value - float(self.tilt @ self.weights)

    @property
    def gains(self) -> Array:
        return self.scale * self.plain.gains + self.tilt

    def reassessed(self) -> SurrogateEvaluation:
        return SurrogateEvaluation(self.plain.reassessed(), self.scale, self.tilt)

    def hessian(self) -> Array:
        return self.scale * self.plain.hessian()

    def model_hessian(self, gap: float) -> Array:
        """Return the Hessian: no transformation of a tilted loss is closer to quadratic."""
        return self.hessian()
