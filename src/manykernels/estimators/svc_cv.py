"""MKSVCCV: norm and penalty of support vector classification, chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from .._sklearn import StrOptions
from ..discriminant import LabelledKernels
from ..kernels import KernelStack
from ..kernels.transforms import preparation
from ..losses.box import BoxLoss
from ._base import CLASS_WEIGHT, KernelEstimator, estimator, fits
from ._choice import Choice, ChoiceParameters, refuse_single_split
from ._decisions import DecisionCalibration, HeldOutDecisions
from ._grid import Grid, checked_norms, checked_positive
from ._held_out import SplitOutputs
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._machine_path import MachinePath
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import KernelClassifier, gives_probabilities
from ._progress import FitTask
from ._rows import class_weighted, labelled_rows
from ._splits import LabelSplits, Split
from .svc import LOSSES, machine_groups

# Norms and penalties.
DEFAULT_NORMS = (1.0, 1.5, np.inf)
DEFAULT_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)


@estimator
class MKSVCCV(KernelClassifier, SupportAttributes, ChoiceParameters, KernelEstimator):
    """x"""

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

    calibration_: ClassVar[DecisionCalibration]

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p and C, then learn from all samples."""
        grid = Grid(
            {
                "p": checked_norms(self.ps, DEFAULT_NORMS),
                "C": checked_positive(self.Cs, DEFAULT_PENALTIES, "Cs"),
            }
        )
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        kernels = TrainingKernels.of(rows, rows.counts)
        # The weights of classes are those of each training part.
        samples = LabelledKernels(
            kernels.stack, rows.labels, rows.classes, rows.counts, rows.counts
        )
        splits = LabelSplits(self, rows, kernels.source, samples).of(y)
        refuse_single_split(self, len(splits))
        task = FitTask.begin(self, X, y, len(splits) + 1)
        held_out = self._held_out(splits, samples.frequencies, grid, task)
        scores = held_out.judged_by(check_scoring(self, scoring=self.scoring))
        choice = Choice.of(self, grid, scores, held_out.records, held_out.mean_log_loss)
        learning = WeightLearning.at(self, choice.params["p"])
        final = task.subtask("final fit", learning.max_iter + 1)
        prepared = MachineKernels.prepared(kernels, rows, self.normalize)
        machines = self._machines(rows.labels, rows.classes, rows.counts)
        learnt = learning.learn(
            machines(prepared.stack, choice.params), prepared.stack.names, final
        )
        final.end()
        return self._keep(
            task,
            LearntMachine.of(rows, prepared, learnt).attributes,
            choice.attributes,
            calibration_=held_out.calibration(choice.position),
        )

    def _machines(
        self, labels: np.ndarray, classes: np.ndarray, counts: np.ndarray | None
    ) -> ClassMachines:
        weights = class_weighted(self.class_weight, labels, classes, counts)
        return ClassMachines(
            machine_groups(labels, len(classes), self.multi_class),
            np.ones(len(labels)) if weights is None else weights,
            self.loss,
            INNER_SHARE * self.tol,
        )

    def _held_out(
        self, splits: list[Split], frequencies: np.ndarray, grid: Grid, task: FitTask
    ) -> HeldOutDecisions:
        # The kernels of a single split are not copied to another process.
        parallel = Parallel(n_jobs=None if len(splits) == 1 else self.n_jobs)
        parts = parallel(
            delayed(self._outputs_of_split)(
                split, grid, task.part(f"split {k + 1}/{len(splits)}", grid.size)
            )
            for k, split in enumerate(splits)
        )
        return HeldOutDecisions(parts, [split.judged for split in splits], frequencies)

    def _outputs_of_split(self, split: Split, grid: Grid, task: FitTask) -> SplitOutputs:
        train, test = split.parts()
        machines = self._machines(train.labels, train.classes, train.counts)
        path = MachinePath(grid, machines, self.tol, task)
        transform = preparation(self.normalize, center=False)
        outputs = path.outputs(train, test, transform, machines.n_outputs)
        task.end()
        return outputs

    @available_if(gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    @available_if(gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n_rows, n_classes)."""
        decisions = self.decision_function(X)
        return self.calibration_.log_probabilities(decisions)


@dataclass(frozen=True)
class ClassMachines:
    """Machines of one division of the samples into two for every column of `groups`."""

    groups: np.ndarray
    weights: np.ndarray
    loss: str
    inner_tol: float

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
