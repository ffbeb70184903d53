"""Conic programs of the papers: the semidefinite programs of Ye 2008, and the QCQPs.

**Central path.** In the notation below: A is positive definite for
positive θ, so the constraints are ``T = diag(t) − C(θ) ⪰ 0`` with ``C = HᵀA⁻¹H``. (In the exact
program C is the diagonal of that, here and below.) The derivatives cost one Cholesky factorisation
of A: with U = A⁻¹H,

    D_i = −∂_iC = UᵀM_iU ,    ∂²_ij tr(XC) = 2 tr(X UᵀM_iA⁻¹M_jU) =: G_ij(X)

The usual barrier, −log det of the big matrices, is −log det T − log det A. The second term costs
n solves with m×m matrices for its Hessian ``tr(A⁻¹M_iA⁻¹M_j)``, and it is not needed. Let
N = Σ_i d_iM_i for a direction d, and A = RᵀR. The M_i are positive semi-definite, so
``‖R⁻ᵀNR⁻¹‖ ≤ max_i|d_i/θ_i|``, hence

    D³T[d,d,d] = 6 UᵀNA⁻¹NA⁻¹NU ⪯ 6 max_i|d_i/θ_i| UᵀNA⁻¹NU = −3 max_i|d_i/θ_i| D²T[d,d]

so T is compatible with −Σ log θ_i (Nesterov and Nemirovskii 1994, chapter 5), and
``−log det T − Σ_i log θ_i − log(1 − Σ_i r_iθ_i)`` is a self-concordant barrier of the same set
with the parameter c + n + 1, for any m. On its central path, in shares of the budget (θ_i for
r_iθ_i, M_i for M_i/r_i),

    XT = μI ,  diag X = 1 ,  θ_iz_i = μ ,  (1 − Σθ_i) y = μ ,  tr(XD_i) + z_i = y

which is solved by Newton's method in all variables (the HKM direction in X). The direction towards
μ = 0 predicts how much μ can fall. With z, y and X eliminated, (θ, t) have the system of the
barrier with ``tr(N_aT⁻¹N_bX)`` instead of ``μ tr(N_aT⁻¹N_bT⁻¹)``, N_a being D_i or e_ke_kᵀ.
With X = LLᵀ and T⁻¹ = KKᵀ these are inner products of the LᵀN_aK, so a QR decomposition eliminates
t. Iterates store ``diag(T)``, as the difference t_k − C_kk would be rounding error in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import clarabel
import numpy as np
from scipy import linalg, sparse

from ...domains import Array, Domain, Simplex
from ...losses.base import DualProgram, HasDualProgram, Loss, ProblemSpec
from ...losses.square import SquareLoss
from ...utils.numerics import ACCUMULATED, EPS, ROUNDING, matmul
from .. import base
from ..base import Run
from ..programs import clarabel_settings

# μ falls by the cube of the factor predicted by the direction towards μ = 0 (Mehrotra 1992), but
# at most by this factor in one step, and not below this fraction of the μ whose point on the path
# has the proven distance. Measured on eight small problems: 1e-5 to 1e-2 and 1e-4 to 1e-2 alike.
_MOST_FALL = 1e-3
_LEAST_PART = 1e-2
# Fraction of the way to the boundary that a step may take: far from the optimum; and near it,
# where the products are below this fraction of the objective and convergence is fast. Measured:
# 0.8 for the first takes 21 % more steps, 0.95 for the second 14 % more, 1e-5 for the last 5 %
# more.
_FAR, _NEAR, _NEAR_FROM = 0.95, 0.995, 1e-3
# Maximum number of halvings of a step; a millionth of it is rounding error.
_MOST_HALVINGS = 20
# Ridges of the Newton system, relative to its largest diagonal entry, tried in turn: equal kernels
# make it singular up to rounding errors.
_RIDGES = (0.0, 4.0 * EPS, 10.0 * ROUNDING)


@dataclass(frozen=True)
class Derivatives:
    """C, the D_i and the `halves` R⁻ᵀM_iU, whose inner products are G/2, at one θ."""

    C: Array
    D: Array
    halves: Array

    def gains(self, X: Array) -> Array:
        """Return ``tr(XD_i) = −∂_i tr(XC)``."""
        return np.asarray(np.einsum("kl,ikl->i", X, self.D))


@dataclass(frozen=True)
class Iterate:
    """Strictly feasible θ, in shares of the budget, and T, with multipliers X, z and y."""

    at: Derivatives
    shares: Array
    unspent: float
    T: Array
    X: Array
    z: Array
    y: float

    @property
    def value(self) -> float:
        """``tr(XC) = Σ_k t_k − tr(XT)``."""
        return float(np.vdot(self.X, self.at.C))

    @property
    def distance(self) -> float:
        """Upper bound on the distance of Σ_k t_k to the optimum."""
        gains = self.at.gains(self.X)
        return float(gains.max() - self.shares @ gains + np.vdot(self.X, self.T))

    @property
    def products(self) -> float:
        """Sum of the products that are μ on the central path."""
        return float(self.shares @ self.z + self.unspent * self.y + np.vdot(self.X, self.T))


@dataclass(frozen=True)
class Direction:
    """Change of an iterate."""

    shares: Array
    T: Array
    X: Array
    z: Array
    y: float

    def reach(self, iterate: Iterate, fraction: float) -> tuple[float, float]:
        """Return primal and dual steps up to 1 that go a fraction of the way to the boundary."""
        shares, z = (-self.shares / iterate.shares).max(), (-self.z / iterate.z).max()
        unspent = self.shares.sum() / iterate.unspent
        primal = float(max(shares, unspent, _inverse_reach(iterate.T, self.T)))
        dual = float(max(z, -self.y / iterate.y, _inverse_reach(iterate.X, self.X)))
        return fraction / max(primal, fraction), fraction / max(dual, fraction)


class CentralPath:
    """Central path of one of the programs, where ``H = rotated_targets @ basis.T``.

    The program is the approximate one if `coupled`, else C is diagonal. Factorisations are added
    to the inner solves of `run`, whose domain is a simplex.
    """

    def __init__(self, loss: SquareLoss, run: Run, basis: Array, *, coupled: bool) -> None:
        assert isinstance(run.domain, Simplex)
        self.loss, self.run, self.domain, self.basis = loss, run, run.domain, basis
        self.prices = run.domain.prices(loss.n_kernels)
        size = len(basis)
        self.pattern = np.ones((size, size)) if coupled else np.eye(size)

    def settled(self, iterate: Iterate) -> Array:
        """Return weights with exact zeros, on the boundary."""
        weights = iterate.shares / self.prices
        gains = iterate.at.gains(iterate.X) * self.prices
        if gains.any():
            weights = self.domain.settle(weights, gains)
        return self.domain.onto_boundary(weights)

    def derivatives(self, shares: Array) -> Derivatives:
        self.run.n_inner_solves += 1
        point = self.loss.evaluate(shares / self.prices)
        U = point.rotated_residuals
        n, (m, k) = len(shares), U.shape
        products = self.loss.products(U).transpose(0, 2, 1).reshape(n * k, m)
        products /= np.repeat(self.prices, k)[:, None]
        halves = point.whiten(products.T).T.reshape(n, k, m).transpose(1, 0, 2).reshape(k, -1)
        C = matmul(np.ascontiguousarray(self.loss.rotated_targets.T), U)
        D = matmul(products, U).reshape(n, k, k)
        return Derivatives(self._in_columns(C), self._in_columns(D), halves)

    def _in_columns(self, matrices: Array) -> Array:
        turned = np.einsum("ka,...ab,lb->...kl", self.basis, matrices, self.basis, optimize=True)
        return np.asarray(0.5 * (turned + turned.mT) * self.pattern)

    def start(self) -> Iterate:
        """Return equal shares of the budget for all kernels and for the unspent part."""
        n, size = self.loss.n_kernels, len(self.basis)
        shares = np.full(n, 1.0 / (n + 1))
        at = self.derivatives(shares)
        mu = float(np.trace(at.C)) / (n + 1 + size)
        off_diagonal = at.C - np.diag(np.diag(at.C))
        # Diagonally dominant, hence positive definite.
        T = np.diag(mu + 1.1 * np.abs(off_diagonal).sum(axis=0)) - off_diagonal
        return Iterate(at, shares, shares[0], T, np.eye(size), mu / shares, mu / shares[0])

    def advance(self, iterate: Iterate) -> Iterate | None:
        """Take one Newton step; return None if rounding errors prevent it."""
        try:
            towards = self._newton_system(iterate)
            predictor = towards(0.0)
        except (linalg.LinAlgError, ValueError):  # ValueError for non-finite numbers
            return None
        parameter = len(iterate.shares) + 1 + len(iterate.X)
        mu = iterate.products / parameter
        predicted = _moved(iterate, predictor, *predictor.reach(iterate, 1.0)).products / parameter
        least = _LEAST_PART * iterate.distance / parameter
        target = min(max(mu * max((predicted / mu) ** 3, _MOST_FALL), least), mu)
        direction = towards(target)
        fraction = _NEAR if iterate.products < _NEAR_FROM * iterate.value else _FAR
        primal, dual = direction.reach(iterate, fraction)
        # The step minimises the quadratic model of a convex function of θ. The slope at its end
        # may have half the initial size, as values may differ by rounding errors only.
        expected = iterate.X + direction.X

        def slope(at: Derivatives, where: Iterate) -> float:
            gradient = -at.gains(expected) - target / where.shares + target / where.unspent
            return float(gradient @ direction.shares)

        initial = slope(iterate.at, iterate)
        for _ in range(_MOST_HALVINGS):
            moved = _moved(iterate, direction, primal, dual)
            at = self.derivatives(moved.shares)
            if slope(at, moved) <= -0.5 * initial:
                return _with_derivatives(moved, at)
            primal *= 0.5
        return None

    def _newton_system(self, iterate: Iterate) -> Callable[[float], Direction]:
        """Return the direction as a function of μ; see the module for its derivation."""
        theta, unspent, z, y = iterate.shares, iterate.unspent, iterate.z, iterate.y
        D, T, X = iterate.at.D, iterate.T, iterate.X
        n, size = len(theta), len(X)
        L = linalg.cholesky(X, lower=True)
        K = linalg.solve_triangular(linalg.cholesky(T), np.eye(size))
        inverse = K @ K.T
        halves = matmul(np.ascontiguousarray(L.T @ self.basis), iterate.at.halves)
        halves = halves.reshape(size, n, -1).transpose(1, 0, 2).reshape(n, -1)
        of_shares = np.einsum("ka,ikl,lb->abi", L, D, K, optimize=True).reshape(-1, n)
        of_t = np.einsum("ka,kb->abk", L, K).reshape(-1, size)
        Q, R = linalg.qr(of_t, mode="economic")
        shadow = Q.T @ of_shares
        rest = np.ascontiguousarray((of_shares - Q @ shadow).T)
        # Relative changes of θ are equally well scaled for all sizes.
        system = theta[:, None] * (2.0 * matmul(halves, halves.T) + matmul(rest, rest.T)) * theta
        factor = _factorized(system, theta * z)
        per_unit = theta * linalg.cho_solve(factor, theta)

        def towards(mu: float) -> Direction:
            for_t = linalg.solve_triangular(R, mu * np.diag(inverse) - 1.0, trans=1)
            right = mu * iterate.at.gains(inverse) + mu / theta - shadow.T @ for_t
            free = theta * linalg.cho_solve(factor, theta * right)
            # Multiplier of the budget after the step.
            level = (free.sum() + mu / y) / (per_unit.sum() + unspent / y)
            step = free - level * per_unit
            step_t = linalg.solve_triangular(R, for_t - shadow @ step)
            step_T = np.diag(step_t) + np.einsum("i,ikl->kl", step, D)
            response = inverse @ step_T @ X
            step_X = mu * inverse - X - 0.5 * (response + response.T)
            step_z = mu / theta - z - z / theta * step
            return Direction(step, step_T, step_X, step_z, float(level - y))

        return towards


def _moved(iterate: Iterate, direction: Direction, primal: float, dual: float) -> Iterate:
    """Return the iterate after steps of these lengths, with the derivatives of the old one."""
    return replace(
        iterate,
        shares=iterate.shares + primal * direction.shares,
        unspent=iterate.unspent - primal * float(direction.shares.sum()),
        T=iterate.T + primal * direction.T,
        X=iterate.X + dual * direction.X,
        z=iterate.z + dual * direction.z,
        y=iterate.y + dual * direction.y,
    )


def _with_derivatives(iterate: Iterate, at: Derivatives) -> Iterate:
    """Return the iterate with the derivatives at its own shares, and a matching T."""
    # Off the diagonal T is −C, which is not linear in θ. A larger t keeps T positive definite.
    off_diagonal = at.C - np.diag(np.diag(at.C))
    diagonal = np.diag(np.diag(iterate.T))
    missing = np.abs(off_diagonal + iterate.T - diagonal).sum(axis=0)
    return replace(iterate, at=at, T=diagonal + np.diag(missing) - off_diagonal)


def _factorized(system: Array, diagonal: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor of ``system + diag(diagonal)`` with the first working ridge."""
    largest = float(system.diagonal().max())
    for ridge in _RIDGES:
        shifted = system + np.diag(diagonal + ridge * largest)
        factor, failed = linalg.lapack.dpotrf(shifted, lower=0)
        if not failed:
            return factor, False
    raise linalg.LinAlgError


