"""Laws that every kernel keeps; a new kernel joins by one line in KERNELS."""

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from manykernels.kernels import (
    RBF,
    Categorical,
    ChiSquare,
    Cosine,
    FromDistances,
    Gapped,
    Intersection,
    Jaccard,
    Laplacian,
    Linear,
    Mismatch,
    Molecules,
    Polynomial,
    Precomputed,
    Presence,
    Spectrum,
    WeightedDegree,
)
from manykernels.kernels.adapters import CallableKernel, GaussianProcessKernel, PairwiseKernel
from manykernels.kernels.completion import WhereKnown
from manykernels.kernels.composition import Constant
from manykernels.kernels.strings import StringKernel

N_ROWS = 12
HISTOGRAMS = np.random.default_rng(0).gamma(1.0, size=(N_ROWS, 4))
ROW_NUMBERS = np.arange(N_ROWS)[:, None]
GRAM = HISTOGRAMS @ HISTOGRAMS.T
DISTANCES = euclidean_distances(HISTOGRAMS)
CATEGORIES = np.random.default_rng(1).integers(3, size=(N_ROWS, 4))
FINGERPRINTS = CATEGORIES // 2
STRINGS = np.array(
    [["".join(row)] for row in np.random.default_rng(2).choice(list("ABC"), (N_ROWS, 9))],
    dtype=object,
)
# Chains of different lengths with an oxygen or nitrogen somewhere, and rings.
SMILES = np.array(
    [
        [("C" * (1 + row % 7)) + ("O", "N", "(=O)C")[row % 3] + ("", "c1ccccc1")[row % 2]]
        for row in range(N_ROWS)
    ],
    dtype=object,
)


def inner_products(X, Y):
    return X @ Y.T


KERNELS = {
    "linear": Linear(),
    "rbf-scale": RBF(),
    "rbf-auto": RBF(gamma="auto", width=2.0),
    "rbf-median": RBF(gamma="median"),
    "rbf-number": RBF(gamma=0.3),
    "laplacian": Laplacian(),
    "laplacian-median": Laplacian(gamma="median"),
    "polynomial": Polynomial(),
    "polynomial-scale": Polynomial(degree=2, gamma="scale", coef0=0.0),
    "cosine": Cosine(),
    "chi-square": ChiSquare(),
    "chi-square-median": ChiSquare(gamma="median"),
    "intersection": Intersection(),
    "categorical": Categorical(),
    "jaccard": Jaccard(),
    "spectrum": Spectrum(k=2),
    "spectrum-counts": Spectrum(k=3, normalize=False),
    "mismatch": Mismatch(k=3, m=1),
    "mismatch-alphabet": Mismatch(k=4, m=2, alphabet="ABCD", normalize=False),
    "gapped": Gapped(k=2, g=4),
    "gapped-decay": Gapped(k=2, g=4, decay=0.5, normalize=False),
    "weighted-degree": WeightedDegree(d=4),
    "molecules": Molecules(),
    "molecules-bits": Molecules(radius=1, n_bits=64, counts=False),
    "presence": Presence(),
    "where-known": WhereKnown(RBF(gamma="median")),
    "after": RBF().after(StandardScaler()),
    "after-median": Laplacian(gamma="median").after(StandardScaler()),
    "constant": Constant(0.5),
    "sum": RBF(gamma="median") + 2 * Linear(),
    "product": RBF() * Laplacian(),
    "sum-of-columns": RBF().on([0, 1]) + Intersection().on(slice(2, 4)),
    "sigmoid": PairwiseKernel("sigmoid", params={"gamma": 0.1}),
    "pairwise-rbf": PairwiseKernel("rbf"),
    "additive-chi2": PairwiseKernel("additive_chi2"),
    "gaussian-process": GaussianProcessKernel(Matern(length_scale=2.0)),
    "callable": CallableKernel(inner_products),
    "precomputed": Precomputed(GRAM),
    "from-distances": FromDistances(DISTANCES),
    "from-distances-number": FromDistances(DISTANCES, scale=2.0),
}
#: Kernels that are not positive semi-definite, or of which nobody knows before they are computed.
UNPROVEN = [
    "sigmoid",
    "additive-chi2",
    "callable",
    "precomputed",
    "from-distances",
    "from-distances-number",
]
BY_ROW_NUMBER = (Precomputed, FromDistances)
# What kernels compare that do not compare histograms.
TABLES = {
    **dict.fromkeys(BY_ROW_NUMBER, ROW_NUMBERS),
    Categorical: CATEGORIES,
    Jaccard: FINGERPRINTS,
    **dict.fromkeys((Spectrum, Mismatch, Gapped, WeightedDegree), STRINGS),
    Molecules: SMILES,
}
OF_STRINGS = [
    name for name, kernel in KERNELS.items() if isinstance(kernel, StringKernel | Molecules)
]


@pytest.fixture(params=KERNELS)
def kernel(request):
    return clone(KERNELS[request.param])


@pytest.fixture(name="X")
def table(kernel):
    return TABLES.get(type(kernel), HISTOGRAMS)


def test_shape_and_dtype(kernel, X):
    K = kernel.fit(X)(X[:5], X[3:])
    assert K.shape == (5, N_ROWS - 3)
    assert K.dtype == np.float64


def test_gram_is_exactly_symmetric(kernel, X):
    K = kernel.fit(X)(X)
    assert_array_equal(K, K.T)


