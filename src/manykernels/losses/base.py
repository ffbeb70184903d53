"""What a loss is: a convex function F of the kernel weights, with derivatives on demand.

``F(β) = max_α D(α, β)`` with D linear in β, so F is convex, and because kernels are positive
semi-definite its *gains* ``g_j = −∂F/∂β_j`` are non-negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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

    def form_errors(self, left: Array, right: Array) -> Array:
        """Rounding errors to be expected of ``tr(leftᵀ K_j right)``, (n_kernels,)."""
        ...

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
        """``−∂F/∂β``, non-negative but for rounding if kernels are positive semi-definite."""
        ...

    @property
    def slack(self) -> float:
        """How far `value` may lie above F(β): the inner gap, zero if solved exactly."""
        ...

    @property
    def rounding(self) -> float:
        """Estimated rounding error of `value` and `slack`."""
        ...

    @property
    def gain_errors(self) -> Array:
        """Estimated rounding errors of the gains."""
        ...

    @property
    def hyperbolic(self) -> bool:
        """Whether gains fall like ``1/x²`` as a weight x grows, others held."""
        ...

    @property
    def dual(self) -> Array:
        """The inner solution α* that attains F, (n_samples, n_outputs)."""
        ...

    def reassessed(self) -> Evaluation:
        """The same model, judged by products fresh from the kernels; itself if they are."""
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

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """What dual variables, as an evaluation has them, prove of the minimum over a domain.

        From products fresh from the kernels, whatever the variables; `support` is σ_B.
        """
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
        F at the weights found, as the model found attains it.
    dual : float
        A lower bound on F over the whole weight domain.
    gap : float
        ``primal − dual``, never negative beyond rounding.
    tol : float
        The relative gap asked for.
    rounding : float
        Estimated rounding error of `gap`.
    dual_point : ndarray of shape (n_samples, n_outputs) or None
        Dual variables α that prove `dual`, ``D(α, b) ≥ dual`` for all weights b: those of the
        model, or where F has a kink a mixture of others.

    Examples
    --------
    >>> from manykernels.losses import Certificate
    >>> Certificate(primal=2.0, dual=1.9999999, gap=1e-7, tol=1e-6).status
    'certified'
    >>> Certificate(primal=2.0, dual=2.0, gap=0.0, tol=1e-6, rounding=1e-3).status
    'limited by rounding'
    """

    primal: float
    dual: float
    gap: float
    tol: float
    rounding: float = 0.0
    dual_point: Array | None = field(default=None, repr=False, compare=False)

    @property
    def rel_gap(self) -> float:
        """``gap / |primal|``."""
        return self._relative(self.gap)

    @property
    def rel_rounding(self) -> float:
        """``rounding / |primal|``."""
        return self._relative(self.rounding)

    def _relative(self, size: float) -> float:
        return size / abs(self.primal) if self.primal else size

    @property
    def converged(self) -> bool:
        """Whether both the relative gap and its rounding error are within `tol`."""
        return self.rel_gap <= self.tol and self.rel_rounding <= self.tol

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing left to gain: the gap is within `tol`, or it is rounding."""
        return self.gap <= max(self.tol * abs(self.primal), self.rounding) or self.converged

    @property
    def status(self) -> str:
        """ "certified", "limited by rounding" or "stopped"."""
        if self.converged:
            return "certified"
        limited = self.gap <= self.tol * abs(self.primal) + self.rounding
        return "limited by rounding" if limited else "stopped"

    @property
    def message(self) -> str:
        """The status in a sentence."""
        told = self.rounding < abs(self.primal) or self.status != "limited by rounding"
        return _MESSAGES[self.status if told else "lost"].format(self)


_MESSAGES = {
    "certified": "The objective is at most {0.rel_gap:.1e} of itself above the optimum, within "
    "tol={0.tol:g}.",
    "limited by rounding": "The relative gap {0.rel_gap:.1e} has a rounding error of up to "
    "{0.rel_rounding:.1e}, more than tol={0.tol:g}: how far the weights are from optimal cannot "
    "be told. Raise reg (or lower C), centre and scale the data behind the kernels, or raise tol.",
    "lost": "The objective {0.primal:.1e} is lost in rounding errors of up to {0.rounding:.1e}: "
    "how far the weights are from optimal cannot be told. Raise reg (or lower C), centre and "
    "scale the data behind the kernels, or use others.",
    "stopped": "The relative gap is {0.rel_gap:.1e}, above tol={0.tol:g}: the weights are at most "
    "that far from optimal.",
}
