"""Training on kernels with a smooth convex function of the outputs.

For a smooth convex function φ of the outputs f (m×c) of the samples, biases b and Q = K_β/λ,

    F(β) = min_{v,b}  φ(Qv + 1bᵀ) + ½ tr(vᵀQv)  =  max_α  −φ*(−α) − ½ tr(αᵀQα),   1ᵀα = 0

(``φ(f) + (λ/2) fᵀK_β⁺f`` without biases; the condition 1ᵀα = 0 belongs to free biases). At the
optimum ``v = α = −∇φ(f)``; the model has the coefficients α/λ. With H = ∇²φ(f)

    E      = (H⁻¹ + Q)⁻¹ = H(I + QH)⁻¹
    g_j    = −∂F/∂β_j = tr(αᵀK_jα)/2λ
    ∇²F_ij = λ⁻² {⟨K_iα, E K_jα⟩ − ⟨K_iα, E1⟩ (1ᵀE1)⁻¹ ⟨1, E K_jα⟩}

H may be singular, as it is for Cox; E is computed without its inverse
(:class:`~manykernels.losses.smooth.Curvature`).

**Bounds.** By Fenchel's equality any f gives a feasible α with a known value of φ*: if
``α = −∇φ(f)`` and ``1ᵀα = 0``, then ``−φ*(−α) = φ(f) + α·f``. So for every b ∈ B

    F(b) ≥ D(α, b) = φ(f) + α·f − b·g(α)

no formula for φ* is needed, and D is linear in b. F(β) is at most ``P = φ(f̃) + ½ tr(αᵀQα)``, the
objective of the machine with coefficients α/λ and outputs ``f̃ = Qα + 1bᵀ``. The slack ``P − D``
is the Bregman divergence ``φ(f̃) − φ(f) − ∇φ(f)·(f̃ − f)``, of second order in ``f̃ − f``. Biases are
minimised to rounding error in both; the remaining 1ᵀα is part of the rounding error.

**Inner problem.** Newton's method in v with ``ρ = α − v``, from the last solution:

    Δv = ρ − EQρ − E1 δb,   (1ᵀE1) δb = 1ᵀ(ρ − EQρ) + 1ᵀv

and a line search. Of several classes, Δv is computed by conjugate gradients, without E, as long as
this makes progress (:meth:`SoftmaxCurvature.cheap_step`). The last steps are taken in f,
``Δf = (I − QE)(f̃ − f + 1δb)``: errors of the product Qv, which H Q would multiply, are then those
of f̃ only.

**Few digits.** Where the outputs almost reach the least φ, α is a difference of large numbers.
Its errors δα cost ``½ δαᵀ(Q + QHQ)δα`` in P, but ``½ δαᵀ(H⁻¹ + Q)δα`` in D. The machine then has
the coefficients v/λ of Newton's method, and D still belongs to α. The remaining slack counts as a
rounding error.

**Convex combinations.** φ* is convex, so a convex combination of known dual variables, whose
values of φ* are known, is feasible and has a known bound; the bounds proved by several planes
(:mod:`manykernels.solvers.newton`) are of this kind.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from ..utils.numerics import ACCUMULATED, EPS, matmul
from .base import Array, DualPoint, Indices, KernelOperator, ProblemSpec, nearly_definite
from .on_demand import Lease, Workspace, WorkspaceEvaluation, WorkspaceLoss
from .smooth import (
    ARMIJO,
    MOST_HALVINGS,
    Curvature,
    DenseCurvature,
    DiagonalCurvature,
    InverseSum,
    SmoothFunction,
    SoftmaxCurvature,
    pseudo_solve,
    refuse_infinite_biases,
    with_best_biases,
)

#: Relative gap of the inner problem, a hundredth of the solvers' default tolerance because this
#: gap is part of the certified one.
INNER_TOL = 1e-8
# Maximum number of Newton steps of the inner problem, and of the last steps in f. Measured: see
# the module benchmarks/certificates; more than 30 steps are rare.
_MOST_STEPS = 200
_MOST_LAST_STEPS = 4
# E of a Newton step is used for the next step, too, if the gap has fallen to this fraction.
# Measured on 720 digits of ten classes: 0.1 to 0.6 take half of the time of a new E at every step.
_KEPT_IF = 0.3
# Steps without E are taken as long as the gap falls to this part, or F falls by this part.
_CHEAP_IF = 0.9
_CHEAP_FALL = 1e-3
# A step is halved further as long as that lowers its value by this part.
_CLEARLY = 0.1
# Number of dual variables whose value of φ* is remembered, more than the planes that a solver
# keeps.
_MOST_KNOWN = 500
# Entries of an array of (m, c, n) columns in one block of leave-one-out computations: 64 MB.
_BLOCK_ENTRIES = 2**23


class SmoothLoss(WorkspaceLoss):
    """F(β) of a smooth convex function of the outputs.

    Parameters
    ----------
    kernels : KernelOperator
        Training kernels, centred or not.
    function : SmoothFunction
        φ, such as :class:`~manykernels.losses.smooth.Logistic`, or a function of the user.
    reg : float
        λ > 0 of ``φ(f) + (λ/2)‖f‖²``.
    inner_tol : float, default=1e-8
        Relative gap of the inner problems.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.losses.smooth import Logistic
    >>> from manykernels.losses.smooth_loss import SmoothLoss
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> stack = KernelStack.from_arrays([np.outer(x, x), np.eye(4)])
    >>> loss = SmoothLoss(stack, Logistic(np.sign(x)), reg=1.0)
    >>> point = loss.evaluate(np.array([0.5, 0.5]))
    >>> round(point.value, 6), point.gains.round(3), point.biases.round(6) + 0.0
    (1.668783, array([0.928, 0.128]), array([0.]))
    """

    def __init__(
        self,
        kernels: KernelOperator,
        function: SmoothFunction,
        reg: float,
        inner_tol: float = INNER_TOL,
    ) -> None:
        if not 0.0 < reg < np.inf:
            raise ValueError(f"reg must be positive and finite, got {reg!r}.")
        refuse_infinite_biases(function)
        self.kernels, self.function, self.reg = kernels, function, reg
        self.inner_tol = inner_tol
        self.workspace = Workspace(kernels.shape[0])
        # Dual variables with the values of −φ*; v and f̃ of the last solution, which starts the
        # next inner problem. Restricted copies share them.
        self._known: deque[tuple[Array, float]] = deque(maxlen=_MOST_KNOWN)
        self._last: list[tuple[Array, Array]] = []
        # The last solution of another loss; see `start_near`.
        self._near: list[tuple[Array, Array]] = []

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and outputs."""
        return self.kernels.shape[0], self.function.n_outputs

    @property
    def spec(self) -> ProblemSpec:
        n_samples, _, n_kernels = self.kernels.shape
        return ProblemSpec(
            type(self),
            n_samples,
            n_kernels,
            self.function.n_outputs,
            self.learns_reg,
            self.on_demand,
        )

    def regularization(self, weights: Array) -> float:
        return self.reg

    def evaluate(self, weights: Array) -> SmoothEvaluation:
        """Solve the inner problem at `weights`, starting from the last solution."""
        lease = self.workspace.lend()
        self._combine(weights)
        outputs, variables = self._solve()
        dual = -self.function.gradient(outputs)
        self.workspace.multiply(self.kernels, dual, None)
        point = self._evaluation(weights, outputs, dual, variables, lease)
        self._known.append((dual, point.constant))
        self._last[:] = [(point.variables, point.outputs)]
        return point

    @staticmethod
    def evaluate_together(
        losses: list[SmoothLoss], weights: list[Array]
    ) -> list[SmoothEvaluation]:
        """Evaluate several losses, each at its own weights."""
        return [loss.evaluate(row) for loss, row in zip(losses, weights, strict=True)]

    def start_near(self, other: SmoothLoss) -> None:
        """Start the first inner problem from the outputs of a loss that differs in λ only."""
        self._near = other._last

    def _combine(self, weights: Array) -> None:
        """Put Q = K_β/λ into the workspace."""
        self.kernels.combine(weights / self.reg, out=self.workspace.matrix)
        if not np.isfinite(self.workspace.diagonal).all():
            raise ValueError(
                "The combined kernel is not finite: a weight or a kernel entry is NaN or infinite."
            )

    def refill(self, weights: Array, dual: Array) -> Lease:
        """Recompute Q and the products at a point with known α."""
        lease = self.workspace.lend()
        self._combine(weights)
        self.workspace.multiply(self.kernels, dual, None)
        return lease

    def _evaluation(
        self, weights: Array, outputs: Array, dual: Array, variables: Array, lease: Lease | None
    ) -> SmoothEvaluation:
        """Return the bounds proved by outputs f with ``α = −∇φ(f)``, products in place.

        The machine is that of α or, where rounding errors spoil it, of other `variables` v.
        """
        function, products = self.function, self.workspace.products
        assert products is not None
        gains = self._gains(dual, products)
        norm = float(weights @ gains)
        linear = np.tensordot(weights / self.reg, products, 1)
        machine = self._machine(dual, linear, norm, outputs)
        # α·b is zero for all b, but for the rounding errors of 1ᵀα.
        centred = outputs - outputs.mean(axis=0) * function.has_bias
        lower = function.value(outputs) + float(np.vdot(dual, centred)) - norm
        if not self._is_small(machine.value - lower, machine.value):
            for v in (variables, np.zeros_like(dual)):
                linear = matmul(self.workspace.matrix, v)
                other = self._machine(v, linear, 0.5 * float(np.vdot(v, linear)), outputs)
                machine = other if other.value < machine.value else machine
        value, fitted, biases = machine.value, machine.outputs, machine.biases
        slack = value - lower
        imbalance = np.abs(dual.sum(axis=0)) * function.has_bias
        rounding = max(function.rounding(outputs), function.rounding(fitted))
        rounding += EPS * float(np.sum(np.abs(dual * outputs)))
        rounding += float(imbalance @ (np.abs(biases) + np.abs(fitted - outputs).max(axis=0)))
        if not self._is_small(slack, value):
            # Newton's method does not get any closer, which is because of rounding errors.
            rounding += slack
        # Errors of α change α·f and the gains.
        errors, of_gains = function.gradient_errors(outputs), np.zeros_like(gains)
        if errors is not None:
            rounding += float(np.sum(errors * np.abs(outputs)))
            of_gains = np.einsum("jmk,mk->j", np.abs(products), errors) / self.reg
        return SmoothEvaluation(
            weights, value, gains, slack, fitted, biases, lower + norm, self, dual, outputs,
            machine.variables, rounding, of_gains, lease,
        )  # fmt: skip

    def _is_small(self, slack: float, value: float) -> bool:
        return bool(np.isfinite(value)) and slack <= self.inner_tol * abs(value)

    def _machine(self, variables: Array, linear: Array, norm: float, guess: Array) -> _Machine:
        """Return the machine of v with Qv and ``½ vᵀQv``, and its best biases."""
        function = self.function
        start = (guess - linear).mean(axis=0) * function.has_bias
        fitted, _ = with_best_biases(self.function, linear + start)
        biases = (fitted - linear)[0] * function.has_bias
        return _Machine(variables, fitted, biases, function.value(fitted) + norm)

    def _gains(self, dual: Array, products: Array) -> Array:
        gains: Array = np.einsum("jmk,mk->j", products, dual) / (2.0 * self.reg)
        return gains

    def gain_errors_at(self, dual: Array) -> Array:
        """Return estimated rounding errors of the gains at any dual variables."""
        return self.kernels.form_errors(dual, dual) / (2.0 * self.reg)

    def gains_at(self, dual: Array) -> Array:
        return self._gains(dual, self.kernels.apply(dual))

    def dual_point(self, dual: Array) -> DualPoint:
        """Return D of the known solution α, or of the nearest convex combination of known ones."""
        known, constant = self._nearest_known(dual)
        return DualPoint(constant, 0.0, self.gains_at(known))

    def _nearest_known(self, dual: Array) -> tuple[Array, float]:
        """Return feasible dual variables close to `dual`, and a lower bound on their −φ*."""
        for known, constant in reversed(self._known):
            if known is dual or np.array_equal(known, dual):
                return known, constant
        if not self._known:
            outputs, _ = with_best_biases(self.function, self._at_biases())
            gradient = self.function.gradient(outputs)
            constant = self.function.value(outputs) - float(np.vdot(gradient, outputs))
            self._known.append((-gradient, constant))
        columns = np.column_stack([known.ravel() for known, _ in self._known])
        size = float(np.abs(columns).max()) or 1.0
        # Shares that sum to one, by a row that is larger than the others.
        heavy = 1e3 * np.sqrt(len(columns))
        system = np.vstack([columns / size, np.full(columns.shape[1], heavy)])
        right = np.append(dual.ravel() / size, heavy)
        try:
            shares, _ = optimize.nnls(system, right, maxiter=100 * columns.shape[1])
        except RuntimeError:  # too many iterations, where columns are almost equal
            shares = np.zeros(columns.shape[1])
            shares[np.argmin(np.linalg.norm(system - right[:, None], axis=0))] = 1.0
        shares /= shares.sum()
        combination = (columns @ shares).reshape(dual.shape)
        return combination, float(shares @ [constant for _, constant in self._known])

    # -- The inner problem -------------------------------------------------------------------

    def _at_biases(self) -> Array:
        return np.tile(self.function.initial_biases(), (self.shape[0], 1))

    def _solve(self) -> tuple[Array, Array]:
        """Return outputs f, biases included, and v that solve the inner problem at Q."""
        kernel, function = self.workspace.matrix, self.function
        state = self._start(kernel)
        state, is_done = self._cheap_steps(state, kernel)
        inverse: InverseSum | None = None
        is_new = False
        for _ in range(0 if is_done else _MOST_STEPS):
            if state.gap <= 0.1 * self.inner_tol * abs(state.value):
                break
            if inverse is None:
                inverse, is_new = function.curvature(state.outputs).inverse_sum(kernel), True
            following = state.newton_step(inverse)
            if following is None and is_new:
                break
            # E takes most of the time, so it is kept as long as it serves.
            if following is None or following.gap > _KEPT_IF * state.gap:
                inverse = None
            state, is_new = following or state, False
        return self._last_steps(state.outputs, kernel, inverse), state.v

    def _cheap_steps(self, state: _InnerState, kernel: Array) -> tuple[_InnerState, bool]:
        """Take Newton steps without E; return the last state, and whether it needs no others."""
        for _ in range(_MOST_STEPS):
            if state.gap <= 0.1 * self.inner_tol * abs(state.value):
                slack, value, _ = self._slack(
                    *with_best_biases(self.function, state.outputs), kernel
                )
                if slack <= 0.1 * self.inner_tol * abs(value):
                    return state, True
            following = state.cheap_step()
            if following is None:
                return state, False
            is_closer = following.gap <= _CHEAP_IF * state.gap
            is_lower = following.value <= state.value - _CHEAP_FALL * abs(state.value)
            state = following
            if not (is_closer or is_lower):
                return state, False
        return state, False

    def _start(self, kernel: Array) -> _InnerState:
        """Return the better of v = 0 and the last solution, or that of a loss with another λ."""
        outputs, _ = with_best_biases(self.function, self._at_biases())
        zero = _InnerState(self, kernel, np.zeros(self.shape), outputs, np.zeros(self.shape))
        if not (self._last or self._near):
            return zero
        v, before = (self._last or self._near)[0]
        products = matmul(kernel, v)
        if not self._last:
            # The multiple whose outputs are closest to those of the other λ.
            centred = products - products.mean(axis=0) * self.function.has_bias
            size = float(np.vdot(centred, products))
            factor = float(np.vdot(centred, before)) / size if size > 0.0 else 0.0
            v, products = factor * v, factor * products
        with np.errstate(over="ignore", invalid="ignore"):
            moved = products + outputs.mean(axis=0) * self.function.has_bias
            if not np.isfinite(self.function.value(moved)):
                return zero
            moved, _ = with_best_biases(self.function, moved)
        last = _InnerState(self, kernel, v, moved, products)
        return last if last.value < zero.value else zero

    def _last_steps(self, outputs: Array, kernel: Array, inverse: InverseSum | None) -> Array:
        """Take Newton steps in f until the slack is within `inner_tol`; see the module.

        One more step is taken with the last E of the steps in v, as it costs little.
        """
        outputs, gradient = with_best_biases(self.function, outputs)
        slack, value, residual = self._slack(outputs, gradient, kernel)
        for number in range(_MOST_LAST_STEPS):
            is_done = slack <= 0.1 * self.inner_tol * abs(value)
            if is_done and (number > 0 or inverse is None):
                break
            is_new = inverse is None
            if inverse is None:
                inverse = self.function.curvature(outputs).inverse_sum(kernel)
            step = _step_in_outputs(kernel, inverse, residual, self.function.has_bias)
            trial, gradient = with_best_biases(self.function, outputs + step)
            reached, new_value, new_residual = self._slack(trial, gradient, kernel)
            # The E of other outputs may be too inaccurate; a failure of a new one is final.
            inverse = None
            if reached < slack:
                outputs, slack, value, residual = trial, reached, new_value, new_residual
            elif is_new or is_done:
                break
        return outputs

    def _slack(self, outputs: Array, gradient: Array, kernel: Array) -> tuple[float, float, Array]:
        """Return a bound on the slack of outputs f, P, and ``f̃ − f``.

        The bound ``(∇φ(f̃) − ∇φ(f))·(f̃ − f)`` is about twice the slack, and has no cancellation.
        """
        function = self.function
        linear = matmul(kernel, -gradient)
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = linear + (outputs - linear).mean(axis=0) * function.has_bias
            if not np.isfinite(function.value(fitted)):
                return np.inf, np.inf, fitted - outputs
            fitted, slopes = with_best_biases(self.function, fitted)
            residual = fitted - outputs
            slack = float(np.vdot(slopes - gradient, residual))
        value = function.value(fitted) - 0.5 * float(np.vdot(gradient, linear))
        return (slack if np.isfinite(slack) else np.inf), value, residual


