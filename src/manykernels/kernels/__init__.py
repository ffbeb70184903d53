"""Kernels, unions of kernels, and the stacks of matrices they are evaluated into.

================  =========================================================================
**kernels**
`base`            `Kernel`, the base of all kernels, and their evaluation into a stack
`composition`     sums and products; kernels of a view; kernels with preprocessing
`standard`        linear, polynomial, Gaussian, χ² and other kernels of numbers
`categories`      kernels of categories and of 0/1 fingerprints
`strings`         kernels of strings: `Spectrum`, `WeightedDegree`, `Mismatch`, `Gapped`
`words`           words of strings, counted, and products of counts
`adapters`        names, functions, kernels of scikit-learn, and matrices as kernels
`union`           `KernelUnion`, and `RBFSubsets` of very many sets of columns
`auto`            `auto_kernels`: default kernels; `kernels_for`: the parameter ``kernels``
**tables**
`views`           `Views`: named tables of the same samples
`matching`        rows of tables, and targets, matched by label
`tables`          columns of tables, and which rows lack values
`columns`         types of columns in training and in new rows; texts
**matrices**
`stack`           `KernelStack`: matrices of several kernels, in memory or in files
`operators`       sums and products of matrices with transforms kept as vectors
`on_demand`       kernels that are computed when needed; kernels of regions
`checks`          finite, symmetric, positive semi-definite
**transforms**
`transforms`      centring and ``NORMALIZATIONS``
`spectral`        `Denoise` and `Bands`: kernels cut along their principal axes
`completion`      samples that lack kernels: ``COMPLETIONS``, `Presence`
================  =========================================================================
"""

from .adapters import FromDistances, Precomputed
from .auto import NormalScores, auto_kernels, kernels_for
from .base import Kernel
from .categories import Categorical, Jaccard, Tanimoto
from .completion import Presence
from .spectral import Bands, Denoise
from .stack import KernelStack
from .standard import RBF, ChiSquare, Cosine, Intersection, Laplacian, Linear, Polynomial
from .strings import Gapped, Mismatch, Spectrum, WeightedDegree
from .union import KernelUnion, RBFSubsets, rbf_grid
from .views import Views

__all__ = [
    "RBF",
    "Bands",
    "Categorical",
    "ChiSquare",
    "Cosine",
    "Denoise",
    "FromDistances",
    "Gapped",
    "Intersection",
    "Jaccard",
    "Kernel",
    "KernelStack",
    "KernelUnion",
    "Laplacian",
    "Linear",
    "Mismatch",
    "NormalScores",
    "Polynomial",
    "Precomputed",
    "Presence",
    "RBFSubsets",
    "Spectrum",
    "Tanimoto",
    "Views",
    "WeightedDegree",
    "auto_kernels",
    "kernels_for",
    "rbf_grid",
]
