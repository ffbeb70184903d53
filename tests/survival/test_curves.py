"""Kaplan–Meier curves and hazards: by loops, known answers, and those of scikit-survival."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sksurv.datasets import load_gbsg2, load_veterans_lung_cancer, load_whas500
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.nonparametric import kaplan_meier_estimator, nelson_aalen_estimator
from sksurv.util import Surv

from manykernels import MKRidge, load, save
from manykernels.survival import (
    StepFunction,
    cumulative_baseline_hazard,
    kaplan_meier,
    survival_curves,
)

SEEDS = range(8)


def sample(seed, n=40, ties=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(0, 12, n).astype(float) if ties else rng.exponential(size=n)
    return rng.random(n) < 0.6, time


# -- Kaplan and Meier ----------------------------------------------------------------------------


def product_by_loops(event, time, weight, censoring=False):
    """Times, the product, Greenwood's sum, and numbers at risk."""
    times, product, greenwood, at_risk = [], [], [], []
    survival, total = 1.0, 0.0
    for moment in sorted({t for t, w in zip(time, weight, strict=True) if w > 0}):
        n = lost = 0.0
        rows = list(zip(event, time, weight, strict=True))
        for happened, t, w in rows:
            # At equal times events come first, and their samples are no longer at risk.
            gone = t < moment or (censoring and happened and t == moment)
            n += 0.0 if gone else w
            lost += w if t == moment and happened != censoring else 0.0
        if lost:
            survival *= 1.0 - lost / n
            total += lost / (n * (n - lost)) if n > lost else np.nan
        times.append(moment)
        product.append(survival)
        greenwood.append(total)
        at_risk.append(sum(w for _, t, w in rows if t >= moment))
    return tuple(map(np.array, (times, product, greenwood, at_risk)))


