"""Small convex quadratic programs over a weight domain: Clarabel, then Newton steps.

With many kernels on few samples a Hessian has a rank r far below n, and a solver that is handed
its n² entries works with n³ of them. As ``Q = WᵀW + diag d`` (:class:`LowRank`) the same program,

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

from ..domains import Array, ConicForm, Domain

# A stalled interior-point method still gives a useful point; the certificate of the outer
# problem, not the status here, decides what is accepted.
_USABLE = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
_TOLERANCE = 1e-10
_POLISHING_STEPS = 8
_EDGE_ZERO = 1e-8
# From so many kernels, and up to this part of their number, a rank is worth looking for.
_MANY = 100
_LOW = 0.5
# Diagonal entries below n times this part of the largest are rounding, or the 1e-12 of the trace
# that losses add to keep a Hessian positive semi-definite.
_RANK_TOL = 3e-12


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
    found, _ = _interior_point(linear, quadratic, low_rank, domain, lower, None)
    if found is None:
        return None
    x = np.maximum(domain.settle(found, -(linear + quadratic @ found)), lower)
    if not x.any():
        return None
    free = (x > 0.0) & (x > 1.001 * lower)
    return _polish(linear, quadratic, low_rank, domain.onto_boundary(x), free, domain)


def minimize_above_planes(
    linear: Array,
    quadratic: Array,
    domain: Domain,
    lower: Array,
    planes: tuple[Array, Array],
) -> tuple[Array, Array] | None:
    """``argmin_x linear·x + ½ xᵀ quadratic x + max_r (constants_r − slopes_r·x)`` over the same.

    With the share of each plane in the maximum at the solution; None if the solver fails.
    """
    constants, slopes = planes
    steepness = np.abs(slopes).max(axis=1)
    size = max(float(np.abs(linear).max()), float(steepness.min()))
    if not np.isfinite(size) or size == 0.0:
        return None
    # A plane from where F is huge is steep; in units of its slope all others would be nothing.
    units = np.maximum(steepness, size)
    scaled = (constants / units, slopes / units[:, None], size / units)
    quadratic = quadratic / size
    found, multipliers = _interior_point(
        linear / size, quadratic, LowRank.of(quadratic), domain, lower, scaled
    )
    if found is None:
        return None
    x = np.maximum(np.where(found < _EDGE_ZERO * found.max(), 0.0, found), lower)
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

        By a Cholesky factorisation that takes the largest diagonal entry left each time and stops
        where all are rounding: entries off the diagonal that it has not reached are no larger.
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
        softened = factor / diagonal
        inner = softened @ factor.T
        inner.flat[:: len(inner) + 1] += 1.0
        plain = (right.T / diagonal).T
        solution: Array = plain - softened.T @ np.linalg.solve(inner, factor @ plain)
        return solution


@dataclass(frozen=True)
class _Program:
    """All of a conic program over a domain but its numbers; making it takes as long as solving."""

    form: ConicForm
    objective: sparse.csc_matrix
    triangle: tuple[NDArray[np.intp], NDArray[np.intp]]
    cones: list[Any]
    settings: Any


@lru_cache(maxsize=32)
def _program(domain: Domain, n: int) -> _Program:
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
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    return _Program(form, objective, (rows, cols), cones, settings)


def _interior_point(
    linear: Array,
    quadratic: Array,
    low_rank: LowRank | None,
    domain: Domain,
    lower: Array,
    planes: tuple[Array, Array, Array] | None,
) -> tuple[Array | None, Array]:
    """The solution, if there is any, and the multipliers of the constraints."""
    n = len(linear)
    program = _program(domain, n)
    form = program.form
    bound = form.bound.copy()
    bound[form.first_sign_row : form.first_sign_row + n] -= lower
    full_linear = np.concatenate([linear, np.zeros(form.matrix.shape[1] - n)])
    matrix, cones = form.matrix, program.cones
    if low_rank is None:
        rows, cols = program.triangle
        objective = program.objective.copy()
        objective.data[:] = quadratic[rows, cols]
    else:
        n_extra = form.matrix.shape[1] - n
        objective = sparse.diags_array(np.append(low_rank.rest, np.zeros(n_extra)), format="csc")
    if planes is not None:
        objective, full_linear, matrix, bound, cones = _under_planes(
            objective, full_linear, matrix, bound, cones, planes
        )
    if low_rank is not None:
        objective, full_linear, matrix, bound, cones = _with_products(
            objective, full_linear, matrix, bound, cones, low_rank.factor
        )
    solver = clarabel.DefaultSolver(objective, full_linear, matrix, bound, cones, program.settings)
    result = solver.solve()
    if result.status not in _USABLE:
        return None, np.empty(0)
    return np.maximum(np.asarray(result.x)[:n], 0.0), np.asarray(result.z)


def _under_planes(
    objective: Any,
    linear: Array,
    matrix: Any,
    bound: Array,
    cones: list[Any],
    planes: tuple[Array, Array, Array],
) -> tuple[Any, Array, Any, Array, list[Any]]:
    """The program with one more variable t, added to its cost: ``unit_r t`` is above plane r."""
    constants, slopes, units = planes
    n_planes, n = slopes.shape
    n_variables = matrix.shape[1]
    rows = np.zeros((n_planes, n_variables + 1))
    rows[:, :n] = -slopes
    rows[:, -1] = -units
    above = sparse.hstack([matrix, sparse.csc_matrix((matrix.shape[0], 1))])
    # The rows of planes come first, so that the cones stay in order.
    matrix = sparse.vstack([sparse.csc_matrix(rows), above], format="csc")
    bound = np.concatenate([-constants, bound])
    objective = sparse.block_diag([objective, sparse.csc_matrix((1, 1))], format="csc")
    cones = [clarabel.NonnegativeConeT(n_planes), *cones]
    return objective, np.append(linear, 1.0), matrix, bound, cones


def _with_products(
    objective: Any, linear: Array, matrix: Any, bound: Array, cones: list[Any], factor: Array
) -> tuple[Any, Array, Any, Array, list[Any]]:
    """The program with variables ``z = Wx``, ½ z·z added to its cost."""
    rank, n = factor.shape
    n_between = matrix.shape[1] - n
    eye = sparse.eye(rank, format="csc")
    gap = sparse.csc_matrix((rank, n_between))
    rows = sparse.hstack([sparse.csc_matrix(factor), gap, -eye])
    above = sparse.hstack([matrix, sparse.csc_matrix((matrix.shape[0], rank))])
    matrix = sparse.vstack([above, rows], format="csc")
    objective = sparse.block_diag([objective, eye], format="csc")
    linear, bound = np.append(linear, np.zeros(rank)), np.append(bound, np.zeros(rank))
    return objective, linear, matrix, bound, [*cones, clarabel.ZeroConeT(rank)]


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
    kept while they shrink what is left of the conditions. An interior-point method alone
    leaves the square root of its tolerance in x, and with it visibly different weights for
    the same problem stated in another order.
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
        if low_rank is None or not bend.all():
            n_free = len(y)
            system = np.zeros((n_free + 1, n_free + 1))
            system[:-1, :-1] = y[:, None] * quadratic[np.ix_(free, free)] * y
            system.flat[: n_free * (n_free + 1) : n_free + 2] += bend
            system[-1, :-1] = system[:-1, -1] = border
            step = _solve(system, residual)[:-1]
        else:
            both = np.column_stack([residual[:-1], border])
            plain, own = low_rank.solve(bend, y, free, both).T
            step = plain - own * ((border @ plain - residual[-1]) / (border @ own))
        x = x.copy()
        leaving = step <= -0.5
        if leaving.any() and not curvature.any():
            # On a flat boundary weights can be zero, and these want to be.
            x[np.flatnonzero(free)[leaving]] = 0.0
            free, least = free & (x > 0.0), np.inf
        elif np.all(np.abs(step) < 0.5):
            x[free] = y * (1.0 + step)
        else:
            break
        if not x.any():
            break
        x = domain.onto_boundary(x)
    return best


def _solve(system: Array, residual: Array) -> Array:
    """Solution of a symmetric system; the smallest one if it is (nearly) singular.

    Equal kernels make it so, and then any split of their weight is right.
    """
    try:
        solution = np.linalg.solve(system, residual)
        if np.abs(solution[:-1]).max() < 0.5:
            return solution.astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    smallest = np.linalg.lstsq(system, residual, rcond=1e-13)[0]
    return smallest.astype(np.float64, copy=False)
