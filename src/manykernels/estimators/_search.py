"""The search for a point of a grid: splits, outputs at held-out samples, the choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.metrics import check_scoring

from .._scoring import JudgedValues, score_of
from ..discriminant import LabelledKernels
from ._choice import Choice, refuse_single_split
from ._decisions import HeldOutDecisions, JudgedDecisions
from ._grid import Grid
from ._held_out import HeldOutValues, SplitOutputs, TargetedKernels
from ._kernels import TrainingKernels
from ._progress import FitTask
from ._rows import TrainingRows
from ._splits import LabelSplits, Split, ValueSplits, left_out_attributes


@dataclass(frozen=True)
class Search:
    """What the machines of a grid are learnt from and judged by; `samples` are all of them.

    The `task` has a part for every split, and one for the fit to all samples.
    """

    estimator: Any
    samples: Any
    splits: list[Split]
    task: FitTask

    @classmethod
    def begun(cls, estimator: Any, X: Any, y: Any, samples: Any, splits: list[Split]) -> Self:
        refuse_single_split(estimator, len(splits))
        task = FitTask.begin(estimator, X, y, len(splits) + 1)
        return cls(estimator, samples, splits, task)

    @property
    def _judged(self) -> list[Any]:
        return [split.judged for split in self.splits]

    @property
    def _tested(self) -> list[np.ndarray | None]:
        """Rows that each split tests."""
        return [split.tested for split in self.splits]

    @property
    def _scorer(self) -> Any:
        return check_scoring(self.estimator, scoring=self.estimator.scoring)


class ClassSearch(Search):
    """The search of a classifier, by decision values."""

    @classmethod
    def of(
        cls, estimator: Any, X: Any, y: Any, rows: TrainingRows, kernels: TrainingKernels
    ) -> Self:
        # The weights of classes are those of each training part.
        samples = LabelledKernels(
            kernels.stack, rows.labels, rows.classes, rows.counts, rows.counts, rows.groups
        )
        splits = LabelSplits(estimator, rows, kernels.source, samples).of(y)
        return cls.begun(estimator, X, y, samples, splits)

    def choose(self, grid: Grid, outputs: list[SplitOutputs]) -> tuple[Choice, dict[str, Any]]:
        """The best point, of equal ones that with the smallest log loss; fitted attributes."""
        held_out = HeldOutDecisions(outputs, self._judged, self.samples.frequencies)
        scores = held_out.judged_by(self._scorer)
        second = held_out.mean_log_loss
        choice = Choice.of(
            self.estimator, grid, scores, held_out.records, second, held_out.judged_at
        )
        calibration = held_out.calibration(choice.position)
        decisions = [part.outputs[at] for part, at in zip(outputs, choice.positions, strict=True)]
        decisions = [part[:, 0] if part.shape[1] == 1 else part for part in decisions]
        samples = self.samples

        def score(decisions: np.ndarray, rows: np.ndarray) -> float:
            logs = partial(calibration.log_probabilities, decisions)
            known = JudgedDecisions(samples.classes, decisions, logs)
            truth = samples.classes[samples.labels[rows]]
            return score_of((known, truth, _part(samples.counts, rows)), self._scorer)

        return choice, {
            "left_out_score_": choice.attributes["best_score_"],
            **choice.attributes,
            **left_out_attributes(
                "left_out_decisions_", self._tested, decisions, len(samples.labels), score
            ),
            "calibration_": calibration,
        }


class ValueSearch(Search):
    """The search of a regression with one target."""

    @classmethod
    def of(
        cls, estimator: Any, X: Any, y: Any, rows: TrainingRows, kernels: TrainingKernels
    ) -> Self:
        samples = kernels.targeted(rows)
        splits = ValueSplits(estimator, rows, kernels.source, samples).of(y)
        return cls.begun(estimator, X, y, samples, splits)

    def choose(self, grid: Grid, outputs: list[SplitOutputs]) -> tuple[Choice, dict[str, Any]]:
        """The best point, of equal ones the simplest; fitted attributes."""
        values = [replace(part, outputs=part.outputs[..., 0]) for part in outputs]
        held_out = HeldOutValues(values, self._judged)
        scores = held_out.judged_by(self._scorer)
        judged = held_out.judged_at
        choice = Choice.of(self.estimator, grid, scores, held_out.records, judged=judged)
        return choice, {
            "left_out_score_": choice.attributes["best_score_"],
            **choice.attributes,
            **left_out_values(held_out, choice, self._tested, self.samples, self._scorer),
        }


def left_out_values(
    held_out: HeldOutValues,
    choice: Choice,
    tested: Sequence[np.ndarray | None],
    samples: TargetedKernels,
    scorer: Callable[..., float],
) -> dict[str, Any]:
    """Fitted attributes of a regression: what was predicted for held-out rows, and its score."""
    predictions = [
        part.outputs[at] for part, at in zip(held_out.parts, choice.positions, strict=True)
    ]

    def score(values: np.ndarray, rows: np.ndarray) -> float:
        truth = samples.targets[rows]
        return score_of((JudgedValues(values), truth, _part(samples.counts, rows)), scorer)

    return left_out_attributes("left_out_predictions_", tested, predictions, len(samples), score)


def _part(counts: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if counts is None else counts[rows]
