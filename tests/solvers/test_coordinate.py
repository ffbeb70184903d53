"""Block coordinate ascent: Newton's optimum, true gaps after every sweep, any block and cache."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import linalg

from manykernels import MKFDA, KernelStack, rbf_grid
from manykernels.domains import TraceSimplex, lp_domain
from manykernels.kernels.on_demand import StreamedKernels
from manykernels.kernels.transforms import preparation
from manykernels.losses import inexact
from manykernels.losses.composed import SurrogateLoss
from manykernels.losses.inexact import BlockAscent, InexactEvaluation
from manykernels.losses.square import JointSquareLoss, SquareLoss
from manykernels.solvers import Coordinate, Newton
from manykernels.solvers.base import certify
from manykernels.solvers.columns import Guide
from tests.differences import assert_derivatives
from tests.problems import dense_kernels, random_gram_matrices, slow, square_loss

PS = [1.0, 1.1, 2.0, np.inf]


def table(n_rows, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def rbf_loss(n_rows=240, n_classes=2, sample_weight=None, reg=0.5):
    X, _ = table(n_rows)
    stack = rbf_grid([0.5, 1, 2, 4, 8], gamma="scale").fit(X)(X)
    matrices = np.moveaxis(np.asarray(stack), -1, 0)
    return square_loss(matrices, n_classes, reg, sample_weight=sample_weight)


def small(**options):
    """A solver with several blocks, whose guide has a part of the rows."""
    return Coordinate(**{"block_size": 60, "start_rows": 100, **options})


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("p", PS)
def test_optimum_is_newtons(p, n_classes, weighted):
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 240) if weighted else None
    loss = rbf_loss(n_classes=n_classes, sample_weight=weight)
    domain = lp_domain(p)
    best = Newton().solve(loss, domain, tol=1e-10).certificate.primal
    solution = small().solve(loss, domain, tol=1e-5)
    assert solution.certificate.converged
    assert solution.certificate.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= solution.certificate.primal <= best * (1 + 1.1e-5)
    assert domain.gauge(solution.weights) <= 1 + 1e-9
    exact = loss.evaluate(solution.weights)
    assert exact.value <= solution.certificate.primal * (1 + 1e-12)
    assert exact.value == pytest.approx(solution.certificate.primal, rel=1e-5)


@pytest.mark.parametrize(
    "start_rows", [0, 60, *slow(1000)], ids=["no guide", "poor guide", "all rows"]
)
@pytest.mark.parametrize("p", [PS[0], *slow(*PS[1:])])
def test_the_gap_is_true_after_every_sweep(p, start_rows):
    loss = rbf_loss(reg=0.05)
    domain = lp_domain(p)
    best = Newton().solve(loss, domain, tol=1e-10).certificate.primal
    seen = []
    solver = Coordinate(block_size=30, start_rows=start_rows)
    solution = solver.solve(
        loss, domain, tol=1e-6, max_iter=12, observer=lambda progress: seen.append(progress)
    )
    assert len(seen) == solution.n_iter == solution.n_inner_solves <= 13
    for progress in seen:
        assert progress.certificate.dual <= best * (1 + 1e-9)
        assert progress.certificate.primal >= best * (1 - 1e-9)
    assert solution.certificate.rel_gap < seen[0].certificate.rel_gap
    assert solution.certificate.rel_gap < 0.05


def test_max_iter_ends_with_an_honest_gap():
    solution = small(block_size=10).solve(rbf_loss(reg=1e-3), lp_domain(1.5), max_iter=1)
    assert solution.n_iter == 2
    assert not solution.certificate.converged
    again = certify(solution.evaluation, lp_domain(1.5), 1e-6)
    assert again.gap >= solution.certificate.gap


@pytest.mark.parametrize("block_size", [*slow(1), 7, 240, 5000])
def test_the_block_size_changes_only_the_way(block_size):
    loss = square_loss(random_gram_matrices(3, 40), 2, reg=0.3)
    domain = lp_domain(2)
    solution = Coordinate(block_size=block_size).solve(loss, domain, tol=1e-7)
    reference = Newton().solve(loss, domain, tol=1e-10)
    assert solution.certificate.converged
    np.testing.assert_allclose(solution.weights, reference.weights, atol=1e-3)


def test_the_seed_decides_the_way():
    loss = rbf_loss()
    gaps = [
        small(random_state=seed).solve(loss, lp_domain(1.5), max_iter=2, tol=1e-12).certificate.gap
        for seed in (0, 0, 1)
    ]
    assert gaps[0] == gaps[1] != gaps[2]


def test_one_kernel_and_no_variance():
    one = square_loss(random_gram_matrices(1, 50), 2)
    assert small().solve(one, lp_domain(1)).weights == pytest.approx([1.0])
    nothing = square_loss(np.ones((3, 50, 50)), 2)
    assert small(start_rows=0).solve(nothing, lp_domain(1)).certificate.converged


def test_a_kernel_without_weight_at_the_start_can_get_one():
    loss = rbf_loss()
    domain = lp_domain(1.0)
    start = domain.maximizer(np.array([0.0, 0.0, 0.0, 0.0, 1.0]))
    solution = small().solve(loss, domain, tol=1e-4, start=start)
    assert solution.certificate.converged
    assert solution.weights[:4].any()


def test_trace_simplex():
    loss = square_loss(random_gram_matrices(4, 60), 3, normalize=None)
    domain = TraceSimplex(loss.kernels.row_diag.sum(axis=1))
    best = Newton().solve(loss, domain, tol=1e-9).certificate.primal
    found = Coordinate(block_size=20).solve(loss, domain, tol=1e-4).certificate
    assert best * (1 - 1e-9) <= found.primal <= best * (1 + 1.1e-4)


def test_refusals():
    loss = square_loss(random_gram_matrices(2, 20), 2)
    joint = JointSquareLoss(loss.kernels, loss.targets)
    with pytest.raises(ValueError, match=r"'coordinate' needs a number for reg.*'newton'"):
        Coordinate().solve(joint, lp_domain(2))
    X, y = table(30)
    with pytest.raises(ValueError, match='needs a number for reg or C, not "joint"'):
        MKFDA(solver="coordinate", reg="joint").fit(X, y)


def test_indefinite_kernels_are_named_as_the_cause():
    stack = KernelStack.from_arrays(-np.eye(20)[None], psd="ignore")
    loss = SquareLoss(stack, np.repeat([[-1.0], [1.0]], 10, axis=0), 0.1)
    with pytest.raises(ValueError, match=r"not positive definite at reg=0\.1"):
        Coordinate().solve(loss, lp_domain(2))


# -- the parts -----------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_sweeps_converge_to_the_solution(weighted):
    weight = np.random.default_rng(0).uniform(0.5, 2, 90) if weighted else None
    loss = rbf_loss(90, 3, weight, reg=1.0)
    beta = np.array([0.5, 0.2, 0.9, 0.0, 0.4])
    ascent = BlockAscent.of(loss, 20)
    values = []
    for _ in range(30):
        ascent.sweep(beta)
        values.append(ascent.dual_value(beta))
    kernels, targets = dense_kernels(loss)
    A = np.eye(90) + np.tensordot(beta, kernels, 1) / loss.reg
    solution = linalg.solve(A, targets @ loss.rotation)
    np.testing.assert_allclose(ascent.solution, solution, atol=1e-8)
    np.testing.assert_allclose(ascent.products[1], kernels[1] @ ascent.solution, atol=1e-10)
    assert (np.diff(values) >= -1e-12 * abs(values[-1])).all()
    point = InexactEvaluation.of(loss, ascent, beta)
    exact = loss.evaluate(beta)
    assert point.value == pytest.approx(exact.value)
    np.testing.assert_allclose(point.gains, exact.gains)
    np.testing.assert_allclose(point.coefficients, exact.coefficients, atol=1e-7)
    np.testing.assert_allclose(point.hessian(), exact.hessian(), atol=1e-6 * exact.value)
    np.testing.assert_allclose(point.leave_one_out(), exact.leave_one_out(), atol=1e-7)


def test_a_block_is_solved_exactly():
    loss = square_loss(random_gram_matrices(3, 50), 2)
    beta = np.full(3, 0.4)
    ascent = BlockAscent.of(loss, 32)
    strips = ascent.order()[0]
    ascent.visit(strips, beta)
    block = np.concatenate(strips)
    assert len(block) <= 32
    np.testing.assert_allclose(ascent.residual(beta)[block], 0.0, atol=1e-12)


def test_slack_is_the_distance_of_primal_and_dual():
    loss = square_loss(random_gram_matrices(3, 50), 2)
    beta = np.full(3, 0.4)
    ascent = BlockAscent.of(loss, 16)
    ascent.sweep(beta)
    point = InexactEvaluation.of(loss, ascent, beta)
    kernels, targets = dense_kernels(loss)
    K = np.tensordot(beta, kernels, 1) / loss.reg
    H = targets @ loss.rotation

    def primal(U):
        return np.sum((H - K @ U) ** 2) + np.sum(U * (K @ U))

    def dual(U):
        return 2 * np.sum(H * U) - np.sum(U * (U + K @ U))

    assert point.value == pytest.approx(primal(point._solution))
    assert point.value <= primal(ascent.solution)
    assert point.value - point.slack == pytest.approx(dual(ascent.solution))
    residual = ascent.residual(beta)
    assert primal(ascent.solution) - dual(ascent.solution) == pytest.approx(np.sum(residual**2))


def test_the_mean_replaces_the_inverse_diagonal_of_many_rows(monkeypatch):
    loss = rbf_loss(400)
    beta = lp_domain(2).start(5)
    ascent = BlockAscent.of(loss, 80)
    for _ in range(5):
        ascent.sweep(beta)
    point = InexactEvaluation.of(loss, ascent, beta)
    exact = point.inverse_diagonal()
    monkeypatch.setattr(inexact, "EXACT_ROWS", 100)
    estimate = point.inverse_diagonal()
    assert np.ptp(estimate) == 0.0
    assert estimate[0] == pytest.approx(exact.mean(), rel=0.05)


def test_a_tilted_loss_has_the_gains_asked_for():
    loss = rbf_loss()
    weights = lp_domain(2).start(5)
    plain = loss.evaluate(weights)
    gains = 2.0 * plain.gains + 0.1 * plain.value
    surrogate = SurrogateLoss(loss, 3.0, gains - 3.0 * plain.gains)
    point = surrogate.evaluate(weights)
    np.testing.assert_allclose(point.gains, gains)
    assert_derivatives(-gains, lambda w: surrogate.evaluate(w).value, weights)
    np.testing.assert_allclose(point.model_hessian(0.0), 3.0 * loss.evaluate(weights).hessian())
    assert point.slack == 3.0 * plain.slack
    np.testing.assert_array_equal(point.dual, plain.dual)
    assert surrogate.coarse() is None


def test_a_guide_leads_to_the_optimum_of_all_rows():
    loss = rbf_loss(reg=0.2)
    domain = lp_domain(1.2)
    guide = Guide.on_rows(loss, domain, 80)
    weights = guide.start()
    for _ in range(8):
        exact = loss.evaluate(weights)
        weights = guide.correct(weights, exact.gains, exact.value)
    assert certify(loss.evaluate(weights), domain, 1e-5).converged
    assert Guide.on_rows(loss, domain, 10) is None


# -- in the estimator ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_estimator_predicts_as_with_newton(n_classes, p):
    X, y = table(150, n_classes)
    fresh, _ = table(60, seed=1)
    reference = MKFDA(p=p).fit(X, y)
    model = MKFDA(p=p, solver=Coordinate(block_size=40), tol=1e-6, max_iter=100).fit(X, y)
    np.testing.assert_allclose(model.weights_, reference.weights_, atol=5e-3)
    np.testing.assert_allclose(
        model.predict_proba(fresh), reference.predict_proba(fresh), atol=5e-3
    )
    assert model.solver_ == "coordinate"
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=3e-6)


@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical", "trace", None)])
def test_estimator_with_every_normalisation_and_weights(normalize):
    X, y = table(120)
    weight = np.random.default_rng(2).integers(0, 3, 120).astype(float)
    options = {"normalize": normalize, "class_weight": "balanced", "reg": 0.01}
    reference = MKFDA(**options).fit(X, y, sample_weight=weight)
    model = MKFDA(solver=Coordinate(block_size=40), **options).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.weights_, reference.weights_, atol=5e-3)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), rtol=0.03, atol=0.05
    )


def test_estimator_with_names_of_classes_and_columns():
    X, y = table(100)
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.array(["no", "yes"])[y]
    kernels = [("near", rbf_grid([1], columns=["a", "b"]).kernels[0][1]), ("line", "linear")]
    model = MKFDA(kernels, solver="coordinate").fit(frame, labels)
    reference = MKFDA(kernels).fit(frame, labels)
    np.testing.assert_array_equal(model.predict(frame), reference.predict(frame))
    assert set(model.predict(frame)) == {"no", "yes"}


def test_estimator_with_precomputed_kernels():
    X, y = table(100)
    stack = rbf_grid([0.5, 1, 2]).fit(X)(X)
    model = MKFDA("precomputed", solver=Coordinate(block_size=30)).fit(stack, y)
    reference = MKFDA("precomputed").fit(stack, y)
    np.testing.assert_allclose(model.weights_, reference.weights_, atol=5e-3)
    np.testing.assert_array_equal(model.predict(stack), reference.predict(stack))


@pytest.mark.slow
def test_the_cache_changes_nothing_but_time():
    X, y = table(120)
    models = [
        MKFDA(solver=Coordinate(block_size=40, cache_bytes=size), tol=1e-5).fit(X, y)
        for size in (2**31, 10**5, 0)
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.weights_, models[0].weights_, atol=1e-2)
        np.testing.assert_allclose(
            model.decision_function(X), models[0].decision_function(X), atol=0.05
        )


@pytest.mark.slow
def test_many_rows_do_without_any_square_matrix(monkeypatch):
    monkeypatch.setattr(inexact, "EXACT_ROWS", 100)
    monkeypatch.setattr(StreamedKernels, "combine", None)
    X, y = table(300)
    model = MKFDA(
        solver=Coordinate(block_size=60, start_rows=100, cache_bytes=10**6), tol=1e-3
    ).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) > 0.85


def test_streamed_and_stored_kernels_give_the_same_way():
    X, y = table(150)
    union = rbf_grid([0.5, 1, 2], gamma="scale").fit(X)
    targets = np.where(y[:, None] == 1, 1.0 / np.sum(y == 1), -1.0 / np.sum(y == 0))
    gaps = []
    for kernels in (union(X), StreamedKernels(union, X)):
        prepared = preparation("trace").fit_transform(kernels)
        solution = small().solve(SquareLoss(prepared, targets, 0.01), lp_domain(1.5), tol=1e-5)
        gaps.append([step.certificate.rel_gap for step in solution.history])
    np.testing.assert_allclose(gaps[0][:3], gaps[1][:3], rtol=1e-4)
