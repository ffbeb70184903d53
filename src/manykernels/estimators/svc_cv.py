"""MKSVCCV: norm and penalty of support vector classification, chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from .._sklearn import StrOptions
from ..kernels import KernelStack
from ..losses.box import BoxLoss
from ._base import CLASS_WEIGHT, KernelEstimator, estimator, fits
from ._choice import ChoiceParameters, ChosenWeights
from ._decisions import CalibratedDecisions
from ._grid import MACHINE_NORMS, Grid, checked_norms, checked_positive
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._machine_path import held_out_outputs
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import KernelClassifier
from ._rows import class_weighted, labelled_rows
from ._search import ClassSearch
from .svc import LOSSES, machine_groups

# Norms and penalties. Measured against grids of 45 to 91 points on 15 data sets (tables, single
# columns, views): accuracy 0.1 % lower in the mean and 1.2 % at most, which is one standard error.
DEFAULT_PENALTIES = (0.01, 0.1, 1.0, 10.0)


@estimator
class MKSVCCV(
    CalibratedDecisions,
    KernelClassifier,
    SupportAttributes,
    ChoiceParameters,
    ChosenWeights,
    KernelEstimator,
):
    """Multiple kernel support vector classification with p and C chosen by cross-validation.

    The models of a grid are solved as one path, each from its neighbours and each with a
    certificate. They are scored on samples that neither the kernel weights nor the machines have
    seen. The decision values of these samples, at the chosen point, also tell how to turn decision
    values into probabilities.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.01, 0.1, 1 and 10, which suit normalised kernels.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``C Σ max(0, 1 − y f)`` or ``½ C Σ max(0, 1 − y f)²``.
    multi_class : {"shared", "separate"}, default="shared"
        More than two classes are learnt one against the rest, with one weight vector for all
        classes or one for each.
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
        The point of the grid with the best score; of equal ones, with the smallest log loss. See
        `one_standard_error`.
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Learnt kernel weights, those of the fit to all samples; a row for each class if separate.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. In every fold
    the scales of the kernels, their weights and the machines come from the training part.

    Two numbers make probabilities of decision values: a slope and an exponent of the class
    frequencies. They are those of least log loss on the held-out samples, however classes are
    weighted. ``predict`` takes the class of the largest decision value, which need not be the most
    probable one.

    To find rare classes, weight them and judge accordingly: ``class_weight="balanced"`` with
    ``scoring="balanced_accuracy"``. Neither alone is enough, since accuracy favours the C at which
    rare samples are missed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKSVCCV(ps=[1, 2], Cs=[0.1, 1, 10]).fit(X, y)
    >>> model.validation_curve().shape
    (2, 3)
    >>> model.best_score_ > 0.95
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
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
        """Choose p and C, then learn from all samples."""
        grid = Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, DEFAULT_PENALTIES, "Cs"),
            }
        )
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        kernels = TrainingKernels.of(rows, rows.counts)
        search = ClassSearch.of(self, X, y, rows, kernels)
        machines = partial(ClassMachines.of, self)
        choice, found = search.choose(grid, held_out_outputs(search, grid, machines))
        learning = WeightLearning.at(self, choice.params["p"])
        prepared = MachineKernels.prepared(kernels, rows, self.normalize)
        losses = machines(rows)(prepared.stack, choice.params)
        final = search.task.subtask("final fit", len(losses) * (learning.max_iter + 1))
        learnt = learning.learn(losses, prepared.stack.names, final)
        final.end()
        machine = LearntMachine.of(rows, prepared, learnt)
        return self._keep(search.task, machine.attributes, found)


@dataclass(frozen=True)
class ClassMachines:
    """Machines of one division of the samples into two for every column of `groups`."""

    groups: np.ndarray
    weights: np.ndarray
    loss: str
    inner_tol: float

    @classmethod
    def of(cls, estimator: Any, samples: Any) -> ClassMachines:
        """Machines of training samples, with weights of classes that are learnt from these."""
        labels, classes = samples.labels, samples.classes
        weights = class_weighted(estimator.class_weight, labels, classes, samples.counts)
        return cls(
            machine_groups(labels, len(classes), estimator.multi_class),
            np.ones(len(labels)) if weights is None else weights,
            estimator.loss,
            INNER_SHARE * estimator.tol,
        )

    @property
    def n_outputs(self) -> int:
        n_groups, _, n_columns = self.groups.shape
        return n_groups * n_columns

    def __call__(self, stack: KernelStack, params: dict[str, float]) -> list[BoxLoss]:
        """Losses, one for each group."""
        penalties = params["C"] * self.weights
        return [
            LOSSES[self.loss](stack, signs, penalties, self.inner_tol) for signs in self.groups
        ]
