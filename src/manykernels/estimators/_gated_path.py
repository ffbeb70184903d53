"""Gates at every point of a grid of penalties, and their outputs at held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..gating.descent import Descent
from ..gating.learning import Fold, GatedSamples, GateLearning, LearntGate, LearntGates
from ..gating.machines import Machine
from ..gating.path import GatedPath
from ..gating.restarts import Restarts
from ._gated import GatedKernels
from ._grid import Grid
from ._held_out import SplitOutputs
from ._progress import FitTask
from ._search import Search
from ._splits import Split

# Random numbers of the starts without held-out samples; that of the final start is the user's.
_SEED = 0

Machines = Callable[[dict[str, float]], Machine]


@dataclass(frozen=True)
class GatedGrid:
    """A grid whose last parameter is the penalty on the gate; `machines` make the rest of it."""

    grid: Grid
    learning: GateLearning
    machines: Machines

    @property
    def _penalties(self) -> np.ndarray:
        return self.grid.values["penalty"]

    def held_out_outputs(self, kernels: GatedKernels, search: Search) -> list[SplitOutputs]:
        """Outputs at the test samples of every split, by gates learnt without them."""
        splits = search.splits
        parallel = Parallel(n_jobs=search.estimator.n_jobs)
        outputs: list[SplitOutputs] = parallel(
            delayed(self._outputs)(
                kernels.fold(_training(split), split.test),
                search.task.part(f"split {k + 1}/{len(splits)}", self.grid.size),
            )
            for k, split in enumerate(splits)
        )
        return outputs

    def _outputs(self, fold: Fold, task: FitTask) -> SplitOutputs:
        samples, block = fold.parts()
        found: SplitOutputs | None = None
        gate, rng = self.learning.gate, np.random.default_rng(_SEED)
        falling = np.argsort(-self._penalties)
        others = [range(len(values)) for values in list(self.grid.values.values())[:-1]]
        for rest in product(*others):
            params = self.grid.at((*rest, 0))
            machine = self.machines(params).of(fold.train)
            problem, _, n_plain = self.learning.problem(samples, machine, params["p"])
            path = GatedPath(problem, self.learning.options, rng)
            descents = path.along(self._penalties[falling].tolist())
            before = -n_plain
            for k, descent in zip(falling, descents, strict=True):
                outputs = block.outputs(
                    descent.point, gate.outputs(descent.point.theta, block.features)
                )
                if found is None:
                    found = SplitOutputs.unsolved(self.grid.shape, outputs.shape)
                at = (*rest, int(k))
                n_solves = problem.plain.n_inner_solves - before
                before = problem.plain.n_inner_solves
                params, certificate = self.grid.at(at), descent.certificate
                progress = found.note(at, params, outputs, certificate, n_solves)
                if task(progress):
                    task.end()
                    return found
        task.end()
        assert found is not None, "a grid has at least one point"
        return found

    def learn(self, samples: GatedSamples, params: dict[str, float], task: FitTask) -> LearntGates:
        """The gate of all samples at one point of the grid, by the same path."""
        learning = self.learning
        problem, weights, n_plain = learning.problem(samples, self.machines(params), params["p"])
        penalties = np.sort(self._penalties)[::-1]
        penalties = penalties[penalties >= params["penalty"]]
        path = GatedPath(problem, learning.options, learning.rng)
        final = task.subtask("final fit", len(penalties) * (learning.options.max_iter + 1))
        *_, last = path.along(penalties.tolist(), final)
        restarts = _single(last, problem.plain.n_inner_solves)
        gate = LearntGate(restarts, weights, None, n_plain, last.status)
        learnt = LearntGates(learning, [gate], on_path=True)
        learnt.warn()
        final.end()
        return learnt


def _single(descent: Descent, n_inner_solves: int) -> Restarts:
    return Restarts(descent, [descent.point.value], 0, n_inner_solves, descent.status)


def _training(split: Split) -> np.ndarray:
    if split.train is None:
        raise ValueError(
            "A gate is judged by samples of the training data: cv is a number of folds, a "
            "splitter or an iterable of splits, not a validation set."
        )
    return split.train
