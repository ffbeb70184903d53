"""ConvexLocalizedSVRCV: regions, penalty and ε of regression, chosen by cross-validation."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from ._base import KernelEstimator, estimator, fits
from ._choice import ChoiceParameters, ChosenWeights
from ._grid import MACHINE_NORMS, Grid, checked_non_negative, checked_norms, checked_positive
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._machine_path import held_out_outputs
from ._machines import LearntMachine, MachineKernels, SupportAttributes
from ._outputs import KernelRegressor
from ._regional import RegionAttributes
from ._regional_path import (
    KernelsByRegion,
    RegionGridParameters,
    chosen_regions,
    region_values,
)
from ._rows import spread_of_targets, targeted_rows
from ._search import ValueSearch
from .svr_cv import DEFAULT_PENALTIES, DEFAULT_WIDTHS, ValueMachines


@estimator
class ConvexLocalizedSVRCV(
    KernelRegressor,
    SupportAttributes,
    RegionGridParameters,
    RegionAttributes,
    ChoiceParameters,
    ChosenWeights,
    KernelEstimator,
):
    """Regression with weights for every region; regions, C and ε chosen by cross-validation.

    :class:`ConvexLocalizedSVR` at every point of a grid, judged on samples that neither the
    regions nor the kernel weights and the machine have seen. One region, which is plain multiple
    kernel learning, is among the candidates.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.1, 1, 10 and 100 times the standard deviation of y.
    epsilons : array-like of float, optional
        ε to try; by default 0.01 and 0.1 times the standard deviation of y.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is R².

    Attributes
    ----------
    left_out_predictions_ : ndarray of shape (n_samples,)
        Prediction of each training row by the model without its fold, at the point that is best
        in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    p_, C_, epsilon_ : float
        The point of the grid with the best score, of equal ones the simplest; see
        `one_standard_error`. Of points with regions and no lower score than the best without,
        that with the least square error of held-out samples is taken, if it is less by two
        standard errors.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. So is the
    standard deviation of y. In every fold the scales of the kernels, the regions, the weights and
    the machine come from the training part.

    Examples
    --------
    Two straight lines, each of which is right on one side:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVRCV
    >>> from manykernels.kernels import Linear
    >>> X = np.random.default_rng(0).uniform(-1, 1, (120, 1))
    >>> model = ConvexLocalizedSVRCV(Linear(), regions=[1, 2], Cs=[10]).fit(X, np.abs(X[:, 0]))
    >>> model.n_regions_, bool(model.best_score_ > 0.95)
    (2, True)
    """

    ps: Any = None
    Cs: Any = None
    epsilons: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
        "epsilons": ["array-like", None],
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose regions, p, C and ε, then learn from all samples."""
        rows = targeted_rows(self, X, y, sample_weight)
        spread = spread_of_targets(rows)
        grid = Grid(
            {
                **region_values(self),
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, spread * np.array(DEFAULT_PENALTIES), "Cs"),
                "epsilon": checked_non_negative(
                    self.epsilons, spread * np.array(DEFAULT_WIDTHS), "epsilons"
                ),
            }
        )
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=False)
        search = ValueSearch.of(self, X, y, rows, kernels)
        machines = partial(ValueMachines.of, self)
        by_region = KernelsByRegion(grid, self.random_state)
        choice, found = search.choose(grid, held_out_outputs(search, grid, machines, by_region))
        learning = WeightLearning.at(self, choice.params["p"])
        final = search.task.subtask("final fit", learning.max_iter + 1)
        regions = chosen_regions(self, choice.params)
        prepared = MachineKernels.prepared(kernels, rows, self.normalize, step=regions.step)
        losses = machines(search.samples)(prepared.stack, choice.params)
        learning = learning.by_region(prepared.stack.n_regions)
        learnt = learning.learn(losses, prepared.stack.names, final)
        final.end()
        machine = LearntMachine.of(rows, prepared, learnt)
        own = regions.attributes(learnt.weights, kernels.stack.names)
        return self._keep(search.task, machine.attributes, own, found)
