"""KimFDA: known answers, and the laws that its criterion obeys."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict

from manykernels import MKFDA, KernelStack, KernelUnion, rbf_grid
from manykernels.baselines import KimFDA
from manykernels.kernels import RBF, Linear
from tests.problems import slow

CV = StratifiedKFold(3)
KERNELS = [("narrow", RBF(10.0)), ("middle", RBF(1.0)), ("wide", RBF(0.1)), ("flat", Linear())]


def ring(n_rows, seed=0):
    """A disc inside a ring, more of the disc, and a column of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    return X, np.where(np.sum(X[:, :2] ** 2, axis=1) > 2.0, "ring", "disc")


X, y = ring(60)
X_TEST, Y_TEST = ring(200, seed=1)
UNION = KernelUnion(KERNELS).fit(X)
STACK, TEST_STACK = UNION(X), UNION(X_TEST, X)


def test_it_learns_what_a_linear_discriminant_cannot():
    model = KimFDA(KERNELS).fit(X, y)
    assert model.score(X_TEST, Y_TEST) > 0.78
    assert KimFDA("linear").fit(X, y).score(X_TEST, Y_TEST) < 0.75
    assert model.certificate_.converged
    assert model.certificate_.primal < 0
    assert model.n_inner_solves_ <= 8
    assert_allclose(model.weights_.sum(), 1.0)
    assert model.reg_ == 1e-8


@pytest.mark.parametrize("data", [STACK, np.asarray(STACK)], ids=["stack", "array"])
def test_table_and_stack_predict_alike_with_hardly_any_regularisation(data):
    new = TEST_STACK if data is STACK else np.asarray(TEST_STACK)
    expected = KimFDA(KERNELS).fit(X, y)
    model = KimFDA("precomputed").fit(data, y)
    assert_allclose(model.weights_, expected.weights_, atol=1e-6)
    assert_allclose(model.decision_function(new), expected.decision_function(X_TEST), atol=1e-4)


def test_grid_search_and_cross_validation():
    grid = {"reg": [1e-8, 1e-2, 100.0], "kernels__narrow__gamma": [0.5, 50.0]}
    search = GridSearchCV(KimFDA(KERNELS), grid, cv=CV).fit(X, y)
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
    assert search.score(X_TEST, Y_TEST) > 0.78
    params = {"cv": CV, "method": "decision_function"}
    model = KimFDA(rbf_grid([0.1, 1.0], gamma=0.5))
    on_table = cross_val_predict(model, X, y, **params)
    stack = KernelUnion(model.kernels.kernels).fit(X)(X)
    assert_allclose(
        cross_val_predict(KimFDA("precomputed"), stack, y, **params), on_table, rtol=1e-4
    )


# -- known answers ---------------------------------------------------------------------------


def linear_problem(n_positive, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(40) < n_positive).astype(int)
    return rng.normal(size=(40, 4)) @ np.diag([1, 2, 3, 0.5]) + np.outer(y, [1, 1, 0, 0.5]) + 3, y


@pytest.mark.parametrize("reg", [1e-6, 0.1, 10.0])
def test_one_linear_kernel_is_regularised_fisher(reg):
    """w ∝ (m₊/m S₊ + m₋/m S₋ + (λ/2)I)⁻¹(μ₊ − μ₋), Ye 2008 (2), for classes of equal size.

    The matrix J of Ye 2008 (3) belongs to S₊ + S₋ + λI, which is twice that.
    """
    X, y = linear_problem(20)
    model = KimFDA("linear", reg=reg).fit(X, y)
    within = [np.cov(X[y == k].T, bias=True) for k in (0, 1)]
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    mean_scatter = (within[0] + within[1]) / 2 + reg / 2 * np.eye(4)
    direction = np.linalg.solve(mean_scatter, difference)
    found = (X - X.mean(axis=0)).T @ model.scalings_[:, 0]
    cosine = found @ direction / (np.linalg.norm(found) * np.linalg.norm(direction))
    assert cosine == pytest.approx(1.0, abs=1e-9)
    assert -model.certificate_.primal == pytest.approx(difference @ direction / 2, rel=1e-8)


