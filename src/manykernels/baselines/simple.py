"""Average, Product and BestKernel: a machine on a simple combination of kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import gen_batches

from ..estimators import MKSVCCV
from ..estimators.base import FitTask, KernelEstimator, estimator, fits
from ..estimators.inputs import TrainingTable
from ..estimators.search import Splits, is_validation_set
from ..estimators.training_rows import TrainingRows
from ..kernels import KernelStack, KernelUnion, kernels_for
from ..kernels.checks import IndefiniteKernelError
from ..kernels.operators import TILE_ROWS
from ..kernels.stack import check_stack
from ..kernels.tables import Table
from ..utils.numerics import ACCUMULATED
from ..utils.sklearn import HasMethods, StrOptions
from ..utils.storable import storable
from .machine import Numbers, OneKernelMachine, PowerOfSum, SourceKernels


@storable
@estimator()
class Average(OneKernelMachine, KernelEstimator):
    """A machine on the mean of the kernels, a strong baseline.

    The "averaging" of Gehler and Nowozin (2009) and of the tables of Yan et al. (2010, 2012), with
    any machine of this package. The machine may choose its parameters by cross-validation:
    ``Average(estimator=MKFDACV())`` chooses λ.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        One divided by the number of kernels.

    Notes
    -----
    Kernels are completed and normalised (`missing`, `normalize`) before they are averaged, with
    constants of all training rows, which cross-validation of the machine does not compute again.
    The mean of kernels of unit variance has unit variance, so that C or λ have the same meaning as
    for one kernel. The machine with p = ∞, the plain sum, is the same with C, or 1/λ, divided by
    the number of kernels.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.
    F. Yan et al. Non-sparse multiple kernel Fisher discriminant analysis. JMLR 13, 2012.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from manykernels import MKSVC
    >>> from manykernels.baselines import Average
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views()
    >>> model = Average(RBF(), estimator=MKSVC(C=10.0)).fit(views[:300], y[:300])
    >>> model.score(views[300:], y[300:]) > 0.9
    True
    >>> search = GridSearchCV(Average(RBF(), estimator=MKSVC()), {"estimator__C": [0.1, 10.0]})
    >>> search.fit(views[:300], y[:300]).best_params_
    {'estimator__C': 10.0}
    """

    _takes_labels = True

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Average the kernels, and fit the machine."""
        machine = self._new_machine()
        rows = self._rows(machine, X, y, sample_weight, groups)
        task = FitTask.begin(self, X, y, 1)
        kernels = SourceKernels.of(self, rows, self.normalize)
        n_kernels = kernels.stack.n_kernels
        mean = PowerOfSum("average", np.full(n_kernels, 1.0 / n_kernels))
        predictor = kernels.learn(machine, mean, y, sample_weight, task)
        fitted = self._attributes(kernels, machine, predictor)
        return self._keep(task, fitted, weights_=mean.weights)


# -- Product --------------------------------------------------------------------------------------


# Default kernels that have negative values, by the ends of their names.
_NEGATIVE = {"linear", "cosine", "scaled-cosine"}


