"""Losses of support vector machines: an inner program with bounds and one equality.

F sums over the outputs a program of :mod:`manykernels.smo.box` on the combined kernel, each with
its own c, e, r, bounds and total:

    F(β) = Σ_k max_v {c·v − e Σ|v_i| − ½ vᵀ(K_β + diag r)v  :  l ≤ v ≤ u, Σ v_i = s}

(Sonnenburg 2006, Kloft 2011, with one weight vector for all outputs). With v_k the solutions

    g_j    = −∂F/∂β_j = ½ Σ_k v_kᵀ K_j v_k
    ∇²F_ij = Σ_k (K_i v_k)_Sᵀ [M⁻¹]_SS (K_j v_k)_S ,   M = [[(K_β + diag r)_SS, 1], [1ᵀ, 0]]

where S are the variables of output k strictly between their bounds: as β moves, the others stay
at their bounds and ``M (dv_S, db) = −(dK v)_S``. Where a variable is about to leave its bound, the
gradient of F has a kink and the Hessian is that of one side only, so steps need a line search.

Programs are solved to a relative gap. `value` is the upper bound P of that gap, attained by the
machine ``t v`` with its bias (see :meth:`~manykernels.smo.program.BoxProblem.machine`). The gains
belong to the lower bound D, which is linear in β for the v found. `slack` is ``P − D``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..smo.box import Ascent
from ..smo.multiclass import MulticlassProblem, face_of, solve_multiclass
from ..smo.program import BoxProblem, BoxSolution, Face
from ..utils.numerics import EPS, ROUNDING, matmul
from .base import (
    Array,
    ColumnKernels,
    DualPoint,
    DualProgram,
    HasDualProgram,
    Indices,
    KernelOperator,
    ProblemSpec,
    gains_of,
    nearly_definite,
)
from .on_demand import Lease, Workspace, WorkspaceEvaluation, WorkspaceLoss
from .square import LearntRegularization, Raised, WithIdentity

#: Relative gap of the inner machines, a hundredth of the solvers' default tolerance because this
#: gap is part of the certified one.
INNER_TOL = 1e-8
# Barrier parameter μ of the smoothed Hessian as a fraction of the gap of F. Measured on 72 fits
# (two losses, C from 0.1 to 100, p from 1 to 2): 5.6 inner solves in the mean and 11 at most,
# against 5.9 and 18 at a tenth of it, 6.0 and 19 at ten times.
_BARRIER = 0.03


class BoxLoss(HasDualProgram, WorkspaceLoss):
    """F(β) of one or several support vector machines on the same kernels.

    Parameters
    ----------
    kernels : KernelOperator
    problems : list of BoxProblem
        One per output.
    inner_tol : float
        Relative gap of their solutions.
    """

    def __init__(
        self, kernels: KernelOperator, problems: list[BoxProblem], inner_tol: float = INNER_TOL
    ) -> None:
        self.kernels = kernels
        self.problems = problems
        self.inner_tol = inner_tol
        self.workspace = Workspace(kernels.shape[0])
        # Last solution of each program, from which the next one starts. Restricted copies share
        # this list, so each is warm-started at the last solution of any.
        self._starts: list[Array | None] = [None] * len(problems)

    def continue_from(self, other: BoxLoss) -> None:
        """Start at the last solutions of another loss on the same kernels; share its workspace."""
        self.workspace = other.workspace
        self._starts = list(other._starts)

    @property
    def spec(self) -> ProblemSpec:
        n_samples, _, n_kernels = self.kernels.shape
        n_outputs = len(self.problems)
        return ProblemSpec(
            type(self), n_samples, n_kernels, n_outputs, self.learns_reg, self.on_demand
        )

    def programs(self, weights: Array) -> list[BoxProblem]:
        """Return the programs of all outputs at these weights."""
        return self.problems

    def _combine(self, weights: Array) -> Array:
        """Set `_matrix` to K_β, and return β, which a subclass may have changed.

        A single kernel that is stored as it is needs no copy, which would take longer than the
        machine.
        """
        matrix = None
        if not any(problem.total for problem in self.problems):
            stored_sum = getattr(self.kernels, "stored_sum", None)
            matrix = stored_sum(weights) if stored_sum is not None else None
        if matrix is None:
            matrix = self.workspace.matrix
            self.kernels.combine(weights, out=matrix)
        self._matrix = matrix
        return weights

    def evaluate(self, weights: Array) -> BoxEvaluation:
        """Solve the inner programs at `weights`, each warm-started at its last solution."""
        lease = self.workspace.lend()
        weights = self._combine(weights)
        ascents = []
        for k, problem in enumerate(self.programs(weights)):
            ascent = Ascent(self._matrix, problem, self._starts[k])
            ascent.run_to_gap(self.inner_tol)
            ascent.v = problem.balanced(ascent.v)
            self._starts[k] = ascent.v
            ascents.append(ascent)
        dual = np.column_stack([ascent.v for ascent in ascents])
        products = self.products(dual)
        combined = np.tensordot(self.kernel_weights(weights), self.kernel_weights(products), 1)
        for ascent, product in zip(ascents, combined.T, strict=True):
            # Computed from the kernels, without the rounding errors of the steps.
            ascent.f = np.ascontiguousarray(product)
        solutions = [ascent.solution() for ascent in ascents]
        gains = gains_of(dual, products)
        return BoxEvaluation(weights, gains, solutions, self, products, ascents, lease)

    def refill(self, weights: Array) -> Lease:
        """Recompute K_β at a point."""
        lease = self.workspace.lend()
        self._combine(weights)
        return lease

    def products(self, dual: Array) -> Array:
        """Return ``K_j v`` of every weight and output, (n_weights, m, n_outputs)."""
        return self.kernels.apply(dual)

    def form_errors(self, v: Array) -> Array:
        return self.kernels.form_errors(v, v)

    def dual_program(self) -> DualProgram:
        return DualProgram.of(self.problems)

    def dual_of(self, v: Array) -> Array:
        return v

    def variables_of(self, dual: Array) -> Array:
        return dual


@dataclass
class BoxPoint:
    """Machines at one point of weight space, and the bounds they prove; see the module."""

    weights: Array
    gains: Array
    solutions: list[BoxSolution] = field(repr=False)
    _loss: BoxLoss = field(repr=False)

    @cached_property
    def value(self) -> float:
        """Upper bound P on F."""
        return float(sum(solution.primal for solution in self.solutions))

    @cached_property
    def rounding(self) -> float:
        """Rounding errors of the losses, which are differences of c, f and b, and of f.

        At a kink of the loss an error of f matters on one side only, so half of it counts.
        """
        error = float(sum(solution.rounding for solution in self.solutions))
        errors = self._loss.kernels.form_errors(0.5 * self.reach, self.dual)
        return error + float(self.weights @ errors)

    @cached_property
    def reach(self) -> Array:
        """Bound on the derivative of the objective in the outputs of samples, (m, n_outputs)."""
        return np.column_stack([solution.reach for solution in self.solutions])

    @cached_property
    def gain_errors(self) -> Array:
        return 0.5 * self._loss.form_errors(self.dual)

    @property
    def hyperbolic(self) -> bool:
        """Whether c is nonzero; otherwise v is the same for every multiple of K_β."""
        return any(problem.linear.any() for problem in self._loss.problems)

    @cached_property
    def slack(self) -> float:
        """Gap ``P − D``."""
        return float(sum(solution.gap for solution in self.solutions))

    @cached_property
    def dual(self) -> Array:
        """Dual variables v, (m, n_outputs)."""
        return np.column_stack([solution.v for solution in self.solutions])

    @cached_property
    def coefficients(self) -> Array:
        """``t v`` of the machines whose P is the value, (m, n_outputs)."""
        return np.column_stack([solution.scale * solution.v for solution in self.solutions])

    @property
    def biases(self) -> Array:
        """Bias b of every output."""
        return np.array([solution.bias for solution in self.solutions])


@dataclass
class BoxEvaluation(BoxPoint, WorkspaceEvaluation):
    """F of support vector machines at one point; see the module for the formulas."""

    _products: Array = field(repr=False)
    _ascents: list[Ascent] = field(repr=False)
    _lease: Lease | None = field(repr=False, compare=False)

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights)

    def hessian(self) -> Array:
        """Return ``∇²F`` on the free variables, as if the others stayed at their bounds."""
        self.restore()
        return self._curvature([ascent.face() for ascent in self._ascents])

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F`` smoothed over the range in which F may still fall by `gap`.

        A barrier ``μ log`` on the bounds makes F smooth. A variable with multiplier λ_i at its
        bound then has the stiffness ``λ_i²/μ`` instead of an infinite one: variables with small
        multipliers count as nearly free, and fewer do as the gap closes.
        """
        self.restore()
        barrier = _BARRIER * gap
        faces = [
            ascent.face() if barrier <= 0.0 else ascent.soft_face(barrier)
            for ascent in self._ascents
        ]
        return nearly_definite(self._curvature(faces))

    def _curvature(self, faces: list[tuple[Indices, Face | None]]) -> Array:
        """Return ``∇²F`` on the given faces of the boxes."""
        hessian = np.zeros((len(self.weights), len(self.weights)))
        for k, (free, face) in enumerate(faces):
            if face is not None:
                columns = self._products[:, free, k].T
                hessian += matmul(columns.T, face.solve(columns))
        return 0.5 * (hessian + hessian.T)


