"""A loss of kernels that are computed when they are needed, all of them in one sweep.

Where few kernels have a weight, F and its inner solution α need only these. All kernels are needed
for the gains,

    g_j(α) ,   j = 1 … n        (½ Σ_k v_kᵀM_jv_k in the letters of :mod:`.program`)

a number per kernel. A sweep computes the kernels block by block, takes the gains of a block, and
drops it: no more than one block per thread is in memory, whatever n is. Since a sweep costs much
more than the gains at one α, those at several are taken in the same one (:meth:`Loss.foresee`) and
kept for a while.

The loss of a block, and that of the kernels with a weight, is the plain one on a stack in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import linalg

from .base import Array, DualPoint, Evaluation, Indices, KernelOperator, Loss, ProblemSpec

# Dual variables whose gains are kept: those of the last rounds, one of which proves the best bound
# and is asked for again at the end. Two numbers per kernel each.
_KEPT = 6


class OnDemandLoss(Loss):
    """The loss `whole`, whose kernels are computed on demand.

    Attributes
    ----------
    n_sweeps : int
        How often all kernels were computed.
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
        """Solve the inner problem of the kernels with a weight; gains follow when asked for."""
        held = np.flatnonzero(weights)
        if self.learns_reg:
            held = np.union1d(held, [0])
        found: Any = OnDemandEvaluation(self, held, self.restricted(held).evaluate(weights[held]))
        return cast("Evaluation", found)

    def within(self, gauge: Any) -> OnDemandLoss:
        part = copy(self)
        part.whole = self.whole.within(gauge)  # type: ignore[assignment]
        return part

    def note(self, evaluation: Any) -> str:
        return self.whole.note(evaluation)

    def prefetch_gains(self, dual: Array) -> None:
        self._prefetched.append(dual)

    def gains_at(self, dual: Array) -> Array:
        return self.swept(dual)[0]

    def swept(self, dual: Array) -> tuple[Array, Array]:
        """Gains of all kernels at some dual variables, and their rounding errors."""
        if dual.tobytes() not in self._known:
            duals = {one.tobytes(): one for one in (dual, *self._prefetched)}
            self._prefetched = []
            found = self._sweep(list(duals.values()))
            self._known.update(zip(duals, found, strict=True))
            for old in list(self._known)[:-_KEPT]:
                del self._known[old]
        return self._known[dual.tobytes()]

    def _sweep(self, duals: list[Array]) -> list[tuple[Array, Array]]:
        found = [(np.empty(self.n_kernels), np.empty(self.n_kernels)) for _ in duals]

        def visit(kernels: Any, positions: Indices) -> None:
            part: Any = self.whole.of_kernels(kernels)
            for dual, (gains, errors) in zip(duals, found, strict=True):
                gains[positions] = part.gains_at(dual)
                errors[positions] = part.gain_errors_at(dual)

        kernels: Any = self.whole.kernels
        kernels.visit(visit)
        self.n_sweeps += 1
        return found

    def dual_point(self, dual: Array) -> DualPoint:
        # All but the gains does not depend on the kernels.
        point = self.restricted(np.arange(1 + self.learns_reg)).dual_point(dual)
        return DualPoint(point.linear, point.quadratic, self.gains_at(dual), point.longest)

    def restricted(self, kernels: Indices) -> Loss:
        return self.whole.restricted(kernels)

    def kernel(self, which: int) -> Array:
        return self.whole.kernel(which)

    def regularization(self, weights: Array) -> float | None:
        return self.whole.regularization(weights)


class OnDemandEvaluation:
    """A loss at weights of which only those of the kernels `held` are not zero.

    All but weights and gains is that of `inner`, the evaluation of these kernels alone. It has
    derivatives with respect to their weights; those of all would be a matrix of all kernels.
    """

    def __init__(self, loss: OnDemandLoss, held: Indices, inner: Evaluation) -> None:
        self._loss, self.held, self.inner = loss, held, inner
        self.weights = np.zeros(loss.n_kernels)
        self.weights[held] = inner.weights
        self._swept: tuple[Array, Array] | None = None

    @property
    def gains(self) -> Array:
        return self._found[0]

    @property
    def gain_errors(self) -> Array:
        return self._found[1]

    @property
    def _found(self) -> tuple[Array, Array]:
        """Gains and their errors, found by a sweep when they are first asked for."""
        if self._swept is None:
            self._swept = self._loss.swept(self.inner.dual)
        return self._swept

    def reassessed(self) -> OnDemandEvaluation:
        """Itself: gains are computed from the kernels, never updated."""
        return self

    def sensitivity(self, kernels: Indices) -> Any:
        """As that of the square loss, of some of the kernels `held`."""
        inner: Any = self.inner
        return inner.sensitivity(np.searchsorted(self.held, kernels))

    def hessian(self) -> Array:
        raise TypeError("A loss of kernels on demand has no Hessian: use its restriction to some.")

    model_hessian = hessian

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)  # while it is being unpickled
        return getattr(self.inner, name)


