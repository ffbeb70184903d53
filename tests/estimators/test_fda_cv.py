"""MKFDACV: the choice, its honesty, its cost, several labels, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
)

from manykernels import MKFDA, MKFDACV, Bands, Denoise, KernelStack, rbf_grid
from manykernels.kernels import RBF
from manykernels.solvers.path import walk_grid
from tests.problems import slow

X, Y = load_iris(return_X_y=True)
SMALL = {"ps": [1, 2.0], "regs": [0.1, 1.0, 10.0]}


@pytest.mark.parametrize(
    "cv", [StratifiedKFold(3), *slow(StratifiedKFold(4, shuffle=True, random_state=0))]
)
def test_folds_give_the_scores_of_a_grid_search(cv):
    kernels = [("a", RBF(gamma=0.3)), ("b", RBF(gamma=3.0))]
    # The order of the scores of two classes does not depend on how sure they are.
    options = {"cv": cv, "scoring": "roc_auc"}
    grid = {"p": [1, 2.0], "reg": SMALL["regs"]}
    search = GridSearchCV(MKFDA(kernels, tol=1e-9), grid, **options).fit(X[50:], Y[50:])
    model = MKFDACV(kernels, tol=1e-9, **options, **SMALL).fit(X[50:], Y[50:])
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(
        model.cv_results_["std_test_score"], search.cv_results_["std_test_score"]
    )
    assert model.best_score_ == pytest.approx(search.best_score_, rel=1e-12)
    assert model.n_splits_ == cv.get_n_splits()


def test_the_final_model_is_a_fit_with_the_choice():
    model = MKFDACV(**SMALL).fit(X, Y)
    plain = MKFDA(p=model.p_, reg=model.reg_, tol=model.tol).fit(X, Y)
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert model.certificate_.converged


def test_every_point_is_certified_and_the_curve_has_the_shape_of_the_grid():
    model = MKFDACV().fit(X, Y)
    results = model.cv_results_
    assert model.validation_curve().shape == (4, 8)
    assert len(results["params"]) == 32
    assert results["rel_gap"].max() <= 1e-5
    assert results["n_inner_solves"].sum() <= 5 * 32 * 3
    assert results["rank_test_score"].min() == 1
    best = results["params"][int(np.argmax(results["mean_test_score"]))]
    assert model.best_score_ == results["mean_test_score"].max()
    assert set(best) == {"p", "reg"}


def test_equal_scores_go_to_the_smallest_log_loss():
    separated = np.concatenate([X[Y == 0], X[Y == 1]])
    labels = np.repeat([0, 1], 50)
    grid = {"ps": [2.0, 1.0], "regs": [1e3, 0.1, 1e-3]}
    model = MKFDACV(**grid).fit(separated, labels)
    assert model.validation_curve().min() == 1.0
    by_loss = MKFDACV(**grid, scoring="neg_log_loss").fit(separated, labels)
    assert (model.p_, model.reg_) == (by_loss.p_, by_loss.reg_)


def test_leave_one_out_sees_what_training_does_not():
    """Narrow kernels fit any training labels; left-out samples are not deceived."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((120, 3))
    labels = (Z[:, 0] > 0).astype(int)
    kernels = [("good", RBF(gamma=0.2)), ("narrow", RBF(gamma=300.0))]
    model = MKFDACV(kernels, ps=[1, np.inf], regs=[1e-3, 1.0, 30.0]).fit(Z, labels)
    fresh = rng.standard_normal((2000, 3))
    accuracy = model.score(fresh, fresh[:, 0] > 0)
    assert abs(accuracy - model.best_score_) < 0.06


