"""Small convex programs: quadratic ones over a weight domain, and linear ones that grow.

A quadratic program is solved by Clarabel and polished by Newton steps. With many kernels on few
samples a Hessian has a rank r far below n, and Clarabel would take a time of order n³ per
iteration on its n² entries. With ``Q = WᵀW + diag d`` (:class:`LowRank`) the same program,

    min_{x, z}  linear·x + ½ z·z + ½ Σ_j d_j x_j²   s.t.  z = Wx,  x ∈ B

is sparse except for W, and an iteration takes n r² operations.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ..domains import Array, ConicForm, Domain
from ..utils.numerics import ACCUMULATED, EPS

Mask = NDArray[np.bool_]
#: Entries of a matrix, dense or sparse.
Entries: TypeAlias = "Array | sparse.sparray"

#: Statuses with a useful point; the certificate of the outer problem decides on acceptance.
USABLE = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
# Tolerance of Clarabel, by default 1e-8: the outer method converges quadratically only if its
# steps are exact. At 1e-12 Clarabel stalls more often.
_TOLERANCE = 1e-10
# Maximum number of polishing steps. They converge quadratically from the square root of the
# tolerance: three are usually enough, more are needed where weights become zero one by one.
_POLISHING_STEPS = 8
# Longest relative step of a weight in the polishing, whose expansion in log x is good for small
# steps only. A weight that would fall by more tends to zero.
_LONGEST_STEP = 0.5
# Weights this close to their lower bounds, relatively, are fixed there in the polishing: more than
# the error that the interior-point method leaves in x.
_AT_BOUND = 1e-3
# Weights below this fraction of the largest are zero: far above the tolerance of Clarabel, far
# below weights that matter to a tolerance of the outer problem.
_ZERO = 1e-8
# Minimum number of kernels for the sparse form (measured: as fast for 50 kernels, 12 to 50 %
# faster for 100), and its largest rank relative to n: above it W has more entries than a triangle
# of Q.
_MANY = 100
_LOW = 0.5
# Diagonal entries below n times this fraction of the largest are rounding errors, or the ridge
# that `nearly_definite` adds to a Hessian.
_RANK_TOL = 3.0 * ACCUMULATED
# Singular values below this fraction of the largest belong to equal kernels, see
# `_Objective.step`.
_SINGULAR = 0.1 * ACCUMULATED


def minimize_quadratic(
    linear: Array, quadratic: Array, domain: Domain, lower: Array | None = None
) -> Array | None:
    """Return ``argmin_x linear·x + ½ xᵀ quadratic x`` over ``lower ≤ x ∈ B``, on its boundary.

    None if the solver fails. Weights that are zero at the solution are exact zeros.
    """
    lower = np.zeros(len(linear)) if lower is None else lower
    size = np.abs(linear).max()
    if not np.isfinite(size) or size == 0.0:
        return None
    objective = _Objective(linear / size, quadratic / size)
    solution, _ = _interior_point(objective, domain, lower)
    if solution is None:
        return None
    x = np.maximum(domain.settle(solution, objective.gains(solution)), lower)
    if not x.any():
        return None
    free = (x > 0.0) & (x > (1.0 + _AT_BOUND) * lower)
    return _polish(objective, domain.onto_boundary(x), free, domain)


def minimize_above_planes(
    linear: Array, quadratic: Array, domain: Domain, lower: Array, planes: tuple[Array, Array]
) -> tuple[Array, Array] | None:
    """Minimise the quadratic plus ``max_r (c_r − q_r·x)``, where `planes` are c and q.

    Returns the minimiser and the multiplier of each plane; None if the solver fails.
    """
    constants, slopes = planes
    steepness = np.abs(slopes).max(axis=1)
    size = max(float(np.abs(linear).max()), float(steepness.min()))
    if not np.isfinite(size) or size == 0.0:
        return None
    objective = _Objective(linear / size, quadratic / size)
    # Planes at points where F is huge are steep, so each is scaled by its slope.
    scale = np.maximum(steepness, size)
    units = size / scale
    scaled = (constants / scale, slopes / scale[:, None], units)
    solution, multipliers = _interior_point(objective, domain, lower, scaled)
    if solution is None:
        return None
    x = np.maximum(np.where(solution < _ZERO * solution.max(), 0.0, solution), lower)
    return (domain.onto_boundary(x), multipliers[: len(units)] * units) if x.any() else None


@dataclass(frozen=True)
class LowRank:
    """``WᵀW + diag d``: `factor` is W, (rank, n), and `rest` is d ≥ 0."""

    factor: Array
    rest: Array

    @classmethod
    def of(cls, quadratic: Array) -> LowRank | None:
        """Return a positive semi-definite matrix in this form; None if its rank is not low.

        A pivoted Cholesky factorisation stops where all remaining diagonal entries are rounding
        errors; no remaining entry off the diagonal is larger.
        """
        n = len(quadratic)
        if n < _MANY:
            return None
        tol = n * _RANK_TOL * float(np.diag(quadratic).max())
        lower, order, rank, _ = linalg.lapack.dpstrf(quadratic, tol=tol, lower=1)
        if rank > _LOW * n:
            return None
        factor = np.zeros((rank, n))
        factor[:, order - 1] = np.tril(lower)[:, :rank].T
        rest = np.diag(quadratic) - np.einsum("rj,rj->j", factor, factor)
        return cls(factor, np.maximum(rest, 0.0))

    def solve(self, diagonal: Array, scale: Array, rows: Mask, right: Array) -> Array:
        """Return ``(diag(diagonal) + S Q S)⁻¹ right`` for some rows of Q, ``S = diag(scale)``."""
        # Sherman–Morrison–Woodbury formula: a system whose size is the rank.
        diagonal = diagonal + self.rest[rows] * scale**2
        factor = self.factor[:, rows] * scale
        scaled = factor / diagonal
        inner = scaled @ factor.T
        inner.flat[:: len(inner) + 1] += 1.0
        plain = (right.T / diagonal).T
        return np.asarray(plain - scaled.T @ np.linalg.solve(inner, factor @ plain))


@lru_cache(maxsize=32)  # the norms of a path, several numbers of kernels
def _template(domain: Domain, n: int) -> tuple[ConicForm, Any, Any, list[Any]]:
    """Return conic form, zero Hessian, indices of its upper triangle, and cones; cached."""
    form = domain.conic_form(n)
    n_extra = form.matrix.shape[1] - n
    # Upper triangle column by column; the extra variables have no quadratic part.
    rows, cols = np.tril_indices(n)
    starts = np.arange(n + 1) * np.arange(1, n + 2) // 2
    pointers = np.concatenate([starts, np.full(n_extra, starts[-1])])
    shape = (n + n_extra, n + n_extra)
    hessian = sparse.csc_matrix((np.zeros(len(cols)), cols, pointers), shape)
    cones = [clarabel.NonnegativeConeT(form.n_nonnegative)]
    cones += [clarabel.PowerConeT(exponent) for exponent in form.power_exponents]
    return form, hessian, (rows, cols), cones


class _Objective:
    """``linear·x + ½ xᵀ quadratic x``; `low_rank` is `quadratic` too if its rank is low."""

    def __init__(self, linear: Array, quadratic: Array) -> None:
        self.linear, self.quadratic = linear, quadratic
        self.low_rank = LowRank.of(quadratic)

    def gains(self, x: Array) -> Array:
        """Return the negative gradient at x."""
        return -(self.linear + self.quadratic @ x)

    def step(self, y: Array, free: Mask, bend: Array, border: Array, residual: Array) -> Array:
        """Return the relative step of the free weights y, from ``YQY + diag(bend)`` bordered.

        `border` has a column for every block, and `residual` as many entries after those of y.
        """
        n_free, n_blocks = border.shape
        if self.low_rank is not None and bend.all():
            right = np.column_stack([residual[:n_free], border])
            try:
                solutions = self.low_rank.solve(bend, y, free, right)
                plain, of_border = solutions[:, 0], solutions[:, 1:]
                excess = border.T @ plain - residual[n_free:]
                return np.asarray(
                    plain - of_border @ np.linalg.solve(border.T @ of_border, excess)
                )
            except np.linalg.LinAlgError:
                pass  # bend, of order y^p, is too small
        system = np.zeros((n_free + n_blocks, n_free + n_blocks))
        system[:n_free, :n_free] = y[:, None] * self.quadratic[np.ix_(free, free)] * y
        system[np.arange(n_free), np.arange(n_free)] += bend
        system[n_free:, :n_free] = border.T
        system[:n_free, n_free:] = border
        try:
            exact = np.linalg.solve(system, residual)[:n_free]
            if np.abs(exact).max() < _LONGEST_STEP:
                return exact.astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            pass
        # Equal kernels make the system singular: any split of their weight is a solution.
        smallest = np.linalg.lstsq(system, residual, rcond=_SINGULAR)[0][:n_free]
        return smallest.astype(np.float64, copy=False)


def _interior_point(
    objective: _Objective,
    domain: Domain,
    lower: Array,
    planes: tuple[Array, Array, Array] | None = None,
) -> tuple[Array | None, Array]:
    """Return the minimiser x by Clarabel, or None on failure, and the multipliers.

    The program is ``min ½ uᵀ hessian u + linear·u  s.t.  bound − matrix @ u ∈ cones``. Its
    variables u are x and the extra ones of the conic form of the domain; if there are planes, a
    t with ``unit_r t ≥ c_r − q_r·x`` for each plane (c, q, unit); and z = Wx if the rank is low.
    """
    n, low_rank = len(objective.linear), objective.low_rank
    form, hessian, triangle, cones = _template(domain, n)
    bound = form.bound.copy()
    bound[form.first_sign_row : form.first_sign_row + n] -= lower
    none = np.zeros(form.matrix.shape[1] - n)
    matrix, linear = form.matrix, np.append(objective.linear, none)
    if low_rank is None:
        hessian = copy(hessian)  # with the same pattern
        hessian.data = objective.quadratic[triangle]
    else:
        hessian = sparse.diags_array(np.append(low_rank.rest, none), format="csc")
    if planes is not None:
        constants, slopes, units = planes
        of_x = sparse.csc_matrix(np.pad(-slopes, ((0, 0), (0, len(none)))))
        # The rows of planes come first, so that the cones stay in order.
        matrix = sparse.bmat([[of_x, -units[:, None]], [matrix, None]], format="csc")
        bound = np.concatenate([-constants, bound])
        hessian = sparse.block_diag([hessian, [[0.0]]], format="csc")
        linear = np.append(linear, 1.0)
        cones = [clarabel.NonnegativeConeT(len(constants)), *cones]
    if low_rank is not None:
        zeros, eye = np.zeros(len(low_rank.factor)), sparse.eye(len(low_rank.factor))
        of_x = sparse.csc_matrix(np.pad(low_rank.factor, ((0, 0), (0, matrix.shape[1] - n))))
        matrix = sparse.bmat([[matrix, None], [of_x, -eye]], format="csc")
        bound = np.append(bound, zeros)
        hessian = sparse.block_diag([hessian, eye], format="csc")
        linear = np.append(linear, zeros)
        cones = [*cones, clarabel.ZeroConeT(len(zeros))]
    settings = clarabel_settings(_TOLERANCE)
    result = clarabel.DefaultSolver(hessian, linear, matrix, bound, cones, settings).solve()
    if result.status not in USABLE:
        return None, np.empty(0)
    return np.maximum(np.asarray(result.x)[:n], 0.0), np.asarray(result.z)


def clarabel_settings(tolerance: float | None = None) -> Any:
    """Return silent settings of Clarabel, with one tolerance for all tests or its defaults."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if tolerance is not None:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    return settings


