"""How an estimator learns its gates: all machines, all starts, fitted attributes and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._warnings import warn_caller
from .certificate import StationarityCertificate
from .descent import INTERRUPTED, STOPPED, Descent, DescentOptions, Observer, descend
from .gates import Array, Gate, Rng, as_gate
from .machines import Machine
from .objective import GatedObjective, GatedPoint

# Most starts of one gate that are replaced because the gate is saturated there. Starts of the
# default scale never are; if three of a larger scale are, another one would most likely be too.
_MAX_REDRAWN = 3


@dataclass(frozen=True)
class GateLearning:
    """How an estimator of this name learns gates: from `n_init` random starts drawn by `rng`."""

    estimator: str
    gate: Gate
    n_init: int
    rng: Rng
    options: DescentOptions

    @classmethod
    def of(cls, estimator: Any) -> GateLearning:
        """From the parameters gating, n_init, random_state, tol, max_iter and quasi_newton."""
        return cls(
            type(estimator).__name__,
            as_gate(estimator.gating),
            estimator.n_init,
            check_random_state(estimator.random_state),
            DescentOptions(estimator.tol, estimator.max_iter, estimator.quasi_newton),
        )

    def max_progress(self, n_machines: int) -> int:
        """How often at most :meth:`learn` calls its observer."""
        return n_machines * (self.n_init * (self.options.max_iter + 1) + _MAX_REDRAWN)

    def learn(
        self,
        kernels: list[Array],
        features: Array,
        machines: Sequence[Machine],
        observer: Observer | None = None,
    ) -> LearntGates:
        """Learn a gate for every machine, one after the other.

        `kernels` (m × m) are C-ordered, `features` those of the training rows. The observer is
        called at every point of every descent. If it returns a true value, or Ctrl-C is pressed,
        all of them end: each gate that has not been learnt yet stays at a random start.
        """
        n_init, options, found = self.n_init, self.options, []
        for machine in machines:
            objective = GatedObjective(kernels, self.gate, features, machine)
            restarts = restarted(objective, n_init, self.rng, options, observer)
            found.append(restarts)
            if restarts.status:
                n_init, options = 1, replace(options, max_iter=0)
        return LearntGates(self, found)


@dataclass(frozen=True)
class LearntGates:
    """Gates of independent machines; `restarts` has one entry for each machine."""

    learning: GateLearning
    restarts: list[Restarts]

    @property
    def points(self) -> list[GatedPoint]:
        """The best point of each gate: its parameters and outputs, and the machine there."""
        return [found.best.point for found in self.restarts]

    @property
    def dual(self) -> Array:
        """Signed dual variables of all outputs, (m, n_outputs)."""
        return np.hstack([point.trained.dual for point in self.points])

    @property
    def biases(self) -> Array:
        """Biases of all outputs, (n_outputs,)."""
        return np.concatenate([point.trained.biases for point in self.points])

    @property
    def certificate(self) -> StationarityCertificate:
        """The certificate of all gates together."""
        return StationarityCertificate.joined([found.best.certificate for found in self.restarts])

    @property
    def history(self) -> dict[str, list[Any]]:
        """The points of the best descent of each gate, one gate after the other.

        ``n_inner_solves`` counts all machines trained until then, of other gates and starts too.
        """
        of_earlier_gates = np.cumsum([0, *(found.n_inner_solves for found in self.restarts)])
        steps = [(k, step) for k, found in enumerate(self.restarts) for step in found.best.history]
        history: dict[str, list[Any]] = {
            "objective": [step.certificate.objective for _, step in steps],
            "gradient_norm": [step.certificate.gradient_norm for _, step in steps],
            "n_inner_solves": [
                int(of_earlier_gates[k]) + step.n_inner_solves for k, step in steps
            ],
        }
        if len(self.restarts) > 1:
            history["machine"] = [k for k, _ in steps]
        return history

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of an estimator."""
        certificate = self.certificate
        coefficients = [point.coefficients for point in self.points]
        objectives = [found.objectives for found in self.restarts]
        several = len(self.restarts) > 1
        return {
            "certificate_": certificate,
            "history_": self.history,
            # Scikit-learn asks for at least 1.
            "n_iter_": max(found.best.n_iter for found in self.restarts) or 1,
            "n_inner_solves_": sum(found.n_inner_solves for found in self.restarts),
            "objective_": certificate.objective,
            "restart_objectives_": objectives if several else objectives[0],
            "finished_": not self._ended(INTERRUPTED),
            "gating_coef_": coefficients if several else coefficients[0],
        }

    def warn(self) -> None:
        """Warn of gates that are saturated, unfinished or have not converged."""
        name, certificate = self.learning.estimator, self.certificate
        if n_redrawn := sum(found.n_redrawn for found in self.restarts):
            warn_caller(
                f"{name}: the gate was saturated everywhere in {n_redrawn} of the starts, which "
                "were made again. Lower the scale of the gate, or use another one.",
                ConvergenceWarning,
            )
        if self._ended(INTERRUPTED):
            message = f"{name} was interrupted: this is the best model so far, unfinished."
        elif certificate.converged:
            return
        else:
            if self._ended(STOPPED):
                cause, way_out = STOPPED, "A callback asked for it."
            else:
                # Each status once; those of gates that have converged are empty.
                causes = dict.fromkeys(found.best.status for found in self.restarts)
                cause, way_out = "; ".join(filter(None, causes)), "Raise max_iter or tol."
            message = (
                f"{name} stopped while the objective still changed by {certificate.change:.1e} > "
                f"tol={certificate.tol:g} per step ({cause}). {way_out}"
            )
        warn_caller(message, ConvergenceWarning)

    def _ended(self, status: str) -> bool:
        return any(found.status == status for found in self.restarts)


