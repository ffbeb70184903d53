"""Square loss on explicit features, which depends on the samples only through sums over them.

If ``K_j = Z_jZ_jᵀ`` with explicit features ``Z = [Z_1 … Z_n]`` (m × D, centred, with sample
weights applied), the square loss of :mod:`.square` depends on the m samples only through

    G = ZᵀZ (D×D),   R = ZᵀH (D×c),   T = HᵀH (c×c)

(maths.md, section 7). With β repeated for the features of each kernel, ``B = diag(β)`` and
``S = diag(√β)``, and ``V = S(λI + SGS)⁻¹SR``, the outputs at the samples are ZV, and

    U = A⁻¹H = H − ZV,    E = ZᵀU = R − GV
    F(β)   = tr(HᵀU) = tr(T − RᵀV)
    g_j    = ‖E_j‖²/λ
    ∇²F_ij = (2/λ²) tr(E_iᵀ [G − GS(λI + SGS)⁻¹SG]_ij E_j)

by ``A⁻¹ = I − ZS(λI + SGS)⁻¹SZᵀ``. The cost of factorising a D × D matrix does not depend on the
number of samples.

Any V proves a bound, not only the exact one: with ``U = H − ZV`` and the residual
``H − AU = ZQ``, ``Q = V − BE/λ``,

    D(U, β) = tr(T − RᵀV) + tr(EᵀQ) ≤ F(β) ≤ D + tr(QᵀGQ)

as in :mod:`.square` for every U. So V determines the dual variables, and the certificate needs no
sample either.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ..utils.numerics import ACCUMULATED, EPS, matmul
from .base import Array, DualPoint, Indices, Loss, ProblemSpec
from .left_out import LeavesOut
from .on_demand import Lease, Workspace, WorkspaceEvaluation
from .square import LARGE_DIAGONAL, NotPositiveDefiniteError, reciprocal_curvature

# Fraction of features with positive kernel weight below which the others are left out of the
# matrix to factorise: cutting it out costs a pass over it, a factorisation some twenty.
_FEW_USED = 0.9
# Rows of G that are scaled at once: 1 MiB with 2000 features, for a second-level cache.
_BLOCK_ROWS = 64


@dataclass(frozen=True)
class FeatureSums:
    """G, R and T of centred features and targets, summed over `n_samples` samples.

    `kernel_of` (D,) is the kernel number of each feature; features of a kernel are contiguous, and
    kernels are numbered from 0 to ``n_kernels − 1``. `errors` (D,) are the differences of features
    that are computed again: root mean squares over the samples, times the root of their weight.
    `n_distinct` returns the number of samples without repeats of others, features and targets.
    """

    gram: Array
    cross: Array
    total: Array
    kernel_of: NDArray[np.intp]
    n_kernels: int
    n_samples: int
    errors: Array | None = None
    n_distinct: Callable[[], int] | None = None

    def blocks(self) -> list[slice]:
        """Return the slices of the features of every kernel, which may be empty."""
        ends = np.searchsorted(self.kernel_of, np.arange(self.n_kernels + 1))
        return [slice(ends[j], ends[j + 1]) for j in range(self.n_kernels)]

    def by_kernel(self, rows: Array) -> Array:
        """Sum values of every feature over the features of each kernel, (n_kernels, …)."""
        sums: Array = np.array([rows[block].sum(axis=0) for block in self.blocks()])
        return sums

    def places(self, kernels: Indices) -> list[Indices]:
        """Return the numbers of the features of some of the kernels."""
        blocks, every = self.blocks(), np.arange(len(self.kernel_of))
        return [every[blocks[j]] for j in kernels]

    def select(self, kernels: Indices) -> FeatureSums:
        """Return the sums of some of the kernels."""
        places = self.places(kernels)
        features = np.concatenate(places)
        kernel_of = np.repeat(np.arange(len(kernels)), [len(block) for block in places])
        gram = np.ascontiguousarray(self.gram[np.ix_(features, features)])
        cross = self.cross[features]
        return replace(
            self,
            gram=gram,
            cross=cross,
            kernel_of=kernel_of,
            n_kernels=len(kernels),
            errors=None if self.errors is None else self.errors[features],
        )


class FeatureLoss(Loss):
    """F(β) of the square loss on explicit features.

    Parameters
    ----------
    sums : FeatureSums
    reg : float
        λ > 0.

    Attributes
    ----------
    rotation : ndarray of shape (c, rank T)
        Orthonormal columns, as for :class:`~manykernels.losses.SquareLoss`.
    """

    def __init__(self, sums: FeatureSums, reg: float) -> None:
        self.sums = sums
        self.reg = reg
        spectrum, basis = np.linalg.eigh(sums.total)
        kept = spectrum > ACCUMULATED * spectrum[-1]
        kept[-1] = True  # LAPACK needs a column, even if all targets are zero
        self.rotation = basis[:, kept]
        self.cross = np.asfortranarray(sums.cross @ self.rotation)
        self.totals = np.maximum(spectrum[kept], 0.0)
        self.total = float(self.totals.sum())
        self.workspace = Workspace(len(sums.gram))
        self.active: Indices | slice = slice(None)
        # Positions of the features of a restricted loss among all features, and their number: dual
        # variables are laid out alike for both.
        self._places = np.arange(len(sums.gram))
        self._n_whole = len(sums.gram)

    @property
    def spec(self) -> ProblemSpec:
        sums = self.sums
        return ProblemSpec(FeatureLoss, sums.n_samples, sums.n_kernels, self.cross.shape[1])

    @cached_property
    def roots(self) -> Array:
        """Norms of the features, ``√G_aa``."""
        return np.sqrt(np.maximum(np.diagonal(self.sums.gram), 0.0))

    def spread(self, weights: Array) -> Array:
        """Repeat a number per kernel for each of its features, as a column (D, 1)."""
        return weights[self.sums.kernel_of][:, None]

    def evaluate(self, weights: Array) -> FeatureEvaluation:
        """Factorise ``λI + SGS`` at `weights`; derivatives are computed later."""
        weights = np.asarray(weights, dtype=np.float64)
        lease = self._factorize(weights)
        half = np.sqrt(self.spread(weights))
        solution = np.zeros_like(self.cross)
        right = np.asfortranarray((half * self.cross)[self.active])
        solution[self.active] = half[self.active] * self.workspace.solve(right)
        return FeatureEvaluation(weights, self, solution, lease)

    @staticmethod
    def evaluate_together(
        losses: list[FeatureLoss], weights: list[Array]
    ) -> list[FeatureEvaluation]:
        """Evaluate losses at several λ, each at its own weights."""
        return [loss.evaluate(point) for loss, point in zip(losses, weights, strict=True)]

    def _factorize(self, weights: Array) -> Lease:
        """Put the Cholesky factor of ``λI + SGS`` into the workspace.

        If they are many, features of kernels without weight are left out: `active` are the others.
        """
        self.workspace.lend()  # ends the lease of the previous evaluation
        half = np.sqrt(self.spread(weights))
        used, gram = np.flatnonzero(half[:, 0] > 0.0), self.sums.gram
        if 0 < len(used) < _FEW_USED * len(gram):
            self.active, gram, half = used, gram[np.ix_(used, used)], half[used]
        else:
            self.active = slice(None)
        if len(gram) != len(self.workspace.matrix):
            self.workspace = Workspace(len(gram))
        lease, matrix = self.workspace.lend(), self.workspace.matrix
        for start in range(0, len(gram), _BLOCK_ROWS):
            # The factorisation reads the lower triangle.
            stop = start + _BLOCK_ROWS
            block = matrix[start:stop, :stop]
            np.multiply(gram[start:stop, :stop], half[start:stop], out=block)
            block *= half[:stop].T
        self.workspace.diagonal[:] += self.reg
        if not self.workspace.cholesky():
            raise NotPositiveDefiniteError(
                f"reg={self.reg:g} is lost in the rounding errors of {self.sums.n_samples} "
                "samples, so that the regression cannot be solved: raise reg."
            )
        return lease

    def dual_point(self, dual: Array) -> DualPoint:
        """Return D of U = H − ZV for any V, laid out as :attr:`FeatureEvaluation.dual`."""
        solution = np.asfortranarray(dual[self._places] @ self.rotation)
        left = self.cross - matmul(self.sums.gram, solution)
        explained = float(np.vdot(self.cross, solution))
        fitted = explained - float(np.vdot(solution, left))
        return DualPoint(
            linear=2.0 * (self.total - explained),
            quadratic=self.total - 2.0 * explained + fitted,
            gains=self.gains(left),
            longest=np.inf,
        )

    def gains(self, left: Array) -> Array:
        """Return ``‖E_j‖²/λ`` of every kernel."""
        return self.sums.by_kernel(np.einsum("ak,ak->a", left, left)) / self.reg

    def restricted(self, kernels: Indices) -> Self:
        loss = copy(self)
        loss.sums = self.sums.select(kernels)
        loss._places = self._places[np.concatenate(self.sums.places(kernels))]
        loss.cross = np.asfortranarray(loss.sums.cross @ self.rotation)
        loss.workspace = Workspace(len(loss.sums.gram))
        vars(loss).pop("roots", None)
        return loss

    def kernel(self, which: int) -> Array:
        """Return ``G_jj/λ``, which has the eigenvalues of the matrix that a weight multiplies."""
        block = self.sums.blocks()[which]
        return self.sums.gram[block, block] / self.reg

    def regularization(self, weights: Array) -> float:
        return self.reg


@dataclass
class FeatureEvaluation(WorkspaceEvaluation):
    """F of the square loss on features at one point; `solution` is V in rotated columns."""

    weights: Array
    loss: FeatureLoss = field(repr=False)
    solution: Array = field(repr=False)
    _lease: Lease | None = field(default=None, repr=False, compare=False)

    hyperbolic = True

    @cached_property
    def left(self) -> Array:
        """Residual products E = R − GV, (D, k)."""
        left: Array = self.loss.cross - matmul(self.loss.sums.gram, self.solution)
        return left

    @cached_property
    def gains(self) -> Array:
        return self.loss.gains(self.left)

    @cached_property
    def _error(self) -> Array:
        """Q = V − BE/λ, which is zero up to rounding errors."""
        error: Array = self.solution - self.loss.spread(self.weights) * self.left / self.loss.reg
        return error

    @cached_property
    def slack(self) -> float:
        error = np.asfortranarray(self._error)
        return max(float(np.vdot(error, matmul(self.loss.sums.gram, error))), 0.0)

    @cached_property
    def value(self) -> float:
        bound = self.loss.total - float(np.vdot(self.loss.cross, self.solution))
        return bound + float(np.vdot(self.left, self._error)) + self.slack

    @property
    def rounding(self) -> float:
        """Rounding errors of T, of the inner products of R with V, and of the gains."""
        size = self.loss.total + float(np.abs(self.loss.cross * self.solution).sum())
        return float(EPS * size + self.weights @ self.gain_errors)

    @cached_property
    def lengths(self) -> Array:
        """``‖U_k‖`` of every output, (k,)."""
        loss = self.loss
        fitted = np.sum(self.solution * (loss.cross + self.left), axis=0)
        squares: Array = np.maximum(loss.totals - fitted, 0.0)
        return np.sqrt(squares)

    def feature_rounding(self, support: Callable[[Array], float]) -> float:
        """Return the change of F, and of lower bounds over a domain, by errors of the features.

        ``‖H − ZV‖²`` changes by ``2 tr(Uᵀ δZ V)`` and more, and the gains by ``δE = δZᵀU``: the
        dual variables are those of the features of the fit. Errors of different samples are
        independent, those of the features of a sample are not. `support` is the support function
        of the domain.
        """
        sums, errors = self.loss.sums, self.loss.sums.errors
        if errors is None:
            return 0.0
        moved = errors @ np.abs(self.solution)
        first = 2.0 * self.lengths * moved / np.sqrt(sums.n_samples)
        mean_square = float(np.sum(self.lengths**2)) / sums.n_samples
        gain_errors = self._gain_errors_of(mean_square * sums.by_kernel(errors**2))
        change = float(np.sum(first + moved**2) + self.weights @ gain_errors)
        return change + support(gain_errors)

    @cached_property
    def gain_errors(self) -> Array:
        """Rounding errors of ``‖E_j‖²/λ``, from the errors of the sums ``R − GV``.

        ``|G_ab| ≤ √G_aa √G_bb``, so entry a of GV is a sum of terms of at most the size
        ``√G_aa Σ_b √G_bb|V_b|`` in total, of which a rounding error is a part.
        """
        roots = self.loss.roots
        terms = np.abs(self.loss.cross) + roots[:, None] * (roots @ np.abs(self.solution))
        blocks = self.loss.sums.by_kernel(np.sum((EPS * terms) ** 2, axis=1))
        return self._gain_errors_of(blocks)

    def _gain_errors_of(self, squares: Array) -> Array:
        """Return errors of ``‖E_j‖²/λ`` from the squared norms of errors of E_j."""
        lengths = np.sqrt(self.loss.sums.by_kernel(np.sum(self.left**2, axis=1)))
        errors: Array = (2.0 * lengths * np.sqrt(squares) + squares) / self.loss.reg
        return errors

    @property
    def coefficients(self) -> Array:
        """V: the outputs are the features times V, (D, c)."""
        coefficients: Array = self.solution @ self.loss.rotation.T
        return coefficients

    @property
    def dual(self) -> Array:
        """V, which determines the dual variables ``α = 2(H − ZV)``, (D, c).

        Features that a restricted loss does not have are included, with coefficients of zero. Z
        are the features of the fit: if λ is small, ``H − ZV`` is a small difference, and features
        that are computed again in other blocks of rows may give dual variables that prove less.
        """
        coefficients, loss = self.coefficients, self.loss
        dual = np.zeros((loss._n_whole, coefficients.shape[1]))
        dual[loss._places] = coefficients
        return dual

    @property
    def factorized(self) -> bool:
        return True

    def _refill(self) -> Lease:
        return self.loss._factorize(self.weights)

    def hessian(self) -> Array:
        """Return ``∇²F``, by one triangular solve."""
        self.restore()
        loss, gram, left = self.loss, self.loss.sums.gram, self.left
        blocks, width = loss.sums.blocks(), left.shape[1]
        # Columns G[:, j] E_j of all kernels and outputs.
        images = np.empty((len(gram), len(blocks) * width), order="F")
        direct = np.empty((len(blocks), len(blocks)))
        for j, block in enumerate(blocks):
            # Columns of a symmetric matrix are rows, which BLAS reads without a copy.
            image = blas.dgemm(1.0, gram[block].T, left[block])
            images[:, j * width : (j + 1) * width] = image
            direct[:, j] = loss.sums.by_kernel(np.einsum("ak,ak->a", left, image))
        images *= np.sqrt(loss.spread(self.weights))
        active = np.asfortranarray(images[loss.active])
        half = loss.workspace.half_solve(active).T.reshape(len(blocks), -1)
        hessian: Array = (direct - matmul(half, half.T)) * (2.0 / loss.reg**2)
        hessian = 0.5 * (hessian + hessian.T)
        return hessian

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F``; for one output changed as in :class:`.SquareEvaluation`."""
        hessian = self.hessian()
        if self.solution.shape[1] > 1:
            return hessian
        return reciprocal_curvature(hessian, self.value, self.gains)

    def log_determinant(self) -> float:
        """Return ``log|A|``; the eigenvalue at the constant vector is 1."""
        self.restore()
        diagonal = np.abs(self.loss.workspace.diagonal)
        return float(2.0 * np.log(diagonal).sum() - len(diagonal) * np.log(self.loss.reg))

    def traces(self) -> tuple[float, Array]:
        """Return ``tr A⁻¹`` on the complement of the constant vector, and all ``tr(A⁻¹K_j)/λ``.

        With ``N = R⁻ᵀSG``, where ``RᵀR = λI + SGS``, ``tr(A⁻¹K_j)`` is ``tr G_jj`` less the sum of
        squares of the columns of N of kernel j.
        """
        self.restore()
        loss, gram = self.loss, self.loss.sums.gram
        half = np.sqrt(loss.spread(self.weights))
        images = loss.workspace.half_solve(np.asfortranarray((half * gram)[loss.active]))
        left = np.maximum(np.diagonal(gram) - np.einsum("ab,ab->b", images, images), 0.0)
        # tr(I − A⁻¹) = tr(SGS(λI + SGS)⁻¹) = Σ_j β_j tr(A⁻¹K_j)/λ
        of_kernels: Array = loss.sums.by_kernel(left) / loss.reg
        return loss.sums.n_samples - 1.0 - float(self.weights @ of_kernels), of_kernels

    def influence_roots(self, rows: Array) -> Array:
        """Return N with ``A⁻¹ = I − NᵀN`` among samples, (a, n).

        `rows` (n, D) are their features times √w. ``A⁻¹ = I − ZS(λI + SGS)⁻¹SZᵀ``.
        """
        self.restore()
        loss = self.loss
        scaled = (np.sqrt(loss.spread(self.weights)) * rows.T)[loss.active]
        return loss.workspace.half_solve(np.asfortranarray(scaled))