@dataclass(frozen=True)
class _Machine:
    """Variables v, outputs ``Qv + 1bᵀ`` at the samples, biases b, and P."""

    variables: Array
    outputs: Array
    biases: Array
    value: float


def _bias_columns(shape: tuple[int, int]) -> Array:
    """Return a column of ones for each output, with zeros in the others, (m, c, c)."""
    return np.broadcast_to(np.eye(shape[1]), (*shape, shape[1])).copy()


def _step_in_outputs(kernel: Array, inverse: InverseSum, residual: Array, has_bias: bool) -> Array:
    """Return ``(I − QE)(residual + 1δb)`` with 1ᵀE(residual + 1δb) = 0."""
    moved = residual
    if has_bias:
        sums = inverse.apply(residual[:, :, None])[:, :, 0].sum(axis=0)
        moved = residual + pseudo_solve(inverse.totals(len(residual)), -sums)
    step: Array = moved - matmul(kernel, inverse.apply(moved[:, :, None])[:, :, 0])
    return step


class _InnerState:
    """Inner variables v with outputs ``f = Qv + 1bᵀ``, and the gap that they prove."""

    def __init__(
        self, loss: SmoothLoss, kernel: Array, v: Array, outputs: Array, products: Array
    ) -> None:
        self._loss, self._kernel = loss, kernel
        self.v, self.outputs, self.products = v, outputs, products
        function = loss.function
        self.value = function.value(outputs) + 0.5 * float(np.vdot(v, products))
        self.dual = -function.gradient(outputs)
        self.residual = self.dual - v
        self.images = matmul(kernel, self.residual)
        # The gap ½ ρᵀQρ, and the gain by better biases.
        self.gap = 0.5 * float(np.vdot(self.residual, self.images))
        if function.has_bias:
            totals = self.dual.sum(axis=0)
            gain = pseudo_solve(function.curvature(outputs).totals(), totals)
            self.gap += 0.5 * abs(float(totals @ gain))
        self.gap = self.gap if np.isfinite(self.gap) else np.inf

    def cheap_step(self) -> _InnerState | None:
        """Return the state after a Newton step without E; None if there is none."""
        function = self._loss.function
        totals = self.dual.sum(axis=0) if function.has_bias else None
        curvature = function.curvature(self.outputs)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = curvature.cheap_step(self._kernel, self.residual, totals, abs(self.value))
        return None if found is None else self._searched(*found)

    def newton_step(self, inverse: InverseSum) -> _InnerState | None:
        """Return the state after a step that lowers the objective; None if rounding hides it."""
        function = self._loss.function
        step = self.residual - inverse.apply(self.images[:, :, None])[:, :, 0]
        biases = np.zeros(step.shape[1])
        if function.has_bias:
            totals = step.sum(axis=0) + self.v.sum(axis=0)
            biases = pseudo_solve(inverse.totals(len(step)), totals)
            shifts = np.tile(biases, (len(step), 1))[:, :, None]
            step = step - inverse.apply(shifts)[:, :, 0]
        return self._searched(step, biases)

    def _searched(self, step: Array, biases: Array) -> _InnerState | None:
        """Return the state after a part of a step, halved until the objective falls."""
        function = self._loss.function
        moved = matmul(self._kernel, step)
        change = moved + biases
        slope = float(np.vdot(self.v, moved)) - float(np.vdot(self.dual, change))
        curvature = float(np.vdot(step, moved))
        if not (np.isfinite(change).all() and slope < 0.0):
            return None
        norm, mixed = float(np.vdot(self.v, self.products)), float(np.vdot(self.v, moved))

        def value_at(factor: float) -> float:
            penalty = 0.5 * norm + factor * mixed + 0.5 * factor**2 * curvature
            return function.value(self.outputs + factor * change) + penalty

        factor = 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(MOST_HALVINGS):
                reached = value_at(factor)
                if reached <= self.value + ARMIJO * factor * slope:
                    # A full step may go too far, to outputs at which H is almost zero.
                    while (lower := value_at(0.5 * factor)) < reached - _CLEARLY * abs(reached):
                        factor, reached = 0.5 * factor, lower
                    return self._moved(factor, step, moved, change)
                if reached <= self.value + ACCUMULATED * abs(self.value):
                    # The fall may be hidden by rounding: the gap decides.
                    following = self._moved(factor, step, moved, change)
                    if following.gap <= 0.5 * self.gap:
                        return following
                factor *= 0.5
        return None

    def _moved(self, factor: float, step: Array, moved: Array, change: Array) -> _InnerState:
        return _InnerState(
            self._loss,
            self._kernel,
            self.v + factor * step,
            self.outputs + factor * change,
            self.products + factor * moved,
        )


