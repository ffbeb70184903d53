"""Rows of tables of any kind: some of them, and those of several tables in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._sklearn import safe_indexing
from ..kernels import Views
from ..kernels.tables import is_frame


def rows_of(table: Any, rows: Any) -> Any:
    """Some rows of an array, sparse matrix, data frame or `Views`: a slice or their numbers."""
    if isinstance(table, Views):
        return table[rows]
    return safe_indexing(table, rows)


def stacked(tables: Sequence[Any]) -> Any:
    """The rows of tables of one kind, one table after the other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if isinstance(first, Views):
        return Views.stacked(tables, stacked)
    if sparse.issparse(first):
        return sparse.vstack(tables, format="csr")
    if is_frame(first):
        return _stacked_frames(tables)
    return np.concatenate(tables)


def _stacked_frames(frames: Sequence[Any]) -> Any:
    if hasattr(frames[0], "iloc"):
        import pandas as pd

        return pd.concat(frames)
    # polars: columns of whole numbers and of fractions become one of fractions.
    import polars as pl

    return pl.concat(frames, how="vertical_relaxed")
