"""One iteration of Newton's method: from a point to one where F is lower.

Four kinds of step are tried in turn; the first that succeeds ends the iteration.
"""

from __future__ import annotations

import numpy as np

from .._rounding import ACCUMULATED, ROUNDING
from ..domains import Array, Domain
from ..losses.base import Evaluation, Loss
from .certificate import NO_BOUND, certify
from .cuts import Cuts
from .model import Model
from .updates import analytic_update

# Part of the slope by which F has to fall: the usual value (Nocedal and Wright 2006, section 3.1).
_ARMIJO = 1e-4
# Relative differences of F below this may be rounding, two digits more than a factorisation
# loses; slopes decide there. Measured as in `model`: 1e-12 to 1e-8 alike.
_INDISTINGUISHABLE = 100.0 * ACCUMULATED
# Relative rise of F that is allowed where the gap halves: a tenth of the usual tolerance.
# Measured: 1e-9 takes 3 % more inner solves, 1e-5 as many.
_MOST_RISE = 1e-7
# Limit on trials in one iteration, for where rounding hides all progress; and the trial from which
# on curvatures shrink. Measured: half and double of either alike.
_MOST_TRIALS = 16
_TRIALS_BEFORE_SOFTENING = 5
# The analytic update is accepted if F falls by this part of what the slope of the Newton step
# promised. Measured: 0.1 takes 4 % more inner solves, 0.9 takes 19 % more.
_WORTHWHILE = 0.3


class Search:
    """One iteration from `point`; `cuts` holds its cut already, and rejected trials add theirs.

    Afterwards `n_solves` is the number of evaluations of the loss, `bound` the best lower bound
    that the cuts have proved, and `next_scale` the `scale` of the curvatures of the next model.
    """

    def __init__(
        self, loss: Loss, domain: Domain, point: Evaluation, cuts: Cuts, tol: float, scale: float
    ) -> None:
        self._loss, self._domain, self._tol = loss, domain, tol
        self._point, self._cuts = point, cuts
        self._model = Model.at(point, domain, scale)
        self._target = self._model.minimizer()
        self._lowest: Evaluation | None = None
        self.n_solves, self.bound, self.next_scale = 0, NO_BOUND, 1.0

    def run(self) -> Evaluation | None:
        """The next point; `point` itself if its gap is proved to be within `tol`; or None."""
        steps = (self._newton_step, self._analytic_step, self._cut_steps, self._lowest_trial)
        return next((found for step in steps if (found := step()) is not None), None)

    def _newton_step(self) -> Evaluation | None:
        """The minimiser of the quadratic model, if F falls enough: :func:`improves`."""
        accepted = self._attempt(soften=False)
        if accepted is not None:
            self.next_scale = self._model.next_scale(accepted)
        return accepted

    def _analytic_step(self) -> Evaluation | None:
        """The analytic update, for where λ is so small that Hessians are mostly rounding error."""
        point = self._point
        with np.errstate(divide="ignore"):
            log_weights = np.log(point.weights)
        updated = self._evaluate(np.exp(analytic_update(log_weights, point.gains, self._domain)))
        promised = float(point.gains @ (self._target - point.weights))
        least = max(promised, ROUNDING * abs(point.value))
        if updated.value <= point.value - _WORTHWHILE * least:
            return updated
        self._reject(updated)
        return None

    def _cut_steps(self) -> Evaluation | None:
        """Minimisers of the greatest of the cuts plus the quadratic, a bundle method.

        Every rejected trial adds a cut. Curvatures shrink after some trials, as the cuts then
        describe F better than the curvature of one side of a kink. The multipliers of the cuts
        prove a lower bound, which may show that the point is good enough where its own gap does
        not. Support vector machines with a small C need this.
        """
        for trial in range(1, _MOST_TRIALS):
            if self._aim_above_cuts():
                return self._point
            accepted = self._attempt(soften=trial >= _TRIALS_BEFORE_SOFTENING)
            if accepted is not None:
                return accepted
        return self._point if self._aim_above_cuts() else None

    def _lowest_trial(self) -> Evaluation | None:
        """The lowest rejected trial, if it lowers F at all."""
        lowest = self._lowest
        lower = lowest is not None and lowest.value < self._point.value - self._point.slack
        return lowest if lower else None

    def _aim_above_cuts(self) -> bool:
        """Find the next target; True if the cuts prove that the point is good enough."""
        self._target, bound = self._model.minimizer_above(self._cuts)
        self.bound = max(self.bound, bound)
        return certify(self._point, self._domain, self._tol, self.bound).exhausted

    def _attempt(self, *, soften: bool) -> Evaluation | None:
        """The target if F falls enough; else soften the model if `soften` or if nothing moves."""
        step = np.abs(self._target - self._point.weights).max()
        moves = step > ACCUMULATED * self._target.max()
        if moves:
            candidate = self._evaluate(self._target)
            if improves(candidate, self._point, self._domain):
                return candidate
            self._reject(candidate)
        if soften or not moves:
            self._model = self._model.softened()
        return None

    def _evaluate(self, weights: Array) -> Evaluation:
        self.n_solves += 1
        return self._loss.evaluate(weights)

    def _reject(self, trial: Evaluation) -> None:
        if self._lowest is None or trial.value < self._lowest.value:
            self._lowest = trial
        self._cuts.add(trial)


def improves(candidate: Evaluation, point: Evaluation, domain: Domain) -> bool:
    """Whether F falls enough from `point` to `candidate`.

    Either Armijo's condition holds; or, as differences of F close to the solution are rounding
    error where slopes and gaps are not, the same condition for the parabola through both slopes
    (Hager and Zhang 2005, (22)); or the gap halves and F hardly rises.
    """
    step = candidate.weights - point.weights
    slope, end_slope = -float(point.gains @ step), -float(candidate.gains @ step)
    if candidate.value <= point.value + _ARMIJO * slope:
        return True
    equal = candidate.value <= point.value + _INDISTINGUISHABLE * abs(point.value)
    if equal and end_slope <= (2.0 * _ARMIJO - 1.0) * slope:
        return True
    if candidate.value > point.value + _MOST_RISE * abs(point.value) + candidate.slack:
        return False
    gap, new_gap = (certify(place, domain, 0.0).gap for place in (point, candidate))
    return new_gap <= 0.5 * gap
