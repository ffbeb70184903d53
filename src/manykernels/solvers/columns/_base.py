"""What solvers by columns share.

After improving dual variables at weights β they move the weights by the relaxed analytic update
(:func:`~manykernels.solvers.updates.relaxed_update`), and record a point in which weights on their
way to zero are zero if that is better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ...domains import Array, Domain
from ...losses.base import Evaluation, Loss

#: ω of the relaxed update. Measured on nine small machines: 1.8 and 1.5 take 71 rounds of
#: :class:`Interleaved`, 1 takes 99 and 1.95 takes 90; from 2 on they need not converge. Sweeps of
#: :class:`Coordinate` are decided by its blocks and its guide: 1 to 1.95 alike.
RELAXATION = 1.8

Point = TypeVar("Point", bound=Evaluation)


def weights_are_free(loss: Loss, domain: Domain) -> bool:
    """Whether there are weights to learn: several kernels, and a start that is not optimal."""
    return loss.n_kernels > 1 and not domain.start_is_optimal


def settled(point: Point, domain: Domain, evaluate: Callable[[Array], Point]) -> Point:
    """The point, or if better the one without the weights that are on their way to zero."""
    if not (point.gains > 0.0).any():
        return point
    weights = domain.settle(point.weights, point.gains)
    if not weights.any() or np.array_equal(weights, point.weights):
        return point
    other = evaluate(domain.onto_boundary(weights))
    return other if other.value <= point.value else point
