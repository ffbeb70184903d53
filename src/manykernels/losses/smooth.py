"""Smooth convex losses: logistic, multinomial, Cox, Poisson, or a function of the user.

For a smooth convex function φ of the outputs f (m×c) of the samples, biases b and Q = K_β/λ,

    F(β) = min_{v,b}  φ(Qv + 1bᵀ) + ½ tr(vᵀQv)  =  max_α  −φ*(−α) − ½ tr(αᵀQα),   1ᵀα = 0

(``φ(f) + (λ/2) fᵀK_β⁺f`` without biases; the condition 1ᵀα = 0 belongs to free biases). At the
optimum ``v = α = −∇φ(f)``; the model has the coefficients α/λ. With H = ∇²φ(f)

    E      = (H⁻¹ + Q)⁻¹ = H(I + QH)⁻¹
    g_j    = −∂F/∂β_j = tr(αᵀK_jα)/2λ
    ∇²F_ij = λ⁻² {⟨K_iα, E K_jα⟩ − ⟨K_iα, E1⟩ (1ᵀE1)⁻¹ ⟨1, E K_jα⟩}

H may be singular, as it is for Cox; E is computed without its inverse (:class:`Curvature`).

**Bounds.** By Fenchel's equality any f gives a feasible α with a known value of φ*: if
``α = −∇φ(f)`` and ``1ᵀα = 0``, then ``−φ*(−α) = φ(f) + α·f``. So for every b ∈ B

    F(b) ≥ D(α, b) = φ(f) + α·f − b·g(α)

no formula for φ* is needed, and D is linear in b. Of the machine with coefficients α/λ and outputs
``f̃ = Qα + 1bᵀ``, F(β) is at most ``P = φ(f̃) + ½ tr(αᵀQα)``. The slack ``P − D`` is the Bregman
divergence ``φ(f̃) − φ(f) − ∇φ(f)·(f̃ − f)``, of second order in ``f̃ − f``. Biases are minimised to
rounding error in both; what is left of 1ᵀα is part of the rounding error.

**Inner problem.** Newton's method in v with ``ρ = α − v``, from the last solution:

    Δv = ρ − EQρ − E1 δb,   (1ᵀE1) δb = 1ᵀ(ρ − EQρ) + 1ᵀv

and a line search. Of several classes, Δv is computed by conjugate gradients, without E, as long as
this makes progress (:meth:`SoftmaxCurvature.cheap_step`). The last steps are taken in f,
``Δf = (I − QE)(f̃ − f + 1δb)``: errors of the product Qv, which H Q would multiply, are then those
of f̃ only.

**Few digits.** Where the outputs almost reach the least φ, α is a difference of large numbers.
Its errors δα cost ``½ δαᵀ(Q + QHQ)δα`` in P, but ``½ δαᵀ(H⁻¹ + Q)δα`` in D. The machine then has
the coefficients v/λ of Newton's method, and D is still that of α. A slack that remains is counted
as a rounding error.

**Convex combinations.** φ* is convex, so a convex combination of known dual variables, of which
the values of φ* are known, is feasible and has a known bound; the bounds proved by several planes
(:mod:`manykernels.solvers.newton`) are of this kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize
from scipy.special import expit, logsumexp, softmax

from ..utils.numerics import ACCUMULATED, EPS, matmul
from .base import (
    Array,
    DualPoint,
    Indices,
    KernelOperator,
    ProblemSpec,
    nearly_definite,
)
from .on_demand import Lease, Workspace, WorkspaceEvaluation, WorkspaceLoss
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
    as the tolerance of certificates is relative to F. Certificates take `value` and `gradient` at
    their word: estimators compare them by differences, at the beginning and at the solution. A
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
    >>> from manykernels.losses.smooth import SmoothFunction, SmoothLoss
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
    """Logistic loss ``Σ_i w_i log(1 + exp(−y_i f_i))``; of several outputs, the sum of theirs.

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


# -- The loss -------------------------------------------------------------------------------------


