"""MKOneClassSVM: ℓp-norm multiple kernel novelty detection."""

from __future__ import annotations

from typing import Any, Self

from ..losses import OneClassLoss, Outline
from ._base import KernelEstimator, estimator, fits
from ._learning import WeightLearning, WeightParameters
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import NoveltyDetector, boundary_shift
from ._progress import FitTask
from ._rows import unlabelled_rows


@estimator
class MKOneClassSVM(NoveltyDetector, SupportAttributes, WeightParameters, KernelEstimator):
    """ℓp-norm multiple kernel one-class support vector machine.

    Learns one weight per kernel along with a half-space that holds most samples and stays away
    from the origin of the feature space of the weighted sum. With one kernel and
    ``normalize=None`` it is scikit-learn's ``OneClassSVM``.

    The best weights are those by which the half-space is *furthest* from the origin: kernels
    under which samples look alike. At p = 1 that is often one kernel, the widest; larger p give
    weight to more of them.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKOneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> model = MKOneClassSVM(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    array([ 1, -1])
    """

    @fits
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = unlabelled_rows(self, X, sample_weight)
        rows = learning.admit(rows, Outline(OneClassLoss, len(rows), rows.data.n_kernels, 1))
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        # The distance from the origin counts: a constant added to a kernel changes the machine.
        kernels = MachineKernels.of(rows, self.normalize, learning.solver, has_bias=False)
        loss = OneClassLoss(kernels.stack, self.nu, rows.counts, INNER_SHARE * self.tol)
        learnt = learning.solve([loss], kernels.stack.names, task)
        machine = LearntMachine.of(rows, kernels, learnt)
        # Adding b to the intercept raises the objective by b Σα at most: sample losses only fall.
        total = float(machine.vectors.dual.sum())
        size = float((learnt.weights[0] @ kernels.stack.row_diag).max()) * total
        shift = boundary_shift(machine.intercept, size)
        machine = machine.widened(shift, float(shift[0]) * total)
        machine.learnt.warn_unless_converged()
        return self._keep(task, machine.attributes, offset_=-float(machine.intercept[0]))
