"""Methods side by side on the same splits, and over several data sets."""

from ._compare import compare
from .cells import Cell
from .paired import PairedTests
from .ranks import Ranking, rank_methods
from .result import Comparison

__all__ = ["Cell", "Comparison", "PairedTests", "Ranking", "compare", "rank_methods"]
