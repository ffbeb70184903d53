"""Explicit features of kernels: maps z with ``k(x, y) ≈ z(x)·z(y)``, and what makes them.

An *approximation* is what users choose: :class:`Nystrom`, :class:`RandomFeatures`,
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
from ..kernels.tables import SharedTable, naming
from ..kernels.views import one_or_views
from ..kernels.words import Sequences, Term
from ..utils.numerics import require_memory
from ..utils.sklearn import Interval, num_samples, safe_indexing
from ..utils.storable import storable

# Features that kernels have unless more are asked for, of all kernels or of an exact one: the
# matrix of products of as many takes 128 MB.
MOST_FEATURES = 4000
# Rows of a sample on which the error of an approximation is measured: the relative error of the
# norm of a 500 × 500 matrix is a few percent, and it takes a tenth of a second for ten kernels.
_ROWS_OF_ERROR = 500
# Rows whose features are computed at once where all are needed.
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
    def _write(self, X: Any, out: np.ndarray) -> None:
        """Features of the rows of X, before `spherical`, into `out`, (D, n_rows)."""

    @property
    def n_features(self) -> int:
        """D, of all kernels."""
        return sum(self.sizes)

    @property
    def kernel_of(self) -> np.ndarray:
        """Number of the kernel that each feature belongs to, (D,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def blocks(self) -> list[slice]:
        """The features of every kernel."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        return [slice(ends[j], ends[j + 1]) for j in range(len(self.sizes))]

    @property
    def made_from(self) -> np.ndarray:
        """Numbers of the rows of the sample that the features were made from.

        On these rows the features are nearer to the kernels than on any others.
        """
        return np.empty(0, dtype=np.intp)

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        return {}

    def write(self, X: Any, out: np.ndarray) -> None:
        """Features of the rows of X into the C-ordered `out`, (D, n_rows)."""
        self._write(X, out)
        if self.spherical:
            lengths = np.sqrt(self.union.diag(X))
            for block, own in zip(self.blocks, lengths, strict=True):
                out[block] /= np.where(own > 0.0, own, 1.0)

    def __call__(self, X: Any) -> np.ndarray:
        """Features of the rows of X, (n_rows, D)."""
        n_rows = int(num_samples(X))
        found = np.empty((n_rows, self.n_features))
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, n_rows))
            part = np.empty((self.n_features, len(rows)))
            self.write(safe_indexing(X, rows), part)
            found[rows] = part.T
        return found

    def errors(self, X: Any) -> np.ndarray:
        """Relative error ``‖P(K − ZZᵀ)P‖/‖PKP‖`` of every kernel on some rows, centred by P."""
        stack, features = self.union(X), self(X)
        found = np.empty(len(self.sizes))
        for j, block in enumerate(self.blocks):
            exact = stack.kernel(j)
            if self.spherical:
                lengths = np.sqrt(np.diagonal(exact))
                lengths = np.where(lengths > 0.0, lengths, 1.0)
                exact = exact / lengths / lengths[:, None]
            exact = _centred(exact)
            norm = np.linalg.norm(exact)
            own = features[:, block] - features[:, block].mean(axis=0)
            found[j] = np.linalg.norm(exact - own @ own.T) / norm if norm > 0.0 else 0.0
        return found


def _centred(matrix: np.ndarray) -> np.ndarray:
    rows = matrix - matrix.mean(axis=0)
    return rows - rows.mean(axis=1)[:, None]


class Approximation(BaseEstimator, ABC):
    """How kernels are replaced by explicit features, and how rows are passed over.

    Parameters
    ----------
    block_size : int, default=4096
        Rows that are processed at once. Memory grows with it, results do not depend on it.
    random_state : int, default=0
        Seed of everything that is drawn: rows to learn widths from, landmarks, frequencies, folds.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "block_size": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    block_size: int | None
    random_state: int

    @abstractmethod
    def features_of(
        self, union: KernelUnion, sample: Any, n_rows: int | None, *, spherical: bool
    ) -> FeatureMap:
        """The map of fitted kernels; what it takes from data, it takes from `sample`, a table.

        `n_rows` is the number of all training rows, None if it is not known.
        """


def require_room(n_features: int, n_targets: int, copies: int, n_kernels: int) -> None:
    """Raise MemoryError if the moments of so many features do not fit, `copies` of them."""
    size = n_features + 1 + n_targets
    try:
        require_memory((copies, size, size), "The sums of products of features")
    except MemoryError as error:
        first = str(error).split(". ")[0]
        raise MemoryError(
            f"{first}. {n_kernels} kernels have {n_features} features: use fewer features of each "
            "(n_landmarks=…, n_features=…), fewer kernels, or fewer folds."
        ) from error


def rows_for_errors(features: FeatureMap, sample: Any, seed: int) -> Any:
    """Rows of a sample on which errors are measured.

    They are none of those that the features were made from, on which there is no error at all;
    unless these are all.
    """
    n_rows = int(num_samples(sample))
    others = np.setdiff1d(np.arange(n_rows), features.made_from)
    if len(others) < 2:  # after centring, a row alone is nothing
        others = np.arange(n_rows)
    chosen = np.random.default_rng(seed).permutation(others)[:_ROWS_OF_ERROR]
    return safe_indexing(sample, np.sort(chosen))


# -- Maps of single kernels: features z with ``k(x, y) = z(x)·z(y)``, exactly or in the mean ------
#
# :func:`map_of` finds the map of a fitted kernel by its type. Here are those of kernels made of
# others, for which the maps of their parts are enough:
#
#     k₁ + k₂            the features of both, one after the other
#     k₁ k₂              all products of a feature of one with a feature of the other
#     k(t(x), t(y))      the features of k at t(x): chosen columns, a transformer's output, a view
#
# A number c ≥ 0 is a kernel with one feature, √c, so that c k is a product as well.


#: Turns a table into one that a part of the kernel looks at; it can be pickled.
Step = Callable[[Any], Any]

_ANY_KERNEL = "use Nystrom(), which takes any kernel"


class KernelMap(ABC):
    """Features of one kernel; it can be pickled."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many there are."""

    @abstractmethod
    def __call__(self, X: Any) -> np.ndarray:
        """Features of the rows of a table, which may be shared, (n_rows, n_features)."""

    @property
    def factors(self) -> list[KernelMap]:
        """Maps of kernels whose product this kernel is."""
        return [self]

    def merged(self, other: KernelMap) -> KernelMap | None:
        """The map of the product with another kernel, if it needs no products of features."""
        return None


@dataclass(frozen=True)
class RowMap(KernelMap):
    """Features of rows as a kernel compares them, which some `steps` make of a table."""

    steps: tuple[Step, ...]

    def __call__(self, X: Any) -> np.ndarray:
        return self._features(through(self.steps, X))

    @abstractmethod
    def _features(self, rows: Any) -> np.ndarray:
        """Features of rows that the kernel has validated."""


def through(steps: tuple[Step, ...], X: Any) -> Any:
    """What steps make of a table, one after the other."""
    for step in steps:
        X = step(X)
    return X


@dataclass(frozen=True)
class Request:
    """What is asked of the map of a kernel.

    Attributes
    ----------
    sample : SharedTable, or rows as the kernel compares them
        What a map takes from data, it takes from these rows.
    most : int
        The most features of an exact map.
    parameter : str
        Of the approximation, which sets `most`.
    n_pairs : int or None
        Random features are as many pairs; None if only exact ones will do.
    rng : Generator or None
        Draws random features.
    steps : tuple
        What was done to the table before it became `sample`.
    """

    sample: Any
    most: int
    parameter: str
    n_pairs: int | None = None
    rng: np.random.Generator | None = None
    steps: tuple[Step, ...] = ()

    def through(self, *steps: Step) -> Self:
        """The same for what further steps make of the table."""
        return replace(self, sample=through(steps, self.sample), steps=(*self.steps, *steps))

    def of_rows(self, kernel: Kernel) -> Self:
        """The same for the columns of a kernel, as it validates them."""
        return self.through(ValidatedRows(kernel))

    def require(self, n_features: int, kernel: Kernel) -> None:
        """Refuse a kernel with more features than may be."""
        if n_features > self.most:
            refuse(
                kernel,
                f"has {n_features} features, more than {self.parameter}={self.most}: raise it, or "
                f"{_ANY_KERNEL}.",
            )


def refuse(kernel: Kernel, why: str) -> NoReturn:
    """Raise an error about a kernel without a map."""
    raise ValueError(f"{kernel._title} {why}")


# Steps are objects with attributes rather than functions, so that models can be stored.


@storable
@dataclass(frozen=True)
class ValidatedRows:
    """The columns of a fitted kernel, as it validates them."""

    kernel: Kernel

    def __call__(self, X: Any) -> Any:
        return self.kernel._prepared(X)[0]


@singledispatch
def map_of(kernel: Kernel, request: Request) -> KernelMap:
    """The map of a fitted kernel, by its type.

    ``map_of.register`` adds that of a new kernel; a subclass with another formula than its base
    needs one of its own, too.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    request : Request

    Returns
    -------
    map : KernelMap
        It has `n_features`, and ``map(X)`` are the features of rows, (n_rows, n_features).

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
    refuse(kernel, f"has no explicit features that are known: {_ANY_KERNEL}.")


def refuse_indefinite(kernel: Kernel) -> None:
    """Refuse a kernel whose parameters do not make it positive semi-definite."""
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
    """One feature that is the same for all rows."""

    value: float

    @property
    def n_features(self) -> int:
        return 1

    def _features(self, rows: Any) -> np.ndarray:
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

    def __call__(self, X: Any) -> np.ndarray:
        return np.hstack([term(X) for term in self.terms])


@map_of.register
def _of_sum(kernel: Sum, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    return SumMap([map_of(part, request) for part in kernel._parts()])


@storable
@dataclass(frozen=True)
class ProductMap(KernelMap):
    """Products of features, one of each factor of a product of kernels."""

    own: list[KernelMap]

    @classmethod
    def of(cls, left: KernelMap, right: KernelMap) -> ProductMap:
        """That of the product of two kernels, with as few factors as can be."""
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

    def __call__(self, X: Any) -> np.ndarray:
        found = self.own[0](X)
        for factor in self.own[1:]:
            products = found[:, :, None] * factor(X)[:, None, :]
            found = products.reshape(len(found), -1)
        return found


@map_of.register
def _of_product(kernel: Product, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    found = ProductMap.of(*(map_of(part, request) for part in kernel._parts()))
    # A factor that is a number leaves the others as many features as they have.
    if found.n_features > max(factor.n_features for factor in found.factors):
        request.require(found.n_features, kernel)
    return found


# -- rows that are looked at -----------------------------------------------------------------


@map_of.register
def _of_transformed(kernel: After, request: Request) -> KernelMap:
    return map_of(kernel.kernel_, request.through(TransformedRows(kernel)))


@storable
@dataclass(frozen=True)
class TransformedRows:
    """What a transformer makes of the columns, once for all kernels with an equal one."""

    kernel: After

    def __call__(self, X: Any) -> SharedTable:
        return self.kernel._output(self.kernel._prepared(X)[0])


@map_of.register
def _of_part(kernel: PartialKernel, request: Request) -> KernelMap:
    return map_of(kernel.kernel_, request.through(CompleteRows(kernel)))


@storable
@dataclass(frozen=True)
class CompleteRows:
    """The table that a kernel is of, such as a view, which no row may lack."""

    kernel: PartialKernel

    def __call__(self, X: Any) -> SharedTable:
        has, table = self.kernel._rows(SharedTable.of(X))
        if not has.all():
            raise ValueError(
                f"{self.kernel._title}: {np.count_nonzero(~has)} of {len(has)} rows lack what it "
                f"compares, the first is row {int(np.argmin(has))}: features need all of it, so "
                "leave these rows out, or fill it in."
            )
        return table


# -- all kernels of a union ------------------------------------------------------------------


@storable
@dataclass(frozen=True)
class MapsOfKernels(FeatureMap):
    """Features of every kernel by a map of its own; `maps` are in the order of the union."""

    maps: list[KernelMap]

    @classmethod
    def of(
        cls,
        union: KernelUnion,
        sample: Any,
        request: Callable[[SharedTable, int], Request],
        *,
        spherical: bool,
    ) -> MapsOfKernels:
        """Those of a fitted union; ``request(table, j)`` is what is asked of kernel j."""
        check_is_fitted(union)
        table, maps = SharedTable.of(one_or_views(sample)), []
        with explaining_lacking_rows(union, table.X):
            for j, (name, kernel) in enumerate(union.kernels_):
                with naming(f"kernel {name!r}"):
                    maps.append(map_of(kernel, request(table, j)))
        return cls(union, spherical, maps)

    @property
    def sizes(self) -> list[int]:
        return [own.n_features for own in self.maps]

    def _write(self, X: Any, out: np.ndarray) -> None:
        # Kernels of the same columns, or after the same transformer, share these.
        table = SharedTable.of(one_or_views(X))
        with explaining_lacking_rows(self.union, table.X):
            for name, own, block in zip(self.union.names_, self.maps, self.blocks, strict=True):
                with naming(f"kernel {name!r}"), np.errstate(over="ignore", invalid="ignore"):
                    features = own(table)
                check_finite(features, name)
                out[block] = features.T


# -- Maps of kernels of strings: counts of all words over an alphabet -----------------------------
#
# A kernel ``Σ_t c_t C_t C_tᵀ`` of counts with c_t ≥ 0 has the features ``√c_t C_t``, one for each
# word over the letters of training, whether it occurs or not. Words with other letters have none.


@storable
@dataclass(frozen=True)
class WordsMap(RowMap):
    """Counts of words; `terms` are kinds of words, the factor and the number of each."""

    kernel: StringKernel
    terms: list[tuple[float, Term, int]]

    @property
    def n_features(self) -> int:
        return sum(n_words for _, _, n_words in self.terms)

    def _features(self, rows: Sequences) -> np.ndarray:
        found = self._counted(rows)
        if self.kernel.normalize:
            # By lengths that count words of other letters too, as the kernel does.
            found /= np.sqrt(self.kernel._squares(rows))[:, None]
        return found

    def _counted(self, strings: Sequences) -> np.ndarray:
        letters = self.kernel.letters_
        return np.hstack(
            [
                np.sqrt(factor) * _counts(term, strings, letters, n_words)
                for factor, term, n_words in self.terms
            ]
        )


def _counts(term: Term, strings: Sequences, letters: str, n_words: int) -> np.ndarray:
    """How often every string has every word over `letters`, (n_strings, n_words)."""
    places, weights = [], []
    for part in term.occurrences(strings, letters):
        word = np.zeros(len(part.rows), np.int64) if part.place is None else part.place
        known = np.ones(len(part.rows), dtype=bool)
        for digit in part.digits:
            # The digit 0 is any other letter.
            word = word * len(letters) + digit - 1
            known &= digit > 0
        places.append(part.rows[known] * n_words + word[known])
        weights.append(np.full(len(places[-1]), part.weight))
    total = np.bincount(
        np.concatenate(places), np.concatenate(weights), minlength=len(strings) * n_words
    )
    return total.reshape(len(strings), n_words)


def _n_words(term: Term, strings: Sequences, letters: str) -> int:
    """How many words over `letters` there are of a kind."""
    part = next(iter(term.occurrences(strings, letters)))
    return part.n_places * len(letters) ** len(part.digits)


def _with_numbers(
    terms: list[tuple[float, Term]], kernel: StringKernel, request: Request
) -> list[tuple[float, Term, int]]:
    """Kinds of words with the number of each, if it is small enough."""
    one = request.sample[:1]
    found = [(factor, term, _n_words(term, one, kernel.letters_)) for factor, term in terms]
    request.require(sum(n_words for _, _, n_words in found), kernel)
    return found


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
