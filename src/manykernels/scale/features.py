"""Explicit features of kernels: maps z with ``k(x, y) ≈ z(x)·z(y)``.

Users choose an *approximation*: :class:`Nystrom`, :class:`RandomFeatures` or
:class:`ExactFeatures`. Fitted to kernels and a sample of rows, it gives a :class:`FeatureMap`,
which turns blocks of rows into features of all kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from math import prod
from numbers import Integral
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..kernels import Kernel, KernelUnion, Mismatch
from ..kernels.checks import check_finite
from ..kernels.completion import PartialKernel, explaining_lacking_rows
from ..kernels.composition import After, Constant, Product, Sum
from ..kernels.strings import StringKernel, Words
from ..kernels.tables import SharedTable, Table, naming
from ..kernels.views import one_or_views
from ..kernels.words import Sequences, Term
from ..utils.numerics import require_memory
from ..utils.sklearn import Interval, num_samples, safe_indexing
from ..utils.storable import storable

# Default maximum number of features, of all kernels together or of one exact kernel: the
# matrix of their products takes 128 MB.
MOST_FEATURES = 4000
# Rows of a sample on which the error of an approximation is measured: the relative error of the
# norm of a 500 × 500 matrix is a few percent, and it takes a tenth of a second for ten kernels.
_ROWS_OF_ERROR = 500
# Rows whose features are computed at once.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class FeatureMap(ABC):
    """Features of the kernels of a fitted `union`.

    Attributes
    ----------
    union : KernelUnion
    spherical : bool
        Whether the features of each kernel are divided by ``√k(x, x)``.
    """

    union: KernelUnion
    spherical: bool

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Number of features of every kernel."""

    @abstractmethod
    def _write(self, X: Table, out: np.ndarray) -> None:
        """Write the features of X, before `spherical`, into `out`, (D, n_rows)."""

    @property
    def n_features(self) -> int:
        """Number of features of all kernels together, D."""
        return sum(self.sizes)

    @property
    def kernel_of(self) -> np.ndarray:
        """Number of the kernel that each feature belongs to, (D,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def blocks(self) -> list[slice]:
        """Slices of the features of every kernel."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        return [slice(ends[j], ends[j + 1]) for j in range(len(self.sizes))]

    @property
    def made_from(self) -> np.ndarray:
        """Numbers of the sample rows that the features were built from.

        On these rows the approximation error is smaller than on others.
        """
        return np.empty(0, dtype=np.intp)

    @property
    def attributes(self) -> dict[str, Any]:
        """Public fitted attributes."""
        return {}

    def write(self, X: Table, out: np.ndarray) -> None:
        """Write the features of X into the C-ordered array `out`, (D, n_rows)."""
        self._write(X, out)
        if self.spherical:
            lengths = np.sqrt(self.union.diag(X))
            for block, length in zip(self.blocks, lengths, strict=True):
                out[block] /= np.where(length > 0.0, length, 1.0)

    def __call__(self, X: Table) -> np.ndarray:
        """Return the features of X, (n_rows, D)."""
        n_rows = int(num_samples(X))
        features = np.empty((n_rows, self.n_features))
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, n_rows))
            transposed = np.empty((self.n_features, len(rows)))
            self.write(safe_indexing(X, rows), transposed)
            features[rows] = transposed.T
        return features

    def errors(self, X: Table) -> np.ndarray:
        """Return the relative error ``‖P(K − ZZᵀ)P‖/‖PKP‖`` of every kernel, P centring."""
        stack, features = self.union(X), self(X)
        errors = np.empty(len(self.sizes))
        for j, block in enumerate(self.blocks):
            exact = stack.kernel(j)
            if self.spherical:
                lengths = np.sqrt(np.diagonal(exact))
                lengths = np.where(lengths > 0.0, lengths, 1.0)
                exact = exact / lengths / lengths[:, None]
            exact = _centred(exact)
            norm = np.linalg.norm(exact)
            centred = features[:, block] - features[:, block].mean(axis=0)
            errors[j] = np.linalg.norm(exact - centred @ centred.T) / norm if norm > 0.0 else 0.0
        return errors


