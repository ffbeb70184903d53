"""Scores of survival models: sums over all pairs, laws, and those of scikit-survival."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sksurv.datasets import load_veterans_lung_cancer, load_whas500
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import brier_score as sksurv_brier_score
from sksurv.metrics import concordance_index_censored
from sksurv.metrics import concordance_index_ipcw as sksurv_ipcw
from sksurv.metrics import integrated_brier_score as sksurv_integrated
from sksurv.util import Surv

from manykernels import MKFDA, load, save
from manykernels.metrics import (
    SCORERS,
    brier_score,
    concordance_index,
    concordance_index_ipcw,
    concordance_interval,
    integrated_brier_score,
)
from manykernels.metrics.survival import (
    SURVIVAL_SCORERS,
    concordance_influences,
    partial_likelihood_scorer,
)
from manykernels.survival import kaplan_meier, survival_array
from tests.problems import slow

SEEDS = range(10)


def sample(seed, n=30, ties=True):
    """Events, times, risks and weights."""
    rng = np.random.default_rng(seed)
    if ties:
        time, risk = rng.integers(0, 10, n).astype(float), rng.integers(0, 8, n).astype(float)
    else:
        time, risk = rng.exponential(size=n), rng.standard_normal(n)
    return rng.random(n) < 0.6, time, risk, rng.integers(0, 4, n) / 2.0


def proportional(rng, n, slope, censoring=0.5):
    """Exponential times whose logarithmic rates are the risks, and independent censoring."""
    risk = slope * rng.standard_normal(n)
    time, end = rng.exponential(np.exp(-risk)), rng.exponential(1.0 / censoring, n)
    return time <= end, np.minimum(time, end), risk


# -- concordance ---------------------------------------------------------------------------------


def concordance_by_loops(event, time, risk, first, second, strata=None):
    """Share of comparable pairs in the right order, with weights of both sides of a pair."""
    right = total = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            later = time[j] > time[i] or (time[j] == time[i] and not event[j])
            if event[i] and later and (strata is None or strata[i] == strata[j]):
                pair = first[i] * second[j]
                total += pair
                right += pair * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return right / total


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 9, 31, 65])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_index_by_loops(seed, n):
    event, time, risk, weight = sample(seed, n)
    time[0], weight[0] = 12.0, 1.0  # observed longest
    event[np.argmin(time)], weight[np.argmin(time)] = True, 1.0
    ones = np.ones(n)
    expected = concordance_by_loops(event, time, risk, ones, ones)
    assert concordance_index(event, time, risk) == pytest.approx(expected, abs=1e-14)
    weighted = concordance_by_loops(event, time, risk, weight, weight)
    found = concordance_index(event, time, risk, sample_weight=weight)
    assert found == pytest.approx(weighted, abs=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_index_within_strata_by_loops(seed):
    event, time, risk, weight = sample(seed)
    # Of one stratum there is a single sample, which is compared with none.
    strata = np.append(["only"], np.random.default_rng(seed).choice(["a", "b"], 29))
    ones = np.ones(30)
    expected = concordance_by_loops(event, time, risk, ones, ones, strata)
    assert concordance_index(event, time, risk, strata=strata) == pytest.approx(expected)
    weighted = concordance_by_loops(event, time, risk, weight, weight, strata)
    found = concordance_index(event, time, risk, sample_weight=weight, strata=strata)
    assert found == pytest.approx(weighted)
    first = np.zeros(30)
    first[event] = kaplan_meier(event, time, censoring=True).just_before(time[event]) ** -2.0
    expected = concordance_by_loops(event, time, risk, first, ones, strata)
    assert concordance_index_ipcw(event, time, risk, strata=strata) == pytest.approx(expected)
    assert concordance_index(event, time, risk, strata=ones) == concordance_index(
        event, time, risk
    )


def test_strata_without_pairs():
    with pytest.raises(ValueError, match="No two of the 3 samples of one stratum can be compared"):
        concordance_index([1, 1, 0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], strata=["a", "b", "c"])


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_index_is_that_of_scikit_survival(seed, ties):
    event, time, risk, _ = sample(seed, 80, ties)
    expected = concordance_index_censored(event, time, risk)[0]
    assert concordance_index(event, time, risk) == pytest.approx(expected, abs=1e-12)


def test_known_indices():
    event, time = [1, 1, 0], [1.0, 2.0, 3.0]
    assert concordance_index(event, time, [3.0, 2.0, 1.0]) == 1.0
    assert concordance_index(event, time, [1.0, 2.0, 3.0]) == 0.0
    assert concordance_index(event, time, [7.0, 7.0, 7.0]) == 0.5
    # An event is compared with a sample that was censored at the same time, not with an event.
    assert concordance_index([1, 0], [1.0, 1.0], [2.0, 1.0]) == 1.0
    with pytest.raises(ValueError, match="No two of the 2 samples can be compared"):
        concordance_index([1, 1], [1.0, 1.0], [2.0, 1.0])


@pytest.mark.parametrize("seed", SEEDS)
def test_laws_of_the_index(seed):
    event, time, risk, _ = sample(seed, ties=False)
    index = concordance_index(event, time, risk)
    assert concordance_index(event, time, -risk) == pytest.approx(1.0 - index)
    assert concordance_index(event, time, np.exp(risk)) == index
    assert concordance_index(event, time**3, risk) == index
    order = np.random.default_rng(seed).permutation(len(time))
    assert concordance_index(event[order], time[order], risk[order]) == index
    twice = [np.tile(column, 2) for column in (event, time, risk)]
    weight = np.full(len(time), 2.0)
    # Copies of an event are not compared with each other, nor are pairs with themselves.
    assert concordance_index(event, time, risk, sample_weight=weight) == pytest.approx(index)
    assert concordance_index(*twice) == pytest.approx(index)


def test_many_samples_are_no_problem():
    event, time, risk = proportional(np.random.default_rng(0), 20_000, 1.0)
    assert concordance_index(event, time, risk) == pytest.approx(0.733, abs=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_influences_are_derivatives(seed):
    event, time, risk, weight = sample(seed)
    influences = concordance_influences(event, time, risk, sample_weight=weight)
    step = 1e-5
    for i in np.flatnonzero(weight):
        sides = []
        for sign in (1.0, -1.0):
            moved = weight.copy()
            moved[i] *= np.exp(sign * step)
            sides.append(concordance_index(event, time, risk, sample_weight=moved))
        assert influences[i] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-8)
    assert not influences[weight == 0].any()
    # The index does not change if all weights grow.
    assert influences.sum() == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_influences_within_strata_are_derivatives(seed):
    event, time, risk, weight = sample(seed)
    strata = np.arange(len(time)) % 2
    options = {"sample_weight": weight, "strata": strata}
    influences = concordance_influences(event, time, risk, **options)
    step = 1e-5
    for i in np.flatnonzero(weight):
        sides = []
        for sign in (1.0, -1.0):
            moved = weight.copy()
            moved[i] *= np.exp(sign * step)
            options["sample_weight"] = moved
            sides.append(concordance_index(event, time, risk, **options))
        assert influences[i] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-8)


def test_the_standard_error_is_that_of_the_jackknife():
    event, time, risk = proportional(np.random.default_rng(0), 400, 1.0)
    rows = np.arange(400)
    left_out = [
        concordance_index(*(column[rows != i] for column in (event, time, risk))) for i in rows
    ]
    error = np.sqrt(399.0 / 400.0 * np.sum((left_out - np.mean(left_out)) ** 2))
    result = concordance_interval(event, time, risk)
    assert result.standard_error == pytest.approx(error, rel=0.02)
    assert result.index == concordance_index(event, time, risk)


@pytest.mark.parametrize("slope", [0.5, *slow(1.0, 3.0)])
def test_intervals_of_the_index_cover_the_truth(slope):
    rng = np.random.default_rng(0)
    truth = concordance_index(*proportional(rng, 60_000, slope))
    hits = []
    for _ in range(400):
        result = concordance_interval(*proportional(rng, 40, slope))
        assert 0.0 <= result.low <= result.index <= result.high <= 1.0
        hits.append(result.low <= truth <= result.high)
    assert 0.92 <= np.mean(hits) <= 0.98


def test_intervals_where_all_pairs_agree():
    event, time = np.ones(20, bool), np.arange(20.0)
    best = concordance_interval(event, time, -time)
    # Ten disjoint pairs, of which all are right: Wilson's interval of 10 in 10.
    quantile = 2.1009  # of Student's distribution with 18 degrees of freedom
    assert (best.index, best.standard_error, best.high) == (1.0, 0.0, 1.0)
    assert best.low == pytest.approx(10.0 / (10.0 + quantile**2), abs=1e-4)
    worst = concordance_interval(event, time, time)
    assert (worst.low, worst.high) == (0.0, pytest.approx(1.0 - best.low))
    equal = concordance_interval(event, time, np.zeros(20))
    assert (equal.low, equal.index, equal.high) == (0.5, 0.5, 0.5)
    narrow = concordance_interval(event, time, -time, confidence=0.5)
    assert narrow.low > best.low
    one = concordance_interval([1, 0], [1.0, 2.0], [2.0, 1.0])
    assert 0.0 < one.low < 0.1


# -- inverse probabilities of censoring ----------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_unos_index_by_loops(seed):
    event, time, risk, weight = sample(seed)
    event[np.argmin(time)] = True
    weight[np.argmin(time)] = weight[np.argmax(time)] = 1.0
    train_event, train_time, _, _ = sample(seed + 100)
    train_time[0] = 11.0
    for train, tau in ((None, None), ((train_event, train_time), 7.5)):
        target = (event, time) if train is None else train
        remaining = kaplan_meier(*target, censoring=True)
        counted = event & (time < (np.inf if tau is None else tau))
        first = np.zeros(len(time))
        # The probability of no censoring before the event.
        first[counted] = 1.0 / remaining.just_before(time[counted]) ** 2
        expected = concordance_by_loops(event, time, risk, weight * first, weight)
        found = concordance_index_ipcw(
            event, time, risk, train=train, tau=tau, sample_weight=weight
        )
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_unos_index_is_that_of_scikit_survival(seed):
    """Where no sample was censored at the time of an event."""
    event, time, risk, _ = sample(seed, 80, ties=False)
    train_event, train_time, _, _ = sample(seed + 50, 200, ties=False)
    train, test = (Surv.from_arrays(*y) for y in ((train_event, train_time), (event, time)))
    tau = min(np.quantile(time, 0.9), train_time.max())
    found = concordance_index_ipcw(event, time, risk, train=train, tau=tau)
    assert found == pytest.approx(sksurv_ipcw(train, test, risk, tau)[0], abs=1e-10)
    # scikit-survival has no probability for the last sample if it was censored.
    event[np.argmax(time)] = True
    test = Surv.from_arrays(event, time)
    found = concordance_index_ipcw(event, time, risk)
    assert found == pytest.approx(sksurv_ipcw(test, test, risk)[0], abs=1e-10)


def test_without_censoring_unos_index_is_harrells():
    event, time, risk, weight = sample(0)
    event[:] = True
    expected = concordance_index(event, time, risk, sample_weight=weight)
    found = concordance_index_ipcw(event, time, risk, sample_weight=weight)
    assert found == pytest.approx(expected)


def test_unos_index_does_not_depend_on_censoring():
    rng = np.random.default_rng(0)
    risk = 1.5 * rng.standard_normal(20_000)
    time = rng.exponential(np.exp(-risk))
    everything = time < np.inf
    tau = 2.0
    truth = concordance_index_ipcw(everything, time, risk, tau=tau)
    end = rng.exponential(1.5, len(time))
    event, observed = time <= end, np.minimum(time, end)
    found = concordance_index_ipcw(event, observed, risk, tau=tau)
    assert found == pytest.approx(truth, abs=0.003)
    # Harrell's leaves out pairs of late events, which are harder to tell apart.
    assert concordance_index(event, observed, risk) > truth + 0.008


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_sum_to_the_number_of_samples(seed):
    """Of events so far and survivors, at any time, also if times are tied."""
    event, time, _, _ = sample(seed)
    times = np.unique(time)[:-1]
    # With zero probabilities of survival, errors are 1 for survivors and 0 for events.
    survivors = brier_score(event, time, np.zeros((30, len(times))), times)
    events = brier_score(event, time, np.ones((30, len(times))), times)
    assert_allclose(survivors, kaplan_meier(event, time)(times), atol=1e-14)
    assert_allclose(survivors + events, 1.0)


def brier_by_loops(event, time, survival, moment, remaining, weight):
    total = 0.0
    for i in range(len(time)):
        if time[i] > moment:
            total += weight[i] * (1.0 - survival[i]) ** 2 / remaining(moment)
        elif event[i]:
            total += weight[i] * survival[i] ** 2 / remaining.just_before(time[i])
    return total / weight.sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_brier_scores_by_loops(seed):
    event, time, _, weight = sample(seed)
    train_event, train_time, _, _ = sample(seed + 100)
    train_time[0] = 12.0
    times = np.array([0.0, 2.5, 6.0])
    survival = np.random.default_rng(seed).random((30, 3))
    for train in (None, survival_array((train_event, train_time))):
        target = (event, time) if train is None else (train_event, train_time)
        remaining = kaplan_meier(*target, censoring=True)
        expected = [
            brier_by_loops(event, time, survival[:, k], moment, remaining, weight)
            for k, moment in enumerate(times)
        ]
        options = {"train": train, "sample_weight": weight}
        scores = brier_score(event, time, survival, times, **options)
        assert_allclose(scores, expected, rtol=1e-12)
        mean = (2.5 * (scores[0] + scores[1]) / 2 + 3.5 * (scores[1] + scores[2]) / 2) / 6.0
        integrated = integrated_brier_score(event, time, survival, times, **options)
        assert integrated == pytest.approx(mean)


@pytest.mark.parametrize("seed", SEEDS)
def test_brier_scores_are_those_of_scikit_survival(seed):
    event, time, _, _ = sample(seed, 60, ties=False)
    train_event, train_time, _, _ = sample(seed + 50, 200, ties=False)
    train_time[0] = 1.1 * max(time.max(), train_time.max())
    times = np.quantile(time, [0.1, 0.3, 0.5, 0.8])
    survival = np.sort(np.random.default_rng(seed).random((60, 4)), axis=1)[:, ::-1]
    train, test = (Surv.from_arrays(*y) for y in ((train_event, train_time), (event, time)))
    scores = brier_score(event, time, survival, times, train=train)
    assert_allclose(scores, sksurv_brier_score(train, test, survival, times)[1], rtol=1e-10)
    integrated = integrated_brier_score(event, time, survival, times, train=train)
    assert integrated == pytest.approx(sksurv_integrated(train, test, survival, times), rel=1e-10)


def test_known_brier_scores():
    event, time = [1, 1, 0, 0], [1.0, 2.0, 3.0, 4.0]
    half = np.full((4, 2), 0.5)
    assert_allclose(brier_score(event, time, half, [1.5, 2.5]), 0.25)
    right = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    assert integrated_brier_score(event, time, right, [1.5, 2.5]) == 0.0


# -- what is refused -----------------------------------------------------------------------------

Y = ([1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: concordance_index(*Y, [1, 2, 3]), "risk has 3 entries for 4 samples"),
        (lambda: concordance_index(*Y, [1, 2, np.inf, 3]), "risk must be finite, .* row 2"),
        (lambda: concordance_index([0] * 4, Y[1], Y[1]), "No two of the 4 samples"),
        (lambda: concordance_index(Y[1], Y[0], Y[1]), "event and time seem to be exchanged"),
        (lambda: concordance_index(*Y, Y[1], sample_weight=[1, 2]), "sample_weight"),
        (lambda: concordance_index(*Y, Y[1], sample_weight=[-1, 1, 1, 1]), "[Nn]egative"),
        (lambda: concordance_index(*Y, Y[1], sample_weight=[0, 1, 0, 1]), "No two"),
        (lambda: concordance_index_ipcw(*Y, Y[1], tau=1.0), "No event is before tau=1"),
        (
            lambda: concordance_index_ipcw(*Y, Y[1], train=([1, 0], [1.5, 2.5])),
            "observed beyond 2.5, .* up to 3 is not known: choose a smaller tau",
        ),
        (
            lambda: concordance_index_ipcw(*Y, Y[1], train=[1, 2, 3]),
            "y must be a structured array",
        ),
        (lambda: concordance_interval(*Y, Y[1], confidence=1.0), "confidence must be between"),
        (lambda: brier_score(*Y, np.ones((4, 2)), [1.0]), r"column for each of 1 .*\(4, 2\)"),
        (
            lambda: brier_score(*Y, [[0.0], [1.0], [1.5], [0.0]], [1.0]),
            "is 1.5 in row 2, column 0",
        ),
        (lambda: brier_score(*Y, [[0.0], [1.0], [np.nan], [0.0]], [1.0]), "is nan in row 2"),
        (lambda: brier_score(*Y, np.ones((4, 1)), [4.0]), "beyond 4, .* up to 4 is not known"),
        (lambda: brier_score(*Y, np.ones((4, 1)), [4.5]), "beyond 4, .* choose earlier times"),
        (lambda: brier_score(*Y, np.ones((4, 1)), [np.nan]), "times must be finite"),
        (
            lambda: brier_score(*Y, np.ones((4, 1)), [2.0], train=([1, 0], [1.0, 1.5])),
            "beyond 1.5, .* up to 2 is not known",
        ),
        (lambda: integrated_brier_score(*Y, np.ones((4, 1)), [1.0]), "at least two times"),
        (lambda: integrated_brier_score(*Y, np.ones((4, 2)), [2.0, 1.0]), "increasing order"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- scorers -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def veterans():
    X, y = load_veterans_lung_cancer()
    X = X.select_dtypes("number").astype(float)
    return (X - X.mean()) / X.std(), y


def _log_likelihood(event, time, risk):
    """Logarithm of Efron's partial likelihood, by its definition."""
    total = 0.0
    for moment in np.unique(time[event]):
        tied = event & (time == moment)
        total += risk[tied].sum()
        for term in range(tied.sum()):
            share = term / tied.sum()
            total -= np.log(np.exp(risk[time >= moment]).sum() - share * np.exp(risk[tied]).sum())
    return total


