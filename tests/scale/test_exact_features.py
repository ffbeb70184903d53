"""Exact features: z(x)·z(y) = k(x, y) for every kernel that has finitely many."""

import pickle
from itertools import product
from math import comb

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from manykernels import Views
from manykernels.kernels import (
    RBF,
    Categorical,
    ChiSquare,
    Cosine,
    Gapped,
    Intersection,
    Jaccard,
    KernelUnion,
    Laplacian,
    Linear,
    Mismatch,
    Polynomial,
    Precomputed,
    Spectrum,
    WeightedDegree,
)
from manykernels.kernels.adapters import CallableKernel
from manykernels.kernels.completion import WhereKnown
from manykernels.kernels.composition import Constant
from manykernels.kernels.strings import StringKernel
from manykernels.scale import ExactFeatures
from manykernels.scale.approximations import ColumnsMap
from manykernels.scale.features import map_of

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(25, 4))
NUMBERS[3] = 0.0  # whose cosine is zero
LETTERS = RNG.integers(3, size=(25, 3)).astype(str).astype(object)
STRINGS = ["".join(row) for row in RNG.choice(list("ACGT"), (25, 11))]
FRAME = pd.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "c": LETTERS[:, 0]})
BITS = (NUMBERS > 0).astype(float)


def tables():
    return {"one": NUMBERS.copy(), "two": LETTERS.copy()}


def of(kernel, X, most=4000, spherical=False):
    union = KernelUnion([("k", kernel)]).fit(X)
    return ExactFeatures(most).features_of(union, X, None, spherical=spherical)


