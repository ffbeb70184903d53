"""OBSCURE against cvxpy and scikit-learn, and what its stages and certificate say."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from manykernels import KernelStack
from manykernels.baselines import OBSCURE
from manykernels.baselines.obscure import BlockNormMachine
from tests.estimators.registry import refused
from tests.problems import slow

N = 36
rng = np.random.default_rng(0)
LABELS = np.arange(N) % 3
TABLES = [rng.normal(size=(N, 4)) + shift * np.eye(3, 4)[LABELS] for shift in (1.5, 0.7, 0.0)]
MATRICES = np.array([table @ table.T for table in TABLES])
STACK = KernelStack.from_arrays(MATRICES)
TARGETS = {"three": LABELS, "two": (LABELS == 0).astype(int)}
C = 0.3
every_target = pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS.keys())


def fit(y=LABELS, stack=STACK, sample_weight=None, **params):
    params = {"C": C, "normalize": None, "random_state": 0, **params}
    return OBSCURE("precomputed", **params).fit(stack, y, sample_weight)


def by_cvxpy(y, p, tables=TABLES, counts=1.0):
    """The optimal value of the paper's objective (times N C), and the norms of all w_j."""
    n_classes = len(np.unique(y))
    n_outputs = n_classes if n_classes > 2 else 1
    blocks = [cp.Variable((table.shape[1], n_outputs)) for table in tables]
    f = sum(table @ block for table, block in zip(tables, blocks, strict=True))
    if n_classes == 2:
        hinges = cp.pos(1 - cp.multiply(2 * y - 1, f[:, 0]))
    else:
        own = np.eye(n_classes)[y]
        hinges = cp.max(f + 1 - own, axis=1) - cp.sum(cp.multiply(f, own), axis=1)
    norms = cp.hstack([cp.norm(block, "fro") for block in blocks])
    r = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    size = cp.pnorm(norms, r, approx=False)
    loss = C * cp.sum(cp.multiply(counts, hinges))
    problem = cp.Problem(cp.Minimize(0.5 * cp.square(size) + loss))
    problem.solve(solver=cp.CLARABEL)
    return problem.value, norms.value


@every_target
@pytest.mark.parametrize("p", [1.05, 1.5, *slow(2.0, 8.0, np.inf)])
def test_the_objective_and_the_weights_are_the_best(y, p):
    value, norms = by_cvxpy(y, p)
    model = fit(y, p=p, tol=1e-8)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6)
    assert_allclose(model.certificate_.dual, value, rtol=1e-6)
    expected = norms ** (0.0 if np.isinf(p) else 2 / (p + 1))
    assert_allclose(model.weights_, expected / np.linalg.norm(expected, p), atol=1e-4)


@every_target
@pytest.mark.parametrize("p", [1.1, 2.0])
def test_the_papers_two_stages_come_within_one_percent(y, p):
    value, _ = by_cvxpy(y, p)
    with pytest.warns(ConvergenceWarning, match="Raise n_epochs_batch or tol, or set exact=True"):
        model = fit(y, p=p, exact=False, n_epochs_batch=300)
    assert value <= model.certificate_.primal < 1.01 * value
    assert model.certificate_.dual <= value
    history = model.history_
    assert history["stage"] == ["online"] * 5 + ["batch"] * 300
    assert history["objective"][-1] == model.certificate_.primal
    assert history["objective"][5] > history["objective"][-1]


@every_target
def test_one_kernel_is_scikit_learns_linear_machine_without_bias(y):
    table = TABLES[1]
    theirs = LinearSVC(
        C=C,
        loss="hinge",
        multi_class="crammer_singer" if len(np.unique(y)) > 2 else "ovr",
        fit_intercept=False,
        tol=1e-10,
        max_iter=1_000_000,
        random_state=0,
    ).fit(table, y)
    model = fit(y, KernelStack.from_arrays(MATRICES[1:2]), tol=1e-9)
    assert_allclose(model.weights_, [1.0])
    found = model.decision_function(KernelStack.from_arrays(MATRICES[1:2]))
    assert_allclose(found, theirs.decision_function(table), atol=1e-5)


