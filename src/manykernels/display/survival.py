"""Displays of survival: Kaplan–Meier curves of groups, and calibration of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..kernels.tables import Table
from ..survival.curves import KaplanMeier, kaplan_meier
from ..survival.targets import check_risk, survival_target
from .base import (
    BLUE,
    COLORS,
    GREY,
    GUIDE,
    Display,
    bare,
    ink,
    literally,
    name_length,
    shaped,
    shown_names,
    titled,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Styles of curves, which distinguish them besides colours.
_STYLES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
# Height of a row of the table of numbers at risk, relative to the font size.
_ROW = 1.45
# Width of a column of the table, in inches.
_COLUMN = 0.55
# Share of the room for names that other displays have, since the table is wide.
_FOR_NAMES = 0.75


@dataclass(eq=False)
class SurvivalDisplay(Display):
    """Kaplan–Meier curves of groups of samples, with the numbers at risk beneath.

    Bands are confidence intervals at each time. Small strokes are censored samples. The table
    has the number of samples of each group that are still observed at a time.

    Parameters
    ----------
    names : list of str
        Names of the groups.
    times : list of ndarray
        Distinct times of the samples of each group, increasing.
    survival : list of ndarray
        Estimated probability of survival at `times`.
    intervals : list of ndarray of shape (n_times, 2)
        Ends of the confidence intervals.
    at_risk, censored : list of ndarray
        Numbers of samples that are observed up to `times` or longer, and that are censored then.
    confidence : float, default=0.95
        Confidence level of the intervals.
    unit : str, default=""
        Unit of the times, such as "months".

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        A curve for each group.
    table_ : list of list of Text
        The numbers at risk, a row for each group.

    Examples
    --------
    >>> from manykernels.datasets import make_survival_views
    >>> from manykernels.display import SurvivalDisplay
    >>> views, y, risk = make_survival_views(random_state=0)
    >>> display = SurvivalDisplay.from_predictions(y, risk, unit="months")
    >>> display.names
    ['low risk', 'medium risk', 'high risk']
    >>> [row[0].get_text() for row in display.table_]
    ['67', '66', '67']
    """

    names: list[str]
    times: list[np.ndarray]
    survival: list[np.ndarray]
    intervals: list[np.ndarray]
    at_risk: list[np.ndarray]
    censored: list[np.ndarray]
    confidence: float = 0.95
    unit: str = ""

    def __post_init__(self) -> None:
        number = len(self.names)
        for name in ("times", "survival", "intervals", "at_risk", "censored"):
            arrays = getattr(self, name)
            if len(arrays) != number:
                raise ValueError(
                    f"{name} must have an array for each of {number} groups; got {len(arrays)}."
                )
            pair = (2,) if name == "intervals" else ()
            sizes = [None if name == "times" else len(times) for times in self.times]
            checked = [
                shaped(f"{name}[{i}]", array, sizes[i], *pair, of="numbers at the times")
                for i, array in enumerate(arrays)
            ]
            setattr(self, name, checked)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        risk: ArrayLike,
        *,
        n_groups: int = 3,
        confidence: float = 0.95,
        unit: str = "",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a curve for each of several groups of samples of similar risk.

        The groups have equal numbers of samples, up to samples of equal risk.

        Parameters
        ----------
        y : array-like, data frame or pair
            Survival target, as in :func:`~manykernels.survival.survival_target`.
        risk : array-like of shape (n_samples,)
            Predicted risks. Predict them for samples that the model has not learnt from: curves
            of training samples are further apart than those of new samples.
        n_groups : int, default=3
        confidence : float, default=0.95
        unit : str, default=""
            Unit of the times.
        ax, **kwargs
            As for :meth:`plot`.
        """
        options: dict[str, Any] = {"confidence": confidence, "unit": unit}
        return cls.of_predictions(y, risk, n_groups=n_groups, **options).plot(ax, **kwargs)

    @classmethod
    def of_predictions(
        cls,
        y: ArrayLike,
        risk: ArrayLike,
        *,
        n_groups: int = 3,
        confidence: float = 0.95,
        unit: str = "",
        sample_weight: np.ndarray | None = None,
    ) -> Self:
        """Return the display of :meth:`from_predictions` without drawing it.

        With sample weights, numbers at risk are sums of weights.
        """
        event, time, _ = survival_target(y)
        groups = risk_groups(check_risk(risk, len(event)), n_groups)
        members = {name: groups == i for i, name in enumerate(_group_names(n_groups))}
        curves = _curves(event, time, members, confidence, sample_weight)
        return cls.from_curves(curves, confidence=confidence, unit=unit)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, y: ArrayLike, **kwargs: Any) -> Self:
        """Draw a curve for each of several groups of similar predicted risk.

        Parameters
        ----------
        estimator : fitted estimator
            Estimator whose ``predict`` returns risks.
        X, y : samples and their survival target
            Samples that the estimator has not learnt from.
        **kwargs
            As for :meth:`from_predictions`.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(y, estimator.predict(X), **kwargs)

    @classmethod
    def from_groups(
        cls,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        order: Sequence[Any] | np.ndarray | None = None,
        confidence: float = 0.95,
        unit: str = "",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a curve for each of several given groups.

        Parameters
        ----------
        y : array-like, data frame or pair
            Survival target, as in :func:`~manykernels.survival.survival_target`.
        groups : array-like of shape (n_samples,)
            Group of each sample, such as the arm of a trial.
        order : sequence, optional
            Groups in the order in which they are drawn. By default sorted.
        confidence : float, default=0.95
            As for :meth:`from_predictions`.
        unit : str, default=""
            As for :meth:`from_predictions`.
        ax : matplotlib Axes, optional
        **kwargs
            As for :meth:`from_predictions`.
        """
        event, time, _ = survival_target(y)
        members = np.asarray(groups)
        if members.shape != event.shape:
            raise ValueError(
                f"groups must have one entry for each of {len(event)} samples; got the shape "
                f"{members.shape}."
            )
        known = np.unique(members) if order is None else list(order)
        for group in known:
            if not (members == group).any():
                raise ValueError(f"No sample is in the group {group!r}.")
        rows_of = {str(group): members == group for group in known}
        curves = _curves(event, time, rows_of, confidence)
        return cls.from_curves(curves, confidence=confidence, unit=unit).plot(ax, **kwargs)

    @classmethod
    def from_curves(
        cls, curves: dict[str, KaplanMeier], *, confidence: float = 0.95, unit: str = ""
    ) -> Self:
        """Return the display of curves of :func:`~manykernels.survival.kaplan_meier`, by name.

        Nothing is drawn yet.
        """
        values = list(curves.values())
        return cls(
            list(curves),
            [curve.times for curve in values],
            [curve.survival for curve in values],
            [np.column_stack([curve.low, curve.high]) for curve in values],
            [curve.n_at_risk for curve in values],
            [curve.n_censored for curve in values],
            confidence,
            unit,
        )

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to ``ax.plot`` for the curves.
        """
        # Room for the table beneath.
        ax = self._begin(ax, (6.4, 3.6 + 0.22 * len(self.names)))
        from matplotlib.ticker import MaxNLocator

        self.lines_, styles = [], []
        last = max(float(times[-1]) for times in self.times) or 1.0
        for i, times in enumerate(self.times):
            x = np.concatenate([[0.0], times])
            curve, low, high = (
                np.concatenate([[1.0], values])
                for values in (self.survival[i], *self.intervals[i].T)
            )
            style: dict[str, Any] = {
                "color": COLORS[i % len(COLORS)],
                "linestyle": _STYLES[i % len(_STYLES)],
                "linewidth": 1.8,
                **kwargs,
            }
            (line,) = ax.plot(x, curve, drawstyle="steps-post", **style)
            styles.append(style)
            color = style["color"]
            ax.fill_between(x, low, high, step="post", color=color, alpha=0.2, linewidth=0)
            lost = self.censored[i] > 0
            strokes: dict[str, Any] = {"markersize": 6, "markeredgewidth": 1.0}
            ax.plot(times[lost], self.survival[i][lost], "|", color=color, **strokes)
            self.lines_.append(line)
        ax.set(xlim=(0.0, last), ylim=(0.0, 1.02))
        ax.xaxis.set_major_locator(MaxNLocator(max(2, min(8, int(width_of(ax) / _COLUMN)))))
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.grid(axis="y", **GUIDE)
        bare(ax, "bottom")
        titled(ax, f"Survival, with {self.confidence:.0%} confidence intervals")
        self._draw_table(ax, styles)
        return self

    def _draw_table(self, ax: Axes, styles: list[dict[str, Any]]) -> None:
        """Write the numbers at risk beneath the axis of times, named in the colours of curves."""
        from matplotlib.transforms import ScaledTranslation

        inches = ax.figure.dpi_scale_trans
        size = 0.9 * float(ax.xaxis.label.get_fontsize())
        first, last = ax.get_xlim()
        ticks = [tick for tick in ax.get_xticks() if first <= tick <= last]
        ax.set_xticks(ticks)
        numbers = [
            [f"{number:.4g}" for number in np.append(known, 0.0)[np.searchsorted(times, ticks)]]
            for times, known in zip(self.times, self.at_risk, strict=True)
        ]
        # Places to the left of the axes, in points: end and beginning of a sample of the curve,
        # which leaves room for half of the first number, and end of the name.
        end = -(0.35 * max(len(row[0]) for row in numbers) + 0.7) * size
        begin, name_end = end - 2.2 * size, end - 2.7 * size
        place: dict[str, Any] = {
            "textcoords": "offset points",
            "fontsize": size,
            "va": "center",
            "annotation_clip": False,
        }
        at_axes: dict[str, Any] = {"xycoords": "axes fraction", **place}
        # Below the labels of the ticks.
        down = -2.6 * size
        unit = ax.annotate(self.unit or "time", (0.5, 0.0), (0.0, down), ha="center", **at_axes)
        ax.annotate("at risk", (0.0, 0.0), (name_end, down), ha="right", color=GREY, **at_axes)
        self.table_ = []
        names = shown_names(self.names, name_length(_FOR_NAMES * width_of(ax)))
        for i, row in enumerate(numbers):
            down -= _ROW * size
            color = styles[i]["color"]
            literally(
                ax.annotate(
                    names[i], (0.0, 0.0), (name_end, down), ha="right", color=color, **at_axes
                )
            )
            ax.annotate(
                "",
                (0.0, 0.0),
                (0.0, 0.0),
                xycoords=ax.transAxes + ScaledTranslation(begin / 72, down / 72, inches),
                textcoords=ax.transAxes + ScaledTranslation(end / 72, down / 72, inches),
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, **styles[i]},
            )
            self.table_.append(
                [
                    ax.annotate(
                        number,
                        (tick, 0.0),
                        (0.0, down),
                        xycoords=("data", "axes fraction"),
                        ha="center",
                        color=ink(ax),
                        **place,
                    )
                    for tick, number in zip(ticks, row, strict=True)
                ]
            )
        literally(unit)


def _curves(
    event: np.ndarray,
    time: np.ndarray,
    members: dict[str, np.ndarray],
    confidence: float,
    sample_weight: np.ndarray | None = None,
) -> dict[str, KaplanMeier]:
    """Return the Kaplan–Meier curve of each group; `members` are masks of samples."""
    return {
        name: kaplan_meier(
            event[rows],
            time[rows],
            confidence=confidence,
            sample_weight=None if sample_weight is None else sample_weight[rows],
        )
        for name, rows in members.items()
    }


def risk_groups(risk: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the group of each sample, 0 for the lowest risks, with about equal numbers.

    Samples of equal risk are in one group.
    """
    if not 1 <= n_groups <= len(risk):
        raise ValueError(f"n_groups must be between 1 and {len(risk)} samples; got {n_groups}.")
    inner = np.quantile(risk, np.arange(1, n_groups) / n_groups)
    groups = np.searchsorted(inner, risk, side="left")
    if len(np.unique(groups)) < n_groups:
        raise ValueError(
            f"The {len(np.unique(risk))} distinct risks of {len(risk)} samples cannot be divided "
            f"into n_groups={n_groups} groups of similar size: choose fewer."
        )
    return groups