CASES = {
    "linear": (Linear(), NUMBERS),
    "columns": (Linear().on([2, 0]), NUMBERS),
    "sparse": (Linear(), sparse.csr_array(BITS)),
    "frame": (Linear().on(["b", "a"]), FRAME),
    "polars": (Linear().on(["b", "a"]), pl.from_pandas(FRAME)),
    "cosine": (Cosine(), NUMBERS),
    "cosine-sparse": (Cosine(), sparse.csr_array(BITS)),
    "degree-1": (Polynomial(degree=1, gamma=0.5), NUMBERS),
    "degree-3": (Polynomial(degree=3, gamma="scale", coef0=2.5), NUMBERS),
    "degree-6": (Polynomial(degree=6), NUMBERS),
    "homogeneous": (Polynomial(degree=4, coef0=0.0), NUMBERS),
    "polynomial-sparse": (Polynomial(degree=2), sparse.csr_array(BITS)),
    "categories": (Categorical(), LETTERS),
    "categories-of-frame": (Categorical().on("c"), FRAME),
    "constant": (Constant(2.5), NUMBERS),
    "zero": (Constant(0.0), NUMBERS),
    "sum": (Linear() + Polynomial(degree=2) + 1, NUMBERS),
    "multiple": (2.5 * Cosine(), NUMBERS),
    "multiple-of-sum": (0.5 * (Linear() + Cosine()) * 3.0, NUMBERS),
    "product": (Linear() * Polynomial(degree=2) * Cosine(), NUMBERS),
    "numbers-categories": (Linear().on(["a", "b"]) * Categorical().on("c"), FRAME),
    "columns-of-sum": ((Linear().on([1]) + Cosine()).on([3, 1, 0]), NUMBERS),
    "after": (Linear().after(StandardScaler()), NUMBERS),
    "after-after": (Polynomial(degree=2).after(PCA(2)).after(StandardScaler()), NUMBERS),
    "after-of-columns": (Linear().on([1]).after(StandardScaler()).on([0, 2]), NUMBERS),
    "sum-after": ((Linear() + Cosine().on([0, 1])).after(StandardScaler()), NUMBERS),
    "view": (Polynomial(degree=2).of("one"), Views(tables())),
    "view-of-categories": (Categorical().of("two"), Views(tables())),
    "view-after": (Linear().on([1, 2]).after(StandardScaler()).of("one"), Views(tables())),
    "product-of-views": (Linear().of("one") * (1 + Categorical().of("two")), Views(tables())),
    "where-known": (WhereKnown(Linear().on([0, 1])), NUMBERS),
    "words": (Spectrum(k=3), STRINGS),
    "words-counted": (Spectrum(k=2, normalize=False), STRINGS),
    "words-of-alphabet": (Spectrum(k=2, alphabet="dna"), STRINGS),
    "words-without-some": (Spectrum(k=2, alphabet="ACG", unknown="skip"), STRINGS),
    "words-of-frame": (Spectrum(k=2).on("s"), pd.DataFrame({"s": STRINGS, "a": 1.0})),
    "gaps": (Gapped(k=2, g=4), STRINGS),
    "gaps-decaying": (Gapped(k=3, g=4, decay=0.5, normalize=False), STRINGS),
    "places": (WeightedDegree(d=3), STRINGS),
    "mismatches": (Mismatch(k=3, m=1), STRINGS),
    "more-mismatches": (Mismatch(k=4, m=2, alphabet="dna", normalize=False), STRINGS),
    "no-mismatches": (Mismatch(k=2, m=0), STRINGS),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def parts(X):
    """The first rows, and the others."""
    if isinstance(X, pd.DataFrame):
        return X[:15], X[15:]
    if isinstance(X, Views):
        return X.take(range(15)), X.take(range(15, 25))
    return X[:15], X[15:]


def test_products_of_features_are_the_kernel(case):
    kernel, X = case
    train, new = parts(X)
    features = of(kernel, train)
    z, z_new = features(train), features(new)
    assert z.shape == (15, features.n_features)
    assert_allclose(z @ z.T, features.union(train).kernel("k"), rtol=1e-12, atol=1e-12)
    assert_allclose(z_new @ z.T, features.union(new, train).kernel("k"), rtol=1e-12, atol=1e-12)
    assert_allclose(z_new @ z_new.T, features.union(new).kernel("k"), rtol=1e-12, atol=1e-12)
    assert features.errors(train)[0] < 1e-12


def test_spherical_features_have_length_one_or_zero(case):
    kernel, X = case
    z = of(kernel, X, spherical=True)(X)
    lengths = np.linalg.norm(z, axis=1)
    assert_allclose(lengths[lengths > 0.5], 1.0, rtol=1e-12)
    assert np.all((lengths > 0.5) | (lengths == 0.0))


def test_a_pickled_map_gives_the_same(case):
    kernel, X = case
    features = of(kernel, X)
    assert_array_equal(pickle.loads(pickle.dumps(features))(X), features(X))


# -- known answers ---------------------------------------------------------------------------


def test_monomials():
    z = of(Polynomial(degree=2, gamma=4.0, coef0=9.0), [[2.0, 3.0]])([[2.0, 3.0]])
    # (2·2, 2·3, 3) = (4, 6, 3)
    expected = [16.0, np.sqrt(2) * 24, np.sqrt(2) * 12, 36.0, np.sqrt(2) * 18, 9.0]
    assert_allclose(z, [expected], rtol=1e-15)


@pytest.mark.parametrize(
    ("kernel", "n_features"),
    [(Polynomial(degree=3), 35), (Polynomial(degree=3, coef0=0.0), 20), (Cosine(), 4)],
)
def test_no_more_features_than_needed(kernel, n_features):
    assert of(kernel, NUMBERS).sizes == [n_features]


def test_indicators():
    X = np.array([["x", 1], ["y", 1], ["x", 2]], dtype=object)
    expected = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]) / np.sqrt(2)
    assert_array_equal(of(Categorical(), X)(X), expected)


def test_equal_categories_of_different_types_are_one():
    features = of(Categorical(), np.array([[1], [1.0], [True]], dtype=object))
    assert features.sizes == [1]


def test_counts_of_words():
    features = of(Spectrum(k=2, normalize=False), ["ABAB", "BB"])
    # AA, AB, BA, BB
    assert_array_equal(features(["ABAB", "BB"]), [[0, 2, 1, 0], [0, 0, 0, 1]])


