"""The quadratically constrained quadratic programs of Lanckriet 2004 and Ye 2008, by Clarabel.

A loss with a dual program (:mod:`manykernels.losses.program`) and prices r_j on a simplex,
``Σ r_jβ_j = 1``, has the minimum

    min_β F = max_{v,t}  Σ_k {c_k·v_k − e_k Σ_i|v_ik| − ½ Σ_i r_ik v_ik²} − ½ t
              s.t.  t ≥ (1/r_j) Σ_k v_kᵀM_jv_k  for all j,   l ≤ v ≤ u,   Σ_i v_ik = s_k

For the hinge, the squared hinge and the squared hinge whose C is learnt, with traces for prices,
these are SM1, SM2 and SM2_C of Lanckriet et al. (2004). The square loss (Ye 2008 (13) and (34),
with λ learnt (43) and (46)) has neither bounds nor sums. ``r_jβ_j/2`` are the multipliers
of the constraints. With ``M_j = L_jL_jᵀ`` each is a second-order cone,

    ‖(t − 1, 2 r_j^{-½} L_jᵀv)‖ ≤ t + 1

and the multiplier is the sum of the first two entries of the cone's dual variable. The program is
scaled so that the objective is 1 at equal weights and c has unit length (or without c, s a length
of about one): the tolerances of the solver are absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import clarabel
import numpy as np
from scipy import linalg, sparse

from ..._rounding import ACCUMULATED, ROUNDING
from ...domains import Array, Domain, Simplex
from ...losses.base import Loss, Outline
from ...losses.program import DualProgram, HasDualProgram
from .._needs import Expensive, affordable, dual_program, on_a_simplex
from ..base import Need, start_or_uniform
from ..certificate import NO_BOUND, Bound
from ..quadratic import clarabel_settings
from ..run import Run

# Tolerance of Clarabel, whose own default is 1e-8: weights have the square root of its errors.
_TOLERANCE = 1e-9
# Measured: memory and time of Clarabel, per entry of the constraints and per unit of n m³ k.
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

    needs: ClassVar[tuple[Need, ...]] = (dual_program, on_a_simplex, affordable)
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
            run.record(point, bound=_bound(loss, domain, v))
            if settled.any() and not np.array_equal(settled, weights):
                run.record(loss.evaluate(domain.onto_boundary(settled)))
        return f"Clarabel ended as {status}"


@dataclass(frozen=True)
class _Scaled:
    """The program in ``v/length``, its objective in units of `value`."""

    program: DualProgram
    length: float
    value: float

    @classmethod
    def at(cls, program: DualProgram, value: float) -> _Scaled:
        """In the units of the module, for an objective that is `value` at equal weights."""
        linear = program.linear
        if program.totals is not None:
            # Where Σv is given, the mean of c adds a constant to the objective.
            linear = linear - linear.mean(axis=0)
        value = abs(value) or 1.0
        size = float(np.linalg.norm(linear))
        if size > ACCUMULATED * float(np.abs(program.linear).max(initial=0.0)):
            length = value / size
        else:
            totals = np.zeros(1) if program.totals is None else program.totals
            length = float(np.linalg.norm(totals)) / np.sqrt(linear.size) or 1.0
        first, second = length / value, length**2 / value
        scaled = DualProgram(
            linear=first * linear,
            ridge=second * program.ridge,
            lower=program.lower / length,
            upper=program.upper / length,
            widths=first * program.widths,
            totals=None if program.totals is None else program.totals / length,
        )
        return cls(scaled, length, value)

    def root(self, kernel: Array, price: float) -> Array:
        """L of a kernel in these units, per price."""
        root: Array = _factor(kernel) * (self.length / np.sqrt(self.value * price))
        return root


def _solve(
    loss: HasDualProgram, domain: Simplex, value: float, max_iter: int
) -> tuple[Array | None, Array, Any]:
    """Weights, or None if there are none, v, and the status of the solver."""
    scaled = _Scaled.at(loss.dual_program(), value)
    program = scaled.program
    prices = domain.prices(loss.n_kernels)
    m, k = program.linear.shape
    # Variables are v, output after output, then |v| where that has a price, then t.
    kinked = np.repeat(program.widths, m) if program.widths.any() else np.zeros(0)
    cost = np.concatenate([-program.linear.T.ravel(), kinked, [0.5]])
    curvature = np.append(program.ridge.T.ravel(), np.zeros(len(kinked) + 1))
    constraints = _Constraints(len(cost))
    _add_bounds(constraints, program)
    starts = []
    for j in range(loss.n_kernels):
        body = sparse.kron(
            sparse.eye(k), sparse.csc_matrix(-2.0 * scaled.root(loss.kernel(j), prices[j]).T)
        )
        # bound − row @ (v, |v|, t) = (t + 1, t − 1, 2 Lᵀv)
        sides = sparse.csc_matrix(([-1.0, -1.0], ([0, 1], [len(cost) - 1] * 2)), (2, len(cost)))
        rows = sparse.vstack([sides, constraints.wide(body)])
        bound = np.concatenate([[1.0, -1.0], np.zeros(body.shape[0])])
        starts.append(constraints.add(rows, bound, clarabel.SecondOrderConeT))
    settings = clarabel_settings(_TOLERANCE)
    settings.max_iter = max_iter
    settings.direct_solve_method = "qdldl"  # faster than the others on these programs
    result = clarabel.DefaultSolver(
        sparse.diags(curvature, format="csc"),
        cost,
        sparse.vstack(constraints.rows, format="csc"),
        np.concatenate(constraints.bounds),
        constraints.cones,
        settings,
    ).solve()
    v = scaled.length * np.asarray(result.x)[: m * k].reshape(k, m).T
    dual = np.asarray(result.z)
    shares = np.maximum(dual[starts] + dual[np.array(starts) + 1], 0.0)
    if not np.isfinite(shares).all() or not shares.any():
        return None, v, result.status
    return domain.onto_boundary(shares / prices), v, result.status


class _Constraints:
    """Rows of ``bound − row @ x ∈ cone``, cone after cone."""

    def __init__(self, n_variables: int) -> None:
        self.n_variables = n_variables
        self.rows: list[Any] = []
        self.bounds: list[Array] = []
        self.cones: list[Any] = []

    def add(self, rows: Any, bound: Array, cone: Any) -> int:
        """Add the rows of one cone; returns the number of rows before them."""
        start = sum(map(len, self.bounds))
        if len(bound):
            self.rows.append(self.wide(rows))
            self.bounds.append(bound)
            self.cones.append(cone(len(bound)))
        return start

    def wide(self, rows: Any) -> Any:
        """Rows of the first variables as rows of all of them."""
        missing = self.n_variables - rows.shape[1]
        return sparse.hstack([rows, sparse.csc_matrix((rows.shape[0], missing))], format="csc")


def _add_bounds(constraints: _Constraints, program: DualProgram) -> None:
    """``l ≤ v ≤ u``, the totals, and |v| above both v and −v."""
    m, k = program.linear.shape
    if program.totals is not None:
        sums = sparse.kron(sparse.eye(k), np.ones((1, m)))
        constraints.add(sums, program.totals, clarabel.ZeroConeT)
    eye = sparse.eye(m * k, format="csr")
    for sign, ends in ((1.0, program.upper), (-1.0, -program.lower)):
        bound = ends.T.ravel()
        finite = np.flatnonzero(np.isfinite(bound))
        constraints.add(sign * eye[finite], bound[finite], clarabel.NonnegativeConeT)
        if program.widths.any():
            above = sparse.hstack([sign * eye, -eye])
            constraints.add(above, np.zeros(m * k), clarabel.NonnegativeConeT)


def _bound(loss: HasDualProgram, domain: Simplex, v: Array) -> Bound:
    """What v proves of the minimum, feasible or not."""
    if not np.isfinite(v).all():
        return NO_BOUND
    dual = loss.dual_of(v)
    return Bound(loss.lower_bound(dual, domain.support), dual)


def _factor(matrix: Array) -> Array:
    """L with ``matrix = LLᵀ`` up to rounding, as few columns as it takes."""
    values, vectors = linalg.eigh(matrix)
    kept = values > ROUNDING * max(values[-1], 0.0)
    factor: Array = vectors[:, kept] * np.sqrt(values[kept])
    return factor
