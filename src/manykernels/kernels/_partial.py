"""PartialKernel: a kernel of those rows only that have what it compares."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .base import Kernel
from .tables import SharedTable


class PartialKernel(Kernel):
    """Base of kernels that some rows lack: NaN in the whole row and column of each of these.

    A subclass says which rows have the kernel. Its ``fit`` sets `kernel_`, fitted on these.
    """

    kernel: Kernel
    kernel_: Kernel

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @abstractmethod
    def _rows(self, X: SharedTable) -> tuple[np.ndarray, SharedTable]:
        """Which rows have the kernel, and the table of these, which other kernels share."""

    @abstractmethod
    def _explaining(self) -> AbstractContextManager[None]:
        """What errors of the kernel are raised in, to say more."""

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Similarities of the rows of `X` with those of `Y`, or with each other."""
        check_is_fitted(self)
        rows, left = self._rows(SharedTable.of(X))
        columns, right = (rows, None) if Y is None else self._rows(SharedTable.of(Y))
        K = np.full((len(rows), len(columns)), np.nan)
        if rows.any() and columns.any():
            with self._explaining():
                known = self.kernel_(left, right)
            if known.shape == K.shape:
                return known
            K[np.ix_(rows, columns)] = known
        return K

    def diag(self, X: Any) -> np.ndarray:
        """Similarities of the rows of `X` with themselves; NaN for rows that lack the kernel."""
        check_is_fitted(self)
        rows, known = self._rows(SharedTable.of(X))
        diagonal = np.full(len(rows), np.nan)
        if rows.any():
            with self._explaining():
                diagonal[rows] = self.kernel_.diag(known)
        return diagonal

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return self(X, Y)

    def _compared(self, X: Any, Y: Any) -> Any:
        check_is_fitted(self)
        rows, left = self._rows(SharedTable.of(X))
        columns, right = (rows, None) if Y is None else self._rows(SharedTable.of(Y))
        if not (rows.all() and columns.all()):
            return None  # rows that lack the kernel cannot be compared
        with self._explaining():
            return self.kernel_._compared(left, right)
