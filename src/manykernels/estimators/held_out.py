"""Answers of the models of a grid at held-out samples, and their scores.

Every split of a cross-validation gives a :class:`SplitOutputs`: the outputs of its models, at all
points of the grid, for its test samples. A :class:`HeldOut` turns the outputs of all splits into
answers that a scorer of scikit-learn can judge: values (:class:`HeldOutValues`), decision values
with calibrated probabilities (:class:`HeldOutDecisions`), or the log-probabilities of a
discriminant (:class:`HeldOutProbabilities`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator

from ..discriminant import (
    CalibratedScores,
    Calibration,
    Samples,
    calibrated_decisions,
    class_scores,
    clearly_smaller,
    log_losses,
    log_ratio,
    rule_offsets,
)
from ..gating.descent import HeldOutLosses
from ..kernels.tables import Table
from ..losses.smooth import SmoothFunction, with_best_biases
from ..metrics.survival import concordance_index_scorer
from ..solvers.path import GridProgress, GridRecord, Position, SolvedPoint, solved_in_all
from ..utils.folds import (
    Answers,
    KnownClassifier,
    KnownProbabilities,
    KnownValues,
    effective_size,
    score_of,
    score_table,
)
from ..utils.numerics import ACCUMULATED
from ..utils.storable import storable
from .training_rows import about_label

# Relative difference between a loss and the sum of the losses of samples, to be called a sum:
# far above rounding errors, far below the share of a sample.
_SUMMED = 1e-6


@dataclass(frozen=True)
class SplitOutputs:
    """Outputs of the models of one training part at test samples.

    `outputs` has the axes of the grid and then those of the outputs at one point, such as samples
    and classes; it is NaN at points that could not be solved.
    """

    outputs: np.ndarray
    record: GridRecord

    @classmethod
    def unsolved(
        cls, grid: Position, point: tuple[int, ...], record: GridRecord | None = None
    ) -> SplitOutputs:
        """Return outputs without solved points, from the shapes of the grid and of one point."""
        record = GridRecord.unsolved(grid) if record is None else record
        return cls(np.full((*grid, *point), np.nan), record)

    def followed_by(self, other: SplitOutputs, axis: int) -> SplitOutputs:
        """Return the outputs of both grids, whose points differ along an axis."""
        outputs = np.concatenate([self.outputs, other.outputs], axis=axis)
        return SplitOutputs(outputs, self.record.followed_by(other.record, axis))

    @classmethod
    def of_sets(cls, parts: Sequence[SplitOutputs], grid: Position) -> SplitOutputs:
        """Join the outputs of several sets of kernels, the first axis of the grid.

        Sets that are missing at the end are not solved.
        """
        first = parts[0].outputs
        joined = cls.unsolved(grid, first.shape[len(grid) - 1 :])
        for k, part in enumerate(parts):
            joined.outputs[k] = part.outputs
            joined.record.enter(k, part.record)
        return joined

    def note(
        self,
        at: Position,
        params: Mapping[str, Any],
        outputs: np.ndarray,
        certificate: SolvedPoint,
        n_inner_solves: int,
    ) -> GridProgress:
        """Enter a solved point and return its progress."""
        self.outputs[at] = outputs
        return self.record.note(at, params, certificate, n_inner_solves)

    def repeat_first(self, row: int) -> None:
        """Copy the first point of a row of the grid to the others, which are the same model."""
        record = self.record
        for values in (self.outputs, record.rel_gaps, record.n_inner_solves, record.converged):
            values[row] = values[row, :1]


@dataclass(frozen=True)
class HeldOut(ABC):
    """Answers of all splits: those of ``parts[k]`` belong to the samples ``tests[k]``."""

    parts: list[SplitOutputs]
    tests: list[Samples]

    #: Fitted attribute with the answer to every training row.
    attribute: ClassVar[str]
    #: True if the loss decides between points with equal scores.
    loss_breaks_ties: ClassVar[bool] = True

    @abstractmethod
    def answers(self, at: Position) -> list[np.ndarray]:
        """Return the answers of every split at one point of the grid."""

    @abstractmethod
    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        """Return an estimator with these answers to `samples`, for scorers."""

    @abstractmethod
    def losses_at(self, at: Position) -> HeldOutLosses:
        """Return loss and error of every sample at one point of the grid."""

    @property
    def records(self) -> list[GridRecord]:
        """Solver statistics of every split."""
        return [part.record for part in self.parts]

    def joined(self, name: str) -> Any:
        """Return an attribute of all test samples, split after split; None if a split has none."""
        values = [getattr(test, name) for test in self.tests]
        return None if any(value is None for value in values) else np.concatenate(values)

    def scores(self, scorer: Callable[..., float]) -> np.ndarray:
        """Return the scores of every split and point, (n_splits, …)."""

        def answers(at: Position) -> Iterator[Answers]:
            for test, values in zip(self.tests, self.answers(at), strict=True):
                yield self.known(values, at, test), test.truth, test.counts

        return score_table(solved_in_all(self.records), len(self.parts), answers, scorer)

    def left_out(
        self,
        position: Position,
        positions: Sequence[Position],
        tested: Sequence[np.ndarray | None],
        samples: Samples,
        scorer: Callable[..., float],
    ) -> dict[str, Any]:
        """Return fitted attributes: the answer to every training row, its split, and the score.

        Split k answers at the point ``positions[k]``, and `position` is the chosen point.
        ``tested[k]`` are the rows of its test samples. A row that several splits test has the
        answer of the first. Empty if a validation set was tested.
        """
        if any(rows is None for rows in tested):
            return {}
        parts = [self.answers(at)[k] for k, at in enumerate(positions)]
        answers = np.full((len(samples), *parts[0].shape[1:]), np.nan)
        split_of_row = np.full(len(samples), -1)
        for k in reversed(range(len(parts))):
            answers[tested[k]] = parts[k]
            split_of_row[tested[k]] = k
        rows = np.flatnonzero(split_of_row >= 0)
        judged = samples.take(rows)
        known = self.known(answers[rows], position, judged)
        return {
            self.attribute: answers,
            "test_fold_": split_of_row,
            "left_out_score_": score_of((known, judged.truth, judged.counts), scorer),
        }


class HeldOutValues(HeldOut):
    """Values predicted for held-out samples."""

    attribute = "left_out_predictions_"
    loss_breaks_ties = False

    def answers(self, at: Position) -> list[np.ndarray]:
        return [part.outputs[at] for part in self.parts]

    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        return KnownValues(answers)

    def losses_at(self, at: Position) -> HeldOutLosses:
        """Return the squared errors of all samples."""
        squares = (np.concatenate(self.answers(at)) - self.joined("targets")) ** 2
        return HeldOutLosses(squares, squares, self.joined("counts"), self.joined("groups"))


def explained_deviance(
    loss: Callable[..., SmoothFunction],
    targets: np.ndarray,
    outputs: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> float:
    """Return D², one minus φ of the outputs relative to φ of the best constant.

    `loss` makes φ of the targets. If φ of the best constant is zero, as for equal targets, D² is
    1 for the same outputs and 0 for others, as R² of scikit-learn.
    """
    function = loss(targets, sample_weight=sample_weight)
    value, least = function.value(outputs[:, None]), _least_of_constants(function, len(outputs))
    if least > 0.0:
        return 1.0 - value / least
    return 0.0 if value > 0.0 else 1.0


def _least_of_constants(function: SmoothFunction, n_samples: int) -> float:
    """Return φ of the best constant output."""
    constant = np.tile(function.initial_biases(), (n_samples, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(constant).all():
            constant, _ = with_best_biases(function, constant)
        return function.value(constant)


def deviance_losses(
    loss: Callable[..., SmoothFunction],
    y: np.ndarray,
    predictions: np.ndarray,
    weights: np.ndarray,
    judged: np.ndarray,
) -> np.ndarray:
    """Return the loss of every sample relative to the mean loss of the best constant.

    Their mean is 1 − D². `loss` makes φ of targets, which must be a sum over samples times
    weights; the constant is the best for all samples, and the losses are those of `judged` ones.
    """
    function = loss(y, sample_weight=weights)
    mean = _least_of_constants(function, len(y)) / weights.sum()
    if not mean > 0.0:
        raise ValueError("D² is not defined: the best constant explains all of y.")
    y, weights = y[judged], weights[judged]
    outputs = _outputs_of_means(predictions[judged, None], function.link)
    total, terms = loss(y, sample_weight=weights).value(outputs), np.empty(len(y))
    for i in range(len(y)):
        others = weights.copy()
        others[i] = 0.0
        terms[i] = total - loss(y, sample_weight=others).value(outputs)
    if not np.isclose(terms.sum(), total, rtol=_SUMMED, atol=_SUMMED * mean * weights.sum()):
        raise ValueError(
            "The loss is no sum over samples of losses times sample weights, so that D² has no "
            "interval."
        )
    losses: np.ndarray = terms / (weights * mean)
    return losses


class KnownMeans(KnownValues):
    """Generalised linear model with known predictions, for scorers; `loss` makes φ of targets."""

    def __init__(self, values: np.ndarray, link: str, loss: Callable[..., Any]):
        super().__init__(values)
        self.link = link
        self.loss = loss

    def score(self, X: object, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        outputs = _outputs_of_means(self.values, self.link)
        return explained_deviance(self.loss, y, outputs, sample_weight)


@dataclass(frozen=True)
class HeldOutMeans(HeldOutValues):
    """Means predicted for held-out samples; `link` is that of the function made by `loss`."""

    loss: Callable[..., Any]
    link: str

    def answers(self, at: Position) -> list[np.ndarray]:
        return [predicted_means(part.outputs[at], self.link) for part in self.parts]

    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        return KnownMeans(answers, self.link, self.loss)


def predicted_means(outputs: np.ndarray, link: str) -> np.ndarray:
    """Return predictions from outputs."""
    return outputs if link == "identity" else np.exp(outputs)


def _outputs_of_means(means: np.ndarray, link: str) -> np.ndarray:
    """Return outputs from predictions."""
    with np.errstate(divide="ignore"):
        return means if link == "identity" else np.log(means)


class KnownRisks(BaseEstimator):
    """Survival model with known risks, for scorers; its methods ignore `X`.

    Our scorers of survival models ask it for the strata and entries of the test samples.
    """

    def __init__(
        self, risks: np.ndarray, test_strata: np.ndarray | None, test_entry: np.ndarray | None
    ):
        self.risks = risks
        self.test_strata = test_strata
        self.test_entry = test_entry

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: object, y: object) -> KnownRisks:
        return self

    def predict(self, X: object) -> np.ndarray:
        return self.risks

    def predict_survival_function(self, X: object) -> np.ndarray:
        raise ValueError(
            "Only the risks of held-out samples are known, not their survival curves: choose "
            'another scoring, such as "partial_likelihood", or MKCox in a GridSearchCV.'
        )

    def score(self, X: object, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        return concordance_index_scorer(self, X, y, sample_weight)


class HeldOutRisks(HeldOutValues):
    """Risks predicted for held-out samples."""

    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        return KnownRisks(answers, samples.strata, samples.entry)


# -- Decision values, and probabilities from them -------------------------------------------------


def chosen_classes(decisions: np.ndarray) -> np.ndarray:
    """Return the positions of the classes with the largest decision values.

    Of values that are equal but for rounding errors, the first class is chosen.
    """
    if decisions.ndim == 1:
        return (decisions > 0).astype(int)
    largest = decisions.max(axis=1, keepdims=True)
    ties: np.ndarray = decisions >= largest - ACCUMULATED * np.maximum(np.abs(largest), 1.0)
    return ties.argmax(axis=1)


@storable
@dataclass(frozen=True)
class DecisionCalibration:
    """Probabilities from decision values: ``log P(k|x) = slope · f_k(x) + constants[k]``.

    Up to a constant; of two classes the first has the decision value zero. `offsets`, (n_classes,)
    or one number for two classes, are added to the outputs of machines to give decision values f.
    """

    slope: float
    constants: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(
        cls, calibration: Calibration, frequencies: np.ndarray, *, moves: bool
    ) -> DecisionCalibration:
        """Return the calibration; if it `moves` outputs, the most probable class is chosen."""
        logs = np.log(frequencies)
        constants = calibration.exponent * (logs - logs.mean())
        if not moves:
            return cls(calibration.slope, constants, np.zeros_like(_one_for_two(constants)))
        offsets = _one_for_two(constants) / calibration.slope
        return cls(calibration.slope, np.zeros_like(constants), offsets)

    def log_probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Return logarithms of the class probabilities, (n, c)."""
        logs: np.ndarray = log_softmax(
            self.slope * class_scores(decisions) + self.constants, axis=1
        )
        return logs


