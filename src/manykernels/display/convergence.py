"""The picture of how duality gaps close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._rounding import EPS
from .base import Display, required
from .parts import End, name_lines
from .style import GREY, GUIDE, bare, cue, power_name, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What a history may hold, the first before the next, and how it is called.
_MEASURES = {"rel_gap": "Relative duality gap", "gradient_norm": "Norm of the gradient"}


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """Relative duality gaps, or norms of a gate's gradient, against the number of inner solves.

    Parameters
    ----------
    histories : dict of str to dict
        By names of estimators: ``"n_inner_solves"`` and the measure, lists of the same length;
        where several machines were solved one after the other, ``"machine"``, too.
    tols : dict of str to float, optional
        The gaps at which estimators stop, drawn as lines.
    measure : {"rel_gap", "gradient_norm"}, default="rel_gap"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to list of Line2D
        A line for every machine. What is not positive is drawn at the rounding error of doubles.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> from manykernels.display import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> solvers = {name: MKFDA(p=1.5, solver=name).fit(X, y) for name in ("newton", "sip")}
    >>> display = ConvergenceDisplay.from_estimators(solvers)
    >>> (newton,) = display.lines_["newton"]
    >>> bool(newton.get_ydata()[-1] <= 1e-6)
    True
    """

    histories: dict[str, dict[str, Any]]
    tols: dict[str, float] = field(default_factory=dict)
    measure: str = "rel_gap"

    def __post_init__(self) -> None:
        if self.measure not in _MEASURES:
            known = ", ".join(map(repr, _MEASURES))
            raise ValueError(f"measure must be one of {known}; got {self.measure!r}.")
        if not self.histories:
            raise ValueError("histories must have at least one estimator.")
        for name, history in self.histories.items():
            sizes = {len(history.get(key, ())) for key in ("n_inner_solves", self.measure)}
            if len(sizes) > 1 or sizes == {0}:
                raise ValueError(
                    f"The history of {name!r} must have as many n_inner_solves as {self.measure}, "
                    "one at least."
                )

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw how the gap of a fitted estimator closed.

        Parameters
        ----------
        estimator : one with a ``history_``
        name : str, optional
            By default that of the class.
        ax, **kwargs
            As for :meth:`plot`.
        """
        name = type(estimator).__name__ if name is None else name
        return cls.from_estimators({name: estimator}, ax=ax, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw several estimators, by their names."""
        histories = {}
        for name, estimator in estimators.items():
            why = "it keeps no record of the steps of its fit."
            if hasattr(estimator, "estimators_"):
                why = "draw one of its estimators_."
            histories[name] = required(estimator, "history_", why)
        every = [set(history) for history in histories.values()]
        shared = [measure for measure in _MEASURES if all(measure in keys for keys in every)]
        if not shared:
            raise ValueError(
                "These estimators have no measure in common: gates have the norm of a gradient, "
                "kernel weights have a gap. Draw them apart."
            )
        tols = {}
        if shared[0] == "rel_gap":
            tols = {name: float(estimator.tol) for name, estimator in estimators.items()}
        keys = ("n_inner_solves", "machine", shared[0])
        kept = {
            name: {key: list(history[key]) for key in keys if key in history}
            for name, history in histories.items()
        }
        return cls(kept, tols, shared[0]).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For the lines, ``ax.plot``.
        """
        ax = self._begin(ax, (6.4, 3.6))
        from matplotlib.ticker import MaxNLocator

        ax.set_yscale("log")
        self.lines_, ends = {}, []
        for number, (name, history) in enumerate(self.histories.items()):
            solves = np.asarray(history["n_inner_solves"], dtype=float)
            # Markers at a dozen places or two, of a line of hundreds.
            every = {"markevery": max(1, len(solves) // 12)}
            style = {**cue(number), **every, "linewidth": 1.6, **kwargs}
            found = np.maximum(np.asarray(history[self.measure], dtype=float), EPS)
            machines = np.asarray(history.get("machine", np.zeros(len(solves))))
            self.lines_[name] = [
                ax.plot(solves[machines == machine], found[machines == machine], **style)[0]
                for machine in np.unique(machines)
            ]
            ends.append(End(solves[-1], found[-1], name, self.lines_[name][0].get_color()))
        for tol in sorted(set(self.tols.values())):
            ax.axhline(tol, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
            last = max(end.x for end in ends)
            ends.append(End(last, tol, f"tol = {power_name(tol)}", GREY))
        ax.yaxis.set_major_formatter(power_name)
        ax.yaxis.set_minor_formatter(lambda *_: "")
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        ax.set_xlabel("inner solves")
        ax.grid(axis="y", **GUIDE)
        bare(ax, "bottom")
        titled(ax, _MEASURES[self.measure])
        ax.set(xlim=(0.5, max(end.x for end in ends) + 0.5), ylim=ax.get_ylim())
        # A single line needs no name.
        name_lines(ax, ends[1:] if len(self.histories) == 1 else ends)
        return self
