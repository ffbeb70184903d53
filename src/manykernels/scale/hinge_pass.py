"""One pass over rows for machines with squared hinge loss on explicit features.

A machine has coefficients w of the features z, and a bias b. With outputs ``f_i = z_i·w + b``,
classes ``y_i = ±1`` and weights c_i of the samples, a pass adds up all that
:mod:`~manykernels.scale.hinge` needs of the rows:

    Q = Σ_i c_i s_i² ,   A = Σ_i c_i s_i ,   R = Σ_i c_i y_i s_i z_i ,   s_i = max(0, 1 − y_i f_i)
    M = Σ_{i ∈ I} c_i a_i a_iᵀ ,   a = (z, 1, y) ,   I = {i : s_i > 0}, the active rows

Q, A and R for each side, ``y = −1`` and ``y = +1``, are those of the machine that proves a bound,
which may be another one. Where a machine comes from another
one, the losses Q of machines on the line between the two are added up as well: outputs there are
those between the outputs of both. Features are centred and scaled as the kernels are, which keeps
M and R free of a large part that all rows have in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .accumulation import ClassTargets, augmented, naming_block, weights_of
from .base import Block
from .features import FeatureMap
from .moments import Moments

Array = NDArray[np.float64]

#: Steps from one machine to another at which losses are added up, the whole step first, each half
#: as long as the one before. At C = 1e5 steps of less than a thousandth are needed; a millionth
#: moves nothing. Two steps for each of these take as many passes.
STEPS: Array = np.array([0.5**k for k in range(21)])


@dataclass(frozen=True)
class Machines:
    """Machines that share kernel weights, to pass over rows with.

    Attributes
    ----------
    signs : ndarray of shape (n_classes, K)
        y of the samples of each class for each of the K machines.
    coefficients : ndarray of shape (D + 1, K)
        w and, in the last row, b.
    proof : ndarray of shape (D + 1, K) or None
        The machines that prove a bound, if these are others.
    origin : ndarray of shape (D + 1, K) or None
        The machines they come from, if losses on the line between both are wanted.
    """

    signs: Array
    coefficients: Array
    proof: Array | None = None
    origin: Array | None = None


@dataclass
class HingeSums:
    """What a pass adds up for some machines.

    Attributes
    ----------
    moments : list of Moments
        M of every machine.
    losses : ndarray of shape (n_steps,)
        Q of all machines together at each of :data:`STEPS`, or at the whole step alone.
    squares, totals : ndarray of shape (2, K)
        Q and A of the machines that prove a bound by side, ``y = −1`` first.
    images : ndarray of shape (2, D, K)
        Their R by side.
    reach : float
        ``Σ_ik c_i s_ik (1 + |b_k| + ‖z_i‖‖w_k‖)``: how large the terms of s are, for the
        rounding error of Q.
    """

    moments: list[Moments]
    losses: Array
    squares: Array
    totals: Array
    images: Array
    reach: float = 0.0

    @classmethod
    def none(cls, machines: Machines) -> HingeSums:
        """Those of no rows."""
        size, K = machines.coefficients.shape
        n_steps = 1 if machines.origin is None else len(STEPS)
        return cls(
            [Moments.none(size - 1, 1) for _ in range(K)],
            np.zeros(n_steps),
            np.zeros((2, K)),
            np.zeros((2, K)),
            np.zeros((2, size - 1, K)),
        )

    def add(self, machines: Machines, columns: Array, labels: np.ndarray, weights: Array) -> None:
        """Add rows; `columns` (D + 2, n) are a, of which y is written here."""
        D = len(columns) - 2
        features, w = columns[: D + 1], machines.coefficients
        y = np.ascontiguousarray(machines.signs[labels].T)
        outputs = w.T @ features
        if machines.origin is not None:
            before = machines.origin.T @ features
            for k, step in enumerate(STEPS):
                self.losses[k] += _loss(y, before + step * (outputs - before), weights)
        else:
            self.losses[0] += _loss(y, outputs, weights)
        slacks = np.maximum(0.0, 1.0 - y * outputs)
        weighted = slacks * weights
        proof = slacks
        if machines.proof is not None:
            proof = np.maximum(0.0, 1.0 - y * (machines.proof.T @ features))
        for side, own in enumerate((y < 0.0, y > 0.0)):
            part = np.where(own, proof * weights, 0.0)
            self.totals[side] += part.sum(axis=1)
            self.squares[side] += np.einsum("ki,ki->k", part, proof)
            self.images[side] += columns[:D] @ (part * y).T
        lengths = np.sqrt(np.einsum("ai,ai->i", columns[:D], columns[:D]))
        sizes = 1.0 + np.abs(w[D])[:, None] + np.outer(np.linalg.norm(w[:D], axis=0), lengths)
        self.reach += float(np.vdot(weighted, sizes))
        for k, moments in enumerate(self.moments):
            active = np.flatnonzero(weighted[k] > 0.0)
            if len(active):
                columns[D + 1] = y[k]
                moments.add(np.take(columns, active, axis=1) * np.sqrt(weights[active]))

    def __add__(self, other: HingeSums) -> HingeSums:
        pairs = zip(self.moments, other.moments, strict=True)
        return HingeSums(
            [mine + its for mine, its in pairs],
            self.losses + other.losses,
            self.squares + other.squares,
            self.totals + other.totals,
            self.images + other.images,
            self.reach + other.reach,
        )


def _loss(y: Array, outputs: Array, weights: Array) -> float:
    """Q of all machines together."""
    slacks = np.maximum(0.0, 1.0 - y * outputs)
    return float(((slacks * slacks) @ weights).sum())


@dataclass(frozen=True)
class HingePass:
    """Adds blocks of rows to the sums of several groups of machines.

    Attributes
    ----------
    features : FeatureMap
    origin, factors : ndarray of shape (D,)
        What features are centred by, and then multiplied with.
    targets : ClassTargets
        Classes, and the factors of sample weights that they have.
    groups : list of Machines
    """

    features: FeatureMap
    origin: Array
    factors: Array
    targets: ClassTargets
    groups: list[Machines]

    def __call__(self, state: list[HingeSums] | None, block: Block) -> list[HingeSums]:
        """The sums with those of one more block, `state` being changed."""
        if state is None:
            state = [HingeSums.none(machines) for machines in self.groups]
        with naming_block(block):
            block = self.targets.ignoring_weightless(block)
            assert block.y is not None
            columns = augmented(self.features, self.origin, block, 1)
            labels, weights = self.targets.labels(block.y), weights_of(block, self.targets)
        columns[:-2] *= self.factors[:, None]
        weights = np.ones(len(block)) if weights is None else weights
        for machines, sums in zip(self.groups, state, strict=True):
            sums.add(machines, columns, labels, weights)
        return state

    def merge(self, first: list[HingeSums], second: list[HingeSums]) -> list[HingeSums]:
        """The sums of the rows of both."""
        return [mine + its for mine, its in zip(first, second, strict=True)]
