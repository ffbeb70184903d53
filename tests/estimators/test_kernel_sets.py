"""Sets of kernels that compete in a search: the choice, the model after it, and its honesty."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from manykernels import (
    MKFDACV,
    MKGLMCV,
    MKSVCCV,
    MKSVRCV,
    Bands,
    KernelUnion,
    MKCoxCV,
    MKLogisticCV,
    MKRidge,
    MKRidgeCV,
    Nystrom,
    Views,
    load,
    report,
    save,
    view_importance,
)
from manykernels.cli.commands import chosen
from manykernels.display import ValidationDisplay
from manykernels.estimators.grid import checked_kernel_sets
from manykernels.kernels import RBF, Linear, RelevanceRBF
from manykernels.reporting.summary import summarize
from tests.estimators.registry import Recorder, refused, survival_of
from tests.problems import WEIGHTS_AND_REPEATS, scikit_learn_checks, some_slow

N = 60
rng = np.random.default_rng(0)
X, NEW = rng.uniform(-2, 2, (N, 3)), rng.uniform(-2, 2, (20, 3))
VALUES = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N)
CLASSES = (VALUES - np.median(VALUES) > 0).astype(int)
KERNELS = {
    "linear": Linear(),
    "rbf 0": RBF(1.0).on([0]),
    "rbf 1": RBF(1.0).on([1]),
    "noise": RBF(1.0).on([2]),
}
SETS = {"line": ["linear"], "curves": ["rbf *"], "all": ["*"], "bad": ["noise"]}
MEMBERS = {
    "line": ["linear"],
    "curves": ["rbf 0", "rbf 1"],
    "all": list(KERNELS),
    "bad": ["noise"],
}
FOLDS = list(KFold(3).split(X))
GRID = {"ps": [1, np.inf], "regs": [0.1, 1.0, 10.0]}
MACHINES = {"ps": [1, np.inf], "Cs": [0.1, 10.0]}
SEARCHES = {
    "ridge": (MKRidgeCV, {"ps": [1, "evidence"], "regs": [0.1, 1.0]}, VALUES),
    "ridge closed": (MKRidgeCV, {**GRID, "cv": "closed-form"}, VALUES),
    "ridge targets": (MKRidgeCV, GRID, np.column_stack([VALUES, X[:, 1]])),
    "fda": (MKFDACV, {"ps": ["evidence", np.inf], "regs": [0.1, 1.0]}, CLASSES),
    "fda closed": (MKFDACV, {**GRID, "cv": "closed-form"}, CLASSES),
    "svc": (MKSVCCV, MACHINES, CLASSES),
    "svc separate": (MKSVCCV, {**MACHINES, "multi_class": "separate"}, np.arange(N) % 3),
    "svr": (MKSVRCV, {**MACHINES, "epsilons": [0.1]}, VALUES),
    "logistic": (MKLogisticCV, GRID, CLASSES),
    "glm": (MKGLMCV, GRID, np.round(np.exp(VALUES))),
    "cox": (MKCoxCV, GRID, survival_of(VALUES)),
}


def search(name, kernels=KERNELS, **params):
    kind, grid, y = SEARCHES[name]
    return kind(kernels, **{"cv": FOLDS, **grid, **params}), y


def subset(names):
    return {name: KERNELS[name] for name in names}


# -- against separate fits -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    some_slow(SEARCHES, *set(SEARCHES) - {"ridge", "fda", "svc", "svr"}),
)
def test_a_search_among_sets_is_the_best_of_separate_searches(name):
    estimator, y = search(name, kernel_sets=SETS)
    model = estimator.fit(X, y)
    alone = {key: search(name, subset(names))[0].fit(X, y) for key, names in MEMBERS.items()}
    curves = np.array([each.validation_curve() for each in alone.values()])
    assert_allclose(model.validation_curve(), curves, rtol=1e-10, atol=1e-12)
    scores = [each.best_score_ for each in alone.values()]
    assert model.kernel_set_ == list(SETS)[int(np.argmax(scores))]
    best = alone[model.kernel_set_]
    assert model.best_score_ == pytest.approx(max(scores))
    assert model.kernel_names_ == best.kernel_names_ == MEMBERS[model.kernel_set_]
    assert_allclose(model.weights_, best.weights_, rtol=1e-10)
    assert_allclose(model.predict(NEW), best.predict(NEW), rtol=1e-10)
    for parameter in ("p_", "reg_", "C_", "epsilon_"):
        if hasattr(best, parameter):
            assert_array_equal(getattr(model, parameter), getattr(best, parameter))


def test_penalties_of_machines_by_default():
    y = (X[:, 0] * X[:, 1] + 0.3 * X[:, 1] ** 3 > 0).astype(int)
    kernels = {"linear": Linear(), "wide": RBF(0.01)}
    sets = {"line": ["linear"], "wide": ["wide"]}
    model = MKSVCCV(kernels, kernel_sets=sets, cv=FOLDS).fit(X, y)
    alone = MKSVCCV({"wide": kernels["wide"]}, cv=FOLDS).fit(X, y)
    assert model.kernel_set_ == "wide"
    assert_array_equal(model.validation_curve()[1], alone.validation_curve())
    assert_array_equal(model.predict_proba(NEW), alone.predict_proba(NEW))


def test_the_table_has_a_column_of_sets():
    estimator, y = search("ridge", kernel_sets=SETS)
    results = estimator.fit(X, y).cv_results_
    # Two λ of p = 1, and one point of largest evidence, for each of four sets.
    expected = np.repeat(list(SETS), 3)
    assert_array_equal(results["param_kernel_set"], expected)
    assert [params["kernel_set"] for params in results["params"]] == expected.tolist()
    assert results["params"][2].keys() == {"kernel_set", "p"}
    assert len(results["mean_test_score"]) == 12


def test_left_out_predictions_are_of_sets_chosen_in_the_other_folds():
    y = np.random.default_rng(1).normal(size=N)  # which set seems best is chance
    model = MKRidgeCV(KERNELS, kernel_sets=SETS, cv=FOLDS, tol=1e-9, **GRID).fit(X, y)
    results, sets = model.cv_results_, []
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)])
    for k, (train, test) in enumerate(FOLDS):
        params = results["params"][int(np.delete(scores, k, axis=0).mean(axis=0).argmax())]
        sets.append(params["kernel_set"])
        kernels = subset(MEMBERS[sets[-1]])
        fold = MKRidge(kernels, p=params["p"], reg=params["reg"], tol=1e-9).fit(X[train], y[train])
        assert_allclose(
            model.left_out_predictions_[test], fold.predict(X[test]), rtol=1e-4, atol=1e-5
        )
    assert len(set(sets)) > 1


@pytest.mark.parametrize("kind", [MKRidgeCV, MKFDACV])
def test_noise_does_not_look_better_by_a_choice_among_many_sets(kind):
    claimed, left_out = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table, y = rng.normal(size=(N, 20)), rng.permutation(np.arange(N) % 2)
        kernels = {f"column {j}": RBF(1.0).on([j]) for j in range(20)}
        sets = {name: [name] for name in kernels}
        model = kind(kernels, kernel_sets=sets, ps=[1], regs=[1.0, 10.0]).fit(table, y)
        claimed.append(model.best_score_)
        left_out.append(model.left_out_score_)
    chance = 0.5 if kind is MKFDACV else 0.0
    error = np.std(left_out, ddof=1) / np.sqrt(len(left_out))
    assert np.mean(left_out) <= chance + 2.0 * error
    assert np.mean(claimed) > np.mean(left_out) + 2.0 * error


# -- equal scores ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", [["first", "second"], ["second", "first"]])
@pytest.mark.parametrize("name", ["ridge", "svc"])
def test_of_equal_scores_the_set_listed_first_is_taken(name, order):
    twins = {"a": RBF(1.0), "b": RBF(1.0)}
    members = {"first": ["a"], "second": ["b"]}
    estimator, y = search(name, twins, kernel_sets={key: members[key] for key in order})
    assert estimator.fit(X, y).kernel_set_ == order[0]


def test_the_loss_does_not_decide_between_sets_of_equal_scores():
    y = (X[:, 0] > 0).astype(int)
    table = X + 4.0 * np.outer(2.0 * y - 1.0, [1.0, 1.0, 0.01])
    kernels = {"poor": Linear().on([0]), "rich": Linear().on([0, 1])}
    losses = {}
    for name in kernels:
        alone = MKFDACV({name: kernels[name]}, cv=FOLDS, **GRID).fit(table, y)
        assert alone.best_score_ == 1.0
        losses[name] = -alone.left_out_log_proba_[np.arange(N), y].mean()
    worse, better = sorted(losses, key=lambda name: -losses[name])
    model = MKFDACV(kernels, kernel_sets={"a": worse, "b": better}, cv=FOLDS, **GRID)
    assert model.fit(table, y).kernel_set_ == "a"


def test_one_standard_error_takes_the_first_set_that_is_as_good():
    sets = {"bad": ["noise"], "curves": ["rbf *"], "all": ["*"]}
    estimator, y = search("ridge", kernel_sets=sets)
    assert estimator.fit(X, y).kernel_set_ == "all"
    simple = estimator.set_params(one_standard_error=True).fit(X, y)
    results = simple.cv_results_
    best = results["mean_test_score"].argmax()
    level = results["mean_test_score"][best] - results["se_test_score"][best]
    assert simple.kernel_set_ == "curves"
    assert simple.best_score_ >= level
    assert results["mean_test_score"][results["param_kernel_set"] == "bad"].max() < level


# -- names and patterns ----------------------------------------------------------------------


NAMES = ["a:linear", "a:rbf(1)", "b:rbf(1)", "b:rbf[12]", "b:rbf1"]


@pytest.mark.parametrize(
    ("listed", "positions"),
    [
        (["b:rbf(1)", "a:linear"], [0, 2]),
        ("a:*", [0, 1]),
        (["*rbf*", "b:*"], [1, 2, 3, 4]),
        (["b:rbf[12]"], [3]),  # a name comes before a pattern
        (["b:rbf[1]"], [4]),
        (np.array(["?:linear"]), [0]),
        (("*",), [0, 1, 2, 3, 4]),
    ],
)
def test_kernels_are_listed_by_names_and_patterns(listed, positions):
    assert_array_equal(checked_kernel_sets({"set": listed}, NAMES)["set"], positions)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({}, "kernel_sets has no sets"),
        ({"s": []}, r"kernel_sets\['s'\] must be a list of kernel names, at least one; got \[\]"),
        ({"s": None}, r"kernel_sets\['s'\] must be a list of kernel names.* got None"),
        ({"s": ["rbf"]}, r"has 'rbf', which is the name of no kernel.*kernels are linear, rbf 0,"),
        ({"s": ["rbg*"]}, r"has 'rbg\*', which is the name of no kernel and matches none"),
        ({"s": ["noise", "noise"]}, r"kernel_sets\['s'\] has 'noise' twice"),
        ({"s": ["rbf *"], "t": ["rbf 1", "rbf 0"]}, "'s' and 't' have the same kernels"),
    ],
)
@pytest.mark.parametrize("kind", [MKRidgeCV, MKSVRCV])
def test_bad_sets_are_refused(kind, sets, message):
    with refused(message):
        kind(KERNELS, kernel_sets=sets).fit(X, VALUES)


def test_what_is_no_mapping_or_no_name_is_refused():
    with refused("'kernel_sets' parameter of MKRidgeCV must be"):
        MKRidgeCV(KERNELS, kernel_sets=[["linear"]]).fit(X, VALUES)
    with refused("names of sets must be strings, got 1", TypeError):
        MKRidgeCV(KERNELS, kernel_sets={1: ["linear"]}).fit(X, VALUES)
    with refused("has 1, which is no name of a kernel", TypeError):
        MKRidgeCV(KERNELS, kernel_sets={"s": [1]}).fit(X, VALUES)


def test_an_error_names_some_of_many_kernels():
    with refused(r"The kernels are k0, .*k19 and 30 more\.$"):
        checked_kernel_sets({"s": ["x"]}, [f"k{j}" for j in range(50)])


# -- kinds of input --------------------------------------------------------------------------


def test_default_kernels_of_views():
    views = Views({"a": X[:, :2], "b": X[:, 2:]})
    sets = {"b": ["b:*"], "a": ["a:*"], "linear": ["*:linear"]}
    model = MKRidgeCV(kernel_sets=sets, cv=FOLDS, **GRID).fit(views, VALUES)
    assert model.kernel_set_ == "a"
    alone = MKRidgeCV(cv=FOLDS, **GRID).fit(Views({"a": X[:, :2]}), VALUES)
    assert model.kernel_names_ == alone.kernel_names_
    new = Views({"a": NEW[:, :2], "b": NEW[:, 2:]})
    expected = alone.predict(Views({"a": NEW[:, :2]}))
    assert_allclose(model.predict(new), expected, rtol=1e-8)


def test_columns_of_other_sets_are_not_looked_at():
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    kernels = {"x": RBF(1.0).on(["x", "y"]), "z": RBF(1.0).on(["z"])}
    model = MKRidgeCV(kernels, kernel_sets={"x": "x", "z": "z"}, cv=FOLDS, **GRID)
    model.fit(frame, VALUES)
    assert model.kernel_set_ == "x"
    new = frame.assign(z=np.nan)
    assert_array_equal(model.predict(new), model.predict(frame))


def stacks():
    union = KernelUnion(KERNELS).fit(X)
    return union(X), union(NEW, X)


def test_precomputed_kernels_of_all_sets_are_passed_to_predict():
    train, test = stacks()
    model = MKRidgeCV("precomputed", kernel_sets=SETS, cv=FOLDS, **GRID).fit(train, VALUES)
    of_table = MKRidgeCV(KERNELS, kernel_sets=SETS, cv=FOLDS, **GRID).fit(X, VALUES)
    assert model.kernel_set_ == of_table.kernel_set_ == "curves"
    assert_allclose(model.predict(test), of_table.predict(NEW), rtol=1e-8)
    matrices = {name: test.kernel(j) for j, name in enumerate(test.names)}
    assert_allclose(model.predict(matrices), of_table.predict(NEW), rtol=1e-8)
    with refused("X has 2 kernels, but MKRidgeCV was fitted on 4"):
        model.predict(test.select(["rbf 0", "rbf 1"]))
    some = MKRidgeCV("precomputed", kernel_sets=SETS, cv=3, **GRID)
    weights = (np.arange(N) % 4 > 0).astype(float)  # rows of weight zero are left out
    some.fit(train, VALUES, weights)
    kept = MKRidgeCV(KERNELS, kernel_sets=SETS, cv=3, **GRID).fit(X, VALUES, weights)
    assert_allclose(some.predict(test), kept.predict(NEW), rtol=1e-8)


@pytest.mark.parametrize("name", ["ridge", "svc"])
def test_a_validation_set(name):
    held_out = slice(40, None)
    alone = {}
    for key, names in MEMBERS.items():
        estimator, y = search(name, subset(names), cv=(X[held_out], SEARCHES[name][2][held_out]))
        alone[key] = estimator.fit(X[:40], y[:40])
    estimator, y = search(name, cv=(X[held_out], SEARCHES[name][2][held_out]), kernel_sets=SETS)
    model = estimator.fit(X[:40], y[:40])
    curves = [each.validation_curve() for each in alone.values()]
    assert_allclose(model.validation_curve(), curves, rtol=1e-10, atol=1e-12)
    assert_allclose(model.predict(NEW), alone[model.kernel_set_].predict(NEW), rtol=1e-8)


def test_samples_that_lack_views():
    lacking = X.copy()
    lacking[:10, 0], lacking[10:15, 1] = np.nan, np.nan
    sets = {"curves": ["rbf *"], "with noise": ["rbf *", "noise"]}
    kernels = subset(["rbf 0", "rbf 1", "noise"])
    params = {"missing": "mean", "cv": 3, **GRID}
    model = MKRidgeCV(kernels, kernel_sets=sets, **params).fit(lacking, VALUES)
    alone = MKRidgeCV(subset(["rbf 0", "rbf 1"]), **params).fit(lacking, VALUES)
    assert model.kernel_set_ == "curves"
    assert_allclose(model.validation_curve()[0], alone.validation_curve(), rtol=1e-10)
    assert_allclose(model.predict(NEW), alone.predict(NEW), rtol=1e-8)
    first = {"first": ["rbf 0"], **sets}
    message = r"kernel_sets\['first'\]: 10 of 60 samples have none of the kernels \(rbf 0\)"
    with refused(message):
        MKRidgeCV(kernels, kernel_sets=first, **params).fit(lacking, VALUES)
    gone = NEW.copy()
    gone[3, :2] = np.nan
    with refused(r"1 of 20 samples have none of the kernels \(rbf 0, rbf 1\)"):
        model.predict(gone)


def test_bands_of_the_kernels_of_a_set():
    estimator, y = search("fda", kernel_sets=SETS, denoise=Bands(2))
    model = estimator.fit(X, y)
    alone, _ = search("fda", subset(MEMBERS[model.kernel_set_]), denoise=Bands(2))
    assert model.kernel_names_ == alone.fit(X, y).kernel_names_
    assert len(model.kernel_names_) > len(MEMBERS[model.kernel_set_])
    assert_allclose(model.predict_proba(NEW), alone.predict_proba(NEW), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ridge", "svc"])
def test_splits_in_parallel(name):
    estimator, y = search(name, kernel_sets=SETS)
    model, parallel = estimator.fit(X, y), clone(estimator).set_params(n_jobs=2).fit(X, y)
    assert_array_equal(parallel.validation_curve(), model.validation_curve())


def test_several_targets_share_a_set_or_are_refused():
    estimator, y = search("ridge targets", kernel_sets=SETS)
    assert estimator.fit(X, y).predict(NEW).shape == (20, 2)
    with refused('kernel_sets does not go with multi_target="separate": each of 2 columns'):
        estimator.set_params(multi_target="separate").fit(X, y)
    labels = np.column_stack([CLASSES, X[:, 1] > 0]).astype(int)
    model = MKFDACV(KERNELS, kernel_sets=SETS, cv=3, **GRID)
    with refused('kernel_sets does not go with multi_label="separate".*multi_label="shared"'):
        model.fit(X, labels)
    model.set_params(multi_label="shared").fit(X, labels)
    assert model.kernel_names_ == MEMBERS[model.kernel_set_]


def test_explicit_features_are_refused():
    model = MKRidgeCV(KERNELS, kernel_sets=SETS, approximation=Nystrom(10))
    with refused("kernel_sets=.* does not go with approximation=.*Pass kernel_sets=None"):
        model.fit(X, VALUES)


# -- progress, pictures, files ---------------------------------------------------------------


def test_a_line_per_point_names_the_set(capsys):
    for name in ("ridge", "svc"):
        estimator, y = search(name, kernel_sets=SETS, verbose=True)
        estimator.fit(X, y)
        assert re.search(r"split 1/3  kernel_set curves  p 1 ", capsys.readouterr().out)


class StopsWithin(Recorder):
    """Stops every split in its second set: three points of the first, and one."""

    def on_fit_task_end(self, estimator, context, **given):
        super().on_fit_task_end(estimator, context)
        return len(self.parts_of(context.parent)) == 4


def test_sets_after_a_stop_are_left_out():
    estimator, y = search("ridge", kernel_sets=SETS)
    estimator.set_callbacks(StopsWithin())
    with pytest.warns(ConvergenceWarning, match="could not be solved.*a callback asked to stop"):
        model = estimator.fit(X, y)
    scores = model.cv_results_["mean_test_score"]
    assert np.isfinite(scores).reshape(4, 3).sum(axis=1).tolist() == [3, 1, 0, 0]


@pytest.mark.parametrize("name", ["ridge", "svc"])
def test_a_picture_of_the_chosen_set(name):
    estimator, y = search(name, kernel_sets=SETS)
    model = estimator.fit(X, y)
    display = ValidationDisplay.from_estimator(model)
    assert display.caption == f"kernel set {model.kernel_set_}"
    scores = model.validation_curve()[list(SETS).index(model.kernel_set_)]
    assert_array_equal(display.scores, scores)
    assert display.scores[display.chosen] == model.best_score_


def test_a_report_and_the_command_line_name_the_set():
    estimator, y = search("fda", kernel_sets=SETS)
    model = estimator.fit(X, y)
    choice = summarize(model, X, y, importance=False)["choice"]
    assert choice["parameters"] == ["kernel_set", "p", "reg"]
    assert choice["chosen"][0]["values"][0] == model.kernel_set_
    page = report(model, X, y).html
    assert f"<td>{model.kernel_set_}</td>" in page
    assert f"At kernel set {model.kernel_set_}." in page
    assert chosen(model).startswith(f"kernel set = {model.kernel_set_}, p = ")


@pytest.mark.parametrize("precomputed", [False, True])
def test_a_model_file(tmp_path, precomputed):
    train, test = stacks() if precomputed else (X, NEW)
    estimator, y = search("fda", "precomputed" if precomputed else KERNELS, kernel_sets=SETS)
    model = estimator.fit(train, y)
    save(model, tmp_path / "model.skops")
    twin = load(tmp_path / "model.skops")
    assert twin.kernel_sets == SETS
    assert twin.kernel_set_ == model.kernel_set_
    assert_array_equal(twin.cv_results_["param_kernel_set"], model.cv_results_["param_kernel_set"])
    assert_array_equal(twin.predict_proba(test), model.predict_proba(test))


def test_importance_of_views_refuses_sets():
    estimator, y = search("fda", kernel_sets=SETS)
    with refused("Importance is measured with the kernels of one set.*kernel_sets=None"):
        view_importance(estimator, X, y)


def test_sets_are_parameters_of_scikit_learn():
    estimator = MKRidgeCV(KERNELS, kernel_sets=SETS, cv=2, **GRID)
    assert clone(estimator).get_params()["kernel_sets"] == SETS
    assert clone(estimator).fit(X, VALUES).kernel_set_ in SETS
    again = clone(estimator).fit(X, VALUES).set_params(kernel_sets=None).fit(X, VALUES)
    assert not hasattr(again, "kernel_set_")
    assert again.kernel_names_ == list(KERNELS)
    outer = GridSearchCV(estimator, {"kernel_sets": [SETS, {"bad": ["noise"]}]}, cv=2)
    assert outer.fit(X, VALUES).best_params_["kernel_sets"] == SETS
    (train, _), precomputed = stacks(), clone(estimator).set_params(kernels="precomputed")
    scores = cross_val_score(estimator, X, VALUES, cv=2)
    assert_allclose(cross_val_score(precomputed, train, VALUES, cv=2), scores, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MKRidgeCV, MKSVCCV])
def test_the_checks_of_scikit_learn(kind):
    sets = {"linear": ["linear"], "all": ["*"]}
    grid = {"ps": [1, 2], "cv": 2}
    grid |= {"regs": [1.0]} if kind is MKRidgeCV else {"Cs": [1.0], "multi_label": "shared"}
    kernels = {"linear": Linear(), "rbf": RBF(1.0)}
    broken, n_passed = scikit_learn_checks(kind(kernels, kernel_sets=sets, **grid))
    unexpected = [one for one in broken if one.split(":")[0] not in WEIGHTS_AND_REPEATS]
    assert not unexpected
    assert n_passed > 30


def test_kernels_of_targets_are_learnt_in_the_folds_of_their_set():
    """Pure noise: a kernel that had seen the targets of test rows would predict them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 30)), rng.normal(size=80)
    kernels = {"linear": Linear(), "relevance": RelevanceRBF(penalty=0.02), "rbf": RBF()}
    sets = {"first": ["linear", "rbf"], "second": ["relevance", "rbf"]}
    options = {"ps": [1], "regs": [0.1, 1.0]}
    model = MKRidgeCV(kernels, kernel_sets=sets, **options).fit(X, y)
    alone = MKRidgeCV({name: kernels[name] for name in sets["second"]}, **options).fit(X, y)
    results = model.cv_results_
    second = [params["kernel_set"] == "second" for params in results["params"]]
    np.testing.assert_allclose(
        results["mean_test_score"][second], alone.cv_results_["mean_test_score"], rtol=1e-8
    )
    assert model.left_out_score_ < 0.1
