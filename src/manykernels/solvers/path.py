"""Solutions for many norms and regularisations of one problem, each started from its neighbours.

The solution for ``‖β‖_p ≤ 1`` is where ``b·g`` is largest over the ball, and the logarithms of the
gains g are smooth in p, down from p = ∞ where all weights are 1. A polynomial in 1/p through the
last few solutions predicts the gains at the next p, and so initial weights, often within the
tolerance. (At p = 1 the gains do not determine the weights: log β itself is extrapolated.) Where
nearly the same problem has been solved, such as another fold, the difference from its log β is
extrapolated instead.

Several regularisations are solved side by side: for each p, one pass over the kernels computes
their weighted sums, and another the products (``SquareLoss.evaluate_together``). Each point takes
Newton steps until its own gap is closed. If the loss rejects a step,
:class:`~manykernels.solvers.Newton` with all its safeguards solves that point.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ..domains import Array, Domain, LpBall, lp_domain
from ..losses.base import Certificate, Evaluation, Loss
from ..losses.left_out import LeavesOut
from ..losses.square import NotPositiveDefiniteError
from ..utils.numerics import ACCUMULATED, EPS, TINY
from .base import Bound, Run
from .newton import Model, Newton, improves

# -- Records of the solutions on a grid of parameters ---------------------------------------------


#: Position of a point in a grid, one number per parameter.
Position = tuple[int, ...]


class SolvedPoint(Protocol):
    """Attributes of the certificate of a model that a grid records."""

    @property
    def rel_gap(self) -> float: ...

    @property
    def converged(self) -> bool: ...


@dataclass(frozen=True)
class GridProgress:
    """Latest solved point of a grid; `iteration` counts the points."""

    iteration: int
    params: Mapping[str, Any]
    n_inner_solves: int
    rel_gap: float

    def __str__(self) -> str:
        values = "  ".join(
            f"{name} {value if isinstance(value, str) else format(value, '.6g')}"
            for name, value in self.params.items()
        )
        return f"{values}  inner solves {self.n_inner_solves}  relative gap {self.rel_gap:.1e}"


@dataclass(frozen=True)
class GridRecord:
    """Solver statistics of one training set, for every point of a grid.

    Attributes
    ----------
    rel_gaps, n_inner_solves, converged : ndarray of the shape of the grid
        Infinite, zero and False at points that are not solved yet or could not be solved.
    failures : list of str
        Reasons why points could not be solved.
    """

    rel_gaps: Array
    n_inner_solves: NDArray[np.int_]
    converged: NDArray[np.bool_]
    failures: list[str]

    @classmethod
    def unsolved(cls, shape: Position) -> GridRecord:
        """Return the record of a grid without solved points."""
        return cls(np.full(shape, np.inf), np.zeros(shape, int), np.zeros(shape, bool), [])

    def note(
        self,
        at: Position,
        params: Mapping[str, Any],
        certificate: SolvedPoint,
        n_inner_solves: int,
    ) -> GridProgress:
        """Enter a solved point and return its progress."""
        self.rel_gaps[at] = certificate.rel_gap
        self.converged[at] = certificate.converged
        self.n_inner_solves[at] = n_inner_solves
        return GridProgress(self.n_solved, params, n_inner_solves, certificate.rel_gap)

    def followed_by(self, other: GridRecord, axis: int) -> GridRecord:
        """Return the record of both grids, whose points differ along an axis."""
        return GridRecord(
            np.concatenate([self.rel_gaps, other.rel_gaps], axis=axis),
            np.concatenate([self.n_inner_solves, other.n_inner_solves], axis=axis),
            np.concatenate([self.converged, other.converged], axis=axis),
            self.failures + other.failures,
        )

    def enter(self, k: int, record: GridRecord) -> None:
        """Enter the record of the points at position k of the first axis."""
        self.rel_gaps[k], self.n_inner_solves[k] = record.rel_gaps, record.n_inner_solves
        self.converged[k] = record.converged
        self.failures.extend(record.failures)

    @property
    def solved(self) -> NDArray[np.bool_]:
        """Mask of the solved points."""
        return self.n_inner_solves > 0

    @property
    def n_solved(self) -> int:
        return int(np.count_nonzero(self.solved))


def solved_in_all(records: Sequence[GridRecord]) -> NDArray[np.bool_]:
    """Return the mask of the points solved in every training set."""
    solved: NDArray[np.bool_] = np.all([record.solved for record in records], axis=0)
    return solved


#: Norms of Yan 2012, section 3.3, with ∞ instead of their 10⁶.
PAPER_NORMS = (1.0, *(1.0 + 2.0**-k for k in range(6, 0, -1)), 2.0, 3.0, 4.0, 8.0, np.inf)

# Number of regularisations solved side by side: they share passes over the kernels, but each has
# an m×m factor in memory. Measured: one at a time takes a sixth more time, ten 2 % less.
_SIDE_BY_SIDE = 5
# Degree of the polynomial in 1/p. Measured on three data sets of scikit-learn, 84 points each:
# degrees 1 to 4 take 142 to 159 evaluations, degree 0 (start at the last solution) 181 to 203.
_DEGREE = 3
# The same for differences from the solutions of nearly the same problem. Measured on 32 points and
# five folds of features: 263 evaluations, 270 at degree 0, 276 from the solutions themselves.
_DEGREE_OF_DIFFERENCES = 1
# Smaller weights are rounding errors; zeros have no logarithm to extrapolate.
_LEAST_LOG = np.log(ACCUMULATED)


@dataclass(frozen=True)
class GridPoint:
    """Solved point of the grid; `evaluation` usually still has its factor."""

    norm_index: int
    reg_index: int
    loss: Any = field(repr=False)
    evaluation: Any = field(repr=False)
    certificate: Certificate
    n_inner_solves: int


def walk_grid(
    loss_at: Callable[[float], Any],
    ps: Sequence[float] | Array,
    regs: Sequence[float] | Array,
    visit: Callable[[GridPoint], bool | None],
    *,
    tol: float = 1e-5,
    max_iter: int = 50,
    starts: Mapping[tuple[int, int], Array] | None = None,
) -> list[str]:
    """Solve the square loss for every p and λ, from large p to small.

    Returns one sentence for each point whose matrix could not be factorised; these points are not
    visited.

    Parameters
    ----------
    loss_at : callable
        Returns the square loss at λ, on kernels or on features.
    ps, regs : sequences of float
        In any order.
    visit : callable
        Called with each solved :class:`GridPoint`; the rest is skipped if it returns True.
    tol : float, default=1e-5
        Relative gap of every point.
    max_iter : int, default=50
        Maximum number of Newton steps at a point.
    starts : mapping of (int, int) to ndarray, optional
        Weights that solve nearly the same problem, by the positions of p and λ.
    """
    starts = {} if starts is None else starts
    # In order of λ, so that points solved side by side take similar numbers of steps.
    reg_order = np.argsort(regs)[::-1].tolist()
    failures: list[str] = []
    for start in range(0, len(reg_order), _SIDE_BY_SIDE):
        some = reg_order[start : start + _SIDE_BY_SIDE]
        losses = {j: loss_at(float(regs[j])) for j in some}
        predictors = {
            j: _Predictor({float(p): starts[i, j] for i, p in enumerate(ps) if (i, j) in starts})
            for j in some
        }
        for i in np.argsort(ps)[::-1].tolist():
            p = float(ps[i])
            domain = lp_domain(p)
            runs = {j: Run(domain, tol, max_iter) for j in some}
            begin = {j: predictors[j].weights_at(p, domain, losses[j].n_kernels) for j in some}
            points = _solve_together(losses, domain, runs, begin, failures)
            for j, point in points.items():
                run = runs[j]
                predictors[j].add(p, point)
                solution = GridPoint(i, j, losses[j], point, run.certificate, run.n_inner_solves)
                if visit(solution):
                    return failures
    return failures


def _solve_together(
    losses: dict[int, Any],
    domain: Domain,
    runs: dict[int, Run],
    starts: dict[int, Array],
    failures: list[str],
) -> dict[int, Any]:
    """Take Newton steps on all problems in turn; return the solutions found."""
    points: dict[int, Any] = {}
    solved: dict[int, Any] = {}
    trials = starts
    while trials:
        evaluations = _evaluate_together(losses, trials, failures)
        trials = {}
        for j, candidate in evaluations.items():
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
    losses: dict[int, Any], trials: dict[int, Array], failures: list[str]
) -> dict[int, Any]:
    """Return evaluations at the trial weights; record a failure if the matrix is indefinite."""
    chosen = list(trials)
    try:
        chosen_losses = [losses[j] for j in chosen]
        evaluate = chosen_losses[0].evaluate_together
        together = evaluate(chosen_losses, [trials[j] for j in chosen])
        return dict(zip(chosen, together, strict=True))
    except NotPositiveDefiniteError:
        evaluations = {}
        for j in chosen:
            try:
                evaluations[j] = losses[j].evaluate(trials[j])
            except NotPositiveDefiniteError as error:
                failures.append(str(error))
        return evaluations


def _solve_alone(loss: Loss, domain: Domain, run: Run, point: Evaluation) -> Evaluation:
    """Return the solution by :class:`Newton` from a point whose step was rejected."""
    left = max(run.max_iter - len(run.history), 1)
    alone = Newton().solve(loss, domain, tol=run.tol, max_iter=left, start=point.weights)
    final = alone.evaluation
    proved = Bound(alone.certificate.dual, alone.certificate.dual_point)
    run.record(final, 1 + alone.n_inner_solves, bound=proved)
    return final


class _Predictor:
    """Solutions along p for one λ, and the weights that they predict at the next p.

    `similar` are weights that solve nearly the same problem, by p.
    """

    def __init__(self, similar: Mapping[float, Array]) -> None:
        self._similar = similar
        # p, log g and log β of each solution.
        self._solutions: deque[tuple[float, Array, Array]] = deque(maxlen=_DEGREE + 1)

    def add(self, p: float, point: Evaluation) -> None:
        """Add a solution, replacing the oldest one."""
        if self._solutions and self._solutions[0][0] == p:
            return  # an equal p of the grid
        log_gains = np.log(np.maximum(point.gains, TINY))
        self._solutions.appendleft((p, log_gains, _log_weights(point.weights)))

    def weights_at(self, p: float, domain: Domain, n_kernels: int) -> Array:
        """Return initial weights at p."""
        solutions, similar = list(self._solutions), self._similar
        near = p in similar and all(norm in similar for norm, _, _ in solutions)
        if not solutions:
            return similar[p] if near else domain.start(n_kernels)
        if near:
            differences = [
                (norm, log_weights - _log_weights(similar[norm]))
                for norm, _, log_weights in solutions[: _DEGREE_OF_DIFFERENCES + 1]
            ]
            predicted = _log_weights(similar[p]) + _extrapolated(differences, p)
            return domain.onto_boundary(np.exp(predicted - predicted.max()))
        if isinstance(domain, LpBall):
            predicted = _extrapolated([(norm, log_gains) for norm, log_gains, _ in solutions], p)
            return domain.maximizer(np.exp(predicted - predicted.max()))
        predicted = _extrapolated([(norm, log_weights) for norm, _, log_weights in solutions], p)
        return domain.onto_boundary(np.exp(predicted - predicted.max()))


def _log_weights(weights: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(weights), _LEAST_LOG)


def _extrapolated(values: list[tuple[float, Array]], p: float) -> Array:
    """Return the value at p of the polynomial in 1/p through values at other p."""
    positions = [1.0 / norm for norm, _ in values]
    # Values at 1/p of the polynomials that are 1 at one position and 0 at the others.
    lagrange = [
        prod((1.0 / p - x) / (position - x) for x in positions if x != position)
        for position in positions
    ]
    extrapolated: Array = np.array(lagrange) @ np.array([value for _, value in values])
    return extrapolated


# -- First-order change of the best kernel weights with the targets -------------------------------


# Ridge relative to the curvature, which is singular for equal kernels, whose split of a weight has
# no effect. It changes the response by far less than the terms of second order.
_RIDGE = 1e-10


def weight_response(evaluation: LeavesOut, domain: Domain) -> Array | None:
    """Return M of :mod:`manykernels.losses.left_out` at the minimiser over `domain`.

    At the minimiser ``g(β) = μ∇c(β)`` for the positive weights, where ``c(β) = 1`` is the
    boundary of the domain, with a c and a μ for every block of weights. The gains change with the
    targets by ``dg = 2Bᵀdh``, hence

        (∇²F + μ∇²c) dβ + ∇c dμ = 2Bᵀdh ,   ∇c·dβ = 0

    and P is the inverse of that matrix on the plane ``∇c·dβ = 0``. Weights that are zero stay
    zero. At a point that is only nearly the minimiser, weights that should be zero may be small
    instead, with gains below μ∇c. Such weights of β_j and slack ``s_j = μ∇c_j − g_j > 0`` follow
    ``β_j s_j = constant``, the path of interior-point methods: ``s_j/β_j`` joins the diagonal, so
    that they hardly move. Treated as positive weights they would move by far more than their size,
    where the curvature is small (large λ).

    None if the minimiser does not depend on the targets, as for p = ∞ or if each block has one
    positive weight; if there are too many samples for a factorisation; and if the curvature is
    all rounding error.
    """
    boundary = domain.level_set(evaluation.weights)
    positive = np.flatnonzero(evaluation.weights > 0.0)
    if boundary is None or len(positive) < 2 or not evaluation.factorized:
        return None
    gradient, curvature = (derivative[positive] for derivative in boundary[1:])
    slopes, hessian = evaluation.sensitivity(positive)
    # μ∇c·β = g·β over the weights of a block.
    block = domain.block_of(len(evaluation.weights))[positive]
    worth = domain.block_sums(evaluation.gains * evaluation.weights)
    size = domain.block_sums(boundary[1] * evaluation.weights)
    multiplier = worth / np.where(size > 0.0, size, 1.0)
    slack = np.maximum(multiplier[block] * gradient - evaluation.gains[positive], 0.0)
    stiffness = multiplier[block] * curvature + slack / evaluation.weights[positive]
    hessian[np.diag_indices(len(positive))] += stiffness
    # Units in which the curvature of every weight is one. Curvatures are squares of numbers with
    # relative errors of EPS: below EPS² they are rounding errors, and these weights do not change.
    sizes = np.diagonal(hessian)
    least = float(np.abs(sizes).max()) * EPS**2
    unit = np.where(sizes > least, 1.0 / np.sqrt(np.where(sizes > least, sizes, 1.0)), 0.0)
    # The normals of the boundaries, one column for each block with a weight that can change.
    normals = (gradient * unit)[:, None] * (block[:, None] == np.unique(block))
    lengths = np.linalg.norm(normals, axis=0)
    if not lengths.any():
        return None
    normals = normals[:, lengths > 0.0] / lengths[lengths > 0.0]
    scaled = hessian * unit * unit[:, None] + _RIDGE * np.eye(len(unit))
    plane = linalg.null_space(normals.T)
    if not plane.size:
        return None
    # P = plane (planeᵀ scaled plane)⁻¹ planeᵀ in these units, and M Mᵀ = 2 B P Bᵀ.
    try:
        root = linalg.cholesky(plane.T @ scaled @ plane, lower=True)
    except linalg.LinAlgError:
        return None
    half = linalg.solve_triangular(root, plane.T, lower=True)
    return np.asarray(slopes @ (np.sqrt(2.0) * unit[:, None] * half.T))
