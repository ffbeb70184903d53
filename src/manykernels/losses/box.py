"""Losses of support vector machines: an inner program with bounds and one equality.

For each output a program of :mod:`manykernels.smo.box` on the combined kernel, with its own c, e,
r, bounds and total,

    F(β) = Σ_k max_v {c·v − e Σ|v_i| − ½ vᵀ(K_β + diag r)v  :  l ≤ v ≤ u, Σ v_i = s}

(Sonnenburg 2006, Kloft 2011, with one weight vector for all outputs). With v_k the solutions

    g_j    = −∂F/∂β_j = ½ Σ_k v_kᵀ K_j v_k
    ∇²F_ij = Σ_k (K_i v_k)_Sᵀ [M⁻¹]_SS (K_j v_k)_S ,   M = [[(K_β + diag r)_SS, 1], [1ᵀ, 0]]

where S are the variables of output k that are free to move: as β moves, the others stay at their
bounds and ``M (dv_S, db) = −(dK v)_S``. Where variables are about to leave their bounds, the
gradient of F has a kink and the Hessian is that of one side: a model only, so that steps need a
line search.

Programs are solved to a relative gap. `value` is the upper bound P of that gap, attained by the
machine ``t v`` with its bias (see :meth:`~manykernels.smo.program.BoxProblem.machine`), the gains
belong to the lower bound D, which is linear in β for the v found; `slack` is the difference.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from .._blas import matmul
from ..smo.box import Ascent
from ..smo.face import Face
from ..smo.program import BoxProblem, BoxSolution
from .base import Array, Indices, KernelOperator, Outline, nearly_definite
from .program import DualProgram, HasDualProgram, gains_of
from .workspace import Lease, Workspace, WorkspaceEvaluation

#: Relative gap to which machines are solved, a hundredth of the solvers' default tolerance: their
#: slack is part of the certified gap.
INNER_TOL = 1e-8
# Barrier parameter μ of the smoothed Hessian as a share of the gap of F. Measured on 72 fits (two
# losses, C from 0.1 to 100, p from 1 to 2): 5.6 inner solves in the mean and 11 at most, against
# 5.9 and 18 at a tenth of it, 6.0 and 19 at ten times.
_BARRIER = 0.03


class BoxLoss(HasDualProgram):
    """F(β) of one or several support vector machines on the same kernels.

    Parameters
    ----------
    kernels : KernelOperator
    problems : list of BoxProblem
        One per output.
    inner_tol : float
        Relative gap to which they are solved.

    Attributes
    ----------
    workspace : Workspace
        K_β at the point evaluated last.
    """

    def __init__(
        self, kernels: KernelOperator, problems: list[BoxProblem], inner_tol: float = INNER_TOL
    ) -> None:
        self.kernels = kernels
        self.problems = problems
        self.inner_tol = inner_tol
        self.workspace = Workspace(kernels.shape[0])
        # Where the last solution of each program was: the next one starts from there.
        self._starts: list[Array | None] = [None] * len(problems)

    @property
    def outline(self) -> Outline:
        n_samples, _, n_kernels = self.kernels.shape
        return Outline(type(self), n_samples, n_kernels, len(self.problems), self.learns_reg)

    def programs(self, weights: Array) -> list[BoxProblem]:
        """The programs at these weights."""
        ridge = self.ridge(weights)
        if ridge is None:
            return self.problems
        return [replace(problem, ridge=ridge) for problem in self.problems]

    def ridge(self, weights: Array) -> Array | None:
        """r where it depends on the weights."""
        return None

    def _combine(self, weights: Array) -> Array:
        """K_β into the workspace."""
        return self.kernels.combine(weights, out=self.workspace.matrix)

    def _raised(self, weights: Array) -> Array:
        """The weights that are evaluated in the place of `weights`, with K_β in place."""
        return weights

    def evaluate(self, weights: Array) -> BoxEvaluation:
        """Solve the inner programs at `weights`, from where the last ones ended."""
        lease = self.workspace.lend()
        matrix = self._combine(weights)
        weights = self._raised(weights)
        ascents = []
        for k, problem in enumerate(self.programs(weights)):
            ascent = Ascent(matrix, problem, self._starts[k])
            ascent.run_to_gap(self.inner_tol)
            self._starts[k] = ascent.v
            ascents.append(ascent)
        dual = np.column_stack([ascent.v for ascent in ascents])
        products = self.products(dual)
        combined = np.tensordot(self.kernel_weights(weights), self.kernel_weights(products), 1)
        for ascent, product in zip(ascents, combined.T, strict=True):
            # Computed from the kernels, without the rounding errors that steps have added up.
            ascent.f = np.ascontiguousarray(product)
        solutions = [ascent.solution() for ascent in ascents]
        gains = gains_of(dual, products)
        return BoxEvaluation(weights, gains, solutions, self, products, ascents, lease)

    def refill(self, weights: Array) -> Lease:
        """Compute the contents of the workspace at a point again."""
        lease = self.workspace.lend()
        self._combine(weights)
        return lease

    def restricted(self, kernels: Indices) -> Self:
        """The same machines on some of the kernels.

        Both losses share their starting points: each starts where the last of either ended.
        """
        part = copy(self)
        part.kernels = self.kernels.select(kernels)
        part.workspace = Workspace(self.kernels.shape[0])
        return part

    def products(self, dual: Array) -> Array:
        """``K_j v`` for every weight and output, (n_weights, m, n_outputs)."""
        return self.kernels.apply(dual)

    def kernel(self, which: int) -> Array:
        return self.kernels.kernel(which)

    def dual_program(self) -> DualProgram:
        """The machines as one program in v."""
        return DualProgram.of(self.problems)

    def dual_of(self, v: Array) -> Array:
        """v itself."""
        return v

    def variables_of(self, dual: Array) -> Array:
        return dual


@dataclass
class BoxPoint:
    """Machines at one point of weight space, and what they prove; see the module."""

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
        """Of the losses of samples, differences of c, f and b, of which f is from products.

        At a kink an error of f costs something to one side only: half of them do.
        """
        own = float(sum(solution.rounding for solution in self.solutions))
        reaches = np.column_stack([0.5 * solution.reach for solution in self.solutions])
        return own + float(self.weights @ self._loss.kernels.form_errors(reaches, self.dual))

    @property
    def gain_errors(self) -> Array:
        return 0.5 * self._loss.kernels.form_errors(self.dual, self.dual)

    @property
    def hyperbolic(self) -> bool:
        """Whether c, which sets the scale of v, is not zero."""
        return any(solution.scaled for solution in self.solutions)

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
        """``t v``, those of the machines whose P is the value, (m, n_outputs)."""
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
        # The ascents refer to the matrix of the workspace.
        return self._loss.refill(self.weights)

    def hessian(self) -> Array:
        """``∇²F`` on the free variables, as if the others stayed at their bounds."""
        self.restore()
        return self._curvature([ascent.face() for ascent in self._ascents])

    def model_hessian(self, gap: float) -> Array:
        """``∇²F`` smoothed over the range in which F may still fall by `gap`.

        A barrier ``μ log`` on the bounds makes F smooth; it gives variable i, which is held at
        its bound by a force λ_i, the stiffness ``λ_i²/μ`` instead of an infinite one. So
        variables that are held by small forces count as nearly free, and fewer and fewer do as
        the gap closes.
        """
        self.restore()
        barrier = _BARRIER * gap
        faces = [
            ascent.face() if barrier <= 0.0 else ascent.soft_face(barrier)
            for ascent in self._ascents
        ]
        return nearly_definite(self._curvature(faces))

    def _curvature(self, faces: list[tuple[Indices, Face | None]]) -> Array:
        hessian = np.zeros((len(self.weights), len(self.weights)))
        for k, (free, face) in enumerate(faces):
            if face is not None:
                columns = self._products[:, free, k].T
                hessian += matmul(columns.T, face.solve(columns))
        return 0.5 * (hessian + hessian.T)
