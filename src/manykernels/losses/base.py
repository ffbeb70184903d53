"""The interface of a loss: a convex function F of the kernel weights, with derivatives on demand.

``F(β) = max_α D(α, β)`` with D linear in β, so F is convex. Its *gains* ``g_j = −∂F/∂β_j`` are
non-negative because kernels are positive semi-definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .._rounding import ACCUMULATED
from .certificate import Certificate as Certificate

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class KernelOperator(Protocol):
    """What a loss needs of its kernels; :class:`manykernels.KernelStack` provides it."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and kernels."""

    def combine(self, weights: Any, out: Array | None = None) -> Array:
        """``Σ_j weights[j] K_j``."""

    def apply(self, columns: Array, out: Array | None = None) -> Array:
        """``K_j @ columns`` of every kernel, (n_kernels, m, n_columns)."""

    def combine_all(self, weights: Array, outs: list[Array]) -> None:
        """Several weighted sums in one pass, row r of `weights` into ``outs[r]``."""

    def kernel(self, which: int) -> Array:
        """One kernel matrix."""

    def form_errors(self, left: Array, right: Array) -> Array:
        """Estimated rounding errors of ``tr(leftᵀ K_j right)``, (n_kernels,)."""

    def __getitem__(self, key: Any) -> Self:
        """The kernels of some rows and columns."""

    def select(self, kernels: Any) -> Self:
        """Some of the kernels."""


class KernelsOnDemand(KernelOperator, Protocol):
    """Very many kernels, computed when they are needed; ``select`` has them in memory."""

    def visit(self, work: Callable[[KernelOperator, Indices], None]) -> None:
        """Call ``work(kernels, positions)`` for blocks of all kernels, in several threads."""


class ColumnKernels(KernelOperator, Protocol):
    """Kernels of training samples that can be computed a few columns at a time."""

    def apply_columns(self, indices: Indices, coefficients: Array) -> Array:
        """``K_j[:, indices] @ coefficients`` of every kernel, (n_kernels, m, n_columns)."""

    def combine_block(self, weights: Array, indices: Indices) -> Array:
        """``Σ_j weights[j] K_j[indices, indices]``."""


class Evaluation(Protocol):
    """A loss at one point of weight space."""

    @property
    def weights(self) -> Array:
        """β; where the regularisation is learnt, its weight comes first."""

    @property
    def value(self) -> float:
        """F(β), or an upper bound on it that is at most `slack` too large."""

    @property
    def gains(self) -> Array:
        """``−∂F/∂β``, non-negative up to rounding if kernels are positive semi-definite."""

    @property
    def slack(self) -> float:
        """How far `value` may lie above F(β): the gap of the inner problem."""

    @property
    def rounding(self) -> float:
        """Estimated rounding error of `value` and `slack`."""

    @property
    def gain_errors(self) -> Array:
        """Estimated rounding errors of the gains."""

    @property
    def hyperbolic(self) -> bool:
        """Whether the gain of a kernel falls like ``1/x²`` as its own weight x grows."""

    @property
    def dual(self) -> Array:
        """The inner solution α* that attains F, (n_samples, n_outputs)."""

    @property
    def coefficients(self) -> Array:
        """Coefficients of the training samples in the model, (n_samples, n_outputs)."""

    def reassessed(self) -> Evaluation:
        """The same model, with value and gains computed from the kernels instead of by updates."""

    @property
    def released(self) -> bool:
        """Whether derivatives need another inner solve, see :mod:`.workspace`."""

    def hessian(self) -> Array:
        """``∇²F(β)``; takes another inner solve if the evaluation is `released`."""

    def model_hessian(self, gap: float) -> Array:
        """Hessian of the quadratic model that a second-order step minimises; PSD.

        It is ``∇²F``, or the Hessian of an increasing function of F that is closer to quadratic,
        scaled to have the gradient of F; or, where F is not smooth, the Hessian of F smoothed over
        the range in which it may still fall by `gap`.
        """


