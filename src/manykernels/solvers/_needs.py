"""What solvers need of a problem: each function returns why it is refused, or None.

The answer completes the sentence "solver='x' …" of :func:`~manykernels.solvers.refuse_unfit`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from .._memory import available_memory
from ..domains import Box, LpBall, Simplex
from ..losses import BoxLoss, Outline, SquareLoss
from .base import Problem, Solver

# Longest estimated time that starts without ``force=True``: about as long as a user may wait.
_MOST_MINUTES = 10.0


def square_loss(solver: Solver, problem: Problem) -> str | None:
    """The loss is that of Fisher's discriminant, with λ given or learnt."""
    kind = problem.outline.kind
    fits = issubclass(kind, SquareLoss)
    return None if fits else f"works for the square loss only, not for {kind.__name__}"


def box_loss(solver: Solver, problem: Problem) -> str | None:
    """The loss is that of a support vector machine, with bounds on each dual variable."""
    kind = problem.outline.kind
    fits = issubclass(kind, BoxLoss)
    return None if fits else f"works for support vector machines only, not for {kind.__name__}"


def dual_program(solver: Solver, problem: Problem) -> str | None:
    """The dual of the loss is a quadratic program."""
    kind = problem.outline.kind
    fits = hasattr(kind, "dual_program")
    return None if fits else f"needs a loss with a dual program, not {kind.__name__}"


def fixed_regularization(solver: Solver, problem: Problem) -> str | None:
    """λ or C is given, not learnt."""
    return 'needs a number for reg or C, not "joint"' if problem.outline.learns_reg else None


def one_bound(solver: Solver, problem: Problem) -> str | None:
    """All weights have one bound in common."""
    several = problem.domain.n_blocks > 1
    return "has one norm of all weights, not one for each region" if several else None


def on_a_simplex(solver: Solver, problem: Problem) -> str | None:
    """Weights live on one simplex."""
    fits = isinstance(problem.domain, Simplex)
    return None if fits else one_bound(solver, problem) or "works at p=1 only"


def smooth_norm(solver: Solver, problem: Problem) -> str | None:
    """The norm of the weights, one of all of them, has a smooth dual norm."""
    fits = isinstance(problem.domain, LpBall | Box)
    return None if fits else one_bound(solver, problem) or "works for p > 1 only"


@dataclass(frozen=True)
class Expensive(Solver):
    """A solver whose memory and time are estimated first; `force` starts it whatever they are."""

    force: bool = False

    @abstractmethod
    def cost(self, outline: Outline) -> tuple[float, float]:
        """Estimated bytes and minutes for a loss of this size."""


def affordable(solver: Solver, problem: Problem) -> str | None:
    """The estimates are within available memory and ten minutes, or the solver is forced."""
    assert isinstance(solver, Expensive)
    outline = problem.outline
    n_bytes, minutes = solver.cost(outline)
    fits = n_bytes <= (available_memory() or np.inf) and minutes <= _MOST_MINUTES
    if solver.force or fits:
        return None
    return (
        f"would take about {n_bytes / 2**30:.1f} GiB and {minutes:.0f} minutes for "
        f"{outline.n_samples} samples, {outline.n_kernels} kernels and {outline.n_outputs} "
        f"outputs ({type(solver).__name__}(force=True) tries all the same)"
    )
