"""Machines with squared hinge loss on explicit features: Newton's method in passes over the rows.

With features Z_j of kernel j, ``K_j = Z_jZ_jᵀ``, machines w, b with the kernel weights β minimise

    P(β, w, b) = ½ Σ_j ‖w_j‖²/β_j + ½ C Σ_i c_i max(0, 1 − y_i f_i)² ,   f_i = z_i·w + b

summed over all machines that share β. Where w and b are best, P is F(β) of
:class:`~manykernels.losses.SquaredHingeLoss`. It is convex in all variables together, because
``‖w‖²/β`` is.

**Steps.** Let ``I = {i : y_i f_i < 1}`` be the active rows of a point (β, w, b). There

    Φ(β, w, b) = ½ Σ_j ‖w_j‖²/β_j + ½ C Σ_{i ∈ I} c_i (y_i − f_i)²

has the value and the slopes of P, because ``(1 − yf)² = (y − f)²`` and the derivative of
``max(0, 1 − yf)²`` is zero at its kink. Φ is C/2 times the square loss on features with λ = 1/C
(:class:`~manykernels.losses.FeatureLoss`), for which the moments M of the rows in I are enough. It
is minimised over weights, coefficients and biases at once, without a row; its free bias amounts to
centring by the means of I. The minimiser is the next point if P falls there by a part of what Φ
promised. If not, P falls on the way: its slope towards the minimiser is that of the convex Φ,
``Φ(minimiser) − P < 0`` or less. The same pass over the rows has told the losses on the way. So P
never rises. With weights that are held this is the method of Keerthi and DeCoste (2005), which
ends at the minimum once I no longer changes.

**Large C.** Few rows are active where C is large, and which ones a step can hardly tell. The
minimum for a smaller C is a better start; what a pass adds up does not depend on C.

**Bounds.** With ``α_i = C c_i y_i max(0, 1 − y_i f_i)``, whose positive and negative parts are
multiplied by two numbers such that Σ_i α_i = 0,

    D(α, β) = Σ_i |α_i| − Σ_i α_i²/(2 C c_i) − Σ_j β_j g_j ,   g_j = ½‖Z_jᵀα‖²

is a lower bound on F(β) at all weights, by all rows, active or not. So is that of any other f. The
one to take tells the dual variables that prove the minimum of Φ, for near the minimum of P the two
are the same; at p = 1 it is often a combination of machines at several weights. Each pass adds up
what P, D and g take (:mod:`~manykernels.scale.hinge_pass`), so that each point has a certificate.

References
----------
S. S. Keerthi, D. DeCoste. A modified finite Newton method for fast solution of large scale linear
SVMs. JMLR 6, 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._rounding import EPS
from ..domains import Domain
from ..losses import DualPoint, FeatureLoss, FeatureSums, Loss, SummedLoss
from ..losses.square import NotPositiveDefiniteError
from ..solvers import Newton, Solution
from ..solvers.certificate import Bound
from ..solvers.run import Observer, Run
from .base import RowBlocks
from .hinge_pass import STEPS, Array, HingePass, HingeSums, Machines
from .moments import Moments

# Relative gap to which Φ is minimised as a part of `tol`: it becomes a part of the gap of P, and
# to close it takes no pass.
_INNER_SHARE = 0.1
# Part of the promised fall that P has to reach: the usual value (Nocedal and Wright 2006, 3.1).
_ARMIJO = 1e-4
# Up to this C, in units of the inverse of the mean squared length of samples, C is not large.
# Beyond, it grows by a factor at a time, and each but the last is solved to a relative gap that
# leaves the rest to the next one. Measured on 16 fits at each C (10 kernels, 1500 rows, two and
# four classes, p of 1 and 2): 10, 15, 24 and 38 passes in the mean at C = 100, 1e3, 1e4 and 1e5;
# without it 10, 17, more than 40 and more than 100, as some do not end.
_EASY = 100.0
_GROWTH = 10.0
_EARLY_TOL = 0.5


@dataclass(frozen=True)
class HingeProblem:
    """Machines that share kernel weights, without their rows.

    Attributes
    ----------
    penalty : float
        C.
    signs : ndarray of shape (n_classes, K)
        y of the samples of each class for each machine.
    kernel_of : ndarray of shape (D,)
        The kernel that each feature belongs to.
    sizes : ndarray of shape (n_kernels,)
        ``Σ_i c_i ‖z_ij‖²/m`` of every kernel.
    roots : ndarray of shape (D,)
        ``√(Σ_i c_i z_i²)`` of every feature, or more: for rounding errors.
    errors : ndarray of shape (D,) or None
        Rounding errors of the features themselves, root mean squares times the root of c.
    """

    penalty: float
    signs: Array
    kernel_of: np.ndarray
    sizes: Array
    roots: Array = field(repr=False)
    errors: Array | None = field(default=None, repr=False)

    @property
    def n_kernels(self) -> int:
        return len(self.sizes)

    def by_kernel(self, values: Array) -> Array:
        """Sums over the features of each kernel, and over machines, of numbers (D, K)."""
        sums = np.bincount(self.kernel_of, values.sum(axis=1), self.n_kernels)
        return np.asarray(sums, dtype=np.float64)

    def penalized(self, weights: Array, w: Array) -> float:
        """``½ Σ_j ‖w_j‖²/β_j``, kernels without weight having no coefficients."""
        squares = self.by_kernel(w * w)
        terms = np.divide(squares, weights, where=weights > 0.0, out=np.zeros_like(squares))
        return 0.5 * float(terms.sum())

    def square_loss(self, moments: list[Moments]) -> tuple[Loss, Array, Array]:
        """``2Φ/C``, and the means of features (D, K) and of targets (K,) over the active rows.

        The moments are used up.
        """
        losses, means, targets = [], [], []
        while moments:
            one = moments.pop(0)
            if one.n_rows == 0:
                # No row is active, and Φ has the minimum zero: as if one were, of features zero.
                one.matrix[one.n_features, one.n_features] = 1.0
            centred = one.centred()
            same = np.ones(self.n_kernels)
            sums: FeatureSums = centred.sums(self.kernel_of, same, np.eye(1))
            losses.append(FeatureLoss(sums, 1.0 / self.penalty))
            means.append(centred.mean)
            targets.append(centred.target_mean[0])
        loss = losses[0] if len(losses) == 1 else SummedLoss(losses)
        return loss, np.column_stack(means), np.array(targets)


@dataclass(frozen=True)
class HingePoint:
    """P at one point, an :class:`~manykernels.losses.Evaluation` without Hessian.

    `machines` are w and, in the last row, b, (D + 1, K). `proof` are those that tell the dual
    variables.
    """

    problem: HingeProblem
    weights: Array
    machines: Array
    proof: Array
    sums: HingeSums = field(repr=False)

    @property
    def coefficients(self) -> Array:
        """w, (D, K)."""
        return self.machines[:-1]

    @property
    def biases(self) -> Array:
        """b of every machine."""
        return self.machines[-1]

    @property
    def dual(self) -> Array:
        """w and b of machines that tell the dual variables α, (D + 1, K)."""
        return self.proof

    @cached_property
    def value(self) -> float:
        """P."""
        penalized = self.problem.penalized(self.weights, self.coefficients)
        return penalized + 0.5 * self.problem.penalty * float(self.sums.losses[0])

    @cached_property
    def _balance(self) -> Array:
        """Factors of the two sides that make their totals of α equal, (2, K)."""
        below, above = self.sums.totals
        # Without α on one side, that of the other side becomes zero, too.
        both, none = (below > 0.0) & (above > 0.0), np.zeros((2, len(below)))
        ratios = np.divide([above, below], [below, above], where=both, out=none)
        balance: Array = np.sqrt(ratios)
        return balance

    @cached_property
    def _images(self) -> Array:
        """Zᵀα, (D, K)."""
        return self.problem.penalty * np.einsum("sk,sak->ak", self._balance, self.sums.images)

    @cached_property
    def dual_point(self) -> DualPoint:
        """D of α."""
        C, sums, balance = self.problem.penalty, self.sums, self._balance
        return DualPoint(
            linear=C * float(np.vdot(balance, sums.totals)),
            quadratic=0.5 * C * float(np.vdot(balance**2, sums.squares)),
            gains=0.5 * self.problem.by_kernel(self._images**2),
            longest=np.inf,
        )

    @property
    def gains(self) -> Array:
        return self.dual_point.gains

    @property
    def slack(self) -> float:
        """``P − D(α, β)``."""
        point = self.dual_point
        return self.value - (point.linear - point.quadratic - float(self.weights @ point.gains))

    @property
    def rounding(self) -> float:
        """Errors of the losses, which are differences of terms, and of what gains contribute.

        Errors of features, which are independent, change P by ``Σ_i α_i Σ_a δz_ia w_a``.
        """
        problem = self.problem
        own = EPS * problem.penalty * self.sums.reach + float(self.weights @ self.gain_errors)
        if problem.errors is None:
            return own
        length = problem.penalty * float(np.sqrt(self.sums.losses[0]))
        return own + length * float((problem.errors @ np.abs(self.coefficients)).sum())

    @cached_property
    def gain_errors(self) -> Array:
        """Of ``½‖Z_jᵀα‖²``, by the errors of sums of terms ``|z_ia||α_i|``.

        These add up to at most ``√(Σ_i c_i z_ia²) √(Σ_i α_i²/c_i)``.
        """
        lengths = self.problem.penalty * np.sqrt(
            (self._balance**2 * self.sums.squares).sum(axis=0)
        )
        errors = EPS * np.outer(self.problem.roots, lengths)
        return self.problem.by_kernel((np.abs(self._images) + 0.5 * errors) * errors)

    def bound(self, domain: Domain) -> Bound:
        """The lower bound on the minimum over a domain that multiples of α prove."""
        return Bound(self.dual_point.lower_bound(domain.support), self.dual)


class Descent:
    """From a first point to the minimum of P over a domain of weights.

    Attributes
    ----------
    passes : list of int
        How many passes it took to each point of the history.
    """

    def __init__(
        self,
        problem: HingeProblem,
        domain: Domain,
        *,
        tol: float,
        max_iter: int,
        observer: Observer | None = None,
    ) -> None:
        self.problem, self.domain = problem, domain
        self.passes: list[int] = []
        self._run = Run(domain, tol, max_iter, observer)
        self._n_passes = self._n_solves = 0

    def steps(
        self, start: Callable[[float], tuple[FeatureLoss, Array]]
    ) -> Generator[Machines, HingeSums, Solution]:
        """Yields machines, and wants their sums over the rows; returns the solution.

        ``start(C)`` gives the square loss as if all rows were active, whose minimiser is the first
        point, and the biases there.
        """
        first, *others = self._penalties()
        point = yield from self._passed(first, *self._first(*start(first)))
        for penalty in others:
            early = Run(self.domain, _EARLY_TOL, self._run.max_iter)
            point = yield from self._descended(point, early)
            self._n_solves += early.n_inner_solves
            if point.sums.moments:
                # The sums do not depend on C.
                point = replace(point, problem=replace(self.problem, penalty=penalty))
            else:
                point = yield from self._passed(penalty, point.weights, point.machines)
        yield from self._descended(point, self._run)
        return self._solution()

    def _first(self, loss: FeatureLoss, biases: Array) -> tuple[Array, Array]:
        """Weights and machines to begin with."""
        found = self._minimized(loss, None)
        return found.weights, np.vstack([found.evaluation.coefficients, biases])

    def _penalties(self) -> list[float]:
        """Every C to solve for, each from the solution for the one before."""
        C, start = self.problem.penalty, self.domain.start(self.problem.n_kernels)
        excess = C * float(start @ self.problem.sizes) / _EASY
        n_early = int(np.ceil(np.log(excess) / np.log(_GROWTH))) if excess > 1.0 else 0
        return [C / _GROWTH**k for k in range(n_early, -1, -1)]

    def _descended(
        self, point: HingePoint, run: Run
    ) -> Generator[Machines, HingeSums, HingePoint]:
        """Steps from a point on until the run is to stop, or no step lowers P."""
        penalty, bound = point.problem.penalty, point.bound(self.domain)
        while not self._record(point, bound, run):
            weights, machines, proof, promised = self._target(point)
            ahead = yield from self._passed(penalty, weights, machines, proof, point)
            bound = ahead.bound(self.domain)
            fall = point.value - ahead.value
            if not (fall > 0.0 and fall >= _ARMIJO * (point.value - promised)):
                step = self._best_step(point, ahead)
                if step == 0.0:
                    # Nothing is gained but the bound.
                    self._record(point, bound, run)
                    break
                if step < 1.0:
                    weights = point.weights + step * (ahead.weights - point.weights)
                    machines = point.machines + step * (ahead.machines - point.machines)
                    del ahead
                    ahead = yield from self._passed(penalty, weights, machines)
                    bound = max(bound, ahead.bound(self.domain))
            point = ahead
        return point

    def _passed(
        self,
        penalty: float,
        weights: Array,
        machines: Array,
        proof: Array | None = None,
        before: HingePoint | None = None,
    ) -> Generator[Machines, HingeSums, HingePoint]:
        """A point, by a pass over the rows; its machines prove the bound unless others do."""
        origin = None if before is None else before.machines
        sums = yield Machines(self.problem.signs, machines, proof, origin)
        self._n_passes += 1
        problem = replace(self.problem, penalty=penalty)
        proof = machines if proof is None else proof
        return HingePoint(problem, weights, machines, proof, sums)

    def _target(self, point: HingePoint) -> tuple[Array, Array, Array, float]:
        """Weights and machines that minimise Φ of a point; the proof, and the minimum."""
        problem = point.problem
        loss, means, targets = problem.square_loss(point.sums.moments)
        found = self._minimized(loss, point.weights)
        # Dual variables of the square loss on features are told by coefficients, too.
        dual: Any = found.certificate.dual_point
        machines, proof = (
            np.vstack([w, targets - np.einsum("ak,ak->k", means, w)])
            for w in (found.evaluation.coefficients, dual)
        )
        promised = 0.5 * problem.penalty * found.certificate.primal
        return found.weights, machines, proof, promised

    def _minimized(self, loss: Loss, start: Array | None) -> Solution:
        tol = _INNER_SHARE * self._run.tol
        try:
            found = Newton().solve(loss, self.domain, tol=tol, start=start)
        except NotPositiveDefiniteError as error:
            raise NotPositiveDefiniteError(
                f"C={self.problem.penalty:g} is so large that 1/C is lost in the rounding errors "
                "of the features, which then have no machine: lower C."
            ) from error
        self._n_solves += found.n_inner_solves
        return found

    def _best_step(self, point: HingePoint, ahead: HingePoint) -> float:
        """The step from one point to the other at which P is least; zero if it falls at none."""
        penalized = [
            self.problem.penalized(
                point.weights + step * (ahead.weights - point.weights),
                point.coefficients + step * (ahead.coefficients - point.coefficients),
            )
            for step in STEPS
        ]
        values = np.array(penalized) + 0.5 * point.problem.penalty * ahead.sums.losses
        best = int(np.argmin(values))
        return float(STEPS[best]) if values[best] < point.value else 0.0

    def _record(self, point: HingePoint, bound: Bound, run: Run) -> bool:
        if run is self._run:
            self.passes.append(self._n_passes)
        n_solves, self._n_solves = self._n_solves, 0
        # A point is an evaluation but for its Hessian, which a record has no use for.
        return run.record(point, n_solves, bound)  # type: ignore[arg-type]

    def _solution(self) -> Solution:
        """The last point; its certificate is that of its own pass over all rows."""
        run = self._run
        n_iter, n_solves = len(run.history), run.n_inner_solves
        return Solution(run.best.weights, run.certificate, run.best, n_iter, n_solves, run.history)


def descend_together(
    blocks: RowBlocks,
    one_pass: Callable[[list[Machines]], HingePass],
    descents: Sequence[Generator[Machines, HingeSums, Solution]],
) -> list[Solution]:
    """Solutions of several descents, each pass over the rows serving all that still go on."""
    solutions: dict[int, Solution] = {}
    waiting = {k: next(descent) for k, descent in enumerate(descents)}
    while waiting:
        accumulate = one_pass(list(waiting.values()))
        found = blocks.reduce(accumulate, accumulate.merge)
        for k, sums in zip(list(waiting), found, strict=True):
            try:
                waiting[k] = descents[k].send(sums)
            except StopIteration as end:
                solutions[k] = end.value
                del waiting[k]
    return [solutions[k] for k in range(len(descents))]
