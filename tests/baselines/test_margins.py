"""The margin program of LP-β and LP-B against a conic solver, and what its solution means."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from manykernels.baselines.lp_beta import MarginProgram, best_threshold
from manykernels.solvers.programs import LinearProgram, LinearSolution
from tests.problems import slow

N, M = 24, 4


def program(n_classes, nu, shared, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(N) % n_classes)
    outputs = rng.normal(size=(M, N, n_classes))
    outputs[:, np.arange(N), labels] += 0.5
    if n_classes == 2:
        outputs[:, :, 0] = -outputs[:, :, 1]
    weights = rng.uniform(0.5, 3.0, N) if weighted else np.ones(N)
    return MarginProgram(outputs, labels, weights, nu, shared)


def optimum(given):
    """The program as it is printed."""
    outputs, labels, weights = given.outputs, given.labels, given.sample_weight
    n_classes = outputs.shape[2]
    B = cp.Variable((n_classes, M), nonneg=True)
    xi, rho = cp.Variable(N, nonneg=True), cp.Variable()
    constraints = [cp.sum(B, axis=1) == 1]
    if given.shared:
        constraints += [B[c] == B[0] for c in range(1, n_classes)]
    for i, y in product(range(N), range(n_classes)):
        if y != labels[i]:
            own, other = outputs[:, i, labels[i]], outputs[:, i, y]
            constraints.append(B[labels[i]] @ own - B[y] @ other + xi[i] >= rho)
    objective = -rho + weights @ xi / (given.nu * weights.sum())
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    return cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL, **tight)


def margins(given, weights):
    """Of every sample, with a weight vector for every class."""
    n_classes = given.outputs.shape[2]
    scores = np.einsum("mic,cm->ic", given.outputs, np.broadcast_to(weights, (n_classes, M)))
    own = scores[np.arange(N), given.labels]
    scores[np.arange(N), given.labels] = -np.inf
    return own - scores.max(axis=1)


@pytest.mark.parametrize("shared", [True, *slow(False)])
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@pytest.mark.parametrize("nu", [1e-3, 0.3, 1.0])
def test_it_is_the_printed_program(n_classes, nu, shared):
    given = program(n_classes, nu, shared)
    found = given.solve(1e-8)
    assert found.certificate.primal == pytest.approx(optimum(given), abs=1e-8)
    assert found.certificate.converged
    assert found.weights.shape == ((M,) if shared else (n_classes, M))
    assert_allclose(found.weights.sum(axis=-1), 1.0)
    assert (found.weights >= 0).all()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("nu", [0.01, 0.25, 0.5, 1.0])
def test_anyone_can_recompute_the_certificate(nu, shared):
    given = program(3, nu, shared)
    found = given.solve(1e-8)
    prices = given.sample_weight / (nu * given.sample_weight.sum())
    short = np.maximum(found.rho - margins(given, found.weights), 0.0)
    assert found.certificate.primal == pytest.approx(prices @ short - found.rho, abs=1e-12)
    u = found.certificate.dual_point
    assert (u >= 0).all()
    assert (u.sum(axis=1) <= prices * (1 + 1e-12)).all()
    assert u.sum() == pytest.approx(1.0, rel=1e-12)
    assert not u[np.arange(N), given.labels].any()
    # Of any other weights the objective is not below `dual`.
    signed = np.eye(3)[given.labels] * u.sum(axis=1, keepdims=True) - u
    attained = np.einsum("ic,mic->cm", signed, given.outputs)
    attained = attained.sum(axis=0, keepdims=True) if shared else attained
    assert found.certificate.dual == pytest.approx(-attained.max(axis=1).sum(), abs=1e-12)


@pytest.mark.parametrize("nu", [0.1, 0.25, 0.5, 0.77])
def test_nu_is_the_share_below_the_margin(nu):
    given = program(3, nu, True, weighted=False)
    found = given.solve(1e-8)
    own = margins(given, found.weights)
    assert np.mean(own < found.rho - 1e-9) <= nu <= np.mean(own <= found.rho + 1e-9)
    # The objective is minus the mean margin of the worst share.
    worst = np.sort(own)
    counted = np.clip(nu * N - np.arange(N), 0.0, 1.0)
    assert found.certificate.primal == pytest.approx(-(counted @ worst) / (nu * N), abs=1e-9)


def test_small_nu_is_the_hard_margin_and_one_the_mean():
    hard, smaller = (program(3, nu, True).solve(1e-8) for nu in (1e-3, 1e-6))
    assert_allclose(hard.weights, smaller.weights, atol=1e-9)
    given = program(3, 1e-6, True)
    assert smaller.rho == pytest.approx(margins(given, smaller.weights).min())
    # A mean of margins to one rival each is linear in the weights: one kernel has them all.
    mean = program(2, 1.0, True).solve(1e-8)
    assert sorted(mean.weights) == [0.0, 0.0, 0.0, 1.0]


def test_more_freedom_is_a_larger_margin_and_for_two_classes_the_same():
    values = {
        (n_classes, shared): program(n_classes, 0.4, shared).solve(1e-8).certificate.primal
        for n_classes, shared in product([2, 3], [True, False])
    }
    assert values[3, False] < values[3, True] - 1e-3
    assert values[2, False] == pytest.approx(values[2, True], abs=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_a_weight_of_two_is_two_samples(shared):
    given = program(3, 0.4, shared)
    counts = np.arange(N) % 3 + 1
    rows = np.repeat(np.arange(N), counts)
    weighted = MarginProgram(given.outputs, given.labels, counts.astype(float), 0.4, shared)
    repeated = MarginProgram(
        given.outputs[:, rows], given.labels[rows], np.ones(len(rows)), 0.4, shared
    )
    one, other = weighted.solve(1e-8), repeated.solve(1e-8)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, abs=1e-12)
    assert one.rho == pytest.approx(other.rho, abs=1e-9)
    if shared:
        assert_allclose(one.weights, other.weights, atol=1e-9)


def test_outputs_have_a_unit():
    given = program(3, 0.4, True)
    scaled = MarginProgram(1e6 * given.outputs, given.labels, given.sample_weight, 0.4, True)
    found, expected = scaled.solve(1e-8), given.solve(1e-8)
    assert_allclose(found.weights, expected.weights, atol=1e-9)
    assert found.rho == pytest.approx(1e6 * expected.rho)


def test_outputs_that_are_all_zero():
    given = MarginProgram(np.zeros((M, N, 3)), np.arange(N) % 3, np.ones(N), 0.5, True)
    found = given.solve(1e-8)
    assert found.rho == found.certificate.gap == 0.0
    assert found.certificate.converged
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shared", [True, False])
def test_a_solver_that_fails_proves_nothing(shared, monkeypatch):
    given = program(3, 0.4, shared)
    best = given.solve(1e-8).certificate.primal

    def fails(self):
        n_columns = 1 + N + (1 if shared else 3) * M
        return LinearSolution(np.zeros(n_columns), np.zeros(self.n_rows), "Time limit reached")

    monkeypatch.setattr(LinearProgram, "solve", fails)
    found = given.solve(1e-8)
    assert_allclose(found.weights, 1 / M)
    assert found.certificate.status == "stopped"
    assert found.certificate.dual <= best < found.certificate.primal


# -- thresholds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "expected"),
    [(0.5, 1.0), (1.0, 1.5), (1.5, 2.0), (2.0, 2.0), (4.0, 2.5), (5.0, 5.0), (6.0, 7.0)],
)
def test_thresholds_are_quantiles(total, expected):
    points, weights = np.array([3.0, 1.0, 2.0, 7.0]), np.array([1.0, 1.0, 3.0, 1.0])
    assert best_threshold(points, weights, total) == expected

    def value(b):
        return weights @ np.maximum(0.0, b - points) - total * b

    assert value(expected) <= min(value(b) for b in np.linspace(-1, 9, 101)) + 1e-12
