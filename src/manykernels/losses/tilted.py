"""A loss scaled and tilted, ``s·F(β) − t·β``, so that it has given gains at one point.

This makes a cheap loss a model of an expensive one: with ``t = g − s·g_cheap`` both have the
gradient −g at that point. Unlike a quadratic model, it also has the curvature of the cheap loss
everywhere else (Nash 2000, "A multigrid approach to discretized optimization problems").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .base import Array, DualPoint, Evaluation, Indices, Loss, Outline


@dataclass(frozen=True)
class TiltedLoss(Loss):
    """``scale · F(β) − tilt·β`` for another loss F, with a regularisation that is not learnt.

    Its gains may be negative.
    """

    loss: Loss
    scale: float
    tilt: Array

    def evaluate(self, weights: Array) -> TiltedEvaluation:
        return TiltedEvaluation(self.loss.evaluate(weights), self.scale, self.tilt)

    @property
    def outline(self) -> Outline:
        return self.loss.outline

    def dual_point(self, dual: Array) -> DualPoint:
        # tilt·β does not scale with the dual variables, so only t = 1 keeps D of this form.
        point, scale = self.loss.dual_point(dual), self.scale
        gains = scale * point.gains + self.tilt
        return DualPoint(scale * point.linear, scale * point.quadratic, gains)

    def restricted(self, kernels: Indices) -> TiltedLoss:
        return TiltedLoss(self.loss.restricted(kernels), self.scale, self.tilt[kernels])

    def kernel(self, which: int) -> Array:
        return self.loss.kernel(which)


def _plain(name: str) -> Any:
    return property(lambda self: getattr(self.plain, name))


def _scaled(name: str) -> Any:
    return property(lambda self: self.scale * getattr(self.plain, name))


@dataclass
class TiltedEvaluation:
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

    def reassessed(self) -> TiltedEvaluation:
        return TiltedEvaluation(self.plain.reassessed(), self.scale, self.tilt)

    def hessian(self) -> Array:
        return self.scale * self.plain.hessian()

    def model_hessian(self, gap: float) -> Array:
        """The Hessian: a tilted loss has no known transformation that is closer to quadratic."""
        return self.hessian()
