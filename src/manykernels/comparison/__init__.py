"""Comparison of methods on the same splits, and over several data sets."""

from .ranks import Ranking, rank_methods
from .result import Cell, Comparison, PairedTests
from .run import compare

__all__ = ["Cell", "Comparison", "PairedTests", "Ranking", "compare", "rank_methods"]
