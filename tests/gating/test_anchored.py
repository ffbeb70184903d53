"""J with a ridge towards plain weights: value, gradient, where it leads."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from manykernels import LocalizedSVC
from manykernels.gating import Sigmoid, Softmax
from manykernels.gating.descent import DescentOptions, GatedProblem, descend
from manykernels.gating.objective import AnchoredObjective
from manykernels.kernels import RBF, Linear
from tests.gating.gated_problems import PROBLEMS, SIGNS, X, machine_of, objective_of, start_of

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


@pytest.mark.parametrize("gate", [Softmax, Sigmoid])
def test_random_starts_do_not_depend_on_plain_weights(gate):
    """Step 1 of the paper's algorithm; plain weights only where no descent is wanted."""
    uniform = {Softmax: 1 / 3, Sigmoid: 0.5}[gate]
    for start in ("weights", "random"):
        plain = objective_of(gate(start=start))
        anchor = plain.gate.anchor(WEIGHTS, X.shape[1])
        problem = GatedProblem(plain, anchor, penalty=0.1)
        theta = problem.start(np.random.default_rng(0))
        outputs = plain.gate.outputs(theta, X)
        centre = anchor if start == "weights" else 0.0
        assert 0 < np.abs(theta - centre).max() <= plain.gate.scale
        assert (np.abs(outputs - uniform).max() < 0.02) == (start == "random")
        # The penalty draws to plain weights from either start.
        assert_array_equal(problem.objective(theta).anchor, anchor)
        exact = replace(problem, exact=True)
        assert_array_equal(exact.start(np.random.default_rng(0)), anchor)


def test_the_estimator_starts_where_the_gate_says():
    """J at the start is that of equal weights, not of those of plain multiple kernel learning."""
    own = {"penalty": 0.0, "early_stopping": 0, "features": slice(None), "scale": 1e-9}
    found = {}
    for start in ("weights", "random"):
        gate = Sigmoid(start=start, max_iter=1, **own)
        model = LocalizedSVC([Linear(), RBF(1.0)], gating=gate, normalize=None, C=5.0)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, SIGNS)
        found[start] = model.history_["objective"][0]
    kernels = [X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))]
    equal = machine_of().train(0.25 * sum(kernels))
    assert found["random"] == pytest.approx(equal.value, rel=1e-4)
    assert found["weights"] != pytest.approx(equal.value, rel=1e-2)


def test_an_unknown_start_is_refused():
    with pytest.raises(ValueError, match="start"):
        LocalizedSVC(gating=Sigmoid(start="zero")).fit(X, SIGNS)
