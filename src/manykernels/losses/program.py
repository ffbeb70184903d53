"""The dual program of a loss, for methods that solve for dual variables and weights at once.

Every loss of this package whose inner problem is a quadratic program is, with one column v_k per
output,

    F(β) = max_v  Σ_k {c_k·v_k − e_k Σ_i|v_ik| − ½ Σ_i r_ik v_ik²} − ½ Σ_j β_j Σ_k v_kᵀM_jv_k
           s.t.   l ≤ v ≤ u,   Σ_i v_ik = s_k

Support vector machines are written in this form in :mod:`manykernels.smo.box`, with ``M_j = K_j``.
The square loss ``max_U 2 tr(HᵀU) − tr(UᵀA U)`` with ``A = r I + Σ_j β_j M_j`` takes it for
``v = √2 U``, ``c = √2 H``, with neither bounds nor totals. For any feasible v

    Q(v) − σ_B(g) ≤ min_B F,    g_j = ½ Σ_k v_kᵀM_jv_k

Q being the first sum: D is linear in β. Where totals are zero v may be scaled, since l ≤ 0 ≤ u.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..smo.program import BoxProblem
from .base import Array, DualPoint, Loss


@dataclass(frozen=True)
class DualProgram:
    """All of the program but the M_j: c, r, l and u, (m, n_outputs), and e and s, (n_outputs,).

    `totals` s is None if the sums are free.
    """

    linear: Array
    ridge: Array
    lower: Array
    upper: Array
    widths: Array
    totals: Array | None

    @classmethod
    def of(cls, problems: list[BoxProblem]) -> Self:
        """The program of machines that share their kernel weights."""
        columns = {
            name: np.column_stack([getattr(problem, name) for problem in problems])
            for name in ("linear", "ridge", "lower", "upper")
        }
        widths = np.array([problem.width for problem in problems])
        totals = np.array([problem.total for problem in problems])
        return cls(**columns, widths=widths, totals=totals)

    @classmethod
    def free(cls, linear: Array, ridge: float) -> Self:
        """A program without bounds and totals."""
        infinite = np.full_like(linear, np.inf)
        widths = np.zeros(linear.shape[1])
        return cls(linear, np.full_like(linear, ridge), -infinite, infinite, widths, None)

    def feasible(self, v: Array) -> Array:
        """A feasible point close to v."""
        if self.totals is None:
            return np.clip(v, self.lower, self.upper)
        bounds = zip(self.linear.T, self.lower.T, self.upper.T, self.ridge.T, strict=True)
        columns = [
            BoxProblem(*parts, total=float(total)).feasible(column)
            for parts, total, column in zip(bounds, self.totals, v.T, strict=True)
        ]
        return np.column_stack(columns)

    def point(self, v: Array, products: Array) -> DualPoint:
        """D of a feasible v with ``products = M_j v``, (n_kernels, m, n_outputs)."""
        scalable = self.totals is None or not self.totals.any()
        return DualPoint(
            linear=float(np.sum(self.linear * v) - np.sum(self.widths * np.abs(v))),
            quadratic=0.5 * float(np.sum(self.ridge * v**2)),
            gains=gains_of(v, products),
            longest=self._longest(v) if scalable else None,
        )

    def lower_bound(self, v: Array, products: Array, support: Callable[[Array], float]) -> float:
        """The lower bound on F that the best multiple of a feasible v proves; `support` is σ_B."""
        return self.point(v, products).lower_bound(support)

    def _longest(self, v: Array) -> float:
        """The largest t for which ``t v`` is within the bounds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(v > 0.0, self.upper / v, self.lower / v)
        return float(np.min(factors, where=v != 0.0, initial=np.inf))


class HasDualProgram(Loss):
    """A loss whose inner problem is a quadratic program."""

    @abstractmethod
    def dual_program(self) -> DualProgram:
        """The program in v."""

    @abstractmethod
    def products(self, v: Array, /) -> Array:
        """``M_j v`` of every kernel, (n_kernels, m, n_outputs)."""

    @abstractmethod
    def dual_of(self, v: Array) -> Array:
        """Dual variables, laid out as :attr:`Evaluation.dual`, of a v of the program."""

    @abstractmethod
    def variables_of(self, dual: Array) -> Array:
        """The v of dual variables, the inverse of :meth:`dual_of`."""

    @abstractmethod
    def form_errors(self, v: Array, /) -> Array:
        """Estimated rounding errors of ``Σ_k v_kᵀM_jv_k``, (n_kernels,)."""

    def gain_errors_at(self, dual: Array) -> Array:
        """Estimated rounding errors of the gains at any dual variables."""
        return 0.5 * self.form_errors(self.variables_of(dual))

    def dual_point(self, dual: Array) -> DualPoint:
        program = self.dual_program()
        v = program.feasible(self.variables_of(dual))
        return program.point(v, self.products(v))


def gains_of(v: Array, products: Array) -> Array:
    """``½ Σ_k v_kᵀM_jv_k`` of every kernel, from ``products = M_j v``."""
    gains: Array = 0.5 * np.einsum("jmk,mk->j", products, v)
    return gains
