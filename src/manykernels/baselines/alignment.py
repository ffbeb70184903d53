"""Alignment: a machine on a sum of kernels with weights by centred alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from sklearn.base import is_classifier

from ..estimators.base import FitTask, KernelEstimator, estimator, fits
from ..estimators.kernel_data import ScaledTargets
from ..estimators.training_rows import TrainingRows
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.transforms import Center, Chain, UnitTrace
from ..utils.numerics import ACCUMULATED
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .machine import OneKernelMachine, PowerOfSum, SourceKernels

# -------------------------------------------------------------------------------------------------
# Centred alignment of kernels with the targets (Cortes, Mohri, Rostamizadeh 2012).
#
# With K^c the centred kernel and ``⟨·, ·⟩`` the inner product of Frobenius, the alignment of two
# kernels is the cosine ``ρ(K, K') = ⟨K^c, K'^c⟩ / (‖K^c‖ ‖K'^c‖)``. The kernel of the targets is
# ``K_Y = YYᵀ`` for centred columns Y. The non-negative weighted sum of kernels that is aligned
# best with it is found by a quadratic program: with ``M_ij = ⟨K_i^c, K_j^c⟩``, ``a_j = ⟨K_j^c,
# K_Y⟩``,
#
#     v* = argmin_{v ≥ 0}  vᵀMv − 2vᵀa ,        μ* = v*/‖v*‖ .                               (*)
#
# In the unknowns ``u_j = ‖K_j^c‖ v_j / ‖K_Y‖`` it is the same with cosines for M and alignments
# for a. Both are inner products of unit vectors, k_j in the direction of K_j^c and y in that of
# K_Y, so that (*) minimises ``‖Σ_j u_j k_j − y‖²``: least squares with non-negative unknowns.


@dataclass(frozen=True)
class Alignments:
    """Alignments of kernels with each other and with a kernel of targets.

    Attributes
    ----------
    cosines : ndarray of shape (n_kernels, n_kernels)
        Cosines of pairs of centred kernels; zero for constant kernels.
    with_targets : ndarray of shape (n_kernels,)
        Cosines of the centred kernels and the kernel of the targets.
    norms : ndarray of shape (n_kernels,)
        Norms ``‖K_j^c‖``; infinite for constant kernels, which get no weight.
    """

    cosines: np.ndarray
    with_targets: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(cls, stack: KernelStack, targets: np.ndarray, weights: np.ndarray | None) -> Self:
        """Compute alignments from training kernels and target columns of weighted mean zero.

        A sample of weight two counts as two: ``⟨K, K'⟩ = Σ_rc w_r w_c K_rc K'_rc``.
        """
        # Unit traces change no cosine, and make constant kernels exactly zero.
        trace = UnitTrace()
        centred = Chain([Center(), trace]).fit_transform(stack, sample_weight=weights)
        inner = centred.inner_products(weights)
        lengths = np.sqrt(np.diag(inner))
        units = np.where(lengths > 0.0, lengths, 1.0)
        columns = targets if weights is None else targets * weights[:, None]
        forms = np.einsum("rk,jrk->j", columns, centred.apply(columns))
        # ‖YYᵀ‖ is the norm of the small matrix YᵀY.
        length = float(np.linalg.norm(targets.T @ columns))
        aligned = forms / units / (length if length > 0.0 else 1.0)
        norms = np.divide(
            lengths, trace.scale_, np.full_like(lengths, np.inf), where=lengths > 0.0
        )
        # Alignments of PSD kernels are in [0, 1], up to rounding.
        return cls(inner / np.outer(units, units), np.clip(aligned, 0.0, 1.0), norms)

    def independent(self) -> np.ndarray:
        """Return weights proportional to the alignment of each kernel, with sum one."""
        return _normalized(self.with_targets)

    def joint(self) -> np.ndarray:
        """Return the weights of the best aligned sum, (*), with sum one."""
        return _normalized(self._best_units() / self.norms)

    def _best_units(self) -> np.ndarray:
        """Solve (*) for u by NNLS, with coordinates of k_j along eigenvectors of the cosines."""
        spectrum, basis = np.linalg.eigh(self.cosines)
        kept = spectrum > ACCUMULATED * max(spectrum[-1], 0.0)
        roots = np.sqrt(spectrum[kept])
        points, target = roots[:, None] * basis[:, kept].T, basis[:, kept].T @ self.with_targets
        if not kept.any():
            return np.zeros(len(spectrum))
        units: np.ndarray = nnls(points, target / roots)[0]
        return units

    def of_sum(self, weights: np.ndarray) -> float:
        """Return the alignment of ``Σ_j weights[j] K_j`` with the targets."""
        units = np.where(np.isfinite(self.norms), weights * self.norms, 0.0)
        length = float(np.sqrt(units @ self.cosines @ units))
        return min(1.0, float(units @ self.with_targets) / length) if length > 0.0 else 0.0


def _normalized(weights: np.ndarray) -> np.ndarray:
    """Return weights with sum one; equal weights if all are zero."""
    total = weights.sum()
    return weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))


@storable
@estimator()
class Alignment(OneKernelMachine, KernelEstimator):
    """A machine on a weighted sum of kernels, with weights by centred alignment.

    The weights are learnt first, from the alignment of the centred kernels with the kernel of the
    targets (Cortes, Mohri and Rostamizadeh 2012). Then the machine is fitted.

    Parameters
    ----------
    method : {"joint", "independent"}, default="joint"
        "joint" finds the nonnegative weights whose sum of kernels has the largest alignment, the
        "alignf" of the paper. "independent" weights each kernel by its own alignment, "align".

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Nonnegative weights of the normalised kernels. They sum to one, so that C or λ have the
        same meaning as for :class:`Average`; those of the paper have norm one.
    alignments_ : ndarray of shape (n_kernels,)
        Centred alignment of each kernel with the targets, from 0 to 1.
    alignment_ : float
        Centred alignment of the weighted sum.

    Notes
    -----
    The kernel of classes is one within a class and zero between classes, centred: for two classes
    the ``yyᵀ`` of the paper, for more classes the kernel that separates them best. Frequent
    classes have more influence than rare ones; class weights of the machine are not used here.
    For a regression it is ``yyᵀ``, for several targets the sum of these, each in units of its
    standard deviation. A sample of weight two counts as two. Alignments do not depend on the
    scale of kernels, nor does the sum with joint weights; independent weights are factors of the
    kernels after `normalize`. If no kernel is aligned with the targets, all have equal weights.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh. Algorithms for learning kernels based on centered
    alignment. JMLR 13, 2012.

    Examples
    --------
    >>> from manykernels.baselines import Alignment
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = Alignment(RBF()).fit(views[:300], y[:300])
    >>> dict(zip(model.kernel_names_, model.weights_.round(1).tolist()))["noise1"]
    0.0
    >>> bool(model.alignment_ >= model.alignments_.max())
    True
    """

    method: str = "joint"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions({"joint", "independent"})]
    }

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the weights by alignment, and fit the machine."""
        machine = self._new_machine()
        rows = self._target_rows(machine, X, y, sample_weight, groups, centred=True)
        task = FitTask.begin(self, X, y, 1)
        kernels = SourceKernels.of(self, rows, self.normalize)
        targets = target_columns(rows, classes=is_classifier(machine))
        aligned = Alignments.of(kernels.stack, targets, rows.counts)
        weights = aligned.joint() if self.method == "joint" else aligned.independent()
        total = PowerOfSum("alignment", weights)
        predictor = kernels.learn(machine, total, y, sample_weight, task)
        return self._keep(
            task,
            self._attributes(kernels, machine, predictor),
            weights_=weights,
            alignments_=aligned.with_targets,
            alignment_=aligned.of_sum(weights),
        )


def target_columns(rows: TrainingRows, *, classes: bool) -> np.ndarray:
    """Return centred columns Y, (m, n_columns), where ``YYᵀ`` is the kernel of the targets."""
    if not classes:
        return ScaledTargets.of(rows.targets.reshape(len(rows), -1), rows.counts).columns
    indicators = np.eye(len(rows.classes))[rows.labels]
    centred: np.ndarray = indicators - np.average(indicators, axis=0, weights=rows.counts)
    return centred