@pytest.mark.parametrize("name", SURVIVAL_SCORERS)
def test_scorers_in_cross_validation(name, veterans):
    X, y = veterans
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(
        CoxPHSurvivalAnalysis(), X, y, scoring=SCORERS[name], cv=folds, error_score="raise"
    )
    for score, (train, test) in zip(scores, folds.split(X), strict=True):
        model = CoxPHSurvivalAnalysis().fit(X.iloc[train], y[train])
        event, time = y[test]["Status"], y[test]["Survival_in_days"]
        risk = model.predict(X.iloc[test])
        if name == "neg_integrated_brier_score":
            times = np.unique(time[event])
            times = times[(times <= y[train]["Survival_in_days"].max()) & (times < time.max())]
            curves = model.predict_survival_function(X.iloc[test])
            survival = np.array([curve(times) for curve in curves])
            expected = -integrated_brier_score(event, time, survival, times)
            assert -0.25 < expected < -0.05
        elif name == "partial_likelihood":
            deviances = [-_log_likelihood(event, time, f) for f in (risk, np.zeros(len(test)))]
            # Both less that of a model that knows the order, Σ log(d − l) for d tied events.
            _, ties = np.unique(time[event], return_counts=True)
            least = sum(np.sum(np.log(d - np.arange(d))) for d in ties)
            expected = 1.0 - (deviances[0] - least) / (deviances[1] - least)
            assert -0.2 < expected < 0.3
        else:
            expected = globals()[name](event, time, risk)
            assert 0.6 < expected < 0.9
        assert score == pytest.approx(expected)


