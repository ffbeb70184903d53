"""J of a gate: the optimal value of a kernel machine on gated kernels.

With outputs η (m × P) of the gate and dual variables V (m × c) of the machine,

    K_η = Σ_p diag(η_p) K_p diag(η_p),     J(θ) = max_V linear(V) − ½ Σ_k v_kᵀ K_η v_k
    E_ip = ∂J/∂η_ip = −Σ_k V_ik [K_p (v_k∘η_p)]_i

(Gönen & Alpaydın 2013, sections 2.2 to 2.4. The paper has E inside double sums, which for a
softmax gate take P² products of a kernel with a vector; here it takes P, and the gate turns E
into ∂J/∂θ.) V is optimal, so its dependence on θ drops out (Danskin's theorem). J is not
convex in θ.

Only support vectors, samples with a nonzero dual variable, have a nonzero E.
With ``W = VVᵀ`` between them, computed once for all kernels,

    E_ip = −Σ_j W_ij [K_p]_ij η_jp

takes one pass over their entries of K_p, for any number of outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import hypot, isinf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels import KernelStack
from ..kernels.transforms import Center
from ..losses.base import Indices, Loss
from ..losses.square import SquareLoss
from ..losses.svm import BoxLoss, hinge_problem
from ..smo.box import Ascent
from ..smo.multiclass import solve_multiclass
from ..smo.program import BoxProblem, Rows
from ..utils.numerics import matmul
from ..utils.storable import storable
from .gates import Array, Gate

# -------------------------------------------------------------------------------------------------
# Kernel machines: their optimal value J as a function of the kernel matrix K.
#
# Every machine here maximises a dual ``linear(V) − ½ Σ_k v_kᵀ K v_k`` over signed dual variables
# V (m × c), one column per output. The derivative of its optimal value J in K_ij is
# ``−½ Σ_k V_ik V_jk``, which determines the gradient of a gate (Gönen & Alpaydın 2013,
# section 2.3).
#
#     machine                            V
#     support vector machines            v of :mod:`manykernels.smo.box`
#     multiclass SVM as one machine      d of :mod:`manykernels.smo.multiclass`
#     Fisher discriminant                √(2/λ) U of :mod:`manykernels.losses.square`
#
# The last is the square loss, ``J = max_U tr(2HᵀU − UᵀU − UᵀKU/λ)``, with centred kernels. Since
# ``1·U = 0``, ``UᵀKU`` is the same without centring, and the derivative above holds for the
# kernels as they are.


#: Relative duality gap of trained machines. Armijo's rule compares values of J, so that their
#: errors have to be well below the changes at which a descent stops (1e-3 by default).
INNER_TOL = 1e-7


@dataclass(frozen=True)
class Trained:
    """A machine trained on one kernel matrix.

    `value` is an upper bound on J, which is lower by at most the duality `gap`. `dual` are the
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
        """Return the untrained machine of some of the samples."""
        ...

    def loss(self, stack: KernelStack) -> Loss:
        """Return the machine on weighted sums of kernels, as a loss of the weights."""
        ...