# -- Large arrays that the evaluations of a loss use one after the other --------------------------
#
# An evaluation needs an m × m matrix (K_β, or the Cholesky factor of a system) and the products
# of every kernel with its solution. Allocating them at each point would cost about as much
# memory traffic as a pass over a kernel, so a loss has one :class:`Workspace`, used by one
# evaluation at a time: the one with the current :class:`Lease`. A new lease ends the one before.
# The evaluation that had it is then `released`, and computes the arrays again if it is asked for
# derivatives.


# Rows of an m × m matrix that are processed at once: 2 MB at m = 1000, about a second-level cache.
_BLOCK_ROWS = 256


class Lease:
    """Held by the evaluation whose arrays are in a workspace, and ended before these change."""

    ended = False


class Workspace:
    """An m × m matrix, and the products (n_kernels, m, n_outputs) that :meth:`multiply` sets."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._lease = Lease()
        self.products: Array | None = None

    @cached_property
    def matrix(self) -> Array:
        """Allocated at its first use: solvers that work by columns have none."""
        return np.empty((self._n_rows, self._n_rows))

    @property
    def diagonal(self) -> Array:
        """The diagonal of `matrix`, as a view that can be written to."""
        return self.matrix.reshape(-1)[:: self._n_rows + 1]

    def lend(self) -> Lease:
        """End the current lease and begin another; call it before anything is overwritten."""
        self._lease.ended = True
        self._lease = Lease()
        return self._lease

    def multiply(self, kernels: KernelOperator, columns: Array, roots: Array | None) -> None:
        """``S K_j S @ columns`` of every kernel into `products`, `roots` (m, 1) being diag S."""
        weighted = columns if roots is None else columns * roots
        self.products = kernels.apply(weighted, out=self.products)
        if roots is not None:
            self.products *= roots

    @property
    def flat_products(self) -> Array:
        """`products` with one row per kernel, output after output."""
        assert self.products is not None, "multiply comes first"
        return self.products.transpose(0, 2, 1).reshape(len(self.products), -1)

    def cholesky(self) -> bool:
        """Replace A in `matrix` by R with A = RᵀR; False if A is not positive definite.

        R is the upper triangle of ``matrix.T``. The transpose of a C-ordered symmetric matrix is
        the same matrix in the order of LAPACK, so nothing is copied.
        """
        _, failed = linalg.lapack.dpotrf(self.matrix.T, lower=0, clean=0, overwrite_a=1)
        # Some versions of LAPACK go on with NaN.
        return not failed and bool(np.isfinite(self.diagonal).all())

    def solve(self, right: Array) -> Array:
        """``A⁻¹ @ right``, with R in place."""
        solution: Array = linalg.lapack.dpotrs(self.matrix.T, right, lower=0)[0]
        return solution

    def half_solve(self, right: Array, *, transposed: bool = True) -> Array:
        """``R⁻ᵀ @ right``, or ``R⁻¹ @ right``, with R in place."""
        solution: Array = linalg.lapack.dtrtrs(
            self.matrix.T, right, lower=0, trans=int(transposed)
        )[0]
        return solution

    def least_eigenvalue(self) -> float:
        """``1/‖A⁻¹‖₁`` by estimate, at most the least eigenvalue of A, with R in place."""
        reciprocal, _ = linalg.lapack.dpocon(self.matrix.T, 1.0, uplo="U")
        return float(reciprocal)

    def inverse_diagonal(self) -> Array:
        """``diag(A⁻¹)``, the row sums of squares of R⁻¹; overwrites R."""
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

    def inverse(self) -> Array:
        """``A⁻¹`` in `matrix`, overwriting R."""
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
    """A loss of `kernels`, with a workspace for its evaluations."""

    kernels: KernelOperator
    workspace: Workspace

    @property
    def on_demand(self) -> bool:
        """Whether kernels are computed when they are needed."""
        return bool(getattr(self.kernels, "on_demand", False))

    def in_sweeps(self) -> Loss:
        return OnDemandLoss(self) if self.on_demand else self

    def kernel(self, which: int) -> Array:
        return self.kernels.kernel(which)

    def restricted(self, kernels: Indices) -> Self:
        return self.of_kernels(self.kernels.select(kernels))

    def of_kernels(self, kernels: KernelOperator) -> Self:
        """The same loss of other kernels of the same samples."""
        part = copy(self)
        part.kernels = kernels
        part.workspace = Workspace(kernels.shape[0])
        return part


class WorkspaceEvaluation(ABC):
    """Base of evaluations whose derivatives are computed from the workspace of their loss."""

    _lease: Lease | None
    #: Whether the regularisation, which is learnt, had to be raised to its least value.
    at_least: bool = False

    @property
    def released(self) -> bool:
        """Whether derivatives have to compute the arrays of this point again."""
        return self._lease is None or self._lease.ended

    def reassessed(self) -> Self:
        """Itself: products are computed from the kernels at every point, never updated."""
        return self

    def release(self) -> None:
        """Give the workspace up; call it before its contents are overwritten."""
        if self._lease is not None:
            self._lease.ended = True

    def restore(self) -> None:
        """Compute the arrays of this point again if they were released."""
        if self.released:
            self._lease = self._refill()

    @abstractmethod
    def _refill(self) -> Lease:
        """Take the workspace and compute the arrays of this point again."""
