"""Kernel machines as a gate sees them: their optimal value J as a function of the kernel matrix K.

Every machine here maximises a dual ``linear(V) − ½ Σ_k v_kᵀ K v_k`` over signed dual variables
V (m × c), one column per output. The derivative of its optimal value J in K_ij is
``−½ Σ_k V_ik V_jk``, which is all that the gradient in a gate needs (Gönen & Alpaydın 2013,
section 2.3).

    machine                            V
    support vector machines            v of :mod:`manykernels.smo.box`
    multiclass SVM as one machine      d of :mod:`manykernels.smo.multiclass`
    Fisher discriminant                √(2/λ) U of :mod:`manykernels.losses.square`

The last is the square loss, ``J = max_U tr(2HᵀU − UᵀU − UᵀKU/λ)``. It is computed with centred
kernels. Since ``1·U = 0``, ``UᵀKU`` is the same without centring, and the derivative above holds
for the kernels as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._blas import matmul
from ..kernels import KernelStack
from ..kernels.transforms import Center
from ..losses import BoxLoss, Loss, SquareLoss
from ..losses.base import Indices
from ..losses.hinge import hinge_problem
from ..smo.box import Ascent
from ..smo.multiclass import solve_multiclass
from ..smo.program import BoxProblem
from ..smo.rows import Rows
from .gates import Array

#: Relative duality gap to which machines are trained. Armijo's rule compares values of J, so that
#: their errors have to be well below the changes at which a descent stops (1e-2 by default).
INNER_TOL = 1e-7


@dataclass(frozen=True)
class Trained:
    """A machine trained on one kernel matrix.

    `value` is an upper bound on J, which is at most `gap`, the duality gap, lower. `dual` are the
    signed dual variables V (m × c). Outputs are ``K(x, ·) @ (scale · V) + biases``.
    """

    value: float
    gap: float
    dual: Array
    biases: Array
    scale: float = 1.0


class Machine(Protocol):
    """A kernel machine that is trained repeatedly on slowly changing kernels."""

    def train(self, K: Array | Rows) -> Trained:
        """Train on the kernel matrix K, warm-started from the last solution."""
        ...

    def of(self, samples: Indices) -> Machine:
        """The same machine of some of the samples, not yet trained."""
        ...

    def loss(self, stack: KernelStack) -> Loss:
        """The machine on weighted sums of kernels, as a loss of the weights."""
        ...


@dataclass
class BoxMachine:
    """Support vector machines on the same kernel, one problem per output; J is the sum of theirs.

    `tol` is a relative duality gap.
    """

    problems: list[BoxProblem]
    tol: float = INNER_TOL
    _starts: dict[int, Array] = field(default_factory=dict, init=False)

    def of(self, samples: Indices) -> BoxMachine:
        return BoxMachine([_of_samples(problem, samples) for problem in self.problems], self.tol)

    def loss(self, stack: KernelStack) -> Loss:
        # Of machines without a bias the total is not zero, and centring would change them.
        has_bias = not any(problem.total for problem in self.problems)
        return BoxLoss(Center().fit_transform(stack) if has_bias else stack, self.problems)

    def train(self, K: Array | Rows) -> Trained:
        K = Rows.of(K)  # the rows that one problem has needed are there for the others
        solutions = []
        for k, problem in enumerate(self.problems):
            ascent = Ascent(K, problem, self._starts.get(k))
            ascent.run_to_gap(self.tol)
            self._starts[k] = ascent.v
            solutions.append(ascent.solution())
        return Trained(
            value=float(sum(solution.primal for solution in solutions)),
            gap=max(float(sum(solution.gap for solution in solutions)), 0.0),
            dual=np.column_stack([solution.v for solution in solutions]),
            biases=np.array([solution.bias for solution in solutions]),
        )


@dataclass
class MulticlassMachine:
    """The multiclass SVM as a single machine.

    `labels` are 0 … n_classes − 1, `penalties` the C of every sample; `tol` is a relative gap.
    """

    labels: NDArray[np.intp]
    penalties: Array
    n_classes: int
    tol: float = INNER_TOL
    _start: Array | None = field(default=None, init=False)

    def of(self, samples: Indices) -> MulticlassMachine:
        labels, penalties = self.labels[samples], self.penalties[samples]
        return MulticlassMachine(labels, penalties, self.n_classes, self.tol)

    def loss(self, stack: KernelStack) -> Loss:
        """The loss of machines of one class against the rest."""
        signs = np.where(self.labels == np.arange(self.n_classes)[:, None], 1.0, -1.0)
        problems = [hinge_problem(row, self.penalties) for row in signs]
        return BoxLoss(Center().fit_transform(stack), problems)

    def train(self, K: Array | Rows) -> Trained:
        solution = solve_multiclass(
            Rows.of(K).whole(),
            self.labels,
            self.penalties,
            n_classes=self.n_classes,
            start=self._start,
            tol=self.tol,
        )
        self._start = solution.alpha
        return Trained(solution.primal, solution.gap, solution.d, solution.bias)


@dataclass
class SquareMachine:
    """Fisher's discriminant: square loss of targets H (m × c) of (weighted) mean zero, λ = `reg`.

    It is solved in closed form, without a duality gap. Its outputs estimate the targets.
    """

    targets: Array
    reg: float
    sample_weight: Array | None = None

    def of(self, samples: Indices) -> SquareMachine:
        weights = None if self.sample_weight is None else self.sample_weight[samples]
        targets = self.targets[samples]
        centred = targets - np.average(targets, axis=0, weights=weights)
        return SquareMachine(centred, self.reg, weights)

    def loss(self, stack: KernelStack) -> SquareLoss:
        centered = Center().fit_transform(stack, sample_weight=self.sample_weight)
        return SquareLoss(centered, self.targets, self.reg, self.sample_weight)

    def train(self, K: Array | Rows) -> Trained:
        K = Rows.of(K).whole()
        stack = KernelStack(K[None], ["gated"], gram=True, checked=True)
        loss = self.loss(stack)
        evaluation = loss.evaluate(np.ones(1))
        dual = np.sqrt(2.0 / self.reg) * evaluation.residuals
        scale = 1.0 / np.sqrt(2.0 * self.reg)
        # Centring the kernel changes the output of every new sample by the same amount, as the
        # coefficients sum to zero.
        counts = np.ones(len(K)) if self.sample_weight is None else self.sample_weight
        means = matmul(K, counts) / counts.sum()
        return Trained(evaluation.value, 0.0, dual, -scale * (means @ dual), scale)


def _of_samples(problem: BoxProblem, samples: Indices) -> BoxProblem:
    arrays = ("linear", "lower", "upper", "ridge")
    return replace(problem, **{name: getattr(problem, name)[samples] for name in arrays})
