"""Indicators of clusters and rows, and gates on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import OneHotEncoder

from manykernels.gating import PerCluster, PerSample, Softmax
from manykernels.gating.descent import DescentOptions, descend
from manykernels.gating.features import GatingFeatures
from manykernels.gating.gates import Centres, ClusterIndicators, RowIndicators
from manykernels.gating.objective import GatedObjective
from tests.differences import assert_derivatives
from tests.gating.gated_problems import KERNELS, M, X, machine_of
from tests.problems import slow

CORNERS = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])
PLACES = np.random.default_rng(1).permutation(np.arange(40) % 4)
BLOBS = CORNERS[PLACES] + np.random.default_rng(0).normal(scale=0.5, size=(40, 2))


def gated_objective(gate):
    features = gate.transformer(None).fit_transform(X)
    return GatedObjective(KERNELS, gate, features, machine_of())


both = pytest.mark.parametrize("gate", [PerCluster(n_clusters=4), PerSample()], ids=str)


# -- indicators --------------------------------------------------------------------------------


def test_a_row_has_a_single_one_in_the_column_of_its_cluster():
    indicators = ClusterIndicators(None, Centres(4)).fit(BLOBS)
    found = indicators.transform(BLOBS)
    assert sparse.issparse(found)
    found = found.toarray()
    assert_array_equal(found.sum(axis=1), 1.0)
    assert_array_equal(found @ found.T, PLACES[:, None] == PLACES)
    assert_array_equal(found, ClusterIndicators(None, Centres(4)).fit_transform(BLOBS).toarray())


def test_new_rows_belong_to_the_nearest_centre_however_far_away():
    indicators = ClusterIndicators(None, Centres(4)).fit(BLOBS)
    own = indicators.transform(CORNERS).toarray()
    assert_array_equal(own.sum(axis=0), 1.0)
    away = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    for distance in (1e3, 1e30, 1e150, 1e300):
        assert_array_equal(indicators.transform(distance * away).toarray(), own)


def test_clusters_are_those_of_the_features_that_are_named():
    frame = pd.DataFrame({"noise": BLOBS[:, 0], "place": BLOBS[:, 1]})
    found = ClusterIndicators("place", Centres(2)).fit_transform(frame).toarray()
    assert_array_equal(found @ found.T, PLACES[:, None] % 2 == PLACES % 2)


def test_known_groups_are_clusters():
    sites = np.array(["york", "leeds", "hull"])[PLACES % 3]
    frame = pd.DataFrame({"site": sites, "dose": BLOBS[:, 0]})
    what = (["site"], OneHotEncoder())
    found = ClusterIndicators(what, Centres(99)).fit_transform(frame).toarray()
    assert found.shape == (40, 3)
    assert_array_equal(found @ found.T, sites[:, None] == sites)


def test_rows_are_told_by_their_position():
    indicators = RowIndicators()
    assert_array_equal(indicators.fit_transform(np.ones((3, 1))).toarray(), np.eye(3))
    # They count as new rows here.
    assert_array_equal(indicators.transform(np.ones((3, 1))).toarray(), np.zeros((3, 3)))
    assert indicators.transform(np.ones((0, 1))).shape == (0, 3)


def test_many_rows_take_little_memory():
    found = RowIndicators().fit_transform(np.empty((10**6, 0)))
    assert found.shape == (10**6, 10**6)
    assert found.nnz == 10**6


def test_no_rows():
    indicators = ClusterIndicators().fit(BLOBS)
    assert indicators.transform(BLOBS[:0]).shape == (0, 5)
    with pytest.raises(ValueError, match="there are no training rows"):
        ClusterIndicators().fit(BLOBS[:0])
    for n_rows in (0, 1):
        with pytest.raises(ValueError, match=f"cannot be learnt from {n_rows} sample"):
            RowIndicators().fit(BLOBS[:n_rows])


@pytest.mark.parametrize("indicators", [ClusterIndicators(), RowIndicators()])
def test_transform_before_fit(indicators):
    with pytest.raises(NotFittedError):
        indicators.transform(BLOBS)


# -- clusterers --------------------------------------------------------------------------------


def test_centres_are_those_of_k_means():
    x = GatingFeatures().fit_transform(BLOBS)
    weights = np.random.default_rng(2).uniform(0.5, 3.0, 40)
    for weight in (None, weights):
        ours = Centres(4).fit(x, sample_weight=weight)
        theirs = KMeans(4, n_init=10, random_state=0).fit(x, sample_weight=weight)
        order = np.lexsort(ours.centres_.T)
        expected = theirs.cluster_centers_[np.lexsort(theirs.cluster_centers_.T)]
        assert_allclose(ours.centres_[order], expected, rtol=1e-7)


def test_the_answer_for_a_row_does_not_depend_on_the_others():
    rng = np.random.default_rng(3)
    # Half of the rows are as far from one centre as from another.
    x = np.vstack([rng.standard_normal((500, 7)), rng.integers(-1, 2, (500, 7)) / 3.0])
    centres = Centres(8).fit(x)
    centres.centres_ = rng.integers(-1, 2, (8, 7)) / 3.0
    every = centres.predict(x)
    assert_array_equal(every, [centres.predict(row[None])[0] for row in x])
    assert_array_equal(every[::-1], centres.predict(x[::-1]))


def test_neither_order_nor_repetition_of_rows_matters():
    rng = np.random.default_rng(4)
    x, counts = rng.standard_normal((60, 3)), rng.integers(1, 4, 60)
    weighted = Centres(5).fit(x, sample_weight=counts).centres_
    repeated = rng.permutation(np.repeat(x, counts, axis=0))
    assert_array_equal(Centres(5).fit(repeated).centres_, weighted)
    assert np.any(Centres(5).fit(x).centres_ != weighted)


@pytest.mark.parametrize("jitter", [0.0, 1e-13])
def test_fewer_clusters_where_fewer_rows_differ(jitter):
    rng = np.random.default_rng(0)
    few = CORNERS[np.arange(40) % 3] + jitter * rng.standard_normal((40, 2))
    found = ClusterIndicators(None, Centres(5)).fit_transform(few).toarray()
    assert found.shape == (40, 3)
    assert_array_equal(found @ found.T, np.arange(40)[:, None] % 3 == np.arange(40) % 3)


@pytest.mark.parametrize(
    "clusterer", [KMeans(4, random_state=0, n_init=5), GaussianMixture(4, random_state=0)]
)
def test_clusterers_of_scikit_learn(clusterer):
    indicators = PerCluster(clusterer=clusterer).transformer(None)
    found = indicators.fit_transform(BLOBS, sample_weight=np.ones(40)).toarray()
    assert_array_equal(found @ found.T, PLACES[:, None] == PLACES)
    assert indicators.transform(BLOBS[:0]).shape == (0, 4)
    with pytest.raises(NotFittedError):
        clusterer.predict(BLOBS)  # a copy was fitted


class Signs:
    """Three clusters, by the sign of the first feature; learns nothing."""

    def fit(self, x):
        return self

    def predict(self, x):
        return np.array(["minus", "none", "plus"])[np.sign(x[:, 0]).astype(int) + 1]

    def get_params(self, deep=False):
        return {}


def test_a_cluster_without_training_rows():
    gate = PerCluster(clusterer=Signs())
    indicators = gate.transformer([0]).fit(np.array([[-1.0], [1.0]]))
    found = indicators.transform(np.array([[1.0], [0.0], [-1.0]]))
    assert_array_equal(found.toarray(), [[0, 1], [0, 0], [1, 0]])
    eta = gate.outputs([1.0, 2.0, 3.0, 4.0], found)
    assert_array_equal(eta[1], 0.5)
    assert (eta[[0, 2]] != 0.5).all()


# -- gates -------------------------------------------------------------------------------------


@both
def test_outputs_are_those_of_a_softmax_gate_on_the_same_indicators(gate):
    objective = gated_objective(gate)
    x = objective.features
    rng = np.random.default_rng(0)
    V, E = rng.standard_normal((3, x.shape[1])), rng.standard_normal((M, 3))
    eta = gate.outputs(V.ravel(), x)
    with_bias = np.column_stack([V, np.zeros(3)]).ravel()
    assert_allclose(eta, Softmax().outputs(with_bias, x.toarray()), rtol=1e-13)
    gradient = gate.pull_back(V.ravel(), x, eta, E).reshape(3, -1)
    expected = Softmax().pull_back(with_bias, x.toarray(), eta, E).reshape(3, -1)[:, :-1]
    assert_allclose(gradient, expected, rtol=1e-10, atol=1e-13)
    assert_allclose(x @ gate.coefficients(V.ravel(), x.shape[1])["outputs"].T, eta, rtol=1e-13)


@pytest.mark.parametrize("gate", [PerCluster(n_clusters=4), *slow(PerSample())], ids=str)
def test_gradient_agrees_with_finite_differences_of_the_trained_machine(gate):
    objective = gated_objective(gate)
    objective.machine.tol = 1e-11
    theta = 0.5 * np.random.default_rng(1).standard_normal(3 * objective.features.shape[1])
    gradient = objective.evaluate(theta).gradient
    assert np.linalg.norm(gradient) > 1e-2
    assert_derivatives(gradient, lambda t: objective.evaluate(t).value, theta)


@both
def test_the_combined_kernel_by_hand(gate):
    """Samples of different groups are compared, too."""
    objective = gated_objective(gate)
    x = objective.features.toarray()
    group = x.argmax(axis=1)
    theta = np.random.default_rng(1).standard_normal(3 * x.shape[1])
    point = objective.evaluate(theta)
    scores = np.exp(theta.reshape(3, -1))
    weights = scores / scores.sum(axis=0)
    expected = np.zeros((M, M))
    for i in range(M):
        for j in range(M):
            for p in range(3):
                of_both = weights[p, group[i]] * weights[p, group[j]]
                expected[i, j] += of_both * KERNELS[p][i, j]
    assert_allclose(point.kernel, expected, rtol=1e-12, atol=1e-15)


def test_more_groups_lower_the_objective():
    options = DescentOptions(tol=1e-5, max_iter=500, quasi_newton=True)
    gates = [PerCluster(n_clusters=1), PerCluster(n_clusters=6), PerSample()]
    found = []
    for gate in gates:
        objective = gated_objective(gate)
        start = np.zeros(3 * objective.features.shape[1])
        found.append(descend(objective, start, options))
    assert len({descent.history[0].certificate.objective for descent in found}) == 1
    values = [descent.point.value for descent in found]
    assert values[0] > 1.05 * values[1] > 1.1 * values[2]


def test_one_cluster_is_a_constant_gate():
    objective = gated_objective(PerCluster(n_clusters=1))
    found = descend(objective, np.zeros(3), DescentOptions(tol=1e-8, quasi_newton=True)).point
    assert_array_equal(np.ptp(found.outputs, axis=0), 0.0)
    # No other constant weights that sum to one are better than those found.
    grid = np.arange(1, 20) / 20.0
    shares = [(a, b, 1.0 - a - b) for a in grid for b in grid if a + b < 1.0]
    machine = machine_of()
    least = min(
        machine.train(sum(w**2 * K for w, K in zip(share, KERNELS, strict=True))).value
        for share in shares
    )
    assert found.value <= least


def test_a_sample_without_influence_keeps_its_start():
    """Where a sample is no support vector, J does not depend on its kernel weights."""
    objective = gated_objective(PerSample())
    point = objective.evaluate(np.zeros(3 * M))
    idle = np.abs(point.trained.dual[:, 0]) == 0.0
    assert 0 < idle.sum() < M
    gradient = point.gradient.reshape(3, M)
    assert_array_equal(gradient[:, idle], 0.0)
    assert (np.abs(gradient[:, ~idle]).max(axis=0) > 0.0).all()


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, 2.0, "3", False, None])
def test_invalid_numbers_of_clusters(number):
    with pytest.raises(ValueError, match="'n_clusters' parameter of PerCluster must be"):
        PerCluster(n_clusters=number)._validate_params()


@pytest.mark.parametrize("clusterer", [DBSCAN(), KMeans, "kmeans", 3], ids=repr)
def test_clusterers_that_cannot_say_where_new_samples_belong(clusterer):
    message = "'fit' and 'predict'|clusterer=KMeans is a class; pass an instance"
    with pytest.raises((TypeError, ValueError), match=message):
        PerCluster(clusterer=clusterer)._validate_params()


def test_features_that_cannot_be_clustered():
    with pytest.raises(ValueError, match="gating features are constant"):
        ClusterIndicators().fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"features of the gate: .*not finite"):
        ClusterIndicators().fit([[np.nan], [1.0]])
    with pytest.raises(ValueError, match="X has 1 columns, but the gate was fitted on"):
        ClusterIndicators().fit(BLOBS).transform(BLOBS[:, :1])
