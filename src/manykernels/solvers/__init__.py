"""Solvers: how the minimum of a loss over a weight domain is found and certified.

**The default solver**, :class:`Newton`, takes any loss and any domain.

| module | what it holds |
|---|---|
| ``newton`` | the solver: its start, its iterations |
| ``search`` | one iteration: the Newton step, and what is tried where F rejects it |
| ``model`` | the quadratic model that a step minimises |
| ``quadratic`` | that subproblem, a small quadratic program over a domain |
| ``cuts`` | planes below F, for kinks |
| ``updates`` | the analytic update of weights |
| ``active_set`` | many kernels, few of which can have a weight |
| ``path`` | many norms and regularisations, each solved from its neighbours |
| ``response`` | how the minimiser changes with the targets |

**Other solvers** of the same problem:

| package | what it holds |
|---|---|
| ``papers`` | the programs of the papers: cutting planes, conic programs, SimpleMKL, … |
| ``columns`` | kernels that do not fit into memory, a few columns at a time |

**What they share**:

| module | what it holds |
|---|---|
| ``base`` | the contract: :class:`Solver`, the registry :data:`SOLVERS`, refusals |
| ``run`` | what a solver reports while it iterates, the observer protocol, :class:`Solution` |
| ``certificate`` | lower bounds and the duality gap |
| ``_needs`` | the conditions that solvers put on a problem |
"""

from ..losses.base import Certificate
from .base import SOLVERS, Problem, Solver, as_solver, refuse_unfit
from .certificate import certify
from .columns.coordinate import Coordinate
from .columns.interleaved import Interleaved
from .newton import Newton
from .papers.analytic import Analytic
from .papers.dual import Dual, TikhonovSolution, tikhonov, tikhonov_strength
from .papers.qcqp import QCQP
from .papers.reduced_gradient import ReducedGradient
from .papers.semidefinite import SDP, SDPApprox
from .papers.sip import SILP, SIP
from .papers.smo_mkl import SMOMKL
from .path import PAPER_NORMS, GridPoint, walk_grid
from .run import Progress, Solution

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
    "Interleaved",
    "Newton",
    "Problem",
    "Progress",
    "ReducedGradient",
    "SDPApprox",
    "Solution",
    "Solver",
    "TikhonovSolution",
    "as_solver",
    "certify",
    "refuse_unfit",
    "tikhonov",
    "tikhonov_strength",
    "walk_grid",
]
