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

from ..domains import Domain, LpBall, lp_domain
from ..kernels import KernelStack
from ..kernels.transforms import Center, Chain
from ..losses.box import BoxLoss
from ..solvers import GridProgress, Newton, Solution
from ..solvers.base import refuse_indefinite
from ._grid import Grid
from ._held_out import SplitOutputs
from ._learning import joined_certificate


class Machines(Protocol):
    """Makes the losses of the machines at a point; the outputs of one loss share its weights."""

    def __call__(self, stack: KernelStack, params: dict[str, float]) -> list[BoxLoss]: ...


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

    def outputs(self, train: Any, test: Any, transform: Chain, n_outputs: int) -> SplitOutputs:
        """Outputs of all machines at `test`, (…, n_samples, n_outputs).

        `transform`, which is fitted here, normalises the kernels of `train`.
        """
        # As in MachineKernels; of test samples, too, so that biases need no correction.
        center = Center()
        stack = center.fit_transform(
            transform.fit_transform(train.stack, sample_weight=train.counts)
        )
        block = center.transform(transform.transform(test.stack))
        found = SplitOutputs.unsolved(self.grid.shape, (len(block), n_outputs))
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
    if isinstance(domain, LpBall):
        return [domain.maximizer(solution.evaluation.gains) for solution in solutions]
    return [domain.onto_boundary(solution.weights) for solution in solutions]


def outputs_of(solutions: list[Solution], block: KernelStack) -> np.ndarray:
    """Outputs of machines at the rows of a block, (n_rows, n_outputs)."""
    evaluations: list[Any] = [solution.evaluation for solution in solutions]
    return np.hstack(
        [block.apply_combined(one.weights, one.coefficients) + one.biases for one in evaluations]
    )