@pytest.mark.parametrize("censoring", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_curve_by_loops(seed, censoring):
    event, time = sample(seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(time)) / 2.0
    times, product, greenwood, at_risk = product_by_loops(event, time, weight, censoring)
    curve = kaplan_meier(event, time, sample_weight=weight, censoring=censoring)
    assert_array_equal(curve.times, times)
    assert_allclose(curve.survival, product, atol=1e-14)
    assert_allclose(curve.standard_error, product * np.sqrt(greenwood), atol=1e-14)
    assert_allclose(curve.n_at_risk, at_risk)
    assert_allclose(curve.n_events + curve.n_censored, -np.diff(np.append(at_risk, 0.0)))


@pytest.mark.parametrize("load_data", [load_gbsg2, load_whas500, load_veterans_lung_cancer])
def test_the_curve_is_that_of_scikit_survival(load_data):
    y = load_data()[1]
    event, time = (y[name] for name in y.dtype.names)
    curve = kaplan_meier(event, time, confidence=0.9)
    times, survival, (low, high) = kaplan_meier_estimator(
        event, time, conf_type="log-log", conf_level=0.9
    )
    assert_array_equal(curve.times, times)
    assert_allclose(curve.survival, survival, rtol=1e-10, atol=1e-15)
    positive = survival > 0.0
    assert_allclose(curve.low[positive], low[positive], rtol=1e-10)
    assert_allclose(curve.high[positive], high[positive], rtol=1e-10)
    _, remaining = kaplan_meier_estimator(event, time, reverse=True)
    assert_allclose(kaplan_meier(event, time, censoring=True).survival, remaining, rtol=1e-10)


def test_leukaemia():
    """The 6-MP group of Freireich et al. (1963), as in any textbook."""
    time = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    event = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    curve = kaplan_meier(event, time)
    known = [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    assert_allclose(curve([6, 7, 10, 13, 16, 22, 23]), known, atol=5e-5)
    errors = curve.standard_error[np.isin(curve.times, [6, 7, 10, 13, 16, 22, 23])]
    assert_allclose(errors, [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346], atol=5e-5)
    assert curve.median == 23.0
    assert curve.at_risk([0, 6, 6.5, 34.5, 36]).tolist() == [21, 21, 17, 1, 0]
    assert_allclose(curve.interval(10.0), [0.5032, 0.8894], atol=5e-5)


def test_values_between_and_beyond_times():
    curve = kaplan_meier([1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0])
    assert curve(0.5) == 1.0
    assert_allclose(curve([1.0, 2.9, 3.0, 4.0]), [0.75, 0.75, 0.375, 0.375])
    assert_allclose(curve.just_before([1.0, 1.1, 3.0, 3.1]), [1.0, 0.75, 0.75, 0.375])
    assert np.isnan(curve(4.1))
    assert np.isnan(curve(np.nan))
    assert np.isnan(curve.just_before(4.1))
    assert np.isnan(curve.interval([0.0, 5.0])).tolist() == [[False, False], [True, True]]
    assert curve.median == 3.0
    assert np.isnan(kaplan_meier([1, 0, 0, 0], [1.0, 2.0, 3.0, 4.0]).median)
    gone = kaplan_meier([1, 1], [1.0, 2.0])
    assert gone([2.0, 9.0]).tolist() == [0.0, 0.0]


def test_the_interval_at_its_ends():
    curve = kaplan_meier([0, 1, 1, 1], [1.0, 2.0, 3.0, 4.0])
    assert (curve.low[0], curve.high[0]) == (1.0, 1.0)
    assert (curve.low[3], curve.high[3]) == (0.0, curve.high[2])
    assert np.isnan(curve.standard_error[3])
    assert (curve.low[:3] <= curve.survival[:3]).all()
    assert (curve.survival <= curve.high).all()
    assert kaplan_meier([1], [2.0]).interval(2.0).tolist() == [0.0, 1.0]
    assert kaplan_meier([0], [2.0]).interval(2.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_of_a_curve_count_as_copies(seed):
    event, time = sample(seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(time))
    weighted = kaplan_meier(event, time, sample_weight=weight)
    copies = kaplan_meier(np.repeat(event, weight), np.repeat(time, weight))
    for name in ("times", "survival", "standard_error", "low", "high", "n_at_risk"):
        assert_allclose(getattr(weighted, name), getattr(copies, name), rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_product_of_both_curves_is_the_share_at_risk(seed):
    """S(t) G(t) is the share of samples observed longer, whatever the ties."""
    event, time = sample(seed)
    survival, remaining = (kaplan_meier(event, time, censoring=c) for c in (False, True))
    longer = (time[:, None] > survival.times).mean(axis=0)
    assert_allclose(survival.survival * remaining.survival, longer, atol=1e-14)


@pytest.mark.slow
def test_intervals_of_curves_cover_the_truth():
    rng, hits = np.random.default_rng(0), []
    for _ in range(1000):
        time, end = rng.exponential(size=60), rng.exponential(2.0, size=60)
        curve = kaplan_meier(time <= end, np.minimum(time, end))
        low, high = curve.interval(0.7)
        hits.append(low <= np.exp(-0.7) <= high)
    assert 0.93 <= np.mean(hits) <= 0.97


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 0], [1.0, 2.0]), {"confidence": 95}, "confidence must be between 0 and 1, got 95"),
        (([1, 0], [1.0, 2.0]), {"sample_weight": [0, 0]}, "at least one non-zero"),
        (([1, 0], [1.0, 2.0]), {"sample_weight": [1, -1]}, "[Nn]egative"),
        (([1, 2], [1.0, 2.5]), {}, "The event must be boolean or 0 and 1"),
        (([1, 0], [1.0, -2.0]), {}, "time is -2 in row 1"),
    ],
)
def test_what_kaplan_and_meier_refuse(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        kaplan_meier(*arguments, **options)


# -- hazards -------------------------------------------------------------------------------------


def breslow_by_loops(event, time, risk, weight, entry, moment):
    """Cumulative hazard up to a moment."""
    n, total = len(time), 0.0
    for i in range(n):
        if event[i] and weight[i] > 0 and time[i] <= moment:
            at_risk = [
                weight[j] * np.exp(risk[j])
                for j in range(n)
                if time[j] >= time[i] and entry[j] < time[i]
            ]
            total += weight[i] / sum(at_risk)
    return total


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_baseline_hazard_by_loops(seed, truncated):
    rng = np.random.default_rng(seed)
    event, time = sample(seed, 30)
    risk, weight = 2.0 * rng.standard_normal(30), rng.integers(0, 3, 30) / 2.0
    strata = rng.choice(["a", "b"], 30)
    entry = time - rng.integers(1, 9, 30) if truncated else None
    entries = np.full(30, -np.inf) if entry is None else entry
    options = {"sample_weight": weight, "entry": entry}
    together = cumulative_baseline_hazard(event, time, risk, **options)
    apart = cumulative_baseline_hazard(event, time, risk, strata=strata, **options)
    assert set(apart) == {"a", "b"}
    moments = np.arange(0.0, time[weight > 0].max() + 0.5, 0.5)
    every = np.ones(30, bool)
    for hazard, rows in ((together, every), *((apart[s], strata == s) for s in apart)):
        assert hazard.end == time[rows & (weight > 0)].max()
        columns = [column[rows] for column in (event, time, risk, weight, entries)]
        some = moments[moments <= hazard.end]
        known = [breslow_by_loops(*columns, moment) for moment in some]
        assert_allclose(hazard(some), known, rtol=1e-12)


def test_without_risks_it_is_nelson_and_aalen():
    event, time = sample(3, 60)
    hazard = cumulative_baseline_hazard(event, time, np.zeros(60))
    assert_allclose(hazard(np.unique(time)), nelson_aalen_estimator(event, time)[1], rtol=1e-12)


@pytest.mark.parametrize("load_data", [load_whas500, load_veterans_lung_cancer])
def test_hazard_and_curves_are_those_of_scikit_survival(load_data):
    X, y = load_data()
    X = X.select_dtypes("number").astype(float)
    X = (X - X.mean()) / X.std()
    model = CoxPHSurvivalAnalysis().fit(X, y)
    event, time = (y[name] for name in y.dtype.names)
    risk = model.predict(X)
    hazard = cumulative_baseline_hazard(event, time, risk)
    known = model.cum_baseline_hazard_
    assert_allclose(hazard(known.x), known.y, rtol=1e-10)
    assert hazard.domain == known.domain
    curves = survival_curves(hazard, risk[:5])
    for curve, other in zip(curves, model.predict_survival_function(X[:5]), strict=True):
        assert_allclose(curve(other.x), other.y, rtol=1e-10)
        assert curve.domain == other.domain


def test_a_constant_moves_from_the_risks_to_the_hazard():
    event, time = sample(1)
    risk = np.random.default_rng(1).standard_normal(40)
    plain, moved = (cumulative_baseline_hazard(event, time, risk + c) for c in (0.0, 3.0))
    assert_allclose(moved.y, np.exp(-3.0) * plain.y)
    for one, other in zip(
        survival_curves(plain, risk), survival_curves(moved, risk + 3.0), strict=True
    ):
        assert_allclose(one.y, other.y)


def test_weights_of_a_hazard_count_as_copies():
    event, time = sample(2)
    rng = np.random.default_rng(2)
    risk, weight = rng.standard_normal(40), rng.integers(0, 3, 40)
    copied = [np.repeat(column, weight) for column in (event, time, risk)]
    weighted = cumulative_baseline_hazard(event, time, risk, sample_weight=weight)
    assert_allclose(weighted.y, cumulative_baseline_hazard(*copied).y)


def test_risks_far_apart():
    """Sums that overflow and terms that vanish beside others."""
    hazard = cumulative_baseline_hazard([1, 1, 0], [1.0, 2.0, 3.0], [900.0, 0.0, -900.0])
    assert_allclose(hazard.y, [0.0, 1.0])
    curves = survival_curves(hazard, [1000.0, 0.0, -1000.0])
    assert_allclose([curve(3.0) for curve in curves], [0.0, np.exp(-1.0), 1.0])
    with pytest.raises(ValueError, match="risk is as low as -900"):
        cumulative_baseline_hazard([1, 0], [1.0, 2.0], [-900.0, -900.0])


def test_no_events_no_hazard():
    hazard = cumulative_baseline_hazard([0, 0], [1.0, 2.0], [0.0, 1.0])
    assert hazard([0.0, 2.0]).tolist() == [0.0, 0.0]
    assert hazard.end == 2.0
    apart = cumulative_baseline_hazard(
        [1, 0, 0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0], strata=[1, 1, 2]
    )
    assert list(apart) == [1, 2]
    assert apart[2](3.0) == 0.0


@pytest.mark.parametrize(
    "strata", [[True, False, True], ["b", "a", "b"], [2, 1, 2], np.array([2, "a", 2], object)]
)
def test_strata_of_every_kind(strata):
    hazards = cumulative_baseline_hazard([1, 1, 0], [1.0, 2.0, 3.0], [0.0] * 3, strata=strata)
    assert list(hazards) == list(strata[:2])
    assert {type(key) for key in hazards} <= {int, str}
    assert hazards[strata[0]](3.0) == 0.5
    assert hazards[strata[1]](2.0) == 1.0


@pytest.mark.parametrize(
    ("risk", "options", "message"),
    [
        ([0.0], {}, "risk has 1 entries for 2 samples"),
        ([0.0, np.nan], {}, "risk must be finite, but is nan in row 1"),
        (["a", "b"], {}, "risk must be numbers"),
        ([[1.0, 2.0], [3.0, 4.0]], {}, r"risk must have one entry per sample; .* \(2, 2\)"),
        ([0.0, 0.0], {"strata": [1]}, "strata must have 2 entries"),
        ([0.0, 0.0], {"strata": [1.0, np.nan]}, "strata is missing in row 1"),
        ([0.0, 0.0], {"strata": [None, "a"]}, "strata is missing in row 0"),
        ([0.0, 0.0], {"entry": [0.0, 2.0]}, "entry must be before time, .* in row 1"),
    ],
)
def test_what_a_hazard_refuses(risk, options, message):
    with pytest.raises(ValueError, match=message):
        cumulative_baseline_hazard([1, 0], [1.0, 2.0], risk, **options)


# -- step functions ------------------------------------------------------------------------------


def test_values_of_a_step_function():
    function = StepFunction([1.0, 2.0], [0.5, 0.25], before=1.0, end=3.0)
    assert function([[0.0, 1.0], [1.5, 3.0]]).tolist() == [[1.0, 0.5], [0.5, 0.25]]
    assert isinstance(function(2.0), float)
    assert function.domain == (0.0, 3.0)
    assert StepFunction([], [], before=1.0)(5.0) == 1.0
    for late in (3.5, [1.0, np.nan]):
        with pytest.raises(ValueError, match="is known up to the time 3, not at"):
            function(late)


def test_what_a_step_function_refuses():
    for x, y in (([1.0, 1.0], [0.0, 0.0]), ([1.0], [0.0, 1.0]), ([[1.0]], [[1.0]])):
        with pytest.raises(ValueError, match="x must be increasing times, and y as many values"):
            StepFunction(x, y)


def test_step_functions_in_model_files(tmp_path):
    model = MKRidge().fit(np.arange(12.0)[:, None], np.arange(12.0))
    model.hazard_ = StepFunction([1.0, 2.0], [0.5, 0.75], end=3.0)
    model.hazards_ = {"a": model.hazard_, "b": StepFunction([], [], end=1.0)}
    save(model, tmp_path / "model.skops")
    twin = load(tmp_path / "model.skops")
    assert twin.hazard_([0.0, 1.0, 3.0]).tolist() == [0.0, 0.5, 0.75]
    assert twin.hazard_.domain == (0.0, 3.0)
    assert list(twin.hazards_) == ["a", "b"]


def test_frames_and_series_are_taken():
    y = Surv.from_arrays([True, False, True], [1.0, 2.0, 3.0])
    frame = pd.DataFrame(y)
    one = kaplan_meier(frame["event"], frame["time"])
    assert_array_equal(one.survival, kaplan_meier(y["event"], y["time"]).survival)
