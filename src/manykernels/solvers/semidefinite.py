"""The semidefinite programs of Ye 2008, by an interior-point method made for them.

With ``A(θ) = A_0 + Σ_i θ_i M_i`` (``A_0 = I, M_i = K_i/λ``, or with λ learnt ``A_0 = 0`` and the
identity among the M_i) and prices r_i on a simplex, ``Σ_i r_iθ_i ≤ 1``,

    min_{θ,t} Σ_k t_k   s.t.  [[A(θ), h_k], [h_kᵀ, t_k]] ⪰ 0  for every k            exact
    min_{θ,t} Σ_k t_k   s.t.  [[A(θ), H], [Hᵀ, diag(t)]] ⪰ 0                    approximate

The exact program is (8) for two classes and (29) for more (Theorems 2.1 and 3.1), with λ learnt
(41) and the exact version of (45); the approximate one is (32), and (45) as it stands.

A general conic solver is no way to solve them. To Clarabel 0.11 the (m+1)×(m+1) cone is a dense
block of ((m+1)(m+2)/2)² numbers: ten kernels took it 2 s at m = 50, 7 s at m = 70 and 42 s at
m = 100, which points to ten minutes at the m = 166 of Ye's sonar data, though there are only
n + c variables.

A is positive definite for positive θ, so the constraints are ``T = diag(t) − C(θ) ⪰ 0`` with
``C = HᵀA⁻¹H``. (The exact program has only the diagonal of C, here and in all that follows.) The
derivatives cost one Cholesky factorisation of A: with U = A⁻¹H,

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

which is solved by Newton's method in all variables (the HKM direction in X). The direction
towards μ = 0 tells how much μ can fall. With z, y and X eliminated, (θ, t) have the system of the
barrier with ``tr(N_aT⁻¹N_bX)`` in the place of ``μ tr(N_aT⁻¹N_bT⁻¹)``, N_a being D_i or e_ke_kᵀ.
With X = LLᵀ and T⁻¹ = KKᵀ these are inner products of the LᵀN_aK, so a QR decomposition
eliminates t. Iterates keep ``diag(T)`` and not t, since t_k − C_kk would be all rounding in the
end. Any X ⪰ 0 with diag X = 1 proves

    Σ_k t_k − optimum ≤ tr(XT) + max_i tr(XD_i) − Σ_i θ_i tr(XD_i)

It also shows what (32) is: ``min_θ max_X tr(X HᵀA⁻¹H)`` over correlation matrices X. The exact
program has X = I, one of them, so its optimum is the smaller one; and (32) depends on the choice
of columns, where the exact program does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import linalg

from .._blas import matmul
from ..domains import Array, Domain, Simplex
from ..losses.base import Loss
from ..losses.square import SquareLoss
from ._needs import affordable, on_a_simplex, square_loss
from .base import Need, Problem, Solver, Walk

# Distances relative to the optimum: what (32) is solved to if arithmetic allows, what is not
# worth a remark, and where nothing but rounding is left.
_ACCURACY = 1e-9
_SATISFACTORY = 1e-6
_ROUNDING = 1e-13
_MAX_SETBACKS = 10
_LEAST_FALL = 1e-3
# μ does not run ahead of the proven distance by more than this.
_LEAST_PART = 1e-2
_FAR, _NEAR = 0.95, 0.995
_MAX_HALVINGS = 20
_RIDGES = (0.0, 1e-15, 1e-13)
_MINUTES_PER_FLOP = 25 * 1e-12  # in so many steps


def _program_size(solver: Solver, problem: Problem) -> str | None:
    outline = problem.outline
    m, n, k = float(outline.n_samples), outline.n_kernels, outline.n_outputs
    flops = 2.0 * m**3 / 3.0 + n * (6.0 * k + 4.0) * m**2 + 2.0 * n**2 * k * m
    n_bytes = 8.0 * (m**2 + 4.0 * n * k * m)
    return affordable(solver, problem, n_bytes, _MINUTES_PER_FLOP * flops)


@dataclass(frozen=True)
class SDP(Solver, name="sdp"):
    """Semidefinite program of Ye 2008, one constraint per class, p = 1: (8), (29), (41).

    Parameters
    ----------
    force : bool, default=False
        Start whatever the estimates of memory and time.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3)); y = X[:, 0] > 0
    >>> model = MKFDA(p=1, solver="sdp").fit(X, y)
    >>> model.certificate_.converged
    True
    """

    force: bool = False

    needs: ClassVar[tuple[Need, ...]] = (square_loss, on_a_simplex, _program_size)
    default_max_iter = 100

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        program = _Program(loss, walk, np.eye(loss.outline.n_outputs), coupled=False)
        iterate = program.start()
        while not walk.arrive(loss.evaluate(program.settled(iterate))):
            finished = iterate.distance <= _ROUNDING * iterate.value
            following = None if finished else program.advance(iterate)
            if following is None:
                # A weight taken for zero may be a small one.
                if walk.arrive(loss.evaluate(iterate.shares / program.prices)):
                    break
                return (
                    f"the interior-point method cannot go on after {walk.history[-1].iteration} "
                    f"steps, at a proven relative distance of {walk.certificate.rel_gap:.1e}"
                )
            iterate = following
        return ""


@dataclass(frozen=True)
class SDPApprox(SDP, name="sdp-approx"):
    """Semidefinite program of Ye 2008, one constraint for all classes, p = 1: (32), (45).

    For more than two classes it has another solution than the problem it stands for. How much
    worse that is at most, the certificate tells.

    Parameters
    ----------
    force : bool, default=False
        Start whatever the estimates of memory and time.

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

    def _walk(self, loss: Loss, domain: Domain, walk: Walk, start: Array | None) -> str:
        assert isinstance(loss, SquareLoss)
        if len(loss.rotation) == 1:
            # With one column the programs are the same.
            return super()._walk(loss, domain, walk, start)
        program = _Program(loss, walk, loss.rotation, coupled=True)
        iterate = best = program.start()
        n_steps = n_best = 0
        while best.distance > _ACCURACY * best.value and n_steps < walk.max_iter:
            following = program.advance(iterate)
            if following is None or n_steps - n_best == _MAX_SETBACKS:
                break
            iterate, n_steps = following, n_steps + 1
            if iterate.distance < best.distance:
                best, n_best = iterate, n_steps
        # A walk keeps the point of least F, which is not what (32) minimises: it sees the end.
        walk.arrive(loss.evaluate(program.settled(best)))
        status = "the single constraint (32) is an approximation"
        if (relative := best.distance / best.value) > _SATISFACTORY:
            status += f", solved to {relative:.1e} after {n_steps} steps"
        return status


