"""Held-out scores: what a split must not tell about its test part."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from manykernels import MKFDACV
from manykernels.kernels import RBF, KernelUnion
from tests.problems import slow

UNION = KernelUnion([("wide", RBF(gamma=0.1)), ("narrow", RBF(gamma=1.0))])
GRID = {"ps": [1, 2], "regs": [0.1, 1.0]}


def noise(n_classes, n_samples=120):
    y = np.arange(n_samples) * n_classes // n_samples
    return np.random.default_rng(n_classes).standard_normal((n_samples, 4)), y


def splits_by_class(y):
    """Each test part has two thirds of one class, and nothing of the others."""
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        test = members[: 2 * len(members) // 3]
        yield np.setdiff1d(np.arange(len(y)), test), test


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_priors_do_not_tell_the_labels_of_the_test_part(n_classes):
    """A class that is rare in training is frequent in the test part: nothing may profit by it."""
    X, y = noise(n_classes)
    priors = np.full(n_classes, 1.0 / n_classes)
    model = MKFDACV(UNION, cv=list(splits_by_class(y)), priors=priors, **GRID).fit(X, y)
    assert model.best_score_ < 0.6


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
@pytest.mark.parametrize("scoring", ["accuracy", *slow("neg_log_loss")])
def test_priors_equal_to_the_frequencies_are_the_default(n_classes, scoring):
    X, y = noise(n_classes)
    X[:, 0] += y
    priors = np.bincount(y) / len(y)
    cv = KFold(4, shuffle=True, random_state=0)
    scores = [
        MKFDACV(UNION, cv=cv, priors=given, scoring=scoring, **GRID)
        .fit(X, y)
        .cv_results_["mean_test_score"]
        for given in (None, priors)
    ]
    assert_allclose(scores[1], scores[0], rtol=1e-10)
