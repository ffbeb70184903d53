"""Survival: curves of groups, the table beneath, and calibration at a horizon."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sksurv.linear_model import CoxPHSurvivalAnalysis

from manykernels.datasets import make_survival_views
from manykernels.display import SurvivalCalibrationDisplay, SurvivalDisplay
from manykernels.display.base import COLORS
from manykernels.display.survival import risk_groups
from manykernels.survival import kaplan_meier, survival_array

VIEWS, Y, RISK = make_survival_views(90, n_features=3, random_state=0)


def rows_of(display):
    return [[text.get_text() for text in row] for row in display.table_]


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


# -- curves --------------------------------------------------------------------------------------


def test_curves_are_those_of_kaplan_and_meier():
    display = SurvivalDisplay.from_predictions(Y, RISK, unit="months")
    assert display.names == ["low risk", "medium risk", "high risk"]
    order = np.argsort(RISK)
    for i, rows in enumerate(np.split(order, 3)):
        curve = kaplan_meier(Y["event"][rows], Y["time"][rows])
        x, y = display.lines_[i].get_data()
        assert_array_equal(x, [0.0, *curve.times])
        assert_allclose(y, [1.0, *curve.survival])
        assert_allclose(display.intervals[i], np.column_stack([curve.low, curve.high]))
        assert display.lines_[i].get_drawstyle() == "steps-post"
        assert to_hex(display.lines_[i].get_color()) == COLORS[i]
    # High risks fall first.
    assert display.survival[2][-1] < display.survival[1][-1] < display.survival[0][-1]


def test_the_table_has_the_numbers_at_risk():
    display = SurvivalDisplay.from_predictions(Y, RISK, n_groups=2, unit="months")
    display.figure_.canvas.draw()
    ticks = display.ax_.get_xticks()
    assert ticks[0] == 0.0
    groups = risk_groups(RISK, 2)
    expected = [
        [str(int((Y["time"][groups == group] >= tick).sum())) for tick in ticks]
        for group in range(2)
    ]
    assert rows_of(display) == expected
    assert [row[0] for row in expected] == ["45", "45"]
    assert {"at risk", "months", "low risk", "high risk"} <= set(texts_of(display.ax_))
    # Numbers are beneath their ticks, rows below each other, and all within the figure.
    renderer = display.figure_.canvas.get_renderer()
    frame = display.figure_.bbox
    for row in display.table_:
        for tick, text in zip(ticks, row, strict=True):
            box = text.get_window_extent(renderer)
            centre = display.ax_.transData.transform((tick, 0.0))[0]
            assert 0.5 * (box.x0 + box.x1) == pytest.approx(centre, abs=1.0)
            assert box.y0 >= frame.y0
    first, second = (row[0].get_window_extent(renderer) for row in display.table_)
    assert second.y1 <= first.y0 + 1.0


def test_a_narrow_figure_has_fewer_columns_and_no_overlap():
    figure, ax = plt.subplots(figsize=(3.2, 3.6), layout="constrained")
    display = SurvivalDisplay.from_predictions(Y, RISK, unit="months", ax=ax)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    wide = SurvivalDisplay.from_predictions(Y, RISK)
    assert 2 <= len(display.table_[0]) < len(wide.table_[0])
    boxes = [text.get_window_extent(renderer) for text in display.ax_.texts if text.get_text()]
    for i, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_given_groups_and_their_order():
    arms = np.where(np.arange(90) % 3 == 0, "treated", "control")
    display = SurvivalDisplay.from_groups(Y, arms)
    assert display.names == ["control", "treated"]
    assert [row[0] for row in rows_of(display)] == ["60", "30"]
    display = SurvivalDisplay.from_groups(Y, arms, order=["treated", "control"], color="red")
    assert display.names == ["treated", "control"]
    assert to_hex(display.lines_[1].get_color()) == "#ff0000"
    frame = pd.DataFrame(Y)
    assert SurvivalDisplay.from_groups(frame, pd.Series(arms)).names == ["control", "treated"]


def test_samples_that_are_censored_are_strokes():
    y = survival_array(([True, False, False, True], [1.0, 2.0, 3.0, 4.0]))
    display = SurvivalDisplay.from_predictions(y, [0.0] * 4, n_groups=1)
    assert display.names == ["all"]
    curve, strokes = display.ax_.lines
    assert curve is display.lines_[0]
    assert strokes.get_marker() == "|"
    assert strokes.get_xdata().tolist() == [2.0, 3.0]


def test_estimators():
    X = VIEWS["genes"]
    model = CoxPHSurvivalAnalysis().fit(X[:60], Y[:60])
    display = SurvivalDisplay.from_estimator(model, X[60:], Y[60:], n_groups=2, unit="months")
    expected = SurvivalDisplay.from_predictions(Y[60:], model.predict(X[60:]), n_groups=2)
    assert_array_equal(display.survival[0], expected.survival[0])
    assert display.unit == "months"
    with pytest.raises(NotFittedError):
        SurvivalDisplay.from_estimator(CoxPHSurvivalAnalysis(), X, Y)


def test_many_groups_have_names():
    names = SurvivalDisplay.from_predictions(Y, RISK, n_groups=4).names
    assert names == ["risk 1 (lowest)", "risk 2", "risk 3", "risk 4 (highest)"]


def test_groups_of_risks():
    rng = np.random.default_rng(0)
    for n in (3, 10, 11, 12, 200):
        groups = risk_groups(rng.standard_normal(n), 3)
        assert np.ptp(np.bincount(groups)) <= 1
    assert risk_groups(np.array([1.0, 1.0, 1.0, 2.0, 3.0]), 2).tolist() == [0, 0, 0, 1, 1]
    for risk, number in (([1.0, 1.0, 1.0, 2.0], 3), ([1.0, 1.0], 2)):
        with pytest.raises(ValueError, match=f"into n_groups={number} groups of similar size"):
            risk_groups(np.array(risk), number)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SurvivalDisplay.from_predictions(Y, RISK[1:]), "risk has 89 entries for 90"),
        (lambda: SurvivalDisplay.from_predictions(Y, RISK, n_groups=0), "between 1 and 90"),
        (lambda: SurvivalDisplay.from_predictions(RISK, RISK), "y must be a structured array"),
        (lambda: SurvivalDisplay.from_groups(Y, ["a"]), r"each of 90 samples; got the shape \(1,"),
        (
            lambda: SurvivalDisplay.from_groups(Y, ["a"] * 90, order=["a", "b"]),
            "No sample is in the group 'b'",
        ),
        (lambda: SurvivalDisplay(["a"], [], [], [], [], []), "times must have an array for each"),
        (
            lambda: SurvivalDisplay(["a"], [[1.0]], [[1.0, 2.0]], [[[0, 1]]], [[1]], [[0]]),
            r"survival\[0\] must be numbers at the times; got the shape \(2,\)",
        ),
    ],
)
def test_what_curves_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- calibration ---------------------------------------------------------------------------------

HORIZON = 12.0
TRUTH = np.exp(-np.exp(RISK) * HORIZON / 24.0)


def test_groups_and_their_survival():
    display = SurvivalCalibrationDisplay.from_predictions(
        Y, TRUTH, HORIZON, n_groups=3, name="truth", unit="months"
    )
    for i, rows in enumerate(np.split(np.argsort(TRUTH), 3)):
        curve = kaplan_meier(Y["event"][rows], Y["time"][rows])
        assert display.predicted[i] == pytest.approx(TRUTH[rows].mean())
        assert display.observed[i] == pytest.approx(curve(HORIZON))
        assert_allclose(display.intervals[i], curve.interval(HORIZON))
    assert display.sizes.tolist() == [30.0] * 3
    assert_array_equal(display.line_.get_xdata(), display.predicted)
    assert display.ax_.get_title(loc="left") == "Survival up to 12 months, truth"


def test_true_probabilities_are_calibrated_and_others_are_not():
    _, y, risk = make_survival_views(3000, random_state=1)
    truth = np.exp(-np.exp(risk) * HORIZON / 24.0)
    right = SurvivalCalibrationDisplay.from_predictions(y, truth, HORIZON)
    assert_allclose(right.predicted, right.observed, atol=0.05)
    wrong = SurvivalCalibrationDisplay.from_predictions(y, truth**3, HORIZON)
    assert np.abs(wrong.predicted - wrong.observed).max() > 0.15


def test_groups_that_were_not_observed_so_long():
    y = survival_array(([1, 0, 0, 1, 0, 1], [1.0, 2.0, 3.0, 1.0, 5.0, 6.0]))
    display = SurvivalCalibrationDisplay.from_predictions(
        y, [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], 4.0, n_groups=2
    )
    assert np.isnan(display.observed).tolist() == [True, False]
    assert "1 of 2 groups not observed so long" in display.ax_.get_xlabel()
    assert display.line_.get_xdata().tolist() == [pytest.approx(0.8)]


def test_calibration_of_an_estimator():
    X = VIEWS["genes"]
    model = CoxPHSurvivalAnalysis().fit(X[:60], Y[:60])
    display = SurvivalCalibrationDisplay.from_estimator(model, X[60:], Y[60:], 6.0, n_groups=2)
    assert display.name == "CoxPHSurvivalAnalysis"
    survival = np.array([curve(6.0) for curve in model.predict_survival_function(X[60:])])
    expected = SurvivalCalibrationDisplay.from_predictions(Y[60:], survival, 6.0, n_groups=2)
    assert_allclose(display.predicted, expected.predicted)

    with pytest.raises(ValueError, match="Ridge has no predict_survival_function"):
        SurvivalCalibrationDisplay.from_estimator(Ridge().fit(X, Y["time"]), X, Y, 6.0)


@pytest.mark.parametrize(
    ("survival", "horizon", "message"),
    [
        (TRUTH + 1.0, 12.0, r"survival must be probabilities, but is 1.* in row 0"),
        (-TRUTH, 12.0, "survival must be probabilities"),
        (TRUTH[1:], 12.0, "survival has 89 entries for 90 samples"),
        (TRUTH, -1.0, "horizon is -1, but samples were observed from 0 to"),
        (TRUTH, 1e6, "horizon is 1e.06, but samples were observed from 0 to"),
    ],
)
def test_what_calibration_refuses(survival, horizon, message):
    with pytest.raises(ValueError, match=message):
        SurvivalCalibrationDisplay.from_predictions(Y, survival, horizon)


def test_sample_weights_count_samples():
    weights = np.random.default_rng(0).integers(1, 3, len(Y))
    rows = np.repeat(np.arange(len(Y)), weights)
    groups = risk_groups(RISK, 3)
    weighted = SurvivalDisplay.of_predictions(Y, RISK, sample_weight=weights)
    for k in range(3):
        repeated = rows[groups[rows] == k]
        curve = kaplan_meier(Y["event"][repeated], Y["time"][repeated])
        assert_allclose(weighted.survival[k], curve.survival)
        assert_array_equal(weighted.at_risk[k], curve.n_at_risk)
    survival = 1.0 / (1.0 + np.exp(RISK))
    display = SurvivalCalibrationDisplay.of_predictions(Y, survival, 6, sample_weight=weights)
    groups = risk_groups(survival, 5)
    for k in range(5):
        repeated = rows[groups[rows] == k]
        assert display.predicted[k] == pytest.approx(survival[repeated].mean())
        curve = kaplan_meier(Y["event"][repeated], Y["time"][repeated])
        assert display.observed[k] == pytest.approx(curve(6.0))
