r"""The multiclass machine without bias under a block norm: its dual, bounds and exact solution.

With one vector w_j = (w_j1 … w_jk) per kernel, ``f_l(x) = Σ_j ⟨w_jl, φ_j(x)⟩``, the objective of
Orabona et al. (2010, 2012) times N C, where λ = 1/(N C), is

    P(w) = ½‖w‖²_{2,r} + Σ_i c_i max(0, 1 − f_{y_i}(x_i) + max_{l≠y_i} f_l(x_i)),
    ‖w‖_{2,r} = (Σ_j ‖w_j‖^r)^{1/r} ,  c_i = C times the weight of sample i

(Crammer and Singer's hinge). Two classes have one discriminant, ``y_i f(x_i)`` in the place of
the difference; that is the same with kernels K_j/2, whose factor is called `unit`.

**Dual.** With ``d ∈ R^{m×k}``, ``θ_j = Σ_i φ_j(x_i) d_i`` and 1/r + 1/s = 1,

    D(d) = Σ_i d_{i,y_i} − ½‖θ‖²_{2,s} ,   Σ_l d_il = 0 ,  d_il ≤ 0 for l ≠ y_i ,  d_{i,y_i} ≤ c_i
    w_j  = β_j θ_j ,   β_j = (‖θ_j‖ / ‖θ‖_{2,s})^{s−2} .

**Kernel weights.** Let r = 2p/(p + 1), so s = 2q with q = p/(p − 1). Then ``½‖θ‖²_{2,s} = σ(g)``,
where ``g_j = ½‖θ_j‖² = ½ tr(dᵀK_jd)`` and σ = ‖·‖_q is the support function of the ball
``‖β‖_p ≤ 1``, and β = ∇σ(g) is where it is attained. So the machine is ℓp-norm multiple kernel
learning, and β, with ‖β‖_p = 1, are the weights of the library. In terms of w, as
``‖w_j‖ = β_j ‖θ_j‖``, these are ``β_j ∝ ‖w_j‖^{2/(p+1)}`` (Kloft et al. 2011).

**Certificate.** Every d gives a w, and so a P. Every feasible d gives a D, and P − D bounds how
far both are from the optimum.

**Exact solution.** ``u_i = c_i e_{y_i} − d_i`` is not negative and sums to c_i. With β held, the
best u_i is a projection onto this simplex; it is followed as far as D rises. When such steps
have found which u are zero, Newton's method solves for the others: in directions V, e_l − e_l' of
a sample i, the Hessian of −D is

    (K_β)_{ii'} ⟨v, v'⟩ + Σ_jj' (∂²σ/∂g_j∂g_j') (∇g_j·v)(∇g_j'·v') .
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rounding import ACCUMULATED, EPS, ROUNDING
from ..domains import Domain, lp_domain
from ..losses import Certificate
from ..smo.face import Array, cholesky, min_curvature, solve_factored, step_within

# Most free variables of a Newton step: a factorisation of about a second.
_MOST_FREE = 3000
# Newton steps in a row. On the right face they converge quadratically; on a wrong one they stop
# at a bound, and a few of these are worth the time before steps of single samples go on.
_MOST_STEPS = 8


@dataclass(frozen=True)
class BlockNormMachine:
    """The problem: kernels, labels 0 … k − 1, penalties c and the norm p of kernel weights."""

    kernels: Any
    labels: NDArray[np.int64]
    penalties: Array
    n_classes: int
    p: float

    @cached_property
    def domain(self) -> Domain:
        """The ball of the kernel weights."""
        return lp_domain(self.p)

    @property
    def q(self) -> float:
        """The exponent of σ."""
        return 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)

    @property
    def unit(self) -> float:
        """Factor of all kernels."""
        return 0.5 if self.n_classes == 2 else 1.0

    @cached_property
    def own(self) -> tuple[Any, Any]:
        """Index of every sample's own class in arrays (k, m)."""
        return self.labels, np.arange(len(self.labels))

    @cached_property
    def matrices(self) -> Array:
        """The kernels as one array, (n_kernels, m, m)."""
        return np.ascontiguousarray(self.kernels.materialized().data, dtype=np.float64)

    @cached_property
    def min_curvature(self) -> float:
        """Curvature that is a rounding error."""
        return self.unit * min_curvature(self.kernels.row_diag.sum(axis=0))

    def point(self, d: Array) -> DualPoint:
        """The machine with these coefficients, (k, m), whether feasible or not."""
        products = self.unit * np.ascontiguousarray(self.kernels.apply(d.T).mT)
        return DualPoint(self, d, products)

    def feasible(self, d: Array) -> Array:
        """`d`, each sample scaled down to its penalty."""
        own = d[self.own]
        with np.errstate(divide="ignore", invalid="ignore"):
            return d * np.where(own > self.penalties, self.penalties / own, 1.0)

    def slacks(self, d: Array) -> Array:
        """u of a feasible d."""
        u = np.maximum(-d, 0.0)
        rest = self.penalties - d[self.own]
        # Zeros must be exact: they tell which variables are free.
        u[self.own] = np.where(rest > ROUNDING * self.penalties, rest, 0.0)
        return u

    def coefficients(self, u: Array) -> Array:
        """d of u."""
        d = -u
        d[self.own] = 0.0
        d[self.own] = -d.sum(axis=0)
        return d


