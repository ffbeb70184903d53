"""LocalizedSVR: kernels that count in different regions, for regression."""

from __future__ import annotations

from typing import Any, Self

from ..gating.judging import ValueJudge
from ..gating.learning import GateLearning
from ..gating.machines import BoxMachine
from ..losses.hinge import epsilon_insensitive_problem
from ._base import KernelEstimator, estimator, fits
from ._gated import BrakeParameters, GatedKernels, GateParameters
from ._machines import SupportAttributes
from ._outputs import EpsilonParameters, KernelRegressor
from ._progress import FitTask
from ._rows import targeted_rows


@estimator
class LocalizedSVR(
    KernelRegressor,
    EpsilonParameters,
    BrakeParameters,
    GateParameters,
    SupportAttributes,
    KernelEstimator,
):
    """Support vector regression with kernels weighted differently in different regions.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVR
    >>> from manykernels.kernels import Linear
    >>> x = np.linspace(-1, 1, 80)[:, None]
    >>> y = np.abs(x[:, 0])  # two straight lines
    >>> lines = [("falling", Linear()), ("rising", Linear())]
    >>> model = LocalizedSVR(lines, C=10.0, epsilon=0.01, normalize=None, random_state=0)
    >>> bool(model.fit(x, y).score(x, y) > 0.98)
    True
    """

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = targeted_rows(self, X, y, sample_weight)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        problem = epsilon_insensitive_problem(rows.targets, self.C * rows.factors, self.epsilon)
        kernels = GatedKernels.of(rows, self.normalize, learning.gate, self.gating_features)
        judge = ValueJudge(rows.targets, rows.counts, rows.groups)
        learnt = kernels.learn(learning, [BoxMachine([problem])], [judge], task)
        return self._keep(task, kernels.attributes(rows, learnt, learnt.dual, learnt.biases))