# -- Support vector machines solved a few variables at a time, while kernel weights change --------
#
# In the notation of :mod:`manykernels.losses.svm`: the products ``K_j v_k``, kept for every kernel
# and output, give the slopes ``c − K_βv − r∘v`` and the gains at any weights, so the weights may
# change from one step to the next. A visit chooses a working set W of the variables of one output
# and takes steps on the program of :mod:`manykernels.smo.box` in them, the others fixed:
#
#     max_x  (c − K_βv)_W·x + x·(K_β)_WW v_W − e Σ|x_i| − ½ xᵀ(K_β + diag r)_WW x, Σ x_i = Σ_W v_i
#
# (Joachims 1999). Then it updates the products by the columns of the variables that have moved,
# so no matrix is larger than |W|×|W|. W holds the variables that violate the optimality
# conditions most, as many with the largest up as with the smallest down. Up to half of W are
# variables that were free in the last working set of that output: fixing these would undo its
# work. If W is all variables, a visit takes few pair steps, so that the weights are updated
# often; if not, the columns of the variables that move cost more than the steps, and a visit
# takes many.
#
# Kernels by columns (:class:`~manykernels.kernels.on_demand.StreamedKernels`) cache panels of
# columns that are requested together repeatedly. So variables that move for the first time are
# grouped into strips, which stay together. Most variables never move, and their columns are
# never computed.
#
# Any v gives the bounds ``D(v, β) ≤ F(β) ≤ P(v, β)`` from the products alone.


