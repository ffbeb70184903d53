"""J with a ridge towards plain weights: value, gradient, where it leads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.gating.descent import DescentOptions, descend
from manykernels.gating.objective import AnchoredObjective
from tests.gating.gated_problems import PROBLEMS, X, objective_of, start_of

WEIGHTS = np.array([0.5, 0.7, np.sqrt(1 - 0.74)])


def anchored(gate="sigmoid", problem="hinge", penalty=0.1):
    plain = objective_of(gate, problem)
    anchor = plain.gate.anchor(WEIGHTS, X.shape[1])
    return AnchoredObjective.of(plain, anchor, penalty)


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_gradient_agrees_with_finite_differences(gate, problem):
    objective = anchored(gate, problem)
    theta = objective.anchor + np.random.default_rng(1).normal(scale=0.5, size=9)
    point = objective.evaluate(theta)
    step = 1e-4
    for j, direction in enumerate(np.eye(9)):
        above, below = (
            objective.evaluate(theta + sign * step * direction).value for sign in (1, -1)
        )
        size = np.abs(point.gradient).max()
        assert_allclose(point.gradient[j], (above - below) / (2 * step), atol=1e-3 * size)


def test_the_value_is_that_of_the_gate_and_a_ridge():
    objective = anchored(penalty=0.3)
    at_anchor = objective.plain.evaluate(objective.anchor).value
    assert objective.strength == pytest.approx(0.3 * abs(at_anchor))
    theta = objective.anchor + 0.2
    ridge = 0.5 * objective.strength * np.sum((theta - objective.anchor) ** 2)
    point = objective.evaluate(theta)
    assert point.value == pytest.approx(objective.plain.evaluate(theta).value + ridge, rel=1e-6)
    assert_array_equal(point.theta, theta)
    assert objective.evaluate(objective.anchor).value == pytest.approx(at_anchor, rel=1e-6)


def test_without_a_penalty_nothing_is_trained_at_the_anchor():
    assert anchored(penalty=0.0).n_inner_solves == 0
    assert anchored(penalty=0.1).n_inner_solves == 1


def test_the_anchor_is_the_gate_of_plain_weights():
    for gate, total in (("sigmoid", 1.0), ("softmax", np.sqrt(WEIGHTS).sum())):
        objective = anchored(gate)
        outputs = objective.plain.gate.outputs(objective.anchor, X)
        assert_allclose(outputs * total, np.tile(np.sqrt(WEIGHTS), (len(X), 1)), rtol=1e-12)


def test_an_endless_penalty_leads_back_to_the_anchor():
    objective = anchored(penalty=1e9)
    start = objective.anchor + start_of(objective.plain)
    found = descend(objective, start, DescentOptions(tol=1e-9, max_iter=50))
    assert_allclose(found.point.theta, objective.anchor, atol=1e-6)
