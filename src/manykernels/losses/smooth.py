"""Smooth convex functions of the outputs: logistic, multinomial, Poisson, or one of the user.

A function φ has a value, a gradient and a Hessian H, and biases that minimise it.
:class:`~manykernels.losses.smooth_loss.SmoothLoss` trains on kernels with it, by Newton steps with
``E = (H⁻¹ + Q)⁻¹``. H may be singular, as it is for Cox; E is computed without its inverse
(:class:`Curvature`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import expit, logsumexp, softmax

from ..utils.numerics import ACCUMULATED, EPS, matmul
from .base import Array
from .square import NotPositiveDefiniteError

# -- Second derivatives of φ ----------------------------------------------------------------------


class Curvature(ABC):
    """Hessian H of a function of outputs (m, c); `inverse_sum` is used by Newton's method."""

    @abstractmethod
    def totals(self) -> Array:
        """Return ``1ᵀH1``, the Hessian in the biases, (c, c)."""

    @abstractmethod
    def inverse_sum(self, kernel: Array) -> InverseSum:
        """Return ``E = (H⁻¹ + Q)⁻¹`` with Q, the same for every output, in `kernel`."""

    def cheap_step(
        self, kernel: Array, residual: Array, totals: Array | None, size: float
    ) -> tuple[Array, Array] | None:
        """Return Δv and δb of a Newton step without E; None if E is the way to it."""
        return None


class InverseSum(ABC):
    """Operator ``E = (H⁻¹ + Q)⁻¹`` on arrays of shape (m, c, n_columns)."""

    _totals: Array | None = None

    @abstractmethod
    def apply(self, columns: Array) -> Array:
        """Return E times `columns`, (m, c, n_columns)."""

    @abstractmethod
    def gram(self, columns: Array) -> Array:
        """Return ``xᵀEy`` for all x, y with a column of `columns` (m, n) in one of the outputs.

        The shape is (c, n, c, n).
        """

    def totals(self, n_samples: int) -> Array:
        """Return ``1ᵀE1``, (c, c), and keep it for further steps."""
        if self._totals is None:
            self._totals = self.gram(np.ones((n_samples, 1)))[:, 0, :, 0]
        return self._totals


# Relative diagonal that is added to a matrix whose Cholesky factorisation fails by rounding.
# A larger failure means that a kernel is not positive semi-definite.
_JITTERS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)


def cholesky(matrix: Array) -> Array:
    """Return R with RᵀR = `matrix`, as an upper triangle in Fortran order."""
    size = float(matrix.diagonal().max())
    for jitter in _JITTERS:
        trial = matrix.copy()
        trial.reshape(-1)[:: len(trial) + 1] += jitter * size * len(trial)
        factor, failed = linalg.lapack.dpotrf(trial.T, lower=0, clean=0, overwrite_a=1)
        if not failed and np.isfinite(factor.diagonal()).all():
            upper: Array = factor
            return upper
    raise NotPositiveDefiniteError(
        "The Hessian of the inner problem is not positive definite: the combined kernel has "
        "eigenvalues far below zero, or is not finite. Raise reg, or build the stack with "
        'KernelStack.from_arrays(..., psd="clip").'
    )


class _DiagonalSum:
    """``(D⁻¹ + Q)⁻¹ = D½ (I + D½QD½)⁻¹ D½`` of one output, D being a diagonal matrix."""

    def __init__(self, diagonal: Array, kernel: Array) -> None:
        self.roots = np.sqrt(np.maximum(diagonal, 0.0))[:, None]
        matrix = self.roots * kernel
        matrix *= self.roots.T
        matrix.reshape(-1)[:: len(matrix) + 1] += 1.0
        self._factor = cholesky(matrix)

    def apply(self, columns: Array) -> Array:
        right = np.asfortranarray(self.roots * columns)
        solution: Array = linalg.lapack.dpotrs(self._factor, right, lower=0)[0]
        return self.roots * solution

    def half(self, columns: Array) -> Array:
        """Return X with ``XᵀX = columnsᵀ E columns``."""
        right = np.asfortranarray(self.roots * columns)
        solution: Array = linalg.lapack.dtrtrs(self._factor, right, lower=0, trans=1)[0]
        return solution

    def upper_triangle(self) -> Array:
        """Return E as a matrix in Fortran order, right in its upper triangle only."""
        inverse: Array = linalg.lapack.dpotri(self._factor, lower=0)[0]
        inverse *= self.roots
        inverse *= self.roots.T
        return inverse


