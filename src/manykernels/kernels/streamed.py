"""Kernels of training rows that are computed when they are needed and never stored whole.

A stack of n kernels of m rows takes n·m² numbers: 30 GiB for 10 kernels of 20 000 rows. Methods
that need a few columns at a time (solvers with ``by_columns``) can do without. Here every kernel
is evaluated in tiles small enough for the cache of the processor. Kernels that are functions of
the same distances share those of a tile, which are then dropped. Several threads compute tiles.

Panels ``K_j[:, indices]`` are kept as far as `cache_bytes` allow, the first ones for good. A
solver sweeps over all panels in turn, so the panel used least recently is the next one needed,
and a cache that dropped it would never hold the panel that is asked for.

Transforms are vectors, as those of a stack; centring learns its means in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from .._memory import allocate
from .._sklearn import safe_indexing
from ._threads import in_threads
from ._transformed import Guarantees, Samples, TransformedKernels
from .evaluation import SharedComparisons
from .matrices import positions
from .stack import KernelStack
from .tables import SharedTable, naming
from .union import KernelUnion

# Entries of a tile: 1 MiB of float64, so that distances and kernel values of a tile stay in a
# second-level cache.
_TILE_ENTRIES = 2**17
# Columns of a tile when all columns are needed; a tile then has 65 rows.
_TILE_COLUMNS = 2000

Work = Callable[[int, slice, np.ndarray], None]


class StreamedKernels(TransformedKernels):
    """The kernels of a fitted `union` between the m rows of the table `X`.

    At most `cache_bytes` of memory are used to keep panels; the default of 2 GiB holds those of
    one kernel of 16 000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import rbf_grid
    >>> from manykernels.kernels.streamed import StreamedKernels
    >>> from manykernels.kernels.transforms import Center
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> streamed = StreamedKernels(rbf_grid([1, 2]).fit(X), X)
    >>> Center().fit_transform(streamed).kernel(1).round(2)
    array([[ 0.26,  0.05, -0.32],
           [ 0.05,  0.08, -0.13],
           [-0.32, -0.13,  0.45]])
    """

    def __init__(self, union: KernelUnion, X: Any, *, cache_bytes: int = 2**31) -> None:
        self.union = union
        self.names = union.names_
        psd = all(kernel.is_psd for _, kernel in union.kernels_)
        self.guarantees = Guarantees(gram=True, psd=psd, psd_if_centered=psd)
        self._X = X
        self._diagonal = union.diag(X)
        self._scale = np.ones(len(self.names))
        self._rows = self._cols = Samples(self._diagonal)
        self.cache = PanelCache(cache_bytes)

    @property
    def shape(self) -> tuple[int, int, int]:
        n_kernels, n_rows = self._diagonal.shape
        return n_rows, n_rows, n_kernels

    def _without_offsets(self) -> StreamedKernels:
        raise ValueError("Kernels by columns can be normalised by sample before centring only.")

    def _apply_stored(
        self, indices: np.ndarray, coefficients: np.ndarray, *, keep: bool = True
    ) -> np.ndarray:
        panels = self.cache.panels(indices, self.n_kernels, len(self)) if keep else {}
        products = np.empty((self.n_kernels, len(self), coefficients.shape[1]))
        factor = 1.0 if self._cols.factor is None else self._cols.factor[:, indices, None]
        columns = np.broadcast_to(factor * coefficients, (self.n_kernels, *coefficients.shape))
        filled = [j for j, panel in panels.items() if panel.filled]
        for j in filled:
            products[j] = panels[j].values @ columns[j]
        missing = [j for j in range(self.n_kernels) if j not in filled]

        def multiply(j: int, rows: slice, tile: np.ndarray) -> None:
            products[j, rows] = tile @ columns[j]
            if j in panels:
                panels[j].values[rows] = tile

        self._visit(np.arange(len(self)), indices, missing, multiply)
        for panel in panels.values():
            panel.filled = True
        return products

    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        total = np.zeros((len(rows), len(cols)))

        def add(j: int, part: slice, tile: np.ndarray) -> None:
            tile *= weights[j]
            if self._rows.factor is not None and self._cols.factor is not None:
                tile *= self._rows.factor[j, rows[part], None]
                tile *= self._cols.factor[j, cols]
            total[part] += tile

        self._visit(rows, cols, np.flatnonzero(weights).tolist(), add)
        return total

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products ``K_j @ columns`` of every kernel, (n_kernels, m, n_columns), in one pass."""
        columns = self._check_columns(columns)
        if out is None:
            # Each column is contiguous, as in the products of a stack.
            out = np.empty((self.n_kernels, columns.shape[1], len(self))).mT
        out[...] = 0.0
        for block in self._column_blocks():
            out += self._apply_stored(block, columns[block], keep=False)
        return self._transform_products(out, slice(None), columns)

    def combine(self, weights: Any, out: np.ndarray | None = None) -> np.ndarray:
        """``Σ_j weights[j] K_j``, a matrix (m, m)."""
        weights = self._check_weights(weights)
        total = allocate(self.shape[:2]) if out is None else out
        for block in self._column_blocks():
            panel = self._sum_stored(weights * self._scale, np.arange(len(self)), block)
            total[:, block] = self._subtract_offsets(panel, weights, slice(None), block)
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
        blocks = gen_batches(len(self), _TILE_COLUMNS)
        return (np.arange(block.start, block.stop) for block in blocks)

    def _visit(
        self, rows: np.ndarray, columns: np.ndarray, kernels: list[int], work: Work
    ) -> None:
        """Call ``work(j, part, values)`` for every kernel j and every tile ``rows[part]``."""
        if not kernels:
            return
        chosen = SharedTable(safe_indexing(self._X, columns))
        position = np.full(len(self), -1)
        position[columns] = np.arange(len(columns))

        def visit_rows(part: slice) -> None:
            evaluate = SharedComparisons(safe_indexing(self._X, rows[part]), chosen)
            column = position[rows[part]]
            same = np.flatnonzero(column >= 0)
            for j in kernels:
                name, kernel = self.union.kernels_[j]
                with naming(f"kernel {name!r}"):
                    tile = evaluate(kernel)
                # A formula for two tables gives self-similarities up to rounding error only, and
                # without the noise that a kernel adds to single samples (WhiteKernel).
                tile[same, column[same]] = self._diagonal[j, rows[part][same]]
                work(j, part, tile)

        height = max(1, _TILE_ENTRIES // len(columns))
        in_threads(visit_rows, list(gen_batches(len(rows), height)))


@dataclass
class Panel:
    """Values of one kernel in some columns, valid once `filled`."""

    values: np.ndarray
    filled: bool = False


class PanelCache:
    """The first panels asked for, up to `max_bytes`; they take `n_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._panels: dict[bytes, dict[int, Panel]] = {}

    def panels(self, indices: np.ndarray, n_kernels: int, n_rows: int) -> dict[int, Panel]:
        """The panels to keep of these columns, by kernel; new ones are not `filled` yet."""
        key = indices.tobytes()
        if key not in self._panels:
            size = 8 * n_rows * len(indices)
            room = min(n_kernels, (self.max_bytes - self.n_bytes) // size)
            shape = (n_rows, len(indices))
            self._panels[key] = {j: Panel(np.empty(shape)) for j in range(room)}
            self.n_bytes += room * size
        return self._panels[key]
