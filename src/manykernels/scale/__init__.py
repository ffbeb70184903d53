"""Millions of rows: explicit features of kernels, and their moments in one pass over the rows.

- ``blocks.py``: :func:`row_blocks`, which reads any container in blocks, and Dask collections.
- ``rows.py``: checks of blocks of rows, and tables in memory.
- ``sampling.py``: the first pass, a sample of rows and their number; folds.
- ``features.py``: feature maps of kernels, sums, products and strings.
- ``approximations.py``: Nyström, random and exact features.
- ``moments.py``: the second pass, sums of products of features and targets.
- ``hinge.py``: support vector machines, which take more passes.
"""

from .approximations import (
    ExactFeatures,
    Fixed,
    KMeansPlusPlus,
    LandmarkSelector,
    LeverageScores,
    Nystrom,
    RandomFeatures,
    Uniform,
)
from .blocks import map_blocks, row_blocks
from .features import Approximation, FeatureMap
from .rows import Block, RowBlocks
from .sampling import Census, Reservoir, Sample, fold_of

__all__ = [
    "Approximation",
    "Block",
    "Census",
    "ExactFeatures",
    "FeatureMap",
    "Fixed",
    "KMeansPlusPlus",
    "LandmarkSelector",
    "LeverageScores",
    "Nystrom",
    "RandomFeatures",
    "Reservoir",
    "RowBlocks",
    "Sample",
    "Uniform",
    "fold_of",
    "map_blocks",
    "row_blocks",
]
