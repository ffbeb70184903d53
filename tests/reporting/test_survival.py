"""Reports of survival models, counts and logistic regression."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from manykernels import MKGLMCV, MKCox, MKCoxCV, MKLogisticCV, MKRidge, report
from manykernels.datasets import make_survival_views
from manykernels.kernels import RBF
from manykernels.metrics import concordance_index, concordance_interval
from manykernels.reporting.html import Report
from manykernels.reporting.summary import summarize
from manykernels.survival import kaplan_meier
from tests.reporting.pages import Page

VIEWS, Y, _ = make_survival_views(90, n_features=3, random_state=0)
NEW, Y_NEW, _ = make_survival_views(60, n_features=3, random_state=0)
GRID = {"ps": [1, 2], "regs": [1.0, 10.0], "cv": 3}


@cache
def model():
    return MKCoxCV(RBF(), **GRID).fit(VIEWS, Y)


@cache
def contents():
    return summarize(model(), VIEWS, Y)


def test_held_out_risks_are_judged():
    judged, risk = contents()["judged"], model().left_out_predictions_
    index, explained = judged["scores"]
    assert index["name"] == "concordance index"
    assert index["value"] == pytest.approx(concordance_index(Y["event"], Y["time"], risk))
    # Models of folds share samples, so that the interval is wider than of new samples.
    plain = concordance_interval(Y["event"], Y["time"], risk)
    assert index["low"] < plain.low < plain.high < index["high"]
    assert explained["value"] == pytest.approx(model().left_out_score_)
    assert judged["how"].startswith("90 training samples, held out in 3 folds")
    assert judged["n_events"] == Y["event"].sum()
    assert contents()["kind"] == "survival analysis"
    assert contents()["answers"][1]["answer"].startswith(f"Concordance index {index['value']:.3f}")
    assert "Equal risks of all samples: 0.500." in contents()["answers"][1]["detail"]


def test_curves_are_those_of_thirds_of_the_held_out_risks():
    curves, risk = contents()["judged"]["curves"], model().left_out_predictions_
    assert curves["names"] == ["low risk", "medium risk", "high risk"]
    for i, rows in enumerate(np.split(np.argsort(risk), 3)):
        curve = kaplan_meier(Y["event"][rows], Y["time"][rows])
        assert_allclose(curves["survival"][i], curve.survival)
        assert_allclose(curves["at_risk"][i], curve.n_at_risk)


def test_calibration_is_that_of_held_out_risks_and_the_hazard_of_the_model():
    calibration, risk = contents()["judged"]["survival"], model().left_out_predictions_
    groups = calibration["groups"]
    assert calibration["held_out"]
    assert groups["horizon"] == pytest.approx(np.median(Y["time"][Y["event"]]), rel=5e-3)
    hazard = model().baseline_hazard_(groups["horizon"])
    survival = np.exp(-np.exp(risk) * hazard)
    for i, rows in enumerate(np.split(np.argsort(survival), 5)):
        assert groups["predicted"][i] == pytest.approx(survival[rows].mean())
        curve = kaplan_meier(Y["event"][rows], Y["time"][rows])
        assert groups["observed"][i] == pytest.approx(curve(groups["horizon"]))


def test_the_page():
    data = contents()
    json.dumps(data, allow_nan=False)
    page = Page(Report(data).html)
    assert page.unbalanced == []
    assert {"learnt", "judged", "proof", "choice", "data"} <= set(page.sections)
    html = Report(data).html
    for text in (
        "Survival by predicted risk",
        "low risk",
        "computed from its held-out risk and the baseline hazard of the",
        f"{Y['event'].sum()} of them had the event.",
        f"{Y['event'].sum()} of 90 samples have an event, the others are censored",
        "The times of events and last observations range from",
    ):
        assert text in html


def test_new_samples_by_every_form_of_y():
    fitted = MKCox(RBF(), reg=10.0).fit(VIEWS, Y)
    expected = fitted.score(NEW, Y_NEW)
    pair = (Y_NEW["event"], Y_NEW["time"])
    for y in (Y_NEW, pair, pd.DataFrame(Y_NEW), np.column_stack(pair)):
        judged = summarize(fitted, NEW, y, new=True)["judged"]
        assert judged["how"] == "60 new samples"
        assert judged["scores"][0]["value"] == pytest.approx(expected)
    assert not judged["survival"]["held_out"]
    plain = concordance_interval(*pair, fitted.predict(NEW))
    assert judged["scores"][0]["low"] == pytest.approx(plain.low, abs=5e-3)
    assert judged["scores"][0]["high"] == pytest.approx(plain.high, abs=5e-3)


def test_sample_weights():
    weights = np.random.default_rng(0).integers(0, 3, 90)
    weighted = MKCoxCV(RBF(), **GRID).fit(VIEWS, Y, weights)
    judged = summarize(weighted, VIEWS, Y, sample_weight=weights, importance=False)["judged"]
    assert judged["scores"][1]["value"] == pytest.approx(weighted.left_out_score_)
    assert judged["n_samples"] == np.count_nonzero(weights)
    at_risk = [row[0] for row in judged["curves"]["at_risk"]]
    assert sum(at_risk) == weights.sum()


def test_importance_of_a_small_model_is_in_the_report():
    views = {name: VIEWS[name][:50] for name in ("genes", "proteins")}
    data = summarize(MKCox(RBF(), reg=10.0).fit(views, Y[:50]), views, Y[:50])
    assert data["importance"]["scoring"] == "concordance_index"
    assert data["answers"][1]["answer"].startswith("Concordance index ")
    assert "judged" not in data
    assert "no unbiased held-out predictions" in data["not_computed"][0]


def test_strata_have_hazards_of_their_own():
    strata = np.arange(90) % 2
    fitted = MKCoxCV(RBF(), ps=[2], regs=[10.0], cv=3).fit(VIEWS, Y, strata=strata)
    data = summarize(fitted, VIEWS, Y, importance=False)
    assert "every stratum has a baseline hazard of its own" in data["judged"]["survival"]
    assert "every stratum has a baseline hazard of its own" in Report(data).html


def test_strata_that_are_passed():
    strata = np.where(np.arange(90) % 2, "north", "south")
    entry = np.zeros(90)
    fitted = MKCoxCV(RBF(), ps=[2], regs=[10.0], cv=3).fit(VIEWS, Y, strata=strata, entry=entry)
    data = summarize(fitted, VIEWS, Y, importance=False, strata=strata, entry=entry)
    risk, scores = fitted.left_out_predictions_, data["judged"]["scores"]
    index = concordance_index(Y["event"], Y["time"], risk, strata=strata)
    assert scores[0]["value"] == pytest.approx(index)
    assert scores[1]["value"] == pytest.approx(fitted.left_out_score_)
    groups = data["judged"]["survival"]["groups"]
    hazards = fitted.baseline_hazard_
    by_hand = [
        np.exp(-hazards[name](groups["horizon"]) * np.exp(r))
        for name, r in zip(strata, risk, strict=True)
    ]
    assert_allclose(np.average(groups["predicted"], weights=groups["sizes"]), np.mean(by_hand))
    assert "calibration is not shown" not in Report(data).html


def test_strata_of_other_models_are_refused():
    fitted = MKRidge().fit(VIEWS["genes"], Y["time"])
    with pytest.raises(TypeError, match="strata is for survival models, not MKRidge"):
        summarize(fitted, VIEWS["genes"], Y["time"], strata=np.zeros(90))
    with pytest.raises(ValueError, match="report got strata without X"):
        summarize(fitted, strata=np.zeros(90))


def test_few_samples_and_few_events():
    few = summarize(model(), {name: NEW[name][:12] for name in NEW}, Y_NEW[:12], new=True)
    assert "too few samples" in few["judged"]["survival"]
    (events,) = [check for check in few["data"]["checks"] if check["name"] == "Events"]
    assert events["good"] == (Y_NEW["event"][:12].sum() >= 10)
    Report(few).html  # noqa: B018 - it can be rendered
    none = Y_NEW[:12].copy()
    none["event"] = False
    data = summarize(model(), {name: NEW[name][:12] for name in NEW}, none, new=True)
    assert "judged" not in data
    assert any("No two of the 12 samples can be compared" in text for text in data["not_computed"])


def test_equal_risks_have_no_curves():
    views = {name: np.repeat(NEW[name][:1], 60, axis=0) for name in NEW}
    data = summarize(model(), views, Y_NEW, new=True)
    assert "curves" not in data["judged"]
    assert data["judged"]["scores"][0]["value"] == 0.5
    assert "<svg" not in Report(data).html.partition('id="judged"')[2].partition("<section")[0]


# -- logistic regression and counts ----------------------------------------------------------


def views_and_counts():
    rng = np.random.default_rng(0)
    views = {"a": rng.standard_normal((90, 2)), "b": rng.standard_normal((90, 2))}
    return views, rng.poisson(np.exp(1.0 + 0.7 * views["a"][:, 0]))


def test_probabilities_of_logistic_regression_are_compared_with_frequencies():
    views, counts = views_and_counts()
    y = np.where(counts > 2, "many", "few")
    fitted = MKLogisticCV(RBF(), **GRID).fit(views, y)
    data = summarize(fitted, views, y)
    scores = {score["name"]: score["value"] for score in data["judged"]["scores"]}
    assert scores["log loss"] == pytest.approx(-fitted.left_out_score_)
    probabilities = np.exp(fitted.left_out_log_proba_)
    assert scores["log loss"] == pytest.approx(log_loss(y, probabilities))
    bins = data["judged"]["calibration"]["bins"]
    assert sum(group["n"] for group in bins) == 90
    means = [np.mean(part) for part in np.array_split(np.sort(probabilities[:, 1]), len(bins))]
    assert_allclose([group["said"] for group in bins], means)


def test_counts_have_the_share_of_the_deviance_that_is_explained():
    views, y = views_and_counts()
    fitted = MKGLMCV(RBF(), **GRID).fit(views, y)
    page = report(fitted, views, y)
    judged = page.data["judged"]
    explained, squares = judged["scores"][:2]
    assert explained["name"] == "D²"
    assert explained["value"] == pytest.approx(fitted.left_out_score_)
    assert explained["low"] < explained["value"] < explained["high"] < 1.0
    assert squares["name"] == "R²"
    assert judged["baseline"]["name"] == "the best constant"
    assert_allclose(np.array(judged["targets"][0]["points"])[:, 1], fitted.left_out_predictions_)
    assert "The best constant would have D² 0.000" in page.html