def _one_for_two(constants: np.ndarray) -> np.ndarray:
    """Return constants of classes; for two classes, that of the second relative to the first."""
    return constants if len(constants) > 2 else np.diff(constants)


class CalibrationAttributes:
    """Attributes of classifiers whose decision values are calibrated.

    Attributes
    ----------
    calibration_ : DecisionCalibration, or list of these
        ``slope`` and ``constants`` that turn decision values into probabilities, and ``offsets``,
        which are added to ``intercept_`` in decision values; of each of several labels.
    left_out_decisions_ : ndarray of shape (n_samples,), or (n_samples, n_classes)
        Decision values of each training row by the model without its fold, at the point that is
        best in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    """


class KnownDecisions(KnownClassifier):
    """Classifier with known decision values, for scorers."""

    def __init__(
        self, classes: np.ndarray, decisions: np.ndarray, calibration: Callable[[], Any]
    ) -> None:
        self.classes = classes
        self.decisions = decisions
        self.calibration = calibration

    def decision_function(self, X: Table) -> np.ndarray:
        return self.decisions

    def predict(self, X: Table) -> np.ndarray:
        return self.classes[chosen_classes(self.decisions)]

    def predict_proba(self, X: Table) -> np.ndarray:
        # Computed on request, because most scorers do not need probabilities.
        probabilities: np.ndarray = np.exp(self.calibration().log_probabilities(self.decisions))
        return probabilities


