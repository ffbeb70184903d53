"""The central path of the semidefinite programs of Ye 2008, and Newton steps along it.

In the notation of :mod:`~manykernels.solvers.papers.semidefinite`: A is positive definite for
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
with the parameter c + n + 1, whatever m. On its central path, in shares of the budget (θ_i for
r_iθ_i, M_i for M_i/r_i),

    XT = μI ,  diag X = 1 ,  θ_iz_i = μ ,  (1 − Σθ_i) y = μ ,  tr(XD_i) + z_i = y

which is solved by Newton's method in all variables (the HKM direction in X). The direction towards
μ = 0 predicts how much μ can fall. With z, y and X eliminated, (θ, t) have the system of the
barrier with ``tr(N_aT⁻¹N_bX)`` in the place of ``μ tr(N_aT⁻¹N_bT⁻¹)``, N_a being D_i or e_ke_kᵀ.
With X = LLᵀ and T⁻¹ = KKᵀ these are inner products of the LᵀN_aK, so a QR decomposition eliminates
t. Iterates keep ``diag(T)``, as the difference t_k − C_kk would be all rounding in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ..._blas import matmul
from ..._rounding import EPS, ROUNDING
from ...domains import Array, Simplex
from ...losses.square import SquareLoss
from ..run import Run

# μ falls by the cube of the factor that the direction towards μ = 0 predicts (Mehrotra 1992), but
# at most by this factor in one step, and not below this part of the μ whose point on the path has
# the proven distance. Measured on eight small problems: 1e-5 to 1e-2 and 1e-4 to 1e-2 alike.
_MOST_FALL = 1e-3
_LEAST_PART = 1e-2
# Part of the way to the boundary that a step may take: far from the optimum; and near it, where
# the products are below this part of the objective and convergence is fast. Measured: 0.8 for the
# first takes 21 % more steps, 0.95 for the second 14 % more, 1e-5 for the last 5 % more.
_FAR, _NEAR, _NEAR_FROM = 0.95, 0.995, 1e-3
# Halvings of a step; a millionth of it is rounding.
_MOST_HALVINGS = 20
# Ridges of the Newton system, relative to its largest diagonal entry, tried in turn: equal kernels
# make it singular up to rounding.
_RIDGES = (0.0, 4.0 * EPS, 10.0 * ROUNDING)


@dataclass(frozen=True)
class Derivatives:
    """C, the D_i and the `halves` R⁻ᵀM_iU, whose inner products are G/2, at one θ."""

    C: Array
    D: Array
    halves: Array

    def gains(self, X: Array) -> Array:
        """``tr(XD_i) = −∂_i tr(XC)``."""
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
    """A change of all parts of an iterate."""

    shares: Array
    T: Array
    X: Array
    z: Array
    y: float

    def reach(self, iterate: Iterate, fraction: float) -> tuple[float, float]:
        """Primal and dual steps, up to 1, that go at most this part of the way to the boundary."""
        shares, z = (-self.shares / iterate.shares).max(), (-self.z / iterate.z).max()
        unspent = self.shares.sum() / iterate.unspent
        primal = float(max(shares, unspent, _inverse_reach(iterate.T, self.T)))
        dual = float(max(z, -self.y / iterate.y, _inverse_reach(iterate.X, self.X)))
        return fraction / max(primal, fraction), fraction / max(dual, fraction)


class CentralPath:
    """The path of one of the programs, where ``H = rotated_targets @ basis.T``.

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
        """Weights with exact zeros, on the boundary."""
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
        """Equal shares of the budget for all kernels and for the unspent part."""
        n, size = self.loss.n_kernels, len(self.basis)
        shares = np.full(n, 1.0 / (n + 1))
        at = self.derivatives(shares)
        mu = float(np.trace(at.C)) / (n + 1 + size)
        off_diagonal = at.C - np.diag(np.diag(at.C))
        # Diagonally dominant, hence positive definite.
        T = np.diag(mu + 1.1 * np.abs(off_diagonal).sum(axis=0)) - off_diagonal
        return Iterate(at, shares, shares[0], T, np.eye(size), mu / shares, mu / shares[0])

    def advance(self, iterate: Iterate) -> Iterate | None:
        """One Newton step; None if rounding errors allow none."""
        try:
            towards = self._newton_system(iterate)
            predictor = towards(0.0)
        except (linalg.LinAlgError, ValueError):  # the latter for numbers that are not finite
            return None
        parameter = len(iterate.shares) + 1 + len(iterate.X)
        mu = iterate.products / parameter
        predicted = _moved(iterate, predictor, *predictor.reach(iterate, 1.0)).products / parameter
        least = _LEAST_PART * iterate.distance / parameter
        target = min(max(mu * max((predicted / mu) ** 3, _MOST_FALL), least), mu)
        direction = towards(target)
        fraction = _NEAR if iterate.products < _NEAR_FROM * iterate.value else _FAR
        primal, dual = direction.reach(iterate, fraction)
        # The step minimises the quadratic model of a convex function of θ. The slope at
        # its end may have half the initial size, as values may differ by rounding errors only.
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
        """The direction towards any μ; see the module for its derivation."""
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
        # Relative changes of θ are equally well scaled, whatever its size.
        system = theta[:, None] * (2.0 * matmul(halves, halves.T) + matmul(rest, rest.T)) * theta
        factor = _factorized(system, theta * z)
        per_unit = theta * linalg.cho_solve(factor, theta)

        def towards(mu: float) -> Direction:
            for_t = linalg.solve_triangular(R, mu * np.diag(inverse) - 1.0, trans=1)
            right = mu * iterate.at.gains(inverse) + mu / theta - shadow.T @ for_t
            free = theta * linalg.cho_solve(factor, theta * right)
            # The multiplier of the budget after the step.
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
    """The iterate after steps of these lengths, with the derivatives of the old one."""
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
    """The iterate with the derivatives at its own shares, and a T that goes with them."""
    # Off the diagonal T is −C, which is not linear in θ. A larger t keeps T positive definite.
    off_diagonal = at.C - np.diag(np.diag(at.C))
    diagonal = np.diag(np.diag(iterate.T))
    missing = np.abs(off_diagonal + iterate.T - diagonal).sum(axis=0)
    return replace(iterate, at=at, T=diagonal + np.diag(missing) - off_diagonal)


def _factorized(system: Array, diagonal: Array) -> tuple[Array, bool]:
    """Cholesky factor of ``system + diag(diagonal)``, with the first ridge that is enough."""
    largest = float(system.diagonal().max())
    for ridge in _RIDGES:
        shifted = system + np.diag(diagonal + ridge * largest)
        factor, failed = linalg.lapack.dpotrf(shifted, lower=0)
        if not failed:
            return factor, False
    raise linalg.LinAlgError


def _inverse_reach(matrix: Array, change: Array) -> float:
    """1/s for the longest step s with ``matrix + s·change`` positive semi-definite."""
    factor = linalg.cholesky(matrix, lower=True)
    half = linalg.solve_triangular(factor, change, lower=True)
    relative = linalg.solve_triangular(factor, half.T, lower=True)
    return -float(linalg.eigvalsh(0.5 * (relative + relative.T))[0])
