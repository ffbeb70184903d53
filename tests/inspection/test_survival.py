"""Importance for survival times and counts: by hand, intervals, every form of y."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import StratifiedKFold

from manykernels import MKGLM, MKGLMCV, MKSVR, KernelStack, MKCox, MKCoxCV, view_importance
from manykernels.estimators.held_out import deviance_losses
from manykernels.estimators.smooth import loss_maker
from manykernels.inspection.intervals import Intervals
from manykernels.inspection.scoring import discordances
from manykernels.losses.smooth import SmoothFunction
from manykernels.metrics import concordance_index, concordance_interval
from manykernels.survival import survival_array
from tests.inspection.problems import KERNEL, stack_of

COX = MKCox(KERNEL, p=1, reg=1.0)


def views_and_survival(n=80, seed=0):
    """A strong view, a weaker one, and noise; times with some ties, a third is censored."""
    rng = np.random.default_rng(seed)
    strong, weak, noise = rng.standard_normal((3, n, 2))
    times = rng.exponential(np.exp(-2.0 * strong[:, 0] - weak[:, 0])).round(2)
    ends = rng.exponential(3.0, n).round(2)
    y = survival_array((times <= ends, np.minimum(times, ends)))
    return {"strong": strong, "weak": weak, "noise": noise}, y


VIEWS, Y = views_and_survival()
EVENT, TIME = Y["event"], Y["time"]
OPTIONS = {"n_resamples": 0, "cv": 3}


@pytest.fixture(scope="module")
def result():
    return view_importance(COX, VIEWS, Y, **OPTIONS)


# -- by hand ---------------------------------------------------------------------------------


def test_folds_are_what_they_are_by_hand():
    stack, splits = stack_of(VIEWS), list(StratifiedKFold(3).split(EVENT, EVENT))
    found = view_importance(MKCox("precomputed", p=1.5), stack, Y, cv=splits, n_resamples=0)

    def index(kernels, **params):
        risk, some = np.empty(len(Y)), stack.select(kernels)
        for train, test in splits:
            model = MKCox("precomputed", **{"p": 1.5, **params})
            model.fit(some[np.ix_(train, train)], Y[train])
            risk[test] = model.predict(some[np.ix_(test, train)])
        return concordance_index(EVENT, TIME, risk)

    every = index([0, 1, 2])
    assert found.scoring == "concordance_index"
    assert found.score == pytest.approx(every)
    for j in range(3):
        assert found.fall[j] == pytest.approx(every - index(np.delete(range(3), j)))
        assert found.alone[j] == pytest.approx(index([j]))
    assert found.plain_sum == pytest.approx(index([0, 1, 2], p=np.inf, reg=3 ** (1 / 1.5)))


def test_intervals_tell_the_strong_view_from_noise(result):
    assert result.fall_interval[0, 0] > 0.05
    assert result.fall_interval[2, 0] < 0.0 < result.fall_interval[2, 1]
    assert result.score_interval[0] < result.score < result.score_interval[1] <= 1.0
    assert result.method == "3 folds held out"


def test_every_form_of_y_gives_the_same(result):
    labels = [f"s{i}" for i in range(len(Y))]
    frames = {name: pd.DataFrame(view, index=labels) for name, view in VIEWS.items()}
    shuffled = pd.DataFrame({"died": EVENT, "months": TIME}, index=labels).sample(
        frac=1.0, random_state=0
    )
    found = view_importance(COX, VIEWS, (EVENT, TIME), **OPTIONS)
    assert_allclose(found.fall, result.fall)
    with pytest.warns(UserWarning, match="rows of y have the labels of X in another order"):
        found = view_importance(COX, frames, shuffled, **OPTIONS)
    assert_allclose(found.fall, result.fall)
    assert_allclose(found.fall_interval, result.fall_interval)


def test_pairs_of_samples_that_both_models_judge():
    """Some samples have the strong view only: falls are those of pairs of the others."""
    stack = stack_of(VIEWS)
    strong, weak = stack.kernel("strong"), stack.kernel("weak").copy()
    weak[60:], weak[:, 60:] = np.nan, np.nan
    matrices = KernelStack.from_arrays({"strong": strong, "weak": weak}, missing=True)
    options = {"p": 1, "reg": 1.0, "missing": "mean"}
    splits = list(StratifiedKFold(3).split(EVENT, EVENT))
    model = MKCox("precomputed", **options)
    found = view_importance(model, matrices, Y, cv=splits, n_resamples=0)
    both, alone = np.zeros(len(Y)), np.zeros(60)
    for train, test in splits:
        model.fit(matrices[np.ix_(train, train)], Y[train])
        both[test] = model.predict(matrices[np.ix_(test, train)])
        some, tested = train[train < 60], test[test < 60]
        part = MKCox("precomputed", **options).fit(weak[np.ix_(some, some)], Y[some])
        alone[tested] = part.predict(weak[np.ix_(tested, some)])
    first = slice(0, 60)
    of_others = concordance_index(EVENT[first], TIME[first], alone)
    fall = concordance_index(EVENT[first], TIME[first], both[first]) - of_others
    assert found.score == pytest.approx(concordance_index(EVENT, TIME, both))
    assert found.alone[1] == pytest.approx(of_others)
    assert found.fall[0] == pytest.approx(fall)


def test_a_search_is_judged_by_its_held_out_risks():
    model = MKCoxCV(KERNEL, ps=[1, 2], regs=[1.0, 10.0], cv=3)
    fitted = model.fit(VIEWS, Y)
    found = view_importance(model, VIEWS, Y, n_resamples=2)
    expected = concordance_index(EVENT, TIME, fitted.left_out_predictions_)
    assert found.score == pytest.approx(expected, abs=1e-3)
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.resampled_weights.shape == (2, 3)


def test_other_scores_and_functions():
    with pytest.raises(ValueError, match="Choose one of 'concordance_index', or pass a function"):
        view_importance(COX, VIEWS, Y, scoring="r2")
    with pytest.raises(ValueError, match="requires y"):
        view_importance(COX, VIEWS, None)
    with pytest.raises(ValueError, match="event must be boolean or 0 and 1"):
        view_importance(COX, VIEWS, (EVENT + 1, TIME))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        view_importance(COX, VIEWS, Y[:-1])


def test_a_function_of_events_and_risks():
    def squares(y, risk):
        return np.where(y["event"], risk - 1.0, risk + 1.0) ** 2

    found = view_importance(COX, VIEWS, Y, scoring=squares, **OPTIONS)
    assert found.scoring == "squares"
    assert found.score < 0


# -- intervals -------------------------------------------------------------------------------


def test_linearised_losses_have_the_error_of_the_jackknife():
    rng = np.random.default_rng(0)
    risk, weights = -TIME + rng.standard_normal(len(Y)), rng.integers(1, 4, len(Y)).astype(float)
    losses = discordances(Y, risk, weights)
    index = concordance_index(EVENT, TIME, risk, sample_weight=weights)
    assert np.average(losses, weights=weights) == pytest.approx(1.0 - index)
    losses = discordances(Y, risk, np.ones(len(Y)))
    known = concordance_interval(EVENT, TIME, risk)
    found = Intervals(np.ones(len(Y)), 0.95, np.inf, events=EVENT).of(losses).times(-1.0, 1.0)
    assert found.value == pytest.approx(known.index)
    # The variance of n samples is divided by n − 1 here, by n there.
    error = known.standard_error * np.sqrt(len(Y) / (len(Y) - 1))
    quantile = stats.t.isf(0.025, EVENT.sum() - 1)
    n = known.index * (1 - known.index) / error**2
    centre = (n * known.index + 0.5 * quantile**2) / (n + quantile**2)
    assert (found.low + found.high) / 2 == pytest.approx(centre)
    assert found.low == pytest.approx(known.low, abs=2e-3)
    assert found.high == pytest.approx(known.high, abs=2e-3)


def test_samples_of_a_group_are_one_sample():
    """Every sample twice, in groups: the interval is that of the samples once."""
    risk = -TIME + np.random.default_rng(0).standard_normal(len(Y))
    once = Intervals(np.ones(len(Y)), 0.95, events=EVENT)
    expected = once.of(discordances(Y, risk, np.ones(len(Y))))
    rows = np.repeat(np.arange(len(Y)), 2)
    twice = Intervals(np.ones(len(rows)), 0.95, groups=rows, events=EVENT[rows])
    found = twice.of(discordances(Y[rows], risk[rows], np.ones(len(rows))))
    assert_allclose(
        [found.value, found.low, found.high], [expected.value, expected.low, expected.high]
    )


def test_perfect_and_equal_risks():
    weights = np.ones(50)
    some = survival_array((np.arange(50) % 3 > 0, 1.0 + np.arange(50)))
    losses = discordances(some, -some["time"], weights)
    perfect = Intervals(weights, 0.95, np.inf, events=some["event"]).of(losses)
    assert perfect.value == pytest.approx(0.0, abs=1e-12)
    assert 0.0 == perfect.low < perfect.high < 0.3
    # With three events there are three disjoint pairs at most.
    few = survival_array((np.arange(50) < 3, 1.0 + np.arange(50)))
    losses = discordances(few, -few["time"], weights)
    wide = Intervals(weights, 0.95, np.inf, events=few["event"]).of(losses)
    assert wide.high > 0.7
    losses = discordances(some, np.zeros(50), weights)
    equal = Intervals(weights, 0.95, np.inf, events=some["event"]).of(losses)
    assert (equal.value, equal.low, equal.high) == (0.5, 0.5, 0.5)


# -- counts ----------------------------------------------------------------------------------


def views_and_counts(n=60):
    rng = np.random.default_rng(0)
    views = dict(zip(("a", "b"), rng.standard_normal((2, n, 2)), strict=True))
    return views, rng.poisson(np.exp(1.0 + 0.7 * views["a"][:, 0]))


def test_counts_are_judged_by_their_deviance():
    views, y = views_and_counts()
    model = MKGLMCV(KERNEL, ps=[1, 2], regs=[1.0, 10.0], cv=3)
    found = view_importance(model, views, y, n_resamples=0)
    assert found.scoring == "d2"
    fitted = model.fit(views, y)
    assert found.score == pytest.approx(fitted.left_out_score_, abs=1e-3)
    assert found.score == pytest.approx(
        d2_tweedie_score(y, fitted.left_out_predictions_, power=1), abs=1e-3
    )
    assert found.fall[0] > 0.2 > found.fall[1]


def test_losses_of_counts_sum_to_the_deviance():
    rng = np.random.default_rng(0)
    y, means = rng.poisson(2.0, 30).astype(float), rng.uniform(1.0, 3.0, 30)
    weights = rng.integers(1, 4, 30).astype(float)
    judged = np.ones(30, bool)
    losses = deviance_losses(loss_maker("poisson"), y, means, weights, judged)
    expected = 1.0 - d2_tweedie_score(y, means, power=1, sample_weight=weights)
    assert np.average(losses, weights=weights) == pytest.approx(expected)
    judged[::3] = False
    some = deviance_losses(loss_maker("poisson"), y, means, weights, judged)
    assert_allclose(some, losses[judged], rtol=1e-6)


class Squares(SmoothFunction):
    """Half the squared errors, times the sample weights unless they are ignored."""

    link = "identity"
    ignored = False

    def __init__(self, y, sample_weight=None):
        self.y = np.asarray(y, dtype=float)[:, None]
        weight = np.ones(len(self.y)) if sample_weight is None else np.asarray(sample_weight)
        self.weight = (np.ones(len(self.y)) if self.ignored else weight)[:, None]
        self.has_bias = True

    def value(self, outputs):
        return 0.5 * float(np.sum(self.weight * (outputs - self.y) ** 2))

    def gradient(self, outputs):
        return self.weight * (outputs - self.y)

    def hessian(self, outputs):
        return self.weight * np.ones_like(outputs)


class Unweighted(Squares):
    ignored = True


def test_losses_of_users():
    """D² of squared errors is R²; a loss that ignores sample weights has no interval."""
    views, y = views_and_counts()
    options = {"n_resamples": 0, "cv": 3}
    found = view_importance(MKGLM(KERNEL, loss=Squares), views, y, **options)
    expected = view_importance(MKGLM(KERNEL, loss=Squares), views, y, scoring="r2", **options)
    assert_allclose([found.score, *found.fall], [expected.score, *expected.fall], rtol=1e-6)
    assert_allclose(found.fall_interval, expected.fall_interval, rtol=1e-6)
    with pytest.raises(ValueError, match="no sum over samples of losses times sample weights"):
        view_importance(MKGLM(KERNEL, loss=Unweighted), views, y, **options)


def test_whole_numbers_have_predictions_between_them():
    views, y = views_and_counts()
    options = {"n_resamples": 0, "cv": 3}
    whole = view_importance(MKSVR(KERNEL), views, y, **options)
    same = view_importance(MKSVR(KERNEL), views, y.astype(float), **options)
    assert whole.score == same.score


# -- strata and entries ----------------------------------------------------------------------

STRATA = np.where(np.arange(len(Y)) % 3, "north", "south")
LATER = survival_array((EVENT, TIME + 1.0))
ENTRY = np.where(np.arange(len(Y)) % 2, 0.0, 0.3 * LATER["time"])


def test_strata_and_entries_by_hand():
    stack, splits = stack_of(VIEWS), list(StratifiedKFold(3).split(EVENT, EVENT))
    found = view_importance(
        *(MKCox("precomputed", p=1.5), stack, LATER),
        **{"cv": splits, "n_resamples": 3, "strata": STRATA, "entry": ENTRY},
    )
    assert found.resampled_weights.shape == (3, 3)

    def index(kernels):
        risk, some = np.empty(len(Y)), stack.select(kernels)
        for train, test in splits:
            model = MKCox("precomputed", p=1.5).fit(
                some[np.ix_(train, train)], LATER[train], strata=STRATA[train], entry=ENTRY[train]
            )
            risk[test] = model.predict(some[np.ix_(test, train)])
        return concordance_index(EVENT, TIME, risk, strata=STRATA)

    assert found.score == pytest.approx(index([0, 1, 2]))
    assert found.fall[1] == pytest.approx(index([0, 1, 2]) - index([0, 2]))
    assert found.score_interval[0] < found.score < found.score_interval[1]


def test_strata_of_a_search():
    model = MKCoxCV("precomputed", ps=[2.0], regs=[1.0], cv=3)
    stack = stack_of(VIEWS)
    found = view_importance(model, stack, Y, n_resamples=0, strata=STRATA)
    held_out = model.fit(stack, Y, strata=STRATA).left_out_predictions_
    assert found.score == pytest.approx(concordance_index(EVENT, TIME, held_out, strata=STRATA))


def test_strata_are_matched_by_label():
    labels = [f"s{i}" for i in range(len(Y))]
    frames = {name: pd.DataFrame(view, index=labels) for name, view in VIEWS.items()}
    shuffled = pd.Series(STRATA, index=labels).sample(frac=1.0, random_state=0)
    options = {"cv": 3, "n_resamples": 0}
    y = pd.DataFrame({"event": EVENT, "time": TIME}, index=labels)
    with pytest.warns(UserWarning, match="another order"):
        found = view_importance(COX, frames, y, strata=shuffled, **options)
    assert found.score == view_importance(COX, VIEWS, Y, strata=STRATA, **options).score


def test_strata_are_for_survival_models():
    with pytest.raises(TypeError, match="strata is for survival models, and MKSVR is none"):
        view_importance(MKSVR(KERNEL), VIEWS, TIME, strata=STRATA)