def _inverse_reach(matrix: Array, change: Array) -> float:
    """Return 1/s for the longest step s with ``matrix + s·change`` positive semi-definite."""
    factor = linalg.cholesky(matrix, lower=True)
    half = linalg.solve_triangular(factor, change, lower=True)
    relative = linalg.solve_triangular(factor, half.T, lower=True)
    return -float(linalg.eigvalsh(0.5 * (relative + relative.T))[0])


# -- The semidefinite programs of Ye 2008, by a special interior-point method ---------------------
#
# With ``A(θ) = A_0 + Σ_i θ_i M_i`` (``A_0 = I, M_i = K_i/λ``, or with λ learnt ``A_0 = 0`` and the
# identity among the M_i) and prices r_i on a simplex, ``Σ_i r_iθ_i ≤ 1``,
#
#     min_{θ,t} Σ_k t_k   s.t.  [[A(θ), h_k], [h_kᵀ, t_k]] ⪰ 0  for every k            exact
#     min_{θ,t} Σ_k t_k   s.t.  [[A(θ), H], [Hᵀ, diag(t)]] ⪰ 0                    approximate
#
# The exact program is (8) for two classes and (29) for more (Theorems 2.1 and 3.1), with λ learnt
# (41) and the exact version of (45); the approximate one is (32), and (45) in the paper.
#
# General conic solvers are slow here: for Clarabel 0.11 the cone is a dense block of
# ((m+1)(m+2)/2)² numbers, and ten kernels take it 2 s at m = 50 and 42 s at m = 100. A step along
# the central path takes one Cholesky factorisation, m×m.
#
# In the notation of the module docstring, any X ⪰ 0 with diag X = 1 proves
#
#     Σ_k t_k − optimum ≤ tr(XT) + max_i tr(XD_i) − Σ_i θ_i tr(XD_i)
#
# Hence (32) is ``min_θ max_X tr(X HᵀA⁻¹H)`` over correlation matrices X. The exact program has X =
# I, one of them, so its optimum is smaller; and (32) depends on the choice of columns of H, which
# the exact program does not.


