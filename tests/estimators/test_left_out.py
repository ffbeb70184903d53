"""Probabilities of training samples that were left out, as fits tell them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics import r2_score

from manykernels import MKFDA, MKFDACV, MKSVCCV, MKSVRCV, KernelStack, MKRidge, MKRidgeCV
from manykernels.baselines import KimFDA
from manykernels.kernels import RBF
from tests.problems import slow


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)


@pytest.mark.parametrize("p", [1, *slow(np.inf)])
def test_outputs_equal_models_without_the_sample(p):
    """But for the scale of log-odds, which every model has of its own."""
    X, y = table()
    model = MKFDA(p=p, reg=1.0).fit(X, y)
    odds = np.diff(model.left_out_log_proba_, axis=1)[:, 0]
    refitted = [
        MKFDA(model.union_, p=p, reg=1.0)
        .fit(np.delete(X, i, axis=0), np.delete(y, i))
        .decision_function(X[i : i + 1])[0]
        for i in range(len(y))
    ]
    assert np.corrcoef(odds, refitted)[0, 1] > 0.99
    assert np.mean((odds > 0) == (np.array(refitted) > 0)) >= 0.95


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_they_are_probabilities_and_know_no_labels(n_classes):
    """Kernels of noise, of which p = 1 takes those that happen to fit."""
    rng = np.random.default_rng(0)
    columns, y = rng.standard_normal((100, 60)), rng.permutation(np.resize(range(n_classes), 60))
    stack = KernelStack.from_arrays([np.outer(column, column) for column in columns])
    model = MKFDA("precomputed", p=1, reg=0.1).fit(stack, y)
    logs = model.left_out_log_proba_
    assert logs.shape == (60, n_classes)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0)
    assert model.score(stack, y) > 0.9
    assert np.mean(logs.argmax(axis=1) == y) < 1 / n_classes + 0.15


def test_priors_move_them():
    X, y = table()
    even, moved = (MKFDA(reg=1.0, priors=priors).fit(X, y) for priors in (None, [0.01, 0.99]))
    first, second = even.left_out_log_proba_, moved.left_out_log_proba_
    shift = np.diff(second - first, axis=1)
    expected = np.log(0.99 / 0.01) - np.log(y.mean() / (1 - y.mean()))
    np.testing.assert_allclose(shift, expected)


def test_rows_of_weight_zero_have_none():
    X, y = table()
    weight = (np.arange(40) > 9).astype(float)
    model = MKFDA(reg=1.0, tol=1e-9).fit(X, y, weight)
    assert model.left_out_log_proba_.shape == (30, 2)
    search = MKFDACV(ps=[2], regs=[1.0], tol=1e-9).fit(X, y, weight)
    assert search.left_out_log_proba_.shape == (30, 2)


SEARCHES = {
    "MKFDACV": (MKFDACV(ps=[1, 2], regs=[0.1, 1.0]), "left_out_log_proba_"),
    "closed form": (MKFDACV(ps=[1, 2], regs=[1.0], cv="closed-form"), "left_out_log_proba_"),
    "MKSVCCV": (MKSVCCV(ps=[1, 2], Cs=[0.1, 1.0]), "left_out_decisions_"),
    "MKRidgeCV": (MKRidgeCV(ps=[1, 2], regs=[0.1, 1.0]), "left_out_predictions_"),
    "MKSVRCV": (MKSVRCV(ps=[1, 2], Cs=[1.0], epsilons=[0.1]), "left_out_predictions_"),
}


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@pytest.mark.parametrize("name", SEARCHES)
def test_the_score_of_a_search_is_that_of_its_left_out_rows(name, n_classes):
    search, attribute = SEARCHES[name]
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 61)
    X = rng.standard_normal((61, 3)) + y[:, None]
    model = clone(search).fit(X, y)
    answers, fold = getattr(model, attribute), model.test_fold_
    assert np.isfinite(answers).all()
    assert set(fold) == set(range(model.n_splits_))
    if is_classifier(model):
        columns = np.c_[-answers, answers] if answers.ndim == 1 else answers
        score = np.mean(columns.argmax(1) == y)
    else:
        score = r2_score(y, answers)
    assert model.left_out_score_ == pytest.approx(score, abs=1e-12)


def test_every_fold_is_judged_at_the_point_that_is_best_in_the_others():
    X, y = table(60)
    model = MKRidgeCV(ps=[1, np.inf], regs=[0.01, 1.0, 100.0]).fit(X, y)
    table_of_scores = np.array([model.cv_results_[f"split{k}_test_score"] for k in range(5)])
    points = model.cv_results_["params"]
    for k in range(5):
        best = points[np.delete(table_of_scores, k, axis=0).mean(axis=0).argmax()]
        split = [(np.flatnonzero(model.test_fold_ != k), np.flatnonzero(model.test_fold_ == k))]
        alone = MKRidgeCV(ps=[best["p"]], regs=[best["reg"]], cv=split).fit(X, y)
        test = model.test_fold_ == k
        np.testing.assert_allclose(
            model.left_out_predictions_[test], alone.left_out_predictions_[test], atol=1e-3
        )


def test_left_out_rows_of_a_search_are_those_of_refits():
    X, y = table()
    model = MKRidgeCV(ps=[2], regs=[1.0], tol=1e-10, cv=4, kernels=RBF(0.5)).fit(X, y)
    for fold in range(4):
        test = model.test_fold_ == fold
        refit = MKRidge(RBF(0.5), p=2, reg=1.0, tol=1e-10).fit(X[~test], y[~test])
        np.testing.assert_allclose(
            model.left_out_predictions_[test], refit.predict(X[test]), atol=1e-6
        )


def test_rows_that_no_split_tests_are_not_a_number():
    X, y = table()
    split = [(np.arange(20), np.arange(20, 30))]
    model = MKFDACV(ps=[2], regs=[1.0], cv=split).fit(X, y)
    tested = np.isin(np.arange(len(y)), np.arange(20, 30))
    np.testing.assert_array_equal(np.isfinite(model.left_out_log_proba_).all(axis=1), tested)
    np.testing.assert_array_equal(model.test_fold_, np.where(tested, 0, -1))
    validated = MKFDACV(ps=[2], regs=[1.0], cv=(X[20:], y[20:])).fit(X[:20], y[:20])
    alone = MKFDA(p=2, reg=1.0, tol=1e-5).fit(X[:20], y[:20])
    assert not hasattr(validated, "test_fold_")
    np.testing.assert_allclose(validated.left_out_log_proba_, alone.left_out_log_proba_, atol=1e-3)


def test_a_method_whose_weights_are_held_has_none():
    assert not hasattr(KimFDA(reg=0.1).fit(*table()), "left_out_log_proba_")
