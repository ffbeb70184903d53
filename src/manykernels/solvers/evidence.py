"""Kernel weights and λ of largest evidence, without a norm, a grid or folds.

A regression on centred kernels is the posterior mean of a Gaussian process with covariance
``A = γ_0 I + Σ_j γ_j K_j``, with weights ``γ_j / Σγ`` and ``λ = γ_0 / Σγ``. The evidence is the
likelihood of the targets H, r columns, under that process. Up to constants, −2 times its
logarithm on the complement of the constant vector (restricted maximum likelihood) is

    E(γ) = tr(Hᵀ A⁻¹ H) + r log|A|₊,   γ ≥ 0
    −∂E/∂γ_j = g_j − z_j,   g_j = tr(aᵀ K_j a),   z_j = r tr(A⁻¹ K_j)₊,   a = A⁻¹ H

with ``K_0 = I``. The first term falls as kernels are added, as the objective of a given norm does;
the second one is the price of a rich kernel.

**Steps.** The first term is convex and the second one concave. The steps are those of Newton's
method with the *average information* ``tr(aᵀ K_i A⁻¹ K_j a)`` as the matrix of second derivatives
(Gilmour, Thompson and Cullis, 1995), subject to γ ≥ 0; a step that does not lower E is shortened.
If it has to be very short, ``γ_j ← γ_j √(g_j/z_j)`` follows, which never raises E.

**Certificate.** The tangent of the concave term at γ gives an upper bound on E that is convex and
touches it at γ: ``tr(Hᵀ A(b)⁻¹ H) + z·b``, whose minimum over b ≥ 0 is the joint learning of λ and
weights of Ye et al. (2008), section 4, with z in the place of traces. By
``tr(Hᵀ A⁻¹ H) ≥ 2 tr(HᵀU) − tr(UᵀAU)``, any U with ``tr(UᵀK_jU) ≤ z_j`` for all j proves that this
minimum is at least ``2 tr(HᵀU)``. With ``U = a / √(max_j g_j/z_j)``,

    gap = tr(HᵀA⁻¹H) + z·γ − 2 tr(HᵀU),

which is zero exactly at stationary points of E: ``g_j = z_j`` where γ_j > 0, and ``g_j ≤ z_j``
elsewhere. E is not convex, so that it may have several: the best of three starts is returned.

**Equal samples.** Equal rows with equal targets would be taken as evidence that there is no noise.
They count as one row, with the sum of their sample weights.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, optimize

from ..domains import Array, Domain
from ..losses.base import Certificate, Loss
from ..losses.features import FeatureLoss
from ..losses.square import NotPositiveDefiniteError, SquareLoss
from ..utils.numerics import ACCUMULATED, EPS, TINY
from ..utils.storable import storable
from .base import Observer, Problem, Progress, Solution, Solver, one_bound, refuse_unfit

# Ratios of signal to noise to start from. On forty tables two in three searches from these end at
# the same point, and the others at one with hardly another likelihood.
_RATIOS = (0.1, 1.0, 10.0)
# Least noise, as a share of the sum of the kernel weights. Kernels have unit variance.
_LEAST_NOISE = 1e-4
# Least weight of every kernel, as a share of the noise, if none of them has a use.
_LEAST_SIGNAL = 1e-8
# Steps are shortened by this factor, at most this often.
_SHORTER, _MOST_CUTS = 0.3, 3


def _square_loss(solver: Solver, problem: Problem) -> str | None:
    """Require the square loss, on stored kernels or on features, with λ to be learnt here."""
    kind, spec = problem.spec.kind, problem.spec
    if not issubclass(kind, SquareLoss | FeatureLoss) or spec.learns_reg:
        return "works for the square loss with a number for reg only"
    return None


class Evidence(Solver):
    """Weights and λ of largest evidence, see the module docstring.

    The weights sum to one, whatever the domain. :meth:`solve` sets λ as the `reg` of the loss.

    Parameters
    ----------
    distinct : callable, default=copy
        Returns a copy of a loss, whose equal rows with equal targets are one row.
    """

    name = "evidence"
    needs = (_square_loss, one_bound)
    default_max_iter = 300  # of all starts together

    _minimize = None  # type: ignore[assignment]  # only called by Solver.solve, overridden below

    def __init__(self, distinct: Callable[[Any], Any] = copy) -> None:
        self.distinct = distinct

    def solve(
        self,
        loss: Loss,
        domain: Domain,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        start: Array | None = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Return the weights of largest evidence; see :meth:`Solver.solve`."""
        refuse_unfit(self, Problem(loss.spec, domain, tol))
        problem = _Problem(self.distinct(loss))
        if not loss.evaluate(np.ones(loss.n_kernels)).value > 0.0:
            return _equal_weights(loss, tol)
        limit = self.default_max_iter if max_iter is None else max_iter
        run = _Run(tol, limit, observer)
        ends = [problem.descend(problem.start(ratio), run) for ratio in _RATIOS if not run.stopped]
        best = min(ends, key=lambda point: point.value)
        loss.reg = best.reg  # type: ignore[attr-defined]
        evaluation = loss.evaluate(best.weights)
        run.n_inner_solves = problem.n_evaluations + 1
        certificate = best.certificate(tol)
        run.history[-1] = Progress(len(run.history) - 1, run.n_inner_solves, certificate)
        n_iter = len(run.history)
        return Solution(
            best.weights, certificate, evaluation, n_iter, run.n_inner_solves, run.history
        )