class DiagonalCurvature(Curvature):
    """Hessian of a sum of functions of single outputs; `diagonal` has the shape (m, c)."""

    def __init__(self, diagonal: Array) -> None:
        self.diagonal = diagonal

    def totals(self) -> Array:
        return np.diag(self.diagonal.sum(axis=0))

    def inverse_sum(self, kernel: Array) -> InverseSum:
        return _InverseSumOfDiagonal([_DiagonalSum(h, kernel) for h in self.diagonal.T])


class _InverseSumOfDiagonal(InverseSum):
    def __init__(self, outputs: list[_DiagonalSum]) -> None:
        self.outputs = outputs

    def apply(self, columns: Array) -> Array:
        return np.stack([e.apply(columns[:, k]) for k, e in enumerate(self.outputs)], axis=1)

    def gram(self, columns: Array) -> Array:
        n, c = columns.shape[1], len(self.outputs)
        forms = np.zeros((c, n, c, n))
        for k, output in enumerate(self.outputs):
            half = output.half(columns)
            forms[k, :, k] = half.T @ half
        return forms


# Conjugate gradients for a Newton step: the largest relative error, squared, the maximum number of
# iterations, which takes about as long as E, and the least entry of D as a part of the largest.
_LARGEST_ERROR = 1e-2
_MOST_GRADIENTS = 100
_LEAST_MEAN = 1e-6


class SoftmaxCurvature(Curvature):
    """Hessian ``w_i (diag p_i − p_i p_iᵀ)`` in the outputs of each sample i.

    E takes c + 1 Cholesky factorisations of m × m matrices (Rasmussen and Williams 2006, algorithm
    3.3): with ``E_k = ((diag w p_k)⁻¹ + Q)⁻¹`` it is ``diag(E_k) − E_k (Σ_l E_l)⁻¹ E_l``.
    """

    def __init__(self, probabilities: Array, sample_weight: Array) -> None:
        self.probabilities = probabilities
        self.sample_weight = sample_weight

    def totals(self) -> Array:
        weighted = self.probabilities * self.sample_weight[:, None]
        return np.diag(weighted.sum(axis=0)) - weighted.T @ self.probabilities

    def inverse_sum(self, kernel: Array) -> InverseSum:
        return _InverseSumOfSoftmax(self.probabilities, self.sample_weight, kernel)

    def apply(self, outputs: Array) -> Array:
        """Return H times `outputs`, (m, c)."""
        products = self.probabilities * outputs
        products -= self.probabilities * products.sum(axis=1, keepdims=True)
        products *= self.sample_weight[:, None]
        return products

    def cheap_step(
        self, kernel: Array, residual: Array, totals: Array | None, size: float
    ) -> tuple[Array, Array] | None:
        """Return Δv and δb by conjugate gradients, up to an error that a Newton step has anyway.

        The equations ``(I + HQ)Δv + H1δb = ρ``, ``1ᵀH(QΔv + 1δb) = 1ᵀα`` with ρ in `residual` and
        1ᵀα in `totals` are those of a positive definite system if the first is multiplied by Q.
        Without biases, `totals` is None and δb = 0. The same equations with a diagonal D instead
        of H, equal for all outputs, precondition it; they take one Cholesky factorisation, where
        E takes c + 1 and as many inverses. `size` is the value of the objective: relative errors
        are at most its part that the step can gain.
        """
        mean = self.sample_weight * (1.0 - np.sum(self.probabilities**2, axis=1))
        largest = float(mean.max())
        if not largest > 0.0:
            return None
        diagonal = np.maximum(mean, _LEAST_MEAN * largest) / (self.probabilities.shape[1] - 1)
        try:
            rough = _DiagonalSum(diagonal, kernel)
        except NotPositiveDefiniteError:  # of D, which may be larger than H
            return None
        ones = rough.apply(np.ones((len(diagonal), 1)))
        total = float(ones.sum())

        def preconditioned(right: Array, sums: Array) -> tuple[Array, Array]:
            solution = rough.apply(right / diagonal[:, None])
            if not has_bias:
                return solution, np.zeros_like(sums)
            biases = (solution.sum(axis=0) - right.sum(axis=0) + sums) / total
            return solution - ones * biases, biases

        has_bias = totals is not None
        totals = np.zeros(residual.shape[1]) if totals is None else totals
        step, biases = np.zeros_like(residual), np.zeros_like(totals)
        z, z_biases = preconditioned(residual, totals)
        images = matmul(kernel, z)
        norm = first = float(np.vdot(residual, images) + totals @ z_biases)
        if not (0.0 < first < np.inf and size > 0.0):
            return None
        most = first * min(_LARGEST_ERROR, first / size)
        direction, direction_biases, moved = z, z_biases, images
        for _ in range(_MOST_GRADIENTS):
            curved = self.apply(moved + direction_biases)
            product, sums = direction + curved, curved.sum(axis=0)
            curvature = float(np.vdot(product, moved) + sums @ direction_biases)
            if not curvature > 0.0:
                return None
            length = norm / curvature
            step = step + length * direction
            biases = biases + length * direction_biases
            residual, totals = residual - length * product, totals - length * sums
            z, z_biases = preconditioned(residual, totals)
            images = matmul(kernel, z)
            last, norm = norm, float(np.vdot(residual, images) + totals @ z_biases)
            if not np.isfinite(norm):
                return None
            if norm <= most:
                return step, biases
            ratio = norm / last
            direction = z + ratio * direction
            direction_biases = z_biases + ratio * direction_biases
            moved = images + ratio * moved
        return None


