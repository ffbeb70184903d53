"""Transforms of kernel stacks, fitted on training samples and applied to blocks of new samples.

The transforms of this module do not copy the values of a stack, except Spherical after centring.
"""

from abc import ABC, abstractmethod
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..utils.numerics import ACCUMULATED
from ..utils.sklearn import Interval, StrOptions, sample_weights
from ..utils.storable import storable
from .base import Kernel
from .stack import KernelStack
from .tables import Matrix

# -- Bandwidths from training rows; a row of weight two counts as two equal rows ------------------


# The median distance is computed from at most this many rows. Its standard error is then one to
# six per cent (measured for 50 to 1 normally distributed columns), enough for a bandwidth.
_MEDIAN_ROWS = 500


def gamma_options(*rules: str) -> list[Any]:
    """Return constraints of a parameter `gamma`: a positive number or one of `rules`."""
    return [Interval(Real, 0, None, closed="neither"), StrOptions(set(rules))]


def frozen_scale(kernel: Kernel, parameter: str, learnt: str) -> float:
    """Return the attribute `learnt` of a fitted kernel, else the number `parameter`."""
    if hasattr(kernel, learnt):
        return getattr(kernel, learnt)
    value = getattr(kernel, parameter)
    if isinstance(value, Real):
        return float(value)
    raise NotFittedError(
        f"{type(kernel).__name__}({parameter}={value!r}) takes its {parameter} from training "
        f"rows: call fit first, or pass {parameter} as a number."
    )


class GammaKernel(Kernel):
    """Base class of kernels with a factor `gamma`: a number or a rule in ``GAMMA_RULES``.

    A fitted kernel has the number in its attribute `gamma_`.
    """

    gamma: float | str

    def _learn_scale(self, X: Matrix, weights: np.ndarray) -> None:
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = GAMMA_RULES[gamma](self, X, weights)
        self.gamma_ = float(gamma)

    def _factor(self) -> float:
        return frozen_scale(self, "gamma", "gamma_")


def _inverse_variance(kernel: object, X: Matrix, weights: np.ndarray) -> float:
    """Return ``1 / (n_columns · variance)``, with the variance of all entries."""
    centre = np.average(np.asarray(X.mean(axis=1)).ravel(), weights=weights)
    variance = np.average(_mean_squared_deviations(X, centre), weights=weights)
    # The computed variance of equal entries is a squared rounding error. `not` covers NaN.
    if not variance > (ACCUMULATED * centre) ** 2:
        return 1.0
    return 1.0 / (X.shape[1] * variance)


def _inverse_median_distance(kernel: Kernel, X: Matrix, weights: np.ndarray) -> float:
    """Return the inverse of the weighted median distance of pairs, or of the mean if that is 0.

    Pairs of a row with itself are included, since a row of weight two counts as two equal rows.
    """
    rows = np.arange(len(weights))
    if len(rows) > _MEDIAN_ROWS:
        rows = np.linspace(0, len(rows) - 1, _MEDIAN_ROWS).astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = kernel._comparison(X[rows], None).whole().ravel()
    pair_weights = np.outer(weights[rows], weights[rows]).ravel()
    # With equal weights, the median needs no sorting.
    equal = np.ptp(weights[rows]) == 0.0
    median = np.quantile(
        distances, 0.5, weights=None if equal else pair_weights, method="inverted_cdf"
    )
    return 1.0 / float(median or np.average(distances, weights=pair_weights) or 1.0)


def _mean_squared_deviations(X: Matrix, centre: float) -> np.ndarray:
    """Return the mean of (entry − centre)² in each row."""
    if not sparse.issparse(X):
        return ((X - centre) ** 2).mean(axis=1)
    stored = sparse.csr_array(X, copy=True)
    stored.sum_duplicates()
    # Each zero that is not stored has the squared deviation centre².
    n_zeros = X.shape[1] - np.diff(stored.indptr)
    stored.data = (stored.data - centre) ** 2
    return (stored.sum(axis=1) + n_zeros * centre**2) / X.shape[1]


GAMMA_RULES = {
    "scale": _inverse_variance,
    "auto": lambda kernel, X, weights: 1.0 / X.shape[1],
    "median": _inverse_median_distance,
}


