"""Cuts: planes below F, and the lower bounds that convex combinations of them prove.

Each inner solution α_r gives a plane ``F(b) ≥ c_r − b·q_r`` with ``q_r = g(α_r)``, see
:mod:`~manykernels.solvers.certificate`. With any ``y ≥ 0, Σ y_r = 1``

    F(b) ≥ Σ_r y_r c_r − σ_B(Σ_r y_r q_r)   for all b ∈ B

Where F has a kink at its minimum no single plane proves that it is the minimum; a convex
combination does. As ``D(α, β) = c(α) − β·g(α)`` is concave in α, the same combination of α_r has

    ᾱ = Σ_r y_r α_r :   c(ᾱ) ≥ Σ_r y_r c_r ,   g(ᾱ) ≤ Σ_r y_r q_r

so ``Σ_r y_r c_r − σ_B(g(ᾱ))`` is a bound, also with the gains of kernels that are in no plane.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Evaluation
from .certificate import NO_BOUND, Bound, plane


class Cuts:
    """The planes at the last `most` points added, or at all of them."""

    def __init__(self, most: int | None = None) -> None:
        # c, q and α of each.
        self._cuts: deque[tuple[float, Array, Array]] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._cuts)

    def add(self, point: Evaluation) -> None:
        """Add the plane at `point`."""
        self._cuts.append((*plane(point), point.dual))

    @property
    def constants(self) -> Array:
        """c, (n_cuts,)."""
        return np.array([constant for constant, _, _ in self._cuts])

    @property
    def slopes(self) -> Array:
        """q, (n_cuts, n_kernels)."""
        return np.array([slope for _, slope, _ in self._cuts])

    def bound(self, multipliers: Array, domain: Domain) -> Bound:
        """The bound for y in proportion to `multipliers`, which come from numerical solvers.

        Negative ones count as zero; if all are zero, or some not finite, nothing is proved.
        """
        y = np.maximum(multipliers, 0.0)
        total = float(y.sum())
        if not 0.0 < total < np.inf:
            return NO_BOUND
        y = y / total
        constant = float(y @ self.constants)
        dual = sum(share * cut[2] for share, cut in zip(y, self._cuts, strict=True) if share)
        return Bound(constant - domain.support(y @ self.slopes), np.asarray(dual), constant)
