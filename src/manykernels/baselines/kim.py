"""KimFDA: optimal kernel selection in kernel Fisher discriminant analysis, two classes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.multiclass import type_of_target

from ..discriminant.decision import N_FOLDS, Regression, checked_priors
from ..discriminant.problem import FisherProblem
from ..domains import Domain
from ..estimators.base import POSITIVE, FitTask, estimator, fits
from ..estimators.fda import learn_discriminant
from ..estimators.inputs import check_targets, discriminant_rows
from ..estimators.kernel_data import TrainingKernels, WeightLearning, WeightParameters
from ..estimators.prediction import KernelDiscriminant
from ..kernels import KernelStack
from ..kernels.transforms import Chain, UnitTrace
from ..losses.base import ProblemSpec
from ..losses.kim import KimLoss
from ..losses.left_out import LeftOut
from ..utils.sklearn import check_y
from ..utils.storable import storable


@storable
@estimator(WeightParameters)
class KimFDA(KernelDiscriminant):
    """Kernel Fisher discriminant analysis of two classes with the kernel of largest ratio.

    Learns one weight per kernel such that the regularised Fisher ratio of the weighted sum,
    Ye 2008 (4), is largest, and proves how close to the best weights it got. The method of Kim,
    Magnani and Boyd, without their semidefinite program.

    Parameters
    ----------
    p : float in [1, inf], default=1.0
        Norm of the weights: 1, as in the paper, gives the fewest kernels, inf the plain sum.
    reg : float, default=1e-8
        λ > 0, added to the sum of the covariances of the two classes in the feature space of
        kernels after `normalize`. It must not be lost in rounding: a λ of less than about 1e-14
        times the self-similarities of samples is refused. Precomputed kernels in single
        precision have negative eigenvalues of some 1e-7 of those; for them λ is raised tenfold
        until every kernel can be factorised, see `reg_`.
    solver : str or a solver object, default="newton"
        As for :class:`~manykernels.MKFDA`; those that take only the square loss are refused.
    normalize : {"multiplicative", "spherical", "trace"} or None, default=None
        How kernels are made comparable, as for :class:`~manykernels.MKFDA`. The paper takes
        Gaussian kernels as they are.
    priors : array-like of shape (2,), default=None
        Class probabilities for the decision; by default the weighted frequencies. The weight
        of a class changes nothing else here.
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.

    Attributes
    ----------
    certificate_ : Certificate
        As for :class:`~manykernels.MKFDA`. What is minimised is minus the ratio, so ``primal`` is
        negative.
    rule_ : str
        "discriminant", always; see the notes.
    reg_ : float
        λ: `reg`, unless it was raised.

    Notes
    -----
    The paper does not centre kernels. Its criterion is made of differences of means and of
    samples from their class mean, so centring changes neither the best weights nor the
    direction; it is done here because it makes rounding errors smaller.

    The Fisher ratio is a decreasing function of the square loss on balanced classes. So the best
    weights, and the direction, are those of ``MKFDA(class_weight="balanced")`` with the same `p`,
    ``normalize=None`` in both and ``reg * n_samples / 2`` for `reg`.

    The papers put the threshold midway between the projected class means. As λ → 0 the outputs
    of the training samples become one point for each class and say nothing about new samples.
    Here each sample is left out in turn (in closed form, kernel weights held), its output is
    measured from the midpoint of the class means, and a new sample goes to the nearest mean of
    these outputs in units of their pooled variance, with priors: the "discriminant" rule of
    :class:`~manykernels.MKFDA`, the only one here. One factor of the scores, that with the least
    log loss in fifty folds of the left-out outputs, turns them into probabilities. As weights are
    held, these can be too sure where many kernels are weighed on few samples.

    References
    ----------
    S.-J. Kim, A. Magnani, S. Boyd. Optimal kernel selection in kernel Fisher discriminant
    analysis. ICML 2006.
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import rbf_grid
    >>> from manykernels.baselines import KimFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 2))
    >>> y = np.where((X**2).sum(axis=1) > 1.4, "ring", "disc")
    >>> model = KimFDA(rbf_grid([0.1, 1, 10])).fit(X[:80], y[:80])
    >>> model.certificate_.converged
    True
    >>> model.score(X[80:], y[80:]) > 0.9
    True
    """

    p: float = 1.0
    reg: float = 1e-8
    normalize: str | None = None
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {"reg": POSITIVE}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the discriminant."""
        learning = WeightLearning.of(self)
        if sample_weight is None and y is not None and _is_multiclass(y):
            # Before X is read: scikit-learn's checks pass a table even with precomputed kernels.
            _refuse_more_than_two(np.unique(y))
        # No class weights: in the ratio each class has its own mean and covariance.
        rows = discriminant_rows(self, X, y, sample_weight, None)
        _refuse_more_than_two(rows.classes)
        learning.refuse_unfit(ProblemSpec(KimLoss, len(rows), rows.data.n_kernels, 1))
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        kernels = TrainingKernels.of(rows, rows.weights, solver=learning.solver)
        samples = kernels.labelled(rows)
        priors = checked_priors(self.priors, samples)
        transform = Chain([*kernels.preparation(self.normalize).steps, _ZeroConstants()])
        fitted = learn_discriminant(
            kernels, samples, transform, priors, learning, task, self._make_loss, _ratio_direction
        )
        # Kernel weights are held there, and have seen the labels of the samples left out.
        del fitted["left_out_log_proba_"]
        return self._keep(task, rows.attributes, fitted)

    def _make_loss(self, problem: FisherProblem) -> KimLoss:
        stack, samples = problem.stack, problem.samples
        loss = KimLoss(stack, samples.labels, float(self.reg), samples.weights)
        if self._is_precomputed:
            for j in range(stack.n_kernels):
                if _is_single_precision(stack.data[j]):
                    loss.raise_reg(np.eye(stack.n_kernels)[j])
        return loss


def _ratio_direction(
    problem: FisherProblem, loss: KimLoss, evaluation: Any, domain: Domain
) -> Regression:
    """The direction of largest ratio; kernel weights are held while samples are left out."""
    samples = problem.samples
    # The only rule here, the discriminant, is learnt from left-out outputs: it is judged by folds.
    folds = samples.folds(N_FOLDS)
    singly = evaluation.leave_one_out(samples.groups) + evaluation.midpoint
    return Regression(evaluation.coefficients, LeftOut.cross_fitted(singly, folds), None)


@storable
class _ZeroConstants(UnitTrace):
    """Make kernels exactly zero of which centring leaves rounding errors only.

    If there are no others, a ratio of rounding errors would be taken for a discriminant.
    """

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        super()._learn(stack, weights, y)
        self.scale_ = np.where(self.scale_ > 0.0, 1.0, 0.0)


def _is_multiclass(y: Any) -> bool:
    check_targets(y)
    return type_of_target(check_y(y, multi_output=False)) == "multiclass"


def _refuse_more_than_two(classes: np.ndarray) -> None:
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported by KimFDA, got {len(classes)} classes: "
            f"{classes.tolist()}. MKFDA takes any number of classes."
        )


def _is_single_precision(matrix: np.ndarray) -> bool:
    """Whether every entry is a number of single precision; the first rows usually decide."""
    return all(np.array_equal(row, row.astype(np.float32)) for row in matrix)
