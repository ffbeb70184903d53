"""J of a gate: the optimal value of a kernel machine on gated kernels.

With outputs η (m × P) of the gate and dual variables V (m × c) of the machine,

    K_η = Σ_p diag(η_p) K_p diag(η_p),     J(θ) = max_V linear(V) − ½ Σ_k v_kᵀ K_η v_k
    E_ip = ∂J/∂η_ip = −Σ_k V_ik [K_p (v_k∘η_p)]_i

(Gönen & Alpaydın 2013, sections 2.2 to 2.4. The paper has E inside double sums, which for a
softmax gate take P² products of a kernel with a vector. Here it takes P, and the gate turns E
into ∂J/∂θ.) V is optimal, so its own change with θ does not count (Danskin's theorem). J is not
convex in θ.

Only samples with a dual variable other than zero, the support vectors, have an E other than zero.
With ``W = VVᵀ`` between them, computed once for all kernels,

    E_ip = −Σ_j W_ij [K_p]_ij η_jp

takes one pass over their entries of K_p, however many outputs there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._blas import matmul
from ..losses.base import Indices
from ..smo.rows import Rows
from .gates import Array, Gate
from .machines import Machine, Trained

# Support vectors are picked out of the kernels if they are at most this share of all samples:
# reading single entries takes 2.4 times as long as reading rows from end to end (measured with
# 666 samples), and their number goes squared into the time.
_WORTH_PICKING = 0.6


@dataclass
class GatedObjective:
    """J as a function of the parameters of a gate, given kernels and features of training rows.

    `kernels` are m × m, C-ordered: one array (P, m, m), or a list, which is copied into one.
    `n_inner_solves` counts the machines trained so far.
    """

    kernels: Array | list[Array]
    gate: Gate
    features: Array
    machine: Machine
    n_inner_solves: int = 0

    def __post_init__(self) -> None:
        self.kernels = np.ascontiguousarray(self.kernels)
        self._diagonals = np.diagonal(self.kernels, axis1=1, axis2=2)
        self._combined = np.empty(self.kernels.shape[1:])

    def gated(self, outputs: Array) -> Rows:
        """K_η, row by row as it is needed, in memory that the next call overwrites."""
        # Numba takes a second to import, and most users of the package have no gates.
        from ._loops import fill_rows

        gates = np.ascontiguousarray(outputs.T)

        def fill(rows: Indices) -> None:
            fill_rows(self.kernels, gates, rows, self._combined)

        return Rows(self._combined, fill, (gates * gates * self._diagonals).sum(axis=0))

    def combined(self, outputs: Array) -> Array:
        """K_η, in memory that the next call overwrites."""
        return self.gated(outputs).whole()

    def evaluate(self, theta: Array) -> GatedPoint:
        """Train the machine at `theta`."""
        outputs = self.gate.outputs(theta, self.features)
        trained = self.machine.train(self.gated(outputs))
        self.n_inner_solves += 1
        return GatedPoint(theta, outputs, trained, self)

    def output_gradient(self, outputs: Array, dual: Array) -> Array:
        """E = ∂J/∂η."""
        gradient = np.zeros(outputs.shape)
        rows, slopes = self.output_slopes(outputs, dual)
        gradient[rows] = slopes
        return gradient

    def output_slopes(self, outputs: Array, dual: Array) -> tuple[Indices, Array]:
        """Samples whose rows of E may differ from zero, and these rows."""
        from ._loops import weighted_sums

        rows = np.flatnonzero(dual.any(axis=1))
        if len(rows) > _WORTH_PICKING * len(dual):
            rows = np.arange(len(dual))
        own = np.ascontiguousarray(dual[rows])
        slopes = np.empty((len(rows), outputs.shape[1]))
        gates = np.ascontiguousarray(outputs.T)
        weighted_sums(self.kernels, gates, matmul(own, own.T, scale=-1.0), rows, slopes)
        return rows, slopes


@dataclass
class GatedPoint:
    """J at the parameters `theta`, where the gate has `outputs` and the machine is `trained`."""

    theta: Array
    outputs: Array
    trained: Trained
    _objective: GatedObjective = field(repr=False)

    @property
    def value(self) -> float:
        """J."""
        return self.trained.value

    @property
    def coefficients(self) -> dict[str, Array]:
        """θ by name, one row for each kernel."""
        objective = self._objective
        return objective.gate.coefficients(self.theta, objective.features.shape[1])

    @property
    def kernel(self) -> Array:
        """K_η, in memory that the next evaluation of J overwrites."""
        return self._objective.combined(self.outputs)

    @cached_property
    def gradient(self) -> Array:
        """∂J/∂θ."""
        objective = self._objective
        rows, slopes = objective.output_slopes(self.outputs, self.trained.dual)
        # Samples without a slope add nothing.
        features, outputs = objective.features[rows], self.outputs[rows]
        return objective.gate.pull_back(self.theta, features, outputs, slopes)
