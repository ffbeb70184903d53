"""Fisher's ratio itself as a loss: the criterion of Kim, Magnani and Boyd (2006), two classes.

With G = Σ_i θ_i G_i, class sizes m_±, a = 1/m_+ on the positive and −1/m_− on the negative
samples and J, which centres each class and divides by √m_±, they maximise the concave

    F₁*(θ) = (1/λ) aᵀ(G − GJ(λI + JGJ)⁻¹JG)a = min_v (1/λ)(a − Jv)ᵀG(a − Jv) + ‖v‖²

(Ye 2008 (4)), the largest ratio ``(wᵀ(μ_+ − μ_−))² / wᵀ(S_+ + S_− + λI)w`` of any direction w,
S_± being the covariances of the classes. (The weights m_±/m of S_± in Ye 2008 (1) and (2) are
not those of J: with classes of equal size, (2) is (4) for a λ half as large.) What is minimised
here is E = −F₁*.

A sample of weight w_i in a class of total weight W_± is w_i samples: a_i = ±w_i/W_±. So let
``T = diag(√(w_i/W_±))``, s_± = T1 on one class and zero on the other, unit vectors, and

    s = s_+ − s_− ,   P = I − s_+s_+ᵀ − s_−s_−ᵀ ,   K_i = T G_i T ,   K = Σ_i θ_i K_i

Then a = Ts, J = TP, and

    N = λI + PKP,   v = N⁻¹PKs,   z = s − v,   u = a − Jv = Tz,   α* = u/λ
    E(θ)   = −(1/λ) zᵀKz − ‖v‖²
    g_i    = −∂E/∂θ_i = zᵀK_iz/λ
    ∇²E_ij = (2/λ)(PK_iz)ᵀN⁻¹(PK_jz)

since ∂v/∂θ_j = N⁻¹PK_jz. One Cholesky factorisation of N serves all. N has eigenvalue λ at s_±,
whatever the kernels; a multiple of ``s_+s_+ᵀ + s_−s_−ᵀ`` lifts it and changes nothing else.

Two facts. The entries of u sum to zero in total, so centring the kernels, or adding constants
to them, changes nothing. And ``E = 2 − 2/L`` with ``L = min_γ (h − γt)ᵀ(I + K/λ)⁻¹(h − γt)``,
h = s/√2 and t = (s_+ + s_−)/√2: L is the square loss with both classes of the same total weight,
and E what its ``model_hessian`` takes for nearly quadratic. So ∇²E is a good model as it is, and
the best weights are those of the square loss on balanced classes with λm/2 for λ.

Every v gives a bound: ``−E(θ) ≤ (1/λ)zᵀKz + ‖v‖²``, off by ``rᵀN⁻¹r/λ ≤ ‖r‖²/λ²`` with the
residual ``r = λv − PKz``. That is how rounding in the factorisation, which matters at the
papers' λ = 1e-8, enters `value` and `slack`: the certificate stays true.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import blas

from .._blas import matmul
from .base import Array, KernelOperator, Outline


class KimLoss:
    """E(θ) = −F₁*(θ), minus the regularised Fisher ratio of two classes.

    Parameters
    ----------
    kernels : KernelOperator
        Training kernels, centred or not.
    labels : ndarray of shape (m,), int
        1 for the positive class, 0 for the negative one.
    reg : float
        λ > 0.
    sample_weight : ndarray of shape (m,), optional
        Positive weights.
    """

    def __init__(
        self,
        kernels: KernelOperator,
        labels: NDArray[np.intp],
        reg: float,
        sample_weight: Array | None = None,
    ) -> None:
        self.kernels = kernels
        self.reg = reg
        self.sample_weight = sample_weight
        weight = np.ones(len(labels)) if sample_weight is None else sample_weight
        # Each sample's part of its class, and T.
        self.shares: Array = weight / np.bincount(labels, weights=weight, minlength=2)[labels]
        self.roots = np.sqrt(self.shares)
        self.signs = np.where(labels == 1, 1.0, -1.0)
        self._labels = labels
        # Columns s_− and s_+.
        self._classes = np.zeros((len(labels), 2), order="F")
        self._classes[np.arange(len(labels)), labels] = self.roots
        self._factor = np.empty((len(labels), len(labels)))
        self._lift = 0.0
        self._products: Array | None = None
        # The point that `_factor` and `_products` belong to.
        self._latest: KimEvaluation | None = None

    @property
    def n_kernels(self) -> int:
        return self.kernels.shape[2]

    @property
    def outline(self) -> Outline:
        return Outline(type(self), len(self.signs), self.n_kernels, 1)

    def evaluate(self, weights: Array) -> KimEvaluation:
        """Factorise N at `weights` and return E, gains and what else is asked for."""
        images = self._factorize(weights)
        right = self._within(images[:, 1] - images[:, 0])
        solution, _ = linalg.lapack.dpotrs(self._factor.T, right, lower=0)
        within = self._within(solution)
        z = self.signs * self.roots - within
        self._multiply(z)
        products = self._flat_products
        gains = matmul(products, z, scale=1.0 / self.reg)
        outputs = blas.dgemv(1.0 / self.reg, products.T, weights)
        midpoint = float(matmul(self._classes.T, outputs).mean())
        slack = float(np.sum((within - self._within(outputs)) ** 2))
        value = slack - float(weights @ gains + np.sum(within**2))
        self._latest = KimEvaluation(weights, value, gains, slack, midpoint, self, within)
        return self._latest

    def gains_at(self, dual: Array) -> Array:
        """``uᵀG_iu/λ`` of every kernel, one pass over them."""
        gains: Array = np.einsum("jmc,mc->j", self.kernels.apply(dual), dual) / self.reg
        return gains

    def restricted(self, kernels: NDArray[np.intp]) -> KimLoss:
        """The same loss of some of the kernels."""
        part = copy(self)
        part.kernels = self.kernels.select(kernels)
        part._factor = np.empty_like(self._factor)
        part._products = part._latest = None
        return part

    def lower_bound(self, dual: Array, support: Callable[[Array], float]) -> float:
        """``−‖Pv‖² − σ_B(g)`` of the v that u stands for: D is linear in θ."""
        z = dual[:, 0] / self.roots
        within = self._within(self.signs * self.roots - z)
        z = self.signs * self.roots - within
        products = self.kernels.apply((self.roots * z)[:, None])[:, :, 0]
        gains = products @ (self.roots * z) / self.reg
        return -float(np.sum(within**2)) - support(gains)

    def _within(self, columns: Array) -> Array:
        """P @ columns: class means taken away."""
        return columns - self._spread(matmul(self._classes.T, columns))

    def _spread(self, means: Array) -> Array:
        """[s_− s_+] @ means."""
        spread: Array = (means[self._labels].T * self.roots).T
        return spread

    def _multiply(self, z: Array) -> None:
        """K_jz for all kernels, into the same memory each time."""
        self._products = self.kernels.apply((self.roots * z)[:, None], out=self._products)
        self._products *= self.roots[:, None]

    @property
    def _flat_products(self) -> Array:
        """K_jz, one row per kernel."""
        assert self._products is not None
        return np.ascontiguousarray(self._products[:, :, 0])

    def _factorize(self, weights: Array) -> Array:
        """Cholesky factor of N with its lift, in place; returns K [s_− s_+]."""
        images = self._assemble(weights)
        if not self._cholesky():
            size = self._lift * len(self._factor)
            raise ValueError(
                f"reg={self.reg:g} is lost in the rounding of kernels whose combined trace, each "
                f"class divided by its size, is {size:.3g}: the matrix to factorise is not "
                "positive definite. Raise reg, or scale or normalise the kernels, or compute them "
                "in higher precision."
            )
        return images

    def _assemble(self, weights: Array) -> Array:
        """N with its lift into `_factor`; returns K [s_− s_+]."""
        matrix = self.kernels.combine(weights, out=self._factor)
        matrix *= self.roots
        matrix *= self.roots[:, None]
        diagonal = matrix.reshape(-1)[:: len(matrix) + 1]
        self._lift = float(np.abs(diagonal).mean())
        images = matmul(matrix, self._classes)
        means = matmul(self._classes.T, images)
        # PKP + lift·SSᵀ = K − SYᵀ − YSᵀ with S = [s_− s_+], a change of rank four.
        change = images - 0.5 * self._spread(means + self._lift * np.eye(2))
        # The transpose of a C-ordered symmetric matrix is itself in LAPACK's order: no copy.
        blas.dsyr2k(-1.0, self._classes, change, beta=1.0, c=matrix.T, lower=0, overwrite_c=1)
        diagonal += self.reg
        return images

    def _cholesky(self) -> bool:
        """Replace N in `_factor` by R, the upper triangle of `_factor.T`; False if it has none."""
        _, failed = linalg.lapack.dpotrf(self._factor.T, lower=0, clean=0, overwrite_a=1)
        return not failed

    def raise_reg(self, weights: Array) -> None:
        """Multiply λ by ten until N can be factorised and no gain is negative at these weights."""
        while not self._is_convex_at(weights):
            self.reg *= 10.0

    def _is_convex_at(self, weights: Array) -> bool:
        self._latest = None
        self._assemble(weights)
        if not self._cholesky():
            return False
        point = self.evaluate(weights)
        return bool((point.gains >= -point.gain_errors).all())

    def kernel_weights(self, weights: Array) -> Array:
        """Those of the weights that belong to kernels: all."""
        return weights

    def regularization(self, weights: Array) -> float:
        """λ."""
        return self.reg

    def coarse(self) -> None:
        """None: as for the square loss of one output, the model is good from the start."""
        return None


@dataclass
class KimEvaluation:
    """E at one point; see the module for the formulas.

    `slack` is the part of `value` that comes of rounding in the inner problem; `midpoint` lies
    halfway between the class means of the outputs ``G @ coefficients``.
    """

    weights: Array
    value: float
    gains: Array
    slack: float
    midpoint: float
    _loss: KimLoss = field(repr=False)
    _within: Array = field(repr=False)

    hyperbolic: ClassVar[bool] = True

    @property
    def rounding(self) -> float:
        """Of sums that are no larger than the value, and of ``zᵀKz/λ``."""
        own = np.finfo(float).eps * abs(self.value)
        return float(own + self.weights @ self.gain_errors)

    @property
    def gain_errors(self) -> Array:
        """Of ``zᵀK_jz/λ``."""
        return self._loss.kernels.form_errors(self.dual, self.dual) / self._loss.reg

    def reassessed(self) -> KimEvaluation:
        """Itself: the products are fresh at every point."""
        return self

    @property
    def ratio(self) -> float:
        """F₁*, also the distance between the class means of the outputs."""
        return self.slack - self.value

    @property
    def _z(self) -> Array:
        return self._loss.signs * self._loss.roots - self._within

    @property
    def dual(self) -> Array:
        """u = a − Jv, (m, 1)."""
        return (self._loss.roots * self._z)[:, None]

    @property
    def coefficients(self) -> Array:
        """Coefficients of the training samples in the discriminant, α* = u/λ, (m, 1)."""
        return self.dual / self._loss.reg

    def _recall(self) -> KimLoss:
        """The loss with factor and products of this point, made again if it has moved on."""
        loss = self._loss
        if loss._latest is not self:
            loss._factorize(self.weights)
            loss._multiply(self._z)
            loss._latest = self
        return loss

    def hessian(self) -> Array:
        """``∇²E``, by one triangular solve."""
        loss = self._recall()
        columns = loss._within(loss._flat_products.T)
        half, _ = linalg.lapack.dtrtrs(loss._factor.T, columns, lower=0, trans=1)
        return matmul(half.T, half, scale=2.0 / loss.reg)

    def model_hessian(self, gap: float) -> Array:
        """``∇²E``: E is 2 − 2/L, the nearly quadratic function of a square loss L."""
        return self.hessian()

    def inverse_diagonal(self) -> Array:
        """Diagonal of ``PN⁻¹P``, consuming the factor."""
        loss = self._recall()
        loss._latest = None
        linalg.lapack.dpotri(loss._factor.T, lower=0, overwrite_c=1)
        inverse = loss._factor.reshape(-1)[:: len(loss._factor) + 1]
        # Positive in exact arithmetic; rounding must not make it change sign.
        within: Array = np.maximum(
            inverse - loss.shares / (loss.reg + loss._lift), 1e-12 * inverse
        )
        return within

    def leave_one_out(self, multiplicity: Array | None = None) -> Array:
        """Output of each sample for the discriminant of all others, from between the classes.

        Measured from the midpoint of the two class means in those outputs, kernel weights and
        the parts w_j/W_± of the other samples held, (m, 1). In feature space, with
        ``M = S_+ + S_− + λI``, d = μ_+ − μ_−, the discriminant ``ω = M⁻¹d`` and
        ``c = φ(x_i) − μ_±``, leaving out the part δ of its class takes the mean to
        ``μ_± − ηc``, η = δ/(1 − δ), and S_± to ``S_± − ηccᵀ``. Both are changes of rank one, so

            ω' = ω − q M⁻¹c ,   q = η(±1 − e)/(1 − ηκ) ,   e = cᵀω ,   κ = cᵀM⁻¹c

        and the output is ``(1 + η/2)(e − κq) ± ½(F₁* − eq)``. With the share ``w_i/W_±`` of a
        sample, k of which are equal, and ρ_i the diagonal of PN⁻¹P,

            δ = share/k ,   e = v_i/√share ,   κ = (1 − share − λρ_i)/share
            q = u_i/(k − 1 + λρ_i)

        (The covariance of the class goes on being divided by W_±, not by W_± − δ, which would
        not be a change of rank one.) A sample alone in its class stays at its training output.

        Parameters
        ----------
        multiplicity : ndarray of shape (m,), optional
            How many equal samples a row stands for; one of them is left out. Fractions below
            one count as one.
        """
        loss = self._loss
        share, sign = loss.shares, loss.signs
        count = np.ones(len(share)) if multiplicity is None else np.maximum(multiplicity, 1.0)
        kept = loss.reg * self.inverse_diagonal()
        alone = share >= 1.0 - 1e-12
        part = np.where(alone & (count == 1.0), 0.0, share / count)
        eta = part / (1.0 - part)
        deviation = self._within / loss.roots
        reached = 1.0 - share - kept
        # What is left at the level of rounding is nothing, as for kernels that are zero.
        kappa = np.where(reached > 16 * np.finfo(float).eps, reached / share, 0.0)
        change = np.where(part > 0.0, self.dual[:, 0] / (count - 1.0 + kept), 0.0)
        outputs: Array = (1.0 + 0.5 * eta) * (deviation - kappa * change)
        outputs += 0.5 * sign * (self.ratio - deviation * change)
        return outputs[:, None]
