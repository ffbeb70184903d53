"""LocalizedSVC: kernels that count in different regions, for classification."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from .._sklearn import StrOptions
from ..gating.judging import ClassJudge, Judge
from ..gating.learning import GateLearning
from ..gating.machines import BoxMachine, Machine, MulticlassMachine
from ..losses.hinge import hinge_problem
from ._base import CLASS_WEIGHT, POSITIVE, KernelEstimator, estimator, fits
from ._gated import BrakeParameters, GatedKernels, GateParameters
from ._machines import SupportAttributes
from ._outputs import KernelClassifier
from ._progress import FitTask
from ._rows import TrainingRows, labelled_rows, one_against_rest


@estimator
class LocalizedSVC(
    KernelClassifier, BrakeParameters, GateParameters, SupportAttributes, KernelEstimator
):
    """Support vector classification with kernels weighted differently in different regions.

    A gate, learnt along with the machine, says how much each kernel counts at each sample:
    ``k(x, x') = Σ_p η_p(x) k_p(x, x') η_p(x')``.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of samples inside the margin.
    multi_class : {"shared", "separate", "single"}, default="shared"
        More than two classes: one against the rest with one gate for all, or with a gate for
        each; or a single machine for all classes (section 2.4.2 of the paper).
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.

    Notes
    -----
    With ``multi_class="separate"`` and more than two classes, `gating_coef_` and
    `restart_objectives_` are lists, one entry per class.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])  # a corner: one straight line on each side
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedSVC(lines, C=10.0, normalize=None, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    C: float = 1.0
    multi_class: str = "shared"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": POSITIVE,
        "multi_class": [StrOptions({"shared", "separate", "single"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        machines = self._machines(rows)
        task = FitTask.begin(self, X, y, learning.max_progress(len(machines)))
        kernels = GatedKernels.of(rows, self.normalize, learning.gate, self.gating_features)
        learnt = kernels.learn(learning, machines, self._judges(rows), task)
        return self._keep(task, kernels.attributes(rows, learnt, learnt.dual, learnt.biases))

    def _machines(self, rows: TrainingRows) -> list[Machine]:
        """One machine for every gate."""
        penalties = self.C * rows.factors
        machine = gated_machine(rows, penalties, single=self.multi_class == "single")
        if self.multi_class == "separate" and isinstance(machine, BoxMachine):
            return [BoxMachine([problem]) for problem in machine.problems]
        return [machine]

    def _judges(self, rows: TrainingRows) -> list[Judge]:
        """A judge for every gate."""
        judge = ClassJudge.of(rows.labels, len(rows.classes), rows.counts, rows.groups)
        if len(rows.classes) > 2 and self.multi_class == "separate":
            return [judge.one_against_rest(k) for k in range(len(rows.classes))]
        return [judge]


def gated_machine(rows: TrainingRows, penalties: np.ndarray, *, single: bool) -> Machine:
    """Machines of one class against the rest, or, of more than two classes, a `single` one."""
    n_classes = len(rows.classes)
    if single and n_classes > 2:
        return MulticlassMachine(rows.labels, penalties, n_classes)
    columns = one_against_rest(rows.labels, n_classes).T
    return BoxMachine([hinge_problem(signs, penalties) for signs in columns])
