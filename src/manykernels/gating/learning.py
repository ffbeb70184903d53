"""Learning the gates of an estimator: all machines, all starts, and what is said about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._warnings import warn_caller
from .certificate import StationarityCertificate
from .descent import INTERRUPTED, STOPPED, DescentOptions, Observer
from .gates import Array, Gate, Rng, as_gate
from .machines import Machine
from .objective import GatedObjective, GatedPoint
from .restarts import MAX_REDRAWN, Restarts, restarted


@dataclass(frozen=True)
class GateLearning:
    """How an estimator learns gates.

    Attributes
    ----------
    estimator : str
        Its name, for messages.
    gate : Gate
    n_init : int
        Random starts.
    rng : RandomState or Generator
        Of the starts.
    options : DescentOptions
    """

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
        """How often at most an observer of :meth:`learn` is called."""
        return n_machines * (self.n_init * (self.options.max_iter + 1) + MAX_REDRAWN)

    def learn(
        self,
        kernels: list[Array],
        features: Array,
        machines: Sequence[Machine],
        observer: Observer | None = None,
    ) -> LearntGates:
        """Learn a gate for every machine, one after the other.

        Parameters
        ----------
        kernels : list of ndarray of shape (m, m)
            C-ordered.
        features : ndarray of shape (m, d)
            Gating features of the training rows.
        machines : sequence of Machine
        observer : callable, optional
            Sees every point of every descent. A true answer ends all of them, as Ctrl-C does:
            gates that are not learnt yet stay at one random start.
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
    """Gates of independent machines, and what is to be said about them together.

    `restarts` has one entry for each machine.
    """

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
        """Of all outputs, (n_outputs,)."""
        return np.concatenate([point.trained.biases for point in self.points])

    @property
    def certificate(self) -> StationarityCertificate:
        """Of all gates together."""
        return StationarityCertificate.joined([found.best.certificate for found in self.restarts])

    @property
    def history(self) -> dict[str, list[Any]]:
        """The points of the best descent of each gate, one gate after the other.

        ``n_inner_solves`` counts the machines trained until then for all gates and starts.
        """
        # Machines trained on earlier gates.
        before = np.cumsum([0, *(found.n_inner_solves for found in self.restarts)]).tolist()
        steps = [(k, step) for k, found in enumerate(self.restarts) for step in found.best.history]
        history: dict[str, list[Any]] = {
            "objective": [step.certificate.objective for _, step in steps],
            "gradient_norm": [step.certificate.gradient_norm for _, step in steps],
            "n_inner_solves": [before[k] + step.n_inner_solves for k, step in steps],
        }
        if len(self.restarts) > 1:
            history["machine"] = [k for k, _ in steps]
        return history

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator keeps for its users."""
        certificate = self.certificate
        coefficients = [point.coefficients for point in self.points]
        objectives = [found.objectives for found in self.restarts]
        several = len(self.restarts) > 1
        return {
            "certificate_": certificate,
            "history_": self.history,
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
        n_redrawn = sum(found.n_redrawn for found in self.restarts)
        if n_redrawn:
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
            way_out = "Raise max_iter or tol."
            cause = "; ".join(dict.fromkeys(filter(None, (r.best.status for r in self.restarts))))
            if self._ended(STOPPED):
                cause, way_out = STOPPED, "A callback asked for it."
            message = (
                f"{name} stopped while the objective still changed by {certificate.change:.1e} > "
                f"tol={certificate.tol:g} per step ({cause}). {way_out}"
            )
        warn_caller(message, ConvergenceWarning)

    def _ended(self, status: str) -> bool:
        return any(found.status == status for found in self.restarts)
