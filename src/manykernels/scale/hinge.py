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
is minimised over weights, coefficients and biases without a pass; its free bias amounts to
centring by the means of I. The minimiser is the next point if P falls there by a part of the
predicted decrease. If not, P falls on the way: its slope there is the slope of the convex Φ,
``Φ(minimiser) − P < 0`` or less. The same pass over the rows has computed the losses on the way.
So P never rises. With fixed weights this is the method of Keerthi and DeCoste (2005), which
ends at the minimum once I no longer changes.

**Large C.** Few rows are active where C is large, and a step predicts them badly. The
minimum for a smaller C is a better start; the sums of a pass do not depend on C.

**Bounds.** With ``α_i = C c_i y_i max(0, 1 − y_i f_i)``, whose positive and negative parts are
multiplied by two numbers such that Σ_i α_i = 0,

    D(α, β) = Σ_i |α_i| − Σ_i α_i²/(2 C c_i) − Σ_j β_j g_j ,   g_j = ½‖Z_jᵀα‖²

is a lower bound on F(β) at all weights, from all rows, active or not. So is D of any other f. The
best f has the dual variables that prove the minimum of Φ: near the minimum of P the two
agree; at p = 1 it is often a combination of machines at several weights. Each pass computes
P, D and g, so that each point has a certificate.

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
from numpy.typing import NDArray

from ..domains import Domain
from ..losses.base import DualPoint, Loss
from ..losses.composed import SummedLoss
from ..losses.features import FeatureLoss, FeatureSums
from ..losses.square import NotPositiveDefiniteError
from ..solvers import Newton
from ..solvers.base import Bound, Observer, Run, Solution
from ..utils.numerics import EPS
from .features import FeatureMap
from .moments import ClassTargets, Moments, augmented, naming_block, weights_of
from .rows import Block, RowBlocks

# -- One pass over rows for machines with squared hinge loss on explicit features -----------------
#
# A machine has coefficients w of the features z, and a bias b. With outputs ``f_i = z_i·w + b``,
# classes ``y_i = ±1`` and sample weights c_i, a pass adds up
# the sums
#
#     Q = Σ_i c_i s_i² , A = Σ_i c_i s_i , R = Σ_i c_i y_i s_i z_i , s_i = max(0, 1 − y_i f_i)
#     M = Σ_{i ∈ I} c_i a_i a_iᵀ ,   a = (z, 1, y) ,   I = {i : s_i > 0}, the active rows
#
# Q, A and R for each side, ``y = −1`` and ``y = +1``, belong to the machine that proves a
# bound, which may be another one. Where a step leads from one machine to another, the losses Q of
# machines on the line between the two are added up as well: their outputs are between the
# outputs of both. Features are centred and scaled as the kernels are, which keeps M and R free
# of a large common offset.


Array = NDArray[np.float64]

#: Steps from one machine to another at which losses are added up, the whole step first, each half
#: as long as the one before. At C = 1e5 steps of less than a thousandth are needed; a millionth
#: moves nothing. Two steps for each of these take as many passes.
STEPS: Array = np.array([0.5**k for k in range(21)])


@dataclass(frozen=True)
class Machines:
    """Coefficients of machines that share kernel weights, for one pass over the rows.

    Attributes
    ----------
    signs : ndarray of shape (n_classes, K)
        y of the samples of each class for each of the K machines.
    coefficients : ndarray of shape (D + 1, K)
        w and, in the last row, b.
    proof : ndarray of shape (D + 1, K) or None
        Machines that prove the bound, if different.
    origin : ndarray of shape (D + 1, K) or None
        Machines before the step, if losses on the line between both are needed.
    """

    signs: Array
    coefficients: Array
    proof: Array | None = None
    origin: Array | None = None


