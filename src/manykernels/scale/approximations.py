"""Approximations of kernels: landmarks, :class:`Nystrom`, random and exact features.

Landmarks are the rows that :class:`Nystrom` compares all others with. A selector chooses them from
a sample of some thousand rows at most. Selectors that depend on the data work in the feature space
of the mean of all kernels, each divided by its variance, and so take any kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from sklearn.base import BaseEstimator
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from ..kernels import (
    RBF,
    Categorical,
    ChiSquare,
    Cosine,
    Kernel,
    KernelUnion,
    Laplacian,
    Linear,
    Polynomial,
)
from ..kernels.base import evaluate_into
from ..kernels.completion import explaining_lacking_rows
from ..kernels.tables import SharedTable, Table
from ..kernels.transforms import Multiplicative
from ..utils.numerics import EPS
from ..utils.sklearn import Interval, num_samples, safe_indexing
from ..utils.storable import storable
from .features import (
    MOST_FEATURES,
    Approximation,
    FeatureMap,
    KernelMap,
    MapsOfKernels,
    Request,
    RowMap,
    Step,
    map_of,
    refuse,
    refuse_indefinite,
    through,
)

#: Landmarks, and their row numbers in the sample they were chosen from.
Chosen = tuple[Any, np.ndarray]
# Maximum number of rows whose kernel matrices are computed to choose landmarks.
_MOST_ROWS = 2000


class LandmarkSelector(BaseEstimator, ABC):
    """Chooses landmarks from a sample of rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @abstractmethod
    def choose(self, union: KernelUnion, sample: Table, n_landmarks: int, seed: int) -> Chosen:
        """Return a table of `n_landmarks` rows of `sample`, and their row numbers.

        The row numbers are empty if the landmarks are not rows of `sample`.
        """


@storable
class Uniform(LandmarkSelector):
    """Rows drawn at random, all with the same probability."""

    def choose(self, union: KernelUnion, sample: Table, n_landmarks: int, seed: int) -> Chosen:
        drawn = np.random.default_rng(seed).permutation(int(num_samples(sample)))
        return _rows_of(sample, drawn[:n_landmarks])


@storable
class KMeansPlusPlus(LandmarkSelector):
    """Rows far from each other, drawn by squared distance from the rows drawn before.

    The k-means++ initialisation of Arthur and Vassilvitskii (2007), in the feature space of the
    kernels.
    """

    def choose(self, union: KernelUnion, sample: Table, n_landmarks: int, seed: int) -> Chosen:
        rng = np.random.default_rng(seed)
        rows, kernel = _mean_kernel(union, sample, max(n_landmarks, _MOST_ROWS), rng)
        lengths = np.diagonal(kernel)
        chosen = [int(rng.integers(len(kernel)))]
        nearest = lengths - 2.0 * kernel[chosen[0]] + lengths[chosen[0]]
        while len(chosen) < n_landmarks:
            nearest = np.maximum(nearest, 0.0)
            nearest[chosen] = 0.0
            if nearest.sum() > 0.0:
                new = int(rng.choice(len(kernel), p=nearest / nearest.sum()))
            else:  # all other rows equal a chosen one
                new = int(np.delete(np.arange(len(kernel)), chosen)[0])
            chosen.append(new)
            nearest = np.minimum(nearest, lengths - 2.0 * kernel[new] + lengths[new])
        return _rows_of(sample, rows[chosen])


