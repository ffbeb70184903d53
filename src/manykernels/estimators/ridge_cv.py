"""MKRidgeCV: norm and regularisation of a ridge regression, chosen along a path of solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._sklearn import StrOptions
from ..domains import lp_domain
from ..kernels import KernelStack
from ..kernels.completion import preparation_with
from ..kernels.transforms import Chain
from ..scale import Approximation
from ..solvers import GridPoint, walk_grid
from ..solvers.response import weight_response
from ._approximated import (
    ApproximationParameters,
    LearnsFromMoments,
    RegressorOfStreams,
    refuse_with_features,
)
from ._base import KernelEstimator, estimator, fits
from ._choice import Choice, ChoiceParameters, ChosenWeights, refuse_single_split
from ._feature_rows import FeatureRows
from ._features_cv import held_out_values_on_features
from ._gathering import Gathering
from ._grid import Grid, checked_norms, checked_regs
from ._held_out import HeldOutValues, SplitOutputs, TargetedKernels
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._on_features import learn_ridge_on_features
from ._outputs import TargetRegressor
from ._progress import FitTask
from ._ridge import RidgeProblem, groups_of, learn_ridge
from ._rows import ridge_rows
from ._search import left_out_values
from ._splits import Split, ValueSplits


@estimator
class MKRidgeCV(
    RegressorOfStreams,
    LearnsFromMoments,
    ApproximationParameters,
    ChoiceParameters,
    ChosenWeights,
    TargetRegressor,
    KernelEstimator,
):
    """Multiple kernel ridge regression with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are scored on samples that neither the kernel weights nor the
    regression have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 4/3, 2 and ∞. The twelve of Yan et al. (2012) are
        ``manykernels.solvers.PAPER_NORMS``.
    regs : array-like of float, optional
        λ to try; by default eight from 1e-4 to 1e3.
    multi_target : {"shared", "separate"}, default="shared"
        Several targets have one p, one λ and one weight vector for all, or each its own.
    cv : None, int, splitter, iterable of splits, (X_val, y_val) or "closed-form", default=None
        A number of folds, by default five, shuffled with a fixed seed; rows that repeat others
        stay together.
        "closed-form" leaves out fifty such folds in turn without refitting; the change of the
        kernel weights is taken to first order. Models then learn from all but a fiftieth of the
        samples, and no copies of kernels are made. A pair is a validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is R², of several targets that
        share p and λ the mean of theirs.

    Attributes
    ----------
    p_, reg_ : float, or ndarray of shape (n_targets,)
        The point of the grid that was chosen; one for each of several targets if separate. So are
        `best_score_` and `left_out_score_`, arrays then, and `cv_results_`, a list.
    weights_ : ndarray of shape (n_kernels,), or (n_targets, n_kernels)
        Learnt kernel weights, those of the fit to all samples; a row for each of several targets
        if separate.
    left_out_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Prediction of each training row by the model without its fold, at the p and λ that are
        best in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. If `cv` is a validation set, as for :class:`MKRidge`.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. The scales of
    kernels and targets, the weights and the regression come from the training part. (With
    ``cv="closed-form"`` scales are those of all samples.)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manykernels import MKRidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MKRidgeCV(ps=[1, 2], regs=[1, 10, 100]).fit(X[:200], y[:200])
    >>> model.validation_curve().shape
    (2, 3)
    >>> bool(model.best_score_ > 0.4)
    True
    """

    ps: Any = None
    regs: Any = None
    tol: float = 1e-5

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "cv": ["cv_object", tuple, StrOptions({"closed-form"}), None],
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to be predicted.
        """
        if (approximation := self._approximation_for(X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs)})
        rows = ridge_rows(self, X, y, sample_weight)
        groups = groups_of(rows.targets, self.multi_target)
        kernels = TrainingKernels.of(rows, rows.counts)
        samples = kernels.targeted(rows)
        splits = ValueSplits(self, rows, kernels.source, samples).of(y)
        refuse_single_split(self, len(splits))
        task = FitTask.begin(self, X, y, len(splits) + 1)
        scorer = check_scoring(self, scoring=self.scoring)
        held_out = self._held_out(splits, grid, groups, task)
        choices = [
            Choice.of(self, grid, values.judged_by(scorer), values.records) for values in held_out
        ]
        learnings = [WeightLearning.at(self, choice.params["p"]) for choice in choices]
        regs = [choice.params["reg"] for choice in choices]
        final = task.subtask("final fit", sum(one.max_iter + 1 for one in learnings))
        fitted = learn_ridge(rows, kernels, self.normalize, groups, learnings, regs, final)
        final.end()
        tested = [split.tested for split in splits]
        attributes = _with_left_out(choices, held_out, tested, samples, groups, scorer)
        return self._keep(task, fitted, attributes)

    def _gathering(self, approximation: Approximation) -> Gathering:
        refuse_with_features(self)
        return Gathering(self, approximation, False, cv=self.cv)

    def _learn_on_features(self, rows: FeatureRows, X: Any, y: Any) -> tuple[FitTask, Any]:
        grid = Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs)})
        groups = groups_of(np.asarray(rows.sample.y), self.multi_target)
        refuse_single_split(self, rows.plan.n_splits)
        task = FitTask.begin(self, X, y, rows.plan.n_splits + 1)
        held_out = held_out_values_on_features(rows, self.normalize, grid, groups, self.tol, task)
        scorer = check_scoring(self, scoring=self.scoring)
        choices = [
            Choice.of(self, grid, values.judged_by(scorer), values.records) for values in held_out
        ]
        learnings = [WeightLearning.at(self, choice.params["p"]) for choice in choices]
        regs = [choice.params["reg"] for choice in choices]
        final = task.subtask("final fit", sum(one.max_iter + 1 for one in learnings))
        fitted = learn_ridge_on_features(rows, self.normalize, groups, learnings, regs, final)
        final.end()
        y = np.asarray(rows.sample.y, dtype=np.float64)
        samples = TargetedKernels(None, y, rows.counts, rows.groups)  # type: ignore[arg-type]
        tested = [rows.plan.tested(rows.sample.rows, k) for k in range(rows.plan.n_splits)]
        attributes = _with_left_out(choices, held_out, tested, samples, groups, scorer)
        return task, {**fitted, **attributes}

    def _held_out(
        self,
        splits: list[Split],
        grid: Grid,
        groups: list[np.ndarray],
        task: FitTask,
    ) -> list[HeldOutValues]:
        """Predictions of the test samples of all splits at every point, for each group."""
        n_splits = len(splits)
        # The kernels of a single split are not copied to another process.
        parallel = Parallel(n_jobs=None if n_splits == 1 else self.n_jobs)
        found = parallel(
            delayed(_values_of_split)(
                split,
                preparation_with(self.missing, self.normalize),
                grid,
                groups,
                self.tol,
                task.part(f"split {k + 1}/{n_splits}", len(groups) * grid.size),
            )
            for k, split in enumerate(splits)
        )
        tests = [split.judged for split in splits]
        if len(groups) == 1:
            return [HeldOutValues([parts[0] for parts in found], tests)]
        return [
            HeldOutValues(
                [parts[k] for parts in found],
                [replace(test, targets=test.targets[:, k]) for test in tests],
            )
            for k in range(len(groups))
        ]

    def validation_curve(self) -> np.ndarray:
        """Mean scores of the grid, one row per p and one column per λ, (n_ps, n_regs).

        Where each of several targets has its own, (n_targets, n_ps, n_regs).
        """
        check_is_fitted(self)
        if not isinstance(self.cv_results_, list):
            return super().validation_curve()
        n_ps = len(np.unique(self.cv_results_[0]["param_p"]))
        means = [table["mean_test_score"] for table in self.cv_results_]
        return np.reshape(means, (len(means), n_ps, -1))


