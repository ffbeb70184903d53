"""Cuts: planes below F at the points seen, and what a mixture of them proves.

Each inner solution α_r gives a plane ``F(b) ≥ c_r − b·q_r`` with ``q_r = g(α_r)``, see
:mod:`~manykernels.solvers.certificate`. Any shares ``y ≥ 0, Σ y_r = 1`` mix planes into one that
bounds F from below on B,

    F(b) ≥ Σ_r y_r c_r − σ_B(Σ_r y_r q_r)   for all b ∈ B

Where F has a kink at its minimum no single plane proves that it is the minimum; a mixture does.
A mixture of planes is one of dual points too: ``D(α, β) = c(α) − β·g(α)`` is concave in α, so that

    ᾱ = Σ_r y_r α_r :   c(ᾱ) ≥ Σ_r y_r c_r ,   g(ᾱ) ≤ Σ_r y_r q_r

and ``Σ_r y_r c_r − σ_B(g(ᾱ))`` is a bound with the gains of kernels that no plane knew of.
"""

from __future__ import annotations

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Evaluation
from .certificate import NO_BOUND, Bound, plane


class Cuts:
    """The planes at the points seen last.

    Parameters
    ----------
    most : int, optional
        How many to keep; all by default.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._constants: list[float] = []
        self._slopes: list[Array] = []
        self._duals: list[Array] = []

    def __len__(self) -> int:
        return len(self._constants)

    def add(self, point: Evaluation) -> None:
        """Add the plane at `point`."""
        constant, slope = plane(point)
        self._constants.append(constant)
        self._slopes.append(slope)
        self._duals.append(point.dual)
        if self._most is not None:
            for kept in (self._constants, self._slopes, self._duals):
                del kept[: -self._most]

    @property
    def constants(self) -> Array:
        """c, (n_cuts,)."""
        return np.array(self._constants)

    @property
    def slopes(self) -> Array:
        """q, (n_cuts, n_kernels)."""
        return np.array(self._slopes)

    def bound(self, multipliers: Array, domain: Domain) -> Bound:
        """What a mixture of the cuts proves, shares in proportion to the multipliers.

        Multipliers come from numerical solvers: negative ones count as zero, and none is proved
        if they are all zero or not finite.
        """
        shares = np.maximum(multipliers, 0.0)
        total = float(shares.sum())
        if not 0.0 < total < np.inf:
            return NO_BOUND
        shares = shares / total
        constant = float(shares @ self.constants)
        dual = sum(share * dual for share, dual in zip(shares, self._duals, strict=True) if share)
        return Bound(constant - domain.support(shares @ self.slopes), np.asarray(dual), constant)
