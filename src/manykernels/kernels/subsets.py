"""RBFSubsets: Gaussian kernels of very many sets of columns, held as a few arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Self, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._sklearn import Interval, VisualBlock, check_sample_weight
from ._scales import GAMMA_RULES, gamma_options
from .comparisons import SquaredDistances
from .evaluation import check_filled
from .stack import KernelStack
from .standard import RBF
from .tables import SharedTable, naming
from .union import KernelUnion
from .views import one_or_views


class RBFSubsets(KernelUnion):
    """Gaussian kernels of random sets of columns, each of several widths.

    It is a :class:`KernelUnion` of ``n_subsets * len(widths)`` kernels, made one by one when they
    are asked for, so that a million of them take no more memory than the column numbers. Meant for
    ``p=1``, where estimators with the solver "newton" compute kernels on demand if their matrices
    would not fit into memory.

    Parameters
    ----------
    n_subsets : int
        Number of sets of columns. Some may be equal if there are few columns.
    widths : sequence of float, default=(1.0,)
        As for :class:`RBF`, for each set.
    sizes : tuple of two int, default=None
        Fewest and most columns of a set, which are all as likely. None means from one to all.
    gamma : float or {"scale", "auto", "median"}, default="scale"
        As for :class:`RBF`, for each set.
    random_state : int, RandomState instance or None, default=0
        Which columns are drawn.

    Attributes
    ----------
    kernels_ : sequence of (str, RBF)
        The kernels, fitted, each made when it is asked for. Those of one set follow each other.
    names_ : sequence of str
        Such as ``"subset17:rbf(0.5)"``.

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
        random_state: Any = 0,
    ) -> None:
        self.n_subsets = n_subsets
        self.widths = widths
        self.sizes = sizes
        self.gamma = gamma
        self.random_state = random_state

    # -- the kernels, one by one -----------------------------------------------------------

    @property
    def kernels(self) -> Sequence[tuple[str, Any]]:  # type: ignore[override]
        """As many as there will be; what they are is known once it is fitted."""
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
                "without missing values; with several views, or missing values, pass other ones."
            )
        subset, which = divmod(position, len(self.widths_))
        columns = self._columns_of(subset).tolist()
        kernel = RBF(self.gamma, self.widths_[which], columns=columns)
        kernel.columns_, kernel.n_features_in_ = columns, len(columns)
        kernel.gamma_ = float(self.gammas_[subset])
        return self._name(position), kernel

    def _columns_of(self, subset: int) -> np.ndarray:
        return self._columns[self._starts[subset] : self._starts[subset + 1]]

    # -- what a union does -----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the sets of columns and learn gamma of each; arguments as for :class:`RBF`."""
        self._validate_params()
        widths = self._checked_widths()
        table = _numbers(X)
        weights = check_sample_weight(
            sample_weight, table, dtype=np.float64, ensure_non_negative=True
        )
        counted, weights = table[weights > 0.0], weights[weights > 0.0]
        least, most = self._checked_sizes(table.shape[1])
        rng = check_random_state(self.random_state)
        lengths = rng.randint(least, most + 1, self.n_subsets)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.empty(starts[-1], dtype=np.int32)
        gammas = np.empty(self.n_subsets)
        rule = GAMMA_RULES[self.gamma] if isinstance(self.gamma, str) else None
        for subset, (start, stop) in enumerate(pairwise(starts)):
            own = columns[start:stop]
            own[...] = np.sort(rng.permutation(table.shape[1])[: stop - start])
            gammas[subset] = self.gamma if rule is None else rule(RBF, counted[:, own], weights)
        self.widths_, self.gammas_ = widths, gammas
        self._starts, self._columns = starts, columns
        return self

    def _checked_widths(self) -> list[float]:
        widths = [float(width) for width in self.widths]
        if not widths or not all(0.0 < width < np.inf for width in widths):
            raise ValueError(
                f"widths must be positive numbers, at least one; got {self.widths!r}."
            )
        return widths

    def _checked_sizes(self, n_columns: int) -> tuple[int, int]:
        sizes = (1, n_columns) if self.sizes is None else tuple(self.sizes)
        whole = len(sizes) == 2 and all(isinstance(size, Integral) for size in sizes)
        if not (whole and 1 <= sizes[0] <= sizes[1] <= n_columns):
            raise ValueError(
                "sizes are the fewest and the most columns of a set, two integers from 1 to the "
                f"{n_columns} columns of X; got {self.sizes!r}."
            )
        return int(sizes[0]), int(sizes[1])

    def subset(self, indices: Any) -> KernelUnion:
        """Fitted :class:`KernelUnion` of the kernels at `indices` only."""
        made = [self.kernels_[j] for j in np.atleast_1d(np.arange(len(self.kernels_))[indices])]
        union = KernelUnion(made)
        union.kernels_ = made
        return union

    def diag(self, X: Any) -> np.ndarray:
        """Self-similarities, which are one."""
        return np.ones((len(self.kernels_), _numbers(X).shape[0]))

    def compared_columns(self, X: Any) -> Iterator[tuple[str, list[int], bool]]:
        """All columns, as numbers: each set may be of any."""
        yield "", list(range(_numbers(X).shape[1])), False

    def gram_of(self, kernels: np.ndarray, X: SharedTable, out: np.ndarray) -> KernelStack:
        """As that of any union; kernels of one set share its distances."""
        table, before, names = _numbers(X), -1, []
        for matrix, position in zip(out, kernels.tolist(), strict=True):
            name, kernel = self._pair(position)
            subset = position // len(self.widths_)
            with naming(f"kernel {name!r}"), np.errstate(over="ignore", invalid="ignore"):
                if subset != before:
                    comparison = SquaredDistances(table[:, kernel.columns], None)
                    distances = comparison.whole()
                    # Exactly symmetric, and in less time than by triangles.
                    distances = 0.5 * (distances + distances.T)
                kernel._from_compared(distances, matrix)
                if subset != before:
                    # If one is finite then all widths are: none is above one.
                    check_filled(matrix, kernel, comparison)
            before = subset
            names.append(name)
        return KernelStack(out, names, gram=True, checked=True)

    # -- parameters ------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters above, not those of the kernels."""
        return BaseEstimator.get_params(self, deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by their names."""
        return BaseEstimator.set_params(self, **params)

    def _sk_visual_block_(self) -> VisualBlock:
        return VisualBlock("single", self, names=type(self).__name__, name_details=str(self))


class _Made(Sequence):  # type: ignore[type-arg]
    """A sequence whose items are made when they are asked for."""

    def __init__(self, length: int, make: Callable[[int], Any]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> list[Any]: ...
    def __getitem__(self, which: Any) -> Any:
        found = range(self._length)[which]
        return self._make(found) if isinstance(found, int) else [self._make(j) for j in found]

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<{self._length}: {shown}{', …' if self._length > 3 else ''}>"


def _numbers(X: Any) -> Any:
    """The table as numbers, checked once for all that share it."""
    return RBF()._chosen(SharedTable.of(one_or_views(X)), None)