#: Relative gap of the inner problem, a hundredth of the solvers' default tolerance because this
#: gap is part of the certified one.
INNER_TOL = 1e-8
# Maximum number of Newton steps of the inner problem, of halvings of one step, and of the last
# steps in f. Measured: see the module benchmarks/certificates; more than 30 steps are rare.
_MOST_STEPS = 200
_MOST_HALVINGS = 60
# Maximum number of Newton steps for biases; fewer than ten but for outputs that are far out.
_MOST_BIAS_STEPS = 30
_MOST_LAST_STEPS = 4
# E of a Newton step is used for the next one, too, if the gap has fallen to this part. Measured on
# 720 digits of ten classes: 0.1 to 0.6 take half of the time of a new E at every step.
_KEPT_IF = 0.3
# Steps without E are taken as long as the gap falls to this part, or F falls by this part.
_CHEAP_IF = 0.9
_CHEAP_FALL = 1e-3
# A step is halved further as long as that lowers its value by this part.
_CLEARLY = 0.1
# Armijo's constant, as in the outer Newton method.
_ARMIJO = 1e-4
# Number of dual variables whose value of φ* is remembered, more than the planes that a solver
# keeps.
_MOST_KNOWN = 500
# Entries of an array of (m, c, n) columns in one block of leave-one-out computations: 64 MB.
_BLOCK_ENTRIES = 2**23


# Step of differences, relative to the size of outputs, and the largest relative error of slopes.
_DIFFERENCE, _WRONG_SLOPE = 1e-5, 1e-3


