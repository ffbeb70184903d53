"""Principal axes of a kernel, with sample weights, and how many of them are worth keeping.

Sample weights w count as repetitions. With ``S = diag(√w)`` and the weighted mean subtracted,
the covariance is ``ΦᵀS²Φ``, so that the axes are ``v_k = ΦᵀS u_k/√δ_k`` with the eigenvectors of
``SKS = UΔUᵀ``. From ``z_k(x) = k(x, ·) S u_k/√δ_k`` follow

    K_b = K S U_b Δ_b⁻¹ U_bᵀ S K,      K_t ↦ K_t (S U_b) (Δ_b⁻¹ U_bᵀ S K)

and ``Δ_b⁻¹ U_bᵀ S K = U_bᵀ S⁻¹`` in the columns of samples with a weight, where nothing has to be
divided by small eigenvalues. All axes but some, which is the last band or all of a kernel, is
what these leave, ``K_t − K_t (S U_b)(U_bᵀ S⁻¹)``: nothing is lost to rounding there.

**Choosing the variance.** Ridge regression on the leading r axes, scaled to unit variance, is
judged by folds whose axes are found without them: one decomposition per fold serves all r and λ.
(Leaving samples out in closed form would hold axes that saw them. Where the spectrum is flat, as
of texts, axes lean on single samples, and few of them look better than they are.)

A partial decomposition does not pay: the reduction to tridiagonal form is most of the cost, and
the tenth part of a spectrum takes half the time of the whole, by LAPACK as by Lanczos.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._folds import folds_of_equal_classes

#: The variances among which ``Denoise("cv")`` chooses.
VARIANCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
#: The regularisations among which it chooses for each of them, unless it is told one.
REGS = (0.01, 0.1, 1.0, 10.0, 100.0)
# A share of the variance that is not told from none.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Axes:
    """Leading principal axes of one kernel: ``K_t ↦ (K_t @ left) @ right``."""

    values: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def part(self, start: int, stop: int) -> Axes:
        cut = slice(start, stop)
        return Axes(self.values[cut], self.left[:, cut], self.right[cut])


def spectrum(K: np.ndarray, weights: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of SKS in descending order, none negative, and eigenvectors in columns.

    The last eigenvalues are zero where all that follows is no more than `rounding`: a band of
    them, scaled to unit variance, would be noise.
    """
    roots = np.sqrt(weights)
    values, vectors = linalg.eigh(K * roots * roots[:, None], driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    values[np.cumsum(values) <= rounding] = 0.0
    return values[::-1], vectors[:, ::-1]


def leading_axes(
    K: np.ndarray, weights: np.ndarray, values: np.ndarray, vectors: np.ndarray
) -> Axes:
    """The axes that belong to `values`, the first of the spectrum."""
    leading = np.ascontiguousarray(vectors[:, : len(values)])
    if np.all(weights == 1.0):
        return Axes(values, leading, leading.T)
    roots = np.sqrt(weights)[:, None]
    left = roots * leading
    without = weights == 0.0
    right = (leading / np.where(without[:, None], 1.0, roots)).T
    right[:, without] = (left.T @ K[:, without]) / values[:, None]
    return Axes(values, left, right)


def n_leading(values: np.ndarray, share: float) -> int:
    """How many of the values hold a share of their sum; all if they hold it but for rounding."""
    held = np.cumsum(values)
    number = 1 + int(np.searchsorted(held, (share - _ROUNDING) * held[-1]))
    return len(values) if held[number - 1] >= (1.0 - _ROUNDING) * held[-1] else number


class Judge:
    """Errors on held-out samples of single-kernel discriminants on leading axes.

    Parameters
    ----------
    y : array-like of shape (m,)
        Class labels.
    weights : ndarray of shape (m,)
        Sample weights.
    regs : sequence of float
        λ, the best of which counts.
    n_folds : int
    """

    def __init__(self, y: Any, weights: np.ndarray, regs: tuple[float, ...], n_folds: int) -> None:
        if y is None:
            raise ValueError('Denoise(variance="cv") needs class labels: fit(stack, y).')
        check_classification_targets(y)
        y = column_or_1d(y)
        if len(y) != len(weights):
            raise ValueError(f"There are {len(y)} labels, but {len(weights)} training samples.")
        classes = np.unique(y[weights > 0])
        if len(classes) < 2:
            raise ValueError(f"At least 2 classes are needed, got {classes.tolist()}.")
        members = (y[:, None] == classes).astype(float)
        shares = np.average(members, axis=0, weights=weights)
        # Fisher's targets: Yan 2012 (18).
        self.targets = (members - shares) / np.sqrt(shares)
        self.classes = members.argmax(axis=1)
        self.weights = weights
        self.regs = np.array(regs)
        self.n_folds = n_folds

    def errors(self, K: np.ndarray) -> np.ndarray:
        """Squared error at each of ``VARIANCES`` and its best λ, relative to that of the mean.

        NaN where samples are too alike to be divided into folds.
        """
        present = np.flatnonzero(self.weights > 0)
        position = K.diagonal()[present]
        folds = folds_of_equal_classes(self.classes[present], position, self.n_folds)
        if len(folds) < 2:
            return np.full(len(VARIANCES), np.nan)
        errors = np.sum([self._fold_errors(K, present[fold]) for fold in folds], axis=0)
        judged = present[np.concatenate(folds)]
        whole = self.weights[judged] @ np.sum(self.targets[judged] ** 2, axis=1)
        return errors.min(axis=1) / whole

    def _fold_errors(self, K: np.ndarray, fold: np.ndarray) -> np.ndarray:
        kept = np.setdiff1d(np.flatnonzero(self.weights > 0), fold)
        weights = self.weights[kept] / self.weights[kept].sum()
        means = weights @ K[np.ix_(kept, kept)]
        offset = means - 0.5 * means @ weights
        gram = K[np.ix_(kept, kept)] - offset - offset[:, None]
        block = K[np.ix_(fold, kept)]
        block = block - offset - (block @ weights - 0.5 * means @ weights)[:, None]
        # Nothing but constants left in the fold's complement: no axes, the mean is the answer.
        rounding = _ROUNDING * np.abs(K.diagonal()[kept] @ weights)
        values, vectors = spectrum(gram, weights, rounding)
        roots = np.sqrt(weights)[:, None]
        mean = weights @ self.targets[kept]
        coordinates = vectors.T @ (roots * (self.targets[kept] - mean))
        scores = block @ (roots * vectors)
        n_kept = self.weights[kept].sum()
        errors = np.empty((len(VARIANCES), len(self.regs)))
        for i, share in enumerate(VARIANCES):
            stop = n_leading(values, share) if values[0] > 0.0 else 0
            held = values[:stop]
            for k, reg in enumerate(self.regs):
                inverse = 1.0 / (held + reg * held.sum() / n_kept)
                output = scores[:, :stop] @ (inverse[:, None] * coordinates[:stop])
                residuals = self.targets[fold] - mean - output
                errors[i, k] = self.weights[fold] @ np.sum(residuals**2, axis=1)
        return errors


def make_judge(y: Any, weights: np.ndarray, reg: Any, folds: Any) -> Judge:
    """Folds at one λ, or at the best of ``REGS``."""
    if reg is not None and (not isinstance(reg, Real) or not 0.0 < float(reg) < np.inf):
        raise ValueError(f"reg must be a positive number or None, got {reg!r}.")
    if not isinstance(folds, Integral) or folds < 2:
        raise ValueError(f"folds must be an integer of at least 2, got {folds!r}.")
    return Judge(y, weights, REGS if reg is None else (float(reg),), int(folds))
