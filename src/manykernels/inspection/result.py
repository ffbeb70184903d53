"""The table of :func:`~manykernels.view_importance`, to print, to draw and to compute with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tables import aligned
from ..display import ImportanceDisplay
from .stability import share_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class ViewImportance:
    """What each view is worth; made by :func:`~manykernels.view_importance`.

    Intervals are arrays whose last axis is (low, high). What an interruption has left unknown is
    NaN.

    Attributes
    ----------
    names : list of str
        Of the views.
    scoring : str
        Name of the score. Larger is better.
    method : str
        How samples were kept from the models that are judged by them.
    confidence : float
        Of all intervals.
    score, score_interval : float and ndarray of shape (2,)
        With all views.
    fall, fall_interval : ndarray of shape (n_views,) and (n_views, 2)
        How much the score falls without the view, everything else learnt again.
    alone, alone_interval : ndarray of shape (n_views,) and (n_views, 2)
        The score with the view only. NaN where it has no kernel of its own.
    weight : ndarray of shape (n_views,)
        Share of the view in the sum of the learnt weights.
    resampled_weights : ndarray of shape (n_resamples, n_views)
        The same, learnt from half-samples.
    negligible : float
        Share of weight above which a view counts as chosen: less is not determined by the
        relative gap `tol` of the estimator.
    plain_sum, plain_sum_interval : float and ndarray of shape (2,)
        The score with all views where all kernels have the same weight.
    gain, gain_interval : float and ndarray of shape (2,)
        How much higher the score is with learnt weights.
    """

    names: list[str]
    scoring: str
    method: str
    confidence: float
    score: float
    score_interval: np.ndarray
    fall: np.ndarray
    fall_interval: np.ndarray
    alone: np.ndarray
    alone_interval: np.ndarray
    weight: np.ndarray
    resampled_weights: np.ndarray = field(repr=False)
    negligible: float
    plain_sum: float
    plain_sum_interval: np.ndarray
    gain: float
    gain_interval: np.ndarray

    @property
    def chosen(self) -> np.ndarray:
        """How often half-samples gave the view a weight that is not negligible, (n_views,)."""
        if not len(self.resampled_weights):
            return np.full(len(self.names), np.nan)
        return np.mean(self.resampled_weights > self.negligible, axis=0)

    @property
    def weight_interval(self) -> np.ndarray:
        """Of the share of the weights, by its spread over half-samples, (n_views, 2)."""
        return share_intervals(self.weight, self.resampled_weights, self.confidence)

    def rows(self) -> list[dict[str, Any]]:
        """A dict per view; the keys are the columns of :meth:`to_frame`."""
        columns = {
            "fall": self.fall,
            "fall_low": self.fall_interval[:, 0],
            "fall_high": self.fall_interval[:, 1],
            "alone": self.alone,
            "alone_low": self.alone_interval[:, 0],
            "alone_high": self.alone_interval[:, 1],
            "weight": self.weight,
            "weight_low": self.weight_interval[:, 0],
            "weight_high": self.weight_interval[:, 1],
            "chosen": self.chosen,
        }
        return [
            {"view": name, **{key: float(column[j]) for key, column in columns.items()}}
            for j, name in enumerate(self.names)
        ]

    def to_frame(self) -> Any:
        """The table as a pandas data frame, one row per view. Needs pandas; else `rows`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas; rows() gives the same without.") from error
        return pd.DataFrame(self.rows()).set_index("view")

    def __str__(self) -> str:
        """The table, and the lines about all views together."""
        header = ["view", "fall without", "", "alone", "", "weight", "", "chosen"]
        cells = [
            [
                name,
                _number(self.fall[j], sign=True),
                _interval(self.fall_interval[j], sign=True),
                _number(self.alone[j]),
                _interval(self.alone_interval[j]),
                _number(self.weight[j]),
                _interval(self.weight_interval[j]),
                "–" if np.isnan(self.chosen[j]) else f"{self.chosen[j]:.0%}",
            ]
            for j, name in enumerate(self.names)
        ]
        return "\n".join(
            [
                f"{self.scoring}, {self.method}; intervals at {self.confidence:.0%}",
                f"all views {_number(self.score)} {_interval(self.score_interval)}",
                "",
                aligned([header, *cells]),
                "",
                f"plain sum {_number(self.plain_sum)} {_interval(self.plain_sum_interval)}, "
                f"gain of learnt weights {_number(self.gain, sign=True)} "
                f"{_interval(self.gain_interval, sign=True)}",
            ]
        )

    __repr__ = __str__

    def plot(self, axes: Sequence[Axes] | None = None) -> Figure:
        """Draw falls, scores alone and weights, each with its interval.

        It is an :class:`~manykernels.display.ImportanceDisplay`.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
            Where to draw; by default in a new figure.
        """
        return ImportanceDisplay.from_importance(self, ax=axes).figure_


def _number(value: float, *, sign: bool = False) -> str:
    return "–" if np.isnan(value) else f"{value:+.3f}" if sign else f"{value:.3f}"


def _interval(bounds: np.ndarray, *, sign: bool = False) -> str:
    if np.isnan(bounds).any():
        return ""
    return f"[{', '.join(_number(bound, sign=sign) for bound in bounds)}]"
