"""Weights bounded by one norm: balls, boxes and simplices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from .base import Array, ConicForm, Domain

# Newton steps for `equilibrium` on a ball, and the range of log t, which keeps exp from overflow.
# They converge quadratically, and t only predicts where a weight is heading: a few digits suffice.
# No weight of a ball is above one, and exp(-80) is negligible beside it.
_EQUILIBRIUM_STEPS = 10
_LOG_WEIGHTS = -80.0, 10.0
# A weight of an approximate solution is taken for zero if it is below this share of its slack.
# Where the two are of similar size, the solution does not yet tell which of them is zero.
_CLEARLY_SMALLER = 1e-2


@dataclass(frozen=True)
class LpBall(Domain):
    """``‖β‖_p ≤ 1`` for 1 < p < ∞ (Yan 2010, 2012)."""

    p: float

    def __post_init__(self) -> None:
        if not 1.0 < self.p < np.inf:
            raise ValueError(
                f"LpBall needs 1 < p < inf, got {self.p}; lp_domain takes any p >= 1."
            )

    @property
    def q(self) -> float:
        """The dual exponent, 1/p + 1/q = 1."""
        return self.p / (self.p - 1.0)

    def support(self, gains: Array) -> float:
        return _norm(np.maximum(gains, 0.0), self.q)

    def maximizer(self, gains: Array) -> Array:
        gains = np.maximum(gains, 0.0)
        norm = _norm(gains, self.q)
        if norm == 0.0:
            return self.start(len(gains))
        return self.onto_boundary((gains / norm) ** (self.q - 1.0))

    def gauge(self, weights: Array) -> float:
        return _norm(weights, self.p)

    def level_set(self, weights: Array) -> tuple[Array, Array, Array]:
        # Derivatives of Σ x^p, computed from x^p because x^(p−2) could overflow.
        positive = np.where(weights > 0.0, weights, 1.0)
        powers = np.where(weights > 0.0, weights**self.p, 0.0)
        gradient = self.p * powers / positive
        return powers.sum(keepdims=True), gradient, (self.p - 1.0) * gradient / positive

    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        # price(t) = t^(p−1). In u = log t the logarithm of gain over price is concave and falls,
        # so from any start Newton's method is above the solution after one step and then
        # decreases to it.
        constant = np.log(strength) - np.log(level)
        u = np.zeros(len(strength))
        for _ in range(_EQUILIBRIUM_STEPS):
            t = np.exp(u)
            excess = constant - 2.0 * np.log(t + shift) - (self.p - 1.0) * u
            u = np.clip(u + excess / (2.0 * t / (t + shift) + self.p - 1.0), *_LOG_WEIGHTS)
        return np.exp(u)

    def balance(self, log_strength: Array) -> Array:
        log_weights = log_strength / (self.p + 1.0)
        return log_weights - float(logsumexp(self.p * log_weights)) / self.p

    def conic_form(self, n_kernels: int) -> ConicForm:
        # x_j^p ≤ t_j as (t_j, 1, x_j) ∈ Pow(1/p), and Σ t_j ≤ 1, x ≥ 0.
        n = n_kernels
        j = np.arange(n)
        first = 1 + n + 3 * j
        rows = np.concatenate([np.zeros(n, int), 1 + j, first, first + 2])
        cols = np.concatenate([n + j, j, n + j, j])
        values = np.concatenate([np.ones(n), -np.ones(3 * n)])
        bound = np.zeros(1 + 4 * n)
        bound[0] = 1.0
        bound[first + 1] = 1.0
        matrix = sparse.csc_matrix((values, (rows, cols)), shape=(1 + 4 * n, 2 * n))
        return ConicForm(matrix, bound, 1 + n, 1, (1.0 / self.p,) * n)


@dataclass(frozen=True)
class Box(Domain):
    """``0 ≤ β_j ≤ 1``: the limit p = ∞, where the plain sum of the kernels is optimal."""

    @property
    def start_is_optimal(self) -> bool:
        return True

    def support(self, gains: Array) -> float:
        return float(np.maximum(gains, 0.0).sum())

    def maximizer(self, gains: Array) -> Array:
        return np.ones(len(gains))

    def gauge(self, weights: Array) -> float:
        return float(weights.max())

    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        return np.ones(len(strength))

    def balance(self, log_strength: Array) -> Array:
        return np.zeros(len(log_strength))

    def conic_form(self, n_kernels: int) -> ConicForm:
        eye = sparse.eye(n_kernels, format="csc")
        bound = np.concatenate([np.ones(n_kernels), np.zeros(n_kernels)])
        matrix = sparse.vstack([eye, -eye], format="csc")
        return ConicForm(matrix, bound, 2 * n_kernels, n_kernels)


@dataclass(frozen=True)
class Simplex(Domain):
    """``Σ β_j ≤ 1``: p = 1, whose solution has few positive weights."""

    def support(self, gains: Array) -> float:
        return float((gains / self.prices(len(gains))).max())

    def maximizer(self, gains: Array) -> Array:
        prices = self.prices(len(gains))
        best = int(np.argmax(gains / prices))
        weights = np.zeros(len(gains))
        weights[best] = 1.0 / prices[best]
        return weights

    def gauge(self, weights: Array) -> float:
        return float(self.prices(len(weights)) @ weights)

    def level_set(self, weights: Array) -> tuple[Array, Array, Array]:
        return np.array([self.gauge(weights)]), self.prices(len(weights)), np.zeros(len(weights))

    def start(self, n_kernels: int) -> Array:
        return 1.0 / (n_kernels * self.prices(n_kernels))

    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        prices = self.prices(len(strength))
        return np.maximum(np.sqrt(strength / (level * prices)) - shift, 0.0)

    def balance(self, log_strength: Array) -> Array:
        log_prices = np.log(self.prices(len(log_strength)))
        log_weights: Array = 0.5 * (log_strength - log_prices)
        return log_weights - float(logsumexp(log_weights + log_prices))

    def conic_form(self, n_kernels: int) -> ConicForm:
        total = sparse.csc_matrix(self.prices(n_kernels)[None, :])
        matrix = sparse.vstack([total, -sparse.eye(n_kernels)], format="csc")
        bound = np.zeros(1 + n_kernels)
        bound[0] = 1.0
        return ConicForm(matrix, bound, 1 + n_kernels, 1)

    def settle(self, weights: Array, gains: Array) -> Array:
        # Complementary slackness: at the solution either the weight is zero or its slack, which is
        # how far its gain per price is below the largest.
        prices = self.prices(len(weights))
        slack = 1.0 - gains / prices / self.support(gains)
        return np.where(weights * prices < _CLEARLY_SMALLER * slack, 0.0, weights)

    def prices(self, n_kernels: int) -> Array:
        """The coefficients in ``Σ_j prices_j β_j ≤ 1``."""
        return np.ones(n_kernels)


@dataclass(frozen=True, eq=False)
class TraceSimplex(Simplex):
    """``Σ r_j β_j ≤ 1`` with r_j the trace of kernel j (Ye 2008).

    A kernel of trace zero is zero and lowers no loss. Its price is the largest trace instead.
    """

    traces: Array

    # By identity: the comparison of Simplex would ignore the traces.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        traces = np.asarray(self.traces, dtype=np.float64)
        if traces.ndim != 1 or not np.isfinite(traces).all() or traces.min(initial=0.0) < 0:
            raise ValueError("Kernel traces must be finite and non-negative, one per kernel.")
        if not traces.any():
            raise ValueError("All kernels have trace zero: there is nothing to learn from.")
        object.__setattr__(self, "traces", np.where(traces > 0, traces, traces.max()))

    def restricted(self, kernels: NDArray[np.intp]) -> TraceSimplex:
        return TraceSimplex(self.traces[kernels])

    def prices(self, n_kernels: int) -> Array:
        if n_kernels != len(self.traces):
            raise ValueError(f"{len(self.traces)} traces were given for {n_kernels} kernels.")
        return self.traces


def lp_domain(p: float) -> Domain:
    """Weight domain ``‖β‖_p ≤ 1`` for any p in [1, ∞].

    Examples
    --------
    >>> from manykernels.domains import lp_domain
    >>> lp_domain(1), lp_domain(2.0), lp_domain(float("inf"))
    (Simplex(), LpBall(p=2.0), Box())
    """
    if not p >= 1.0:
        raise ValueError(
            f"p must be at least 1 (the set of weights is not convex below), got {p!r}. "
            "p=1 gives the sparsest weights, p=inf the plain sum."
        )
    exact: dict[float, type[Domain]] = {1.0: Simplex, np.inf: Box}
    return exact[p]() if p in exact else LpBall(float(p))


def _norm(values: Array, exponent: float) -> float:
    """``‖values‖`` of non-negative values; scaled, so that large exponents do not overflow."""
    largest = float(values.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return float(largest * np.sum((values / largest) ** exponent) ** (1.0 / exponent))
