"""Millions of rows: explicit features of kernels, and their moments in one pass over the rows.

- ``blocks.py``: :func:`row_blocks`, which finds the kind of a container; ``base.py``: what kinds
  share; ``tables.py``: tables in memory; ``dask_rows.py``: collections of dask.
- ``checks.py``: what is asked of rows as they come in.
- ``reservoir.py``: the first pass, a sample of rows and their number; ``plan.py``: folds.
- ``features.py``: maps of features; ``nystrom.py``, ``landmarks.py``: by landmarks;
  ``random_features.py``: by random frequencies; ``exact_features.py``, ``word_maps.py``: where
  finitely many are enough; ``kernel_maps.py``: what the last three share, by kernel.
- ``moments.py``, ``accumulation.py``: the second pass, sums of products of features and targets.
- ``hinge.py``, ``hinge_pass.py``: support vector machines, which take more passes.
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
