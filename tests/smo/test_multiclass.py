"""The multiclass SVM against a conic solver, the binary SVM and its own certificate."""

from __future__ import annotations

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from manykernels.smo.loops import cheapest_cycle
from manykernels.smo.multiclass import _circulation, solve_multiclass
from tests.problems import slow


def data(m, k, seed=0, gamma=0.5, spread=1.0):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    X = rng.normal(size=(m, 3)) + spread * rng.normal(size=(k, 3))[labels]
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(2)), labels


def conic_primal(K, labels, C, k):
    """The primal by its definition, in features that are a square root of K."""
    m = len(K)
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = cp.Variable((m, k)), cp.Variable(k)
    f = features @ w + np.ones((m, 1)) @ cp.reshape(b, (1, k), order="C")
    own = np.eye(k)[labels]
    hinges = cp.pos(2 - cp.sum(cp.multiply(own, f), axis=1, keepdims=True) @ np.ones((1, k)) + f)
    weights = np.broadcast_to(C, m)[:, None] * (1 - own)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + cp.sum(cp.multiply(weights, hinges))))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value, f.value


def conic_dual(K, labels, C, k):
    """The dual in α."""
    m = len(K)
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    own = np.eye(k)[labels]
    alpha = cp.Variable((m, k), nonneg=True)
    d = cp.multiply(own, cp.sum(alpha, axis=1, keepdims=True) @ np.ones((1, k))) - alpha
    upper = np.broadcast_to(C, m)[:, None] * (1 - own)
    objective = 2 * cp.sum(alpha) - cp.sum_squares(features.T @ d) / 2
    problem = cp.Problem(cp.Maximize(objective), [alpha <= upper, cp.sum(d, axis=0) == 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def check(K, labels, C, k, answer):
    """Feasible, and its bounds are those of the definitions."""
    alpha, d = answer.alpha, answer.d
    m = len(labels)
    C = np.broadcast_to(C, m)
    scale = max(alpha.sum(), 1e-300)
    assert np.all(alpha >= 0)
    assert np.all(alpha <= C[:, None])
    assert np.all(alpha[np.arange(m), labels] == 0)
    expected = np.eye(k)[labels] * alpha.sum(axis=1, keepdims=True) - alpha
    np.testing.assert_allclose(d, expected, rtol=1e-14, atol=0)
    assert np.abs(d.sum(axis=0)).max() <= 1e-12 * scale
    energy = np.vdot(d, K @ d)
    assert answer.dual == pytest.approx(2 * alpha.sum() - energy / 2, rel=1e-9, abs=1e-12)
    f = K @ d + answer.bias
    hinges = np.maximum(0, 2 - f[np.arange(m), labels][:, None] + f)
    hinges[np.arange(m), labels] = 0
    # `primal` is the best multiple of the predictor, hence not above the predictor itself.
    assert answer.primal <= (energy / 2 + hinges.sum(axis=1) @ C) * (1 + 1e-9)
    assert answer.gap >= 0
    assert answer.gap == pytest.approx(max(answer.primal - answer.dual, 0), abs=1e-12 * scale)
    return f


@pytest.mark.parametrize("C", [0.05, *slow(1.0, 50.0)])
def test_equals_a_conic_solver(C):
    K, labels = data(120, 3)
    answer = solve_multiclass(K, labels, C, n_classes=3, tol=1e-9)
    f = check(K, labels, C, 3, answer)
    value, reference = conic_primal(K, labels, C, 3)
    assert answer.converged
    assert answer.dual == pytest.approx(value, rel=1e-7)
    # Biases need not be unique; differences of outputs are, as long as some α are free.
    centred = reference - reference.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(f - f.mean(axis=1, keepdims=True), centred, atol=2e-4)


def test_dual_constants():
    K, labels = data(60, 4, seed=1)
    C = np.random.default_rng(0).uniform(0.1, 3.0, 60)
    answer = solve_multiclass(K, labels, C, n_classes=4, tol=1e-9)
    check(K, labels, C, 4, answer)
    assert answer.dual == pytest.approx(conic_dual(K, labels, C, 4), rel=1e-7)
    assert answer.primal == pytest.approx(conic_primal(K, labels, C, 4)[0], rel=1e-7)


def test_optimality_conditions():
    K, labels = data(100, 5, seed=2)
    C = 2.0
    answer = solve_multiclass(K, labels, C, n_classes=5, tol=1e-10)
    f = check(K, labels, C, 5, answer)
    margins = f[np.arange(100), labels][:, None] - f
    other = np.eye(5)[labels] == 0
    margins, alpha = margins[other], answer.alpha[other]
    assert np.all(margins[alpha == 0] >= 2 - 1e-6)
    assert np.all(margins[alpha == C] <= 2 + 1e-6)
    free = (alpha > 0) & (alpha < C)
    assert free.any()
    np.testing.assert_allclose(margins[free], 2.0, atol=1e-6)


@pytest.mark.parametrize("tol", [0.3, 1e-2])
def test_the_gap_bounds_the_optimum(tol):
    K, labels = data(60, 4, seed=3)
    optimum = solve_multiclass(K, labels, 1.0, n_classes=4, tol=1e-10).dual
    answer = solve_multiclass(K, labels, 1.0, n_classes=4, tol=tol)
    check(K, labels, 1.0, 4, answer)
    assert answer.dual <= optimum * (1 + 1e-12)
    assert answer.primal >= optimum * (1 - 1e-12)
    assert answer.gap <= tol * answer.primal


def test_warm_start():
    K, labels = data(200, 5, seed=4)
    cold = solve_multiclass(K, labels, 10.0, n_classes=5)
    again = solve_multiclass(K, labels, 10.0, n_classes=5, start=cold.alpha)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.alpha, cold.alpha)
    gate = 1 + 0.01 * np.sin(np.arange(200.0))
    changed = K * np.outer(gate, gate)
    fresh = solve_multiclass(changed, labels, 10.0, n_classes=5)
    warm = solve_multiclass(changed, labels, 10.0, n_classes=5, start=cold.alpha)
    check(changed, labels, 10.0, 5, warm)
    assert warm.converged
    assert warm.n_iter < 0.7 * fresh.n_iter
    assert warm.dual == pytest.approx(fresh.dual, rel=2e-4)


def test_any_start_is_accepted():
    K, labels = data(60, 4, seed=5)
    optimum = solve_multiclass(K, labels, 1.0, n_classes=4, tol=1e-8).dual
    rng = np.random.default_rng(0)
    for start in (rng.normal(size=(60, 4)), np.full((60, 4), 7.0), 1e3 * rng.random((60, 4))):
        answer = solve_multiclass(K, labels, 1.0, n_classes=4, start=start, tol=1e-8)
        check(K, labels, 1.0, 4, answer)
        assert answer.dual == pytest.approx(optimum, rel=1e-7)
        stopped = solve_multiclass(K, labels, 1.0, n_classes=4, start=start, max_iter=3)
        check(K, labels, 1.0, 4, stopped)
        assert not stopped.converged


def test_two_classes_are_the_binary_machine():
    # f¹ = g = −f² gives P = 2 (½‖w‖² + C Σ hinge(g)): the same C.
    K, labels = data(80, 2, seed=6)
    answer = solve_multiclass(K, labels, 3.0, n_classes=2, tol=1e-9)
    f = check(K, labels, 3.0, 2, answer)
    machine = SVC(C=3.0, kernel="precomputed", tol=1e-8).fit(K, labels)
    np.testing.assert_allclose((f[:, 1] - f[:, 0]) / 2, machine.decision_function(K), atol=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1e-1, 1e2, 1e5])
