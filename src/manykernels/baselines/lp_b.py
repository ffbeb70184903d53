"""LPB: one machine per kernel, with one weight per kernel and class for a large margin."""

from __future__ import annotations

from typing import Any, Self

from ..estimators._base import KernelEstimator, estimator, fits
from ..estimators._kernels import TrainingKernels
from ..estimators._machines import SupportAttributes
from ..estimators._outputs import KernelClassifier
from ..estimators._rows import labelled_rows
from ._machines import HeldOutMachines, MixedMachinesParameters, checked_penalties
from ._mixture import MixtureAttributes


@estimator
class LPB(
    KernelClassifier,
    MixtureAttributes,
    SupportAttributes,
    MixedMachinesParameters,
    KernelEstimator,
):
    """LP-B: a support vector machine per kernel, and weights of them for each class.

    As :class:`LPBeta`, with one weight vector per class.

    Attributes
    ----------
    weights_ : ndarray of shape (n_classes, n_kernels), or (n_kernels,) for two classes
        B, of the outputs of the machines; those of each class sum to one. Two classes share their
        machines, and LP-B is LP-β.

    Notes
    -----
    The weights of each class sum to one, as in the program that the authors published. The weights
    of a class that is never among the worst samples are not determined: any are optimal.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.

    Examples
    --------
    >>> from manykernels.baselines import LPB
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = LPB(RBF(), Cs=[1.0]).fit(views[:300], y[:300])
    >>> model.weights_.shape
    (10, 7)
    >>> model.certificate_.converged
    True
    >>> bool(model.score(views[900:], y[900:]) > 0.9)
    True
    """

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the machines and their weights."""
        penalties = checked_penalties(self)
        rows = labelled_rows(self, X, y, sample_weight, None)
        kernels = TrainingKernels.of(rows, rows.counts)
        held_out = HeldOutMachines.of(self, X, y, rows, kernels, penalties)
        mixture = held_out.mixture(shared=False)
        return self._keep(held_out.task, held_out.learnt_again(mixture, rows, kernels))
