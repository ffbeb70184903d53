"""Several starts: the lowest is kept, saturated gates are drawn again, ends from outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.gating import Sigmoid, Softmax
from manykernels.gating.descent import DescentOptions, GatedProblem, descend, restarted
from tests.gating.gated_problems import KERNELS, M, X, interrupted_objective, objective_of

QUASI_NEWTON = DescentOptions(tol=1e-4, quasi_newton=True)


def seeded(objective, n_init, options=QUASI_NEWTON, observer=None, seed=0):
    problem = GatedProblem(objective)
    return restarted(problem, n_init, np.random.default_rng(seed), options, observer)


def test_the_lowest_of_several_starts_is_kept():
    options = DescentOptions(tol=1e-3)
    objective = objective_of("gaussian")
    found = seeded(objective, 4, options, seed=1)
    assert len(found.objectives) == 4
    assert np.ptp(found.objectives) > 0
    assert found.best.point.value == min(found.objectives)
    assert found.n_inner_solves == objective.n_inner_solves
    rng = np.random.default_rng(1)
    for value in found.objectives:
        start = objective.gate.initial(X, 3, rng)
        alone = descend(objective_of("gaussian"), start, options)
        assert_allclose(alone.point.value, value, rtol=1e-4)


# -- saturated gates ---------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class SaturatedAtFirst(Softmax):
    """A softmax gate some of whose starts leave all samples to the first kernel."""

    n_saturated: int = 2

    def _initial(self, x, n_kernels, rng):
        V = super()._initial(x, n_kernels, rng)
        if len(STARTED) < self.n_saturated:
            V[0, -1] = 60.0
        STARTED.append(V)
        return V


STARTED: list[np.ndarray] = []


@pytest.mark.parametrize(("n_saturated", "n_redrawn"), [(0, 0), (2, 2), (99, 3)])
def test_saturated_starts_are_drawn_again(n_saturated, n_redrawn):
    STARTED.clear()
    objective = objective_of(SaturatedAtFirst(n_saturated=n_saturated))
    found = seeded(objective, 2, DescentOptions(tol=1e-3))
    assert found.n_redrawn == n_redrawn
    assert len(found.objectives) == 2
    assert len(STARTED) == 2 + n_redrawn
    assert (found.best.n_iter > 0) == (n_saturated < 5)


def test_a_gate_that_splits_at_random_and_cannot_learn_is_drawn_again():
    """Saturated everywhere, with different kernels at different samples: it has no gradient."""
    found = seeded(objective_of(Sigmoid(scale=1e6)), 1, DescentOptions())
    assert np.ptp(found.best.point.outputs, axis=0).max() == 1.0
    assert found.n_redrawn == 3


def test_to_end_with_one_kernel_for_all_is_an_answer():
    """The other kernel is useless; another start would end the same way."""
    objective = objective_of("softmax", "hinge", [np.eye(M), 1e-3 * np.eye(M)])
    found = seeded(objective, 1, DescentOptions(tol=1e-10, max_iter=1000))
    assert found.best.point.outputs[:, 0].min() > 0.99
    assert found.n_redrawn == 0
    assert len(found.objectives) == 1


def test_the_softmax_of_one_kernel_is_not_drawn_again():
    assert seeded(objective_of(kernels=KERNELS[:1]), 2, DescentOptions()).n_redrawn == 0


# -- ended from outside ------------------------------------------------------------------------


def test_an_observer_sees_all_starts_and_its_answer_ends_them():
    seen = []
    found = seeded(objective_of(), 3, observer=seen.append)
    assert [progress.iteration for progress in seen].count(0) == 3
    assert found.status == ""

    def stop_in_the_second(progress):
        again.append(progress)
        return [p.iteration for p in again].count(0) == 2 and progress.iteration == 1

    again = []
    stopped = seeded(objective_of(), 3, observer=stop_in_the_second)
    assert again == seen[: len(again)]
    assert stopped.status == "stopped by an observer"
    assert len(stopped.objectives) == 2
    assert stopped.best.point.value == min(stopped.objectives)


def test_an_observer_that_stops_a_saturated_start_ends_all():
    objective = objective_of(Sigmoid(scale=1e6))
    found = seeded(objective, 4, observer=lambda progress: True)
    assert (objective.n_inner_solves, found.n_redrawn, len(found.objectives)) == (1, 0, 1)


def test_an_interruption_ends_all_starts():
    objective = interrupted_objective(5)
    found = seeded(objective, 10)
    assert objective.n_inner_solves == 4
    assert len(found.objectives) == 1
    assert found.status == "interrupted"


def test_an_interruption_of_a_later_start_leaves_the_best_of_all():
    single = objective_of()
    first = seeded(single, 1)
    for later in (1, 2):  # at the first machine of the second start, and after it
        objective = interrupted_objective(single.n_inner_solves + later)
        found = seeded(objective, 10)
        assert found.status == "interrupted"
        assert found.best.point.value == first.best.point.value
        assert_array_equal(found.best.point.theta, first.best.point.theta)
        # The certificate of the best descent does not depend on starts after it.
        assert found.best.certificate == first.best.certificate
        assert len(found.objectives) == later


def test_an_interruption_before_the_first_machine_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        seeded(interrupted_objective(1), 3)


def test_an_interruption_while_the_gate_is_saturated_ends_too():
    STARTED.clear()
    objective = interrupted_objective(3, gate=SaturatedAtFirst())
    found = seeded(objective, 2)
    assert found.status == "interrupted"
    assert found.n_redrawn == 2
    assert len(STARTED) == 3