@dataclass(frozen=True)
class DualPoint:
    """Coefficients d with their products ``F_j = unit · d K_j``; see the module."""

    machine: BlockNormMachine
    d: Array = field(repr=False)
    products: Array = field(repr=False)

    @cached_property
    def squares(self) -> Array:
        """``‖θ_j‖²``."""
        return np.maximum(np.einsum("lm,jlm->j", self.d, self.products), 0.0)

    @cached_property
    def weights(self) -> Array:
        """β."""
        return np.asarray(self.machine.domain.maximizer(0.5 * self.squares))

    @cached_property
    def outputs(self) -> Array:
        """f, (k, m)."""
        return np.tensordot(self.weights, self.products, 1)

    @property
    def energy(self) -> float:
        """``½‖w‖²_{2,r} = σ(g)``."""
        return float(self.machine.domain.support(0.5 * self.squares))

    @property
    def primal(self) -> float:
        """P."""
        machine = self.machine
        others = self.outputs.copy()
        others[machine.own] = -np.inf
        margins = self.outputs[machine.own] - others.max(axis=0)
        return self.energy + float(machine.penalties @ np.maximum(1.0 - margins, 0.0))

    @property
    def dual(self) -> float:
        """D, if d is feasible."""
        return float(self.d[self.machine.own].sum()) - self.energy

    @property
    def rounding(self) -> float:
        """Rounding error of P − D: that of the forms, and of the sums over samples."""
        machine = self.machine
        reach = 0.5 * (self.d != 0.0) * machine.penalties
        errors = machine.unit * machine.kernels.form_errors(reach.T + np.abs(self.d.T), self.d.T)
        sums = ROUNDING * float(np.abs(self.d[machine.own]).sum()) + EPS * self.primal
        return float(machine.domain.support(errors)) + sums

    def certificate(self, tol: float, bound: DualPoint | None = None) -> Certificate:
        """Of this machine; the lower bound may be that of another, feasible point."""
        proof = self if bound is None else bound
        primal, dual = self.primal, proof.dual
        d = proof.d.T if self.machine.n_classes > 2 else proof.d[1:].T
        return Certificate(primal, dual, primal - dual, tol, self.rounding, d)

    def refined(self) -> tuple[DualPoint, bool]:
        """After Newton steps in the u that are not zero, and whether more of them are no use."""
        point = self
        for _ in range(_MOST_STEPS):
            after = point._newton_step()
            if after is None or after.dual < point.dual - point.rounding:
                return point, True
            point = after
        return point, False

    @property
    def n_free(self) -> int:
        """How many variables a Newton step has."""
        u = self.machine.slacks(self.d)
        return int(np.count_nonzero(u)) - u.shape[1]

    def _newton_step(self) -> DualPoint | None:
        """The point after one step; None if D would not rise, or the system is too large."""
        from ._obscure_loops import best_step

        machine = self.machine
        u = machine.slacks(self.d)
        # Of every sample, all u that are not zero but the largest.
        largest = u.argmax(axis=0)
        free = u > 0.0
        free[largest, machine.own[1]] = False
        classes, rows = np.nonzero(free)
        n = len(rows)
        if not 0 < n <= _MOST_FREE:
            return None
        V = np.zeros((n, machine.n_classes))
        V[np.arange(n), classes] = 1.0
        V[np.arange(n), largest[rows]] = -1.0
        ascent = self.outputs.copy()
        ascent[machine.own] -= 1.0  # ∂D/∂u
        slopes = np.einsum("nl,ln->n", V, ascent[:, rows])
        # Not when D stops rising: P is less flat than D, and has only half as many digits then.
        if np.abs(slopes).max() <= ACCUMULATED * (1.0 + np.abs(self.outputs).max()):
            return None
        forms = -np.einsum("nl,jln->nj", V, self.products[:, :, rows])  # ∇g_j along V
        hessian = machine.unit * machine.kernels.combine_block(self.weights, rows) * (V @ V.T)
        hessian += forms @ self._curvature() @ forms.T
        scale = float(hessian.diagonal().mean())
        if not scale > 0.0:
            return None
        # Equal samples make the Hessian singular; see smo.multiclass.
        hessian.flat[:: n + 1] += 10.0 * ACCUMULATED * scale
        factor = cholesky(np.ascontiguousarray(0.5 * (hessian + hessian.T)), scale)
        if factor is None:
            return None
        step = solve_factored(factor, slopes[:, None])[:, 0]
        change = np.zeros_like(u)
        np.add.at(change.T, rows, step[:, None] * V)
        flat, longest = step_within(
            u.ravel(), change.ravel(), np.zeros(u.size), np.full(u.size, np.inf)
        )
        moved = flat.reshape(u.shape)
        direction = machine.point(-longest * change)
        halves = np.einsum("lm,jlm->j", direction.d, self.products)
        slope = float(direction.d[machine.own].sum())
        room = np.empty((2, len(self.weights)))
        t = best_step(self.squares, halves, direction.squares, slope, machine.q, *room)
        if t < 1.0:
            moved = np.maximum(u + t * longest * change, 0.0)
        return machine.point(machine.coefficients(moved))

    def _curvature(self) -> Array:
        """``∂²σ/∂g_j∂g_j'``."""
        q, size = self.machine.q, self.energy
        if q == 1.0 or not size > 0.0:
            return np.zeros((len(self.squares),) * 2)
        shares = 0.5 * self.squares / size
        with np.errstate(divide="ignore"):
            own = np.where(shares > 0.0, shares ** (q - 2.0), 0.0)
        curvature: Array = (q - 1.0) / size * (np.diag(own) - np.outer(self.weights, self.weights))
        return curvature
