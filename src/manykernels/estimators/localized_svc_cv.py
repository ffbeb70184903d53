"""LocalizedSVCCV: penalties of the machine and of the gate, chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .._sklearn import StrOptions
from ..gating.learning import GateLearning
from ..gating.machines import Machine
from ._base import CLASS_WEIGHT, KernelEstimator, estimator, fits
from ._choice import ChoiceParameters
from ._decisions import CalibratedDecisions
from ._gated import GatedKernels, GateParameters
from ._gated_path import GatedGrid
from ._grid import (
    MACHINE_NORMS,
    Grid,
    checked_gate_penalties,
    checked_norms,
    checked_positive,
)
from ._machines import SupportAttributes
from ._outputs import KernelClassifier
from ._rows import TrainingRows, labelled_rows
from ._search import ClassSearch
from .localized_svc import gated_machine

# C by default: wider than for plain weights, because a gate of simple kernels needs a large one.
DEFAULT_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)


@estimator
class LocalizedSVCCV(
    CalibratedDecisions,
    KernelClassifier,
    GateParameters,
    SupportAttributes,
    ChoiceParameters,
    KernelEstimator,
):
    """Localized support vector classification with its penalties chosen by cross-validation.

    For every C the gates of decreasing penalties are learnt one from the other, beginning with the
    constant gate of plain multiple kernel learning, and judged on samples that they have not seen.
    The decision values of these samples also tell how to turn decision values into probabilities.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms of the plain weights at which gates start; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.01, 0.1, 1, 10 and 100.
    penalties : array-like of float, optional
        Penalties on the gate to try, by default inf, 0.03 and 0.003; inf is plain multiple kernel
        learning. See :class:`LocalizedSVC`.
    multi_class : {"shared", "single"}, default="shared"
        More than two classes: one against the rest with one gate for all, or a single machine for
        all classes.
    cv : None, int, splitter or iterable of splits, default=None
        A number of folds, by default five: shuffled with a fixed seed, with the classes in equal
        parts. Rows that repeat others stay together, and a class of a single sample is in no test
        part.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is accuracy.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.

    Attributes
    ----------
    p_, C_, penalty_ : float
        The point of the grid with the best score; of equal ones, with the smallest log loss. See
        `one_standard_error`. Of points with a gate and no lower score than the best without, that
        with the least loss of held-out samples (log loss, or square error) is taken, if its loss
        is less by two standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVCCV
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])  # a corner: one straight line on each side
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedSVCCV(lines, ps=[2], Cs=[1, 10], random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.penalty_ < np.inf)
    (True, True)
    """

    ps: Any = None
    Cs: Any = None
    penalties: Any = None
    multi_class: str = "shared"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
        "penalties": ["array-like", None],
        "multi_class": [StrOptions({"shared", "single"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p, C and the penalty on the gate, then learn from all samples."""
        learning = GateLearning.of_path(self)
        grid = Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, DEFAULT_PENALTIES, "Cs"),
                "penalty": checked_gate_penalties(self.penalties),
            }
        )
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        kernels = GatedKernels.of(rows, self.normalize, learning.gate, self.gating_features)
        search = ClassSearch.of(self, X, y, rows, kernels.kernels)
        gated = GatedGrid(grid, learning, lambda params: self._machine(rows, params["C"]))
        choice, found = search.choose(grid, gated.held_out_outputs(kernels, search))
        learnt = gated.learn(kernels.samples, choice.params, search.task)
        own = kernels.attributes(rows, learnt, learnt.dual, learnt.biases)
        return self._keep(search.task, own, found)

    def _machine(self, rows: TrainingRows, C: float) -> Machine:
        return gated_machine(rows, C * rows.factors, single=self.multi_class == "single")
