"""Cuts: tangent planes of F, which is convex, and what a mixture of them proves.

The inner solution α_r found at weights β_r gives the plane

    F(β) ≥ D(α_r, β) = c_r − β·q_r ,    q_r = g(β_r) ,   c_r = D(α_r, β_r) + β_r·q_r

for all β, since D is linear in β; with an inexact inner solution too, whose D is the value less
the slack. Any shares ``y ≥ 0, Σ y_r = 1`` mix planes into one that bounds F from below on B,

    F(b) ≥ Σ_r y_r c_r − σ_B(Σ_r y_r q_r)   for all b ∈ B

Where F has a kink at its minimum no single plane proves that it is one; a mixture does. A mixture
of planes is one of dual points too: ``D(α, β) = c(α) − β·g(α)`` is concave in α, so that

    ᾱ = Σ_r y_r α_r :   c(ᾱ) ≥ Σ_r y_r c_r ,   g(ᾱ) ≤ Σ_r y_r q_r

and ``Σ_r y_r c_r − σ_B(g(ᾱ))`` is a bound with the gains of kernels that no plane knew of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Evaluation


@dataclass(frozen=True)
class Proof:
    """A dual point α, ``c ≤ c(α)``, and the lower bound on F that they prove over a domain."""

    bound: float
    constant: float
    dual: Array

    @classmethod
    def of(cls, point: Evaluation, domain: Domain) -> Proof:
        """What the inner solution of one point proves."""
        constant, slope = plane(point)
        return cls(constant - domain.support(slope), constant, point.dual)


class Cuts:
    """The planes of points seen, the last ones of them.

    Parameters
    ----------
    most : int, optional
        How many to keep.
    keep_duals : bool, default=False
        Whether to keep the dual points too, for the proof of a mixture.
    """

    def __init__(self, most: int | None = None, *, keep_duals: bool = False) -> None:
        self._most = most
        self._keep_duals = keep_duals
        self._constants: list[float] = []
        self._slopes: list[Array] = []
        self._duals: list[Array] = []

    def __len__(self) -> int:
        return len(self._constants)

    def add(self, point: Evaluation) -> tuple[float, Array]:
        """Take in the plane at `point` and return it."""
        constant, slope = plane(point)
        self._constants.append(constant)
        self._slopes.append(slope)
        if self._keep_duals:
            self._duals.append(point.dual)
        if self._most is not None:
            for kept in (self._constants, self._slopes, self._duals):
                del kept[: -self._most]
        return constant, slope

    @property
    def constants(self) -> Array:
        """c, (n_cuts,)."""
        return np.array(self._constants)

    @property
    def slopes(self) -> Array:
        """q, (n_cuts, n_kernels)."""
        return np.array(self._slopes)

    def proof(self, shares: Array, domain: Domain) -> Proof | None:
        """What shares of the cuts prove; None if they are no shares."""
        bound = mixed_bound(self.constants, self.slopes, shares, domain)
        if bound == -np.inf:
            return None
        shares = _summing_to_one(shares)
        dual = sum(share * dual for share, dual in zip(shares, self._duals, strict=True) if share)
        return Proof(bound, float(shares @ self.constants), np.asarray(dual))


def plane(point: Evaluation) -> tuple[float, Array]:
    """c and q of the plane at a point."""
    constant = point.value - point.slack + float(point.weights @ point.gains)
    return constant, point.gains


def mixed_bound(constants: Array, slopes: Array, shares: Array, domain: Domain) -> float:
    """Lower bound on F that shares of planes prove; they need not sum to one."""
    shares = _summing_to_one(shares)
    if not shares.any():
        return -np.inf
    return float(shares @ constants) - domain.support(shares @ slopes)


def _summing_to_one(shares: Array) -> Array:
    """Zeros if there is nothing to scale."""
    shares = np.maximum(shares, 0.0)
    total = float(shares.sum())
    return shares / total if 0.0 < total < np.inf else np.zeros_like(shares)
