"""KernelUnion: named kernels of one table, evaluated into one stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted

from .._memory import storage
from .._sklearn import BaseComposition, VisualBlock, num_samples
from .adapters import as_kernel
from .base import Kernel
from .samples import row_names
from .stack import KernelStack, check_stack
from .standard import RBF
from .tables import column_positions, naming


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
        fitted = []
        for name, kernel in self._checked_kernels():
            with naming(f"kernel {name!r}"):
                kernel = clone(as_kernel(kernel)).fit(X, sample_weight=sample_weight)
            fitted.append((name, kernel))
        self.kernels_ = fitted
        return self

    def __call__(self, X: Any, Y: Any = None, *, memmap: str | Path | None = None) -> KernelStack:
        """Evaluate every kernel between the rows of `X` and `Y`, or of `X` with each other.

        Parameters
        ----------
        X, Y : {array-like, dataframe, sparse matrix}
        memmap : path, optional
            File (.npy) that holds the values instead of memory. An older file is replaced as by
            :meth:`KernelStack.materialized`.

        Returns
        -------
        stack : KernelStack
            Checked: finite and, without `Y`, symmetric and positive semi-definite. Its samples
            have the names of the rows of data frames.
        """
        check_is_fitted(self)
        gram = Y is None
        shape = (len(self.kernels_), num_samples(X), num_samples(X if gram else Y))
        diagonals = {} if gram else {"row_diag": self.diag(X), "col_diag": self.diag(Y)}
        psd = all(kernel.is_psd for _, kernel in self.kernels_)
        with storage(shape, memmap) as space:
            evaluate = SharedDistances(X, Y)
            for matrix, (name, kernel) in zip(space.data, self.kernels_, strict=True):
                with naming(f"kernel {name!r}"):
                    matrix[...] = evaluate(kernel)
            # Checked before the file replaces an older one.
            stack = KernelStack(space.data, self.names_, gram=gram, checked=psd, **diagonals)
            stack = check_stack(stack, missing=True)
        stack = stack._with_data(space.data)
        return stack.with_samples(row_names(X), row_names(X if gram else Y))

    def diag(self, X: Any) -> np.ndarray:
        """Similarities of the rows of `X` with themselves, (n_kernels, rows)."""
        check_is_fitted(self)
        diagonals = np.empty((len(self.kernels_), num_samples(X)))
        for diagonal, (name, kernel) in zip(diagonals, self.kernels_, strict=True):
            with naming(f"kernel {name!r}"):
                diagonal[...] = kernel.diag(X)
        return diagonals

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


class SharedDistances:
    """Evaluates kernels on `X` and `Y`; successive kernels of the same distances share them."""

    def __init__(self, X: Any, Y: Any) -> None:
        self._X, self._Y = X, Y
        self._key = None
        self._distances: np.ndarray | None = None

    def __call__(self, kernel: Any) -> np.ndarray:
        key = kernel._distance_key(self._X)
        if key is None or (self._Y is not None and kernel._distance_key(self._Y) is None):
            return kernel(self._X, self._Y)
        if key != self._key:
            # Dropped first, so that there are never two distance matrices in memory.
            self._key = self._distances = None
            self._distances = kernel.distance(self._X, self._Y)
            self._key = key
        return kernel.from_distance(self._distances, gram=self._Y is None)


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


def views_union(views: Mapping[str, Any], kernel: Any = None) -> tuple[Any, KernelUnion]:
    """Join tables of the same rows side by side, and make kernels for each.

    Parameters
    ----------
    views : dict of str to {array-like, dataframe, sparse matrix} of shape (rows, ...)
    kernel : kernel, KernelUnion, list of (str, kernel) or dict, default=None
        One kernel for every view (None: ``RBF()``); several for every view, then named
        "view:kernel"; or a dict with one of these for each view. The columns of a kernel are
        counted in its view.

    Returns
    -------
    X : ndarray, or csr matrix if a view is sparse
    union : KernelUnion

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import views_union
    >>> X, union = views_union({"audio": np.eye(3), "text": np.ones((3, 2))}, "linear")
    >>> X.shape
    (3, 5)
    >>> union.fit(X)(X)
    KernelStack(2 kernels, 3 x 3: 'audio', 'text')
    """
    if not isinstance(views, Mapping):
        raise TypeError(
            "views_union takes a dict of tables by the names of the views, such as "
            f'{{"audio": X1, "text": X2}}; got {type(views).__name__}.'
        )
    if not views:
        raise ValueError("views_union needs at least one view.")
    recipes = kernel if isinstance(kernel, Mapping) else dict.fromkeys(views, kernel)
    if recipes.keys() != views.keys():
        unmatched = sorted(map(str, recipes.keys() ^ views.keys()))
        raise ValueError(f"Views and kernels must have the same names; not in both: {unmatched}.")
    tables: list[Any] = []
    kernels = []
    start = 0
    for view, table in views.items():
        with naming(f"view {view!r}"):
            checked = check_array(table, accept_sparse="csr", dtype=np.float64)
            if tables and checked.shape[0] != tables[0].shape[0]:
                raise ValueError(
                    f"it has {checked.shape[0]} rows, the views before it {tables[0].shape[0]}."
                )
            for name, part in _named_parts(view, recipes[view]):
                kernels.append((name, _placed(part, table, start, checked.shape[1])))
        tables.append(checked)
        start += checked.shape[1]
    any_sparse = any(sparse.issparse(table) for table in tables)
    X = sparse.hstack(tables, format="csr") if any_sparse else np.hstack(tables)
    return X, KernelUnion(kernels)


def _named_parts(view: str, recipe: Any) -> list[tuple[str, Kernel]]:
    """The kernels that a recipe of :func:`views_union` gives one view."""
    recipe = RBF() if recipe is None else recipe
    recipe = KernelUnion(recipe) if isinstance(recipe, list) else recipe
    if not isinstance(recipe, KernelUnion):
        return [(view, as_kernel(recipe))]
    return [(f"{view}:{name}", as_kernel(part)) for name, part in recipe._checked_kernels()]


def _placed(kernel: Kernel, table: Any, start: int, width: int) -> Kernel:
    """`kernel` of a view, on the columns that the view has in the joined table."""
    if kernel.columns is None:
        return kernel.on(slice(start, start + width))
    return kernel.on([start + column for column in column_positions(table, kernel.columns)])
