"""Estimators on several tables: a dict or Views goes in, rows and views are matched by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    KernelStack,
    KernelUnion,
    LocalizedFDA,
    Nystrom,
    Views,
)
from manykernels.kernels import RBF, Cosine, Linear
from tests.estimators.registry import every_variant_on_positive_kernels, made
from tests.problems import slow, some_slow


@pytest.fixture(scope="module")
def problem():
    """Two informative views and one of noise, with labelled rows."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    labels = [f"s{k}" for k in range(60)]
    tables = {
        "size": rng.normal(y[:, None] == [0, 1], 0.6, size=(60, 2)),
        "shape": rng.normal(y[:, None] == [2], 0.6, size=(60, 3)),
        "noise": rng.normal(size=(60, 4)),
    }
    frames = {
        name: pd.DataFrame(
            table, index=labels, columns=[f"{name}{k}" for k in range(table.shape[1])]
        )
        for name, table in tables.items()
    }
    return frames, np.array(["red", "green", "blue"])[y]


def arrays(frames):
    return {name: frame.to_numpy() for name, frame in frames.items()}


@every_variant_on_positive_kernels
def test_a_dict_is_what_the_kernels_of_its_tables_are(entry):
    """One kernel per view is the same as one kernel per group of columns of the joined table."""
    rng = np.random.default_rng(1)
    joined = rng.normal(size=(24, 4))
    y = entry.y_of(joined)
    views = {"a": joined[:, :2], "b": joined[:, 2:]}
    by_views = entry.make({"a": RBF(), "b": RBF()}).fit(views, y)
    by_columns = entry.make([("a", RBF().on([0, 1])), ("b", RBF().on([2, 3]))]).fit(joined, y)
    # scikit-learn's convention for several columns: the views are the columns.
    assert by_views.n_features_in_ == 2
    assert by_views.feature_names_in_.tolist() == ["a", "b"]
    assert by_views.kernel_names_ == ["a", "b"]
    new = rng.normal(size=(5, 4))
    found = entry.scores(by_views, {"b": new[:, 2:], "a": new[:, :2]})
    np.testing.assert_allclose(found, entry.scores(by_columns, new), rtol=1e-9, atol=1e-9)


# -- rows ------------------------------------------------------------------------------------


def test_shuffled_rows_of_one_view_change_nothing(problem):
    frames, y = problem
    expected = MKFDA(RBF()).fit(arrays(frames), y)
    rng = np.random.default_rng(0)
    shuffled = {name: frame.iloc[rng.permutation(60)] for name, frame in frames.items()}
    order = shuffled["size"].index
    targets = pd.Series(y, index=frames["size"].index)
    in_order = Views(shuffled), targets.loc[order].to_numpy()
    again = shuffled, targets.iloc[rng.permutation(60)]
    for given in ((shuffled, targets), again, in_order):
        model = MKFDA(RBF()).fit(*given)
        np.testing.assert_allclose(model.weights_, expected.weights_, rtol=1e-9)
        assert model.score(*given) == expected.score(arrays(frames), y)
    with pytest.raises(ValueError, match=r"rows in different orders, so that y needs labels"):
        MKFDA(RBF()).fit(shuffled, y)
    with pytest.raises(ValueError, match=r"different orders, so that sample_weight needs labels"):
        MKFDA(RBF()).fit(shuffled, targets, np.ones(60))
    predicted = pd.Series(expected.predict(shuffled), index=order)
    assert (predicted.loc[targets.index] == expected.predict(arrays(frames))).all()


def test_weights_are_matched_by_label(problem):
    frames, y = problem
    weights = pd.Series(np.arange(60.0), index=frames["size"].index)
    expected = MKFDA(RBF()).fit(frames, y, weights.to_numpy())
    with pytest.warns(UserWarning, match="rows of sample_weight have the labels of X in another"):
        model = MKFDA(RBF()).fit(frames, y, weights.iloc[::-1])
    np.testing.assert_array_equal(model.weights_, expected.weights_)


def test_views_of_a_test_set_in_another_order(problem):
    frames, y = problem
    model = MKSVC(RBF()).fit(frames, y)
    other = {name: frames[name].iloc[:, ::-1] for name in reversed(frames)}
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frames))