def refuse_wrong_gradient(function: SmoothFunction, outputs: Array) -> None:
    """Raise if ∇φ at some outputs is not the derivative of φ, by a difference along its signs.

    Bounds of F are only as right as ∇φ. A wrong Hessian costs iterations, and proves nothing
    wrong.
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
    newton = -_pseudo_solve(curvature, totals)
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
        for _ in range(_MOST_HALVINGS):
            trial = outputs + factor * step
            gradient, reached = function.gradient(trial), function.value(trial)
            # A fall of φ that is lost in rounding errors shows in its slope only.
            is_visible = -factor * slope > ACCUMULATED * abs(value)
            if is_visible and reached <= value + _ARMIJO * factor * slope:
                return trial, gradient, reached
            closer = np.abs(gradient.sum(axis=0)).max() <= 0.5 * np.abs(totals).max()
            if closer and reached <= value + ACCUMULATED * abs(value):
                return trial, gradient, reached
            if not is_visible:
                break
            factor *= 0.5
    return None


class SmoothLoss(WorkspaceLoss):
    """F(β) of a smooth convex function of the outputs.

    Parameters
    ----------
    kernels : KernelOperator
        Training kernels, centred or not.
    function : SmoothFunction
        φ, such as :class:`Logistic`, or a function of the user.
    reg : float
        λ > 0 of ``φ(f) + (λ/2)‖f‖²``.
    inner_tol : float, default=1e-8
        Relative gap of the inner problems.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.losses.smooth import Logistic, SmoothLoss
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> stack = KernelStack.from_arrays([np.outer(x, x), np.eye(4)])
    >>> loss = SmoothLoss(stack, Logistic(np.sign(x)), reg=1.0)
    >>> point = loss.evaluate(np.array([0.5, 0.5]))
    >>> round(point.value, 6), point.gains.round(3), point.biases.round(6) + 0.0
    (1.668783, array([0.928, 0.128]), array([0.]))
    """

    def __init__(
        self,
        kernels: KernelOperator,
        function: SmoothFunction,
        reg: float,
        inner_tol: float = INNER_TOL,
    ) -> None:
        if not 0.0 < reg < np.inf:
            raise ValueError(f"reg must be positive and finite, got {reg!r}.")
        refuse_infinite_biases(function)
        self.kernels, self.function, self.reg = kernels, function, reg
        self.inner_tol = inner_tol
        self.workspace = Workspace(kernels.shape[0])
        # Dual variables with the values of −φ*; v and f̃ of the last solution, which starts the
        # next inner problem. Restricted copies share them.
        self._known: deque[tuple[Array, float]] = deque(maxlen=_MOST_KNOWN)
        self._last: list[tuple[Array, Array]] = []
        # The last solution of another loss; see `start_near`.
        self._near: list[tuple[Array, Array]] = []

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and outputs."""
        return self.kernels.shape[0], self.function.n_outputs

    @property
    def spec(self) -> ProblemSpec:
        n_samples, _, n_kernels = self.kernels.shape
        return ProblemSpec(
            type(self),
            n_samples,
            n_kernels,
            self.function.n_outputs,
            self.learns_reg,
            self.on_demand,
        )

    def regularization(self, weights: Array) -> float:
        return self.reg

    def evaluate(self, weights: Array) -> SmoothEvaluation:
        """Solve the inner problem at `weights`, starting from the last solution."""
        lease = self.workspace.lend()
        self._combine(weights)
        outputs, variables = self._solve()
        dual = -self.function.gradient(outputs)
        self.workspace.multiply(self.kernels, dual, None)
        point = self._evaluation(weights, outputs, dual, variables, lease)
        self._known.append((dual, point.constant))
        self._last[:] = [(point.variables, point.outputs)]
        return point

    @staticmethod
    def evaluate_together(
        losses: list[SmoothLoss], weights: list[Array]
    ) -> list[SmoothEvaluation]:
        """Evaluate several losses, each at its own weights."""
        return [loss.evaluate(row) for loss, row in zip(losses, weights, strict=True)]

    def start_near(self, other: SmoothLoss) -> None:
        """Start the first inner problem from the outputs of a loss that differs in λ only."""
        self._near = other._last

    def _combine(self, weights: Array) -> None:
        """Put Q = K_β/λ into the workspace."""
        self.kernels.combine(weights / self.reg, out=self.workspace.matrix)
        if not np.isfinite(self.workspace.diagonal).all():
            raise ValueError("The combined kernel is not finite: weights or kernels are not.")

    def refill(self, weights: Array, dual: Array) -> Lease:
        """Recompute Q and the products at a point with known α."""
        lease = self.workspace.lend()
        self._combine(weights)
        self.workspace.multiply(self.kernels, dual, None)
        return lease

    def _evaluation(
        self, weights: Array, outputs: Array, dual: Array, variables: Array, lease: Lease | None
    ) -> SmoothEvaluation:
        """Return the bounds proved by outputs f with ``α = −∇φ(f)``, products in place.

        The machine is that of α or, where rounding errors spoil it, of other `variables` v.
        """
        function, products = self.function, self.workspace.products
        assert products is not None
        gains = self._gains(dual, products)
        norm = float(weights @ gains)
        linear = np.tensordot(weights / self.reg, products, 1)
        machine = self._machine(dual, linear, norm, outputs)
        # α·b is zero for all b, but for the rounding errors of 1ᵀα.
        centred = outputs - outputs.mean(axis=0) * function.has_bias
        lower = function.value(outputs) + float(np.vdot(dual, centred)) - norm
        if not self._is_small(machine.value - lower, machine.value):
            for v in (variables, np.zeros_like(dual)):
                linear = matmul(self.workspace.matrix, v)
                other = self._machine(v, linear, 0.5 * float(np.vdot(v, linear)), outputs)
                machine = other if other.value < machine.value else machine
        value, fitted, biases = machine.value, machine.outputs, machine.biases
        slack = value - lower
        imbalance = np.abs(dual.sum(axis=0)) * function.has_bias
        rounding = max(function.rounding(outputs), function.rounding(fitted))
        rounding += EPS * float(np.sum(np.abs(dual * outputs)))
        rounding += float(imbalance @ (np.abs(biases) + np.abs(fitted - outputs).max(axis=0)))
        if not self._is_small(slack, value):
            # Newton's method does not get any closer, which is because of rounding errors.
            rounding += slack
        # Errors of α change α·f and the gains.
        errors, of_gains = function.gradient_errors(outputs), np.zeros_like(gains)
        if errors is not None:
            rounding += float(np.sum(errors * np.abs(outputs)))
            of_gains = np.einsum("jmk,mk->j", np.abs(products), errors) / self.reg
        return SmoothEvaluation(
            weights, value, gains, slack, fitted, biases, lower + norm, self, dual, outputs,
            machine.variables, rounding, of_gains, lease,
        )  # fmt: skip

    def _is_small(self, slack: float, value: float) -> bool:
        return bool(np.isfinite(value)) and slack <= self.inner_tol * abs(value)

    def _machine(self, variables: Array, linear: Array, norm: float, guess: Array) -> _Machine:
        """Return the machine of v with Qv and ``½ vᵀQv``, and its best biases."""
        function = self.function
        start = (guess - linear).mean(axis=0) * function.has_bias
        fitted, _ = with_best_biases(self.function, linear + start)
        biases = (fitted - linear)[0] * function.has_bias
        return _Machine(variables, fitted, biases, function.value(fitted) + norm)

    def _gains(self, dual: Array, products: Array) -> Array:
        gains: Array = np.einsum("jmk,mk->j", products, dual) / (2.0 * self.reg)
        return gains

    def gain_errors_at(self, dual: Array) -> Array:
        """Return estimated rounding errors of the gains at any dual variables."""
        return self.kernels.form_errors(dual, dual) / (2.0 * self.reg)

    def gains_at(self, dual: Array) -> Array:
        return self._gains(dual, self.kernels.apply(dual))

    def dual_point(self, dual: Array) -> DualPoint:
        """Return D of α, which is a known solution or the combination of such that is nearest."""
        known, constant = self._nearest_known(dual)
        return DualPoint(constant, 0.0, self.gains_at(known))

    def _nearest_known(self, dual: Array) -> tuple[Array, float]:
        """Return feasible dual variables close to `dual`, and a lower bound on their −φ*."""
        for known, constant in reversed(self._known):
            if known is dual or np.array_equal(known, dual):
                return known, constant
        if not self._known:
            outputs, _ = with_best_biases(self.function, self._at_biases())
            gradient = self.function.gradient(outputs)
            constant = self.function.value(outputs) - float(np.vdot(gradient, outputs))
            self._known.append((-gradient, constant))
        columns = np.column_stack([known.ravel() for known, _ in self._known])
        size = float(np.abs(columns).max()) or 1.0
        # Shares that sum to one, by a row that is larger than the others.
        heavy = 1e3 * np.sqrt(len(columns))
        system = np.vstack([columns / size, np.full(columns.shape[1], heavy)])
        right = np.append(dual.ravel() / size, heavy)
        try:
            shares, _ = optimize.nnls(system, right, maxiter=100 * columns.shape[1])
        except RuntimeError:  # too many iterations, where columns are almost equal
            shares = np.zeros(columns.shape[1])
            shares[np.argmin(np.linalg.norm(system - right[:, None], axis=0))] = 1.0
        shares /= shares.sum()
        combination = (columns @ shares).reshape(dual.shape)
        return combination, float(shares @ [constant for _, constant in self._known])

    # -- The inner problem -------------------------------------------------------------------

    def _at_biases(self) -> Array:
        return np.tile(self.function.initial_biases(), (self.shape[0], 1))

    def _solve(self) -> tuple[Array, Array]:
        """Return outputs f, biases included, and v that solve the inner problem at Q."""
        kernel, function = self.workspace.matrix, self.function
        state = self._start(kernel)
        state, is_done = self._cheap_steps(state, kernel)
        inverse: InverseSum | None = None
        is_new = False
        for _ in range(0 if is_done else _MOST_STEPS):
            if state.gap <= 0.1 * self.inner_tol * abs(state.value):
                break
            if inverse is None:
                inverse, is_new = function.curvature(state.outputs).inverse_sum(kernel), True
            following = state.newton_step(inverse)
            if following is None and is_new:
                break
            # E takes most of the time, so it is kept as long as it serves.
            if following is None or following.gap > _KEPT_IF * state.gap:
                inverse = None
            state, is_new = following or state, False
        return self._last_steps(state.outputs, kernel, inverse), state.v

    def _cheap_steps(self, state: _InnerState, kernel: Array) -> tuple[_InnerState, bool]:
        """Take Newton steps without E; return the last state, and whether it needs no others."""
        for _ in range(_MOST_STEPS):
            if state.gap <= 0.1 * self.inner_tol * abs(state.value):
                slack, value, _ = self._slack(
                    *with_best_biases(self.function, state.outputs), kernel
                )
                if slack <= 0.1 * self.inner_tol * abs(value):
                    return state, True
            following = state.cheap_step()
            if following is None:
                return state, False
            is_closer = following.gap <= _CHEAP_IF * state.gap
            is_lower = following.value <= state.value - _CHEAP_FALL * abs(state.value)
            state = following
            if not (is_closer or is_lower):
                return state, False
        return state, False

    def _start(self, kernel: Array) -> _InnerState:
        """Return the better of v = 0 and the last solution, or that of a loss with another λ."""
        outputs, _ = with_best_biases(self.function, self._at_biases())
        zero = _InnerState(self, kernel, np.zeros(self.shape), outputs, np.zeros(self.shape))
        if not (self._last or self._near):
            return zero
        v, before = (self._last or self._near)[0]
        products = matmul(kernel, v)
        if not self._last:
            # The multiple whose outputs are closest to those of the other λ.
            centred = products - products.mean(axis=0) * self.function.has_bias
            size = float(np.vdot(centred, products))
            factor = float(np.vdot(centred, before)) / size if size > 0.0 else 0.0
            v, products = factor * v, factor * products
        with np.errstate(over="ignore", invalid="ignore"):
            moved = products + outputs.mean(axis=0) * self.function.has_bias
            if not np.isfinite(self.function.value(moved)):
                return zero
            moved, _ = with_best_biases(self.function, moved)
        last = _InnerState(self, kernel, v, moved, products)
        return last if last.value < zero.value else zero

    def _last_steps(self, outputs: Array, kernel: Array, inverse: InverseSum | None) -> Array:
        """Take Newton steps in f until the slack is within `inner_tol`; see the module.

        One more is taken if the last E of the steps in v is good enough for it, as it costs
        little.
        """
        outputs, gradient = with_best_biases(self.function, outputs)
        slack, value, residual = self._slack(outputs, gradient, kernel)
        for number in range(_MOST_LAST_STEPS):
            is_done = slack <= 0.1 * self.inner_tol * abs(value)
            if is_done and (number > 0 or inverse is None):
                break
            is_new = inverse is None
            if inverse is None:
                inverse = self.function.curvature(outputs).inverse_sum(kernel)
            step = _step_in_outputs(kernel, inverse, residual, self.function.has_bias)
            trial, gradient = with_best_biases(self.function, outputs + step)
            reached, new_value, new_residual = self._slack(trial, gradient, kernel)
            # E of other outputs may be too far off, a new one is only once.
            inverse = None
            if reached < slack:
                outputs, slack, value, residual = trial, reached, new_value, new_residual
            elif is_new or is_done:
                break
        return outputs

    def _slack(self, outputs: Array, gradient: Array, kernel: Array) -> tuple[float, float, Array]:
        """Return a bound on the slack of outputs f, P, and ``f̃ − f``.

        The bound ``(∇φ(f̃) − ∇φ(f))·(f̃ − f)`` is about twice the slack, and has no cancellation.
        """
        function = self.function
        linear = matmul(kernel, -gradient)
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = linear + (outputs - linear).mean(axis=0) * function.has_bias
            if not np.isfinite(function.value(fitted)):
                return np.inf, np.inf, fitted - outputs
            fitted, slopes = with_best_biases(self.function, fitted)
            residual = fitted - outputs
            slack = float(np.vdot(slopes - gradient, residual))
        value = function.value(fitted) - 0.5 * float(np.vdot(gradient, linear))
        return (slack if np.isfinite(slack) else np.inf), value, residual


