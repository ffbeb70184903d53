"""Laws that every fit of MKFDA obeys, and its answers where another method knows them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from scipy.special import expit, softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from manykernels import MKFDA, KernelStack
from manykernels.estimators._discriminant import fisher_targets
from manykernels.kernels import Linear
from tests.problems import labels_for, random_gram_matrices

N_TRAIN, N_TEST, N_KERNELS = 26, 9, 4
PS = [1, 1.1, 2, np.inf]
seeds = st.integers(0, 10_000)
norms = st.sampled_from(PS)
class_counts = st.sampled_from([2, 3])
few = settings(deadline=None, max_examples=15)


class Problem:
    """Kernels between training samples, and between test and training samples."""

    def __init__(self, seed=0, n_classes=2, n_kernels=N_KERNELS):
        everything = random_gram_matrices(n_kernels, N_TRAIN + N_TEST, seed)
        self.train = everything[:, :N_TRAIN, :N_TRAIN]
        self.test = everything[:, N_TRAIN:, :N_TRAIN]
        self.test_diag = np.einsum("jii->ji", everything)[:, N_TRAIN:]
        self.y = labels_for(N_TRAIN, n_classes, seed)

    def fit(self, train=None, y=None, sample_weight=None, **params):
        train = self.train if train is None else train
        y = self.y if y is None else y
        model = MKFDA("precomputed", **{"tol": 1e-9, **params})
        return model.fit(KernelStack.from_arrays(train), y, sample_weight=sample_weight)

    def decide(self, model, test=None, test_diag=None):
        test = self.test if test is None else test
        test_diag = self.test_diag if test_diag is None else test_diag
        block = KernelStack.from_arrays(test, gram=False, row_diag=test_diag)
        return model.decision_function(block)


def close(actual, expected, tolerance=1e-4):
    """Equal up to what the weights may move within the gap."""
    scale = np.abs(expected).max()
    assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


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


@few
@given(seed=seeds, p=norms, n_classes=class_counts)
def test_permuted_kernels_permute_the_weights(seed, p, n_classes):
    problem = Problem(seed, n_classes)
    order = np.random.default_rng(seed).permutation(N_KERNELS)
    model = problem.fit(p=p)
    permuted = problem.fit(problem.train[order], p=p)
    close(permuted.weights_, model.weights_[order])
    assert_allclose(permuted.certificate_.primal, model.certificate_.primal, rtol=1e-8)
    decision = problem.decide(permuted, problem.test[order], problem.test_diag[order])
    close(decision, problem.decide(model))


@few
@given(seed=seeds, p=norms, n_classes=class_counts)
def test_the_order_of_samples_does_not_matter(seed, p, n_classes):
    problem = Problem(seed, n_classes)
    order = np.random.default_rng(seed).permutation(N_TRAIN)
    model = problem.fit(p=p)
    shuffled = problem.fit(problem.train[:, order][:, :, order], problem.y[order], p=p)
    close(shuffled.weights_, model.weights_)
    close(shuffled.dual_coef_, model.dual_coef_[order])
    close(problem.decide(shuffled, problem.test[:, :, order]), problem.decide(model))


@few
@given(seed=seeds, p=norms, normalize=st.sampled_from(["multiplicative", "spherical", None]))
def test_swapping_two_classes_turns_the_decision_round(seed, p, normalize):
    problem = Problem(seed)
    model = problem.fit(p=p, normalize=normalize)
    swapped = problem.fit(y=1 - problem.y, p=p, normalize=normalize)
    close(problem.decide(swapped), -problem.decide(model))


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@few
@given(
    seed=seeds,
    p=norms,
    n_classes=class_counts,
    normalize=st.sampled_from(["multiplicative", "spherical", "trace", None]),
)
def test_a_zero_kernel_changes_no_prediction(seed, p, n_classes, normalize):
    problem = Problem(seed, n_classes)
    # At unit trace F is flat: within a gap of 1e-9 weights can move by 1e-4.
    settings = {"p": p, "normalize": normalize, "tol": 1e-11}
    model = problem.fit(**settings)
    padded = problem.fit(np.insert(problem.train, 1, 0.0, axis=0), **settings)
    decision = problem.decide(
        padded,
        np.insert(problem.test, 1, 0.0, axis=0),
        np.insert(problem.test_diag, 1, 0.0, axis=0),
    )
    close(decision, problem.decide(model))
    close(np.delete(padded.weights_, 1), model.weights_)
    if p < np.inf:
        assert padded.weights_[1] <= 1e-4
    if p == 1:
        assert padded.weights_[1] == 0.0


@few
@given(seed=seeds, share=st.floats(0.1, 0.9))
def test_a_split_kernel_keeps_the_optimum_at_p_1(seed, share):
    problem = Problem(seed)
    parts = [share * problem.train[0], (1 - share) * problem.train[0]]
    settings = {"p": 1, "normalize": None, "tol": 1e-7}
    best = problem.fit(**settings).certificate_.primal
    # Parts beside the whole, and the whole twice, add no point to the convex hull.
    for extra in (parts, problem.train[:1]):
        model = problem.fit(np.array([*extra, *problem.train]), **settings)
        assert_allclose(model.certificate_.primal, best, rtol=2e-7)


def test_equal_kernels_do_not_stall_the_solver():
    problem = Problem(367)
    model = problem.fit(p=1, normalize=None)
    twice = problem.fit(np.array([problem.train[0], *problem.train]), p=1, normalize=None)
    assert twice.certificate_.converged
    assert twice.n_factorizations_ <= 3 * model.n_factorizations_
    assert_allclose(twice.certificate_.primal, model.certificate_.primal, rtol=1e-8)


def test_two_halves_weigh_at_p_1_as_the_whole():
    problem = Problem(3)
    half = np.array([problem.train[0] / 2, problem.train[0] / 2])
    whole = problem.fit(problem.train[:1], p=1, normalize=None, reg=1.0)
    split = problem.fit(half, p=1, normalize=None, reg=0.5)
    assert_allclose(split.certificate_.primal, whole.certificate_.primal, rtol=1e-8)


@few
@given(
    seed=seeds,
    p=norms,
    normalize=st.sampled_from(["multiplicative", "spherical", "trace"]),
    exponents=st.lists(st.floats(-6, 6), min_size=N_KERNELS, max_size=N_KERNELS),
)
def test_normalised_kernels_have_no_scale(seed, p, normalize, exponents):
    problem = Problem(seed)
    factors = 10.0 ** np.array(exponents)
    model = problem.fit(p=p, normalize=normalize)
    scaled = problem.fit(problem.train * factors[:, None, None], p=p, normalize=normalize)
    close(scaled.weights_, model.weights_)
    decision = problem.decide(
        scaled, problem.test * factors[:, None, None], problem.test_diag * factors[:, None]
    )
    close(decision, problem.decide(model))


@few
@given(seed=seeds, p=norms)
def test_trace_is_multiplicative_with_another_reg(seed, p):
    problem = Problem(seed)
    multiplicative = problem.fit(p=p, reg=0.1 * N_TRAIN)
    trace = problem.fit(p=p, reg=0.1, normalize="trace")
    close(trace.weights_, multiplicative.weights_)
    close(problem.decide(trace), problem.decide(multiplicative))


@few
@given(seed=seeds, p=norms, n_classes=class_counts)
def test_centring_twice_is_centring_once(seed, p, n_classes):
    problem = Problem(seed, n_classes)
    model = problem.fit(p=p, normalize=None)
    twice = problem.fit(centred(problem.train), p=p, normalize=None)
    close(twice.weights_, model.weights_)
    close(problem.decide(twice, centred(problem.train, problem.test)), problem.decide(model), 1e-5)


@few
@given(seed=seeds, shift=st.floats(0, 100))
def test_adding_a_constant_to_a_kernel_changes_nothing(seed, shift):
    problem = Problem(seed)
    shifts = np.array([0.0, shift, 0.0, 1.0])[:, None, None]
    model = problem.fit(p=2)
    moved = problem.fit(problem.train + shifts, p=2)
    close(moved.weights_, model.weights_)
    close(problem.decide(moved, problem.test + shifts), problem.decide(model))


# -- limits ----------------------------------------------------------------------------------


@few
@given(seed=seeds, n_classes=class_counts)
def test_the_largest_norm_is_the_plain_sum(seed, n_classes):
    problem = Problem(seed, n_classes)
    model = problem.fit(p=np.inf, normalize=None)
    total = problem.fit(problem.train.sum(axis=0)[None], p=np.inf, normalize=None)
    assert_array_equal(model.weights_, 1.0)
    assert model.n_iter_ == 1
    decision = problem.decide(
        total, problem.test.sum(axis=0)[None], problem.test_diag.sum(axis=0)[None]
    )
    close(problem.decide(model), decision, 1e-9)


@few
@given(seed=seeds, n_classes=class_counts)
def test_a_large_norm_is_nearly_the_largest(seed, n_classes):
    problem = Problem(seed, n_classes)
    large, largest = problem.fit(p=1e6), problem.fit(p=np.inf)
    assert_allclose(large.weights_, 1.0, atol=1e-4)
    close(problem.decide(large), problem.decide(largest))


@few
@given(seed=seeds, n_classes=class_counts)
def test_a_norm_close_to_one_is_nearly_one(seed, n_classes):
    problem = Problem(seed, n_classes)
    values = [problem.fit(p=p).certificate_.primal for p in (1, 1 + 1e-4, 1.1, 2, np.inf)]
    assert np.all(np.diff(values) <= 1e-8 * values[0]), "a larger ball has a smaller minimum"
    assert_allclose(values[1], values[0], rtol=1e-3)


@few
@given(seed=seeds, p=norms)
def test_one_kernel_is_kernel_ridge_regression(seed, p):
    problem = Problem(seed)
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
    close(slope * outputs + offset, decision, 1e-8)
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


@few
@given(seed=seeds, p=norms, n_classes=class_counts)
def test_an_integer_weight_is_repetition(seed, p, n_classes):
    problem = Problem(seed, n_classes)
    counts = np.random.default_rng(seed).integers(1, 4, size=N_TRAIN)
    rows = np.repeat(np.arange(N_TRAIN), counts)
    weighted = problem.fit(p=p, sample_weight=counts)
    repeated = problem.fit(problem.train[:, rows][:, :, rows], problem.y[rows], p=p)
    close(weighted.weights_, repeated.weights_)
    close(weighted.priors_, repeated.priors_, 1e-12)
    assert_allclose(weighted.certificate_.primal, repeated.certificate_.primal, rtol=1e-7)
    close(problem.decide(weighted), problem.decide(repeated, problem.test[:, :, rows]))


def test_a_row_of_no_weight_is_as_if_absent():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 3
    X += np.eye(3)[y]
    weight = np.ones(40)
    weight[::7] = 0.0
    kept = weight > 0
    new = rng.normal(size=(8, 3))
    model = MKFDA().fit(X, y, sample_weight=weight)
    expected = MKFDA().fit(X[kept], y[kept])
    close(model.decision_function(new), expected.decision_function(new), 1e-8)


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_classes_are_weighted_samples(p, n_classes):
    problem = Problem(5)
    y = (np.arange(N_TRAIN) % 7 % 5).clip(max=n_classes - 1)
    balance = len(y) / (n_classes * np.bincount(y))
    assert np.ptp(balance) > 0.1
    weighted = problem.fit(y=y, p=p, sample_weight=balance[y])
    balanced = problem.fit(y=y, p=p, class_weight="balanced")
    given = problem.fit(y=y, p=p, class_weight=dict(enumerate(balance)))
    close(balanced.weights_, weighted.weights_, 1e-8)
    close(given.weights_, weighted.weights_, 1e-8)
    assert_allclose(balanced.certificate_.primal, weighted.certificate_.primal, rtol=1e-9)
    assert_allclose(balanced.priors_, 1.0 / n_classes)
    if p < np.inf:
        plain = problem.fit(y=y, p=p)
        assert not np.allclose(plain.weights_, balanced.weights_, atol=1e-4)


# -- certificate -----------------------------------------------------------------------------


@few
@given(
    seed=seeds,
    p=st.sampled_from([1, 1.5, np.inf]),
    n_classes=class_counts,
    tol=st.sampled_from([1e-2, 1e-9]),
    normalize=st.sampled_from(["multiplicative", "trace", None]),
)
def test_the_certificate_by_hand(seed, p, n_classes, tol, normalize):
    problem = Problem(seed, n_classes)
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
    gains = np.einsum("rk,jrc,ck->j", U, kernels, U) / reg
    support = {1: gains.max(), 1.5: np.sum(gains**3) ** (1 / 3), np.inf: gains.sum()}[p]
    gap = support - model.weights_ @ gains
    certificate = model.certificate_
    assert_allclose(certificate.primal, primal, rtol=1e-8)
    assert_allclose(certificate.gap, gap, rtol=0, atol=1e-8 * primal)
    assert_allclose(certificate.dual, primal - gap, rtol=0, atol=1e-8 * primal)
    assert certificate.gap >= -1e-12 * primal
    assert certificate.converged
    assert certificate.rel_gap <= tol
    assert np.linalg.norm(model.weights_, p) <= 1 + 1e-9
    assert np.all(model.weights_ >= 0)


@few
@given(seed=seeds, p=norms, n_classes=class_counts)
def test_history_leads_down_to_the_certificate(seed, p, n_classes):
    model = Problem(seed, n_classes).fit(p=p)
    history = model.history_
    objective = np.array(history["objective"])
    assert {len(values) for values in history.values()} == {model.n_iter_}
    assert np.all(np.diff(objective) <= 1e-10 * objective[0])
    assert np.all(np.diff(history["n_factorizations"]) >= 1)
    assert history["rel_gap"][-1] == model.certificate_.rel_gap
    assert objective[-1] == model.certificate_.primal
    assert history["n_factorizations"][-1] == model.n_factorizations_


@few
@given(seed=seeds, p=st.sampled_from([1, 1.1, 2]))
def test_a_loose_answer_is_within_its_gap_of_the_best(seed, p):
    problem = Problem(seed, 3)
    loose, tight = problem.fit(p=p, tol=0.1), problem.fit(p=p)
    assert loose.certificate_.dual <= tight.certificate_.primal * (1 + 1e-9)
    assert tight.certificate_.primal <= loose.certificate_.primal * (1 + 1e-9)


def test_stopping_early_warns_with_the_gap():
    problem = Problem(0, 3)
    with pytest.warns(ConvergenceWarning, match="relative gap") as caught:
        model = problem.fit(p=1.1, max_iter=1, tol=1e-15)
    gap = model.certificate_.rel_gap
    assert gap > 1e-15
    assert not model.certificate_.converged
    assert f"{gap:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__


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
        model = MKFDA(priors=priors).fit(X, y)
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
    problem = Problem(2)
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_gets_no_weight_at_p_1(n_classes):
    rng = np.random.default_rng(4)
    y = np.arange(60) % n_classes
    features = np.eye(n_classes)[y] + 0.1 * rng.normal(size=(60, n_classes))
    noise = rng.normal(size=(60, 40))
    matrices = [noise @ noise.T, features @ features.T]
    model = MKFDA("precomputed", p=1, reg=10.0).fit(KernelStack.from_arrays(matrices), y)
    assert model.weights_[0] == 0.0
    assert_allclose(model.weights_[1], 1.0, rtol=1e-9)
    dense = MKFDA("precomputed", p=2, reg=10.0).fit(KernelStack.from_arrays(matrices), y)
    assert 0 < dense.weights_[0] < dense.weights_[1]
