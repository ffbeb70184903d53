"""Kernels whose values are stored: sums and products, each in one pass over the data.

Values in double precision go to BLAS as they are, those in single precision strip by strip
(:mod:`manykernels.kernels._strips`). Either way results are the same to the last digit whether
values are in memory or mapped from a file, as joblib maps them for its workers. Equation (*) is
that of :mod:`manykernels.kernels._transformed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from .._blas import add_scaled, matmul, weighted_sums
from .._files import file_identity
from .._memory import storage
from . import _strips
from ._transformed import TransformedKernels

# Entries of a block of rows of one kernel: 2 MiB of float64, so that a block of the sum stays in
# a second-level cache while the kernels are added to it.
_BLOCK_ENTRIES = 2**18
# Entries of a block of rows of all kernels, when several sums are computed by one matrix product:
# 16 MiB of float64, which stay in a third-level cache and are enough for a fast product.
_SHARED_ENTRIES = 2**21


class StoredArray:
    """A read-only view of an array, which may be mapped from a file."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.view()
        self.array.flags.writeable = False
        self._file = file_identity(self.array)

    def __reduce__(self) -> tuple[Any, ...]:
        # joblib sends a mapped array to other processes as the name of its file. If that name
        # belongs to another file by now, the values are sent instead.
        replaced = self._file != file_identity(self.array)
        return StoredArray, (np.array(self.array) if replaced else self.array,)


