"""Support vector machines on explicit features: from rows in blocks to fitted attributes.

The two passes of :mod:`._gathering`, one for a sample of the rows and one for the moments of all,
tell the features, their means and scales, and where to begin. The passes of
:mod:`manykernels.scale.hinge` follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..losses import FeatureLoss
from ..scale import RowBlocks
from ..scale.accumulation import ClassTargets, TargetCoding
from ..scale.hinge import Descent, HingeProblem, descend_together
from ..scale.hinge_pass import HingePass
from ..scale.plan import Plan
from ._feature_rows import FeatureRows
from ._gathering import Gathering
from ._learning import Learnt, WeightLearning, joined_certificate
from ._on_features import FeatureProblem, expansion_of
from ._progress import FitTask
from ._rows import class_weighted

# Passes over the rows before the first machine: for the sample, and for the moments.
_PASSES_BEFORE = 2


@dataclass(frozen=True)
class MachineGathering(Gathering):
    """As for one regression; the machines then have moments of their active rows, each its own.

    Weights of classes are factors of C, and the kernels know nothing of them.
    """

    def units(self, blocks: RowBlocks) -> np.ndarray | None:
        return None

    def copies(self, targets: TargetCoding, plan: Plan) -> int:
        # Two of each machine: while those of two parts of the rows are added, and then for its
        # loss and the factor of that. Two of all rows, and two while these are centred.
        n_machines = 1 if targets.width == 2 else targets.width
        return 2 * n_machines + 4


@dataclass(frozen=True)
class LearntInPasses(Learnt):
    """Machines on features; `passes` are those that each point of the history took."""

    passes: list[int]

    @property
    def weights(self) -> np.ndarray:
        return np.array([solution.weights for solution in self.solutions])

    @property
    def attributes(self) -> dict[str, Any]:
        attributes = super().attributes
        return {**attributes, "history_": {**attributes["history_"], "n_passes": self.passes}}


def learn_machines_on_features(
    rows: FeatureRows,
    blocks: RowBlocks,
    groups: np.ndarray,
    C: float,
    class_weight: Any,
    normalize: str | None,
    learning: WeightLearning,
    task: FitTask,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights of every group of machines, and the machines.

    `groups` are y of each class, (n_groups, n_classes, n_machines).
    """
    problem = FeatureProblem.of_rows(rows, normalize)
    problem.warn_of_constants(rows.names)
    assert isinstance(rows.targets, ClassTargets)
    classes, masses = rows.targets.classes, problem.masses
    weighted = class_weighted(class_weight, np.arange(len(classes)), classes, masses)
    assert weighted is not None
    factors = weighted / masses
    targets = ClassTargets(classes, factors)
    scaling = problem.scaling
    one_pass = partial(
        HingePass, rows.features, rows.origin + scaling.mean, scaling.factors, targets
    )
    squares = np.maximum(np.diagonal(problem.moments.gram), 0.0) * scaling.factors**2
    squares *= factors.max()
    assert problem.errors is not None
    errors = problem.errors * scaling.factors * np.sqrt(factors.max())
    sizes = np.bincount(problem.kernel_of, squares, len(rows.names)) / problem.moments.n_rows
    descents = [
        Descent(
            HingeProblem(C, signs, problem.kernel_of, sizes, np.sqrt(squares), errors),
            learning.domain,
            tol=learning.tol,
            max_iter=learning.max_iter,
            observer=task,
        )
        for signs in groups
    ]
    steps = [
        descent.steps(partial(_start, problem, signs))
        for descent, signs in zip(descents, groups, strict=True)
    ]
    solutions = descend_together(blocks, one_pass, steps)
    learnt = LearntInPasses(
        learning,
        rows.names,
        [],
        solutions,
        joined_certificate(solutions, learning.tol),
        task.stopped,
        [_PASSES_BEFORE + n for descent in descents for n in descent.passes],
    )
    learnt.warn_unless_converged()
    coefficients = np.hstack([one.coefficients for one in learnt.evaluations])
    return {
        **rows.attributes,
        **learnt.attributes,
        "classes_": classes,
        "coef_": coefficients,
        "intercept_": np.concatenate([one.biases for one in learnt.evaluations]),
        "_expansion": expansion_of(rows, problem, coefficients),
    }


def _start(
    problem: FeatureProblem, signs: np.ndarray, penalty: float
) -> tuple[FeatureLoss, np.ndarray]:
    """The square loss of all rows, and the biases of machines: features have mean zero."""
    biases = problem.moments.target_mean @ signs
    return FeatureLoss(problem.sums(signs), 1.0 / penalty), biases
