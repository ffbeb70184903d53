"""Solvers: they minimise a loss over a weight domain and certify the result.

==============  =============================================================================
`base`          the interface `Solver`, its history and observers, certificates, the registry
`newton`        the default solver, `Newton`, for any loss and any domain; active sets
`programs`      the quadratic program of a Newton step; linear programs that grow
`path`          many norms and regularisations, each solved from its neighbours
`papers`        the programs of the papers: cutting planes, conic programs, SimpleMKL, …
`candidates`    ridge regressions of many targets, by candidate weights that they share
`columns`       kernels that do not fit into memory, a few columns at a time
==============  =============================================================================
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