# Proven relative distance to the optimum of (32) at which its solver stops; and above which the
# status reports it, the default tolerance of solvers.
_ACCURACY = 1e-9
_WORTH_TELLING = 1e-6
# Steps without a smaller distance before it stops: near rounding errors distances rise and fall.
_MOST_SETBACKS = 10
# The usual 25 steps, and dense operations on one core. Measured.
_MINUTES_PER_FLOP = 25 * 1e-12


@dataclass(frozen=True)
class SDP(base.Expensive, name="sdp"):
    """Semidefinite program of Ye 2008, one constraint per class, p = 1: (8), (29), (41).

    Parameters
    ----------
    force : bool, default=False
        Whether to solve problems that are estimated to need more memory than is available or more
        than ten minutes. They are an error otherwise.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA
    >>> model = MKFDA(p=1, reg="joint", solver="sdp").fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged
    True
    """

    needs = (base.square_loss, base.on_a_simplex, base.affordable)
    # Maximum number of interior-point steps; four times the usual number.
    default_max_iter = 100

    def cost(self, spec: ProblemSpec) -> tuple[float, float]:
        m, n, k = float(spec.n_samples), spec.n_kernels, spec.n_outputs
        flops = 2.0 * m**3 / 3.0 + n * (6.0 * k + 4.0) * m**2 + 2.0 * n**2 * k * m
        return 8.0 * (m**2 + 4.0 * n * k * m), _MINUTES_PER_FLOP * flops

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        path = CentralPath(loss, run, np.eye(loss.spec.n_outputs), coupled=False)
        iterate = path.start()
        while not run.record(loss.evaluate(path.settled(iterate))):
            finished = iterate.distance <= ROUNDING * iterate.value
            following = None if finished else path.advance(iterate)
            if following is None:
                # A weight that was set to zero may be a small one.
                if run.record(loss.evaluate(iterate.shares / path.prices)):
                    break
                return (
                    f"the interior-point method cannot continue after {run.history[-1].iteration} "
                    f"steps, at a proven relative distance of {run.certificate.rel_gap:.1e}"
                )
            iterate = following
        return ""


