"""ExactFeatures: kernels that are inner products of a finite number of features, as these.

    ⟨x, y⟩                        the columns
    ⟨x, y⟩ / (‖x‖ ‖y‖)            the columns of rows of length one
    (γ⟨x, y⟩ + c)^p               √(p! / Π_i α_i!) Π_i u_i^{α_i} for all α with Σ_i α_i = p,
                                  u = (√γ x, √c), by the multinomial theorem
    (1/d) Σ_j [x_j = y_j]         [x_j = a] / √d for all categories a of all columns j

Those of strings are in ``word_maps.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from .._sklearn import Interval
from ..kernels import Categorical, Cosine, KernelUnion, Linear, Polynomial
from ..kernels.tables import SharedTable
from . import word_maps  # noqa: F401  (which registers maps of its own)
from .features import MOST_FEATURES, Approximation
from .kernel_maps import (
    KernelMap,
    MapsOfKernels,
    Request,
    RowMap,
    map_of,
    refuse_indefinite,
)


def dense(rows: Any) -> np.ndarray:
    """Rows of numbers as an array."""
    return rows.toarray() if sparse.issparse(rows) else rows


@dataclass(frozen=True)
class ColumnsMap(RowMap):
    """The columns themselves."""

    n_columns: int

    @property
    def n_features(self) -> int:
        return self.n_columns

    def _features(self, rows: Any) -> np.ndarray:
        return dense(rows)


@map_of.register
def _of_linear(kernel: Linear, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    request.require(kernel.n_features_in_, kernel)
    return ColumnsMap(request.steps, kernel.n_features_in_)


@map_of.register
def _of_cosine(kernel: Cosine, request: Request) -> KernelMap:
    request = request.of_rows(kernel).through(UnitRows())
    request.require(kernel.n_features_in_, kernel)
    return ColumnsMap(request.steps, kernel.n_features_in_)


class UnitRows:
    """Rows divided by their lengths; rows of zeros stay."""

    def __call__(self, rows: Any) -> Any:
        return normalize(rows)


@dataclass(frozen=True)
class MonomialsMap(RowMap):
    """Monomials of degree p of ``u = (factor · x, constant)``, without a constant that is zero.

    `variables`, (p, D), are the numbers of those that are multiplied, `weights`, (D,), what with.
    """

    factor: float
    constant: float
    variables: np.ndarray
    weights: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def _features(self, rows: Any) -> np.ndarray:
        u = self.factor * dense(rows)
        if self.constant > 0.0:
            u = np.column_stack([u, np.full(len(u), self.constant)])
        found = self.weights * u[:, self.variables[0]]
        for variables in self.variables[1:]:
            found *= u[:, variables]
        return found


@map_of.register
def _of_polynomial(kernel: Polynomial, request: Request) -> KernelMap:
    refuse_indefinite(kernel)
    request = request.of_rows(kernel)
    p, n_variables = int(kernel.degree), kernel.n_features_in_ + (kernel.coef0 > 0)
    request.require(comb(n_variables + p - 1, p), kernel)
    chosen = list(combinations_with_replacement(range(n_variables), p))
    weights = [factorial(p) / prod(map(factorial, Counter(one).values())) for one in chosen]
    return MonomialsMap(
        request.steps,
        float(np.sqrt(kernel._factor())),
        float(np.sqrt(kernel.coef0)),
        np.array(chosen).T,
        np.sqrt(weights),
    )


@dataclass(frozen=True)
class CategoriesMap(RowMap):
    """Indicators of categories; `numbers` has those of each column, counted through all."""

    numbers: list[dict[Any, int]]

    @property
    def n_features(self) -> int:
        return sum(map(len, self.numbers))

    def _features(self, rows: np.ndarray) -> np.ndarray:
        found = np.zeros((len(rows), self.n_features))
        for column, numbers in zip(rows.T, self.numbers, strict=True):
            places = np.array([numbers.get(category, -1) for category in column])
            known = np.flatnonzero(places >= 0)
            found[known, places[known]] = 1.0 / np.sqrt(len(self.numbers))
        return found


@map_of.register
def _of_categories(kernel: Categorical, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    numbers: list[dict[Any, int]] = []
    for column in request.sample.T:
        start = sum(map(len, numbers))
        # A dict keeps the order of first occurrence, a set would not.
        numbers.append({one: start + j for j, one in enumerate(dict.fromkeys(column))})
    found = CategoriesMap(request.steps, numbers)
    request.require(found.n_features, kernel)
    return found


class ExactFeatures(Approximation):
    """Kernels that are inner products of a finite number of features, by these: nothing is lost.

    Takes :class:`~manykernels.kernels.Linear`, :class:`~manykernels.kernels.Cosine`,
    :class:`~manykernels.kernels.Polynomial`, :class:`~manykernels.kernels.Categorical`,
    :class:`~manykernels.kernels.Constant` and kernels of strings over an alphabet that is small
    enough; their sums and products, multiples, and the same of views and after transformers.
    Others, such as the Gaussian, have no finite number of features.

    A category, or a letter of strings without a given alphabet, that is not in the sample of rows
    that the features are made from has no feature. It still equals no other, but the similarity
    of its rows with one another, and of each with itself, lacks its part.

    Parameters
    ----------
    max_features : int, default=4000
        The most features of each kernel, and of each term of a sum. A polynomial kernel of degree
        p has ``binomial(d + p, p)`` of d columns, words of k letters are ``n_letters ** k``.
    block_size, random_state : see :class:`~manykernels.scale.Approximation`

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import KernelUnion, Polynomial
    >>> from manykernels.scale import ExactFeatures
    >>> X = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]])
    >>> union = KernelUnion([("pairs", Polynomial(degree=2, gamma=1.0))]).fit(X)
    >>> features = ExactFeatures().features_of(union, X, len(X), spherical=False)
    >>> features.n_features
    6
    >>> Z = features(X)
    >>> np.allclose(Z @ Z.T, union(X).kernel("pairs"))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Approximation._parameter_constraints,
        "max_features": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        max_features: int = MOST_FEATURES,
        *,
        block_size: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.max_features = max_features
        self.block_size = block_size
        self.random_state = random_state

    def features_of(
        self, union: KernelUnion, sample: Any, n_rows: int | None, *, spherical: bool
    ) -> MapsOfKernels:
        """The features of fitted kernels; see :class:`~manykernels.scale.Approximation`."""
        self._validate_params()
        return MapsOfKernels.of(union, sample, self._request, spherical=spherical)

    def _request(self, table: SharedTable, number: int) -> Request:
        return Request(table, int(self.max_features), "max_features")
