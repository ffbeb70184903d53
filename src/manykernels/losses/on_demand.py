"""Loss of kernels that are computed on demand, all of them in one sweep.

Where few kernels have a weight, F and its inner solution α need only these. All kernels are needed
for the gains,

    g_j(α) ,   j = 1 … n        (½ Σ_k v_kᵀM_jv_k in the notation of :class:`.DualProgram`)

a number per kernel. A sweep computes a block of kernels and its gains, drops it, and goes on with
the next: at most one block per thread is in memory, for any n. Since a sweep costs much more
than the gains at one α, gains at several α are computed in the same sweep
(:meth:`Loss.prefetch_gains`) and cached.

The loss of a block, and of the kernels with a weight, is the plain one on a stack in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import linalg

from .base import Array, DualPoint, Evaluation, Indices, KernelOperator, Loss, ProblemSpec

# Number of dual variables whose gains are cached: those of the last rounds, one of which proves
# the best bound and is needed again at the end. Each takes two numbers per kernel.
_KEPT = 6


class OnDemandLoss(Loss):
    """The loss `whole` with kernels that are computed on demand.

    Attributes
    ----------
    n_sweeps : int
        Number of sweeps over all kernels.
    """

    def __init__(self, whole: WorkspaceLoss) -> None:
        self.whole = whole
        self.learns_reg = whole.learns_reg  # type: ignore[misc]
        self.n_sweeps = 0
        self._prefetched: list[Array] = []
        self._known: dict[bytes, tuple[Array, Array]] = {}

    @property
    def spec(self) -> ProblemSpec:
        return self.whole.spec

    def evaluate(self, weights: Array) -> Evaluation:
        """Solve the inner problem of the kernels with a weight; gains are computed when needed."""
        held = np.flatnonzero(weights)
        if self.learns_reg:
            held = np.union1d(held, [0])
        inner = self.restricted(held).evaluate(weights[held])
        return cast("Evaluation", OnDemandEvaluation(self, held, inner))

    def within(self, gauge: Callable[[Array], float]) -> OnDemandLoss:
        loss = copy(self)
        loss.whole = self.whole.within(gauge)  # type: ignore[assignment]
        return loss

    def note(self, evaluation: Any) -> str:
        return self.whole.note(evaluation)

    def prefetch_gains(self, dual: Array) -> None:
        self._prefetched.append(dual)

    def gains_at(self, dual: Array) -> Array:
        return self.gains_and_errors(dual)[0]

    def gains_and_errors(self, dual: Array) -> tuple[Array, Array]:
        """Return the gains of all kernels at some dual variables, and their rounding errors."""
        if dual.tobytes() not in self._known:
            duals = {variables.tobytes(): variables for variables in (dual, *self._prefetched)}
            self._prefetched = []
            results = self._sweep(list(duals.values()))
            self._known.update(zip(duals, results, strict=True))
            for old in list(self._known)[:-_KEPT]:
                del self._known[old]
        return self._known[dual.tobytes()]

    def _sweep(self, duals: list[Array]) -> list[tuple[Array, Array]]:
        results = [(np.empty(self.n_kernels), np.empty(self.n_kernels)) for _ in duals]

        def visit(kernels: KernelOperator, positions: Indices) -> None:
            block: Any = self.whole.of_kernels(kernels)
            for dual, (gains, errors) in zip(duals, results, strict=True):
                gains[positions] = block.gains_at(dual)
                errors[positions] = block.gain_errors_at(dual)

        kernels: Any = self.whole.kernels
        kernels.visit(visit)
        self.n_sweeps += 1
        return results

    def dual_point(self, dual: Array) -> DualPoint:
        # Everything but the gains is independent of the kernels.
        point = self.restricted(np.arange(1 + self.learns_reg)).dual_point(dual)
        return DualPoint(point.linear, point.quadratic, self.gains_at(dual), point.longest)

    def restricted(self, kernels: Indices) -> Loss:
        return self.whole.restricted(kernels)

    def kernel(self, which: int) -> Array:
        return self.whole.kernel(which)

    def regularization(self, weights: Array) -> float | None:
        return self.whole.regularization(weights)


class OnDemandEvaluation:
    """Loss at weights that are zero except for the kernels `held`.

    Everything but weights and gains belongs to `inner`, the evaluation of these kernels alone. It
    has derivatives in their weights only, since a Hessian of all kernels would be too large.
    """

    def __init__(self, loss: OnDemandLoss, held: Indices, inner: Evaluation) -> None:
        self._loss, self.held, self.inner = loss, held, inner
        self.weights = np.zeros(loss.n_kernels)
        self.weights[held] = inner.weights
        self._computed: tuple[Array, Array] | None = None

    @property
    def gains(self) -> Array:
        return self._gains_and_errors[0]

    @property
    def gain_errors(self) -> Array:
        return self._gains_and_errors[1]

    @property
    def _gains_and_errors(self) -> tuple[Array, Array]:
        """Gains and their errors, computed by a sweep when first needed."""
        if self._computed is None:
            self._computed = self._loss.gains_and_errors(self.inner.dual)
        return self._computed

    def reassessed(self) -> OnDemandEvaluation:
        """Return self: gains are computed from the kernels, never updated."""
        return self

    def sensitivity(self, kernels: Indices) -> Any:
        """Return the sensitivity of the square loss, for some of the kernels `held`."""
        inner: Any = self.inner
        return inner.sensitivity(np.searchsorted(self.held, kernels))

    def hessian(self) -> Array:
        raise TypeError("A loss of kernels on demand has no Hessian: restrict it to some kernels.")

    model_hessian = hessian

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)  # during unpickling
        return getattr(self.inner, name)


# -- Large arrays shared by the evaluations of a loss ---------------------------------------------
#
# An evaluation needs an m × m matrix (K_β, or the Cholesky factor of a system) and the products
# of every kernel with its solution. Allocating them at each point would cost about as much
# memory traffic as a pass over a kernel, so a loss has one :class:`Workspace`, used by one
# evaluation at a time: the one with the current :class:`Lease`. A new lease ends the previous one.
# Its evaluation is then `released`, and recomputes the arrays if its derivatives are needed.


# Rows of an m × m matrix processed at once: 2 MB at m = 1000, about a second-level cache.
_BLOCK_ROWS = 256


class Lease:
    """Held by the evaluation whose arrays are in a workspace; ended before the arrays change."""

    ended = False


class Workspace:
    """An m × m matrix, and the products (n_kernels, m, n_outputs) that :meth:`multiply` sets."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._lease = Lease()
        self.products: Array | None = None

    @cached_property
    def matrix(self) -> Array:
        """Matrix, allocated at its first use: solvers that work by columns need none."""
        return np.empty((self._n_rows, self._n_rows))

    @property
    def diagonal(self) -> Array:
        """Writable view of the diagonal of `matrix`."""
        return self.matrix.reshape(-1)[:: self._n_rows + 1]

    def lend(self) -> Lease:
        """End the current lease and begin another; call this before overwriting arrays."""
        self._lease.ended = True
        self._lease = Lease()
        return self._lease

    def multiply(self, kernels: KernelOperator, columns: Array, roots: Array | None) -> None:
        """Write ``S K_j S @ columns`` of every kernel into `products`; `roots` is diag S."""
        weighted = columns if roots is None else columns * roots
        self.products = kernels.apply(weighted, out=self.products)
        if roots is not None:
            self.products *= roots

    @property
    def flat_products(self) -> Array:
        """Return `products` with one row per kernel, output after output."""
        assert self.products is not None, "multiply comes first"
        return self.products.transpose(0, 2, 1).reshape(len(self.products), -1)

    def cholesky(self) -> bool:
        """Replace A in `matrix` by R with A = RᵀR; return False if A is not positive definite.

        R is the upper triangle of ``matrix.T``. The transpose of a C-ordered symmetric matrix is
        the same matrix in the order of LAPACK, so nothing is copied.
        """
        _, failed = linalg.lapack.dpotrf(self.matrix.T, lower=0, clean=0, overwrite_a=1)
        # Some versions of LAPACK continue with NaN.
        return not failed and bool(np.isfinite(self.diagonal).all())

    def solve(self, right: Array) -> Array:
        """Return ``A⁻¹ @ right``, with R in place."""
        solution: Array = linalg.lapack.dpotrs(self.matrix.T, right, lower=0)[0]
        return solution

    def half_solve(self, right: Array, *, transposed: bool = True) -> Array:
        """Return ``R⁻ᵀ @ right``, or ``R⁻¹ @ right``, with R in place."""
        solution: Array = linalg.lapack.dtrtrs(
            self.matrix.T, right, lower=0, trans=int(transposed)
        )[0]
        return solution

    def least_eigenvalue(self) -> float:
        """Return an estimate of ``1/‖A⁻¹‖₁``, a lower bound on the least eigenvalue of A."""
        reciprocal, _ = linalg.lapack.dpocon(self.matrix.T, 1.0, uplo="U")
        return float(reciprocal)

    def inverse_diagonal(self) -> Array:
        """Return ``diag(A⁻¹)``, the row sums of squares of R⁻¹; overwrites R."""
        factor = self.matrix
        linalg.lapack.dtrtri(factor.T, lower=0, overwrite_c=1)
        diagonal = np.zeros(len(factor))
        for start in range(0, len(factor), _BLOCK_ROWS):
            # Row k of `factor` holds R⁻¹[i, k] for i ≤ k; entries beyond belong to A.
            rows = factor[start : start + _BLOCK_ROWS]
            stop = start + len(rows)
            diagonal[:start] += np.einsum("ki,ki->i", rows[:, :start], rows[:, :start])
            corner = np.tril(rows[:, start:stop])
            diagonal[start:stop] += np.einsum("ki,ki->i", corner, corner)
        return diagonal

    def inverse_blocks(self, sets: list[Indices]) -> list[Array]:
        """Return ``A⁻¹`` among the members of sets of equal size, (g, s, s); overwrites R."""
        diagonal, places = self.inverse_diagonal(), np.arange(self._n_rows)
        blocks = []
        for rows in sets:
            if rows.shape[1] == 1:
                blocks.append(diagonal[rows][:, :, None])
                continue
            # Columns of `matrix` hold rows of R⁻¹, which begin at the diagonal.
            roots = np.where(places >= rows[:, :, None], self.matrix.T[rows], 0.0)
            blocks.append(roots @ roots.mT)
        return blocks

    def inverse(self) -> Array:
        """Return ``A⁻¹`` in `matrix`, overwriting R."""
        factor = self.matrix
        linalg.lapack.dpotri(factor.T, lower=0, overwrite_c=1)
        # LAPACK fills one triangle: the lower one of the C-ordered `factor`.
        for start in range(0, len(factor), _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, len(factor))
            factor[:start, start:stop] = factor[start:stop, :start].T
            corner = np.tril(factor[start:stop, start:stop])
            factor[start:stop, start:stop] = corner + np.tril(corner, -1).T
        return factor