@dataclass(frozen=True)
class SDPApprox(SDP, name="sdp-approx"):
    """Semidefinite program of Ye 2008, one constraint for all classes, p = 1: (32), (45).

    For more than two classes its solution is not that of the exact program; the certificate bounds
    how much worse it is.

    Parameters
    ----------
    force : bool, default=False
        Whether to solve problems that are estimated to need more memory than is available or more
        than ten minutes. They are an error otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = (X[:, 0] > -0.5).astype(int) + (X[:, 1] > 0.5)
    >>> approximate = MKFDA(p=1, solver="sdp-approx", tol=0.5).fit(X, y).certificate_
    >>> exact = MKFDA(p=1, solver="sdp").fit(X, y).certificate_
    >>> exact.primal < approximate.primal < exact.primal + approximate.gap
    True
    """

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        if len(loss.rotation) == 1:
            # With one column of H the programs are the same.
            return super()._minimize(loss, domain, run, start)
        path = CentralPath(loss, run, loss.rotation, coupled=True)
        iterate = best = path.start()
        n_steps = n_best = 0
        while best.distance > _ACCURACY * best.value and n_steps < run.max_iter:
            following = path.advance(iterate)
            if following is None or n_steps - n_best == _MOST_SETBACKS:
                break
            iterate, n_steps = following, n_steps + 1
            if iterate.distance < best.distance:
                best, n_best = iterate, n_steps
        # A run returns the point of least F, which (32) does not minimise: record only one.
        run.record(loss.evaluate(path.settled(best)))
        status = "the single constraint (32) is an approximation"
        if (relative := best.distance / best.value) > _WORTH_TELLING:
            status += f", solved to {relative:.1e} after {n_steps} steps"
        return status


