"""Random features: the kernel in the mean, with an error that is known."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from manykernels import Views
from manykernels.kernels import (
    RBF,
    Categorical,
    ChiSquare,
    Cosine,
    Intersection,
    Jaccard,
    KernelUnion,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Spectrum,
    rbf_grid,
)
from manykernels.kernels.adapters import CallableKernel
from manykernels.scale import ExactFeatures, RandomFeatures
from manykernels.scale.approximations import AdditiveChiSquare, _normal
from tests.problems import slow

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(8, 3))
HISTOGRAMS = RNG.dirichlet(np.full(6, 0.5), 8)
HISTOGRAMS[0, 2] = 0.0
VIEWS = Views({"one": NUMBERS, "two": RNG.normal(size=(8, 2))})

# What is approximated, and by how much more than chance it may differ.
CASES = {
    "gaussian": (RBF(gamma=0.3), NUMBERS, 0.0),
    "gaussian-width": (RBF(gamma="median", width=0.7), NUMBERS, 0.0),
    "laplacian": (Laplacian(gamma=0.4), NUMBERS, 0.0),
    "chi-square": (ChiSquare(), HISTOGRAMS, 0.005),
    "columns": (RBF(gamma=0.3).on([2, 0]), NUMBERS, 0.0),
    "sparse": (RBF(gamma=0.3), sparse.csr_array(NUMBERS), 0.0),
    "after": (Laplacian(gamma=0.4).after(StandardScaler()), NUMBERS, 0.0),
    "product": (RBF(gamma=0.2).on([0]) * Laplacian(gamma=0.2).on([1, 2]), NUMBERS, 0.0),
    "product-of-views": (RBF(gamma=0.2).of("one") * RBF(gamma=0.2).of("two"), VIEWS, 0.0),
    "product-after": (
        (RBF(gamma=0.2).after(StandardScaler()) * 1.0) * (1.0 * Laplacian(gamma=0.2)),
        NUMBERS,
        0.0,
    ),
}


def of(kernel, X, n_features=None, seed=0, spherical=False):
    union = KernelUnion([("k", kernel)]).fit(X)
    approximation = RandomFeatures(n_features, random_state=seed)
    return approximation.features_of(union, X, None, spherical=spherical)


def product(features, X):
    z = features(X)
    return z @ z.T


def errors(kernel, X, n_features, n_seeds):
    """What features of different seeds have too much, (n_seeds, rows, rows), and the kernel."""
    union = KernelUnion([("k", kernel)]).fit(X)
    expected, found = union(X).kernel("k"), []
    for seed in range(n_seeds):
        approximation = RandomFeatures(n_features, random_state=seed)
        features = approximation.features_of(union, X, None, spherical=False)
        found.append(product(features, X) - expected)
    return np.array(found), expected


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


# -- the mean and the error ------------------------------------------------------------------


def test_the_mean_is_the_kernel(case):
    kernel, X, bias = case
    found, expected = errors(kernel, X, 200, 40)
    chance = 3.7 * found.std(axis=0, ddof=1) / np.sqrt(len(found))
    # 28 pairs of rows: one of them is off by more than 3.7 standard errors in less than one of
    # 100 such tests. A bandwidth that is wrong by a fifth would be seen.
    assert np.all(np.abs(found.mean(axis=0)) <= chance + bias + 1e-14)
    assert np.any(np.abs(expected - expected**1.2) > chance + bias + 1e-14)


def test_rows_have_similarity_one_with_themselves(case):
    kernel, X, _ = case
    z = of(kernel, X, 10)(X)
    assert z.shape == (8, 10)
    assert_allclose(np.sum(z**2, axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("n_features", [40, 640])
def test_the_error_is_that_of_independent_frequencies(n_features):
    """The variance of cos ωδ is ``(1 + k(2δ))/2 − k(δ)²``, that of a mean of P a P-th of it."""
    found, similarity = errors(Laplacian(gamma=0.4), NUMBERS, n_features, 60)
    expected = ((1 + similarity**2) / 2 - similarity**2) / (n_features / 2)
    assert_allclose(np.mean(found**2, axis=0).sum(), expected.sum(), rtol=0.15)


@pytest.mark.parametrize("n_features", [40, *slow(640)])
def test_orthogonal_frequencies_have_a_smaller_error(n_features):
    found, similarity = errors(RBF(gamma=0.15), NUMBERS, n_features, 60)
    independent = ((1 + similarity**4) / 2 - similarity**2) / (n_features / 2)
    share = np.mean(found**2, axis=0).sum() / independent.sum()
    # At both numbers of features: the squared error falls as one over their number, too.
    assert 0.2 < share < 0.8


@pytest.mark.parametrize(("n_columns", "n_pairs"), [(1, 5), (4, 3), (4, 4), (4, 10)])
def test_frequencies_are_orthogonal_in_groups(n_columns, n_pairs):
    found = _normal(n_columns, n_pairs, np.random.default_rng(0))
    assert found.shape == (n_columns, n_pairs)
    for start in range(0, n_pairs, n_columns):
        group = found[:, start : start + n_columns]
        inner = group.T @ group
        assert_allclose(inner, np.diag(np.diagonal(inner)), atol=1e-13)


def test_frequencies_are_normal():
    n_pairs = 10_000
    found = _normal(3, n_pairs, np.random.default_rng(0))
    # Four and a half standard errors of each moment of as many normal numbers.
    error = 4.5 / np.sqrt(n_pairs)
    assert_allclose(found.mean(axis=1), 0.0, atol=error)
    assert_allclose(np.cov(found), np.eye(3), atol=np.sqrt(2) * error)
    # Which other lengths of frequencies would change.
    assert_allclose(np.mean(found**4, axis=1), 3.0, atol=np.sqrt(96) * error)
    assert_allclose(np.mean(found[0] ** 2 * found[1] ** 2), 1.0, atol=np.sqrt(8) * error)


def test_squared_distances_of_the_additive_map_are_those_of_chi_square():
    mapped = AdditiveChiSquare()(HISTOGRAMS)
    found = ((mapped[:, None] - mapped) ** 2).sum(axis=2)
    both = HISTOGRAMS[:, None] + HISTOGRAMS
    squares = (HISTOGRAMS[:, None] - HISTOGRAMS) ** 2
    expected = np.divide(squares, both, out=np.zeros_like(both), where=both > 0).sum(axis=2)
    assert_allclose(found, expected, atol=0.005)


# -- what they depend on ---------------------------------------------------------------------


def test_a_seed_gives_the_same_features_again(case):
    kernel, X, _ = case
    assert_array_equal(of(kernel, X, 10, 3)(X), of(kernel, X, 10, 3)(X))
    assert np.abs(of(kernel, X, 10, 3)(X) - of(kernel, X, 10, 4)(X)).max() > 0.1


def test_a_pickled_map_gives_the_same(case):
    kernel, X, _ = case
    features = of(kernel, X, 10)
    assert_array_equal(pickle.loads(pickle.dumps(features))(X), features(X))


def test_kernels_have_frequencies_of_their_own():
    union = KernelUnion({"a": RBF(gamma=0.3), "b": RBF(gamma=0.3)}).fit(NUMBERS)
    features = RandomFeatures(20).features_of(union, NUMBERS, None, spherical=False)
    a, b = (features(NUMBERS)[:, block] for block in features.blocks)
    assert np.abs(a - b).max() > 0.1
    assert_array_equal(a, of(RBF(gamma=0.3), NUMBERS, 20)(NUMBERS))


def test_rows_one_by_one():
    features = of(RBF(gamma=0.3), NUMBERS, 20)
    rows = np.vstack([features(NUMBERS[[row]]) for row in range(len(NUMBERS))])
    assert_allclose(rows, features(NUMBERS), atol=1e-14)


def test_rows_far_from_the_origin_lose_no_digits():
    kernel = RBF(gamma=0.3)
    expected = product(of(kernel, NUMBERS, 20), NUMBERS)
    assert_allclose(product(of(kernel, NUMBERS + 1e6, 20), NUMBERS + 1e6), expected, atol=1e-8)


@pytest.mark.parametrize("sample", [NUMBERS, sparse.csr_array(NUMBERS)])
def test_sparse_and_dense_rows_have_the_same_features(sample):
    features = of(Laplacian(gamma=0.3), sample, 20)
    assert_allclose(features(sparse.csr_array(NUMBERS)), features(NUMBERS), atol=1e-12)


def test_spherical_changes_nothing_but_multiples():
    once, thrice = (of(c * RBF(gamma=0.3), NUMBERS, 20, spherical=True) for c in (1.0, 3.0))
    assert_allclose(thrice(NUMBERS), once(NUMBERS), rtol=1e-14, atol=1e-14)


# -- how many there are ----------------------------------------------------------------------


@pytest.mark.parametrize(("n_kernels", "each"), [(1, 400), (10, 400), (16, 250), (60, 100)])
def test_default_number_of_features(n_kernels, each):
    union = rbf_grid(range(1, n_kernels + 1)).fit(NUMBERS)
    features = RandomFeatures().features_of(union, NUMBERS, None, spherical=False)
    assert features.sizes == [each] * n_kernels


def test_an_odd_number_leaves_one_out():
    assert of(RBF(), NUMBERS, 21).sizes == [20]


@pytest.mark.parametrize(
    ("kernel", "n_features"),
    [
        (3.0 * RBF(), 20),
        (RBF() + Laplacian(), 40),
        (2.0 * (RBF() + Linear()), 23),
        (RBF().on([0]) * RBF().on([1]) * 2.0 * RBF().on([2]), 20),
    ],
)
def test_sums_and_products_have_no_more_than_needed(kernel, n_features):
    assert of(kernel, NUMBERS, 20).sizes == [n_features]


@pytest.mark.parametrize(
    "kernel", [Linear(), Cosine(), Polynomial(degree=2), 2.0 * Linear().on([1]) + 1.0]
)
def test_exact_features_where_they_are_enough(kernel):
    exact = ExactFeatures().features_of(
        KernelUnion([("k", kernel)]).fit(NUMBERS), NUMBERS, None, spherical=False
    )
    assert_array_equal(of(kernel, NUMBERS, 10)(NUMBERS), exact(NUMBERS))


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "X", "number"),
    [
        (Linear(), NUMBERS, 3),
        (Polynomial(), NUMBERS, 20),
        (Categorical(), NUMBERS.astype(object), 24),
        (Spectrum(k=2), ["ABC", "CBA"], 9),
        (RBF() * Linear().on([0, 1]), NUMBERS, 4),
        ((RBF() + Laplacian()) * RBF(), NUMBERS, 8),
    ],
)
def test_more_features_than_asked_for_are_refused(kernel, X, number):
    expected = rf"kernel 'k': \w+ has {number} features, more than n_features=2: .*Nystrom\(\)"
    with pytest.raises(ValueError, match=expected):
        of(kernel, X, 2)


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Intersection(), HISTOGRAMS),
        (Jaccard(), (NUMBERS > 0).astype(float)),
        (CallableKernel(lambda X, Y: X @ Y.T), NUMBERS),
        (Precomputed(np.eye(8)), np.arange(8)[:, None]),
        (RBF() + Intersection().after(StandardScaler(with_mean=False)), HISTOGRAMS),
    ],
)
def test_kernels_without_known_features_are_refused(kernel, X):
    with pytest.raises(
        ValueError, match=r"kernel 'k': \w+ has no known explicit features.*Nystrom\(\)"
    ):
        of(kernel, X)


@pytest.mark.parametrize("value", [0, 1, 2.5, "all"])
def test_wrong_numbers_are_refused(value):
    with pytest.raises(ValueError, match="n_features"):
        of(RBF(), NUMBERS, value)


def test_new_rows_are_checked_as_by_the_kernel():
    with pytest.raises(ValueError, match="2 columns to compare, but the kernel was fitted on 3"):
        of(RBF(), NUMBERS)(NUMBERS[:, :2])
    with pytest.raises(ValueError, match="entries must not be negative"):
        of(ChiSquare(), HISTOGRAMS)(-HISTOGRAMS)
    with pytest.raises(ValueError, match="NaN"):
        of(RBF(), NUMBERS)(np.where(NUMBERS > 0, NUMBERS, np.nan))


def test_the_union_has_to_be_fitted():
    union = KernelUnion([("k", RBF())])
    with pytest.raises(NotFittedError):
        RandomFeatures().features_of(union, NUMBERS, None, spherical=False)
