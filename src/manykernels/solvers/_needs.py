"""What solvers ask of a problem: each function answers what is missing, or None.

An answer completes the sentence "solver 'x' …", see :func:`~manykernels.solvers.refuse_unfit`.
"""

from __future__ import annotations

from ..domains import Box, LpBall, Simplex
from ..losses import BoxLoss, SquareLoss
from .base import Problem, Solver


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