def _polish(objective: _Objective, x: Array, free: Mask, domain: Domain) -> Array:
    """Take Newton steps on the optimality conditions of the `free` weights.

    On the boundary ``c(x) = 1`` they are ``γ(x) = ν ∇c(x)`` with ``γ = −(linear + Qx)``, and a c
    and a ν for every block of weights; blocks without free weights do not change. Steps
    are taken in ``log x``, where weights of very different size are equally well scaled, and
    kept while the residual shrinks. The interior-point method alone leaves an error of the square
    root of its tolerance in x, so that weights would visibly depend on the order of the kernels.
    """
    best, least = x, np.inf
    block_of = domain.block_of(len(x))
    for _ in range(_POLISHING_STEPS):
        level = domain.level_set(x)
        if level is None or not free.any():
            break
        values, gradient, curvature = level
        y = x[free]
        gains = objective.gains(x)[free]
        # Blocks with free weights, and the block of each free weight.
        moving, block = np.unique(block_of[free], return_inverse=True)
        border = np.zeros((len(y), len(moving)))
        border[np.arange(len(y)), block] = gradient[free] * y
        multiplier = np.bincount(block, gains * y) / border.sum(axis=0)
        residual = y * (gains - multiplier[block] * gradient[free])
        residual = np.append(residual, 1.0 - values[moving])
        size = float(np.abs(residual).max())
        if not size < least:
            break
        best, least = x, size
        if curvature.any() and size <= EPS * abs(float(gains @ y)):
            break  # the rest is rounding error; on a flat boundary weights may still become zero
        bend = multiplier[block] * curvature[free] * y**2
        step = objective.step(y, free, bend, border, residual)
        x = x.copy()
        leaving = step <= -_LONGEST_STEP
        if leaving.any() and not curvature.any():
            # On a flat boundary weights can be zero at the minimum; these seem to be.
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


