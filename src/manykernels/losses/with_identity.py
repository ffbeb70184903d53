"""The identity as the first kernel, whose weight is the regularisation: λ in ``λI + Σ_j θ_j K_j``.

So λ is learnt like any other weight (Ye 2008, section 4; SM2_C of Lanckriet et al. 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._rounding import EPS
from .base import Array, Indices, KernelOperator

Gauge = Callable[[Array], float]


def of_some(gauge: Gauge | None, kernels: Indices, n_kernels: int) -> Gauge | None:
    """The gauge of the weights of some kernels, those of the others being zero."""
    if gauge is None:
        return None
    whole = gauge

    def restricted(weights: Array) -> float:
        every = np.zeros(n_kernels)
        every[kernels] = weights
        return whole(every)

    return restricted


@dataclass(frozen=True)
class Raised:
    """Weights whose first, the regularisation, is at least some value.

    All were divided by `factor` where they would be outside of their domain otherwise.
    """

    weights: Array
    factor: float = 1.0
    is_higher: bool = False

    @classmethod
    def to(cls, least: float, weights: Array, gauge: Gauge | None) -> Raised:
        """`weights` with a first one of `least` or more, in a domain that has this gauge."""
        if weights[0] >= least:
            return cls(weights)
        raised = weights.copy()
        raised[0] = least
        factor = 1.0 if gauge is None else max(1.0, gauge(raised))
        return cls(raised / factor, factor, True)


class WithIdentity:
    """Kernels preceded by ``unit · I``; unit is 1/m where the other kernels have unit trace.

    A sample of weight w counts like the mean of w observations, each with noise λ: its diagonal
    entry is ``unit/w``.
    """

    def __init__(
        self, kernels: KernelOperator, unit: float, sample_weight: Array | None = None
    ) -> None:
        self.kernels = kernels
        self.unit = unit
        ones = np.ones(kernels.shape[0])
        self.diagonal = unit * (ones if sample_weight is None else 1.0 / sample_weight)

    @property
    def shape(self) -> tuple[int, int, int]:
        n_rows, n_columns, n_kernels = self.kernels.shape
        return n_rows, n_columns, n_kernels + 1

    def combine(self, weights: Array, out: Array | None = None) -> Array:
        total = self.kernels.combine(weights[1:], out=out)
        total.reshape(-1)[:: len(total) + 1] += weights[0] * self.diagonal
        return total

    def combine_all(self, weights: Array, outs: list[Array]) -> None:
        for row, out in zip(weights, outs, strict=True):
            self.combine(row, out)

    def apply(self, columns: Array, out: Array | None = None) -> Array:
        n_rows, _, n_kernels = self.shape
        products = np.empty((n_kernels, columns.shape[1], n_rows)) if out is None else out.mT
        products[0] = (self.diagonal[:, None] * columns).T
        products[1:] = self.kernels.apply(columns).mT
        return products.mT

    def form_errors(self, left: Array, right: Array) -> Array:
        own = EPS * np.sum(self.diagonal[:, None] * np.abs(left * right))
        return np.concatenate([[own], self.kernels.form_errors(left, right)])

    def kernel(self, which: int) -> Array:
        return np.diag(self.diagonal) if which == 0 else self.kernels.kernel(which - 1)

    @property
    def on_demand(self) -> bool:
        """Whether the other kernels are computed when they are needed."""
        return bool(getattr(self.kernels, "on_demand", False))

    def visit(self, work: Callable[[KernelOperator, Indices], None]) -> None:
        """Visit blocks of kernels on demand, the identity with each of them."""

        def visit_with_identity(kernels: KernelOperator, positions: Indices) -> None:
            part = copy(self)
            part.kernels = kernels
            work(part, np.concatenate([[0], 1 + positions]))

        on_demand: Any = self.kernels
        on_demand.visit(visit_with_identity)

    def select(self, kernels: Any) -> Self:
        if kernels[0] != 0:
            raise ValueError("The identity must be selected, as the first kernel.")
        part = copy(self)
        part.kernels = self.kernels.select(kernels[1:] - 1)
        return part

    def __getitem__(self, key: Any) -> Self:
        raise TypeError("Kernels with the identity cannot be restricted to some of the samples.")
