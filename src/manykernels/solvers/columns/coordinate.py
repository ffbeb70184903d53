"""Block coordinate ascent for the square loss: blocks of dual variables and weights in turn.

Yan 2012, section 2.3.1: the saddle point ``min_β max_α D(α, β)`` of (24) needs no exact inner
solution on the way. For a block of samples the dual variables are solved for exactly with the
others held (:mod:`manykernels.losses.inexact`, after Keerthi and Shevade 2003), then the weights
take a relaxed analytic update.

A sweep evaluates all kernel entries, so everything else is there to have few of them: large
blocks, drawn anew for each sweep; the best linear combination of the last sweeps; and a guide, the
same problem on some of the rows (:mod:`~manykernels.solvers.columns._guide`). Its minimiser is the
start, and after each sweep it corrects the weights with the curvature of F, which the analytic
update does not use. That matters at p = 1; for larger p the analytic update alone would do.

After every sweep P, D and the gains give a true certificate, with no factorisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...domains import Array, Domain
from ...losses import SquareLoss
from ...losses.base import Loss
from ...losses.inexact import BlockAscent, InexactEvaluation
from .._needs import fixed_regularization, square_loss
from ..base import Need, Solver, start_or_uniform, weights_are_free
from ..run import Run
from ..updates import RELAXATION, relaxed_update, settled
from ._guide import Guide


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

    by_columns = True
    needs: ClassVar[tuple[Need, ...]] = (square_loss, fixed_regularization)

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> None:
        assert isinstance(loss, SquareLoss)
        searching = weights_are_free(loss, domain)
        guide = self._guide(loss, domain) if searching else None
        weights = start_or_uniform(start, loss, domain)
        if guide is not None and start is None:
            weights = guide.start()
        ascent = BlockAscent.of(loss, self.block_size, self.random_state)

        def evaluate(weights: Array) -> InexactEvaluation:
            return InexactEvaluation.of(loss, ascent, weights)

        # Gains mean nothing before all samples have been visited: the first sweep keeps weights.
        ascent.sweep(weights)
        while not run.record(point := settled(evaluate(weights), domain, evaluate)):
            if guide is not None:
                weights = guide.correct(point.weights, point.gains, point.value - point.slack)
            for block in ascent.order():
                if searching:
                    weights = relaxed_update(weights, ascent.gains, domain, RELAXATION)
                ascent.visit(block, weights)
            ascent.combine_sweeps(weights)

    def _guide(self, loss: SquareLoss, domain: Domain) -> Guide | None:
        """On as many rows as fit into the cache with all kernels, up to `start_rows`."""
        fitting = math.isqrt(self.cache_bytes // (8 * loss.n_kernels))
        return Guide.on_rows(loss, domain, min(self.start_rows, fitting))
