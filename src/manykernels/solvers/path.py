"""Many norms and regularisations of one problem, each solved from its neighbours.

At the solution for ``‖β‖_p ≤ 1`` the gains and the weights determine each other, ``β`` being
where ``b·g`` is largest over the ball, and along p the logarithms of the gains are smooth, down
from p = ∞ where all weights are 1. A polynomial in 1/p through the last few solutions predicts
the gains at the next p, and so weights to start from, often within the tolerance. (At p = 1 the
weights are not determined by the gains: their own logarithms are extrapolated.)

All regularisations are solved side by side: for each p, one pass over the kernels makes the
sums of all of them, and another the products (:func:`~manykernels.losses.square.evaluate_all`).
Each point then takes Newton steps until its own gap is closed. Where the loss rejects a step,
:class:`~manykernels.solvers.Newton` with all its safeguards solves that point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .._rounding import ACCUMULATED, TINY
from ..domains import Array, Domain, LpBall, lp_domain
from ..losses.base import Certificate, KernelOperator
from ..losses.square import NotPositiveDefiniteError, SquareLoss, evaluate_all
from ..losses.square_evaluation import SquareEvaluation
from .certificate import Bound
from .model import Model
from .newton import Newton
from .run import Run
from .search import improves

#: The norms of Yan 2012, section 3.3; their 10⁶ is ∞ here.
PAPER_NORMS = (1.0, *(1.0 + 2.0**-k for k in range(6, 0, -1)), 2.0, 3.0, 4.0, 8.0, np.inf)

# Regularisations solved side by side. Each shares the passes over the kernels with the others and
# keeps an m×m factor in memory.
_SIDE_BY_SIDE = 5
# Degree of the polynomial in 1/p. Measured on three data sets of scikit-learn, 84 points each:
# degrees 1 to 4 take 142 to 159 evaluations in all; from the last solution, degree 0, 181 to 203.
_DEGREE = 3
# Weights below rounding have no logarithm to extrapolate.
_LEAST_LOG = np.log(ACCUMULATED)


@dataclass(frozen=True)
class GridPoint:
    """One solved point of the grid; `evaluation` is fresh, so that its factor is at hand."""

    norm_index: int
    reg_index: int
    loss: SquareLoss = field(repr=False)
    evaluation: SquareEvaluation = field(repr=False)
    certificate: Certificate
    n_inner_solves: int


#: Called at every point as soon as it is solved; a true answer skips the rest of the grid.
Visitor = Callable[[GridPoint], bool | None]


def walk_grid(
    kernels: KernelOperator,
    targets: Array,
    ps: Sequence[float] | Array,
    regs: Sequence[float] | Array,
    visit: Visitor,
    *,
    sample_weight: Array | None = None,
    tol: float = 1e-5,
    max_iter: int = 50,
) -> list[str]:
    """Solve the square loss for every p and λ, from large p to small.

    Returns what went wrong at points whose matrix could not be factorised, one sentence each;
    these are not visited.

    Parameters
    ----------
    kernels : KernelOperator
        Centred training kernels.
    targets : ndarray of shape (m, c)
    ps, regs : sequences of float
        In any order.
    visit : callable
        Takes each :class:`GridPoint` when it is solved; a true answer skips the rest of the grid.
    sample_weight : ndarray of shape (m,), optional
    tol : float, default=1e-5
        Relative gap of every point.
    max_iter : int, default=50
        Most Newton steps at a point.
    """
    # Large λ first: points solved side by side are then similar, and take similar numbers of
    # steps.
    reg_order = np.argsort(regs)[::-1].tolist()
    failures: list[str] = []
    for start in range(0, len(reg_order), _SIDE_BY_SIDE):
        some = reg_order[start : start + _SIDE_BY_SIDE]
        losses = {j: SquareLoss(kernels, targets, float(regs[j]), sample_weight) for j in some}
        predictors = {j: _Predictor() for j in some}
        for i in np.argsort(ps)[::-1].tolist():
            domain = lp_domain(float(ps[i]))
            runs = {j: Run(domain, tol, max_iter) for j in some}
            starts = {
                j: predictors[j].weights_at(float(ps[i]), domain, losses[j].n_kernels)
                for j in some
            }
            points = _solve_together(losses, domain, runs, starts, failures)
            for j, point in points.items():
                run = runs[j]
                predictors[j].add(float(ps[i]), point)
                found = GridPoint(i, j, losses[j], point, run.certificate, run.n_inner_solves)
                if visit(found):
                    return failures
    return failures


def _solve_together(
    losses: dict[int, SquareLoss],
    domain: Domain,
    runs: dict[int, Run],
    starts: dict[int, Array],
    failures: list[str],
) -> dict[int, SquareEvaluation]:
    """Newton steps of all problems in turn; the solutions of those that have one."""
    solved: dict[int, SquareEvaluation] = {}
    trials = starts
    points: dict[int, SquareEvaluation] = {}
    while trials:
        found = _evaluate_together(losses, trials, failures)
        trials = {}
        for j, candidate in found.items():
            if j in points and not improves(candidate, points[j], domain):
                solved[j] = _solve_alone(losses[j], domain, runs[j], points[j])
                continue
            points[j] = candidate
            if runs[j].record(candidate):
                solved[j] = candidate
            else:
                trials[j] = Model.at(candidate, domain).minimizer()
    return {j: solved[j] for j in losses if j in solved}


def _evaluate_together(
    losses: dict[int, SquareLoss], trials: dict[int, Array], failures: list[str]
) -> dict[int, SquareEvaluation]:
    """Evaluations of the losses that have one at their trial weights."""
    chosen = list(trials)
    try:
        together = evaluate_all([losses[j] for j in chosen], [trials[j] for j in chosen])
        return dict(zip(chosen, together, strict=True))
    except NotPositiveDefiniteError:
        found = {}
        for j in chosen:
            try:
                found[j] = losses[j].evaluate(trials[j])
            except NotPositiveDefiniteError as error:
                failures.append(str(error))
        return found


def _solve_alone(
    loss: SquareLoss, domain: Domain, run: Run, point: SquareEvaluation
) -> SquareEvaluation:
    """The solution by :class:`Newton` from a point whose step was rejected."""
    left = max(run.max_iter - len(run.history), 1)
    alone = Newton().solve(loss, domain, tol=run.tol, max_iter=left, start=point.weights)
    final = alone.evaluation
    assert isinstance(final, SquareEvaluation)
    proved = Bound(alone.certificate.dual, alone.certificate.dual_point)
    run.record(final, 1 + alone.n_inner_solves, bound=proved)
    return final


class _Predictor:
    """Solutions along p for one λ, and the weights that they predict at the next p."""

    def __init__(self) -> None:
        self._positions: list[float] = []
        self._log_gains: list[Array] = []
        self._log_weights: list[Array] = []

    def add(self, p: float, point: SquareEvaluation) -> None:
        """Add a solution, in the place of the oldest one."""
        if self._positions and self._positions[0] == 1.0 / p:
            return
        with np.errstate(divide="ignore"):
            log_weights = np.maximum(np.log(point.weights), _LEAST_LOG)
        self._positions = [1.0 / p, *self._positions[:_DEGREE]]
        self._log_gains = [np.log(np.maximum(point.gains, TINY)), *self._log_gains[:_DEGREE]]
        self._log_weights = [log_weights, *self._log_weights[:_DEGREE]]

    def weights_at(self, p: float, domain: Domain, n_kernels: int) -> Array:
        """Weights to start from at p."""
        if not self._positions:
            return domain.start(n_kernels)
        shares = _lagrange(self._positions, 1.0 / p)
        if isinstance(domain, LpBall):
            log_gains = shares @ np.array(self._log_gains)
            return domain.maximizer(np.exp(log_gains - log_gains.max()))
        log_weights = shares @ np.array(self._log_weights)
        return domain.onto_boundary(np.exp(log_weights - log_weights.max()))


def _lagrange(positions: list[float], at: float) -> Array:
    """Values at `at` of the polynomials that are 1 at one position and 0 at the others."""
    return np.array(
        [
            np.prod([(at - x) / (own - x) for x in positions if x != own], initial=1.0)
            for own in positions
        ]
    )
