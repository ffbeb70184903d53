"""What a gate looks at: columns, transformed tables, kernels, the features of a stack."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from manykernels import MKFDA, MKSVC, LocalizedFDA, LocalizedSVC
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import (
    N_TRAIN,
    ONE_OF_EACH,
    PAIRS,
    STACK,
    STACKED,
    TABLE,
    TEST_STACK,
    UNION,
    UNJUDGED,
    X_TEST,
    Form,
    X,
    Y,
    every_localized,
    made,
    those,
)
from tests.problems import slow

PLAIN = Form("plain stack", "precomputed", UNION(X), UNION(X_TEST, X))
COLUMNS = ["a", "b", "c", "d", "e"]
NAMED = [
    ("shape", RBF(0.3).on(["a", "b", "c"])),
    ("flat", Linear()),
    ("noise", RBF(1.0).on(["d", "e"])),
]


def learnt(entry, form=TABLE, **params):
    """As far as the objective falls: held-out samples may leave nothing to look at."""
    return entry.fit(form, **unjudged(entry), **params)


def unjudged(entry):
    return {} if entry.chooses else {"early_stopping": 0}


@pytest.mark.parametrize("features", [PCA(2), *slow(RBF(0.3))], ids=str)
def test_what_was_passed_is_not_fitted(features):
    before = pickle.dumps(features)
    model = made(LocalizedSVC, PAIRS, features=features, **UNJUDGED).fit(X, Y)
    assert model.gating.features is features
    assert pickle.dumps(features) == before


@those(lambda e: e.localized and (e.variant == "separate" or "SVC" not in e.name))
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("names", "positions"),
    [(["c", "a"], [2, 0]), ("d", [3]), ((["b", "c"], PCA(1)), ([1, 2], PCA(1)))],
    ids=["columns", "column", "transformed columns"],
)
def test_columns_of_dataframes_as_gating_features(entry, frame, names, positions):
    data, new = (frame(dict(zip(COLUMNS, table.T, strict=True))) for table in (X, X_TEST))
    model = learnt(entry, Form("named", NAMED, data, new), features=names)
    expected = learnt(entry, features=positions)
    tolerances = {"rtol": 1e-6, "atol": 1e-9}
    assert_allclose(model.gate(new), expected.gate(X_TEST), **tolerances)
    assert_allclose(entry.scores(model, new), entry.scores(expected, X_TEST), **tolerances)
    assert isinstance(model.support_vectors_, frame)
    assert_array_equal(model.support_vectors_.to_numpy(), X[model.support_])


@those(lambda entry: entry.kind is LocalizedSVC, ONE_OF_EACH)
@pytest.mark.parametrize(
    "what", [slice(None), [0, 2], slice(1, 3), 2, PCA(2), RBF(0.2), ([0, 1], PCA(1))]
)
def test_features_of_a_stack_are_looked_at_as_those_of_a_table(entry, what):
    expected, model = (learnt(entry, form, features=what) for form in (TABLE, STACKED))
    assert_allclose(model.gate(TEST_STACK), expected.gate(X_TEST), atol=1e-6)
    scores = entry.scores(model, TEST_STACK)
    assert_allclose(scores, entry.scores(expected, X_TEST), atol=1e-5)


@every_localized
def test_the_kernel_map_of_a_stack_is_that_of_the_kernel(entry):
    expected = learnt(entry, features=RBF(0.3).on(slice(0, 3)))
    model = learnt(entry, PLAIN, features="shape")
    tolerances = {"rtol": 1e-4, "atol": 1e-5}
    assert_allclose(model.gate(PLAIN.new), expected.gate(X_TEST), **tolerances)
    scores = entry.scores(model, PLAIN.new)
    assert_allclose(scores, entry.scores(expected, X_TEST), **tolerances)


@those(lambda entry: entry.localized and entry.target == "three")
def test_features_may_learn_from_the_labels(entry):
    lda = LinearDiscriminantAnalysis(n_components=2)
    how = {"features": lda, **unjudged(entry)}
    model = entry.fit(**how)
    features = lda.fit_transform(X, Y)
    how["features"] = slice(None)
    expected = entry.make("precomputed", **how).fit(STACK.with_features(features), Y)
    assert_allclose(model.gate(X), expected.gate(STACK.with_features(lda.transform(X))), atol=1e-5)


@every_localized
@pytest.mark.parametrize(
    ("form", "features"), [(TABLE, RBF(0.2)), (PLAIN, "shape")], ids=["kernel", "kernel map"]
)
def test_samples_of_no_weight_are_not_looked_at(entry, form, features):
    params = {"features": features, "normalize": "multiplicative", **unjudged(entry)}
    if entry.chooses:
        # A number of folds would be dealt by row numbers, among which are those of no weight.
        params["cv"] = None
    weight = np.ones(N_TRAIN)
    weight[[0, 7, 20]] = 0.0
    kept = np.flatnonzero(weight)
    model = entry.fit(form, sample_weight=weight, **params)
    expected = entry.make(form.kernels, **params).fit(form.rows(kept), entry.y_at(kept))
    cut, tolerances = form.new_rows(kept), {"rtol": 1e-7, "atol": 1e-9}
    assert_allclose(entry.scores(model, form.new), entry.scores(expected, cut), **tolerances)
    assert_allclose(model.gate(form.new), expected.gate(cut), **tolerances)
    assert_array_equal(model.support_, kept[expected.support_])


def test_data_changed_after_the_fit_change_no_gate():
    array = X.copy()
    model = made(LocalizedSVC, PAIRS, features=([0, 1], RBF(0.5)), **UNJUDGED).fit(array, Y)
    before = model.decision_function(X_TEST), model.gate(X_TEST)
    array[:] = 0.0
    assert_array_equal(model.decision_function(X_TEST), before[0])
    assert_array_equal(model.gate(X_TEST), before[1])


@pytest.mark.parametrize("weights", ["balanced", {0: 3.0}], ids=str)
def test_class_weights_are_those_of_the_plain_machine(weights):
    """One kernel, which leaves a softmax nothing to learn."""
    settings = {"normalize": "spherical", "class_weight": weights}
    rows = np.arange(0, N_TRAIN, 2)[:-3]
    for kind, plain in ((LocalizedSVC, MKSVC), (LocalizedFDA, MKFDA)):
        models = [kind(RBF(0.2), **settings), plain(RBF(0.2), tol=1e-9, **settings)]
        for model in models:
            model.fit(X[rows], Y[rows])
        found, expected = (model.decision_function(X_TEST) for model in models)
        assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
