"""The support vector machines: what each asks of :class:`~manykernels.losses.box.BoxLoss`.

With f the machine and v its signed dual variables,

    hinge            Σ_i C_i max(0, 1 − y_i f(x_i))           v = y∘α,  0 ≤ α ≤ C
    squared hinge    Σ_i ½ C_i max(0, 1 − y_i f(x_i))²        v = y∘α,  0 ≤ α,  r = 1/C
    ε-insensitive    Σ_i C_i max(0, |t_i − f(x_i)| − ε)       v = α⁺ − α⁻ between −C and C
    one-class        Σ_i w_i max(0, ρ − f(x_i)) − ν ρ Σ_i w_i v = α,  0 ≤ α ≤ w,  Σα = ν Σw

each plus ``½‖f‖²``. On the trace simplex the first two are SM1 and SM2 of Lanckriet et al.
(2004). In the second, 1/C stands where the weight of an identity kernel would; learning it with
the others is their SM2_C.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..smo.face import Indices
from ..smo.program import BoxProblem
from .base import Array, KernelOperator, Outline
from .box import INNER_TOL, BoxLoss
from .program import DualProgram

# 1/C that is not told from zero, in parts of the mean diagonal of the combined kernel.
_LEAST_SHARE = 1e-9


class HingeLoss(BoxLoss):
    """C-SVM.

    Parameters
    ----------
    kernels : KernelOperator
    signs : ndarray of shape (m,) or (m, n_outputs)
        y, ±1.
    C : float or ndarray of shape (m,)
    inner_tol : float
    """

    def __init__(
        self,
        kernels: KernelOperator,
        signs: Array,
        C: float | Array,
        inner_tol: float = INNER_TOL,
    ) -> None:
        problems = [hinge_problem(y, C) for y in _columns(signs)]
        super().__init__(kernels, problems, inner_tol)


class SquaredHingeLoss(BoxLoss):
    """SVM with squared slacks.

    Parameters
    ----------
    kernels : KernelOperator
    signs : ndarray of shape (m,) or (m, n_outputs)
    C : float or ndarray of shape (m,)
    inner_tol : float
    """

    def __init__(
        self,
        kernels: KernelOperator,
        signs: Array,
        C: float | Array,
        inner_tol: float = INNER_TOL,
    ) -> None:
        ridge = 1.0 / np.broadcast_to(np.asarray(C, dtype=np.float64), (len(signs),))
        problems = [_between(y, 0.0, np.inf * y, ridge) for y in _columns(signs)]
        super().__init__(kernels, problems, inner_tol)


class JointSquaredHingeLoss(SquaredHingeLoss):
    """SVM with squared slacks whose C is learnt: the first weight is ``1/(C unit)``.

    Parameters
    ----------
    kernels : KernelOperator
    signs : ndarray of shape (m,) or (m, n_outputs)
    unit : float, default=1.0
        Scale of the identity kernel: 1/m where kernels have unit trace.
    sample_weight : ndarray of shape (m,), optional
        Factors of C.
    inner_tol : float
    """

    def __init__(
        self,
        kernels: KernelOperator,
        signs: Array,
        unit: float = 1.0,
        sample_weight: Array | None = None,
        inner_tol: float = INNER_TOL,
    ) -> None:
        ones = np.ones(len(signs))
        self.unit = unit
        self.identity = unit * (ones if sample_weight is None else 1.0 / sample_weight)
        super().__init__(kernels, signs, 1.0 / self.identity, inner_tol)

    @property
    def n_kernels(self) -> int:
        return super().n_kernels + 1

    @property
    def outline(self) -> Outline:
        n_samples, n_outputs = self.kernels.shape[0], len(self.problems)
        return Outline(type(self), n_samples, self.n_kernels, n_outputs, learns_reg=True)

    def kernel_weights(self, weights: Array) -> Array:
        return weights[1:]

    def ridge(self, weights: Array) -> Array:
        return float(weights[0]) * self.identity

    def penalty(self, weights: Array) -> float:
        """C."""
        return 1.0 / (float(weights[0]) * self.unit)

    def _raised(self, weights: Array) -> Array:
        """With a least 1/C: without any, samples that look equal have no machine."""
        assert self._matrix is not None
        size = float(np.diag(self._matrix).mean()) / float(self.identity.mean())
        raised = weights.copy()
        raised[0] = max(weights[0], _LEAST_SHARE * size)
        if not raised[0] > 0.0:
            raise ValueError("All kernels are zero, so that no C can be learnt with them.")
        return raised

    def _selected(self, kernels: Indices) -> KernelOperator:
        if kernels[0] != 0:
            raise ValueError("The weight of 1/C stays, before those of kernels.")
        return self.kernels.select(kernels[1:] - 1)

    def products(self, dual: Array) -> Array:
        own = self.identity[:, None] * dual
        return np.concatenate([own[None], super().products(dual)])

    def form_errors(self, left: Array, right: Array) -> Array:
        own = np.finfo(float).eps * np.sum(self.identity[:, None] * np.abs(left * right))
        return np.concatenate([[own], super().form_errors(left, right)])

    def _of_kernels(self, products: Array) -> Array:
        return products[1:]

    def kernel(self, which: int) -> Array:
        return np.diag(self.identity) if which == 0 else super().kernel(which - 1)

    def dual_program(self) -> DualProgram:
        # All of r has a weight.
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
        Share of the samples, by weight, that may be left outside.
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
        problem = one_class_problem(weights, nu)
        super().__init__(kernels, [problem], inner_tol)


def hinge_problem(signs: Array, penalties: float | Array) -> BoxProblem:
    """The program of the hinge loss."""
    return _between(signs, 0.0, penalties * signs)


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


def _columns(signs: Array) -> Array:
    return np.ascontiguousarray(signs.reshape(len(signs), -1).T, dtype=np.float64)


def _between(linear: Array, one: float, other: Array, ridge: Array | None = None) -> BoxProblem:
    lower, upper = np.minimum(one, other), np.maximum(one, other)
    return BoxProblem(linear, lower, upper, np.zeros(len(linear)) if ridge is None else ridge)
