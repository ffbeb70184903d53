"""Polynomial combinations of kernels with ridge regression (Cortes, Mohri, Rostamizadeh 2009).

The combination of degree d is a power, entry by entry, of a weighted sum of kernels:

    K_μ = (Σ_j μ_j K_j)^∘d ,        for d = 2  Σ_ij μ_i μ_j K_i ∘ K_j ,

which is positive semi-definite for μ ≥ 0, as products of kernels are. What is minimised over μ is
the objective of the ridge regression of the targets H on K_μ, centred,

    F(μ) = min_f Σ_i w_i ‖h_i − f(x_i)‖² + λ‖f‖² = tr(HᵀU) ,   U = (I + K_μ/λ)⁻¹ H ,

λ times the ``yᵀ(K_μ + λI)⁻¹y`` of the paper. A change dK of the kernel changes it by
``−tr(RᵀdK R)/λ``, R being the residuals U with the sample weights (:mod:`..losses.square`), and so

    ∂F/∂μ_j = −(d/λ) ⟨ RRᵀ ∘ (Σ_i μ_i K_i)^∘(d−1), K_j ⟩ .

Residuals sum to zero, so that centring has no part in the derivative. F is not convex for d > 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import brentq

from .._rounding import EPS
from ..gating.certificate import StationarityCertificate
from ..gating.descent import DescentProgress
from ..kernels import KernelStack
from ..kernels.transforms import Center
from ..losses import SquareLoss

# Armijo's rule: a step is accepted if it attains this part of the decrease that the slope of F
# predicts. The usual value (Nocedal & Wright 2006, section 3.1).
_ARMIJO = 1e-4
# A rejected step is shortened to this part.
_SHORTER = 0.5
# Most trials in one direction: the last is 2⁻³⁰ = 1e-9 of the first, a step without effect.
_MAX_TRIALS = 30
# Steps in a row that must change F by at most tol: one alone may be small because it was short.
_FLAT_STEPS = 2


@dataclass(frozen=True)
class Ball:
    """``{μ ≥ 0 : ‖μ − μ0‖ ≤ Λ}`` in the norm 1 or 2, with the same μ0 ≥ 0 for all kernels."""

    norm: int
    center: float
    radius: float

    def project(self, point: np.ndarray) -> np.ndarray:
        """The nearest point of the set.

        By its conditions of optimality it is, for some ν ≥ 0, the positive part of
        ``μ0 + (z − μ0)/(1 + ν)`` in the norm 2, and in the norm 1 that of μ0 plus z − μ0 with all
        entries shortened by ν. The distance from μ0 falls as ν grows.
        """
        shift = point - self.center

        def shrunk(nu: float) -> np.ndarray:
            if self.norm == 2:
                part = shift / (1.0 + nu)
            else:
                part = np.sign(shift) * np.maximum(np.abs(shift) - nu, 0.0)
            return np.maximum(self.center + part, 0.0)

        def excess(nu: float) -> float:
            return float(np.linalg.norm(shrunk(nu) - self.center, self.norm)) - self.radius

        if excess(0.0) <= 0.0:
            return shrunk(0.0)
        # With this ν entries are at μ0 in the norm 1, and at most Λ/√n from it in the norm 2.
        most = float(np.abs(shift).max())
        largest = most if self.norm == 1 else np.sqrt(len(point)) * most / self.radius
        return shrunk(brentq(excess, 0.0, largest, xtol=EPS * largest, rtol=4 * EPS))

    def start(self, n_kernels: int) -> np.ndarray:
        """Equal weights, as large as can be."""
        ones = np.ones(n_kernels)
        return self.center + self.radius * ones / float(np.linalg.norm(ones, self.norm))


@dataclass(frozen=True)
class RidgePoint:
    """F at weights μ, and its gradient there."""

    weights: np.ndarray
    value: float
    gradient: np.ndarray


@dataclass
class PolynomialRidge:
    """F of ridge regression on a polynomial combination of the kernels of a stack.

    `targets` have the (weighted) mean zero. `n_inner_solves` counts factorisations.
    """

    stack: KernelStack
    targets: np.ndarray
    reg: float
    sample_weight: np.ndarray | None
    degree: int
    n_inner_solves: int = 0

    def evaluate(self, weights: np.ndarray) -> RidgePoint:
        """F and its gradient, by one factorisation and one pass over the kernels."""
        self.n_inner_solves += 1
        total = self.stack.combine(weights)
        one = KernelStack((total**self.degree)[None], ["power"], gram=True, checked=True)
        centred = Center().fit_transform(one, sample_weight=self.sample_weight)
        loss = SquareLoss(centred, self.targets, self.reg, self.sample_weight)
        evaluation = loss.evaluate(np.ones(1))
        residuals = evaluation.residuals
        change = (self.degree / self.reg) * (residuals @ residuals.T)
        if self.degree > 1:
            change *= total ** (self.degree - 1)
        return RidgePoint(weights, evaluation.value, -self.stack.inner_products_with(change))


class WeightStationarity(StationarityCertificate):
    """How close weights are to a stationary point of the objective F.

    As the certificate of a gate, of which it is a kind. Its `gradient_norm` is the length of the
    step ``P(μ − ∇F/F) − μ``, P being the projection on the set of weights; it is zero where the
    slope of F is not negative in any direction that leads into the set.
    """

    @property
    def claim(self) -> str:
        """What a short projected step proves."""
        return (
            "The weights are near a stationary point, as a rule a local minimum, of the "
            "`objective`: a step down its gradient, projected on the set of weights, has the "
            "length `gradient_norm`, and the last decrease was `change`. Other weights may have a "
            "lower objective."
        )


@dataclass(frozen=True)
class PolynomialDescent:
    """Where a descent ended, and its steps, along which F never rises."""

    point: RidgePoint
    history: list[DescentProgress]
    stopped: bool = False

    @property
    def certificate(self) -> StationarityCertificate:
        """What is known about `point`."""
        return self.history[-1].certificate

    @classmethod
    def run(
        cls,
        objective: PolynomialRidge,
        ball: Ball,
        *,
        tol: float,
        max_iter: int,
        observer: Callable[[DescentProgress], bool],
    ) -> Self:
        """Projected gradients with Armijo's rule, from equal weights.

        The projection-based descent of the paper, which the rule makes monotone. A first trial
        has the length of Barzilai and Borwein (1988), from the last change of the gradient. It
        ends when F has changed by at most `tol` of itself twice in a row, or after `max_iter`
        steps.
        """
        point = objective.evaluate(ball.project(ball.start(objective.stack.n_kernels)))
        history: list[DescentProgress] = []
        decreases: list[float] = []
        length = 1.0 / max(point.value, EPS)
        while True:
            step = ball.project(point.weights - point.gradient / max(point.value, EPS))
            distance = float(np.linalg.norm(step - point.weights))
            change = max(decreases[-_FLAT_STEPS:], default=np.inf)
            certificate = WeightStationarity(point.value, distance, 0.0, change, tol)
            history.append(DescentProgress(len(decreases), objective.n_inner_solves, certificate))
            flat = len(decreases) >= _FLAT_STEPS and change <= tol
            stopped = bool(observer(history[-1]))
            if stopped or flat or len(decreases) == max_iter:
                return cls(point, history, stopped)
            found = _armijo_step(objective, ball, point, length)
            if found is None:
                at_rest = replace(certificate, change=0.0)
                history[-1] = replace(history[-1], certificate=at_rest)
                return cls(point, history)
            length = _next_length(point, found, length)
            decreases.append((point.value - found.value) / point.value)
            point = found


def _armijo_step(
    objective: PolynomialRidge, ball: Ball, point: RidgePoint, length: float
) -> RidgePoint | None:
    """A point with lower F along the projected negative gradient; None if there is none."""
    for _ in range(_MAX_TRIALS):
        weights = ball.project(point.weights - length * point.gradient)
        slope = float(point.gradient @ (weights - point.weights))
        # A slope that is a rounding error of F cannot be seen in it.
        if -slope <= EPS * abs(point.value):
            return None
        trial = objective.evaluate(weights)
        if trial.value <= point.value + _ARMIJO * slope:
            return trial
        length *= _SHORTER
    return None


def _next_length(before: RidgePoint, after: RidgePoint, length: float) -> float:
    """``‖dμ‖² / dμ·dg``, the inverse of the curvature along the last step."""
    moved, turned = after.weights - before.weights, after.gradient - before.gradient
    curvature = float(moved @ turned)
    return float(moved @ moved) / curvature if curvature > 0.0 else 2.0 * length
