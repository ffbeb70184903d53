"""MKSVR: ℓp-norm multiple kernel support vector regression."""

from __future__ import annotations

from typing import Any, Self

from ..losses import EpsilonInsensitiveLoss, Outline
from ._base import KernelEstimator, estimator, fits
from ._learning import WeightLearning, WeightParameters
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import EpsilonParameters, KernelRegressor
from ._progress import FitTask
from ._rows import targeted_rows


@estimator
class MKSVR(
    KernelRegressor, EpsilonParameters, SupportAttributes, WeightParameters, KernelEstimator
):
    """ℓp-norm multiple kernel support vector regression.

    Learns one weight per kernel along with an ε-insensitive regression on the weighted sum. With
    one kernel and ``normalize=None`` it is scikit-learn's ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKSVR
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 2))
    >>> y = np.sin(2 * X[:, 0])
    >>> kernels = [("first", RBF(1.0).on([0])), ("second", RBF(1.0).on([1]))]
    >>> model = MKSVR(kernels, p=1, C=10.0, epsilon=0.05).fit(X, y)
    >>> dict(zip(model.kernel_names_, model.weights_.round(2).tolist()))
    {'first': 1.0, 'second': 0.0}
    """

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = targeted_rows(self, X, y, sample_weight)
        outline = Outline(EpsilonInsensitiveLoss, len(rows), rows.data.n_kernels, 1)
        rows = learning.admit(rows, outline)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        kernels = MachineKernels.of(rows, self.normalize, learning.solver)
        penalties, inner_tol = self.C * rows.factors, INNER_SHARE * self.tol
        loss = EpsilonInsensitiveLoss(
            kernels.stack, rows.targets, penalties, self.epsilon, inner_tol
        )
        learnt = learning.learn([loss], kernels.stack.names, task)
        return self._keep(task, LearntMachine.of(rows, kernels, learnt).attributes)
