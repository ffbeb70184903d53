"""The dual program of a loss, for methods that solve for machine and weights at once.

Every loss here whose inner problem is a quadratic program is, with one column v_k per output,

    F(β) = max_v  Σ_k {c_k·v_k − e_k Σ_i|v_ik| − ½ Σ_i r_ik v_ik²} − ½ Σ_j β_j Σ_k v_kᵀM_jv_k
           s.t.   l ≤ v ≤ u,   Σ_i v_ik = s_k

Support vector machines are written in this form in :mod:`manykernels.smo.box`, with ``M_j = K_j``.
The square loss ``max_U 2 tr(HᵀU) − tr(UᵀA U)`` with ``A = r I + Σ_j β_j M_j`` takes it for
``v = √2 U``, ``c = √2 H``, with neither bounds nor totals. For any feasible v

    Q(v) − σ_B(g) ≤ min_B F,    g_j = ½ Σ_k v_kᵀM_jv_k

Q being the first sum: D is linear in β. Where totals are zero v may be scaled, since l ≤ 0 ≤ u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np

from ..smo.program import BoxProblem
from .base import Array, Evaluation, Outline


@dataclass(frozen=True)
class DualProgram:
    """All of the program but the M_j; see the module.

    Parameters
    ----------
    linear, ridge, lower, upper : ndarray of shape (m, n_outputs)
        c, r, l and u.
    widths : ndarray of shape (n_outputs,)
        e.
    totals : ndarray of shape (n_outputs,) or None
        s, or None if sums are free.
    """

    linear: Array
    ridge: Array
    lower: Array
    upper: Array
    widths: Array
    totals: Array | None

    @classmethod
    def of(cls, problems: list[BoxProblem]) -> Self:
        """Of machines that share their weights."""
        return cls(
            linear=np.column_stack([problem.linear for problem in problems]),
            ridge=np.column_stack([problem.ridge for problem in problems]),
            lower=np.column_stack([problem.lower for problem in problems]),
            upper=np.column_stack([problem.upper for problem in problems]),
            widths=np.array([problem.width for problem in problems]),
            totals=np.array([problem.total for problem in problems]),
        )

    @classmethod
    def free(cls, linear: Array, ridge: float) -> Self:
        """Without bounds and totals."""
        far = np.full_like(linear, np.inf)
        widths = np.zeros(linear.shape[1])
        return cls(linear, np.full_like(linear, ridge), -far, far, widths, None)

    def feasible(self, v: Array) -> Array:
        """A feasible point close to v."""
        if self.totals is None:
            return np.clip(v, self.lower, self.upper)
        columns = [
            BoxProblem(
                self.linear[:, k],
                self.lower[:, k],
                self.upper[:, k],
                self.ridge[:, k],
                total=float(self.totals[k]),
            ).feasible(v[:, k])
            for k in range(v.shape[1])
        ]
        return np.column_stack(columns)

    def lower_bound(self, v: Array, products: Array, support: Callable[[Array], float]) -> float:
        """What a feasible v, scaled at its best, proves of the minimum over a domain.

        `products` are ``M_j v``, (n_kernels, m, n_outputs), `support` is σ_B.
        """
        linear = float(np.sum(self.linear * v) - np.sum(self.widths * np.abs(v)))
        gains = 0.5 * np.einsum("jmk,mk->j", products, v)
        quadratic = 0.5 * float(np.sum(self.ridge * v**2)) + support(gains)
        scale = 1.0
        if quadratic > 0.0 and (self.totals is None or not self.totals.any()):
            scale = float(np.clip(0.5 * linear / quadratic, 0.0, self._longest(v)))
        return scale * linear - scale**2 * quadratic

    def _longest(self, v: Array) -> float:
        """The largest factor of v that leaves it within the bounds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(v > 0.0, self.upper / v, self.lower / v)
        return float(np.min(factors, where=v != 0.0, initial=np.inf))


@runtime_checkable
class HasDualProgram(Protocol):
    """A loss that can be written as one program."""

    @property
    def n_kernels(self) -> int: ...

    @property
    def outline(self) -> Outline: ...

    def evaluate(self, weights: Array) -> Evaluation: ...

    def dual_program(self) -> DualProgram: ...

    def dual_of(self, v: Array) -> Array:
        """Dual variables, as an evaluation has them, of a v of the program."""
        ...

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """What dual variables prove of the minimum over a domain."""
        ...

    def kernel(self, which: int) -> Array:
        """M_j."""
        ...

    def products(self, dual: Array, /) -> Array:
        """``M_j v`` of every kernel, (n_kernels, m, n_outputs)."""
        ...
