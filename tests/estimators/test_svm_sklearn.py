"""The support vector machines inside scikit-learn: its checks, searches, containers, callbacks."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from manykernels import MKSVC, MKSVR, KernelStack, KernelUnion, MKOneClassSVM
from manykernels.estimators import _inputs
from manykernels.kernels import RBF, Kernel, Linear, Precomputed
from tests.problems import scikit_learn_checks, slow

N_TRAIN, N_TEST = 48, 17
CV = KFold(3)
rng = np.random.default_rng(0)
LABELS = np.arange(N_TRAIN + N_TEST) % 3
EVERYTHING = rng.normal(size=(N_TRAIN + N_TEST, 5))
EVERYTHING[:, :3] += 1.2 * np.eye(3)[LABELS]
X, X_TEST = EVERYTHING[:N_TRAIN], EVERYTHING[N_TRAIN:]
Y, Y_TEST = LABELS[:N_TRAIN], LABELS[N_TRAIN:]
VALUES = X[:, 0] + np.sin(X[:, 1])
PAIRS = [("shape", RBF(0.3).on(slice(0, 3))), ("flat", Linear()), ("noise", RBF(1.0).on([3, 4]))]
UNION = KernelUnion(PAIRS).fit(X)
STACK, TEST_STACK = UNION(X), UNION(X_TEST, X)

MACHINES = {
    "shared": (MKSVC, {}, Y),
    "separate": (MKSVC, {"multi_class": "separate"}, Y),
    "binary": (MKSVC, {}, Y == 0),
    "joint": (MKSVC, {"loss": "squared_hinge", "C": "joint"}, Y),
    "regression": (MKSVR, {}, VALUES),
    "one class": (MKOneClassSVM, {"nu": 0.3}, None),
}
every_machine = pytest.mark.parametrize("machine", MACHINES)


def make(machine, kernels=PAIRS, **params):
    kind, own, _ = MACHINES[machine]
    return kind(kernels, **{**own, **params})


def fit(machine, kernels=PAIRS, data=X, **params):
    return make(machine, kernels, **params).fit(data, MACHINES[machine][2])


def scores(model, data=X_TEST):
    decide = model.predict if isinstance(model, MKSVR) else model.decision_function
    return decide(data)


# -- scikit-learn's own checks ---------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        MKSVC(),
        MKSVC("precomputed"),
        *slow(MKSVC(multi_class="separate"), MKSVC(loss="squared_hinge", C="joint")),
        MKSVR(),
        MKSVR("precomputed"),
        MKOneClassSVM(),
    ],
    ids=str,
)
def test_scikit_learn_checks(estimator):
    broken, n_passed = scikit_learn_checks(estimator)
    assert not broken, "\n".join(broken)
    assert n_passed > 40


# Of centred data the origin lies among the samples, and the objective is zero but for rounding.
@pytest.mark.filterwarnings("ignore:MKOneClassSVM is limited by rounding")
def test_scikit_learn_checks_of_one_class_on_kernels():
    """What scikit-learn's own machine does not pass, and a matrix that is no kernel."""
    broken, n_passed = scikit_learn_checks(MKOneClassSVM("precomputed"))
    theirs, _ = scikit_learn_checks(OneClassSVM(kernel="precomputed"))
    names, expected = ({line.split(":")[0] for line in lines} for lines in (broken, theirs))
    assert expected == {"check_outliers_fit_predict", "check_outliers_train"}
    assert names == expected | {"check_positive_only_tag_during_fit"}
    for line in broken:
        assert "positive_only" in line or "X should be a square kernel matrix" in line
    assert n_passed > 40


# -- searches --------------------------------------------------------------------------------