@dataclass
class BoxMachine:
    """Support vector machines on the same kernel, one per output; J is the sum of their values.

    `tol` is a relative duality gap.
    """

    problems: list[BoxProblem]
    tol: float = INNER_TOL
    _starts: dict[int, Array] = field(default_factory=dict, init=False)

    def of(self, samples: Indices) -> BoxMachine:
        return BoxMachine([_of_samples(problem, samples) for problem in self.problems], self.tol)

    def loss(self, stack: KernelStack) -> Loss:
        # Without a bias the dual variables do not sum to zero, and centring would change them.
        has_bias = not any(problem.total for problem in self.problems)
        return BoxLoss(Center().fit_transform(stack) if has_bias else stack, self.problems)

    def train(self, K: Array | Rows) -> Trained:
        K = Rows.of(K)  # rows are computed once for all problems
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
        """Return the loss of one-against-rest machines."""
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
    """Fisher discriminant: square loss of targets H (m × c) of (weighted) mean zero, λ = `reg`.

    Solved in closed form, without a duality gap. Its outputs estimate the targets.
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
        # Centring the kernel shifts the outputs of all new samples equally, as the coefficients
        # sum to zero.
        counts = np.ones(len(K)) if self.sample_weight is None else self.sample_weight
        means = matmul(K, counts) / counts.sum()
        return Trained(evaluation.value, 0.0, dual, -scale * (means @ dual), scale)


def _of_samples(problem: BoxProblem, samples: Indices) -> BoxProblem:
    arrays = ("linear", "lower", "upper", "ridge")
    return replace(problem, **{name: getattr(problem, name)[samples] for name in arrays})


# Support vectors are picked out of the kernels if they are at most this fraction of all samples:
# reading single entries takes 2.4 times as long as reading whole rows (measured with 666 samples),
# and the time is quadratic in their number.
_WORTH_PICKING = 0.6


@dataclass
class GatedObjective:
    """J as a function of the parameters of a gate, given kernels and features of training rows.

    `kernels` are m × m, C-ordered: one array (P, m, m), or a list, which is copied into one.
    `n_inner_solves` counts the machines trained so far.
    """

    kernels: Array | list[Array]
    gate: Gate
    features: Array
    machine: Machine
    n_inner_solves: int = 0

    def __post_init__(self) -> None:
        self.kernels = np.ascontiguousarray(self.kernels)
        self._diagonals = np.diagonal(self.kernels, axis1=1, axis2=2)
        self._combined = np.empty(self.kernels.shape[1:])

    def gated(self, outputs: Array) -> Rows:
        """Return K_η, computed row by row on demand, in memory that the next call overwrites."""
        # Numba takes a second to import, and most users have no gates.
        from ..utils.compiled import fill_rows

        gates = np.ascontiguousarray(outputs.T)

        def fill(rows: Indices) -> None:
            fill_rows(self.kernels, gates, rows, self._combined)

        return Rows(self._combined, fill, (gates * gates * self._diagonals).sum(axis=0))

    def evaluate(self, theta: Array) -> GatedPoint:
        """Train the machine at `theta`."""
        outputs = self.gate.outputs(theta, self.features)
        trained = self.machine.train(self.gated(outputs))
        self.n_inner_solves += 1
        return GatedPoint(theta, outputs, trained, self, 0.0, np.zeros_like(theta))

    def output_slopes(self, outputs: Array, dual: Array) -> tuple[Indices, Array]:
        """Return the samples whose rows of E may be nonzero, and these rows."""
        from ..utils.compiled import weighted_sums

        rows = np.flatnonzero(dual.any(axis=1))
        if len(rows) > _WORTH_PICKING * len(dual):
            rows = np.arange(len(dual))
        support = np.ascontiguousarray(dual[rows])
        slopes = np.empty((len(rows), outputs.shape[1]))
        gates = np.ascontiguousarray(outputs.T)
        weighted_sums(self.kernels, gates, matmul(support, support.T, scale=-1.0), rows, slopes)
        return rows, slopes


@dataclass
class GatedPoint:
    """J at the parameters `theta`, where the gate has `outputs` and the machine is `trained`.

    J includes a ridge penalty ``½ strength ‖step‖²`` on the distance ``step = θ − θ₀`` from an
    anchor, see :class:`AnchoredObjective`.
    """

    theta: Array
    outputs: Array
    trained: Trained
    _objective: GatedObjective = field(repr=False)
    strength: float = field(repr=False)
    step: Array = field(repr=False)

    @property
    def value(self) -> float:
        """Objective J."""
        return self.trained.value + 0.5 * self.strength * float(self.step @ self.step)

    @property
    def coefficients(self) -> dict[str, Array]:
        """θ by name, one row for each kernel."""
        objective = self._objective
        return objective.gate.coefficients(self.theta, objective.features.shape[1])

    @property
    def kernel(self) -> Array:
        """K_η, in memory that the next evaluation of J overwrites."""
        return self._objective.gated(self.outputs).whole()

    @cached_property
    def gradient(self) -> Array:
        """Gradient ∂J/∂θ."""
        objective = self._objective
        rows, slopes = objective.output_slopes(self.outputs, self.trained.dual)
        # Samples without a slope contribute nothing.
        features, outputs = objective.features[rows], self.outputs[rows]
        gradient = objective.gate.pull_back(self.theta, features, outputs, slopes)
        return gradient + self.strength * self.step


# -- J with a ridge penalty towards plain multiple kernel learning --------------------------------
#
#     J(θ) + ½ κ ‖θ − θ₀‖² ,      κ = penalty · |J(θ₀)|
#
# θ₀, the anchor, is the constant gate of plain kernel weights (:meth:`.gates.Gate.anchor`). Gating
# features are standardised and θ has no unit, so that a penalty relative to J suits all data. With
# κ → ∞ the gate stays at θ₀; with κ = 0 it is the gate of Gönen & Alpaydın (2013).


@dataclass
class AnchoredObjective:
    """``J(θ) + ½ strength ‖θ − anchor‖²``; `strength` is κ."""

    plain: GatedObjective
    anchor: Array
    strength: float

    @classmethod
    def of(cls, plain: GatedObjective, anchor: Array, penalty: float) -> AnchoredObjective:
        """Return the objective with a penalty relative to J at the anchor."""
        strength = penalty * abs(plain.evaluate(anchor).value) if penalty else 0.0
        return cls(plain, anchor, strength)

    @property
    def n_inner_solves(self) -> int:
        """Number of machines trained so far."""
        return self.plain.n_inner_solves

    def evaluate(self, theta: Array) -> GatedPoint:
        """Train the machine at `theta`."""
        point = self.plain.evaluate(theta)
        return replace(point, strength=self.strength, step=theta - self.anchor)


# -- Certificate of a learnt gate -----------------------------------------------------------------


@storable
@dataclass(frozen=True)
class StationarityCertificate:
    """Distance of a gate from a stationary point of the objective J.

    Attributes
    ----------
    objective : float
        J; the sum over all gates if there are several.
    gradient_norm : float
        ``‖∂J/∂θ‖ / |J|``, θ being the parameters of the gate (of all gates).
    inner_gap : float
        Duality gap of the machine divided by |J|.
    change : float
        Relative decrease of J in the last step, the largest of several gates; infinite before
        the first step, 0 where no step lowers J any more.
    tol : float
        Relative change at which a descent stops.
    interrupted : bool
        Whether Ctrl-C ended the descent.
    held_out : bool
        Whether the descent was stopped early by the loss of held-out samples.

    Examples
    --------
    >>> from manykernels.gating.objective import StationarityCertificate
    >>> print(StationarityCertificate(12.5, 3e-3, 8e-8, change=4e-3, tol=1e-2))
    stationary: The last step lowered the objective by 4.0e-03 of itself, within tol=0.01; the \
