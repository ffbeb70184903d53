"""Many kernels on few samples: few take part, and all are in the certificate."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.domains import TraceSimplex, lp_domain
from manykernels.losses.square import JointSquareLoss
from manykernels.losses.svm import HingeLoss
from manykernels.solvers import SIP, Newton
from manykernels.solvers.newton import MANY_KERNELS
from tests.machines import LOSSES, signs_for
from tests.problems import random_gram_matrices, slow, square_loss

M, N = 30, 400


def gaussians(n=N, m=M, seed=0):
    """Gaussian kernels of three columns out of twenty; the signs depend on the first two."""
    X = np.random.default_rng(seed).standard_normal((m, 4))
    rng = np.random.default_rng(seed + 100)
    X = np.hstack([X, rng.standard_normal((m, 16))])
    matrices = np.empty((n, m, m))
    for matrix in matrices:
        some = X[:, rng.choice(20, 3, replace=False)]
        matrix[:] = np.exp(-np.exp(rng.uniform(-3, 1)) * ((some[:, None] - some) ** 2).sum(2))
    return matrices


def machine(kind, seed=0):
    stack = KernelStack(gaussians(seed=seed), [f"{j}" for j in range(N)], gram=True, checked=True)
    return LOSSES[kind](stack, inner_tol=1e-9)


def check_over_all_kernels(loss, prices, solution, tol):
    """The lower bound of the certificate holds at every corner of the simplex and at mixtures."""
    certificate = solution.certificate
    assert certificate.converged
    assert prices @ solution.weights == pytest.approx(1.0)
    assert loss.evaluate(solution.weights).value == pytest.approx(certificate.primal, rel=1e-6)
    rng = np.random.default_rng(0)
    n = loss.n_kernels
    gains = loss.evaluate(solution.weights).gains
    corners = np.eye(n)[np.argsort(gains / prices)[-20:]] / prices
    others = 0.5 * corners + 0.5 * solution.weights
    for weights in [*corners, *others, rng.dirichlet(np.ones(n)) / prices]:
        value = loss.evaluate(weights).value
        assert value >= certificate.dual - 1e-7 * abs(certificate.primal)
        assert value >= certificate.primal * (1 - np.sign(certificate.primal) * 2 * tol)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_machines_agree_with_cutting_planes_over_all_kernels(kind, seed, monkeypatch):
    tol = 1e-4
    loss = machine(kind, seed)
    sizes = []
    restricted = type(loss).restricted

    def counted(self, kernels):
        sizes.append(len(kernels))
        return restricted(self, kernels)

    monkeypatch.setattr(type(loss), "restricted", counted)
    solution = Newton().solve(loss, lp_domain(1.0), tol=tol)
    check_over_all_kernels(loss, np.ones(loss.n_kernels), solution, tol)
    assert solution.n_iter <= 10
    assert solution.n_inner_solves <= 60
    # No quadratic program has had more kernels than these.
    assert sizes
    assert max(sizes) < MANY_KERNELS
    cuts = SIP().solve(machine(kind, seed), lp_domain(1.0), tol=tol)
    assert solution.certificate.primal == pytest.approx(cuts.certificate.primal, rel=2 * tol)


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_discriminants_agree_with_steps_on_all_kernels(n_classes, monkeypatch):
    tol = 1e-6
    loss = square_loss(gaussians(), n_classes, reg=0.1)
    few = Newton().solve(loss, lp_domain(1.0), tol=tol)
    check_over_all_kernels(loss, np.ones(N), few, tol)
    assert few.n_inner_solves <= 40
    monkeypatch.setattr("manykernels.solvers.newton.MANY_KERNELS", N + 1)
    every = Newton().solve(loss, lp_domain(1.0), tol=tol)
    assert few.certificate.primal == pytest.approx(every.certificate.primal, rel=2 * tol)


def test_prices_decide_on_a_trace_simplex():
    matrices = gaussians() * np.geomspace(1e-3, 1e3, N)[:, None, None]
    plain = square_loss(matrices, 2, normalize=None)
    unit = square_loss(matrices, 2, normalize="trace")
    traces = plain.kernels.row_diag.sum(axis=1)
    priced = Newton().solve(plain, TraceSimplex(traces), tol=1e-7)
    check_over_all_kernels(plain, traces, priced, 1e-7)
    scaled = Newton().solve(unit, lp_domain(1.0), tol=1e-7)
    assert priced.certificate.primal == pytest.approx(scaled.certificate.primal, rel=1e-6)


def test_the_regularisation_stays_in_the_set():
    plain = square_loss(gaussians(), 3, normalize="trace")
    loss = JointSquareLoss(plain.kernels, plain.targets, 1.0 / M)
    solution = Newton().solve(loss, lp_domain(1.0), tol=1e-6)
    check_over_all_kernels(loss, np.ones(N + 1), solution, 1e-6)


@pytest.mark.slow
def test_more_kernels_with_a_weight_than_candidates():
    """With kernels of rank one the minimum has as many weights as degrees of freedom."""
    m = 140
    matrices = random_gram_matrices(500, m, seed=3, rank=1)
    loss = square_loss(matrices, 2, reg=0.05)
    solution = Newton().solve(loss, lp_domain(1.0), tol=1e-5)
    check_over_all_kernels(loss, np.ones(500), solution, 1e-5)
    assert np.count_nonzero(solution.weights) > 50


def test_a_start_is_taken():
    loss = square_loss(gaussians(), 2)
    cold = Newton().solve(loss, lp_domain(1.0), tol=1e-6)
    warm = Newton().solve(loss, lp_domain(1.0), tol=1e-5, start=cold.weights)
    assert warm.n_inner_solves == 1
    # From the worst kernel alone, and from all of them.
    corner = np.eye(N)[cold.evaluation.gains.argmin()]
    for start in (corner, lp_domain(1.0).start(N)):
        again = Newton().solve(loss, lp_domain(1.0), tol=1e-6, start=start)
        assert again.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)


def test_equal_kernels_and_zero_kernels():
    matrices = np.concatenate([gaussians(20)] * 20 + [np.zeros((20, M, M))])
    stack = KernelStack(matrices, [f"{j}" for j in range(420)], gram=True, checked=True)
    loss = HingeLoss(stack, signs_for(M), 1.0)
    solution = Newton().solve(loss, lp_domain(1.0), tol=1e-5)
    check_over_all_kernels(loss, np.ones(420), solution, 1e-5)
    assert not solution.weights[-20:].any()


def test_an_observer_ends_it_and_iterations_are_rounds():
    seen = []
    loss = square_loss(gaussians(), 2)
    Newton().solve(
        loss, lp_domain(1.0), tol=1e-9, observer=lambda step: seen.append(step) or len(seen) == 2
    )
    assert [step.iteration for step in seen] == [0, 1]
