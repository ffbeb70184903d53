"""What solvers ask of a problem: each answers what is missing, or None.

An answer completes the sentence "solver 'x' …", see :func:`~manykernels.solvers.refuse_unfit`.
"""

from __future__ import annotations

import numpy as np

from .._memory import available_memory
from ..domains import Box, LpBall, Simplex
from ..losses import BoxLoss, SquareLoss
from .base import Problem, Solver

_GIB = 2**30
_PATIENCE = 10.0  # minutes


def square_loss(solver: Solver, problem: Problem) -> str | None:
    """The loss is that of Fisher's discriminant, with λ given or learnt."""
    if issubclass(problem.outline.kind, SquareLoss):
        return None
    return f"works for the square loss only, not for {problem.outline.kind.__name__}"


def box_loss(solver: Solver, problem: Problem) -> str | None:
    """The loss is that of a support vector machine, bounds on each of its dual variables."""
    if issubclass(problem.outline.kind, BoxLoss):
        return None
    return f"works for support vector machines only, not for {problem.outline.kind.__name__}"


def dual_program(solver: Solver, problem: Problem) -> str | None:
    """The loss can be written as one quadratic program."""
    if hasattr(problem.outline.kind, "dual_program"):
        return None
    return f"needs a loss with a dual program, not {problem.outline.kind.__name__}"


def fixed_regularization(solver: Solver, problem: Problem) -> str | None:
    """λ is given."""
    return 'needs a number for reg or C, not "joint"' if problem.outline.learns_reg else None


def on_a_simplex(solver: Solver, problem: Problem) -> str | None:
    """Weights live on a simplex."""
    return None if isinstance(problem.domain, Simplex) else "works at p=1 only"


def smooth_norm(solver: Solver, problem: Problem) -> str | None:
    """The norm of the weights has a smooth dual norm."""
    return None if isinstance(problem.domain, LpBall | Box) else "works for p > 1 only"


def affordable(solver: Solver, problem: Problem, n_bytes: float, minutes: float) -> str | None:
    """The estimates of memory and time are bearable, or the solver is told not to mind."""
    if getattr(solver, "force", False):
        return None
    available = available_memory() or np.inf
    if n_bytes <= available and minutes <= _PATIENCE:
        return None
    outline = problem.outline
    return (
        f"would take about {n_bytes / _GIB:.1f} GiB and {minutes:.0f} minutes for "
        f"{outline.n_samples} samples, {outline.n_kernels} kernels and {outline.n_outputs} "
        f"outputs ({type(solver).__name__}(force=True) tries all the same)"
    )
