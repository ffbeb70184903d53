"""Sums and products of kernels, and kernels that are a number."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from .._sklearn import Interval, num_samples
from .base import Kernel
from .tables import SharedTable, column_positions, select_columns


class _AnyTableKernel(Kernel):
    """A kernel that does not read the entries of `X` itself, so any table is accepted."""

    def _validated(self, X: Any) -> Any:
        return X

    def _check_widths(self, X: Any, Y: Any) -> None:
        pass


class Constant(_AnyTableKernel):
    """The same similarity for every pair of rows.

    Parameters
    ----------
    value : float, default=1.0
    columns : ignored

    Examples
    --------
    >>> from manykernels.kernels import Constant
    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "value": [Interval(Real, None, None, closed="neither")]
    }

    def __init__(self, value: float = 1.0, *, columns: Any = None) -> None:
        self.value = value
        self.columns = columns

    @property
    def is_psd(self) -> bool:
        return self.value >= 0

    def _fit(self, X: Any, sample_weight: Any) -> None:
        pass

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """None: the entries do not matter."""
        return iter(())

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        return np.full((num_samples(X), num_samples(X if Y is None else Y)), float(self.value))

    def _diagonal(self, X: Any) -> np.ndarray:
        return np.full(num_samples(X), float(self.value))


class _Pair(_AnyTableKernel):
    """Two kernels of the same `columns`, combined entry by entry; each validates X itself."""

    _operation: np.ufunc
    _parameter_constraints: ClassVar[dict[str, Any]] = {"left": [Kernel], "right": [Kernel]}

    def __init__(self, left: Kernel, right: Kernel, *, columns: Any = None) -> None:
        self.left = left
        self.right = right
        self.columns = columns

    @classmethod
    def combining(cls, left: Any, right: Any) -> Any:
        """Of two kernels or numbers, as operators need it: NotImplemented of anything else."""
        operands = [Constant(float(k)) if isinstance(k, Real) else k for k in (left, right)]
        if not all(isinstance(k, Kernel) for k in operands):
            return NotImplemented
        return cls(*operands)

    @property
    def is_psd(self) -> bool:
        return self.left.is_psd and self.right.is_psd

    def _parts(self) -> tuple[Kernel, Kernel]:
        fitted = hasattr(self, "left_")
        return (self.left_, self.right_) if fitted else (self.left, self.right)

    def _validated(self, X: Any) -> SharedTable:
        return SharedTable.of(X)

    def _fit(self, X: Any, sample_weight: Any) -> None:
        self.left_ = clone(self.left).fit(X, sample_weight=sample_weight)
        self.right_ = clone(self.right).fit(X, sample_weight=sample_weight)

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """Those of both kernels."""
        columns = self._frozen_columns(X)
        chosen = X if columns is None else select_columns(X, columns)
        places = None if columns is None else column_positions(X, columns)
        for part in self._parts():
            for view, own, as_categories in part.compared_columns(chosen):
                positions = own if places is None else [places[j] for j in own]
                yield view, positions, as_categories

    def _evaluate(self, X: Any, Y: Any) -> np.ndarray:
        left, right = self._parts()
        K = left(X, Y)
        return self._operation(K, right(X, Y), out=K)

    def _diagonal(self, X: Any) -> np.ndarray:
        left, right = self._parts()
        return self._operation(left.diag(X), right.diag(X))


class Sum(_Pair):
    """Sum of the kernels `left` and `right`, written ``left + right``.

    Examples
    --------
    >>> from manykernels.kernels import RBF, Linear
    >>> kernel = RBF(gamma=1.0) + 2 * Linear()
    >>> kernel([[1.0], [1.0]])
    array([[3., 3.],
           [3., 3.]])
    >>> kernel.set_params(left__gamma=0.5).left
    RBF(gamma=0.5)
    """

    _operation = np.add


class Product(_Pair):
    """Product of the kernels `left` and `right`, entry by entry, written ``left * right``.

    Examples
    --------
    >>> from manykernels.kernels import Linear
    >>> (Linear() * Linear())([[2.0]], [[3.0]])
    array([[36.]])
    """

    _operation = np.multiply