def test_all_costs(C):
    K, labels = data(60, 3, seed=7, gamma=2.0)
    answer = solve_multiclass(K, labels, C, n_classes=3, tol=1e-6)
    check(K, labels, C, 3, answer)
    assert answer.converged


def test_scale_of_the_kernel():
    K, labels = data(60, 3, seed=8)
    plain = solve_multiclass(K, labels, 1e3, n_classes=3, tol=1e-8)
    scaled = solve_multiclass(1e6 * K, labels, 1e-3, n_classes=3, tol=1e-8)
    assert scaled.dual == pytest.approx(1e-6 * plain.dual, rel=1e-7)
    warm = solve_multiclass(1e6 * K, labels, 1e3, n_classes=3, start=plain.alpha, tol=1e-6)
    check(1e6 * K, labels, 1e3, 3, warm)
    assert warm.converged


def test_zero_kernel():
    labels = np.array([0, 0, 0, 1, 1, 2])
    K = np.zeros((6, 6))
    answer = solve_multiclass(K, labels, 1.0, n_classes=3, tol=1e-10)
    check(K, labels, 1.0, 3, answer)
    assert answer.converged
    assert answer.dual == pytest.approx(conic_primal(K, labels, 1.0, 3)[0], rel=1e-7)


def test_empty_and_single_classes():
    K, labels = data(30, 3, seed=9)
    labels = np.where(labels == 2, 1, labels)
    labels[0] = 3
    answer = solve_multiclass(K, labels, 5.0, n_classes=5, tol=1e-8)  # 2 and 4 have no sample
    check(K, labels, 5.0, 5, answer)
    assert answer.converged
    assert np.all(answer.alpha[:, [2, 4]] == 0)
    alone = solve_multiclass(K, np.ones(30, int), 5.0, n_classes=2)
    assert alone.converged
    assert alone.primal == alone.dual == 0.0


