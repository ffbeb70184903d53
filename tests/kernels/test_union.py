"""Named kernels into one stack."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Matern

from manykernels.kernels import (
    RBF,
    ChiSquare,
    FromDistances,
    KernelUnion,
    Laplacian,
    Linear,
    Polynomial,
    rbf_grid,
)
from manykernels.kernels.adapters import PairwiseKernel
from manykernels.kernels.base import ManhattanDistances


@pytest.fixture
def union():
    return KernelUnion(
        [
            ("rbf", RBF(gamma="median")),
            ("wide", RBF(gamma="median", width=3.0)),
            ("shape", RBF().on([0, 1])),
            ("chi", ChiSquare()),
            ("linear", "linear"),
            ("matern", Matern()),
        ]
    )


@pytest.fixture(name="X")
def table():
    return np.random.default_rng(0).gamma(1.0, size=(10, 4))


# -- evaluation ------------------------------------------------------------------------------


def test_stack_equals_the_kernels(union, X):
    stack = union.fit(X)(X[:4], X)
    assert stack.names == union.names_ == ["rbf", "wide", "shape", "chi", "linear", "matern"]
    assert not stack.gram
    for j, (_, kernel) in enumerate(union.kernels_):
        assert_array_equal(stack.data[j], kernel(X[:4], X))
        assert_array_equal(stack.row_diag[j], kernel.diag(X[:4]))
        assert_array_equal(stack.col_diag[j], kernel.diag(X))


def test_gram_stack(union, X):
    stack = union.fit(X)(X)
    assert stack.gram
    assert stack.checked
    assert_allclose(stack.row_diag, union.diag(X))
    for j, (_, kernel) in enumerate(union.kernels_):
        assert_array_equal(stack.data[j], kernel(X))


def test_memmap(union, X, tmp_path):
    path = tmp_path / "stack.npy"
    stack = union.fit(X)(X, memmap=path)
    assert_array_equal(np.load(path), union(X).data)
    assert isinstance(stack.data, np.memmap)


def test_equal_columns_share_their_distances(X, monkeypatch):
    calls = []

    class Counted(ManhattanDistances):
        def tile(self, rows, columns):
            calls.append((rows, columns))
            return super().tile(rows, columns)

    monkeypatch.setattr(Laplacian, "_comparison", Counted)
    union = KernelUnion(
        [
            ("a", Laplacian(0.1)),
            ("b", Laplacian(1.0).on(slice(None))),
            ("c", Laplacian(10.0).on([0, 1])),
            ("d", Laplacian(20.0).on(slice(0, 2))),
            ("e", Laplacian(0.3)),
        ]
    ).fit(X)
    stack = union(X)
    assert len(calls) == 2
    for j, (_, kernel) in enumerate(union.kernels_):
        assert_array_equal(stack.data[j], kernel(X))


def test_weights_reach_the_kernels(union, X):
    counts = np.arange(10) % 3
    weighted = union.fit(X, sample_weight=counts)(X)
    repeated = clone(union).fit(np.repeat(X, counts, axis=0))(X)
    assert_allclose(weighted.data, repeated.data, rtol=1e-12)


def test_fit_leaves_the_given_kernels_alone(union, X):
    union.fit(X)
    assert not hasattr(union.kernels[0][1], "gamma_")


def test_subset_is_fitted(union, X):
    union.fit(X)
    for indices in ([1, 3], np.array([False, True, False, True, False, False]), slice(1, 4, 2)):
        part = union.subset(indices)
        assert part.names_ == ["wide", "chi"]
        assert_array_equal(part(X).data, union(X).data[[1, 3]])
    assert union.subset(-1).names_ == ["matern"]


def test_dataframe_with_a_kernel_per_column():
    X = pd.DataFrame({"size": [1.0, 2.0], "word": ["u", "v"], "age": [3.0, 4.0]})
    union = KernelUnion([("size", Linear().on("size")), ("age", Linear().on("age"))])
    assert_array_equal(union.fit(X)(X).data[:, 1, 1], [4.0, 16.0])


# -- parameters ------------------------------------------------------------------------------


def test_parameters_by_name(union):
    assert union.get_params()["rbf__gamma"] == "median"
    union.set_params(rbf__gamma=2.0, linear=Polynomial())
    union.set_params(linear__degree=5)
    assert dict(union.kernels)["rbf"].gamma == 2.0
    assert dict(union.kernels)["linear"].degree == 5
    assert clone(union).get_params()["linear__degree"] == 5


def test_parameters_of_strange_names():
    union = rbf_grid([0.5]).set_params(**{"rbf(0.5)__width": 2.0})
    assert union.kernels[0][1].width == 2.0


def test_html_shows_every_kernel(union, X):
    for candidate in (union, clone(union).fit(X)):
        html = candidate._repr_html_()
        assert all(name in html for name in ("KernelUnion", "rbf", "chi", "matern"))


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "at least one"),
        (None, "must be a list of"),
        ({}, "at least one"),
        ([Linear()], r"must be a pair \(name, kernel\), got Linear\(\)"),
        ([("a", Linear(), 1)], "must be a pair"),
        ([(0, Linear())], "must be a pair"),
        ([("a", Linear()), ("a", RBF())], "not unique"),
        ([("a__b", Linear())], "__"),
        ([("kernels", Linear())], "conflict"),
    ],
)
def test_wrong_lists_of_kernels(kernels, message):
    with pytest.raises(ValueError, match=message):
        KernelUnion(kernels).fit([[1.0]])


# -- errors ----------------------------------------------------------------------------------


def test_not_fitted(union, X):
    for use in (union, union.diag, union.subset):
        with pytest.raises(NotFittedError):
            use(X)


def test_errors_name_the_kernel(X):
    with pytest.raises(ValueError, match=r"kernel 'texture': ChiSquare: .*negative"):
        KernelUnion([("lin", "linear"), ("texture", ChiSquare())]).fit(-X)
    with pytest.raises(TypeError, match="kernel 'odd': 3 is not a kernel"):
        KernelUnion([("odd", 3)]).fit(X)
    union = KernelUnion([("lin", "linear"), ("texture", ChiSquare())]).fit(X)
    for use in (union, union.diag):
        with pytest.raises(ValueError, match=r"kernel 'texture': ChiSquare: .*negative"):
            use(-X)
    with pytest.raises(ValueError, match="kernel 'lin': Linear: X has 2 columns"):
        union(X[:, :2])


def test_indefinite_kernels_are_refused_by_name(X):
    sigmoid = PairwiseKernel("sigmoid", params={"gamma": 1.0, "coef0": -3.0})
    union = KernelUnion([("lin", "linear"), ("sig", sigmoid)]).fit(X)
    with pytest.raises(ValueError, match="'sig' is not positive semi-definite"):
        union(X)
    assert union(X[:2], X).shape == (2, 10, 2)


def test_kernel_that_is_psd_on_these_rows_passes():
    rows = np.arange(3)[:, None]
    distances = np.ones((3, 3)) - np.eye(3)
    assert KernelUnion([("d", FromDistances(distances))]).fit(rows)(rows).checked


# -- grids and views -------------------------------------------------------------------------


def test_rbf_grid(X):
    union = rbf_grid([0.1, 1, 2.5], columns=[0]).fit(X)
    assert union.names_ == ["rbf(0.1)", "rbf(1)", "rbf(2.5)"]
    assert_array_equal(union(X).data[1], RBF(gamma=0.5)(X[:, :1]))