@storable
class LeverageScores(LandmarkSelector):
    """Rows drawn by their ridge leverage scores, the diagonal of ``K(K + λI)⁻¹``.

    Rows that others predict badly have high scores (Alaoui and Mahoney 2015).

    Parameters
    ----------
    reg : float, default=1.0
        λ, acting on the mean of the kernels, each of variance one.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": [Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, reg: float = 1.0) -> None:
        self.reg = reg

    def choose(self, union: KernelUnion, sample: Table, n_landmarks: int, seed: int) -> Chosen:
        self._validate_params()
        rng = np.random.default_rng(seed)
        rows, kernel = _mean_kernel(union, sample, max(n_landmarks, _MOST_ROWS), rng)
        ridge = kernel + self.reg * np.eye(len(kernel))
        scores = 1.0 - self.reg * np.diagonal(linalg.inv(ridge))
        # A small constant, so that enough rows have a score above zero.
        scores = np.maximum(scores, 0.0) + 1e-3 / len(scores)
        chosen = rng.choice(len(rows), n_landmarks, replace=False, p=scores / scores.sum())
        return _rows_of(sample, rows[chosen])


@storable
class Fixed(LandmarkSelector):
    """Landmarks given by the user.

    Parameters
    ----------
    landmarks : table, dict of tables or Views
        Landmarks, with the columns of X.
    """

    def __init__(self, landmarks: Table) -> None:
        self.landmarks = landmarks

    def choose(self, union: KernelUnion, sample: Table, n_landmarks: int, seed: int) -> Chosen:
        return self.landmarks, np.empty(0, dtype=np.intp)


def _rows_of(sample: Table, numbers: np.ndarray) -> Chosen:
    numbers = np.sort(numbers)
    return safe_indexing(sample, numbers), numbers


def _mean_kernel(
    union: KernelUnion, sample: Table, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of some rows, and the mean of their kernels of variance one."""
    rows = np.sort(rng.permutation(int(num_samples(sample)))[:most])
    stack = Multiplicative().fit_transform(union(safe_indexing(sample, rows)))
    return rows, stack.combine(np.full(stack.n_kernels, 1.0 / stack.n_kernels))


# -- Nystrom: features of a kernel from its values at a few rows, the landmarks -------------------
#
# With landmarks L and ``k(L, L) = QΛQᵀ``, the features
#
#     z(x) = Λ^{−½} Qᵀ k(L, x)
#
# are those of the projection of x, in the feature space of the kernel, on the span of the
# landmarks: ``z(x)·z(y) = k(x, L) k(L, L)⁺ k(L, y)`` (Williams and Seeger 2001). With all
# training rows as landmarks the approximation is exact. All kernels have the same landmarks, so
# that kernels of the same distances compute these once.


# Default number of landmarks of each kernel. It is lower for many kernels, whose features would
# exceed MOST_FEATURES in total, but not below the second number.
DEFAULT_LANDMARKS = 200
_FEWEST_LANDMARKS = 50


@storable
@dataclass(frozen=True)
class NystromMap(FeatureMap):
    """Nyström features; `projections` are ``QΛ^{−½}`` of every kernel, (n_landmarks, d_j)."""

    landmarks: Table
    projections: list[np.ndarray]
    chosen: np.ndarray

    @cached_property
    def _shared(self) -> SharedTable:
        """Landmarks, with intermediate results that all blocks of rows share."""
        return SharedTable(self.landmarks)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_shared"}

    @property
    def sizes(self) -> list[int]:
        return [projection.shape[1] for projection in self.projections]

    @property
    def made_from(self) -> np.ndarray:
        return self.chosen

    @property
    def attributes(self) -> dict[str, Any]:
        return {"landmarks_": self.landmarks}

    def _write(self, X: Table, out: np.ndarray) -> None:
        n_rows = int(num_samples(X.X if isinstance(X, SharedTable) else X))
        similarities = np.empty((len(self.projections), n_rows, len(self.projections[0])))
        with explaining_lacking_rows(self.union, X):
            evaluate_into(similarities, self.union.kernels_, X, self._shared)
        for block, values, projection in zip(
            self.blocks, similarities, self.projections, strict=True
        ):
            np.matmul(projection.T, values.T, out=out[block])


