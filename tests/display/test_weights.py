"""Kernel weights: bars, groups, tables."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from manykernels import MKFDA, MKSVC, ConvexLocalizedSVC, LocalizedSVC, MKRidge
from manykernels.display import WeightsDisplay
from manykernels.display.base import GREY
from manykernels.gating import KernelRegions, Sigmoid
from tests.display.importances import IMPORTANCE
from tests.estimators.registry import PAIRS, X, Y

NAMES = ["a", "b", "c", "d"]


def names_of(ax, axis="y"):
    labels = ax.get_yticklabels() if axis == "y" else ax.get_xticklabels()
    return [label.get_text() for label in labels]


def widths_of(display):
    return [bar.get_width() for bar in display.bars_]


def test_bars_are_weights_the_largest_first():
    display = WeightsDisplay([0.2, 0.0, 0.5, 0.3], NAMES, p=2).plot()
    assert widths_of(display) == [0.5, 0.3, 0.2, 0.0]
    assert names_of(display.ax_) == ["c", "d", "a", "b"]
    assert [text.get_text() for text in display.ax_.texts] == ["0.50", "0.30", "0.20", "left out"]
    assert [label.get_color() == GREY for label in display.ax_.get_yticklabels()] == [0, 0, 0, 1]
    # (Σw)²/Σw² = 1/0.38
    assert display.ax_.get_xlabel() == "p = 2, effective number of kernels 2.6 of 4"


def test_bars_in_the_order_given():
    display = WeightsDisplay([0.2, 0.0, 0.5, 0.3], NAMES).plot(sort=False, color="red")
    assert widths_of(display) == [0.2, 0.0, 0.5, 0.3]
    assert names_of(display.ax_) == NAMES
    assert to_hex(display.bars_[0].get_facecolor()) == "#ff0000"


def test_kernels_are_grouped_by_view():
    names = ["genes:rbf", "scan", "genes:linear", "clinic:rbf", "clinic:linear"]
    display = WeightsDisplay([0.1, 0.15, 0.2, 0.3, 0.25], names).plot()
    lines = ["clinic", "rbf", "linear", "genes", "linear", "rbf", "scan"]
    assert names_of(display.ax_) == lines
    bold = [label.get_weight() == "bold" for label in display.ax_.get_yticklabels()]
    assert [line for line, is_bold in zip(lines, bold, strict=True) if is_bold] == [
        "clinic",
        "genes",
    ]
    assert widths_of(display) == [0.3, 0.25, 0.2, 0.1, 0.15]
    assert [bar.get_y() + bar.get_height() / 2 for bar in display.bars_] == [1, 2, 4, 5, 6]
    in_order = WeightsDisplay([0.1, 0.15, 0.2, 0.3, 0.25], names).plot(sort=False)
    assert names_of(in_order.ax_)[:3] == ["genes", "rbf", "linear"]


def test_kernels_of_a_view_that_are_left_out_share_a_line():
    names = [f"{view}:{kernel}" for view in ("genes", "scan", "noise") for kernel in "abcd"]
    weights = np.zeros(12)
    weights[[2, 4, 5]] = 0.5, 0.2, 0.1
    display = WeightsDisplay(weights, names).plot()
    assert names_of(display.ax_) == [
        *("genes", "c", "3 others"),
        *("scan", "a", "b", "c", "d"),
        "noise, all 4",
    ]
    assert widths_of(display) == [0.5, 0.0, 0.2, 0.1, 0.0, 0.0, 0.0]
    in_order = WeightsDisplay(weights, names).plot(sort=False)
    assert len(in_order.bars_) == 12


def test_of_many_kernels_the_rest_are_one_bar():
    weights = np.arange(50.0)
    display = WeightsDisplay(weights, [f"k{j}" for j in range(50)]).plot(top=3)
    assert widths_of(display) == [49, 48, 47, weights[:47].sum()]
    assert names_of(display.ax_) == ["k49", "k48", "k47", "47 others, their sum"]
    in_order = WeightsDisplay(weights, [f"k{j}" for j in range(50)]).plot(top=2, sort=False)
    assert names_of(in_order.ax_)[:2] == ["k48", "k49"]
    with pytest.raises(ValueError, match="top must be at least 1"):
        display.plot(top=0)


def test_intervals_are_lines():
    intervals = np.array([[0.1, 0.4], [0.6, 0.8]])
    display = WeightsDisplay([0.3, 0.7], ["a", "b"], intervals=intervals).plot()
    drawn = [line.get_segments()[0] for line in display.ax_.collections]
    np.testing.assert_array_equal([line[:, 0] for line in drawn], intervals[::-1])
    np.testing.assert_array_equal([line[0, 1] for line in drawn], [0, 1])


def test_several_rows_are_a_table():
    weights = np.array([[0.2, 0.0, 0.8], [0.6, 0.4, 0.0]])
    display = WeightsDisplay(weights, list("abc"), ["x", "y"], p=np.inf).plot()
    np.testing.assert_array_equal(display.im_.get_array(), weights.T[[2, 0, 1]])
    assert names_of(display.ax_) == ["c", "a", "b"]
    assert names_of(display.ax_, "x") == ["x", "y"]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0.80", "0", "0.20", "0.60", "0", "0.40"]
    assert display.ax_.get_xlabel() == "p = ∞"


def test_large_tables_have_a_scale_and_no_numbers():
    weights = np.random.default_rng(0).random((12, 40))
    display = WeightsDisplay(weights, [f"k{j}" for j in range(40)]).plot(top=25)
    assert len(display.ax_.texts) == 0
    assert len(display.figure_.axes) == 2
    assert display.ax_.get_xlabel() == "15 kernels with smaller weights not shown"


def test_panels_may_share_their_names():
    _, axes = plt.subplots(1, 2, sharex=True, sharey=True)
    for ax, weights in zip(axes, ([0.2, 0.8], [0.6, 0.0]), strict=True):
        assert widths_of(WeightsDisplay(weights, ["a", "b"]).plot(ax, sort=False)) == weights
    assert names_of(axes[0]) == ["a", "b"]


# -- of estimators ---------------------------------------------------------------------------


def test_weights_of_estimators():
    model = MKFDA(PAIRS, p=1.5).fit(X, Y)
    display = WeightsDisplay.from_estimator(model, sort=False)
    assert widths_of(display) == model.weights_.tolist()
    assert display.data()["kernel_names"] == model.kernel_names_
    assert display.ax_.get_xlabel().startswith("p = 1.5, effective")


def test_rows_are_classes_targets_or_regions():
    model = MKSVC(PAIRS, multi_class="separate").fit(X, np.array(["one", "two", "three"])[Y])
    assert WeightsDisplay.from_estimator(model).row_names == ["one", "three", "two"]
    ridge = MKRidge(PAIRS, multi_target="separate").fit(X, X[:, :2])
    assert WeightsDisplay.from_estimator(ridge).row_names == ["target 0", "target 1"]
    options = {"regions": KernelRegions(2, sharpness=4.0), "multi_class": "separate"}
    model = ConvexLocalizedSVC(PAIRS, **options).fit(X, Y)
    _, ax = plt.subplots()
    display = WeightsDisplay.from_estimator(model, which=2, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.weights, model.weights_[2])
    sizes = [f"region {k} ({size:.0%})" for k, size in enumerate(model.region_sizes_)]
    assert display.row_names == sizes


def test_shares_of_views_with_their_spread():
    display = WeightsDisplay.from_importance(IMPORTANCE)
    np.testing.assert_array_equal(display.weights, IMPORTANCE.weight)
    np.testing.assert_array_equal(display.intervals, IMPORTANCE.weight_interval)


# -- bad input -------------------------------------------------------------------------------


def test_estimators_without_weights_are_refused():
    with pytest.raises(NotFittedError):
        WeightsDisplay.from_estimator(MKFDA())
    with pytest.raises(ValueError, match="SVC has no weights_: it learns no kernel weights"):
        WeightsDisplay.from_estimator(SVC().fit(X, Y))
    gated = LocalizedSVC(PAIRS, gating=Sigmoid(early_stopping=0, max_iter=2), tol=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="use GateDisplay"):
        WeightsDisplay.from_estimator(gated)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": [1.0, 2.0]}, r"a weight for each of 3 kernels; got the shape \(2,\)"),
        ({"weights": [[1.0, 2.0]]}, r"got the shape \(1, 2\)"),
        ({"weights": [1.0, -2.0, 0.0]}, "must not be negative"),
        ({"weights": [1.0, np.nan, 0.0]}, "must not be negative, nor NaN"),
        ({"weights": np.ones((2, 3)), "row_names": ["x"]}, "row_names must be 2 names"),
        ({"weights": np.ones((2, 3)), "intervals": np.ones((3, 2))}, "one row of weights only"),
        ({"weights": np.ones(3), "intervals": np.ones(3)}, r"3 pairs \(low, high\)"),
    ],
)
def test_wrong_shapes(given, message):
    with pytest.raises(ValueError, match=message):
        WeightsDisplay(**{"kernel_names": list("abc"), **given})
