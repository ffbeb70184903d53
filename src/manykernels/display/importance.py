"""Display of the importance of views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .base import (
    BLUE,
    GREY,
    GUIDE,
    VERMILION,
    Display,
    bare,
    ink,
    named_ticks,
    shaped,
    titled,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False)
class ImportanceDisplay(Display):
    """Importance of the views in three panels: left out, alone and weight, with intervals.

    Left: the fall of the score without each view; a view is needed if its interval is above zero.
    Middle: the score of each view alone; the line and its band are the score of all views. Right:
    shares in the weights, with faint strokes for half-samples, and how often each view was
    chosen. The caption is the gain of learnt weights over the plain sum.

    Parameters
    ----------
    names : list of str
        Names of the views.
    fall, alone, weight : ndarray of shape (n_views,)
        Fall of the score without each view, score alone, and share in the weights.
    fall_interval, alone_interval : ndarray of shape (n_views, 2)
    score, score_interval : float and ndarray of shape (2,)
        Score of all views.
    gain, gain_interval : float and ndarray of shape (2,)
        Gain over the plain sum of kernels.
    resampled_weights : ndarray of shape (n_resamples, n_views)
    chosen : ndarray of shape (n_views,)
        Fraction of the resamples in which each view has a weight; NaN if there are none.
    scoring : str, default="score"
    confidence : float, default=0.95
        Confidence level of the intervals.
    weight_interval : ndarray of shape (n_views, 2), optional

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        `ax_` is the first of three axes.
    axes_ : list of three Axes

    Examples
    --------
    >>> from manykernels import MKFDA, view_importance
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.display import ImportanceDisplay
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> views = {name: views[name][:100] for name in ("rows", "columns", "noise1")}
    >>> importance = view_importance(MKFDA(RBF(), p=1), views, y[:100], n_resamples=4)
    >>> display = ImportanceDisplay.from_importance(importance)
    >>> [ax.get_title(loc="left") for ax in display.axes_]
    ['Fall of accuracy without it', 'accuracy alone (line: all)', 'Share of weight, ...']
    """

    names: list[str]
    fall: np.ndarray
    fall_interval: np.ndarray
    alone: np.ndarray
    alone_interval: np.ndarray
    weight: np.ndarray
    resampled_weights: np.ndarray
    chosen: np.ndarray
    score: float
    score_interval: np.ndarray
    gain: float
    gain_interval: np.ndarray
    scoring: str = "score"
    confidence: float = 0.95
    weight_interval: np.ndarray | None = None

    def __post_init__(self) -> None:
        number = len(self.names)
        for name in ("fall", "alone", "weight", "chosen"):
            values = getattr(self, name)
            setattr(self, name, shaped(name, values, number, of=f"a number for {number} views"))
        for name in ("fall_interval", "alone_interval", "weight_interval"):
            values, pairs = getattr(self, name), f"{number} pairs (low, high)"
            if values is not None:
                setattr(self, name, shaped(name, values, number, 2, of=pairs))
        values, rows = self.resampled_weights, f"rows of {number} shares"
        self.resampled_weights = shaped("resampled_weights", values, None, number, of=rows)

    @classmethod
    def from_importance(cls, importance: Any, *, ax: Any = None) -> Self:
        """Draw the result of :func:`~manykernels.view_importance`.

        Parameters
        ----------
        importance : ViewImportance
        ax : sequence of three matplotlib axes, optional
        """
        names = (
            *("names", "fall", "fall_interval", "alone", "alone_interval", "weight"),
            *("weight_interval", "resampled_weights", "chosen", "score", "score_interval", "gain"),
            *("gain_interval", "scoring", "confidence"),
        )
        return cls(**{name: getattr(importance, name) for name in names}).plot(ax)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on three axes, or in a new figure.

        Parameters
        ----------
        ax : sequence of three matplotlib axes, optional
        **kwargs
            Passed to ``ax.plot`` for the points.
        """
        n_views = len(self.names)
        # A third of an inch per view, and room for titles.
        size = (10.0, 1.6 + 0.34 * n_views)
        self.axes_ = self._begin_several(ax, 3, size, sharey=True)[:3]
        fall, alone, weight = self.axes_
        width = sum(map(width_of, self.axes_))
        points = {"color": BLUE, "markersize": 5, **kwargs}
        _draw_intervals(fall, self.fall, self.fall_interval, points)
        fall.axvline(0.0, color=ink(fall), linewidth=1, zorder=0)
        titled(fall, f"Fall of {self.scoring} without it", self._caption())
        _draw_intervals(alone, self.alone, self.alone_interval, points)
        alone.axvspan(*self.score_interval, color=GREY, alpha=0.2, linewidth=0, zorder=0)
        alone.axvline(self.score, color=ink(alone), linewidth=1, zorder=0)
        titled(alone, f"{self.scoring} alone (line: all)")
        self._draw_weights(weight)
        from matplotlib.ticker import MaxNLocator

        for panel in self.axes_:
            panel.set_ylim(n_views - 0.5, -0.5)
            panel.grid(axis="y", **GUIDE)
            bare(panel, "bottom")
            panel.xaxis.set_major_locator(MaxNLocator(4))
            named_ticks(panel, "y", range(n_views), self.names, width if ax is None else None)
        if ax is None:
            for panel in self.axes_[1:]:
                panel.tick_params(labelleft=False)
        return self

    def _draw_weights(self, ax: Axes) -> None:
        """Draw half-samples as faint strokes, weights of all samples as points with intervals."""
        for j, shares in enumerate(self.resampled_weights.T):
            places = np.full(len(shares), j)
            ax.plot(shares, places, "|", color=VERMILION, alpha=0.35, markersize=9)
        points = {"color": VERMILION, "marker": "D", "markersize": 5}
        _draw_intervals(ax, self.weight, self.weight_interval, points)
        for j, often in enumerate(self.chosen):
            if not np.isnan(often):
                # Beside the panel.
                ax.annotate(
                    f"{often:.0%}",
                    (1.02, j),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    fontsize="small",
                    annotation_clip=False,
                )
        ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
        titled(ax, "Share of weight, how often chosen")

    def _caption(self) -> str:
        if np.isnan(self.gain):
            return ""
        low, high = self.gain_interval
        return (
            f"Gain over the plain sum {self.gain:+.3f} [{low:+.3f}, {high:+.3f}];\n"
            f"intervals at {self.confidence:.0%}"
        )