# -------------------------------------------------------------------------------------------------
# Leaving samples out of a square loss on features, where the features of some samples are known.
#
# The sums G and R include all m samples; S are some of them, with features Z_S and targets H_S,
# and the contribution of the other samples is
#
#     G_o = G − Z_SᵀZ_S,   R_o = R − Z_SᵀH_S
#
# The others act on S like a prior: by block elimination of ``A = I + ZBZᵀ/λ``, with
# ``C = S(λI + SG_oS)⁻¹S`` (here S is diag(√β)),
#
#     (A⁻¹)_SS = Ã⁻¹,   Ã = I + Z_S C Z_Sᵀ
#     U_S      = Ã⁻¹(H_S − Z_S C R_o)
#     (A⁻¹Z)_S = Ã⁻¹ Z_S (I − C G_o)
#
# which is all that the formulas of :mod:`.left_out` need. Ã is never nearer to singular than the
# identity, so no digits are lost where the features almost interpolate the samples. If S has all
# samples, G_o = 0, ``C = B/λ`` and Ã = A.
#
# Small groups of samples left out with fixed kernel weights need few entries of A⁻¹, which the
# factor of ``λI + SGS`` gives without a matrix of the samples (:class:`SingleRows`).


class SingleRows(LeavesOut):
    """Samples of a square loss on features, left out by groups with fixed kernel weights.

    Parameters
    ----------
    evaluation : FeatureEvaluation
    features : ndarray of shape (n_rows, D)
        Centred and scaled as those of the loss, without sample weights.
    targets : ndarray of shape (n_rows, c)
        Rows of H.
    sample_weight : ndarray of shape (n_rows,)
    total_weight : float
        Sum of the weights of all samples of the loss.
    """

    def __init__(
        self,
        evaluation: FeatureEvaluation,
        features: Array,
        targets: Array,
        sample_weight: Array,
        total_weight: float,
    ) -> None:
        self.evaluation = evaluation
        self.weights, self.gains = evaluation.weights, evaluation.gains
        self._given = targets, sample_weight, total_weight
        roots = np.sqrt(sample_weight)[:, None]
        self._rows = features * roots
        self._rotated = (targets * roots) @ evaluation.loss.rotation
        self.constant = 1.0
        self._solution = self._rotated - matmul(self._rows, evaluation.solution)

    @property
    def _targets(self) -> Array:
        return self._given[0]

    @property
    def _rotation(self) -> Array:
        return self.evaluation.loss.rotation

    @property
    def _sample_weight(self) -> Array:
        return self._given[1]

    @property
    def _total_weight(self) -> float:
        return self._given[2]

    def inverse_diagonal(self) -> Array:
        half = self.evaluation.influence_roots(self._rows)
        diagonal: Array = 1.0 - np.einsum("ai,ai->i", half, half)
        return diagonal

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        half = self.evaluation.influence_roots(self._rows)
        intercept = np.sqrt(self._intercept_share())
        blocks = []
        for rows in sets:
            members, shares = half[:, rows], intercept[rows]
            influence = np.einsum("agi,agj->gij", members, members)
            blocks.append(
                np.eye(rows.shape[1]) - influence - shares[:, :, None] * shares[:, None, :]
            )
        return blocks

    def inverse(self) -> Array:
        raise NotImplementedError("SingleRows has no inverse among all rows: use PartialLeftOut.")

    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        raise NotImplementedError("The kernel weights are fixed here: use PartialLeftOut.")


