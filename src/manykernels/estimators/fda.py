"""MKFDA: ℓp-norm multiple kernel Fisher discriminant analysis, binary and multiclass."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from .._sklearn import StrOptions
from ..discriminant import FisherProblem, LabelledKernels
from ..discriminant.decision import Decision, Regression, checked_priors, fisher_regression
from ..domains import Domain
from ..kernels import Bands, Denoise
from ..kernels.transforms import Center, Chain
from ..losses import JointSquareLoss, Outline, SquareLoss
from ..scale import Approximation
from ._approximated import (
    DISCRIMINANT_ON_FEATURES,
    ApproximationParameters,
    ClassifierOfStreams,
    LearnsFromMoments,
    feature_learning,
    refuse_joint,
    refuse_with_features,
)
from ._base import CLASS_WEIGHT, POSITIVE, KernelEstimator, estimator, fits
from ._feature_rows import FeatureRows
from ._gathering import Gathering
from ._kernels import KernelExpansion, TrainingKernels
from ._learning import WeightLearning, WeightParameters
from ._on_features import learn_discriminant_on_features
from ._outputs import DiscriminantTransformer, KernelClassifier, Probabilities
from ._progress import FitTask
from ._rows import discriminant_rows


@estimator
class MKFDA(
    ClassifierOfStreams,
    LearnsFromMoments,
    ApproximationParameters,
    DiscriminantTransformer,
    Probabilities,
    KernelClassifier,
    WeightParameters,
    KernelEstimator,
):
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

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the discriminant."""
        if (approximation := self._approximation_for(X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        learning = WeightLearning.of(self)
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight)
        outline = self._outline(len(rows), rows.data.n_kernels, len(rows.classes))
        rows = learning.admit(rows, outline)
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

    def _outline(self, n_samples: int, n_kernels: int, n_classes: int) -> Outline:
        """Kind and sizes of the loss, before kernels are computed."""
        if self.denoise is not None:
            n_kernels = self.denoise.most_kernels(n_kernels)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        if self.reg == "joint":
            return Outline(JointSquareLoss, n_samples, n_kernels + 1, n_outputs, learns_reg=True)
        return Outline(SquareLoss, n_samples, n_kernels, n_outputs)

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
    expansion = KernelExpansion.of(kernels.source, transform, problem.stack, weights, dual_coef)
    return {
        **kernels.source.attributes,
        **learnt.attributes,
        **decision.attributes(regression.coefficients),
        "dual_coef_": dual_coef,
        "left_out_log_proba_": decision.left_out,
        "reg_": loss.regularization(solution.weights),
        "_expansion": expansion,
    }
