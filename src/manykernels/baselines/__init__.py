"""Methods that the papers compare with, under the same interface.

KimFDA learns weights by a criterion of its own. The others make one kernel of several, by a fixed
rule or a learnt one, and another estimator, their machine, learns from it: the mean (Average), the
geometric mean (Product), the best single kernel (BestKernel), a sum that is aligned with the
targets (Alignment), or a polynomial (PolynomialCombination). `_merged` has the one kernel of
training and of new samples, `_machine` the parameters and answers that they share.
"""

from .alignment import Alignment
from .average import Average
from .best_kernel import BestKernel
from .kim import KimFDA
from .polynomial import PolynomialCombination
from .product import Product

__all__ = ["Alignment", "Average", "BestKernel", "KimFDA", "PolynomialCombination", "Product"]
