"""Columns by their ranks."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from manykernels.kernels import NormalScores

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.lognormal(size=40), RNG.integers(3, size=40), np.full(40, 7.0)])


def test_scores_are_normal_quantiles_of_mean_ranks():
    ranks = rankdata(X, axis=0)  # equal entries have the mean of their ranks
    assert_allclose(NormalScores().fit_transform(X), norm.ppf((ranks - 0.5) / 40), atol=1e-12)


def test_a_constant_column_becomes_zero():
    assert_allclose(NormalScores().fit(X).transform(X + 1.0)[:, 2], np.zeros(40), atol=1e-12)
    assert_array_equal(NormalScores().fit_transform([[3.0]]), [[0.0]])


def test_monotone_transforms_change_nothing():
    assert_allclose(NormalScores().fit_transform(np.exp(X)), NormalScores().fit_transform(X))


def test_new_entries_are_interpolated_and_never_beyond_those_of_training():
    scores = NormalScores().fit([[0.0], [2.0]])
    low, high = norm.ppf([0.25, 0.75])
    new = [[-9.0], [0.5], [1.0], [1e300]]
    assert_allclose(scores.transform(new).ravel(), [low, low / 2, 0.0, high], atol=1e-15)


def test_a_row_of_weight_two_counts_as_two_rows():
    weights = np.random.default_rng(1).integers(0, 4, size=40)
    weighted = NormalScores().fit(X, sample_weight=weights)
    repeated = NormalScores().fit(np.repeat(X, weights, axis=0))
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    scores = NormalScores().fit(table)
    assert_allclose(scores.transform(table), NormalScores().fit_transform(X[:, :2]))
    assert list(scores.get_feature_names_out()) == ["a", "b"]


def test_copies():
    fitted = NormalScores().fit(X)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))
    assert not hasattr(clone(fitted), "values_")


def test_the_checks_of_scikit_learn():
    results = check_estimator(NormalScores(), on_fail=None, on_skip=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


@pytest.mark.parametrize(
    ("table", "message"),
    [([[np.nan]], "NaN"), ([[1j]], "Complex data not supported"), ([["a"]], "could not convert")],
)
def test_what_has_no_rank_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        NormalScores().fit(table)
