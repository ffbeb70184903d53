"""Small convex quadratic programs over a weight domain: Clarabel, then Newton steps.

With many kernels on few samples a Hessian has a rank r far below n, and a solver that is given its
n² entries takes a time of order n³. As ``Q = WᵀW + diag d`` (:class:`LowRank`) the same program,

    min_{x, z}  linear·x + ½ z·z + ½ Σ_j d_j x_j²   s.t.  z = Wx,  x ∈ B

is sparse but for W, and an iteration takes n r² operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .._rounding import ACCUMULATED
from ..domains import Array, ConicForm, Domain

# A stalled interior-point method still gives a useful point; the certificate of the outer
# problem, not the status here, decides what is accepted.
USABLE = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
# Tolerance of Clarabel, whose own default is 1e-8: the outer method converges quadratically only
# if its steps are exact. At 1e-12 Clarabel stalls more often.
_TOLERANCE = 1e-10
# Most Newton steps that polish a solution. They converge quadratically from the square root of the
# tolerance: three are usually enough, more are needed where weights leave one by one.
_POLISHING_STEPS = 8
# Longest relative step of a weight in the polishing. Its expansion in log x is good for small
# steps only, and a weight that would fall by more is on its way to zero.
_LONGEST_STEP = 0.5
# Weights within this part of their lower bounds are held there in the polishing: more than the
# error that the interior-point method leaves in x.
_AT_BOUND = 1e-3
# Weights that it leaves below this part of the largest one are zero: far above its tolerance, far
# below weights that matter to a tolerance of the outer problem.
_ZERO = 1e-8
# From so many kernels on, and for a rank up to this part of their number, the sparse form of low
# rank has fewer entries and pays for its factorisation.
_MANY = 100
_LOW = 0.5
# Diagonal entries below n times this part of the largest are rounding, or the ridge of ACCUMULATED
# times the trace that losses add to keep a Hessian positive semi-definite.
_RANK_TOL = 3.0 * ACCUMULATED
# Singular values below this part of the largest belong to equal kernels, see `_solve`.
_SINGULAR = 0.1 * ACCUMULATED


def minimize_quadratic(
    linear: Array, quadratic: Array, domain: Domain, lower: Array | None = None
) -> Array | None:
    """``argmin_x linear·x + ½ xᵀ quadratic x`` over ``lower ≤ x ∈ B``, on the boundary of B.

    None if the solver fails. Weights that are zero at the solution are exact zeros.
    """
    lower = np.zeros(len(linear)) if lower is None else lower
    size = np.abs(linear).max()
    if not np.isfinite(size) or size == 0.0:
        return None
    linear, quadratic = linear / size, quadratic / size
    low_rank = LowRank.of(quadratic)
    found, _ = _interior_point(_Program.of(linear, quadratic, low_rank, domain, lower), low_rank)
    if found is None:
        return None
    x = np.maximum(domain.settle(found, -(linear + quadratic @ found)), lower)
    if not x.any():
        return None
    free = (x > 0.0) & (x > (1.0 + _AT_BOUND) * lower)
    return _polish(linear, quadratic, low_rank, domain.onto_boundary(x), free, domain)


def minimize_above_planes(
    linear: Array, quadratic: Array, domain: Domain, lower: Array, planes: tuple[Array, Array]
) -> tuple[Array, Array] | None:
    """``argmin_x linear·x + ½ xᵀ quadratic x + max_r (constants_r − slopes_r·x)`` over the same.

    With the multiplier of each plane at the solution; None if the solver fails.
    """
    constants, slopes = planes
    steepness = np.abs(slopes).max(axis=1)
    size = max(float(np.abs(linear).max()), float(steepness.min()))
    if not np.isfinite(size) or size == 0.0:
        return None
    quadratic = quadratic / size
    low_rank = LowRank.of(quadratic)
    program = _Program.of(linear / size, quadratic, low_rank, domain, lower)
    # Planes at points where F is huge are steep; in units of their slope all others would vanish.
    units = np.maximum(steepness, size)
    program.add_planes(constants / units, slopes / units[:, None], size / units)
    found, multipliers = _interior_point(program, low_rank)
    if found is None:
        return None
    x = np.maximum(np.where(found < _ZERO * found.max(), 0.0, found), lower)
    shares = multipliers[: len(constants)] * (size / units)
    return (domain.onto_boundary(x), shares) if x.any() else None


@dataclass(frozen=True)
class LowRank:
    """``WᵀW + diag d``.

    Parameters
    ----------
    factor : ndarray of shape (rank, n)
        W.
    rest : ndarray of shape (n,)
        d ≥ 0.
    """

    factor: Array
    rest: Array

    @classmethod
    def of(cls, quadratic: Array) -> LowRank | None:
        """A positive semi-definite matrix in this form; None if its rank is not low.

        By a Cholesky factorisation with pivoting that stops where all remaining diagonal entries
        are rounding: the entries off the diagonal that it has not reached are no larger.
        """
        n = len(quadratic)
        if n < _MANY:
            return None
        lower, order, rank, _ = linalg.lapack.dpstrf(
            quadratic, tol=n * _RANK_TOL * float(np.diag(quadratic).max()), lower=1
        )
        if rank > _LOW * n:
            return None
        factor = np.zeros((rank, n))
        factor[:, order - 1] = np.tril(lower)[:, :rank].T
        rest = np.diag(quadratic) - np.einsum("rj,rj->j", factor, factor)
        return cls(factor, np.maximum(rest, 0.0))

    def solve(self, diagonal: Array, scale: Array, rows: Any, right: Array) -> Array:
        """``(diag(diagonal) + S Q S)⁻¹ right`` with Q of some rows and ``S = diag(scale)``.

        By the formula of Sherman, Morrison and Woodbury: a system of the rank.
        """
        diagonal = diagonal + self.rest[rows] * scale**2
        factor = self.factor[:, rows] * scale
        scaled = factor / diagonal
        inner = scaled @ factor.T
        inner.flat[:: len(inner) + 1] += 1.0
        plain = (right.T / diagonal).T
        solution: Array = plain - scaled.T @ np.linalg.solve(inner, factor @ plain)
        return solution


@dataclass(frozen=True)
class _Template:
    """What conic programs over one domain share; making it takes as long as solving one."""

    form: ConicForm
    objective: sparse.csc_matrix
    triangle: tuple[NDArray[np.intp], NDArray[np.intp]]
    cones: list[Any]


@lru_cache(maxsize=32)  # the norms of a path, several numbers of kernels
def _template(domain: Domain, n: int) -> _Template:
    form = domain.conic_form(n)
    n_extra = form.matrix.shape[1] - n
    # Upper triangle column by column; the extra variables have no quadratic part.
    rows, cols = np.tril_indices(n)
    starts = np.arange(n + 1) * np.arange(1, n + 2) // 2
    pointers = np.concatenate([starts, np.full(n_extra, starts[-1])])
    objective = sparse.csc_matrix(
        (np.zeros(len(cols)), cols, pointers), shape=(n + n_extra, n + n_extra)
    )
    cones = [clarabel.NonnegativeConeT(form.n_nonnegative)]
    cones += [clarabel.PowerConeT(exponent) for exponent in form.power_exponents]
    return _Template(form, objective, (rows, cols), cones)


@dataclass
class _Program:
    """``min ½ xᵀ objective x + linear·x  s.t.  bound − matrix @ x ∈ cones``; x first."""

    n: int
    objective: Any
    linear: Array
    matrix: Any
    bound: Array
    cones: list[Any]

    @classmethod
    def of(
        cls,
        linear: Array,
        quadratic: Array,
        low_rank: LowRank | None,
        domain: Domain,
        lower: Array,
    ) -> _Program:
        """With the whole of `quadratic`, or only the diagonal part if its rank is low."""
        n = len(linear)
        template = _template(domain, n)
        form = template.form
        bound = form.bound.copy()
        bound[form.first_sign_row : form.first_sign_row + n] -= lower
        none = np.zeros(form.matrix.shape[1] - n)
        if low_rank is None:
            rows, cols = template.triangle
            objective = template.objective.copy()
            objective.data[:] = quadratic[rows, cols]
        else:
            objective = sparse.diags_array(np.append(low_rank.rest, none), format="csc")
        return cls(n, objective, np.append(linear, none), form.matrix, bound, template.cones)

    def add_planes(self, constants: Array, slopes: Array, units: Array) -> None:
        """One more variable t, added to the cost, such that ``unit_r t`` is above plane r."""
        n_planes, (n_rows, n_variables) = len(constants), self.matrix.shape
        rows = np.zeros((n_planes, n_variables + 1))
        rows[:, : self.n] = -slopes
        rows[:, -1] = -units
        others = sparse.hstack([self.matrix, sparse.csc_matrix((n_rows, 1))])
        # The rows of planes come first, so that the cones stay in order.
        self.matrix = sparse.vstack([sparse.csc_matrix(rows), others], format="csc")
        self.bound = np.concatenate([-constants, self.bound])
        self.objective = sparse.block_diag(
            [self.objective, sparse.csc_matrix((1, 1))], format="csc"
        )
        self.linear = np.append(self.linear, 1.0)
        self.cones = [clarabel.NonnegativeConeT(n_planes), *self.cones]

    def add_products(self, factor: Array) -> None:
        """Variables ``z = Wx``, ½ z·z added to the cost."""
        rank, (n_rows, n_variables) = len(factor), self.matrix.shape
        eye = sparse.eye(rank, format="csc")
        between = sparse.csc_matrix((rank, n_variables - self.n))
        rows = sparse.hstack([sparse.csc_matrix(factor), between, -eye])
        others = sparse.hstack([self.matrix, sparse.csc_matrix((n_rows, rank))])
        self.matrix = sparse.vstack([others, rows], format="csc")
        self.bound = np.append(self.bound, np.zeros(rank))
        self.objective = sparse.block_diag([self.objective, eye], format="csc")
        self.linear = np.append(self.linear, np.zeros(rank))
        self.cones = [*self.cones, clarabel.ZeroConeT(rank)]


def _interior_point(program: _Program, low_rank: LowRank | None) -> tuple[Array | None, Array]:
    """The solution, or None if there is none, and the multipliers of the constraints."""
    if low_rank is not None:
        program.add_products(low_rank.factor)
    result = clarabel.DefaultSolver(
        program.objective,
        program.linear,
        program.matrix,
        program.bound,
        program.cones,
        clarabel_settings(_TOLERANCE),
    ).solve()
    if result.status not in USABLE:
        return None, np.empty(0)
    return np.maximum(np.asarray(result.x)[: program.n], 0.0), np.asarray(result.z)


def clarabel_settings(tolerance: float | None = None) -> Any:
    """Silent settings of Clarabel with one tolerance for all its tests, or its own ones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if tolerance is not None:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    return settings


