"""Reconstruction of the images in one kernel from another kernel, by ridge regression.

Let K be a centred kernel with images φ, known for some training samples, and O a kernel of the
same samples that is known for all. The regression of φ on the images of O, with weights
W = diag(w) of the samples and a mean, has

    φ̂(x) = Σ_i w_i(x) φ(x_i),    w(x) = (O + λW⁻¹)⁻¹ o(x),

where O is centred on the samples that have K and scaled to unit variance, and so is the row o(x)
of a new sample. The entries of w(x) add up to zero.

λ is the one with the least error on samples that are left out. With ``S = W^{1/2}`` and
``G = (SOS + λI)⁻¹``, the residual of sample i has the squared length

    ‖r_i‖² = λ² (G SKS G)_ii / w_i,

and a part δ of its weight can be left out in closed form: the residual is then divided by
``1 − δ (1 − λG_ii) / w_i − δ / Σw``. A sample of weight two counts as two, of which one is left
out (δ = 1); a sample of less weight than one is left out as a whole (δ = w_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._rounding import ACCUMULATED

#: λ to choose from, for kernels of unit variance: from nearly no shrinkage to nearly the mean.
REGS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Reconstruction:
    """The regression at the best λ, `reg`; `inverse` is ``S G S`` on the samples `rows`.

    `errors` are those on left-out samples, relative to that of the mean, for every λ of `REGS`.
    """

    rows: np.ndarray
    shares: np.ndarray
    means: np.ndarray
    grand_mean: float
    scale: float
    inverse: np.ndarray
    reg: float
    errors: np.ndarray

    @property
    def error(self) -> float:
        """The error at the best λ."""
        return float(self.errors.min())

    @classmethod
    def learn(cls, others: np.ndarray, kernel: np.ndarray, weights: np.ndarray) -> Reconstruction:
        """From two kernels (m, m), where `weights` are zero for samples that lack `kernel`."""
        rows = np.flatnonzero(weights > 0)
        weights = weights[rows]
        shares = weights / weights.sum()
        others, kernel = (matrix[np.ix_(rows, rows)] for matrix in (others, kernel))
        means = shares @ others
        grand_mean = float(means @ shares)
        others = others - means - means[:, None] + grand_mean
        variance = float(others.diagonal() @ shares)
        scale = 1.0 / variance if variance > 0.0 else 0.0
        roots = np.sqrt(weights)
        outer = np.outer(roots, roots)
        others, kernel = scale * others * outer, kernel * outer
        found = [_left_out_error(others, kernel, weights, reg) for reg in REGS]
        best = int(np.argmin([error for error, _ in found]))
        inverse = found[best][1] * outer
        whole = max(float(kernel.trace()), ACCUMULATED)
        errors = np.array([error for error, _ in found]) / whole
        return cls(rows, shares, means, grand_mean, scale, inverse, REGS[best], errors)

    def coefficients(self, others: np.ndarray) -> np.ndarray:
        """w of new samples, (n_rows, m), from their kernel `others` with training samples."""
        known = others[:, self.rows]
        centred = known - (known @ self.shares)[:, None] - self.means + self.grand_mean
        weights = np.zeros(others.shape)
        weights[:, self.rows] = self.scale * centred @ self.inverse
        return weights


def _left_out_error(
    others: np.ndarray, kernel: np.ndarray, weights: np.ndarray, reg: float
) -> tuple[float, np.ndarray]:
    """Weighted squared error on left-out samples, and G; from ``SOS`` and ``SKS``."""
    shifted = others.copy()
    shifted.flat[:: len(others) + 1] += reg
    factor, _ = linalg.lapack.dpotrf(shifted, lower=True)
    G, _ = linalg.lapack.dpotri(factor, lower=True)
    G = np.tril(G) + np.tril(G, -1).T
    squares = reg**2 * np.sum((G @ kernel) * G, axis=1)
    left_out = np.minimum(weights, 1.0)
    leverage = (1.0 - reg * G.diagonal()) / weights + 1.0 / weights.sum()
    # Positive in exact arithmetic; rounding errors must not change its sign.
    remainder = np.maximum(1.0 - left_out * leverage, ACCUMULATED)
    return float(np.sum(squares / remainder**2)), G
