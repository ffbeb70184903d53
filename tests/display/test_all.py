"""What holds of every display."""

import json
import sys
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manykernels.display.base import GREY
from tests.display.examples_of_displays import KINDS, NAMES, display_of
from tests.problems import some_slow

LONG = ("path of λ", "gate, lines", "gate, maps", "gate, dots")
every_kind = pytest.mark.parametrize("kind", some_slow(KINDS, *LONG))


@every_kind
def test_it_is_drawn_in_a_new_figure_without_a_warning(kind):
    other = plt.figure()
    display = display_of(kind)
    assert display.plot() is display
    display.figure_.canvas.draw()
    assert display.ax_ in display.figure_.axes
    assert [plt.figure(number) for number in plt.get_fignums()] == [other, display.figure_]
    # Dollar signs in names begin no formula.
    given = [text for text in display.figure_.findobj(plt.Text) if "ген" in text.get_text()]
    assert not any(text.get_parse_math() for text in given if text.get_visible())


@pytest.mark.slow
@every_kind
def test_it_is_drawn_where_it_is_asked_for_though_it_is_small(kind):
    figure, axes = plt.subplots(2, 2, figsize=(7.0, 4.4), layout="constrained")
    many = kind in ("importance", "gate, maps", "gate, dots")
    display = display_of(kind).plot(axes if many else axes[0, 1])
    assert display.figure_ is figure
    assert display.ax_ is (axes[0, 0] if many else axes[0, 1])
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@pytest.mark.slow
@every_kind
def test_it_is_drawn_in_a_part_of_a_figure(kind):
    figure = plt.figure(figsize=(9.0, 6.0), layout="constrained")
    part = figure.subfigures(2, 1)[1]
    axes = part.subplots(1, 4)
    many = kind in ("importance", "gate, maps", "gate, dots")
    display = display_of(kind).plot(axes if many else axes[0])
    assert display.ax_ is axes[0]
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@every_kind
def test_data_are_plain(kind):
    data = display_of(kind).data()
    assert json.loads(json.dumps(data)) == data
    assert not {"ax_", "figure_"} & data.keys()


@every_kind
def test_svg_is_text_on_a_transparent_ground(kind):
    display = display_of(kind)
    svg = display.to_svg()
    assert not hasattr(display, "ax_")
    assert plt.get_fignums() == []
    root = ElementTree.fromstring(svg)
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    # Text takes the colour of its surroundings.
    assert "currentColor" in svg
    assert "#1b1b1c" not in svg
    name = NAMES[2 if kind == "convergence" else 0]
    assert any(name in text for text in texts)


@pytest.mark.parametrize("kind", ["importance", "gate, maps"])
def test_too_few_axes(kind):
    _, axes = plt.subplots(1, 2)
    with pytest.raises(ValueError, match=r"draws on \d axes, but ax has 2"):
        display_of(kind).plot(axes)


@every_kind
def test_without_matplotlib_the_way_out_is_named(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "manykernels\[report\]"'):
        display_of(kind).plot()


def test_one_kernel_is_enough():
    from manykernels.display import (
        AlignmentDisplay,
        GateDisplay,
        MissingViewsDisplay,
        PathDisplay,
        WeightsDisplay,
    )

    for display in (
        WeightsDisplay([1.0], ["rbf"], p=2.0),
        WeightsDisplay([0.0], ["rbf"]),
        WeightsDisplay([[1.0]], ["rbf"]),
        PathDisplay([1.0], [[1.0]], ["rbf"]),
        AlignmentDisplay([[1.0]], ["rbf"], [0.5]),
        GateDisplay(np.ones((3, 1)), ["rbf"]),
        GateDisplay(np.zeros((4, 1)), ["rbf"], [[0.0], [1.0], [2.0], [3.0]]),
        MissingViewsDisplay(np.array([[True]]), [3], ["table"]),
    ):
        display.plot().figure_.canvas.draw()
        assert display.ax_.get_title(loc="left")


def test_svg_is_the_same_every_time():
    assert display_of("path").to_svg() == display_of("path").to_svg()


def test_text_follows_the_style():
    with plt.style.context("dark_background"):
        display = display_of("weights").plot()
    assert {text.get_color() for text in display.ax_.texts} == {"white", GREY}
