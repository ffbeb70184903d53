"""Class scores of held-out samples, at every point of a grid of norms and regularisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from ..domains import lp_domain
from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..solvers import GridPoint, walk_grid
from ..solvers.response import weight_response
from .calibration import CalibratedScores, clearly_smaller, log_losses
from .decision import log_ratio
from .labelled import LabelledKernels
from .rules import Discriminant, LinearRule, indicator_rule, rule_offsets

#: Samples that judge: others than those of training, or folds of those of training.
Test = LabelledKernels | list[np.ndarray]


@dataclass(frozen=True)
class HeldOutScores:
    """Class scores by the models of one training part, at samples that they have not seen.

    Attributes
    ----------
    scores : dict of str to ndarray of shape (n_ps, n_regs, n_judged, c)
        Of every rule; NaN at points that could not be solved.
    frequencies : ndarray of shape (c,)
        Of the classes in training.
    rel_gaps, n_inner_solves, converged : ndarray of shape (n_ps, n_regs)
        Infinite, zero and False at points that could not be solved.
    failures : list of str
        Why points could not be solved.
    """

    scores: dict[str, np.ndarray]
    frequencies: np.ndarray
    rel_gaps: np.ndarray
    n_inner_solves: np.ndarray
    converged: np.ndarray
    failures: list[str]

    @classmethod
    def empty(
        cls, rules: Sequence[str], shape: tuple[int, int], n_judged: int, frequencies: np.ndarray
    ) -> HeldOutScores:
        """Nothing solved yet."""
        everything = (*shape, n_judged, len(frequencies))
        return cls(
            {rule: np.full(everything, np.nan) for rule in rules},
            frequencies,
            np.full(shape, np.inf),
            np.zeros(shape, int),
            np.zeros(shape, bool),
            [],
        )


@dataclass(frozen=True)
class GridProgress:
    """One more point of the grid is solved."""

    iteration: int
    p: float
    reg: float
    n_inner_solves: int
    rel_gap: float

    def __str__(self) -> str:
        return (
            f"p {self.p:.6g}  reg {self.reg:.3g}  inner solves {self.n_inner_solves}  "
            f"relative gap {self.rel_gap:.1e}"
        )


class Judged(ClassifierMixin, BaseEstimator):
    """A classifier of which only the log-probabilities of some samples are known, for scorers.

    Parameters
    ----------
    classes : ndarray of shape (c,)
    logs : ndarray of shape (n, c)
    """

    def __init__(self, classes: np.ndarray, logs: np.ndarray):
        self.classes = classes
        self.logs = logs

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        return self.classes

    def fit(self, X: Any, y: Any) -> Judged:
        """Nothing is left to learn."""
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return self.logs[:, 1] - self.logs[:, 0] if len(self.classes) == 2 else self.logs

    def predict(self, X: Any) -> np.ndarray:
        return self.classes[self.logs.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.exp(self.logs)


def held_out_scores(
    train: LabelledKernels,
    test: Test,
    transform: Chain,
    ps: Sequence[float],
    regs: Sequence[float],
    rules: Sequence[str],
    tol: float,
    observer: Callable[[GridProgress], bool | None] | None = None,
) -> HeldOutScores:
    """Fit all models of the grid to `train`, and score `test` by every one of the `rules`.

    `test` is a block of its own, or a list of folds of the training samples, each of which is
    left out in closed form (:mod:`manykernels.losses.left_out`). The observer is told of every
    point that is solved; a true answer ends the walk.
    """
    problem = train.prepared(transform)
    judge: Callable[[GridPoint, float], dict[str, np.ndarray]]
    if isinstance(test, LabelledKernels):
        n_judged = len(test.labels)
        judge = _JudgeOfOthers(train, transform.transform(test.stack), rules)
    else:
        n_judged = sum(map(len, test))
        judge = _JudgeOfFolds(train, test, rules)
    found = HeldOutScores.empty(rules, (len(ps), len(regs)), n_judged, train.frequencies)

    def visit(point: GridPoint) -> bool:
        here = point.norm_index, point.reg_index
        p = float(ps[point.norm_index])
        found.rel_gaps[here] = point.certificate.rel_gap
        found.n_inner_solves[here] = point.n_inner_solves
        found.converged[here] = point.certificate.converged
        for rule, scores in judge(point, p).items():
            found.scores[rule][here] = scores
        if observer is None:
            return False
        done = int(np.count_nonzero(found.n_inner_solves))
        reg, gap = float(regs[point.reg_index]), point.certificate.rel_gap
        return bool(observer(GridProgress(done, p, reg, point.n_inner_solves, gap)))

    failures = walk_grid(
        problem.stack, problem.targets, ps, regs, visit, sample_weight=train.weights, tol=tol
    )
    found.failures.extend(failures)
    return found


@dataclass(frozen=True)
class _JudgeOfOthers:
    """Scores of samples that have no part in training."""

    train: LabelledKernels
    block: KernelStack
    rules: Sequence[str]

    def __call__(self, point: GridPoint, p: float) -> dict[str, np.ndarray]:
        evaluation, rotation = point.evaluation, point.loss.rotation
        outputs = self.block.apply_combined(evaluation.weights, evaluation.coefficients @ rotation)
        scores = {}
        for name in self.rules:
            # Only the discriminant is learnt from outputs of the training samples. Weights may be
            # held there, since they have not seen the labels of the test part.
            known = self._left_out(point) if name == "discriminant" else None
            scores[name] = _learnt_rule(name, known, self.train, rotation).scores(outputs)
        return scores

    def _left_out(self, point: GridPoint) -> np.ndarray:
        left = point.evaluation.leave_one_out(self.train.counts, from_mean=True)
        return left @ point.loss.rotation


@dataclass(frozen=True)
class _JudgeOfFolds:
    """Scores of training samples, fold by fold."""

    train: LabelledKernels
    folds: list[np.ndarray]
    rules: Sequence[str]

    def __call__(self, point: GridPoint, p: float) -> dict[str, np.ndarray]:
        rotation = point.loss.rotation
        response = weight_response(point.evaluation, lp_domain(p))
        left = point.evaluation.leave_out(self.folds, self.train.counts, response)
        parts = left.turned(rotation).folds
        scores = {}
        for name in self.rules:
            of_folds = []
            for part in parts:
                others = self.train.of(part.others)
                rule = _learnt_rule(name, part.outputs_of_others, others, rotation)
                of_folds.append(rule.scores(part.outputs))
            scores[name] = np.concatenate(of_folds)
        return scores


def _learnt_rule(
    name: str, outputs: np.ndarray | None, train: LabelledKernels, rotation: np.ndarray
) -> LinearRule:
    """The rule of this name, learnt from left-out outputs of training samples if it has to be."""
    if name == "indicator":
        return indicator_rule(train.frequencies, rotation)
    assert outputs is not None
    return Discriminant.learn(outputs, train).rule


@dataclass(frozen=True)
class HeldOut:
    """Scores of all splits by one rule, and what they are scores of.

    Attributes
    ----------
    parts : list of HeldOutScores
    tests : list of LabelledKernels
        The samples that the scores belong to.
    frequencies : ndarray of shape (c,)
        Of the classes among all samples. (In the training part of a split a class is the rarer,
        the more of it is in the test part. A calibration with these frequencies would learn that.)
    priors : ndarray of shape (c,) or None
        Class probabilities that decide; by default the frequencies in training.
    """

    parts: list[HeldOutScores]
    tests: list[LabelledKernels]
    frequencies: np.ndarray
    priors: np.ndarray | None
    _calibrated: dict[tuple[str, int, int], CalibratedScores] = field(default_factory=dict)

    def log_probabilities(self, rule: str, i: int, j: int) -> list[np.ndarray]:
        """Of the samples of every split, at one point of the grid.

        All splits share one calibration: two numbers, fitted to the scores of all of them.
        """
        if (rule, i, j) not in self._calibrated:
            scores = np.vstack([part.scores[rule][i, j] for part in self.parts])
            offsets = rule_offsets(rule, self.frequencies)
            self._calibrated[rule, i, j] = CalibratedScores(
                scores, offsets, self.labels, self.weights, self.n_samples
            )
        ends = np.cumsum([len(test.labels) for test in self.tests])
        logs = np.split(self._calibrated[rule, i, j].log_probabilities, ends[:-1])
        if self.priors is None:
            return logs
        shifted = [
            found + log_ratio(self.priors, part.frequencies)
            for found, part in zip(logs, self.parts, strict=True)
        ]
        return [log_softmax(found, axis=1) for found in shifted]

    @property
    def labels(self) -> np.ndarray:
        return np.concatenate([test.labels for test in self.tests])

    @property
    def weights(self) -> np.ndarray | None:
        found = [test.weights for test in self.tests if test.weights is not None]
        return np.concatenate(found) if found else None

    @property
    def n_samples(self) -> float:
        """How many samples the rows stand for."""
        return sum(test.n_samples for test in self.tests)

    def log_losses(self, rule: str, i: int, j: int) -> np.ndarray:
        """``−log P`` of the true class of every sample, at one point of the grid, (n,)."""
        return log_losses(np.vstack(self.log_probabilities(rule, i, j)), self.labels)

    def mean_log_loss(self, rule: str, i: int, j: int) -> float:
        """Their mean."""
        return float(np.average(self.log_losses(rule, i, j), weights=self.weights))

    def better_rule(self) -> str:
        """The discriminant if its least mean log loss is clearly the smaller one."""
        points = np.argwhere(self.solved).tolist()
        if not points:
            return "indicator"
        trained, untrained = (
            self.log_losses(rule, *min(points, key=lambda at: self.mean_log_loss(rule, *at)))
            for rule in ("discriminant", "indicator")
        )
        clearly = clearly_smaller(trained, untrained, self.weights, self.n_samples)
        return "discriminant" if clearly else "indicator"

    def judged_by(self, scorer: Callable[..., float], rule: str) -> np.ndarray:
        """Scores of every split and point, (n_splits, n_ps, n_regs)."""
        table = np.full((len(self.parts), *self.parts[0].rel_gaps.shape), np.nan)
        for at in np.argwhere(self.solved):
            logs = self.log_probabilities(rule, *at)
            for k, (test, own) in enumerate(zip(self.tests, logs, strict=True)):
                options = {} if test.counts is None else {"sample_weight": test.counts}
                judged = Judged(test.classes, own)
                truth = test.classes[test.labels]
                table[(k, *at)] = scorer(judged, None, truth, **options)
        return table

    @property
    def failures(self) -> list[str]:
        """Why points could not be solved, of all splits."""
        return [failure for part in self.parts for failure in part.failures]

    @property
    def solved(self) -> np.ndarray:
        """Points that all splits could solve, (n_ps, n_regs)."""
        return np.all([part.n_inner_solves > 0 for part in self.parts], axis=0)