def _with_left_out(
    choices: list[Choice],
    held_out: list[HeldOutValues],
    tested: Sequence[np.ndarray | None],
    samples: TargetedKernels,
    groups: list[np.ndarray],
    scorer: Callable[..., float],
) -> dict[str, Any]:
    """Attributes of all choices, and what was predicted for held-out rows."""
    parts = []
    for choice, values, of_group in zip(
        choices, held_out, _of_groups(samples, groups), strict=True
    ):
        left_out = left_out_values(values, choice, tested, of_group, scorer)
        score = {"left_out_score_": choice.attributes["best_score_"]}
        parts.append({**choice.attributes, **score, **left_out})
    return _of_all(parts)


def _of_groups(samples: TargetedKernels, groups: list[np.ndarray]) -> list[TargetedKernels]:
    """The samples with the targets of each group."""
    if len(groups) == 1:
        return [samples]
    return [replace(samples, targets=samples.targets[:, k]) for k in range(len(groups))]


def _of_all(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes of the only choice, or arrays and lists of those of every target."""
    first = choices[0]
    if len(choices) == 1:
        return first
    every = {name: [choice[name] for choice in choices] for name in first}
    numbers = ("p_", "reg_", "best_score_", "left_out_score_")
    arrays = {name: np.array(every[name]) for name in numbers}
    if "left_out_predictions_" in every:
        arrays["left_out_predictions_"] = np.column_stack(every["left_out_predictions_"])
        arrays["test_fold_"] = first["test_fold_"]
    return {**every, **arrays, "n_splits_": first["n_splits_"]}


def _values_of_split(
    split: Split,
    transform: Chain,
    grid: Grid,
    groups: Sequence[np.ndarray],
    tol: float,
    task: FitTask,
) -> list[SplitOutputs]:
    """Fit the models of the grid, and predict the test samples, for each group of targets.

    These are samples of their own, or a list of folds of the training samples, each of which is
    left out in closed form (:mod:`manykernels.losses.left_out`).
    """
    train, test = split.parts()
    problem = RidgeProblem.of(train, transform)
    outputs: Callable[[GridPoint], np.ndarray]
    if isinstance(test, TargetedKernels):
        outputs = partial(_outputs_of_others, block=transform.transform(test.stack))
    else:
        outputs = partial(_outputs_left_out, folds=test, ps=grid.values["p"])
    # Targets that are learnt one by one are judged one by one, as lists of numbers.
    width = () if len(groups) > 1 else train.targets.shape[1:]
    shape = (len(test) if isinstance(test, TargetedKernels) else sum(map(len, test)), *width)
    found = [_walk(problem, group, grid, shape, outputs, tol, task) for group in groups]
    task.end()
    return found


def _outputs_of_others(point: GridPoint, block: KernelStack) -> np.ndarray:
    """Outputs of samples that have no part in training, given their kernels with it."""
    return block.apply_combined(point.evaluation.weights, point.evaluation.coefficients)


def _outputs_left_out(point: GridPoint, folds: list[np.ndarray], ps: np.ndarray) -> np.ndarray:
    """Outputs of training samples by models without their fold, fold after fold."""
    response = weight_response(point.evaluation, lp_domain(float(ps[point.norm_index])))
    return np.vstack(point.evaluation.leave_folds_out(folds, response))


def _walk(
    problem: RidgeProblem,
    group: np.ndarray,
    grid: Grid,
    shape: tuple[int, ...],
    outputs: Callable[[GridPoint], np.ndarray],
    tol: float,
    task: FitTask,
) -> SplitOutputs:
    """Predictions of one group of targets at every point of the grid."""
    found = SplitOutputs.unsolved(grid.shape, shape)
    which = {} if len(group) == len(problem.targets.means) else {"target": float(group[0])}

    def visit(point: GridPoint) -> bool:
        at = point.norm_index, point.reg_index
        values = problem.targets.restored(outputs(point), group).reshape(shape)
        params = {**which, **grid.at(at)}
        return task(found.note(at, params, values, point.certificate, point.n_inner_solves))

    ps, regs = grid.values.values()
    failures = walk_grid(partial(problem.loss, group=group), ps, regs, visit, tol=tol)
    found.record.failures.extend(failures)
    return found