@dataclass
class HingeSums:
    """Sums of one pass for some machines.

    Attributes
    ----------
    moments : list of Moments
        M of every machine.
    losses : ndarray of shape (n_steps,)
        Q of all machines together at each of :data:`STEPS`, or at the whole step alone.
    squares, totals : ndarray of shape (2, K)
        Q and A of the machines that prove a bound by side, ``y = −1`` first.
    images : ndarray of shape (2, D, K)
        Their R by side.
    reach : float
        ``Σ_ik c_i s_ik (1 + |b_k| + ‖z_i‖‖w_k‖)``: how large the terms of s are, for the
        rounding error of Q.
    """

    moments: list[Moments]
    losses: Array
    squares: Array
    totals: Array
    images: Array
    reach: float = 0.0

    @classmethod
    def none(cls, machines: Machines) -> HingeSums:
        """Return zero sums."""
        size, K = machines.coefficients.shape
        n_steps = 1 if machines.origin is None else len(STEPS)
        return cls(
            [Moments.none(size - 1, 1) for _ in range(K)],
            np.zeros(n_steps),
            np.zeros((2, K)),
            np.zeros((2, K)),
            np.zeros((2, size - 1, K)),
        )

    def add(self, machines: Machines, columns: Array, labels: np.ndarray, weights: Array) -> None:
        """Add rows; `columns` (D + 2, n) are the vectors a, whose entry y is written here."""
        D = len(columns) - 2
        features, w = columns[: D + 1], machines.coefficients
        y = np.ascontiguousarray(machines.signs[labels].T)
        outputs = w.T @ features
        if machines.origin is not None:
            before = machines.origin.T @ features
            for k, step in enumerate(STEPS):
                self.losses[k] += _loss(y, before + step * (outputs - before), weights)
        else:
            self.losses[0] += _loss(y, outputs, weights)
        slacks = np.maximum(0.0, 1.0 - y * outputs)
        weighted = slacks * weights
        proof = slacks
        if machines.proof is not None:
            proof = np.maximum(0.0, 1.0 - y * (machines.proof.T @ features))
        for side, members in enumerate((y < 0.0, y > 0.0)):
            weighted_slacks = np.where(members, proof * weights, 0.0)
            self.totals[side] += weighted_slacks.sum(axis=1)
            self.squares[side] += np.einsum("ki,ki->k", weighted_slacks, proof)
            self.images[side] += columns[:D] @ (weighted_slacks * y).T
        lengths = np.sqrt(np.einsum("ai,ai->i", columns[:D], columns[:D]))
        sizes = 1.0 + np.abs(w[D])[:, None] + np.outer(np.linalg.norm(w[:D], axis=0), lengths)
        self.reach += float(np.vdot(weighted, sizes))
        for k, moments in enumerate(self.moments):
            active = np.flatnonzero(weighted[k] > 0.0)
            if len(active):
                columns[D + 1] = y[k]
                moments.add(np.take(columns, active, axis=1) * np.sqrt(weights[active]))

    def __add__(self, other: HingeSums) -> HingeSums:
        pairs = zip(self.moments, other.moments, strict=True)
        return HingeSums(
            [first + second for first, second in pairs],
            self.losses + other.losses,
            self.squares + other.squares,
            self.totals + other.totals,
            self.images + other.images,
            self.reach + other.reach,
        )


def _loss(y: Array, outputs: Array, weights: Array) -> float:
    """Return the sum of Q over all machines."""
    slacks = np.maximum(0.0, 1.0 - y * outputs)
    return float(((slacks * slacks) @ weights).sum())


@dataclass(frozen=True)
class HingePass:
    """Accumulator of the sums of several groups of machines over blocks of rows.

    Attributes
    ----------
    features : FeatureMap
    origin, factors : ndarray of shape (D,)
        Offsets subtracted from the features, and factors applied afterwards.
    targets : ClassTargets
        Classes, and their factors of the sample weights.
    groups : list of Machines
    """

    features: FeatureMap
    origin: Array
    factors: Array
    targets: ClassTargets
    groups: list[Machines]

    def __call__(self, state: list[HingeSums] | None, block: Block) -> list[HingeSums]:
        """Add one block to the sums; `state` is changed in place."""
        if state is None:
            state = [HingeSums.none(machines) for machines in self.groups]
        with naming_block(block):
            block = self.targets.ignoring_weightless(block)
            assert block.y is not None
            columns = augmented(self.features, self.origin, block, 1)
            labels, weights = self.targets.labels(block.y), weights_of(block, self.targets)
        columns[:-2] *= self.factors[:, None]
        weights = np.ones(len(block)) if weights is None else weights
        for machines, sums in zip(self.groups, state, strict=True):
            sums.add(machines, columns, labels, weights)
        return state

    def merge(self, first: list[HingeSums], second: list[HingeSums]) -> list[HingeSums]:
        """Return the sums over the rows of both."""
        return [left + right for left, right in zip(first, second, strict=True)]


# Relative gap of the minimum of Φ as a fraction of `tol`: it becomes a part of the gap of P, and
# closing it takes no pass.
_INNER_SHARE = 0.1
# Fraction of the predicted decrease that P has to reach (Nocedal and Wright 2006, 3.1).
_ARMIJO = 1e-4
# Up to this C, in units of the inverse of the mean squared length of samples, C is not large.
# Above it, C grows by a factor at a time, and each but the last is solved to a relative gap that
# leaves the rest to the next one. Measured on 16 fits at each C (10 kernels, 1500 rows, two and
# four classes, p of 1 and 2): 10, 15, 24 and 38 passes in the mean at C = 100, 1e3, 1e4 and 1e5;
# without continuation 10, 17, more than 40 and more than 100, as some do not end.
_EASY = 100.0
_GROWTH = 10.0
_EARLY_TOL = 0.5


