"""Alignment: a machine on the sum of kernels that is aligned with the targets."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier

from .._sklearn import StrOptions
from ..estimators._base import KernelEstimator, estimator, fits
from ..estimators._progress import FitTask
from ..estimators._ridge import ScaledTargets
from ..estimators._rows import TrainingRows
from ._alignment import Alignments
from ._machine import OneKernelMachine
from ._merged import PowerOfSum, SourceKernels


@estimator
class Alignment(OneKernelMachine, KernelEstimator):
    """A machine on a weighted sum of kernels, the weights by centred alignment with the targets.

    Weights are learnt first, from how similar the centred kernels are to the kernel of the targets
    (Cortes, Mohri and Rostamizadeh 2012), the machine afterwards.

    Parameters
    ----------
    method : {"joint", "independent"}, default="joint"
        "joint" finds the non-negative weights whose sum of kernels has the largest alignment,
        the paper's "alignf". "independent" weighs each kernel by its own, "align".

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Non-negative, of the normalised kernels. They sum to one, so that C or λ mean the same as
        for :class:`Average`; the paper's have length one.
    alignments_ : ndarray of shape (n_kernels,)
        Centred alignment of each kernel with the targets, from 0 to 1.
    alignment_ : float
        That of the weighted sum.

    Notes
    -----
    The kernel of classes is one within a class and zero between classes, centred: for two classes
    the ``yyᵀ`` of the paper, for more the kernel that would tell them best. Frequent classes count
    more in it than rare ones; the class weights of the machine have no part in it. For a
    regression it is ``yyᵀ``, for several targets the sum of these, each in units of its standard
    deviation. A sample of weight two counts as two. Alignments do not depend on the scale of
    kernels; joint weights are such that the sum does not either, independent ones are factors of
    kernels as `normalize` leaves them. If no kernel is aligned at all, all have equal weights.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh. Algorithms for learning kernels based on centered
    alignment. JMLR 13, 2012.

    Examples
    --------
    >>> from manykernels.baselines import Alignment
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = Alignment(RBF()).fit(views[:300], y[:300])
    >>> dict(zip(model.kernel_names_, model.weights_.round(1).tolist()))["noise1"]
    0.0
    >>> bool(model.alignment_ >= model.alignments_.max())
    True
    """

    method: str = "joint"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": [StrOptions({"joint", "independent"})]
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Align the kernels, and fit the machine."""
        machine = self._new_machine()
        rows = self._target_rows(machine, X, y, sample_weight, centred=True)
        task = FitTask.begin(self, X, y, 1)
        kernels = SourceKernels.of(self, rows, self.normalize)
        targets = target_columns(rows, classes=is_classifier(machine))
        aligned = Alignments.of(kernels.stack, targets, rows.counts)
        weights = aligned.joint() if self.method == "joint" else aligned.independent()
        total = PowerOfSum("alignment", weights)
        expansion = kernels.learn(machine, total, y, sample_weight, task)
        return self._keep(
            task,
            self._attributes(kernels, machine, expansion),
            weights_=weights,
            alignments_=aligned.with_targets,
            alignment_=aligned.of_sum(weights),
        )


def target_columns(rows: TrainingRows, *, classes: bool) -> np.ndarray:
    """Columns Y of mean zero, ``YYᵀ`` being the kernel of the targets, (m, n_columns)."""
    if not classes:
        return ScaledTargets.of(rows.targets.reshape(len(rows), -1), rows.counts).columns
    indicators = np.eye(len(rows.classes))[rows.labels]
    centred: np.ndarray = indicators - np.average(indicators, axis=0, weights=rows.counts)
    return centred
