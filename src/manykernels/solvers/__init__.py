"""Solvers: they minimise a loss over a weight domain and certify the result.

| module | what it holds |
|---|---|
| ``base`` | the interface :class:`Solver`, the registry :data:`SOLVERS`, refusals |
| ``run`` | the history of a solver, the observer protocol, :class:`Solution` |
| ``certificate`` | lower bounds and the duality gap |
| ``_needs`` | the conditions that solvers put on a problem |
| ``newton`` | the default solver, :class:`Newton`, for any loss and any domain |
| ``search`` | one iteration of it: the Newton step, and what is tried where F rejects it |
| ``model`` | the quadratic model that a Newton step minimises |
| ``quadratic`` | that subproblem, a small quadratic program over a domain |
| ``cuts`` | linear lower bounds on F, for kinks |
| ``linear`` | linear programs that grow by rows and columns |
| ``updates`` | the analytic update of weights |
| ``active_set`` | many kernels, few of which can have a weight |
| ``path`` | many norms and regularisations, each solved from its neighbours |
| ``response`` | how the minimiser changes with the targets |
| ``papers`` | the programs of the papers: cutting planes, conic programs, SimpleMKL, … |
| ``columns`` | kernels that do not fit into memory, a few columns at a time |
"""

from .base import SOLVERS
from .columns import Coordinate, Interleaved
from .newton import Newton
from .papers.conic import QCQP, SDP, SDPApprox
from .papers.descent import Analytic, Dual, ReducedGradient, tikhonov
from .papers.sip import SILP, SIP
from .papers.smo_mkl import SMOMKL

__all__ = [
    "QCQP",
    "SDP",
    "SILP",
    "SIP",
    "SMOMKL",
    "SOLVERS",
    "Analytic",
    "Coordinate",
    "Dual",
    "Interleaved",
    "Newton",
    "ReducedGradient",
    "SDPApprox",
    "tikhonov",
]