class PartialLeftOut(SingleRows):
    """Samples of a square loss on features, left out in folds; kernel weights may respond."""

    def __init__(
        self,
        evaluation: FeatureEvaluation,
        features: Array,
        targets: Array,
        sample_weight: Array,
        total_weight: float,
    ) -> None:
        super().__init__(evaluation, features, targets, sample_weight, total_weight)
        loss, roots = evaluation.loss, np.sqrt(sample_weight)[:, None]
        # A remainder of sums over all samples may be rounding errors, which λ would magnify.
        self._complete = len(features) == loss.sums.n_samples
        self._gram_of_others = np.zeros_like(loss.sums.gram)
        cross_of_others = np.zeros_like(loss.cross)
        if not self._complete:
            self._gram_of_others = loss.sums.gram - self._rows.T @ self._rows
            cross_of_others = loss.cross - self._rows.T @ self._rotated
        self._half = np.sqrt(loss.spread(self.weights))
        self._prior = Workspace(len(loss.sums.gram))
        np.multiply(self._gram_of_others * self._half, self._half.T, out=self._prior.matrix)
        self._prior.diagonal[:] += loss.reg
        if not self._prior.cholesky():
            raise ValueError(
                f"reg={loss.reg:g} is lost in the rounding errors of {loss.sums.n_samples} "
                "samples: raise reg."
            )
        # P with PᵀP = Z_S C Z_Sᵀ.
        self._images = self._whitened(self._rows.T)
        self._workspace = Workspace(len(features))
        self.constant = self._factorize(total_weight, roots)
        expected = self._images.T @ self._whitened(cross_of_others)
        self._solution = self._workspace.solve(np.asfortranarray(self._rotated - expected))

    def _whitened(self, columns: Array) -> Array:
        """Return ``R⁻ᵀS @ columns`` with ``RᵀR = λI + SG_oS``."""
        return self._prior.half_solve(np.asfortranarray(self._half * columns))

    def _factorize(self, total_weight: float, roots: Array) -> float:
        """Put the factor of Ã into the workspace; return the eigenvalue at the constant vector.

        It is raised if possible, for the same reason as in :class:`.SquareLoss`.
        """
        np.matmul(self._images.T, self._images, out=self._workspace.matrix)
        size = float(self._workspace.diagonal.mean())
        lift = size if self._complete and size > LARGE_DIAGONAL else 0.0
        if lift:
            self._workspace.matrix[...] += (lift / total_weight) * (roots @ roots.T)
        self._workspace.diagonal[:] += 1.0
        self._workspace.cholesky()
        return 1.0 + lift

    def sensitivity(self, kernels: Indices) -> tuple[Array, Array]:
        loss, left = self.evaluation.loss, self.evaluation.left
        blocks, width = loss.sums.blocks(), left.shape[1]
        slopes = np.empty((len(self._rows), width, len(kernels)))
        for place, j in enumerate(kernels):
            block = blocks[j]
            images = self._rows[:, block] @ left[block]
            if not self._complete:
                seen = self._whitened(self._gram_of_others[:, block] @ left[block])
                images -= self._images.T @ seen
            slopes[:, :, place] = self._workspace.solve(np.asfortranarray(images)) / loss.reg
        return slopes, self.evaluation.hessian()[np.ix_(kernels, kernels)]

    def inverse_diagonal(self) -> Array:
        return self._workspace.inverse_diagonal()

    def inverse(self) -> Array:
        return self._workspace.inverse()

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        return LeavesOut._blocks(self, sets)