@dataclass(frozen=True)
class HeldOutDecisions(HeldOut):
    """Decision values of held-out samples; `frequencies` are those of all samples.

    With `moves`, offsets are added to the outputs of machines such that the largest decision value
    is that of the most probable class.
    """

    frequencies: np.ndarray
    moves: bool = True
    _calibrations: dict[Position, DecisionCalibration] = field(default_factory=dict)

    attribute: ClassVar[str] = "left_out_decisions_"

    def answers(self, at: Position) -> list[np.ndarray]:
        decisions = [part.outputs[at] + self.calibration(at).offsets for part in self.parts]
        return [values[:, 0] if values.shape[1] == 1 else values for values in decisions]

    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        return KnownDecisions(self.tests[0].classes, answers, lambda: self.calibration(at))

    def calibration(self, at: Position) -> DecisionCalibration:
        """Return the calibration with the least log loss at the samples of all splits."""
        if at not in self._calibrations:
            labels, counts = self.joined("labels"), self.joined("counts")
            size = effective_size(len(labels), self.joined("groups"), counts)
            outputs = np.concatenate([part.outputs[at] for part in self.parts])
            calibrated = calibrated_decisions(outputs, self.frequencies, labels, counts, size)
            self._calibrations[at] = DecisionCalibration.of(
                calibrated.calibration, self.frequencies, moves=self.moves
            )
        return self._calibrations[at]

    def losses_at(self, at: Position) -> HeldOutLosses:
        """Return ``−log P`` of the true class of every sample, and whether another is chosen."""
        decisions, labels = np.concatenate(self.answers(at)), self.joined("labels")
        losses = log_losses(self.calibration(at).log_probabilities(decisions), labels)
        wrong = (chosen_classes(decisions) != labels).astype(np.float64)
        return HeldOutLosses(losses, wrong, self.joined("counts"), self.joined("groups"))


