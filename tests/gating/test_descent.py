"""Descents: J never rises, why they end, what observers see."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from manykernels.gating import Softmax
from manykernels.gating.descent import DescentOptions, descend
from manykernels.gating.gates import GATES
from manykernels.gating.objective import BoxMachine, GatedObjective
from manykernels.losses.svm import epsilon_insensitive_problem
from tests.gating.gated_problems import (
    KERNELS,
    PROBLEMS,
    X,
    interrupted_objective,
    objective_of,
    objectives,
    start_of,
)
from tests.problems import slow


@pytest.mark.parametrize("quasi_newton", [True, *slow(False)])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("gate", GATES)
def test_the_objective_never_rises(gate, problem, quasi_newton):
    objective = objective_of(gate, problem)
    descent = descend(objective, start_of(objective), DescentOptions(1e-4, 400, quasi_newton))
    values = objectives(descent)
    assert np.diff(values).max() <= 0.0
    assert values[-1] == descent.point.value < values[0]
    # It is that of the machine trained without a warm start at the gate that was reached.
    fresh = objective_of(gate, problem).evaluate(descent.point.theta)
    assert_allclose(descent.point.value, fresh.value, rtol=1e-6)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        pytest.param("softmax", "hinge", marks=pytest.mark.slow),
        ("softmax", "one class"),
        ("sigmoid", "one class"),
    ],
)
def test_both_kinds_of_step_end_in_the_same_valley(gate, problem):
    """Only in problems with one valley; in others the two may end in different minima."""
    values = []
    for quasi_newton in (True, False):
        objective = objective_of(gate, problem)
        descent = descend(objective, start_of(objective), DescentOptions(1e-5, 400, quasi_newton))
        values.append(descent.point.value)
    assert_allclose(values[0], values[1], rtol=0.01)


def test_quasi_newton_needs_fewer_machines():
    trained = []
    for quasi_newton in (True, False):
        objective = objective_of()
        descent = descend(objective, start_of(objective), DescentOptions(1e-6, 400, quasi_newton))
        trained.append((descent.point.value, objective.n_inner_solves))
    assert trained[0][0] <= trained[1][0] * (1 + 1e-3)
    assert trained[0][1] < trained[1][1]


def test_the_order_of_kernels_does_not_matter():
    order = np.array([2, 0, 1])
    objective, permuted = objective_of(), objective_of(kernels=[KERNELS[p] for p in order])
    theta, options = start_of(objective), DescentOptions(tol=1e-3)
    expected = descend(objective, theta, options)
    found = descend(permuted, theta.reshape(3, -1)[order].ravel(), options)
    assert_allclose(objectives(found), objectives(expected), rtol=1e-5)
    assert_allclose(found.point.outputs, expected.point.outputs[:, order], atol=1e-3)


# -- ends --------------------------------------------------------------------------------------


def test_certificate_tells_how_flat_it_is():
    objective = objective_of()
    rough, fine = (
        descend(objective, start_of(objective), DescentOptions(tol, 1000, True)).certificate
        for tol in (1e-2, 1e-9)
    )
    assert fine.converged
    assert fine.status == "stationary"
    assert fine.objective <= rough.objective
    assert fine.gradient_norm < 0.1 * rough.gradient_norm
    assert 0 <= fine.inner_gap <= 1e-6


def test_the_history_has_every_point_and_what_it_took():
    objective = objective_of()
    descent = descend(objective, start_of(objective), DescentOptions(1e-3, quasi_newton=True))
    history = descent.history
    assert [progress.iteration for progress in history] == list(range(descent.n_iter + 1))
    trained = [progress.n_inner_solves for progress in history]
    assert trained[0] == 1
    assert np.diff(trained).min() >= 1
    assert trained[-1] == objective.n_inner_solves
    certificates = [progress.certificate for progress in history]
    for before, after in pairwise(certificates):
        change = (before.objective - after.objective) / after.objective
        assert after.change == pytest.approx(change, rel=1e-12)
    assert certificates[0].change == np.inf
    assert descent.certificate == certificates[-1]
    size = np.linalg.norm(descent.point.gradient) / descent.point.value
    assert descent.certificate.gradient_norm == pytest.approx(size)


def test_one_kernel_leaves_a_softmax_nothing_to_learn():
    objective = objective_of(kernels=KERNELS[:1])
    descent = descend(objective, start_of(objective), DescentOptions())
    assert len(descent.history) == objective.n_inner_solves == 1
    assert descent.certificate.change == 0.0
    assert descent.certificate.converged
    assert descent.status == ""


def test_a_machine_that_ignores_its_kernel_ends_at_once():
    problem = epsilon_insensitive_problem(X[:, 0], 1.0, epsilon=10.0)
    objective = GatedObjective(KERNELS, Softmax(), X, BoxMachine([problem]))
    descent = descend(objective, start_of(objective), DescentOptions())
    assert descent.point.value == pytest.approx(0.0, abs=1e-12)
    assert descent.certificate.converged


def test_steps_are_counted_and_their_end_is_reported():
    objective = objective_of()
    descent = descend(objective, start_of(objective), DescentOptions(tol=1e-12, max_iter=3))
    assert len(descent.history) == 4
    assert descent.n_iter == 3
    assert descent.status == "3 steps taken"
    assert not descent.certificate.converged
    assert descent.certificate.status == "stopped"
    # J stops changing at the last step that is allowed: the descent has converged.
    flat = descend(objective, descent.point.theta, DescentOptions(tol=0.9, max_iter=1))
    assert flat.status == ""
    assert flat.certificate.converged


# -- observers and interruptions ---------------------------------------------------------------


def test_an_observer_sees_every_point_and_may_stop():
    seen = []

    def observer(progress):
        seen.append(progress)
        return progress.iteration == 2

    objective = objective_of()
    descent = descend(objective, start_of(objective), DescentOptions(), observer)
    assert seen == descent.history
    assert [progress.iteration for progress in seen] == [0, 1, 2]
    assert descent.status == "stopped by an observer"
    assert descent.certificate.status == "stopped"


def test_an_observer_that_never_stops_changes_nothing():
    seen = []
    objective, watched = objective_of(), objective_of()
    expected = descend(objective, start_of(objective), DescentOptions())
    found = descend(watched, start_of(watched), DescentOptions(), seen.append)
    assert found.history == expected.history == seen
    lines = [str(progress) for progress in seen]
    for line, value in zip(lines, objectives(expected), strict=True):
        assert line.startswith("step ")
        assert f"objective {value:.10g}  gradient norm" in line


@pytest.mark.parametrize("when", [2, 5, 9])
def test_an_interruption_leaves_what_has_been_reached(when):
    options = DescentOptions(tol=1e-4, quasi_newton=True)
    whole = descend(objective_of(), start_of(objective_of()), options)
    objective = interrupted_objective(when)
    descent = descend(objective, start_of(objective), options)
    assert descent.status == "interrupted"
    assert descent.certificate.status == "interrupted"
    assert objective.n_inner_solves == when - 1
    values = objectives(descent)
    assert values == objectives(whole)[: len(values)]
    assert descent.point.value == values[-1]
