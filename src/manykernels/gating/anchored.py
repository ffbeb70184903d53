"""J with a ridge that draws the gate towards plain multiple kernel learning.

    J(θ) + ½ κ ‖θ − θ₀‖² ,      κ = penalty · |J(θ₀)|

θ₀, the anchor, is the constant gate of plain kernel weights (:meth:`.gates.Gate.anchor`). Gating
features are standardised and θ has no unit, so that a penalty relative to J suits all data. With
κ → ∞ the gate stays at θ₀; with κ = 0 it is the gate of Gönen & Alpaydın (2013).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .gates import Array
from .machines import Trained
from .objective import GatedObjective, GatedPoint


@dataclass
class AnchoredObjective:
    """``J(θ) + ½ strength ‖θ − anchor‖²``; `strength` is κ."""

    plain: GatedObjective
    anchor: Array
    strength: float

    @classmethod
    def of(cls, plain: GatedObjective, anchor: Array, penalty: float) -> AnchoredObjective:
        """With a penalty relative to J at the anchor, where the machine is trained."""
        strength = penalty * abs(plain.evaluate(anchor).value) if penalty else 0.0
        return cls(plain, anchor, strength)

    @property
    def n_inner_solves(self) -> int:
        """Machines trained so far."""
        return self.plain.n_inner_solves

    def evaluate(self, theta: Array) -> AnchoredPoint:
        """Train the machine at `theta`."""
        step = theta - self.anchor
        return AnchoredPoint(self.plain.evaluate(theta), self.strength, step)


@dataclass
class AnchoredPoint:
    """A point of the gate, ``step = θ − θ₀`` away from the anchor."""

    plain: GatedPoint
    strength: float = field(repr=False)
    step: Array = field(repr=False)

    @property
    def value(self) -> float:
        """J and the ridge."""
        return self.plain.value + 0.5 * self.strength * float(self.step @ self.step)

    @cached_property
    def gradient(self) -> Array:
        """Its derivative by θ."""
        return np.asarray(self.plain.gradient + self.strength * self.step)

    @property
    def theta(self) -> Array:
        """The parameters of the gate."""
        return self.plain.theta

    @property
    def outputs(self) -> Array:
        """η of the training rows."""
        return self.plain.outputs

    @property
    def trained(self) -> Trained:
        """The machine."""
        return self.plain.trained

    @property
    def coefficients(self) -> dict[str, Array]:
        """θ by name, one row for each kernel."""
        return self.plain.coefficients

    @property
    def kernel(self) -> Array:
        """K_η, in memory that the next evaluation overwrites."""
        return self.plain.kernel