@pytest.mark.parametrize("kernel", [n for n in KERNELS if n not in UNPROVEN], indirect=True)
def test_is_psd_is_right(kernel, X):
    assert kernel.is_psd
    eigenvalues = np.linalg.eigvalsh(kernel.fit(X)(X))
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


@pytest.mark.parametrize("kernel", UNPROVEN, indirect=True)
def test_nothing_is_said_of_kernels_that_may_be_indefinite(kernel, X):
    assert not kernel.is_psd
    assert not kernel.fit(X).is_psd


@pytest.mark.parametrize("kernel", ["sigmoid", "additive-chi2"], indirect=True)
def test_indefinite_kernels_are_indefinite(kernel, X):
    eigenvalues = np.linalg.eigvalsh(kernel.fit(X)(X))
    assert eigenvalues[0] < -1e-3 * eigenvalues[-1]


def test_diag_is_the_diagonal(kernel, X):
    kernel.fit(X)
    assert_allclose(kernel.diag(X), np.diagonal(kernel(X)), rtol=1e-12)


def test_cross_block_is_a_block_of_the_gram(kernel, X):
    whole = kernel.fit(X)(X)
    assert_allclose(kernel(X[:5], X[5:]), whole[:5, 5:], rtol=1e-10, atol=1e-12)
    assert_allclose(kernel(X[2:9]), whole[2:9, 2:9], rtol=1e-10, atol=1e-12)


def test_scales_stay_frozen_on_other_rows(kernel, X):
    kernel.fit(X[:6])
    assert_allclose(kernel(X)[6:, :6], kernel(X[6:], X[:6]), rtol=1e-10, atol=1e-12)


def test_clone_has_equal_params_and_nothing_learnt(kernel, X):
    twin = clone(kernel.fit(X))
    assert repr(twin.get_params()) == repr(kernel.get_params())
    assert not [name for name in vars(twin) if name.endswith("_")]


def test_names_of_parameters_are_those_of_the_class(kernel):
    names = type(kernel)._get_param_names()
    assert sorted(names) == sorted(inspect.signature(type(kernel)).parameters)
    names.clear()
    assert kernel.get_params()


def test_fit_changes_no_parameter(kernel, X):
    before = repr(kernel.get_params())
    kernel.fit(X)(X)
    assert repr(kernel.get_params()) == before


def test_pickle(kernel, X):
    kernel.fit(X)
    assert_array_equal(pickle.loads(pickle.dumps(kernel))(X), kernel(X))


def test_on_equals_slicing(kernel, X):
    wide = np.hstack([np.full_like(X, 7), X])
    on = kernel.on(slice(X.shape[1], None)).fit(wide)
    assert_array_equal(on(wide[:4], wide), kernel.fit(X)(X[:4], X))
    assert_array_equal(on.diag(wide), kernel.diag(X))


def test_on_leaves_the_kernel_alone(kernel, X):
    assert kernel.on([0]).columns == [0]
    assert kernel.columns is None


@pytest.mark.parametrize("kernel", [n for n in KERNELS if n not in OF_STRINGS], indirect=True)
def test_single_precision_input(kernel, X):
    single = kernel.fit(X)(X.astype(np.float32))
    assert single.dtype == np.float64
    assert_allclose(single, kernel(X), rtol=1e-4)


def test_weights_are_repetitions(kernel, X):
    counts = np.arange(N_ROWS) % 3
    weighted = clone(kernel).fit(X, sample_weight=counts)
    repeated = clone(kernel).fit(np.repeat(X, counts, axis=0))
    assert_allclose(weighted(X), repeated(X), rtol=1e-12)


def test_unit_weights_change_nothing(kernel, X):
    weighted = clone(kernel).fit(X, sample_weight=np.ones(N_ROWS))
    assert_array_equal(weighted(X), kernel.fit(X)(X))


def test_input_is_not_written_to(kernel, X):
    locked = X.copy()
    locked.flags.writeable = False
    kernel.fit(locked)(locked)
    kernel(locked[:3], locked)
    assert_array_equal(locked, X)


def test_html_repr_names_the_kernel(kernel):
    assert type(kernel).__name__ in estimator_html_repr(kernel)
    assert type(kernel).__name__ in kernel._repr_html_()


# A function is given the rows as they are, and others ask what is missing.
TAKE_MISSING = ("constant", "callable", "presence", "where-known")
LOOK_AT_VALUES = [name for name in KERNELS if name not in TAKE_MISSING]
LOOK_AT_ALL_COLUMNS = [
    name
    for name, kernel in KERNELS.items()
    if not isinstance(kernel, (Constant, StringKernel, Molecules, *BY_ROW_NUMBER))
    and "columns" not in repr(kernel)
]


@pytest.mark.parametrize("kernel", LOOK_AT_VALUES, indirect=True)
def test_missing_values_are_refused_by_name(kernel, X):
    broken = X.astype(object if X.dtype == object else float)
    broken[1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        kernel.fit(broken)


@pytest.mark.parametrize("kernel", LOOK_AT_ALL_COLUMNS, indirect=True)
def test_different_widths_are_refused(kernel, X):
    kernel.fit(X)
    with pytest.raises(ValueError, match="3 columns to compare, but the kernel was fitted on 4"):
        kernel(X[:, :3])
    with pytest.raises(ValueError, match="X has 4 columns to compare, but Y has 3"):
        kernel(X, X[:, :3])


@pytest.mark.parametrize("kernel", OF_STRINGS, indirect=True)
def test_strings_are_those_of_one_column(kernel, X):
    with pytest.raises(ValueError, match="one string per row, but there are 2 columns"):
        kernel.fit(np.hstack([X, X]))
