"""Targets that are none are refused, and named by their row."""

import numpy as np
import pandas as pd
import pytest

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    MKLogistic,
    MKLogisticCV,
    MKRidge,
    MKRidgeCV,
)
from manykernels.baselines import Average, KimFDA, PolynomialCombination, Product
from tests.estimators.few_samples import N_ROWS, X, Y, in_form
from tests.estimators.registry import (
    ONE_OF_EACH,
    every_classifier,
    every_learner_of_targets,
    every_regressor,
    refused,
    those,
)

every_form = pytest.mark.parametrize("form", ["table", "matrix", "stack"])


@every_learner_of_targets
@every_form
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (np.where(Y == 0, 1.0, np.nan), "Input y contains NaN"),
        (np.where(Y == 0, 1.0, np.inf), "Input y contains infinity"),
        (Y[:-1], r"inconsistent numbers of samples: \[12, 11\]"),
    ],
)
def test_invalid_targets(entry, form, target, message):
    with refused(message):
        in_form(entry, form, target)


OF_SEVERAL = (
    *(MKFDA, MKFDACV, MKSVC, MKSVCCV, MKLogistic, MKLogisticCV),
    *(MKRidge, MKRidgeCV, PolynomialCombination, Average, Product),
)


@those(
    lambda entry: entry.target not in ("none", "survival") and entry.kind not in OF_SEVERAL,
    ONE_OF_EACH,
)
@every_form
def test_several_targets(entry, form):
    with refused(r"y should be a 1d array, got an array of shape \(12, 2\)|y has 2 columns, and"):
        in_form(entry, form, np.stack([Y, 1 - Y], axis=1))


@every_classifier
@every_form
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.zeros(N_ROWS), r"at least 2 classes, got 1 class: \[0\.0\]"),
        (["same"] * N_ROWS, r"at least 2 classes, got 1 class: \['same'\]"),
        (X[:, 0], "Unknown label type: continuous"),
        (
            np.array([1, *"ab" * 5, "a"], dtype=object),
            "strings and others, such as 'a' at row 1 and 1 at row 0: make them all strings",
        ),
    ],
)
def test_labels_that_are_no_classes(entry, form, target, message):
    with refused(message):
        in_form(entry, form, target)


@those(lambda entry: entry.discriminant and entry.kind is not KimFDA, ONE_OF_EACH)
@every_form
def test_as_many_classes_as_samples_leave_no_spread(entry, form):
    with refused("more samples than classes: 12 samples of 12 classes"):
        in_form(entry, form, np.arange(N_ROWS))


# -- odd ones --------------------------------------------------------------------------------

WORDS = ["u", "v"] * (N_ROWS // 2)
DAYS = np.datetime64("2020-01-01") + np.arange(N_ROWS)
NUMBERS = X[:, 0] ** 2


def targets_of(entry):
    return NUMBERS if entry.target == "values" else Y


@every_learner_of_targets
@pytest.mark.parametrize("value", [None, np.nan, float("nan"), pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series])
def test_a_target_that_is_missing(entry, value, container):
    y = targets_of(entry).astype(object)
    y[3] = value
    with refused("Input y contains NaN"):
        in_form(entry, "table", container(y))


@every_classifier
def test_a_name_that_is_missing(entry):
    y = np.array(WORDS, dtype=object)
    y[5] = None
    with refused("y is None at row 5. Leave this sample out, or give it a target"):
        in_form(entry, "table", y)


@every_learner_of_targets
def test_targets_that_are_masked_or_complex(entry):
    y = targets_of(entry)
    with refused("y has a masked entry at 2"):
        in_form(entry, "table", np.ma.masked_array(y, np.arange(N_ROWS) == 2))
    with refused(r"^Complex data not supported: y holds complex numbers \(complex128\), not .*$"):
        in_form(entry, "table", y + 1j)


@every_regressor
def test_dates_and_words_are_no_targets_of_a_regression(entry):
    with refused("y holds dates"):
        in_form(entry, "table", DAYS)
    with refused("y holds differences of times"):
        in_form(entry, "table", DAYS - DAYS[0])
    for form in ("table", "matrix", "stack"):
        with refused("y does not hold numbers only: .*'u'.*, at 0"):
            in_form(entry, form, WORDS)


@every_classifier
def test_dates_may_be_classes(entry):
    days = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    model = in_form(entry, "table", days[Y])
    np.testing.assert_array_equal(model.classes_, days)
    assert set(model.predict(X)) <= set(days)
