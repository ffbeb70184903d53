"""Semi-infinite programs by cutting planes: the wrapper algorithms of the papers.

F is the maximum of infinitely many functions linear in β, one for every α: each inner solution
gives a cut (:mod:`~manykernels.solvers.newton`). The restricted master problem minimises the
greatest of the cuts so far,

    min_{ζ, β} ζ   s.t.  ζ ≥ c_r − β·q_r  (r = 1 … t),   β ∈ B

and the next cut is made at its solution (Yan 2012, algorithms 1 and 2, with θ = −ζ and S = −D;
Ye 2008 (16) and (37)). The papers stop when ``|1 − S/θ| ≤ ε``: the next cut would hardly raise the
minimum of the master, or not at all if α is so inexact that D lies below ζ. On a simplex the
master is a linear program, to which HiGHS adds each cut as a row and continues from its last
basis. For p > 1 the constraint ``c(β) = Σ β_j^p ≤ 1`` is replaced by its second-order expansion at
the current weights β̃ (Yan 2012 (11)),

    ν(β) = c(β̃) + ∇c·(β − β̃) + ½ Σ_j c''_j (β_j − β̃_j)² ≤ 1

a ball in ``z_j = β_j √c''_j``, and Clarabel solves a program with linear constraints and one
second-order cone (for each block of weights). The expansion is good near β̃ only, so the solution
is scaled onto the boundary and the next expansion made there, until the weights converge, which
costs no inner problem. (With a single expansion the papers' test can hold at weights far from
optimal.)

Weights jump between corners of B, most of all at p = 1, where the gap of the weights themselves
stays around 1e-2 when the papers' test holds. But the multipliers of the cuts in the master give a
convex combination of them that proves more, and the certificate uses the better bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import clarabel
import numpy as np
from scipy import sparse

from ...domains import Array, Domain
from ...losses.base import Evaluation, Loss
from ..base import NO_BOUND, Need, Problem, Run, Solver, on_a_simplex, start_or_uniform
from ..newton import Cuts
from ..programs import USABLE, LinearProgram, clarabel_settings

# Smallest relative gap that can be reached: the master does not distinguish closer cuts.
_LEAST_TOL = 1e-7
# Smallest weight at which the boundary is expanded: at zero its curvature is infinite for p < 2,
# and zero for p > 2. Measured on 16 small problems: 1e-6 takes 8 % more cuts, 1e-12 no fewer.
_LEAST_WEIGHT = 1e-10
# Maximum number of expansions of the boundary in one master problem, and relative fall of its
# minimum below which they end. Measured: 8 expansions take 3 % more cuts, a fall of 1e-6 6 % more.
_MOST_EXPANSIONS = 20
_LEAST_FALL = 1e-9
# A run ends if so many cuts in turn have not reduced the gap by this fraction.
_MOST_IDLE, _LEAST_PROGRESS = 100, 0.01


def _attainable_tol(solver: Solver, problem: Problem) -> str | None:
    if problem.tol >= _LEAST_TOL:
        return None
    return f"reaches relative gaps of {_LEAST_TOL:g} at best, more than tol={problem.tol:g}"


@dataclass(frozen=True)
class SIP(Solver, name="sip"):
    """Cutting planes on the kernel weights, the semi-infinite program of Yan 2012, for any p.

    Parameters
    ----------
    eps : float, optional
        The papers' tolerance on ``|1 − S/θ|``; by default `tol`. The run also ends when the
        true gap is within `tol`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> from manykernels.solvers import SIP
    >>> model = MKFDA(p=1, solver=SIP(eps=1e-4), tol=1e-2).fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged
    True
    """

    eps: float | None = None

    needs: ClassVar[tuple[Need, ...]] = (_attainable_tol,)
    # Maximum number of cuts; at p = 1 some hundreds are usual.
    default_max_iter = 1000

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        eps = run.tol if self.eps is None else self.eps
        point = loss.evaluate(start_or_uniform(start, loss, domain))
        master = _master(domain, point.value, loss.n_kernels)
        cuts = Cuts()
        least, bound = -np.inf, NO_BOUND
        lowest, n_idle = np.inf, 0
        while not run.record(point, bound=bound) and not _rise(point, least) <= eps:
            gap = run.certificate.gap
            lowest, n_idle = (
                (gap, 0) if gap < (1.0 - _LEAST_PROGRESS) * lowest else (lowest, n_idle + 1)
            )
            if n_idle >= _MOST_IDLE:
                return f"the last {n_idle} cuts have not reduced the gap"
            cuts.add(point)
            weights, least, multipliers, failure = master.solve(cuts, point.weights)
            if failure or not weights.any():
                ended = failure or "weights of zero"
                return f"the master problem with {len(cuts)} cuts ended as {ended}"
            bound = cuts.bound(multipliers, domain)
            point = loss.evaluate(domain.onto_boundary(weights))
        return f"|1 − S/θ| is {abs(_rise(point, least)):.1e}"


@dataclass(frozen=True)
class SILP(SIP, name="silp"):
    """Semi-infinite linear program of Ye 2008 (16), (37), with λ learnt (44), (47): p = 1.

    Parameters
    ----------
    eps : float, optional
        As for :class:`SIP`; Ye et al. use 5e-4.
    """

    needs = (*SIP.needs, on_a_simplex)


def _rise(point: Evaluation, least: float) -> float:
    """Return the rise ``(D − ζ)/|ζ|`` of the greatest cut at `point` by the cut made there."""
    rise = point.value - point.slack - least
    if least == 0.0 or least == -np.inf:
        return np.inf if rise > 0.0 else 0.0
    return rise / abs(least)


def _master(domain: Domain, size: float, n_kernels: int) -> _LinearMaster | _QuadraticMaster:
    level = domain.level_set(domain.start(n_kernels))
    curved = level is not None and level[2].any()
    return (_QuadraticMaster if curved else _LinearMaster)(domain, size, n_kernels)


class _LinearMaster:
    """min ζ over cuts and the ``conic_form`` of a polyhedral domain; `size` is the size of F."""

    def __init__(self, domain: Domain, size: float, n_kernels: int) -> None:
        self._size = abs(size) or 1.0
        self.program = LinearProgram()
        # Columns: ζ/size, then the weights.
        self.program.add_columns(np.eye(n_kernels + 1)[0], np.append(-np.inf, np.zeros(n_kernels)))
        form = domain.conic_form(n_kernels)
        rows = np.column_stack([np.zeros(len(form.bound)), form.matrix.toarray()])
        self.program.add_rows(-np.inf, rows, form.bound)
        self._n_fixed_rows = self.program.n_rows

    def solve(self, cuts: Cuts, current: Array) -> tuple[Array, float, Array, str]:
        """Return weights, ζ, multipliers of the cuts, and an error message or "".

        `cuts` extend those of the last call; `current` are the last weights.
        """
        n_known = self.program.n_rows - self._n_fixed_rows
        if n_known < len(cuts):
            slopes = cuts.slopes[n_known:] / self._size
            rows = np.column_stack([np.ones(len(slopes)), slopes])
            self.program.add_rows(cuts.constants[n_known:] / self._size, rows)
        solution = self.program.solve()
        multipliers = solution.multipliers[self._n_fixed_rows :]
        weights, least = np.maximum(solution.values[1:], 0.0), solution.values[0] * self._size
        return weights, least, multipliers, solution.failure


class _QuadraticMaster:
    """min ζ over cuts and the second-order expansion of a curved boundary, by Clarabel."""

    def __init__(self, domain: Domain, size: float, n_kernels: int) -> None:
        self._domain = domain
        self._size = abs(size) or 1.0

    def solve(self, cuts: Cuts, current: Array) -> tuple[Array, float, Array, str]:
        """Return weights, ζ, multipliers and a message, as in :class:`_LinearMaster`."""
        constants, slopes = cuts.constants / self._size, cuts.slopes / self._size
        best, least, shares = current, np.inf, np.zeros(len(constants))
        for _ in range(_MOST_EXPANSIONS):
            weights, multipliers, failure = self._solve_expansion(constants, slopes, current)
            if failure or not weights.any():
                break
            current = self._domain.onto_boundary(weights)
            greatest = float(np.max(constants - slopes @ current))
            if greatest >= least - _LEAST_FALL * abs(least):
                break
            best, least, shares = current, greatest, multipliers
        return best, least * self._size, shares, "" if least < np.inf else failure

    def _solve_expansion(
        self, constants: Array, slopes: Array, current: Array
    ) -> tuple[Array, Array, str]:
        """Return weights, multipliers of the cuts, and a message, for one expansion."""
        predictor = self._domain.onto_boundary(np.maximum(current, _LEAST_WEIGHT))
        level = self._domain.level_set(predictor)
        assert level is not None
        _, gradient, curvature = level
        unit = 1.0 / np.sqrt(curvature)  # β = unit · z
        radii = np.sqrt(self._domain.block_sums((gradient * unit) ** 2))
        center = predictor / unit - gradient * unit
        n_cuts, n = slopes.shape
        # Rows: cuts, z ≥ 0, and ‖z − center‖ ≤ radius of every block. Columns: ζ, z.
        cuts = np.column_stack([-np.ones(n_cuts), -slopes * unit])
        signs = sparse.hstack([sparse.csc_matrix((n, 1)), -sparse.eye(n)], format="csr")
        first = np.arange(len(radii)) * (n // len(radii))
        # Before the rows of a block comes one for its radius.
        radius_row = sparse.csr_matrix((1, n + 1))
        balls = sparse.vstack([signs, radius_row], format="csr")[np.insert(np.arange(n), first, n)]
        result = clarabel.DefaultSolver(
            sparse.csc_matrix((n + 1, n + 1)),
            np.concatenate([[1.0], np.zeros(n)]),
            sparse.vstack([cuts, signs, balls], format="csc"),
            np.concatenate([-constants, np.zeros(n), np.insert(-center, first, radii)]),
            [
                clarabel.NonnegativeConeT(n_cuts + n),
                *[clarabel.SecondOrderConeT(n // len(radii) + 1)] * len(radii),
            ],
            clarabel_settings(),
        ).solve()
        failure = "" if result.status in USABLE else str(result.status)
        weights = np.maximum(unit * np.asarray(result.x)[1:], 0.0)
        return weights, np.asarray(result.z)[:n_cuts], failure
