"""Methods that the papers compare with, under the same interface."""

from .alignment import Alignment
from .average import Average
from .best_kernel import BestKernel
from .kim import KimFDA
from .polynomial import PolynomialCombination
from .product import Product

__all__ = ["Alignment", "Average", "BestKernel", "KimFDA", "PolynomialCombination", "Product"]