class HeldOutLogits(HeldOut):
    """Outputs of logistic regressions at held-out samples, as log-probabilities."""

    attribute = "left_out_log_proba_"

    def answers(self, at: Position) -> list[np.ndarray]:
        return [log_softmax(class_scores(part.outputs[at]), axis=1) for part in self.parts]

    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        return KnownProbabilities(self.tests[0].classes, answers)

    def losses_at(self, at: Position) -> HeldOutLosses:
        """Return ``−log P`` of the true class of every sample, and whether another is chosen."""
        logs, labels = np.vstack(self.answers(at)), self.joined("labels")
        wrong = (logs.argmax(axis=1) != labels).astype(np.float64)
        losses = log_losses(logs, labels)
        return HeldOutLosses(losses, wrong, self.joined("weights"), self.joined("groups"))


# -- Several labels per sample --------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOutLabels(HeldOut):
    """Answers about several labels of each sample, judged by the means of their scores.

    ``labels[i]`` are answers about the label of number ``numbers[i]``.
    """

    labels: list[HeldOut]
    numbers: np.ndarray

    @classmethod
    def of(cls, labels: list[HeldOut], numbers: np.ndarray) -> HeldOutLabels:
        """Return the answers about labels that were learnt with the same kernel weights."""
        return cls(labels[0].parts, labels[0].tests, labels, numbers)

    def answers(self, at: Position) -> list[np.ndarray]:
        every = zip(*(label.answers(at) for label in self.labels), strict=True)
        return [np.column_stack(list(map(_of_presence, answers))) for answers in every]

    def known(self, answers: np.ndarray, at: Position, samples: Samples) -> BaseEstimator:
        raise TypeError("Labels are judged one by one.")

    def losses_at(self, at: Position) -> HeldOutLosses:
        """Return loss and error of every label of every sample, label after label."""
        each = [label.losses_at(at) for label in self.labels]
        n_samples, groups = len(each[0].losses), each[0].groups
        return HeldOutLosses(
            np.concatenate([label.losses for label in each]),
            np.concatenate([label.errors for label in each]),
            np.concatenate(
                [np.ones(n_samples) if label.counts is None else label.counts for label in each]
            ),
            np.tile(np.arange(n_samples) if groups is None else groups, len(each)),
        )

    def scores(self, scorer: Callable[..., float]) -> np.ndarray:
        each = []
        for number, label in zip(self.numbers, self.labels, strict=True):
            with about_label(int(number)):
                each.append(label.scores(scorer))
        scores: np.ndarray = np.mean(each, axis=0)
        return scores

    def left_out(
        self,
        position: Position,
        positions: Sequence[Position],
        tested: Sequence[np.ndarray | None],
        samples: Samples,
        scorer: Callable[..., float],
    ) -> dict[str, Any]:
        each = [
            label.left_out(position, positions, tested, samples.label(int(number)), scorer)
            for number, label in zip(self.numbers, self.labels, strict=True)
        ]
        if not each[0]:
            return {}
        name = self.labels[0].attribute
        return {
            name: np.column_stack([_of_presence(label[name]) for label in each]),
            "test_fold_": each[0]["test_fold_"],
            "left_out_score_": float(np.mean([label["left_out_score_"] for label in each])),
        }


