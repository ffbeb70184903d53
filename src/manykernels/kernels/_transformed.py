"""Kernels with their transforms kept as vectors, wherever the values themselves are.

    K_j(r, c) = scale_j · f_j(r) · f_j(c) · data[j, r, c] − o_j(r) − o_j(c)              (*)

Whether ``data`` is in memory (:class:`~manykernels.KernelStack`) or computed when it is needed
(:class:`~manykernels.kernels.streamed.StreamedKernels`), a transform changes the vectors only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

# A squared distance that is no more than this part of the self-similarities is rounding.
_NO_DISTANCE = 1e-12


class TransformedKernels(ABC):
    """The vectors of (*) and what can be told from them alone."""

    gram: bool
    centered: bool
    names: list[str]
    row_diag: np.ndarray | None
    col_diag: np.ndarray | None
    _bounded: bool
    _bounded_if_centered: bool
    _scale: np.ndarray
    _row_factor: np.ndarray | None
    _col_factor: np.ndarray | None
    _row_offset: np.ndarray | None
    _col_offset: np.ndarray | None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """``(rows, cols, n_kernels)``."""

    @property
    def n_kernels(self) -> int:
        return self.shape[2]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def _changed(self, **changes: Any) -> Self:
        """The same values with other vectors."""

    @abstractmethod
    def _without_offsets(self) -> Self:
        """These kernels with no offset left outside of the values."""

    def scaled(self, scale: np.ndarray) -> Self:
        """Kernels ``scale[j] K_j``."""
        column = scale[:, None]
        return self._changed(
            _scale=self._scale * scale,
            row_diag=_times(self.row_diag, column),
            col_diag=_times(self.col_diag, column),
            _row_offset=_times(self._row_offset, column),
            _col_offset=_times(self._col_offset, column),
        )

    def rescaled_samples(self, row_factor: np.ndarray, col_factor: np.ndarray) -> Self:
        """Kernels ``f_j(r) f_j(c) K_j(r, c)`` for factors (n_kernels, rows) and (…, cols)."""
        base = self if self._row_offset is None else self._without_offsets()
        return base._changed(
            _row_factor=row_factor if base._row_factor is None else base._row_factor * row_factor,
            _col_factor=col_factor if base._col_factor is None else base._col_factor * col_factor,
            row_diag=_times(base.row_diag, row_factor**2),
            col_diag=_times(base.col_diag, col_factor**2),
            centered=False,
            # What is positive semi-definite only where it is centred is so no more.
            _bounded_if_centered=base._bounded,
        )

    def shifted(self, row_offset: np.ndarray, col_offset: np.ndarray) -> Self:
        """Kernels ``K_j(r, c) − o_j(r) − o_j(c)``, the form of a centred kernel."""
        return self._changed(
            _row_offset=_plus(self._row_offset, row_offset),
            _col_offset=_plus(self._col_offset, col_offset),
            row_diag=None if self.row_diag is None else self.row_diag - 2 * row_offset,
            col_diag=None if self.col_diag is None else self.col_diag - 2 * col_offset,
            centered=True,
            _bounded=self._bounded_if_centered,
        )

    def contributing(self, weights: np.ndarray) -> np.ndarray:
        """Positions of the kernels whose part in the weighted sum is more than rounding.

        No entry of a positive semi-definite matrix is larger than its largest diagonal entry.
        """
        if not (self.gram and self._bounded) or self.row_diag is None:
            return np.flatnonzero(weights * self._scale)
        part = np.abs(weights) * np.abs(self.row_diag).max(axis=1, initial=0.0)
        return np.flatnonzero(part > 1e-3 * np.finfo(float).eps * part.sum())

    def without_variance(self) -> np.ndarray:
        """Positions of the kernels in which all rows are the same sample.

        By the squared distances from the first row, ``K_11 + K_ii − 2 K_1i``: where they are zero,
        up to rounding, the kernel is constant (zero, perhaps), or is once it has been centred.
        """
        if not self._bounded_if_centered or self.row_diag is None:
            return np.empty(0, dtype=np.intp)
        first = self.apply_columns(np.array([0]), np.ones((1, 1)))[:, :, 0]
        distances = self.row_diag[:, :1] + self.row_diag - 2.0 * first
        size = np.abs(self.row_diag).max(axis=1, keepdims=True) + np.abs(first)
        return np.flatnonzero((np.abs(distances) <= _NO_DISTANCE * size).all(axis=1))

    def form_errors(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Rounding errors to be expected of ``tr(leftᵀ K_j right)``, (n_kernels,).

        Entries of size ``√(s_r s_c)`` are added up, s being the diagonal before centring, which
        is part of (*): ``|K_j(r, r)| + 2|o_j(r)|``. Each step of the sum over a row rounds what
        has been added up, which grows like a random walk, by ``u = 2⁻⁵³`` of it; the errors of
        m steps are independent, and so are those of rows: the standard error is about
        ``u ‖√s ∘ left‖₁ ‖√s ∘ right‖₂``. Twice that is returned.
        """
        assert self.row_diag is not None
        sizes = np.abs(self.row_diag)
        if self._row_offset is not None:
            sizes = sizes + 2.0 * np.abs(self._row_offset)
        roots = np.sqrt(sizes)
        first = roots @ np.abs(left)
        second = np.sqrt(sizes @ right**2)
        errors: np.ndarray = np.finfo(float).eps * np.sum(first * second, axis=1)
        return errors

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
                f"Weights must be finite, and that of kernel {self.names[j]!r} is {weights[j]}."
            )
        return weights

    def _check_columns(self, columns: Any) -> np.ndarray:
        array = np.asarray(columns)
        if array.ndim != 2 or len(array) != self.shape[1] or array.dtype.kind not in "biuf":
            raise ValueError(
                "Kernels are multiplied with a table of numbers that has one row per column of "
                f"theirs, {self.shape[1]}; got {array.dtype} of shape {array.shape}."
            )
        return array.astype(np.float64, copy=False)

    # -- a few columns of kernels of training rows with themselves -------------------------

    def apply_columns(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """``K_j[:, indices] @ coefficients`` of every kernel, (n_kernels, rows, n_columns)."""
        products = self._apply_stored(indices, coefficients)
        if self._row_factor is not None:
            products *= self._row_factor[:, :, None]
        products *= self._scale[:, None, None]
        if self._row_offset is not None and self._col_offset is not None:
            products -= self._row_offset[:, :, None] * coefficients.sum(axis=0)
            products -= (self._col_offset[:, indices] @ coefficients)[:, None]
        return products

    def combine_block(self, weights: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """``Σ_j weights[j] K_j[indices, indices]``."""
        block = self._combine_stored(weights * self._scale, indices)
        if self._row_offset is not None and self._col_offset is not None:
            block -= (weights @ self._row_offset[:, indices])[:, None]
            block -= weights @ self._col_offset[:, indices]
        return block

    @abstractmethod
    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """``data[j][:, indices] @ (f_j(indices) · coefficients)`` of every kernel."""

    @abstractmethod
    def _combine_stored(self, weights: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Weighted sum of ``f_j(r) f_j(c) data[j, r, c]`` for r and c in `indices`."""


def _times(array: np.ndarray | None, factor: np.ndarray) -> np.ndarray | None:
    return None if array is None else array * factor


def _plus(array: np.ndarray | None, term: np.ndarray) -> np.ndarray:
    return term if array is None else array + term