# Largest number of variables in a strip: enough for fast matrix products, and few enough that
# hardly any columns are computed for variables that do not move.
_STRIP = 64
# Maximum number of pair steps of a visit, per variable of a working set of some variables.
# Measured at m = 700 with sets of 100: 35 rounds of visits on average with 1, 22 with 5, 20 with
# 20.
_STEPS_OF_A_SET = 20
# A visit ends when the violation has fallen to this fraction. More precision would be lost when
# the weights and the variables outside W move. In the same problems: 28 rounds at 0.3,
# 20 at this value, 18 at a tenth of it, which takes as long.
_SHARE_OF_VIOLATION = 1e-2


class BoxAscent:
    """Feasible v of every output in `dual`, improved one working set after the other.

    `products` are ``K_j v``, (n_kernels, m, n_outputs), and `working_set` is the largest size of
    a working set. The regularisation of `loss` must not depend on the weights.
    """

    def __init__(self, loss: BoxLoss, working_set: int) -> None:
        self._loss = loss
        self._kernels: ColumnKernels = loss.kernels  # type: ignore[assignment]
        m, _, n = loss.kernels.shape
        self._size = min(m, max(2, working_set))
        self._whole: Array | None = None
        self._strips: list[Indices] = []
        self._strip_of = np.full(m, -1)
        self.dual = np.zeros((m, len(loss.problems)))
        self.products = np.zeros((n, m, len(loss.problems)))
        self.n_steps = 0
        self._free = [np.empty(0, dtype=np.intp) for _ in loss.problems]
        for k, problem in enumerate(loss.problems):
            self._move(k, np.arange(m), problem.feasible(np.zeros(m)))

    def point(self, weights: Array) -> InexactBoxPoint:
        """Return the bounds proved by v at some weights."""
        return InexactBoxPoint.of(self._loss, weights, self.dual, self.products, self.n_steps)

    def visit_all(self, weights: Array) -> bool:
        """Visit every output once at these weights; return False if no variable moves."""
        if self._size == len(self.dual):
            self._whole = self._kernels.combine(weights, out=self._whole)
        moved = [self._visit(k, weights) for k in range(self.dual.shape[1])]
        return any(moved)

    def _visit(self, k: int, weights: Array) -> bool:
        problem, v = self._loss.problems[k], self.dual[:, k]
        f = weights @ self.products[:, :, k]
        up, down = problem.slopes(v, f)
        violation = float(up.max() - down.min())
        if violation <= ROUNDING * float(np.abs(problem.linear).max() + np.abs(f).max()):
            return False
        rows = self._working_set(k, up, down)
        matrix = self._whole
        if matrix is None:
            matrix = self._kernels.combine_block(weights, rows)
        start = v[rows]
        ascent = Ascent(
            matrix,
            problem.restricted(rows, v, problem.linear[rows] - f[rows] + matrix @ start),
            start,
        )
        goal = _SHARE_OF_VIOLATION * violation
        ascent.run(goal, len(rows) if len(rows) == len(v) else _STEPS_OF_A_SET * len(rows))
        if ascent.violation > goal:
            # Pair steps converge slowly where kernels are close to singular.
            ascent.polish()
        self.n_steps += ascent.n_steps
        self._free[k] = rows[problem.free(v)[rows] | ascent.problem.free(ascent.v)]
        return self._move(k, rows, ascent.v)

    def _working_set(self, k: int, up: Array, down: Array) -> Indices:
        m = len(up)
        if self._size == m:
            return np.arange(m)
        kept = self._free[k][: self._size // 2]
        up, down = up.copy(), down.copy()
        up[kept], down[kept] = -np.inf, np.inf
        half = (self._size - len(kept)) // 2
        # At the optimum no up is above any down; these variables violate that most.
        rising = np.argpartition(-up, half)[:half]
        down[rising] = np.inf
        falling = np.argpartition(down, half)[:half]
        return np.sort(np.concatenate([kept, rising, falling]))

    def _move(self, k: int, rows: Indices, v: Array) -> bool:
        """Set variables of output k and update the products; return False without a change."""
        step = np.zeros(len(self.dual))
        step[rows] = v - self.dual[rows, k]
        self.dual[rows, k] = v
        changed = np.flatnonzero(step)
        new = changed[self._strip_of[changed] < 0]
        for start in range(0, len(new), _STRIP):
            strip = new[start : start + _STRIP]
            self._strip_of[strip] = len(self._strips)
            self._strips.append(strip)
        for k_strip in np.unique(self._strip_of[changed]):
            columns = self._strips[k_strip]
            change = self._kernels.apply_columns(columns, step[columns, None])
            self.products[:, :, k] += change[:, :, 0]
        return len(changed) > 0


@dataclass
class InexactBoxPoint(BoxPoint):
    """Bounds proved by machines at some weights, not solved to a tolerance."""

    #: No matrix of all samples exists, so derivatives need an inner solve.
    released = True

    @classmethod
    def of(
        cls, loss: BoxLoss, weights: Array, dual: Array, products: Array, n_steps: int = 0
    ) -> InexactBoxPoint:
        """Return P, D and gains of `dual` from its products (n_kernels, m, n_outputs)."""
        combined = np.tensordot(weights, products, 1)
        solutions = [
            problem.solution(dual[:, k].copy(), np.ascontiguousarray(combined[:, k]), n_steps)
            for k, problem in enumerate(loss.programs(weights))
        ]
        return cls(weights, gains_of(dual, products), solutions, loss)

    def reassessed(self) -> InexactBoxPoint:
        """Return the point of the same v, with products from one more pass over the kernels."""
        n_steps = self.solutions[0].n_steps
        programs = zip(self._loss.programs(self.weights), self.dual.T, strict=True)
        dual = np.column_stack([problem.balanced(v) for problem, v in programs])
        return self.of(self._loss, self.weights, dual, self._loss.products(dual), n_steps)

    def hessian(self) -> Array:
        """Return ``∇²F`` of the machines, which are first solved to the tolerance of the loss."""
        return self._loss.evaluate(self.weights).hessian()

    def model_hessian(self, gap: float) -> Array:
        """Return :meth:`.BoxEvaluation.model_hessian`, at the same cost as :meth:`hessian`."""
        return self._loss.evaluate(self.weights).model_hessian(gap)


# -- The losses of support vector machines, each a :class:`~manykernels.losses.svm.BoxLoss` -------
#
# With f the machine and v its signed dual variables, the losses and the bounds of v are
#
#     hinge            Σ_i C_i max(0, 1 − y_i f(x_i))           v = y∘α,  0 ≤ α ≤ C
#     squared hinge    Σ_i ½ C_i max(0, 1 − y_i f(x_i))²        v = y∘α,  0 ≤ α,  r = 1/C
#     ε-insensitive    Σ_i C_i max(0, |t_i − f(x_i)| − ε)       v = α⁺ − α⁻ between −C and C
#     one-class        Σ_i w_i max(0, ρ − f(x_i)) − ν ρ Σ_i w_i v = α,  0 ≤ α ≤ w,  Σα = ν Σw
#
# each plus ``½‖f‖²``. On the trace simplex the first two are SM1 and SM2 of Lanckriet et al.
# (2004). The squared hinge has ``K_β + I/C`` instead of K_β: 1/C is the weight of an identity
# kernel, and learning it with the others is their SM2_C.


# Smallest 1/C that is learnt, as a fraction of the mean diagonal of the combined kernel. At 1/C =
# 0 the inner program has no solution if equal samples are in different classes. The dual variables
# of such samples are of order C; this value leaves seven digits to their differences.
_LEAST_SHARE = 1e-9
_AT_THE_LEAST = (
    "The learnt C is {:.1e}, the most that rounding errors allow: the best C is there or above. "
    "Pass a number for C, if it matters."
)


def hinge_problem(signs: Array, penalties: float | Array) -> BoxProblem:
    """Return the program of the hinge loss."""
    ends = penalties * signs
    zeros = np.zeros(len(signs))
    return BoxProblem(signs, np.minimum(0.0, ends), np.maximum(0.0, ends), zeros)


def squared_hinge_problem(signs: Array, penalties: float | Array) -> BoxProblem:
    """Return the program of the squared hinge loss."""
    ridge = 1.0 / np.broadcast_to(np.asarray(penalties, dtype=np.float64), signs.shape)
    return replace(hinge_problem(signs, np.inf), ridge=ridge)


def epsilon_insensitive_problem(
    targets: Array, penalties: float | Array, epsilon: float
) -> BoxProblem:
    """Return the program of the ε-insensitive loss."""
    ends = np.broadcast_to(np.asarray(penalties, dtype=np.float64), targets.shape)
    return BoxProblem(targets, -ends, +ends, np.zeros(len(targets)), width=epsilon)


def one_class_problem(sample_weight: Array, nu: float) -> BoxProblem:
    """Return the program of the one-class machine."""
    zeros = np.zeros(len(sample_weight))
    total = nu * float(sample_weight.sum())
    return BoxProblem(zeros, zeros, sample_weight, zeros, total=total)


class _TwoClassLoss(BoxLoss):
    """Two-class machines; one output for each division of the samples into two."""

    def __init__(
        self, kernels: KernelOperator, signs: Array, C: float | Array, inner_tol: float = INNER_TOL
    ) -> None:
        columns = np.ascontiguousarray(signs.reshape(len(signs), -1).T, dtype=np.float64)
        penalties = C.T if np.ndim(C) == 2 else [C] * len(columns)  # type: ignore[union-attr]
        pairs = zip(columns, penalties, strict=True)
        super().__init__(kernels, [self._problem(y, c) for y, c in pairs], inner_tol)

    @staticmethod
    @abstractmethod
    def _problem(signs: Array, penalties: float | Array) -> BoxProblem:
        """Return the program of one output."""


class HingeLoss(_TwoClassLoss):
    """C-SVM.

    Parameters
    ----------
    kernels : KernelOperator
    signs : ndarray of shape (m,) or (m, n_outputs)
        y, ±1.
    C : float or ndarray of shape (m,) or (m, n_outputs)
        Penalties.
    inner_tol : float
        Relative gap of the machines.
    """

    _problem = staticmethod(hinge_problem)


class SquaredHingeLoss(_TwoClassLoss):
    """SVM with squared slacks; parameters as for :class:`HingeLoss`."""

    _problem = staticmethod(squared_hinge_problem)


class JointSquaredHingeLoss(LearntRegularization, SquaredHingeLoss):
    """SVM with squared slacks whose C is learnt: the first weight is ``1/(C unit)``.

    Parameters
    ----------
    kernels, signs, inner_tol
        As for :class:`HingeLoss`.
    unit : float, default=1.0
        Scale of the identity kernel: 1/m where kernels have unit trace.
    sample_weight : ndarray of shape (m,), optional
        Factors of C.
    """

    def __init__(
        self,
        kernels: KernelOperator,
        signs: Array,
        unit: float = 1.0,
        sample_weight: Array | None = None,
        inner_tol: float = INNER_TOL,
    ) -> None:
        extended = WithIdentity(kernels, unit, sample_weight)
        super().__init__(extended, signs, 1.0 / extended.diagonal, inner_tol)

    def evaluate(self, weights: Array) -> BoxEvaluation:
        evaluation = super().evaluate(weights)
        evaluation.at_least = self._at_least
        return evaluation

    def note(self, evaluation: Any) -> str:
        at_least = evaluation.at_least
        return _AT_THE_LEAST.format(self.penalty(evaluation.weights)) if at_least else ""

    def regularization(self, weights: Array) -> float:
        return float(weights[0]) * self.kernels.unit

    def penalty(self, weights: Array) -> float:
        """Return the learnt C."""
        return 1.0 / self.regularization(weights)

    def programs(self, weights: Array) -> list[BoxProblem]:
        ridge = float(weights[0]) * self.kernels.diagonal
        return [replace(problem, ridge=ridge) for problem in self.problems]

    def _combine(self, weights: Array) -> Array:
        """Compute K_β without the identity, which is the ridge; raise 1/C if needed."""
        self.kernels.kernels.combine(weights[1:], out=self.workspace.matrix)
        size = float(self.workspace.diagonal.mean()) / float(self.kernels.diagonal.mean())
        if not max(weights[0], size) > 0.0:
            raise ValueError(
                "All kernels are zero, so that C cannot be learnt: pass a number for C."
            )
        raised = Raised.to(_LEAST_SHARE * size, weights, self._gauge)
        self.workspace.matrix /= raised.factor
        self._matrix = self.workspace.matrix
        self._at_least = raised.is_higher
        return raised.weights

    def dual_program(self) -> DualProgram:
        # The ridge is that of the identity kernel, which has a weight.
        program = super().dual_program()
        return replace(program, ridge=np.zeros_like(program.ridge))


class EpsilonInsensitiveLoss(BoxLoss):
    """Support vector regression.

    Parameters
    ----------
    kernels : KernelOperator
    targets : ndarray of shape (m,)
    C : float or ndarray of shape (m,)
    epsilon : float
    inner_tol : float
    """

    def __init__(
        self,
        kernels: KernelOperator,
        targets: Array,
        C: float | Array,
        epsilon: float,
        inner_tol: float = INNER_TOL,
    ) -> None:
        problem = epsilon_insensitive_problem(targets, C, epsilon)
        super().__init__(kernels, [problem], inner_tol)


class OneClassLoss(BoxLoss):
    """One-class SVM.

    Parameters
    ----------
    kernels : KernelOperator
    nu : float
        Upper bound on the fraction of the samples, by weight, that are outliers.
    sample_weight : ndarray of shape (m,), optional
    inner_tol : float
    """

    def __init__(
        self,
        kernels: KernelOperator,
        nu: float,
        sample_weight: Array | None = None,
        inner_tol: float = INNER_TOL,
    ) -> None:
        weights = np.ones(kernels.shape[0]) if sample_weight is None else sample_weight
        super().__init__(kernels, [one_class_problem(weights, nu)], inner_tol)


# -- One machine for all classes ------------------------------------------------------------------
#
# In the notation of :mod:`manykernels.smo.multiclass`, with outputs f^l of the classes and dual
# variables d (m×k), whose columns sum to zero,
#
#     F(β) = max_d  2 Σ_{i, l≠y_i} α_i^l − ½ Σ_l d_lᵀ K_β d_l ,   α_i^l = −d_il ∈ [0, C_i]
#     g_j    = ½ Σ_l d_lᵀ K_j d_l
#     ∇²F_ij = r_iᵀ N r_j ,   r_j = (K_j d)_{i,y_i} − (K_j d)_{i,l} at the free variables (i, l)
#
# where N takes right-hand sides to solutions of the system of the free variables. For two classes
# F is twice that of the hinge loss with the same C.


class MulticlassHingeLoss(WorkspaceLoss):
    """One machine for all classes (Weston and Watkins 1999).

    ``½ Σ_l ‖f^l‖² + Σ_i C_i Σ_{l≠y_i} max(0, 2 − f^{y_i}(x_i) + f^l(x_i))``, with biases.

    Parameters
    ----------
    kernels : KernelOperator
    signs : ndarray of shape (m, n_classes)
        1 in the column of the class of each sample, and −1 in the others.
    C : float or ndarray of shape (m,)
        Penalties.
    inner_tol : float
        Relative gap of the machine.
    """

    def __init__(
        self, kernels: KernelOperator, signs: Array, C: float | Array, inner_tol: float = INNER_TOL
    ) -> None:
        labels, n_classes = signs.argmax(axis=1), signs.shape[1]
        costs = np.broadcast_to(np.asarray(C, dtype=np.float64), len(labels))
        self.kernels = kernels
        self.problem = MulticlassProblem(labels, costs, n_classes)
        self.inner_tol = inner_tol
        self.workspace = Workspace(kernels.shape[0])
        # The last solution, from which the next one starts; restricted copies share this list.
        self._starts: list[Array | None] = [None]

    def continue_from(self, other: MulticlassHingeLoss) -> None:
        """Start at the last solution of another loss on the same kernels; share its workspace."""
        self.workspace = other.workspace
        self._starts = list(other._starts)

    @property
    def spec(self) -> ProblemSpec:
        n_samples, _, n_kernels = self.kernels.shape
        return ProblemSpec(
            type(self), n_samples, n_kernels, self.problem.k, on_demand=self.on_demand
        )

    def refill(self, weights: Array) -> Lease:
        """Compute K_β at a point."""
        lease = self.workspace.lend()
        self.kernels.combine(weights, out=self.workspace.matrix)
        return lease

    def evaluate(self, weights: Array) -> MulticlassEvaluation:
        """Solve the inner program at `weights`, starting at its last solution."""
        lease, problem = self.refill(weights), self.problem
        solution = solve_multiclass(
            self.workspace.matrix,
            problem.y,
            problem.C,
            n_classes=problem.k,
            start=self._starts[0],
            tol=self.inner_tol,
        )
        self._starts[0] = solution.alpha
        products = self.kernels.apply(solution.d)
        gains = gains_of(solution.d, products)
        # Computed from the kernels, without the rounding errors of the steps.
        outputs = np.tensordot(weights, products, 1) + solution.bias
        value, scale = problem.primal(outputs.T, 2.0 * float(weights @ gains))
        slack = value - (2.0 * float(solution.alpha.sum()) - float(weights @ gains))
        return MulticlassEvaluation(
            weights, gains, value, slack, solution.d, scale, scale * solution.bias, outputs, self,
            products, lease,
        )  # fmt: skip

    def dual_point(self, dual: Array) -> DualPoint:
        problem = self.problem
        alpha = problem.feasible(problem.multipliers(dual.T))
        d = np.ascontiguousarray(problem.signed(alpha).T)
        with np.errstate(divide="ignore"):
            longest = np.min(problem.C / alpha, where=alpha > 0.0, initial=np.inf)
        gains = gains_of(d, self.kernels.apply(d))
        return DualPoint(2.0 * float(alpha.sum()), 0.0, gains, float(longest))

    def gain_errors_at(self, dual: Array) -> Array:
        """Return estimated rounding errors of the gains at any dual variables."""
        return 0.5 * self.kernels.form_errors(dual, dual)


@dataclass
class MulticlassEvaluation(WorkspaceEvaluation):
    """F of one machine for all classes at one point.

    `value` is the P of `scale` times the `outputs` of the dual variables, biases included, which
    has the `coefficients` and `biases`.
    """

    weights: Array
    gains: Array
    value: float
    slack: float
    dual: Array = field(repr=False)
    scale: float
    biases: Array
    outputs: Array = field(repr=False)
    _loss: MulticlassHingeLoss = field(repr=False)
    _products: Array = field(repr=False)
    _lease: Lease | None = field(repr=False, compare=False)

    hyperbolic = True

    @property
    def coefficients(self) -> Array:
        """Coefficients of the training samples, (m, n_classes)."""
        return self.scale * self.dual

    @property
    def reach(self) -> Array:
        """Bound on the derivative of the objective in the outputs of samples, (m, n_classes)."""
        problem = self._loss.problem
        reach = np.where(problem.multipliers(self.dual.T) > 0.0, problem.C, 0.0)
        reach[problem.true_class] = reach.sum(axis=0)
        return np.ascontiguousarray(reach.T)

    @property
    def rounding(self) -> float:
        """Rounding errors of the margins and of the outputs; as for :class:`BoxPoint`."""
        reach = self.reach
        error = EPS * float(np.sum(reach * (np.abs(self.outputs) + np.abs(self.biases) + 1.0)))
        errors = self._loss.kernels.form_errors(0.5 * reach, self.dual)
        return error + float(self.weights @ errors)

    @property
    def gain_errors(self) -> Array:
        return self._loss.gain_errors_at(self.dual)

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights)

    def hessian(self) -> Array:
        """Return ``∇²F`` on the free variables, as if the others stayed at their bounds."""
        return self._curvature(0.0)

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F`` smoothed over the range in which F may still fall by `gap`."""
        return nearly_definite(self._curvature(_BARRIER * gap))

    def _curvature(self, barrier: float) -> Array:
        self.restore()
        loss, problem = self._loss, self._loss.problem
        alpha = problem.multipliers(self.dual.T)
        matrix = loss.workspace.matrix
        (classes, rows), face = face_of(problem, matrix, alpha, self.outputs.T, barrier)
        if face is None:
            return np.zeros((len(self.weights), len(self.weights)))
        columns = (self._products[:, rows, problem.y[rows]] - self._products[:, rows, classes]).T
        hessian = matmul(columns.T, face.solve(columns))
        return 0.5 * (hessian + hessian.T)
