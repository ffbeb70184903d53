"""Square loss without a factorisation: its dual, solved block by block, and the bounds it proves.

In the notation of :mod:`manykernels.losses.square` with ``α = 2U``, F(β) is the largest value of

    D(U, β) = 2 tr(HᵀU) − tr(UᵀA U),   A = I + K_β/λ

over U (Yan 2012 (24) after its substitutions). The maximum over a block S of samples, the others
fixed, is reached by the step

    Δ = A_SS⁻¹ R_S,   R = H − A U

(Keerthi and Shevade 2003 for two samples; Yan 2012, section 2.3.1). It needs the columns of S: the
products ``V_j = K_jU``, kept for every kernel, change by ``K_j[:, S]Δ``. They give residual and
objective at any weights, so the weights may change from block to block. V_j is linear in U, so
after each sweep over all blocks D is maximised over the span of the changes of the last few sweeps
at the cost of inner products (with fixed weights, this makes the sweeps a method of conjugate
directions).

For any U, the discriminant with coefficients U/λ has the primal value

    P(U, β) = ‖H − K_βU/λ‖² + tr(UᵀK_βU)/λ ≥ F(β) ≥ D(U, β),   P − D = ‖R‖²

so with gains ``g_j = tr(UᵀK_jU)/λ`` the minimum of F over the domain B is at least that of D(U, b)
over b in B, ``D(U, β) − (σ_B(g) − β·g)``. Where A is far from the identity, the U that is best for
D is poor for P, so P is taken at the U that minimises it over the same span.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy import linalg

from .base import Array, ColumnKernels, Indices
from .left_out import LeftOut
from .square import NotPositiveDefiniteError, SquareEvaluation, SquareLoss

# After a sweep D is maximised over the span of the changes of at most this many last sweeps, with
# at most this many columns. Each sweep kept takes the memory of the products of every kernel; the
# small linear systems cost little. Two sweeps instead of one save a fifth where many are needed.
_MOST_SWEEPS_KEPT = 8
_MOST_DIRECTIONS = 64
# Strips of a block, and minimum samples of one: narrow panels are slow to compute. Sweeps of 8
# problems at p = 2: 48, 44, 42, 42 with 4, 8, 16, 32 strips of blocks of 160 samples; blocks
# of 40: 93 and 80 with 2 and the 5 allowed, 76 and 77 with 10 and 16.
_STRIPS_PER_BLOCK = 16
_LEAST_STRIP = 8
#: Up to this many rows a factorisation for the leave-one-out outputs takes seconds.
EXACT_ROWS = 3000
# Random vectors for the trace of A⁻¹, whose relative standard error is √(2/(probes · tr A⁻¹)) at
# most: 2 % where the trace is a third of 3000 rows. Sweeps need not be more exact than that: they
# end at this relative error, or after this many.
_N_PROBES = 4
_TRACE_TOL = 1e-2
_TRACE_SWEEPS = 8


class BlockAscent:
    """`solution` U with ``A(β) U ≈ H`` and its `products`, improved block by block.

    `targets` are H with sample weights applied, `roots` (m, 1) the square roots of the weights. A
    block has at most `block_size` samples, and blocks are drawn anew for each sweep.
    """

    def __init__(
        self,
        kernels: ColumnKernels,
        targets: Array,
        reg: float,
        roots: Array | None,
        block_size: int,
        seed: int = 0,
    ) -> None:
        self.kernels = kernels
        self.targets = targets
        self.reg = reg
        self.roots = roots
        self.block_size = block_size
        self._rng = np.random.default_rng(seed)
        # Blocks drawn anew for each sweep converge faster than fixed ones, but kernels can cache
        # only panels of columns that are requested together again, so blocks consist of strips.
        per_block = max(2, min(_STRIPS_PER_BLOCK, block_size // _LEAST_STRIP))
        n_strips = -(-len(targets) // max(1, block_size // per_block))
        shuffled = self._rng.permutation(len(targets))
        self._strips = [np.sort(strip) for strip in np.array_split(shuffled, n_strips)]
        self.solution: Array = np.zeros_like(targets)
        self.products: Array = np.zeros((kernels.shape[2], *targets.shape))
        self._n_kept = min(_MOST_SWEEPS_KEPT, max(1, _MOST_DIRECTIONS // targets.shape[1]))
        self._directions: list[tuple[Array, Array]] = []
        self._origin = self.solution, self.products

    @classmethod
    def of(cls, loss: SquareLoss, block_size: int, seed: int = 0) -> BlockAscent:
        """Return the ascent for the targets of a loss."""
        kernels: ColumnKernels = loss.kernels  # type: ignore[assignment]
        return cls(kernels, loss.rotated_targets, loss.reg, loss.roots, block_size, seed)

    def order(self) -> list[list[Indices]]:
        """Return the blocks of a new sweep, each as a list of strips."""
        self._origin = self.solution.copy(), self.products.copy()
        shuffled = [self._strips[k] for k in self._rng.permutation(len(self._strips))]
        longest = max(map(len, shuffled))
        n_together = max(1, self.block_size // longest)
        return [shuffled[k : k + n_together] for k in range(0, len(shuffled), n_together)]

    def visit(self, strips: list[Indices], weights: Array) -> None:
        """Maximise D over the samples of one block."""
        block = np.concatenate(strips)
        matrix = self.kernels.combine_block(weights / self.reg, block)
        roots = None if self.roots is None else self.roots[block]
        if roots is not None:
            matrix *= roots
            matrix *= roots.T
        matrix.reshape(-1)[:: len(block) + 1] += 1.0
        residual = self.targets[block] - self.solution[block]
        residual -= np.tensordot(weights / self.reg, self.products[:, block], 1)
        _, step, failed = linalg.lapack.dposv(matrix.T, residual, lower=0, overwrite_a=1)
        if failed:
            raise NotPositiveDefiniteError(
                f"I + K/reg is not positive definite at reg={self.reg:g}: the combined kernel "
                "has eigenvalues below -reg. Raise reg, or leave out the kernels that are not "
                "positive semi-definite."
            )
        self.solution[block] += step
        ends = np.cumsum([len(strip) for strip in strips])[:-1]
        for strip, change_of_strip in zip(strips, np.split(step, ends), strict=True):
            if self.roots is None:
                self.products += self.kernels.apply_columns(strip, change_of_strip)
            else:
                change = self.kernels.apply_columns(strip, self.roots[strip] * change_of_strip)
                self.products += self.roots * change

    def combine_sweeps(self, weights: Array) -> None:
        """End a sweep: maximise D over the span of its change and those of previous sweeps."""
        solution, products = self._origin
        change = self.solution - solution, self.products - products
        self._directions = [*self._directions, change][-self._n_kept :]
        span, mapped = self._span(weights)
        best = _solved(span.T @ (span + mapped), span.T @ self.residual(weights))
        for coefficients, (direction, moved) in zip(
            np.split(best, len(self._directions)), self._directions, strict=True
        ):
            self.solution = self.solution + direction @ coefficients
            self.products = self.products + moved @ coefficients
        self._directions[-1] = self.solution - solution, self.products - products

    def sweep(self, weights: Array) -> None:
        """Visit all blocks once at the same weights."""
        for block in self.order():
            self.visit(block, weights)
        self.combine_sweeps(weights)

    def fit(self, weights: Array) -> tuple[Array, Array]:
        """Return U and ``K_βU/λ`` that minimise P over the span of the last sweeps."""
        span, mapped = self._span(weights)
        combined = self._combined(weights, self.products)
        best = _solved(mapped.T @ (span + mapped), mapped.T @ self.residual(weights))
        return self.solution + span @ best, combined + mapped @ best

    def _span(self, weights: Array) -> tuple[Array, Array]:
        """Return the changes of U in the last sweeps, and ``K_β/λ`` times these."""
        span = np.hstack([direction for direction, _ in self._directions])
        mapped = np.hstack([self._combined(weights, moved) for _, moved in self._directions])
        return span, mapped

    def _combined(self, weights: Array, products: Array) -> Array:
        """Return ``Σ_j β_j products_j/λ``."""
        return np.tensordot(weights / self.reg, products, 1)

    def residual(self, weights: Array) -> Array:
        """Return the residual R."""
        return self.targets - self.solution - self._combined(weights, self.products)

    @property
    def gains(self) -> Array:
        """Return the gains ``tr(UᵀK_jU)/λ``."""
        gains: Array = np.einsum("jmc,mc->j", self.products, self.solution) / self.reg
        return gains

    def dual_value(self, weights: Array) -> float:
        """Return the dual value D(U, β)."""
        return float(np.vdot(self.solution, self.targets + self.residual(weights)))


@dataclass(kw_only=True)
class InexactEvaluation(SquareEvaluation):
    """P, gains and slack of the square loss at a point that is solved approximately.

    `value` is P at the U that minimises it; the gains and the D of ``slack = P − D`` belong to
    `sweep_solution`, the U of the sweeps. `block_size` is used for further solves.
    """

    block_size: int
    sweep_solution: Array = field(repr=False)

    @classmethod
    def of(cls, loss: SquareLoss, ascent: BlockAscent, weights: Array) -> InexactEvaluation:
        """Return the evaluation at `weights` of the current solution of `ascent`."""
        solution, combined = ascent.fit(weights)
        value = _primal(loss, solution, combined)
        slack = value - ascent.dual_value(weights)
        size, sweep_solution, gains = ascent.block_size, ascent.solution.copy(), ascent.gains
        return cls(
            weights,
            value,
            gains,
            loss,
            solution,
            slack,
            block_size=size,
            sweep_solution=sweep_solution,
        )

    @property
    def dual(self) -> Array:
        """α = 2U of the sweeps, whose D bounds F from below."""
        return self._loss.dual_of(np.sqrt(2.0) * self.sweep_solution)

    @property
    def gain_errors(self) -> Array:
        """The larger of the errors at the two U, of the gains and of P."""
        return np.maximum(super().gain_errors, self._loss.form_errors(self.sweep_solution))

    def reassessed(self) -> Self:
        """Return the evaluation of the same U, with products from one more pass over kernels."""
        loss, targets = self._loss, self._loss.rotated_targets
        width = targets.shape[1]
        products = loss.products(np.hstack([self._solution, self.sweep_solution]))
        combined = np.tensordot(self.weights, products, 1)
        value = _primal(loss, self._solution, combined[:, :width])
        gains = np.einsum("jmc,mc->j", products[:, :, width:], self.sweep_solution)
        residual = targets - self.sweep_solution - combined[:, width:]
        slack = value - float(np.vdot(self.sweep_solution, targets + residual))
        return replace(self, value=value, gains=gains, slack=slack)

    @property
    def factorized(self) -> bool:
        return len(self._solution) <= EXACT_ROWS

    def leave_out(
        self, folds: list[Indices], groups: Indices | None, response: Array | None
    ) -> LeftOut:
        if self.factorized:
            return super().leave_out(folds, groups, response)
        singly = self.leave_one_out(groups, from_mean=True)
        return LeftOut.cross_fitted(singly, folds)

    def _blocks(self, sets: list[Indices]) -> list[Array]:
        if self.factorized:
            return super()._blocks(sets)
        # Rows of a group are equal: A is r on their differences, so that Q_SS is I/r less a
        # matrix of rank one, which the diagonal determines.
        inverse_ridge = 1.0 / self._loss.ridge(self.weights)
        kappa = self._kappa(self.inverse_diagonal())
        shares = np.sqrt(np.maximum(inverse_ridge - kappa, 0.0))
        return [
            inverse_ridge * np.eye(rows.shape[1])
            - shares[rows][:, :, None] * shares[rows][:, None, :]
            for rows in sets
        ]

    def inverse_diagonal(self) -> Array:
        """Return ``diag(A⁻¹)``, exact for few rows; for many, its mean in every entry.

        The mean turns leave-one-out into generalised cross-validation (Golub, Heath and Wahba
        1979). It is estimated from random signs z, ``E zᵀA⁻¹z = tr A⁻¹``, by D with targets z,
        whose error is quadratic in that of the sweeps.
        """
        if self.factorized:
            return super().inverse_diagonal()
        loss, n_rows = self._loss, len(self._solution)
        signs: Array = np.random.default_rng(0).choice([-1.0, 1.0], (n_rows, _N_PROBES))
        kernels: ColumnKernels = loss.kernels  # type: ignore[assignment]
        ascent = BlockAscent(kernels, signs, loss.reg, loss.roots, self.block_size)
        trace = growth = 0.0
        for _ in range(_TRACE_SWEEPS):
            ascent.sweep(self.weights)
            last, growth = growth, ascent.dual_value(self.weights) / _N_PROBES - trace
            trace += growth
            # Further sweeps would add a geometric series, whose sum is small.
            if growth**2 <= _TRACE_TOL * trace * (last - growth):
                break
        return np.full(n_rows, trace / n_rows)


def _primal(loss: SquareLoss, solution: Array, combined: Array) -> float:
    """Return P of a solution U, with ``combined = K_βU/λ``."""
    misfit = loss.rotated_targets - combined
    return float(np.vdot(misfit, misfit) + np.vdot(solution, combined))


def _solved(matrix: Array, right: Array) -> Array:
    """Return the least-squares solution: late sweeps make the system nearly singular."""
    solution: Array = linalg.lstsq(matrix, right)[0]
    return solution