def test_scorers_of_other_models(veterans):
    X, y = veterans
    forest = RandomSurvivalForest(n_estimators=5, random_state=0)
    scores = cross_validate(
        forest,
        X,
        y,
        scoring=SURVIVAL_SCORERS,
        cv=KFold(2, shuffle=True, random_state=0),
        error_score="raise",
    )
    assert all(np.isfinite(scores[f"test_{name}"]).all() for name in SURVIVAL_SCORERS)


def test_scorers_in_a_search():
    X, y = load_whas500()
    X = X[["age", "bmi", "hr"]].astype(float)
    search = GridSearchCV(
        CoxPHSurvivalAnalysis(),
        {"alpha": [0.1, 1.0]},
        scoring={name: SCORERS[name] for name in SURVIVAL_SCORERS},
        refit="concordance_index",
        cv=3,
        error_score="raise",
    ).fit((X - X.mean()) / X.std(), y)
    assert search.best_score_ > 0.6


class Risk(BaseEstimator):
    """Returns the first column as risk, as an array of one column."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X)[:, :1]


def test_scorers_take_every_form_of_y_and_weights():
    event, time, risk, weight = sample(0)
    expected = concordance_index(event, time, risk, sample_weight=weight)
    scorer = SCORERS["concordance_index"]
    for y in (
        survival_array((event, time)),
        pd.DataFrame({"time": time, "event": event}),
        (event, time),
    ):
        assert scorer(Risk(), risk[:, None], y, sample_weight=weight) == expected


def test_what_scorers_refuse():
    event, time, risk, _ = sample(0)
    y = survival_array((event, time))
    with pytest.raises(ValueError, match="Risk has no predict_survival_function"):
        SCORERS["neg_integrated_brier_score"](Risk(), risk[:, None], y)
    with pytest.raises(ValueError, match="y must be a structured array"):
        SCORERS["concordance_index"](DummyRegressor().fit([[0]], [0]), risk[:, None], time)

    class Short(Risk):
        def predict_survival_function(self, X):
            curve = lambda times: np.ones(len(times))  # noqa: E731
            curve.domain = (0.0, 0.0)
            return [curve] * len(X)

    with pytest.raises(ValueError, match=r"y has \d distinct event times up to 0, the end of"):
        SCORERS["neg_integrated_brier_score"](Short(), risk[:, None], y)


@pytest.mark.parametrize("name", SCORERS)
def test_models_with_these_scorers_are_saved(name, tmp_path):
    model = MKFDA().fit(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1])
    model.scoring = SCORERS[name]
    save(model, tmp_path / "model.skops")
    assert callable(load(tmp_path / "model.skops").scoring)


def test_the_share_of_the_partial_deviance_falls_with_the_number_of_samples():
    # The same true risks, judged in parts of twenty samples and all together.
    rng = np.random.default_rng(0)
    risk = rng.normal(size=(800, 1))
    y = survival_array((np.ones(800, bool), rng.exponential(np.exp(-risk[:, 0]))))

    class Given(BaseEstimator):
        def predict(self, X):
            return X[:, 0]

    parts = np.arange(800).reshape(-1, 20)
    alone = [partial_likelihood_scorer(Given(), risk[part], y[part]) for part in parts]
    assert np.mean(alone) > 2.0 * partial_likelihood_scorer(Given(), risk, y) > 0.0