@dataclass(frozen=True)
class HingeProblem:
    """Problem of machines that share kernel weights, without its rows.

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
        """Sum values (D, K) over the features of each kernel and over machines."""
        sums = np.bincount(self.kernel_of, values.sum(axis=1), self.n_kernels)
        return np.asarray(sums, dtype=np.float64)

    def penalized(self, weights: Array, w: Array) -> float:
        """Return ``½ Σ_j ‖w_j‖²/β_j`` over the kernels with positive weight."""
        squares = self.by_kernel(w * w)
        terms = np.divide(squares, weights, where=weights > 0.0, out=np.zeros_like(squares))
        return 0.5 * float(terms.sum())

    def square_loss(self, moments: list[Moments]) -> tuple[Loss, Array, Array]:
        """Return ``2Φ/C`` and the means of features (D, K) and targets (K,) over active rows.

        The list of moments is emptied.
        """
        losses, means, targets = [], [], []
        while moments:
            active = moments.pop(0)
            if active.n_rows == 0:
                # No row is active, and the minimum of Φ is zero, as with one row of zeros.
                active.matrix[active.n_features, active.n_features] = 1.0
            centred = active.centred()
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

    `machines` are w and, in the last row, b, (D + 1, K). `proof` are the machines that give the
    variables.
    """

    problem: HingeProblem
    weights: Array
    machines: Array
    proof: Array
    sums: HingeSums = field(repr=False)

    @property
    def coefficients(self) -> Array:
        """Coefficients w, (D, K)."""
        return self.machines[:-1]

    @property
    def biases(self) -> Array:
        """Biases b of all machines."""
        return self.machines[-1]

    @property
    def dual(self) -> Array:
        """Machines w and b that give the dual variables α, (D + 1, K)."""
        return self.proof

    @cached_property
    def value(self) -> float:
        """Primal objective P."""
        penalized = self.problem.penalized(self.weights, self.coefficients)
        return penalized + 0.5 * self.problem.penalty * float(self.sums.losses[0])

    @cached_property
    def _balance(self) -> Array:
        """Factors of the two sides that make their totals of α equal, (2, K)."""
        below, above = self.sums.totals
        # If one side has no α, the α of the other side become zero, too.
        both, none = (below > 0.0) & (above > 0.0), np.zeros((2, len(below)))
        ratios = np.divide([above, below], [below, above], where=both, out=none)
        balance: Array = np.sqrt(ratios)
        return balance

    @cached_property
    def _images(self) -> Array:
        """Products Zᵀα, (D, K)."""
        return self.problem.penalty * np.einsum("sk,sak->ak", self._balance, self.sums.images)

    @cached_property
    def dual_point(self) -> DualPoint:
        """Dual objective D of α."""
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
        """Gap ``P − D(α, β)``."""
        point = self.dual_point
        return self.value - (point.linear - point.quadratic - float(self.weights @ point.gains))

    @property
    def rounding(self) -> float:
        """Errors of the losses, which are differences of terms, and of the gains.

        Errors of features, which are independent, change P by ``Σ_i α_i Σ_a δz_ia w_a``.
        """
        problem = self.problem
        error = EPS * problem.penalty * self.sums.reach + float(self.weights @ self.gain_errors)
        if problem.errors is None:
            return error
        length = problem.penalty * float(np.sqrt(self.sums.losses[0]))
        return error + length * float((problem.errors @ np.abs(self.coefficients)).sum())

    @cached_property
    def gain_errors(self) -> Array:
        """Error of ``½‖Z_jᵀα‖²``, from sums of terms ``|z_ia||α_i|``.

        These add up to at most ``√(Σ_i c_i z_ia²) √(Σ_i α_i²/c_i)``.
        """
        lengths = self.problem.penalty * np.sqrt(
            (self._balance**2 * self.sums.squares).sum(axis=0)
        )
        errors = EPS * np.outer(self.problem.roots, lengths)
        return self.problem.by_kernel((np.abs(self._images) + 0.5 * errors) * errors)

    def bound(self, domain: Domain) -> Bound:
        """Return the lower bound on the minimum over a domain proved by multiples of α."""
        return Bound(self.dual_point.lower_bound(domain.support), self.dual)