def test_near_words_by_brute_force():
    strings, k, m = ["ABCA", "CCBAB"], 3, 2
    words = list(product("ABC", repeat=k))
    expected = np.zeros((2, len(words)))
    for row, string in enumerate(strings):
        for start in range(len(string) - k + 1):
            window = string[start : start + k]
            for column, word in enumerate(words):
                differences = sum(a != b for a, b in zip(window, word, strict=True))
                expected[row, column] += differences <= m
    assert_array_equal(of(Mismatch(k, m, normalize=False), strings)(strings), expected)


# -- what the sample has not -----------------------------------------------------------------


def test_a_new_category_equals_none():
    X = np.array([["x", "u"], ["y", "v"]], dtype=object)
    new = np.array([["other", "u"]], dtype=object)
    features = of(Categorical(), X)
    assert_allclose(features(new) @ features(X).T, [[0.5, 0.0]])
    assert_allclose(features(new) @ features(new).T, 0.5)  # where the kernel has 1


@pytest.mark.parametrize("kernel", [Spectrum(k=2), Gapped(k=2, g=3), Mismatch(k=3, m=1)])
def test_words_with_new_letters_match_no_string_of_training(kernel):
    new = ["ACNGTACGTAA", "NNNACGT"]
    features = of(kernel, STRINGS)
    expected = features.union(new, STRINGS).kernel("k")
    assert_allclose(features(new) @ features(STRINGS).T, expected, rtol=1e-12)
    assert np.all(np.linalg.norm(features(new), axis=1) < 1.0)


# -- several kernels -------------------------------------------------------------------------


def test_kernels_of_one_table_share_columns_and_transformers():
    calls = []

    def counted(X):
        calls.append(len(X))
        return X + 1.0

    class Counting(Linear):
        def _validated(self, X):
            calls.append(len(X))
            return super()._validated(X)

    transformer = FunctionTransformer(counted)
    union = KernelUnion(
        {"a": Counting(), "b": Counting(), "c": 2 * Linear().after(transformer)}
        | {"d": Linear().after(transformer)}
    ).fit(NUMBERS)
    features = ExactFeatures().features_of(union, NUMBERS, None, spherical=False)
    calls.clear()
    assert features(NUMBERS).shape == (25, 16)
    # Columns once; transformed for a kernel, and for a product, whose parts share their own table.
    assert calls == [25, 25, 25]


def test_features_lie_in_blocks_in_the_order_of_the_kernels():
    union = KernelUnion({"a": Linear(), "b": 4 * Linear().on([1])}).fit(NUMBERS)
    features = ExactFeatures().features_of(union, NUMBERS, None, spherical=False)
    assert features.sizes == [4, 1]
    assert_array_equal(features(NUMBERS), np.column_stack([NUMBERS, 2 * NUMBERS[:, 1]]))


def test_a_dict_of_tables_is_accepted():
    features = of(Linear().of("one") * Categorical().of("two"), tables())
    found = np.empty((features.n_features, 25))
    features.write(tables(), found)
    assert_allclose(found.T @ found, features.union(tables()).kernel("k"), atol=1e-12)


def test_a_new_kernel_registers_its_map():
    class Doubled(Linear):
        def _from_compared(self, values, out):
            np.multiply(values, 2.0, out=out)

    @map_of.register
    def _of_doubled(kernel: Doubled, request):
        return ColumnsMap(request.of_rows(kernel).through(double).steps, kernel.n_features_in_)

    def double(rows):
        return np.sqrt(2.0) * rows

    z = of(Doubled(), NUMBERS)(NUMBERS)
    assert_allclose(z @ z.T, 2 * NUMBERS @ NUMBERS.T, rtol=1e-12, atol=1e-12)


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (RBF(), NUMBERS),
        (Laplacian(), NUMBERS),
        (ChiSquare(), BITS),
        (RBF().after(StandardScaler()), NUMBERS),
        (RBF().of("one"), Views(tables())),
        (Linear() + 2 * RBF(), NUMBERS),
    ],
)
def test_kernels_of_distances_are_refused(kernel, X):
    expected = r"kernel 'k': \w+ has no finite number of features.*RandomFeatures\(\).*Nystrom\(\)"
    with pytest.raises(ValueError, match=expected):
        of(kernel, X)


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Intersection(), BITS),
        (Jaccard(), BITS),
        (CallableKernel(lambda X, Y: X @ Y.T), NUMBERS),
        (Precomputed(NUMBERS @ NUMBERS.T), np.arange(25)[:, None]),
    ],
)
def test_kernels_without_known_features_are_refused(kernel, X):
    name = type(kernel).__name__
    expected = rf"kernel 'k': {name} has no known explicit features.*Nystrom\(\)"
    with pytest.raises(ValueError, match=expected):
        of(kernel, X)


