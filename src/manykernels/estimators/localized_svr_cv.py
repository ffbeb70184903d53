"""LocalizedSVRCV: penalties of regression and gate, and ε, chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from ..gating.learning import GateLearning
from ..gating.machines import BoxMachine, Machine
from ..losses.hinge import epsilon_insensitive_problem
from ._base import KernelEstimator, estimator, fits
from ._choice import ChoiceParameters
from ._gated import GatedKernels, GateParameters
from ._gated_path import GatedGrid
from ._grid import (
    MACHINE_NORMS,
    Grid,
    checked_gate_penalties,
    checked_non_negative,
    checked_norms,
    checked_positive,
)
from ._machines import SupportAttributes
from ._outputs import KernelRegressor
from ._rows import TrainingRows, spread_of_targets, targeted_rows
from ._search import ValueSearch
from .svr_cv import DEFAULT_PENALTIES, DEFAULT_WIDTHS


@estimator
class LocalizedSVRCV(
    KernelRegressor, GateParameters, SupportAttributes, ChoiceParameters, KernelEstimator
):
    """Localized support vector regression with its penalties and ε chosen by cross-validation.

    For every C and ε the gates of decreasing penalties are learnt one from the other, beginning
    with the constant gate of plain multiple kernel learning, and judged on samples that they have
    not seen.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms of the plain weights at which gates start; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.1, 1, 10 and 100 standard deviations of y.
    epsilons : array-like of float, optional
        ε to try; by default 0.01 and 0.1 times the standard deviation of y.
    penalties : array-like of float, optional
        Penalties on the gate to try, by default inf, 0.03 and 0.003; inf is plain multiple kernel
        learning. See :class:`LocalizedSVR`.
    cv : None, int, splitter or iterable of splits, default=None
        A number of folds, by default five, shuffled with a fixed seed; rows that repeat others
        stay together.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is R².

    Attributes
    ----------
    left_out_predictions_ : ndarray of shape (n_samples,)
        Prediction of each training row by the model without its fold, at the point that is best
        in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    p_, C_, epsilon_, penalty_ : float
        The point of the grid with the best score; of equal ones, the simplest. See
        `one_standard_error`. Of points with a gate and no lower score than the best without, that
        with the least loss of held-out samples (log loss, or square error) is taken, if its loss
        is less by two standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVRCV
    >>> from manykernels.kernels import Linear
    >>> x = np.linspace(-1, 1, 80)[:, None]
    >>> lines = [("falling", Linear()), ("rising", Linear())]
    >>> model = LocalizedSVRCV(lines, ps=[2], Cs=[10], epsilons=[0.03], random_state=0)
    >>> model = model.fit(x, np.abs(x[:, 0]))
    >>> bool(model.score(x, np.abs(x[:, 0])) > 0.95), bool(model.penalty_ < np.inf)
    (True, True)
    """

    ps: Any = None
    Cs: Any = None
    epsilons: Any = None
    penalties: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
        "epsilons": ["array-like", None],
        "penalties": ["array-like", None],
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose p, C, ε and the penalty on the gate, then learn from all samples."""
        learning = GateLearning.of_path(self)
        rows = targeted_rows(self, X, y, sample_weight)
        spread = spread_of_targets(rows)
        grid = Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, spread * np.array(DEFAULT_PENALTIES), "Cs"),
                "epsilon": checked_non_negative(
                    self.epsilons, spread * np.array(DEFAULT_WIDTHS), "epsilons"
                ),
                "penalty": checked_gate_penalties(self.penalties),
            }
        )
        kernels = GatedKernels.of(rows, self.normalize, learning.gate, self.gating_features)
        search = ValueSearch.of(self, X, y, rows, kernels.kernels)
        gated = GatedGrid(grid, learning, lambda params: _machine(rows, params))
        choice, found = search.choose(grid, gated.held_out_outputs(kernels, search))
        learnt = gated.learn(kernels.samples, choice.params, search.task)
        own = kernels.attributes(rows, learnt, learnt.dual, learnt.biases)
        return self._keep(search.task, own, found)


def _machine(rows: TrainingRows, params: dict[str, float]) -> Machine:
    penalties = params["C"] * rows.factors
    return BoxMachine([epsilon_insensitive_problem(rows.targets, penalties, params["epsilon"])])
