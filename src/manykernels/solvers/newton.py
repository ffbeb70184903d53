"""Outer Newton: second-order steps in weight space, the default solver.

At β the loss gives F, ``g = −∇F`` and ``Q = ∇²F`` for one factorisation of an m×m matrix. The
next point minimises the quadratic model over the whole weight domain,

    min_x  −g·(x − β) + ½ (x − β)ᵀ Q (x − β)   s.t.  x ∈ B

an n-dimensional conic program. (A loss may offer a better Q than ∇²F, see ``model_hessian``.) The
gap is tested before the Hessian is asked for, so the last iteration needs none. The start is the
minimiser of a coarse loss where there is one.

A quadratic is a poor picture of F far away: along one weight F falls like ``1/x``, so the model
sends weights to zero where F explodes, and lets small weights grow by no more than half. The
hyperbola ``r_j/(x + s_j)`` with the slope and curvature of F at β_j,

    β_j + s_j = 2g_j/Q_jj ,   r_j = g_j (β_j + s_j)²      (s_j ≥ 0, since β_j Q_jj ≤ 2g_j)

tells where the weight is heading if the others stay: to t_j, where its gain ``r_j/(t + s_j)²``
meets the price that the domain asks of that weight. With ``θ_j = (β_j + s_j)/(t_j + s_j)`` the
mean curvature of the hyperbola between β_j and t_j is ``c_j Q_jj``, ``c_j = θ_j(1 + θ_j)/2``; so
Q is replaced by ``C^½ Q C^½``, and no weight may fall below a tenth of t_j in one step. At the
solution t = β and C = I, hence convergence stays quadratic; far from it, this is what keeps the
number of factorisations small where plain Newton steps crawl.

Should F reject the full step all the same, two more things are tried. The analytic update, which
never increases F and knows nothing of Q: it helps where λ is close to rounding. Then cuts
(:mod:`~manykernels.solvers.cuts`): the planes at all points seen, rejected ones too, lie below F,
and the slope of the model gives way to the greatest of them,

    min_x  max_r (c_r − q_r·x) + ½ (x − β)ᵀ Q (x − β)   s.t.  x ∈ B

Every trial adds a plane, and the shares that planes have in the maximum give a lower bound on F,
which may prove that β is good enough where its own gap does not. That is what support vector
machines with a small C need: there F has many kinks and little curvature, and the step is that of
a bundle method with Q as its metric. And where differences of F drown in rounding, a point with
half of the gap is progress.

On a simplex most weights are zero, and where kernels are many the steps are taken on those that
can enter, see :mod:`~manykernels.solvers.active_set`.

The one-class machine is different: its F is linear along rays and falls as fast whatever the
weights. A loss that is not `hyperbolic` gets the plain quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..domains import Array, Domain, Simplex
from ..losses.base import Evaluation, Loss
from .active_set import MANY_KERNELS, walk_on_active_kernels
from .analytic import updated
from .base import NO_BOUND, Bound, Solver, Walk, certify
from .cuts import Cuts, Proof, plane
from .quadratic import minimize_above_planes, minimize_quadratic

_ARMIJO = 1e-4
_MAX_TRIALS = 16
_MAX_CUTS = 60
# Steps of the weights that are none.
_NO_STEP = 1e-12
# Curvatures shrink by this factor after so many trials, or where F fell by so much more than
# expected; and they are at most so many times the largest gain.
_SOFTER = 0.1
_PATIENCE = 5
_MORE_THAN_EXPECTED = 1.5
_STIFFEST = 1e8
# Changes of F below this fraction may be rounding and cannot be judged by a line search.
_INDISTINGUISHABLE = 1e-10
_HARDLY = 1e-7
_ROUNDING = 1e-13
_MAX_BENDING = 1e8
_LEAST_LEVEL = 1e-3
_WORTHWHILE = 0.3


@dataclass(frozen=True)
class Newton(Solver, name="newton"):
    """Outer Newton solver.

    Parameters
    ----------
    coarse_tol : float, default=1e-3
        Relative gap to which the coarse problem is solved for the start.
    """

    coarse_tol: float = 1e-3

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> None:
        if isinstance(domain, Simplex) and loss.n_kernels >= MANY_KERNELS:
            walk_on_active_kernels(self.descend, loss, domain, walk, start)
            return
        if start is None:
            start = self._coarse_start(loss, domain, walk.max_iter)
        self.descend(loss, domain, walk, start)

    def descend(self, loss: Loss, domain: Domain, walk: Walk, start: Array) -> Proof:
        """Newton steps on all kernels of `loss`; returns the best bound and how it is proved."""
        point = loss.evaluate(start)
        cuts = Cuts(_MAX_CUTS, keep_duals=True)
        found = Found(point, 1)
        proofs = [Proof.of(point, domain)]
        stiffness = 1.0
        while not walk.arrive(point, found.n_solves, found.bound):
            cuts.add(point)
            found = self._search(loss, domain, point, cuts, walk.tol, stiffness)
            if found.proof is not None:
                proofs.append(found.proof)
            if found.point is None:
                # What the trials have proved is not lost.
                walk.arrive(point, found.n_solves, found.bound)
                break
            point, stiffness = found.point, found.stiffness
            proofs = [max(*proofs, Proof.of(point, domain), key=lambda proof: proof.bound)]
        return max(proofs, key=lambda proof: proof.bound)

    def _coarse_start(self, loss: Loss, domain: Domain, max_iter: int) -> Array:
        start = domain.start(loss.n_kernels)
        if domain.start_is_optimal or loss.n_kernels == 1:
            return start
        coarse = loss.coarse()
        if coarse is None:
            return start
        return self.solve(coarse, domain, tol=self.coarse_tol, max_iter=max_iter).weights

    @staticmethod
    def _search(
        loss: Loss,
        domain: Domain,
        point: Evaluation,
        cuts: Cuts,
        tol: float,
        stiffness: float,
    ) -> Found:
        """A point that lowers F enough; or `point` itself, once it is proved good enough."""
        model = Model.at(point, domain, stiffness)
        target = model.minimizer()
        found = Found(None, 0)
        for trial in range(_MAX_TRIALS):
            moved = model.moves_to(target)
            if moved:
                candidate = loss.evaluate(target)
                found.n_solves += 1
                if improves(candidate, point, domain):
                    found.point = candidate
                    if trial == 0:
                        found.stiffness = model.revised(stiffness, candidate)
                    return found
                found.keep(candidate)
                cuts.add(candidate)
            if trial >= _PATIENCE or not moved:
                # The cuts know more by now than the curvature of a side of a kink.
                model = replace(model, quadratic=_SOFTER * model.quadratic)
            if trial == 0:
                with np.errstate(divide="ignore"):
                    log_weights = updated(np.log(point.weights), point.gains, domain)
                balanced = loss.evaluate(np.exp(log_weights))
                found.n_solves += 1
                slope = -float(point.gains @ (target - point.weights))
                if balanced.value <= point.value + _WORTHWHILE * min(slope, -_ROUNDING):
                    found.point = balanced
                    return found
                found.keep(balanced)
                cuts.add(balanced)
            target, proof = model.minimizer_above(cuts)
            if proof is not None and proof.bound > found.bound.value:
                found.proof = proof
            if certify(point, domain, tol, found.bound).exhausted:
                found.point = point
                return found
        if found.lowest is not None and found.lowest.value < point.value - point.slack:
            # Less than a step should do, but more than none.
            found.point = found.lowest
        return found


@dataclass
class Found:
    """What a search has found: a point, the inner solves it took, and what they prove of F.

    `stiffness` is the factor of curvatures for the next model.
    """

    point: Evaluation | None
    n_solves: int
    proof: Proof | None = None
    stiffness: float = 1.0
    #: The trial with the least F.
    lowest: Evaluation | None = None

    def keep(self, trial: Evaluation) -> None:
        if self.lowest is None or trial.value < self.lowest.value:
            self.lowest = trial

    @property
    def bound(self) -> Bound:
        return NO_BOUND if self.proof is None else Bound(self.proof.bound, self.proof.dual)


@dataclass(frozen=True)
class Model:
    """The quadratic model of a loss at a point, curvature bent as told in the module."""

    point: Evaluation
    domain: Domain
    quadratic: Array
    lower: Array

    @classmethod
    def at(cls, point: Evaluation, domain: Domain, stiffness: float = 1.0) -> Model:
        quadratic = point.model_hessian(certify(point, domain, 0.0).gap)
        heading, factors = _secants(point, np.diag(quadratic), domain)
        # At a kink the curvature of one side can be next to infinite: more than a solver can take.
        most = _STIFFEST * float(point.gains.max()) / float(point.weights.max())
        stiff = np.diag(quadratic) * factors**2
        factors = factors * np.sqrt(most / np.maximum(stiff, most)) if most > 0.0 else factors
        quadratic = stiffness * (factors[:, None] * quadratic * factors)
        return cls(point, domain, quadratic, np.minimum(0.1 * heading, point.weights))

    def revised(self, stiffness: float, reached: Evaluation) -> float:
        """The factor of curvatures for the next model, by how far F fell on the way here.

        Beside a kink F can fall by more than a model with the curvature of the kink allows.
        """
        step = reached.weights - self.point.weights
        expected = float(self.point.gains @ step) - 0.5 * float(step @ self.quadratic @ step)
        fell = self.point.value - reached.value
        if fell > _MORE_THAN_EXPECTED * expected > 0.0:
            return _SOFTER * stiffness
        return min(1.0, stiffness / _SOFTER)

    def moves_to(self, target: Array) -> bool:
        """Whether `target` is another point."""
        step = np.abs(target - self.point.weights).max()
        return bool(step > _NO_STEP * target.max())

    def minimizer(self) -> Array:
        """Where the model is least over the domain."""
        point = self.point
        linear = -point.gains - self.quadratic @ point.weights
        target = minimize_quadratic(linear, self.quadratic, self.domain, self.lower)
        rounding = _ROUNDING * float(point.gains @ point.weights)
        if target is None or point.gains @ (target - point.weights) <= -rounding:
            # Never worse than a step of the conditional gradient, which always descends.
            target = self.domain.maximizer(point.gains)
        return target

    def minimizer_above(self, cuts: Cuts) -> tuple[Array, Proof | None]:
        """Where the greatest of the cuts, plus the quadratic, is least; and what they prove.

        The plane at the point of the model is one of them.
        """
        constant, _ = plane(self.point)
        linear = -self.quadratic @ self.point.weights
        planes = (cuts.constants - constant, cuts.slopes)
        solved = minimize_above_planes(linear, self.quadratic, self.domain, self.lower, planes)
        if solved is None:
            return self.domain.maximizer(self.point.gains), None
        target, shares = solved
        return target, cuts.proof(shares, self.domain)


def improves(candidate: Evaluation, point: Evaluation, domain: Domain) -> bool:
    """Whether F falls enough from `point` to `candidate`, a step along its model."""
    step = candidate.weights - point.weights
    slope = -float(point.gains @ step)
    if candidate.value <= point.value + _ARMIJO * slope:
        return True
    # Close to the solution differences of F are rounding, but slopes and gaps are not. The same
    # test for the parabola through both slopes (Hager and Zhang 2005, (22)); or half of the gap,
    # which is progress where F hardly rises.
    end_slope = -float(candidate.gains @ step)
    if (
        candidate.value <= point.value + _INDISTINGUISHABLE * abs(point.value)
        and end_slope <= (2.0 * _ARMIJO - 1.0) * slope
    ):
        return True
    if candidate.value > point.value + _HARDLY * abs(point.value) + candidate.slack:
        return False
    gap, new_gap = (certify(place, domain, 0.0).gap for place in (point, candidate))
    return new_gap <= 0.5 * gap


def _secants(point: Evaluation, curvatures: Array, domain: Domain) -> tuple[Array, Array]:
    """Where each weight is heading, t, and the square roots of the factors C; see the module."""
    gains, weights = point.gains, point.weights
    if not point.hyperbolic:
        return np.zeros(len(gains)), np.ones(len(gains))
    # Without gain or curvature there is no hyperbola; these weights are left to the model.
    alive = (gains > _ROUNDING * gains.max()) & (curvatures > 0.0)
    if not alive.any():
        return np.zeros(len(gains)), np.ones(len(gains))
    gains, curvatures = np.where(alive, gains, 1.0), np.where(alive, curvatures, 1.0)
    reach = 2.0 * gains / curvatures
    shift = np.maximum(reach - weights, _ROUNDING * reach)
    reach = weights + shift
    level = float(point.weights @ point.gains)
    # Weights on kernels that do nothing would make everything else look free.
    level = max(level, _LEAST_LEVEL * domain.support(point.gains))
    heading = domain.equilibrium(gains * reach**2, shift, level)
    ratio = np.clip(reach / (heading + shift), 1.0 / _MAX_BENDING, _MAX_BENDING)
    factors = np.sqrt(0.5 * ratio * (1.0 + ratio))
    return np.where(alive, heading, 0.0), np.where(alive, factors, 1.0)