class StoredKernels(TransformedKernels):
    """Kernels with stored values; base of ``KernelStack``."""

    _stored: StoredArray

    @property
    def data(self) -> np.ndarray:
        """Stored values (n_kernels, rows, cols), read-only and without transforms."""
        return self._stored.array

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        n_kernels, rows, cols = self.data.shape
        return rows, cols, n_kernels

    @property
    def resolution(self) -> float:
        return float(np.finfo(self.dtype).eps)

    @property
    def _in_strips(self) -> bool:
        """Whether sums and products are computed strip by strip."""
        return self.dtype != np.float64

    @property
    def _mirrored(self) -> bool:
        """Whether kernels are known to be exactly symmetric, all but for their offsets."""
        factors = self._rows.factor, self._cols.factor
        same = factors[0] is factors[1] or np.array_equal(*factors)  # type: ignore[arg-type]
        return self.gram and self.guarantees.checked and same

    def _with_data(self, data: np.ndarray, **changes: Any) -> Self:
        """A copy with other values and some other attributes replaced; nothing is checked."""
        return self._changed(_stored=StoredArray(data), **changes)

    def _row_blocks(self) -> Iterator[slice]:
        n_rows, n_cols, _ = self.shape
        height = max(1, _BLOCK_ENTRIES // max(1, n_cols))
        return (slice(r, min(r + height, n_rows)) for r in range(0, n_rows, height))

    def _factored(self, j: int, rows: slice, cols: slice = slice(None)) -> np.ndarray:
        """A part of ``f_j(r) f_j(c) data[j, r, c]``: (*) without scale and offsets."""
        block = self.data[j, rows, cols]
        if self._rows.factor is None or self._cols.factor is None:
            return block
        # The product of factors first: it is exactly symmetric, and so is the result.
        product = self._rows.factor[j, rows, None] * self._cols.factor[j, cols]
        product *= block
        return product

    def _values(self, j: int, rows: slice) -> np.ndarray:
        """Some rows of kernel j, all transforms applied."""
        block = self._factored(j, rows) * self._scale[j]
        if self._rows.offset is not None and self._cols.offset is not None:
            block -= self._rows.offset[j, rows, None] + self._cols.offset[j]
        return block

    @property
    def _plain_dtype(self) -> np.dtype:
        """The type of the transformed values: float64, unless there is no transform."""
        vectors = (self._rows.factor, self._rows.offset, self._cols.factor, self._cols.offset)
        plain = all(vector is None for vector in vectors) and np.all(self._scale == 1.0)
        return self.dtype if plain else np.dtype(np.float64)

    def _blocks(self) -> Iterator[tuple[int, slice, np.ndarray]]:
        """All kernels in blocks ``(kernel, rows, values)``, transforms applied."""
        dtype = self._plain_dtype
        for j in range(self.n_kernels):
            for rows in self._row_blocks():
                yield j, rows, self._values(j, rows).astype(dtype, copy=False)

    def _without_offsets(self) -> Self:
        return self.materialized()

    def materialized(self, memmap: str | Path | None = None) -> Self:
        """Copy with all transforms applied to the data, in memory or in the file `memmap`.

        An older file is replaced once the new one is complete. Stacks that are mapped from the
        older one keep their values.
        """
        with storage(self.data.shape, memmap, self._plain_dtype) as space:
            for j, rows, block in self._blocks():
                space.data[j, rows] = block
        return self._with_data(
            space.data,
            _scale=np.ones(self.n_kernels),
            _rows=self._rows.plain(),
            _cols=self._cols.plain(),
        )

    def combine(self, weights: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Weighted sum of the kernels, ``Σ_j weights[j] K_j``; zero weights cost nothing.

        Parameters
        ----------
        weights : array-like of shape (n_kernels,)
        out : C-contiguous ndarray of shape (rows, cols), optional
            Where to write the sum.
        """
        weights = self._check_weights(weights)
        if out is None:
            out = np.empty(self.data.shape[1:])
        elif (
            not isinstance(out, np.ndarray)
            or (out.dtype, out.shape) != (np.float64, self.data.shape[1:])
            or not out.flags.c_contiguous
        ):
            raise ValueError(
                f"out must be a C-contiguous float64 array of shape {self.data.shape[1:]}."
            )
        active = self.contributing(weights).tolist()
        # The offsets of kernels that are left out are left out too.
        kept = np.zeros_like(weights)
        kept[active] = weights[active]
        if self._in_strips:
            self._sum_strips(kept[None], [out])
            return out
        offsets = None
        if self._rows.offset is not None and self._cols.offset is not None:
            row_offset = matmul(self._rows.offset.T, kept)
            offsets = -row_offset[:, None], -matmul(self._cols.offset.T, kept)
        scaled = kept * self._scale
        for rows in self._row_blocks():
            block = out[rows]
            rest = active
            if offsets is not None:
                np.add(offsets[0][rows], offsets[1], out=block)
            elif active:
                np.multiply(self._factored(active[0], rows), scaled[active[0]], out=block)
                rest = active[1:]
            else:
                block.fill(0.0)
            for j in rest:
                add_scaled(block, self._factored(j, rows), scaled[j])
        return out

    def combine_all(self, weights: np.ndarray, outs: list[np.ndarray]) -> None:
        """Several weighted sums in one pass over the data, row r of `weights` into ``outs[r]``."""
        if self._in_strips:
            self._sum_strips(weights, outs)
            return
        if self._rows.factor is not None or len(weights) == 1:
            for row, out in zip(weights, outs, strict=True):
                self.combine(row, out)
            return
        n_kernels, n_cols = self.n_kernels, self.shape[1]
        height = max(1, _SHARED_ENTRIES // (n_kernels * n_cols))
        for start in range(0, len(self), height):
            rows = slice(start, min(start + height, len(self)))
            block = self.data[:, rows].reshape(n_kernels, -1)
            sums = weighted_sums(weights * self._scale, block)
            for row, total, out in zip(weights, sums, outs, strict=True):
                out[rows] = total.reshape(-1, n_cols)
                self._subtract_offsets(out[rows], row, rows, slice(None))

    def _sum_strips(self, weights: np.ndarray, outs: list[np.ndarray]) -> None:
        scaled, mirrored = weights * self._scale, self._mirrored
        _strips.weighted_sums(self._factored, scaled, outs, mirrored=mirrored)
        for row, out in zip(weights, outs, strict=True):
            for rows in self._row_blocks():
                self._subtract_offsets(out[rows], row, rows, slice(None))

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products ``K_j @ columns`` of every kernel, shape (n_kernels, rows, n_columns).

        Parameters
        ----------
        columns : array-like of shape (cols, n_columns)
        out : ndarray, optional
            An array that an earlier call with as many columns returned.
        """
        columns = self._check_columns(columns)
        n_kernels, n_rows, n_columns = self.n_kernels, len(self), columns.shape[1]
        if self._in_strips:
            products = np.empty((n_kernels, n_columns, n_rows)) if out is None else out.mT
            multiply = partial(self._factored_product, columns=columns, mirrored=self._mirrored)
            _strips.products(multiply, self.shape[:2], products.mT)
        elif n_columns == 1 and self._cols.factor is None:
            # One column times all kernels: a single product over contiguous memory.
            flat = matmul(self.data.reshape(-1, self.shape[1]), columns)
            products = flat.reshape(n_kernels, 1, n_rows)
        else:
            # Each column of a product is contiguous, as LAPACK wants it.
            products = np.empty((n_kernels, n_columns, n_rows)) if out is None else out.mT
            for j in range(n_kernels):
                products[j] = self._factored_product(j, columns).T
        if np.any(self._scale != 1.0):
            products *= self._scale[:, None, None]
        if self._rows.offset is not None and self._cols.offset is not None:
            products -= self._rows.offset[:, None] * columns.sum(axis=0)[:, None]
            products -= matmul(self._cols.offset, columns)[:, :, None]
        return products.mT

    def apply_combined(self, weights: Any, columns: np.ndarray) -> np.ndarray:
        """``Σ_j weights[j] K_j @ columns`` without forming the sum of the kernels."""
        weights = self._check_weights(weights)
        columns = self._check_columns(columns)
        total = np.zeros((len(self), columns.shape[1]))
        for j in np.flatnonzero(weights).tolist():
            total += weights[j] * self._scale[j] * self._factored_product(j, columns)
        if self._rows.offset is not None and self._cols.offset is not None:
            total -= np.outer(weights @ self._rows.offset, columns.sum(axis=0))
            total -= (weights @ self._cols.offset) @ columns
        return total

    def apply_each(self, columns: np.ndarray) -> np.ndarray:
        """``Σ_j K_j @ columns[j]``: every kernel with columns of its own, (rows, n_columns).

        Parameters
        ----------
        columns : ndarray of shape (n_kernels, cols, n_columns)
        """
        total = np.zeros((len(self), columns.shape[2]))
        for j in np.flatnonzero(columns.any(axis=(1, 2))).tolist():
            total += self._scale[j] * self._factored_product(j, columns[j])
        if self._rows.offset is not None and self._cols.offset is not None:
            total -= matmul(self._rows.offset.T, columns.sum(axis=1))
            total -= np.einsum("jc,jck->k", self._cols.offset, columns)
        return total

    def _factored_product(self, j: int, columns: np.ndarray, mirrored: bool = False) -> np.ndarray:
        """``f_j · (data[j] @ (f_j · columns))``."""
        if self._cols.factor is not None:
            columns = columns * self._cols.factor[j, :, None]
        if self._in_strips:
            result = _strips.product(self.data[j], columns, mirrored=mirrored)
        else:
            result = matmul(self.data[j], columns)
        if self._rows.factor is not None:
            result *= self._rows.factor[j, :, None]
        return result

    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        products = np.empty((self.n_kernels, len(self), coefficients.shape[1]))
        for j in range(self.n_kernels):
            # The columns of a Gram matrix are its rows, which are contiguous.
            panel = self.data[j, indices].T if self.gram else self.data[j][:, indices]
            factor = 1.0 if self._cols.factor is None else self._cols.factor[j, indices, None]
            products[j] = panel @ (factor * coefficients)
        return products

    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        block = np.zeros((len(rows), len(cols)))
        for j in np.flatnonzero(weights).tolist():
            part = weights[j] * self.data[j][np.ix_(rows, cols)]
            if self._rows.factor is not None and self._cols.factor is not None:
                part *= self._rows.factor[j, rows, None] * self._cols.factor[j, cols]
            block += part
        return block

    def alignment(self, *, centered: bool = False) -> np.ndarray:
        """Cosines ``⟨K_i, K_j⟩ / (‖K_i‖ ‖K_j‖)`` of every pair, (n_kernels, n_kernels).

        With ``centered=True`` the kernels are centred in feature space first, as a discriminant
        centres them (Yan 2012, Fig. 5). The alignment with a zero kernel is zero.
        """
        if centered:
            from .transforms import preparation

            # Scaling changes no cosine; "trace" makes a constant kernel exactly zero.
            return preparation("trace").fit_transform(cast(Any, self)).alignment()
        inner = self.inner_products()
        norms = np.sqrt(np.diag(inner))
        norms[norms == 0] = 1.0
        return inner / np.outer(norms, norms)

    def inner_products(self, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """``⟨K_i, K_j⟩`` of every pair, (n_kernels, n_kernels).

        With weights w of the samples of a Gram stack, ``Σ_rc w_r w_c K_i(r, c) K_j(r, c)``, as if
        a sample of weight two were there twice.
        """
        inner = np.zeros((self.n_kernels, self.n_kernels))
        roots = None if sample_weight is None else np.sqrt(sample_weight)
        for rows in self._row_blocks():
            values = [self._values(j, rows) for j in range(self.n_kernels)]
            if roots is not None:
                values = [roots[rows, None] * part * roots for part in values]
            flat = np.stack([part.ravel() for part in values])
            inner += flat @ flat.T
        return inner

    def inner_products_with(self, matrix: np.ndarray) -> np.ndarray:
        """``⟨K_j, matrix⟩`` of every kernel, (n_kernels,)."""
        inner = np.zeros(self.n_kernels)
        for rows in self._row_blocks():
            for j in range(self.n_kernels):
                inner[j] += np.vdot(self._values(j, rows), matrix[rows])
        return inner
