"""What all displays share: axes to draw on, and their data as plain numbers or as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text


# -- How pictures look: colours, second cues, and how names and numbers are written ---------------
#
# Text and axes keep the colours of matplotlib's settings, so that a dark style stays dark. What is
# drawn on them has colours of middle brightness, which are read on light and on dark ground.


# The colours of Okabe and Ito (2008), which colour-blind readers tell apart. Those that are too
# pale for lines on white come last.
BLUE, VERMILION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY = "#e69f00", "#56b4e9"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
#: Second cue beside colour. As many as have no common divisor with the number of colours, so that
#: 42 lines differ.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: What is said in passing, and guides: as far from white as from black.
GREY = "#767676"
# How much of a guide is seen: less than of any line that shows data.
GUIDE: dict[str, Any] = {"color": GREY, "alpha": 0.35, "linewidth": 0.8}

# Letters of a name that is shown: longer ones leave no room for what they name, and shorter ones
# are hardly names. Between them, names may take so much of the width, or height, of the axes.
_LONGEST, _SHORTEST = 34, 8
_FOR_NAMES = 0.6
# Inches of a letter in the usual size of a tick label, by which the width of names is guessed.
_LETTER = 0.085
# Below this, weights are written as less than it: no fit determines them.
_LEAST_WEIGHT = 1e-4


def cue(number: int) -> dict[str, Any]:
    """Colour and marker of the line with this number."""
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4.5,
    }


def ink(ax: Axes) -> Any:
    """The colour of text on these axes."""
    return ax.xaxis.label.get_color()


# -- names and numbers -----------------------------------------------------------------------


def shown_names(names: Iterable[Any], longest: int = _LONGEST) -> list[str]:
    """Names on one line each, long ones without their middle unless they would be equal then."""
    given = [" ".join(str(name).split()) for name in names]
    half = longest // 2
    short = [
        name if len(name) <= longest else f"{name[:half]}…{name[len(name) - half + 1 :]}"
        for name in given
    ]
    return [
        full if short.count(cut) > given.count(full) else cut
        for full, cut in zip(given, short, strict=True)
    ]


def name_length(inches: float) -> int:
    """How many letters a name may have beside axes of this width."""
    return int(np.clip(_FOR_NAMES * inches / _LETTER, _SHORTEST, _LONGEST))


def literally(*texts: Text) -> None:
    """Dollar signs in names are dollar signs, and begin no formula."""
    for text in texts:
        text.set_parse_math(False)


def named_ticks(
    ax: Axes,
    axis: str,
    places: Sequence[float],
    names: Iterable[Any],
    room: float | None = None,
) -> list[Text]:
    """Names on an axis, without tick marks; those below it are turned where they are long.

    `room` is that of all panels that the names are of, in inches, if there are several.
    """
    if room is None:
        room = width_of(ax) if axis == "y" else height_of(ax)
    shown = shown_names(names, name_length(room))
    if axis == "y":
        ax.set_yticks(places, shown)
    else:
        ax.set_xticks(places, shown, **_turned(shown, width_of(ax) / max(len(shown), 1)))
    # All of them, also those that panels with a shared axis do not show.
    ticks = (ax.yaxis if axis == "y" else ax.xaxis).get_major_ticks()
    labels = [tick.label1 for tick in ticks]
    ax.tick_params(axis=axis, length=0)  # type: ignore[arg-type]
    literally(*labels)
    return labels


def _turned(names: Sequence[str], width: float) -> dict[str, Any]:
    """How names are turned that have so many inches each: not, a little, or upright."""
    if max(map(len, names), default=0) * _LETTER < width:
        return {}
    how: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor", "rotation": 35}
    # Lines of text at a slant need half as much again as upright ones.
    return how if width > 0.3 else {**how, "rotation": 90, "va": "center", "fontsize": "small"}


def norm_name(p: float, digits: int = 3) -> str:
    """A norm p, infinity as ∞."""
    return "∞" if np.isposinf(p) else f"{p:.{digits}g}"


def power_name(value: float, _position: Any = None) -> str:
    """A parameter of a grid: powers of ten as such, ∞, else four digits."""
    if not np.isfinite(value) or value <= 0.0:
        return norm_name(value)
    exponent = round(np.log10(value))
    # From a thousandth to a thousand they are read faster as they are.
    if -3 <= exponent <= 3 or not np.isclose(value, 10.0**exponent):
        return f"{value:.4g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def weight_name(weight: float) -> str:
    """A weight: two decimals, or two digits if it is small."""
    if 0.0 < weight < _LEAST_WEIGHT:
        return f"<{_LEAST_WEIGHT:.4f}"
    return f"{weight:.2f}" if weight >= 0.095 or weight == 0.0 else f"{weight:#.2g}"


# -- axes ------------------------------------------------------------------------------------


def width_of(ax: Axes) -> float:
    """Inches of the axes, before the layout has made room for names."""
    return float(ax.bbox.width / ax.figure.dpi)  # also where the figure is a part of another


def height_of(ax: Axes) -> float:
    """As :func:`width_of`."""
    return float(ax.bbox.height / ax.figure.dpi)


def titled(ax: Axes, title: str, caption: str = "") -> None:
    """A title at the left, and what is to be known of all that is drawn, below."""
    literally(ax.set_title(title, loc="left", fontsize="medium", wrap=True))
    if caption:
        said = ax.set_xlabel(caption, loc="left", fontsize="small", color=GREY, wrap=True)
        literally(said)


def bare(ax: Axes, *keep: str) -> None:
    """No frame but the sides to keep, and no tick marks."""
    ax.spines[:].set_visible(False)
    for side in keep:
        ax.spines[side].set(visible=True, color=GREY, alpha=0.6)
    ax.tick_params(which="both", length=0)
    ax.set_axisbelow(True)


# Stands for the colour of text while an SVG is made; no other colour of a picture is the same.
_INK = "#1b1b1c"
_INKED = (
    *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"),
    *("xtick.color", "ytick.color", "xtick.labelcolor", "ytick.labelcolor"),
)


@dataclass(eq=False)
class Display:
    """Base of the displays: plain data, which :meth:`plot` draws.

    A display is a dataclass; its fields are what is drawn. Matplotlib is imported when something
    is drawn, not before.
    """

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw on `ax`, or in a new figure."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """What is drawn, as lists, numbers and strings, which JSON can hold."""
        given = (one.name for one in fields(self) if one.init)
        return {name: _plain(getattr(self, name)) for name in given}

    def to_svg(self, **kwargs: Any) -> str:
        """The picture as an ``<svg>`` element, to be put into a page as it is.

        Text is text, the ground is transparent and what is black takes the colour of the text
        around it, on light pages and on dark ones. The display itself stays as it is.

        Parameters
        ----------
        **kwargs
            As for :meth:`plot`.
        """
        plt = pyplot()
        # The salt makes the names of parts the same every time.
        settings = {"svg.fonttype": "none", "svg.hashsalt": type(self).__name__}
        with plt.rc_context({**settings, **dict.fromkeys(_INKED, _INK)}), plt.ioff():
            figure = copy(self).plot(**kwargs).figure_
            try:
                file = StringIO()
                figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
            finally:
                plt.close(figure)
        svg = file.getvalue().replace(_INK, "currentColor")
        return svg[svg.index("<svg") :]

    def _begin(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """The axes given, or those of a new figure of this size in inches."""
        return self._begin_several(None if ax is None else [ax], 1, size)[0]

    def _begin_several(
        self, axes: Any, number: int, size: tuple[float, float], **options: Any
    ) -> list[Axes]:
        """As :meth:`_begin`, side by side or as `options` of ``plt.subplots`` say."""
        if axes is None:
            plt = pyplot()
            options = {"nrows": 1, "ncols": number, **options}
            _, made = plt.subplots(figsize=size, layout="constrained", squeeze=False, **options)
            axes = made.ravel()
        else:
            axes = np.ravel(axes)
        if len(axes) < number:
            raise ValueError(
                f"{type(self).__name__} draws on {number} axes, but ax has {len(axes)}."
            )
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return list(axes)


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Displays need matplotlib: pip install "manykernels[report]".'
        ) from error
    return plt


def required(estimator: Any, attribute: str, why: str) -> Any:
    """An attribute of a fitted estimator, or an error: the estimator, and `why` it has none."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute}: {why}")
    return getattr(estimator, attribute)


def shaped(name: str, values: Any, *sizes: int | None, of: str) -> np.ndarray:
    """An array of numbers with these sizes, None for any, or an error that says what they are."""
    array = np.asarray(values, dtype=np.float64)
    fits = array.ndim == len(sizes) and all(
        size in (None, found) for size, found in zip(sizes, array.shape, strict=False)
    )
    if not fits:
        raise ValueError(f"{name} must be {of}; got the shape {array.shape}.")
    return array


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value


# -- Parts of pictures: tables in colours, axes of grids, names at the ends of lines --------------


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
