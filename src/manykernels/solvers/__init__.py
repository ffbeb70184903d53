"""Solvers, which minimise a loss over a weight domain and certify the result.

| module | content |
|---|---|
| ``base`` | the interface :class:`Solver`, the registry :data:`SOLVERS`, runs, certificates |
| ``newton`` | the default solver, :class:`Newton`, for any loss and any domain |
| ``quadratic`` | its subproblem, a small quadratic program over a domain |
| ``linear`` | linear programs that grow by rows and columns |
| ``active_set`` | many kernels, few of which can have a weight |
| ``path`` | many norms and regularisations; the response of the minimiser to the targets |
| ``papers`` | the programs of the papers: cutting planes, conic programs, SimpleMKL, … |
| ``columns`` | kernels that do not fit into memory, a few columns at a time |
"""

from ..losses.base import Certificate
from .base import SOLVERS, Problem, Progress, Solution, Solver, as_solver, certify, refuse_unfit
from .columns import Coordinate, Interleaved
from .newton import Newton
from .papers.conic import QCQP, SDP, SDPApprox
from .papers.descent import (
    Analytic,
    Dual,
    ReducedGradient,
    TikhonovSolution,
    tikhonov,
    tikhonov_strength,
)
from .papers.sip import SILP, SIP
from .papers.smo_mkl import SMOMKL
from .path import (
    PAPER_NORMS,
    GridPoint,
    GridProgress,
    GridRecord,
    SolvedPoint,
    solved_in_all,
    walk_grid,
)

__all__ = [
    "PAPER_NORMS",
    "QCQP",
    "SDP",
    "SILP",
    "SIP",
    "SMOMKL",
    "SOLVERS",
    "Analytic",
    "Certificate",
    "Coordinate",
    "Dual",
    "GridPoint",
    "GridProgress",
    "GridRecord",
    "Interleaved",
    "Newton",
    "Problem",
    "Progress",
    "ReducedGradient",
    "SDPApprox",
    "Solution",
    "SolvedPoint",
    "Solver",
    "TikhonovSolution",
    "as_solver",
    "certify",
    "refuse_unfit",
    "solved_in_all",
    "tikhonov",
    "tikhonov_strength",
    "walk_grid",
]
