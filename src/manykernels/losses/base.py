"""What a loss is: a convex function F of the kernel weights, with derivatives on demand.

``F(β) = max_α D(α, β)`` with D linear in β, so F is convex, and because kernels are positive
semi-definite its *gains* ``g_j = −∂F/∂β_j`` are non-negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class KernelOperator(Protocol):
    """What losses need of kernels; :class:`manykernels.KernelStack` is one."""

    @property
    def shape(self) -> tuple[int, int, int]: ...

    def combine(self, weights: Any, out: Array | None = None) -> Array: ...

    def apply(self, columns: Array, out: Array | None = None) -> Array: ...

    def combine_all(self, weights: Array, outs: list[Array]) -> None: ...

    def kernel(self, which: int) -> Array: ...

    def __getitem__(self, key: Any) -> Self: ...

    def select(self, kernels: Any) -> Self: ...


class Evaluation(Protocol):
    """A loss at one point of weight space."""

    @property
    def weights(self) -> Array: ...

    @property
    def value(self) -> float:
        """F(β)."""
        ...

    @property
    def gains(self) -> Array:
        """``−∂F/∂β``, non-negative."""
        ...

    @property
    def slack(self) -> float:
        """How far `value` may lie above F(β): the inner gap, zero if solved exactly."""
        ...

    @property
    def rounding(self) -> float:
        """How large F may be where it is zero but for rounding."""
        ...

    @property
    def hyperbolic(self) -> bool:
        """Whether gains fall like ``1/x²`` as a weight x grows, others held."""
        ...

    @property
    def dual(self) -> Array:
        """The inner solution α* that attains F, (n_samples, n_outputs)."""
        ...

    def hessian(self) -> Array:
        """``∇²F(β)``; cheapest before the loss is evaluated at another point."""
        ...

    def model_hessian(self, gap: float) -> Array:
        """Hessian of the quadratic model that a second-order step minimises; PSD.

        ``∇²F``, or that of an increasing function of F which is closer to quadratic, scaled
        so that its gradient is that of F; or where F has kinks, one that has them smoothed over
        the range in which F may still fall by `gap`.
        """
        ...


@dataclass(frozen=True)
class Outline:
    """What is known of a loss before anything is computed; solvers judge by it.

    Attributes
    ----------
    kind : type
        Class of the loss.
    n_samples, n_kernels, n_outputs : int
    learns_reg : bool
        Whether the regularisation is one of the weights.
    """

    kind: type
    n_samples: int
    n_kernels: int
    n_outputs: int
    learns_reg: bool = False


class Loss(Protocol):
    """A convex function of kernel weights."""

    @property
    def n_kernels(self) -> int: ...

    @property
    def outline(self) -> Outline: ...

    def evaluate(self, weights: Array) -> Evaluation:
        """Solve the inner problem at `weights`."""
        ...

    def gains_at(self, dual: Array) -> Array:
        """``g(α)`` of every kernel at any `dual` α, where ``D(α, β) = c(α) − β·g(α)``.

        One pass over the kernels, without an inner problem. The gains of an evaluation are
        those at its own α.
        """
        ...

    def restricted(self, kernels: NDArray[np.intp]) -> Loss:
        """The same loss of some of the kernels, as if the others had weight zero."""
        ...

    def coarse(self) -> Loss | None:
        """A much cheaper loss with a nearby minimiser, or None if that does not pay."""
        ...


@dataclass(frozen=True)
class Certificate:
    """Proof of how far weights are from the best ones: ``primal − optimum ≤ gap``.

    Attributes
    ----------
    primal : float
        F at the weights found.
    dual : float
        A lower bound on F over the whole weight domain.
    gap : float
        ``primal − dual``, never negative beyond rounding.
    tol : float
        The relative gap asked for.
    rounding : float
        How large `primal` may be where it is zero but for rounding; a gap of that size is none.
    """

    primal: float
    dual: float
    gap: float
    tol: float
    rounding: float = 0.0

    @property
    def rel_gap(self) -> float:
        """``gap / |primal|``."""
        return self.gap / abs(self.primal) if self.primal else self.gap

    @property
    def converged(self) -> bool:
        """Whether `rel_gap` is within `tol`, or `gap` is rounding."""
        return self.rel_gap <= self.tol or self.gap <= self.rounding
