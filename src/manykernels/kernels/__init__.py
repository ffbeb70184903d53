"""Kernels, unions of kernels, and the stacks of matrices they are evaluated into.

=================  =============================================================================
**kernels**
`base`             `Kernel`, the base of all kernels
`algebra`          sums and products of kernels
`standard`         linear, polynomial, Gaussian, χ², … kernels
`categories`       kernels of categories and of 0/1 fingerprints
`strings`          `Spectrum` and `WeightedDegree`: common words of strings
`inexact_strings`  `Mismatch` and `Gapped`: words that are nearly common
`sequences`        strings as one array of letters
`_words`           words counted, and products of counts
`_word_loops`      the loop of these products, compiled
`after`            kernels with preprocessing of their own
`of_view`          kernels of one view
`precomputed`      kernels looked up in a matrix
`_partial`         kernels that some rows lack, the base of the next and of `of_view`
`presence`         which samples have what: rows without values, and their pattern as a kernel
`adapters`         `as_kernel`: names, functions and kernels of scikit-learn
`union`            `KernelUnion`: named kernels of one table, evaluated into one stack
`subsets`          `RBFSubsets`: Gaussian kernels of very many sets of columns
`auto`             `auto_kernels`: default kernels of a table, by what it holds
`normal_scores`    columns by their ranks, as if each were normally distributed
`evaluation`       kernels written into their places in a stack, tile by tile
`comparisons`      what kernels share: products or distances of rows
`given`            whatever is accepted as a parameter ``kernels``, as a union
`tables`           columns of tables, and whether they hold numbers
`kinds`            what columns held in training, and new rows like them
`texts`            texts that are no categories: numbers and dates in disguise, names
`_scales`          bandwidths taken from training rows
**views**
`views`            `Views`: named tables of the same samples
`matching`         rows of tables, and targets, matched by label
`modalities`       dicts, frames with two-level columns, MuData and AnnData as named tables
`view_tables`      the table of one view
**matrices**
`stack`            `KernelStack`: matrices stored once, transforms kept as vectors beside them
`streamed`         `StreamedKernels`: the same interface, values computed when needed
`on_demand`        `OnDemandKernels`: very many kernels, computed in blocks when needed
`_transformed`     their common base: the transforms, and what is known about the matrices
`_stored`          the base of `KernelStack`: sums and products of stored matrices
`_saving`          stacks written to files and read from them
`matrices`         matrices, names and indices as users give them, checked
`samples`          names of samples, and whether test blocks have the right columns
`checks`           whether matrices are finite, symmetric, positive semi-definite
`_spectrum`        negative eigenvalues
**transforms**
`transforms`       centring and ``NORMALIZATIONS``
`spectral`         `Denoise` and `Bands`: kernels cut along their principal axes
`axes`             principal axes
`completion`       samples that lack kernels: ``COMPLETIONS``
`_completing`      what completions have in common
`_reconstruction`  images in one kernel reconstructed from another
=================  =============================================================================
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
