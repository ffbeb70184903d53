"""Comparison of methods on the same splits, and over several data sets."""

from .ranks import rank_methods
from .result import Comparison
from .run import compare

__all__ = ["Comparison", "compare", "rank_methods"]
