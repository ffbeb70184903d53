"""How: solvers that minimise any loss over any weight domain."""

from ..losses.base import Certificate
from .analytic import Analytic
from .base import SOLVERS, Problem, Progress, Solution, Solver, certify, refuse_unfit
from .conic import QCQP
from .coordinate import Coordinate
from .dual import Dual, TikhonovSolution, tikhonov, tikhonov_strength
from .interleaved import Interleaved
from .newton import Newton
from .path import PAPER_NORMS, GridPoint, walk_grid
from .reduced_gradient import ReducedGradient
from .semidefinite import SDP, SDPApprox
from .sip import SILP, SIP
from .smo_mkl import SMOMKL

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
    "certify",
    "refuse_unfit",
    "tikhonov",
    "tikhonov_strength",
    "walk_grid",
]
