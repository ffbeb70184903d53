"""Cox's partial likelihood as a smooth function of the outputs.

Sort the samples of a stratum by time, events before censored samples of the same time, and let
``e_i = w_i exp f_i``. A sample is at risk at all event times up to its own. So the Hessian has

    H_ij = −e_i e_j A_i    (i before j),        H_ii = e_i D_i − e_i² A_i

with running sums D, A of W/S and W/S² over the event times (W the weight of the events, S the sum
of e over the risk set), and another A between events of the same time if ties are Efron's. A
Cholesky factor of such a matrix has the same form and takes O(m) operations
(:class:`RiskSetCurvature`); E = (H⁻¹ + Q)⁻¹ then takes one factorisation of an m × m matrix.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import logsumexp

from ..utils.numerics import EPS, matmul
from .base import Array, Indices
from .smooth import (
    Curvature,
    InverseSum,
    SmoothFunction,
    checked_column,
    checked_weights,
    cholesky,
)

# Range of outputs whose exponentials, centred, are neither zero nor infinite in double precision,
# and the same for the fourth powers that the Cholesky factor has.
_SAFE_RANGE, _SMALL_RANGE = 500.0, 100.0
# Relative size of a pivot that is a rounding error: H has no curvature along a constant.
_LEAST_PIVOT = 1e-13


class _Terms(NamedTuple):
    """Logarithms of sums over risk sets, one or more for every event time.

    Attributes
    ----------
    risks : ndarray of shape (n_terms, m)
        Weights of the samples in the sum.
    means : ndarray of shape (n_terms, m)
        Weights of the events, which sum to one.
    factors, shifts : ndarray of shape (n_terms,)
        Factor of the logarithm, and the logarithm of the total weight of the events.
    """

    risks: Array
    means: Array
    factors: Array
    shifts: Array


class Cox(SmoothFunction):
    """Half the deviance of Cox's proportional hazards: the negative log partial likelihood.

    At every time t with events, of weight W_t in total, the risk set R_t are the samples of the
    same stratum that have entered before t and have not left before it:

        φ(f) = Σ_t W_t log(Σ_{i ∈ R_t} w_i exp f_i / W_t) − Σ_{i: event} w_i f_i

    (Breslow). Division by W_t makes the least φ of any outputs zero. Efron's method replaces the
    logarithm by the mean over l = 0 … d − 1 of logarithms in which the d tied events count with
    the factor ``1 − l/d``, their total too. φ does not change if a constant is added to the
    outputs of a stratum, so there is no bias.

    Parameters
    ----------
    time : array-like of shape (m,)
        Time of the event, or of the last observation.
    event : array-like of shape (m,), bool
        Whether the event was observed.
    entry : array-like of shape (m,), optional
        Time from which on a sample was observed (left truncation).
    strata : array-like of shape (m,), optional
        Group of each sample; groups have different baseline hazards.
    ties : {"efron", "breslow"}, default="efron"
    sample_weight : array-like of shape (m,), optional
        A sample of weight k counts like k equal ones with Breslow's ties. With Efron's, tied
        events have their mean weight.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses.cox import Cox
    >>> function = Cox([1.0, 2.0, 3.0], [True, False, True])
    >>> round(function.value(np.zeros((3, 1))), 6)  # log 3
    1.098612
    """

    has_bias = False
    by_samples = False

    def __init__(
        self,
        time: ArrayLike,
        event: ArrayLike,
        *,
        entry: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        ties: Literal["efron", "breslow"] = "efron",
        sample_weight: ArrayLike | None = None,
    ) -> None:
        times = checked_column(time, "time")
        m = len(times)
        weights = checked_weights(sample_weight, m)
        events = np.asarray(event).astype(bool) & (weights > 0.0)
        if np.shape(event) != (m,):
            raise ValueError(f"event must have {m} entries, as time has.")
        if not events.any():
            raise ValueError("event must be True for a sample of positive weight.")
        if ties not in ("efron", "breslow"):
            raise ValueError(f'ties must be "efron" or "breslow", got {ties!r}.')
        entries = None if entry is None else checked_column(entry, "entry", m)
        if entries is not None and (entries >= times).any():
            row = int(np.argmax(entries >= times))
            raise ValueError(f"entry must be before time, which it is not in row {row}.")
        groups = np.zeros(m) if strata is None else np.asarray(strata)
        if groups.shape != (m,):
            raise ValueError(f"strata must have {m} entries, as time has.")
        self.event_weight = np.where(events, weights, 0.0)
        self._time, self._event, self._entry = times, events, entries
        self._weight, self._ties = weights, ties
        self._stratum = np.unique(groups, return_inverse=True)[1].ravel()

    @cached_property
    def terms(self) -> _Terms:
        """Sums over risk sets, written out: for left truncation and outputs that are far apart."""
        entries = np.full(len(self._time), -np.inf) if self._entry is None else self._entry
        risks, factors, shifts, means = [], [], [], []
        keys = np.column_stack([self._stratum, self._time])
        for stratum, moment in np.unique(keys[self._event], axis=0):
            alike = self._stratum == stratum
            at_risk = alike & (self._time >= moment) & (entries < moment)
            weights = np.where(at_risk, self._weight, 0.0)
            tied = self._event & alike & (self._time == moment)
            total = float(self._weight[tied].sum())
            n_terms = int(tied.sum()) if self._ties == "efron" else 1
            for term in range(n_terms):
                kept = 1.0 - term / n_terms
                risks.append(np.where(tied, kept * weights, weights))
                factors.append(total / n_terms)
                shifts.append(np.log(total * kept))
                means.append(np.where(tied, self._weight / total, 0.0))
        return _Terms(np.array(risks), np.array(means), np.array(factors), np.array(shifts))

    @cached_property
    def _sets(self) -> RiskSets:
        return RiskSets(
            self._time, self._event, self._stratum, self._weight, efron=self._ties == "efron"
        )

    def _is_written_out(self, outputs: Array) -> bool:
        """Return whether sums have to be computed from the terms."""
        return self._entry is not None or not float(np.ptp(outputs)) < _SMALL_RANGE

    def _log_sums(self, f: Array) -> Array:
        """Return the logarithm of the sum of ``w exp f`` in every term."""
        terms = self.terms
        if np.ptp(f) < _SAFE_RANGE:
            centre = 0.5 * float(f.max() + f.min())
            log_sums: Array = np.log(matmul(terms.risks, np.exp(f - centre))) + centre
            return log_sums
        with np.errstate(divide="ignore"):
            return np.asarray(logsumexp(np.log(terms.risks) + f, axis=1))

    def _shares(self, f: Array) -> Array:
        """Return the share of each sample in the sum of every term, (n_terms, m)."""
        risks, log_sums = self.terms.risks, self._log_sums(f)
        with np.errstate(over="ignore", invalid="ignore"):
            shares = risks * np.exp(f - log_sums[:, None])
        return np.where(risks > 0.0, shares, 0.0)

    def value(self, outputs: Array) -> float:
        f = outputs[:, 0]
        if not self._is_written_out(outputs):
            return self._sets.value(f)
        terms = self.terms
        return float(terms.factors @ (self._log_sums(f) - terms.means @ f - terms.shifts))

    def gradient(self, outputs: Array) -> Array:
        f = outputs[:, 0]
        if not self._is_written_out(outputs):
            expected = self._sets.expected_events(f)
        else:
            expected = self.terms.factors @ self._shares(f)
        gradient: Array = (expected - self.event_weight)[:, None]
        return gradient

    def gradient_errors(self, outputs: Array) -> Array:
        """Return errors of the expected number of events of each sample that has an event."""
        errors: Array = EPS * self.event_weight[:, None] * (1.0 + np.abs(outputs))
        return errors

    def hessian(self, outputs: Array) -> Array | Curvature:
        f = outputs[:, 0]
        if not self._is_written_out(outputs):
            return RiskSetCurvature(self._sets, f)
        shares, factors = self._shares(f), self.terms.factors
        scaled = np.sqrt(factors)[:, None] * shares
        hessian: Array = linalg.blas.dsyrk(-1.0, scaled.T, lower=1)
        hessian += np.tril(hessian, -1).T
        hessian.reshape(-1, order="A")[:: len(hessian) + 1] += factors @ shares
        return hessian

    def rounding(self, outputs: Array) -> float:
        f = outputs[:, 0]
        if not self._is_written_out(outputs):
            return super().rounding(outputs) + self._sets.rounding(f)
        terms = self.terms
        sizes = np.abs(self._log_sums(f)) + terms.means @ np.abs(f) + np.abs(terms.shifts)
        return super().rounding(outputs) + EPS * float(terms.factors @ sizes)


# -- Sums over risk sets without left truncation --------------------------------------------------


class _Sums(NamedTuple):
    """Sums at given outputs of the sorted samples.

    Attributes
    ----------
    e : ndarray of shape (m,)
        ``w exp(f − centre)``.
    terms : ndarray of shape (n_terms,)
        Sums over the risk sets.
    centre : float
    """

    e: Array
    terms: Array
    centre: float


class RiskSets:
    """Samples in the order of strata, times, and events before censored samples.

    Every event time has one term with Breslow's ties, and as many as it has events with Efron's,
    in which its events count with the factor `kept`.
    """

    def __init__(
        self,
        time: Array,
        event: NDArray[np.bool_],
        stratum: Indices,
        weight: Array,
        *,
        efron: bool,
    ) -> None:
        self.order = np.lexsort((~event, time, stratum))
        time, event, stratum = time[self.order], event[self.order], stratum[self.order]
        self.weight, self.event = weight[self.order], event
        m = len(time)
        starts = np.flatnonzero(np.diff(stratum, prepend=-1))
        self.strata = [slice(a, b) for a, b in pairwise([*starts.tolist(), m])]
        # Samples of the same time, and those times that have events.
        is_first = np.diff(time, prepend=np.nan) != 0.0
        is_first[starts] = True
        firsts, of_time = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        n_events = np.bincount(of_time[event], minlength=len(firsts))
        has_events = n_events > 0
        self.first, self.n_tied = firsts[has_events], n_events[has_events]
        self.end = np.append(starts, m)[np.searchsorted(starts, self.first, side="right")]
        # The event time that is the last one up to each sample; -1 if its stratum has none before.
        last = (np.cumsum(has_events) - 1)[of_time]
        begins = np.searchsorted(self.first, starts)
        lengths = [stratum.stop - stratum.start for stratum in self.strata]
        self.last = np.where(last >= np.repeat(begins, lengths), last, -1)
        self.times = [slice(a, b) for a, b in pairwise([*begins.tolist(), len(self.first)])]
        # Terms: the event time, the factor of its events, the factor of the logarithm.
        self.total = self._of_events(self.weight)
        n_terms = self.n_tied if efron else np.ones_like(self.n_tied)
        self.of_term = np.repeat(np.arange(len(self.first)), n_terms)
        number = np.arange(len(self.of_term)) - np.repeat(np.cumsum(n_terms) - n_terms, n_terms)
        self.kept = 1.0 - number / n_terms[self.of_term]
        self.factors = (self.total / n_terms)[self.of_term]
        self.shifts = np.log(self.total[self.of_term] * self.kept)
        # The last sample of its group of tied events, itself if it is in none.
        self.group_end = np.arange(1, m + 1)
        if efron:
            for a, d in zip(self.first.tolist(), self.n_tied.tolist(), strict=True):
                self.group_end[a : a + d] = a + d

    def _of_events(self, values: Array) -> Array:
        """Return sums over the events of every event time."""
        bounds = np.column_stack([self.first, self.first + self.n_tied]).ravel()
        sums: Array = np.add.reduceat(np.append(values, 0.0), bounds)[::2]
        return sums

    def _sums(self, f: Array) -> _Sums:
        f = f[self.order]
        centre = 0.5 * float(f.max() + f.min())
        e = self.weight * np.exp(f - centre)
        later = np.zeros(len(e) + 1)
        for stratum in self.strata:
            later[stratum] = np.cumsum(e[stratum][::-1])[::-1]
        after = self.first + self.n_tied
        rest = np.where(after < self.end, later[after], 0.0)[self.of_term]
        return _Sums(e, rest + self.kept * self._of_events(e)[self.of_term], centre)

    def value(self, f: Array) -> float:
        """Return φ."""
        sums = self._sums(f)
        means = self._of_events(self.weight * (f[self.order] - sums.centre)) / self.total
        return float(self.factors @ (np.log(sums.terms) - means[self.of_term] - self.shifts))

    def rounding(self, f: Array) -> float:
        """Return the rounding error of the sum of differences of logarithms."""
        sums = self._sums(f)
        means = self._of_events(self.weight * np.abs(f[self.order] - sums.centre)) / self.total
        sizes = np.abs(np.log(sums.terms)) + means[self.of_term] + np.abs(self.shifts)
        return EPS * float(self.factors @ sizes)

    def expected_events(self, f: Array) -> Array:
        """Return ``Σ_t W_t p_ti``, the expected number of events of each sample."""
        sums = self._sums(f)
        ratios = self.factors / sums.terms
        before, up_to = self._running(self._of_terms(ratios))
        of_tied = before + self._of_terms(ratios * self.kept)
        expected = np.empty(len(f))
        expected[self.order] = sums.e * self._at_samples(of_tied, up_to)
        return expected

    def _of_terms(self, values: Array) -> Array:
        """Return sums over the terms of every event time."""
        sums: Array = np.bincount(self.of_term, values, len(self.first)).astype(np.float64)
        return sums

    def _running(self, values: Array) -> tuple[Array, Array]:
        """Return sums over the event times of a stratum before each of them, and up to it."""
        before, up_to = np.zeros(len(values)), np.empty(len(values))
        for times in self.times:
            up_to[times] = np.cumsum(values[times])
            before[times][1:] = up_to[times][:-1]
        return before, up_to

    def _at_samples(self, of_tied: Array, of_others: Array) -> Array:
        """Return values of the last event time of each sample, for its events and for others."""
        values = np.where(self.event, of_tied[self.last], of_others[self.last])
        return np.where(self.last >= 0, values, 0.0)

    def curvature(self, f: Array) -> tuple[Array, Array, Array, Array]:
        """Return e, the diagonal of H, and A of later samples and of events of the same time."""
        sums = self._sums(f)
        ratios = self.factors / sums.terms
        before, up_to = self._running(self._of_terms(ratios))
        slopes = self._at_samples(before + self._of_terms(ratios * self.kept), up_to)
        ratios = ratios / sums.terms
        before, up_to = self._running(self._of_terms(ratios))
        far = self._at_samples(before + self._of_terms(ratios * self.kept), up_to)
        near = self._at_samples(before + self._of_terms(ratios * self.kept**2), up_to)
        return sums.e, sums.e * (slopes - sums.e * near), far, near


class RiskSetCurvature(Curvature):
    """Hessian of Cox's partial likelihood, as a Cholesky factor ``H = LLᵀ``.

    In the order of the risk sets, ``L_ii = root_i`` and ``L_ji = −c_i e_i e_j / root_i`` for j
    after i, with one c for events of the same time and another for later samples.
    """

    def __init__(self, sets: RiskSets, f: Array) -> None:
        self.sets = sets
        self.e, diagonal, far, near = sets.curvature(f)
        m = len(f)
        roots, of_group, of_later = [0.0] * m, [0.0] * m, [0.0] * m
        e2, ends = (self.e**2).tolist(), sets.group_end.tolist()
        pivots, A_far, A_near = diagonal.tolist(), far.tolist(), near.tolist()
        for stratum in sets.strata:
            # Amounts that the samples so far subtract, in units of e_j e_k: between later
            # samples, between a later one and one of the group, and within the group.
            s = across = within = 0.0
            group_end = stratum.start
            for i in range(stratum.start, stratum.stop):
                if i >= group_end:
                    across = within = s
                    group_end = ends[i]
                pivot = pivots[i] - within * e2[i]
                if not pivot > _LEAST_PIVOT * pivots[i]:
                    continue
                a, b, ratio = A_near[i] + within, A_far[i] + across, e2[i] / pivot
                within += a * a * ratio
                across += a * b * ratio
                s += b * b * ratio
                roots[i], of_group[i], of_later[i] = pivot**0.5, a, b
        self.roots = np.array(roots)[:, None]
        unit = np.divide(self.e, self.roots[:, 0], out=np.zeros(m), where=self.roots[:, 0] > 0.0)
        self._later = (unit * np.array(of_later))[:, None]
        self._group = (unit * (np.array(of_group) - np.array(of_later)))[:, None]
        single = sets.group_end - np.arange(m) == 1
        starts = np.flatnonzero(~single & (np.diff(sets.group_end, prepend=0) > 0))
        self._groups = [slice(a, int(sets.group_end[a])) for a in starts.tolist()]

    def totals(self) -> Array:
        """Return zero: φ does not change if a constant is added to the outputs."""
        return np.zeros((1, 1))

    def times(self, x: Array) -> Array:
        """Return L x for the sorted samples, (m, n)."""
        result: Array = self.roots * x
        e = self.e[:, None]
        for factors, groups in ((self._later, self.sets.strata), (self._group, self._groups)):
            for rows in groups:
                sums = np.cumsum(factors[rows] * x[rows], axis=0)
                result[rows][1:] -= e[rows][1:] * sums[:-1]
        return result

    def transposed_times(self, x: Array) -> Array:
        """Return Lᵀ x for the sorted samples, (m, n)."""
        result: Array = self.roots * x
        scaled = self.e[:, None] * x
        for factors, groups in ((self._later, self.sets.strata), (self._group, self._groups)):
            for rows in groups:
                sums = np.cumsum(scaled[rows][::-1], axis=0)[::-1]
                result[rows][:-1] -= factors[rows][:-1] * sums[1:]
        return result

    def inverse_sum(self, kernel: Array) -> InverseSum:
        return _InverseSumOfRiskSets(self, kernel)


class _InverseSumOfRiskSets(InverseSum):
    """``E = L (I + LᵀQL)⁻¹ Lᵀ``."""

    def __init__(self, curvature: RiskSetCurvature, kernel: Array) -> None:
        self._curvature, self._order = curvature, curvature.sets.order
        half = curvature.transposed_times(kernel[np.ix_(self._order, self._order)])
        inner = curvature.transposed_times(np.ascontiguousarray(half.T))
        inner = 0.5 * (inner + inner.T)
        inner.reshape(-1)[:: len(inner) + 1] += 1.0
        self._factor = cholesky(inner)

    def apply(self, columns: Array) -> Array:
        right = self._curvature.transposed_times(columns[self._order, 0])
        solution = linalg.lapack.dpotrs(self._factor, np.asfortranarray(right), lower=0)[0]
        result = np.empty_like(columns)
        result[self._order, 0] = self._curvature.times(solution)
        return result

    def gram(self, columns: Array) -> Array:
        right = self._curvature.transposed_times(columns[self._order])
        half = linalg.lapack.dtrtrs(self._factor, np.asfortranarray(right), lower=0, trans=1)[0]
        forms: Array = (half.T @ half)[None, :, None, :]
        return forms
