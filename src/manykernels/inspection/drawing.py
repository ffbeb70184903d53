"""The picture of a :class:`~manykernels.inspection.ViewImportance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..report.colors import BLUE, INK, ORANGE, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(result: Any, axes: Sequence[Axes] | None) -> Figure:
    """Three panels that share their views: fall, alone, weight."""
    n_views = len(result.names)
    if axes is None:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(
            1,
            3,
            # A third of an inch for each view, and room for titles.
            figsize=(10.0, 1.4 + 0.34 * n_views),
            sharey=True,
            layout="constrained",
        )
    elif len(axes) != 3:
        raise ValueError(f"plot needs three axes: falls, alone, weights; got {len(axes)}.")
    fall, alone, weight = axes
    low, high = result.score_interval
    _draw_intervals(fall, result.fall, result.fall_interval, BLUE)
    fall.axvline(0.0, color=INK, linewidth=1, zorder=0)
    fall.set_title(f"Fall of {result.scoring} without it", loc="left", fontsize=10)
    _draw_intervals(alone, result.alone, result.alone_interval, BLUE)
    alone.axvspan(low, high, color=PALE, alpha=0.4, linewidth=0, zorder=0)
    alone.axvline(result.score, color=INK, linewidth=1, zorder=0)
    alone.set_title(f"{result.scoring} alone (line: all)", loc="left", fontsize=10)
    _draw_weights(weight, result)
    for ax in axes:
        ax.set_ylim(n_views - 0.5, -0.5)
        ax.set_yticks(range(n_views), result.names)
        ax.tick_params(length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(axis="y", color=PALE, linewidth=0.4)
        ax.set_axisbelow(True)
    return fall.figure  # type: ignore[return-value]


def _draw_intervals(ax: Axes, values: np.ndarray, intervals: np.ndarray, color: str) -> None:
    lines = np.arange(len(values))
    ax.hlines(lines, intervals[:, 0], intervals[:, 1], color=color, linewidth=2)
    ax.plot(values, lines, "o", color=color, markersize=5)


def _draw_weights(ax: Axes, result: Any) -> None:
    """Every half-sample a faint stroke, and the weight of all samples a point."""
    for j, shares in enumerate(result.resampled_weights.T):
        ax.plot(shares, np.full(len(shares), j), "|", color=ORANGE, alpha=0.35, markersize=9)
    ax.plot(result.weight, np.arange(len(result.names)), "o", color=ORANGE, markersize=5)
    for j, chosen in enumerate(result.chosen):
        if not np.isnan(chosen):
            # At the right edge of the panel, whatever its range.
            ax.annotate(
                f"{chosen:.0%}",
                (1.0, j),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="center",
                fontsize=8,
                color=INK,
            )
    # Room for the numbers at the right.
    ax.margins(x=0.25)
    ax.set_title("Share of weight, how often chosen", loc="left", fontsize=10)
