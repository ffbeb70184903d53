"""Descents from several starts, near plain multiple kernel learning; the lowest is kept."""

from __future__ import annotations

from dataclasses import dataclass

from .anchored import AnchoredObjective
from .descent import INTERRUPTED, STOPPED, Descent, DescentOptions, Observer, descend
from .gates import Array, Rng
from .objective import GatedObjective

# Most starts of one gate that are replaced because the gate is saturated there. Starts of the
# default scale never are; if three of a larger scale are, another one would most likely be too.
MAX_REDRAWN = 3


@dataclass(frozen=True)
class GatedProblem:
    """J of a gate, the `anchor` towards which it is drawn, and how strongly, relative to J.

    A gate without an anchor is drawn to where it starts. Others start near their anchor, or
    `exact` at it.
    """

    plain: GatedObjective
    anchor: Array | None = None
    penalty: float = 0.0
    exact: bool = False

    def start(self, rng: Rng) -> Array:
        """Parameters to start from."""
        plain = self.plain
        if self.exact and self.anchor is not None:
            return self.anchor
        return plain.gate.start(plain.features, len(plain.kernels), rng, self.anchor)

    def objective(self, start: Array) -> AnchoredObjective:
        """What is lowered from there."""
        anchor = start if self.anchor is None else self.anchor
        return AnchoredObjective.of(self.plain, anchor, self.penalty)


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
    problem: GatedProblem,
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
        start = problem.start(rng)
        try:
            descent = descend(problem.objective(start), start, options, observer)
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
        elif n_redrawn < MAX_REDRAWN and _saturated_at_start(problem.plain, descent):
            n_redrawn += 1
            continue
        objectives.append(descent.point.value)
    assert best is not None, "n_init is at least one"
    return Restarts(best, objectives, n_redrawn, problem.plain.n_inner_solves, status)


def _saturated_at_start(objective: GatedObjective, descent: Descent) -> bool:
    """Whether the gate was saturated at its start, so that no gradient led away from it.

    A gate that becomes saturated during a descent is a valid result: one kernel may be the best
    for all samples. So is the softmax of a single kernel, which is 1 everywhere.
    """
    several = len(objective.kernels) > 1
    return several and descent.n_iter == 0 and objective.gate.saturated(descent.point.outputs)
