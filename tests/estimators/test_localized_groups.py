"""Kernel weights of clusters and single samples: what they learn, what new samples get."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture

from manykernels import (
    MKSVC,
    KernelUnion,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    Views,
)
from manykernels.gating import PerCluster, PerSample
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import made

# Fits with gates, or of many machines, take long.
pytestmark = pytest.mark.slow

# In two of four blobs the first kernel knows the class, in the two across the second.
KERNELS = [("first", Linear().on([2])), ("second", Linear().on([3]))]
ON_PLACE = {"features": [0, 1], "normalize": None}
# As far as the objective falls.
UNREGULARIZED = {"penalty": 0.0, "early_stopping": 0}


def four_blobs(n_samples, seed):
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 2, (n_samples, 2))
    values = rng.uniform(-1, 1, (n_samples, 2))
    X = np.hstack([4.0 * place + rng.normal(scale=0.3, size=place.shape), values])
    return X, np.where(place[:, 0] == place[:, 1], *values.T) > 0


X, Y = four_blobs(120, seed=0)
X_TEST, Y_TEST = four_blobs(300, seed=1)
CORNERS = np.array([[0.0, 0.0, 0, 0], [4.0, 4.0, 0, 0], [0.0, 4.0, 0, 0], [4.0, 0.0, 0, 0]])
UNION = KernelUnion(KERNELS).fit(X)
STACK, BLOCK = UNION(X), UNION(X_TEST, X)

LOCALIZED = {
    "svc": (LocalizedSVC, Y),
    "svr": (LocalizedSVR, np.where(Y, 1.0, -1.0)),
    "one class": (LocalizedOneClassSVM, None),
    "fda": (LocalizedFDA, Y),
}


def fitted(gating, data=X, kernels=KERNELS, **params):
    return made(LocalizedSVC, kernels, gating=gating, **{**ON_PLACE, **params}).fit(data, Y)


# -- clusters ----------------------------------------------------------------------------------


def test_clusters_learn_what_one_weight_for_each_kernel_cannot():
    model = fitted(PerCluster(n_clusters=4))
    objective = model.history_["objective"]
    assert objective[-1] < 0.5 * objective[0]
    plain = MKSVC(KERNELS, normalize=None).fit(X, Y).score(X_TEST, Y_TEST)
    assert plain < 0.85
    # Nor can a gate with straight borders.
    assert fitted("softmax").score(X_TEST, Y_TEST) < 0.85
    assert model.score(X_TEST, Y_TEST) > 0.95
    assert_array_equal(model.gate(CORNERS).argmax(axis=1), [0, 0, 1, 1])


def test_new_samples_have_the_weights_of_their_cluster():
    model = fitted(PerCluster(n_clusters=4))
    outputs = model.gating_coef_["outputs"]
    assert outputs.shape == (2, 4)
    assert_allclose(outputs.sum(axis=0), 1.0)
    gates = model.gate(X_TEST)
    assert len(np.unique(gates, axis=0)) == 4
    assert {tuple(row) for row in gates} == {tuple(row) for row in outputs.T}
    directions = (CORNERS - 2.0) * [1, 1, 0, 0]
    for distance in (1e2, 1e20, 1e150):
        assert_array_equal(model.gate(distance * directions), model.gate(CORNERS))


@pytest.mark.parametrize("gating", ["cluster", "instance", PerCluster(n_clusters=2)], ids=str)
def test_a_row_is_answered_the_same_in_any_company(gating):
    model = fitted(gating)
    every, gates = model.decision_function(X_TEST), model.gate(X_TEST)
    for rows in ([5], [7, 5], np.arange(299, -1, -1)):
        assert_array_equal(model.gate(X_TEST[rows]), gates[rows])
        assert_allclose(model.decision_function(X_TEST[rows]), every[rows], rtol=1e-12)


def test_one_cluster_is_one_weight_for_each_kernel():
    model = fitted(PerCluster(n_clusters=1), tol=1e-6, max_iter=1000, **UNREGULARIZED)
    gates = model.gate(X_TEST)
    assert_array_equal(np.ptp(gates, axis=0), 0.0)
    fixed = sum(share**2 * STACK.kernel(p) for p, share in enumerate(gates[0]))
    plain = MKSVC("precomputed", normalize=None, tol=1e-9).fit(fixed, Y)
    assert_allclose(model.decision_function(X), plain.decision_function(fixed), atol=1e-4)


def test_clusters_of_a_stack():
    expected = fitted("cluster")
    with_places = STACK.with_features(X[:, :2])
    model = fitted("cluster", with_places, "precomputed", features=None)
    new = BLOCK.with_features(X_TEST[:, :2])
    assert_allclose(model.gate(new), expected.gate(X_TEST), rtol=1e-6)
    assert_allclose(
        model.decision_function(new), expected.decision_function(X_TEST), rtol=1e-5, atol=1e-6
    )
    # Clusters of the similarities to the training samples.
    places = KernelUnion([*KERNELS, ("place", RBF(0.1).on([0, 1]))]).fit(X)
    model = fitted(PerCluster(n_clusters=4), places(X), "precomputed", features="place")
    new = places(X_TEST, X)
    assert len(np.unique(model.gate(new), axis=0)) == 4
    assert model.score(new, Y_TEST) > 0.9


def test_a_clusterer_of_the_user():
    mixture = GaussianMixture(4, random_state=0)
    model = fitted(PerCluster(clusterer=mixture))
    place = X_TEST[:, :2] > 2
    for corner in np.unique(place, axis=0):
        gates = model.gate(X_TEST[(place == corner).all(axis=1)])
        assert_array_equal(np.ptp(gates, axis=0), 0.0)
    assert model.score(X_TEST, Y_TEST) > 0.95
    assert not hasattr(mixture, "means_")


def test_clusters_do_not_depend_on_the_random_state():
    models = [fitted("cluster", random_state=seed) for seed in (0, 1)]
    first, second = (np.unique(model.gate(X), axis=0, return_inverse=True) for model in models)
    together = [np.equal.outer(which.ravel(), which.ravel()) for _, which in (first, second)]
    assert_array_equal(*together)


# -- single samples ----------------------------------------------------------------------------


def test_single_samples_fit_the_training_samples_and_new_ones_have_equal_weights():
    model = fitted("instance", **UNREGULARIZED)
    objective = model.history_["objective"]
    # Lower than clusters reach, of no use to new samples.
    assert objective[-1] < fitted("cluster", **UNREGULARIZED).objective_ < 0.5 * objective[0]
    assert_array_equal(model.gate(X_TEST), np.full((300, 2), 0.5))
    # Training samples are new ones, when they are asked about.
    assert_array_equal(model.gate(X), np.full((120, 2), 0.5))
    own = model.gating_coef_["outputs"]
    assert own.shape == (2, 120)
    assert own.max() > 0.9
    for row, outputs in zip(model.region_summary(), own, strict=True):
        assert row["mean_gate"] == pytest.approx(outputs.mean())


def test_held_out_samples_say_what_single_samples_learn_in_vain():
    model, free = fitted("instance"), fitted("instance", **UNREGULARIZED)
    losses = model.held_out_losses_
    assert losses[-1] > losses.min()
    assert model.n_iter_ < free.n_iter_


def test_scores_of_new_samples_by_hand():
    model = fitted("instance", threshold=0.0, **UNREGULARIZED)
    dual = np.zeros(120)
    dual[model.support_] = model.dual_coef_[0]
    own = model.gating_coef_["outputs"]
    expected = model.intercept_ + sum(0.5 * BLOCK.kernel(p) @ (own[p] * dual) for p in range(2))
    assert_allclose(model.decision_function(X_TEST), expected, rtol=1e-10)


def test_single_samples_need_no_features():
    expected = fitted("instance", **UNREGULARIZED)
    model = fitted("instance", STACK, "precomputed", features=None, **UNREGULARIZED)
    assert_allclose(
        model.decision_function(BLOCK), expected.decision_function(X_TEST), rtol=1e-5, atol=1e-7
    )
    views = Views({"words": [f"{row % 7}" for row in range(120)], "numbers": X})
    kernels = {"words": same_word, "numbers": Linear()}
    on_views = fitted("instance", views, kernels, features=None)
    assert on_views.gate(views).shape == (120, 2)


def same_word(A, B):
    return np.equal.outer(np.array(A), np.array(B)).astype(float)


def test_samples_of_no_weight_have_no_gate():
    weight = np.ones(120)
    weight[[3, 50]] = 0.0
    how = {"gating": PerSample(), **ON_PLACE, **UNREGULARIZED}
    model = made(LocalizedSVC, KERNELS, **how).fit(X, Y, weight)
    assert model.gating_coef_["outputs"].shape == (2, 118)
    kept = np.flatnonzero(weight)
    expected = made(LocalizedSVC, KERNELS, **how).fit(X[kept], Y[kept])
    assert_array_equal(model.decision_function(X), expected.decision_function(X))


# -- all estimators ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOCALIZED)
@pytest.mark.parametrize("gating", ["cluster", "instance"])
def test_every_localized_estimator_has_them(name, gating):
    kind, y = LOCALIZED[name]
    # No step of a gate of single samples helps others.
    judged = {} if gating == "cluster" else {"early_stopping": 0}
    model = made(kind, KERNELS, gating=gating, **judged, **ON_PLACE).fit(X, y)
    objective = model.history_["objective"]
    assert objective[-1] < objective[0]
    assert model.certificate_.converged
    assert len(model.predict(X_TEST)) == 300
    again = made(kind, KERNELS, gating=gating, **ON_PLACE).fit(X, y)
    assert_array_equal(again.gate(X_TEST), model.gate(X_TEST))


def test_each_class_has_its_own_weights_of_clusters():
    labels = Y + 1 * (X[:, 0] > 2)
    model = made(LocalizedSVC, KERNELS, gating="cluster", multi_class="separate", **ON_PLACE)
    model.fit(X, labels)
    assert model.gate(X_TEST).shape == (3, 300, 2)
    assert [coef["outputs"].shape for coef in model.gating_coef_] == [(2, 5)] * 3
