"""Tables in memory or mapped from disk, and `Views` of tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from .._sklearn import num_samples
from ..kernels.matching import matched_targets, row_labels
from ..kernels.views import matched_views
from .base import Block, Reading, RowBlocks
from .checks import (
    checked_targets,
    checked_weights,
    readable,
    refuse_no_rows,
    refuse_no_targets,
)
from .stacking import rows_of

# Rows of a block without columns: large enough that hundreds of millions of rows are few blocks.
_BARE_ROWS = 2**18


def is_dask(X: Any) -> bool:
    """Whether X is a collection of dask."""
    return hasattr(X, "__dask_graph__")


class TableRows(RowBlocks):
    """Rows of one table: array, memory map, sparse matrix, data frame, list."""

    random_access = True

    def __init__(self, X: Any, y: Any, weight: Any, reading: Reading) -> None:
        super().__init__(reading)
        self.n_rows = n_rows = int(num_samples(X))
        for name, values in (("y", y), ("sample_weight", weight)):
            if isinstance(values, str):
                raise ValueError(
                    f"{name}={values!r} names a column, which is possible where X is a data "
                    f"frame of dask. Pass the values: {name}=frame[{values!r}]."
                )
        if y is None and reading.needs_y:
            refuse_no_targets()
        self.X = X
        self.y = None if y is None else checked_targets(y, n_rows)
        self.weight = None if weight is None else checked_weights(weight, n_rows)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        if num_samples(X) == 0:
            refuse_no_rows()
        y, sample_weight = matched_targets(row_labels(X), y=y, sample_weight=sample_weight)
        # An array, mapped or not, is read when its rows come up; lists become one at once.
        lazy = isinstance(X, np.ndarray)
        if lazy and len(X.shape) != 2 and X.dtype.kind in "biuf":
            readable(np.empty((1,) * len(X.shape)))  # which refuses it
        return cls(X if lazy else readable(X), y, sample_weight, reading)

    def pieces(self) -> Iterator[Block]:
        size, n_rows = self.block_size, self.n_rows or 0
        for start in range(0, n_rows, size):
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
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        views, y, weight = matched_views(X, y, sample_weight, may_lack=reading.may_lack)
        return cls(views, y, weight, reading)
