"""compare: known answers, the same as cross_validate, every kind of X, failures, bad input."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from manykernels import MKFDA, MKSVC, KernelStack, MKRidge, Views, compare
from manykernels.kernels import RBF, Linear
from tests.comparison.methods import ByColumn, Failing, Interrupted, labelled_table
from tests.problems import slow

PERFECT, CONSTANT = ByColumn(0), ByColumn(-1)


@pytest.fixture
def table():
    return labelled_table()


@pytest.fixture
def blobs():
    """40 samples of two classes in two views, and their names."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    views = {
        "a": rng.standard_normal((40, 2)) + labels[:, None],
        "b": rng.standard_normal((40, 3)) - 0.5 * labels[:, None],
    }
    return views, np.array(["no", "yes"])[labels]


def stack_of(views):
    return KernelStack.from_arrays({name: table @ table.T for name, table in views.items()})


# -- known answers ---------------------------------------------------------------------------


def test_a_perfect_method_against_a_constant_one(table):
    result = compare({"perfect": PERFECT, "constant": CONSTANT}, *table, cv=4)
    np.testing.assert_array_equal(result.scores()[0], 1.0)
    np.testing.assert_allclose(result.means(), [1.0, 1 / 3])
    assert result.best == "perfect"
    # The differences are all 2/3: their spread is nothing.
    assert result.p_values[0, 1] == 0.0
    assert result.finished
    assert result.failures == {}


def test_equal_methods_do_not_differ(table):
    result = compare([("one", ByColumn(1)), ("other", ByColumn(1, note="x"))], *table)
    np.testing.assert_array_equal(result.p_values, np.ones((2, 2)))


def test_every_method_sees_the_same_splits_even_if_they_are_drawn_at_random(table):
    cv = ShuffleSplit(4, test_size=0.4, random_state=np.random.RandomState(0))
    result = compare({"a": ByColumn(1), "b": ByColumn(1)}, *table, cv=cv)
    assert np.ptp(result.scores(), axis=1).min() > 0
    np.testing.assert_array_equal(*result.scores())


@pytest.mark.parametrize("scoring", [None, *slow("accuracy", ["accuracy", "neg_log_loss"])])
def test_scores_are_those_of_cross_validate(blobs, scoring):
    views, y = blobs
    X = np.hstack(list(views.values()))
    methods = {"mkfda": MKFDA(RBF()), "bayes": GaussianNB()}
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1)
    result = compare(methods, X, y, cv=cv, scoring=scoring)
    for i, method in enumerate(methods.values()):
        expected = cross_validate(method, X, y, cv=cv, scoring=scoring)
        for name in result.scorings:
            key = f"test_{name}" if isinstance(scoring, list) else "test_score"
            np.testing.assert_array_equal(result.scores(name)[i], expected[key])


def test_the_default_score_is_the_same_for_all(table):
    """A search has a score of its own, which is not that of the others."""
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, scoring="neg_log_loss", cv=2)
    result = compare({"search": search, "plain": GaussianNB()}, *table, cv=3)
    assert result.scorings == ["accuracy"]
    np.testing.assert_array_equal(*result.scores())


def test_the_default_splits_are_five_stratified_folds_twice(table):
    X, y = table
    result = compare({"perfect": PERFECT}, X, y)
    assert len(result.splits) == 10
    for half in (result.splits[:5], result.splits[5:]):
        np.testing.assert_array_equal(
            np.sort(np.concatenate([test for _, test in half])), range(60)
        )
    for _, test in result.splits:
        np.testing.assert_array_equal(np.bincount(y[test]), [4, 4, 4])
    again = compare({"perfect": PERFECT}, X, y, random_state=1)
    assert not np.array_equal(result.splits[0][1], again.splits[0][1])


def test_five_by_two_is_five_times_two_halves(table):
    result = compare({"perfect": PERFECT}, *table, cv="5x2")
    assert result.design == "5x2"
    for (train, test), (other_train, other_test) in zip(
        result.splits[::2], result.splits[1::2], strict=True
    ):
        np.testing.assert_array_equal(train, other_test)
        np.testing.assert_array_equal(test, other_train)
        assert len(train) == len(test) == 30


