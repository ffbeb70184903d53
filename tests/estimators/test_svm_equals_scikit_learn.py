"""With one kernel the machines are those of scikit-learn, coefficients and all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, OneClassSVM

from manykernels import MKSVC, MKSVR, MKOneClassSVM
from manykernels.kernels import RBF
from tests.problems import slow

N_TRAIN, N_TEST = 100, 30
PENALTIES = [1e-3, 1e-1, 1.0, 1e2, 1e5]
OURS = {"kernels": "precomputed", "normalize": None, "tol": 1e-9}
THEIRS = {"kernel": "precomputed", "tol": 1e-8}


def samples(share=0.5, seed=0):
    """Rows of two blobs that overlap, and the class of the first ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_TRAIN + N_TEST, 3))
    y = (np.arange(N_TRAIN) < share * N_TRAIN).astype(int)
    X[:N_TRAIN] += 0.8 * y[:, None]
    return X, y


def kernel(X):
    """Training and test block, in single precision: that is how LIBSVM stores a kernel."""
    distances = ((X[:, None] - X) ** 2).sum(axis=-1)
    K = np.exp(-0.5 * distances).astype(np.float32).astype(np.float64)
    return K[:N_TRAIN, :N_TRAIN], K[N_TRAIN:, :N_TRAIN]


def weights(seed=1):
    return np.random.default_rng(seed).uniform(0.2, 3.0, N_TRAIN)


def assert_same_machine(ours, theirs, test, tolerance=1e-6):
    order = np.argsort(theirs.support_)
    assert_array_equal(ours.support_, theirs.support_[order])
    assert_array_equal(ours.n_support_, theirs.n_support_)
    method = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    expected = getattr(theirs, method)(test)
    atol = tolerance * np.abs(expected).max()
    assert_allclose(getattr(ours, method)(test), expected, rtol=0, atol=atol)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=atol)
    # Where C is small the coefficients are too, and LIBSVM's tolerance is not relative to it.
    size = max(np.abs(theirs.dual_coef_).max(), 1.0)
    assert_allclose(
        ours.dual_coef_, theirs.dual_coef_[:, order], rtol=0, atol=tolerance * size, strict=True
    )
    assert_array_equal(ours.weights_, [1.0])
    assert ours.certificate_.converged


# -- classification --------------------------------------------------------------------------


UNDETERMINED = {"share": 0.05, "class_weight": "balanced", "C": 1e-3}


TWO_CLASSES = [
    (C, share, class_weight, weighted)
    for C in PENALTIES
    for share in (0.5, 0.05)
    for class_weight, weighted in [
        (None, False),
        (None, True),
        ("balanced", False),
        ({0: 0.5, 1: 3.0}, True),
    ]
    if {"share": share, "class_weight": class_weight, "C": C} != UNDETERMINED
]


@pytest.mark.parametrize(("C", "share", "class_weight", "weighted"), TWO_CLASSES)
def test_two_classes(C, share, class_weight, weighted):
    X, y = samples(share)
    train, test = kernel(X)
    labels = np.array(["no", "yes"])[y]
    if isinstance(class_weight, dict):
        class_weight = {"no": class_weight[0], "yes": class_weight[1]}
    settings = {"C": C, "class_weight": class_weight}
    sample_weight = weights() if weighted else None
    theirs = SVC(**THEIRS, **settings).fit(train, labels, sample_weight)
    ours = MKSVC(**OURS, **settings).fit(train, labels, sample_weight)
    assert_same_machine(ours, theirs, test)
    assert_array_equal(ours.predict(test), theirs.predict(test))
    assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.C_ == C


def test_an_undetermined_bias_is_the_middle():
    """All samples are at their bounds, so that a range of biases is best.

    By rounding LIBSVM takes one sample to be free, and the bias from it; ours is the middle.
    """
    X, y = samples(UNDETERMINED["share"])
    train, test = kernel(X)
    settings = {"C": UNDETERMINED["C"], "class_weight": "balanced"}
    theirs = SVC(**THEIRS, **settings).fit(train, y)
    ours = MKSVC(**OURS, **settings).fit(train, y)
    shift = ours.decision_function(test) - theirs.decision_function(test)
    assert_allclose(shift, shift[0], atol=1e-8)
    penalties = UNDETERMINED["C"] * N_TRAIN / (2 * np.bincount(y)[y])

    def total_slack(machine):
        margins = np.where(y == 1, 1, -1) * machine.decision_function(train)
        return penalties @ np.maximum(1 - margins, 0)

    assert_allclose(total_slack(ours), total_slack(theirs), rtol=1e-9)
    lower, upper = (1 - penalties[0]) * np.array([-1, 1])
    assert lower < ours.intercept_[0] < upper


