"""Shares that users give: every way of giving them, and every way of getting them wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN, KMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from manykernels.gating.regions import GivenRegions

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(30, 2)), 6 + RNG.normal(size=(20, 2))])
Y = np.repeat([0, 1], [30, 20])
SHARES = RNG.dirichlet(np.ones(3), 50)
NEW = np.array([[0.0, 0.0], [6.0, 6.0], [3.0, 3.0]])


def test_probabilities_of_a_mixture_are_shares():
    mixture = GaussianMixture(2, random_state=0)
    given = GivenRegions(mixture).fit(X)
    assert given.n_regions_ == 2
    assert_allclose(given.shares(NEW), mixture.fit(X).predict_proba(NEW))
    assert given.model is mixture


def test_the_estimator_of_the_user_is_not_fitted():
    clusters = KMeans(2, random_state=0)
    GivenRegions(clusters).fit(X)
    assert not hasattr(clusters, "cluster_centers_")


def test_clusters_are_hard_shares_whatever_else_they_can_do():
    """KMeans has ``transform`` as well, but distances are no shares."""
    given = GivenRegions(KMeans(2, random_state=0)).fit(X)
    shares = given.shares(X)
    assert set(shares.ravel()) == {0.0, 1.0}
    assert len({tuple(row) for row in shares[:30]}) == 1
    assert_array_equal(given.shares(NEW)[:2].sum(axis=0), 1.0)


def test_a_classifier_gets_the_targets():
    given = GivenRegions(DecisionTreeClassifier(max_depth=1, random_state=0)).fit(X, Y)
    assert_array_equal(given.shares(NEW)[:2], np.eye(2))


def test_sample_weights_reach_an_estimator_that_takes_them():
    weights = np.where(X[:, 0] > X[:, 1], 1000.0, 1.0)
    plain = GivenRegions(KMeans(2, random_state=0)).fit(X)
    weighted = GivenRegions(KMeans(2, random_state=0)).fit(X, sample_weight=weights)
    assert not np.allclose(
        plain._model.cluster_centers_.sum(), weighted._model.cluster_centers_.sum()
    )
    GivenRegions(GaussianMixture(2, random_state=0)).fit(X, sample_weight=weights)


def test_columns_hold_shares():
    table = np.hstack([X, SHARES])
    given = GivenRegions(columns=[2, 3, 4]).fit(table)
    assert_allclose(given.shares(table[5:8]), SHARES[5:8])
    frame = pd.DataFrame(table, columns=["a", "b", "north", "east", "south"])
    given = GivenRegions(columns=["south", "north", "east"]).fit(frame)
    assert_allclose(given.shares(frame[5:8]), SHARES[5:8][:, [2, 0, 1]])


def test_categories_through_an_encoder():
    frame = pd.DataFrame({"x": X[:, 0], "site": np.where(Y == 0, "Bern", "Lyon")})
    given = GivenRegions(OneHotEncoder(), columns=["site"]).fit(frame)
    assert_array_equal(given.shares(frame), np.eye(2)[Y])
    with pytest.raises(ValueError, match=r"regions: shares are numbers.*OneHotEncoder"):
        GivenRegions(columns=["site"]).fit(frame)


def test_a_function_of_the_table():
    def left(X):
        side = np.asarray(X)[:, :1] < 3
        return np.hstack([side, ~side])

    assert_array_equal(GivenRegions(left).fit(X).shares(NEW)[:2], np.eye(2))
    on_columns = GivenRegions(left, columns=slice(0, 1)).fit(X)
    assert_array_equal(on_columns.shares(NEW)[:2], np.eye(2))


def test_one_region_holds_all():
    assert_array_equal(GivenRegions(lambda X: np.ones((len(X), 1))).fit(X).shares(NEW), 1.0)


def test_shares_may_be_sparse_or_rounded():
    rounded = SHARES.astype(np.float32)
    found = GivenRegions(lambda X: sparse.csr_matrix(rounded[: len(X)])).fit(X).shares(X)
    assert_allclose(found, SHARES, atol=1e-6)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-15)


# -- what is no share ------------------------------------------------------------------------


def table_with(row, column, value):
    shares = SHARES.copy()
    shares[row, column] = value
    return shares


BAD = [
    (table_with(4, 1, np.nan), "row 4 has a share that is not finite in region 1: nan"),
    (table_with(7, 2, -0.5), "row 7 has a share that is negative in region 2: -0.5"),
    (table_with(3, 0, 5.0), r"the shares of row 3 sum to .*, not to one. Divide every row"),
    (SHARES[:, 0], r"one row for each of 50 samples.*shape \(50,\)"),
    (SHARES[:20], r"one row for each of 50 samples.*shape \(20, 3\)"),
    (np.empty((50, 0)), "one column per region"),
    (
        np.hstack([SHARES[:, :1], 1 - SHARES[:, :1], np.zeros((50, 1))]),
        "region 2 has no training sample",
    ),
    (np.array([["a", "b"]] * 50), "shares are numbers"),
]


@pytest.mark.parametrize(("shares", "message"), BAD)
def test_bad_shares_are_refused(shares, message):
    with pytest.raises(ValueError, match=f"regions: .*{message}"):
        GivenRegions(lambda X: shares).fit(X)


def test_new_samples_are_checked_too():
    answers = [SHARES, np.array([[0.5, 0.5]])]
    given = GivenRegions(lambda X: answers.pop(0)).fit(X)
    with pytest.raises(ValueError, match="shares in 2 regions, but there were 3 in training"):
        given.shares(NEW[:1])


class Moody(BaseEstimator):
    """A clustering whose regions depend on how many rows it sees."""

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.array(["few" if len(X) < 10 else "many"] * len(X))


def test_a_region_that_is_new_has_no_weights():
    given = GivenRegions(Moody()).fit(X)
    with pytest.raises(ValueError, match=r"row 0 belongs to region .*few.*no training sample"):
        given.shares(NEW)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KMeans, r"KMeans is a class; pass an instance"),
        (DBSCAN(), "cannot be applied to new samples"),
        (SHARES, "cannot be used for new samples"),
        (["east", "west"], r"by name: GivenRegions\(columns=\.\.\.\)"),
    ],
)
def test_models_that_give_no_shares(model, message):
    with pytest.raises(TypeError, match=message):
        GivenRegions(model).fit(X)