def test_permuted_kernels_have_permuted_weights():
    order = [2, 0, 1]
    permuted = fit(stack=KernelStack.from_arrays(MATRICES[order]))
    assert_allclose(permuted.weights_, fit().weights_[order], rtol=1e-7)


def test_the_order_of_the_samples_does_not_matter():
    assert_allclose(fit(random_state=1).weights_, fit(random_state=2).weights_, rtol=1e-7)


def test_without_the_exact_stage_the_seed_decides():
    options = {"exact": False, "tol": 10.0}
    first, again = fit(**options), fit(**options)
    other = fit(**options, random_state=1)
    assert np.array_equal(first.weights_, again.weights_)
    assert not np.array_equal(first.weights_, other.weights_)


@every_target
def test_a_weight_of_three_is_three_samples(y):
    counts = 1 + 2 * (np.arange(N) % 4 == 0)
    value, _ = by_cvxpy(y, 1.5, counts=counts)
    assert_allclose(
        fit(y, sample_weight=counts, p=1.5, tol=1e-8).certificate_.primal, value, rtol=1e-6
    )


@every_target
def test_the_certificate_can_be_recomputed_from_its_dual_point(y):
    model = fit(y, p=1.5)
    point = model.certificate_.dual_point
    own = point[np.arange(N), y] if y.max() == 2 else point[:, 0] * (2 * y - 1)
    assert (own >= -1e-12).all()
    assert (own <= C * (1 + 1e-12)).all()
    squares = np.einsum("mk,jml,lk->j", point, MATRICES, point)
    q = 3.0  # of p = 1.5
    assert_allclose(own.sum() - 0.5 * np.linalg.norm(squares, q), model.certificate_.dual)


@every_target
def test_derivatives_along_a_newton_step(y):
    """On the right face Newton's method converges quadratically: few steps close the gap."""
    machine = BlockNormMachine(STACK, y, np.full(N, C), len(np.unique(y)), 1.5)
    model = fit(y, p=1.5)
    best = model.certificate_.dual_point.T
    best = best if y.max() == 2 else np.vstack([-best, best])
    u = machine.slacks(best)
    free = (u > 0.01 * C).sum(axis=0) > 1
    noise = np.random.default_rng(0).uniform(-1e-4, 1e-4, N) * C * free
    classes = u.argsort(axis=0)[-2:]
    u[classes[0], np.arange(N)] += noise
    u[classes[1], np.arange(N)] -= noise
    point = machine.point(machine.coefficients(u))
    gaps = [point.primal - point.dual]
    for _ in range(4):
        point = point._newton_step() or point
        gaps.append(point.primal - point.dual)
    assert gaps[0] > 1e-7
    assert gaps[-1] < 1e-11


def test_the_projection_onto_the_simplex():
    from manykernels.baselines._obscure_loops import _project

    for seed in range(20):
        point, target = np.random.default_rng(seed).normal(size=5), np.empty(5)
        _project(point, 0.7, target)
        x = cp.Variable(5, nonneg=True)
        cp.Problem(cp.Minimize(cp.sum_squares(x - point)), [cp.sum(x) == 0.7]).solve(
            solver=cp.CLARABEL
        )
        assert_allclose(target, x.value, atol=1e-5)
        assert_allclose(target.sum(), 0.7)


def test_the_online_stage_ends_when_no_sample_is_inside_the_margin():
    apart = KernelStack.from_arrays(100.0 * np.eye(N)[None])
    with pytest.warns(ConvergenceWarning):
        model = fit(stack=apart, exact=False, n_epochs_online=50, n_epochs_batch=0)
    assert model.n_iter_ < 50


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
def test_kernels_that_are_zero():
    model = fit(stack=KernelStack.from_arrays(np.zeros((2, N, N))))
    assert_allclose(model.certificate_.primal, C * N)
    assert model.certificate_.converged
    assert not model.decision_function(KernelStack.from_arrays(np.zeros((2, N, N)))).any()


def test_a_norm_of_one_is_refused_with_a_way_out():
    with refused(r"OBSCURE needs p > 1, got p=1: .* r = 2p/\(p \+ 1\) = 1.*p=1\.01, or MKSVC"):
        fit(p=1)
