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
    LocalizedSVCCV,
    MKOneClassSVM,
    MKRidgeCV,
    view_importance,
)
from manykernels.kernels import RBF
from tests.inspection.problems import KERNEL, views_and_classes

VIEWS, Y = views_and_classes(30)
FDA = MKFDA(KERNEL, reg=1.0)


def importance(estimator=FDA, X=VIEWS, y=Y, **options):
    return view_importance(estimator, X, y, **{"n_resamples": 0, **options})


@pytest.mark.parametrize(
    "model", [SVC(), MKOneClassSVM(), LocalizedSVC(), LocalizedSVCCV(), MKFDA, "fda"]
)
def test_other_estimators(model):
    with pytest.raises(ValueError, match="learn one weight per kernel at a norm p"):
        importance(model)


@pytest.mark.parametrize("number", [-1, 2.5, True, "many"])
def test_numbers_of_resamples(number):
    with pytest.raises(ValueError, match="n_resamples must be an integer, 0 or more"):
        importance(n_resamples=number)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, "high"])
def test_confidences(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        importance(confidence=confidence)


def test_scores():
    with pytest.raises(ValueError, match="intervals need a loss of every single sample"):
        importance(scoring="f1")
    with pytest.raises(ValueError, match="needs probabilities, which MKSVC does not have"):
        importance(MKSVC(), scoring="neg_log_loss")


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({}, "a dict from names of views"),
        (["strong"], "a dict from names of views"),
        ({"a": []}, "View 'a' has no kernels"),
        ({"a": ["loud"]}, "a kernel 'loud' that does not exist; the kernels are 'strong'"),
        ({"a": ["strong", "weak", "noise"]}, "View 'a' cannot be left out: it is the only one"),
        (
            {"a": ["strong", "weak", "noise"], "b": ["weak"]},
            "View 'a' cannot be left out: all kernels belong to it",
        ),
    ],
)
def test_named_views(views, message):
    with pytest.raises(ValueError, match=message):
        importance(views=views)


def test_groups():
    with pytest.raises(TypeError, match="pass the kernels of views as views="):
        importance(groups={"a": ["strong"]})
    with pytest.raises(ValueError, match="groups has 3 labels"):
        importance(groups=[0, 1, 2])


def test_single_views():
    with pytest.raises(ValueError, match="View 'strong' cannot be left out: it is the only one"):
        importance(X={"strong": VIEWS["strong"]})
    with pytest.raises(ValueError, match="View 'noise' has no kernel"):
        importance(MKFDA([RBF().of("strong"), RBF().of("weak")]))


def test_targets():
    with pytest.raises(ValueError, match="requires y"):
        importance(y=None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        importance(y=Y[:-1])
    with pytest.raises(ValueError, match="one label at a time"):
        importance(MKFDACV(KERNEL), y=np.column_stack([Y, 1 - Y]))
    with pytest.raises(ValueError, match="at least 2 classes"):
        importance(y=np.zeros(30))
    search = MKRidgeCV(KERNEL, ps=[1, 2], regs=[1.0], multi_target="separate")
    with pytest.raises(ValueError, match="one target at a time"):
        importance(search, y=np.column_stack([Y, Y[::-1]]) + 0.5)
    with pytest.raises(ValueError, match="y is None at row 0"):
        importance(y=[None, *Y[1:]])


def test_sample_weights():
    with pytest.raises(ValueError, match="Negative values"):
        importance(sample_weight=-np.ones(30))
    with pytest.raises(ValueError, match="sample_weight"):
        importance(sample_weight=np.ones(29))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (ShuffleSplit(10, test_size=0.5, random_state=0), "every row may be tested only once"),
        (
            [(np.arange(20), np.arange(15, 30))],
            "Split 0 has samples in both its training and its test part",
        ),
        ([(np.arange(20), [])], "Split 0 has no test samples"),
        ([(np.arange(20), [99])], "not made of row numbers or masks of 30 rows"),
        ([(np.flatnonzero(Y), np.flatnonzero(Y == 0))], r"leaves no training samples of \[0\]"),
    ],
)
def test_splits(cv, message):
    with pytest.raises(ValueError, match=message):
        importance(cv=cv)
