"""Display of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..kernels.tables import Table
from .base import (
    GREY,
    GUIDE,
    Display,
    End,
    bare,
    color_bar,
    cue,
    ink,
    literally,
    name_lines,
    named_ticks,
    required,
    shades,
    shaped,
    shown_names,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..estimators.base import KernelEstimator

# Number of points along each axis of a plane, and along a line, at which a gate is evaluated.
_PER_SIDE = 60
_ALONG_LINE = 200
# Largest number of maps, or of named lines, for legibility.
_MOST = 6
# Largest number of samples drawn on a map, so that it stays visible.
_MOST_SAMPLES = 400


@dataclass(eq=False)
class GateDisplay(Display):
    """Values of a gate, or shares in regions, at points of the input space.

    Two features: a map for each kernel. One feature: a line for each kernel. Other inputs: a
    strip for each kernel, with the samples side by side, sorted by the kernel with the largest
    gate and by its value.

    Parameters
    ----------
    gate : ndarray of shape (n_points, n_kernels)
        Nonnegative values.
    kernel_names : list of str
        Names of the kernels, or of the regions.
    points : ndarray of shape (n_points, 1) or (n_points, 2), optional
        Points at which the gate was evaluated.
    samples : ndarray of shape (n_samples, 2), optional
        Samples to draw on the maps.
    quantity : str, default="Gate"
        Title of the plot.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        `ax_` is the first of several axes.
    axes_ : list of Axes
        One for each map, else one.
    order_ : ndarray of int
        Order of the samples in the strips.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.display import GateDisplay
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 2))
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedSVC(lines, C=10.0).fit(X, X[:, 1] > np.abs(X[:, 0]))
    >>> display = GateDisplay.from_estimator(model, X)
    >>> [ax.get_title(loc="left") for ax in display.axes_]
    ['left', 'right']
    """

    gate: np.ndarray
    kernel_names: list[str]
    points: np.ndarray | None = None
    samples: np.ndarray | None = None
    quantity: str = "Gate"

    def __post_init__(self) -> None:
        number = len(self.kernel_names)
        each = f"a column for each of {number} kernels"
        self.gate = shaped("gate", self.gate, None, number, of=each)
        if self.points is not None:
            rows = f"{len(self.gate)} rows with one or two columns"
            self.points = shaped("points", self.points, len(self.gate), None, of=rows)
            if self.points.shape[1] not in (1, 2):
                raise ValueError(f"points must be {rows}; got the shape {self.points.shape}.")

    @classmethod
    def from_estimator(
        cls, estimator: KernelEstimator, X: Table, *, which: int = 0, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the gate of a fitted estimator, or shares in its regions.

        Parameters
        ----------
        estimator : LocalizedSVC, ConvexLocalizedSVC or another with a gate or regions
        X : as for ``estimator.predict``
            If it is an array with one or two columns, the gate is drawn on a grid over its range,
            else at its rows.
        which : int, default=0
            Index of the class to draw, if classes have different gates.
        ax, **kwargs
            As for :meth:`plot`.
        """
        regional = hasattr(estimator, "memberships")
        why = "its kernels have the same weights at all samples; use WeightsDisplay."
        evaluate = required(estimator, "memberships" if regional else "gate", why)
        samples = X if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] <= 2 else None
        points = None if samples is None else _grid(np.asarray(samples, dtype=float))
        values = np.asarray(evaluate(X if points is None else points))
        values = values[which] if values.ndim == 3 else values
        if regional:
            names = [f"region {number}" for number in range(values.shape[1])]
        else:
            names = list(estimator.kernel_names_)
        quantity = "Share in regions" if regional else "Gate"
        return cls(values, names, points, samples, quantity).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, top: int = _MOST, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            For maps, a sequence of axes.
        top : int, default=6
            Number of kernels with a map, or with a named line: those with the largest mean gate.
        **kwargs
            Passed to ``ax.imshow`` or ``ax.plot``.
        """
        largest = np.argsort(-self.gate.mean(axis=0), kind="stable")
        if self.points is None:
            self._draw_strips(ax, kwargs)
        elif self.points.shape[1] == 1:
            self._draw_lines(ax, largest[:top].tolist(), kwargs)
        else:
            self._draw_maps(ax, np.sort(largest[:top]).tolist(), kwargs)
        return self

    def _draw_strips(self, ax: Axes | None, kwargs: dict[str, Any]) -> None:
        n_kernels = self.gate.shape[1]
        ax = self._begin(ax, (6.8, 1.4 + 0.3 * n_kernels))
        self.axes_ = [ax]
        first = self.gate.argmax(axis=1)
        self.order_ = np.lexsort((-self.gate.max(axis=1), first))
        options = {"cmap": shades(), "vmin": 0.0, "vmax": self._most, **kwargs}
        image = ax.imshow(self.gate[self.order_].T, aspect="auto", interpolation="none", **options)
        color_bar(image, [ax])
        named_ticks(ax, "y", range(n_kernels), self.kernel_names)
        for edge in np.arange(1, n_kernels):
            ax.axhline(edge - 0.5, **GUIDE)
        ax.set_xticks([])
        bare(ax)
        titled(ax, self.quantity, f"{len(self.gate)} samples, sorted by their largest value")

    def _draw_lines(self, ax: Axes | None, named: list[int], kwargs: dict[str, Any]) -> None:
        ax = self._begin(ax, (6.4, 3.4))
        self.axes_ = [ax]
        points = np.ravel(self.points)  # type: ignore[arg-type]
        order = np.argsort(points)
        ends = []
        for j, name in enumerate(self.kernel_names):
            style: dict[str, Any] = {"color": GREY, "alpha": 0.45, "linewidth": 0.8}
            if j in named:
                # About a dozen markers on a line of hundreds of points.
                every = max(1, len(points) // 12)
                style = {**cue(named.index(j)), "linewidth": 1.8, "markevery": every, **kwargs}
            ax.plot(points[order], self.gate[order, j], **style)
            if j in named:
                ends.append(End(points[order[-1]], self.gate[order[-1], j], name, style["color"]))
        if self.samples is not None:
            ticks = {"color": ink(ax), "alpha": 0.3, "markersize": 6, "zorder": 1}
            ax.plot(self.samples[:, 0], np.zeros(len(self.samples)), "|", **ticks)
        ax.set_ylim(bottom=0.0 if self.samples is None else -0.03 * self._most)
        ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
        ax.grid(axis="y", **GUIDE)
        bare(ax, "bottom")
        titled(ax, self.quantity)
        name_lines(ax, ends)

    def _draw_maps(self, ax: Any, shown: list[int], kwargs: dict[str, Any]) -> None:
        columns = 2 if len(shown) == 4 else min(3, len(shown))
        rows = -(-len(shown) // columns)
        size = (0.9 + 2.5 * columns, 0.4 + 2.5 * rows)
        layout = {"nrows": rows, "ncols": columns, "sharex": True, "sharey": True}
        axes = self._begin_several(ax, len(shown), size, **layout)
        for empty in axes[len(shown) :] if ax is None else ():
            empty.set_visible(False)
        self.axes_ = axes[: len(shown)]
        options = {"cmap": shades(), "vmin": 0.0, "vmax": self._most, **kwargs}
        names = shown_names([self.kernel_names[j] for j in shown], 26)
        for panel, j, name in zip(self.axes_, shown, names, strict=True):
            image = _map(panel, self.points, self.gate[:, j], options)  # type: ignore[arg-type]
            if self.samples is not None:
                step = -(-len(self.samples) // _MOST_SAMPLES)
                dots = {"color": ink(panel), "alpha": 0.55, "markersize": 2.0, "mew": 0.0}
                panel.plot(*self.samples[::step].T, "o", **dots)
            bare(panel)
            titled(panel, name)
        # The lowest panels of all columns, of which some may be above an empty one.
        for panel in self.axes_[-columns:] if ax is None else ():
            panel.tick_params(labelbottom=True)
        color_bar(image, self.axes_)
        if ax is None:
            n_hidden = len(self.kernel_names) - len(shown)
            remark = f" ({n_hidden} kernels with smaller values not shown)" if n_hidden else ""
            text = f"{self.quantity}{remark}"
            literally(self.figure_.suptitle(text, x=0.01, ha="left", fontsize="medium"))

    @property
    def _most(self) -> float:
        return float(self.gate.max()) or 1.0


def _grid(samples: np.ndarray) -> np.ndarray:
    """Return the points of a grid that covers the samples."""
    low, high = samples.min(axis=0), samples.max(axis=0)
    margin = np.where(high > low, 0.04 * (high - low), 0.5)
    number = _ALONG_LINE if samples.shape[1] == 1 else _PER_SIDE
    sides = np.linspace(low - margin, high + margin, number).T
    return np.column_stack([coordinate.ravel() for coordinate in np.meshgrid(*sides)])


def _map(ax: Axes, points: np.ndarray, values: np.ndarray, options: dict[str, Any]) -> Any:
    """Draw an image if the points are a full grid, else a dot for each point."""
    x, y = np.unique(points[:, 0]), np.unique(points[:, 1])
    if min(len(x), len(y)) < 2 or len(x) * len(y) != len(points):
        dots = {"c": values, "s": 16.0, "edgecolors": GREY, "linewidths": 0.3, **options}
        return ax.scatter(points[:, 0], points[:, 1], **dots)
    order = np.lexsort((points[:, 0], points[:, 1]))
    image = values[order].reshape(len(y), len(x))
    return ax.pcolormesh(x, y, image, shading="nearest", rasterized=True, **options)
