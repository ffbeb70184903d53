"""One machine for all classes and several kernels: against a conic solver and binary machines."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from manykernels import KernelStack
from manykernels.domains import Product, lp_domain
from manykernels.losses.svm import HingeLoss, MulticlassHingeLoss
from manykernels.solvers import SOLVERS, Newton
from tests.machines import gram_matrices
from tests.problems import labels_for, region_factors, takes

C = 0.7
# Of the conic solver, which is asked for more digits than the tests need.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")


def loss_of(matrices, labels, n_classes, C=C, inner_tol=1e-10):
    stack = KernelStack.from_arrays(matrices)
    return MulticlassHingeLoss(stack, 2.0 * np.eye(n_classes)[labels] - 1.0, C, inner_tol)


def conic_optimum(matrices, labels, n_classes, p, C=C):
    """Minimum of the primal, ``½(Σ_j ‖W_j‖^r)^{2/r}`` with r = 2p/(p + 1) and the hinges."""
    m, own = len(labels), np.eye(n_classes)[labels]
    f, norms = np.ones((m, 1)) @ cp.Variable((1, n_classes)), []
    for K in matrices:
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-13 * values[-1]
        W = cp.Variable((kept.sum(), n_classes))
        f = f + (vectors[:, kept] * np.sqrt(values[kept])) @ W
        norms.append(cp.norm(W, "fro"))
    r = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    size = cp.square(cp.pnorm(cp.hstack(norms), r)) / 2
    true = cp.sum(cp.multiply(own, f), axis=1, keepdims=True) @ np.ones((1, n_classes))
    costs = np.broadcast_to(C, m)[:, None] * (1 - own)
    problem = cp.Problem(cp.Minimize(size + cp.sum(cp.multiply(costs, cp.pos(2 - true + f)))))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def relative_error(matrices, labels, n_classes, p, C=C):
    loss = loss_of(matrices, labels, n_classes, C)
    solution = Newton().solve(loss, lp_domain(p), tol=1e-8)
    assert solution.certificate.converged
    value = conic_optimum(matrices, labels, n_classes, p, C)
    return abs(solution.certificate.primal - value) / value


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_the_optimum_is_that_of_the_primal(n_classes, p):
    matrices, labels = gram_matrices(36), labels_for(36, n_classes, 0)
    assert relative_error(matrices, labels, n_classes, p) <= 1e-6


@pytest.mark.parametrize("C", [0.05, 0.5, 20.0])
def test_one_kernel_and_costs_of_samples(C):
    matrices, labels = gram_matrices(40)[:1], labels_for(40, 3, 0)
    costs = C * np.random.default_rng(0).uniform(0.5, 2.0, 40)
    assert relative_error(matrices, labels, 3, 1.0, costs) <= 1e-6


def test_two_classes_are_a_binary_machine():
    """``f^1 = −f^0``, so that the objective is twice that of the machine with the same C."""
    matrices, labels = gram_matrices(40), labels_for(40, 2, 0)
    binary = HingeLoss(KernelStack.from_arrays(matrices), 2.0 * labels - 1.0, C, 1e-10)
    domain = lp_domain(1.5)
    one, other = (
        Newton().solve(loss, domain, tol=1e-9) for loss in (binary, loss_of(matrices, labels, 2))
    )
    assert other.certificate.primal == pytest.approx(2.0 * one.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-4)
    coefficients, biases = other.evaluation.coefficients, other.evaluation.biases
    np.testing.assert_allclose(coefficients[:, 1], -coefficients[:, 0], atol=1e-12)
    np.testing.assert_allclose(
        coefficients[:, 1], one.evaluation.coefficients[:, 0], atol=1e-4 * C
    )
    assert biases[1] == pytest.approx(one.evaluation.biases[0], abs=1e-3)


@pytest.mark.parametrize("p", [1.0, 1.5, np.inf])
def test_every_solver_that_takes_it_agrees_with_newton(p):
    matrices, labels = gram_matrices(30), labels_for(30, 3, 1)
    domain = lp_domain(p)
    best = Newton().solve(loss_of(matrices, labels, 3), domain, tol=1e-8).certificate
    spec = loss_of(matrices, labels, 3).spec
    able = {name for name in SOLVERS if takes(name, spec, domain)}
    assert able >= {"newton", "analytic", "sip"}
    for name in sorted(able):
        loss = loss_of(matrices, labels, 3)
        found = SOLVERS[name]().solve(loss, domain, tol=1e-3, max_iter=40).certificate
        assert found.gap >= -1e-9 * found.primal
        assert -1e-8 * best.primal <= found.primal - best.dual
        assert found.dual <= best.primal * (1 + 1e-8)
    with pytest.raises(ValueError, match="support vector machines only, not for Multiclass"):
        SOLVERS["interleaved"]().solve(loss, domain)


def test_weights_of_regions():
    base, labels = gram_matrices(30)[:2], labels_for(30, 3, 0)
    matrices = np.array([np.outer(own, own) * K for own in region_factors(2, 30) for K in base])
    solution = Newton().solve(loss_of(matrices, labels, 3), Product(lp_domain(1.5), 2), tol=1e-7)
    assert solution.certificate.converged
    assert Product(lp_domain(1.5), 2).gauge(solution.weights) <= 1.0 + 1e-9


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_centred_kernels_of_low_rank_and_equal_samples(C):
    """Where systems of free variables are singular, the certificate still closes."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[20:30] = X[:10]
    X = X - X.mean(axis=0)
    matrices = np.array([X @ X.T, np.outer(X[:, 0], X[:, 0])])
    labels = labels_for(40, 3, 0)
    solution = Newton().solve(loss_of(matrices, labels, 3, C), lp_domain(2.0), tol=1e-5)
    assert solution.certificate.rel_gap <= 1e-5
    value = conic_optimum(matrices, labels, 3, 2.0, C)
    assert solution.certificate.primal == pytest.approx(value, rel=2e-5)


def test_any_dual_variables_prove_a_bound():
    matrices, labels = gram_matrices(24), labels_for(24, 4, 0)
    loss = loss_of(matrices, labels, 4)
    value = loss.evaluate(np.full(4, 0.5)).value
    rng = np.random.default_rng(0)
    for dual in (np.zeros((24, 4)), rng.normal(size=(24, 4)), 1e3 * rng.normal(size=(24, 4))):
        point = loss.dual_point(dual)
        bound = point.lower_bound(lambda gains: 0.5 * float(gains.sum()))
        assert 0.0 <= bound <= value
