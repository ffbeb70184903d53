"""From a container of any kind to blocks of rows: :func:`row_blocks`, :func:`map_blocks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

# Each module registers the kinds of containers that it reads.
from . import dask_rows, files, joined, streams, tables  # noqa: F401
from .base import BLOCK_SIZE, Block, Reading, RowBlocks, rows_in
from .checks import is_list_of_blocks
from .tables import is_read_in_parts

__all__ = ["BLOCK_SIZE", "Block", "RowBlocks", "comes_in_blocks", "map_blocks", "row_blocks"]


def row_blocks(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    block_size: int | None = None,
    needs_y: bool = False,
    allow_nan: bool = False,
    may_lack: bool = False,
) -> RowBlocks:
    """The rows of X in blocks, whatever X is.

    Parameters
    ----------
    X : container of rows
        - A table in memory or a memory map: array, sparse matrix, data frame, list.
        - An array of zarr.
        - The path of a Parquet, CSV or TSV file, of a folder of such files, or a pattern such as
          ``"part-*.parquet"``; y and `sample_weight` are then names of columns.
        - An array of dask, or a data frame, where y may be the name of a column.
        - What yields blocks ``(X, y)`` or ``(X, y, sample_weight)`` of any length: a generator
          function or a list of blocks, which can be read more than once, or an iterator.
        - A dict of these, or `Views`: several tables of the same samples.
    y, sample_weight : array, name of a column, or None
    block_size : int, default=4096
        Rows of a block.
    needs_y : bool, default=False
        Refuse rows without y.
    allow_nan : bool, default=False
        Whether numbers may be missing.
    may_lack : bool, default=False
        Whether samples may lack views.

    Returns
    -------
    RowBlocks

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale import row_blocks
    >>> blocks = row_blocks(np.arange(20.0).reshape(10, 2), block_size=4)
    >>> [(block.start, len(block)) for block in blocks]
    [(0, 4), (4, 4), (8, 2)]
    >>> blocks.reduce(lambda total, block: (total or 0.0) + block.X.sum(), sum)
    np.float64(190.0)
    """
    reading = Reading(_checked_size(block_size), needs_y, allow_nan, may_lack)
    return rows_in(X, y, sample_weight, reading)


def map_blocks(
    X: Any,
    function: Callable[[Any], np.ndarray],
    *,
    meta: np.ndarray | None = None,
    block_size: int | None = None,
    allow_nan: bool = False,
    may_lack: bool = False,
) -> Any:
    """``function(X)`` block by block: one result for every row.

    Parameters
    ----------
    X : container of rows
        As in :func:`row_blocks`; a y that comes with it is not looked at.
    function : callable
        From some rows of X to an array of as many rows.
    meta : ndarray, optional
        An empty result, such as ``np.empty((0, 3))``. For dask, which has to know the kind of
        results before it computes them; without it the first row is computed.
    block_size, allow_nan, may_lack : see :func:`row_blocks`

    Returns
    -------
    ndarray, or dask.array.Array for an array or data frame of dask

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale import map_blocks
    >>> map_blocks([[1.0, 2.0], [3.0, 4.0]], lambda X: X.sum(axis=1))
    array([3., 7.])
    """
    blocks = row_blocks(X, block_size=block_size, allow_nan=allow_nan, may_lack=may_lack)
    return blocks.map(function, meta)


def comes_in_blocks(X: Any) -> bool:
    """Whether X, or one of several tables, is not in memory: of dask, a path, an iterator, …"""
    if isinstance(X, Mapping):
        return any(map(is_read_in_parts, X.values()))
    if isinstance(X, list | tuple):
        # Lists of tables alone may be meant as views of the same samples.
        return len(X) > 0 and isinstance(X[0], tuple) and is_list_of_blocks(X)
    return is_read_in_parts(X)


def _checked_size(block_size: int | None) -> int:
    if block_size is None:
        return BLOCK_SIZE
    if not isinstance(block_size, Integral) or isinstance(block_size, bool) or block_size < 1:
        raise ValueError(f"block_size must be a whole number above 0, got {block_size!r}.")
    return int(block_size)