def test_targets_in_another_order_are_refused_in_a_search(problem):
    frames, y = problem
    targets = pd.Series(y, index=frames["size"].index).iloc[::-1]
    with pytest.raises(ValueError, match="labels of y are not those of X"):
        cross_val_score(MKFDA(RBF()), Views(frames), targets, error_score="raise")


def test_validation_sets_are_matched_by_label(problem):
    frames, y = problem
    targets = pd.Series(y, index=frames["size"].index)
    model = MKFDACV(RBF(), ps=[1], regs=[1.0], cv=(frames, targets)).fit(frames, y)
    shuffled = targets.sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="rows of y have the labels of X in another order"):
        again = MKFDACV(RBF(), ps=[1], regs=[1.0], cv=(frames, shuffled)).fit(frames, y)
    assert again.best_score_ == model.best_score_


KINDS = {
    "a frame": lambda frame, K: (MKFDA(RBF()), frame),
    "a dict": lambda frame, K: (MKFDA(RBF()), {"view": frame}),
    "Views": lambda frame, K: (MKFDA(RBF()), Views({"view": frame})),
    "on features": lambda frame, K: (MKFDA(RBF(), approximation=Nystrom(20)), frame),
    "a kernel frame": lambda frame, K: (MKFDA("precomputed"), K),
    "a dict of kernel frames": lambda frame, K: (MKFDA("precomputed"), {"k": K}),
    "a list of kernel frames": lambda frame, K: (MKFDA("precomputed"), [K]),
    "a stack": lambda frame, K: (MKFDA("precomputed"), KernelStack.from_arrays({"k": K})),
}


@pytest.mark.parametrize(
    "kind",
    some_slow(KINDS, "a dict", "a dict of kernel frames", "a list of kernel frames", "a stack"),
)
def test_one_rule_matches_targets_with_rows_of_every_kind(problem, kind):
    frames, y = problem
    frame = frames["size"]
    K = pd.DataFrame(RBF().fit(frame)(frame), index=frame.index, columns=frame.index)
    estimator, X = KINDS[kind](frame, K)
    targets = pd.Series(y, index=frame.index)
    weights = pd.Series(1.0 + np.arange(60), index=frame.index)
    expected = estimator.fit(X, y, weights.to_numpy()).decision_function(X)
    np.testing.assert_array_equal(
        estimator.fit(X, targets, weights).decision_function(X), expected
    )
    shuffled = targets.sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="y and sample_weight have the labels of X in") as told:
        estimator.fit(X, shuffled, weights.sample(frac=1, random_state=1))
    assert len(told) == 1
    np.testing.assert_array_equal(estimator.decision_function(X), expected)
    with pytest.warns(UserWarning, match="rows of y have the labels of X in another order"):
        score = estimator.score(X, shuffled)
    assert score == estimator.score(X, y)
    with pytest.raises(ValueError, match="1 of 60 labels of X are not in y"):
        estimator.fit(X, targets.rename(index={frame.index[0]: "other"}))
    by_position = estimator.fit(X, targets.reset_index(drop=True)).decision_function(X)
    np.testing.assert_array_equal(by_position, estimator.fit(X, y).decision_function(X))


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "a stack"])
def test_rows_shuffled_after_their_targets_were_numbered_are_refused(problem, kind):
    frames, y = problem
    frame = frames["size"].reset_index(drop=True).sample(frac=1, random_state=0)
    K = pd.DataFrame(RBF().fit(frame)(frame), index=frame.index, columns=frame.index)
    estimator, X = KINDS[kind](frame, K)
    with pytest.raises(ValueError, match="rows of y are numbered 0, 1, 2, …, those of X have the"):
        estimator.fit(X, pd.Series(y))
    estimator.fit(X, pd.Series(y).loc[frame.index])


