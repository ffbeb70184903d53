"""What a descent proves about the gate that it has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isinf


@dataclass(frozen=True)
class StationarityCertificate:
    """How close a gate is to a stationary point of the objective J.

    Attributes
    ----------
    objective : float
        J; the sum over all gates if there are several.
    gradient_norm : float
        ``‖∂J/∂θ‖ / |J|``, θ being the parameters of the gate (of all gates).
    inner_gap : float
        Duality gap of the machine divided by |J|.
    change : float
        Relative decrease of J in the last step, the largest of several gates; infinite before
        the first step, 0 where no step lowers J any more.
    tol : float
        The relative change at which a descent stops.
    interrupted : bool
        Whether Ctrl-C ended the descent.
    held_out : bool
        Whether the loss of held-out samples said when to stop.

    Examples
    --------
    >>> from manykernels.gating.certificate import StationarityCertificate
    >>> print(StationarityCertificate(12.5, 3e-3, 8e-8, change=4e-3, tol=1e-2))
    stationary: The last step lowered the objective by 4.0e-03 of itself, within tol=0.01; the \
gradient norm is 3.0e-03 of the objective, the duality gap of the machine 8.0e-08.
    """

    objective: float
    gradient_norm: float
    inner_gap: float
    change: float
    tol: float
    interrupted: bool = False
    held_out: bool = False

    @classmethod
    def joined(cls, parts: Sequence[StationarityCertificate]) -> StationarityCertificate:
        """For the sum of the objectives of independent gates."""
        objective = sum(part.objective for part in parts)
        size = abs(objective) or 1.0
        # What is relative to the objective of one gate, times its share, is relative to the sum.
        shares = [((abs(part.objective) or 1.0) / size, part) for part in parts]
        return cls(
            objective=objective,
            gradient_norm=hypot(*(share * part.gradient_norm for share, part in shares)),
            inner_gap=sum(share * part.inner_gap for share, part in shares),
            change=max(part.change for part in parts),
            tol=max(part.tol for part in parts),
            interrupted=any(part.interrupted for part in parts),
            held_out=all(part.converged for part in parts)
            and any(part.held_out for part in parts),
        )

    @property
    def rel_gap(self) -> float:
        """The duality gap of the machine, `inner_gap`, as other certificates call it."""
        return self.inner_gap

    @property
    def claim(self) -> str:
        """What a small gradient proves."""
        if self.status == "held out":
            return (
                "Other gates have a lower `objective`, and are no better for samples that were "
                "held out: the descent was ended for these. The machine of this gate is within "
                "`inner_gap` of its optimum."
            )
        return (
            "The gate is near a stationary point, as a rule a local minimum, of the `objective`: "
            "relative to it, the gradient is `gradient_norm`, the last decrease was `change`, and "
            "the machine of this gate is within `inner_gap` of its optimum. Other gates may have "
            "a lower objective."
        )

    @property
    def converged(self) -> bool:
        """Whether J had stopped changing, or held-out samples said when to stop."""
        return self._flat or (self.held_out and not self.interrupted)

    @property
    def _flat(self) -> bool:
        return self.change <= self.tol

    @property
    def status(self) -> str:
        """ "stationary", "held out", "interrupted" or "stopped"."""
        if self._flat:
            return "stationary"
        if self.interrupted:
            return "interrupted"
        return "held out" if self.held_out else "stopped"

    @property
    def message(self) -> str:
        """The status in a sentence, with its numbers."""
        step = "No step was taken"
        if not isinf(self.change):
            bound = f"{'within' if self._flat else 'more than'} tol={self.tol:g}"
            step = f"The last step lowered the objective by {self.change:.1e} of itself, {bound}"
        remarks = {
            "stopped": " Raise max_iter or tol.",
            "held out": " The loss of held-out samples said to stop here.",
        }
        return (
            f"{step}; the gradient norm is {self.gradient_norm:.1e} of the objective, the duality "
            f"gap of the machine {self.inner_gap:.1e}.{remarks.get(self.status, '')}"
        )

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"
