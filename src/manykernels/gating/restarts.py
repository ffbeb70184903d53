"""Several descents from random starts, of which the lowest counts: J has many local minima."""

from __future__ import annotations

from dataclasses import dataclass

from .descent import INTERRUPTED, Descent, DescentOptions, Observer, descend
from .gates import Rng
from .objective import GatedObjective

#: Most starts of one gate that are drawn again because the gate is saturated. With the default
#: scale none is; with a scale so large that three are, the next would be too.
MAX_REDRAWN = 3


@dataclass
class Restarts:
    """What several starts came to.

    Attributes
    ----------
    best : Descent
        The one of lowest J.
    objectives : list of float
        J at the end of each.
    n_redrawn : int
        Further starts, drawn again because the gate was saturated.
    n_inner_solves : int
        Machines trained in all.
    status : str
        Why no other start was made ("interrupted", "stopped by an observer"), or empty.
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
        if descent.ended_from_outside:
            status = descent.status
        elif n_redrawn < MAX_REDRAWN and _never_moved(objective, descent):
            n_redrawn += 1
            continue
        objectives.append(descent.point.value)
    assert best is not None, "n_init is at least one"
    return Restarts(best, objectives, n_redrawn, objective.n_inner_solves, status)


def _never_moved(objective: GatedObjective, descent: Descent) -> bool:
    """Whether the gate was saturated at its start, and so without a gradient.

    A descent may well end at a saturated gate: one kernel for all samples is an answer like
    others. So is a single kernel, whose softmax is 1 everywhere.
    """
    several = len(objective.kernels) > 1
    return several and descent.n_iter == 0 and objective.gate.saturated(descent.point.outputs)