def _centred(matrix: np.ndarray) -> np.ndarray:
    rows = matrix - matrix.mean(axis=0)
    return rows - rows.mean(axis=1)[:, None]


@dataclass(eq=False, repr=False, kw_only=True)
class Approximation(BaseEstimator, ABC):
    """Base class of approximations of kernels by explicit features.

    Parameters
    ----------
    block_size : int, optional
        Number of rows processed at once, by default 4096. Memory grows with it; results do not
        depend on it.
    random_state : int, default=0
        Seed of all random draws: rows for widths, landmarks, frequencies, folds.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "block_size": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    block_size: int | None = None
    random_state: int = 0

    @abstractmethod
    def features_of(
        self, union: KernelUnion, sample: Table, n_rows: int | None, *, spherical: bool
    ) -> FeatureMap:
        """Return the feature map of fitted kernels, built from the table `sample`.

        `n_rows` is the number of all training rows, None if it is not known.
        """


def require_room(n_features: int, n_targets: int, copies: int, n_kernels: int) -> None:
    """Raise MemoryError if `copies` moments of the features do not fit into memory."""
    size = n_features + 1 + n_targets
    try:
        require_memory((copies, size, size), "The sums of products of features")
    except MemoryError as error:
        first = str(error).split(". ")[0]
        raise MemoryError(
            f"{first}. {n_kernels} kernels have {n_features} features. Use fewer features of each "
            "(n_landmarks=…, n_features=…), fewer kernels, or fewer folds."
        ) from error


def rows_for_errors(features: FeatureMap, sample: Table, seed: int) -> Table:
    """Return sample rows on which the approximation error is measured.

    Rows that the features were built from are left out, because their error is zero, unless
    there are no others.
    """
    n_rows = int(num_samples(sample))
    others = np.setdiff1d(np.arange(n_rows), features.made_from)
    if len(others) < 2:  # a single row is zero after centring
        others = np.arange(n_rows)
    chosen = np.random.default_rng(seed).permutation(others)[:_ROWS_OF_ERROR]
    return safe_indexing(sample, np.sort(chosen))


# -- Maps of single kernels: features z with ``k(x, y) = z(x)·z(y)``, exactly or in the mean ------
#
# :func:`map_of` finds the map of a fitted kernel by its type. This section has the maps of
# composite kernels, built from the maps of their parts:
#
#     k₁ + k₂            the features of both, one after the other
#     k₁ k₂              all products of a feature of one with a feature of the other
#     k(t(x), t(y))      the features of k at t(x): chosen columns, a transformer's output, a view
#
# A number c ≥ 0 is a kernel with one feature, √c, so that c k is a product as well.


#: Transforms a table for a part of the kernel; it can be pickled.
Step = Callable[[Any], Any]

_ANY_KERNEL = "use Nystrom(), which takes any kernel"


class KernelMap(ABC):
    """Feature map of one kernel; it can be pickled."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features."""

    @abstractmethod
    def __call__(self, X: Table) -> np.ndarray:
        """Return the features of a table or SharedTable, (n_rows, n_features)."""

    @property
    def factors(self) -> list[KernelMap]:
        """Maps of the kernels whose product this kernel is."""
        return [self]

    def merged(self, other: KernelMap) -> KernelMap | None:
        """Return the map of the product of both kernels if it needs no products of features."""
        return None


@dataclass(frozen=True)
class RowMap(KernelMap):
    """Feature map applied to a table after some `steps`."""

    steps: tuple[Step, ...]

    def __call__(self, X: Table) -> np.ndarray:
        return self._features(through(self.steps, X))

    @abstractmethod
    def _features(self, rows: Any) -> np.ndarray:
        """Return the features of rows validated by the kernel."""


def through(steps: tuple[Step, ...], X: Table) -> Table:
    """Apply steps to a table, one after the other."""
    for step in steps:
        X = step(X)
    return X


