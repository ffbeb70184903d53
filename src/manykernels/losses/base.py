"""Interface of a loss: a convex function F of the kernel weights, with derivatives on demand.

``F(β) = max_α D(α, β)`` with D linear in β, so F is convex. Its *gains* ``g_j = −∂F/∂β_j`` are
non-negative because kernels are positive semi-definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..smo.program import BoxProblem
from ..utils.numerics import ACCUMULATED
from ..utils.storable import storable

# -- Certificates: the duality gap ----------------------------------------------------------------

# Estimates of rounding errors are good to an order of magnitude. A gap within this multiple of the
# estimate cannot be told from a rounding error.
_UNCERTAINTY = 10.0


@storable
@dataclass(frozen=True)
class Certificate:
    """Bound on the distance of weights from the optimum: ``primal − optimum ≤ gap``.

    Attributes
    ----------
    primal : float
        F at the weights of the model.
    dual : float
        Lower bound on F over the whole weight domain.
    gap : float
        ``primal − dual``, negative only by rounding error.
    tol : float
        Requested relative gap.
    rounding : float
        Estimated rounding error of `gap`.
    dual_point : ndarray of shape (n_samples, n_outputs) or None
        Dual variables α that prove `dual`: ``D(α, b) ≥ dual`` for all weights b. They belong to
        the model or, where F is not differentiable, are a convex combination of several.
    note : str
        Further remark on the weights, such as a learnt λ at its least value; it is part of the
        message.

    Examples
    --------
    >>> from manykernels.losses.base import Certificate
    >>> print(Certificate(primal=2.0, dual=1.9999999, gap=1e-7, tol=1e-6))
    certified: The objective is at most 5.0e-08 of itself above the optimum, within tol=1e-06.
    >>> Certificate(primal=2.0, dual=2.0, gap=0.0, tol=1e-6, rounding=1e-3).status
    'limited by rounding'
    """

    primal: float
    dual: float
    gap: float
    tol: float
    rounding: float = 0.0
    dual_point: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    note: str = ""

    @property
    def claim(self) -> str:
        """Statement proved by a duality gap."""
        return (
            "The objective `primal` is at most `gap` above the global optimum: no kernel weights "
            "of the domain have an objective below `dual`."
        )

    @property
    def rel_gap(self) -> float:
        """Relative gap, ``gap / |primal|``."""
        return self._relative(self.gap)

    @property
    def rel_rounding(self) -> float:
        """Relative rounding error, ``rounding / |primal|``."""
        return self._relative(self.rounding)

    def _relative(self, size: float) -> float:
        return size / abs(self.primal) if self.primal else size

    @property
    def converged(self) -> bool:
        """Whether both the relative gap and its rounding error are within `tol`."""
        return self.rel_gap <= self.tol and self.rel_rounding <= self.tol

    @property
    def exhausted(self) -> bool:
        """Whether a solver can stop: the gap is within `tol`, or within its rounding error."""
        return self.gap <= max(self.tol * abs(self.primal), self.rounding) or self.converged

    @property
    def status(self) -> str:
        """ "certified", "limited by rounding" or "stopped"."""
        if self.converged:
            return "certified"
        limited = self.gap <= self.tol * abs(self.primal) + _UNCERTAINTY * self.rounding
        return "limited by rounding" if limited else "stopped"

    @property
    def message(self) -> str:
        """Status in a sentence."""
        meaningless = self.status == "limited by rounding" and self.rounding >= abs(self.primal)
        message = _MESSAGES["meaningless" if meaningless else self.status].format(
            self, gap=max(self.rel_gap, 0.0)
        )
        return f"{message} {self.note}" if self.note else message

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"


_MESSAGES = {
    "certified": "The objective is at most {gap:.1e} of itself above the optimum, within "
    "tol={0.tol:g}.",
    "limited by rounding": "The relative gap {0.rel_gap:.1e} has a rounding error of up to "
    "{0.rel_rounding:.1e}, more than tol={0.tol:g}: the distance of the weights from the optimum "
    "is unknown. Raise reg (or lower C), centre and scale the data behind the kernels, or raise "
    "tol.",
    "meaningless": "The objective {0.primal:.1e} is lost in rounding errors of up to "
    "{0.rounding:.1e}: the distance of the weights from the optimum is unknown. Raise reg (or "
    "lower C), centre and scale the data behind the kernels, or use other kernels.",
    "stopped": "The relative gap is {0.rel_gap:.1e}, above tol={0.tol:g}: the weights are at most "
    "that far from optimal.",
}


Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class KernelOperator(Protocol):
    """Operations of a loss on its kernels; :class:`manykernels.KernelStack` provides them."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, columns and kernels."""

    def combine(self, weights: Array, out: Array | None = None) -> Array:
        """Return ``Σ_j weights[j] K_j``."""

    def apply(self, columns: Array, out: Array | None = None) -> Array:
        """Return ``K_j @ columns`` of every kernel, (n_kernels, m, n_columns)."""

    def combine_all(self, weights: Array, outs: list[Array]) -> None:
        """Compute several weighted sums in one pass, row r of `weights` into ``outs[r]``."""

    def kernel(self, which: int) -> Array:
        """Return one kernel matrix."""

    def form_errors(self, left: Array, right: Array) -> Array:
        """Return estimated rounding errors of ``tr(leftᵀ K_j right)``, (n_kernels,)."""

    def __getitem__(self, key: Any) -> Self:
        """Return the kernels of some rows and columns."""

    def select(self, kernels: Indices) -> Self:
        """Return some of the kernels."""


