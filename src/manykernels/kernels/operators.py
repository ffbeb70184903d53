"""Weighted sums and products of many kernel matrices.

Matrices in single precision are processed in strips, by several threads. A strip is a block of
rows that fits into the cache of a core. It is converted there, so that sums are accumulated in
double precision without a copy of the matrix. A strip of a symmetric matrix begins at the
diagonal,

    K = [[S, B], [Bᵀ, K']]  →  Kx = (S x₁ + B x₂,  Bᵀ x₁ + K' x₂),   [S, B] the first strip,

and K' is treated in the same way. So about half of the values of a stack are never read: for 50
kernels of 10 000 rows, 18.6 GiB in single precision, a pass reads 9.3 GiB from disk, or from the
page cache if they fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from ..utils.files import file_identity
from ..utils.numerics import (
    ACCUMULATED,
    EPS,
    add_scaled,
    in_threads,
    matmul,
    storage,
    weighted_sums,
)
from ..utils.storable import storable

# Entries of a strip: 512 KiB of float64, so that a strip and its part of a sum stay in the
# second-level cache of a core. Measured on 30 kernels of 4000 rows, CPU seconds of a product with
# nine columns: 0.64 at 2¹⁴, 0.48 at 2¹⁵, 0.40 at 2¹⁶, 0.62 from 2¹⁷ on.
_STRIP_ENTRIES = 2**16
#: Rows and columns of a tile: 512 KiB of float64, two of which fit into a second-level cache.
TILE_ROWS = 256

# Up to so many rows, products of kernels with a few columns take less time than calls of BLAS from
# Python, one for each kernel (measured: a fifth to a half of it; at 320 rows half as much again).
_FEW_ROWS = 128
# Fewer tasks than this take less time than starting threads.
_FEWEST_FOR_THREADS = 16

#: Rows and columns of a block of a matrix.
Place = tuple[slice, slice]


def strips(n_rows: int, n_cols: int, *, mirrored: bool) -> list[Place]:
    """Return the places of strips; strips of a `mirrored` matrix begin at the diagonal."""
    places, start = [], 0
    while start < n_rows:
        left = start if mirrored else 0
        stop = min(start + max(1, _STRIP_ENTRIES // max(1, n_cols - left)), n_rows)
        places.append((slice(start, stop), slice(left, n_cols)))
        start = stop
    return places


def strip_sums(
    values: Callable[[int, slice, slice], np.ndarray],
    weights: np.ndarray,
    outs: Sequence[np.ndarray],
    *,
    mirrored: bool,
) -> None:
    """Write ``Σ_j weights[r, j] K_j`` into ``outs[r]`` for every row r of weights, in one pass.

    ``values(j, rows, cols)`` is a block of K_j, in single or double precision.
    """
    used = np.flatnonzero(weights.any(axis=0)).tolist()

    def add(place: Place) -> None:
        totals = [out[place] for out in outs]
        term = np.empty(totals[0].shape)
        for total in totals:
            total.fill(0.0)
        for j in used:
            strip = values(j, *place)
            for total, weight in zip(totals, weights[:, j], strict=True):
                # A weight is a float64 scalar, so the product has double precision.
                np.multiply(strip, weight, out=term)
                total += term

    in_threads(add, strips(*outs[0].shape, mirrored=mirrored), _FEWEST_FOR_THREADS)
    if mirrored:
        for out in outs:
            mirror(out)


def strip_product(matrix: np.ndarray, columns: np.ndarray, *, mirrored: bool) -> np.ndarray:
    """Return ``matrix @ columns`` in double precision, (rows, n_columns)."""
    result = np.zeros((len(matrix), columns.shape[1]))
    for rows, cols in strips(*matrix.shape, mirrored=mirrored):
        strip = np.asarray(matrix[rows, cols], dtype=np.float64)
        result[rows] += strip @ columns[cols]
        if mirrored:
            result[rows.stop :] += strip[:, len(strip) :].T @ columns[rows]
    return result


def mirror(matrix: np.ndarray) -> None:
    """Copy the upper triangle of a square matrix to the lower one."""
    batches = list(gen_batches(len(matrix), TILE_ROWS))
    tiles = list(combinations_with_replacement(batches, 2))
    in_threads(lambda tile: mirror_tile(matrix, *tile), tiles, _FEWEST_FOR_THREADS)


def mirror_tile(matrix: np.ndarray, rows: slice, columns: slice) -> None:
    """Copy a tile on or above the diagonal to the lower triangle."""
    tile = matrix[rows, columns]
    if rows == columns:
        tile[...] = np.triu(tile) + np.triu(tile, 1).T
    else:
        matrix[columns, rows] = tile.T


# -- Kernels with transforms stored as vectors ----------------------------------------------------
#
#     K_j(r, c) = scale_j · f_j(r) · f_j(c) · data[j, r, c] − o_j(r) − o_j(c)              (*)
#
# ``f`` are sample factors (spherical normalisation), ``o`` offsets (centring), ``scale`` one
# number per kernel (trace and multiplicative normalisation). Whether ``data`` is stored
# (:class:`~manykernels.KernelStack`) or computed on demand
# (:class:`~manykernels.kernels.on_demand.StreamedKernels`), a transform changes the vectors only.


Positions = np.ndarray | slice


@storable
@dataclass(frozen=True)
class Guarantees:
    """Known properties of kernel matrices."""

    #: Rows and columns are the same samples in the same order.
    gram: bool = False
    #: The kernels have passed :func:`~manykernels.kernels.check_stack`.
    checked: bool = False
    #: The training samples have mean zero in feature space.
    centered: bool = False
    #: Gram matrices are positive semi-definite (PSD).
    psd: bool = False
    #: Gram matrices are PSD once they are centred, if not before.
    psd_if_centered: bool = False

    def of_part(self, *, gram: bool) -> Guarantees:
        """Return the properties of a subset of rows and columns, which has other means."""
        return replace(self, gram=gram, centered=False)

    def of_centered(self) -> Guarantees:
        """Return the properties of the kernels after centring."""
        return replace(self, centered=True, psd=self.psd_if_centered)

    def of_rescaled(self) -> Guarantees:
        """Return the properties of ``f(r) f(c) K(r, c)``, which is PSD if K itself is."""
        return replace(self, centered=False, psd_if_centered=self.psd)


@storable
@dataclass(frozen=True)
class Samples:
    """Vectors of the samples along the rows, or along the columns, of kernels.

    All but `names` have the shape (n_kernels, n_samples); each may be None.
    """

    #: Self-similarities ``K_j(x, x)`` with all transforms applied.
    diagonal: np.ndarray | None = None
    #: f of (*).
    factor: np.ndarray | None = None
    #: o of (*).
    offset: np.ndarray | None = None
    names: np.ndarray | None = None

    def take(self, positions: Positions, axis: int = 1) -> Samples:
        """Return the vectors of some samples or, with ``axis=0``, of some kernels."""
        names = take(self.names, positions, 0) if axis == 1 else self.names
        vectors = (self.diagonal, self.factor, self.offset)
        diagonal, factor, offset = (take(vector, positions, axis) for vector in vectors)
        return Samples(diagonal, factor, offset, names)

    def scaled(self, scale: np.ndarray) -> Samples:
        """Return the vectors of kernels ``scale[j] K_j``."""
        diagonal, offset = (_times(v, scale[:, None]) for v in (self.diagonal, self.offset))
        return replace(self, diagonal=diagonal, offset=offset)

    def rescaled(self, factor: np.ndarray) -> Samples:
        """Return the vectors of ``f_j(r) f_j(c) K_j(r, c)``; K_j must have no offsets."""
        product = factor if self.factor is None else self.factor * factor
        return replace(self, factor=product, diagonal=_times(self.diagonal, factor**2))

    def shifted(self, offset: np.ndarray) -> Samples:
        """Return the vectors of kernels ``K_j(r, c) − o_j(r) − o_j(c)``."""
        total = offset if self.offset is None else self.offset + offset
        diagonal = None if self.diagonal is None else self.diagonal - 2 * offset
        return replace(self, offset=total, diagonal=diagonal)

    def plain(self) -> Samples:
        """Return the vectors of the kernels once all transforms are applied to their values."""
        return replace(self, factor=None, offset=None)


class TransformedKernels(ABC):
    """Base class of kernels with the transforms of (*)."""

    #: Whether kernels are computed on demand, see :mod:`manykernels.kernels.on_demand`.
    on_demand = False

    names: list[str]
    guarantees: Guarantees
    _scale: np.ndarray
    _rows: Samples
    _cols: Samples

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """``(rows, cols, n_kernels)``, the order in which scikit-learn slices samples."""

    @property
    def n_kernels(self) -> int:
        return self.shape[2]

    @property
    def n_regions(self) -> int:
        """Number of regions with separate kernel weights."""
        return 1

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def gram(self) -> bool:
        """Whether rows and columns are the same samples in the same order."""
        return self.guarantees.gram

    @property
    def centered(self) -> bool:
        """Whether the training samples have mean zero in feature space."""
        return self.guarantees.centered

    @property
    def resolution(self) -> float:
        """Machine epsilon of the stored values."""
        return EPS

    @property
    def row_diag(self) -> np.ndarray | None:
        """Self-similarities of the row samples, (n_kernels, rows)."""
        return self._rows.diagonal

    @property
    def col_diag(self) -> np.ndarray | None:
        """Self-similarities of the column samples, (n_kernels, cols)."""
        return self._cols.diagonal

    # -- transforms ------------------------------------------------------------------------

    def _changed(self, **changes: Any) -> Self:
        """Return a copy that shares the values, with some attributes replaced."""
        new = copy(self)
        vars(new).update(changes)
        return new

    @abstractmethod
    def _without_offsets(self) -> Self:
        """Return the kernels with the offsets applied to the values."""

    def scaled(self, scale: np.ndarray) -> Self:
        """Return the kernels ``scale[j] K_j``."""
        return self._changed(
            _scale=self._scale * scale,
            _rows=self._rows.scaled(scale),
            _cols=self._cols.scaled(scale),
        )

    def rescaled_samples(self, row_factor: np.ndarray, col_factor: np.ndarray) -> Self:
        """Return ``f_j(r) f_j(c) K_j(r, c)`` for factors (n_kernels, rows) and (…, cols)."""
        base = self if self._rows.offset is None else self._without_offsets()
        return base._changed(
            _rows=base._rows.rescaled(row_factor),
            _cols=base._cols.rescaled(col_factor),
            guarantees=base.guarantees.of_rescaled(),
        )

    def shifted(self, row_offset: np.ndarray, col_offset: np.ndarray) -> Self:
        """Return the centred kernels ``K_j(r, c) − o_j(r) − o_j(c)``."""
        return self._changed(
            _rows=self._rows.shifted(row_offset),
            _cols=self._cols.shifted(col_offset),
            guarantees=self.guarantees.of_centered(),
        )

    # -- bounds ----------------------------------------------------------------------------

    def contributing(self, weights: np.ndarray) -> np.ndarray:
        """Return the positions of kernels whose term exceeds the rounding error of the sum.

        The largest entry of a PSD matrix, in absolute value, is on its diagonal.
        """
        if not (self.gram and self.guarantees.psd) or self.row_diag is None:
            return np.flatnonzero(weights * self._scale)
        sizes = np.abs(weights) * np.abs(self.row_diag).max(axis=1, initial=0.0)
        # Times 1e-3, so that leaving out even a thousand kernels is within rounding error.
        return np.flatnonzero(sizes > 1e-3 * EPS * sizes.sum())

    def without_variance(self) -> np.ndarray:
        """Return the positions of kernels that are constant, and zero after centring.

        Then the squared distances in feature space from the first row,
        ``K_11 + K_ii − 2 K_1i``, are zero up to rounding error.
        """
        if not self.guarantees.psd_if_centered or self.row_diag is None:
            return np.empty(0, dtype=np.intp)
        # The first row that has the kernel, since some samples may lack it.
        starts = np.argmin(np.isnan(self.row_diag), axis=1)
        constant = np.zeros(self.n_kernels, dtype=bool)
        for start in np.unique(starts):
            kernels = starts == start
            first = self.apply_columns(np.array([start]), np.ones((1, 1)))[kernels, :, 0]
            squares = self.row_diag[kernels]
            distances = squares[:, start, None] + squares - 2.0 * first
            size = np.nanmax(np.abs(squares), axis=1, keepdims=True, initial=0.0) + np.abs(first)
            rounding = max(ACCUMULATED, self.resolution) * size
            constant[kernels] = ~(np.abs(distances) > rounding).any(axis=1)
        return np.flatnonzero(constant)

    def form_errors(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Estimate the rounding errors of ``tr(leftᵀ K_j right)``, (n_kernels,).

        The terms have the size ``√(s_r s_c)``, where s is the diagonal before centring,
        ``s_r = |K_j(r, r)| + 2|o_j(r)|``. Each of the m additions along a row rounds the partial
        sum, which grows like a random walk, by a relative error ``u = 2⁻⁵³``. If rounding errors
        are independent, the standard error of the result is about
        ``u ‖√s ∘ left‖₁ ‖√s ∘ right‖₂``. Twice that is returned. Sums are computed in double
        precision for all storage types; rounding of the stored values is not included.
        """
        sizes = self._sizes()
        roots = np.sqrt(sizes)
        first = roots @ np.abs(left)
        second = np.sqrt(sizes @ right**2)
        errors: np.ndarray = EPS * np.sum(first * second, axis=1)
        return errors

    def _sizes(self) -> np.ndarray:
        """Return the diagonals before centring, from above, (n_kernels, rows)."""
        assert self.row_diag is not None
        if self._rows.offset is None:
            return np.abs(self.row_diag)
        sizes: np.ndarray = np.abs(self.row_diag) + 2.0 * np.abs(self._rows.offset)
        return sizes

    # -- a few columns of Gram matrices ----------------------------------------------------

    def apply_columns(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return ``K_j[:, indices] @ coefficients``, (n_kernels, rows, n_columns)."""
        products = self._apply_stored(indices, coefficients)
        return self._transform_products(products, indices, coefficients)

    def combine_block(self, weights: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j[indices, indices]``."""
        block = self._sum_stored(weights * self._scale, indices, indices)
        return self._subtract_offsets(block, weights, indices, indices)

    @abstractmethod
    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the products ``K_j @ columns``, shape (n_kernels, rows, n_columns)."""

    def apply_combined(self, weights: ArrayLike, columns: np.ndarray) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j @ columns`` without forming the sum of the kernels."""
        products: np.ndarray = np.tensordot(self._check_weights(weights), self.apply(columns), 1)
        return products

    @abstractmethod
    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return ``data[j][:, indices] @ (f_j(indices) · coefficients)`` for every kernel."""

    @abstractmethod
    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return the weighted sum of ``f_j(r) f_j(c) data[j, r, c]`` in some rows and columns."""

    def _transform_products(
        self, products: np.ndarray, columns: Positions, coefficients: np.ndarray
    ) -> np.ndarray:
        """Turn products with ``f_j(c) data[j, r, c]`` into products with (*), in place."""
        if self._rows.factor is not None:
            products *= self._rows.factor[:, :, None]
        products *= self._scale[:, None, None]
        if self._rows.offset is not None and self._cols.offset is not None:
            products -= self._rows.offset[:, :, None] * coefficients.sum(axis=0)
            products -= (self._cols.offset[:, columns] @ coefficients)[:, None]
        return products

    def _subtract_offsets(
        self, block: np.ndarray, weights: np.ndarray, rows: Positions, columns: Positions
    ) -> np.ndarray:
        """Subtract the offsets of (*) from a weighted sum of kernels, in place."""
        if self._rows.offset is not None and self._cols.offset is not None:
            block -= (weights @ self._rows.offset[:, rows])[:, None]
            block -= weights @ self._cols.offset[:, columns]
        return block

    # -- arguments -------------------------------------------------------------------------

    def _check_weights(self, weights: ArrayLike) -> np.ndarray:
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (self.n_kernels,):
            raise ValueError(
                f"One weight per kernel is needed: {self.n_kernels} kernels, "
                f"weights of shape {weights.shape}."
            )
        if not np.isfinite(weights).all():
            j = int(np.argmin(np.isfinite(weights)))
            raise ValueError(
                f"Weights must be finite, but that of kernel {self.names[j]!r} is {weights[j]}."
            )
        return weights

    def _check_columns(self, columns: ArrayLike) -> np.ndarray:
        array = np.asarray(columns)
        if array.ndim != 2 or len(array) != self.shape[1] or array.dtype.kind not in "biuf":
            raise ValueError(
                "Kernels are multiplied with a table of numbers that has one row per column of "
                f"the kernels, {self.shape[1]}; got {array.dtype} of shape {array.shape}."
            )
        return array.astype(np.float64, copy=False)


def take(array: np.ndarray | None, positions: Positions, axis: int) -> np.ndarray | None:
    """Take entries of an array along an axis: a view for a slice, else a C-ordered copy."""
    if array is None:
        return None
    if isinstance(positions, slice):
        return array[(slice(None),) * axis + (positions,)]
    return np.take(array, positions, axis=axis)


def _times(array: np.ndarray | None, factor: np.ndarray) -> np.ndarray | None:
    return None if array is None else array * factor


# -- Stored kernels: sums and products in one pass over the data ----------------------------------
#
# Values in double precision are passed to BLAS, values in single precision are processed in
# strips. In both cases results are the same to the last digit whether values are in memory or
# mapped from a file, as joblib maps them for its workers.


# Entries of a block of rows of one kernel: 2 MiB of float64, so that a block of the sum stays in
# a second-level cache while the kernels are added to it.
_BLOCK_ENTRIES = 2**18
# Entries of a block of rows of all kernels, if several sums are computed by one matrix product:
# 16 MiB of float64, which stay in a third-level cache and are enough for a fast product.
_SHARED_ENTRIES = 2**21
# Number of columns from which on kernels are added up, block by block, before they are multiplied.
# Measured on 18 kernels between 400 and 1600 samples: one column takes twice as long as without
# the sum, four two thirds of it, nine half.
_FEWEST_TO_SUM = 4
# Largest offset, relative to the mean diagonal, that may be left out: it costs one digit.
_MOST_OFFSET = 10.0


class StoredArray:
    """Read-only view of an array, which may be mapped from a file."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.view()
        self.array.flags.writeable = False
        self._file = file_identity(self.array)

    def __reduce__(self) -> tuple[Any, ...]:
        # joblib sends a mapped array to other processes by the name of its file. If another file
        # has replaced it, the values are sent instead.
        replaced = self._file != file_identity(self.array)
        return StoredArray, (np.array(self.array) if replaced else self.array,)


class StoredKernels(TransformedKernels):
    """Kernels with stored values; base class of ``KernelStack``."""

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
        """Whether the kernels without their offsets are known to be exactly symmetric."""
        factors = self._rows.factor, self._cols.factor
        same = factors[0] is factors[1] or np.array_equal(*factors)  # type: ignore[arg-type]
        return self.gram and self.guarantees.checked and same

    def _with_data(self, data: np.ndarray, **changes: Any) -> Self:
        """Return a copy with other values and attributes, without checks."""
        return self._changed(_stored=StoredArray(data), **changes)

    def _row_blocks(self) -> Iterator[slice]:
        n_rows, n_cols, _ = self.shape
        height = max(1, _BLOCK_ENTRIES // max(1, n_cols))
        return (slice(r, min(r + height, n_rows)) for r in range(0, n_rows, height))

    def _factored(self, j: int, rows: slice, cols: slice = slice(None)) -> np.ndarray:
        """Return a block of ``f_j(r) f_j(c) data[j, r, c]``: (*) without scale and offsets."""
        block = self.data[j, rows, cols]
        if self._rows.factor is None or self._cols.factor is None:
            return block
        # The product of the factors first: it is exactly symmetric, and so is the result.
        product = self._rows.factor[j, rows, None] * self._cols.factor[j, cols]
        product *= block
        return product

    def _values(self, j: int, rows: slice) -> np.ndarray:
        """Return some rows of kernel j with all transforms applied."""
        block = self._factored(j, rows) * self._scale[j]
        if self._rows.offset is not None and self._cols.offset is not None:
            block -= self._rows.offset[j, rows, None] + self._cols.offset[j]
        return block

    @property
    def _plain_dtype(self) -> np.dtype:
        """Type of the transformed values: float64, unless there is no transform."""
        vectors = (self._rows.factor, self._rows.offset, self._cols.factor, self._cols.offset)
        plain = all(vector is None for vector in vectors) and np.all(self._scale == 1.0)
        return self.dtype if plain else np.dtype(np.float64)

    def _blocks(self) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Yield all kernels in blocks ``(kernel, rows, values)`` with transforms applied."""
        dtype = self._plain_dtype
        for j in range(self.n_kernels):
            for rows in self._row_blocks():
                yield j, rows, self._values(j, rows).astype(dtype, copy=False)

    def _without_offsets(self) -> Self:
        return self.materialized()

    def materialized(self, memmap: str | Path | None = None) -> Self:
        """Return a copy with all transforms applied, in memory or in the file `memmap`.

        An existing file is replaced once the new one is complete. Stacks that are mapped from the
        replaced file keep their values.
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

    def combine(self, weights: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted sum ``Σ_j weights[j] K_j``; kernels of weight zero are skipped.

        Parameters
        ----------
        weights : array-like of shape (n_kernels,)
        out : C-contiguous ndarray of shape (rows, cols), optional
            Array into which the sum is written.
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
        # Skipped kernels must not contribute their offsets either.
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

    def stored_sum(self, weights: np.ndarray) -> np.ndarray | None:
        """Return the stored matrix that is the weighted sum plus offsets; None if there is none.

        It is no copy, and must not be changed. Offsets ``o_r + o_c``, as of centring, change no
        ``Kv`` with ``Σv = 0`` but by a constant; large ones would take digits from it.
        """
        (active, *others) = self.contributing(weights).tolist() or [0]
        scaled = float(weights[active] * self._scale[active])
        if others or scaled != 1.0 or self._in_strips or self._rows.factor is not None:
            return None
        offsets, diagonal = self._rows.offset, self.row_diag
        if offsets is not None and diagonal is not None:
            offset, size = offsets[active], float(diagonal[active].mean())
            # The diagonal of a kernel that is PSD only if centred may be zero or negative.
            if not (offset.mean() >= 0.0 and np.abs(offset).max() <= _MOST_OFFSET * size):
                return None
        matrix: np.ndarray = self.data[active].view()
        with suppress(ValueError):  # mapped from a file that is not to be changed
            matrix.flags.writeable = True  # the type that loops are compiled for
        return matrix if matrix.flags.writeable and matrix.flags.c_contiguous else None

    def combine_all(self, weights: np.ndarray, outs: list[np.ndarray]) -> None:
        """Write the weighted sum of row r of `weights` into ``outs[r]``, in one pass."""
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
        strip_sums(self._factored, scaled, outs, mirrored=mirrored)
        for row, out in zip(weights, outs, strict=True):
            for rows in self._row_blocks():
                self._subtract_offsets(out[rows], row, rows, slice(None))

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the products ``K_j @ columns``, shape (n_kernels, rows, n_columns).

        Parameters
        ----------
        columns : array-like of shape (cols, n_columns)
        out : ndarray, optional
            Array returned by an earlier call with the same number of columns, to be reused.
        """
        columns = self._check_columns(columns)
        n_kernels, n_rows, n_columns = self.n_kernels, len(self), columns.shape[1]
        if self._in_strips:
            products = np.empty((n_kernels, n_columns, n_rows)) if out is None else out.mT
            mirrored = self._mirrored

            def multiply(j: int) -> None:
                products[j] = self._factored_product(j, columns, mirrored).T

            n_strips = n_kernels * len(strips(*self.shape[:2], mirrored=True))
            fewest = 0 if n_strips >= _FEWEST_FOR_THREADS else n_kernels + 1
            in_threads(multiply, list(range(n_kernels)), fewest)
        elif n_columns == 1 and self._cols.factor is None:
            # A single product over contiguous memory.
            flat = matmul(self.data.reshape(-1, self.shape[1]), columns)
            products = flat.reshape(n_kernels, 1, n_rows)
        elif n_rows <= _FEW_ROWS and self._cols.factor is None and self._rows.factor is None:
            products = np.matmul(columns.T, self.data.mT)
        else:
            # Each column of a product is contiguous, as LAPACK needs it.
            products = np.empty((n_kernels, n_columns, n_rows)) if out is None else out.mT
            for j in range(n_kernels):
                products[j] = self._factored_product(j, columns).T
        if np.any(self._scale != 1.0):
            products *= self._scale[:, None, None]
        if self._rows.offset is not None and self._cols.offset is not None:
            products -= self._rows.offset[:, None] * columns.sum(axis=0)[:, None]
            products -= matmul(self._cols.offset, columns)[:, :, None]
        return products.mT

    def apply_combined(self, weights: ArrayLike, columns: np.ndarray) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j @ columns`` without forming the sum of the kernels."""
        weights = self._check_weights(weights)
        columns = self._check_columns(columns)
        total = np.zeros((len(self), columns.shape[1]))
        active, scaled = np.flatnonzero(weights).tolist(), weights * self._scale
        if self._in_strips or len(active) == 1 or columns.shape[1] < _FEWEST_TO_SUM:
            for j in active:
                total += scaled[j] * self._factored_product(j, columns)
        else:
            for rows in self._row_blocks():
                block = np.zeros((rows.stop - rows.start, len(columns)))
                for j in active:
                    add_scaled(block, self._factored(j, rows), scaled[j])
                total[rows] = matmul(block, columns)
        if self._rows.offset is not None and self._cols.offset is not None:
            total -= np.outer(weights @ self._rows.offset, columns.sum(axis=0))
            total -= (weights @ self._cols.offset) @ columns
        return total

    def apply_each(self, columns: np.ndarray) -> np.ndarray:
        """Return ``Σ_j K_j @ columns[j]``, shape (rows, n_columns).

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
        """Return ``f_j · (data[j] @ (f_j · columns))``."""
        if self._cols.factor is not None:
            columns = columns * self._cols.factor[j, :, None]
        if self._in_strips:
            result = strip_product(self.data[j], columns, mirrored=mirrored)
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
            term = weights[j] * self.data[j][np.ix_(rows, cols)]
            if self._rows.factor is not None and self._cols.factor is not None:
                term *= self._rows.factor[j, rows, None] * self._cols.factor[j, cols]
            block += term
        return block

    def alignment(self, *, centered: bool = False) -> np.ndarray:
        """Return ``⟨K_i, K_j⟩ / (‖K_i‖ ‖K_j‖)`` of every pair, (n_kernels, n_kernels).

        With ``centered=True`` the kernels are first centred in feature space, as in discriminant
        analysis (Yan 2012, Fig. 5). The alignment with a zero kernel is zero.
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
        """Return ``⟨K_i, K_j⟩`` of every pair, (n_kernels, n_kernels).

        With sample weights w of a Gram stack, ``Σ_rc w_r w_c K_i(r, c) K_j(r, c)``: a sample of
        weight two counts as two equal samples.
        """
        inner = np.zeros((self.n_kernels, self.n_kernels))
        roots = None if sample_weight is None else np.sqrt(sample_weight)
        for rows in self._row_blocks():
            values = [self._values(j, rows) for j in range(self.n_kernels)]
            if roots is not None:
                values = [roots[rows, None] * block * roots for block in values]
            flat = np.stack([block.ravel() for block in values])
            inner += flat @ flat.T
        return inner

    def inner_products_with(self, matrix: np.ndarray) -> np.ndarray:
        """Return ``⟨K_j, matrix⟩`` for every kernel, (n_kernels,)."""
        inner = np.zeros(self.n_kernels)
        for rows in self._row_blocks():
            for j in range(self.n_kernels):
                inner[j] += np.vdot(self._values(j, rows), matrix[rows])
        return inner
