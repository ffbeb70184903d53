"""Learning of gates by an estimator: all machines and starts, fitted attributes and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..domains import lp_domain
from ..kernels import KernelStack
from ..losses.base import Indices
from ..solvers import Newton
from ..utils.sklearn import warn_caller
from .descent import (
    INTERRUPTED,
    MAX_REDRAWN,
    STOPPED,
    Block,
    Descent,
    DescentOptions,
    GatedProblem,
    HeldOutCurve,
    Judge,
    Observer,
    Point,
    Restarts,
    Watch,
    descend,
    restarted,
)
from .gates import DEFAULT_PENALTY, Array, Gate, Rng, as_gate
from .objective import GatedObjective, Machine, StationarityCertificate

# -- Gates of one machine along decreasing penalties, each from the one before --------------------
#
# The path begins at the penalty ∞, which is plain multiple kernel learning.


@dataclass(frozen=True)
class GatedPath:
    """Gates of a `problem` along decreasing penalties; its own penalty is not used."""

    problem: GatedProblem
    options: DescentOptions
    rng: Rng

    def along(
        self, penalties: Iterable[float], observer: Observer | None = None
    ) -> Iterator[Descent]:
        """Yield a gate for each of the decreasing penalties, until the observer stops them."""
        start: Array | None = None
        for penalty in penalties:
            if np.isinf(penalty):
                exact = replace(self.problem, exact=True, penalty=0.0)
                theta = exact.start(self.rng)
                none = replace(self.options, max_iter=0)
                descent = descend(exact.objective(theta), theta, none, observer)
                # The number of steps is chosen by held-out samples; J is not to be minimised.
                descent.amend(held_out=True)
            else:
                problem = replace(self.problem, penalty=penalty)
                theta = problem.start(self.rng) if start is None else start
                descent = descend(problem.objective(theta), theta, self.options, observer)
                start = descent.point.theta
            yield descent
            if descent.status in (INTERRUPTED, STOPPED):
                return


# Relative gap of the plain weights: a digit or two more than needed, at the cost of one machine.
_TOL = 1e-6
# Seed of the starts without held-out samples; the final starts use the generator of the user.
_SEED = 0
#: Norm of the weights of plain multiple kernel learning, the default of its estimators.
PLAIN_NORM = 2.0


@dataclass(frozen=True)
class GatedSamples:
    """Normalised kernels and gating features of training samples."""

    stack: KernelStack
    features: Any

    @cached_property
    def matrices(self) -> Array:
        """Kernel matrices, (P, m, m) and C-ordered."""
        return np.ascontiguousarray(self.stack.materialized().data, dtype=np.float64)


@dataclass(frozen=True)
class Fold:
    """Held-out samples; `parts` returns the kernels and features of both parts."""

    train: Indices
    test: Indices
    parts: Callable[[], tuple[GatedSamples, Block]]


@dataclass(frozen=True)
class GateLearning:
    """Settings for learning gates from random starts drawn by `rng`.

    A `penalty` relative to J draws gates to plain weights, see :class:`.AnchoredObjective`. With
    `n_folds` > 0 held-out samples choose the number of steps; with 0 a descent ends where J does.
    """

    estimator: str
    gate: Gate
    rng: Rng
    options: DescentOptions
    penalty: float = 0.0
    n_folds: int = 0

    @classmethod
    def of(cls, estimator: Any) -> GateLearning:
        """Return the settings of an estimator with a gate of one penalty."""
        learning = cls._checked(estimator)
        gate, penalty = learning.gate, learning.gate.penalty
        if isinstance(penalty, str):
            penalty = DEFAULT_PENALTY
        if not isinstance(penalty, Real) or np.isinf(penalty):
            raise ValueError(
                f"penalty of the gate must be a finite number in {learning.estimator}, got "
                f"{penalty!r}. LocalizedSVCCV and LocalizedSVRCV choose from a list of penalties, "
                "in which inf is plain multiple kernel learning."
            )
        return replace(learning, penalty=float(penalty), n_folds=int(gate.early_stopping))

    @classmethod
    def of_path(cls, estimator: Any) -> GateLearning:
        """Return the settings of an estimator that chooses a penalty, with one start."""
        learning = cls._checked(estimator)
        if learning.gate.n_init > 1:
            raise ValueError(
                f"n_init of the gate must be 1 in {learning.estimator}, which learns every gate "
                f"from the one of the next larger penalty; got {learning.gate.n_init}."
            )
        return learning

    @classmethod
    def _checked(cls, estimator: Any) -> GateLearning:
        gate = as_gate(estimator.gating)
        gate._validate_params()
        return cls(
            type(estimator).__name__,
            gate,
            check_random_state(gate.random_state),
            DescentOptions(estimator.tol, gate.max_iter, gate.quasi_newton),
        )

    def max_progress(self, n_machines: int) -> int:
        """Return the maximum number of observer calls of :meth:`learn`."""
        n_descents = self.gate.n_init + self.n_folds
        return n_machines * (n_descents * (self.options.max_iter + 1) + MAX_REDRAWN)

    def learn(
        self,
        samples: GatedSamples,
        machines: Sequence[Machine],
        judges: Sequence[Judge] = (),
        folds: Sequence[Fold] = (),
        observer: Observer | None = None,
    ) -> LearntGates:
        """Learn a gate for every machine, one after the other; all have a judge, or none.

        The observer is called at every point of every descent. If it returns True, or Ctrl-C is
        pressed, all descents end: gates that have not been learnt yet stay at plain weights.
        """
        gates: list[LearntGate] = []
        for k, machine in enumerate(machines):
            judge = judges[k] if judges else None
            status = gates[-1].status if gates else ""
            gates.append(self._learn_one(samples, machine, judge, folds, observer, status))
        return LearntGates(self, gates)

    def _learn_one(
        self,
        samples: GatedSamples,
        machine: Machine,
        judge: Judge | None,
        folds: Sequence[Fold],
        observer: Observer | None,
        status: str,
    ) -> LearntGate:
        """Learn the gate of one machine; with a `status` no more descents are started."""
        problem, weights, n_solves = self.problem(samples, machine)
        n_init, options, curve = self.gate.n_init, self.options, None
        judged = judge is not None and self.n_folds > 0
        if judge is not None and judged and len(weights) > 1 and not status:
            curve, status, n_more = self._judged(folds, machine, judge, observer)
            n_solves += n_more
        # Without two samples to hold out, no gate can be shown to be better than plain weights.
        n_steps = 0 if status or (judged and curve is None) else options.max_iter
        n_steps = n_steps if curve is None else min(n_steps, curve.clearly_best)
        if n_steps == 0:
            problem, n_init = replace(problem, exact=True), 1
        options = replace(options, max_iter=n_steps)
        restarts = restarted(problem, n_init, self.rng, options, None if status else observer)
        if status or judged:
            ended = INTERRUPTED in (status, restarts.status)
            restarts.best.amend(interrupted=ended, held_out=not status)
        return LearntGate(restarts, weights, curve, n_solves, status or restarts.status)

    def problem(
        self, samples: GatedSamples, machine: Machine, p: float = PLAIN_NORM
    ) -> tuple[GatedProblem, Array, int]:
        """Return the problem of a gate, plain weights of norm p, and the machines trained."""
        solution = Newton().solve(machine.loss(samples.stack), lp_domain(p), tol=_TOL)
        anchor = self.gate.anchor(solution.weights, samples.features.shape[1])
        plain = GatedObjective(samples.matrices, self.gate, samples.features, machine)
        problem = GatedProblem(plain, anchor, self.penalty)
        return problem, solution.weights, solution.n_inner_solves

    def _judged(
        self, folds: Sequence[Fold], machine: Machine, judge: Judge, observer: Observer | None
    ) -> tuple[HeldOutCurve | None, str, int]:
        """Return the held-out curve, the reason why descents were ended, and machines trained."""
        watches, n_solves = [], 0
        rng = np.random.default_rng(_SEED)
        try:
            for fold in folds:
                samples, block = fold.parts()
                problem, _, n_plain = self.problem(samples, machine.of(fold.train))
                watch = Watch(self.gate, block, judge, fold.test)
                start = problem.start(rng)
                objective = problem.objective(start)
                descent = descend(objective, start, self.options, observer, watch)
                n_solves += n_plain + objective.n_inner_solves
                if descent.status in (INTERRUPTED, STOPPED):
                    return None, descent.status, n_solves
                watches.append(watch)
        except KeyboardInterrupt:
            return None, INTERRUPTED, n_solves
        return (HeldOutCurve.of(watches, judge) if watches else None), "", n_solves


@dataclass(frozen=True)
class LearntGate:
    """Gate of one machine, from the best of its starts.

    `weights` are those of plain multiple kernel learning, `curve` the held-out losses, if any.
    `n_other_solves` counts machines trained for these two. `status` is the reason why descents
    were ended from outside.
    """

    restarts: Restarts
    weights: Array
    curve: HeldOutCurve | None
    n_other_solves: int
    status: str

    @property
    def n_inner_solves(self) -> int:
        """Number of machines trained."""
        return self.n_other_solves + self.restarts.n_inner_solves


@dataclass(frozen=True)
class LearntGates:
    """Gates of independent machines, one entry of `gates` for each machine.

    `on_path` marks gates at the end of a path, whose starts and steps were not judged.
    """

    learning: GateLearning
    gates: list[LearntGate]
    on_path: bool = False

    @property
    def restarts(self) -> list[Restarts]:
        """Descents of each gate."""
        return [gate.restarts for gate in self.gates]

    @property
    def points(self) -> list[Point]:
        """Best point of each gate: its parameters and outputs, and the machine there."""
        return [restarts.best.point for restarts in self.restarts]

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
        """Certificate of all gates together."""
        return StationarityCertificate.joined(
            [restarts.best.certificate for restarts in self.restarts]
        )

    @property
    def history(self) -> dict[str, list[Any]]:
        """Points of the best descent of each gate, one gate after the other.

        ``n_inner_solves`` counts all machines trained so far, including other gates and starts.
        """
        of_earlier_gates = np.cumsum([0, *(gate.n_inner_solves for gate in self.gates)])
        before = of_earlier_gates[:-1] + [gate.n_other_solves for gate in self.gates]
        steps = [
            (k, step) for k, restarts in enumerate(self.restarts) for step in restarts.best.history
        ]
        history: dict[str, list[Any]] = {
            "objective": [step.certificate.objective for _, step in steps],
            "gradient_norm": [step.certificate.gradient_norm for _, step in steps],
            "n_inner_solves": [int(before[k]) + step.n_inner_solves for k, step in steps],
        }
        if len(self.restarts) > 1:
            history["machine"] = [k for k, _ in steps]
        return history

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of an estimator."""
        certificate = self.certificate
        coefficients = [point.coefficients for point in self.points]
        objectives = [restarts.objectives for restarts in self.restarts]
        several = len(self.gates) > 1
        weights = [gate.weights for gate in self.gates]
        losses = [None if gate.curve is None else gate.curve.losses for gate in self.gates]
        of_descents = {
            "restart_objectives_": objectives if several else objectives[0],
            "held_out_losses_": losses if several else losses[0],
        }
        return {
            "certificate_": certificate,
            "history_": self.history,
            # Scikit-learn asks for at least 1.
            "n_iter_": max(restarts.best.n_iter for restarts in self.restarts) or 1,
            "n_inner_solves_": sum(gate.n_inner_solves for gate in self.gates),
            "objective_": certificate.objective,
            "finished_": not self._ended(INTERRUPTED),
            "gating_coef_": coefficients if several else coefficients[0],
            "plain_weights_": np.array(weights) if several else weights[0],
            **({} if self.on_path else of_descents),
        }

    def warn(self) -> None:
        """Warn of saturated gates, interrupted descents and missing convergence."""
        name, certificate = self.learning.estimator, self.certificate
        if n_redrawn := sum(restarts.n_redrawn for restarts in self.restarts):
            warn_caller(
                f"{name}: the gate was saturated everywhere in {n_redrawn} of the starts, which "
                "were drawn again. Lower the scale of the gate, or use another gate.",
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
                # Each status once; the status of a converged gate is empty.
                causes = dict.fromkeys(restarts.best.status for restarts in self.restarts)
                cause, way_out = "; ".join(filter(None, causes)), "Raise max_iter or tol."
            message = (
                f"{name} stopped while the objective still changed by {certificate.change:.1e} > "
                f"tol={certificate.tol:g} per step ({cause}). {way_out}"
            )
        warn_caller(message, ConvergenceWarning)

    def _ended(self, status: str) -> bool:
        return any(gate.status == status for gate in self.gates)
