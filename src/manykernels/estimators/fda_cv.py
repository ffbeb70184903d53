"""MKFDACV: norm and regularisation chosen by cross-validation, along one path of solutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed

from .._scoring import Judged, score_of
from .._sklearn import StrOptions
from ..discriminant import LabelledKernels
from ..discriminant.decision import checked_priors
from ..discriminant.held_out import HeldOut, HeldOutScores, Test, held_out_scores
from ..kernels import Bands, Denoise
from ..scale import Approximation
from ._approximated import (
    DISCRIMINANT_ON_FEATURES,
    ApproximationParameters,
    ClassifierOfStreams,
    LearnsFromMoments,
    refuse_with_features,
)
from ._base import CLASS_WEIGHT, KernelEstimator, estimator, fits
from ._choice import Choice, ChoiceParameters, ChosenWeights, refuse_single_split
from ._feature_rows import FeatureRows
from ._features_cv import held_out_on_features
from ._gathering import Gathering
from ._grid import Grid, checked_norms, checked_regs
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._multilabel import LabelwiseAnswers, fit_labels, is_multilabel
from ._on_features import judged_samples, learn_discriminant_on_features
from ._outputs import DiscriminantTransformer, KernelClassifier, Probabilities
from ._progress import FitTask
from ._rows import discriminant_rows
from ._splits import LabelSplits, left_out_attributes
from .fda import fisher_preparation, learn_discriminant


@estimator
class MKFDACV(
    ClassifierOfStreams,
    LearnsFromMoments,
    ApproximationParameters,
    LabelwiseAnswers,
    DiscriminantTransformer,
    Probabilities,
    KernelClassifier,
    ChoiceParameters,
    ChosenWeights,
    KernelEstimator,
):
    """Multiple kernel Fisher discriminant analysis with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are scored on samples that neither the kernel weights nor the
    discriminant nor its decision rule have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 4/3, 2 and ∞. The twelve of Yan et al. (2012) are
        ``manykernels.solvers.PAPER_NORMS``.
    regs : array-like of float, optional
        λ to try; by default eight from 1e-4 to 1e3.
    cv : None, int, splitter, iterable of splits, (X_val, y_val) or "closed-form", default=None
        A number of folds, by default five: shuffled with a fixed seed, with the classes in equal
        parts. Rows that repeat others stay together, and a class of a single sample is in no test
        part. "closed-form"
        leaves out fifty such folds in turn without refitting; the change of the kernel weights
        is taken to first order. Models then learn from all but a fiftieth of the samples, and no
        copies of kernels are made. A pair is a validation set.
    denoise : Denoise, Bands or None, default=None
        As for :class:`MKFDA`, learnt again in every fold.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.

    Attributes
    ----------
    p_, reg_ : float, or ndarray of shape (n_labels,)
        The point of the grid with the best score; of equal ones, with the smallest log loss. See
        `one_standard_error`.
    estimators_ : list of MKFDACV
        With several labels per sample only: one per label, all on the same kernels.
    cv_rule_ : str
        The rule by which all points were judged, "indicator" or "discriminant": the better one
        at the largest p, by the log loss of held-out samples. The final fit chooses for itself,
        see `rule_`.
    denoise_ : Denoise, Bands or None
        Fitted on the training kernels, such as `denoise_.n_components_`.
    left_out_log_proba_ : ndarray of shape (n_samples, n_classes)
        Logarithms of the class probabilities of each training row by the model without its fold,
        at the p and λ that are best in the other folds: what `left_out_score_` is the score of.
        NaN in rows that no split tests. If `cv` is a validation set, as for :class:`MKFDA`. Like
        `dual_coef_` it has no entries for rows of weight zero.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold.

    In every fold the scales of the kernels, their weights, the discriminant and, if it has to be
    learnt, the rule come from the training part. (With ``cv="closed-form"`` scales and `denoise`
    are those of all samples.) Two numbers, which all splits of a point share, turn class scores
    into probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDACV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKFDACV(ps=[1, 2], regs=[0.1, 1, 10]).fit(X, y)
    >>> model.validation_curve().shape
    (2, 3)
    >>> model.best_score_ > 0.9
    True
    """

    ps: Any = None
    regs: Any = None
    denoise: Any = None
    class_weight: Any = None
    tol: float = 1e-5

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "cv": ["cv_object", tuple, StrOptions({"closed-form"}), None],
        "denoise": [Denoise, Bands, None],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            With several labels per sample every label is a problem of its own, with its own
            p, λ and weights, on the same kernels.
        """
        if (approximation := self._approximation_for(X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        if is_multilabel(y):
            return fit_labels(self, X, y, sample_weight)
        ps, regs = checked_norms(self.ps), checked_regs(self.regs)
        grid = Grid({"p": ps, "reg": regs})
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight)
        kernels = TrainingKernels.of(rows, rows.weights)
        samples = kernels.labelled(rows)
        priors = checked_priors(self.priors, samples)
        divided = LabelSplits(self, rows, kernels.source, samples).of(y)
        refuse_single_split(self, len(divided))
        splits = [split.parts() for split in divided]
        rules = ("indicator", "discriminant") if len(samples.classes) > 2 else ("indicator",)
        task = FitTask.begin(self, X, y, len(splits) * len(rules) + 1)
        if len(rules) > 1:
            # The better rule at the largest p is used at every p.
            largest = ps.max(keepdims=True)
            judged = self._held_out(
                kernels, samples, splits, largest, regs, rules, task, "rules, "
            )
            rules = (judged.better_rule(),)
        held_out = self._held_out(kernels, samples, splits, ps, regs, rules, task)
        (rule,) = rules
        choice = self._chosen(grid, held_out, rule)
        p, reg = choice.params["p"], choice.params["reg"]
        learning = WeightLearning.at(self, p)
        transform, denoise = fisher_preparation(kernels, self.normalize, self.denoise)
        final = task.subtask("final fit", learning.max_iter + 1)
        fitted = learn_discriminant(
            kernels, samples, transform, priors, learning, final, lambda problem: problem.loss(reg)
        )
        final.end()
        tested = [split.tested for split in divided]
        left_out = self._left_out(held_out, rule, choice, tested, samples)
        found = {**fitted, **choice.attributes, **left_out, "cv_rule_": rule, "denoise_": denoise}
        return self._keep(task, rows.attributes, found)

    def _left_out(
        self,
        held_out: HeldOut,
        rule: str,
        choice: Choice,
        tested: Sequence[np.ndarray | None],
        samples: LabelledKernels,
    ) -> dict[str, Any]:
        """Fitted attributes: what was said of held-out rows, and its score."""
        logs = [held_out.log_probabilities(rule, *at)[k] for k, at in enumerate(choice.positions)]
        classes, counts = samples.classes, samples.counts

        def score(logs: np.ndarray, rows: np.ndarray) -> float:
            weights = None if counts is None else counts[rows]
            answers = Judged(classes, logs), classes[samples.labels[rows]], weights
            return score_of(answers, check_scoring(self, scoring=self.scoring))

        return {
            "left_out_score_": choice.attributes["best_score_"],
            **left_out_attributes("left_out_log_proba_", tested, logs, len(samples.labels), score),
        }

    def _held_out(
        self,
        kernels: TrainingKernels,
        samples: LabelledKernels,
        splits: list[tuple[LabelledKernels, Test]],
        ps: np.ndarray,
        regs: np.ndarray,
        rules: tuple[str, ...],
        task: FitTask,
        purpose: str = "",
    ) -> HeldOut:
        """Class scores of the test samples of all splits, by each rule at each p and λ."""
        n_splits, size = len(splits), len(ps) * len(regs)
        # The kernels of a single split are not copied to another process.
        parallel = Parallel(n_jobs=None if n_splits == 1 else self.n_jobs)
        scores = parallel(
            delayed(_scores_of_split)(
                train,
                test,
                fisher_preparation(kernels, self.normalize, self.denoise)[0],
                ps,
                regs,
                rules,
                self.tol,
                task.part(f"{purpose}split {k + 1}/{n_splits}", size),
            )
            for k, (train, test) in enumerate(splits)
        )
        tests = [
            test if isinstance(test, LabelledKernels) else samples.of(np.concatenate(test))
            for _, test in splits
        ]
        given = None if self.priors is None else np.asarray(self.priors, dtype=float)
        return HeldOut(scores, tests, samples.frequencies, given)

    def _gathering(self, approximation: Approximation) -> Gathering:
        refuse_with_features(self, **DISCRIMINANT_ON_FEATURES)
        return Gathering(self, approximation, True, self.class_weight, self.cv)

    def _learn_on_features(self, rows: FeatureRows, X: Any, y: Any) -> tuple[FitTask, Any]:
        ps, regs = checked_norms(self.ps), checked_regs(self.regs)
        n_classes, n_splits = rows.targets.width, rows.plan.n_splits
        rules = ("indicator", "discriminant") if n_classes > 2 else ("indicator",)
        refuse_single_split(self, n_splits)
        task = FitTask.begin(self, X, y, n_splits * len(rules) + 1)
        held_out = partial(
            held_out_on_features,
            rows,
            self.normalize,
            regs=regs,
            priors=self.priors,
            tol=self.tol,
            task=task,
        )
        if len(rules) > 1:
            judged = held_out(ps.max(keepdims=True), rules=rules, purpose="rules, ")
            rules = (judged.better_rule(),)
        found = held_out(ps, rules=rules)
        choice = self._chosen(Grid({"p": ps, "reg": regs}), found, rules[0])
        p, reg = choice.params["p"], choice.params["reg"]
        learning = WeightLearning.at(self, p)
        final = task.subtask("final fit", learning.max_iter + 1)
        fitted = learn_discriminant_on_features(
            rows, self.normalize, reg, self.priors, learning, final
        )
        final.end()
        left_out = self._left_out(
            found,
            rules[0],
            choice,
            [rows.plan.tested(rows.sample.rows, k) for k in range(n_splits)],
            judged_samples(rows, rows.moments.total.target_sums()),
        )
        chosen = {**choice.attributes, "cv_rule_": rules[0], "denoise_": None}
        return task, {**fitted, **left_out, **chosen}

    def _chosen(self, grid: Grid, held_out: HeldOut, rule: str) -> Choice:
        """The point with the best score of held-out samples."""
        scores = held_out.judged_by(check_scoring(self, scoring=self.scoring), rule)
        return Choice.of(
            self, grid, scores, held_out.records, lambda at: held_out.mean_log_loss(rule, *at)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.approximation is None
        return tags

    def validation_curve(self) -> np.ndarray:
        """Mean scores of the grid, one row per p and one column per λ, (n_ps, n_regs).

        With several labels, those of every label, (n_labels, n_ps, n_regs).
        """
        if hasattr(self, "estimators_"):
            return np.array([model.validation_curve() for model in self.estimators_])
        return super().validation_curve()


def _scores_of_split(train: LabelledKernels, test: Test, *options: Any) -> HeldOutScores:
    """Held-out scores of one split, whose task is the last of the options."""
    scores = held_out_scores(train, test, *options)
    task: FitTask = options[-1]
    task.end()
    return scores
