"""Small gated machines for tests of descents."""

from __future__ import annotations

import numpy as np

from manykernels import KernelStack
from manykernels.gating.descent import GatedSamples
from manykernels.gating.gates import as_gate
from manykernels.gating.objective import BoxMachine, GatedObjective
from manykernels.losses.svm import epsilon_insensitive_problem, hinge_problem, one_class_problem

M = 60
X = np.random.default_rng(0).uniform(-1, 1, (M, 2))
# The border between the classes is a corner: one straight line on each side.
SIGNS = np.where(X[:, 1] > np.abs(X[:, 0]), 1.0, -1.0)
KERNELS = [X @ X.T, (X @ X.T + 1.0) ** 2, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))]
SAMPLES = GatedSamples(KernelStack.from_arrays(KERNELS), X)
PROBLEMS = {
    "hinge": lambda: hinge_problem(SIGNS, 5.0),
    "regression": lambda: epsilon_insensitive_problem(np.abs(X[:, 0]), 5.0, 0.05),
    "one class": lambda: one_class_problem(np.ones(M), 0.3),
}


def machine_of(problem="hinge"):
    return BoxMachine([PROBLEMS[problem]()])


def objective_of(gate="softmax", problem="hinge", kernels=KERNELS):
    return GatedObjective(kernels, as_gate(gate), X, machine_of(problem))


def start_of(objective, seed=0):
    return objective.gate.initial(X, len(objective.kernels), np.random.default_rng(seed))


def objectives(descent):
    """J at every point of a descent."""
    return [progress.certificate.objective for progress in descent.history]


class Interrupted:
    """A machine that is interrupted (Ctrl-C) at the given trainings."""

    def __init__(self, machine, *when):
        self.machine, self.when, self.n_calls = machine, when, 0

    def train(self, K):
        self.n_calls += 1
        if self.n_calls in self.when:
            raise KeyboardInterrupt
        return self.machine.train(K)

    def __getattr__(self, name):
        return getattr(self.machine, name)


def interrupted_objective(*when, gate="softmax"):
    objective = objective_of(gate)
    objective.machine = Interrupted(objective.machine, *when)
    return objective