@dataclass(frozen=True)
class Outline:
    """What is known of a loss before anything is computed.

    Solvers use it to refuse losses that they cannot minimise.

    Attributes
    ----------
    kind : type
        Class of the loss.
    n_samples, n_kernels, n_outputs : int
    learns_reg : bool
        Whether the regularisation is one of the weights.
    on_demand : bool
        Whether kernels are computed when they are needed, see :class:`KernelsOnDemand`.
    """

    kind: type
    n_samples: int
    n_kernels: int
    n_outputs: int
    learns_reg: bool = False
    on_demand: bool = False


@dataclass(frozen=True)
class DualPoint:
    """D of dual variables α, and of their multiples, as a function of the weights.

    ``D(tα, β) = t·linear − t²(quadratic + β·gains) ≤ F(β)``, so any α proves a lower bound on F
    over a whole domain.

    Attributes
    ----------
    linear, quadratic : float
    gains : ndarray of shape (n_kernels,)
    longest : float or None
        Largest t for which tα is feasible; None if t = 1 is the only one.
    """

    linear: float
    quadratic: float
    gains: Array
    longest: float | None = None

    def lower_bound(self, support: Callable[[Array], float]) -> float:
        """``max_t min_{b ∈ B} D(tα, b)``, where `support` is σ_B."""
        quadratic = self.quadratic + support(self.gains)
        scale = 1.0
        if self.longest is not None and quadratic > 0.0:
            scale = float(np.clip(0.5 * self.linear / quadratic, 0.0, self.longest))
        return scale * self.linear - scale**2 * quadratic


class Loss(ABC):
    """A convex function of kernel weights, with all that solvers and estimators need of it."""

    #: Whether the first weight is the regularisation, followed by those of the kernels.
    learns_reg: ClassVar[bool] = False

    @property
    @abstractmethod
    def outline(self) -> Outline:
        """Size and kind of the loss."""

    @property
    def n_kernels(self) -> int:
        """Number of weights, that of the regularisation included."""
        return self.outline.n_kernels

    @abstractmethod
    def evaluate(self, weights: Array) -> Evaluation:
        """Solve the inner problem at `weights`."""

    @abstractmethod
    def dual_point(self, dual: Array) -> DualPoint:
        """D at any dual variables, laid out as :attr:`Evaluation.dual`; one pass over the kernels.

        Variables that are not feasible are replaced by feasible ones close to them.
        """

    def gains_at(self, dual: Array) -> Array:
        """``g(α)`` of every kernel at any dual variables; one pass over the kernels."""
        return self.dual_point(dual).gains

    def foresee(self, dual: Array) -> None:  # noqa: B027
        """Say that gains at `dual` may be wanted soon: some losses find them on the way."""

    def within(self, gauge: Callable[[Array], float]) -> Loss:
        """The loss with weights of a domain, whose gauge is at most one there.

        A loss that has to raise a weight then scales all of them, so that they stay in the domain.
        """
        return self

    def in_sweeps(self) -> Loss:
        """The loss itself or, if its kernels are on demand, one that sweeps over them."""
        return self

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """The lower bound that dual variables prove for F over a domain B; `support` is σ_B."""
        return self.dual_point(dual).lower_bound(support)

    @abstractmethod
    def restricted(self, kernels: Indices) -> Loss:
        """The same loss of some of the kernels, as if the others had weight zero."""

    @abstractmethod
    def kernel(self, which: int) -> Array:
        """The matrix that a weight multiplies."""

    def kernel_weights(self, weights: Array) -> Array:
        """The entries of the kernels in `weights`, or in any array with an entry per weight."""
        return weights[1:] if self.learns_reg else weights

    def note(self, evaluation: Any) -> str:
        """What users should know of the weights of an evaluation; usually nothing."""
        return ""

    def regularization(self, weights: Array) -> float | None:
        """λ, given or learnt, or a learnt 1/C; None where C is given (it may vary by sample)."""
        return None

    def coarse(self) -> Loss | None:
        """A much cheaper loss with a nearby minimiser, or None if it would not save time."""
        return None


def nearly_definite(hessian: Array) -> Array:
    """`hessian` with its rounding error added to the diagonal, in place.

    Solvers of quadratic programs refuse the slightly negative eigenvalues that rounding leaves.
    """
    hessian.flat[:: len(hessian) + 1] += ACCUMULATED * np.trace(hessian)
    return hessian
