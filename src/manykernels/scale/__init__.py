"""Millions of rows: explicit features of kernels, and their moments in one pass over the rows.

==================  ==================================================================
`rows`              rows of tables in memory, in blocks, and checks of them
`blocks`            `row_blocks`: blocks of any container, Dask collections among them
`sampling`          the first pass, a sample of rows and their number; folds
`features`          explicit features of single kernels
`approximations`    `Nystrom`, `RandomFeatures`, `ExactFeatures`, landmarks
`moments`           the second pass, sums of products of features and targets
`hinge`             support vector machines, which take several passes
==================  ==================================================================
"""

from .approximations import (
    ExactFeatures,
    Fixed,
    KMeansPlusPlus,
    LeverageScores,
    Nystrom,
    RandomFeatures,
    Uniform,
)

__all__ = [
    "ExactFeatures",
    "Fixed",
    "KMeansPlusPlus",
    "LeverageScores",
    "Nystrom",
    "RandomFeatures",
    "Uniform",
]
