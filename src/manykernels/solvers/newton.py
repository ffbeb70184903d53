"""Outer Newton: second-order steps in weight space, the default solver.

Each iteration minimises a quadratic model of F over the whole weight domain, an n-dimensional
conic program (:mod:`~manykernels.solvers.programs`), and tries other steps if F does not fall
enough there. The gap is tested before the Hessian is computed, so the last iteration needs none.

The start comes from a coarse loss if there is one. Many kernels on a simplex, where most weights
are zero, are solved on active sets. Above p = 1, with more kernels than samples, steps without a
model are tried first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..domains import Array, Domain, LpBall, Simplex
from ..losses.base import Evaluation, Indices, Loss
from ..utils.numerics import ACCUMULATED, ROUNDING
from .base import NO_BOUND, Bound, Run, Solver, certify, plane, start_or_uniform, weights_are_free
from .papers.descent import analytic_update
from .programs import minimize_above_planes, minimize_quadratic

# -- Cuts: planes below F, and the lower bounds proved by their convex combinations ---------------
#
# Each inner solution α_r gives a plane ``F(b) ≥ c_r − b·q_r`` with ``q_r = g(α_r)``, see
# :mod:`~manykernels.solvers.base`. With any ``y ≥ 0, Σ y_r = 1``
#
#     F(b) ≥ Σ_r y_r c_r − σ_B(Σ_r y_r q_r)   for all b ∈ B
#
# Where F has a kink at its minimum no single plane proves that it is the minimum; a convex
# combination does. As ``D(α, β) = c(α) − β·g(α)`` is concave in α, the same combination of α_r has
#
#     ᾱ = Σ_r y_r α_r :   c(ᾱ) ≥ Σ_r y_r c_r ,   g(ᾱ) ≤ Σ_r y_r q_r
#
# so ``Σ_r y_r c_r − σ_B(g(ᾱ))`` is a bound, also with the gains of kernels that are in no plane.


class Cuts:
    """Planes at the last `most` points added, or at all of them."""

    def __init__(self, most: int | None = None) -> None:
        # c, q and α of each plane.
        self._cuts: deque[tuple[float, Array, Array]] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._cuts)

    def add(self, point: Evaluation) -> None:
        """Add the plane at `point`."""
        self._cuts.append((*plane(point), point.dual))

    @property
    def constants(self) -> Array:
        """Constants c of the planes, (n_cuts,)."""
        return np.array([constant for constant, _, _ in self._cuts])

    @property
    def slopes(self) -> Array:
        """Slopes q of the planes, (n_cuts, n_kernels)."""
        return np.array([slope for _, slope, _ in self._cuts])

    def bound(self, multipliers: Array, domain: Domain) -> Bound:
        """Return the bound for y proportional to `multipliers`, which come from solvers.

        Negative multipliers count as zero; without positive or with non-finite ones there is none.
        """
        y = np.maximum(multipliers, 0.0)
        total = float(y.sum())
        if not 0.0 < total < np.inf:
            return NO_BOUND
        y = y / total
        constant = float(y @ self.constants)
        dual = sum(share * cut[2] for share, cut in zip(y, self._cuts, strict=True) if share)
        return Bound(constant - domain.support(y @ self.slopes), np.asarray(dual), constant)


# -- The quadratic model of a loss, minimised over the weight domain by a Newton step -------------
#
# At β the loss gives F, ``g = −∇F`` and ``Q = ∇²F`` (or a better Q, see ``model_hessian``) for one
# factorisation of an m×m matrix. The model is
#
#     min_x  −g·(x − β) + ½ (x − β)ᵀ Q (x − β)   s.t.  x ∈ B
#
# **Secant curvature.** A quadratic is a poor approximation of F far away: along one weight F falls
# like ``1/x``, so the model sends weights to zero where F grows without bound, and lets small
# weights grow by no more than half. The hyperbola ``r_j/(x + s_j)`` with the slope and the
# curvature of F at β_j,
#
#     β_j + s_j = 2g_j/Q_jj ,   r_j = g_j (β_j + s_j)²      (s_j ≥ 0, since β_j Q_jj ≤ 2g_j)
#
# predicts the minimiser t_j along that weight if the others stay: where its gain ``r_j/(t +
# s_j)²`` equals the price that the domain asks of the weight (``Domain.equilibrium``). With
# ``θ_j = (β_j + s_j)/(t_j + s_j)`` the mean curvature of the hyperbola between β_j and t_j is
# ``c_j Q_jj``, ``c_j = θ_j(1 + θ_j)/2``; so Q is replaced by ``C^½ Q C^½``, and no weight may
# fall below a tenth of t_j in one step. At the solution t = β and C = I, hence convergence stays
# quadratic; far from it steps are longer than plain Newton steps, and fewer.
#
# The F of a one-class machine is linear along rays instead. A loss that is not `hyperbolic` gets
# the plain quadratic.
#
# **Cuts.** Where F has kinks, the maximum ``max_r (c_r − q_r·x)`` of the planes
# above takes the place of ``−g·(x − β)``: the step of a bundle method with Q as its metric.


# "Measured" below: total of inner solves over 110 small problems, square loss and support vector
# machines at five norms, with one value changed.

# Factor by which curvatures shrink where they prove too large. Measured: 0.03 to 0.3 alike.
_SOFTER = 0.1
# Curvatures are too large where F falls by this factor more than the model expects. Measured: 3 is
# as good; 1.05 takes a third more, as no model is exact.
_MORE_THAN_EXPECTED = 1.5
# Bound on θ and 1/θ, and on curvatures relative to (largest gain)/(largest weight): at a kink they
# are huge, and the interior-point method would fail. Measured: 1e5 to 1e11 alike.
_MOST_CURVATURE = 1e8
# Gains below this fraction of the largest are rounding errors, which add up over outputs.
_NO_GAIN = 10.0 * ROUNDING
# Smallest fraction of t_j that a weight keeps in one step. Measured: 0.01 to 0.3 alike.
_LEAST_PART_KEPT = 0.1
# The price level is β·g, but at least this fraction of σ_B(g): weights on kernels without gain
# would make all others look free. Measured: 1e-5 to 0.1 alike.
_LEAST_LEVEL = 1e-3


@dataclass(frozen=True)
class Model:
    """Model at one point: `quadratic` is ``scale · C^½ Q C^½``, `lower ≤ x`."""

    point: Evaluation
    domain: Domain
    quadratic: Array
    lower: Array
    scale: float

    @classmethod
    def at(cls, point: Evaluation, domain: Domain, scale: float = 1.0) -> Model:
        quadratic = point.model_hessian(certify(point, domain, 0.0).gap)
        minimizers, factors = _secants(point, np.diag(quadratic), domain)
        most = _MOST_CURVATURE * float(point.gains.max()) / float(point.weights.max())
        curvatures = np.diag(quadratic) * factors**2
        factors = factors * np.sqrt(most / np.maximum(curvatures, most)) if most > 0.0 else factors
        quadratic = scale * (factors[:, None] * quadratic * factors)
        lower = np.minimum(_LEAST_PART_KEPT * minimizers, point.weights)
        return cls(point, domain, quadratic, lower, scale)

    def softened(self) -> Model:
        """Return the model with smaller curvatures, whose steps are longer."""
        return replace(self, quadratic=_SOFTER * self.quadratic, scale=_SOFTER * self.scale)

    def next_scale(self, reached: Evaluation) -> float:
        """Return the curvature factor of the next model, from the decrease of F up to a point."""
        step = reached.weights - self.point.weights
        expected = float(self.point.gains @ step) - 0.5 * float(step @ self.quadratic @ step)
        fell = self.point.value - reached.value
        # Beside a kink F can fall by more than a model with the curvature of the kink predicts.
        if fell > _MORE_THAN_EXPECTED * expected > 0.0:
            return _SOFTER * self.scale
        return min(1.0, self.scale / _SOFTER)

    def minimizer(self) -> Array:
        """Return the minimiser of the model over the domain."""
        point = self.point
        linear = -point.gains - self.quadratic @ point.weights
        target = minimize_quadratic(linear, self.quadratic, self.domain, self.lower)
        rounding = ROUNDING * float(point.gains @ point.weights)
        if target is None or point.gains @ (target - point.weights) <= -rounding:
            # F rises along the step, a numerical failure. It never does along the step of the
            # conditional gradient method.
            target = self.domain.maximizer(point.gains)
        return target

    def minimizer_above(self, cuts: Cuts) -> tuple[Array, Bound]:
        """Return the minimiser of the greatest cut plus the quadratic, and the proven bound."""
        constant, _ = plane(self.point)
        linear = -self.quadratic @ self.point.weights
        planes = (cuts.constants - constant, cuts.slopes)
        solved = minimize_above_planes(linear, self.quadratic, self.domain, self.lower, planes)
        if solved is None:
            return self.domain.maximizer(self.point.gains), NO_BOUND
        target, multipliers = solved
        return target, cuts.bound(multipliers, self.domain)


def _secants(point: Evaluation, curvatures: Array, domain: Domain) -> tuple[Array, Array]:
    """Return t and the diagonal of C^½, from the diagonal of Q; see the module."""
    gains, weights = point.gains, point.weights
    # Without gain or curvature there is no hyperbola; these weights get the plain quadratic.
    alive = (gains > _NO_GAIN * gains.max()) & (curvatures > 0.0)
    if not point.hyperbolic or not alive.any():
        return np.zeros(len(gains)), np.ones(len(gains))
    gains, curvatures = np.where(alive, gains, 1.0), np.where(alive, curvatures, 1.0)
    reach = 2.0 * gains / curvatures
    shift = np.maximum(reach - weights, _NO_GAIN * reach)
    reach = weights + shift
    worth, most = domain.block_sums(point.weights * point.gains), domain.supports(point.gains)
    level = np.maximum(worth, _LEAST_LEVEL * most)
    # A block without gains has no hyperbolas either.
    level = np.where(level > 0.0, level, 1.0)
    minimizers = domain.equilibrium(gains * reach**2, shift, level)
    theta = np.clip(reach / (minimizers + shift), 1.0 / _MOST_CURVATURE, _MOST_CURVATURE)
    factors = np.sqrt(0.5 * theta * (1.0 + theta))
    return np.where(alive, minimizers, 0.0), np.where(alive, factors, 1.0)


# -- One iteration of Newton's method: from a point to one where F is lower -----------------------
#
# Five kinds of step are tried in turn; the first that succeeds ends the iteration.


# Armijo's constant: the usual value (Nocedal and Wright 2006, section 3.1).
_ARMIJO = 1e-4
# Relative differences of F below this may be rounding errors, two digits more than a factorisation
# loses; slopes decide there. Measured: 1e-12 to 1e-8 alike.
_INDISTINGUISHABLE = 100.0 * ACCUMULATED
# Relative rise of F that is allowed if the gap halves: a tenth of the usual tolerance. Measured:
# 1e-9 takes 3 % more inner solves, 1e-5 as many.
_MOST_RISE = 1e-7
# Maximum number of trials in one iteration, for where rounding errors hide all progress; and the
# trial from which on curvatures shrink. Measured: half and double of either alike.
_MOST_TRIALS = 16
_TRIALS_BEFORE_SOFTENING = 5
# The analytic update is accepted if F falls by this fraction of the decrease predicted by the
# slope of the Newton step. Measured: 0.1 takes 4 % more inner solves, 0.9 takes 19 % more.
_WORTHWHILE = 0.3
# The fixed-point step is accepted if the gap falls to this fraction or less. Measured with 1000
# kernels on 30 samples and 3000 on 60: 0.3 is slower at p = 1.5,
# 0.1 at 1.25, too; from p = 2 on all are alike, ten to thirty times faster than models alone.
_SHARE_OF_FIXED_POINT = 0.6


class Search:
    """One iteration from `point`; `cuts` includes its cut, and rejected trials add theirs.

    Afterwards `n_solves` is the number of evaluations of the loss, `bound` the best lower bound
    proved by the cuts, and `next_scale` the `scale` of the curvatures of the next model.
    `fixed_point` says whether the step without a model is tried, and then if it was accepted.
    """

    def __init__(
        self,
        loss: Loss,
        domain: Domain,
        point: Evaluation,
        cuts: Cuts,
        tol: float,
        scale: float,
        *,
        fixed_point: bool = False,
    ) -> None:
        self._loss, self._domain, self._tol = loss, domain, tol
        self._point, self._cuts, self._scale = point, cuts, scale
        self._lowest: Evaluation | None = None
        self.n_solves, self.bound, self.next_scale = 0, NO_BOUND, 1.0
        self.fixed_point = fixed_point

    def run(self) -> Evaluation | None:
        """Return the next point; `point` if its gap is proved to be within `tol`; or None."""
        steps = (
            self._fixed_point_step,
            self._newton_step,
            self._analytic_step,
            self._cut_steps,
            self._lowest_trial,
        )
        return next((point for step in steps if (point := step()) is not None), None)

    def _fixed_point_step(self) -> Evaluation | None:
        """Return the point of the domain where ``b·g`` is largest if the gap falls fast.

        With many kernels g hardly depends on any one weight, and for p well above 1 these weights
        hardly depend on g, so that few such steps close the gap.
        """
        if not self.fixed_point:
            return None
        trial = self._evaluate(self._domain.maximizer(self._point.gains))
        gap, new_gap = (certify(at, self._domain, 0.0).gap for at in (self._point, trial))
        self.fixed_point = new_gap <= _SHARE_OF_FIXED_POINT * gap
        if self.fixed_point:
            return trial
        self._reject(trial)
        return None

    def _newton_step(self) -> Evaluation | None:
        """Return the minimiser of the quadratic model if F falls enough: :func:`improves`."""
        self._model = Model.at(self._point, self._domain, self._scale)
        self._target = self._model.minimizer()
        accepted = self._attempt(soften=False)
        if accepted is not None:
            self.next_scale = self._model.next_scale(accepted)
        return accepted

    def _analytic_step(self) -> Evaluation | None:
        """Try the analytic update, for λ so small that Hessians are mostly rounding error."""
        point = self._point
        with np.errstate(divide="ignore"):
            log_weights = np.log(point.weights)
        updated = self._evaluate(np.exp(analytic_update(log_weights, point.gains, self._domain)))
        promised = float(point.gains @ (self._target - point.weights))
        least = max(promised, ROUNDING * abs(point.value))
        if updated.value <= point.value - _WORTHWHILE * least:
            return updated
        self._reject(updated)
        return None

    def _cut_steps(self) -> Evaluation | None:
        """Try minimisers of the greatest cut plus the quadratic, a bundle method.

        Every rejected trial adds a cut. Curvatures shrink after some trials, as the cuts then
        describe F better than the curvature of one side of a kink. The multipliers of the cuts
        prove a lower bound, which may show that the point is good enough where its own gap does
        not. Support vector machines with a small C need this.
        """
        for trial in range(1, _MOST_TRIALS):
            if self._aim_above_cuts():
                return self._point
            accepted = self._attempt(soften=trial >= _TRIALS_BEFORE_SOFTENING)
            if accepted is not None:
                return accepted
        return self._point if self._aim_above_cuts() else None

    def _lowest_trial(self) -> Evaluation | None:
        """Return the lowest rejected trial if it lowers F at all."""
        lowest = self._lowest
        lower = lowest is not None and lowest.value < self._point.value - self._point.slack
        return lowest if lower else None

    def _aim_above_cuts(self) -> bool:
        """Find the next target; return True if the cuts prove that the point is good enough."""
        self._target, bound = self._model.minimizer_above(self._cuts)
        self.bound = max(self.bound, bound)
        return certify(self._point, self._domain, self._tol, self.bound).exhausted

    def _attempt(self, *, soften: bool) -> Evaluation | None:
        """Try the target; if F does not fall enough, soften the model when asked or stuck."""
        step = np.abs(self._target - self._point.weights).max()
        moves = step > ACCUMULATED * self._target.max()
        if moves:
            candidate = self._evaluate(self._target)
            if improves(candidate, self._point, self._domain):
                return candidate
            self._reject(candidate)
        if soften or not moves:
            self._model = self._model.softened()
        return None

    def _evaluate(self, weights: Array) -> Evaluation:
        self.n_solves += 1
        return self._loss.evaluate(weights)

    def _reject(self, trial: Evaluation) -> None:
        if self._lowest is None or trial.value < self._lowest.value:
            self._lowest = trial
        self._cuts.add(trial)


def improves(candidate: Evaluation, point: Evaluation, domain: Domain) -> bool:
    """Return True if F falls enough from `point` to `candidate`.

    Either Armijo's condition holds; or, as differences of F close to the solution are rounding
    error where slopes and gaps are not, the same condition for the parabola through both slopes
    (Hager and Zhang 2005, (22)); or the gap halves and F hardly rises.
    """
    step = candidate.weights - point.weights
    slope, end_slope = -float(point.gains @ step), -float(candidate.gains @ step)
    if candidate.value <= point.value + _ARMIJO * slope:
        return True
    equal = candidate.value <= point.value + _INDISTINGUISHABLE * abs(point.value)
    if equal and end_slope <= (2.0 * _ARMIJO - 1.0) * slope:
        return True
    if candidate.value > point.value + _MOST_RISE * abs(point.value) + candidate.slack:
        return False
    gap, new_gap = (certify(place, domain, 0.0).gap for place in (point, candidate))
    return new_gap <= 0.5 * gap


# Number of cuts kept, enough for the trials of several iterations. Each is a row of the conic
# program and holds dual variables. Measured: 20 to 200 alike.
_MOST_CUTS = 60
# Doublings of the rows from a coarse problem to all of them. Minimisers are taken to move equally
# far with each, as they do where λ is small; where λ is large they move less. Measured on three
# data sets of 2000 rows: 49 inner solves in 18 problems with p from 1.5 to 4 without this step, 39
# with it; in 12 problems with smaller p 37 and 36, less than the halves cost.
_DOUBLINGS = 2.0
_LEAST_NORM_EXTRAPOLATED = 1.5


@dataclass(frozen=True)
class Newton(Solver, name="newton"):
    """Newton steps on the kernel weights, the default solver.

    Parameters
    ----------
    coarse_tol : float, default=1e-4
        Relative gap of the coarse problem that gives the start.
    on_demand : bool, optional
        Whether an estimator computes kernels on demand instead of storing them, at p = 1: a few
        at a time, all of them once per round. By default it does so, with a warning, if they
        would take more than half of the available memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA, rbf_grid
    >>> model = MKFDA(rbf_grid([0.5, 2, 8]), p=1, solver="newton").fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged, model.n_inner_solves_ < 10
    (True, True)
    """

    coarse_tol: float = 1e-4
    on_demand: bool | None = None

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> None:
        many = loss.n_kernels >= MANY_KERNELS or loss.spec.on_demand
        if isinstance(domain, Simplex) and many:
            minimize_on_active_sets(self.descend, loss, domain, run, start)
            return
        if start is None and weights_are_free(loss, domain):
            start = self._coarse_start(loss, domain, run.max_iter)
        self.descend(loss, domain, run, start_or_uniform(start, loss, domain))

    def _coarse_start(self, loss: Loss, domain: Domain, max_iter: int) -> Array | None:
        """Return weights near the minimiser, from a loss on some of the rows if there is one.

        Minimisers move with the number of rows. The one on a sample minus the mean of those on its
        halves, which have much of its noise in common, shows where to.
        """
        sample = loss.coarse()
        if sample is None:
            return None
        options: Any = {"tol": self.coarse_tol, "max_iter": max_iter}
        weights = self.solve(sample, domain, **options).weights
        smooth = isinstance(domain, LpBall) and domain.p >= _LEAST_NORM_EXTRAPOLATED
        halves = sample.halves() if smooth else ()
        if not halves:
            return weights
        solutions = [self.solve(half, domain, start=weights, **options) for half in halves]
        of_halves = np.mean([solution.weights for solution in solutions], axis=0)
        moved = weights + _DOUBLINGS * (weights - of_halves)
        return domain.onto_boundary(np.maximum(moved, _LEAST_PART_KEPT * weights))

    def descend(self, loss: Loss, domain: Domain, run: Run, start: Array) -> None:
        """Take Newton steps on all kernels of `loss`."""
        point = loss.evaluate(start)
        cuts = Cuts(_MOST_CUTS)
        n_solves, scale, bound = 1, 1.0, NO_BOUND
        # A Hessian costs more than an inner solve, and the program with it much more.
        many = loss.n_kernels >= max(MANY_KERNELS, loss.spec.n_samples)
        fixed_point = many and isinstance(domain, LpBall)
        while not run.record(point, n_solves, bound):
            cuts.add(point)
            search = Search(loss, domain, point, cuts, run.tol, scale, fixed_point=fixed_point)
            following = search.run()
            n_solves, scale, bound = search.n_solves, search.next_scale, search.bound
            fixed_point = search.fixed_point
            if following is None:
                # The bound proved by the trials still counts.
                run.record(point, n_solves, bound)
                break
            point = following


# -- Active sets: the few kernels that can have a weight ------------------------------------------
#
# On a simplex, ``Σ_j r_j β_j ≤ 1`` with prices r_j, few kernels have a weight at the minimum: some
# minimiser has at most one more than there are dual variables. So F is minimised over an active
# set W of kernels, the others at zero, and the dual point α that proves the minimum over W (a
# convex combination of inner solutions where F has a kink),
#
#     F(b) ≥ c(α) − max_{j ∈ W} g_j(α)/r_j   for all b with weights on W only,
#
# proves a lower bound over all kernels: the same with the maximum over all j, one pass over the
# kernels. If that is within the tolerance, the weights are certified for all kernels. If not, a
# kernel outside W has the largest gain per price. The next W has the kernels that have a weight
# now and those with the largest gains per price. The last solution is feasible there, hence F
# never rises from round to round.
#
# With kernels on demand (:mod:`manykernels.losses.on_demand`), equal weights at the start would
# take a sweep to add the kernels up. The first W is a sample of them instead, and as a sweep costs
# more than a round, rounds have more kernels.


#: Minimum number of kernels for active sets. They take more inner solves than Newton steps on all
#: kernels, but smaller quadratic programs, whose time grows with the cube of their size. Measured:
#: twice the inner solves; equal times at 75 to 100 kernels on 30 or 100 samples, about 200 on 300.
MANY_KERNELS = 150
# Number of kernels of largest gains that join a round. Measured: 20 and 100 take 8 % more solves.
_CANDIDATES = 50
# The same for kernels on demand, where a round costs less than the sweep that it saves, and the
# size of their matrices up to which there are more than the candidates above: 1 GiB of float64.
_CANDIDATES_ON_DEMAND = 300
_ENTRIES_ON_DEMAND = 2**27
# A round is solved to this fraction of the gap over all kernels, as the next active set differs
# (measured: 0.01 takes 10 % fewer inner solves, 0.5 takes 19 % more), but no further than to this
# fraction of the tolerance, which leaves room for the gains of the other kernels (0.1 to 0.9
# alike).
_PART_OF_GAP = 0.1
_PART_OF_TOL = 0.3
# Weights that tend to zero are set to zero at the end of a round if they have at most this
# fraction of the budget: to first order that lowers F, whose other kernels have larger gains.
_LEAST_SETTLED = 0.99

#: Minimises a loss over a domain, from some weights.
Descent = Callable[[Loss, Domain, Run, Array], None]


def minimize_on_active_sets(
    descend: Descent, loss: Loss, domain: Simplex, run: Run, start: Array | None
) -> None:
    """Minimise `loss` over `domain`; a round on one active set is an outer iteration."""
    solve = partial(_solve_round, descend, loss, domain, run.max_iter)
    n_solves = 1
    if start is None and loss.spec.on_demand:
        start, inner = solve(sampled_kernels(loss), np.zeros(loss.n_kernels), _PART_OF_GAP)
        n_solves += inner.n_inner_solves
    point = loss.evaluate(start_or_uniform(start, loss, domain))
    gains, bound = point.gains, NO_BOUND
    # A start with weights on most kernels does not show which ones matter.
    weighted = np.flatnonzero(point.weights)
    weighted = weighted if len(weighted) < loss.n_kernels // 2 else weighted[:0]
    active, tol = weighted[:0], np.inf
    while not run.record(point, n_solves, bound):
        last_active, last_tol = active, tol
        active = active_kernels(loss, domain, weighted, gains)
        tol = max(_PART_OF_TOL * run.tol, _PART_OF_GAP * run.certificate.rel_gap)
        if np.array_equal(active, last_active) and tol >= last_tol:
            # The last descent has missed its tolerance on the same kernels; this one would too.
            break
        weights, inner = solve(active, point.weights, tol)
        weighted = np.flatnonzero(weights)
        dual = inner.bound.dual
        if dual is not None:
            loss.prefetch_gains(dual)
        point = loss.evaluate(weights)
        gains, n_solves, bound = point.gains, 1 + inner.n_inner_solves, NO_BOUND
        if dual is not None and not certify(point, domain, run.tol).exhausted:
            gains = loss.gains_at(dual)
            bound = Bound(inner.bound.constant - domain.support(gains), dual)


def _solve_round(
    descend: Descent,
    loss: Loss,
    domain: Simplex,
    max_iter: int,
    active: Indices,
    weights: Array,
    tol: float,
) -> tuple[Array, Run]:
    """Descend over the kernels `active` to the relative gap `tol`, from their `weights`."""
    face = domain.restricted(active)
    inner = Run(face, tol, max_iter)
    held = weights[active]
    begin = face.onto_boundary(held) if held.any() else face.start(len(active))
    descend(loss.restricted(active), face, inner, begin)
    best = inner.best
    # A descent that ends early may leave small weights on kernels that are about to lose them.
    settled = face.settle(best.weights, best.gains)
    if face.gauge(settled) < _LEAST_SETTLED * face.gauge(best.weights):
        settled = best.weights
    spread = np.zeros(loss.n_kernels)
    spread[active] = face.onto_boundary(settled)
    return spread, inner


def active_kernels(loss: Loss, domain: Simplex, weighted: Indices, gains: Array) -> Indices:
    """Return the kernels with a weight, or with one of the largest gains per price; sorted."""
    gains_per_price = gains / domain.prices(len(gains))
    number = min(_number_of_candidates(loss), len(gains))
    best = np.argpartition(-gains_per_price, number - 1)[:number]
    return _with_regularization(loss, np.union1d(weighted, best))


def sampled_kernels(loss: Loss) -> Indices:
    """Return as many kernels as join a round, spread evenly over all."""
    number = min(_number_of_candidates(loss), loss.n_kernels)
    spread = np.linspace(0, loss.n_kernels - 1, number).astype(np.intp)
    return _with_regularization(loss, np.unique(spread))


def _number_of_candidates(loss: Loss) -> int:
    if not loss.spec.on_demand:
        return _CANDIDATES
    affordable = _ENTRIES_ON_DEMAND // loss.spec.n_samples**2
    return max(_CANDIDATES, min(_CANDIDATES_ON_DEMAND, affordable))


def _with_regularization(loss: Loss, kernels: Indices) -> Indices:
    """Add a learnt regularisation: at zero weight the inner problem may have no solution."""
    return np.union1d(kernels, [0]) if loss.spec.learns_reg else kernels
