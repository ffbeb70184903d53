"""Tables in memory, on disk or in a store of arrays, and `Views` of tables in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse

from .._sklearn import num_samples
from ..kernels.matching import matched_targets, row_labels
from ..kernels.tables import is_frame
from ..kernels.views import are_views, matched_views
from .base import Block, Reading, RowBlocks
from .checks import (
    checked_targets,
    checked_weights,
    is_list_of_blocks,
    readable,
    refuse_no_rows,
    refuse_no_targets,
)
from .stacking import rows_of

# Rows of a block without columns: large enough that hundreds of millions of rows are few blocks.
_BARE_ROWS = 2**18


def is_stored_array(X: Any) -> bool:
    """Whether X is an array of zarr, outside of memory and read by slices."""
    return hasattr(X, "oindex") and hasattr(X, "shape")


def is_dask(X: Any) -> bool:
    """Whether X is a collection of dask."""
    return hasattr(X, "__dask_graph__")


def is_read_in_parts(table: Any) -> bool:
    """Whether the table of a view is not in memory: stored, of dask, a path, or an iterator."""
    if isinstance(table, str | os.PathLike) or is_dask(table):
        return True
    return is_stored_array(table) or callable(table) or hasattr(table, "__next__")


def read_if_stored(values: Any) -> Any:
    """Targets or weights, those of a store of arrays read."""
    return values[:] if is_stored_array(values) else values


class TableRows(RowBlocks):
    """Rows of one table: array, memory map, sparse matrix, data frame, list, zarr array."""

    random_access = True

    def __init__(self, X: Any, y: Any, weight: Any, reading: Reading) -> None:
        super().__init__(reading)
        self.n_rows = n_rows = int(num_samples(X))
        y, weight = read_if_stored(y), read_if_stored(weight)
        for name, values in (("y", y), ("sample_weight", weight)):
            if isinstance(values, str):
                raise ValueError(
                    f"{name}={values!r} names a column, which is possible where X is a file or a "
                    f"data frame of dask. Pass the values: {name}=frame[{values!r}]."
                )
        if y is None and reading.needs_y:
            refuse_no_targets()
        self.X = X
        self.y = None if y is None else checked_targets(y, n_rows)
        self.weight = None if weight is None else checked_weights(weight, n_rows)

    @classmethod
    def takes(cls, X: Any) -> bool:
        if is_dask(X) or are_views(X):
            return False
        if isinstance(X, list | tuple):
            return not is_list_of_blocks(X)
        in_memory = hasattr(X, "__array__") or sparse.issparse(X) or is_frame(X)
        return in_memory or is_stored_array(X)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        if num_samples(X) == 0:
            refuse_no_rows()
        y, sample_weight = matched_targets(row_labels(X), y=y, sample_weight=sample_weight)
        # An array, mapped or not, is read when its rows come up; lists become one at once.
        lazy = isinstance(X, np.ndarray) or is_stored_array(X)
        if lazy and len(X.shape) != 2 and X.dtype.kind in "biuf":
            readable(np.empty((1,) * len(X.shape)))  # which refuses it
        return cls(X if lazy else readable(X), y, sample_weight, reading)

    def pieces(self, first_row: int) -> Iterator[Block]:
        size, n_rows = self.block_size, self.n_rows or 0
        for start in range(first_row - first_row % size, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            y, weight = (None if one is None else one[rows] for one in (self.y, self.weight))
            yield Block(rows_of(self.X, rows), y, weight, start, start // size)

    def take(self, rows: np.ndarray) -> Any:
        return readable(rows_of(self.X, rows))

    def bare(self) -> TableRows:
        reading = Reading(_BARE_ROWS, self.reading.needs_y)
        return TableRows(np.empty((self.n_rows or 0, 0)), self.y, self.weight, reading)


class ViewsRows(TableRows):
    """Rows of several tables in memory, matched by label, or by position where they have none."""

    @classmethod
    def takes(cls, X: Any) -> bool:
        if not are_views(X):
            return False
        tables = X.values() if isinstance(X, Mapping) else ()
        return not any(map(is_read_in_parts, tables))

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        views, y, weight = matched_views(X, y, sample_weight, may_lack=reading.may_lack)
        return cls(views, y, weight, reading)