class _InverseSumOfSoftmax(_InverseSumOfDiagonal):
    def __init__(self, probabilities: Array, sample_weight: Array, kernel: Array) -> None:
        diagonals = (probabilities * sample_weight[:, None]).T
        super().__init__([_DiagonalSum(diagonal, kernel) for diagonal in diagonals])
        total = np.zeros(kernel.shape, order="F")
        for output in self.outputs:
            total += output.upper_triangle()
        # In C order, as `cholesky` takes it, the triangle that counts is the lower one.
        total = total.T
        # Samples without weight have zero rows in every E_k.
        counts = sample_weight > 0.0
        self._scale = np.where(counts, 1.0 / np.sqrt(np.where(counts, sample_weight, 1.0)), 0.0)
        total *= self._scale
        total *= self._scale[:, None]
        total.reshape(-1)[:: len(total) + 1] += np.where(counts, 0.0, 1.0)
        self._factor = cholesky(total)

    def apply(self, columns: Array) -> Array:
        products = super().apply(columns)
        right = np.asfortranarray(self._scale[:, None] * products.sum(axis=1))
        common = linalg.lapack.dpotrs(self._factor, right, lower=0)[0]
        common = self._scale[:, None] * common
        for k, output in enumerate(self.outputs):
            products[:, k] -= output.apply(common)
        return products

    def gram(self, columns: Array) -> Array:
        forms = super().gram(columns)
        n, c = columns.shape[1], len(self.outputs)
        right = np.hstack([self._scale[:, None] * e.apply(columns) for e in self.outputs])
        half = linalg.lapack.dtrtrs(self._factor, np.asfortranarray(right), lower=0, trans=1)[0]
        forms -= (half.T @ half).reshape(c, n, c, n)
        return forms


