"""KimFDA: optimal kernel selection in kernel Fisher discriminant analysis, two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import type_of_target

from ..discriminant import N_FOLDS, Regression
from ..domains import Domain
from ..estimators.base import POSITIVE, KernelEstimator, estimator, fits
from ..estimators.fda import FisherTask
from ..estimators.inputs import MatrixSource
from ..estimators.kernel_data import KernelData
from ..estimators.learning import Point, fit_model
from ..estimators.prediction import KernelDiscriminant
from ..estimators.training_rows import TrainingRows, check_targets, discriminant_rows
from ..estimators.weights import Learnt, WeightParameters
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.transforms import Chain, UnitTrace
from ..losses.base import ProblemSpec
from ..losses.kim import KimLoss
from ..losses.left_out import LeftOut
from ..utils.sklearn import check_y
from ..utils.storable import storable


@storable
@estimator(WeightParameters)
class KimFDA(KernelDiscriminant):
    """Kernel Fisher discriminant analysis of two classes that maximises the Fisher ratio.

    Learns one weight per kernel such that the regularised Fisher ratio of the weighted sum,
    Ye 2008 (4), is largest, with a certificate of optimality. This is the method of Kim, Magnani
    and Boyd, without their semidefinite program.

    Parameters
    ----------
    p : float in [1, inf], default=1.0
        Norm of the weights: 1, as in the paper, gives the fewest kernels, inf the plain sum.
    reg : float, default=1e-8
        λ > 0, added to the sum of the covariances of the two classes in the feature space of
        kernels after `normalize`. A λ below the rounding errors, about 1e-14 times k(x, x), raises
        an error. Precomputed kernels in single precision have negative eigenvalues of about 1e-7
        times k(x, x); for them λ is increased tenfold until every kernel can be factorised, see
        `reg_`.
    solver : str or a solver object, default="newton"
        As for :class:`~manykernels.MKFDA`; solvers for the square loss only raise an error.
    normalize : {"multiplicative", "spherical", "trace"} or None, default=None
        Normalisation of the kernels, as for :class:`~manykernels.MKFDA`. The paper does not
        normalise Gaussian kernels.
    priors : array-like of shape (2,), default=None
        Class probabilities for the decision; by default the weighted frequencies. Class weights
        have no other effect.
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.

    Attributes
    ----------
    certificate_ : Certificate
        As for :class:`~manykernels.MKFDA`. The objective is minus the Fisher ratio, so ``primal``
        is negative.
    rule_ : str
        Always "discriminant"; see the notes.
    reg_ : float
        λ that was used: `reg`, unless it was increased.

    Notes
    -----
    The paper does not centre kernels. Its criterion depends on differences of means and of samples
    from their class mean only, so centring changes neither the best weights nor the direction; it
    is done here because it reduces rounding errors.

    The Fisher ratio is a decreasing function of the square loss on balanced classes. Therefore the
    best weights, and the direction, are those of ``MKFDA(class_weight="balanced")`` with the same
    `p`, ``normalize=None`` in both and ``reg * n_samples / 2`` for `reg`.

    The papers put the threshold midway between the projected class means. As λ → 0 the outputs of
    the training samples become one point for each class and do not predict those of new samples.
    Here each sample is left out in turn (in closed form, with fixed kernel weights), and its
    output is measured from the midpoint of the class means. A new sample is assigned to the
    nearest mean of these outputs in units of their pooled variance, with priors: the
    "discriminant" rule of :class:`~manykernels.MKFDA`, the only one here. A factor of the scores,
    with the least log loss in fifty folds of the left-out outputs, calibrates the probabilities.
    Because the weights are fixed, these can be overconfident for many kernels and few samples.

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
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel weights and the discriminant."""
        if sample_weight is None and y is not None and _is_multiclass(y):
            # Before X is read: the checks of scikit-learn pass a table for precomputed kernels.
            _refuse_more_than_two(np.unique(y))
        task = KimTask(float(self.reg), self.normalize, priors=self.priors)
        return fit_model(self, task, X, y, sample_weight)


class KimTask(FisherTask):
    """The direction of largest Fisher ratio, on kernels that are centred."""

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        # No class weights: in the ratio each class has its own mean and covariance.
        rows = discriminant_rows(estimator, X, y, sample_weight, None, groups=groups)
        _refuse_more_than_two(rows.classes)
        return rows

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        return ProblemSpec(KimLoss, len(rows), n_kernels, 1)

    def preparation(self, missing: str) -> Chain:
        return Chain([*super().preparation(missing).steps, _ZeroConstants()])

    def losses(self, data: KernelData, points: Sequence[Point]) -> list[Any]:
        stack, samples = data.stack, data.samples
        reg: Any = self.reg
        loss = KimLoss(stack, samples.labels, reg, samples.weights)
        if isinstance(data.source, MatrixSource):
            for j in range(stack.n_kernels):
                if _is_single_precision(stack.data[j]):
                    loss.raise_reg(np.eye(stack.n_kernels)[j])
        return [loss]

    def regressions(
        self, problems: list[Any], loss: Any, evaluation: Any, domain: Domain | None
    ) -> list[Regression]:
        """Return the direction of largest ratio, with left-out outputs for fixed weights."""
        samples = problems[0].samples
        # The rule is learnt from left-out outputs, so that its evaluation needs folds of these.
        folds = samples.folds(N_FOLDS)
        singly = evaluation.leave_one_out(samples.groups) + evaluation.midpoint
        return [Regression(evaluation.coefficients, LeftOut.cross_fitted(singly, folds), None)]

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        fitted = super().fitted(data, learnt, domains)
        # Biased: the fixed kernel weights were learnt from the samples that are left out.
        del fitted["left_out_log_proba_"], fitted["denoise_"]
        return fitted


@storable
class _ZeroConstants(UnitTrace):
    """Set kernels to zero of which centring leaves rounding errors only.

    Otherwise, if all kernels are constant, a ratio of rounding errors would be maximised.
    """

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        super()._learn(stack, weights, y)
        self.scale_ = np.where(self.scale_ > 0.0, 1.0, 0.0)


def _is_multiclass(y: ArrayLike) -> bool:
    check_targets(y)
    return type_of_target(check_y(y, multi_output=False)) == "multiclass"


def _refuse_more_than_two(classes: np.ndarray) -> None:
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported by KimFDA, got {len(classes)} classes: "
            f"{classes.tolist()}. MKFDA supports any number of classes."
        )


def _is_single_precision(matrix: np.ndarray) -> bool:
    """Return whether every entry is exactly representable in single precision."""
    return all(np.array_equal(row, row.astype(np.float32)) for row in matrix)