@pytest.mark.parametrize("cv", [None, 4, "5x2"])
def test_rows_that_repeat_others_are_in_one_fold(table, cv):
    X, y = (np.repeat(part, 2, axis=0) for part in table)
    for train, test in compare({"perfect": PERFECT}, X, y, cv=cv).splits:
        assert not set(train // 2) & set(test // 2)


def test_methods_are_not_fitted(table):
    compare({"one": PERFECT}, *table, cv=2)
    assert not hasattr(PERFECT, "classes_")


# -- kinds of X, y and methods ---------------------------------------------------------------


def test_views_a_dict_and_a_pipeline(blobs):
    views, y = blobs
    methods = {
        "mkfda": MKFDA(Linear()),
        "pipeline": make_pipeline(FunctionTransformer(Views.joined), StandardScaler(), SVC()),
    }
    result = compare(methods, views, y, cv=3)
    same = compare(methods, Views(views), y, cv=3)
    np.testing.assert_array_equal(result.scores(), same.scores())
    pipeline = make_pipeline(StandardScaler(), SVC())
    joined = cross_validate(pipeline, Views(views).joined(), y, cv=result.splits)
    np.testing.assert_array_equal(result.scores()[1], joined["test_score"])


def test_labels_of_views_and_of_y_are_matched(blobs):
    views, y = blobs
    names = np.array([f"s{i}" for i in range(40)])
    frames = {name: pd.DataFrame(table, index=names) for name, table in views.items()}
    order = np.random.default_rng(1).permutation(40)
    shuffled = {"a": frames["a"], "b": frames["b"].iloc[order]}
    labels = pd.Series(y, index=names).iloc[order]
    result = compare({"fda": MKFDA(Linear())}, shuffled, labels, cv=3)
    expected = compare({"fda": MKFDA(Linear())}, views, y, cv=3)
    np.testing.assert_array_equal(result.scores(), expected.scores())


@pytest.mark.parametrize("kind", ["stack", *slow("dict", "array")])
def test_kernels_are_cut_by_rows_and_columns(blobs, kind):
    views, y = blobs
    matrices = {name: table @ table.T for name, table in views.items()}
    X = {
        "stack": stack_of(views),
        "dict": matrices,
        "array": np.stack(list(matrices.values()), axis=-1),
    }[kind]
    precomputed = {"fda": MKFDA("precomputed"), "svc": MKSVC("precomputed", C=2.0)}
    result = compare(precomputed, X, y, cv=3)
    expected = compare({"fda": MKFDA(Linear()), "svc": MKSVC(Linear(), C=2.0)}, views, y, cv=3)
    np.testing.assert_array_equal(result.scores(), expected.scores())


def test_one_matrix_for_a_method_of_scikit_learn(blobs):
    views, y = blobs
    matrix = views["a"] @ views["a"].T
    result = compare({"svc": SVC(kernel="precomputed")}, matrix, y, cv=3)
    expected = compare({"svc": SVC(kernel="linear")}, views["a"], y, cv=3)
    np.testing.assert_array_equal(result.scores(), expected.scores())


def test_regression_and_several_scorings():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80], pd.Series(y[:80], index=np.arange(80)[::-1])
    methods = {"ours": MKRidge(Linear()), "ridge": Ridge(), "mean": DummyRegressor()}
    scoring = {"r2": "r2", "error": make_scorer(lambda y, p: np.mean(abs(y - p)))}
    result = compare(methods, X, y, cv=KFold(4), scoring=scoring)
    assert result.scorings == ["r2", "error"]
    assert result.best != "mean"
    expected = cross_validate(Ridge(), X, y, cv=KFold(4), scoring="neg_mean_absolute_error")
    np.testing.assert_allclose(result.scores("error")[1], -expected["test_score"])
    assert compare(methods, X, y, cv=3).scorings == ["r2"]


def test_functions_score(table):
    def hits(estimator, X, y):
        return float(np.sum(estimator.predict(X) == y))

    result = compare({"perfect": PERFECT}, *table, cv=3, scoring=hits)
    assert result.scorings == ["hits"]
    np.testing.assert_array_equal(result.scores("hits"), [[20.0, 20.0, 20.0]])


