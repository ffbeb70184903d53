"""Sums of machines or columns of several kernels, each with coefficients of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators._machines import MachineKernels, SupportVectors
from ..estimators._rows import TrainingRows


class MixtureAttributes:
    """Fitted attributes of such sums, besides those of support vectors.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_[j].T + intercept_`` is the output, with K_j
        normalised; zero for kernels without weight.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``, computed from the values that
        the linear program is about; ``dual_point`` is the proof.
    n_iter_ : int
        Length of the history.
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration.
    """


@dataclass(frozen=True)
class KernelMixture:
    """``Σ_j weights[j] K_j @ coefficients[j] + intercept``.

    `weights` are (n_kernels,) or (n_outputs, n_kernels); `coefficients` are those of all training
    samples, (n_kernels, m, n_outputs).
    """

    weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray

    def attributes(self, rows: TrainingRows, kernels: MachineKernels) -> dict[str, Any]:
        """Fitted attributes."""
        n_kernels, n_samples, n_outputs = self.coefficients.shape
        weighted = np.atleast_2d(self.weights).T[:, None] > 0.0
        used = np.where(weighted, self.coefficients, 0.0)
        vectors = SupportVectors.of(used.transpose(1, 0, 2).reshape(n_samples, -1))
        kept = vectors.coefficients.reshape(-1, n_kernels, n_outputs).transpose(1, 0, 2)
        attributes = vectors.attributes(rows, kernels.kernels.source.keep(vectors.kept))
        shape = (n_kernels, n_outputs, len(vectors.support))
        return {
            **rows.attributes,
            **attributes,
            "kernel_names_": kernels.stack.names,
            "weights_": self.weights,
            "dual_coef_": attributes["dual_coef_"].reshape(shape),
            "intercept_": self.intercept,
            "_expansion": kernels.expansion(self.weights, kept, vectors.kept),
        }