@pytest.mark.parametrize("n_positive", [12, 20])
def test_unequal_classes_have_the_sum_of_their_covariances(n_positive):
    X, y = linear_problem(n_positive)
    model = KimFDA("linear", reg=0.5).fit(X, y)
    scatter = sum(np.cov(X[y == k].T, bias=True) for k in (0, 1)) + 0.5 * np.eye(4)
    direction = np.linalg.solve(scatter, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    found = (X - X.mean(axis=0)).T @ model.scalings_[:, 0]
    assert_allclose(
        found / np.linalg.norm(found), direction / np.linalg.norm(direction), atol=1e-9
    )


@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical", None)])
@pytest.mark.parametrize("p", [1, 1.5])
def test_weights_and_direction_are_those_of_balanced_mkfda(p, normalize):
    reg, balance = 1e-3, len(y) / (2 * np.unique(y, return_counts=True)[1])
    # Means and scales of normalisations differ with the weights; samples have them here.
    weight = balance[(y == "ring").astype(int)]
    settings = {"p": p, "normalize": normalize, "tol": 1e-9}
    kim = KimFDA(KERNELS, reg=reg, **settings).fit(X, y, sample_weight=weight)
    fda = MKFDA(KERNELS, reg=reg * len(y) / 2, **settings).fit(X, y, sample_weight=weight)
    assert_allclose(kim.weights_, fda.weights_, atol=1e-6)
    ours, theirs = (model.transform(X_TEST)[:, 0] for model in (kim, fda))
    assert abs(np.corrcoef(ours, theirs)[0, 1]) == pytest.approx(1.0, abs=1e-8)


def test_the_equality_that_the_documentation_states():
    kim = KimFDA(KERNELS, reg=1e-3, tol=1e-9).fit(X, y)
    settings = {"p": 1, "normalize": None, "class_weight": "balanced", "tol": 1e-9}
    fda = MKFDA(KERNELS, reg=1e-3 * len(y) / 2, **settings).fit(X, y)
    assert_allclose(kim.weights_, fda.weights_, atol=1e-6)
    assert np.count_nonzero(kim.weights_) == 3, "one kernel alone would test nothing"


def test_the_decision_is_for_the_nearest_mean_with_priors():
    for priors in (None, [0.5, 0.5], [0.9, 0.1]):
        model = KimFDA(KERNELS, priors=priors).fit(X, y)
        distances = (model.transform(X_TEST) - model.means_[:, 0]) ** 2
        frequencies = np.bincount(y == model.classes_[1]) / len(y)
        scores = np.log(frequencies) - distances / 2
        shift = np.diff(np.log(model.priors_) - np.log(frequencies))[0]
        odds = model.decision_function(X_TEST) - shift
        # Distances between means and the samples' outputs, tempered by one factor.
        ratio = odds / (scores[:, 1] - scores[:, 0])
        assert_allclose(ratio, ratio[0], rtol=1e-4)
        assert 0.0 < ratio[0] < 2.0


@pytest.mark.parametrize("reg", [1e-8, 1e-4, 1e-1])
def test_probabilities_are_not_those_of_outputs_at_training_samples(reg):
    """At λ = 1e-8 training outputs are two points; test samples still get fair probabilities."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 400)
    table = rng.normal(size=(400, 3)) + 1.0 * labels[:, None]
    model = KimFDA([("a", RBF(0.1)), ("b", RBF(0.5))], reg=reg).fit(table[:100], labels[:100])
    outputs = model.transform(table[:100])[:, 0]
    if reg == 1e-8:
        spread = max(np.std(outputs[labels[:100] == k]) for k in (0, 1))
        assert spread < 1e-3 * np.ptp(outputs)
    proba = model.predict_proba(table[100:])
    loss = -np.mean(np.log(proba[np.arange(300), labels[100:]]))
    # Where nothing is left of the classes but their names, as at λ = 1e-8 here, it says so.
    assert loss < {1e-8: np.log(2) + 0.01, 1e-4: 0.68, 1e-1: 0.5}[reg]
    new = model.transform(table[100:])[:, 0]
    spread = np.mean([np.std(new[labels[100:] == k]) for k in (0, 1)])
    assert spread == pytest.approx(1.0, abs=0.2)


# -- weights of samples ----------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "trace", None])
def test_an_integer_weight_is_repetition_and_zero_is_absence(normalize):
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    kernels = [("narrow", RBF(1.0)), ("flat", Linear())]
    model = KimFDA(kernels, reg=1e-2, normalize=normalize, tol=1e-9)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    repeated = clone(model).fit(X[rows], y[rows])
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-5)
    assert_allclose(weighted.priors_, repeated.priors_)
    assert_allclose(
        weighted.decision_function(X_TEST), repeated.decision_function(X_TEST), atol=1e-4
    )


def test_the_weight_of_a_class_moves_the_threshold_only():
    weight = np.where(y == "ring", 5.0, 1.0)
    plain = KimFDA(KERNELS, reg=1e-3).fit(X, y)
    heavy = KimFDA(KERNELS, reg=1e-3).fit(X, y, sample_weight=weight)
    assert_allclose(heavy.weights_, plain.weights_, atol=1e-6)
    outputs = [model.transform(X_TEST)[:, 0] for model in (plain, heavy)]
    assert np.corrcoef(*outputs)[0, 1] == pytest.approx(1.0, abs=1e-8)
    assert heavy.priors_[1] > plain.priors_[1]


# -- solvers and settings --------------------------------------------------------------------


def test_the_plain_sum():
    model = KimFDA(KERNELS, p=np.inf).fit(X, y)
    assert_array_equal(model.weights_, 1.0)
    assert model.n_inner_solves_ == 1


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
def test_constant_data_predict_the_largest_prior():
    for table in (np.ones((60, 3)), np.zeros((60, 1)), np.full((60, 2), 0.1)):
        model = KimFDA().fit(table, y)
        assert set(model.predict(table)) == {"disc"}
        assert_allclose(model.predict_proba(table), np.tile(model.priors_, (60, 1)), atol=1 / 62)


# -- what it refuses -------------------------------------------------------------------------


def test_three_classes_are_for_mkfda():
    labels = np.arange(60) % 3
    with pytest.raises(
        ValueError, match=r"Only binary.*3 classes: \[0, 1, 2\].*MKFDA supports any"
    ):
        KimFDA().fit(X, labels)
    with pytest.raises(ValueError, match="MKFDA supports any"):
        KimFDA().fit(X, labels, sample_weight=np.ones(60))
    two = KimFDA().fit(X, labels, sample_weight=labels != 2)
    assert_array_equal(two.classes_, [0, 1])


def test_a_regularisation_lost_in_rounding_is_refused():
    with pytest.raises(ValueError, match="reg=1e-08 is lost in the rounding"):
        KimFDA("linear").fit(1e7 * X, y)
    scaled = KimFDA("linear", normalize="multiplicative").fit(1e7 * X, y)
    plain = KimFDA("linear", normalize="multiplicative").fit(X, y)
    assert_allclose(
        scaled.decision_function(1e7 * X_TEST), plain.decision_function(X_TEST), rtol=1e-4
    )


def test_kernels_in_single_precision_raise_the_regularisation():
    exact = KernelUnion([("a", RBF(0.05)), ("b", RBF(0.01))]).fit(X)
    train, new = (100.0 * np.asarray(exact(*rows)) for rows in ((X,), (X_TEST, X)))
    single = train.astype(np.float32)
    for data in (single, KernelStack.from_arrays(np.moveaxis(single, -1, 0))):
        model = KimFDA("precomputed").fit(data, y)
        assert 1e-8 < model.reg_ < 1e-4
        assert model.score(new, Y_TEST) > 0.75
    assert KimFDA("precomputed").fit(train, y).reg_ == 1e-8