def _draw_intervals(
    ax: Axes, values: np.ndarray, intervals: np.ndarray | None, points: dict[str, Any]
) -> None:
    lines = np.arange(len(values))
    if intervals is not None:
        ax.hlines(lines, intervals[:, 0], intervals[:, 1], color=points["color"], linewidth=2)
    ax.plot(values, lines, **{"marker": "o", "linestyle": "none", **points})


@dataclass(eq=False)
class ColumnImportanceDisplay(Display):
    """Importance of columns with intervals, those selected in colour.

    Numbers at the right are the stability: how often the column is among the most important ones
    in half-samples.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    importance : ndarray of shape (n_columns,)
    interval : ndarray of shape (n_columns, 2)
        NaN where there is none.
    selected : ndarray of bool, (n_columns,)
    stability : ndarray of shape (n_columns,)
        NaN where there is none.
    title : str, default="Importance"
    caption : str, default=""

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manykernels import MKRidge, column_importance
    >>> from manykernels.display import ColumnImportanceDisplay
    >>> from manykernels.kernels import Linear
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> importance = column_importance(MKRidge(Linear()), X, y, n_resamples=4)
    >>> display = ColumnImportanceDisplay.from_importance(importance, n_columns=3)
    >>> display.names
    ['bmi', 'bp', 's5']
    """

    names: list[str]
    importance: np.ndarray
    interval: np.ndarray
    selected: np.ndarray
    stability: np.ndarray
    title: str = "Importance"
    caption: str = ""

    def __post_init__(self) -> None:
        number = len(self.names)
        for name in ("importance", "stability", "selected"):
            values = getattr(self, name)
            setattr(self, name, shaped(name, values, number, of=f"a number for {number} columns"))
        pairs = f"{number} pairs (low, high)"
        self.interval = shaped("interval", self.interval, number, 2, of=pairs)

    @classmethod
    def from_importance(cls, importance: Any, *, ax: Any = None, n_columns: int = 20) -> Self:
        """Draw the first columns of the result of :func:`~manykernels.column_importance`.

        Parameters
        ----------
        importance : ColumnImportance
        ax : matplotlib axes, optional
        n_columns : int, default=20
            Number of columns that are drawn.
        """
        first = slice(n_columns)
        names = ("importance", "interval", "selected", "stability")
        return cls(
            importance.labels[first],
            **{name: getattr(importance, name)[first] for name in names},
            title=importance.title,
            caption=importance.caption,
        ).plot(ax)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on axes, or in a new figure.

        Parameters
        ----------
        ax : matplotlib axes, optional
        **kwargs
            Passed to ``ax.plot`` for the points.
        """
        n_columns = len(self.names)
        axes = self._begin(ax, (7.0, 1.4 + 0.28 * n_columns))
        lines, selected = np.arange(n_columns), np.asarray(self.selected, bool)
        for chosen, color in ((selected, BLUE), (~selected, GREY)):
            points = {"color": color, "markersize": 5, "marker": "o", "linestyle": "none"}
            axes.hlines(lines[chosen], *self.interval[chosen].T, color=color, linewidth=2)
            axes.plot(self.importance[chosen], lines[chosen], **{**points, **kwargs})
        for line, often in zip(lines, self.stability, strict=True):
            if not np.isnan(often):
                axes.annotate(
                    f"{often:.0%}",
                    (1.02, line),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    fontsize="small",
                    annotation_clip=False,
                )
        axes.axvline(0.0, color=ink(axes), linewidth=1, zorder=0)
        axes.set_ylim(n_columns - 0.5, -0.5)
        axes.grid(axis="y", **GUIDE)
        bare(axes, "bottom")
        named_ticks(axes, "y", range(n_columns), self.names)
        axes.locator_params(axis="x", nbins=6)
        titled(axes, self.title, self.caption)
        return self
