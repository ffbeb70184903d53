"""RandomFeatures: Fourier features, with frequencies drawn at random.

A kernel of the difference of rows with ``k(x, x) = 1`` is the mean of cosines over a distribution
of frequencies ω, its Fourier transform (Bochner's theorem), so that with P of them drawn from it

    k(x, y) = E cos ωᵀ(x − y) ≈ z(x)·z(y) ,   z(x) = (cos ωᵀx, sin ωᵀx)_ω / √P

(Rahimi and Recht 2007). ``z(x)·z(x) = 1`` whatever is drawn, since cos² + sin² = 1. Frequencies
of the kernels, and of their products, are

    exp(−γ‖x − y‖²)     normal with variance 2γ, in orthogonal directions (Yu et al. 2016)
    exp(−γ‖x − y‖₁)     Cauchy with scale γ, independent for every column
    exp(−γ χ²(x, y))    as for the Gaussian, of the additive χ² map of the rows (Vedaldi and
                        Zisserman 2012), whose squared distance is χ²
    k₁ k₂               the frequencies of both: phases ωᵀx of the parts are added

Orthogonal directions leave every frequency its distribution, and so the mean. On 150 normal rows
of 2 to 100 columns, with 200 pairs and γ one over the median squared distance, they lower the
error of the centred kernel by 24 to 36 percent; of one column there is but one direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.utils.extmath import safe_sparse_dot

from .._sklearn import Interval
from ..kernels import RBF, ChiSquare, Kernel, KernelUnion, Laplacian
from ..kernels.tables import SharedTable
from . import exact_features  # noqa: F401  (which registers maps of its own)
from .features import MOST_FEATURES, Approximation
from .kernel_maps import KernelMap, MapsOfKernels, Request, Step, map_of, refuse, through

# Features of each kernel unless given. With many kernels, whose features would add up to more than
# MOST_FEATURES, there are fewer, but not fewer than the last number.
DEFAULT_FEATURES = 400
_FEWEST_FEATURES = 100
# The additive χ² map takes eleven columns for one: with these the error of the exponential kernel,
# centred, was half a percent or less on three kinds of histograms, with the three columns that
# are scikit-learn's default nine to fourteen percent.
_CHI_SQUARE_STEPS = 6
_CHI_SQUARE_INTERVAL = 0.4

Draw = Callable[[int, int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Phases:
    """``ωᵀ(x − origin)`` of rows x: a shift changes no difference, but saves digits far from zero.

    `frequencies` are of shape (n_columns, n_pairs).
    """

    steps: tuple[Step, ...]
    frequencies: np.ndarray
    origin: np.ndarray

    def __call__(self, X: Any) -> np.ndarray:
        rows = through(self.steps, X)
        if sparse.issparse(rows):
            phases: np.ndarray = safe_sparse_dot(rows, self.frequencies)
            return phases - self.origin @ self.frequencies
        return (rows - self.origin) @ self.frequencies


@dataclass(frozen=True)
class FourierMap(KernelMap):
    """Cosines and sines of phases; those of several `parts`, factors of the kernel, are added."""

    parts: list[Phases]

    @property
    def n_features(self) -> int:
        return 2 * self.parts[0].frequencies.shape[1]

    def __call__(self, X: Any) -> np.ndarray:
        phases = self.parts[0](X)
        for part in self.parts[1:]:
            phases += part(X)
        n_rows, n_pairs = phases.shape
        found = np.empty((n_rows, 2 * n_pairs))
        np.cos(phases, out=found[:, :n_pairs])
        np.sin(phases, out=found[:, n_pairs:])
        found /= np.sqrt(n_pairs)
        return found

    def merged(self, other: KernelMap) -> KernelMap | None:
        return FourierMap(self.parts + other.parts) if isinstance(other, FourierMap) else None


def _fourier(kernel: Kernel, request: Request, draw: Draw, scale: float) -> KernelMap:
    """The map of a kernel of differences between rows, with frequencies ``scale · draw(...)``."""
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
    """Standard normal columns, orthogonal to each other in groups of `n_columns`."""
    groups = []
    for start in range(0, n_pairs, n_columns):
        number = min(n_columns, n_pairs - start)
        directions, triangle = np.linalg.qr(rng.standard_normal((n_columns, number)))
        # All directions are as probable only if the diagonal of the triangle is positive.
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


class AdditiveChiSquare:
    """ψ(x) with ``ψ(x)·ψ(y) ≈ Σ_j 2 x_j y_j / (x_j + y_j)``, so ``‖ψ(x) − ψ(y)‖² ≈ χ²(x, y)``."""

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        sampler = AdditiveChi2Sampler(
            sample_steps=_CHI_SQUARE_STEPS, sample_interval=_CHI_SQUARE_INTERVAL
        )
        return sampler.fit_transform(rows)


class RandomFeatures(Approximation):
    """Kernels of differences approximated by cosines and sines with random frequencies.

    Takes :class:`~manykernels.kernels.RBF`, :class:`~manykernels.kernels.Laplacian`,
    :class:`~manykernels.kernels.ChiSquare` and products of these, and whatever
    :class:`~manykernels.scale.ExactFeatures` takes, exactly, if no more features than these are
    enough; sums and multiples of them, and the same of views and after transformers. The
    features have the kernel as their mean, and an error that falls with the square root of their
    number. Only those of ChiSquare are biased, by about half a percent: they are those of a
    Gaussian of an approximate map.

    Frequencies do not depend on data: where the kernel matrix has few large eigenvalues,
    :class:`~manykernels.Nystrom` has the smaller error with as many features.

    Parameters
    ----------
    n_features : int, optional
        The most features of each kernel, and of each term of a sum; random ones come in pairs, so
        of an odd number one is not used. By default 400; fewer for more than 10 kernels, whose
        features would be more than 4000, down to 100.
    block_size, random_state : see :class:`~manykernels.scale.Approximation`

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

    def __init__(
        self,
        n_features: int | None = None,
        *,
        block_size: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_features = n_features
        self.block_size = block_size
        self.random_state = random_state

    def features_of(
        self, union: KernelUnion, sample: Any, n_rows: int | None, *, spherical: bool
    ) -> MapsOfKernels:
        """The features of fitted kernels; see :class:`~manykernels.scale.Approximation`."""
        self._validate_params()
        most = self._number(len(union.names_))

        def request(table: SharedTable, number: int) -> Request:
            # A stream of its own for every kernel, which does not depend on the others.
            rng = np.random.default_rng([self.random_state, number])
            return Request(table, most, "n_features", most // 2, rng)

        return MapsOfKernels.of(union, sample, request, spherical=spherical)

    def _number(self, n_kernels: int) -> int:
        """The most features of each kernel."""
        if self.n_features is not None:
            return int(self.n_features)
        return min(DEFAULT_FEATURES, max(MOST_FEATURES // n_kernels, _FEWEST_FEATURES))
