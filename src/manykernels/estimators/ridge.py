"""MKRidge: ℓp-norm multiple kernel ridge regression of one target or several."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..losses import Outline, SquareLoss
from ..scale import Approximation
from ._approximated import (
    ApproximationParameters,
    LearnsFromMoments,
    RegressorOfStreams,
    feature_learning,
    refuse_with_features,
)
from ._base import POSITIVE, KernelEstimator, estimator, fits
from ._feature_rows import FeatureRows
from ._gathering import Gathering
from ._kernels import TrainingKernels
from ._learning import WeightLearning, WeightParameters
from ._on_features import learn_ridge_on_features
from ._outputs import TargetRegressor
from ._progress import FitTask
from ._ridge import groups_of, learn_ridge
from ._rows import ridge_rows


@estimator
class MKRidge(
    RegressorOfStreams,
    LearnsFromMoments,
    ApproximationParameters,
    TargetRegressor,
    WeightParameters,
    KernelEstimator,
):
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

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the regression.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The numbers to be predicted.
        """
        if (approximation := self._approximation_for(X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        learning = WeightLearning.of(self)
        rows = ridge_rows(self, X, y, sample_weight)
        groups = groups_of(rows.targets, self.multi_target)
        outline = Outline(SquareLoss, len(rows), rows.data.n_kernels, len(groups[0]))
        rows = learning.admit(rows, outline)
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