@dataclass(frozen=True)
class _Derivatives:
    """C, the D_i and the R⁻ᵀM_iU, from which G comes, at one θ."""

    C: Array
    D: Array
    halves: Array

    def pulls(self, X: Array) -> Array:
        """``tr(XD_i)``."""
        pulls: Array = np.einsum("kl,ikl->i", X, self.D)
        return pulls


@dataclass(frozen=True)
class _Iterate:
    """Strictly feasible θ and T, as shares of the budget, with multipliers."""

    at: _Derivatives
    shares: Array
    unspent: float
    T: Array
    X: Array
    z: Array
    y: float

    @property
    def value(self) -> float:
        """``tr(XC)``, that is Σ_k t_k less what separates it from the dual objective."""
        return float(np.vdot(self.X, self.at.C))

    @property
    def distance(self) -> float:
        """How far Σ_k t_k is from the optimum at most."""
        pulls = self.at.pulls(self.X)
        return float(pulls.max() - self.shares @ pulls + np.vdot(self.X, self.T))

    @property
    def products(self) -> float:
        """Sum of what is μ on the central path."""
        return float(self.shares @ self.z + self.unspent * self.y + np.vdot(self.X, self.T))


@dataclass(frozen=True)
class _Direction:
    """Change of every part of an iterate."""

    shares: Array
    T: Array
    X: Array
    z: Array
    y: float

    def reach(self, iterate: _Iterate, fraction: float) -> tuple[float, float]:
        """Longest steps, up to 1, that use this fraction of the way to the boundary."""
        shares, z = (-self.shares / iterate.shares).max(), (-self.z / iterate.z).max()
        unspent = self.shares.sum() / iterate.unspent
        primal = float(max(shares, unspent, _fall(iterate.T, self.T)))
        dual = float(max(z, -self.y / iterate.y, _fall(iterate.X, self.X)))
        return fraction / max(primal, fraction), fraction / max(dual, fraction)


