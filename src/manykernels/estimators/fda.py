"""MKFDA: ℓp-norm multiple kernel Fisher discriminant analysis, binary and multiclass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from ..discriminant.decision import (
    Decision,
    HeldOut,
    HeldOutScores,
    Regression,
    Test,
    checked_priors,
    fisher_regression,
    held_out_scores,
)
from ..discriminant.problem import FisherProblem, LabelledKernels
from ..domains import Domain
from ..kernels import Bands, Denoise
from ..kernels.transforms import Center, Chain
from ..losses.base import ProblemSpec
from ..losses.square import JointSquareLoss, SquareLoss
from ..scale.features import Approximation
from ..utils.folds import KnownProbabilities, score_of
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, estimator, fits
from .feature_data import (
    DISCRIMINANT_ON_FEATURES,
    ApproximationParameters,
    FeatureRows,
    Gathering,
    MomentAttributes,
    approximation_for,
    feature_learning,
    fit_on_features,
    partial_fit_classes,
    refuse_joint,
    refuse_with_features,
)
from .inputs import discriminant_rows
from .kernel_data import KernelPredictor, TrainingKernels, WeightLearning, WeightParameters
from .on_features import held_out_on_features, judged_samples, learn_discriminant_on_features
from .prediction import (
    KernelDiscriminant,
    fit_labels,
    gives_probabilities,
    is_multilabel,
    labelwise,
)
from .search import (
    Choice,
    ChoiceParameters,
    ChosenWeights,
    Grid,
    LabelSplits,
    checked_norms,
    checked_regs,
    left_out_attributes,
    refuse_single_split,
    validation_curve,
)


@storable
@estimator(MomentAttributes, ApproximationParameters, WeightParameters)
class MKFDA(KernelDiscriminant):
    """ℓp-norm multiple kernel Fisher discriminant analysis.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, such that Fisher's discriminant in the
    feature space of the weighted sum separates the classes best, and proves how close to the
    best weights it got.

    Parameters
    ----------
    reg : float or "joint", default=0.1
        λ > 0, acting on the kernels after centring and `normalize`. "joint" learns it as the
        weight of one more kernel, the identity; see the notes.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Those of the papers: "sip" and "silp" (cutting planes),
        "analytic" (closed-form updates), "dual" (L-BFGS, p > 1), "reduced-gradient" (SimpleMKL,
        p = 1), "coordinate" (kernels computed column by column, for samples that are too many for
        a matrix), "qcqp", "sdp" and "sdp-approx" (convex programs, p = 1). See
        :mod:`manykernels.solvers` for objects with options, such as ``SIP(eps=1e-4)``.
    denoise : Denoise, Bands or None, default=None
        :class:`~manykernels.Denoise` keeps the leading principal axes of every kernel after
        centring; :class:`~manykernels.Bands` makes several kernels of each, so that weights are
        learnt for ranges of axes. `normalize` is applied to the resulting kernels, and `weights_`
        and `kernel_names_` are theirs. It takes one eigendecomposition per kernel.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.

    Attributes
    ----------
    reg_ : float
        λ, given or learnt.
    denoise_ : Denoise, Bands or None
        Fitted on the training kernels, such as `denoise_.n_components_`.
    left_out_log_proba_ : ndarray of shape (n_samples, n_classes)
        Logarithms of the class probabilities of each training row if it is left out; see the
        notes. NaN in rows that no fold holds: a class of equal samples with the discriminant rule.
        Like `dual_coef_` it has no entries for rows of weight zero.

    Notes
    -----
    Fisher's discriminant is a regression on class labels. Decisions and probabilities rest on its
    outputs at left-out samples. These are computed from one factorisation: exactly for given
    kernel weights, and to first order for the change of the weights without those samples. (The
    weights are held if there are too many samples for a factorisation. Kernel widths, scales
    and `denoise` are always those of all samples.) A weight of zero is taken to stay zero. Where
    p = 1 and a large λ leave one or two of many kernels, these were selected with the help of the
    samples that are left out, which are then predicted too well; folds, as in :class:`MKFDACV`,
    select anew.

    Two rules turn outputs into class scores. The "indicator" rule takes them as estimates of
    class indicators. The "discriminant" rule is linear discriminant analysis: class means and a
    pooled covariance of left-out outputs. `rule_` is the one that was chosen, by fifty folds that
    are left out in closed form: the discriminant, learnt without the fold, if its log loss is
    smaller by more than a standard error. (Two classes always have the indicator rule. Its
    weakness is to mask a class that lies between others.) Two numbers, a factor of the scores and
    an exponent of the class frequencies, then turn scores into probabilities. They minimise the
    log loss of left-out samples; so that of `left_out_log_proba_` is lower than that of new
    samples, of m training samples by about 2/m.

    With ``reg="joint"`` λ and the weights share one budget, ``‖(λ/u, weights)‖_p ≤ 1`` with u the
    scale of the normalised identity: 1/m for unit traces, else 1 (Ye 2008, section 4). What is
    minimised is an error on the training samples, so λ is not what is best for new ones: it is
    small, at p = 1 zero, wherever kernels can fit samples as the identity does, and can take most
    of the budget where none can. Where kernels are singular (equal samples, low rank) and λ should
    be zero, it is the least that rounding errors allow, with a warning. Accuracy need not suffer
    (Tables 2–5 of Ye 2008, docs/benchmarks/ye2008.md); where much depends on λ, compare with a
    search.

    References
    ----------
    F. Yan, J. Kittler, K. Mikolajczyk. Multiple kernel learning and feature space denoising.
    ICMLC 2010.
    F. Yan, J. Kittler, K. Mikolajczyk, A. Tahir. Non-sparse multiple kernel Fisher discriminant
    analysis. JMLR 13, 2012.
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> from manykernels import MKFDA
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = MKFDA(RBF(), p=1, reg=10.0).fit(views[:900], y[:900])
    >>> model.certificate_.rel_gap < 1e-6
    True
    >>> for name, weight in zip(model.kernel_names_, model.weights_):
    ...     print(f"{name:10s} {weight:.3f}")
    pixels     0.526
    rows       0.074
    columns    0.000
    gradients  0.112
    fourier    0.132
    coarse     0.155
    noise1     0.000
    """

    reg: float | str = 0.1
    denoise: Any = None
    class_weight: Any = None
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": [*POSITIVE, StrOptions({"joint"})],
        "denoise": [Denoise, Bands, None],
        "class_weight": CLASS_WEIGHT,
    }

    partial_fit = partial_fit_classes

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the discriminant."""
        if (approximation := approximation_for(self, X)) is not None:
            return fit_on_features(self, approximation, X, y, sample_weight)
        learning = WeightLearning.of(self)
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight)
        spec = self._spec(len(rows), rows.data.n_kernels, len(rows.classes))
        rows = learning.place_kernels(rows, spec)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        kernels = TrainingKernels.of(rows, rows.weights, solver=learning.solver)
        samples = kernels.labelled(rows)
        given = self.reg if self.normalize == "multiplicative" else None
        transform, denoise = fisher_preparation(kernels, self.normalize, self.denoise, given)
        priors = checked_priors(self.priors, samples)
        fitted = learn_discriminant(
            kernels, samples, transform, priors, learning, task, self._make_loss
        )
        return self._keep(task, rows.attributes, fitted, denoise_=denoise)

    def _gathering(self, approximation: Approximation) -> Gathering:
        refuse_with_features(self, **DISCRIMINANT_ON_FEATURES)
        refuse_joint(self)
        feature_learning(WeightLearning.of(self))
        return Gathering(self, approximation, True, self.class_weight)

    def _learn_on_features(self, rows: FeatureRows, X: Any, y: Any) -> tuple[FitTask, Any]:
        learning = WeightLearning.of(self)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        fitted = learn_discriminant_on_features(
            rows, self.normalize, float(self.reg), self.priors, learning, task
        )
        return task, {**fitted, "denoise_": None}

    def _spec(self, n_samples: int, n_kernels: int, n_classes: int) -> ProblemSpec:
        """Kind and sizes of the loss, before kernels are computed."""
        if self.denoise is not None:
            n_kernels = self.denoise.most_kernels(n_kernels)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        if self.reg == "joint":
            return ProblemSpec(
                JointSquareLoss, n_samples, n_kernels + 1, n_outputs, learns_reg=True
            )
        return ProblemSpec(SquareLoss, n_samples, n_kernels, n_outputs)

    def _make_loss(self, problem: FisherProblem) -> SquareLoss:
        if self.reg != "joint":
            return problem.loss(float(self.reg))
        # The identity is one more kernel, normalised like the others: of unit trace, or as it is.
        samples = problem.samples
        unit = 1.0 / samples.masses.sum() if self.normalize == "trace" else 1.0
        return JointSquareLoss(problem.stack, problem.targets, unit, samples.weights)


