"""Support vector machines at every point of a grid, and their outputs at held-out samples.

The grid is walked from large p, where all weights are alike, to small, and at one p from small C
to large. Kernel weights start from those of the C before. (Those of the first C are predicted by
the gains at the p before.) The machines start from those of the same C at the p before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..domains import Domain, LpBall, lp_domain
from ..kernels import KernelStack
from ..kernels.completion import preparation_with
from ..kernels.transforms import Center, Chain
from ..losses.box import BoxLoss
from ..solvers import GridProgress, Newton, Solution
from ..solvers.base import refuse_indefinite
from ._grid import Grid
from ._held_out import SplitOutputs
from ._learning import joined_certificate
from ._progress import FitTask
from ._splits import Split


class Machines(Protocol):
    """Makes the losses of the machines at a point; the outputs of one loss share its weights."""

    @property
    def n_outputs(self) -> int: ...

    def __call__(self, stack: KernelStack, params: dict[str, float]) -> list[BoxLoss]: ...


def held_out_outputs(
    estimator: Any,
    splits: list[Split],
    grid: Grid,
    machines_of: Callable[[Any], Machines],
    task: FitTask,
) -> list[SplitOutputs]:
    """Outputs at the test samples of every split, by the machines of its training samples.

    The estimator has the parameters missing, normalize, tol and n_jobs.
    """
    # The kernels of a single split are not copied to another process.
    parallel = Parallel(n_jobs=None if len(splits) == 1 else estimator.n_jobs)
    outputs: list[SplitOutputs] = parallel(
        delayed(_outputs_of_split)(
            split,
            preparation_with(estimator.missing, estimator.normalize, center=False),
            grid,
            machines_of,
            estimator.tol,
            task.part(f"split {k + 1}/{len(splits)}", grid.size),
        )
        for k, split in enumerate(splits)
    )
    return outputs


def _outputs_of_split(
    split: Split,
    transform: Chain,
    grid: Grid,
    machines_of: Callable[[Any], Machines],
    tol: float,
    task: FitTask,
) -> SplitOutputs:
    train, test = split.parts()
    outputs = MachinePath(grid, machines_of(train), tol, task).outputs(train, test, transform)
    task.end()
    return outputs


@dataclass(frozen=True)
class MachinePath:
    """Machines of one training part on a grid of p and other parameters, p being the first.

    `tol` is the relative gap of every point. The observer is called at every solved point; if it
    returns a true value, the remaining points are not solved.
    """

    grid: Grid
    machines: Machines
    tol: float
    observer: Callable[[GridProgress], bool | None] | None = None

    def outputs(self, train: Any, test: Any, transform: Chain) -> SplitOutputs:
        """Outputs of all machines at `test`, (…, n_samples, n_outputs).

        `transform`, which is fitted here, normalises the kernels of `train`.
        """
        # As in MachineKernels; of test samples, too, so that biases need no correction.
        center = Center()
        stack = center.fit_transform(
            transform.fit_transform(train.stack, sample_weight=train.counts)
        )
        block = center.transform(transform.transform(test.stack))
        found = SplitOutputs.unsolved(self.grid.shape, (len(block), self.machines.n_outputs))
        norms, *others = self.grid.values.values()
        losses: dict[tuple[int, ...], list[BoxLoss]] = {}
        first: list[Solution] | None = None
        for i in np.argsort(norms)[::-1].tolist():
            domain = lp_domain(float(norms[i]))
            starts = _predicted(first, domain)
            first = None
            for rest in product(*(np.argsort(values).tolist() for values in others)):
                at = (i, *rest)
                params = self.grid.at(at)
                if rest not in losses:
                    before = next(reversed(losses.values()), None)
                    losses[rest] = self.machines(stack, params)
                    for loss, last in zip(losses[rest], before or [], strict=False):
                        loss.continue_from(last)
                try:
                    solutions = self._solutions(losses[rest], domain, starts, stack.names)
                except ValueError as error:
                    found.record.failures.append(str(error))
                    continue
                starts = [solution.weights for solution in solutions]
                first = first or solutions
                progress = found.note(
                    at,
                    params,
                    outputs_of(solutions, block),
                    joined_certificate(solutions, self.tol),
                    sum(solution.n_inner_solves for solution in solutions),
                )
                if self.observer is not None and self.observer(progress):
                    return found
        return found

    def _solutions(
        self,
        losses: list[BoxLoss],
        domain: Domain,
        starts: list[np.ndarray] | None,
        names: list[str],
    ) -> list[Solution]:
        """Kernel weights and machines of all losses of a point."""
        solutions = []
        for k, loss in enumerate(losses):
            start = None if starts is None else starts[k]
            solution = Newton().solve(loss, domain, tol=self.tol, start=start)
            refuse_indefinite(solution, domain, loss, names)
            solutions.append(solution)
        return solutions


def _predicted(solutions: list[Solution] | None, domain: Domain) -> list[np.ndarray] | None:
    """Weights to start from at another p; at p = 1 the gains do not determine them."""
    if solutions is None:
        return None
    gains = [solution.evaluation.gains for solution in solutions]
    if isinstance(domain, LpBall) and all(own.any() for own in gains):
        return [domain.maximizer(own) for own in gains]
    return [domain.onto_boundary(solution.weights) for solution in solutions]


def outputs_of(solutions: list[Solution], block: KernelStack) -> np.ndarray:
    """Outputs of machines at the rows of a block, (n_rows, n_outputs)."""
    evaluations: list[Any] = [solution.evaluation for solution in solutions]
    return np.hstack(
        [block.apply_combined(one.weights, one.coefficients) + one.biases for one in evaluations]
    )
