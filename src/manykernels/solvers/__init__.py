"""How: solvers that minimise any loss over any weight domain."""

from ..losses.base import Certificate
from .base import Progress, Solution, Solver, certify
from .newton import Newton

__all__ = ["SOLVERS", "Certificate", "Newton", "Progress", "Solution", "Solver", "certify"]

#: Solvers by the name users give.
SOLVERS: dict[str, type[Solver]] = {"newton": Newton}
