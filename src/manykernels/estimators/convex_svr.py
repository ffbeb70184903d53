"""ConvexLocalizedSVR: kernel weights for every region, for support vector regression."""

from __future__ import annotations

from typing import Any, Self

from ..gating.judging import ValueJudge
from ..losses import EpsilonInsensitiveLoss, Outline
from ._base import KernelEstimator, estimator, fits
from ._learning import WeightLearning, WeightParameters
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import EpsilonParameters, KernelRegressor
from ._progress import FitTask
from ._regional import RegionAttributes, RegionParameters, Regions
from ._rows import targeted_rows
from ._sharpness import SharpnessChoice


@estimator
class ConvexLocalizedSVR(
    KernelRegressor,
    EpsilonParameters,
    SupportAttributes,
    RegionParameters,
    RegionAttributes,
    WeightParameters,
    KernelEstimator,
):
    """Support vector regression with kernel weights for every region of the samples.

    :class:`ConvexLocalizedSVC` with the ε-insensitive loss. With one region it is :class:`MKSVR`.

    Examples
    --------
    A function that is smooth on the left, and oscillates on the right:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVR
    >>> from manykernels.kernels import RBF
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0, X[:, 0], np.sin(12 * X[:, 0]))
    >>> kernels = [("wide", RBF(0.3)), ("narrow", RBF(30.0))]
    >>> model = ConvexLocalizedSVR(kernels, regions=2, sharpness=4, p=1, C=10.0).fit(X, y)
    >>> right = model.memberships([[1.5]]).argmax()
    >>> bool(model.weights_[right, 1] > model.weights_[1 - right, 1])
    True
    """

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find regions, learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = targeted_rows(self, X, y, sample_weight)
        regions = Regions.of(self, rows)
        outline = Outline(EpsilonInsensitiveLoss, len(rows), rows.data.n_kernels, 1)
        regions.refuse_unfit(learning, outline)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        plain = regions.kernels(rows, rows.counts, learning.solver)
        targets, penalties = rows.targets, self.C * rows.factors
        epsilon, inner_tol = self.epsilon, INNER_SHARE * self.tol

        def losses_of(stack: Any, some: Any) -> list[Any]:
            problem = targets[some], penalties[some], epsilon, inner_tol
            return [EpsilonInsensitiveLoss(stack, *problem)]

        judge = ValueJudge(targets, rows.counts, rows.groups)
        choice = SharpnessChoice(rows, plain, self.normalize, learning, losses_of, judge)
        regions = choice.of(regions)
        kernels = MachineKernels.prepared(plain, rows, self.normalize, step=regions.step)
        learning = learning.by_region(kernels.stack.n_regions)
        losses = losses_of(kernels.stack, slice(None))
        learnt = learning.learn(losses, kernels.stack.names, task)
        machine = LearntMachine.of(rows, kernels, learnt)
        found = regions.attributes(learnt.weights, plain.stack.names)
        return self._keep(task, machine.attributes, found)
