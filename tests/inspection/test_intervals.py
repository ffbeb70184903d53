"""Intervals of means: known answers, weights that count, and how often they cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from manykernels.inspection.importance import share_intervals
from manykernels.inspection.intervals import Intervals, Mean, within_range
from tests.problems import slow


def independent(n, **options):
    """Intervals of samples that no model has shared."""
    return Intervals(np.ones(n), options.pop("confidence", 0.95), np.inf, **options)


def rng(seed=0):
    return np.random.default_rng(seed)


# -- known answers ---------------------------------------------------------------------------


def test_the_interval_of_numbers_of_either_sign_is_that_of_student():
    losses = rng().normal(size=40)
    found = independent(40, confidence=0.9).of(losses)
    expected = stats.ttest_1samp(losses, 0.0).confidence_interval(0.9)
    np.testing.assert_allclose([found.low, found.high], expected)
    assert found.value == pytest.approx(losses.mean())


def test_the_interval_of_losses_is_that_of_their_logarithm():
    losses = rng().exponential(size=40)
    found = independent(40).of(losses)
    mean, error = losses.mean(), losses.std(ddof=1) / np.sqrt(40)
    half = stats.t.isf(0.025, 39) * error / mean
    np.testing.assert_allclose(found.interval, mean * np.exp([-half, half]))
    score = found.times(-1.0, 1.0)  # such as R²
    np.testing.assert_allclose(score.interval, 1.0 - found.interval[::-1])


def test_a_few_large_losses_have_an_interval_above_zero():
    """The log losses of a model that is nearly always right."""
    losses = np.full(40, 0.001)
    losses[:2] = 1.0
    for intervals in (independent(40), Intervals(np.ones(40), 0.95, 0.98)):
        found = intervals.of(losses)
        assert 0.0 < found.low < found.value < found.high
        assert intervals.of(np.zeros(40)).interval.tolist() == [0.0, 0.0]


def test_a_single_sample_has_no_interval_of_numbers():
    assert np.isnan(independent(1).of(np.array([0.3])).interval).all()
    assert np.isnan(independent(1).of(np.array([0.0])).interval).all()


@pytest.mark.parametrize("hits", [0, 3, 10, 40])
def test_the_interval_of_a_share_is_that_of_wilson(hits):
    losses = (np.arange(40) < hits).astype(float)
    found = independent(40, hit_or_miss=True).of(losses)
    expected = stats.binomtest(hits, 40).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose([found.low, found.high], [expected.low, expected.high], atol=1e-12)


def test_the_difference_of_matched_shares_has_half_a_sample_more_in_each_cell():
    only_first, only_second, both, neither = 7, 2, 5, 46
    first = np.repeat([1.0, 0, 1, 0], [only_first, only_second, both, neither])
    second = np.repeat([0.0, 1, 1, 0], [only_first, only_second, both, neither])
    b, c, n = only_first + 0.5, only_second + 0.5, 62.0
    centre = (b - c) / n
    half = stats.norm.ppf(0.975) * np.sqrt(b + c - (b - c) ** 2 / n) / n
    found = independent(60, hit_or_miss=True).of_difference(first, second)
    np.testing.assert_allclose(found.interval, [centre - half, centre + half])
    assert found.value == pytest.approx(5 / 60)


def test_models_that_share_samples_tell_as_much_as_half_as_many_samples():
    losses = rng().normal(size=100)
    alone, shared = independent(100).of(losses), Intervals(np.ones(100), 0.95, 1.0).of(losses)
    assert np.ptp(shared.interval) == pytest.approx(np.sqrt(2.0) * np.ptp(alone.interval))
    in_five_folds = Intervals(np.ones(100), 0.95, 0.8).of(losses)
    assert np.ptp(in_five_folds.interval) == pytest.approx(1.5 * np.ptp(alone.interval))


def test_equal_models_still_have_an_interval():
    """No spread in the differences proves less than it seems."""
    losses, hits = rng().exponential(size=50), (np.arange(50) < 5).astype(float)
    numbers = independent(50, slack=1e-3).of_difference(losses, losses)
    expected = (2.0 / 50 + 1e-3) * losses.std(ddof=1)
    np.testing.assert_allclose(numbers.interval, [-expected, expected])
    shares = independent(50, hit_or_miss=True).of_difference(hits, hits)
    np.testing.assert_allclose(shares.interval, [-1.96 / 52, 1.96 / 52], rtol=1e-3)


def test_times_turns_the_interval_round():
    assert Mean(0.2, 0.1, 0.4).times(-1.0, 1.0) == Mean(0.8, 0.6, 0.9)


# -- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("hit_or_miss", [False, True])
@pytest.mark.parametrize("unit", [1.0, 0.01, 50.0])
def test_a_weight_of_two_is_a_sample_and_its_repeat_in_any_unit(hit_or_miss, unit):
    random = rng(1)
    counts = random.integers(1, 4, 30)
    first, second = (random.random((2, 30)) < [[0.3], [0.5]]).astype(float)
    rows = np.repeat(np.arange(30), counts)
    weighted = Intervals(unit * counts, 0.95, 0.9, hit_or_miss)
    repeated = Intervals(np.ones(len(rows)), 0.95, 0.9, hit_or_miss, groups=rows)
    for found, expected in [
        (weighted.of(first), repeated.of(first[rows])),
        (weighted.of_difference(first, second), repeated.of_difference(first[rows], second[rows])),
    ]:
        np.testing.assert_allclose(found.interval, expected.interval)
        assert found.value == pytest.approx(expected.value)


@pytest.mark.parametrize("hit_or_miss", [False, True])
def test_intervals_of_repeated_samples_are_those_of_single_ones(hit_or_miss):
    losses = (rng(2).random(40) < 0.3).astype(float)
    single = Intervals(np.ones(40), 0.95, 0.9, hit_or_miss).of(losses)
    twice = Intervals(np.ones(80), 0.95, 0.9, hit_or_miss, groups=np.tile(np.arange(40), 2))
    np.testing.assert_allclose(twice.of(np.tile(losses, 2)).interval, single.interval)
    taken_for_more = Intervals(np.ones(80), 0.95, 0.9, hit_or_miss).of(np.tile(losses, 2))
    assert np.ptp(taken_for_more.interval) < 0.8 * np.ptp(single.interval)


def test_rows_that_were_not_judged_do_not_count():
    losses = rng().normal(size=30)
    gaps = np.append(losses, np.nan)
    assert independent(31).of(gaps) == independent(30).of(losses)
    other = np.append(np.nan, losses)
    found = independent(31).of_difference(gaps, other)
    assert found.value == pytest.approx(np.mean(gaps[1:30] - other[1:30]))


@pytest.mark.parametrize("confidence", [0.2, 0.95, 0.9999])
def test_means_lie_within_their_intervals_and_shares_within_their_range(confidence):
    intervals = independent(20, hit_or_miss=True, confidence=confidence)
    for missed in range(21):
        losses = (np.arange(20) < missed).astype(float)
        for found, low in [
            (intervals.of(losses), 0.0),
            (intervals.of_difference(losses, np.zeros(20)), -1.0),
        ]:
            assert low <= found.low <= found.value <= found.high <= 1.0


@given(
    share=st.floats(0.0, 1.0),
    error=st.floats(1e-12, 10.0),
    quantile=st.floats(0.01, 1e4),
    ends=st.sampled_from(
        [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0), (-1.0, 1)]
    ),
)
def test_intervals_contain_their_value_and_stay_in_its_range(share, error, quantile, ends):
    least, most = ends
    value = share if least >= 0.0 else 2.0 * share - 1.0
    if value in ends:
        error = 0.0  # all that a mean at the end of its range is made of lies there
    low, high = within_range(value, error, quantile, least, most)
    assert least <= low <= value <= high <= most


def test_a_share_of_weights_lies_in_the_middle_of_its_interval():
    """Whatever half-samples say of where it is."""
    shares, resampled = np.array([0.9, 0.1, 0.0]), np.array([[0.7, 0.2, 0.1], [0.8, 0.2, 0.0]])
    found = share_intervals(shares, resampled, 0.5)
    # Of two numbers, Student's quantile at three quarters is one.
    half = np.std([0.7, 0.8], ddof=1)
    expected = [[0.9 - half, 0.9 + half], [0.1, 0.1], [0.0, half]]
    np.testing.assert_allclose(found, expected, atol=1e-15)
    wide = share_intervals(shares, resampled, 0.99)
    np.testing.assert_array_equal(wide[[0, 2]], [[0.0, 1.0], [0.0, 1.0]])
    assert np.isnan(share_intervals(shares, resampled[:1], 0.95)).all()


@pytest.mark.parametrize("hit_or_miss", [False, *slow(True)])
def test_nineteen_of_twenty_intervals_cover_the_truth(hit_or_miss):
    """Of independent samples; those of models are in test_coverage."""
    random, covered = rng(2), np.zeros(2)
    for _ in range(1000):
        common = random.random(60)
        first, second = common < 0.2, common + 0.6 * random.random(60) < np.sqrt(0.24)
        truth = 0.2, 0.0
        if not hit_or_miss:
            first, second = first + random.random(60), second + random.random(60)
            truth = 0.7, 0.0
        intervals = independent(60, hit_or_miss=hit_or_miss)
        first, second = first.astype(float), second.astype(float)
        means = intervals.of(first), intervals.of_difference(first, second)
        covered += [mean.low <= at <= mean.high for mean, at in zip(means, truth, strict=True)]
    assert (covered >= 935).all()
    assert (covered <= 985).all()


def test_paired_differences_have_students_interval_and_a_one_sided_p_value():
    values = np.random.default_rng(0).standard_normal(50) + 0.3
    found = Intervals(np.ones(50), 0.9, train_share=0.8).of_paired(values)
    mean, error = values.mean(), values.std(ddof=1) * np.sqrt(1 / 50 + 1 / 40)
    half = stats.t.isf(0.05, 49) * error
    np.testing.assert_allclose(
        found, [mean, mean - half, mean + half, stats.t.sf(mean / error, 49)]
    )
    assert Intervals(np.ones(50), 0.9).of_paired(np.zeros(50)) == (0.0, 0.0, 0.0, 1.0)
