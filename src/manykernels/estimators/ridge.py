"""MKRidge: ℓp-norm multiple kernel ridge regression of one target or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..domains import lp_domain
from ..kernels import KernelStack
from ..kernels.completion import preparation_with
from ..kernels.transforms import Chain
from ..losses.base import ProblemSpec
from ..losses.square import SquareLoss
from ..scale.features import Approximation
from ..solvers.path import GridPoint, walk_grid, weight_response
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import POSITIVE, FitTask, estimator, fits
from .feature_data import (
    ApproximationParameters,
    FeatureRows,
    Gathering,
    MomentAttributes,
    approximation_for,
    feature_learning,
    fit_on_features,
    partial_fit_values,
    refuse_with_features,
)
from .inputs import ridge_rows
from .kernel_data import (
    HeldOutValues,
    RidgeProblem,
    SplitOutputs,
    TargetedKernels,
    TrainingKernels,
    WeightLearning,
    WeightParameters,
    groups_of,
    learn_ridge,
)
from .on_features import held_out_values_on_features, learn_ridge_on_features
from .prediction import TargetRegressor
from .search import (
    Choice,
    ChoiceParameters,
    ChosenWeights,
    Grid,
    Split,
    ValueSplits,
    checked_norms,
    checked_regs,
    left_out_values,
    refuse_single_split,
    validation_curve,
)


@storable
@estimator(MomentAttributes, ApproximationParameters, WeightParameters)
class MKRidge(TargetRegressor):
    """ℓp-norm multiple kernel ridge regression.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with a ridge regression on the
    weighted sum, and proves how close to the best weights it got. With one kernel and
    ``normalize=None`` it is scikit-learn's ``KernelRidge(alpha=reg)`` with an intercept.

    Parameters
    ----------
    reg : float, default=1.0
        λ > 0 of ``Σ_i ‖y_i − f(x_i)‖² + λ‖f‖²``, acting on the kernels after centring and
        `normalize`. Errors are summed over the samples, not averaged.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Those of the papers: "sip" and "silp" (cutting planes),
        "analytic" (closed-form updates), "dual" (L-BFGS, p > 1), "reduced-gradient" (SimpleMKL,
        p = 1), "coordinate" (kernels computed column by column, for samples that are too many for
        a matrix), "qcqp", "sdp" and "sdp-approx" (convex programs, p = 1).
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_targets, n_kernels)
        Learnt kernel weights, of the normalised kernels; a row for each of several targets if
        separate. The certificate is that of the sum over targets.
    left_out_predictions_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        What is predicted for each training row if it is left out; see the notes. Like `dual_coef_`
        it has no entries for rows of weight zero.

    Notes
    -----
    Targets are divided by their standard deviations before anything is learnt. Where several
    share their weights, each counts alike, whatever its unit; predictions and coefficients are in
    units of y. The objective of `certificate_` and `history_` is the sum of squares above over
    the variance, so that a sample has a share of one at most from every target.

    `left_out_predictions_` come from one factorisation, without refitting. They are exact for
    given kernel weights; that the weights change without the row is taken to first order, and
    those that are zero to stay zero: where p = 1 and a large λ leave one or two of many kernels,
    left-out predictions are a little too good. Kernel widths, scales of kernels and standard
    deviations of targets are always those of all rows. A row of weight two stands for two, one
    of which is left out. (With solver="coordinate" and more than a few thousand rows, there is no
    factorisation: the weights are held, and the influence of a row on its own prediction is taken
    to be the mean of all, as in generalised cross-validation.)

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh. L2 regularization for learning kernels. UAI 2009.
    M. Kloft et al. ℓp-norm multiple kernel learning. JMLR 12, 2011.

    Examples
    --------
    Two targets that share the kernels of three columns:

    >>> import numpy as np
    >>> from manykernels import MKRidge
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 3))
    >>> y = np.column_stack([np.sin(2 * X[:, 0]), 1000 * np.cos(X[:, 1])])
    >>> y += rng.normal(scale=[0.1, 100.0], size=y.shape)
    >>> kernels = {"first": RBF(1.0).on([0]), "second": RBF(1.0).on([1]), "third": RBF().on([2])}
    >>> model = MKRidge(kernels, p=1).fit(X, y)
    >>> dict(zip(model.kernel_names_, model.weights_.round(2).tolist()))
    {'first': 0.54, 'second': 0.46, 'third': 0.0}
    >>> model = MKRidge(kernels, p=1, multi_target="separate").fit(X, y)
    >>> model.weights_.round(1)
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """

    reg: float = 1.0
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reg": POSITIVE}

    partial_fit = partial_fit_values

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the regression.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to be predicted.
        """
        if (approximation := approximation_for(self, X)) is not None:
            return fit_on_features(self, approximation, X, y, sample_weight)
        learning = WeightLearning.of(self)
        rows = ridge_rows(self, X, y, sample_weight)
        groups = groups_of(rows.targets, self.multi_target)
        spec = ProblemSpec(SquareLoss, len(rows), rows.data.n_kernels, len(groups[0]))
        rows = learning.place_kernels(rows, spec)
        task = FitTask.begin(self, X, y, len(groups) * (learning.max_iter + 1))
        kernels = TrainingKernels.of(rows, rows.counts, solver=learning.solver)
        learnings, regs = [learning] * len(groups), [float(self.reg)] * len(groups)
        fitted = learn_ridge(rows, kernels, self.normalize, groups, learnings, regs, task)
        return self._keep(task, fitted)

    def _gathering(self, approximation: Approximation) -> Gathering:
        refuse_with_features(self)
        feature_learning(WeightLearning.of(self))
        return Gathering(self, approximation, False)

    def _learn_on_features(self, rows: FeatureRows, X: Any, y: Any) -> tuple[FitTask, Any]:
        learning = WeightLearning.of(self)
        groups = groups_of(np.asarray(rows.sample.y), self.multi_target)
        task = FitTask.begin(self, X, y, len(groups) * (learning.max_iter + 1))
        learnings, regs = [learning] * len(groups), [float(self.reg)] * len(groups)
        return task, learn_ridge_on_features(rows, self.normalize, groups, learnings, regs, task)


# -- MKRidgeCV: norm and regularisation of a ridge regression, chosen along a path of solutions ---


@storable
@estimator(MomentAttributes, ApproximationParameters, ChoiceParameters, ChosenWeights)
class MKRidgeCV(TargetRegressor):
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

    partial_fit = partial_fit_values

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to be predicted.
        """
        if (approximation := approximation_for(self, X)) is not None:
            return fit_on_features(self, approximation, X, y, sample_weight)
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
            return validation_curve(self)
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
