"""Several descents from random starts, of which the lowest is kept: J has many local minima."""

from __future__ import annotations

from dataclasses import dataclass

from .descent import INTERRUPTED, STOPPED, Descent, DescentOptions, Observer, descend
from .gates import Rng
from .objective import GatedObjective

#: Most starts of one gate that are replaced because the gate is saturated there. Starts of the
#: default scale never are; if three of a larger scale are, another one would most likely be too.
MAX_REDRAWN = 3


@dataclass
class Restarts:
    """The `best` of several descents, and `objectives`, J at the end of each.

    `n_redrawn` counts starts that were replaced because the gate was saturated there,
    `n_inner_solves` the machines trained in all. `status` says why starts were left out
    ("interrupted", "stopped by an observer"); it is empty if none was.
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
    """Descend from `n_init` random starts.

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
        elif n_redrawn < MAX_REDRAWN and _saturated_at_start(objective, descent):
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
