"""Millions of rows: blocks of rows from any container, and one pass over them.

- ``blocks.py``: :func:`row_blocks`, which finds the kind of a container; ``base.py``: what kinds
  share. Kinds: ``tables.py``, ``joined.py``, ``streams.py``, ``files.py``, ``dask_rows.py``.
- ``checks.py``: what is asked of rows as they come in.
- ``keys.py``, ``reservoir.py``, ``census.py``: the first pass, a sample of rows and their number.
- ``checkpoint.py``: a pass that goes on after an interruption.
"""

from .base import Block, RowBlocks
from .blocks import map_blocks, row_blocks
from .census import Census
from .checkpoint import Checkpoint
from .keys import fold_of
from .reservoir import Reservoir, Sample

__all__ = [
    "Block",
    "Census",
    "Checkpoint",
    "Reservoir",
    "RowBlocks",
    "Sample",
    "fold_of",
    "map_blocks",
    "row_blocks",
]
