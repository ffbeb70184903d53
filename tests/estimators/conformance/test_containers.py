"""Every estimator with every kind of container: frames, sparse and mapped arrays, any labels."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.model_selection import KFold, cross_val_score

from manykernels import MKFDA, MKSVC, KernelStack, MKRidge
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import (
    ARRAY,
    FORMS,
    N_TEST,
    N_TRAIN,
    ONE_OF_EACH,
    PAIRS,
    ROW_NUMBERS,
    STACK,
    STACKED,
    TABLE,
    TEST_STACK,
    X_TEST,
    Form,
    X,
    Y,
    every_estimator,
    every_form,
    every_variant,
    refused,
    those,
)
from tests.problems import slow

CV = KFold(3)
COLUMNS = ["a", "b", "c", "d", "e"]
NAMED = [("shape", RBF(0.3).on(["a", "b", "c"])), ("flat", Linear()), ("d", RBF(1.0).on("d"))]
NUMBERED = [("shape", RBF(0.3).on([0, 1, 2])), ("flat", Linear()), ("d", RBF(1.0).on(3))]


def in_columns(frame, table):
    return frame(dict(zip(COLUMNS, table.T, strict=True)))


# -- tables ----------------------------------------------------------------------------------


@every_variant
@pytest.mark.parametrize("frame", [pd.DataFrame, *slow(pl.DataFrame)])
def test_dataframes_predict_as_arrays(entry, frame):
    data, new = in_columns(frame, X), in_columns(frame, X_TEST)
    expected = entry.fit(Form("numbered", NUMBERED, X, X_TEST))
    model = entry.fit(Form("named", NAMED, data, new))
    assert_array_equal(model.feature_names_in_, COLUMNS)
    # A descent over gates ends within its tolerance.
    rtol, atol = (1e-6, 1e-9) if entry.localized else (1e-10, 0)
    assert_allclose(entry.scores(model, new), entry.scores(expected, X_TEST), rtol, atol)
    if entry.localized:
        assert_allclose(model.gate(new), expected.gate(X_TEST), rtol, atol)
    else:
        assert_allclose(model.weights_, expected.weights_, rtol=1e-12)
    if entry.has_support:
        assert isinstance(model.support_vectors_, frame)
        assert_array_equal(model.support_vectors_.to_numpy(), X[model.support_])


@pytest.mark.parametrize("frame", [pd.DataFrame, *slow(pl.DataFrame)])
def test_folds_of_dataframes_are_those_of_arrays(frame):
    assert_allclose(
        cross_val_score(MKFDA(NAMED), in_columns(frame, X), Y, cv=CV),
        cross_val_score(MKFDA(NUMBERED), X, Y, cv=CV),
    )


@every_variant
def test_data_changed_after_the_fit_change_no_prediction(entry):
    frame, array = pd.DataFrame(X, columns=COLUMNS), X.copy()
    new = pd.DataFrame(X_TEST, columns=COLUMNS)
    on_frame = entry.make(NAMED).fit(frame, entry.y)
    on_array = entry.make(NUMBERED).fit(array, entry.y)
    expected = entry.scores(on_frame, new), entry.scores(on_array, X_TEST)
    frame["a"] = array[:] = 0.0
    assert_array_equal(entry.scores(on_frame, new), expected[0])
    assert_array_equal(entry.scores(on_array, X_TEST), expected[1])


@every_variant
@pytest.mark.parametrize("form", [sparse.csr_matrix, *slow(sparse.csr_array, sparse.csc_array)])
def test_sparse_predicts_as_dense(entry, form):
    holes, new = (np.where(np.abs(table) < 0.7, 0.0, table) for table in (X, X_TEST))
    dense = entry.fit(Form("dense", NUMBERED, holes, new))
    model = entry.fit(Form("sparse", NUMBERED, form(holes), form(new)))
    rtol, atol = (1e-3, 1e-4) if entry.localized else (1e-6, 1e-9)
    assert_allclose(entry.scores(model, form(new)), entry.scores(dense, new), rtol, atol)
    if entry.localized:
        assert_allclose(model.gate(form(new)), dense.gate(new), atol=1e-4)
    else:
        assert_allclose(model.weights_, dense.weights_, rtol=1e-6)
    if entry.has_support:
        assert_array_equal(model.support_vectors_.toarray(), holes[model.support_])


@those(lambda entry: entry.kind in (MKFDA, MKRidge, MKSVC), ONE_OF_EACH)
def test_single_precision_is_close_to_double(entry):
    exact = entry.scores(entry.fit(), X_TEST)
    for form in (TABLE, ARRAY):
        data, new = form.data.astype(np.float32), form.new.astype(np.float32)
        scores = entry.scores(entry.fit(Form("single", form.kernels, data, new)), new)
        assert scores.dtype == np.float64
        assert_allclose(scores, exact, rtol=1e-3, atol=1e-4 if entry.square else 1e-3)


# -- kernels ---------------------------------------------------------------------------------


@every_variant
def test_table_stack_array_and_row_numbers_predict_alike(entry):
    expected = entry.fit()
    scores = entry.scores(expected, X_TEST)
    # A gate on columns, or regions that are given, see none in an array or in row numbers.
    on_columns = entry.localized and not entry.looks_at_kernels
    sees_features = on_columns or (entry.regional and not entry.finds_regions)
    for form in [STACKED] if sees_features else [STACKED, ARRAY, ROW_NUMBERS]:
        model = entry.fit(form)
        tolerances = {"rtol": 1e-7, "atol": 1e-8}
        if entry.localized:
            tolerances = {"rtol": 1e-5, "atol": 1e-6}
            assert_allclose(model.gate(form.new), expected.gate(X_TEST), **tolerances)
        elif entry.kind is MKFDA and form is not ROW_NUMBERS and not entry.variant:
            tolerances = {"rtol": 1e-10}
        assert_allclose(entry.scores(model, form.new), scores, **tolerances)
        if not entry.localized:
            assert_allclose(model.weights_, expected.weights_, rtol=1e-6, atol=1e-8)


def test_folds_of_row_numbers_are_those_of_a_stack():
    assert_array_equal(
        cross_val_score(MKFDA(ROW_NUMBERS.kernels), ROW_NUMBERS.data, Y, cv=CV),
        cross_val_score(MKFDA("precomputed"), STACK, Y, cv=CV),
    )


@every_variant
@every_form
def test_samples_of_no_weight_keep_their_columns_in_test_blocks(entry, form):
    weight = np.ones(N_TRAIN)
    weight[[0, 7, 20]] = 0.0
    kept = np.flatnonzero(weight)
    # A number of folds would be dealt by row numbers, among which are those of no weight.
    folds = {"cv": None} if isinstance(entry.options.get("cv"), int) else {}
    model = entry.fit(form, sample_weight=weight, **folds)
    expected = entry.make(form.kernels, **{**form.params(entry), **folds})
    expected.fit(form.rows(kept), entry.y_at(kept))
    cut = form.new_rows(kept)
    assert model.n_features_in_ == form.data.shape[1]
    rtol, atol = (1e-7, 1e-9) if entry.localized else (1e-8, 1e-12)
    assert_allclose(entry.scores(model, form.new), entry.scores(expected, cut), rtol, atol)
    if entry.localized:
        assert_allclose(model.gate(form.new), expected.gate(cut), rtol, atol)
        assert model.evaluations(form.new) == expected.evaluations(cut)
        regions = (pd.DataFrame(each.region_summary()) for each in (model, expected))
        pd.testing.assert_frame_equal(*regions)
    if entry.has_support:
        assert_array_equal(model.support_, kept[expected.support_])
        if not form.pairwise:
            assert_array_equal(model.support_vectors_, X[model.support_])
    if hasattr(model, "n_support_"):
        assert_array_equal(model.n_support_, expected.n_support_)


# -- samples with names ----------------------------------------------------------------------

NAMES = [f"sample{i}" for i in range(N_TRAIN)]
FIRST, SECOND = np.arange(24), np.arange(24, 48)
NAMED_STACK = STACK.with_samples(NAMES)
TRANSPOSED = NAMED_STACK[np.ix_(FIRST, SECOND)]


@every_estimator
def test_a_square_block_given_the_wrong_way_round_is_found_where_samples_have_names(entry):
    model = entry.make("precomputed").fit(NAMED_STACK[np.ix_(FIRST, FIRST)], entry.y_at(FIRST))
    block = NAMED_STACK[np.ix_(SECOND, FIRST)]
    expected = model.predict(STACK[np.ix_(SECOND, FIRST)])
    assert_array_equal(model.predict(block), expected)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(block), expected)
    with refused(r"columns of X are not the training samples.*transposed"):
        model.predict(TRANSPOSED)
    with refused("another order"):
        model.predict(NAMED_STACK[np.ix_(SECOND, FIRST[::-1])])


@every_estimator
def test_rows_without_weight_keep_their_names(entry):
    weights = np.where(FIRST % 4 == 0, 0.0, 1.0)
    model = entry.make("precomputed")
    model.fit(NAMED_STACK[np.ix_(FIRST, FIRST)], entry.y_at(FIRST), sample_weight=weights)
    assert len(model.predict(NAMED_STACK[np.ix_(SECOND, FIRST)])) == 24
    with refused("transposed"):
        model.predict(TRANSPOSED)


def test_blocks_of_a_data_frame():
    K = pd.DataFrame(STACK.kernel(0), index=range(100, 148), columns=range(100, 148))
    train, test = K.index[FIRST], K.index[SECOND]
    machine = MKSVC("precomputed").fit(K.loc[train, train], Y[FIRST])
    expected = machine.predict(K.loc[test, train].to_numpy())
    assert_array_equal(machine.predict(K.loc[test, train]), expected)
    with refused(r"'124' against '100' at position 0.*transposed"):
        machine.predict(K.loc[train, test])
    with refused("Gram matrix are the same samples in the same order"):
        machine.fit(K.loc[train, test], Y[FIRST])


def test_searches_cut_names_along_with_samples():
    named, plain = (
        cross_val_score(MKFDA("precomputed"), stack, Y, error_score="raise")
        for stack in (NAMED_STACK, STACK)
    )
    assert_array_equal(named, plain)


def test_without_names_a_square_block_is_taken_as_it_is():
    # All self-similarities of Gaussian kernels are one, by which no sample is known.
    gaussian = STACK.select([0, 2])
    machine = MKSVC("precomputed").fit(gaussian[np.ix_(FIRST, FIRST)], Y[FIRST])
    transposed = KernelStack.from_arrays(gaussian.data[:, :24, 24:], gram=False)
    with refused("kernels of X"):
        machine.predict(transposed)
    assert machine.predict(gaussian[np.ix_(FIRST, SECOND)]).shape == (24,)


# -- labels ----------------------------------------------------------------------------------

OF_THREE = [
    np.array(["cat", "dog", "eel"]),
    np.array(["cat", "dog", "eel"], dtype=object),
    np.array([3, 7, 9]),
    np.array([-1.0, 0.0, 1.0]),
]
OF_TWO = [np.array([False, True]), np.array(["no", "yes"]), np.array([3, 7])]


@those(lambda entry: entry.target in ("two", "three"))
@pytest.mark.parametrize(
    "names", [OF_THREE[0], *slow(*OF_THREE[1:]), OF_TWO[0], *slow(*OF_TWO[1:])], ids=str
)
def test_labels_of_any_kind(entry, names):
    names = names[: 2 if entry.target == "two" else 3]
    y = Y % len(names)
    expected, model = entry.make(PAIRS).fit(X, y), entry.make(PAIRS).fit(X, names[y])
    assert_array_equal(model.classes_, names)
    assert model.classes_.dtype == names.dtype
    found, decision = model.predict(X_TEST), model.decision_function(X_TEST)
    assert_array_equal(found, names[expected.predict(X_TEST)])
    assert_array_equal(decision, expected.decision_function(X_TEST))
    assert decision.shape == ((N_TEST,) if len(names) == 2 else (N_TEST, 3))
    if len(names) == 2:
        assert_array_equal(found == names[1], decision > 0)
    # Decision values of machines are no log-odds, and need not choose the most probable class.
    if hasattr(model, "predict_proba") and entry.discriminant:
        probabilities = model.predict_proba(X_TEST)
        assert_array_equal(found, names[probabilities.argmax(axis=1)])
        if len(names) == 2:
            assert_allclose(probabilities[:, 1], expit(decision))
    assert len(np.unique(model.predict(X))) == len(names)


# -- memory ----------------------------------------------------------------------------------


@every_variant
def test_fit_and_predict_change_nothing_they_are_given(entry):
    weight = np.linspace(0.1, 1, N_TRAIN)
    stacks = [stack.data for stack in (STACK, TEST_STACK)]
    given = [X, X_TEST, weight, ARRAY.data, ARRAY.new, *stacks, STACK.row_diag, STACK.features]
    given += [] if entry.y is None else [entry.y]
    before = [item.copy() for item in given]
    for form in FORMS:
        for normalize in ("multiplicative", *([] if form is ARRAY else ["spherical"]), None):
            model = entry.fit(form, sample_weight=weight, normalize=normalize)
            assert len(model.predict(form.new)) == N_TEST
    for item, old in zip(given, before, strict=True):
        assert_array_equal(item, old)
    assert not STACK.centered


@every_variant
@every_form
def test_read_only_memory_maps(entry, form, tmp_path):
    def mapped(name, value):
        joblib.dump(value, tmp_path / name)
        return joblib.load(tmp_path / name, mmap_mode="r")

    expected = entry.scores(entry.fit(form), form.new)
    data, new = mapped("data", form.data), mapped("new", form.new)
    held = data.data if isinstance(data, KernelStack) else data
    assert isinstance(held, np.memmap)
    assert not held.flags.writeable
    labels = None if entry.y is None else mapped("labels", entry.y)
    model = entry.make(form.kernels, **form.params(entry)).fit(data, labels)
    assert_array_equal(entry.scores(model, new), expected)
