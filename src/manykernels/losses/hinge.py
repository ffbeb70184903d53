"""The losses of support vector machines, each a :class:`~manykernels.losses.box.BoxLoss`.

With f the machine and v its signed dual variables, the losses and the bounds of v are

    hinge            Σ_i C_i max(0, 1 − y_i f(x_i))           v = y∘α,  0 ≤ α ≤ C
    squared hinge    Σ_i ½ C_i max(0, 1 − y_i f(x_i))²        v = y∘α,  0 ≤ α,  r = 1/C
    ε-insensitive    Σ_i C_i max(0, |t_i − f(x_i)| − ε)       v = α⁺ − α⁻ between −C and C
    one-class        Σ_i w_i max(0, ρ − f(x_i)) − ν ρ Σ_i w_i v = α,  0 ≤ α ≤ w,  Σα = ν Σw

each plus ``½‖f‖²``. On the trace simplex the first two are SM1 and SM2 of Lanckriet et al.
(2004). The squared hinge has ``K_β + I/C`` in the place of K_β: 1/C is the weight of an identity
kernel, and learning it with the others is their SM2_C.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..smo.program import BoxProblem
from .base import Array, Indices, KernelOperator
from .box import INNER_TOL, BoxEvaluation, BoxLoss
from .program import DualProgram
from .with_identity import Gauge, Raised, WithIdentity, of_some

# Least 1/C that is learnt, as a share of the mean diagonal of the combined kernel. At 1/C = 0 the
# inner program has no solution if equal samples are in different classes. The dual variables of
# such samples are of order C; this value leaves seven digits to their differences.
_LEAST_SHARE = 1e-9
_AT_THE_LEAST = (
    "The learnt C is {:.1e}, the most that rounding errors allow: the best C is there or above. "
    "Pass a number for C, if it matters."
)


def hinge_problem(signs: Array, penalties: float | Array) -> BoxProblem:
    """The program of the hinge loss."""
    ends = penalties * signs
    zeros = np.zeros(len(signs))
    return BoxProblem(signs, np.minimum(0.0, ends), np.maximum(0.0, ends), zeros)


def squared_hinge_problem(signs: Array, penalties: float | Array) -> BoxProblem:
    """The program of the squared hinge loss."""
    ridge = 1.0 / np.broadcast_to(np.asarray(penalties, dtype=np.float64), signs.shape)
    return replace(hinge_problem(signs, np.inf), ridge=ridge)


def epsilon_insensitive_problem(
    targets: Array, penalties: float | Array, epsilon: float
) -> BoxProblem:
    """The program of the ε-insensitive loss."""
    ends = np.broadcast_to(np.asarray(penalties, dtype=np.float64), targets.shape)
    return BoxProblem(targets, -ends, +ends, np.zeros(len(targets)), width=epsilon)


def one_class_problem(sample_weight: Array, nu: float) -> BoxProblem:
    """The program of the one-class machine."""
    zeros = np.zeros(len(sample_weight))
    total = nu * float(sample_weight.sum())
    return BoxProblem(zeros, zeros, sample_weight, zeros, total=total)


class _TwoClassLoss(BoxLoss):
    """Machines of two classes; one output for each division of the samples into two."""

    def __init__(
        self, kernels: KernelOperator, signs: Array, C: float | Array, inner_tol: float = INNER_TOL
    ) -> None:
        columns = np.ascontiguousarray(signs.reshape(len(signs), -1).T, dtype=np.float64)
        super().__init__(kernels, [self._problem(y, C) for y in columns], inner_tol)

    @staticmethod
    @abstractmethod
    def _problem(signs: Array, penalties: float | Array) -> BoxProblem:
        """The program of one output."""


class HingeLoss(_TwoClassLoss):
    """C-SVM.

    Parameters
    ----------
    kernels : KernelOperator
    signs : ndarray of shape (m,) or (m, n_outputs)
        y, ±1.
    C : float or ndarray of shape (m,)
        Penalties.
    inner_tol : float
        Relative gap to which machines are solved.
    """

    _problem = staticmethod(hinge_problem)


class SquaredHingeLoss(_TwoClassLoss):
    """SVM with squared slacks; parameters as for :class:`HingeLoss`."""

    _problem = staticmethod(squared_hinge_problem)


class JointSquaredHingeLoss(SquaredHingeLoss):
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

    kernels: WithIdentity
    learns_reg = True

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
        self._gauge: Gauge | None = None
        # Whether 1/C had to be raised at the last point.
        self._at_least = False

    def within(self, gauge: Gauge) -> Self:
        part = copy(self)
        part._gauge = gauge
        return part

    def restricted(self, kernels: Indices) -> Self:
        part = super().restricted(kernels)
        part._gauge = of_some(self._gauge, kernels, self.n_kernels)
        return part

    def evaluate(self, weights: Array) -> BoxEvaluation:
        found = super().evaluate(weights)
        found.at_least = self._at_least
        return found

    def note(self, evaluation: Any) -> str:
        at_least = evaluation.at_least
        return _AT_THE_LEAST.format(self.penalty(evaluation.weights)) if at_least else ""

    def regularization(self, weights: Array) -> float:
        return float(weights[0]) * self.kernels.unit

    def penalty(self, weights: Array) -> float:
        """C."""
        return 1.0 / self.regularization(weights)

    def programs(self, weights: Array) -> list[BoxProblem]:
        ridge = float(weights[0]) * self.kernels.diagonal
        return [replace(problem, ridge=ridge) for problem in self.problems]

    def _combine(self, weights: Array) -> Array:
        """K_β without the identity, which is the ridge of the programs; raises 1/C if needed."""
        self.kernels.kernels.combine(weights[1:], out=self.workspace.matrix)
        size = float(self.workspace.diagonal.mean()) / float(self.kernels.diagonal.mean())
        if not max(weights[0], size) > 0.0:
            raise ValueError("All kernels are zero, so that no C can be learnt with them.")
        raised = Raised.to(_LEAST_SHARE * size, weights, self._gauge)
        self.workspace.matrix /= raised.factor
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
        Largest share of the samples, by weight, that may be outliers.
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