@dataclass(frozen=True)
class _Machine:
    """Variables v, outputs ``Qv + 1bᵀ`` at the samples, biases b, and P."""

    variables: Array
    outputs: Array
    biases: Array
    value: float


def _bias_columns(shape: tuple[int, int]) -> Array:
    """Return 1 in each of the outputs, (m, c, c)."""
    return np.broadcast_to(np.eye(shape[1]), (*shape, shape[1])).copy()


def _pseudo_solve(matrix: Array, right: Array) -> Array:
    """Return the least-squares solution: shifts of all classes together change nothing."""
    solution: Array = linalg.lstsq(matrix, right, cond=ACCUMULATED)[0]
    return solution


def _step_in_outputs(kernel: Array, inverse: InverseSum, residual: Array, has_bias: bool) -> Array:
    """Return ``(I − QE)(residual + 1δb)`` with 1ᵀE(residual + 1δb) = 0."""
    moved = residual
    if has_bias:
        sums = inverse.apply(residual[:, :, None])[:, :, 0].sum(axis=0)
        moved = residual + _pseudo_solve(inverse.totals(len(residual)), -sums)
    step: Array = moved - matmul(kernel, inverse.apply(moved[:, :, None])[:, :, 0])
    return step


class _InnerState:
    """Inner variables v with outputs ``f = Qv + 1bᵀ``, and the gap that they prove."""

    def __init__(
        self, loss: SmoothLoss, kernel: Array, v: Array, outputs: Array, products: Array
    ) -> None:
        self._loss, self._kernel = loss, kernel
        self.v, self.outputs, self.products = v, outputs, products
        function = loss.function
        self.value = function.value(outputs) + 0.5 * float(np.vdot(v, products))
        self.dual = -function.gradient(outputs)
        self.residual = self.dual - v
        self.images = matmul(kernel, self.residual)
        # The gap ½ ρᵀQρ, and what better biases would gain.
        self.gap = 0.5 * float(np.vdot(self.residual, self.images))
        if function.has_bias:
            totals = self.dual.sum(axis=0)
            gain = _pseudo_solve(function.curvature(outputs).totals(), totals)
            self.gap += 0.5 * abs(float(totals @ gain))
        self.gap = self.gap if np.isfinite(self.gap) else np.inf

    def cheap_step(self) -> _InnerState | None:
        """Return the state after a Newton step without E; None if there is none."""
        function = self._loss.function
        totals = self.dual.sum(axis=0) if function.has_bias else None
        curvature = function.curvature(self.outputs)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = curvature.cheap_step(self._kernel, self.residual, totals, abs(self.value))
        return None if found is None else self._searched(*found)

    def newton_step(self, inverse: InverseSum) -> _InnerState | None:
        """Return the state after a step that lowers the objective; None if rounding hides it."""
        function = self._loss.function
        step = self.residual - inverse.apply(self.images[:, :, None])[:, :, 0]
        biases = np.zeros(step.shape[1])
        if function.has_bias:
            totals = step.sum(axis=0) + self.v.sum(axis=0)
            biases = _pseudo_solve(inverse.totals(len(step)), totals)
            shifts = np.tile(biases, (len(step), 1))[:, :, None]
            step = step - inverse.apply(shifts)[:, :, 0]
        return self._searched(step, biases)

    def _searched(self, step: Array, biases: Array) -> _InnerState | None:
        """Return the state after a part of a step, halved until the objective falls."""
        function = self._loss.function
        moved = matmul(self._kernel, step)
        change = moved + biases
        slope = float(np.vdot(self.v, moved)) - float(np.vdot(self.dual, change))
        curvature = float(np.vdot(step, moved))
        if not (np.isfinite(change).all() and slope < 0.0):
            return None
        norm, mixed = float(np.vdot(self.v, self.products)), float(np.vdot(self.v, moved))

        def value_at(factor: float) -> float:
            penalty = 0.5 * norm + factor * mixed + 0.5 * factor**2 * curvature
            return function.value(self.outputs + factor * change) + penalty

        factor = 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(_MOST_HALVINGS):
                reached = value_at(factor)
                if reached <= self.value + _ARMIJO * factor * slope:
                    # A full step may go too far, to outputs at which H is almost zero.
                    while (lower := value_at(0.5 * factor)) < reached - _CLEARLY * abs(reached):
                        factor, reached = 0.5 * factor, lower
                    return self._moved(factor, step, moved, change)
                if reached <= self.value + ACCUMULATED * abs(self.value):
                    # The fall may be hidden by rounding: the gap decides.
                    following = self._moved(factor, step, moved, change)
                    if following.gap <= 0.5 * self.gap:
                        return following
                factor *= 0.5
        return None

    def _moved(self, factor: float, step: Array, moved: Array, change: Array) -> _InnerState:
        return _InnerState(
            self._loss,
            self._kernel,
            self.v + factor * step,
            self.outputs + factor * change,
            self.products + factor * moved,
        )


