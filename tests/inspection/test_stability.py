"""Half-samples, and shares of the weights."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import MKFDA, Bands, view_importance
from manykernels.inspection.importance import half_samples
from tests.inspection.problems import KERNEL, stack_of, views_and_classes


def test_halves_are_halves_of_every_class_and_complement_each_other():
    strata = np.repeat([0, 1, 2], [10, 7, 1])
    halves = list(half_samples(strata, np.arange(18), 5, np.random.RandomState(0)))
    assert len(halves) == 5
    for half in halves:
        assert set(half) == {0.0, 2.0}
        chosen = np.bincount(strata[half > 0])
        assert chosen[0] == 5
        assert chosen[1] in (3, 4)
        # A class must not be lost.
        assert chosen[2] == 1
    np.testing.assert_array_equal((halves[0] + halves[1])[:17], 2.0)
    assert not np.array_equal(halves[0], halves[2])


def test_repeats_are_in_the_same_half():
    groups = np.arange(20) // 2
    for half in half_samples(np.zeros(20, int), groups, 4, np.random.RandomState(0)):
        np.testing.assert_array_equal(half[::2], half[1::2])
        assert half.sum() == 20


def test_weights_of_half_samples_are_those_of_fits_by_hand():
    views, y = views_and_classes()
    stack, model = stack_of(views), MKFDA("precomputed", p=1, reg=1.0)
    given = np.linspace(0.5, 1.5, len(y))
    found = view_importance(model, stack, y, n_resamples=3, sample_weight=given, random_state=7)
    rng = np.random.RandomState(7)
    rng.randint(2)  # the seed of folds
    for half, shares in zip(
        half_samples(y, np.arange(len(y)), 3, rng), found.resampled_weights, strict=True
    ):
        weights = MKFDA("precomputed", p=1, reg=1.0).fit(stack, y, half * given).weights_
        np.testing.assert_allclose(shares, weights / weights.sum(), atol=1e-9)


def test_a_view_is_chosen_as_often_as_its_share_is_not_negligible():
    views, y = views_and_classes()
    found = view_importance(MKFDA(KERNEL, p=1, reg=3.0), views, y, n_resamples=8)
    assert found.negligible == pytest.approx(1e-3)
    np.testing.assert_allclose(found.chosen, np.mean(found.resampled_weights > 1e-3, axis=0))
    assert found.chosen[0] == 1.0
    assert found.chosen[2] < 1.0


def test_intervals_of_weights_contain_them_and_are_as_wide_as_half_samples_are_apart():
    """At p = 2 weights of half-samples are nearer to each other than those of all samples."""
    views, y = views_and_classes()
    found = view_importance(MKFDA(KERNEL, p=2, reg=3.0), views, y, n_resamples=20)
    low, high = found.weight_interval.T
    assert np.all((low >= 0.0) & (low < found.weight) & (found.weight < high) & (high <= 1.0))
    spread = found.resampled_weights.std(axis=0, ddof=1)
    np.testing.assert_allclose(high - low, 2.0 * 2.093 * spread, rtol=1e-3)


def test_bands_of_a_kernel_belong_to_its_view():
    views, y = views_and_classes()
    model = MKFDA(KERNEL, p=1, reg=1.0, denoise=Bands(2))
    found = view_importance(model, views, y, n_resamples=1, cv=2)
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.resampled_weights.sum() == pytest.approx(1.0)
