"""The standard kernels against scikit-learn, their bandwidths and their errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from manykernels.kernels import RBF, ChiSquare, Cosine, Intersection, Laplacian, Linear, Polynomial


@pytest.fixture(name="X")
def table():
    return np.random.default_rng(1).gamma(1.0, size=(15, 3))


@pytest.fixture(name="Y")
def other_table():
    return np.random.default_rng(2).gamma(1.0, size=(7, 3))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Linear(), pairwise.linear_kernel),
        (RBF(gamma="auto"), pairwise.rbf_kernel),
        (Laplacian(gamma="auto"), pairwise.laplacian_kernel),
        (Polynomial(), pairwise.polynomial_kernel),
        (Cosine(), pairwise.cosine_similarity),
        (ChiSquare(), pairwise.chi2_kernel),
        (Intersection(), lambda X, Y: np.minimum(X[:, None], Y).sum(axis=2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_agrees_with_reference(kernel, reference, X, Y):
    assert_allclose(kernel.fit(X)(X, Y), reference(X, Y), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Linear(), RBF(), RBF("median"), Laplacian(), Polynomial(gamma="scale"), Cosine()]
)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_equals_dense(kernel, container, X, Y):
    X[X < 1] = 0.0
    dense = kernel.fit(X)(X, Y), kernel.diag(X)
    weights = np.arange(15) % 4
    kernel.fit(container(X))
    assert_allclose(kernel(container(X), container(Y)), dense[0], rtol=1e-10)
    assert_allclose(kernel(container(X), Y), dense[0], rtol=1e-10)
    assert_allclose(kernel.diag(container(X)), dense[1], rtol=1e-10)
    weighted = kernel.fit(container(X), sample_weight=weights)(X)
    assert_allclose(weighted, kernel.fit(X, sample_weight=weights)(X), rtol=1e-10)


@pytest.mark.parametrize("kernel", [ChiSquare(), Intersection()])
def test_histogram_kernels_refuse_sparse(kernel, X):
    with pytest.raises(TypeError, match=f"{type(kernel).__name__}: Sparse data"):
        kernel.fit(sparse.csr_array(X))


def test_width_is_sigma_when_gamma_is_a_half(X):
    assert_allclose(RBF(gamma=0.5, width=3.0)(X), np.exp(-(cdist(X, X) ** 2) / (2 * 3.0**2)))


def test_rbf_diagonal_is_exactly_one(X):
    assert_array_equal(np.diagonal(RBF(gamma=123.4)(X)), 1.0)


def test_rbf_is_accurate_far_from_the_origin(X):
    assert_allclose(RBF(gamma=1.0)(X + 1e7), RBF(gamma=1.0)(X), rtol=1e-6)


def test_intersection_in_blocks_equals_at_once(X, Y, monkeypatch):
    at_once = Intersection()(X, Y)
    monkeypatch.setattr("manykernels.kernels.standard._BLOCK_ENTRIES", 50)
    assert_array_equal(Intersection()(X, Y), at_once)


# -- bandwidths ------------------------------------------------------------------------------


def test_scale_is_that_of_svc(X):
    svc = SVC().fit(X, np.arange(15) % 2)
    assert RBF().fit(X).gamma_ == pytest.approx(svc._gamma, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1.7, -1e9])
@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_equal_rows_have_gamma_one(value, gamma):
    X = np.full((8, 87), value)
    for weights in (None, np.sqrt(np.arange(1.0, 9.0))):
        assert RBF(gamma).fit(X, sample_weight=weights).gamma_ == 1.0


def test_median_is_over_all_ordered_pairs():
    X = np.array([[0.0], [1.0], [3.0]])
    # Squared distances 0 0 0 1 1 4 4 9 9: the fifth is the median.
    assert RBF("median").fit(X).gamma_ == pytest.approx(1.0)
    # Absolute distances 0 0 0 1 1 2 2 3 3.
    assert Laplacian("median").fit(X).gamma_ == 1.0


def test_median_of_zero_falls_back_to_the_mean():
    X = np.array([[0.0], [0.0], [0.0], [2.0]])
    assert RBF("median").fit(X).gamma_ == 1 / (6 * 4.0 / 16)


def test_median_of_many_rows_comes_from_a_strided_sample():
    X = np.random.default_rng(0).normal(size=(2500, 2))
    rows = np.linspace(0, 2499, 500).astype(int)
    assert RBF("median").fit(X).gamma_ == RBF("median").fit(X[rows]).gamma_


def test_learnt_gamma_waits_for_fit(X):
    message = r"RBF\(gamma='median'\) takes its gamma from training rows: call fit first"
    with pytest.raises(NotFittedError, match=message):
        RBF("median")(X)
    assert RBF(0.2)(X).shape == (15, 15)


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [
        (RBF(gamma=-1.0), "gamma"),
        (RBF(gamma="widest"), "gamma"),
        (RBF(gamma=np.nan), "gamma"),
        (RBF(width=0.0), "width"),
        (Laplacian(gamma=0), "gamma"),
        (ChiSquare(gamma="scale"), "gamma"),
        (Polynomial(degree=0), "degree"),
        (Polynomial(degree=1.5), "degree"),
        (Polynomial(coef0=np.inf), "coef0"),
    ],
)
def test_wrong_parameters_are_named(kernel, parameter, X):
    message = f"'{parameter}' parameter of {type(kernel).__name__}"
    with pytest.raises(ValueError, match=message):
        kernel.fit(X)
    with pytest.raises(ValueError, match=message):
        kernel.diag(X)


def test_overflow_names_kernel_and_entry():
    with pytest.raises(ValueError, match=r"'Polynomial'.* row 1, column 1"):
        Polynomial(degree=5, gamma=1.0)([[0.0], [1e150]])
    with pytest.raises(ValueError, match=r"'Linear'.* row 0"):
        Linear().diag([[1e200]])
    with pytest.raises(ValueError, match=r"'RBF'.* row 0"):
        RBF(gamma=1.0, width=1e-200)([[1.0], [1.0]])


@pytest.mark.parametrize("kernel", [ChiSquare(), Intersection()])
def test_negative_histograms_are_located(kernel, X):
    X[4, 2] = -0.25
    message = f"{type(kernel).__name__}: .*-0.25 at row 4, selected column 2"
    with pytest.raises(ValueError, match=message):
        kernel(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "RBF: Expected 2D array"),
        ([["a"], ["b"]], "RBF: could not convert string"),
        (np.empty((3, 0)), "RBF: Found array with 0 feature"),
        ([[1.0], [np.inf]], r"RBF: X has an infinite value \(inf\) at row 1, selected column 0"),
    ],
)
def test_unusable_data_is_refused_by_the_kernel_by_name(X, message):
    with pytest.raises(ValueError, match=message):
        RBF().fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0, -1.0], "[Nn]egative"), ([1.0], "shape"), ([0.0, 0.0], "zero")],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        RBF().fit([[1.0], [2.0]], sample_weight=weights)


def test_polynomial_with_negative_offset_is_not_psd():
    assert Polynomial(coef0=0.0).is_psd
    assert not Polynomial(coef0=-1.0).is_psd


@pytest.mark.parametrize("shape", [(10, 3), (8, 87), (8, 5000)])
def test_a_sparse_table_of_equal_entries_has_no_scale(shape):
    """Rounding errors of the mean are no variance."""
    weights = np.sqrt(np.arange(1.0, shape[0] + 1))
    table = sparse.csr_array(np.full(shape, 0.7))
    assert RBF().fit(table, sample_weight=weights).gamma_ == 1.0