gradient norm is 3.0e-03 of the objective, the duality gap of the machine 8.0e-08.
    """

    objective: float
    gradient_norm: float
    inner_gap: float
    change: float
    tol: float
    interrupted: bool = False
    held_out: bool = False

    @classmethod
    def joined(cls, parts: Sequence[StationarityCertificate]) -> StationarityCertificate:
        """Return the certificate of the sum of the objectives of independent gates."""
        objective = sum(certificate.objective for certificate in parts)
        size = abs(objective) or 1.0
        # Values relative to the objective of one gate, times its share, are relative to the sum.
        shares = [
            ((abs(certificate.objective) or 1.0) / size, certificate) for certificate in parts
        ]
        return cls(
            objective=objective,
            gradient_norm=hypot(
                *(share * certificate.gradient_norm for share, certificate in shares)
            ),
            inner_gap=sum(share * certificate.inner_gap for share, certificate in shares),
            change=max(certificate.change for certificate in parts),
            tol=max(certificate.tol for certificate in parts),
            interrupted=any(certificate.interrupted for certificate in parts),
            held_out=all(certificate.converged for certificate in parts)
            and any(certificate.held_out for certificate in parts),
        )

    @property
    def rel_gap(self) -> float:
        """Duality gap of the machine, `inner_gap`, under the name of other certificates."""
        return self.inner_gap

    @property
    def claim(self) -> str:
        """Statement proved by a small gradient."""
        if self.status == "held out":
            return (
                "Other gates have a lower `objective`, but are no better for held-out samples: "
                "the descent was stopped early. The machine of this gate is within `inner_gap` "
                "of its optimum."
            )
        return (
            "The gate is near a stationary point, as a rule a local minimum, of the `objective`: "
            "relative to it, the gradient is `gradient_norm`, the last decrease was `change`, and "
            "the machine of this gate is within `inner_gap` of its optimum. Other gates may have "
            "a lower objective."
        )

    @property
    def converged(self) -> bool:
        """Whether J had stopped changing, or held-out samples stopped the descent."""
        return self._flat or (self.held_out and not self.interrupted)

    @property
    def _flat(self) -> bool:
        return self.change <= self.tol

    @property
    def status(self) -> str:
        """ "stationary", "held out", "interrupted" or "stopped"."""
        if self._flat:
            return "stationary"
        if self.interrupted:
            return "interrupted"
        return "held out" if self.held_out else "stopped"

    @property
    def message(self) -> str:
        """Status in a sentence, with its numbers."""
        step = "No step was taken"
        if not isinf(self.change):
            bound = f"{'within' if self._flat else 'more than'} tol={self.tol:g}"
            step = f"The last step lowered the objective by {self.change:.1e} of itself, {bound}"
        remarks = {
            "stopped": " Raise max_iter or tol.",
            "held out": " The loss of held-out samples stopped the descent here.",
        }
        return (
            f"{step}; the gradient norm is {self.gradient_norm:.1e} of the objective, the duality "
            f"gap of the machine {self.inner_gap:.1e}.{remarks.get(self.status, '')}"
        )

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"
