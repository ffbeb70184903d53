"""LocalizedOneClassSVM: kernels that count in different regions, for novelty detection."""

from __future__ import annotations

from typing import Any, Self

from ..gating.learning import GateLearning
from ..gating.machines import BoxMachine
from ..losses.hinge import one_class_problem
from ._base import KernelEstimator, estimator, fits
from ._gated import GatedKernels, GateParameters
from ._machines import SupportAttributes
from ._outputs import NoveltyDetector, boundary_shift
from ._progress import FitTask
from ._rows import unlabelled_rows


@estimator
class LocalizedOneClassSVM(NoveltyDetector, GateParameters, SupportAttributes, KernelEstimator):
    """One-class support vector machine with kernels weighted differently in different regions.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedOneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2))
    >>> model = LocalizedOneClassSVM(nu=0.1, random_state=0).fit(X)
    >>> model.predict([[0.0, 0.0]])
    array([1])
    """

    @fits
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = unlabelled_rows(self, X, sample_weight)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        machine = BoxMachine([one_class_problem(rows.factors, self.nu)])
        kernels = GatedKernels.of(rows, self.normalize, self.gating_features)
        learnt = kernels.learn(learning, [machine], task)
        (point,) = learnt.points
        size = float(point.kernel.diagonal().max() * learnt.dual.sum())
        intercept = learnt.biases + boundary_shift(learnt.biases, size)
        fitted = kernels.attributes(rows, learnt, learnt.dual, intercept)
        return self._keep(task, fitted, offset_=-float(intercept[0]))
