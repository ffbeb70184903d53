"""Base class of the displays, and common styles, labels and parts of plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

    from ..estimators.base import KernelEstimator


# -- Colours, markers, names and numbers ----------------------------------------------------------
#
# Text and axes keep the colours of matplotlib's settings, so that a dark style stays dark. Data
# have colours of medium brightness, which are visible on light and on dark backgrounds.


# Colours of Okabe and Ito (2008), which colour-blind readers can distinguish. Those that are pale
# on white come last.
BLUE, VERMILION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY = "#e69f00", "#56b4e9"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
#: Markers, which distinguish lines besides colours. Their number is coprime to the number of
#: colours, so that 42 lines differ.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Colour of captions and guides, with the same contrast to white and to black.
GREY = "#767676"
# Style of guides, fainter than any line of data.
GUIDE: dict[str, Any] = {"color": GREY, "alpha": 0.35, "linewidth": 0.8}

# Largest and smallest number of characters to which names are shortened. Between these limits,
# names may take up the given fraction of the width, or height, of the axes.
_LONGEST, _SHORTEST = 34, 8
_FOR_NAMES = 0.6
# Average width of a character of a tick label, in inches.
_LETTER = 0.085
# Smaller weights are written as "<0.0001": fits are not more accurate.
_LEAST_WEIGHT = 1e-4


def cue(number: int) -> dict[str, Any]:
    """Return colour and marker of a line by its number."""
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4.5,
    }


def ink(ax: Axes) -> Any:
    """Return the colour of text on these axes."""
    return ax.xaxis.label.get_color()


# -- names and numbers -----------------------------------------------------------------------


def shown_names(names: Iterable[object], longest: int = _LONGEST) -> list[str]:
    """Return names in one line, without the middle of long ones unless they become equal."""
    full_names = [" ".join(str(name).split()) for name in names]
    half = longest // 2
    short_names = [
        name if len(name) <= longest else f"{name[:half]}…{name[len(name) - half + 1 :]}"
        for name in full_names
    ]
    return [
        full if short_names.count(short) > full_names.count(full) else short
        for full, short in zip(full_names, short_names, strict=True)
    ]


def name_length(inches: float) -> int:
    """Return the largest number of characters of a name beside axes of this width."""
    return int(np.clip(_FOR_NAMES * inches / _LETTER, _SHORTEST, _LONGEST))


def literally(*texts: Text) -> None:
    """Show dollar signs in texts instead of parsing formulas."""
    for text in texts:
        text.set_parse_math(False)


def named_ticks(
    ax: Axes,
    axis: str,
    places: Sequence[float],
    names: Iterable[object],
    room: float | None = None,
) -> list[Text]:
    """Label an axis with names, without tick marks; rotate long names below it.

    `room` is the total size in inches of several panels that share the names.
    """
    if room is None:
        room = width_of(ax) if axis == "y" else height_of(ax)
    shown = shown_names(names, name_length(room))
    if axis == "y":
        ax.set_yticks(places, shown)
    else:
        ax.set_xticks(places, shown, **_turned(shown, width_of(ax) / max(len(shown), 1)))
    # Includes labels that panels with a shared axis do not show.
    ticks = (ax.yaxis if axis == "y" else ax.xaxis).get_major_ticks()
    labels = [tick.label1 for tick in ticks]
    ax.tick_params(axis=axis, length=0)  # type: ignore[arg-type]
    literally(*labels)
    return labels


def _turned(names: Sequence[str], width: float) -> dict[str, Any]:
    """Return the rotation of names, each of which has `width` inches: 0, 35 or 90 degrees."""
    if max(map(len, names), default=0) * _LETTER < width:
        return {}
    style: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor", "rotation": 35}
    # Slanted lines of text need half as much space again as vertical ones.
    return style if width > 0.3 else {**style, "rotation": 90, "va": "center", "fontsize": "small"}


def norm_name(p: float, digits: int = 3) -> str:
    """Format a norm p, infinity as ∞."""
    return "∞" if np.isposinf(p) else f"{p:.{digits}g}"


def power_name(value: float, _position: object = None) -> str:
    """Format a parameter of a grid: a power of ten, ∞ or four digits."""
    if not np.isfinite(value) or value <= 0.0:
        return norm_name(value)
    exponent = round(np.log10(value))
    # Powers between 10⁻³ and 10³ are more readable in full.
    if -3 <= exponent <= 3 or not np.isclose(value, 10.0**exponent):
        return f"{value:.4g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def weight_name(weight: float) -> str:
    """Format a weight with two decimals, or with two digits if it is small."""
    if 0.0 < weight < _LEAST_WEIGHT:
        return f"<{_LEAST_WEIGHT:.4f}"
    return f"{weight:.2f}" if weight >= 0.095 or weight == 0.0 else f"{weight:#.2g}"


# -- axes ------------------------------------------------------------------------------------


def width_of(ax: Axes) -> float:
    """Return the width of the axes in inches, before the layout makes room for names."""
    return float(ax.bbox.width / ax.figure.dpi)  # `dpi` also exists for subfigures


def height_of(ax: Axes) -> float:
    """Return the height of the axes in inches, before the layout makes room for names."""
    return float(ax.bbox.height / ax.figure.dpi)


def titled(ax: Axes, title: str, caption: str = "") -> None:
    """Set a title at the left, and a caption below the axes."""
    literally(ax.set_title(title, loc="left", fontsize="medium", wrap=True))
    if caption:
        text = ax.set_xlabel(caption, loc="left", fontsize="small", color=GREY, wrap=True)
        literally(text)


def bare(ax: Axes, *keep: str) -> None:
    """Remove the frame, except for the sides `keep`, and the tick marks."""
    ax.spines[:].set_visible(False)
    for side in keep:
        ax.spines[side].set(visible=True, color=GREY, alpha=0.6)
    ax.tick_params(which="both", length=0)
    ax.set_axisbelow(True)


# Placeholder for the colour of text while an SVG is created; no other colour is equal to it.
_INK = "#1b1b1c"
_INKED = (
    *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"),
    *("xtick.color", "ytick.color", "xtick.labelcolor", "ytick.labelcolor"),
)


@dataclass(eq=False)
class Display:
    """Base class of the displays.

    A display is a dataclass whose fields are the data that :meth:`plot` draws. Matplotlib is
    imported when something is drawn.
    """

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw on `ax`, or in a new figure."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """Return the data as lists, numbers and strings, which JSON can represent."""
        names = (entry.name for entry in fields(self) if entry.init)
        return {name: _plain(getattr(self, name)) for name in names}

    def to_svg(self, **kwargs: Any) -> str:
        """Return the plot as an ``<svg>`` element for an HTML page.

        Text remains text, the background is transparent, and black elements take the colour of
        the surrounding text, for light and dark pages. The display is not modified.

        Parameters
        ----------
        **kwargs
            As for :meth:`plot`.
        """
        plt = pyplot()
        # With a fixed salt, the ids in the SVG are reproducible.
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
        """Return `ax`, or the axes of a new figure of this size in inches."""
        return self._begin_several(None if ax is None else [ax], 1, size)[0]

    def _begin_several(
        self, axes: Any, number: int, size: tuple[float, float], **options: Any
    ) -> list[Axes]:
        """Return several axes, of a new figure with `options` of ``plt.subplots`` if None."""
        if axes is None:
            plt = pyplot()
            options = {"nrows": 1, "ncols": number, **options}
            _, axes = plt.subplots(figsize=size, layout="constrained", squeeze=False, **options)
            axes = axes.ravel()
        else:
            axes = np.ravel(axes)
        if len(axes) < number:
            raise ValueError(
                f"{type(self).__name__} draws on {number} axes, but ax has {len(axes)}."
            )
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return list(axes)


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise an error that tells how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Displays need matplotlib: pip install "manykernels[report]".'
        ) from error
    return plt


def required(estimator: KernelEstimator, attribute: str, why: str) -> Any:
    """Return an attribute of a fitted estimator, or raise with the reason `why` it has none."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute}: {why}")
    return getattr(estimator, attribute)


