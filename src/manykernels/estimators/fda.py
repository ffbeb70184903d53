"""MKFDA: ℓp-norm multiple kernel Fisher discriminant analysis, binary and multiclass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..discriminant import (
    N_FOLDS,
    Decision,
    Discriminant,
    Regression,
    Samples,
    checked_priors,
    fisher_targets,
    indicator_rule,
    scores_of_folds,
)
from ..domains import Domain, lp_domain
from ..kernels import Bands, Denoise
from ..kernels.tables import Table
from ..kernels.transforms import Center, Chain
from ..losses.base import Loss, ProblemSpec
from ..losses.square import JointSquareLoss, SquareLoss
from ..solvers.path import GridPoint, GridRecord, weight_response
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, KernelEstimator, estimator, fits
from .feature_data import ApproximationParameters, MomentAttributes, refuse_with_features
from .grid import Grid, checked_regs, norms_or_evidence
from .held_out import HeldOutProbabilities, SplitOutputs, better_rule
from .kernel_data import KernelData, TrainingKernels
from .learning import (
    Point,
    Task,
    by_labels,
    fit_model,
    partial_fit_classes,
    share_workspace,
    target_groups,
)
from .prediction import KernelDiscriminant, LabelParameters
from .search import (
    ChoiceParameters,
    ChosenWeights,
    KernelSetParameters,
    Search,
    chosen_by,
    chosen_for_labels,
    outputs_of_splits,
    validation_curve,
    walk_points,
)
from .training_rows import TrainingRows, discriminant_rows
from .weights import EVIDENCE, NORM_OR_EVIDENCE, Learnt, WeightParameters


@dataclass(frozen=True)
class FisherTask(Task):
    """Fisher's discriminant: a regression on class indicators, and a rule learnt from its outputs.

    `reg` is None where every point of a grid has its own. Each of several labels has a
    discriminant of its own; those that share kernel weights are one regression.
    """

    reg: float | str | None = None
    normalize: str | None = "multiplicative"
    denoise: Any = None
    class_weight: dict[Any, float] | str | None = None
    priors: ArrayLike | None = None
    multi_label: str = "separate"

    classifies: ClassVar[bool] = True

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        options: dict[str, Any] = {"class_weight": self.class_weight, "groups": groups}
        rows = discriminant_rows(estimator, X, y, sample_weight, **options)
        shares = rows.n_labels is not None and self.multi_label == "shared"
        if shares and self.class_weight is not None:
            raise ValueError(
                'class_weight does not go with multi_label="shared": every label would weight '
                "the samples differently, where one factorisation serves all labels. Pass "
                'sample_weight, or multi_label="separate".'
            )
        return rows

    def n_losses(self, targets: Any) -> int:
        n_labels = 1 if np.ndim(targets) < 2 else targets.shape[1]
        return len(target_groups(n_labels, self.multi_label))

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        if self.denoise is not None:
            n_kernels = self.denoise.most_kernels(n_kernels)
        n_classes = len(rows.classes)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        if rows.n_labels is not None:
            n_outputs = rows.n_labels // self.n_losses(rows.labels)
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
        self._check_priors(kernels.samples(rows))
        data: KernelData = super().prepare(kernels, rows)
        steps = [step for step in data.transform.steps if isinstance(step, Denoise | Bands)]
        data.attributes["denoise_"] = steps[0] if steps else None
        return data

    def _check_priors(self, samples: Samples) -> None:
        for (part,) in by_labels(samples, samples, "separate"):
            checked_priors(self.priors, part)

    def losses(self, data: Any, points: Sequence[Point]) -> list[Loss]:
        problems = by_labels(data, data.samples, self.multi_label)
        return share_workspace([self._loss(*pair) for pair in zip(problems, points, strict=True)])

    def _loss(self, problems: list[Any], point: Point) -> Any:
        """Return the regression of discriminants that share kernel weights."""
        data, coding = problems[0], np.hstack([problem.fisher_coding() for problem in problems])
        reg: Any = point.get("reg", self.reg)
        if reg != "joint":
            # That of largest evidence is learnt, from any number.
            return data.loss_at(coding)(1.0 if reg is None else float(reg))
        # The identity is one more kernel, normalised like the others: of unit trace, or as it is.
        unit = 1.0 / data.masses.sum() if self.normalize == "trace" else 1.0
        return JointSquareLoss(data.stack, coding, unit, data.samples.weights)

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        problems = by_labels(data, data.samples, self.multi_label)
        discriminants = [
            discriminant
            for group in zip(
                problems, learnt.losses, learnt.evaluations, learnt.weights, domains, strict=True
            )
            for discriminant in self._discriminants(*group)
        ]
        attributes = discriminants[0]
        if data.samples.n_labels is not None:
            attributes = _side_by_side(discriminants)
        coefficients = attributes.pop("coefficients")
        weights = learnt.weights if len(learnt.weights) > 1 else learnt.weights[0]
        regs = learnt.regularizations
        return {
            **data.attributes,
            **attributes,
            data.coefficients: coefficients,
            "reg_": regs[0].item() if len(regs) == 1 else regs,
            "_predictor": data.predictor(weights, coefficients),
        }

    def regressions(
        self, problems: list[Any], loss: Any, evaluation: Any, domain: Domain | None
    ) -> list[Regression]:
        """Return the regressions of discriminants, with outputs at left-out samples.

        Without a domain, kernel weights are held; else they respond to first order.
        """
        data, samples = problems[0], problems[0].samples
        leaves_out = data.left_out(evaluation, fisher_targets(samples.labels, data.masses))
        response = None if domain is None else weight_response(leaves_out, domain)
        # For two classes there is only the indicator rule, and nothing to judge by folds.
        folds = [] if len(samples.classes) == 2 else samples.folds(N_FOLDS)
        left_out = leaves_out.leave_out(folds, samples.groups, response)
        return [
            Regression(evaluation.coefficients @ columns, left_out.turned(columns), rotation)
            for columns, rotation in _turns(problems, loss)
        ]

    def _discriminants(
        self,
        problems: list[Any],
        loss: Any,
        evaluation: Any,
        weights: np.ndarray,
        domain: Domain | None,
    ) -> list[dict[str, Any]]:
        """Return the fitted attributes of discriminants that share kernel weights."""
        regressions = self.regressions(problems, loss, evaluation, domain)
        fitted = []
        for problem, regression in zip(problems, regressions, strict=True):
            priors = checked_priors(self.priors, problem.samples)
            decision = Decision.learn(regression, problem.samples, priors)
            attributes = decision.attributes(regression.coefficients)
            coefficients = decision.coefficients(regression.coefficients)
            if problem.of_label:
                attributes["intercept_"] -= problem.shift(weights, coefficients)
                attributes["means_"] += problem.shift(weights, attributes["scalings_"])
            attributes["left_out_log_proba_"] = decision.left_out
            fitted.append({**attributes, "coefficients": coefficients})
        return fitted

    # -- choice of p and λ -----------------------------------------------------------------

    def rules(self, n_classes: int) -> tuple[str, ...]:
        """Return the decision rules that are compared."""
        return ("indicator",) if n_classes == 2 else ("indicator", "discriminant")

    def search(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        rows: TrainingRows,
        kernels: TrainingKernels,
    ) -> Search:
        samples = kernels.samples(rows)
        self._check_priors(samples)
        return Search.of(estimator, X, y, rows, kernels, samples, self.n_passes(len(rows.classes)))

    def n_passes(self, n_classes: int) -> int:
        return len(self.rules(n_classes))

    def choose(self, search: Any, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        samples = search.samples
        rules = self.rules(len(samples.classes))
        if samples.n_labels is not None:
            judged = self._held_out(search, grid, rules)
            groups = target_groups(samples.n_labels, self.multi_label)
            choices, attributes = chosen_for_labels(search, grid, judged, groups)
            return [choice.params for choice in choices], {**attributes, "cv_rule_": rules[0]}
        if len(rules) > 1:
            # The better rule at the largest p is used at every p.
            # (Largest evidence, p = NaN, if nothing else is tried.)
            largest = replace(grid, values={**grid.values, "p": _largest(grid.values["p"])})
            rules = (better_rule(self._held_out(search, largest, rules, "rules, ")).rule,)
        (of_rule,) = self._held_out(search, grid, rules)
        choice, attributes = chosen_by(search.estimator, grid, of_rule, search.tested, samples)
        return [choice.params], {**attributes, "cv_rule_": of_rule.rule}

    def _held_out(
        self, search: Any, grid: Grid, rules: Sequence[str], purpose: str = ""
    ) -> list[HeldOutProbabilities]:
        """Return the answers of every rule or, if there are several labels, about each of them."""
        samples, tests = search.samples, search.tests
        priors = None if self.priors is None else np.asarray(self.priors, dtype=float)
        walk, n_losses = partial(self.outputs, rules=rules), self.n_losses(samples.targets)
        outputs = outputs_of_splits(search, self, walk, grid, purpose, n_losses)
        judged = []
        for k, parts in enumerate(zip(*outputs, strict=True)):
            every, held_out, rule = samples, tests, rules[k % len(rules)]
            if samples.n_labels is not None:
                every, held_out = samples.label(k), [test.label(k) for test in tests]
            frequencies = every.frequencies
            judged.append(HeldOutProbabilities(list(parts), held_out, frequencies, priors, rule))
        return judged

    def outputs(
        self,
        part: Any,
        grid: Grid,
        tol: float,
        progress: FitTask,
        starts: list[dict[tuple[int, int], np.ndarray]] | None,
        rules: Sequence[str],
    ) -> list[SplitOutputs]:
        """Return class scores of the test samples of a split by every one of the `rules`.

        If there are several labels, those of each label.
        """
        problems = by_labels(part, part.data.samples, self.multi_label)
        known = [None] * len(problems) if starts is None else starts
        return [
            split
            for parts, start in zip(problems, known, strict=True)
            for split in self._outputs(parts, grid, tol, progress, start, rules)
        ]

    def _outputs(
        self,
        parts: list[Any],
        grid: Grid,
        tol: float,
        progress: FitTask,
        starts: dict[tuple[int, int], np.ndarray] | None,
        rules: Sequence[str],
    ) -> list[SplitOutputs]:
        """Return the class scores of discriminants that share kernel weights."""
        data, ps = parts[0].data, grid.values["p"]
        record, shape = GridRecord.unsolved(grid.shape), (parts[0].n_test, len(data.masses))
        outputs = [SplitOutputs.unsolved(grid.shape, shape, record) for _ in parts for _ in rules]

        def visit(point: GridPoint) -> bool:
            at = point.norm_index, point.reg_index
            if starts is not None:
                starts[at] = point.evaluation.weights
            scores = self._scores(parts, point, rules, ps[at[0]].item())
            for split, values in zip(outputs, scores, strict=True):
                split.outputs[at] = values
            noted = record.note(at, grid.at(at), point.certificate, point.n_inner_solves)
            return progress(noted)

        loss_at = data.loss_at(np.hstack([part.data.fisher_coding() for part in parts]))
        known = None if starts is None else dict(starts)
        record.failures.extend(walk_points(loss_at, grid, visit, tol, known))
        for row in np.flatnonzero(np.isnan(ps)).tolist():
            for split in outputs:
                split.repeat_first(row)
        return outputs

    def _scores(
        self, parts: list[Any], point: GridPoint, rules: Sequence[str], p: float
    ) -> list[np.ndarray]:
        """Return class scores of the test samples by every rule, at one point of the grid."""
        data, evaluation = parts[0].data, point.evaluation
        turns = _turns([part.data for part in parts], point.loss)
        if parts[0].folds is not None:
            response = weight_response(evaluation, lp_domain(p))
            left_out = evaluation.leave_out(parts[0].folds, data.samples.groups, response)
            return [
                scores_of_folds(rule, left_out.turned(columns).folds, part.data.samples, rotation)
                for part, (columns, rotation) in zip(parts, turns, strict=True)
                for rule in rules
            ]
        every = np.hstack([columns for columns, _ in turns])
        outputs = parts[0].outputs(evaluation, evaluation.coefficients @ every)
        scores = []
        for part, values, (columns, rotation) in zip(
            parts, np.split(outputs, len(parts), axis=1), turns, strict=True
        ):
            for name in rules:
                if name == "indicator":
                    rule = indicator_rule(part.data.masses / part.data.masses.sum(), rotation)
                else:
                    # The kernel weights, which have not seen the test samples, may be held here.
                    # Outputs are measured from the mean target of the others: those of a large λ
                    # would otherwise show that mean alone.
                    samples = data.samples
                    targets = fisher_targets(samples.labels, data.masses)
                    leaves_out = data.left_out(evaluation, targets, respond=False)
                    left_out = leaves_out.leave_one_out(samples.groups, from_mean=True)
                    rule = Discriminant.learn(left_out @ columns, samples).rule
                scores.append(rule.scores(values))
        return scores

    def refuse_with_features(self, estimator: KernelEstimator) -> None:
        """Raise if a parameter does not go with explicit features."""
        why = "principal axes are those of a kernel matrix"
        refuse_with_features(estimator, denoise=(None, why))
        if self.reg == "joint":
            raise ValueError(
                f'reg="joint" does not go with approximation={estimator.approximation!r}: the '
                "identity matrix has as many features as there are samples. Pass a number, or use "
                "the estimator with CV in its name."
            )


def _largest(norms: np.ndarray) -> np.ndarray:
    """Return the largest p, alone; NaN if there are no others."""
    return np.fmax.reduce(norms, keepdims=True)


def _turns(problems: list[Any], loss: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return two matrices for every discriminant of a regression.

    The first takes columns of the regression to those of the outputs of the discriminant, the
    second its Fisher targets. Two classes have one of the columns; more classes have all of them,
    rotated.
    """
    if len(problems[0].masses) > 2:
        return [(loss.rotation, loss.rotation)]
    units = np.array([problem.unit for problem in problems])
    return [(column[:, None], np.eye(1)) for column in np.diag(1.0 / units)]


