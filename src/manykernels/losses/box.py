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

from dataclasses import dataclass, field

import numpy as np

from .._blas import matmul
from ..smo.box import Ascent
from ..smo.face import Face
from ..smo.program import BoxProblem, BoxSolution
from .base import Array, Indices, KernelOperator, Outline, nearly_definite
from .program import DualProgram, HasDualProgram, gains_of
from .workspace import Lease, Workspace, WorkspaceEvaluation, WorkspaceLoss

#: Relative gap to which machines are solved, a hundredth of the solvers' default tolerance because
#: this gap is part of the certified one.
INNER_TOL = 1e-8
# Barrier parameter μ of the smoothed Hessian as a share of the gap of F. Measured on 72 fits (two
# losses, C from 0.1 to 100, p from 1 to 2): 5.6 inner solves in the mean and 11 at most, against
# 5.9 and 18 at a tenth of it, 6.0 and 19 at ten times.
_BARRIER = 0.03


class BoxLoss(HasDualProgram, WorkspaceLoss):
    """F(β) of one or several support vector machines on the same kernels.

    Parameters
    ----------
    kernels : KernelOperator
    problems : list of BoxProblem
        One per output.
    inner_tol : float
        Relative gap to which they are solved.
    """

    def __init__(
        self, kernels: KernelOperator, problems: list[BoxProblem], inner_tol: float = INNER_TOL
    ) -> None:
        self.kernels = kernels
        self.problems = problems
        self.inner_tol = inner_tol
        self.workspace = Workspace(kernels.shape[0])
        # The last solution of each program, from which the next one starts; restricted copies
        # share this list, so each is warm-started at the last solution of any.
        self._starts: list[Array | None] = [None] * len(problems)

    def continue_from(self, other: BoxLoss) -> None:
        """Start at the last solutions of another loss on the same kernels; share its workspace."""
        self.workspace = other.workspace
        self._starts = list(other._starts)

    @property
    def outline(self) -> Outline:
        n_samples, _, n_kernels = self.kernels.shape
        n_outputs = len(self.problems)
        return Outline(
            type(self), n_samples, n_kernels, n_outputs, self.learns_reg, self.on_demand
        )

    def programs(self, weights: Array) -> list[BoxProblem]:
        """The programs of all outputs at these weights."""
        return self.problems

    def _combine(self, weights: Array) -> Array:
        """Put K_β into the workspace; returns β, which a subclass may have changed."""
        self.kernels.combine(weights, out=self.workspace.matrix)
        return weights

    def evaluate(self, weights: Array) -> BoxEvaluation:
        """Solve the inner programs at `weights`, each warm-started at its last solution."""
        lease = self.workspace.lend()
        weights = self._combine(weights)
        ascents = []
        for k, problem in enumerate(self.programs(weights)):
            ascent = Ascent(self.workspace.matrix, problem, self._starts[k])
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
        """Compute K_β at a point again."""
        lease = self.workspace.lend()
        self._combine(weights)
        return lease

    def products(self, dual: Array) -> Array:
        """``K_j v`` of every weight and output, (n_weights, m, n_outputs)."""
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
    """Machines at one point of weight space, and the bounds that they prove; see the module."""

    weights: Array
    gains: Array
    solutions: list[BoxSolution] = field(repr=False)
    _loss: BoxLoss = field(repr=False)

    @property
    def value(self) -> float:
        """The upper bound P on F."""
        return float(sum(solution.primal for solution in self.solutions))

    @property
    def rounding(self) -> float:
        """Errors of the losses of samples, which are differences of c, f and b, and of f itself.

        At a kink of the loss an error of f matters on one side only, so half of it counts.
        """
        own = float(sum(solution.rounding for solution in self.solutions))
        errors = self._loss.kernels.form_errors(0.5 * self.reach, self.dual)
        return own + float(self.weights @ errors)

    @property
    def reach(self) -> Array:
        """By how much the objective changes, at most, with outputs of samples, (m, n_outputs)."""
        return np.column_stack([solution.reach for solution in self.solutions])

    @property
    def gain_errors(self) -> Array:
        return 0.5 * self._loss.form_errors(self.dual)

    @property
    def hyperbolic(self) -> bool:
        """Whether c is not zero; otherwise v is the same for every multiple of K_β."""
        return any(problem.linear.any() for problem in self._loss.problems)

    @property
    def slack(self) -> float:
        """``P − D``."""
        return float(sum(solution.gap for solution in self.solutions))

    @property
    def dual(self) -> Array:
        """v, (m, n_outputs)."""
        return np.column_stack([solution.v for solution in self.solutions])

    @property
    def coefficients(self) -> Array:
        """``t v`` of the machines whose P is the value, (m, n_outputs)."""
        return np.column_stack([solution.scale * solution.v for solution in self.solutions])

    @property
    def biases(self) -> Array:
        """b of every output."""
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
        """``∇²F`` on the free variables, as if the others stayed at their bounds."""
        self.restore()
        return self._curvature([ascent.face() for ascent in self._ascents])

    def model_hessian(self, gap: float) -> Array:
        """``∇²F`` smoothed over the range in which F may still fall by `gap`.

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
        """``∇²F`` on the given faces of the boxes."""
        hessian = np.zeros((len(self.weights), len(self.weights)))
        for k, (free, face) in enumerate(faces):
            if face is not None:
                columns = self._products[:, free, k].T
                hessian += matmul(columns.T, face.solve(columns))
        return 0.5 * (hessian + hessian.T)
