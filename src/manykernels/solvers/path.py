"""Many norms and regularisations of one problem, each solved from its neighbours.

At the solution for ``‖β‖_p ≤ 1`` the gains and the weights determine each other, ``β`` being
where ``b·g`` is largest over the ball, and along p the logarithms of the gains are smooth, down
from p = ∞ where all weights are 1. A polynomial in 1/p through the last few solutions tells the
gains at the next p, and so weights to start from, often within the tolerance. (At p = 1 the
weights are not determined by the gains: their own logarithms are continued.)

All regularisations are walked side by side: for each p, one pass over the kernels makes the
sums of all of them, and another the products (:func:`~manykernels.losses.square.evaluate_all`).
Each point then takes Newton steps until its own gap is closed. A step that the loss rejects
is left to :class:`~manykernels.solvers.Newton`, with all its safeguards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..domains import Array, Domain, LpBall, lp_domain
from ..losses.base import Certificate, KernelOperator
from ..losses.square import NotPositiveDefiniteError, SquareLoss, evaluate_all
from ..losses.square_evaluation import SquareEvaluation
from .base import Bound, Walk
from .newton import Model, Newton, improves

#: The norms of Yan 2012, section 3.3; their 10⁶ is ∞ here.
PAPER_NORMS = (1.0, *(1.0 + 2.0**-k for k in range(6, 0, -1)), 2.0, 3.0, 4.0, 8.0, np.inf)

# Regularisations walked side by side: each keeps a factor of all samples in memory.
_SIDE_BY_SIDE = 5
# Solutions that the next one is foretold from.
_N_MEMORIES = 4
_LEAST_LOG = np.log(1e-12)


@dataclass(frozen=True)
class GridPoint:
    """One solved point of the grid; `evaluation` is fresh, so that its factor is at hand."""

    norm_index: int
    reg_index: int
    loss: SquareLoss = field(repr=False)
    evaluation: SquareEvaluation = field(repr=False)
    certificate: Certificate
    n_inner_solves: int


#: Called at every point as soon as it is solved; a true answer ends the walk.
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
        Takes each :class:`GridPoint` when it is solved; a true answer ends the walk.
    sample_weight : ndarray of shape (m,), optional
    tol : float, default=1e-5
        Relative gap of every point.
    max_iter : int, default=50
        Most Newton steps at a point.
    """
    # Large λ first: neighbours in memory are neighbours in difficulty.
    reg_order = np.argsort(regs)[::-1].tolist()
    failures: list[str] = []
    for start in range(0, len(reg_order), _SIDE_BY_SIDE):
        some = reg_order[start : start + _SIDE_BY_SIDE]
        losses = {j: SquareLoss(kernels, targets, float(regs[j]), sample_weight) for j in some}
        memories = {j: _Memory() for j in some}
        for i in np.argsort(ps)[::-1].tolist():
            domain = lp_domain(float(ps[i]))
            walks = {j: Walk(domain, tol, max_iter, None) for j in some}
            starts = {j: memories[j].foretell(float(ps[i]), domain, losses[j]) for j in some}
            points = _solve_together(losses, domain, walks, starts, failures)
            for j, point in points.items():
                walk = walks[j]
                memories[j].add(float(ps[i]), point)
                found = GridPoint(i, j, losses[j], point, walk.certificate, walk.n_inner_solves)
                if visit(found):
                    return failures
    return failures


def _solve_together(
    losses: dict[int, SquareLoss],
    domain: Domain,
    walks: dict[int, Walk],
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
                solved[j] = _solve_alone(losses[j], domain, walks[j], points[j])
                continue
            points[j] = candidate
            if walks[j].arrive(candidate):
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
    loss: SquareLoss, domain: Domain, walk: Walk, point: SquareEvaluation
) -> SquareEvaluation:
    left = max(walk.max_iter - len(walk.history), 1)
    alone = Newton().solve(loss, domain, tol=walk.tol, max_iter=left, start=point.weights)
    final = alone.evaluation
    assert isinstance(final, SquareEvaluation)
    proved = Bound(alone.certificate.dual, alone.certificate.dual_point)
    walk.arrive(final, 1 + alone.n_inner_solves, bound=proved)
    return final


class _Memory:
    """Solutions along p for one λ, and what they say of the next."""

    def __init__(self) -> None:
        self._positions: list[float] = []
        self._log_gains: list[Array] = []
        self._log_weights: list[Array] = []

    def add(self, p: float, point: SquareEvaluation) -> None:
        if self._positions and self._positions[0] == 1.0 / p:
            return
        tiny = np.finfo(float).tiny
        with np.errstate(divide="ignore"):
            log_weights = np.maximum(np.log(point.weights), _LEAST_LOG)
        self._positions = [1.0 / p, *self._positions[: _N_MEMORIES - 1]]
        log_gains = np.log(np.maximum(point.gains, tiny))
        self._log_gains = [log_gains, *self._log_gains[: _N_MEMORIES - 1]]
        self._log_weights = [log_weights, *self._log_weights[: _N_MEMORIES - 1]]

    def foretell(self, p: float, domain: Domain, loss: SquareLoss) -> Array:
        """Weights to start from at p."""
        if not self._positions:
            return domain.start(loss.n_kernels)
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
