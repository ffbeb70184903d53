"""Solvers for kernels that do not fit into memory, which use a few columns at a time.

Both alternate between improving the dual variables of some samples and relaxed analytic updates of
the weights (:mod:`~manykernels.solvers.papers.descent`). No m×m matrix is formed: memory is needed
for one block of samples squared, the n·m·c products ``K_jv``, and cached columns
(`cache_bytes`).

| solver | loss |
|---|---|
| ``"coordinate"`` | square loss |
| ``"interleaved"`` | support vector machines |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..domains import Array, Domain
from ..losses.base import Evaluation, Loss
from ..losses.composed import SurrogateLoss
from ..losses.inexact import BlockAscent, InexactEvaluation
from ..losses.square import SquareLoss
from ..losses.svm import BoxAscent, BoxLoss, InexactBoxPoint
from . import base
from .base import Run, Solver
from .newton import Newton
from .papers.descent import RELAXATION, relaxed_update, settled

# -- Block coordinate ascent for the square loss: blocks of dual variables and weights in turn ----
#
# Yan 2012, section 2.3.1: the saddle point ``min_β max_α D(α, β)`` of (24) needs no exact inner
# solution on the way. For a block of samples the dual variables are solved for exactly with the
# others fixed (:mod:`manykernels.losses.inexact`, after Keerthi and Shevade 2003), then the
# weights take a relaxed analytic update.
#
# A sweep evaluates all kernel entries, so everything else serves to need few sweeps: large blocks,
# drawn anew for each sweep; the best linear combination of the last sweeps; and a guide, the same
# problem on some of the rows, small enough for exact solutions. Its minimiser is the start.
# Scaled, and tilted by a linear term so that its gains at the current weights are those of all
# rows (:mod:`manykernels.losses.composed`), it is a model of the whole problem, whose minimiser
# corrects the weights after each sweep. Unlike the analytic update the model includes how gains
# change with weights, which matters at p = 1; for larger p the analytic update alone would
# suffice.
#
# After every sweep P, D and the gains give a true certificate, with no factorisation.


# Minimum number of rows of the guide: fewer say too little about the best weights. Sweeps of 4
# problems of 300 samples at p = 1, with 25, 50, 100 rows and without a guide: 64, 66, 38, 93 with
# Gaussian kernels; but 325, 234, 241, 57 with kernels of low rank.
_LEAST_ROWS = 50
# Relative step of the weights below which inexact gains show no curvature, and the largest factor
# per step of the model's scale, for the same reason. Measured: 1e-6 to 1e-2 and 1.2 to 5 alike.
_LEAST_STEP = 1e-4
_MOST_RESCALING = 2.0


@dataclass(frozen=True)
class Coordinate(Solver, name="coordinate"):
    """Block coordinate ascent, for kernels that do not fit into memory.

    Parameters
    ----------
    block_size : int, default=2000
        Number of samples whose dual variables are solved for at once. Larger blocks need fewer
        sweeps, and memory for ``block_size**2`` numbers.
    cache_bytes : int, default=2**31
        Memory for kernel columns that are kept between sweeps, if an estimator computes them from
        a table.
    start_rows : int, default=1500
        Maximum number of rows of the guide, a smaller problem for the start and for corrections.
    random_state : int, default=0
        Seed of the blocks and of their order.

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
    needs = (base.square_loss, base.fixed_regularization)

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> None:
        assert isinstance(loss, SquareLoss)
        searching = base.weights_are_free(loss, domain)
        # The guide has as many rows as fit into the cache with all kernels.
        fitting = math.isqrt(self.cache_bytes // (8 * loss.n_kernels))
        n_rows = min(self.start_rows, fitting)
        guide = Guide.on_rows(loss, domain, n_rows) if searching else None
        weights = base.start_or_uniform(start, loss, domain)
        if guide is not None and start is None:
            weights = guide.start()
        ascent = BlockAscent.of(loss, self.block_size, self.random_state)
        evaluate = partial(InexactEvaluation.of, loss, ascent)

        # Gains are meaningless before all samples have been visited: the first sweep keeps
        # weights.
        ascent.sweep(weights)
        while not run.record(point := settled(evaluate(weights), domain, evaluate)):
            if guide is not None:
                weights = guide.correct(point.weights, point.gains, point.value - point.slack)
            for block in ascent.order():
                if searching:
                    weights = relaxed_update(weights, ascent.gains, domain, RELAXATION)
                ascent.visit(block, weights)
            ascent.combine_sweeps(weights)


class Guide:
    """Loss on some of the rows as a model of the loss on all."""

    def __init__(self, loss: SquareLoss, domain: Domain) -> None:
        self._loss, self._domain, self._scale = loss, domain, 1.0
        self._last: tuple[Evaluation, Array] | None = None

    @classmethod
    def on_rows(cls, loss: SquareLoss, domain: Domain, most_rows: int) -> Guide | None:
        """Return a guide on rows spread evenly over the targets; None if they are too few."""
        n_rows = len(loss.targets)
        most = min(n_rows, most_rows)
        if most < min(n_rows, _LEAST_ROWS):
            return None
        # Includes the first and the last in the order of the targets, so that targets differ.
        chosen = np.linspace(0, n_rows - 1, most).round().astype(np.intp)
        rows = np.sort(np.lexsort(loss.targets.T)[chosen])
        # Eigenvalues of K are proportional to the number of rows, so λ is scaled with it.
        return cls(loss.on_rows(rows, loss.reg * most / n_rows), domain)

    def start(self) -> Array:
        """Return the minimiser on these rows."""
        return Newton().solve(self._loss, self._domain).weights

    def correct(self, weights: Array, gains: Array, value: float) -> Array:
        """Return the minimiser of the model that has these gains at these weights."""
        here = self._loss.evaluate(weights)
        if self._last is None:
            self._scale = value / here.value
        else:
            self._scale *= self._rescaling(here, gains, *self._last)
        self._last = here, gains
        model = SurrogateLoss(self._loss, self._scale, gains - self._scale * here.gains)
        return Newton().solve(model, self._domain, start=weights).weights

    def _rescaling(
        self, here: Evaluation, gains: Array, before: Evaluation, gains_before: Array
    ) -> float:
        """Return the curvature of the loss on all rows over the model's, along the last step."""
        step = here.weights - before.weights
        expected = float((before.gains - here.gains) @ step) * self._scale
        if np.abs(step).max() <= _LEAST_STEP * here.weights.max() or expected <= 0.0:
            return 1.0
        ratio = float((gains_before - gains) @ step) / expected
        return float(np.clip(ratio, 1.0 / _MOST_RESCALING, _MOST_RESCALING))


# -- ℓp-norm support vector machines whose weights are updated during training --------------------
#
# Kloft et al. (2011), algorithm 2, the interleaved method that Yan 2012 compares with: the saddle
# point ``min_β max_v D(v, β)`` needs no machine solved completely before the weights move. Some
# variables of the machine are improved at the current weights
# (:mod:`manykernels.losses.svm`). Their products ``K_jv`` give the gains
# ``g_j = ½ vᵀK_jv`` and a relaxed analytic update of the weights.
#
# The paper has no relaxation, ω = 1. Over-relaxation pays where the gap ``P − D`` of the machines
# is below the gap ``σ_B(g) − β·g`` of the weights. There ω starts at 1.8, and ω − 1 is halved
# whenever the loss rises by more than that gap. All outputs are visited at the same weights.
#
# After each round P, D and the gains give a true certificate.


@dataclass(frozen=True)
class Interleaved(Solver, name="interleaved"):
    """Alternate between working sets of support vector machines and closed-form weights, p ≥ 1.

    Parameters
    ----------
    working_set : int, default=2000
        Maximum number of variables improved between two updates of the weights. Takes memory for
        ``working_set**2`` numbers.
    cache_bytes : int, default=2**31
        As for :class:`Coordinate`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from manykernels import MKSVC, rbf_grid
    >>> from manykernels.solvers import Interleaved
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MKSVC(rbf_grid([1, 4]), solver=Interleaved(working_set=100), tol=1e-3)
    >>> model.fit(scale(X), y).certificate_.converged
    True
    """

    working_set: int = 2000
    cache_bytes: int = 2**31

    by_columns = True
    needs = (base.box_loss, base.fixed_regularization)
    # Maximum number of rounds, each far cheaper than a machine solved completely.
    default_max_iter = 2000

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, BoxLoss)
        searching = base.weights_are_free(loss, domain)
        weights = base.start_or_uniform(start, loss, domain)
        ascent = BoxAscent(loss, self.working_set)
        # Gains are meaningless before every machine has taken some steps.
        ascent.visit_all(weights)
        relaxation = _Relaxation(domain)
        while not run.record(settled(point := ascent.point(weights), domain, ascent.point)):
            if searching:
                weights = relaxed_update(weights, point.gains, domain, relaxation.at(point))
            moved = ascent.visit_all(weights)
            if not moved and np.array_equal(weights, point.weights):
                return "neither machines nor weights move any more"
        return ""


class _Relaxation:
    """ω of the next update, see above."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._excess = RELAXATION - 1.0
        self._last = np.inf

    def at(self, point: InexactBoxPoint) -> float:
        """Return ω for the update from this point."""
        gap = self._domain.support(point.gains) - float(point.weights @ point.gains)
        if point.slack > gap:
            return 1.0
        if point.value > self._last + gap:
            self._excess *= 0.5
        self._last = point.value
        return 1.0 + self._excess