def test_what_scikit_learn_cuts_together_is_not_spoken_of(problem):
    frames, y = problem
    frame = frames["size"].sample(frac=1, random_state=0)
    targets = pd.Series(y, index=frames["size"].index).loc[frame.index]
    plain = cross_val_score(MKFDA(RBF()), frame.to_numpy(), targets.to_numpy())
    np.testing.assert_array_equal(cross_val_score(MKFDA(RBF()), frame, targets), plain)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), MKFDA(RBF()))
    search = GridSearchCV(pipeline, {"mkfda__reg": [0.1, 1.0]}, error_score="raise")
    assert search.fit(frame, targets).score(frame, targets) > 0.5
    parts = train_test_split(frame, targets, random_state=0)
    assert MKFDA(RBF()).fit(parts[0], parts[2]).score(parts[1], parts[3]) > 0.5


@pytest.mark.parametrize(
    "options", [{}, *slow({"approximation": Nystrom(20)}, {"kernels": RBF()})]
)
def test_columns_of_one_name_are_named(problem, options):
    frames, y = problem
    twice = pd.DataFrame(np.ones((60, 3)), columns=["a", "b", "a"])
    levels = twice.set_axis(pd.MultiIndex.from_product([["v"], twice.columns]), axis=1)
    said = "several columns are called 'a': give them different names"
    for X, where in ((twice, "X"), ({"v": twice}, "view 'v'"), (levels, "view 'v'")):
        with pytest.raises(ValueError, match=f"^{where}: {said}"):
            MKFDA(**options).fit(X, y)
    with pytest.raises(ValueError, match=f"^X: {said}"):
        MKFDA("precomputed").fit(twice, y[:3])
    model = MKFDA(**options).fit(frames["size"], y)
    with pytest.raises(ValueError, match=r"^X: several columns are called"):
        model.predict(frames["size"].iloc[:, [0, 0]])


def test_missing_views_are_no_missing_values(problem):
    """A single NaN is refused, so that the tag that allows them is not set."""
    frames, y = problem
    estimator = MKFDA(RBF(), missing="mean")
    assert not get_tags(estimator).input_tags.allow_nan
    table = frames["size"].to_numpy().copy()
    table[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(table, y)


# -- kernels -----------------------------------------------------------------------------------


def test_kernels_of_each_view(problem):
    frames, y = problem
    kernels = {
        "size": RBF(),
        "shape": [("wide", RBF(width=4.0)), ("angle", Cosine())],
        "noise": Linear().after(StandardScaler()),
    }
    model = MKFDA(kernels).fit(frames, y)
    assert model.kernel_names_ == ["size", "shape:wide", "shape:angle", "noise"]
    model = MKFDA([("rbf", RBF()), ("both", Linear().of("size") * Linear().of("shape"))])
    model.fit(frames, y)
    assert model.kernel_names_ == ["size:rbf", "shape:rbf", "noise:rbf", "both"]
    model = MKFDA(KernelUnion({"x": RBF().of("size")})).fit(frames, y)
    assert model.kernel_names_ == ["x"]
    both = {"size": RBF().of("size"), "k": Linear().of("shape") + RBF().of("size"), "noise": RBF()}
    model = MKFDA(both).fit(frames, y)
    assert model.kernel_names_ == ["noise", "size", "k"]


def test_no_warning_of_a_default_kernel_that_happens_to_be_constant(problem):
    frames, y = problem
    far = {**frames, "noise": 1e9 + frames["noise"]}  # whose cosines are one
    assert "noise:cosine" in MKFDA().fit(far, y).kernel_names_
    constant = {**frames, "noise": 5.0 + 0.0 * frames["noise"]}
    with pytest.warns(UserWarning, match=r"constant .*'noise:linear', .*'noise:scores-laplacian'"):
        MKFDA().fit(constant, y)


def test_default_kernels_of_each_view(problem):
    frames, y = problem
    names = MKFDA().fit(frames, y).kernel_names_
    assert {name.split(":")[0] for name in names} == set(frames)
    some = MKFDA({"size": RBF(), "shape": None, "noise": RBF()}).fit(frames, y).kernel_names_
    assert [name for name in some if not name.startswith("shape:")] == ["size", "noise"]


@pytest.mark.parametrize(
    ("kernels", "match"),
    [
        ({"size": RBF(), "shape": RBF()}, "no kernel for view 'noise'"),
        ({"size": RBF(), "shape": RBF(), "noise": RBF(), "q": RBF()}, "entry 'q'.*no such view"),
        ({"size": 3, "shape": RBF(), "noise": RBF()}, "view 'size': 3 is not a kernel"),
        (RBF().of("q"), "X has no view 'q'"),
        (RBF().on("size1"), "kernel 'shape': view 'shape': RBF: columns='size1' cannot be"),
    ],
)
def test_kernels_that_do_not_fit_the_views_are_named(problem, kernels, match):
    frames, y = problem
    with pytest.raises((ValueError, TypeError), match=match):
        MKFDA(kernels).fit(frames, y)


def test_objects_reach_functions_as_they_are():
    words = ["red", "blue", "redder", "bluish", "reed", "blues"] * 4
    y = [word[0] for word in words]

    def letters_shared(left, right):
        assert all(isinstance(word, str) for word in left)
        return np.array([[len(set(a) & set(b)) for b in right] for a in left], dtype=float)

    X = {"word": words, "length": np.array([[len(word)] for word in words])}
    model = MKSVC({"word": letters_shared, "length": RBF()}).fit(X, y)
    assert model.score(X, y) == 1.0
    scores = cross_val_score(model, Views(X), y, cv=3)
    assert scores.mean() == 1.0
    with pytest.raises(ValueError, match="view 'word': RBF"):
        MKSVC(RBF()).fit(X, y)


def test_functions_get_frames():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 6, "n": range(12)})

    def same_colour(left, right):
        return np.equal.outer(left["colour"].to_numpy(), right["colour"].to_numpy()).astype(float)

    y = frame["colour"].to_numpy()
    model = MKSVC([("colour", same_colour), ("n", RBF().on(["n"]))]).fit(frame, y)
    assert model.score(frame, y) == 1.0


