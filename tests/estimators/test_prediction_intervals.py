"""Prediction intervals: ranks by hand, coverage of simulated samples, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import manykernels as mk
from manykernels import MKSVRCV, MKRidge, MKRidgeCV, Nystrom
from manykernels.estimators.prediction import LeftOutResiduals
from manykernels.kernels import RBF, Linear
from tests.problems import slow

QUICK = {"ps": [2.0], "regs": [0.1, 1.0]}


def table(n, rng):
    return rng.uniform(-2.0, 2.0, (n, 2))


def mean(X):
    return np.sin(2.0 * X[:, 0]) + X[:, 1]


def fitted_to(kind, rng, n=80, **options):
    X = table(n, rng)
    return kind(RBF(1.0), **options).fit(X, mean(X) + 0.3 * rng.standard_normal(n))


# -- ranks ---------------------------------------------------------------------------------------


@given(
    n=st.integers(19, 60),
    tail=st.sampled_from([Fraction(1, 20), Fraction(1, 10), Fraction(1, 4)]),
    seed=st.integers(0, 1000),
)
@settings(deadline=None)
def test_the_ends_are_the_residuals_of_the_ranks_of_the_quantiles(n, tail, seed):
    values = np.random.default_rng(seed).standard_normal(n)
    low, high = LeftOutResiduals(values, None, n).quantiles(float(1 - 2 * tail))
    rank = -(-(n + 1) * (1 - tail) // 1)  # the ceiling, exactly
    assert high == np.sort(values)[int(rank) - 1]
    assert low == -np.sort(-values)[int(rank) - 1]


def test_a_row_of_weight_two_is_two_rows_of_one_group():
    values = np.random.default_rng(0).standard_normal(50)
    weights = np.where(np.arange(50) < 20, 2.0, 1.0)
    twice = np.repeat(values, weights.astype(int))
    size = weights.sum() ** 2 / (weights**2).sum()
    found = LeftOutResiduals(values, weights, size).quantiles(0.8)
    assert_array_equal(found, LeftOutResiduals(twice, None, size).quantiles(0.8))


def test_each_target_has_intervals_of_its_own():
    values = np.random.default_rng(0).standard_normal((40, 2)) * [1.0, 100.0]
    found = LeftOutResiduals(values, None, 40).quantiles(0.8)
    for k in range(2):
        assert_array_equal(found[:, k], LeftOutResiduals(values[:, k], None, 40).quantiles(0.8))


# -- the residuals of models ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        MKRidge(),
        *slow(MKRidge(p="evidence")),
        MKRidge(approximation=Nystrom(20)),
        MKRidgeCV(**QUICK),
        MKRidgeCV(**QUICK, cv="closed-form"),
        MKRidgeCV(**QUICK, approximation=Nystrom(20)),
        *slow(MKSVRCV(ps=[2.0], Cs=[1.0], epsilons=[0.1])),
    ],
    ids=repr,
)
def test_residuals_are_targets_minus_left_out_predictions(model):
    rng = np.random.default_rng(1)
    X = table(60, rng)
    y = mean(X) + 0.3 * rng.standard_normal(60)
    weights = np.r_[np.zeros(4), rng.integers(1, 3, 56)]
    model.fit(X, y, sample_weight=weights)
    rows = getattr(model, "left_out_rows_", np.flatnonzero(weights))
    assert_allclose(model.left_out_residuals_.values, y[rows] - model.left_out_predictions_)
    assert_allclose(model.left_out_residuals_.weights, weights[rows])
    intervals = model.predict_interval(X[:5], coverage=0.8)
    ends = model.left_out_residuals_.quantiles(0.8)
    assert intervals.shape == (5, 2)
    assert_allclose(intervals, model.predict(X[:5])[:, None] + ends, rtol=1e-12)


@pytest.mark.parametrize("multi_target", ["shared", "separate"])
@pytest.mark.parametrize("model", [MKRidge(), MKRidgeCV(**QUICK)], ids=["MKRidge", "MKRidgeCV"])
def test_several_targets(model, multi_target):
    rng = np.random.default_rng(2)
    X = table(60, rng)
    y = np.column_stack([mean(X), 10.0 * X[:, 0]]) + rng.standard_normal((60, 2))
    model.set_params(multi_target=multi_target).fit(X, y)
    intervals = model.predict_interval(X[:7], coverage=0.8)
    assert intervals.shape == (7, 2, 2)
    ends = model.left_out_residuals_.quantiles(0.8)
    assert_allclose(intervals, model.predict(X[:7])[..., None] + ends.T)


def test_groups_are_the_independent_samples():
    rng = np.random.default_rng(3)
    X, groups = table(80, rng), np.repeat(np.arange(20), 4)
    model = MKRidge().fit(X, mean(X), groups=groups)
    assert model.left_out_residuals_.size == pytest.approx(20.0)


def test_they_are_kept_in_model_files(tmp_path):
    model = fitted_to(MKRidge, np.random.default_rng(4))
    mk.save(model, tmp_path / "model.skops")
    again = mk.load(tmp_path / "model.skops")
    X = table(5, np.random.default_rng(5))
    assert_allclose(again.predict_interval(X), model.predict_interval(X), rtol=1e-12)


def test_nested_and_wider_for_more_coverage():
    model = fitted_to(MKRidge, np.random.default_rng(6))
    X = table(3, np.random.default_rng(7))
    narrow, wide = (model.predict_interval(X, coverage) for coverage in (0.5, 0.9))
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (wide[:, 1] >= narrow[:, 1]).all()


# -- coverage ------------------------------------------------------------------------------------


def coverage_of(n_problems, draw, options=None, coverage=0.9, n_new=200):
    """Share of new targets in the intervals, and its standard error over the problems."""
    shares = []
    for seed in range(n_problems):
        X, y, given, X_new, y_new = draw(np.random.default_rng(seed), n_new)
        model = MKRidge(RBF(1.0), **(options or {})).fit(X, y, **given)
        low, high = model.predict_interval(X_new, coverage).T
        shares.append(np.mean((low <= y_new) & (y_new <= high)))
    return np.mean(shares), np.std(shares, ddof=1) / np.sqrt(n_problems)


def normal(rng, n_new, n=40):
    X, new = table(n, rng), table(n_new, rng)
    y, y_new = (mean(rows) + 0.5 * rng.standard_normal(len(rows)) for rows in (X, new))
    return X, y, {}, new, y_new


def skewed(rng, n_new, n=40):
    X, new = table(n, rng), table(n_new, rng)
    y, y_new = (mean(rows) + rng.exponential(size=len(rows)) ** 2 for rows in (X, new))
    return X, y, {}, new, y_new


def grouped(rng, n_new, n_groups=30, size=5):
    """Errors of a group have a common part, and rows of a group are alike."""

    def rows(n_groups):
        centres, common = table(n_groups, rng), rng.standard_normal(n_groups)
        X = np.repeat(centres, size, axis=0) + 0.1 * rng.standard_normal((n_groups * size, 2))
        return X, mean(X) + np.repeat(common, size) + 0.2 * rng.standard_normal(len(X))

    X, y = rows(n_groups)
    new, y_new = rows(n_new // size)
    return X, y, {"groups": np.repeat(np.arange(n_groups), size)}, new, y_new


def weighted(rng, n_new, n=100):
    """Rows with large errors were drawn too often; weights make up for it."""
    X, new = table(n, rng), table(n_new, rng)
    wild, wild_new = rng.random(n) < 0.5, rng.random(n_new) < 0.1
    y = mean(X) + np.where(wild, 3.0, 0.3) * rng.standard_normal(n)
    y_new = mean(new) + np.where(wild_new, 3.0, 0.3) * rng.standard_normal(n_new)
    return X, y, {"sample_weight": np.where(wild, 0.1 / 0.5, 0.9 / 0.5)}, new, y_new


@pytest.mark.parametrize(
    "draw", [normal, *slow(skewed, grouped, weighted)], ids=lambda draw: draw.__name__
)
@pytest.mark.parametrize("coverage", [0.9, *slow(0.8)])
def test_new_targets_are_covered(draw, coverage):
    share, error = coverage_of(100, draw, coverage=coverage)
    # At least the coverage; at most that and the ranks it is rounded to, of 30 to 40 samples.
    assert coverage - 3.0 * error - 0.01 <= share <= coverage + 0.06 + 3.0 * error


@pytest.mark.slow
def test_without_groups_the_intervals_of_grouped_samples_are_too_narrow():
    def ungrouped(rng, n_new):
        X, y, _, new, y_new = grouped(rng, n_new)
        return X, y, {}, new, y_new

    without, _ = coverage_of(60, ungrouped, {"reg": 0.01})
    share, error = coverage_of(60, grouped, {"reg": 0.01})
    assert without < 0.85
    assert share > 0.9 - 3.0 * error - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        MKRidgeCV(Linear(), ps=[2.0], regs=[0.1, 1.0, 10.0]),
        MKSVRCV(Linear(), ps=[2.0], Cs=[0.1, 1.0]),
    ],
    ids=["MKRidgeCV", "MKSVRCV"],
)
def test_searches_cover_new_targets(model):
    shares = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, new = table(50, rng), table(300, rng)
        y, y_new = (rows[:, 0] + rng.standard_normal(len(rows)) for rows in (X, new))
        low, high = model.fit(X, y).predict_interval(new, 0.9).T
        shares.append(np.mean((low <= y_new) & (y_new <= high)))
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert 0.9 - 3.0 * error - 0.01 <= np.mean(shares) <= 0.96 + 3.0 * error


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, -0.5, "0.9", None, np.nan])
def test_a_coverage_out_of_range_is_refused(coverage):
    model = fitted_to(MKRidge, np.random.default_rng(0))
    with pytest.raises(ValueError, match="coverage must be between 0 and 1, such as"):
        model.predict_interval(table(2, np.random.default_rng(0)), coverage)


def test_too_few_samples_for_the_coverage_are_refused():
    model = fitted_to(MKRidge, np.random.default_rng(0), n=12)
    sentence = (
        "coverage=0.9 needs 19 independent left-out samples or more, but there are 12: choose a "
        "coverage of at most 0.846."
    )
    with pytest.raises(ValueError, match=sentence):
        model.predict_interval(table(2, np.random.default_rng(0)))


def test_a_validation_set_leaves_no_residuals_to_machines():
    rng = np.random.default_rng(0)
    X, X_val = table(40, rng), table(20, rng)
    model = MKSVRCV(ps=[2.0], Cs=[1.0], epsilons=[0.1], cv=(X_val, mean(X_val))).fit(X, mean(X))
    with pytest.raises(ValueError, match="has no left-out predictions of its training rows"):
        model.predict_interval(X)