def _equal_weights(loss: Any, tol: float) -> Solution:
    """Return the solution for targets that are constant, so that any weights predict them."""
    evaluation = loss.evaluate(np.full(loss.n_kernels, 1.0 / loss.n_kernels))
    certificate = EvidenceCertificate(0.0, 0.0, 0.0, tol, 0.0)
    history = [Progress(0, 1, certificate)]
    return Solution(evaluation.weights, certificate, evaluation, 1, 1, history)


@storable
@dataclass(frozen=True)
class EvidenceCertificate(Certificate):
    """Bound on what a convex step can gain; zero at stationary points of the evidence.

    `primal` is the convex upper bound of the module docstring at the weights, up to a constant,
    and `dual` a lower bound on its minimum over all weights and λ.
    """

    @property
    def claim(self) -> str:
        """Statement proved by the gap."""
        return (
            "The weights and reg are a stationary point of the evidence: no step that replaces "
            "its concave part by a tangent lowers −2 log evidence by more than `gap`. The "
            "evidence is not convex: it is the best of three starts, but need not be the largest."
        )

    @property
    def message(self) -> str:
        """Status in a sentence."""
        if self.status == "certified":
            return (
                f"The evidence is stationary: no convex step gains more than {self.rel_gap:.1e} "
                f"of the objective, within tol={self.tol:g}."
            )
        return f"The relative gap of a convex step is {self.rel_gap:.1e}, above tol={self.tol:g}."


class _Run:
    """History of the points of all searches, whose observer may end them."""

    def __init__(self, tol: float, max_iter: int, observer: Observer | None) -> None:
        self.tol, self.max_iter, self.observer = tol, max_iter, observer
        self.history: list[Progress] = []
        self.n_inner_solves = 0
        self.stopped = False

    def record(self, point: _Point, n_inner_solves: int) -> bool:
        """Record a point; return True to stop, by the observer or after `max_iter` steps."""
        progress = Progress(len(self.history), n_inner_solves, point.certificate(self.tol))
        self.history.append(progress)
        asked = self.observer is not None and self.observer(progress)
        self.stopped = bool(asked) or progress.iteration >= self.max_iter
        return self.stopped


@dataclass
class _Point:
    """E at one point, and its derivatives once they are computed.

    `excess` are the coordinates: the noise beyond its least value, then one weight per kernel.
    """

    excess: Array
    noise: float
    value: float
    fit: float
    evaluation: Any = field(repr=False)
    gains: Array | None = None
    prices: Array | None = None
    curvature: Array | None = field(default=None, repr=False)

    @property
    def weights(self) -> Array:
        weights: Array = self.excess[1:] / self.excess[1:].sum()
        return weights

    @property
    def reg(self) -> float:
        return float(self.noise / self.excess[1:].sum())

    @property
    def ratios(self) -> Array:
        """``g_j / z_j``; of kernels without variance, one."""
        assert self.gains is not None
        assert self.prices is not None
        zero = self.prices <= 0.0
        ratios: Array = np.where(zero, 1.0, self.gains / np.where(zero, 1.0, self.prices))
        return ratios

    @property
    def bounds(self) -> tuple[float, float]:
        """Value of the convex upper bound, and what it is at least."""
        assert self.prices is not None
        largest = max(float(self.ratios.max()), 1.0)
        return self.fit + float(self.prices @ self.excess), 2.0 * self.fit / np.sqrt(largest)

    @property
    def rel_gap(self) -> float:
        primal, dual = self.bounds
        return (primal - dual) / primal

    def certificate(self, tol: float) -> Certificate:
        primal, dual = self.bounds
        rounding = ACCUMULATED * primal
        return EvidenceCertificate(primal, dual, primal - dual, tol, rounding)


