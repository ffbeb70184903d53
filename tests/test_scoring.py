"""Scores of known predictions, also where a test part lacks a class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, get_scorer, log_loss, make_scorer

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVCCV,
    ConvexLocalizedSVCCV,
    LocalizedSVCCV,
    Nystrom,
    compare,
)
from manykernels.kernels import RBF
from manykernels.utils.folds import KnownProbabilities, score_table
from tests.problems import slow

CLASSES = {
    "two": [0, 1],
    "two others": [1, 2],
    "two texts": ["a", "b"],
    "three": [0, 1, 2],
    "three texts": ["a", "b", "c"],
}


def problem(classes):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, len(classes)))
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return np.array(classes), logs, np.array(classes)[np.arange(12) % len(classes)]


def scored(scorer, classes, logs, truth, counts=None):
    answers = [(KnownProbabilities(classes, logs), truth, counts)]
    return score_table(np.array([True]), 1, lambda at: answers, scorer)[0, 0]


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("gone", [0, -1])
@pytest.mark.parametrize("name", ["neg_log_loss", "neg_brier_score", "accuracy"])
def test_a_mean_over_samples_is_that_of_the_samples_there_are(classes, gone, name):
    """As if those of the class that lacks were there and did not count."""
    classes, logs, truth = problem(classes)
    kept = truth != classes[gone]
    expected = scored(get_scorer(name), classes, logs, truth, kept.astype(float))
    found = scored(get_scorer(name), classes, logs[kept], truth[kept])
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("classes", ["three", "three texts"])
@pytest.mark.parametrize("name", ["top_k_accuracy", "d2_log_loss_score", "d2_brier_score"])
def test_other_scores_of_three_classes(classes, name):
    classes, logs, truth = problem(CLASSES[classes])
    kept = truth != classes[1]
    expected = scored(get_scorer(name), classes, logs, truth, kept.astype(float))
    found = scored(get_scorer(name), classes, logs[kept], truth[kept])
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore:Only one class is present")
@pytest.mark.parametrize(
    ("classes", "name"),
    [
        ("two", "roc_auc"),
        ("two texts", "roc_auc"),
        ("three", "roc_auc_ovr"),
        ("three texts", "roc_auc_ovr"),
        ("three", "average_precision"),
    ],
)
def test_a_score_that_needs_the_class_names_it(classes, name):
    gone = CLASSES[classes][0]
    classes, logs, truth = problem(CLASSES[classes])
    kept = truth != gone
    message = f"not defined for the test part of split 0 .* no sample of class {gone!r}"
    with pytest.raises(ValueError, match=message):
        scored(get_scorer(name), classes, logs[kept], truth[kept])


def test_labels_that_a_scorer_has_stay():
    classes, logs, truth = problem(CLASSES["three"])
    loss = make_scorer(log_loss, response_method="predict_proba", labels=[0, 1, 2])
    found = scored(loss, classes, logs[truth > 0], truth[truth > 0])
    assert found == pytest.approx(-np.mean(logs[np.arange(12), truth][truth > 0]))


# -- estimators ------------------------------------------------------------------------------


def rare():
    """Three classes of which the third is in one of three test parts only."""
    rng = np.random.default_rng(1)
    y = np.array(["a", "b"] * 15 + ["c"] * 4)
    X = rng.normal(size=(34, 3)) + np.array([np.searchsorted(["a", "b", "c"], y)]).T
    test_parts = [np.arange(0, 10), np.arange(10, 20), np.array([*range(20, 28), 30, 31])]
    return X, y, [(np.setdiff1d(np.arange(34), test), test) for test in test_parts]


ESTIMATORS = [
    MKFDACV(RBF(), ps=[2], regs=[0.1, 1.0]),
    MKFDACV(RBF(), ps=[2], regs=[0.1, 1.0], approximation=Nystrom(20)),
    MKSVCCV(RBF(), ps=[2], Cs=[1.0, 10.0]),
    LocalizedSVCCV(RBF(), Cs=[1.0]),
    ConvexLocalizedSVCCV(RBF(), Cs=[1.0]),
]


@pytest.mark.filterwarnings("ignore:Only one class is present")
@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS[:3], *slow(*ESTIMATORS[3:])], ids=lambda one: type(one).__name__
)
def test_searches_by_log_loss(estimator):
    X, y, cv = rare()
    model = clone(estimator).set_params(cv=cv, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert -1.1 < model.best_score_ < 0
    ranked = clone(estimator).set_params(cv=cv, scoring="roc_auc_ovr")
    with pytest.raises(ValueError, match=r"split 0 .* no sample of class 'c'\. Pass a cv"):
        ranked.fit(X, y)


def test_comparisons_by_log_loss():
    X, y, cv = rare()
    methods = {"ours": MKFDA(RBF()), "other": LogisticRegression()}
    result = compare(methods, X, y, cv=cv, scoring=["neg_log_loss", "accuracy"])
    train, test = cv[0]
    model = LogisticRegression().fit(X[train], y[train])
    expected = -log_loss(y[test], model.predict_proba(X[test]), labels=["a", "b", "c"])
    assert result.scores("neg_log_loss")[1, 0] == pytest.approx(expected)
    assert np.isfinite(result.scores("neg_log_loss")).all()


@pytest.mark.parametrize("counts", [None, np.array([1.0, 3.0, 0.5, 2.0])])
def test_accuracy_is_that_of_scikit_learn(counts):
    classes = np.array(["a", "b", "c"])
    logs = np.log([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    truth = np.array(["a", "c", "c", "b"])
    known = KnownProbabilities(classes, logs)
    expected = accuracy_score(truth, known.predict(None), sample_weight=counts)
    assert known.score(None, truth, sample_weight=counts) == expected
