"""The dual problem with the kernel weights eliminated, by L-BFGS.

F is a maximum over α, and for given α the best weights are known: minimising
``tr(Hᵀα) − ¼‖α‖² − (1/4λ) Σ_j β_j s_j`` with ``s_j = tr(αᵀK_jα)`` over β ∈ B gives

    max_α  tr(Hᵀα) − ¼‖α‖² − (1/4λ) σ_B(s)                                       Ivanov
    max_α  tr(Hᵀα) − ¼‖α‖² − (1/64μλ³) σ_B(s)²                                   Tikhonov

with ``σ_B(s) = ‖s‖_q``, smooth for p > 1 (Yan 2012 (26) and Vishwanathan et al. 2010). In the
first the weights are in the unit ball; in the second they are free and ``(μ/2)‖β‖_p²`` is added
to ``F/2λ`` (Yan 2012 (25), with C = 1/λ and α scaled by C/2). The weights that belong to α are

    β = ρ · argmax_{b ∈ B} b·s ,    ρ = 1  or  ρ = σ_B(s)/(8μλ²)

that is, ``β_j = ρ s_j^{q/p}/‖s‖_q^{q/p}``. Both are one problem: the Tikhonov solution of (λ, μ)
is ρ times the solution in the unit ball for λ/ρ, and the solution in the unit ball is that of
Tikhonov for ``μ = ‖g‖_q/2λ``.

The Hessian in α is close to ``−½A(β)``, as badly conditioned as the kernels. So the variable is
``z = Rα`` with a Cholesky factor A = RᵀR at the current weights, which makes it a multiple of the
identity near the solution. After some steps of L-BFGS, each a product with every kernel, F is
evaluated at the weights of α, which gives the true gap and the next factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from ...domains import Array, Domain, lp_domain
from ...losses.base import Certificate, Loss
from ...losses.square import SquareLoss
from ...losses.square_evaluation import SquareEvaluation
from .._needs import fixed_regularization, smooth_norm, square_loss
from ..base import Problem, Solver, refuse_unfit, start_or_uniform
from ..certificate import NO_BOUND, Bound
from ..run import Run

# L-BFGS stops where a step gains less than this part of the tolerance. Measured on 24 small
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

    needs = (square_loss, fixed_regularization, smooth_norm)
    # Factorisations; a few are enough unless rounding errors are large.
    default_max_iter = 200

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> None:
        assert isinstance(loss, SquareLoss)
        weights, bound = start_or_uniform(start, loss, domain), NO_BOUND
        while not run.record(point := loss.evaluate(weights), bound=bound):
            weights, bound = _ascend(loss, domain, point, _in_unit_ball, self.n_steps, run.tol)


@dataclass(frozen=True)
class TikhonovSolution:
    """Free kernel weights that minimise ``F(β)/2λ + (μ/2)‖β‖_p²``, certified for this objective.

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
    """Kernel weights with a penalty on their norm instead of a bound, Yan 2012 (25) and (26).

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
        Limit on factorisations.
    n_steps : int, default=50
        Steps of L-BFGS between two factorisations.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.losses import SquareLoss
    >>> from manykernels.solvers import tikhonov
    >>> stack = KernelStack.from_arrays([np.diag([1.0, 0, 0]), np.diag([0, 1.0, 1.0])])
    >>> loss = SquareLoss(stack, np.array([[2.0], [-1], [-1]]), 1.0)
    >>> found = tikhonov(loss, p=2, mu=0.1)
    >>> found.certificate.converged, bool(found.weights[0] > found.weights[1])
    (True, True)
    """
    if not 0.0 < mu < np.inf:
        raise ValueError(f"mu must be positive and finite, got {mu!r}.")
    domain = lp_domain(p)
    refuse_unfit(Dual(), Problem(loss.outline, domain, tol))
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
        weights, found = _ascend(loss, domain, point, penalty, n_steps, tol)
        bound = max(bound, factor * found.value)
    return TikhonovSolution(point.weights, radius, certificate, point)


def tikhonov_strength(evaluation: SquareEvaluation, domain: Domain, reg: float) -> float:
    """The μ for which the minimiser over the unit ball is that of the Tikhonov form.

    The optimality conditions are ``g/2λ = μ ‖β‖_p ∇‖β‖_p``. At ``‖β‖_p = 1`` the dual norm of both
    sides gives ``μ = σ_B(g)/2λ``.
    """
    return domain.support(evaluation.gains) / (2.0 * reg)


def _in_unit_ball(support: float) -> tuple[float, float]:
    return 0.25 * support, 0.25


def _ascend(
    loss: SquareLoss,
    domain: Domain,
    point: SquareEvaluation,
    penalty: Penalty,
    n_steps: int,
    tol: float,
) -> tuple[Array, Bound]:
    """Weights and bound of α after some steps of L-BFGS from the inner solution at `point`."""
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
    found = optimize.minimize(
        negative,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": n_steps, "ftol": _PART_OF_TOL * tol * point.value / size, "gtol": 0.0},
    )
    alpha = point.unwhiten(found.x.reshape(targets.shape))
    strengths = np.einsum("jik,ik->j", loss.products(alpha), alpha)
    _, slope = penalty(domain.support(strengths))
    bound = Bound(float(-found.fun * size), loss.dual_of(alpha / np.sqrt(2.0)))
    return 4.0 * slope * domain.maximizer(strengths), bound
