"""Domains of kernel weights: convex sets B of non-negative weights.

A domain provides its support function ``σ_B(g) = max_{b ∈ B} b·g``, which certificates need, the
point where that maximum is attained, and ``x ∈ B`` as constraints of a conic program. Except for
tilted losses, no loss increases with a weight, so there is a minimiser on the outer boundary of B.

Weights may be divided into blocks with separate bounds (:class:`Product`), such as the weights of
each region of a localized machine. Other domains have one block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

# -- Interface of a domain of kernel weights ------------------------------------------------------


Array = NDArray[np.float64]


@dataclass(frozen=True)
class ConicForm:
    """``x ∈ B`` as ``bound − matrix @ [x, t] ∈ R₊^n_nonnegative × Pow(a) × Pow(a) × …``.

    ``t`` are ``matrix.shape[1] − n`` extra variables; ``Pow(a)`` is the three-dimensional
    power cone ``u^a v^(1−a) ≥ |w|`` and `power_exponents` holds its exponents in order. The
    n rows from `first_sign_row` on state x ≥ 0.
    """

    matrix: sparse.csc_matrix
    bound: Array
    n_nonnegative: int
    first_sign_row: int
    power_exponents: tuple[float, ...] = ()


class Domain(ABC):
    """A set of non-negative kernel weights."""

    #: Number of blocks of weights, all of one length, that are bounded independently.
    n_blocks: int = 1

    @abstractmethod
    def support(self, gains: Array) -> float:
        """Return ``σ_B(gains)``, for gains that are not all negative."""

    def supports(self, gains: Array) -> Array:
        """Return the contribution of each block to ``σ_B(gains)``, (n_blocks,)."""
        return np.array([self.support(gains)])

    @abstractmethod
    def maximizer(self, gains: Array) -> Array:
        """Return a point of B where ``b·gains`` is largest."""

    @abstractmethod
    def gauge(self, weights: Array) -> float:
        """Return the c for which `weights` lie on the outer boundary of ``c·B``."""

    @abstractmethod
    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        """Return weights t, one per kernel, where ``strength/(t + shift)² = level · price(t)``.

        The left side is a model of the gain of a kernel, and price(t) is proportional to the
        derivative of the function that bounds the domain. These are the optimality conditions of
        positive weights, with `level`, (n_blocks,), as the multipliers of the bounds.
        """

    @abstractmethod
    def balance(self, log_strength: Array) -> Array:
        """Return the logarithms of the weights that minimise ``Σ_j exp(log_strength_j)/β_j``.

        The minimum is over B. With strengths ``β_j² g_j``, the squared norms of the components of
        a model in each kernel, this is the analytic update of Kloft et al. (2011).
        """

    @abstractmethod
    def conic_form(self, n_kernels: int) -> ConicForm:
        """Return ``x ∈ B`` as constraints of a conic program."""

    def start(self, n_kernels: int) -> Array:
        """Return the boundary point with equal weights, or equal shares of a budget."""
        return self.onto_boundary(np.ones(n_kernels))

    def onto_boundary(self, weights: Array) -> Array:
        """Scale non-negative weights, not all zero, onto the outer boundary of B."""
        return weights / self.gauge(weights)

    def settle(self, weights: Array, gains: Array) -> Array:
        """Set the weights of an approximate solution that tend to zero to zero."""
        return weights

    def level_set(self, weights: Array) -> tuple[Array, Array, Array] | None:
        """Return ``c``, ``∇c`` and ``diag(∇²c)`` of a smooth boundary ``c = 1``, else None.

        There is one c for every block, so c is (n_blocks,). It does not depend on the weights of
        other blocks: ``∇c`` and ``∇²c`` have one entry per weight.
        """
        return None

    def block_sums(self, values: Array) -> Array:
        """Return the sums over the weights of each block, (n_blocks,)."""
        sums: Array = values.reshape(self.n_blocks, -1).sum(axis=1)
        return sums

    def block_of(self, n_kernels: int) -> NDArray[np.intp]:
        """Return the block number of each weight."""
        return np.repeat(np.arange(self.n_blocks), n_kernels // self.n_blocks)

    def restricted(self, kernels: NDArray[np.intp]) -> Domain:
        """Return the domain of the weights of some kernels, the other weights being zero."""
        return self

    @property
    def start_is_optimal(self) -> bool:
        """Whether `start` minimises every loss, so that no search is needed."""
        return False


# -- Weights bounded by one norm: balls, boxes and simplices --------------------------------------


# Newton steps for `equilibrium` on a ball, and the range of log t, which keeps exp from overflow.
# They converge quadratically, and t only predicts the limit of a weight: a few digits suffice.
# No weight of a ball is above one, and exp(-80) is negligible beside it.
_EQUILIBRIUM_STEPS = 10
_LOG_WEIGHTS = -80.0, 10.0
# A weight of an approximate solution counts as zero if it is below this fraction of its slack.
# If both are of similar size, the solution does not yet determine which of them is zero.
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
        """Dual exponent, 1/p + 1/q = 1."""
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
        # Complementary slackness: at the solution the weight is zero, or its slack: the difference
        # between the largest gain per price and its own.
        prices = self.prices(len(weights))
        slack = 1.0 - gains / prices / self.support(gains)
        return np.where(weights * prices < _CLEARLY_SMALLER * slack, 0.0, weights)

    def prices(self, n_kernels: int) -> Array:
        """Return the coefficients in ``Σ_j prices_j β_j ≤ 1``."""
        return np.ones(n_kernels)


@dataclass(frozen=True, eq=False)
class TraceSimplex(Simplex):
    """``Σ r_j β_j ≤ 1`` with r_j the trace of kernel j (Ye 2008).

    A kernel of trace zero is zero and lowers no loss. Its price is set to the largest trace.
    """

    traces: Array

    # Compared by identity: the comparison of Simplex would ignore the traces.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        traces = np.asarray(self.traces, dtype=np.float64)
        if traces.ndim != 1 or not np.isfinite(traces).all() or traces.min(initial=0.0) < 0:
            raise ValueError("Kernel traces must be finite and non-negative, one per kernel.")
        if not traces.any():
            raise ValueError(
                "All kernels have trace zero: pass at least one kernel that is not zero."
            )
        object.__setattr__(self, "traces", np.where(traces > 0, traces, traces.max()))

    def restricted(self, kernels: NDArray[np.intp]) -> TraceSimplex:
        return TraceSimplex(self.traces[kernels])

    def prices(self, n_kernels: int) -> Array:
        if n_kernels != len(self.traces):
            raise ValueError(
                f"Expected one trace for each of {n_kernels} kernels, got {len(self.traces)}."
            )
        return self.traces


def lp_domain(p: float) -> Domain:
    """Return the weight domain ``‖β‖_p ≤ 1`` for any p in [1, ∞].

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
    """Return ``‖values‖`` of non-negative values, scaled so that no power overflows."""
    largest = float(values.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return float(largest * np.sum((values / largest) ** exponent) ** (1.0 / exponent))


# -- Blocks of weights with independent bounds ----------------------------------------------------


@dataclass(frozen=True)
class Product(Domain):
    """Blocks of weights of equal length, each in the domain `part`.

    With kernels of several regions these are the weights of each region (Lei et al. 2016):
    ``‖β_l‖_p ≤ 1`` for every region l. A block with neither gains nor weights, such as that of an
    empty region, gets the start of `part`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.domains import LpBall, Product
    >>> Product(LpBall(2.0), 2).support(np.array([3.0, 4.0, 0.0, 2.0]))
    7.0
    """

    part: Domain
    n_blocks: int

    def __post_init__(self) -> None:
        if self.n_blocks < 1 or self.part.n_blocks > 1:
            raise ValueError("n_blocks must be at least 1, and `part` must have a single block.")

    def _blocks(self, values: Array) -> Array:
        if len(values) % self.n_blocks:
            raise ValueError(
                f"{len(values)} weights cannot be divided into {self.n_blocks} equal blocks."
            )
        return values.reshape(self.n_blocks, -1)

    @property
    def start_is_optimal(self) -> bool:
        return self.part.start_is_optimal

    def supports(self, gains: Array) -> Array:
        # Zero weights are in the domain, so the support of a block of negative gains is zero.
        return np.array([max(self.part.support(block), 0.0) for block in self._blocks(gains)])

    def support(self, gains: Array) -> float:
        return float(self.supports(gains).sum())

    def maximizer(self, gains: Array) -> Array:
        return np.concatenate([self.part.maximizer(block) for block in self._blocks(gains)])

    def gauge(self, weights: Array) -> float:
        return max(self.part.gauge(block) for block in self._blocks(weights))

    def onto_boundary(self, weights: Array) -> Array:
        part = self.part
        return np.concatenate(
            [
                part.onto_boundary(block) if block.any() else part.start(len(block))
                for block in self._blocks(weights)
            ]
        )

    def start(self, n_kernels: int) -> Array:
        return np.tile(self.part.start(n_kernels // self.n_blocks), self.n_blocks)

    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        blocks = zip(self._blocks(strength), self._blocks(shift), level[:, None], strict=True)
        return np.concatenate([self.part.equilibrium(*block) for block in blocks])

    def balance(self, log_strength: Array) -> Array:
        part = self.part
        return np.concatenate(
            [
                part.balance(block) if np.isfinite(block).any() else np.log(part.start(len(block)))
                for block in self._blocks(log_strength)
            ]
        )

    def settle(self, weights: Array, gains: Array) -> Array:
        return np.concatenate(
            [
                self.part.settle(block, worth) if (worth > 0.0).any() else block
                for block, worth in zip(self._blocks(weights), self._blocks(gains), strict=True)
            ]
        )

    def level_set(self, weights: Array) -> tuple[Array, Array, Array] | None:
        level_sets = [self.part.level_set(block) for block in self._blocks(weights)]
        levels = [level for level in level_sets if level is not None]
        if len(levels) < len(level_sets):
            return None
        values, gradients, curvatures = (
            np.concatenate(some) for some in zip(*levels, strict=True)
        )
        return values, gradients, curvatures

    def restricted(self, kernels: NDArray[np.intp]) -> Domain:
        raise TypeError("A product domain cannot be restricted to some of its kernels.")

    def conic_form(self, n_kernels: int) -> ConicForm:
        # The forms of all blocks side by side, with x before t, and then in the order of rows of
        # a conic form: other inequalities, signs of x, cones.
        n = n_kernels // self.n_blocks
        form = self.part.conic_form(n)
        height, width = form.matrix.shape
        signs = form.first_sign_row + np.arange(n)
        others = np.setdiff1d(np.arange(form.n_nonnegative), signs)
        cones = np.arange(form.n_nonnegative, height)
        blocks = np.arange(self.n_blocks)[:, None]
        rows = np.concatenate(
            [(blocks * height + numbers).ravel() for numbers in (others, signs, cones)]
        )
        extra = np.arange(n, width)
        cols = np.concatenate(
            [(blocks * width + numbers).ravel() for numbers in (np.arange(n), extra)]
        )
        matrix = sparse.kron(sparse.eye(self.n_blocks), form.matrix, format="csr")[rows][:, cols]
        return ConicForm(
            matrix.tocsc(),
            np.tile(form.bound, self.n_blocks)[rows],
            self.n_blocks * form.n_nonnegative,
            self.n_blocks * len(others),
            form.power_exponents * self.n_blocks,
        )


def product_domain(part: Domain, n_blocks: int) -> Domain:
    """Return the domain of `n_blocks` blocks of weights, each in `part`; `part` for one block."""
    return part if n_blocks == 1 else Product(part, n_blocks)
