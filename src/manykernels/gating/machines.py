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

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels import KernelStack
from ..kernels.transforms import Center
from ..losses import SquareLoss
from ..smo.box import Ascent
from ..smo.multiclass import solve_multiclass
from ..smo.program import BoxProblem
from .gates import Array

#: Relative duality gap to which machines are trained. Armijo's rule compares values of J, so that
#: their errors have to be well below the changes at which a descent stops (1e-2 by default).
INNER_TOL = 1e-7


@dataclass(frozen=True)
class Trained:
    """A machine trained on one kernel matrix.

    `value` is an upper bound on J, which is at most `gap`, the duality gap, lower. `dual` are the
    signed dual variables V (m × c), `biases` (c,) the constants of the outputs.
    """

    value: float
    gap: float
    dual: Array
    biases: Array


class Machine(Protocol):
    """A kernel machine that is trained repeatedly on slowly changing kernels."""

    def train(self, K: Array) -> Trained:
        """Train on the kernel matrix K, warm-started from the last solution."""
        ...


@dataclass
class BoxMachine:
    """Support vector machines on the same kernel, one problem per output; J is the sum of theirs.

    `tol` is a relative duality gap.
    """

    problems: list[BoxProblem]
    tol: float = INNER_TOL
    _starts: dict[int, Array] = field(default_factory=dict, init=False)

    def train(self, K: Array) -> Trained:
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


@dataclass
class SquareMachine:
    """Fisher's discriminant: square loss of targets H (m × c) of (weighted) mean zero, λ = `reg`.

    It is solved in closed form, without a duality gap. Its biases are left at zero: they are
    found together with the decision rule.
    """

    targets: Array
    reg: float
    sample_weight: Array | None = None

    def train(self, K: Array) -> Trained:
        stack = KernelStack(K[None], ["gated"], gram=True, checked=True)
        centered = Center().fit_transform(stack, sample_weight=self.sample_weight)
        loss = SquareLoss(centered, self.targets, self.reg, self.sample_weight)
        evaluation = loss.evaluate(np.ones(1))
        dual = np.sqrt(2.0 / self.reg) * evaluation.residuals
        return Trained(evaluation.value, 0.0, dual, np.zeros(dual.shape[1]))
