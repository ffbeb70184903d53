"""Cuts: tangent planes of F, which is convex, and what a mixture of them proves.

The inner solution α_r found at weights β_r gives the plane

    F(β) ≥ D(α_r, β) = c_r − β·q_r ,    q_r = g(β_r) ,   c_r = D(α_r, β_r) + β_r·q_r

for all β, since D is linear in β; with an inexact inner solution too, whose D is the value less
the slack. Any shares ``y ≥ 0, Σ y_r = 1`` mix planes into one that bounds F from below on B,

    F(b) ≥ Σ_r y_r c_r − σ_B(Σ_r y_r q_r)   for all b ∈ B

Where F has a kink at its minimum no single plane proves that it is one; a mixture does.
"""

from __future__ import annotations

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Evaluation
from .base import NO_BOUND, Bound


class Cuts:
    """The planes of points seen, the last ones of them.

    Parameters
    ----------
    most : int, optional
        How many to keep.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
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

    @property
    def duals(self) -> list[Array]:
        """α of the planes."""
        return list(self._duals)


def plane(point: Evaluation) -> tuple[float, Array]:
    """c and q of the plane at a point."""
    constant = point.value - point.slack + float(point.weights @ point.gains)
    return constant, point.gains


def mixed_bound(
    constants: Array, slopes: Array, duals: list[Array], shares: Array, domain: Domain
) -> Bound:
    """Lower bound on F that shares of planes prove; they need not sum to one.

    D is concave in α: the mixture of the α_r proves no less.
    """
    shares = np.maximum(shares, 0.0)
    if not shares.any() or not np.isfinite(shares).all():
        return NO_BOUND
    shares = shares / shares.sum()
    value = float(shares @ constants) - domain.support(shares @ slopes)
    known = [share * dual for share, dual in zip(shares, duals, strict=True) if dual is not None]
    return Bound(value, sum(known) if len(known) == len(duals) else None)
