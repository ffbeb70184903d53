"""PolynomialCombination: ridge regression on a learnt polynomial of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from ..discriminant import fisher_targets
from ..estimators import MKFDA, MKRidge
from ..estimators.base import NON_NEGATIVE, POSITIVE, FitTask, KernelEstimator, estimator, fits
from ..estimators.kernel_data import ScaledTargets
from ..gating.descent import DescentProgress
from ..gating.objective import StationarityCertificate
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.transforms import Center
from ..losses.square import SquareLoss
from ..utils.numerics import EPS
from ..utils.sklearn import Interval, Options, warn_caller
from ..utils.storable import storable
from .machine import OneKernelMachine, PowerOfSum, SourceKernels

# -------------------------------------------------------------------------------------------------
# Polynomial combinations of kernels with ridge regression (Cortes, Mohri, Rostamizadeh 2009).
#
# The combination of degree d is a power, entry by entry, of a weighted sum of kernels:
#
#     K_μ = (Σ_j μ_j K_j)^∘d ,        for d = 2  Σ_ij μ_i μ_j K_i ∘ K_j ,
#
# which is positive semi-definite for μ ≥ 0, as products of kernels are. The objective, minimised
# over μ, is that of the ridge regression of the targets H on K_μ, centred,
#
#     F(μ) = min_f Σ_i w_i ‖h_i − f(x_i)‖² + λ‖f‖² = tr(HᵀU) ,   U = (I + K_μ/λ)⁻¹ H ,
#
# λ times the ``yᵀ(K_μ + λI)⁻¹y`` of the paper. A change dK of the kernel changes it by
# ``−tr(RᵀdK R)/λ``, R being the residuals U with the sample weights (:mod:`..losses.square`),
# and so
#
#     ∂F/∂μ_j = −(d/λ) ⟨ RRᵀ ∘ (Σ_i μ_i K_i)^∘(d−1), K_j ⟩ .
#
# Residuals sum to zero, so that centring does not change the derivative. F is not convex for
# d > 1.


# Armijo's rule: a step is accepted if it attains this fraction of the decrease that the slope of F
# predicts. The usual value (Nocedal & Wright 2006, section 3.1).
_ARMIJO = 1e-4
# Factor by which a rejected step is shortened.
_SHORTER = 0.5
# Largest number of trials: the last step is 2⁻³⁰ = 1e-9 of the first and has no effect.
_MAX_TRIALS = 30
# Number of consecutive steps that must change F by at most tol, since a single short step may.
_FLAT_STEPS = 2


@dataclass(frozen=True)
class Ball:
    """``{μ ≥ 0 : ‖μ − μ0‖ ≤ Λ}`` in the norm 1 or 2, with the same μ0 ≥ 0 for all kernels."""

    norm: int
    center: float
    radius: float

    def project(self, point: np.ndarray) -> np.ndarray:
        """Return the nearest point of the set.

        By the optimality conditions it is, for some ν ≥ 0, the positive part of
        ``μ0 + (z − μ0)/(1 + ν)`` in the norm 2, and in the norm 1 that of μ0 plus z − μ0 with the
        absolute values of its entries reduced by ν. The distance from μ0 decreases with ν.
        """
        shift = point - self.center

        def shrunk(nu: float) -> np.ndarray:
            if self.norm == 2:
                shorter = shift / (1.0 + nu)
            else:
                shorter = np.sign(shift) * np.maximum(np.abs(shift) - nu, 0.0)
            return np.maximum(self.center + shorter, 0.0)

        def excess(nu: float) -> float:
            return float(np.linalg.norm(shrunk(nu) - self.center, self.norm)) - self.radius

        if excess(0.0) <= 0.0:
            return shrunk(0.0)
        # With this ν entries are at μ0 in the norm 1, and at most Λ/√n from it in the norm 2.
        most = float(np.abs(shift).max())
        largest = most if self.norm == 1 else np.sqrt(len(point)) * most / self.radius
        return shrunk(brentq(excess, 0.0, largest, xtol=EPS * largest, rtol=4 * EPS))

    def start(self, n_kernels: int) -> np.ndarray:
        """Return the largest equal weights in the set."""
        ones = np.ones(n_kernels)
        return self.center + self.radius * ones / float(np.linalg.norm(ones, self.norm))


@dataclass(frozen=True)
class RidgePoint:
    """Value and gradient of F at weights μ."""

    weights: np.ndarray
    value: float
    gradient: np.ndarray


@dataclass
class PolynomialRidge:
    """Objective F of ridge regression on a polynomial combination of the kernels of a stack.

    `targets` have weighted mean zero. `n_inner_solves` counts factorisations.
    """

    stack: KernelStack
    targets: np.ndarray
    reg: float
    sample_weight: np.ndarray | None
    degree: int
    n_inner_solves: int = 0

    def evaluate(self, weights: np.ndarray) -> RidgePoint:
        """Compute F and its gradient, by one factorisation and one pass over the kernels."""
        self.n_inner_solves += 1
        total = self.stack.combine(weights)
        power = KernelStack((total**self.degree)[None], ["power"], gram=True, checked=True)
        centred = Center().fit_transform(power, sample_weight=self.sample_weight)
        loss = SquareLoss(centred, self.targets, self.reg, self.sample_weight)
        evaluation = loss.evaluate(np.ones(1))
        residuals = evaluation.residuals
        change = (self.degree / self.reg) * (residuals @ residuals.T)
        if self.degree > 1:
            change *= total ** (self.degree - 1)
        return RidgePoint(weights, evaluation.value, -self.stack.inner_products_with(change))


@storable
class WeightStationarity(StationarityCertificate):
    """Certificate that weights are close to a stationary point of the objective F.

    `gradient_norm` is the length of the step ``P(μ − ∇F/F) − μ``, where P is the projection on the
    set of weights; it is zero if F does not decrease in any feasible direction.
    """

    @property
    def claim(self) -> str:
        """Statement of the certificate."""
        return (
            "The weights are near a stationary point, usually a local minimum, of the "
            "`objective`: a step along its negative gradient, projected on the set of weights, "
            "has the length `gradient_norm`, and the last decrease was `change`. Other weights "
            "may have a lower objective."
        )


@dataclass(frozen=True)
class PolynomialDescent:
    """Final point and steps of a monotone descent of F."""

    point: RidgePoint
    history: list[DescentProgress]
    stopped: bool = False

    @property
    def certificate(self) -> StationarityCertificate:
        """Certificate of `point`."""
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
        """Run projected gradient descent with Armijo's rule, from equal weights.

        The projection-based descent of the paper, made monotone by the rule. The first trial step
        has the length of Barzilai and Borwein (1988), from the last change of the gradient. The
        descent ends when F has changed by at most `tol`, relatively, in two consecutive steps, or
        after `max_iter` steps.
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
            lower = _armijo_step(objective, ball, point, length)
            if lower is None:
                at_rest = replace(certificate, change=0.0)
                history[-1] = replace(history[-1], certificate=at_rest)
                return cls(point, history)
            length = _next_length(point, lower, length)
            decreases.append((point.value - lower.value) / point.value)
            point = lower