class KernelsOnDemand(KernelOperator, Protocol):
    """Very many kernels, computed on demand; ``select`` returns kernels in memory."""

    def visit(self, work: Callable[[KernelOperator, Indices], None]) -> None:
        """Call ``work(kernels, positions)`` for blocks of all kernels, in several threads."""


class ColumnKernels(KernelOperator, Protocol):
    """Kernels of training samples that can be computed a few columns at a time."""

    def apply_columns(self, indices: Indices, coefficients: Array) -> Array:
        """Return ``K_j[:, indices] @ coefficients`` of every kernel, (n_kernels, m, n_columns)."""

    def combine_block(self, weights: Array, indices: Indices) -> Array:
        """Return ``Σ_j weights[j] K_j[indices, indices]``."""


class Evaluation(Protocol):
    """Loss at one point of weight space."""

    @property
    def weights(self) -> Array:
        """β; a learnt regularisation comes first."""

    @property
    def value(self) -> float:
        """F(β), or an upper bound on it that is at most `slack` too large."""

    @property
    def gains(self) -> Array:
        """``−∂F/∂β``, non-negative up to rounding if kernels are positive semi-definite."""

    @property
    def slack(self) -> float:
        """Bound on ``value − F(β)``: the gap of the inner problem."""

    @property
    def rounding(self) -> float:
        """Estimated rounding error of `value` and `slack`."""

    @property
    def gain_errors(self) -> Array:
        """Estimated rounding errors of the gains."""

    @property
    def hyperbolic(self) -> bool:
        """Whether the gain of a kernel falls like ``1/x²`` as its weight x grows."""

    @property
    def dual(self) -> Array:
        """Inner solution α* that attains F, (n_samples, n_outputs)."""

    @property
    def coefficients(self) -> Array:
        """Coefficients of the training samples in the model, (n_samples, n_outputs)."""

    def reassessed(self) -> Evaluation:
        """Return the same model, with value and gains computed from the kernels, not updated."""

    @property
    def released(self) -> bool:
        """Whether derivatives need another inner solve, see :mod:`.on_demand`."""

    def hessian(self) -> Array:
        """Return ``∇²F(β)``; takes another inner solve if the evaluation is `released`."""

    def model_hessian(self, gap: float) -> Array:
        """Return the Hessian of the quadratic model that a second-order step minimises; PSD.

        It is ``∇²F``, or the Hessian of an increasing function of F that is closer to quadratic,
        scaled to have the gradient of F; or, where F is not smooth, the Hessian of F smoothed over
        the range in which it may still fall by `gap`.
        """


