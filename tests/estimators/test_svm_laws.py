"""Laws that every fit of a support vector machine with several kernels obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC, SVR

from manykernels import MKSVC, MKSVR, KernelStack, MKOneClassSVM
from manykernels.kernels import RBF, Linear
from tests.problems import labels_for, random_gram_matrices, slow

N_TRAIN, N_TEST, N_KERNELS = 26, 9, 4
PS = [1, 1.1, 2, np.inf]
C, EPSILON, NU = 0.7, 0.1, 0.4
seeds = st.integers(0, 10_000)
norms = st.sampled_from(PS)
few = settings(deadline=None, max_examples=5)

KINDS = {
    "two classes": (MKSVC, {"C": C}),
    "three classes": (MKSVC, {"C": C}),
    "separate": (MKSVC, {"C": C, "multi_class": "separate"}),
    "squared hinge": (MKSVC, {"C": C, "loss": "squared_hinge"}),
    "joint": (MKSVC, {"C": "joint", "loss": "squared_hinge"}),
    "regression": (MKSVR, {"C": C, "epsilon": EPSILON}),
    "one class": (MKOneClassSVM, {"nu": NU}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
# At unit trace and this C all samples are within the margin, and no bias is better than others.
determined = st.sampled_from(["multiplicative", "spherical", None])
every_normalization = st.sampled_from(["multiplicative", "spherical", "trace", None])


class Problem:
    """Kernels between training samples, and between test and training samples."""

    def __init__(self, kind, seed=0):
        self.kind = kind
        everything = random_gram_matrices(N_KERNELS, N_TRAIN + N_TEST, seed)
        self.train = everything[:, :N_TRAIN, :N_TRAIN]
        self.test = everything[:, N_TRAIN:, :N_TRAIN]
        self.test_diag = np.einsum("jii->ji", everything)[:, N_TRAIN:]
        self.y = labels_for(N_TRAIN, 3 if kind in ("three classes", "separate") else 2, seed)
        if kind == "regression":
            self.y = np.random.default_rng(seed).normal(size=N_TRAIN)
        if kind == "one class":
            # Away from the origin, or else there is no half-space.
            self.train, self.test, self.test_diag = (
                values + 1.0 for values in (self.train, self.test, self.test_diag)
            )

    def fit(self, train=None, y=None, sample_weight=None, **params):
        train = self.train if train is None else train
        y = self.y if y is None else y
        make, own = KINDS[self.kind]
        model = make("precomputed", **{"tol": 1e-9, **own, **params})
        return model.fit(KernelStack.from_arrays(train), y, sample_weight=sample_weight)

    def decide(self, model, test=None, test_diag=None):
        test = self.test if test is None else test
        test_diag = self.test_diag if test_diag is None else test_diag
        block = KernelStack.from_arrays(test, gram=False, row_diag=test_diag)
        return (model.predict if isinstance(model, MKSVR) else model.decision_function)(block)


def close(actual, expected, tolerance=1e-4):
    """Equal up to what may move within the gap; the unit is that of margins and targets."""
    scale = max(np.abs(expected).max(), 1.0)
    assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def same_optimum(model, other, factor=1.0):
    expected = factor * other.certificate_.primal
    assert_allclose(model.certificate_.primal, expected, rtol=3e-9, atol=0)


# -- symmetries ------------------------------------------------------------------------------


@every_kind
@few
@given(seed=seeds, p=norms)
def test_permuted_kernels_permute_the_weights(kind, seed, p):
    problem = Problem(kind, seed)
    order = np.random.default_rng(seed).permutation(N_KERNELS)
    model = problem.fit(p=p)
    permuted = problem.fit(problem.train[order], p=p)
    same_optimum(permuted, model)
    close(permuted.weights_, model.weights_[..., order])
    decision = problem.decide(permuted, problem.test[order], problem.test_diag[order])
    close(decision, problem.decide(model))


@every_kind
@few
@given(seed=seeds, p=norms)
def test_the_order_of_samples_does_not_matter(kind, seed, p):
    problem = Problem(kind, seed)
    order = np.random.default_rng(seed).permutation(N_TRAIN)
    model = problem.fit(p=p)
    shuffled = problem.fit(problem.train[:, order][:, :, order], problem.y[order], p=p)
    same_optimum(shuffled, model)
    close(problem.decide(shuffled, problem.test[:, :, order]), problem.decide(model))


@few
@given(seed=seeds, p=norms, normalize=determined)
def test_swapping_two_classes_turns_the_decision_round(seed, p, normalize):
    problem = Problem("two classes", seed)
    model = problem.fit(p=p, normalize=normalize)
    swapped = problem.fit(y=1 - problem.y, p=p, normalize=normalize)
    close(problem.decide(swapped), -problem.decide(model))
    assert_array_equal(swapped.n_support_, model.n_support_[::-1])


@few
@given(seed=seeds, p=norms, normalize=determined)
def test_targets_turned_round_turn_the_regression_round(seed, p, normalize):
    problem = Problem("regression", seed)
    model = problem.fit(p=p, normalize=normalize)
    turned = problem.fit(y=5.0 - problem.y, p=p, normalize=normalize)
    close(5.0 - problem.decide(turned), problem.decide(model))


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@every_kind
@few
@given(seed=seeds, p=norms, normalize=determined)
def test_a_zero_kernel_changes_no_prediction(kind, seed, p, normalize):
    problem = Problem(kind, seed)
    model = problem.fit(p=p, normalize=normalize)
    padded = problem.fit(np.insert(problem.train, 1, 0.0, axis=0), p=p, normalize=normalize)
    same_optimum(padded, model)
    decision = problem.decide(
        padded,
        np.insert(problem.test, 1, 0.0, axis=0),
        np.insert(problem.test_diag, 1, 0.0, axis=0),
    )
    close(decision, problem.decide(model))
    if p < np.inf:
        assert np.all(padded.weights_[..., 1] <= 1e-4)


@every_kind
@few
@given(seed=seeds, share=st.floats(0.1, 0.9))
def test_a_split_kernel_keeps_the_optimum_at_p_1(kind, seed, share):
    problem = Problem(kind, seed)
    parts = [share * problem.train[0], (1 - share) * problem.train[0]]
    settings = {"p": 1, "normalize": None}
    model = problem.fit(**settings)
    # Parts beside the whole, and the whole twice, add no point to the convex hull.
    for extra in (parts, problem.train[:1]):
        same_optimum(problem.fit(np.array([*extra, *problem.train]), **settings), model)


@pytest.mark.parametrize("kind", ["two classes", "three classes", "squared hinge", "regression"])
def test_two_halves_weigh_at_p_1_as_the_whole(kind):
    """Half of a kernel doubles ‖f‖², so C has to double too."""
    problem = Problem(kind, 3)
    halves = np.array([problem.train[1] / 2, problem.train[1] / 2])
    whole = problem.fit(problem.train[1:2], p=1, normalize=None)
    split = problem.fit(halves, p=1, normalize=None, C=2 * C)
    same_optimum(split, whole, 2.0)
    test, diagonals = np.array([problem.test[1] / 2] * 2), problem.test_diag
    expected = problem.decide(whole, problem.test[1:2], diagonals[1:2])
    close(problem.decide(split, test, diagonals[:2]), expected, 1e-6)


@every_kind
@few
@given(
    seed=seeds,
    p=norms,
    normalize=st.sampled_from(["multiplicative", "spherical", "trace"]),
    exponents=st.lists(st.floats(-6, 6), min_size=N_KERNELS, max_size=N_KERNELS),
)
def test_normalised_kernels_have_no_scale(kind, seed, p, normalize, exponents):
    problem = Problem(kind, seed)
    factors = 10.0 ** np.array(exponents)
    params = {"p": p, "normalize": normalize}
    if normalize == "trace" and KINDS[kind][1].get("C") == C:
        params["C"] = C * N_TRAIN
    model = problem.fit(**params)
    scaled = problem.fit(problem.train * factors[:, None, None], **params)
    same_optimum(scaled, model)
    decision = problem.decide(
        scaled, problem.test * factors[:, None, None], problem.test_diag * factors[:, None]
    )
    close(decision, problem.decide(model))


@pytest.mark.parametrize("kind", ["two classes", "separate", "squared hinge", "regression"])
@few
@given(seed=seeds, p=norms)
def test_trace_is_multiplicative_with_another_c(kind, seed, p):
    problem = Problem(kind, seed)
    multiplicative = problem.fit(p=p, C=0.1)
    trace = problem.fit(p=p, C=0.1 * N_TRAIN, normalize="trace")
    same_optimum(trace, multiplicative, N_TRAIN)
    close(problem.decide(trace), problem.decide(multiplicative))


def test_joint_learns_c_on_the_scale_of_the_kernels():
    problem = Problem("joint", 4)
    multiplicative, trace = problem.fit(p=1), problem.fit(p=1, normalize="trace")
    assert_allclose(trace.C_, N_TRAIN * multiplicative.C_, rtol=1e-4)
    close(trace.weights_, multiplicative.weights_)
    close(problem.decide(trace), problem.decide(multiplicative))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "one class"])
@few
@given(
    seed=seeds,
    shift=st.floats(0, 100),
    p=norms,
    normalize=st.sampled_from(["multiplicative", "trace", None]),
)
def test_adding_a_constant_to_a_kernel_changes_nothing(kind, seed, shift, p, normalize):
    problem = Problem(kind, seed)
    shifts = np.array([0.0, shift, 0.0, 1.0])[:, None, None]
    model = problem.fit(p=p, normalize=normalize)
    moved = problem.fit(problem.train + shifts, p=p, normalize=normalize)
    same_optimum(moved, model)
    close(problem.decide(moved, problem.test + shifts), problem.decide(model))


def test_for_one_class_the_origin_matters():
    problem = Problem("one class", 0)
    model = problem.fit()
    moved = problem.fit(problem.train + 1.0)
    assert not np.allclose(problem.decide(moved, problem.test + 1.0), problem.decide(model))


# -- limits ----------------------------------------------------------------------------------


@every_kind
@few
@given(seed=seeds)
def test_the_largest_norm_is_the_plain_sum(kind, seed):
    problem = Problem(kind, seed)
    model = problem.fit(p=np.inf, normalize=None)
    assert_array_equal(model.weights_, np.ones_like(model.weights_))
    total, test = problem.train.sum(axis=0), problem.test.sum(axis=0)
    alone = problem.fit(total[None], p=np.inf, normalize=None)
    same_optimum(alone, model)
    diagonal = problem.test_diag.sum(axis=0)
    decision = problem.decide(model)
    close(decision, problem.decide(alone, test[None], diagonal[None]), 1e-6)
    large = problem.fit(p=1e6, normalize=None)
    assert_allclose(large.weights_, model.weights_, atol=1e-4)
    close(problem.decide(large), decision)
    if kind == "two classes":
        theirs = SVC(kernel="precomputed", C=C, tol=1e-8).fit(total, problem.y)
        close(decision, theirs.decision_function(test), 1e-5)
    elif kind == "regression":
        theirs = SVR(kernel="precomputed", C=C, epsilon=EPSILON, tol=1e-8).fit(total, problem.y)
        close(decision, theirs.predict(test), 1e-5)


@every_kind
@few
@given(seed=seeds)
def test_a_larger_ball_has_a_smaller_minimum(kind, seed):
    problem = Problem(kind, seed)
    values = [problem.fit(p=p).certificate_.primal for p in (1, 1 + 1e-4, 1.1, 2, np.inf)]
    assert np.all(np.diff(values) <= 1e-8 * abs(values[0]))
    assert_allclose(values[1], values[0], rtol=1e-3)


@few
@given(seed=seeds, p=norms)
def test_shared_weights_are_no_better_than_separate_ones(seed, p):
    separate = Problem("separate", seed).fit(p=p).certificate_
    shared = Problem("three classes", seed).fit(p=p).certificate_
    assert separate.dual <= shared.primal
    assert separate.primal <= shared.primal + separate.gap
    if p == np.inf:
        assert_allclose(separate.primal, shared.primal, rtol=1e-8)


# -- several machines ------------------------------------------------------------------------


@few
@given(seed=seeds, p=norms, normalize=every_normalization)
def test_separate_machines_are_binary_ones(seed, p, normalize):
    problem = Problem("separate", seed)
    model = problem.fit(p=p, normalize=normalize)
    assert model.weights_.shape == (3, N_KERNELS)
    binary = Problem("two classes", seed)
    machines = [
        binary.fit(y=(problem.y == k).astype(int), p=p, normalize=normalize) for k in range(3)
    ]
    decisions = np.stack([binary.decide(machine) for machine in machines], axis=1)
    assert_allclose(problem.decide(model), decisions, rtol=1e-12, atol=1e-12)
    assert_array_equal(model.weights_, [machine.weights_ for machine in machines])
    assert_allclose(
        model.certificate_.primal, sum(machine.certificate_.primal for machine in machines)
    )
    assert model.n_svm_solves_ == sum(machine.n_svm_solves_ for machine in machines)
    assert_array_equal(
        model.support_, np.unique(np.concatenate([machine.support_ for machine in machines]))
    )


def test_two_classes_are_one_machine_either_way():
    problem = Problem("two classes", 1)
    shared, separate = (problem.fit(multi_class=way) for way in ("shared", "separate"))
    assert_array_equal(shared.weights_, separate.weights_)
    assert shared.weights_.shape == (N_KERNELS,)
    assert_array_equal(problem.decide(shared), problem.decide(separate))


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("normalize", ["multiplicative", "trace", None])
def test_a_learnt_c_is_the_best_given_one(p, normalize):
    """1/C takes its part of the ball, and leaves the kernels a smaller one of radius r."""
    problem = Problem("joint", 6)
    model = problem.fit(p=p, normalize=normalize)
    unit = 1.0 / N_TRAIN if normalize == "trace" else 1.0
    share = 1.0 / (model.C_ * unit)
    radius = 1.0 if p == np.inf else (1.0 - share**p) ** (1.0 / p)
    assert_allclose(np.linalg.norm([share, *model.weights_], p), 1.0, rtol=1e-9)
    given = Problem("squared hinge", 6).fit(
        radius * normalised(problem.train, normalize), p=p, normalize=None, C=model.C_
    )
    same_optimum(given, model)
    close(radius * given.weights_, model.weights_)
    full, other = np.zeros(N_TRAIN), np.zeros(N_TRAIN)
    full[model.support_], other[given.support_] = model.dual_coef_[0], given.dual_coef_[0]
    close(other, full)
    close(given.intercept_, model.intercept_)


# -- weights of samples ----------------------------------------------------------------------


@every_kind
@few
@given(seed=seeds, p=norms, normalize=determined)
def test_an_integer_weight_is_repetition(kind, seed, p, normalize):
    problem = Problem(kind, seed)
    counts = np.random.default_rng(seed).integers(0, 3, size=N_TRAIN)
    counts[:6] = 1
    rows = np.repeat(np.arange(N_TRAIN), counts)
    params = {"p": p, "normalize": normalize}
    if len(np.unique(problem.y[rows])) < len(np.unique(problem.y)) and kind != "regression":
        counts, rows = counts + 1, np.repeat(np.arange(N_TRAIN), counts + 1)
    weighted = problem.fit(sample_weight=counts, **params)
    repeated = problem.fit(problem.train[:, rows][:, :, rows], problem.y[rows], **params)
    same_optimum(weighted, repeated)
    close(problem.decide(weighted), problem.decide(repeated, problem.test[:, :, rows]))
    assert np.all(counts[weighted.support_] > 0)


@pytest.mark.parametrize("kind", ["two classes", "three classes", "separate", "squared hinge"])
@pytest.mark.parametrize("p", PS)
def test_balanced_classes_are_weighted_samples(kind, p):
    """With the kernels as they are; their scales are taken before classes count."""
    problem = Problem(kind, 5)
    n_classes = len(np.unique(problem.y))
    y = (np.arange(N_TRAIN) % 7 % 5).clip(max=n_classes - 1)
    balance = len(y) / (n_classes * np.bincount(y))
    params = {"p": p, "normalize": None}
    weighted = problem.fit(y=y, sample_weight=balance[y], **params)
    for class_weight in ("balanced", dict(enumerate(balance))):
        model = problem.fit(y=y, class_weight=class_weight, **params)
        assert_array_equal(model.weights_, weighted.weights_)
        assert_array_equal(problem.decide(model), problem.decide(weighted))
    assert not np.allclose(problem.decide(problem.fit(y=y, **params)), problem.decide(weighted))


# -- certificate -----------------------------------------------------------------------------


def normalised(kernels, normalize):
    traces = np.trace(kernels, axis1=1, axis2=2) - kernels.sum(axis=(1, 2)) / kernels.shape[1]
    if normalize == "spherical":
        roots = np.sqrt(np.einsum("jii->ji", kernels))
        return kernels / (roots[:, :, None] * roots[:, None])
    divisors = {"multiplicative": traces / kernels.shape[1], "trace": traces}
    return kernels if normalize is None else kernels / divisors[normalize][:, None, None]


def support_function(gains, p):
    return np.linalg.norm(gains, np.inf if p == 1 else 1 if p == np.inf else p / (p - 1))


def bounds_by_hand(kind, problem, model, kernels, p):
    """Primal and dual objective of every machine, from its coefficients, weights and bias."""
    targets = problem.y[:, None].astype(float)
    if kind in ("three classes", "separate"):
        targets = np.where(problem.y[:, None] == np.arange(3), 1.0, -1.0)
    elif kind in ("two classes", "squared hinge"):
        targets = 2.0 * targets - 1.0
    v = np.zeros((N_TRAIN, len(model.dual_coef_)))
    v[model.support_] = model.dual_coef_.T
    weights = np.broadcast_to(model.weights_, (v.shape[1], N_KERNELS))
    products = np.einsum("jrc,ck->jrk", kernels, v)
    f = np.einsum("kj,jrk->rk", weights, products)
    norms = np.sum(v * f, axis=0)
    gains = 0.5 * np.einsum("jrk,rk->kj", products, v)
    f = f + model.intercept_
    slack = np.maximum(0.0, 1.0 - targets * f)
    if kind == "squared hinge":
        loss, linear = 0.5 * C * np.sum(slack**2, axis=0), np.sum(targets * v - v**2 / (2 * C))
    elif kind == "regression":
        loss = C * np.maximum(0.0, np.abs(targets - f) - EPSILON).sum(axis=0)
        linear = np.sum(targets * v - EPSILON * np.abs(v))
    elif kind == "one class":
        loss = np.maximum(0.0, -f).sum(axis=0) - NU * N_TRAIN * model.offset_
        linear = 0.0
    else:
        loss, linear = C * slack.sum(axis=0), np.sum(targets * v)
    if kind != "separate":
        gains = gains.sum(axis=0, keepdims=True)
    primal = float(np.sum(0.5 * norms + loss))
    return primal, float(linear - sum(support_function(g, p) for g in gains))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "joint"])
@few
@given(
    seed=seeds,
    p=st.sampled_from([1, 1.5, np.inf]),
    tol=st.sampled_from([1e-2, 1e-9]),
    normalize=every_normalization,
)
def test_the_certificate_by_hand(kind, seed, p, tol, normalize):
    problem = Problem(kind, seed)
    model = problem.fit(p=p, tol=tol, normalize=normalize)
    kernels = normalised(problem.train, normalize)
    primal, dual = bounds_by_hand(kind, problem, model, kernels, p)
    certificate = model.certificate_
    rounding = 1e-9 * abs(primal)
    assert_allclose(certificate.primal, primal, rtol=0, atol=rounding)
    # Another point on the way may have proved more.
    assert dual <= certificate.dual + rounding
    assert certificate.dual <= primal + rounding
    assert_allclose(certificate.gap, certificate.primal - certificate.dual, atol=rounding)
    assert certificate.converged
    assert certificate.rel_gap <= tol
    for weights in np.atleast_2d(model.weights_):
        assert np.linalg.norm(weights, p) <= 1 + 1e-9
        assert np.all(weights >= 0)


def test_history_of_separate_machines_has_one_entry_per_iteration():
    model = Problem("separate", 0).fit(p=1.1)
    assert {len(values) for values in model.history_.values()} == {model.n_iter_}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "separate"])
@few
@given(seed=seeds, p=norms)
def test_history_leads_down_to_the_certificate(kind, seed, p):
    model = Problem(kind, seed).fit(p=p)
    history = model.history_
    assert {len(values) for values in history.values()} == {model.n_iter_}
    objective = np.array(history["objective"])
    assert np.all(np.diff(objective) <= 1e-9 * abs(objective[0]))
    assert np.all(np.diff(history["n_svm_solves"]) >= 1)
    assert history["rel_gap"][-1] == model.certificate_.rel_gap
    assert objective[-1] == model.certificate_.primal
    assert history["n_svm_solves"][-1] == model.n_svm_solves_


@every_kind
@few
@given(seed=seeds, p=st.sampled_from([1, 1.1, 2]))
def test_a_loose_answer_is_within_its_gap_of_the_best(kind, seed, p):
    problem = Problem(kind, seed)
    loose, tight = problem.fit(p=p, tol=0.1).certificate_, problem.fit(p=p).certificate_
    rounding = 1e-9 * abs(tight.primal)
    assert loose.dual <= tight.primal + rounding
    assert tight.dual <= loose.primal + rounding


# -- what it is for --------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_gets_no_weight_at_p_1(n_classes):
    rng = np.random.default_rng(4)
    y = np.arange(60) % n_classes
    features = np.eye(n_classes)[y] + 0.1 * rng.normal(size=(60, n_classes))
    noise = rng.normal(size=(60, 40))
    stack = KernelStack.from_arrays([noise @ noise.T, features @ features.T])
    for make, target in ((MKSVC, y), (MKSVR, features[:, 0])):
        sparse = make("precomputed", p=1, C=0.05).fit(stack, target)
        assert sparse.weights_[0] == 0.0
        assert_allclose(sparse.weights_[1], 1.0, rtol=1e-9)
        dense = make("precomputed", p=2, C=0.05).fit(stack, target)
        assert 0 < dense.weights_[0] < dense.weights_[1]


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("p", [1, 2])
def test_nu_is_between_the_outliers_and_the_support_vectors(nu, p):
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = MKOneClassSVM(p=p, nu=nu, tol=1e-8).fit(X)
    assert np.mean(model.predict(X) == -1) <= nu <= len(model.support_) / len(X)
    assert_allclose(np.mean(model.predict(X) == -1), nu, atol=0.05)


SOLVERS_AT = {
    1: ["sip", "silp", "analytic", "interleaved", "reduced-gradient", "qcqp"],
    2: ["sip", "analytic", "interleaved", "smo-mkl"],
}
PROBLEMS = {
    "two classes": (MKSVC, {}),
    "three classes": (MKSVC, {}),
    "regression": (MKSVR, {}),
    "one class": (MKOneClassSVM, {"nu": 0.2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical"), None])
def test_predictions_do_not_depend_on_the_solver(kind, normalize):
    """Nor on whether kernels are stored or computed when they are needed."""
    make, params = PROBLEMS[kind]
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(40, 3)) + 1.0, rng.normal(size=(9, 3)) + 1.0
    target = {
        "two classes": X[:, 0] > X[:, 1],
        "three classes": X.argmax(axis=1),
        "regression": np.sin(X[:, 0]),
        "one class": None,
    }[kind]
    kernels = [("wide", RBF(0.1)), ("narrow", RBF(1.0)), ("flat", Linear())]
    for p, names in SOLVERS_AT.items():
        settings = {"p": p, "normalize": normalize, **params}
        expected = make(kernels, tol=1e-6, **settings).fit(X, target)
        for name in names:
            model = make(kernels, solver=name, tol=1e-4, **settings).fit(X, target)
            ours, theirs = model.certificate_, expected.certificate_
            assert abs(ours.primal - theirs.primal) <= ours.gap + theirs.gap + 1e-9
            decide = "predict" if make is MKSVR else "decision_function"
            close(getattr(model, decide)(new), getattr(expected, decide)(new), 0.05)