def fisher_preparation(
    kernels: TrainingKernels, normalize: str | None, denoise: Any, reg: Any = None
) -> tuple[Chain, Any]:
    """Transform of training kernels, not yet fitted, and its step that denoises, if any.

    `reg` is λ, if it is given and kernels have unit variance. Denoising that chooses the number of
    axes by cross-validation uses it there.
    """
    chain = kernels.preparation(normalize)
    if denoise is None:
        return chain, None
    step = clone(denoise)
    if isinstance(step, Denoise) and step.reg is None and isinstance(reg, Real):
        step.reg = float(reg)
    # Denoising takes centred kernels, and its results are normalised.
    after = 1 + [isinstance(one, Center) for one in chain.steps].index(True)
    chain.steps.insert(after, step)
    return chain, step


def learn_discriminant(
    kernels: TrainingKernels,
    samples: LabelledKernels,
    transform: Chain,
    priors: np.ndarray,
    learning: WeightLearning,
    task: FitTask,
    make_loss: Callable[[FisherProblem], Any],
    regress: Callable[[FisherProblem, Any, Any, Domain], Regression] = fisher_regression,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights, the regression that they give, and the decision."""
    problem = samples.prepared(transform)
    kernels.warn_of_constants(transform)
    learning = learning.by_region(problem.stack.n_regions)
    loss = make_loss(problem)
    learnt = learning.learn([loss], problem.stack.names, task)
    (solution,) = learnt.solutions
    regression = regress(problem, loss, solution.evaluation, learning.domain)
    decision = Decision.learn(regression, samples, priors)
    weights, dual_coef = learnt.weights[0], decision.coefficients(regression.coefficients)
    predictor = KernelPredictor.of(kernels.source, transform, problem.stack, weights, dual_coef)
    return {
        **kernels.source.attributes,
        **learnt.attributes,
        **decision.attributes(regression.coefficients),
        "dual_coef_": dual_coef,
        "left_out_log_proba_": decision.left_out,
        "reg_": loss.regularization(solution.weights),
        "_predictor": predictor,
    }


# -- MKFDACV: norm and regularisation chosen by cross-validation, along one path of solutions -----


@storable
@estimator(MomentAttributes, ApproximationParameters, ChoiceParameters, ChosenWeights)
class MKFDACV(KernelDiscriminant):
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

    partial_fit = partial_fit_classes

    @labelwise(lambda model, block: model.decision_function(block))
    def decision_function(self, X: Any) -> Any:
        """As :meth:`MKFDA.decision_function`; (n_rows, n_labels) with several labels."""
        return super().decision_function(X)

    @labelwise(lambda model, block: model.predict(block))
    def predict(self, X: Any) -> Any:
        """Most probable class, or an indicator matrix with several labels."""
        return super().predict(X)

    @available_if(gives_probabilities)
    @labelwise(lambda model, block: model.predict_proba(block)[:, 1])
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, or those of every label, (n_rows, n_labels)."""
        return super().predict_proba(X)

    @available_if(gives_probabilities)
    @labelwise(lambda model, block: model.predict_log_proba(block)[:, 1])
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of :meth:`predict_proba`."""
        return super().predict_log_proba(X)

    @labelwise(lambda model, block: model.transform(block))
    def transform(self, X: Any) -> Any:
        """Project on the discriminant directions; one per label with several labels."""
        return super().transform(X)

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            With several labels per sample every label is a problem of its own, with its own
            p, λ and weights, on the same kernels.
        """
        if (approximation := approximation_for(self, X)) is not None:
            return fit_on_features(self, approximation, X, y, sample_weight)
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
            answers = KnownProbabilities(classes, logs), classes[samples.labels[rows]], weights
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
        return validation_curve(self)


def _scores_of_split(train: LabelledKernels, test: Test, *options: Any) -> HeldOutScores:
    """Held-out scores of one split, whose task is the last of the options."""
    scores = held_out_scores(train, test, *options)
    task: FitTask = options[-1]
    task.end()
    return scores