P_AND_C = {"p": [1, np.inf], "C": [0.01, 10.0]}
C_AND_EPSILON = {"C": [0.01, 10.0], "epsilon": [0.0, 1.0]}
GAMMAS = {"kernels__shape__gamma": [0.3, 30.0]}
SEARCHES = {
    "table": (MKSVC(PAIRS), P_AND_C, X, Y),
    "union": (MKSVC(KernelUnion(PAIRS)), GAMMAS, X, Y),
    "pairs": (MKSVC(PAIRS, multi_class="separate"), GAMMAS, X, Y),
    "stack": (MKSVC("precomputed"), P_AND_C, STACK, Y),
    "array": (MKSVC("precomputed"), P_AND_C, np.asarray(STACK), Y),
    "regression": (MKSVR("precomputed"), C_AND_EPSILON, STACK, VALUES),
    "regression pairs": (MKSVR(PAIRS), GAMMAS, X, VALUES),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SEARCHES)
def test_grid_search_scores_as_a_loop_over_folds_with_any_number_of_jobs(case):
    estimator, grid, data, y = SEARCHES[case]
    searches = [GridSearchCV(estimator, grid, cv=CV, n_jobs=n).fit(data, y) for n in (1, 2)]
    found = [search.cv_results_["mean_test_score"] for search in searches]
    assert_array_equal(found[0], found[1])
    assert searches[0].best_params_ == searches[1].best_params_
    assert np.ptp(found[0]) > 0, "a grid of equal scores tests nothing"
    pairwise = estimator.kernels == "precomputed"
    by_hand = []
    for params in searches[0].cv_results_["params"]:
        model = clone(estimator).set_params(**params)
        folds = []
        for train, test in CV.split(Y):
            columns = (train,) if pairwise else ()
            model.fit(data[np.ix_(train, *columns)], y[train])
            folds.append(model.score(data[np.ix_(test, *columns)], y[test]))
        by_hand.append(np.mean(folds))
    assert_allclose(found[0], by_hand, rtol=1e-12)


def test_search_leaves_the_kernels_it_was_given_alone():
    GridSearchCV(MKSVC(PAIRS), GAMMAS, cv=CV).fit(X, Y)
    assert PAIRS[0][1].gamma == 0.3
    assert not hasattr(PAIRS[0][1], "n_features_in_")


def test_nested_search():
    grid = {"C": [0.01, 10.0]}
    on_table, on_stack = (
        cross_val_score(GridSearchCV(MKSVC(kernels), grid, cv=2), data, Y, cv=CV)
        for kernels, data in ((PAIRS, X), ("precomputed", STACK))
    )
    assert_array_equal(on_stack, on_table)
    assert on_stack.mean() > 0.5


def test_pipeline_scales_as_by_hand():
    units = np.array([1, 10, 100, 1000, 1e4])
    scaler = StandardScaler().fit(X * units)
    model = make_pipeline(StandardScaler(), MKSVC()).fit(X * units, Y)
    expected = MKSVC().fit(scaler.transform(X * units), Y)
    new = X_TEST * units
    assert_array_equal(scores(model, new), scores(expected, scaler.transform(new)))
    search = GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("svm", MKSVC(PAIRS))]),
        {"svm__kernels__shape__gamma": [0.1, 10.0], "svm__p": [1]},
        cv=CV,
    ).fit(X * units, Y)
    assert search.best_score_ > 0.5


