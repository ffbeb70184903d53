"""The training contract: a task, training data, and the driver that fits an estimator.

A :class:`Task` says what is predicted. It reads the targets, makes the losses of a point of a
grid, and turns their solutions into fitted attributes. The training data are prepared kernels
(:class:`~.kernel_data.KernelData`, :class:`~.svm.MachineKernels`) or moments of explicit features
(:class:`~.on_features.FeatureData`). :func:`fit_model` is the ``fit`` of every estimator with
one weight per kernel; with a grid, cross-validation chooses a point of it first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if

from ..discriminant import Samples
from ..domains import Domain
from ..kernels.completion import preparation_with
from ..kernels.tables import Table
from ..kernels.transforms import Chain
from ..losses.base import Loss, ProblemSpec
from ..losses.features import FeatureLoss
from ..scale.features import Approximation
from ..scale.rows import refuse_no_rows
from .base import FitTask, KernelEstimator
from .feature_data import (
    BY_NAME,
    FeatureRows,
    FeatureStream,
    Gathering,
    announce_long_fit,
    approximation_for,
)
from .grid import Grid, checked_kernel_sets
from .inputs import matched_by_label
from .kernel_data import KernelData, KernelPart, TrainingKernels
from .on_features import FeatureData, FeatureSearch
from .search import Search, Split, refuse_single_split
from .training_rows import TrainingRows
from .weights import Learnt, WeightLearning, solve_each

#: Parameters of one loss: a point of a grid, or empty for those of the task.
Point = Mapping[str, Any]


class Task(ABC):
    """A prediction task: its targets, losses and fitted attributes."""

    normalize: str | None

    @abstractmethod
    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        """Read and check X, y, the sample weights and the groups."""

    @abstractmethod
    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        """Return the kind and the sizes of one loss, before kernels are computed."""

    def n_losses(self, targets: Any) -> int:
        """Return the number of losses, each with kernel weights of its own."""
        return 1

    def kernels(self, rows: TrainingRows, solver: Any = None) -> TrainingKernels:
        """Compute or check the kernels of the training rows."""
        weights = rows.weights
        if weights is not None and weights.ndim == 2:
            weights = rows.counts  # every label has weights of its own
        return TrainingKernels.of(rows, weights, solver=solver, targets=rows.kernel_targets)

    def preparation(self, missing: str) -> Chain:
        """Return the transform of training kernels, not yet fitted."""
        return preparation_with(missing, self.normalize)

    def prepare(self, kernels: TrainingKernels, rows: TrainingRows) -> Any:
        """Return the training data: kernels completed, centred and normalised."""
        transform, source = self.preparation(kernels.missing), kernels.source
        attributes = {**rows.attributes, **source.attributes}
        data = KernelData.of(kernels.samples(rows), transform, source, **attributes)
        kernels.warn_of_constants(transform)
        return data

    @abstractmethod
    def losses(self, data: Any, points: Sequence[Point]) -> list[Loss]:
        """Return the losses, one for each point."""

    def rounded(self, data: Any, learnt: Learnt) -> Learnt:
        """Add rounding errors of predictions that the losses do not know."""
        return learnt

    @abstractmethod
    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        """Return the fitted attributes of the solutions.

        Weights respond to left-out samples within their domain; without one they are held.
        """

    def refuse_with_features(self, estimator: KernelEstimator) -> None:
        """Raise if a parameter of the estimator does not go with explicit features."""
        raise TypeError(f"{type(self).__name__} does not learn from explicit features.")

    def n_passes(self, n_classes: int) -> int:
        """Return how often the models of every split are solved."""
        return 1

    def search(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        rows: TrainingRows,
        kernels: TrainingKernels,
    ) -> Search:
        """Divide the rows for cross-validation, and begin the task of the fit."""
        return Search.of(estimator, X, y, rows, kernels, kernels.samples(rows))

    def part(self, split: Split, missing: str) -> KernelPart:
        """Return the prepared kernels of a split."""
        train, test = split.parts()
        data = KernelData.of(train, self.preparation(missing))
        return KernelPart.of(data, test)

    def choose(self, search: Any, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        """Return the best point of the grid for every loss, and fitted attributes."""
        raise TypeError(f"{type(self).__name__} has no parameters to choose.")


def fit_model(
    estimator: KernelEstimator,
    task: Task,
    X: Table,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    grid: Grid | Callable[[TrainingRows], Grid] | None = None,
) -> Any:
    """Fit an estimator; with a grid, choose one of its points first.

    The grid may be a function of the training rows. With an `approximation`, moments of explicit
    features take the place of kernels. Rows of one of the `groups` are left out together. Fitted
    attributes are set at the end.
    """
    if (approximation := approximation_for(estimator, X)) is not None:
        refuse_labels_with_features(estimator, y)
        gathering = _gathering(estimator, task, approximation, grid is not None)
        moments = gathering.gather(X, y, sample_weight, groups)
        return _fit_moments(estimator, task, moments, X, y, grid)
    rows = task.rows(estimator, X, y, sample_weight, groups)
    if grid is None:
        learning = WeightLearning.of(estimator)
        rows = learning.place_kernels(rows, task.spec(rows, rows.data.n_kernels))
        if not rows.on_demand:
            announce_long_fit(estimator, len(rows), rows.data.n_kernels)
        n_losses = task.n_losses(rows.targets)
        progress = FitTask.begin(estimator, X, y, n_losses * (learning.max_iter + 1))
        data = task.prepare(task.kernels(rows, learning.solver), rows)
        fitted = learn(task, data, [learning] * n_losses, [{}] * n_losses, progress)
        return estimator._keep(progress, fitted)
    grid = grid if isinstance(grid, Grid) else grid(rows)
    announce_long_fit(estimator, len(rows), rows.data.n_kernels, grid.size)
    kernels = task.kernels(rows)
    if kernel_sets := checked_kernel_sets(estimator.kernel_sets, kernels.source.names):
        refuse_separate_sets(task, rows)
        kernels.refuse_lacking(kernel_sets)
        grid = grid.with_sets(kernel_sets)
    search = task.search(estimator, X, y, rows, kernels)
    points, attributes = task.choose(search, grid)
    if kernel_sets:
        kernels = kernels.select(kernel_sets[points[0]["kernel_set"]])
    data = task.prepare(kernels, rows)
    fitted = learn_at(estimator, task, data, points, search.task)
    return estimator._keep(search.task, fitted, attributes)


def refuse_separate_sets(task: Task, rows: TrainingRows) -> None:
    """Raise if several targets or labels would choose a set of kernels each."""
    targets, name = rows.targets, "multi_target"
    if rows.classes is not None:
        targets, name = rows.labels, "multi_label"
    if np.ndim(targets) == 2 and task.n_losses(targets) > 1:
        raise ValueError(
            f'kernel_sets does not go with {name}="separate": each of {targets.shape[1]} columns '
            f'of y would choose a set of its own, and a model has one. Pass {name}="shared", or '
            "one column of y at a time."
        )


def learn_at(
    estimator: KernelEstimator, task: Task, data: Any, points: Sequence[Point], progress: FitTask
) -> dict[str, Any]:
    """Learn at chosen points, as the last part of a search; return the fitted attributes."""
    learnings = [WeightLearning.at(estimator, point["p"]) for point in points]
    final = progress.subtask("final fit", sum(learning.max_iter + 1 for learning in learnings))
    fitted = learn(task, data, learnings, points, final)
    final.end()
    return fitted


def learn(
    task: Task,
    data: Any,
    learnings: Sequence[WeightLearning],
    points: Sequence[Point],
    progress: FitTask,
) -> dict[str, Any]:
    """Learn kernel weights and models; return the fitted attributes."""
    losses = task.losses(data, points)
    learnings = [learning.by_region(data.n_regions) for learning in learnings]
    learnt = task.rounded(data, solve_each(learnings, losses, data.names, progress))
    learnt.warn_unless_converged()
    domains = [learning.response for learning in learnings]
    return {**learnt.attributes, **task.fitted(data, learnt, domains)}


def target_groups(n_targets: int, multi_target: str) -> list[np.ndarray]:
    """Return the positions of the targets that share kernel weights."""
    every = np.arange(n_targets)
    return [every] if multi_target == "shared" else np.split(every, n_targets)


def share_workspace(losses: list[Any]) -> list[Any]:
    """Return losses of the same samples, all of which use the arrays of the first.

    An evaluation whose arrays were overwritten by another loss computes them again.
    """
    for loss in losses[1:]:
        loss.workspace = losses[0].workspace
    return losses


def by_labels(whole: Any, samples: Samples, multi_label: str) -> list[list[Any]]:
    """Return training data, or parts of splits, of each label; with common weights together.

    Without several labels of each of the `samples`, there is only the `whole`.
    """
    if samples.n_labels is None:
        return [[whole]]
    groups = target_groups(samples.n_labels, multi_label)
    return [[whole.label(int(k)) for k in group] for group in groups]


# -- Explicit features: all rows at once, or added by ``partial_fit`` -----------------------------


def refuse_labels_with_features(estimator: KernelEstimator, y: ArrayLike | None) -> None:
    """Raise if y has several labels per sample, for an estimator with an `approximation`."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if hasattr(estimator, "multi_label") and len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, and several labels per sample do not go with "
            f"approximation={estimator.approximation!r}: pass approximation=None, or one column "
            "of y at a time."
        )


