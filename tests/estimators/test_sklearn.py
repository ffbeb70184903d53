"""MKFDA inside scikit-learn: its checks, searches, pipelines, containers and callbacks."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import MKFDA, KernelStack, KernelUnion
from manykernels.estimators import _inputs
from manykernels.kernels import RBF, CallableKernel, Linear, Precomputed
from tests.problems import scikit_learn_checks

N_TRAIN, N_TEST = 48, 17
CV = StratifiedKFold(3)


def table(n_classes=3, seed=0):
    """Train and test rows of overlapping blobs; the last two columns are noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(N_TRAIN + N_TEST) % n_classes
    X = rng.normal(size=(len(y), 5))
    X[:, :3] += 1.2 * np.eye(n_classes, 3)[y]
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


X, y, X_TEST, Y_TEST = table()
PAIRS = [("shape", RBF(0.3).on(slice(0, 3))), ("flat", Linear()), ("noise", RBF(1.0).on([3, 4]))]
UNION = KernelUnion(PAIRS).fit(X)
STACK = UNION(X)
TEST_STACK = UNION(X_TEST, X)


def fitted_on_stack(**params):
    return MKFDA("precomputed", **params).fit(STACK, y)


# -- scikit-learn's own checks ---------------------------------------------------------------


@pytest.mark.parametrize("estimator", [MKFDA(), MKFDA("precomputed")], ids=["table", "stack"])
def test_scikit_learn_checks(estimator):
    broken, n_passed = scikit_learn_checks(estimator)
    assert not broken, "\n".join(broken)
    assert n_passed > 40


# -- searches --------------------------------------------------------------------------------

P_AND_REG = {"p": [1, 2, np.inf], "reg": [0.1, 10.0]}
GAMMAS = {"kernels__shape__gamma": [0.01, 0.3, 30.0]}
SEARCHES = {
    "table": (MKFDA(), P_AND_REG, X),
    "union": (MKFDA(KernelUnion(PAIRS)), GAMMAS, X),
    "pairs": (MKFDA(PAIRS), GAMMAS, X),
    "stack": (MKFDA("precomputed"), P_AND_REG, STACK),
    "array": (MKFDA("precomputed"), P_AND_REG, np.asarray(STACK)),
}


def fold_score(estimator, data, train, test):
    if estimator.kernels == "precomputed":
        train_data, test_data = data[np.ix_(train, train)], data[np.ix_(test, train)]
    else:
        train_data, test_data = data[train], data[test]
    return np.mean(estimator.fit(train_data, y[train]).predict(test_data) == y[test])


@pytest.mark.slow
@pytest.mark.parametrize("case", SEARCHES)
def test_grid_search_scores_as_a_loop_over_folds_with_any_number_of_jobs(case):
    estimator, grid, data = SEARCHES[case]
    searches = [GridSearchCV(estimator, grid, cv=CV, n_jobs=n).fit(data, y) for n in (1, 2)]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert_array_equal(scores[0], scores[1])
    assert searches[0].best_params_ == searches[1].best_params_
    assert np.ptp(scores[0]) > 0, "a grid of equal scores tests nothing"
    by_hand = [
        np.mean(
            [
                fold_score(clone(estimator).set_params(**params), data, train, test)
                for train, test in CV.split(np.zeros(len(y)), y)
            ]
        )
        for params in searches[0].cv_results_["params"]
    ]
    assert_allclose(scores[0], by_hand, rtol=1e-12)


def test_search_leaves_the_kernels_it_was_given_alone():
    GridSearchCV(MKFDA(PAIRS), GAMMAS, cv=CV).fit(X, y)
    assert PAIRS[0][1].gamma == 0.3
    assert not hasattr(PAIRS[0][1], "n_features_in_")


def test_stack_and_array_search_alike():
    stack, array = (
        GridSearchCV(MKFDA("precomputed"), P_AND_REG, cv=CV).fit(data, y).cv_results_
        for data in (STACK, np.asarray(STACK))
    )
    assert_array_equal(stack["mean_test_score"], array["mean_test_score"])


