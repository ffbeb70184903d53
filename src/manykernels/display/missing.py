"""The picture of which samples have which views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..kernels.views import are_views, as_views
from .base import Display
from .style import BLUE, GREY, GUIDE, bare, named_ticks, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Patterns that are drawn at most; the rest are counted together.
_MOST = 20


@dataclass(eq=False)
class MissingViewsDisplay(Display):
    """Which views samples have: a line for every pattern, the most frequent first.

    A filled square is a view that these samples have, an empty one is a view that they lack. At
    the right is how many samples there are of each pattern, below how many have each view.

    Parameters
    ----------
    patterns : ndarray of bool of shape (n_patterns, n_views)
    counts : ndarray of int of shape (n_patterns,)
        Samples of each pattern.
    view_names : list of str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    present_, lacking_ : PathCollection
        The filled and the empty squares.

    Examples
    --------
    >>> import pandas as pd
    >>> from manykernels.display import MissingViewsDisplay
    >>> genes = pd.DataFrame({"g": [1.0, 2.0, 3.0]}, index=["ann", "bob", "cy"])
    >>> scans = pd.DataFrame({"s": [1.0, 2.0]}, index=["bob", "cy"])
    >>> display = MissingViewsDisplay.from_views({"genes": genes, "scans": scans})
    >>> display.data()["patterns"], display.data()["counts"]
    ([[True, True], [True, False]], [2, 1])
    """

    patterns: np.ndarray
    counts: np.ndarray
    view_names: list[str]

    def __post_init__(self) -> None:
        self.patterns, self.counts = np.asarray(self.patterns), np.asarray(self.counts)
        if self.patterns.dtype != bool or self.patterns.ndim != 2:
            raise ValueError("patterns must be a table of bool, patterns by views.")
        if self.patterns.shape != (len(self.counts), len(self.view_names)):
            raise ValueError(
                f"patterns must be {len(self.counts)} × {len(self.view_names)}, counts by views; "
                f"got the shape {self.patterns.shape}."
            )

    @classmethod
    def from_views(cls, X: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the views of samples.

        Parameters
        ----------
        X : Views, or a dict of tables
            Data frames of a dict are matched by label; a sample need not be in all of them. A row
            of a table with nothing but missing values is lacking.
        ax, **kwargs
            As for :meth:`plot`.
        """
        if not are_views(X):
            raise ValueError(
                f"X must be Views or a dict of tables, one for every view; got {type(X).__name__}."
            )
        views = as_views(X, join="outer")
        patterns, counts = np.unique(views.present, axis=0, return_counts=True)
        # The most frequent first; of equals, the one with the most views.
        order = np.lexsort((-patterns.sum(axis=1), -counts))
        return cls(patterns[order], counts[order], views.names).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, top: int = _MOST, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        top : int, default=20
            Most patterns that are drawn, from the first.
        **kwargs
            For the filled squares, ``ax.scatter``.
        """
        shown, counts = self.patterns[:top], self.counts[:top]
        n_shown, n_views = shown.shape
        ax = self._begin(ax, (2.6 + 0.5 * n_views, 1.7 + 0.27 * max(n_shown, 2)))
        squares = {"marker": "s", "s": 70.0, "color": BLUE, **kwargs}
        self.present_ = ax.scatter(*np.argwhere(shown)[:, ::-1].T, **squares)
        empty = {**squares, "color": None, "facecolors": "none", "edgecolors": GREY}
        self.lacking_ = ax.scatter(*np.argwhere(~shown)[:, ::-1].T, **empty, alpha=0.5)
        total = int(self.counts.sum())
        lines = [f"{count} ({count / total:.0%})" for count in counts.tolist()]
        if len(self.counts) > top:
            rest = self.counts[top:]
            lines.append(f"{rest.sum()} in {len(rest)} other patterns")
        ax.set_yticks(range(len(lines)), lines)
        ax.yaxis.tick_right()
        have = self.counts @ self.patterns / total
        names = [f"{name} {share:.0%}" for name, share in zip(self.view_names, have, strict=True)]
        named_ticks(ax, "x", range(n_views), names)
        ax.set(xlim=(-0.6, n_views - 0.4), ylim=(len(lines) - 0.4, -0.6))
        for line in range(n_shown):
            ax.axhline(line, zorder=0, **GUIDE)
        bare(ax)
        titled(ax, f"Views of {total} samples")
        return self
