"""Sample weights: which are refused, by row and value, and which cannot be counted."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import AdaBoostClassifier

from manykernels import MKSVC
from manykernels.kernels import Linear
from tests.estimators.few_samples import N_ROWS, in_form
from tests.estimators.registry import (
    COMPARED,
    ONE_OF_EACH,
    Noted,
    changed,
    every_classifier,
    every_estimator,
    refused,
    those,
)
from tests.problems import slow

M = 40
rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(M, 3)), rng.normal(size=(10, 3))
Y = (X[:, 0] + 0.3 * rng.normal(size=M) > 0).astype(int)
TARGETS = {"values": X[:, 0] + 0.1 * rng.normal(size=M), "none": None}
KERNELS = [("line", Linear()), ("wide", Noted(0.5))]


def weights(row, value, others=1.0):
    return changed(np.full(M, others), row, value)


def fit(entry, sample_weight, rows=slice(None)):
    y = entry.targets(TARGETS.get(entry.target, Y))
    y = None if y is None else y[rows]
    return entry.make(KERNELS).fit(X[rows], y, sample_weight=sample_weight)


# -- weights that are none -------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("form", ["table", "matrix", "stack"])
@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.ones(N_ROWS - 1), r"sample_weight\.shape == \(11,\), expected \(12,\)"),
        (np.ones((N_ROWS, 2)), "Sample weights must be 1D"),
        (changed(np.ones(N_ROWS), 3, -1.0), "Negative values in data passed to `sample_weight`"),
        (np.zeros(N_ROWS), "Sample weights must contain at least one non-zero number"),
        (np.full(N_ROWS, np.nan), "Input sample_weight contains NaN"),
        (np.full(N_ROWS, np.inf), "Input sample_weight contains infinity"),
        (
            np.ma.masked_array(np.ones(N_ROWS), np.arange(N_ROWS) == 3),
            "sample_weight has a masked entry at 3",
        ),
    ],
)
def test_weights_that_are_none(entry, form, sample_weight, message):
    with refused(message):
        in_form(entry, form, sample_weight=sample_weight)


@every_classifier
@pytest.mark.parametrize("form", ["table", "matrix", "stack"])
def test_weights_that_leave_one_class(entry, form):
    with refused(r"at least 2 classes, got 1 class: \[1\]"):
        in_form(entry, form, sample_weight=np.arange(N_ROWS) % 2)


@those(lambda entry: entry.discriminant, ONE_OF_EACH)
@pytest.mark.parametrize("form", ["table", "matrix", "stack"])
def test_weights_that_leave_one_sample_of_each_class(entry, form):
    with refused("2 samples of 2 classes"):
        in_form(entry, form, sample_weight=np.r_[1.0, 1.0, np.zeros(N_ROWS - 2)])


# -- small and large ones --------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("tiny", [1e-200, *slow(5e-324, 1e-17)])
def test_a_negligible_weight_counts_as_zero(entry, tiny):
    model, expected = (fit(entry, weights(7, value)) for value in (tiny, 0.0))
    assert_array_equal(entry.scores(model, NEW), entry.scores(expected, NEW))


@every_estimator
@pytest.mark.parametrize(
    ("small", "n_kept"), [(1e-10, M), pytest.param(1e-17, M - 1, marks=pytest.mark.slow)]
)
def test_small_weights_are_not_dropped(entry, small, n_kept):
    """Weights of 1/m, of boosting, and one that is far below, but above rounding."""
    COMPARED.clear()
    fit(entry, weights(7, small) / M)
    assert {n_rows for _, n_rows, _ in COMPARED} == {n_kept}


@every_estimator
@pytest.mark.parametrize("value", [1e-200, 1e-13, 1e13, 1e30, 1e300])
def test_weights_all_too_small_or_large(entry, value):
    shown = re.escape(f"{value:g}")
    message = (
        rf"sample_weight is {shown} at row 0, the median .* between 1e-12 and 1e\+12, "
        ".*Divide them by their mean"
    )
    with refused(message):
        fit(entry, np.full(M, value))


@every_estimator
@pytest.mark.parametrize("value", [1e30, 1e300])
def test_a_weight_beside_which_the_others_are_lost(entry, value):
    limit = r"1e\+06" if entry.centres else r"1e\+12"
    shown = re.escape(f"{value:g}")
    message = rf"sample_weight is {shown} at row 7, more than {limit} times the median .*, 0\.5:"
    with refused(message):
        fit(entry, weights(7, value, others=0.5))


@those(lambda entry: entry.has_p, ONE_OF_EACH)
def test_a_million_can_be_counted(entry):
    """Rounding depends on the order of rows: what it changes stays small."""
    w = weights(7, 1e6)
    order = np.random.default_rng(1).permutation(M)
    expected = entry.scores(fit(entry, w), NEW)
    shuffled = entry.scores(fit(entry, w[order], order), NEW)
    assert_allclose(shuffled, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


def test_boosting_may_let_weights_vanish():
    boosted = AdaBoostClassifier(MKSVC(KERNELS, C=10.0), n_estimators=5, random_state=0)
    assert boosted.fit(X, Y).score(X, Y) > 0.8