@every_machine
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical"])
def test_cross_val_predict_on_table_and_stack(machine, normalize):
    """Spherical normalisation must survive the cuts of cross-validation."""
    y = MACHINES[machine][2]
    method = "predict" if machine == "regression" else "decision_function"
    on_table, on_stack = (
        cross_val_predict(make(machine, k, normalize=normalize), data, y, cv=CV, method=method)
        for k, data in ((PAIRS, X), ("precomputed", STACK))
    )
    by_hand = np.empty_like(on_table)
    for train, test in CV.split(X):
        model = make(machine, normalize=normalize).fit(X[train], None if y is None else y[train])
        by_hand[test] = getattr(model, method)(X[test])
    assert_allclose(on_table, by_hand, rtol=1e-12)
    assert_allclose(on_stack, by_hand, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("machine", ["shared", "binary"])
def test_calibration_on_table_and_stack(machine):
    y = MACHINES[machine][2]
    settings = {"cv": CV, "ensemble": False}
    on_table = CalibratedClassifierCV(make(machine), **settings).fit(X, y)
    on_stack = CalibratedClassifierCV(make(machine, "precomputed"), **settings).fit(STACK, y)
    probabilities = on_table.predict_proba(X_TEST)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.ptp(probabilities[:, 0]) > 0.3
    assert_allclose(on_stack.predict_proba(TEST_STACK), probabilities, atol=1e-5)


# -- copies and parameters -------------------------------------------------------------------


def through_joblib(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model")


@every_machine
def test_copies_predict_the_same(machine, tmp_path):
    for kernels, data, new in [(PAIRS, X, X_TEST), ("precomputed", STACK, TEST_STACK)]:
        model = fit(machine, kernels, data)
        twins = [
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            through_joblib(model, tmp_path),
        ]
        for twin in twins:
            assert_array_equal(scores(twin, new), scores(model, new))
            assert twin.certificate_ == model.certificate_


@every_machine
def test_clone_has_the_parameters_and_is_not_fitted(machine):
    model = fit(machine, p=1.5, normalize="trace", tol=1e-3)
    twin = clone(model)
    simple = {name for name in model.get_params(deep=False) if name != "kernels"}
    assert {n: twin.get_params()[n] for n in simple} == {n: model.get_params()[n] for n in simple}
    assert repr(twin.kernels) == repr(model.kernels)
    assert not [name for name in vars(twin) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        twin.predict(X)


@pytest.mark.parametrize("wrap", [list, KernelUnion])
def test_nested_parameters(wrap):
    model = MKSVC(wrap(PAIRS))
    changed = clone(model).set_params(kernels__shape__gamma=5.0, p=1, C=3.0)
    assert changed.fit(X, Y).union_.kernels_[0][1].gamma == 5.0
    assert (changed.p, changed.C_) == (1, 3.0)
    assert model.get_params()["kernels__shape__gamma"] == 0.3
    assert "noise" in model._repr_html_()


@every_machine
def test_fitting_again_forgets_the_first_fit(machine):
    model = fit(machine)
    again = make(machine).fit(X_TEST, None if machine == "one class" else LABELS[:N_TEST])
    again.fit(X, MACHINES[machine][2])
    assert_array_equal(scores(again), scores(model))
    assert_array_equal(again.support_, model.support_)


# -- callbacks -------------------------------------------------------------------------------


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


@every_machine
def test_callbacks_hear_of_every_iteration(machine):
    recorder = Recorder()
    listening = make(machine, p=1.5, tol=1e-8).set_callbacks(recorder)
    listening.fit(X, MACHINES[machine][2])
    assert listening.n_iter_ > 1
    iterations = recorder.ended[:-1]
    assert len(iterations) == listening.n_iter_ == len(listening.history_["objective"])
    if machine != "separate":
        assert iterations == [f"iteration {k}" for k in range(listening.n_iter_)]
    assert recorder.begun == ["fit", *iterations]
    assert recorder.ended[-1] == "fit"
    assert recorder.calls == ["setup", "teardown"]
    assert_array_equal(listening.weights_, fit(machine, p=1.5, tol=1e-8).weights_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_machine
def test_a_callback_can_stop_the_fit(machine):
    model = make(machine, p=1.5, tol=1e-12).set_callbacks(Recorder(stop_after=2))
    model.fit(X, MACHINES[machine][2])
    # Every class has a machine of its own, which cannot be had for nothing.
    assert model.n_iter_ == (2 + 1 + 1 if machine == "separate" else 2)
    assert not model.certificate_.converged
    assert np.isfinite(scores(model)).all()


def test_verbose_prints_a_line_per_iteration(capsys):
    for machine in MACHINES:
        model = fit(machine, p=1.5, verbose=True)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == model.n_iter_ > 1
        for line, gap in zip(lines, model.history_["rel_gap"], strict=True):
            assert line.startswith(f"[{type(model).__name__}]")
            assert f"{gap:.2e}" in line
        fit(machine, p=1.5)
        assert capsys.readouterr().out == ""


# -- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
@pytest.mark.parametrize(
    "names",
    [
        np.array(["cat", "dog", "eel"]),
        np.array(["cat", "dog", "eel"], dtype=object),
        np.array([-1.0, 0.0, 1.0]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array([3, 7]),
    ],
    ids=str,
)
def test_labels_of_any_kind(names, multi_class):
    y = Y % len(names)
    expected = MKSVC(PAIRS, multi_class=multi_class).fit(X, y)
    model = MKSVC(PAIRS, multi_class=multi_class).fit(X, names[y])
    assert_array_equal(model.classes_, names)
    assert model.classes_.dtype == names.dtype
    assert_array_equal(model.predict(X_TEST), names[expected.predict(X_TEST)])
    decision = model.decision_function(X_TEST)
    assert_array_equal(decision, expected.decision_function(X_TEST))
    assert decision.shape == ((N_TEST,) if len(names) == 2 else (N_TEST, 3))
    if len(names) == 2:
        assert_array_equal(model.predict(X_TEST) == names[1], decision > 0)
    assert len(np.unique(model.predict(X))) == len(names)


def test_class_weights_by_the_names_of_classes():
    names = np.array(["cat", "dog", "eel"])
    model = MKSVC(PAIRS, class_weight={"dog": 100.0}, C=0.01).fit(X, names[Y])
    plain = MKSVC(PAIRS, C=0.01).fit(X, names[Y])
    assert np.sum(model.predict(X_TEST) == "dog") > np.sum(plain.predict(X_TEST) == "dog")


# -- containers ------------------------------------------------------------------------------

COLUMNS = ["a", "b", "c", "d", "e"]
NAMED = [("shape", RBF(0.3).on(["a", "b", "c"])), ("flat", Linear()), ("d", RBF(1.0).on("d"))]
NUMBERED = [("shape", RBF(0.3).on([0, 1, 2])), ("flat", Linear()), ("d", RBF(1.0).on(3))]


@every_machine
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframes_predict_as_arrays(frame, machine):
    def named(table):
        return frame(dict(zip(COLUMNS, table.T, strict=True)))

    expected = fit(machine, NUMBERED)
    model = fit(machine, NAMED, named(X))
    assert_array_equal(model.feature_names_in_, COLUMNS)
    assert isinstance(model.support_vectors_, frame)
    assert_array_equal(model.support_vectors_.to_numpy(), X[model.support_])
    assert_allclose(model.weights_, expected.weights_, rtol=1e-12)
    assert_allclose(scores(model, named(X_TEST)), scores(expected), rtol=1e-10)


def test_data_changed_after_the_fit_change_no_prediction():
    frame, array = pd.DataFrame(X, columns=COLUMNS), X.copy()
    new = pd.DataFrame(X_TEST, columns=COLUMNS)
    on_frame, on_array = MKSVC(NAMED).fit(frame, Y), MKSVC(NUMBERED).fit(array, Y)
    before = scores(on_frame, new)
    frame["a"] = array[:] = 0.0
    assert_array_equal(scores(on_frame, new), before)
    assert_array_equal(scores(on_array), before)


@every_machine
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_predicts_as_dense(form, machine):
    holes = np.where(np.abs(X) < 0.7, 0.0, X)
    new = np.where(np.abs(X_TEST) < 0.7, 0.0, X_TEST)
    dense = fit(machine, NUMBERED, holes)
    model = fit(machine, NUMBERED, form(holes))
    assert_allclose(model.weights_, dense.weights_, rtol=1e-6)
    assert_array_equal(model.support_vectors_.toarray(), holes[model.support_])
    assert_allclose(scores(model, form(new)), scores(dense, new), rtol=1e-6, atol=1e-9)


def test_single_precision_is_close_to_double():
    exact = MKSVC(PAIRS).fit(X, Y)
    single = MKSVC(PAIRS).fit(X.astype(np.float32), Y)
    assert scores(single, X_TEST.astype(np.float32)).dtype == np.float64
    assert_allclose(scores(single, X_TEST.astype(np.float32)), scores(exact), atol=1e-3)
    array, new = (np.asarray(stack).astype(np.float32) for stack in (STACK, TEST_STACK))
    assert_allclose(
        scores(MKSVC("precomputed").fit(array, Y), new), scores(exact), rtol=0, atol=1e-3
    )


@every_machine
def test_table_stack_array_and_row_numbers_predict_alike(machine):
    everything = UNION(EVERYTHING)
    rows = np.arange(len(EVERYTHING))[:, None]
    numbers = [(name, Precomputed(everything.kernel(name))) for name in everything.names]
    expected = scores(fit(machine))
    for kernels, data, new in [
        ("precomputed", STACK, TEST_STACK),
        ("precomputed", np.asarray(STACK), np.asarray(TEST_STACK)),
        (numbers, rows[:N_TRAIN], rows[N_TRAIN:]),
    ]:
        assert_allclose(scores(fit(machine, kernels, data), new), expected, rtol=1e-7, atol=1e-8)


@every_machine
@pytest.mark.parametrize("data", [STACK, np.asarray(STACK)], ids=["stack", "array"])
def test_samples_of_no_weight_keep_their_columns_in_test_blocks(data, machine):
    weight = np.ones(N_TRAIN)
    weight[[0, 7, 20]] = 0.0
    kept = np.flatnonzero(weight)
    new = TEST_STACK if data is STACK else np.asarray(TEST_STACK)
    y = MACHINES[machine][2]
    expected = make(machine, "precomputed")
    expected.fit(data[np.ix_(kept, kept)], None if y is None else y[kept])
    model = make(machine, "precomputed").fit(data, y, sample_weight=weight)
    assert model.n_features_in_ == N_TRAIN
    assert_array_equal(model.support_, kept[expected.support_])
    assert_array_equal(model.n_support_, expected.n_support_)
    cut = new[np.ix_(np.arange(N_TEST), kept)]
    assert_allclose(scores(model, new), scores(expected, cut), rtol=1e-8, atol=1e-12)
    on_table = make(machine).fit(X, y, sample_weight=weight)
    assert_array_equal(on_table.support_vectors_, X[on_table.support_])


# -- what prediction looks at ----------------------------------------------------------------

COMPARED = []


class Noted(Kernel):
    """A Gaussian kernel that notes how many rows it compares with how many."""

    def __init__(self, gamma, *, columns=None):
        self.gamma = gamma
        self.columns = columns

    def _evaluate(self, X, Y):
        COMPARED.append((self.gamma, len(X), None if Y is None else len(Y)))
        return rbf_kernel(X, Y, gamma=self.gamma)

    def _diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("machine", ["shared", "separate", "binary", "regression"])
def test_only_support_vectors_and_kernels_with_weight_are_compared(machine):
    kernels = [("useful", Noted(0.3).on([0, 1, 2])), ("useless", Noted(50.0).on([3]))]
    easy = X + 5.0 * np.eye(3, 5)[Y]
    model = fit(machine, kernels, easy, p=1)
    assert not model.weights_[..., 1].any()
    assert len(model.support_) < N_TRAIN
    COMPARED.clear()
    model.predict(X_TEST)
    expected = [(0.3, N_TEST, len(model.support_))]
    assert expected == COMPARED


@every_machine
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "trace", None])
def test_scores_are_those_of_all_columns_by_hand(machine, normalize):
    """The sum over support vectors, normalised as if with all training samples."""
    kernels = np.moveaxis(np.asarray(STACK), -1, 0)
    blocks = np.moveaxis(np.asarray(TEST_STACK), -1, 0)
    diagonals, test_diagonals = STACK.row_diag, TEST_STACK.row_diag
    traces = np.trace(kernels, axis1=1, axis2=2) - kernels.sum(axis=(1, 2)) / N_TRAIN
    if normalize == "spherical":
        blocks = blocks / np.sqrt(diagonals[:, None, :] * test_diagonals[:, :, None])
    elif normalize is not None:
        blocks = blocks / traces[:, None, None]
        blocks = blocks * (N_TRAIN if normalize == "multiplicative" else 1)
    for kernels, data, new in [(PAIRS, X, X_TEST), ("precomputed", STACK, TEST_STACK)]:
        model = fit(machine, kernels, data, normalize=normalize)
        weights = np.broadcast_to(model.weights_, (len(model.dual_coef_), 3))
        expected = model.intercept_ + np.einsum(
            "kj,jri,ki->rk", weights, blocks[:, :, model.support_], model.dual_coef_
        )
        found = scores(model, new).reshape(N_TEST, -1)
        assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@every_machine
def test_a_test_block_is_checked_where_it_is_not_looked_at_too(machine):
    model = fit(machine, "precomputed", np.asarray(STACK), tol=1e-3)
    others = np.setdiff1d(np.arange(N_TRAIN), model.support_)
    for column in [*others[:1], model.support_[0]]:
        block = np.array(TEST_STACK)
        block[2, column, 1] = np.nan
        message = rf"Kernel 'kernel1' has a value that is not finite .*row 2, column {column}"
        with pytest.raises(ValueError, match=message):
            model.predict(block)


@pytest.mark.parametrize("entries", [1, 3 * N_TRAIN * 4])
@pytest.mark.parametrize("machine", ["shared", "separate"])
def test_prediction_in_blocks_of_rows(monkeypatch, entries, machine):
    for normalize in ("multiplicative", "spherical"):
        on_table = fit(machine, normalize=normalize)
        on_stack = fit(machine, "precomputed", STACK, normalize=normalize)
        expected = scores(on_table)
        with monkeypatch.context() as patch:
            patch.setattr(_inputs, "_TEST_BLOCK_ENTRIES", entries)
            assert_allclose(scores(on_table), expected, rtol=1e-10)
            assert_allclose(scores(on_stack, TEST_STACK), expected, rtol=1e-7, atol=1e-8)


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
        for cell in getattr(value, "__closure__", None) or ():
            yield from arrays_of(cell.cell_contents, seen)


@every_machine
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", None])
def test_a_fitted_estimator_holds_no_kernel_matrix(machine, normalize):
    for kernels, data in [(PAIRS, X), ("precomputed", STACK), ("precomputed", np.asarray(STACK))]:
        model = fit(machine, kernels, data, normalize=normalize)
        sizes = [array.size for array in arrays_of(vars(model), {})]
        assert len(sizes) > 5
        assert max(sizes) < N_TRAIN * N_TRAIN / 2


@every_machine
def test_fit_and_predict_change_nothing_they_are_given(machine):
    weight = np.linspace(0.1, 1, N_TRAIN)
    array, new = np.array(STACK), np.array(TEST_STACK)
    given = [X, Y, VALUES, X_TEST, weight, array, new, STACK.data, TEST_STACK.data, STACK.row_diag]
    before = [item.copy() for item in given]
    y = MACHINES[machine][2]
    for normalize in ("multiplicative", "spherical", None):
        make(machine, normalize=normalize).fit(X, y, weight).predict(X_TEST)
        on_stack = make(machine, "precomputed", normalize=normalize).fit(STACK, y, weight)
        on_stack.predict(TEST_STACK)
    make(machine, "precomputed").fit(array, y, weight).predict(new)
    for item, old in zip(given, before, strict=True):
        assert_array_equal(item, old)


def test_read_only_memory_maps(tmp_path):
    def mapped(name, value):
        joblib.dump(value, tmp_path / name)
        return joblib.load(tmp_path / name, mmap_mode="r")

    for machine in MACHINES:
        y = MACHINES[machine][2]
        for k, (kernels, data, new) in enumerate(
            [
                (PAIRS, X, X_TEST),
                ("precomputed", np.array(STACK), np.array(TEST_STACK)),
                ("precomputed", STACK, TEST_STACK),
            ]
        ):
            expected = scores(fit(machine, kernels, data), new)
            data, new = mapped(f"data{k}", data), mapped(f"new{k}", new)
            held = data.data if isinstance(data, KernelStack) else data
            assert not held.flags.writeable
            labels = y if y is None else mapped("labels", y)
            model = make(machine, kernels).fit(data, labels)
            assert_array_equal(scores(model, new), expected)
