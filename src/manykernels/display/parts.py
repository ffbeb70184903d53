"""Parts of pictures: tables in colours, axes of grids, names at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .style import (
    BLUE,
    GREY,
    height_of,
    ink,
    literally,
    name_length,
    named_ticks,
    power_name,
    shown_names,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

# Numbers are written into a table in colours up to this many cells; more could not be read.
_FEW_CELLS = 150
# Part of the scale above which numbers are white: there white has more contrast than black.
_DARK = 0.85
# Height of a line of small text over its size: the space between two names.
_LINE_HEIGHT = 1.25
# Values of a parameter that span at least this factor are drawn on a logarithmic axis.
_DECADE = 10.0
# Inches for a tick of a grid; where there is less for each value, some go without.
_TICK = 0.42


def shades() -> Any:
    """From nothing to blue: zero is the ground, be it light or dark."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb, to_rgba

    rgb = to_rgb(BLUE)
    shades = LinearSegmentedColormap.from_list("from nothing", [(*rgb, 0.0), (*rgb, 1.0)])
    return shades.with_extremes(bad=to_rgba(GREY, 0.35))


def heat_map(
    ax: Axes,
    matrix: np.ndarray,
    rows: Sequence[Any],
    columns: Sequence[Any],
    most: float,
    numbers: Any = "{:.2f}".format,
    **options: Any,
) -> AxesImage:
    """A table in colours from 0 to `most`, with names; with numbers if there are few cells.

    Where nothing is written there is a scale beside it. What is NaN is grey.
    """
    options = {"cmap": shades(), "vmin": 0.0, "vmax": most, "aspect": "auto", **options}
    image = ax.imshow(np.ma.masked_invalid(matrix), **options)
    if matrix.size <= _FEW_CELLS:
        for (i, j), value in np.ndenumerate(matrix):
            color = "white" if value > _DARK * most else ink(ax)
            text = "–" if np.isnan(value) else numbers(value)
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize="small")
    else:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, aspect=18, pad=0.02)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.ax.tick_params(length=0, labelsize="small")
    named_ticks(ax, "y", range(len(rows)), rows)
    named_ticks(ax, "x", range(len(columns)), columns)
    ax.spines[:].set_visible(False)
    return image


# -- axes of grids ---------------------------------------------------------------------------


def grid_axis(ax: Axes, values: np.ndarray, name: str, names: Any = power_name) -> np.ndarray:
    """Where the values of a parameter are on the x axis, which is labelled.

    Logarithmic where they are positive and finite and far apart, else one place for each.
    """
    literally(ax.set_xlabel(name))
    most = max(2, int(width_of(ax) / _TICK))
    finite = np.isfinite(values).all() and (values > 0.0).all()
    if finite and values.max() >= _DECADE * values.min():
        from matplotlib.ticker import LogLocator

        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(numticks=most))
        ax.xaxis.set_major_formatter(names)
        ax.xaxis.set_minor_locator(LogLocator(subs=(1.0,)))
        return values
    places = np.arange(len(values), dtype=float)
    shown = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))
    ax.set_xticks(places[shown], [names(value) for value in values[shown]])
    return places


# -- names at the ends of lines --------------------------------------------------------------


class End(NamedTuple):
    """Where a line ends, and what is written there."""

    x: float
    y: float
    name: str
    color: Any


def name_lines(ax: Axes, ends: Sequence[End]) -> list[Any]:
    """Names to the right of the axes, in the colours of the lines and as far apart as they need.

    Limits of the axes must not change afterwards. Returns the texts.
    """
    if not ends:
        return []
    points = ax.transData.transform([(end.x, end.y) for end in ends])
    heights = ax.transAxes.inverted().transform(points)[:, 1]
    size = 0.9 * float(ax.xaxis.label.get_fontsize())
    places = spread(heights, _LINE_HEIGHT * size / 72.0 / height_of(ax))
    names = shown_names((end.name for end in ends), name_length(width_of(ax)))
    texts = []
    for end, name, place in zip(ends, names, places, strict=True):
        texts.append(
            ax.annotate(
                name,
                (end.x, end.y),
                xytext=(1.03, place),
                textcoords="axes fraction",
                color=end.color,
                fontsize=size,
                va="center",
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": end.color,
                    "alpha": 0.5,
                    "linewidth": 0.7,
                    "shrinkA": 1,
                    "shrinkB": 3,
                },
            )
        )
    literally(*texts)
    return texts


def spread(places: Any, distance: float) -> np.ndarray:
    """Places near the given ones, in their order and at least `distance` apart.

    Neighbours that are too close form a block around their mean; blocks that meet become one.
    """
    given = np.asarray(places, dtype=float)
    order = np.argsort(given, kind="stable")
    blocks: list[list[int]] = []
    for i in order.tolist():
        blocks.append([i])
        while len(blocks) > 1 and _gap(given, blocks[-2], blocks[-1], distance) < distance:
            last = blocks.pop()
            blocks[-1] += last
    found = np.empty(len(given))
    for block in blocks:
        found[block] = given[block].mean() + distance * _offsets(block)
    return found


def _offsets(block: list[int]) -> np.ndarray:
    return np.arange(len(block)) - (len(block) - 1) / 2.0


def _gap(given: np.ndarray, below: list[int], above: list[int], distance: float) -> float:
    top = given[below].mean() + distance * (len(below) - 1) / 2.0
    bottom = given[above].mean() - distance * (len(above) - 1) / 2.0
    return float(bottom - top)
