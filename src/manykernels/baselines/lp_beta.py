"""LPBeta: one machine per kernel, with one weight per kernel for a large margin."""

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
class LPBeta(
    KernelClassifier,
    MixtureAttributes,
    SupportAttributes,
    MixedMachinesParameters,
    KernelEstimator,
):
    """LP-β: a support vector machine per kernel, and one weight for each of them.

    Outputs of machines that have not seen a sample come from cross-validation. A linear program
    finds the weights, which sum to one, with which these outputs have the largest soft margin
    between the true class and every other. Then the machines learn from all samples.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        β, of the outputs of the machines.

    Notes
    -----
    Unlike in multiple kernel learning, a machine knows its own kernel only: the weights act on
    outputs, which are taken as they are, biases included. A kernel whose machine has large outputs
    counts more, so that weights can be compared only together with C and normalisation.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.

    Examples
    --------
    >>> from manykernels.baselines import LPBeta
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = LPBeta(RBF(), Cs=[1.0]).fit(views[:300], y[:300])
    >>> model.certificate_.converged
    True
    >>> dict(zip(model.kernel_names_, model.weights_.round(2)))["noise1"]
    np.float64(0.0)
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
        mixture = held_out.mixture(shared=True)
        return self._keep(held_out.task, held_out.learnt_again(mixture, rows, kernels))
