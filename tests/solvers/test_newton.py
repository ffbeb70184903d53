"""Newton: against a conic solver, at the edges of p, on degenerate kernels; every gap is true."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels.domains import TraceSimplex, lp_domain
from manykernels.solvers import Newton, newton
from manykernels.solvers.base import certify
from tests.problems import (
    PAPER_PS,
    dense_kernels,
    labels_for,
    random_gram_matrices,
    slow,
    square_loss,
)


def oracle(loss, p):
    """min_β Σ_k h_kᵀ(I + K_β/λ)⁻¹h_k over ‖β‖_p ≤ 1, by cvxpy."""
    kernels, targets = dense_kernels(loss)
    scale = np.abs(targets).max()
    beta = cp.Variable(len(kernels), nonneg=True)
    A = np.eye(len(targets)) + sum(
        b * (K + K.T) / (2 * loss.reg) for b, K in zip(beta, kernels, strict=True)
    )
    value = sum(cp.matrix_frac(h / scale, A) for h in targets.T)
    problem = cp.Problem(cp.Minimize(value), [cp.pnorm(beta, p) <= 1])
    problem.solve(solver=cp.CLARABEL)
    return problem.value * scale**2, beta.value


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("p", [1, 1.1, *slow(2, 8)])
@pytest.mark.filterwarnings("ignore::UserWarning:cvxpy")
def test_optimum_is_that_of_a_conic_solver(p, n_classes):
    loss = square_loss(random_gram_matrices(4, 14), n_classes, reg=0.2)
    solution = Newton().solve(loss, lp_domain(p), tol=1e-9, max_iter=50)
    value, weights = oracle(loss, p)
    assert solution.certificate.primal == pytest.approx(value, rel=1e-5)
    assert solution.certificate.primal <= value * (1 + 1e-7)
    np.testing.assert_allclose(solution.weights, weights, atol=5e-3)


@pytest.mark.parametrize("reg", [1e-4, *slow(1e-2, 1.0, 100.0)])
@pytest.mark.parametrize("p", [*PAPER_PS, 1 + 1e-9, 1e6], ids=str)
def test_every_p_and_reg_within_eight_factorisations(p, reg):
    for n_classes in (2, 4):
        loss = square_loss(random_gram_matrices(6, 40), n_classes, reg=reg)
        solution = Newton().solve(loss, lp_domain(p), tol=1e-6, max_iter=50)
        assert solution.certificate.converged
        assert solution.n_inner_solves <= 8


@pytest.mark.parametrize("reg", [1e-6, *slow(1e-8)])
@pytest.mark.parametrize("p", [1.0, *slow(1 + 2.0**-6, 1.125, 2.0)])
def test_kernels_of_low_rank_at_tiny_reg(p, reg):
    """Spectra that decay to zero, λ close to rounding: where full steps are often rejected."""
    for n_classes in (2, 4):
        for seed in range(6):
            loss = square_loss(random_gram_matrices(6, 40, seed), n_classes, reg, seed)
            solution = Newton().solve(loss, lp_domain(p), tol=1e-6)
            assert solution.certificate.converged
            assert solution.n_inner_solves <= 12


def test_the_gap_bounds_the_distance_to_the_optimum_all_along():
    for n_classes in (2, 5):
        loss = square_loss(random_gram_matrices(5, 30), n_classes, reg=0.01)
        for p in (1.0, 1 + 2**-6, 2.0):
            history = Newton().solve(loss, lp_domain(p), tol=1e-10, max_iter=50).history
            best = history[-1].certificate.primal
            for step in history:
                gap = step.certificate.gap
                assert gap >= -1e-12 * best
                assert step.certificate.primal - best <= gap + 1e-9 * best
            values = [step.certificate.primal for step in history]
            assert (np.diff(values) <= 1e-12 * best).all()


def test_plain_sum_needs_one_factorisation():
    loss = square_loss(random_gram_matrices(4, 20), 3)
    solution = Newton().solve(loss, lp_domain(np.inf))
    np.testing.assert_array_equal(solution.weights, np.ones(4))
    assert solution.n_inner_solves == 1
    assert solution.certificate.gap == pytest.approx(0.0, abs=1e-12)


def test_large_p_tends_to_the_plain_sum():
    loss = square_loss(random_gram_matrices(4, 20), 3)
    solution = Newton().solve(loss, lp_domain(1e6))
    np.testing.assert_allclose(solution.weights, 1.0, atol=1e-5)


@pytest.mark.parametrize("p", [1.0, *slow(1 + 2**-6, 2.0, 8.0)])
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_degenerate_kernels(p, n_classes):
    """Exact and near duplicates, a zero kernel, scales 1e12 apart, more kernels than rows."""
    base = random_gram_matrices(3, 20)
    noise = 1e-9 * random_gram_matrices(1, 20, seed=9)
    stacks = {
        "duplicates": np.concatenate([base, base[:1], base[1:2] + noise]),
        "zero": np.concatenate([base, np.zeros((1, 20, 20))]),
        "scales": base * np.array([1e-6, 1.0, 1e6])[:, None, None],
        "one": base[:1],
        "many": random_gram_matrices(30, 12, rank=3),
    }
    for name, matrices in stacks.items():
        for normalize in ("multiplicative", None):
            loss = square_loss(matrices, n_classes, reg=0.1, normalize=normalize)
            solution = Newton().solve(loss, lp_domain(p), tol=1e-6, max_iter=50)
            assert solution.certificate.converged, (name, normalize, solution.certificate)
            assert np.isfinite(solution.weights).all()
            assert solution.weights.min() >= 0
            if name == "zero" and p == 1.0:
                assert solution.weights[-1] == 0.0


def test_weights_zero_at_the_optimum_are_exact_zeros():
    matrices = random_gram_matrices(6, 40)
    solution = Newton().solve(square_loss(matrices, 3, reg=30.0), lp_domain(1.0), tol=1e-8)
    zeros = solution.weights == 0
    assert zeros.any()
    assert solution.weights[~zeros].min() > 1e-6


def test_coarse_start_leads_to_the_same_optimum():
    matrices = random_gram_matrices(4, 640, rank=6)
    loss = square_loss(matrices, 4, reg=0.1)
    assert loss.coarse() is not None
    far = Newton().solve(loss, lp_domain(1.5), tol=1e-11, start=np.array([1.0, 0, 0, 0]))
    near = Newton().solve(loss, lp_domain(1.5), tol=1e-11)
    np.testing.assert_allclose(near.weights, far.weights, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_start_from_halves_leads_to_the_same_optimum(n_classes, weighted, monkeypatch):
    """The start is a point of the boundary without zeros, and depends on the halves."""
    for name in ("_COARSE_MIN_ROWS", "_COARSE_MIN_ROWS_OF_ONE", "_HALVES_MIN_ROWS"):
        monkeypatch.setattr(f"manykernels.losses.square.{name}", 60)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 4))
    X[:, 0] += 2.0 * labels_for(240, n_classes)
    matrices = np.stack([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])
    weight = rng.uniform(0.5, 2.0, 240) if weighted else None
    loss = square_loss(matrices, n_classes, reg=0.1, sample_weight=weight)
    domain, starts, descend = lp_domain(1.5), [], Newton.descend

    def watched(self, part, domain, run, start):
        if part is loss:
            starts.append(start)
        descend(self, part, domain, run, start)

    monkeypatch.setattr(Newton, "descend", watched)
    near = Newton().solve(loss, domain, tol=1e-10)
    far = Newton().solve(loss, domain, tol=1e-10, start=domain.start(4))
    np.testing.assert_allclose(near.weights, far.weights, atol=1e-4)
    assert domain.gauge(starts[0]) == pytest.approx(1.0)
    assert starts[0].min() > 0.0
    monkeypatch.setattr("manykernels.losses.square._HALVES_MIN_ROWS", 1000)
    Newton().solve(loss, domain, tol=1e-10)
    assert np.abs(starts[0] - starts[2]).max() > 1e-3


def test_trace_simplex_gives_the_simplex_solution_of_unit_trace_kernels():
    matrices = random_gram_matrices(4, 25)
    plain = square_loss(matrices, 3, normalize=None)
    unit = square_loss(matrices, 3, normalize="trace")
    traces = plain.kernels.row_diag.sum(axis=1)
    priced = Newton().solve(plain, TraceSimplex(traces), tol=1e-9)
    scaled = Newton().solve(unit, lp_domain(1.0), tol=1e-9)
    assert priced.certificate.primal == pytest.approx(scaled.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(priced.weights * traces, scaled.weights, atol=1e-5)


def test_without_the_quadratic_model_it_still_descends(monkeypatch):
    monkeypatch.setattr(
        "manykernels.solvers.newton.minimize_quadratic", lambda *args, **kwargs: None
    )
    loss = square_loss(random_gram_matrices(4, 20), 2, reg=1.0)
    solution = Newton().solve(loss, lp_domain(2.0), tol=1e-3, max_iter=200)
    assert solution.certificate.converged


@pytest.mark.parametrize("p", [1.1, 4.0, 8.0])
def test_many_kernels_of_few_samples_need_no_quadratic_program(p, monkeypatch):
    loss = square_loss(random_gram_matrices(200, 30), 3, reg=0.2)
    minimize, n_programs = newton.minimize_quadratic, [0]

    def counted(*arguments):
        n_programs[0] += 1
        return minimize(*arguments)

    monkeypatch.setattr(newton, "minimize_quadratic", counted)
    solution = Newton().solve(loss, lp_domain(p), tol=1e-9)
    n_used = n_programs[0]
    assert solution.certificate.converged
    # Close to p = 1 the weights depend on the gains so much that only the model is of use.
    assert (n_used > 0) == (p < 4.0)
    monkeypatch.setattr(newton, "_SHARE_OF_FIXED_POINT", -1.0)
    without = Newton().solve(loss, lp_domain(p), tol=1e-9)
    assert without.certificate.converged
    assert solution.certificate.primal == pytest.approx(without.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(solution.weights, without.weights, atol=1e-4)


def test_iteration_limit_and_observer_leave_an_honest_certificate():
    loss = square_loss(random_gram_matrices(6, 30), 3, reg=1e-3)
    limited = Newton().solve(loss, lp_domain(1.0), tol=1e-12, max_iter=1)
    assert not limited.certificate.converged
    assert limited.certificate.rel_gap > 1e-12
    again = certify(loss.evaluate(limited.weights), lp_domain(1.0), 1e-12)
    assert again.primal == pytest.approx(limited.certificate.primal, rel=1e-12)
    # The dual variables of the other point may prove more than those of this one.
    assert again.gap >= limited.certificate.gap * (1 - 1e-8)
    best = Newton().solve(loss, lp_domain(1.0), tol=1e-9).certificate
    assert limited.certificate.dual <= best.primal
    seen = []

    def stop_at_second(progress):
        seen.append(progress)
        return len(seen) == 2

    stopped = Newton().solve(loss, lp_domain(1.0), tol=1e-12, observer=stop_at_second)
    assert stopped.n_iter == len(seen) == 2
    assert "relative gap" in str(seen[0])


def test_an_unreachable_tolerance_ends_without_endless_work():
    loss = square_loss(random_gram_matrices(4, 20), 3, reg=1e-3)
    solution = Newton().solve(loss, lp_domain(1.5), tol=1e-300, max_iter=20)
    assert solution.certificate.rel_gap < 1e-9
    assert solution.n_iter <= 21


@given(seed=st.integers(0, 10**6), p=st.sampled_from([1.0, 1.2, 2.0, 5.0]))
@settings(max_examples=20, deadline=None)
def test_no_other_weights_are_better(seed, p):
    rng = np.random.default_rng(seed)
    loss = square_loss(random_gram_matrices(4, 15, seed), 3, seed=seed)
    domain = lp_domain(p)
    best = Newton().solve(loss, domain, tol=1e-8)
    for _ in range(5):
        other = domain.onto_boundary(rng.uniform(0, 1, 4))
        assert loss.evaluate(other).value >= best.certificate.dual * (1 - 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_zero_kernel_on_the_trace_simplex_gets_nothing(n_classes):
    matrices = np.concatenate([random_gram_matrices(3, 25), np.zeros((1, 25, 25))])
    loss = square_loss(matrices, n_classes, normalize=None)
    traces = loss.kernels.row_diag.sum(axis=1)
    with_zero = Newton().solve(loss, TraceSimplex(traces), tol=1e-9)
    without = Newton().solve(
        square_loss(matrices[:3], n_classes, normalize=None), TraceSimplex(traces[:3]), tol=1e-9
    )
    assert with_zero.weights[3] == 0.0
    assert with_zero.certificate.primal == pytest.approx(without.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_a_start_on_a_zero_kernel(p):
    matrices = np.concatenate([np.zeros((1, 25, 25)), random_gram_matrices(3, 25)])
    loss = square_loss(matrices, 3)
    lost = Newton().solve(loss, lp_domain(p), tol=1e-7, start=np.array([1.0, 0.0, 0.0, 0.0]))
    usual = Newton().solve(loss, lp_domain(p), tol=1e-7)
    assert lost.certificate.converged
    assert lost.certificate.primal == pytest.approx(usual.certificate.primal, rel=1e-6)