@dataclass
class SmoothEvaluation(WorkspaceEvaluation):
    """F of a smooth function at one point; see the module for the formulas.

    Attributes
    ----------
    outputs : ndarray of shape (m, c)
        f̃, outputs of the machine at the training samples, with biases.
    biases : ndarray of shape (c,)
    constant : float
        ``−φ*(−α)``.
    variables : ndarray of shape (m, c)
        v of the machine: α, unless rounding errors of α spoil its outputs.
    """

    weights: Array
    value: float
    gains: Array
    slack: float
    outputs: Array = field(repr=False)
    biases: Array
    constant: float = field(repr=False)
    _loss: SmoothLoss = field(repr=False)
    dual: Array = field(repr=False)
    _point: Array = field(repr=False)
    variables: Array = field(repr=False)
    _rounding: float = field(repr=False)
    _errors_of_dual: Array = field(repr=False)
    _lease: Lease | None = field(repr=False, compare=False)

    hyperbolic: ClassVar[bool] = True

    @cached_property
    def rounding(self) -> float:
        """Rounding errors of φ, of 1ᵀα (zero in exact arithmetic) and of Qv, by the slope of φ."""
        function, kernels = self._loss.function, self._loss.kernels
        slopes = function.gradient(self.outputs)
        shares = self.weights / self._loss.reg
        error = self._rounding + float(shares @ kernels.form_errors(slopes, self.variables))
        # Where φ is almost least its curvature counts more than its slopes: outputs are moved by
        # the mean of their errors, up and down in turn.
        total = shares @ kernels.form_errors(np.ones_like(self.variables), self.variables)
        signs = (-1.0) ** np.add.outer(*map(np.arange, self.outputs.shape))
        step = float(total) / self.outputs.size * signs
        value = function.value(self.outputs)
        moved = max(function.value(self.outputs + step), function.value(self.outputs - step))
        return error + max(moved - value, 0.0)

    @cached_property
    def gain_errors(self) -> Array:
        return self._loss.gain_errors_at(self.dual) + self._errors_of_dual

    @property
    def coefficients(self) -> Array:
        """Coefficients v/λ of the training samples, (m, c)."""
        return self.variables / self._loss.reg

    @property
    def reach(self) -> Array:
        """Derivative of the objective in the outputs of the samples, (m, c)."""
        return np.abs(self.dual)

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights, self.dual)

    def _inverse_sum(self) -> InverseSum:
        """Return E at f; takes a factorisation."""
        self.restore()
        curvature = self._loss.function.curvature(self._point)
        return curvature.inverse_sum(self._loss.workspace.matrix)

    def hessian(self) -> Array:
        """Return ``∇²F``; takes a factorisation."""
        inverse = self._inverse_sum()
        products = self._loss.workspace.products
        assert products is not None
        columns = np.ascontiguousarray(np.moveaxis(products, 0, 2)) / self._loss.reg
        n = columns.shape[2]
        solved = inverse.apply(columns)
        hessian: Array = columns.reshape(-1, n).T @ solved.reshape(-1, n)
        if self._loss.function.has_bias:
            totals = inverse.totals(self._loss.shape[0])
            sums = solved.sum(axis=0)
            hessian -= sums.T @ pseudo_solve(totals, sums)
        return 0.5 * (hessian + hessian.T)

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²F``."""
        return nearly_definite(self.hessian())

    def leave_one_out(self, groups: NDArray[Any] | None = None) -> Array:
        """Return approximate outputs of each sample by the machine of all others, (m, c).

        Kernel weights are fixed, and one Newton step is taken from the machine of all samples:
        ``f_S − T_SS (I − H_SS T_SS)⁻¹ α_S`` with ``T = Q − QEQ + u (1ᵀE1)⁻¹ uᵀ``,
        ``u = 1 − QE1``. Samples of one of the `groups` are left out together.

        Raises
        ------
        TypeError
            If φ is not a sum over samples, as for :class:`Cox`.
        """
        loss, function = self._loss, self._loss.function
        if not function.by_samples:
            raise TypeError(
                f"{type(function).__name__} is not a sum over samples, so that leave-one-out "
                "outputs have no approximation in closed form: use folds."
            )
        inverse = self._inverse_sum()
        kernel, (m, c) = loss.workspace.matrix, loss.shape
        curvature = function.curvature(self.outputs)
        dual = -function.gradient(self.outputs)
        shifts, totals = np.zeros((m, c, c)), np.eye(c)
        if function.has_bias:
            solved = inverse.apply(_bias_columns((m, c)))
            totals = solved.sum(axis=0)
            flat = matmul(kernel, solved.reshape(m, -1)).reshape(m, c, c)
            shifts = np.eye(c) - flat
        outputs = self.outputs.copy()
        for rows, sets in _blocks_of_groups(groups, m, max(1, _BLOCK_ENTRIES // (m * c * c))):
            forms = inverse.gram(np.ascontiguousarray(kernel[:, rows]))
            for members in sets:
                left_out = rows[members]
                k = len(left_out)
                inner = -forms[:, members][..., members].transpose(1, 0, 3, 2)
                inner[:, np.arange(c), :, np.arange(c)] += kernel[np.ix_(left_out, left_out)]
                border = shifts[left_out].reshape(k * c, c)
                sensitivity = inner.reshape(k * c, k * c) + border @ pseudo_solve(totals, border.T)
                hessian = _block_of(curvature, left_out)
                system = np.eye(k * c) - hessian @ sensitivity
                change = sensitivity @ pseudo_solve(system, dual[left_out].ravel())
                outputs[left_out] -= change.reshape(k, c)
        return outputs


def _block_of(curvature: Curvature, rows: Indices) -> Array:
    """Return the Hessian in the outputs of some samples, (k·c, k·c)."""
    if isinstance(curvature, DiagonalCurvature):
        return np.diag(curvature.diagonal[rows].ravel())
    if isinstance(curvature, SoftmaxCurvature):
        blocks = [
            weight * (np.diag(p) - np.outer(p, p))
            for p, weight in zip(
                curvature.probabilities[rows], curvature.sample_weight[rows], strict=True
            )
        ]
        block: Array = linalg.block_diag(*blocks)
        return block
    assert isinstance(curvature, DenseCurvature)
    c = curvature.n_outputs
    flat = (rows[:, None] * c + np.arange(c)).ravel()
    block = curvature.matrix[np.ix_(flat, flat)]
    return block


def _blocks_of_groups(
    groups: NDArray[Any] | None, n_samples: int, most: int
) -> list[tuple[Indices, list[Indices]]]:
    """Return blocks of about `most` rows, each with the positions in it of its groups."""
    numbers = (
        np.arange(n_samples)
        if groups is None
        else np.unique(groups, return_inverse=True)[1].ravel()
    )
    order = np.argsort(numbers, kind="stable")
    sets = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    blocks: list[tuple[Indices, list[Indices]]] = []
    waiting: list[Indices] = []
    for rows in [*sets, None]:
        if waiting and (rows is None or sum(map(len, waiting)) + len(rows) > most):
            ends = np.cumsum([0, *map(len, waiting)])
            positions = [np.arange(a, b) for a, b in pairwise(ends)]
            blocks.append((np.concatenate(waiting), positions))
            waiting = []
        if rows is not None:
            waiting.append(rows)
    return blocks
