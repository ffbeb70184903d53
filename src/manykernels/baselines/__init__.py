"""Methods that the papers compare with, and others that are in use, under the same interface.

KimFDA, EasyMKL and OBSCURE learn weights by criteria of their own. The others make one kernel of
several, by a fixed rule or a learnt one, and another estimator, their machine, learns from it: the
mean (Average), the geometric mean (Product), the best single kernel (BestKernel), a sum that is
aligned with the targets (Alignment), or a polynomial (PolynomialCombination). `_merged` has the
one kernel of training and of new samples, `_machine` the parameters and answers that they share.
"""

from .alignment import Alignment
from .average import Average
from .best_kernel import BestKernel
from .easymkl import EasyMKL
from .kim import KimFDA
from .obscure import OBSCURE
from .polynomial import PolynomialCombination
from .product import Product

__all__ = [
    "OBSCURE",
    "Alignment",
    "Average",
    "BestKernel",
    "EasyMKL",
    "KimFDA",
    "PolynomialCombination",
    "Product",
]