def _polish(
    linear: Array,
    quadratic: Array,
    low_rank: LowRank | None,
    x: Array,
    free: NDArray[np.bool_],
    domain: Domain,
) -> Array:
    """Newton steps on the optimality conditions of the `free` weights.

    On the boundary ``c(x) = 1`` they are ``γ(x) = ν ∇c(x)`` with ``γ = −(linear + Qx)``. Steps
    are taken in ``log x``, where weights of very different size are equally well scaled, and
    kept while the residual of the conditions shrinks. An interior-point method alone leaves an
    error of the square root of its tolerance in x, and with it visibly different weights for the
    same problem stated in another order.
    """
    best, least = x, np.inf
    for _ in range(_POLISHING_STEPS):
        level = domain.level_set(x)
        if level is None or not free.any():
            break
        value, gradient, curvature = level
        y = x[free]
        gains = -(linear + quadratic @ x)
        multiplier = (gains[free] @ y) / (gradient[free] @ y)
        residual = np.append(y * (gains - multiplier * gradient)[free], 1.0 - value)
        size = float(np.abs(residual).max())
        if not size < least:
            break
        best, least = x, size
        bend, border = multiplier * curvature[free] * y**2, gradient[free] * y
        step = _step(quadratic, low_rank, y, free, bend, border, residual)
        x = x.copy()
        leaving = step <= -_LONGEST_STEP
        if leaving.any() and not curvature.any():
            # On a flat boundary weights can be zero at the minimum, and these are.
            x[np.flatnonzero(free)[leaving]] = 0.0
            free, least = free & (x > 0.0), np.inf
        elif np.all(np.abs(step) < _LONGEST_STEP):
            x[free] = y * (1.0 + step)
        else:
            break
        if not x.any():
            break
        x = domain.onto_boundary(x)
    return best


