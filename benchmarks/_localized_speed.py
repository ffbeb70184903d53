"""One localized fit against the same descent written in the straightforward way.

The loop below does what the paper says, in NumPy and scikit-learn: it sums the gated kernels,
trains ``SVC(kernel="precomputed")`` anew for every trial step, writes the gradient of a sigmoid
gate as the double sum of section 2.3, and halves steps by Armijo's rule. Its gradient comes in
two forms: sums over the support vectors (section 4.1), and the same rearranged into products of
matrices, which the paper does not do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from benchmarks._gonen2013 import Experiment, multifeat
from benchmarks._tables import markdown, verdict
from manykernels.gating import Sigmoid
from manykernels.gating.descent import Descent, DescentOptions, descend
from manykernels.gating.features import GatingFeatures
from manykernels.gating.objective import BoxMachine, GatedObjective
from manykernels.losses.svm import hinge_problem

PENALTY = 1.0
SEED = 0
ARMIJO = 1e-4
REPEATS = 3
LEAST_RATIO = 10.0
STEP_COUNTS = (10, 20, 50)

NOTE = (
    f"One training part of MULTIFEAT, C = {PENALTY:g}, the same random start, no penalty; kernels "
    "of unit diagonal and gating features are ready-made for both. Seconds of the processor, one "
    f"thread, the least of {REPEATS} runs that take turns. The straightforward loop sums the "
    'gated kernels in NumPy, trains `SVC(kernel="precomputed")` (at its own tol of 1e-3) anew at '
    "every trial step, and has the same Armijo rule. Its gradient is the paper's double sum over "
    "the support vectors, or this rearranged into products of matrices. The library's descent "
    "trains machines to a relative gap of 1e-7, warm-started, computes the rows of the gated "
    "kernel that a machine asks for, and sums the gradient over support vectors."
)

Gradient = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Timed:
    """A descent: seconds of the processor, J at the end, accepted steps and machines."""

    name: str
    seconds: float
    objective: float
    n_steps: int
    n_machines: int


# -- the straightforward loop ------------------------------------------------------------------


def double_sum(
    kernels: np.ndarray, signed: np.ndarray, outputs: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """∂J/∂V of a sigmoid gate as the paper writes it; the sum over j is a product."""
    n, n_kernels = outputs.shape
    gradient = np.zeros((n_kernels, features.shape[1] + 1))
    extended = np.column_stack([features, np.ones(n)])
    for p in range(n_kernels):
        eta = outputs[:, p]
        sloped = extended * (1 - eta)[:, None]
        for i in range(n):
            terms = signed[i] * signed * eta[i] * kernels[p, i] * eta
            gradient[p] += terms @ (sloped[i] + sloped)
    return -0.5 * gradient


def double_sum_of_support_vectors(
    kernels: np.ndarray, signed: np.ndarray, outputs: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """The same over the samples that count."""
    rows = np.flatnonzero(signed)
    inner = kernels[:, rows[:, None], rows]
    return double_sum(inner, signed[rows], outputs[rows], features[rows])


def rearranged(
    kernels: np.ndarray, signed: np.ndarray, outputs: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """The same as products of matrices."""
    gated = signed[:, None] * outputs
    columns = [gated[:, p] * (kernels[p] @ gated[:, p]) for p in range(len(kernels))]
    slope = np.column_stack(columns) * (1 - outputs)
    return -np.column_stack([slope.T @ features, slope.sum(axis=0)])


GRADIENTS: dict[str, Gradient] = {
    "double sums over support vectors": double_sum_of_support_vectors,
    "sums rearranged": rearranged,
}


class _Loop:
    def __init__(
        self, kernels: np.ndarray, signs: np.ndarray, features: np.ndarray, gradient: Gradient
    ) -> None:
        self.kernels, self.signs, self.features = kernels, signs, features
        self.gradient_of = gradient
        self.n_machines = 0

    def value(self, V: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """J, the signed dual variables and the outputs of the gate."""
        outputs = 1 / (1 + np.exp(-(self.features @ V[:, :-1].T + V[:, -1])))
        combined = np.zeros_like(self.kernels[0])
        for p, kernel in enumerate(self.kernels):
            combined += np.outer(outputs[:, p], outputs[:, p]) * kernel
        machine = SVC(kernel="precomputed", C=PENALTY).fit(combined, self.signs)
        self.n_machines += 1
        signed = np.zeros(len(self.signs))
        signed[machine.support_] = machine.dual_coef_[0]
        return np.abs(signed).sum() - 0.5 * signed @ combined @ signed, signed, outputs

    def descend(self, V: np.ndarray, n_steps: int) -> float:
        """J after so many accepted steps; a step is first tried at twice the last one's length."""
        value, signed, outputs = self.value(V)
        step = None
        for _ in range(n_steps):
            gradient = self.gradient_of(self.kernels, signed, outputs, self.features)
            slope = -float((gradient**2).sum())
            step = 1 / np.sqrt(-slope) if step is None else 2 * step
            while True:
                found = self.value(V - step * gradient)
                if found[0] <= value + ARMIJO * step * slope:
                    break
                curvature = 2 * (found[0] - value - step * slope) / step**2
                step = float(np.clip(-slope / curvature, 0.1 * step, 0.5 * step))
            V = V - step * gradient
            value, signed, outputs = found
        return value