class DenseCurvature(Curvature):
    """Hessian as a positive semi-definite matrix (m·c, m·c), samples before outputs.

    With a factor ``H = RRᵀ``, ``E = R(I + RᵀQR)⁻¹Rᵀ``.
    """

    def __init__(self, matrix: Array, n_outputs: int = 1) -> None:
        self.matrix = matrix
        self.n_outputs = n_outputs

    def totals(self) -> Array:
        c = self.n_outputs
        blocks = self.matrix.reshape(-1, c, len(self.matrix) // c, c)
        sums: Array = blocks.sum(axis=(0, 2))
        return sums

    def inverse_sum(self, kernel: Array) -> InverseSum:
        return _InverseSumOfDense(self.factor(), kernel, self.n_outputs)

    def factor(self) -> Array:
        """Return R, (m·c, rank H), by a Cholesky factorisation with pivots."""
        if not self.matrix.diagonal().max() > 0.0:
            return np.zeros((len(self.matrix), 1))
        lower, pivots, rank, _ = linalg.lapack.dpstrf(self.matrix, lower=1)
        factor = np.empty((len(self.matrix), rank))
        factor[pivots - 1] = np.tril(lower)[:, :rank]
        return factor


class _InverseSumOfDense(InverseSum):
    def __init__(self, factor: Array, kernel: Array, n_outputs: int) -> None:
        self._root = factor
        self._c = n_outputs
        images = matmul(kernel, factor.reshape(len(kernel), -1)).reshape(factor.shape)
        inner = np.ascontiguousarray(factor.T @ images)
        inner = 0.5 * (inner + inner.T)
        inner.reshape(-1)[:: len(inner) + 1] += 1.0
        self._factor = cholesky(inner)

    def apply(self, columns: Array) -> Array:
        flat = columns.reshape(len(self._root), -1)
        right = np.asfortranarray(self._root.T @ flat)
        solution = self._root @ linalg.lapack.dpotrs(self._factor, right, lower=0)[0]
        result: Array = solution.reshape(columns.shape)
        return result

    def gram(self, columns: Array) -> Array:
        n, c = columns.shape[1], self._c
        roots = self._root.reshape(len(columns), c, -1)
        right = np.einsum("mkr,mn->rkn", roots, columns).reshape(-1, c * n)
        half = linalg.lapack.dtrtrs(self._factor, np.asfortranarray(right), lower=0, trans=1)[0]
        forms: Array = (half.T @ half).reshape(c, n, c, n)
        return forms


# -- Functions of the outputs ---------------------------------------------------------------------


class SmoothFunction(ABC):
    """Twice differentiable convex function φ of the outputs f of the training samples.

    A function of the user implements `value`, `gradient` and `hessian`; labels, sample weights
    and offsets are its attributes. F is best scaled such that the least φ of any outputs is zero,
    as the tolerance of certificates is relative to F. Certificates rely on `value` and `gradient`:
    estimators check the gradient by differences of values, at the beginning and at the solution. A
    wrong `hessian` costs iterations only.

    Attributes
    ----------
    n_outputs : int
        Number c of outputs of a sample.
    has_bias : bool
        Whether each output has a bias, which is not penalised. False for functions that do not
        change if a constant is added to all outputs.
    by_samples : bool
        Whether φ is a sum over samples of functions of their outputs. If it is,
        leave-one-out outputs can be approximated.
    link : {"identity", "log"}
        Whether outputs are predictions or the logarithms of predictions.

    Examples
    --------
    Huber's loss, quadratic for residuals up to one and linear beyond:

    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.domains import lp_domain
    >>> from manykernels.losses.smooth import SmoothFunction
    >>> from manykernels.losses.smooth_loss import SmoothLoss
    >>> from manykernels.solvers import Newton
    >>> class Huber(SmoothFunction):
    ...     def __init__(self, y, sample_weight=None):
    ...         self.y = np.reshape(y, (-1, 1))
    ...         weights = np.ones(len(y)) if sample_weight is None else sample_weight
    ...         self.weights = np.reshape(weights, (-1, 1))
    ...
    ...     def value(self, outputs):
    ...         size = np.abs(outputs - self.y)
    ...         losses = np.where(size < 1, 0.5 * size**2, size - 0.5)
    ...         return float(np.sum(self.weights * losses))
    ...
    ...     def gradient(self, outputs):
    ...         return self.weights * np.clip(outputs - self.y, -1.0, 1.0)
    ...
    ...     def hessian(self, outputs):
    ...         return self.weights * (np.abs(outputs - self.y) < 1)
    >>> x = np.linspace(-1, 1, 8)
    >>> stack = KernelStack.from_arrays([np.outer(x, x), np.exp(-((x[:, None] - x) ** 2))])
    >>> loss = SmoothLoss(stack, Huber(3 * x + 10 * (x > 0.9)), reg=0.1)
    >>> solution = Newton().solve(loss, lp_domain(1))
    >>> solution.certificate.converged, solution.weights.round(3)
    (True, array([0.72, 0.28]))

    As the loss of an estimator:

    >>> from manykernels import MKGLM
    >>> model = MKGLM(loss=Huber).fit(x[:, None], 3 * x + 10 * (x > 0.9))
    >>> model.certificate_.converged
    True
    """

    n_outputs: int = 1
    has_bias: bool = True
    by_samples: bool = True
    link: str = "identity"

    @abstractmethod
    def value(self, outputs: Array, /) -> float:
        """Return φ of outputs of shape (m, c); infinity is allowed where it overflows."""

    @abstractmethod
    def gradient(self, outputs: Array, /) -> Array:
        """Return ∇φ, (m, c)."""

    @abstractmethod
    def hessian(self, outputs: Array, /) -> Array | Curvature:
        """Return ∇²φ.

        Either its diagonal (m, c), if it is a diagonal matrix; or the whole matrix (m·c, m·c),
        samples before outputs; or a :class:`Curvature`.
        """

    def initial_biases(self) -> Array:
        """Return biases of finite φ where all other outputs are zero, (c,).

        They are infinite if no finite ones are the best, such as for counts that are all zero;
        nothing is learnt from such targets.
        """
        return np.zeros(self.n_outputs)

    def rounding(self, outputs: Array, /) -> float:
        """Return the estimated rounding error of φ.

        By default that of a sum of positive terms, of outputs with a relative error of EPS. A
        function that is a difference of large numbers adds its own.
        """
        changes = np.abs(self.gradient(outputs) * outputs)
        return EPS * (abs(self.value(outputs)) + float(changes.sum()))

    def gradient_errors(self, outputs: Array, /) -> Array | None:
        """Return estimated rounding errors of ∇φ (m, c), or None if they are relative to ∇φ.

        A gradient that is a difference of large numbers has others.
        """
        return None

    def curvature(self, outputs: Array) -> Curvature:
        """Return the Hessian as an operator."""
        hessian = self.hessian(outputs)
        if isinstance(hessian, Curvature):
            return hessian
        if hessian.shape == outputs.shape:
            return DiagonalCurvature(hessian)
        return DenseCurvature(np.asarray(hessian), outputs.shape[1])


def checked_weights(sample_weight: ArrayLike | None, n_samples: int) -> Array:
    """Return the sample weights, ones by default."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected one weight for each of "
            f"{n_samples} samples."
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        row = int(np.argmin(np.isfinite(weights) & (weights >= 0.0)))
        raise ValueError(
            "sample_weight must be finite, non-negative and not all zero, got "
            f"{weights[row]!r} in row {row}."
        )
    return weights


def checked_column(values: ArrayLike, name: str, n_samples: int | None = None) -> Array:
    """Return a one-dimensional array of finite numbers."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or n_samples not in (None, len(column)):
        expected = "one dimension" if n_samples is None else f"{n_samples} entries"
        raise ValueError(f"{name} must have {expected}, got an array of shape {column.shape}.")
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(f"{name} must be finite, got {column[row]} in row {row}.")
    return column


class Logistic(SmoothFunction):
    """Logistic loss ``Σ_i w_i log(1 + exp(−y_i f_i))``; several outputs: the sum of their losses.

    Parameters
    ----------
    signs : array-like of shape (m,) or (m, c)
        y: −1 or 1.
    sample_weight : array-like of shape (m,) or (m, c), optional
        w ≥ 0; a sample of weight zero has no effect.
    has_bias : bool, default=True

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses.smooth import Logistic
    >>> round(Logistic([-1, 1, 1]).value(np.zeros((3, 1))), 6)  # 3 log 2
    2.079442
    """

    def __init__(
        self, signs: ArrayLike, sample_weight: ArrayLike | None = None, *, has_bias: bool = True
    ) -> None:
        y = np.asarray(signs, dtype=np.float64)
        if y.ndim not in (1, 2):
            raise ValueError(f"signs must have one or two dimensions, got the shape {y.shape}.")
        if not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError("signs must be -1 or 1.")
        self.signs = y[:, None] if y.ndim == 1 else y
        self.n_outputs = self.signs.shape[1]
        given = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
        columns = given.T if given.ndim == 2 else [sample_weight] * self.n_outputs
        self.sample_weight = np.column_stack(
            [checked_weights(column, len(y)) for column in columns]
        )
        if self.sample_weight.shape != self.signs.shape:
            raise ValueError(
                f"sample_weight has shape {given.shape}, signs have shape {y.shape}: pass one "
                "weight for each sample, or for each of its signs."
            )
        self.has_bias = has_bias
        counted = np.where(self.sample_weight > 0.0, self.signs, 0.0)
        single = np.flatnonzero((counted.max(axis=0) <= 0.0) | (counted.min(axis=0) >= 0.0))
        if has_bias and len(single):
            column = f" in column {single[0]}" if self.n_outputs > 1 else ""
            raise ValueError(
                f"signs has a single class{column} among samples of positive weight, so that the "
                "bias would be infinite: pass samples of both classes, or has_bias=False."
            )

    def value(self, outputs: Array) -> float:
        return float(np.sum(self.sample_weight * np.logaddexp(0.0, -self.signs * outputs)))

    def gradient(self, outputs: Array) -> Array:
        result: Array = -self.sample_weight * self.signs * expit(-self.signs * outputs)
        return result

    def hessian(self, outputs: Array) -> Array:
        result: Array = self.sample_weight * expit(outputs) * expit(-outputs)
        return result


class Multinomial(SmoothFunction):
    """Multinomial logistic loss ``Σ_i w_i (log Σ_k exp f_ik − f_i,y_i)``.

    Parameters
    ----------
    labels : array-like of shape (m,), int
        Numbers of the classes, from 0.
    n_classes : int, optional
        By default one more than the largest label.
    sample_weight : array-like of shape (m,), optional
    has_bias : bool, default=True

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses.smooth import Multinomial
    >>> Multinomial([0, 1, 2, 0]).gradient(np.zeros((4, 3)))[0].round(3)
    array([-0.667,  0.333,  0.333])
    """

    def __init__(
        self,
        labels: ArrayLike,
        n_classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        has_bias: bool = True,
    ) -> None:
        classes = np.asarray(labels)
        if classes.ndim != 1 or not np.issubdtype(classes.dtype, np.integer):
            raise ValueError("labels must be a one-dimensional array of integers.")
        self.n_outputs = int(classes.max()) + 1 if n_classes is None else n_classes
        if classes.min() < 0 or classes.max() >= self.n_outputs:
            raise ValueError(f"labels must be from 0 to {self.n_outputs - 1}.")
        self.labels = classes
        self.sample_weight = checked_weights(sample_weight, len(classes))
        self.has_bias = has_bias
        sizes = np.bincount(classes, self.sample_weight, self.n_outputs)
        if has_bias and not (sizes > 0.0).all():
            raise ValueError(
                f"Class {int(np.argmin(sizes))} has no sample of positive weight, so that its "
                "bias would be infinite: number the classes without gaps, or pass has_bias=False."
            )
        self._indicators = np.equal.outer(classes, np.arange(self.n_outputs)).astype(float)

    def value(self, outputs: Array) -> float:
        shifted = outputs - np.take_along_axis(outputs, self.labels[:, None], axis=1)
        first = shifted.argmax(axis=1)[:, None]
        largest = np.take_along_axis(shifted, first, axis=1)
        # Without the largest, which is one, so that no digits of the others are lost.
        others = np.exp(shifted - largest)
        np.put_along_axis(others, first, 0.0, axis=1)
        return float(self.sample_weight @ (largest[:, 0] + np.log1p(others.sum(axis=1))))

    def gradient(self, outputs: Array) -> Array:
        # 1 − p of the label is the sum of the others: no digits are lost where p is close to one.
        others = softmax(outputs, axis=1) * (1.0 - self._indicators)
        others -= self._indicators * others.sum(axis=1, keepdims=True)
        result: Array = self.sample_weight[:, None] * others
        return result

    def hessian(self, outputs: Array) -> Curvature:
        return SoftmaxCurvature(softmax(outputs, axis=1), self.sample_weight)


class Poisson(SmoothFunction):
    """Half the deviance of counts with the logarithm of their mean as output.

    ``Σ_i w_i (exp(f_i + o_i) − y_i (f_i + o_i) + y_i log y_i − y_i)``, o the offsets: the negative
    log-likelihood, less its least value.

    Parameters
    ----------
    counts : array-like of shape (m,)
        y ≥ 0.
    offset : array-like of shape (m,), optional
        Part of the logarithm of the mean that is known, such as that of an exposure.
    sample_weight : array-like of shape (m,), optional
    has_bias : bool, default=True

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses.smooth import Poisson
    >>> round(Poisson([1, 2, 0]).value(np.zeros((3, 1))), 6)  # 2 log 2 − 1, and 1
    1.386294
    """

    link = "log"

    def __init__(
        self,
        counts: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        has_bias: bool = True,
    ) -> None:
        y = checked_column(counts, "counts")
        if y.min() < 0.0:
            row = int(np.argmin(y))
            raise ValueError(f"counts must not be negative, got {y[row]:g} in row {row}.")
        known = np.zeros(len(y)) if offset is None else checked_column(offset, "offset", len(y))
        self.counts, self.offset = y[:, None], known[:, None]
        self.sample_weight = checked_weights(sample_weight, len(y))[:, None]
        self.has_bias = has_bias
        with np.errstate(divide="ignore"):
            self._log_counts = np.where(self.counts > 0.0, np.log(self.counts), 0.0)

    def _excess(self, outputs: Array) -> Array:
        """Return ``f + o − log y`` of positive counts and f + o of zeros."""
        result: Array = outputs + (self.offset - self._log_counts)
        return result

    def value(self, outputs: Array) -> float:
        excess = self._excess(outputs)
        # Samples without weight may have an infinite mean.
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.where(self.counts > 0.0, _exp_less_line(excess), np.exp(excess))
            terms = self.sample_weight * np.where(self.counts > 0.0, self.counts, 1.0) * ratio
        return float(np.sum(terms[self.sample_weight > 0.0]))

    def gradient(self, outputs: Array) -> Array:
        excess = self._excess(outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = np.where(self.counts > 0.0, self.counts * np.expm1(excess), np.exp(excess))
            return np.where(self.sample_weight > 0.0, self.sample_weight * slopes, 0.0)

    def hessian(self, outputs: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.exp(outputs + self.offset)
            return np.where(self.sample_weight > 0.0, self.sample_weight * means, 0.0)

    def initial_biases(self) -> Array:
        if not self.has_bias:
            return np.zeros(1)
        with np.errstate(divide="ignore"):
            total = np.log(np.sum(self.sample_weight * self.counts))
        return np.array([total - logsumexp(self.offset, b=self.sample_weight)])

    def rounding(self, outputs: Array) -> float:
        sizes = np.abs(outputs) + np.abs(self.offset) + np.abs(self._log_counts)
        changes = np.abs(self.gradient(outputs)) * sizes
        return EPS * (self.value(outputs) + float(changes.sum()))


def _exp_less_line(x: Array) -> Array:
    """Return ``exp(x) − 1 − x`` without loss of digits near zero."""
    near = np.abs(x) < 0.05
    small = np.where(near, x, 0.0)
    series = np.zeros_like(x)
    for power in range(10, 1, -1):  # 0.05⁹/11! is below EPS of the first term
        series = (series + 1.0) * small / power if power > 2 else (series + 1.0) * small**2 / 2.0
    result: Array = np.where(near, series, np.expm1(x) - x)
    return result


# -- Checks and biases ----------------------------------------------------------------------------

# Step of differences, relative to the size of outputs, and the largest relative error of slopes.
_DIFFERENCE, _WRONG_SLOPE = 1e-5, 1e-3


def refuse_wrong_gradient(function: SmoothFunction, outputs: Array) -> None:
    """Raise if ∇φ at some outputs is not the derivative of φ, by a difference along its signs.

    Bounds of F are valid only if ∇φ is right. A wrong Hessian costs iterations, and bounds stay
    valid.
    """
    gradient = np.asarray(function.gradient(outputs), dtype=np.float64)
    if gradient.shape != outputs.shape:
        raise ValueError(
            f"{type(function).__name__}: gradient returns an array of shape {gradient.shape} for "
            f"outputs of shape {outputs.shape}."
        )
    step = _DIFFERENCE * (1.0 + float(np.abs(outputs).max()))
    change = step * np.sign(gradient)
    rise = function.value(outputs + change) - function.value(outputs - change)
    slope, expected = rise / (2.0 * step), float(np.abs(gradient).sum())
    hidden = 100.0 * function.rounding(outputs) / step
    if not abs(slope - expected) <= _WRONG_SLOPE * expected + hidden:
        raise ValueError(
            f"{type(function).__name__}: gradient is not the derivative of value. Along the signs "
            f"of the gradient the value rises by {slope:g} per unit, and the sum of their sizes "
            f"is {expected:g}."
        )


def refuse_infinite_biases(function: SmoothFunction) -> None:
    """Raise if the targets are such that no finite bias is the best one."""
    if function.has_bias and not np.isfinite(function.initial_biases()).all():
        raise ValueError(
            f"{type(function).__name__}: the best bias is infinite, because the targets are all "
            "zero (where they have a positive weight). Pass a sample with another target."
        )


# Maximum number of Newton steps for biases; fewer than ten but for outputs that are far out.
_MOST_BIAS_STEPS = 30
# Maximum number of halvings of one Newton step.
MOST_HALVINGS = 60
# Armijo's constant, as in the outer Newton method.
ARMIJO = 1e-4


def with_best_biases(function: SmoothFunction, outputs: Array) -> tuple[Array, Array]:
    """Return outputs with biases added that minimise φ, to rounding error, and ∇φ there."""
    gradient = function.gradient(outputs)
    if not function.has_bias:
        return outputs, gradient
    value = function.value(outputs)
    if not np.isfinite(value):
        outputs = outputs - outputs.mean(axis=0) + function.initial_biases()
        gradient, value = function.gradient(outputs), function.value(outputs)
        if not np.isfinite(value):
            return outputs, gradient
    for _ in range(_MOST_BIAS_STEPS):
        totals = gradient.sum(axis=0)
        if np.abs(totals).max() <= EPS * np.abs(gradient).sum():
            break
        moved = _bias_step(function, outputs, totals, value)
        if moved is None:
            break
        outputs, gradient, value = moved
    return outputs, gradient


def _bias_step(
    function: SmoothFunction, outputs: Array, totals: Array, value: float
) -> tuple[Array, Array, float] | None:
    """Return outputs with better biases, ∇φ and φ; None if rounding allows none."""
    curvature = function.curvature(outputs).totals()
    newton = -pseudo_solve(curvature, totals)
    # Where all outputs are far out, φ has a slope and little curvature or none.
    spread = 1.0 + float(np.ptp(outputs))
    downhill = -totals / np.abs(totals).max() * spread
    size = float(np.abs(newton).max())
    steps = [newton * min(1.0, spread / size), downhill] if 0.0 < size < np.inf else [downhill]
    for step in steps:
        slope = float(totals @ step)
        if not slope < 0.0:
            continue
        factor = 1.0
        for _ in range(MOST_HALVINGS):
            trial = outputs + factor * step
            gradient, reached = function.gradient(trial), function.value(trial)
            # A fall of φ that is lost in rounding errors shows in its slope only.
            is_visible = -factor * slope > ACCUMULATED * abs(value)
            if is_visible and reached <= value + ARMIJO * factor * slope:
                return trial, gradient, reached
            closer = np.abs(gradient.sum(axis=0)).max() <= 0.5 * np.abs(totals).max()
            if closer and reached <= value + ACCUMULATED * abs(value):
                return trial, gradient, reached
            if not is_visible:
                break
            factor *= 0.5
    return None


def pseudo_solve(matrix: Array, right: Array) -> Array:
    """Return the least-squares solution of a system that may be singular.

    A constant added to the biases of all classes has no effect.
    """
    solution: Array = linalg.lstsq(matrix, right, cond=ACCUMULATED)[0]
    return solution
