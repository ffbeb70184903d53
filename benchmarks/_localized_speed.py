"""One localized fit against the same descent written in the straightforward way.

The loop below does what the paper says, in NumPy and scikit-learn: it sums the gated kernels,
trains ``SVC(kernel="precomputed")`` anew for every trial step, writes the gradient of a sigmoid
gate as the double sum of section 2.3, and halves steps by Armijo's rule. Its gradient comes in
three forms: the sums over all samples, over the support vectors only (section 4.1), and
rearranged into products of matrices, which the paper does not do.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from benchmarks._localized_problems import Problem
from manykernels import LocalizedSVC
from manykernels.gating import GatingFeatures, Sigmoid

PENALTY = 1.0
SEED = 0
ARMIJO = 1e-4

NOTE = (
    f"One training part of MULTIFEAT, C = {PENALTY:g}, the same random start; seconds of the "
    "processor, one thread. The straightforward loop sums the gated kernels in NumPy, trains "
    '`SVC(kernel="precomputed")` (at its own tol of 1e-3) anew at every trial step, and has the '
    "same Armijo rule. Its gradient is the paper's double sum, over all samples (run once: it is "
    "slow) or over the support vectors only, as in the paper's section 4.1; or rearranged into "
    "products of matrices, as the library's is. The library trains machines to a relative gap of "
    "1e-7, warm-started; its time includes normalising the kernels; the loop gets them ready-made."
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
    "double sums over all samples": double_sum,
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


def measure(problem: Problem, n_steps: int, gradients: list[str]) -> list[Timed]:
    """The loop with these gradients and the library's fit (twice), on one training part."""
    draw = problem.draw(0)
    train, _ = draw.folds[0]
    stack = draw.tables["all"][np.ix_(train, train)]
    labels = draw.targets[train]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # few steps on purpose
        small = np.arange(0, len(train), 4)
        _fitted(stack[np.ix_(small, small)], labels[small], max_iter=2)  # compiled beforehand
        loops = [_straightforward(stack, labels, n_steps, name) for name in gradients]
        name = "manykernels, gradient steps"
        same = _timed(name, stack, labels, quasi_newton=False, steps=n_steps)
        target = loops[-1].objective
        return [*loops, same, _to_value(stack, labels, target)]


def _fitted(stack: Any, labels: np.ndarray, **options: Any) -> LocalizedSVC:
    model = LocalizedSVC(
        "precomputed", gating="sigmoid", C=PENALTY, tol=1e-12, random_state=SEED, **options
    )
    return model.fit(stack, labels)


def _timed(name: str, stack: Any, labels: np.ndarray, *, quasi_newton: bool, steps: int) -> Timed:
    taken = []
    for _ in range(3):
        start = time.process_time()
        model = _fitted(stack, labels, quasi_newton=quasi_newton, max_iter=steps)
        taken.append(time.process_time() - start)
    return Timed(name, min(taken), model.objective_, model.n_iter_, model.n_inner_solves_)


def _to_value(stack: Any, labels: np.ndarray, target: float) -> Timed:
    """As many quasi-Newton steps as are needed to get as low."""
    model = _fitted(stack, labels, quasi_newton=True, max_iter=200)
    history = model.history_["objective"]
    steps = next((i for i, value in enumerate(history) if value <= target), len(history) - 1)
    name = "manykernels, quasi-Newton steps to the same J"
    return _timed(name, stack, labels, quasi_newton=True, steps=max(steps, 1))


def _straightforward(stack: Any, labels: np.ndarray, n_steps: int, name: str) -> Timed:
    """The loop from the library's start; that kernels and features are ready costs it nothing."""
    kernels = np.array([stack.kernel(p) for p in range(stack.n_kernels)])
    roots = np.sqrt(np.einsum("pii->pi", kernels))
    kernels /= roots[:, :, None] * roots[:, None, :]
    features = GatingFeatures().fit_transform(stack.features)
    theta = Sigmoid().start(features, len(kernels), check_random_state(SEED))
    signs = np.where(labels == 1, 1.0, -1.0)
    loop = _Loop(kernels, signs, features, GRADIENTS[name])
    start = time.process_time()
    value = loop.descend(theta.reshape(len(kernels), -1), n_steps)
    seconds = time.process_time() - start
    return Timed(f"straightforward, {name}", seconds, value, n_steps, loop.n_machines)
