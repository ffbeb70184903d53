"""Support vector machines at every point of a grid, and their outputs at held-out samples.

The grid is walked from large p, where all weights are alike, to small, and at one p from small C
to large. Kernel weights start from those of the C before. (Those of the first C are predicted by
the gains at the p before.) The machines start from those of the same C at the p before.

Where the first parameters of the grid change the kernels themselves, such a walk begins anew with
the kernels of each of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from ..domains import Domain, LpBall, lp_domain, product_domain
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
from ._search import Search
from ._splits import Split


class Machines(Protocol):
    """Makes the losses of the machines at a point; the outputs of one loss share its weights."""

    @property
    def n_outputs(self) -> int: ...

    def __call__(self, stack: KernelStack, params: dict[str, float]) -> list[BoxLoss]: ...


@dataclass(frozen=True)
class PreparedKernels:
    """Kernels of training samples, and those of test samples with them, as machines take them.

    Weights of their `n_regions` regions are bounded one by one. `places` are the positions in the
    first axes of the grid, before p, that have these kernels.
    """

    stack: Any
    block: Any
    n_regions: int = 1
    places: tuple[tuple[int, ...], ...] = ((),)

    @classmethod
    def centred(
        cls, stack: Any, block: Any, sample_weight: np.ndarray | None = None, **where: Any
    ) -> PreparedKernels:
        """From normalised kernels."""
        # As in MachineKernels; of test samples, too, so that biases need no correction.
        center = Center()
        centred = center.fit_transform(stack, sample_weight=sample_weight)
        return cls(centred, center.transform(block), **where)


class Preparation(Protocol):
    """Makes the kernels at all points of a grid; a transform, fitted here, normalises them."""

    def __call__(self, train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]: ...


def same_kernels(train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
    """The preparation of a grid that begins with p: one for all points."""
    stack = transform.fit_transform(train.stack, sample_weight=train.counts)
    yield PreparedKernels.centred(stack, transform.transform(test.stack))


def held_out_outputs(
    search: Search,
    grid: Grid,
    machines_of: Callable[[Any], Machines],
    preparation: Preparation = same_kernels,
) -> list[SplitOutputs]:
    """Outputs at the test samples of every split, by the machines of its training samples.

    The estimator has the parameters missing, normalize, tol and n_jobs.
    """
    estimator, splits = search.estimator, search.splits
    # The kernels of a single split are not copied to another process.
    parallel = Parallel(n_jobs=None if len(splits) == 1 else estimator.n_jobs)
    outputs: list[SplitOutputs] = parallel(
        delayed(_outputs_of_split)(
            split,
            preparation_with(estimator.missing, estimator.normalize, center=False),
            preparation,
            grid,
            machines_of,
            estimator.tol,
            search.task.part(f"split {k + 1}/{len(splits)}", grid.size),
        )
        for k, split in enumerate(splits)
    )
    return outputs


def _outputs_of_split(
    split: Split,
    transform: Chain,
    preparation: Preparation,
    grid: Grid,
    machines_of: Callable[[Any], Machines],
    tol: float,
    task: FitTask,
) -> SplitOutputs:
    train, test = split.parts()
    path = MachinePath(grid, machines_of(train), tol, task)
    outputs = path.outputs(preparation(train, test, transform), len(test.stack))
    task.end()
    return outputs


@dataclass(frozen=True)
class MachinePath:
    """Machines of one training part on a grid of p and other parameters.

    What comes before p in the grid changes the kernels. `tol` is the relative gap of every point.
    The observer is called at every solved point; if it returns a true value, the remaining points
    are not solved.
    """

    grid: Grid
    machines: Machines
    tol: float
    observer: Callable[[GridProgress], bool | None] | None = None

    def outputs(self, prepared: Iterable[PreparedKernels], n_test: int) -> SplitOutputs:
        """Outputs of all machines at `n_test` samples, (…, n_test, n_outputs)."""
        found = SplitOutputs.unsolved(self.grid.shape, (n_test, self.machines.n_outputs))
        for kernels in prepared:
            if self._walk(kernels, found):
                break
        return found

    def _walk(self, kernels: PreparedKernels, found: SplitOutputs) -> bool:
        """Solve the points that have these kernels; whether the observer asks to stop."""
        stack = kernels.stack
        names = list(self.grid.values)
        norms, *others = list(self.grid.values.values())[names.index("p") :]
        losses: dict[tuple[int, ...], list[BoxLoss]] = {}
        first: list[Solution] | None = None
        for i in np.argsort(norms)[::-1].tolist():
            domain = product_domain(lp_domain(float(norms[i])), kernels.n_regions)
            starts = _predicted(first, domain)
            first = None
            for rest in product(*(np.argsort(values).tolist() for values in others)):
                places = [(*place, i, *rest) for place in kernels.places]
                if rest not in losses:
                    before = next(reversed(losses.values()), None)
                    losses[rest] = self.machines(stack, self.grid.at(places[0]))
                    for loss, last in zip(losses[rest], before or [], strict=False):
                        loss.continue_from(last)
                try:
                    solutions = self._solutions(losses[rest], domain, starts, stack.names)
                except ValueError as error:
                    found.record.failures.append(str(error))
                    continue
                starts = [solution.weights for solution in solutions]
                first = first or solutions
                if self._note(found, places, solutions, kernels.block):
                    return True
        return False

    def _note(
        self,
        found: SplitOutputs,
        places: list[tuple[int, ...]],
        solutions: list[Solution],
        block: Any,
    ) -> bool:
        """Enter the same solutions at all places; whether the observer asks to stop."""
        outputs = outputs_of(solutions, block)
        certificate = joined_certificate(solutions, self.tol)
        n_solves = sum(solution.n_inner_solves for solution in solutions)
        for at in places:
            progress = found.note(at, self.grid.at(at), outputs, certificate, n_solves)
            if self.observer is not None and self.observer(progress):
                return True
        return False

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
        [
            # A regression on centred kernels and targets has no bias.
            block.apply_combined(one.weights, one.coefficients) + getattr(one, "biases", 0.0)
            for one in evaluations
        ]
    )
