"""Outer Newton: second-order steps in weight space, the default solver.

At β the loss gives F, ``g = −∇F`` and ``Q = ∇²F`` for one factorisation of an m×m matrix. The
next point minimises the quadratic model over the whole weight domain,

    min_x  −g·(x − β) + ½ (x − β)ᵀ Q (x − β)   s.t.  x ∈ B

an n-dimensional conic program, followed by a backtracking line search on F. (A loss may offer a
better Q than ∇²F, see ``model_hessian``.) The gap is tested before the Hessian is asked for, so
the last iteration needs none. The start is the minimiser of a coarse loss where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Evaluation, Loss
from .base import Observer, Progress, Solution, certify
from .quadratic import minimize_quadratic

_ARMIJO = 1e-4
_MAX_BACKTRACKS = 12
# Changes of F below this fraction are rounding and cannot be judged by a line search.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Newton:
    """Outer Newton solver.

    Parameters
    ----------
    coarse_tol : float, default=1e-3
        Relative gap to which the coarse problem is solved for the start.
    """

    coarse_tol: float = 1e-3

    def solve(
        self,
        loss: Loss,
        domain: Domain,
        *,
        tol: float = 1e-6,
        max_iter: int = 50,
        start: Array | None = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Minimise `loss` over `domain` to the relative gap `tol`."""
        if start is None:
            start = self._coarse_start(loss, domain, max_iter)
        point = loss.evaluate(start)
        n_inner_solves = 1
        history: list[Progress] = []
        while True:
            progress = Progress(len(history), n_inner_solves, certify(point, domain, tol))
            history.append(progress)
            stop = observer is not None and observer(progress)
            if stop or progress.certificate.converged or progress.iteration >= max_iter:
                break
            target = self._model_minimizer(point, domain)
            following, n_trials = self._line_search(loss, point, target)
            n_inner_solves += n_trials
            if following is None:
                break
            point = following
        return Solution(
            weights=point.weights,
            certificate=progress.certificate,
            evaluation=point,
            n_iter=len(history),
            n_inner_solves=n_inner_solves,
            history=history,
        )

    def _coarse_start(self, loss: Loss, domain: Domain, max_iter: int) -> Array:
        start = domain.start(loss.n_kernels)
        if domain.start_is_optimal or loss.n_kernels == 1:
            return start
        coarse = loss.coarse()
        if coarse is None:
            return start
        return self.solve(coarse, domain, tol=self.coarse_tol, max_iter=max_iter).weights

    @staticmethod
    def _model_minimizer(point: Evaluation, domain: Domain) -> Array:
        quadratic = point.model_hessian()
        linear = -point.gains - quadratic @ point.weights
        target = minimize_quadratic(linear, quadratic, domain)
        if target is None or point.gains @ (target - point.weights) <= 0.0:
            # Never worse than a step of the conditional gradient, which always descends.
            target = domain.maximizer(point.gains)
        return target

    @staticmethod
    def _line_search(
        loss: Loss, point: Evaluation, target: Array
    ) -> tuple[Evaluation | None, int]:
        """First point from `target` back to `point` that lowers F enough, and trials made."""
        direction = target - point.weights
        slope = -float(point.gains @ direction)
        step = 1.0
        for trial in range(1, _MAX_BACKTRACKS + 1):
            candidate = loss.evaluate(point.weights + step * direction)
            allowed = point.value + _ARMIJO * step * slope + _ROUNDING * abs(point.value)
            if candidate.value <= allowed:
                return candidate, trial
            # Minimiser of the parabola through F, its slope and the rejected value.
            curvature = 2.0 * (candidate.value - point.value - step * slope) / step**2
            step = float(np.clip(-slope / curvature, 0.1 * step, 0.5 * step))
        return None, _MAX_BACKTRACKS
