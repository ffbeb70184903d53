"""RelevanceRBF: a Gaussian kernel that learns from targets how much each column matters.

The kernel of standardised columns is ``K_ij = exp(−½ Σ_c s_c (x_ic − x_jc)²)``. Its scales s are
those of largest evidence: the targets Y, r columns of unit variance, are likely under a Gaussian
process with an unknown mean and the covariance ``v A``, ``A = K + ν W⁻¹``, with the noise ν and
the sample weights W. Up to constants, −2 times the logarithm of the restricted likelihood, at the
best v, is

    E(s, ν) = r(m − 1) log tr(Yᵀ P Y) + r log|A| + r log(1ᵀu),   u = A⁻¹1,   P = A⁻¹ − uuᵀ/(1ᵀu)
    ∂E/∂θ   = tr(B ∂A/∂θ),   B = r P − r(m − 1) aaᵀ / tr(YᵀPY),   a = P Y

(:mod:`manykernels.solvers.evidence` has the same for weights of given kernels). With
``G = B ∘ K``, ``∂E/∂s_c = −(Σ_i x_ic² Σ_j G_ij − x_cᵀ G x_c)``, so that the derivatives of all
scales cost one factorisation and the product of G with X.

**Penalty.** Scales are as many as columns, and fit noise where rows are few. They are drawn to one
another by the penalty ``τ Σ_c (log s_c − mean)²``: a prior by which log scales are normal with the
variance 1/τ around a common mean. The strength τ is chosen by the evidence once more. By Laplace's
approximation

    −2 log evidence(τ) = min [E + τ Σ_c (log s_c − mean)²] + log|I + F/τ|,

with the average information ``F_cd = ½ r(m − 1) Σ_k v_ckᵀ P v_dk / tr(YᵀPY)`` of log scales,
``v_ck = (∂A/∂log s_c) a_k``, on the complement of the constant vector. Equal scales, τ = ∞, are
the first candidate, and each solution is the start of the next one. E is not convex: the descent
from equal scales ends at one of perhaps several minima.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize
from sklearn.utils.validation import check_is_fitted

from ..utils.numerics import ROUNDING
from ..utils.sklearn import Interval, sample_weights
from ..utils.storable import storable
from .base import Kernel, SquaredDistances

# Penalties to choose from, besides equal scales, from strong to weak. On 17 sets of 100 to 400
# rows these three predicted as well as four or more.
_PENALTIES = (2.0, 0.2, 0.02)
# Rows by which the penalty is chosen, if there are more: the scales are then learnt from all rows.
# With 320 rows a fit takes half of the time, and predictions are as good.
_ROWS_OF_CHOICE = 200
# Bounds of scales, of standardised columns, and of the noise, in units of the variance of K. With
# less noise descents end at poor minima more often.
_LEAST_SCALE, _LARGEST_SCALE = 1e-6, 1e2
_LEAST_NOISE, _LARGEST_NOISE = 1e-3, 1e4
# Largest sum of scales that are equal: with more, K would be the identity, which is noise as well.
_LARGEST_SUM = 10.0
# Scales are not equal if that makes the targets e times as likely, or more.
_LEAST_GAIN = 2.0
# Noise at the start.
_FIRST_NOISE = 0.3
# Least noise of a single row, if its weight is very large: with less A is singular.
_LEAST_OF_ROW = 1e-8
# Most steps of a descent, and the relative fall of E at which a descent ends.
_MOST_STEPS, _LEAST_FALL = 50, 1e-4


@storable
@dataclass(eq=False, repr=False)
class RelevanceRBF(Kernel):
    """Gaussian kernel ``exp(−½ Σ_c s_c (x_c − y_c)²)`` of standardised columns, s learnt from y.

    Where few of many columns matter, equal scales hide them: the distance of two rows is mostly
    that of the others. This kernel learns a scale for each column (automatic relevance
    determination), as those under which the targets are most likely for a Gaussian process. It
    needs targets: ``fit(X, y)``, or one of :class:`~manykernels.MKRidge`,
    :class:`~manykernels.MKFDA`, :class:`~manykernels.MKLogistic`, :class:`~manykernels.MKGLM` and
    their CV twins, whose folds learn it anew without their test samples.

    Parameters
    ----------
    penalty : float in [0, inf], optional
        Penalty on squared differences of log scales from their mean: with infinity scales are
        equal, with zero they are free, and fit noise where rows are few. None chooses it: 2, 0.2,
        0.02 or infinity, whichever makes the targets most likely.
    max_rows : int, default=1000
        Scales are learnt from this many rows at most, drawn at random with a fixed seed.
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns that are compared; see :class:`Kernel`.

    Attributes
    ----------
    scales_ : ndarray of shape (n_columns,)
        s, of standardised columns: the larger, the sooner the kernel falls along the column.
        Constant columns have the scale zero. A linear effect has a small scale, since a wide
        Gaussian is nearly linear: compare logarithms.
    deviations_ : ndarray of shape (n_columns,)
        Standard deviations of the columns, by which they are divided.
    penalty_ : float
        The penalty, given or chosen; infinity for equal scales.

    Notes
    -----
    Several targets share the scales, and each counts alike. Equal rows with equal targets count as
    one row with the sum of their weights. The objective is not convex, and the scales are those of
    a descent from equal ones. A descent takes a few tens of factorisations of a matrix of the
    training rows.

    Scales that were learnt from the target of a row make predictions of this target too good.
    Estimators with CV in their names learn the kernel anew in every split. Closed forms cannot:
    ``cv="closed-form"`` is refused, `left_out_predictions_` of :class:`~manykernels.MKRidge` are
    NaN, and left-out probabilities of :class:`~manykernels.MKFDA` are too good.

    The default kernels of :class:`~manykernels.MKRidgeCV` include it.

    References
    ----------
    D. J. C. MacKay. Bayesian non-linear modelling for the prediction competition. ASHRAE
    Transactions 100, 1994.
    C. E. Rasmussen, C. K. I. Williams. Gaussian processes for machine learning. MIT Press, 2006.

    Examples
    --------
    Two of six columns matter:

    >>> import numpy as np
    >>> from manykernels.kernels import RelevanceRBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 6))
    >>> y = np.sin(2 * X[:, 1]) + X[:, 4] ** 2 + rng.normal(scale=0.1, size=100)
    >>> RelevanceRBF().fit(X, y).scales_.round(1)
    array([0. , 0.4, 0. , 0. , 0.2, 0. ])
    """

    _accepts_sparse = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="both"), None],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
    }

    penalty: float | None = None
    max_rows: int = 1000

    @property
    def learns_from_targets(self) -> bool:
        return True

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the scales of the columns from training rows and their targets.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (rows, features)
        y : array-like of shape (rows,) or (rows, n_targets)
            Numbers; of classes, columns of indicators, as classifiers pass them.
        sample_weight : array-like of shape (rows,), optional
            A row of weight two counts as two equal rows, one of weight zero is ignored.

        Returns
        -------
        self : RelevanceRBF
        """
        return super().fit(X, y, sample_weight)

    def _fit(self, X: np.ndarray, y: Any, sample_weight: ArrayLike | None) -> None:
        targets = _checked_targets(y, len(X))
        weights = sample_weights(sample_weight, X)
        counted = weights > 0.0
        rows = _Rows.of(X[counted], targets[counted], weights[counted])
        varying = rows.deviations > 0.0
        self.n_features_in_ = X.shape[1]
        self.deviations_, self.scales_ = rows.deviations, np.zeros(X.shape[1])
        scales, self.penalty_ = rows.at_most(self.max_rows).scales(self.penalty)
        self.scales_[varying] = scales

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        varying = self.scales_ > 0.0
        factors = np.sqrt(self.scales_[varying]) / self.deviations_[varying]
        scaled: np.ndarray = X[:, varying] * factors
        return scaled

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        check_is_fitted(self, "scales_")
        if not self.scales_.any():
            return np.ones((len(X), len(X if Y is None else Y)))
        K = SquaredDistances(self._scaled(X), None if Y is None else self._scaled(Y)).whole()
        K *= -0.5
        return np.exp(K, out=K)

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        check_is_fitted(self, "scales_")
        return np.ones(len(X))