# -- Linear programs that grow by rows and columns, solved by HiGHS from the last basis -----------
#
#     min_x  c·x   s.t.  l ≤ A x ≤ u ,   lower ≤ x ≤ upper
#
# Cutting planes add rows, column generation adds columns. A simplex basis then stays primal or
# dual feasible, so that few steps are needed after each addition.


# Feasibility tolerance of HiGHS, the smallest that it accepts, and its default, for programs with
# numbers of such different sizes that the first is lost in rounding errors.
_FEASIBILITY, _EASY_FEASIBILITY = 1e-10, 1e-7
# Rows with a larger entry are divided by it: HiGHS refuses entries above 1e15.
_LARGE_ENTRY = 1e9


@dataclass(frozen=True)
class LinearSolution:
    """Values of the columns, multipliers of the rows, and an error message or "".

    The multiplier of a row is ``∂minimum/∂bound``: non-negative where its lower bound is active.
    """

    values: Array
    multipliers: Array
    failure: str


class LinearProgram:
    """Linear program to which columns and rows are added."""

    def __init__(self) -> None:
        import highspy  # slow to import and rarely needed

        status = highspy.HighsModelStatus
        self._optimal, self._undecided = status.kOptimal, (status.kSolveError, status.kUnknown)
        self._error = highspy.HighsStatus.kError
        # Additions refused by HiGHS, for which there is no model status.
        self._refused = ""
        # Divisors of the rows.
        self._row_units = np.ones(0)
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.setOptionValue("output_flag", False)
        self._set_tolerance(_FEASIBILITY)

    def add_columns(
        self, costs: Array, lower: float | Array = 0.0, matrix: Entries | None = None
    ) -> None:
        """Add variables of at least `lower`; `matrix` (n_rows, n_new) has their entries of A."""
        costs = np.asarray(costs, dtype=np.float64)
        n_new = len(costs)
        entries = sparse.csc_array((self._highs.getNumRow(), n_new) if matrix is None else matrix)
        scaled = entries.astype(np.float64)
        scaled.data /= self._row_units[scaled.indices]
        added = self._highs.addCols(
            n_new,
            costs,
            *_bounds(lower, np.inf, n_new),
            scaled.nnz,
            *(index.astype(np.int32) for index in (scaled.indptr, scaled.indices)),
            scaled.data,
        )
        self._note(added, f"{n_new} columns with entries up to {_largest(entries.data):.1e}")

    def add_rows(
        self, lower: float | Array, matrix: Entries, upper: float | Array = np.inf
    ) -> None:
        """Add constraints ``lower ≤ matrix @ x ≤ upper``."""
        entries = sparse.csr_array(matrix, dtype=np.float64)
        n_new = entries.shape[0]
        if not np.isfinite(entries.data).all():
            self._note(self._error, f"{n_new} rows with entries that are not finite")
            return
        sizes = np.array([_largest(entries.data[a:b]) for a, b in pairwise(entries.indptr)])
        # Powers of two, which cause no rounding errors.
        units = np.where(
            sizes > _LARGE_ENTRY, np.exp2(np.ceil(np.log2(np.maximum(sizes, 1.0)))), 1.0
        )
        scaled = sparse.diags_array(1.0 / units) @ entries
        added = self._highs.addRows(
            n_new,
            *(bound / units for bound in _bounds(lower, upper, n_new)),
            scaled.nnz,
            *(index.astype(np.int32) for index in (scaled.indptr, scaled.indices)),
            scaled.data,
        )
        if self._note(added, f"{n_new} rows with entries up to {_largest(entries.data):.1e}"):
            self._row_units = np.concatenate([self._row_units, units])

    def _note(self, status: Any, addition: str) -> bool:
        """Return True if HiGHS accepted an addition; if not, every later solution fails."""
        if status == self._error and not self._refused:
            self._refused = f"HiGHS refuses {addition}"
        return bool(status != self._error)

    def change_costs(self, costs: Array) -> None:
        """Change the costs c of all columns."""
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    @property
    def n_rows(self) -> int:
        return int(self._highs.getNumRow())

    @property
    def n_steps(self) -> int:
        """Number of simplex iterations of the last solution."""
        return int(self._highs.getInfo().simplex_iteration_count)

    def _set_tolerance(self, tolerance: float) -> None:
        for side in ("primal", "dual"):
            name = f"{side}_feasibility_tolerance"
            self._note(self._highs.setOptionValue(name, tolerance), f"{name}={tolerance:g}")

    def solve(self) -> LinearSolution:
        """Solve the program, starting from the solution before the last additions."""
        n_columns, n_rows = self._highs.getNumCol(), self.n_rows
        if self._refused:
            return LinearSolution(np.zeros(n_columns), np.zeros(n_rows), self._refused)
        ran = self._highs.run()
        if ran == self._error or self._highs.getModelStatus() in self._undecided:
            self._highs.clearSolver()
            self._set_tolerance(_EASY_FEASIBILITY)
            ran = self._highs.run()
            self._set_tolerance(_FEASIBILITY)
        status = self._highs.getModelStatus()
        solution = self._highs.getSolution()
        failure = "" if status == self._optimal else self._highs.modelStatusToString(status)
        if ran == self._error:
            failure = failure or "an error of HiGHS"
        values, multipliers = np.array(solution.col_value), np.array(solution.row_dual)
        if len(values) != n_columns or len(multipliers) != n_rows:
            failure = failure or "HiGHS has no solution"
            values, multipliers = np.zeros(n_columns), np.zeros(n_rows)
        return LinearSolution(values, multipliers / self._row_units, failure)


def _bounds(lower: float | Array, upper: float | Array, n: int) -> tuple[Array, Array]:
    """Return both as arrays; HiGHS treats IEEE infinity as its own."""
    return tuple(np.full(n, bound, dtype=np.float64) for bound in (lower, upper))  # type: ignore[return-value]


def _largest(entries: Array) -> float:
    return float(np.abs(entries).max(initial=0.0))