@dataclass(frozen=True)
class ProblemSpec:
    """Properties of a loss that are known before any computation.

    Solvers use it to refuse losses that they cannot minimise.

    Attributes
    ----------
    kind : type
        Class of the loss.
    n_samples, n_kernels, n_outputs : int
    learns_reg : bool
        Whether the regularisation is one of the weights.
    on_demand : bool
        Whether kernels are computed on demand, see :class:`KernelsOnDemand`.
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
    over a domain.

    Attributes
    ----------
    linear, quadratic : float
    gains : ndarray of shape (n_kernels,)
    longest : float or None
        Largest t for which tα is feasible; None if only t = 1 is.
    """

    linear: float
    quadratic: float
    gains: Array
    longest: float | None = None

    def lower_bound(self, support: Callable[[Array], float]) -> float:
        """Return ``max_t min_{b ∈ B} D(tα, b)``, where `support` is σ_B."""
        quadratic = self.quadratic + support(self.gains)
        scale = 1.0
        if self.longest is not None and quadratic > 0.0:
            scale = float(np.clip(0.5 * self.linear / quadratic, 0.0, self.longest))
        return scale * self.linear - scale**2 * quadratic


class Loss(ABC):
    """Convex function of kernel weights, as used by solvers and estimators."""

    #: Whether the first weight is the regularisation, followed by the kernel weights.
    learns_reg: ClassVar[bool] = False

    @property
    @abstractmethod
    def spec(self) -> ProblemSpec:
        """Size and kind of the loss."""

    @property
    def n_kernels(self) -> int:
        """Number of weights, including the regularisation if it is learnt."""
        return self.spec.n_kernels

    @abstractmethod
    def evaluate(self, weights: Array) -> Evaluation:
        """Solve the inner problem at `weights`."""

    @abstractmethod
    def dual_point(self, dual: Array) -> DualPoint:
        """Return D at any dual variables, laid out as :attr:`Evaluation.dual`.

        Takes one pass over the kernels. Infeasible variables are replaced by feasible ones close
        to them.
        """

    def gains_at(self, dual: Array) -> Array:
        """Return ``g(α)`` of every kernel at any dual variables; one pass over the kernels."""
        return self.dual_point(dual).gains

    def prefetch_gains(self, dual: Array) -> None:  # noqa: B027
        """Announce that gains at `dual` may be needed soon, so that one sweep computes several."""

    def within(self, gauge: Callable[[Array], float]) -> Loss:
        """Return the loss with weights of a domain, whose gauge is at most one there.

        If the loss has to raise a weight, it scales all of them to stay in the domain.
        """
        return self

    def in_sweeps(self) -> Loss:
        """Return the loss or, if its kernels are on demand, one that sweeps over them."""
        return self

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """Return the lower bound on F over B proved by dual variables; `support` is σ_B."""
        return self.dual_point(dual).lower_bound(support)

    @abstractmethod
    def restricted(self, kernels: Indices) -> Loss:
        """Return the loss of some of the kernels, the others having weight zero."""

    @abstractmethod
    def kernel(self, which: int) -> Array:
        """Return the matrix that a weight multiplies."""

    def kernel_weights(self, weights: Array) -> Array:
        """Return the entries of the kernels in `weights`, or in any array of that length."""
        return weights[1:] if self.learns_reg else weights

    def note(self, evaluation: Any) -> str:
        """Return a remark for users on the weights of an evaluation; usually empty."""
        return ""

    def regularization(self, weights: Array) -> float | None:
        """Return λ, given or learnt, or a learnt 1/C; None if C is given."""
        return None

    def coarse(self) -> Loss | None:
        """Return a much cheaper loss with a nearby minimiser; None if it would not save time."""
        return None

    def halves(self) -> Sequence[Loss]:
        """Return the losses on two halves of the rows; none if they would not save time."""
        return ()


def nearly_definite(hessian: Array) -> Array:
    """Add the rounding error of `hessian` to its diagonal, in place.

    Solvers of quadratic programs refuse the slightly negative eigenvalues that rounding leaves.
    """
    hessian.flat[:: len(hessian) + 1] += ACCUMULATED * np.trace(hessian)
    return hessian


