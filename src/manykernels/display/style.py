"""How pictures look: colours, second cues, and how names and numbers are written.

Text and axes keep the colours of matplotlib's settings, so that a dark style stays dark. What is
drawn on them has colours of middle brightness, which are read on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

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
