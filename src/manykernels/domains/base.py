"""The interface of a domain of kernel weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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
        """``σ_B(gains)``, for gains that are not all negative."""

    def supports(self, gains: Array) -> Array:
        """The part of each block in ``σ_B(gains)``, (n_blocks,)."""
        return np.array([self.support(gains)])

    @abstractmethod
    def maximizer(self, gains: Array) -> Array:
        """A point of B where ``b·gains`` is largest."""

    @abstractmethod
    def gauge(self, weights: Array) -> float:
        """The c for which `weights` lie on the outer boundary of ``c·B``."""

    @abstractmethod
    def equilibrium(self, strength: Array, shift: Array, level: Array) -> Array:
        """Weights t, one per kernel, where ``strength/(t + shift)² = level · price(t)``.

        The left side is a model of the gain of a kernel, and price(t) is in proportion to the
        derivative of the function that bounds the domain. These are the optimality conditions of
        positive weights, with `level`, (n_blocks,), as the multipliers of the bounds.
        """

    @abstractmethod
    def balance(self, log_strength: Array) -> Array:
        """Logarithms of the weights that minimise ``Σ_j exp(log_strength_j)/β_j`` over B.

        With strengths ``β_j² g_j``, the squared norms of the parts of a model that belong to the
        kernels, this is the analytic update of Kloft et al. (2011).
        """

    @abstractmethod
    def conic_form(self, n_kernels: int) -> ConicForm:
        """``x ∈ B`` as constraints of a conic program."""

    def start(self, n_kernels: int) -> Array:
        """The point of the outer boundary with equal weights, or equal shares of a budget."""
        return self.onto_boundary(np.ones(n_kernels))

    def onto_boundary(self, weights: Array) -> Array:
        """Scale non-negative weights, not all zero, onto the outer boundary of B."""
        return weights / self.gauge(weights)

    def settle(self, weights: Array, gains: Array) -> Array:
        """`weights` of an approximate solution, with those that tend to zero set to zero."""
        return weights

    def level_set(self, weights: Array) -> tuple[Array, Array, Array] | None:
        """``c``, ``∇c`` and the diagonal of ``∇²c`` of a smooth boundary ``c = 1``, or None.

        There is one c for every block, so c is (n_blocks,). It depends on no weights of other
        blocks: ``∇c`` and ``∇²c`` have one entry per weight.
        """
        return None

    def block_sums(self, values: Array) -> Array:
        """Sums over the weights of each block, (n_blocks,)."""
        return values.reshape(self.n_blocks, -1).sum(axis=1)

    def block_of(self, n_kernels: int) -> NDArray[np.intp]:
        """The number of the block that each weight is in."""
        return np.repeat(np.arange(self.n_blocks), n_kernels // self.n_blocks)

    def restricted(self, kernels: NDArray[np.intp]) -> Domain:
        """The domain of the weights of some of the kernels, those of the others being zero."""
        return self

    @property
    def start_is_optimal(self) -> bool:
        """Whether `start` minimises every loss, so that there is nothing to search."""
        return False
