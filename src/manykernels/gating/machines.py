"""Kernel machines as a gate sees them: the best value at a kernel matrix, and how it is reached.

Every machine here maximises a dual ``linear(v) − ½ Σ_k v_kᵀ K v_k`` in signed variables V (m × c),
one column per output. Its optimal value J(K) falls with K at the rate ``½ v_i v_j``, which is all
that the gradient in a gate needs (Gönen & Alpaydın 2013, section 2.3).

    machine                            V
    support vector machines            v of :mod:`manykernels.smo.box`
    multiclass SVM as one machine      d of :mod:`manykernels.smo.multiclass`
    Fisher discriminant                √(2/λ) U of :mod:`manykernels.losses.square`

The last is the square loss, ``J = max_U tr(2HᵀU − UᵀU − UᵀKU/λ)``. Its kernels are centred, but
``1·U = 0``, so that ``UᵀKU`` is the same with the kernels as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels import KernelStack
from ..kernels.transforms import Center
from ..losses import SquareLoss
from ..losses.square_evaluation import SquareEvaluation
from ..smo.box import Ascent
from ..smo.multiclass import solve_multiclass
from ..smo.program import BoxProblem

Array = NDArray[np.float64]

INNER_TOL = 1e-7


@dataclass(frozen=True)
class Trained:
    """A machine at one kernel matrix.

    Attributes
    ----------
    value : float
        Upper bound on J.
    slack : float
        How far J may be below it.
    signed : ndarray of shape (m, n_outputs)
        V.
    biases : ndarray of shape (n_outputs,)
    """

    value: float
    slack: float
    signed: Array
    biases: Array


class Machine(Protocol):
    """A kernel machine that is trained again and again on slowly changing kernels."""

    def train(self, K: Array) -> Trained:
        """The machine of the kernel matrix K, from where the last one ended."""
        ...


class BoxMachine:
    """One or several support vector machines on the same kernel.

    Parameters
    ----------
    problems : list of BoxProblem
        One per output.
    tol : float
        Relative gap.
    """

    def __init__(self, problems: list[BoxProblem], tol: float = INNER_TOL) -> None:
        self.problems = problems
        self.tol = tol
        self._starts: list[Array | None] = [None] * len(problems)

    def train(self, K: Array) -> Trained:
        solutions = []
        for k, problem in enumerate(self.problems):
            ascent = Ascent(K, problem, self._starts[k])
            ascent.run_to_gap(self.tol)
            self._starts[k] = ascent.v
            solutions.append(ascent.solution())
        return Trained(
            value=float(sum(solution.primal for solution in solutions)),
            slack=max(float(sum(solution.gap for solution in solutions)), 0.0),
            signed=np.column_stack([solution.v for solution in solutions]),
            biases=np.array([solution.bias for solution in solutions]),
        )


class MulticlassMachine:
    """The multiclass SVM as a single machine.

    Parameters
    ----------
    labels : ndarray of int
        Classes 0 … k−1.
    penalties : ndarray of shape (m,)
        C of every sample.
    n_classes : int
    tol : float
        Relative gap.
    """

    def __init__(
        self, labels: NDArray[np.intp], penalties: Array, n_classes: int, tol: float = INNER_TOL
    ) -> None:
        self.labels = labels
        self.penalties = penalties
        self.n_classes = n_classes
        self.tol = tol
        self._start: Array | None = None

    def train(self, K: Array) -> Trained:
        solution = solve_multiclass(
            K,
            self.labels,
            self.penalties,
            n_classes=self.n_classes,
            start=self._start,
            tol=self.tol,
        )
        self._start = solution.alpha
        return Trained(solution.primal, solution.gap, solution.d, solution.bias)


class SquareMachine:
    """Fisher's discriminant: the square loss.

    Parameters
    ----------
    targets : ndarray of shape (m, c)
        H, with (weighted) mean zero.
    reg : float
        λ.
    sample_weight : ndarray of shape (m,), optional
    """

    def __init__(self, targets: Array, reg: float, sample_weight: Array | None = None) -> None:
        self.targets = targets
        self.reg = reg
        self.sample_weight = sample_weight

    def evaluate(self, K: Array) -> tuple[SquareLoss, SquareEvaluation]:
        """The square loss of one kernel, and its value there."""
        stack = KernelStack(K[None], ["gated"], gram=True, checked=True)
        centered = Center().fit_transform(stack, sample_weight=self.sample_weight)
        loss = SquareLoss(centered, self.targets, self.reg, self.sample_weight)
        return loss, loss.evaluate(np.ones(1))

    def train(self, K: Array) -> Trained:
        _, evaluation = self.evaluate(K)
        signed = np.sqrt(2.0 / self.reg) * evaluation.outputs
        return Trained(evaluation.value, 0.0, signed, np.zeros(signed.shape[1]))
