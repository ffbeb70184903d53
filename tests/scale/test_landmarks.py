"""Features by landmarks, and how landmarks are chosen."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from manykernels import MKFDA, KernelUnion, Nystrom, Views
from manykernels.kernels import RBF, Linear, Spectrum
from manykernels.kernels.transforms import Spherical
from manykernels.scale import Fixed, KMeansPlusPlus, LeverageScores, Uniform
from manykernels.scale.features import rows_for_errors

X = np.random.default_rng(0).normal(size=(80, 3))
UNION = KernelUnion({"wide": RBF(0.1), "narrow": RBF(2.0), "flat": Linear()}).fit(X)
SELECTORS = [Uniform(), KMeansPlusPlus(), LeverageScores()]


def products(features, table):
    Z = features(table)
    return [Z[:, block] @ Z[:, block].T for block in features.blocks]


@pytest.mark.parametrize("spherical", [False, True])
def test_all_rows_as_landmarks_lose_nothing(spherical):
    features = Nystrom(80).features_of(UNION, X, 80, spherical=spherical)
    stack = UNION(X)
    if spherical:
        stack = Spherical().fit_transform(stack)
    for j, found in enumerate(products(features, X)):
        np.testing.assert_allclose(found, stack.kernel(j), atol=1e-10)
    assert features.sizes[2] == 3  # the rank of a linear kernel
    np.testing.assert_allclose(features.errors(X), 0.0, atol=1e-9)


def test_new_rows_are_projected():
    features = Nystrom(30).features_of(UNION, X, 80, spherical=False)
    landmarks = features.landmarks
    new = np.random.default_rng(1).normal(size=(7, 3))
    for j, block in enumerate(features.blocks):
        K_LL, K_nL = UNION(landmarks).kernel(j), UNION(new, landmarks).kernel(j)
        Z = features(new)[:, block]
        np.testing.assert_allclose(Z @ Z.T, K_nL @ np.linalg.pinv(K_LL) @ K_nL.T, atol=1e-6)


def test_errors_are_the_relative_distance_of_centred_matrices():
    features = Nystrom(15).features_of(UNION, X, 80, spherical=False)
    P = np.eye(80) - 1 / 80
    for j, found in enumerate(products(features, X)):
        K = P @ UNION(X).kernel(j) @ P
        expected = np.linalg.norm(K - P @ found @ P) / np.linalg.norm(K)
        assert features.errors(X)[j] == pytest.approx(expected, abs=1e-10)
    assert features.errors(X)[1] > features.errors(X)[0] > 1e-6


@pytest.mark.parametrize("n_landmarks", [20, 79, 80])
@pytest.mark.parametrize("selector", SELECTORS, ids=lambda one: type(one).__name__)
def test_errors_are_not_measured_on_landmarks(selector, n_landmarks):
    """On these there is none, however narrow the kernels are."""
    approximation = Nystrom(n_landmarks, selector=selector)
    features = approximation.features_of(UNION, X, 80, spherical=False)
    judged = {tuple(row) for row in rows_for_errors(features, X, 0)}
    landmarks = {tuple(row) for row in features.landmarks}
    if n_landmarks == 20:
        assert judged == {tuple(row) for row in X} - landmarks
    else:  # all rows, as there are too few others
        assert judged == {tuple(row) for row in X}


def test_the_errors_of_a_model_are_those_of_new_rows():
    """Though half of all rows are landmarks."""
    rng = np.random.default_rng(0)
    table, new = rng.normal(size=(1000, 4)), rng.normal(size=(500, 4))
    model = MKFDA(RBF(1.0), approximation=Nystrom(500)).fit(table, table[:, 0] > 0)
    features = Nystrom(500).features_of(model.union_, table, 1000, spherical=False)
    assert model.approximation_errors_[0] == pytest.approx(features.errors(new)[0], rel=0.1)
    assert model.approximation_errors_[0] > 0.1


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda one: type(one).__name__)
def test_selectors_choose_different_rows_and_the_same_ones_again(selector):
    chosen, rows = selector.choose(UNION, X, 20, 0)
    assert chosen.shape == (20, 3)
    assert len(np.unique(chosen, axis=0)) == 20
    assert all((row == X).all(axis=1).any() for row in chosen)
    np.testing.assert_array_equal(X[rows], chosen)
    np.testing.assert_array_equal(selector.choose(UNION, X, 20, 0)[1], rows)
    assert not np.array_equal(selector.choose(UNION, X, 20, 1)[1], rows)


def test_far_rows_are_chosen_by_those_that_look():
    """One row far from all others, of a thousand: looked for, it is found."""
    table = np.vstack([np.random.default_rng(1).normal(size=(999, 2)), [[30.0, 30.0]]])
    union = KernelUnion({"flat": Linear()}).fit(table)
    found = {
        type(one).__name__: sum(
            bool((one.choose(union, table, 10, seed)[0] > 20).any()) for seed in range(10)
        )
        for one in SELECTORS
    }
    assert found["KMeansPlusPlus"] >= 9
    assert found["LeverageScores"] >= 9
    assert found["Uniform"] <= 3


def test_equal_rows_do_not_stop_the_search_for_far_ones():
    table = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)
    union = KernelUnion({"rbf": RBF(1.0)}).fit(table)
    assert KMeansPlusPlus().choose(union, table, 5, 0)[0].shape == (5, 2)


def test_fixed_landmarks():
    features = Nystrom(selector=Fixed(X[:9])).features_of(UNION, X, 80, spherical=False)
    np.testing.assert_array_equal(features.landmarks, X[:9])


def test_default_number_of_landmarks():
    many = KernelUnion({f"k{j}": Linear() for j in range(50)}).fit(X)
    table = np.random.default_rng(1).normal(size=(400, 3))
    assert Nystrom()._number(len(UNION.kernels_), 400, 400) == 200
    assert Nystrom()._number(len(many.kernels_), 400, 400) == 80
    assert Nystrom()._number(1000, 400, 400) == 50
    assert Nystrom()._number(3, 30, 30) == 30
    assert len(Nystrom().features_of(UNION.fit(table), table, 400, spherical=False).landmarks)


def test_more_landmarks_than_rows_are_refused():
    with pytest.raises(
        ValueError, match=r"n_landmarks=81 is more than the number of rows.*there are 80"
    ):
        Nystrom(81).features_of(UNION, X, 80, spherical=False)
    with pytest.raises(ValueError, match="80 were drawn"):
        Nystrom(81).features_of(UNION, X, 10**6, spherical=False)


@pytest.mark.parametrize(
    "options",
    [{"n_landmarks": 0}, {"selector": "random"}, {"block_size": 0}, {"random_state": -1}],
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter of Nystrom"):
        Nystrom(**options).features_of(UNION, X, 80, spherical=False)


def test_views_and_strings():
    words = np.array([["ABAB"], ["BABA"], ["CABC"], ["AABB"], ["CCBA"]], dtype=object)
    views = Views({"numbers": X[:5], "texts": words})
    union = KernelUnion({"a": RBF(0.5).of("numbers"), "b": Spectrum(2).of("texts")}).fit(views)
    features = Nystrom(5).features_of(union, views, 5, spherical=False)
    for j, found in enumerate(products(features, views)):
        np.testing.assert_allclose(found, union(views).kernel(j), atol=1e-10)


def test_pickling_leaves_out_what_can_be_made_again():
    features = Nystrom(10).features_of(UNION, X, 80, spherical=False)
    expected = features(X)
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again(X), expected)
