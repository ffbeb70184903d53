"""Losses of support vector machines: an inner program with bounds and one equality.

For each output a program of :mod:`manykernels.smo.box` on the combined kernel, with its own c, e,
r, bounds and total,

    F(β) = Σ_k max_v {c·v − e Σ|v_i| − ½ vᵀ(K_β + diag r)v  :  l ≤ v ≤ u, Σ v_i = s}

(Sonnenburg 2006, Kloft 2011, with one weight vector for all outputs). With v_k the solutions

    g_j    = −∂F/∂β_j = ½ Σ_k v_kᵀ K_j v_k
    ∇²F_ij = Σ_k (K_i v_k)_Sᵀ [M⁻¹]_SS (K_j v_k)_S ,   M = [[(K_β + diag r)_SS, 1], [1ᵀ, 0]]

where S are the variables of output k that are free to move: as β moves, the others stay at their
bounds and ``M (dv_S, db) = −(dK v)_S``. Where variables are about to leave their bounds F has a
kink in its slope and the Hessian is that of one side: a model, which a line search keeps honest.

Programs are solved to a relative gap. `value` is the upper bound P of that gap, attained by the
machine ``t v`` with its bias (see :meth:`~manykernels.smo.program.BoxProblem.machine`), the gains
belong to the lower bound D, which is linear in β for the v found; `slack` is the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from .._blas import matmul
from ..smo.box import Ascent
from ..smo.face import Face, Indices
from ..smo.program import BoxProblem, BoxSolution
from .base import Array, KernelOperator, Outline
from .program import DualProgram

INNER_TOL = 1e-8
_BARRIER = 0.03


class BoxLoss:
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
        self._matrix: Array | None = None
        self._starts: list[Array | None] = [None] * len(problems)
        # The point that `_matrix` belongs to.
        self._latest: BoxEvaluation | None = None

    @property
    def n_kernels(self) -> int:
        return self.kernels.shape[2]

    @property
    def outline(self) -> Outline:
        return Outline(type(self), self.kernels.shape[0], self.n_kernels, len(self.problems))

    def programs(self, weights: Array) -> list[BoxProblem]:
        """The programs at these weights."""
        ridge = self.ridge(weights)
        if ridge is None:
            return self.problems
        return [replace(problem, ridge=ridge) for problem in self.problems]

    def ridge(self, weights: Array) -> Array | None:
        """r where it depends on the weights."""
        return None

    def _raised(self, weights: Array) -> Array:
        """The weights that are evaluated, where some are too small."""
        return weights

    def kernel_weights(self, weights: Array) -> Array:
        """Those of the weights that belong to kernels."""
        return weights

    def evaluate(self, weights: Array) -> BoxEvaluation:
        """Solve the inner programs at `weights`, from where the last ones ended."""
        self._latest = None
        self._matrix = self.kernels.combine(self.kernel_weights(weights), out=self._matrix)
        weights = self._raised(weights)
        ascents = []
        for k, problem in enumerate(self.programs(weights)):
            ascent = Ascent(self._matrix, problem, self._starts[k])
            ascent.run_to_gap(self.inner_tol)
            self._starts[k] = ascent.v
            ascents.append(ascent)
        self._latest = self._arrive(weights, ascents)
        return self._latest

    def _arrive(self, weights: Array, ascents: list[Ascent]) -> BoxEvaluation:
        dual = np.column_stack([ascent.v for ascent in ascents])
        products = self.products(dual)
        combined = np.tensordot(self.kernel_weights(weights), self._of_kernels(products), 1)
        for ascent, product in zip(ascents, combined.T, strict=True):
            # What the steps have added up, without their rounding.
            ascent.f = np.ascontiguousarray(product)
        solutions = [ascent.solution() for ascent in ascents]
        gains = 0.5 * np.einsum("jmk,mk->j", products, dual)
        return BoxEvaluation(weights, gains, solutions, self, products, ascents)

    def form_errors(self, left: Array, right: Array) -> Array:
        """Rounding errors of ``tr(leftᵀ K_j right)`` for every weight."""
        return self.kernels.form_errors(left, right)

    def gains_at(self, dual: Array) -> Array:
        """``½ Σ_k v_kᵀK_jv_k`` of every weight, one pass over the kernels."""
        gains: Array = 0.5 * np.einsum("jmk,mk->j", self.products(dual), dual)
        return gains

    def restricted(self, kernels: Indices) -> Self:
        """The same machines on some of the kernels; each starts where the last of either ended."""
        part = copy(self)
        part.kernels = self._selected(kernels)
        part._matrix = part._latest = None
        return part

    def _selected(self, kernels: Indices) -> KernelOperator:
        return self.kernels.select(kernels)

    def products(self, dual: Array) -> Array:
        """``K_j v`` for every weight and output, (n_weights, m, n_outputs)."""
        return self.kernels.apply(dual)

    def _of_kernels(self, products: Array) -> Array:
        """Those of the products that belong to kernels."""
        return products

    def kernel(self, which: int) -> Array:
        """The matrix that a weight belongs to."""
        return self.kernels.kernel(which)

    def dual_program(self) -> DualProgram:
        """F as a maximum, for those who want to solve it at once with the weights."""
        return DualProgram.of(self.problems)

    def dual_of(self, v: Array) -> Array:
        """v itself."""
        return v

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """What v, made feasible and scaled at its best, proves of the minimum over a domain."""
        program = self.dual_program()
        v = program.feasible(dual)
        return program.lower_bound(v, self.products(v), support)

    def coarse(self) -> BoxLoss | None:
        """None."""
        return None


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
        return own + float(self.weights @ self._loss.form_errors(reaches, self.dual))

    @property
    def gain_errors(self) -> Array:
        """Of ``½vᵀK_jv``."""
        return 0.5 * self._loss.form_errors(self.dual, self.dual)

    @property
    def hyperbolic(self) -> bool:
        """Whether c is there to set the scale of v."""
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
class BoxEvaluation(BoxPoint):
    """F of support vector machines at one point; see the module for the formulas."""

    _products: Array = field(repr=False)
    _ascents: list[Ascent] = field(repr=False)

    def reassessed(self) -> BoxEvaluation:
        """Itself: the products are fresh at every point."""
        return self

    def hessian(self) -> Array:
        """``∇²F`` on the free variables, as if the others stayed at their bounds."""
        self._recall()
        return self._curvature([ascent.face() for ascent in self._ascents])

    def model_hessian(self, gap: float) -> Array:
        """``∇²F`` with the kinks smoothed over the range in which F may still fall by `gap`.

        A barrier ``μ log`` on the bounds makes F smooth; it gives variable i, which is held at
        its bound by a force λ_i, the stiffness ``λ_i²/μ`` instead of an infinite one. So all
        that are held by little count as nearly free, and as the gap closes only those that are.
        """
        self._recall()
        barrier = _BARRIER * gap
        faces = [
            ascent.face() if barrier <= 0.0 else ascent.soft_face(barrier)
            for ascent in self._ascents
        ]
        hessian = self._curvature(faces)
        # Positive semi-definite up to rounding, which a quadratic program would refuse.
        hessian.flat[:: len(hessian) + 1] += 1e-12 * np.trace(hessian)
        return hessian

    def _curvature(self, faces: list[tuple[Indices, Face | None]]) -> Array:
        hessian = np.zeros((len(self.weights), len(self.weights)))
        for k, (free, face) in enumerate(faces):
            if face is not None:
                columns = self._products[:, free, k].T
                hessian += matmul(columns.T, face.solve(columns))
        return 0.5 * (hessian + hessian.T)

    def _recall(self) -> None:
        """Make sure that the matrix of the loss is that of this point."""
        loss = self._loss
        if loss._latest is not self:
            loss.kernels.combine(loss.kernel_weights(self.weights), out=loss._matrix)
            loss._latest = self
