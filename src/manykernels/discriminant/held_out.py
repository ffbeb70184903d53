"""Class scores of held-out samples at every point of a (p, λ) grid, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import log_softmax

from .._folds import effective_size
from .._scoring import Answers, Judged, score_table
from ..domains import lp_domain
from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..solvers import GridPoint, GridProgress, GridRecord, solved_in_all, walk_grid
from ..solvers.response import weight_response
from .calibration import CalibratedScores, clearly_smaller, log_losses
from .decision import log_ratio, scores_of_folds
from .labelled import LabelledKernels
from .rules import Discriminant, indicator_rule, rule_offsets

#: Samples on which models are scored: others than those of training, or folds of these.
Test = LabelledKernels | list[np.ndarray]


@dataclass(frozen=True)
class HeldOutScores:
    """Class scores by the models of one training part, at samples that they have not seen.

    Attributes
    ----------
    scores : dict of str to ndarray of shape (n_ps, n_regs, n_samples, c)
        One array for each rule; NaN at points that could not be solved.
    record : GridRecord
        How the models were solved.
    """

    scores: dict[str, np.ndarray]
    record: GridRecord


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

    `test` has samples of its own, or is a list of folds of the training samples, each of which is
    left out in closed form (:mod:`manykernels.losses.left_out`). The observer is called at every
    solved point; if it returns a true value, the remaining points are not solved.
    """
    problem = train.prepared(transform)
    score: Callable[[GridPoint], dict[str, np.ndarray]]
    if isinstance(test, LabelledKernels):
        n_scored, block = len(test.labels), transform.transform(test.stack)
        score = partial(_scores_of_others, train=train, block=block, rules=rules)
    else:
        n_scored = sum(map(len, test))
        score = partial(_scores_of_left_out, train=train, folds=test, rules=rules, ps=ps)
    shape = len(ps), len(regs)
    found = HeldOutScores(
        {rule: np.full((*shape, n_scored, len(train.classes)), np.nan) for rule in rules},
        GridRecord.unsolved(shape),
    )

    def visit(point: GridPoint) -> bool:
        here = point.norm_index, point.reg_index
        for rule, scores in score(point).items():
            found.scores[rule][here] = scores
        params = {"p": float(ps[point.norm_index]), "reg": float(regs[point.reg_index])}
        progress = found.record.note(here, params, point.certificate, point.n_inner_solves)
        return observer is not None and bool(observer(progress))

    failures = walk_grid(problem.loss, ps, regs, visit, tol=tol)
    found.record.failures.extend(failures)
    return found


def _scores_of_others(
    point: GridPoint, train: LabelledKernels, block: KernelStack, rules: Sequence[str]
) -> dict[str, np.ndarray]:
    """Scores of samples that have no part in training, given their kernels with `train`."""
    evaluation, rotation = point.evaluation, point.loss.rotation
    outputs = block.apply_combined(evaluation.weights, evaluation.coefficients @ rotation)
    scores = {}
    for name in rules:
        if name == "indicator":
            rule = indicator_rule(train.frequencies, rotation)
        else:
            # The kernel weights, which have not seen the test samples, may be held here.
            left_out = evaluation.leave_one_out(train.groups, from_mean=True)
            rule = Discriminant.learn(left_out @ rotation, train).rule
        scores[name] = rule.scores(outputs)
    return scores


def _scores_of_left_out(
    point: GridPoint,
    train: LabelledKernels,
    folds: list[np.ndarray],
    rules: Sequence[str],
    ps: Sequence[float],
) -> dict[str, np.ndarray]:
    """Scores of training samples by models without their fold, fold after fold."""
    rotation = point.loss.rotation
    response = weight_response(point.evaluation, lp_domain(float(ps[point.norm_index])))
    left_out = point.evaluation.leave_out(folds, train.groups, response).turned(rotation)
    return {name: scores_of_folds(name, left_out.folds, train, rotation) for name in rules}


@dataclass(frozen=True)
class HeldOut:
    """Scores of all splits: those of ``parts[k]`` belong to the samples ``tests[k]``.

    Attributes
    ----------
    parts : list of HeldOutScores
    tests : list of LabelledKernels
    frequencies : ndarray of shape (c,)
        Of the classes among all samples. (Those in the training part of a split would tell the
        labels of its test part: the more samples of a class are in one, the fewer in the other.)
    priors : ndarray of shape (c,) or None
        Class probabilities that decide; by default these frequencies.
    """

    parts: list[HeldOutScores]
    tests: list[LabelledKernels]
    frequencies: np.ndarray
    priors: np.ndarray | None
    _calibrated: dict[tuple[str, int, int], CalibratedScores] = field(default_factory=dict)

    def log_probabilities(self, rule: str, i: int, j: int) -> list[np.ndarray]:
        """Log-probabilities of the samples of every split, at one point of the grid.

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
        shift = log_ratio(self.priors, self.frequencies)
        return [log_softmax(own + shift, axis=1) for own in logs]

    @property
    def labels(self) -> np.ndarray:
        return np.concatenate([test.labels for test in self.tests])

    @property
    def weights(self) -> np.ndarray | None:
        return self._joined("weights")

    @property
    def groups(self) -> np.ndarray | None:
        return self._joined("groups")

    def _joined(self, name: str) -> np.ndarray | None:
        """Vectors of all tests, one after the other; None if the tests have none."""
        parts = [getattr(test, name) for test in self.tests]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    @property
    def n_samples(self) -> float:
        """Effective number of independent samples."""
        return effective_size(len(self.labels), self.groups, self._joined("counts"))

    def log_losses(self, rule: str, i: int, j: int) -> np.ndarray:
        """``−log P`` of the true class of every sample, at one point of the grid, (n,)."""
        return log_losses(np.vstack(self.log_probabilities(rule, i, j)), self.labels)

    def mean_log_loss(self, rule: str, i: int, j: int) -> float:
        """The weighted mean of :meth:`log_losses`."""
        return float(np.average(self.log_losses(rule, i, j), weights=self.weights))

    def better_rule(self) -> str:
        """The discriminant if its log loss is clearly smaller, each rule at its best point."""
        points = np.argwhere(self.solved).tolist()
        if not points:
            return "indicator"
        discriminant, indicator = (
            self.log_losses(rule, *min(points, key=lambda at: self.mean_log_loss(rule, *at)))
            for rule in ("discriminant", "indicator")
        )
        better = clearly_smaller(discriminant, indicator, self.weights, self.groups)
        return "discriminant" if better else "indicator"

    def judged_by(self, scorer: Callable[..., float], rule: str) -> np.ndarray:
        """Values of a scikit-learn scorer at every split and point, (n_splits, n_ps, n_regs)."""

        def judged(at: tuple[int, ...]) -> Iterator[Answers]:
            for test, own in zip(self.tests, self.log_probabilities(rule, *at), strict=True):
                yield Judged(test.classes, own), test.classes[test.labels], test.counts

        return score_table(self.solved, len(self.parts), judged, scorer)

    @property
    def records(self) -> list[GridRecord]:
        """How the models of every split were solved."""
        return [part.record for part in self.parts]

    @property
    def solved(self) -> np.ndarray:
        """Points that all splits could solve, (n_ps, n_regs)."""
        return solved_in_all(self.records)
