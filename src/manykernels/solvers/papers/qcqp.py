"""The quadratically constrained quadratic programs of Lanckriet 2004 and Ye 2008, by Clarabel.

A loss with a dual program (:mod:`manykernels.losses.program`) and prices r_j on a simplex,
``Σ r_jβ_j = 1``, has the minimum (r_ik being the ridge of that program)

    min_β F = max_{v,t}  Σ_k {c_k·v_k − e_k Σ_i|v_ik| − ½ Σ_i r_ik v_ik²} − ½ t
              s.t.  t ≥ (1/r_j) Σ_k v_kᵀM_jv_k  for all j,   l ≤ v ≤ u,   Σ_i v_ik = s_k

For the hinge, the squared hinge and the squared hinge whose C is learnt, with traces for prices,
these are SM1, SM2 and SM2_C of Lanckriet et al. (2004). The square loss (Ye 2008 (13) and (34),
with λ learnt (43) and (46)) has neither bounds nor sums. The constraints on t have multipliers
``r_jβ_j/2``. With ``M_j = L_jL_jᵀ`` each is a second-order cone,

    ‖(t − 1, 2 r_j^{-½} L_jᵀv)‖ ≤ t + 1

and its multiplier is the sum of the first two entries of the cone's dual variable. As Clarabel has
absolute tolerances too, the program is scaled: its objective is 1 at the start, and c (or without
c, v) has a length of about one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import linalg, sparse

from ..._rounding import ACCUMULATED, ROUNDING
from ...domains import Array, Domain, Simplex
from ...losses.base import Loss, Outline
from ...losses.program import DualProgram, HasDualProgram
from .._needs import Expensive, affordable, dual_program, on_a_simplex
from ..base import start_or_uniform
from ..certificate import Bound
from ..quadratic import clarabel_settings
from ..run import Run

# Tolerance of Clarabel, below its default of 1e-8: errors of weights are about the square root.
_TOLERANCE = 1e-9
# Measured: memory of Clarabel per entry of the constraints, and its time per unit of n m³ k.
_BYTES_PER_ENTRY = 60.0
_MINUTES_PER_UNIT = 7e-10


@dataclass(frozen=True)
class QCQP(Expensive, name="qcqp"):
    """Quadratically constrained program of Lanckriet 2004 and Ye 2008, p = 1.

    Large problems are refused unless ``force=True``.

    Examples
    --------
    >>> from manykernels import MKFDA, MKSVC
    >>> from sklearn import datasets
    >>> X, y = datasets.load_iris(return_X_y=True)
    >>> for estimator in (MKFDA(p=1, solver="qcqp"), MKSVC(p=1, solver="qcqp", tol=1e-4)):
    ...     assert estimator.fit(X[::3], y[::3]).certificate_.converged
    """

    needs = (dual_program, on_a_simplex, affordable)
    # The default of Clarabel, whose iterations these are.
    default_max_iter = 200

    def cost(self, outline: Outline) -> tuple[float, float]:
        m, n, k = outline.n_samples, outline.n_kernels, outline.n_outputs
        entries = float(n * k * m**2)
        return _BYTES_PER_ENTRY * entries, _MINUTES_PER_UNIT * entries * m

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, HasDualProgram)
        assert isinstance(domain, Simplex)
        point = loss.evaluate(start_or_uniform(start, loss, domain))
        if run.record(point):
            return ""
        weights, v, status = _solve(loss, domain, point.value, run.max_iter)
        if weights is not None:
            point = loss.evaluate(weights)
            settled = domain.settle(weights, point.gains)
            dual = loss.dual_of(v)
            run.record(point, bound=Bound(loss.lower_bound(dual, domain.support), dual))
            if settled.any() and not np.array_equal(settled, weights):
                run.record(loss.evaluate(domain.onto_boundary(settled)))
        return f"Clarabel ended as {status}"


def _scaled(program: DualProgram, value: float) -> tuple[DualProgram, float]:
    """The program in ``v/length``, its objective in units of `value`; and that length."""
    linear = program.linear
    if program.totals is not None:
        # Where Σv is given, the mean of c only adds a constant to the objective.
        linear = linear - linear.mean(axis=0)
    size = float(np.linalg.norm(linear))
    if size > ACCUMULATED * float(np.abs(program.linear).max(initial=0.0)):
        length = value / size
    else:
        sums = 0.0 if program.totals is None else float(np.linalg.norm(program.totals))
        length = sums / np.sqrt(linear.size) or 1.0
    first, second = length / value, length**2 / value
    totals = None if program.totals is None else program.totals / length
    bounds = program.lower / length, program.upper / length
    linear, ridge, widths = first * linear, second * program.ridge, first * program.widths
    return DualProgram(linear, ridge, *bounds, widths, totals), length


def _solve(
    loss: HasDualProgram, domain: Simplex, value: float, max_iter: int
) -> tuple[Array | None, Array, Any]:
    """Weights, or None if Clarabel finds none; v; and the status of Clarabel."""
    value = abs(value) or 1.0
    program, length = _scaled(loss.dual_program(), value)
    prices = domain.prices(loss.n_kernels)
    m, k = program.linear.shape
    # Variables are v, output after output, then |v| where it has a cost e, then t.
    kinked = np.repeat(program.widths, m) if program.widths.any() else np.zeros(0)
    cost = np.concatenate([-program.linear.T.ravel(), kinked, [0.5]])
    curvature = np.append(program.ridge.T.ravel(), np.zeros(len(kinked) + 1))
    blocks = [block for block in _box(program) if len(block[1])]
    n_bounds = len(blocks)
    for j in range(loss.n_kernels):
        root = _root(loss.kernel(j)) * (length / np.sqrt(value * prices[j]))
        blocks.append(_cone(root, k, len(kinked)))
    rows, bounds, cones = zip(*blocks, strict=True)
    settings = clarabel_settings(_TOLERANCE)
    settings.max_iter = max_iter
    settings.direct_solve_method = "qdldl"  # faster than the others on these programs
    result = clarabel.DefaultSolver(
        sparse.diags(curvature, format="csc"),
        cost,
        sparse.vstack([_widened(block, len(cost)) for block in rows], format="csc"),
        np.concatenate(bounds),
        [cone(len(bound)) for cone, bound in zip(cones, bounds, strict=True)],
        settings,
    ).solve()
    v = length * np.asarray(result.x)[: m * k].reshape(k, m).T
    dual = np.asarray(result.z)
    starts = np.cumsum([0, *map(len, bounds)])[n_bounds:-1]
    shares = np.maximum(dual[starts] + dual[starts + 1], 0.0)
    if not (np.isfinite(v).all() and np.isfinite(shares).all() and shares.any()):
        return None, v, result.status
    return domain.onto_boundary(shares / prices), v, result.status


#: Rows of ``bound − row @ u ∈ cone`` for the first variables of u, bound and cone.
Block = tuple[Any, Array, Any]


def _box(program: DualProgram) -> Iterator[Block]:
    """The totals, ``l ≤ v ≤ u``, and |v| above both v and −v; some may have no rows."""
    m, k = program.linear.shape
    if program.totals is not None:
        yield sparse.kron(sparse.eye(k), np.ones((1, m))), program.totals, clarabel.ZeroConeT
    eye = sparse.eye(m * k, format="csr")
    for sign, ends in ((1.0, program.upper), (-1.0, -program.lower)):
        bound = ends.T.ravel()
        finite = np.flatnonzero(np.isfinite(bound))
        yield sign * eye[finite], bound[finite], clarabel.NonnegativeConeT
        if program.widths.any():
            yield sparse.hstack([sign * eye, -eye]), np.zeros(m * k), clarabel.NonnegativeConeT


def _cone(root: Array, k: int, n_between: int) -> Block:
    """``(t + 1, t − 1, 2 Lᵀv_1, …, 2 Lᵀv_k)`` in the second-order cone, for L = `root`."""
    of_v = sparse.kron(sparse.eye(k), sparse.csc_matrix(-2.0 * root.T))
    of_t = sparse.csc_matrix([[-1.0], [-1.0]])
    rows = sparse.bmat([[None, of_t], [_widened(of_v, of_v.shape[1] + n_between), None]])
    return rows, np.append([1.0, -1.0], np.zeros(of_v.shape[0])), clarabel.SecondOrderConeT


def _widened(rows: Any, n_variables: int) -> Any:
    """Rows of the first variables as rows of all of them."""
    missing = sparse.csc_matrix((rows.shape[0], n_variables - rows.shape[1]))
    return sparse.hstack([rows, missing], format="csc")


def _root(kernel: Array) -> Array:
    """L with ``kernel = LLᵀ`` up to rounding, as few columns as it takes."""
    values, vectors = linalg.eigh(kernel)
    kept = values > ROUNDING * max(values[-1], 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
