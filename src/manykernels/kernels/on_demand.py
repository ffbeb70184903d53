"""Very many kernels, computed when they are needed and dropped again.

The matrices of 100 000 kernels of 208 rows take 35 GB. At p = 1 a few hundred of them are needed
at a time: those that may have a weight. All others matter through one number each, their gain. So
a *visit* computes all kernels block by block and hands every block to a function, which keeps what
it needs. Several threads do so, each with memory for one block that it uses again and again: fresh
memory would take several times as long to get as the kernels take to compute.

Transforms are learnt from every kernel by itself. A transform is only written down when it is
fitted to kernels on demand, and fitted to each block when that has been computed. So nothing is
stored that has an entry for every kernel and every sample.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from .._memory import allocate
from .._sklearn import num_samples
from ._threads import in_threads
from .samples import row_names
from .stack import KernelStack
from .tables import SharedTable
from .union import KernelUnion

# Entries of a block: 8 MiB of float64, which stay in a third-level cache from when they are
# computed until they have been multiplied. Measured at 208 rows: 2**17 takes half as long again,
# 2**19 to 2**21 alike.
_BLOCK_ENTRIES = 2**20

Work = Callable[[KernelStack, np.ndarray], None]


@dataclass
class _Facts:
    """What the first visit finds: constant kernels, and those that `n_steps` transforms erase."""

    constant: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    erased: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_steps: int = -1
    awaited: list[Callable[[], None]] = field(default_factory=list)


class OnDemandKernels:
    """The kernels of a fitted `union` between the m rows of the table `X`, none of them stored.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import RBFSubsets
    >>> from manykernels.kernels.on_demand import OnDemandKernels
    >>> from manykernels.kernels.transforms import Center
    >>> X = np.random.default_rng(0).standard_normal((20, 6))
    >>> kernels = OnDemandKernels(RBFSubsets(1000, [0.5, 2.0]).fit(X), X)
    >>> centred = Center().fit_transform(kernels)
    >>> centred.shape, centred.select([3, 1999])
    ((20, 20, 2000), KernelStack(2 kernels, 20 x 20: 'subset1:rbf(2)', 'subset999:rbf(2)'))
    """

    #: What losses and transforms ask; it is False of kernels that can be stored.
    on_demand = True
    #: Rows and columns are the same samples, and all weights have one bound, as in a Gram stack.
    gram = True
    n_regions = 1

    def __init__(self, union: KernelUnion, X: Any) -> None:
        self.union = union
        self.names = list(union.names_)
        self._shared = SharedTable.of(X)
        self._samples = row_names(self._shared.X)
        self._steps: tuple[tuple[Any, Any], ...] = ()
        self._facts = _Facts()

    @property
    def shape(self) -> tuple[int, int, int]:
        n_rows = int(num_samples(self._shared.X))
        return n_rows, n_rows, len(self.names)

    @property
    def n_kernels(self) -> int:
        return len(self.names)

    def __len__(self) -> int:
        return self.shape[0]

    # -- transforms ------------------------------------------------------------------------

    def after(self, transform: Any, sample_weight: np.ndarray | None) -> OnDemandKernels:
        """The same kernels transformed, by a `transform` that is fitted to each when it is there.

        ``transform.select(kernels)`` is then fitted to these kernels.
        """
        if not transform.of_each_kernel:
            raise ValueError(
                f"{type(transform).__name__} cannot be learnt from kernels that are computed on "
                "demand. Leave it out, or pass so few kernels that they fit into memory, with "
                "solver=Newton(on_demand=False)."
            )
        new = OnDemandKernels.__new__(OnDemandKernels)
        vars(new).update(vars(self))
        new._steps = (*self._steps, (clone(transform), sample_weight))
        transform.awaited_ = new
        transform.n_samples_fit_ = len(self)
        return new

    def fitted(self, kernels: np.ndarray) -> Any:
        """The last transform, fitted to some of the kernels."""
        return self._computed(kernels, None)[1][-1]

    def _computed(
        self, kernels: np.ndarray, out: np.ndarray | None
    ) -> tuple[KernelStack, list[Any], KernelStack]:
        """Some kernels transformed, the transforms fitted to them, and the kernels before."""
        if out is None:
            out = allocate((len(kernels), *self.shape[:2]))
        plain = stack = self.union.gram_of(kernels, self._shared, out)
        steps = []
        for step, sample_weight in self._steps:
            steps.append(clone(step))
            stack = steps[-1].fit_transform(stack, sample_weight=sample_weight)
        return stack, steps, plain

    # -- what is computed ------------------------------------------------------------------

    def visit(self, work: Work) -> None:
        """Call ``work(stack, positions)`` for blocks of all kernels, in several threads.

        The values of a stack are overwritten after the call.
        """
        size, facts = max(1, _BLOCK_ENTRIES // len(self) ** 2), self._facts
        memory, new = threading.local(), facts.n_steps < len(self._steps)
        constant, erased = np.zeros((2, self.n_kernels), dtype=bool)

        def visit_block(block: slice) -> None:
            if not hasattr(memory, "values"):
                memory.values = allocate((size, *self.shape[:2]))
            positions = np.arange(block.start, block.stop)
            stack, _, plain = self._computed(positions, memory.values[: len(positions)])
            if new:
                constant[positions[plain.without_variance()]] = True
                erased[positions] = stack._scale == 0.0
            work(stack, positions)

        in_threads(visit_block, list(gen_batches(self.n_kernels, size)))
        if new:
            facts.constant, facts.erased = np.flatnonzero(constant), np.flatnonzero(erased)
            facts.n_steps = len(self._steps)
            while facts.awaited:
                facts.awaited.pop()()

    def when_visited(self, tell: Callable[[], None]) -> None:
        """Call ``tell()`` after the first visit to the transformed kernels.

        A visit takes too long to be made for what is known after the next one anyway.
        """
        self._facts.awaited.append(tell)

    def select(self, kernels: Any) -> KernelStack:
        """Some of the kernels, by position, in memory."""
        positions = np.asarray(kernels, dtype=np.intp)
        return self._computed(positions, None)[0].with_samples(self._samples)

    def kernel(self, which: int) -> np.ndarray:
        """One kernel matrix."""
        return self.select([which]).kernel(0)

    def combine(self, weights: Any, out: np.ndarray | None = None) -> np.ndarray:
        """``Σ_j weights[j] K_j``, from the kernels with a weight."""
        weights = np.asarray(weights)
        held = np.flatnonzero(weights)
        return self.select(held).combine(weights[held], out)

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Products ``K_j @ columns`` of every kernel, (n_kernels, m, n_columns): large."""
        products = allocate((self.n_kernels, *columns.shape)) if out is None else out

        def multiply(stack: KernelStack, positions: np.ndarray) -> None:
            products[positions] = stack.apply(columns)

        self.visit(multiply)
        return products

    # -- what is known ---------------------------------------------------------------------

    @property
    def row_diag(self) -> np.ndarray:
        """Self-similarities of the samples, (n_kernels, m)."""
        diagonals = allocate((self.n_kernels, len(self)))

        def keep(stack: KernelStack, positions: np.ndarray) -> None:
            diagonals[positions] = stack.row_diag

        self.visit(keep)
        return diagonals

    def contributing(self, weights: np.ndarray) -> np.ndarray:
        """As :meth:`KernelStack.contributing`."""
        held = np.flatnonzero(weights)
        if not len(held):
            return held
        return held[self.select(held).contributing(weights[held])]

    def without_variance(self) -> np.ndarray:
        """As :meth:`KernelStack.without_variance`."""
        return self._known(0).constant

    def erased(self) -> np.ndarray:
        """Positions of the kernels that a transform makes zero because they have no variance."""
        return self._known(len(self._steps)).erased

    def _known(self, n_steps: int) -> _Facts:
        """What is known of these kernels, and of those that they were made of by transforms."""
        if self._facts.n_steps < n_steps:
            self.visit(lambda stack, positions: None)
        return self._facts
