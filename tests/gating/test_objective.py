"""J of a gate: its gradient against finite differences through the machine, and the paper's sums.

Every gate meets every machine, with sample weights and without.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.discriminant import fisher_targets
from manykernels.gating.gates import GATES, as_gate
from manykernels.gating.objective import (
    BoxMachine,
    GatedObjective,
    MulticlassMachine,
    SquareMachine,
)
from manykernels.losses.svm import epsilon_insensitive_problem, hinge_problem, one_class_problem
from tests.differences import assert_derivatives
from tests.problems import random_gram_matrices

M, D, P = 18, 2, 3
TOL = 1e-11
rng = np.random.default_rng(0)
FEATURES = rng.standard_normal((M, D))
# A multiple of the identity is added, so that each machine has a unique solution.
KERNELS = [K + 0.1 * np.eye(M) for K in random_gram_matrices(P, M, seed=1)]
LABELS = rng.permutation(np.arange(M) % 3)
TARGETS = np.sin(2 * FEATURES[:, 0]) + 0.3 * rng.standard_normal(M)
WEIGHTS = {"plain": np.ones(M), "weighted": rng.uniform(0.3, 2.0, M)}
SIGNS = np.where(np.arange(3)[:, None] == LABELS, 1.0, -1.0)


def square(weights):
    masses = np.bincount(LABELS, weights=weights)
    return SquareMachine(fisher_targets(LABELS, masses), 0.3, weights)


MACHINES = {
    "binary": lambda w: BoxMachine([hinge_problem(SIGNS[0], 2.0 * w)], TOL),
    "regression": lambda w: BoxMachine([epsilon_insensitive_problem(TARGETS, w, 0.1)], TOL),
    "one class": lambda w: BoxMachine([one_class_problem(w, 0.4)], TOL),
    "shared": lambda w: BoxMachine([hinge_problem(y, 2.0 * w) for y in SIGNS], TOL),
    "single": lambda w: MulticlassMachine(LABELS, 0.7 * w, 3, TOL),
    "square": square,
}
# The gate of single samples has the formula of that of clusters.
every_gate = pytest.mark.parametrize("gate", [name for name in GATES if name != "instance"])
every_machine = pytest.mark.parametrize("machine", MACHINES)
with_and_without_weights = pytest.mark.parametrize("weights", WEIGHTS)


def objective_of(gate, machine, weights="plain"):
    return GatedObjective(KERNELS, as_gate(gate), FEATURES, MACHINES[machine](WEIGHTS[weights]))


def random_point(objective, size=0.8):
    start = objective.gate.initial(FEATURES, P, np.random.default_rng(2))
    return start + size * np.random.default_rng(3).standard_normal(len(start))


@pytest.mark.slow
@every_gate
@every_machine
@with_and_without_weights
def test_gradient_agrees_with_finite_differences_of_the_trained_machine(gate, machine, weights):
    objective = objective_of(gate, machine, weights)
    theta = random_point(objective)
    gradient = objective.evaluate(theta).gradient
    size = np.linalg.norm(gradient)
    assert size > 1e-3, "a flat J tests nothing"
    assert_derivatives(gradient, lambda t: objective.evaluate(t).value, theta)


@every_gate
@every_machine
@with_and_without_weights
def test_value_falls_as_all_kernels_grow(gate, machine, weights):
    """At the rate of ½ Σ_k v_kᵀ K_η v_k, which ties value, K_η and V to each other."""
    objective = objective_of(gate, machine, weights)
    point = objective.evaluate(random_point(objective))
    assert 0.0 <= point.trained.gap <= 1e-9 * abs(point.value)
    eta, V = point.outputs, point.trained.dual
    combined = sum(np.outer(eta[:, p], eta[:, p]) * K for p, K in enumerate(KERNELS))
    assert_allclose(objective.gated(eta).whole(), combined, rtol=1e-13, atol=1e-15)
    # Danskin's theorem for the machine alone, as all kernels are scaled by a factor.
    energy = 0.5 * float(np.einsum("ik,ij,jk->", V, combined, V))
    assert_derivatives([-energy], lambda t: objective.machine.train(t * combined).value, [1.0])


def paper_gradient(gate, theta, eta, pairs):
    """The double sums of section 2.3, `pairs` being Υ: every term as it stands in the paper."""
    V = theta.reshape(P, -1)
    gradient = np.zeros_like(V)
    for i in range(M):
        for j in range(M):
            for m in range(P):
                for h in range(P):
                    if gate == "sigmoid" and h != m:
                        continue
                    term = pairs[i, j] * eta[i, h] * KERNELS[h][i, j] * eta[j, h]
                    own = float(h == m)
                    pulls = own - eta[i, m], own - eta[j, m]
                    for pull, row in zip(pulls, (FEATURES[i], FEATURES[j]), strict=True):
                        if gate == "gaussian":
                            centre, width = V[m, :-1], np.exp(V[m, -1])
                            away = row - centre
                            gradient[m, :-1] -= term * pull * away / width**2
                            # ∂/∂log σ = σ ∂/∂σ
                            gradient[m, -1] -= term * pull * (away @ away) / width**2
                        else:
                            # A gate of clusters has no bias.
                            gradient[m] -= 0.5 * term * pull * np.append(row, 1.0)[: V.shape[1]]
    return gradient.ravel()


@every_gate
@pytest.mark.parametrize("machine", ["binary", "regression", "one class", "single"])
def test_gradient_is_the_double_sum_of_the_paper(gate, machine):
    objective = objective_of(gate, machine)
    point = objective.evaluate(random_point(objective))
    if machine == "single":
        # Before it is symmetrised: δ(y_i = y_j) A_i A_j − Σ_l α_i^l (2 α_j^{y_i} − α_j^l).
        alpha = objective.machine._start
        total = alpha.sum(axis=1)
        pairs = np.outer(total, total) * (LABELS[:, None] == LABELS)
        pairs = pairs - 2 * total[:, None] * alpha[:, LABELS].T + alpha @ alpha.T
        assert not np.allclose(pairs, pairs.T)
    else:
        v = point.trained.dual[:, 0]
        pairs = np.outer(v, v)
    expected = paper_gradient(gate, point.theta, point.outputs, pairs)
    assert_allclose(point.gradient, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


def output_gradient(objective, eta, V):
    """Return E = ∂J/∂η of all samples."""
    gradient = np.zeros(eta.shape)
    rows, slopes = objective.output_slopes(eta, V)
    gradient[rows] = slopes
    return gradient


def test_output_gradient_is_that_of_the_energy_in_single_gate_outputs():
    rng = np.random.default_rng(4)
    eta, V = rng.uniform(0, 1, (M, P)), rng.standard_normal((M, 2))
    gradient = output_gradient(objective_of("softmax", "binary"), eta, V)

    def energy(eta):
        return 0.5 * sum(
            (V[:, k] * eta[:, p]) @ K @ (V[:, k] * eta[:, p])
            for p, K in enumerate(KERNELS)
            for k in range(2)
        )

    assert_derivatives(-gradient.ravel(), lambda e: energy(e.reshape(M, P)), eta.ravel())


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("n_support", [0, 1, 5, 13, M])
def test_gradient_over_support_vectors_is_that_over_all_samples(n_support, n_outputs):
    """As few samples are picked out of the kernels, and as many are not: against plain sums."""
    rng = np.random.default_rng(n_support)
    eta, V = rng.uniform(0, 1, (M, P)), rng.standard_normal((M, n_outputs))
    V[rng.permutation(M)[n_support:]] = 0.0
    if n_outputs > 1 and n_support > 1:
        V[V[:, 0].argmax(), 0] = 0.0  # a support vector of the other outputs only
    objective = objective_of("softmax", "binary")
    expected = np.column_stack(
        [-(V * (K @ (V * eta[:, [p]]))).sum(axis=1) for p, K in enumerate(KERNELS)]
    )
    assert_allclose(output_gradient(objective, eta, V), expected, rtol=1e-11, atol=1e-13)


def test_rows_of_the_gated_kernel_are_those_of_the_whole():
    objective = objective_of("softmax", "binary")
    eta = np.random.default_rng(5).uniform(0, 1, (M, P))
    eta[3] = 0.0
    whole = objective.gated(eta).whole().copy()
    rows = objective.gated(eta)
    assert_allclose(rows.diagonal, whole.diagonal(), rtol=1e-13)
    objective._combined.fill(np.nan)
    wanted = np.array([3, 7, 0])
    assert_array_equal(rows.need(wanted)[wanted], whole[wanted])
    assert np.isnan(np.delete(rows.values, wanted, axis=0)).all()
    assert_array_equal(rows.whole(), whole)


def test_kernels_in_one_array_are_not_copied():
    kernels = np.array(KERNELS)
    machine = MACHINES["binary"](WEIGHTS["plain"])
    assert GatedObjective(kernels, as_gate("softmax"), FEATURES, machine).kernels is kernels


def test_shut_gates_leave_nothing():
    objective = objective_of("softmax", "binary")
    eta = np.zeros((M, P))
    assert_array_equal(objective.gated(eta).whole(), np.zeros((M, M)))
    eta[:9, 1] = 1.0
    expected = np.zeros((M, M))
    expected[:9, :9] = KERNELS[1][:9, :9]
    assert_allclose(objective.gated(eta).whole(), expected, rtol=1e-15)


@every_machine
def test_where_a_machine_was_before_changes_nothing(machine):
    """Neither warm starts nor memory that is used again may influence results."""
    objective = objective_of("softmax", machine)
    here, there = random_point(objective), random_point(objective, size=3.0)
    first = objective.evaluate(here)
    gradient = first.gradient.copy()
    objective.evaluate(there)
    again = objective.evaluate(here)
    assert_allclose(again.value, first.value, rtol=1e-9)
    size = np.abs(gradient).max()
    assert_allclose(again.gradient, gradient, rtol=0, atol=1e-6 * size)
    # A gradient that is computed after another evaluation is still that of its own point.
    late = objective.evaluate(here)
    objective.evaluate(there)
    assert_allclose(late.gradient, gradient, rtol=0, atol=1e-6 * size)
    assert objective.n_inner_solves == 5