@dataclass
class Restarts:
    """The `best` of several descents, and `objectives`, J at the end of each.

    `n_redrawn` counts starts that were replaced because the gate was saturated there,
    `n_inner_solves` the machines trained in all. `status` says why the descents were ended
    ("interrupted", "stopped by an observer"); it is empty if they were not.
    """

    best: Descent
    objectives: list[float]
    n_redrawn: int
    n_inner_solves: int
    status: str


def restarted(
    objective: GatedObjective,
    n_init: int,
    rng: Rng,
    options: DescentOptions,
    observer: Observer | None = None,
) -> Restarts:
    """Descend from `n_init` random starts, since J has many local minima, and keep the lowest.

    When `observer` asks to stop, or Ctrl-C is pressed, no other start is made.
    """
    best: Descent | None = None
    objectives: list[float] = []
    n_redrawn, status = 0, ""
    while len(objectives) < n_init and not status:
        start = objective.gate.start(objective.features, len(objective.kernels), rng)
        try:
            descent = descend(objective, start, options, observer)
        except KeyboardInterrupt:
            # During the first training of this start.
            if best is None:
                raise
            status = INTERRUPTED
            break
        if best is None or descent.point.value < best.point.value:
            best = descent
        if descent.status in (INTERRUPTED, STOPPED):
            status = descent.status
        elif n_redrawn < _MAX_REDRAWN and _saturated_at_start(objective, descent):
            n_redrawn += 1
            continue
        objectives.append(descent.point.value)
    assert best is not None, "n_init is at least one"
    return Restarts(best, objectives, n_redrawn, objective.n_inner_solves, status)


def _saturated_at_start(objective: GatedObjective, descent: Descent) -> bool:
    """Whether the gate was saturated at its start, so that no gradient led away from it.

    A gate that becomes saturated during a descent is a valid result: one kernel may be the best
    for all samples. So is the softmax of a single kernel, which is 1 everywhere.
    """
    several = len(objective.kernels) > 1
    return several and descent.n_iter == 0 and objective.gate.saturated(descent.point.outputs)
