"""MKFDA: laws of its own, and its answers where another method knows them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from scipy.special import expit, softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge

from manykernels import MKFDA
from manykernels.discriminant import fisher_targets
from manykernels.kernels import RBF, Linear
from tests.estimators.random_problems import N_KERNELS, N_TRAIN, PS, Problem, norms, seeds
from tests.problems import slow

few = settings(deadline=None, max_examples=15)
class_counts = st.sampled_from([2, 3])


def of_classes(n_classes, seed=0):
    return Problem("MKFDA, two classes" if n_classes == 2 else "MKFDA, three classes", seed)


def centred(train, test=None):
    """Kernels centred on the training samples, test blocks too."""
    column_means = train.mean(axis=1, keepdims=True)
    block = train if test is None else test
    return (
        block
        - column_means
        - block.mean(axis=2, keepdims=True)
        + column_means.mean(axis=2, keepdims=True)
    )


# -- symmetries ------------------------------------------------------------------------------


def test_equal_kernels_do_not_stall_the_solver():
    problem = of_classes(2, 367)
    model = problem.fit(p=1, normalize=None)
    twice = problem.fit(np.array([problem.train[0], *problem.train]), p=1, normalize=None)
    assert twice.certificate_.converged
    assert twice.n_inner_solves_ <= 3 * model.n_inner_solves_
    assert_allclose(twice.certificate_.primal, model.certificate_.primal, rtol=1e-8)


def test_two_halves_weigh_at_p_1_as_the_whole():
    problem = of_classes(2, 3)
    half = np.array([problem.train[0] / 2, problem.train[0] / 2])
    whole = problem.fit(problem.train[:1], p=1, normalize=None, reg=1.0)
    split = problem.fit(half, p=1, normalize=None, reg=0.5)
    assert_allclose(split.certificate_.primal, whole.certificate_.primal, rtol=1e-8)


@few
@given(seed=seeds, p=norms)
def test_trace_is_multiplicative_with_another_reg(seed, p):
    problem = of_classes(2, seed)
    multiplicative = problem.fit(p=p, reg=0.1 * N_TRAIN)
    trace = problem.fit(p=p, reg=0.1, normalize="trace")
    problem.assert_close(trace.weights_, multiplicative.weights_)
    problem.assert_close(problem.decide(trace), problem.decide(multiplicative))


@few
@given(seed=seeds, p=norms, n_classes=class_counts)
def test_centring_twice_is_centring_once(seed, p, n_classes):
    problem = of_classes(n_classes, seed)
    model = problem.fit(p=p, normalize=None)
    twice = problem.fit(centred(problem.train), p=p, normalize=None)
    problem.assert_close(twice.weights_, model.weights_)
    problem.assert_close(
        problem.decide(twice, centred(problem.train, problem.test)), problem.decide(model), 1e-5
    )


# -- limits ----------------------------------------------------------------------------------


@few
@given(seed=seeds, p=norms)
def test_one_kernel_is_kernel_ridge_regression(seed, p):
    problem = of_classes(2, seed)
    reg = 0.3
    train, test = problem.train[1:2], problem.test[1:2]
    # Classes that the kernel can tell apart: two sides of its leading direction.
    leading = np.linalg.eigh(centred(train)[0])[1][:, -1]
    problem.y = (leading > np.median(leading)).astype(int)
    model = problem.fit(train, p=p, reg=reg, normalize=None)
    assert_allclose(model.weights_, [1.0])
    targets = fisher_targets(problem.y, np.bincount(problem.y).astype(float))
    ridge = KernelRidge(alpha=reg, kernel="precomputed").fit(centred(train)[0], targets)
    outputs = ridge.predict(centred(train, test)[0])[:, 0]
    decision = problem.decide(model, test, problem.test_diag[1:2])
    slope, offset = np.polyfit(outputs, decision, 1)
    assert slope > 0
    problem.assert_close(slope * outputs + offset, decision, 1e-8)
    # Targets minus residuals; F is what regression leaves, λ‖f‖² included.
    kernel = centred(train)[0]
    residual = targets - kernel @ ridge.dual_coef_
    left = np.sum(residual**2) + reg * np.sum(ridge.dual_coef_ * (kernel @ ridge.dual_coef_))
    assert_allclose(model.certificate_.primal, left, rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_linear_kernel_is_linear_discriminant_analysis(n_classes):
    rng = np.random.default_rng(1)
    y = np.arange(90) % n_classes
    spread = rng.normal(size=(4, 4)) + 2 * np.eye(4)
    X = rng.normal(size=(90, 4)) @ spread + 3 * np.eye(n_classes, 4)[y]
    ours = MKFDA(Linear(), reg=1e-8).fit(X, y).transform(X)
    theirs = LinearDiscriminantAnalysis(n_components=n_classes - 1).fit(X, y).transform(X)
    assert ours.shape == theirs.shape
    angles = subspace_angles(ours - ours.mean(axis=0), theirs - theirs.mean(axis=0))
    assert np.all(np.cos(angles) > 0.99999)


# -- weights of samples and classes ----------------------------------------------------------


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_balanced_classes_are_weighted_samples(p, n_classes):
    problem = of_classes(2, 5)
    y = (np.arange(N_TRAIN) % 7 % 5).clip(max=n_classes - 1)
    balance = len(y) / (n_classes * np.bincount(y))
    assert np.ptp(balance) > 0.1
    weighted = problem.fit(y=y, p=p, sample_weight=balance[y])
    balanced = problem.fit(y=y, p=p, class_weight="balanced")
    given = problem.fit(y=y, p=p, class_weight=dict(enumerate(balance)))
    problem.assert_close(balanced.weights_, weighted.weights_, 1e-8)
    problem.assert_close(given.weights_, weighted.weights_, 1e-8)
    assert_allclose(balanced.certificate_.primal, weighted.certificate_.primal, rtol=1e-9)
    assert_allclose(balanced.priors_, 1.0 / n_classes)
    if p < np.inf:
        plain = problem.fit(y=y, p=p)
        assert not np.allclose(plain.weights_, balanced.weights_, atol=1e-4)


# -- certificate -----------------------------------------------------------------------------


@few
@example(seed=4898, p=1.5, n_classes=2, tol=1e-2, normalize="multiplicative")
@given(
    seed=seeds,
    p=st.sampled_from([1, 1.5, np.inf]),
    n_classes=class_counts,
    tol=st.sampled_from([1e-2, 1e-9]),
    normalize=st.sampled_from(["multiplicative", "trace", None]),
)
def test_the_certificate_by_hand(seed, p, n_classes, tol, normalize):
    problem = of_classes(n_classes, seed)
    reg = 0.2
    model = problem.fit(p=p, reg=reg, tol=tol, normalize=normalize)
    kernels = centred(problem.train)
    traces = np.trace(kernels, axis1=1, axis2=2)
    divisor = {"multiplicative": traces / N_TRAIN, "trace": traces, None: np.ones(N_KERNELS)}
    kernels = kernels / divisor[normalize][:, None, None]
    targets = fisher_targets(problem.y, np.bincount(problem.y).astype(float))
    combined = np.einsum("j,jrc->rc", model.weights_, kernels)
    U = np.linalg.solve(np.eye(N_TRAIN) + combined / reg, targets)
    primal = np.sum(targets * U)
    certificate = model.certificate_

    def parts(A):
        gains = np.einsum("rk,jrc,ck->j", A, kernels, A) / reg
        support = {1: gains.max(), 1.5: np.sum(gains**3) ** (1 / 3), np.inf: gains.sum()}[p]
        return np.sum(targets * A), np.sum(A**2) + support

    # Any A proves 2t⟨T, A⟩ − t²(‖A‖² + support) for all t. The certificate has at least the bound
    # of the weights at t = 1, and at most what its dual point proves at the best t.
    rounding = 1e-8 * primal
    linear, quadratic = parts(U)
    assert_allclose(certificate.primal, primal, rtol=1e-8)
    assert certificate.dual >= 2 * linear - quadratic - rounding
    linear, quadratic = parts(certificate.dual_point)
    assert certificate.dual <= linear**2 / quadratic + rounding
    assert_allclose(certificate.gap, primal - certificate.dual, rtol=0, atol=rounding)
    assert certificate.gap >= -1e-12 * primal
    assert certificate.converged
    assert certificate.rel_gap <= tol
    assert np.linalg.norm(model.weights_, p) <= 1 + 1e-9
    assert np.all(model.weights_ >= 0)


# -- decisions -------------------------------------------------------------------------------


def blobs(n_classes, n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.minimum(np.arange(n_rows) % (n_classes + 2), n_classes - 1)
    return rng.normal(size=(n_rows, 3)) + 1.5 * np.eye(n_classes, 3)[y], y


PRIORS = {2: [None, [0.5, 0.5], [0.9, 0.1]], 3: [None, [0.1, 0.2, 0.7]]}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_priors_are_the_frequencies_or_those_given(n_classes):
    X, y = blobs(n_classes)
    new, _ = blobs(n_classes, seed=1)
    for priors in PRIORS[n_classes]:
        model = MKFDA([("linear", Linear()), ("rbf", RBF())], priors=priors).fit(X, y)
        expected_priors = np.bincount(y) / len(y) if priors is None else priors
        assert_allclose(model.priors_, expected_priors)
        assert len(np.unique(model.predict(new))) == n_classes


@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_discriminant_decides_for_the_nearest_mean(n_classes):
    """Classes on a line, which the indicator rule would mask: scores are tempered distances."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 150)
    X = y[:, None] + 0.2 * rng.standard_normal((150, 1))
    model = MKFDA([("linear", Linear())]).fit(X, y)
    assert model.rule_ == "discriminant"
    distances = np.sum((model.transform(X)[:, None] - model.means_) ** 2, axis=2)
    scores = np.log(model.priors_) - distances / 2
    assert_array_equal(model.predict(X), scores.argmax(axis=1))
    logs = model.predict_log_proba(X)
    ratio = (logs - logs[:, :1])[:, 1:] / (scores - scores[:, :1])[:, 1:]
    assert_allclose(ratio, ratio[0, 0], rtol=1e-6)
    assert ratio[0, 0] > 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_agree_with_decisions(n_classes):
    X, y = blobs(n_classes)
    new, _ = blobs(n_classes, seed=1)
    model = MKFDA().fit(X, y)
    decision, probabilities = model.decision_function(new), model.predict_proba(new)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert_allclose(np.exp(model.predict_log_proba(new)), probabilities)
    assert_array_equal(model.predict(new), model.classes_[probabilities.argmax(axis=1)])
    if n_classes == 2:
        assert decision.shape == (len(new),)
        assert_allclose(probabilities[:, 1], expit(decision))
    else:
        assert_allclose(probabilities, softmax(decision, axis=1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_priors_shift_decisions_by_their_log_odds(n_classes):
    X, y = blobs(n_classes)
    new, _ = blobs(n_classes, seed=1)
    natural = MKFDA().fit(X, y)
    priors = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    model = MKFDA(priors=priors).fit(X, y)
    moved = np.log(priors) - np.log(natural.priors_)
    if n_classes == 2:
        moved = moved[1] - moved[0]
    difference = model.decision_function(new) - natural.decision_function(new)
    assert_allclose(difference, np.broadcast_to(moved, difference.shape), rtol=1e-9)
    assert_array_equal(model.weights_, natural.weights_)


def test_class_means_are_those_of_samples_left_out():
    problem = of_classes(2, 2)
    reg = 0.5
    kernel = problem.train[2]
    model = problem.fit(kernel[None], reg=reg, normalize=None)
    targets = fisher_targets(problem.y, np.bincount(problem.y).astype(float))[:, 0]
    outputs = np.empty(N_TRAIN)
    for i in range(N_TRAIN):
        rest = np.delete(np.arange(N_TRAIN), i)
        # Ridge regression with an intercept that is not penalised.
        system = np.ones((N_TRAIN, N_TRAIN))
        system[:-1, :-1] = kernel[np.ix_(rest, rest)] + reg * np.eye(N_TRAIN - 1)
        system[-1, -1] = 0.0
        solution = np.linalg.solve(system, np.append(targets[rest], 0.0))
        outputs[i] = kernel[i, rest] @ solution[:-1] + solution[-1] - targets[rest].mean()
    coefficients = np.linalg.solve(centred(kernel[None])[0] + reg * np.eye(N_TRAIN), targets)
    stretch = coefficients @ model.scalings_[:, 0] / (coefficients @ coefficients)
    assert_allclose(model.scalings_[:, 0], stretch * coefficients, rtol=1e-8)
    means = [stretch * outputs[problem.y == k].mean() for k in (0, 1)]
    assert_allclose(model.means_[:, 0], means, rtol=1e-8)


# -- what it is for --------------------------------------------------------------------------
