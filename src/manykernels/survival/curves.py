"""Step functions of time: survival curves of Kaplan and Meier, hazards of Cox models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtri

from ..utils.sklearn import sample_weights
from ..utils.storable import storable
from .targets import check_entry, check_risk, check_strata, check_survival


@storable
@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function of time that is constant between steps.

    Parameters
    ----------
    x : ndarray of shape (n_steps,)
        Times of the steps, increasing.
    y : ndarray of shape (n_steps,)
        Value from each step on, including the time of the step.
    before : float, default=0.0
        Value before the first step.
    end : float, default=inf
        Last time at which the function is known.

    Attributes
    ----------
    domain : (float, float)
        Times at which the function is known, 0 to `end`.

    Examples
    --------
    >>> from manykernels.survival import StepFunction
    >>> hazard = StepFunction([2.0, 5.0], [0.1, 0.4], end=9.0)
    >>> hazard([0.0, 2.0, 6.0])
    array([0. , 0.1, 0.4])
    """

    x: np.ndarray
    y: np.ndarray
    before: float = 0.0
    end: float = float("inf")

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.x.ndim != 1 or self.x.shape != self.y.shape or (np.diff(self.x) <= 0.0).any():
            raise ValueError("x must be increasing times, and y as many values.")

    @property
    def domain(self) -> tuple[float, float]:
        return 0.0, self.end

    def __call__(self, times: ArrayLike) -> Any:
        """Return the values at some times, as an array of their shape or a float.

        Parameters
        ----------
        times : float or array-like
            Times up to `end`.
        """
        moments = np.asarray(times, dtype=np.float64)
        if not (moments <= self.end).all():
            late = moments[~(moments <= self.end)].flat[0]
            raise ValueError(
                f"The function is known up to the time {self.end:g}, not at {late:g}: no training "
                "sample was observed that long."
            )
        values = np.append(self.before, self.y)[np.searchsorted(self.x, moments, side="right")]
        return values if values.ndim else float(values)


