"""Displays of kernel weights, and of kernel weights along a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..estimators.weights import as_norm
from ..metrics.classwise import effective_number
from .base import (
    BLUE,
    GREY,
    GUIDE,
    Display,
    End,
    bare,
    cue,
    grid_axis,
    heat_map,
    ink,
    name_lines,
    named_ticks,
    norm_name,
    power_name,
    required,
    shaped,
    titled,
    weight_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..estimators.base import KernelEstimator


# Largest number of bars, or of rows of a table, for legibility.
_MOST = 30
# Unused kernels of a view have a line each up to this number, and else a common line.
_FEW_UNUSED = 2


class _Line(NamedTuple):
    """A line of the plot with its kernels; no kernels if it is the heading of a view."""

    name: str
    kernels: list[int]


@dataclass(eq=False)
class WeightsDisplay(Display):
    """Kernel weights as bars, or as a heat map if there are several rows of weights.

    Kernels with names such as ``"view:kernel"`` are grouped by view.

    Parameters
    ----------
    weights : ndarray of shape (n_kernels,) or (n_rows, n_kernels)
        Nonnegative weights. Rows are classes, regions or targets.
    kernel_names : list of str
    row_names : list of str, optional
    p : float, optional
        Norm of the weights, for the caption.
    intervals : ndarray of shape (n_kernels, 2), optional
        Error bars, for one row of weights only.
    quantity : str, default="Kernel weights"
        Title of the plot.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : BarContainer
        If there is one row of weights.
    im_ : AxesImage
        If there are several rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> from manykernels.display import WeightsDisplay
    >>> model = MKFDA(p=1).fit(*load_iris(return_X_y=True))
    >>> display = WeightsDisplay.from_estimator(model)
    >>> len(display.bars_) == len(model.weights_)
    True
    >>> print(display.ax_.get_xlabel())
    p = 1, effective number of kernels ... of 7
    """

    weights: np.ndarray
    kernel_names: list[str]
    row_names: list[str] | None = None
    p: float | None = None
    intervals: np.ndarray | None = None
    quantity: str = "Kernel weights"

    def __post_init__(self) -> None:
        n_kernels = len(self.kernel_names)
        several = np.ndim(self.weights) == 2
        sizes = (None, n_kernels) if several else (n_kernels,)
        self.weights = shaped(
            "weights", self.weights, *sizes, of=f"a weight for each of {n_kernels} kernels"
        )
        if not (self.weights >= 0.0).all():
            raise ValueError("weights must not be negative, nor NaN.")
        if self.row_names is None and several:
            self.row_names = [str(row) for row in range(len(self.weights))]
        if several and len(self.row_names or ()) != len(self.weights):
            raise ValueError(f"row_names must be {len(self.weights)} names, one for every row.")
        if self.intervals is not None:
            if several:
                raise ValueError("intervals can be drawn for one row of weights only.")
            self.intervals = shaped(
                "intervals", self.intervals, n_kernels, 2, of=f"{n_kernels} pairs (low, high)"
            )

    @classmethod
    def from_estimator(
        cls, estimator: KernelEstimator, *, which: int = 0, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : one that learns kernel weights, such as MKFDA or ConvexLocalizedSVC
        which : int, default=0
            Index of the class to draw, if classes have different weights in every region.
        ax : matplotlib Axes, optional
        **kwargs
            As for :meth:`plot`.
        """
        why = "its kernels have different weights at different samples; use GateDisplay."
        if not hasattr(estimator, "gate"):
            why = "it learns no kernel weights."
        weights = np.asarray(required(estimator, "weights_", why))
        weights = weights[which] if weights.ndim == 3 else weights
        p = getattr(estimator, "p_", getattr(estimator, "p", None))
        names = _names_of_rows(estimator, len(weights)) if weights.ndim == 2 else None
        # Estimators of several labels have a norm per label.
        norm = None if p is None or np.shape(p) or np.isnan(as_norm(p)) else float(p)
        display = cls(weights, list(estimator.kernel_names_), names, norm)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_importance(cls, importance: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the shares of views in the weights, with their spread over half-samples.

        Parameters
        ----------
        importance : ViewImportance
            Result of :func:`~manykernels.view_importance`.
        ax, **kwargs
            As for :meth:`plot`.
        """
        spread = importance.weight_interval
        display = cls(
            importance.weight,
            list(importance.names),
            intervals=None if np.isnan(spread).all() else spread,
            quantity="Share of weight",
        )
        return display.plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, sort: bool = True, top: int = _MOST, **kwargs: Any
    ) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        sort : bool, default=True
            Whether to sort kernels by weight, and views by the sum of their weights.
        top : int, default=30
            Number of kernels to draw, those with the largest weights. The sum of the others is
            drawn as one bar.
        **kwargs
            Passed to ``ax.barh``, or to ``ax.imshow`` if there are several rows.
        """
        hidden = 0
        if self.weights.ndim == 2:
            hidden = self._draw_table(ax, sort, top, kwargs)
        else:
            self._draw_bars(ax, sort, top, kwargs)
        titled(self.ax_, self.quantity, self._caption(hidden))
        return self

    # -- one weight per kernel -------------------------------------------------------------

    def _draw_bars(self, ax: Axes | None, sort: bool, top: int, kwargs: dict[str, Any]) -> None:
        lines = self._lines(self.weights, sort, top)
        # A quarter of an inch per line, and one inch for title and caption.
        ax = self._begin(ax, (6.4, 1.0 + 0.25 * max(len(lines), 2)))
        places = [i for i, line in enumerate(lines) if line.kernels]
        widths = np.array([self.weights[lines[i].kernels].sum() for i in places])
        self.bars_ = ax.barh(places, widths, **{"height": 0.72, "color": BLUE, **kwargs})
        edges = widths.copy()
        for k, i in enumerate(places):
            if len(lines[i].kernels) > 1 and widths[k]:  # the sum of the others
                self.bars_[k].set(facecolor="none", edgecolor=GREY, hatch="////", linewidth=0.8)
            elif self.intervals is not None:
                low, high = self.intervals[lines[i].kernels[0]]
                ax.hlines(i, low, high, color=ink(ax), linewidth=1.4)
                edges[k] = np.nanmax([high, widths[k]])
        for place, edge, width in zip(places, edges, widths, strict=True):
            ax.annotate(
                weight_name(width) if width else "left out",
                (edge, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
                color=ink(ax) if width else GREY,
            )
        labels = named_ticks(ax, "y", range(len(lines)), [line.name for line in lines])
        for label, line in zip(labels, lines, strict=True):
            if not line.kernels:
                label.set_fontweight("bold")
            elif not self.weights[line.kernels].any():
                label.set_color(GREY)
        ax.set_ylim(max(len(lines), 2) - 0.5, -0.5)
        # Room for the numbers at the right.
        ax.set_xlim(0.0, 1.16 * (edges.max() or 1.0))
        ax.set_xticks([])
        bare(ax, "left")

    def _lines(self, weights: np.ndarray, sort: bool, top: int) -> list[_Line]:
        """Return the lines of the plot in their order."""
        if top < 1:
            raise ValueError(f"top must be at least 1, got {top!r}.")
        order = np.argsort(-weights, kind="stable")
        n_shown = len(order) if len(order) <= top else top
        shown = order[:n_shown] if sort else np.sort(order[:n_shown])
        views: dict[str, list[int]] = {}
        for j in shown.tolist():
            view, colon, _ = str(self.kernel_names[j]).partition(":")
            views.setdefault(view if colon else str(self.kernel_names[j]), []).append(j)
        several = [len(kernels) > 1 for kernels in views.values()]
        lines = []
        if not any(several) or len(views) == 1:
            lines = [_Line(str(self.kernel_names[j]), [j]) for j in shown.tolist()]
        else:
            totals = {view: weights[kernels].sum() for view, kernels in views.items()}
            for view in sorted(views, key=lambda view: -totals[view]) if sort else views:
                kernels = views[view]
                unused = [j for j in kernels if sort and not weights[j]]
                lines += self._lines_of_view(view, kernels, unused)
        if len(rest := order[n_shown:].tolist()):
            lines.append(_Line(f"{len(rest)} others, their sum", rest))
        return lines

    def _lines_of_view(self, view: str, kernels: list[int], unused: list[int]) -> list[_Line]:
        """Return a line for a single kernel, or a heading and a line for each kernel."""
        if len(kernels) == 1:
            return [_Line(str(self.kernel_names[kernels[0]]), kernels)]
        if len(unused) == len(kernels):
            return [_Line(f"{view}, all {len(kernels)}", kernels)]
        together = unused if len(unused) > _FEW_UNUSED else []
        lines = [_Line(view, [])]
        for j in kernels:
            if j not in together:
                name = str(self.kernel_names[j])
                lines.append(_Line(name.partition(":")[2] or name, [j]))
        return [*lines, _Line(f"{len(together)} others", together)] if together else lines

    # -- several weights per kernel --------------------------------------------------------

    def _draw_table(self, ax: Axes | None, sort: bool, top: int, kwargs: dict[str, Any]) -> int:
        """Draw a heat map, and return the number of kernels that are not shown."""
        largest = self.weights.max(axis=0)
        lines = [line for line in self._lines(largest, sort, top) if len(line.kernels) == 1]
        chosen = [line.kernels[0] for line in lines]
        table, rows = self.weights[:, chosen].T, self.row_names or []
        ax = self._begin(ax, (2.6 + 0.62 * len(rows), 1.4 + 0.27 * len(chosen)))
        names = [self.kernel_names[j] for j in chosen]
        most = float(self.weights.max()) or 1.0
        self.im_ = heat_map(
            ax, table, names, rows, most, lambda w: weight_name(w) if w else "0", **kwargs
        )
        for edge in np.arange(1, len(names)):
            ax.axhline(edge - 0.5, **GUIDE)
        return len(self.kernel_names) - len(names)

    def _caption(self, hidden: int) -> str:
        parts = [] if self.p is None else [f"p = {norm_name(self.p)}"]
        n_kernels = len(self.kernel_names)
        if n_kernels > 1 and self.weights.ndim == 1 and self.weights.any():
            number = float(effective_number(self.weights))
            parts.append(f"effective number of kernels {number:.1f} of {n_kernels}")
        if hidden:
            parts.append(f"{hidden} kernels with smaller weights not shown")
        return ", ".join(parts)


def _names_of_rows(estimator: KernelEstimator, number: int) -> list[str]:
    sizes = getattr(estimator, "region_sizes_", None)
    if sizes is not None:
        return [f"region {region} ({size:.0%})" for region, size in enumerate(sizes)]
    classes = getattr(estimator, "classes_", None)
    if hasattr(estimator, "n_labels_"):
        return [f"label {row}" for row in range(number)]
    if classes is not None and len(classes) == number:
        return [str(name) for name in classes]
    return [f"target {row}" for row in range(number)]


# -- Kernel weights along a path ------------------------------------------------------------------


# Number of kernels with a colour and a name: the number of colours.
_NAMED = 6
# Symbols of the parameters of a path.
_LETTERS = {"p": "p", "reg": "λ"}


@dataclass(eq=False)
class PathDisplay(Display):
    """Shares of kernels in the weights, along the norm p or the regularisation λ.

    The kernels with the largest shares have names, the others are grey. Weights have different
    sums at different p; their shares are comparable.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Values of the parameter.
    weights : ndarray of shape (n_values, n_kernels)
        NaN where there is no solution.
    kernel_names : list of str
    parameter : str, default="p"
        Name of the parameter: "p", "reg" (λ), or another name.
    chosen : float, optional
        Value to mark.
    caption : str, default=""
        Text in the title, such as the value of a fixed parameter.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        One for every kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import rbf_grid
    >>> from manykernels.display import PathDisplay
    >>> from manykernels.model_selection import lp_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = lp_path(rbf_grid([0.1, 1, 10]).fit(X)(X), y, ps=[1, 2, float("inf")], regs=[1.0])
    >>> display = PathDisplay.from_path(path, p=2)
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['1', '2', '∞']
    >>> display.lines_[0].get_ydata()[-1].round(3)  # the plain sum
    np.float64(0.333)
    """

    values: np.ndarray
    weights: np.ndarray
    kernel_names: list[str]
    parameter: str = "p"
    chosen: float | None = None
    caption: str = ""

    def __post_init__(self) -> None:
        self.values = shaped("values", self.values, None, of="a row of numbers")
        sizes = len(self.values), len(self.kernel_names)
        self.weights = shaped("weights", self.weights, *sizes, of=f"{sizes[0]} × {sizes[1]}")
        if self.chosen is not None:
            _position(self.values, self.chosen, _LETTERS.get(self.parameter, self.parameter))

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        along: str = "p",
        p: float | None = None,
        reg: float | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a path returned by :func:`~manykernels.model_selection.lp_path`.

        Parameters
        ----------
        path : LpPath
        along : {"p", "reg"}, default="p"
            Parameter on the x axis.
        p, reg : float, optional
            A point of the grid, such as ``p_`` and ``reg_`` of MKFDACV. The value of the
            parameter on the x axis is marked. That of the other parameter is required if the
            path has several.
        ax, **kwargs
            As for :meth:`plot`.
        """
        if along not in _LETTERS:
            raise ValueError(f'along must be "p" or "reg", got {along!r}.')
        grids = {"p": (path.ps, p), "reg": (path.regs, reg)}
        held = "reg" if along == "p" else "p"
        values, value = grids[held]
        if value is None and len(values) > 1:
            raise ValueError(
                f"The path has {len(values)} values of {_LETTERS[held]}: pass the one to draw as "
                f"{held}, one of {', '.join(map(power_name, values))}."
            )
        at = 0 if value is None else _position(values, value, _LETTERS[held])
        weights = path.weights[:, at] if along == "p" else path.weights[at]
        name = norm_name if held == "p" else power_name
        caption = f"{_LETTERS[held]} = {name(values[at])}"
        display = cls(grids[along][0], weights, list(path.kernel_names), along, grids[along][1])
        display.caption = caption
        return display.plot(ax, **kwargs)

    @property
    def shares(self) -> np.ndarray:
        """Weights divided by their sums, (n_values, n_kernels)."""
        return self.weights / self.weights.sum(axis=1, keepdims=True)

    def plot(self, ax: Axes | None = None, *, top: int = _NAMED, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        top : int, default=6
            Number of kernels with a name and a colour.
        **kwargs
            Passed to ``ax.plot`` for these kernels.
        """
        ax = self._begin(ax, (6.8, 3.6))
        order = np.argsort(self.values)
        values, shares = self.values[order], self.shares[order]
        names = norm_name if self.parameter == "p" else power_name
        places = grid_axis(ax, values, _LETTERS.get(self.parameter, self.parameter), names)
        largest = np.nan_to_num(shares, nan=-1.0).max(axis=0)
        named = np.argsort(-largest, kind="stable")[:top].tolist()
        self.lines_, ends = [], []
        for j in range(len(self.kernel_names)):
            style: dict[str, Any] = {"color": GREY, "alpha": 0.45, "linewidth": 0.8, "zorder": 1}
            if j in named:
                style = {**cue(named.index(j)), "linewidth": 1.8, **kwargs}
            self.lines_ += ax.plot(places, shares[:, j], **style)
            known = np.flatnonzero(np.isfinite(shares[:, j]))
            if j in named and len(known):
                end = shares[known[-1], j]
                ends.append(End(places[known[-1]], end, self.kernel_names[j], style["color"]))
        if self.chosen is not None:
            x = places[_position(values, self.chosen, "")]
            ax.axvline(x, color=ink(ax), linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
            ax.annotate(
                "chosen",
                (x, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, -3),
                textcoords="offset points",
                va="top",
                fontsize="small",
            )
        ax.set_ylim(0.0, 1.08 * float(np.nanmax(shares)))
        ax.set_xlim(ax.get_xlim())
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.grid(axis="y", **GUIDE)
        bare(ax, "bottom")
        others = len(self.kernel_names) - len(named)
        remarks = [self.caption, f"{others} others in grey" if others else ""]
        remark = ", ".join(filter(None, remarks))
        titled(ax, f"Share of kernels in the weights{f' ({remark})' if remark else ''}")
        # Lines with the same end are sorted by their beginning.
        ends.sort(key=lambda end: (round(end.y, 6), shares[0, self.kernel_names.index(end.name)]))
        name_lines(ax, ends)
        return self


def _position(values: np.ndarray, value: float, letter: str) -> int:
    """Return the index of a value in a grid."""
    matches = np.flatnonzero((values == value) | np.isclose(values, value, rtol=1e-6, atol=0.0))
    if not len(matches):
        raise ValueError(
            f"{letter} = {value:g} is not one of the values of the path: "
            f"{', '.join(f'{known:g}' for known in values)}."
        )
    return int(matches[0])
