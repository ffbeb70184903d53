"""What view_importance refuses, in sentences that say why."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit
from sklearn.svm import SVC

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    LocalizedSVC,
    MKOneClassSVM,
    MKRidgeCV,
    view_importance,
)
from manykernels.kernels import RBF
from tests.inspection.problems import KERNEL, views_and_classes

VIEWS, Y = views_and_classes(30)
FDA = MKFDA(KERNEL, reg=1.0)


def refused(message, estimator=FDA, X=VIEWS, y=Y, **options):
    with pytest.raises(ValueError, match=message):
        view_importance(estimator, X, y, **{"n_resamples": 0, **options})


@pytest.mark.parametrize("model", [SVC(), MKOneClassSVM(), LocalizedSVC(), MKFDA, "fda"])
def test_other_estimators(model):
    refused("learn one weight per kernel at a norm p", model)


@pytest.mark.parametrize("number", [-1, 2.5, True, "many"])
def test_numbers_of_resamples(number):
    refused("n_resamples must be an integer, 0 or more", n_resamples=number)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, "high"])
def test_confidences(confidence):
    refused("confidence must be between 0 and 1", confidence=confidence)


def test_scores():
    refused("intervals need a loss of every single sample", scoring="roc_auc")
    refused("needs probabilities, which MKSVC does not have", MKSVC(), scoring="neg_log_loss")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "a dict from names of views"),
        (["strong"], "a dict from names of views"),
        ({"a": []}, "Group 'a' has no kernels"),
        ({"a": ["loud"]}, "a kernel 'loud' that there is none of; the kernels are 'strong'"),
        ({"a": ["strong", "weak", "noise"]}, "View 'a' cannot be left out: it is the only one"),
        (
            {"a": ["strong", "weak", "noise"], "b": ["weak"]},
            "View 'a' cannot be left out: all kernels belong to it",
        ),
    ],
)
def test_groups(groups, message):
    refused(message, groups=groups)


def test_single_views():
    refused("View 'strong' cannot be left out: it is the only one", X={"strong": VIEWS["strong"]})
    refused("View 'noise' has no kernel", MKFDA([RBF().of("strong"), RBF().of("weak")]))


def test_targets():
    refused("requires y", y=None)
    refused("inconsistent numbers of samples", y=Y[:-1])
    refused("one label at a time", MKFDACV(KERNEL), y=np.column_stack([Y, 1 - Y]))
    refused("at least 2 classes", y=np.zeros(30))
    search = MKRidgeCV(KERNEL, ps=[1, 2], regs=[1.0], multi_target="separate")
    refused("one target at a time", search, y=np.column_stack([Y, Y[::-1]]) + 0.5)
    refused("y is None at row 0", y=[None, *Y[1:]])


def test_sample_weights():
    refused("Divide the weights by their mean", sample_weight=np.full(30, 1 / 30))
    refused("Negative values", sample_weight=-np.ones(30))
    refused("sample_weight", sample_weight=np.ones(29))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (ShuffleSplit(10, test_size=0.5, random_state=0), "every row may be tested once"),
        ([(np.arange(20), np.arange(15, 30))], "Split 0 tests samples that it learns from"),
        ([(np.arange(20), [])], "Split 0 has no test samples"),
        ([(np.arange(20), [99])], "not made of row numbers or masks of 30 rows"),
        ([(np.flatnonzero(Y), np.flatnonzero(Y == 0))], r"leaves no training samples of \[0\]"),
    ],
)
def test_splits(cv, message):
    refused(message, cv=cv)
