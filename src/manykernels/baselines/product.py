"""Product: a machine on the geometric mean of the kernels, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import gen_batches

from .._rounding import ACCUMULATED
from .._sklearn import StrOptions
from ..estimators._base import KernelEstimator, estimator, fits
from ..estimators._inputs import Table
from ..estimators._progress import FitTask
from ..estimators._rows import TrainingRows
from ..kernels import KernelStack, KernelUnion, check_stack, kernels_for
from ..kernels._strips import TILE_ROWS
from ..kernels.checks import IndefiniteKernelError
from ._machine import OneKernelMachine
from ._merged import Numbers, SourceKernels

# Default kernels that have negative values; names of those of views end with these.
_NEGATIVE = {"linear", "cosine", "scaled-cosine"}


@estimator
class Product(OneKernelMachine, KernelEstimator):
    """A machine on the product of the kernels: their geometric mean, entry by entry.

    ``(Π_j K_j)^(1/n)``, the "product" of Gehler and Nowozin (2009) and of the tables of Yan et
    al. (2010, 2012). Two samples are similar if they are in every kernel; for kernels
    ``exp(−d_j)`` it is ``exp`` of minus the mean of the distances d_j. No value of a kernel may
    be negative.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        The kernels to multiply, as for :class:`~manykernels.MKSVC`. None takes those of
        :func:`~manykernels.auto_kernels` that have no negative values: not the linear one, and
        no cosines.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How the product is normalised. To normalise its factors would be the same ("spherical"),
        or would only multiply it by a number.
    missing : {"error"}, default="error"
        Samples that lack a view are refused: a completion centres kernels, and centred kernels
        have negative values.

    Notes
    -----
    The root of a product of kernels need not be a kernel. It is one for kernels that are
    infinitely divisible, all of whose powers are kernels: Gaussians, Laplacians and others of the
    form ``exp(−d)``. For others the training matrix is checked as kernels are, and refused if it
    has negative eigenvalues that rounding does not explain. The product of a single kernel is
    this kernel, whatever its signs. The machine centres the product, not its factors.

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

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Multiply the kernels, and fit the machine."""
        machine = self._new_machine(self.normalize)
        rows = _with_positive_defaults(self._rows(machine, X, y, sample_weight))
        task = FitTask.begin(self, X, y, 1)
        kernels = SourceKernels.of(self, rows, None, shift_invariant=False)
        mean = GeometricMean.of(kernels.stack.n_kernels)
        expansion = kernels.learn(machine, mean, y, sample_weight, task, _checked)
        return self._keep(task, self._attributes(kernels, machine, expansion))


@dataclass(frozen=True)
class GeometricMean:
    """``Π_j K_j^weights[j]`` entry by entry, for exponents that sum to one; a :class:`Merge`."""

    weights: np.ndarray

    name: ClassVar[str] = "product"

    @classmethod
    def of(cls, n_kernels: int) -> Self:
        """With equal exponents."""
        return cls(np.full(n_kernels, 1.0 / n_kernels))

    def select(self, kernels: np.ndarray) -> Self:
        return replace(self, weights=self.weights[kernels])

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        """In logarithms, a block of rows at a time: a product of many kernels may underflow."""
        if stack.n_kernels == 1:
            return stack.kernel(0)
        every = np.arange(stack.n_kernels)
        matrix = np.zeros(stack.shape[:2])
        for rows in gen_batches(len(stack), TILE_ROWS):
            part = stack.rows(rows, every)
            for j, weight in enumerate(self.weights):
                values = part.kernel(j)
                _refuse_negative(values, stack.names[j], (numbers[0][rows], numbers[1]))
                matrix[rows] += weight * _logarithms(values)
        return np.exp(matrix, out=matrix)

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        if len(diagonals) == 1:
            return diagonals[0]
        mean: np.ndarray = np.exp(self.weights @ _logarithms(diagonals))
        return mean


def _logarithms(values: np.ndarray) -> np.ndarray:
    """Of values that are negative by rounding at most; −∞ of zero, whose products are zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


def _refuse_negative(values: np.ndarray, name: str, numbers: Numbers) -> None:
    # Values that should be zero may be negative by rounding.
    if values.min() >= -ACCUMULATED * values.max():
        return
    row, column = np.unravel_index(values.argmin(), values.shape)
    raise ValueError(
        f"Kernel {name!r} is negative, {values[row, column]:.3g}, at row {numbers[0][row]} and "
        f"training sample {numbers[1][column]}, so that a product with it has no root. Take a "
        "kernel without negative values, such as RBF or Laplacian, or average the kernels "
        "instead: baselines.Average."
    )


def _checked(product: KernelStack) -> KernelStack:
    """The product, if it is a kernel."""
    guarantees = replace(product.guarantees, checked=False)
    try:
        return check_stack(product._changed(guarantees=guarantees))
    except IndefiniteKernelError as error:
        raise IndefiniteKernelError(
            "The geometric mean of these kernels is not positive semi-definite, although they "
            "are: it is if all their powers are kernels, as with Gaussians and others of the form "
            "exp(-d). Replace those that are not, or average the kernels instead: "
            f"baselines.Average. ({error})"
        ) from error


def _with_positive_defaults(rows: TrainingRows) -> TrainingRows:
    """If kernels are the default ones, those of them that have no negative values."""
    data = rows.data
    if not isinstance(data, Table) or data.kernels is not None:
        return rows
    pairs = [
        (name, kernel)
        for name, kernel in kernels_for(data.X)._pairs
        if name.rpartition(":")[2] not in _NEGATIVE
    ]
    return replace(rows, data=replace(data, kernels=KernelUnion(pairs)))