# -- Kaplan and Meier -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """Survival curve by Kaplan and Meier, see :func:`kaplan_meier`.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
        Distinct times of samples, censored ones included, increasing.
    survival : ndarray of shape (n_times,)
        Estimated probability of an event after each time.
    standard_error : ndarray of shape (n_times,)
        By Greenwood's formula. NaN where the curve is zero.
    low, high : ndarray of shape (n_times,)
        Ends of the confidence interval at each time.
    n_at_risk, n_events, n_censored : ndarray of shape (n_times,)
        Samples observed up to each time or longer, and those with an event or censored at it;
        sums of weights if there are sample weights.

    Examples
    --------
    >>> from manykernels.survival import kaplan_meier
    >>> curve = kaplan_meier([True, True, False, True], [1.0, 2.0, 2.0, 4.0])
    >>> curve(3.0), curve.at_risk(2.0), curve.median
    (0.5, 3.0, 2.0)
    """

    times: np.ndarray
    survival: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_at_risk: np.ndarray
    n_events: np.ndarray
    n_censored: np.ndarray

    def __call__(self, times: ArrayLike) -> Any:
        """Return the survival probability at some times.

        NaN after the last time, unless the curve has reached zero.
        """
        return self._looked_up(self.survival, times, "right")

    def just_before(self, times: ArrayLike) -> Any:
        """Return the limit of the curve from the left: the probability of survival up to a time.

        NaN after the last time, unless the curve has reached zero.
        """
        return self._looked_up(self.survival, times, "left")

    def interval(self, times: ArrayLike) -> np.ndarray:
        """Return the ends of the confidence interval at some times, (..., 2)."""
        ends = [self._looked_up(end, times, "right") for end in (self.low, self.high)]
        return np.stack(ends, axis=-1)

    def at_risk(self, times: ArrayLike) -> Any:
        """Return the number of samples that were observed up to some times or longer."""
        places = np.searchsorted(self.times, np.asarray(times, dtype=np.float64), side="left")
        numbers = np.append(self.n_at_risk, 0.0)[places]
        return numbers if numbers.ndim else float(numbers)

    @property
    def median(self) -> float:
        """First time at which the curve is at most one half; NaN if there is none."""
        low = np.flatnonzero(self.survival <= 0.5)
        return float(self.times[low[0]]) if len(low) else float("nan")

    def _looked_up(self, values: np.ndarray, times: ArrayLike, side: Any) -> Any:
        moments = np.asarray(times, dtype=np.float64)
        known = np.append(1.0, values)[np.searchsorted(self.times, moments, side=side)]
        unknown = np.isnan(moments)
        if self.survival[-1] > 0.0:
            unknown |= moments > self.times[-1]
        known = np.where(unknown, np.nan, known)
        return known if known.ndim else float(known)


def kaplan_meier(
    event: ArrayLike,
    time: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    censoring: bool = False,
    confidence: float = 0.95,
) -> KaplanMeier:
    """Estimate a survival curve by Kaplan and Meier's product.

    With d events among n samples at risk, the curve is multiplied by ``1 − d/n``. Its variance is
    Greenwood's, ``S² Σ d / (n (n − d))``. The confidence interval is that of ``log(−log S)``, so
    that it stays between 0 and 1. Where the curve is zero, the interval begins at zero and ends
    where it ended before.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        Whether the event was observed, or 0 and 1.
    time : array-like of shape (n_samples,)
        Time of the event, or of the last observation.
    sample_weight : array-like of shape (n_samples,), optional
        A sample of weight k counts like k equal ones.
    censoring : bool, default=False
        Estimate the distribution of the censoring times instead: censored samples are the events.
        Samples with an event at the same time have left before.
    confidence : float, default=0.95
        Confidence level of the interval at each time.

    Returns
    -------
    curve : KaplanMeier

    References
    ----------
    E. L. Kaplan, P. Meier. Nonparametric estimation from incomplete observations. Journal of the
    American Statistical Association 53, 1958.

    Examples
    --------
    >>> from manykernels.survival import kaplan_meier
    >>> curve = kaplan_meier([1, 0, 1, 1, 0], [1.0, 2.0, 2.0, 4.0, 5.0])
    >>> curve.survival.round(3), curve.n_at_risk
    (array([0.8, 0.6, 0.3, 0.3]), array([5., 4., 2., 1.]))
    >>> curve.interval(2.0).round(3)
    array([0.126, 0.882])
    """
    events, moments = check_survival(event, time)
    weights = sample_weights(sample_weight, moments)
    check_confidence(confidence)
    kept = weights > 0.0
    events, moments, weights = events[kept], moments[kept], weights[kept]
    times, place = np.unique(moments, return_inverse=True)
    totals = np.bincount(place, weights)
    n_events = np.bincount(place, weights * events)
    n_censored = np.bincount(place, weights * ~events)
    n_at_risk = np.cumsum(totals[::-1])[::-1]
    if censoring:
        lost, at_risk = n_censored, np.where(n_censored > 0.0, n_at_risk - n_events, n_at_risk)
    else:
        lost, at_risk = n_events, n_at_risk
    # The curve is exactly zero if all samples at risk are lost.
    ends = np.append(n_at_risk[1:], 0.0) == 0.0
    all_lost = ends & (lost > 0.0) & ((n_censored == 0.0) | censoring)
    survival = np.cumprod(np.where(all_lost, 0.0, 1.0 - lost / at_risk))
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = np.cumsum(np.where(all_lost, np.nan, lost / (at_risk * (at_risk - lost))))
        root = np.sqrt(sums)
        width = ndtri(0.5 + 0.5 * confidence) * root / np.log(survival)
        low, high = survival ** np.exp(-width), survival ** np.exp(width)
    certain = survival == 1.0
    low, high = np.where(certain, 1.0, low), np.where(certain, 1.0, high)
    if all_lost[-1]:
        low[-1], high[-1] = 0.0, high[-2] if len(high) > 1 else 1.0
    return KaplanMeier(
        times, survival, survival * root, low, high, n_at_risk, n_events, n_censored
    )


def check_confidence(confidence: float) -> None:
    """Raise an error unless a confidence level is between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")


# -- Hazards of a Cox model -----------------------------------------------------------------------


def cumulative_baseline_hazard(
    event: ArrayLike,
    time: ArrayLike,
    risk: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    entry: ArrayLike | None = None,
) -> Any:
    """Estimate the cumulative baseline hazard of a Cox model by Breslow's sum.

    For outputs f of the samples, the hazard at time t is ``exp(f) h(t)``. The cumulative baseline
    hazard increases at every event time t by the number of events, divided by the sum of
    ``exp(f)`` over the samples at risk.

    Parameters
    ----------
    event, time : array-like of shape (n_samples,)
        As in :func:`kaplan_meier`.
    risk : array-like of shape (n_samples,)
        Outputs f of the model, logarithms of relative hazards.
    sample_weight : array-like of shape (n_samples,), optional
        A sample of weight k counts like k equal ones.
    strata : array-like of shape (n_samples,), optional
        Groups with different baseline hazards.
    entry : array-like of shape (n_samples,), optional
        Time from which on a sample was observed (left truncation).

    Returns
    -------
    hazard : StepFunction, or dict of stratum to StepFunction
        A dict if there are strata, in the order of their first samples.

    References
    ----------
    N. Breslow. Contribution to the discussion of Cox (1972). Journal of the Royal Statistical
    Society B 34, 1972.

    Examples
    --------
    >>> from manykernels.survival import cumulative_baseline_hazard
    >>> hazard = cumulative_baseline_hazard([1, 0, 1], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    >>> hazard.x, hazard.y.round(3)
    (array([1., 3.]), array([0.333, 1.333]))
    """
    events, moments = check_survival(event, time)
    outputs = check_risk(risk, len(moments))
    weights = sample_weights(sample_weight, moments)
    entries = None if entry is None else check_entry(entry, moments)
    if strata is None:
        return _breslow(events, moments, outputs, weights, entries)
    numbers, labels = check_strata(strata, len(moments))
    hazards = {}
    for number, label in enumerate(labels):
        rows = numbers == number
        some = None if entries is None else entries[rows]
        # Model files have no booleans as keys; 0 and 1 are equal to them.
        key = int(label) if isinstance(label, bool) else label
        hazards[key] = _breslow(events[rows], moments[rows], outputs[rows], weights[rows], some)
    return hazards