# -- measurements --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Normalised kernels (P, m, m), classes ±1, gating features, and θ to start from."""

    kernels: np.ndarray
    signs: np.ndarray
    features: np.ndarray
    theta: np.ndarray

    @classmethod
    def of(cls, experiment: Experiment) -> Start:
        """On the first training part of an experiment."""
        draw = experiment.draw(0)
        train, _ = draw.folds[0]
        method = experiment.methods["LMKL (sigmoid)"]
        stack = method.block(draw.scaled(experiment.scaling, train), train, train)
        kernels = np.array([stack.kernel(p) for p in range(stack.n_kernels)])
        features = GatingFeatures().fit_transform(stack.features)
        theta = Sigmoid().initial(features, len(kernels), check_random_state(SEED))
        return cls(kernels, np.where(draw.targets[train] == 1, 1.0, -1.0), features, theta)


def measured(quick: bool) -> dict[str, Any]:
    """The descents with some numbers of steps, as plain values."""
    start = Start.of(multifeat())
    counts = (3,) if quick else STEP_COUNTS
    return {"descents": {str(n): [vars(one) for one in measure(start, n)] for n in counts}}


def measure(start: Start, n_steps: int) -> list[Timed]:
    """The loop and the library's descents from one start.

    They take turns, so that all of them meet the same load of the machine; the least time counts.
    """
    with threadpool_limits(1):
        _library(start, 2, quasi_newton=True)  # compiled beforehand
        target = _straightforward(start, n_steps, "sums rearranged").objective
        contenders: list[Callable[[], Timed]] = [
            *(partial(_straightforward, start, n_steps, name) for name in GRADIENTS),
            partial(_library, start, n_steps, quasi_newton=False),
            partial(_library, start, _steps_to(start, target), quasi_newton=True),
        ]
        rounds = [[contend() for contend in contenders] for _ in range(REPEATS)]
    return [min(runs, key=lambda run: run.seconds) for runs in zip(*rounds, strict=True)]


def section(part: dict[str, Any]) -> str:
    """Table and verdicts."""
    rows, lines = [], []
    for n_steps, descents in part["descents"].items():
        best = descents[-1]
        for one in descents:
            ratio = one["seconds"] / best["seconds"]
            counts = [str(one["n_steps"]), str(one["n_machines"]), f"{one['objective']:.3f}"]
            rows.append([one["name"], *counts, f"{one['seconds']:.2f}", f"{ratio:.1f}"])
            if one["name"].startswith("straightforward"):
                lines.append(
                    f"- {n_steps} steps: {ratio:.1f} times faster than {one['name']}, at J "
                    f"{best['objective']:.3f} against {one['objective']:.3f} "
                    f"(bound {LEAST_RATIO:g}: {verdict(ratio >= LEAST_RATIO)})"
                )
    header = ["descent", "steps", "machines", "J", "seconds", "times the last of its group"]
    return "\n\n".join([NOTE, "\n".join(lines), markdown(header, rows)])


def _straightforward(start: Start, n_steps: int, name: str) -> Timed:
    loop = _Loop(start.kernels, start.signs, start.features, GRADIENTS[name])
    before = time.process_time()
    value = loop.descend(start.theta.reshape(len(start.kernels), -1), n_steps)
    seconds = time.process_time() - before
    return Timed(f"straightforward, {name}", seconds, value, n_steps, loop.n_machines)


def _library(start: Start, n_steps: int, *, quasi_newton: bool) -> Timed:
    before = time.process_time()
    descent = _descent(start, n_steps, quasi_newton)
    seconds = time.process_time() - before
    steps = "quasi-Newton steps to the same J" if quasi_newton else "gradient steps"
    last = descent.history[-1]
    value = descent.point.value
    return Timed(f"manykernels, {steps}", seconds, value, descent.n_iter, last.n_inner_solves)


def _steps_to(start: Start, target: float) -> int:
    """How many quasi-Newton steps get as low."""
    history = _descent(start, 200, quasi_newton=True).history
    reached = (step.iteration for step in history if step.certificate.objective <= target)
    return max(next(reached, history[-1].iteration), 1)


def _descent(start: Start, n_steps: int, quasi_newton: bool) -> Descent:
    machine = BoxMachine([hinge_problem(start.signs, PENALTY)])
    objective = GatedObjective(start.kernels, Sigmoid(), start.features, machine)
    # The tolerance is never met: all steps are taken.
    return descend(objective, start.theta, DescentOptions(1e-12, n_steps, quasi_newton))
