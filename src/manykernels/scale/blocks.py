"""From a table, several of them, or collections of Dask to blocks of rows: :func:`row_blocks`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels.tables import is_frame
from ..kernels.views import are_views
from .base import BLOCK_SIZE, Block, Reading, RowBlocks
from .dask_rows import DaskRows
from .tables import TableRows, ViewsRows, is_dask

__all__ = [
    "BLOCK_SIZE",
    "Block",
    "RowBlocks",
    "comes_in_blocks",
    "map_blocks",
    "refuse_unread",
    "row_blocks",
]

# Functions of pandas and Dask that read files, by their endings.
_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
}
# Endings of compressed files, which stand after the others.
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4")


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
    """The rows of X in blocks.

    Parameters
    ----------
    X : table, dict of tables, Views, or collection of Dask
        - A table in memory or a memory map: array, sparse matrix, data frame, list.
        - A dict of these, or `Views`: several tables of the same samples.
        - An array or a data frame of Dask, or a dict of them. Data frames are matched by their
          index, partition by partition; arrays by position.
    y, sample_weight : array, Series, array or Series of Dask, or None
        With a data frame of Dask also the name of one of its columns. A Series beside a data frame
        is matched by its index.
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
    refuse_unread(X)
    if comes_in_blocks(X):
        return DaskRows.of(X, y, sample_weight, reading)
    if are_views(X):
        return ViewsRows.of(X, y, sample_weight, reading)
    if isinstance(X, list | tuple) or hasattr(X, "__array__") or sparse.issparse(X) or is_frame(X):
        return TableRows.of(X, y, sample_weight, reading)
    raise TypeError(
        f"X is a {type(X).__name__}, which has no rows to read. Pass a table (array, sparse "
        "matrix, data frame), a dict of tables, or an array or data frame of dask."
    )


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
    X : table, dict of tables, Views, or collection of Dask
        As in :func:`row_blocks`.
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
    """Whether X, or one of several tables, is a collection of dask."""
    return any(map(is_dask, X.values())) if isinstance(X, Mapping) else is_dask(X)


def _checked_size(block_size: int | None) -> int:
    if block_size is None:
        return BLOCK_SIZE
    if not isinstance(block_size, Integral) or isinstance(block_size, bool) or block_size < 1:
        raise ValueError(f"block_size must be a whole number above 0, got {block_size!r}.")
    return int(block_size)


# -- what others read ------------------------------------------------------------------------


def refuse_unread(X: Any, *, matrices: bool = False) -> None:
    """Raise TypeError, with the line that reads it, if X is a path or anything else to be read.

    Paths, stored arrays, iterators and lists of blocks are read by pandas or Dask. A list of
    tables is allowed if they are kernel `matrices`.
    """
    if matrices and isinstance(X, list | tuple) and X and all(map(_is_table, X)):
        return
    tables = X if isinstance(X, Mapping) and not sparse.issparse(X) else {None: X}
    for name, table in tables.items():
        advice = _advice(table)
        if advice is not None:
            raise TypeError(f"{'X' if name is None else f'view {name!r}'} is {advice}")


def _advice(X: Any) -> str | None:
    """What X is and the line to write instead; None for a table."""
    if _is_path(X):
        return f"a path, {os.fspath(X)!r}: {_reading_line(X)}"
    if isinstance(X, list | tuple):
        return _advice_of_list(X)
    if hasattr(X, "oindex") and hasattr(X, "shape"):
        return "an array of zarr: pass dask.array.from_zarr(X), or X[:] if it fits into memory."
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        return "lazy, without rows so far: pass X.collect()."
    if hasattr(X, "__next__") or inspect.isroutine(X):
        kind = "an iterator" if hasattr(X, "__next__") else "a function"
        return (
            f"{kind}, whose blocks of rows are not read here: pass all rows in one table, such as "
            "numpy.vstack(...) of the blocks; or, if they do not fit into memory, a data frame of "
            "dask whose partitions are the blocks, dask.dataframe.from_map(function, parts), or "
            "dask.array.from_array(...)."
        )
    return None


def _advice_of_list(X: Any) -> str | None:
    if len(X) == 0:
        return None
    if all(map(_is_path, X)) and all(
        not isinstance(one, str) or _ending(one) in _READERS for one in X
    ):
        # Other lists of strings are tables: sequences, texts.
        return f"a list of paths: {_reading_line(X[0], [os.fspath(one) for one in X])}"
    first = X[0]
    if isinstance(first, tuple) and 1 < len(first) <= 3 and _is_table(first[0]):
        return (
            "a list of blocks (X, y): pass all rows in one table, numpy.vstack([X for X, y in "
            "blocks]); or, if they do not fit into memory, "
            "dask.array.concatenate([dask.array.from_array(X) for X, y in blocks])."
        )
    if all(map(_is_table, X)):
        return (
            f"a {type(X).__name__} of {len(X)} tables: views of the same samples are passed as a "
            'dict with their names, such as {"audio": X1, "text": X2}; further rows of one table '
            "by numpy.vstack(X)."
        )
    return None


def _is_path(X: Any) -> bool:
    return isinstance(X, str | bytes | os.PathLike)


def _is_table(item: Any) -> bool:
    """Whether `item` has rows and columns, or is several tables."""
    return len(getattr(item, "shape", ())) == 2 or are_views(item)


def _ending(path: Any) -> str:
    name = os.fspath(path)
    name = (name.decode(errors="replace") if isinstance(name, bytes) else name).lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def _reading_line(path: Any, paths: Any = None) -> str:
    """The line that reads a path, or several."""
    ending = _ending(path)
    given = repr(os.fspath(path) if paths is None else paths)
    if ending == ".npy":
        return f'pass numpy.load({given}, mmap_mode="r").'
    if ending in (".zarr", ".zip"):
        return f"pass dask.array.from_zarr({given})."
    reader = _READERS.get(ending, "read_parquet")
    separated = ', sep="\\t"' if ending == ".tsv" else ""
    line = f"{reader}({given}{separated})"
    if paths is not None:
        return f"pass dask.dataframe.{line}."
    return f"pass pandas.{line}, or dask.dataframe.{line} if its rows do not fit into memory."
