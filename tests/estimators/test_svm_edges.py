"""Support vector machines where there is little to learn, and at extreme scales."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKSVC, MKSVR, KernelStack, MKOneClassSVM
from tests.estimators.few_samples import BLOCK, GRAM, N_ROWS, X, Y
from tests.estimators.registry import refused
from tests.problems import slow

KINDS = [MKSVC, MKSVR, MKOneClassSVM]
every_kind = pytest.mark.parametrize("kind", KINDS)


# -- values ----------------------------------------------------------------------------------


def test_only_machines_with_a_bias_take_a_kernel_less_a_constant():
    MKSVC("precomputed").fit(GRAM - 1.0, Y)
    MKSVR("precomputed").fit(GRAM - 1.0, X[:, 0])
    with refused("Kernel 'kernel0' is not positive semi-definite"):
        MKOneClassSVM("precomputed").fit(GRAM - 1.0)


# -- little to learn -------------------------------------------------------------------------

NORMALIZATIONS = ["multiplicative", "trace", "spherical", None]


@pytest.mark.parametrize("normalize", [*NORMALIZATIONS[:2], *slow(*NORMALIZATIONS[2:])])
@pytest.mark.parametrize("p", [1, *slow(1.5, np.inf)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_constant_targets_are_predicted(p, epsilon, normalize):
    model = MKSVR(p=p, epsilon=epsilon, normalize=normalize).fit(X, np.full(N_ROWS, 3.5))
    assert_allclose(model.predict(X[:4]), 3.5, rtol=1e-12)
    assert model.certificate_.converged
    assert len(model.support_) == len(model.support_vectors_) == model.n_support_[0] == 0
    assert model.dual_coef_.shape == (1, 0)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", [NORMALIZATIONS[0], *slow(*NORMALIZATIONS[1:])])
@pytest.mark.parametrize("loss", ["hinge", *slow("squared_hinge")])
@pytest.mark.parametrize("p", [1, 1.5, np.inf])
def test_constant_data_predict_the_larger_class(p, loss, normalize):
    y = np.array(["a", "a", "b"] * 4)
    for data in (np.ones((N_ROWS, 3)), np.zeros((N_ROWS, 1))):
        model = MKSVC(p=p, loss=loss, normalize=normalize).fit(data, y)
        assert set(model.predict(data)) == {"a"}
        assert model.certificate_.converged


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_constant_data_predict_the_median_target(normalize):
    targets = np.array([1.0, 2.0, 2.0, 9.0])
    model = MKSVR(epsilon=0.0, normalize=normalize).fit(np.ones((4, 2)), targets)
    assert_allclose(model.predict(np.ones((2, 2))), 2.0, rtol=1e-12)
    assert model.certificate_.converged


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_class_with_one_sample(multi_class, loss):
    y = np.where(np.arange(N_ROWS) == 5, 2, Y)
    model = MKSVC("rbf", C=100.0, loss=loss, multi_class=multi_class).fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert model.n_support_[2] == 1
    assert model.certificate_.converged


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_as_many_classes_as_samples(multi_class):
    model = MKSVC("rbf", C=100.0, multi_class=multi_class).fit(X, np.arange(N_ROWS))
    assert_array_equal(model.predict(X), np.arange(N_ROWS))


@pytest.mark.parametrize("normalize", [NORMALIZATIONS[0], *slow(*NORMALIZATIONS[1:])])
def test_very_few_samples(normalize):
    for n in (2, 3):
        for params in ({}, {"loss": "squared_hinge", "C": "joint"}):
            model = MKSVC(normalize=normalize, **params).fit(X[:n], Y[:n])
            assert_array_equal(model.predict(X[:2]), Y[:2])
            assert model.certificate_.converged
    for n in (1, 2, 3):
        model = MKSVR(C=1e3, epsilon=0.0, normalize=normalize).fit(X[:n], [5.0, 7.0, 9.0][:n])
        assert_allclose(model.predict(X[:n]), [5.0, 7.0, 9.0][:n], rtol=1e-4)
        inside = MKOneClassSVM(nu=0.1, normalize=normalize).fit(X[:n] + 9.0)
        assert_array_equal(inside.predict(X[:n] + 9.0), 1)
    with refused("at least 2 classes, got 1 class"):
        MKSVC(normalize=normalize).fit(X[:1], Y[:1])


# -- scales ----------------------------------------------------------------------------------


def fitted_scores(kind, train, test, **params):
    model = kind("precomputed", tol=1e-7, **params).fit(KernelStack.from_arrays(train), Y)
    decide = model.predict if kind is MKSVR else model.decision_function
    return model, decide(KernelStack.from_arrays(test, gram=False))


@every_kind
@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("trace")])
def test_kernels_scaled_1e12_apart(kind, p, normalize):
    train, test = np.array([GRAM + 1, GRAM**2]), np.array([BLOCK + 1, BLOCK**2])
    scales = np.array([1e6, 1e-6])[:, None, None]
    params = {"p": p, "normalize": normalize}
    model, expected = fitted_scores(kind, train, test, **params)
    scaled, scores = fitted_scores(kind, train * scales, test * scales, **params)
    assert_allclose(scaled.weights_, model.weights_, atol=1e-5)
    # One-class scores are differences of sums as large as the intercept.
    size = max(np.abs(expected).max(), np.abs(model.intercept_).max())
    assert_allclose(scores, expected, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("kind", [MKSVC, MKSVR])
def test_kernels_not_normalised_are_as_large_as_their_c_is_small(kind, scale):
    """Kernels times s and C over s: the same function, coefficients over s."""
    train, test = np.array([GRAM + 1, 1e-12 * GRAM**2]), np.array([BLOCK + 1, 1e-12 * BLOCK**2])
    params = {"p": 1, "normalize": None}
    model, expected = fitted_scores(kind, train, test, C=0.5, **params)
    scaled, scores = fitted_scores(kind, scale * train, scale * test, C=0.5 / scale, **params)
    assert_allclose(scores, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert_allclose(scaled.weights_, model.weights_, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-8, *slow(1e8)])
def test_the_unit_of_the_data_and_targets_does_not_matter(scale):
    expected = MKSVC(tol=1e-7).fit(X, Y).decision_function(X)
    scaled = MKSVC(tol=1e-7).fit(scale * X, Y).decision_function(scale * X)
    assert_allclose(scaled, expected, rtol=0, atol=1e-4)
    targets = X[:, 0] + 5.0
    expected = MKSVR(tol=1e-7).fit(X, targets).predict(X)
    scaled = MKSVR(tol=1e-7, C=scale, epsilon=0.1 * scale).fit(X, scale * targets).predict(X)
    assert_allclose(scaled / scale, expected, rtol=0, atol=1e-4)


def test_the_penalty_is_reported():
    assert MKSVC(C=3.0).fit(X, Y).C_ == 3.0


@pytest.mark.parametrize("C", [1e-9, 1e-6, 1e6, 1e9])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_extreme_penalties(C, loss):
    y = (X[:, 0] > 0).astype(int)
    model = MKSVC("linear", C=C, loss=loss).fit(X + 2.0 * y[:, None], y)
    assert model.certificate_.converged
    # A soft machine ranks by the difference of the class means.
    scores = model.decision_function(X + 2.0 * y[:, None])
    assert scores[y == 1].min() > scores[y == 0].max() or C < 1
    assert scores[y == 1].mean() > scores[y == 0].mean()


def test_a_line_through_the_origin_of_one_class():
    """The origin lies among the samples, so no half-space keeps away from it."""
    for scale in (1.0, 1e6):
        data = scale * np.vstack([X, -X])
        with pytest.warns(ConvergenceWarning, match="lost in rounding errors"):
            model = MKOneClassSVM("linear", normalize=None).fit(data)
        assert_array_equal(model.predict(data), 1)
