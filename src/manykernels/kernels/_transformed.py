"""Kernels whose transforms are kept as vectors beside their values.

    K_j(r, c) = scale_j · f_j(r) · f_j(c) · data[j, r, c] − o_j(r) − o_j(c)              (*)

``f`` are sample factors (spherical normalisation), ``o`` offsets (centring), ``scale`` one number
per kernel (trace and multiplicative normalisation). Whether ``data`` is stored
(:class:`~manykernels.KernelStack`) or computed when it is needed
(:class:`~manykernels.kernels.streamed.StreamedKernels`), a transform changes the vectors only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._rounding import ACCUMULATED, EPS

Positions = np.ndarray | slice


@dataclass(frozen=True)
class Guarantees:
    """What is known about kernel matrices besides their values."""

    #: Rows and columns are the same samples in the same order.
    gram: bool = False
    #: :func:`~manykernels.kernels.check_stack` has nothing left to do.
    checked: bool = False
    #: The training samples have mean zero in feature space.
    centered: bool = False
    #: Gram matrices are positive semi-definite (PSD).
    psd: bool = False
    #: Gram matrices are PSD once they are centred, if not before.
    psd_if_centered: bool = False

    def of_part(self, *, gram: bool) -> Guarantees:
        """What holds for some of the rows and columns, whose means are different."""
        return replace(self, gram=gram, centered=False)

    def of_centered(self) -> Guarantees:
        """What holds for the same kernels after centring."""
        return replace(self, centered=True, psd=self.psd_if_centered)

    def of_rescaled(self) -> Guarantees:
        """What holds for ``f(r) f(c) K(r, c)``: it is PSD if K is, not if only centred K is."""
        return replace(self, centered=False, psd_if_centered=self.psd)


@dataclass(frozen=True)
class Samples:
    """Vectors of the samples along the rows, or along the columns, of kernels.

    All but `names` have the shape (n_kernels, n_samples); each may be missing.
    """

    #: Self-similarities ``K_j(x, x)``, all transforms applied.
    diagonal: np.ndarray | None = None
    #: f of (*).
    factor: np.ndarray | None = None
    #: o of (*).
    offset: np.ndarray | None = None
    names: np.ndarray | None = None

    def take(self, positions: Positions, axis: int = 1) -> Samples:
        """The vectors of some of the samples or, with ``axis=0``, of some of the kernels."""
        names = take(self.names, positions, 0) if axis == 1 else self.names
        vectors = (self.diagonal, self.factor, self.offset)
        diagonal, factor, offset = (take(vector, positions, axis) for vector in vectors)
        return Samples(diagonal, factor, offset, names)

    def scaled(self, scale: np.ndarray) -> Samples:
        """The vectors of kernels ``scale[j] K_j``."""
        diagonal, offset = (_times(v, scale[:, None]) for v in (self.diagonal, self.offset))
        return replace(self, diagonal=diagonal, offset=offset)

    def rescaled(self, factor: np.ndarray) -> Samples:
        """The vectors of kernels ``f_j(r) f_j(c) K_j(r, c)``; K_j must have no offsets."""
        product = factor if self.factor is None else self.factor * factor
        return replace(self, factor=product, diagonal=_times(self.diagonal, factor**2))

    def shifted(self, offset: np.ndarray) -> Samples:
        """The vectors of kernels ``K_j(r, c) − o_j(r) − o_j(c)``."""
        total = offset if self.offset is None else self.offset + offset
        diagonal = None if self.diagonal is None else self.diagonal - 2 * offset
        return replace(self, offset=total, diagonal=diagonal)

    def plain(self) -> Samples:
        """The vectors of the same kernels with all transforms applied to their values."""
        return replace(self, factor=None, offset=None)


class TransformedKernels(ABC):
    """The vectors of (*), and what can be computed from them alone."""

    #: Whether kernels are too many to be stored, see :mod:`manykernels.kernels.on_demand`.
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
        """In how many regions kernels are to have weights of their own, region by region."""
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
        """Relative distance between neighbouring numbers, as the values are stored."""
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
        """A copy that shares the values, with some attributes replaced."""
        new = copy(self)
        vars(new).update(changes)
        return new

    @abstractmethod
    def _without_offsets(self) -> Self:
        """The same kernels with the offsets applied to the values."""

    def scaled(self, scale: np.ndarray) -> Self:
        """Kernels ``scale[j] K_j``."""
        return self._changed(
            _scale=self._scale * scale,
            _rows=self._rows.scaled(scale),
            _cols=self._cols.scaled(scale),
        )

    def rescaled_samples(self, row_factor: np.ndarray, col_factor: np.ndarray) -> Self:
        """Kernels ``f_j(r) f_j(c) K_j(r, c)`` for factors (n_kernels, rows) and (…, cols)."""
        base = self if self._rows.offset is None else self._without_offsets()
        return base._changed(
            _rows=base._rows.rescaled(row_factor),
            _cols=base._cols.rescaled(col_factor),
            guarantees=base.guarantees.of_rescaled(),
        )

    def shifted(self, row_offset: np.ndarray, col_offset: np.ndarray) -> Self:
        """Kernels ``K_j(r, c) − o_j(r) − o_j(c)``, where o centres them."""
        return self._changed(
            _rows=self._rows.shifted(row_offset),
            _cols=self._cols.shifted(col_offset),
            guarantees=self.guarantees.of_centered(),
        )

    # -- bounds ----------------------------------------------------------------------------

    def contributing(self, weights: np.ndarray) -> np.ndarray:
        """Positions of the kernels whose part in the weighted sum exceeds its rounding error.

        The largest entry of a PSD matrix, in absolute value, is on its diagonal.
        """
        if not (self.gram and self.guarantees.psd) or self.row_diag is None:
            return np.flatnonzero(weights * self._scale)
        part = np.abs(weights) * np.abs(self.row_diag).max(axis=1, initial=0.0)
        # Times 1e-3, so that leaving out even a thousand kernels is within rounding error.
        return np.flatnonzero(part > 1e-3 * EPS * part.sum())

    def without_variance(self) -> np.ndarray:
        """Positions of the kernels in which all rows are the same point of feature space.

        There the squared distances from the first row, ``K_11 + K_ii − 2 K_1i``, are zero up to
        rounding error: the kernel is constant, and zero once it has been centred.
        """
        if not self.guarantees.psd_if_centered or self.row_diag is None:
            return np.empty(0, dtype=np.intp)
        # The first row that has the kernel, where samples lack it.
        starts = np.argmin(np.isnan(self.row_diag), axis=1)
        constant = np.zeros(self.n_kernels, dtype=bool)
        for start in np.unique(starts):
            own = starts == start
            first = self.apply_columns(np.array([start]), np.ones((1, 1)))[own, :, 0]
            lengths = self.row_diag[own]
            distances = lengths[:, start, None] + lengths - 2.0 * first
            size = np.nanmax(np.abs(lengths), axis=1, keepdims=True, initial=0.0) + np.abs(first)
            rounding = max(ACCUMULATED, self.resolution) * size
            constant[own] = ~(np.abs(distances) > rounding).any(axis=1)
        return np.flatnonzero(constant)

    def form_errors(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Rounding errors to be expected of ``tr(leftᵀ K_j right)``, (n_kernels,).

        The terms have the size ``√(s_r s_c)``, where s is the diagonal before centring,
        ``s_r = |K_j(r, r)| + 2|o_j(r)|``. Each of the m additions along a row rounds the partial
        sum, which grows like a random walk, by ``u = 2⁻⁵³`` of it. If rounding errors are
        independent, the standard error of the result is about
        ``u ‖√s ∘ left‖₁ ‖√s ∘ right‖₂``. Twice that is returned. Sums are those of double
        precision however the values are stored, and the kernels are the ones that are stored.
        """
        assert self.row_diag is not None
        sizes = np.abs(self.row_diag)
        if self._rows.offset is not None:
            sizes = sizes + 2.0 * np.abs(self._rows.offset)
        roots = np.sqrt(sizes)
        first = roots @ np.abs(left)
        second = np.sqrt(sizes @ right**2)
        errors: np.ndarray = EPS * np.sum(first * second, axis=1)
        return errors

    # -- a few columns of Gram matrices ----------------------------------------------------

    def apply_columns(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """``K_j[:, indices] @ coefficients`` of every kernel, (n_kernels, rows, n_columns)."""
        products = self._apply_stored(indices, coefficients)
        return self._transform_products(products, indices, coefficients)

    def combine_block(self, weights: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """``Σ_j weights[j] K_j[indices, indices]``."""
        block = self._sum_stored(weights * self._scale, indices, indices)
        return self._subtract_offsets(block, weights, indices, indices)

    @abstractmethod
    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """``data[j][:, indices] @ (f_j(indices) · coefficients)`` of every kernel."""

    @abstractmethod
    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Weighted sum of ``f_j(r) f_j(c) data[j, r, c]`` in some rows and columns."""

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

    def _check_weights(self, weights: Any) -> np.ndarray:
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

    def _check_columns(self, columns: Any) -> np.ndarray:
        array = np.asarray(columns)
        if array.ndim != 2 or len(array) != self.shape[1] or array.dtype.kind not in "biuf":
            raise ValueError(
                "Kernels are multiplied with a table of numbers that has one row per column of "
                f"the kernels, {self.shape[1]}; got {array.dtype} of shape {array.shape}."
            )
        return array.astype(np.float64, copy=False)


def take(array: np.ndarray | None, positions: Positions, axis: int) -> np.ndarray | None:
    """Some entries of an array along an axis: a view for a slice, else a C-ordered copy."""
    if array is None:
        return None
    if isinstance(positions, slice):
        return array[(slice(None),) * axis + (positions,)]
    return np.take(array, positions, axis=axis)


def _times(array: np.ndarray | None, factor: np.ndarray) -> np.ndarray | None:
    return None if array is None else array * factor
