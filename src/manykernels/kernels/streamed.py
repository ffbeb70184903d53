"""Kernels of training rows that are computed when they are needed and never stored whole.

A stack of n kernels of m rows takes n·m² numbers: 30 GiB for 10 kernels of 20 000 rows. Methods
that look at a few columns at a time (solvers with ``by_columns``) need no stack. Here every
kernel is evaluated in small tiles that stay in the cache of the processor: the distances of a
tile are shared by the kernels that are functions of them, and each tile is used and dropped.
Tiles are computed by several threads.

Whole panels ``K_j[:, indices]`` are kept as far as `cache_bytes` allow. A sweep asks for every
panel once, so the panel used least recently is the next one asked for; a cache that dropped that
one would never have the panel it needs. The first panels therefore stay.

Transforms are kept as vectors, as by a stack; centring learns its means in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from .._memory import allocate
from .._sklearn import openmp_n_threads, safe_indexing
from ._transformed import Guarantees, Samples, TransformedKernels, take
from .matrices import positions
from .stack import KernelStack
from .tables import naming
from .union import KernelUnion, SharedDistances

# 2 GiB: the panels of one kernel of 16 000 rows.
DEFAULT_CACHE_BYTES = 2**31
# Entries of a tile: 1 MiB of float64, so that distances and kernel values of a tile stay in a
# second-level cache.
_TILE_ENTRIES = 2**17
# Columns of a tile where all columns are visited; a tile then has 65 rows.
_TILE_COLUMNS = 2000

Work = Callable[[int, slice, np.ndarray], None]


class StreamedKernels(TransformedKernels):
    """Kernels of a union between the rows of one table, by columns.

    Parameters
    ----------
    union : KernelUnion
        Fitted kernels.
    X : {array-like, dataframe, sparse matrix} of shape (m, features)
        Training rows.
    cache_bytes : int, default=2**31
        Most memory for panels that are kept.

    Attributes
    ----------
    shape : tuple
        ``(m, m, n_kernels)``.
    names : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import rbf_grid
    >>> from manykernels.kernels.streamed import StreamedKernels
    >>> from manykernels.kernels.transforms import Center
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> streamed = StreamedKernels(rbf_grid([1, 2]).fit(X), X)
    >>> Center().fit_transform(streamed).columns(1, np.array([0, 2])).round(2)
    array([[ 0.26, -0.32],
           [ 0.05, -0.13],
           [-0.32,  0.45]])
    """

    def __init__(
        self, union: KernelUnion, X: Any, *, cache_bytes: int = DEFAULT_CACHE_BYTES
    ) -> None:
        self.union = union
        self.names = union.names_
        psd = all(kernel.is_psd for _, kernel in union.kernels_)
        self.guarantees = Guarantees(gram=True, psd=psd, psd_if_centered=psd)
        self._X = X
        self._diagonal = union.diag(X)
        self._scale = np.ones(len(self.names))
        self._rows = self._cols = Samples(self._diagonal)
        self._libraries = ThreadpoolController()
        self.cache = PanelCache(cache_bytes)

    @property
    def shape(self) -> tuple[int, int, int]:
        n_kernels, n_rows = self._diagonal.shape
        return n_rows, n_rows, n_kernels

    def _without_offsets(self) -> StreamedKernels:
        raise ValueError("Kernels by columns are rescaled sample by sample before centring only.")

    # -- by columns ------------------------------------------------------------------------

    def columns(self, which: int, indices: np.ndarray) -> np.ndarray:
        """``K_which[:, indices]``, all transforms applied."""
        return self._panel(np.eye(self.n_kernels)[which], indices)

    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        kept = self.cache.panels(indices, self.n_kernels, len(self))
        return self._products(indices, coefficients, kept)

    def _products(
        self, indices: np.ndarray, coefficients: np.ndarray, panels: dict[int, Panel]
    ) -> np.ndarray:
        products = np.empty((self.n_kernels, len(self), coefficients.shape[1]))
        factor = take(self._cols.factor, indices, 1)
        columns = [
            coefficients if factor is None else factor[j, :, None] * coefficients
            for j in range(self.n_kernels)
        ]
        missing = []
        for j in range(self.n_kernels):
            if j in panels and panels[j].filled:
                products[j] = panels[j].values @ columns[j]
            else:
                missing.append(j)

        def multiply(j: int, rows: slice, tile: np.ndarray) -> None:
            products[j, rows] = tile @ columns[j]
            if j in panels:
                panels[j].values[rows] = tile

        self._visit(np.arange(len(self)), indices, missing, multiply)
        for panel in panels.values():
            panel.filled = True
        return products

    def _combine_stored(self, weights: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return self._combined(weights, indices, indices)

    def _combined(self, weights: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Weighted sum of ``f_j(r) f_j(c) data[j, r, c]``."""
        total = np.zeros((len(rows), len(columns)))

        def add(j: int, part: slice, tile: np.ndarray) -> None:
            tile *= weights[j]
            if self._rows.factor is not None and self._cols.factor is not None:
                tile *= self._rows.factor[j, rows[part], None]
                tile *= self._cols.factor[j, columns]
            total[part] += tile

        self._visit(rows, columns, np.flatnonzero(weights).tolist(), add)
        return total

    def _panel(self, weights: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """``Σ_j weights[j] K_j[:, indices]``."""
        panel = self._combined(weights * self._scale, np.arange(len(self)), indices)
        return self._subtract_offsets(panel, weights, slice(None), indices)

    # -- as a whole, for losses of few rows ------------------------------------------------

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products ``K_j @ columns`` of every kernel, (n_kernels, m, n_columns), in one pass."""
        columns = self._check_columns(columns)
        products = np.zeros((self.n_kernels, len(self), columns.shape[1]))
        for block in self._column_blocks():
            products += self._products(block, columns[block], {})
        self._transform_products(products, slice(None), columns)
        if out is not None:
            out[...] = products
        # Each column contiguous, as a stack returns them.
        return np.ascontiguousarray(products.mT).mT if out is None else out

    def combine(self, weights: Any, out: np.ndarray | None = None) -> np.ndarray:
        """``Σ_j weights[j] K_j``, a matrix (m, m)."""
        weights = self._check_weights(weights)
        total = allocate(self.shape[:2]) if out is None else out
        for block in self._column_blocks():
            total[:, block] = self._panel(weights, block)
        return total

    def kernel(self, which: int) -> np.ndarray:
        """One kernel matrix (m, m)."""
        return self.combine(np.eye(self.n_kernels)[which])

    def __getitem__(self, key: Any) -> KernelStack:
        """Stack of some rows and columns, ``streamed[np.ix_(rows, cols)]``."""
        rows, columns = (positions(part, len(self)) for part in key)
        gram = np.array_equal(rows, columns)
        others = None if gram else safe_indexing(self._X, columns)
        stack = self.union(safe_indexing(self._X, rows), others)
        return stack._changed(
            _scale=self._scale,
            _rows=replace(self._rows.take(rows), names=stack.row_samples),
            _cols=replace(self._cols.take(columns), names=stack.col_samples),
        )

    def _column_blocks(self) -> Iterable[np.ndarray]:
        starts = range(0, len(self), _TILE_COLUMNS)
        return (np.arange(s, min(s + _TILE_COLUMNS, len(self))) for s in starts)

    def _visit(
        self, rows: np.ndarray, columns: np.ndarray, kernels: list[int], work: Work
    ) -> None:
        """Call ``work(j, part of rows, values)`` for every tile of some of the kernels."""
        if not kernels:
            return
        chosen = safe_indexing(self._X, columns)
        position = np.full(len(self), -1)
        position[columns] = np.arange(len(columns))

        def visit_rows(part: slice) -> None:
            evaluate = SharedDistances(safe_indexing(self._X, rows[part]), chosen)
            column = position[rows[part]]
            same = np.flatnonzero(column >= 0)
            for j in kernels:
                name, kernel = self.union.kernels_[j]
                with naming(f"kernel {name!r}"):
                    tile = evaluate(kernel)
                # Self-similarities: formulas for two tables may differ from them by rounding
                # error, or by more if a kernel adds noise to single samples (WhiteKernel).
                tile[same, column[same]] = self._diagonal[j, rows[part][same]]
                work(j, part, tile)

        height = max(1, _TILE_ENTRIES // len(columns))
        parts = [slice(s, min(s + height, len(rows))) for s in range(0, len(rows), height)]
        n_threads = min(openmp_n_threads(only_physical_cores=False), len(parts))
        if n_threads == 1:
            for part in parts:
                visit_rows(part)
            return
        # Each thread computes its matrix products alone, or they would wait for one another.
        limit = self._libraries.limit(limits=1, user_api="blas")
        with limit, ThreadPoolExecutor(n_threads) as threads:
            for _ in threads.map(visit_rows, parts):
                pass


class Panel:
    """Values of one kernel in some columns, once `filled`."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.values = np.empty(shape)
        self.filled = False


class PanelCache:
    """Panels by their columns, up to a number of bytes; the first to come stay.

    Parameters
    ----------
    max_bytes : int

    Attributes
    ----------
    n_bytes : int
        Memory of the panels kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._panels: dict[bytes, dict[int, Panel]] = {}

    def panels(self, indices: np.ndarray, n_kernels: int, n_rows: int) -> dict[int, Panel]:
        """Panels of these columns that are kept, by kernel; new ones are not `filled` yet."""
        key = indices.tobytes()
        if key not in self._panels:
            size = 8 * n_rows * len(indices)
            room = min(n_kernels, (self.max_bytes - self.n_bytes) // size)
            self._panels[key] = {j: Panel((n_rows, len(indices))) for j in range(room)}
            self.n_bytes += room * size
        return self._panels[key]