def _gathering(
    estimator: KernelEstimator, task: Any, approximation: Approximation, with_splits: bool
) -> Gathering:
    """Return what collects the moments of the rows, after checks of the parameters."""
    task.refuse_with_features(estimator)
    if not with_splits:
        # What the solver asks of sizes is about matrices of samples, of which there are none.
        WeightLearning.of(estimator).refuse_unfit(ProblemSpec(FeatureLoss, 1, 2, 1))
    cv = estimator.cv if with_splits else 0
    return Gathering(estimator, approximation, task.classifies, task.class_weight, cv)


def _fit_moments(
    estimator: KernelEstimator,
    task: Task,
    rows: FeatureRows,
    X: Table,
    y: ArrayLike | None,
    grid: Any,
) -> Any:
    """Fit an estimator to the moments of explicit features."""
    if grid is None:
        data, learning = FeatureData.of(rows, estimator.normalize), WeightLearning.of(estimator)
        n_losses = task.n_losses(data.samples.targets)
        progress = FitTask.begin(estimator, X, y, n_losses * (learning.max_iter + 1))
        fitted = learn(task, data, [learning] * n_losses, [{}] * n_losses, progress)
        return estimator._keep(progress, fitted, _stream=rows.stream)
    n_splits = rows.plan.n_splits
    refuse_single_split(estimator, n_splits)
    n_passes = task.n_passes(rows.targets.width)
    progress = FitTask.begin(estimator, X, y, n_splits * n_passes + 1)
    points, attributes = task.choose(FeatureSearch(estimator, rows, progress), grid)
    data = FeatureData.of(rows, estimator.normalize)
    fitted = learn_at(estimator, task, data, points, progress)
    return estimator._keep(progress, fitted, attributes, _stream=rows.stream)