class _Program:
    """One of the programs: its columns are ``rotated_targets @ basis.T``."""

    def __init__(self, loss: SquareLoss, walk: Walk, basis: Array, *, coupled: bool) -> None:
        domain = walk.domain
        assert isinstance(domain, Simplex)
        self.loss = loss
        self.walk = walk
        self.domain = domain
        self.prices = domain.prices(loss.n_kernels)
        self.basis = basis
        size = len(basis)
        self.pattern = np.ones((size, size)) if coupled else np.eye(size)

    def settled(self, iterate: _Iterate) -> Array:
        """Weights with exact zeros, on the boundary."""
        weights = iterate.shares / self.prices
        pulls = iterate.at.pulls(iterate.X) * self.prices
        if pulls.any():
            weights = self.domain.settle(weights, pulls)
        return self.domain.onto_boundary(weights)

    def derivatives(self, shares: Array) -> _Derivatives:
        self.walk.n_inner_solves += 1
        point = self.loss.evaluate(shares / self.prices)
        U = point.rotated_outputs
        n, (m, k) = len(shares), U.shape
        products = self.loss.products(U).transpose(0, 2, 1).reshape(n * k, m)
        products /= np.repeat(self.prices, k)[:, None]
        halves = point.whiten(products.T).T.reshape(n, k, m).transpose(1, 0, 2).reshape(k, -1)
        C = matmul(np.ascontiguousarray(self.loss.rotated_targets.T), U)
        D = matmul(products, U).reshape(n, k, k)
        return _Derivatives(self._in_columns(C), self._in_columns(D), halves)

    def _in_columns(self, matrices: Array) -> Array:
        turned = np.einsum("ka,...ab,lb->...kl", self.basis, matrices, self.basis, optimize=True)
        symmetric: Array = 0.5 * (turned + turned.mT) * self.pattern
        return symmetric

    def start(self) -> _Iterate:
        """All shares alike, one more left unspent."""
        n, size = self.loss.n_kernels, len(self.basis)
        shares = np.full(n, 1.0 / (n + 1))
        at = self.derivatives(shares)
        mu = float(np.trace(at.C)) / (n + 1 + size)
        apart = at.C - np.diag(np.diag(at.C))
        # Diagonally dominant, hence positive definite.
        T = np.diag(mu + 1.1 * np.abs(apart).sum(axis=0)) - apart
        return _Iterate(at, shares, shares[0], T, np.eye(size), mu / shares, mu / shares[0])

    def advance(self, iterate: _Iterate) -> _Iterate | None:
        """One Newton step; None if rounding leaves none to take."""
        try:
            towards = self._newton_system(iterate)
            plain = towards(0.0)
        except (linalg.LinAlgError, ValueError):  # the latter for numbers that are not finite
            return None
        parameter = len(iterate.shares) + 1 + len(iterate.X)
        mu = iterate.products / parameter
        left = _moved(iterate, plain, *plain.reach(iterate, 1.0)).products / parameter
        least = _LEAST_PART * iterate.distance / parameter
        target = min(max(mu * max((left / mu) ** 3, _LEAST_FALL), least), mu)
        direction = towards(target)
        fraction = _NEAR if iterate.products < 1e-3 * iterate.value else _FAR
        primal, dual = direction.reach(iterate, fraction)
        # The step minimises the quadratic model of a convex function of θ. Its slope tells
        # whether a step is good also where values differ by rounding only.
        expected = iterate.X + direction.X

        def slope(at: _Derivatives, where: _Iterate) -> float:
            gradient = -at.pulls(expected) - target / where.shares + target / where.unspent
            return float(gradient @ direction.shares)

        initial = slope(iterate.at, iterate)
        for _ in range(_MAX_HALVINGS):
            moved = _moved(iterate, direction, primal, dual)
            at = self.derivatives(moved.shares)
            if slope(at, moved) <= -0.5 * initial:
                return _bent(moved, at)
            primal *= 0.5
        return None

    def _newton_system(self, iterate: _Iterate) -> Callable[[float], _Direction]:
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

        def towards(mu: float) -> _Direction:
            for_t = linalg.solve_triangular(R, mu * np.diag(inverse) - 1.0, trans=1)
            pull = mu * iterate.at.pulls(inverse) + mu / theta - shadow.T @ for_t
            free = theta * linalg.cho_solve(factor, theta * pull)
            # The multiplier of the budget after the step.
            level = (free.sum() + mu / y) / (per_unit.sum() + unspent / y)
            step = free - level * per_unit
            step_t = linalg.solve_triangular(R, for_t - shadow @ step)
            step_T = np.diag(step_t) + np.einsum("i,ikl->kl", step, D)
            response = inverse @ step_T @ X
            step_X = mu * inverse - X - 0.5 * (response + response.T)
            step_z = mu / theta - z - z / theta * step
            return _Direction(step, step_T, step_X, step_z, float(level - y))

        return towards


def _moved(iterate: _Iterate, direction: _Direction, primal: float, dual: float) -> _Iterate:
    """All parts but the derivatives after steps of these lengths."""
    return replace(
        iterate,
        shares=iterate.shares + primal * direction.shares,
        unspent=iterate.unspent - primal * float(direction.shares.sum()),
        T=iterate.T + primal * direction.T,
        X=iterate.X + dual * direction.X,
        z=iterate.z + dual * direction.z,
        y=iterate.y + dual * direction.y,
    )


def _bent(iterate: _Iterate, at: _Derivatives) -> _Iterate:
    """The iterate with derivatives at its own shares, in which T is not linear."""
    # Off the diagonal T is −C. More on the diagonal, a larger t, keeps it positive definite.
    apart = at.C - np.diag(np.diag(at.C))
    diagonal = np.diag(np.diag(iterate.T))
    missing = np.abs(apart + iterate.T - diagonal).sum(axis=0)
    return replace(iterate, at=at, T=diagonal + np.diag(missing) - apart)


def _factorized(system: Array, diagonal: Array) -> tuple[Array, bool]:
    """Cholesky factor of ``system + diag(diagonal)``; equal kernels may need a ridge."""
    largest = float(system.diagonal().max())
    for ridge in _RIDGES:
        shifted = system + np.diag(diagonal + ridge * largest)
        factor, failed = linalg.lapack.dpotrf(shifted, lower=0)
        if not failed:
            return factor, False
    raise linalg.LinAlgError


def _fall(matrix: Array, change: Array) -> float:
    """The largest rate at which a positive definite matrix loses what it is in some direction."""
    factor = linalg.cholesky(matrix, lower=True)
    half = linalg.solve_triangular(factor, change, lower=True)
    relative = linalg.solve_triangular(factor, half.T, lower=True)
    return -float(linalg.eigvalsh(0.5 * (relative + relative.T))[0])