class _Problem:
    """E of one regression, the `reg` of whose loss is set to one."""

    def __init__(self, loss: Any) -> None:
        self._loss = loss
        self._loss.reg = 1.0
        spec = self._loss.spec
        self.n_dimensions, self.n_outputs = spec.n_samples - 1, spec.n_outputs
        self.n_evaluations = 0
        # From the coordinates of a point to the variances γ.
        self._basis = np.eye(spec.n_kernels + 1)
        self._basis[0, 1:] = _LEAST_NOISE

    def start(self, ratio: float) -> Array:
        """Return coordinates with equal weights and a ratio of signal to noise."""
        n_kernels = len(self._basis) - 1
        weights = np.full(n_kernels, ratio / n_kernels)
        return np.concatenate([[1.0], weights]) / (1.0 + ratio)

    def evaluate(self, excess: Array) -> _Point:
        """Return E on the ray through `excess`, where it is least."""
        self.n_evaluations += 1
        if excess[1:].sum() <= _LEAST_SIGNAL * excess[0]:
            excess = np.r_[excess[0], np.full(len(excess) - 1, _LEAST_SIGNAL * excess[0])]
        noise = float(self._basis[0] @ excess)
        evaluation = self._loss.evaluate(excess[1:] / noise)
        # E(sγ) = fit/s + r(m − 1) log s + …
        degrees = self.n_outputs * max(self.n_dimensions, 1)
        scale = max(evaluation.value / noise / degrees, TINY)
        excess, noise = excess * scale, noise * scale
        fit = evaluation.value / noise
        log_determinant = self.n_dimensions * np.log(noise) + evaluation.log_determinant()
        return _Point(excess, noise, fit + self.n_outputs * log_determinant, fit, evaluation)

    def differentiate(self, point: _Point) -> _Point:
        """Add the derivatives of E, which overwrites the factor."""
        evaluation, noise, weights = point.evaluation, point.noise, point.excess[1:]
        gains = evaluation.gains / noise**2
        inner = evaluation.hessian() / (2.0 * noise**3)
        # The row of the identity, by ``γ_0 a + Σ_j γ_j K_j a = H``.
        noise_gain = (point.fit - weights @ gains) / noise
        cross = (gains - inner @ weights) / noise
        corner = (noise_gain - weights @ cross) / noise
        curvature = np.block([[np.array([[corner]]), cross[None]], [cross[:, None], inner]])
        of_identity, of_kernels = evaluation.traces()
        prices = np.concatenate([[of_identity], of_kernels]) * (self.n_outputs / noise)
        turn = self._basis
        point.gains = turn.T @ np.concatenate([[noise_gain], gains])
        point.prices = turn.T @ prices
        point.curvature = turn.T @ curvature @ turn
        return point

    def descend(self, excess: Array, run: _Run) -> _Point:
        """Return a stationary point of E, from the coordinates `excess`."""
        point, damping = self.differentiate(self.evaluate(excess)), 0.0
        while not run.record(point, self.n_evaluations) and point.rel_gap > run.tol:
            trial, cuts = self._step(point, damping)
            if trial is None:
                # An update that never raises E, but for rounding errors.
                trial = self.evaluate(point.excess * np.sqrt(np.maximum(point.ratios, 0.0)))
                damping = 1.0
                if not trial.value < point.value:
                    break
            elif cuts:
                damping = max(damping, 1.0)
            else:
                damping = damping / 4.0 if damping > 0.01 else 0.0
            point = trial if trial.gains is not None else self.differentiate(trial)
        return point

    def _step(self, point: _Point, damping: float) -> tuple[_Point | None, int]:
        """Return a point with a smaller E, and how often the step to it was shortened."""
        target = _minimizer(point, damping)
        allowed = EPS * self.n_dimensions * max(abs(point.value), 1.0)
        for cuts in range(_MOST_CUTS + 1):
            trial = self._tried(point.excess + (target - point.excess) * _SHORTER**cuts)
            if trial is not None and trial.value < point.value - allowed:
                return trial, cuts
            if trial is None or cuts > 0 or trial.value > point.value + allowed:
                continue
            # Differences are rounding errors: the gap, which is of first order, decides.
            if self.differentiate(trial).rel_gap < 0.9 * point.rel_gap:
                return trial, 0
        return None, _MOST_CUTS

    def _tried(self, excess: Array) -> _Point | None:
        """Return the point, or None if A cannot be factorised there."""
        try:
            return self.evaluate(excess)
        except NotPositiveDefiniteError:
            return None


def _minimizer(point: _Point, damping: float) -> Array:
    """Return where the quadratic model of E is least, subject to signs."""
    assert point.curvature is not None
    assert point.gains is not None
    assert point.prices is not None
    curvature = point.curvature + damping * np.diag(np.diag(point.curvature))
    curvature[np.diag_indices_from(curvature)] += ACCUMULATED * np.trace(curvature)
    try:
        factor = linalg.cholesky(curvature)
    except linalg.LinAlgError:
        # A kernel is nearly the identity, as noise is: differences are rounding errors.
        values, vectors = linalg.eigh(curvature)
        values = np.maximum(values, np.sqrt(EPS) * values[-1])
        curvature = (vectors * values) @ vectors.T
        factor = linalg.cholesky(curvature)
    linear = curvature @ point.excess + point.gains - point.prices
    right = linalg.solve_triangular(factor, linear, trans=1)
    minimizer: Array = optimize.nnls(factor, right, maxiter=100 * len(right))[0]
    return minimizer
