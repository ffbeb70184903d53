"""Gating features: every way to say where a gate looks, standardised, and every bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Matern
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from manykernels.gating import features
from manykernels.gating.features import GatingFeatures
from manykernels.gating.gates import GATES, LARGEST, as_gate
from manykernels.kernels import RBF, KernelUnion, Precomputed

RNG = np.random.default_rng(0)
VALUES = RNG.standard_normal((12, 4)) * [1.0, 10.0, 0.1, 1e4] + [0.0, 5.0, 0.0, -1e4]
NEW = RNG.standard_normal((5, 4))
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(VALUES, columns=NAMES)
CONTAINERS = {
    "list": lambda X: X.tolist(),
    "numpy": lambda X: X,
    "fortran": lambda X: np.asfortranarray(X),
    "float32": lambda X: X.astype(np.float32),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "csr": sparse.csr_array,
    "coo": sparse.coo_matrix,
}


def standard(raw, new=None):
    """`new` in units of the means and deviations of `raw`."""
    return ((raw if new is None else new) - raw.mean(axis=0)) / raw.std(axis=0)


# -- what a gate can look at -------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_all_columns_of_every_container(container):
    make = CONTAINERS[container]
    gating = GatingFeatures().fit(make(VALUES))
    tolerance = 1e-4 if container == "float32" else 1e-12
    assert_allclose(gating.transform(make(VALUES)), standard(VALUES), rtol=tolerance, atol=1e-6)
    expected = standard(VALUES, NEW)
    assert_allclose(gating.transform(make(NEW)), expected, rtol=tolerance, atol=1e-6)
    assert gating.n_features_out_ == 4


SECOND_AND_LAST = [[1, 3], (1, 3), np.array([1, 3]), slice(1, None, 2), [-3, -1]]
SECOND_AND_LAST += [[False, True, False, True]]


@pytest.mark.parametrize("columns", SECOND_AND_LAST, ids=repr)
@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_by_position(container, columns):
    X = CONTAINERS[container](VALUES)
    expected = standard(VALUES[:, [1, 3]])
    assert_allclose(GatingFeatures(columns).fit_transform(X), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [("b", [1]), (["d", "a"], [3, 0]), (slice("b", "c"), [1, 2])],
    ids=repr,
)
def test_columns_by_name(container, columns, expected):
    gating = GatingFeatures(columns).fit(CONTAINERS[container](VALUES))
    transformed = gating.transform(CONTAINERS[container](NEW))
    assert_allclose(transformed, standard(VALUES[:, expected], NEW[:, expected]), rtol=1e-10)


def test_columns_by_a_callable_are_frozen():
    frame = FRAME.assign(text="word")
    gating = GatingFeatures(make_column_selector(dtype_include=float)).fit(frame)
    assert_allclose(gating.transform(frame), standard(VALUES), rtol=1e-10)
    assert gating.transform(frame.astype({"a": object})).shape == (12, 4)


def test_a_mixed_table_can_be_looked_at_in_part():
    frame = FRAME.assign(text=["u", "v"] * 6)
    assert_allclose(GatingFeatures(["a"]).fit_transform(frame), standard(VALUES[:, :1]))
    encoded = GatingFeatures((["text"], OneHotEncoder())).fit_transform(frame)
    assert_allclose(np.abs(encoded), 1.0)


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_integer_means_principal_components(container):
    make = CONTAINERS[container]
    gating = GatingFeatures(2).fit(make(VALUES))
    pca = PCA(2).fit(VALUES)
    expected = standard(pca.transform(VALUES), pca.transform(NEW))
    tolerance = 1e-3 if container == "float32" else 1e-8
    assert_allclose(gating.transform(make(NEW)), expected, rtol=tolerance)


@pytest.mark.parametrize(
    "transformer",
    [
        PCA(3),
        make_pipeline(StandardScaler(), PCA(2)),
        FunctionTransformer(lambda X: (X[:, ::2] + X[:, 1::2]) / 2),
        StandardScaler().set_output(transform="pandas"),
        FunctionTransformer(sparse.csr_array),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_transformers(transformer):
    gating = GatingFeatures(transformer).fit(VALUES)
    expected = clone(transformer).fit(VALUES)
    raw, new = (np.asarray(_plain(expected.transform(X))) for X in (VALUES, NEW))
    assert_allclose(gating.transform(NEW), standard(raw, new), rtol=1e-8)
    assert not hasattr(transformer, "n_features_in_")


def _plain(table):
    return table.toarray() if sparse.issparse(table) else table


def test_a_transformer_of_some_columns():
    gating = GatingFeatures((["a", "c"], PCA(1))).fit(FRAME)
    expected = standard(PCA(1).fit_transform(VALUES[:, [0, 2]]))
    assert_allclose(gating.transform(FRAME), expected, rtol=1e-8)


def test_a_transformer_may_learn_from_y():
    y = np.repeat([0, 1, 2], 4)
    assert GatingFeatures(LinearDiscriminantAnalysis()).fit(VALUES, y).n_features_out_ == 2


def test_a_transformer_may_fill_what_is_missing():
    X = VALUES.copy()
    X[2, 1] = np.nan
    filled = SimpleImputer().fit_transform(X)
    assert_allclose(GatingFeatures(SimpleImputer()).fit_transform(X), standard(filled), atol=1e-12)


def test_kernels_mean_the_empirical_kernel_map():
    gating = GatingFeatures(RBF(gamma=0.01).on([0, 1])).fit(VALUES)
    kernel = RBF(gamma=0.01).on([0, 1])
    expected = standard(kernel(VALUES), kernel(NEW, VALUES))
    assert gating.n_features_out_ == 12
    assert_allclose(gating.transform(NEW), expected, rtol=1e-8)
    assert gating.transform(NEW[:1]).shape == (1, 12)


def test_scales_of_a_gating_kernel_are_frozen_on_training_rows():
    gating = GatingFeatures(RBF(gamma="scale")).fit(VALUES)
    kernel = RBF(gamma="scale").fit(VALUES)
    expected = standard(kernel(VALUES), kernel(NEW, VALUES))
    assert_allclose(gating.transform(NEW), expected, rtol=1e-8)


def test_data_known_only_by_a_kernel_matrix():
    root = np.random.default_rng(1).standard_normal((10, 3))
    gram = root @ root.T
    rows = np.arange(10)[:, None]
    gating = GatingFeatures(Precomputed(gram)).fit(rows[:6])
    assert_allclose(gating.transform(rows[6:]), standard(gram[:6, :6], gram[6:, :6]), rtol=1e-8)


def test_kernels_of_scikit_learn_and_of_some_columns():
    K = Matern()(VALUES[:, :2])
    gating = GatingFeatures(([0, 1], Matern())).fit(VALUES)
    assert_allclose(gating.transform(VALUES), standard(K), rtol=1e-8, atol=1e-12)


# -- standardised ------------------------------------------------------------------------------


@given(shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3))
@settings(max_examples=40, deadline=None)
def test_units_do_not_matter(shift, scale):
    gating = GatingFeatures().fit(scale * VALUES + shift)
    assert_allclose(gating.transform(scale * NEW + shift), standard(VALUES, NEW), atol=1e-6)


@pytest.mark.parametrize("what", [None, [3, 0]], ids=repr)
def test_a_weight_of_two_is_a_repeated_row(what):
    counts = np.arange(12) % 3
    counted = GatingFeatures(what).fit(VALUES, sample_weight=counts)
    repeated = GatingFeatures(what).fit(np.repeat(VALUES, counts, axis=0))
    assert_allclose(counted.mean_, repeated.mean_, rtol=1e-12)
    assert_allclose(counted.scale_, repeated.scale_, rtol=1e-12)
    assert_allclose(counted.transform(NEW), repeated.transform(NEW), rtol=1e-10)
    scaled = GatingFeatures(what).fit(VALUES, sample_weight=7.5 * counts)
    assert_allclose(scaled.transform(NEW), counted.transform(NEW), rtol=1e-12)


def test_weights_count_in_units_of_a_kernel_map_too():
    weights = np.linspace(0.1, 2.0, 12)
    K = RBF(gamma=0.01)(VALUES)
    mean = np.average(K, axis=0, weights=weights)
    scale = np.sqrt(np.average((K - mean) ** 2, axis=0, weights=weights))
    gating = GatingFeatures(RBF(gamma=0.01)).fit(VALUES, sample_weight=weights)
    assert_allclose(gating.transform(VALUES), (K - mean) / scale, rtol=1e-8, atol=1e-12)


def test_a_column_that_varies_only_where_nothing_counts_is_constant():
    X = VALUES.copy()
    X[1:, 2] = 4.0
    weights = np.r_[0.0, np.ones(11)]
    assert GatingFeatures().fit(X, sample_weight=weights).scale_[2] == 0.0


def test_new_rows_do_not_influence_each_other():
    gating = GatingFeatures().fit(VALUES)
    assert_array_equal(gating.transform(NEW)[2:3], gating.transform(NEW[2:3]))
    assert gating.transform(NEW[:0]).shape == (0, 4)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-300])
def test_constant_columns_stay_zero(value):
    X, new = VALUES.copy(), NEW.copy()
    X[:, 1] = value
    gating = GatingFeatures().fit(X)
    assert_array_equal(gating.scale_ == 0.0, [False, True, False, False])
    for rows in (X, new, new * 1e300):
        assert_array_equal(gating.transform(rows)[:, 1], 0.0)


def test_a_column_that_varies_by_rounding_is_constant():
    X = VALUES.copy()
    X[:, 0] = 1.0 + np.arange(12) * np.finfo(float).eps / 4
    assert GatingFeatures().fit(X).scale_[0] == 0.0


def test_surplus_principal_components_are_not_blown_up():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 6))
    for what in (4, PCA(4)):
        gating = GatingFeatures(what).fit(X)
        assert_array_equal(gating.scale_ > 0.0, [True, True, False, False])
        assert_array_equal(gating.transform(X)[:, 2:], 0.0)


def test_columns_of_a_table_have_their_own_units():
    X = VALUES * [1e-200, 1e200, 1.0, 1e307 / 1e4]
    assert_allclose(GatingFeatures().fit_transform(X), standard(VALUES), rtol=1e-8)


@pytest.mark.parametrize("name", GATES)
def test_rows_absurdly_far_out_saturate_a_gate_without_warnings(name):
    gating = GatingFeatures().fit(VALUES)
    far = gating.transform(np.array([[1e308, -1e308, 0.0, 1.0], [-1e308, 1e308, 1e308, 1e308]]))
    assert np.abs(far).max() == LARGEST
    gate = as_gate(name)
    theta = gate.initial(gating.transform(VALUES), 3, np.random.default_rng(0))
    assert np.isfinite(gate.outputs(theta, far)).all()


def test_the_same_again_after_cloning_and_refitting():
    gating = GatingFeatures((["a", "c"], PCA(1))).fit(FRAME)
    before = gating.transform(FRAME)
    assert_array_equal(clone(gating).fit_transform(FRAME), before)
    gating.fit(FRAME[::2])
    assert_array_equal(gating.fit(FRAME).transform(FRAME), before)
    assert FRAME.equals(pd.DataFrame(VALUES, columns=NAMES))


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [None, [0, 1], 1, StandardScaler(), RBF(gamma=1.0)], ids=repr)
def test_all_constant(what):
    with pytest.raises(ValueError, match=r"gating features are constant.*without a gate"):
        GatingFeatures(what).fit(np.full((5, 2), 0.1))


@pytest.mark.parametrize("what", [None, [0], 1, StandardScaler(), RBF(gamma=1.0)], ids=repr)
def test_one_row_is_too_few(what):
    with pytest.raises(ValueError, match="of the gate: a gate cannot be learnt from 1 sample"):
        GatingFeatures(what).fit(VALUES[:1])


@pytest.mark.parametrize(
    ("bad", "shown"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")], ids=repr
)
@pytest.mark.parametrize("what", [None, [0, 2], 2], ids=repr)
def test_values_that_are_not_finite(bad, shown, what):
    X = VALUES.copy()
    X[3, 2] = bad
    message = rf"features of the gate: .*not finite \({shown}\) at row 3, column 2\."
    for table in (X, sparse.csr_array(X), X.tolist()):
        with pytest.raises(ValueError, match=message):
            GatingFeatures(what).fit(table)
    gating = GatingFeatures(what).fit(VALUES)
    with pytest.raises(ValueError, match=message):
        gating.transform(X)
    with pytest.raises(ValueError, match="row 3, column 'c'"):
        GatingFeatures(what).fit(pd.DataFrame(X, columns=NAMES))


def test_values_that_a_transformer_makes_not_finite():
    broken = FunctionTransformer(lambda X: np.where(X > 0, X, np.nan))
    with pytest.raises(ValueError, match=r"not finite \(NaN\) at row \d+, column \d"):
        GatingFeatures(broken).fit(VALUES)


def test_values_that_make_a_kernel_not_finite():
    X = VALUES.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="features of the gate: RBF"):
        GatingFeatures(RBF(gamma=1.0)).fit(X)


@pytest.mark.parametrize(
    "what",
    [None, [0, 1], 2, FunctionTransformer(), RBF(gamma=1.0), ([0], PCA(1))],
    ids=repr,
)
@pytest.mark.parametrize("width", [1, 3, 5])
def test_another_number_of_columns(what, width):
    gating = GatingFeatures(what).fit(VALUES)
    with pytest.raises(ValueError, match=f"X has {width} columns, but .* a table of 4"):
        gating.transform(np.ones((2, width)))


def test_other_names_or_another_order():
    gating = GatingFeatures().fit(FRAME)
    with pytest.raises(ValueError, match=r"X has the columns .*'d', 'c'"):
        gating.transform(FRAME[["a", "b", "d", "c"]])
    assert_allclose(gating.transform(VALUES), gating.transform(FRAME))


def test_columns_that_do_not_exist():
    with pytest.raises(ValueError, match="features of the gate: columns='z' cannot be selected"):
        GatingFeatures("z").fit(FRAME)
    with pytest.raises(ValueError, match=r"features of the gate: columns=.* cannot be selected"):
        GatingFeatures([7]).fit(VALUES)
    with pytest.raises(ValueError, match="0 feature"):
        GatingFeatures([]).fit(VALUES)


def test_a_transformer_that_loses_rows_or_changes_width():
    with pytest.raises(ValueError, match="turned 12 rows into 6"):
        GatingFeatures(FunctionTransformer(lambda X: X[::2])).fit(VALUES)
    growing = GatingFeatures(FunctionTransformer(lambda X: X[:, : len(X) % 4 + 1])).fit(VALUES)
    with pytest.raises(ValueError, match=r"X has 2 gating features, but .* on 1"):
        growing.transform(NEW)


@pytest.mark.parametrize("n_components", [0, -1, 5, np.int64(99)])
def test_impossible_numbers_of_components(n_components):
    with pytest.raises(ValueError, match=r"between 1 and 4.*in a list"):
        GatingFeatures(n_components).fit(VALUES)


@pytest.mark.parametrize("what", [True, SVC(), KernelUnion([("rbf", RBF())])], ids=repr)
def test_things_a_gate_cannot_look_at(what):
    with pytest.raises(TypeError, match="pass None, columns"):
        GatingFeatures(what).fit(VALUES)


def test_classes_and_matrices_in_the_wrong_place():
    for kind in (PCA, RBF):
        with pytest.raises(TypeError, match="is a class; pass an instance"):
            GatingFeatures(kind).fit(VALUES)
    with pytest.raises(TypeError, match="given as the X of fit"):
        GatingFeatures(VALUES).fit(VALUES)
    with pytest.raises((TypeError, ValueError), match="features of the gate"):
        GatingFeatures(2.5).fit(VALUES)


@pytest.mark.parametrize(
    "X", [VALUES[0], VALUES[None], "text", [["a", "b"], ["c", "d"]], [[1], []]]
)
def test_invalid_tables(X):
    with pytest.raises((ValueError, TypeError), match="features of the gate"):
        GatingFeatures().fit(X)


def test_a_kernel_stack_is_no_table():
    stack = KernelUnion([("rbf", RBF())]).fit(VALUES)(VALUES)
    with pytest.raises(TypeError, match="features of the gate: a KernelStack has no features"):
        GatingFeatures().fit(stack)


@pytest.mark.parametrize("what", [None, 2, PCA(1), RBF()], ids=repr)
def test_no_rows(what):
    with pytest.raises(ValueError, match="features of the gate: there are no training rows"):
        GatingFeatures(what).fit(VALUES[:0])


def test_transform_before_fit():
    with pytest.raises(NotFittedError):
        GatingFeatures().transform(VALUES)


def test_sparse_features_too_large_for_the_memory(monkeypatch):
    monkeypatch.setattr(features, "available_memory", lambda: 100)
    with pytest.raises(MemoryError, match=r"\(12, 4\).*TruncatedSVD"):
        GatingFeatures().fit(sparse.csr_array(VALUES))
