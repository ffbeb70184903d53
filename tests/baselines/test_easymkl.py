"""EasyMKL: its quadratic program against cvxpy, its limits, its weights."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from manykernels import KernelStack
from manykernels.baselines import EasyMKL
from manykernels.kernels import Linear
from tests.estimators.registry import refused

N = 36
rng = np.random.default_rng(0)
LABELS = np.arange(N) % 3
# The first table tells the classes apart, the last is noise.
TABLES = [rng.normal(size=(N, 4)) + shift * np.eye(3, 4)[LABELS] for shift in (2.0, 1.0, 0.0)]
MATRICES = np.array([table @ table.T / 4 for table in TABLES])
STACK = KernelStack.from_arrays(MATRICES)
BINARY = (LABELS == 0).astype(int)


def fit(y=BINARY, stack=STACK, sample_weight=None, **params):
    params = {"normalize": None, "tol": 1e-8, **params}
    return EasyMKL("precomputed", **params).fit(stack, y, sample_weight)


def program(signs, lam, counts=None):
    """γ of the paper's quadratic program, and its value, by cvxpy."""
    counts = np.ones(len(signs)) if counts is None else counts
    gamma = cp.Variable(len(signs), nonneg=True)
    total = (1 - lam) * MATRICES.sum(axis=0) + 1e-12 * np.eye(len(signs))
    even = cp.sum(cp.multiply(lam / counts, cp.square(gamma)))
    value = cp.quad_form(cp.multiply(signs, gamma), cp.psd_wrap(total)) + even
    constraints = [cp.sum(gamma[signs > 0]) == 1, cp.sum(gamma[signs < 0]) == 1]
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL)
    return gamma.value, problem.value


def distances(signed):
    squares = np.einsum("i,jil,l->j", signed, MATRICES, signed)
    return squares / squares.sum()


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5, 0.99])
def test_the_distributions_are_those_of_the_quadratic_program(lam):
    signs = 2 * BINARY - 1
    expected, value = program(signs, lam)
    model = fit(lam=lam)
    assert_allclose(model.distributions_[:, 0], expected, atol=1e-5)
    assert_allclose(model.weights_, distances(signs * expected), rtol=1e-4)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6)
    assert model.certificate_.dual <= value * (1 + 1e-6)
    assert model.certificate_.converged


def test_the_even_limit_compares_class_means():
    model = fit(lam=1.0)
    uniform = np.where(BINARY == 1, 1 / BINARY.sum(), -1 / (1 - BINARY).sum())
    assert_allclose(model.distributions_[:, 0], np.abs(uniform), rtol=1e-7)
    assert_allclose(model.weights_, distances(uniform), rtol=1e-7)


def test_the_hard_margin():
    """At λ = 0 the distributions are the coefficients of a machine without slacks."""
    apart = MATRICES + 25.0 * np.outer(2 * BINARY - 1, 2 * BINARY - 1)
    machine = SVC(kernel="precomputed", C=1e6, tol=1e-9).fit(apart.sum(axis=0), BINARY)
    signed = np.zeros(N)
    signed[machine.support_] = machine.dual_coef_[0]
    signed /= 0.5 * np.abs(signed).sum()
    model = fit(lam=0.0, stack=KernelStack.from_arrays(apart))
    # The λ that stands for zero is 1e-9 of the kernels, and moves them by some 1e-6.
    assert_allclose(model.distributions_[:, 0], np.abs(signed), atol=1e-5)
    squares = np.einsum("i,jil,l->j", signed, apart, signed)
    assert_allclose(model.weights_, squares / squares.sum(), rtol=1e-5)


def test_the_hard_margin_of_classes_that_overlap_is_the_limit_of_small_lambda():
    overlapping = KernelStack.from_arrays(MATRICES[1:])
    y = np.arange(N) % 2
    model = fit(y, overlapping, lam=0.0, tol=1e-4)
    near = fit(y, overlapping, lam=1e-3, tol=1e-4)
    assert 0 < model.lam_ < near.lam_ == 1e-3
    assert_allclose(model.weights_, near.weights_, rtol=1e-2)


def test_the_machine_is_scikit_learns_on_the_weighted_sum():
    model = fit(C=3.0)
    combined = np.tensordot(model.weights_, MATRICES, 1)
    machine = SVC(kernel="precomputed", C=3.0, tol=1e-9).fit(combined, BINARY)
    assert_allclose(model.decision_function(STACK), machine.decision_function(combined), atol=1e-6)


def test_more_classes_are_learnt_one_against_the_rest_with_their_own_labels():
    names = np.array(["pear", "apple", "fig"])[LABELS]
    model = fit(names)
    assert_array_equal(model.classes_, ["apple", "fig", "pear"])
    assert model.weights_.shape == (3, 3)
    for k, name in enumerate(model.classes_):
        alone = fit(names == name)
        assert_allclose(model.weights_[k], alone.weights_, rtol=1e-6)
        assert_allclose(
            model.decision_function(STACK)[:, k], alone.decision_function(STACK), atol=1e-5
        )
    assert model.score(STACK, names) > 0.9


def test_weights_sum_to_one_and_noise_has_the_least():
    weights = fit().weights_
    assert_allclose(weights.sum(), 1.0)
    assert weights.argmin() == 2


def test_permuted_kernels_have_permuted_weights():
    order = [2, 0, 1]
    permuted = fit(stack=KernelStack.from_arrays(MATRICES[order]))
    assert_allclose(permuted.weights_, fit().weights_[order], rtol=1e-9)


def test_a_weight_of_three_is_three_samples():
    counts = 1 + 2 * (np.arange(N) % 4 == 0)
    rows = np.repeat(np.arange(N), counts)
    repeated = fit(BINARY[rows], KernelStack.from_arrays(MATRICES[:, rows][:, :, rows]))
    weighted = fit(sample_weight=counts)
    assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-6)
    expected, _ = program(2 * BINARY - 1, 0.1, counts)
    assert_allclose(weighted.distributions_[:, 0], expected, atol=1e-5)


def test_a_tolerance_below_rounding_is_reported():
    with pytest.warns(ConvergenceWarning) as caught:
        fit(tol=1e-15)
    first, second = (str(warning.message) for warning in caught)
    assert "distributions of EasyMKL are limited by rounding" in first
    assert first.endswith("Raise lam or tol.")
    assert "machines of EasyMKL are limited by rounding" in second


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
def test_kernels_that_say_nothing_have_equal_weights():
    model = fit(stack=KernelStack.from_arrays(np.ones((2, N, N))))
    assert_allclose(model.weights_, 0.5)
    assert model.certificate_.converged


def test_a_table_is_taken_too():
    model = EasyMKL(Linear(), lam=0.3).fit(TABLES[0], LABELS)
    assert model.score(TABLES[0], LABELS) > 0.8


def test_lam_outside_its_range():
    with refused("The 'lam' parameter of EasyMKL must be a float in the range"):
        fit(lam=1.5)