def test_a_function_may_return_several_scores(table):
    def both(estimator, X, y):
        hits = np.mean(estimator.predict(X) == y)
        return {"hits": hits, "misses": 1 - hits}

    result = compare({"constant": CONSTANT}, *table, cv=4, scoring=both)
    assert result.scorings == ["hits", "misses"]
    np.testing.assert_allclose(result.scores("misses"), 2 / 3)


def test_names_of_unnamed_methods(table):
    methods = [PERFECT, CONSTANT, ("guess", DummyClassifier()), GaussianNB()]
    result = compare(methods, *table, cv=2)
    assert result.names == ["ByColumn 1", "ByColumn 2", "guess", "GaussianNB"]


def test_string_labels_and_a_class_that_is_missing_in_a_split():
    X, y = labelled_table(names=["ash", "birch", "cedar"])
    cedars = np.flatnonzero(y == "cedar")
    others = np.flatnonzero(y != "cedar")
    splits = [
        (others[:20], np.concatenate([others[20:], cedars])),
        (np.arange(30), np.arange(30, 60)),
    ]
    result = compare({"perfect": PERFECT}, X, y, cv=splits)
    assert result.scores()[0, 0] == pytest.approx(20 / 40)
    assert result.scores()[0, 1] == 1.0


# -- what is told of fitted models -----------------------------------------------------------


def test_kernels_support_vectors_and_gaps(blobs):
    views, y = blobs
    rng = np.random.default_rng(3)
    views = {**views, "noise": rng.standard_normal((40, 1))}
    methods = {
        "sum": MKFDA(Linear(), p=np.inf),
        "machine": MKSVC(Linear(), p=1, C=5.0),
        "search": GridSearchCV(MKSVC(Linear(), p=1), {"C": [5.0]}, cv=2),
        "guess": make_pipeline(FunctionTransformer(Views.joined), DummyClassifier()),
    }
    result = compare(methods, views, y, cv=3)
    rows = {row["method"]: row for row in result.rows()}
    assert (rows["sum"]["n_used"], rows["sum"]["n_kernels"]) == (3.0, 3.0)
    used, n_support, gaps = [], [], []
    for train, _ in result.splits:
        model = MKSVC(Linear(), p=1, C=5.0).fit(Views(views)[train], y[train])
        used.append(np.count_nonzero(model.weights_))
        n_support.append(len(model.support_))
        gaps.append(model.certificate_.rel_gap)
    for name in ("machine", "search"):
        assert rows[name]["n_used"] == pytest.approx(np.mean(used))
        assert rows[name]["n_support"] == pytest.approx(np.mean(n_support))
        assert rows[name]["rel_gap"] == pytest.approx(max(gaps))
        share = np.mean(np.array(n_support) / result.n_train)
        assert rows[name]["support_share"] == pytest.approx(share)
    for key in ("n_used", "n_kernels", "n_support", "support_share", "rel_gap"):
        assert np.isnan(rows["guess"][key])
    assert np.isnan(rows["sum"]["n_support"])
    assert min(row["fit_time"] for row in rows.values()) > 0


def test_kernels_of_several_weight_vectors_are_those_that_any_uses():
    """Three classes, each of which one kernel tells from the others."""
    y = np.arange(45) % 3
    noise = 0.1 * np.random.default_rng(0).standard_normal((3, 45))
    views = {f"v{k}": ((y == k) + noise[k])[:, None] for k in range(3)}
    separate = MKSVC(Linear(), p=1, multi_class="separate")
    model = separate.fit(views, y)
    assert np.count_nonzero(model.weights_ > 1e-4, axis=1).max() < 3
    result = compare({"separate": separate}, views, y, cv=3)
    assert result.rows()[0]["n_used"] == 3.0


# -- failures --------------------------------------------------------------------------------