@dataclass(frozen=True)
class Request:
    """Requirements on the feature map of a kernel.

    Attributes
    ----------
    sample : SharedTable, or rows validated by the kernel
        Rows that the map is built from.
    most : int
        Maximum number of features of an exact map.
    parameter : str
        Name of the approximation's parameter that sets `most`.
    n_pairs : int or None
        Number of pairs of random features; None if only exact features are allowed.
    rng : Generator or None
        Generator of random features.
    steps : tuple
        Steps that turned the table into `sample`.
    """

    sample: Any
    most: int
    parameter: str
    n_pairs: int | None = None
    rng: np.random.Generator | None = None
    steps: tuple[Step, ...] = ()

    def through(self, *steps: Step) -> Self:
        """Return the request for the table after further steps."""
        return replace(self, sample=through(steps, self.sample), steps=(*self.steps, *steps))

    def of_rows(self, kernel: Kernel) -> Self:
        """Return the request for the columns of a kernel, validated by it."""
        return self.through(ValidatedRows(kernel))

    def require(self, n_features: int, kernel: Kernel) -> None:
        """Raise ValueError if a kernel has more features than allowed."""
        if n_features > self.most:
            refuse(
                kernel,
                f"has {n_features} features, more than {self.parameter}={self.most}: raise it, or "
                f"{_ANY_KERNEL}.",
            )


def refuse(kernel: Kernel, why: str) -> NoReturn:
    """Raise ValueError about a kernel without a feature map."""
    raise ValueError(f"{kernel._title} {why}")


# Steps are objects with attributes rather than functions, so that models can be stored.


@storable
@dataclass(frozen=True)
class ValidatedRows:
    """Columns of a fitted kernel, validated by it."""

    kernel: Kernel

    def __call__(self, X: Table) -> Any:
        return self.kernel._prepared(X)[0]


@singledispatch
def map_of(kernel: Kernel, request: Request) -> KernelMap:
    """Return the feature map of a fitted kernel, by its type.

    ``map_of.register`` adds the map of a new kernel; a subclass with another formula than its base
    needs its own map, too.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    request : Request

    Returns
    -------
    map : KernelMap
        Has `n_features`; ``map(X)`` returns the features of rows, (n_rows, n_features).

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Linear
    >>> from manykernels.scale.features import Request, map_of
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> kernel = (4 * Linear().on([1]) + 1).fit(X)
    >>> map_of(kernel, Request(X, 100, "max_features"))(X)
    array([[4., 1.],
           [8., 1.]])
    """
    refuse(kernel, f"has no known explicit features: {_ANY_KERNEL}.")


def refuse_indefinite(kernel: Kernel) -> None:
    """Raise ValueError if a kernel is not positive semi-definite with its parameters."""
    if not kernel.is_psd:
        refuse(
            kernel,
            "is not positive semi-definite with these parameters, so it has no features: choose "
            f"others than {kernel!r}.",
        )


# -- numbers, sums and products --------------------------------------------------------------


@storable
@dataclass(frozen=True)
class ConstantMap(RowMap):
    """One constant feature."""

    value: float

    @property
    def n_features(self) -> int:
        return 1

    def _features(self, rows: Table) -> np.ndarray:
        return np.full((num_samples(SharedTable.of(rows).X), 1), self.value)


@map_of.register
def _of_constant(kernel: Constant, request: Request) -> KernelMap:
    refuse_indefinite(kernel)
    return ConstantMap(request.steps, float(np.sqrt(kernel.value)))


@storable
@dataclass(frozen=True)
class SumMap(KernelMap):
    """Features of the terms of a sum of kernels, one after the other."""

    terms: list[KernelMap]

    @property
    def n_features(self) -> int:
        return sum(term.n_features for term in self.terms)

    def __call__(self, X: Table) -> np.ndarray:
        return np.hstack([term(X) for term in self.terms])


