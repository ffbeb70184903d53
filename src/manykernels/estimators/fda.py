"""MKFDA: ℓp-norm multiple kernel Fisher discriminant analysis, binary and multiclass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from ..discriminant.decision import N_FOLDS, Decision, Regression, checked_priors, scores_of_folds
from ..discriminant.problem import Discriminant, fisher_targets, indicator_rule
from ..domains import Domain, lp_domain
from ..kernels import Bands, Denoise
from ..kernels.transforms import Center, Chain
from ..losses.base import Loss, ProblemSpec
from ..losses.square import JointSquareLoss, SquareLoss
from ..scale.features import Approximation
from ..solvers.path import GridPoint, GridRecord, walk_grid, weight_response
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, estimator, fits
from .feature_data import ApproximationParameters, MomentAttributes, refuse_with_features
from .held_out import HeldOutProbabilities, SplitOutputs, better_rule
from .inputs import TrainingRows, discriminant_rows
from .kernel_data import (
    KernelData,
    Learnt,
    TrainingKernels,
    WeightParameters,
)
from .learning import Point, Task, fit_model, partial_fit_classes
from .prediction import (
    KernelDiscriminant,
    fit_labels,
    gives_probabilities,
    is_multilabel,
    labelwise,
)
from .search import (
    ChoiceParameters,
    ChosenWeights,
    Grid,
    Search,
    checked_norms,
    checked_regs,
    chosen_by,
    outputs_of_splits,
    validation_curve,
)


@dataclass(frozen=True)
class FisherTask(Task):
    """Fisher's discriminant: a regression on class indicators, and a rule learnt from its outputs.

    `reg` is None where every point of a grid has its own.
    """

    reg: float | str | None = None
    normalize: str | None = "multiplicative"
    denoise: Any = None
    class_weight: Any = None
    priors: Any = None

    classifies: ClassVar[bool] = True

    def rows(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> TrainingRows:
        options: dict[str, Any] = {"class_weight": self.class_weight, "groups": groups}
        return discriminant_rows(estimator, X, y, sample_weight, **options)

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        if self.denoise is not None:
            n_kernels = self.denoise.most_kernels(n_kernels)
        n_classes = len(rows.classes)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        if self.reg == "joint":
            return ProblemSpec(
                JointSquareLoss, len(rows), n_kernels + 1, n_outputs, learns_reg=True
            )
        return ProblemSpec(SquareLoss, len(rows), n_kernels, n_outputs)

    def preparation(self, missing: str) -> Chain:
        """Return the transform of training kernels, not yet fitted."""
        chain = super().preparation(missing)
        if self.denoise is None:
            return chain
        step = clone(self.denoise)
        # λ is on the scale of the kernels that are denoised if these have unit variance.
        scaled = isinstance(self.reg, Real) and self.normalize == "multiplicative"
        if isinstance(step, Denoise) and step.reg is None and scaled:
            step.reg = float(self.reg)  # type: ignore[arg-type]
        # Denoising takes centred kernels, and its results are normalised.
        after = 1 + [isinstance(step, Center) for step in chain.steps].index(True)
        chain.steps.insert(after, step)
        return chain

    def prepare(self, kernels: TrainingKernels, rows: TrainingRows) -> KernelData:
        checked_priors(self.priors, kernels.samples(rows))
        data: KernelData = super().prepare(kernels, rows)
        steps = [step for step in data.transform.steps if isinstance(step, Denoise | Bands)]
        data.attributes["denoise_"] = steps[0] if steps else None
        return data

    def losses(self, data: Any, points: Sequence[Point]) -> list[Loss]:
        (point,) = points
        reg = point.get("reg", self.reg)
        if reg != "joint":
            return [data.loss_at(data.fisher_coding())(float(reg))]  # type: ignore[arg-type]
        # The identity is one more kernel, normalised like the others: of unit trace, or as it is.
        unit = 1.0 / data.masses.sum() if self.normalize == "trace" else 1.0
        return [JointSquareLoss(data.stack, data.fisher_coding(), unit, data.samples.weights)]

    def regression(
        self, data: Any, loss: Any, evaluation: Any, domain: Domain | None
    ) -> Regression:
        """Return the regression with its outputs at left-out samples.

        Without a domain, kernel weights are held; else they respond to first order.
        """
        samples, rotation = data.samples, loss.rotation
        leaves_out = data.left_out(evaluation, fisher_targets(samples.labels, data.masses))
        response = None if domain is None else weight_response(leaves_out, domain)
        # For two classes there is only the indicator rule, and nothing to judge by folds.
        folds = [] if len(samples.classes) == 2 else samples.folds(N_FOLDS)
        left_out = leaves_out.leave_out(folds, samples.groups, response)
        return Regression(evaluation.coefficients @ rotation, left_out.turned(rotation), rotation)

    def fitted(self, data: Any, learnt: Learnt, domains: Sequence[Domain]) -> dict[str, Any]:
        (loss,), (evaluation,), (domain,) = learnt.losses, learnt.evaluations, domains
        regression = self.regression(data, loss, evaluation, domain)
        priors = checked_priors(self.priors, data.samples)
        decision = Decision.learn(regression, data.samples, priors)
        coefficients = decision.coefficients(regression.coefficients)
        return {
            **data.attributes,
            **decision.attributes(regression.coefficients),
            data.coefficients: coefficients,
            "left_out_log_proba_": decision.left_out,
            "reg_": loss.regularization(learnt.solutions[0].weights),
            "_predictor": data.predictor(learnt.weights[0], coefficients),
        }

    # -- choice of p and λ -----------------------------------------------------------------

    def rules(self, n_classes: int) -> tuple[str, ...]:
        """Return the decision rules that are compared."""
        return ("indicator",) if n_classes == 2 else ("indicator", "discriminant")

    def search(
        self, estimator: Any, X: Any, y: Any, rows: TrainingRows, kernels: TrainingKernels
    ) -> Search:
        samples = kernels.samples(rows)
        checked_priors(self.priors, samples)
        return Search.of(estimator, X, y, rows, kernels, samples, self.n_passes(len(rows.classes)))

    def n_passes(self, n_classes: int) -> int:
        return len(self.rules(n_classes))

    def choose(self, search: Any, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        samples = search.samples
        rules = self.rules(len(samples.classes))
        priors = None if self.priors is None else np.asarray(self.priors, dtype=float)

        def held_out(grid: Grid, rules: Sequence[str], purpose: str) -> list[HeldOutProbabilities]:
            walk = partial(self.outputs, rules=rules)
            outputs = outputs_of_splits(search, self, walk, grid, purpose)
            return [
                HeldOutProbabilities(list(parts), search.tests, samples.frequencies, priors, rule)
                for rule, parts in zip(rules, zip(*outputs, strict=True), strict=True)
            ]

        if len(rules) > 1:
            # The better rule at the largest p is used at every p.
            largest = {**grid.values, "p": grid.values["p"].max(keepdims=True)}
            rules = (better_rule(held_out(Grid(largest), rules, "rules, ")).rule,)
        (judged,) = held_out(grid, rules, "")
        choice, attributes = chosen_by(search.estimator, grid, judged, search.tested, samples)
        return [choice.params], {**attributes, "cv_rule_": judged.rule}

    def outputs(
        self,
        part: Any,
        grid: Grid,
        tol: float,
        progress: FitTask,
        starts: list[dict[tuple[int, int], np.ndarray]] | None,
        rules: Sequence[str],
    ) -> list[SplitOutputs]:
        """Return class scores of the test samples of a split by every one of the `rules`."""
        data, (ps, regs) = part.data, grid.values.values()
        record, shape = GridRecord.unsolved(grid.shape), (part.n_test, len(data.masses))
        outputs = [SplitOutputs.unsolved(grid.shape, shape, record) for _ in rules]

        def visit(point: GridPoint) -> bool:
            at = point.norm_index, point.reg_index
            if starts is not None:
                starts[0][at] = point.evaluation.weights
            scores = self._scores(part, point, rules, lp_domain(float(ps[at[0]])))
            for split, values in zip(outputs, scores, strict=True):
                split.outputs[at] = values
            noted = record.note(at, grid.at(at), point.certificate, point.n_inner_solves)
            return progress(noted)

        loss_at = data.loss_at(data.fisher_coding())
        known = None if starts is None else dict(starts[0])
        record.failures.extend(walk_grid(loss_at, ps, regs, visit, tol=tol, starts=known))
        return outputs

    def _scores(
        self, part: Any, point: GridPoint, rules: Sequence[str], domain: Domain
    ) -> list[np.ndarray]:
        """Return class scores of the test samples by every rule, at one point of the grid."""
        data, evaluation, rotation = part.data, point.evaluation, point.loss.rotation
        if part.folds is not None:
            samples, response = data.samples, weight_response(evaluation, domain)
            left_out = evaluation.leave_out(part.folds, samples.groups, response).turned(rotation)
            return [scores_of_folds(rule, left_out.folds, samples, rotation) for rule in rules]
        outputs = part.outputs(evaluation, evaluation.coefficients @ rotation)
        scores = []
        for name in rules:
            if name == "indicator":
                rule = indicator_rule(data.masses / data.masses.sum(), rotation)
            else:
                # The kernel weights, which have not seen the test samples, may be held here.
                # Outputs are measured from the mean target of the others: those of a large λ
                # would otherwise show that mean alone.
                samples = data.samples
                targets = fisher_targets(samples.labels, data.masses)
                leaves_out = data.left_out(evaluation, targets, respond=False)
                left_out = leaves_out.leave_one_out(samples.groups, from_mean=True)
                rule = Discriminant.learn(left_out @ rotation, samples).rule
            scores.append(rule.scores(outputs))
        return scores

    def refuse_with_features(self, estimator: Any) -> None:
        """Raise if a parameter does not go with explicit features."""
        why = "principal axes are those of a kernel matrix"
        refuse_with_features(estimator, denoise=(None, why))
        if self.reg == "joint":
            raise ValueError(
                f'reg="joint" does not go with approximation={estimator.approximation}: the '
                "identity matrix has as many features as there are samples. Pass a number, or use "
                "the estimator with CV in its name."
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

    @property
    def _task(self) -> FisherTask:
        return FisherTask(self.reg, self.normalize, self.denoise, self.class_weight, self.priors)

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn kernel weights and the discriminant."""
        return fit_model(self, self._task, X, y, sample_weight, groups)


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
        parts. Groups and repeated rows stay together, and a class of a single sample is in no test
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

    Five samples of each of 30 patients, whose labels are noise: what seems to be learnt are the
    patients, unless all samples of a patient are left out together:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> patients = np.repeat(np.arange(30), 5)
    >>> X = rng.normal(size=(30, 4))[patients] + 0.1 * rng.normal(size=(150, 4))
    >>> y = rng.permutation(np.arange(30) % 2)[patients]
    >>> model = MKFDACV(ps=[2], regs=[0.01, 0.1])
    >>> round(model.fit(X, y).left_out_score_, 2)
    1.0
    >>> round(model.fit(X, y, groups=patients).left_out_score_, 2)
    0.56
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            With several labels per sample every label is a problem of its own, with its own
            p, λ and weights, on the same kernels.
        """
        if is_multilabel(y) and not isinstance(self.approximation, Approximation):
            return fit_labels(self, X, y, sample_weight, groups)
        return fit_model(self, self._task, X, y, sample_weight, groups, self._grid)

    @property
    def _task(self) -> FisherTask:
        return FisherTask(None, self.normalize, self.denoise, self.class_weight, self.priors)

    @property
    def _grid(self) -> Grid:
        return Grid({"p": checked_norms(self.ps), "reg": checked_regs(self.regs)})

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