def _step(
    quadratic: Array,
    low_rank: LowRank | None,
    y: Array,
    free: NDArray[np.bool_],
    bend: Array,
    border: Array,
    residual: Array,
) -> Array:
    """Relative step of the free weights y: solves ``YQY + diag(bend)``, bordered."""
    if low_rank is not None and bend.all():
        try:
            plain, own = low_rank.solve(bend, y, free, np.column_stack([residual[:-1], border])).T
            step: Array = plain - own * ((border @ plain - residual[-1]) / (border @ own))
            return step
        except np.linalg.LinAlgError:
            pass  # bend, of order y^p, is too close to zero for the small system
    n_free = len(y)
    system = np.zeros((n_free + 1, n_free + 1))
    system[:-1, :-1] = y[:, None] * quadratic[np.ix_(free, free)] * y
    system.flat[: n_free * (n_free + 1) : n_free + 2] += bend
    system[-1, :-1] = system[:-1, -1] = border
    return _solve(system, residual)[:-1]


def _solve(system: Array, residual: Array) -> Array:
    """Solution of a symmetric system; the smallest one if it is (nearly) singular.

    Equal kernels make it so, and then any split of their weight is right.
    """
    try:
        solution = np.linalg.solve(system, residual)
        if np.abs(solution[:-1]).max() < _LONGEST_STEP:
            return solution.astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    smallest = np.linalg.lstsq(system, residual, rcond=_SINGULAR)[0]
    return smallest.astype(np.float64, copy=False)
