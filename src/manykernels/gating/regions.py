"""Regions learnt without labels, and the shares of samples in them.

Shares ``s_l(x) ≥ 0`` sum to one at every sample. From a kernel k_j each region l gets a kernel

    K_lj(x, x') = √s_l(x) √s_l(x') k_j(x, x')

so that weights can be learnt for every region, still a convex problem (Lei et al. 2016). The
paper uses the shares instead of their roots. With roots ``Σ_l K_lj(x, x)`` is ``k_j(x, x)``: the
norm of a sample is the same between regions as inside of one, and with equal shares everywhere the
problem is that of plain weights. If every sample belongs to one region only, both agree.

**Regions of kernels** (:class:`KernelRegions`). Kernel k-means on the mean k of the kernels; the
squared distance of x from the mean of the samples in region l is

    d_l²(x) = k(x, x) − 2 mean_i k(x, x_i) + mean_ii' k(x_i, x_i')        over samples i, i' in l

and shares are ``s_l ∝ exp(−sharpness · d_l²/scale)``. The scale is the mean over training samples
of the margin in d² between the second nearest region and the nearest. So the share of a typical
sample in its region is ``exp(sharpness)`` times its share in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..kernels import KernelStack
from ..kernels.on_demand import RegionalKernels
from ..kernels.tables import Columns, Table, naming, resolve_columns, select_columns
from ..kernels.transforms import StackTransform
from ..utils.numerics import ACCUMULATED
from ..utils.sklearn import Interval, StrOptions, num_samples, warn_caller
from ..utils.storable import storable
from .gates import Array

# Maximum number of steps of k-means, which ends where no sample changes its region; it rarely
# takes more than twenty.
_MOST_STEPS = 300
# Relative improvement required of a later start, so that rounding does not decide between two that
# found the same regions.
_BETTER = 1e-9


@storable
@dataclass(eq=False, repr=False)
class KernelRegions(BaseEstimator):
    """Regions by kernel k-means on the mean of several kernels.

    The result does not depend on the order of samples and kernels, and a sample of weight two is
    two samples. Regions are sorted by size, the largest first.

    Parameters
    ----------
    n_regions : int or list of int, default=3
        Number of regions. If there are fewer distinct samples, there are fewer regions, with a
        warning. Estimators with CV choose from a list, in which 1 is plain multiple kernel
        learning.
    sharpness : float in [0, inf], list of float or "auto", default="auto"
        Logarithm of the ratio of the shares of a typical sample in its region and in the next: 0
        gives equal shares everywhere, which is the model without regions, inf assigns every sample
        to one region. With "auto" an estimator chooses among 0, 0.5, 2 and 8 by three folds: the
        one with the least loss of held-out samples, if that is two standard errors less than
        without regions, and no more samples are wrong. Otherwise there is one region. Estimators
        with CV choose from a list; "auto" is 2 and 8.
    n_init : int, default=10
        Number of k-means++ starts; the one with the smallest inertia is kept.
    random_state : int, RandomState or None, default=0
        Random numbers of the starts.

    Attributes
    ----------
    n_regions_ : int
    labels_ : ndarray of shape (n_samples,)
        Nearest region of each training sample.
    inertia_ : float
        Sum of squared distances of training samples from their regions.
    scale_ : float
        Scale of distances, see above.

    Notes
    -----
    For a sample that is similar to no training sample, such as one far away with Gaussian kernels,
    regions differ only by ``mean_ii' k(x_i, x_i')``: its largest share is in the widest region.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.gating import KernelRegions
    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> stack = KernelStack.from_arrays([x @ x.T])
    >>> KernelRegions(2, sharpness=4).fit(stack).shares(stack).round(2)
    array([[0.98, 0.02],
           [0.98, 0.02],
           [0.98, 0.02],
           [0.02, 0.98],
           [0.02, 0.98]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_regions": [Interval(Integral, 1, None, closed="left")],
        "sharpness": [Interval(Real, 0, None, closed="both"), StrOptions({"auto"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    n_regions: int | Sequence[int] = 3
    _: KW_ONLY
    sharpness: float | Sequence[float] | str = "auto"
    n_init: int = 10
    random_state: int | np.random.RandomState | None = 0

    def fit(self, stack: KernelStack, sample_weight: Array | None = None) -> Self:
        """Learn regions from the kernels of training samples, a Gram stack."""
        self.fit_part(stack, sample_weight)
        if self.n_regions_ < cast(int, self.n_regions):
            warn_caller(
                f"There are {self.n_regions_} regions, not {self.n_regions}: by the mean of the "
                "kernels there are no more distinct training samples.",
                UserWarning,
            )
        return self

    def fit_part(self, stack: KernelStack, sample_weight: Array | None = None) -> Self:
        """Learn regions from the training part of a fold, without a warning of fewer regions."""
        self._validate_params()
        weights = np.ones(len(stack)) if sample_weight is None else np.asarray(sample_weight)
        mean = stack.combine(np.full(stack.n_kernels, 1.0 / stack.n_kernels))
        rng = check_random_state(self.random_state)
        n_regions = cast(int, self.n_regions)
        best = _cluster(mean, weights, n_regions, rng)
        for _ in range(1, self.n_init):
            other = _cluster(mean, weights, n_regions, rng)
            if other.inertia < (1.0 - _BETTER) * best.inertia:
                best = other
        self.n_regions_ = best.n_regions
        self.inertia_ = best.inertia
        # Coefficients of the means of the regions, (n_samples, n_regions), and their norms,
        # relative to the first sample. A large constant in the kernel cancels entry by entry,
        # before sums turn it into rounding errors.
        self._means = best.means(weights)
        products = (mean - mean[:, :1]) @ self._means
        self._lengths = np.sum(self._means * (products - products[0]), axis=0) + 2 * products[0]
        distances = self._lengths - 2.0 * products
        self.labels_ = distances.argmin(axis=1)
        self.scale_ = _mean_margin(distances, weights)
        return self

    def with_sharpness(self, sharpness: float) -> Self:
        """Return a fitted copy with the same regions and other shares."""
        new = copy(self)
        new.sharpness = sharpness
        return new

    def shares(self, stack: KernelStack) -> Array:
        """Return the shares of the rows of a block between new and all training samples.

        Returns
        -------
        shares : ndarray of shape (rows, n_regions)
        """
        check_is_fitted(self, "scale_")
        sharpness, distances = self._checked_sharpness(), self._distances(stack)
        if np.isinf(sharpness):
            shares = (distances == 0.0).astype(np.float64)
        else:
            # For samples far outside the exponent may overflow; their share is then zero.
            with np.errstate(over="ignore"):
                shares = np.exp(-sharpness * (distances / self.scale_))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _checked_sharpness(self) -> float:
        if isinstance(self.sharpness, Real):
            return float(self.sharpness)
        raise ValueError(
            f"sharpness={self.sharpness!r} is chosen by estimators such as ConvexLocalizedSVC. "
            "Pass a number, such as 2, to compute shares without one."
        )

    def _distances(self, stack: KernelStack) -> Array:
        """Return squared distances from regions minus the smallest one, (rows, n_regions)."""
        mean = stack.combine(np.full(stack.n_kernels, 1.0 / stack.n_kernels))
        # Terms that are the same for all regions are left out: k(x, x), and the first column.
        distances: Array = self._lengths - 2.0 * ((mean - mean[:, :1]) @ self._means)
        distances -= distances.min(axis=1, keepdims=True)
        return distances

    def share_errors(self, stack: Any) -> Array:
        """Return bounds on the relative rounding errors of the shares of a Gram stack.

        Entries of a kernel are computed again for predictions. Their rounding errors become
        errors of distances, which are relative to the differences between regions:
        ``δs_l/s_l = (sharpness/scale) (Σ_k s_k δd_k² − δd_l²)``. Bounds are at most one.

        Returns
        -------
        errors : ndarray of shape (rows, n_regions)
        """
        errors = 2.0 * stack.resolution * np.abs(stack.row_diag).mean(axis=0)[:, None]
        sharpness = self._checked_sharpness()
        if np.isinf(sharpness):
            second = np.sort(self._distances(stack), axis=1)[:, 1:2]
            unsure = (second <= errors).any(axis=1, keepdims=True)
            return np.asarray(np.repeat(unsure, self.n_regions_, axis=1), dtype=np.float64)
        others = 1.0 - self.shares(stack)
        return np.asarray(np.minimum(sharpness / self.scale_ * errors * others, 1.0))


def _mean_margin(distances: Array, weights: Array) -> float:
    """Return the mean margin between the second nearest region and the nearest; positive."""
    if distances.shape[1] == 1:
        return 1.0
    nearest, second = np.partition(distances, 1, axis=1)[:, :2].T
    margin = float(np.average(second - nearest, weights=weights))
    return margin if margin > 0.0 else 1.0


class _Clusters(NamedTuple):
    """Samples by region, and the weighted sum of their squared distances from its mean."""

    labels: np.ndarray
    n_regions: int
    inertia: float

    def means(self, weights: Array) -> Array:
        """Return the coefficients of the mean of each region, (n_samples, n_regions)."""
        table = weights[:, None] * (self.labels[:, None] == np.arange(self.n_regions))
        return np.asarray(table / table.sum(axis=0))


def _cluster(
    kernel: Array, weights: Array, n_regions: int, rng: np.random.RandomState
) -> _Clusters:
    """Run kernel k-means from one random start; the largest region comes first."""
    labels, every = _seeded(kernel, weights, n_regions, rng), np.arange(len(kernel))
    rounding = _rounding(kernel)
    for _ in range(_MOST_STEPS):
        distances = _distances(kernel, weights, labels)
        nearest = distances[every, labels]
        # A sample equally near to its own region and another one stays, and no region is emptied.
        moving = distances.min(axis=1) < nearest - rounding
        changed = np.where(moving, distances.argmin(axis=1), labels)
        if len(np.unique(changed)) < distances.shape[1] or not moving.any():
            break
        labels = changed
    sizes = np.bincount(labels, weights)
    order = np.argsort(-sizes, kind="stable")
    return _Clusters(np.argsort(order)[labels], len(sizes), float(weights @ nearest))


def _rounding(kernel: Array) -> float:
    """Return the size of rounding errors of squared distances; the diagonal bounds all entries."""
    return ACCUMULATED * float(np.abs(np.diag(kernel)).max(initial=0.0))


def _distances(kernel: Array, weights: Array, labels: np.ndarray) -> Array:
    """Return squared distances of all samples from the means of all regions."""
    means = _Clusters(labels, int(labels.max()) + 1, np.inf).means(weights)
    products = kernel @ means
    lengths = np.sum(means * products, axis=0)
    return np.asarray(np.maximum(np.diag(kernel)[:, None] - 2.0 * products + lengths, 0.0))


def _seeded(
    kernel: Array, weights: Array, n_regions: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return labels by the nearest of random samples, drawn as by k-means++.

    Each is drawn with a probability proportional to its squared distance from the previous ones.
    The draw is a quantile in the order of distances, so that the order of rows does not matter.
    """
    diagonal = np.diag(kernel)
    share = weights / weights.sum()
    with_mean = kernel @ share
    distances = np.maximum(diagonal - 2.0 * with_mean + share @ with_mean, 0.0)
    # The first sample is drawn by weight alone.
    mass, least = weights, _rounding(kernel)
    labels, nearest = np.zeros(len(kernel), dtype=np.intp), np.full(len(kernel), np.inf)
    for region in range(n_regions):
        if region and not (nearest > least).any():
            break
        order = np.argsort(distances, kind="stable")
        reached = np.cumsum(mass[order])
        drawn = order[np.searchsorted(reached, rng.uniform() * reached[-1], side="right")]
        new = np.maximum(diagonal - 2.0 * kernel[drawn] + diagonal[drawn], 0.0)
        new[drawn] = 0.0
        labels = np.where(new < nearest, region, labels)
        nearest = np.minimum(nearest, new)
        distances = np.where(nearest > least, nearest, 0.0)
        mass = weights * distances
    return labels


# -- Kernels of regions, as a step of the preparation of kernels ----------------------------------


@storable
class ByRegion(StackTransform):
    """Repeat every kernel for each region; see :mod:`manykernels.gating.regions`.

    Parameters
    ----------
    regions : KernelRegions or None
        Learnt from the kernels; new samples are compared with all training samples. If None,
        shares are given: those of `training` samples, and those of new samples as the features of
        the rows of a block.
    training : ndarray of shape (n_samples, n_regions), optional

    Attributes
    ----------
    regions_ : KernelRegions or None
        Fitted regions.
    sizes_ : ndarray of shape (n_regions,)
        Mean share of training samples in each region.
    """

    def __init__(self, regions: KernelRegions | None, training: Array | None = None) -> None:
        self.regions = regions
        self.training = training

    def fit_transform(
        self, stack: KernelStack, y: object = None, sample_weight: np.ndarray | None = None
    ) -> Any:
        self.fit(stack, y, sample_weight)
        regional = self._regional(stack, self._col_factors)
        if self.regions_ is None:
            return regional
        # The relative error of the root of a share is half that of the share.
        return regional.with_factor_errors(0.5 * self.regions_.share_errors(stack).T)

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        shares = self.training
        self.regions_ = None
        if self.regions is not None:
            self.regions_ = clone(self.regions).fit(stack, weights)
            shares = self.regions_.shares(stack)
        assert shares is not None
        self.sizes_ = np.average(shares, axis=0, weights=weights)
        self._col_factors = np.sqrt(shares).T
        self._columns: np.ndarray | None = None
        # Region and original kernel of every returned kernel.
        self._n_inputs = stack.n_kernels
        self._region_of = np.repeat(np.arange(shares.shape[1]), stack.n_kernels)
        self._source_of = np.tile(np.arange(stack.n_kernels), shares.shape[1])

    def _transform(self, stack: Any) -> Any:
        shares = stack.features if self.regions_ is None else self.regions_.shares(stack)
        return self._regional(stack, np.sqrt(shares).T)

    def _regional(self, stack: KernelStack, row_factors: Array) -> RegionalKernels:
        base = stack if self._columns is None else stack[:, self._columns]
        regional = RegionalKernels(base, row_factors, self._col_factors)
        return regional.select(self._region_of * stack.n_kernels + self._source_of)

    # -- parts -----------------------------------------------------------------------------

    @property
    def needs_all_columns(self) -> bool:
        return self.regions_ is not None

    def sources(self, kernels: np.ndarray) -> np.ndarray:
        # Distances from regions depend on the mean of all kernels.
        if self.needs_all_columns:
            return np.arange(self._n_inputs)
        return np.unique(self.origins(kernels))

    def origins(self, kernels: np.ndarray) -> np.ndarray:
        return self._source_of[super().sources(kernels)]

    def select(self, kernels: np.ndarray) -> Self:
        new = copy(self)
        inputs = self.sources(kernels)
        new._n_inputs = len(inputs)
        new._region_of = self._region_of[kernels]
        new._source_of = np.searchsorted(inputs, self._source_of[kernels])
        return new

    def for_columns(self, columns: np.ndarray) -> Self:
        new = copy(self)
        new._col_factors = self._col_factors[:, columns]
        if self.needs_all_columns:
            new._columns = columns if self._columns is None else self._columns[columns]
        else:
            new.n_samples_fit_ = len(columns)
        return new


# -- Shares in regions given by the user: columns, a clustering, a function of X ------------------


# Tolerance on the sum of a row of shares: single-precision rounding adds up over regions.
_SUMS_TO_ONE = 1e-5


@storable
class GivenRegions(BaseEstimator):
    """Regions defined by the user: columns of shares, a clustering, or a function.

    Parameters
    ----------
    model : estimator, function or None, default=None
        - a scikit-learn estimator: a clone is fitted on the training rows, with targets if it
          needs them. The shares are its ``predict_proba`` (GaussianMixture) if it has one. If
          not, every row belongs to the region returned by ``predict`` (KMeans), or ``transform``
          returns the shares (OneHotEncoder).
        - a function of a table that returns the shares of its rows.
        - None: the columns hold the shares.

        Shares are non-negative and sum to one in every row.
    columns : str, list, slice, boolean mask or None, default=None
        Columns of X for the model, or that hold the shares; by default all. With several views,
        the name of a view, for all its columns (kernels then name the other views, as in
        ``RBF().of("audio")``), or columns of all views together. With precomputed kernels,
        columns of the table of :meth:`KernelStack.with_features`.

    Attributes
    ----------
    n_regions_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from manykernels.gating import GivenRegions
    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    >>> GivenRegions(KMeans(2, random_state=0)).fit(x).shares(x[2:4])
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(
        self, model: BaseEstimator | Callable[[Any], Any] | None = None, *, columns: Columns = None
    ) -> None:
        self.model = model
        self.columns = columns

    def fit(self, X: Table, y: object = None, sample_weight: object = None) -> Self:
        """Learn regions from training rows; no region may be empty there."""
        with naming("regions"):
            self._model = _unfitted(self.model)
            self._columns = resolve_columns(self.columns, X)
            self._labels: np.ndarray | None = None
            if self._model is not None and hasattr(self._model, "fit"):
                weighted = sample_weight is not None and has_fit_parameter(
                    self._model, "sample_weight"
                )
                options = {"sample_weight": sample_weight} if weighted else {}
                self._model.fit(select_columns(X, self._columns), y, **options)
            shares = self._checked(X)
            empty = np.flatnonzero(~shares.any(axis=0))
            if len(empty):
                raise ValueError(
                    f"region {empty[0]} has no training sample, so that its weights are "
                    "undetermined. Leave its column out."
                )
        self.n_regions_ = shares.shape[1]
        return self

    def shares(self, X: Table) -> Array:
        """Return the shares of the rows of X, ``(n_rows, n_regions_)``."""
        check_is_fitted(self, "n_regions_")
        with naming("regions"):
            shares = self._checked(X)
            if shares.shape[1] != self.n_regions_:
                raise ValueError(
                    f"X has shares in {shares.shape[1]} regions, but there were "
                    f"{self.n_regions_} in training."
                )
        return shares

    def _checked(self, X: Table) -> Array:
        raw = self._raw(select_columns(X, self._columns))
        try:
            shares = np.asarray(raw.toarray() if hasattr(raw, "toarray") else raw, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "shares are numbers, but these columns have other values. Turn categories "
                "into shares by GivenRegions(OneHotEncoder(), columns=...)."
            ) from error
        n_rows = num_samples(X)
        if shares.ndim != 2 or len(shares) != n_rows or not shares.shape[1]:
            raise ValueError(
                f"shares must be a table with one row for each of {n_rows} samples and one column "
                f"per region, got an array of shape {shares.shape}."
            )
        for problem, bad in (
            ("that is not finite", ~np.isfinite(shares)),
            ("that is negative", shares < 0.0),
        ):
            if bad.any():
                row, region = np.argwhere(bad)[0]
                raise ValueError(
                    f"row {row} has a share {problem} in region {region}: {shares[row, region]}."
                )
        totals = shares.sum(axis=1)
        wrong = np.flatnonzero(np.abs(totals - 1.0) > _SUMS_TO_ONE)
        if len(wrong):
            raise ValueError(
                f"the shares of row {wrong[0]} sum to {totals[wrong[0]]:.6g}, not to one. Divide "
                "every row by its sum, or add a region for the remainder."
            )
        return np.asarray(shares / totals[:, None])

    def _raw(self, table: Table) -> Any:
        model = self._model
        if model is None:
            return table
        if not hasattr(model, "fit"):
            return model(table)
        if hasattr(model, "predict_proba"):
            return model.predict_proba(table)
        if not hasattr(model, "predict"):
            return model.transform(table)
        labels = np.asarray(model.predict(table))
        if self._labels is None:
            self._labels = np.unique(labels)
        unknown = np.flatnonzero(~np.isin(labels, self._labels))
        if len(unknown):
            raise ValueError(
                f"row {unknown[0]} belongs to region {labels[unknown[0]]!r}, which has no "
                "training sample."
            )
        return labels[:, None] == self._labels


def _unfitted(model: Any) -> Any:
    """Return an unfitted copy of an estimator; functions and None are returned as they are."""
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class; pass an instance, {model.__name__}(...).")
    if hasattr(model, "fit"):
        if not any(hasattr(model, name) for name in ("predict_proba", "predict", "transform")):
            raise TypeError(
                f"{model!r} cannot be applied to new samples: it has no predict_proba, predict or "
                "transform. Pass a number of regions, or another estimator."
            )
        return clone(model)
    if model is None or callable(model):
        return model
    if len(getattr(model, "shape", ())) == 2:
        raise TypeError(
            "a table of shares cannot be used for new samples; pass the columns of X that hold "
            "them, or a function of X."
        )
    raise TypeError(
        f"model must be an estimator or a function of X, got {model!r}. Columns of X that hold "
        "shares are passed by name: GivenRegions(columns=...)."
    )


#: Values of the parameter `regions` of an estimator.
AnyRegions = int | Sequence[int] | KernelRegions | GivenRegions


def as_regions(regions: AnyRegions) -> KernelRegions | GivenRegions:
    """Return the regions of a number, or of a list of numbers; objects are returned as they are.

    Examples
    --------
    >>> from manykernels.gating.regions import as_regions
    >>> as_regions(4)
    KernelRegions(n_regions=4)
    """
    if isinstance(regions, KernelRegions | GivenRegions):
        return regions
    numbers = regions if isinstance(regions, Sequence | np.ndarray) else [regions]
    if all(isinstance(number, Integral) and not isinstance(number, bool) for number in numbers):
        return KernelRegions(regions)
    wrapped = " Wrap it: regions=GivenRegions(...)." if _is_model(regions) else ""
    raise ValueError(
        "regions must be a number of regions, KernelRegions(...) or GivenRegions(...), got "
        f"{regions!r}.{wrapped or ' Columns that hold shares are GivenRegions(columns=...).'}"
    )


def _is_model(value: object) -> bool:
    return hasattr(value, "fit") or callable(value)
