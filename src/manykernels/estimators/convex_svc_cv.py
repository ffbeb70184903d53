"""ConvexLocalizedSVCCV: regions and penalties of classification, chosen by cross-validation."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

from .._sklearn import StrOptions
from ._base import CLASS_WEIGHT, KernelEstimator, estimator, fits
from ._choice import ChoiceParameters, ChosenWeights
from ._decisions import CalibratedDecisions
from ._grid import MACHINE_NORMS, Grid, checked_norms, checked_positive
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._machine_path import held_out_outputs
from ._machines import LearntMachine, MachineKernels, SupportAttributes
from ._outputs import KernelClassifier
from ._regional import RegionAttributes
from ._regional_path import (
    KernelsByRegion,
    RegionGridParameters,
    chosen_regions,
    region_values,
)
from ._rows import labelled_rows
from ._search import ClassSearch
from .svc import LOSSES
from .svc_cv import ClassMachines

# C by default: wider than for plain weights, because regions of simple kernels need a large one.
DEFAULT_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)


@estimator
class ConvexLocalizedSVCCV(
    CalibratedDecisions,
    KernelClassifier,
    SupportAttributes,
    RegionGridParameters,
    RegionAttributes,
    ChoiceParameters,
    ChosenWeights,
    KernelEstimator,
):
    """Kernel weights for every region, with the regions and C chosen by cross-validation.

    :class:`ConvexLocalizedSVC` at every point of a grid, judged on samples that neither the
    regions nor the kernel weights and the machines have seen. One region, which is plain multiple
    kernel learning, is among the candidates. The decision values of the samples, at the chosen
    point, also tell how to turn decision values into probabilities.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.01, 0.1, 1, 10 and 100, which suit normalised kernels.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        As for :class:`MKSVC`.
    multi_class : {"shared", "separate"}, default="shared"
        More than two classes are learnt one against the rest, with the same weights for all
        classes or some for each: then `weights_` is (n_classes, n_regions, n_kernels).
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        A number of folds, by default five: shuffled with a fixed seed, with the classes in equal
        parts. Rows that repeat others stay together, and a class of a single sample is in no test
        part. A pair is a
        validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is accuracy.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" ones are those of each training part.

    Attributes
    ----------
    p_, C_ : float
        The point of the grid with the best score; of equal ones, with the fewest regions, and of
        these with the smallest log loss. See `one_standard_error`.
        Of points with regions and no lower score than the best without, that with the least log
        loss of held-out samples is taken, if it is less by two standard errors.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. In every fold
    the scales of the kernels, the regions, the weights and the machines come from the training
    part.

    Examples
    --------
    Labels that follow one column on the left, and another one on the right:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVCCV
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> side = np.repeat([-3.0, 3.0], 100)
    >>> y = np.where(side < 0, X[:, 0], X[:, 1]) > 0
    >>> X = np.column_stack([side, X])
    >>> kernels = [("place", RBF().on([0])), ("a", RBF().on([1])), ("b", RBF().on([2]))]
    >>> model = ConvexLocalizedSVCCV(kernels, regions=[1, 2], ps=[1], Cs=[1]).fit(X, y)
    >>> model.n_regions_, model.validation_curve().shape
    (2, (2, 2, 1, 1))
    >>> model.predict_proba(X[:1]).shape, model.memberships(X[:1]).shape
    ((1, 2), (1, 2))
    """

    ps: Any = None
    Cs: Any = None
    loss: str = "hinge"
    multi_class: str = "shared"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions({"shared", "separate"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose regions, p and C, then learn from all samples."""
        grid = Grid(
            {
                **region_values(self),
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, DEFAULT_PENALTIES, "Cs"),
            }
        )
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=False)
        search = ClassSearch.of(self, X, y, rows, kernels)
        machines = partial(ClassMachines.of, self)
        by_region = KernelsByRegion(grid, self.random_state)
        choice, found = search.choose(grid, held_out_outputs(search, grid, machines, by_region))
        learning = WeightLearning.at(self, choice.params["p"])
        regions = chosen_regions(self, choice.params)
        prepared = MachineKernels.prepared(kernels, rows, self.normalize, step=regions.step)
        losses = machines(rows)(prepared.stack, choice.params)
        final = search.task.subtask("final fit", len(losses) * (learning.max_iter + 1))
        learning = learning.by_region(prepared.stack.n_regions)
        learnt = learning.learn(losses, prepared.stack.names, final)
        final.end()
        machine = LearntMachine.of(rows, prepared, learnt)
        own = regions.attributes(learnt.weights, kernels.stack.names)
        return self._keep(search.task, machine.attributes, own, found)
