"""Likeness of kernels, gates, importance of views, views that samples lack."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from manykernels import MKFDA, ConvexLocalizedSVC, KernelStack, LocalizedSVC, Views
from manykernels.baselines import Alignment
from manykernels.display import (
    AlignmentDisplay,
    GateDisplay,
    ImportanceDisplay,
    MissingViewsDisplay,
)
from manykernels.display.base import norm_name, power_name, shown_names, weight_name
from manykernels.gating import KernelRegions, Sigmoid
from manykernels.kernels import Linear
from tests.display.importances import IMPORTANCE
from tests.estimators.registry import PAIRS, STACK, X, Y

# -- alignment -------------------------------------------------------------------------------


def test_cells_are_alignments_and_those_with_y_are_the_last_row():
    display = AlignmentDisplay.from_stack(STACK, Y)
    expected = STACK.alignment(centered=True)
    order = display.order_
    np.testing.assert_allclose(display.im_.get_array()[:-1], expected[np.ix_(order, order)])
    known = Alignment("precomputed", normalize=None).fit(STACK, Y).alignments_
    np.testing.assert_allclose(display.im_.get_array()[-1], known[order])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [*(STACK.names[j] for j in order), "y"]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == [f"{value:.2f}" for value in display.im_.get_array().ravel()]


def test_kernels_that_are_alike_are_side_by_side():
    alignment = np.array(
        [[1.0, 0.1, 0.9, 0.1], [0.1, 1.0, 0.1, 0.8], [0.9, 0.1, 1.0, 0.1], [0.1, 0.8, 0.1, 1.0]]
    )
    order = AlignmentDisplay(alignment, list("abcd")).plot().order_.tolist()
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1
    display = AlignmentDisplay(alignment, list("abcd")).plot(clustered=False)
    np.testing.assert_array_equal(display.im_.get_array(), alignment)


def test_kernels_of_an_estimator():
    model = MKFDA(PAIRS).fit(X, Y)
    display = AlignmentDisplay.from_estimator(model, X)
    np.testing.assert_allclose(display.alignment, model.union_(X).alignment(centered=True))
    with pytest.raises(NotFittedError):
        AlignmentDisplay.from_estimator(MKFDA(PAIRS), X)
    with pytest.raises(ValueError, match=r"precomputed kernels to AlignmentDisplay\.from_stack"):
        AlignmentDisplay.from_estimator(MKFDA("precomputed").fit(STACK, Y), STACK)


def test_two_classes_and_numbers_have_kernels_too():
    centred = X[:, 0] - X[:, 0].mean()
    stack = KernelStack.from_arrays([np.outer(centred, centred)], names=["same"])
    assert AlignmentDisplay.from_stack(stack, X[:, 0]).with_targets == pytest.approx([1.0])
    two = np.where(Y == 0, "no", "yes")
    signs = (Y == 0) - np.mean(Y == 0)
    stack = KernelStack.from_arrays([np.outer(signs, signs)], names=["same"])
    assert AlignmentDisplay.from_stack(stack, two).with_targets == pytest.approx([1.0])


def test_bad_alignments():
    with pytest.raises(ValueError, match=r"3 × 3, a row and a column for every kernel"):
        AlignmentDisplay(np.eye(2), list("abc"))
    with pytest.raises(ValueError, match="a number for each of 2 kernels"):
        AlignmentDisplay(np.eye(2), list("ab"), [1.0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AlignmentDisplay.from_stack(STACK, Y[:-1])


# -- gates -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane():
    x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    kernels = [("left", Linear()), ("right", Linear())]
    options = {"C": 10.0, "gating": Sigmoid(early_stopping=0, max_iter=5), "tol": 0.1}
    return x, LocalizedSVC(kernels, **options).fit(x, x[:, 1] > np.abs(x[:, 0]))


def test_a_plane_has_a_map_for_every_kernel(plane):
    x, model = plane
    display = GateDisplay.from_estimator(model, x)
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["left", "right"]
    np.testing.assert_array_equal(display.gate, model.gate(display.points))
    for j, ax in enumerate(display.axes_):
        drawn = ax.collections[0].get_array()
        # Rows are values of the second feature, columns of the first.
        order = np.lexsort(display.points.T)
        np.testing.assert_array_equal(np.ravel(drawn), display.gate[order, j])
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), x)


def test_a_line_has_a_line_for_every_kernel():
    points, gate = np.array([[3.0], [1.0], [2.0]]), np.array([[0.3, 0.7], [0.1, 0.9], [0.2, 0.8]])
    display = GateDisplay(gate, ["a", "b"], points).plot()
    lines = {tuple(line.get_ydata()): line for line in display.ax_.lines}
    assert set(lines) == {(0.1, 0.2, 0.3), (0.9, 0.8, 0.7)}
    np.testing.assert_array_equal(lines[(0.1, 0.2, 0.3)].get_xdata(), [1, 2, 3])


def test_other_samples_are_strips_by_their_largest_kernel():
    gate = np.array([[0.1, 0.9], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7]])
    display = GateDisplay(gate, ["a", "b"]).plot()
    assert display.order_.tolist() == [2, 1, 0, 3]
    (image,) = display.ax_.get_images()
    np.testing.assert_array_equal(image.get_array(), gate[display.order_].T)


def test_of_many_kernels_those_that_count_most_have_maps():
    grid = np.column_stack([one.ravel() for one in np.meshgrid([0.0, 1.0], [0.0, 1.0])])
    gate = np.tile([0.1, 0.4, 0.2, 0.3], (4, 1))
    display = GateDisplay(gate, list("abcd"), grid).plot(top=2)
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["b", "d"]
    assert display.figure_.get_suptitle() == "Gate (2 kernels with smaller values not shown)"


def test_regions_have_shares():
    model = ConvexLocalizedSVC(PAIRS, regions=KernelRegions(2, sharpness=4.0)).fit(X, Y)
    display = GateDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.gate, model.memberships(X))
    assert display.kernel_names == ["region 0", "region 1"]
    assert display.ax_.get_title(loc="left") == "Share in regions"


def test_a_gate_for_every_class():
    gate = Sigmoid(early_stopping=0, max_iter=1)
    options = {"multi_class": "separate", "gating": gate, "tol": 1.0}
    model = LocalizedSVC(PAIRS, **options).fit(X, Y)
    display = GateDisplay.from_estimator(model, X, which=1)
    np.testing.assert_array_equal(display.gate, model.gate(X)[1])


def test_bad_gates():
    with pytest.raises(ValueError, match="MKFDA has no gate: its kernels have the same weights"):
        GateDisplay.from_estimator(MKFDA(PAIRS).fit(X, Y), X)
    with pytest.raises(NotFittedError):
        GateDisplay.from_estimator(LocalizedSVC(PAIRS), X)
    with pytest.raises(ValueError, match="a column for each of 3 kernels"):
        GateDisplay(np.ones((4, 2)), list("abc"))
    with pytest.raises(ValueError, match="4 rows with one or two columns"):
        GateDisplay(np.ones((4, 1)), ["a"], np.ones((4, 3)))


# -- importance ------------------------------------------------------------------------------


def test_three_panels_of_an_importance():
    display = ImportanceDisplay.from_importance(IMPORTANCE)
    fall, alone, weight = display.axes_
    for ax, interval, values in (
        (fall, IMPORTANCE.fall_interval, IMPORTANCE.fall),
        (alone, IMPORTANCE.alone_interval, IMPORTANCE.alone),
    ):
        segments = ax.collections[0].get_segments()
        np.testing.assert_array_equal(segments[0][:, 0], interval[0])
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), values)
    np.testing.assert_array_equal(weight.lines[0].get_xdata(), [0.7, 0.8, 1.0])
    np.testing.assert_array_equal(weight.lines[2].get_xdata(), IMPORTANCE.weight)
    assert [text.get_text() for text in weight.texts] == ["100%", "67%"]
    assert [label.get_text() for label in fall.get_yticklabels()] == ["a", "b"]
    caption = fall.get_xlabel()
    assert caption == "Gain over the plain sum +0.020 [-0.010, +0.050];\nintervals at 90%"
    assert IMPORTANCE.plot().axes[1].get_title(loc="left") == "accuracy alone (line: all)"


# -- missing views ---------------------------------------------------------------------------


def test_patterns_are_counted():
    first = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan]}, index=list("wxyz"))
    second = pd.DataFrame({"b": [1.0, 2.0, 5.0]}, index=list("xyz"))
    display = MissingViewsDisplay.from_views({"first": first, "second": second})
    assert display.data() == {
        "patterns": [[True, True], [False, True], [True, False]],
        "counts": [2, 1, 1],
        "view_names": ["first", "second"],
    }
    has = {tuple(place) for place in display.present_.get_offsets().astype(int).tolist()}
    assert has == {(j, i) for i, j in np.argwhere(display.patterns)}
    lacks = {tuple(place) for place in display.lacking_.get_offsets().astype(int).tolist()}
    assert lacks == {(j, i) for i, j in np.argwhere(~display.patterns)}
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names == ["first 75%", "second 75%"]
    assert display.ax_.get_title(loc="left") == "Views of 4 samples"


def test_views_are_taken_as_they_are_and_many_patterns_are_summed():
    display = MissingViewsDisplay.from_views(Views({"a": X, "b": X[:, :2]}))
    assert display.counts.tolist() == [len(X)]
    patterns = np.array([[True, False], [False, True], [True, True]])
    display = MissingViewsDisplay(patterns, [5, 3, 2], ["a", "b"]).plot(top=1)
    lines = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert lines == ["5 (50%)", "5 in 2 other patterns"]


def test_bad_patterns():
    with pytest.raises(ValueError, match="Views or a dict of tables, one for every view; got nd"):
        MissingViewsDisplay.from_views(X)
    with pytest.raises(ValueError, match="a table of bool"):
        MissingViewsDisplay(np.ones((1, 2)), [1], ["a", "b"])
    with pytest.raises(ValueError, match=r"2 × 2, counts by views; got the shape \(1, 2\)"):
        MissingViewsDisplay(np.ones((1, 2), bool), [1, 2], ["a", "b"])


# -- names and numbers -----------------------------------------------------------------------


def test_names_and_numbers():
    assert [norm_name(p) for p in (1.0, 4 / 3, np.inf)] == ["1", "1.33", "∞"]
    values = (1e-10, 1e-4, 1e-3, 0.5, 1.0, 1e3, 1e5, 2.5e5, np.inf, 0.0)
    named = ["10⁻¹⁰", "10⁻⁴", "0.001", "0.5", "1", "1000", "10⁵", "2.5e+05", "∞", "0"]
    assert [power_name(value) for value in values] == named
    assert [weight_name(w) for w in (0.0, 1e-7, 0.02, 0.5)] == ["0.00", "<0.0001", "0.020", "0.50"]
    long = ["a" * 30 + "first" + "b" * 30, "a" * 30 + "other" + "b" * 30]
    assert shown_names(long, 20) == long  # else they would be equal
    assert shown_names([long[0], "two\nlines"], 20) == ["a" * 10 + "…" + "b" * 9, "two lines"]
