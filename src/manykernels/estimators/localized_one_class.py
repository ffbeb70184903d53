"""LocalizedOneClassSVM: kernels that count in different regions, for novelty detection."""

from __future__ import annotations

from typing import Any, Self

from ..gating.learning import GateLearning
from ..gating.machines import BoxMachine
from ..losses.hinge import one_class_problem
from ._base import KernelEstimator, estimator, fits
from ._gated import BrakeParameters, GatedKernels, GateParameters
from ._machines import SupportAttributes
from ._outputs import NoveltyDetector, boundary_shift
from ._progress import FitTask
from ._rows import unlabelled_rows


@estimator
class LocalizedOneClassSVM(
    NoveltyDetector, BrakeParameters, GateParameters, SupportAttributes, KernelEstimator
):
    """One-class support vector machine with kernels weighted differently in different regions.

    Parameters
    ----------
    gating : {"softmax", "gaussian", "cluster", "instance", "sigmoid"} or a gate, default="softmax"
        As in :class:`LocalizedSVC`, but of competing kernels: with nothing to be judged by, gates
        that may all open do so where samples are far from the origin, and what lies between looks
        like an outlier.

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

    gating: Any = "softmax"

    @fits
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = unlabelled_rows(self, X, sample_weight)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        machine = BoxMachine([one_class_problem(rows.factors, self.nu)])
        kernels = GatedKernels.of(rows, self.normalize, learning.gate, self.gating_features)
        learnt = kernels.learn(learning, [machine], [], task)
        (point,) = learnt.points
        size = float(point.kernel.diagonal().max() * learnt.dual.sum())
        intercept = learnt.biases + boundary_shift(learnt.biases, size)
        fitted = kernels.attributes(rows, learnt, learnt.dual, intercept)
        return self._keep(task, fitted, offset_=-float(intercept[0]))