# -- scikit-learn ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_searches_and_cross_validation(problem):
    frames, y = problem
    views = Views(frames)
    grid = {"reg": [0.1, 1.0], "kernels__size__gamma": ["scale", 0.1]}
    search = GridSearchCV(MKFDA(dict.fromkeys(frames, RBF())), grid, cv=3).fit(views, y)
    assert search.best_score_ > 0.6
    assert search.predict(frames).shape == (60,)
    assert len(cross_val_predict(MKSVC(RBF()), views, y, cv=3)) == 60
    found = cross_validate(MKFDACV(RBF(), ps=[2], regs=[1.0]), views, y, cv=3, n_jobs=2)
    assert (found["test_score"] > 0.5).all()


def test_a_split_sees_its_own_rows_only(problem):
    frames, y = problem
    train, test = np.arange(40), np.arange(40, 60)
    (score,) = cross_val_score(MKFDA(RBF()), Views(frames), y, cv=[(train, test)])
    by_hand = MKFDA(RBF()).fit(
        {name: frame.iloc[train] for name, frame in frames.items()}, y[train]
    )
    assert score == by_hand.score(
        {name: frame.iloc[test] for name, frame in frames.items()}, y[test]
    )


def test_pipelines_calibration_and_stacking(problem):
    frames, y = problem
    views = Views(frames)
    pipeline = make_pipeline(FunctionTransformer(), MKSVC(RBF()))
    assert cross_val_score(pipeline, views, y, cv=3).mean() > 0.6
    calibrated = CalibratedClassifierCV(MKSVC(RBF()), ensemble=False, cv=3).fit(views, y)
    assert calibrated.predict_proba(views).shape == (60, 3)
    stacked = StackingClassifier([("a", MKFDA(RBF())), ("b", MKSVC(RBF()))], cv=3).fit(views, y)
    assert stacked.score(views, y) > 0.6
    train, test, y_train, y_test = train_test_split(views, y, random_state=0)
    assert MKFDA(RBF()).fit(train, y_train).score(test, y_test) > 0.5


def test_permutation_importance_shuffles_whole_views(problem):
    frames, y = problem
    views = Views(frames)
    model = MKFDA(RBF(), p=1).fit(views[:30], y[:30])
    found = permutation_importance(model, views[30:], y[30:], n_repeats=20, random_state=0)
    assert found.importances_mean.shape == (3,)
    assert found.importances_mean[2] < found.importances_mean[:2].min() - 0.05


def test_bagging_says_why_it_cannot(problem):
    frames, y = problem
    with pytest.raises(TypeError, match="several tables and cannot become one array"):
        BaggingClassifier(MKFDA(RBF()), 2).fit(Views(frames), y)


