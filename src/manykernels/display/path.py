"""The picture of kernel weights along a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .base import Display, shaped
from .parts import End, grid_axis, name_lines
from .style import GREY, GUIDE, bare, cue, ink, norm_name, power_name, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Kernels with a line and a name of their own: as many as there are colours for.
_NAMED = 6
# How the parameters of a path are called.
_LETTERS = {"p": "p", "reg": "λ"}


@dataclass(eq=False)
class PathDisplay(Display):
    """Shares of kernels in the weights, along the norm p or the regularisation λ.

    The kernels with the largest shares have names, the others are grey. Weights of different p
    have different sums; their shares can be compared.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Of the parameter.
    weights : ndarray of shape (n_values, n_kernels)
        NaN where there is no solution.
    kernel_names : list of str
    parameter : str, default="p"
        What the values are of: "p", "reg" (λ), or another name.
    chosen : float, optional
        One of the values, which is marked.
    caption : str, default=""
        Such as the value of what is held.

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
        """Draw what :func:`~manykernels.model_selection.lp_path` returns.

        Parameters
        ----------
        path : LpPath
        along : {"p", "reg"}, default="p"
            The parameter on the x axis. It is marked where it has the value given below.
        p, reg : float, optional
            A point of the grid, such as ``p_`` and ``reg_`` of MKFDACV. Of the parameter that is
            held, the value is needed if the path has several.
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
                f"The path has {len(values)} {_LETTERS[held]}: say which one to draw with "
                f"{held}=, one of {', '.join(map(power_name, values))}."
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
        """Weights over their sums, (n_values, n_kernels)."""
        return self.weights / self.weights.sum(axis=1, keepdims=True)

    def plot(self, ax: Axes | None = None, *, top: int = _NAMED, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        top : int, default=6
            How many kernels have a name and a colour.
        **kwargs
            For ``ax.plot`` of these kernels.
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
        said = [self.caption, f"{others} others in grey" if others else ""]
        about = ", ".join(filter(None, said))
        titled(ax, f"Share of kernels in the weights{f' ({about})' if about else ''}")
        # Of lines that end at one place, those that were higher come first.
        ends.sort(key=lambda end: (round(end.y, 6), shares[0, self.kernel_names.index(end.name)]))
        name_lines(ax, ends)
        return self


def _position(values: np.ndarray, value: float, letter: str) -> int:
    """Where a value is among those of a grid."""
    found = np.flatnonzero((values == value) | np.isclose(values, value, rtol=1e-6, atol=0.0))
    if not len(found):
        raise ValueError(
            f"{letter} = {value:g} is none of the values of the path: "
            f"{', '.join(f'{one:g}' for one in values)}."
        )
    return int(found[0])