# -------------------------------------------------------------------------------------------------
# The quadratically constrained quadratic programs of Lanckriet 2004 and Ye 2008, by Clarabel.
#
# A loss with a dual program (:mod:`manykernels.losses.base`) and prices r_j on a simplex,
# ``Σ r_jβ_j = 1``, has the minimum (r_ik being the ridge of that program)
#
#     min_β F = max_{v,t}  Σ_k {c_k·v_k − e_k Σ_i|v_ik| − ½ Σ_i r_ik v_ik²} − ½ t
#               s.t.  t ≥ (1/r_j) Σ_k v_kᵀM_jv_k  for all j,   l ≤ v ≤ u,   Σ_i v_ik = s_k
#
# For the hinge, the squared hinge and the squared hinge whose C is learnt, with traces for prices,
# these are SM1, SM2 and SM2_C of Lanckriet et al. (2004). The square loss (Ye 2008 (13) and (34),
# with λ learnt (43) and (46)) has neither bounds nor sums. The constraints on t have multipliers
# ``r_jβ_j/2``. With ``M_j = L_jL_jᵀ`` each is a second-order cone,
#
#     ‖(t − 1, 2 r_j^{-½} L_jᵀv)‖ ≤ t + 1
#
# and its multiplier is the sum of the first two entries of the cone's dual variable. As Clarabel
# also has absolute tolerances, the program is scaled: its objective is 1 at the start, and c (or
# without c, v) has a norm of about one.