@pytest.mark.parametrize(
    "scoring", ["accuracy", *slow("neg_log_loss", "roc_auc_ovr", "neg_brier_score")]
)
def test_any_scorer_judges(scoring):
    model = MKFDACV(scoring=scoring, **SMALL).fit(X, Y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_callable_scorer_and_average_precision():
    def shares(estimator, X, y):
        return np.mean(estimator.predict(X) == y)

    usual = MKFDACV(**SMALL).fit(X, Y)
    assert MKFDACV(scoring=shares, **SMALL).fit(X, Y).best_score_ == usual.best_score_
    binary = MKFDACV(scoring="average_precision", **SMALL).fit(X[50:], Y[50:])
    assert 0.9 < binary.best_score_ <= 1.0


def test_validation_set():
    train, held = np.arange(0, 150, 2), np.arange(1, 150, 2)
    names = np.array(["a", "b", "c"])[Y]
    model = MKFDACV(cv=(X[held], names[held]), **SMALL).fit(X[train], names[train])
    for params, score in zip(
        model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True
    ):
        plain = MKFDA(tol=1e-5, **params).fit(X[train], names[train])
        assert plain.score(X[held], names[held]) == score
    split = PredefinedSplit(np.where(np.arange(150) % 2, 0, -1))
    kernels = [("a", RBF(gamma=0.3))]
    one = MKFDACV(kernels, cv=split, **SMALL).fit(X, Y)
    other = MKFDACV(kernels, cv=(X[held], Y[held]), **SMALL).fit(X[train], Y[train])
    np.testing.assert_array_equal(one.validation_curve(), other.validation_curve())


@pytest.mark.slow
def test_precomputed_frames_weights_and_nested_cross_validation():
    stack = rbf_grid([0.1, 1.0]).fit(X)(X)
    assert cross_val_score(MKFDACV("precomputed", **SMALL), stack, Y, cv=3).min() > 0.9
    frame = pd.DataFrame(X, columns=list("abcd"))
    framed = MKFDACV(**SMALL).fit(frame, Y)
    assert framed.p_ == MKFDACV(**SMALL).fit(X, Y).p_
    weight = np.ones(150)
    weight[:20] = 0
    weighted = MKFDACV(cv=3, **SMALL).fit(X, Y, sample_weight=weight)
    assert np.isfinite(weighted.best_score_)
    assert clone(weighted).get_params()["cv"] == 3


def test_jobs_change_nothing():
    one = MKFDACV(cv=3, **SMALL).fit(X, Y)
    two = MKFDACV(cv=3, n_jobs=2, **SMALL).fit(X, Y)
    np.testing.assert_allclose(one.validation_curve(), two.validation_curve())


def test_kernels_are_computed_once():
    calls = []

    def counted(A, B):
        calls.append(A.shape)
        return A @ B.T

    MKFDACV([("k", counted)], cv=4, **SMALL).fit(X, Y)
    assert len(calls) <= 2


def test_verbose_prints_the_grid(capsys):
    MKFDACV(ps=[1, 1.125], regs=[0.1, 1.0], verbose=True).fit(X, Y)
    printed = capsys.readouterr().out
    assert printed.count("relative gap") >= 4
    assert "p 1.125  reg 0.1" in printed


@pytest.mark.slow
@pytest.mark.parametrize("cv", [None, 3, "closed-form"])
@pytest.mark.parametrize("denoise", [Denoise(0.9), Denoise("cv"), Bands(2)], ids=repr)
def test_kernels_are_cut_within_every_fold(denoise, cv):
    kernels = [("a", RBF(gamma=0.3)), ("b", RBF(gamma=3.0))]
    model = MKFDACV(kernels, denoise=denoise, cv=cv, tol=1e-9, **SMALL).fit(X, Y)
    assert len(model.weights_) == len(model.kernel_names_)
    assert model.score(X, Y) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("denoise", [Denoise(0.9), Bands(2)], ids=repr)
def test_axes_are_those_of_the_fold(denoise):
    """The order of the scores of two classes is that of the regression, whatever the rule."""
    kernels = [("a", RBF(gamma=0.3)), ("b", RBF(gamma=3.0))]
    options = {"cv": StratifiedKFold(3), "scoring": "roc_auc"}
    model = MKFDACV(kernels, denoise=denoise, tol=1e-9, **options, **SMALL).fit(X[50:], Y[50:])
    plain = MKFDA(kernels, denoise=denoise, tol=1e-9)
    search = GridSearchCV(plain, {"p": [1, 2.0], "reg": SMALL["regs"]}, **options)
    search.fit(X[50:], Y[50:])
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


# -- several labels --------------------------------------------------------------------------


def test_several_labels_on_a_stack_and_with_a_validation_set():
    Z, labels = make_multilabel_classification(120, 8, n_classes=3, random_state=0)
    union = rbf_grid([0.1, 1.0]).fit(Z[:80])
    train, held = union(Z[:80]), union(Z[80:], Z[:80])
    model = MKFDACV("precomputed", cv=(held, labels[80:]), **SMALL).fit(train, labels[:80])
    assert model.best_score_.shape == (3,)
    assert model.predict(held).shape == (40, 3)
    with pytest.raises(ValueError, match=r"labels of the validation set have shape \(40, 3\)"):
        model.fit(train, labels[:80, 0])
    again = model.set_params(cv=None).fit(train, labels[:80, 0])
    assert np.ndim(again.p_) == 0
    assert again.predict(held).shape == (40,)


# -- splits -----------------------------------------------------------------------------------

KERNELS = [("a", RBF(gamma=0.3)), ("b", RBF(gamma=3.0))]


def as_masks(splits):
    return [tuple(np.isin(np.arange(150), part) for part in split) for split in splits]


def as_negative(splits):
    return [tuple(np.asarray(part) - 150 for part in split) for split in splits]


@pytest.mark.parametrize("written", [as_masks, *slow(as_negative, list, tuple)])
def test_splits_are_read_as_indexing_reads_them(written):
    splits = list(StratifiedKFold(3).split(X, Y))
    usual = MKFDACV(KERNELS, cv=splits, **SMALL).fit(X, Y)
    other = MKFDACV(KERNELS, cv=written(splits), **SMALL).fit(X, Y)
    np.testing.assert_array_equal(other.validation_curve(), usual.validation_curve())


def test_rows_that_are_repeated_count_as_often():
    """As a resample with replacement does."""
    train, test = next(iter(StratifiedKFold(3).split(X, Y)))
    repeated = [(train, np.concatenate([test, test[:20], test[:20]]))]
    model = MKFDACV(KERNELS, cv=repeated, **SMALL).fit(X, Y)
    search = GridSearchCV(MKFDA(KERNELS), {"p": [2.0], "reg": [1.0]}, cv=repeated).fit(X, Y)
    at = model.cv_results_["params"].index({"p": 2.0, "reg": 1.0})
    assert model.cv_results_["mean_test_score"][at] == search.best_score_
    twice = [(np.concatenate([train, train[::3]]), test)]
    weight = 1.0 + np.isin(np.arange(150), train[::3])
    bootstrap = MKFDACV(KERNELS, cv=twice, **SMALL).fit(X, Y)
    weighted = MKFDACV(KERNELS, cv=[(train, test)], **SMALL).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(
        bootstrap.validation_curve(), weighted.validation_curve(), atol=0.03
    )


@pytest.mark.parametrize("rows", [[0, 150], [0, -151], [0.5, 1.5], np.ones(149, bool), [[0, 1]]])
def test_rows_that_do_not_exist_are_named(rows):
    with pytest.raises(ValueError, match=r"Split 0 .*150 rows"):
        MKFDACV(KERNELS, cv=[(np.arange(150), rows)], **SMALL).fit(X, Y)


def test_a_class_of_one_sample_is_learnt_and_never_judged():
    labels = Y.copy()
    labels[0] = 7
    with pytest.warns(UserWarning, match="Class 7 has a single sample.* no fold tests it"):
        model = MKFDACV(KERNELS, **SMALL).fit(X, labels)
    assert model.n_splits_ == 5
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert model.best_score_ > 0.9


def test_default_folds_of_sorted_rows_are_shuffled():
    """Five folds of rows that are sorted by class each have a part of every class."""
    order = np.argsort(Y, kind="stable")
    model = MKFDACV(KERNELS, **SMALL).fit(X[order], Y[order])
    for split in range(5):
        test = model.test_fold_ == split
        assert test.sum() == 30
        np.testing.assert_allclose(np.bincount(Y[order][test]), np.bincount(Y) / 5, atol=1)
        assert len(np.unique(np.diff(np.flatnonzero(test)))) > 3


# -- points that cannot be solved --------------------------------------------------------------


def indefinite_stack():
    """A kernel whose negative eigenvalues are too large for a small λ."""
    K = RBF(gamma=0.3).fit(X)(X)
    v = np.where(np.arange(150) % 2, 1.0, -1.0) / np.sqrt(150)
    return KernelStack.from_arrays([K - 0.05 * np.outer(v, v)], psd="ignore")


@pytest.mark.parametrize("cv", [None, *slow("closed-form")])
def test_one_point_that_cannot_be_factorised_does_not_end_the_search(cv):
    model = MKFDACV("precomputed", ps=[1, 2], regs=[1e-3, 10.0], normalize=None, cv=cv)
    with pytest.warns(ConvergenceWarning, match=r"2 of 4 points .* could not be solved") as caught:
        model.fit(indefinite_stack(), Y)
    assert sum("could not be solved" in str(one.message) for one in caught) == 1
    assert model.reg_ == 10.0
    results = model.cv_results_
    np.testing.assert_array_equal(np.isnan(results["mean_test_score"]), [True, False] * 2)
    np.testing.assert_array_equal(np.isinf(results["rel_gap"]), [True, False] * 2)
    assert results["rank_test_score"].max() == 3


def test_no_point_at_all():
    model = MKFDACV("precomputed", ps=[2], regs=[1e-3], normalize=None)
    with pytest.raises(ValueError, match=r"No point of the grid could be solved.*Raise reg"):
        model.fit(indefinite_stack(), Y)


def test_points_short_of_their_gap_are_counted_in_one_warning(monkeypatch):
    def impatient(*args, **options):
        return walk_grid(*args, **{**options, "max_iter": 0, "tol": 1e-13})

    monkeypatch.setattr("manykernels.estimators.search.walk_grid", impatient)
    model = MKFDACV(KERNELS, ps=[1.0, 2.0], regs=[0.1, 1.0], tol=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"of 4 points .* did not reach") as caught:
        model.fit(X, Y)
    assert len(caught) == 1


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ps": [0.5, 1]}, "ps must be a non-empty list of numbers, each at least 1"),
        ({"ps": []}, "ps must be a non-empty list"),
        ({"ps": [1, 1]}, "ps has equal values"),
        ({"regs": [0.0]}, "regs must be a non-empty list of numbers, each positive"),
        ({"regs": [np.inf]}, "regs must be finite"),
        ({"regs": [[1.0]]}, "regs must be a non-empty list"),
        ({"cv": KFold(3)}, r"Split 0 leaves no training samples of \[0\]"),
        ({"cv": [(np.arange(150), [])]}, "Split 0 has no test samples"),
        ({"cv": (X[:3], ["a", "b", "c"])}, r"classes that training has not: \['a', 'b', 'c'\]"),
        ({"cv": (X[:3], [0, 1])}, "3 rows and 2 labels"),
        pytest.param({"scoring": "nonsense"}, "scoring", marks=pytest.mark.slow),
        pytest.param({"cv": 1}, "cv|n_splits", marks=pytest.mark.slow),
        pytest.param(
            {"cv": (X,)},
            r"cv is a tuple of 1: a validation set is a pair \(X_val, y_val\)",
            marks=pytest.mark.slow,
        ),
        pytest.param({"cv": "all"}, "cv", marks=pytest.mark.slow),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        MKFDACV(**{**SMALL, **options}).fit(X, Y)


def test_scores_that_are_not_numbers():
    def nowhere(estimator, X, y):
        return np.nan

    with pytest.raises(ValueError, match="gave nan at every point of the grid"):
        MKFDACV(scoring=nowhere, **SMALL).fit(X, Y)
    calls = []

    def sometimes(estimator, X, y):
        calls.append(0)
        return np.nan if len(calls) == 1 else np.mean(estimator.predict(X) == y)

    with pytest.warns(UndefinedMetricWarning, match="gave nan at 1 of 6 points"):
        model = MKFDACV(scoring=sometimes, **SMALL).fit(X, Y)
    assert np.isfinite(model.best_score_)
    assert model.cv_results_["rank_test_score"].max() == 6
