"""ConvexLocalizedSVC: kernel weights for every region, for support vector classification."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .._sklearn import StrOptions
from ..gating.judging import ClassJudge
from ..losses import Outline
from ._base import CLASS_WEIGHT, POSITIVE, KernelEstimator, estimator, fits
from ._learning import WeightLearning, WeightParameters
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import KernelClassifier
from ._progress import FitTask
from ._regional import RegionAttributes, RegionParameters, Regions
from ._rows import labelled_rows
from ._sharpness import SharpnessChoice
from .svc import LOSSES, machine_groups


@estimator
class ConvexLocalizedSVC(
    KernelClassifier,
    SupportAttributes,
    RegionParameters,
    RegionAttributes,
    WeightParameters,
    KernelEstimator,
):
    """Support vector classification with kernel weights for every region of the samples.

    Regions are found first, without labels; a sample may have shares in several. Each has a weight
    per kernel, ``‖weights_[l]‖_p ≤ 1``, learnt along with one machine for all regions. Unlike the
    gates of :class:`LocalizedSVC` this is a convex problem: the weights are the best ones for
    these regions, up to the gap of the certificate. With one region it is :class:`MKSVC`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of samples inside the margin, acting on the kernels after `normalize`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        As for :class:`MKSVC`.
    multi_class : {"shared", "separate"}, default="shared"
        More than two classes are learnt one against the rest, with the same weights for all
        classes or some for each: then `weights_` is (n_classes, n_regions, n_kernels).
    solver : str or a solver object, default="newton"
        "newton" is the one to use. "sip", "analytic" and "interleaved" can be used, too; others
        know one norm of all weights only.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.

    Notes
    -----
    From a kernel k each region l gets ``√(s_l(x) s_l(x')) k(x, x')``, with s the shares that sum
    to one; see :mod:`manykernels.gating.regions`. Regions that are found from kernels need the
    kernels of new samples with all training samples, not only with support vectors.

    Examples
    --------
    Labels that follow one column on the left, and another one on the right:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVC
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> side = np.repeat([-3.0, 3.0], 100)
    >>> y = np.where(side < 0, X[:, 0], X[:, 1]) > 0
    >>> X = np.column_stack([side, X])
    >>> kernels = [("place", RBF().on([0])), ("a", RBF().on([1])), ("b", RBF().on([2]))]
    >>> model = ConvexLocalizedSVC(kernels, regions=2, sharpness=4, p=1).fit(X, y)
    >>> model.weights_.shape, model.certificate_.converged
    ((2, 3), True)
    >>> sorted(model.kernel_names_[j] for j in model.weights_.argmax(axis=1))
    ['a', 'b']
    """

    C: float = 1.0
    loss: str = "hinge"
    multi_class: str = "shared"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": POSITIVE,
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions({"shared", "separate"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find regions, learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        groups = machine_groups(rows.labels, len(rows.classes), self.multi_class)
        make_loss, n_outputs = LOSSES[self.loss], groups.shape[2]
        regions = Regions.of(self, rows)
        outline = Outline(make_loss, len(rows), rows.data.n_kernels, n_outputs)
        regions.refuse_unfit(learning, outline)
        task = FitTask.begin(self, X, y, len(groups) * (learning.max_iter + 1))
        plain = regions.kernels(rows, rows.counts, learning.solver)
        penalties, inner_tol = self.C * rows.factors, INNER_SHARE * self.tol

        def losses_of(stack: Any, some: Any) -> list[Any]:
            return [make_loss(stack, one[some], penalties[some], inner_tol) for one in groups]

        judge = ClassJudge.of(rows.labels, len(rows.classes), rows.counts, rows.groups)
        choice = SharpnessChoice(rows, plain, self.normalize, learning, losses_of, judge)
        regions = choice.of(regions)
        kernels = MachineKernels.prepared(plain, rows, self.normalize, step=regions.step)
        losses = losses_of(kernels.stack, slice(None))
        learning = learning.by_region(kernels.stack.n_regions)
        learnt = learning.learn(losses, kernels.stack.names, task)
        machine = LearntMachine.of(rows, kernels, learnt)
        found = regions.attributes(learnt.weights, plain.stack.names)
        return self._keep(task, machine.attributes, found)
