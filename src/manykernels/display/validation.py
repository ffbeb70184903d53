"""Displays of the convergence of solvers, and of validation scores over a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..utils.numerics import EPS
from .base import (
    GREY,
    GUIDE,
    Display,
    End,
    bare,
    cue,
    grid_axis,
    ink,
    name_lines,
    norm_name,
    power_name,
    required,
    shaped,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..estimators.base import KernelEstimator


# -- Convergence ----------------------------------------------------------------------------------


# Convergence measures of a history, by priority, and their titles.
_MEASURES = {"rel_gap": "Relative duality gap", "gradient_norm": "Norm of the gradient"}


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """Relative duality gaps, or norms of a gate's gradient, against the number of inner solves.

    Parameters
    ----------
    histories : dict of str to dict
        Histories by name of the estimator. A history has ``"n_inner_solves"`` and the measure,
        lists of the same length; if several machines were solved in turn, also ``"machine"``.
    tols : dict of str to float, optional
        Gaps at which the estimators stop, drawn as lines.
    measure : {"rel_gap", "gradient_norm"}, default="rel_gap"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to list of Line2D
        A line for each machine. Values that are not positive are drawn at the machine epsilon.

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
                    "and at least one."
                )

    @classmethod
    def from_estimator(
        cls,
        estimator: KernelEstimator,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the convergence of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with the attribute ``history_``
        name : str, optional
            Name of the estimator; by default that of its class.
        ax, **kwargs
            As for :meth:`plot`.
        """
        name = type(estimator).__name__ if name is None else name
        return cls.from_estimators({name: estimator}, ax=ax, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, ax: Axes | None = None, **kwargs: Any
    ) -> Self:
        """Draw the convergence of several estimators, by name."""
        histories = {}
        for name, estimator in estimators.items():
            why = "it keeps no record of the steps of its fit."
            histories[name] = required(estimator, "history_", why)
        shared = [
            measure
            for measure in _MEASURES
            if all(measure in history for history in histories.values())
        ]
        if not shared:
            raise ValueError(
                "These estimators have no measure in common: estimators with a gate record the "
                "norm of the gradient, others the duality gap. Draw them in separate plots."
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
            Passed to ``ax.plot`` for the lines.
        """
        ax = self._begin(ax, (6.4, 3.6))
        from matplotlib.ticker import MaxNLocator

        ax.set_yscale("log")
        self.lines_, ends = {}, []
        for number, (name, history) in enumerate(self.histories.items()):
            solves = np.asarray(history["n_inner_solves"], dtype=float)
            # About a dozen markers on a line of hundreds of points.
            every = {"markevery": max(1, len(solves) // 12)}
            style = {**cue(number), **every, "linewidth": 1.6, **kwargs}
            values = np.maximum(np.asarray(history[self.measure], dtype=float), EPS)
            machines = np.asarray(history.get("machine", np.zeros(len(solves))))
            self.lines_[name] = [
                ax.plot(solves[machines == machine], values[machines == machine], **style)[0]
                for machine in np.unique(machines)
            ]
            ends.append(End(solves[-1], values[-1], name, self.lines_[name][0].get_color()))
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


# -- Validation scores ----------------------------------------------------------------------------


# Symbols of parameters.
_LETTERS = {"reg": "λ", "epsilon": "ε", "n_regions": "regions"}
# Parameters on the x axis by default: the first of these that a grid has.
_ALONG = ("reg", "C", "penalty", "epsilon", "sharpness", "n_regions", "p")


@dataclass(eq=False)
class ValidationDisplay(Display):
    """Mean scores of held-out samples: a line for each p, along λ or C.

    Error bars are one standard error of the mean over splits. The chosen point is ringed, and a
    dashed line is one standard error below the best score.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Values of the parameter on the x axis.
    scores, errors : ndarray of shape (n_lines, n_values)
        Mean scores and their standard errors. NaN where unknown.
    line_names : list of str
    parameter : str, default="reg"
        Name of the parameter on the x axis.
    chosen : (int, int), optional
        Indices of the line and the value of the chosen point.
    best : (float, float), optional
        Best mean score of the grid and its standard error.
    scoring : str, default="score"
        Name of the score.
    caption : str, default=""
        Text in the title, such as the values of fixed parameters.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        One for each row of `scores`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDACV
    >>> from manykernels.display import ValidationDisplay
    >>> model = MKFDACV(ps=[1, 2], regs=[0.01, 0.1, 1]).fit(*load_iris(return_X_y=True))
    >>> display = ValidationDisplay.from_estimator(model)
    >>> display.line_names
    ['p = 1', 'p = 2']
    >>> (display.scores == model.validation_curve()).all()
    np.True_
    """

    values: np.ndarray
    scores: np.ndarray
    errors: np.ndarray
    line_names: list[str]
    parameter: str = "reg"
    chosen: tuple[int, int] | None = None
    best: tuple[float, float] | None = None
    scoring: str = "score"
    caption: str = ""

    def __post_init__(self) -> None:
        self.values = shaped("values", self.values, None, of="a row of numbers")
        sizes = len(self.line_names), len(self.values)
        table = f"{sizes[0]} × {sizes[1]}, lines by values"
        self.scores = shaped("scores", self.scores, *sizes, of=table)
        self.errors = shaped("errors", self.errors, *sizes, of=table)

    @classmethod
    def from_estimator(
        cls,
        estimator: KernelEstimator,
        *,
        along: str | None = None,
        lines: str | None = None,
        which: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of an estimator with built-in cross-validation.

        Parameters
        ----------
        estimator : MKFDACV, MKSVCCV or another with ``cv_results_``
        along : str, optional
            Parameter on the x axis; by default λ or C.
        lines : str, optional
            Parameter with a line for each of its values; by default p. Other parameters, and the
            set of kernels, are fixed at the chosen values.
        which : int, optional
            Number of the label or target, where each of several has results of its own.
        ax, **kwargs
            As for :meth:`plot`.
        """
        display = cls.of_estimator(estimator, along=along, lines=lines, which=which)
        return display.plot(ax, **kwargs)

    @classmethod
    def of_estimator(
        cls,
        estimator: KernelEstimator,
        *,
        along: str | None = None,
        lines: str | None = None,
        which: int | None = None,
    ) -> Self:
        """Return the display of :meth:`from_estimator` without drawing it."""
        results = required(estimator, "cv_results_", "it does not use cross-validation.")
        if isinstance(results, list):
            if which is None or not 0 <= which < len(results):
                kind = "label" if hasattr(estimator, "n_labels_") else "target"
                raise ValueError(
                    f"{type(estimator).__name__} has results for each of {len(results)} {kind}s: "
                    f"pass the number of a {kind}, such as which=0, got which={which}."
                )
            results = results[which]
        elif which is not None:
            raise ValueError(
                f"{type(estimator).__name__} has one table of results: pass which=None, got "
                f"which={which}."
            )
        best, caption = int(np.nanargmax(results["mean_test_score"])), []
        mean, error = (float(results[f"{name}_test_score"][best]) for name in ("mean", "se"))
        if (sets := results.get("param_kernel_set")) is not None:
            caption.append(f"kernel set {estimator.kernel_set_}")
            results = _at(results, sets == estimator.kernel_set_)
        names = [name for name in results if name.startswith("param_")]
        # Weights of largest evidence, with p = NaN, have no place among norms or λ.
        values = {name.removeprefix("param_"): _different(results[name]) for name in names}
        chosen = {
            name: float(np.atleast_1d(getattr(estimator, f"{name}_"))[which or 0])
            for name in values
        }
        x = _one_of(along, values, "along", next(name for name in _ALONG if name in values))
        rest = [name for name in values if name != x]
        line = _one_of(lines, values, "lines", "p" if "p" in rest else (rest or [None])[0])
        if line == x:
            raise ValueError(f"along and lines are both {x!r}; they must differ.")
        held = [name for name in rest if name != line]
        several = values[line] if line else np.zeros(1)
        if len(values[x]) == 0:  # nothing but weights of largest evidence was tried
            values[x] = np.array([chosen[x]])
        titles = [_assignment(line, value) for value in several] if line else [""]
        evidence = np.isnan(results.get("param_p", np.zeros(1)))
        if evidence.any():
            titles.append("evidence")
        table = np.full((2, len(titles), len(values[x])), np.nan)
        for k, params in enumerate(results["params"]):
            if evidence[k % len(evidence)]:
                at: tuple[Any, Any] = -1, slice(None)  # the same score for every λ
            elif all(params[name] == chosen[name] for name in held):
                row = int(np.searchsorted(several, params[line])) if line else 0
                at = row, int(np.searchsorted(values[x], params[x]))
            else:
                continue
            scores = results["mean_test_score"][k], results["se_test_score"][k]
            table[:, *at] = np.reshape(scores, (2,) if isinstance(at[1], int) else (2, 1))
        picked = int(np.searchsorted(several, chosen[line])) if line else 0
        if np.isnan(chosen.get("p", 0.0)):
            picked = len(titles) - 1
        place = int(np.searchsorted(values[x], chosen[x]))
        caption += [_assignment(name, chosen[name]) for name in held if len(values[name]) > 1]
        return cls(
            values[x],
            table[0],
            table[1],
            titles,
            x,
            (picked, min(place, len(values[x]) - 1)),
            (mean, error),
            _name_of_score(estimator),
            ", ".join(caption),
        )

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to ``ax.errorbar`` for the lines.
        """
        ax = self._begin(ax, (6.8, 3.8))
        names = norm_name if self.parameter == "p" else power_name
        places = grid_axis(ax, self.values, parameter_name(self.parameter), names)
        self.lines_, ends = [], []
        for i, scores in enumerate(self.scores):
            is_chosen = self.chosen is not None and i == self.chosen[0]
            style = {**cue(i), "linewidth": 2.2 if is_chosen else 1.3, "elinewidth": 0.9}
            # Side by side, so that error bars do not hide each other.
            x = _aside(ax, places, i, len(self.scores))
            errors = np.nan_to_num(self.errors[i])
            drawn = ax.errorbar(x, scores, errors, **{**style, **kwargs})
            self.lines_.append(drawn.lines[0])
            known = np.flatnonzero(np.isfinite(scores))
            if len(known) and self.line_names[i]:
                at = known[-1]
                ends.append(End(x[at], scores[at], self.line_names[i], drawn.lines[0].get_color()))
        if self.best is not None and np.isfinite(self.best[1]):
            level = self.best[0] - self.best[1]
            ax.axhline(level, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        if self.chosen is not None:
            i, k = self.chosen
            x = _aside(ax, places, i, len(self.scores))
            ring = {"markersize": 13, "mfc": "none", "mec": ink(ax), "mew": 1.6, "zorder": 5}
            ax.plot(x[k], self.scores[i, k], "o", **ring)
        ax.grid(axis="y", **GUIDE)
        bare(ax, "bottom")
        titled(ax, self._title())
        ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
        name_lines(ax, ends)
        return self

    def _title(self) -> str:
        remarks = [self.caption, "ring: chosen" if self.chosen is not None else ""]
        if self.best is not None and np.isfinite(self.best[1]):
            remarks.append("dashed: best less one standard error")
        remark = "; ".join(filter(None, remarks))
        return f"{self.scoring}{f' ({remark})' if remark else ''}"


def _aside(ax: Axes, places: np.ndarray, line: int, number: int) -> np.ndarray:
    """Shift places slightly to one side, depending on the number of the line."""
    if len(places) < 2:
        return places
    logs = ax.get_xscale() == "log"
    at = np.log10(places) if logs else places
    # All lines together take a sixth of the smallest distance.
    moved = at + (line - (number - 1) / 2.0) * np.diff(at).min() / (6.0 * number)
    return 10.0**moved if logs else moved


def _one_of(value: str | None, choices: Mapping[str, Any], name: str, default: Any) -> Any:
    if value is None:
        return default
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    return value


def parameter_name(name: str) -> str:
    """Return the symbol of a parameter, such as λ for "reg"."""
    return _LETTERS.get(name, name)


def _at(results: Mapping[str, Any], points: np.ndarray) -> dict[str, Any]:
    """Return the table of the points of one set of kernels, without the column of sets."""
    return {
        name: [value for value, keep in zip(values, points, strict=True) if keep]
        if isinstance(values, list)
        else values[points]
        for name, values in results.items()
        if name != "param_kernel_set"
    }


def _different(values: np.ndarray) -> np.ndarray:
    """Return the different values without NaN."""
    return np.unique(values[~np.isnan(values)])


def _assignment(name: str, value: float) -> str:
    return f"{parameter_name(name)} = {(norm_name if name == 'p' else power_name)(value)}"


def _name_of_score(estimator: KernelEstimator) -> str:
    scoring = estimator.scoring
    if scoring is None:
        return "Mean held-out score"
    return str(scoring) if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