@storable
@estimator()
class Product(OneKernelMachine, KernelEstimator):
    """A machine on the product of the kernels: their elementwise geometric mean.

    ``(Π_j K_j)^(1/n)``, the "product" of Gehler and Nowozin (2009) and of the tables of Yan et
    al. (2010, 2012). Two samples are similar if they are similar in every kernel; for kernels
    ``exp(−d_j)`` it is ``exp`` of minus the mean of the distances d_j. Kernels must not have
    negative values.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        The kernels to multiply, as for :class:`~manykernels.MKSVC`. None: those of
        :func:`~manykernels.auto_kernels` that have no negative values, which excludes the linear
        kernel and cosines.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        Normalisation of the product. Normalising its factors would be the same ("spherical"), or
        would only multiply the product by a number.
    missing : {"error"}, default="error"
        Samples that lack a view raise an error: completion centres kernels, and centred kernels
        have negative values.

    Notes
    -----
    The root of a product of kernels need not be a kernel. It is one for infinitely divisible
    kernels, all of whose powers are kernels: Gaussians, Laplacians and others of the form
    ``exp(−d)``. For others the training matrix is checked like a kernel, and raises an error if it
    has negative eigenvalues beyond rounding. The product of a single kernel is this kernel, which
    may be negative. The machine centres the product, not its factors.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.
    F. Yan et al. Non-sparse multiple kernel Fisher discriminant analysis. JMLR 13, 2012.

    Examples
    --------
    >>> from manykernels import MKFDACV
    >>> from manykernels.baselines import Product
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views()
    >>> model = Product(RBF(), estimator=MKFDACV()).fit(views[:300], y[:300])
    >>> model.score(views[300:], y[300:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"missing": [StrOptions({"error"})]}
    _takes_labels = True

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Multiply the kernels, and fit the machine."""
        machine = self._new_machine(self.normalize)
        rows = _with_positive_defaults(self._rows(machine, X, y, sample_weight, groups))
        task = FitTask.begin(self, X, y, 1)
        kernels = SourceKernels.of(self, rows, None, shift_invariant=False)
        mean = GeometricMean.of(kernels.stack.n_kernels)
        predictor = kernels.learn(machine, mean, y, sample_weight, task, _checked)
        return self._keep(task, self._attributes(kernels, machine, predictor))


@storable
@dataclass(frozen=True)
class GeometricMean:
    """Elementwise ``Π_j K_j^weights[j]`` with exponents that sum to one; a :class:`Merge`."""

    weights: np.ndarray

    name: ClassVar[str] = "product"

    @classmethod
    def of(cls, n_kernels: int) -> Self:
        """Return the geometric mean with equal exponents."""
        return cls(np.full(n_kernels, 1.0 / n_kernels))

    def select(self, kernels: np.ndarray) -> Self:
        return replace(self, weights=self.weights[kernels])

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        """Compute the geometric mean in blocks of rows, by logarithms to avoid underflow."""
        if stack.n_kernels == 1:
            return stack.kernel(0)
        kernels = np.arange(stack.n_kernels)
        matrix = np.zeros(stack.shape[:2])
        for rows in gen_batches(len(stack), TILE_ROWS):
            block = stack.rows(rows, kernels)
            for j, weight in enumerate(self.weights):
                values = block.kernel(j)
                _refuse_negative(values, stack.names[j], (numbers[0][rows], numbers[1]))
                matrix[rows] += weight * _logarithms(values)
        return np.exp(matrix, out=matrix)

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        if len(diagonals) == 1:
            return diagonals[0]
        mean: np.ndarray = np.exp(self.weights @ _logarithms(diagonals))
        return mean