@dataclass
class SmoothEvaluation(WorkspaceEvaluation):
    """F of a smooth function at one point; see the module for the formulas.

    Attributes
    ----------
    outputs : ndarray of shape (m, c)
        f̃, outputs of the machine at the training samples, with biases.
    biases : ndarray of shape (c,)
    constant : float
        ``−φ*(−α)``.
    variables : ndarray of shape (m, c)
        v of the machine: α, unless rounding errors of α spoil its outputs.
    """

    weights: Array
    value: float
    gains: Array
    slack: float
    outputs: Array = field(repr=False)
    biases: Array
    constant: float = field(repr=False)
    _loss: SmoothLoss = field(repr=False)
    dual: Array = field(repr=False)
    _point: Array = field(repr=False)
    variables: Array = field(repr=False)
    _rounding: float = field(repr=False)
    _errors_of_dual: Array = field(repr=False)
    _lease: Lease | None = field(repr=False, compare=False)

    hyperbolic: ClassVar[bool] = True

    @cached_property
    def rounding(self) -> float:
        """Rounding errors of φ, of what is left of 1ᵀα, and of Qv, at which φ has a slope."""
        function, kernels = self._loss.function, self._loss.kernels
        slopes = function.gradient(self.outputs)
        shares = self.weights / self._loss.reg
        error = self._rounding + float(shares @ kernels.form_errors(slopes, self.variables))
        # Where φ is almost least its curvature counts more than its slopes: outputs are moved by
        # the mean of their errors, up and down in turn.
        total = shares @ kernels.form_errors(np.ones_like(self.variables), self.variables)
        signs = (-1.0) ** np.add.outer(*map(np.arange, self.outputs.shape))
        step = float(total) / self.outputs.size * signs
        value = function.value(self.outputs)
        moved = max(function.value(self.outputs + step), function.value(self.outputs - step))
        return error + max(moved - value, 0.0)

    @cached_property
    def gain_errors(self) -> Array:
        return self._loss.gain_errors_at(self.dual) + self._errors_of_dual

    @property
    def coefficients(self) -> Array:
        """Coefficients v/λ of the training samples, (m, c)."""
        return self.variables / self._loss.reg

    @property
    def reach(self) -> Array:
        """Derivative of the objective in the outputs of the samples, (m, c)."""
        return np.abs(self.dual)

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights, self.dual)

    def _inverse_sum(self) -> InverseSum:
        """Return E at f; takes a factorisation."""
        self.restore()
        curvature = self._loss.function.curvature(self._point)
        return curvature.inverse_sum(self._loss.workspace.matrix)

    def hessian(self) -> Array:
        """Return ``∇²F``; takes a factorisation."""
        inverse = self._inverse_sum()
        products = self._loss.workspace.products
        assert products is not None
        columns = np.ascontiguousarray(np.moveaxis(products, 0, 2)) / self._loss.reg
        n = columns.shape[2]
        solved = inverse.apply(columns)
        hessian: Array = columns.reshape(-1, n).T @ solved.reshape(-1, n)
        if self._loss.function.has_bias:
            totals = inverse.totals(self._loss.shape[0])
            sums = solved.sum(axis=0)
            hessian -= sums.T @ _pseudo_solve(totals, sums)
        return 0.5 * (hessian + hessian.T)

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F``."""
        return nearly_definite(self.hessian())

    def leave_one_out(self, groups: NDArray[Any] | None = None) -> Array:
        """Return approximate outputs of each sample by the machine of all others, (m, c).

        Kernel weights are fixed, and one Newton step is taken from the machine of all samples:
        ``f_S − T_SS (I − H_SS T_SS)⁻¹ α_S`` with ``T = Q − QEQ + u (1ᵀE1)⁻¹ uᵀ``,
        ``u = 1 − QE1``. Samples of one of the `groups` are left out together.

        Raises
        ------
        TypeError
            If φ is not a sum over samples, as for :class:`Cox`.
        """
        loss, function = self._loss, self._loss.function
        if not function.by_samples:
            raise TypeError(
                f"{type(function).__name__} is not a sum over samples, so that leave-one-out "
                "outputs have no approximation in closed form: use folds."
            )
        inverse = self._inverse_sum()
        kernel, (m, c) = loss.workspace.matrix, loss.shape
        curvature = function.curvature(self.outputs)
        dual = -function.gradient(self.outputs)
        shifts, totals = np.zeros((m, c, c)), np.eye(c)
        if function.has_bias:
            solved = inverse.apply(_bias_columns((m, c)))
            totals = solved.sum(axis=0)
            flat = matmul(kernel, solved.reshape(m, -1)).reshape(m, c, c)
            shifts = np.eye(c) - flat
        outputs = self.outputs.copy()
        for rows, sets in _blocks_of_groups(groups, m, max(1, _BLOCK_ENTRIES // (m * c * c))):
            forms = inverse.gram(np.ascontiguousarray(kernel[:, rows]))
            for members in sets:
                left_out = rows[members]
                k = len(left_out)
                inner = -forms[:, members][..., members].transpose(1, 0, 3, 2)
                inner[:, np.arange(c), :, np.arange(c)] += kernel[np.ix_(left_out, left_out)]
                border = shifts[left_out].reshape(k * c, c)
                sensitivity = inner.reshape(k * c, k * c) + border @ _pseudo_solve(
                    totals, border.T
                )
                hessian = _block_of(curvature, left_out)
                system = np.eye(k * c) - hessian @ sensitivity
                change = sensitivity @ _pseudo_solve(system, dual[left_out].ravel())
                outputs[left_out] -= change.reshape(k, c)
        return outputs


def _block_of(curvature: Curvature, rows: Indices) -> Array:
    """Return the Hessian in the outputs of some samples, (k·c, k·c)."""
    if isinstance(curvature, DiagonalCurvature):
        return np.diag(curvature.diagonal[rows].ravel())
    if isinstance(curvature, SoftmaxCurvature):
        blocks = [
            weight * (np.diag(p) - np.outer(p, p))
            for p, weight in zip(
                curvature.probabilities[rows], curvature.sample_weight[rows], strict=True
            )
        ]
        block: Array = linalg.block_diag(*blocks)
        return block
    assert isinstance(curvature, DenseCurvature)
    c = curvature.n_outputs
    flat = (rows[:, None] * c + np.arange(c)).ravel()
    block = curvature.matrix[np.ix_(flat, flat)]
    return block


def _blocks_of_groups(
    groups: NDArray[Any] | None, n_samples: int, most: int
) -> list[tuple[Indices, list[Indices]]]:
    """Return blocks of about `most` rows, each with the positions in it of its groups."""
    numbers = (
        np.arange(n_samples)
        if groups is None
        else np.unique(groups, return_inverse=True)[1].ravel()
    )
    order = np.argsort(numbers, kind="stable")
    sets = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    blocks: list[tuple[Indices, list[Indices]]] = []
    waiting: list[Indices] = []
    for rows in [*sets, None]:
        if waiting and (rows is None or sum(map(len, waiting)) + len(rows) > most):
            ends = np.cumsum([0, *map(len, waiting)])
            positions = [np.arange(a, b) for a, b in pairwise(ends)]
            blocks.append((np.concatenate(waiting), positions))
            waiting = []
        if rows is not None:
            waiting.append(rows)
    return blocks