class Descent:
    """Minimisation of P over a domain of weights, from a first point.

    Attributes
    ----------
    passes : list of int
        Number of passes up to each point of the history.
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
        """Yield machines, receive their sums over the rows, and return the solution.

        ``start(C)`` returns the square loss with all rows active, whose minimiser is the first
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
        """Return the weights and machines of the first point."""
        solution = self._minimized(loss, None)
        return solution.weights, np.vstack([solution.evaluation.coefficients, biases])

    def _penalties(self) -> list[float]:
        """Return the sequence of C to solve for, each from the solution of the previous one."""
        C, start = self.problem.penalty, self.domain.start(self.problem.n_kernels)
        excess = C * float(start @ self.problem.sizes) / _EASY
        n_early = int(np.ceil(np.log(excess) / np.log(_GROWTH))) if excess > 1.0 else 0
        return [C / _GROWTH**k for k in range(n_early, -1, -1)]

    def _descended(
        self, point: HingePoint, run: Run
    ) -> Generator[Machines, HingeSums, HingePoint]:
        """Take steps from a point until the run stops, or no step lowers P."""
        penalty, bound = point.problem.penalty, point.bound(self.domain)
        while not self._record(point, bound, run):
            weights, machines, proof, promised = self._target(point)
            ahead = yield from self._passed(penalty, weights, machines, proof, point)
            bound = ahead.bound(self.domain)
            fall = point.value - ahead.value
            if not (fall > 0.0 and fall >= _ARMIJO * (point.value - promised)):
                step = self._best_step(point, ahead)
                if step == 0.0:
                    # Only the bound has improved.
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
        """Return a point after a pass over the rows; without `proof` its machines prove it."""
        origin = None if before is None else before.machines
        sums = yield Machines(self.problem.signs, machines, proof, origin)
        self._n_passes += 1
        problem = replace(self.problem, penalty=penalty)
        proof = machines if proof is None else proof
        return HingePoint(problem, weights, machines, proof, sums)

    def _target(self, point: HingePoint) -> tuple[Array, Array, Array, float]:
        """Return weights and machines that minimise Φ at a point, the proof, and the minimum."""
        problem = point.problem
        loss, means, targets = problem.square_loss(point.sums.moments)
        solution = self._minimized(loss, point.weights)
        # The dual variables of the square loss on features are coefficients, too.
        dual: Any = solution.certificate.dual_point
        machines, proof = (
            np.vstack([w, targets - np.einsum("ak,ak->k", means, w)])
            for w in (solution.evaluation.coefficients, dual)
        )
        promised = 0.5 * problem.penalty * solution.certificate.primal
        return solution.weights, machines, proof, promised

    def _minimized(self, loss: Loss, start: Array | None) -> Solution:
        tol = _INNER_SHARE * self._run.tol
        try:
            solution = Newton().solve(loss, self.domain, tol=tol, start=start)
        except NotPositiveDefiniteError as error:
            raise NotPositiveDefiniteError(
                f"C={self.problem.penalty:g} is so large that 1/C is lost in the rounding errors "
                "of the features, so that no machine can be computed: lower C."
            ) from error
        self._n_solves += solution.n_inner_solves
        return solution

    def _best_step(self, point: HingePoint, ahead: HingePoint) -> float:
        """Return the step between two points with the smallest P; zero if P falls at none."""
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
        # A point is an evaluation without Hessian, which a record does not need.
        return run.record(point, n_solves, bound)  # type: ignore[arg-type]

    def _solution(self) -> Solution:
        """Return the last point, with the certificate of its own pass over all rows."""
        run = self._run
        n_iter, n_solves = len(run.history), run.n_inner_solves
        return Solution(run.best.weights, run.certificate, run.best, n_iter, n_solves, run.history)


def descend_together(
    blocks: RowBlocks,
    one_pass: Callable[[list[Machines]], HingePass],
    descents: Sequence[Generator[Machines, HingeSums, Solution]],
) -> list[Solution]:
    """Run several descents together: each pass over the rows serves all unfinished ones."""
    solutions: dict[int, Solution] = {}
    waiting = {k: next(descent) for k, descent in enumerate(descents)}
    while waiting:
        accumulate = one_pass(list(waiting.values()))
        all_sums = blocks.reduce(accumulate, accumulate.merge)
        for k, sums in zip(list(waiting), all_sums, strict=True):
            try:
                waiting[k] = descents[k].send(sums)
            except StopIteration as end:
                solutions[k] = end.value
                del waiting[k]
    return [solutions[k] for k in range(len(descents))]