def shaped(name: str, values: ArrayLike, *sizes: int | None, of: str) -> np.ndarray:
    """Convert to an array of this shape, with None for any size; `of` describes it in errors."""
    array = np.asarray(values, dtype=np.float64)
    valid = array.ndim == len(sizes) and all(
        size in (None, actual) for size, actual in zip(sizes, array.shape, strict=False)
    )
    if not valid:
        raise ValueError(f"{name} must be {of}; got the shape {array.shape}.")
    return array


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry) for entry in value]
    return value


# -- Heat maps, axes of grids, names at the ends of lines -----------------------------------------


# Largest number of cells of a heat map with numbers, for legibility.
_FEW_CELLS = 150
# Fraction of the colour scale above which white numbers have more contrast than black ones.
_DARK = 0.85
# Distance between lines of small text, relative to the font size.
_LINE_HEIGHT = 1.25
# Parameters whose values span at least this factor have a logarithmic axis.
_DECADE = 10.0
# Space of a tick of a grid in inches; if there is less per value, some have no tick.
_TICK = 0.42


def shades() -> Colormap:
    """Return a colour map from transparent to blue, for light and dark backgrounds."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb, to_rgba

    rgb = to_rgb(BLUE)
    shades = LinearSegmentedColormap.from_list("transparent to blue", [(*rgb, 0.0), (*rgb, 1.0)])
    return shades.with_extremes(bad=to_rgba(GREY, 0.35))


def heat_map(
    ax: Axes,
    matrix: np.ndarray,
    rows: Sequence[object],
    columns: Sequence[object],
    most: float,
    numbers: Callable[[float], str] = "{:.2f}".format,
    **options: Any,
) -> AxesImage:
    """Draw a heat map from 0 to `most`, with names of rows and columns.

    A small table has numbers, a larger one a colour bar. NaN is grey.
    """
    options = {"cmap": shades(), "vmin": 0.0, "vmax": most, "aspect": "auto", **options}
    image = ax.imshow(np.ma.masked_invalid(matrix), **options)
    if matrix.size <= _FEW_CELLS:
        for (i, j), value in np.ndenumerate(matrix):
            color = "white" if value > _DARK * most else ink(ax)
            text = "–" if np.isnan(value) else numbers(value)
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize="small")
    else:
        color_bar(image, [ax])
    named_ticks(ax, "y", range(len(rows)), rows)
    named_ticks(ax, "x", range(len(columns)), columns)
    ax.spines[:].set_visible(False)
    return image


def color_bar(image: ScalarMappable, axes: list[Axes]) -> None:
    """Draw the colour scale of an image beside axes."""
    bar = axes[-1].figure.colorbar(image, ax=axes, shrink=0.7, aspect=18, pad=0.02)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(length=0, labelsize="small")


# -- axes of grids ---------------------------------------------------------------------------


def grid_axis(
    ax: Axes, values: np.ndarray, name: str, names: Callable[..., str] = power_name
) -> np.ndarray:
    """Label the x axis with the values of a parameter, and return their positions.

    The axis is logarithmic if the values are positive and finite and span a decade; else the
    values are equally spaced.
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
    """End of a line, and its name."""

    x: float
    y: float
    name: str
    color: Any


