"""The semidefinite programs of Ye 2008, by an interior-point method made for them.

With ``A(θ) = A_0 + Σ_i θ_i M_i`` (``A_0 = I, M_i = K_i/λ``, or with λ learnt ``A_0 = 0`` and the
identity among the M_i) and prices r_i on a simplex, ``Σ_i r_iθ_i ≤ 1``,

    min_{θ,t} Σ_k t_k   s.t.  [[A(θ), h_k], [h_kᵀ, t_k]] ⪰ 0  for every k            exact
    min_{θ,t} Σ_k t_k   s.t.  [[A(θ), H], [Hᵀ, diag(t)]] ⪰ 0                    approximate

The exact program is (8) for two classes and (29) for more (Theorems 2.1 and 3.1), with λ learnt
(41) and the exact version of (45); the approximate one is (32), and (45) as it stands.

General conic solvers are slow here: to Clarabel 0.11 the cone is a dense block of
((m+1)(m+2)/2)² numbers, and ten kernels take it 2 s at m = 50 and 42 s at m = 100. A step of
:mod:`~manykernels.solvers.papers._central_path` takes one Cholesky factorisation, m×m.

In the notation there, any X ⪰ 0 with diag X = 1 proves

    Σ_k t_k − optimum ≤ tr(XT) + max_i tr(XD_i) − Σ_i θ_i tr(XD_i)

Hence (32) is ``min_θ max_X tr(X HᵀA⁻¹H)`` over correlation matrices X. The exact program has
X = I, one of them, so its optimum is the smaller one; and (32) depends on the choice of columns of
H, where the exact program does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._rounding import ROUNDING
from ...domains import Array, Domain
from ...losses.base import Loss, Outline
from ...losses.square import SquareLoss
from .._needs import Expensive, affordable, on_a_simplex, square_loss
from ..run import Run
from ._central_path import CentralPath

# Proven relative distance to the optimum of (32) at which its solver stops; and above which the
# status reports it, the default tolerance of solvers.
_ACCURACY = 1e-9
_WORTH_TELLING = 1e-6
# Steps without a smaller distance before it gives up: near rounding error distances rise and fall.
_MOST_SETBACKS = 10
# The usual 25 steps, and dense operations on one core. Measured.
_MINUTES_PER_FLOP = 25 * 1e-12


@dataclass(frozen=True)
class SDP(Expensive, name="sdp"):
    """Semidefinite program of Ye 2008, one constraint per class, p = 1: (8), (29), (41).

    Large problems are refused unless ``force=True``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> model = MKFDA(p=1, reg="joint", solver="sdp").fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged
    True
    """

    needs = (square_loss, on_a_simplex, affordable)
    # Interior-point steps; four times the usual number.
    default_max_iter = 100

    def cost(self, outline: Outline) -> tuple[float, float]:
        m, n, k = float(outline.n_samples), outline.n_kernels, outline.n_outputs
        flops = 2.0 * m**3 / 3.0 + n * (6.0 * k + 4.0) * m**2 + 2.0 * n**2 * k * m
        return 8.0 * (m**2 + 4.0 * n * k * m), _MINUTES_PER_FLOP * flops

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        path = CentralPath(loss, run, np.eye(loss.outline.n_outputs), coupled=False)
        iterate = path.start()
        while not run.record(loss.evaluate(path.settled(iterate))):
            finished = iterate.distance <= ROUNDING * iterate.value
            following = None if finished else path.advance(iterate)
            if following is None:
                # A weight that was set to zero may be a small one.
                if run.record(loss.evaluate(iterate.shares / path.prices)):
                    break
                return (
                    f"the interior-point method cannot go on after {run.history[-1].iteration} "
                    f"steps, at a proven relative distance of {run.certificate.rel_gap:.1e}"
                )
            iterate = following
        return ""


@dataclass(frozen=True)
class SDPApprox(SDP, name="sdp-approx"):
    """Semidefinite program of Ye 2008, one constraint for all classes, p = 1: (32), (45).

    For more than two classes its solution is not that of the exact program; the certificate tells
    how much worse it is at most.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = (X[:, 0] > -0.5).astype(int) + (X[:, 1] > 0.5)
    >>> approximate = MKFDA(p=1, solver="sdp-approx", tol=0.5).fit(X, y).certificate_
    >>> exact = MKFDA(p=1, solver="sdp").fit(X, y).certificate_
    >>> exact.primal < approximate.primal < exact.primal + approximate.gap
    True
    """

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        if len(loss.rotation) == 1:
            # With one column of H the programs are the same.
            return super()._minimize(loss, domain, run, start)
        path = CentralPath(loss, run, loss.rotation, coupled=True)
        iterate = best = path.start()
        n_steps = n_best = 0
        while best.distance > _ACCURACY * best.value and n_steps < run.max_iter:
            following = path.advance(iterate)
            if following is None or n_steps - n_best == _MOST_SETBACKS:
                break
            iterate, n_steps = following, n_steps + 1
            if iterate.distance < best.distance:
                best, n_best = iterate, n_steps
        # A run returns the point of least F, which is not what (32) minimises: record only one.
        run.record(loss.evaluate(path.settled(best)))
        status = "the single constraint (32) is an approximation"
        if (relative := best.distance / best.value) > _WORTH_TELLING:
            status += f", solved to {relative:.1e} after {n_steps} steps"
        return status