@storable
@dataclass(eq=False, repr=False)
class Nystrom(Approximation):
    """Approximate kernels by their values at landmarks, a few of the rows.

    Takes any kernel, including kernels of strings, categories and several views.

    Parameters
    ----------
    n_landmarks : int, optional
        Number of rows that others are compared with, and the maximum number of features of each
        kernel. By default 200; fewer for more than 20 kernels, whose features would be more than
        4000, down to 50; and no more than there are rows.
    selector : LandmarkSelector, optional
        Method that chooses the landmarks, by default :class:`~manykernels.scale.Uniform`.
    block_size : int, optional
        Number of rows processed at once, by default 4096. Memory grows with it; results do not
        depend on it.
    random_state : int, default=0
        Seed of all random draws: rows for widths, landmarks, frequencies, folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA, Nystrom, rbf_grid
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKFDA(rbf_grid([1, 4]), approximation=Nystrom(n_landmarks=40)).fit(X, y)
    >>> model.certificate_.converged, model.score(X, y) > 0.95
    (True, True)
    >>> bool(model.approximation_errors_.max() < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Approximation._parameter_constraints,
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "selector": [LandmarkSelector, None],
    }

    n_landmarks: int | None = None
    selector: LandmarkSelector | None = field(default=None, kw_only=True)

    def features_of(
        self, union: KernelUnion, sample: Table, n_rows: int | None, *, spherical: bool
    ) -> NystromMap:
        self._validate_params()
        selector = Uniform() if self.selector is None else self.selector
        number = self._number(len(union.kernels_), int(num_samples(sample)), n_rows)
        landmarks, rows = selector.choose(union, sample, number, self.random_state)
        stack = union(landmarks)
        projections = [_projection(stack.kernel(j)) for j in range(stack.n_kernels)]
        return NystromMap(union, spherical, landmarks, projections, rows)

    def _number(self, n_kernels: int, n_sampled: int, n_rows: int | None) -> int:
        """Return the number of landmarks."""
        n_landmarks = self.n_landmarks
        if n_landmarks is None:
            default = min(DEFAULT_LANDMARKS, max(MOST_FEATURES // n_kernels, _FEWEST_LANDMARKS))
            return min(default, n_sampled)
        if n_landmarks > n_sampled:
            known = f"there are {n_sampled}" if n_rows == n_sampled else f"{n_sampled} were drawn"
            raise ValueError(
                f"n_landmarks={n_landmarks} is more than the number of rows to choose from: "
                f"{known}. Lower it, or pass n_landmarks=None, which takes 200 landmarks or all "
                "rows."
            )
        return int(n_landmarks)


def _projection(gram: np.ndarray) -> np.ndarray:
    """Return ``QΛ^{−½}`` for the eigenvalues above their rounding error."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > len(gram) * EPS * max(values[-1], 0.0)
    return vectors[:, kept] / np.sqrt(values[kept])


# -- RandomFeatures: Fourier features with random frequencies -------------------------------------
#
# A kernel of the difference of rows with ``k(x, x) = 1`` is the mean of cosines over a
# distribution of frequencies ω, its Fourier transform (Bochner's theorem). With P frequencies
# drawn from it,
#
#     k(x, y) = E cos ωᵀ(x − y) ≈ z(x)·z(y) ,   z(x) = (cos ωᵀx, sin ωᵀx)_ω / √P
#
# (Rahimi and Recht 2007). ``z(x)·z(x) = 1`` for all draws, since cos² + sin² = 1. The frequencies
# of the kernels, and of their products, are
#
#     exp(−γ‖x − y‖²)     normal with variance 2γ, in orthogonal directions (Yu et al. 2016)
#     exp(−γ‖x − y‖₁)     Cauchy with scale γ, independent for every column
#     exp(−γ χ²(x, y))    as for the Gaussian, of the additive χ² map of the rows (Vedaldi and
#                         Zisserman 2012), whose squared distance is χ²
#     k₁ k₂               the frequencies of both: the phases ωᵀx of the factors are added
#
# Orthogonal directions keep the distribution of each frequency, and so the mean. On 150 normal
# rows of 2 to 100 columns, with 200 pairs and γ one over the median squared distance, they lower
# the error of the centred kernel by 24 to 36 percent; one column has only one direction.


# Default number of features of each kernel. It is lower for many kernels, whose features would
# exceed MOST_FEATURES in total, but not below the second number.
DEFAULT_FEATURES = 400
_FEWEST_FEATURES = 100
# The additive χ² map makes eleven columns of one: with these the error of the centred exponential
# kernel was half a percent or less on three kinds of histograms; with the three columns that are
# scikit-learn's default it was nine to fourteen percent.
_CHI_SQUARE_STEPS = 6
_CHI_SQUARE_INTERVAL = 0.4

Draw = Callable[[int, int, np.random.Generator], np.ndarray]


