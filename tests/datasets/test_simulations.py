"""Simulated data of the papers: the draws of the published figures, and the printed moments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.datasets import make_gauss4, make_yan_simulation
from manykernels.datasets.views import GAUSS4_MEANS, GAUSS4_VARIANCES, YAN_SCALE, GaussianPair

# -- GAUSS4 ------------------------------------------------------------------------------------


def test_gauss4_draws_are_those_of_the_published_figures():
    X, y = make_gauss4(1000, random_state=7)
    first = [[3.6681031703849554, -0.5592435809244864], [-1.8598267627133593, -4.980871552925984]]
    assert_allclose(X[:2], first, rtol=1e-12)
    assert_allclose(X[-1], [-2.962669750680352, 1.7358209279361505], rtol=1e-12)
    assert_allclose(X.sum(), -512.6782268715438, rtol=1e-10)
    assert y[:8].tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert y.sum() == 484


def test_gauss4_has_the_printed_moments():
    X, y = make_gauss4(200_000, random_state=0)
    assert y.mean() == pytest.approx(0.5, abs=0.005)
    for label, some in ((1, slice(0, 2)), (0, slice(2, 4))):
        means, variances = GAUSS4_MEANS[some], GAUSS4_VARIANCES[some]
        of_class = X[y == label]
        assert_allclose(of_class.mean(axis=0), means.mean(axis=0), atol=0.04)
        # Of a mixture: the mean of the variances, and the variance of the means.
        assert_allclose(
            of_class.var(axis=0), variances.mean(axis=0) + means.var(axis=0), rtol=0.02
        )


def test_a_random_generator_continues():
    rng, same = np.random.default_rng(3), np.random.default_rng(3)
    first, second = (make_gauss4(20, random_state=rng)[0] for _ in range(2))
    assert_array_equal(first, make_gauss4(20, random_state=same)[0])
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("state", [0, np.random.RandomState(0), None])
def test_whatever_stands_for_random_numbers(state):
    assert make_gauss4(5, random_state=state)[0].shape == (5, 2)


def test_a_random_state_decides():
    one, other = (make_gauss4(5, random_state=np.random.RandomState(seed))[0] for seed in (0, 0))
    assert_array_equal(one, other)


# -- Yan et al. --------------------------------------------------------------------------------


def test_yan_draws_are_those_of_the_published_figures():
    rng = np.random.default_rng([5, 3])
    views, y = make_yan_simulation(5, random_state=rng)
    first = np.hstack([view[0] for _, view in views.items()])
    expected = [3.689042542672361, -0.6801428769588118, -0.73930738053792, -0.6878330022697885]
    assert_allclose(first[:4], expected, rtol=1e-12)
    assert_allclose(sum(view.sum() for _, view in views.items()), 1463.9052830593084, rtol=1e-10)
    assert_array_equal(y, np.repeat([0, 1], 50))


def test_sets_of_the_same_gaussians_are_those_of_the_published_figures():
    rng = np.random.default_rng([5, 3])
    pairs = [GaussianPair.draw(rng, YAN_SCALE) for _ in range(5)]
    sets = [np.hstack([pair.points(rng, 50) for pair in pairs]) for _ in range(3)]
    sums = [1463.9052830593084, 1463.457743684989, 1414.578468206419]
    assert_allclose([one.sum() for one in sets], sums, rtol=1e-10)
    last = [2.382790375954866, 2.267228731731905, 0.3503890735639864, 1.5088195507317252]
    assert_allclose(sets[2][-1][:4], last, rtol=1e-12)


def test_points_have_the_moments_of_their_gaussians():
    rng = np.random.default_rng(0)
    pair = GaussianPair.draw(rng, scale=3.0)
    classes = pair.points(rng, 20_000).reshape(2, -1, 2)
    for points, mean, factor in zip(classes, pair.means, pair.factors, strict=True):
        assert_allclose(points.mean(axis=0), mean, atol=0.1)
        assert_allclose(np.cov(points.T), factor @ factor.T, atol=0.15)


def test_means_and_variances_lie_where_they_should():
    rng = np.random.default_rng(1)
    for _ in range(50):
        pair = GaussianPair.draw(rng, scale=3.0)
        assert pair.means.min() >= 1
        assert pair.means.max() <= 2
        variances = np.linalg.eigvalsh(pair.factors @ pair.factors.transpose(0, 2, 1))
        assert variances.min() >= 1.5 - 1e-12
        assert variances.max() <= 4.5 + 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_gauss4(0), "n_samples must be at least 1; got 0"),
        (lambda: make_yan_simulation(0), "n_views must be at least 1"),
        (lambda: make_yan_simulation(2, 0), "n_per_class must be at least 1"),
        (lambda: make_yan_simulation(2, scale=-1), "scale must be a positive number; got -1"),
        (lambda: make_yan_simulation(2, scale=np.nan), "scale must be a positive number"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