def test_pipeline_scales_as_by_hand():
    wide = X * [1, 10, 100, 1000, 1e4]
    scaler = StandardScaler().fit(wide)
    model = make_pipeline(StandardScaler(), MKFDA()).fit(wide, y)
    expected = MKFDA().fit(scaler.transform(wide), y)
    new = X_TEST * [1, 10, 100, 1000, 1e4]
    assert_array_equal(
        model.decision_function(new), expected.decision_function(scaler.transform(new))
    )
    search = GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("fda", MKFDA(PAIRS))]),
        {"fda__kernels__shape__gamma": [0.1, 10.0], "fda__p": [1, 2]},
        cv=CV,
    ).fit(wide, y)
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cross_val_predict_on_table_and_stack(method, n_classes):
    X, y, _, _ = table(n_classes)
    kernels = [("a", RBF(0.2)), ("b", Linear())]
    stack = KernelUnion(kernels).fit(X)(X)
    on_table = cross_val_predict(MKFDA(kernels), X, y, cv=CV, method=method)
    on_stack = cross_val_predict(MKFDA("precomputed"), stack, y, cv=CV, method=method)
    expected = np.empty_like(on_table)
    for train, test in CV.split(X, y):
        expected[test] = getattr(MKFDA(kernels).fit(X[train], y[train]), method)(X[test])
    assert_allclose(on_table, expected, rtol=1e-12)
    assert_allclose(on_stack, expected, rtol=1e-6, atol=1e-8)


def test_spherical_normalisation_survives_the_cuts_of_cross_validation():
    kernels = [("a", RBF(0.2)), ("b", Linear())]
    stack = KernelUnion(kernels).fit(X)(X)
    params = {"cv": CV, "method": "decision_function"}
    on_table = cross_val_predict(MKFDA(kernels, normalize="spherical"), X, y, **params)
    on_stack = cross_val_predict(MKFDA("precomputed", normalize="spherical"), stack, y, **params)
    assert_allclose(on_stack, on_table, rtol=1e-6, atol=1e-8)


def test_calibration_on_table_and_stack():
    settings = {"cv": CV, "ensemble": False}
    on_table = CalibratedClassifierCV(MKFDA(PAIRS), **settings).fit(X, y)
    on_stack = CalibratedClassifierCV(MKFDA("precomputed"), **settings).fit(STACK, y)
    probabilities = on_table.predict_proba(X_TEST)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert on_table.score(X_TEST, Y_TEST) > 0.5
    assert_allclose(on_stack.predict_proba(TEST_STACK), probabilities, atol=1e-5)


def test_calibrated_ensemble_on_table_and_row_numbers():
    # Members of an ensemble are given rows only, which no stack can be cut into.
    everything = UNION(np.vstack([X, X_TEST]))
    kernels = [(name, Precomputed(everything.kernel(name))) for name in everything.names]
    rows = np.arange(N_TRAIN + N_TEST)[:, None]
    on_table = CalibratedClassifierCV(MKFDA(PAIRS), cv=CV).fit(X, y)
    on_rows = CalibratedClassifierCV(MKFDA(kernels), cv=CV).fit(rows[:N_TRAIN], y)
    probabilities = on_table.predict_proba(X_TEST)
    assert on_table.score(X_TEST, Y_TEST) > 0.5
    assert_allclose(on_rows.predict_proba(rows[N_TRAIN:]), probabilities, atol=1e-5)


# -- copies and parameters -------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_copies_predict_the_same(copied):
    for model, data in [(MKFDA(PAIRS).fit(X, y), X_TEST), (fitted_on_stack(), TEST_STACK)]:
        twin = copied(model)
        assert twin is not model
        assert_array_equal(twin.decision_function(data), model.decision_function(data))
        assert_array_equal(twin.transform(data), model.transform(data))
        assert twin.certificate_ == model.certificate_


