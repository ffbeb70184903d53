"""A loss scaled and tilted, ``s·F(β) − t·β``, so that its gains at one point are given ones.

A cheap loss with the shape of an expensive one becomes a model of it: with
``t = g − s·g_cheap`` both have the same gradient −g there, and the model has the curvature of
the cheap loss, where a quadratic would have only what is known at one point (Nash 2000,
"A multigrid approach to discretized optimization problems").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .base import Array, Evaluation, Loss, Outline


@dataclass(frozen=True)
class TiltedLoss:
    """``scale · F(β) − tilt·β`` for another loss F.

    Parameters
    ----------
    loss : Loss
    scale : float
    tilt : ndarray of shape (n_kernels,)
    """

    loss: Loss
    scale: float
    tilt: Array

    @property
    def n_kernels(self) -> int:
        return self.loss.n_kernels

    @property
    def outline(self) -> Outline:
        return self.loss.outline

    def evaluate(self, weights: Array) -> TiltedEvaluation:
        return TiltedEvaluation(self.loss.evaluate(weights), self.scale, self.tilt)

    def gains_at(self, dual: Array) -> Array:
        return self.scale * self.loss.gains_at(dual) + self.tilt

    def restricted(self, kernels: NDArray[np.intp]) -> TiltedLoss:
        return TiltedLoss(self.loss.restricted(kernels), self.scale, self.tilt[kernels])

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """None that is known: a model's bound proves nothing of the loss it stands for."""
        return -np.inf

    def coarse(self) -> None:
        """None: the tilt belongs to this loss."""
        return None


@dataclass
class TiltedEvaluation:
    """A tilted loss at one point; gains may be negative."""

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

    def reassessed(self) -> TiltedEvaluation:
        return TiltedEvaluation(self.plain.reassessed(), self.scale, self.tilt)

    @property
    def hyperbolic(self) -> bool:
        return self.plain.hyperbolic

    @property
    def dual(self) -> Array:
        return self.plain.dual

    def hessian(self) -> Array:
        return self.scale * self.plain.hessian()

    def model_hessian(self, gap: float) -> Array:
        """``∇²``: what bends better than F need not do so for a tilted one."""
        return self.hessian()
