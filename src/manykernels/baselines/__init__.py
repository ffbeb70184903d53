"""Baseline methods of the papers and other common methods, with the same interface.

Some learn weights by other criteria: the Fisher ratio (KimFDA), the distance between classes
(EasyMKL), stochastic subgradients (OBSCURE). Some combine machines, one per kernel (LPBeta, LPB),
or columns of kernels (CGBoost). The others combine the kernels into one, by a fixed or a learnt
rule, and fit another estimator, their machine, to it: the mean (Average), the geometric mean
(Product), the best single kernel (BestKernel), a sum that is aligned with the targets (Alignment),
or a polynomial (PolynomialCombination). Their common parts are in `machine.py`.
"""

from .alignment import Alignment
from .cg_boost import CGBoost
from .easymkl import EasyMKL
from .kim import KimFDA
from .lp_beta import LPB, LPBeta
from .obscure import OBSCURE
from .polynomial import PolynomialCombination
from .simple import Average, BestKernel, Product

__all__ = [
    "LPB",
    "OBSCURE",
    "Alignment",
    "Average",
    "BestKernel",
    "CGBoost",
    "EasyMKL",
    "KimFDA",
    "LPBeta",
    "PolynomialCombination",
    "Product",
]
