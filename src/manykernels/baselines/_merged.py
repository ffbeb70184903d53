"""One kernel made of several, for a machine that learns from one.

A *merge* makes one kernel of the kernels of a stack, entry by entry. The machine is one of the
estimators of this package, with ``kernels="precomputed"``. It is given a matrix with a row and a
column for every row of X, in which samples of no weight have zeros: it leaves these out itself, so
that row numbers of splits, support vectors and error messages are those of X.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from .._sklearn import num_samples
from ..estimators._inputs import Source, block_while_fitting, matched_by_label
from ..estimators._kernels import (
    KernelExpansion,
    TrainingKernels,
    for_columns,
    transformed_blocks,
)
from ..estimators._progress import FitTask
from ..estimators._rows import TrainingRows
from ..estimators._splits import is_validation_set
from ..kernels import KernelStack
from ..kernels.transforms import Chain

Numbers = tuple[np.ndarray, np.ndarray]


class Merge(Protocol):
    """How one kernel is made of several; kernels of weight zero have no part in it."""

    @property
    def name(self) -> str:
        """What the one kernel is called."""

    @property
    def weights(self) -> np.ndarray: ...

    def select(self, kernels: np.ndarray) -> Merge:
        """The same of some of the kernels, which are all that have weights."""

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        """The one kernel of a stack; `numbers` of its rows and columns are for messages."""

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        """Self-similarities of samples, from those of every kernel, (n_kernels, n_samples)."""


@dataclass(frozen=True)
class PowerOfSum:
    """``(Σ_j weights[j] K_j)^degree``, entry by entry; a weighted sum by default."""

    name: str
    weights: np.ndarray
    degree: int = 1

    def select(self, kernels: np.ndarray) -> Self:
        return replace(self, weights=self.weights[kernels])

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        total = stack.combine(self.weights)
        return total if self.degree == 1 else total**self.degree

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        total: np.ndarray = (self.weights @ diagonals) ** self.degree
        return total


@dataclass(frozen=True)
class SourceKernels:
    """Prepared kernels of the training rows of a `rule`, which makes one of them."""

    rule: Any
    rows: TrainingRows
    kernels: TrainingKernels
    transform: Chain
    stack: KernelStack

    @classmethod
    def of(
        cls, rule: Any, rows: TrainingRows, normalize: str | None, *, shift_invariant: bool = True
    ) -> Self:
        """Compute or check the kernels of `rows`, complete and normalise them, not centred."""
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=shift_invariant)
        transform = kernels.preparation(normalize, center=False)
        return cls(rule, rows, kernels, transform, kernels.prepared(transform, rows.counts))

    def merged(self, merge: Merge) -> KernelStack:
        """The one kernel of the training rows."""
        numbers = self.rows.numbers
        matrix = merge.matrix(self.stack, (numbers, numbers))
        # It is PSD, or so once centred, where all kernels are; a power of centred ones is not.
        guarantees = replace(self.stack.guarantees, checked=True, centered=False)
        stack = KernelStack(matrix[None], [merge.name], gram=True)
        return stack._changed(guarantees=guarantees, groups=self.rows.groups)

    def learn(
        self,
        machine: Any,
        merge: Merge,
        y: Any,
        sample_weight: Any,
        task: FitTask,
        check: Callable[[KernelStack], KernelStack] = lambda one: one,
    ) -> MergedKernel:
        """Fit the machine to the one kernel, `check` having had a look at it, as part of `task`.

        Returns the kernel of new samples.
        """
        width = len(self.rows) if sample_weight is None else len(np.asarray(sample_weight))
        numbers = self.rows.numbers
        one = check(self.merged(merge))
        if width > len(numbers):
            matrix = np.zeros((width, width))
            matrix[np.ix_(numbers, numbers)] = one.kernel(0)
            # Rows of no weight are in no group of others.
            groups = len(numbers) + np.arange(width)
            groups[numbers] = self.rows.groups
            wide = KernelStack(matrix[None], one.names, gram=True)
            one = wide._changed(guarantees=one.guarantees, groups=groups)
        given: Any = getattr(machine, "cv", None)
        if is_validation_set(given) and len(given) == 2:
            machine.set_params(cv=self._validation_set(merge, given, width))
        part = task.subtask(merge.name)
        with warnings.catch_warnings(), part.passed_on_to(machine):
            # That kernels are constant has been said, by their own names.
            warnings.filterwarnings("ignore", "Nothing can be learnt from kernels", UserWarning)
            machine.fit(one, y, sample_weight)
        part.end()
        if given is not None:
            # Not the kernels of a validation set, which would be kept along with the machine.
            machine.set_params(cv=given)
        return MergedKernel.of(self, merge, _columns_of(machine, numbers), width)

    def _validation_set(self, merge: Merge, given: tuple[Any, Any], width: int) -> tuple[Any, Any]:
        """A pair (X_val, y_val) with the one kernel in the place of X_val."""
        X, y, _ = matched_by_label(self.rule, *given)
        block = block_while_fitting(self.kernels.source, self.rule, self.rows.data, X)
        block = self.transform.transform(block)
        return _wide(merge, block, np.arange(len(block)), self.rows.numbers, width), y


@dataclass(frozen=True)
class MergedKernel:
    """The one kernel between new samples and the training samples that a machine looks at.

    `source` has these training samples, whose rows in X are `columns`. `transform` prepares its
    kernels at the positions `inputs`.
    """

    source: Source
    transform: Chain
    inputs: np.ndarray
    merge: Merge
    columns: np.ndarray
    width: int

    @classmethod
    def of(cls, kernels: SourceKernels, merge: Merge, columns: np.ndarray, width: int) -> Self:
        """Leave out kernels without weight, and training samples that are not in `columns`."""
        used = np.flatnonzero(merge.weights)
        source, transform = kernels.kernels.source, kernels.transform
        inputs, transform = transform.sources(used), transform.select(used)
        numbers = kernels.rows.numbers
        if len(columns) < len(numbers):
            positions = np.searchsorted(numbers, columns)
            source, transform = for_columns(source, transform, positions)
        return cls(source, transform, inputs, merge.select(used), columns, width)

    def answers(self, rule: Any, X: Any, method: str) -> np.ndarray:
        """What a method of the machine of a fitted rule says of new X, in blocks of rows."""
        data = self.source.read(rule, X)
        ask, n_kernels = getattr(rule.estimator_, method), len(self.inputs)
        blocks = transformed_blocks(self.source, self.transform, self.inputs, data, n_kernels)
        numbers = np.arange(int(num_samples(data)))
        return np.concatenate(
            [
                ask(_wide(self.merge, block, numbers[rows], self.columns, self.width))
                for rows, block in blocks
            ]
        )


def _columns_of(machine: Any, numbers: np.ndarray) -> np.ndarray:
    """Those rows of X, of the ones that count, which a fitted machine compares new rows with."""
    expansion = machine._expansion
    if not isinstance(expansion, KernelExpansion) or expansion.source.columns is None:  # type: ignore[union-attr]
        return numbers
    return expansion.source.columns  # type: ignore[union-attr]


def _wide(
    merge: Merge, block: KernelStack, rows: np.ndarray, columns: np.ndarray, width: int
) -> KernelStack:
    """The one kernel of a block, with zeros in the columns that the machine does not look at."""
    matrix = merge.matrix(block, (rows, columns))
    if len(columns) < width:
        narrow, matrix = matrix, np.zeros((len(rows), width))
        matrix[:, columns] = narrow
    diagonal = None if block.row_diag is None else merge.diagonal(block.row_diag)[None]
    return KernelStack(matrix[None], [merge.name], row_diag=diagonal)
