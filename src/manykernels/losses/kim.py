"""Fisher's ratio as a loss: the criterion of Kim, Magnani and Boyd (2006), two classes.

With G = Σ_i θ_i G_i, class sizes m_±, a = 1/m_+ on the positive and −1/m_− on the negative
samples and J, which centres each class and divides by √m_±, they maximise the concave

    F₁*(θ) = (1/λ) aᵀ(G − GJ(λI + JGJ)⁻¹JG)a = min_v (1/λ)(a − Jv)ᵀG(a − Jv) + ‖v‖²

(Ye 2008 (4)), the largest ratio ``(wᵀ(μ_+ − μ_−))² / wᵀ(S_+ + S_− + λI)w`` of any direction w,
S_± being the covariances of the classes. (Ye 2008 (1) and (2) weight S_± by m_±/m, which J does
not: with classes of equal size, (2) is (4) for a λ half as large.) The loss is E = −F₁*.

A sample of weight w_i in a class of total weight W_± counts as w_i samples: a_i = ±w_i/W_±. Let
``T = diag(√(w_i/W_±))``, s_± = T1 on one class and zero on the other, unit vectors, and

    s = s_+ − s_− ,   P = I − s_+s_+ᵀ − s_−s_−ᵀ ,   K_i = T G_i T ,   K = Σ_i θ_i K_i

Then a = Ts, J = TP, and

    N = λI + PKP,   v = N⁻¹PKs,   z = s − v,   u = a − Jv = Tz,   α* = u/λ
    E(θ)   = −(1/λ) zᵀKz − ‖v‖²
    g_i    = −∂E/∂θ_i = zᵀK_iz/λ
    ∇²E_ij = (2/λ)(PK_iz)ᵀN⁻¹(PK_jz)

since ∂v/∂θ_j = N⁻¹PK_jz. All are computed from one Cholesky factorisation of N. For all kernels,
N has the eigenvalue λ at s_±; adding a multiple of ``s_+s_+ᵀ + s_−s_−ᵀ`` raises it without any
other effect.

The entries of u sum to zero, so centring the kernels, or adding constants to them, has no effect.
And ``E = 2 − 2/L`` with ``L = min_γ (h − γt)ᵀ(I + K/λ)⁻¹(h − γt)``, h = s/√2 and
t = (s_+ + s_−)/√2: L is the square loss with both classes of the same total weight, and −1/L the
function of it that its ``model_hessian`` takes to be nearly quadratic. So ∇²E is a good model,
and the best weights are those of the square loss on balanced classes with λm/2 for λ.

Any v gives a bound: ``−E(θ) ≤ (1/λ)zᵀKz + ‖v‖²``, too large by ``rᵀN⁻¹r/λ ≤ ‖r‖²/λ²`` with the
residual ``r = λv − PKz``. This makes the rounding error of the factorisation, which matters at the
papers' λ = 1e-8, part of `value` and `slack`, so the certificate holds in spite of it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from ..utils.numerics import ACCUMULATED, EPS, matmul
from .base import Array, DualPoint, Indices, KernelOperator, ProblemSpec
from .on_demand import Lease, Workspace, WorkspaceEvaluation, WorkspaceLoss
from .square import NotPositiveDefiniteError


class KimLoss(WorkspaceLoss):
    """E(θ) = −F₁*(θ), minus the regularised Fisher ratio of two classes.

    Parameters
    ----------
    kernels : KernelOperator
        Training kernels, centred or not.
    labels : ndarray of shape (m,), int
        1 for the positive class, 0 for the negative one.
    reg, sample_weight
        As for :class:`~manykernels.losses.SquareLoss`.

    Attributes
    ----------
    shares : ndarray of shape (m,)
        ``w_i/W_±``, the share of each sample in its class.
    roots : ndarray of shape (m,)
        Square roots of the shares, the diagonal of T.
    signs : ndarray of shape (m,)
        ±1 by class.
    """

    def __init__(
        self,
        kernels: KernelOperator,
        labels: Indices,
        reg: float,
        sample_weight: Array | None = None,
    ) -> None:
        self.kernels, self.reg, self.sample_weight = kernels, reg, sample_weight
        weight = np.ones(len(labels)) if sample_weight is None else sample_weight
        self.shares: Array = weight / np.bincount(labels, weights=weight, minlength=2)[labels]
        self.roots = np.sqrt(self.shares)
        self.signs = np.where(labels == 1, 1.0, -1.0)
        self._labels = labels
        # Columns s_− and s_+.
        self._classes = np.zeros((len(labels), 2), order="F")
        self._classes[np.arange(len(labels)), labels] = self.roots
        self.workspace = Workspace(len(labels))

    @property
    def spec(self) -> ProblemSpec:
        return ProblemSpec(type(self), len(self.signs), self.kernels.shape[2], 1)

    def regularization(self, weights: Array) -> float:
        return self.reg

    def evaluate(self, weights: Array) -> KimEvaluation:
        """Factorise N at `weights` and return E and the gains; derivatives are computed later."""
        lease = self.workspace.lend()
        images, raised = self._factorize(weights)
        v = self._centred(self.workspace.solve(self._centred(images[:, 1] - images[:, 0])))
        z = self.signs * self.roots - v
        self.workspace.multiply(self.kernels, z[:, None], self.roots[:, None])
        products = self.workspace.flat_products
        gains = matmul(products, z, scale=1.0 / self.reg)
        outputs = blas.dgemv(1.0 / self.reg, products.T, weights)
        midpoint = float(matmul(self._classes.T, outputs).mean())
        slack = float(np.sum((v - self._centred(outputs)) ** 2))
        value = slack - float(weights @ gains + np.sum(v**2))
        return KimEvaluation(weights, value, gains, slack, midpoint, self, v, raised, lease)

    def refill(self, weights: Array, z: Array) -> Lease:
        """Recompute factor and products at a point with known z."""
        lease = self.workspace.lend()
        self._factorize(weights)
        self.workspace.multiply(self.kernels, z[:, None], self.roots[:, None])
        return lease

    def dual_point(self, dual: Array) -> DualPoint:
        """Return D of ``u = a − Jv``, ``−‖Pv‖² − θ·g``; no other multiple of u is feasible."""
        s = self.signs * self.roots
        v = self._centred(s - dual[:, 0] / self.roots)
        u = (self.roots * (s - v))[:, None]
        gains: Array = self.kernels.apply(u)[:, :, 0] @ u[:, 0] / self.reg
        return DualPoint(linear=0.0, quadratic=float(np.sum(v**2)), gains=gains)

    def _centred(self, columns: Array) -> Array:
        """Return P @ columns: the mean of each class subtracted."""
        return columns - self._spread(matmul(self._classes.T, columns))

    def _spread(self, means: Array) -> Array:
        """Return [s_− s_+] @ means."""
        return (means[self._labels].T * self.roots).T

    def _factorize(self, weights: Array) -> tuple[Array, float]:
        """Put the Cholesky factor of ``N + raised · (s_+s_+ᵀ + s_−s_−ᵀ)`` into the workspace.

        Returns ``K [s_− s_+]`` and `raised`, the mean diagonal of K.
        """
        matrix = self.kernels.combine(weights, out=self.workspace.matrix)
        matrix *= self.roots
        matrix *= self.roots[:, None]
        raised = float(np.abs(self.workspace.diagonal).mean())
        images = matmul(matrix, self._classes)
        means = matmul(self._classes.T, images)
        # PKP + raised·SSᵀ = K − SYᵀ − YSᵀ with S = [s_− s_+], a change of rank four.
        change = images - 0.5 * self._spread(means + raised * np.eye(2))
        # matrix.T is Fortran-ordered, see Workspace.cholesky.
        blas.dsyr2k(-1.0, self._classes, change, beta=1.0, c=matrix.T, lower=0, overwrite_c=1)
        self.workspace.diagonal[:] += self.reg
        if not self.workspace.cholesky():
            raise NotPositiveDefiniteError(
                f"reg={self.reg:g} is lost in the rounding errors of the kernels, whose combined "
                f"trace, each class divided by its size, is {raised * len(matrix):.3g}: the "
                "matrix to factorise is not positive definite. Raise reg, scale or normalise the "
                "kernels, or compute them in higher precision."
            )
        return images, raised

    def raise_reg(self, weights: Array) -> None:
        """Multiply λ by ten until N can be factorised and no gain is negative at these weights."""
        while True:
            with suppress(NotPositiveDefiniteError):
                point = self.evaluate(weights)
                if (point.gains >= -point.gain_errors).all():
                    return
            self.reg *= 10.0


@dataclass
class KimEvaluation(WorkspaceEvaluation):
    """E at one point; see the module for the formulas.

    `slack` is the part of `value` due to rounding in the inner problem; `midpoint` is halfway
    between the class means of the outputs ``G @ coefficients``.
    """

    weights: Array
    value: float
    gains: Array
    slack: float
    midpoint: float
    _loss: KimLoss = field(repr=False)
    _v: Array = field(repr=False)
    _raised: float = field(repr=False)
    _lease: Lease | None = field(repr=False, compare=False)

    hyperbolic: ClassVar[bool] = True

    @property
    def rounding(self) -> float:
        """Rounding errors of ``zᵀKz/λ``, and of sums that are no larger than the value."""
        return float(EPS * abs(self.value) + self.weights @ self.gain_errors)

    @property
    def gain_errors(self) -> Array:
        return self._loss.kernels.form_errors(self.dual, self.dual) / self._loss.reg

    @property
    def ratio(self) -> float:
        """F₁*, which is also the distance between the class means of the outputs."""
        return self.slack - self.value

    @property
    def _z(self) -> Array:
        return self._loss.signs * self._loss.roots - self._v

    @property
    def dual(self) -> Array:
        """Inner solution u = a − Jv, (m, 1)."""
        return (self._loss.roots * self._z)[:, None]

    @property
    def coefficients(self) -> Array:
        """Coefficients α* = u/λ, (m, 1)."""
        return self.dual / self._loss.reg

    def _refill(self) -> Lease:
        return self._loss.refill(self.weights, self._z)

    def hessian(self) -> Array:
        """Return ``∇²E``, by one triangular solve."""
        self.restore()
        loss = self._loss
        half = loss.workspace.half_solve(loss._centred(loss.workspace.flat_products.T))
        return matmul(half.T, half, scale=2.0 / loss.reg)

    def model_hessian(self, gap: float) -> Array:
        """Return ``∇²E``: E is close to quadratic, see the module."""
        return self.hessian()

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of ``PN⁻¹P``; overwrites the factor."""
        self.restore()
        self.release()
        loss = self._loss
        linalg.lapack.dpotri(loss.workspace.matrix.T, lower=0, overwrite_c=1)
        inverse = loss.workspace.diagonal
        # Positive in exact arithmetic; rounding must not change the sign.
        centred: Array = np.maximum(
            inverse - loss.shares / (loss.reg + self._raised), ACCUMULATED * inverse
        )
        return centred

    def leave_one_out(self, groups: np.ndarray | None = None) -> Array:
        """Return the output of each sample by the discriminant of all others, (m, 1).

        Measured from the midpoint between the two class means of those outputs; kernel weights and
        the shares w_j/W_± of the other samples are fixed. In feature space, with
        ``M = S_+ + S_− + λI``, d = μ_+ − μ_−, the discriminant ``ω = M⁻¹d`` and
        ``c = φ(x_i) − μ_±``, leaving out the part δ of its class takes the mean to
        ``μ_± − ηc``, η = δ/(1 − δ), and S_± to ``S_± − ηccᵀ``. Both are changes of rank one, so

            ω' = ω − q M⁻¹c ,   q = η(±1 − e)/(1 − ηκ) ,   e = cᵀω ,   κ = cᵀM⁻¹c

        and the output is ``(1 + η/2)(e − κq) ± ½(F₁* − eq)``. With the share ``w_i/W_±`` of a row,
        ρ_i the diagonal of PN⁻¹P and k the part of the row in what is left out,

            δ = share/k ,   e = v_i/√share ,   κ = (1 − share − λρ_i)/share
            q = u_i/(k − 1 + λρ_i)

        Equal rows of one of the `groups` are left out together if they are of one class; by
        default each row alone.

        (The covariance of the class is still divided by W_±, not by W_± − δ, which would not be a
        change of rank one.) A sample alone in its class keeps its training output.
        """
        loss = self._loss
        share, sign = loss.shares, loss.signs
        delta = share
        if groups is not None:
            keys = np.column_stack([groups, sign.ravel() > 0])
            same = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
            delta = np.asarray(np.bincount(same, share)[same])
        k = share / delta
        lambda_rho = loss.reg * self.inverse_diagonal()
        delta = np.where(delta >= 1.0 - ACCUMULATED, 0.0, delta)
        eta = delta / (1.0 - delta)
        e = self._v / loss.roots
        reached = 1.0 - share - lambda_rho
        # A difference of numbers up to one. Below 16 EPS it is rounding error, as for zero
        # kernels, and must not be divided by a small share.
        kappa = np.where(reached > 16 * EPS, reached / share, 0.0)
        q = np.where(delta > 0.0, self.dual[:, 0] / (k - 1.0 + lambda_rho), 0.0)
        outputs: Array = (1.0 + 0.5 * eta) * (e - kappa * q)
        outputs += 0.5 * sign * (self.ratio - e * q)
        return outputs[:, None]
