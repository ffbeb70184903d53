"""J of a gate: the optimal value of a kernel machine on gated kernels.

With outputs η (m × P) of the gate and dual variables V (m × c) of the machine,

    K_η = Σ_p diag(η_p) K_p diag(η_p),     J(θ) = max_V linear(V) − ½ Σ_k v_kᵀ K_η v_k
    E_ip = ∂J/∂η_ip = −Σ_k V_ik [K_p (v_k∘η_p)]_i

(Gönen & Alpaydın 2013, sections 2.2 to 2.4. The paper has E inside double sums, which for a
softmax gate take P² products of a kernel with a vector. Here it takes P, and the gate turns E
into ∂J/∂θ.) V is optimal, so its own change with θ does not count (Danskin's theorem). J is not
convex in θ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._blas import matmul
from .gates import Array, Gate
from .machines import Machine, Trained


@dataclass
class GatedObjective:
    """J as a function of the parameters of a gate, given kernels and features of training rows.

    `kernels` (m × m) are C-ordered; `n_inner_solves` counts the machines trained so far.
    """

    kernels: list[Array]
    gate: Gate
    features: Array
    machine: Machine
    n_inner_solves: int = 0

    def __post_init__(self) -> None:
        self._combined = np.empty_like(self.kernels[0])

    def combined(self, outputs: Array) -> Array:
        """K_η, in memory that the next call overwrites."""
        # Numba takes a second to import, and most users of the package have no gates.
        from ._loops import add_gated

        self._combined.fill(0.0)
        for p, kernel in enumerate(self.kernels):
            add_gated(kernel, np.ascontiguousarray(outputs[:, p]), self._combined)
        return self._combined

    def evaluate(self, theta: Array) -> GatedPoint:
        """Train the machine at `theta`."""
        outputs = self.gate.outputs(theta, self.features)
        trained = self.machine.train(self.combined(outputs))
        self.n_inner_solves += 1
        return GatedPoint(theta, outputs, trained, self)

    def output_gradient(self, outputs: Array, dual: Array) -> Array:
        """E = ∂J/∂η."""
        columns = [
            np.einsum("ik,ik->i", dual, matmul(kernel, dual * outputs[:, [p]]))
            for p, kernel in enumerate(self.kernels)
        ]
        return -np.column_stack(columns)


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
        gradient = objective.output_gradient(self.outputs, self.trained.dual)
        return objective.gate.pull_back(self.theta, objective.features, self.outputs, gradient)
