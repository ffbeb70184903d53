"""Probabilities of training samples that were left out, as fits tell them."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import MKFDA, MKFDACV, KernelStack
from manykernels.baselines import KimFDA


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)


@pytest.mark.parametrize("p", [1, np.inf])
def test_they_are_those_of_models_without_the_sample(p):
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


@pytest.mark.parametrize("n_classes", [2, 3])
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


def test_rows_of_weight_zero_have_none_and_a_search_has_those_of_its_choice():
    X, y = table()
    weight = (np.arange(40) > 9).astype(float)
    model = MKFDA(reg=1.0, tol=1e-9).fit(X, y, weight)
    assert model.left_out_log_proba_.shape == (30, 2)
    search = MKFDACV(ps=[2], regs=[1.0], tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(search.left_out_log_proba_, model.left_out_log_proba_, atol=1e-4)


def test_a_method_whose_weights_are_held_has_none():
    assert not hasattr(KimFDA(reg=0.1).fit(*table()), "left_out_log_proba_")
