"""KernelUnion: named kernels of one table, evaluated into one stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._memory import storage
from .._sklearn import BaseComposition, VisualBlock, num_samples
from .adapters import as_kernel
from .evaluation import evaluate_into
from .matrices import check_dtype
from .samples import row_names
from .stack import KernelStack, check_stack
from .standard import RBF
from .tables import SharedTable, naming
from .views import one_or_views


class KernelUnion(BaseComposition):
    """Named kernels of the rows of one table, each of columns of its own.

    Parameters
    ----------
    kernels : list of (str, kernel), or dict
        Names, all different, and anything :func:`as_kernel` takes.

    Attributes
    ----------
    kernels_ : list of (str, Kernel)
        The kernels, fitted.
    names_ : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import RBF, KernelUnion
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> union = KernelUnion([("shape", RBF().on(0)), ("all", "linear")])
    >>> union.fit(X)(X)
    KernelStack(2 kernels, 3 x 3: 'shape', 'all')
    >>> union.set_params(shape__gamma=2.0).kernels[0]
    ('shape', RBF(columns=0, gamma=2.0))
    """

    def __init__(self, kernels: list[tuple[str, Any]] | Mapping[str, Any]) -> None:
        self.kernels = kernels

    @property
    def _pairs(self) -> Any:
        """`kernels` as a list of pairs; a dict stays a dict when pairs are set."""
        return list(self.kernels.items()) if isinstance(self.kernels, Mapping) else self.kernels

    @_pairs.setter
    def _pairs(self, pairs: list[tuple[str, Any]]) -> None:
        self.kernels = dict(pairs) if isinstance(self.kernels, Mapping) else pairs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a clone of every kernel; the arguments are those of :meth:`Kernel.fit`."""
        X, fitted = _shared(X), []
        for name, kernel in self._checked_kernels():
            with naming(f"kernel {name!r}"):
                kernel = clone(as_kernel(kernel)).fit(X, sample_weight=sample_weight)
            fitted.append((name, kernel))
        self.kernels_ = fitted
        return self

    def __call__(
        self,
        X: Any,
        Y: Any = None,
        *,
        dtype: Any = np.float64,
        memmap: str | Path | None = None,
    ) -> KernelStack:
        """Evaluate every kernel between the rows of `X` and `Y`, or of `X` with each other.

        Parameters
        ----------
        X, Y : {array-like, dataframe, sparse matrix, dict of these, Views}
        dtype : {float64, float32}, default=float64
            How values are stored. Single precision takes half of the space; values are computed
            in double precision and rounded, and all sums are those of double precision.
        memmap : path, optional
            File (.npy) that holds the values instead of memory. An older file is replaced as by
            :meth:`KernelStack.materialized`.

        Returns
        -------
        stack : KernelStack
            Checked: finite and, without `Y`, symmetric and positive semi-definite. Its samples
            have the names of the rows of data frames.

        Examples
        --------
        >>> import numpy as np
        >>> from manykernels.kernels import rbf_grid
        >>> X = np.array([[0.0], [1.0], [3.0]])
        >>> rbf_grid([1, 2]).fit(X)(X, dtype="float32").dtype
        dtype('float32')
        """
        check_is_fitted(self)
        dtype = check_dtype(dtype)
        gram = Y is None
        X, Y = _shared(X), None if gram else _shared(Y)
        samples = X.X, (X if gram else Y).X
        shape = (len(self.kernels_), *map(num_samples, samples))
        diagonals = {} if gram else {"row_diag": self.diag(X), "col_diag": self.diag(Y)}
        psd = all(kernel.is_psd for _, kernel in self.kernels_)
        with storage(shape, memmap, dtype) as space:
            evaluate_into(space.data, self.kernels_, X, Y)
            # Checked before the file replaces an older one.
            stack = KernelStack(space.data, self.names_, gram=gram, checked=psd, **diagonals)
            stack = check_stack(stack, missing=True)
        stack = stack._with_data(space.data)
        return stack.with_samples(*map(row_names, samples))

    def diag(self, X: Any) -> np.ndarray:
        """Similarities of the rows of `X` with themselves, (n_kernels, rows)."""
        check_is_fitted(self)
        X = _shared(X)
        diagonals = np.empty((len(self.kernels_), num_samples(X.X)))
        for diagonal, (name, kernel) in zip(diagonals, self.kernels_, strict=True):
            with naming(f"kernel {name!r}"):
                diagonal[...] = kernel.diag(X)
        return diagonals

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """The columns that fitted kernels compare, see :meth:`Kernel.compared_columns`."""
        check_is_fitted(self)
        X = _shared(X)
        for _, kernel in self.kernels_:
            yield from kernel.compared_columns(X)

    def gram_of(self, kernels: np.ndarray, X: SharedTable, out: np.ndarray) -> KernelStack:
        """Gram stack of the kernels at these positions, checked; its values are written to `out`.

        `out` is (number of kernels, rows, rows).
        """
        union = self.subset(kernels)
        # What kernels share of the table is dropped with them: there may be very many.
        evaluate_into(out, union.kernels_, SharedTable(X.X), None)
        psd = all(kernel.is_psd for _, kernel in union.kernels_)
        return check_stack(KernelStack(out, union.names_, gram=True, checked=psd))

    def subset(self, indices: Any) -> KernelUnion:
        """Fitted union of the kernels at `indices` (integers, a slice or a mask) only."""
        check_is_fitted(self)
        chosen = np.atleast_1d(np.arange(len(self.kernels_))[indices])
        union = type(self)([self._pairs[j] for j in chosen])
        union.kernels_ = [self.kernels_[j] for j in chosen]
        return union

    @property
    def names_(self) -> list[str]:
        check_is_fitted(self)
        return [name for name, _ in self.kernels_]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with those of the kernels as ``name__parameter``."""
        return self._get_params("_pairs", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set ``kernels``, one kernel by its name, or parameters by ``name__parameter``."""
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        return self._set_params("_pairs", **params)

    def _checked_kernels(self) -> list[tuple[str, Any]]:
        kernels = self._pairs
        if not isinstance(kernels, list | tuple) or not kernels:
            raise ValueError(
                "kernels must be a list of (name, kernel) pairs, at least one, or a dict; got "
                f"{self.kernels!r}."
            )
        for pair in kernels:
            if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
                raise ValueError(
                    f"Each item of kernels must be a pair (name, kernel), got {pair!r}."
                )
        self._validate_names([name for name, _ in kernels])
        return list(kernels)

    def _sk_visual_block_(self) -> VisualBlock:
        names, kernels = zip(*self._pairs, strict=True)
        return VisualBlock("parallel", kernels, names=names)


def rbf_grid(
    widths: Iterable[float], gamma: float | str = 0.5, columns: Any = None
) -> KernelUnion:
    """Gaussian kernels of several widths on the same columns.

    Parameters
    ----------
    widths : iterable of float
        With ``gamma=0.5`` the standard deviations σ, as in the papers.
    gamma : float or {"scale", "auto", "median"}, default=0.5
        With "median" the widths are relative to the median distance of training rows.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns compared; None means all.

    Returns
    -------
    union : KernelUnion

    Examples
    --------
    >>> from manykernels.kernels import rbf_grid
    >>> [name for name, _ in rbf_grid([0.1, 1, 10]).kernels]
    ['rbf(0.1)', 'rbf(1)', 'rbf(10)']
    """
    return KernelUnion([(f"rbf({w:g})", RBF(gamma, float(w), columns=columns)) for w in widths])


def _shared(X: Any) -> SharedTable:
    return SharedTable.of(one_or_views(X))