@map_of.register
def _of_sum(kernel: Sum, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    return SumMap([map_of(term, request) for term in kernel._parts()])


@storable
@dataclass(frozen=True)
class ProductMap(KernelMap):
    """Products of features, one of each factor of a product of kernels."""

    own: list[KernelMap]

    @classmethod
    def of(cls, left: KernelMap, right: KernelMap) -> ProductMap:
        """Return the map of the product of two kernels, with as few factors as possible."""
        factors = list(left.factors)
        for new in right.factors:
            for place, factor in enumerate(factors):
                if (merged := factor.merged(new)) is not None:
                    factors[place] = merged
                    break
            else:
                factors.append(new)
        return cls(factors)

    @property
    def factors(self) -> list[KernelMap]:
        return self.own

    @property
    def n_features(self) -> int:
        return prod(factor.n_features for factor in self.own)

    def __call__(self, X: Table) -> np.ndarray:
        features = self.own[0](X)
        for factor in self.own[1:]:
            products = features[:, :, None] * factor(X)[:, None, :]
            features = products.reshape(len(features), -1)
        return features


@map_of.register
def _of_product(kernel: Product, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    product = ProductMap.of(*(map_of(term, request) for term in kernel._parts()))
    # A constant factor adds no features.
    if product.n_features > max(factor.n_features for factor in product.factors):
        request.require(product.n_features, kernel)
    return product


# -- transformed rows ------------------------------------------------------------------------


@map_of.register
def _of_transformed(kernel: After, request: Request) -> KernelMap:
    return map_of(kernel.kernel_, request.through(TransformedRows(kernel)))


@storable
@dataclass(frozen=True)
class TransformedRows:
    """Output of a transformer, computed once for all kernels with an equal transformer."""

    kernel: After

    def __call__(self, X: Table) -> SharedTable:
        return self.kernel._output(self.kernel._prepared(X)[0])


@map_of.register
def _of_part(kernel: PartialKernel, request: Request) -> KernelMap:
    return map_of(kernel.kernel_, request.through(CompleteRows(kernel)))


@storable
@dataclass(frozen=True)
class CompleteRows:
    """Table of a kernel, such as a view, in which no row may be missing."""

    kernel: PartialKernel

    def __call__(self, X: Table) -> SharedTable:
        has, table = self.kernel._rows(SharedTable.of(X))
        if not has.all():
            raise ValueError(
                f"{self.kernel._title}: {np.count_nonzero(~has)} of {len(has)} rows lack the data "
                f"of this kernel, the first is row {int(np.argmin(has))}. Features need complete "
                "data: leave these rows out, or fill in the missing ones."
            )
        return table


# -- all kernels of a union ------------------------------------------------------------------


@storable
@dataclass(frozen=True)
class MapsOfKernels(FeatureMap):
    """Features of the kernels of a union by one map each; `maps` are in its order."""

    maps: list[KernelMap]

    @classmethod
    def of(
        cls,
        union: KernelUnion,
        sample: Table,
        request: Callable[[SharedTable, int], Request],
        *,
        spherical: bool,
    ) -> MapsOfKernels:
        """Return the maps of a fitted union; ``request(table, j)`` has the needs of kernel j."""
        check_is_fitted(union)
        table, maps = SharedTable.of(one_or_views(sample)), []
        with explaining_lacking_rows(union, table.X):
            for j, (name, kernel) in enumerate(union.kernels_):
                with naming(f"kernel {name!r}"):
                    maps.append(map_of(kernel, request(table, j)))
        return cls(union, spherical, maps)

    @property
    def sizes(self) -> list[int]:
        return [features.n_features for features in self.maps]

    def _write(self, X: Table, out: np.ndarray) -> None:
        # Kernels of the same columns, or after the same transformer, share these computations.
        table = SharedTable.of(one_or_views(X))
        with explaining_lacking_rows(self.union, table.X):
            for name, feature_map, block in zip(
                self.union.names_, self.maps, self.blocks, strict=True
            ):
                with naming(f"kernel {name!r}"), np.errstate(over="ignore", invalid="ignore"):
                    features = feature_map(table)
                check_finite(features, name)
                out[block] = features.T


# -- Maps of kernels of strings: counts of all words over an alphabet -----------------------------
#
# A kernel ``Σ_t c_t C_t C_tᵀ`` of counts with c_t ≥ 0 has the features ``√c_t C_t``, one for each
# word over the letters of training, whether it occurs or not. Words with other letters have none.


@storable
@dataclass(frozen=True)
class WordsMap(RowMap):
    """Counts of words; `terms` are (factor, kind of words, number of words)."""

    kernel: StringKernel
    terms: list[tuple[float, Term, int]]

    @property
    def n_features(self) -> int:
        return sum(n_words for _, _, n_words in self.terms)

    def _features(self, rows: Sequences) -> np.ndarray:
        counts = self._counted(rows)
        if self.kernel.normalize:
            # The norm counts words of other letters, too, as in the kernel.
            counts /= np.sqrt(self.kernel._squares(rows))[:, None]
        return counts

    def _counted(self, strings: Sequences) -> np.ndarray:
        letters = self.kernel.letters_
        return np.hstack(
            [
                np.sqrt(factor) * _counts(term, strings, letters, n_words)
                for factor, term, n_words in self.terms
            ]
        )


def _counts(term: Term, strings: Sequences, letters: str, n_words: int) -> np.ndarray:
    """Return the counts of all words over `letters`, (n_strings, n_words)."""
    places, weights = [], []
    for words in term.occurrences(strings, letters):
        word = np.zeros(len(words.rows), np.int64) if words.place is None else words.place
        known = np.ones(len(words.rows), dtype=bool)
        for digit in words.digits:
            # The digit 0 is any other letter.
            word = word * len(letters) + digit - 1
            known &= digit > 0
        places.append(words.rows[known] * n_words + word[known])
        weights.append(np.full(len(places[-1]), words.weight))
    total = np.bincount(
        np.concatenate(places), np.concatenate(weights), minlength=len(strings) * n_words
    )
    return total.reshape(len(strings), n_words)


def _n_words(term: Term, strings: Sequences, letters: str) -> int:
    """Return the number of words of a kind over `letters`."""
    words = next(iter(term.occurrences(strings, letters)))
    return words.n_places * len(letters) ** len(words.digits)


def _with_numbers(
    terms: list[tuple[float, Term]], kernel: StringKernel, request: Request
) -> list[tuple[float, Term, int]]:
    """Add the number of words to every term; raise ValueError if there are too many."""
    first = request.sample[:1]
    counted = [(factor, term, _n_words(term, first, kernel.letters_)) for factor, term in terms]
    request.require(sum(n_words for _, _, n_words in counted), kernel)
    return counted


@map_of.register
def _of_words(kernel: StringKernel, request: Request) -> KernelMap:
    terms = kernel._terms()
    if any(factor < 0.0 for factor, _ in terms):
        return map_of.dispatch(object)(kernel, request)
    request = request.of_rows(kernel)
    return WordsMap(request.steps, kernel, _with_numbers(terms, kernel, request))


@storable
@dataclass(frozen=True)
class NearWordsMap(WordsMap):
    """Counts of words of k letters that differ from each word at no more than m places.

    The counts n of words as they are, with an axis of n_letters for each place, are spread over
    the places one after the other: with n_d those at d places so far, another letter at the next
    place makes one more,

        n_d ← n_d + (Σ_letters n_{d−1} − n_{d−1})

    along the axis of this place; in the end all n_d with d ≤ m count.
    """

    def _counted(self, strings: Sequences) -> np.ndarray:
        kernel: Mismatch = self.kernel  # type: ignore[assignment]
        counts = super()._counted(strings)
        shape = (len(counts), *[len(kernel.letters_)] * kernel.k)
        at = [counts.reshape(shape), *(np.zeros(shape) for _ in range(kernel.m))]
        for axis in range(1, kernel.k + 1):
            for d in range(kernel.m, 0, -1):
                at[d] = at[d] + at[d - 1].sum(axis=axis, keepdims=True) - at[d - 1]
        return sum(at).reshape(counts.shape)  # type: ignore[union-attr]


@map_of.register
def _of_near_words(kernel: Mismatch, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    words = Words(tuple(range(kernel.k)), kernel.k, kernel.letters_)
    return NearWordsMap(request.steps, kernel, _with_numbers([(1.0, words)], kernel, request))
