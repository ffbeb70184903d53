"""Methods that the papers compare with, and others that are in use, under the same interface.

Some learn weights by a criterion of their own: the Fisher ratio (KimFDA), the distance between
classes (EasyMKL), stochastic steps (OBSCURE). Some mix machines: one per kernel (LPBeta, LPB), or
columns of kernels (CGBoost). The others make one kernel of several, by a fixed rule or a learnt
one, and another estimator, their machine, learns from it: the mean (Average), the geometric mean
(Product), the best single kernel (BestKernel), a sum that is aligned with the targets (Alignment),
or a polynomial (PolynomialCombination). `machine` has what these share.
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
