"""Methods side by side on the same splits, and over several data sets."""

from .cells import Cell
from .compare import compare
from .paired import PairedTests
from .ranks import Ranking, rank_methods
from .result import Comparison

__all__ = ["Cell", "Comparison", "PairedTests", "Ranking", "compare", "rank_methods"]
