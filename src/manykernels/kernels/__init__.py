"""Kernels, unions of kernels, and stacks of kernel matrices.

=============  ================================================================================
**kernels**
`base`         `Kernel`, the base class, and the evaluation of kernels tile by tile
`standard`     linear, polynomial, Gaussian, χ² and other kernels of numbers
`relevance`    `RelevanceRBF`: a Gaussian whose scales of columns are learnt from targets
`categories`   kernels of categories and of binary fingerprints
`strings`      kernels of strings: `Spectrum`, `WeightedDegree`, `Mismatch`, `Gapped`
`words`        strings as arrays, and counts of their words
`composition`  sums and products, kernels of one view, kernels after a transformer
`adapters`     `as_kernel`: names, functions, scikit-learn kernels and precomputed matrices
`union`        `KernelUnion`: named kernels evaluated into one stack, and `RBFSubsets`
`auto`         `auto_kernels`: default kernels of a table, and `kernels_for`
`molecules`    `Molecules`: Tanimoto kernel of SMILES, by RDKit
`sets`         `kernels_of_sets`: kernels of sets of columns, and the reader of GMT files
**tables**
`tables`       selection and validation of columns
`columns`      types of columns in training, and conversion of new rows
`views`        `Views`: named tables of the same samples
`matching`     matching of rows, samples and targets by label
**matrices**
`stack`        `KernelStack`: stored matrices with transforms, saved and loaded
`operators`    sums and products of kernel matrices
`on_demand`    kernels computed on demand: many kernels, many rows, kernels of regions
`checks`       checks that matrices are finite, symmetric and positive semi-definite
**transforms**
`transforms`   centring and ``NORMALIZATIONS``
`spectral`     `Denoise` and `Bands`: kernels of some principal axes
`completion`   ``COMPLETIONS`` of kernels that some samples lack
=============  ================================================================================
"""

from .adapters import FromDistances, Precomputed
from .auto import NormalScores, auto_kernels, kernels_for
from .base import Kernel
from .categories import Categorical, Jaccard, Tanimoto
from .completion import Presence
from .molecules import Molecules
from .relevance import RelevanceRBF
from .sets import kernels_of_sets
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
    "Molecules",
    "NormalScores",
    "Polynomial",
    "Precomputed",
    "Presence",
    "RBFSubsets",
    "RelevanceRBF",
    "Spectrum",
    "Tanimoto",
    "Views",
    "WeightedDegree",
    "auto_kernels",
    "kernels_for",
    "kernels_of_sets",
    "rbf_grid",
]
