"""SMO-MKL: pair steps on a dual without weights (Vishwanathan et al. 2010), for 1 < p ≤ ∞.

For given v the best weights are known, so the minimum over ``‖β‖_p ≤ 1`` of a support vector
machine's loss (:mod:`manykernels.losses.box`) is

    max_v  Q(v) − ½ ‖s(v)‖_q ,    s_j = Σ_k v_kᵀK_jv_k,   Q(v) = c·v − e Σ|v_i| − ½ Σ r_i v_i²

They pay for the squared norm of free weights instead, which makes it ``(1/8μ)‖s‖_q²``. One is
the other at its best μ,

    ½ ‖s‖_q = min_μ { ‖s‖_q²/(8μ) + μ/2 } ,   attained at  μ = ½ ‖s‖_q

and ``(v, μ) ↦ ‖s(v)‖_q²/(8μ)`` is convex, being y²/μ at the convex y = ‖s(v)‖_q ≥ 0. So pair
steps raise the objective at fixed μ, μ follows in closed form after each sweep, and the two find
the one maximum. With ``S = ‖s‖_q`` the slopes are those of a machine at the weights

    β_j = (S/2μ) (s_j/S)^{q−1} ,     G = c − Σ_j β_j K_jv − r∘v

and a pair is chosen as in :mod:`manykernels.smo.box`, as if they stayed. Along the pair each s_j
is a parabola, ``s_j + 2t a_j + t² b_j``, and the best t is found by Newton's method on one
variable, no further than the first bound. As β moves with every step, each costs a pass over
the products ``K_jv`` of all kernels, and over their columns of the two variables.

Between sweeps ``β = argmax_{b ∈ B} b·s``, which is the above at the best μ, and P and D at v are
the certificate. For p close to 1 that β is all but one kernel until s is known to many digits;
the method is slow there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._memory import allocate
from ..domains import Array, Domain, LpBall
from ..losses import BoxLoss
from ..losses.base import Loss
from ..losses.box_ascent import InexactBoxPoint
from ._needs import affordable, box_loss, fixed_regularization, smooth_norm
from .base import Need, Problem, Solver, Walk

_LEAST_CURVATURE = 1e-12
# Violations that are rounding, in parts of the largest slope.
_ROUNDING = 1e-14
# Measured: steps are bound by memory.
_MINUTES_PER_ENTRY = 1e-9 / 60.0
_SWEEPS_USUAL = 200


def _stack_size(solver: Solver, problem: Problem) -> str | None:
    outline = problem.outline
    m, n = float(outline.n_samples), outline.n_kernels
    entries = n * m**2
    minutes = _MINUTES_PER_ENTRY * _SWEEPS_USUAL * 4.0 * entries * outline.n_outputs
    return affordable(solver, problem, 8.0 * entries, minutes)


@dataclass(frozen=True)
class SMOMKL(Solver, name="smo-mkl"):
    """Pair steps on the dual of a support vector machine without weights, 1 < p ≤ ∞.

    All kernels are held in memory as they are, n·m² numbers.

    Parameters
    ----------
    force : bool, default=False
        Start whatever the estimates of memory and time.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.domains import lp_domain
    >>> from manykernels.losses import HingeLoss
    >>> from manykernels.solvers import SMOMKL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = np.sign(X[:, 0])
    >>> stack = KernelStack.from_arrays([np.outer(x, x) for x in X.T])
    >>> solution = SMOMKL().solve(HingeLoss(stack, y, 1.0), lp_domain(2))
    >>> solution.certificate.converged
    True
    """

    force: bool = False

    needs: ClassVar[tuple[Need, ...]] = (box_loss, fixed_regularization, smooth_norm, _stack_size)
    default_max_iter = 2000

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str:
        assert isinstance(loss, BoxLoss)
        point = loss.evaluate(domain.start(loss.n_kernels) if start is None else start)
        if walk.arrive(point):
            return ""
        if not (point.gains > 0.0).any():
            return "the machine at the start has no part in any kernel"
        ascent = _Ascent(loss, domain, point.dual)
        while ascent.sweep():
            gains = 0.5 * ascent.strengths
            products = np.moveaxis(ascent.products, 0, -1)
            weights = domain.maximizer(gains)
            found = InexactBoxPoint.of(loss, weights, ascent.v.T, products, ascent.n_steps)
            if walk.arrive(found, 0):
                return ""
        return "no pair step raises the dual any more"


class _Ascent:
    """v, the products and μ."""

    def __init__(self, loss: BoxLoss, domain: Domain, dual: Array) -> None:
        m, _, n = loss.kernels.shape
        self._loss = loss
        self._q = domain.q if isinstance(domain, LpBall) else 1.0
        self._kernels = allocate((n, m, m))
        for j in range(n):
            self._kernels[j] = loss.kernel(j)
        self._diagonals = np.ascontiguousarray(np.diagonal(self._kernels, axis1=1, axis2=2))
        self.v: Array = np.ascontiguousarray(dual.T)
        self.products: Array = np.array([self._kernels @ v for v in self.v])
        self.strengths: Array = self._strengths()
        self.n_steps = 0

    def _strengths(self) -> Array:
        strengths: Array = np.einsum("kjm,km->j", self.products, self.v)
        return np.maximum(strengths, 0.0)

    def sweep(self) -> bool:
        """As many steps as there are variables of each output, then μ; False if there are none."""
        from ..smo._mkl_loops import ascend_mkl, norm_and_weights

        weights = np.empty(len(self.strengths))
        mu = 0.5 * norm_and_weights(self.strengths, self._q, weights)
        if not mu > 0.0:
            return False
        least = _LEAST_CURVATURE * float((weights @ self._diagonals).max())
        any_taken = False
        for k, problem in enumerate(self._loss.problems):
            slopes = problem.linear - weights @ self.products[k]
            size = float(np.abs(slopes).max()) + float(np.abs(problem.linear).max())
            taken, _ = ascend_mkl(
                self._kernels,
                self._diagonals,
                problem.linear,
                problem.ridge,
                problem.lower,
                problem.upper,
                problem.width,
                self._q,
                mu,
                max(least, np.finfo(float).tiny),
                self.v[k],
                self.products[k],
                self.strengths,
                _ROUNDING * size,
                len(self.v[k]),
            )
            self.n_steps += taken
            any_taken = any_taken or taken > 0
        # What the steps have added up, without their rounding.
        self.strengths = self._strengths()
        return any_taken
