"""How: solvers that minimise any loss over any weight domain."""

from ..losses.base import Certificate
from .base import SOLVERS, Problem, Progress, Solution, Solver, certify, refuse_unfit
from .newton import Newton

__all__ = [
    "SOLVERS",
    "Certificate",
    "Newton",
    "Problem",
    "Progress",
    "Solution",
    "Solver",
    "certify",
    "refuse_unfit",
]
