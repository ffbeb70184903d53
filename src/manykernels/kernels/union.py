"""KernelUnion: named kernels of one table, evaluated into one stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, check_random_state

from ..utils.numerics import storage
from ..utils.sklearn import BaseComposition, Interval, VisualBlock, num_samples, sample_weights
from ..utils.storable import storable
from .adapters import as_kernel
from .base import SquaredDistances, check_filled, evaluate_into
from .matching import row_names
from .stack import KernelStack, check_dtype, check_stack
from .standard import RBF
from .tables import Columns, SharedTable, Table, naming
from .transforms import GAMMA_RULES, gamma_options
from .views import one_or_views

# Number of kernels that a diagram in a notebook shows.
_MOST_BLOCKS = 20


@storable
class KernelUnion(BaseComposition):
    """Named kernels of the rows of one table, which may compare different columns.

    Parameters
    ----------
    kernels : list of (str, kernel), or dict
        Unique names, and anything that :func:`as_kernel` accepts.

    Attributes
    ----------
    kernels_ : list of (str, Kernel)
        The fitted kernels.
    names_ : list of str
        Names of the kernels.

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
        """Kernels as a list of pairs; setting it keeps the type of `kernels`."""
        return list(self.kernels.items()) if isinstance(self.kernels, Mapping) else self.kernels

    @_pairs.setter
    def _pairs(self, pairs: list[tuple[str, Any]]) -> None:
        self.kernels = dict(pairs) if isinstance(self.kernels, Mapping) else pairs

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a clone of every kernel; arguments as in :meth:`Kernel.fit`."""
        X, fitted = _shared(X), []
        for name, kernel in self._checked_kernels():
            with naming(f"kernel {name!r}"):
                kernel = clone(as_kernel(kernel)).fit(X, y, sample_weight)
            fitted.append((name, kernel))
        self.kernels_ = fitted
        return self

    def __call__(
        self,
        X: Table,
        Y: Any = None,
        *,
        dtype: DTypeLike = np.float64,
        memmap: str | Path | None = None,
    ) -> KernelStack:
        """Evaluate every kernel between the rows of `X` and those of `Y`, or of `X` again.

        Parameters
        ----------
        X, Y : {array-like, dataframe, sparse matrix, dict of these, Views}
        dtype : {float64, float32}, default=float64
            Type of the stored values. Single precision takes half of the space; values are
            computed in double precision and rounded, and all sums are in double precision.
        memmap : path, optional
            File (.npy) that holds the values instead of memory. An existing file is replaced as
            in :meth:`KernelStack.materialized`.

        Returns
        -------
        stack : KernelStack
            Checked to be finite and, without `Y`, symmetric and positive semi-definite. Its
            samples have the names of the rows of data frames.

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
            # Checked before an existing file is replaced.
            stack = KernelStack(space.data, self.names_, gram=gram, checked=psd, **diagonals)
            stack = check_stack(stack, missing=True)
        stack = stack._with_data(space.data)
        return stack.with_samples(*map(row_names, samples))

    def diag(self, X: object) -> np.ndarray:
        """Return ``k(x, x)`` of the rows of `X` for every kernel, (n_kernels, rows)."""
        check_is_fitted(self)
        X = _shared(X)
        diagonals = np.empty((len(self.kernels_), num_samples(X.X)))
        for diagonal, (name, kernel) in zip(diagonals, self.kernels_, strict=True):
            with naming(f"kernel {name!r}"):
                diagonal[...] = kernel.diag(X)
        return diagonals

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield the columns that fitted kernels compare, see :meth:`Kernel.compared_columns`."""
        check_is_fitted(self)
        X = _shared(X)
        for _, kernel in self.kernels_:
            yield from kernel.compared_columns(X)

    def gram_of(self, kernels: np.ndarray, X: SharedTable, out: np.ndarray) -> KernelStack:
        """Return a checked Gram stack of the kernels at these positions, stored in `out`.

        `out` has the shape (number of kernels, rows, rows).
        """
        union = self.subset(kernels)
        # A new cache, which is dropped with the kernels: there may be very many.
        evaluate_into(out, union.kernels_, SharedTable(X.X), None)
        psd = all(kernel.is_psd for _, kernel in union.kernels_)
        return check_stack(KernelStack(out, union.names_, gram=True, checked=psd))

    def subset(self, indices: np.ndarray) -> KernelUnion:
        """Return a fitted union of the kernels at `indices` (integers, a slice or a mask)."""
        check_is_fitted(self)
        chosen = np.atleast_1d(np.arange(len(self.kernels_))[indices])
        union = type(self)([self._pairs[j] for j in chosen])
        union.kernels_ = [self.kernels_[j] for j in chosen]
        return union

    def learning_from_targets(self) -> np.ndarray:
        """Return the positions of fitted kernels that learn from targets, as RelevanceRBF does."""
        check_is_fitted(self)
        return np.flatnonzero([kernel.learns_from_targets for _, kernel in self.kernels_])

    @property
    def names_(self) -> list[str]:
        check_is_fitted(self)
        return [name for name, _ in self.kernels_]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of the kernels as ``name__parameter``."""
        return self._get_params("_pairs", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set ``kernels``, a kernel by its name, or parameters as ``name__parameter``."""
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
        pairs = list(self._pairs)
        if len(pairs) > _MOST_BLOCKS:
            pairs = [*pairs[:_MOST_BLOCKS], ("…", f"{len(pairs) - _MOST_BLOCKS} more kernels")]
        names, kernels = zip(*pairs, strict=True)
        return VisualBlock("parallel", kernels, names=names)


def rbf_grid(
    widths: Iterable[float], gamma: float | str = 0.5, columns: Columns = None
) -> KernelUnion:
    """Return Gaussian kernels of several widths on the same columns.

    Parameters
    ----------
    widths : iterable of float
        With ``gamma=0.5`` these are the standard deviations σ.
    gamma : float or {"scale", "auto", "median"}, default=0.5
        With "median" the widths are relative to the median distance of training rows.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The compared columns; None means all.

    Returns
    -------
    union : KernelUnion
        The kernels, not fitted.

    Examples
    --------
    >>> from manykernels.kernels import rbf_grid
    >>> [name for name, _ in rbf_grid([0.1, 1, 10]).kernels]
    ['rbf(0.1)', 'rbf(1)', 'rbf(10)']
    """
    return KernelUnion([(f"rbf({w:g})", RBF(gamma, float(w), columns=columns)) for w in widths])


def _shared(X: object) -> SharedTable:
    return SharedTable.of(one_or_views(X))


# -- Gaussian kernels of very many sets of columns, stored as a few arrays ------------------------


@storable
class RBFSubsets(KernelUnion):
    """Gaussian kernels of random sets of columns, each of several widths.

    This :class:`KernelUnion` of ``n_subsets * len(widths)`` kernels creates them on demand, so
    that a million kernels take no more memory than their column numbers. It is meant for ``p=1``,
    where estimators with the solver "newton" compute kernels on demand if their matrices do not
    fit into memory.

    Parameters
    ----------
    n_subsets : int
        Number of sets of columns. Some may be equal if there are few columns.
    widths : sequence of float, default=(1.0,)
        Widths of the kernels of each set, as for :class:`RBF`.
    sizes : tuple of two int, default=None
        Smallest and largest number of columns of a set; numbers between them are equally likely.
        None means from one to all.
    gamma : float or {"scale", "auto", "median"}, default="scale"
        Bandwidth of each set, as for :class:`RBF`.
    random_state : int, RandomState instance or None, default=0
        Controls which columns are drawn.

    Attributes
    ----------
    kernels_ : sequence of (str, RBF)
        The fitted kernels, created on access. Kernels of one set are consecutive.
    names_ : sequence of str
        Names such as ``"subset17:rbf(0.5)"``.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> from manykernels.kernels import RBFSubsets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 10))
    >>> y = X[:, 3] * X[:, 7] > 0
    >>> kernels = RBFSubsets(500, widths=[0.5, 1, 2], sizes=(1, 3))
    >>> model = MKFDA(kernels, p=1, reg=10.0).fit(X, y)
    >>> len(model.weights_), model.kernel_names_[7]
    (1500, 'subset2:rbf(1)')
    >>> name, best = model.union_.kernels_[int(model.weights_.argmax())]
    >>> best.columns, best.width
    ([3, 7], 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_subsets": [Interval(Integral, 1, None, closed="left")],
        "widths": ["array-like"],
        "sizes": [tuple, list, None],
        "gamma": gamma_options("scale", "auto", "median"),
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_subsets: int,
        widths: Sequence[float] = (1.0,),
        sizes: tuple[int, int] | None = None,
        gamma: float | str = "scale",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_subsets = n_subsets
        self.widths = widths
        self.sizes = sizes
        self.gamma = gamma
        self.random_state = random_state

    # -- single kernels --------------------------------------------------------------------

    @property
    def kernels(self) -> Sequence[tuple[str, Any]]:  # type: ignore[override]
        """Sequence of the kernels, whose items exist once the union is fitted."""
        return _Made(self.n_subsets * len(self.widths), self._pair)

    @property
    def kernels_(self) -> Sequence[tuple[str, RBF]]:  # type: ignore[override]
        check_is_fitted(self, "gammas_")
        return _Made(len(self.gammas_) * len(self.widths_), self._pair)

    @property
    def names_(self) -> Sequence[str]:  # type: ignore[override]
        check_is_fitted(self, "gammas_")
        return _Made(len(self.gammas_) * len(self.widths_), self._name)

    @property  # type: ignore[misc]
    def _pairs(self) -> Any:
        return self.kernels

    def _name(self, position: int) -> str:
        subset, which = divmod(position, len(self.widths_))
        return f"subset{subset}:rbf({self.widths_[which]:g})"

    def _pair(self, position: int) -> tuple[str, RBF]:
        if not hasattr(self, "gammas_"):
            raise ValueError(
                "The kernels of RBFSubsets are not known before it is fitted, to one table "
                "without missing values; use other kernels with several views or missing values."
            )
        subset, which = divmod(position, len(self.widths_))
        columns = self._columns_of(subset).tolist()
        kernel = RBF(self.gamma, self.widths_[which], columns=columns)
        kernel.columns_, kernel.n_features_in_ = columns, len(columns)
        kernel.gamma_ = float(self.gammas_[subset])
        return self._name(position), kernel

    def _columns_of(self, subset: int) -> np.ndarray:
        return self._columns[self._starts[subset] : self._starts[subset + 1]]

    # -- interface of a union --------------------------------------------------------------

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the sets of columns and learn gamma of each; arguments as in :meth:`Kernel.fit`."""
        self._validate_params()
        widths = self._checked_widths()
        table = _numbers(X)
        weights = sample_weights(sample_weight, table)
        counted, weights = table[weights > 0.0], weights[weights > 0.0]
        least, most = self._checked_sizes(table.shape[1])
        rng = check_random_state(self.random_state)
        lengths = rng.randint(least, most + 1, self.n_subsets)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.empty(starts[-1], dtype=np.int32)
        gammas = np.empty(self.n_subsets)
        rule = GAMMA_RULES[self.gamma] if isinstance(self.gamma, str) else None
        for subset, (start, stop) in enumerate(pairwise(starts)):
            chosen = columns[start:stop]
            chosen[...] = np.sort(rng.permutation(table.shape[1])[: stop - start])
            gammas[subset] = self.gamma if rule is None else rule(RBF, counted[:, chosen], weights)
        self.widths_, self.gammas_ = widths, gammas
        self._starts, self._columns = starts, columns
        return self

    def _checked_widths(self) -> list[float]:
        widths = [float(width) for width in self.widths]
        if not widths or not all(0.0 < width < np.inf for width in widths):
            raise ValueError(f"widths must be one or more positive numbers, got {self.widths!r}.")
        return widths

    def _checked_sizes(self, n_columns: int) -> tuple[int, int]:
        sizes = (1, n_columns) if self.sizes is None else tuple(self.sizes)
        integers = len(sizes) == 2 and all(isinstance(size, Integral) for size in sizes)
        if not (integers and 1 <= sizes[0] <= sizes[1] <= n_columns):
            raise ValueError(
                "sizes must be the smallest and the largest number of columns of a set, two "
                f"integers from 1 to the {n_columns} columns of X; got {self.sizes!r}."
            )
        return int(sizes[0]), int(sizes[1])

    def subset(self, indices: np.ndarray) -> KernelUnion:
        """Return a fitted :class:`KernelUnion` of the kernels at `indices`."""
        chosen = np.atleast_1d(np.arange(len(self.kernels_))[indices])
        kernels = [self.kernels_[j] for j in chosen]
        union = KernelUnion(kernels)
        union.kernels_ = kernels
        return union

    def learning_from_targets(self) -> np.ndarray:
        """Return no positions: these kernels learn from rows only."""
        return np.zeros(0, dtype=np.intp)

    def diag(self, X: object) -> np.ndarray:
        """Return the self-similarities of a Gaussian, which are one."""
        return np.ones((len(self.kernels_), _numbers(X).shape[0]))

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield all columns, as numbers: each may be in a set."""
        yield "", list(range(_numbers(X).shape[1])), False

    def gram_of(self, kernels: np.ndarray, X: SharedTable, out: np.ndarray) -> KernelStack:
        """Return a Gram stack of some kernels; kernels of one set share its distances."""
        table, before, names = _numbers(X), -1, []
        for matrix, position in zip(out, kernels.tolist(), strict=True):
            name, kernel = self._pair(position)
            subset = position // len(self.widths_)
            with naming(f"kernel {name!r}"), np.errstate(over="ignore", invalid="ignore"):
                if subset != before:
                    comparison = SquaredDistances(table[:, kernel.columns], None)
                    distances = comparison.whole()
                    # Exactly symmetric, and faster than copying a triangle.
                    distances = 0.5 * (distances + distances.T)
                kernel._from_compared(distances, matrix)
                if subset != before:
                    # One check per set: all widths are finite if one is.
                    check_filled(matrix, kernel, comparison)
            before = subset
            names.append(name)
        return KernelStack(out, names, gram=True, checked=True)

    # -- parameters ------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the union, not those of the kernels."""
        return BaseEstimator.get_params(self, deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by their names."""
        return BaseEstimator.set_params(self, **params)

    def _sk_visual_block_(self) -> VisualBlock:
        return VisualBlock("single", self, names=type(self).__name__, name_details=str(self))


class _Made(Sequence):  # type: ignore[type-arg]
    """Sequence whose items are created on access."""

    def __init__(self, length: int, make: Callable[[int], Any]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> list[Any]: ...
    def __getitem__(self, which: Any) -> Any:
        chosen = range(self._length)[which]
        return self._make(chosen) if isinstance(chosen, int) else [self._make(j) for j in chosen]

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<{self._length}: {shown}{', …' if self._length > 3 else ''}>"


def _numbers(X: object) -> Any:
    """Return the table as validated numbers, computed once for all kernels that share it."""
    return RBF()._chosen(SharedTable.of(one_or_views(X)), None)
