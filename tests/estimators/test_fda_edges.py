"""MKFDA where there is little or nothing to learn, and at extreme scales."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from manykernels import MKFDA, KernelStack
from tests.problems import slow

NORMALIZATIONS = ["multiplicative", "trace", "spherical", None]
LABELS = np.array(["a", "a", "b"] * 8)


def separable(seed=0):
    X = np.random.default_rng(seed).normal(size=(24, 3))
    X[:, 0] += 4.0 * (LABELS == "b")
    return X


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("p", [1, *slow(1.5, np.inf)])
def test_constant_data_predict_the_largest_prior(p, normalize):
    for X in (np.ones((24, 3)), np.zeros((24, 1))):
        model = MKFDA(p=p, normalize=normalize).fit(X, LABELS)
        assert set(model.predict(X)) == {"a"}
        np.testing.assert_allclose(model.predict_proba(X), [[2 / 3, 1 / 3]] * 24)
        assert model.certificate_.converged


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_a_constant_kernel_beside_others_changes_nothing(normalize):
    X = separable()
    gram = KernelStack.from_arrays(X @ X.T)
    alone = MKFDA("precomputed", normalize=normalize).fit(gram, LABELS)
    stack = KernelStack.from_arrays([X @ X.T, np.full((24, 24), 7.0)])
    both = MKFDA("precomputed", normalize=normalize, p=1).fit(stack, LABELS)
    np.testing.assert_allclose(
        both.decision_function(stack), alone.decision_function(gram), rtol=1e-6
    )


@pytest.mark.parametrize("reg", [1e-12, 1e-6, 1e6, 1e12])
def test_extreme_regularisation_keeps_the_sides_of_the_classes(reg):
    X = separable()
    model = MKFDA(reg=reg).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.9
    assert model.certificate_.converged


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_the_data_does_not_matter(scale):
    X = separable()
    model = MKFDA()
    expected = model.fit(X, LABELS).decision_function(X)
    scaled = clone(model).fit(scale * X, LABELS).decision_function(scale * X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-5)


def test_scores_of_two_classes_never_run_against_the_regression():
    """On noise, samples left out may say the opposite; a ranking must not follow them."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 4)), rng.permutation(np.arange(30) % 2)
        scores = MKFDA("linear", reg=10.0).fit(X, y).decision_function(X)
        assert scores[y == 1].mean() > scores[y == 0].mean()


def test_integer_kernels_are_rounded_ones_but_not_any_matrix():
    X = 10 * separable()
    exact, rounded = X @ X.T, np.round(X @ X.T).astype(int)
    assert np.linalg.eigvalsh(rounded)[0] < -0.5
    expected = MKFDA("precomputed").fit(exact, LABELS).predict(exact)
    actual = MKFDA("precomputed").fit(rounded, LABELS).predict(rounded)
    assert np.mean(actual == expected) > 0.9
    swap = np.tile(np.array([[0, 1], [1, 0]]), (12, 12))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        MKFDA("precomputed").fit(swap, LABELS)