def name_lines(ax: Axes, ends: Sequence[End]) -> list[Any]:
    """Write the names of lines to the right of the axes, without overlap, and return the texts.

    The limits of the axes must not change afterwards.
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


def spread(places: ArrayLike, distance: float) -> np.ndarray:
    """Move places apart, so that they are at least `distance` apart and keep their order.

    Neighbours that are too close form a block around their mean; overlapping blocks are merged.
    """
    places = np.asarray(places, dtype=float)
    order = np.argsort(places, kind="stable")
    blocks: list[list[int]] = []
    for i in order.tolist():
        blocks.append([i])
        while len(blocks) > 1 and _gap(places, blocks[-2], blocks[-1], distance) < distance:
            last = blocks.pop()
            blocks[-1] += last
    moved = np.empty(len(places))
    for block in blocks:
        offsets = np.arange(len(block)) - (len(block) - 1) / 2.0
        moved[block] = places[block].mean() + distance * offsets
    return moved


def _gap(places: np.ndarray, below: list[int], above: list[int], distance: float) -> float:
    """Return the distance between two blocks after their places are moved apart."""
    top = places[below].mean() + distance * (len(below) - 1) / 2.0
    bottom = places[above].mean() - distance * (len(above) - 1) / 2.0
    return float(bottom - top)
