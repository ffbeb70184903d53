"""SMO-MKL: pair steps on a dual without weights (Vishwanathan et al. 2010), for 1 < p ≤ ∞.

For given v the best weights are known, so the minimum over ``‖β‖_p ≤ 1`` of a support vector
machine's loss (:mod:`manykernels.losses.svm`) is

    max_v  Q(v) − ½ ‖s(v)‖_q ,    s_j = Σ_k v_kᵀK_jv_k,   Q(v) = c·v − e Σ|v_i| − ½ Σ r_i v_i²

The paper penalises the squared norm of free weights instead, which makes the last term
``(1/8μ)‖s‖_q²``. One is the other at its best μ,

    ½ ‖s‖_q = min_μ { ‖s‖_q²/(8μ) + μ/2 } ,   attained at  μ = ½ ‖s‖_q

and ``(v, μ) ↦ ‖s(v)‖_q²/(8μ)`` is convex, being y²/μ at the convex y = ‖s(v)‖_q ≥ 0. So pair
steps at fixed μ, and the best μ after each sweep, converge to the maximum. With ``S = ‖s‖_q``
the slopes are those of a machine at the weights

    β_j = (S/2μ) (s_j/S)^{q−1} ,     G = c − Σ_j β_j K_jv − r∘v

and a pair is chosen as in :mod:`manykernels.smo.box`. Along the pair each s_j is a parabola,
``s_j + 2t a_j + t² b_j``, and the best t is found by Newton's method on one variable, up to the
first bound. As β changes with every step, each reads the products ``K_jv`` of all kernels and
their columns of the two variables.

Between sweeps ``β = argmax_{b ∈ B} b·s``, which is the above at the best μ, and P and D at v are
the certificate. The method is slow for p close to 1: there β has nearly all weight on one kernel
until s is accurate to many digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...domains import Array, Domain, LpBall
from ...losses.base import Loss, ProblemSpec
from ...losses.svm import BoxLoss, InexactBoxPoint
from ...utils.numerics import ACCUMULATED, ROUNDING, TINY, allocate
from .. import base
from ..base import Run

# Measured: number of sweeps of m steps; time of a sweep per kernel entry, 4 ns for four reads.
_USUAL_SWEEPS = 200
_MINUTES_PER_ENTRY = 4e-9 / 60.0


@dataclass(frozen=True)
class SMOMKL(base.Expensive, name="smo-mkl"):
    """Pair steps on the dual of a support vector machine without weights, 1 < p ≤ ∞.

    All kernels are in memory, n·m² numbers.

    Parameters
    ----------
    force : bool, default=False
        Whether to solve problems that are estimated to need more memory than is available or more
        than ten minutes. They are an error otherwise.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKSVC(p=2, solver="smo-mkl", tol=1e-4).fit(X[50:], y[50:])
    >>> model.solver_, model.certificate_.converged
    ('smo-mkl', True)
    """

    needs = (base.box_loss, base.fixed_regularization, base.smooth_norm, base.affordable)
    # Maximum number of sweeps of m steps; ten times the usual number.
    default_max_iter = 10 * _USUAL_SWEEPS

    def cost(self, spec: ProblemSpec) -> tuple[float, float]:
        entries = float(spec.n_samples) ** 2 * spec.n_kernels
        return 8.0 * entries, _MINUTES_PER_ENTRY * entries * spec.n_outputs * _USUAL_SWEEPS

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, BoxLoss)
        point = loss.evaluate(base.start_or_uniform(start, loss, domain))
        if run.record(point):
            return ""
        if not (point.gains > 0.0).any():
            return "no kernel has a gain at the start"
        ascent = _Ascent(loss, domain, point.dual)
        while ascent.sweep():
            gains = 0.5 * ascent.strengths
            products = np.moveaxis(ascent.products, 0, -1)
            weights = domain.maximizer(gains)
            current = InexactBoxPoint.of(loss, weights, ascent.v.T, products, ascent.n_steps)
            if run.record(current, 0):
                return ""
        return "no pair step raises the dual any more"


class _Ascent:
    """Dual variables v, their products with the kernels, and s; μ follows from s."""

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
        return np.asarray(np.maximum(np.einsum("kjm,km->j", self.products, self.v), 0.0))

    def sweep(self) -> bool:
        """Take as many steps per output as it has variables; return False if none is taken."""
        from ...smo.loops import ascend_mkl, norm_and_weights

        weights = np.empty(len(self.strengths))
        mu = 0.5 * norm_and_weights(self.strengths, self._q, weights)
        if not mu > 0.0:
            return False
        # The curvature of a pair of equal samples is zero up to rounding errors.
        least = ACCUMULATED * float((weights @ self._diagonals).max())
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
                max(least, TINY),
                self.v[k],
                self.products[k],
                self.strengths,
                ROUNDING * size,  # rounding error of the violations
                len(self.v[k]),
            )
            self.n_steps += taken
            any_taken = any_taken or taken > 0
        # Recomputed, as the steps have accumulated rounding errors.
        self.strengths = self._strengths()
        return any_taken
