"""Coefficients of the columns: outputs are linear in the columns with exactly these."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from manykernels import (
    MKFDA,
    MKFDACV,
    MKGLM,
    MKSVC,
    MKSVR,
    MKCox,
    MKLogistic,
    MKRidge,
    MKRidgeCV,
    Nystrom,
    load,
    save,
)
from manykernels.kernels import RBF, Laplacian, Linear

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4)) * [1.0, 2.0, 3.0, 4.0] + 5.0
NUMBERS = X[:, 0] - 0.5 * X[:, 1] + RNG.standard_normal(60)
CLASSES = np.digitize(NUMBERS, [1.5, 4.0])
KERNELS = [("all", Linear()), ("some", Linear().on([0, 1]).after(StandardScaler()))]


def assert_linear(outputs, X, coef):
    tables = {"": X} if not isinstance(X, dict) else X
    coef = {"": coef} if not isinstance(coef, dict) else coef
    expected = sum(tables[view] @ values.T for view, values in coef.items())
    rest = (outputs - np.reshape(expected, outputs.shape)).reshape(len(outputs), -1)
    np.testing.assert_allclose(rest, np.broadcast_to(rest[0], rest.shape), atol=1e-8)


@pytest.mark.parametrize("model", [MKFDA, MKSVC, MKLogistic, MKFDACV])
@pytest.mark.parametrize("y", [CLASSES > 0, CLASSES], ids=["two", "three"])
def test_of_classifiers(model, y):
    fitted = model(KERNELS).fit(X, y)
    assert fitted.coef_.shape == ((1, 4) if y.dtype == bool else (3, 4))
    assert_linear(fitted.decision_function(X), X, fitted.coef_)


@pytest.mark.parametrize("model", [MKRidge, MKRidgeCV, MKSVR])
def test_of_regressors(model):
    fitted = model(KERNELS).fit(X, NUMBERS)
    assert fitted.coef_.shape == (4,)
    assert_linear(fitted.predict(X), X, fitted.coef_)


def test_of_counts():
    fitted = MKGLM(Linear()).fit(X, CLASSES)
    assert_linear(np.log(fitted.predict(X)), X, fitted.coef_)


def test_of_several_targets():
    fitted = MKRidge(KERNELS).fit(X, np.column_stack([NUMBERS, -(NUMBERS**2)]))
    assert fitted.coef_.shape == (2, 4)
    assert_linear(fitted.predict(X), X, fitted.coef_)
    assert MKRidge(KERNELS).fit(X, NUMBERS[:, None]).coef_.shape == (1, 4)


def test_of_survival_times():
    y = pd.DataFrame({"event": np.arange(60) % 3 > 0, "time": np.exp(NUMBERS - 5)})
    fitted = MKCox(Linear()).fit(X, y)
    assert_linear(fitted.predict(X), X, fitted.coef_)


def test_is_that_of_ridge_regression():
    fitted = MKRidge(Linear(), reg=2.0, normalize=None).fit(X, NUMBERS)
    np.testing.assert_allclose(fitted.coef_, Ridge(2.0).fit(X, NUMBERS).coef_)


def test_with_sample_weights():
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, 60)
    fitted = MKRidge(Linear(), reg=2.0, normalize=None).fit(X, NUMBERS, weights)
    expected = Ridge(2.0).fit(X, NUMBERS, weights).coef_
    np.testing.assert_allclose(fitted.coef_, expected)


def test_of_sparse_tables():
    expected = MKRidge(Linear()).fit(X, NUMBERS).coef_
    np.testing.assert_allclose(MKRidge(Linear()).fit(sparse.csr_array(X), NUMBERS).coef_, expected)


def test_of_views():
    views = {"a": X[:, :1], "b": X[:, 1:]}
    fitted = MKRidge(Linear()).fit(views, NUMBERS)
    assert {view: values.shape for view, values in fitted.coef_.items()} == {"a": (1,), "b": (3,)}
    assert_linear(fitted.predict(views), views, fitted.coef_)


def test_of_views_whose_kernels_are_linear():
    views = {"a": X[:, :1], "b": X[:, 1:]}
    fitted = MKRidge({"a": Linear(), "b": RBF()}).fit(views, NUMBERS)
    assert list(fitted.coef_) == ["a"]


def test_kernels_without_weight_do_not_matter():
    rng = np.random.default_rng(0)
    kernels = [("linear", Linear().on([0])), ("noise", Laplacian().on([3]))]
    y = X[:, 0] + 1e-3 * rng.standard_normal(60)
    fitted = MKRidge(kernels, p=1, reg=10.0).fit(X, y)
    assert fitted.weights_[1] == 0.0
    assert fitted.coef_[0] > 0.0
    assert not fitted.coef_[1:].any()


def test_of_a_model_from_a_file(tmp_path):
    fitted = MKRidge(Linear()).fit(X, NUMBERS)
    save(fitted, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").coef_, fitted.coef_)


@pytest.mark.parametrize(
    ("model", "X", "reason"),
    [
        (MKRidge(RBF()), X, "kernel 'rbf' is not linear in the columns"),
        (MKRidge(Linear(), normalize="spherical"), X, "transformed by Spherical"),
        (MKRidge("precomputed"), X @ X.T, "kernel matrices, which have no columns"),
        (MKRidge(Linear() * Linear()), X, "is not linear in the columns"),
    ],
)
def test_other_models_have_none(model, X, reason):
    fitted = model.fit(X, NUMBERS)
    assert not hasattr(fitted, "coef_")
    with pytest.raises(AttributeError, match=reason):
        _ = fitted.coef_


def test_of_explicit_features_stays_theirs():
    fitted = MKRidge(Linear(), approximation=Nystrom(10, random_state=0)).fit(X, NUMBERS)
    assert fitted.coef_.shape[0] == fitted._predictor.coefficients.shape[0]


def test_unfitted_models_have_none():
    assert not hasattr(MKRidge(Linear()), "coef_")