class StackTransform(BaseEstimator, ABC):
    """Base class of transforms: ``fit`` on a Gram stack, ``transform`` of any block."""

    #: Names of the learnt arrays with one row per kernel.
    _per_kernel: ClassVar[tuple[str, ...]] = ()
    #: Names of those learnt arrays that have one column per training sample.
    _per_column: ClassVar[tuple[str, ...]] = ()
    #: Whether it changes the feature space other than by scaling; then it precedes centring.
    moves_samples: ClassVar[bool] = False
    #: Whether training samples may lack kernels; other transforms would propagate NaN.
    takes_missing: ClassVar[bool] = False
    #: Whether it is fitted to, and applied to, every kernel independently.
    of_each_kernel: ClassVar[bool] = False
    #: Kernels on demand that it is fitted to later, see :mod:`manykernels.kernels.on_demand`.
    deferred_: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit_transform(
        self, stack: KernelStack, y: object = None, sample_weight: np.ndarray | None = None
    ) -> KernelStack:
        """Fit to a training stack and return it transformed."""
        if stack.on_demand:
            return self._deferred(stack, sample_weight)
        return self.fit(stack, y, sample_weight).transform(stack)

    def fit(
        self, stack: KernelStack, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to a stack whose rows and columns are the training samples.

        Class labels `y` are needed by transforms that are tuned by cross-validation.
        """
        if stack.on_demand:
            self._deferred(stack, sample_weight)
            return self
        if not stack.gram:
            raise ValueError(
                f"{type(self).__name__} learns from a Gram stack of the training rows; this "
                f"one is a {len(stack)} x {stack.shape[1]} block between different samples."
            )
        assert stack.row_diag is not None
        lacking = np.isnan(stack.row_diag).any(axis=1)
        if lacking.any() and not self.takes_missing:
            j = int(lacking.argmax())
            raise ValueError(
                f"{type(self).__name__} cannot take kernel {stack.names[j]!r}, which some samples "
                "lack: complete it first, see manykernels.kernels.completion."
            )
        weights = sample_weights(sample_weight, stack)
        self._learn(stack, weights, y)
        self.n_samples_fit_ = len(stack)
        return self

    def _deferred(self, kernels: Any, sample_weight: ArrayLike | None) -> Any:
        """Return transformed kernels on demand, to which this is fitted when they are needed."""
        return kernels.after(self, sample_weight)

    @abstractmethod
    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        """Set the learnt attributes from a training stack, its sample weights and labels."""

    def transform(self, stack: KernelStack) -> KernelStack:
        """Transform a stack whose columns are the training samples."""
        check_is_fitted(self, "n_samples_fit_")
        if stack.shape[1] != self.n_samples_fit_:
            raise ValueError(
                f"The block has {stack.shape[1]} columns, but {type(self).__name__} was "
                f"fitted on {self.n_samples_fit_} training samples; each is one column."
            )
        return self._transform(stack)

    @abstractmethod
    def _transform(self, stack: KernelStack) -> KernelStack:
        """Transform a stack with as many columns as training samples."""

    def pulled_back(self, coefficients: np.ndarray) -> np.ndarray:
        """Return coefficients of the input kernels that give the same function of new samples.

        For coefficients c of the output kernels, (n_kernels, n_samples, n_outputs), the sums
        ``K_j(x, ·) @ c_j`` are those of the input kernels and the coefficients returned, up to a
        constant. Raises an AttributeError if a transform is not of this kind.
        """
        raise AttributeError(
            f"its kernels are transformed by {type(self).__name__}, which is not linear in the "
            'columns: use normalize="multiplicative", "trace" or None, and missing="error".'
        )

    def sources(self, kernels: np.ndarray) -> np.ndarray:
        """Return the positions of input kernels from which some output kernels are computed.

        The transform ``select(kernels)`` takes a stack of these kernels, in this order.
        """
        kernels = np.asarray(kernels)
        return np.flatnonzero(kernels) if kernels.dtype == bool else kernels

    def origins(self, kernels: np.ndarray) -> np.ndarray:
        """Return the positions of the input kernels that correspond to some output kernels."""
        return self.sources(kernels)

    def erased(self) -> np.ndarray:
        """Return the positions of input kernels that become zero for lack of variance."""
        return np.empty(0, dtype=np.intp) if self.deferred_ is None else self.deferred_.erased()

    @property
    def needs_all_columns(self) -> bool:
        """Whether blocks need the columns of all training samples even after `for_columns`."""
        return False

    def select(self, kernels: np.ndarray) -> Self:
        """Return a fitted transform that returns only some of the kernels."""
        if self.deferred_ is not None:
            return self.deferred_.fitted(kernels)
        new = copy(self)
        for name in self._per_kernel:
            setattr(new, name, getattr(self, name)[kernels])
        return new

    def for_columns(self, columns: np.ndarray) -> Self:
        """Return a fitted transform of blocks whose columns are some of the training samples."""
        new = copy(self)
        new.n_samples_fit_ = len(columns)
        for name in self._per_column:
            setattr(new, name, getattr(self, name)[:, columns])
        return new


@storable
class Center(StackTransform):
    """Centre every kernel in its feature space by the mean of the training samples.

    With equal weights and ``P = I − 11ᵀ/m``, a Gram matrix of training samples becomes ``P K P``,
    a test block ``(K_t − 1 k̄ᵀ) P`` with k̄ the column means of K.

    Attributes
    ----------
    means_ : ndarray of shape (n_kernels, n_samples)
        Weighted mean over training rows of each kernel column.
    grand_means_ : ndarray of shape (n_kernels,)
        Weighted mean of `means_`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.kernels.transforms import Center
    >>> stack = KernelStack.from_arrays([np.array([[4.0, 2.0], [2.0, 1.0]])])
    >>> Center().fit_transform(stack).kernel(0)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """

    _per_kernel = ("means_", "grand_means_")
    of_each_kernel = True

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        self.sample_weight_ = weights / weights.sum()
        self.means_ = stack.apply(self.sample_weight_[:, None])[:, :, 0]
        self.grand_means_ = self.means_ @ self.sample_weight_

    def fit_transform(
        self, stack: KernelStack, y: object = None, sample_weight: np.ndarray | None = None
    ) -> KernelStack:
        if stack.on_demand:
            return super().fit_transform(stack, y, sample_weight)
        # The row means of a Gram matrix are its column means, which saves a pass over the stack.
        self.fit(stack, y, sample_weight)
        return self._shift(stack, self.means_)

    def _transform(self, stack: KernelStack) -> KernelStack:
        return self._shift(stack, stack.apply(self.sample_weight_[:, None])[:, :, 0])

    def pulled_back(self, coefficients: np.ndarray) -> np.ndarray:
        total = coefficients.sum(axis=1, keepdims=True)
        return coefficients - self.sample_weight_[:, None] * total

    def for_columns(self, columns: np.ndarray) -> Self:
        """Raise a TypeError: a row is centred by its mean over all training samples."""
        raise TypeError("Center needs the columns of all training samples.")

    @property
    def offsets_(self) -> np.ndarray:
        """Offsets o of the training samples in ``K_ij − o_i − o_j``, (n_kernels, n_samples).

        Each contains half of the grand mean, so that rows and columns have the same offsets.
        """
        return self.means_ - self.grand_means_[:, None] / 2

    def _shift(self, stack: KernelStack, row_means: np.ndarray) -> KernelStack:
        return stack.shifted(row_means - self.grand_means_[:, None] / 2, self.offsets_)


@storable
class Spherical(StackTransform):
    """Project every sample on the unit sphere: ``K_ij / sqrt(K_ii K_jj)``.

    A test block needs the self-similarities `row_diag` of its rows; those of the training samples
    are stored. Samples of zero norm stay zero.
    """

    _per_kernel = _per_column = ("col_factor_",)
    moves_samples = True
    of_each_kernel = True

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        self.col_factor_ = _inverse_roots(stack)

    def _transform(self, stack: KernelStack) -> KernelStack:
        if stack.row_diag is None:
            raise ValueError(
                "Spherical normalisation of a test block needs the self-similarities k(x, x) "
                "of its rows: KernelStack.from_arrays(block, names, gram=False, row_diag=...)."
            )
        return stack.rescaled_samples(_inverse_roots(stack), self.col_factor_)


@storable
class UnitTrace(StackTransform):
    """Divide every kernel by its trace after centring.

    A constant kernel, which has no variance, becomes zero.

    Attributes
    ----------
    scale_ : ndarray of shape (n_kernels,)
        The factor of each kernel.
    """

    _per_kernel = ("scale_",)
    of_each_kernel = True

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        trace, rounding = centered_trace(stack, weights)
        self.scale_ = np.divide(1.0, trace, np.zeros_like(trace), where=~(trace <= rounding))

    def erased(self) -> np.ndarray:
        if self.deferred_ is not None:
            return super().erased()
        return np.flatnonzero(self.scale_ == 0.0)

    def _transform(self, stack: KernelStack) -> KernelStack:
        return stack.scaled(self.scale_)

    def pulled_back(self, coefficients: np.ndarray) -> np.ndarray:
        return coefficients * self.scale_[:, None, None]


@storable
class Multiplicative(UnitTrace):
    """Divide every kernel by its variance in feature space, ``mean(diag K) − mean(K)``.

    The normalisation of Zien and Ong (2007): unit trace times the number of samples.
    """

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        super()._learn(stack, weights, y)
        self.scale_ = self.scale_ * weights.sum()


@storable
class Chain(StackTransform):
    """Sequence of transforms, each fitted to the output of the previous one."""

    takes_missing = True

    def __init__(self, steps: list[StackTransform]):
        self.steps = steps

    def fit_transform(
        self, stack: KernelStack, y: object = None, sample_weight: np.ndarray | None = None
    ) -> KernelStack:
        self.n_samples_fit_ = len(stack)
        for step in self.steps:
            stack = step.fit_transform(stack, y, sample_weight)
        return stack

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        self.fit_transform(stack, y, weights)

    def _transform(self, stack: KernelStack) -> KernelStack:
        for step in self.steps:
            stack = step.transform(stack)
        return stack

    def pulled_back(self, coefficients: np.ndarray) -> np.ndarray:
        for step in reversed(self.steps):
            coefficients = step.pulled_back(coefficients)
        return coefficients

    def sources(self, kernels: np.ndarray) -> np.ndarray:
        for step in reversed(self.steps):
            kernels = step.sources(kernels)
        return kernels

    def erased(self) -> np.ndarray:
        erased_kernels = np.empty(0, dtype=np.intp)
        for step in reversed(self.steps):
            erased_kernels = np.union1d(step.origins(erased_kernels), step.erased())
        return erased_kernels

    def origins(self, kernels: np.ndarray) -> np.ndarray:
        for step in reversed(self.steps):
            kernels = step.origins(kernels)
        return kernels

    @property
    def needs_all_columns(self) -> bool:
        return any(step.needs_all_columns for step in self.steps)

    def select(self, kernels: np.ndarray) -> Self:
        new = super().select(kernels)
        new.steps = []
        for step in reversed(self.steps):
            new.steps.insert(0, step.select(kernels))
            kernels = step.sources(kernels)
        return new

    def for_columns(self, columns: np.ndarray) -> Self:
        new = super().for_columns(columns)
        # All steps before the last one that needs all columns must return all columns.
        needing = [i for i, step in enumerate(self.steps) if step.needs_all_columns]
        whole = self.steps[: needing[-1]] if needing else []
        new.steps = [*whole, *(step.for_columns(columns) for step in self.steps[len(whole) :])]
        if needing:
            new.n_samples_fit_ = new.steps[0].n_samples_fit_
        return new


#: Normalisations by the value of the parameter `normalize`.
NORMALIZATIONS: dict[str, type[StackTransform]] = {
    "multiplicative": Multiplicative,
    "spherical": Spherical,
    "trace": UnitTrace,
}


def preparation(
    normalize: str | None, *, center: bool = True, completion: StackTransform | None = None
) -> Chain:
    """Return centring and one of ``NORMALIZATIONS``, in the order of Yan 2012, section 3.

    A `completion`, if any, comes first. Spherical normalisation precedes centring, since it moves
    the samples; the other normalisations, which only scale, follow it. Machines with a bias learn
    the same function with ``center=False``.
    """
    steps: list[StackTransform] = [Center()] if center else []
    if normalize is not None:
        if normalize not in NORMALIZATIONS:
            names = ", ".join(f'"{name}"' for name in NORMALIZATIONS)
            raise ValueError(f"normalize must be {names} or None, got {normalize!r}.")
        normalization = NORMALIZATIONS[normalize]()
        steps.insert(0 if normalization.moves_samples else len(steps), normalization)
    return Chain(steps if completion is None else [completion, *steps])


def centered_trace(stack: KernelStack, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted trace of each kernel after centring, and its rounding error.

    The error is proportional to the trace before centring; for single precision it includes the
    rounding of the stored values. A trace within its error counts as zero: a division by it would
    amplify rounding errors.
    """
    centered = stack if stack.centered else Center().fit_transform(stack, sample_weight=weights)
    assert stack.row_diag is not None
    assert centered.row_diag is not None
    uncentered = stack.row_diag @ weights
    if stack._rows.offset is not None:
        uncentered = uncentered + 2 * stack._rows.offset @ weights
    rounding = max(ACCUMULATED, stack.resolution) * np.abs(uncentered)
    return centered.row_diag @ weights, rounding


def _inverse_roots(stack: KernelStack) -> np.ndarray:
    diagonal = stack.row_diag
    assert diagonal is not None
    if diagonal.min() < 0:
        j, row = np.unravel_index(diagonal.argmin(), diagonal.shape)
        raise ValueError(
            f"Kernel {stack.names[j]!r} has a negative self-similarity {diagonal[j, row]:.3g} at "
            f'row {row}, so it has no spherical normalisation; use "multiplicative" or "trace".'
        )
    return 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