# Tolerance of Clarabel, below its default of 1e-8: errors of weights are about its square root.
_TOLERANCE = 1e-9
# Measured: memory of Clarabel per entry of the constraints, and its time per unit of n m³ k.
_BYTES_PER_ENTRY = 60.0
_MINUTES_PER_UNIT = 7e-10


@dataclass(frozen=True)
class QCQP(base.Expensive, name="qcqp"):
    """Quadratically constrained program of Lanckriet 2004 and Ye 2008, p = 1.

    Parameters
    ----------
    force : bool, default=False
        Whether to solve problems that are estimated to need more memory than is available or more
        than ten minutes. They are an error otherwise.

    Examples
    --------
    >>> from manykernels import MKFDA, MKSVC
    >>> from sklearn import datasets
    >>> X, y = datasets.load_iris(return_X_y=True)
    >>> for estimator in (MKFDA(p=1, solver="qcqp"), MKSVC(p=1, solver="qcqp", tol=1e-4)):
    ...     assert estimator.fit(X[::3], y[::3]).certificate_.converged
    """

    needs = (base.dual_program, base.on_a_simplex, base.affordable)
    # The default of Clarabel, whose iterations these are.
    default_max_iter = 200

    def cost(self, spec: ProblemSpec) -> tuple[float, float]:
        m, n, k = spec.n_samples, spec.n_kernels, spec.n_outputs
        entries = float(n * k * m**2)
        return _BYTES_PER_ENTRY * entries, _MINUTES_PER_UNIT * entries * m

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str:
        assert isinstance(loss, HasDualProgram)
        assert isinstance(domain, Simplex)
        point = loss.evaluate(base.start_or_uniform(start, loss, domain))
        if run.record(point):
            return ""
        weights, v, status = _solve(loss, domain, point.value, run.max_iter)
        if weights is not None:
            point = loss.evaluate(weights)
            settled = domain.settle(weights, point.gains)
            dual = loss.dual_of(v)
            run.record(point, bound=base.Bound(loss.lower_bound(dual, domain.support), dual))
            if settled.any() and not np.array_equal(settled, weights):
                run.record(loss.evaluate(domain.onto_boundary(settled)))
        return f"Clarabel ended as {status}"


def _scaled(program: DualProgram, value: float) -> tuple[DualProgram, float]:
    """Return the program in ``v/length``, its objective in units of `value`, and the length."""
    linear = program.linear
    if program.totals is not None:
        # If Σv is given, the mean of c only adds a constant to the objective.
        linear = linear - linear.mean(axis=0)
    size = float(np.linalg.norm(linear))
    if size > ACCUMULATED * float(np.abs(program.linear).max(initial=0.0)):
        length = value / size
    else:
        sums = 0.0 if program.totals is None else float(np.linalg.norm(program.totals))
        length = sums / np.sqrt(linear.size) or 1.0
    first, second = length / value, length**2 / value
    totals = None if program.totals is None else program.totals / length
    bounds = program.lower / length, program.upper / length
    linear, ridge, widths = first * linear, second * program.ridge, first * program.widths
    return DualProgram(linear, ridge, *bounds, widths, totals), length