def _armijo_step(
    objective: PolynomialRidge, ball: Ball, point: RidgePoint, length: float
) -> RidgePoint | None:
    """Return a point with lower F along the projected negative gradient, or None."""
    for _ in range(_MAX_TRIALS):
        weights = ball.project(point.weights - length * point.gradient)
        slope = float(point.gradient @ (weights - point.weights))
        # The slope is below the rounding error of F.
        if -slope <= EPS * abs(point.value):
            return None
        trial = objective.evaluate(weights)
        if trial.value <= point.value + _ARMIJO * slope:
            return trial
        length *= _SHORTER
    return None


def _next_length(before: RidgePoint, after: RidgePoint, length: float) -> float:
    """Return ``‖dμ‖² / dμ·dg``, the inverse of the curvature along the last step."""
    moved, turned = after.weights - before.weights, after.gradient - before.gradient
    curvature = float(moved @ turned)
    return float(moved @ moved) / curvature if curvature > 0.0 else 2.0 * length


@storable
@estimator()
class PolynomialCombination(OneKernelMachine, KernelEstimator):
    """Ridge regression, or a discriminant, on a polynomial combination of kernels.

    ``K_μ = Σ_ij μ_i μ_j K_i ∘ K_j``, with elementwise products, or another degree. The weights μ
    minimise the objective of the machine over ``{μ ≥ 0, ‖μ − μ0‖ ≤ Λ}``, by projected gradients
    (Cortes, Mohri and Rostamizadeh 2009; quoted in Gönen & Alpaydın 2013, section 4.5).

    Parameters
    ----------
    estimator : MKRidge or MKFDA, default=None
        The machine, whose λ, `reg`, must be a number. A clone of it is fitted to the combination;
        its own `kernels` must be None, and its p, `normalize` and `missing` are ignored. None: an
        :class:`~manykernels.MKRidge`, the regression of the paper.
    degree : int, default=2
        Degree of the polynomial. Terms of mixed kernels have the multiplicities of the expanded
        power of the sum. Degree 1 is the weighted sum.
    norm : {1, 2}, default=2
        Norm of the set of weights.
    center : float, default=0.0
        μ0 ≥ 0, the same for every kernel.
    radius : float, default=1.0
        Λ > 0. For ``center=0``, a larger Λ has the effect of a smaller λ.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        Normalisation of the kernels before they are combined. They are not centred before, since
        products of kernels depend on their origin; the machine centres the combination.
    tol : float, default=1e-5
        Relative change of the objective, in two consecutive steps, at which the descent stops.
    max_iter : int, default=200
        Largest number of steps.
    verbose : bool, default=False
        Whether to print a line per step.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights μ of the normalised kernels.
    certificate_ : StationarityCertificate
        Distance of μ from a stationary point: ``objective``, ``gradient_norm`` (the length of a
        step along the negative gradient, projected on the set of weights), ``change``,
        ``converged`` and a message. The objective is not convex if the degree is above 1, and
        other weights may have a lower one. The certificate of the machine on the combination is
        ``estimator_.certificate_``, with the same objective.
    n_iter_ : int
        Number of steps of the descent; one if the start is stationary.
    n_inner_solves_ : int
        Number of factorisations, including those of the machine.
    history_ : dict of list
        ``objective``, ``gradient_norm`` and ``n_inner_solves`` at the start and after each step.

    Notes
    -----
    The descent starts from equal weights and is deterministic. Armijo's rule makes it monotone.
    Targets are those of the machine, Fisher's for a discriminant. With one kernel and the default
    set of weights it is the machine on ``K ∘ K``.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh. Learning non-linear combinations of kernels. NIPS 2009.
    M. Gönen, E. Alpaydın. Localized algorithms for multiple kernel learning. Pattern
    Recognition 46, 2013.

    Examples
    --------
    A product of two columns, which no sum of kernels of single columns can represent:

    >>> import numpy as np
    >>> from manykernels import MKRidge
    >>> from manykernels.baselines import PolynomialCombination
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 3))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=150)
    >>> kernels = {f"column{k}": Linear().on([k]) for k in range(3)}
    >>> model = PolynomialCombination(kernels).fit(X[:100], y[:100])
    >>> model.certificate_.converged
    True
    >>> model.weights_.round(1)
    array([0.7, 0.7, 0. ])
    >>> model.score(X[100:], y[100:]) > 0.95
    True
    >>> MKRidge(kernels).fit(X[:100], y[:100]).score(X[100:], y[100:]) < 0.1
    True
    """

    degree: int = 2
    norm: int = 2
    center: float = 0.0
    radius: float = 1.0
    tol: float = 1e-5
    max_iter: int = 200

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [MKRidge, MKFDA, None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "norm": [Options(Real, {1, 2})],
        "center": NON_NEGATIVE,
        "radius": POSITIVE,
        "tol": POSITIVE,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _default: ClassVar[type] = MKRidge

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the weights of the kernels, and fit the machine."""
        machine = self._new_machine(tol=self._given.tol)
        _refuse_other_objectives(machine)
        rows = self._target_rows(machine, X, y, sample_weight, groups, centred=True)
        task = FitTask.begin(self, X, y, self.max_iter + 2)
        kernels = SourceKernels.of(self, rows, self.normalize, shift_invariant=False)
        if is_classifier(machine):
            targets = fisher_targets(rows.labels, kernels.kernels.samples(rows).masses)
        else:
            targets = ScaledTargets.of(rows.targets.reshape(len(rows), -1), rows.counts).columns
        objective = PolynomialRidge(
            kernels.stack, targets, float(machine.reg), rows.weights, self.degree
        )
        ball = Ball(int(self.norm), float(self.center), float(self.radius))
        descent = PolynomialDescent.run(
            objective, ball, tol=self.tol, max_iter=self.max_iter, observer=task
        )
        self._warn_unless_converged(descent)
        weights = descent.point.weights
        power = PowerOfSum("polynomial", weights, self.degree)
        predictor = kernels.learn(machine, power, y, sample_weight, task)
        certificates = [step.certificate for step in descent.history]
        history = {
            "objective": [certificate.objective for certificate in certificates],
            "gradient_norm": [certificate.gradient_norm for certificate in certificates],
            "n_inner_solves": [step.n_inner_solves for step in descent.history],
        }
        return self._keep(
            task,
            self._attributes(kernels, machine, predictor),
            weights_=weights,
            certificate_=descent.certificate,
            n_iter_=max(1, descent.history[-1].iteration),
            n_inner_solves_=objective.n_inner_solves + machine.n_inner_solves_,
            history_=history,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.regressor_tags is not None:
            # Powers of precomputed kernels may represent fewer functions than the kernels: the
            # square of a linear kernel has no linear terms.
            tags.regressor_tags.poor_score = self._is_precomputed
        return tags

    def _warn_unless_converged(self, descent: PolynomialDescent) -> None:
        certificate = descent.certificate
        if certificate.converged:
            return
        reason = " A callback asked for it." if descent.stopped else ""
        name = type(self).__name__
        warn_caller(
            f"{name} {certificate.status}. {certificate.message}{reason}", ConvergenceWarning
        )


def _refuse_other_objectives(machine: KernelEstimator) -> None:
    """Raise if the objective of a machine is not that of ridge regression on the kernel."""
    if not isinstance(machine.reg, Real):
        raise ValueError(
            f"estimator.reg={machine.reg!r}: it must be a number, since the weights of a "
            "polynomial combination are learnt at a fixed λ."
        )
    if getattr(machine, "denoise", None) is not None:
        raise ValueError(
            "estimator.denoise must be None: with denoising, the machine would use a different "
            "kernel from the one whose weights were learnt."
        )
