"""Maps of single kernels: features z with ``k(x, y) = z(x)·z(y)``, exactly or in the mean.

:func:`map_of` finds the map of a fitted kernel by its type. Here are those of kernels made of
others, for which the maps of their parts are enough:

    k₁ + k₂            the features of both, one after the other
    k₁ k₂              all products of a feature of one with a feature of the other
    k(t(x), t(y))      the features of k at t(x): chosen columns, a transformer's output, a view

A number c ≥ 0 is a kernel with one feature, √c, so that c k is a product as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from math import prod
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._sklearn import num_samples
from ..kernels import After, Constant, Kernel, KernelUnion, Product, Sum
from ..kernels._partial import PartialKernel
from ..kernels.checks import check_finite
from ..kernels.presence import explaining_lacking_rows
from ..kernels.tables import SharedTable, naming
from ..kernels.views import one_or_views
from .features import FeatureMap

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
    >>> from manykernels.scale.kernel_maps import Request, map_of
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


@dataclass(frozen=True)
class TransformedRows:
    """What a transformer makes of the columns, once for all kernels with an equal one."""

    kernel: After

    def __call__(self, X: Any) -> SharedTable:
        return self.kernel._output(self.kernel._prepared(X)[0])


@map_of.register
def _of_part(kernel: PartialKernel, request: Request) -> KernelMap:
    return map_of(kernel.kernel_, request.through(CompleteRows(kernel)))


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
