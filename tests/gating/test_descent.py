"""The alternating loop: J never rises, restarts, dead gates, interruptions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.gating import GATES, Sigmoid, Softmax, as_gate
from manykernels.gating.descent import Options, descend, restarted
from manykernels.gating.machines import BoxMachine
from manykernels.gating.objective import GatedObjective
from manykernels.losses.hinge import epsilon_insensitive_problem, hinge_problem, one_class_problem

M = 60
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (M, 2))
# A corner: one straight line on each side.
SIGNS = np.where(X[:, 1] > np.abs(X[:, 0]), 1.0, -1.0)
LINES = [X @ X.T, (X @ X.T + 1.0) ** 2, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))]
PROBLEMS = {
    "hinge": lambda: hinge_problem(SIGNS, 5.0),
    "regression": lambda: epsilon_insensitive_problem(np.abs(X[:, 0]), 5.0, 0.05),
    "one class": lambda: one_class_problem(np.ones(M), 0.3),
}


def objective_of(gate="softmax", problem="hinge", kernels=LINES):
    return GatedObjective(kernels, as_gate(gate), X, BoxMachine([PROBLEMS[problem]()]))


def start_of(objective, seed=0):
    rng = np.random.default_rng(seed)
    return objective.gate.start(X, len(objective.kernels), rng)


# -- the descent -------------------------------------------------------------------------------


@pytest.mark.parametrize("quasi_newton", [True, False])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("gate", GATES)
def test_the_objective_never_rises(gate, problem, quasi_newton):
    objective = objective_of(gate, problem)
    descent = descend(objective, start_of(objective), Options(1e-4, 400, quasi_newton))
    assert np.diff(descent.history).max() <= 0.0
    assert descent.history[-1] == descent.point.value < descent.history[0]
    # It is that of the machine trained afresh at the gate that was reached.
    fresh = objective_of(gate, problem).evaluate(descent.point.theta)
    assert_allclose(descent.point.value, fresh.value, rtol=1e-6)


@pytest.mark.parametrize(
    ("gate", "problem"), [("softmax", "hinge"), ("softmax", "one class"), ("sigmoid", "one class")]
)
def test_both_kinds_of_step_end_in_the_same_valley(gate, problem):
    """Where there is one; elsewhere the same start may lead to different minima."""
    values = []
    for quasi_newton in (True, False):
        objective = objective_of(gate, problem)
        descent = descend(objective, start_of(objective), Options(1e-5, 400, quasi_newton))
        values.append(descent.point.value)
    assert_allclose(values[0], values[1], rtol=0.01)


def test_quasi_newton_needs_fewer_machines():
    trained = []
    for quasi_newton in (True, False):
        objective = objective_of()
        descent = descend(objective, start_of(objective), Options(1e-6, 400, quasi_newton))
        trained.append((descent.point.value, objective.n_trained))
    assert trained[0][0] <= trained[1][0] * (1 + 1e-3)
    assert trained[0][1] < trained[1][1]


def test_certificate_tells_how_flat_it_is():
    objective = objective_of()
    rough, fine = (
        descend(objective, start_of(objective), Options(tol, 1000, quasi_newton=True)).certificate(
            tol
        )
        for tol in (1e-2, 1e-9)
    )
    assert fine.converged
    assert fine.objective <= rough.objective
    assert fine.gradient_norm < 0.1 * rough.gradient_norm
    assert 0 <= fine.inner_gap <= 1e-6
    assert fine.residual == fine.gradient_norm + fine.inner_gap
    assert fine.kind == "stationarity"


def test_one_kernel_leaves_a_softmax_nothing_to_learn():
    objective = objective_of(kernels=LINES[:1])
    descent = descend(objective, start_of(objective), Options())
    assert len(descent.history) == objective.n_trained == 1
    assert descent.certificate(1e-4).converged
    assert descent.status == ""
    found = restarted(objective, 2, np.random.default_rng(0), Options())
    assert found.n_dead == 0, "a gate that has no say is not a dead one"


def test_a_machine_that_ignores_its_kernel_ends_at_once():
    problem = epsilon_insensitive_problem(X[:, 0], 1.0, epsilon=10.0)
    objective = GatedObjective(LINES, Softmax(), X, BoxMachine([problem]))
    descent = descend(objective, start_of(objective), Options())
    assert descent.point.value == pytest.approx(0.0, abs=1e-12)
    assert descent.certificate(1e-4).converged


def test_steps_are_counted_and_their_end_is_told():
    objective = objective_of()
    descent = descend(objective, start_of(objective), Options(tol=1e-12, max_iter=3))
    assert len(descent.history) == 4
    assert descent.status == "3 steps taken"
    assert not descent.certificate(1e-12).converged
    # Flat at the last step that is allowed: nothing to complain of.
    flat = descend(objective, descent.point.theta, Options(tol=0.9, max_iter=1))
    assert flat.status == ""
    assert flat.certificate(0.9).converged


def test_an_observer_sees_every_step_and_may_stop():
    seen = []

    def observer(step, value):
        seen.append((step, value))
        return step == 2

    objective = objective_of()
    descent = descend(objective, start_of(objective), Options(observer=observer))
    assert [step for step, _ in seen] == [0, 1, 2]
    assert [value for _, value in seen] == descent.history
    assert descent.status == "stopped by an observer"


# -- restarts ----------------------------------------------------------------------------------


def test_the_lowest_of_several_starts_is_kept():
    options = Options(tol=1e-3)
    objective = objective_of("gaussian")
    found = restarted(objective, 4, np.random.default_rng(0), options)
    assert len(found.values) == 4
    assert np.ptp(found.values) > 0
    assert found.best.point.value == min(found.values)
    rng = np.random.default_rng(0)
    for value in found.values:
        start = objective.gate.start(X, 3, rng)
        alone = descend(objective_of("gaussian"), start, options)
        assert_allclose(alone.point.value, value, rtol=1e-4)


def test_the_order_of_kernels_does_not_matter():
    order = np.array([2, 0, 1])
    objective, permuted = objective_of(), objective_of(kernels=[LINES[p] for p in order])
    theta = start_of(objective)
    expected = descend(objective, theta, Options(tol=1e-3))
    found = descend(permuted, theta.reshape(3, -1)[order].ravel(), Options(tol=1e-3))
    assert_allclose(found.history, expected.history, rtol=1e-5)
    assert_allclose(found.point.outputs, expected.point.outputs[:, order], atol=1e-3)


@dataclass(frozen=True)
class DeadAtFirst(Softmax):
    """A softmax gate some of whose starts leave all samples to the first kernel."""

    n_dead: int = 2

    def _start(self, x, n_kernels, rng):
        V = super()._start(x, n_kernels, rng)
        if len(STARTED) < self.n_dead:
            V[0, -1] = 60.0
        STARTED.append(V)
        return V


STARTED: list[np.ndarray] = []


@pytest.mark.parametrize(("n_dead", "n_made_again"), [(0, 0), (2, 2), (99, 3)])
def test_dead_starts_are_made_again(n_dead, n_made_again):
    STARTED.clear()
    found = restarted(
        objective_of(DeadAtFirst(n_dead=n_dead)), 2, np.random.default_rng(0), Options(tol=1e-3)
    )
    assert found.n_dead == n_made_again
    assert len(found.values) == 2
    assert len(STARTED) == 2 + n_made_again
    assert (len(found.best.history) > 1) == (n_dead < 5)


def test_a_gate_that_splits_at_random_and_cannot_learn_is_dead():
    """Saturated everywhere, though not alike: it has no gradient all the same."""
    found = restarted(objective_of(Sigmoid(1e6)), 1, np.random.default_rng(0), Options())
    assert np.ptp(found.best.point.outputs, axis=0).max() == 1.0
    assert found.n_dead == 3


def test_to_end_with_one_kernel_for_all_is_not_to_be_dead():
    """The other kernel has nothing to offer; giving up would find the same again and again."""
    objective = objective_of("softmax", "hinge", [np.eye(M), 1e-3 * np.eye(M)])
    found = restarted(objective, 1, np.random.default_rng(0), Options(tol=1e-10, max_iter=1000))
    assert found.best.point.outputs[:, 0].min() > 0.99
    assert found.n_dead == 0
    assert len(found.values) == 1


# -- interruptions -----------------------------------------------------------------------------


class Interrupted:
    """A machine that is interrupted (Ctrl-C) as often and when it is told."""

    def __init__(self, machine, *when):
        self.machine, self.when, self.n_calls = machine, when, 0

    def train(self, K):
        self.n_calls += 1
        if self.n_calls in self.when:
            raise KeyboardInterrupt
        return self.machine.train(K)


def interrupted_objective(*when, gate="softmax"):
    objective = objective_of(gate)
    objective.machine = Interrupted(objective.machine, *when)
    return objective


@pytest.mark.parametrize("when", [2, 5, 9])
def test_an_interruption_leaves_what_has_been_reached(when):
    whole = descend(objective_of(), start_of(objective_of()), Options(tol=1e-4, quasi_newton=True))
    objective = interrupted_objective(when)
    descent = descend(objective, start_of(objective), Options(tol=1e-4, quasi_newton=True))
    assert descent.status == "interrupted"
    assert objective.n_trained == when - 1
    assert descent.history == whole.history[: len(descent.history)]
    assert descent.point.value == descent.history[-1]


def test_an_interruption_ends_all_starts():
    objective = interrupted_objective(5)
    found = restarted(
        objective, 10, np.random.default_rng(0), Options(tol=1e-4, quasi_newton=True)
    )
    assert objective.n_trained == 4
    assert len(found.values) == 1
    assert found.best.status == "interrupted"


def test_an_interruption_of_a_later_start_leaves_the_best_of_all():
    single = objective_of()
    first = restarted(single, 1, np.random.default_rng(0), Options(tol=1e-4, quasi_newton=True))
    for later in (1, 2):  # at the first machine of the second start, and after it
        objective = interrupted_objective(single.n_trained + later)
        found = restarted(
            objective, 10, np.random.default_rng(0), Options(tol=1e-4, quasi_newton=True)
        )
        assert found.best.status == "interrupted"
        assert found.best.point.value == first.best.point.value
        assert_array_equal(found.best.point.theta, first.best.point.theta)
        assert len(found.values) == later


def test_an_interruption_before_the_first_machine_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        restarted(
            interrupted_objective(1),
            3,
            np.random.default_rng(0),
            Options(tol=1e-4, quasi_newton=True),
        )


def test_an_interruption_while_the_gate_is_dead_ends_too():
    STARTED.clear()
    objective = interrupted_objective(3, gate=DeadAtFirst())
    found = restarted(objective, 2, np.random.default_rng(0), Options(tol=1e-4, quasi_newton=True))
    assert found.best.status == "interrupted"
    assert found.n_dead == 2
    assert len(STARTED) == 3