def _side_by_side(labels: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fitted attributes of the discriminants of several labels, joined."""
    columns = {
        name: np.hstack([label[name] for label in labels])
        for name in ("coefficients", "intercept_", "scalings_", "means_")
    }
    left_out = [label["left_out_log_proba_"][:, 1] for label in labels]
    return {
        **columns,
        "left_out_log_proba_": np.column_stack(left_out),
        "priors_": np.array([label["priors_"] for label in labels]),
        "rule_": labels[0]["rule_"],
    }


@storable
@estimator(LabelParameters, MomentAttributes, ApproximationParameters, WeightParameters)
class MKFDA(KernelDiscriminant):
    """ℓp-norm multiple kernel Fisher discriminant analysis.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, such that Fisher's discriminant in the
    feature space of the weighted sum separates the classes best, and proves how close to the
    best weights it got.

    Parameters
    ----------
    p : float in [1, inf] or "evidence", default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum. "evidence" learns the
        weights and λ together, as for :class:`MKRidge`, on class indicators. Then `reg` is not
        used, and the weights sum to one.
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
    class_weight: dict[Any, float] | str | None = None
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": NORM_OR_EVIDENCE,
        "reg": [*POSITIVE, StrOptions({"joint"})],
        "denoise": [Denoise, Bands, None],
        "class_weight": CLASS_WEIGHT,
    }

    partial_fit = partial_fit_classes

    @property
    def _task(self) -> FisherTask:
        options = self.denoise, self.class_weight, self.priors, self.multi_label
        reg = None if self.p == EVIDENCE else self.reg
        return FisherTask(reg, self.normalize, *options)

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn kernel weights and the discriminant.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            Class labels of any kind, or 0 and 1 for each of several labels.
        """
        return fit_model(self, self._task, X, y, sample_weight, groups)


# -- MKFDACV: norm and regularisation chosen by cross-validation, along one path of solutions -----


@storable
@estimator(
    LabelParameters,
    MomentAttributes,
    ApproximationParameters,
    ChoiceParameters,
    KernelSetParameters,
    ChosenWeights,
)
class MKFDACV(KernelDiscriminant):
    """Multiple kernel Fisher discriminant analysis with p and λ chosen by cross-validation.

    All norms and regularisations of a grid are solved as one path, each from its neighbours and
    each with a certificate. They are scored on samples that neither the kernel weights nor the
    discriminant nor its decision rule have seen: in folds, or on a validation set.

    Parameters
    ----------
    ps : list of float in [1, inf] and "evidence", optional
        Norms to try; by default 1, 4/3, 2 and ∞. The twelve norms of Yan et al. (2012) are
        ``manykernels.solvers.PAPER_NORMS``. "evidence" tries the weights and λ that are most
        likely, as for :class:`MKFDA`; on 26 tables it did not change the accuracy.
    regs : array-like of float, optional
        λ to try with each norm; by default eight from 1e-4 to 1e3.
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
        `one_standard_error`. NaN and the learnt λ for "evidence".
    cv_rule_ : str
        The rule by which all points were judged, "indicator" or "discriminant": the better one
        at the largest p, by the log loss of held-out samples; all sets of kernels have the same.
        The final fit chooses for itself, see `rule_`.
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

    Several labels per sample, each with a p and λ of its own:

    >>> import numpy as np
    >>> Y = np.column_stack([X[:, 0] > 5.8, X[:, 2] > 4.2]).astype(int)
    >>> model = MKFDACV(ps=[1, 2], regs=[0.1, 1], scoring="average_precision").fit(X, Y)
    >>> model.p_.shape, model.weights_.shape == (2, len(model.kernel_names_))
    ((2,), True)
    >>> model.predict(X[:2])
    array([[0, 0],
           [0, 0]])

    Five samples of each of 30 patients, whose labels are noise: what seems to be learnt are the
    patients, unless all samples of a patient are left out together:

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

    ps: ArrayLike | None = None
    regs: ArrayLike | None = None
    denoise: Any = None
    class_weight: dict[Any, float] | str | None = None
    tol: float = 1e-5

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "regs": ["array-like", None],
        "cv": ["cv_object", tuple, StrOptions({"closed-form"}), None],
        "denoise": [Denoise, Bands, None],
        "class_weight": CLASS_WEIGHT,
    }

    partial_fit = partial_fit_classes
    validation_curve = validation_curve

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and λ, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            Class labels of any kind, or 0 and 1 for each of several labels.
        """
        return fit_model(self, self._task, X, y, sample_weight, groups, self._grid)

    @property
    def _task(self) -> FisherTask:
        options = self.denoise, self.class_weight, self.priors, self.multi_label
        return FisherTask(None, self.normalize, *options)

    @property
    def _grid(self) -> Grid:
        return Grid(
            {"p": norms_or_evidence(self, by_default=False), "reg": checked_regs(self.regs)}
        )
