"""Samples of one group are never divided: labels of noise look learnt only where they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_validate,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import manykernels as mk
from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    MKSVRCV,
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVCCV,
    ConvexLocalizedSVRCV,
    LocalizedFDA,
    LocalizedSVC,
    LocalizedSVCCV,
    LocalizedSVR,
    LocalizedSVRCV,
    MKRidge,
    MKRidgeCV,
    compare,
    report,
    view_importance,
)
from manykernels.baselines import Average, BestKernel, KimFDA
from manykernels.estimators import weights
from manykernels.kernels import RBF, Denoise, Linear
from manykernels.scale import Nystrom
from tests.estimators.registry import made

N_GROUPS, REPEATS = 40, 10
rng = np.random.default_rng(4)
CENTRES = rng.standard_normal((N_GROUPS, 4))
# Ten jittered rows of every group, no two equal, in any order; the labels are those of groups.
GROUPS = rng.permutation(np.repeat(np.arange(N_GROUPS), REPEATS))
X = CENTRES[GROUPS] + 1e-3 * rng.standard_normal((len(GROUPS), 4))
NAMES = np.array([f"patient {group}" for group in GROUPS])
Y = (np.arange(N_GROUPS) % 2)[GROUPS]
THREE = (np.arange(N_GROUPS) % 3)[GROUPS]
VALUES = rng.standard_normal(N_GROUPS)[GROUPS]

KERNEL = RBF(1.0)
TWO = [("narrow", RBF(2.0)), ("wide", RBF(0.5))]
GRID = {"ps": [2], "regs": [1e-3, 1e-1]}
CLASSIFIERS = {
    "discriminant": MKFDA(KERNEL, reg=1e-3),
    "on features": MKFDA(KERNEL, reg=1e-3, approximation=Nystrom(200)),
    "search": MKFDACV(KERNEL, **GRID),
    "closed form": MKFDACV(KERNEL, **GRID, cv="closed-form"),
    "search on features": MKFDACV(KERNEL, **GRID, approximation=Nystrom(200)),
    "machines": MKSVCCV(KERNEL, ps=[2], Cs=[10.0, 1000.0]),
    "regions": ConvexLocalizedFDA(TWO, regions=2, reg=1e-3),
    "search of regions": ConvexLocalizedSVCCV(TWO, regions=[1, 2], ps=[2], Cs=[100.0]),
    "gates": LocalizedSVCCV(TWO, ps=[2], Cs=[100.0]),
}
REGRESSORS = {
    "ridge": MKRidge(KERNEL, reg=1e-2),
    "on features": MKRidge(KERNEL, reg=1e-2, approximation=Nystrom(200)),
    "search": MKRidgeCV(KERNEL, **GRID),
    "closed form": MKRidgeCV(KERNEL, **GRID, cv="closed-form"),
    "machines": MKSVRCV(KERNEL, ps=[2], Cs=[100.0], epsilons=[0.01]),
    "search of regions": ConvexLocalizedSVRCV(
        TWO, regions=[1, 2], ps=[2], Cs=[100.0], epsilons=[0.01]
    ),
    "gates": LocalizedSVRCV(TWO, ps=[2], Cs=[100.0], epsilons=[0.01]),
}


def accuracies(model, y):
    """What a model says of itself, by every attribute."""
    said = {
        name: float(getattr(model, name))
        for name in ("best_score_", "left_out_score_")
        if hasattr(model, name)
    }
    if hasattr(model, "left_out_log_proba_"):
        said["log_proba"] = np.mean(model.classes_[model.left_out_log_proba_.argmax(1)] == y)
    if hasattr(model, "left_out_decisions_"):
        said["decisions"] = np.mean(model.classes_[(model.left_out_decisions_ > 0) * 1] == y)
    if hasattr(model, "left_out_predictions_"):
        said["values"] = 1.0 - np.mean((model.left_out_predictions_ - y) ** 2) / np.var(y)
    assert said
    return np.array(list(said.values()))


def parametrized(models):
    slow = {"gates", "search of regions"}
    marks = {name: [pytest.mark.slow] if name in slow else [] for name in models}
    cases = [pytest.param(model, id=name, marks=marks[name]) for name, model in models.items()]
    return pytest.mark.parametrize("model", cases)


# -- judges ------------------------------------------------------------------------------------


@parametrized(CLASSIFIERS)
def test_noise_is_not_learnt(model):
    assert accuracies(model.fit(X, Y), Y).min() > 0.97
    grouped = model.fit(X, Y, groups=NAMES)
    assert abs(accuracies(grouped, Y) - 0.5).max() < 0.2
    # As sure of themselves as they should be, and no more.
    confidence = model.predict_proba(CENTRES[:, :] + 1.0).max(axis=1).mean()
    assert confidence < 0.75


@parametrized(REGRESSORS)
def test_noise_of_numbers_is_not_learnt(model):
    assert accuracies(model.fit(X, VALUES), VALUES).min() > 0.9
    assert accuracies(model.fit(X, VALUES, groups=NAMES), VALUES).max() < 0.0


def test_probabilities_of_the_discriminant_rule_rest_on_groups():
    plain, grouped = MKFDA(KERNEL).fit(X, THREE), MKFDA(KERNEL).fit(X, THREE, groups=NAMES)
    assert accuracies(plain, THREE).min() > 0.97
    assert accuracies(grouped, THREE).max() < 0.6
    new = np.random.default_rng(0).standard_normal((50, 4))
    assert plain.predict_proba(new).max(axis=1).mean() > 0.7
    assert grouped.predict_proba(new).max(axis=1).mean() < 0.5


@pytest.mark.slow
def test_gates_are_judged_by_whole_groups():
    """A gate that fits noise is not taken if no new group confirms it."""
    gates = {"features": slice(None), "penalty": 1e-4}
    for kind, y in ((LocalizedSVC, Y), (LocalizedSVR, VALUES), (LocalizedFDA, Y)):
        kernels = [("first", Linear().on([0, 1])), ("second", Linear().on([2, 3]))]
        plain = made(kind, kernels, **gates).fit(X, y)
        grouped = made(kind, kernels, **gates).fit(X, y, groups=NAMES)
        assert plain.held_out_losses_.min() < 0.98 * plain.held_out_losses_[0]
        assert grouped.held_out_losses_[0] > plain.held_out_losses_[0]
        assert grouped.n_iter_ <= plain.n_iter_


def test_sharpness_is_judged_by_whole_groups():
    """Regions that tell groups apart pay off for these groups, and not for new ones."""
    kernels = [("a", Linear().on([0, 1])), ("b", Linear().on([2, 3]))]
    options = {"regions": 8, "C": 100.0}
    plain = ConvexLocalizedSVC(kernels, **options).fit(X, Y)
    grouped = ConvexLocalizedSVC(kernels, **options).fit(X, Y, groups=NAMES)
    assert len(plain.weights_) == 8
    assert np.ndim(grouped.weights_) == 1 or len(grouped.weights_) == 1


def test_denoising_is_judged_by_whole_groups():
    denoise = Denoise("cv")
    plain = MKFDA(KERNEL, reg=1e-2, denoise=denoise).fit(X, Y)
    grouped = MKFDA(KERNEL, reg=1e-2, denoise=denoise).fit(X, Y, groups=NAMES)
    assert plain.denoise_.cv_errors_.min() < 0.1
    assert grouped.denoise_.cv_errors_.min() > 0.8


def test_rules_pass_groups_on():
    search = MKFDACV(**GRID)
    assert BestKernel(TWO, estimator=search).fit(X, Y).scores_.min() > 0.97
    assert BestKernel(TWO, estimator=search).fit(X, Y, groups=NAMES).scores_.max() < 0.7
    average = Average(TWO, estimator=search).fit(X, Y, groups=NAMES)
    assert average.estimator_.left_out_score_ < 0.7
    # The formula of KimFDA is for equal rows: it is not told of other groups.
    kim = Average(TWO, estimator=KimFDA(reg=0.1))
    assert_array_equal(
        kim.fit(X, Y, groups=NAMES).predict_proba(CENTRES), kim.fit(X, Y).predict_proba(CENTRES)
    )


def test_importance_compare_and_report_agree():
    """The score of a fit is that of its report, and of importance, and compare finds the same."""
    views = {"first": X[:, :2], "second": X[:, 2:]}
    model = MKFDA(KERNEL, reg=1e-3)
    for groups, learnt in ((None, True), (NAMES, False)):
        fitted = model.fit(views, Y, groups=groups)
        score = accuracies(fitted, Y)[-1]
        assert score > 0.97 if learnt else abs(score - 0.5) < 0.2
        importance = view_importance(model, views, Y, groups=groups, n_resamples=2)
        assert importance.score == pytest.approx(score, abs=1e-12)
        page = report(fitted, views, Y, groups=groups, importance=True).data
        assert page["judged"]["scores"][0]["value"] == pytest.approx(score, abs=1e-12)
        assert page["importance"]["score"] == pytest.approx(score, abs=1e-12)
        # The groups of the fit are known.
        again = report(fitted, views, Y, importance=False).data
        assert again["judged"] == page["judged"]
        compared = compare([model, MKFDACV(KERNEL, **GRID)], views, Y, groups=groups, cv=5)
        means = compared.means()
        assert np.all(means > 0.97) if learnt else np.all(np.abs(means - 0.5) < 0.2)
    kept = "400 rows of 40 groups were kept together"
    assert kept in page["judged"]["how"]
    assert kept in page["importance"]["method"]
    assert kept in str(compared)


def test_intervals_count_groups():
    model = MKFDA(KERNEL, reg=1e-3).fit(X, Y, groups=NAMES)
    score = report(model, X, Y, importance=False).data["judged"]["scores"][0]
    # Wilson's interval of about 40 / 2 independent samples, not of 400 / 2.
    assert score["high"] - score["low"] > 0.3


def test_a_search_and_its_report_agree():
    model = MKFDACV(KERNEL, **GRID).fit(X, Y, groups=NAMES)
    judged = report(model, X, Y, groups=NAMES, importance=False).data["judged"]
    assert judged["scores"][0]["value"] == pytest.approx(model.left_out_score_, abs=1e-12)
    assert judged["how"].startswith("400 training samples, held out in 5 folds")


def test_a_report_with_other_groups_than_the_fit_is_refused():
    fitted = MKFDA(KERNEL).fit(X, Y)
    with pytest.raises(ValueError, match="MKFDA was fitted without groups"):
        report(fitted, X, Y, groups=NAMES)
    fitted = MKFDA(KERNEL).fit(X, Y, groups=NAMES)
    with pytest.raises(ValueError, match="MKFDA was fitted with other groups"):
        report(fitted, X, Y, groups=GROUPS // 2)
    # Other labels of the same groups will do.
    assert report(fitted, X, Y, groups=100 - GROUPS, importance=False).data["judged"]
    with pytest.raises(ValueError, match="groups without X"):
        report(fitted, groups=NAMES)


@pytest.mark.parametrize("sample_rows", [4000, 100])
def test_reports_of_features_know_the_groups_of_the_sample(sample_rows, monkeypatch):
    monkeypatch.setattr("manykernels.estimators.feature_data.SAMPLE_ROWS", sample_rows)
    model = MKFDACV(KERNEL, **GRID, approximation=Nystrom(50)).fit(X, Y, groups=NAMES)
    options = {"importance": False, "new": False}
    judged = report(model, X, Y, groups=NAMES, **options).data["judged"]
    n_rows = len(model.left_out_rows_)
    assert f"{n_rows} rows of {n_rows // 10} groups were kept together" in judged["how"]
    if n_rows == len(X):
        assert report(model, X, Y, **options).data["judged"] == judged
        assert judged["scores"][0]["value"] == pytest.approx(model.left_out_score_, abs=1e-12)
    else:
        with pytest.raises(ValueError, match="keeps those of a sample of the rows"):
            report(model, X, Y, **options)
    with pytest.raises(ValueError, match="MKFDACV was fitted with other groups"):
        report(model, X, Y, groups=GROUPS // 2, **options)


def test_new_samples_of_groups():
    model = MKFDA(KERNEL).fit(X[GROUPS < 20], Y[GROUPS < 20], groups=NAMES[GROUPS < 20])
    new = GROUPS >= 20
    alone = report(model, X[new], Y[new]).data["judged"]
    judged = report(model, X[new], Y[new], groups=NAMES[new]).data["judged"]
    assert judged["how"] == "200 new samples of 20 groups"
    first, second = (one["scores"][0] for one in (alone, judged))
    assert first["value"] == second["value"]
    assert second["high"] - second["low"] > 1.5 * (first["high"] - first["low"])


# -- closed form against refits ----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear()], ids=["rbf", "linear"])
def test_groups_left_out_in_closed_form_are_refits(kernel, weighted):
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))[:60]
    table, groups = X[rows] + rng.standard_normal((60, 4)), GROUPS[rows] % 7
    values = np.column_stack([table[:, 0], np.sin(table[:, 1])])
    weights = rng.uniform(0.5, 2.0, 60) if weighted else None
    model = MKRidge(kernel, reg=0.3, normalize=None).fit(table, values, weights, groups)
    for group in np.unique(groups):
        out, rest = groups == group, groups != group
        fit = MKRidge(kernel, reg=0.3, normalize=None)
        fit.fit(table[rest], values[rest], None if weights is None else weights[rest])
        assert_allclose(model.left_out_predictions_[out], fit.predict(table[out]), rtol=1e-7)


def test_folds_left_out_in_closed_form_are_whole_groups():
    model = MKRidgeCV(KERNEL, **GRID, cv="closed-form").fit(X, VALUES, groups=NAMES)
    assert len(model.test_fold_) == len(X)
    assert model.n_splits_ == 1
    # With fewer groups than fifty, every group is a fold: the same as left out alone.
    alone = MKRidge(KERNEL, p=2, reg=model.reg_, tol=1e-10).fit(X, VALUES, groups=NAMES)
    assert_allclose(model.left_out_predictions_, alone.left_out_predictions_, atol=1e-5)


# -- the groups themselves ---------------------------------------------------------------------


def folds_as_groups(model, groups):
    folds = model.test_fold_
    return {frozenset(groups[folds == k].tolist()) for k in range(model.n_splits_)}


@pytest.mark.parametrize("labels", [GROUPS, NAMES, GROUPS.astype(float), NAMES.astype(object)])
def test_permuting_rows_permutes_nothing_else(labels):
    order = np.random.default_rng(0).permutation(len(X))
    one = MKFDACV(TWO, **GRID).fit(X, THREE, groups=labels)
    other = MKFDACV(TWO, **GRID).fit(X[order], THREE[order], groups=labels[order])
    assert folds_as_groups(one, labels) == folds_as_groups(other, labels[order])
    assert_array_equal(one.test_fold_[order], other.test_fold_)
    assert_allclose(one.left_out_log_proba_[order], other.left_out_log_proba_, atol=1e-6)
    assert one.left_out_score_ == pytest.approx(other.left_out_score_, abs=1e-12)


def test_folds_are_even_and_stratified():
    model = MKFDACV(KERNEL, **GRID).fit(X, Y, groups=NAMES)
    sizes = np.zeros((5, 2))
    np.add.at(sizes, (model.test_fold_, Y), 1)
    assert_array_equal(sizes, 40)


def test_fewer_groups_than_folds_are_fewer_folds():
    groups = GROUPS % 3
    model = MKRidgeCV(KERNEL, **GRID, cv=5).fit(X, VALUES, groups=groups)
    assert model.n_splits_ == 3
    assert folds_as_groups(model, groups) == {frozenset([k]) for k in range(3)}


def test_given_groups_come_before_equal_rows():
    """Equal rows of different groups are not kept together, and others of one group are."""
    table = np.repeat(np.random.default_rng(0).standard_normal((30, 2)), 2, axis=0)
    y, copy = np.arange(60) // 2 % 2, np.arange(60) % 2
    assert_array_equal(*MKFDACV(KERNEL, **GRID).fit(table, y).test_fold_.reshape(-1, 2).T)
    groups = np.where(copy == 0, np.arange(60) // 2 % 10, 10 + np.arange(60) // 2 % 9)
    model = MKFDACV(KERNEL, **GRID).fit(table, y, groups=groups)
    for group in range(19):
        assert len(np.unique(model.test_fold_[groups == group])) == 1
    assert np.any(np.diff(model.test_fold_.reshape(-1, 2), axis=1) != 0)
    assert_array_equal(model.groups_, groups)


def test_labels_of_several_kinds():
    mixed = np.where(GROUPS % 2, NAMES.astype(object), GROUPS)
    model = MKFDACV(KERNEL, **GRID).fit(X, Y, groups=mixed)
    assert len(np.unique(model.groups_)) == N_GROUPS
    days = np.datetime64("2020-01-01") + GROUPS
    assert_array_equal(MKFDA(KERNEL).fit(X, Y, groups=days).groups_, GROUPS)
    expected = np.unique(NAMES, return_inverse=True)[1]
    categories = pd.Series(NAMES, dtype="category")
    for labels in (list(NAMES), pl.Series(NAMES), categories, categories.to_frame()):
        assert_array_equal(MKFDA(KERNEL).fit(X, Y, groups=labels).groups_, expected)


def test_series_are_matched_by_label():
    index = [f"row {k}" for k in range(len(X))]
    table, groups = pd.DataFrame(X, index=index), pd.Series(NAMES, index=index)
    expected = MKFDA(KERNEL).fit(X, Y, groups=NAMES)
    moved = groups.sample(frac=1.0, random_state=0)
    with pytest.warns(UserWarning, match="The rows of groups have the labels of X in another ord"):
        model = MKFDA(KERNEL).fit(table, Y, groups=moved)
    assert_array_equal(model.groups_, expected.groups_)
    with pytest.raises(ValueError, match="The labels of groups are not those of X"):
        MKFDA(KERNEL).fit(table, Y, groups=groups[:-1])
    views = {"a": table[[0, 1]], "b": table[[2, 3]].iloc[::-1]}
    y = pd.Series(Y, index=index)
    model = MKFDA(KERNEL).fit(views, y, groups=moved)
    assert_array_equal(model.groups_, expected.groups_)
    with pytest.raises(ValueError, match="so that groups needs labels"):
        MKFDA(KERNEL).fit(views, y, groups=NAMES)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_label_is_named(missing):
    groups = NAMES.astype(object)
    groups[7] = missing
    with pytest.raises(ValueError, match="at row 7: give the row a group"):
        MKRidge(KERNEL).fit(X, VALUES, groups=groups)


def test_rows_of_weight_zero_are_in_no_group():
    weights = np.where(GROUPS < 30, 1.0, 0.0)
    some = GROUPS < 30
    model = MKFDACV(KERNEL, **GRID).fit(X, Y, weights, NAMES)
    same = MKFDACV(KERNEL, **GRID).fit(X[some], Y[some], groups=NAMES[some])
    assert_array_equal(model.groups_, same.groups_)
    assert_array_equal(model.test_fold_, same.test_fold_)
    assert_allclose(model.left_out_log_proba_, same.left_out_log_proba_, atol=1e-8)
    with pytest.raises(ValueError, match="All rows are of one group, 'patient 3'"):
        MKRidge(KERNEL).fit(X, VALUES, np.where(GROUPS == 3, 1.0, 0.0), NAMES)


def test_a_class_in_one_group():
    y = np.where(GROUPS == 5, "rare", "common")
    with pytest.raises(ValueError, match="Class 'rare' has rows of one group only, 'patient 5'"):
        MKFDACV(KERNEL, **GRID).fit(X, y, groups=NAMES)
    y = np.where(GROUPS == 5, "rare", np.where(Y == 1, "a", "b"))
    with pytest.warns(UserWarning, match="Class 'rare' has rows of one group only, 'patient 5'"):
        model = MKFDACV(KERNEL, **GRID).fit(X, y, groups=NAMES)
    assert_array_equal(model.test_fold_[GROUPS == 5], -1)


def test_precomputed_kernels_take_groups():
    union = mk.KernelUnion(TWO).fit(X)
    model = MKFDACV("precomputed", **GRID).fit(union(X), Y, groups=NAMES)
    same = MKFDACV(TWO, **GRID).fit(X, Y, groups=NAMES)
    assert_allclose(model.left_out_log_proba_, same.left_out_log_proba_, atol=1e-10)


def test_groups_of_several_labels():
    labels = np.column_stack([Y, THREE == 1]).astype(int)
    model = MKFDACV(KERNEL, **GRID).fit(X, labels, groups=NAMES)
    for group in np.unique(GROUPS):
        assert len(np.unique(model.test_fold_[group == GROUPS])) == 1
    assert model.best_score_.max() < 0.75
    # A label in one group is named.
    labels[:, 0] = GROUPS == 2
    with pytest.raises(ValueError, match=r"Label 0: Class 1 has rows of one group only"):
        MKFDACV(KERNEL, **GRID).fit(X, labels, groups=NAMES)


def test_columns_on_demand_leave_out_single_rows_only(monkeypatch):
    monkeypatch.setattr(weights, "EXACT_ROWS", 100)
    with pytest.raises(ValueError, match="does not go with groups of more than 100 rows"):
        MKRidge(KERNEL, solver="coordinate").fit(X, VALUES, groups=NAMES)
    model = MKRidge(KERNEL, solver="coordinate").fit(X[:90], VALUES[:90], groups=NAMES[:90])
    same = MKRidge(KERNEL).fit(X[:90], VALUES[:90], groups=NAMES[:90])
    assert_allclose(model.left_out_predictions_, same.left_out_predictions_, atol=1e-3)


def test_verbose_tells_it_once(capsys):
    for model in (
        MKFDA(KERNEL, verbose=True),
        MKFDACV(KERNEL, **GRID, verbose=True),
        MKFDACV(KERNEL, **GRID, approximation=Nystrom(50), verbose=True),
        Average(KERNEL, estimator=MKFDACV(**GRID), verbose=True),
    ):
        model.fit(X, Y, groups=NAMES)
        said = capsys.readouterr().out
        assert said.count("400 rows of 40 groups were kept together\n") == 1
        assert "repeat" not in said
    MKFDA(KERNEL, verbose=True).fit(X, Y, groups=np.arange(len(X)))
    assert "kept together" not in capsys.readouterr().out


# -- splitters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("splitter", [GroupKFold(4), LeaveOneGroupOut()], ids=["folds", "one"])
@pytest.mark.parametrize("approximation", [None, Nystrom(100)], ids=["kernels", "features"])
def test_splitters_are_given_the_groups(splitter, approximation):
    groups = GROUPS % 4
    options = {**GRID, "approximation": approximation}
    model = MKRidgeCV(KERNEL, cv=splitter, **options).fit(X, VALUES, groups=groups)
    splits = list(splitter.split(X, VALUES, groups))
    same = MKRidgeCV(KERNEL, cv=splits, **options).fit(X, VALUES)
    assert model.n_splits_ == 4
    assert_array_equal(model.test_fold_, same.test_fold_)
    assert model.best_score_ == pytest.approx(same.best_score_, abs=1e-12)


@pytest.mark.parametrize("approximation", [None, Nystrom(100)], ids=["kernels", "features"])
def test_splits_that_divide_a_group_are_refused(approximation):
    for cv, name in (
        (KFold(5, shuffle=True, random_state=0), r"cv=KFold\(...\) divides group 'patient"),
        ([(np.arange(200), np.arange(200, 400))], "cv divides group 'patient"),
    ):
        with pytest.raises(ValueError, match=name):
            MKRidgeCV(KERNEL, **GRID, cv=cv, approximation=approximation).fit(
                X, VALUES, groups=NAMES
            )
    with pytest.raises(ValueError, match=r"cv=StratifiedKFold\(...\) divides group"):
        MKSVCCV(KERNEL, cv=StratifiedKFold(3)).fit(X, Y, groups=NAMES)
    with pytest.raises(ValueError, match="divides group"):
        view_importance(MKSVC(TWO), X, Y, groups=NAMES, cv=KFold(3))
    with pytest.raises(ValueError, match="divides group"):
        compare([MKSVC(TWO)], X, Y, groups=NAMES, cv=KFold(3))


def test_splits_that_keep_groups_together_are_taken():
    splits = list(GroupKFold(3).split(X, Y, NAMES))
    model = MKSVCCV(KERNEL, ps=[2], Cs=[1.0], cv=splits).fit(X, Y, groups=NAMES)
    assert model.n_splits_ == 3
    assert compare([MKSVC(TWO)], X, Y, groups=NAMES, cv=splits).means()[0] < 0.7
    found = view_importance(MKSVC(TWO), X, Y, groups=NAMES, cv=GroupKFold(3), n_resamples=0)
    assert found.score < 0.7


# -- scikit-learn ------------------------------------------------------------------------------


def test_groups_are_routed():
    grouped = MKFDACV(KERNEL, **GRID).fit(X, Y, groups=NAMES)
    with config_context(enable_metadata_routing=True):
        model = MKFDACV(KERNEL, **GRID).set_fit_request(groups=True)
        pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
        pipeline.fit(X, Y, groups=NAMES)
        assert pipeline[-1].left_out_score_ < 0.7
        search = GridSearchCV(model, {"one_standard_error": [False, True]}, cv=GroupKFold(3))
        search.fit(X, Y, groups=NAMES)
        assert search.best_score_ < 0.7
        assert search.best_estimator_.left_out_score_ == grouped.left_out_score_
        found = cross_validate(
            model, X, Y, cv=GroupKFold(3), params={"groups": NAMES}, return_estimator=True
        )
        assert all(hasattr(one, "groups_") for one in found["estimator"])
        assert found["test_score"].max() < 0.75


def test_compare_passes_groups_to_whatever_takes_them():
    methods = {
        "search": GridSearchCV(MKSVC(KERNEL), {"C": [1.0, 100.0]}, cv=GroupKFold(2)),
        "plain search": GridSearchCV(MKSVC(KERNEL), {"C": [1.0, 100.0]}, cv=2),
        "pipeline": Pipeline([("scale", StandardScaler()), ("model", MKFDACV(KERNEL, **GRID))]),
        "machine": MKSVC(KERNEL),
    }
    compared = compare(methods, X, Y, groups=NAMES, cv=2, error_score="raise")
    assert compared.means().max() < 0.7
    with config_context(enable_metadata_routing=True):
        asks = MKFDACV(KERNEL, **GRID).set_fit_request(groups=True)
        methods = {"pipeline": Pipeline([("model", asks)]), "machine": MKSVC(KERNEL)}
        assert compare(methods, X, Y, groups=NAMES, cv=2, error_score="raise").means().max() < 0.7


def test_cells_of_other_groups_are_computed_again(tmp_path):
    methods, options = {"one": MKFDACV(KERNEL, **GRID)}, {"cv": 2, "path": tmp_path}
    compare(methods, X, Y, groups=NAMES, **options)
    n_files = len(list(tmp_path.iterdir()))
    compare(methods, X, Y, groups=NAMES, **options)
    assert len(list(tmp_path.iterdir())) == n_files
    compare(methods, X, Y, groups=GROUPS // 2, **options)
    assert len(list(tmp_path.iterdir())) == 2 * n_files