def test_string_kernels_with_negative_terms_are_refused():
    class Odd(Spectrum):
        def _terms(self):
            return [(-1.0, term) for _, term in super()._terms()]

    assert issubclass(Odd, StringKernel)
    with pytest.raises(ValueError, match="Odd has no known explicit features"):
        of(Odd(k=2), STRINGS)


@pytest.mark.parametrize(
    ("kernel", "X", "number"),
    [
        (Linear(), NUMBERS, 4),
        (Cosine(), NUMBERS, 4),
        (Polynomial(degree=30), np.ones((2, 200)), comb(230, 30)),
        (Categorical(), LETTERS, 9),
        (Spectrum(k=40, alphabet="protein"), ["A" * 40], 20**40),
        (Mismatch(k=2), STRINGS, 16),
        (WeightedDegree(d=2), STRINGS, 11 * (4 + 16)),
        (Linear().on([0, 1]) * Cosine().on([1, 2]), NUMBERS, 4),
    ],
)
def test_too_many_features_are_refused_before_they_are_made(kernel, X, number):
    expected = rf"kernel 'k': \w+ has {number} features, more than max_features=3: .*Nystrom\(\)"
    with pytest.raises(ValueError, match=expected):
        of(kernel, X, most=3)


def test_each_term_of_a_sum_may_have_as_many():
    assert of(3 * (Linear() + Cosine()), NUMBERS, most=4).sizes == [8]


@pytest.mark.parametrize("kernel", [Constant(-1.0), -2 * Linear(), Polynomial(coef0=-1.0)])
def test_indefinite_kernels_are_refused(kernel):
    expected = r"kernel 'k': \w+ is not positive semi-definite with these parameters"
    with pytest.raises(ValueError, match=expected):
        of(kernel, NUMBERS)


def test_values_that_overflow_are_refused():
    X = NUMBERS * 1e200
    with pytest.raises(ValueError, match="'k' has a value that is not finite"):
        of(Polynomial(degree=3, gamma=1.0), X)(X)


def test_new_rows_are_checked_as_by_the_kernel():
    features = of(Linear().on([0, 1]), NUMBERS)
    with pytest.raises(ValueError, match=r"kernel 'k': .*cannot be selected"):
        features(NUMBERS[:, :1])
    missing = NUMBERS.copy()
    missing[4, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        features(missing)
    missing[4, 0] = np.nan
    with pytest.raises(ValueError, match="all its columns are missing"):
        features(missing)
    with pytest.raises(ValueError, match="2 columns to compare, but the kernel was fitted on 4"):
        of(Linear(), NUMBERS)(NUMBERS[:, :2])


def test_rows_that_lack_a_view_are_refused():
    lacking = tables()
    lacking["one"][7] = np.nan
    features = of(Linear().of("one"), Views(tables()))
    with pytest.raises(ValueError, match=r"kernel 'k': view 'one'.*1 of 25 rows lack.*row 7"):
        features(Views(lacking))
    with pytest.raises(ValueError, match="X has no view 'one'"):
        features(Views({"two": LETTERS}))


@pytest.mark.parametrize("value", [0, 2.5, "all", None])
def test_wrong_limits_are_refused(value):
    with pytest.raises(ValueError, match="max_features"):
        of(Linear(), NUMBERS, most=value)


def test_the_union_has_to_be_fitted():
    union = KernelUnion([("k", Linear())])
    with pytest.raises(NotFittedError):
        ExactFeatures().features_of(union, NUMBERS, None, spherical=False)