class WorkspaceLoss(Loss):
    """Loss of `kernels`, with a workspace for its evaluations."""

    kernels: KernelOperator
    workspace: Workspace

    @property
    def on_demand(self) -> bool:
        """Whether kernels are computed on demand."""
        return bool(getattr(self.kernels, "on_demand", False))

    def in_sweeps(self) -> Loss:
        return OnDemandLoss(self) if self.on_demand else self

    def kernel(self, which: int) -> Array:
        return self.kernels.kernel(which)

    def restricted(self, kernels: Indices) -> Self:
        return self.of_kernels(self.kernels.select(kernels))

    def of_kernels(self, kernels: KernelOperator) -> Self:
        """Return the loss of other kernels of the same samples."""
        loss = copy(self)
        loss.kernels = kernels
        loss.workspace = Workspace(kernels.shape[0])
        return loss


class WorkspaceEvaluation(ABC):
    """Base of evaluations whose derivatives are computed from the workspace of their loss."""

    _lease: Lease | None
    #: Whether the learnt regularisation had to be raised to its least value.
    at_least: bool = False

    @property
    def released(self) -> bool:
        """Whether derivatives have to recompute the arrays of this point."""
        return self._lease is None or self._lease.ended

    def reassessed(self) -> Self:
        """Return self: products are computed from the kernels at every point, never updated."""
        return self

    def release(self) -> None:
        """Release the workspace; call this before its contents are overwritten."""
        if self._lease is not None:
            self._lease.ended = True

    def restore(self) -> None:
        """Recompute the arrays of this point if they were released."""
        if self.released:
            self._lease = self._refill()

    @abstractmethod
    def _refill(self) -> Lease:
        """Take the workspace and recompute the arrays of this point."""