def test_equal_samples():
    K, labels = data(40, 3, seed=10)
    K = np.tile(K, (2, 2))
    twice = solve_multiclass(K, np.tile(labels, 2), 1.0, n_classes=3, tol=1e-9)
    check(K, np.tile(labels, 2), 1.0, 3, twice)
    once = solve_multiclass(K[:40, :40], labels, 2.0, n_classes=3, tol=1e-9)
    assert twice.converged
    assert twice.dual == pytest.approx(once.dual, rel=1e-8)
    contradictory = np.concatenate([labels, (labels + 1) % 3])
    answer = solve_multiclass(K, contradictory, 1.0, n_classes=3, tol=1e-8)
    assert answer.converged


def test_input_is_checked():
    K = np.eye(3)
    with pytest.raises(ValueError, match="shape"):
        solve_multiclass(K, [0, 1], 1.0, n_classes=2)
    with pytest.raises(ValueError, match="labels"):
        solve_multiclass(K, [0, 1, 2], 1.0, n_classes=2)
    with pytest.raises(ValueError, match="C must"):
        solve_multiclass(K, [0, 1, 1], -1.0, n_classes=2)


@pytest.mark.parametrize("seed", [0, 39, 45, 913, 936, 1518, 2738])
def test_hard_random_problems(seed):
    """Low rank and large C; few free variables; walks that are not simple cycles."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    m = k + int(rng.integers(0, 40))
    rank, labels = rng.integers(0, 5), rng.integers(0, k, m)
    X = rng.normal(size=(m, rank))
    K = X @ X.T if rng.random() < 0.5 else np.exp(-((X[:, None] - X) ** 2).sum(2))
    C = 10.0 ** rng.uniform(-3, 5) * rng.uniform(0.5, 1, m)
    start = rng.uniform(-1, 1, (m, k)) * C[:, None] if rng.random() < 0.5 else None
    answer = solve_multiclass(K, labels, C, n_classes=k, start=start, tol=1e-6, max_iter=10**5)
    check(K, labels, C, k, answer)
    assert answer.converged


@pytest.mark.parametrize("seed", range(20))
def test_cheapest_cycle(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    costs = np.where(rng.random((k, k)) < 0.8, rng.normal(size=(k, k)), np.inf)
    np.fill_diagonal(costs, np.inf)
    mean, cycle, potential = cheapest_cycle(costs)
    all_cycles = (c for n in range(2, k + 1) for c in permutations(range(k), n))
    means = [
        np.mean([costs[a, b] for a, b in zip(c, c[1:] + c[:1], strict=True)]) for c in all_cycles
    ]
    assert mean == pytest.approx(min(means))
    if len(cycle):
        assert len(set(cycle.tolist())) == len(cycle)
        assert costs[cycle, np.roll(cycle, -1)].mean() == pytest.approx(mean)
    reduced = costs + potential[:, None] - potential
    assert reduced.min() >= min(mean, 0.0) - 1e-12


@settings(max_examples=100, deadline=None)
@given(
    st.integers(2, 6),
    st.integers(0, 20),
    st.integers(0, 10**6),
    st.floats(-3, 4),
    st.integers(0, 3),
)
def test_random_problems_are_certified(k, extra, seed, log_cost, rank):
    rng = np.random.default_rng(seed)
    m = k + extra
    labels = rng.integers(0, k, m)
    X = rng.normal(size=(m, rank))  # rank 0 is the zero kernel
    K = X @ X.T
    C = 10.0**log_cost * rng.uniform(0.5, 1.0, m)
    start = rng.uniform(-1, 1, (m, k)) * C[:, None]
    answer = solve_multiclass(K, labels, C, n_classes=k, start=start, tol=1e-6, max_iter=10**5)
    check(K, labels, C, k, answer)
    assert answer.converged


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6), st.floats(0, 1))
def test_circulation(k, seed, density):
    rng = np.random.default_rng(seed)
    flow = rng.random((k, k)) * (rng.random((k, k)) < density) * (1 - np.eye(k))
    kept = _circulation(flow)
    assert np.all((kept >= 0) & (kept <= flow))
    np.testing.assert_allclose(kept.sum(axis=0), kept.sum(axis=1), atol=1e-12 * k)
    np.testing.assert_array_equal(_circulation(flow + flow.T), flow + flow.T)
    around = np.roll(np.eye(k), 1, axis=1)  # every class to the next, the last to the first
    np.testing.assert_array_equal(_circulation(around), around)