def _of_presence(answers: np.ndarray) -> np.ndarray:
    """Return answers about the presence of a label: the second class, or decision values."""
    return answers if answers.ndim == 1 else answers[:, 1]


# -- Class scores of discriminants ----------------------------------------------------------------


@dataclass(frozen=True)
class HeldOutProbabilities(HeldOutLogits):
    """Class scores of held-out samples by one rule, as log-probabilities.

    `frequencies` (c,) are those of all samples. (Class frequencies in the training part of a split
    would reveal the labels of its test part.) `priors` (c,) replace them in the decision. All
    splits share the calibration at a point.
    """

    frequencies: np.ndarray
    priors: np.ndarray | None
    rule: str
    _calibrated: dict[Position, CalibratedScores] = field(default_factory=dict)

    def answers(self, at: Position) -> list[np.ndarray]:
        if at not in self._calibrated:
            scores = np.vstack([part.outputs[at] for part in self.parts])
            offsets = rule_offsets(self.rule, self.frequencies)
            labels, counts = self.joined("labels"), self.joined("counts")
            size = effective_size(len(labels), self.joined("groups"), counts)
            self._calibrated[at] = CalibratedScores(
                scores, offsets, labels, self.joined("weights"), size
            )
        ends = np.cumsum([len(test) for test in self.tests])
        logs = np.split(self._calibrated[at].log_probabilities, ends[:-1])
        if self.priors is None:
            return logs
        shift = log_ratio(self.priors, self.frequencies)
        return [log_softmax(values + shift, axis=1) for values in logs]


def better_rule(candidates: Sequence[HeldOutProbabilities]) -> HeldOutProbabilities:
    """Return the second of two rules if its log loss is clearly smaller, else the first.

    Each rule is judged at the point with its smallest log loss.
    """
    first, *others = candidates
    points = [tuple(at) for at in np.argwhere(solved_in_all(first.records)).tolist()]
    if not others or not points:
        return first
    (second,) = others
    least = [
        min((rule.losses_at(at) for at in points), key=lambda losses: losses.loss)
        for rule in (second, first)
    ]
    weights, groups = least[0].counts, least[0].groups
    better = clearly_smaller(least[0].losses, least[1].losses, weights, groups)
    return second if better else first