def test_clone_has_the_parameters_and_is_not_fitted():
    model = MKFDA(PAIRS, p=1.5, reg=3.0, normalize="trace", max_iter=7).fit(X, y)
    twin = clone(model)
    simple = {name for name in model.get_params(deep=False) if name != "kernels"}
    assert {n: twin.get_params()[n] for n in simple} == {n: model.get_params()[n] for n in simple}
    assert repr(twin.kernels) == repr(model.kernels)
    assert [pair[1] for pair in twin.kernels] != [pair[1] for pair in model.kernels]
    assert not [name for name in vars(twin) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        twin.predict(X)


@pytest.mark.parametrize("wrap", [list, KernelUnion])
def test_nested_parameters(wrap):
    model = MKFDA(wrap(PAIRS))
    params = model.get_params()
    assert params["kernels__shape__gamma"] == 0.3
    assert params["kernels__noise"].columns == [3, 4]
    changed = clone(model).set_params(kernels__shape__gamma=5.0, p=1)
    assert changed.get_params()["kernels__shape__gamma"] == 5.0
    assert changed.p == 1
    assert changed.fit(X, y).union_.kernels_[0][1].gamma == 5.0
    replaced = clone(model).set_params(kernels__shape=Linear()).fit(X, y)
    assert isinstance(replaced.union_.kernels_[0][1], Linear)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(kernels__shape__width_of_nothing=1)
    assert model.get_params()["kernels__shape__gamma"] == 0.3
    assert PAIRS[0][1].gamma == 0.3


@pytest.mark.parametrize("wrap", [list, KernelUnion])
def test_html_shows_the_kernels(wrap):
    html = MKFDA(wrap(PAIRS))._repr_html_()
    assert "MKFDA" in html
    for name, _ in PAIRS:
        assert name in html


# -- output ----------------------------------------------------------------------------------


def test_transform_as_a_dataframe():
    model = MKFDA(PAIRS).set_output(transform="pandas").fit(X, y)
    frame = model.transform(X_TEST)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["mkfda0", "mkfda1"]
    assert list(model.get_feature_names_out()) == ["mkfda0", "mkfda1"]
    assert_array_equal(frame.to_numpy(), MKFDA(PAIRS).fit(X, y).transform(X_TEST))


def test_number_of_directions():
    for n_classes in (2, 3):
        X, y, X_test, _ = table(n_classes)
        model = MKFDA().fit(X, y)
        assert model.transform(X_test).shape == (N_TEST, n_classes - 1)
        assert len(model.get_feature_names_out()) == n_classes - 1


class Recorder:
    """A callback that notes the tasks it is told of, and may ask to stop after some."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.calls = [], [], []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, **given):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **given):
        self.ended.append(context.task_name)
        iterations = sum(name.startswith("iteration") for name in self.ended)
        return self.stop_after is not None and iterations >= self.stop_after


def test_callbacks_hear_of_every_iteration():
    recorder = Recorder()
    model = fitted_on_stack(p=1.5)
    listening = MKFDA("precomputed", p=1.5).set_callbacks(recorder).fit(STACK, y)
    iterations = [f"iteration {k}" for k in range(listening.n_iter_)]
    assert listening.n_iter_ > 1
    assert recorder.begun == ["fit", *iterations]
    assert recorder.ended == [*iterations, "fit"]
    assert recorder.calls == ["setup", "teardown"]
    assert_array_equal(listening.weights_, model.weights_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_can_stop_the_fit():
    model = MKFDA("precomputed", p=1.5, tol=1e-12).set_callbacks(Recorder(stop_after=2))
    model.fit(STACK, y)
    assert model.n_iter_ == 2
    assert not model.certificate_.converged
    assert model.score(TEST_STACK, Y_TEST) > 0.5


def test_verbose_prints_a_line_per_iteration(capsys):
    model = fitted_on_stack(p=1.5, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ > 1
    for k, (line, gap) in enumerate(zip(lines, model.history_["rel_gap"], strict=True)):
        assert line.startswith("[MKFDA]")
        assert f"iteration {k:3d}" in line
        assert f"{gap:.2e}" in line
    fitted_on_stack(p=1.5)
    assert capsys.readouterr().out == ""


# -- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        np.array(["cat", "dog", "eel"]),
        np.array(["cat", "dog", "eel"], dtype=object),
        np.array([3, 7, 9]),
        np.array([-1.0, 0.0, 1.0]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array([3, 7]),
    ],
    ids=str,
)
def test_labels_of_any_kind(names):
    X, y, X_test, _ = table(len(names))
    expected = MKFDA().fit(X, y)
    model = MKFDA().fit(X, names[y])
    assert_array_equal(model.classes_, names)
    assert model.classes_.dtype == names.dtype
    assert_array_equal(model.predict(X_test), names[expected.predict(X_test)])
    assert_array_equal(model.decision_function(X_test), expected.decision_function(X_test))
    if len(names) == 2:
        decision = model.decision_function(X_test)
        assert_array_equal(model.predict(X_test) == names[1], decision > 0)
        assert_allclose(model.predict_proba(X_test)[:, 1], expit(decision))


# -- containers ------------------------------------------------------------------------------

COLUMNS = ["a", "b", "c", "d", "e"]
NAMED = [("shape", RBF(0.3).on(["a", "b", "c"])), ("flat", Linear()), ("d", RBF(1.0).on("d"))]
NUMBERED = [("shape", RBF(0.3).on([0, 1, 2])), ("flat", Linear()), ("d", RBF(1.0).on(3))]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframes_predict_as_arrays(frame):
    def named(table):
        return frame(dict(zip(COLUMNS, table.T, strict=True)))

    expected = MKFDA(NUMBERED).fit(X, y)
    model = MKFDA(NAMED).fit(named(X), y)
    assert_array_equal(model.feature_names_in_, COLUMNS)
    assert_allclose(model.weights_, expected.weights_, rtol=1e-12)
    assert_allclose(
        model.decision_function(named(X_TEST)), expected.decision_function(X_TEST), rtol=1e-12
    )
    assert_allclose(
        cross_val_score(MKFDA(NAMED), named(X), y, cv=CV),
        cross_val_score(MKFDA(NUMBERED), X, y, cv=CV),
    )


def test_a_frame_changed_after_the_fit_changes_no_prediction():
    frame = pd.DataFrame(X, columns=COLUMNS)
    new = pd.DataFrame(X_TEST, columns=COLUMNS)
    model = MKFDA(NAMED).fit(frame, y)
    before = model.decision_function(new)
    frame["a"] = 0.0
    assert_array_equal(model.decision_function(new), before)


def test_an_array_changed_after_the_fit_changes_no_prediction():
    array = X.copy()
    model = MKFDA(NUMBERED).fit(array, y)
    before = model.decision_function(X_TEST)
    array[:] = 0.0
    assert_array_equal(model.decision_function(X_TEST), before)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_predicts_as_dense(form):
    holes = np.where(np.abs(X) < 0.7, 0.0, X)
    new = np.where(np.abs(X_TEST) < 0.7, 0.0, X_TEST)
    dense = MKFDA(NUMBERED).fit(holes, y)
    model = MKFDA(NUMBERED).fit(form(holes), y)
    assert_allclose(model.weights_, dense.weights_, rtol=1e-6)
    assert_allclose(
        model.decision_function(form(new)), dense.decision_function(new), rtol=1e-6, atol=1e-9
    )


def test_single_precision_is_close_to_double():
    model = MKFDA(PAIRS).fit(X.astype(np.float32), y)
    exact = MKFDA(PAIRS).fit(X, y)
    scores = model.decision_function(X_TEST.astype(np.float32))
    assert scores.dtype == np.float64
    assert_allclose(scores, exact.decision_function(X_TEST), rtol=1e-3, atol=1e-4)
    single = np.asarray(STACK).astype(np.float32)
    new = np.asarray(TEST_STACK).astype(np.float32)
    scores = MKFDA("precomputed").fit(single, y).decision_function(new)
    assert_allclose(scores, exact.decision_function(X_TEST), rtol=1e-3, atol=1e-4)


def test_table_and_stack_and_array_predict_alike():
    expected = MKFDA(PAIRS).fit(X, y).decision_function(X_TEST)
    assert_allclose(fitted_on_stack().decision_function(TEST_STACK), expected, rtol=1e-10)
    model = MKFDA("precomputed").fit(np.asarray(STACK), y)
    assert_allclose(model.decision_function(np.asarray(TEST_STACK)), expected, rtol=1e-10)


def test_row_numbers_predict_as_a_precomputed_stack():
    everything = UNION(np.vstack([X, X_TEST]))
    kernels = [(name, Precomputed(everything.kernel(name))) for name in everything.names]
    rows = np.arange(N_TRAIN + N_TEST)[:, None]
    model = MKFDA(kernels).fit(rows[:N_TRAIN], y)
    expected = fitted_on_stack()
    assert_allclose(model.weights_, expected.weights_, rtol=1e-8)
    assert_allclose(
        model.decision_function(rows[N_TRAIN:]),
        expected.decision_function(TEST_STACK),
        rtol=1e-8,
    )
    assert_array_equal(
        cross_val_score(MKFDA(kernels), rows[:N_TRAIN], y, cv=CV),
        cross_val_score(MKFDA("precomputed"), STACK, y, cv=CV),
    )


@pytest.mark.parametrize("data", [STACK, np.asarray(STACK)], ids=["stack", "array"])
def test_samples_of_no_weight_keep_their_columns_in_test_blocks(data):
    weight = np.ones(N_TRAIN)
    weight[[0, 7, 20]] = 0.0
    kept = np.flatnonzero(weight)
    new = TEST_STACK if data is STACK else np.asarray(TEST_STACK)
    every_test = np.arange(N_TEST)
    expected = MKFDA("precomputed").fit(data[np.ix_(kept, kept)], y[kept])
    model = MKFDA("precomputed").fit(data, y, sample_weight=weight)
    assert model.n_features_in_ == N_TRAIN
    assert_allclose(
        model.decision_function(new),
        expected.decision_function(new[np.ix_(every_test, kept)]),
        rtol=1e-8,
    )


# -- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [1, 3 * N_TRAIN * 4, 3 * N_TRAIN * N_TEST])
def test_prediction_in_blocks_of_rows(monkeypatch, entries):
    for normalize in ("multiplicative", "spherical"):
        on_table = MKFDA(PAIRS, normalize=normalize).fit(X, y)
        on_stack = fitted_on_stack(normalize=normalize)
        expected = on_table.decision_function(X_TEST)
        shapes = []
        evaluate = KernelUnion.__call__

        def recording(self, *args, shapes=shapes, evaluate=evaluate, **kwargs):
            stack = evaluate(self, *args, **kwargs)
            shapes.append(stack.shape)
            return stack

        with monkeypatch.context() as patch:
            patch.setattr(_inputs, "_TEST_BLOCK_ENTRIES", entries)
            patch.setattr(KernelUnion, "__call__", recording)
            assert_allclose(on_table.decision_function(X_TEST), expected, rtol=1e-10)
            assert_allclose(on_stack.decision_function(TEST_STACK), expected, rtol=1e-8)
        assert sum(rows for rows, _, _ in shapes) == N_TEST
        assert max(np.prod(shape) for shape in shapes) <= max(entries, 3 * N_TRAIN)


CALLS = []


def nothing(X, Y):
    CALLS.append((len(X), len(Y)))
    return np.zeros((len(X), len(Y)))


def of_noise(X, Y):
    CALLS.append((len(X), len(Y)))
    return np.exp(-50.0 * (X[:, :1] - Y[:, :1].T) ** 2)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("function", [nothing, of_noise])
def test_kernels_without_weight_are_not_evaluated(function):
    kernels = [("useful", RBF(0.3).on([0, 1, 2])), ("useless", CallableKernel(function).on([3]))]
    easy = X + 5.0 * np.eye(3, 5)[y]
    model = MKFDA(kernels, p=1, reg=10.0).fit(easy, y)
    assert model.weights_[1] == 0.0
    assert CALLS
    CALLS.clear()
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        assert len(getattr(model, method)(X_TEST)) == N_TEST
    assert CALLS == []


def arrays_of(value, seen):
    """All arrays that can be reached from a value."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield value
        yield from arrays_of(value.base, seen)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_of(item, seen)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from arrays_of(item, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from arrays_of(vars(value), seen)
        if hasattr(value, "__closure__"):
            for cell in value.__closure__ or ():
                yield from arrays_of(cell.cell_contents, seen)


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "trace", None])
@pytest.mark.parametrize("data", [STACK, np.asarray(STACK)], ids=["stack", "array"])
def test_a_fitted_estimator_holds_no_kernel_matrix(normalize, data):
    model = MKFDA("precomputed", normalize=normalize).fit(data, y)
    sizes = [array.size for array in arrays_of(vars(model), {})]
    assert len(sizes) > 5
    assert max(sizes) < N_TRAIN * N_TRAIN / 2


