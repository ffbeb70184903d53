"""Small convex quadratic programs over a weight domain: Clarabel, then Newton steps."""

from __future__ import annotations

from functools import lru_cache

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..domains import Array, ConicForm, Domain

# A stalled interior-point method still gives a useful point; the certificate of the outer
# problem, not the status here, decides what is accepted.
_USABLE = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
_TOLERANCE = 1e-10
_POLISHING_STEPS = 6


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
    x = _interior_point(linear, quadratic, domain, lower)
    if x is None:
        return None
    x = np.maximum(domain.settle(x, -(linear + quadratic @ x)), lower)
    if not x.any():
        return None
    free = (x > 0.0) & (x > 1.001 * lower)
    return _polish(linear, quadratic, domain.onto_boundary(x), free, domain)


def _interior_point(linear: Array, quadratic: Array, domain: Domain, lower: Array) -> Array | None:
    n = len(linear)
    form = _conic_form(domain, n)
    bound = form.bound.copy()
    bound[form.first_sign_row : form.first_sign_row + n] -= lower
    n_extra = form.matrix.shape[1] - n
    # Upper triangle column by column; the extra variables have no quadratic part.
    rows, cols = np.tril_indices(n)
    starts = np.arange(n + 1) * np.arange(1, n + 2) // 2
    pointers = np.concatenate([starts, np.full(n_extra, starts[-1])])
    objective = sparse.csc_matrix(
        (quadratic[rows, cols], cols, pointers), shape=(n + n_extra, n + n_extra)
    )
    cones = [clarabel.NonnegativeConeT(form.n_nonnegative)]
    cones += [clarabel.PowerConeT(exponent) for exponent in form.power_exponents]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    full_linear = np.concatenate([linear, np.zeros(n_extra)])
    solver = clarabel.DefaultSolver(objective, full_linear, form.matrix, bound, cones, settings)
    result = solver.solve()
    if result.status not in _USABLE:
        return None
    x: Array = np.maximum(np.asarray(result.x)[:n], 0.0)
    return x


@lru_cache(maxsize=32)
def _conic_form(domain: Domain, n_kernels: int) -> ConicForm:
    return domain.conic_form(n_kernels)


def _polish(
    linear: Array, quadratic: Array, x: Array, free: NDArray[np.bool_], domain: Domain
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
        n_free = len(y)
        system = np.zeros((n_free + 1, n_free + 1))
        system[:-1, :-1] = y[:, None] * quadratic[np.ix_(free, free)] * y
        system.flat[: n_free * (n_free + 1) : n_free + 2] += multiplier * curvature[free] * y**2
        system[-1, :-1] = system[:-1, -1] = gradient[free] * y
        # Least squares: equal kernels make the system singular, and any split of them is right.
        step = np.linalg.lstsq(system, residual, rcond=1e-13)[0][:-1]
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
