"""make_survival_views: the model it documents, which views matter, and censoring."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sksurv.linear_model import CoxPHSurvivalAnalysis

from manykernels.datasets import make_survival_views
from manykernels.metrics import concordance_index
from manykernels.survival import cumulative_baseline_hazard


def test_names_shapes_and_kinds():
    views, y, risk = make_survival_views(50, n_features=4, random_state=0)
    assert views.names == ["genes", "mutations", "proteins"]
    assert {table.shape for _, table in views.items()} == {(50, 4)}
    assert set(np.unique(views["mutations"])) == {0.0, 1.0}
    assert y.dtype == [("event", "?"), ("time", "<f8")]
    assert y.shape == risk.shape == (50,)
    assert (y["time"] > 0.0).all()


@pytest.mark.parametrize("censoring", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("signal", [0.0, 1.0, 4.0])
def test_the_share_of_censored_patients(censoring, signal):
    _, y, risk = make_survival_views(20_000, signal=signal, censoring=censoring, random_state=0)
    assert np.mean(~y["event"]) == pytest.approx(censoring, abs=0.01)
    assert risk.std() == pytest.approx(signal, rel=0.05)
    assert risk.mean() == pytest.approx(0.0, abs=0.05 * signal)


def test_times_are_those_of_the_model():
    _, y, risk = make_survival_views(5000, censoring=0.0, random_state=0)
    assert stats.kstest(np.exp(risk) * y["time"] / 24.0, "expon").pvalue > 0.01


def test_the_baseline_hazard_is_that_of_the_model():
    _, y, risk = make_survival_views(20_000, random_state=0)
    hazard = cumulative_baseline_hazard(y["event"], y["time"], risk)
    times = np.array([6.0, 12.0, 24.0, 36.0])
    assert_allclose(hazard(times), times / 24.0, rtol=0.05)


def test_two_views_matter_and_one_does_not():
    views, y, risk = make_survival_views(2000, n_features=5, random_state=0)
    scores = {}
    for name, table in views.items():
        model = CoxPHSurvivalAnalysis().fit(table[:1000], y[:1000])
        test = y[1000:]
        scores[name] = concordance_index(test["event"], test["time"], model.predict(table[1000:]))
    best = concordance_index(y["event"], y["time"], risk)
    assert 0.65 < scores["genes"] < best
    assert 0.65 < scores["mutations"] < best
    assert scores["proteins"] == pytest.approx(0.5, abs=0.03)


def test_the_linear_truth_is_found():
    views, y, risk = make_survival_views(20_000, n_features=3, censoring=0.2, random_state=1)
    X = np.hstack([table for _, table in views.items()])
    model = CoxPHSurvivalAnalysis().fit(X, y)
    found = model.predict(X)
    assert_allclose(found - found.mean(), risk - risk.mean(), atol=0.3)
    assert np.abs(model.coef_[-3:]).max() < 0.05


def test_more_censoring_leaves_the_rest_as_it_was():
    views, y, risk = make_survival_views(60, censoring=0.0, random_state=5)
    more, censored, same = make_survival_views(60, censoring=0.6, random_state=5)
    for name in views.names:
        assert_array_equal(views[name], more[name])
    assert_array_equal(risk, same)
    assert y["event"].all()
    event = censored["event"]
    assert_array_equal(censored["time"][event], y["time"][event])
    assert (censored["time"][~event] < y["time"][~event]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 1}, "n_samples must be at least 2; got 1"),
        ({"n_features": 0}, "n_features must be at least 1; got 0"),
        ({"signal": -1.0}, "signal must be a number of at least 0; got -1.0"),
        ({"censoring": 1.0}, r"censoring must be a share in \[0, 1\); got 1.0"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_survival_views(**options)