def test_a_fitted_estimator_on_a_table_holds_no_kernel_matrix():
    model = MKFDA(PAIRS).fit(X, y)
    model.predict(X_TEST)
    sizes = [array.size for array in arrays_of(vars(model), {})]
    assert max(sizes) < N_TRAIN * N_TRAIN / 2


def test_fit_and_predict_change_nothing_they_are_given():
    weight = np.linspace(0.1, 1, len(y))
    array, new = np.asarray(STACK), np.asarray(TEST_STACK)
    given = [X, y, X_TEST, weight, array, new, STACK.data, TEST_STACK.data, STACK.row_diag]
    before = [item.copy() for item in given]
    for normalize in ("multiplicative", "spherical", None):
        MKFDA(PAIRS, normalize=normalize).fit(X, y, weight).predict(X_TEST)
        MKFDA("precomputed", normalize=normalize).fit(STACK, y, weight).predict(TEST_STACK)
    MKFDA("precomputed").fit(array, y, weight).predict(new)
    for item, old in zip(given, before, strict=True):
        assert_array_equal(item, old)
    assert not STACK.centered


def test_read_only_memory_maps(tmp_path):
    def mapped(name, value):
        joblib.dump(value, tmp_path / name)
        value = joblib.load(tmp_path / name, mmap_mode="r")
        return value

    inputs = [
        (MKFDA(PAIRS), X, X_TEST),
        (MKFDA("precomputed"), np.asarray(STACK), np.asarray(TEST_STACK)),
        (MKFDA("precomputed"), STACK, TEST_STACK),
    ]
    for k, (model, data, new) in enumerate(inputs):
        expected = model.fit(data, y).decision_function(new)
        data, new, labels = (mapped(f"{n}{k}", v) for n, v in enumerate([data, new, y]))
        held = data.data if isinstance(data, KernelStack) else data
        assert isinstance(held, np.memmap)
        assert not held.flags.writeable
        assert_array_equal(model.fit(data, labels).decision_function(new), expected)
