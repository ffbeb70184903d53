"""Gates of one machine along decreasing penalties, each from the one before.

The path begins at the penalty ∞, which is plain multiple kernel learning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .descent import INTERRUPTED, STOPPED, Descent, DescentOptions, Observer, descend
from .gates import Array, Rng
from .restarts import GatedProblem


@dataclass(frozen=True)
class GatedPath:
    """The gates of a `problem`, whose own penalty is not used."""

    problem: GatedProblem
    options: DescentOptions
    rng: Rng

    def along(
        self, penalties: Iterable[float], observer: Observer | None = None
    ) -> Iterator[Descent]:
        """A gate for each of the penalties, which decrease, until the observer asks to stop."""
        start: Array | None = None
        for penalty in penalties:
            if np.isinf(penalty):
                exact = replace(self.problem, exact=True, penalty=0.0)
                theta = exact.start(self.rng)
                none = replace(self.options, max_iter=0)
                descent = descend(exact.objective(theta), theta, none, observer)
                # It was chosen by held-out samples, and J is not to be lowered.
                descent.amend(held_out=True)
            else:
                problem = replace(self.problem, penalty=penalty)
                theta = problem.start(self.rng) if start is None else start
                descent = descend(problem.objective(theta), theta, self.options, observer)
                start = descent.point.theta
            yield descent
            if descent.status in (INTERRUPTED, STOPPED):
                return
