"""The table of importances: printed, as rows, as a frame, drawn."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.display.importances import IMPORTANCE


@pytest.fixture
def result():
    return IMPORTANCE


def test_the_table_is_printed(result):
    assert str(result) == repr(result)
    assert str(result).splitlines() == [
        "accuracy, 5 folds held out; intervals at 90%",
        "all views 0.900 [0.850, 0.940]",
        "",
        "view  fall without                    alone                  weight"
        "                  chosen",
        "a           +0.250  [+0.200, +0.300]  0.800  [0.700, 0.850]   0.750"
        "  [0.304, 1.000]    100%",
        "b           -0.010  [-0.030, +0.020]      –                   0.250"
        "  [0.000, 0.696]     67%",
        "",
        "plain sum 0.880 [0.800, 0.920], gain of learnt weights +0.020 [-0.010, +0.050]",
    ]


def test_rows_and_frame_have_the_same_columns(result):
    first, second = result.rows()
    assert first["view"] == "a"
    assert first["fall_low"] == 0.2
    assert second["chosen"] == pytest.approx(2 / 3)
    frame = result.to_frame()
    assert frame.index.tolist() == ["a", "b"]
    assert frame.columns.tolist() == list(first)[1:]
    assert frame.loc["b", "weight_high"] == pytest.approx(second["weight_high"])


def test_without_pandas_there_are_rows(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"rows\(\) returns the same values without"):
        result.to_frame()


def test_the_picture_has_an_interval_for_every_view(result):
    figure = result.plot()
    fall, alone, weight = figure.axes
    segments = fall.collections[0].get_segments()
    np.testing.assert_allclose([line[:, 0] for line in segments], result.fall_interval)
    np.testing.assert_allclose(fall.lines[0].get_xdata(), result.fall)
    np.testing.assert_allclose(alone.lines[0].get_xdata(), result.alone)
    np.testing.assert_allclose(weight.lines[0].get_xdata(), [0.7, 0.8, 1.0])
    segments = weight.collections[0].get_segments()
    np.testing.assert_allclose([line[:, 0] for line in segments], result.weight_interval)
    np.testing.assert_allclose(weight.lines[2].get_xdata(), result.weight)
    assert [text.get_text() for text in weight.texts] == ["100%", "67%"]
    assert [label.get_text() for label in fall.get_yticklabels()] == ["a", "b"]
    figure.canvas.draw()


def test_the_picture_is_drawn_where_it_is_asked_for(result):
    figure, axes = plt.subplots(1, 3)
    assert result.plot(axes) is figure
    with pytest.raises(ValueError, match="draws on 3 axes, but ax has 2"):
        result.plot(axes[:2])