def test_a_method_that_fails_on_one_split_is_reported(table):
    methods = {"fine": ByColumn(1), "fails": Failing(0, without=3)}
    with pytest.warns(FitFailedWarning, match=r"1 of 8 cells .*'fails' on 1 of 4 splits"):
        result = compare(methods, *table, cv=4)
    ((method, split),) = result.failures
    assert method == "fails"
    assert 3 in result.splits[split][1]
    assert result.failures[method, split] == "ValueError: row 3 is needed"
    # It is better where it works, and yet not the best.
    assert result.means()[1] == 1.0
    assert result.best == "fine"
    assert f"fails failed on split {split}: ValueError: row 3 is needed" in str(result)
    assert result.rows()[1]["n_failed"] == 1
    # Tested on the three splits that are left.
    assert 0.0 < result.p_values[0, 1] < 1.0
    assert np.isnan(result.scores()[1, split])


def test_the_f_test_needs_every_split(table):
    methods = {"fine": ByColumn(1), "fails": Failing(0, without=3)}
    with pytest.warns(FitFailedWarning):
        result = compare(methods, *table, cv="5x2")
    assert np.isnan(result.p_values[0, 1])


def test_errors_are_raised_if_asked_for(table):
    methods = {"fine": PERFECT, "fails": Failing(without=3)}
    with pytest.raises(ValueError, match="row 3 is needed") as caught:
        compare(methods, *table, cv=4, error_score="raise")
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"Raised by method 'fails' on split \d of compare\.", note)


def test_if_everything_fails_that_is_an_error(table):
    with pytest.raises(ValueError, match=r"All 3 cells of compare failed: 'fails' .*is needed"):
        compare({"fails": Failing(without=-1)}, *table, cv=3)


def test_one_score_that_fails_does_not_cost_the_others(table):
    methods = {"perfect": PERFECT, "bayes": GaussianNB()}
    with pytest.warns(FitFailedWarning, match="no neg_log_loss: AttributeError"):
        result = compare(methods, *table, cv=2, scoring=["accuracy", "neg_log_loss"])
    np.testing.assert_array_equal(result.scores("accuracy")[0], 1.0)
    assert np.isnan(result.scores("neg_log_loss")[0]).all()
    assert np.isfinite(result.scores("neg_log_loss")[1]).all()


def test_scores_that_are_no_numbers_are_failures(table):
    def undefined(estimator, X, y):
        return np.nan if estimator.column < 0 else 1.0

    with pytest.warns(FitFailedWarning, match="no undefined: it is nan"):
        result = compare({"a": PERFECT, "b": CONSTANT}, *table, cv=2, scoring=undefined)
    assert result.rows()[1]["n_failed"] == 2
    with pytest.raises(ValueError, match="must return a number, got 'much'"):
        compare({"a": PERFECT}, *table, cv=2, scoring=lambda *_: "much")


def test_after_an_interruption_what_is_finished_is_returned(table):
    methods = {"fine": PERFECT, "stopped": Failing(without=50, error=KeyboardInterrupt)}
    with pytest.warns(RuntimeWarning, match=r"interrupted after 7 of 8 cells; with path"):
        result = compare(methods, *table, cv=KFold(4))
    assert not result.finished
    np.testing.assert_array_equal(np.isnan(result.scores()), [[0, 0, 0, 0], [0, 0, 0, 1]])
    assert "Interrupted: 7 of 8 cells are finished." in str(result)


def test_nothing_finished_is_an_interruption(table):
    with pytest.raises(KeyboardInterrupt):
        compare({"stopped": Failing(without=-1, error=KeyboardInterrupt)}, *table, cv=2)


def test_a_fit_that_was_interrupted_is_not_a_result(table):
    """Localized estimators return their best model so far."""
    with pytest.raises(KeyboardInterrupt):
        compare({"localized": Interrupted()}, *table, cv=2)


# -- n_jobs and verbose ----------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_n_jobs_changes_nothing(table, backend):
    methods = {"one": ByColumn(1), "bayes": GaussianNB(), "fails": Failing(without=3)}
    results = []
    for n_jobs in (1, 2):
        with pytest.warns(FitFailedWarning), parallel_config(backend):
            results.append(compare(methods, *table, cv=4, n_jobs=n_jobs))
    np.testing.assert_array_equal(results[0].scores(), results[1].scores())
    assert list(results[0].cells) == list(results[1].cells)
    assert results[0].failures == results[1].failures


