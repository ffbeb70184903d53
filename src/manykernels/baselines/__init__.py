"""Methods that the papers compare with, and others that are in use, under the same interface."""

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
