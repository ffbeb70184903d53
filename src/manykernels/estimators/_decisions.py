"""Decision values of machines at held-out samples: scores, and probabilities from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.metaestimators import available_if

from .._folds import effective_size
from .._scoring import Answers, KnownClassifier, score_table
from ..discriminant import LabelledKernels
from ..discriminant.calibration import calibrated_decisions, class_scores, log_losses
from ..gating.judging import Judged
from ..solvers import GridRecord, solved_in_all
from ._held_out import SplitOutputs, joined
from ._inputs import by_blocks
from ._outputs import chosen_classes, gives_probabilities


@dataclass(frozen=True)
class DecisionCalibration:
    """Probabilities from decision values: ``log P(k|x) = slope · f_k(x) + constants[k]``.

    Up to a constant; of two classes the first has the decision value zero.
    """

    slope: float
    constants: np.ndarray

    def log_probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Logarithms of the class probabilities, (n, c)."""
        logs: np.ndarray = log_softmax(
            self.slope * class_scores(decisions) + self.constants, axis=1
        )
        return logs


class CalibratedDecisions:
    """Probabilities of a classifier whose decision values were calibrated.

    Attributes
    ----------
    calibration_ : DecisionCalibration
        ``slope`` and ``constants`` that turn decision values into probabilities.
    left_out_decisions_ : ndarray of shape (n_samples,), or (n_samples, n_classes)
        Decision values of each training row by the model without its fold, at the point that is
        best in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    """

    calibration_: ClassVar[DecisionCalibration]
    decision_function: ClassVar[Callable[..., np.ndarray]]

    @available_if(gives_probabilities)
    @by_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    @available_if(gives_probabilities)
    @by_blocks
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n_rows, n_classes)."""
        decisions = self.decision_function(X)
        return self.calibration_.log_probabilities(decisions)


class JudgedDecisions(KnownClassifier):
    """Classifier with known decision values, for scorers.

    `logs` gives the logarithms of its probabilities, which most scorers do not ask for.
    """

    def __init__(self, classes: np.ndarray, decisions: np.ndarray, logs: Callable[[], np.ndarray]):
        self.classes = classes
        self.decisions = decisions
        self.logs = logs

    def decision_function(self, X: Any) -> np.ndarray:
        return self.decisions

    def predict(self, X: Any) -> np.ndarray:
        return self.classes[chosen_classes(self.decisions)]

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.exp(self.logs())


@dataclass(frozen=True)
class HeldOutDecisions:
    """Decision values of all splits: those of ``parts[k]`` belong to ``tests[k]``.

    `frequencies` are those of the classes among all samples.
    """

    parts: list[SplitOutputs]
    tests: list[LabelledKernels]
    frequencies: np.ndarray
    _calibrations: dict[tuple[int, ...], DecisionCalibration] = field(default_factory=dict)

    @property
    def records(self) -> list[GridRecord]:
        """How the models of every split were solved."""
        return [part.record for part in self.parts]

    def calibration(self, at: tuple[int, ...]) -> DecisionCalibration:
        """Two numbers, fitted to the samples of all splits, which the machines have not seen."""
        if at not in self._calibrations:
            labels = np.concatenate([test.labels for test in self.tests])
            counts, groups = joined(self.tests, "counts"), joined(self.tests, "groups")
            found = calibrated_decisions(
                np.vstack([part.outputs[at] for part in self.parts]),
                self.frequencies,
                labels,
                counts,
                effective_size(len(labels), groups, counts),
            ).calibration
            constants = found.exponent * np.log(self.frequencies)
            self._calibrations[at] = DecisionCalibration(found.slope, constants)
        return self._calibrations[at]

    def _logs(self, at: tuple[int, ...], outputs: np.ndarray) -> np.ndarray:
        return self.calibration(at).log_probabilities(outputs)

    def judged_at(self, at: tuple[int, ...]) -> Judged:
        """``−log P`` of the true class of every sample, and whether another one is chosen."""
        outputs = np.vstack([part.outputs[at] for part in self.parts])
        labels = np.concatenate([test.labels for test in self.tests])
        wrong = chosen_classes(outputs[:, 0] if outputs.shape[1] == 1 else outputs) != labels
        losses = log_losses(self._logs(at, outputs), labels)
        counts, groups = joined(self.tests, "counts"), joined(self.tests, "groups")
        return Judged(losses, wrong.astype(np.float64), counts, groups)

    def mean_log_loss(self, at: tuple[int, ...]) -> float:
        """The mean of ``−log P`` of the true class, at one point of the grid."""
        return self.judged_at(at).loss

    def judged_by(self, scorer: Callable[..., float]) -> np.ndarray:
        """Values of a scikit-learn scorer at every split and point, (n_splits, …)."""

        def judged(at: tuple[int, ...]) -> Iterator[Answers]:
            for part, test in zip(self.parts, self.tests, strict=True):
                outputs = part.outputs[at]
                known = JudgedDecisions(
                    test.classes,
                    outputs[:, 0] if outputs.shape[1] == 1 else outputs,
                    partial(self._logs, at, outputs),
                )
                yield known, test.classes[test.labels], test.counts

        return score_table(solved_in_all(self.records), len(self.parts), judged, scorer)