def test_verbose_prints_a_line_per_cell(table, capsys):
    compare({"perfect": PERFECT}, *table, cv=2, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\[compare\] 1/2  perfect, split 0: accuracy 1 \(.* s\)", lines[0])
    assert len(lines) == 2


# -- bad input -------------------------------------------------------------------------------


class Uncloneable(BaseEstimator):
    def __init__(self, part=None):
        self.part = [part]

    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        ({}, ValueError, "no methods"),
        ([], ValueError, "no methods"),
        (PERFECT, TypeError, 'a dict of estimators by name.*{"name": estimator}'),
        ("MKFDA", TypeError, "a dict of estimators by name"),
        ([("a", PERFECT), ("a", CONSTANT)], ValueError, "Two methods are called 'a'"),
        ([("a", PERFECT, 3)], TypeError, r"pair \(name, estimator\)"),
        ({3: PERFECT}, TypeError, "Names of methods must be nonempty strings, got 3"),
        ({"a": MKFDA}, TypeError, "'a' cannot be cloned .*class"),
        ({"a": "svm"}, TypeError, "'a' is a str, not an estimator"),
        ({"a": None}, TypeError, "'a' is a NoneType, not an estimator"),
        ({"a": Uncloneable()}, TypeError, "'a' cannot be cloned"),
        ({"a": PERFECT, "b": Ridge()}, ValueError, "'a' is a classifier and 'b' is not"),
    ],
)
def test_bad_methods(table, methods, error, message):
    with pytest.raises(error, match=message):
        compare(methods, *table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "excellence"}, "excellence"),
        ({"scoring": []}, "no scoring"),
        ({"scoring": ["accuracy", "accuracy"]}, "has a name twice"),
        ({"scoring": [accuracy_score]}, "pass functions in a dict"),
        ({"scoring": {"a": accuracy_score}}, "scor"),
        ({"cv": "10x10"}, "or \"5x2\"; got '10x10'"),
        ({"cv": []}, "no splits"),
        ({"cv": 1}, "at least one|n_splits"),
        ({"cv": GroupKFold(3)}, r"cv=GroupKFold\(...\) divides rows by groups"),
        ({"cv": [([0, 1], [1, 2])]}, "has samples in both its training and its test part"),
        ({"cv": [([0, 1], [])]}, "no test samples"),
        ({"cv": [([], [0, 1])]}, "no training samples"),
        ({"cv": [([0, 1], [60])]}, "Split 0 is not made of row numbers"),
        ({"cv": [[0, 1, 2]]}, r"pairs \(train, test\)"),
        ({"error_score": 0.0}, 'NaN or "raise"'),
    ],
)
def test_bad_options(table, options, message):
    with pytest.raises(ValueError, match=message):
        compare({"perfect": PERFECT}, *table, **options)


def test_bad_data(table, blobs):
    X, y = table
    with pytest.raises(ValueError, match="requires y"):
        compare({"perfect": PERFECT}, X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        compare({"perfect": PERFECT}, X, y[:-1])
    with pytest.raises(ValueError, match="one entry per sample"):
        compare({"perfect": PERFECT}, X, 3)
    views, labels = blobs
    with pytest.raises(ValueError, match="kernel matrices, which 'fda' does not accept"):
        compare({"ok": MKFDA("precomputed"), "fda": MKFDA()}, stack_of(views), labels)


def test_masks_are_splits_too(table):
    mask = np.arange(60) < 40
    result = compare({"constant": CONSTANT}, *table, cv=[(mask, ~mask)])
    np.testing.assert_array_equal(result.splits[0][1], np.arange(40, 60))


def test_nothing_is_warned_of_without_need(table, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare({"perfect": PERFECT, "bayes": GaussianNB()}, *table, path=tmp_path)
    for file in tmp_path.iterdir():
        assert set(json.loads(file.read_text())) == {"method", "split", "key", "cell"}