def _takes_more(estimator: KernelEstimator) -> bool:
    """Whether an estimator has ``partial_fit``: there is none on kernel matrices."""
    given = estimator.approximation
    return isinstance(given, Approximation) or (isinstance(given, str) and given in BY_NAME)


def _add_rows(
    estimator: Any,
    X: Table,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: Any = None,
) -> Any:
    """Learn from more rows, and from all of those before; an error changes nothing."""
    estimator._validate_params()
    X, y, sample_weight, _ = matched_by_label(estimator, X, y, sample_weight)
    task, grid = estimator._task, estimator._grid
    approximation = approximation_for(estimator, X)
    assert approximation is not None
    gathering = _gathering(estimator, task, approximation, grid is not None)
    stream = vars(estimator).get("_stream")
    if gathering.class_weight == "balanced":
        raise ValueError(
            'class_weight="balanced" needs the number of samples of every class before the '
            "first of them is used, which partial_fit cannot tell: pass a dict, or fit all "
            "rows at once."
        )
    if stream is None and "_predictor" in vars(estimator):
        raise ValueError(
            f"This {type(estimator).__name__} has no moments of the rows that it has learnt from, "
            "because it was loaded from a file, or fitted with other parameters: more rows "
            "cannot be added. Fit a clone, or keep the model in memory (or pickle it)."
        )
    if stream is not None:
        if hasattr(estimator, "groups_"):
            raise ValueError(
                "The rows so far were fitted in groups, and partial_fit takes none: more rows "
                "could belong to the same groups. Fit all rows at once, with their groups."
            )
        stream.refuse_other_parameters(estimator)
        stream = stream.copy()
        if classes is not None and not np.array_equal(classes, stream.known_classes):
            raise ValueError(
                f"classes={list(classes)} are not those of the calls before, "
                f"{list(stream.known_classes)}: fit a new model."
            )
    for block in gathering.blocks(X, y, sample_weight):
        if stream is None:
            stream = FeatureStream.begun(gathering, block, classes)
        stream.add(replace(block, X=stream.read(block.X)))
    if stream is None:
        refuse_no_rows()
    rows = stream.rows()
    if gathering.classifies and rows.targets.width < 2:
        vars(estimator)["_stream"] = stream  # there is nothing to tell apart yet
        return estimator
    return _fit_moments(estimator, task, rows, X, y, grid)


# ``partial_fit`` of classifiers and of regressors, as methods: estimators assign them.


@available_if(_takes_more)
@with_callbacks
def partial_fit_classes(
    self: Any, X: Table, y: ArrayLike, classes: Any = None, sample_weight: ArrayLike | None = None
) -> Any:
    """Learn from more rows, added to those of all calls before.

    Widths of kernels, landmarks and frequencies are learnt from the rows of the first call.
    Every call solves for the kernel weights, which takes as long for few rows as for many.
    Classes that have not come yet are not predicted: `classes_` has the others. With rows of
    a single class these are kept, and the model is fitted when another one comes.

    Parameters
    ----------
    X : table, dict of tables, Views, or collection of dask
    y : array-like of shape (n_samples,)
    classes : array-like of shape (n_classes,), optional
        All classes; needed in the first call.
    sample_weight : array-like of shape (n_samples,), optional
        Rows of calls without weights count once.
    """
    if classes is None and not {"_predictor", "_stream"} & vars(self).keys():
        raise ValueError("classes must be passed on the first call to partial_fit.")
    classes = None if classes is None else np.unique(classes)
    return _add_rows(self, X, y, sample_weight, classes)


@available_if(_takes_more)
@with_callbacks
def partial_fit_values(
    self: Any, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Any:
    """Learn from more rows, added to those of all calls before.

    Widths of kernels, landmarks and frequencies are learnt from the rows of the first call.
    Every call solves for the kernel weights, which takes as long for few rows as for many.

    Parameters
    ----------
    X : table, dict of tables, Views, or collection of dask
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    sample_weight : array-like of shape (n_samples,), optional
        Rows of calls without weights count once.
    """
    return _add_rows(self, X, y, sample_weight)
