"""Descent methods of the papers: analytic updates, the dual by L-BFGS, and SimpleMKL.

**Analytic update.** For given weights the discriminant splits into parts ``f = Σ_j f_j``, one per
kernel, with squared norms ``‖f_j‖² = β_j² g_j`` (up to a constant factor). For given parts the
weights enter the objective as ``Σ_j ‖f_j‖²/β_j``, which is least over ``‖β‖_p ≤ 1`` at

    β_j⁺ ∝ (β_j² g_j)^{1/(p+1)}

(Kloft et al. 2011; Yan 2012, end of section 2.1), and at ``Domain.balance`` in other domains. F
never rises from β to β⁺. In logarithms the update is linear, and weights that fall like a
geometric series, such as those of useless kernels near p = 1, do not underflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import optimize

from ...domains import Array, Domain, Simplex, lp_domain
from ...losses.base import Certificate, Evaluation, Loss
from ...losses.square import SquareEvaluation, SquareLoss
from ...utils.numerics import ACCUMULATED, EPS
from .. import base
from ..base import Run, Solver

#: Default ω of :func:`relaxed_update`. Measured on nine small machines: 1.8 and 1.5 take 71 rounds
#: of :class:`Interleaved`, 1 takes 99 and 1.95 takes 90; from 2 on they need not converge. For
#: :class:`Coordinate` 1 to 1.95 take as many sweeps.
RELAXATION = 1.8

Point = TypeVar("Point", bound=Evaluation)


def analytic_update(log_weights: Array, gains: Array, domain: Domain) -> Array:
    """Return the log-weights after one update; kernels without weight or gain stay at zero."""
    with np.errstate(divide="ignore"):
        # Gains may be negative, for a tilted loss or by rounding; their kernels get no weight.
        log_strength = 2.0 * log_weights + np.log(np.maximum(gains, 0.0))
    return domain.balance(log_strength) if np.isfinite(log_strength).any() else log_weights


def relaxed_update(weights: Array, gains: Array, domain: Domain, relaxation: float) -> Array:
    """Return ``log β + ω (log β⁺ − log β)`` with ω = `relaxation`, scaled onto the boundary.

    The plain update, ω = 1, is cautious, most of all near p = 1 where it is ``β_j ∝ β_j √g_j``;
    over-relaxation, 1 < ω < 2, takes fewer updates.
    """
    if not (weights * gains > 0.0).any():
        return weights
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.log(weights)
        step = analytic_update(before, gains, domain) - before
    alive = np.isfinite(step)
    after = np.where(alive, before + relaxation * np.where(alive, step, 0.0), -np.inf)
    return domain.onto_boundary(np.exp(after - after.max()))


def settled(point: Point, domain: Domain, evaluate: Callable[[Array], Point]) -> Point:
    """Return the point with weights that tend to zero set to zero, unless F is higher."""
    if not (point.gains > 0.0).any():
        return point
    weights = domain.settle(point.weights, point.gains)
    if not weights.any() or np.array_equal(weights, point.weights):
        return point
    other = evaluate(domain.onto_boundary(weights))
    return other if other.value <= point.value else point


# -- Analytic: weights in closed form between two fits of the discriminant ------------------------
#
# Evaluations of the loss alternate with the analytic update, for any p ≥ 1. Yan 2012 reports
# numerical trouble close to p = 1; here weights are stored as logarithms.


@dataclass(frozen=True)
class Analytic(Solver, name="analytic"):
    """Alternate between the discriminant and the closed form of its best weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> model = MKFDA(p=1.5, solver="analytic").fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged
    True
    """

    # Maximum number of updates: convergence is linear, and slow near p = 1.
    default_max_iter = 5000

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        with np.errstate(divide="ignore"):
            log_weights = np.log(base.start_or_uniform(start, loss, domain))
            while not run.record(point := loss.evaluate(np.exp(log_weights))):
                # The loss may have raised a weight that was too small for it.
                log_weights = np.maximum(log_weights, np.log(point.weights))
                updated = analytic_update(log_weights, point.gains, domain)
                if np.array_equal(updated, log_weights):
                    return "no kernel has a gain, or the weights do not change any more"
                log_weights = updated
        return None


# -- The dual problem with the kernel weights eliminated, by L-BFGS -------------------------------
#
# F is a maximum over α, and for given α the best weights are known: minimising
# ``tr(Hᵀα) − ¼‖α‖² − (1/4λ) Σ_j β_j s_j`` with ``s_j = tr(αᵀK_jα)`` over β ∈ B gives
#
#     max_α  tr(Hᵀα) − ¼‖α‖² − (1/4λ) σ_B(s)                                       Ivanov
#     max_α  tr(Hᵀα) − ¼‖α‖² − (1/64μλ³) σ_B(s)²                                   Tikhonov
#
# with ``σ_B(s) = ‖s‖_q``, smooth for p > 1 (Yan 2012 (26) and Vishwanathan et al. 2010). In the
# first the weights are in the unit ball; in the second they are free and ``(μ/2)‖β‖_p²`` is added
# to ``F/2λ`` (Yan 2012 (25), with C = 1/λ and α scaled by C/2). The weights that belong to α are
#
#     β = ρ · argmax_{b ∈ B} b·s ,    ρ = 1  or  ρ = σ_B(s)/(8μλ²)
#
# that is, ``β_j = ρ s_j^{q/p}/‖s‖_q^{q/p}``. Both are one problem: the Tikhonov solution of (λ, μ)
# is ρ times the solution in the unit ball for λ/ρ, and the solution in the unit ball is the
# Tikhonov solution for ``μ = ‖g‖_q/2λ``.
#
# The Hessian in α is close to ``−½A(β)``, as badly conditioned as the kernels. So the variable
# is ``z = Rα`` with a Cholesky factor A = RᵀR at the current weights, which makes it a multiple
# of the identity near the solution. After some steps of L-BFGS, each a product with every
# kernel, F is evaluated at the weights of α, which gives the true gap and the next factor.


# L-BFGS stops where a step gains less than this fraction of the tolerance. Measured on 24 small
# problems: 1 takes a third more factorisations, 1e-4 no fewer.
_PART_OF_TOL = 1e-2

#: Maps σ_B(s)/λ to its term in the dual objective, and the derivative of that.
Penalty = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class Dual(Solver, name="dual"):
    """L-BFGS on the dual problem without weights, 1 < p ≤ ∞.

    Parameters
    ----------
    n_steps : int, default=50
        Steps of L-BFGS between two factorisations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> X, y = load_iris(return_X_y=True)
    >>> MKFDA(p=1.5, solver="dual").fit(X, y).n_inner_solves_ < 10
    True
    """

    n_steps: int = 50

    needs = (base.square_loss, base.fixed_regularization, base.smooth_norm)
    # Maximum number of factorisations; a few suffice unless rounding errors are large.
    default_max_iter = 200

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> None:
        assert isinstance(loss, SquareLoss)
        weights, bound = base.start_or_uniform(start, loss, domain), base.NO_BOUND
        while not run.record(point := loss.evaluate(weights), bound=bound):
            weights, bound = _ascend(loss, domain, point, _in_unit_ball, self.n_steps, run.tol)


@dataclass(frozen=True)
class TikhonovSolution:
    """Free kernel weights that minimise ``F(β)/2λ + (μ/2)‖β‖_p²``, with a certificate.

    `radius` is ``‖weights‖_p``; ``weights/radius`` is the minimiser in the unit ball for
    ``λ/radius``. `evaluation` is the loss F at the weights.
    """

    weights: Array
    radius: float
    certificate: Certificate
    evaluation: SquareEvaluation


def tikhonov(
    loss: SquareLoss,
    p: float,
    mu: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    n_steps: int = 50,
) -> TikhonovSolution:
    """Minimise the loss with a penalty on the norm of the weights, Yan 2012 (25) and (26).

    Parameters
    ----------
    loss : SquareLoss
    p : float > 1
        Norm of the weights.
    mu : float > 0
        Penalty of the squared norm, μ.
    tol : float, default=1e-6
        Relative gap at which to stop.
    max_iter : int, default=200
        Maximum number of factorisations.
    n_steps : int, default=50
        Steps of L-BFGS between two factorisations.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.losses.square import SquareLoss
    >>> from manykernels.solvers import tikhonov
    >>> stack = KernelStack.from_arrays([np.diag([1.0, 0, 0]), np.diag([0, 1.0, 1.0])])
    >>> loss = SquareLoss(stack, np.array([[2.0], [-1], [-1]]), 1.0)
    >>> solution = tikhonov(loss, p=2, mu=0.1)
    >>> solution.certificate.converged, bool(solution.weights[0] > solution.weights[1])
    (True, True)
    """
    if not 0.0 < mu < np.inf:
        raise ValueError(f"mu must be positive and finite, got {mu!r}.")
    domain = lp_domain(p)
    base.refuse_unfit(Dual(), base.Problem(loss.spec, domain, tol))
    factor = 1.0 / (2.0 * loss.reg)  # from F to the units of Yan 2012

    def penalty(support: float) -> tuple[float, float]:
        curvature = 1.0 / (64.0 * mu * loss.reg)
        return curvature * support**2, 2.0 * curvature * support

    weights, bound = domain.start(loss.n_kernels), -np.inf
    for _ in range(max_iter):
        point = loss.evaluate(weights)
        radius = domain.gauge(weights)
        primal = factor * point.value + 0.5 * mu * radius**2
        certificate = Certificate(primal, bound, primal - bound, tol)
        if certificate.converged:
            break
        weights, ascended = _ascend(loss, domain, point, penalty, n_steps, tol)
        bound = max(bound, factor * ascended.value)
    return TikhonovSolution(point.weights, radius, certificate, point)


def _in_unit_ball(support: float) -> tuple[float, float]:
    return 0.25 * support, 0.25


def _ascend(
    loss: SquareLoss,
    domain: Domain,
    point: SquareEvaluation,
    penalty: Penalty,
    n_steps: int,
    tol: float,
) -> tuple[Array, base.Bound]:
    """Return weights and bound of α after L-BFGS steps from the inner solution at `point`."""
    targets = loss.rotated_targets
    size = float(np.sum(targets**2))

    def negative(flat: Array) -> tuple[float, Array]:
        alpha = point.unwhiten(flat.reshape(targets.shape))
        products = loss.products(alpha)  # K_jα/λ
        strengths = np.einsum("jik,ik->j", products, alpha)
        term, slope = penalty(domain.support(strengths))
        value = np.sum(targets * alpha) - 0.25 * np.sum(alpha**2) - term
        # ∂σ_B/∂s are the weights where σ_B is attained, ∂s_j/∂α = 2K_jα.
        combined = np.einsum("j,jik->ik", domain.maximizer(strengths), products)
        gradient = targets - 0.5 * alpha - 2.0 * slope * combined
        return -value / size, -point.whiten(gradient).ravel() / size

    # z = Rα for α = 2U, since RᵀR U = H.
    start = 2.0 * point.whiten(targets)
    result = optimize.minimize(
        negative,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": n_steps, "ftol": _PART_OF_TOL * tol * point.value / size, "gtol": 0.0},
    )
    alpha = point.unwhiten(result.x.reshape(targets.shape))
    strengths = np.einsum("jik,ik->j", loss.products(alpha), alpha)
    _, slope = penalty(domain.support(strengths))
    bound = base.Bound(float(-result.fun * size), loss.dual_of(alpha / np.sqrt(2.0)))
    return 4.0 * slope * domain.maximizer(strengths), bound


# -- SimpleMKL: steps along the reduced gradient of F on a simplex --------------------------------
#
# Rakotomamonjy, Bach, Canu and Grandvalet (2008), "SimpleMKL", JMLR 9, algorithm 1. The shares
# ``s_j = r_j β_j`` of the budget, r_j being the prices of the domain, lie on the unit simplex,
# and ``∂F/∂s_j = −g_j/r_j``. The largest share µ is the remainder, ``s_µ = 1 − Σ_{j≠µ}
# s_j``. So the gradient in the others, the reduced gradient, is ``ρ_j = ∂F/∂s_j − ∂F/∂s_µ``, and
# the direction D is its negative where that stays in the simplex:
#
#     D_j = 0  if s_j = 0 and ρ_j > 0,    D_j = −ρ_j  for the other j ≠ µ,    D_µ = −Σ_{j≠µ} D_j
#
# F has slope ``−Σ_{j≠µ} D_j²`` along it. The longest step is ``γ = min {−s_j/D_j : D_j < 0}``,
# where the share ν vanishes. If F is lower there, the step is taken and the search continues from
# there with ``D_ν = 0`` and ``D_µ = −Σ_{j≠µ} D_j`` to the next share that vanishes, until F
# falls no more or µ has vanished: each kernel that leaves costs one value of F. (Algorithm 1 is
# to be read such that D keeps the sum zero.) A golden section search between the last two points
# ends the iteration.
#
# Here a value of F comes with its gradient, and F is convex, which the paper uses less. The line
# search ends where the slope has become small, or where F could fall by no more than rounding
# error, and no step is tried along which F rises at once. Where values differ by rounding error
# only, a negative slope at the end shows that F falls: otherwise a tiny share would stop the
# method, as F does not change visibly until it has vanished. So no threshold for zero shares is
# needed.
#
# Like steepest descent, the method is slow in the last digits of the weights.


_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# Maximum number of trials of a line search; they shrink the interval to 0.618^60 = 3e-13.
_MOST_TRIALS = 60


@dataclass(frozen=True)
class ReducedGradient(Solver, name="reduced-gradient"):
    """SimpleMKL for any loss, p = 1.

    Parameters
    ----------
    precision : float, default=0.1
        The line search ends when the relative error of the step, or the relative slope, has
        fallen to this value.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA, rbf_grid
    >>> model = MKFDA(rbf_grid([0.5, 2, 8]), p=1, solver="reduced-gradient", tol=1e-4)
    >>> model.fit(*load_iris(return_X_y=True)).certificate_.converged
    True
    """

    precision: float = 0.1

    needs = (base.on_a_simplex,)
    # Maximum number of iterations, as in the code of the authors, whose tolerance is a relative
    # gap of 1e-2.
    default_max_iter = 500

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        assert isinstance(domain, Simplex)
        prices = domain.prices(loss.n_kernels)

        def evaluate(shares: Array) -> _Point:
            run.n_inner_solves += 1
            return _Point.at(shares, loss, prices)

        point = evaluate(base.start_or_uniform(start, loss, domain) * prices)
        while not run.record(point.evaluation, 0):
            following = self._descend(evaluate, point)
            if following is point:
                return "no step along the reduced gradient lowers the loss any more"
            point = following
        return None

    def _descend(self, evaluate: _AtShares, point: _Point) -> _Point:
        """Return a point with a lower F, or `point` if none is found."""
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
        """Return a point close to the lowest one up to `longest`, or `point` if none is lower."""
        slope = point.slope(direction)
        low, high, best = 0.0, longest, point
        left = right = None
        for _ in range(_MOST_TRIALS):
            # Bound on the decrease of F between here and its minimum.
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
        # Rounding errors would accumulate over many steps.
        shares = shares / shares.sum()
        evaluation = loss.evaluate(shares / prices)
        return cls(shares, evaluation.value, -evaluation.gains / prices, evaluation)

    def slope(self, direction: Array) -> float:
        return float(self.gradient @ direction)


_AtShares = Callable[[Array], _Point]


def _direction(point: _Point, reference: int) -> Array:
    """Return the direction D of SimpleMKL."""
    reduced = point.gradient - point.gradient[reference]
    return _balanced(np.where((point.shares > 0.0) | (reduced < 0.0), -reduced, 0.0), reference)


def _balanced(direction: Array, reference: int) -> Array:
    """Return the direction with the reference entry changed such that it sums to zero."""
    direction[reference] = 0.0
    direction[reference] = -direction.sum()
    return direction


def _longest_step(shares: Array, direction: Array) -> tuple[float, int]:
    """Return the longest step with non-negative shares, and the share that vanishes there."""
    falling = np.flatnonzero(direction < 0.0)
    steps = -shares[falling] / direction[falling]
    first = int(np.argmin(steps))
    return float(steps[first]), int(falling[first])


def _moved(shares: Array, direction: Array, step: float, vanishing: int | None = None) -> Array:
    """Return the shares after a step; a vanishing share is exactly zero."""
    shares = np.maximum(shares + step * direction, 0.0)
    if vanishing is not None:
        shares[vanishing] = 0.0
    return shares


def _falls(point: _Point, corner: _Point, direction: Array) -> bool:
    """Return True if F falls from `point` to `corner`, which lies in that direction."""
    if corner.value < point.value:
        return True
    equal = corner.value <= point.value + ACCUMULATED * abs(point.value)
    return equal and corner.slope(direction) <= 0.0