def test_balanced_classes_count_weights_as_repetitions():
    """Here scikit-learn does not look at the weights; on repeated samples it has to."""
    X, y = samples(0.05)
    train, test = kernel(X)
    counts = np.random.default_rng(2).integers(1, 4, N_TRAIN)
    rows = np.repeat(np.arange(N_TRAIN), counts)
    settings = {"C": 1.0, "class_weight": "balanced"}
    theirs = SVC(**THEIRS, **settings).fit(train[np.ix_(rows, rows)], y[rows])
    ours = MKSVC(**OURS, **settings).fit(train, y, counts)
    expected = theirs.decision_function(test[:, rows])
    assert_allclose(ours.decision_function(test), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_a_table_and_its_kernel(p):
    X, y = samples()
    theirs = SVC(kernel="rbf", gamma=0.5, tol=1e-8).fit(X[:N_TRAIN], y)
    ours = MKSVC(RBF(0.5), p=p, normalize=None, tol=1e-9).fit(X[:N_TRAIN], y)
    assert_same_machine(ours, theirs, X[N_TRAIN:])
    assert_array_equal(ours.support_vectors_, X[ours.support_])


@pytest.mark.parametrize("multi_class", ["separate", "shared"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_three_classes_are_each_against_the_rest(multi_class, class_weight):
    X, y = samples()
    labels = np.array(["cat", "dog", "eel"])[y + (X[:N_TRAIN, 0] > 1)]
    assert len(set(np.bincount(np.unique(labels, return_inverse=True)[1]))) == 3
    train, test = kernel(X)
    factors = np.ones(N_TRAIN)
    if class_weight:
        names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        factors = (N_TRAIN / (len(names) * counts))[codes]
    ours = MKSVC(**OURS, C=2.0, multi_class=multi_class, class_weight=class_weight)
    scores = ours.fit(train, labels).decision_function(test)
    support = set()
    for k, name in enumerate(ours.classes_):
        theirs = SVC(**THEIRS, C=2.0).fit(train, labels == name, factors)
        assert_allclose(scores[:, k], theirs.decision_function(test), rtol=0, atol=1e-6)
        assert_allclose(ours.intercept_[k], theirs.intercept_[0], rtol=0, atol=1e-6)
        full = np.zeros(N_TRAIN)
        full[theirs.support_] = theirs.dual_coef_[0]
        assert_allclose(ours.dual_coef_[k], full[ours.support_], rtol=0, atol=1e-6)
        support |= set(theirs.support_)
    assert_array_equal(ours.support_, sorted(support))
    assert_array_equal(
        ours.n_support_, [np.sum(labels[ours.support_] == n) for n in ours.classes_]
    )
    assert_array_equal(ours.predict(test), ours.classes_[scores.argmax(axis=1)])
    if class_weight is None:
        theirs = OneVsRestClassifier(SVC(**THEIRS, C=2.0)).fit(train, labels)
        assert_array_equal(ours.predict(test), theirs.predict(test))


@pytest.mark.parametrize("C", [0.125, 1.0, 128.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_hinge_is_a_hard_margin_with_a_larger_diagonal(C, weighted):
    """½ C ξ² is a ridge of 1/C on the kernel and no bound (Cortes and Vapnik 1995)."""
    X, y = samples()
    train, test = kernel(X)
    # Powers of two, so that single precision holds the diagonal.
    factors = np.random.default_rng(1).choice([0.5, 1.0, 2.0] if weighted else [1.0], N_TRAIN)
    theirs = SVC(**THEIRS, C=1e8).fit(train + np.diag(1.0 / (C * factors)), y)
    ours = MKSVC(**OURS, C=C, loss="squared_hinge").fit(train, y, factors if weighted else None)
    assert_same_machine(ours, theirs, test)


# -- regression and one class ----------------------------------------------------------------


@pytest.mark.parametrize("C", [*PENALTIES[:3], *slow(*PENALTIES[3:])])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_regression(C, epsilon, weighted):
    X, _ = samples()
    train, test = kernel(X)
    rng = np.random.default_rng(3)
    targets = 5.0 + np.sin(2 * X[:N_TRAIN, 0]) + 0.1 * rng.normal(size=N_TRAIN)
    sample_weight = weights() if weighted else None
    settings = {"C": C, "epsilon": epsilon}
    theirs = SVR(**THEIRS, **settings).fit(train, targets, sample_weight)
    # Bounds of 1e5 on coefficients of 10 leave the gap little to be told by.
    ours = MKSVR(**{**OURS, "tol": 1e-8}, **settings).fit(train, targets, sample_weight)
    assert_same_machine(ours, theirs, test)


@pytest.mark.parametrize("nu", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_class(nu, weighted):
    X, _ = samples()
    train, test = kernel(X)
    sample_weight = weights() if weighted else None
    theirs = OneClassSVM(**THEIRS, nu=nu).fit(train, sample_weight=sample_weight)
    ours = MKOneClassSVM(**OURS, nu=nu).fit(train, sample_weight=sample_weight)
    assert_same_machine(ours, theirs, test)
    assert_array_equal(ours.predict(test), theirs.predict(test))
    assert_allclose(ours.score_samples(test), theirs.score_samples(test), rtol=1e-6)
    assert_allclose(ours.offset_, theirs.offset_[0], rtol=1e-6)
    mass = N_TRAIN if sample_weight is None else sample_weight.sum()
    assert_allclose(ours.dual_coef_.sum(), nu * mass)


def test_one_class_with_everything_outside():
    """At ν = 1 all coefficients are at their bound; scikit-learn finds no offset then."""
    train, test = kernel(samples()[0])
    model = MKOneClassSVM(**OURS, nu=1.0).fit(train)
    assert_allclose(model.dual_coef_, np.ones((1, N_TRAIN)))
    assert_allclose(model.score_samples(test), test.sum(axis=1))
    assert np.isfinite(model.offset_)
    assert model.certificate_.converged
