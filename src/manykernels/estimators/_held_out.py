"""Outputs of regressions at held-out samples, at every point of a grid, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._folds import stratified_folds
from .._scoring import Answers, JudgedValues, score_table
from ..gating.judging import Judged
from ..kernels import KernelStack
from ..solvers import GridProgress, GridRecord, SolvedPoint, solved_in_all


@dataclass(frozen=True)
class TargetedKernels:
    """Kernels of samples with the training samples, and the numbers to be predicted for them.

    Attributes
    ----------
    stack : KernelStack
        Square for training samples; (n, m) between n test samples and m training samples.
    targets : ndarray of shape (n,) or (n, n_targets)
    counts : ndarray of shape (n,) or None
        Sample weights; None for one each.
    groups : ndarray of shape (n,) or None
        Numbers of the groups of rows that are left out together; None if rows are left out one
        by one.
    """

    stack: KernelStack
    targets: np.ndarray
    counts: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def split(
        self, train: np.ndarray, test: np.ndarray
    ) -> tuple[TargetedKernels, TargetedKernels]:
        """Training kernels of the samples `train`, and those of `test` with these."""
        parts = [self.of(rows, self.stack[np.ix_(rows, train)]) for rows in (train, test)]
        return parts[0], parts[1]

    def of(self, rows: np.ndarray, stack: KernelStack | None = None) -> TargetedKernels:
        """Some of the samples; the stack stays that of all samples if no other is given."""
        return TargetedKernels(
            self.stack if stack is None else stack,
            self.targets[rows],
            None if self.counts is None else self.counts[rows],
            None if self.groups is None else self.groups[rows],
        )

    def folds(self, n_folds: int) -> list[np.ndarray]:
        """Folds of the rows that hold whole groups."""
        groups = np.arange(len(self)) if self.groups is None else self.groups
        return stratified_folds(np.zeros(len(self), int), groups, n_folds, self.counts)


@dataclass(frozen=True)
class SplitOutputs:
    """Outputs of the models of one training part at test samples.

    `outputs` has the axes of the grid and then those of the outputs at one point, such as samples
    and classes; it is NaN at points that could not be solved.
    """

    outputs: np.ndarray
    record: GridRecord

    @classmethod
    def unsolved(cls, grid: tuple[int, ...], point: tuple[int, ...]) -> SplitOutputs:
        """Nothing solved yet; the shapes of the grid, and of the outputs at one point."""
        return cls(np.full((*grid, *point), np.nan), GridRecord.unsolved(grid))

    def note(
        self,
        at: tuple[int, ...],
        params: Mapping[str, float],
        outputs: np.ndarray,
        certificate: SolvedPoint,
        n_inner_solves: int,
    ) -> GridProgress:
        """Enter a solved point, and say so."""
        self.outputs[at] = outputs
        return self.record.note(at, params, certificate, n_inner_solves)


def by_row(
    tested: Sequence[np.ndarray | None], parts: Sequence[np.ndarray], n_rows: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Held-out values of every training row, NaN if it is never tested, and its split, or -1.

    ``parts[k]`` are the values of the rows ``tested[k]``. A row that several splits test has the
    values of the first. None if a validation set was tested instead.
    """
    if any(rows is None for rows in tested):
        return None
    values = np.full((n_rows, *parts[0].shape[1:]), np.nan)
    split_of_row = np.full(n_rows, -1)
    for k in reversed(range(len(parts))):
        values[tested[k]] = parts[k]
        split_of_row[tested[k]] = k
    return values, split_of_row


def joined(tests: Sequence[Any], name: str) -> np.ndarray | None:
    """`counts` or `groups` of several test parts, one part after the other; None for none."""
    parts = [getattr(test, name) for test in tests]
    return None if any(part is None for part in parts) else np.concatenate(parts)


@dataclass(frozen=True)
class HeldOutValues:
    """Predicted numbers of all splits: those of ``parts[k]`` belong to ``tests[k]``."""

    parts: list[SplitOutputs]
    tests: list[TargetedKernels]

    @property
    def records(self) -> list[GridRecord]:
        """How the models of every split were solved."""
        return [part.record for part in self.parts]

    def judged_at(self, at: tuple[int, ...]) -> Judged:
        """Square errors of all samples, at one point of the grid."""
        outputs = np.concatenate([part.outputs[at] for part in self.parts])
        targets = np.concatenate([test.targets for test in self.tests])
        squares = (outputs - targets) ** 2
        counts, groups = joined(self.tests, "counts"), joined(self.tests, "groups")
        return Judged(squares, squares, counts, groups)

    def judged_by(self, scorer: Callable[..., float]) -> np.ndarray:
        """Values of a scikit-learn scorer at every split and point, (n_splits, …)."""

        def judged(at: tuple[int, ...]) -> Iterator[Answers]:
            for part, test in zip(self.parts, self.tests, strict=True):
                yield JudgedValues(part.outputs[at]), test.targets, test.counts

        return score_table(solved_in_all(self.records), len(self.parts), judged, scorer)
