"""The same problem on some of the rows, small enough for exact solutions.

Its minimiser is a start for the problem on all rows. Scaled, and tilted by a linear term so that
its gains at the current weights are those of all rows, it is a model of the whole problem that
includes how gains change with weights (:mod:`manykernels.losses.tilted`).
"""

from __future__ import annotations

import numpy as np

from ...domains import Array, Domain
from ...losses import SquareLoss
from ...losses.base import Evaluation
from ...losses.tilted import TiltedLoss
from ..newton import Newton

# Relative gap of the small problems: the default of all solvers; they cost next to nothing.
_TOL = 1e-6
# Fewer rows than this say too little about the weights for all.
_LEAST_ROWS = 50
# Relative step of the weights below which inexact gains show no curvature, and most change of the
# scale of the model per step, for the same reason. Measured: 1e-6 to 1e-2 and 1.2 to 5 alike.
_LEAST_STEP = 1e-4
_MOST_RESCALING = 2.0


class Guide:
    """A loss on some of the rows as a model of the loss on all."""

    def __init__(self, loss: SquareLoss, domain: Domain) -> None:
        self._loss = loss
        self._domain = domain
        self._scale: float | None = None
        self._last: tuple[Evaluation, Array] | None = None

    @classmethod
    def on_rows(cls, loss: SquareLoss, domain: Domain, most_rows: int) -> Guide | None:
        """On rows spread evenly over the targets; None if these would be too few.

        Eigenvalues of K grow in proportion to the number of rows, so λ is scaled with it.
        """
        n_rows = len(loss.targets)
        most = min(n_rows, most_rows)
        if most < min(n_rows, _LEAST_ROWS):
            return None
        # With the first and the last in the order of the targets, so that targets differ.
        chosen = np.linspace(0, n_rows - 1, most).round().astype(np.intp)
        rows = np.sort(np.lexsort(loss.targets.T)[chosen])
        sample_weight = None if loss.sample_weight is None else loss.sample_weight[rows]
        targets = loss.targets[rows]
        targets = targets - np.average(targets, axis=0, weights=sample_weight)
        part = loss.kernels[np.ix_(rows, rows)]
        return cls(SquareLoss(part, targets, loss.reg * most / n_rows, sample_weight), domain)

    def start(self) -> Array:
        """The minimiser on these rows."""
        return Newton().solve(self._loss, self._domain, tol=_TOL).weights

    def correct(self, weights: Array, gains: Array, value: float) -> Array:
        """Minimiser of the model that has these gains at these weights."""
        here = self._loss.evaluate(weights)
        if self._scale is None:
            self._scale = value / here.value
        if self._last is not None:
            self._scale *= self._rescaling(here, gains)
        self._last = here, gains
        model = TiltedLoss(self._loss, self._scale, gains - self._scale * here.gains)
        return Newton().solve(model, self._domain, tol=_TOL, start=weights).weights

    def _rescaling(self, here: Evaluation, gains: Array) -> float:
        """Curvature of the loss on all rows over that of the model, along the last step."""
        assert self._last is not None
        before, gains_before = self._last
        step = here.weights - before.weights
        expected = float((before.gains - here.gains) @ step) * (self._scale or 1.0)
        if np.abs(step).max() <= _LEAST_STEP * here.weights.max() or expected <= 0.0:
            return 1.0
        ratio = float((gains_before - gains) @ step) / expected
        return float(np.clip(ratio, 1.0 / _MOST_RESCALING, _MOST_RESCALING))
