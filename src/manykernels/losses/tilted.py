"""A loss scaled and tilted, ``s·F(β) − t·β``, so that it has given gains at one point.

A cheap loss with the shape of an expensive one becomes a model of it: with
``t = g − s·g_cheap`` both have the same gradient −g there, and the model has the curvature of
the cheap loss, where a quadratic would have only what is known at one point (Nash 2000,
"A multigrid approach to discretized optimization problems").
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .base import Array, DualPoint, Evaluation, Indices, Loss, Outline


@dataclass(frozen=True)
class TiltedLoss(Loss):
    """``scale · F(β) − tilt·β`` for another loss F; its gains may be negative.

    Parameters
    ----------
    loss : Loss
        F, with a regularisation that is not learnt.
    scale : float
    tilt : ndarray of shape (n_kernels,)
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
        # The tilt is that of β alone, whatever the multiple of the dual variables.
        point, scale = self.loss.dual_point(dual), self.scale
        gains = scale * point.gains + self.tilt
        return DualPoint(scale * point.linear, scale * point.quadratic, gains)

    def restricted(self, kernels: Indices) -> TiltedLoss:
        return TiltedLoss(self.loss.restricted(kernels), self.scale, self.tilt[kernels])

    def kernel(self, which: int) -> Array:
        return self.loss.kernel(which)


@dataclass
class TiltedEvaluation:
    """A tilted loss at one point."""

    plain: Evaluation = field(repr=False)
    scale: float
    tilt: Array

    @property
    def weights(self) -> Array:
        return self.plain.weights

    @property
    def value(self) -> float:
        return self.scale * self.plain.value - float(self.tilt @ self.weights)

    @property
    def gains(self) -> Array:
        return self.scale * self.plain.gains + self.tilt

    @property
    def slack(self) -> float:
        return self.scale * self.plain.slack

    @property
    def rounding(self) -> float:
        return self.scale * self.plain.rounding

    @property
    def gain_errors(self) -> Array:
        return self.scale * self.plain.gain_errors

    @property
    def hyperbolic(self) -> bool:
        return self.plain.hyperbolic

    @property
    def dual(self) -> Array:
        return self.plain.dual

    @property
    def coefficients(self) -> Array:
        return self.plain.coefficients

    @property
    def released(self) -> bool:
        return self.plain.released

    def reassessed(self) -> TiltedEvaluation:
        return TiltedEvaluation(self.plain.reassessed(), self.scale, self.tilt)

    def hessian(self) -> Array:
        return self.scale * self.plain.hessian()

    def model_hessian(self, gap: float) -> Array:
        """``∇²``: an increasing function of F that is closer to quadratic need not exist here."""
        return self.hessian()
