"""Kernels of regions: every kernel once for each region, as strong there as samples belong to it.

    K_lj(r, c) = f_l(r) f_l(c) K_j(r, c)        for regions l and kernels j

with factors f_l ≥ 0 of the samples. Such a kernel is positive semi-definite if K_j is. None of
them is stored: only the kernels and one vector of factors per region are, and the weighted sum
``Σ_lj β_lj K_lj = Σ_l f_l f_lᵀ ∘ Σ_j β_lj K_j`` takes one pass over the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from .._memory import allocate
from ._transformed import Positions, Samples, TransformedKernels
from .matrices import chosen_kernels, positions
from .stack import KernelStack

# Entries of the sums of a block of rows, one sum per region: 16 MiB of float64, which stay in a
# third-level cache.
_BLOCK_ENTRIES = 2**21


class RegionalKernels(TransformedKernels):
    """The kernels `base` in every region, region by region: kernel j of region l is ``l·n + j``.

    Parameters
    ----------
    base : KernelStack or StreamedKernels
    row_factors, col_factors : ndarray of shape (n_regions, rows) and (n_regions, cols)
        f of the samples along the rows and the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.kernels.regional import RegionalKernels
    >>> stack = KernelStack.from_arrays({"one": np.ones((3, 3))})
    >>> factors = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> regional = RegionalKernels(stack, factors, factors)
    >>> regional.names
    ['one [0]', 'one [1]']
    >>> regional.combine([1.0, 2.0])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 2.]])
    """

    def __init__(self, base: Any, row_factors: np.ndarray, col_factors: np.ndarray) -> None:
        n_regions, n_kernels = len(row_factors), base.n_kernels
        self.base, self._row_factors, self._col_factors = base, row_factors, col_factors
        #: Region and kernel of `base` of every kernel here.
        self.regions = np.repeat(np.arange(n_regions), n_kernels)
        self.sources = np.tile(np.arange(n_kernels), n_regions)
        self.names = [f"{name} [{region}]" for region in range(n_regions) for name in base.names]
        # Of kernels that are positive semi-definite after centring only, products are not.
        self.guarantees = base.guarantees.of_rescaled()
        self._scale = np.ones(len(self.names))
        self._factor_errors = np.zeros(row_factors.shape)
        self._rows = Samples(self._diagonal(base.row_diag, row_factors))
        self._cols = Samples(self._diagonal(base.col_diag, col_factors))

    def _diagonal(self, diagonal: np.ndarray | None, factors: np.ndarray) -> np.ndarray | None:
        if diagonal is None:
            return None
        return factors[self.regions] ** 2 * diagonal[self.sources]

    def with_factor_errors(self, errors: np.ndarray) -> RegionalKernels:
        """The same kernels; factors of the rows, found again, differ by these shares of them."""
        return self._changed(_factor_errors=errors)

    def output_errors(self, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Errors of ``Σ_j weights[j] K_j @ columns`` by those of the factors of the rows."""
        squares = np.zeros((len(self), columns.shape[1]))
        if self._factor_errors.any():
            table = self._by_region(weights * self._scale)
            factors = zip(self._row_factors, self._col_factors, self._factor_errors, strict=True)
            for part, (own, others, errors) in zip(table, factors, strict=True):
                products = self.base.apply(others[:, None] * columns)
                outputs = np.tensordot(part, products, 1)
                squares += ((errors * own)[:, None] * outputs) ** 2
        return np.sqrt(squares)

    @property
    def n_regions(self) -> int:
        return len(self._row_factors)

    @property
    def resolution(self) -> float:
        return float(self.base.resolution)

    @property
    def row_shares(self) -> np.ndarray:
        """f² of the samples along the rows, (rows, n_regions)."""
        return self._row_factors.T**2

    @property
    def shape(self) -> tuple[int, int, int]:
        rows, cols, _ = self.base.shape
        return rows, cols, len(self.names)

    def _without_offsets(self) -> RegionalKernels:
        raise ValueError("Kernels of regions can be normalised by sample before centring only.")

    def _by_region(self, weights: np.ndarray) -> np.ndarray:
        """Weights of the kernels of `base` in every region, (n_regions, kernels of base)."""
        table = np.zeros((self.n_regions, self.base.n_kernels))
        table[self.regions, self.sources] = weights
        return table

    # -- sums ------------------------------------------------------------------------------

    def combine(self, weights: Any, out: np.ndarray | None = None) -> np.ndarray:
        """``Σ_j weights[j] K_j``, in one pass over the kernels of `base`."""
        weights = self._check_weights(weights)
        kept = np.zeros_like(weights)
        active = self.contributing(weights)
        kept[active] = weights[active]
        total = allocate(self.shape[:2]) if out is None else out
        table = self._by_region(kept * self._scale)
        for rows, sums in self._sums(table):
            block = total[rows]
            block[...] = 0.0
            for own, others, part in zip(self._row_factors, self._col_factors, sums, strict=True):
                # The product of factors first: it is exactly symmetric, and so is the result.
                part *= own[rows, None] * others
                block += part
            self._subtract_offsets(block, kept, rows, slice(None))
        return total

    def _sums(self, table: np.ndarray) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Weighted sums of the kernels of `base` in blocks of rows, one sum for each region."""
        n_rows, n_cols, n_kernels = self.base.shape
        if not isinstance(self.base, KernelStack):
            yield slice(0, n_rows), [self.base.combine(own) for own in table]
            return
        height = max(1, _BLOCK_ENTRIES // (n_cols * len(table)))
        every = np.arange(n_kernels)
        for rows in gen_batches(n_rows, height):
            sums = list(np.empty((len(table), rows.stop - rows.start, n_cols)))
            self.base.rows(rows, every).combine_all(table, sums)
            yield rows, sums

    def combine_all(self, weights: np.ndarray, outs: list[np.ndarray]) -> None:
        """Several weighted sums, row r of `weights` into ``outs[r]``."""
        for row, out in zip(weights, outs, strict=True):
            self.combine(row, out)

    def kernel(self, which: int | str) -> np.ndarray:
        """One kernel matrix (rows, cols), by name or position."""
        j = int(chosen_kernels(which, self.names)[0]) if isinstance(which, str) else which
        factors = (own[self.regions[j]] for own in (self._row_factors, self._col_factors))
        matrix = np.multiply.outer(*factors) * self.base.kernel(int(self.sources[j]))
        matrix *= self._scale[j]
        unit = np.eye(self.n_kernels)[j]
        return self._subtract_offsets(matrix, unit, slice(None), slice(None))

    # -- products --------------------------------------------------------------------------

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products ``K_j @ columns`` of every kernel, shape (n_kernels, rows, n_columns)."""
        columns = self._check_columns(columns)
        products = self.base.apply(self._spread(columns, slice(None)))
        return self._transform_products(self._gathered(products, out), slice(None), columns)

    def _spread(self, columns: np.ndarray, indices: Positions) -> np.ndarray:
        """``f_l ∘ columns`` of every region, side by side."""
        factors = self._col_factors[:, indices].T
        return np.reshape(factors[:, :, None] * columns[:, None], (len(columns), -1))

    def _gathered(self, products: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products of the kernels here from those of `base` with what :meth:`_spread` returns.

        Each column is contiguous, as in the products of a stack.
        """
        n_kernels, n_rows, _ = products.shape
        by_region = products.mT.reshape(n_kernels, self.n_regions, -1, n_rows)
        chosen = by_region[self.sources, self.regions]
        factors = self._row_factors[self.regions, None]
        return np.multiply(chosen, factors, out=chosen if out is None else out.mT).mT

    def apply_combined(self, weights: Any, columns: np.ndarray) -> np.ndarray:
        """``Σ_j weights[j] K_j @ columns`` without forming the sum of the kernels."""
        weights = self._check_weights(weights)
        columns = self._check_columns(columns)
        total = np.zeros((len(self), columns.shape[1]))
        table = self._by_region(weights * self._scale)
        for own, others, part in zip(self._row_factors, self._col_factors, table, strict=True):
            total += own[:, None] * self.base.apply_combined(part, others[:, None] * columns)
        if self._rows.offset is not None and self._cols.offset is not None:
            total -= np.outer(weights @ self._rows.offset, columns.sum(axis=0))
            total -= (weights @ self._cols.offset) @ columns
        return total

    # -- a few columns, and parts ----------------------------------------------------------

    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        products = self.base.apply_columns(indices, self._spread(coefficients, indices))
        return self._gathered(products)

    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        block, base = np.zeros((len(rows), len(cols))), self.base
        parts = zip(self._row_factors, self._col_factors, self._by_region(weights), strict=True)
        for own, others, part in parts:
            plain = base._sum_stored(part * base._scale, rows, cols)
            plain = base._subtract_offsets(plain, part, rows, cols)
            block += np.outer(own[rows], others[cols]) * plain
        return block

    def __getitem__(self, key: Any) -> RegionalKernels:
        """The kernels of some rows and columns, ``regional[np.ix_(rows, cols)]``."""
        keys = key if isinstance(key, tuple) else (key, slice(None))
        rows, cols = (positions(part, n) for part, n in zip(keys, self.shape[:2], strict=True))
        gram = self.gram and np.array_equal(rows, cols)
        return self._changed(
            base=self.base[np.ix_(rows, cols)],
            guarantees=self.guarantees.of_part(gram=gram),
            _row_factors=self._row_factors[:, rows],
            _factor_errors=self._factor_errors[:, rows],
            _col_factors=self._col_factors[:, cols],
            _rows=self._rows.take(rows),
            _cols=self._cols.take(cols),
        )

    def select(self, kernels: Any) -> RegionalKernels:
        """Some of the kernels, given by names, positions, a slice or a mask."""
        chosen = chosen_kernels(kernels, self.names)
        return self._changed(
            names=[self.names[j] for j in chosen],
            regions=self.regions[chosen],
            sources=self.sources[chosen],
            _scale=self._scale[chosen],
            _rows=self._rows.take(chosen, axis=0),
            _cols=self._cols.take(chosen, axis=0),
        )