@storable
@dataclass(frozen=True)
class Phases:
    """Phases ``ωᵀ(x − origin)`` of rows x; the shift saves digits for rows far from zero.

    `frequencies` are of shape (n_columns, n_pairs).
    """

    steps: tuple[Step, ...]
    frequencies: np.ndarray
    origin: np.ndarray

    def __call__(self, X: Table) -> np.ndarray:
        rows = through(self.steps, X)
        if sparse.issparse(rows):
            phases: np.ndarray = safe_sparse_dot(rows, self.frequencies)
            return phases - self.origin @ self.frequencies
        return (rows - self.origin) @ self.frequencies


@storable
@dataclass(frozen=True)
class FourierMap(KernelMap):
    """Cosines and sines of phases; the phases of `parts`, factors of the kernel, are added."""

    parts: list[Phases]

    @property
    def n_features(self) -> int:
        return 2 * self.parts[0].frequencies.shape[1]

    def __call__(self, X: Table) -> np.ndarray:
        phases = self.parts[0](X)
        for part in self.parts[1:]:
            phases += part(X)
        n_rows, n_pairs = phases.shape
        features = np.empty((n_rows, 2 * n_pairs))
        np.cos(phases, out=features[:, :n_pairs])
        np.sin(phases, out=features[:, n_pairs:])
        features /= np.sqrt(n_pairs)
        return features

    def merged(self, other: KernelMap) -> KernelMap | None:
        return FourierMap(self.parts + other.parts) if isinstance(other, FourierMap) else None


def _fourier(kernel: Kernel, request: Request, draw: Draw, scale: float) -> KernelMap:
    """Return the map of a kernel of differences, with frequencies ``scale · draw(...)``."""
    if request.n_pairs is None or request.rng is None:
        refuse(
            kernel,
            "has no finite number of features: approximate it by RandomFeatures(), or by "
            "Nystrom(), which takes any kernel.",
        )
    sample = request.sample
    frequencies = scale * draw(sample.shape[1], request.n_pairs, request.rng)
    origin = np.zeros(sample.shape[1]) if sparse.issparse(sample) else sample.mean(axis=0)
    return FourierMap([Phases(request.steps, frequencies, origin)])


def _normal(n_columns: int, n_pairs: int, rng: np.random.Generator) -> np.ndarray:
    """Draw standard normal columns, orthogonal to each other in groups of `n_columns`."""
    groups = []
    for start in range(0, n_pairs, n_columns):
        number = min(n_columns, n_pairs - start)
        directions, triangle = np.linalg.qr(rng.standard_normal((n_columns, number)))
        # Directions are uniform only if the diagonal of the triangle is positive.
        directions *= np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0)
        groups.append(directions * np.sqrt(rng.chisquare(n_columns, number)))
    return np.hstack(groups)