def _solve(
    loss: HasDualProgram, domain: Simplex, value: float, max_iter: int
) -> tuple[Array | None, Array, Any]:
    """Return weights, or None if Clarabel finds none; v; and the status of Clarabel."""
    value = abs(value) or 1.0
    program, length = _scaled(loss.dual_program(), value)
    prices = domain.prices(loss.n_kernels)
    m, k = program.linear.shape
    # Variables are v, output after output, then |v| where it has a cost e, then t.
    kinked = np.repeat(program.widths, m) if program.widths.any() else np.zeros(0)
    cost = np.concatenate([-program.linear.T.ravel(), kinked, [0.5]])
    curvature = np.append(program.ridge.T.ravel(), np.zeros(len(kinked) + 1))
    blocks = [block for block in _box(program) if len(block[1])]
    n_bounds = len(blocks)
    for j in range(loss.n_kernels):
        root = _root(loss.kernel(j)) * (length / np.sqrt(value * prices[j]))
        blocks.append(_cone(root, k, len(kinked)))
    rows, bounds, cones = zip(*blocks, strict=True)
    settings = clarabel_settings(_TOLERANCE)
    settings.max_iter = max_iter
    settings.direct_solve_method = "qdldl"  # faster than the others on these programs
    result = clarabel.DefaultSolver(
        sparse.diags(curvature, format="csc"),
        cost,
        sparse.vstack([_widened(block, len(cost)) for block in rows], format="csc"),
        np.concatenate(bounds),
        [cone(len(bound)) for cone, bound in zip(cones, bounds, strict=True)],
        settings,
    ).solve()
    v = length * np.asarray(result.x)[: m * k].reshape(k, m).T
    dual = np.asarray(result.z)
    starts = np.cumsum([0, *map(len, bounds)])[n_bounds:-1]
    shares = np.maximum(dual[starts] + dual[starts + 1], 0.0)
    if not (np.isfinite(v).all() and np.isfinite(shares).all() and shares.any()):
        return None, v, result.status
    return domain.onto_boundary(shares / prices), v, result.status


#: Rows of ``bound − row @ u ∈ cone`` for the first variables of u, bound and cone.
Block = tuple[Any, Array, Any]


def _box(program: DualProgram) -> Iterator[Block]:
    """Yield the totals, ``l ≤ v ≤ u``, and |v| above both v and −v; some may have no rows."""
    m, k = program.linear.shape
    if program.totals is not None:
        yield sparse.kron(sparse.eye(k), np.ones((1, m))), program.totals, clarabel.ZeroConeT
    eye = sparse.eye(m * k, format="csr")
    for sign, ends in ((1.0, program.upper), (-1.0, -program.lower)):
        bound = ends.T.ravel()
        finite = np.flatnonzero(np.isfinite(bound))
        yield sign * eye[finite], bound[finite], clarabel.NonnegativeConeT
        if program.widths.any():
            yield sparse.hstack([sign * eye, -eye]), np.zeros(m * k), clarabel.NonnegativeConeT


def _cone(root: Array, k: int, n_between: int) -> Block:
    """Return ``(t + 1, t − 1, 2 Lᵀv_1, …, 2 Lᵀv_k)`` in the second-order cone, L = `root`."""
    of_v = sparse.kron(sparse.eye(k), sparse.csc_matrix(-2.0 * root.T))
    of_t = sparse.csc_matrix([[-1.0], [-1.0]])
    rows = sparse.bmat([[None, of_t], [_widened(of_v, of_v.shape[1] + n_between), None]])
    return rows, np.append([1.0, -1.0], np.zeros(of_v.shape[0])), clarabel.SecondOrderConeT


def _widened(rows: sparse.sparray, n_variables: int) -> sparse.sparray:
    """Return rows of the first variables as rows of all of them."""
    missing = sparse.csc_matrix((rows.shape[0], n_variables - rows.shape[1]))
    return sparse.hstack([rows, missing], format="csc")


def _root(kernel: Array) -> Array:
    """Return L with ``kernel = LLᵀ`` up to rounding, with as few columns as possible."""
    values, vectors = linalg.eigh(kernel)
    kept = values > ROUNDING * max(values[-1], 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