def test_two_level_columns(problem):
    frames, y = problem
    joined = pd.concat(frames, axis=1)
    model = MKFDA(RBF()).fit(joined, y)
    np.testing.assert_array_equal(model.weights_, MKFDA(RBF()).fit(frames, y).weights_)
    assert cross_val_score(model, joined, y, cv=3).mean() > 0.6


# -- what is refused -----------------------------------------------------------------------------


def test_tables_that_are_no_views(problem):
    frames, y = problem
    with pytest.raises(TypeError, match=r"X is a list of 3 tables: pass views.*as a dict"):
        MKFDA().fit(list(frames.values()), y)
    model = MKFDA(RBF()).fit(frames, y)
    with pytest.raises(ValueError, match="fitted on the views size, shape, noise: pass a dict"):
        model.predict(frames["size"])
    with pytest.raises(ValueError, match="X has no view 'shape'"):
        model.predict({"size": frames["size"], "noise": frames["noise"]})
    with pytest.raises(ValueError, match="fitted on one table; X holds several"):
        MKFDA(RBF()).fit(frames["size"], y).predict(frames)


def test_samples_that_lack_a_view_are_named(problem):
    frames, y = problem
    gaps = {**frames, "size": frames["size"].copy()}
    gaps["size"].loc["s7"] = np.nan
    with pytest.raises(ValueError, match=r"'size' is missing for 1 of 60 samples \('s7'\)"):
        MKFDA(RBF()).fit(gaps, y)
    model = MKFDA(RBF()).fit(frames, y)
    with pytest.raises(ValueError, match=r"'size' is missing for 1 of 60 samples \('s7'\)"):
        model.predict(gaps)


def test_precomputed_kernels_in_a_dict(problem):
    frames, y = problem
    matrices = {name: RBF().fit(frame)(frame) for name, frame in frames.items()}
    model = MKFDA("precomputed").fit(matrices, y)
    assert model.kernel_names_ == list(frames)
    np.testing.assert_allclose(model.weights_, MKFDA(RBF()).fit(frames, y).weights_, rtol=1e-9)
    assert model.predict({name: K[:5] for name, K in matrices.items()}).shape == (5,)


def test_targets_without_labels_are_in_the_order_of_the_view_that_has_all_samples(problem):
    frames, y = problem
    tables = {**frames, "size": frames["size"].iloc[7:]}
    model = MKFDA(RBF(), missing="mean").fit(tables, y)
    labelled = MKFDA(RBF(), missing="mean").fit(tables, pd.Series(y, frames["size"].index))
    np.testing.assert_array_equal(
        model.decision_function(frames), labelled.decision_function(frames)
    )
    predicted = model.predict_proba(tables)
    np.testing.assert_allclose(predicted[7:], model.predict_proba(frames)[7:], rtol=1e-9)


def test_parameters_of_lists_of_kernels_in_a_dict(problem):
    frames, y = problem
    kernels = {"size": [("wide", RBF(0.1)), ("line", Linear())], "shape": RBF(), "noise": None}
    model = MKFDA(kernels)
    assert model.get_params()["kernels__size__wide__gamma"] == 0.1
    changed = MKFDA(kernels).set_params(kernels__size__wide__gamma=2.0).fit(frames, y)
    expected = MKFDA({**kernels, "size": [("wide", RBF(2.0)), ("line", Linear())]}).fit(frames, y)
    assert changed.kernel_names_ == expected.kernel_names_
    np.testing.assert_array_equal(changed.weights_, expected.weights_)
    assert kernels["size"][0][1].gamma == 0.1


def test_a_gate_on_text_names_the_features_it_needs(problem):
    frames, y = problem
    tables = {**frames, "noise": pd.DataFrame({"word": y}, index=frames["noise"].index)}
    with pytest.raises(ValueError, match=r"looks at numbers: view 'noise'.*features=<name"):
        made(LocalizedFDA, features=slice(None)).fit(tables, y)
    # By default it looks at what the kernels make of the words.
    for features in ("size", None):
        model = made(LocalizedFDA, features=features, tol=0.1).fit(tables, y)
        assert model.score(tables, y) > 0.9
