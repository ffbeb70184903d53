"""Support vector machines solved a few variables at a time, while the kernel weights change.

In the notation of :mod:`manykernels.losses.box`: the products ``K_j v_k``, kept for every kernel
and output, give the slopes ``c − K_βv − r∘v`` and the gains at any weights, so the weights may
change from one step to the next. A visit chooses a working set W of the variables of one output
and takes steps on the program of :mod:`manykernels.smo.box` in them, the others held:

    max_x  (c − K_βv)_W·x + x·(K_β)_WW v_W − e Σ|x_i| − ½ xᵀ(K_β + diag r)_WW x,   Σ x_i = Σ_W v_i

(Joachims 1999). Then it updates the products by the columns of the variables that have moved, so
no matrix is larger than |W|×|W|. W holds the variables that violate the optimality conditions
most, as many with the largest up as with the smallest down. Up to half of W are variables that
were free in the last working set of that output: holding these would undo its work. If W is all
variables, a visit takes few pair steps, so that the weights are updated often; if not, the columns
of the variables that move cost more than the steps, and a visit takes many.

Kernels by columns (:class:`~manykernels.kernels.streamed.StreamedKernels`) cache panels of columns
that are requested together repeatedly. So variables that move for the first time are grouped into
strips, which stay together. Most variables never move, and their columns are never computed.

Any v gives the bounds ``D(v, β) ≤ F(β) ≤ P(v, β)`` from the products alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._rounding import ROUNDING
from ..smo.box import Ascent
from .base import Array, ColumnKernels, Indices
from .box import BoxLoss, BoxPoint
from .program import gains_of

# Largest number of variables in a strip: enough for fast matrix products, and few enough that
# hardly any columns are computed for variables that do not move.
_STRIP = 64
# Limit on pair steps of a visit, per variable of a working set that is not all variables. Measured
# at m = 700 with sets of 100: 35 rounds of visits on average with 1, 22 with 5, 20 with 20.
_STEPS_OF_A_SET = 20
# A visit ends when the violation has fallen to this share of what it was. More precision would be
# lost when the weights and the variables outside W move. In the same problems: 28 rounds at 0.3,
# 20 at this value, 18 at a tenth of it, which takes as long.
_SHARE_OF_VIOLATION = 1e-2


class BoxAscent:
    """Feasible v of every output in `dual`, improved one working set after the other.

    `products` are ``K_j v``, (n_kernels, m, n_outputs), and `working_set` is the largest size of
    a working set. The regularisation of `loss` must not depend on the weights.
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
        """The bounds that v proves at some weights."""
        return InexactBoxPoint.of(self._loss, weights, self.dual, self.products, self.n_steps)

    def visit_all(self, weights: Array) -> bool:
        """One visit to every output at these weights; False if no variable moves."""
        if self._size == len(self.dual):
            self._whole = self._kernels.combine(weights, out=self._whole)
        moved = [self._visit(k, weights) for k in range(self.dual.shape[1])]
        return any(moved)

    def _visit(self, k: int, weights: Array) -> bool:
        problem, v = self._loss.problems[k], self.dual[:, k]
        f = weights @ self.products[:, :, k]
        up, down = problem.slopes(v, f)
        violation = float(up.max() - down.min())
        if violation <= ROUNDING * float(np.abs(problem.linear).max() + np.abs(f).max()):
            return False
        rows = self._working_set(k, up, down)
        matrix = self._whole
        if matrix is None:
            matrix = self._kernels.combine_block(weights, rows)
        own = v[rows]
        ascent = Ascent(
            matrix, problem.restricted(rows, v, problem.linear[rows] - f[rows] + matrix @ own), own
        )
        goal = _SHARE_OF_VIOLATION * violation
        ascent.run(goal, len(rows) if len(rows) == len(v) else _STEPS_OF_A_SET * len(rows))
        if ascent.violation > goal:
            # Pair steps converge slowly where kernels are close to singular.
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
        # At the optimum no up is above any down; these violate that most.
        rising = np.argpartition(-up, half)[:half]
        down[rising] = np.inf
        falling = np.argpartition(down, half)[:half]
        return np.sort(np.concatenate([kept, rising, falling]))

    def _move(self, k: int, rows: Indices, v: Array) -> bool:
        """Set variables of output k and update the products; False if nothing has changed."""
        step = np.zeros(len(self.dual))
        step[rows] = v - self.dual[rows, k]
        self.dual[rows, k] = v
        changed = np.flatnonzero(step)
        new = changed[self._strip_of[changed] < 0]
        for start in range(0, len(new), _STRIP):
            strip = new[start : start + _STRIP]
            self._strip_of[strip] = len(self._strips)
            self._strips.append(strip)
        for k_strip in np.unique(self._strip_of[changed]):
            columns = self._strips[k_strip]
            change = self._kernels.apply_columns(columns, step[columns, None])
            self.products[:, :, k] += change[:, :, 0]
        return len(changed) > 0


@dataclass
class InexactBoxPoint(BoxPoint):
    """The bounds that machines prove at some weights, not solved to a tolerance."""

    #: No matrix of all samples exists, so derivatives need an inner solve.
    released = True

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
        return cls(weights, gains_of(dual, products), solutions, loss)

    def reassessed(self) -> InexactBoxPoint:
        """The same v, with products from one more pass over the kernels."""
        n_steps = self.solutions[0].n_steps
        programs = zip(self._loss.programs(self.weights), self.dual.T, strict=True)
        dual = np.column_stack([problem.balanced(v) for problem, v in programs])
        return self.of(self._loss, self.weights, dual, self._loss.products(dual), n_steps)

    def hessian(self) -> Array:
        """``∇²F`` of the machines, which are solved to the tolerance of the loss for it."""
        return self._loss.evaluate(self.weights).hessian()

    def model_hessian(self, gap: float) -> Array:
        """As :meth:`.BoxEvaluation.model_hessian`, at the same cost as :meth:`hessian`."""
        return self._loss.evaluate(self.weights).model_hessian(gap)