def _checked_targets(y: Any, n_rows: int) -> np.ndarray:
    """Return targets as an array (n_rows, n_targets) of finite numbers."""
    if y is None:
        raise ValueError(
            "RelevanceRBF learns its scales from targets, and got none: call fit(X, y), or use "
            "the kernel in MKRidge, MKFDA, MKLogistic, MKGLM or their CV twins, without an "
            "approximation. Other estimators and functions fit kernels without targets."
        )
    targets = np.asarray(y)
    if targets.dtype.kind not in "biuf" or targets.ndim not in (1, 2):
        raise ValueError(
            "RelevanceRBF needs numbers as y, one or several per row; got an array of "
            f"{targets.dtype} of shape {targets.shape}. Pass classes as columns of indicators, "
            "such as LabelBinarizer().fit_transform(y)."
        )
    if len(targets) != n_rows:
        raise ValueError(f"y has {len(targets)} rows, but X has {n_rows}.")
    targets = targets.reshape(n_rows, -1).astype(np.float64)
    if not np.isfinite(targets).all():
        row = int(np.argmin(np.isfinite(targets).all(axis=1)))
        raise ValueError(f"y is not finite at row {row}: leave the row out, or give it a value.")
    return targets


def _standardized(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of mean zero and variance one without constant ones, and deviations."""
    largest = np.abs(values).max(axis=0, initial=0.0)
    largest[largest == 0.0] = 1.0
    values = values / largest
    values = values - np.average(values, axis=0, weights=weights)
    deviations = np.sqrt(np.average(values**2, axis=0, weights=weights))
    deviations[deviations <= ROUNDING] = 0.0
    varying = deviations > 0.0
    return values[:, varying] / deviations[varying], largest * deviations


@dataclass(frozen=True)
class _Rows:
    """Distinct training rows: standardised columns and targets, and weights of mean one."""

    columns: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Self:
        """Join equal rows with equal targets."""
        _, first, places = np.unique(
            np.hstack([X, targets]), axis=0, return_index=True, return_inverse=True
        )
        weights = np.bincount(places.ravel(), weights=weights)
        columns, deviations = _standardized(X[first], weights)
        coded, _ = _standardized(targets[first], weights)
        return cls(columns, coded, weights / weights.mean(), deviations)

    def at_most(self, n_rows: int) -> _Rows:
        """Return some of the rows, if there are more."""
        if len(self.columns) <= n_rows:
            return self
        drawn = np.random.RandomState(0).permutation(len(self.columns))[:n_rows]
        drawn.sort()
        return _Rows(
            self.columns[drawn], self.targets[drawn], self.weights[drawn], self.deviations
        )

    def scales(self, penalty: float | None) -> tuple[np.ndarray, float]:
        """Return the scales of the columns that vary, and the penalty that was used."""
        n_rows, n_columns = self.columns.shape
        if n_columns == 0:
            return np.zeros(0), np.inf
        if n_rows < 3 or not self.targets.any():
            return np.full(n_columns, 1.0 / n_columns), np.inf
        few = self.at_most(_ROWS_OF_CHOICE) if penalty is None else self
        if not np.ptp(few.targets, axis=0).any():
            few = self  # nothing can be learnt from equal targets
        point, chosen = few._learnt(penalty)
        if few is not self:
            # The penalty was chosen by some rows; the scales are those of all rows.
            if chosen == np.inf:
                _, point = self._of_equal_scales(point[-2:])
            else:
                _, point = _descend(self._evidence.penalized, point, chosen)
        return np.exp(point[:-1]), chosen

    @property
    def _evidence(self) -> _Evidence:
        return _Evidence(self.columns, self.targets, self.weights)

    def _of_equal_scales(self, start: np.ndarray) -> tuple[float, np.ndarray]:
        """Return E at the best equal scales, and the logarithms of scales and noise."""
        n_columns = self.columns.shape[1]
        largest = min(_LARGEST_SUM / n_columns, _LARGEST_SCALE)
        value, end = _descend(self._evidence.of_equal_scales, start, largest=largest)
        return value, np.append(np.full(n_columns, end[0]), end[1])

    def _learnt(self, penalty: float | None) -> tuple[np.ndarray, float]:
        """Return logarithms of scales and noise, and the penalty, given or chosen."""
        evidence = self._evidence
        # The mean squared distance of standardised rows is twice the number of columns.
        start = np.log([1.0 / evidence.n_columns, _FIRST_NOISE])
        value, equal = self._of_equal_scales(start)
        best = value - _LEAST_GAIN if penalty is None else np.inf, equal, np.inf
        point = equal.copy()
        # If equal scales explain nothing, all is noise, and derivatives by scales vanish.
        point[-1] = min(point[-1], start[1])
        for strength in _PENALTIES if penalty is None else (penalty,):
            if strength == np.inf:
                continue
            value, point = _descend(evidence.penalized, point, strength)
            if penalty is None:
                value += evidence.price(point, strength)
            if value < best[0]:
                best = value, point, float(strength)
        return best[1], best[2]


def _descend(
    function: Any, start: np.ndarray, *args: float, largest: float = _LARGEST_SCALE
) -> tuple[float, np.ndarray]:
    """Return the least value of a function of log scales and log noise, and where it is."""
    bounds = [(np.log(_LEAST_SCALE), np.log(largest))] * (len(start) - 1)
    bounds.append((np.log(_LEAST_NOISE), np.log(_LARGEST_NOISE)))
    options = {"maxiter": _MOST_STEPS, "ftol": _LEAST_FALL}
    result = optimize.minimize(
        function, start, args, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return float(result.fun), result.x


class _Evidence:
    """E of the module docstring, as a function of the logarithms of scales and noise."""

    def __init__(self, columns: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        self._X, self._Y, self._weights = columns, targets, weights
        self._squares = columns**2
        self.n_columns = columns.shape[1]
        self._degrees = targets.shape[1] * (len(columns) - 1)

    def _factorized(self, log: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return K, the noise of every row, the lower factor L of A, and u = A⁻¹1."""
        scaled = self._X * np.exp(0.5 * log[:-1])
        K = scaled @ scaled.T
        squares = np.diagonal(K).copy()
        K -= 0.5 * squares
        K -= 0.5 * squares[:, None]
        np.minimum(K, 0.0, out=K)
        np.exp(K, out=K)
        noise = np.maximum(np.exp(log[-1]) / self._weights, _LEAST_OF_ROW)
        A = K.copy(order="F")
        A[np.diag_indices_from(A)] += noise
        factor = linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        u = linalg.cho_solve((factor, True), np.ones(len(K)), check_finite=False)
        return K, noise, factor, u

    def __call__(self, log: np.ndarray) -> tuple[float, np.ndarray]:
        """Return E and its gradient."""
        K, noise, factor, u = self._factorized(log)
        n_outputs = self._Y.shape[1]
        log_determinant = 2.0 * np.log(np.diagonal(factor)).sum() + np.log(u.sum())
        # dpotri overwrites the factor by the lower triangle of A⁻¹.
        inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        below = np.tril(inverse, -1)
        B = below + below.T
        B[np.diag_indices_from(B)] = np.diagonal(inverse)
        B -= np.outer(u, u / u.sum())
        a = B @ self._Y
        fit = float(np.vdot(a, self._Y))
        value = self._degrees * np.log(fit / self._degrees) + n_outputs * log_determinant
        B *= n_outputs
        B -= (self._degrees / fit) * (a @ a.T)
        free = noise > _LEAST_OF_ROW
        of_noise = np.diagonal(B)[free] @ noise[free]
        B *= K
        products = self._squares.T @ B.sum(axis=1) - np.einsum("ic,ic->c", self._X, B @ self._X)
        return value, np.append(-np.exp(log[:-1]) * products, of_noise)

    def of_equal_scales(self, log: np.ndarray) -> tuple[float, np.ndarray]:
        """Return E and its gradient for one scale of all columns, and the noise."""
        value, gradient = self(np.append(np.full(self.n_columns, log[0]), log[1]))
        return value, np.array([gradient[:-1].sum(), gradient[-1]])

    def penalized(self, log: np.ndarray, penalty: float) -> tuple[float, np.ndarray]:
        """Return E with the penalty on scales that differ, and the gradient."""
        value, gradient = self(log)
        differences = log[:-1] - log[:-1].mean()
        gradient[:-1] += 2.0 * penalty * differences
        return value + penalty * float(differences @ differences), gradient

    def price(self, log: np.ndarray, penalty: float) -> float:
        """Return ``log|I + F/τ|``, which scales of the penalty τ > 0 pay for their freedom."""
        K, _, factor, u = self._factorized(log)
        solved = linalg.cho_solve((factor, True), self._Y, check_finite=False)
        a = solved - np.outer(u, u @ self._Y) / u.sum()
        unit = self._degrees / float(np.vdot(a, self._Y))
        roots = []
        for column in a.T[:, :, None]:
            V = self._squares * (K @ column) + K @ (self._squares * column)
            V -= 2.0 * self._X * (K @ (self._X * column))
            V *= -0.5 * np.exp(log[:-1])
            V -= V.mean(axis=1, keepdims=True)
            # P = QᵀA⁻¹Q with Q = I − 1uᵀ/(1ᵀu).
            V -= (u @ V) / u.sum()
            roots.append(linalg.solve_triangular(factor, V, lower=True, check_finite=False))
        root = np.vstack(roots)
        root *= np.sqrt(0.5 * unit / penalty)
        matrix = root.T @ root if root.shape[1] < len(root) else root @ root.T
        matrix[np.diag_indices_from(matrix)] += 1.0
        return float(np.linalg.slogdet(matrix)[1])
