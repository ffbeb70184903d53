"""RBFSubsets: a union of Gaussian kernels, whatever their number."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from manykernels import MKFDA, KernelUnion, Views
from manykernels.kernels import RBF, RBFSubsets
from manykernels.kernels.tables import SharedTable


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).standard_normal((30, 8)) + 5.0


def assert_same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gamma", ["scale", "auto", "median", 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_a_union_of_gaussian_kernels(X, gamma, weighted):
    weight = np.arange(30.0) % 3 if weighted else None
    family = RBFSubsets(9, [0.5, 2.0], sizes=(2, 5), gamma=gamma).fit(X, sample_weight=weight)
    pairs = [(name, RBF(gamma, k.width, columns=k.columns)) for name, k in family.kernels_]
    union = KernelUnion(pairs).fit(X, sample_weight=weight)
    assert len(family.kernels) == len(family.kernels_) == 18
    assert list(family.names_) == union.names_
    for (_, one), (_, other) in zip(family.kernels_, union.kernels_, strict=True):
        assert one.gamma_ == pytest.approx(other.gamma_, rel=1e-14)
        assert 2 <= len(set(one.columns)) == len(one.columns) <= 5
    new = np.random.default_rng(1).standard_normal((4, 8))
    for blocks in ((X,), (new, X)):
        one, other = family(*blocks), union(*blocks)
        assert one.names == other.names
        for j in range(18):
            assert_same(one.kernel(j), other.kernel(j))
    assert_same(family.diag(new), union.diag(new))


def test_matrices_are_those_of_the_union(X):
    """Those of a block share distances; the others are computed kernel by kernel."""
    family = RBFSubsets(7, [0.2, 1.0, 30.0]).fit(X)
    kernels = np.array([0, 2, 3, 4, 19, 20, 1])
    stack = family.gram_of(kernels, SharedTable(X), np.empty((7, 30, 30)))
    whole = family.subset(kernels)(X)
    assert stack.names == whole.names
    for j in range(7):
        assert_same(stack.kernel(j), whole.kernel(j))
        assert np.array_equal(stack.kernel(j), stack.kernel(j).T)


def test_sparse_tables(X):
    X = np.where(X > 5.0, X, 0.0)
    dense = RBFSubsets(4, [1.0], sizes=(2, 3)).fit(X)
    thin = RBFSubsets(4, [1.0], sizes=(2, 3)).fit(sparse.csr_array(X))
    assert_same(thin.gammas_, dense.gammas_)
    for j in range(4):
        assert_same(thin(sparse.csr_array(X)).kernel(j), dense(X).kernel(j))


def test_draws_are_those_of_the_seed(X):
    first, again, other = (RBFSubsets(50, random_state=seed).fit(X) for seed in (0, 0, 1))
    columns = [[kernel.columns for _, kernel in one.kernels_] for one in (first, again, other)]
    assert columns[0] == columns[1] != columns[2]
    # Every size and every column is drawn about as often.
    sizes = np.array([len(some) for some in columns[0]])
    assert set(sizes) == set(range(1, 9))
    assert set(np.concatenate(columns[0])) == set(range(8))


def test_a_million_kernels_are_cheap_to_hold(X):
    family = RBFSubsets(200_000, [0.25, 0.5, 1, 2, 4], sizes=(3, 3), gamma="auto")
    assert len(family.kernels) == 10**6
    assert sorted(family.get_params()) == ["gamma", "n_subsets", "random_state", "sizes", "widths"]
    assert len(family.set_params(n_subsets=100_000).fit(X).names_) == 500_000
    # Three column numbers, a start and gamma for each set.
    assert len(pickle.dumps(family)) < 100_000 * (3 * 4 + 2 * 8) + 10_000
    name, kernel = family.kernels_[-1]
    assert name == family.names_[499_999] == "subset99999:rbf(4)"
    assert kernel.width == 4
    assert "<500000: ('subset0:rbf(0.25)'" in repr(family.kernels_)


def test_clones_copies_and_pictures(X):
    family = RBFSubsets(5, [1.0, 2.0]).fit(X)
    assert clone(family).get_params() == family.get_params()
    again = pickle.loads(pickle.dumps(family))
    assert_same(again(X).kernel(3), family(X).kernel(3))
    assert "RBFSubsets" in family._repr_html_()
    model = MKFDA(family, p=1)
    assert model.set_params(kernels__n_subsets=6).kernels.n_subsets == 6
    assert model.get_params()["kernels__widths"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_subsets": 0}, "n_subsets"),
        ({"widths": []}, "widths must be one or more positive"),
        ({"widths": [1.0, -1.0]}, "widths must be one or more positive"),
        ({"sizes": (0, 2)}, "smallest and the largest number of columns"),
        ({"sizes": (2, 9)}, "8 columns of X"),
        ({"sizes": (3, 2)}, "smallest and the largest number of columns"),
        ({"sizes": (1.5, 2)}, "smallest and the largest number of columns"),
        ({"gamma": "wide"}, "gamma"),
    ],
)
def test_bad_parameters_are_refused(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        RBFSubsets(**{"n_subsets": 3, **parameters}).fit(X)


def test_bad_tables_are_refused(X):
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        RBFSubsets(3).fit(X)
    with pytest.raises(ValueError, match="fitted, to one table"):
        MKFDA(RBFSubsets(3), p=1).fit(Views({"a": np.eye(4), "b": np.eye(4)}), [0, 1, 0, 1])