def _breslow(
    event: np.ndarray,
    time: np.ndarray,
    risk: np.ndarray,
    weight: np.ndarray,
    entry: np.ndarray | None,
) -> StepFunction:
    kept = weight > 0.0
    event, time, risk, weight = event[kept], time[kept], risk[kept], weight[kept]
    times, place = np.unique(time[event], return_inverse=True)
    if len(times) == 0:
        return StepFunction([], [], end=float(time.max(initial=0.0)))  # type: ignore[arg-type]
    n_events = np.bincount(place, weight[event])
    logs = risk + np.log(weight)
    if entry is None:
        order = np.argsort(-time, kind="stable")
        sums = np.logaddexp.accumulate(logs[order])
        # The last sample, in decreasing order of time, that is at risk at each event time.
        last = np.searchsorted(-time[order], -times, side="right") - 1
        log_sums = sums[last]
    else:
        entry = entry[kept]
        at_risk = ((time >= moment) & (entry < moment) for moment in times)
        log_sums = np.array([logsumexp(logs[rows]) for rows in at_risk])
    with np.errstate(over="ignore"):
        hazard = np.cumsum(np.exp(np.log(n_events) - log_sums))
    if not np.isfinite(hazard).all():
        raise ValueError(
            f"risk is as low as {risk.min():g}, so that the baseline hazard is too large for a "
            "number: subtract the mean of the risks."
        )
    return StepFunction(times, hazard, end=float(time.max()))


def survival_curves(hazard: StepFunction, risk: ArrayLike) -> np.ndarray:
    """Return the survival curves of samples of a Cox model, ``S(t) = exp(−exp(f) H(t))``.

    Parameters
    ----------
    hazard : StepFunction
        Cumulative baseline hazard H.
    risk : array-like of shape (n_samples,)
        Outputs f of the samples.

    Returns
    -------
    curves : ndarray of shape (n_samples,)
        A :class:`StepFunction` for each sample.

    Examples
    --------
    >>> from manykernels.survival import StepFunction, survival_curves
    >>> low, high = survival_curves(StepFunction([1.0, 2.0], [0.1, 0.3], end=4.0), [-1.0, 1.0])
    >>> low([0.5, 1.5, 4.0]).round(3), high([0.5, 1.5, 4.0]).round(3)
    (array([1.   , 0.964, 0.896]), array([1.   , 0.762, 0.442]))
    """
    outputs = check_risk(risk, None)
    curves = np.empty(len(outputs), dtype=object)
    for i, row in enumerate(survival_probabilities(hazard.y, outputs)):
        curves[i] = StepFunction(hazard.x, row, before=1.0, end=hazard.end)
    return curves


def hazard_functions(hazard: StepFunction, risk: ArrayLike) -> np.ndarray:
    """Return the cumulative hazard functions of samples of a Cox model, ``exp(f) H(t)``.

    Parameters
    ----------
    hazard : StepFunction
        Cumulative baseline hazard H.
    risk : array-like of shape (n_samples,)
        Outputs f of the samples.

    Returns
    -------
    hazards : ndarray of shape (n_samples,)
        A :class:`StepFunction` for each sample.

    Examples
    --------
    >>> from manykernels.survival import StepFunction, hazard_functions
    >>> low, high = hazard_functions(StepFunction([1.0, 2.0], [0.1, 0.3], end=4.0), [0.0, 1.0])
    >>> round(low(1.5), 3), round(high(1.5), 3)
    (0.1, 0.272)
    """
    outputs = check_risk(risk, None)
    functions = np.empty(len(outputs), dtype=object)
    with np.errstate(over="ignore"):
        rows = np.exp(outputs[:, None] + np.log(hazard.y))
    for i, row in enumerate(rows):
        functions[i] = StepFunction(hazard.x, row, end=hazard.end)
    return functions


def survival_probabilities(hazards: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """Return ``exp(−exp(f) H)`` for cumulative hazards H and outputs f, (n_samples, n_hazards)."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp(-np.exp(risk[:, None] + np.log(hazards)))
