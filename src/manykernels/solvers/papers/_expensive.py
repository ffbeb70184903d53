"""Solvers that estimate memory and time beforehand, and refuse what would take too much."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ..._memory import available_memory
from ...losses.base import Outline
from ..base import Problem, Solver

# Minutes that a user is supposed to wait without being asked.
_MOST_MINUTES = 10.0


@dataclass(frozen=True)
class Expensive(Solver):
    """A solver whose memory and time are estimated before it starts.

    Parameters
    ----------
    force : bool, default=False
        Start whatever the estimates of memory and time.
    """

    force: bool = False

    @abstractmethod
    def cost(self, outline: Outline) -> tuple[float, float]:
        """Estimated bytes and minutes for a loss of this size."""


def affordable(solver: Solver, problem: Problem) -> str | None:
    """The estimates are within available memory and ten minutes, or the solver is forced."""
    assert isinstance(solver, Expensive)
    outline = problem.outline
    n_bytes, minutes = solver.cost(outline)
    within = n_bytes <= (available_memory() or np.inf) and minutes <= _MOST_MINUTES
    if solver.force or within:
        return None
    return (
        f"would take about {n_bytes / 2**30:.1f} GiB and {minutes:.0f} minutes for "
        f"{outline.n_samples} samples, {outline.n_kernels} kernels and {outline.n_outputs} "
        f"outputs ({type(solver).__name__}(force=True) tries all the same)"
    )
