"""Support vector machines solved a few variables at a time, while their weights move.

In the notation of :mod:`manykernels.losses.box`: products ``K_j v_k``, kept for every kernel and
output, give the slopes ``c − K_βv − r∘v`` and the gains at any weights, so weights may change from
one step to the next. A visit chooses a working set W of the variables of one output and goes on
with the program of :mod:`manykernels.smo.box` restricted to them, the others held,

    max_x  (c − K_βv)_W·x + x·(K_β)_WW v_W − e Σ|x_i| − ½ xᵀ(K_β + diag r)_WW x,   Σ x_i = Σ_W v_i

(Joachims 1999), and the products follow with the columns of the variables that have moved: no
matrix is larger than |W|×|W|. In W are the variables that violate the conditions of the optimum
most, as many of the largest up as of the smallest down, and up to half of it is what was free in
the last set of that output: without these its work would be undone. With W all variables, few pair
steps make a visit, so that the weights need not wait for the machine; with fewer, the columns of
what moves cost more than steps, and many make one.

Kernels by columns (:class:`~manykernels.kernels.streamed.StreamedKernels`) keep panels of columns
that come again in the same company. Variables which move for the first time, at most 64 of them,
form a strip and stay together: those that never move, most of them, have no columns computed.

Whatever v is, ``D(v, β) ≤ F(β) ≤ P(v, β)``, and both cost inner products only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..smo.box import Ascent
from ..smo.face import Indices
from .base import Array
from .box import BoxLoss, BoxPoint
from .inexact import ColumnKernels

_STRIP = 64
_STEPS_OF_A_SET = 20
_PART_OF_VIOLATION = 1e-2
_ROUNDING = 1e-14


class BoxAscent:
    """v of every output of a loss, improved set by set.

    Parameters
    ----------
    loss : BoxLoss
        With regularisation that does not depend on the weights.
    working_set : int
        Most variables of a visit.

    Attributes
    ----------
    dual : ndarray of shape (m, n_outputs)
        v, feasible.
    products : ndarray of shape (n_kernels, m, n_outputs)
        ``K_j v``.
    n_steps : int
        Pair steps taken.
    """

    def __init__(self, loss: BoxLoss, working_set: int) -> None:
        self._loss = loss
        self._kernels: ColumnKernels = loss.kernels  # type: ignore[assignment]
        m, _, n = loss.kernels.shape
        self._size = min(m, max(2, working_set))
        self._whole: Array | None = None
        self._strips: list[Indices] = []
        self._strip_of = np.full(m, -1)
        self.dual = np.zeros((m, len(loss.problems)))
        self.products = np.zeros((n, m, len(loss.problems)))
        self.n_steps = 0
        self._free = [np.empty(0, dtype=np.intp) for _ in loss.problems]
        for k, problem in enumerate(loss.problems):
            self._move(k, np.arange(m), problem.feasible(np.zeros(m)))

    def point(self, weights: Array) -> InexactBoxPoint:
        """What v proves at some weights."""
        return InexactBoxPoint.of(self._loss, weights, self.dual, self.products, self.n_steps)

    def visit_all(self, weights: Array) -> bool:
        """Raise D by variables of every output in turn, at these weights; False if none moves."""
        if self._size == len(self.dual):
            # All rows, hence no more than a working set.
            self._whole = self._kernels.combine(weights, out=self._whole)
        moved = [self._visit(k, weights) for k in range(self.dual.shape[1])]
        return any(moved)

    def _visit(self, k: int, weights: Array) -> bool:
        problem, v = self._loss.problems[k], self.dual[:, k]
        f = weights @ self.products[:, :, k]
        up, down = problem.slopes(v, f)
        violation = float(up.max() - down.min())
        if violation <= _ROUNDING * float(np.abs(problem.linear).max() + np.abs(f).max()):
            return False
        rows = self._working_set(k, up, down)
        matrix = self._whole
        if matrix is None:
            matrix = self._kernels.combine_block(weights, rows)
        own = v[rows]
        ascent = Ascent(
            matrix, problem.restricted(rows, v, problem.linear[rows] - f[rows] + matrix @ own), own
        )
        goal = _PART_OF_VIOLATION * violation
        ascent.run(goal, len(rows) if len(rows) == len(v) else _STEPS_OF_A_SET * len(rows))
        if ascent.violation > goal:
            # Pair steps crawl where kernels are close to singular.
            ascent.polish()
        self.n_steps += ascent.n_steps
        self._free[k] = rows[problem.free(v)[rows] | ascent.problem.free(ascent.v)]
        return self._move(k, rows, ascent.v)

    def _working_set(self, k: int, up: Array, down: Array) -> Indices:
        m = len(up)
        if self._size == m:
            return np.arange(m)
        kept = self._free[k][: self._size // 2]
        up, down = up.copy(), down.copy()
        up[kept], down[kept] = -np.inf, np.inf
        half = (self._size - len(kept)) // 2
        # At the optimum no up is above any down; first those that are above the most.
        rising = np.argpartition(-up, half)[:half]
        down[rising] = np.inf
        falling = np.argpartition(down, half)[:half]
        return np.sort(np.concatenate([kept, rising, falling]))

    def _move(self, k: int, rows: Indices, v: Array) -> bool:
        """Set variables of output k, and let the products follow."""
        step = np.zeros(len(self.dual))
        step[rows] = v - self.dual[rows, k]
        self.dual[rows, k] = v
        changed = np.flatnonzero(step)
        self._enlist(changed[self._strip_of[changed] < 0])
        for strip in np.unique(self._strip_of[changed]):
            columns = self._strips[strip]
            change = self._kernels.apply_columns(columns, step[columns, None])
            self.products[:, :, k] += change[:, :, 0]
        return len(changed) > 0

    def _enlist(self, new: Indices) -> None:
        for start in range(0, len(new), _STRIP):
            strip = new[start : start + _STRIP]
            self._strip_of[strip] = len(self._strips)
            self._strips.append(strip)


@dataclass
class InexactBoxPoint(BoxPoint):
    """What machines that are not solved exactly prove at some weights."""

    @classmethod
    def of(
        cls, loss: BoxLoss, weights: Array, dual: Array, products: Array, n_steps: int = 0
    ) -> InexactBoxPoint:
        """P, D and gains of `dual` (m, n_outputs) from its products (n_kernels, m, n_outputs)."""
        combined = np.tensordot(weights, products, 1)
        solutions = [
            problem.solution(dual[:, k].copy(), np.ascontiguousarray(combined[:, k]), n_steps)
            for k, problem in enumerate(loss.programs(weights))
        ]
        gains = 0.5 * np.einsum("jmk,mk->j", products, dual)
        return cls(weights, gains, solutions, loss)

    def reassessed(self) -> InexactBoxPoint:
        """With products of one more pass over the kernels, for those that steps have added up."""
        dual = self.dual
        n_steps = self.solutions[0].n_steps
        return self.of(self._loss, self.weights, dual, self._loss.products(dual), n_steps)

    def hessian(self) -> Array:
        """``∇²F`` of the machines solved exactly, which takes a whole matrix."""
        return self._loss.evaluate(self.weights).hessian()

    def model_hessian(self, gap: float) -> Array:
        """As :meth:`hessian`, smoothed."""
        return self._loss.evaluate(self.weights).model_hessian(gap)
