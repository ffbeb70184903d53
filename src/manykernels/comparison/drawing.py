"""The picture of a :class:`~manykernels.Comparison`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.base import pyplot
from ..display.style import BLUE, GUIDE, VERMILION, bare, ink, named_ticks, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Height of the band in which the splits of a method are spread, of a distance of one.
_BAND = 0.36


def draw(result: Any, ax: Axes | None, scoring: str) -> Axes:
    """A line per method: a ring for each split, the same split at the same height; mean, interval.

    The best mean, or that of the reference, is drawn in another colour and as a line.
    """
    n_methods = len(result.names)
    if ax is None:
        # A third of an inch for each method, and room for title and axis.
        _, ax = pyplot().subplots(figsize=(7.0, 1.3 + 0.42 * n_methods), layout="constrained")
    scores, means, intervals = (
        found(scoring) for found in (result.scores, result.means, result.intervals)
    )
    marked = result.names.index(result.reference or result._best(scoring))
    n_splits = scores.shape[1]
    heights = np.linspace(-_BAND, _BAND, n_splits) if n_splits > 1 else np.zeros(1)
    for i in range(n_methods):
        color = VERMILION if i == marked else BLUE
        ax.plot(scores[i], i + heights, "o", markersize=3.5, mfc="none", mec=ink(ax), alpha=0.4)
        ax.hlines(i, *intervals[i], color=color, linewidth=2.2, zorder=3)
        ax.plot(means[i], i, "D" if i == marked else "o", color=color, markersize=6.5, zorder=4)
    ax.axvline(means[marked], color=VERMILION, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    ax.set_ylim(n_methods - 0.5, -0.5)
    named_ticks(ax, "y", range(n_methods), result.names)
    ax.grid(axis="x", **GUIDE)
    bare(ax, "bottom")
    which = "reference" if result.reference else "best"
    titled(ax, f"{scoring}: splits, mean and 95% interval ({which}: diamond)")
    return ax
