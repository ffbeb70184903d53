"""Ridge regression on weighted sums of kernels: targets in common units, losses, what is kept.

Targets are centred and divided by their standard deviations. So each counts alike where several
share their kernel weights, whatever its unit; and since the regression of one target is linear in
it, none of its predictions change. Centred kernels and targets are what an intercept amounts to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._rounding import EPS, ROUNDING
from ..domains import Domain
from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..losses import SquareLoss
from ..solvers.response import weight_response
from ._held_out import TargetedKernels
from ._kernels import KernelExpansion, TrainingKernels
from ._learning import WeightLearning, solve_each
from ._progress import FitTask
from ._rows import TrainingRows


@dataclass(frozen=True)
class ScaledTargets:
    """Columns of targets (m, q) of mean zero and variance one, and the way back.

    A target is ``units * column + means``. Constant ones have columns of zeros.
    """

    columns: np.ndarray
    means: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, weights: np.ndarray | None) -> Self:
        """From targets (m, q) and the weights of the samples."""
        # In units of about the largest one, so that no sum overflows: powers of two, which make
        # no rounding errors.
        largest = np.exp2(np.frexp(np.abs(targets).max(axis=0))[1].astype(np.float64) - 1.0)
        targets = targets / largest
        means = np.average(targets, axis=0, weights=weights)
        columns = targets - means
        # The mean of numbers far from zero has a rounding error.
        rest = np.average(columns, axis=0, weights=weights)
        columns, means = columns - rest, means + rest
        units = np.sqrt(np.average(columns**2, axis=0, weights=weights))
        constant = units <= ROUNDING
        columns[:, constant], units[constant] = 0.0, 1.0
        return cls(columns / units, largest * means, largest * units)

    def rounding(self, residuals: np.ndarray) -> float:
        """Rounding error of the objective by those of predictions, as they are stored.

        `residuals` (q,) are sums of the absolute residuals of every target, in its units.
        """
        return targets_rounding(self.means, self.units, residuals)

    def restored(self, outputs: np.ndarray, targets: Any = slice(None)) -> np.ndarray:
        """Predictions of some of the targets from outputs of a regression on their columns."""
        predictions: np.ndarray = outputs * self.units[targets] + self.means[targets]
        return predictions


def targets_rounding(means: np.ndarray, units: np.ndarray, residuals: np.ndarray) -> float:
    """What rounding of predictions far from zero changes in ``Σ_i (y_i − f(x_i))²``."""
    return float(EPS * ((np.abs(means) / units + 1.0) @ residuals))


@dataclass(frozen=True)
class RidgeProblem:
    """Regression of scaled targets on centred, normalised kernels."""

    stack: KernelStack
    targets: ScaledTargets
    counts: np.ndarray | None

    @classmethod
    def of(cls, samples: TargetedKernels, transform: Chain) -> Self:
        """From training samples; `transform`, fitted here, centres and normalises the kernels."""
        stack = transform.fit_transform(samples.stack, sample_weight=samples.counts)
        targets = samples.targets.reshape(len(samples), -1)
        return cls(stack, ScaledTargets.of(targets, samples.counts), samples.counts)

    def loss(self, reg: float, group: Any) -> SquareLoss:
        """The regression of a group of targets at λ = `reg`."""
        return SquareLoss(self.stack, self.targets.columns[:, group], reg, self.counts)

    def losses(self, regs: Sequence[float], groups: Sequence[Any]) -> list[SquareLoss]:
        """A loss for every group of targets, as a function of its kernel weights.

        Groups of equal size share one m × m matrix: an evaluation whose factor has been
        overwritten by that of another loss computes it again.
        """
        found = [self.loss(reg, group) for reg, group in zip(regs, groups, strict=True)]
        for loss in found[1:]:
            loss.workspace = found[0].workspace
        return found


def groups_of(targets: np.ndarray, multi_target: str) -> list[np.ndarray]:
    """Positions of the targets that share kernel weights; `targets` are (m,) or (m, q)."""
    every = np.arange(1 if targets.ndim == 1 else targets.shape[1])
    return [every] if multi_target == "shared" else np.split(every, len(every))


def learn_ridge(
    rows: TrainingRows,
    kernels: TrainingKernels,
    normalize: str | None,
    groups: Sequence[np.ndarray],
    learnings: Sequence[WeightLearning],
    regs: Sequence[float],
    task: FitTask,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights of every group of targets, and their regressions."""
    transform = kernels.preparation(normalize)
    samples = kernels.targeted(rows)
    problem = RidgeProblem.of(samples, transform)
    kernels.warn_of_constants(transform)
    targets, names = problem.targets, problem.stack.names
    losses = problem.losses(regs, groups)
    learnt = solve_each(learnings, losses, names, task)
    evaluations: list[Any] = [solution.evaluation for solution in learnt.solutions]
    residuals = np.abs(np.hstack([one.residuals for one in evaluations])).sum(axis=0)
    learnt = learnt.with_rounding(targets.rounding(residuals))
    learnt.warn_unless_converged()
    dual_coef = targets.units * np.hstack([one.coefficients for one in evaluations])
    left_out = np.hstack(
        [
            _left_out(evaluation, learning.domain, rows.groups)
            for evaluation, learning in zip(evaluations, learnings, strict=True)
        ]
    )
    predictions = targets.restored(left_out)
    weights = learnt.weights if len(groups) > 1 else learnt.weights[0]
    expansion = KernelExpansion.of(kernels.source, transform, problem.stack, weights, dual_coef)
    single = rows.targets.ndim == 1
    return {
        **rows.attributes,
        **kernels.source.attributes,
        **learnt.attributes,
        "dual_coef_": dual_coef[:, 0] if single else dual_coef,
        "intercept_": targets.means,
        "left_out_predictions_": predictions[:, 0] if single else predictions,
        "_expansion": expansion,
    }


def _left_out(evaluation: Any, domain: Domain, groups: np.ndarray) -> np.ndarray:
    """Outputs of every sample by the regression of the others, (m, n_targets)."""
    if len(evaluation.residuals) == 1:
        return np.full(evaluation.residuals.shape, np.nan)
    response = weight_response(evaluation, domain)
    outputs: np.ndarray = evaluation.leave_one_out(groups, response=response)
    return outputs
