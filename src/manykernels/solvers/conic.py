"""The quadratically constrained quadratic program of Ye 2008, by Clarabel.

With ``A(θ) = A_0 + Σ_i θ_i M_i`` (``A_0 = I, M_i = K_i/λ``, or with λ learnt ``A_0 = 0`` and the
identity among the M_i) and prices r_i on a simplex, ``Σ r_iθ_i = 1``,

    min_θ tr(HᵀA(θ)⁻¹H) = max_{β,t}  Σ_k β_kᵀh_k − ¼ Σ_k β_kᵀA_0β_k − ¼ t
                          s.t.  t ≥ (1/r_i) Σ_k β_kᵀM_iβ_k   for all i

(Ye 2008 (13) and (34); with λ learnt (43) and (46)). ``r_iθ_i/4`` are the multipliers of the
constraints. With ``M_i = L_iL_iᵀ`` each is a second-order cone,

    ‖(t − 1, 2 r_i^{-½} L_iᵀβ)‖ ≤ t + 1

and the multiplier is the sum of the first two entries of the cone's dual variable. Targets of
unit length and A such that the objective is 1 at equal weights keep the solver in the range
where its tolerances mean something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import clarabel
import numpy as np
from scipy import linalg, sparse

from ..domains import Array, Domain, Simplex
from ..losses.base import Loss
from ..losses.square import SquareLoss
from ._needs import affordable, on_a_simplex, square_loss
from .base import Need, Problem, Solver, Walk
from .dual import dual_bound

_TOLERANCE = 1e-9
_RANK_TOLERANCE = 1e-14
# Measured: memory and time of Clarabel, per entry of the constraints and per unit of n m³ k.
_BYTES_PER_ENTRY = 60.0
_MINUTES_PER_UNIT = 7e-10


def _program_size(solver: Solver, problem: Problem) -> str | None:
    outline = problem.outline
    m, n, k = outline.n_samples, outline.n_kernels, outline.n_outputs
    entries = float(n * k * m**2)
    return affordable(solver, problem, _BYTES_PER_ENTRY * entries, _MINUTES_PER_UNIT * entries * m)


@dataclass(frozen=True)
class QCQP(Solver, name="qcqp"):
    """Quadratically constrained program of Ye 2008, p = 1.

    Parameters
    ----------
    force : bool, default=False
        Start whatever the estimates of memory and time.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = X[:, 0] > 0
    >>> model = MKFDA(p=1, solver="qcqp").fit(X, y)
    >>> model.certificate_.converged
    True
    """

    force: bool = False

    needs: ClassVar[tuple[Need, ...]] = (square_loss, on_a_simplex, _program_size)
    default_max_iter = 200

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        assert isinstance(domain, Simplex)
        point = loss.evaluate(domain.start(loss.n_kernels) if start is None else start)
        if walk.arrive(point):
            return ""
        weights, alpha, status = _solve(loss, domain, point.value, walk.max_iter)
        if weights is not None:
            point = loss.evaluate(weights)
            settled = domain.settle(weights, point.gains)
            walk.arrive(point, bound=dual_bound(loss, domain, alpha))
            if settled.any() and not np.array_equal(settled, weights):
                walk.arrive(loss.evaluate(domain.onto_boundary(settled)))
        return f"Clarabel ended as {status}"


def _solve(
    loss: SquareLoss, domain: Simplex, value: float, max_iter: int
) -> tuple[Array | None, Array, Any]:
    """Weights, or None if there are none, α up to a factor, and the status of the solver."""
    targets = loss.rotated_targets / np.linalg.norm(loss.rotated_targets)
    scale = value / float(np.sum(loss.rotated_targets**2))
    prices = domain.prices(loss.n_kernels)
    m, k = targets.shape
    rows: list[Any] = []
    bounds: list[Array] = []
    cones = []
    for i in range(loss.n_kernels):
        root = _factor(loss.kernel(i)) * np.sqrt(scale / prices[i])
        # s = bound − row @ (β, t) = (t + 1, t − 1, 2 Lᵀβ)
        sides = sparse.csc_matrix(([-1.0, -1.0], ([0, 1], [m * k, m * k])), shape=(2, m * k + 1))
        body = sparse.kron(sparse.eye(k), sparse.csc_matrix(-2.0 * root.T))
        body = sparse.hstack([body, sparse.csc_matrix((body.shape[0], 1))])
        rows += [sides, body]
        bounds.append(np.concatenate([[1.0, -1.0], np.zeros(body.shape[0])]))
        cones.append(clarabel.SecondOrderConeT(2 + body.shape[0]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max_iter
    settings.direct_solve_method = "qdldl"  # faster than the others on these programs
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    ridge = scale * loss.fixed_ridge
    quadratic = sparse.diags(np.append(np.full(m * k, 0.5 * ridge), 0.0), format="csc")
    result = clarabel.DefaultSolver(
        quadratic,
        np.append(-targets.T.ravel(), 0.25),
        sparse.vstack(rows, format="csc"),
        np.concatenate(bounds),
        cones,
        settings,
    ).solve()
    starts = np.cumsum([0, *(len(bound) for bound in bounds[:-1])])
    alpha = np.asarray(result.x)[:-1].reshape(k, m).T
    dual = np.asarray(result.z)
    shares = np.maximum(dual[starts] + dual[starts + 1], 0.0)
    if not np.isfinite(shares).all() or not shares.any():
        return None, alpha, result.status
    return domain.onto_boundary(shares / prices), alpha, result.status


def _factor(matrix: Array) -> Array:
    """L with ``matrix = LLᵀ`` up to rounding, as few columns as it takes."""
    values, vectors = linalg.eigh(matrix)
    kept = values > _RANK_TOLERANCE * max(values[-1], 0.0)
    factor: Array = vectors[:, kept] * np.sqrt(values[kept])
    return factor
