"""Derivatives of kernels against differences, and the factors of linear kernels."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from manykernels.kernels import RBF, Cosine, Jaccard, Laplacian, Linear, Polynomial
from manykernels.kernels.slopes import form_of, slopes, squared_factors

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4)) * [1.0, 2.0, 0.5, 3.0] + 1.0
NEW = RNG.standard_normal((5, 4))
SCALERS = [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()]

SMOOTH = [
    RBF(0.2),
    RBF("median", 0.7).on([0, 2]),
    Polynomial(3, 0.3),
    Polynomial(2, 0.3, coef0=0.0),
    Cosine(),
    RBF(0.1) + 2.5 * 0 + Linear(),
    (RBF(0.1).on([1]) + Linear()).on([3, 1]).after(StandardScaler()),
    *(RBF().after(scaler) for scaler in SCALERS),
    RBF().after(make_pipeline(StandardScaler(), MinMaxScaler((-1, 1)))),
]
LINEAR = [Linear(), Linear().on([2, 0]), Polynomial(1, 0.4), Linear() + Linear().on([1])]
LINEAR += [Linear().after(scaler) for scaler in SCALERS]


def by_differences(kernel, coefficients, step=1e-5):
    columns = []
    for j in range(NEW.shape[1]):
        shift = step * np.eye(NEW.shape[1])[j]
        change = kernel(NEW + shift, X) - kernel(NEW - shift, X)
        columns.append((coefficients * change).sum(axis=1) / (2.0 * step))
    return np.column_stack(columns)


@pytest.mark.parametrize("kernel", [*SMOOTH, *LINEAR], ids=str)
def test_slopes_are_limits_of_differences(kernel):
    rng = np.random.default_rng(0)
    kernel = kernel.fit(X)
    coefficients = rng.standard_normal((len(NEW), len(X)))
    expected = by_differences(kernel, coefficients)
    actual = slopes(kernel, NEW, X, coefficients)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", SMOOTH[:5], ids=str)
def test_slopes_of_sparse_tables_are_those_of_dense_ones(kernel):
    rng = np.random.default_rng(0)
    kernel = kernel.fit(X)
    coefficients = rng.standard_normal((len(NEW), len(X)))
    new, table = sparse.csr_array(NEW), sparse.csr_array(X)
    expected = slopes(kernel, NEW, X, coefficients)
    np.testing.assert_allclose(slopes(kernel, new, table, coefficients), expected, rtol=1e-9)


def test_slopes_by_names_of_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    kernel = RBF(0.3).on(["d", "a"]).fit(frame)
    coefficients = rng.standard_normal((len(X), len(X)))
    expected = slopes(RBF(0.3).on([3, 0]).fit(X), X, X, coefficients)
    np.testing.assert_allclose(slopes(kernel, frame, frame, coefficients), expected)
    assert not expected[:, [1, 2]].any()


@pytest.mark.parametrize("kernel", LINEAR, ids=str)
def test_factors_of_linear_kernels_give_the_centred_kernel(kernel):
    kernel = kernel.fit(X)
    centred = X - X.mean(axis=0)
    K = kernel(X)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    np.testing.assert_allclose((centred * squared_factors(kernel, X)) @ centred.T, K, atol=1e-10)


def test_forms_of_kernels():
    assert {form_of(kernel.fit(X)) for kernel in LINEAR} == {"linear"}
    assert {form_of(kernel.fit(X)) for kernel in SMOOTH} == {"smooth"}
    others = [Laplacian(), Linear() * Linear(), Laplacian() + Linear()]
    assert {form_of(kernel.fit(X)) for kernel in others} == {None}
    assert form_of(Jaccard().fit(X > 0)) is None
    assert form_of(RBF().after(MinMaxScaler(clip=True)).fit(X)) is None
