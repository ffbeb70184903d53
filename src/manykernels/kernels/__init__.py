"""What is compared: kernels, unions of kernels and the stacks they are evaluated into."""

from .adapters import CallableKernel, GaussianProcessKernel, PairwiseKernel
from .base import Constant, Kernel, Product, Sum
from .convert import as_kernel
from .precomputed import FromDistances, Precomputed
from .spectral import Bands, Denoise
from .stack import KernelStack, check_stack
from .standard import RBF, ChiSquare, Cosine, Intersection, Laplacian, Linear, Polynomial
from .transforms import Center, Multiplicative, Spherical, UnitTrace
from .union import KernelUnion, rbf_grid, views_union

__all__ = [
    "RBF",
    "Bands",
    "CallableKernel",
    "Center",
    "ChiSquare",
    "Constant",
    "Cosine",
    "Denoise",
    "FromDistances",
    "GaussianProcessKernel",
    "Intersection",
    "Kernel",
    "KernelStack",
    "KernelUnion",
    "Laplacian",
    "Linear",
    "Multiplicative",
    "PairwiseKernel",
    "Polynomial",
    "Precomputed",
    "Product",
    "Spherical",
    "Sum",
    "UnitTrace",
    "as_kernel",
    "check_stack",
    "rbf_grid",
    "views_union",
]