def _cauchy(n_columns: int, n_pairs: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_cauchy((n_columns, n_pairs))


@map_of.register
def _of_gaussian(kernel: RBF, request: Request) -> KernelMap:
    scale = np.sqrt(2.0 * kernel._factor())
    return _fourier(kernel, request.of_rows(kernel), _normal, scale)


@map_of.register
def _of_laplacian(kernel: Laplacian, request: Request) -> KernelMap:
    return _fourier(kernel, request.of_rows(kernel), _cauchy, kernel._factor())


@map_of.register
def _of_chi_square(kernel: ChiSquare, request: Request) -> KernelMap:
    request = request.of_rows(kernel).through(AdditiveChiSquare())
    return _fourier(kernel, request, _normal, np.sqrt(2.0 * kernel._factor()))


@storable
class AdditiveChiSquare:
    """Map ψ with ``ψ(x)·ψ(y) ≈ Σ_j 2 x_j y_j / (x_j + y_j)``; ``‖ψ(x) − ψ(y)‖² ≈ χ²(x, y)``."""

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        sampler = AdditiveChi2Sampler(
            sample_steps=_CHI_SQUARE_STEPS, sample_interval=_CHI_SQUARE_INTERVAL
        )
        return sampler.fit_transform(rows)


@storable
@dataclass(eq=False, repr=False)
class RandomFeatures(Approximation):
    """Approximate kernels of differences by cosines and sines with random frequencies.

    Takes :class:`~manykernels.kernels.RBF`, :class:`~manykernels.kernels.Laplacian`,
    :class:`~manykernels.kernels.ChiSquare` and their products, and, exactly, the kernels of
    :class:`~manykernels.scale.ExactFeatures` that need at most `n_features` features; also sums
    and multiples of these kernels, and kernels of views and after transformers. The inner product
    of the features has the kernel as its mean, and an error that falls with the square root of
    their number. Only ChiSquare has a bias, of about half a percent, because its additive map is
    approximate.

    The frequencies do not depend on the data: where the kernel matrix has few large eigenvalues,
    :class:`~manykernels.Nystrom` has the smaller error with as many features.

    Parameters
    ----------
    n_features : int, optional
        Maximum number of features of each kernel, and of each term of a sum. Random features come
        in pairs, so an odd number leaves one unused. By default 400; fewer for more than 10
        kernels, whose features would be more than 4000, down to 100.
    block_size : int, optional
        Number of rows processed at once, by default 4096. Memory grows with it; results do not
        depend on it.
    random_state : int, default=0
        Seed of all random draws: rows for widths, landmarks, frequencies, folds.

    References
    ----------
    Rahimi and Recht (2007). Random features for large-scale kernel machines. NIPS 20.
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar (2016). Orthogonal random features. NIPS 29.
    Vedaldi and Zisserman (2012). Efficient additive kernels via explicit feature maps. IEEE PAMI
    34.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import rbf_grid
    >>> from manykernels.scale import RandomFeatures
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> union = rbf_grid([1, 4]).fit(X)
    >>> features = RandomFeatures(1000).features_of(union, X, len(X), spherical=False)
    >>> Z = features(X)
    >>> Z.shape
    (50, 2000)
    >>> narrow, wide = (Z[:, block] @ Z[:, block].T for block in features.blocks)
    >>> bool(np.abs(narrow - union(X).kernel("rbf(1)")).max() < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Approximation._parameter_constraints,
        "n_features": [Interval(Integral, 2, None, closed="left"), None],
    }

    n_features: int | None = None

    def features_of(
        self, union: KernelUnion, sample: Table, n_rows: int | None, *, spherical: bool
    ) -> MapsOfKernels:
        """Return the features of fitted kernels; see :class:`~manykernels.scale.Approximation`."""
        self._validate_params()
        most = self._number(len(union.names_))

        def request(table: SharedTable, number: int) -> Request:
            # An independent random stream for every kernel.
            rng = np.random.default_rng([self.random_state, number])
            return Request(table, most, "n_features", most // 2, rng)

        return MapsOfKernels.of(union, sample, request, spherical=spherical)

    def _number(self, n_kernels: int) -> int:
        """Return the maximum number of features of each kernel."""
        if self.n_features is not None:
            return int(self.n_features)
        return min(DEFAULT_FEATURES, max(MOST_FEATURES // n_kernels, _FEWEST_FEATURES))


# -- ExactFeatures: kernels that are inner products of finitely many features ---------------------
#
#     ⟨x, y⟩                        the columns
#     ⟨x, y⟩ / (‖x‖ ‖y‖)            the columns of rows of length one
#     (γ⟨x, y⟩ + c)^p               √(p! / Π_i α_i!) Π_i u_i^{α_i} for all α with Σ_i α_i = p,
#                                   u = (√γ x, √c), by the multinomial theorem
#     (1/d) Σ_j [x_j = y_j]         [x_j = a] / √d for all categories a of all columns j
#
# Maps of string kernels are in ``features.py``.


def dense(rows: Any) -> np.ndarray:
    """Return rows of numbers as a dense array."""
    return rows.toarray() if sparse.issparse(rows) else rows


@storable
@dataclass(frozen=True)
class ColumnsMap(RowMap):
    """The columns as features."""

    n_columns: int

    @property
    def n_features(self) -> int:
        return self.n_columns

    def _features(self, rows: Table) -> np.ndarray:
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


@storable
class UnitRows:
    """Rows divided by their norms; rows of zeros stay zero."""

    def __call__(self, rows: Table) -> Table:
        return normalize(rows)


@storable
@dataclass(frozen=True)
class MonomialsMap(RowMap):
    """Monomials of degree p of ``u = (factor · x, constant)``, of x alone if the constant is 0.

    `variables`, (p, D), are the indices of the factors, and `weights`, (D,), the coefficients.
    """

    factor: float
    constant: float
    variables: np.ndarray
    weights: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def _features(self, rows: Table) -> np.ndarray:
        u = self.factor * dense(rows)
        if self.constant > 0.0:
            u = np.column_stack([u, np.full(len(u), self.constant)])
        features = self.weights * u[:, self.variables[0]]
        for variables in self.variables[1:]:
            features *= u[:, variables]
        return features


@map_of.register
def _of_polynomial(kernel: Polynomial, request: Request) -> KernelMap:
    refuse_indefinite(kernel)
    request = request.of_rows(kernel)
    p, n_variables = int(kernel.degree), kernel.n_features_in_ + (kernel.coef0 > 0)
    request.require(comb(n_variables + p - 1, p), kernel)
    chosen = list(combinations_with_replacement(range(n_variables), p))
    weights = [
        factorial(p) / prod(map(factorial, Counter(monomial).values())) for monomial in chosen
    ]
    return MonomialsMap(
        request.steps,
        float(np.sqrt(kernel._factor())),
        float(np.sqrt(kernel.coef0)),
        np.array(chosen).T,
        np.sqrt(weights),
    )


@storable
@dataclass(frozen=True)
class CategoriesMap(RowMap):
    """Indicators of categories; `numbers` maps the categories of each column to features."""

    numbers: list[dict[Any, int]]

    @property
    def n_features(self) -> int:
        return sum(map(len, self.numbers))

    def _features(self, rows: np.ndarray) -> np.ndarray:
        features = np.zeros((len(rows), self.n_features))
        for column, numbers in zip(rows.T, self.numbers, strict=True):
            places = np.array([numbers.get(category, -1) for category in column])
            known = np.flatnonzero(places >= 0)
            features[known, places[known]] = 1.0 / np.sqrt(len(self.numbers))
        return features


@map_of.register
def _of_categories(kernel: Categorical, request: Request) -> KernelMap:
    request = request.of_rows(kernel)
    numbers: list[dict[Any, int]] = []
    for column in request.sample.T:
        start = sum(map(len, numbers))
        # A dict keeps the order of first occurrence; a set would not.
        numbers.append({category: start + j for j, category in enumerate(dict.fromkeys(column))})
    features = CategoriesMap(request.steps, numbers)
    request.require(features.n_features, kernel)
    return features


@storable
@dataclass(eq=False, repr=False)
class ExactFeatures(Approximation):
    """Replace kernels by a finite number of features whose inner products are exact.

    Takes :class:`~manykernels.kernels.Linear`, :class:`~manykernels.kernels.Cosine`,
    :class:`~manykernels.kernels.Polynomial`, :class:`~manykernels.kernels.Categorical`,
    :class:`~manykernels.kernels.Constant` and kernels of strings over an alphabet that is small
    enough; their sums and products, multiples, and the same of views and after transformers.
    Other kernels, such as the Gaussian, have no finite number of features.

    A category that does not occur in the sample of rows that the features are built from has no
    feature; nor has a letter of strings without a given alphabet. It still equals no other, but
    the similarity of its rows with one another, and of each with itself, lacks its part.

    Parameters
    ----------
    max_features : int, default=4000
        Maximum number of features of each kernel, and of each term of a sum. A polynomial kernel
        of degree p has ``binomial(d + p, p)`` features of d columns, words of k letters have
        ``n_letters ** k``.
    block_size : int, optional
        Number of rows processed at once, by default 4096. Memory grows with it; results do not
        depend on it.
    random_state : int, default=0
        Seed of all random draws: rows for widths, landmarks, frequencies, folds.

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

    max_features: int = MOST_FEATURES

    def features_of(
        self, union: KernelUnion, sample: Table, n_rows: int | None, *, spherical: bool
    ) -> MapsOfKernels:
        """Return the features of fitted kernels; see :class:`~manykernels.scale.Approximation`."""
        self._validate_params()
        return MapsOfKernels.of(union, sample, self._request, spherical=spherical)

    def _request(self, table: SharedTable, number: int) -> Request:
        return Request(table, int(self.max_features), "max_features")
