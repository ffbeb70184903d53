"""Choosing p and λ on explicit features: folds of moments, judged by the rows of a sample.

The moments of all samples but a fold are a sum, so no fold takes another pass. In every fold the
scales of kernels, their weights and the regression are learnt from the moments of the others, and
the rule of a discriminant from the rows of the sample among them. What is scored are the rows of
the sample that belong to the fold, with the kernels (widths, landmarks) of all rows, as in the
folds of kernel matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blas import matmul
from ..discriminant import LabelledKernels, fisher_targets
from ..discriminant.held_out import HeldOut, HeldOutScores
from ..discriminant.rules import Discriminant, indicator_rule
from ..losses import FeatureLoss
from ..losses.known_rows import SingleRows
from ..scale.moments import Moments
from ..solvers import GridPoint, GridRecord, walk_grid
from ._feature_rows import FeatureRows
from ._grid import Grid
from ._held_out import HeldOutValues, SplitOutputs, TargetedKernels
from ._on_features import FeatureProblem, FeatureTargets, judged_samples, ones_unless
from ._progress import FitTask

#: Kernel weights at points of a grid, by the positions of p and λ.
Solutions = dict[tuple[int, int], np.ndarray]


# -- discriminants ---------------------------------------------------------------------------


def held_out_on_features(
    rows: FeatureRows,
    normalize: str | None,
    ps: np.ndarray,
    regs: np.ndarray,
    rules: Sequence[str],
    priors: Any,
    tol: float,
    task: FitTask,
    purpose: str = "",
) -> HeldOut:
    """Class scores of the sample by models without its fold, by each rule at each p and λ."""
    n_splits, size = rows.plan.n_splits, len(ps) * len(regs)
    every = judged_samples(rows, rows.moments.total.target_sums())
    parts, tests = [], []
    # Training parts have most of their samples in common: each begins where the last one ended.
    solutions: Solutions = {}
    for k in range(n_splits):
        own = rows.plan.tested(rows.sample.rows, k)
        _refuse_split(rows, own, k)
        tests.append(every.of(own))
        part = task.part(f"{purpose}split {k + 1}/{n_splits}", size)
        parts.append(
            _scores_of_split(rows, own, k, normalize, ps, regs, rules, tol, part, solutions)
        )
        part.end()
    given = None if priors is None else np.asarray(priors, dtype=float)
    return HeldOut(parts, tests, every.frequencies, given)


def training_moments(rows: FeatureRows, split: int) -> Moments:
    """Moments of the training part of a split."""
    return rows.moments.of(rows.plan.training[split])


def _refuse_split(rows: FeatureRows, own: np.ndarray, k: int) -> None:
    """Raise if no model can be learnt from the training part, or nothing is in the test part."""
    if len(own) == 0:
        raise ValueError(f"Split {k} has no test samples: use fewer folds.")
    masses = training_moments(rows, k).target_sums()
    if (masses <= 0.0).any():
        classes = rows.targets.classes[masses <= 0.0].tolist()  # type: ignore[attr-defined]
        raise ValueError(
            f"Split {k} leaves no training samples of {classes}: use fewer folds, or leave the "
            "class out."
        )


def _scores_of_split(
    rows: FeatureRows,
    own: np.ndarray,
    k: int,
    normalize: str | None,
    ps: np.ndarray,
    regs: np.ndarray,
    rules: Sequence[str],
    tol: float,
    task: FitTask,
    solutions: Solutions,
) -> HeldOutScores:
    problem = FeatureProblem.of(training_moments(rows, k), rows.features, normalize)
    sums = problem.sums(problem.fisher_turn())
    features = problem.scaling(rows.sampled[own])
    frequencies = problem.masses / problem.masses.sum()
    known = _TrainingRows.of(rows, problem, k) if "discriminant" in rules else None
    shape = len(ps), len(regs)
    found = HeldOutScores(
        {rule: np.full((*shape, len(own), len(frequencies)), np.nan) for rule in rules},
        GridRecord.unsolved(shape),
    )

    def visit(point: GridPoint) -> bool:
        at = point.norm_index, point.reg_index
        evaluation, rotation = point.evaluation, point.loss.rotation
        solutions[at] = evaluation.weights
        outputs = matmul(features, evaluation.solution)
        for name in rules:
            if known is None or name == "indicator":
                rule = indicator_rule(frequencies, rotation)
            else:
                rule = known.discriminant(evaluation).rule
            found.scores[name][at] = rule.scores(outputs)
        params = {"p": float(ps[at[0]]), "reg": float(regs[at[1]])}
        return task(found.record.note(at, params, point.certificate, point.n_inner_solves))

    failures = walk_grid(
        lambda reg: FeatureLoss(sums, reg), ps, regs, visit, tol=tol, starts=dict(solutions)
    )
    found.record.failures.extend(failures)
    return found


@dataclass(frozen=True)
class _TrainingRows:
    """Rows of the sample in the training part of a split: what a discriminant is learnt from.

    `features` are those of the loss, `targets` the Fisher targets, `weights` as for
    :class:`.FeatureRows`. In `samples` the classes have the proportions of the training part.
    """

    features: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    samples: LabelledKernels
    total_weight: float

    @classmethod
    def of(cls, rows: FeatureRows, problem: FeatureProblem, k: int) -> _TrainingRows:
        places = rows.plan.trained(rows.sample.rows, k)
        every = judged_samples(rows, rows.moments.total.target_sums())
        if len(absent := np.setdiff1d(every.labels, every.labels[places])):
            raise ValueError(
                f"Split {k} has too few training samples of {every.classes[absent].tolist()}: "
                f"none of them is among the {len(rows.sample)} rows that rules are learnt from. "
                "Use larger training parts."
            )
        samples = judged_samples(rows, problem.masses, places)
        return cls(
            problem.scaling(rows.sampled[places]),
            fisher_targets(samples.labels, problem.masses),
            ones_unless(rows.weights, len(rows.sample))[places],
            samples,
            problem.moments.weight,
        )

    def discriminant(self, evaluation: Any) -> Discriminant:
        """That of outputs of every row by the regression of all others.

        As on kernel matrices, outputs are measured from the mean target of the others: else those
        of a large λ would show that mean alone, which lies on the other side of the sample.
        """
        known = SingleRows(
            evaluation, self.features, self.targets, self.weights, self.total_weight
        )
        # The kernel weights, which have not seen the test samples, may be held here.
        left_out = known.leave_one_out(self.samples.groups, from_mean=True)
        return Discriminant.learn(left_out @ evaluation.loss.rotation, self.samples)


# -- ridge regression ------------------------------------------------------------------------


def held_out_values_on_features(
    rows: FeatureRows,
    normalize: str | None,
    grid: Grid,
    groups: Sequence[np.ndarray],
    tol: float,
    task: FitTask,
) -> list[HeldOutValues]:
    """Predictions of the sample by models without its fold at every point, for each group."""
    n_splits = rows.plan.n_splits
    y = np.asarray(rows.sample.y, dtype=np.float64)
    columns = y.reshape(len(y), -1)
    found: list[list[SplitOutputs]] = []
    solutions: list[Solutions] = [{} for _ in groups]
    tested = [rows.plan.tested(rows.sample.rows, k) for k in range(n_splits)]
    for k, own in enumerate(tested):
        if len(own) == 0:
            raise ValueError(f"Split {k} has no test samples: use fewer folds.")
        part = task.part(f"split {k + 1}/{n_splits}", len(groups) * grid.size)
        problem = FeatureProblem.of(training_moments(rows, k), rows.features, normalize)
        targets = FeatureTargets.of(problem, rows.targets.origin)  # type: ignore[attr-defined]
        features = problem.scaling(rows.sampled[own])
        shape = (len(own),) if len(groups) > 1 or y.ndim == 1 else (len(own), columns.shape[1])
        found.append(
            [
                _walk(problem, targets, features, group, grid, shape, tol, part, own_solutions)
                for group, own_solutions in zip(groups, solutions, strict=True)
            ]
        )
        part.end()
    values = []
    for g, group in enumerate(groups):
        judged = columns[:, group] if len(groups) == 1 and y.ndim > 1 else columns[:, group[0]]
        counts = rows.counts
        tests = [
            TargetedKernels(None, judged[own], None if counts is None else counts[own])  # type: ignore[arg-type]
            for own in tested
        ]
        values.append(HeldOutValues([parts[g] for parts in found], tests))
    return values


def _walk(
    problem: FeatureProblem,
    targets: FeatureTargets,
    features: np.ndarray,
    group: np.ndarray,
    grid: Grid,
    shape: tuple[int, ...],
    tol: float,
    task: FitTask,
    solutions: Solutions,
) -> SplitOutputs:
    """Predictions of one group of targets at every point of the grid."""
    found = SplitOutputs.unsolved(grid.shape, shape)
    sums = problem.sums(targets.turn(group))

    def visit(point: GridPoint) -> bool:
        at = point.norm_index, point.reg_index
        solutions[at] = point.evaluation.weights
        outputs = matmul(features, point.evaluation.coefficients)
        values = targets.restored(outputs, group).reshape(shape)
        return task(found.note(at, grid.at(at), values, point.certificate, point.n_inner_solves))

    ps, regs = grid.values.values()
    failures = walk_grid(
        lambda reg: FeatureLoss(sums, reg), ps, regs, visit, tol=tol, starts=dict(solutions)
    )
    found.record.failures.extend(failures)
    return found