# -- Dual program of a loss, for methods that solve for dual variables and weights at once --------
#
# Every loss of this package whose inner problem is a quadratic program is, with one column v_k per
# output,
#
#     F(β) = max_v  Σ_k {c_k·v_k − e_k Σ_i|v_ik| − ½ Σ_i r_ik v_ik²} − ½ Σ_j β_j Σ_k v_kᵀM_jv_k
#            s.t.   l ≤ v ≤ u,   Σ_i v_ik = s_k
#
# Support vector machines are written in this form in :mod:`manykernels.smo.box`, with ``M_j =
# K_j``. The square loss ``max_U 2 tr(HᵀU) − tr(UᵀA U)`` with ``A = r I + Σ_j β_j M_j`` takes it
# for ``v = √2 U``, ``c = √2 H``, with neither bounds nor totals. For any feasible v
#
#     Q(v) − σ_B(g) ≤ min_B F,    g_j = ½ Σ_k v_kᵀM_jv_k
#
# Q being the first sum: D is linear in β. Where totals are zero v may be scaled, since l ≤ 0 ≤ u.


@dataclass(frozen=True)
class DualProgram:
    """Program without the M_j: c, r, l and u, (m, n_outputs), and e and s, (n_outputs,).

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
        """Return the program of machines that share their kernel weights."""
        columns = {
            name: np.column_stack([getattr(problem, name) for problem in problems])
            for name in ("linear", "ridge", "lower", "upper")
        }
        widths = np.array([problem.width for problem in problems])
        totals = np.array([problem.total for problem in problems])
        return cls(**columns, widths=widths, totals=totals)

    @classmethod
    def free(cls, linear: Array, ridge: float) -> Self:
        """Return a program without bounds and totals."""
        infinite = np.full_like(linear, np.inf)
        widths = np.zeros(linear.shape[1])
        return cls(linear, np.full_like(linear, ridge), -infinite, infinite, widths, None)

    def feasible(self, v: Array) -> Array:
        """Return a feasible point close to v."""
        if self.totals is None:
            return np.clip(v, self.lower, self.upper)
        bounds = zip(self.linear.T, self.lower.T, self.upper.T, self.ridge.T, strict=True)
        columns = [
            BoxProblem(*parts, total=float(total)).feasible(column)
            for parts, total, column in zip(bounds, self.totals, v.T, strict=True)
        ]
        return np.column_stack(columns)

    def point(self, v: Array, products: Array) -> DualPoint:
        """Return D of a feasible v with ``products = M_j v``, (n_kernels, m, n_outputs)."""
        scalable = self.totals is None or not self.totals.any()
        return DualPoint(
            linear=float(np.sum(self.linear * v) - np.sum(self.widths * np.abs(v))),
            quadratic=0.5 * float(np.sum(self.ridge * v**2)),
            gains=gains_of(v, products),
            longest=self._longest(v) if scalable else None,
        )

    def _longest(self, v: Array) -> float:
        """Return the largest t for which ``t v`` is within the bounds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(v > 0.0, self.upper / v, self.lower / v)
        return float(np.min(factors, where=v != 0.0, initial=np.inf))


class HasDualProgram(Loss):
    """Loss whose inner problem is a quadratic program."""

    @abstractmethod
    def dual_program(self) -> DualProgram:
        """Return the dual program in v."""

    @abstractmethod
    def products(self, v: Array, /) -> Array:
        """Return ``M_j v`` of every kernel, (n_kernels, m, n_outputs)."""

    @abstractmethod
    def dual_of(self, v: Array) -> Array:
        """Return the dual variables of a v, laid out as :attr:`Evaluation.dual`."""

    @abstractmethod
    def variables_of(self, dual: Array) -> Array:
        """Return the v of dual variables, the inverse of :meth:`dual_of`."""

    @abstractmethod
    def form_errors(self, v: Array, /) -> Array:
        """Return estimated rounding errors of ``Σ_k v_kᵀM_jv_k``, (n_kernels,)."""

    def gain_errors_at(self, dual: Array) -> Array:
        """Return estimated rounding errors of the gains at any dual variables."""
        return 0.5 * self.form_errors(self.variables_of(dual))

    def dual_point(self, dual: Array) -> DualPoint:
        program = self.dual_program()
        v = program.feasible(self.variables_of(dual))
        return program.point(v, self.products(v))


def gains_of(v: Array, products: Array) -> Array:
    """Return ``½ Σ_k v_kᵀM_jv_k`` of every kernel, from ``products = M_j v``."""
    gains: Array = 0.5 * np.einsum("jmk,mk->j", products, v)
    return gains