def _logarithms(values: np.ndarray) -> np.ndarray:
    """Return logarithms; −∞ for zero and for values that are negative by rounding."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


def _refuse_negative(values: np.ndarray, name: str, numbers: Numbers) -> None:
    # Values that should be zero may be negative by rounding.
    if values.min() >= -ACCUMULATED * values.max():
        return
    row, column = np.unravel_index(values.argmin(), values.shape)
    raise ValueError(
        f"Kernel {name!r} is negative, {values[row, column]:.3g}, at row {numbers[0][row]} and "
        f"training sample {numbers[1][column]}, so its product with others has no root. Use a "
        "kernel without negative values, such as RBF or Laplacian, or average the kernels "
        "instead: baselines.Average."
    )


def _checked(product: KernelStack) -> KernelStack:
    """Return the product, or raise if it is not positive semi-definite."""
    guarantees = replace(product.guarantees, checked=False)
    try:
        return check_stack(product._changed(guarantees=guarantees))
    except IndefiniteKernelError as error:
        raise IndefiniteKernelError(
            "The geometric mean of these kernels is not positive semi-definite. It is if all "
            "powers of the kernels are kernels, as for Gaussians and others of the form exp(-d). "
            "Replace the other kernels, or average the kernels instead: baselines.Average. "
            f"({error})"
        ) from error


def _with_positive_defaults(rows: TrainingRows) -> TrainingRows:
    """Select the default kernels without negative values, if no kernels were passed."""
    data = rows.data
    if not isinstance(data, TrainingTable) or data.kernels is not None:
        return rows
    pairs = [
        (name, kernel)
        for name, kernel in kernels_for(data.X)._pairs
        if name.rpartition(":")[2] not in _NEGATIVE
    ]
    return replace(rows, data=replace(data, kernels=KernelUnion(pairs)))


# -- BestKernel -----------------------------------------------------------------------------------


@storable
@estimator()
class BestKernel(OneKernelMachine, KernelEstimator):
    """A machine on the best single kernel, with its λ or C, chosen by cross-validation.

    ``RKDA_{K,λ}`` and ``SVM_{K,C}`` of the tables of Ye et al. (2008): every kernel alone, at
    every λ or C, is scored on the same folds, and the best pair is fitted to all samples. Within
    an outer cross-validation, this is the double cross-validation of the paper.

    Parameters
    ----------
    estimator : MKSVCCV, MKFDACV, MKRidgeCV or MKSVRCV, default=None
        The machine, with the grid of its Cs or λ, its `cv` and its `scoring`. Its own `kernels`
        must be None; its `ps`, `normalize` and `missing` are ignored. None: an
        :class:`~manykernels.MKSVCCV`.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        Normalisation of the kernels, in every fold with constants of its training part.

    Attributes
    ----------
    best_kernel_ : str
        Name of the best kernel; the first of several with the same score.
    best_index_ : int
        Index of the best kernel.
    scores_ : ndarray of shape (n_kernels,)
        Mean score of each kernel over the folds, at its best λ or C. As maxima over a grid they
        are slightly too high, and so is that of the best kernel: for an unbiased estimate, pass
        the BestKernel to ``cross_val_score``.
    weights_ : ndarray of shape (n_kernels,)
        One for the best kernel, zero for the others.

    Notes
    -----
    The folds are those of all kernels together, whichever kernel the machine is fitted to, so that
    differences of `scores_` are differences of paired scores.

    ``RKDA_λ`` and ``SVM_C`` of the same tables, one kernel with λ or C by cross-validation, are
    ``MKFDACV(kernel)`` and ``MKSVCCV(kernel)``.

    References
    ----------
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> from manykernels import MKFDACV
    >>> from manykernels.baselines import BestKernel
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = BestKernel(RBF(), estimator=MKFDACV()).fit(views[:300], y[:300])
    >>> model.best_kernel_ == model.kernel_names_[model.scores_.argmax()]
    True
    >>> model.best_kernel_ != "noise1"
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["validation_curve"]), None]
    }

    _default: ClassVar[type] = MKSVCCV

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Score every kernel alone, and keep the machine of the best kernel."""
        machine = self._new_machine(self.normalize)
        rows = self._target_rows(machine, X, y, sample_weight, groups, centred=False)
        task = FitTask.begin(self, X, y, rows.data.n_kernels)
        kernels = SourceKernels.of(self, rows, None)
        machine.set_params(cv=_same_folds(machine, kernels, y))
        scores, best = [], None
        for name, weights in zip(
            kernels.stack.names, np.eye(kernels.stack.n_kernels), strict=True
        ):
            single = clone(machine)
            predictor = kernels.learn(single, PowerOfSum(name, weights), y, sample_weight, task)
            scores.append(single.best_score_)
            if best is None or scores[-1] > best[0].best_score_:
                best = single, predictor, weights
        assert best is not None
        single, predictor, weights = best
        single.set_params(cv=self._given.cv)
        index = int(weights.argmax())
        return self._keep(
            task,
            self._attributes(kernels, single, predictor),
            best_kernel_=kernels.stack.names[index],
            best_index_=index,
            scores_=np.array(scores),
            weights_=weights,
        )


def _same_folds(machine: KernelEstimator, kernels: SourceKernels, y: ArrayLike) -> Any:
    """Return the parameter ``cv`` with which all kernels have the same splits."""
    if isinstance(machine.cv, str):
        raise ValueError(
            f"cv={machine.cv!r} makes folds that depend on the kernel, but BestKernel compares "
            "kernels on the same folds: use cv=None, a number of folds or a splitter."
        )
    if is_validation_set(machine.cv):
        return machine.cv
    rows, source = kernels.rows, kernels.kernels.source
    splits = Splits(machine, rows, source, kernels.kernels.samples(rows))
    return [(rows.numbers[split.train], rows.numbers[split.test]) for split in splits.of(y)]