def _group_names(n_groups: int) -> list[str]:
    known = {
        1: ["all"],
        2: ["low risk", "high risk"],
        3: ["low risk", "medium risk", "high risk"],
    }
    if n_groups in known:
        return known[n_groups]
    return [
        "risk " + {1: "1 (lowest)", n_groups: f"{n_groups} (highest)"}.get(i, str(i))
        for i in range(1, n_groups + 1)
    ]


# -- Calibration ----------------------------------------------------------------------------------


@dataclass(eq=False)
class SurvivalCalibrationDisplay(Display):
    """Predicted and observed probabilities of survival up to a horizon.

    The samples are divided into groups of similar predicted probability. A point is a group: its
    mean predicted probability, and its Kaplan–Meier estimate with the confidence interval. Points
    are on the diagonal if the probabilities are calibrated.

    Parameters
    ----------
    predicted, observed : ndarray of shape (n_groups,)
        Mean predicted probability, and Kaplan–Meier estimate at the horizon. NaN if no sample of
        a group was observed that long.
    intervals : ndarray of shape (n_groups, 2)
        Ends of the confidence intervals of `observed`.
    sizes : ndarray of shape (n_groups,)
        Numbers of samples.
    horizon : float
        Time up to which survival is predicted.
    name : str, default=""
        Name of the model.
    confidence : float, default=0.95
        Confidence level of the intervals.
    unit : str, default=""
        Unit of the horizon.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D
        The points.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.datasets import make_survival_views
    >>> from manykernels.display import SurvivalCalibrationDisplay
    >>> views, y, risk = make_survival_views(1000, random_state=0)
    >>> truth = np.exp(-np.exp(risk) * 12 / 24)
    >>> display = SurvivalCalibrationDisplay.from_predictions(y, truth, 12, unit="months")
    >>> bool(np.abs(display.predicted - display.observed).max() < 0.1)
    True
    """

    predicted: np.ndarray
    observed: np.ndarray
    intervals: np.ndarray
    sizes: np.ndarray
    horizon: float
    name: str = ""
    confidence: float = 0.95
    unit: str = ""

    def __post_init__(self) -> None:
        number = len(self.predicted)
        for name in ("predicted", "observed", "sizes"):
            values = getattr(self, name)
            setattr(self, name, shaped(name, values, number, of=f"a number for {number} groups"))
        pairs = f"{number} pairs (low, high)"
        self.intervals = shaped("intervals", self.intervals, number, 2, of=pairs)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        survival: ArrayLike,
        horizon: float,
        *,
        n_groups: int = 5,
        name: str = "",
        confidence: float = 0.95,
        unit: str = "",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the calibration of predicted probabilities.

        Parameters
        ----------
        y : array-like, data frame or pair
            Survival target, as in :func:`~manykernels.survival.survival_target`.
        survival : array-like of shape (n_samples,)
            Predicted probabilities of survival up to the horizon, of samples that the model has
            not learnt from.
        horizon : float
            Time up to which survival is predicted.
        n_groups : int, default=5
            Number of groups of similar probability, with equal numbers of samples.
        name : str, default=""
            Name of the model.
        confidence : float, default=0.95
        unit : str, default=""
        ax, **kwargs
            As for :meth:`plot`.
        """
        options: dict[str, Any] = {"n_groups": n_groups, "name": name, "unit": unit}
        display = cls.of_predictions(y, survival, horizon, confidence=confidence, **options)
        return display.plot(ax, **kwargs)

    @classmethod
    def of_predictions(
        cls,
        y: ArrayLike,
        survival: ArrayLike,
        horizon: float,
        *,
        n_groups: int = 5,
        name: str = "",
        confidence: float = 0.95,
        unit: str = "",
        sample_weight: np.ndarray | None = None,
    ) -> Self:
        """Return the display of :meth:`from_predictions` without drawing it.

        Sample weights are those of the Kaplan–Meier estimates and of the means.
        """
        event, time, _ = survival_target(y)
        probabilities = check_risk(survival, len(event), "survival")
        outside = (probabilities < 0.0) | (probabilities > 1.0)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"survival must be probabilities, but is {probabilities[row]:g} in row {row}."
            )
        if not 0.0 <= horizon <= time.max():
            raise ValueError(
                f"horizon is {horizon:g}, but samples were observed from 0 to {time.max():g}: "
                "choose a time in between."
            )
        groups = risk_groups(probabilities, n_groups)
        members = {str(group): groups == group for group in range(n_groups)}
        curves = _curves(event, time, members, confidence, sample_weight).values()
        weights = np.ones(len(event)) if sample_weight is None else sample_weight
        return cls(
            np.array(
                [
                    np.average(probabilities[rows], weights=weights[rows])
                    for rows in members.values()
                ]
            ),
            np.array([curve(horizon) for curve in curves]),
            np.array([curve.interval(horizon) for curve in curves]),
            np.array([float(rows.sum()) for rows in members.values()]),
            float(horizon),
            name,
            confidence,
            unit,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Table,
        y: ArrayLike,
        horizon: float,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the calibration of the survival curves of an estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Estimator whose ``predict_survival_function`` returns a function of time for each
            sample.
        X, y : samples and their survival target
            Samples that the estimator has not learnt from.
        horizon : float
            Time up to which survival is predicted.
        name : str, optional
            Name of the estimator; by default that of its class.
        **kwargs
            As for :meth:`from_predictions`.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_survival_function"):
            raise ValueError(
                f"{type(estimator).__name__} has no predict_survival_function: it predicts no "
                "probabilities of survival."
            )
        survival = [float(curve(horizon)) for curve in estimator.predict_survival_function(X)]
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, survival, horizon, name=name, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to ``ax.errorbar`` for the points.
        """
        ax = self._begin(ax, (4.2, 4.4))
        known = np.isfinite(self.observed)
        errors = np.abs(self.intervals - self.observed[:, None])[known].T
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        style = {"color": BLUE, "marker": "o", "markersize": 5, "linestyle": "none", **kwargs}
        drawn = ax.errorbar(self.predicted[known], self.observed[known], errors, **style)
        self.line_ = drawn.lines[0]
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        from matplotlib.ticker import MultipleLocator

        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MultipleLocator(0.25))
            axis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.grid(**GUIDE)
        bare(ax, "bottom")
        unit = f" {self.unit}" if self.unit else ""
        titled(ax, f"Survival up to {self.horizon:g}{unit}{f', {self.name}' if self.name else ''}")
        unknown = int((~known).sum())
        remark = f"\n({unknown} of {len(known)} groups not observed so long)" if unknown else ""
        ax.set_xlabel(f"predicted{remark}")
        ax.set_ylabel(f"observed, with {self.confidence:.0%} intervals")
        return self
