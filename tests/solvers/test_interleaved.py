"""Interleaved learning: working sets, products that follow, kernels by columns, its pace."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import KernelStack, rbf_grid
from manykernels.domains import lp_domain
from manykernels.kernels.on_demand import StreamedKernels
from manykernels.kernels.transforms import preparation
from manykernels.losses.base import Certificate
from manykernels.losses.square import SquareLoss
from manykernels.losses.svm import BoxAscent, HingeLoss, InexactBoxPoint, OneClassLoss
from manykernels.solvers import Interleaved, Newton
from manykernels.solvers.columns import _Relaxation
from manykernels.solvers.papers.descent import analytic_update, relaxed_update
from tests.machines import LOSSES, check_feasible, gram_matrices, machine
from tests.problems import slow

GIVEN = sorted(set(LOSSES) - {"joint squared hinge"})


def table(m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(m)
    return X, np.where(score > np.median(score), 1.0, -1.0)


@pytest.mark.parametrize("working_set", [2, 7, *slow(25, 60)])
@pytest.mark.parametrize("kind", GIVEN)
def test_visits_raise_the_dual_and_the_productsrelaxed_update(kind, working_set):
    loss = machine(kind, gram_matrices(60))
    ascent = BoxAscent(loss, working_set)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    values = []
    for _ in range(15):
        point = ascent.point(weights)
        values.append(point.value - point.slack)
        check_feasible(loss, point)
        ascent.visit_all(weights)
    assert (np.diff(values) >= -1e-12 * np.abs(values).max()).all()
    assert values[-1] > values[0]
    products = loss.products(ascent.dual)
    np.testing.assert_allclose(ascent.products, products, atol=1e-11 * np.abs(products).max())
    exact = loss.evaluate(weights)
    assert values[-1] <= exact.value * (1 + np.sign(exact.value) * 1e-9)
    assert ascent.point(weights).value >= (exact.value - exact.slack) - 1e-9 * abs(exact.value)


def test_at_fixed_weights_working_sets_reach_the_machine():
    loss = machine("hinge", gram_matrices(80))
    weights = np.full(4, 0.25)
    exact = loss.evaluate(weights)
    for working_set in (10, 30, 80):
        ascent = BoxAscent(loss, working_set)
        for _ in range(400):
            if not ascent.visit_all(weights):
                break
        point = ascent.point(weights)
        assert point.value == pytest.approx(exact.value, rel=1e-8)
        np.testing.assert_allclose(point.gains, exact.gains, rtol=1e-4)
        np.testing.assert_allclose(point.biases, exact.biases, atol=1e-4)
        np.testing.assert_allclose(point.hessian(), loss.evaluate(weights).hessian())
        assert point.model_hessian(1e-3).shape == (4, 4)


def test_a_working_set_holds_the_most_violating_variables():
    loss = machine("hinge", gram_matrices(40))
    ascent = BoxAscent(loss, 10)
    rng = np.random.default_rng(0)
    up, down = rng.standard_normal(40), rng.standard_normal(40)
    chosen = ascent._working_set(0, up, down)
    assert len(np.unique(chosen)) == 10
    assert set(np.argsort(-up)[:5]) <= set(chosen)
    assert len(set(np.argsort(down)[:10]) & set(chosen)) >= 5


def test_a_working_set_keeps_what_was_free_in_the_last_one():
    ascent = BoxAscent(machine("hinge", gram_matrices(40)), 10)
    rng = np.random.default_rng(0)
    up, down = rng.standard_normal(40), rng.standard_normal(40)
    ascent._free[0] = np.argsort(up)[:8]  # the least likely to be chosen
    chosen = ascent._working_set(0, up, down)
    assert len(np.unique(chosen)) <= 10
    assert set(ascent._free[0][:5]) <= set(chosen)
    assert len(set(np.argsort(-up)[:2]) & set(chosen)) == 2


def test_few_variables_at_a_time_find_the_same_weights():
    X, y = table(200)
    kernels = rbf_grid([0.5, 1, 2], gamma="scale").fit(X)(X)
    for p in (1.0, 1.5):
        best = Newton().solve(HingeLoss(kernels, y, 1.0), lp_domain(p), tol=1e-8)
        for working_set in (40, 2000):
            solver = Interleaved(working_set=working_set)
            solution = solver.solve(HingeLoss(kernels, y, 1.0), lp_domain(p), tol=1e-5)
            found = solution.certificate
            assert found.converged
            assert abs(found.primal - best.certificate.primal) <= found.gap
            np.testing.assert_allclose(solution.weights, best.weights, atol=2e-2)


def test_it_interleaves():
    """Far fewer pair steps than machines solved to the end at as many weights would take."""
    loss = machine("hinge", gram_matrices(60))
    domain = lp_domain(1.5)
    solution = Interleaved().solve(loss, domain, tol=1e-5)
    assert solution.certificate.converged
    whole = Newton().solve(machine("hinge", gram_matrices(60)), domain, max_iter=0)
    steps = solution.evaluation.solutions[0].n_steps
    assert steps / solution.n_iter < 60
    assert steps / solution.n_iter < whole.evaluation.solutions[0].n_steps


@pytest.mark.parametrize("normalize", [None, *slow("trace", "spherical")])
def test_streamed_kernels_give_the_answer_of_stored_ones(monkeypatch, normalize):
    X, y = table(240)
    union = rbf_grid([0.5, 1, 2], gamma="scale").fit(X)
    stored = preparation(normalize).fit_transform(union(X))
    streamed = preparation(normalize).fit_transform(StreamedKernels(union, X, cache_bytes=10**6))
    monkeypatch.setattr(StreamedKernels, "combine", None)
    monkeypatch.setattr(StreamedKernels, "kernel", None)
    shapes = []
    combine_block = StreamedKernels.combine_block

    def noting(self, weights, indices):
        shapes.append(len(indices))
        return combine_block(self, weights, indices)

    monkeypatch.setattr(StreamedKernels, "combine_block", noting)
    solver, domain = Interleaved(working_set=60), lp_domain(1.5)
    C = 1.0 if normalize != "trace" else 200.0
    one = solver.solve(HingeLoss(stored, y, C), domain, tol=1e-5)
    other = solver.solve(HingeLoss(streamed, y, C), domain, tol=1e-5)
    assert one.certificate.converged
    assert other.certificate.converged
    assert max(shapes) <= 60
    allowed = one.certificate.gap + other.certificate.gap
    assert abs(one.certificate.primal - other.certificate.primal) <= allowed
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-3)


def test_columns_of_variables_that_never_move_are_not_computed(monkeypatch):
    X, y = table(400)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 2.0 * y
    kernels = StreamedKernels(rbf_grid([1, 2], gamma="scale").fit(X), X)
    seen = set()
    apply_columns = StreamedKernels.apply_columns

    def noting(self, indices, coefficients):
        seen.add(tuple(indices))
        return apply_columns(self, indices, coefficients)

    monkeypatch.setattr(StreamedKernels, "apply_columns", noting)
    solution = Interleaved(working_set=50).solve(HingeLoss(kernels, y, 1.0), lp_domain(2))
    assert solution.certificate.converged
    columns = [index for strip in seen for index in strip]
    assert len(columns) == len(set(columns)), "strips stay together"
    assert len(columns) < 300
    assert max(map(len, seen)) <= 64


def test_the_start_of_a_program_with_a_sum_is_feasible():
    kernels = KernelStack.from_arrays(gram_matrices(50))
    ascent = BoxAscent(OneClassLoss(kernels, 0.37), 10)
    assert ascent.dual.sum() == pytest.approx(0.37 * 50)
    np.testing.assert_allclose(ascent.products, kernels.apply(ascent.dual), atol=1e-12)


def test_without_relaxation_the_update_is_that_of_kloft():
    weights, gains = np.array([0.5, 0.3, 0.0, 0.2]), np.array([1.0, 2.0, 5.0, 0.0])
    for p in (1.0, 1.5):
        domain = lp_domain(p)
        with np.errstate(divide="ignore"):
            expected = np.exp(analytic_update(np.log(weights), gains, domain))
        np.testing.assert_allclose(
            relaxed_update(weights, gains, domain, 1.0), expected, rtol=1e-12
        )
        assert relaxed_update(weights, gains, domain, 1.8)[3] == 0.0
    assert relaxed_update(weights, np.zeros(4), lp_domain(2), 1.8) is weights


def test_relaxation_falls_where_machines_lag_or_the_loss_rises():
    loss = machine("hinge", gram_matrices(30))
    weights = np.full(4, 0.25)
    exact = loss.evaluate(weights)

    def point(value, slack):
        found = InexactBoxPoint(weights, exact.gains, [], loss)
        return type("Point", (), {**vars(found), "value": value, "slack": slack})()

    relaxation = _Relaxation(lp_domain(1.0))
    assert relaxation.at(point(5.0, 0.0)) == 1.8
    assert relaxation.at(point(1e6, 1e6)) == 1.0
    assert relaxation.at(point(4.0, 0.0)) == 1.8
    assert relaxation.at(point(1e6, 0.0)) == pytest.approx(1.4)
    assert relaxation.at(point(3.0, 0.0)) == pytest.approx(1.4)


def test_it_ends_where_nothing_moves(monkeypatch):
    monkeypatch.setattr(Certificate, "exhausted", property(lambda self: False))
    loss = machine("squared hinge", gram_matrices(30))
    solution = Interleaved().solve(loss, lp_domain(np.inf), tol=-1.0)
    assert solution.n_iter < 100
    assert solution.status == "neither machines nor weights move any more"


def test_other_losses_and_learnt_bounds_are_refused():
    kernels = KernelStack.from_arrays(gram_matrices(30))
    square = SquareLoss(kernels, np.ones((30, 1)), 1.0)
    with pytest.raises(ValueError, match="support vector machines only, not for SquareLoss"):
        Interleaved().solve(square, lp_domain(2))
    with pytest.raises(ValueError, match="solver='newton'"):
        Interleaved().solve(machine("joint squared hinge", gram_matrices(30)), lp_domain(2))
