"""Localized machines inside scikit-learn: its checks, searches, containers, copies, weights."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from manykernels import (
    MKFDA,
    MKSVC,
    KernelUnion,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
)
from manykernels.gating import Gaussian
from manykernels.kernels import RBF, Linear
from tests.problems import scikit_learn_checks, slow

N_TRAIN, N_TEST = 45, 12
CV = KFold(3)
rng = np.random.default_rng(0)
LABELS = np.arange(N_TRAIN + N_TEST) % 3
EVERYTHING = rng.normal(size=(N_TRAIN + N_TEST, 4))
EVERYTHING[:, :3] += 1.5 * np.eye(3)[LABELS]
X, X_TEST = EVERYTHING[:N_TRAIN], EVERYTHING[N_TRAIN:]
Y = LABELS[:N_TRAIN]
VALUES = np.abs(X[:, 0]) + X[:, 1]
PAIRS = [("wide", RBF(0.1)), ("flat", Linear()), ("narrow", RBF(1.0).on([0, 1]))]
UNION = KernelUnion(PAIRS).fit(X)
PLAIN_STACK, PLAIN_TEST = UNION(X), UNION(X_TEST, X)
STACK, TEST_STACK = PLAIN_STACK.with_features(X), PLAIN_TEST.with_features(X_TEST)

MACHINES = {
    "shared": (LocalizedSVC, {}, Y),
    "separate": (LocalizedSVC, {"multi_class": "separate"}, Y),
    "single": (LocalizedSVC, {"multi_class": "single"}, Y),
    "binary": (LocalizedSVC, {}, Y == 0),
    "regression": (LocalizedSVR, {}, VALUES),
    "one class": (LocalizedOneClassSVM, {"nu": 0.3}, None),
    "fda": (LocalizedFDA, {}, Y),
}
every_machine = pytest.mark.parametrize("machine", MACHINES)
SETTINGS = {"random_state": 0, "tol": 1e-2}


def make(machine, kernels=PAIRS, **params):
    kind, own, _ = MACHINES[machine]
    return kind(kernels, **{**SETTINGS, **own, **params})


def fit(machine, kernels=PAIRS, data=X, sample_weight=None, **params):
    return make(machine, kernels, **params).fit(data, MACHINES[machine][2], sample_weight)


def scores(model, data=X_TEST):
    decide = model.predict if isinstance(model, LocalizedSVR) else model.decision_function
    return decide(data)


# -- scikit-learn's own checks -----------------------------------------------------------------

FEW = [("line", Linear()), ("wide", RBF())]


@pytest.mark.parametrize(
    "estimator",
    [
        LocalizedSVC(FEW),
        *slow(
            LocalizedSVC(),
            LocalizedSVC(FEW, multi_class="single"),
            LocalizedSVC(FEW, multi_class="separate", gating="sigmoid", tol=1e-2),
        ),
        LocalizedSVR(FEW),
        LocalizedOneClassSVM(FEW),
        LocalizedFDA(FEW),
    ],
    ids=str,
)
def test_scikit_learn_checks(estimator):
    broken, n_passed = scikit_learn_checks(estimator)
    assert not broken, "\n".join(broken)
    assert n_passed > 40


# A plain matrix has no features for the gate and no self-similarities of new samples.
ON_KERNELS = {"gating_features": "kernel0", "normalize": "multiplicative"}


@pytest.mark.parametrize("kind", [LocalizedSVC, LocalizedSVR, LocalizedOneClassSVM, LocalizedFDA])
def test_scikit_learn_checks_on_kernels(kind):
    """One check takes a constant off a kernel, which is no kernel then; gated, it matters."""
    broken, n_passed = scikit_learn_checks(kind("precomputed", **ON_KERNELS))
    expected = {"check_positive_only_tag_during_fit"}
    if kind is LocalizedOneClassSVM:
        theirs, _ = scikit_learn_checks(OneClassSVM(kernel="precomputed"))
        expected |= {line.split(":")[0] for line in theirs}
    assert {line.split(":")[0] for line in broken} == expected
    assert n_passed > 40


# -- searches ----------------------------------------------------------------------------------

GAMMAS = {"kernels__wide__gamma": [1e-4, 30.0]}
FOLDS_OF = {
    "table": (LocalizedSVC(PAIRS, **SETTINGS), {**GAMMAS, "C": [0.01, 1.0]}, X, Y),
    "features": (LocalizedSVC("precomputed", **SETTINGS), {"C": [0.01, 1.0]}, STACK, Y),
    "kernel map": (
        LocalizedSVC("precomputed", multi_class="single", **SETTINGS),
        {"gating_features": ["wide", "narrow"], "C": [0.01, 1.0]},
        PLAIN_STACK,
        Y,
    ),
    "array": (
        LocalizedFDA("precomputed", **{**SETTINGS, **ON_KERNELS}),
        {"reg": [1e-3, 10.0]},
        np.asarray(PLAIN_STACK),
        Y,
    ),
    "transformer": (
        LocalizedSVR(PAIRS, gating_features=PCA(1), **SETTINGS),
        {"gating_features__n_components": [1, 3], "epsilon": [0.1, 1.0]},
        X,
        VALUES,
    ),
    "gates": (
        LocalizedSVC(PAIRS, **SETTINGS),
        {"gating": ["softmax", "sigmoid", Gaussian(width=2.0)], "gating_features": [[0], 2]},
        X,
        Y,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", FOLDS_OF)
def test_grid_search_scores_as_a_loop_over_folds(case):
    estimator, grid, data, y = FOLDS_OF[case]
    found = GridSearchCV(estimator, grid, cv=CV).fit(data, y).cv_results_
    assert np.ptp(found["mean_test_score"]) > 0, "a grid of equal scores tests nothing"
    pairwise = estimator.kernels == "precomputed"
    for params, score in zip(found["params"], found["mean_test_score"], strict=True):
        folds = []
        for train, test in CV.split(Y):
            columns = (train,) if pairwise else ()
            model = clone(estimator).set_params(**params)
            model.fit(data[np.ix_(train, *columns)], y[train])
            folds.append(model.score(data[np.ix_(test, *columns)], y[test]))
        assert_allclose(score, np.mean(folds), rtol=1e-12)


def test_any_number_of_jobs():
    estimator, grid, data, y = FOLDS_OF["features"]
    searches = [GridSearchCV(estimator, grid, cv=CV, n_jobs=n).fit(data, y) for n in (1, 2)]
    first, second = (search.cv_results_["mean_test_score"] for search in searches)
    assert_array_equal(first, second)


def test_folds_of_a_table_are_those_of_its_stack():
    on_table = cross_val_score(LocalizedSVC(PAIRS, **SETTINGS), X, Y, cv=CV)
    on_stack = cross_val_score(LocalizedSVC("precomputed", **SETTINGS), STACK, Y, cv=CV)
    assert_array_equal(on_stack, on_table)
    assert on_table.mean() > 0.5


def test_pipeline_scales_as_by_hand():
    units = np.array([1, 10, 100, 1000])
    scaler = StandardScaler().fit(X * units)
    model = make_pipeline(StandardScaler(), make("shared")).fit(X * units, Y)
    expected = make("shared").fit(scaler.transform(X * units), Y)
    new = X_TEST * units
    assert_array_equal(scores(model, new), scores(expected, scaler.transform(new)))
    assert_array_equal(model[-1].gate(scaler.transform(new)), expected.gate(scaler.transform(new)))


# -- copies ------------------------------------------------------------------------------------


@every_machine
def test_copies_predict_the_same(machine):
    for kernels, data, new in [(PAIRS, X, X_TEST), ("precomputed", STACK, TEST_STACK)]:
        model = fit(machine, kernels, data)
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert_array_equal(scores(twin, new), scores(model, new))
            assert_array_equal(twin.gate(new), model.gate(new))
            assert twin.certificate_ == model.certificate_


@every_machine
def test_clone_has_the_parameters_and_is_not_fitted(machine):
    params = {"gating": Gaussian(0.1), "gating_features": [0, 1], "n_init": 2, "gate_tol": 0.01}
    model = fit(machine, **params)
    twin = clone(model)
    names = [name for name in model.get_params(deep=False) if name != "kernels"]
    assert [getattr(twin, name) for name in names] == [getattr(model, name) for name in names]
    assert not [name for name in vars(twin) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        twin.predict(X)
    assert_array_equal(scores(twin.fit(X, MACHINES[machine][2])), scores(model))


@pytest.mark.parametrize("features", [PCA(2), RBF(0.3)], ids=str)
def test_what_was_passed_is_not_fitted(features):
    before = pickle.dumps(features)
    model = fit("shared", gating_features=features)
    assert model.gating_features is features
    assert pickle.dumps(features) == before


# -- containers --------------------------------------------------------------------------------

COLUMNS = ["a", "b", "c", "d"]
NAMED = [("wide", RBF(0.1)), ("flat", Linear()), ("narrow", RBF(1.0).on(["a", "b"]))]


@pytest.mark.parametrize("machine", ["separate", "regression", "fda"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("names", "positions"), [(["c", "a"], [2, 0]), ("d", [3]), ((["b", "c"], PCA(1)),) * 2]
)
def test_columns_of_dataframes_as_gating_features(machine, frame, names, positions):
    def named(table):
        return frame(dict(zip(COLUMNS, table.T, strict=True)))

    if isinstance(positions, tuple):
        positions = ([1, 2], PCA(1))
    model = fit(machine, NAMED, named(X), gating_features=names)
    expected = fit(machine, gating_features=positions)
    assert_allclose(model.gate(named(X_TEST)), expected.gate(X_TEST), rtol=1e-6, atol=1e-9)
    assert_allclose(scores(model, named(X_TEST)), scores(expected), rtol=1e-6, atol=1e-9)
    assert isinstance(model.support_vectors_, frame)
    assert_array_equal(model.support_vectors_.to_numpy(), X[model.support_])


@every_machine
def test_sparse_predicts_as_dense(machine):
    holes, new = (np.where(np.abs(table) < 0.5, 0.0, table) for table in (X, X_TEST))
    dense = fit(machine, data=holes)
    model = fit(machine, data=sparse.csr_array(holes))
    assert_allclose(model.gate(sparse.csr_array(new)), dense.gate(new), atol=1e-4)
    assert_allclose(scores(model, sparse.csr_array(new)), scores(dense, new), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("multi_class", ["shared", "separate", "single"])
@pytest.mark.parametrize("names", [["cat", "dog", "eel"], [-1.0, 0.0, 1.0], ["no", "yes"]])
def test_labels_of_any_kind(names, multi_class):
    names = np.array(names)
    y = Y % len(names)
    expected, model = (
        make("shared", multi_class=multi_class).fit(X, labels) for labels in (y, names[y])
    )
    assert_array_equal(model.classes_, names)
    assert_array_equal(model.predict(X_TEST), names[expected.predict(X_TEST)])
    assert_array_equal(scores(model), scores(expected))
    fda = make("fda").fit(X, names[y])
    assert_array_equal(fda.predict(X), names[fda.predict_proba(X).argmax(axis=1)])


def test_data_changed_after_the_fit_change_no_prediction():
    frame, array = pd.DataFrame(X, columns=COLUMNS), X.copy()
    new = pd.DataFrame(X_TEST, columns=COLUMNS)
    features = ([0, 1], RBF(0.5))
    on_frame = make("shared", NAMED, gating_features=features).fit(frame, Y)
    on_array = make("shared", gating_features=features).fit(array, Y)
    before = scores(on_frame, new)
    frame["a"] = array[:] = 0.0
    assert_array_equal(scores(on_frame, new), before)
    assert_allclose(scores(on_array), before, rtol=1e-9, atol=1e-9)


@every_machine
def test_fit_and_predict_change_nothing_they_are_given(machine):
    weight, features = np.linspace(0.0, 1, N_TRAIN), X.copy()
    given = [X, Y, VALUES, X_TEST, weight, STACK.data, STACK.features, STACK.row_diag]
    before = [item.copy() for item in given]
    fit(machine, sample_weight=weight).predict(X_TEST)
    fit(machine, "precomputed", STACK, sample_weight=weight).predict(TEST_STACK)
    for item, old in zip(given, before, strict=True):
        assert_array_equal(item, old)
    assert_array_equal(features, STACK.features)


# -- gating features of every kind -------------------------------------------------------------


@pytest.mark.parametrize(
    "what", [None, [0, 2], slice(1, 3), 2, PCA(2), RBF(0.2), ([0, 1], PCA(1))]
)
def test_features_of_a_stack_are_looked_at_as_those_of_a_table(what):
    expected = fit("shared", gating_features=what)
    model = fit("shared", "precomputed", STACK, gating_features=what)
    assert_allclose(model.gate(TEST_STACK), expected.gate(X_TEST), atol=1e-6)
    assert_allclose(scores(model, TEST_STACK), scores(expected), atol=1e-5)


@every_machine
def test_the_kernel_map_of_a_stack_is_that_of_the_kernel(machine):
    expected = fit(machine, gating_features=RBF(0.1))
    model = fit(machine, "precomputed", PLAIN_STACK, gating_features="wide")
    assert_allclose(model.gate(PLAIN_TEST), expected.gate(X_TEST), rtol=1e-4, atol=1e-5)
    assert_allclose(scores(model, PLAIN_TEST), scores(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("machine", ["shared", "separate", "single", "fda"])
def test_features_may_learn_from_the_labels(machine):
    lda = LinearDiscriminantAnalysis(n_components=2)
    model = fit(machine, gating_features=lda)
    expected = fit(machine, "precomputed", PLAIN_STACK.with_features(lda.fit_transform(X, Y)))
    assert_allclose(model.gate(X), expected.gate(STACK.with_features(lda.transform(X))), atol=1e-5)


# -- weights -----------------------------------------------------------------------------------

FORMS = {
    "table": (PAIRS, X, X_TEST, None),
    "kernel of a table": (PAIRS, X, X_TEST, RBF(0.2)),
    "features": ("precomputed", STACK, TEST_STACK, None),
    "kernel map": ("precomputed", PLAIN_STACK, PLAIN_TEST, "wide"),
    "array": ("precomputed", np.asarray(PLAIN_STACK), np.asarray(PLAIN_TEST), "kernel0"),
}


@every_machine
@pytest.mark.parametrize("form", FORMS)
def test_samples_of_no_weight_are_none(machine, form):
    kernels, data, new, features = FORMS[form]
    params = {"gating_features": features, "normalize": "multiplicative"}
    weight = np.ones(N_TRAIN)
    weight[[0, 7, 20]] = 0.0
    kept = np.flatnonzero(weight)
    y = MACHINES[machine][2]
    model = fit(machine, kernels, data, weight, **params)
    precomputed = kernels == "precomputed"
    part = data[np.ix_(kept, kept)] if precomputed else data[kept]
    cut = new[np.ix_(np.arange(N_TEST), kept)] if precomputed else new
    expected = make(machine, kernels, **params).fit(part, None if y is None else y[kept])
    assert_allclose(scores(model, new), scores(expected, cut), rtol=1e-7, atol=1e-9)
    assert_allclose(model.gate(new), expected.gate(cut), rtol=1e-7, atol=1e-9)
    assert_array_equal(model.support_, kept[expected.support_])
    assert model.evaluations(new) == expected.evaluations(cut)
    pd.testing.assert_frame_equal(*(pd.DataFrame(m.region_summary()) for m in (model, expected)))
    if hasattr(model, "n_support_"):
        assert_array_equal(model.n_support_, expected.n_support_)
    if not precomputed:
        assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize("machine", ["shared", "separate", "single", "fda"])
def test_class_weights_by_the_names_of_classes(machine):
    labels = np.array(["cat", "dog", "eel"])[Y]
    by_name = make(machine, class_weight={"dog": 20.0}).fit(X, labels)
    by_number = make(machine, class_weight={1: 20.0}).fit(X, Y)
    assert_array_equal(scores(by_name), scores(by_number))
    assert np.any(scores(by_name) != scores(make(machine).fit(X, Y)))


@pytest.mark.parametrize("weights", ["balanced", {0: 3.0}], ids=str)
def test_class_weights_are_those_of_the_plain_machine(weights):
    """One kernel, which leaves a softmax nothing to learn."""
    settings = {"normalize": "spherical", "class_weight": weights}
    rows = np.arange(0, N_TRAIN, 2)[:-3]
    for kind, plain in ((LocalizedSVC, MKSVC), (LocalizedFDA, MKFDA)):
        models = [kind(RBF(0.2), **settings), plain(RBF(0.2), tol=1e-9, **settings)]
        found, expected = (scores(model.fit(X[rows], Y[rows])) for model in models)
        assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_verbose_prints_a_line_per_step(capsys):
    for machine in MACHINES:
        model = fit(machine, verbose=True)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) >= model.n_iter_
        assert all(line.startswith(f"[{type(model).__name__}] step") for line in lines)
        fit(machine)
        assert capsys.readouterr().out == ""
