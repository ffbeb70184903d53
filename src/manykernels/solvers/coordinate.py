"""Interleaved optimisation: blocks of dual variables and kernel weights in turn.

Yan 2012, section 2.3.1: the saddle point ``min_β max_α D(α, β)`` of (24) needs no exact inner
solution on the way. Here a few columns of each kernel are looked at in turn
(:mod:`manykernels.losses.inexact`, after Keerthi and Shevade 2003): for a block of samples the
dual variables are solved for exactly with the others held, then the weights follow,

    log β ← log β + ω (log β⁺ − log β),   β⁺ = argmin_{b ∈ B} Σ_j β_j² g_j / b_j

with the analytic update β⁺ of Kloft et al. (2011). That update is cautious, most of all near
p = 1 where it is ``β_j ∝ β_j √g_j``; steps of almost twice its length, ω < 2, save about half
of the sweeps where nothing else moves the weights.

No m×m matrix is formed: memory is that of n·m·c products, of one block, and of what panels the
kernels keep. What a sweep costs is the evaluation of all kernel entries, so everything else is
there to have few of them: large blocks, drawn anew for each sweep; the best combination of the
last sweeps; and a guide, the same problem on some of the rows, small enough for exact solutions.
Its minimiser is the start. After each sweep it is tilted so that its gains are those of all rows
and minimised again: it knows how gains change with weights, which the analytic update does not.
That matters at p = 1; for larger p the analytic update alone would do.

After every sweep P, D and the gains give a true certificate, with no factorisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..domains import Array, Domain
from ..losses import SquareLoss
from ..losses.base import Loss
from ..losses.inexact import BlockAscent, InexactEvaluation
from ._guide import Guide
from ._needs import fixed_regularization, square_loss
from .base import Need, Solver, Walk

_RELAXATION = 1.8


@dataclass(frozen=True)
class Coordinate(Solver, name="coordinate"):
    """Block coordinate ascent, for kernels that do not fit into memory.

    Parameters
    ----------
    block_size : int, default=2000
        Samples whose dual variables are solved for at once. Larger blocks need fewer sweeps
        and memory for ``block_size**2`` numbers.
    cache_bytes : int, default=2**31
        Memory for kernel columns that are kept between sweeps, where an estimator computes
        them from a table.
    start_rows : int, default=1500
        Most rows of the smaller problem that the weights start from and are guided by.
    random_state : int, default=0
        Seed of the blocks and of the order in which they are visited.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> from manykernels.solvers import Coordinate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3)); y = X[:, 0] * X[:, 1] > 0
    >>> model = MKFDA(solver=Coordinate(block_size=50), tol=1e-4).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    block_size: int = 2000
    cache_bytes: int = 2**31
    start_rows: int = 1500
    random_state: int = 0

    by_columns: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (square_loss, fixed_regularization)

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> None:
        assert isinstance(loss, SquareLoss)
        searching = loss.n_kernels > 1 and not domain.start_is_optimal
        guide = self._guide(loss, domain) if searching else None
        weights = domain.start(loss.n_kernels) if start is None else start
        if guide is not None and start is None:
            weights = guide.start()
        ascent = BlockAscent.of(loss, self.block_size, self.random_state)
        # Gains mean nothing before all samples have been seen: the first sweep is without them.
        ascent.sweep(weights)
        while not walk.arrive(point := _evaluation(loss, ascent, domain, weights)):
            if guide is not None:
                weights = guide.correct(point.weights, point.gains, point.value - point.slack)
            for block in ascent.order():
                if searching:
                    weights = _follow(weights, ascent.gains, domain)
                ascent.visit(block, weights)
            ascent.combine_sweeps(weights)

    def _guide(self, loss: SquareLoss, domain: Domain) -> Guide | None:
        fitting = math.isqrt(self.cache_bytes // (8 * loss.n_kernels))
        return Guide.on_rows(loss, domain, min(self.start_rows, fitting))


def _evaluation(
    loss: SquareLoss, ascent: BlockAscent, domain: Domain, weights: Array
) -> InexactEvaluation:
    """What a sweep has reached; without the weights that are on their way to zero, if better."""
    point = InexactEvaluation.of(loss, ascent, weights)
    if not (point.gains > 0.0).any():
        return point
    settled = domain.settle(weights, point.gains)
    if not settled.any() or np.array_equal(settled, weights):
        return point
    other = InexactEvaluation.of(loss, ascent, domain.onto_boundary(settled))
    return other if other.value <= point.value else point


def _follow(weights: Array, gains: Array, domain: Domain) -> Array:
    """Weights moved by the relaxed analytic update."""
    if not (gains > 0.0).any():
        return weights
    with np.errstate(divide="ignore"):  # kernels without weight or gain stay out
        before = np.log(weights)
        update = domain.balance(2.0 * before + np.log(np.maximum(gains, 0.0)))
    alive = np.isfinite(update)
    moved = np.where(alive, update, 0.0) - np.where(alive, before, 0.0)
    following = np.where(alive, before, -np.inf) + _RELAXATION * moved
    return domain.onto_boundary(np.exp(following - following.max()))
